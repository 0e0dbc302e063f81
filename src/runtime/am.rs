//! Active messages: how a message is sent, and how one that arrives gets to its handler.
//!
//! Called by `capi` and the extended layer to send, by the conduit (through [`Upcall`]) to run
//! handlers. Invariant: a thread's [`AmToken`] is linked in its slot exactly while its handler
//! runs, so a reply can be checked against it.

use super::handlers::ContextHandler;
use super::job::Ctx;
use crate::conduit::{
    AmMessage, Category, OpId, Outgoing, PayloadArea, ReplyToken, ResourceNeed, SystemMessage,
    Upcall, WaitStage,
};
use crate::rank::JobRank;
use crate::report;
use crate::trace::{self, EventDetail, Letter, Probe};
use core::ffi::c_void;
use core::sync::atomic::Ordering;
use sys::hint::cold_path;

pub use super::handlers::{
    AmEntry, AmToken, CLIENT_BASE, EXTENDED_BASE, FreeIndex, HandlerEntry, MAX_ARGS,
};

/// A handler of the extended layer.
pub type InternalHandler = ContextHandler<Ctx>;

/// Ends the job: no handler is registered for a message.
fn no_handler(source: JobRank, handler: u8) -> ! {
    report::fatal(
        format_args!(
            "an active message of rank {source} names handler {handler}, which is not registered here"
        ),
        format_args!(
            "Register it in every rank, by gasnet_attach or gex_EP_RegisterHandlers, before it is used."
        ),
    )
}

/// Ends the job: a handler sends a request.
fn request_in_handler(function: &str) -> ! {
    report::fatal(
        format_args!(
            "{function}(): an active message request cannot be sent from inside a handler"
        ),
        format_args!(
            "Reply with {}, or send the request after the handler has returned.",
            report::remedy_of(function, "gasnet_AMReply*", "gex_AM_Reply*")
        ),
    )
}

/// Ends the job: a reply without the token of a handler that is running.
fn foreign_token(function: &str) -> ! {
    report::fatal(
        format_args!(
            "{function}(): the token is not that of a handler which this thread is running"
        ),
        format_args!("Reply only inside a request handler, with the token that it was given."),
    )
}

/// Ends the job: a handler replies that may not reply, or has replied.
fn no_reply(function: &str, token: &AmToken<'_>) -> ! {
    if !token.is_request {
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
        node: m.source.0,
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
    fn run_watched(self, token: &AmToken<'_>, m: &AmMessage<'_>) -> bool {
        trace::record(handler_probe(m), || handler_event(m), || self.run(token, m)).is_some()
    }

    #[inline(always)]
    fn run(self, token: &AmToken<'_>, m: &AmMessage<'_>) {
        if trace::on() && self.run_watched(token, m) {
            return;
        }
        let link = &self.slot.token;
        let outer = link.load(Ordering::Relaxed);
        let here = core::ptr::from_ref(token).cast_mut().cast();
        if m.handler < CLIENT_BASE {
            cold_path();
            let Some(f) = self.endpoint().handlers.of_extended(m.handler) else {
                no_handler(m.source, m.handler)
            };
            link.store(here, Ordering::Relaxed);
            f(self, token, m);
        } else {
            if super::checks::on() {
                self.check_message(token, m);
            }
            let Some(f) = self.endpoint().handlers.of_client(m.handler) else {
                no_handler(m.source, m.handler)
            };
            link.store(here, Ordering::Relaxed);
            f.call(token, m);
        }
        if super::checks::on() {
            self.check_handler_end(m.handler);
        }
        link.store(outer, Ordering::Relaxed);
    }

    /// Sends a request. `function` names the caller in messages.
    ///
    /// Ends the job if the calling thread is running a handler: a request handler may only
    /// reply, a reply handler may send nothing. False if the request is immediate and refused.
    #[inline(always)]
    pub fn request(self, function: &str, rank: JobRank, m: &Outgoing<'_>) -> bool {
        if self.in_handler() {
            request_in_handler(function);
        }
        if rank == self.endpoint().rank {
            cold_path();
            // A copy, so that the fast path need not put the arguments together in memory.
            return self.request_own(&m.with_args(&mut [0; MAX_ARGS]));
        }
        self.endpoint().conduit.request(self, rank, m)
    }

    /// As [`Ctx::request`], of a Medium whose payload, the first bytes of an area, stays there.
    pub fn request_area(
        self,
        function: &str,
        rank: JobRank,
        m: &Outgoing<'_>,
        area: PayloadArea,
    ) -> bool {
        if self.in_handler() {
            request_in_handler(function);
        }
        let conduit = &self.endpoint().conduit;
        if rank == self.endpoint().rank {
            self.request_own(m);
            conduit.give_area(area);
            return true;
        }
        conduit.request_area(self, rank, m, area)
    }

    /// Runs the handler of a request of this rank to itself. It also polls, as requests to peers
    /// do when they wait: a client may send nothing else.
    #[cold]
    #[inline(never)]
    fn request_own(self, m: &Outgoing<'_>) -> bool {
        self.endpoint().conduit.request_own(self, m);
        self.poll();
        true
    }

    /// Calls `f` with the token that `token` stands for, if it is that of the handler which
    /// this thread is running.
    #[inline(always)]
    pub fn with_token<R>(
        self,
        token: *const c_void,
        f: impl FnOnce(&AmToken<'_>) -> R,
    ) -> Option<R> {
        let current = self.slot.token.load(Ordering::Relaxed);
        if current.is_null() || current.cast_const().cast() != token {
            return None;
        }
        // SAFETY: this thread linked the token in `run`. The caller of `run` holds it on the
        // stack of this thread until the handler, inside which `f` runs, has returned.
        Some(f(unsafe { &*current }))
    }

    /// The rank that sent the message, if `token` is that of the handler which this thread is
    /// running.
    pub fn message_source(self, token: *const c_void) -> Option<JobRank> {
        self.with_token(token, |token| token.source())
    }

    /// Sends the reply of the handler that this thread is running. `function` names the caller
    /// in messages.
    ///
    /// Ends the job if no request handler is running, or if it has replied before.
    #[inline(always)]
    pub fn reply(self, function: &str, token: *const c_void, m: &Outgoing<'_>) {
        let reply = self.with_token(
            token,
            #[inline(always)]
            |token| self.reply_to(function, token, m),
        );
        if reply.is_none() {
            foreign_token(function)
        }
    }

    /// As [`Ctx::reply`], of a Medium whose payload, the first bytes of an area, stays there.
    pub fn reply_area(
        self,
        function: &str,
        token: *const c_void,
        m: &Outgoing<'_>,
        area: PayloadArea,
    ) {
        let reply = self.with_token(token, |token| match token.reply.take() {
            Some(reply) => self.endpoint().conduit.reply_area(self, reply, m, area),
            None => no_reply(function, token),
        });
        if reply.is_none() {
            foreign_token(function)
        }
    }

    /// The rank that the reply of the handler goes to which this thread is running. Ends the job
    /// unless the handler may reply.
    pub fn replies_to(self, function: &str, token: *const c_void) -> JobRank {
        let source = self.with_token(token, |token| {
            let Some(reply) = token.reply.take() else { no_reply(function, token) };
            token.reply.set(Some(reply));
            token.source()
        });
        source.unwrap_or_else(|| foreign_token(function))
    }

    /// As [`Ctx::reply`], for the token that a handler of the library was given.
    #[inline(always)]
    pub fn reply_to(self, function: &str, token: &AmToken<'_>, m: &Outgoing<'_>) {
        match token.reply.take() {
            Some(reply) => self.endpoint().conduit.reply(self, reply, m),
            None => no_reply(function, token),
        }
    }
}

impl Upcall for Ctx {
    fn thread(self) -> usize {
        self.slot.index.into()
    }

    #[inline(always)]
    fn run_request(self, token: &mut ReplyToken, message: AmMessage<'_>) {
        let token = AmToken::new(&message, Some(token));
        self.run(&token, &message);
    }

    #[inline(always)]
    fn run_reply(self, message: AmMessage<'_>) {
        let token = AmToken::new(&message, None);
        self.run(&token, &message);
    }

    fn op_done(self, op: OpId) {
        self.job.ops.complete(op);
    }

    fn op_departed(self, op: OpId) {
        self.job.ops.depart(op);
    }

    #[cold]
    fn system(self, _: JobRank, message: SystemMessage) {
        self.system_message(message);
    }

    fn pause(self, round: u32, need: ResourceNeed) {
        let stage = if need.all_sent { WaitStage::Sent } else { WaitStage::Sending };
        self.pause_at(round, need.what, need.peer, stage);
    }

    fn end_pauses(self) {
        self.end_wait();
    }
}
