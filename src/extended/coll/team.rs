//! Teams: processes in an order, with their images; how they are made, and their barriers.
//!
//! Called by `super` and, for its messages, by the barrier. A team is made once and lives as long as the job. A process has
//! all its images in each of its teams. The number of a team is the same in all its members; teams without a common
//! member may have the same.

use super::choice::CollTuning;
use super::engine::CollStatus;
use super::{Coll, CollOperation, CollRequest};
use crate::extended::barrier::{Barrier, BarrierValue};
use crate::report;
use crate::runtime::{Ctx, GasnetError, GasnetJob, GasnetResult};
use alloc::boxed::Box;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, Ordering};
use parking_lot::Mutex;

/// An image of this process, in a team.
#[derive(Debug, Default)]
pub(super) struct TeamImage {
    calls: AtomicU32,
    /// The collectives whose handle will be that of a later call.
    pub(super) aggregate: Mutex<Vec<Arc<CollStatus>>>,
    /// Number of the barrier of images that it has notified last.
    notified: AtomicU32,
}

impl TeamImage {
    /// The number of its next collective.
    pub(super) fn next(&self) -> u32 {
        self.calls.fetch_add(1, Ordering::Relaxed)
    }
}

/// What takes part in a team's collectives: its images, or, for calls with `GASNET_COLL_NO_IMAGES`, its processes.
#[derive(Debug)]
pub(super) struct TeamView {
    /// Names it in messages.
    pub(super) context: u32,
    /// Process numbers by rank.
    pub(super) members: Box<[u32]>,
    /// Our rank.
    pub(super) me: usize,
    /// Image number of the first image of each process, and the number of all.
    pub(super) first: Box<[u32]>,
    /// Those of this process.
    pub(super) images: Box<[TeamImage]>,
    pub(super) tuning: Arc<Mutex<CollTuning>>,
}

impl TeamView {
    fn new(
        context: u32,
        members: Box<[u32]>,
        me: usize,
        counts: &[u32],
        tuning: Arc<Mutex<CollTuning>>,
    ) -> TeamView {
        let mut first = alloc::vec![0];
        for count in counts {
            first.push(first[first.len() - 1] + count);
        }
        let images = (0..counts[me]).map(|_| TeamImage::default()).collect();
        TeamView { context, members, me, first: first.into(), images, tuning }
    }

    /// Images of all processes.
    pub(super) fn all(&self) -> u32 {
        self.first[self.members.len()]
    }
}

/// The barrier of all images, on top of that of the processes.
#[derive(Debug)]
struct ImageBarrier {
    /// Images of this process that have notified.
    arrived: usize,
    /// What they contributed.
    value: BarrierValue,
    /// Barriers that are over.
    over: u32,
    /// What everybody contributed to the last.
    outcome: BarrierValue,
}

/// A team.
#[derive(Debug)]
pub struct Team {
    /// Its number; 0 has all processes.
    pub(super) id: u32,
    pub(super) by_image: TeamView,
    pub(super) by_process: TeamView,
    /// Images of each process.
    counts: Box<[u32]>,
    /// `None` for the team of all processes, whose barrier is that of the job.
    barrier: Option<Barrier>,
    image_barrier: Mutex<ImageBarrier>,
}

impl Team {
    /// The team `id` of `members`, with so many images each.
    pub(super) fn new(job: &GasnetJob, id: u32, members: Vec<u32>, counts: Vec<u32>) -> Team {
        let me = members
            .iter()
            .position(|&m| m == job.mynode)
            .expect("teams are made by their members");
        let most = counts.iter().copied().max().unwrap_or(1);
        let tuning = Arc::new(Mutex::new(CollTuning::from_env(most as usize)));
        let ones = alloc::vec![1; members.len()];
        let members: Box<[u32]> = members.into();
        Team {
            id,
            by_image: TeamView::new(2 * id, members.clone(), me, &counts, tuning.clone()),
            by_process: TeamView::new(2 * id + 1, members.clone(), me, &ones, tuning),
            counts: counts.into(),
            barrier: (id != 0).then(|| Barrier::of_team(id, members, me as u32)),
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
        self.by_process.members.len() as u32
    }

    /// The process with this rank.
    pub fn node(&self, rank: u32) -> Option<u32> {
        self.by_process.members.get(rank as usize).copied()
    }

    /// The rank of this process.
    pub fn rank(&self, node: u32) -> Option<u32> {
        self.by_process.members.iter().position(|&m| m == node).map(|r| r as u32)
    }

    /// Which algorithms it uses.
    pub fn tuning(&self) -> &Mutex<CollTuning> {
        &self.by_image.tuning
    }

    /// Its barrier of processes.
    pub(in crate::extended) fn barrier(&self, job: &'static GasnetJob) -> &Barrier {
        self.barrier.as_ref().unwrap_or_else(|| Barrier::of(job))
    }

    /// Sends what the barrier has to send.
    pub(super) fn progress(&self, ctx: Ctx) {
        if let Some(barrier) = &self.barrier {
            barrier.progress(ctx);
        }
    }

    /// The image that calls, if this barrier is one of several images of this process.
    fn barrier_image(
        &'static self,
        ctx: Ctx,
        function: &str,
        images: bool,
    ) -> Option<&'static TeamImage> {
        (images && self.by_image.images.len() > 1)
            .then(|| &self.by_image.images[Coll::of(ctx).image(ctx, function, &self.by_image)])
    }

    /// `gasnet_coll_barrier_notify`
    pub fn notify(&'static self, ctx: Ctx, function: &str, id: i32, flags: i32, images: bool) {
        let value = BarrierValue::of(id, flags);
        let Some(image) = self.barrier_image(ctx, function, images) else {
            return self.barrier(ctx.job).enter(ctx, function, value);
        };
        let mut b = self.image_barrier.lock();
        let number = b.over.wrapping_add(1);
        if image.notified.swap(number, Ordering::Relaxed) == number {
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
            self.barrier(ctx.job).enter(ctx, function, all);
        }
    }

    /// What everybody contributed to the barrier that this caller has notified, once all have. Does not poll.
    fn arrived(&self, ctx: Ctx, image: Option<&TeamImage>) -> Option<BarrierValue> {
        let barrier = self.barrier(ctx.job);
        let Some(image) = image else {
            return barrier.arrived().inspect(|&all| barrier.end(all));
        };
        let mut b = self.image_barrier.lock();
        if b.over != image.notified.load(Ordering::Relaxed) {
            if !barrier.is_notified() {
                return None;
            }
            // The first image that sees it leaves for all; no image can notify the next barrier before.
            let all = barrier.arrived()?;
            barrier.end(all);
            b.over = b.over.wrapping_add(1);
            b.outcome = all;
        }
        Some(b.outcome)
    }

    fn check_notified(&self, ctx: Ctx, function: &str, image: Option<&TeamImage>) {
        match image {
            None => self.barrier(ctx.job).check_notified(function),
            Some(image) if image.notified.load(Ordering::Relaxed) == 0 => report::fatal(
                format_args!(
                    "{function}(): no gasnet_coll_barrier_notify() of this image came before it"
                ),
                format_args!(
                    "Call gasnet_coll_barrier_notify() once before each wait or series of tries."
                ),
            ),
            Some(_) => {}
        }
    }

    /// `gasnet_coll_barrier_wait`
    ///
    /// # Errors
    /// [`GasnetError::BarrierMismatch`]
    pub fn wait(
        &'static self,
        ctx: Ctx,
        function: &str,
        id: i32,
        flags: i32,
        images: bool,
    ) -> GasnetResult {
        let image = self.barrier_image(ctx, function, images);
        self.check_notified(ctx, function, image);
        let mut all = self.arrived(ctx, image);
        if all.is_none() {
            ctx.wait_until(&"a team's barrier", || {
                all = self.arrived(ctx, image);
                all.is_some()
            });
        }
        all.unwrap_or(BarrierValue::Anonymous).accept(id, flags)
    }

    /// `gasnet_coll_barrier_try`
    ///
    /// # Errors
    /// [`GasnetError::NotReady`], [`GasnetError::BarrierMismatch`]
    pub fn try_wait(
        &'static self,
        ctx: Ctx,
        function: &str,
        id: i32,
        flags: i32,
        images: bool,
    ) -> GasnetResult {
        let image = self.barrier_image(ctx, function, images);
        self.check_notified(ctx, function, image);
        ctx.poll();
        self.arrived(ctx, image).map_or(Err(GasnetError::NotReady), |all| all.accept(id, flags))
    }

    /// `gasnet_coll_barrier_result`: the name of the last barrier, `None` if it had none.
    pub fn result(&self, ctx: Ctx) -> Option<i32> {
        self.barrier(ctx.job).result()
    }

    /// `gasnet_coll_team_split`: the team of those who pass our color, in the order of `relrank`. Collective.
    pub fn split(
        &'static self,
        ctx: Ctx,
        function: &'static str,
        color: u32,
        relrank: u32,
    ) -> &'static Team {
        let coll = Coll::of(ctx);
        let view = &self.by_image;
        let mine = [color, relrank, coll.next_team()];
        let mut all: Vec<[u32; 3]> = alloc::vec![[0; 3]; view.all() as usize];
        let request = CollRequest::new(CollOperation::GatherAll, size_of_val(&mine));
        let places = super::ImageBuffers {
            dst: all.as_mut_ptr().cast(),
            src: mine.as_ptr().cast_mut().cast(),
        };
        // SAFETY: both are ours until this returns; the one has room for the record of every image.
        unsafe { coll.blocking(ctx, function, view, request, places) };
        let id = all.iter().map(|r| r[2]).max().unwrap_or(1);
        let mut chosen: Vec<(u32, usize)> = (0..view.members.len())
            .map(|rank| (all[view.first[rank] as usize], rank))
            .filter(|(record, _)| record[0] == color)
            .map(|(record, rank)| (record[1], rank))
            .collect();
        chosen.sort_unstable();
        let members = chosen.iter().map(|&(_, rank)| view.members[rank]).collect();
        let counts = chosen.iter().map(|&(_, rank)| self.counts[rank]).collect();
        let team = coll.add_team(ctx.job, id, members, counts);
        // Nobody's messages about the new team may come before it is there.
        let meet = CollRequest { in_allsync: true, ..CollRequest::new(CollOperation::Barrier, 0) };
        let nowhere =
            super::ImageBuffers { dst: core::ptr::null_mut(), src: core::ptr::null_mut() };
        // SAFETY: no memory is named.
        unsafe { coll.blocking(ctx, function, view, meet, nowhere) };
        team
    }
}
