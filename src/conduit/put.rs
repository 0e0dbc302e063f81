//! Puts: data goes to the RAR of its target. The operation id travels in the match bits and
//! returns with the ACK, which says that the data has arrived.
//!
//! Called by the extended layer through `JobConduit`. The source is the segment itself
//! (RARSRC), a bounce buffer (a ReqSB chunk) or a temporary descriptor (TMPMD). Invariant: a
//! put acquires its chunk or descriptor first and its send ticket last, and waits with SAFE
//! polls only. It never waits for a chunk.

use super::at_once::RmaClaim;
use super::hold::Hold;
use super::match_bits::{MessageKind, RmaBits};
use super::pinned_transfer::LocalBytes;
use super::portals::{MOST_PIECES, Portals};
use super::queue::broken;
use super::{Conduit, OpId, ResourceNeed, Upcall};
use crate::client_memory::{Dst, RemoteRange, Src};
use crate::fault;
use crate::rank::JobRank;

impl<P: Portals> Conduit<P> {
    /// Puts to a segment. Each of the [`Conduit::fragments`] ends with [`Upcall::op_done`]. The
    /// source may be reused when this returns.
    pub fn put<U: Upcall>(&self, up: U, dst: RemoteRange, src: Src<'_>, op: OpId) {
        self.put_fragments(up, dst, src, op, false, None);
    }

    /// Whether puts of operations that [count departures](OpId::counts_departures) are possible:
    /// no piece of memory is registered for them.
    #[inline]
    pub fn reports_departures(&self) -> bool {
        self.pinned.get().is_none()
    }

    /// As [`Conduit::put`], but the source is read until the operation is done; if it [counts
    /// departures](OpId::counts_departures), until the fragment has departed.
    pub fn put_bulk<U: Upcall>(&self, up: U, dst: RemoteRange, src: Src<'static>, op: OpId) {
        self.put_fragments(up, dst, src, op, true, None);
    }

    /// As [`Conduit::put`], with what [`Conduit::claim`] has taken.
    pub fn put_claimed<U: Upcall>(
        &self,
        up: U,
        dst: RemoteRange,
        src: Src<'_>,
        op: OpId,
        claim: RmaClaim,
    ) {
        self.put_fragments(up, dst, src, op, false, Some(claim));
    }

    /// As [`Conduit::put_bulk`], with what [`Conduit::claim`] has taken.
    pub fn put_bulk_claimed<U: Upcall>(
        &self,
        up: U,
        dst: RemoteRange,
        src: Src<'static>,
        op: OpId,
        claim: RmaClaim,
    ) {
        self.put_fragments(up, dst, src, op, true, Some(claim));
    }

    /// Puts [`Conduit::most_pieces`] pieces at most to neighbouring bytes of a segment, by one
    /// message; together they have [`Conduit::fragments`] of 1. They are read until the operation
    /// is done: [`Upcall::op_done`].
    #[inline(never)]
    pub fn put_scattered<U: Upcall>(
        &self,
        up: U,
        dst: RemoteRange,
        pieces: &[Dst<'static>],
        op: OpId,
    ) {
        let mut sources = [Dst::empty(); MOST_PIECES];
        let sources = &mut sources[..pieces.len()];
        sources.copy_from_slice(pieces);
        if fault::on("flip_put")
            && let Some(last) = sources.last_mut()
        {
            *last = flipped((*last).into());
        }
        let need = ResourceNeed::of(&"a put for a memory descriptor");
        let slot = self.wait_safe(up, need, || self.tmpmd.take());
        // Its events are SEND and ACK.
        let from = self.tmpmd.bind_pieces(&self.portals, slot, sources, Hold::put(op.0), 2);
        let need = ResourceNeed::of(&"a put for a send ticket");
        self.wait_safe(up, need, || self.tickets.take(1));
        let rma = RmaBits { op, local: None, chunk: 0 };
        let to = self.in_segment(dst.rank(), dst.offset(), rma.pack(MessageKind::Put));
        self.portals.put(from, true, &to).unwrap_or_else(|e| broken(e));
        self.tmpmd.release(&self.portals, slot);
    }

    /// Puts; with `bulk`, the caller has a source that stays.
    #[inline]
    fn put_fragments<U: Upcall>(
        &self,
        up: U,
        dst: RemoteRange,
        src: Src<'_>,
        op: OpId,
        bulk: bool,
        claim: Option<RmaClaim>,
    ) {
        let n = src.len();
        let src = if fault::on("flip_put") && n != 0 { flipped(src).into() } else { src };
        if n > self.config.max_transfer {
            claim.into_iter().for_each(|claim| self.unclaim(claim));
            return self.put_large(up, dst, src, op, bulk);
        }
        let at = (dst.rank(), dst.offset());
        if n != 0 && self.put_fragment(up, at, src, op, bulk, claim) {
            self.wait_local(up);
        }
    }

    /// A put of several messages, or of registered memory.
    #[cold]
    #[inline(never)]
    fn put_large<U: Upcall>(&self, up: U, dst: RemoteRange, src: Src<'_>, op: OpId, bulk: bool) {
        if self.config.targets_regions() {
            return self.transfer(up, dst, LocalBytes::From(src), Some(op), bulk);
        }
        let largest = self.config.max_transfer;
        let mut left = 0;
        for at in (0..src.len()).step_by(largest) {
            let part = src.part(at, largest.min(src.len() - at));
            let to = (dst.rank(), dst.offset() + at);
            left += u32::from(self.put_fragment(up, to, part, op, bulk, None));
        }
        if left != 0 {
            self.wait_local(up);
        }
    }

    /// Puts one piece to an offset in the segment of a rank. Returns true if the event that
    /// its source may be reused is still to come.
    #[inline]
    fn put_fragment<U: Upcall>(
        &self,
        up: U,
        (rank, remote): (JobRank, usize),
        src: Src<'_>,
        op: OpId,
        bulk: bool,
        mut claim: Option<RmaClaim>,
    ) -> bool {
        let (n, local) = (src.len(), self.own_part(src));
        // A short copy is cheaper than waiting for the source to be reusable.
        let bounce = n <= self.config.put_bounce && (local.is_none() || !bulk);
        let mut rma = RmaBits { op, local: None, chunk: 0 };
        let hold = Hold::put(op.0);
        let mut slot = None;
        let from = if let Some(chunk) = bounce.then(|| self.reqsb.take(hold)).flatten() {
            self.reqsb.chunks.part(chunk, n).copy_from(src);
            rma.chunk = chunk;
            self.reqsb.part(chunk, n)
        } else if local.is_none() && self.pinned.get().is_some() {
            claim.into_iter().for_each(|claim| self.unclaim(claim));
            let to = RemoteRange::unmapped(rank, remote, n);
            self.transfer(up, to, LocalBytes::From(src), Some(op), bulk);
            return false;
        } else {
            rma.local = (!bulk).then(|| up.thread() as u8);
            local.unwrap_or_else(|| {
                let need = ResourceNeed::of(&"a put for a memory descriptor");
                let claimed = claim.as_mut().and_then(|claim| claim.slot.take());
                let taken =
                    claimed.unwrap_or_else(|| self.wait_safe(up, need, || self.tmpmd.take()));
                slot = Some(taken);
                // SAFETY: with `bulk` the source stays until the ACK; otherwise `wait_local` waits
                // for SEND, after which it is not read.
                let region = unsafe { src.until_complete() }.into();
                // Its events are SEND and ACK.
                self.tmpmd.bind(&self.portals, taken, region, hold, 2)
            })
        };
        match claim {
            Some(claim) => self.keep_ticket(claim),
            None => {
                let need = ResourceNeed::of(&"a put for a send ticket");
                self.wait_safe(up, need, || self.tickets.take(1));
            }
        }
        if rma.local.is_some() {
            self.thread(up).expect_local(self.config.par());
        }
        let to = self.in_segment(rank, remote, rma.pack(MessageKind::Put));
        self.portals.put(from, true, &to).unwrap_or_else(|e| broken(e));
        if let Some(slot) = slot {
            self.tmpmd.release(&self.portals, slot);
        }
        rma.local.is_some()
    }
}

/// A copy with one byte wrong, never freed: a planted fault.
fn flipped(src: Src<'_>) -> Dst<'static> {
    let mut copy = alloc::vec![0u8; src.len()];
    Dst::from(&mut copy[..]).copy_from(src);
    copy[src.len() / 2] ^= 1;
    Dst::from(copy.leak())
}
