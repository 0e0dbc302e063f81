//! Sending active messages: requests and replies.
//!
//! Called by the upper layers, and by `am_recv` and `implicit` for replies that a handler did
//! not send. Invariant: resources are acquired in the order credits, chunk, TMPMD, ticket. A
//! thread that holds a later one never waits for an earlier one, so there is no deadlock. A
//! reply acquires nothing: its token holds all that it needs.
//!
//! ```text
//!  plan      choose the form                     Short     arguments
//!            Long: put the payload ahead of      Medium    arguments, payload
//!            the header where that is done at    Outbox    arguments, where the payload stays
//!            once (Placed); Medium: stash a      Landing   arguments, payload to be copied
//!            large payload (Outbox)              Placed    arguments, where the payload is now
//!                                                Packed    arguments, payload, destination
//!                                                Unpacked  arguments; payload: its own put
//!  reserve   credits, chunk       full polls: both return with replies, which peers that wait
//!                                 like us send from their full polls
//!            TMPMD, ticket        for Unpacked; SAFE polls: both return with our own events
//!  transmit  Unpacked: the data, to RARAM or RARSRC
//!            the message: in its event, else at once from plain memory, else from its chunk
//! ```
//!
//! An event at the sender exists only where something must report its departure: the data of a
//! Long, and a reply that leaves a RplSB chunk. The reply to a request reports the departure of
//! the request, and a reply without arguments is all header.
//!
//! Up to 32 bytes of arguments and payload travel in the event, if the network can do that: to
//! ReqHdr or, for a reply, to a chunk that the header names.

use super::am_body::{
    ADDRESS, HeadWords, args_bytes, has_address, has_payload, inline_body, write_body,
};
use super::am_plan::{SendPlan, credits_for, extent};
use super::match_bits::{self, AmForm, AmHeader, REPLY_LID, TargetMd};
use super::memory::{bytes_of, word_at};
use super::portals::{Direct, MdPart, Portals, Target};
use super::queue::broken;
use super::{CHUNK, Category, Conduit, MAX_ARGS, Outgoing, ReplyToken, ResourceNeed, Upcall};
use crate::client_memory::Src;
use crate::fault;
use crate::rank::JobRank;
use core::sync::atomic::{AtomicU32, Ordering};
use sys::hint::cold_path;

/// Largest Medium: what a chunk holds besides the most arguments.
const MAX_MEDIUM: usize = CHUNK - MAX_ARGS * size_of::<i32>();

/// What a request holds when it is transmitted.
struct ReservedSend {
    /// The chunk of ReqSB.
    chunk: u32,
    /// The credit field of its header.
    credit: u16,
    /// [`AmHeader::may_wait`]
    may_wait: bool,
    /// Of [`AmForm::Unpacked`]: the TMPMD, if the payload is outside the segment.
    slot: Option<u32>,
}

impl<P: Portals> Conduit<P> {
    /// Largest Medium payload in bytes.
    pub fn max_medium(&self) -> usize {
        MAX_MEDIUM
    }

    /// Largest Long request payload in bytes.
    pub fn max_long_request(&self) -> usize {
        self.config.max_transfer
    }

    /// Largest Long reply payload in bytes.
    pub fn max_long_reply(&self) -> usize {
        self.config.max_transfer
    }

    /// Sends a request. Waits for credits, a chunk and tickets, running handlers meanwhile; never
    /// from inside a handler.
    // What goes out of line takes a copy of the message, so that the message itself is never put
    // together in memory.
    #[inline(always)]
    pub fn request<U: Upcall>(&self, up: U, node: JobRank, m: &Outgoing<'_>) {
        debug_assert!(!self.in_handler(up), "a request from inside a handler");
        check_sizes(m);
        if m.category == Category::Medium && m.payload.len() >= self.outbox.least {
            return self.request_stashed(up, node, &{ *m });
        }
        self.request_along(up, node, m);
    }

    /// Sends a request whose payload stays in the outbox if it can.
    #[inline(never)]
    fn request_stashed<U: Upcall>(&self, up: U, node: JobRank, m: &Outgoing<'_>) {
        match self.stash(node, m.payload) {
            Some(address) => {
                let len = args_bytes(m.args.len()) + ADDRESS;
                let plan = SendPlan::new(AmForm::Outbox, len, address);
                if let Some(reserved) = self.reserve(up, node, m, plan) {
                    self.transmit_request(up, node, m, plan, reserved);
                }
            }
            None => self.request_along(up, node, m),
        }
    }

    /// Sends a request, the payload of a Medium with it.
    #[inline(always)]
    fn request_along<U: Upcall>(&self, up: U, node: JobRank, m: &Outgoing<'_>) {
        // To prefetch the line of arguments alone gains nothing, and a Long in one message is
        // rare.
        let plan = self.plan(node, m);
        if m.category == Category::Medium && !Self::fits_inline(plan.form, plan.len) {
            let to = self.am_target(node, TargetMd::ReqRb as u64, 0, 0);
            if let Some(direct) = self.portals.direct(to.process) {
                direct.prefetch_target(&to, plan.len);
            }
        }
        if let Some(reserved) = self.reserve(up, node, m, plan) {
            self.transmit_request(up, node, m, plan, reserved);
        }
    }

    /// Sends the reply of the request handler that holds `token`. Waits for nothing but, without
    /// `source_stays`, the departure of a Long's data, and runs no handler meanwhile.
    ///
    /// # Panics
    /// The second time with the same token.
    #[inline(always)]
    pub fn reply<U: Upcall>(&self, up: U, token: &mut ReplyToken, m: &Outgoing<'_>) {
        check_sizes(m);
        assert!(!token.replied, "a request handler replies once");
        token.replied = true;
        let plan = self.plan(token.source, m);
        self.transmit_reply(up, token, m, plan);
    }

    // ---- reserve

    /// Takes what a request needs, waiting for it if it must. `None` if the request has been sent:
    /// as two messages, since that needed fewer credits.
    #[inline(always)]
    fn reserve<U: Upcall>(
        &self,
        up: U,
        node: JobRank,
        m: &Outgoing<'_>,
        plan: SendPlan,
    ) -> Option<ReservedSend> {
        let (credit, may_wait) = match self.credits.take(node, credits_for(plan)) {
            Some(taken) => (taken.field(0), self.implicit.may_wait(taken.left())),
            None => (self.wait_for_credits(up, node, &{ *m }, plan)?, false),
        };
        Some(self.reserve_chunk(up, m, plan.form, credit, may_wait))
    }

    /// What [`Conduit::reserve`] takes after the credits.
    #[inline(always)]
    fn reserve_chunk<U: Upcall>(
        &self,
        up: U,
        m: &Outgoing<'_>,
        form: AmForm,
        credit: u16,
        may_wait: bool,
    ) -> ReservedSend {
        let chunk = self.reqsb.take().unwrap_or_else(|| self.wait_for_chunk(up));
        let slot = match form {
            AmForm::Unpacked => self.reserve_data(up, &{ *m }),
            _ => None,
        };
        ReservedSend { chunk, credit, may_wait, slot }
    }

    /// Waits for the credits of a request: its credit field. A packed Long that still has too few
    /// goes as two messages if that needs fewer; then it has been sent, and there is no field.
    #[cold]
    #[inline(never)]
    fn wait_for_credits<U: Upcall>(
        &self,
        up: U,
        node: JobRank,
        m: &Outgoing<'_>,
        plan: SendPlan,
    ) -> Option<u16> {
        let credits = credits_for(plan);
        let short = self.credits.stall(node, credits);
        self.stats.credit_stalls.fetch_add(1, Ordering::Relaxed);
        let apart = SendPlan::new(AmForm::Unpacked, args_bytes(m.args.len()), 0);
        let fewer = credits_for(apart);
        let splits = plan.form == AmForm::Packed && m.payload.len() != 0 && fewer < credits;
        let need = ResourceNeed { what: &"a request for credits", peer: Some(node) };
        let (taken, split) = self.wait_full(up, need, || {
            let whole = self.credits.take(node, credits).map(|taken| (taken, false));
            whole.or_else(|| {
                splits.then(|| self.credits.take(node, fewer).map(|taken| (taken, true))).flatten()
            })
        });
        let credit = taken.field(short);
        if !split {
            return Some(credit);
        }
        let reserved = self.reserve_chunk(up, m, apart.form, credit, false);
        self.transmit_request(up, node, m, apart, reserved);
        None
    }

    #[cold]
    #[inline(never)]
    fn wait_for_chunk<U: Upcall>(&self, up: U) -> u32 {
        self.wait_full(up, ResourceNeed::of(&"a request for a send buffer"), || self.reqsb.take())
    }

    /// A ticket for the data of a request Long, and a TMPMD if they lie outside the segment.
    #[cold]
    #[inline(never)]
    fn reserve_data<U: Upcall>(&self, up: U, m: &Outgoing<'_>) -> Option<u32> {
        let outside = self.rar().local(m.payload).is_none();
        let slot = outside.then(|| {
            let need = ResourceNeed::of(&"a request for a memory descriptor");
            self.wait_safe(up, need, || self.tmpmd.take())
        });
        let need = ResourceNeed::of(&"a request for a send ticket");
        self.wait_safe(up, need, || self.tickets.take(1));
        slot
    }

    // ---- transmit

    /// Sends a request with what it has reserved.
    #[inline(always)]
    fn transmit_request<U: Upcall>(
        &self,
        up: U,
        node: JobRank,
        m: &Outgoing<'_>,
        plan: SendPlan,
        reserved: ReservedSend,
    ) {
        let SendPlan { form, len, address } = plan;
        let ReservedSend { chunk, credit, may_wait, slot } = reserved;
        let mut extent = extent(form, address, m);
        if form == AmForm::Unpacked {
            cold_path();
            self.put_data(up, node, TargetMd::RarAm, &{ *m }, chunk, slot);
            extent = chunk.into();
        }
        if form == AmForm::Outbox {
            self.outbox.note(chunk, address);
        }
        let header = AmHeader {
            form,
            request: true,
            may_wait,
            copy: form == AmForm::Outbox && self.config.par(),
            handler: m.handler,
            numargs: m.args.len() as u8,
            chunk,
            source: self.me,
            extent,
            credit,
        };
        let (bits, data) = header.pack();
        debug_assert!(plan.len == 0 || bits & !match_bits::IGNORE != TargetMd::ReqHdr as u64);
        self.reply_prefetch.expect_at(self.reqsb.chunks.address(chunk));
        if !(fault::on("drop_am") && every_64th()) {
            let to = self.am_target(node, bits, 0, data);
            let inline = Target { bits: AmHeader::inline_request(bits), ..to };
            if !(self.send_inline(form, len, address, m, &inline)
                || self.send_at_once(form, address, m, &to))
            {
                self.send_from_chunk(form, address, &{ *m }, chunk, &{ to });
            }
        }
        if form == AmForm::Unpacked && !m.source_stays {
            self.wait_local(up);
        }
    }

    /// Sends a reply with what its token holds.
    #[inline(always)]
    fn transmit_reply<U: Upcall>(
        &self,
        up: U,
        token: &mut ReplyToken,
        m: &Outgoing<'_>,
        plan: SendPlan,
    ) {
        let SendPlan { form, len, address } = plan;
        let chunk = token.kit.chunk.expect("a request comes with a chunk for its reply");
        let mut extent = extent(form, address, m);
        if form == AmForm::Unpacked {
            cold_path();
            extent = self.put_data_of_reply(up, token, &{ *m }).into();
        }
        let (credit, low) = self.credits.reply_field(token.source, token.credit);
        let header = AmHeader {
            form,
            request: false,
            may_wait: false,
            copy: false,
            handler: m.handler,
            numargs: m.args.len() as u8,
            chunk,
            source: self.me,
            extent,
            credit,
        };
        let (bits, data) = header.pack();
        let to = self.am_target(token.source, bits, token.chunk as usize * CHUNK, data);
        let inline = Target { bits: AmHeader::inline_reply(bits, token.chunk), ..to };
        if !(self.send_inline(form, len, address, m, &inline)
            || self.send_at_once(form, address, m, &to))
        {
            self.reply_from_chunk(form, address, &{ *m }, token, chunk, &{ to });
        }
        if low {
            cold_path();
            self.scavenge();
        }
        if form == AmForm::Unpacked && !m.source_stays {
            self.wait_local(up);
        }
    }

    /// Where an active message to a process goes.
    #[inline(always)]
    pub(super) fn am_target(
        &self,
        node: JobRank,
        bits: u64,
        offset: usize,
        hdr_data: u64,
    ) -> Target {
        let process = self.peers[node.index()];
        Target { process, portal: self.config.pt_am, bits, offset, hdr_data }
    }

    /// Sends a message with its body in its event; false, and nothing done, if it has no body, one
    /// that does not fit, or the network cannot.
    #[inline(always)]
    fn send_inline(
        &self,
        form: AmForm,
        len: usize,
        address: u64,
        m: &Outgoing<'_>,
        to: &Target,
    ) -> bool {
        if !Self::fits_inline(form, len) {
            return false;
        }
        match self.direct(to.process) {
            Some(direct) => direct.put_inline(&inline_body(form, address, m), to),
            None => false,
        }
    }

    /// Sends a message within the call, from where its parts are; false, and nothing done, if that
    /// is not possible.
    #[inline(always)]
    pub(super) fn send_at_once(
        &self,
        form: AmForm,
        address: u64,
        m: &Outgoing<'_>,
        to: &Target,
    ) -> bool {
        let Some(direct) = self.direct(to.process) else { return false };
        let n = m.payload.len();
        let mut head = HeadWords::new();
        head.push_args(m.args);
        if !has_payload(form) || n == 0 {
            if has_address(form) {
                head.push(address);
            }
            return direct.put_at_once([head.bytes()], to);
        }
        let (whole, rest) = m.payload.split_at(n & !7);
        let mut last = [0u64; 2];
        let mut filled = 0;
        if rest.len() != 0 {
            last[0] = word_at(rest, 0);
            filled = 1;
        }
        if has_address(form) {
            last[filled] = address;
            filled += 1;
        }
        direct.put_at_once([head.bytes(), whole, bytes_of(&last[..filled])], to)
    }

    /// Sends a request from its chunk.
    #[cold]
    #[inline(never)]
    fn send_from_chunk(
        &self,
        form: AmForm,
        address: u64,
        m: &Outgoing<'_>,
        chunk: u32,
        to: &Target,
    ) {
        let len = match m.args.is_empty() && form == AmForm::Short {
            true => 0,
            false => write_body(self.reqsb.chunks.part(chunk, CHUNK), form, address, m),
        };
        let from = self.reqsb.silent_part(chunk, len);
        self.portals.put(from, false, to).unwrap_or_else(|e| broken(e));
    }

    /// Sends a reply from its chunk, which goes with a ticket until the SEND event.
    #[cold]
    #[inline(never)]
    fn reply_from_chunk(
        &self,
        form: AmForm,
        address: u64,
        m: &Outgoing<'_>,
        token: &mut ReplyToken,
        chunk: u32,
        to: &Target,
    ) {
        let len = write_body(self.rplsb.chunks.part(chunk, CHUNK), form, address, m);
        let from = if len == 0 {
            self.reqsb.silent_part(0, 0)
        } else {
            token.kit.chunk = None;
            token.kit.tickets -= 1;
            self.rplsb.part(chunk, len)
        };
        self.portals.put(from, false, to).unwrap_or_else(|e| broken(e));
    }

    /// Sends the data of a reply Long: its long id.
    #[cold]
    #[inline(never)]
    fn put_data_of_reply<U: Upcall>(
        &self,
        up: U,
        token: &mut ReplyToken,
        m: &Outgoing<'_>,
    ) -> u32 {
        let lid = token.chunk | REPLY_LID;
        let outside = self.rar().local(m.payload).is_none();
        let slot = if outside { token.kit.tmpmd.take() } else { None };
        token.kit.tickets -= 1;
        self.put_data(up, token.source, TargetMd::RarSrc, m, lid, slot);
        lid
    }

    /// Sends the data of a Long; the caller has a ticket for it, and a TMPMD if they lie outside
    /// the segment.
    #[inline(never)]
    fn put_data<U: Upcall>(
        &self,
        up: U,
        node: JobRank,
        target: TargetMd,
        m: &Outgoing<'_>,
        lid: u32,
        slot: Option<u32>,
    ) {
        let local = (!m.source_stays).then(|| up.thread() as u8);
        if local.is_some() {
            self.expect_local(up);
        }
        let from = match slot {
            Some(slot) => {
                // SAFETY: `source_stays` is only set for a `Src<'static>`; without it `wait_local`
                // waits for SEND, after which the payload is not read.
                let region = unsafe { m.payload.until_complete() }.into();
                // Its event is SEND.
                self.tmpmd.bind(&self.portals, slot, region, 1)
            }
            None => self.in_own_segment(m.payload),
        };
        let bits = match_bits::am_data(target, local);
        let to = Target {
            hdr_data: match_bits::lid(self.me, lid),
            ..self.in_segment(node, m.to.offset(), bits)
        };
        self.portals.put(from, false, &to).unwrap_or_else(|e| broken(e));
        if let Some(slot) = slot {
            self.tmpmd.release(&self.portals, slot);
        }
    }

    fn in_own_segment(&self, bytes: Src<'_>) -> MdPart<P::Md> {
        let part = self.rar().local(bytes);
        part.unwrap_or_else(|| unreachable!("what lies outside the segment has a TMPMD"))
    }
}

#[inline(always)]
fn check_sizes(m: &Outgoing<'_>) {
    debug_assert!(
        m.args.len() <= MAX_ARGS
            && (m.category != Category::Medium || m.payload.len() <= MAX_MEDIUM)
    );
}

/// The clock of a planted fault.
fn every_64th() -> bool {
    static SENT: AtomicU32 = AtomicU32::new(0);
    SENT.fetch_add(1, Ordering::Relaxed) % 64 == 63
}
