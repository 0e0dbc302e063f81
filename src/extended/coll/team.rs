//! A team: processes in an order, with their images, and the barriers of the team.
//!
//! Made by `super`, at `gasnet_coll_init` and by splits; called by `capi`. Invariants: a team
//! lives while a [`TeamRef`] to it exists; a process has all its images in each of its teams. The
//! number of a team is the same in all its members; teams without a common member may share a
//! number.

use super::tuning::{CollTuning, TeamTuning};
use super::view::{TeamImage, TeamView};
use crate::extended::barrier::{self, Barrier, BarrierValue};
use crate::extended::members::TeamMembers;
use crate::rank::{JobRank, TeamRank};
use crate::report;
use crate::runtime::{Ctx, GasnetError, GasnetResult};
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ops::Deref;
use core::sync::atomic::Ordering;
use parking_lot::Mutex;

/// The barrier of all images, on top of that of the processes.
#[derive(Debug)]
struct ImageBarrier {
    /// Images of this process that have notified.
    arrived: usize,
    /// Their merged contributions.
    value: BarrierValue,
    /// How many barriers are over.
    over: u64,
    /// The merged contributions of all images to the last of them.
    outcome: BarrierValue,
}

/// A team in use.
#[derive(Clone, Debug)]
pub enum TeamRef {
    /// All processes; for the life of the job.
    All(&'static Team),
    /// Another team, which ends when it was destroyed and no call uses it.
    Part(Arc<Team>),
}

impl Deref for TeamRef {
    type Target = Team;

    fn deref(&self) -> &Team {
        match self {
            TeamRef::All(team) => team,
            TeamRef::Part(team) => team,
        }
    }
}

/// The barrier of a team's processes.
#[derive(Debug)]
pub(super) enum ProcessBarrier {
    /// That of the job, for a team of all processes.
    OfJob(&'static Barrier),
    OfTeam(Barrier),
}

/// A team.
#[derive(Debug)]
pub struct Team {
    /// Its number; 0 has all processes.
    id: u32,
    by_image: TeamView,
    by_process: TeamView,
    /// Images of each process.
    counts: Box<[u32]>,
    barrier: ProcessBarrier,
    image_barrier: Mutex<ImageBarrier>,
}

impl Team {
    /// The team `id` of `members`, with `counts[rank]` images each.
    pub(super) fn new(
        id: u32,
        members: TeamMembers,
        counts: Vec<u32>,
        barrier: ProcessBarrier,
    ) -> Team {
        let most = counts.iter().copied().max().unwrap_or(1);
        let tuning = Arc::new(TeamTuning::new(CollTuning::from_env(most as usize)));
        let ones = alloc::vec![1; counts.len()];
        Team {
            id,
            by_image: TeamView::new(2 * id, members.clone(), &counts, tuning.clone()),
            by_process: TeamView::new(2 * id + 1, members.clone(), &ones, tuning),
            counts: counts.into(),
            barrier,
            image_barrier: Mutex::new(ImageBarrier {
                arrived: 0,
                value: BarrierValue::Anonymous,
                over: 0,
                outcome: BarrierValue::Anonymous,
            }),
        }
    }

    /// Its number.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// How many processes it has.
    pub fn size(&self) -> u32 {
        self.by_process.members.size()
    }

    /// The process with this rank; `None` if the team has fewer.
    pub fn job_rank(&self, rank: TeamRank) -> Option<JobRank> {
        self.by_process.members.get(rank)
    }

    /// The rank of a process; `None` if it is not a member.
    pub fn team_rank(&self, rank: JobRank) -> Option<TeamRank> {
        self.by_process.members.team_rank(rank)
    }

    /// Which algorithms it uses.
    pub fn tuning(&self) -> &TeamTuning {
        &self.by_image.tuning
    }

    /// Its images, or its processes.
    pub fn images(&self, by_process: bool) -> u32 {
        self.view(by_process).all()
    }

    /// How its images, or its processes, take part.
    pub(super) fn view(&self, by_process: bool) -> &TeamView {
        if by_process { &self.by_process } else { &self.by_image }
    }

    /// Images of a process.
    pub(super) fn images_of(&self, rank: TeamRank) -> u32 {
        self.counts[rank.index()]
    }

    /// Its barrier of processes.
    pub(in crate::extended) fn barrier(&self) -> &Barrier {
        match &self.barrier {
            ProcessBarrier::OfJob(barrier) => barrier,
            ProcessBarrier::OfTeam(barrier) => barrier,
        }
    }

    /// The state of the calling image, if its barriers are those of several images of this
    /// process.
    fn barrier_image(&self, image: Option<usize>) -> Option<&TeamImage> {
        image.filter(|_| self.by_image.images.len() > 1).map(|i| &self.by_image.images[i])
    }

    /// `gasnet_coll_barrier_notify`, by a process or by its image `image`.
    pub(super) fn notify(
        &self,
        ctx: Ctx,
        function: &str,
        id: i32,
        flags: i32,
        image: Option<usize>,
    ) {
        let value = BarrierValue::of(id, flags);
        let Some(image) = self.barrier_image(image) else {
            return self.barrier().enter(ctx, function, value);
        };
        let mut b = self.image_barrier.lock();
        let number = b.over + 1;
        if image.notified.swap(number, Ordering::Relaxed) == number {
            barrier::refuse_in_handler(ctx, function);
            report::fatal(
                format_args!(
                    "{function}(): the barrier before has not been waited for by this image"
                ),
                format_args!(
                    "Call gasnet_coll_barrier_wait(), or try until it succeeds, after each notify."
                ),
            );
        }
        b.value = b.value.merge(value);
        b.arrived += 1;
        if b.arrived == self.by_image.images.len() {
            let all = core::mem::replace(&mut b.value, BarrierValue::Anonymous);
            b.arrived = 0;
            drop(b);
            self.barrier().enter(ctx, function, all);
        }
    }

    /// The merged contributions to the barrier that this image has notified, once all have
    /// arrived. Does not poll.
    fn arrived(&self, image: &TeamImage) -> Option<BarrierValue> {
        let barrier = self.barrier();
        let mut b = self.image_barrier.lock();
        if b.over != image.notified.load(Ordering::Relaxed) {
            if !barrier.is_notified() {
                return None;
            }
            // The first image that sees the end ends it for all images; none of them can notify
            // the next barrier before.
            let all = barrier.arrived()?;
            barrier.end(all);
            b.over += 1;
            b.outcome = all;
        }
        Some(b.outcome)
    }

    fn check_notified(&self, function: &str, image: &TeamImage) {
        if image.notified.load(Ordering::Relaxed) == 0 {
            report::fatal(
                format_args!(
                    "{function}(): no gasnet_coll_barrier_notify() of this image came before it"
                ),
                format_args!(
                    "Call gasnet_coll_barrier_notify() once before each wait or series of tries."
                ),
            )
        }
    }

    /// Lets an image go on after a barrier with these merged contributions.
    fn leave(&self, ctx: Ctx, all: BarrierValue, id: i32, flags: i32) -> GasnetResult {
        self.barrier().serve_sent_before(ctx);
        all.accept(id, flags)
    }

    /// `gasnet_coll_barrier_wait`, by a process or by its image `image`.
    ///
    /// # Errors
    /// [`GasnetError::BarrierMismatch`]
    pub(super) fn wait(
        &self,
        ctx: Ctx,
        function: &str,
        id: i32,
        flags: i32,
        image: Option<usize>,
    ) -> GasnetResult {
        let Some(image) = self.barrier_image(image) else {
            return self.barrier().wait(ctx, function, id, flags);
        };
        self.check_notified(function, image);
        let mut all = self.arrived(image);
        if all.is_none() {
            ctx.wait_until(&"a team's barrier", || {
                all = self.arrived(image);
                all.is_some()
            });
        }
        self.leave(ctx, all.unwrap_or(BarrierValue::Anonymous), id, flags)
    }

    /// `gasnet_coll_barrier_try`, by a process or by its image `image`.
    ///
    /// # Errors
    /// [`GasnetError::NotReady`], [`GasnetError::BarrierMismatch`]
    pub(super) fn try_wait(
        &self,
        ctx: Ctx,
        function: &str,
        id: i32,
        flags: i32,
        image: Option<usize>,
    ) -> GasnetResult {
        let Some(image) = self.barrier_image(image) else {
            return self.barrier().try_wait(ctx, function, id, flags);
        };
        self.check_notified(function, image);
        ctx.poll_of_client();
        let all = self.arrived(image).ok_or(GasnetError::NotReady)?;
        self.leave(ctx, all, id, flags)
    }

    /// `gasnet_coll_barrier_result`: the name of the last barrier; `None` if all were anonymous.
    pub fn result(&self) -> Option<i32> {
        self.barrier().result()
    }
}
