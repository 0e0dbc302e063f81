//! The events of a delivery, and giving its claim back: steps 4 and 5.
//!
//! Called for both sides of an operation: the target's (PUT, GET, GETPUT) and the initiator's
//! (SEND, REPLY, ACK). Invariant: UNLINK is posted once, by the party that gave the last claim
//! back, after every other event.

use core::ptr;
use core::sync::atomic::Ordering;

use super::Matched;
use crate::arena::EqCell;
use crate::base::fault;
use crate::descriptor::record::LocalMd;
use crate::descriptor::state::{self, Accepted};
use crate::event::ring::{EventRing, Posting};
use crate::message::{MessageHeader, OpHalf};
use crate::peer::{MappedPeer, Peers};
use crate::types::md_options::*;
use crate::types::*;

impl Peers {
    /// Posts to a queue of `peer`, which may be this process: the position, if there was room. The
    /// caller's hazard names the descriptor.
    #[inline(always)]
    pub(crate) fn post(
        &self,
        peer: &MappedPeer,
        eq: u32,
        key: u64,
        event: &Posting,
    ) -> Option<u64> {
        let (ring, eq_cell) = ring_of(peer, eq, key)?;
        ring.post(eq_cell, self.index, event)
    }

    #[inline(always)]
    pub(crate) fn posting(
        &self,
        matched: &Matched<'_>,
        header: &MessageHeader,
        kind: PtlEventKind,
    ) -> Posting {
        Posting {
            kind,
            fail: false,
            pt_index: header.pt_index,
            initiator: header.initiator,
            md: matched.md,
            generation: matched.generation,
            match_bits: header.match_bits,
            hdr_data: header.hdr_data,
            rlength: header.rlength,
            mlength: matched.accepted.mlength,
            offset: matched.accepted.offset,
            link: 0,
            threshold: matched.accepted.threshold,
        }
    }

    /// Posts the START event of a matched message, if it is enabled: its sequence, else 0.
    #[inline(always)]
    pub(crate) fn post_start(
        &self,
        peer: &MappedPeer,
        matched: &Matched<'_>,
        header: &MessageHeader,
        half: OpHalf,
    ) -> Seq {
        match matched.traits.eq() {
            Some(eq) if !matched.traits.has(EVENT_START_DISABLE) => {
                let event = self.posting(matched, header, half.start());
                self.post(peer, eq, matched.eq_key, &event).unwrap_or(0) as Seq
            }
            _ => 0,
        }
    }

    /// Posts END if it is enabled, gives the claim back, and posts UNLINK if it is due.
    #[inline(always)]
    pub(crate) fn post_end(
        &self,
        peer: &MappedPeer,
        matched: &Matched<'_>,
        header: &MessageHeader,
        half: OpHalf,
        link: Seq,
        ok: bool,
    ) {
        let sequence = self.post_end_only(peer, matched, header, half, link, ok);
        self.give_back(peer, matched, header, sequence);
    }

    /// Posts END if it is enabled, and keeps the claim: the sequence, else 0.
    #[inline(always)]
    pub(crate) fn post_end_only(
        &self,
        peer: &MappedPeer,
        matched: &Matched<'_>,
        header: &MessageHeader,
        half: OpHalf,
        link: Seq,
        ok: bool,
    ) -> Seq {
        if let Some(eq) = matched.traits.eq()
            && !matched.traits.has(EVENT_END_DISABLE)
            && !(half == OpHalf::Reply && fault::loses_completion())
        {
            let mut event = self.posting(matched, header, half.end());
            event.link = link;
            event.fail = !ok;
            return self.post(peer, eq, matched.eq_key, &event).unwrap_or(0) as Seq;
        }
        0
    }

    /// Gives a claim back after the operation's last event, whose sequence is `link`; posts
    /// UNLINK if it is due.
    #[inline(always)]
    pub(crate) fn give_back(
        &self,
        peer: &MappedPeer,
        matched: &Matched<'_>,
        header: &MessageHeader,
        link: Seq,
    ) {
        fault::point("put.ended");
        if state::give_back(matched.cell, matched.traits) {
            // Copies, so that the fast path keeps both in registers.
            self.post_unlink(peer, &{ *matched }, &{ *header }, link);
        }
    }

    /// Posts UNLINK, if it is logged, for the caller that gave the last claim back.
    #[cold]
    #[inline(never)]
    pub(crate) fn post_unlink(
        &self,
        peer: &MappedPeer,
        matched: &Matched<'_>,
        header: &MessageHeader,
        link: Seq,
    ) {
        if matched.traits.logs()
            && let Some(eq) = matched.traits.eq()
        {
            fault::point("put.unlinked");
            let mut event = self.posting(matched, header, PtlEventKind::Unlink);
            event.link = link;
            self.post(peer, eq, matched.eq_key, &event);
        }
    }

    /// Claims the descriptor of a put for its ACK and posts the ACK; `ok`: all bytes arrived.
    /// False if the descriptor no longer accepts it. A hazard of the caller names it;
    /// `header.initiator` is the target.
    #[inline(always)]
    pub(crate) fn post_ack(
        &self,
        local: &LocalMd<'_>,
        offset: u64,
        mlength: u64,
        header: &MessageHeader,
        ok: bool,
    ) -> bool {
        let Some(matched) = claim_local(local, offset, mlength) else { return false };
        let mut sequence = 0;
        if let Some(eq) = matched.traits.eq()
            && matched.traits.logs()
            && !fault::loses_completion()
        {
            let mut event = self.posting(&matched, header, PtlEventKind::Ack);
            event.fail = !ok;
            sequence = self.post(&self.own, eq, matched.eq_key, &event).unwrap_or(0) as Seq;
        }
        self.give_back(&self.own, &matched, header, sequence);
        true
    }
}

/// Claims a descriptor of this process for the initiator's side of an operation. A hazard of the
/// caller names it.
#[inline(always)]
pub(crate) fn claim_local<'a>(
    local: &LocalMd<'a>,
    offset: u64,
    mlength: u64,
) -> Option<Matched<'a>> {
    let traits = local.traits();
    let threshold = state::claim_own(local.cell, traits)?;
    Some(Matched {
        md: local.index,
        cell: local.cell,
        traits,
        generation: local.handle().0 >> 16,
        eq_key: local.cell.eq_key.load(Ordering::Relaxed),
        accepted: Accepted { offset, mlength, threshold },
        base: ptr::null_mut(),
    })
}

/// The ring of a queue of `peer`, set up, if the queue exists. The caller's hazard names a
/// descriptor that logs to it.
#[inline(always)]
pub(crate) fn ring_of(peer: &MappedPeer, eq: u32, key: u64) -> Option<(&EventRing, &EqCell)> {
    let (ring, cell) = (peer.rings.get(eq as usize)?, peer.view.eq(eq)?);
    (ring.is(key) || ring.follow(&peer.view, cell, key)).then_some((ring, cell))
}
