//! Puts and gets that are complete when the call returns, without events at the initiator.
//!
//! An extension of this library; the conduit's fast path. `calls/cached.rs` serves most calls,
//! `calls/attached.rs` those to an address space. The rest walk the match list, and cache the
//! match if they can. Invariant: a call that returns false or
//! `None` has done nothing.

use super::NetworkInterface;
use super::cached::order;
use crate::arena::IOVECS;
use crate::arena::hazard::{HazardWord, NO_MD};
use crate::base::fault;
use crate::deliver::{ClaimResult, FindResult};
use crate::descriptor::traits::MemoryKind;
use crate::message::{OpHalf, OpKind, TargetAddress};
use crate::types::*;

impl NetworkInterface {
    /// `PtlPutRegion` from plain memory, in pieces that become one message, without events here:
    /// complete when this returns. Returns how many bytes were accepted: fewer than the message
    /// has where its descriptor truncates it. With `None` nothing was done. The target is this
    /// process itself or not mapped, or frames are on their way to it. Or the message does not
    /// match a descriptor in one piece of memory that can be reached.
    ///
    /// # Safety
    /// The pieces are readable.
    #[allow(clippy::too_many_arguments)]
    #[inline(always)]
    pub unsafe fn put_at_once<const N: usize>(
        &self,
        from: [MdIovec; N],
        target: PtlProcessId,
        pt_index: PtIndex,
        ac_index: AcIndex,
        match_bits: MatchBits,
        remote_offset: Size,
        hdr_data: HdrData,
    ) -> Result<Option<Size>, PtlError> {
        const { assert!(N <= IOVECS, "more pieces than a message can have") };
        let (bits, offset) = (match_bits, remote_offset);
        // SAFETY: the pieces are readable (`# Safety` above); a put only reads them.
        unsafe {
            self.at_once(OpKind::Put, from, target, pt_index, ac_index, bits, offset, hdr_data)
        }
    }

    /// A put whose bytes travel in its event (an inline payload, as some networks have in
    /// completion queue entries). The target sees an empty put at offset 0;
    /// [`NetworkInterface::eq_next`] and [`NetworkInterface::eq_next_arrival`] return the bytes,
    /// other calls do not. Complete when this returns, without events here. With `false` nothing
    /// was done, for a reason of [`NetworkInterface::put_at_once`] or of the descriptor. It has
    /// no queue, or START events, or manages its own offset, or its match cannot be cached.
    #[inline(always)]
    pub fn put_inline(
        &self,
        inline: &InlineWords,
        target: PtlProcessId,
        pt_index: PtIndex,
        ac_index: AcIndex,
        match_bits: MatchBits,
        hdr_data: HdrData,
    ) -> bool {
        self.inline_cached(inline, target, pt_index, ac_index, match_bits, hdr_data) || {
            let to = TargetAddress {
                target,
                pt_index,
                ac_index,
                match_bits,
                remote_offset: 0,
                hdr_data,
            };
            self.inline_by_walk(&{ *inline }, &to)
        }
    }

    #[inline(always)]
    fn inline_cached(
        &self,
        inline: &InlineWords,
        target: PtlProcessId,
        pt_index: PtIndex,
        ac_index: AcIndex,
        match_bits: MatchBits,
        hdr_data: HdrData,
    ) -> bool {
        let (kind, some) = (OpKind::Put, Some(inline));
        // SAFETY: no pieces.
        unsafe {
            self.by_cached_match(
                kind,
                &[],
                0,
                target,
                pt_index,
                ac_index,
                match_bits,
                0,
                hdr_data,
                some,
            )
        }
    }

    /// [`NetworkInterface::put_inline`] without a cached match: walks, caches the match if
    /// possible, and uses it.
    #[cold]
    #[inline(never)]
    fn inline_by_walk(&self, inline: &InlineWords, to: &TargetAddress) -> bool {
        let Ok(index) = self.state.peers.index_of(to.target) else { return false };
        let peer = match self.direct(index) {
            Ok(Some(peer)) if index != self.state.peers.index => peer,
            _ => return false,
        };
        let &TargetAddress { target, pt_index, ac_index, match_bits, hdr_data, .. } = to;
        let FindResult::Found(found) =
            self.state.peers.find(peer, &self.state.header(OpKind::Put, to, 0))
        else {
            return false;
        };
        self.state.peers.set_up_ring(peer, &found);
        self.inline_cached(inline, target, pt_index, ac_index, match_bits, hdr_data)
    }

    /// `PtlGetRegion` to plain memory, as [`NetworkInterface::put_at_once`].
    ///
    /// # Safety
    /// `to` is writable for `length` bytes.
    #[allow(clippy::too_many_arguments)]
    #[inline(never)]
    pub unsafe fn get_at_once(
        &self,
        to: *mut u8,
        length: Size,
        target: PtlProcessId,
        pt_index: PtIndex,
        ac_index: AcIndex,
        match_bits: MatchBits,
        remote_offset: Size,
    ) -> Result<Option<Size>, PtlError> {
        let to = [MdIovec { base: to.cast(), len: length }];
        // SAFETY: the range is writable (`# Safety` above); it is the only piece.
        unsafe {
            self.at_once(OpKind::Get, to, target, pt_index, ac_index, match_bits, remote_offset, 0)
        }
    }

    /// A put or get, by the cached match or by a walk.
    ///
    /// # Safety
    /// The pieces are readable by a put and writable by a get.
    #[allow(clippy::too_many_arguments)]
    #[inline(always)]
    unsafe fn at_once<const N: usize>(
        &self,
        kind: OpKind,
        pieces: [MdIovec; N],
        target: PtlProcessId,
        pt_index: PtIndex,
        ac_index: AcIndex,
        match_bits: MatchBits,
        remote_offset: Size,
        hdr_data: HdrData,
    ) -> Result<Option<Size>, PtlError> {
        let length = pieces.iter().map(|piece| piece.len).sum();
        // SAFETY: the pieces are valid (`# Safety` above), as the called function requires.
        let done = unsafe {
            self.by_cached_match(
                kind,
                &pieces,
                length,
                target,
                pt_index,
                ac_index,
                match_bits,
                remote_offset,
                hdr_data,
                None,
            )
        };
        if done {
            return Ok(Some(length));
        }
        // Built here and not earlier, and of copies, so that the fast path stores neither to
        // memory. That is 0.93 of row `long_64_request` and 0.97 of row `get_8` through Portals.
        let (pieces, to) = (
            { pieces },
            TargetAddress { target, pt_index, ac_index, match_bits, remote_offset, hdr_data },
        );
        // SAFETY: the pieces are valid (`# Safety` above), as the called function requires.
        unsafe { self.at_once_by_walk(kind, &pieces, length, &to) }
    }

    /// A put or get without a cached match.
    ///
    /// # Safety
    /// As [`NetworkInterface::at_once`].
    #[cold]
    #[inline(never)]
    unsafe fn at_once_by_walk(
        &self,
        kind: OpKind,
        pieces: &[MdIovec],
        length: Size,
        to: &TargetAddress,
    ) -> Result<Option<Size>, PtlError> {
        if let [piece] = pieces
            // SAFETY: the piece is valid (`# Safety` above).
            && unsafe { self.by_attach(kind, piece, to) }
        {
            return Ok(Some(length));
        }
        let index = self.state.peers.index_of(to.target)?;
        let peer = match self.direct(index)? {
            Some(peer) if index != self.state.peers.index => peer,
            _ => return Ok(None),
        };
        let header = self.state.header(kind, to, length);
        let FindResult::Found(found) = self.state.peers.find(peer, &header) else {
            return Ok(None);
        };
        if found.kind() == MemoryKind::Scattered {
            return Ok(None);
        }
        fault::point("put.matched");
        self.state.peers.prefetch(peer, &found);
        let hold = self.state.peers.hold(HazardWord::new(peer.index, found.md, NO_MD, NO_MD));
        let ClaimResult::Matched(matched) = self.state.peers.claim_found(
            peer,
            &header,
            FindResult::Found(found),
            &hold,
            [NO_MD; 2],
        ) else {
            hold.clear(false);
            return Ok(None);
        };
        fault::point("put.claimed");
        self.state.count(&hold, kind, length);
        let (half, accepted) = (OpHalf::Arrival(kind), matched.accepted.mlength);
        let link = self.state.peers.post_start(peer, &matched, &header, half);
        // SAFETY: the pieces are valid (`# Safety` above); no more bytes are accepted than they
        // have.
        let ok = unsafe { self.state.move_pieces(pieces, peer, &matched, kind == OpKind::Put) };
        order(kind);
        self.state.peers.post_end(peer, &matched, &header, half, link, ok);
        let has_queue = matched.traits.eq().is_some();
        self.state.peers.finish(hold, Some(peer), has_queue, false);
        // A failure to move the bytes is reported by the event, or else by this result.
        if ok || has_queue { Ok(Some(accepted)) } else { Err(PtlError::Segv) }
    }
}
