//! The extended API: puts and gets, explicit and implicit operations, access regions, value
//! forms, memset, barrier; vector, indexed and strided puts and gets; collectives.
//!
//! Called by `capi`, which has checked the arguments; calls `runtime`, and the conduit for
//! ranks whose segment is not mapped here. Ranks are *cross-mapped* if each maps the other's
//! segment; a rank is cross-mapped to itself. Invariant: among cross-mapped ranks a put, get,
//! memset or vector transfer is plain copies and complete when the call returns.
//!
//! | file | what it owns |
//! |---|---|
//! | `rma`, `value`, `memset` | puts and gets; value forms; memset |
//! | `sync` | explicit handles, implicit operations, access regions |
//! | `trains`, `batch` | implicit puts and gets that leave together; their pieces |
//! | `vis` | vector, indexed and strided puts and gets |
//! | `atomics` | remote atomics |
//! | `barrier` | the barriers of the job and of teams |
//! | `coll`, `members` | collectives; the ranks of a team |
//! | `messages`, `handler_ids` | active messages of this layer to its own handlers; their indices |
//! | `scratch` | the page of shared memory that each rank has |
//! | `random` | random numbers of the tests |
#![cfg_attr(not(test), deny(clippy::std_instead_of_core, clippy::std_instead_of_alloc))]

pub mod atomics;
mod barrier;
mod batch;
pub mod coll;
mod handler_ids;
mod members;
pub mod memset;
mod messages;
#[cfg(test)]
mod random;
pub mod rma;
mod scratch;
pub mod sync;
mod trains;
pub mod value;
pub mod vis;

use crate::conduit::AmMessage;
use crate::report;
use crate::runtime::am::{AmToken, InternalHandler};
use crate::runtime::subsystem::Subsystem;
use crate::runtime::{Ctx, GasnetJob};
use alloc::boxed::Box;
use atomics::Atomics;
use barrier::Barrier;
use coll::Coll;
use core::any::Any;
use scratch::ScratchPages;
use trains::Trains;
use vis::Vis;

/// The handlers of this module, in the order of `handler_ids`.
const HANDLERS: &[InternalHandler] = &[
    memset::on_request,
    memset::on_reply,
    on_barrier_arrival,
    |ctx, _, m| collectives(ctx).on_small(m),
    |ctx, _, m| collectives(ctx).on_ready(m),
    |ctx, _, m| collectives(ctx).on_piece(m),
    vis::packing::on_put,
    vis::packing::on_put_reply,
    vis::packing::on_get,
    |ctx, token, m| transfers(ctx.job).on_get_reply(ctx, token, m),
    on_pinned,
    on_pinned_reply,
    on_pinned,
    on_pinned_reply,
    on_pinned,
    on_pinned_reply,
    atomics::on_request,
    |ctx, token, m| atomics(ctx.job).on_reply(ctx, token, m),
    vis::notice::on_notice,
    |ctx, _, m| collectives(ctx).on_called(m),
];

/// The state of this module for a job.
#[derive(Debug)]
struct Extended {
    barrier: &'static Barrier,
    coll: Coll,
    vis: Vis,
    trains: Trains,
    atomics: Atomics,
}

impl Subsystem<Ctx> for Extended {
    fn progress(&self, ctx: Ctx) {
        self.barrier.progress(ctx);
        self.coll.progress(ctx);
        self.trains.depart_in_poll(ctx);
        ctx.endpoint().conduit.progress_pinned(ctx);
    }

    fn check_words(&self) {
        self.barrier.check_words();
        self.coll.check_words();
    }

    fn completes_operations(&self) -> bool {
        self.coll.is_active() || self.trains.is_active()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Makes the extended API ready, the first time: when a client of GASNet-EX has started its job,
/// or when one of GASNet-1 attaches. No message arrives before, as no rank can send. What needs
/// segments waits for [`attached`].
pub fn open(job: &'static GasnetJob) {
    if job.subsystem.is_set() {
        return;
    }
    job.endpoint.handlers.register_extended(HANDLERS);
    let pages = ScratchPages::of(job);
    let barrier: &'static Barrier = Box::leak(Box::new(Barrier::of_job(job, pages.as_ref())));
    let coll = Coll::new(barrier, pages.as_ref());
    let (vis, trains) = (Vis::new(job), Trains::new(job));
    let atomics = Atomics::default();
    job.subsystem.set(Box::new(Extended { barrier, coll, vis, trains, atomics }));
}

/// Called once the segments of the job are attached.
pub fn attached(job: &'static GasnetJob) {
    // Peers may be waiting for regions that this rank holds.
    if job.endpoint.conduit.config().pinned.is_some() {
        job.subsystem.want(true);
    }
}

/// Where barriers take messages, has each rank connect with those that it sends them to.
/// Collective, after [`attached`]. A rank that leaves a barrier may not call the library for long,
/// and over some networks a first message may leave only in a later call.
pub fn connect(job: &'static GasnetJob) {
    if job.team.size() > 1 && state(job).barrier.connect(job.ctx()) {
        // No rank polls any more when the client of another one can send.
        job.meet();
    }
}

fn state(job: &'static GasnetJob) -> &'static Extended {
    job.subsystem.get()
}

/// The barrier of the job.
pub fn barrier(ctx: Ctx) -> &'static Barrier {
    state(ctx.job).barrier
}

/// The collectives of this process.
pub fn collectives(ctx: Ctx) -> &'static Coll {
    &state(ctx.job).coll
}

/// The vector transfers of this process.
pub fn transfers(job: &'static GasnetJob) -> &'static Vis {
    &state(job).vis
}

/// The remote atomics of this process.
pub fn atomics(job: &'static GasnetJob) -> &'static Atomics {
    &state(job).atomics
}

/// Lets the train of the calling thread leave.
fn depart(ctx: Ctx) {
    state(ctx.job).trains.depart(ctx);
}

/// The handler of the conduit's own requests.
fn on_pinned(ctx: Ctx, token: &AmToken, m: &AmMessage<'_>) {
    let conduit = &ctx.endpoint().conduit;
    conduit.serve_pinned(m, |reply| ctx.reply_to("registered memory", token, reply));
}

/// The handler of the replies to them.
fn on_pinned_reply(ctx: Ctx, _token: &AmToken, m: &AmMessage<'_>) {
    ctx.endpoint().conduit.serve_pinned_reply(ctx, m);
}

/// The handler of a barrier's message: an arrival, the number of the team, a checksum.
fn on_barrier_arrival(ctx: Ctx, _token: &AmToken, m: &AmMessage<'_>) {
    let Some(args) = messages::without_checksum(m.args) else {
        report::damaged(format_args!(
            "a barrier message of rank {} was overwritten: {:?}",
            m.source, m.args
        ))
    };
    let noted = args.split_last().and_then(|(&id, arrival)| match id {
        0 => barrier(ctx).note(arrival),
        id => collectives(ctx).team(id as u32)?.barrier().note(arrival),
    });
    if noted.is_none() {
        report::fatal(
            format_args!("a barrier message of rank {} is malformed: {:?}", m.source, m.args),
            format_args!(
                "All ranks of a job must use the same version of the library and GASNET_SUPERNODE_MAXSIZE."
            ),
        )
    }
}
