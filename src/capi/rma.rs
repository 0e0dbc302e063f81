//! Puts, gets and memsets of the extended API.

use super::abi::{gasnet_handle_t, gasnet_node_t};
use super::{ATTACHED, explicit, watched_job};
use crate::client_memory::{Dst, RemoteRange, Src};
use crate::extended::memset;
use crate::extended::rma;
use crate::runtime::GasnetJob;
use crate::runtime::checks::check_alignment;
use crate::trace::{EventDetail, watch};
use core::ffi::{c_int, c_void};
use core::ptr::null;
use core::sync::atomic::Ordering;

/// The job, without looking up which thread calls; ends the process if there is none yet.
#[inline(always)]
pub(super) fn job(function: &str) -> &'static GasnetJob {
    // SAFETY: null, or a job that was attached; jobs live until the process ends.
    match unsafe { ATTACHED.load(Ordering::Acquire).as_ref() } {
        Some(job) => job,
        None => watched_job(function),
    }
}

/// The job and the `n` bytes at `addr` of `node` ([`GasnetJob::remote_range`]).
#[inline(always)]
pub(super) fn remote(
    function: &str,
    node: gasnet_node_t,
    addr: *mut c_void,
    n: usize,
) -> (&'static GasnetJob, RemoteRange) {
    let job = job(function);
    (job, job.remote_range(function, node, addr.cast(), n))
}

/// `gasnet_put`
///
/// # Safety
/// `src` must be readable for `nbytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnet_put(
    node: gasnet_node_t,
    dest: *mut c_void,
    src: *mut c_void,
    nbytes: usize,
) {
    // SAFETY: the same call again.
    watch!(P "gasnet_put", EventDetail::moved(node, nbytes, dest, src), unsafe { gasnet_put(node, dest, src, nbytes) });
    let (job, dst) = remote("gasnet_put", node, dest, nbytes);
    check_alignment("gasnet_put", dest.cast(), src.cast(), nbytes);
    // SAFETY: readable, as the client promises of a source.
    rma::put(job, dst, unsafe { Src::new(src.cast(), nbytes) });
}

/// `gasnet_put_bulk`
///
/// # Safety
/// `src` must be readable for `nbytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnet_put_bulk(
    node: gasnet_node_t,
    dest: *mut c_void,
    src: *mut c_void,
    nbytes: usize,
) {
    // SAFETY: the same call again.
    watch!(P "gasnet_put_bulk", EventDetail::moved(node, nbytes, dest, src), unsafe { gasnet_put_bulk(node, dest, src, nbytes) });
    let (job, dst) = remote("gasnet_put_bulk", node, dest, nbytes);
    // SAFETY: readable, as the client promises of a source.
    rma::put(job, dst, unsafe { Src::new(src.cast(), nbytes) });
}

/// `gasnet_get`
///
/// # Safety
/// `dest` must be writable for `nbytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnet_get(
    dest: *mut c_void,
    node: gasnet_node_t,
    src: *mut c_void,
    nbytes: usize,
) {
    // SAFETY: the same call again.
    watch!(G "gasnet_get", EventDetail::moved(node, nbytes, src, dest), unsafe { gasnet_get(dest, node, src, nbytes) });
    let (job, from) = remote("gasnet_get", node, src, nbytes);
    check_alignment("gasnet_get", src.cast(), dest.cast(), nbytes);
    // SAFETY: writable, as the client promises of a destination.
    rma::get(job, unsafe { Dst::new(dest.cast(), nbytes) }, from);
}

/// `gasnet_get_bulk`
///
/// # Safety
/// `dest` must be writable for `nbytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnet_get_bulk(
    dest: *mut c_void,
    node: gasnet_node_t,
    src: *mut c_void,
    nbytes: usize,
) {
    // SAFETY: the same call again.
    watch!(G "gasnet_get_bulk", EventDetail::moved(node, nbytes, src, dest), unsafe { gasnet_get_bulk(dest, node, src, nbytes) });
    let (job, from) = remote("gasnet_get_bulk", node, src, nbytes);
    // SAFETY: writable, as the client promises of a destination.
    rma::get(job, unsafe { Dst::new(dest.cast(), nbytes) }, from);
}

/// `gasnet_put_nb`: the source may be reused when this returns.
///
/// # Safety
/// `src` must be readable for `nbytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnet_put_nb(
    node: gasnet_node_t,
    dest: *mut c_void,
    src: *mut c_void,
    nbytes: usize,
) -> gasnet_handle_t {
    // SAFETY: the same call again.
    watch!(P "gasnet_put_nb", EventDetail::moved(node, nbytes, dest, src), unsafe { gasnet_put_nb(node, dest, src, nbytes) });
    let (job, dst) = remote("gasnet_put_nb", node, dest, nbytes);
    check_alignment("gasnet_put_nb", dest.cast(), src.cast(), nbytes);
    // SAFETY: readable, as the client promises of a source.
    let src = unsafe { Src::new(src.cast(), nbytes) };
    explicit(job, rma::put_nb(job, dst, src))
}

/// `gasnet_put_nb_bulk`: the source must stay as it is until the sync.
///
/// # Safety
/// `src` must be readable for `nbytes` bytes until the sync.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnet_put_nb_bulk(
    node: gasnet_node_t,
    dest: *mut c_void,
    src: *mut c_void,
    nbytes: usize,
) -> gasnet_handle_t {
    // SAFETY: the same call again.
    watch!(P "gasnet_put_nb_bulk", EventDetail::moved(node, nbytes, dest, src), unsafe { gasnet_put_nb_bulk(node, dest, src, nbytes) });
    let (job, dst) = remote("gasnet_put_nb_bulk", node, dest, nbytes);
    // SAFETY: readable until the sync, as the client promises of a source.
    let src = unsafe { Src::new(src.cast(), nbytes) };
    explicit(job, rma::put_nb_bulk(job, dst, src))
}

/// `gasnet_get_nb`
///
/// # Safety
/// `dest` must be writable for `nbytes` bytes until the sync.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnet_get_nb(
    dest: *mut c_void,
    node: gasnet_node_t,
    src: *mut c_void,
    nbytes: usize,
) -> gasnet_handle_t {
    // SAFETY: the same call again.
    watch!(G "gasnet_get_nb", EventDetail::moved(node, nbytes, src, dest), unsafe { gasnet_get_nb(dest, node, src, nbytes) });
    let (job, from) = remote("gasnet_get_nb", node, src, nbytes);
    check_alignment("gasnet_get_nb", src.cast(), dest.cast(), nbytes);
    // SAFETY: writable until the sync, as the client promises of a destination.
    let dst = unsafe { Dst::new(dest.cast(), nbytes) };
    explicit(job, rma::get_nb(job, dst, from))
}

/// `gasnet_get_nb_bulk`
///
/// # Safety
/// `dest` must be writable for `nbytes` bytes until the sync.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnet_get_nb_bulk(
    dest: *mut c_void,
    node: gasnet_node_t,
    src: *mut c_void,
    nbytes: usize,
) -> gasnet_handle_t {
    // SAFETY: the same call again.
    watch!(G "gasnet_get_nb_bulk", EventDetail::moved(node, nbytes, src, dest), unsafe { gasnet_get_nb_bulk(dest, node, src, nbytes) });
    let (job, from) = remote("gasnet_get_nb_bulk", node, src, nbytes);
    // SAFETY: writable until the sync, as the client promises of a destination.
    let dst = unsafe { Dst::new(dest.cast(), nbytes) };
    explicit(job, rma::get_nb(job, dst, from))
}

/// `gasnet_put_nbi`: the source may be reused when this returns.
///
/// # Safety
/// `src` must be readable for `nbytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnet_put_nbi(
    node: gasnet_node_t,
    dest: *mut c_void,
    src: *mut c_void,
    nbytes: usize,
) {
    // SAFETY: the same call again.
    watch!(P "gasnet_put_nbi", EventDetail::moved(node, nbytes, dest, src), unsafe { gasnet_put_nbi(node, dest, src, nbytes) });
    let (job, dst) = remote("gasnet_put_nbi", node, dest, nbytes);
    check_alignment("gasnet_put_nbi", dest.cast(), src.cast(), nbytes);
    // SAFETY: readable, as the client promises of a source.
    rma::put_nbi(job, dst, unsafe { Src::new(src.cast(), nbytes) });
}

/// `gasnet_put_nbi_bulk`: the source must stay as it is until the sync.
///
/// # Safety
/// `src` must be readable for `nbytes` bytes until the sync.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnet_put_nbi_bulk(
    node: gasnet_node_t,
    dest: *mut c_void,
    src: *mut c_void,
    nbytes: usize,
) {
    // SAFETY: the same call again.
    watch!(P "gasnet_put_nbi_bulk", EventDetail::moved(node, nbytes, dest, src), unsafe { gasnet_put_nbi_bulk(node, dest, src, nbytes) });
    let (job, dst) = remote("gasnet_put_nbi_bulk", node, dest, nbytes);
    // SAFETY: readable until the sync, as the client promises of a source.
    rma::put_nbi_bulk(job, dst, unsafe { Src::new(src.cast(), nbytes) });
}

/// `gasnet_get_nbi`
///
/// # Safety
/// `dest` must be writable for `nbytes` bytes until the sync.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnet_get_nbi(
    dest: *mut c_void,
    node: gasnet_node_t,
    src: *mut c_void,
    nbytes: usize,
) {
    // SAFETY: the same call again.
    watch!(G "gasnet_get_nbi", EventDetail::moved(node, nbytes, src, dest), unsafe { gasnet_get_nbi(dest, node, src, nbytes) });
    let (job, from) = remote("gasnet_get_nbi", node, src, nbytes);
    check_alignment("gasnet_get_nbi", src.cast(), dest.cast(), nbytes);
    // SAFETY: writable until the sync, as the client promises of a destination.
    rma::get_nbi(job, unsafe { Dst::new(dest.cast(), nbytes) }, from);
}

/// `gasnet_get_nbi_bulk`
///
/// # Safety
/// `dest` must be writable for `nbytes` bytes until the sync.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnet_get_nbi_bulk(
    dest: *mut c_void,
    node: gasnet_node_t,
    src: *mut c_void,
    nbytes: usize,
) {
    // SAFETY: the same call again.
    watch!(G "gasnet_get_nbi_bulk", EventDetail::moved(node, nbytes, src, dest), unsafe { gasnet_get_nbi_bulk(dest, node, src, nbytes) });
    let (job, from) = remote("gasnet_get_nbi_bulk", node, src, nbytes);
    // SAFETY: writable until the sync, as the client promises of a destination.
    rma::get_nbi(job, unsafe { Dst::new(dest.cast(), nbytes) }, from);
}

/// `gasnet_memset`: `val` is converted to `unsigned char`, as in C.
#[unsafe(no_mangle)]
pub extern "C" fn gasnet_memset(
    node: gasnet_node_t,
    dest: *mut c_void,
    val: c_int,
    nbytes: usize,
) {
    watch!(P "gasnet_memset", EventDetail::moved(node, nbytes, dest, null::<u8>()), gasnet_memset(node, dest, val, nbytes));
    let (job, dst) = remote("gasnet_memset", node, dest, nbytes);
    memset::memset(job, dst, val as u8);
}

/// `gasnet_memset_nb`
#[unsafe(no_mangle)]
pub extern "C" fn gasnet_memset_nb(
    node: gasnet_node_t,
    dest: *mut c_void,
    val: c_int,
    nbytes: usize,
) -> gasnet_handle_t {
    watch!(P "gasnet_memset_nb", EventDetail::moved(node, nbytes, dest, null::<u8>()), gasnet_memset_nb(node, dest, val, nbytes));
    let (job, dst) = remote("gasnet_memset_nb", node, dest, nbytes);
    explicit(job, memset::memset_nb(job, "gasnet_memset_nb", dst, val as u8))
}

/// `gasnet_memset_nbi`: counts as a put.
#[unsafe(no_mangle)]
pub extern "C" fn gasnet_memset_nbi(
    node: gasnet_node_t,
    dest: *mut c_void,
    val: c_int,
    nbytes: usize,
) {
    watch!(P "gasnet_memset_nbi", EventDetail::moved(node, nbytes, dest, null::<u8>()), gasnet_memset_nbi(node, dest, val, nbytes));
    let (job, dst) = remote("gasnet_memset_nbi", node, dest, nbytes);
    memset::memset_nbi(job, dst, val as u8);
}
