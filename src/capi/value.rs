//! The value forms of the extended API.
//!
//! Called by clients. Invariant: a value that reaches the extended layer has at most 8 bytes.

use super::abi::{
    gasnet_handle_t, gasnet_node_t, gasnet_register_value_t, gasnet_valget_handle_t,
};
use super::explicit;
use super::rma::{job, remote};
use crate::client_memory::RemoteRange;
use crate::extended::value;
use crate::report;
use crate::runtime::GasnetJob;
use crate::runtime::checks::check_alignment;
use crate::runtime::ops::OpHandle;
use crate::trace::{EventDetail, watch};
use core::ffi::c_void;
use core::ptr::null;

/// As [`remote`], and ends the job if `n` bytes are more than a value has.
#[inline(always)]
fn remote_value(
    function: &str,
    node: gasnet_node_t,
    addr: *mut c_void,
    n: usize,
) -> (&'static GasnetJob, RemoteRange) {
    if n == 0 || n > value::MAX_BYTES {
        no_width(function, n);
    }
    check_alignment(function, addr.cast(), core::ptr::null(), n);
    remote(function, node, addr, n, None)
}

fn no_width(function: &str, n: usize) -> ! {
    report::fatal(
        format_args!("{function}(): a value has 1 to {} bytes, not {n}", value::MAX_BYTES),
        format_args!(
            "Move 1 to SIZEOF_GASNET_REGISTER_VALUE_T bytes, or use gasnet_put() and gasnet_get()."
        ),
    )
}

/// Puts an integer into the segment of a rank, and returns when it is there.
///
/// - `node`: the target, a rank below `gasnet_nodes()`; this process is one.
/// - `dest`: destination, an address of the target: `nbytes` bytes of its segment.
/// - `value`: its low-order `nbytes` bytes are put, in the byte order of the machine.
/// - `nbytes`: bytes of the value, 1 to `SIZEOF_GASNET_REGISTER_VALUE_T`; another number ends
///   the job.
/// - Context: after `gasnet_attach`; not in a handler or a no-interrupt section, and not while
///   a handler-safe lock is held.
#[unsafe(no_mangle)]
pub extern "C" fn gasnet_put_val(
    node: gasnet_node_t,
    dest: *mut c_void,
    value: gasnet_register_value_t,
    nbytes: usize,
) {
    watch!(
        P "gasnet_put_val",
        EventDetail::moved(node, nbytes, dest, null::<u8>()),
        gasnet_put_val(node, dest, value, nbytes)
    );
    let (job, dst) = remote_value("gasnet_put_val", node, dest, nbytes);
    value::put(job, dst, value);
}

/// Initiates a put of an integer with an explicit handle.
///
/// - `node`: the target, a rank below `gasnet_nodes()`; this process is one.
/// - `dest`: destination, an address of the target: `nbytes` bytes of its segment.
/// - `value`: its low-order `nbytes` bytes are put, in the byte order of the machine.
/// - `nbytes`: bytes of the value, 1 to `SIZEOF_GASNET_REGISTER_VALUE_T`; another number ends
///   the job.
/// - Returns a handle for `gasnet_wait_syncnb` and `gasnet_try_syncnb` in the calling thread,
///   or `GASNET_INVALID_HANDLE` if the operation is complete already.
/// - Context: after `gasnet_attach`; not in a handler or a no-interrupt section, and not while
///   a handler-safe lock is held.
#[unsafe(no_mangle)]
pub extern "C" fn gasnet_put_nb_val(
    node: gasnet_node_t,
    dest: *mut c_void,
    value: gasnet_register_value_t,
    nbytes: usize,
) -> gasnet_handle_t {
    watch!(
        P "gasnet_put_nb_val",
        EventDetail::moved(node, nbytes, dest, null::<u8>()),
        gasnet_put_nb_val(node, dest, value, nbytes)
    );
    let (job, dst) = remote_value("gasnet_put_nb_val", node, dest, nbytes);
    explicit(job, value::put_nb(job, dst, value))
}

/// Initiates an implicit put of an integer. It belongs to the implicit operations of the
/// calling thread, or to its open access region.
///
/// - `node`: the target, a rank below `gasnet_nodes()`; this process is one.
/// - `dest`: destination, an address of the target: `nbytes` bytes of its segment.
/// - `value`: its low-order `nbytes` bytes are put, in the byte order of the machine.
/// - `nbytes`: bytes of the value, 1 to `SIZEOF_GASNET_REGISTER_VALUE_T`; another number ends
///   the job.
/// - Context: after `gasnet_attach`; not in a handler or a no-interrupt section, and not while
///   a handler-safe lock is held.
#[unsafe(no_mangle)]
pub extern "C" fn gasnet_put_nbi_val(
    node: gasnet_node_t,
    dest: *mut c_void,
    value: gasnet_register_value_t,
    nbytes: usize,
) {
    watch!(
        P "gasnet_put_nbi_val",
        EventDetail::moved(node, nbytes, dest, null::<u8>()),
        gasnet_put_nbi_val(node, dest, value, nbytes)
    );
    let (job, dst) = remote_value("gasnet_put_nbi_val", node, dest, nbytes);
    value::put_nbi(job, dst, value);
}

/// Gets an integer from the segment of a rank.
///
/// - `node`: the rank that owns the source, a rank below `gasnet_nodes()`; this process is one.
/// - `src`: source, an address of that rank: `nbytes` bytes of its segment.
/// - `nbytes`: bytes of the value, 1 to `SIZEOF_GASNET_REGISTER_VALUE_T`; another number ends
///   the job.
/// - Returns the value, zero-extended.
/// - Context: after `gasnet_attach`; not in a handler or a no-interrupt section, and not while
///   a handler-safe lock is held.
#[unsafe(no_mangle)]
pub extern "C" fn gasnet_get_val(
    node: gasnet_node_t,
    src: *mut c_void,
    nbytes: usize,
) -> gasnet_register_value_t {
    watch!(
        G "gasnet_get_val",
        EventDetail::moved(node, nbytes, src, null::<u8>()),
        gasnet_get_val(node, src, nbytes)
    );
    let (job, src) = remote_value("gasnet_get_val", node, src, nbytes);
    value::get(job, src)
}

/// Initiates a get of an integer.
///
/// - `node`: the rank that owns the source, a rank below `gasnet_nodes()`; this process is one.
/// - `src`: source, an address of that rank: `nbytes` bytes of its segment.
/// - `nbytes`: bytes of the value, 1 to `SIZEOF_GASNET_REGISTER_VALUE_T`; another number ends
///   the job.
/// - Returns a handle for `gasnet_wait_syncnb_valget` only; it is never
///   `GASNET_INVALID_HANDLE`, and has to be synced exactly once, by the calling thread.
/// - Context: after `gasnet_attach`; not in a handler or a no-interrupt section, and not while
///   a handler-safe lock is held.
#[unsafe(no_mangle)]
pub extern "C" fn gasnet_get_nb_val(
    node: gasnet_node_t,
    src: *mut c_void,
    nbytes: usize,
) -> gasnet_valget_handle_t {
    watch!(
        G "gasnet_get_nb_val",
        EventDetail::moved(node, nbytes, src, null::<u8>()),
        gasnet_get_nb_val(node, src, nbytes)
    );
    let (job, src) = remote_value("gasnet_get_nb_val", node, src, nbytes);
    value::get_nb(job, src).0 as gasnet_valget_handle_t
}

/// Waits for a get of an integer.
///
/// - `handle`: what `gasnet_get_nb_val` returned in this thread; it is invalid afterwards.
/// - Returns the value, zero-extended.
/// - Context: after `gasnet_attach`; not in a handler or a no-interrupt section, and not while
///   a handler-safe lock is held.
#[unsafe(no_mangle)]
pub extern "C" fn gasnet_wait_syncnb_valget(
    handle: gasnet_valget_handle_t,
) -> gasnet_register_value_t {
    watch!(S "gasnet_wait_syncnb_valget", EventDetail::Sync(1), gasnet_wait_syncnb_valget(handle));
    let (job, handle) = (job("gasnet_wait_syncnb_valget"), OpHandle(handle as usize));
    job.ctx().check_handles("gasnet_wait_syncnb_valget", &[handle]);
    value::wait(job, handle)
}
