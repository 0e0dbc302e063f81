//! TMPMD: temporary descriptors over local memory that lies outside the segment and is too large to bounce: the
//! source of a put or of the data of a Long, the destination of a get.
//!
//! At most `GASNET_PORTAL_NUM_TMPMD` exist at once. A slot is taken before its descriptor is bound and free again
//! when the descriptor is gone. Invariant: a descriptor is unlinked by whoever comes last of its owner, who lets go
//! when the Portals call has returned, and the takers of its events; so no event of an old descriptor can be taken
//! for one of a new one in the same slot, and Portals never finds it in use.

use super::portals::{MdFlags, MdSpec, Portals, PortalsError};
use super::queue::broken;
use super::sync::{self, FreeList};
use super::user::Descriptor;
use alloc::boxed::Box;
use core::cell::UnsafeCell;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

struct Slot<Md> {
    md: UnsafeCell<Option<Md>>,
    /// Owner and events that have not let go.
    holds: AtomicU32,
    /// What the match bits of a get would tell, where they do not come back.
    note: AtomicU64,
}

pub(super) struct TmpMd<P: Portals> {
    par: bool,
    eq: P::Eq,
    free: FreeList,
    slots: Box<[Slot<P::Md>]>,
}

// SAFETY: `md` is written by the holder of a free slot before the descriptor can have events, and read by the last of
// those that hold it, ordered by `holds` (AcqRel) and the event queue.
unsafe impl<P: Portals> Sync for TmpMd<P> {}

impl<P: Portals> TmpMd<P> {
    pub(super) fn new(par: bool, count: u32, eq: P::Eq) -> Self {
        let slot = || Slot {
            md: UnsafeCell::new(None),
            holds: AtomicU32::new(0),
            note: AtomicU64::new(0),
        };
        let slots = (0..count).map(|_| slot()).collect();
        TmpMd { par, eq, free: FreeList::new(par, count), slots }
    }

    /// Takes a slot.
    #[inline]
    pub(super) fn take(&self) -> Option<u32> {
        self.free.take()
    }

    #[cfg(test)]
    pub(super) fn left(&self) -> u32 {
        self.free.left()
    }

    /// Gives a slot back whose descriptor was never bound.
    #[inline]
    pub(super) fn give(&self, slot: u32) {
        self.free.give(slot);
    }

    /// Binds a descriptor that will see `events` events; the caller lets go of it with [`TmpMd::done`] too.
    ///
    /// # Safety
    /// The memory must stay valid until the last event; it is written if the descriptor is used for a get.
    pub(super) unsafe fn bind(
        &self,
        portals: &P,
        slot: u32,
        start: *mut u8,
        n: usize,
        events: u32,
    ) -> P::Md {
        let s = &self.slots[slot as usize];
        s.holds.store(events + 1, Ordering::Relaxed);
        let spec = MdSpec {
            start,
            length: n,
            max_size: None,
            flags: MdFlags { event_start_disable: true, ..MdFlags::default() },
            user: Descriptor::TmpMd(slot).pack(),
            eq: Some(self.eq),
        };
        // SAFETY: valid until the last event, as the caller says; afterwards the descriptor is unlinked.
        let md = unsafe { portals.md_bind(&spec) }.unwrap_or_else(|e: PortalsError| broken(e));
        // SAFETY: the caller has taken the slot, and no event of this descriptor exists yet.
        unsafe { *s.md.get() = Some(md) };
        md
    }

    /// Keeps the match bits of the get that will use a slot, which the caller has taken.
    pub(super) fn note(&self, slot: u32, bits: u64) {
        self.slots[slot as usize].note.store(bits, Ordering::Relaxed);
    }

    /// What was kept with [`TmpMd::note`] for the descriptor of an event; 0 for one that is no temporary descriptor.
    pub(super) fn noted(&self, descriptor: Descriptor) -> u64 {
        match descriptor {
            Descriptor::TmpMd(slot) => {
                self.slots.get(slot as usize).map_or(0, |s| s.note.load(Ordering::Relaxed))
            }
            _ => 0,
        }
    }

    /// Lets go of a bound descriptor: its owner once, and each of its events.
    pub(super) fn done(&self, portals: &P, slot: u32) {
        let s = &self.slots[slot as usize];
        if sync::count(self.par, &s.holds, -1) != 0 {
            return;
        }
        // SAFETY: we are the last that hold the slot.
        if let Some(md) = unsafe { (*s.md.get()).take() } {
            portals.md_unlink(md).unwrap_or_else(|e| broken(e));
        }
        self.free.give(slot);
    }
}
