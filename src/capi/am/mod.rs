//! Active messages: the checks of the seven families, limits, polling and the source of a
//! message.
//!
//! Called by clients; `numbered` and `variadic` hold the C functions of the families.
//! Invariant: what reaches the runtime has a valid rank, handler index, length and, for a Long,
//! destination.

pub mod numbered;
pub mod variadic;

use super::rma::{unwatched_job, watched_local};
use super::{OK, ctx, early_job, refused};
use crate::client_memory::{RemoteRange, Src};
use crate::conduit::{Outgoing, PayloadArea};
use crate::rank::JobRank;
use crate::report;
use crate::runtime::am::{CLIENT_BASE, MAX_ARGS};
use crate::runtime::wait;
use crate::runtime::{Ctx, GasnetError, GasnetJob};
use crate::trace::{EventDetail, watch};
use core::ffi::{c_int, c_void};
use sys::byte_count::ByteCount;

/// `gasnet_node_t`
type Node = u32;
/// `gasnet_handler_t`
type Handler = u8;
/// `gasnet_handlerarg_t`
type Arg = i32;

/// Ends the job: a payload is too long.
fn too_long(function: &str, n: usize, max: usize, [gasnet_1, gasnet_ex]: [&str; 2]) -> ! {
    let limit = report::remedy_of(function, gasnet_1, gasnet_ex);
    report::fatal(
        format_args!(
            "{function}(): a payload of {} is too long; the limit is {}",
            ByteCount(n as u64),
            ByteCount(max as u64)
        ),
        format_args!("Send at most {limit}() bytes in one message."),
    )
}

/// Ends the job: the handler belongs to the library.
fn reserved_handler(function: &str, handler: Handler) -> ! {
    report::fatal(
        format_args!(
            "{function}(): handler {handler} is reserved; clients have {CLIENT_BASE} to {}",
            Handler::MAX
        ),
        format_args!(
            "Pass the index of a handler that was registered with {}.",
            report::remedy_of(function, "gasnet_attach", "gex_EP_RegisterHandlers")
        ),
    )
}

pub(super) fn check_handler(function: &str, handler: Handler) {
    if handler < CLIENT_BASE {
        reserved_handler(function, handler);
    }
}

/// What a trace records of a message.
fn message(
    node: Node,
    handler: Handler,
    src: *const c_void,
    n: usize,
    args: &[Arg],
) -> EventDetail {
    EventDetail::Message {
        node,
        handler,
        bytes: n,
        payload: src.cast(),
        args: args.as_ptr(),
        nargs: args.len(),
    }
}

/// The rank that a reply goes to; the largest number for an invalid token.
fn asker(function: &str, token: *const c_void) -> Node {
    ctx(function).message_source(token).map_or(Node::MAX, |source| source.0)
}

/// What a request returns: `GASNET_OK`, or 1 if it is immediate and refused.
#[inline(always)]
fn requested(sent: bool) -> c_int {
    c_int::from(!sent)
}

// `ANY`, here and below: whether there are arguments. Without, the compiler leaves out all that
// handles them. `NOW`: whether the request is refused where it would wait.
#[inline(never)]
pub(super) fn request_short<const ANY: bool, const NOW: bool>(
    function: &str,
    node: Node,
    handler: Handler,
    args: &[Arg],
) -> c_int {
    let args = if ANY { args } else { &[] };
    watch!(
        A "gasnet_AMRequestShort",
        message(node, handler, core::ptr::null(), 0, args),
        request_short::<ANY, NOW>(function, node, handler, args)
    );
    let c = ctx(function);
    let rank = c.team().check_rank(function, node);
    check_handler(function, handler);
    let m = Outgoing::short(handler, args);
    requested(c.request(function, rank, &m.immediate(NOW)))
}

/// The job of a call with a payload, where calls are watched. Debug checks find a payload that has
/// bytes but no address.
#[cold]
#[inline(never)]
fn watched_payload(function: &str, src: *const c_void, n: usize) -> &'static GasnetJob {
    watched_local(function, "source_addr", src, n)
}

/// The context of a call with a payload.
#[inline(always)]
fn payload_ctx(function: &str, src: *const c_void, n: usize) -> Ctx {
    unwatched_job().unwrap_or_else(|| watched_payload(function, src, n)).ctx()
}

/// The payload of a Medium; ends the job if it is too long.
///
/// # Safety
/// `n` bytes at `src` must be readable while the result is used.
#[inline(always)]
unsafe fn medium_payload<'a>(c: Ctx, function: &str, src: *const c_void, n: usize) -> Src<'a> {
    let max = c.endpoint().conduit.max_medium();
    if n > max {
        too_long(function, n, max, ["gasnet_AMMaxMedium", "gex_AM_MaxRequestMedium"]);
    }
    // SAFETY: readable, by this function's condition.
    unsafe { Src::new(src.cast(), n) }
}

/// # Safety
/// `n` bytes at `src` must be readable.
#[inline(never)]
pub(super) unsafe fn request_medium<const ANY: bool, const NOW: bool>(
    function: &str,
    node: Node,
    handler: Handler,
    src: *const c_void,
    n: usize,
    args: &[Arg],
) -> c_int {
    let args = if ANY { args } else { &[] };
    watch!(
        A "gasnet_AMRequestMedium",
        message(node, handler, src, n, args),
        request_medium::<ANY, NOW>(function, node, handler, src, n, args)
    );
    let c = payload_ctx(function, src, n);
    let rank = c.team().check_rank(function, node);
    check_handler(function, handler);
    // SAFETY: a payload, by this function's condition.
    let payload = unsafe { medium_payload(c, function, src, n) };
    let m = Outgoing::medium(handler, args, payload);
    requested(c.request(function, rank, &m.immediate(NOW)))
}

/// A Medium request with the first `n` bytes of an area, which the caller keeps if it is refused.
pub(super) fn request_area(
    function: &str,
    node: Node,
    handler: Handler,
    area: PayloadArea,
    n: usize,
    args: &[Arg],
    now: bool,
) -> c_int {
    watch!(
        A "gasnet_AMRequestMedium",
        message(node, handler, area.bytes.as_ptr().cast(), n, args),
        request_area(function, node, handler, area, n, args, now)
    );
    let c = ctx(function);
    let rank = c.team().check_rank(function, node);
    check_handler(function, handler);
    let m = Outgoing::medium(handler, args, area.bytes.part(0, n).into());
    requested(c.request_area(function, rank, &m.immediate(now), area))
}

/// # Safety
/// `n` bytes at `src` must be readable, with `source_stays` until the reply handler runs.
#[inline(never)]
#[allow(clippy::too_many_arguments)]
pub(super) unsafe fn request_long<const ANY: bool, const NOW: bool>(
    function: &str,
    node: Node,
    handler: Handler,
    src: *const c_void,
    n: usize,
    dest: *mut c_void,
    source_stays: bool,
    args: &[Arg],
) -> c_int {
    let args = if ANY { args } else { &[] };
    watch!(
        A "gasnet_AMRequestLong",
        message(node, handler, src, n, args),
        request_long::<ANY, NOW>(function, node, handler, src, n, dest, source_stays, args)
    );
    let c = payload_ctx(function, src, n);
    let rank = c.team().check_rank(function, node);
    check_handler(function, handler);
    let max = c.endpoint().conduit.max_long_request();
    if n > max {
        too_long(function, n, max, ["gasnet_AMMaxLongRequest", "gex_AM_MaxRequestLong"]);
    }
    let to = c.endpoint().long_destination(function, rank, dest.cast(), n);
    // SAFETY: a payload, by this function's condition, which says how long it stays.
    let payload = unsafe { Src::new(src.cast(), n) };
    let m = if source_stays {
        Outgoing::long_async(handler, args, payload, to, dest.addr())
    } else {
        Outgoing::long(handler, args, payload, to, dest.addr())
    };
    requested(c.request(function, rank, &m.immediate(NOW)))
}

#[inline(never)]
pub(super) fn reply_short<const ANY: bool>(
    function: &str,
    token: *const c_void,
    handler: Handler,
    args: &[Arg],
) -> c_int {
    let args = if ANY { args } else { &[] };
    watch!(
        A "gasnet_AMReplyShort",
        message(asker(function, token), handler, core::ptr::null(), 0, args),
        reply_short::<ANY>(function, token, handler, args)
    );
    let c = ctx(function);
    check_handler(function, handler);
    let m = Outgoing::short(handler, args);
    c.reply(function, token, &m);
    OK
}

/// # Safety
/// `n` bytes at `src` must be readable.
#[inline(never)]
pub(super) unsafe fn reply_medium<const ANY: bool>(
    function: &str,
    token: *const c_void,
    handler: Handler,
    src: *const c_void,
    n: usize,
    args: &[Arg],
) -> c_int {
    let args = if ANY { args } else { &[] };
    watch!(
        A "gasnet_AMReplyMedium",
        message(asker(function, token), handler, src, n, args),
        reply_medium::<ANY>(function, token, handler, src, n, args)
    );
    let c = payload_ctx(function, src, n);
    check_handler(function, handler);
    // SAFETY: a payload, by this function's condition.
    let payload = unsafe { medium_payload(c, function, src, n) };
    c.reply(function, token, &Outgoing::medium(handler, args, payload));
    OK
}

/// A Medium reply with the first `n` bytes of an area.
pub(super) fn reply_area(
    function: &str,
    token: *const c_void,
    handler: Handler,
    area: PayloadArea,
    n: usize,
    args: &[Arg],
) -> c_int {
    watch!(
        A "gasnet_AMReplyMedium",
        message(asker(function, token), handler, area.bytes.as_ptr().cast(), n, args),
        reply_area(function, token, handler, area, n, args)
    );
    let c = ctx(function);
    check_handler(function, handler);
    let m = Outgoing::medium(handler, args, area.bytes.part(0, n).into());
    c.reply_area(function, token, &m, area);
    OK
}

/// # Safety
/// `n` bytes at `src` must be readable.
#[inline(never)]
pub(super) unsafe fn reply_long<const ANY: bool>(
    function: &str,
    token: *const c_void,
    handler: Handler,
    src: *const c_void,
    n: usize,
    dest: *mut c_void,
    args: &[Arg],
) -> c_int {
    let args = if ANY { args } else { &[] };
    watch!(
        A "gasnet_AMReplyLong",
        message(asker(function, token), handler, src, n, args),
        reply_long::<ANY>(function, token, handler, src, n, dest, args)
    );
    let c = payload_ctx(function, src, n);
    check_handler(function, handler);
    let max = c.endpoint().conduit.max_long_reply();
    if n > max {
        too_long(function, n, max, ["gasnet_AMMaxLongReply", "gex_AM_MaxReplyLong"]);
    }
    // A reply with a token that is not valid is refused before its destination matters.
    let nowhere = RemoteRange::unmapped(JobRank(0), usize::MAX, 0);
    let to = c
        .message_source(token)
        .map_or(nowhere, |source| c.endpoint().long_destination(function, source, dest.cast(), n));
    // SAFETY: a payload, by this function's condition.
    let payload = unsafe { Src::new(src.cast(), n) };
    c.reply(function, token, &Outgoing::long(handler, args, payload, to, dest.addr()));
    OK
}

/// Returns the most arguments of an active message: 16.
///
/// - Context: anywhere.
#[unsafe(no_mangle)]
pub extern "C" fn gasnet_AMMaxArgs() -> usize {
    MAX_ARGS
}

/// Returns the most bytes of the payload of a Medium.
///
/// - Context: from `gasnet_init` on, in handlers too.
#[unsafe(no_mangle)]
pub extern "C" fn gasnet_AMMaxMedium() -> usize {
    early_job("gasnet_AMMaxMedium").endpoint.conduit.max_medium()
}

/// Returns the most bytes of the payload of a Long request.
///
/// - Context: from `gasnet_init` on, in handlers too.
#[unsafe(no_mangle)]
pub extern "C" fn gasnet_AMMaxLongRequest() -> usize {
    early_job("gasnet_AMMaxLongRequest").endpoint.conduit.max_long_request()
}

/// Returns the most bytes of the payload of a Long reply.
///
/// - Context: from `gasnet_init` on, in handlers too.
#[unsafe(no_mangle)]
pub extern "C" fn gasnet_AMMaxLongReply() -> usize {
    early_job("gasnet_AMMaxLongReply").endpoint.conduit.max_long_reply()
}

/// Serves the network and runs the handlers of the messages that have arrived. In a handler it
/// does nothing, and says so once.
///
/// - Returns `GASNET_OK`.
/// - Context: after `gasnet_attach`; not in a handler or a no-interrupt section, and not while
///   a handler-safe lock is held.
#[unsafe(no_mangle)]
pub extern "C" fn gasnet_AMPoll() -> c_int {
    watch!(X "gasnet_AMPoll", EventDetail::Nothing, gasnet_AMPoll());
    let function = "gasnet_AMPoll";
    // What is needed after the poll is looked up again: to keep it costs each poll more.
    if !ctx(function).poll() && wait::shares_cpus() {
        ctx(function).polled_in_vain();
    }
    OK
}

/// One round of a wait that the `GASNET_BLOCKUNTIL` macro makes: spins, yields or sleeps as the
/// wait mode says, and polls.
///
/// - `round`: 0 in the first round, which only polls and ends the note of an earlier wait; later
///   what the last call returned.
/// - Returns the number of the next round.
/// - Context: after `gasnet_attach`; not in a handler or a no-interrupt section, and not while
///   a handler-safe lock is held.
#[unsafe(no_mangle)]
pub extern "C" fn gasneti_blockuntil_round(round: u32) -> u32 {
    let c = ctx("GASNET_BLOCKUNTIL");
    c.check_may_wait();
    match round.checked_sub(2) {
        Some(past) => c.relax(past, &"GASNET_BLOCKUNTIL"),
        None if round == 0 => c.begin_wait(),
        None => {}
    }
    // A poll serves a limited number of events: where there were some there may be more.
    if c.poll() { 1 } else { wait::next_round(round.max(1)) }
}

/// Reports the rank that sent the message whose handler is running.
///
/// - `token`: what the handler was given.
/// - `source`: where the rank is stored.
/// - Returns `GASNET_OK`; `GASNET_ERR_BAD_ARG`, after a message, if `source` is null or `token`
///   is not that of a handler which this thread runs.
/// - Context: in a handler.
///
/// # Safety
/// `source` must be null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnet_AMGetMsgSource(token: *mut c_void, source: *mut Node) -> c_int {
    match ctx("gasnet_AMGetMsgSource").message_source(token) {
        Some(rank) if !source.is_null() => {
            // SAFETY: not null, so where the specification has the rank stored.
            unsafe { source.write(rank.0) };
            OK
        }
        source => refused(
            GasnetError::BadArg,
            format_args!(
                "gasnet_AMGetMsgSource(): {}",
                match source {
                    Some(_) => "the place for the rank is null",
                    None => "the token is not that of a handler which this thread runs",
                }
            ),
            "Call it in the handler, with the token that the handler got.",
        ),
    }
}
