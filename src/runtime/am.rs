//! Active messages: the handler table, the token, and how a message gets to its handler.
//!
//! Called by `capi` and the extended layer to send, by the conduit (through [`Upcall`]) to run
//! handlers. Invariant: a thread's [`AmToken`] is linked in its slot exactly while its handler
//! runs, so a reply can be checked against it. Clients own the indices 128 to 255, the extended
//! layer 64 to 127.

use super::threads::Ctx;
use super::{GasnetError, GasnetResult};
use crate::conduit::{AmMessage, Category, OpId, Outgoing, ReplyToken, ResourceNeed, Upcall};
use crate::report;
use crate::trace::{self, EventDetail, Letter, Probe};
use core::cell::Cell;
use core::ffi::c_void;
use core::sync::atomic::{AtomicPtr, Ordering};
use sys::hint::cold_path;

/// Lowest index that a client may register.
pub const CLIENT_BASE: u8 = 128;
/// Lowest index of the extended layer.
pub const EXTENDED_BASE: u8 = 64;
/// Most arguments of a message (`gasnet_AMMaxArgs`).
pub const MAX_ARGS: usize = 16;

/// A handler of the extended layer.
pub type InternalHandler = fn(Ctx, &AmToken, &AmMessage<'_>);

/// What `gasnet_token_t` points to; lives on the stack of the thread that runs the handler.
#[derive(Debug)]
pub struct AmToken {
    /// Rank of the sender.
    pub source: u32,
    /// Where a reply may go; null in a reply handler.
    reply: Cell<*mut ReplyToken>,
    replied: Cell<bool>,
}

/// The handlers of this process, by index.
#[derive(Debug)]
pub struct HandlerTable([AtomicPtr<()>; 256]);

impl Default for HandlerTable {
    fn default() -> Self {
        HandlerTable([const { AtomicPtr::new(core::ptr::null_mut()) }; 256])
    }
}

/// One row of the table that a client hands to `gasnet_attach`: index (0: choose one) and
/// function.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HandlerEntry {
    /// `gasnet_handler_t`
    pub index: u8,
    /// The function; its shape depends on the category and the number of arguments of the
    /// message.
    pub fnptr: Option<unsafe extern "C" fn()>,
}

impl HandlerTable {
    /// Registers the handlers of a client: explicit indices first, then each 0 gets the lowest
    /// free index, written back in table order.
    ///
    /// # Errors
    /// [`GasnetError::BadArg`], after a line that says which row, for an index that is taken or
    /// below 128, or no free index; no handler is registered then.
    pub fn register(&self, table: &mut [HandlerEntry]) -> GasnetResult {
        let result = self.place_all(table);
        if result.is_err() {
            for h in &self.0[CLIENT_BASE as usize..] {
                h.store(core::ptr::null_mut(), Ordering::Relaxed);
            }
        }
        result
    }

    fn place_all(&self, table: &mut [HandlerEntry]) -> GasnetResult {
        for (row, e) in table.iter().enumerate().filter(|(_, e)| e.index != 0) {
            if e.index < CLIENT_BASE {
                return refuse(row, e.index, "is reserved; clients have 128 to 255");
            }
            self.place(row, e)?;
        }
        for (row, e) in table.iter_mut().enumerate().filter(|(_, e)| e.index == 0) {
            let free = (CLIENT_BASE..=255)
                .find(|&i| self.0[i as usize].load(Ordering::Relaxed).is_null());
            let Some(free) = free else {
                return refuse(row, 0, "(don't care) cannot be placed: 128 to 255 are all taken");
            };
            e.index = free;
            self.place(row, e)?;
        }
        Ok(())
    }

    fn place(&self, row: usize, e: &HandlerEntry) -> GasnetResult {
        let Some(f) = e.fnptr else {
            return refuse(row, e.index, "has a null function");
        };
        let free = self.0[e.index as usize].compare_exchange(
            core::ptr::null_mut(),
            f as *mut (),
            Ordering::Release,
            Ordering::Relaxed,
        );
        match free {
            Ok(_) => Ok(()),
            Err(_) => refuse(row, e.index, "is registered twice"),
        }
    }

    /// Registers the handlers of the extended layer, from [`EXTENDED_BASE`] upwards.
    pub fn register_internal(&self, table: &[InternalHandler]) {
        assert!(table.len() <= (CLIENT_BASE - EXTENDED_BASE) as usize);
        for (i, f) in table.iter().enumerate() {
            self.0[EXTENDED_BASE as usize + i].store(*f as *mut (), Ordering::Release);
        }
    }
}

fn refuse(row: usize, index: u8, why: &str) -> GasnetResult {
    report::warn(
        format_args!("gasnet_attach(): row {row} of the handler table: index {index} {why}"),
        format_args!(
            "Give each handler an index of its own from 128 to 255, or 0 to have one chosen."
        ),
    );
    Err(GasnetError::BadArg)
}

/// Calls a client's handler with as many arguments as the message has.
macro_rules! call {
    (@one $f:expr, $args:expr, ($($lead:expr => $t:ty),*), $($i:literal)*) => {
        // SAFETY: the client registered a function of this shape for messages with this many
        // arguments; that is its contract with gasnet_attach. Function pointers are all of one
        // size.
        unsafe {
            let f: unsafe extern "C" fn($($t,)* $(call!(@int $i)),*) = core::mem::transmute($f);
            f($($lead,)* $($args[$i]),*)
        }
    };
    (@int $i:literal) => { i32 };
    ($f:expr, $args:expr, $lead:tt, $($n:literal: $($i:literal)*;)*) => {
        match $args.len() {
            $($n => call!(@one $f, $args, $lead, $($i)*),)*
            _ => unreachable!("the conduit delivers at most 16 arguments"),
        }
    };
    ($f:expr, $args:expr, $lead:tt) => {
        call!($f, $args, $lead,
            0: ; 1: 0; 2: 0 1; 3: 0 1 2; 4: 0 1 2 3; 5: 0 1 2 3 4; 6: 0 1 2 3 4 5; 7: 0 1 2 3 4 5 6;
            8: 0 1 2 3 4 5 6 7; 9: 0 1 2 3 4 5 6 7 8; 10: 0 1 2 3 4 5 6 7 8 9; 11: 0 1 2 3 4 5 6 7 8 9 10;
            12: 0 1 2 3 4 5 6 7 8 9 10 11; 13: 0 1 2 3 4 5 6 7 8 9 10 11 12; 14: 0 1 2 3 4 5 6 7 8 9 10 11 12 13;
            15: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14; 16: 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15;)
    };
}

/// Ends the job: no handler is registered for a message.
#[cold]
#[inline(never)]
fn no_handler(source: u32, handler: u8) -> ! {
    report::fatal(
        format_args!(
            "an active message of process {source} names handler {handler}, which is not registered here"
        ),
        format_args!("Register it with gasnet_attach in every process before it is used."),
    )
}

/// Ends the job: a handler sends a request.
#[cold]
#[inline(never)]
fn request_in_handler(function: &str) -> ! {
    report::fatal(
        format_args!(
            "{function}(): an active message request cannot be sent from inside a handler"
        ),
        format_args!(
            "Reply with gasnet_AMReply*, or send the request after the handler has returned."
        ),
    )
}

/// Ends the job: a reply without the token of a handler that is running.
#[cold]
#[inline(never)]
fn foreign_token(function: &str) -> ! {
    report::fatal(
        format_args!(
            "{function}(): the token is not that of a handler which this thread is running"
        ),
        format_args!("Reply only inside a request handler, with the token that it was given."),
    )
}

/// Ends the job: a handler replies that may not reply, or has replied.
#[cold]
#[inline(never)]
fn no_reply(function: &str, token: &AmToken) -> ! {
    if token.reply.get().is_null() {
        report::fatal(
            format_args!("{function}(): a reply handler may not send anything"),
            format_args!(
                "Let the request handler reply, or send a request after the handler has returned."
            ),
        )
    }
    report::fatal(
        format_args!("{function}(): this request handler has replied already"),
        format_args!("A request handler may reply at most once."),
    )
}

/// A handler of the client, by category, or of the library.
fn handler_probe(m: &AmMessage<'_>) -> &'static Probe {
    static OURS: Probe = Probe::new(Letter::C, "handler");
    static SHORT: Probe = Probe::new(Letter::A, "handlerShort");
    static MEDIUM: Probe = Probe::new(Letter::A, "handlerMedium");
    static LONG: Probe = Probe::new(Letter::A, "handlerLong");
    match m.category {
        _ if m.handler < CLIENT_BASE => &OURS,
        Category::Short => &SHORT,
        Category::Medium => &MEDIUM,
        Category::Long => &LONG,
    }
}

/// What a trace records of a handler that runs.
fn handler_event(m: &AmMessage<'_>) -> EventDetail {
    EventDetail::Message {
        node: m.source,
        handler: m.handler,
        bytes: m.payload.len(),
        payload: m.payload.as_ptr(),
        args: m.args.as_ptr(),
        nargs: m.args.len(),
    }
}

impl Ctx {
    /// Runs a handler as an event of the trace; false, and nothing done, if nothing is traced.
    #[cold]
    #[inline(never)]
    fn run_watched(self, token: &AmToken, m: &AmMessage<'_>) -> bool {
        // SAFETY: payload and arguments stay readable while the handler of the message runs.
        let detail = || unsafe { handler_event(m).readable() };
        trace::record(handler_probe(m), detail, || self.run(token, m)).is_some()
    }

    #[inline(always)]
    fn run(self, token: &AmToken, m: &AmMessage<'_>) {
        // Cold functions take a copy of the message: so the message itself stays in registers.
        if trace::on() && self.run_watched(token, &{ *m }) {
            return;
        }
        let f = self.job.handlers.0[m.handler as usize].load(Ordering::Acquire);
        if f.is_null() {
            no_handler(m.source, m.handler);
        }
        let slot = self.slot();
        let outer = slot.token.replace(token);
        if m.handler < CLIENT_BASE {
            cold_path();
            // SAFETY: entries below CLIENT_BASE are only stored by `register_internal`, from
            // this very type.
            let f: InternalHandler = unsafe { core::mem::transmute(f) };
            f(self, token, &{ *m });
        } else {
            let t: *const c_void = core::ptr::from_ref(token).cast();
            if m.category == Category::Short && m.args.is_empty() {
                // The most frequent case needs no jump by the number of arguments.
                call!(@one f, m.args, (t => *const c_void),);
            } else if m.category == Category::Short {
                call!(f, m.args, (t => *const c_void));
            } else {
                call!(f, m.args, (t => *const c_void, m.payload.as_ptr() => *mut u8, m.payload.len() => usize));
            }
        }
        if super::checks::on() {
            self.check_handler_end(m.handler);
        }
        slot.token.set(outer);
    }

    /// Sends a request. `function` names the caller in messages.
    ///
    /// Ends the job if the calling thread is running a handler: a request handler may only
    /// reply, a reply handler may send nothing.
    #[inline(always)]
    pub fn request(self, function: &str, node: u32, m: &Outgoing<'_>) {
        if self.in_handler() {
            request_in_handler(function);
        }
        self.job.conduit.request(self, node, m);
        // A request to this process is served at once: another thread may wait for its handler
        // with puts to mapped peers only, which do not poll.
        if node == self.job.mynode {
            self.serve_own();
        }
    }

    #[cold]
    #[inline(never)]
    fn serve_own(self) {
        self.poll();
    }

    /// The token that `token` stands for, if it is that of the handler which this thread is
    /// running.
    #[inline]
    pub fn token(self, token: *const c_void) -> Option<&'static AmToken> {
        let current = self.slot().token.get();
        if current.is_null() || current.cast() != token {
            return None;
        }
        // SAFETY: a token linked in this thread's slot is on this thread's stack until its
        // handler returns, and the client may use it no longer than that; the reference is only
        // used within the present call.
        Some(unsafe { &*current })
    }

    /// Sends the reply of the handler that this thread is running. `function` names the caller
    /// in messages.
    ///
    /// Ends the job if no request handler is running, or if it has replied before.
    #[inline(always)]
    pub fn reply(self, function: &str, token: *const c_void, m: &Outgoing<'_>) {
        let Some(token) = self.token(token) else { foreign_token(function) };
        if token.reply.get().is_null() || token.replied.replace(true) {
            no_reply(function, token);
        }
        // SAFETY: set from the `&mut ReplyToken` that `run_request` holds while the handler
        // runs; this thread is inside that handler, and `replied` makes this the only use.
        let reply = unsafe { &mut *token.reply.get() };
        self.job.conduit.reply(self, reply, m);
    }
}

impl Upcall for Ctx {
    #[inline]
    fn thread(self) -> usize {
        self.thread as usize
    }

    #[inline(always)]
    fn run_request(self, token: &mut ReplyToken, message: AmMessage<'_>) {
        let token =
            AmToken { source: message.source, reply: Cell::new(token), replied: Cell::new(false) };
        self.run(&token, &message);
    }

    #[inline(always)]
    fn run_reply(self, message: AmMessage<'_>) {
        let token = AmToken {
            source: message.source,
            reply: Cell::new(core::ptr::null_mut()),
            replied: Cell::new(false),
        };
        self.run(&token, &message);
    }

    #[inline]
    fn op_done(self, op: OpId) {
        self.job.ops.complete(op);
    }

    #[inline]
    fn pause(self, round: u32, need: ResourceNeed) {
        self.relax(round, need.what, need.peer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    unsafe extern "C" fn f() {}

    fn row(index: u8) -> HandlerEntry {
        HandlerEntry { index, fnptr: Some(f) }
    }

    #[test]
    fn explicit_indices_come_first() {
        let h = HandlerTable::default();
        let mut t = [row(0), row(128), row(0), row(130), row(0)];
        assert_eq!(h.register(&mut t), Ok(()));
        assert_eq!(t.map(|e| e.index), [129, 128, 131, 130, 132]);
    }

    #[test]
    fn bad_rows_are_refused() {
        assert_eq!(HandlerTable::default().register(&mut [row(127)]), Err(GasnetError::BadArg));
        assert_eq!(
            HandlerTable::default().register(&mut [row(200), row(200)]),
            Err(GasnetError::BadArg)
        );
        assert_eq!(
            HandlerTable::default().register(&mut [HandlerEntry { index: 0, fnptr: None }]),
            Err(GasnetError::BadArg)
        );
        let mut many = [row(0); 129];
        assert_eq!(HandlerTable::default().register(&mut many), Err(GasnetError::BadArg));
    }

    #[test]
    fn a_refused_table_leaves_nothing() {
        let h = HandlerTable::default();
        assert_eq!(h.register(&mut [row(200), row(200)]), Err(GasnetError::BadArg));
        assert_eq!(h.register(&mut [row(200)]), Ok(()));
    }
}
