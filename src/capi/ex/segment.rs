//! Endpoints and segments.
//!
//! Called by clients. Invariant: there is one endpoint, and the segment that
//! `gex_Segment_Attach` binds to it is the only one.

use super::job::complain;
use super::objects::{ENDPOINT_DATA, ExObject, MEMORY_DATA, SEGMENT_DATA, job_rank};
use super::{Event, Flags, Rank, write};
use crate::capi::{OK, ctx, early_job};
use crate::report;
use crate::runtime::GasnetError;
use crate::runtime::segment::SegmentInfo;
use core::ffi::{c_int, c_void};

/// Keeps a pointer with a segment.
///
/// - `seg`: the segment.
/// - `val`: the pointer, which the library does not follow.
/// - Context: after `gex_Segment_Attach`, in handlers too.
#[unsafe(no_mangle)]
pub extern "C" fn gex_Segment_SetCData(seg: ExObject, val: *const c_void) {
    seg.check_segment("gex_Segment_SetCData");
    SEGMENT_DATA.set(val);
}

/// Returns the pointer that `gex_Segment_SetCData` has kept; null at first.
///
/// - `seg`: the segment.
/// - Context: after `gex_Segment_Attach`, in handlers too.
#[unsafe(no_mangle)]
pub extern "C" fn gex_Segment_QueryCData(seg: ExObject) -> *mut c_void {
    seg.check_segment("gex_Segment_QueryCData");
    SEGMENT_DATA.get()
}

/// Returns the client of a segment.
///
/// - `seg`: the segment.
/// - Context: after `gex_Segment_Attach`, in handlers too.
#[unsafe(no_mangle)]
pub extern "C" fn gex_Segment_QueryClient(seg: ExObject) -> ExObject {
    seg.check_segment("gex_Segment_QueryClient");
    ExObject::THE_CLIENT
}

/// Returns the flags of a segment: 0.
///
/// - `seg`: the segment.
/// - Context: after `gex_Segment_Attach`, in handlers too.
#[unsafe(no_mangle)]
pub extern "C" fn gex_Segment_QueryFlags(seg: ExObject) -> Flags {
    seg.check_segment("gex_Segment_QueryFlags");
    0
}

/// The segment of this rank.
fn own_segment(function: &str, seg: ExObject) -> SegmentInfo {
    seg.check_segment(function);
    let job = early_job(function);
    job.endpoint.segments_for(function).info(job.endpoint.rank)
}

/// Returns the address of the first byte of a segment.
///
/// - `seg`: the segment.
/// - Context: after `gex_Segment_Attach`, in handlers too.
#[unsafe(no_mangle)]
pub extern "C" fn gex_Segment_QueryAddr(seg: ExObject) -> *mut c_void {
    own_segment("gex_Segment_QueryAddr", seg).base.cast()
}

/// Returns the bytes of a segment.
///
/// - `seg`: the segment.
/// - Context: after `gex_Segment_Attach`, in handlers too.
#[unsafe(no_mangle)]
pub extern "C" fn gex_Segment_QuerySize(seg: ExObject) -> usize {
    own_segment("gex_Segment_QuerySize", seg).len
}

/// What is known of the segment of a rank: its address there, its address here if it is mapped,
/// and its size.
fn bound(function: &str, tm: ExObject, rank: Rank) -> Option<(*mut c_void, *mut c_void, usize)> {
    let job = early_job(function);
    let rank = job_rank(job, function, tm, rank);
    let segment = job.endpoint.segment_of(rank)?;
    let info = job.endpoint.segments().info(rank);
    let here = match segment.mapped() {
        _ if rank == job.endpoint.rank => info.base.cast(),
        Some(mapped) if !info.base.is_null() => mapped.as_ptr().cast(),
        _ => core::ptr::null_mut(),
    };
    Some((info.base.cast(), here, info.len))
}

/// Reports the segment that is bound to the endpoint of a rank.
///
/// - `tm`, `rank`: the rank.
/// - `owneraddr_p`: where its first address is stored, as its owner sees it.
/// - `localaddr_p`: where the address of the same byte in this process is stored; null if it is
///   not mapped here.
/// - `size_p`: where its bytes are stored; 0 if no segment is bound. Each may be null.
/// - `flags`: not used.
/// - Returns `GEX_EVENT_INVALID`: the results are stored when the call returns.
/// - Context: after `gex_Client_Init`, in handlers too.
///
/// # Safety
/// Each must be null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gex_EP_QueryBoundSegmentNB(
    tm: ExObject,
    rank: Rank,
    owneraddr_p: *mut *mut c_void,
    localaddr_p: *mut *mut c_void,
    size_p: *mut usize,
    _flags: Flags,
) -> Event {
    let null = core::ptr::null_mut();
    let (there, here, size) =
        bound("gex_EP_QueryBoundSegmentNB", tm, rank).unwrap_or((null, null, 0));
    // SAFETY: the specification demands places for what is wanted.
    unsafe {
        write(owneraddr_p, there);
        write(localaddr_p, here);
        write(size_p, size);
    }
    null
}

/// The older form of `gex_EP_QueryBoundSegmentNB`.
///
/// - `tm`, `rank`: the rank.
/// - `owneraddr_p`, `localaddr_p`, `size_p`: as there.
/// - Returns `GASNET_OK`; another value if no segment is bound, and nothing is stored then.
/// - Context: after `gex_Client_Init`.
///
/// # Safety
/// Each must be null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gex_Segment_QueryBound(
    tm: ExObject,
    rank: Rank,
    owneraddr_p: *mut *mut c_void,
    localaddr_p: *mut *mut c_void,
    size_p: *mut usize,
) -> c_int {
    let Some((there, here, size)) = bound("gex_Segment_QueryBound", tm, rank) else {
        return GasnetError::NotInit as c_int;
    };
    // SAFETY: the specification demands places for what is wanted.
    unsafe {
        write(owneraddr_p, there);
        write(localaddr_p, here);
        write(size_p, size);
    }
    OK
}

/// Reports a call for more than this library has, and returns the error.
fn not_here(function: &str, what: &str, remedy: &str) -> c_int {
    early_job(function);
    complain(format_args!("{function}(): {what}"), format_args!("{remedy}"));
    GasnetError::Resource as c_int
}

/// Would make a segment of memory of the client. This library has none but that of
/// `gex_Segment_Attach`.
///
/// - `segment_p`, `client`, `address`, `length`, `kind`, `flags`: not used.
/// - Returns `GASNET_ERR_RESOURCE`, after a message.
/// - Context: after `gex_Client_Init`.
#[unsafe(no_mangle)]
pub extern "C" fn gex_Segment_Create(
    _segment_p: *mut ExObject,
    _client: ExObject,
    _address: *mut c_void,
    _length: usize,
    _kind: ExObject,
    _flags: Flags,
) -> c_int {
    let what = "a process has one segment, that of gex_Segment_Attach";
    not_here("gex_Segment_Create", what, "Attach a segment that is large enough.")
}

/// Would end a segment of `gex_Segment_Create`, which makes none: ends the job.
///
/// - `segment`, `flags`: not used.
/// - Context: after `gex_Client_Init`.
#[unsafe(no_mangle)]
pub extern "C" fn gex_Segment_Destroy(segment: ExObject, _flags: Flags) {
    report::fatal(
        format_args!("gex_Segment_Destroy(): {segment:?} was not made by gex_Segment_Create"),
        format_args!("Leave the segment of gex_Segment_Attach as it is."),
    )
}

/// Keeps a pointer with the endpoint.
///
/// - `ep`: the endpoint.
/// - `val`: the pointer, which the library does not follow.
/// - Context: after `gex_Client_Init`, in handlers too.
#[unsafe(no_mangle)]
pub extern "C" fn gex_EP_SetCData(ep: ExObject, val: *const c_void) {
    ep.check_endpoint("gex_EP_SetCData");
    ENDPOINT_DATA.set(val);
}

/// Returns the pointer that `gex_EP_SetCData` has kept; null at first.
///
/// - `ep`: the endpoint.
/// - Context: after `gex_Client_Init`, in handlers too.
#[unsafe(no_mangle)]
pub extern "C" fn gex_EP_QueryCData(ep: ExObject) -> *mut c_void {
    ep.check_endpoint("gex_EP_QueryCData");
    ENDPOINT_DATA.get()
}

/// Returns the client of the endpoint.
///
/// - `ep`: the endpoint.
/// - Context: after `gex_Client_Init`, in handlers too.
#[unsafe(no_mangle)]
pub extern "C" fn gex_EP_QueryClient(ep: ExObject) -> ExObject {
    ep.check_endpoint("gex_EP_QueryClient");
    ExObject::THE_CLIENT
}

/// Returns the flags of the endpoint: 0.
///
/// - `ep`: the endpoint.
/// - Context: after `gex_Client_Init`, in handlers too.
#[unsafe(no_mangle)]
pub extern "C" fn gex_EP_QueryFlags(ep: ExObject) -> Flags {
    ep.check_endpoint("gex_EP_QueryFlags");
    0
}

/// Returns the segment that is bound to the endpoint.
///
/// - `ep`: the endpoint.
/// - Returns the segment; `GEX_SEGMENT_INVALID` before `gex_Segment_Attach`.
/// - Context: after `gex_Client_Init`, in handlers too.
#[unsafe(no_mangle)]
pub extern "C" fn gex_EP_QuerySegment(ep: ExObject) -> ExObject {
    ep.check_endpoint("gex_EP_QuerySegment");
    match early_job("gex_EP_QuerySegment").endpoint.bound_segment() {
        Some(_) => ExObject::THE_SEGMENT,
        None => ExObject::INVALID,
    }
}

/// Returns the index of the endpoint: 0.
///
/// - `ep`: the endpoint.
/// - Context: after `gex_Client_Init`, in handlers too.
#[unsafe(no_mangle)]
pub extern "C" fn gex_EP_QueryIndex(ep: ExObject) -> u16 {
    ep.check_endpoint("gex_EP_QueryIndex");
    0
}

/// Would make another endpoint. `GASNET_MAXEPS` is 1.
///
/// - `ep_p`, `client`, `capabilities`, `flags`: not used.
/// - Returns `GASNET_ERR_RESOURCE`, after a message.
/// - Context: after `gex_Client_Init`.
#[unsafe(no_mangle)]
pub extern "C" fn gex_EP_Create(
    _ep_p: *mut ExObject,
    _client: ExObject,
    _capabilities: u32,
    _flags: Flags,
) -> c_int {
    let what = "a process has one endpoint (GASNET_MAXEPS is 1)";
    not_here("gex_EP_Create", what, "Use the endpoint of gex_Client_Init.")
}

/// Would bind a segment of `gex_Segment_Create`, which makes none.
///
/// - `ep`, `segment`, `flags`: not used.
/// - Returns `GASNET_ERR_BAD_ARG`, after a message.
/// - Context: after `gex_Client_Init`.
#[unsafe(no_mangle)]
pub extern "C" fn gex_EP_BindSegment(ep: ExObject, segment: ExObject, _flags: Flags) -> c_int {
    let function = "gex_EP_BindSegment";
    complain(
        format_args!("{function}(): segment {segment:?} cannot be bound to {ep:?}"),
        format_args!("Use gex_Segment_Attach, which binds the segment."),
    );
    GasnetError::BadArg as c_int
}

/// Makes the segments that are bound to these endpoints known to the members of a team.
/// Collective. Those of `gex_Segment_Attach` are known already.
///
/// - `tm`: the team.
/// - `eps`, `num_eps`: endpoints of this process; not used.
/// - `flags`: not used.
/// - Returns `GASNET_OK`.
/// - Context: by all members; not in a handler.
#[unsafe(no_mangle)]
pub extern "C" fn gex_EP_PublishBoundSegment(
    tm: ExObject,
    _eps: *mut ExObject,
    _num_eps: usize,
    _flags: Flags,
) -> c_int {
    let function = "gex_EP_PublishBoundSegment";
    super::coll::meet(ctx(function), function, tm);
    OK
}

/// Would make a kind of memory. This library knows the memory of the host only.
///
/// - `memkind_p`, `client`, `args`, `flags`: not used.
/// - Returns `GASNET_ERR_BAD_ARG`, after a message.
/// - Context: after `gex_Client_Init`.
#[unsafe(no_mangle)]
pub extern "C" fn gex_MK_Create(
    _memkind_p: *mut ExObject,
    _client: ExObject,
    _args: *const c_void,
    _flags: Flags,
) -> c_int {
    complain(
        format_args!("gex_MK_Create(): this library knows no memory but that of the host"),
        format_args!("Use GEX_MK_HOST."),
    );
    GasnetError::BadArg as c_int
}

/// Would end a kind of memory of `gex_MK_Create`, which makes none: ends the job.
///
/// - `memkind`, `flags`: not used.
/// - Context: after `gex_Client_Init`.
#[unsafe(no_mangle)]
pub extern "C" fn gex_MK_Destroy(memkind: ExObject, _flags: Flags) {
    report::fatal(
        format_args!("gex_MK_Destroy(): {memkind:?} was not made by gex_MK_Create"),
        format_args!("Leave GEX_MK_HOST as it is."),
    )
}

/// Ends the job unless it is the memory of the host.
fn check_kind(function: &str, memkind: ExObject) {
    if memkind != ExObject::HOST_MEMORY {
        report::fatal(
            format_args!("{function}(): {memkind:?} is no kind of memory"),
            format_args!("Pass GEX_MK_HOST."),
        )
    }
}

/// Returns the class of a kind of memory: `GEX_MK_CLASS_HOST`.
///
/// - `memkind`: `GEX_MK_HOST`.
/// - Context: after `gex_Client_Init`, in handlers too.
#[unsafe(no_mangle)]
pub extern "C" fn gex_MK_QueryClass(memkind: ExObject) -> c_int {
    check_kind("gex_MK_QueryClass", memkind);
    0
}

/// Returns the client of a kind of memory.
///
/// - `memkind`: `GEX_MK_HOST`.
/// - Context: after `gex_Client_Init`, in handlers too.
#[unsafe(no_mangle)]
pub extern "C" fn gex_MK_QueryClient(memkind: ExObject) -> ExObject {
    check_kind("gex_MK_QueryClient", memkind);
    ExObject::THE_CLIENT
}

/// Returns the flags of a kind of memory: 0.
///
/// - `memkind`: `GEX_MK_HOST`.
/// - Context: after `gex_Client_Init`, in handlers too.
#[unsafe(no_mangle)]
pub extern "C" fn gex_MK_QueryFlags(memkind: ExObject) -> Flags {
    check_kind("gex_MK_QueryFlags", memkind);
    0
}

/// Keeps a pointer with a kind of memory.
///
/// - `memkind`: `GEX_MK_HOST`.
/// - `val`: the pointer, which the library does not follow.
/// - Context: after `gex_Client_Init`, in handlers too.
#[unsafe(no_mangle)]
pub extern "C" fn gex_MK_SetCData(memkind: ExObject, val: *const c_void) {
    check_kind("gex_MK_SetCData", memkind);
    MEMORY_DATA.set(val);
}

/// Returns the pointer that `gex_MK_SetCData` has kept; null at first.
///
/// - `memkind`: `GEX_MK_HOST`.
/// - Context: after `gex_Client_Init`, in handlers too.
#[unsafe(no_mangle)]
pub extern "C" fn gex_MK_QueryCData(memkind: ExObject) -> *mut c_void {
    check_kind("gex_MK_QueryCData", memkind);
    MEMORY_DATA.get()
}
