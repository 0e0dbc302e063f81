//! Puts and gets: blocking, explicit and implicit.
//!
//! Called by `capi` with checked arguments, and by the value and memset forms. To a cross-mapped peer (self included)
//! a put or get is one copy through raw pointers and complete at once; otherwise it goes through the conduit as an operation
//! of [`crate::runtime::ops`]. Fences order direct copies: Release around a put, so that its data are seen after whatever
//! this thread stored before and before whatever it stores later; Acquire after a get, so that what it loads later is no
//! older than the data.

use crate::fault;
use crate::runtime::GasnetJob;
use crate::runtime::ops::{Handle, Implicit};
use core::ptr;
use core::sync::atomic::{Ordering, fence};

/// A range of bytes in a segment, checked to lie there, or in memory of our own.
#[derive(Clone, Copy, Debug)]
pub struct Remote {
    /// Whose segment.
    pub node: u32,
    /// First byte, as the owner addresses it.
    pub addr: *mut u8,
    /// Bytes.
    pub n: usize,
    /// First byte as we may address it directly; null if everything must go through the conduit.
    pub local: *mut u8,
}

/// Copies `n` bytes; objects of 1, 2, 4 and 8 bytes in one access each, so that a reader of an aligned one sees the
/// old or the new value. The ranges may overlap (a put to self).
///
/// # Safety
/// Both ranges must be accessible. Other threads and processes may touch them at the same time: ordering that is the
/// client's contract with GASNet, and no Rust reference is made here.
#[inline(always)]
pub(super) unsafe fn copy(dst: *mut u8, src: *const u8, n: usize) {
    // SAFETY: the caller's promise; unaligned accesses are asked for as such.
    unsafe {
        match n {
            1 => dst.write(src.read()),
            2 => dst.cast::<u16>().write_unaligned(src.cast::<u16>().read_unaligned()),
            4 => dst.cast::<u32>().write_unaligned(src.cast::<u32>().read_unaligned()),
            8 => dst.cast::<u64>().write_unaligned(src.cast::<u64>().read_unaligned()),
            _ => ptr::copy(src, dst, n),
        }
    }
}

/// A put to a mapped peer, or of no bytes. False if it must go through the conduit.
///
/// # Safety
/// As [`put`].
#[inline(always)]
unsafe fn put_directly(dst: Remote, src: *const u8) -> bool {
    if dst.n == 0 {
        return true;
    }
    if dst.local.is_null() {
        return false;
    }
    fence(Ordering::Release);
    // SAFETY: `local` is the checked range as it is addressed here; the source is the caller's promise.
    unsafe { copy(dst.local, src, dst.n) };
    if fault::on("flip_put") {
        // SAFETY: the first of at least one byte that was just written.
        unsafe { *dst.local ^= 1 };
    }
    fence(Ordering::Release);
    true
}

/// A get from a mapped peer, or of no bytes. False if it must go through the conduit.
///
/// # Safety
/// As [`get`].
#[inline(always)]
unsafe fn get_directly(dst: *mut u8, src: Remote) -> bool {
    if src.n == 0 {
        return true;
    }
    if src.local.is_null() {
        return false;
    }
    // SAFETY: `local` is the checked range as it is addressed here; the destination is the caller's promise.
    unsafe { copy(dst, src.local, src.n) };
    if fault::on("flip_get") {
        // SAFETY: the first of at least one byte that was just written.
        unsafe { *dst ^= 1 };
    }
    fence(Ordering::Acquire);
    true
}

/// The end of a blocking form that went through the conduit.
#[inline(never)]
fn wait(job: &'static GasnetJob, handle: Handle) {
    job.ctx().wait_op(handle);
}

/// Opens an explicit operation for the calling thread and puts through the conduit.
#[inline(never)]
unsafe fn put_by_conduit(
    job: &'static GasnetJob,
    dst: Remote,
    src: *const u8,
    bulk: bool,
) -> Handle {
    let ctx = job.ctx();
    let handle = job.ops.begin(ctx.thread, job.conduit.fragments(dst.n));
    // SAFETY: the caller's promises are those of the conduit; the range was checked.
    unsafe { job.conduit.put(ctx, dst.node, dst.addr, src, dst.n, handle.op(), bulk) };
    handle
}

/// Opens an explicit operation for the calling thread and gets through the conduit.
#[inline(never)]
unsafe fn get_by_conduit(job: &'static GasnetJob, dst: *mut u8, src: Remote) -> Handle {
    let ctx = job.ctx();
    let handle = job.ops.begin(ctx.thread, job.conduit.fragments(src.n));
    // SAFETY: the caller's promises are those of the conduit; the range was checked.
    unsafe { job.conduit.get(ctx, dst, src.node, src.addr, src.n, handle.op()) };
    handle
}

/// As [`put_by_conduit`], counted with the implicit puts of the calling thread or by its access region.
#[inline(never)]
unsafe fn implicit_put_by_conduit(
    job: &'static GasnetJob,
    dst: Remote,
    src: *const u8,
    bulk: bool,
) {
    let ctx = job.ctx();
    let op = job.ops.begin_implicit(ctx.thread, Implicit::Puts, job.conduit.fragments(dst.n));
    // SAFETY: the caller's promises are those of the conduit; the range was checked.
    unsafe { job.conduit.put(ctx, dst.node, dst.addr, src, dst.n, op, bulk) };
}

/// As [`get_by_conduit`], counted with the implicit gets of the calling thread or by its access region.
#[inline(never)]
unsafe fn implicit_get_by_conduit(job: &'static GasnetJob, dst: *mut u8, src: Remote) {
    let ctx = job.ctx();
    let op = job.ops.begin_implicit(ctx.thread, Implicit::Gets, job.conduit.fragments(src.n));
    // SAFETY: the caller's promises are those of the conduit; the range was checked.
    unsafe { job.conduit.get(ctx, dst, src.node, src.addr, src.n, op) };
}

/// Puts; the data are in place when this returns.
///
/// # Safety
/// `src` must be readable for `dst.n` bytes; `dst` must have been checked, as [`Remote`] says.
#[inline(always)]
pub unsafe fn put(job: &'static GasnetJob, dst: Remote, src: *const u8) {
    // SAFETY: the caller's promise, here and below; the operation is complete before this returns.
    if unsafe { put_directly(dst, src) || job.conduit.put_at_once(dst.node, dst.addr, src, dst.n) }
    {
        return;
    }
    // SAFETY: as above.
    let handle = unsafe { put_by_conduit(job, dst, src, true) };
    wait(job, handle);
}

/// Gets; the data are here when this returns.
///
/// # Safety
/// `dst` must be writable for `src.n` bytes; `src` must have been checked, as [`Remote`] says.
#[inline(always)]
pub unsafe fn get(job: &'static GasnetJob, dst: *mut u8, src: Remote) {
    // SAFETY: the caller's promise, here and below; the operation is complete before this returns.
    if unsafe { get_directly(dst, src) || job.conduit.get_at_once(dst, src.node, src.addr, src.n) }
    {
        return;
    }
    // SAFETY: as above.
    let handle = unsafe { get_by_conduit(job, dst, src) };
    wait(job, handle);
}

/// Initiates a put; INVALID if it is complete already. Unless `bulk`, the source may be reused when this returns.
///
/// # Safety
/// As [`put`], with `bulk` until the operation is synced.
#[inline(always)]
pub unsafe fn put_nb(job: &'static GasnetJob, dst: Remote, src: *const u8, bulk: bool) -> Handle {
    // SAFETY: the caller's promise.
    if unsafe { put_directly(dst, src) || job.conduit.put_at_once(dst.node, dst.addr, src, dst.n) }
    {
        return Handle::INVALID;
    }
    // SAFETY: the caller's promise.
    unsafe { put_by_conduit(job, dst, src, bulk) }
}

/// Initiates a get; INVALID if it is complete already.
///
/// # Safety
/// As [`get`], until the operation is synced.
#[inline(always)]
pub unsafe fn get_nb(job: &'static GasnetJob, dst: *mut u8, src: Remote) -> Handle {
    // SAFETY: the caller's promise.
    if unsafe { get_directly(dst, src) || job.conduit.get_at_once(dst, src.node, src.addr, src.n) }
    {
        return Handle::INVALID;
    }
    // SAFETY: the caller's promise.
    unsafe { get_by_conduit(job, dst, src) }
}

/// Initiates an implicit put, collected by the calling thread or its access region.
///
/// # Safety
/// As [`put_nb`].
#[inline(always)]
pub unsafe fn put_nbi(job: &'static GasnetJob, dst: Remote, src: *const u8, bulk: bool) {
    // SAFETY: the caller's promise.
    if unsafe { put_directly(dst, src) || job.conduit.put_at_once(dst.node, dst.addr, src, dst.n) }
    {
        return;
    }
    // SAFETY: the caller's promise.
    unsafe { implicit_put_by_conduit(job, dst, src, bulk) }
}

/// Initiates an implicit get, collected by the calling thread or its access region.
///
/// # Safety
/// As [`get_nb`].
#[inline(always)]
pub unsafe fn get_nbi(job: &'static GasnetJob, dst: *mut u8, src: Remote) {
    // SAFETY: the caller's promise.
    if unsafe { get_directly(dst, src) || job.conduit.get_at_once(dst, src.node, src.addr, src.n) }
    {
        return;
    }
    // SAFETY: the caller's promise.
    unsafe { implicit_get_by_conduit(job, dst, src) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;

    #[test]
    fn copies_of_every_small_size_and_alignment() {
        let src: Vec<u8> = (0..64).collect();
        for n in 0..=24 {
            for from in 0..8 {
                for to in 0..8 {
                    let mut dst = vec![0xeeu8; 64];
                    // SAFETY: 8 + 24 is within both vectors.
                    unsafe { copy(dst.as_mut_ptr().add(to), src.as_ptr().add(from), n) };
                    assert_eq!(dst[to..to + n], src[from..from + n]);
                    assert!(dst[..to].iter().chain(&dst[to + n..]).all(|&b| b == 0xee));
                }
            }
        }
    }

    #[test]
    fn a_mapped_range_is_written_and_read_at_once() {
        let mut segment = vec![0u8; 32];
        let at = |offset: usize, n: usize, base: *mut u8| Remote {
            node: 0,
            addr: ptr::null_mut(),
            n,
            // SAFETY: offsets in these tests are within the vector.
            local: unsafe { base.add(offset) },
        };
        let base = segment.as_mut_ptr();
        let data = [1u8, 2, 3, 4, 5];
        let mut back = [0u8; 5];
        // SAFETY: all ranges are within the vector and the arrays.
        unsafe {
            assert!(put_directly(at(3, 5, base), data.as_ptr()));
            assert!(get_directly(back.as_mut_ptr(), at(3, 5, base)));
            let unmapped = Remote { node: 1, addr: base, n: 5, local: ptr::null_mut() };
            assert!(!put_directly(unmapped, data.as_ptr()));
            assert!(put_directly(Remote { n: 0, ..unmapped }, ptr::null()));
        }
        assert_eq!(back, data);
        assert_eq!(segment[..10], [0, 0, 0, 1, 2, 3, 4, 5, 0, 0]);
    }
}
