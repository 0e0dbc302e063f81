//! Puts and gets of many pieces, each to or from an offset of its own, in few system calls.
//!
//! An extension of this library, for descriptors over an address space. Invariant: a call that
//! returns false has done nothing; otherwise the pieces have moved, without an event.

use super::NetworkInterface;
use super::cached::order;
use crate::access_fault::AccessFault;
use crate::arena::hazard::{HazardWord, NO_MD};
use crate::arena::peer_word;
use crate::deliver::{ClaimResult, FindResult, Matched};
use crate::message::{OpKind, TargetAddress};
use crate::peer::MappedPeer;
use crate::types::*;
use core::ffi::c_void;
use sys::attach::{self, AttachFailure, AttachPiece};
use sys::peer::Peer;

/// A piece of a scattered put or get.
#[derive(Clone, Copy, Debug)]
pub struct ScatteredPiece {
    /// First byte here.
    pub local: *mut c_void,
    /// Bytes.
    pub length: Size,
    /// Offset in the descriptor of the target.
    pub remote_offset: Size,
}

impl NetworkInterface {
    /// Puts or gets all pieces, complete when this returns. With `false` nothing was done. The
    /// target is this process itself or not mapped, or frames are on their way to it. Or the
    /// descriptor that matches is not one over its address space, without queue and state.
    ///
    /// # Safety
    /// The pieces are readable by a put and writable by a get.
    pub unsafe fn scattered_at_once(
        &self,
        put: bool,
        pieces: impl Iterator<Item = ScatteredPiece> + Clone,
        target: PtlProcessId,
        pt_index: PtIndex,
        ac_index: AcIndex,
        match_bits: MatchBits,
    ) -> bool {
        let kind = if put { OpKind::Put } else { OpKind::Get };
        let to = TargetAddress {
            target,
            pt_index,
            ac_index,
            match_bits,
            remote_offset: 0,
            hdr_data: 0,
        };
        let Ok(index) = self.state.peers.index_of(target) else { return false };
        let peer = match self.direct(index) {
            Ok(Some(peer)) if index != self.state.peers.index => peer,
            _ => return false,
        };
        let header = self.state.header(kind, &to, 0);
        let find = self.state.peers.find(peer, &header);
        let FindResult::Found(found) = find else { return false };
        if !found.is_plain_address_space() {
            return false;
        }
        let word = HazardWord::new(peer.index, found.md, NO_MD, NO_MD);
        let hold = self.state.peers.hold(word);
        let claim = self.state.peers.claim_found(peer, &header, find, &hold, [NO_MD; 2]);
        let moved = match claim {
            // SAFETY: the pieces are valid (`# Safety` above).
            ClaimResult::Matched(matched) => unsafe {
                self.scatter(put, pieces.clone(), peer, &matched)
            },
            _ => false,
        };
        if moved {
            let bytes = pieces.map(|piece| piece.length).sum();
            self.state.count(&hold, kind, bytes);
            order(kind);
        }
        self.state.peers.finish(hold, Some(peer), false, false);
        moved
    }

    /// Moves the pieces. The hazard names the descriptor.
    ///
    /// # Safety
    /// As [`NetworkInterface::scattered_at_once`].
    unsafe fn scatter(
        &self,
        put: bool,
        mut pieces: impl Iterator<Item = ScatteredPiece> + Clone,
        peer: &MappedPeer,
        matched: &Matched<'_>,
    ) -> bool {
        let cell = matched.cell;
        let (address, whole) = (peer_word(&cell.address), peer_word(&cell.length));
        let end = pieces.clone().map(|p| p.remote_offset.saturating_add(p.length)).max();
        let inside = Peer::new(end.unwrap_or(0)).at_most(whole.data()).is_some();
        if !inside || !cell.is_sealed(matched.traits.0) {
            return false;
        }
        let there = |piece: ScatteredPiece| address.data().wrapping_add(piece.remote_offset);
        let list = pieces.clone().map(|piece| AttachPiece {
            local: piece.local.cast(),
            remote: there(piece),
            length: piece.length as usize,
        });
        // SAFETY: the pieces are valid (`# Safety` above); the kernel checks the remote side.
        let moved = unsafe { attach::move_pieces(peer.attached_pid(), put, list) };
        if let Err((failure, at)) = moved
            && failure != AttachFailure::Process
            && let Some(piece) = pieces.nth(at)
        {
            let (local, length) = (piece.local.addr() as u64, piece.length);
            let (target, address) = (self.state.peers.process(peer.index), there(piece));
            let initiator = self.id();
            self.state.peers.report_fault(&match failure {
                AttachFailure::Denied => {
                    AccessFault::Denied { put, initiator, target, address, length }
                }
                _ if !attach::is_accessible(local, length, !put) => {
                    AccessFault::Initiator { put, address: local, length }
                }
                _ => AccessFault::Target { put, initiator, target, address, length },
            });
        }
        moved.is_ok()
    }
}
