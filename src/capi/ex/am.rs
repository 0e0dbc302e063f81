//! Active messages of GASNet-EX: handlers, limits, what a token tells, and the functions that
//! send.
//!
//! Called by clients, the functions that send through the inline functions of gasnetex_am.h.
//! Invariant: a message goes the way of [`crate::capi::am`], which checks handler, length and
//! destination. The local side is complete when a call returns, so an event for it is invalid.
//! With `GEX_FLAG_IMMEDIATE` a request is refused, and does nothing, where it would wait for what
//! the requests under way hold. A reply waits for nothing of that kind.

use super::misuse::outside_handlers;
use super::objects::{ExObject, job_rank, node, with_team};
use super::{Event, Flags, LocalCompletion, NOW, RANK_INVALID, Rank, is_immediate, wrong_lc_opt};
use crate::capi::{OK, am, ctx, early_job, initialized};
use crate::conduit::Category;
use crate::env;
use crate::report;
use crate::runtime::am::{AmEntry, FreeIndex, MAX_ARGS};
use crate::runtime::{GasnetError, checks};
use core::ffi::{c_int, c_uint, c_void};

/// `gex_AM_Index_t`
pub(super) type Handler = u8;
/// `gex_AM_Arg_t`
pub(super) type Arg = i32;

/// What messages call these functions.
const REQUEST_SHORT: &str = "gex_AM_RequestShort";
const REQUEST_MEDIUM: &str = "gex_AM_RequestMedium";

const _: () = assert!(size_of::<AmEntry>() == 40 || size_of::<usize>() != 8);

/// Registers handlers of active messages. Not collective; may be called several times.
///
/// - `ep`: the endpoint.
/// - `table`, `numentries`: the rows. Explicit indices are `GEX_AM_INDEX_BASE` to 255; rows with
///   index 0 get the highest free one, in table order, which is written back. The table stays the
///   client's; strings and pointers in it are kept as they are.
/// - Returns `GASNET_OK`; `GASNET_ERR_BAD_ARG`, after a message, for an invalid row: no handler of
///   the table is registered then.
/// - Context: after `gex_Client_Init`; not in a handler.
///
/// # Safety
/// `table` must hold `numentries` rows that may be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gex_EP_RegisterHandlers(
    ep: ExObject,
    table: *mut AmEntry,
    numentries: usize,
) -> c_int {
    let function = "gex_EP_RegisterHandlers";
    let job = outside_handlers(function);
    ep.check_endpoint(function);
    let rows = match numentries {
        0 => &mut [],
        _ if table.is_null() => {
            report::warn(
                format_args!("{function}(): the table is null, numentries {numentries}"),
                format_args!("Pass a table and the number of its rows, or 0 rows."),
            );
            return GasnetError::BadArg as c_int;
        }
        // SAFETY: the specification demands a table of as many rows.
        n => unsafe { core::slice::from_raw_parts_mut(table, n) },
    };
    crate::capi::code(job.endpoint.handlers.register(function, rows, FreeIndex::Highest))
}

/// `gex_Token_Info_t`
#[repr(C)]
#[derive(Debug)]
pub struct TokenInfo {
    srcrank: Rank,
    ep: ExObject,
    entry: *const AmEntry,
    is_req: c_int,
    is_long: c_int,
}

/// `GEX_TI_ALL`
const ALL_FIELDS: c_uint = 31;

/// Reports what is known of the message whose handler is running.
///
/// - `token`: what the handler was given.
/// - `info`: where the fields are stored; all are.
/// - `mask`: the fields that are wanted (`GEX_TI_*`).
/// - Returns the fields that are valid.
/// - Context: in a handler.
///
/// # Safety
/// `info` must be writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gex_Token_Info(
    token: *mut c_void,
    info: *mut TokenInfo,
    _mask: c_uint,
) -> c_uint {
    let function = "gex_Token_Info";
    let c = ctx(function);
    let found = c.with_token(token, |token| TokenInfo {
        srcrank: token.source().0,
        ep: ExObject::THE_ENDPOINT,
        entry: match c.endpoint().handlers.entry(token.handler()) {
            Some(entry) => core::ptr::from_ref(entry),
            None => core::ptr::null(),
        },
        is_req: c_int::from(token.is_request()),
        is_long: c_int::from(token.category() == Category::Long),
    });
    let Some(found) = found else { no_token(function) };
    // SAFETY: the specification demands a place for the result.
    unsafe { info.write(found) };
    ALL_FIELDS
}

#[cold]
fn no_token(function: &str) -> ! {
    report::fatal(
        format_args!(
            "{function}(): the token is not that of a handler which this thread is running"
        ),
        format_args!("Call it in the handler, with the token that the handler got."),
    )
}

/// Returns the most arguments of an active message: 16.
///
/// - Context: anywhere.
#[unsafe(no_mangle)]
pub extern "C" fn gex_AM_MaxArgs() -> c_uint {
    MAX_ARGS as c_uint
}

/// Largest payload of a Medium.
fn max_medium(function: &str) -> usize {
    early_job(function).endpoint.conduit.max_medium()
}

/// Largest payload of a Medium, also before there is a job: Realm reads it then. The variable
/// decides in both cases.
fn least_medium(_function: &str) -> usize {
    match initialized() {
        Some(job) => job.endpoint.conduit.max_medium(),
        None => env::AM_MAX_MEDIUM.get(),
    }
}

/// Largest payload of a Long request.
fn max_long_request(function: &str) -> usize {
    early_job(function).endpoint.conduit.max_long_request()
}

/// Largest payload of a Long reply.
fn max_long_reply(function: &str) -> usize {
    early_job(function).endpoint.conduit.max_long_reply()
}

/// Ends the job unless there is such a rank, or none is named.
fn check_rank(function: &str, tm: ExObject, rank: Rank) {
    if rank != RANK_INVALID {
        job_rank(early_job(function), function, tm, rank);
    } else if checks::on() && tm != ExObject::PAIR {
        with_team(early_job(function), function, tm, |_| ());
    }
}

/// Ends the job if no message has these arguments. Does nothing if checks are off.
fn check_message(function: &str, lc_opt: *const Event, numargs: c_uint) {
    if !checks::on() {
        return;
    }
    if numargs as usize > MAX_ARGS {
        too_many_arguments(function, numargs as usize);
    }
    if LocalCompletion::of(lc_opt.cast_mut()) == LocalCompletion::Defer {
        wrong_lc_opt(function, "GROUP or a place");
    }
}

macro_rules! limits {
    ($($max:ident $limit:ident, $lub:ident $least:ident $context:literal, $what:literal;)*) => { $(
        #[doc = concat!("Returns the most bytes of the payload of ", $what, ".")]
        ///
        /// - `tm`, `other_rank`: the other rank; `GEX_RANK_INVALID` for the least over all.
        /// - `lc_opt`, `flags`, `numargs`: of the message; the limit does not depend on them.
        /// - Context: after `gex_Client_Init`, in handlers too.
        #[unsafe(no_mangle)]
        pub extern "C" fn $max(
            tm: ExObject,
            other_rank: Rank,
            lc_opt: *const Event,
            _flags: Flags,
            numargs: c_uint,
        ) -> usize {
            check_rank(stringify!($max), tm, other_rank);
            check_message(stringify!($max), lc_opt, numargs);
            $limit(stringify!($max))
        }

        #[doc = concat!("Returns the most bytes of the payload of ", $what, ", to any rank.")]
        ///
        #[doc = concat!("- Context: ", $context, ".")]
        #[unsafe(no_mangle)]
        pub extern "C" fn $lub() -> usize {
            $least(stringify!($lub))
        }
    )* };
}

limits! {
    gex_AM_MaxRequestMedium max_medium, gex_AM_LUBRequestMedium least_medium "anywhere",
        "a Medium request";
    gex_AM_MaxReplyMedium max_medium, gex_AM_LUBReplyMedium least_medium "anywhere",
        "a Medium reply";
    gex_AM_MaxRequestLong max_long_request, gex_AM_LUBRequestLong max_long_request
        "after `gex_Client_Init`, in handlers too", "a Long request";
    gex_AM_MaxReplyLong max_long_reply, gex_AM_LUBReplyLong max_long_reply
        "after `gex_Client_Init`, in handlers too", "a Long reply";
}

/// Ends the job unless a handler runs with this token. Does nothing if checks are off.
fn check_token(function: &str, token: *mut c_void) {
    if checks::on() && ctx(function).with_token(token, |_| ()).is_none() {
        no_token(function);
    }
}

/// Returns the most bytes of the payload of a Medium reply to a request.
///
/// - `token`: that of the request's handler.
/// - `lc_opt`, `flags`, `numargs`: of the reply; the limit does not depend on them.
/// - Context: in a handler.
#[unsafe(no_mangle)]
pub extern "C" fn gex_Token_MaxReplyMedium(
    token: *mut c_void,
    lc_opt: *const Event,
    _flags: Flags,
    numargs: c_uint,
) -> usize {
    let function = "gex_Token_MaxReplyMedium";
    check_token(function, token);
    check_message(function, lc_opt, numargs);
    max_medium(function)
}

/// Returns the most bytes of the payload of a Long reply to a request.
///
/// - `token`: that of the request's handler.
/// - `lc_opt`, `flags`, `numargs`: of the reply; the limit does not depend on them.
/// - Context: in a handler.
#[unsafe(no_mangle)]
pub extern "C" fn gex_Token_MaxReplyLong(
    token: *mut c_void,
    lc_opt: *const Event,
    _flags: Flags,
    numargs: c_uint,
) -> usize {
    let function = "gex_Token_MaxReplyLong";
    check_token(function, token);
    check_message(function, lc_opt, numargs);
    max_long_reply(function)
}

/// The arguments of a message.
///
/// # Safety
/// `numargs` values at `args` must be readable.
#[inline(always)]
pub(super) unsafe fn arguments<'a>(
    function: &str,
    numargs: c_uint,
    args: *const Arg,
) -> &'a [Arg] {
    match numargs as usize {
        0 => &[],
        // SAFETY: by this function's condition.
        n if n <= MAX_ARGS => unsafe { core::slice::from_raw_parts(args, n) },
        n => too_many_arguments(function, n),
    }
}

#[cold]
#[inline(never)]
pub(super) fn too_many_arguments(function: &str, n: usize) -> ! {
    report::fatal(
        format_args!(
            "{function}(): {n} arguments are out of range; a message has 0 to {MAX_ARGS}"
        ),
        format_args!("Send the rest in the payload."),
    )
}

/// Reports that the local side of a message is complete, as the client wants it. Called before a
/// reply is sent: nothing sees the difference, and the call that sends is the last one.
///
/// # Safety
/// `lc_opt` must be a place for an event if it is no constant.
#[inline(always)]
pub(super) unsafe fn complete(function: &str, lc_opt: *mut Event, group: bool) {
    if lc_opt.addr() == NOW {
        return;
    }
    // SAFETY: by this function's condition.
    unsafe { complete_elsewhere(function, lc_opt, group) }
}

/// Sends a request, and reports that its local side is complete unless it was refused.
///
/// # Safety
/// As of [`complete`].
#[inline(always)]
unsafe fn sent(function: &str, lc_opt: *mut Event, send: impl FnOnce() -> c_int) -> c_int {
    let local = LocalCompletion::of_message(function, lc_opt, true);
    let refused = send();
    if refused == OK {
        // SAFETY: by this function's condition.
        unsafe { local.store(core::ptr::null_mut()) };
    }
    refused
}

/// [`complete`] of another `lc_opt` than `GEX_EVENT_NOW`.
///
/// # Safety
/// As of [`complete`].
#[cold]
#[inline(never)]
unsafe fn complete_elsewhere(function: &str, lc_opt: *mut Event, group: bool) {
    let local = LocalCompletion::of_message(function, lc_opt, group);
    // SAFETY: by this function's condition.
    unsafe { local.store(core::ptr::null_mut()) }
}

/// `gex_AM_RequestShort` with the number of arguments and an array of them.
///
/// - `tm`, `rank`: the target. `handler`: its handler. `flags`: `GEX_FLAG_IMMEDIATE`.
/// - Returns 0; 1 if it is refused.
///
/// # Safety
/// `numargs` values at `args` must be readable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasneti_RequestShort(
    tm: ExObject,
    rank: Rank,
    handler: Handler,
    flags: Flags,
    numargs: c_uint,
    args: *const Arg,
) -> c_int {
    if !tm.has_job_ranks() || is_immediate(flags) {
        // SAFETY: as this function requires.
        return unsafe { request_short_otherwise(tm, rank, handler, flags, numargs, args) };
    }
    // As in the functions of GASNet-1, messages without arguments have code of their own.
    if numargs == 0 {
        return am::request_short::<false, false>(REQUEST_SHORT, rank, handler, &[]);
    }
    // SAFETY: as this function requires.
    let args = unsafe { arguments(REQUEST_SHORT, numargs, args) };
    am::request_short::<true, false>(REQUEST_SHORT, rank, handler, args)
}

/// [`gasneti_RequestShort`] in a team with other ranks, or with flags. Apart, so that the function
/// above saves no registers for it.
///
/// # Safety
/// As of [`gasneti_RequestShort`].
#[cold]
#[inline(never)]
unsafe fn request_short_otherwise(
    tm: ExObject,
    rank: Rank,
    handler: Handler,
    flags: Flags,
    numargs: c_uint,
    args: *const Arg,
) -> c_int {
    let to = node(REQUEST_SHORT, tm, rank);
    // SAFETY: as this function requires.
    let args = unsafe { arguments(REQUEST_SHORT, numargs, args) };
    match is_immediate(flags) {
        true => am::request_short::<true, true>(REQUEST_SHORT, to, handler, args),
        false => am::request_short::<true, false>(REQUEST_SHORT, to, handler, args),
    }
}

/// `gex_AM_RequestMedium` with the number of arguments and an array of them.
///
/// - `tm`, `rank`: the target. `handler`: its handler. `source_addr`, `nbytes`: the payload.
/// - `lc_opt`: `GEX_EVENT_NOW`, `GEX_EVENT_GROUP` or a place. `flags`:
///   `GEX_FLAG_IMMEDIATE`.
/// - Returns 0; 1 if it is refused.
///
/// # Safety
/// `numargs` values at `args` and `nbytes` bytes at `source_addr` must be readable, `lc_opt` a
/// place for an event if it is no constant.
#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments)]
pub unsafe extern "C" fn gasneti_RequestMedium(
    tm: ExObject,
    rank: Rank,
    handler: Handler,
    source_addr: *const c_void,
    nbytes: usize,
    lc_opt: *mut Event,
    flags: Flags,
    numargs: c_uint,
    args: *const Arg,
) -> c_int {
    if !tm.has_job_ranks() || is_immediate(flags) || lc_opt.addr() != NOW {
        // SAFETY: as this function requires.
        return unsafe {
            request_medium_otherwise(
                tm,
                rank,
                handler,
                source_addr,
                nbytes,
                lc_opt,
                flags,
                numargs,
                args,
            )
        };
    }
    // SAFETY: as this function requires.
    unsafe {
        if numargs == 0 {
            let send = am::request_medium::<false, false>;
            return send(REQUEST_MEDIUM, rank, handler, source_addr, nbytes, &[]);
        }
        let args = arguments(REQUEST_MEDIUM, numargs, args);
        am::request_medium::<true, false>(REQUEST_MEDIUM, rank, handler, source_addr, nbytes, args)
    }
}

/// [`gasneti_RequestMedium`] in a team with other ranks, with flags, or with another local
/// completion than `GEX_EVENT_NOW`. Apart, so that the function above saves no registers for it.
///
/// # Safety
/// As of [`gasneti_RequestMedium`].
#[cold]
#[inline(never)]
#[allow(clippy::too_many_arguments)]
unsafe fn request_medium_otherwise(
    tm: ExObject,
    rank: Rank,
    handler: Handler,
    source_addr: *const c_void,
    nbytes: usize,
    lc_opt: *mut Event,
    flags: Flags,
    numargs: c_uint,
    args: *const Arg,
) -> c_int {
    let to = node(REQUEST_MEDIUM, tm, rank);
    // SAFETY: as this function requires.
    unsafe {
        let args = arguments(REQUEST_MEDIUM, numargs, args);
        let send = match is_immediate(flags) {
            true => am::request_medium::<true, true>,
            false => am::request_medium::<true, false>,
        };
        sent(REQUEST_MEDIUM, lc_opt, || {
            send(REQUEST_MEDIUM, to, handler, source_addr, nbytes, args)
        })
    }
}

/// `gex_AM_RequestLong` with the number of arguments and an array of them.
///
/// - `tm`, `rank`: the target. `handler`: its handler. `source_addr`, `nbytes`: the payload.
/// - `dest_addr`: its destination in the segment of the target.
/// - `lc_opt`: `GEX_EVENT_NOW`, `GEX_EVENT_GROUP` or a place. `flags`:
///   `GEX_FLAG_IMMEDIATE`.
/// - Returns 0; 1 if it is refused.
///
/// # Safety
/// `numargs` values at `args` and `nbytes` bytes at `source_addr` must be readable, `lc_opt` a
/// place for an event if it is no constant.
#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments)]
pub unsafe extern "C" fn gasneti_RequestLong(
    tm: ExObject,
    rank: Rank,
    handler: Handler,
    source_addr: *const c_void,
    nbytes: usize,
    dest_addr: *mut c_void,
    lc_opt: *mut Event,
    flags: Flags,
    numargs: c_uint,
    args: *const Arg,
) -> c_int {
    let function = "gex_AM_RequestLong";
    let to = node(function, tm, rank);
    // SAFETY: as this function requires.
    unsafe {
        let args = arguments(function, numargs, args);
        let send = match is_immediate(flags) {
            true => am::request_long::<true, true>,
            false => am::request_long::<true, false>,
        };
        sent(function, lc_opt, || {
            send(function, to, handler, source_addr, nbytes, dest_addr, false, args)
        })
    }
}

/// `gex_AM_ReplyShort` with the number of arguments and an array of them.
///
/// - `token`: that of the handler. `handler`: that of the requester. `flags`: accepted.
/// - Returns 0.
///
/// # Safety
/// `numargs` values at `args` must be readable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasneti_ReplyShort(
    token: *mut c_void,
    handler: Handler,
    _flags: Flags,
    numargs: c_uint,
    args: *const Arg,
) -> c_int {
    let function = "gex_AM_ReplyShort";
    // SAFETY: as this function requires.
    let args = unsafe { arguments(function, numargs, args) };
    am::reply_short::<true>(function, token, handler, args)
}

/// `gex_AM_ReplyMedium` with the number of arguments and an array of them.
///
/// - `token`: that of the handler. `handler`: that of the requester.
/// - `source_addr`, `nbytes`: the payload. `lc_opt`: `GEX_EVENT_NOW` or a place. `flags`:
///   accepted.
/// - Returns 0.
///
/// # Safety
/// As of [`gasneti_RequestMedium`].
#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments)]
pub unsafe extern "C" fn gasneti_ReplyMedium(
    token: *mut c_void,
    handler: Handler,
    source_addr: *const c_void,
    nbytes: usize,
    lc_opt: *mut Event,
    _flags: Flags,
    numargs: c_uint,
    args: *const Arg,
) -> c_int {
    let function = "gex_AM_ReplyMedium";
    // SAFETY: as this function requires.
    unsafe {
        let args = arguments(function, numargs, args);
        complete(function, lc_opt, false);
        am::reply_medium::<true>(function, token, handler, source_addr, nbytes, args)
    }
}

/// `gex_AM_ReplyLong` with the number of arguments and an array of them.
///
/// - `token`: that of the handler. `handler`: that of the requester.
/// - `source_addr`, `nbytes`: the payload. `dest_addr`: its destination in the segment of the
///   requester. `lc_opt`: `GEX_EVENT_NOW` or a place. `flags`: accepted.
/// - Returns 0.
///
/// # Safety
/// As of [`gasneti_RequestMedium`].
#[unsafe(no_mangle)]
#[allow(clippy::too_many_arguments)]
pub unsafe extern "C" fn gasneti_ReplyLong(
    token: *mut c_void,
    handler: Handler,
    source_addr: *const c_void,
    nbytes: usize,
    dest_addr: *mut c_void,
    lc_opt: *mut Event,
    _flags: Flags,
    numargs: c_uint,
    args: *const Arg,
) -> c_int {
    let function = "gex_AM_ReplyLong";
    // SAFETY: as this function requires.
    unsafe {
        let args = arguments(function, numargs, args);
        complete(function, lc_opt, false);
        am::reply_long::<true>(function, token, handler, source_addr, nbytes, dest_addr, args)
    }
}
