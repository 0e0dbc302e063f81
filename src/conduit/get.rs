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
use super::portals::{Direct, Portals};
use super::put::NO_OPERATION;
use super::queue::broken;
use super::{Conduit, OpId, ResourceNeed, Upcall};
use crate::client_memory::{Dst, RemoteRange};
use crate::rank::JobRank;

impl<P: Portals> Conduit<P> {
    /// Gets from a segment, as [`Conduit::put_at_once`] puts to it.
    #[inline]
    pub fn get_at_once(&self, dst: Dst<'_>, src: RemoteRange) -> bool {
        if dst.len() > self.config.max_transfer {
            return false;
        }
        let bits = NO_OPERATION.pack(MessageKind::Get);
        let from = self.in_segment(src.rank(), src.offset(), bits);
        match self.direct(from.process) {
            Some(direct) => direct.get_at_once(dst, &from),
            None => false,
        }
    }

    /// [`Conduit::get_at_once`], as [`Conduit::put_mapped`].
    #[inline]
    pub fn get_mapped(&self, dst: Dst<'_>, src: RemoteRange) -> bool {
        if dst.len() > self.config.max_transfer {
            return false;
        }
        let bits = NO_OPERATION.pack(MessageKind::Get);
        let from = self.in_segment(src.rank(), src.offset(), bits);
        self.direct(from.process).is_some_and(|direct| direct.get_mapped(dst, &from))
    }

    /// Gets from a segment. Each of the [`Conduit::fragments`] ends with [`Upcall::op_done`].
    pub fn get<U: Upcall>(&self, up: U, dst: Dst<'static>, src: RemoteRange, op: OpId) {
        let n = dst.len();
        let mut at = 0;
        while at < n {
            let len = (n - at).min(self.config.max_transfer);
            self.get_fragment(up, dst.part(at, len), (src.rank(), src.offset() + at), op);
            at += len;
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
