//! Gets: data comes from the RAR of its owner; the operation id comes back with the REPLY
//! event.
//!
//! The destination is the segment itself (RARSRC), a bounce buffer (a ReqSB chunk, whose record
//! says where the bytes go in the end) or a temporary descriptor (TMPMD). Where REPLY events
//! come without match bits each get has a temporary descriptor, which tells the operation.
//! Waits as a put does.

use super::match_bits::{MessageKind, RmaBits};
use super::portals::Portals;
use super::put::NO_OPERATION;
use super::queue::broken;
use super::{CHUNK, Conduit, OpId, ResourceNeed, Upcall};
use crate::client_memory::{Dst, RemoteRange};
use crate::fault;
use crate::rank::JobRank;

impl<P: Portals> Conduit<P> {
    /// Gets from a segment, as [`Conduit::put_at_once`] puts to it.
    #[inline]
    pub fn get_at_once(&self, dst: Dst<'_>, src: RemoteRange) -> bool {
        if !self.config.at_once || dst.len() > self.config.max_transfer {
            return false;
        }
        // SAFETY: the destination is writable, and the call does not keep it.
        unsafe {
            self.portals.get_at_once(
                dst.as_ptr(),
                dst.len(),
                self.peers[src.rank().index()],
                self.config.pt_rar,
                NO_OPERATION.pack(MessageKind::Get),
                src.offset(),
            )
        }
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
        let (rar, dest, n) = (self.rar(), dst.as_ptr(), dst.len());
        let mut rma = RmaBits { op, local: None, chunk: 0 };
        let echoes = self.portals.echoes_match_bits();
        let bounce =
            || (echoes && n <= self.config.get_bounce).then(|| self.reqsb.take()).flatten();
        let (md, offset, slot) = if let (true, Some(offset)) = (echoes, rar.local(dest, n)) {
            (rar.src, offset, None)
        } else if let Some(chunk) = bounce() {
            // SAFETY: we have just taken the chunk.
            unsafe { self.reqsb.note_get(chunk, dest, n) };
            rma.chunk = chunk;
            (self.reqsb.md, chunk as usize * CHUNK, None)
        } else {
            let slot =
                self.wait_safe(up, ResourceNeed::of(&"a get for a memory descriptor"), || {
                    self.tmpmd.take()
                });
            if !echoes {
                self.tmpmd.note(slot, rma.pack(MessageKind::Get));
            }
            // SAFETY: the destination stays until the operation is done, which the REPLY event
            // says.
            (unsafe { self.tmpmd.bind(&self.portals, slot, dest, n, 1) }, 0, Some(slot))
        };
        self.wait_safe(up, ResourceNeed::of(&"a get for a send ticket"), || self.tickets.take(1));
        self.portals
            .get(
                md,
                offset,
                n,
                self.peers[rank.index()],
                self.config.pt_rar,
                rma.pack(MessageKind::Get),
                remote,
            )
            .unwrap_or_else(|e| broken(e));
        if let Some(slot) = slot {
            self.tmpmd.done(&self.portals, slot);
        }
    }
}

/// Makes one of the bytes that have arrived wrong: a planted fault.
#[inline]
pub(super) fn flip(at: *mut u8, n: usize) {
    if fault::on("flip_get") && n != 0 {
        // SAFETY: these bytes of the descriptor have just been written by Portals for us, and
        // nobody has been told.
        unsafe { *at.add(n / 2) ^= 1 };
    }
}
