//! Gets: data comes from the RAR of its owner; the operation id comes back with the REPLY
//! event.
//!
//! Called by the extended layer through `JobConduit`. The destination is the segment itself
//! (RARSRC), a bounce buffer or a temporary descriptor (TMPMD). A bounce buffer is a ReqSB chunk,
//! whose record says where the bytes go in the end. Where REPLY events come without match bits
//! each get has a temporary descriptor, which identifies the operation. Invariant: as in `put`,
//! the send ticket is acquired last, and only SAFE polls wait.

use super::hold::Hold;
use super::match_bits::{MessageKind, RmaBits};
use super::pinned_transfer::LocalBytes;
use super::portals::Portals;
use super::queue::broken;
use super::{Conduit, OpId, ResourceNeed, Upcall};
use crate::client_memory::{Dst, RemoteRange};
use crate::rank::JobRank;

impl<P: Portals> Conduit<P> {
    /// Gets from a segment. Each of the [`Conduit::fragments`] ends with [`Upcall::op_done`].
    pub fn get<U: Upcall>(&self, up: U, dst: Dst<'static>, src: RemoteRange, op: OpId) {
        if dst.len() > self.config.max_transfer {
            return self.get_large(up, dst, src, op);
        }
        if dst.len() != 0 {
            self.get_fragment(up, dst, (src.rank(), src.offset()), op);
        }
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
            self.get_fragment(up, part, (src.rank(), src.offset() + at), op);
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
    ) {
        let n = dst.len();
        let mut rma = RmaBits { op, local: None, chunk: 0 };
        let mut slot = None;
        let hold = Hold::get(op.0);
        let echoes = self.portals.echoes_match_bits();
        let bounce =
            || (echoes && n <= self.config.get_bounce).then(|| self.reqsb.take(hold)).flatten();
        let to = if let (true, Some(part)) = (echoes, self.rar().local(dst.into())) {
            part
        } else if let Some(chunk) = bounce() {
            self.reqsb.note_get(chunk, dst);
            rma.chunk = chunk;
            self.reqsb.part(chunk, n)
        } else if echoes && self.pinned.get().is_some() {
            let from = RemoteRange::unmapped(rank, remote, n);
            return self.transfer(up, from, LocalBytes::To(dst), Some(op), true);
        } else {
            let need = ResourceNeed::of(&"a get for a memory descriptor");
            let taken = self.wait_safe(up, need, || self.tmpmd.take());
            if !echoes {
                self.tmpmd.note(taken, rma.pack(MessageKind::Get));
            }
            slot = Some(taken);
            // Its event is REPLY.
            self.tmpmd.bind(&self.portals, taken, dst.into(), hold, 1)
        };
        self.wait_safe(up, ResourceNeed::of(&"a get for a send ticket"), || self.tickets.take(1));
        let from = self.in_segment(rank, remote, rma.pack(MessageKind::Get));
        self.portals.get(to, &from).unwrap_or_else(|e| broken(e));
        if let Some(slot) = slot {
            self.tmpmd.release(&self.portals, slot);
        }
    }
}
