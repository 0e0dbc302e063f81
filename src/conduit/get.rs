//! Gets: data comes from the RAR of its owner; the operation id comes back with the REPLY
//! event.
//!
//! Called by the extended layer through `JobConduit`. The destination is the segment itself
//! (RARSRC), a bounce buffer or a temporary descriptor (TMPMD). A bounce buffer is a ReqSB chunk,
//! whose record says where the bytes go in the end. Where REPLY events come without match bits
//! each get has a temporary descriptor, which identifies the operation. So has a get into several
//! pieces. Invariant: as in `put`, the send ticket is acquired last, and only SAFE polls wait.

use super::at_once::RmaClaim;
use super::hold::Hold;
use super::match_bits::{MessageKind, RmaBits};
use super::pinned_transfer::LocalBytes;
use super::portals::{MdPart, Portals};
use super::queue::broken;
use super::{Conduit, OpId, ResourceNeed, Upcall};
use crate::client_memory::{Dst, RemoteRange};
use crate::rank::JobRank;

impl<P: Portals> Conduit<P> {
    /// Gets from a segment. Each of the [`Conduit::fragments`] ends with [`Upcall::op_done`].
    pub fn get<U: Upcall>(&self, up: U, dst: Dst<'static>, src: RemoteRange, op: OpId) {
        self.get_with(up, dst, src, op, None);
    }

    /// As [`Conduit::get`], with what [`Conduit::claim`] has taken.
    pub fn get_claimed<U: Upcall>(
        &self,
        up: U,
        dst: Dst<'static>,
        src: RemoteRange,
        op: OpId,
        claim: RmaClaim,
    ) {
        self.get_with(up, dst, src, op, Some(claim));
    }

    #[inline(always)]
    fn get_with<U: Upcall>(
        &self,
        up: U,
        dst: Dst<'static>,
        src: RemoteRange,
        op: OpId,
        claim: Option<RmaClaim>,
    ) {
        if dst.len() > self.config.max_transfer {
            claim.into_iter().for_each(|claim| self.unclaim(claim));
            return self.get_large(up, dst, src, op);
        }
        if dst.len() != 0 {
            self.get_fragment(up, dst, (src.rank(), src.offset()), op, claim);
        }
    }

    /// Into how many pieces of memory [`Conduit::get_scattered`] may get, and from how many
    /// [`Conduit::put_scattered`] may put.
    pub fn most_pieces(&self) -> usize {
        // Registered memory has a descriptor for each region, or locks pages for each piece.
        if self.config.registers { 1 } else { self.portals.most_pieces() }
    }

    /// Gets neighbouring bytes of a segment into [`Conduit::most_pieces`] pieces at most, by one
    /// message; together they have [`Conduit::fragments`] of 1. Ends with [`Upcall::op_done`].
    #[inline(never)]
    pub fn get_scattered<U: Upcall>(
        &self,
        up: U,
        pieces: &[Dst<'static>],
        src: RemoteRange,
        op: OpId,
    ) {
        let rma = RmaBits { op, local: None, chunk: 0 };
        let (slot, to) = self.bind_for_get(up, &rma, None, |slot| {
            self.tmpmd.bind_pieces(&self.portals, slot, pieces, Hold::get(op.0), 1)
        });
        self.start_get(up, to, (src.rank(), src.offset()), &rma, None);
        self.tmpmd.release(&self.portals, slot);
    }

    /// A temporary descriptor for a get, whose event is REPLY.
    #[cold]
    #[inline(never)]
    fn bind_for_get<U: Upcall>(
        &self,
        up: U,
        rma: &RmaBits,
        claimed: Option<u32>,
        bind: impl FnOnce(u32) -> MdPart<P::Md>,
    ) -> (u32, MdPart<P::Md>) {
        let need = ResourceNeed::of(&"a get for a memory descriptor");
        let slot = claimed.unwrap_or_else(|| self.wait_safe(up, need, || self.tmpmd.take()));
        if !self.portals.echoes_match_bits() {
            self.tmpmd.note(slot, rma.pack(MessageKind::Get));
        }
        (slot, bind(slot))
    }

    /// Sends a get from an offset in the segment of a rank, with a ticket.
    // Inlined: 0.99 of the instructions of row `get_8` with events.
    #[inline(always)]
    fn start_get<U: Upcall>(
        &self,
        up: U,
        to: MdPart<P::Md>,
        (rank, remote): (JobRank, usize),
        rma: &RmaBits,
        claim: Option<RmaClaim>,
    ) {
        match claim {
            Some(claim) => self.keep_ticket(claim),
            None => {
                let need = ResourceNeed::of(&"a get for a send ticket");
                self.wait_safe(up, need, || self.tickets.take(1));
            }
        }
        let from = self.in_segment(rank, remote, rma.pack(MessageKind::Get));
        self.portals.get(to, &from).unwrap_or_else(|e| broken(e));
    }

    /// A get of several messages, or of registered memory.
    #[cold]
    #[inline(never)]
    fn get_large<U: Upcall>(&self, up: U, dst: Dst<'static>, src: RemoteRange, op: OpId) {
        if self.config.targets_regions() {
            return self.transfer(up, src, LocalBytes::To(dst), Some(op), true);
        }
        let largest = self.config.max_transfer;
        for at in (0..dst.len()).step_by(largest) {
            let part = dst.part(at, largest.min(dst.len() - at));
            self.get_fragment(up, part, (src.rank(), src.offset() + at), op, None);
        }
    }

    /// Gets one piece from an offset in the segment of a rank.
    #[inline]
    fn get_fragment<U: Upcall>(
        &self,
        up: U,
        dst: Dst<'static>,
        (rank, remote): (JobRank, usize),
        op: OpId,
        mut claim: Option<RmaClaim>,
    ) {
        let n = dst.len();
        let mut rma = RmaBits { op, local: None, chunk: 0 };
        let mut slot = None;
        let hold = Hold::get(op.0);
        let echoes = self.portals.echoes_match_bits();
        let bounce =
            || (echoes && n <= self.config.get_bounce).then(|| self.reqsb.take(hold)).flatten();
        let to = if let (true, Some(part)) = (echoes, self.own_part(dst.into())) {
            part
        } else if let Some(chunk) = bounce() {
            self.reqsb.note_get(chunk, dst);
            rma.chunk = chunk;
            self.reqsb.part(chunk, n)
        } else if echoes && self.pinned.get().is_some() {
            claim.into_iter().for_each(|claim| self.unclaim(claim));
            let from = RemoteRange::unmapped(rank, remote, n);
            return self.transfer(up, from, LocalBytes::To(dst), Some(op), true);
        } else {
            let claimed = claim.as_mut().and_then(|claim| claim.slot.take());
            let (taken, part) = self.bind_for_get(up, &rma, claimed, |taken| {
                self.tmpmd.bind(&self.portals, taken, dst.into(), hold, 1)
            });
            slot = Some(taken);
            part
        };
        self.start_get(up, to, (rank, remote), &rma, claim);
        if let Some(slot) = slot {
            self.tmpmd.release(&self.portals, slot);
        }
    }
}
