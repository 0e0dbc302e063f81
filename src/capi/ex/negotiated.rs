//! Messages whose payload is negotiated: a call chooses length and memory, a second sends.
//!
//! Called by clients. Invariants: a thread has at most one message between the two calls; its
//! memory belongs to the thread.
//!
//! ```text
//!   payload of            memory                      when it is sent
//!   the client            the client's                as a message with a fixed payload
//!   a Medium, mapped      an area (`outbox`,          stays: the handler reads it there
//!                         `large_areas`)
//!   another Medium, or a  a buffer of the thread      as a message with a fixed payload
//!   Long
//! ```
//!
//! A Long is not written to its destination before it is sent: the client may write more than it
//! sends, or cancel. What a message holds between its calls is an area at most, which no other
//! rank waits for.

use super::am::{Arg, Handler, arguments, complete, too_many_arguments};
use super::objects::{ExObject, job_rank};
use super::{Event, Flags, LocalCompletion, Rank, is_immediate};
use crate::capi::am;
use crate::capi::{OK, ctx, early_job};
use crate::conduit::{NegotiatedPayload, PayloadArea};
use crate::limits::MAX_THREADS;
use crate::rank::JobRank;
use crate::report;
use crate::runtime::am::MAX_ARGS;
use crate::runtime::checks;
use alloc::boxed::Box;
use core::ffi::{c_int, c_uint, c_void};
use core::fmt;
use core::mem::MaybeUninit;
use core::sync::atomic::Ordering;
use once_cell::race::OnceBox;
use parking_lot::Mutex;
use sys::byte_count::ByteCount;

/// Most bytes of a Long in memory of the library, if the client can do with fewer than it has.
const LONG_BUFFER: usize = 1 << 16;
/// Bytes of a buffer that a thread keeps for the messages that it prepares next.
const MOST_KEPT: usize = 1 << 20;

/// Where a message goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Request(JobRank),
    /// To the sender of the message with this token.
    Reply(usize, JobRank),
}

impl Direction {
    fn rank(self) -> JobRank {
        match self {
            Direction::Request(rank) | Direction::Reply(_, rank) => rank,
        }
    }
}

/// What a message is, as the names of its calls say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct MessageFamily {
    is_request: bool,
    is_long: bool,
}

const REQUEST_MEDIUM: MessageFamily = MessageFamily { is_request: true, is_long: false };
const REPLY_MEDIUM: MessageFamily = MessageFamily { is_request: false, is_long: false };
const REQUEST_LONG: MessageFamily = MessageFamily { is_request: true, is_long: true };
const REPLY_LONG: MessageFamily = MessageFamily { is_request: false, is_long: true };

impl fmt::Display for MessageFamily {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_request { "Request" } else { "Reply" })?;
        f.write_str(if self.is_long { "Long" } else { "Medium" })
    }
}

/// A message between its two calls. Addresses are the client's.
#[derive(Clone, Copy, Debug)]
struct PreparedMessage {
    /// Distinguishes it from those that the thread prepared before.
    serial: usize,
    /// Which of the threads that have had the index of the thread has prepared it.
    owner: u32,
    direction: Direction,
    family: MessageFamily,
    /// Of the payload.
    addr: usize,
    size: usize,
    /// The area that the payload is in, if it is in one.
    area: Option<PayloadArea>,
    dest_addr: usize,
    lc_opt: usize,
    numargs: c_uint,
}

/// What a thread has of it.
#[derive(Debug, Default)]
struct ThreadMessage {
    prepared: Option<PreparedMessage>,
    /// Of the message that was prepared last.
    serial: usize,
    buffer: Vec<MaybeUninit<u128>>,
}

impl ThreadMessage {
    /// Makes the buffer at least this many words long; `None` if there is no memory.
    fn grow(&mut self, words: usize) -> Option<()> {
        if self.buffer.len() < words {
            let mut new = Vec::new();
            new.try_reserve_exact(words).ok()?;
            // SAFETY: room for them, and such words need no value. Untouched pages cost nothing.
            unsafe { new.set_len(words) };
            self.buffer = new;
        }
        Some(())
    }

    /// Gives memory back, unless it is little, when no message uses it any more.
    fn give_back(&mut self) {
        if size_of_val(&*self.buffer) > MOST_KEPT {
            self.buffer = Vec::new();
        }
    }
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

/// The number of the message that a thread has prepared as its message number `serial`.
fn descriptor(thread: u16, serial: usize) -> ExObject {
    ExObject::descriptor(serial * MAX_THREADS + usize::from(thread))
}

/// The reply to the message with this token, which a handler of the calling thread may send.
fn reply_to(function: &str, token: *mut c_void) -> Direction {
    let source = ctx(function).replies_to(function, token);
    Direction::Reply(token.expose_provenance(), source)
}

/// Chooses length and memory of a message; `limit` is that of its kind.
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
    flags: Flags,
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
    if numargs as usize > MAX_ARGS {
        too_many_arguments(function, numargs as usize);
    }
    let of_library = client_buf.is_null();
    if of_library && !lc_opt.is_null() {
        refuse(function, "lc_opt is not null, but client_buf is", "Pass a null lc_opt.");
    }
    let is_request = matches!(direction, Direction::Request(_));
    if !of_library {
        LocalCompletion::of_message(function, lc_opt, is_request);
    }
    let wanted = most.min(limit);
    let size = match of_library && long.is_some() {
        true => wanted.min(least.max(LONG_BUFFER)),
        false => wanted,
    };
    let mut thread = of_thread(c.thread_index()).lock();
    let conduit = &c.endpoint().conduit;
    let owner = c.slot.owners.load(Ordering::Relaxed);
    if let Some(before) = thread.prepared.take() {
        if before.owner == owner {
            refuse(
                function,
                "this thread has prepared a message already",
                "Commit or cancel it first: these calls cannot be nested.",
            );
        }
        // Its thread has ended.
        before.area.into_iter().for_each(|area| conduit.give_area(area));
        thread.give_back();
    }
    let in_area = of_library && long.is_none();
    let area = in_area.then(|| conduit.take_area(direction.rank(), size, is_request)).flatten();
    if let (true, Direction::Request(rank)) = (is_immediate(flags), direction) {
        let is_mapped =
            || c.endpoint().segment_of(rank).is_some_and(|segment| segment.is_mapped());
        let payload = match area {
            Some(area) => NegotiatedPayload::InArea(area),
            None if long.is_some() => NegotiatedPayload::Long { most: size, mapped: is_mapped() },
            None => NegotiatedPayload::Medium(size),
        };
        if !conduit.may_request(rank, payload, numargs as usize) {
            area.into_iter().for_each(|area| conduit.give_area(area));
            return ExObject::INVALID;
        }
    }
    let addr = match (area, of_library) {
        (Some(area), _) => area.bytes.as_ptr().expose_provenance(),
        (None, true) => {
            let words = size.div_ceil(size_of::<u128>()).max(1);
            thread.grow(words).unwrap_or_else(|| {
                report::fatal(
                    format_args!("{function}(): no memory for {}", ByteCount(size as u64)),
                    format_args!("Pass a client_buf, or a smaller least_payload."),
                )
            });
            thread.buffer.as_mut_ptr().expose_provenance()
        }
        (None, false) => client_buf.expose_provenance(),
    };
    // The first one is 1: no descriptor is 0.
    thread.serial += 1;
    thread.prepared = Some(PreparedMessage {
        serial: thread.serial,
        owner,
        direction,
        family: MessageFamily { is_request, is_long: long.is_some() },
        addr,
        size,
        area,
        dest_addr: long.unwrap_or(core::ptr::null_mut()).expose_provenance(),
        lc_opt: lc_opt.expose_provenance(),
        numargs,
    });
    c.note_prepared(true);
    descriptor(c.thread_index(), thread.serial)
}

/// The message of a descriptor, which the calling thread has prepared: what `f` returns of it.
fn prepared<R>(
    function: &str,
    sd: ExObject,
    f: impl FnOnce(&mut ThreadMessage, PreparedMessage) -> R,
) -> R {
    let c = early_job(function).ctx();
    let own = c.thread_index();
    let Some(index) = sd.descriptor_index() else {
        refuse(
            function,
            "this is no source descriptor",
            "Pass what gex_AM_Prepare* has returned to this thread.",
        )
    };
    let (serial, thread) = (index / MAX_THREADS, index % MAX_THREADS);
    if thread != usize::from(own) {
        refuse(
            function,
            "the source descriptor is of another thread",
            "Commit or cancel a message in the thread that has prepared it.",
        )
    }
    let message = &mut *of_thread(own).lock();
    match message.prepared {
        Some(prepared) if prepared.serial == serial => f(message, prepared),
        _ => refuse(
            function,
            "the message of this source descriptor was committed or cancelled before",
            "Pass what gex_AM_Prepare* has returned, once.",
        ),
    }
}

/// Takes the message of a descriptor, for a call of this family, and the buffer of the thread if
/// the payload is there.
fn take_prepared(
    function: &str,
    sd: ExObject,
    family: MessageFamily,
) -> (PreparedMessage, Vec<MaybeUninit<u128>>) {
    let taken = prepared(function, sd, |message, prepared| {
        if prepared.family != family {
            report::fatal(
                format_args!(
                    "{function}(): the source descriptor is of a {} message",
                    prepared.family
                ),
                format_args!("Call gex_AM_Commit{0} or gex_AM_Cancel{0}.", prepared.family),
            )
        }
        message.prepared = None;
        let is_there = message.buffer.as_ptr().addr() == prepared.addr;
        let buffer = if is_there { core::mem::take(&mut message.buffer) } else { Vec::new() };
        (prepared, buffer)
    });
    early_job(function).ctx().note_prepared(false);
    taken
}

/// Returns the memory of a payload.
///
/// - `sd`: the message.
/// - Context: between the two calls of a message, in the same thread.
#[unsafe(no_mangle)]
pub extern "C" fn gex_AM_SrcDescAddr(sd: ExObject) -> *mut c_void {
    let addr = prepared("gex_AM_SrcDescAddr", sd, |_, message| message.addr);
    core::ptr::with_exposed_provenance_mut(addr)
}

/// Returns the most bytes that a payload may have.
///
/// - `sd`: the message.
/// - Context: between the two calls of a message, in the same thread.
#[unsafe(no_mangle)]
pub extern "C" fn gex_AM_SrcDescSize(sd: ExObject) -> usize {
    prepared("gex_AM_SrcDescSize", sd, |_, message| message.size)
}

/// Begins a Medium request.
///
/// - `tm`, `rank`: the target.
/// - `client_buf`: the payload; null for memory of the library.
/// - `least_payload`, `most_payload`: how many bytes it has at least and at most.
/// - `lc_opt`: null with memory of the library; otherwise `GEX_EVENT_NOW`, `GEX_EVENT_GROUP` or a
///   place.
/// - `flags`: `GEX_FLAG_IMMEDIATE`: refused if a request could not be sent now.
/// - `numargs`: arguments of the message.
/// - Returns the message, for the other calls of this family; `GEX_AM_SRCDESC_NO_OP` if it is
///   refused.
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
    flags: Flags,
    numargs: c_uint,
) -> ExObject {
    let function = "gex_AM_PrepareRequestMedium";
    let job = early_job(function);
    let to = Direction::Request(job_rank(job, function, tm, rank));
    let limit = job.endpoint.conduit.max_medium();
    let (least, most) = (least_payload, most_payload);
    prepare(function, to, limit, client_buf, least, most, None, lc_opt, flags, numargs)
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
    flags: Flags,
    numargs: c_uint,
) -> ExObject {
    let function = "gex_AM_PrepareReplyMedium";
    let job = early_job(function);
    let to = reply_to(function, token);
    let limit = job.endpoint.conduit.max_medium();
    let (least, most) = (least_payload, most_payload);
    prepare(function, to, limit, client_buf, least, most, None, lc_opt, flags, numargs)
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
    flags: Flags,
    numargs: c_uint,
) -> ExObject {
    let function = "gex_AM_PrepareRequestLong";
    let job = early_job(function);
    let to = Direction::Request(job_rank(job, function, tm, rank));
    let limit = job.endpoint.conduit.max_long_request();
    let (least, most, long) = (least_payload, most_payload, Some(dest_addr));
    prepare(function, to, limit, client_buf, least, most, long, lc_opt, flags, numargs)
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
    flags: Flags,
    numargs: c_uint,
) -> ExObject {
    let function = "gex_AM_PrepareReplyLong";
    let job = early_job(function);
    let to = reply_to(function, token);
    let limit = job.endpoint.conduit.max_long_reply();
    let (least, most, long) = (least_payload, most_payload, Some(dest_addr));
    prepare(function, to, limit, client_buf, least, most, long, lc_opt, flags, numargs)
}

/// Sends a message that was prepared.
///
/// # Safety
/// The payload must be readable, `numargs` values at `args` too.
unsafe fn commit(
    function: &'static str,
    sd: ExObject,
    family: MessageFamily,
    handler: Handler,
    (nbytes, dest_addr): (usize, *mut c_void),
    (numargs, args): (c_uint, *const Arg),
    flags: Flags,
) -> c_int {
    // A handler that runs while the message waits may prepare a reply: not in this buffer.
    let (message, buffer) = take_prepared(function, sd, family);
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
    if message.dest_addr != 0 && message.dest_addr != dest_addr.addr() && checks::on() {
        refuse(
            function,
            "dest_addr is another than that of gex_AM_Prepare*",
            "Pass the same address, or null to gex_AM_Prepare*.",
        )
    }
    let dest = match message.dest_addr {
        0 => dest_addr,
        prepared => core::ptr::with_exposed_provenance_mut(prepared),
    };
    let token = |token| core::ptr::with_exposed_provenance(token);
    // SAFETY: by this function's condition.
    unsafe {
        let args = arguments(function, numargs, args);
        let now = is_immediate(flags);
        let result = match (message.direction, message.area) {
            (Direction::Request(to), Some(area)) => {
                am::request_area(function, to.0, handler, area, nbytes, args, now)
            }
            (Direction::Reply(of, _), Some(area)) => {
                am::reply_area(function, token(of), handler, area, nbytes, args)
            }
            (Direction::Request(to), None) if family.is_long => {
                let send = match now {
                    true => am::request_long::<true, true>,
                    false => am::request_long::<true, false>,
                };
                send(function, to.0, handler, payload, nbytes, dest, false, args)
            }
            (Direction::Request(to), None) => {
                let send = match now {
                    true => am::request_medium::<true, true>,
                    false => am::request_medium::<true, false>,
                };
                send(function, to.0, handler, payload, nbytes, args)
            }
            (Direction::Reply(of, _), None) if family.is_long => {
                am::reply_long::<true>(function, token(of), handler, payload, nbytes, dest, args)
            }
            (Direction::Reply(of, _), None) => {
                am::reply_medium::<true>(function, token(of), handler, payload, nbytes, args)
            }
        };
        if result != OK || !buffer.is_empty() {
            let c = early_job(function).ctx();
            let mut thread = of_thread(c.thread_index()).lock();
            let is_wanted = thread.buffer.len() < buffer.len() && thread.prepared.is_none();
            if is_wanted && (result != OK || size_of_val(&*buffer) <= MOST_KEPT) {
                thread.buffer = buffer;
            }
            if result != OK {
                thread.prepared = Some(message);
                c.note_prepared(true);
                return result;
            }
        }
        if message.lc_opt != 0 {
            let lc_opt = core::ptr::with_exposed_provenance_mut(message.lc_opt);
            complete(function, lc_opt, family.is_request);
        }
    }
    OK
}

macro_rules! family {
    ($($commit:ident $cancel:ident $name:literal $family:ident $($dest:ident)?;)*) => { $(
        #[doc = concat!("`gex_AM_Commit", $name, "` with the number of arguments and an array of them.")]
        ///
        /// - `sd`: the message. `handler`: its handler. `nbytes`: bytes of its payload.
        /// - `commit_flags`: `GEX_FLAG_IMMEDIATE`.
        /// - Returns 0; 1 if it is refused: then the message is still prepared.
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
            commit_flags: Flags,
            numargs: c_uint,
            args: *const Arg,
        ) -> c_int {
            let function = concat!("gex_AM_Commit", $name);
            #[allow(unused_mut, unused_assignments)]
            let mut to = core::ptr::null_mut();
            $(to = $dest;)?
            // SAFETY: as this function requires.
            unsafe {
                commit(function, sd, $family, handler, (nbytes, to), (numargs, args), commit_flags)
            }
        }

        /// Gives a message back that was prepared: nothing is sent.
        ///
        /// - `sd`: the message; it is invalid afterwards.
        /// - `flags`: 0.
        /// - Returns 0.
        /// - Context: between the two calls of a message, in the same thread.
        #[unsafe(no_mangle)]
        pub extern "C" fn $cancel(sd: ExObject, flags: Flags) -> c_int {
            let function = stringify!($cancel);
            early_job(function).ctx().check_no_flags(function, flags);
            let (PreparedMessage { area, .. }, buffer) = take_prepared(function, sd, $family);
            let job = early_job(function);
            area.into_iter().for_each(|area| job.endpoint.conduit.give_area(area));
            if !buffer.is_empty() {
                let mut thread = of_thread(job.ctx().thread_index()).lock();
                thread.buffer = buffer;
                thread.give_back();
            }
            OK
        }
    )* };
}

family! {
    gasneti_CommitRequestMedium gex_AM_CancelRequestMedium "RequestMedium" REQUEST_MEDIUM;
    gasneti_CommitReplyMedium gex_AM_CancelReplyMedium "ReplyMedium" REPLY_MEDIUM;
    gasneti_CommitRequestLong gex_AM_CancelRequestLong "RequestLong" REQUEST_LONG dest_addr;
    gasneti_CommitReplyLong gex_AM_CancelReplyLong "ReplyLong" REPLY_LONG dest_addr;
}
