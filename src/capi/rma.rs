//! Puts, gets and memsets of the extended API.

use super::abi::{gasnet_handle_t, gasnet_node_t};
use super::{ATTACHED, bad_node, explicit, outside_segment, own_memory, watched_job};
use crate::extended::memset;
use crate::extended::rma::{self, Remote};
use crate::runtime::GasnetJob;
use crate::runtime::checks::check_alignment;
use crate::trace::{What, watch};
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

/// Where we may address what lies in no segment: memory of our own, or null for no bytes. Ends the job over anything else.
#[cold]
#[inline(never)]
fn elsewhere(
    function: &str,
    job: &'static GasnetJob,
    node: gasnet_node_t,
    addr: *mut u8,
    n: usize,
) -> *mut u8 {
    if n == 0 {
        return core::ptr::null_mut();
    }
    if !own_memory(job, node, addr, n) {
        outside_segment(function, job.ctx(), node, addr.cast(), n);
    }
    addr
}

/// The job and the `n` bytes at `addr` of `node`; ends the job unless they lie in the segment of `node`, or are memory of our own
/// ([`own_memory`]). No bytes lie anywhere.
#[inline(always)]
pub(super) fn remote(
    function: &str,
    node: gasnet_node_t,
    addr: *mut c_void,
    n: usize,
) -> (&'static GasnetJob, Remote) {
    let job = job(function);
    let addr = addr.cast::<u8>();
    if node >= job.nodes {
        bad_node(function, node, job.nodes);
    }
    let segment = &job.segments()[node];
    let local = match segment.offset(addr, n) {
        Some(offset) if !segment.local.is_null() => segment.local.wrapping_add(offset),
        Some(_) => core::ptr::null_mut(),
        None => elsewhere(function, job, node, addr, n),
    };
    (job, Remote { node, addr, n, local })
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
    watch!(P "gasnet_put", What::moved(node, nbytes, dest, src), unsafe { gasnet_put(node, dest, src, nbytes) });
    let (job, dst) = remote("gasnet_put", node, dest, nbytes);
    check_alignment("gasnet_put", dst.addr, src.cast(), nbytes);
    // SAFETY: checked above; the rest is the caller's promise.
    unsafe { rma::put(job, dst, src.cast()) }
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
    watch!(P "gasnet_put_bulk", What::moved(node, nbytes, dest, src), unsafe { gasnet_put_bulk(node, dest, src, nbytes) });
    let (job, dst) = remote("gasnet_put_bulk", node, dest, nbytes);
    // SAFETY: checked above; the rest is the caller's promise.
    unsafe { rma::put(job, dst, src.cast()) }
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
    watch!(G "gasnet_get", What::moved(node, nbytes, src, dest), unsafe { gasnet_get(dest, node, src, nbytes) });
    let (job, src) = remote("gasnet_get", node, src, nbytes);
    check_alignment("gasnet_get", src.addr, dest.cast(), nbytes);
    // SAFETY: checked above; the rest is the caller's promise.
    unsafe { rma::get(job, dest.cast(), src) }
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
    watch!(G "gasnet_get_bulk", What::moved(node, nbytes, src, dest), unsafe { gasnet_get_bulk(dest, node, src, nbytes) });
    let (job, src) = remote("gasnet_get_bulk", node, src, nbytes);
    // SAFETY: checked above; the rest is the caller's promise.
    unsafe { rma::get(job, dest.cast(), src) }
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
    watch!(P "gasnet_put_nb", What::moved(node, nbytes, dest, src), unsafe { gasnet_put_nb(node, dest, src, nbytes) });
    let (job, dst) = remote("gasnet_put_nb", node, dest, nbytes);
    check_alignment("gasnet_put_nb", dst.addr, src.cast(), nbytes);
    // SAFETY: checked above; the rest is the caller's promise.
    explicit(job, unsafe { rma::put_nb(job, dst, src.cast(), false) })
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
    watch!(P "gasnet_put_nb_bulk", What::moved(node, nbytes, dest, src), unsafe { gasnet_put_nb_bulk(node, dest, src, nbytes) });
    let (job, dst) = remote("gasnet_put_nb_bulk", node, dest, nbytes);
    // SAFETY: checked above; the rest is the caller's promise.
    explicit(job, unsafe { rma::put_nb(job, dst, src.cast(), true) })
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
    watch!(G "gasnet_get_nb", What::moved(node, nbytes, src, dest), unsafe { gasnet_get_nb(dest, node, src, nbytes) });
    let (job, src) = remote("gasnet_get_nb", node, src, nbytes);
    check_alignment("gasnet_get_nb", src.addr, dest.cast(), nbytes);
    // SAFETY: checked above; the rest is the caller's promise.
    explicit(job, unsafe { rma::get_nb(job, dest.cast(), src) })
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
    watch!(G "gasnet_get_nb_bulk", What::moved(node, nbytes, src, dest), unsafe { gasnet_get_nb_bulk(dest, node, src, nbytes) });
    let (job, src) = remote("gasnet_get_nb_bulk", node, src, nbytes);
    // SAFETY: checked above; the rest is the caller's promise.
    explicit(job, unsafe { rma::get_nb(job, dest.cast(), src) })
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
    watch!(P "gasnet_put_nbi", What::moved(node, nbytes, dest, src), unsafe { gasnet_put_nbi(node, dest, src, nbytes) });
    let (job, dst) = remote("gasnet_put_nbi", node, dest, nbytes);
    check_alignment("gasnet_put_nbi", dst.addr, src.cast(), nbytes);
    // SAFETY: checked above; the rest is the caller's promise.
    unsafe { rma::put_nbi(job, dst, src.cast(), false) }
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
    watch!(P "gasnet_put_nbi_bulk", What::moved(node, nbytes, dest, src), unsafe { gasnet_put_nbi_bulk(node, dest, src, nbytes) });
    let (job, dst) = remote("gasnet_put_nbi_bulk", node, dest, nbytes);
    // SAFETY: checked above; the rest is the caller's promise.
    unsafe { rma::put_nbi(job, dst, src.cast(), true) }
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
    watch!(G "gasnet_get_nbi", What::moved(node, nbytes, src, dest), unsafe { gasnet_get_nbi(dest, node, src, nbytes) });
    let (job, src) = remote("gasnet_get_nbi", node, src, nbytes);
    check_alignment("gasnet_get_nbi", src.addr, dest.cast(), nbytes);
    // SAFETY: checked above; the rest is the caller's promise.
    unsafe { rma::get_nbi(job, dest.cast(), src) }
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
    watch!(G "gasnet_get_nbi_bulk", What::moved(node, nbytes, src, dest), unsafe { gasnet_get_nbi_bulk(dest, node, src, nbytes) });
    let (job, src) = remote("gasnet_get_nbi_bulk", node, src, nbytes);
    // SAFETY: checked above; the rest is the caller's promise.
    unsafe { rma::get_nbi(job, dest.cast(), src) }
}

/// `gasnet_memset`: `val` is converted to `unsigned char`, as in C.
#[unsafe(no_mangle)]
pub extern "C" fn gasnet_memset(
    node: gasnet_node_t,
    dest: *mut c_void,
    val: c_int,
    nbytes: usize,
) {
    watch!(P "gasnet_memset", What::moved(node, nbytes, dest, null::<u8>()), gasnet_memset(node, dest, val, nbytes));
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
    watch!(P "gasnet_memset_nb", What::moved(node, nbytes, dest, null::<u8>()), gasnet_memset_nb(node, dest, val, nbytes));
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
    watch!(P "gasnet_memset_nbi", What::moved(node, nbytes, dest, null::<u8>()), gasnet_memset_nbi(node, dest, val, nbytes));
    let (job, dst) = remote("gasnet_memset_nbi", node, dest, nbytes);
    memset::memset_nbi(job, dst, val as u8);
}
