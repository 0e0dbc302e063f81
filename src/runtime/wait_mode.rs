//! The wait mode of a rank: for how long a waiter spins, yields and sleeps.
//!
//! Made by `start`, read by `wait`. Invariant: a host counts as oversubscribed while its ranks
//! outnumber the CPUs. For one rank it also does while its waiting threads outnumber its share.
//!
//! A yield is cheap while the other threads that want the CPU wait too. If one of them
//! computes, each yield costs a time slice, and dozens of such waiters starve their job. So
//! after a yield that took `LONG_YIELD_NS` the threads of this rank sleep instead of
//! yielding: first for twice as long as the yield took, then for longer each time.

use crate::env::WaitMode;
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};

/// A yield that takes this long has given the CPU to a thread that computes: a time slice is
/// some milliseconds.
const LONG_YIELD_NS: u64 = 500_000;
/// For how many times the duration of a long yield no thread yields: the first time, when the
/// other computation may be over soon, and at most. In between the factor doubles whenever
/// yields take long again soon after.
const DEAR_AT_FIRST: u64 = 2;
const DEAR_AT_MOST: u64 = 20;
/// The first rounds of a wait only poll, about a microsecond in all. On an oversubscribed host it
/// is only one: the sender may be waiting for this CPU.
const EAGER_ROUNDS: u32 = 64;

/// The wait mode of a process.
#[derive(Debug)]
pub struct Waiting {
    mode: AtomicU8,
    /// The user has asked to spin, which overrides everything else.
    insists: bool,
    /// The processes of this host outnumber its usable CPUs.
    pub(super) oversubscribed: bool,
    /// CPUs for each process of this host, at least one.
    share: usize,
    /// More threads of this process waited than that when they were last counted.
    threads_outnumber: AtomicBool,
    /// Yields take long.
    dear: AtomicBool,
    /// Until when that counts, and the length of that period.
    dear_until: AtomicU64,
    dear_for: AtomicU64,
    /// Rounds of a wait that only poll.
    pub(super) eager: u32,
}

/// How many rounds spin and yield before the first sleep, if any.
pub(super) struct RelaxPlan {
    pub(super) spin: u32,
    pub(super) then_yield: u32,
    pub(super) then_sleep: bool,
}

impl Waiting {
    /// For one of `processes` processes of this host, which has `cpus` usable CPUs; `mode` is
    /// the user's choice.
    pub fn new(mode: Option<WaitMode>, processes: usize, cpus: usize) -> Waiting {
        let insists = mode == Some(WaitMode::Spin);
        let oversubscribed = processes > cpus;
        let mode =
            mode.unwrap_or(if oversubscribed { WaitMode::SpinBlock } else { WaitMode::Spin });
        Waiting {
            mode: AtomicU8::new(mode as u8),
            insists,
            oversubscribed,
            share: (cpus / processes.max(1)).max(1),
            threads_outnumber: AtomicBool::new(false),
            dear: AtomicBool::new(false),
            dear_until: AtomicU64::new(0),
            dear_for: AtomicU64::new(0),
            eager: if oversubscribed { 1 } else { EAGER_ROUNDS },
        }
    }

    /// Changes the mode. On an oversubscribed host `GASNET_WAIT_SPIN` counts as
    /// `GASNET_WAIT_SPINBLOCK`: a spinning process would take the CPU from the one that it
    /// waits for.
    pub fn set(&self, mode: WaitMode) {
        let mode = if self.oversubscribed && mode == WaitMode::Spin && !self.insists {
            WaitMode::SpinBlock
        } else {
            mode
        };
        self.mode.store(mode as u8, Ordering::Relaxed);
    }

    pub(super) fn plan(&self) -> RelaxPlan {
        const CONTEND: RelaxPlan =
            RelaxPlan { spin: 1 << 14, then_yield: u32::MAX, then_sleep: false };
        let mode = self.mode.load(Ordering::Relaxed);
        let spin = mode == WaitMode::Spin as u8;
        if spin && self.insists {
            return CONTEND;
        }
        if self.dear.load(Ordering::Relaxed) {
            return RelaxPlan { spin: 1, then_yield: 0, then_sleep: true };
        }
        let oversubscribed = self.oversubscribed || self.threads_outnumber.load(Ordering::Relaxed);
        // A write of a word ends no sleep, so yields come first in every mode: a barrier of 4
        // ranks on 2 CPUs in BLOCK took 40 us with one yield, and takes 1.4 us with these.
        match oversubscribed || mode == WaitMode::Block as u8 {
            true => RelaxPlan { spin: 1, then_yield: 32, then_sleep: true },
            false if spin => CONTEND,
            false => RelaxPlan { spin: 4096, then_yield: 32, then_sleep: true },
        }
    }

    /// Whether more threads waited than this process has CPUs, or yields took long.
    pub(super) fn is_flagged(&self) -> bool {
        self.threads_outnumber.load(Ordering::Relaxed) || self.dear.load(Ordering::Relaxed)
    }

    /// Notes how many threads of this process wait at the time `now`.
    pub(super) fn look(&self, now: u64, threads: usize) {
        self.threads_outnumber.store(threads > self.share, Ordering::Relaxed);
        if now >= self.dear_until.load(Ordering::Relaxed) {
            self.dear.store(false, Ordering::Relaxed);
        }
    }

    /// Notes a yield that lasted from `now` to `after`.
    pub(super) fn yielded(&self, now: u64, after: u64) {
        let took = after.saturating_sub(now);
        if took > LONG_YIELD_NS {
            let last = self.dear_for.load(Ordering::Relaxed);
            let again = now < self.dear_until.load(Ordering::Relaxed) + last;
            let (least, most) = (DEAR_AT_FIRST * took, DEAR_AT_MOST * took);
            let this = if again { (2 * last).clamp(least, most) } else { least };
            self.dear_for.store(this, Ordering::Relaxed);
            self.dear_until.store(after + this, Ordering::Relaxed);
            self.dear.store(true, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sleeps(w: &Waiting) -> bool {
        w.plan().then_sleep
    }

    #[test]
    fn processes_that_outnumber_the_cpus_sleep() {
        assert!(!sleeps(&Waiting::new(None, 2, 2)));
        let oversubscribed = Waiting::new(None, 3, 2);
        assert!(sleeps(&oversubscribed));
        oversubscribed.set(WaitMode::Spin);
        assert!(sleeps(&oversubscribed));
        let insists = Waiting::new(Some(WaitMode::Spin), 3, 2);
        insists.yielded(0, LONG_YIELD_NS + 1);
        assert!(!sleeps(&insists));
        insists.set(WaitMode::Block);
        assert!(sleeps(&insists));
        let blocks = Waiting::new(Some(WaitMode::Block), 2, 2);
        assert_eq!(blocks.plan().then_yield, oversubscribed.plan().then_yield);
    }

    #[test]
    fn threads_that_outnumber_their_cpus_sleep_while_they_do() {
        let w = Waiting::new(None, 2, 4);
        w.look(0, 2);
        assert!(!sleeps(&w));
        w.look(0, 3);
        assert!(sleeps(&w));
        w.look(0, 2);
        assert!(!sleeps(&w));
    }

    #[test]
    fn after_a_long_yield_no_thread_yields_for_a_while() {
        let w = Waiting::new(Some(WaitMode::SpinBlock), 1, 1);
        w.yielded(1000, 1000 + LONG_YIELD_NS);
        assert!(w.plan().then_yield > 0);
        // Each of these yields, as soon as one may be tried again, takes as long: the pauses
        // grow by these factors.
        const TOOK: u64 = 2 * LONG_YIELD_NS;
        let mut now = 1_000_000 * TOOK;
        for times in [2, 4, 8, 16, 20, 20] {
            w.yielded(now, now + TOOK);
            now += TOOK + times * TOOK;
            w.look(now - 1, 1);
            assert_eq!(w.plan().then_yield, 0, "{times}");
            w.look(now, 1);
            assert!(w.plan().then_yield > 0, "{times}");
        }
        // After as long a time without, it begins anew.
        now += 20 * TOOK;
        w.yielded(now, now + TOOK);
        w.look(now + 3 * TOOK - 1, 1);
        assert_eq!(w.plan().then_yield, 0);
        w.look(now + 3 * TOOK, 1);
        assert!(w.plan().then_yield > 0);
    }
}
