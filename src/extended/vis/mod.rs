//! Vector, indexed and strided puts and gets: many pieces of memory in one operation.
//!
//! Called by `capi` with shapes that it made of a client's lists. Invariant: all messages are
//! initiated before the call returns, so lists and strides may be reused then; they complete
//! one operation of [`crate::runtime::ops`].
//!
//! ```text
//!   remote side mapped        a copy for each run, complete at once
//!   EVERYTHING                many runs in one call, where the network takes     scattered
//!                             them at once
//!   few runs, or large ones   a put or get for each run
//!   neighbours, for puts      small runs are gathered here, one put for     operation
//!                             many; of large ones as for gets
//!   neighbours, for gets      one message for several pieces, where the     operation
//!                             network has descriptors of them
//!   GASNET_VIS_AMPIPE, or     packed into Mediums, a handler scatters       packing
//!   the target must call
//! ```

pub mod indexed;
pub mod notice;
mod operation;
pub mod packing;
pub mod pieces;
mod scattered;
pub mod strided;
pub mod vector;

use crate::client_memory::{Dst, Src};
use crate::conduit::{AmMessage, MAX_EAGER};
use crate::rank::JobRank;
use crate::runtime::am::AmToken;
use crate::runtime::client::SegmentMode;
use crate::runtime::ops::OpHandle;
use crate::runtime::{Ctx, GasnetJob};
use crate::{env, fault};
use core::sync::atomic::{Ordering, fence};
pub use operation::VisDirection;
use operation::{GatheredPut, ScatteredTransfer, VisOperation};
use packing::{GetPacker, PendingGets, PutPacker};
use pieces::{ROW, VisRun, VisShape};
use scattered::scattered;

/// Longest run that is a piece of a message with several. Longer ones gain nothing that the rows
/// `vis_joined_put` and `vis_joined_get` show.
const LONGEST_PIECE: usize = 4 << 10;

/// How the operation is completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompletionForm {
    /// When the call returns.
    Blocking,
    /// By its handle.
    Explicit,
    /// With the implicit operations of the thread, or its access region.
    Implicit,
}

/// The vector transfers of a process.
#[derive(Debug)]
pub struct Vis {
    /// `GASNET_VIS_AMPIPE`: whether to pack. Unset: where the target must call anyway.
    ampipe: Option<bool>,
    /// Whether the client was compiled for GASNET_SEGMENT_EVERYTHING.
    is_everything: bool,
    /// `GASNET_VIS_REMOTECONTIG`: whether to combine runs that are neighbours on the remote
    /// side. Unset: where that needs no handler.
    remote_contig: Option<bool>,
    /// Whether one get can have several destinations, and one put several sources.
    scatters: bool,
    /// `GASNET_VIS_MAXCHUNK`: largest run that is packed or gathered, in bytes.
    max_chunk: usize,
    gets: PendingGets,
}

/// How the runs of one operation travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum VisPlan {
    /// A put or get for each.
    Each,
    /// Puts of runs that are neighbours on the remote side: of gathered ones, and of several
    /// large ones.
    Gathered,
    /// Gets into several runs that are neighbours on the remote side.
    Scattered,
    /// Mediums, which a handler of the target scatters or gathers.
    Packed,
}

/// What a shape looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ShapeSurvey {
    runs: usize,
    /// Runs that do not follow the one before them on the remote side.
    remote_runs: usize,
}

fn survey(shape: &impl VisShape) -> ShapeSurvey {
    let mut s = ShapeSurvey { runs: 0, remote_runs: 0 };
    let mut end = core::ptr::null_mut();
    shape.each(|run| {
        s.runs += 1;
        s.remote_runs += usize::from(run.remote != end);
        end = run.remote.wrapping_add(run.n);
    });
    s
}

/// Ends the job if a piece of the local side is null. Called where calls are checked.
#[cold]
#[inline(never)]
pub fn check_local_pieces(function: &str, shape: &impl VisShape) {
    shape.each(|run| run.check_local(function));
}

/// Whether a rank is on another host.
fn is_far(job: &GasnetJob, rank: JobRank) -> bool {
    job.placement().local_rank_of(rank).is_none()
}

impl Vis {
    /// Reads the environment.
    pub(super) fn new(job: &GasnetJob) -> Vis {
        let endpoint = &job.endpoint;
        Vis {
            ampipe: env::VIS_AMPIPE.get(),
            is_everything: job.client.segments == SegmentMode::Everything,
            remote_contig: env::VIS_REMOTECONTIG.get(),
            scatters: endpoint.conduit.most_pieces() > 1,
            max_chunk: (MAX_EAGER - ROW).min(env::VIS_MAXCHUNK.get()),
            gets: PendingGets::default(),
        }
    }

    /// Whether pieces of a rank travel in messages, if several of them fit into one. The handler
    /// runs in calls of that rank only. So a variable demands it, or puts and gets of the pieces
    /// would wait for these calls too.
    fn packs(&self, job: &GasnetJob, rank: JobRank) -> bool {
        let conduit = &job.endpoint.conduit;
        let waits = || match is_far(job, rank) {
            true => conduit.wire_waits_for_calls(!self.is_everything),
            false => self.is_everything && conduit.attaches(rank) == Some(false),
        };
        self.ampipe.unwrap_or_else(waits)
    }

    /// Gathered puts need no handler, as puts do not, so they are the default.
    fn plan(&self, direction: VisDirection, s: ShapeSurvey, packs: bool) -> VisPlan {
        // At least two runs for each put or get that would remain.
        let contiguous = s.runs >= 2 * s.remote_runs;
        match direction {
            _ if s.runs < 2 => VisPlan::Each,
            VisDirection::Put if contiguous && self.remote_contig != Some(false) => {
                VisPlan::Gathered
            }
            VisDirection::Get if contiguous && self.remote_contig == Some(true) => VisPlan::Packed,
            _ if packs => VisPlan::Packed,
            VisDirection::Get
                if contiguous && self.scatters && self.remote_contig != Some(false) =>
            {
                VisPlan::Scattered
            }
            _ => VisPlan::Each,
        }
    }

    /// Initiates the messages of a transfer.
    fn initiate(&self, operation: &VisOperation, shape: &impl VisShape) {
        let capacity = MAX_EAGER;
        let small = |run: VisRun| run.n <= self.max_chunk;
        let joins = |run: VisRun| self.scatters && run.n <= LONGEST_PIECE;
        let packs = self.packs(operation.ctx.job, operation.rank);
        match (self.plan(operation.direction, survey(shape), packs), operation.direction) {
            (VisPlan::Gathered, _) => {
                let mut gathered = GatheredPut::new(operation);
                let mut scattered = ScatteredTransfer::new(operation);
                shape.each(|run| match small(run) {
                    true => gathered.push(run),
                    false if joins(run) => scattered.push(run),
                    false => operation.each(run),
                });
                gathered.put();
                scattered.transfer();
            }
            (VisPlan::Scattered, _) => {
                let mut scattered = ScatteredTransfer::new(operation);
                shape.each(
                    |run| {
                        if joins(run) { scattered.push(run) } else { operation.each(run) }
                    },
                );
                scattered.transfer();
            }
            (VisPlan::Packed, VisDirection::Put) => {
                let mut packer = PutPacker::new(operation, capacity);
                shape.each(|run| if small(run) { packer.push(run) } else { operation.each(run) });
                packer.send();
            }
            (VisPlan::Packed, VisDirection::Get) => {
                let mut packer = GetPacker::new(operation, &self.gets, capacity);
                shape.each(|run| if small(run) { packer.push(run) } else { operation.each(run) });
                packer.send();
            }
            (VisPlan::Each, _) => shape.each(|run| operation.each(run)),
        }
    }

    /// Puts or gets all pieces of a shape, whose remote side is at `rank` and not mapped here.
    /// `function` names the caller in messages. INVALID if the transfer is complete when this
    /// returns, or implicit.
    pub fn transfer(
        &self,
        function: &'static str,
        job: &'static GasnetJob,
        direction: VisDirection,
        form: CompletionForm,
        rank: JobRank,
        shape: &impl VisShape,
    ) -> OpHandle {
        if job.endpoint.segments().is_everything()
            && scattered(function, job, direction, rank, shape)
        {
            return OpHandle::INVALID;
        }
        let ctx = job.ctx();
        let handle =
            (form != CompletionForm::Implicit).then(|| job.ops.begin(ctx.thread_index(), 0));
        let operation = VisOperation { ctx, rank, direction, handle, function };
        match is_far(job, rank) {
            true => job.endpoint.conduit.together(&mut || self.initiate(&operation, shape)),
            false => self.initiate(&operation, shape),
        }
        match (form, handle) {
            (CompletionForm::Blocking, Some(handle)) => ctx.wait_op(handle),
            (_, Some(handle)) if !ctx.op_done(handle) => return handle,
            _ => {}
        }
        OpHandle::INVALID
    }

    /// The handler of the answer to a packed get.
    pub(super) fn on_get_reply(&self, ctx: Ctx, token: &AmToken, m: &AmMessage<'_>) {
        self.gets.on_reply(ctx, token, m);
    }
}

/// Puts or gets all pieces of a shape at once, if its remote side, at `rank`, is mapped here; else
/// false. Ends the job unless the remote pieces lie in the segment of the rank.
///
/// The pieces of the destination must not overlap, or their bytes are undefined.
#[inline(always)]
pub fn copy_mapped(
    function: &'static str,
    job: &'static GasnetJob,
    direction: VisDirection,
    rank: JobRank,
    shape: &impl VisShape,
) -> bool {
    let Some(distance) = job.endpoint.distance(function, rank, shape.remote_pieces()) else {
        return false;
    };
    directly(direction, shape, |run| {
        // SAFETY: `distance` has checked that the remote pieces of the shape are mapped at this
        // distance from their addresses. A run is a part of them.
        unsafe { Dst::new(run.remote.wrapping_add(distance), run.n) }
    });
    true
}

/// Copies between cross-mapped processes; `mapped` returns the remote side of a run.
#[inline(always)]
fn directly(
    direction: VisDirection,
    shape: &impl VisShape,
    mapped: impl Fn(VisRun) -> Dst<'static>,
) {
    // All copy. A call of `memmove` per run, or a jump by its length, costs more than a
    // short run. With that call or jump, `vis_strided_put` of 8 to 64 B has a half to a
    // quarter of the rate.
    match shape.run_len() {
        Some(8) => each_mapped::<true>(direction, shape, mapped, Dst::copy_array::<8>),
        Some(16) => each_mapped::<true>(direction, shape, mapped, Dst::copy_array::<16>),
        Some(32) => each_mapped::<true>(direction, shape, mapped, Dst::copy_array::<32>),
        Some(64) => each_mapped::<true>(direction, shape, mapped, Dst::copy_array::<64>),
        // Joining neighbours costs about as much as a call. It saves many if runs are short.
        Some(128..) => each_mapped::<true>(direction, shape, mapped, Dst::copy_from),
        None if shape.has_pairs() => each_mapped::<true>(direction, shape, mapped, Dst::copy_from),
        _ => each_mapped::<false>(direction, shape, mapped, Dst::copy_from),
    }
}

/// As [`directly`]; `copy` copies a run, one of [`VisShape::each_pair`] with `PAIRS`.
#[inline(always)]
fn each_mapped<const PAIRS: bool>(
    direction: VisDirection,
    shape: &impl VisShape,
    mapped: impl Fn(VisRun) -> Dst<'static>,
    copy: impl Fn(Dst<'static>, Src<'static>),
) {
    let copy = |to: Dst<'static>, from: Dst<'static>, planted: &str| {
        copy(to, from.into());
        if fault::on(planted) {
            to.flip(0);
        }
    };
    let put = |run: VisRun| copy(mapped(run), run.local(), "flip_put");
    let get = |run: VisRun| copy(run.local(), mapped(run), "flip_get");
    match direction {
        VisDirection::Put => {
            fence(Ordering::Release);
            if PAIRS {
                shape.each_pair(put)
            } else {
                shape.each(put)
            }
            fence(Ordering::Release);
        }
        VisDirection::Get => {
            if PAIRS {
                shape.each_pair(get)
            } else {
                shape.each(get)
            }
            fence(Ordering::Acquire);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::pieces::{VisPiece, each_run};
    use super::*;

    #[test]
    fn nothing_waits_for_a_handler_unasked() {
        let mut vis = Vis {
            ampipe: None,
            is_everything: false,
            remote_contig: None,
            scatters: false,
            max_chunk: 256,
            gets: Default::default(),
        };
        let (near, far) =
            (ShapeSurvey { runs: 8, remote_runs: 1 }, ShapeSurvey { runs: 8, remote_runs: 5 });
        let plans_of = |vis: &Vis, packs: bool| {
            [
                (VisDirection::Put, near),
                (VisDirection::Put, far),
                (VisDirection::Get, near),
                (VisDirection::Get, far),
            ]
            .map(|(d, s)| vis.plan(d, s, packs))
        };
        let plans = |vis: &Vis| plans_of(vis, false);
        assert_eq!(plans(&vis), [VisPlan::Gathered, VisPlan::Each, VisPlan::Each, VisPlan::Each]);
        vis.scatters = true;
        let scattered = VisPlan::Scattered;
        assert_eq!(plans(&vis), [VisPlan::Gathered, VisPlan::Each, scattered, VisPlan::Each]);
        vis.remote_contig = Some(false);
        assert_eq!(plans(&vis), [VisPlan::Each; 4]);
        assert_eq!(plans_of(&vis, true), [VisPlan::Packed; 4]);
        vis.remote_contig = Some(true);
        assert_eq!(
            plans_of(&vis, true),
            [VisPlan::Gathered, VisPlan::Packed, VisPlan::Packed, VisPlan::Packed]
        );
        assert_eq!(
            vis.plan(VisDirection::Put, ShapeSurvey { runs: 1, remote_runs: 1 }, true),
            VisPlan::Each
        );
    }

    /// Two lists of pieces.
    struct Lists<'a>(&'a [VisPiece], &'a [VisPiece]);

    impl VisShape for Lists<'_> {
        fn each(&self, f: impl FnMut(VisRun)) {
            each_run(self.0.iter().copied(), self.1.iter().copied(), f);
        }

        fn remote_pieces(&self) -> impl Iterator<Item = VisPiece> {
            self.0.iter().copied()
        }
    }

    #[test]
    fn neighbours_there_are_seen() {
        let v = |addr: usize, len| (core::ptr::without_provenance_mut(addr), len);
        let (remote, local) = ([v(100, 12), v(200, 4)], [v(10, 4), v(20, 4), v(30, 4), v(40, 4)]);
        let shape = Lists(&remote, &local);
        assert_eq!(survey(&shape), ShapeSurvey { runs: 4, remote_runs: 2 });
        assert_eq!(survey(&Lists(&[], &[])), ShapeSurvey { runs: 0, remote_runs: 0 });
    }
}
