//! The split-phase barrier of the job and those of teams: notify, wait, try, and the merged
//! value.
//!
//! Called by `capi` and, for teams, by `coll`. Any thread of a process may notify and any thread
//! may wait. Invariant: a process is outside a barrier, or between its notify and the wait or
//! successful try that ends it. A call out of that order ends the job.
//!
//! Where all ranks of the job map each other's memory, its barrier uses shared words (`shared`);
//! the team of all ranks has the same one. All others use active messages (`dissemination`).

mod dissemination;
mod shared;
mod value;

use super::handler_ids::BARRIER_ARRIVAL;
use super::members::TeamMembers;
use super::messages;
use super::scratch::ScratchPages;
use crate::conduit::Outgoing;
use crate::rank::TeamRank;
use crate::runtime::client::ThreadMode;
use crate::runtime::{Ctx, GasnetError, GasnetJob, GasnetResult};
use crate::{fault, report};
use alloc::boxed::Box;
use alloc::sync::Arc;
use core::sync::atomic::{AtomicU8, AtomicU32, AtomicU64, Ordering};
use dissemination::{BarrierArrival, BarrierNet, Dissemination};
use shared::SharedBarrier;
use value::ANONYMOUS;
pub(super) use value::BarrierValue;

/// Outside a barrier.
const OUTSIDE: u8 = 0;
/// A thread is in its notify.
const ENTERING: u8 = 1;
/// Notified, not yet waited for.
const NOTIFIED: u8 = 2;

/// A barrier, as one process sees it.
#[derive(Debug)]
pub struct Barrier {
    algorithm: BarrierAlgorithm,
    /// Number of the team; 0 is the job.
    team: u32,
    /// The members of the team; `None` for the job.
    members: Option<TeamMembers>,
    /// Of the barriers of teams of this process, how many are between notify and completion.
    under_way: Option<Arc<AtomicU32>>,
    /// One of the three constants above. Release when a thread returns from notify or wait,
    /// pairs with the Acquire of the next call, which may come from another thread.
    state: AtomicU8,
    /// Number of the last barrier that was notified, from 1.
    epoch: AtomicU32,
    /// The value of the last barrier that was waited for.
    last: AtomicU64,
}

#[derive(Debug)]
enum BarrierAlgorithm {
    Shared(SharedBarrier),
    Messages(Box<Dissemination>),
}

impl Barrier {
    /// The barrier of a job; `pages` if its ranks share memory.
    pub(super) fn of_job(job: &GasnetJob, pages: Option<&ScratchPages>) -> Barrier {
        let algorithm = match pages {
            Some(pages) => BarrierAlgorithm::Shared(SharedBarrier::new(pages.clone())),
            None => by_messages(job.team.size(), job.team.me()),
        };
        Barrier::new(algorithm, 0, None, None)
    }

    /// The barrier of the team with this number, from 1. It is counted in `under_way` from its
    /// notify until all have arrived; polls need not call [`Barrier::progress`] at other times.
    pub(super) fn of_team(
        number: u32,
        members: TeamMembers,
        under_way: Arc<AtomicU32>,
    ) -> Barrier {
        let algorithm = by_messages(members.size(), members.me());
        Barrier::new(algorithm, number, Some(members), Some(under_way))
    }

    fn new(
        algorithm: BarrierAlgorithm,
        team: u32,
        members: Option<TeamMembers>,
        under_way: Option<Arc<AtomicU32>>,
    ) -> Barrier {
        Barrier {
            algorithm,
            team,
            members,
            under_way,
            state: AtomicU8::new(OUTSIDE),
            epoch: AtomicU32::new(0),
            last: AtomicU64::new(BarrierValue::Anonymous.pack()),
        }
    }

    /// Sends the messages that are due; called by polls while a barrier of messages is under way.
    pub(super) fn progress(&self, ctx: Ctx) {
        let BarrierAlgorithm::Messages(d) = &self.algorithm else { return };
        d.progress(ArrivalSender { ctx, function: "gasnet_AMPoll", barrier: self });
    }

    /// Notifies; `function` is the caller.
    pub(super) fn enter(&self, ctx: Ctx, function: &str, value: BarrierValue) {
        if self
            .state
            .compare_exchange(OUTSIDE, ENTERING, Ordering::Acquire, Ordering::Relaxed)
            .is_err()
        {
            refuse(ctx, function);
        }
        let epoch = self.epoch.load(Ordering::Relaxed).wrapping_add(1);
        self.epoch.store(epoch, Ordering::Relaxed);
        if fault::on("skip_barrier") {
            self.last.store(value.pack(), Ordering::Relaxed);
        } else {
            match &self.algorithm {
                BarrierAlgorithm::Shared(shared) => {
                    shared.notify(epoch, value);
                    ctx.wrote_words(|| shared.arrived(epoch).is_some());
                }
                BarrierAlgorithm::Messages(d) => {
                    d.notify(epoch, value, ArrivalSender { ctx, function, barrier: self });
                }
            }
        }
        self.state.store(NOTIFIED, Ordering::Release);
    }

    /// The merged contributions, once all ranks have arrived. Does not poll.
    pub(super) fn arrived(&self) -> Option<BarrierValue> {
        if fault::on("skip_barrier") {
            return Some(BarrierValue::unpack(self.last.load(Ordering::Relaxed)));
        }
        let epoch = self.epoch.load(Ordering::Relaxed);
        match &self.algorithm {
            BarrierAlgorithm::Shared(shared) => shared.arrived(epoch),
            BarrierAlgorithm::Messages(d) => d.arrived(epoch),
        }
    }

    /// Ends the job if a word of the barrier was overwritten. Called by threads that have waited
    /// for long, whatever for: a rank that has passed a barrier may have left others there.
    pub(super) fn check_words(&self) {
        let BarrierAlgorithm::Shared(shared) = &self.algorithm else { return };
        let now = || (self.state.load(Ordering::Acquire), self.epoch.load(Ordering::Acquire));
        let (state, epoch) = now();
        if state == ENTERING || fault::on("skip_barrier") {
            return;
        }
        let damage = shared.damage(epoch);
        // The words were read with Acquire: if they are of a later barrier, so is the epoch now.
        if let Some(damage) = damage.filter(|_| now() == (state, epoch)) {
            report::damaged(format_args!("the shared memory of the barrier is damaged: {damage}"));
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

    /// Ends the barrier for this process. [`Barrier::serve_sent_before`] follows, outside locks.
    pub(super) fn end(&self, all: BarrierValue) {
        self.last.store(all.pack(), Ordering::Relaxed);
        self.state.store(OUTSIDE, Ordering::Release);
    }

    /// Records an arrival, which came as these arguments of a message; `None` if they are
    /// malformed.
    pub(super) fn note(&self, args: &[i32]) -> Option<()> {
        let BarrierAlgorithm::Messages(d) = &self.algorithm else { return None };
        BarrierArrival::from_args(args).map(|arrival| d.note(arrival))
    }

    /// `gasnet_barrier_notify`
    pub fn notify(&self, ctx: Ctx, id: i32, flags: i32) {
        self.enter(ctx, "gasnet_barrier_notify", BarrierValue::of(id, flags));
    }

    /// `gasnet_barrier_wait`; `function` is the caller.
    ///
    /// # Errors
    /// [`GasnetError::BarrierMismatch`]
    pub fn wait(&self, ctx: Ctx, function: &str, id: i32, flags: i32) -> GasnetResult {
        self.check_notified(function);
        self.finish(ctx, id, flags)
    }

    /// `gasnet_barrier_try`; `function` is the caller.
    ///
    /// # Errors
    /// [`GasnetError::NotReady`], [`GasnetError::BarrierMismatch`]
    pub fn try_wait(&self, ctx: Ctx, function: &str, id: i32, flags: i32) -> GasnetResult {
        self.check_notified(function);
        ctx.poll_of_client();
        self.arrived().map_or(Err(GasnetError::NotReady), |all| self.leave(ctx, all, id, flags))
    }

    /// `gasnet_barrier`: notify and wait in one.
    ///
    /// # Errors
    /// [`GasnetError::BarrierMismatch`]
    pub fn both(&self, ctx: Ctx, id: i32, flags: i32) -> GasnetResult {
        self.enter(ctx, "gasnet_barrier", BarrierValue::of(id, flags));
        self.finish(ctx, id, flags)
    }

    /// Passes two barriers, if they take messages: whether they do. A rank that leaves the second
    /// knows that all ranks have left the first. So all messages of the first have arrived: their
    /// ranks are connected.
    pub(super) fn connect(&self, ctx: Ctx) -> bool {
        let takes_messages = matches!(self.algorithm, BarrierAlgorithm::Messages(_));
        if takes_messages {
            for _ in 0..2 {
                // Anonymous in all ranks, so never a mismatch.
                let _ = self.both(ctx, 0, ANONYMOUS);
            }
        }
        takes_messages
    }

    fn finish(&self, ctx: Ctx, id: i32, flags: i32) -> GasnetResult {
        let mut all = self.arrived();
        if all.is_none() {
            let done = || {
                all = self.arrived();
                all.is_some()
            };
            let what =
                if self.members.is_some() { &"a team's barrier" } else { &"gasnet_barrier_wait" };
            match self.algorithm {
                BarrierAlgorithm::Shared(_) => ctx.wait_for_words(what, done),
                BarrierAlgorithm::Messages(_) => ctx.wait_until(what, done),
            }
        }
        self.leave(ctx, all.unwrap_or(BarrierValue::Anonymous), id, flags)
    }

    /// Ends the barrier with these merged contributions, for a call that gave `id` and `flags`.
    #[inline]
    fn leave(&self, ctx: Ctx, all: BarrierValue, id: i32, flags: i32) -> GasnetResult {
        self.end(all);
        self.serve_sent_before(ctx);
        all.accept(id, flags)
    }

    /// Runs the handlers of the active messages that ranks sent before they notified. The barrier
    /// of messages comes behind them anyway. The specification does not demand this, but
    /// clients rely on it.
    #[inline]
    pub(super) fn serve_sent_before(&self, ctx: Ctx) {
        if matches!(self.algorithm, BarrierAlgorithm::Shared(_)) && !fault::on("leave_messages") {
            ctx.serve_arrived();
        }
    }

    /// `gasnet_barrier_result`: the name of the last barrier that was waited for; `None` if all
    /// ranks were anonymous, 0 after a mismatch.
    pub fn result(&self) -> Option<i32> {
        match BarrierValue::unpack(self.last.load(Ordering::Relaxed)) {
            BarrierValue::Anonymous => None,
            BarrierValue::Named(id) => Some(id),
            BarrierValue::Mismatch => Some(0),
        }
    }
}

/// Ends the job if a call that cannot notify is made in a handler: that is why.
pub(super) fn refuse_in_handler(ctx: Ctx, function: &str) {
    if ctx.in_handler() {
        report::fatal(
            format_args!("{function}() was called in an active message handler"),
            format_args!("Let the handler return, and call the barrier from outside handlers."),
        );
    }
}

/// Ends the job: a call notifies while the barrier before is under way.
#[cold]
fn refuse(ctx: Ctx, function: &str) -> ! {
    refuse_in_handler(ctx, function);
    report::fatal(
        format_args!("{function}(): the barrier before has not been waited for"),
        match ctx.client().threads {
            ThreadMode::Seq => format_args!(
                "Call gasnet_barrier_wait(), or gasnet_barrier_try() until it succeeds, after each notify."
            ),
            ThreadMode::Parsync | ThreadMode::Par => format_args!(
                "Call gasnet_barrier_wait(), or gasnet_barrier_try() until it succeeds, after each notify. Perhaps another thread of this rank is in the barrier: let one thread call it."
            ),
        },
    )
}

fn by_messages(ranks: u32, me: TeamRank) -> BarrierAlgorithm {
    BarrierAlgorithm::Messages(Box::new(Dissemination::new(ranks, me)))
}

/// Sends the messages of a barrier for a caller whose name is `function`.
#[derive(Clone, Copy)]
struct ArrivalSender<'a> {
    ctx: Ctx,
    function: &'a str,
    barrier: &'a Barrier,
}

impl BarrierNet for ArrivalSender<'_> {
    fn send(&self, to: TeamRank, arrival: BarrierArrival) {
        let [epoch, round, kind, name] = arrival.to_args();
        let to = match &self.barrier.members {
            Some(members) => members.job_rank(to),
            None => self.ctx.team().job_rank(to),
        };
        let mut args = [epoch, round, kind, name, self.barrier.team as i32, 0];
        args[5] = messages::checksum(&args[..5]);
        self.ctx.request(self.function, to, &Outgoing::short(BARRIER_ARRIVAL, &args));
    }

    fn want_progress(&self, wanted: bool) {
        self.ctx.job.subsystem.want(wanted);
        if let Some(under_way) = &self.barrier.under_way {
            if wanted {
                under_way.fetch_add(1, Ordering::Relaxed);
            } else {
                under_way.fetch_sub(1, Ordering::Relaxed);
            }
        }
    }
}

/// What the tests of both algorithms share.
#[cfg(test)]
mod harness {
    use super::BarrierValue;
    use crate::extended::random::SeededRandom;
    use alloc::vec;

    /// Runs `n` ranks through barriers, each step by a rank chosen at random. No rank gets through
    /// before all have arrived. All get through in the end and see the same value. Some are a
    /// barrier ahead of others.
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
            assert!(steps < 20_000_000, "a rank is stuck");
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
