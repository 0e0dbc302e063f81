//! The collectives: teams, data movement, reductions and scans, blocking and not.
//!
//! Called by `capi` with checked arguments.
//!
//! - A collective is named by its team's context and by how many collectives each image has called there before.
//! - Each image's call leaves its addresses in the operation of its process (`engine`); the last image's call makes the
//!   plan: rounds of local copies or combinations, and of messages to other processes (`plan`, `movement`, `compute`, `tree`).
//! - A process carries a plan out in its own time: sends of a round start when the round does, and the next round
//!   begins when all messages of this one are done. No plan waits for a whole team unless `IN_ALLSYNC` or `OUT_ALLSYNC` asks
//!   for it: then rounds of dissemination go before or after. So `IN_NOSYNC` is served as `IN_MYSYNC`, `OUT_NOSYNC` as
//!   `OUT_MYSYNC`.
//! - A message of up to a Medium's payload is sent at once and kept in the receiver's inbox until it is wanted. For a larger
//!   one the receiver says where it goes; the sender copies it there if that is mapped, else sends Longs if it
//!   lies in the receiver's segment, else Mediums. So no process stores more than small messages for others.
//! - Between processes that map each other's memory what fits travels in lines of shared memory (`lines`), the rest in active
//!   messages.
//! - A blocking movement with `IN_ALLSYNC` and `OUT_ALLSYNC` among few processes that map each other's segments is two meetings in
//!   shared memory with copies in between (`direct`), unless sources are elsewhere or a tree is asked for.
//! - Handlers only note arrivals. Polls go on with the plans that something has arrived for, while any is under way.
//! - Scratch memory belongs to the plan and ends with it.

pub mod choice;
mod compute;
mod direct;
mod engine;
mod files;
pub mod flags;
mod inbox;
mod lines;
mod movement;
mod plan;
pub mod search;
pub mod team;
#[cfg(test)]
mod tests;
pub mod tree;

use crate::conduit::AmMessage;
use crate::extended::Extended;
use crate::limits::MAX_THREADS;
use crate::runtime::am::AmToken;
use crate::runtime::{Ctx, GasnetJob};
use crate::{env, fault, report};
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ffi::{c_int, c_void};
use core::fmt::Write;
use core::sync::atomic::{AtomicU32, Ordering};
pub use engine::{CollStatus, ImageBuffers};
use once_cell::race::OnceBox;
use parking_lot::{Mutex, RwLock};
pub use plan::Reduction;
pub use team::Team;
use team::TeamView;

/// `gasnet_coll_reduce_fn_t`: results, their count, left operands, their count, right operands, bytes of an element, flags,
/// argument.
pub type ReduceFn = unsafe extern "C" fn(
    *mut c_void,
    usize,
    *const c_void,
    usize,
    *const c_void,
    usize,
    c_int,
    c_int,
);

/// What a collective does; the numbers index the tables of `choice`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CollOperation {
    /// One block to all.
    Broadcast = 0,
    /// A block to each.
    Scatter = 1,
    /// A block from each.
    Gather = 2,
    /// The blocks of all to all.
    GatherAll = 3,
    /// A block from each to each.
    Exchange = 4,
    /// The combination of all to one.
    Reduce = 5,
    /// The combination of those before to each.
    Scan = 6,
    /// No data; for waiting until all have called.
    Barrier = 7,
}

/// What all images ask for alike.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CollRequest {
    /// What to do.
    pub operation: CollOperation,
    /// Bytes of a block; of all elements of an image where these are combined.
    pub nbytes: usize,
    /// Image number of the root; 0 where there is none.
    pub root: u32,
    /// No data may move before all have called.
    pub in_allsync: bool,
    /// Nobody is done before all are.
    pub out_allsync: bool,
    /// For operations that combine.
    pub fold: Option<Reduction>,
    /// For scans: with the operand of the image itself.
    pub inclusive: bool,
}

impl CollRequest {
    /// With no root, no function, and no more waiting than necessary.
    pub fn new(operation: CollOperation, nbytes: usize) -> CollRequest {
        CollRequest {
            operation,
            nbytes,
            root: 0,
            in_allsync: false,
            out_allsync: false,
            fold: None,
            inclusive: false,
        }
    }
}

/// Handles that clients hold: a generation above an index. A handle that was synced before counts as done.
#[derive(Debug, Default)]
struct CollHandles {
    slots: Vec<(u32, Vec<Arc<CollStatus>>)>,
    free: Vec<u32>,
}

/// No image has this number.
const NO_IMAGE: u32 = u32::MAX;

/// How often which blocks were moved: by team, operation and bytes.
type BlockProfile = BTreeMap<(u32, CollOperation, usize), u64>;

/// The collectives of a process.
#[derive(Debug)]
pub struct Coll {
    engine: engine::CollEngine,
    direct: Option<direct::DirectMovement>,
    /// All processes; there from `gasnet_coll_init` on.
    world: OnceBox<&'static Team>,
    /// The other teams that this process is in, by number.
    teams: RwLock<BTreeMap<u32, &'static Team>>,
    next_team: AtomicU32,
    functions: RwLock<Vec<(ReduceFn, c_int)>>,
    /// By thread: the number, among those of this process, of the image that it called `gasnet_coll_init` for.
    image_of: Box<[AtomicU32]>,
    handles: Mutex<CollHandles>,
    profile: Option<Mutex<BlockProfile>>,
}

impl Coll {
    pub(super) fn new(job: &GasnetJob) -> Coll {
        Coll {
            engine: engine::CollEngine::new(job),
            direct: direct::DirectMovement::of(job),
            world: OnceBox::new(),
            teams: RwLock::default(),
            next_team: AtomicU32::new(1),
            functions: RwLock::default(),
            image_of: (0..MAX_THREADS).map(|_| AtomicU32::new(NO_IMAGE)).collect(),
            handles: Mutex::default(),
            profile: env::COLL_ENABLE_PROFILE.get().then(Mutex::default),
        }
    }

    /// The collectives of this process.
    pub fn of(ctx: Ctx) -> &'static Coll {
        &ctx.job.subsystem.get::<Extended>().coll
    }

    /// Goes on with what has arrived; called by polls while a collective or a team's barrier is under way.
    pub(super) fn progress(&self, ctx: Ctx) {
        self.engine.progress(ctx);
        if self.next_team.load(Ordering::Relaxed) != 1 {
            // A thread that is making a team has nothing to send for it.
            if let Some(teams) = self.teams.try_read_recursive() {
                teams.values().for_each(|team| team.progress(ctx));
            }
        }
    }

    /// `gasnet_coll_init`, for the thread that calls: `counts` has the images of each process, `mine` is the caller's image.
    ///
    /// Ends the job if the numbers do not fit, or if they differ from those of an earlier call.
    pub fn init(&self, ctx: Ctx, counts: &[u32], mine: u32, functions: &[(ReduceFn, c_int)]) {
        let world = self.world.get_or_init(|| {
            let members = (0..ctx.job.nodes).collect();
            let team: &'static Team =
                Box::leak(Box::new(Team::new(ctx.job, 0, members, counts.to_vec())));
            Box::new(team)
        });
        let view = &world.by_image;
        let first = view.first[view.me];
        let same = view.first.windows(2).zip(counts).all(|(f, &count)| f[1] - f[0] == count);
        let images = view.images.len() as u32;
        let local = if images == 1 { 0 } else { mine.wrapping_sub(first) };
        if !same || local >= images {
            report::fatal(
                format_args!(
                    "gasnet_coll_init(): image {mine} is none of the {images} images of process {}, which begin at {first}",
                    ctx.job.mynode
                ),
                format_args!(
                    "Every thread passes the same numbers of images, and as my_image a number of its own among those of its process."
                ),
            );
        }
        self.image_of[ctx.thread as usize].store(local, Ordering::Relaxed);
        if !functions.is_empty() {
            *self.functions.write() = functions.to_vec();
        }
    }

    /// The team with this number; `None` for a team that this process is not in, or before `gasnet_coll_init`.
    pub fn team(&self, id: u32) -> Option<&'static Team> {
        if id == 0 {
            self.world.get().copied()
        } else {
            self.teams.read_recursive().get(&id).copied()
        }
    }

    fn next_team(&self) -> u32 {
        self.next_team.load(Ordering::Relaxed)
    }

    /// The new team `id`, made by the first image of this process that comes.
    fn add_team(
        &self,
        job: &GasnetJob,
        id: u32,
        members: Vec<u32>,
        counts: Vec<u32>,
    ) -> &'static Team {
        let mut teams = self.teams.write();
        self.next_team.fetch_max(id + 1, Ordering::Relaxed);
        teams.entry(id).or_insert_with(|| Box::leak(Box::new(Team::new(job, id, members, counts))))
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
        match self.image_of[ctx.thread as usize].load(Ordering::Relaxed) {
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

    /// What every call of an image begins with.
    fn enter(&self, ctx: Ctx, function: &str, view: &TeamView, request: &CollRequest) {
        if ctx.in_handler() {
            report::fatal(
                format_args!("{function}() was called inside an active message handler"),
                format_args!("Call collectives from where messages are polled."),
            );
        }
        if let (Some(profile), true) = (&self.profile, request.operation != CollOperation::Barrier)
        {
            *profile
                .lock()
                .entry((view.context / 2, request.operation, request.nbytes))
                .or_default() += 1;
        }
    }

    /// Carries out a collective without the engine, if that can be; `request` is what is left to do otherwise.
    ///
    /// # Safety
    /// As [`Coll::wait_for`].
    unsafe fn at_once(
        &self,
        ctx: Ctx,
        view: &TeamView,
        request: &mut CollRequest,
        places: ImageBuffers,
    ) -> bool {
        let Some(direct) = self.direct.as_ref().filter(|_| !fault::any()) else { return false };
        // One image a process: they come in the order of the team.
        let alone = view.context == 0 && view.all() as usize == view.members.len();
        if !(alone
            && request.in_allsync
            && request.out_allsync
            && view.tuning.lock().leaves_open(request.operation))
        {
            return false;
        }
        // SAFETY: the caller's promise.
        let done = unsafe { direct.carry_out(ctx, request, places) };
        request.in_allsync = false;
        done
    }

    unsafe fn blocking(
        &self,
        ctx: Ctx,
        function: &'static str,
        view: &'static TeamView,
        mut request: CollRequest,
        places: ImageBuffers,
    ) {
        let image = self.image(ctx, function, view);
        self.enter(ctx, function, view, &request);
        // SAFETY: the caller's promise; done before this returns.
        let status = unsafe {
            let done = self.at_once(ctx, view, &mut request, places);
            (!done).then(|| self.engine.call(ctx, function, view, image, request, places))
        };
        let before = core::mem::take(&mut *view.images[image].aggregate.lock());
        if fault::on("skip_sync") {
            return;
        }
        let done = || status.as_ref().is_none_or(|s| s.done()) && before.iter().all(|s| s.done());
        if !done() {
            ctx.wait_until(&"a collective", done);
        }
    }

    /// Carries out a collective; `local` is how the caller sees its team.
    ///
    /// # Safety
    /// The memory at `call`'s places must be accessible.
    pub unsafe fn wait_for(&self, ctx: Ctx, call: CollCall) {
        // SAFETY: the caller's promise.
        unsafe { self.blocking(ctx, call.function, call.view(), call.request, call.places) };
    }

    /// Starts a collective; its handle, 0 if it is done. With `aggregate` the handle of the next call without it, in the
    /// same team by the same image, stands for this one too.
    ///
    /// # Safety
    /// The memory at `call`'s places must be accessible until the handle is synced.
    pub unsafe fn initiate(&self, ctx: Ctx, call: CollCall, aggregate: bool) -> usize {
        let view = call.view();
        let image = self.image(ctx, call.function, view);
        self.enter(ctx, call.function, view, &call.request);
        // SAFETY: the caller's promise.
        let status = unsafe {
            self.engine.call(ctx, call.function, view, image, call.request, call.places)
        };
        let mut all = view.images[image].aggregate.lock();
        all.push(status);
        if aggregate {
            return 0;
        }
        let all = core::mem::take(&mut *all);
        if all.iter().all(|s| s.done()) {
            return 0;
        }
        let mut handles = self.handles.lock();
        let i = handles.free.pop().unwrap_or_else(|| {
            handles.slots.push((0, Vec::new()));
            handles.slots.len() as u32 - 1
        });
        let slot = &mut handles.slots[i as usize];
        slot.1 = all;
        (slot.0 as usize) << 32 | (i as usize + 1)
    }

    /// Whether what the handle stands for is done; the handle is dead then. Does not poll.
    pub fn sync(&self, handle: usize) -> bool {
        if handle == 0 || fault::on("skip_sync") {
            return true;
        }
        let (generation, i) = ((handle >> 32) as u32, (handle as u32).wrapping_sub(1));
        let mut handles = self.handles.lock();
        match handles.slots.get_mut(i as usize) {
            Some(slot) if slot.0 == generation => {
                if !slot.1.iter().all(|s| s.done()) {
                    return false;
                }
                slot.0 = slot.0.wrapping_add(1);
                slot.1.clear();
                handles.free.push(i);
                true
            }
            _ => true,
        }
    }

    /// How often which blocks were moved, as lines: operation, bytes, calls. `None` if nothing is counted.
    pub fn profile(&self, team: &Team) -> Option<String> {
        let mut text = String::new();
        for (&(id, operation, bytes), calls) in self.profile.as_ref()?.lock().iter() {
            if id == team.id {
                // Writing into a String cannot fail.
                let _ = writeln!(text, "{} {bytes} {calls}", operation.name());
            }
        }
        Some(text)
    }
}

/// A call of one image.
#[derive(Clone, Copy, Debug)]
pub struct CollCall {
    /// The caller, as the client knows it.
    pub function: &'static str,
    /// Who takes part.
    pub team: &'static Team,
    /// Whether one call stands for all images of a process (`GASNET_COLL_NO_IMAGES`).
    pub by_process: bool,
    /// What to do.
    pub request: CollRequest,
    /// Where.
    pub places: ImageBuffers,
}

impl CollCall {
    fn view(&self) -> &'static TeamView {
        self.team.view(self.by_process)
    }
}

impl Team {
    fn view(&'static self, by_process: bool) -> &'static TeamView {
        if by_process { &self.by_process } else { &self.by_image }
    }

    /// Its images, or its processes.
    pub fn images(&'static self, by_process: bool) -> u32 {
        self.view(by_process).all()
    }

    /// Of the image that calls: its place among those of this process, and its number in the team.
    pub fn caller(&'static self, ctx: Ctx, function: &str, by_process: bool) -> (usize, u32) {
        let view = self.view(by_process);
        let image = Coll::of(ctx).image(ctx, function, view);
        (image, view.first[view.me] + image as u32)
    }
}

pub(super) fn on_small(ctx: Ctx, _: &AmToken, m: &AmMessage<'_>) {
    Coll::of(ctx).engine.inbox.on_small(m);
}

pub(super) fn on_ready(ctx: Ctx, _: &AmToken, m: &AmMessage<'_>) {
    Coll::of(ctx).engine.inbox.on_ready(m);
}

pub(super) fn on_piece(ctx: Ctx, _: &AmToken, m: &AmMessage<'_>) {
    Coll::of(ctx).engine.inbox.on_piece(m);
}
