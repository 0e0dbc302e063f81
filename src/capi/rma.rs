//! Puts, gets and memsets of the extended API.
//!
//! Called by clients; `value` shares the checks. Invariant: a remote address reaches the extended
//! layer as a [`RemoteRange`]. That lies in the segment of its rank, in memory of this process, or
//! in EVERYTHING anywhere in its rank.

use super::abi::{gasnet_handle_t, gasnet_node_t};
use super::{ATTACHED, explicit, watched_job};
use crate::client_memory::{Dst, RemoteRange, Src, UncheckedRange};
use crate::extended::memset;
use crate::extended::rma;
use crate::runtime::GasnetJob;
use crate::runtime::checks::{self, check_alignment, check_local};
use crate::trace::{EventDetail, watch};
use core::ffi::{c_int, c_void};
use core::ptr::null;
use core::sync::atomic::Ordering;

/// The job, without looking up which thread calls; `None` if there is none yet, or if calls are
/// watched.
#[inline(always)]
pub(super) fn unwatched_job() -> Option<&'static GasnetJob> {
    // SAFETY: null, or a job that was attached; jobs live until the process ends.
    unsafe { ATTACHED.load(Ordering::Acquire).as_ref() }
}

/// The same, also if calls are watched; ends the process if there is none yet.
#[inline(always)]
pub(super) fn job(function: &str) -> &'static GasnetJob {
    unwatched_job().unwrap_or_else(|| watched_job(function))
}

/// An argument of a call that is an address of this process, and its name.
pub(super) type LocalArgument = (&'static str, *const c_void);

/// The job where calls are watched; with debug checks, a local address may be null only without
/// bytes.
#[cold]
#[inline(never)]
pub(super) fn watched_local(
    function: &str,
    argument: &str,
    address: *const c_void,
    n: usize,
) -> &'static GasnetJob {
    let job = watched_job(function);
    if checks::on() {
        check_local(function, (argument, address.cast()), n);
    }
    job
}

/// The job and the `n` bytes at `addr` of `node`, which its endpoint resolves. With debug checks,
/// `local` may be null only without bytes.
#[inline(always)]
pub(super) fn remote(
    function: &str,
    node: gasnet_node_t,
    addr: *mut c_void,
    n: usize,
    local: Option<LocalArgument>,
) -> (&'static GasnetJob, RemoteRange) {
    // Not a closure, whose captures would be stored in each call.
    let job = match (unwatched_job(), local) {
        (Some(job), _) => job,
        (None, Some((argument, address))) => watched_local(function, argument, address, n),
        (None, None) => watched_job(function),
    };
    // SAFETY: the specification demands an address in the segment of the rank; gasnet.h adds
    // that a rank may name any memory of its own.
    let bytes = unsafe { UncheckedRange::new(addr.cast(), n) };
    (job, job.endpoint.remote_range(function, job.team.check_rank(function, node), bytes))
}

/// Copies memory of the caller to the segment of a rank, and returns when the data are there.
///
/// A later get of this thread may be done before other ranks see the data. Where two ranks put and
/// then get what the other put, each calls `gasnett_local_mb()` in between.
///
/// Both addresses are aligned for an object of `nbytes` bytes; the bulk form takes any address.
/// An invalid rank, or an address outside the segment, ends the job with a message.
///
/// - `node`: the target, a rank below `gasnet_nodes()`; this process is one.
/// - `dest`: destination, an address of the target: `nbytes` bytes of its segment.
/// - `src`: source, any memory of the caller; it may be reused when the call returns.
/// - `nbytes`: bytes to copy; 0 is allowed and does nothing.
/// - Context: after `gasnet_attach`; not in a handler or a no-interrupt section, and not while
///   a handler-safe lock is held.
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
    watch!(
        P "gasnet_put",
        EventDetail::moved(node, nbytes, dest, src),
        gasnet_put(node, dest, src, nbytes)
    );
    let (job, dst) = remote("gasnet_put", node, dest, nbytes, Some(("src", src)));
    check_alignment("gasnet_put", dest.cast(), src.cast(), nbytes);
    // SAFETY: the specification demands `nbytes` readable bytes as the source, until the call
    // returns.
    rma::put(job, dst, unsafe { Src::new(src.cast(), nbytes) });
}

/// As `gasnet_put`, for addresses of any alignment.
///
/// An invalid rank, or an address outside the segment, ends the job with a message.
///
/// - `node`: the target, a rank below `gasnet_nodes()`; this process is one.
/// - `dest`: destination, an address of the target: `nbytes` bytes of its segment.
/// - `src`: source, any memory of the caller; it may be reused when the call returns.
/// - `nbytes`: bytes to copy; 0 is allowed and does nothing.
/// - Context: after `gasnet_attach`; not in a handler or a no-interrupt section, and not while
///   a handler-safe lock is held.
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
    watch!(
        P "gasnet_put_bulk",
        EventDetail::moved(node, nbytes, dest, src),
        gasnet_put_bulk(node, dest, src, nbytes)
    );
    let (job, dst) = remote("gasnet_put_bulk", node, dest, nbytes, Some(("src", src)));
    // SAFETY: the specification demands `nbytes` readable bytes as the source, until the call
    // returns.
    rma::put(job, dst, unsafe { Src::new(src.cast(), nbytes) });
}

/// Copies from the segment of a rank to memory of the caller, and returns when the data have
/// arrived.
///
/// Both addresses are aligned for an object of `nbytes` bytes; the bulk form takes any address.
/// An invalid rank, or an address outside the segment, ends the job with a message.
///
/// - `dest`: destination, any memory of the caller.
/// - `node`: the rank that owns the source, a rank below `gasnet_nodes()`; this process is one.
/// - `src`: source, an address of that rank: `nbytes` bytes of its segment.
/// - `nbytes`: bytes to copy; 0 is allowed and does nothing.
/// - Context: after `gasnet_attach`; not in a handler or a no-interrupt section, and not while
///   a handler-safe lock is held.
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
    watch!(
        G "gasnet_get",
        EventDetail::moved(node, nbytes, src, dest),
        gasnet_get(dest, node, src, nbytes)
    );
    let (job, from) = remote("gasnet_get", node, src, nbytes, Some(("dest", dest)));
    check_alignment("gasnet_get", src.cast(), dest.cast(), nbytes);
    // SAFETY: the specification demands `nbytes` writable bytes as the destination.
    rma::get(job, unsafe { Dst::new(dest.cast(), nbytes) }, from);
}

/// As `gasnet_get`, for addresses of any alignment.
///
/// An invalid rank, or an address outside the segment, ends the job with a message.
///
/// - `dest`: destination, any memory of the caller.
/// - `node`: the rank that owns the source, a rank below `gasnet_nodes()`; this process is one.
/// - `src`: source, an address of that rank: `nbytes` bytes of its segment.
/// - `nbytes`: bytes to copy; 0 is allowed and does nothing.
/// - Context: after `gasnet_attach`; not in a handler or a no-interrupt section, and not while
///   a handler-safe lock is held.
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
    watch!(
        G "gasnet_get_bulk",
        EventDetail::moved(node, nbytes, src, dest),
        gasnet_get_bulk(dest, node, src, nbytes)
    );
    let (job, from) = remote("gasnet_get_bulk", node, src, nbytes, Some(("dest", dest)));
    // SAFETY: the specification demands `nbytes` writable bytes as the destination.
    rma::get(job, unsafe { Dst::new(dest.cast(), nbytes) }, from);
}

/// Initiates a put with an explicit handle.
///
/// The data are at their destination once the handle is synced. Both addresses are aligned for
/// an object of `nbytes` bytes; the bulk form takes any address.
///
/// - `node`: the target, a rank below `gasnet_nodes()`; this process is one.
/// - `dest`: destination, an address of the target: `nbytes` bytes of its segment.
/// - `src`: source, any memory of the caller; it may be reused when the call returns.
/// - `nbytes`: bytes to copy; 0 is allowed and does nothing.
/// - Returns a handle for `gasnet_wait_syncnb` and `gasnet_try_syncnb` in the calling thread,
///   or `GASNET_INVALID_HANDLE` if the operation is complete already.
/// - Context: after `gasnet_attach`; not in a handler or a no-interrupt section, and not while
///   a handler-safe lock is held.
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
    watch!(
        P "gasnet_put_nb",
        EventDetail::moved(node, nbytes, dest, src),
        gasnet_put_nb(node, dest, src, nbytes)
    );
    let (job, dst) = remote("gasnet_put_nb", node, dest, nbytes, Some(("src", src)));
    check_alignment("gasnet_put_nb", dest.cast(), src.cast(), nbytes);
    // SAFETY: the specification demands `nbytes` readable bytes as the source, until the call
    // returns.
    let src = unsafe { Src::new(src.cast(), nbytes) };
    explicit(job, rma::put_nb(job, dst, src))
}

/// As `gasnet_put_nb`, for addresses of any alignment, and the source is in use until the sync.
///
/// The data are at their destination once the handle is synced.
///
/// - `node`: the target, a rank below `gasnet_nodes()`; this process is one.
/// - `dest`: destination, an address of the target: `nbytes` bytes of its segment.
/// - `src`: source, any memory of the caller; it must not change until the operation is synced.
/// - `nbytes`: bytes to copy; 0 is allowed and does nothing.
/// - Returns a handle for `gasnet_wait_syncnb` and `gasnet_try_syncnb` in the calling thread,
///   or `GASNET_INVALID_HANDLE` if the operation is complete already.
/// - Context: after `gasnet_attach`; not in a handler or a no-interrupt section, and not while
///   a handler-safe lock is held.
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
    watch!(
        P "gasnet_put_nb_bulk",
        EventDetail::moved(node, nbytes, dest, src),
        gasnet_put_nb_bulk(node, dest, src, nbytes)
    );
    let (job, dst) = remote("gasnet_put_nb_bulk", node, dest, nbytes, Some(("src", src)));
    // SAFETY: the specification demands that the source is readable until the sync.
    let src = unsafe { Src::new(src.cast(), nbytes) };
    explicit(job, rma::put_nb_bulk(job, dst, src))
}

/// Initiates a get with an explicit handle.
///
/// The data have arrived once the handle is synced. Both addresses are aligned for an object of
/// `nbytes` bytes; the bulk form takes any address.
///
/// - `dest`: destination, any memory of the caller; it is undefined, and must stay allocated,
///   until the operation is synced.
/// - `node`: the rank that owns the source, a rank below `gasnet_nodes()`; this process is one.
/// - `src`: source, an address of that rank: `nbytes` bytes of its segment.
/// - `nbytes`: bytes to copy; 0 is allowed and does nothing.
/// - Returns a handle for `gasnet_wait_syncnb` and `gasnet_try_syncnb` in the calling thread,
///   or `GASNET_INVALID_HANDLE` if the operation is complete already.
/// - Context: after `gasnet_attach`; not in a handler or a no-interrupt section, and not while
///   a handler-safe lock is held.
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
    watch!(
        G "gasnet_get_nb",
        EventDetail::moved(node, nbytes, src, dest),
        gasnet_get_nb(dest, node, src, nbytes)
    );
    let (job, from) = remote("gasnet_get_nb", node, src, nbytes, Some(("dest", dest)));
    check_alignment("gasnet_get_nb", src.cast(), dest.cast(), nbytes);
    // SAFETY: the specification demands that the destination stays writable until the sync.
    let dst = unsafe { Dst::new(dest.cast(), nbytes) };
    explicit(job, rma::get_nb(job, dst, from))
}

/// As `gasnet_get_nb`, for addresses of any alignment.
///
/// The data have arrived once the handle is synced.
///
/// - `dest`: destination, any memory of the caller; it is undefined, and must stay allocated,
///   until the operation is synced.
/// - `node`: the rank that owns the source, a rank below `gasnet_nodes()`; this process is one.
/// - `src`: source, an address of that rank: `nbytes` bytes of its segment.
/// - `nbytes`: bytes to copy; 0 is allowed and does nothing.
/// - Returns a handle for `gasnet_wait_syncnb` and `gasnet_try_syncnb` in the calling thread,
///   or `GASNET_INVALID_HANDLE` if the operation is complete already.
/// - Context: after `gasnet_attach`; not in a handler or a no-interrupt section, and not while
///   a handler-safe lock is held.
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
    watch!(
        G "gasnet_get_nb_bulk",
        EventDetail::moved(node, nbytes, src, dest),
        gasnet_get_nb_bulk(dest, node, src, nbytes)
    );
    let (job, from) = remote("gasnet_get_nb_bulk", node, src, nbytes, Some(("dest", dest)));
    // SAFETY: the specification demands that the destination stays writable until the sync.
    let dst = unsafe { Dst::new(dest.cast(), nbytes) };
    explicit(job, rma::get_nb(job, dst, from))
}

/// Initiates an implicit put. It belongs to the implicit operations of the calling thread, or
/// to its open access region.
///
/// The data are at their destination after `gasnet_wait_syncnbi_puts` or `_all`. Both addresses
/// are aligned for an object of `nbytes` bytes; the bulk form takes any address.
///
/// - `node`: the target, a rank below `gasnet_nodes()`; this process is one.
/// - `dest`: destination, an address of the target: `nbytes` bytes of its segment.
/// - `src`: source, any memory of the caller; it may be reused when the call returns.
/// - `nbytes`: bytes to copy; 0 is allowed and does nothing.
/// - Context: after `gasnet_attach`; not in a handler or a no-interrupt section, and not while
///   a handler-safe lock is held.
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
    watch!(
        P "gasnet_put_nbi",
        EventDetail::moved(node, nbytes, dest, src),
        gasnet_put_nbi(node, dest, src, nbytes)
    );
    let (job, dst) = remote("gasnet_put_nbi", node, dest, nbytes, Some(("src", src)));
    check_alignment("gasnet_put_nbi", dest.cast(), src.cast(), nbytes);
    // SAFETY: the specification demands `nbytes` readable bytes as the source, until the call
    // returns.
    rma::put_nbi(job, dst, unsafe { Src::new(src.cast(), nbytes) });
}

/// As `gasnet_put_nbi`, for addresses of any alignment, and the source is in use until the
/// sync.
///
/// The data are at their destination after `gasnet_wait_syncnbi_puts` or `_all`.
///
/// - `node`: the target, a rank below `gasnet_nodes()`; this process is one.
/// - `dest`: destination, an address of the target: `nbytes` bytes of its segment.
/// - `src`: source, any memory of the caller; it must not change until the operation is synced.
/// - `nbytes`: bytes to copy; 0 is allowed and does nothing.
/// - Context: after `gasnet_attach`; not in a handler or a no-interrupt section, and not while
///   a handler-safe lock is held.
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
    watch!(
        P "gasnet_put_nbi_bulk",
        EventDetail::moved(node, nbytes, dest, src),
        gasnet_put_nbi_bulk(node, dest, src, nbytes)
    );
    let (job, dst) = remote("gasnet_put_nbi_bulk", node, dest, nbytes, Some(("src", src)));
    // SAFETY: the specification demands that the source is readable until the sync.
    rma::put_nbi_bulk(job, dst, unsafe { Src::new(src.cast(), nbytes) });
}

/// Initiates an implicit get. It belongs to the implicit operations of the calling thread, or
/// to its open access region.
///
/// The data have arrived after `gasnet_wait_syncnbi_gets` or `_all`. Both addresses are aligned
/// for an object of `nbytes` bytes; the bulk form takes any address.
///
/// - `dest`: destination, any memory of the caller; it is undefined, and must stay allocated,
///   until the operation is synced.
/// - `node`: the rank that owns the source, a rank below `gasnet_nodes()`; this process is one.
/// - `src`: source, an address of that rank: `nbytes` bytes of its segment.
/// - `nbytes`: bytes to copy; 0 is allowed and does nothing.
/// - Context: after `gasnet_attach`; not in a handler or a no-interrupt section, and not while
///   a handler-safe lock is held.
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
    watch!(
        G "gasnet_get_nbi",
        EventDetail::moved(node, nbytes, src, dest),
        gasnet_get_nbi(dest, node, src, nbytes)
    );
    let (job, from) = remote("gasnet_get_nbi", node, src, nbytes, Some(("dest", dest)));
    check_alignment("gasnet_get_nbi", src.cast(), dest.cast(), nbytes);
    // SAFETY: the specification demands that the destination stays writable until the sync.
    rma::get_nbi(job, unsafe { Dst::new(dest.cast(), nbytes) }, from);
}

/// As `gasnet_get_nbi`, for addresses of any alignment.
///
/// The data have arrived after `gasnet_wait_syncnbi_gets` or `_all`.
///
/// - `dest`: destination, any memory of the caller; it is undefined, and must stay allocated,
///   until the operation is synced.
/// - `node`: the rank that owns the source, a rank below `gasnet_nodes()`; this process is one.
/// - `src`: source, an address of that rank: `nbytes` bytes of its segment.
/// - `nbytes`: bytes to copy; 0 is allowed and does nothing.
/// - Context: after `gasnet_attach`; not in a handler or a no-interrupt section, and not while
///   a handler-safe lock is held.
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
    watch!(
        G "gasnet_get_nbi_bulk",
        EventDetail::moved(node, nbytes, src, dest),
        gasnet_get_nbi_bulk(dest, node, src, nbytes)
    );
    let (job, from) = remote("gasnet_get_nbi_bulk", node, src, nbytes, Some(("dest", dest)));
    // SAFETY: the specification demands that the destination stays writable until the sync.
    rma::get_nbi(job, unsafe { Dst::new(dest.cast(), nbytes) }, from);
}

/// Sets bytes in the segment of a rank, and returns when they are set.
///
/// - `node`: the target, a rank below `gasnet_nodes()`; this process is one.
/// - `dest`: destination, an address of the target: `nbytes` bytes of its segment.
/// - `val`: the value, converted to `unsigned char` as in C.
/// - `nbytes`: bytes to set; 0 is allowed and does nothing.
/// - Context: after `gasnet_attach`; not in a handler or a no-interrupt section, and not while
///   a handler-safe lock is held.
#[unsafe(no_mangle)]
pub extern "C" fn gasnet_memset(
    node: gasnet_node_t,
    dest: *mut c_void,
    val: c_int,
    nbytes: usize,
) {
    watch!(
        P "gasnet_memset",
        EventDetail::moved(node, nbytes, dest, null::<u8>()),
        gasnet_memset(node, dest, val, nbytes)
    );
    let (job, dst) = remote("gasnet_memset", node, dest, nbytes, None);
    memset::memset(job, dst, val as u8);
}

/// Initiates a memset with an explicit handle.
///
/// - `node`: the target, a rank below `gasnet_nodes()`; this process is one.
/// - `dest`: destination, an address of the target: `nbytes` bytes of its segment.
/// - `val`: the value, converted to `unsigned char` as in C.
/// - `nbytes`: bytes to set; 0 is allowed and does nothing.
/// - Returns a handle for `gasnet_wait_syncnb` and `gasnet_try_syncnb` in the calling thread,
///   or `GASNET_INVALID_HANDLE` if the operation is complete already.
/// - Context: after `gasnet_attach`; not in a handler or a no-interrupt section, and not while
///   a handler-safe lock is held.
#[unsafe(no_mangle)]
pub extern "C" fn gasnet_memset_nb(
    node: gasnet_node_t,
    dest: *mut c_void,
    val: c_int,
    nbytes: usize,
) -> gasnet_handle_t {
    watch!(
        P "gasnet_memset_nb",
        EventDetail::moved(node, nbytes, dest, null::<u8>()),
        gasnet_memset_nb(node, dest, val, nbytes)
    );
    let (job, dst) = remote("gasnet_memset_nb", node, dest, nbytes, None);
    explicit(job, memset::memset_nb(job, "gasnet_memset_nb", dst, val as u8))
}

/// Initiates an implicit memset, which counts as a put. It belongs to the implicit operations
/// of the calling thread, or to its open access region.
///
/// - `node`: the target, a rank below `gasnet_nodes()`; this process is one.
/// - `dest`: destination, an address of the target: `nbytes` bytes of its segment.
/// - `val`: the value, converted to `unsigned char` as in C.
/// - `nbytes`: bytes to set; 0 is allowed and does nothing.
/// - Context: after `gasnet_attach`; not in a handler or a no-interrupt section, and not while
///   a handler-safe lock is held.
#[unsafe(no_mangle)]
pub extern "C" fn gasnet_memset_nbi(
    node: gasnet_node_t,
    dest: *mut c_void,
    val: c_int,
    nbytes: usize,
) {
    watch!(
        P "gasnet_memset_nbi",
        EventDetail::moved(node, nbytes, dest, null::<u8>()),
        gasnet_memset_nbi(node, dest, val, nbytes)
    );
    let (job, dst) = remote("gasnet_memset_nbi", node, dest, nbytes, None);
    memset::memset_nbi(job, dst, val as u8);
}
