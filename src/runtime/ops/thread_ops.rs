//! The operations of one thread: slots in slabs that are never moved, a free list, and what
//! other threads returned.
//!
//! Used by the registry in this folder. Invariants: only the owner allocates, and writes
//! [`OwnerWords`]; a slot is freed with the operations of its thread
//! only.
//!
//! A slot that another thread synced is pushed on a Treiber stack, which the owner takes as a
//! whole: so there is no ABA.

use super::fragments::are_complete;
use super::handle::{INDEX_BITS, ImplicitKind, OPS_PER_THREAD};
use crate::report;
use alloc::boxed::Box;
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use crossbeam_utils::CachePadded;

/// No slot.
pub(super) const NONE: u32 = u32::MAX;
/// Slots of the first slab of a thread; each later one has as many slots as all before it.
pub(super) const FIRST_SLAB: u32 = 256;
pub(super) const SLABS: usize = (INDEX_BITS - FIRST_SLAB.ilog2() + 1) as usize;

/// One explicit operation or region.
#[derive(Debug)]
pub(super) struct OpSlot {
    /// Fragments initiated; written by the owner only.
    pub(super) issued: AtomicU32,
    /// Fragments completed. The Release of each completion pairs with the Acquire of the sync.
    pub(super) done: AtomicU32,
    /// From 1; changes at each sync.
    pub(super) generation: AtomicU32,
    /// Next free slot, while this one is free; next abandoned region, while this is one.
    pub(super) next: AtomicU32,
    /// Where a get of the value form puts its bytes.
    pub(super) value: AtomicU64,
    /// Fragments whose departure is counted; written by the owner only. It has a meaning if a
    /// handle of the slot counts departures.
    pub(super) sources: AtomicU32,
    /// Those that have departed; ordered as `done`.
    pub(super) departed: AtomicU32,
}

/// What only the owner writes.
#[derive(Debug)]
pub(super) struct OwnerWords {
    /// First free slot.
    pub(super) free: AtomicU32,
    /// The open access region.
    pub(super) region: AtomicU32,
    /// First of the regions that a thread left open when it ended, with operations in flight.
    pub(super) abandoned: AtomicU32,
    /// Slabs made.
    pub(super) slabs: AtomicU32,
    /// Fragments of implicit operations initiated, by kind.
    pub(super) issued: [AtomicU32; ImplicitKind::COUNT],
}

/// What any thread writes.
#[derive(Debug)]
pub(super) struct SharedWords {
    /// Slots that another thread than their owner synced, as a stack.
    pub(super) returned: AtomicU32,
    /// Fragments of implicit operations completed, by kind; ordered as [`OpSlot::done`].
    pub(super) done: [AtomicU32; ImplicitKind::COUNT],
}

/// All operations of one thread.
#[derive(Debug)]
pub(super) struct ThreadOps {
    pub(super) owner: CachePadded<OwnerWords>,
    pub(super) shared: CachePadded<SharedWords>,
    /// First slots of the slabs. Release when a slab is made, pairs with the Acquire in
    /// [`ThreadOps::slot`].
    pub(super) slabs: [AtomicPtr<OpSlot>; SLABS],
}

/// Slab of a slot, and its index there.
pub(super) fn place(index: u32) -> (usize, u32) {
    if index < FIRST_SLAB {
        (0, index)
    } else {
        let slab = (index / FIRST_SLAB).ilog2() + 1;
        (slab as usize, index - slab_len(slab as usize))
    }
}

/// Slots of a slab; each but the first has as many as all slabs before it.
pub(super) fn slab_len(slab: usize) -> u32 {
    if slab == 0 { FIRST_SLAB } else { FIRST_SLAB << (slab - 1) }
}

impl ThreadOps {
    pub(super) fn new() -> ThreadOps {
        ThreadOps {
            owner: CachePadded::new(OwnerWords {
                free: AtomicU32::new(NONE),
                region: AtomicU32::new(NONE),
                abandoned: AtomicU32::new(NONE),
                slabs: AtomicU32::new(0),
                issued: [const { AtomicU32::new(0) }; ImplicitKind::COUNT],
            }),
            shared: CachePadded::new(SharedWords {
                returned: AtomicU32::new(NONE),
                done: [const { AtomicU32::new(0) }; ImplicitKind::COUNT],
            }),
            slabs: [const { AtomicPtr::new(ptr::null_mut()) }; SLABS],
        }
    }

    pub(super) fn slot(&self, index: u32) -> Option<&OpSlot> {
        let (slab, at) = place(index);
        let slots = self.slabs.get(slab)?.load(Ordering::Acquire);
        if slots.is_null() {
            return None;
        }
        // SAFETY: a slab that is not null has `slab_len(slab)` slots, `at` is below that by
        // `place`, and it lives as long as `self`.
        Some(unsafe { &*slots.add(at as usize) })
    }

    pub(super) fn my_slot(&self, index: u32) -> &OpSlot {
        self.slot(index).expect("free lists hold slots that exist")
    }

    /// Takes a free slot; owner only.
    pub(super) fn alloc(&self) -> (u32, &OpSlot) {
        let mut index = self.owner.free.load(Ordering::Relaxed);
        if index == NONE {
            // Acquire pairs with the Release of `give_back`: the links of the stack are seen.
            index = self.shared.returned.swap(NONE, Ordering::Acquire);
            if index == NONE {
                index = self.more();
            }
        }
        let slot = self.my_slot(index);
        self.owner.free.store(slot.next.load(Ordering::Relaxed), Ordering::Relaxed);
        (index, slot)
    }

    /// Frees the slots of abandoned regions that are complete, or makes one more slab; returns the
    /// first free slot.
    #[cold]
    fn more(&self) -> u32 {
        let mut index = self.owner.abandoned.swap(NONE, Ordering::Relaxed);
        while index != NONE {
            let slot = self.my_slot(index);
            let next = slot.next.load(Ordering::Relaxed);
            if are_complete(&slot.issued, &slot.done) {
                self.free(index, slot, slot.generation.load(Ordering::Relaxed));
            } else {
                self.abandon(index);
            }
            index = next;
        }
        match self.owner.free.load(Ordering::Relaxed) {
            NONE => self.grow(),
            first => first,
        }
    }

    /// Notes a region without a handle, whose slot is freed once it is complete; owner only.
    pub(super) fn abandon(&self, index: u32) {
        let before = self.owner.abandoned.swap(index, Ordering::Relaxed);
        self.my_slot(index).next.store(before, Ordering::Relaxed);
    }

    /// Makes one more slab and returns its first slot, which is linked to the others.
    fn grow(&self) -> u32 {
        let slab = self.owner.slabs.load(Ordering::Relaxed) as usize;
        if slab == SLABS {
            report::fatal(
                format_args!(
                    "more than {OPS_PER_THREAD} non-blocking operations of one thread in flight"
                ),
                format_args!(
                    "Sync some of them (gasnet_wait_syncnb and its like) before initiating more."
                ),
            );
        }
        let len = slab_len(slab);
        let first = if slab == 0 { 0 } else { len };
        let slots: Box<[OpSlot]> = (0..len)
            .map(|at| OpSlot {
                issued: AtomicU32::new(0),
                done: AtomicU32::new(0),
                generation: AtomicU32::new(1),
                next: AtomicU32::new(if at + 1 == len { NONE } else { first + at + 1 }),
                value: AtomicU64::new(0),
                sources: AtomicU32::new(0),
                departed: AtomicU32::new(0),
            })
            .collect();
        self.slabs[slab].store(Box::into_raw(slots).cast(), Ordering::Release);
        self.owner.slabs.store(slab as u32 + 1, Ordering::Relaxed);
        first
    }

    /// Frees the slot of a synced operation; owner only.
    pub(super) fn free(&self, index: u32, slot: &OpSlot, generation: u32) {
        slot.generation.store(next_generation(generation), Ordering::Relaxed);
        slot.next.store(self.owner.free.load(Ordering::Relaxed), Ordering::Relaxed);
        self.owner.free.store(index, Ordering::Relaxed);
    }

    /// Frees the slot of a synced operation from another thread than its owner.
    #[cold]
    pub(super) fn give_back(&self, index: u32, slot: &OpSlot, generation: u32) {
        let next = next_generation(generation);
        if slot
            .generation
            .compare_exchange(generation, next, Ordering::Relaxed, Ordering::Relaxed)
            .is_err()
        {
            return;
        }
        let mut top = self.shared.returned.load(Ordering::Relaxed);
        loop {
            slot.next.store(top, Ordering::Relaxed);
            match self.shared.returned.compare_exchange_weak(
                top,
                index,
                Ordering::Release,
                Ordering::Relaxed,
            ) {
                Ok(_) => return,
                Err(now) => top = now,
            }
        }
    }
}

impl Drop for ThreadOps {
    fn drop(&mut self) {
        for (slab, slots) in self.slabs.iter().enumerate() {
            let slots = slots.load(Ordering::Relaxed);
            if !slots.is_null() {
                // SAFETY: made by `grow` from a boxed slice of this length, and nothing else
                // refers to it.
                drop(unsafe {
                    Box::from_raw(ptr::slice_from_raw_parts_mut(slots, slab_len(slab) as usize))
                });
            }
        }
    }
}

pub(super) fn next_generation(generation: u32) -> u32 {
    generation.wrapping_add(1).max(1)
}
