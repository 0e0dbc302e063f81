//! What a thread of this rank waits for.
//!
//! Written by the *cold* rounds of waits (those after the first few, which only poll), read by a
//! signal handler through `status`. Invariant: a waiting thread renews its note on each cold
//! round, and erases it when the wait ends. A wait by GASNET_BLOCKUNTIL ends in the client,
//! without a call: a note older than 0.5 s is stale and ignored. The next such wait erases it.
//!
//! The rounds of a wait begin anew when a poll has served something, the wait itself does not.

use crate::conduit::WaitStage;
use crate::rank::JobRank;
use core::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};
use sys::clock;
use sys::static_ref::StaticRef;

/// The operation that a thread waits in, as reports name it. A thin reference, so that it fits
/// into a word.
pub type WaitReason = &'static &'static str;

/// Nanoseconds for which a note counts.
const FRESH: u64 = 500_000_000;
/// The same of a thread that is running a handler: an older note is of the wait that runs it.
const FRESH_IN_HANDLER: u64 = 20_000_000;
const NO_PEER: u32 = u32::MAX;

/// The note of one thread, which alone writes it. Relaxed, since a report may mix two notes.
#[derive(Debug)]
pub struct Activity {
    /// None if nothing is waited for.
    what: StaticRef<&'static str>,
    peer: AtomicU32,
    /// When the wait began.
    since: AtomicU64,
    /// When its rounds last began.
    rounds_since: AtomicU64,
    /// A [`WaitStage`].
    stage: AtomicU8,
    /// Stored last (Release): what is read after a time (Acquire) is of that note or a later one.
    seen: AtomicU64,
}

impl Default for Activity {
    fn default() -> Activity {
        Activity {
            what: StaticRef::none(),
            peer: AtomicU32::new(NO_PEER),
            since: AtomicU64::new(0),
            rounds_since: AtomicU64::new(0),
            stage: AtomicU8::new(WaitStage::Sending as u8),
            seen: AtomicU64::new(0),
        }
    }
}

impl Activity {
    /// Notes one more round of a wait in `what`, for `peer` if the wait is for one. `first`: its
    /// rounds begin, perhaps anew. Returns the time, and when they began, in nanoseconds.
    pub(super) fn note_wait(
        &self,
        first: bool,
        what: WaitReason,
        peer: Option<JobRank>,
        stage: WaitStage,
    ) -> (u64, u64) {
        let now = clock::now_ns();
        let is_new = !self.what.get().is_some_and(|last| core::ptr::eq(last, what));
        if is_new {
            self.since.store(now, Ordering::Relaxed);
        }
        if is_new || first {
            self.rounds_since.store(now, Ordering::Relaxed);
        }
        self.peer.store(peer.map_or(NO_PEER, |rank| rank.0), Ordering::Relaxed);
        self.what.set(Some(what));
        self.stage.store(stage as u8, Ordering::Relaxed);
        self.seen.store(now, Ordering::Release);
        (now, self.rounds_since.load(Ordering::Relaxed))
    }

    /// Notes the end of a wait; whether it was noted, for which it may have been too short.
    #[inline]
    pub(super) fn end_wait(&self) -> bool {
        let was_noted = self.what.get().is_some();
        if was_noted {
            self.what.set(None);
        }
        was_noted
    }

    /// The stage of a wait in which the thread was at some moment after this time; `None` if it
    /// was in none.
    pub(super) fn stage_since(&self, since_ns: u64) -> Option<WaitStage> {
        let waited = self.seen.load(Ordering::Acquire) > since_ns;
        waited.then(|| WaitStage::of(self.stage.load(Ordering::Relaxed)))
    }

    /// Whether it has waited in the last `ns` nanoseconds before `now`.
    pub(super) fn has_waited(&self, now: u64, ns: u64) -> bool {
        now.saturating_sub(self.seen.load(Ordering::Relaxed)) < ns
    }

    /// For how many nanoseconds a thread that waits has made no slow round; `None` if it does not
    /// wait. A handler that it runs meanwhile has run for that long at most.
    pub(super) fn last_round(&self) -> Option<u64> {
        self.what.get()?;
        Some(clock::now_ns().saturating_sub(self.seen.load(Ordering::Relaxed)))
    }

    /// What the thread, perhaps in a handler, waits in now, for which peer, and for how many
    /// nanoseconds.
    pub(super) fn now(&self, in_handler: bool) -> Option<(&'static str, Option<JobRank>, u64)> {
        let (now, what) = (clock::now_ns(), self.what.get()?);
        let fresh = if in_handler { FRESH_IN_HANDLER } else { FRESH };
        if now.saturating_sub(self.seen.load(Ordering::Relaxed)) > fresh {
            return None;
        }
        let peer = Some(self.peer.load(Ordering::Relaxed)).filter(|&p| p != NO_PEER).map(JobRank);
        Some((*what, peer, now.saturating_sub(self.since.load(Ordering::Relaxed))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_come_and_go() {
        let activity = Activity::default();
        assert!(activity.now(false).is_none());
        const WHAT: WaitReason = &"gasnet_barrier_wait";
        let (now, since) = activity.note_wait(true, WHAT, Some(JobRank(3)), WaitStage::Sent);
        assert_eq!(now, since);
        assert!(activity.has_waited(now, FRESH) && !activity.has_waited(now + FRESH, FRESH));
        assert_eq!(activity.stage_since(now - 1), Some(WaitStage::Sent));
        assert_eq!(activity.stage_since(now), None);
        let (what, peer, _) = activity.now(false).unwrap();
        assert_eq!((what, peer), ("gasnet_barrier_wait", Some(JobRank(3))));
        assert!(activity.end_wait() && !activity.end_wait());
        assert!(activity.now(false).is_none() && activity.has_waited(now, FRESH));
        let (now, since) = activity.note_wait(false, WHAT, None, WaitStage::Sent);
        assert!(now == since && activity.now(false).is_some());
        activity.seen.store(clock::now_ns() - FRESH_IN_HANDLER - 1, Ordering::Relaxed);
        assert!(activity.now(false).is_some() && activity.now(true).is_none());
        assert!(activity.last_round().is_some_and(|ns| ns > FRESH_IN_HANDLER));
        activity.seen.store(clock::now_ns() - FRESH - 1, Ordering::Relaxed);
        assert!(activity.now(false).is_none());
    }

    #[test]
    fn rounds_that_begin_anew_do_not_begin_the_wait_anew() {
        const WHAT: WaitReason = &"gasnet_barrier_wait";
        let activity = Activity::default();
        activity.note_wait(true, WHAT, None, WaitStage::Idle);
        let a_second_ago = clock::now_ns() - 1_000_000_000;
        activity.since.store(a_second_ago, Ordering::Relaxed);
        activity.rounds_since.store(a_second_ago, Ordering::Relaxed);
        let waited = || activity.now(false).unwrap().2;
        let (_, since) = activity.note_wait(false, WHAT, None, WaitStage::Idle);
        assert!(since == a_second_ago && waited() >= 1_000_000_000);
        let (now, since) = activity.note_wait(true, WHAT, None, WaitStage::Idle);
        assert!(since == now && waited() >= 1_000_000_000);
        activity.note_wait(true, &"gasnet_wait_syncnb", None, WaitStage::Idle);
        assert!(waited() < 1_000_000_000);
        activity.since.store(a_second_ago, Ordering::Relaxed);
        activity.end_wait();
        activity.note_wait(true, &"gasnet_wait_syncnb", None, WaitStage::Idle);
        assert!(waited() < 1_000_000_000);
    }
}
