//! Finding the descriptor of a message and claiming room in it: steps 1 to 3 of a delivery.
//!
//! Called by the put and get paths and by [`crate::transfer::framed`]. Most messages follow the
//! [match cache](crate::peer::match_cache) and walk nothing. Invariant: what was read counts
//! only if the list's version is even and unchanged after the hazard was published.

use core::mem::MaybeUninit;
use core::ptr;
use core::sync::atomic::{AtomicU64, Ordering, fence};

use super::Matched;
use super::post::ring_of;
use crate::arena::access;
use crate::arena::hazard::{HazardHold, HazardWord, NO_MD};
use crate::arena::{AcEntry, MdCell, PtEntry, peer_word};
use crate::base::fault;
use crate::descriptor::state::{self, Accepted};
use crate::descriptor::traits::{MemoryKind, Traits};
use crate::event::ring::Posting;
use crate::message::{MessageHeader, OpHalf};
use crate::peer::match_cache::{self, CachedMatch, PreparedDelivery};
use crate::peer::{MappedPeer, Peers, falsely_odd};
use crate::types::md_options::*;
use crate::types::*;
use sys::clock;

/// A descriptor that counts as many operations in flight as it can changes within this time,
/// unless a peer has overwritten its state.
const FULL_NS: u64 = 1_000_000_000;

/// A descriptor that accepts a message.
#[derive(Clone, Copy)]
pub(crate) struct Found<'a> {
    pub(crate) md: u32,
    cell: &'a MdCell,
    traits: Traits,
    length: u64,
    max_size: u64,
    /// How it accepts the message, by its state when it was found.
    accepted: Accepted,
    pt: &'a PtEntry,
    version: u64,
    /// See [`Matched::base`].
    base: *mut u8,
}

impl<'a> Found<'a> {
    /// The kind of its memory.
    pub(crate) fn kind(&self) -> MemoryKind {
        self.traits.kind()
    }

    /// Whether it is over an address space, and a delivery neither counts nor posts.
    pub(crate) fn is_plain_address_space(&self) -> bool {
        self.kind() == MemoryKind::AddressSpace
            && !self.traits.counts()
            && self.traits.eq().is_none()
    }

    /// Claims room for a message, if the list is unchanged since the descriptor was found. The
    /// hazard that names it has been published.
    #[inline(always)]
    fn claim(&self, header: &MessageHeader) -> Option<Matched<'a>> {
        fault::point("put.held");
        if !pt_unchanged(self.pt, self.version) {
            return None;
        }
        let &Found { md, cell, traits, length, max_size, base, .. } = self;
        let accepted = if traits.counts() {
            let (offset, rlength) = (header.remote_offset, header.rlength);
            state::claim(cell, traits, length, max_size, offset, rlength)?
        } else {
            self.accepted
        };
        let generation = cell.generation.load(Ordering::Relaxed);
        let eq_key = cell.eq_key.load(Ordering::Relaxed);
        Some(Matched { md, cell, traits, generation, eq_key, accepted, base })
    }
}

/// The result of a look-up.
#[derive(Clone, Copy)]
pub(crate) enum FindResult<'a> {
    Found(Found<'a>),
    /// No descriptor accepts the message: it is to be dropped.
    Missed,
    /// The descriptor's memory cannot be reached from here.
    Unreachable,
    /// The target died while it was changing the list.
    Dead,
}

/// The result of claiming room.
pub(crate) enum ClaimResult<'a> {
    Matched(Matched<'a>),
    Missed,
    Unreachable,
    Dead,
}

/// How a walk ended.
enum Walk<'a> {
    /// With the deciding match bits, if they alone decided.
    Chosen(Found<'a>, Option<u64>),
    Unreachable,
    End,
    /// The words that were read do not belong together.
    Again,
    /// This descriptor, in this state, counts as many operations in flight as it can.
    Full(u32, u64),
}

impl Peers {
    /// The descriptor that this message would go to now. Writes nothing that peers see. Waits
    /// while the owner changes the list.
    #[inline(always)]
    pub(crate) fn find<'a>(&self, peer: &'a MappedPeer, header: &MessageHeader) -> FindResult<'a> {
        match self.find_by_shortcut(peer, header) {
            Some(found) => FindResult::Found(found),
            None => {
                // The walk stores its result, and is given the header, in memory. Copies keep
                // both in registers on the fast path: 5 % of `one_way_request`, mode `events`, of
                // ci/instructions.tsv.
                let mut find = FindResult::Missed;
                self.find_by_walk(peer, &{ *header }, &mut find);
                find
            }
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
        let key = match_cache::key(header.kind, header.pt_index, header.ac_index);
        let cached = peer.shortcuts.of(header.kind, header.pt_index, header.match_bits);
        let cached = cached.read(self.single, &mut copy, key, header.match_bits)?;
        // Acquire pairs with the Release in `pt_end_change`, at the time of the walk or later.
        // If the version is the same, the list is the same.
        let version = pt.version.load(Ordering::Acquire);
        if header.initiator != self.index
            || version != cached.version
            || ac.version.load(Ordering::Acquire) != cached.ac_version
        {
            return None;
        }
        let cell = peer.view.md(cached.md as u32)?;
        let now = if cached.traits.counts() { cell.state.0.load(Ordering::Relaxed) } else { 0 };
        let (accepted, _) = state::accept(
            cached.traits,
            cached.length,
            cached.max_size,
            now,
            header.remote_offset,
            header.rlength,
        )?;
        let &CachedMatch { md, traits, length, max_size, .. } = cached;
        let (md, base) = (md as u32, cached.prepared.base);
        Some(Found { md, cell, traits, length, max_size, accepted, pt, version, base })
    }

    /// Caches the result of a walk, if other messages can use it.
    fn cache_match(
        &self,
        peer: &MappedPeer,
        header: &MessageHeader,
        deciding: u64,
        ac: &AcEntry,
        ac_version: u64,
        found: &Found<'_>,
    ) {
        if header.initiator != self.index {
            return;
        }
        let &Found { md, traits, length, max_size, pt, version, .. } = found;
        let prepared = self.prepare(peer, header, ac, found).unwrap_or(PreparedDelivery::NOT);
        // The words that were read belong together.
        if pt_unchanged(pt, version) {
            peer.shortcuts.of(header.kind, header.pt_index, header.match_bits).write(
                &CachedMatch {
                    key: match_cache::key(header.kind, header.pt_index, header.ac_index),
                    deciding,
                    bits: header.match_bits & deciding,
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

    /// What can be computed in advance of deliveries to a descriptor: `None` if they need more
    /// steps than `calls/cached.rs` takes.
    fn prepare(
        &self,
        peer: &MappedPeer,
        header: &MessageHeader,
        ac: &AcEntry,
        found: &Found<'_>,
    ) -> Option<PreparedDelivery> {
        let &Found { md, cell, traits, length, pt, .. } = found;
        let relaxed = Ordering::Relaxed;
        let base = match found.is_plain_address_space() {
            true => core::ptr::null_mut(),
            false => self.mapped_at(peer, traits.kind(), peer_word(&cell.start), length)?,
        };
        if !cell.is_sealed(traits.0) {
            return None;
        }
        let mut out = PreparedDelivery {
            base,
            pt: &raw const pt.version,
            ac: &raw const ac.version,
            cell,
            hazard: HazardWord::new(peer.index, md, NO_MD, NO_MD).bits(),
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
        out.ring = peer.rings.get(eq as usize)?;
        let shape = &eq_cell.shape;
        let (slots, size) = peer.view.ring(peer_word(&shape.ring), peer_word(&shape.size))?;
        out.slots = slots.as_ptr();
        out.mask = size - 1;
        out.eq = eq_cell;
        out.eq_key = cell.eq_key.load(relaxed);
        // Key 0 is that of a ring that has not been set up; `calls/cached.rs` would take it for
        // this queue's.
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

    #[cold]
    #[inline(never)]
    fn find_by_walk<'a>(
        &self,
        peer: &'a MappedPeer,
        header: &MessageHeader,
        find: &mut FindResult<'a>,
    ) {
        *find = self.walked(peer, header);
    }

    fn walked<'a>(&self, peer: &'a MappedPeer, header: &MessageHeader) -> FindResult<'a> {
        let initiator = self.process(header.initiator);
        let (Some(pt), Some(ac)) = (peer.view.pt(header.pt_index), peer.view.ac(header.ac_index))
        else {
            return FindResult::Missed;
        };
        let mut round = 0;
        let mut full: Option<(u32, u64, u64)> = None;
        loop {
            // Acquire pairs with the Release in `pt_end_change`: the list is as it was written.
            let version = pt.version.load(Ordering::Acquire);
            let ac_version = ac.version.load(Ordering::Acquire);
            match access::admits(ac, header, initiator) {
                Some(true) if version & 1 == 0 => {
                    match self.walk(peer, header, initiator, pt, version) {
                        Walk::Chosen(found, deciding) => {
                            if let Some(deciding) = deciding {
                                self.cache_match(peer, header, deciding, ac, ac_version, &found);
                            }
                            return FindResult::Found(found);
                        }
                        Walk::Unreachable => return FindResult::Unreachable,
                        Walk::End if pt_unchanged(pt, version) => return FindResult::Missed,
                        Walk::Full(md, state) => {
                            let now = clock::now_ns();
                            let same = full.filter(|&(of, was, _)| (of, was) == (md, state));
                            let since = same.map_or(now, |(.., since)| since);
                            // Real operations would have ended: a peer has overwritten it.
                            if now.saturating_sub(since) > FULL_NS {
                                self.report(&Damage::Full { process: peer.index, md });
                                return FindResult::Missed;
                            }
                            full = Some((md, state, since));
                        }
                        Walk::End | Walk::Again => {}
                    }
                }
                Some(false) => return FindResult::Missed,
                _ => {}
            }
            if peer.index == self.index && self.own_list_is_stuck(header, pt, ac) {
                return FindResult::Missed;
            }
            if !self.wait_for(peer.index, &mut round) {
                return FindResult::Dead;
            }
        }
    }

    /// Whether a peer has overwritten a version of ours, so that a walk would wait forever.
    fn own_list_is_stuck(&self, header: &MessageHeader, pt: &PtEntry, ac: &AcEntry) -> bool {
        let (lists, entries) = (&self.own_versions.lists, &self.own_versions.entries);
        let odd = |version: &AtomicU64, copy: Option<&AtomicU64>| {
            copy.is_some_and(|copy| falsely_odd(version, copy).is_some())
        };
        odd(&pt.version, lists.get(header.pt_index as usize))
            || odd(&ac.version, entries.get(header.ac_index as usize))
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
        // The match bits that decided, unless something else did that can change under one
        // version.
        let mut deciding = 0;
        let mut constant = true;
        while next != 0 {
            steps += 1;
            // Links of different times can form a ring. If the version is the same, a peer has
            // overwritten one, and the list accepts no message. The same holds for indices.
            let Some(me) = view.me(next - 1).filter(|_| steps <= view.max_mes) else {
                return Walk::End;
            };
            next = me.next.load(relaxed);
            if !access::fits_id(me.match_id.load(relaxed), initiator) {
                continue;
            }
            let Some(md) = me.md.load(relaxed).checked_sub(1) else { continue };
            let Some(cell) = view.md(md) else { return Walk::End };
            let traits = Traits(cell.traits.load(relaxed));
            // What is used was read before: a word that is overwritten later was right.
            let length = cell.length.load(relaxed);
            if !cell.is_sealed(traits.0) {
                if pt_unchanged(pt, version) {
                    self.report(&Damage::Address { process: peer.index, md });
                    return Walk::End;
                }
                return Walk::Again;
            }
            if traits.0 & needs != needs {
                continue;
            }
            let ignore = me.ignore_bits.load(relaxed);
            deciding |= !ignore;
            if (me.match_bits.load(relaxed) ^ header.match_bits) & !ignore != 0 {
                continue;
            }
            let max_size = cell.max_size.load(relaxed);
            let now = if traits.counts() { cell.state.0.load(relaxed) } else { 0 };
            let (offset, rlength) = (header.remote_offset, header.rlength);
            let accepts = |state| state::accept(traits, length, max_size, state, offset, rlength);
            let Some((accepted, _)) = accepts(now) else {
                if now & state::FLIGHTS == state::FLIGHTS
                    && accepts(now & !state::FLIGHTS).is_some()
                {
                    return Walk::Full(md, now);
                }
                constant = false;
                continue;
            };
            if traits.kind() != MemoryKind::Arena && !self.reaches(peer, cell, traits.kind()) {
                return if pt_unchanged(pt, version) { Walk::Unreachable } else { Walk::Again };
            }
            let deciding = constant.then_some(deciding);
            return Walk::Chosen(
                Found {
                    md,
                    cell,
                    traits,
                    length,
                    max_size,
                    accepted,
                    pt,
                    version,
                    base: ptr::null_mut(),
                },
                deciding,
            );
        }
        Walk::End
    }

    /// Claims room for a message in the result of a look-up, which `hold` names already. If
    /// that no longer holds, claims room in the result of another look-up.
    #[inline(always)]
    pub(crate) fn claim_found<'a>(
        &self,
        peer: &'a MappedPeer,
        header: &MessageHeader,
        find: FindResult<'a>,
        hold: &HazardHold<'_>,
        own_mds: [u32; 2],
    ) -> ClaimResult<'a> {
        match find {
            FindResult::Found(found) => match found.claim(header) {
                Some(matched) => ClaimResult::Matched(matched),
                None => {
                    // As in `find`.
                    let mut claim = ClaimResult::Missed;
                    self.claim_again(peer, &{ *header }, &{ *hold }, own_mds, &mut claim);
                    claim
                }
            },
            FindResult::Missed => ClaimResult::Missed,
            FindResult::Unreachable => ClaimResult::Unreachable,
            FindResult::Dead => ClaimResult::Dead,
        }
    }

    /// Looks for a descriptor until one has room.
    #[cold]
    #[inline(never)]
    fn claim_again<'a>(
        &self,
        peer: &'a MappedPeer,
        header: &MessageHeader,
        hold: &HazardHold<'_>,
        own_mds: [u32; 2],
        claim: &mut ClaimResult<'a>,
    ) {
        loop {
            // While this process waits for the owner, it holds its own descriptors only.
            hold.change(HazardWord::own(own_mds[0], own_mds[1]));
            *claim = match self.walked(peer, header) {
                FindResult::Found(found) => {
                    hold.change(HazardWord::new(peer.index, found.md, own_mds[0], own_mds[1]));
                    let Some(matched) = found.claim(header) else { continue };
                    ClaimResult::Matched(matched)
                }
                FindResult::Missed => ClaimResult::Missed,
                FindResult::Unreachable => ClaimResult::Unreachable,
                FindResult::Dead => ClaimResult::Dead,
            };
            return;
        }
    }

    /// Prefetches the cache line of a descriptor's next event.
    #[inline(always)]
    pub(crate) fn prefetch(&self, peer: &MappedPeer, found: &Found<'_>) {
        if let Some(eq) = found.traits.eq()
            && let Some(ring) = peer.rings.get(eq as usize)
            && ring.is(found.cell.eq_key.load(Ordering::Relaxed))
        {
            ring.prefetch(ring.slots(), 0);
        }
    }

    /// Sets up the ring of the queue that a descriptor logs to, if its list is unchanged since
    /// it was found.
    #[cold]
    pub(crate) fn set_up_ring(&self, peer: &MappedPeer, found: &Found<'_>) {
        let Some(eq) = found.traits.eq() else { return };
        let hold = self.hold(HazardWord::new(peer.index, found.md, NO_MD, NO_MD));
        if pt_unchanged(found.pt, found.version) {
            ring_of(peer, eq, found.cell.eq_key.load(Ordering::Relaxed));
        }
        hold.clear(false);
    }
}

/// Whether a list is unchanged. SeqCst: after a hazard was published, this is the second half of
/// Dekker's algorithm (see [`crate::arena::hazard`]).
#[inline(always)]
fn pt_unchanged(pt: &PtEntry, version: u64) -> bool {
    // Keeps the loads of the walk before the next one, where no hazard was published in between.
    fence(Ordering::Acquire);
    pt.version.load(Ordering::SeqCst) == version
}
