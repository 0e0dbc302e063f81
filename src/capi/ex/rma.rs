//! Puts and gets of GASNet-EX, and their forms for values.
//!
//! Called by clients. Invariant: as in [`crate::capi::rma`], a remote address reaches the extended
//! layer as a [`RemoteRange`]. With `GEX_FLAG_IMMEDIATE` a call is refused, and does nothing,
//! where it would wait for what other operations of this rank hold.

use super::misuse::{TransferCall, check_transfer};
use super::objects::{ExObject, job_rank, node};
use super::{
    Event, Flags, LocalCompletion, NO_OP, NOW, REFUSED, Rank, client_event, event, is_immediate,
    wrong_lc_opt,
};
use crate::capi::OK;
use crate::capi::rma::{LocalArgument, job, unwatched_job};
use crate::client_memory::{Dst, RemoteRange, Src, UncheckedRange};
use crate::extended::rma::{self, PutSource};
use crate::extended::value::{self, MAX_BYTES};
use crate::report;
use crate::runtime::ops::OpHandle;
use crate::runtime::{GasnetJob, checks};
use crate::trace::{EventDetail, watch};
use core::ffi::{c_int, c_void};

/// `gex_RMA_Value_t`
type Value = u64;

/// The job where calls are watched; debug checks look at the call.
#[cold]
#[inline(never)]
fn watched_transfer(call: &TransferCall<'_>) -> &'static GasnetJob {
    let job = job(call.function);
    if checks::on() {
        check_transfer(job, call);
    }
    job
}

/// The job, and the `n` bytes at `addr` of a rank of a team. Debug checks look at the flags, and
/// at `local`, the argument that is an address of this process.
#[inline(always)]
fn remote(
    function: &str,
    tm: ExObject,
    rank: Rank,
    addr: *mut c_void,
    n: usize,
    local: Option<LocalArgument>,
    flags: Flags,
) -> (&'static GasnetJob, RemoteRange) {
    let job = match unwatched_job() {
        Some(job) => job,
        None => {
            let call = TransferCall { function, tm, rank, remote: addr, n, local, flags };
            watched_transfer(&call)
        }
    };
    let rank = job_rank(job, function, tm, rank);
    // SAFETY: the specification demands an address in the segment of the rank; a rank may name
    // any memory of its own.
    let bytes = unsafe { UncheckedRange::new(addr.cast(), n) };
    (job, job.endpoint.remote_range(function, rank, bytes))
}

/// What a call returns that was refused or not.
fn done(done: bool) -> c_int {
    if done { OK } else { REFUSED }
}

/// The event of an operation that was refused or not.
fn begun(handle: Option<OpHandle>) -> Event {
    handle.map_or(NO_OP, |handle| client_event(event(handle)))
}

/// Copies memory of the caller to the segment of a rank, and returns when the data are there.
///
/// A later get of this thread may be done before other ranks see the data. Where two ranks put and
/// then get what the other put, each calls `gasnett_local_mb()` in between.
///
/// - `tm`, `rank`: the target.
/// - `dest`: destination, an address of the target: `nbytes` bytes of its segment.
/// - `src`: source, any memory of the caller.
/// - `nbytes`: bytes to copy; 0 is allowed and does nothing.
/// - `flags`: `GEX_FLAG_IMMEDIATE`.
/// - Returns 0; 1 if it is refused.
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
    flags: Flags,
) -> c_int {
    watch!(
        P "gex_RMA_PutBlocking",
        EventDetail::moved(node("gex_RMA_PutBlocking", tm, rank), nbytes, dest, src),
        gex_RMA_PutBlocking(tm, rank, dest, src, nbytes, flags)
    );
    let (job, dst) =
        remote("gex_RMA_PutBlocking", tm, rank, dest, nbytes, Some(("src", src)), flags);
    // SAFETY: the specification demands `nbytes` readable bytes until the call returns.
    let src = unsafe { Src::new(src.cast(), nbytes) };
    if is_immediate(flags) {
        return done(rma::put_now(job, dst, src));
    }
    rma::put(job, dst, src);
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
/// - `flags`: `GEX_FLAG_IMMEDIATE`.
/// - Returns the event of the operation, `GEX_EVENT_INVALID` if it is complete, `GEX_EVENT_NO_OP`
///   if it is refused.
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
    flags: Flags,
) -> Event {
    watch!(
        P "gex_RMA_PutNB",
        EventDetail::moved(node("gex_RMA_PutNB", tm, rank), nbytes, dest, src),
        gex_RMA_PutNB(tm, rank, dest, src, nbytes, lc_opt, flags)
    );
    let function = "gex_RMA_PutNB";
    let (job, dst) = remote(function, tm, rank, dest, nbytes, Some(("src", src)), flags);
    // SAFETY: the specification demands `nbytes` readable bytes until local completion.
    let src = unsafe { Src::new(src.cast(), nbytes) };
    if is_immediate(flags) {
        let local = LocalCompletion::of(lc_opt);
        let root = match local {
            LocalCompletion::Now => rma::put_nb_now(job, dst, PutSource::Now(src)),
            LocalCompletion::Defer | LocalCompletion::At(_) => {
                rma::put_nb_now(job, dst, PutSource::Bulk(src))
            }
            LocalCompletion::None | LocalCompletion::Group => {
                wrong_lc_opt(function, "DEFER or a place")
            }
        };
        if let Some(root) = root {
            let leaf = match root {
                OpHandle::INVALID => root,
                root => job.ops.leaf_of(root),
            };
            // SAFETY: a place for an event, if it is no constant.
            unsafe { local.store(event(leaf)) };
        }
        return begun(root);
    }
    match LocalCompletion::of(lc_opt) {
        LocalCompletion::Now => client_event(event(rma::put_nb(job, dst, src))),
        LocalCompletion::Defer => client_event(event(rma::put_nb_bulk(job, dst, src))),
        LocalCompletion::At(place) => {
            let (root, leaf) = rma::put_with_leaf(job, dst, src);
            // SAFETY: a place for an event, as it is no constant.
            unsafe { place.write(event(leaf)) };
            client_event(event(root))
        }
        LocalCompletion::None | LocalCompletion::Group => {
            wrong_lc_opt(function, "DEFER or a place")
        }
    }
}

/// Initiates an implicit put.
///
/// - `tm`, `rank`: the target.
/// - `dest`: destination, an address of the target: `nbytes` bytes of its segment.
/// - `src`: source, any memory of the caller; `lc_opt` says when it may be reused.
/// - `nbytes`: bytes to copy; 0 is allowed and does nothing.
/// - `lc_opt`: `GEX_EVENT_NOW`: when the call returns; `GEX_EVENT_DEFER`: with the operation;
///   `GEX_EVENT_GROUP`: with the category `GEX_EC_LC`.
/// - `flags`: `GEX_FLAG_IMMEDIATE`.
/// - Returns 0; 1 if it is refused.
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
    flags: Flags,
) -> c_int {
    watch!(
        P "gex_RMA_PutNBI",
        EventDetail::moved(node("gex_RMA_PutNBI", tm, rank), nbytes, dest, src),
        gex_RMA_PutNBI(tm, rank, dest, src, nbytes, lc_opt, flags)
    );
    let (job, dst) = remote("gex_RMA_PutNBI", tm, rank, dest, nbytes, Some(("src", src)), flags);
    // SAFETY: the specification demands `nbytes` readable bytes until local completion.
    let src = unsafe { Src::new(src.cast(), nbytes) };
    // A put that is complete needs no more of its arguments.
    if lc_opt.addr() == NOW && rma::put_is_complete(job, dst, src) {
        return OK;
    }
    put_nbi(job, dst, src, lc_opt, flags)
}

/// [`gex_RMA_PutNBI`] with checked arguments.
#[inline(never)]
fn put_nbi(
    job: &'static GasnetJob,
    dst: RemoteRange,
    src: Src<'static>,
    lc_opt: *mut Event,
    flags: Flags,
) -> c_int {
    let completion = LocalCompletion::of(lc_opt);
    if is_immediate(flags) {
        return done(match completion {
            LocalCompletion::Now => rma::put_nbi_now(job, dst, PutSource::Now(src)),
            LocalCompletion::Defer => rma::put_nbi_now(job, dst, PutSource::Bulk(src)),
            LocalCompletion::Group => rma::put_nbi_with_departures_now(job, dst, src),
            _ => wrong_lc_opt("gex_RMA_PutNBI", "DEFER or GROUP"),
        });
    }
    match completion {
        LocalCompletion::Now => rma::implicit_put(job, dst, src),
        LocalCompletion::Defer => rma::put_nbi_bulk(job, dst, src),
        LocalCompletion::Group => rma::put_nbi_with_departures(job, dst, src),
        _ => wrong_lc_opt("gex_RMA_PutNBI", "DEFER or GROUP"),
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
/// - `flags`: `GEX_FLAG_IMMEDIATE`.
/// - Returns 0; 1 if it is refused.
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
    flags: Flags,
) -> c_int {
    watch!(
        G "gex_RMA_GetBlocking",
        EventDetail::moved(node("gex_RMA_GetBlocking", tm, rank), nbytes, src, dest),
        gex_RMA_GetBlocking(tm, dest, rank, src, nbytes, flags)
    );
    let (job, from) =
        remote("gex_RMA_GetBlocking", tm, rank, src, nbytes, Some(("dest", dest)), flags);
    // SAFETY: the specification demands `nbytes` writable bytes.
    let dest = unsafe { Dst::new(dest.cast(), nbytes) };
    if is_immediate(flags) {
        return done(rma::get_now(job, dest, from));
    }
    rma::get(job, dest, from);
    OK
}

/// Initiates a get.
///
/// - `tm`, `rank`: the rank that owns the source.
/// - `dest`: destination, any memory of the caller.
/// - `src`: source, an address of that rank: `nbytes` bytes of its segment.
/// - `nbytes`: bytes to copy; 0 is allowed and does nothing.
/// - `flags`: `GEX_FLAG_IMMEDIATE`.
/// - Returns the event of the operation, `GEX_EVENT_INVALID` if it is complete, `GEX_EVENT_NO_OP`
///   if it is refused.
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
    flags: Flags,
) -> Event {
    watch!(
        G "gex_RMA_GetNB",
        EventDetail::moved(node("gex_RMA_GetNB", tm, rank), nbytes, src, dest),
        gex_RMA_GetNB(tm, dest, rank, src, nbytes, flags)
    );
    let (job, from) = remote("gex_RMA_GetNB", tm, rank, src, nbytes, Some(("dest", dest)), flags);
    // SAFETY: the specification demands `nbytes` writable bytes until the sync.
    let dest = unsafe { Dst::new(dest.cast(), nbytes) };
    if is_immediate(flags) {
        return begun(rma::get_nb_now(job, dest, from));
    }
    client_event(event(rma::get_nb(job, dest, from)))
}

/// Initiates an implicit get.
///
/// - `tm`, `rank`: the rank that owns the source.
/// - `dest`: destination, any memory of the caller.
/// - `src`: source, an address of that rank: `nbytes` bytes of its segment.
/// - `nbytes`: bytes to copy; 0 is allowed and does nothing.
/// - `flags`: `GEX_FLAG_IMMEDIATE`.
/// - Returns 0; 1 if it is refused.
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
    flags: Flags,
) -> c_int {
    watch!(
        G "gex_RMA_GetNBI",
        EventDetail::moved(node("gex_RMA_GetNBI", tm, rank), nbytes, src, dest),
        gex_RMA_GetNBI(tm, dest, rank, src, nbytes, flags)
    );
    let (job, from) = remote("gex_RMA_GetNBI", tm, rank, src, nbytes, Some(("dest", dest)), flags);
    // SAFETY: the specification demands `nbytes` writable bytes until the sync.
    let dest = unsafe { Dst::new(dest.cast(), nbytes) };
    if is_immediate(flags) {
        return done(rma::get_nbi_now(job, dest, from));
    }
    rma::get_nbi(job, dest, from);
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
    flags: Flags,
) -> (&'static GasnetJob, RemoteRange) {
    if n == 0 || n > MAX_BYTES {
        wrong_size(function, n);
    }
    remote(function, tm, rank, addr, n, None, flags)
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
/// - `flags`: `GEX_FLAG_PEER_NEVER_*`, which debug checks look at.
/// - Returns the value, zero-extended.
/// - Context: after `gex_Segment_Attach`; not in a handler, and not while a handler-safe lock is
///   held.
#[unsafe(no_mangle)]
pub extern "C" fn gex_RMA_GetBlockingVal(
    tm: ExObject,
    rank: Rank,
    src: *mut c_void,
    nbytes: usize,
    flags: Flags,
) -> Value {
    watch!(
        G "gex_RMA_GetBlockingVal",
        EventDetail::moved(node("gex_RMA_GetBlockingVal", tm, rank), nbytes, src, core::ptr::null::<u8>()),
        gex_RMA_GetBlockingVal(tm, rank, src, nbytes, flags)
    );
    let (job, from) = remote_value("gex_RMA_GetBlockingVal", tm, rank, src, nbytes, flags);
    value::get(job, from) as Value
}

/// Puts an integer to the segment of a rank, and returns when it is there.
///
/// - `tm`, `rank`: the target.
/// - `dest`: destination, an address of the target: `nbytes` bytes of its segment.
/// - `value`: the integer, whose low-order `nbytes` bytes are put.
/// - `nbytes`: bytes of the value, 1 to `sizeof(gex_RMA_Value_t)`.
/// - `flags`: `GEX_FLAG_IMMEDIATE`.
/// - Returns 0; 1 if it is refused.
/// - Context: after `gex_Segment_Attach`; not in a handler, and not while a handler-safe lock is
///   held.
#[unsafe(no_mangle)]
pub extern "C" fn gex_RMA_PutBlockingVal(
    tm: ExObject,
    rank: Rank,
    dest: *mut c_void,
    value: Value,
    nbytes: usize,
    flags: Flags,
) -> c_int {
    watch!(
        P "gex_RMA_PutBlockingVal",
        EventDetail::moved(node("gex_RMA_PutBlockingVal", tm, rank), nbytes, dest, core::ptr::null::<u8>()),
        gex_RMA_PutBlockingVal(tm, rank, dest, value, nbytes, flags)
    );
    let (job, to) = remote_value("gex_RMA_PutBlockingVal", tm, rank, dest, nbytes, flags);
    if is_immediate(flags) {
        return done(value::put_now(job, to, value as value::RegisterValue));
    }
    value::put(job, to, value as value::RegisterValue);
    OK
}

/// Initiates a put of an integer.
///
/// - `tm`, `rank`: the target.
/// - `dest`: destination, an address of the target: `nbytes` bytes of its segment.
/// - `value`: the integer, whose low-order `nbytes` bytes are put.
/// - `nbytes`: bytes of the value, 1 to `sizeof(gex_RMA_Value_t)`.
/// - `flags`: `GEX_FLAG_IMMEDIATE`.
/// - Returns the event of the operation, `GEX_EVENT_INVALID` if it is complete, `GEX_EVENT_NO_OP`
///   if it is refused.
/// - Context: after `gex_Segment_Attach`; not in a handler, and not while a handler-safe lock is
///   held.
#[unsafe(no_mangle)]
pub extern "C" fn gex_RMA_PutNBVal(
    tm: ExObject,
    rank: Rank,
    dest: *mut c_void,
    value: Value,
    nbytes: usize,
    flags: Flags,
) -> Event {
    watch!(
        P "gex_RMA_PutNBVal",
        EventDetail::moved(node("gex_RMA_PutNBVal", tm, rank), nbytes, dest, core::ptr::null::<u8>()),
        gex_RMA_PutNBVal(tm, rank, dest, value, nbytes, flags)
    );
    let (job, to) = remote_value("gex_RMA_PutNBVal", tm, rank, dest, nbytes, flags);
    if is_immediate(flags) {
        return begun(value::put_nb_now(job, to, value as value::RegisterValue));
    }
    client_event(event(value::put_nb(job, to, value as value::RegisterValue)))
}

/// Initiates an implicit put of an integer.
///
/// - `tm`, `rank`: the target.
/// - `dest`: destination, an address of the target: `nbytes` bytes of its segment.
/// - `value`: the integer, whose low-order `nbytes` bytes are put.
/// - `nbytes`: bytes of the value, 1 to `sizeof(gex_RMA_Value_t)`.
/// - `flags`: `GEX_FLAG_IMMEDIATE`.
/// - Returns 0; 1 if it is refused.
/// - Context: after `gex_Segment_Attach`; not in a handler, and not while a handler-safe lock is
///   held.
#[unsafe(no_mangle)]
pub extern "C" fn gex_RMA_PutNBIVal(
    tm: ExObject,
    rank: Rank,
    dest: *mut c_void,
    value: Value,
    nbytes: usize,
    flags: Flags,
) -> c_int {
    watch!(
        P "gex_RMA_PutNBIVal",
        EventDetail::moved(node("gex_RMA_PutNBIVal", tm, rank), nbytes, dest, core::ptr::null::<u8>()),
        gex_RMA_PutNBIVal(tm, rank, dest, value, nbytes, flags)
    );
    let (job, to) = remote_value("gex_RMA_PutNBIVal", tm, rank, dest, nbytes, flags);
    if is_immediate(flags) {
        return done(value::put_nbi_now(job, to, value as value::RegisterValue));
    }
    value::put_nbi(job, to, value as value::RegisterValue);
    OK
}
