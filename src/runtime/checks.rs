//! Debug checks: what a thread holds (handler-safe locks, a no-interrupt section, a running
//! handler), what it may therefore call, and whose handle it syncs. Specification 1.8, sections
//! on no-interrupt sections and handler-safe locks.
//!
//! Called by `capi` where a client's call enters, and by `am` before and after a handler runs.
//! Invariants: only a thread itself touches its record. Every misuse ends the job with one line
//! that names it and one that says what to do instead.
//!
//! The checks are off unless GASNET_DEBUG_CHECKS=1 or the client was compiled with
//! GASNET_DEBUG; they cost nothing then (see `capi::ctx`).

use super::handlers::AmToken;
use super::held_locks::HeldLocks;
use super::job::Ctx;
use super::ops::{HandleState, OpHandle};
use crate::conduit::AmMessage;
use crate::report;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

static ON: AtomicBool = AtomicBool::new(false);
/// The kernel's number of the only thread that may call; 0 if there may be others.
static ONLY_THREAD: AtomicU32 = AtomicU32::new(0);
/// Whether a thread has begun a no-interrupt section while no index was free, so that its record
/// does not show it.
static UNRECORDED_SECTION: AtomicBool = AtomicBool::new(false);

/// Whether the calls of the client are checked.
#[inline(always)]
pub fn on() -> bool {
    ON.load(Ordering::Relaxed)
}

/// Switches the checks on; with `single`, only the calling thread may call. Called by
/// `gasnet_init`.
pub fn switch_on(single: bool) {
    if single {
        ONLY_THREAD.store(sys::thread::tid(), Ordering::Relaxed);
    }
    ON.store(true, Ordering::Relaxed);
}

/// Notes that the calling thread, which can get no index, begins a no-interrupt section. From now
/// on no end of a section is found to have no begin.
pub fn note_unrecorded_section() {
    UNRECORDED_SECTION.store(true, Ordering::Relaxed);
}

/// How a call of the library is restricted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallKind {
    /// Legal at any time: it neither sends nor serves the network.
    Query,
    /// Legal outside handlers, also while a handler-safe lock is held: it does not poll.
    Test,
    /// Legal in handlers.
    Reply,
    /// Legal outside handlers and no-interrupt sections, without locks.
    Active,
}

fn kind(function: &str) -> CallKind {
    match function {
        "gasnet_AMGetMsgSource"
        | "gasnet_barrier_result"
        | "gasnet_getSegmentInfo"
        | "gex_Token_Info"
        | "gex_Token_MaxReplyLong"
        | "gex_Token_MaxReplyMedium" => CallKind::Query,
        f if f.ends_with("_nopoll") => CallKind::Query,
        "gasnet_coll_team_rank2node" | "gasnet_coll_team_node2rank" | "gasnet_coll_team_size" => {
            CallKind::Query
        }
        "gex_Event_QueryLeaf" => CallKind::Test,
        f if f.starts_with("gex_Event_Test") || f == "gex_NBI_Test" => CallKind::Test,
        f if f.starts_with("gasnet_AMReply") => CallKind::Reply,
        f if f.starts_with("gex_AM_") && f.contains("Reply") => CallKind::Reply,
        _ => CallKind::Active,
    }
}

impl Ctx {
    fn held(self) -> &'static HeldLocks {
        &self.slot.held
    }

    /// Ends the job if the calling thread may not call `function` now.
    #[cold]
    pub fn check_call(self, function: &str) {
        self.check_thread(function);
        let kind = kind(function);
        if kind == CallKind::Query {
            return;
        }
        if kind != CallKind::Test
            && let Some((lock, unlock)) = self.held().last()
        {
            report::fatal(
                format_args!(
                    "{function}() was called while this thread holds the handler-safe lock {lock:#x}"
                ),
                format_args!(
                    "Call {unlock} first: a handler may need the lock before this call can end."
                ),
            );
        }
        // A second prepared message is refused by that call itself.
        if self.held().has_prepared() && !function.starts_with("gex_AM_Prepare") {
            report::fatal(
                format_args!(
                    "{function}() was called while this thread has prepared an active message"
                ),
                format_args!(
                    "Call gex_AM_Commit* or gex_AM_Cancel* first: until then the thread may call as little as a handler."
                ),
            );
        }
        if self.in_handler() {
            if kind != CallKind::Reply {
                report::fatal(
                    format_args!("{function}() was called in an active message handler"),
                    format_args!(
                        "A handler may reply, use handler-safe locks and {}; do the rest after it has returned.",
                        report::remedy_of(function, "ask for ranks", "call gex_*_Query*")
                    ),
                );
            }
        } else if self.held().in_section() {
            report::fatal(
                format_args!("{function}() was called in a no-interrupt section"),
                format_args!("Call gasnet_resume_interrupts first."),
            );
        }
    }

    /// Ends the job if a second thread of a GASNET_SEQ client calls.
    fn check_thread(self, function: &str) {
        let only = ONLY_THREAD.load(Ordering::Relaxed);
        if only != 0 && only != sys::thread::tid() {
            report::fatal(
                format_args!(
                    "{function}() was called by a second thread of a program that was compiled for GASNET_SEQ"
                ),
                format_args!(
                    "Call from one thread only, or compile for GASNET_PARSYNC or GASNET_PAR."
                ),
            );
        }
    }

    /// Ends the job if the calling thread may not lock the handler-safe lock at this address.
    pub fn check_lock(self, function: &str, lock: usize) {
        self.check_thread(function);
        if self.held().has(lock) {
            report::fatal(
                format_args!(
                    "{function}(): this thread holds the handler-safe lock {lock:#x} already"
                ),
                format_args!(
                    "Unlock it before it is locked again: these locks are not recursive."
                ),
            );
        }
    }

    /// Notes that the calling thread has locked this lock.
    /// `unlock`: the function that unlocks it.
    pub fn note_lock(self, lock: usize, unlock: &'static str) {
        self.held().push(lock, unlock);
    }

    /// Whether the calling thread holds this lock, which it is about to unlock; it counts as
    /// unlocked then. Ends the job if the thread has locked another one since.
    pub fn note_unlock(self, function: &str, lock: usize) -> bool {
        self.check_thread(function);
        let held = self.held();
        match held.last() {
            Some((last, _)) if last == lock => {
                held.pop();
                true
            }
            Some((last, _)) if held.has(lock) => report::fatal(
                format_args!(
                    "{function}(): the handler-safe lock {lock:#x} is unlocked before {last:#x}, which this thread locked later"
                ),
                format_args!("Unlock in the reverse order of locking."),
            ),
            _ => false,
        }
    }

    /// Ends the job if the calling thread holds this lock, which it is about to destroy.
    pub fn check_destroy(self, function: &str, lock: usize) {
        self.check_thread(function);
        if self.held().has(lock) {
            report::fatal(
                format_args!("{function}(): this thread holds the handler-safe lock {lock:#x}"),
                format_args!("Unlock it before it is destroyed."),
            );
        }
    }

    /// `gasnet_hold_interrupts`, which has no effect in handlers and while a lock is held.
    pub fn hold_interrupts(self) {
        self.check_thread("gasnet_hold_interrupts");
        let held = self.held();
        if self.in_handler() || held.last().is_some() {
            return;
        }
        if held.set_section(true) {
            report::fatal(
                format_args!(
                    "gasnet_hold_interrupts(): this thread is in a no-interrupt section already"
                ),
                format_args!(
                    "Call gasnet_resume_interrupts first: these sections cannot be nested."
                ),
            );
        }
    }

    /// `gasnet_resume_interrupts`, which has no effect in handlers and while a lock is held.
    pub fn resume_interrupts(self) {
        self.check_thread("gasnet_resume_interrupts");
        let held = self.held();
        if self.in_handler() || held.last().is_some() {
            return;
        }
        if !held.set_section(false) && !UNRECORDED_SECTION.load(Ordering::Relaxed) {
            report::fatal(
                format_args!(
                    "gasnet_resume_interrupts(): this thread is in no no-interrupt section"
                ),
                format_args!(
                    "Call gasnet_hold_interrupts once before each gasnet_resume_interrupts."
                ),
            );
        }
    }

    /// Notes whether the calling thread has prepared an active message. Does nothing if checks are
    /// off.
    pub fn note_prepared(self, prepared: bool) {
        if on() {
            self.held().set_prepared(prepared);
        }
    }

    /// Ends the job unless the handler of a message was registered for such messages.
    #[cold]
    pub(super) fn check_message(self, token: &AmToken<'_>, m: &AmMessage<'_>) {
        let (category, is_request, args) = (m.category, token.is_request(), m.args.len());
        let entry = self.endpoint().handlers.entry(m.handler);
        if entry.is_none_or(|entry| entry.takes(category, is_request, args)) {
            return;
        }
        let direction = if is_request { "request" } else { "reply" };
        report::fatal(
            format_args!(
                "handler {} was registered for other messages than this of rank {}: a {category:?} {direction} with {args} arguments",
                m.handler, m.source
            ),
            format_args!(
                "Send what the row of gex_EP_RegisterHandlers says (gex_flags, gex_nargs), or correct the row."
            ),
        );
    }

    /// Ends the job if the handler that has just returned left a lock locked, or a reply that it
    /// prepared.
    #[cold]
    pub(super) fn check_handler_end(self, handler: u8) {
        if let Some((lock, _)) = self.held().last() {
            report::fatal(
                format_args!(
                    "handler {handler} returned while it holds the handler-safe lock {lock:#x}"
                ),
                format_args!("Unlock in the handler what it has locked."),
            );
        }
        if self.held().has_prepared() {
            report::fatal(
                format_args!(
                    "handler {handler} returned with a reply that it has prepared, but not sent"
                ),
                format_args!("Call gex_AM_CommitReply* or gex_AM_CancelReply* in the handler."),
            );
        }
    }

    /// Ends the job unless each of these handles is INVALID or that of an operation of the calling
    /// thread that is not synced. None but INVALID may occur twice. Does nothing if checks are
    /// off.
    pub fn check_handles(self, function: &str, handles: &[OpHandle]) {
        if on() {
            self.check_each_handle(function, handles);
        }
    }

    #[cold]
    fn check_each_handle(self, function: &str, handles: &[OpHandle]) {
        for &h in handles.iter().filter(|h| **h != OpHandle::INVALID) {
            match self.job.ops.look_up(h) {
                HandleState::Live(thread) if thread == self.thread_index() => {}
                HandleState::Live(thread) => report::fatal(
                    format_args!(
                        "{function}(): handle {:#x} is of an operation of thread {thread}, but thread {} syncs it",
                        h.0,
                        self.thread_index()
                    ),
                    format_args!("Sync an operation in the thread that initiated it."),
                ),
                HandleState::Synced => already_synced(function, h),
                HandleState::Invalid => report::fatal(
                    format_args!(
                        "{function}(): {:#x} is not a handle of a non-blocking operation",
                        h.0
                    ),
                    format_args!(
                        "Give what gasnet_put_nb and its like returned, or GASNET_INVALID_HANDLE."
                    ),
                ),
            }
        }
        if let Some(handle) = twice(handles.iter()) {
            already_synced(function, handle);
        }
    }

    /// Ends the job unless each of these events is INVALID, that of an operation that is not
    /// synced, or a leaf of one. No operation may occur twice. Does nothing if checks are off.
    pub fn check_events(self, function: &str, events: &[OpHandle]) {
        if on() {
            self.check_each_event(function, events);
        }
    }

    #[cold]
    fn check_each_event(self, function: &str, events: &[OpHandle]) {
        for &event in events.iter().filter(|e| **e != OpHandle::INVALID) {
            match self.job.ops.look_up(event) {
                HandleState::Live(_) => {}
                HandleState::Synced if event.is_leaf() => report::fatal(
                    format_args!(
                        "{function}(): {:#x} is the leaf of an operation that was synced before it",
                        event.0
                    ),
                    format_args!(
                        "Sync a leaf before its operation or in one array with it, or drop it."
                    ),
                ),
                HandleState::Synced => event_twice(function, event),
                HandleState::Invalid => report::fatal(
                    format_args!("{function}(): {:#x} is no event", event.0),
                    format_args!(
                        "Pass what gex_RMA_PutNB and its like returned, or GEX_EVENT_INVALID."
                    ),
                ),
            }
        }
        if let Some(event) = twice(events.iter().filter(|e| !e.is_leaf())) {
            event_twice(function, event);
        }
    }

    /// Makes the leaves in an array INVALID whose operations were synced with it: the client
    /// cannot tell them from others. Does nothing if checks are off.
    #[inline(always)]
    pub fn drop_synced_leaves(self, events: &mut [OpHandle]) {
        if on() {
            self.drop_each_synced_leaf(events);
        }
    }

    #[cold]
    #[inline(never)]
    fn drop_each_synced_leaf(self, events: &mut [OpHandle]) {
        let is_synced = |event: &OpHandle| {
            event.is_leaf() && self.job.ops.look_up(*event) == HandleState::Synced
        };
        events.iter_mut().filter(|e| is_synced(e)).for_each(|e| *e = OpHandle::INVALID);
    }

    /// Ends the job unless `flags` of a call that has none are 0. Does nothing if checks are off.
    pub fn check_no_flags(self, function: &str, flags: u32) {
        if on() && flags != 0 {
            report::fatal(
                format_args!("{function}(): flags are {flags:#x}, but this call has none"),
                format_args!("Pass 0."),
            );
        }
    }

    /// The handle that a client gets where calls are checked or traced. It is valid even if the
    /// operation is complete: a misuse is found whether or not the segment is mapped.
    pub fn real_handle(self, handle: OpHandle) -> OpHandle {
        if handle == OpHandle::INVALID {
            self.job.ops.begin(self.thread_index(), 0)
        } else {
            handle
        }
    }
}

/// A handle other than INVALID that occurs twice.
fn twice<'a>(handles: impl Iterator<Item = &'a OpHandle>) -> Option<OpHandle> {
    let mut sorted: Vec<usize> = handles.map(|h| h.0).filter(|&h| h != 0).collect();
    sorted.sort_unstable();
    sorted.windows(2).find(|pair| pair[0] == pair[1]).map(|pair| OpHandle(pair[0]))
}

fn event_twice(function: &str, event: OpHandle) -> ! {
    report::fatal(
        format_args!("{function}(): the event {:#x} is synced twice", event.0),
        format_args!(
            "An event is invalid once a test or wait has found it happened; drop it then."
        ),
    )
}

fn already_synced(function: &str, h: OpHandle) -> ! {
    report::fatal(
        format_args!("{function}(): handle {:#x} is synced twice", h.0),
        format_args!(
            "A handle is invalid once a sync has found its operation complete; drop it then."
        ),
    )
}

/// Ends the job unless both addresses of a transfer of `n` bytes are aligned as forms that are
/// not bulk require. Does nothing if checks are off.
pub fn check_alignment(function: &str, remote: *const u8, local: *const u8, n: usize) {
    if on() {
        check_both(function, remote, local, n);
    }
}

/// Ends the job if a call that moves `n` bytes has no address for them in this process. Called
/// where calls are checked.
#[cold]
#[inline(never)]
pub fn check_local(function: &str, (argument, address): (&str, *const u8), n: usize) {
    if n != 0 && address.is_null() {
        report::fatal(
            format_args!("{function}(): {argument} is null, but the call moves {n} bytes"),
            format_args!("Pass the address of as many bytes of this process."),
        );
    }
}

#[cold]
fn check_both(function: &str, remote: *const u8, local: *const u8, n: usize) {
    if !matches!(n, 2 | 4 | 8) {
        return;
    }
    for (side, at) in [("remote", remote as usize), ("local", local as usize)] {
        if at % n != 0 {
            report::fatal(
                format_args!(
                    "{function}(): the {side} address {at:#x} is not aligned for {n} bytes"
                ),
                format_args!(
                    "Align both addresses to the size, or use the bulk form, which takes any address."
                ),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_be_called_when() {
        assert_eq!(kind("gasnet_AMReplyShort3"), CallKind::Reply);
        assert_eq!(kind("gasnet_AMRequestShort3"), CallKind::Active);
        assert_eq!(kind("gasnet_try_syncnb_nopoll"), CallKind::Query);
        assert_eq!(kind("gasnet_try_syncnb"), CallKind::Active);
        assert_eq!(kind("GASNET_BLOCKUNTIL"), CallKind::Active);
        assert_eq!(kind("gasnet_getSegmentInfo"), CallKind::Query);
    }
}
