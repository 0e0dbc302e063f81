//! Replies that arrive: in the chunk that their request left from, which they free.
//!
//! A reply comes up on SAFE_EQ, brings the credits back that its request used, and runs its handler. Handlers never
//! nest: a thread that is inside a handler and polls SAFE_EQ (a reply Long whose data must leave) puts replies off
//! until its handler has returned. Nothing that a handler waits for depends on them: its reply's tickets, chunk and
//! TMPMD were at hand before it was started, and the departure of data is an event of its own. So it cannot deadlock,
//! and a handler that holds a lock never meets, on its own stack, another one that wants it.

use super::am_recv::{Body, header, malformed};
use super::am_send::args_bytes;
use super::match_bits::{AmForm, AmHeader};
use super::portals::{InlineBody, MdEvent, Portals};
use super::wait::ClientThread;
use super::{CHUNK, Conduit, MAX_ARGS, Upcall};
use core::sync::atomic::Ordering;
use sys::hint::cold_path;

/// A reply that has arrived.
#[derive(Clone, Copy)]
pub(super) struct ArrivedReply {
    am: AmHeader,
    /// The chunk that it is in.
    chunk: u32,
    /// Bytes of it.
    len: usize,
    /// The data of an unpacked Long: where, and how many bytes.
    data: Option<(*mut u8, usize)>,
}

// SAFETY: the pointer is an address in our segment; whoever runs the handler passes it on.
unsafe impl Send for ArrivedReply {}

/// No reply has been put off.
pub(super) const NONE: u32 = u32::MAX;

impl<P: Portals> Conduit<P> {
    /// The header of a reply has arrived, perhaps with its body.
    #[inline(always)]
    pub(super) fn reply_arrived<U: Upcall>(&self, up: U, e: &MdEvent, inline: &InlineBody) {
        let (bits, data) = (e.match_bits, e.hdr_data);
        if e.inline {
            return self.inline_reply_arrived(up, bits, data, inline);
        }
        let am = header(bits, data);
        // Told once more, to the compiler, which makes code of its own for what is all header.
        if am.form == AmForm::Short && am.numargs == 0 {
            let am = AmHeader { form: AmForm::Short, numargs: 0, ..am };
            self.reply_has_come(up, bits, data, am, e.offset, e.mlength, None);
        } else {
            self.reply_has_come(up, bits, data, am, e.offset, e.mlength, None);
        }
    }

    /// The header of a reply has arrived, and its body with it.
    #[inline(never)]
    fn inline_reply_arrived<U: Upcall>(&self, up: U, bits: u64, data: u64, inline: &InlineBody) {
        let am = header(bits, data);
        if args_bytes(am.numargs.into()) > size_of::<InlineBody>() {
            malformed(bits, data);
        }
        self.reply_has_come(
            up,
            bits,
            data,
            am,
            am.chunk as usize,
            size_of::<InlineBody>(),
            Some(inline),
        );
    }

    /// A reply with this header has arrived to the chunk at this offset, where its body is, or what is `inline` of it is written to.
    #[inline(always)]
    #[allow(clippy::too_many_arguments)]
    fn reply_has_come<U: Upcall>(
        &self,
        up: U,
        bits: u64,
        data: u64,
        am: AmHeader,
        offset: usize,
        len: usize,
        inline: Option<&InlineBody>,
    ) {
        let Some(chunk) = self.reqsb.chunk_at(offset) else { malformed(bits, data) };
        if am.source >= self.config.nodes || am.request {
            malformed(bits, data);
        }
        let body = Body { at: self.reqsb.at(chunk), len };
        if let Some(inline) = inline {
            // SAFETY: the chunk, aligned and larger, is ours from now on.
            unsafe { body.at.cast::<InlineBody>().write(*inline) };
            self.reply_prefetch.arrived_empty();
            self.prefetch_payload(&am, Body::NONE);
        } else {
            self.reply_prefetch.arrived(&am, body);
            self.prefetch_payload(&am, body);
        }
        self.credits.reply_arrived(am.source, am.credit);
        self.outbox.reply_arrived(am.source, chunk);
        let thread = &self.threads[up.thread()];
        if am.form == AmForm::Unpacked || thread.in_handler.load(Ordering::Relaxed) {
            cold_path();
            return self.reply_in_part(up, bits, data, chunk, len);
        }
        self.take_reply(up, thread, &am, chunk, len, None);
    }

    /// The header of a reply Long in two messages has arrived, or one of any reply inside a handler.
    #[cold]
    #[inline(never)]
    fn reply_in_part<U: Upcall>(&self, up: U, bits: u64, data: u64, chunk: u32, len: usize) {
        let reply = ArrivedReply { am: header(bits, data), chunk, len, data: None };
        let mut data = None;
        if reply.am.form == AmForm::Unpacked {
            data = self.reply_lids.header(reply.am.source, reply.am.length, || reply);
            if data.is_none() {
                return;
            }
        }
        self.run_reply(up, ArrivedReply { data, ..reply });
    }

    /// The data of a reply Long has arrived.
    pub(super) fn reply_data_arrived<U: Upcall>(&self, up: U, e: MdEvent) {
        let (source, id) = ((e.hdr_data >> 32) as u32, e.hdr_data as u32);
        let at = e.start.wrapping_add(e.offset);
        if let Some(reply) = self.reply_lids.data(source, id, at, e.mlength) {
            self.run_reply(up, ArrivedReply { data: Some((at, e.mlength)), ..reply });
        }
    }

    /// Runs the handler of a complete reply, or puts it off if this thread is inside one.
    #[inline(never)]
    fn run_reply<U: Upcall>(&self, up: U, reply: ArrivedReply) {
        let thread = &self.threads[up.thread()];
        if thread.in_handler.load(Ordering::Relaxed) {
            self.put_off(thread, reply);
        } else {
            self.take_reply(up, thread, &reply.am, reply.chunk, reply.len, reply.data);
        }
    }

    /// Runs the handler of a complete reply of `len` bytes; this thread, whose own `thread` is, is not inside one.
    #[inline(always)]
    fn take_reply<U: Upcall>(
        &self,
        up: U,
        thread: &ClientThread,
        am: &AmHeader,
        chunk: u32,
        len: usize,
        data: Option<(*mut u8, usize)>,
    ) {
        // A reply without a handler only brings back what its request holds.
        if am.handler != 0 {
            let body = Body { at: self.reqsb.at(chunk), len: len.min(CHUNK) };
            thread.in_handler.store(true, Ordering::Relaxed);
            let mut wrong = [0; MAX_ARGS];
            // SAFETY: the chunk is ours until we give it back below.
            up.run_reply(unsafe { self.message(am, body, data, &mut wrong) });
            thread.in_handler.store(false, Ordering::Relaxed);
        } else if am.numargs != 0 {
            cold_path();
            let body = Body { at: self.reqsb.at(chunk), len: len.min(CHUNK) };
            self.give_back_others(am.source, am.numargs, body);
        }
        self.reqsb.give(chunk);
    }

    #[cold]
    #[inline(never)]
    fn put_off(&self, thread: &ClientThread, reply: ArrivedReply) {
        let next = thread.put_off.swap(reply.chunk, Ordering::Relaxed);
        // SAFETY: we hold the chunk of a reply that has not been handled.
        unsafe { self.reqsb.note_reply(reply.chunk, reply, next) };
        self.stats.replies_put_off.fetch_add(1, Ordering::Relaxed);
    }

    /// Runs the handlers of the replies that were put off; this thread is not inside a handler.
    #[inline(always)]
    pub(super) fn run_put_off<U: Upcall>(&self, up: U) {
        let chunk = self.threads[up.thread()].put_off.load(Ordering::Relaxed);
        if chunk != NONE {
            self.run_those_put_off(up, chunk);
        }
    }

    #[cold]
    #[inline(never)]
    fn run_those_put_off<U: Upcall>(&self, up: U, first: u32) {
        self.threads[up.thread()].put_off.store(NONE, Ordering::Relaxed);
        let mut chunk = first;
        while chunk != NONE {
            // SAFETY: chunks on the list are ours, noted as replies when they were put there.
            let (reply, next) = unsafe { self.reqsb.noted_reply(chunk) };
            self.run_reply(up, reply);
            chunk = next;
        }
    }
}
