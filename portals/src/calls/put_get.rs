//! Put and get: the initiator's side.
//!
//! For a mapped peer, the initiator runs the target's side (see [`crate::deliver`]) and then
//! posts its own events. The operation is complete when the call returns. All other messages go
//! to [`crate::transfer::framer`]. These are messages for peers that are not mapped, for
//! private memory that cannot be reached, and behind a framed message. Invariant: messages of a
//! pair match in the order of the calls.

use core::sync::atomic::Ordering;

use super::NetworkInterface;
use crate::arena::doorbell;
use crate::arena::hazard::{HazardHold, HazardWord};
use crate::base::fault;
use crate::deliver::{ClaimResult, FindResult, Matched, claim_local};
use crate::descriptor::record::LocalMd;
use crate::descriptor::state::{self, Accepted};
use crate::descriptor::traits::Traits;
use crate::message::{MessageHeader, OpHalf, OpKind, TargetAddress};
use crate::peer::MappedPeer;
use crate::transfer::framed::FramedTransfer;
use crate::transfer::submission::Submission;
use crate::types::md_options::*;
use crate::types::*;

/// A part of one of our descriptors.
#[derive(Clone, Copy)]
pub(super) struct Region {
    pub(super) md: MdHandle,
    /// Offset and length; `None` for the whole.
    pub(super) part: Option<(Size, Size)>,
}

impl Region {
    /// Looks the descriptor up and checks the part: offset and length.
    #[inline(always)]
    pub(super) fn resolve(
        self,
        ni: &NetworkInterface,
    ) -> Result<(LocalMd<'_>, Size, Size), PtlError> {
        let local = ni.state.local(self.md)?;
        let all = local.length();
        match self.part {
            None => Ok((local, 0, all)),
            Some((offset, length)) if offset.checked_add(length).is_some_and(|end| end <= all) => {
                Ok((local, offset, length))
            }
            Some(_) => Err(PtlError::MdIllegal),
        }
    }
}

/// A put or get whose descriptors are named by a hazard.
struct Begun<'a> {
    /// The target.
    index: u32,
    /// `None`: to be reached by frames.
    peer: Option<&'a MappedPeer>,
    local: LocalMd<'a>,
    offset: Size,
    header: MessageHeader,
    find: FindResult<'a>,
    hold: HazardHold<'a>,
}

/// The room for a message at its target.
pub(super) enum TargetClaim<'a> {
    At(&'a MappedPeer, Matched<'a>),
    /// The message was dropped, or the target is dead.
    Nowhere,
    /// The message needs frames.
    ByFrames,
}

impl NetworkInterface {
    /// `PtlPut`
    #[allow(clippy::too_many_arguments)]
    pub fn put(
        &self,
        md: MdHandle,
        ack: AckReq,
        target: PtlProcessId,
        pt_index: PtIndex,
        ac_index: AcIndex,
        match_bits: MatchBits,
        remote_offset: Size,
        hdr_data: HdrData,
    ) -> Result<(), PtlError> {
        let to = TargetAddress { target, pt_index, ac_index, match_bits, remote_offset, hdr_data };
        self.start_put(Region { md, part: None }, ack, to)
    }

    /// `PtlPutRegion`
    #[allow(clippy::too_many_arguments)]
    pub fn put_region(
        &self,
        md: MdHandle,
        local_offset: Size,
        length: Size,
        ack: AckReq,
        target: PtlProcessId,
        pt_index: PtIndex,
        ac_index: AcIndex,
        match_bits: MatchBits,
        remote_offset: Size,
        hdr_data: HdrData,
    ) -> Result<(), PtlError> {
        let to = TargetAddress { target, pt_index, ac_index, match_bits, remote_offset, hdr_data };
        self.start_put(Region { md, part: Some((local_offset, length)) }, ack, to)
    }

    /// `PtlGet`
    pub fn get(
        &self,
        md: MdHandle,
        target: PtlProcessId,
        pt_index: PtIndex,
        ac_index: AcIndex,
        match_bits: MatchBits,
        remote_offset: Size,
    ) -> Result<(), PtlError> {
        let from =
            TargetAddress { target, pt_index, ac_index, match_bits, remote_offset, hdr_data: 0 };
        self.start_get(Region { md, part: None }, from)
    }

    /// `PtlGetRegion`
    #[allow(clippy::too_many_arguments)]
    pub fn get_region(
        &self,
        md: MdHandle,
        local_offset: Size,
        length: Size,
        target: PtlProcessId,
        pt_index: PtIndex,
        ac_index: AcIndex,
        match_bits: MatchBits,
        remote_offset: Size,
    ) -> Result<(), PtlError> {
        let from =
            TargetAddress { target, pt_index, ac_index, match_bits, remote_offset, hdr_data: 0 };
        self.start_get(Region { md, part: Some((local_offset, length)) }, from)
    }

    /// The peer, if its memory is mapped and no framed message is on its way to it. `None`: use
    /// frames.
    #[inline(always)]
    pub(super) fn direct(&self, target: u32) -> Result<Option<&MappedPeer>, PtlError> {
        let peer = self.state.peers.peer(target)?;
        if self.framed_before.load(Ordering::Relaxed) && self.framer.busy(target) {
            return Ok(None);
        }
        Ok(peer)
    }

    /// Looks for a descriptor and publishes the hazard that names it and our own descriptors.
    #[inline(always)]
    pub(super) fn reach<'a>(
        &'a self,
        peer: Option<&'a MappedPeer>,
        header: &MessageHeader,
        own_mds: [u32; 2],
    ) -> (FindResult<'a>, HazardHold<'a>) {
        let find = match peer {
            Some(peer) => self.state.peers.find(peer, header),
            None => FindResult::Unreachable,
        };
        fault::point("put.matched");
        let word = match (find, peer) {
            (FindResult::Found(found), Some(peer)) => {
                self.state.peers.prefetch(peer, &found);
                HazardWord::new(peer.index, found.md, own_mds[0], own_mds[1])
            }
            _ => HazardWord::own(own_mds[0], own_mds[1]),
        };
        (find, self.state.peers.hold(word))
    }

    /// Claims room at the target for a message whose initiator's side has been claimed.
    #[inline(always)]
    pub(super) fn claim_target<'a>(
        &'a self,
        peer: Option<&'a MappedPeer>,
        header: &MessageHeader,
        find: FindResult<'a>,
        hold: &HazardHold<'_>,
        own_mds: [u32; 2],
    ) -> TargetClaim<'a> {
        let Some(peer) = peer else { return TargetClaim::ByFrames };
        match self.state.peers.claim_found(peer, header, find, hold, own_mds) {
            ClaimResult::Matched(matched) => TargetClaim::At(peer, matched),
            ClaimResult::Missed => {
                self.state.dropped(peer, header.pt_index, header.match_bits);
                TargetClaim::Nowhere
            }
            ClaimResult::Dead => TargetClaim::Nowhere,
            ClaimResult::Unreachable => TargetClaim::ByFrames,
        }
    }

    /// The first steps of a put or get: finds both sides and publishes the hazard.
    #[inline(always)]
    fn begin(
        &self,
        kind: OpKind,
        region: Region,
        to: &TargetAddress,
    ) -> Result<Begun<'_>, PtlError> {
        let index = self.state.peers.index_of(to.target)?;
        loop {
            let (local, offset, length) = region.resolve(self)?;
            let header = self.state.header(kind, to, length);
            let peer = self.direct(index)?;
            let (find, hold) = self.reach(peer, &header, [local.index; 2]);
            if local.unchanged() {
                return Ok(Begun { index, peer, local, offset, header, find, hold });
            }
            hold.clear(false);
        }
    }

    #[inline(always)]
    fn start_put(&self, region: Region, ack: AckReq, to: TargetAddress) -> Result<(), PtlError> {
        let Begun { index, peer, local, offset, header, find, hold } =
            self.begin(OpKind::Put, region, &to)?;
        let (own, length) = (&self.state.peers.own, header.rlength);
        let Some(send) = claim_local(&local, offset, length) else {
            hold.clear(false);
            return Err(PtlError::MdInvalid);
        };
        self.state.count(&hold, OpKind::Put, length);
        let mut accepted = None;
        let mut rings = false;
        match self.claim_target(peer, &header, find, &hold, [local.index; 2]) {
            TargetClaim::At(peer, matched) => {
                fault::point("put.claimed");
                let half = OpHalf::Arrival(OpKind::Put);
                let link = self.state.peers.post_start(peer, &matched, &header, half);
                let ok = self.state.move_bytes(local.record, offset, peer, &matched, true);
                self.state.peers.post_end(peer, &matched, &header, half, link, ok);
                rings = matched.traits.eq().is_some();
                if is_acknowledged(ack, send.traits) && !matched.traits.has(ACK_DISABLE) {
                    accepted = Some((matched.accepted, ok));
                }
            }
            TargetClaim::Nowhere => {}
            TargetClaim::ByFrames => {
                // Copies, so that the fast path keeps both in registers: 0.95 of row
                // `one_way_request`, mode `events`.
                let (send, header) = ({ send }, { header });
                let source = self.state.transfer_begin(&send, &header, OpHalf::Send);
                let ack = is_acknowledged(ack, send.traits);
                self.submit(hold, index, &header, Some(source), ack, region.md, 0);
                return Ok(());
            }
        }
        let link = self.state.peers.post_start(own, &send, &header, OpHalf::Send);
        self.state.peers.post_end(own, &send, &header, OpHalf::Send, link, true);
        fault::point("put.sent");
        if let Some((Accepted { offset, mlength, .. }, ok)) = accepted {
            let header = MessageHeader { initiator: index, ..header };
            if !self.state.peers.post_ack(&local, offset, mlength, &header, ok) {
                self.state.dropped(own, header.pt_index, header.match_bits);
            }
        }
        self.state.peers.finish(hold, peer, rings, send.traits.eq().is_some());
        Ok(())
    }

    #[inline(always)]
    fn start_get(&self, region: Region, from: TargetAddress) -> Result<(), PtlError> {
        let Begun { index, peer, local, offset, header, find, hold } =
            self.begin(OpKind::Get, region, &from)?;
        if !is_active(&local) {
            hold.clear(false);
            return Err(PtlError::MdInvalid);
        }
        self.state.count(&hold, OpKind::Get, header.rlength);
        match self.claim_target(peer, &header, find, &hold, [local.index; 2]) {
            TargetClaim::At(peer, matched) => {
                fault::point("get.claimed");
                let own = &self.state.peers.own;
                let half = OpHalf::Arrival(OpKind::Get);
                let link = self.state.peers.post_start(peer, &matched, &header, half);
                let answer = MessageHeader { initiator: index, ..header };
                if let Some(reply) = claim_local(&local, offset, matched.accepted.mlength) {
                    let reply_link =
                        self.state.peers.post_start(own, &reply, &answer, OpHalf::Reply);
                    let ok = self.state.move_bytes(local.record, offset, peer, &matched, false);
                    self.state.peers.post_end(peer, &matched, &header, half, link, ok);
                    self.state.peers.post_end(own, &reply, &answer, OpHalf::Reply, reply_link, ok);
                } else {
                    self.state.peers.post_end(peer, &matched, &header, half, link, true);
                    self.state.dropped(own, header.pt_index, header.match_bits);
                }
                let rings = matched.traits.eq().is_some();
                self.state.peers.finish(hold, Some(peer), rings, local.traits().eq().is_some());
            }
            TargetClaim::Nowhere => hold.clear(false),
            TargetClaim::ByFrames => {
                self.submit(hold, index, &{ header }, None, false, region.md, offset)
            }
        }
        Ok(())
    }

    /// Hands a message to the framer, and clears the hazard.
    #[cold]
    #[allow(clippy::too_many_arguments)]
    pub(super) fn submit(
        &self,
        hold: HazardHold<'_>,
        target: u32,
        header: &MessageHeader,
        source: Option<FramedTransfer>,
        ack: bool,
        md: MdHandle,
        local_offset: Size,
    ) {
        if self.state.peers.is_mapped(target) {
            self.framed_before.store(true, Ordering::Relaxed);
            if header.kind != OpKind::Put {
                self.state.mds[(md.0 & 0xffff) as usize].asked.fetch_add(1, Ordering::Relaxed);
            }
        }
        hold.clear(true);
        doorbell::ring(self.state.peers.own.view.header());
        self.framed.fetch_add(1, Ordering::Relaxed);
        self.framer.submit(
            &self.state,
            Submission { target, header: *header, source, ack, md, local_offset },
        );
        self.framer.meet(&self.state, target);
    }
}

/// Whether an acknowledgement is sent, if the target enables it: to a descriptor with a queue.
#[inline(always)]
fn is_acknowledged(ack: AckReq, source: Traits) -> bool {
    ack == AckReq::Ack && source.eq().is_some()
}

/// Whether a descriptor still accepts operations.
#[inline(always)]
pub(super) fn is_active(local: &LocalMd<'_>) -> bool {
    !local.traits().counts() || local.cell.state.0.load(Ordering::Relaxed) & state::INACTIVE == 0
}
