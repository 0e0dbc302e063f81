//! Messages whose payload is negotiated: a call chooses length and memory, a second sends.
//!
//! Called by clients. Invariants: a thread has at most one message between the two calls; its
//! memory belongs to the thread. The payload is copied when it is sent.

use super::am::{Arg, Handler, arguments, complete, node};
use super::objects::ExObject;
use super::{Event, Flags, Rank};
use crate::capi::am;
use crate::capi::{OK, ctx, early_job};
use crate::limits::MAX_THREADS;
use crate::report;
use alloc::boxed::Box;
use core::ffi::{c_int, c_uint, c_void};
use once_cell::race::OnceBox;
use parking_lot::Mutex;

/// Most bytes of a Long in memory of the library, if the client can do with fewer than it has.
const LONG_BUFFER: usize = 1 << 16;

/// Where a message goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Request(u32),
    /// To the sender of the message with this token.
    Reply(usize),
}

/// A message between its two calls. Addresses are the client's.
#[derive(Clone, Copy, Debug)]
struct PreparedMessage {
    direction: Direction,
    is_long: bool,
    /// Of the payload.
    addr: usize,
    size: usize,
    dest_addr: usize,
    lc_opt: usize,
    numargs: c_uint,
}

/// What a thread has of it.
#[derive(Debug, Default)]
struct ThreadMessage {
    prepared: Option<PreparedMessage>,
    buffer: Vec<u128>,
}

/// By thread.
static THREADS: [OnceBox<Mutex<ThreadMessage>>; MAX_THREADS] =
    [const { OnceBox::new() }; MAX_THREADS];

fn of_thread(thread: u16) -> &'static Mutex<ThreadMessage> {
    THREADS[usize::from(thread)].get_or_init(Box::default)
}

fn refuse(function: &str, why: &str, remedy: &str) -> ! {
    report::fatal(format_args!("{function}(): {why}"), format_args!("{remedy}"))
}

/// Chooses length and memory of a message; `most` is the limit of its kind.
#[allow(clippy::too_many_arguments)]
fn prepare(
    function: &'static str,
    direction: Direction,
    limit: usize,
    client_buf: *const c_void,
    least: usize,
    most: usize,
    long: Option<*mut c_void>,
    lc_opt: *mut Event,
    numargs: c_uint,
) -> ExObject {
    let c = ctx(function);
    if least > most || least > limit {
        report::fatal(
            format_args!(
                "{function}(): {least} to {most} bytes cannot be negotiated; the limit is {limit}"
            ),
            format_args!("Pass a least_payload of at most most_payload and gex_AM_Max*()."),
        );
    }
    let of_library = client_buf.is_null();
    if of_library && !lc_opt.is_null() {
        refuse(function, "lc_opt is not null, but client_buf is", "Pass a null lc_opt.");
    }
    let wanted = most.min(limit);
    let size = match of_library && long.is_some() {
        true => wanted.min(least.max(LONG_BUFFER)),
        false => wanted,
    };
    let mut thread = of_thread(c.thread_index()).lock();
    if thread.prepared.is_some() {
        refuse(
            function,
            "this thread has prepared a message already",
            "Commit or cancel it first: these calls cannot be nested.",
        );
    }
    let addr = match of_library {
        true => {
            let words = size.div_ceil(size_of::<u128>()).max(1);
            if thread.buffer.len() < words {
                thread.buffer = vec![0; words];
            }
            thread.buffer.as_mut_ptr().expose_provenance()
        }
        false => client_buf.expose_provenance(),
    };
    thread.prepared = Some(PreparedMessage {
        direction,
        is_long: long.is_some(),
        addr,
        size,
        dest_addr: long.unwrap_or(core::ptr::null_mut()).expose_provenance(),
        lc_opt: lc_opt.expose_provenance(),
        numargs,
    });
    ExObject::descriptor(usize::from(c.thread_index()) + 1)
}

/// The message of a descriptor, of the calling thread.
fn prepared<R>(
    function: &str,
    sd: ExObject,
    f: impl FnOnce(&mut Option<PreparedMessage>) -> Option<R>,
) -> R {
    let own = early_job(function).ctx().thread_index();
    let found = sd
        .descriptor_index()
        .filter(|&index| index == usize::from(own) + 1)
        .and_then(|_| f(&mut of_thread(own).lock().prepared));
    match found {
        Some(found) => found,
        None => refuse(
            function,
            "this is no source descriptor that the calling thread has prepared",
            "Pass what gex_AM_Prepare* has returned to this thread, once.",
        ),
    }
}

/// Returns the memory of a payload.
///
/// - `sd`: the message.
/// - Context: between the two calls of a message, in the same thread.
#[unsafe(no_mangle)]
pub extern "C" fn gex_AM_SrcDescAddr(sd: ExObject) -> *mut c_void {
    let addr = prepared("gex_AM_SrcDescAddr", sd, |message| message.map(|m| m.addr));
    core::ptr::with_exposed_provenance_mut(addr)
}

/// Returns the most bytes that a payload may have.
///
/// - `sd`: the message.
/// - Context: between the two calls of a message, in the same thread.
#[unsafe(no_mangle)]
pub extern "C" fn gex_AM_SrcDescSize(sd: ExObject) -> usize {
    prepared("gex_AM_SrcDescSize", sd, |message| message.map(|m| m.size))
}

/// Begins a Medium request.
///
/// - `tm`, `rank`: the target.
/// - `client_buf`: the payload; null for memory of the library.
/// - `least_payload`, `most_payload`: how many bytes it has at least and at most.
/// - `lc_opt`: null with memory of the library; otherwise `GEX_EVENT_NOW`, `GEX_EVENT_GROUP` or a
///   place.
/// - `flags`: accepted.
/// - `numargs`: arguments of the message.
/// - Returns the message, for the other calls of this family; never `GEX_AM_SRCDESC_NO_OP`.
/// - Context: after `gex_Client_Init`; not in a handler. Until the message is committed or
///   cancelled the thread may call as little as a handler.
#[unsafe(no_mangle)]
pub extern "C" fn gex_AM_PrepareRequestMedium(
    tm: ExObject,
    rank: Rank,
    client_buf: *const c_void,
    least_payload: usize,
    most_payload: usize,
    lc_opt: *mut Event,
    _flags: Flags,
    numargs: c_uint,
) -> ExObject {
    let function = "gex_AM_PrepareRequestMedium";
    let to = Direction::Request(node(function, tm, rank));
    let limit = early_job(function).endpoint.conduit.max_medium();
    let (least, most) = (least_payload, most_payload);
    prepare(function, to, limit, client_buf, least, most, None, lc_opt, numargs)
}

/// Begins a Medium reply.
///
/// - `token`: that of the handler.
/// - `client_buf`, `least_payload`, `most_payload`, `lc_opt`, `flags`, `numargs`: as of
///   `gex_AM_PrepareRequestMedium`, without `GEX_EVENT_GROUP`.
/// - Returns the message.
/// - Context: in a handler of a request.
#[unsafe(no_mangle)]
pub extern "C" fn gex_AM_PrepareReplyMedium(
    token: *mut c_void,
    client_buf: *const c_void,
    least_payload: usize,
    most_payload: usize,
    lc_opt: *mut Event,
    _flags: Flags,
    numargs: c_uint,
) -> ExObject {
    let function = "gex_AM_PrepareReplyMedium";
    let to = Direction::Reply(token.expose_provenance());
    let limit = early_job(function).endpoint.conduit.max_medium();
    let (least, most) = (least_payload, most_payload);
    prepare(function, to, limit, client_buf, least, most, None, lc_opt, numargs)
}

/// Begins a Long request.
///
/// - `tm`, `rank`, `client_buf`, `least_payload`, `most_payload`, `lc_opt`, `flags`, `numargs`: as
///   of `gex_AM_PrepareRequestMedium`.
/// - `dest_addr`: the destination in the segment of the target; null to name it later.
/// - Returns the message.
/// - Context: after `gex_Client_Init`; not in a handler.
#[unsafe(no_mangle)]
pub extern "C" fn gex_AM_PrepareRequestLong(
    tm: ExObject,
    rank: Rank,
    client_buf: *const c_void,
    least_payload: usize,
    most_payload: usize,
    dest_addr: *mut c_void,
    lc_opt: *mut Event,
    _flags: Flags,
    numargs: c_uint,
) -> ExObject {
    let function = "gex_AM_PrepareRequestLong";
    let to = Direction::Request(node(function, tm, rank));
    let limit = early_job(function).endpoint.conduit.max_long_request();
    let (least, most, long) = (least_payload, most_payload, Some(dest_addr));
    prepare(function, to, limit, client_buf, least, most, long, lc_opt, numargs)
}

/// Begins a Long reply.
///
/// - `token`: that of the handler.
/// - `client_buf`, `least_payload`, `most_payload`, `lc_opt`, `flags`, `numargs`: as of
///   `gex_AM_PrepareReplyMedium`.
/// - `dest_addr`: the destination in the segment of the requester; null to name it later.
/// - Returns the message.
/// - Context: in a handler of a request.
#[unsafe(no_mangle)]
pub extern "C" fn gex_AM_PrepareReplyLong(
    token: *mut c_void,
    client_buf: *const c_void,
    least_payload: usize,
    most_payload: usize,
    dest_addr: *mut c_void,
    lc_opt: *mut Event,
    _flags: Flags,
    numargs: c_uint,
) -> ExObject {
    let function = "gex_AM_PrepareReplyLong";
    let to = Direction::Reply(token.expose_provenance());
    let limit = early_job(function).endpoint.conduit.max_long_reply();
    let (least, most, long) = (least_payload, most_payload, Some(dest_addr));
    prepare(function, to, limit, client_buf, least, most, long, lc_opt, numargs)
}

/// Sends a message that was prepared.
///
/// # Safety
/// The payload must be readable, `numargs` values at `args` too.
unsafe fn commit(
    function: &'static str,
    sd: ExObject,
    (is_long, is_request): (bool, bool),
    handler: Handler,
    nbytes: usize,
    dest_addr: *mut c_void,
    (numargs, args): (c_uint, *const Arg),
) -> c_int {
    let message = prepared(function, sd, |message| {
        message.take_if(|m| {
            (m.is_long, matches!(m.direction, Direction::Request(_))) == (is_long, is_request)
        })
    });
    if nbytes > message.size || numargs != message.numargs {
        report::fatal(
            format_args!(
                "{function}(): {nbytes} bytes and {numargs} arguments; {} and {} were negotiated",
                message.size, message.numargs
            ),
            format_args!("Send at most gex_AM_SrcDescSize() bytes, and as many arguments."),
        );
    }
    let payload = core::ptr::with_exposed_provenance(message.addr);
    let dest = match message.dest_addr {
        0 => dest_addr,
        prepared => core::ptr::with_exposed_provenance_mut(prepared),
    };
    let token = |token| core::ptr::with_exposed_provenance(token);
    // SAFETY: by this function's condition.
    unsafe {
        let args = arguments(function, numargs, args);
        match (message.direction, is_long) {
            (Direction::Request(to), false) => {
                am::request_medium::<true>(function, to, handler, payload, nbytes, args);
            }
            (Direction::Request(to), true) => {
                am::request_long::<true>(
                    function, to, handler, payload, nbytes, dest, false, args,
                );
            }
            (Direction::Reply(of), false) => {
                am::reply_medium::<true>(function, token(of), handler, payload, nbytes, args);
            }
            (Direction::Reply(of), true) => {
                am::reply_long::<true>(function, token(of), handler, payload, nbytes, dest, args);
            }
        }
        if message.lc_opt != 0 {
            let lc_opt = core::ptr::with_exposed_provenance_mut(message.lc_opt);
            complete(function, lc_opt, is_request);
        }
    }
    OK
}

macro_rules! family {
    ($($commit:ident $cancel:ident $name:literal $long:literal $request:literal $($dest:ident)?;)*) => { $(
        #[doc = concat!("`gex_AM_Commit", $name, "` with the number of arguments and an array of them.")]
        ///
        /// - `sd`: the message. `handler`: its handler. `nbytes`: bytes of its payload.
        /// - `commit_flags`: accepted.
        /// - Returns 0.
        ///
        /// # Safety
        /// The payload must be readable, `numargs` values at `args` too.
        #[unsafe(no_mangle)]
        #[allow(clippy::too_many_arguments)]
        pub unsafe extern "C" fn $commit(
            sd: ExObject,
            handler: Handler,
            nbytes: usize,
            $($dest: *mut c_void,)?
            _commit_flags: Flags,
            numargs: c_uint,
            args: *const Arg,
        ) -> c_int {
            let function = concat!("gex_AM_Commit", $name);
            #[allow(unused_mut, unused_assignments)]
            let mut to = core::ptr::null_mut();
            $(to = $dest;)?
            // SAFETY: as this function requires.
            unsafe {
                commit(function, sd, ($long, $request), handler, nbytes, to, (numargs, args))
            }
        }

        /// Gives a message back that was prepared: nothing is sent.
        ///
        /// - `sd`: the message; it is invalid afterwards.
        /// - `flags`: 0.
        /// - Returns 0.
        /// - Context: between the two calls of a message, in the same thread.
        #[unsafe(no_mangle)]
        pub extern "C" fn $cancel(sd: ExObject, _flags: Flags) -> c_int {
            prepared(stringify!($cancel), sd, |message| {
                message.take_if(|m| {
                    (m.is_long, matches!(m.direction, Direction::Request(_))) == ($long, $request)
                })
            });
            OK
        }
    )* };
}

family! {
    gasneti_CommitRequestMedium gex_AM_CancelRequestMedium "RequestMedium" false true;
    gasneti_CommitReplyMedium gex_AM_CancelReplyMedium "ReplyMedium" false false;
    gasneti_CommitRequestLong gex_AM_CancelRequestLong "RequestLong" true true dest_addr;
    gasneti_CommitReplyLong gex_AM_CancelReplyLong "ReplyLong" true false dest_addr;
}
