//! Requests that arrive: from AM_EQ to their handlers, and the resources that a handler's reply
//! needs.
//!
//! Called by `poll`. AM_EQ is polled only after a [`ReplyKit`] is reserved: what any reply may
//! need. The thread that takes events off the queue holds the kit of the next request. A handler
//! takes it over, and what its reply leaves goes back. Invariant: handlers run with no lock held
//! and never inside another handler of the same thread.
//!
//! ```text
//!   event of       body              then
//!   ReqHdr         none, or inline   run
//!   ReqRB          in the buffer     run; or wait for its data (Long) or for slack (reqrb)
//!   RARAM          data of a Long    run, if its header is here
//! ```

use super::am_recv::{bad_message, header, malformed};
use super::arrived::{AmConsumer, ArrivedRequest, RequestBody};
use super::client_thread::ClientThread;
use super::credits;
use super::match_bits::{self, AmForm, AmHeader, MediumPlace, MessageKind, REPLY_LID};
use super::memory::Body;
use super::portals::{InlineBody, MdEvent, MdEventKind, NextEvent, Portals};
use super::reply_token::ReplyKit;
use super::sync::ParGuard;
use super::user::Descriptor;
use super::{Conduit, MAX_ARGS, Outgoing, ReplyToken, Upcall};
use crate::client_memory::Dst;
use crate::report;
use alloc::boxed::Box;
use core::sync::atomic::Ordering;
use sys::hint::cold_path;
use sys::peer::Peer;

impl<P: Portals> Conduit<P> {
    /// Serves AM_EQ, unless this thread is inside a handler.
    #[inline(never)]
    pub(super) fn serve_am<U: Upcall>(&self, up: U) -> bool {
        if self.in_handler(up) {
            return false;
        }
        let mut served = 0;
        loop {
            if !self.serve_one(up) {
                break;
            }
            served += 1;
            if served == self.config.am_limit || !self.am_may_have() {
                break;
            }
        }
        served != 0
    }

    /// Whether a request may have arrived, or waits to be started.
    #[inline]
    pub fn am_may_have(&self) -> bool {
        !self.am.is_quiet(&self.portals) || self.waiting.load(Ordering::Relaxed) != 0
    }

    /// Completes a kit; what is missing comes back through events of SAFE_EQ. Tickets are taken
    /// last, see `tickets`.
    #[inline(always)]
    fn fill(&self, kit: &mut ReplyKit) -> bool {
        if kit.is_complete() {
            return true;
        }
        cold_path();
        self.fill_up(kit)
    }

    #[inline(never)]
    fn fill_up(&self, kit: &mut ReplyKit) -> bool {
        if kit.chunk.is_none() {
            kit.chunk = self.rplsb.take();
        }
        if kit.tmpmd.is_none() && kit.chunk.is_some() {
            kit.tmpmd = self.tmpmd.take();
        }
        let rest = kit.chunk.is_some() && kit.tmpmd.is_some();
        if rest && kit.tickets < 2 && self.tickets.take(2 - kit.tickets).is_some() {
            kit.tickets = 2;
        }
        kit.is_complete()
    }

    /// Handles one event of AM_EQ, or one request that waits; false if there is none that may be
    /// handled now.
    #[inline(always)]
    fn serve_one<U: Upcall>(&self, up: U) -> bool {
        let Some(mut taker) = self.am.taker.try_lock() else { return false };
        if !self.fill(&mut taker.kit) {
            cold_path();
            return false;
        }
        if !taker.waiting.is_empty()
            && let Some(request) = self.next_waiting(&mut taker)
        {
            self.run_any(up, taker, request);
            return true;
        }
        let mut inline = InlineBody::default();
        let e = match self.am.look(&self.portals, &mut inline) {
            NextEvent::Arrival(e) => e,
            NextEvent::Nothing => return false,
            NextEvent::Other => {
                cold_path();
                return self.other_event(up, taker, None, &mut inline);
            }
        };
        match Descriptor::unpack(e.user) {
            Descriptor::ReqHdr if e.inline => {
                self.inline_request(up, taker, e.match_bits, e.hdr_data, &mut inline)
            }
            Descriptor::ReqHdr if !AmHeader::is_unpacked(e.match_bits) => {
                let am = self.request_outside_buffers(e.match_bits, e.hdr_data, Body::of(&mut []));
                if am.numargs != 0 {
                    malformed(e.match_bits, e.hdr_data);
                }
                let kit = self.take_kit(up, &mut taker);
                drop(taker);
                self.run_request(up, am, Body::of(&mut []), None, kit, None);
            }
            Descriptor::ReqRb(buffer) => {
                let (am, body, start) = self.request_in_buffer(buffer, &e);
                if !start || am.form == AmForm::Unpacked {
                    cold_path();
                    // A copy, so that the event itself is never put together in memory.
                    self.arrived_in_part(up, taker, buffer, &{ e }, start);
                    return true;
                }
                let kit = self.take_kit(up, &mut taker);
                drop(taker);
                self.run_request(up, am, body, None, kit, Some(buffer));
            }
            _ => {
                cold_path();
                return self.other_event(up, taker, Some(e), &mut inline);
            }
        }
        true
    }

    /// A request has arrived with all its body: runs it.
    #[inline(never)]
    fn inline_request<U: Upcall>(
        &self,
        up: U,
        mut taker: ParGuard<'_, AmConsumer>,
        bits: u64,
        data: u64,
        inline: &mut InlineBody,
    ) {
        let body = Body::of(inline);
        let am = self.request_outside_buffers(bits, data, body);
        let kit = self.take_kit(up, &mut taker);
        drop(taker);
        self.run_request(up, am, body, None, kit, None);
    }

    /// Handles an event of AM_EQ that the fast path does not handle; `None`: the next one. False
    /// if there is none.
    #[inline(never)]
    pub(super) fn other_event<U: Upcall>(
        &self,
        up: U,
        mut taker: ParGuard<'_, AmConsumer>,
        e: Option<MdEvent>,
        inline: &mut InlineBody,
    ) -> bool {
        let Some(e) = e.or_else(|| self.am.get(&self.portals, inline)) else { return false };
        match (Descriptor::unpack(e.user), e.kind) {
            (Descriptor::ReqHdr, MdEventKind::PutEnd) if e.inline => {
                self.inline_request(up, taker, e.match_bits, e.hdr_data, inline);
            }
            (Descriptor::ReqHdr, MdEventKind::PutEnd) => {
                let am = self.request_outside_buffers(e.match_bits, e.hdr_data, Body::of(&mut []));
                let body = RequestBody::Copy(Box::default());
                self.run_any(up, taker, ArrivedRequest { am, body, data: None });
            }
            (Descriptor::ReqRb(buffer), MdEventKind::PutEnd) => {
                let (_, _, start) = self.request_in_buffer(buffer, &e);
                self.arrived_in_part(up, taker, buffer, &e, start);
            }
            (Descriptor::ReqRb(buffer), MdEventKind::Unlink) => {
                // UNLINK follows the events of all messages in the buffer. It could be one of
                // them that a peer has changed.
                if self.reqrb.has_room(buffer) {
                    self.further_kind(&e);
                }
                self.reqrb.unlinked(&self.portals, buffer)
            }
            (Descriptor::RarAm, MdEventKind::PutEnd) => {
                if let Some(request) = self.request_data_arrived(&mut taker, e) {
                    self.run_any(up, taker, request);
                }
            }
            (Descriptor::CatchBasin, MdEventKind::PutEnd) => {
                self.stats.caught.fetch_add(1, Ordering::Relaxed);
                overflow(e.hdr_data)
            }
            _ => self.further_kind(&e),
        }
        true
    }

    /// Runs a request, wherever its body is, with the kit of the taker.
    #[inline(never)]
    fn run_any<U: Upcall>(
        &self,
        up: U,
        mut taker: ParGuard<'_, AmConsumer>,
        request: ArrivedRequest,
    ) {
        let kit = self.take_kit(up, &mut taker);
        drop(taker);
        let ArrivedRequest { am, mut body, data } = request;
        let (body, buffer) = match &mut body {
            RequestBody::Buffer(buffer, offset, len) => {
                (self.body_in_buffer(&am, *buffer, *offset, *len), Some(*buffer))
            }
            RequestBody::Copy(words) => (Body::of(words), None),
        };
        match am.medium_place() {
            Some(place) => self.run_large(up, &am, body, place, kit, buffer),
            None => self.run_request(up, am, body, data, kit, buffer),
        }
    }

    /// Runs the handler of a large Medium, unless pieces of its payload are to come.
    #[cold]
    #[inline(never)]
    fn run_large<U: Upcall>(
        &self,
        up: U,
        am: &AmHeader,
        body: Body<'_>,
        place: MediumPlace,
        kit: ReplyKit,
        buffer: Option<u32>,
    ) {
        let thread = self.thread(up);
        thread.in_handler.store(true, Ordering::Relaxed);
        let mut token = ReplyToken::new(am, kit);
        if let MediumPlace::Next(base, last) = place {
            self.reply_next(&mut token, base, last);
        } else if let Some(mut payload) = self.large_request(am, body, place) {
            let mut wrong = [0; MAX_ARGS];
            up.run_request(&mut token, self.large_message(am, body, &mut payload, &mut wrong));
            payload.handled();
        }
        self.end_request(up, thread, am, &mut token, buffer);
    }

    /// The request that has waited longest, if it may be started.
    #[cold]
    fn next_waiting(&self, taker: &mut AmConsumer) -> Option<ArrivedRequest> {
        let first = taker.waiting.front()?;
        if !self.reqrb.may_start(credits::used(first.am.credit)) {
            return None;
        }
        let first = taker.waiting.pop_front();
        self.waiting.store(taker.waiting.len() as u32, Ordering::Relaxed);
        first
    }

    /// The header of a request has arrived whose body is in a receive buffer, which it holds from
    /// now on. Returns both, and whether its handler may be started at once.
    #[inline(always)]
    fn request_in_buffer(&self, buffer: u32, e: &MdEvent) -> (AmHeader, Body<'_>, bool) {
        let am = self.request_arrived(e.match_bits, e.hdr_data);
        let used = credits::used(am.credit);
        let (body, start) = self.reqrb.arrived(buffer, e.offset, e.mlength, used);
        let Some(body) = body else { bad_message(am.source) };
        self.prefetch_payload(&am, body, false);
        (am, body, start)
    }

    /// The body of a request in a receive buffer, which it holds.
    fn body_in_buffer(
        &self,
        am: &AmHeader,
        buffer: u32,
        offset: Peer<usize>,
        len: Peer<usize>,
    ) -> Body<'_> {
        match self.reqrb.body(buffer, offset, len) {
            Some(body) => body,
            None => bad_message(am.source),
        }
    }

    /// The header of a request has arrived that is in no receive buffer.
    #[inline(always)]
    fn request_outside_buffers(&self, bits: u64, data: u64, body: Body<'_>) -> AmHeader {
        let am = self.request_arrived(bits, data);
        self.prefetch_payload(&am, body, true);
        am
    }

    /// The header of a request has arrived.
    #[inline(always)]
    fn request_arrived(&self, bits: u64, data: u64) -> AmHeader {
        let am = header(bits, data);
        if !am.request || am.source.0 >= self.config.nodes {
            malformed(bits, data);
        }
        self.credits.request_arrived(am.source, am.credit);
        am
    }

    /// A request has arrived in a buffer. It waits if its data may not be here yet, or if
    /// it may not be started (not `start`). Else it runs.
    #[inline(never)]
    fn arrived_in_part<U: Upcall>(
        &self,
        up: U,
        mut taker: ParGuard<'_, AmConsumer>,
        buffer: u32,
        e: &MdEvent,
        start: bool,
    ) {
        let am = header(e.match_bits, e.hdr_data);
        let used = credits::used(am.credit);
        let copied =
            || RequestBody::Copy(self.body_in_buffer(&am, buffer, e.offset, e.mlength).copied());
        let mut data = None;
        if am.form == AmForm::Unpacked && !am.copy {
            if am.extent != am.chunk.into() {
                malformed(e.match_bits, e.hdr_data);
            }
            let header = || ArrivedRequest { am, body: copied(), data: None };
            data = self.request_lids.header(am.source, am.extent as u32, header);
            if data.is_none() {
                if start {
                    self.reqrb.defer(used);
                }
                self.reqrb.release(&self.portals, buffer);
                return;
            }
        }
        if start {
            let body = RequestBody::Buffer(buffer, e.offset, e.mlength);
            return self.run_any(up, taker, ArrivedRequest { am, body, data });
        }
        let body = copied();
        self.reqrb.release(&self.portals, buffer);
        self.wait(&mut taker, ArrivedRequest { am, body, data });
    }

    /// The data of a request Long has arrived: the request, if its header is here and it may be
    /// started.
    fn request_data_arrived(&self, taker: &mut AmConsumer, e: MdEvent) -> Option<ArrivedRequest> {
        let (source, id) = match_bits::unpack_lid(e.hdr_data);
        let is_data = match_bits::kind(e.match_bits) == Some(MessageKind::AmData)
            && source.0 < self.config.nodes
            && id < REPLY_LID;
        let data = self.rar().at(e.offset, e.mlength).filter(|_| is_data);
        let Some(data) = data else { malformed(e.match_bits, e.hdr_data) };
        let mut request = self.request_lids.data(source, id, data)?;
        request.data = Some(data);
        if self.reqrb.may_start(credits::used(request.am.credit)) {
            return Some(request);
        }
        self.wait(taker, request);
        None
    }

    fn wait(&self, taker: &mut AmConsumer, request: ArrivedRequest) {
        self.stats.requests_waited.fetch_add(1, Ordering::Relaxed);
        taker.waiting.push_back(request);
        self.waiting.store(taker.waiting.len() as u32, Ordering::Relaxed);
    }

    /// Runs the handler of a request, releases the buffer that it is in, and sends the reply that
    /// the handler did not send.
    #[inline(always)]
    fn run_request<U: Upcall>(
        &self,
        up: U,
        am: AmHeader,
        body: Body<'_>,
        data: Option<Dst<'static>>,
        kit: ReplyKit,
        buffer: Option<u32>,
    ) {
        let mut token = ReplyToken::new(&am, kit);
        let thread = self.thread(up);
        thread.in_handler.store(true, Ordering::Relaxed);
        let mut wrong = [0; MAX_ARGS];
        let data = if am.form == AmForm::Outbox {
            cold_path();
            self.fetch_payload(thread, &am)
        } else {
            data
        };
        up.run_request(&mut token, self.message(&am, body, data, &mut wrong));
        self.end_request(up, thread, &am, &mut token, buffer);
    }

    /// What follows the handler of a request: releases the buffer that it is in, and sends the
    /// reply that the handler did not send.
    #[inline(always)]
    fn end_request<U: Upcall>(
        &self,
        up: U,
        thread: &ClientThread,
        am: &AmHeader,
        token: &mut ReplyToken,
        buffer: Option<u32>,
    ) {
        if let Some(buffer) = buffer {
            self.reqrb.release(&self.portals, buffer);
        }
        if !am.may_wait {
            self.implicit.send_to(am.source, self.kept_sender());
        }
        if !(token.replied || am.may_wait && self.keep_reply(token)) {
            self.reply(up, token, &Outgoing::short(0, &[]));
        }
        thread.in_handler.store(false, Ordering::Relaxed);
        self.put_back(&token.kit);
        self.run_deferred(up, thread);
    }

    /// Batches the reply that a handler did not send. False if another thread uses the batch.
    #[inline]
    fn keep_reply(&self, token: &mut ReplyToken) -> bool {
        self.implicit.keep(token, self.kept_sender())
    }

    /// The payload of a request in its sender's outbox, for the handler that this thread is about
    /// to run; `None` if it cannot be there.
    #[inline(always)]
    fn fetch_payload(&self, thread: &ClientThread, am: &AmHeader) -> Option<Dst<'static>> {
        let payload = self.in_outbox(am)?;
        if !am.copy && !self.config.par() {
            return Some(payload);
        }
        let copy = thread.kept_payload(false, payload.len());
        copy.copy_from(payload.into());
        Some(copy)
    }

    /// The kit, which is complete, for a handler. With one thread no other handler can need one
    /// before this one has returned; then the taker keeps its copy.
    #[inline(always)]
    fn take_kit<U: Upcall>(&self, up: U, taker: &mut AmConsumer) -> ReplyKit {
        if !self.config.par() {
            return taker.kit;
        }
        cold_path();
        // The taker is still locked: the thread that has it next finds the request in a handler
        // (`lost`).
        self.thread(up).in_handler.store(true, Ordering::Relaxed);
        core::mem::take(&mut taker.kit)
    }

    /// Keeps what is left of a kit for the next request, unless another thread has begun to fill
    /// one.
    #[inline(always)]
    fn put_back(&self, kit: &ReplyKit) {
        let par = self.config.par();
        if !par && kit.is_complete() {
            return;
        }
        cold_path();
        if let Some(mut taker) = self.am.taker.try_lock()
            && (!par || taker.kit.is_empty())
        {
            taker.kit = *kit;
            return;
        }
        self.give_away(kit);
    }

    #[cold]
    #[inline(never)]
    fn give_away(&self, kit: &ReplyKit) {
        if kit.tickets != 0 {
            self.tickets.give(kit.tickets);
        }
        if let Some(slot) = kit.tmpmd {
            self.tmpmd.give(slot);
        }
        if let Some(chunk) = kit.chunk {
            self.rplsb.give(chunk);
        }
    }
}

/// A message that reached the catch basin: its body is lost.
fn overflow(hdr_data: u64) -> ! {
    let source = AmHeader::source(hdr_data);
    report::fatal(
        format_args!(
            "flow-control failure: an active message request of process {source} found no room in the request receive buffers"
        ),
        format_args!("Leave GASNET_PORTAL_FLOW_CONTROL on, or raise GASNET_PORTAL_AMRECV_SPACE."),
    )
}
