//! Puts and gets: blocking, explicit and implicit.
//!
//! Called by `capi` with checked ranges, and by the value and memset forms. To a cross-mapped
//! peer (self included) a put or get is one copy and complete at once. Otherwise it goes
//! through the conduit as an operation of [`crate::runtime::ops`].
//!
//! Fences order direct copies. Release stands around a put: its data are seen after what this
//! thread stored before, and before what it stores later. Acquire stands after a get: what this
//! thread loads later is no older than the data.

use super::trains;
use crate::client_memory::{Dst, RemoteRange, Src};
use crate::conduit::{OpId, RmaClaim};
use crate::fault;
use crate::runtime::ops::{ImplicitKind, OpHandle};
use crate::runtime::{Ctx, GasnetJob};
use core::sync::atomic::{Ordering, fence};

/// A put to a mapped peer, or of no bytes. False if it must go through the conduit.
#[inline(always)]
fn put_directly(dst: RemoteRange, src: Src<'_>) -> bool {
    if dst.len() == 0 {
        return true;
    }
    let Some(dst) = dst.mapped() else { return false };
    fence(Ordering::Release);
    dst.copy_from(src);
    if fault::on("flip_put") {
        dst.flip(0);
    }
    fence(Ordering::Release);
    true
}

/// A get from a mapped peer, or of no bytes. False if it must go through the conduit.
#[inline(always)]
fn get_directly(dst: Dst<'_>, src: RemoteRange) -> bool {
    if src.len() == 0 {
        return true;
    }
    let Some(src) = src.mapped() else { return false };
    dst.copy_from(src.into());
    if fault::on("flip_get") {
        dst.flip(0);
    }
    fence(Ordering::Acquire);
    true
}

/// The end of a blocking form that went through the conduit.
#[inline(never)]
fn wait(job: &'static GasnetJob, handle: OpHandle) {
    job.ctx().wait_op(handle);
}

/// Opens an explicit operation for the calling thread.
#[inline(always)]
fn begin(job: &'static GasnetJob, n: usize) -> (Ctx, OpHandle) {
    let ctx = job.ctx();
    (ctx, job.ops.begin(ctx.thread_index(), job.endpoint.conduit.fragments(n)))
}

/// Counts an operation with the implicit ones of the calling thread, or with its access region.
#[inline(always)]
fn begin_implicit(job: &'static GasnetJob, which: ImplicitKind, n: usize) -> (Ctx, OpId) {
    let ctx = job.ctx();
    (ctx, job.ops.begin_implicit(ctx.thread_index(), which, job.endpoint.conduit.fragments(n)))
}

#[inline(never)]
fn put_by_conduit(job: &'static GasnetJob, dst: RemoteRange, src: Src<'_>) -> OpHandle {
    let (ctx, handle) = begin(job, dst.len());
    job.endpoint.conduit.put(ctx, dst, src, handle.op());
    handle
}

#[inline(never)]
fn put_bulk_by_conduit(job: &'static GasnetJob, dst: RemoteRange, src: Src<'static>) -> OpHandle {
    let (ctx, handle) = begin(job, dst.len());
    job.endpoint.conduit.put_bulk(ctx, dst, src, handle.op());
    handle
}

/// A put whose departures count, by a network that reports them.
#[inline(never)]
fn put_with_leaf_by_conduit(
    job: &'static GasnetJob,
    dst: RemoteRange,
    src: Src<'static>,
) -> OpHandle {
    let (ctx, conduit) = (job.ctx(), &job.endpoint.conduit);
    let fragments = conduit.fragments(dst.len());
    let handle = job.ops.begin_with_departures(ctx.thread_index(), fragments);
    conduit.put_bulk(ctx, dst, src, handle.op());
    handle
}

#[inline(never)]
fn get_by_conduit(job: &'static GasnetJob, dst: Dst<'static>, src: RemoteRange) -> OpHandle {
    let (ctx, handle) = begin(job, src.len());
    job.endpoint.conduit.get(ctx, dst, src, handle.op());
    handle
}

/// [`put_nbi`] of a put that is not [`put_is_complete`].
#[inline(never)]
pub fn implicit_put(job: &'static GasnetJob, dst: RemoteRange, src: Src<'_>) {
    if trains::put(job, dst, src) || job.endpoint.conduit.put_at_once(dst, src) {
        return;
    }
    let (ctx, op) = begin_implicit(job, ImplicitKind::Puts, dst.len());
    job.endpoint.conduit.put(ctx, dst, src, op);
}

#[inline(never)]
fn implicit_put_bulk(job: &'static GasnetJob, dst: RemoteRange, src: Src<'static>) {
    if trains::put(job, dst, src) || job.endpoint.conduit.put_at_once(dst, src) {
        return;
    }
    let (ctx, op) = begin_implicit(job, ImplicitKind::Puts, dst.len());
    job.endpoint.conduit.put_bulk(ctx, dst, src, op);
}

#[inline(never)]
fn implicit_put_with_departures(job: &'static GasnetJob, dst: RemoteRange, src: Src<'static>) {
    let conduit = &job.endpoint.conduit;
    if !conduit.reports_departures() {
        return implicit_put(job, dst, src);
    }
    if trains::put(job, dst, src) || conduit.put_at_once(dst, src) {
        return;
    }
    let (ctx, fragments) = (job.ctx(), conduit.fragments(dst.len()));
    let op = job.ops.begin_implicit_with_departures(ctx.thread_index(), fragments);
    conduit.put_bulk(ctx, dst, src, op);
}

#[inline(never)]
fn implicit_get(job: &'static GasnetJob, dst: Dst<'static>, src: RemoteRange) {
    if trains::get(job, dst, src) || job.endpoint.conduit.get_at_once(dst, src) {
        return;
    }
    let (ctx, op) = begin_implicit(job, ImplicitKind::Gets, src.len());
    job.endpoint.conduit.get(ctx, dst, src, op);
}

/// Whether a put is complete already: to mapped memory, or by a network that puts within the
/// call.
#[inline(always)]
fn put_at_once(job: &GasnetJob, dst: RemoteRange, src: Src<'_>) -> bool {
    put_directly(dst, src) || job.endpoint.conduit.put_at_once(dst, src)
}

/// Whether a get is complete already: from mapped memory, or by a network that gets within the
/// call.
#[inline(always)]
pub(super) fn get_at_once(job: &GasnetJob, dst: Dst<'_>, src: RemoteRange) -> bool {
    get_directly(dst, src) || job.endpoint.conduit.get_at_once(dst, src)
}

/// Puts; the data are at their destination when this returns.
#[inline(always)]
pub fn put(job: &'static GasnetJob, dst: RemoteRange, src: Src<'static>) {
    if !put_at_once(job, dst, src) {
        wait(job, put_bulk_by_conduit(job, dst, src));
    }
}

/// As [`put`], for a small source that need not outlive the call.
#[inline(always)]
pub(super) fn put_small(job: &'static GasnetJob, dst: RemoteRange, src: Src<'_>) {
    if !put_at_once(job, dst, src) {
        wait(job, put_by_conduit(job, dst, src));
    }
}

/// Gets; the data have arrived when this returns.
#[inline(always)]
pub fn get(job: &'static GasnetJob, dst: Dst<'static>, src: RemoteRange) {
    if !get_at_once(job, dst, src) {
        wait(job, get_by_conduit(job, dst, src));
    }
}

/// Initiates a put whose source may be reused when this returns; INVALID if it is complete
/// already.
#[inline(always)]
pub fn put_nb(job: &'static GasnetJob, dst: RemoteRange, src: Src<'_>) -> OpHandle {
    if put_at_once(job, dst, src) {
        return OpHandle::INVALID;
    }
    put_by_conduit(job, dst, src)
}

/// Initiates a put whose source is read until the sync; INVALID if it is complete already.
#[inline(always)]
pub fn put_nb_bulk(job: &'static GasnetJob, dst: RemoteRange, src: Src<'static>) -> OpHandle {
    if put_at_once(job, dst, src) {
        return OpHandle::INVALID;
    }
    put_bulk_by_conduit(job, dst, src)
}

/// Initiates a put whose source is read until it has departed: returns the operation and its leaf.
/// Each is INVALID if it is complete already.
#[inline(always)]
pub fn put_with_leaf(
    job: &'static GasnetJob,
    dst: RemoteRange,
    src: Src<'static>,
) -> (OpHandle, OpHandle) {
    if put_at_once(job, dst, src) {
        return (OpHandle::INVALID, OpHandle::INVALID);
    }
    let root = match job.endpoint.conduit.reports_departures() {
        true => put_with_leaf_by_conduit(job, dst, src),
        false => put_bulk_by_conduit(job, dst, src),
    };
    (root, job.ops.leaf_of(root))
}

/// Initiates a get; INVALID if it is complete already.
#[inline(always)]
pub fn get_nb(job: &'static GasnetJob, dst: Dst<'static>, src: RemoteRange) -> OpHandle {
    if get_at_once(job, dst, src) {
        return OpHandle::INVALID;
    }
    get_by_conduit(job, dst, src)
}

// The implicit forms look for mapped memory only, before what is rare: elsewhere they may join a
// train.

/// Whether an implicit put is complete already: to memory that is mapped here.
#[inline(always)]
pub fn put_is_complete(job: &'static GasnetJob, dst: RemoteRange, src: Src<'_>) -> bool {
    put_directly(dst, src) || job.endpoint.conduit.put_mapped(dst, src)
}

/// As [`put_nb`], collected by the calling thread or its access region.
#[inline(always)]
pub fn put_nbi(job: &'static GasnetJob, dst: RemoteRange, src: Src<'_>) {
    if !put_is_complete(job, dst, src) {
        implicit_put(job, dst, src);
    }
}

/// As [`put_nb_bulk`], collected by the calling thread or its access region.
#[inline(always)]
pub fn put_nbi_bulk(job: &'static GasnetJob, dst: RemoteRange, src: Src<'static>) {
    if !put_is_complete(job, dst, src) {
        implicit_put_bulk(job, dst, src);
    }
}

/// As [`put_nbi_bulk`]; the source may be reused once it has departed, as
/// [`ImplicitKind::Departures`] say.
#[inline(always)]
pub fn put_nbi_with_departures(job: &'static GasnetJob, dst: RemoteRange, src: Src<'static>) {
    if !put_directly(dst, src) && !job.endpoint.conduit.put_mapped(dst, src) {
        implicit_put_with_departures(job, dst, src);
    }
}

/// As [`get_nb`], collected by the calling thread or its access region.
#[inline(always)]
pub fn get_nbi(job: &'static GasnetJob, dst: Dst<'static>, src: RemoteRange) {
    if !get_directly(dst, src) && !job.endpoint.conduit.get_mapped(dst, src) {
        implicit_get(job, dst, src);
    }
}

// The immediate forms do nothing, and say so, where those above wait for what operations under
// way return. They join no train.

/// The source of an immediate put.
#[derive(Clone, Copy, Debug)]
pub enum PutSource<'a> {
    /// May be reused when the call returns.
    Now(Src<'a>),
    /// Is read until the sync.
    Bulk(Src<'static>),
}

impl PutSource<'_> {
    fn bytes(&self) -> Src<'_> {
        match *self {
            PutSource::Now(src) | PutSource::Bulk(src) => src,
        }
    }

    fn start(self, ctx: Ctx, dst: RemoteRange, op: OpId, claim: RmaClaim) {
        let conduit = &ctx.job.endpoint.conduit;
        match self {
            PutSource::Now(src) => conduit.put_claimed(ctx, dst, src, op, claim),
            PutSource::Bulk(src) => conduit.put_bulk_claimed(ctx, dst, src, op, claim),
        }
    }
}

/// The immediate [`put_nb`] or [`put_nb_bulk`].
#[inline(never)]
pub fn put_nb_now(
    job: &'static GasnetJob,
    dst: RemoteRange,
    src: PutSource<'_>,
) -> Option<OpHandle> {
    if put_at_once(job, dst, src.bytes()) {
        return Some(OpHandle::INVALID);
    }
    let claim = job.endpoint.conduit.claim()?;
    let (ctx, handle) = begin(job, dst.len());
    src.start(ctx, dst, handle.op(), claim);
    Some(handle)
}

/// The immediate [`put_nbi`] or [`put_nbi_bulk`]: whether it was initiated.
#[inline(never)]
pub fn put_nbi_now(job: &'static GasnetJob, dst: RemoteRange, src: PutSource<'_>) -> bool {
    if put_at_once(job, dst, src.bytes()) {
        return true;
    }
    let Some(claim) = job.endpoint.conduit.claim() else { return false };
    let (ctx, op) = begin_implicit(job, ImplicitKind::Puts, dst.len());
    src.start(ctx, dst, op, claim);
    true
}

/// The immediate [`put_nbi_with_departures`]: whether it was initiated.
#[inline(never)]
pub fn put_nbi_with_departures_now(
    job: &'static GasnetJob,
    dst: RemoteRange,
    src: Src<'static>,
) -> bool {
    let conduit = &job.endpoint.conduit;
    if !conduit.reports_departures() {
        return put_nbi_now(job, dst, PutSource::Now(src));
    }
    if put_at_once(job, dst, src) {
        return true;
    }
    let Some(claim) = conduit.claim() else { return false };
    let (ctx, fragments) = (job.ctx(), conduit.fragments(dst.len()));
    let op = job.ops.begin_implicit_with_departures(ctx.thread_index(), fragments);
    conduit.put_bulk_claimed(ctx, dst, src, op, claim);
    true
}

/// The immediate [`put`]: whether it was done.
pub fn put_now(job: &'static GasnetJob, dst: RemoteRange, src: Src<'static>) -> bool {
    wait_if_begun(job, put_nb_now(job, dst, PutSource::Bulk(src)))
}

/// The immediate [`get_nb`].
#[inline(never)]
pub fn get_nb_now(
    job: &'static GasnetJob,
    dst: Dst<'static>,
    src: RemoteRange,
) -> Option<OpHandle> {
    if get_at_once(job, dst, src) {
        return Some(OpHandle::INVALID);
    }
    let claim = job.endpoint.conduit.claim()?;
    let (ctx, handle) = begin(job, src.len());
    job.endpoint.conduit.get_claimed(ctx, dst, src, handle.op(), claim);
    Some(handle)
}

/// The immediate [`get_nbi`]: whether it was initiated.
#[inline(never)]
pub fn get_nbi_now(job: &'static GasnetJob, dst: Dst<'static>, src: RemoteRange) -> bool {
    if get_at_once(job, dst, src) {
        return true;
    }
    let Some(claim) = job.endpoint.conduit.claim() else { return false };
    let (ctx, op) = begin_implicit(job, ImplicitKind::Gets, src.len());
    job.endpoint.conduit.get_claimed(ctx, dst, src, op, claim);
    true
}

/// The immediate [`get`]: whether it was done.
pub fn get_now(job: &'static GasnetJob, dst: Dst<'static>, src: RemoteRange) -> bool {
    wait_if_begun(job, get_nb_now(job, dst, src))
}

pub(super) fn wait_if_begun(job: &'static GasnetJob, handle: Option<OpHandle>) -> bool {
    handle.map(|handle| wait(job, handle)).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rank::JobRank;
    use alloc::vec;

    #[test]
    fn a_mapped_range_is_written_and_read_at_once() {
        let segment: &'static mut [u8] = vec![0; 32].leak();
        let segment = Dst::from(segment);
        let data = [1u8, 2, 3, 4, 5];
        let mut back = [0u8; 5];
        let mapped = RemoteRange::mapped_at(JobRank(0), 3, segment.part(3, 5));
        assert!(put_directly(mapped, Src::from(&data[..])));
        assert!(get_directly(Dst::from(&mut back[..]), mapped));
        let unmapped = RemoteRange::unmapped(JobRank(1), 3, 5);
        assert!(!put_directly(unmapped, Src::from(&data[..])));
        assert!(put_directly(unmapped.part(0, 0), Src::empty()));
        assert_eq!(back, data);
        let mut first = [0u8; 10];
        Dst::from(&mut first[..]).copy_from(segment.part(0, 10).into());
        assert_eq!(first, [0, 0, 0, 1, 2, 3, 4, 5, 0, 0]);
    }
}
