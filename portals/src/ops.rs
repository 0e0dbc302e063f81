//! The initiator's side of put, get and get-put.
//!
//! Towards a peer whose memory is mapped, an operation is complete when the call returns: the initiator runs
//! the target's side (see [`crate::deliver`]) and then posts its own events. Towards the others it hands the
//! message to [`crate::wire`].

use core::sync::atomic::{AtomicU64, Ordering, fence};

use crate::arena::{HAZARDS, IOVECS};
use crate::deliver::{Find, FramedTransfer, Matched, MessageHeader, OpHalf, OpKind, Seized};
use crate::doorbell;
use crate::fault;
use crate::hazard::{HazardHold, HazardWord, NOTHING};
use crate::md::{LocalMd, state};
use crate::ni::{MappedPeer, NetworkInterface};
use crate::types::md_options::*;
use crate::types::*;
use crate::wire::Submission;

/// Where a message goes: the arguments that all calls have in common.
#[derive(Clone, Copy)]
pub(crate) struct TargetAddress {
    pub(crate) target: PtlProcessId,
    pub(crate) pt_index: PtIndex,
    pub(crate) ac_index: AcIndex,
    pub(crate) match_bits: MatchBits,
    pub(crate) remote_offset: Size,
    pub(crate) hdr_data: HdrData,
}

/// A stretch of one of our descriptors.
#[derive(Clone, Copy)]
struct Region {
    md: MdHandle,
    /// Offset and length; `None` for the whole.
    part: Option<(Size, Size)>,
}

impl Region {
    /// Looks the descriptor up and checks the stretch: offset and length.
    #[inline(always)]
    fn resolve(self, ni: &NetworkInterface) -> Result<(LocalMd<'_>, Size, Size), PtlError> {
        let local = ni.local(self.md)?;
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

    #[inline(always)]
    pub(crate) fn header(&self, kind: OpKind, to: &TargetAddress, rlength: Size) -> MessageHeader {
        MessageHeader {
            kind,
            initiator: self.index,
            uid: self.uid,
            jid: self.jid,
            pt_index: to.pt_index,
            ac_index: to.ac_index,
            match_bits: to.match_bits,
            remote_offset: to.remote_offset,
            rlength,
            hdr_data: to.hdr_data,
        }
    }

    /// The peer, if its memory is mapped and nothing framed is on its way to it; else `None`: frames.
    #[inline(always)]
    fn direct(&self, target: u32) -> Result<Option<&MappedPeer>, PtlError> {
        let peer = self.peer(target)?;
        if self.framed_before.load(Ordering::Relaxed) && self.wire.busy(target) {
            return Ok(None);
        }
        Ok(peer)
    }

    /// Looks for a place and publishes the hazard that names it and our own descriptors.
    #[inline(always)]
    fn reach<'a>(
        &'a self,
        peer: Option<&'a MappedPeer>,
        header: &MessageHeader,
        near: [u32; 2],
    ) -> (Find<'a>, HazardHold<'a>) {
        let find = match peer {
            Some(peer) => self.find(peer, header),
            None => Find::Unreachable,
        };
        fault::point("put.matched");
        let word = match (find, peer) {
            (Find::Found(found), Some(peer)) => {
                self.prefetch(peer, &found);
                HazardWord::new(peer.index, found.md, near[0], near[1])
            }
            _ => HazardWord::near(near[0], near[1]),
        };
        (find, self.hold(word))
    }

    /// The slot of the hold is ours alone, and so are the counters that go with it.
    #[inline(always)]
    pub(crate) fn count(&self, hold: &HazardHold<'_>, kind: OpKind, bytes: Size) {
        // The number is below HAZARDS: said again, for the compiler.
        let counts = &self.counts[hold.number % HAZARDS];
        let add = |counter: &AtomicU64, n: u64| {
            counter.store(counter.load(Ordering::Relaxed).wrapping_add(n), Ordering::Relaxed);
        };
        if kind != OpKind::Get {
            add(&counts.puts, 1);
        }
        if kind != OpKind::Put {
            add(&counts.gets, 1);
        }
        add(&counts.bytes, bytes);
    }

    #[inline(always)]
    fn start_put(&self, region: Region, ack: AckReq, to: TargetAddress) -> Result<(), PtlError> {
        let index = self.index_of(to.target)?;
        loop {
            let (local, offset, length) = region.resolve(self)?;
            let header = self.header(OpKind::Put, &to, length);
            let near = [local.index; 2];
            let peer = self.direct(index)?;
            let (find, hold) = self.reach(peer, &header, near);
            if !local.unchanged() {
                hold.clear(false);
                continue;
            }
            let Some(send) = self.claim_local(&local, offset, length) else {
                hold.clear(false);
                return Err(PtlError::MdInvalid);
            };
            self.count(&hold, OpKind::Put, length);
            let mut accepted = None;
            let mut rings = false;
            match (peer, self.seize(peer.unwrap_or(&self.own), &header, find, &hold, near)) {
                (Some(peer), Seized::Matched(matched)) => {
                    fault::point("put.claimed");
                    let half = OpHalf::Arrival(OpKind::Put);
                    let link = self.post_start(peer, &matched, &header, half);
                    let ok = self.move_bytes(local.record, offset, peer, &matched, true);
                    self.post_end(peer, &matched, &header, half, link, ok);
                    rings = matched.traits.eq().is_some();
                    if ack == AckReq::Ack && !matched.traits.has(ACK_DISABLE) {
                        accepted = Some((matched.accepted, ok));
                    }
                }
                (Some(peer), Seized::Missed) => self.drop_at(peer),
                (_, Seized::Dead) => {}
                _ => {
                    let source = self.transfer_begin(&send, &header, OpHalf::Send);
                    let ack = ack == AckReq::Ack;
                    self.submit(hold, index, &header, Some(source), ack, region.md, 0);
                    return Ok(());
                }
            }
            let link = self.post_start(&self.own, &send, &header, OpHalf::Send);
            self.post_end(&self.own, &send, &header, OpHalf::Send, link, true);
            fault::point("put.sent");
            // An acknowledgement counts even where no event is logged.
            if let Some((accepted, ok)) = accepted {
                let header = MessageHeader { initiator: index, ..header };
                if !self.post_ack(&local, accepted.offset, accepted.mlength, &header, ok) {
                    self.drop_at(&self.own);
                }
            }
            self.finish(hold, peer, rings, send.traits.eq().is_some());
            return Ok(());
        }
    }

    #[inline(always)]
    fn start_get(&self, region: Region, from: TargetAddress) -> Result<(), PtlError> {
        let index = self.index_of(from.target)?;
        loop {
            let (local, offset, length) = region.resolve(self)?;
            let header = self.header(OpKind::Get, &from, length);
            let near = [local.index; 2];
            let peer = self.direct(index)?;
            let (find, hold) = self.reach(peer, &header, near);
            if !local.unchanged() {
                hold.clear(false);
                continue;
            }
            if !is_active(&local) {
                hold.clear(false);
                return Err(PtlError::MdInvalid);
            }
            self.count(&hold, OpKind::Get, length);
            match (peer, self.seize(peer.unwrap_or(&self.own), &header, find, &hold, near)) {
                (Some(peer), Seized::Matched(matched)) => {
                    fault::point("get.claimed");
                    let half = OpHalf::Arrival(OpKind::Get);
                    let link = self.post_start(peer, &matched, &header, half);
                    let answer = MessageHeader { initiator: index, ..header };
                    if let Some(reply) = self.claim_local(&local, offset, matched.accepted.mlength)
                    {
                        let reply_link =
                            self.post_start(&self.own, &reply, &answer, OpHalf::Reply);
                        let ok = self.move_bytes(local.record, offset, peer, &matched, false);
                        self.post_end(peer, &matched, &header, half, link, ok);
                        self.post_end(&self.own, &reply, &answer, OpHalf::Reply, reply_link, ok);
                    } else {
                        self.post_end(peer, &matched, &header, half, link, true);
                        self.drop_at(&self.own);
                    }
                    let rings = matched.traits.eq().is_some();
                    self.finish(hold, Some(peer), rings, local.traits().eq().is_some());
                }
                (Some(peer), Seized::Missed) => {
                    hold.clear(false);
                    self.drop_at(peer);
                }
                (_, Seized::Dead) => hold.clear(false),
                _ => self.submit(hold, index, &header, None, false, region.md, offset),
            }
            return Ok(());
        }
    }

    /// `PtlGetPut`: what was at the target goes to `get_md`, what is in `put_md` goes to the target,
    /// atomically with other get-puts.
    #[allow(clippy::too_many_arguments)]
    pub fn get_put(
        &self,
        get_md: MdHandle,
        put_md: MdHandle,
        target: PtlProcessId,
        pt_index: PtIndex,
        ac_index: AcIndex,
        match_bits: MatchBits,
        remote_offset: Size,
        hdr_data: HdrData,
    ) -> Result<(), PtlError> {
        let to = TargetAddress { target, pt_index, ac_index, match_bits, remote_offset, hdr_data };
        let index = self.index_of(target)?;
        loop {
            let (get, _, room) = Region { md: get_md, part: None }.resolve(self)?;
            let (put, _, length) = Region { md: put_md, part: None }.resolve(self)?;
            if length > u64::from(self.limits.max_getput_md) || room < length {
                return Err(PtlError::MdIllegal);
            }
            let header = self.header(OpKind::GetPut, &to, length);
            let near = [get.index, put.index];
            let peer = self.direct(index)?;
            let (find, hold) = self.reach(peer, &header, near);
            if !get.unchanged() || !put.unchanged() {
                hold.clear(false);
                continue;
            }
            let send = if is_active(&get) { self.claim_local(&put, 0, length) } else { None };
            let Some(send) = send else {
                hold.clear(false);
                return Err(PtlError::MdInvalid);
            };
            self.count(&hold, OpKind::GetPut, length);
            let matched =
                match (peer, self.seize(peer.unwrap_or(&self.own), &header, find, &hold, near)) {
                    (Some(peer), Seized::Matched(matched)) => Some((peer, matched)),
                    (Some(peer), Seized::Missed) => {
                        self.drop_at(peer);
                        None
                    }
                    (_, Seized::Dead) => None,
                    _ => {
                        let source = self.transfer_begin(&send, &header, OpHalf::Send);
                        self.submit(hold, index, &header, Some(source), false, get_md, 0);
                        return Ok(());
                    }
                };
            let mut bytes = [0u8; 64];
            let link = self.post_start(&self.own, &send, &header, OpHalf::Send);
            let read = self.copy_near(put.record.memory(), 0, &mut bytes[..length as usize], true);
            self.post_end(&self.own, &send, &header, OpHalf::Send, link, read);
            let mut rings = false;
            if let Some((peer, matched)) = &matched {
                rings = matched.traits.eq().is_some();
                let half = OpHalf::Arrival(OpKind::GetPut);
                let link = self.post_start(peer, matched, &header, half);
                let swapped = &mut bytes[..matched.accepted.mlength as usize];
                let ok = self.swap_bytes(peer, matched, swapped);
                self.post_end(peer, matched, &header, half, link, ok);
                let answer = MessageHeader { initiator: index, ..header };
                if let Some(reply) = self.claim_local(&get, 0, matched.accepted.mlength) {
                    let link = self.post_start(&self.own, &reply, &answer, OpHalf::Reply);
                    let ok = ok && self.copy_near(get.record.memory(), 0, swapped, false);
                    self.post_end(&self.own, &reply, &answer, OpHalf::Reply, link, ok);
                } else {
                    self.drop_at(&self.own);
                }
            }
            self.finish(hold, peer, rings, true);
            return Ok(());
        }
    }

    /// `PtlPutRegion` from plain memory, in pieces that become one message, without events here: complete when this returns. With
    /// `false` nothing was done: the target is ourselves or not mapped, or frames are on their way to it, or the message has no
    /// place in memory that is shared.
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
    ) -> Result<bool, PtlError> {
        const { assert!(N <= IOVECS, "more pieces than a message can have") };
        let (bits, offset) = (match_bits, remote_offset);
        // SAFETY: promised by the caller; a put only reads them.
        unsafe {
            self.at_once(OpKind::Put, from, target, pt_index, ac_index, bits, offset, hdr_data)
        }
    }

    /// A put whose bytes travel in its event, as those of some networks do in the entry of a completion queue: to the target an empty put at
    /// offset 0, of which [`NetworkInterface::eq_next`] and [`NetworkInterface::eq_next_arrival`] tell the bytes, and other calls do not. Complete when this
    /// returns, without events here. With `false` nothing was done: as of [`NetworkInterface::put_at_once`], or the descriptor has no queue, START
    /// events, or an offset of its own, or nothing that can be noted leads to it.
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
        self.inline_by_note(inline, target, pt_index, ac_index, match_bits, hdr_data) || {
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
    fn inline_by_note(
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
            self.by_note(kind, &[], 0, target, pt_index, ac_index, match_bits, 0, hdr_data, some)
        }
    }

    /// [`NetworkInterface::put_inline`] where no note served: leaves one, if that can be, and what goes by it.
    #[cold]
    #[inline(never)]
    fn inline_by_walk(&self, inline: &InlineWords, to: &TargetAddress) -> bool {
        let Ok(index) = self.index_of(to.target) else { return false };
        let peer = match self.direct(index) {
            Ok(Some(peer)) if index != self.index => peer,
            _ => return false,
        };
        let &TargetAddress { target, pt_index, ac_index, match_bits, hdr_data, .. } = to;
        let Find::Found(found) = self.find(peer, &self.header(OpKind::Put, to, 0)) else {
            return false;
        };
        self.set_up_ring(peer, &found);
        self.inline_by_note(inline, target, pt_index, ac_index, match_bits, hdr_data)
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
    ) -> Result<bool, PtlError> {
        let to = [MdIovec { base: to.cast(), len: length }];
        // SAFETY: promised by the caller.
        unsafe {
            self.at_once(OpKind::Get, to, target, pt_index, ac_index, match_bits, remote_offset, 0)
        }
    }

    /// # Safety
    /// The pieces of `near` are readable by a put and writable by a get.
    #[allow(clippy::too_many_arguments)]
    #[inline(always)]
    unsafe fn at_once<const N: usize>(
        &self,
        kind: OpKind,
        near: [MdIovec; N],
        target: PtlProcessId,
        pt_index: PtIndex,
        ac_index: AcIndex,
        match_bits: MatchBits,
        remote_offset: Size,
        hdr_data: HdrData,
    ) -> Result<bool, PtlError> {
        let length = near.iter().map(|piece| piece.len).sum();
        // SAFETY: promised by the caller.
        let done = unsafe {
            self.by_note(
                kind,
                &near,
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
            return Ok(true);
        }
        // Put together here, and nowhere else, so that it is not in memory before.
        let (near, to) = (
            { near },
            TargetAddress { target, pt_index, ac_index, match_bits, remote_offset, hdr_data },
        );
        // SAFETY: as above.
        unsafe { self.at_once_by_walk(kind, &near, length, &to) }
    }

    /// What no note is good enough for.
    ///
    /// # Safety
    /// As [`NetworkInterface::at_once`].
    #[cold]
    #[inline(never)]
    unsafe fn at_once_by_walk(
        &self,
        kind: OpKind,
        near: &[MdIovec],
        length: Size,
        to: &TargetAddress,
    ) -> Result<bool, PtlError> {
        let index = self.index_of(to.target)?;
        let peer = match self.direct(index)? {
            Some(peer) if index != self.index => peer,
            _ => return Ok(false),
        };
        let header = self.header(kind, to, length);
        let Find::Found(found) = self.find(peer, &header) else { return Ok(false) };
        if !self.shares(peer, found.kind()) {
            return Ok(false);
        }
        fault::point("put.matched");
        self.prefetch(peer, &found);
        let hold = self.hold(HazardWord::new(peer.index, found.md, NOTHING, NOTHING));
        let Seized::Matched(matched) =
            self.seize(peer, &header, Find::Found(found), &hold, [NOTHING; 2])
        else {
            hold.clear(false);
            return Ok(false);
        };
        fault::point("put.claimed");
        self.count(&hold, kind, length);
        let half = OpHalf::Arrival(kind);
        let link = self.post_start(peer, &matched, &header, half);
        // SAFETY: promised by the caller; no more than was asked for is accepted.
        let ok = unsafe { self.move_pieces(near, peer, &matched, kind == OpKind::Put) };
        order(kind);
        self.post_end(peer, &matched, &header, half, link, ok);
        let told = matched.traits.eq().is_some();
        self.finish(hold, Some(peer), told, false);
        // That the bytes did not get there is told by the event, or by this.
        if ok || told { Ok(true) } else { Err(PtlError::Segv) }
    }

    /// Clears the hazard and wakes who may sleep.
    #[inline(always)]
    pub(crate) fn finish(
        &self,
        hold: HazardHold<'_>,
        peer: Option<&MappedPeer>,
        rings: bool,
        rings_own: bool,
    ) {
        let rings_own = rings_own && !self.single;
        // The fence of the doorbell.
        hold.clear(rings || rings_own);
        fault::point("put.cleared");
        if rings && let Some(peer) = peer {
            doorbell::ring(peer.view.header());
        }
        if rings_own {
            doorbell::ring(self.own.view.header());
        }
    }

    /// Hands a message over to the frames, and clears the hazard.
    #[cold]
    #[allow(clippy::too_many_arguments)]
    fn submit(
        &self,
        hold: HazardHold<'_>,
        target: u32,
        header: &MessageHeader,
        source: Option<FramedTransfer>,
        ack: bool,
        md: MdHandle,
        local_offset: Size,
    ) {
        hold.clear(true);
        doorbell::ring(self.own.view.header());
        self.framed.fetch_add(1, Ordering::Relaxed);
        self.framed_before.store(true, Ordering::Relaxed);
        self.wire
            .submit(self, Submission { target, header: *header, source, ack, md, local_offset });
    }
}

/// No event here orders the bytes of an operation that is complete at once: a put's are seen before what this thread stores
/// later, a get's are no older than what it loads later.
#[inline(always)]
pub(crate) fn order(kind: OpKind) {
    fence(if kind == OpKind::Put { Ordering::Release } else { Ordering::Acquire });
}

/// Whether a descriptor still takes operations.
#[inline(always)]
fn is_active(local: &LocalMd<'_>) -> bool {
    !local.traits().counts() || local.cell.state.0.load(Ordering::Relaxed) & state::INACTIVE == 0
}

const _: () = {
    // A matched descriptor is copied around on the way; it stays small.
    assert!(size_of::<Matched<'_>>() <= 64);
};
