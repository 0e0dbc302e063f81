//! WaitReason the threads of this process wait for, told in one line when the launcher asks (SIGUSR1 to it). Written by the cold
//! rounds of waits, read by a signal handler.
//!
//! Invariant: a note is current while its thread goes on to renew it; one that is older than half a second is of a wait that
//! has ended. So the end of a wait costs nothing.

use super::job::GasnetJob;
use crate::report::MessageLine;
use core::fmt::Write;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use sys::clock;

/// WaitReason is waited for, in the words of a report; thin, so that it fits into a word.
pub type WaitReason = &'static &'static str;

/// Nanoseconds for which a note counts.
const FRESH: u64 = 500_000_000;
const NOBODY: u32 = u32::MAX;
/// Threads, and peers, that are told of.
const SHOWN: usize = 4;

/// The note of one thread. Only its thread writes it; relaxed, since a report may be a little off.
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
            peer: AtomicU32::new(NOBODY),
            since: AtomicU64::new(0),
            seen: AtomicU64::new(0),
        }
    }
}

impl Activity {
    /// One more round, maybe the `first`, of a wait for this, from this peer if it is one that is waited for. The time, and when
    /// the wait began.
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
        self.peer.store(peer.unwrap_or(NOBODY), Ordering::Relaxed);
        self.what.store(what, Ordering::Relaxed);
        (now, self.since.load(Ordering::Relaxed))
    }

    /// Whether it has waited for anything in the last so many nanoseconds.
    pub(super) fn has_waited(&self, now: u64, ns: u64) -> bool {
        now.saturating_sub(self.seen.load(Ordering::Relaxed)) < ns
    }

    /// WaitReason is waited for now, from whom, and for how long, in nanoseconds.
    fn now(&self) -> Option<(&'static str, Option<u32>, u64)> {
        let (now, what) = (clock::now_ns(), self.what.load(Ordering::Relaxed));
        if what.is_null() || now.saturating_sub(self.seen.load(Ordering::Relaxed)) > FRESH {
            return None;
        }
        let peer = Some(self.peer.load(Ordering::Relaxed)).filter(|&p| p != NOBODY);
        // SAFETY: not null, so a `WaitReason`, which lives for ever and is never written.
        Some((unsafe { *what }, peer, now.saturating_sub(self.since.load(Ordering::Relaxed))))
    }
}

static JOB: AtomicPtr<GasnetJob> = AtomicPtr::new(core::ptr::null_mut());

/// Has this process answer from now on.
pub(super) fn open(job: &'static GasnetJob) {
    JOB.store(core::ptr::from_ref(job).cast_mut(), Ordering::Release);
}

/// Writes what this process does. Async-signal-safe: nothing is allocated, and no lock is waited for.
pub(super) fn write(line: &mut MessageLine) {
    let job = JOB.load(Ordering::Acquire);
    if job.is_null() {
        let _ = write!(line, "in gasnet_init");
        return;
    }
    // SAFETY: not null, so what `open` was given, which lives as long as the process.
    let job = unsafe { &*job };
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
    // Who has least matters.
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
