//! The split-phase barrier of the job, and those of teams: notify, wait, try, and the value that all contributed together.
//!
//! Called by `capi` and, for teams, by `coll`. Any thread of a process may notify and any, possibly another, may wait. Where all processes map each
//! other's memory, the barrier is one of shared words; otherwise it is one of active messages. Invariant: a process is
//! either outside a barrier or between its notify and the wait (or successful try) that ends it; calls out of that order
//! end the job.

mod dissemination;
mod shared;
mod value;

use super::{BARRIER_ARRIVAL, Extended, coll};
use crate::conduit::{AmMessage, Outgoing};
use crate::runtime::am::AmToken;
use crate::runtime::{Ctx, GasnetError, GasnetJob, GasnetResult};
use crate::{fault, report};
use alloc::boxed::Box;
use core::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};
use dissemination::{BarrierArrival, BarrierNet, Dissemination};
pub(super) use shared::BYTES as SHARED_BYTES;
use shared::SharedBarrier;
pub(super) use value::BarrierValue;

/// Outside a barrier.
const OUTSIDE: u8 = 0;
/// A thread is in its notify.
const ENTERING: u8 = 1;
/// Notified, not yet waited for.
const NOTIFIED: u8 = 2;

/// The barrier of a job, as one process sees it.
#[derive(Debug)]
pub struct Barrier {
    algorithm: BarrierAlgorithm,
    /// Whose it is; `None` for all processes.
    team: Option<BarrierTeam>,
    /// One of the three constants above. Release when a thread leaves notify or wait, pairs with the Acquire of the
    /// next call, which may come from another thread.
    state: AtomicU8,
    /// Number of the last barrier that was notified, from 1.
    epoch: AtomicU32,
    /// The value of the last barrier that was waited for.
    last: AtomicU64,
}

#[derive(Debug)]
struct BarrierTeam {
    id: u32,
    /// Process numbers by rank.
    members: Box<[u32]>,
}

#[derive(Debug)]
enum BarrierAlgorithm {
    Shared(SharedBarrier),
    Messages(Box<Dissemination>),
}

impl Barrier {
    /// The barrier of a job that is being attached.
    pub(super) fn new(job: &GasnetJob) -> Barrier {
        let algorithm = match job.common_scratch() {
            Some(pages) => BarrierAlgorithm::Shared(SharedBarrier::new(pages, job.mynode)),
            None => {
                BarrierAlgorithm::Messages(Box::new(Dissemination::new(job.nodes, job.mynode)))
            }
        };
        Barrier::new_by(algorithm, None)
    }

    /// The barrier of the team `id`, in which this process is `me`.
    pub(super) fn of_team(id: u32, members: Box<[u32]>, me: u32) -> Barrier {
        let algorithm =
            BarrierAlgorithm::Messages(Box::new(Dissemination::new(members.len() as u32, me)));
        Barrier::new_by(algorithm, Some(BarrierTeam { id, members }))
    }

    fn new_by(algorithm: BarrierAlgorithm, team: Option<BarrierTeam>) -> Barrier {
        Barrier {
            algorithm,
            team,
            state: AtomicU8::new(OUTSIDE),
            epoch: AtomicU32::new(0),
            last: AtomicU64::new(BarrierValue::Anonymous.pack()),
        }
    }

    /// That of the job.
    pub(super) fn of(job: &GasnetJob) -> &Barrier {
        &job.subsystem.get::<Extended>().barrier
    }

    fn messenger<'a>(&'a self, ctx: Ctx, function: &'a str) -> ArrivalSender<'a> {
        ArrivalSender { ctx, function, team: self.team.as_ref() }
    }

    /// Sends what is due; called by polls while a barrier of messages is under way.
    pub(super) fn progress(&self, ctx: Ctx) {
        let BarrierAlgorithm::Messages(d) = &self.algorithm else { return };
        d.progress(self.messenger(ctx, "gasnet_AMPoll"));
    }

    /// Notifies; `function` is the caller.
    pub(super) fn enter(&self, ctx: Ctx, function: &str, value: BarrierValue) {
        if self
            .state
            .compare_exchange(OUTSIDE, ENTERING, Ordering::Acquire, Ordering::Relaxed)
            .is_err()
        {
            report::fatal(
                format_args!("{function}(): the barrier before has not been waited for"),
                format_args!(
                    "Call gasnet_barrier_wait(), or gasnet_barrier_try() until it succeeds, after each notify."
                ),
            );
        }
        let epoch = self.epoch.load(Ordering::Relaxed).wrapping_add(1);
        self.epoch.store(epoch, Ordering::Relaxed);
        if fault::on("skip_barrier") {
            self.last.store(value.pack(), Ordering::Relaxed);
        } else {
            match &self.algorithm {
                BarrierAlgorithm::Shared(board) => {
                    board.notify(epoch, value);
                    ctx.wrote_words(|| board.arrived(epoch).is_some());
                }
                BarrierAlgorithm::Messages(d) => {
                    d.notify(epoch, value, self.messenger(ctx, function))
                }
            }
        }
        self.state.store(NOTIFIED, Ordering::Release);
    }

    /// What all contributed, once all have arrived. Does not poll.
    pub(super) fn arrived(&self) -> Option<BarrierValue> {
        if fault::on("skip_barrier") {
            return Some(BarrierValue::unpack(self.last.load(Ordering::Relaxed)));
        }
        let epoch = self.epoch.load(Ordering::Relaxed);
        match &self.algorithm {
            BarrierAlgorithm::Shared(board) => board.arrived(epoch),
            BarrierAlgorithm::Messages(d) => d.arrived(epoch),
        }
    }

    /// Whether this process is between its notify and its wait.
    pub(super) fn is_notified(&self) -> bool {
        self.state.load(Ordering::Acquire) == NOTIFIED
    }

    /// Ends the job if it is not.
    pub(super) fn check_notified(&self, function: &str) {
        if !self.is_notified() {
            report::fatal(
                format_args!("{function}(): no gasnet_barrier_notify() came before it"),
                format_args!(
                    "Call gasnet_barrier_notify() once before each wait or series of tries."
                ),
            );
        }
    }

    /// Ends the barrier for this process.
    pub(super) fn end(&self, all: BarrierValue) {
        self.last.store(all.pack(), Ordering::Relaxed);
        self.state.store(OUTSIDE, Ordering::Release);
    }

    /// The name of the last barrier that was waited for, `None` if it was anonymous for everybody; after a mismatch
    /// there is no name to give and it is 0.
    pub(super) fn result(&self) -> Option<i32> {
        match BarrierValue::unpack(self.last.load(Ordering::Relaxed)) {
            BarrierValue::Anonymous => None,
            BarrierValue::Named(id) => Some(id),
            BarrierValue::Mismatch => Some(0),
        }
    }
}

/// The way of a barrier's messages, for a caller whose name is `function`.
#[derive(Clone, Copy)]
struct ArrivalSender<'a> {
    ctx: Ctx,
    function: &'a str,
    team: Option<&'a BarrierTeam>,
}

impl BarrierNet for ArrivalSender<'_> {
    fn send(&self, to: u32, arrival: BarrierArrival) {
        let [epoch, round, kind, name] = arrival.to_args();
        let (to, id) = self.team.map_or((to, 0), |t| (t.members[to as usize], t.id));
        let args = [epoch, round, kind, name, id as i32];
        self.ctx.request(self.function, to, &Outgoing::short(BARRIER_ARRIVAL, &args));
    }

    fn want_progress(&self, wanted: bool) {
        self.ctx.job.subsystem.want(wanted);
    }
}

/// The handler of an arrival.
pub(super) fn on_arrival(ctx: Ctx, _token: &AmToken, m: &AmMessage<'_>) {
    let noted = m.args.split_last().and_then(|(&id, rest)| {
        let barrier = match id {
            0 => Barrier::of(ctx.job),
            id => coll::Coll::of(ctx).team(id as u32)?.barrier(ctx.job),
        };
        let BarrierAlgorithm::Messages(d) = &barrier.algorithm else { return None };
        BarrierArrival::from_args(rest).map(|arrival| d.note(arrival))
    });
    match noted {
        Some(()) => {}
        None => report::fatal(
            format_args!("a barrier message of process {} is malformed: {:?}", m.source, m.args),
            format_args!(
                "All processes of a job must use the same version of the library and GASNET_SUPERNODE_MAXSIZE."
            ),
        ),
    }
}

/// `gasnet_barrier_notify`
pub fn notify(ctx: Ctx, id: i32, flags: i32) {
    Barrier::of(ctx.job).enter(ctx, "gasnet_barrier_notify", BarrierValue::of(id, flags));
}

/// `gasnet_barrier_wait`
///
/// # Errors
/// [`GasnetError::BarrierMismatch`]
pub fn wait(ctx: Ctx, id: i32, flags: i32) -> GasnetResult {
    let barrier = Barrier::of(ctx.job);
    barrier.check_notified("gasnet_barrier_wait");
    finish(ctx, barrier, id, flags)
}

/// `gasnet_barrier_try`
///
/// # Errors
/// [`GasnetError::NotReady`], [`GasnetError::BarrierMismatch`]
pub fn try_wait(ctx: Ctx, id: i32, flags: i32) -> GasnetResult {
    let barrier = Barrier::of(ctx.job);
    barrier.check_notified("gasnet_barrier_try");
    ctx.poll();
    barrier.arrived().map_or(Err(GasnetError::NotReady), |all| {
        barrier.end(all);
        all.accept(id, flags)
    })
}

/// `gasnet_barrier`: notify and wait in one.
///
/// # Errors
/// [`GasnetError::BarrierMismatch`]
pub fn both(ctx: Ctx, id: i32, flags: i32) -> GasnetResult {
    let barrier = Barrier::of(ctx.job);
    barrier.enter(ctx, "gasnet_barrier", BarrierValue::of(id, flags));
    finish(ctx, barrier, id, flags)
}

fn finish(ctx: Ctx, barrier: &Barrier, id: i32, flags: i32) -> GasnetResult {
    let mut all = barrier.arrived();
    if all.is_none() {
        let done = || {
            all = barrier.arrived();
            all.is_some()
        };
        match barrier.algorithm {
            BarrierAlgorithm::Shared(_) => ctx.wait_for_words(&"gasnet_barrier_wait", done),
            BarrierAlgorithm::Messages(_) => ctx.wait_until(&"gasnet_barrier_wait", done),
        }
    }
    let all = all.unwrap_or(BarrierValue::Anonymous);
    barrier.end(all);
    all.accept(id, flags)
}

/// `gasnet_barrier_result`: the name of the last barrier that was waited for, `None` if it was anonymous for everybody;
/// after a mismatch there is no name to give and it is 0.
pub fn result(ctx: Ctx) -> Option<i32> {
    Barrier::of(ctx.job).result()
}

/// What the tests of both ways share.
#[cfg(test)]
mod harness {
    use super::BarrierValue;
    use crate::extended::random::SeededRandom;
    use alloc::vec;

    /// Runs `n` processes through barriers, each step by a process chosen at random: nobody gets through before all
    /// have arrived, all get through in the end, all see the same value, and some are a barrier ahead of others.
    pub(super) fn split_phase(
        n: u32,
        notify: impl Fn(u32, u32, BarrierValue),
        arrived: impl Fn(u32, u32) -> Option<BarrierValue>,
    ) {
        const BARRIERS: u32 = 12;
        let mut random = SeededRandom::new(u64::from(n) * 977 + 1);
        let value = |epoch: u32, rank: u32| match (epoch % 4, rank % 3) {
            (0, _) => BarrierValue::Named(epoch as i32),
            (1, _) => BarrierValue::Anonymous,
            (2, 0) => BarrierValue::Named(-1),
            (2, _) => BarrierValue::Anonymous,
            (_, _) if rank == n - 1 => BarrierValue::Mismatch,
            (_, _) => BarrierValue::Named(3),
        };
        let expected = |epoch| {
            (0..n).fold(BarrierValue::Anonymous, |all, rank| all.merge(value(epoch, rank)))
        };
        // By rank: the last barrier notified, and whether it is still to be waited for.
        let mut at = vec![(0u32, false); n as usize];
        let mut ahead = false;
        let mut steps = 0u64;
        while at.iter().any(|&p| p != (BARRIERS, false)) {
            steps += 1;
            assert!(steps < 20_000_000, "somebody is stuck");
            let rank = random.below(n as usize) as u32;
            let (epoch, waiting) = at[rank as usize];
            if waiting {
                if let Some(all) = arrived(rank, epoch) {
                    assert!(
                        at.iter().all(|&(e, _)| e >= epoch),
                        "got through before all had arrived"
                    );
                    assert_eq!(all, expected(epoch));
                    at[rank as usize].1 = false;
                }
            } else if epoch < BARRIERS {
                notify(rank, epoch + 1, value(epoch + 1, rank));
                at[rank as usize] = (epoch + 1, true);
                ahead |= at.iter().any(|&(e, waiting)| e == epoch && waiting);
            }
        }
        assert!(ahead || n == 1);
    }
}
