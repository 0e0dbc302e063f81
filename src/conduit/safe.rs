//! SAFE_EQ: completions of what we have sent, and replies.
//!
//! Called by polls and by every wait. Invariant: its events need no further resource, so it may be
//! polled at any time; they give back tickets, chunks, temporary descriptors and credits.

use super::match_bits::{self, AmHeader, MessageKind, RmaBits};
use super::portals::{Direct, InlineBody, MdEvent, MdEventKind, NextEvent, Portals};
use super::user::Descriptor;
use super::{Conduit, OpId, Upcall};
use crate::fault;
use core::sync::atomic::{AtomicU32, Ordering};
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
    fn safe_event<U: Upcall>(&self, up: U, e: MdEvent, inline: &InlineBody) {
        let descriptor = Descriptor::unpack(e.user);
        let bits = match e.kind {
            MdEventKind::ReplyEnd if !self.portals.echoes_match_bits() => {
                self.tmpmd.noted(descriptor)
            }
            _ => e.match_bits,
        };
        let Some(kind) = match_bits::kind(bits) else { return };
        match (e.kind, kind) {
            (MdEventKind::PutEnd, MessageKind::AmHeader) if descriptor == Descriptor::ReqSb => {
                self.reply_arrived(up, &e, inline)
            }
            (MdEventKind::PutEnd, MessageKind::AmData) => self.reply_data_arrived(up, e),
            (MdEventKind::SendEnd, MessageKind::AmHeader) => {
                self.rplsb.give(AmHeader::chunk(bits));
                self.tickets.give(1);
            }
            (MdEventKind::SendEnd, MessageKind::Put) => self.has_left(descriptor, bits),
            (MdEventKind::SendEnd, MessageKind::AmData) => {
                self.has_left(descriptor, bits);
                self.tickets.give(1);
            }
            (MdEventKind::Ack, MessageKind::Put) => {
                let rma = RmaBits::unpack(bits);
                match descriptor {
                    Descriptor::ReqSb => self.reqsb.give(rma.chunk),
                    Descriptor::TmpMd(slot) => self.tmpmd.release(&self.portals, slot),
                    _ => {}
                }
                self.complete(up, rma.op);
            }
            (MdEventKind::ReplyEnd, MessageKind::Get) => {
                let rma = RmaBits::unpack(bits);
                if fault::on("flip_get") && !e.mlength.equals(0) {
                    self.flip_arrived(descriptor, &e);
                }
                match descriptor {
                    Descriptor::ReqSb => {
                        self.reqsb.finish_get(rma.chunk);
                        self.reqsb.give(rma.chunk);
                    }
                    Descriptor::TmpMd(slot) => self.tmpmd.release(&self.portals, slot),
                    _ => {}
                }
                self.complete(up, rma.op);
            }
            // Some Portals post a SEND event for a get.
            _ => {}
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

    /// The source of a put, or of the data of a Long, may be reused.
    #[inline]
    fn has_left(&self, descriptor: Descriptor, bits: u64) {
        if let Descriptor::TmpMd(slot) = descriptor {
            self.tmpmd.release(&self.portals, slot);
        }
        if let Some(thread) = match_bits::local(bits) {
            let thread = self.threads.get(usize::from(thread));
            thread.into_iter().for_each(|thread| thread.local_done(self.config.par()));
        }
    }

    #[inline]
    fn complete<U: Upcall>(&self, up: U, op: OpId) {
        self.tickets.give(1);
        if fault::on("drop_op") && every_64th() {
            return;
        }
        up.op_done(op);
    }
}

/// A planted fault's clock.
fn every_64th() -> bool {
    static DONE: AtomicU32 = AtomicU32::new(0);
    DONE.fetch_add(1, Ordering::Relaxed) % 64 == 63
}
