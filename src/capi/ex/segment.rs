//! Endpoints and segments.
//!
//! Called by clients. Invariants: there is one endpoint, to which one segment is bound at most:
//! that of `gex_Segment_Attach`, or one that `gex_Segment_Create` has made. A created segment that
//! is bound is never freed.

use super::created_segment::{CREATED, CreatedSegment, no_segment};
use super::job::complain;
use super::misuse::outside_handlers;
use super::objects::{
    BOUND, ClientData, ENDPOINT_DATA, ExObject, MEMORY_DATA, SEGMENT_DATA, bound_object, job_rank,
    team_of,
};
use super::{Event, Flags, Rank, is_immediate, write};
use crate::capi::{OK, ctx, early_job};
use crate::extended::collectives;
use crate::rank::TeamRank;
use crate::report;
use crate::runtime::GasnetError;
use crate::runtime::segment::{PublishedSegment, SegmentInfo};
use alloc::boxed::Box;
use core::ffi::{c_int, c_void};

/// Reads what a client keeps with a segment, or stores it; ends the job if there is none.
fn with_data<R>(function: &str, seg: ExObject, f: impl FnOnce(&ClientData) -> R) -> R {
    if seg == ExObject::THE_SEGMENT {
        return f(&SEGMENT_DATA);
    }
    CREATED.read(seg, |created| f(&created.data)).unwrap_or_else(|| no_segment(function, seg))
}

/// Keeps a pointer with a segment.
///
/// - `seg`: the segment.
/// - `val`: the pointer, which the library does not follow.
/// - Context: while the segment exists, in handlers too.
#[unsafe(no_mangle)]
pub extern "C" fn gex_Segment_SetCData(seg: ExObject, val: *const c_void) {
    with_data("gex_Segment_SetCData", seg, |data| data.set(val));
}

/// Returns the pointer that `gex_Segment_SetCData` has kept; null at first.
///
/// - `seg`: the segment.
/// - Context: while the segment exists, in handlers too.
#[unsafe(no_mangle)]
pub extern "C" fn gex_Segment_QueryCData(seg: ExObject) -> *mut c_void {
    with_data("gex_Segment_QueryCData", seg, ClientData::get)
}

/// Returns the client of a segment.
///
/// - `seg`: the segment.
/// - Context: while the segment exists, in handlers too.
#[unsafe(no_mangle)]
pub extern "C" fn gex_Segment_QueryClient(seg: ExObject) -> ExObject {
    with_data("gex_Segment_QueryClient", seg, |_| ExObject::THE_CLIENT)
}

/// Returns the flags of a segment: 0.
///
/// - `seg`: the segment.
/// - Context: while the segment exists, in handlers too.
#[unsafe(no_mangle)]
pub extern "C" fn gex_Segment_QueryFlags(seg: ExObject) -> Flags {
    with_data("gex_Segment_QueryFlags", seg, |_| 0)
}

/// Where a segment of this rank is.
fn own_segment(function: &str, seg: ExObject) -> SegmentInfo {
    if seg == ExObject::THE_SEGMENT {
        let job = early_job(function);
        return job.endpoint.segments_for(function).info(job.endpoint.rank);
    }
    let info = CREATED.read(seg, |created| SegmentInfo {
        base: created.memory.as_ptr(),
        len: created.memory.len(),
    });
    info.unwrap_or_else(|| no_segment(function, seg))
}

/// Returns the address of the first byte of a segment.
///
/// - `seg`: the segment.
/// - Context: while the segment exists, in handlers too.
#[unsafe(no_mangle)]
pub extern "C" fn gex_Segment_QueryAddr(seg: ExObject) -> *mut c_void {
    own_segment("gex_Segment_QueryAddr", seg).base.cast()
}

/// Returns the bytes of a segment.
///
/// - `seg`: the segment.
/// - Context: while the segment exists, in handlers too.
#[unsafe(no_mangle)]
pub extern "C" fn gex_Segment_QuerySize(seg: ExObject) -> usize {
    own_segment("gex_Segment_QuerySize", seg).len
}

/// What is known of the segment of a rank: its address there, its address here if it is mapped,
/// and its size.
fn bound(function: &str, tm: ExObject, rank: Rank) -> Option<(*mut c_void, *mut c_void, usize)> {
    let job = early_job(function);
    let rank = job_rank(job, function, tm, rank);
    let segment = job.endpoint.segment_of(rank).filter(|segment| segment.is_known())?;
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
/// - `flags`: `GEX_FLAG_IMMEDIATE` where the call may not communicate. It never does here.
/// - Returns `GEX_EVENT_INVALID`: the results are stored when the call returns.
/// - Context: after `gex_Client_Init`; in handlers, and while a handler-safe lock is held, with
///   `GEX_FLAG_IMMEDIATE` only.
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
    flags: Flags,
) -> Event {
    let (function, null) = ("gex_EP_QueryBoundSegmentNB", core::ptr::null_mut());
    if !is_immediate(flags) {
        outside_handlers(function);
    }
    let (there, here, size) = bound(function, tm, rank).unwrap_or((null, null, 0));
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
/// - Context: after `gex_Client_Init`; not in a handler, and not while a handler-safe lock is
///   held.
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
    let function = "gex_Segment_QueryBound";
    outside_handlers(function);
    let Some((there, here, size)) = bound(function, tm, rank) else {
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
    outside_handlers(function);
    complain(format_args!("{function}(): {what}"), format_args!("{remedy}"));
    GasnetError::Resource as c_int
}

/// Makes a segment of memory of this process. Not collective. Peers can use it after
/// `gex_EP_BindSegment` and `gex_EP_PublishBoundSegment`. It is mapped in this process only. Peers
/// on this host reach it without a call of this process if the kernel lets them attach to it.
/// Otherwise this process serves them when it calls the library.
///
/// - `segment_p`: where the segment is stored.
/// - `client`: the client.
/// - `address`: the first byte; null if the library is to map memory, which is zero.
/// - `length`: bytes, at least 1. Memory that the library maps has whole pages.
/// - `kind`: `GEX_MK_HOST`.
/// - `flags`: 0.
/// - Returns `GASNET_OK`; after a message, `GASNET_ERR_BAD_ARG` for another value, or
///   `GASNET_ERR_RESOURCE` if there is no memory.
/// - Context: after `gex_Client_Init`, not in a handler.
///
/// # Safety
/// `segment_p` must be null or writable. Unless `address` is null, `length` bytes there must be
/// readable and writable until the segment is destroyed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gex_Segment_Create(
    segment_p: *mut ExObject,
    client: ExObject,
    address: *mut c_void,
    length: usize,
    kind: ExObject,
    flags: Flags,
) -> c_int {
    let function = "gex_Segment_Create";
    outside_handlers(function);
    client.check_client(function);
    if kind != ExObject::HOST_MEMORY || flags != 0 {
        let what = match kind == ExObject::HOST_MEMORY {
            true => format_args!("{function}(): the flags {flags:#x} are unknown"),
            false => format_args!("{function}(): {kind:?} is no kind of memory"),
        };
        complain(what, format_args!("Pass GEX_MK_HOST, and 0 as flags."));
        return GasnetError::BadArg as c_int;
    }
    // SAFETY: by this function's condition.
    let created = match unsafe { CreatedSegment::new(function, address, length) } {
        Ok(created) => created,
        Err(error) => return error as c_int,
    };
    // SAFETY: the specification demands a place for the result.
    unsafe { write(segment_p, CREATED.add(created, false)) };
    OK
}

/// Ends a segment of `gex_Segment_Create`, and frees its memory if the library has mapped it. Ends
/// the job if the segment is bound to the endpoint.
///
/// - `segment`: the segment.
/// - `flags`: not used.
/// - Context: after `gex_Client_Init`, not in a handler.
#[unsafe(no_mangle)]
pub extern "C" fn gex_Segment_Destroy(segment: ExObject, _flags: Flags) {
    let function = "gex_Segment_Destroy";
    let bound = bound_object(outside_handlers(function));
    if segment == bound && bound != ExObject::INVALID {
        report::fatal(
            format_args!("{function}(): {segment:?} is bound to the endpoint"),
            format_args!("Leave it as it is: peers may use it until the job ends."),
        );
    }
    if CREATED.remove(segment).is_none() {
        no_segment(function, segment);
    }
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
/// - Returns the segment; `GEX_SEGMENT_INVALID` before `gex_Segment_Attach` or
///   `gex_EP_BindSegment`, and in EVERYTHING.
/// - Context: after `gex_Client_Init`, in handlers too.
#[unsafe(no_mangle)]
pub extern "C" fn gex_EP_QuerySegment(ep: ExObject) -> ExObject {
    ep.check_endpoint("gex_EP_QuerySegment");
    bound_object(early_job("gex_EP_QuerySegment"))
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

/// Binds a segment of `gex_Segment_Create` to the endpoint. Not collective. Peers can use the
/// segment when it is published.
///
/// - `ep`: the endpoint, to which no segment is bound.
/// - `segment`: the segment.
/// - `flags`: 0.
/// - Returns `GASNET_OK`; after a message, `GASNET_ERR_BAD_ARG` for another value, and
///   `GASNET_ERR_RESOURCE` in EVERYTHING, or if the network reaches only memory that is registered
///   on demand: both take `gex_Segment_Attach`.
/// - Context: after `gex_Client_Init`, not in a handler.
#[unsafe(no_mangle)]
pub extern "C" fn gex_EP_BindSegment(ep: ExObject, segment: ExObject, flags: Flags) -> c_int {
    let function = "gex_EP_BindSegment";
    let job = outside_handlers(function);
    let memory = CREATED.read(segment, |created| created.memory);
    let bad = |what: &str, remedy: &str| {
        complain(
            format_args!("{function}(): {what} ({ep:?}, {segment:?}, flags {flags:#x})"),
            format_args!("{remedy}"),
        );
        GasnetError::BadArg as c_int
    };
    if ep != ExObject::THE_ENDPOINT || flags != 0 {
        return bad("no such endpoint or flags", "Pass the endpoint of gex_Client_Init, and 0.");
    }
    let Some(memory) = memory else {
        return bad("no created segment", "Pass a segment that gex_Segment_Create gave.");
    };
    if !job.binds_segments() {
        complain(
            format_args!("{function}(): created segments cannot be used here"),
            format_args!("Call gex_Segment_Attach instead."),
        );
        return GasnetError::Resource as c_int;
    }
    let endpoint = &job.endpoint;
    match endpoint.bind_own(job.team.size(), memory, || job.expose_created(memory)) {
        Some(Ok(())) => {}
        Some(Err(e)) => {
            complain(
                format_args!("{function}(): the network does not expose the segment: {e}"),
                format_args!("Call gex_Segment_Attach instead."),
            );
            return GasnetError::Resource as c_int;
        }
        None => return bad("a segment is bound already", "Bind one segment to an endpoint."),
    }
    let _ = BOUND.set(Box::new(segment));
    OK
}

/// Makes the segment that is bound to the endpoint known to the members of a team, and those of
/// the members to this process. Collective. Segments of `gex_Segment_Attach` are known already.
///
/// - `tm`: the team.
/// - `eps`, `num_eps`: endpoints of this process; with 0 it publishes nothing.
/// - `flags`: 0.
/// - Returns `GASNET_OK`.
/// - Context: by all members; not in a handler.
///
/// # Safety
/// `eps` must hold `num_eps` endpoints.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gex_EP_PublishBoundSegment(
    tm: ExObject,
    eps: *mut ExObject,
    num_eps: usize,
    flags: Flags,
) -> c_int {
    let function = &"gex_EP_PublishBoundSegment";
    let c = ctx(function);
    c.check_no_flags(function, flags);
    for i in 0..num_eps {
        // SAFETY: by this function's condition.
        unsafe { eps.add(i).read() }.check_endpoint(function);
    }
    let endpoint = c.endpoint();
    if endpoint.is_attached() {
        super::coll::meet(c, function, tm);
        return OK;
    }
    let own = endpoint.bound_segment().filter(|_| num_eps > 0);
    let [base, len] =
        own.map_or([0; 2], |own| [own.as_ptr().expose_provenance() as u64, own.len() as u64]);
    let halves = |word: u64| [word as u32, (word >> 32) as u32];
    let ([a, b], [d, e]) = (halves(base), halves(len));
    let team = team_of(c, function, tm);
    let records = collectives(c).records_of_all(c, function, (&team, true), [a, b, d, e]);
    let word = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
    let published = records.iter().zip(0..).filter_map(|(&[a, b, d, e], rank)| {
        let segment = PublishedSegment { base: word(a, b), len: word(d, e) };
        let rank = team.job_rank(TeamRank(rank))?;
        (segment.base != 0).then_some((rank, segment))
    });
    endpoint.add_published(c.team().size(), published);
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
