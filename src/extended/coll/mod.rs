//! The collectives: teams, data movement, reductions and scans, blocking and not.
//!
//! Called by `capi` with checked arguments. Invariant: a collective is identified by the context
//! of its team's view and by its sequence number. That counts the collectives that each image has
//! called there before.
//!
//! ```text
//!   call of an image   records its buffers                                        engine
//!   last image's call  makes the plan        choice, movement, all_to_all, compute, tree
//!   polls              carry the plan out when messages arrive             engine, inbox
//!   handlers           record arrivals                                             inbox
//! ```
//!
//! - A plan is a list of rounds of local steps and messages; a round starts when all messages of
//!   the round before are done. Scratch memory belongs to the plan and is freed with it.
//! - A plan waits for the whole team only with `IN_ALLSYNC` or `OUT_ALLSYNC`: then rounds of
//!   dissemination come before or after. `IN_NOSYNC` is treated as `IN_MYSYNC`, and `OUT_NOSYNC`
//!   as `OUT_MYSYNC` but in `direct`. There, with both and `SINGLE`, no rank meets another.
//! - A process stores no large message for others: its receiver first says where it goes. It
//!   stores small ones that arrive before its call, without a limit.
//! - Ranks that map each other's memory exchange short messages through `rings`.
//! - Movements and reductions copy from segment to segment (`direct`) among up to 64 ranks that
//!   map each other's segments, if the tuning has its defaults. Those of the team of all images
//!   and of the team of all ranks of GASNet-EX are two streams, each in one order.
//! - Without `IN_ALLSYNC`, a small source passes through a slot if it lies in no segment, or if
//!   its rank would wait for the readers otherwise. Other sources must lie in segments, but blocks
//!   for the root go to it as messages otherwise (`rest`).
//! - A *process* is a rank of a team, with its images.
//!
//! | file | what it owns |
//! |---|---|
//! | `teams` | the teams of this process: how their members make and destroy them |
//! | `team`, `view` | a team; a team as its collectives see it: images, or ranks |
//! | `request`, [`flags`] | what a client requests; which flags are legal together |
//! | `choice`, [`tuning`] | the algorithm of a collective; what the choice depends on |
//! | `layout`, `plan` | images and blocks as plans see them; a plan |
//! | [`operators`] | reductions of numbers |
//! | `movement`, `all_to_all`, `compute` | the plans: rooted movements; gather_all, exchange; reduce, scan |
//! | `block_cyclic`, `arrays` | arrays that are dealt out to the images; the plans of their reduce and scan |
//! | [`tree`] | the trees of rooted collectives |
//! | `engine`, `inbox` | carrying plans out; messages that have arrived or are expected |
//! | `rings` | short messages in shared memory |
//! | `direct`, `shape` | movements in shared memory; between which ranks data move in one |
//! | `counts`, `roles` | how far each rank is in them; which ranks wait for which |
//! | `combination` | the reductions of `direct` |
//! | `movements`, `rest` | movements that no call awaits; what of one is left to messages |
//! | `agreement` | whether all processes pass the same, with debug checks |
//! | [`search`], [`files`] | the search for the fastest tree; files of choices and profiles |

mod agreement;
mod all_to_all;
mod arrays;
mod block_cyclic;
mod choice;
mod combination;
mod compute;
mod counts;
mod direct;
mod engine;
pub mod files;
pub mod flags;
mod inbox;
mod layout;
mod movement;
mod movements;
pub mod operators;
mod plan;
mod request;
mod rest;
mod rings;
mod roles;
pub mod search;
mod shape;
mod team;
mod teams;
#[cfg(test)]
mod tests;
pub mod tree;
pub mod tuning;
mod view;

use super::barrier::Barrier;
use super::members::TeamMembers;
use super::scratch::ScratchPages;
use crate::client_memory::{Dst, Src};
use crate::conduit::AmMessage;
use crate::limits::MAX_THREADS;
use crate::rank::JobRank;
use crate::runtime::activity::WaitReason;
use crate::runtime::ops::OpHandle;
use crate::runtime::{Ctx, GasnetResult, checks};
use crate::{env, fault, report};
use agreement::CollAgreement;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
pub use block_cyclic::BlockCyclic;
use core::array;
use core::ffi::c_int;
use core::fmt::Write;
use core::sync::atomic::{AtomicU32, Ordering};
use direct::DirectMovement;
use engine::CollEngine;
use inbox::CollMessage;
use once_cell::race::OnceBox;
use parking_lot::{Mutex, RwLock};
pub use request::{
    CollBuffers, CollOperation, CollRequest, InPlaceFn, ReduceFn, ReduceOperator, Reduction,
};
use request::{CollId, CollMemory, CollStatus};
use rings::ShortRings;
use roles::MovementRoles;
use team::ProcessBarrier;
pub use team::{Team, TeamRef};
use teams::TeamTable;
use view::TeamView;

/// The number of the team of all processes with one image each: none that a split chooses.
const RANKS: u32 = 1 << 30;
/// No image has this number.
const NO_IMAGE: u32 = u32::MAX;

/// How often which blocks were moved: by team, operation and bytes.
type BlockProfile = BTreeMap<(u32, CollOperation, usize), u64>;

/// The collectives of a process.
#[derive(Debug)]
pub struct Coll {
    engine: CollEngine,
    agreement: CollAgreement,
    /// The barrier of the job.
    barrier: &'static Barrier,
    /// The team of all processes; set by `gasnet_coll_init`.
    world: OnceBox<TeamRef>,
    /// Whether it has the choices of the tuning file; held while an image reads that.
    has_tuning: Mutex<bool>,
    /// The team of all processes, each with one image, for clients of GASNet-EX.
    ranks: OnceBox<TeamRef>,
    /// The other teams that this process is in.
    teams: TeamTable,
    functions: RwLock<Vec<(ReduceFn, c_int)>>,
    /// By thread: the number, among those of this process, of the image that it called
    /// `gasnet_coll_init` for.
    image_of: Box<[AtomicU32]>,
    /// The threads that have called `gasnet_coll_init`, by the same number.
    threads: Mutex<BTreeMap<u32, (u16, u32)>>,
    profile: Option<Mutex<BlockProfile>>,
}

/// A call of one image.
#[derive(Debug)]
pub struct CollCall {
    /// The caller, as the client knows it.
    pub function: WaitReason,
    /// The team that takes part.
    pub team: TeamRef,
    /// Whether one call stands for all images of a process (`GASNET_COLL_NO_IMAGES`).
    pub by_process: bool,
    /// What to do.
    pub request: CollRequest,
    /// The memory of the image.
    pub buffers: CollBuffers,
}

impl CollCall {
    fn view(&self) -> &TeamView {
        self.team.view(self.by_process)
    }
}

impl Coll {
    /// For a job with this barrier, and these pages if its ranks share memory.
    pub(super) fn new(barrier: &'static Barrier, pages: Option<&ScratchPages>) -> Coll {
        Coll {
            engine: CollEngine::new(
                pages.and_then(ShortRings::new),
                array::from_fn(|stream| DirectMovement::new(pages?, stream)),
            ),
            agreement: CollAgreement::default(),
            barrier,
            world: OnceBox::new(),
            has_tuning: Mutex::default(),
            ranks: OnceBox::new(),
            teams: TeamTable::default(),
            functions: RwLock::default(),
            image_of: (0..MAX_THREADS).map(|_| AtomicU32::new(NO_IMAGE)).collect(),
            threads: Mutex::default(),
            profile: env::COLL_ENABLE_PROFILE.get().then(Mutex::default),
        }
    }

    /// Ends the job if shared words were overwritten.
    pub(super) fn check_words(&self) {
        self.engine.check_words();
    }

    /// Whether a collective of this process is incomplete.
    pub(super) fn is_active(&self) -> bool {
        self.engine.is_active()
    }

    /// Advances collectives and the barriers of teams; called by polls while any is in progress.
    pub(super) fn progress(&self, ctx: Ctx) {
        if self.engine.progress(ctx) && !fault::on("leave_messages") {
            ctx.serve_arrived_in_poll();
        }
        self.teams.progress(ctx);
    }

    /// The handler of a small message.
    pub(super) fn on_small(&self, m: &AmMessage<'_>) {
        self.engine.inbox.on_small(&CollMessage::of(m));
    }

    /// The handler of a receiver's notice.
    pub(super) fn on_ready(&self, m: &AmMessage<'_>) {
        self.engine.inbox.on_ready(&CollMessage::of(m));
    }

    /// The handler of a piece of a large message.
    pub(super) fn on_piece(&self, m: &AmMessage<'_>) {
        self.engine.inbox.on_piece(&CollMessage::of(m));
    }

    /// The handler of what a process says of its call.
    pub(super) fn on_called(&self, m: &AmMessage<'_>) {
        self.agreement.on_called(m);
    }

    /// The team of all processes, which the first caller makes.
    fn world(&self, ctx: Ctx, counts: &[u32]) -> &TeamRef {
        self.world.get_or_init(|| {
            let ranks = ctx.team().ranks().collect();
            let members = TeamMembers::new(ranks, ctx.endpoint().rank);
            let barrier = ProcessBarrier::OfJob(self.barrier);
            let team = Team::new(0, members, counts.to_vec(), barrier);
            Box::new(TeamRef::All(Box::leak(Box::new(team))))
        })
    }

    /// `gasnet_coll_init`, for the calling thread: `counts` has the images of each process,
    /// `mine` is the caller's image.
    ///
    /// Ends the job if the numbers do not fit, if they differ from those of an earlier call, or if
    /// another thread has the image.
    pub fn init(&self, ctx: Ctx, counts: &[u32], mine: u32, functions: &[(ReduceFn, c_int)]) {
        let world = self.world(ctx, counts);
        // The other images of this process wait here until it has the choices of the file.
        let mut has_tuning = self.has_tuning.lock();
        if !core::mem::replace(&mut *has_tuning, true) {
            self.load_tuning_at_start(ctx, &"gasnet_coll_init", world);
        }
        drop(has_tuning);
        let own = ctx.endpoint().rank;
        let me = ctx.team().me();
        let view = world.view(false);
        let first = view.first[me.index()];
        let same = view.first.windows(2).zip(counts).all(|(f, &count)| f[1] - f[0] == count);
        let images = view.images.len() as u32;
        let local = if images == 1 { 0 } else { mine.wrapping_sub(first) };
        if !same || local >= images {
            report::fatal(
                format_args!(
                    "gasnet_coll_init(): image {mine} is none of the {images} images of rank {own}, which begin at {first}"
                ),
                format_args!(
                    "Every thread passes the same numbers of images, and as my_image a number of its own among those of its rank."
                ),
            );
        }
        if images > 1 && self.is_of_other_thread(ctx, local) {
            report::fatal(
                format_args!(
                    "gasnet_coll_init(): another thread of rank {own} has called it for image {mine}"
                ),
                format_args!("Every thread passes as my_image a number of its own."),
            );
        }
        self.image_of[ctx.thread_index() as usize].store(local, Ordering::Relaxed);
        if !functions.is_empty() {
            *self.functions.write() = functions.to_vec();
        }
    }

    /// Whether the caller's image is that of another thread, which has not ended. Makes it the
    /// caller's.
    fn is_of_other_thread(&self, ctx: Ctx, image: u32) -> bool {
        let me = ctx.thread_name();
        let mut threads = self.threads.lock();
        threads.retain(|_, thread| *thread != me);
        threads.insert(image, me).is_some_and(|other| ctx.is_live(other))
    }

    /// The team of all ranks, made as by a `gasnet_coll_init` without images if none was called.
    /// Clients of GASNet-EX call none.
    pub fn one_image_each(&self, ctx: Ctx) -> TeamRef {
        self.world(ctx, &vec![1; ctx.team().size() as usize]).clone()
    }

    /// The team with this number; `None` for a team that this process is not in, or before
    /// `gasnet_coll_init`.
    pub fn team(&self, id: u32) -> Option<TeamRef> {
        if id == 0 { self.world.get().cloned() } else { self.teams.get(id) }
    }

    /// The function with this index in the table of `gasnet_coll_init`, and its flags.
    pub fn function(&self, index: i32) -> Option<(ReduceFn, c_int)> {
        self.functions.read().get(usize::try_from(index).ok()?).copied()
    }

    /// The image of this thread, among those of this process.
    fn image(&self, ctx: Ctx, function: &str, view: &TeamView) -> usize {
        if view.images.len() == 1 {
            return 0;
        }
        match self.image_of[ctx.thread_index() as usize].load(Ordering::Relaxed) {
            NO_IMAGE => report::fatal(
                format_args!(
                    "{function}() was called by a thread that has not called gasnet_coll_init()"
                ),
                format_args!(
                    "Each image is a thread of its own, which calls gasnet_coll_init first."
                ),
            ),
            i => i as usize,
        }
    }

    /// The calling image: its index among those of this process, and its number in the team.
    pub fn caller(&self, ctx: Ctx, function: &str, team: &Team, by_process: bool) -> (usize, u32) {
        let view = team.view(by_process);
        let image = self.image(ctx, function, view);
        (image, view.number(image))
    }

    /// What every call of an image begins with.
    fn enter(&self, ctx: Ctx, function: &str, view: &TeamView, request: &CollRequest) {
        if ctx.in_handler() {
            report::fatal(
                format_args!("{function}() was called inside an active message handler"),
                format_args!("Call collectives from where messages are polled."),
            );
        }
        if let (Some(profile), true) = (&self.profile, request.operation.is_tuned()) {
            *profile
                .lock()
                .entry((view.context / 2, request.operation, request.nbytes))
                .or_default() += 1;
        }
    }

    /// What carries out this collective in shared memory, if anything does, and what this rank
    /// does in it.
    fn direct(
        &self,
        ctx: Ctx,
        view: &TeamView,
        request: &CollRequest,
    ) -> Option<(usize, &DirectMovement, MovementRoles)> {
        let stream = view.stream()?;
        let direct = self.engine.direct[stream].as_ref().filter(|_| !fault::any())?;
        let is_possible = match request.operation {
            CollOperation::Barrier => true,
            operation => ctx.endpoint().is_attached() && view.tuning.leaves_open(operation),
        };
        is_possible.then(|| Some((stream, direct, direct.roles(ctx, request)?)))?
    }

    /// What both forms of a call begin with; `None` if the collective is done. A call that awaits
    /// the collective may wait here.
    fn start(&self, ctx: Ctx, call: &CollCall, awaits: bool) -> (usize, Option<Arc<CollStatus>>) {
        let view = call.view();
        let image = self.image(ctx, call.function, view);
        self.enter(ctx, call.function, view, &call.request);
        let id = CollId { context: view.context, number: view.images[image].next() };
        // The images of a process are compared where they meet.
        if image == 0 && checks::on() {
            self.agreement.called(ctx, call, id);
        }
        let status = match self.direct(ctx, view, &call.request) {
            Some(direct) => self.engine.movement(ctx, call, id, direct, awaits),
            None => self.engine.call(ctx, call, (id, image)),
        };
        // Clients may rely on collectives alone to serve messages, and on barriers to serve those
        // sent before.
        if status.as_ref().is_none_or(|status| status.done()) && !fault::on("leave_messages") {
            ctx.serve_arrived();
        }
        (image, status)
    }

    /// Carries out a collective.
    pub fn wait_for(&self, ctx: Ctx, call: &CollCall) {
        let view = call.view();
        let (image, status) = self.start(ctx, call, true);
        let before = view.images[image].take_aggregate();
        if fault::on("skip_sync") {
            return;
        }
        let done = || status.as_ref().is_none_or(|s| s.done()) && before.iter().all(|s| s.done());
        if !done() {
            ctx.wait_until(call.function, done);
        }
    }

    /// Starts a collective and returns its handle, INVALID if it is done. With `aggregate` the
    /// handle of the next call without it, in the same team by the same image, stands for this
    /// one too.
    pub fn initiate(&self, ctx: Ctx, call: &CollCall, aggregate: bool) -> OpHandle {
        let view = call.view();
        let (image, status) = self.start(ctx, call, false);
        let image = &view.images[image];
        if aggregate {
            status.into_iter().for_each(|status| image.add_to_aggregate(status));
            return OpHandle::INVALID;
        }
        let mut all = image.take_aggregate();
        all.extend(status);
        if all.iter().all(|s| s.done()) {
            return OpHandle::INVALID;
        }
        let ops = &ctx.job.ops;
        let handle = ops.begin(ctx.thread_index(), all.len() as u32);
        all.iter().for_each(|status| status.complete(handle.op(), ops));
        handle
    }

    /// Whether the collectives of a handle are done; the handle is invalid then. Does not poll.
    pub fn sync(&self, ctx: Ctx, handle: OpHandle) -> bool {
        fault::on("skip_sync") || ctx.op_done(handle)
    }

    /// The record that each image passes, by image. Collective.
    pub fn records_of_all<const N: usize>(
        &self,
        ctx: Ctx,
        function: WaitReason,
        (team, by_process): (&TeamRef, bool),
        mine: [u32; N],
    ) -> Vec<[u32; N]> {
        let all = team.view(by_process).all() as usize;
        let mut memory = CollMemory::new((all + 1) * size_of_val(&mine));
        let (src, dst) = memory.bytes().split_at(size_of_val(&mine));
        src.copy_from(Src::from(mine.map(u32::to_ne_bytes).as_flattened()));
        let request = CollRequest::new(CollOperation::GatherAll, src.len());
        let (team, buffers) = (team.clone(), CollBuffers { dst, src: src.into() });
        self.wait_for(ctx, &CollCall { function, team, by_process, request, buffers });
        let mut words = alloc::vec![[[0; size_of::<u32>()]; N]; all];
        Dst::from(words.as_flattened_mut().as_flattened_mut()).copy_from(dst.into());
        words.into_iter().map(|record| record.map(u32::from_ne_bytes)).collect()
    }

    /// What rank 0 passes, as long as `mine` in all ranks. Collective over the processes.
    fn of_first_rank(&self, ctx: Ctx, function: WaitReason, mine: &[u8]) -> Vec<u8> {
        let mut memory = CollMemory::new(mine.len());
        let dst = memory.bytes();
        dst.copy_from(Src::from(mine));
        let request = CollRequest::new(CollOperation::Broadcast, mine.len());
        let (team, buffers) = (self.ranks(ctx).clone(), CollBuffers { dst, src: dst.into() });
        self.wait_for(ctx, &CollCall { function, team, by_process: true, request, buffers });
        let mut all = mine.to_vec();
        Dst::from(&mut *all).copy_from(dst.into());
        all
    }

    /// The team of all processes, each with one image.
    pub fn ranks(&self, ctx: Ctx) -> &TeamRef {
        self.ranks.get_or_init(|| {
            let ranks: Vec<JobRank> = ctx.team().ranks().collect();
            let ones = alloc::vec![1; ranks.len()];
            let members = TeamMembers::new(ranks, ctx.endpoint().rank);
            let barrier = ProcessBarrier::OfJob(self.barrier);
            let team = Team::new(RANKS, members, ones, barrier);
            Box::new(TeamRef::All(Box::leak(Box::new(team))))
        })
    }

    /// Returns when all have called.
    fn meet(&self, ctx: Ctx, function: WaitReason, (team, by_process): (&TeamRef, bool)) {
        let request =
            CollRequest { in_allsync: true, ..CollRequest::new(CollOperation::Barrier, 0) };
        let (team, buffers) = (team.clone(), CollBuffers::none());
        self.wait_for(ctx, &CollCall { function, team, by_process, request, buffers });
    }

    /// The calling image, for a barrier of images.
    fn barrier_image(&self, ctx: Ctx, function: &str, team: &Team, images: bool) -> Option<usize> {
        images.then(|| self.image(ctx, function, team.view(false)))
    }

    /// `gasnet_coll_barrier_notify`; `images` for a barrier of images instead of processes.
    pub fn barrier_notify(
        &self,
        ctx: Ctx,
        function: &str,
        team: &Team,
        (id, flags): (i32, i32),
        images: bool,
    ) {
        let image = self.barrier_image(ctx, function, team, images);
        team.notify(ctx, function, id, flags, image);
    }

    /// `gasnet_coll_barrier_wait`; `images` as in [`Coll::barrier_notify`].
    ///
    /// # Errors
    /// [`BarrierMismatch`](crate::runtime::GasnetError::BarrierMismatch)
    pub fn barrier_wait(
        &self,
        ctx: Ctx,
        function: &str,
        team: &Team,
        (id, flags): (i32, i32),
        images: bool,
    ) -> GasnetResult {
        let image = self.barrier_image(ctx, function, team, images);
        team.wait(ctx, function, id, flags, image)
    }

    /// `gasnet_coll_barrier_try`; `images` as in [`Coll::barrier_notify`].
    ///
    /// # Errors
    /// [`NotReady`](crate::runtime::GasnetError::NotReady),
    /// [`BarrierMismatch`](crate::runtime::GasnetError::BarrierMismatch)
    pub fn barrier_try(
        &self,
        ctx: Ctx,
        function: &str,
        team: &Team,
        (id, flags): (i32, i32),
        images: bool,
    ) -> GasnetResult {
        let image = self.barrier_image(ctx, function, team, images);
        team.try_wait(ctx, function, id, flags, image)
    }

    /// How often which blocks of a team were moved, as lines: operation, bytes, calls. `None` if
    /// `GASNET_COLL_ENABLE_PROFILE` is off.
    pub fn profile(&self, team: &Team) -> Option<String> {
        let mut text = String::new();
        for (&(id, operation, bytes), calls) in self.profile.as_ref()?.lock().iter() {
            if id == team.id() {
                // Writing into a String cannot fail.
                let _ = writeln!(text, "{} {bytes} {calls}", operation.name());
            }
        }
        Some(text)
    }
}
