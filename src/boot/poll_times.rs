//! Whether a process does nothing but poll, seen from the times of its polls.
//!
//! Owned by [`super::exit_notice`], which notes each poll while the process is requested to exit.
//! Several threads may note polls at the same time; what they find then is one of their answers.

use core::sync::atomic::{AtomicU64, Ordering};
use sys::process;

/// Nanoseconds for which a rank polls that does nothing else.
pub(super) const ONLY_POLLS: u64 = 5_000_000;
/// The longest pause between two polls: a waiting rank sleeps for less than 2 ms in the first
/// second after the request. A longer pause does not count if only other processes had the CPU
/// meanwhile: this one had it for `WORK` nanoseconds at most, and did not sleep.
pub(super) const LONGEST_PAUSE: u64 = 4_000_000;
pub(super) const WORK: u64 = 2_000_000;

/// A time in which a process did nothing but poll, until now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OnlyPolls {
    /// When it began.
    pub(super) since: u64,
    /// Polls in it.
    pub(super) polls: u64,
}

/// The polls of this process; times are those of [`sys::clock::now_ns`].
#[derive(Debug, Default)]
pub(super) struct PollTimes {
    /// The first poll, the first after the last pause, and the last; 0 before any.
    first: AtomicU64,
    since: AtomicU64,
    last: AtomicU64,
    /// Polls since then.
    polls: AtomicU64,
    /// What the process had used of a CPU at its last poll.
    used_ns: AtomicU64,
    used_waits: AtomicU64,
}

impl PollTimes {
    /// When the first poll was noted; 0 before.
    pub(super) fn first(&self) -> u64 {
        self.first.load(Ordering::Relaxed)
    }

    /// Notes a poll at the time `now`. Returns in what time the process has done nothing but poll,
    /// if that is long enough to say so. Async-signal-safe.
    pub(super) fn note(&self, now: u64) -> Option<OnlyPolls> {
        if self.first() == 0 {
            self.first.store(now, Ordering::Relaxed);
        }
        let pause = now.saturating_sub(self.last.swap(now, Ordering::Relaxed));
        let did_more = process::cpu_use().is_none_or(|used| {
            let work = used.ns.saturating_sub(self.used_ns.swap(used.ns, Ordering::Relaxed));
            let waits = self.used_waits.swap(used.waits, Ordering::Relaxed);
            work > WORK || waits != used.waits
        });
        let since = self.since.load(Ordering::Relaxed);
        if since == 0 || pause > LONGEST_PAUSE && did_more {
            self.since.store(now, Ordering::Relaxed);
            self.polls.store(0, Ordering::Relaxed);
            return None;
        }
        let polls = self.polls.fetch_add(1, Ordering::Relaxed) + 1;
        (now.saturating_sub(since) > ONLY_POLLS).then_some(OnlyPolls { since, polls })
    }
}
