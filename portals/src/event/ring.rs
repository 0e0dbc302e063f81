//! The producer's side of an event queue: a [`ring`] in the owner's arena, whose slots are
//! one cache line each.
//!
//! Every process that delivers posts here, the owner's own events included. Posting writes one
//! cache line of the target. Invariants: a full ring loses the event and records the position that
//! it would have had. A producer that dies or stops between claim and publication leaves a
//! reserved slot. The consumer stops there, and `blocked_by` names the producer.

use core::marker::PhantomData;
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use crate::arena::ring::{self, Memo, published};
use crate::arena::{ArenaView, ClaimedBelow, EqCell, EventSlot, LINE, peer_word};
use crate::base::fault;
use crate::types::*;
use sys::cache;

/// Slots that are set up at once: those of a page of memory.
const BLOCK: u64 = 4096 / LINE as u64;
/// Which slot of a block a position has: its number, with these bits inverted. So successive
/// positions are pairs of slots in ascending order, and the pairs of eight slots descend.
///
/// A pair is what a processor fetches together, so a consumer that is behind gets two events for
/// one transfer. Ascending slots without a break would be worse: the consumer's processor fetches
/// the cache lines ahead of those that it reads. It takes them from the producer, whose processor
/// has fetched them to write to them. Rows `short_flood`, `short_one_way` and `medium_one_way` of
/// 8 to 32 B gain 5 to 20 % over ascending slots. Slots scattered over the block cost
/// `medium_window` of 64 to 256 B a tenth of its rate.
const INVERTED: u64 = 0b110;

/// A ring as a producer of this process sees it: ours or a peer's.
#[derive(Debug, Default)]
pub(crate) struct EventRing {
    /// The key of the queue ([`MdCell::eq_key`](crate::arena::MdCell)); 0: not set up. Stored
    /// last (Release), read first (Acquire).
    key: AtomicU64,
    /// The first slot; the low bits, which are 0 in the address of a cache line, hold the
    /// logarithm of the number of slots. One word, so that a reader, however late, reads a ring
    /// that exists.
    slots: AtomicPtr<EventSlot>,
    memo: Memo,
}

/// An event to be posted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Posting {
    pub(crate) kind: PtlEventKind,
    pub(crate) fail: bool,
    pub(crate) pt_index: u32,
    /// Index of the process that the event names.
    pub(crate) initiator: u32,
    pub(crate) md: u32,
    pub(crate) generation: u32,
    pub(crate) match_bits: u64,
    pub(crate) hdr_data: u64,
    pub(crate) rlength: u64,
    pub(crate) mlength: u64,
    pub(crate) offset: u64,
    pub(crate) link: Seq,
    pub(crate) threshold: i32,
}

/// A bit of a slot's `what`: the words of lengths, offset, link and threshold hold an inline
/// payload. The event then describes an empty message at offset 0.
pub(crate) const INLINE: u64 = 1 << 6;

impl Posting {
    /// The word `what` of a slot: kind 0-4, failure 5, [`INLINE`] 6, portal table entry 8-15,
    /// initiator 16-31, descriptor 32-47, its generation 48-63.
    #[inline(always)]
    pub(crate) fn what(
        kind: PtlEventKind,
        fail: bool,
        pt_index: u32,
        initiator: u32,
        md: u32,
        generation: u32,
    ) -> u64 {
        kind as u64
            | u64::from(fail) << 5
            | u64::from(pt_index & 0xff) << 8
            | u64::from(initiator & 0xffff) << 16
            | u64::from(md & 0xffff) << 32
            | u64::from(generation) << 48
    }
}

impl EventRing {
    /// Makes this the ring of the queue with `key`. False if the peer's words are not a valid
    /// ring.
    ///
    /// The caller's hazard names a descriptor of that queue, so the queue lives. A queue of
    /// another key at this index is dead, so no thread uses the ring that is replaced.
    #[cold]
    pub(crate) fn follow(&self, view: &ArenaView, cell: &EqCell, key: u64) -> bool {
        let shape = &cell.shape;
        let Some((slots, size)) = view.ring(peer_word(&shape.ring), peer_word(&shape.size)) else {
            return false;
        };
        if shape.key.load(Ordering::Acquire) != key || key == 0 {
            return false;
        }
        let head = cell.head.0.load(Ordering::Acquire);
        let tagged = slots.as_ptr().map_addr(|address| address | size.trailing_zeros() as usize);
        self.slots.store(tagged, Ordering::Relaxed);
        self.memo.restart(head);
        self.key.store(key, Ordering::Release);
        true
    }

    /// Records in the queue how far this process knows it to be claimed. For a thread that waits
    /// for long: its last event may have been destroyed after it was posted.
    pub(crate) fn publish_claimed(&self, cell: &EqCell) {
        // Acquire: the hint is that of this queue or of a later one, whose key differs.
        let key = self.key();
        if key != 0 {
            ClaimedBelow::new(key, self.memo.hint()).store(&cell.losses.claimed);
        }
    }

    /// The key of the queue; 0: not set up.
    pub(crate) fn key(&self) -> u64 {
        self.key.load(Ordering::Acquire)
    }

    /// Whether this process has claimed the position, or one after it.
    pub(crate) fn has_claimed(&self, position: u64) -> bool {
        self.memo.hint().wrapping_sub(position) as i64 > 0
    }

    /// Whether this is the ring of the queue with `key`, which a peer wrote; no queue has key 0.
    #[inline(always)]
    pub(crate) fn is(&self, key: u64) -> bool {
        key != 0 && self.is_still(key)
    }

    /// [`EventRing::is`], for a key that is not 0.
    #[inline(always)]
    pub(crate) fn is_still(&self, key: u64) -> bool {
        debug_assert_ne!(key, 0);
        self.key.load(Ordering::Acquire) == key
    }

    /// The ring's slots. The ring must have been set up ([`EventRing::is`]).
    #[inline(always)]
    pub(crate) fn slots(&self) -> EventSlots<'_> {
        let tagged = self.slots.load(Ordering::Relaxed);
        let size = 1u64 << (tagged.addr() & (LINE - 1));
        let first = tagged.map_addr(|address| address & !(LINE - 1)).cast_const();
        EventSlots { first, size, ring: PhantomData }
    }

    /// Whether the event with this position, which the consumer has reached, is published.
    #[inline(always)]
    pub(crate) fn holds(&self, position: u64) -> bool {
        let slots = self.slots();
        // Acquire: see [`ring`].
        slots.at(position).control.load(Ordering::Acquire) == published(position)
    }

    /// The producer that has claimed this position, which the consumer has reached, and not
    /// published it. A peer wrote the number.
    pub(crate) fn reserved_by(&self, position: u64) -> Option<u32> {
        let now = self.slots().at(position).control.load(Ordering::Relaxed);
        ring::reserved_by(now, position)
    }

    /// Publishes this position, which the consumer has reached and `producer` has claimed, without
    /// an event: the producer is dead, and the event is lost. False: it is published already.
    pub(crate) fn give_up(&self, cell: &EqCell, position: u64, producer: u32) -> bool {
        let control = &self.slots().at(position).control;
        let (claimed, relaxed) = (ring::reserved(position, producer), Ordering::Relaxed);
        let given_up =
            control.compare_exchange(claimed, published(position), relaxed, relaxed).is_ok();
        if given_up {
            lose(cell, position);
        }
        given_up
    }

    /// Prefetches for writing the cache line of the slot for the next event but `ahead`.
    #[inline(always)]
    pub(crate) fn prefetch(&self, slots: EventSlots<'_>, ahead: u64) {
        let slot: *const EventSlot = slots.at(self.memo.hint().wrapping_add(ahead));
        cache::prefetch_to_write(slot.cast());
    }

    /// Posts an event: its position, or `None` if the ring was full.
    #[inline(always)]
    pub(crate) fn post(&self, cell: &EqCell, own_index: u32, event: &Posting) -> Option<u64> {
        let what = Posting::what(
            event.kind,
            event.fail,
            event.pt_index,
            event.initiator,
            event.md,
            event.generation,
        );
        let link = u64::from(event.link) << 32 | u64::from(event.threshold as u32);
        let &Posting { match_bits, hdr_data, rlength, mlength, offset, .. } = event;
        let words = [what, match_bits, hdr_data, rlength, mlength, offset, link];
        self.post_words(self.slots(), cell, own_index, words)
    }

    /// Posts an event, given as the words of its [`EventSlot`] after the control, to the slots
    /// of this ring.
    #[inline(always)]
    pub(crate) fn post_words(
        &self,
        slots: EventSlots<'_>,
        cell: &EqCell,
        own_index: u32,
        words: [u64; 7],
    ) -> Option<u64> {
        let position = self.memo.hint();
        let slot = slots.at(position);
        if !ring::claim_hinted(&slot.control, position, slots.size, &self.memo, own_index) {
            return self.post_elsewhere(slots, cell, own_index, words);
        }
        fill(slot, &words, published(position));
        Some(position)
    }

    /// [`EventRing::post_words`] where the hint does not lead to a free slot.
    #[cold]
    #[inline(never)]
    fn post_elsewhere(
        &self,
        slots: EventSlots<'_>,
        cell: &EqCell,
        own_index: u32,
        words: [u64; 7],
    ) -> Option<u64> {
        let control_of = |position| &slots.at(position).control;
        match ring::search(control_of, slots.size, BLOCK, &self.memo, &cell.head.0, own_index) {
            Ok(position) => {
                fill(slots.at(position), &words, published(position));
                Some(position)
            }
            Err(position) => {
                lose(cell, position);
                None
            }
        }
    }

    /// A position that no event posted before this call has reached; all before `from` are
    /// claimed.
    pub(crate) fn tail(&self, from: u64) -> u64 {
        let slots = self.slots();
        ring::tail(|position| &slots.at(position).control, slots.size, from)
    }
}

/// The slots of a ring.
#[derive(Clone, Copy)]
pub(crate) struct EventSlots<'a> {
    pub(crate) first: *const EventSlot,
    pub(crate) size: u64,
    ring: PhantomData<&'a EventSlot>,
}

impl<'a> EventSlots<'a> {
    /// The slots from `first` on, one more than `mask`.
    ///
    /// # Safety
    /// `ArenaView::ring` returned them, and that arena stays mapped.
    #[inline(always)]
    pub(crate) unsafe fn new(first: *const EventSlot, mask: u64) -> EventSlots<'a> {
        EventSlots { first, size: mask + 1, ring: PhantomData }
    }

    /// The slot of a position.
    #[inline(always)]
    pub(crate) fn at(self, position: u64) -> &'a EventSlot {
        let index = (position ^ INVERTED) & (self.size - 1);
        // SAFETY: `first` points to `size` slots inside an arena (checked by `ArenaView::ring`)
        // that stays mapped as long as the interface; slots consist of atomics. The index is
        // below `size`, a power of two.
        unsafe { &*self.first.add(index as usize) }
    }

    /// Sets up the first slots of a new ring, before any producer posts.
    pub(crate) fn set_up_first(self) {
        let control_of = |position| &self.at(position).control;
        ring::set_up(&control_of, self.size, BLOCK, ring::first(self.size));
    }
}

/// Fills a slot that this process has reserved, and publishes it.
#[inline(always)]
fn fill(slot: &EventSlot, words: &[u64; 7], published: u64) {
    fault::point("event.reserved");
    let &[what, match_bits, hdr_data, rlength, mlength, offset, link] = words;
    let relaxed = Ordering::Relaxed;
    slot.what.store(what, relaxed);
    slot.match_bits.store(match_bits, relaxed);
    slot.hdr_data.store(hdr_data, relaxed);
    slot.rlength.store(rlength, relaxed);
    slot.mlength.store(mlength, relaxed);
    slot.offset.store(offset, relaxed);
    slot.link.store(link, relaxed);
    slot.control.store(published, Ordering::Release);
    fault::point("event.published");
}

#[cold]
fn lose(cell: &EqCell, position: u64) {
    cell.losses.last.fetch_max(position, Ordering::Relaxed);
    // Release pairs with the consumer's Acquire: it finds the position.
    cell.losses.count.fetch_add(1, Ordering::Release);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn each_position_of_a_lap_has_its_slot() {
        for size in [1u64, 2, 16, 64, 4096] {
            // SAFETY: a slot is integers.
            let memory: Vec<EventSlot> =
                (0..size).map(|_| unsafe { core::mem::zeroed() }).collect();
            // SAFETY: the slots of `memory`, which lives as long.
            let slots = unsafe { EventSlots::new(memory.as_ptr(), size - 1) };
            let index = |position| {
                let slot: *const EventSlot = slots.at(position);
                (slot.addr() - memory.as_ptr().addr()) / size_of::<EventSlot>()
            };
            let lap: BTreeSet<usize> = (5 * size..6 * size).map(index).collect();
            assert_eq!(lap.len() as u64, size);
            assert!(lap.iter().all(|&i| (i as u64) < size));
            assert!((0..size).all(|p| index(p) == index(p + 3 * size)));
            // The positions of a block have its slots.
            assert!((0..size).all(|p| index(p) as u64 / BLOCK == p / BLOCK));
        }
    }
}
