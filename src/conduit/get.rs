//! Gets: data comes from the RAR of its owner; the operation id comes back with the REPLY event.
//!
//! The destination is the segment itself (RARSRC), a bounce buffer (a ReqSB chunk, whose record says where the bytes
//! go in the end) or a temporary descriptor (TMPMD). Where REPLY events come without match bits each get has a
//! temporary descriptor, which tells the operation. Waits as a put does.

use super::match_bits::{MessageKind, RmaBits};
use super::portals::Portals;
use super::put::NOBODY;
use super::queue::broken;
use super::rar::Rar;
use super::{CHUNK, Conduit, OpId, ResourceNeed, Upcall};
use crate::fault;

impl<P: Portals> Conduit<P> {
    /// Gets `n` bytes from the segment of `node`, as [`Conduit::put_at_once`] puts them.
    ///
    /// # Safety
    /// `dest` must be writable for `n` bytes, and `src` must lie in the segment of `node`.
    #[inline]
    pub unsafe fn get_at_once(&self, dest: *mut u8, node: u32, src: *const u8, n: usize) -> bool {
        if !self.config.at_once || n > self.config.max_transfer {
            return false;
        }
        let (from, remote) = (self.peers[node as usize], self.rar().remote(node, src, n));
        // SAFETY: as the caller vouches.
        unsafe {
            self.portals.get_at_once(
                dest,
                n,
                from,
                self.config.pt_rar,
                NOBODY.pack(MessageKind::Get),
                remote,
            )
        }
    }

    /// Gets `n` bytes from the segment of `node`. Each of its [`Conduit::fragments`] ends with [`Upcall::op_done`].
    ///
    /// # Safety
    /// `dest` must be writable for `n` bytes until then, and `src` must lie in the segment of `node`.
    pub unsafe fn get<U: Upcall>(
        &self,
        up: U,
        dest: *mut u8,
        node: u32,
        src: *const u8,
        n: usize,
        op: OpId,
    ) {
        let rar = self.rar();
        let remote = rar.remote(node, src, n);
        let mut at = 0;
        while at < n {
            let len = (n - at).min(self.config.max_transfer);
            // SAFETY: this piece lies in what the caller vouches for.
            unsafe { self.get_fragment(up, rar, dest.add(at), node, remote + at, len, op) };
            at += len;
        }
    }

    /// Gets one piece.
    ///
    /// # Safety
    /// As [`Conduit::get`].
    #[allow(clippy::too_many_arguments)]
    #[inline]
    unsafe fn get_fragment<U: Upcall>(
        &self,
        up: U,
        rar: &Rar<P>,
        dest: *mut u8,
        node: u32,
        remote: usize,
        n: usize,
        op: OpId,
    ) {
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
            // SAFETY: the caller keeps the destination until the operation is done, which the REPLY event says.
            (unsafe { self.tmpmd.bind(&self.portals, slot, dest, n, 1) }, 0, Some(slot))
        };
        self.wait_safe(up, ResourceNeed::of(&"a get for a send ticket"), || self.tickets.take(1));
        self.portals
            .get(
                md,
                offset,
                n,
                self.peers[node as usize],
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
        // SAFETY: these bytes of the descriptor have just been written by Portals for us, and nobody has been told.
        unsafe { *at.add(n / 2) ^= 1 };
    }
}
