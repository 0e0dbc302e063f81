//! Waiting for other ranks: a waiter spins, yields and sleeps between two polls.
//!
//! Called by every layer that waits for the network or for words of other ranks, the conduit
//! included ([`crate::conduit::Upcall::pause`]). Code that must not poll waits in loops of its
//! own. That is in locks, the trace, the start and the exit of a job, and the calls of `portals3`.
//! Invariant: a condition is checked again after a sleep of less than 2 ms in the first second,
//! and of at most 5 ms later, because clients also wait for words that a plain put changes. In a
//! short wait the sleep is shorter (`wait_mode`).
//!
//! ```text
//!   poll, test the condition --not yet--> relax: spin, later yield, later sleep --> poll again
//! ```
//!
//! How soon `relax` yields and sleeps depends on the wait mode (`gasnet_set_waitmode`,
//! `GASNET_WAITMODE`) and on whether the host is oversubscribed. It is if its ranks outnumber the
//! CPUs that they may use. For one rank it also is while its waiting threads outnumber its share
//! of them. A sleeper waits on the doorbell of its interface, if there is one. No put ends a
//! sleep, and no message of a network without a doorbell. So a sleep is a small part of the time
//! of its wait.

use super::activity::WaitReason;
use super::job::{Ctx, GasnetJob};
use super::threads;
use crate::conduit::portals::SharedHost;
use crate::conduit::{WaitStage, WaitingProcess};
use crate::process::exit;
use crate::rank::{JobRank, LocalRank};
use crate::{fault, report};
use core::sync::atomic::{AtomicBool, Ordering, fence};
use sys::process::Liveness;

/// A thread that has waited within this time counts as waiting.
const RECENTLY_NS: u64 = 20_000_000;
/// The waiting threads are counted once in this many rounds of a wait.
const COUNT_ROUND: u32 = 256;
/// Where ranks outnumber CPUs, a thread yields once in this many polls of its own that find
/// nothing. A loop of them, some 10 us long, would else keep the CPU from the rank that it waits
/// for until the end of a time slice, a thousand times as long.
const VAIN_POLLS: u32 = 128;

/// A thread that waits while it serves others looks for what blocks it once in this many polls.
const BUSY_ROUNDS: u32 = 4096;
/// A thread that has waited for so long looks for what blocks it, and again after this time.
const HEALTH_EVERY_NS: u64 = 100_000_000;
/// Reads of words that come soon, if they come: some 100 ns. To record a collective that is to be
/// awaited, and to find that it has ended, takes as long.
const SOON_ROUNDS: u32 = 8;
/// The most polls for messages that have arrived.
const ARRIVED_POLLS: u32 = 256;

/// Whether ranks of this host outnumber CPUs, and the user has not asked to spin. Not in the job:
/// each poll of a client would have to keep that for it.
static SHARES_CPUS: AtomicBool = AtomicBool::new(false);

/// Says whether ranks share CPUs.
pub(super) fn share_cpus(shares: bool) {
    SHARES_CPUS.store(shares, Ordering::Relaxed);
}

/// Whether a client that polls and finds nothing keeps a CPU from a rank.
#[inline(always)]
pub fn shares_cpus() -> bool {
    SHARES_CPUS.load(Ordering::Relaxed)
}

/// The number of the round of a wait that follows this one: the highest ones repeat.
pub const fn next_round(round: u32) -> u32 {
    match round.checked_add(1) {
        Some(next) => next,
        None => u32::MAX - COUNT_ROUND + 1,
    }
}

/// Warns once that a handler polls. The handler goes on: the poll does nothing, but a loop on
/// it never ends.
#[cold]
#[inline(never)]
fn polls_in_handler() {
    static WARNED: AtomicBool = AtomicBool::new(false);
    if !WARNED.swap(true, Ordering::Relaxed) {
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

/// Warns that a peer is stopped while this process waits for the end of its delivery.
#[cold]
fn report_stopped(rank: JobRank, pid: u32) {
    let cause = format_args!(
        "rank {rank} (pid {pid}) is stopped in the middle of a delivery to this rank"
    );
    match sys::process::tracer_of(pid) {
        Some(tracer) => report::warn(
            cause,
            format_args!("Continue it in process {tracer}, which traces it, or end the job."),
        ),
        None => report::warn(
            cause,
            format_args!("Continue it with kill -CONT {pid}, or end the job with kill {pid}."),
        ),
    }
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
        let served = self.endpoint().conduit.poll(self);
        self.job.subsystem.progress(self);
        served
    }

    /// As [`Ctx::poll`], for a call of the client that it may make in a loop, until it finds
    /// something.
    #[inline(always)]
    pub fn poll_of_client(self) {
        if !self.poll() && shares_cpus() {
            self.polled_in_vain();
        }
    }

    /// Notes a poll of a client that found nothing, where [`shares_cpus`].
    #[cold]
    #[inline(never)]
    pub fn polled_in_vain(self) {
        let vain = self.slot.vain_polls.load(Ordering::Relaxed).wrapping_add(1);
        self.slot.vain_polls.store(vain, Ordering::Relaxed);
        if !vain.is_multiple_of(VAIN_POLLS) {
            return;
        }
        let waiting = &self.job.waiting;
        if waiting.is_flagged() {
            self.count_waiters();
        }
        self.let_others_run();
    }

    /// Yields, where [`shares_cpus`], unless a yield takes long.
    pub fn let_others_run(self) {
        if self.job.waiting.plan().then_yield != 0 {
            self.yield_cpu(sys::clock::now_ns());
        }
    }

    /// Lets other threads run, and notes how long they did.
    fn yield_cpu(self, now: u64) {
        sys::thread::yield_now();
        let after = sys::clock::now_ns();
        let exit = &self.job.boot.exit;
        let all_wait = || exit.others_wait(now, after);
        self.job.waiting.yielded(now, after, all_wait, || exit.cpu_ns_of_host());
    }

    /// Polls until `done`; `what` names the wait in a report. Ends the job if this thread is
    /// inside a handler, which cannot poll.
    pub fn wait_until(self, what: WaitReason, mut done: impl FnMut() -> bool) {
        self.check_may_wait();
        let (mut round, mut busy) = (0, 0u32);
        loop {
            let served = self.poll();
            if done() {
                self.end_wait();
                return;
            }
            if served {
                // A poll serves a limited number of events: there may be more.
                round = 0;
                busy = busy.wrapping_add(1);
                if busy.is_multiple_of(BUSY_ROUNDS) {
                    self.check_health_while_busy();
                }
            } else {
                self.relax(round, what);
                round = next_round(round);
            }
        }
    }

    /// To be called after this process wrote a word that others wait for: if that was the last
    /// one (`complete`), wakes the processes that sleep. Of two processes that write at the
    /// same time at least one sees that the words are complete: store, fence, load on both
    /// sides.
    pub fn wrote_words(self, complete: impl FnOnce() -> bool) {
        fence(Ordering::SeqCst);
        if let (true, Some(host)) = (complete(), self.endpoint().conduit.shared_host()) {
            host.ring_peers();
        }
    }

    /// The same where few processes can sleep: looks for those first, because `complete` reads
    /// words that others write.
    pub fn wrote_words_of_few(self, complete: impl FnOnce() -> bool) {
        fence(Ordering::SeqCst);
        if let Some(host) = self.endpoint().conduit.shared_host()
            && host.peers_sleep()
            && complete()
        {
            host.ring_peers();
        }
    }

    /// Runs the handlers of the active messages that have arrived. For a caller that has met its
    /// peers by other means than messages.
    #[inline]
    pub fn serve_arrived(self) {
        self.while_arrived(|| self.poll());
    }

    /// As [`Ctx::serve_arrived`], for a part of the library that polls call: it is not called
    /// again meanwhile.
    pub fn serve_arrived_in_poll(self) {
        self.while_arrived(|| self.endpoint().conduit.serve(self));
    }

    /// Calls `poll`, which tells whether it did anything, while messages are there. Peers that go
    /// on sending do not keep the caller here.
    #[inline]
    fn while_arrived(self, poll: impl Fn() -> bool) {
        let conduit = &self.endpoint().conduit;
        let mut polls = 0..ARRIVED_POLLS;
        while conduit.am_may_have() && polls.next().is_some() && poll() {}
    }

    /// As [`Ctx::wait_until`], for words that others write without a message: reads them for a
    /// while before the first poll, about a microsecond. Not where the first round yields: the
    /// process that is missing may be waiting for this CPU.
    pub fn wait_for_words(self, what: WaitReason, mut done: impl FnMut() -> bool) {
        self.check_may_wait();
        if !self.read_words(self.job.waiting.eager(), &mut done) {
            self.wait_until(what, done);
        }
    }

    /// Whether such words are there soon: reads them for as long as it takes to record what is to
    /// be awaited. Does not wait.
    pub fn words_come_soon(self, mut done: impl FnMut() -> bool) -> bool {
        self.read_words(self.job.waiting.eager().min(SOON_ROUNDS), &mut done)
    }

    fn read_words(self, rounds: u32, done: &mut impl FnMut() -> bool) -> bool {
        (0..rounds).any(|_| {
            core::hint::spin_loop();
            done()
        })
    }

    /// Ends the job if this thread is inside a handler: it would wait forever, since handlers
    /// do not poll.
    pub fn check_may_wait(self) {
        if self.in_handler() {
            waits_in_handler();
        }
    }

    /// Ends the note of a wait that has ended without a call, before another one begins.
    #[inline]
    pub fn begin_wait(self) {
        self.slot.activity.end_wait();
    }

    /// Notes the end of a wait.
    #[inline]
    pub(super) fn end_wait(self) {
        if self.slot.activity.end_wait() {
            self.job.boot.exit.end_wait();
        }
    }

    /// One round of a wait, between two polls; `round` counts from 0. `what` names the wait in a
    /// report. The caller has begun no operation that it has not initiated.
    pub fn relax(self, round: u32, what: WaitReason) {
        self.pause_at(round, what, None, WaitStage::Idle);
    }

    /// The same for any stage of a call; `peer` is the rank that the wait depends on.
    pub(super) fn pause_at(
        self,
        round: u32,
        what: WaitReason,
        peer: Option<JobRank>,
        stage: WaitStage,
    ) {
        // Most waits end in the first rounds, each of which takes as long as a pause
        // instruction.
        if round >= self.job.waiting.eager() {
            self.relax_longer(round, what, peer, stage);
        }
    }

    #[cold]
    #[inline(never)]
    fn relax_longer(self, round: u32, what: WaitReason, peer: Option<JobRank>, stage: WaitStage) {
        let waiting = &self.job.waiting;
        let eager = waiting.eager();
        let first = round == eager;
        let is_due = round % COUNT_ROUND == COUNT_ROUND - 1 || waiting.job_computes();
        if is_due || first && waiting.is_flagged() {
            self.count_waiters();
        }
        let plan = waiting.plan();
        if round < plan.spin {
            core::hint::spin_loop();
            if first || round.is_multiple_of(64) {
                self.job.leave_if_ending();
                self.slot.activity.note_wait(first, what, peer, stage);
            }
            return;
        }
        self.job.leave_if_ending();
        let (now, rounds_since) = self.slot.activity.note_wait(first, what, peer, stage);
        self.job.boot.exit.note_wait(now);
        let extension = self.endpoint().conduit.shared_host();
        let is_to_yield = round.saturating_sub(plan.spin.max(eager)) < plan.then_yield;
        // A request to exit begins the wait anew: the supervisor looks whether this rank only
        // polls, and sees that soon if its sleeps are short.
        let waited = now.saturating_sub(rounds_since.max(self.job.boot.exit.requested_at()));
        let nap = waiting.nap(waited).filter(|_| plan.then_sleep && !is_to_yield);
        let Some(nap) = nap else {
            self.yield_cpu(now);
            if let Some(extension) = extension {
                self.job.check_health_if_due(extension, now, rounds_since);
            }
            return;
        };
        let Some(extension) = extension else {
            // Nothing interrupts this nap: a message that arrives waits for its end.
            sys::clock::sleep_ns(nap);
            return;
        };
        if fault::on("awake") {
            return;
        }
        // The count was read before the last poll: a message since then has changed it and
        // prevents the sleep.
        let slot = self.slot;
        let seen = slot.doorbell.load(Ordering::Relaxed);
        if seen != 0 {
            extension.sleep(seen, nap);
        }
        self.job.check_health_if_due(extension, now, rounds_since);
        slot.doorbell.store(extension.doorbell(), Ordering::Relaxed);
    }

    /// [`GasnetJob::check_health_if_due`], for a thread that still serves others.
    #[cold]
    fn check_health_while_busy(self) {
        if let Some(extension) = self.endpoint().conduit.shared_host() {
            self.job.check_health_if_due(extension, sys::clock::now_ns(), 0);
        }
    }

    /// Checks whether more threads of this process wait than it has CPUs, and whether yields
    /// may be tried again.
    fn count_waiters(self) {
        let GasnetJob { slots, waiting, .. } = self.job;
        let now = sys::clock::now_ns();
        let live = threads::live(slots.count());
        let waiting_now = live.filter(|&t| slots.of(t).activity.has_waited(now, RECENTLY_NS));
        waiting.look(now, waiting_now.count(), || self.job.boot.exit.others_wait(now, now));
    }
}

impl GasnetJob {
    /// [`GasnetJob::check_health`], if the thread has waited for long, since the time `since`,
    /// and no thread has looked for long.
    fn check_health_if_due(&self, host: &dyn SharedHost, now: u64, since: u64) {
        let last = self.looked.load(Ordering::Relaxed).max(since);
        if now.saturating_sub(last) >= HEALTH_EVERY_NS {
            self.looked.store(now, Ordering::Relaxed);
            self.check_health(host);
        }
    }

    /// Ends the job if shared memory is damaged, a message is lost, or the process that holds what
    /// this thread waits for is dead. If that process is stopped, reports it once.
    #[cold]
    #[inline(never)]
    fn check_health(&self, host: &dyn SharedHost) {
        host.check_memory();
        self.endpoint.conduit.check_lost(self);
        self.subsystem.check_words();
        let Some(rank) = host.blocked_by().map(LocalRank) else { return };
        let Some(pid) = self.boot.exit.pid_of(rank) else { return };
        let Some(rank) = self.placement().job_rank(rank) else { return };
        match sys::process::liveness(pid) {
            Liveness::Alive => {}
            Liveness::Stopped => {
                if !self.stopped_peer_reported.swap(true, Ordering::Relaxed) {
                    report_stopped(rank, pid);
                }
            }
            Liveness::Dead => {
                if !exit::is_ending() {
                    report::note(format_args!(
                        "rank {rank} (pid {pid}) died in the middle of a delivery to this rank"
                    ));
                }
                exit::peer_died()
            }
        }
    }
}

impl WaitingProcess for GasnetJob {
    fn stage_since(&self, since_ns: u64) -> Option<WaitStage> {
        let live = threads::live(self.slots.count());
        let stages = live.map(|t| self.slots.of(t).activity.stage_since(since_ns));
        stages.min().flatten()
    }

    fn incomplete(&self) -> u64 {
        match self.subsystem.completes_operations() {
            true => 0,
            false => self.ops.outstanding(),
        }
    }
}
