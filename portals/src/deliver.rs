//! The target's side of a message: the only code that walks a match list.
//!
//! Run by the initiator for a peer whose memory it has mapped, and by the target's own progress for frames,
//! possibly at the same time. `wire` uses the same [`FramedTransfer`]s on both sides.
//!
//! # A delivery, step by step
//!
//! 1. [`NetworkInterface::find`] reads access control, the list's version, match entries and descriptors, and
//!    chooses. It writes nothing. An initiator that dies here leaves no trace.
//! 2. The hazard that names the descriptor is published, then the version is read again. From here on the
//!    owner does not take the descriptor away; if the initiator stops or dies, it stays in use.
//! 3. [`crate::md::claim`] takes a place (no write if the descriptor counts nothing). An initiator that dies
//!    from here on leaves a hole in a locally managed descriptor, as a network that loses the rest of a
//!    message would.
//! 4. START is posted, the bytes move, END is posted (each event: see `eq`).
//! 5. The claim is given back; the last one of a descriptor that is through posts UNLINK.
//! 6. The hazard is cleared, and sleepers are woken.

use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicU32, Ordering, fence};

use crate::acl;
use crate::arena::{AcEntry, EqCell, MdCell, PtEntry};
use crate::doorbell;
use crate::eq::{EventRing, Posting};
use crate::fault;
use crate::hazard::{HazardHold, HazardWord, NOTHING};
use crate::md::{self, Accepted, LocalMd, MdMemory, MemoryKind, Traits, state};
use crate::nal::PeerState;
use crate::ni::{MappedPeer, NetworkInterface};
use crate::shortcut::{self, CachedMatch, PreparedDelivery};
use crate::types::md_options::*;
use crate::types::*;

/// What a message asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OpKind {
    Put,
    Get,
    GetPut,
}

impl OpKind {
    /// The options that a descriptor must have to respond.
    #[inline(always)]
    fn needs(self) -> u32 {
        match self {
            OpKind::Put => OP_PUT,
            OpKind::Get => OP_GET,
            OpKind::GetPut => OP_PUT | OP_GET,
        }
    }
}

/// The part of a message that decides where it goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MessageHeader {
    pub(crate) kind: OpKind,
    /// Index of the initiator in the fabric (its `PtlProcessId::pid`).
    pub(crate) initiator: u32,
    pub(crate) uid: Uid,
    pub(crate) jid: Jid,
    pub(crate) pt_index: PtIndex,
    pub(crate) ac_index: AcIndex,
    pub(crate) match_bits: MatchBits,
    pub(crate) remote_offset: Size,
    pub(crate) rlength: Size,
    pub(crate) hdr_data: HdrData,
}

/// Which half of an operation a [`FramedTransfer`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OpHalf {
    /// The target's side of an operation.
    Arrival(OpKind),
    /// The initiator's side: the bytes of a put or get-put leave (SEND events).
    Send,
    /// The initiator's side: the bytes of a get or get-put arrive (REPLY events).
    Reply,
}

impl OpHalf {
    #[inline(always)]
    fn start(self) -> PtlEventKind {
        match self {
            OpHalf::Arrival(OpKind::Put) => PtlEventKind::PutStart,
            OpHalf::Arrival(OpKind::Get) => PtlEventKind::GetStart,
            OpHalf::Arrival(OpKind::GetPut) => PtlEventKind::GetPutStart,
            OpHalf::Send => PtlEventKind::SendStart,
            OpHalf::Reply => PtlEventKind::ReplyStart,
        }
    }

    #[inline(always)]
    fn end(self) -> PtlEventKind {
        match self {
            OpHalf::Arrival(OpKind::Put) => PtlEventKind::PutEnd,
            OpHalf::Arrival(OpKind::Get) => PtlEventKind::GetEnd,
            OpHalf::Arrival(OpKind::GetPut) => PtlEventKind::GetPutEnd,
            OpHalf::Send => PtlEventKind::SendEnd,
            OpHalf::Reply => PtlEventKind::ReplyEnd,
        }
    }
}

/// A hold on a memory descriptor of this process while the bytes of one framed message move: its START event
/// has been posted, its END event has not. The descriptor counts as in use (`PTL_MD_IN_USE`) until
/// [`NetworkInterface::transfer_end`].
#[derive(Debug)]
pub(crate) struct FramedTransfer {
    pub(crate) half: OpHalf,
    pub(crate) md: MdHandle,
    /// Offset in the descriptor, in bytes.
    pub(crate) offset: Size,
    /// Bytes accepted.
    pub(crate) mlength: Size,
    /// The message; of a REPLY, `initiator` is the target.
    pub(crate) header: MessageHeader,
    /// Whether an acknowledgement may leave (Arrival of a put: the descriptor does not have `ACK_DISABLE`).
    pub(crate) ack_allowed: bool,
    /// Sequence of the START event, 0 if there was none.
    pub(crate) link: Seq,
    /// The descriptor when the operation was accepted: it may be updated before the last byte has moved.
    pub(crate) memory: MdMemory,
    matched: TransferTarget,
}

/// The part of a [`Matched`] that a [`FramedTransfer`] keeps.
#[derive(Clone, Copy, Debug)]
struct TransferTarget {
    traits: Traits,
    eq_key: u64,
    threshold: i32,
}

/// A descriptor that a message could go to.
#[derive(Clone, Copy)]
pub(crate) struct Found<'a> {
    pub(crate) md: u32,
    cell: &'a MdCell,
    traits: Traits,
    length: u64,
    max_size: u64,
    /// As the descriptor was when it was found.
    accepted: Accepted,
    pt: &'a PtEntry,
    version: u64,
}

impl Found<'_> {
    /// Where its memory lies.
    pub(crate) fn kind(&self) -> MemoryKind {
        self.traits.kind()
    }
}

/// What a walk found.
#[derive(Clone, Copy)]
pub(crate) enum Find<'a> {
    Found(Found<'a>),
    /// It goes nowhere: to be dropped.
    Missed,
    /// Its place lies in memory that cannot be reached from here.
    Unreachable,
    /// The target died while it was changing the list.
    Dead,
}

/// A descriptor in which a message has a place.
#[derive(Clone, Copy)]
pub(crate) struct Matched<'a> {
    pub(crate) md: u32,
    pub(crate) cell: &'a MdCell,
    pub(crate) traits: Traits,
    pub(crate) generation: u32,
    /// Which queue it logs to, beyond reuse of the index.
    pub(crate) eq_key: u64,
    pub(crate) accepted: Accepted,
}

/// What came of claiming a place.
pub(crate) enum Seized<'a> {
    Matched(Matched<'a>),
    Missed,
    Unreachable,
    Dead,
}

/// How a walk ended.
enum Walk<'a> {
    /// With the match bits that decide whether another message goes the same way, if they alone do.
    Chosen(Found<'a>, Option<u64>),
    Unreachable,
    End,
    /// What was read does not belong together.
    Again,
}

impl NetworkInterface {
    /// Where would this message go now? Writes nothing that peers see. Waits while the owner changes the
    /// list.
    #[inline(always)]
    pub(crate) fn find<'a>(&self, peer: &'a MappedPeer, header: &MessageHeader) -> Find<'a> {
        match self.find_by_shortcut(peer, header) {
            Some(found) => Find::Found(found),
            None => self.find_by_walk(peer, header),
        }
    }

    #[inline(always)]
    fn find_by_shortcut<'a>(
        &self,
        peer: &'a MappedPeer,
        header: &MessageHeader,
    ) -> Option<Found<'a>> {
        let pt = peer.view.pt(header.pt_index)?;
        let ac = peer.view.ac(header.ac_index)?;
        let mut copy = MaybeUninit::uninit();
        let key = shortcut::key(header.kind, header.pt_index, header.ac_index);
        let way = peer.shortcuts.of(header.kind, header.pt_index, header.match_bits);
        let way = way.read(self.single, &mut copy, key, header.match_bits)?;
        // Acquire pairs with the Release in `pt_end_change`, of the walk's time or later: if it is the same
        // version, the list is the same.
        let version = pt.version.load(Ordering::Acquire);
        if header.initiator != self.index
            || version != way.version
            || ac.version.load(Ordering::Acquire) != way.ac_version
        {
            return None;
        }
        let cell = peer.view.md(way.md as u32)?;
        let now = if way.traits.counts() { cell.state.0.load(Ordering::Relaxed) } else { 0 };
        let (accepted, _) = md::accept(
            way.traits,
            way.length,
            way.max_size,
            now,
            header.remote_offset,
            header.rlength,
        )?;
        let &CachedMatch { md, traits, length, max_size, .. } = way;
        Some(Found { md: md as u32, cell, traits, length, max_size, accepted, pt, version })
    }

    /// Leaves a note of what a walk found, if that can go for other messages.
    fn note(
        &self,
        peer: &MappedPeer,
        header: &MessageHeader,
        care: u64,
        ac: &AcEntry,
        ac_version: u64,
        found: &Found<'_>,
    ) {
        if header.initiator != self.index {
            return;
        }
        let &Found { md, traits, length, max_size, pt, version, .. } = found;
        let prepared = self.prepare(peer, header, ac, found).unwrap_or(PreparedDelivery::NOT);
        // What was read belongs together.
        if pt_unchanged(pt, version) {
            peer.shortcuts.of(header.kind, header.pt_index, header.match_bits).write(
                &CachedMatch {
                    key: shortcut::key(header.kind, header.pt_index, header.ac_index),
                    care,
                    bits: header.match_bits & care,
                    version,
                    ac_version,
                    md: md.into(),
                    traits,
                    length,
                    max_size,
                    prepared,
                },
            );
        }
    }

    /// What can be said beforehand of deliveries to a descriptor: `None` if they need more care than [`crate::prepared`] takes.
    fn prepare(
        &self,
        peer: &MappedPeer,
        header: &MessageHeader,
        ac: &AcEntry,
        found: &Found<'_>,
    ) -> Option<PreparedDelivery> {
        let &Found { md, cell, traits, length, pt, .. } = found;
        let relaxed = Ordering::Relaxed;
        let near = self.mapped_at(peer, traits.kind(), cell.start.load(relaxed), length)?;
        let mut out = PreparedDelivery {
            near,
            pt: &raw const pt.version,
            ac: &raw const ac.version,
            cell,
            hazard: HazardWord::new(peer.index, md, NOTHING, NOTHING).bits(),
            ..PreparedDelivery::NOT
        };
        if traits.counts() {
            out.cursor_mask = traits.moves_only()?;
        } else if !traits.has(MANAGE_REMOTE) {
            return None;
        }
        let Some(eq) = traits.eq() else { return Some(out) };
        if !traits.has(EVENT_START_DISABLE) || traits.has(EVENT_END_DISABLE) {
            return None;
        }
        let eq_cell = peer.view.eq(eq)?;
        let size = eq_cell.shape.size.load(relaxed);
        out.ring = peer.rings.get(eq as usize)?;
        out.slots = peer.view.ring(eq_cell.shape.ring.load(relaxed), size)?.as_ptr();
        out.mask = size - 1;
        out.eq = eq_cell;
        out.eq_key = cell.eq_key.load(relaxed);
        // No queue's, but that of a ring that has not been set up: [`crate::prepared`] would take it for this one.
        if out.eq_key == 0 {
            return None;
        }
        out.what = Posting::what(
            OpHalf::Arrival(header.kind).end(),
            false,
            header.pt_index,
            self.index,
            md,
            cell.generation.load(relaxed),
        );
        Some(out)
    }

    #[inline(never)]
    fn find_by_walk<'a>(&self, peer: &'a MappedPeer, header: &MessageHeader) -> Find<'a> {
        let initiator = PtlProcessId { nid: self.nid, pid: header.initiator };
        let (Some(pt), Some(ac)) = (peer.view.pt(header.pt_index), peer.view.ac(header.ac_index))
        else {
            return Find::Missed;
        };
        let mut round = 0;
        loop {
            // Acquire pairs with the Release in `pt_end_change`: the list is as it was written.
            let version = pt.version.load(Ordering::Acquire);
            let ac_version = ac.version.load(Ordering::Acquire);
            match acl::admits(ac, header, initiator) {
                Some(true) if version & 1 == 0 => {
                    match self.walk(peer, header, initiator, pt, version) {
                        Walk::Chosen(found, care) => {
                            if let Some(care) = care {
                                self.note(peer, header, care, ac, ac_version, &found);
                            }
                            return Find::Found(found);
                        }
                        Walk::Unreachable => return Find::Unreachable,
                        Walk::End if pt_unchanged(pt, version) => return Find::Missed,
                        Walk::End | Walk::Again => {}
                    }
                }
                Some(false) => return Find::Missed,
                _ => {}
            }
            if !self.wait_for(peer.index, &mut round) {
                return Find::Dead;
            }
        }
    }

    fn walk<'a>(
        &self,
        peer: &'a MappedPeer,
        header: &MessageHeader,
        initiator: PtlProcessId,
        pt: &'a PtEntry,
        version: u64,
    ) -> Walk<'a> {
        let view = &peer.view;
        let needs = u64::from(header.kind.needs());
        let relaxed = Ordering::Relaxed;
        let mut next = pt.head.load(relaxed);
        let mut steps = 0;
        // The match bits that led here, unless something did that can change under one version.
        let mut care = 0;
        let mut constant = true;
        while next != 0 {
            steps += 1;
            let Some(me) = view.me(next - 1) else { return Walk::Again };
            if steps > view.max_mes {
                return Walk::Again; // links of different times can form a ring
            }
            next = me.next.load(relaxed);
            if !acl::fits_id(me.match_id.load(relaxed), initiator) {
                continue;
            }
            let Some(md) = me.md.load(relaxed).checked_sub(1) else { continue };
            let Some(cell) = view.md(md) else { return Walk::Again };
            let traits = Traits(cell.traits.load(relaxed));
            if traits.0 & needs != needs {
                continue;
            }
            let ignore = me.ignore_bits.load(relaxed);
            care |= !ignore;
            if (me.match_bits.load(relaxed) ^ header.match_bits) & !ignore != 0 {
                continue;
            }
            let length = cell.length.load(relaxed);
            let max_size = cell.max_size.load(relaxed);
            let now = if traits.counts() { cell.state.0.load(relaxed) } else { 0 };
            let accepted =
                md::accept(traits, length, max_size, now, header.remote_offset, header.rlength);
            let Some((accepted, _)) = accepted else {
                if now & state::INACTIVE == 0 && now & state::FLIGHTS == state::FLIGHTS {
                    return Walk::Again; // it cannot count one more just now
                }
                constant = false;
                continue;
            };
            if traits.kind() != MemoryKind::Arena && !self.reaches(peer, cell, traits.kind()) {
                return if pt_unchanged(pt, version) { Walk::Unreachable } else { Walk::Again };
            }
            let care = constant.then_some(care);
            return Walk::Chosen(
                Found { md, cell, traits, length, max_size, accepted, pt, version },
                care,
            );
        }
        Walk::End
    }

    /// Waits a moment for a peer that holds something. False if it is dead.
    #[cold]
    pub(crate) fn wait_for(&self, peer: u32, round: &mut u32) -> bool {
        *round = round.wrapping_add(1);
        sys::thread::relax(*round);
        if !(*round).is_multiple_of(1024) {
            return true;
        }
        self.waiting_for.store(peer + 1, Ordering::Relaxed);
        self.waiting_since.store(sys::clock::now_ns(), Ordering::Relaxed);
        self.nal.peer_state(peer) != PeerState::Dead
    }

    /// Claims a place for a message, beginning with what a walk found. `hold` names the find already.
    #[inline(always)]
    pub(crate) fn seize<'a>(
        &self,
        peer: &'a MappedPeer,
        header: &MessageHeader,
        first: Find<'a>,
        hold: &HazardHold<'_>,
        near: [u32; 2],
    ) -> Seized<'a> {
        let mut find = first;
        loop {
            let found = match find {
                Find::Found(found) => found,
                Find::Missed => return Seized::Missed,
                Find::Unreachable => return Seized::Unreachable,
                Find::Dead => return Seized::Dead,
            };
            fault::point("put.held");
            if pt_unchanged(found.pt, found.version) {
                let accepted = if found.traits.counts() {
                    let Found { cell, traits, length, max_size, .. } = found;
                    md::claim(cell, traits, length, max_size, header.remote_offset, header.rlength)
                } else {
                    Some(found.accepted)
                };
                if let Some(accepted) = accepted {
                    return Seized::Matched(Matched {
                        md: found.md,
                        cell: found.cell,
                        traits: found.traits,
                        generation: found.cell.generation.load(Ordering::Relaxed),
                        eq_key: found.cell.eq_key.load(Ordering::Relaxed),
                        accepted,
                    });
                }
            }
            find = self.find_again(peer, header, hold, near);
        }
    }

    #[cold]
    #[inline(never)]
    fn find_again<'a>(
        &self,
        peer: &'a MappedPeer,
        header: &MessageHeader,
        hold: &HazardHold<'_>,
        near: [u32; 2],
    ) -> Find<'a> {
        // While we wait for the owner, we keep our own descriptors only.
        hold.change(HazardWord::near(near[0], near[1]));
        let find = self.find_by_walk(peer, header);
        if let Find::Found(found) = find {
            hold.change(HazardWord::new(peer.index, found.md, near[0], near[1]));
        }
        find
    }

    /// Counts a dropped message at its target.
    #[cold]
    pub(crate) fn drop_at(&self, peer: &MappedPeer) {
        peer.view.header().drops.0.fetch_add(1, Ordering::Relaxed);
    }

    /// Has the line of a descriptor's next event fetched.
    #[inline(always)]
    pub(crate) fn prefetch(&self, peer: &MappedPeer, found: &Found<'_>) {
        if let Some(eq) = found.traits.eq()
            && let Some(ring) = peer.rings.get(eq as usize)
            && ring.is(found.cell.eq_key.load(Ordering::Relaxed))
        {
            ring.prefetch(ring.slots());
        }
    }

    /// Posts to a queue of `peer`, ours included: the ticket, if there was room. The caller's hazard names
    /// the descriptor.
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

    /// Sets up the ring of the queue that a descriptor logs to, if its list is still as it was when it was found.
    #[cold]
    pub(crate) fn set_up_ring(&self, peer: &MappedPeer, found: &Found<'_>) {
        let Some(eq) = found.traits.eq() else { return };
        let hold = self.hold(HazardWord::new(peer.index, found.md, NOTHING, NOTHING));
        if pt_unchanged(found.pt, found.version) {
            ring_of(peer, eq, found.cell.eq_key.load(Ordering::Relaxed));
        }
        hold.clear(false);
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

    /// Posts the START event of a matched message, if wanted: its sequence, else 0.
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

    /// Posts END and, if due, UNLINK, and gives the claim back.
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
        let mut sequence = 0;
        if let Some(eq) = matched.traits.eq()
            && !matched.traits.has(EVENT_END_DISABLE)
            && !(half == OpHalf::Reply && fault::loses_completion())
        {
            let mut event = self.posting(matched, header, half.end());
            event.link = link;
            event.fail = !ok;
            sequence = self.post(peer, eq, matched.eq_key, &event).unwrap_or(0) as Seq;
        }
        self.give_back(peer, matched, header, sequence);
    }

    /// Gives a claim back after the operation's last event, whose sequence is `link`; posts UNLINK if it is
    /// due.
    #[inline(always)]
    fn give_back(
        &self,
        peer: &MappedPeer,
        matched: &Matched<'_>,
        header: &MessageHeader,
        link: Seq,
    ) {
        fault::point("put.ended");
        if md::give_back(matched.cell, matched.traits) {
            self.post_unlink(peer, matched, header, link);
        }
    }

    /// Posts UNLINK, if wanted, for whoever gave the last claim back.
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

    /// Takes the lock word of a target's get-puts: index + 1 of the holder, or 0. False if the holder is
    /// dead.
    pub(crate) fn lock_swap(&self, lock: &AtomicU32) -> bool {
        let mut round = 0;
        loop {
            // Acquire pairs with the Release in `unlock_swap`.
            match lock.compare_exchange(0, self.index + 1, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(0) => {}
                Err(holder) if holder <= self.size => {
                    if !self.wait_for(holder - 1, &mut round) {
                        return false;
                    }
                }
                Err(_) => return false, // nonsense that a peer wrote
            }
        }
    }

    /// Gives it back.
    pub(crate) fn unlock_swap(&self, lock: &AtomicU32) {
        lock.store(0, Ordering::Release);
    }

    /// Claims a descriptor of ours for the initiator's half of an operation. A hazard of the caller names it.
    #[inline(always)]
    pub(crate) fn claim_local<'a>(
        &self,
        local: &LocalMd<'a>,
        offset: u64,
        mlength: u64,
    ) -> Option<Matched<'a>> {
        let traits = local.traits();
        let threshold = md::claim_own(local.cell, traits)?;
        Some(Matched {
            md: local.index,
            cell: local.cell,
            traits,
            generation: local.handle().0 >> 16,
            eq_key: local.cell.eq_key.load(Ordering::Relaxed),
            accepted: Accepted { offset, mlength, threshold },
        })
    }

    /// Claims the descriptor of a put for its ACK and posts that; `ok`: all bytes arrived. False if the
    /// descriptor takes it no more. A hazard of the caller names it; `header.initiator` is the target.
    #[inline(always)]
    pub(crate) fn post_ack(
        &self,
        local: &LocalMd<'_>,
        offset: u64,
        mlength: u64,
        header: &MessageHeader,
        ok: bool,
    ) -> bool {
        let Some(matched) = self.claim_local(local, offset, mlength) else { return false };
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

    /// Runs `action` with a descriptor of ours held; `None` if it is gone.
    fn with_local<'a, R>(
        &'a self,
        md: MdHandle,
        action: impl FnOnce(&LocalMd<'a>) -> Option<R>,
    ) -> Option<R> {
        loop {
            let local = self.local(md).ok()?;
            let hold = self.hold(HazardWord::near(local.index, local.index));
            if !local.unchanged() {
                hold.clear(false);
                continue;
            }
            let result = action(&local);
            hold.clear(true);
            doorbell::ring(self.own.view.header());
            return result;
        }
    }

    /// Turns a claimed descriptor of ours into a transfer: posts START. A hazard of the caller names it.
    pub(crate) fn transfer_begin(
        &self,
        matched: &Matched<'_>,
        header: &MessageHeader,
        half: OpHalf,
    ) -> FramedTransfer {
        let link = self.post_start(&self.own, matched, header, half);
        let record = &self.mds[matched.md as usize];
        record.pending.fetch_add(1, Ordering::Relaxed);
        if let Some(eq) = matched.traits.eq() {
            self.eqs[eq as usize].transfers.fetch_add(1, Ordering::Relaxed);
        }
        FramedTransfer {
            half,
            md: MdHandle(matched.generation << 16 | matched.md),
            offset: matched.accepted.offset,
            mlength: matched.accepted.mlength,
            header: *header,
            ack_allowed: !matched.traits.has(ACK_DISABLE),
            link,
            memory: record.memory(),
            matched: TransferTarget {
                traits: matched.traits,
                eq_key: matched.eq_key,
                threshold: matched.accepted.threshold,
            },
        }
    }

    /// Target's side of a framed message: matches it, claims its descriptor, posts START. `None`: dropped and
    /// counted.
    pub(crate) fn arrival_begin(&self, header: &MessageHeader) -> Option<FramedTransfer> {
        let near = [NOTHING; 2];
        let find = self.find(&self.own, header);
        let hold = self.hold(match find {
            Find::Found(found) => HazardWord::new(self.index, found.md, near[0], near[1]),
            _ => HazardWord::near(near[0], near[1]),
        });
        let transfer = match self.seize(&self.own, header, find, &hold, near) {
            Seized::Matched(matched) => {
                Some(self.transfer_begin(&matched, header, OpHalf::Arrival(header.kind)))
            }
            _ => {
                self.drop_at(&self.own);
                None
            }
        };
        hold.clear(true);
        doorbell::ring(self.own.view.header());
        transfer
    }

    /// Initiator's side, when the first bytes of a reply come in: claims the descriptor of the get, posts
    /// REPLY_START. `None`: it is gone, inactive or too short; dropped and counted. `header` is the get's,
    /// with `initiator` the target.
    pub(crate) fn reply_begin(
        &self,
        md: MdHandle,
        local_offset: Size,
        mlength: Size,
        header: &MessageHeader,
    ) -> Option<FramedTransfer> {
        let transfer = self.with_local(md, |local| {
            if local_offset.checked_add(mlength)? > local.length() {
                return None;
            }
            let matched = self.claim_local(local, local_offset, mlength)?;
            Some(self.transfer_begin(&matched, header, OpHalf::Reply))
        });
        if transfer.is_none() {
            self.drop_at(&self.own);
        }
        transfer
    }

    /// Initiator's side: an acknowledgement came. Claims the descriptor and posts ACK; if it is gone, counts
    /// a drop. `header` is the put's, with `initiator` the target.
    pub(crate) fn ack_arrived(
        &self,
        md: MdHandle,
        remote_offset: Size,
        mlength: Size,
        header: &MessageHeader,
    ) {
        let post = |local: &LocalMd<'_>| {
            self.post_ack(local, remote_offset, mlength, header, true).then_some(())
        };
        if self.with_local(md, post).is_none() {
            self.drop_at(&self.own);
        }
    }

    /// The descriptor of a transfer, which `pending` keeps.
    pub(crate) fn transfer_matched<'a>(&'a self, transfer: &FramedTransfer) -> Matched<'a> {
        let md = transfer.md.0 & 0xffff;
        let TransferTarget { traits, eq_key, threshold } = transfer.matched;
        Matched {
            md,
            cell: self.own_cell(md),
            traits,
            generation: transfer.md.0 >> 16,
            eq_key,
            accepted: Accepted { offset: transfer.offset, mlength: transfer.mlength, threshold },
        }
    }

    /// Posts END (and UNLINK, if it is the descriptor's last), and lets go of the descriptor.
    pub(crate) fn transfer_end(&self, transfer: FramedTransfer, ok: bool) {
        let matched = self.transfer_matched(&transfer);
        // Who takes the descriptor away looks at the hazards first and at `pending` then: it sees one of them
        // until the last event is posted.
        let hold = self.hold(HazardWord::near(matched.md, matched.md));
        self.post_end(&self.own, &matched, &transfer.header, transfer.half, transfer.link, ok);
        if let Some(eq) = matched.traits.eq() {
            self.eqs[eq as usize].transfers.fetch_sub(1, Ordering::Release);
        }
        self.mds[matched.md as usize].pending.fetch_sub(1, Ordering::Release);
        hold.clear(true);
        doorbell::ring(self.own.view.header());
    }
}

/// The ring of a queue of `peer`, set up, if there is such a queue. The caller's hazard names a descriptor that logs to it.
#[inline(always)]
fn ring_of(peer: &MappedPeer, eq: u32, key: u64) -> Option<(&EventRing, &EqCell)> {
    let (ring, cell) = (peer.rings.get(eq as usize)?, peer.view.eq(eq)?);
    (ring.is(key) || ring.follow(&peer.view, cell, key)).then_some((ring, cell))
}

/// Whether a list is still what it was. SeqCst: after a hazard was published, this is the second half of
/// Dekker's argument (see [`crate::hazard`]).
#[inline(always)]
fn pt_unchanged(pt: &PtEntry, version: u64) -> bool {
    // Keeps the walk's loads before the next one, where no hazard was published in between.
    fence(Ordering::Acquire);
    pt.version.load(Ordering::SeqCst) == version
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nal::shm::AttachPolicy;
    use crate::nal::shm::tests::fabric;

    const PT: u32 = 4;

    fn header(initiator: &NetworkInterface) -> MessageHeader {
        MessageHeader {
            kind: OpKind::Put,
            initiator: initiator.index,
            uid: initiator.uid,
            jid: initiator.jid,
            pt_index: PT,
            ac_index: 0,
            match_bits: 0,
            remote_offset: 0,
            rlength: 8,
            hdr_data: 0,
        }
    }

    fn md(ni: &NetworkInterface, threshold: i32, user: usize, eq: EqHandle) -> MemoryDescriptor {
        let start = ni.alloc(8, 8).unwrap().as_ptr().cast();
        let user_ptr = user as *mut _;
        MemoryDescriptor {
            start,
            length: 8,
            threshold,
            max_size: 0,
            options: OP_PUT | MANAGE_REMOTE,
            user_ptr,
            eq,
        }
    }

    fn attach(ni: &NetworkInterface, md: &MemoryDescriptor, unlink: Unlink) -> MdHandle {
        let me =
            ni.me_attach(PT, PtlProcessId::ANY, 0, !0, Unlink::Retain, InsPos::After).unwrap();
        // SAFETY: memory of the arena lives as long as the interface.
        unsafe { ni.md_attach(me, md, unlink).unwrap() }
    }

    fn seize<'a>(
        ni: &'a NetworkInterface,
        header: &MessageHeader,
    ) -> (Matched<'a>, HazardHold<'a>) {
        let find = ni.find(&ni.own, header);
        let Find::Found(found) = find else { panic!("nothing matches") };
        let hold = ni.hold(HazardWord::new(ni.index, found.md, NOTHING, NOTHING));
        match ni.seize(&ni.own, header, find, &hold, [NOTHING; 2]) {
            Seized::Matched(matched) => (matched, hold),
            _ => panic!("it matched a moment ago"),
        }
    }

    /// A descriptor has unlinked itself and its owner has noticed, but its UNLINK event is not posted yet:
    /// its record waits for that event.
    #[test]
    fn a_record_rests_until_its_unlink_event_is_read() {
        let ni = NetworkInterface::loopback(Some(NiLimits { max_mds: 1, ..NiLimits::DEFAULT }))
            .unwrap();
        let eq = ni.eq_alloc(16, None).unwrap();
        attach(&ni, &md(&ni, 1, 77, eq), Unlink::Unlink);
        let header = header(&ni);
        let (matched, hold) = seize(&ni, &header);
        assert!(md::give_back(matched.cell, matched.traits));
        // The owner notices.
        ni.me_attach(PT, PtlProcessId::ANY, 0, !0, Unlink::Retain, InsPos::After).unwrap();
        let unlink = ni.posting(&matched, &header, PtlEventKind::Unlink);
        ni.post(&ni.own, matched.traits.eq().unwrap(), matched.eq_key, &unlink).unwrap();
        hold.clear(true);
        let other = md(&ni, 1, 88, eq);
        // SAFETY: as in `attach`.
        let bind = || unsafe { ni.md_bind(&other, Unlink::Retain) };
        assert_eq!(bind(), Err(PtlError::NoSpace));
        assert_eq!(ni.eq_get(eq).unwrap().unwrap().event.md.user_ptr as usize, 77);
        assert!(bind().is_ok());
    }

    /// A descriptor that unlinked itself while its owner was about to unlink it is reported gone, once.
    #[test]
    fn unlinking_what_has_just_unlinked_itself() {
        let ni = NetworkInterface::loopback(None).unwrap();
        let eq = ni.eq_alloc(16, None).unwrap();
        let handle = attach(&ni, &md(&ni, 1, 0, eq), Unlink::Unlink);
        let local = ni.local(handle).unwrap();
        let (matched, hold) = seize(&ni, &header(&ni));
        ni.post_end(&ni.own, &matched, &header(&ni), OpHalf::Arrival(OpKind::Put), 0, true);
        hold.clear(true);
        assert_eq!(ni.take_away(&mut ni.owner.lock(), &local, false), Err(PtlError::MdInvalid));
        assert_eq!(ni.md_unlink(handle), Err(PtlError::MdInvalid));
    }

    /// What a peer says of its queue is not believed before it is checked, whatever it is.
    #[test]
    fn a_peer_that_names_no_queue_gets_no_event() {
        let nodes = fabric(2, AttachPolicy::Denied);
        let (a, b) = (&nodes[0], &nodes[1]);
        let eq = b.eq_alloc(16, None).unwrap();
        let target = attach(b, &md(b, THRESH_INF, 0, eq), Unlink::Retain);
        // SAFETY: as in `attach`.
        let source =
            unsafe { a.md_bind(&md(a, THRESH_INF, 0, EqHandle::NONE), Unlink::Retain).unwrap() };
        for key in [0, 1, u64::MAX] {
            b.own_cell(target.0 & 0xffff).eq_key.store(key, Ordering::Relaxed);
            a.put(source, AckReq::NoAck, b.id(), PT, 0, 0, 0, 0).unwrap();
            let events = usize::from(key == b.eq_key(eq.0 & 0xffff));
            assert_eq!(core::iter::from_fn(|| b.eq_get(eq).unwrap()).count(), 2 * events);
        }
    }
}
