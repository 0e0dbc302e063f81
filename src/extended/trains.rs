//! Trains: small implicit puts, or gets, of a thread to one rank that leave in one system call.
//!
//! Begun and joined by `rma` in EVERYTHING, where the rank is reached by cross-memory attach. A
//! train leaves when a sync or another call polls, and when it is full. That of a thread that has
//! ended leaves when another thread polls. It also leaves before a
//! small implicit operation of the other kind or of another rank, and where an access region
//! begins or ends. Active messages do not wait for it: the specification orders them after a sync
//! only. Invariant: a train counts as one implicit operation of its thread, begun with its first
//! piece and complete when it has left.

use super::batch::PieceBatch;
use crate::client_memory::{Dst, RemoteRange, Src};
use crate::conduit::OpId;
use crate::fault;
use crate::rank::JobRank;
use crate::runtime::ops::ImplicitKind;
use crate::runtime::{Ctx, GasnetJob, threads};
use alloc::boxed::Box;
use alloc::vec;
use core::sync::atomic::{AtomicU32, Ordering};
use crossbeam_utils::CachePadded;
use parking_lot::Mutex;

/// Bytes of puts in a train: their sources may be reused at once.
const ROOM: usize = 32 << 10;
/// The longest operations that join a train: of longer ones the call is a small part.
const LONGEST_PUT: usize = 1024;
const LONGEST_GET: usize = 4096;

/// The trains of all threads.
#[derive(Debug)]
pub(super) struct Trains {
    /// That of each thread.
    all: Box<[CachePadded<TrainOfThread>]>,
    /// Threads whose train has pieces.
    waiting: AtomicU32,
}

/// A thread's train; `None` while it leaves and before the first one.
type TrainOfThread = Mutex<Option<Box<Train>>>;

#[derive(Debug)]
struct Train {
    pieces: PieceBatch,
    op: OpId,
    room: Dst<'static>,
    used: usize,
}

impl Trains {
    pub(super) fn new(job: &GasnetJob) -> Trains {
        Trains {
            all: (0..job.max_threads()).map(|_| CachePadded::default()).collect(),
            waiting: AtomicU32::new(0),
        }
    }

    /// Whether a train has not left.
    pub(super) fn is_active(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) != 0
    }

    /// Lets the train of the calling thread leave.
    pub(super) fn depart(&self, ctx: Ctx) {
        if self.is_active() {
            self.depart_of(ctx, ctx.thread_index());
        }
    }

    /// Lets the train of the calling thread leave, and those of threads that have ended.
    pub(super) fn depart_in_poll(&self, ctx: Ctx) {
        self.depart(ctx);
        if self.is_active() {
            threads::ended().for_each(|thread| self.depart_of(ctx, thread));
        }
    }

    /// Lets the train of a thread leave, the calling one or one that has ended.
    fn depart_of(&self, ctx: Ctx, thread: u16) {
        let own = &self.all[usize::from(thread)];
        // It is sent without the lock: where the network moves no pieces at once, that may poll.
        let leaving = own.lock().take_if(|train| !train.pieces.is_empty());
        let Some(mut train) = leaving else { return };
        if !train.pieces.send(ctx.job) {
            train.pieces.send_each(ctx.job);
        }
        train.pieces.restart(true, ctx.job.endpoint.rank);
        train.used = 0;
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        ctx.job.subsystem.want(false);
        ctx.job.ops.complete(train.op);
        // A thread that has got the index meanwhile may have one.
        own.lock().get_or_insert(train);
    }

    /// Adds a piece to the train of the calling thread, whose local side `place` returns of the
    /// room that is left; false, and nothing done, if the rank is not reached at once.
    fn join(
        &self,
        ctx: Ctx,
        put: bool,
        remote: RemoteRange,
        place: impl Fn(Dst<'static>) -> Option<Dst<'static>>,
    ) -> bool {
        let (job, rank) = (ctx.job, remote.rank());
        let kind = if put { ImplicitKind::Puts } else { ImplicitKind::Gets };
        loop {
            let mut own = self.all[usize::from(ctx.thread_index())].lock();
            let train = own.get_or_insert_with(|| Box::new(Train::new(rank)));
            if train.pieces.is_empty() {
                if job.endpoint.conduit.attaches(rank) != Some(true) {
                    return false;
                }
                train.pieces.restart(put, rank);
                train.op = job.ops.begin_implicit(ctx.thread_index(), kind, 1);
                self.waiting.fetch_add(1, Ordering::Relaxed);
                job.subsystem.want(true);
            }
            let left = train.room.part(train.used, ROOM - train.used);
            // That of another operation belongs to an access region that a thread with this index
            // left open when it ended.
            if train.pieces.is_for(put, rank)
                && train.op == job.ops.implicit_op(ctx.thread_index(), kind)
                && !train.pieces.is_full()
                && let Some(local) = place(left)
            {
                train.pieces.push(local, remote);
                if put {
                    train.used += local.len().next_multiple_of(size_of::<u64>());
                }
                return true;
            }
            drop(own);
            self.depart(ctx);
        }
    }
}

impl Train {
    fn new(rank: JobRank) -> Train {
        let room = Dst::from(vec![0u64; ROOM / size_of::<u64>()].leak());
        Train { pieces: PieceBatch::new(true, rank), op: OpId(0), room, used: 0 }
    }
}

/// Whether the network moves the pieces of a train at once: not where it registers memory first.
fn moves_pieces(job: &GasnetJob) -> bool {
    !job.endpoint.conduit.config().targets_regions()
}

/// Whether an implicit put has joined a train. Its source may be reused then.
pub(super) fn put(job: &'static GasnetJob, dst: RemoteRange, src: Src<'_>) -> bool {
    job.endpoint.segments().is_everything()
        && src.len() <= LONGEST_PUT
        && moves_pieces(job)
        && super::state(job).trains.join(job.ctx(), true, dst, |room| {
            let copy = room.try_part(0, src.len())?;
            copy.copy_from(src);
            if fault::on("flip_put") {
                copy.flip(0);
            }
            Some(copy)
        })
}

/// Whether an implicit get has joined a train.
pub(super) fn get(job: &'static GasnetJob, dst: Dst<'static>, src: RemoteRange) -> bool {
    job.endpoint.segments().is_everything()
        && dst.len() <= LONGEST_GET
        && moves_pieces(job)
        && super::state(job).trains.join(job.ctx(), false, src, |_| Some(dst))
}
