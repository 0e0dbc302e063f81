//! Replies that arrive: in the chunk that their request left from, which they free.
//!
//! Called by `safe` for events of ReqSB and RARSRC, and by `request_recv` after a handler. A reply
//! brings the credits back that its request used, and runs its handler. Invariant: handlers never
//! nest.
//!
//! A thread that is inside a handler and polls SAFE_EQ (a reply Long whose data must leave) defers
//! replies until its handler has returned. Nothing that a handler waits for depends on them. The
//! tickets, the chunk and the TMPMD of its reply were reserved before it started. The departure of
//! data is an event of its own. So this cannot deadlock, and a handler that holds a lock never
//! meets, on its own stack, another one that wants it.

use super::am_recv::{header, malformed};
use super::arrived::ArrivedReply;
use super::client_thread::ClientThread;
use super::hold::Hold;
use super::match_bits::{self, AmForm, AmHeader, MediumPlace, REPLY_LID};
use super::memory::{Body, bytes_of};
use super::portals::{InlineBody, MdEvent, Portals};
use super::reqsb::chunk_at;
use super::{Conduit, MAX_ARGS, Upcall};
use crate::client_memory::Dst;
use crate::rank::JobRank;
use crate::report;
use core::mem;
use core::sync::atomic::Ordering;
use sys::hint::cold_path;
use sys::peer::Peer;

impl<P: Portals> Conduit<P> {
    /// The header of a reply has arrived, perhaps with its body.
    #[inline(always)]
    pub(super) fn reply_arrived<U: Upcall>(&self, up: U, e: &MdEvent, inline: &InlineBody) {
        let (bits, data) = (e.match_bits, e.hdr_data);
        if e.inline {
            return self.inline_reply_arrived(up, bits, data, inline);
        }
        let am = header(bits, data);
        // Both branches do the same; in the first the compiler knows that the reply has no body:
        // 0.93 of row `short_take`.
        if am.form == AmForm::Short && am.numargs == 0 {
            let am = AmHeader { form: AmForm::Short, numargs: 0, ..am };
            self.reply_is_here(up, (bits, data), am, chunk_at(e.offset), e.mlength, None);
        } else {
            self.reply_is_here(up, (bits, data), am, chunk_at(e.offset), e.mlength, None);
        }
    }

    /// The header of a reply has arrived, and its body with it.
    #[inline(never)]
    fn inline_reply_arrived<U: Upcall>(&self, up: U, bits: u64, data: u64, inline: &InlineBody) {
        let am = header(bits, data);
        let len = Peer::new(size_of::<InlineBody>());
        let chunk = Some(Peer::new(am.chunk as usize));
        self.reply_is_here(up, (bits, data), am, chunk, len, Some(inline));
    }

    /// A reply with this header has arrived to this chunk. Its body is there; an `inline` one is
    /// written there.
    #[inline(always)]
    fn reply_is_here<U: Upcall>(
        &self,
        up: U,
        (bits, data): (u64, u64),
        am: AmHeader,
        chunk: Option<Peer<usize>>,
        len: Peer<usize>,
        inline: Option<&InlineBody>,
    ) {
        if am.request || am.source.0 >= self.config.nodes {
            malformed(bits, data);
        }
        let held = chunk.and_then(|chunk| self.reqsb.end_hold(chunk, Hold::REQUEST));
        let Some(chunk) = held else { malformed(bits, data) };
        if let Some(inline) = inline {
            let at = self.reqsb.chunks.part(chunk, size_of_val(inline));
            at.copy_from(bytes_of(inline));
        }
        // A Short has no payload.
        if am.form != AmForm::Short {
            // SAFETY: this thread holds the chunk until `finish_reply` gives it back.
            let body = unsafe { self.reqsb.chunks.body(chunk, len) };
            self.prefetch_payload(&am, body, inline.is_some());
        }
        self.credits.reply_arrived(am.source, am.credit);
        self.outbox.reply_arrived(am.source, chunk);
        let thread = self.thread(up);
        if am.form == AmForm::Unpacked || thread.in_handler.load(Ordering::Relaxed) {
            cold_path();
            return self.reply_in_part(up, bits, data, chunk, len);
        }
        self.finish_reply(up, thread, &am, chunk, len, None);
    }

    /// The header of a reply Long in two messages has arrived, or a large Medium, or any reply
    /// inside a handler.
    #[cold]
    #[inline(never)]
    fn reply_in_part<U: Upcall>(&self, up: U, bits: u64, data: u64, chunk: u32, len: Peer<usize>) {
        self.reqsb.keep(chunk);
        let reply = ArrivedReply { am: header(bits, data), chunk, len, data: None };
        let mut data = None;
        let place = reply.am.medium_place();
        if place.is_some_and(|place| !self.large_reply(&reply, place)) {
            return;
        }
        if reply.am.form == AmForm::Unpacked && place.is_none() {
            if reply.am.extent != u64::from(chunk | REPLY_LID) {
                report::damaged(format_args!(
                    "a reply of rank {} to request {chunk} has its data under {:#x}",
                    reply.am.source, reply.am.extent
                ));
            }
            data = self.reply_lids.header(reply.am.source, reply.am.extent as u32, || reply);
            if data.is_none() {
                return;
            }
        }
        self.run_reply(up, ArrivedReply { data, ..reply });
    }

    /// The data of a reply Long has arrived.
    pub(super) fn reply_data_arrived<U: Upcall>(&self, up: U, e: MdEvent) {
        let (source, id) = match_bits::unpack_lid(e.hdr_data);
        // The chunk that it answers is in use until both halves have met. There are less than
        // REPLY_LID.
        let awaited = source.0 < self.config.nodes
            && self.reqsb.is_held(Peer::new((id ^ REPLY_LID) as usize));
        let data = self.rar().at(e.offset, e.mlength).filter(|_| awaited);
        let Some(data) = data else { malformed(e.match_bits, e.hdr_data) };
        if let Some(reply) = self.reply_lids.data(source, id, data) {
            self.run_reply(up, ArrivedReply { data: Some(data), ..reply });
        }
    }

    /// Runs the handler of a complete reply, or defers it if this thread is inside one.
    #[inline(never)]
    fn run_reply<U: Upcall>(&self, up: U, reply: ArrivedReply) {
        let thread = self.thread(up);
        if thread.in_handler.load(Ordering::Relaxed) {
            self.defer(thread, reply);
        } else if let Some(place) = reply.am.medium_place() {
            self.finish_large(up, thread, &reply, place);
        } else {
            self.finish_reply(up, thread, &reply.am, reply.chunk, reply.len, reply.data);
        }
    }

    /// Runs the handler of a complete reply of `len` bytes and gives its chunk back. This thread,
    /// `thread`, is not inside a handler.
    #[inline(always)]
    fn finish_reply<U: Upcall>(
        &self,
        up: U,
        thread: &ClientThread,
        am: &AmHeader,
        chunk: u32,
        len: Peer<usize>,
        data: Option<Dst<'static>>,
    ) {
        // SAFETY: this thread holds the chunk until it gives it back below.
        let body = || unsafe { self.reqsb.chunks.body(chunk, len) };
        // A reply without a handler only gives back what its request holds.
        if am.handler != 0 {
            thread.in_handler.store(true, Ordering::Relaxed);
            let mut wrong = [0; MAX_ARGS];
            up.run_reply(self.message(am, body(), data, &mut wrong));
            thread.in_handler.store(false, Ordering::Relaxed);
        } else if am.numargs != 0 {
            cold_path();
            self.reqsb.keep(chunk);
            self.give_back_others(am.source, am.numargs, body());
        }
        self.reqsb.give(chunk);
    }

    /// Runs the handler of a large reply that is complete, and gives its chunk back.
    fn finish_large<U: Upcall>(
        &self,
        up: U,
        thread: &ClientThread,
        reply: &ArrivedReply,
        place: MediumPlace,
    ) {
        let mut payload = self.take_large_reply(reply, place);
        // SAFETY: this thread holds the chunk until it gives it back below.
        let body = unsafe { self.reqsb.chunks.body(reply.chunk, reply.len) };
        thread.in_handler.store(true, Ordering::Relaxed);
        let mut wrong = [0; MAX_ARGS];
        up.run_reply(self.large_message(&reply.am, body, &mut payload, &mut wrong));
        thread.in_handler.store(false, Ordering::Relaxed);
        payload.handled();
        self.reqsb.give(reply.chunk);
    }

    /// Implicit replies have arrived together: gives back the chunks that the first of them
    /// names. The caller has that of the first one.
    #[cold]
    #[inline(never)]
    fn give_back_others(&self, source: JobRank, numargs: u8, body: Body<'_>) {
        let Some(chunks) = body.args(numargs.into()) else {
            report::damaged(format_args!(
                "a reply of rank {source} is shorter than the {numargs} requests that it answers"
            ))
        };
        for &chunk in chunks {
            let number = Peer::new(chunk as u32 as usize);
            let Some(chunk) = self.reqsb.end_hold(number, Hold::REQUEST) else {
                report::damaged(format_args!(
                    "a reply of rank {source} answers request {chunk}, which is not open"
                ))
            };
            self.outbox.handled(chunk);
            self.reqsb.give(chunk);
        }
    }
    #[cold]
    #[inline(never)]
    fn defer(&self, thread: &ClientThread, reply: ArrivedReply) {
        thread.deferred.lock().push(reply);
        thread.has_deferred.store(true, Ordering::Relaxed);
        self.stats.replies_deferred.fetch_add(1, Ordering::Relaxed);
    }

    /// Runs the handlers of the deferred replies; this thread is not inside a handler.
    #[inline(always)]
    pub(super) fn run_deferred<U: Upcall>(&self, up: U, thread: &ClientThread) {
        if thread.has_deferred.load(Ordering::Relaxed) {
            self.run_all_deferred(up, thread);
        }
    }

    #[cold]
    #[inline(never)]
    fn run_all_deferred<U: Upcall>(&self, up: U, thread: &ClientThread) {
        thread.has_deferred.store(false, Ordering::Relaxed);
        let replies = mem::take(&mut *thread.deferred.lock());
        replies.into_iter().for_each(|reply| self.run_reply(up, reply));
    }
}
