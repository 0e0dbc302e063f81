//! SAFE_EQ: completions of what we have sent, and replies.
//!
//! Called by polls and by every wait. Invariant: its events need no further resource, so it may be
//! polled at any time; they give back tickets, chunks, temporary descriptors and credits.

use super::hold::Hold;
use super::match_bits::{self, AmHeader, MessageKind, RmaBits};
use super::portals::{Direct, InlineBody, MdEvent, MdEventKind, NextEvent, Portals};
use super::user::Descriptor;
use super::{Conduit, OpId, Upcall};
use crate::{fault, report};
use core::sync::atomic::AtomicU32;
use sys::hint::cold_path;
use sys::peer::Peer;

impl<P: Portals> Conduit<P> {
    /// Serves the queue of completions and replies only. True if there was any event. Inside a
    /// handler it runs no handler: replies wait until that has returned.
    #[inline]
    pub fn poll_safe<U: Upcall>(&self, up: U) -> bool {
        if let Some(direct) = self.portals.direct_to_self() {
            direct.progress();
        }
        !self.safe.is_quiet(&self.portals) && self.serve_safe(up)
    }

    /// [`Conduit::poll_safe`] of a queue that may have something.
    #[inline(never)]
    pub(super) fn serve_safe<U: Upcall>(&self, up: U) -> bool {
        let mut served = 0;
        loop {
            let mut inline = InlineBody::default();
            match self.safe.next(&self.portals, &mut inline) {
                NextEvent::Arrival(e) if e.user == const { Descriptor::ReqSb.pack() } => {
                    self.reply_arrived(up, &e, &inline)
                }
                NextEvent::Arrival(e) => self.safe_event(up, e, &inline),
                NextEvent::Nothing => {
                    cold_path();
                    break;
                }
                NextEvent::Other => {
                    cold_path();
                    let Some(e) = self.safe.take(&self.portals, &mut inline) else { break };
                    self.safe_event(up, e, &inline);
                }
            }
            served += 1;
            if served == self.config.safe_limit || self.safe.is_quiet(&self.portals) {
                break;
            }
        }
        served != 0
    }

    #[inline(never)]
    pub(super) fn safe_event<U: Upcall>(&self, up: U, e: MdEvent, inline: &InlineBody) {
        let descriptor = Descriptor::unpack(e.user);
        let bits = match e.kind {
            MdEventKind::ReplyEnd if !self.portals.echoes_match_bits() => {
                self.tmpmd.noted(descriptor)
            }
            _ => e.match_bits,
        };
        let Some(kind) = match_bits::kind(bits) else { return self.no_message(&e) };
        let awaited = match (e.kind, kind) {
            (MdEventKind::PutEnd, MessageKind::AmHeader) if descriptor == Descriptor::ReqSb => {
                return self.reply_arrived(up, &e, inline);
            }
            (MdEventKind::PutEnd, MessageKind::AmData) if descriptor == Descriptor::RarSrc => {
                return self.reply_data_arrived(up, e);
            }
            (MdEventKind::SendEnd, MessageKind::AmHeader) => {
                self.rplsb.has_left(Peer::new(AmHeader::chunk(bits) as usize))
                    && self.tickets.give_for_event()
            }
            (MdEventKind::SendEnd, MessageKind::Put) => {
                let op = RmaBits::unpack(bits).op;
                let awaited = self.has_left(descriptor, Hold::put(op.0), bits);
                if awaited && op.counts_departures() {
                    up.op_departed(op);
                }
                awaited
            }
            (MdEventKind::SendEnd, MessageKind::AmData) => {
                self.has_left(descriptor, Hold::DATA, bits) && self.tickets.give_for_event()
            }
            (MdEventKind::Ack, MessageKind::Put) => {
                self.rma_ended(up, descriptor, bits, Hold::put, |_| {})
            }
            (MdEventKind::ReplyEnd, MessageKind::Get) => {
                if fault::on("flip_get") && !e.mlength.equals(0) {
                    self.flip_arrived(descriptor, &e);
                }
                let finish = |chunk| self.reqsb.finish_get(chunk);
                self.rma_ended(up, descriptor, bits, Hold::get, finish)
            }
            // Some Portals post a SEND event for a get.
            (MdEventKind::SendEnd, MessageKind::Get) => self.portals.posts_further_kinds(),
            (MdEventKind::Ack, MessageKind::Pinned) => self.pinned_ended(up, &e, true),
            (MdEventKind::ReplyEnd, MessageKind::Pinned) => self.pinned_ended(up, &e, false),
            (MdEventKind::SendEnd, MessageKind::Pinned) => self.pinned_left(bits),
            _ => return self.no_message(&e),
        };
        if !awaited {
            not_awaited(&e);
        }
    }

    /// An event that is of no message of this library.
    #[cold]
    fn no_message(&self, e: &MdEvent) {
        if !matches!(e.kind, MdEventKind::Other | MdEventKind::Unlink) {
            not_awaited(e);
        }
        self.further_kind(e);
    }

    /// An event of a kind that counts as nothing. It is damaged if this network posts no such
    /// event: what it stood for would never end.
    #[cold]
    pub(super) fn further_kind(&self, e: &MdEvent) {
        if !self.portals.posts_further_kinds() {
            report::damaged(format_args!(
                "an event with match bits {:#018x} has the kind {:?}, which it cannot have",
                e.match_bits, e.kind
            ))
        }
    }

    /// Makes one of the bytes that a get has brought wrong: a planted fault.
    #[cold]
    fn flip_arrived(&self, descriptor: Descriptor, e: &MdEvent) {
        let at = e.offset.data() + e.mlength.data() / 2;
        match descriptor {
            Descriptor::ReqSb => self.reqsb.chunks.memory().flip(at),
            Descriptor::TmpMd(slot) => self.tmpmd.flip(slot, at),
            _ => self
                .rar()
                .at(Peer::new(at), Peer::new(1))
                .into_iter()
                .for_each(|byte| byte.flip(0)),
        }
    }

    /// The source of a put, or of the data of a Long, may be reused. False if this is not
    /// awaited.
    #[inline]
    fn has_left(&self, descriptor: Descriptor, hold: Hold, bits: u64) -> bool {
        if let Descriptor::TmpMd(slot) = descriptor
            && !self.tmpmd.event(&self.portals, slot, hold)
        {
            return false;
        }
        match match_bits::local(bits).map(usize::from) {
            Some(thread) => {
                self.threads.get(thread).is_some_and(|t| t.local_done(self.config.par()))
            }
            None => true,
        }
    }

    /// The last event of a fragment of a put or get. Gives back what it is held for by `hold`, a
    /// chunk after `finish` with it. False if this is not awaited.
    #[inline]
    fn rma_ended<U: Upcall>(
        &self,
        up: U,
        descriptor: Descriptor,
        bits: u64,
        hold: impl FnOnce(u32) -> Hold,
        finish: impl FnOnce(u32),
    ) -> bool {
        let rma = RmaBits::unpack(bits);
        let hold = hold(rma.op.0);
        let awaited = match descriptor {
            Descriptor::ReqSb => {
                let chunk = self.reqsb.end_hold(Peer::new(rma.chunk as usize), hold);
                chunk.map(|chunk| (finish(chunk), self.reqsb.give(chunk))).is_some()
            }
            Descriptor::TmpMd(slot) => self.tmpmd.event(&self.portals, slot, hold),
            other => other == Descriptor::RarSrc,
        };
        awaited && self.complete(up, rma.op)
    }

    /// A fragment of this operation is complete. False if no ticket was out for it.
    #[inline]
    fn complete<U: Upcall>(&self, up: U, op: OpId) -> bool {
        if !self.tickets.give_for_event() {
            return false;
        }
        if !(fault::on_every_64th("drop_op", &OPS_DONE)) {
            up.op_done(op);
        }
        true
    }
}

/// Fragments completed, for a planted fault.
static OPS_DONE: AtomicU32 = AtomicU32::new(0);

/// Ends the job over an event that ends nothing which this process has begun.
#[cold]
fn not_awaited(e: &MdEvent) -> ! {
    report::damaged(format_args!(
        "an event with match bits {:#018x} ({:?}) completes nothing that this process has started",
        e.match_bits, e.kind
    ))
}
