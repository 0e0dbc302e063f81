//! Waiting: the one place that decides whether to spin, yield or sleep.
//!
//! Called by every layer that waits, the conduit included ([`crate::conduit::Upcall::pause`]).
//! Invariant: a condition is checked again after at most [`LONGEST_SLEEP_NS`], because clients
//! also wait for words that a plain put changes.
//!
//! ```text
//!   poll, check the condition --not yet--> relax: spin -> yield -> sleep     and again
//! ```
//!
//! How soon `relax` yields and sleeps depends on the wait mode (`gasnet_set_waitmode`,
//! `GASNET_WAITMODE`) and on whether the host is crowded: its processes outnumber the CPUs that
//! they may use, or the waiting threads of this process outnumber its share of them. A sleeper
//! waits on the doorbell of its interface, or naps where the network has none.
//!
//! A yield is cheap while the other threads that want the CPU wait too. If one of them
//! computes, each yield costs a time slice, and dozens of such waiters starve their job. So
//! after a yield that took `LONG_YIELD_NS` the host counts as crowded, and the threads of this
//! process sleep instead of yielding: first for twice as long as the yield took, then for
//! longer each time.

use super::activity::WaitReason;
use super::job::GasnetJob;
use super::threads::{self, Ctx};
use crate::env::WaitMode;
use crate::{fault, report};
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering, fence};

/// Longest sleep: a condition is checked at least this often, even if nothing arrives.
pub const LONGEST_SLEEP_NS: u64 = 2_000_000;
/// Shortest sleep; a sleep is otherwise as long as the wait has been so far.
const SHORTEST_SLEEP_NS: u64 = 100_000;
/// Without a doorbell a sleep is this part of the time that the wait has taken so far: so
/// sleeps add no more than it to a wait, and long waits use almost no CPU.
const DEAF_PART: u64 = 16;
/// A yield that takes this long has given the CPU to a thread that computes: a time slice is
/// some milliseconds.
const LONG_YIELD_NS: u64 = 500_000;
/// For how many times the duration of a long yield no thread yields: the first time, when the
/// other computation may be over soon, and at most. In between the factor doubles whenever
/// yields take long again soon after.
const DEAR_AT_FIRST: u64 = 2;
const DEAR_AT_MOST: u64 = 20;
/// A thread that has waited within this time counts as waiting.
const RECENTLY_NS: u64 = 20_000_000;
/// The waiting threads are counted once in this many rounds of a wait.
const LOOK_ROUND: u32 = 256;
/// The first rounds of a wait only poll, about a microsecond in all. On a crowded host it is
/// only one: the sender may be waiting for this CPU.
const EAGER_ROUNDS: u32 = 64;

/// Reads of shared words before the first poll of a wait for them, about a microsecond.
const LOOKS: u32 = 64;

/// The wait mode of a process.
#[derive(Debug)]
pub struct Waiting {
    mode: AtomicU8,
    /// The user has asked to spin, which overrides everything else.
    insists: bool,
    /// The processes of this host outnumber its usable CPUs.
    crowded: bool,
    /// CPUs for each process of this host, at least one.
    share: usize,
    /// More threads of this process waited than that when they were last counted.
    threads_crowd: AtomicBool,
    /// Yields take long.
    dear: AtomicBool,
    /// Until when that counts, and the length of that period.
    dear_until: AtomicU64,
    dear_for: AtomicU64,
    /// Rounds of a wait that only poll.
    eager: u32,
}

/// How many rounds spin and yield before the first sleep, if any.
struct RelaxPlan {
    spin: u32,
    then_yield: u32,
    then_sleep: bool,
}

impl Waiting {
    /// For one of `processes` processes of this host, which has `cpus` usable CPUs; `mode` is
    /// the user's choice.
    pub fn new(mode: Option<WaitMode>, processes: usize, cpus: usize) -> Waiting {
        let insists = mode == Some(WaitMode::Spin);
        let crowded = processes > cpus;
        let mode = mode.unwrap_or(if crowded { WaitMode::SpinBlock } else { WaitMode::Spin });
        Waiting {
            mode: AtomicU8::new(mode as u8),
            insists,
            crowded,
            share: (cpus / processes.max(1)).max(1),
            threads_crowd: AtomicBool::new(false),
            dear: AtomicBool::new(false),
            dear_until: AtomicU64::new(0),
            dear_for: AtomicU64::new(0),
            eager: if crowded { 1 } else { EAGER_ROUNDS },
        }
    }

    /// Changes the mode. On a crowded host `GASNET_WAIT_SPIN` counts as
    /// `GASNET_WAIT_SPINBLOCK`: a spinning process would take the CPU from the one that it
    /// waits for.
    pub fn set(&self, mode: WaitMode) {
        let mode = if self.crowded && mode == WaitMode::Spin && !self.insists {
            WaitMode::SpinBlock
        } else {
            mode
        };
        self.mode.store(mode as u8, Ordering::Relaxed);
    }

    fn plan(&self) -> RelaxPlan {
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
        if mode == WaitMode::Block as u8 {
            return RelaxPlan { spin: 4, then_yield: 1, then_sleep: true };
        }
        match self.crowded || self.threads_crowd.load(Ordering::Relaxed) {
            true => RelaxPlan { spin: 1, then_yield: 32, then_sleep: true },
            false if spin => CONTEND,
            false => RelaxPlan { spin: 4096, then_yield: 32, then_sleep: true },
        }
    }

    /// Notes how many threads of this process wait at the time `now`.
    fn look(&self, now: u64, threads: usize) {
        self.threads_crowd.store(threads > self.share, Ordering::Relaxed);
        if now >= self.dear_until.load(Ordering::Relaxed) {
            self.dear.store(false, Ordering::Relaxed);
        }
    }

    /// Notes a yield that lasted from `now` to `after`.
    fn yielded(&self, now: u64, after: u64) {
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

/// Warns once that a handler polls. The handler goes on: the poll does nothing, but a loop on
/// it never ends.
#[cold]
#[inline(never)]
fn polls_in_handler() {
    static TOLD: AtomicBool = AtomicBool::new(false);
    if !TOLD.swap(true, Ordering::Relaxed) {
        report::warn(
            format_args!(
                "an active message handler polls (gasnet_AMPoll, or a gasnet_try_sync function): in a handler that serves nothing"
            ),
            format_args!(
                "Note what is to be done, let the handler return, and poll from outside; a loop in the handler that waits for progress never ends."
            ),
        );
    }
}

#[cold]
#[inline(never)]
fn waits_in_handler() -> ! {
    report::fatal(
        format_args!(
            "an active message handler waits (in a put, get, sync, barrier or GASNET_BLOCKUNTIL), which only code outside handlers may do"
        ),
        format_args!(
            "Note what is to be done, let the handler return, and do it from where messages are polled."
        ),
    )
}

impl Ctx {
    /// Serves the network once; true if anything had arrived. In a handler it does nothing and
    /// warns once. Ends this process if the job is ending.
    // The conduit's part is inlined: a round of a wait makes one call.
    #[inline(never)]
    pub fn poll(self) -> bool {
        self.job.leave_if_ending();
        if self.in_handler() {
            polls_in_handler();
            return false;
        }
        let served = self.job.conduit.poll(self);
        self.job.subsystem.progress(self);
        served
    }

    /// Polls until `done`; `what` names the wait in a report. Ends the job if this thread is
    /// inside a handler, which cannot poll.
    #[inline]
    pub fn wait_until(self, what: WaitReason, mut done: impl FnMut() -> bool) {
        self.check_may_wait();
        let mut round = 0;
        loop {
            let served = self.poll();
            if done() {
                return;
            }
            if served {
                // A poll serves a limited number of events: there may be more.
                round = 0;
            } else {
                self.relax(round, what, None);
                round = round.saturating_add(1);
            }
        }
    }

    /// To be called after this process wrote a word that others wait for: if that was the last
    /// one (`complete`), wakes the processes that sleep. Of two processes that write at the
    /// same time at least one sees that the words are complete: store, fence, load on both
    /// sides. Returns `complete`.
    #[inline]
    pub fn wrote_words(self, complete: impl FnOnce() -> bool) -> bool {
        fence(Ordering::SeqCst);
        let complete = complete();
        if let (true, Some(extension)) = (complete, self.job.conduit.shared_host()) {
            extension.ring_peers();
        }
        complete
    }

    /// As [`Ctx::wait_until`], for words that others write without a message: reads them for a
    /// while before the first poll. Not on a crowded host, where the process that is missing
    /// may be waiting for this CPU.
    #[inline]
    pub fn wait_for_words(self, what: WaitReason, mut done: impl FnMut() -> bool) {
        self.check_may_wait();
        let looks = if self.job.waiting.crowded { 0 } else { LOOKS };
        for _ in 0..looks {
            core::hint::spin_loop();
            if done() {
                return;
            }
        }
        self.wait_until(what, done);
    }

    /// Ends the job if this thread is inside a handler: it would wait forever, since handlers
    /// do not poll.
    #[inline]
    pub fn check_may_wait(self) {
        if self.in_handler() {
            waits_in_handler();
        }
    }

    /// One round of a wait, between two polls; `round` counts from 0. `what` and `peer` name
    /// the wait and the rank that it depends on in a report.
    #[inline]
    pub fn relax(self, round: u32, what: WaitReason, peer: Option<u32>) {
        // Most waits end in the first rounds, each of which takes as long as a pause
        // instruction.
        if round >= self.job.waiting.eager {
            self.relax_longer(round, what, peer);
        }
    }

    #[cold]
    #[inline(never)]
    fn relax_longer(self, round: u32, what: WaitReason, peer: Option<u32>) {
        let waiting = &self.job.waiting;
        let first = round == waiting.eager;
        let flagged = || {
            waiting.threads_crowd.load(Ordering::Relaxed) || waiting.dear.load(Ordering::Relaxed)
        };
        if round % LOOK_ROUND == LOOK_ROUND - 1 || first && flagged() {
            self.look_around();
        }
        let plan = waiting.plan();
        if round < plan.spin {
            core::hint::spin_loop();
            if first || round.is_multiple_of(64) {
                self.job.leave_if_ending();
                self.slot().activity.note_wait(first, what, peer);
            }
            return;
        }
        self.job.leave_if_ending();
        let (now, since) = self.slot().activity.note_wait(first, what, peer);
        let extension = self.job.conduit.shared_host();
        if round.saturating_sub(plan.spin.max(waiting.eager)) < plan.then_yield || !plan.then_sleep
        {
            sys::thread::yield_now();
            waiting.yielded(now, sys::clock::now_ns());
            if let (true, Some(extension)) = (round % 1024 == 1023, extension) {
                self.job.look_at_holder(extension);
            }
            return;
        }
        let nap = (now - since).clamp(SHORTEST_SLEEP_NS, LONGEST_SLEEP_NS);
        let Some(extension) = extension else {
            // Nothing interrupts this nap: a message that arrives waits for its end.
            let nap = ((now - since) / DEAF_PART).clamp(SHORTEST_SLEEP_NS, LONGEST_SLEEP_NS);
            sys::clock::sleep_ns(nap);
            return;
        };
        if fault::on("awake") {
            return;
        }
        // The count was read before the last poll: a message since then has changed it and
        // prevents the sleep.
        let slot = self.slot();
        if slot.doorbell.get() != 0 {
            extension.sleep(slot.doorbell.get(), nap);
        }
        if round % 64 == 63 {
            self.job.look_at_holder(extension);
        }
        slot.doorbell.set(extension.doorbell());
    }

    /// Checks whether more threads of this process wait than it has CPUs, and whether yields
    /// may be tried again.
    fn look_around(self) {
        let GasnetJob { slots, waiting, .. } = self.job;
        let now = sys::clock::now_ns();
        let live = threads::live(slots.count());
        let waiting_now = live.filter(|&t| slots.of(t).activity.has_waited(now, RECENTLY_NS));
        waiting.look(now, waiting_now.count());
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
        let crowded = Waiting::new(None, 3, 2);
        assert!(sleeps(&crowded));
        crowded.set(WaitMode::Spin);
        assert!(sleeps(&crowded));
        let insists = Waiting::new(Some(WaitMode::Spin), 3, 2);
        insists.yielded(0, LONG_YIELD_NS + 1);
        assert!(!sleeps(&insists));
        insists.set(WaitMode::Block);
        assert!(sleeps(&insists));
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
