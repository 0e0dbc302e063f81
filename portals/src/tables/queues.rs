//! The event queues of an interface: look-up, release, and how far each has advanced.
//!
//! Used by descriptors, which log to queues, and by the calls. Invariant: a ring is reused only
//! when its queue is freed and no descriptor logs to it.

use core::mem;
use core::sync::atomic::Ordering;

use super::owner::FreeSlots;
use super::{NiState, OwnerTables};
use crate::arena::hazard;
use crate::arena::ring;
use crate::arena::{ClaimedBelow, EqCell, EventSlot, LINE, ShapeWords};
use crate::types::*;

/// Takes this many freed slots that follow each other, from the shortest run that has them: the
/// offset of the first.
fn take_slots(owner: &mut OwnerTables, count: u64) -> Option<u64> {
    let runs = owner.free_slots.iter_mut().filter(|run| run.count >= count);
    let run = runs.min_by_key(|run| run.count)?;
    let taken = FreeSlots { count, ..*run };
    *run = FreeSlots { start: taken.end(), count: run.count - count };
    owner.free_slots.retain(|run| run.count != 0);
    Some(taken.start)
}

/// Adds slots to those that are free; neighbours become one run.
fn give_back_slots(owner: &mut OwnerTables, mut freed: FreeSlots) {
    owner.free_slots.retain(|run| {
        let is_neighbour = run.end() == freed.start || freed.end() == run.start;
        if is_neighbour {
            freed =
                FreeSlots { start: freed.start.min(run.start), count: freed.count + run.count };
        }
        !is_neighbour
    });
    owner.free_slots.push(freed);
}

impl NiState {
    /// The index behind a handle.
    #[inline(always)]
    pub(crate) fn eq_index(&self, eq: EqHandle) -> Result<u32, PtlError> {
        let index = eq.0 & 0xffff;
        match self.eqs.get(index as usize) {
            Some(record) if record.is_of(eq, Ordering::Acquire) => Ok(index),
            _ => Err(PtlError::EqInvalid),
        }
    }

    #[inline(always)]
    pub(crate) fn eq_cell(&self, index: u32) -> &EqCell {
        match self.peers.own.view.eq(index) {
            Some(cell) => cell,
            None => unreachable!("indices of records are indices of cells"),
        }
    }

    /// Records that a descriptor no longer logs to the queue.
    pub(crate) fn eq_release(&self, owner: &mut OwnerTables, index: u32) {
        self.eqs[index as usize].descriptors.fetch_sub(1, Ordering::Relaxed);
        self.eq_recycle(owner, index);
    }

    /// Frees a queue that is neither live nor logged to, unless it is free already.
    pub(crate) fn eq_recycle(&self, owner: &mut OwnerTables, index: u32) {
        let record = &self.eqs[index as usize];
        let handle = record.handle.load(Ordering::Relaxed);
        if handle & 1 == 1
            || record.descriptors.load(Ordering::Relaxed) != 0
            // Acquire pairs with the Release in `transfer_end`. A message that began before an
            // update of its descriptor posts to the old queue. None begins any more: it would
            // need a descriptor that logs here.
            || record.transfers.load(Ordering::Acquire) != 0
        {
            return;
        }
        let ShapeWords { ring, size, .. } = mem::take(&mut owner.rings[index as usize]);
        if size != 0 {
            give_back_slots(owner, FreeSlots { start: ring, count: size });
            owner.free_eqs.give_back(index, handle >> 16);
        }
    }

    /// Takes a free queue and a ring of this many slots: the index, where the ring is, and whether
    /// it was used before.
    pub(crate) fn take_queue(
        &self,
        owner: &mut OwnerTables,
        size: u64,
    ) -> Option<(u32, u64, bool)> {
        if owner.free_eqs.is_empty() {
            return None;
        }
        let (ring, used) = match take_slots(owner, size) {
            Some(ring) => (ring, true),
            None => self.bump_slots(owner, size)?,
        };
        Some((owner.free_eqs.take()?, ring, used))
    }

    /// Takes a ring from the end of the arena, and whether a part of it was used before: it begins
    /// with freed slots, if the last ones are there.
    fn bump_slots(&self, owner: &mut OwnerTables, size: u64) -> Option<(u64, bool)> {
        let last = owner.free_slots.iter().position(|free| free.end() == owner.next_byte as u64);
        let freed = last.map_or(0, |last| owner.free_slots[last].count);
        let more = (size - freed) as usize * size_of::<EventSlot>();
        let bumped = self.bump(owner, more, LINE)?;
        Some(match last {
            Some(last) => (owner.free_slots.swap_remove(last).start, true),
            None => (bumped, false),
        })
    }

    /// A position of one of our queues that no event posted before this call has reached.
    pub(crate) fn eq_tail(&self, index: u32) -> u64 {
        // All positions before `next` are claimed.
        self.peers.own.rings[index as usize]
            .tail(self.eqs[index as usize].next.load(Ordering::Acquire))
    }

    /// Whether all events with positions below `position` have been consumed, or the queue has
    /// been freed.
    pub(crate) fn eq_passed(&self, eq: EqHandle, position: u64) -> bool {
        match self.eq_index(eq) {
            Ok(index) => self.eqs[index as usize].next.load(Ordering::Acquire) >= position,
            Err(_) => true,
        }
    }

    /// Whether the queue holds no event, published or about to be.
    pub(crate) fn eq_is_empty(&self, index: u32) -> bool {
        self.eq_tail(index) <= self.eqs[index as usize].next.load(Ordering::Acquire)
    }

    /// The producer that blocks one of our queues now, if any. A peer wrote the number.
    pub(crate) fn queue_blocked_by(&self) -> Option<u32> {
        self.eqs.iter().zip(&self.peers.own.rings).find_map(|(record, ring)| {
            if record.handle.load(Ordering::Acquire) & 1 == 0 {
                return None;
            }
            ring.reserved_by(record.next.load(Ordering::Relaxed))
        })
    }

    /// Damage of the slot that a live queue's next event is due in. A slot that a process has
    /// claimed is damaged if that process is not delivering. The reason: a claim is made and
    /// published while a hazard names a descriptor of the queue. A free slot is damaged if it
    /// was claimed.
    pub(super) fn queue_damage(&self, _no_queue_changes: &OwnerTables) -> Option<Damage> {
        (0..).zip(self.eqs.iter().zip(&self.peers.own.rings)).find_map(
            |(queue, (record, ring))| {
                if record.handle.load(Ordering::Acquire) & 1 == 0 {
                    return None;
                }
                let slots = ring.slots();
                let control_of = |position| &slots.at(position).control;
                let delivers = |producer| self.delivers(producer);
                let reported = &self.eq_cell(queue).losses.claimed;
                let claimed = |position| {
                    ring.has_claimed(position)
                        || ClaimedBelow::covers(reported, (ring.key(), slots.size), position)
                };
                let next = &record.next;
                let damage = ring::damage(control_of, slots.size, next, delivers, claimed);
                damage.map(|(position, control)| Damage::Slot { queue, position, control })
            },
        )
    }

    /// Whether the process with this number, which a peer wrote, may be delivering to us.
    fn delivers(&self, producer: u32) -> bool {
        let peers = &self.peers;
        if producer == peers.index {
            return hazard::names(&peers.own.view.header().hazards, |_| true);
        }
        let mut headers = peers.peer_headers();
        headers.any(|(peer, header)| {
            let to_us = |word: hazard::HazardWord| word.target_md(peers.index).is_some();
            peer == producer && hazard::names(&header.hazards, to_us)
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::{NetworkInterface, PtlError};

    /// Rings of other sizes reuse the slots of freed ones.
    #[test]
    fn queues_of_growing_sizes_fit_one_after_the_other() {
        let ni = NetworkInterface::loopback(None).unwrap();
        let largest = (1..24).map(|log| 1 << log).take_while(|&size| {
            let eq = ni.eq_alloc(size, None);
            eq.is_ok_and(|eq| ni.eq_free(eq).is_ok())
        });
        // Half a million slots have 32 of the 64 MiB.
        assert_eq!(largest.last(), Some(1 << 19));
        let halves = [(); 2].map(|()| ni.eq_alloc(1 << 18, None).unwrap());
        assert_eq!(ni.eq_alloc(1 << 19, None), Err(PtlError::NoSpace));
        for eq in halves {
            ni.eq_free(eq).unwrap();
        }
        assert_eq!(ni.state.owner.lock().free_slots.len(), 1);
        ni.eq_alloc(1 << 19, None).unwrap();
    }
}
