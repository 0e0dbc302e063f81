//! The wait mode of a rank: for how long a waiter spins, yields and sleeps.
//!
//! Made by `start`, read by `wait`. Invariant: a host counts as oversubscribed while its ranks
//! outnumber the CPUs. For one rank it also does while its waiting threads outnumber its share.
//!
//! A yield is cheap while the other threads that want the CPU wait too. If one of them computes,
//! each yield costs a time slice, and dozens of such waiters starve their job. So after two *long*
//! yields among a few the threads of this rank sleep instead of yielding. They do so for twice as
//! long as the last yield took, and for longer each time that yields are long again. If a rank of
//! this host computed, they do so only until all of them wait.

use crate::env::WaitMode;
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// A yield that takes longer has given the CPU to a thread that computes, for a time slice of some
/// milliseconds; or to many threads that wait, each of which may take this long.
const LONG_YIELD_NS: u64 = 500_000;
const LONG_PER_WAITER_NS: u64 = 200_000;
/// While a thread computes, at least one of this many yields is long. Elsewhere a long one has a
/// cause that is over. When 16 ranks on 2 CPUs slept after one, exchanges of 8 bytes took 7 ms:
/// sleepers waited for each other.
const YIELDS_BETWEEN: u32 = 8;
/// No thread yields for the duration of a long yield times a factor. It is small at first, because
/// the other computation may be over soon. In between the factor doubles whenever yields take long
/// again soon after.
const FIRST_FACTOR: u64 = 2;
const LARGEST_FACTOR: u64 = 20;
/// Where only ranks of this host computed, this many yields are short once all of them wait. If
/// fewer were, ranks that wait for a CPU may only look as if they computed.
const YIELDS_OF_JOB: u32 = 64;
/// If other programs had less than this part of a long yield, ranks of this host computed. The
/// system takes a little of the CPUs too.
const PART_OF_OTHERS: u64 = 8;
/// The first rounds of a wait only poll, a few microseconds in all; fewer where yields and sleeps
/// follow. With one round, barriers of 2 ranks in BLOCK took twice as long: each yielded. On an
/// oversubscribed host it is one round, because the sender may be waiting for this CPU.
const EAGER_ROUNDS: u32 = 64;
const EAGER_BEFORE_BLOCK: u32 = 16;
/// Yields before the first sleep, which no write of a word ends. On an oversubscribed host
/// each lets others run. A barrier of 4 ranks on 2 CPUs took 40 us with one yield, and takes 1.4
/// us with these. Elsewhere a yield returns at once.
const SHARED_YIELDS: u32 = 32;
const ALONE_YIELDS: u32 = 256;
/// Shortest and longest sleep. The end of one costs up to 40 us of CPU time in a virtual machine.
/// If many wait, sleeps are longer, to leave time for other threads. Next to 30 waiters on 2 CPUs,
/// 2 ranks sent 2,400 short messages per second with the shortest sleeps, and more than a million
/// with those of 200 us.
const SHORTEST_SLEEP_NS: u64 = 50_000;
const SLEEP_PER_WAITER_NS: u64 = 12_500;
/// Before the first sleep a wait takes as long as this many of the shortest. In that time a peer
/// wakes and answers; otherwise both would sleep for each message.
const SLEEPS_BEFORE_FIRST: u64 = 4;
const LONGEST_SLEEP_NS: u64 = 1_900_000;
/// In between a sleep is this part of the time that the wait has taken so far. So sleeps prolong a
/// wait by no more than this part, and long waits use little CPU.
const NAP_PART: u64 = 32;
/// In a wait of more than a second a sleep is this part, and may last for this long. Sleeps of 1.9
/// ms took 2 % of an idle CPU in a virtual machine, those of 5 ms take 0.5 %.
const LATE_NAP_PART: u64 = 512;
const LONGEST_LATE_SLEEP_NS: u64 = 5_000_000;

/// The wait mode of a process.
#[derive(Debug)]
pub struct Waiting {
    mode: AtomicU8,
    /// The user has asked to spin, which overrides everything else.
    insists: bool,
    /// Processes of this host, and the CPUs that they may use.
    processes: usize,
    cpus: usize,
    /// Threads of this process that waited when they were last counted. As many are assumed to
    /// wait in each of the other processes.
    threads: AtomicUsize,
    /// Yields took long, so threads sleep instead.
    no_yields: AtomicBool,
    /// Yields of this process since one was long.
    yields: AtomicU32,
    /// Ranks of this host computed then, so it ends when all wait.
    job_computed: AtomicBool,
    /// Short yields since `no_yields` last ended because all ranks waited.
    yields_of_job: AtomicU32,
    /// When the last long yield ended, and how long the ranks of this host had had a CPU then.
    long_yield_at: AtomicU64,
    cpu_ns: AtomicU64,
    /// Until when `no_yields` counts, and the length of that period.
    no_yields_until: AtomicU64,
    no_yields_for: AtomicU64,
    /// Rounds of a wait that only poll.
    eager: AtomicU32,
    /// Whether a thread may sleep: peers may need its polls to go on.
    naps: bool,
}

/// How many rounds spin and yield before the first sleep, if any.
pub(super) struct RelaxPlan {
    pub(super) spin: u32,
    pub(super) then_yield: u32,
    pub(super) then_sleep: bool,
}

impl Waiting {
    /// For one of `processes` processes of this host, which has `cpus` usable CPUs; `mode` is
    /// the user's choice. Without one it is SPIN ([`Waiting::set`]).
    pub fn new(mode: Option<WaitMode>, processes: usize, cpus: usize) -> Waiting {
        let insists = mode == Some(WaitMode::Spin);
        let mode = mode.unwrap_or(WaitMode::Spin);
        let waiting = Waiting {
            mode: AtomicU8::new(mode as u8),
            insists,
            processes,
            cpus,
            threads: AtomicUsize::new(1),
            no_yields: AtomicBool::new(false),
            yields: AtomicU32::new(YIELDS_BETWEEN),
            job_computed: AtomicBool::new(false),
            yields_of_job: AtomicU32::new(YIELDS_OF_JOB),
            long_yield_at: AtomicU64::new(0),
            cpu_ns: AtomicU64::new(0),
            no_yields_until: AtomicU64::new(0),
            no_yields_for: AtomicU64::new(0),
            eager: AtomicU32::new(EAGER_ROUNDS),
            naps: true,
        };
        waiting.set(mode);
        waiting
    }

    /// The same for a network that lets puts and gets of peers complete while this process sleeps
    /// (`naps`), or not. If not, no mode sleeps.
    pub fn with_naps(self, naps: bool) -> Waiting {
        Waiting { naps, ..self }
    }

    /// Changes the mode. On an oversubscribed host `GASNET_WAIT_SPIN` counts as
    /// `GASNET_WAIT_SPINBLOCK`: a spinning process would take the CPU from the one that it
    /// waits for.
    pub fn set(&self, mode: WaitMode) {
        let oversubscribed = self.is_oversubscribed(1);
        let mode = if oversubscribed && mode == WaitMode::Spin && !self.insists {
            WaitMode::SpinBlock
        } else {
            mode
        };
        self.mode.store(mode as u8, Ordering::Relaxed);
        let eager = match mode {
            _ if oversubscribed => 1,
            WaitMode::Spin => EAGER_ROUNDS,
            WaitMode::SpinBlock | WaitMode::Block => EAGER_BEFORE_BLOCK,
        };
        self.eager.store(eager, Ordering::Relaxed);
    }

    /// Rounds of a wait that only poll.
    #[inline]
    pub(super) fn eager(&self) -> u32 {
        self.eager.load(Ordering::Relaxed)
    }

    /// Whether this many threads of each process of this host outnumber the CPUs.
    fn is_oversubscribed(&self, threads: usize) -> bool {
        self.processes * threads > self.cpus
    }

    /// Whether ranks outnumber CPUs, and the user has not asked to spin.
    pub(super) fn shares_cpus(&self) -> bool {
        self.is_oversubscribed(1) && !self.insists
    }

    /// The threads that wait in each process, as far as this one knows; at least one.
    fn waiting_threads(&self) -> usize {
        self.threads.load(Ordering::Relaxed).max(1)
    }

    /// The threads of this host that wait for each CPU, as far as this process knows.
    fn waiters_of_a_cpu(&self) -> u64 {
        (self.processes * self.waiting_threads() / self.cpus.max(1)) as u64
    }

    /// How long a yield may take where nothing computes.
    fn long_yield(&self) -> u64 {
        LONG_YIELD_NS.max(self.waiters_of_a_cpu() * LONG_PER_WAITER_NS)
    }

    /// How long a waiter sleeps that has waited for so long; `None`: it does not yet.
    pub(super) fn nap(&self, waited: u64) -> Option<u64> {
        let shortest = SHORTEST_SLEEP_NS.max(self.waiters_of_a_cpu() * SLEEP_PER_WAITER_NS);
        let sleeps =
            waited >= SLEEPS_BEFORE_FIRST * shortest || self.no_yields.load(Ordering::Relaxed);
        let early = (waited / NAP_PART).max(shortest).min(LONGEST_SLEEP_NS);
        let late = (waited / LATE_NAP_PART).min(LONGEST_LATE_SLEEP_NS);
        sleeps.then(|| early.max(late))
    }

    pub(super) fn plan(&self) -> RelaxPlan {
        const CONTEND: RelaxPlan =
            RelaxPlan { spin: 1 << 14, then_yield: u32::MAX, then_sleep: false };
        let mode = self.mode.load(Ordering::Relaxed);
        let spin = mode == WaitMode::Spin as u8;
        if spin && self.insists {
            return CONTEND;
        }
        if self.no_yields.load(Ordering::Relaxed) && self.naps {
            return RelaxPlan { spin: 1, then_yield: 0, then_sleep: true };
        }
        let oversubscribed = self.is_oversubscribed(self.waiting_threads());
        if spin && !oversubscribed {
            return CONTEND;
        }
        RelaxPlan {
            spin: if oversubscribed { 1 } else { self.eager() },
            // A put waits for the end of its target's sleep: 2,100 us among 4 ranks on 2 CPUs, 12
            // without sleep (row `put_word` of `no-bypass`).
            then_yield: match (self.naps, oversubscribed) {
                (false, _) => u32::MAX,
                (true, true) => SHARED_YIELDS,
                (true, false) => ALONE_YIELDS,
            },
            then_sleep: self.naps,
        }
    }

    /// Whether more threads waited than this process has CPUs, or yields took long.
    pub(super) fn is_flagged(&self) -> bool {
        let threads = self.waiting_threads();
        threads > 1 && self.is_oversubscribed(threads) || self.no_yields.load(Ordering::Relaxed)
    }

    /// Whether no thread yields because ranks of this host compute.
    pub(super) fn job_computes(&self) -> bool {
        self.no_yields.load(Ordering::Relaxed)
            && self.job_computed.load(Ordering::Relaxed)
            && self.plan().then_sleep
    }

    /// Notes how many threads of this process wait at the time `now`. `others_wait`: whether all
    /// other ranks of this host do.
    pub(super) fn look(&self, now: u64, threads: usize, others_wait: impl FnOnce() -> bool) {
        self.threads.store(threads, Ordering::Relaxed);
        let is_over = now >= self.no_yields_until.load(Ordering::Relaxed);
        let all_wait = !is_over && self.job_computes() && others_wait();
        if all_wait {
            self.yields_of_job.store(0, Ordering::Relaxed);
        }
        if is_over || all_wait {
            self.no_yields.store(false, Ordering::Relaxed);
        }
    }

    /// Notes a yield that lasted from `now` to `after`. `others_wait`: whether all other ranks of
    /// this host have waited meanwhile. `cpu_ns`: how long the ranks of this host have had a CPU,
    /// all together.
    pub(super) fn yielded(
        &self,
        now: u64,
        after: u64,
        others_wait: impl FnOnce() -> bool,
        cpu_ns: impl FnOnce() -> u64,
    ) {
        let took = after.saturating_sub(now);
        let before = self.yields.load(Ordering::Relaxed);
        let of_job = self.yields_of_job.load(Ordering::Relaxed);
        if took <= self.long_yield() {
            self.yields.store(before.saturating_add(1), Ordering::Relaxed);
            self.yields_of_job.store(of_job.saturating_add(1), Ordering::Relaxed);
            return;
        }
        self.yields.store(0, Ordering::Relaxed);
        let cpu_ns = cpu_ns();
        let had = cpu_ns.saturating_sub(self.cpu_ns.swap(cpu_ns, Ordering::Relaxed));
        let since = after.saturating_sub(self.long_yield_at.swap(after, Ordering::Relaxed));
        if before < YIELDS_BETWEEN {
            // Another program would have had a CPU for a part of the yield. What another thread
            // has found meanwhile has the same cause.
            let by_others = since.saturating_mul(self.cpus as u64).saturating_sub(had);
            let had_all = match since >= took {
                true => by_others < took / PART_OF_OTHERS,
                false => self.job_computed.load(Ordering::Relaxed),
            };
            let by_job = had_all || of_job >= YIELDS_OF_JOB && !others_wait();
            self.stop_yields(now, took, by_job);
        }
    }

    /// No thread yields for a while after a yield that began at `now` and took so long. `by_job`:
    /// ranks of this host computed.
    fn stop_yields(&self, now: u64, took: u64, by_job: bool) {
        let last = self.no_yields_for.load(Ordering::Relaxed);
        let again = !by_job && now < self.no_yields_until.load(Ordering::Relaxed) + last;
        let (least, most) = (FIRST_FACTOR * took, LARGEST_FACTOR * took);
        let this = if again { (2 * last).clamp(least, most) } else { least };
        self.no_yields_for.store(this, Ordering::Relaxed);
        self.no_yields_until.store(now + took + this, Ordering::Relaxed);
        self.job_computed.store(by_job, Ordering::Relaxed);
        self.no_yields.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sleeps(w: &Waiting) -> bool {
        w.plan().then_sleep
    }

    /// Yields as long as where a thread computes.
    fn yield_long(w: &Waiting) {
        for _ in 0..2 {
            w.yielded(0, w.long_yield() + 1, || true, || 0);
        }
    }

    #[test]
    fn a_long_yield_among_many_changes_nothing() {
        let w = Waiting::new(None, 3, 2);
        let long = w.long_yield() + 1;
        for _ in 0..10 {
            w.yielded(0, long, || true, || 0);
            (0..YIELDS_BETWEEN).for_each(|_| w.yielded(0, long - 1, || true, || 0));
            assert!(w.plan().then_yield > 0);
        }
        w.yielded(0, long, || true, || 0);
        (1..YIELDS_BETWEEN).for_each(|_| w.yielded(0, 0, || true, || 0));
        assert!(w.plan().then_yield > 0);
        w.yielded(0, long, || true, || 0);
        assert_eq!(w.plan().then_yield, 0);
    }

    #[test]
    fn many_waiters_may_yield_for_longer() {
        let bound = |processes| Waiting::new(None, processes, 2).long_yield();
        assert_eq!([1, 2, 4].map(bound), [LONG_YIELD_NS; 3]);
        assert_eq!(bound(32), 16 * LONG_PER_WAITER_NS);
        let threads = Waiting::new(None, 4, 2);
        threads.look(0, 8, || true);
        assert_eq!(threads.long_yield(), 16 * LONG_PER_WAITER_NS);
    }

    #[test]
    fn processes_that_outnumber_the_cpus_sleep() {
        assert!(!sleeps(&Waiting::new(None, 2, 2)));
        let oversubscribed = Waiting::new(None, 3, 2);
        assert!(sleeps(&oversubscribed));
        oversubscribed.set(WaitMode::Spin);
        assert!(sleeps(&oversubscribed));
        let insists = Waiting::new(Some(WaitMode::Spin), 3, 2);
        yield_long(&insists);
        assert!(!sleeps(&insists));
        insists.set(WaitMode::Block);
        assert!(sleeps(&insists));
        let blocks = Waiting::new(Some(WaitMode::Block), 2, 2);
        assert!(blocks.plan().then_yield >= oversubscribed.plan().then_yield);
    }

    #[test]
    fn no_mode_sleeps_where_peers_need_polls() {
        for mode in [None, Some(WaitMode::Block), Some(WaitMode::SpinBlock)] {
            for processes in [2, 3] {
                let w = Waiting::new(mode, processes, 2).with_naps(false);
                assert!(!sleeps(&w));
                yield_long(&w);
                w.look(0, 9, || true);
                assert!(!sleeps(&w));
            }
        }
    }

    #[test]
    fn threads_that_outnumber_their_cpus_sleep_while_they_do() {
        let w = Waiting::new(None, 2, 4);
        w.look(0, 2, || true);
        assert!(!sleeps(&w));
        w.look(0, 3, || true);
        assert!(sleeps(&w));
        w.look(0, 2, || true);
        assert!(!sleeps(&w));
    }

    #[test]
    fn modes_that_block_yield_soon() {
        let w = Waiting::new(None, 2, 2);
        assert_eq!(w.eager(), EAGER_ROUNDS);
        for mode in [WaitMode::Block, WaitMode::SpinBlock] {
            w.set(mode);
            assert_eq!((w.eager(), w.plan().spin), (EAGER_BEFORE_BLOCK, EAGER_BEFORE_BLOCK));
            assert_eq!(Waiting::new(Some(mode), 3, 2).eager(), 1);
        }
    }

    #[test]
    fn naps_are_a_part_of_the_wait() {
        let w = Waiting::new(None, 3, 2);
        let first = SLEEPS_BEFORE_FIRST * SHORTEST_SLEEP_NS;
        assert_eq!([0, first - 1].map(|waited| w.nap(waited)), [None; 2]);
        assert_eq!(w.nap(first), Some(SHORTEST_SLEEP_NS));
        assert_eq!(w.nap(NAP_PART * 300_000), Some(300_000));
        // No sleep takes 2 ms in the first second.
        assert_eq!(w.nap(NAP_PART * LONGEST_SLEEP_NS), Some(LONGEST_SLEEP_NS));
        assert_eq!(w.nap(999_999_999), Some(1_953_124));
        assert_eq!(w.nap(LATE_NAP_PART * 3_000_000), Some(3_000_000));
        assert_eq!(w.nap(u64::MAX), Some(LONGEST_LATE_SLEEP_NS));
        let many = |processes| Waiting::new(None, processes, 2).nap(u64::MAX / 2);
        assert_eq!(many(1 << 20), Some(LONGEST_LATE_SLEEP_NS));
        let crowd = Waiting::new(None, 32, 2);
        let shortest = 16 * SLEEP_PER_WAITER_NS;
        assert_eq!(crowd.nap(SLEEPS_BEFORE_FIRST * shortest - 1), None);
        assert_eq!(crowd.nap(SLEEPS_BEFORE_FIRST * shortest), Some(shortest));
        yield_long(&crowd);
        assert_eq!(crowd.nap(0), Some(shortest));
    }

    #[test]
    fn after_long_yields_no_thread_yields_for_a_while() {
        let w = Waiting::new(Some(WaitMode::SpinBlock), 1, 1);
        w.yielded(1000, 1000 + LONG_YIELD_NS, || true, || 0);
        w.yielded(1000, 1000 + 2 * LONG_YIELD_NS, || true, || 0);
        assert!(w.plan().then_yield > 0);
        // Each of these yields, as soon as one may be tried again, takes as long: the pauses
        // grow by these factors.
        const TOOK: u64 = 2 * LONG_YIELD_NS;
        let mut now = 1_000_000 * TOOK;
        for times in [2, 4, 8, 16, 20, 20] {
            w.yielded(now, now + TOOK, || true, || 0);
            now += TOOK + times * TOOK;
            w.look(now - 1, 1, || true);
            assert_eq!(w.plan().then_yield, 0, "{times}");
            w.look(now, 1, || true);
            assert!(w.plan().then_yield > 0, "{times}");
        }
        // After as long a time without, it begins anew.
        now += 20 * TOOK;
        w.yielded(now, now + TOOK, || true, || 0);
        w.look(now + 3 * TOOK - 1, 1, || true);
        assert_eq!(w.plan().then_yield, 0);
        w.look(now + 3 * TOOK, 1, || true);
        assert!(w.plan().then_yield > 0);
    }

    #[test]
    fn a_pause_for_the_job_ends_when_all_ranks_wait() {
        let w = Waiting::new(None, 3, 2);
        let long = w.long_yield() + 1;
        // Two long yields on two CPUs, one of which the ranks have had all the time.
        let pause = |others_wait, of_other: u64| {
            w.yielded(0, long, || true, || 0);
            w.yielded(long, 2 * long, || others_wait, || long + of_other);
        };
        pause(true, long);
        w.look(2 * long, 1, || false);
        assert!(w.plan().then_yield == 0 && w.job_computes());
        w.look(2 * long, 1, || true);
        assert!(w.plan().then_yield > 0 && !w.job_computes());
        // Another program, or none, had half of the other CPU; another rank has computed.
        (0..YIELDS_OF_JOB).for_each(|_| w.yielded(0, 0, || true, || 0));
        w.yielded(0, long, || true, || 0);
        pause(false, long / 2);
        assert!(w.job_computes());
        w.look(2 * long, 1, || true);
        // No rank has.
        pause(true, long / 2);
        w.look(2 * long, 1, || true);
        assert!(w.plan().then_yield == 0 && !w.job_computes());
    }
}
