//! Active messages: the 119 numbered entry points, the 7 that take an array of arguments,
//! limits, and polling.
//!
//! The unnumbered variadic forms of the headers pack their arguments and call the
//! `gasneti_AM*V` functions here.

use super::{OK, ctx, early_job};
use crate::conduit::{Category, Outgoing};
use crate::report;
use crate::runtime::GasnetError;
use crate::runtime::am::{CLIENT_BASE, MAX_ARGS};
use crate::trace::{EventDetail, watch};
use core::ffi::{c_int, c_void};

/// `gasnet_node_t`
type Node = u32;
/// `gasnet_handler_t`
type Handler = u8;
/// `gasnet_handlerarg_t`
type Arg = i32;

/// Ends the job: a payload is too long.
#[cold]
fn too_long(function: &str, n: usize, max: usize, limit: &str) -> ! {
    report::fatal(
        format_args!("{function}(): a payload of {n} bytes is too long; the limit is {max}"),
        format_args!("Send at most {limit}() bytes in one message."),
    )
}

#[cold]
fn too_many_args(function: &str, n: c_int) -> ! {
    report::fatal(
        format_args!(
            "{function}(): {n} arguments are out of range; a message has 0 to {MAX_ARGS}"
        ),
        format_args!("Send the rest in the payload."),
    )
}

/// Ends the job: the handler belongs to the library.
#[cold]
fn reserved_handler(function: &str, handler: Handler) -> ! {
    report::fatal(
        format_args!(
            "{function}(): handler {handler} is reserved; clients have {CLIENT_BASE} to {}",
            Handler::MAX
        ),
        format_args!("Pass the index of a handler that was registered with gasnet_attach."),
    )
}

#[inline]
fn check_handler(function: &str, handler: Handler) {
    if handler < CLIENT_BASE {
        reserved_handler(function, handler);
    }
}

/// What is told of a message.
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

/// The rank that a reply goes to; none for a token that cannot be.
fn asker(function: &str, token: *const c_void) -> Node {
    ctx(function).token(token).map_or(Node::MAX, |t| t.source)
}

// `ANY`, here and below: whether there are arguments. Without, the compiler leaves out all that
// handles them.
#[inline(never)]
fn request_short<const ANY: bool>(
    function: &str,
    node: Node,
    handler: Handler,
    args: &[Arg],
) -> c_int {
    let args = if ANY { args } else { &[] };
    watch!(
        A "gasnet_AMRequestShort",
        message(node, handler, core::ptr::null(), 0, args),
        request_short::<ANY>(function, node, handler, args)
    );
    let c = ctx(function);
    c.job.check_rank(function, node);
    check_handler(function, handler);
    let m = Outgoing::short(handler, args);
    // SAFETY: there is no payload.
    unsafe { c.request(function, node, &m) };
    OK
}

/// # Safety
/// `n` bytes at `src` must be readable.
#[inline(never)]
unsafe fn request_medium<const ANY: bool>(
    function: &str,
    node: Node,
    handler: Handler,
    src: *const c_void,
    n: usize,
    args: &[Arg],
) -> c_int {
    let args = if ANY { args } else { &[] };
    // SAFETY: the same call again.
    watch!(
        A "gasnet_AMRequestMedium",
        message(node, handler, src, n, args),
        unsafe { request_medium::<ANY>(function, node, handler, src, n, args) }
    );
    let c = ctx(function);
    c.job.check_rank(function, node);
    check_handler(function, handler);
    let max = c.job.conduit.max_medium();
    if n > max {
        too_long(function, n, max, "gasnet_AMMaxMedium");
    }
    let m = Outgoing::medium(handler, args, src.cast(), n);
    // SAFETY: the caller's promise.
    unsafe { c.request(function, node, &m) };
    OK
}

/// # Safety
/// `n` bytes at `src` must be readable, with `source_stays` until the reply handler runs.
#[inline(never)]
#[allow(clippy::too_many_arguments)]
unsafe fn request_long<const ANY: bool>(
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
    // SAFETY: the same call again.
    watch!(
        A "gasnet_AMRequestLong",
        message(node, handler, src, n, args),
        unsafe { request_long::<ANY>(function, node, handler, src, n, dest, source_stays, args) }
    );
    let c = ctx(function);
    c.job.check_rank(function, node);
    check_handler(function, handler);
    let max = c.job.conduit.max_long_request();
    if n > max {
        too_long(function, n, max, "gasnet_AMMaxLongRequest");
    }
    let near = c.job.long_destination(function, node, dest.cast(), n);
    let m = Outgoing {
        category: Category::Long,
        handler,
        args,
        src: src.cast(),
        nbytes: n,
        dest: dest.cast(),
        near,
        source_stays,
    };
    // SAFETY: the caller's promise; the destination was checked.
    unsafe { c.request(function, node, &m) };
    OK
}

#[inline(never)]
fn reply_short<const ANY: bool>(
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
    // SAFETY: there is no payload.
    unsafe { c.reply(function, token, &m) };
    OK
}

/// # Safety
/// `n` bytes at `src` must be readable.
#[inline(never)]
unsafe fn reply_medium<const ANY: bool>(
    function: &str,
    token: *const c_void,
    handler: Handler,
    src: *const c_void,
    n: usize,
    args: &[Arg],
) -> c_int {
    let args = if ANY { args } else { &[] };
    // SAFETY: the same call again.
    watch!(
        A "gasnet_AMReplyMedium",
        message(asker(function, token), handler, src, n, args),
        unsafe { reply_medium::<ANY>(function, token, handler, src, n, args) }
    );
    let c = ctx(function);
    check_handler(function, handler);
    let max = c.job.conduit.max_medium();
    if n > max {
        too_long(function, n, max, "gasnet_AMMaxMedium");
    }
    let m = Outgoing::medium(handler, args, src.cast(), n);
    // SAFETY: the caller's promise.
    unsafe { c.reply(function, token, &m) };
    OK
}

/// # Safety
/// `n` bytes at `src` must be readable.
#[inline(never)]
unsafe fn reply_long<const ANY: bool>(
    function: &str,
    token: *const c_void,
    handler: Handler,
    src: *const c_void,
    n: usize,
    dest: *mut c_void,
    args: &[Arg],
) -> c_int {
    let args = if ANY { args } else { &[] };
    // SAFETY: the same call again.
    watch!(
        A "gasnet_AMReplyLong",
        message(asker(function, token), handler, src, n, args),
        unsafe { reply_long::<ANY>(function, token, handler, src, n, dest, args) }
    );
    let c = ctx(function);
    check_handler(function, handler);
    let max = c.job.conduit.max_long_reply();
    if n > max {
        too_long(function, n, max, "gasnet_AMMaxLongReply");
    }
    let to = c.token(token);
    let near = to.map_or(core::ptr::null_mut(), |t| {
        c.job.long_destination(function, t.source, dest.cast(), n)
    });
    let m = Outgoing {
        category: Category::Long,
        handler,
        args,
        src: src.cast(),
        nbytes: n,
        dest: dest.cast(),
        near,
        source_stays: false,
    };
    // SAFETY: the caller's promise; the destination was checked.
    unsafe { c.reply(function, token, &m) };
    OK
}

/// Whether a function with these arguments has any.
const fn any(args: &[&str]) -> bool {
    !args.is_empty()
}

/// The seven families for one number of arguments.
macro_rules! families {
    ($($rs:ident $rm:ident $rl:ident $ra:ident $ps:ident $pm:ident $pl:ident ($($a:ident)*);)*) => {$(
        /// Sends a request without payload: runs a handler on the target.
        ///
        /// - `dest`: the target, a rank below `gasnet_nodes()`; this process is one.
        /// - `handler`: index of its handler, 128 to 255.
        /// - Further arguments: passed to the handler, as 32-bit integers.
        /// - Returns `GASNET_OK`; a misuse ends the job with a message.
        /// - Context: after `gasnet_attach`; not in a handler or a no-interrupt section, and
        ///   not while a handler-safe lock is held.
        #[unsafe(no_mangle)]
        pub extern "C" fn $rs(dest: Node, handler: Handler, $($a: Arg),*) -> c_int {
            request_short::<{ any(&[$(stringify!($a)),*]) }>(stringify!($rs), dest, handler, &[$($a),*])
        }

        /// Sends a request with a payload, which the handler finds in a buffer of the library,
        /// aligned to 8 bytes, while it runs.
        ///
        /// - `dest`: the target, a rank below `gasnet_nodes()`; this process is one.
        /// - `handler`: index of its handler, 128 to 255.
        /// - `source_addr`: the payload, any memory of the caller; it may be reused when the
        ///   call returns.
        /// - `nbytes`: its bytes, at most `gasnet_AMMaxMedium()`; with 0 the address is not
        ///   used.
        /// - Further arguments: passed to the handler, as 32-bit integers.
        /// - Returns `GASNET_OK`; a misuse ends the job with a message.
        /// - Context: after `gasnet_attach`; not in a handler or a no-interrupt section, and
        ///   not while a handler-safe lock is held.
        ///
        /// # Safety
        /// `nbytes` bytes at `source_addr` must be readable.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $rm(
            dest: Node, handler: Handler, source_addr: *const c_void, nbytes: usize, $($a: Arg),*
        ) -> c_int {
            // SAFETY: the caller's promise.
            unsafe { request_medium::<{ any(&[$(stringify!($a)),*]) }>(stringify!($rm), dest, handler, source_addr, nbytes, &[$($a),*]) }
        }

        /// Sends a request whose payload is copied to the segment of the target before the
        /// handler runs.
        ///
        /// - `dest`: the target, a rank below `gasnet_nodes()`; this process is one.
        /// - `handler`: index of its handler, 128 to 255.
        /// - `source_addr`: the payload, any memory of the caller; it may be reused when the
        ///   call returns.
        /// - `nbytes`: its bytes, at most `gasnet_AMMaxLongRequest()`; with 0 the address is
        ///   not used.
        /// - `dest_addr`: where they go, an address of the receiver in its segment.
        /// - Further arguments: passed to the handler, as 32-bit integers.
        /// - Returns `GASNET_OK`; a misuse ends the job with a message.
        /// - Context: after `gasnet_attach`; not in a handler or a no-interrupt section, and
        ///   not while a handler-safe lock is held.
        ///
        /// # Safety
        /// `nbytes` bytes at `source_addr` must be readable.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $rl(
            dest: Node, handler: Handler, source_addr: *const c_void, nbytes: usize, dest_addr: *mut c_void,
            $($a: Arg),*
        ) -> c_int {
            // SAFETY: the caller's promise.
            unsafe { request_long::<{ any(&[$(stringify!($a)),*]) }>(stringify!($rl), dest, handler, source_addr, nbytes, dest_addr, false, &[$($a),*]) }
        }

        /// As the function without `Async`, but the payload is in use until the reply handler
        /// runs: the request handler has to reply.
        ///
        /// - `dest`: the target, a rank below `gasnet_nodes()`; this process is one.
        /// - `handler`: index of its handler, 128 to 255.
        /// - `source_addr`: the payload, any memory of the caller; it must not change until the
        ///   reply handler runs.
        /// - `nbytes`: its bytes, at most `gasnet_AMMaxLongRequest()`; with 0 the address is
        ///   not used.
        /// - `dest_addr`: where they go, an address of the receiver in its segment.
        /// - Further arguments: passed to the handler, as 32-bit integers.
        /// - Returns `GASNET_OK`; a misuse ends the job with a message.
        /// - Context: after `gasnet_attach`; not in a handler or a no-interrupt section, and
        ///   not while a handler-safe lock is held.
        ///
        /// # Safety
        /// `nbytes` bytes at `source_addr` must be readable, and stay so until the reply
        /// handler runs.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $ra(
            dest: Node, handler: Handler, source_addr: *const c_void, nbytes: usize, dest_addr: *mut c_void,
            $($a: Arg),*
        ) -> c_int {
            // SAFETY: the caller's promise.
            unsafe { request_long::<{ any(&[$(stringify!($a)),*]) }>(stringify!($ra), dest, handler, source_addr, nbytes, dest_addr, true, &[$($a),*]) }
        }

        /// Replies without payload to the request whose handler is running: runs a handler on
        /// the requester.
        ///
        /// - `token`: what the running request handler was given.
        /// - `handler`: index of the requester's handler, 128 to 255.
        /// - Further arguments: passed to the handler, as 32-bit integers.
        /// - Returns `GASNET_OK`; a misuse ends the job with a message.
        /// - Context: in a request handler, at most once; not while a handler-safe lock is
        ///   held.
        #[unsafe(no_mangle)]
        pub extern "C" fn $ps(token: *mut c_void, handler: Handler, $($a: Arg),*) -> c_int {
            reply_short::<{ any(&[$(stringify!($a)),*]) }>(stringify!($ps), token, handler, &[$($a),*])
        }

        /// Replies with a payload, which the handler finds in a buffer of the library, aligned
        /// to 8 bytes, while it runs.
        ///
        /// - `token`: what the running request handler was given.
        /// - `handler`: index of the requester's handler, 128 to 255.
        /// - `source_addr`: the payload, any memory of the caller; it may be reused when the
        ///   call returns.
        /// - `nbytes`: its bytes, at most `gasnet_AMMaxMedium()`; with 0 the address is not
        ///   used.
        /// - Further arguments: passed to the handler, as 32-bit integers.
        /// - Returns `GASNET_OK`; a misuse ends the job with a message.
        /// - Context: in a request handler, at most once; not while a handler-safe lock is
        ///   held.
        ///
        /// # Safety
        /// `nbytes` bytes at `source_addr` must be readable.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $pm(
            token: *mut c_void, handler: Handler, source_addr: *const c_void, nbytes: usize, $($a: Arg),*
        ) -> c_int {
            // SAFETY: the caller's promise.
            unsafe { reply_medium::<{ any(&[$(stringify!($a)),*]) }>(stringify!($pm), token, handler, source_addr, nbytes, &[$($a),*]) }
        }

        /// Replies with a payload that is copied to the segment of the requester before the
        /// handler runs.
        ///
        /// - `token`: what the running request handler was given.
        /// - `handler`: index of the requester's handler, 128 to 255.
        /// - `source_addr`: the payload, any memory of the caller; it may be reused when the
        ///   call returns.
        /// - `nbytes`: its bytes, at most `gasnet_AMMaxLongReply()`; with 0 the address is not
        ///   used.
        /// - `dest_addr`: where they go, an address of the receiver in its segment.
        /// - Further arguments: passed to the handler, as 32-bit integers.
        /// - Returns `GASNET_OK`; a misuse ends the job with a message.
        /// - Context: in a request handler, at most once; not while a handler-safe lock is
        ///   held.
        ///
        /// # Safety
        /// `nbytes` bytes at `source_addr` must be readable.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $pl(
            token: *mut c_void, handler: Handler, source_addr: *const c_void, nbytes: usize, dest_addr: *mut c_void,
            $($a: Arg),*
        ) -> c_int {
            // SAFETY: the caller's promise.
            unsafe { reply_long::<{ any(&[$(stringify!($a)),*]) }>(stringify!($pl), token, handler, source_addr, nbytes, dest_addr, &[$($a),*]) }
        }
    )*};
}

families! {
    gasnet_AMRequestShort0 gasnet_AMRequestMedium0 gasnet_AMRequestLong0 gasnet_AMRequestLongAsync0 gasnet_AMReplyShort0 gasnet_AMReplyMedium0 gasnet_AMReplyLong0 ();
    gasnet_AMRequestShort1 gasnet_AMRequestMedium1 gasnet_AMRequestLong1 gasnet_AMRequestLongAsync1 gasnet_AMReplyShort1 gasnet_AMReplyMedium1 gasnet_AMReplyLong1 (a0);
    gasnet_AMRequestShort2 gasnet_AMRequestMedium2 gasnet_AMRequestLong2 gasnet_AMRequestLongAsync2 gasnet_AMReplyShort2 gasnet_AMReplyMedium2 gasnet_AMReplyLong2 (a0 a1);
    gasnet_AMRequestShort3 gasnet_AMRequestMedium3 gasnet_AMRequestLong3 gasnet_AMRequestLongAsync3 gasnet_AMReplyShort3 gasnet_AMReplyMedium3 gasnet_AMReplyLong3 (a0 a1 a2);
    gasnet_AMRequestShort4 gasnet_AMRequestMedium4 gasnet_AMRequestLong4 gasnet_AMRequestLongAsync4 gasnet_AMReplyShort4 gasnet_AMReplyMedium4 gasnet_AMReplyLong4 (a0 a1 a2 a3);
    gasnet_AMRequestShort5 gasnet_AMRequestMedium5 gasnet_AMRequestLong5 gasnet_AMRequestLongAsync5 gasnet_AMReplyShort5 gasnet_AMReplyMedium5 gasnet_AMReplyLong5 (a0 a1 a2 a3 a4);
    gasnet_AMRequestShort6 gasnet_AMRequestMedium6 gasnet_AMRequestLong6 gasnet_AMRequestLongAsync6 gasnet_AMReplyShort6 gasnet_AMReplyMedium6 gasnet_AMReplyLong6 (a0 a1 a2 a3 a4 a5);
    gasnet_AMRequestShort7 gasnet_AMRequestMedium7 gasnet_AMRequestLong7 gasnet_AMRequestLongAsync7 gasnet_AMReplyShort7 gasnet_AMReplyMedium7 gasnet_AMReplyLong7 (a0 a1 a2 a3 a4 a5 a6);
    gasnet_AMRequestShort8 gasnet_AMRequestMedium8 gasnet_AMRequestLong8 gasnet_AMRequestLongAsync8 gasnet_AMReplyShort8 gasnet_AMReplyMedium8 gasnet_AMReplyLong8 (a0 a1 a2 a3 a4 a5 a6 a7);
    gasnet_AMRequestShort9 gasnet_AMRequestMedium9 gasnet_AMRequestLong9 gasnet_AMRequestLongAsync9 gasnet_AMReplyShort9 gasnet_AMReplyMedium9 gasnet_AMReplyLong9 (a0 a1 a2 a3 a4 a5 a6 a7 a8);
    gasnet_AMRequestShort10 gasnet_AMRequestMedium10 gasnet_AMRequestLong10 gasnet_AMRequestLongAsync10 gasnet_AMReplyShort10 gasnet_AMReplyMedium10 gasnet_AMReplyLong10 (a0 a1 a2 a3 a4 a5 a6 a7 a8 a9);
    gasnet_AMRequestShort11 gasnet_AMRequestMedium11 gasnet_AMRequestLong11 gasnet_AMRequestLongAsync11 gasnet_AMReplyShort11 gasnet_AMReplyMedium11 gasnet_AMReplyLong11 (a0 a1 a2 a3 a4 a5 a6 a7 a8 a9 a10);
    gasnet_AMRequestShort12 gasnet_AMRequestMedium12 gasnet_AMRequestLong12 gasnet_AMRequestLongAsync12 gasnet_AMReplyShort12 gasnet_AMReplyMedium12 gasnet_AMReplyLong12 (a0 a1 a2 a3 a4 a5 a6 a7 a8 a9 a10 a11);
    gasnet_AMRequestShort13 gasnet_AMRequestMedium13 gasnet_AMRequestLong13 gasnet_AMRequestLongAsync13 gasnet_AMReplyShort13 gasnet_AMReplyMedium13 gasnet_AMReplyLong13 (a0 a1 a2 a3 a4 a5 a6 a7 a8 a9 a10 a11 a12);
    gasnet_AMRequestShort14 gasnet_AMRequestMedium14 gasnet_AMRequestLong14 gasnet_AMRequestLongAsync14 gasnet_AMReplyShort14 gasnet_AMReplyMedium14 gasnet_AMReplyLong14 (a0 a1 a2 a3 a4 a5 a6 a7 a8 a9 a10 a11 a12 a13);
    gasnet_AMRequestShort15 gasnet_AMRequestMedium15 gasnet_AMRequestLong15 gasnet_AMRequestLongAsync15 gasnet_AMReplyShort15 gasnet_AMReplyMedium15 gasnet_AMReplyLong15 (a0 a1 a2 a3 a4 a5 a6 a7 a8 a9 a10 a11 a12 a13 a14);
    gasnet_AMRequestShort16 gasnet_AMRequestMedium16 gasnet_AMRequestLong16 gasnet_AMRequestLongAsync16 gasnet_AMReplyShort16 gasnet_AMReplyMedium16 gasnet_AMReplyLong16 (a0 a1 a2 a3 a4 a5 a6 a7 a8 a9 a10 a11 a12 a13 a14 a15);
}

/// The `numargs` arguments at `args`.
///
/// # Safety
/// `numargs` values at `args` must be readable if `numargs` is in range.
unsafe fn array<'a>(function: &str, numargs: c_int, args: *const Arg) -> &'a [Arg] {
    match usize::try_from(numargs) {
        Ok(0) => &[],
        // SAFETY: the caller's promise.
        Ok(n) if n <= MAX_ARGS => unsafe { core::slice::from_raw_parts(args, n) },
        _ => too_many_args(function, numargs),
    }
}

/// The variadic `gasnet_AMRequestShort` of the headers: as the numbered functions, with the
/// number of arguments and an array.
///
/// - `numargs`: arguments, 0 to `gasnet_AMMaxArgs()`; another number ends the job.
/// - `args`: the arguments; read before the call returns.
///
/// # Safety
/// `numargs` values at `args` must be readable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasneti_AMRequestShortV(
    dest: Node,
    handler: Handler,
    numargs: c_int,
    args: *const Arg,
) -> c_int {
    let f = "gasnet_AMRequestShort";
    // SAFETY: the caller's promise.
    request_short::<true>(f, dest, handler, unsafe { array(f, numargs, args) })
}

/// The variadic `gasnet_AMRequestMedium` of the headers: as the numbered functions, with the
/// number of arguments and an array.
///
/// - `numargs`: arguments, 0 to `gasnet_AMMaxArgs()`; another number ends the job.
/// - `args`: the arguments; read before the call returns.
///
/// # Safety
/// `numargs` values at `args` and `nbytes` bytes at `source_addr` must be readable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasneti_AMRequestMediumV(
    dest: Node,
    handler: Handler,
    source_addr: *const c_void,
    nbytes: usize,
    numargs: c_int,
    args: *const Arg,
) -> c_int {
    let f = "gasnet_AMRequestMedium";
    // SAFETY: the caller's promise.
    unsafe {
        request_medium::<true>(f, dest, handler, source_addr, nbytes, array(f, numargs, args))
    }
}

/// The variadic `gasnet_AMRequestLong` of the headers: as the numbered functions, with the
/// number of arguments and an array.
///
/// - `numargs`: arguments, 0 to `gasnet_AMMaxArgs()`; another number ends the job.
/// - `args`: the arguments; read before the call returns.
///
/// # Safety
/// `numargs` values at `args` and `nbytes` bytes at `source_addr` must be readable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasneti_AMRequestLongV(
    dest: Node,
    handler: Handler,
    source_addr: *const c_void,
    nbytes: usize,
    dest_addr: *mut c_void,
    numargs: c_int,
    args: *const Arg,
) -> c_int {
    let f = "gasnet_AMRequestLong";
    // SAFETY: the caller's promise.
    unsafe {
        request_long::<true>(
            f,
            dest,
            handler,
            source_addr,
            nbytes,
            dest_addr,
            false,
            array(f, numargs, args),
        )
    }
}

/// The variadic `gasnet_AMRequestLongAsync` of the headers: as the numbered functions, with the
/// number of arguments and an array.
///
/// - `numargs`: arguments, 0 to `gasnet_AMMaxArgs()`; another number ends the job.
/// - `args`: the arguments; read before the call returns.
///
/// # Safety
/// `numargs` values at `args` and `nbytes` bytes at `source_addr` must be readable, the latter
/// until the reply handler runs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasneti_AMRequestLongAsyncV(
    dest: Node,
    handler: Handler,
    source_addr: *const c_void,
    nbytes: usize,
    dest_addr: *mut c_void,
    numargs: c_int,
    args: *const Arg,
) -> c_int {
    let f = "gasnet_AMRequestLongAsync";
    // SAFETY: the caller's promise.
    unsafe {
        request_long::<true>(
            f,
            dest,
            handler,
            source_addr,
            nbytes,
            dest_addr,
            true,
            array(f, numargs, args),
        )
    }
}

/// The variadic `gasnet_AMReplyShort` of the headers: as the numbered functions, with the
/// number of arguments and an array.
///
/// - `numargs`: arguments, 0 to `gasnet_AMMaxArgs()`; another number ends the job.
/// - `args`: the arguments; read before the call returns.
///
/// # Safety
/// `numargs` values at `args` must be readable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasneti_AMReplyShortV(
    token: *mut c_void,
    handler: Handler,
    numargs: c_int,
    args: *const Arg,
) -> c_int {
    let f = "gasnet_AMReplyShort";
    // SAFETY: the caller's promise.
    reply_short::<true>(f, token, handler, unsafe { array(f, numargs, args) })
}

/// The variadic `gasnet_AMReplyMedium` of the headers: as the numbered functions, with the
/// number of arguments and an array.
///
/// - `numargs`: arguments, 0 to `gasnet_AMMaxArgs()`; another number ends the job.
/// - `args`: the arguments; read before the call returns.
///
/// # Safety
/// `numargs` values at `args` and `nbytes` bytes at `source_addr` must be readable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasneti_AMReplyMediumV(
    token: *mut c_void,
    handler: Handler,
    source_addr: *const c_void,
    nbytes: usize,
    numargs: c_int,
    args: *const Arg,
) -> c_int {
    let f = "gasnet_AMReplyMedium";
    // SAFETY: the caller's promise.
    unsafe {
        reply_medium::<true>(f, token, handler, source_addr, nbytes, array(f, numargs, args))
    }
}

/// The variadic `gasnet_AMReplyLong` of the headers: as the numbered functions, with the number
/// of arguments and an array.
///
/// - `numargs`: arguments, 0 to `gasnet_AMMaxArgs()`; another number ends the job.
/// - `args`: the arguments; read before the call returns.
///
/// # Safety
/// `numargs` values at `args` and `nbytes` bytes at `source_addr` must be readable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasneti_AMReplyLongV(
    token: *mut c_void,
    handler: Handler,
    source_addr: *const c_void,
    nbytes: usize,
    dest_addr: *mut c_void,
    numargs: c_int,
    args: *const Arg,
) -> c_int {
    let f = "gasnet_AMReplyLong";
    // SAFETY: the caller's promise.
    unsafe {
        reply_long::<true>(
            f,
            token,
            handler,
            source_addr,
            nbytes,
            dest_addr,
            array(f, numargs, args),
        )
    }
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
    early_job("gasnet_AMMaxMedium").conduit.max_medium()
}

/// Returns the most bytes of the payload of a Long request.
///
/// - Context: from `gasnet_init` on, in handlers too.
#[unsafe(no_mangle)]
pub extern "C" fn gasnet_AMMaxLongRequest() -> usize {
    early_job("gasnet_AMMaxLongRequest").conduit.max_long_request()
}

/// Returns the most bytes of the payload of a Long reply.
///
/// - Context: from `gasnet_init` on, in handlers too.
#[unsafe(no_mangle)]
pub extern "C" fn gasnet_AMMaxLongReply() -> usize {
    early_job("gasnet_AMMaxLongReply").conduit.max_long_reply()
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
    ctx("gasnet_AMPoll").poll();
    OK
}

/// One round of a wait that the `GASNET_BLOCKUNTIL` macro makes: spins, yields or sleeps as the
/// wait mode says, and polls.
///
/// - `round`: 0 in the first round, which only polls; later what the last call returned.
/// - Returns the number of the next round.
/// - Context: after `gasnet_attach`; not in a handler or a no-interrupt section, and not while
///   a handler-safe lock is held.
#[unsafe(no_mangle)]
pub extern "C" fn gasneti_blockuntil_round(round: u32) -> u32 {
    let c = ctx("GASNET_BLOCKUNTIL");
    c.check_may_wait();
    if let Some(past) = round.checked_sub(1) {
        c.relax(past, &"GASNET_BLOCKUNTIL", None);
    }
    // A poll serves a limited number of events: where there were some there may be more.
    if c.poll() { 0 } else { round.saturating_add(1) }
}

/// Reports the rank that sent the message whose handler is running.
///
/// - `token`: what the handler was given.
/// - `source`: where the rank is stored.
/// - Returns `GASNET_OK`, or `GASNET_ERR_BAD_ARG` if `source` is null or `token` is not that of
///   a handler which this thread runs.
/// - Context: in a handler.
///
/// # Safety
/// `source` must be null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnet_AMGetMsgSource(token: *mut c_void, source: *mut Node) -> c_int {
    match ctx("gasnet_AMGetMsgSource").token(token) {
        Some(t) if !source.is_null() => {
            // SAFETY: not null, and the caller's promise.
            unsafe { source.write(t.source) };
            OK
        }
        _ => GasnetError::BadArg as c_int,
    }
}
