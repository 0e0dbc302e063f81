//! What the threads of this rank wait for, printed when the launcher receives SIGUSR1.
//!
//! Written by the cold rounds of waits, read by a signal handler through [`crate::process`].
//! Invariant: a waiting thread renews its note on each cold round. A note older than 0.5 s is
//! stale and ignored, so ending a wait costs nothing.

use super::job::GasnetJob;
use crate::report::MessageLine;
use core::fmt::Write;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use sys::clock;

/// The operation that a thread waits in, as reports name it. A thin reference, so that it fits
/// into a word.
pub type WaitReason = &'static &'static str;

/// Nanoseconds for which a note counts.
const FRESH: u64 = 500_000_000;
const NO_PEER: u32 = u32::MAX;
/// Threads, and peers, that a report names.
const SHOWN: usize = 4;

/// The note of one thread, which alone writes it. Relaxed, since a report may mix two notes.
#[derive(Debug)]
pub struct Activity {
    /// A [`WaitReason`]; null if nothing is waited for.
    what: AtomicPtr<&'static str>,
    peer: AtomicU32,
    since: AtomicU64,
    seen: AtomicU64,
}

impl Default for Activity {
    fn default() -> Activity {
        Activity {
            what: AtomicPtr::new(core::ptr::null_mut()),
            peer: AtomicU32::new(NO_PEER),
            since: AtomicU64::new(0),
            seen: AtomicU64::new(0),
        }
    }
}

impl Activity {
    /// Notes one more round, perhaps the `first`, of a wait in `what`, for `peer` if the wait
    /// is for one. Returns the time, and when the wait began, in nanoseconds.
    pub(super) fn note_wait(
        &self,
        first: bool,
        what: WaitReason,
        peer: Option<u32>,
    ) -> (u64, u64) {
        let now = clock::now_ns();
        let what = core::ptr::from_ref(what).cast_mut();
        if first || self.what.load(Ordering::Relaxed) != what {
            self.since.store(now, Ordering::Relaxed);
        }
        self.seen.store(now, Ordering::Relaxed);
        self.peer.store(peer.unwrap_or(NO_PEER), Ordering::Relaxed);
        self.what.store(what, Ordering::Relaxed);
        (now, self.since.load(Ordering::Relaxed))
    }

    /// Whether it has waited in the last `ns` nanoseconds before `now`.
    pub(super) fn has_waited(&self, now: u64, ns: u64) -> bool {
        now.saturating_sub(self.seen.load(Ordering::Relaxed)) < ns
    }

    /// What the thread waits in now, for which peer, and for how many nanoseconds.
    fn now(&self) -> Option<(&'static str, Option<u32>, u64)> {
        let (now, what) = (clock::now_ns(), self.what.load(Ordering::Relaxed));
        if what.is_null() || now.saturating_sub(self.seen.load(Ordering::Relaxed)) > FRESH {
            return None;
        }
        let peer = Some(self.peer.load(Ordering::Relaxed)).filter(|&p| p != NO_PEER);
        // SAFETY: not null, so stored by `note_wait` from a `'static` reference.
        Some((unsafe { *what }, peer, now.saturating_sub(self.since.load(Ordering::Relaxed))))
    }
}

/// Writes what this rank does. Async-signal-safe.
pub(super) fn write(job: &GasnetJob, line: &mut MessageLine) {
    let mut told = 0;
    for thread in 0..job.slots.count() as u16 {
        let Some((what, peer, ns)) = job.slots.of(thread).activity.now() else { continue };
        told += 1;
        if told > SHOWN {
            continue;
        }
        let _ = write!(line, "{}", if told == 1 { "waits" } else { ";" });
        if thread > 0 || told > 1 {
            let _ = write!(line, " (thread {thread})");
        }
        let _ = write!(line, " in {what}");
        if let Some(peer) = peer {
            let _ = write!(line, " for rank {peer}");
        }
        let _ = write!(line, " since {:.1} s", ns as f64 / 1e9);
    }
    let _ = match told {
        0 => write!(line, "does not wait in the library"),
        _ if told > SHOWN => write!(line, "; and {} more threads", told - SHOWN),
        _ => Ok(()),
    };
    let _ = write!(line, "; operations outstanding: {}", job.ops.outstanding());
    // The peers with the fewest credits.
    let mut least: [(u32, u32); SHOWN] = [(u32::MAX, 0); SHOWN];
    for rank in (0..job.nodes).filter(|&r| r != job.mynode) {
        let Some(credits) = job.conduit.credits(rank) else { continue };
        if credits < least[SHOWN - 1].0 {
            least[SHOWN - 1] = (credits, rank);
            least.sort_unstable();
        }
    }
    let mut mark = "; credits:";
    for (credits, rank) in least.into_iter().filter(|l| l.0 != u32::MAX) {
        let _ = write!(line, "{mark} {credits} for rank {rank}");
        mark = ",";
    }
    if job.nodes as usize > SHOWN + 1 {
        let _ = write!(line, " (the least)");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_come_and_go() {
        let activity = Activity::default();
        assert!(activity.now().is_none());
        let (now, since) = activity.note_wait(true, &"gasnet_barrier_wait", Some(3));
        assert_eq!(now, since);
        assert!(activity.has_waited(now, FRESH) && !activity.has_waited(now + FRESH, FRESH));
        let (what, peer, _) = activity.now().unwrap();
        assert_eq!((what, peer), ("gasnet_barrier_wait", Some(3)));
        activity.seen.store(clock::now_ns() - FRESH - 1, Ordering::Relaxed);
        assert!(activity.now().is_none());
    }
}
