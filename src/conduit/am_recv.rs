//! Requests that arrive: from AM_EQ to their handlers, and the resources that a handler's reply needs.
//!
//! AM_EQ is only polled with a [`ReplyKit`] in hand: what any reply may need. The kit of the next request is held by
//! whoever takes events off the queue; a handler takes it over and what its reply leaves goes back. Handlers run with
//! no lock held and never inside another handler of the same thread.

use super::am_send::{ADDRESS, args_bytes};
use super::credits;
use super::match_bits::{AmForm, AmHeader};
use super::portals::{InlineBody, MdEvent, MdEventKind, NextEvent, Portals};
use super::prefetch::prefetch_lines;
use super::sync::ParGuard;
use super::user::Descriptor;
use super::{AmMessage, Conduit, MAX_ARGS, Outgoing, ReplyToken, Upcall};
use crate::{fault, report};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use core::sync::atomic::Ordering;
use sys::hint::cold_path;

/// What a reply may need: two send tickets and a temporary descriptor (a Long outside the segment, in two messages)
/// and a RplSB chunk.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ReplyKit {
    pub(super) tickets: u32,
    pub(super) tmpmd: Option<u32>,
    pub(super) chunk: Option<u32>,
}

impl ReplyKit {
    #[inline(always)]
    fn is_complete(&self) -> bool {
        self.tickets == 2 && self.tmpmd.is_some() && self.chunk.is_some()
    }

    #[inline(always)]
    fn is_empty(&self) -> bool {
        self.tickets == 0 && self.tmpmd.is_none() && self.chunk.is_none()
    }
}

/// A message in memory of ours.
#[derive(Clone, Copy)]
pub(super) struct Body {
    /// First byte, 8-byte aligned.
    pub(super) at: *mut u8,
    /// Bytes.
    pub(super) len: usize,
}

impl Body {
    /// That of a message without bytes.
    pub(super) const NONE: Body = Body { at: core::ptr::dangling_mut::<u64>().cast(), len: 0 };

    /// Of these words.
    #[inline(always)]
    fn of(words: &mut [u64]) -> Body {
        Body { at: words.as_mut_ptr().cast(), len: size_of_val(words) }
    }
}

/// Where a request is until its handler has run.
enum RequestBody {
    /// In a request receive buffer, which it holds.
    Buffer(u32, Body),
    /// Copied out, because it has to wait; or there is nothing of it.
    Copy(Box<[u64]>),
}

/// A request that has arrived.
pub(super) struct ArrivedRequest {
    am: AmHeader,
    place: RequestBody,
    /// The data of an unpacked Long: where, and how many bytes.
    data: Option<(*mut u8, usize)>,
}

// SAFETY: the pointers are addresses in our segment and in a receive buffer that the request holds.
unsafe impl Send for ArrivedRequest {}

/// What only the taker of AM_EQ touches.
#[derive(Default)]
pub(super) struct AmConsumer {
    /// Empty while the handler of the last request has it, where others may want one meanwhile.
    kit: ReplyKit,
    /// Requests whose handlers must wait until the receive buffers have room for what their credits allow.
    waiting: VecDeque<ArrivedRequest>,
}

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
    pub(super) fn am_may_have(&self) -> bool {
        !self.am.is_quiet(&self.portals) || self.waiting.load(Ordering::Relaxed) != 0
    }

    /// Completes a kit; what is missing comes back through events of SAFE_EQ. Tickets are taken last, see `tickets`.
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

    /// Does what one look at AM_EQ gives to do; false for nothing, or nothing that may be done now.
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
        let e = match self.portals.eq_next(self.am.eq, &mut inline) {
            NextEvent::Arrival(e) => e,
            NextEvent::Nothing => return false,
            NextEvent::Other => {
                cold_path();
                return self.seldom(up, taker, None, &mut inline);
            }
        };
        match Descriptor::unpack(e.user) {
            Descriptor::ReqHdr if e.inline => {
                self.inline_request(up, taker, e.match_bits, e.hdr_data, &mut inline)
            }
            Descriptor::ReqHdr => {
                let am = self.request_without_room(e.match_bits, e.hdr_data, 0);
                let kit = self.take_kit(&mut taker);
                drop(taker);
                // What has no bytes has no arguments: told once more, to the compiler, which makes code of its own for this.
                // SAFETY: the message has no bytes.
                unsafe {
                    self.run_request(
                        up,
                        AmHeader { numargs: 0, ..am },
                        Body::NONE,
                        None,
                        kit,
                        None,
                    )
                };
            }
            Descriptor::ReqRb(buffer) => {
                let (am, body) = self.request_in_buffer(&e);
                let start = self.reqrb.saw(buffer, e.mlength, credits::used(am.credit));
                if !start || am.form == AmForm::Unpacked {
                    cold_path();
                    self.arrived_in_part(up, taker, e.match_bits, e.hdr_data, buffer, body, start);
                    return true;
                }
                let kit = self.take_kit(&mut taker);
                drop(taker);
                // SAFETY: the message is in the buffer, which it holds until it is released.
                unsafe { self.run_request(up, am, body, None, kit, Some(buffer)) };
            }
            _ => {
                cold_path();
                return self.seldom(up, taker, Some(e), &mut inline);
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
        let am = self.request_without_room(bits, data, body.len);
        let kit = self.take_kit(&mut taker);
        drop(taker);
        // SAFETY: the message is in the array, which is ours.
        unsafe { self.run_request(up, am, body, None, kit, None) };
    }

    /// An event of AM_EQ that probably tells of no request that may be started; `None`: the next one. False if there is none.
    #[inline(never)]
    fn seldom<U: Upcall>(
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
                let am = self.request_without_room(e.match_bits, e.hdr_data, 0);
                self.run_any(
                    up,
                    taker,
                    ArrivedRequest { am, place: RequestBody::Copy(Box::default()), data: None },
                );
            }
            (Descriptor::ReqRb(buffer), MdEventKind::PutEnd) => {
                let (am, body) = self.request_in_buffer(&e);
                let start = self.reqrb.saw(buffer, e.mlength, credits::used(am.credit));
                self.arrived_in_part(up, taker, e.match_bits, e.hdr_data, buffer, body, start);
            }
            (Descriptor::ReqRb(buffer), MdEventKind::Unlink) => {
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
            _ => {}
        }
        true
    }

    /// Runs a request, wherever it is, with what the taker has in hand.
    #[inline(never)]
    fn run_any<U: Upcall>(
        &self,
        up: U,
        mut taker: ParGuard<'_, AmConsumer>,
        request: ArrivedRequest,
    ) {
        let kit = self.take_kit(&mut taker);
        drop(taker);
        let ArrivedRequest { am, mut place, data } = request;
        let (body, buffer) = match &mut place {
            RequestBody::Buffer(buffer, body) => (*body, Some(*buffer)),
            RequestBody::Copy(words) => (Body::of(words), None),
        };
        // SAFETY: the message is in a copy of its own, or in the buffer that it holds until it is released.
        unsafe { self.run_request(up, am, body, data, kit, buffer) };
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

    /// The header of a request has arrived whose body is in a receive buffer: what it says, and where that is.
    #[inline(always)]
    fn request_in_buffer(&self, e: &MdEvent) -> (AmHeader, Body) {
        let body = Body { at: e.start.wrapping_add(e.offset), len: e.mlength };
        let am = self.request_arrived(e.match_bits, e.hdr_data, body.len);
        self.request_prefetch.expect_at(body.at.wrapping_add(body.len));
        self.request_prefetch.arrived(&am, body);
        self.prefetch_payload(&am, body);
        (am, body)
    }

    /// The header of a request has arrived that is in no receive buffer: what it says.
    #[inline(always)]
    fn request_without_room(&self, bits: u64, data: u64, len: usize) -> AmHeader {
        let am = self.request_arrived(bits, data, len);
        self.request_prefetch.arrived_empty();
        self.prefetch_payload(&am, Body::NONE);
        am
    }

    /// The header of a request has arrived, with a body of so many bytes: what it says.
    #[inline(always)]
    fn request_arrived(&self, bits: u64, data: u64, len: usize) -> AmHeader {
        let am = header(bits, data);
        if !am.request || am.source >= self.config.nodes || args_bytes(am.numargs.into()) > len {
            malformed(bits, data);
        }
        self.credits.request_arrived(am.source, am.credit);
        am
    }

    /// A message has come: asks for the lines of its payload, if a handler will read that where it is.
    #[inline(always)]
    pub(super) fn prefetch_payload(&self, am: &AmHeader, body: Body) {
        // A Short has none: tested first, so that it goes by no table of jumps.
        if am.form == AmForm::Short {
            return;
        }
        match am.form {
            AmForm::Medium => prefetch_lines(body.at, body.len),
            AmForm::Outbox => {
                prefetch_lines(self.in_outbox(am).unwrap_or(body.at), am.length as usize)
            }
            AmForm::Placed => {
                prefetch_lines(self.rar().near(am.place as usize), am.length as usize)
            }
            _ => {}
        }
    }

    /// A request whose data may not be here yet, or that may not be started (not `start`): it waits, or is run.
    #[inline(never)]
    #[allow(clippy::too_many_arguments)]
    fn arrived_in_part<U: Upcall>(
        &self,
        up: U,
        mut taker: ParGuard<'_, AmConsumer>,
        bits: u64,
        data: u64,
        buffer: u32,
        body: Body,
        start: bool,
    ) {
        let am = header(bits, data);
        let used = credits::used(am.credit);
        let mut request =
            ArrivedRequest { am, place: RequestBody::Buffer(buffer, body), data: None };
        if am.form == AmForm::Unpacked {
            // SAFETY: the message is in the buffer, which it holds.
            let header = || ArrivedRequest {
                am,
                place: RequestBody::Copy(unsafe { copy(body) }),
                data: None,
            };
            request.data = self.request_lids.header(am.source, am.length, header);
            if request.data.is_none() {
                if start {
                    self.reqrb.put_off(used);
                }
                self.reqrb.release(&self.portals, buffer);
                return;
            }
        }
        if start {
            return self.run_any(up, taker, request);
        }
        // SAFETY: the message is in the buffer, which it holds.
        request.place = RequestBody::Copy(unsafe { copy(body) });
        self.reqrb.release(&self.portals, buffer);
        self.wait(&mut taker, request);
    }

    /// The data of a request Long has arrived: the request, if its header is here and it may be started.
    fn request_data_arrived(&self, taker: &mut AmConsumer, e: MdEvent) -> Option<ArrivedRequest> {
        let (source, id) = ((e.hdr_data >> 32) as u32, e.hdr_data as u32);
        let at = e.start.wrapping_add(e.offset);
        let mut request = self.request_lids.data(source, id, at, e.mlength)?;
        request.data = Some((at, e.mlength));
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

    /// Runs the handler of a request, lets go of the buffer that it is in, and sends the reply that it did not send.
    ///
    /// # Safety
    /// The message is in `body`, which stays ours until the handler returns.
    #[inline(always)]
    unsafe fn run_request<U: Upcall>(
        &self,
        up: U,
        am: AmHeader,
        body: Body,
        data: Option<(*mut u8, usize)>,
        kit: ReplyKit,
        buffer: Option<u32>,
    ) {
        let mut token = ReplyToken {
            source: am.source,
            chunk: am.chunk,
            credit: am.credit,
            replied: false,
            kit,
        };
        let thread = &self.threads[up.thread()];
        thread.in_handler.store(true, Ordering::Relaxed);
        let mut wrong = [0; MAX_ARGS];
        let data = if am.form == AmForm::Outbox {
            cold_path();
            self.fetch_payload(thread, &am)
        } else {
            data
        };
        // SAFETY: as the caller vouches.
        let message = unsafe { self.message(&am, body, data, &mut wrong) };
        up.run_request(&mut token, message);
        if let Some(buffer) = buffer {
            self.reqrb.release(&self.portals, buffer);
        }
        if !am.may_wait {
            self.send_replies_to(am.source);
        }
        if !(token.replied || am.may_wait && self.keep_reply(&mut token)) {
            // SAFETY: a message without payload.
            unsafe { self.reply(up, &mut token, &NOTHING) };
        }
        thread.in_handler.store(false, Ordering::Relaxed);
        self.put_back(&token.kit);
        self.run_put_off(up);
    }

    /// The kit, which is complete, for a handler. With one thread nobody else can want one before that has returned: then the taker
    /// keeps what it says.
    #[inline(always)]
    fn take_kit(&self, taker: &mut AmConsumer) -> ReplyKit {
        if !self.config.par() {
            return taker.kit;
        }
        cold_path();
        core::mem::take(&mut taker.kit)
    }

    /// Keeps what is left of a kit for the next request, unless another thread has begun to fill one.
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

    /// Unpacks a message for its handler; `data` is a payload that is elsewhere. The payload of a Long that came with it goes to its
    /// destination. `wrong` is where a planted fault has room.
    ///
    /// # Safety
    /// The message is in `body`, which stays ours as long as what this returns is used.
    #[inline(always)]
    pub(super) unsafe fn message<'a>(
        &self,
        am: &AmHeader,
        body: Body,
        data: Option<(*mut u8, usize)>,
        wrong: &'a mut [i32; MAX_ARGS],
    ) -> AmMessage<'a> {
        let numargs = usize::from(am.numargs);
        let at = args_bytes(numargs);
        // SAFETY: arguments come first in the body, which is aligned; its length has been checked to hold them by the
        // receiver of requests, and a reply's chunk has room for the most.
        let mut args = unsafe { core::slice::from_raw_parts(body.at.cast::<i32>(), numargs) };
        // As above.
        let (payload, nbytes) = match am.form {
            AmForm::Short => (core::ptr::null_mut(), 0),
            // SAFETY: as the caller vouches.
            _ => unsafe { self.payload(am, body, at, data) },
        };
        if fault::on("flip_arg") && numargs != 0 {
            wrong[..numargs].copy_from_slice(args);
            wrong[numargs / 2] ^= 1;
            args = &wrong[..numargs];
        }
        if fault::on("flip_am") && nbytes != 0 {
            // SAFETY: the payload is in our buffer, in our segment, or in an area of its sender's that is the handler's now.
            unsafe { *payload.add(nbytes / 2) ^= 1 };
        }
        AmMessage {
            source: am.source,
            category: am.form.category(),
            handler: am.handler,
            args,
            payload,
            nbytes,
        }
    }

    /// Where the payload of a message is, and how many bytes (not asked for a Short); `at` is how many of the body come before it.
    ///
    /// # Safety
    /// As [`Conduit::message`].
    #[inline(always)]
    unsafe fn payload(
        &self,
        am: &AmHeader,
        body: Body,
        at: usize,
        data: Option<(*mut u8, usize)>,
    ) -> (*mut u8, usize) {
        let n = am.length as usize;
        match am.form {
            AmForm::Medium if at + n <= body.len => (body.at.wrapping_add(at), n),
            AmForm::Landing if at + n <= body.len => {
                let Some(dest) = self.rar().at(am.place as usize, n) else {
                    bad_message(am.source)
                };
                // SAFETY: the source lies in the body, and the destination in our segment, where no body lies: those are on a stack, in the
                // heap or in the library's memory.
                unsafe { core::ptr::copy_nonoverlapping(body.at.add(at), dest, n) };
                (dest, n)
            }
            AmForm::Packed if at + n.next_multiple_of(8) + ADDRESS <= body.len => {
                // SAFETY: the address follows the payload, 8-byte aligned, inside the body.
                let dest = unsafe { body.at.add(at + n.next_multiple_of(8)).cast::<u64>().read() }
                    as *mut u8;
                if n != 0 {
                    if self.rar().local(dest, n).is_none() {
                        bad_message(am.source);
                    }
                    // SAFETY: the source lies in the body and the destination in our segment, which the sender was
                    // told to write to.
                    unsafe { core::ptr::copy(body.at.add(at), dest, n) };
                }
                (dest, n)
            }
            AmForm::Placed => match self.rar().at(am.place as usize, n) {
                Some(dest) => (dest, n),
                None => bad_message(am.source),
            },
            AmForm::Unpacked | AmForm::Outbox => data.unwrap_or_else(|| bad_message(am.source)),
            AmForm::Short | AmForm::Medium | AmForm::Packed | AmForm::Landing => {
                bad_message(am.source)
            }
        }
    }
}

/// The reply of a handler that sent none.
const NOTHING: Outgoing<'static> = Outgoing { source_stays: true, ..Outgoing::short(0, &[]) };

/// Copies a message out of its buffer.
///
/// # Safety
/// The body is readable.
#[cold]
unsafe fn copy(body: Body) -> Box<[u64]> {
    let mut words = alloc::vec![0u64; body.len.div_ceil(8)];
    // SAFETY: the vector has room for the body, which is readable and elsewhere.
    unsafe { core::ptr::copy_nonoverlapping(body.at, words.as_mut_ptr().cast(), body.len) };
    words.into_boxed_slice()
}

/// A message that reached the catch basin: its body is lost.
#[cold]
fn overflow(hdr_data: u64) -> ! {
    let source = AmHeader::source(hdr_data);
    report::fatal(
        format_args!(
            "flow-control failure: an active message request of process {source} found no room in the request receive buffers"
        ),
        format_args!("Leave GASNET_PORTAL_FLOW_CONTROL on, or raise GASNET_PORTAL_AMRECV_SPACE."),
    )
}

/// What the header of a message says.
#[inline(always)]
pub(super) fn header(bits: u64, data: u64) -> AmHeader {
    match AmHeader::unpack(bits, data) {
        Some(am) => am,
        None => malformed(bits, data),
    }
}

/// A message that this library does not send.
#[cold]
pub(super) fn malformed(match_bits: u64, hdr_data: u64) -> ! {
    report::fatal(
        format_args!(
            "an active message with match bits {match_bits:#018x} and data {hdr_data:#018x} makes no sense"
        ),
        format_args!("Make sure that all processes run the same version of this library."),
    )
}

#[cold]
fn bad_message(source: u32) -> ! {
    report::fatal(
        format_args!(
            "an active message of process {source} is longer than its buffer, or aims outside our segment or its own memory"
        ),
        format_args!("Make sure that all processes run the same version of this library."),
    )
}
