//! Puts and gets of GASNet-EX, and their forms for values.
//!
//! Called by clients. Invariant: as in [`crate::capi::rma`], a remote address reaches the extended
//! layer as a [`RemoteRange`]. `GEX_FLAG_IMMEDIATE` is accepted: no call refuses.

use super::objects::{ExObject, job_rank};
use super::{Event, Flags, LocalCompletion, Rank, event};
use crate::capi::OK;
use crate::capi::rma::job;
use crate::client_memory::{Dst, RemoteRange, Src, UncheckedRange};
use crate::extended::value;
use crate::extended::{rma, value::MAX_BYTES};
use crate::report;
use crate::runtime::GasnetJob;
use core::ffi::{c_int, c_void};

/// `gex_RMA_Value_t`
type Value = u64;

/// The job, and the `n` bytes at `addr` of a rank of a team.
#[inline(always)]
pub(super) fn remote(
    function: &str,
    tm: ExObject,
    rank: Rank,
    addr: *mut c_void,
    n: usize,
) -> (&'static GasnetJob, RemoteRange) {
    let job = job(function);
    let rank = job_rank(job, function, tm, rank);
    // SAFETY: the specification demands an address in the segment of the rank; a rank may name
    // any memory of its own.
    let bytes = unsafe { UncheckedRange::new(addr.cast(), n) };
    (job, job.endpoint.remote_range(function, rank, bytes))
}

/// Copies memory of the caller to the segment of a rank, and returns when the data are there.
///
/// - `tm`, `rank`: the target.
/// - `dest`: destination, an address of the target: `nbytes` bytes of its segment.
/// - `src`: source, any memory of the caller.
/// - `nbytes`: bytes to copy; 0 is allowed and does nothing.
/// - `flags`: accepted.
/// - Returns 0.
/// - Context: after `gex_Segment_Attach`; not in a handler, and not while a handler-safe lock is
///   held.
///
/// # Safety
/// `src` must be readable for `nbytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gex_RMA_PutBlocking(
    tm: ExObject,
    rank: Rank,
    dest: *mut c_void,
    src: *const c_void,
    nbytes: usize,
    _flags: Flags,
) -> c_int {
    let (job, dst) = remote("gex_RMA_PutBlocking", tm, rank, dest, nbytes);
    // SAFETY: the specification demands `nbytes` readable bytes until the call returns.
    rma::put(job, dst, unsafe { Src::new(src.cast(), nbytes) });
    OK
}

/// Initiates a put.
///
/// - `tm`, `rank`: the target.
/// - `dest`: destination, an address of the target: `nbytes` bytes of its segment.
/// - `src`: source, any memory of the caller; `lc_opt` says when it may be reused.
/// - `nbytes`: bytes to copy; 0 is allowed and does nothing.
/// - `lc_opt`: `GEX_EVENT_NOW`: when the call returns; `GEX_EVENT_DEFER`: with the event; a place:
///   with the event that is stored there.
/// - `flags`: accepted.
/// - Returns the event of the operation, `GEX_EVENT_INVALID` if it is complete.
/// - Context: after `gex_Segment_Attach`; not in a handler, and not while a handler-safe lock is
///   held.
///
/// # Safety
/// `src` must be readable for `nbytes` bytes, `lc_opt` a place for an event if it is no constant.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gex_RMA_PutNB(
    tm: ExObject,
    rank: Rank,
    dest: *mut c_void,
    src: *const c_void,
    nbytes: usize,
    lc_opt: *mut Event,
    _flags: Flags,
) -> Event {
    let function = "gex_RMA_PutNB";
    let (job, dst) = remote(function, tm, rank, dest, nbytes);
    // SAFETY: the specification demands `nbytes` readable bytes until local completion.
    let src = unsafe { Src::new(src.cast(), nbytes) };
    match LocalCompletion::of(lc_opt) {
        LocalCompletion::Now => event(rma::put_nb(job, dst, src)),
        local @ (LocalCompletion::Defer | LocalCompletion::At(_)) => {
            let root = event(rma::put_nb_bulk(job, dst, src));
            // SAFETY: a place for an event, if it is no constant.
            unsafe { local.store(root) };
            root
        }
        LocalCompletion::None | LocalCompletion::Group => {
            wrong_lc_opt(function, "DEFER or a place")
        }
    }
}

/// Ends the job: the call has no such local completion.
#[cold]
pub(super) fn wrong_lc_opt(function: &str, others: &str) -> ! {
    report::fatal(
        format_args!("{function}(): this value of lc_opt is not one of this call"),
        format_args!("Pass GEX_EVENT_NOW, {others}."),
    )
}

/// Initiates an implicit put.
///
/// - `tm`, `rank`: the target.
/// - `dest`: destination, an address of the target: `nbytes` bytes of its segment.
/// - `src`: source, any memory of the caller; `lc_opt` says when it may be reused.
/// - `nbytes`: bytes to copy; 0 is allowed and does nothing.
/// - `lc_opt`: `GEX_EVENT_NOW`: when the call returns; `GEX_EVENT_DEFER`: with the operation;
///   `GEX_EVENT_GROUP`: with the category `GEX_EC_LC`.
/// - `flags`: accepted.
/// - Returns 0.
/// - Context: after `gex_Segment_Attach`; not in a handler, and not while a handler-safe lock is
///   held.
///
/// # Safety
/// `src` must be readable for `nbytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gex_RMA_PutNBI(
    tm: ExObject,
    rank: Rank,
    dest: *mut c_void,
    src: *const c_void,
    nbytes: usize,
    lc_opt: *mut Event,
    _flags: Flags,
) -> c_int {
    let function = "gex_RMA_PutNBI";
    let (job, dst) = remote(function, tm, rank, dest, nbytes);
    // SAFETY: the specification demands `nbytes` readable bytes until local completion.
    let src = unsafe { Src::new(src.cast(), nbytes) };
    match LocalCompletion::of(lc_opt) {
        LocalCompletion::Now => rma::put_nbi(job, dst, src),
        LocalCompletion::Defer | LocalCompletion::Group => rma::put_nbi_bulk(job, dst, src),
        _ => wrong_lc_opt(function, "DEFER or GROUP"),
    }
    OK
}

/// Copies from the segment of a rank to memory of the caller, and returns when the data have
/// arrived.
///
/// - `tm`, `rank`: the rank that owns the source.
/// - `dest`: destination, any memory of the caller.
/// - `src`: source, an address of that rank: `nbytes` bytes of its segment.
/// - `nbytes`: bytes to copy; 0 is allowed and does nothing.
/// - `flags`: accepted.
/// - Returns 0.
/// - Context: after `gex_Segment_Attach`; not in a handler, and not while a handler-safe lock is
///   held.
///
/// # Safety
/// `dest` must be writable for `nbytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gex_RMA_GetBlocking(
    tm: ExObject,
    dest: *mut c_void,
    rank: Rank,
    src: *mut c_void,
    nbytes: usize,
    _flags: Flags,
) -> c_int {
    let (job, from) = remote("gex_RMA_GetBlocking", tm, rank, src, nbytes);
    // SAFETY: the specification demands `nbytes` writable bytes.
    rma::get(job, unsafe { Dst::new(dest.cast(), nbytes) }, from);
    OK
}

/// Initiates a get.
///
/// - `tm`, `rank`: the rank that owns the source.
/// - `dest`: destination, any memory of the caller.
/// - `src`: source, an address of that rank: `nbytes` bytes of its segment.
/// - `nbytes`: bytes to copy; 0 is allowed and does nothing.
/// - `flags`: accepted.
/// - Returns the event of the operation, `GEX_EVENT_INVALID` if it is complete.
/// - Context: after `gex_Segment_Attach`; not in a handler, and not while a handler-safe lock is
///   held.
///
/// # Safety
/// `dest` must be writable for `nbytes` bytes until the event has happened.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gex_RMA_GetNB(
    tm: ExObject,
    dest: *mut c_void,
    rank: Rank,
    src: *mut c_void,
    nbytes: usize,
    _flags: Flags,
) -> Event {
    let (job, from) = remote("gex_RMA_GetNB", tm, rank, src, nbytes);
    // SAFETY: the specification demands `nbytes` writable bytes until the sync.
    event(rma::get_nb(job, unsafe { Dst::new(dest.cast(), nbytes) }, from))
}

/// Initiates an implicit get.
///
/// - `tm`, `rank`: the rank that owns the source.
/// - `dest`: destination, any memory of the caller.
/// - `src`: source, an address of that rank: `nbytes` bytes of its segment.
/// - `nbytes`: bytes to copy; 0 is allowed and does nothing.
/// - `flags`: accepted.
/// - Returns 0.
/// - Context: after `gex_Segment_Attach`; not in a handler, and not while a handler-safe lock is
///   held.
///
/// # Safety
/// `dest` must be writable for `nbytes` bytes until the operation is synced.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gex_RMA_GetNBI(
    tm: ExObject,
    dest: *mut c_void,
    rank: Rank,
    src: *mut c_void,
    nbytes: usize,
    _flags: Flags,
) -> c_int {
    let (job, from) = remote("gex_RMA_GetNBI", tm, rank, src, nbytes);
    // SAFETY: the specification demands `nbytes` writable bytes until the sync.
    rma::get_nbi(job, unsafe { Dst::new(dest.cast(), nbytes) }, from);
    OK
}

/// [`remote`] for a value.
#[inline(always)]
fn remote_value(
    function: &str,
    tm: ExObject,
    rank: Rank,
    addr: *mut c_void,
    n: usize,
) -> (&'static GasnetJob, RemoteRange) {
    if n == 0 || n > MAX_BYTES {
        wrong_size(function, n);
    }
    remote(function, tm, rank, addr, n)
}

#[cold]
fn wrong_size(function: &str, n: usize) -> ! {
    report::fatal(
        format_args!("{function}(): a value of {n} bytes is out of range"),
        format_args!("Pass 1 to {MAX_BYTES} bytes."),
    )
}

/// Gets an integer from the segment of a rank.
///
/// - `tm`, `rank`: the rank that owns the source.
/// - `src`: source, an address of that rank: `nbytes` bytes of its segment.
/// - `nbytes`: bytes of the value, 1 to `sizeof(gex_RMA_Value_t)`.
/// - `flags`: not used.
/// - Returns the value, zero-extended.
/// - Context: after `gex_Segment_Attach`; not in a handler, and not while a handler-safe lock is
///   held.
#[unsafe(no_mangle)]
pub extern "C" fn gex_RMA_GetBlockingVal(
    tm: ExObject,
    rank: Rank,
    src: *mut c_void,
    nbytes: usize,
    _flags: Flags,
) -> Value {
    let (job, from) = remote_value("gex_RMA_GetBlockingVal", tm, rank, src, nbytes);
    value::get(job, from) as Value
}

/// Puts an integer to the segment of a rank, and returns when it is there.
///
/// - `tm`, `rank`: the target.
/// - `dest`: destination, an address of the target: `nbytes` bytes of its segment.
/// - `value`: the integer, whose low-order `nbytes` bytes are put.
/// - `nbytes`: bytes of the value, 1 to `sizeof(gex_RMA_Value_t)`.
/// - `flags`: accepted.
/// - Returns 0.
/// - Context: after `gex_Segment_Attach`; not in a handler, and not while a handler-safe lock is
///   held.
#[unsafe(no_mangle)]
pub extern "C" fn gex_RMA_PutBlockingVal(
    tm: ExObject,
    rank: Rank,
    dest: *mut c_void,
    value: Value,
    nbytes: usize,
    _flags: Flags,
) -> c_int {
    let (job, to) = remote_value("gex_RMA_PutBlockingVal", tm, rank, dest, nbytes);
    value::put(job, to, value as value::RegisterValue);
    OK
}

/// Initiates a put of an integer.
///
/// - `tm`, `rank`: the target.
/// - `dest`: destination, an address of the target: `nbytes` bytes of its segment.
/// - `value`: the integer, whose low-order `nbytes` bytes are put.
/// - `nbytes`: bytes of the value, 1 to `sizeof(gex_RMA_Value_t)`.
/// - `flags`: accepted.
/// - Returns the event of the operation, `GEX_EVENT_INVALID` if it is complete.
/// - Context: after `gex_Segment_Attach`; not in a handler, and not while a handler-safe lock is
///   held.
#[unsafe(no_mangle)]
pub extern "C" fn gex_RMA_PutNBVal(
    tm: ExObject,
    rank: Rank,
    dest: *mut c_void,
    value: Value,
    nbytes: usize,
    _flags: Flags,
) -> Event {
    let (job, to) = remote_value("gex_RMA_PutNBVal", tm, rank, dest, nbytes);
    event(value::put_nb(job, to, value as value::RegisterValue))
}

/// Initiates an implicit put of an integer.
///
/// - `tm`, `rank`: the target.
/// - `dest`: destination, an address of the target: `nbytes` bytes of its segment.
/// - `value`: the integer, whose low-order `nbytes` bytes are put.
/// - `nbytes`: bytes of the value, 1 to `sizeof(gex_RMA_Value_t)`.
/// - `flags`: accepted.
/// - Returns 0.
/// - Context: after `gex_Segment_Attach`; not in a handler, and not while a handler-safe lock is
///   held.
#[unsafe(no_mangle)]
pub extern "C" fn gex_RMA_PutNBIVal(
    tm: ExObject,
    rank: Rank,
    dest: *mut c_void,
    value: Value,
    nbytes: usize,
    _flags: Flags,
) -> c_int {
    let (job, to) = remote_value("gex_RMA_PutNBIVal", tm, rank, dest, nbytes);
    value::put_nbi(job, to, value as value::RegisterValue);
    OK
}
