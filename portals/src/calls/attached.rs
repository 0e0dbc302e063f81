//! Puts and gets of one piece by a cached match with an address space: one system call.
//!
//! Called by [`super::at_once`] after [`super::cached`], whose order of steps it has. Nothing is
//! posted, since such a descriptor has no queue. Invariant: a call that returns false may have
//! moved bytes, but has counted and reported nothing: the caller then walks, and moves them all.

use core::mem::MaybeUninit;
use core::sync::atomic::Ordering;

use super::NetworkInterface;
use super::cached::order;
use crate::arena::hazard::HazardWord;
use crate::arena::peer_word;
use crate::base::fault;
use crate::message::{OpKind, TargetAddress};
use crate::peer::match_cache;
use crate::types::*;
use sys::attach;

impl NetworkInterface {
    /// Puts or gets a piece.
    ///
    /// # Safety
    /// It is readable by a put and writable by a get.
    #[inline]
    pub(super) unsafe fn by_attach(
        &self,
        kind: OpKind,
        piece: &MdIovec,
        to: &TargetAddress,
    ) -> bool {
        let &TargetAddress { target, pt_index, ac_index, match_bits, remote_offset, .. } = to;
        let peers = &self.state.peers;
        let mut copy = MaybeUninit::uninit();
        let Some((peer, entry)) = peers.cached(kind, target, pt_index, match_bits) else {
            return false;
        };
        let key = match_cache::key(kind, pt_index, ac_index);
        let Some(cached) = entry.read(peers.single, &mut copy, key, match_bits) else {
            return false;
        };
        let p = &cached.prepared;
        if !p.base.is_null() || p.cell.is_null() {
            return false;
        }
        if self.framed_before.load(Ordering::Relaxed) && self.framer.busy(target.pid) {
            return false;
        }
        fault::point("put.matched");
        let hold = peers.hold(HazardWord::from_bits(p.hazard));
        fault::point("put.held");
        // SAFETY: not null, since `cell` is not, and a word of the peer's arena, which stays
        // mapped.
        let pt = unsafe { &*p.pt };
        // SAFETY: as `pt`.
        let ac = unsafe { &*p.ac };
        // SAFETY: as `pt`.
        let cell = unsafe { &*p.cell };
        let address = peer_word(&cell.address);
        let claimed = self.claim_cached(cached, pt, ac, cell, piece.len, remote_offset);
        let moved = claimed.is_some() && cell.is_sealed(cached.traits.0) && {
            fault::point("put.claimed");
            let (pid, at) = (peer.attached_pid(), address.data().wrapping_add(remote_offset));
            let (local, n) = (piece.base.cast::<u8>(), piece.len as usize);
            let moved = match kind {
                // SAFETY: the piece is valid (`# Safety`); the kernel checks the remote side.
                OpKind::Put => unsafe { attach::write(pid, at, local, n) },
                // SAFETY: as above.
                _ => unsafe { attach::read(pid, at, local, n) },
            };
            moved.is_ok()
        };
        fault::point("put.copied");
        if moved {
            order(kind);
            self.state.count(&hold, kind, piece.len);
        }
        peers.finish(hold, Some(peer), false, false);
        moved
    }
}
