//! Vector, indexed and strided puts and gets: many pieces of memory in one operation.
//!
//! Called by `capi` with checked arguments. Between cross-mapped processes a transfer is direct copies and complete at
//! once. Otherwise everything is initiated before the call returns, so that lists and strides may be reused then, and
//! collected in one operation of [`crate::runtime::ops`]: a put or get per run, or pieces put together, see `VisPlan`.

pub mod indexed;
pub mod packing;
pub mod pieces;
pub mod strided;
pub mod vector;

use crate::client_memory::{Dst, RemoteRange, Src};
use crate::conduit::{CHUNK, OpId};
use crate::runtime::ops::{ImplicitKind, OpHandle};
use crate::runtime::{Ctx, GasnetJob};
use crate::{env, fault};
use core::sync::atomic::{Ordering, fence};
use packing::{GetPacker, PutPacker, ROW};
use pieces::{VisRun, VisShape};

/// Which way the data go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VisDirection {
    /// From here to there.
    Put,
    /// From there to here.
    Get,
}

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

/// What this folder keeps for a job.
#[derive(Debug)]
pub struct Vis {
    /// `GASNET_VIS_AMPIPE`: whether to pack.
    ampipe: bool,
    /// `GASNET_VIS_REMOTECONTIG`: whether to put together what is contiguous there; by default only where no handler
    /// is needed, for puts.
    remote_contig: Option<bool>,
    /// `GASNET_VIS_MAXCHUNK`: largest run that is packed or gathered, in bytes. Measured through
    /// Portals between two processes of a machine, the target polling: a put or get of its own costs
    /// 70 to 100 ns up to 256 bytes and 110 to 150 ns at 512. A packed piece costs 20 ns at 8 bytes, 50
    /// at 128, 80 at 256 and 170 at 512; a piece of a gathered put 12, 27, 48 and 100 ns.
    max_chunk: usize,
    gets: packing::PendingGets,
}

impl Vis {
    /// Reads the environment.
    pub(super) fn new(job: &GasnetJob) -> Vis {
        let most = job.conduit.max_medium() - ROW;
        Vis {
            ampipe: env::VIS_AMPIPE.get(),
            remote_contig: env::VIS_REMOTECONTIG.get(),
            max_chunk: most.min(env::VIS_MAXCHUNK.get()),
            gets: packing::PendingGets::default(),
        }
    }
}

/// How the runs of one operation travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum VisPlan {
    /// A put or get for each.
    Each,
    /// Puts of what was gathered here, for runs that are neighbours there.
    Gathered,
    /// Mediums, scattered or gathered by a handler of the target.
    Packed,
}

/// What a shape looks like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ShapeSurvey {
    runs: usize,
    /// Runs that do not continue the one before them there.
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

impl Vis {
    /// Gathered puts are the target's business as little as puts are, so that they are used unasked; packed pieces wait
    /// for the target to poll, so that they are used only if the user wants that.
    fn plan(&self, direction: VisDirection, s: ShapeSurvey) -> VisPlan {
        // At least two runs for each put or get that would remain.
        let contiguous = s.runs >= 2 * s.remote_runs;
        match direction {
            _ if s.runs < 2 => VisPlan::Each,
            VisDirection::Put if contiguous && self.remote_contig != Some(false) => {
                VisPlan::Gathered
            }
            VisDirection::Get if contiguous && self.remote_contig == Some(true) => VisPlan::Packed,
            _ if self.ampipe => VisPlan::Packed,
            _ => VisPlan::Each,
        }
    }
}

/// An operation whose messages are being initiated.
#[derive(Debug)]
pub struct VisOperation {
    ctx: Ctx,
    node: u32,
    direction: VisDirection,
    /// `None` for the implicit form.
    handle: Option<OpHandle>,
    function: &'static str,
}

impl VisOperation {
    /// Counts fragments that are about to be initiated, and names their operation.
    fn count(&self, fragments: u32) -> OpId {
        let ops = &self.ctx.job.ops;
        match (self.handle, self.direction) {
            (Some(handle), _) => {
                ops.extend(handle, fragments);
                handle.op()
            }
            (None, VisDirection::Put) => {
                ops.begin_implicit(self.ctx.thread, ImplicitKind::Puts, fragments)
            }
            (None, VisDirection::Get) => {
                ops.begin_implicit(self.ctx.thread, ImplicitKind::Gets, fragments)
            }
        }
    }

    /// A put or get of its own.
    ///
    /// # Safety
    /// The local side must stay accessible until the operation is synced; the remote side lies in the segment.
    unsafe fn each(&self, run: VisRun) {
        let conduit = &self.ctx.job.conduit;
        let op = self.count(conduit.fragments(run.n));
        let remote = self.remote(run.remote, run.n);
        match self.direction {
            VisDirection::Put => {
                // SAFETY: the caller's promise.
                let src = unsafe { Src::new(run.local, run.n) };
                conduit.put_bulk(self.ctx, remote, src, op);
            }
            VisDirection::Get => {
                // SAFETY: the caller's promise.
                let dst = unsafe { Dst::new(run.local, run.n) };
                conduit.get(self.ctx, dst, remote, op);
            }
        }
    }

    /// A run of the remote side, which `capi` has found in the segment.
    fn remote(&self, addr: *mut u8, n: usize) -> RemoteRange {
        self.ctx.job.remote_range(self.function, self.node, addr, n)
    }
}

/// Copies `n` bytes.
///
/// # Safety
/// Both ranges must be accessible.
#[inline(always)]
unsafe fn copy(dst: *mut u8, src: *const u8, n: usize) {
    // SAFETY: the caller's promise.
    let (dst, src) = unsafe { (Dst::new(dst, n), Src::new(src, n)) };
    dst.copy_from(src);
}

/// Gathers runs that are neighbours there, and puts them at once.
struct GatheredPut<'a> {
    issue: &'a VisOperation,
    data: [u8; CHUNK],
    /// First byte there.
    remote: *mut u8,
    used: usize,
}

impl GatheredPut<'_> {
    /// # Safety
    /// As [`VisOperation::each`], and the run is no longer than a chunk.
    unsafe fn push(&mut self, run: VisRun) {
        if self.remote.wrapping_add(self.used) != run.remote || self.used + run.n > CHUNK {
            self.put();
            self.remote = run.remote;
        }
        // SAFETY: fits; readable, as the caller promises.
        unsafe { copy(self.data.as_mut_ptr().add(self.used), run.local, run.n) };
        self.used += run.n;
    }

    fn put(&mut self) {
        let (issue, n) = (self.issue, self.used);
        if n != 0 {
            let op = issue.count(issue.ctx.job.conduit.fragments(n));
            let remote = issue.remote(self.remote, n);
            issue.ctx.job.conduit.put(issue.ctx, remote, Src::from(&self.data[..n]), op);
        }
        self.used = 0;
    }
}

/// Initiates the messages of a transfer.
///
/// # Safety
/// As [`transfer`].
unsafe fn initiate(issue: &VisOperation, shape: &impl VisShape) {
    let vis = &issue.ctx.job.subsystem.get::<super::Extended>().vis;
    let room = issue.ctx.job.conduit.max_medium();
    let small = |run: VisRun| run.n <= vis.max_chunk;
    match (vis.plan(issue.direction, survey(shape)), issue.direction) {
        (VisPlan::Gathered, _) => {
            let mut gather =
                GatheredPut { issue, data: [0; CHUNK], remote: core::ptr::null_mut(), used: 0 };
            // SAFETY: the caller's promise.
            shape.each(|run| unsafe {
                if small(run) { gather.push(run) } else { issue.each(run) }
            });
            gather.put();
        }
        (VisPlan::Packed, VisDirection::Put) => {
            let mut packer = PutPacker::new(issue, room);
            // SAFETY: the caller's promise.
            shape.each(|run| unsafe {
                if small(run) { packer.push(run) } else { issue.each(run) }
            });
            packer.send();
        }
        (VisPlan::Packed, VisDirection::Get) => {
            let mut packer = GetPacker::new(issue, room);
            shape.each(|run| match small(run) {
                true => packer.push(run),
                // SAFETY: the caller's promise.
                false => unsafe { issue.each(run) },
            });
            packer.send();
        }
        // SAFETY: the caller's promise.
        (VisPlan::Each, _) => shape.each(|run| unsafe { issue.each(run) }),
    }
}

/// Copies between cross-mapped processes; `delta` leads from an address of the owner to the same byte here.
///
/// # Safety
/// As [`transfer`].
unsafe fn directly(direction: VisDirection, delta: usize, shape: &impl VisShape) {
    let flip = |to: *mut u8, fault: &str| {
        if fault::on(fault) {
            // SAFETY: the first of at least one byte that was just written.
            unsafe { *to ^= 1 };
        }
    };
    match direction {
        VisDirection::Put => {
            fence(Ordering::Release);
            shape.each(|run| {
                let to = run.remote.wrapping_add(delta);
                // SAFETY: the remote range as it is addressed here; the local side is the caller's promise.
                unsafe { copy(to, run.local, run.n) };
                flip(to, "flip_put");
            });
            fence(Ordering::Release);
        }
        VisDirection::Get => {
            shape.each(|run| {
                // SAFETY: as above.
                unsafe { copy(run.local, run.remote.wrapping_add(delta), run.n) };
                flip(run.local, "flip_get");
            });
            fence(Ordering::Acquire);
        }
    }
}

/// Puts or gets all pieces of a shape: directly so far from their addresses at `delta`, if that is given. `function` names the caller in
/// messages. INVALID if it is complete when this returns, or implicit.
///
/// # Safety
/// The remote side must be accessible at `delta`, or have been checked to lie in the segment of `node`. The local side must be accessible, and
/// stay as it is until the operation is synced; the pieces of the destination do not overlap.
pub unsafe fn transfer(
    function: &'static str,
    job: &'static GasnetJob,
    direction: VisDirection,
    form: CompletionForm,
    node: u32,
    delta: Option<usize>,
    shape: &impl VisShape,
) -> OpHandle {
    if let Some(delta) = delta {
        // SAFETY: the caller's promise.
        unsafe { directly(direction, delta, shape) };
        return OpHandle::INVALID;
    }
    let ctx = job.ctx();
    let handle = (form != CompletionForm::Implicit).then(|| job.ops.begin(ctx.thread, 0));
    let issue = VisOperation { ctx, node, direction, handle, function };
    // SAFETY: the caller's promise.
    unsafe { initiate(&issue, shape) };
    match (form, handle) {
        (CompletionForm::Blocking, Some(handle)) => ctx.wait_op(handle),
        (_, Some(handle)) if !ctx.op_done(handle) => return handle,
        _ => {}
    }
    OpHandle::INVALID
}

#[cfg(test)]
mod tests {
    use super::vector::{MemVec, VectorTransfer};
    use super::*;

    #[test]
    fn nothing_waits_for_a_handler_unasked() {
        let mut vis =
            Vis { ampipe: false, remote_contig: None, max_chunk: 256, gets: Default::default() };
        let (near, far) =
            (ShapeSurvey { runs: 8, remote_runs: 1 }, ShapeSurvey { runs: 8, remote_runs: 5 });
        let plans = |vis: &Vis| {
            [
                (VisDirection::Put, near),
                (VisDirection::Put, far),
                (VisDirection::Get, near),
                (VisDirection::Get, far),
            ]
            .map(|(d, s)| vis.plan(d, s))
        };
        assert_eq!(plans(&vis), [VisPlan::Gathered, VisPlan::Each, VisPlan::Each, VisPlan::Each]);
        vis.remote_contig = Some(false);
        assert_eq!(plans(&vis), [VisPlan::Each; 4]);
        vis.ampipe = true;
        assert_eq!(plans(&vis), [VisPlan::Packed; 4]);
        vis.remote_contig = Some(true);
        assert_eq!(
            plans(&vis),
            [VisPlan::Gathered, VisPlan::Packed, VisPlan::Packed, VisPlan::Packed]
        );
        assert_eq!(
            vis.plan(VisDirection::Put, ShapeSurvey { runs: 1, remote_runs: 1 }),
            VisPlan::Each
        );
    }

    #[test]
    fn neighbours_there_are_seen() {
        let v = |addr: usize, len| MemVec { addr: core::ptr::without_provenance_mut(addr), len };
        let shape = VectorTransfer {
            remote: &[v(100, 12), v(200, 4)],
            local: &[v(10, 4), v(20, 4), v(30, 4), v(40, 4)],
        };
        assert_eq!(survey(&shape), ShapeSurvey { runs: 4, remote_runs: 2 });
        assert_eq!(
            survey(&VectorTransfer { remote: &[], local: &[] }),
            ShapeSurvey { runs: 0, remote_runs: 0 }
        );
    }
}
