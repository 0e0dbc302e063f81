//! TMPMD: temporary descriptors over local memory that lies outside the segment and is too large
//! to bounce. Such memory is the source of a put or of the data of a Long, or the destination of
//! a get.
//!
//! At most `GASNET_PORTAL_NUM_TMPMD` exist at once. A slot is taken before its descriptor is bound
//! and is free again when the descriptor is unlinked. Invariant: the last holder unlinks the
//! descriptor. Its holders are its owner, until the Portals call has returned, and each of its
//! events. So an event of an old descriptor is never taken for one of a new one in the same slot.
//! Portals never finds the descriptor in use.

use super::hold::Hold;
use super::portals::{MdFlags, MdPart, MdRegion, MdSpec, Portals, PortalsError};
use super::queue::broken;
use super::sync::{self, FreeList};
use super::user::Descriptor;
use crate::client_memory::Dst;
use alloc::boxed::Box;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use crossbeam_utils::atomic::AtomicCell;
use once_cell::race::OnceBox;

/// The owner among the holders of a slot; more than its events.
const OWNER: u32 = 1 << 16;

struct TmpMdSlot<Md> {
    /// The descriptor, and its bytes, or the first of its pieces.
    bound: AtomicCell<Option<(Md, MdRegion)>>,
    /// Holders: the owner, which counts as [`OWNER`], and the events to come.
    holders: AtomicU32,
    /// Which events these are.
    hold: AtomicU32,
    /// The match bits of the get, for networks whose REPLY events lack them.
    note: AtomicU64,
}

pub(super) struct TmpMd<P: Portals> {
    par: bool,
    eq: P::Eq,
    free: FreeList,
    /// Made with the first descriptor: few jobs need one.
    slots: OnceBox<Box<[TmpMdSlot<P::Md>]>>,
}

impl<P: Portals> TmpMd<P> {
    pub(super) fn new(par: bool, count: u32, eq: &P::Eq) -> Self {
        TmpMd { par, eq: eq.clone(), free: FreeList::new(par, count), slots: OnceBox::new() }
    }

    /// A slot that the caller has taken.
    fn slot(&self, slot: u32) -> &TmpMdSlot<P::Md> {
        let new = || TmpMdSlot {
            bound: AtomicCell::new(None),
            holders: AtomicU32::new(0),
            hold: AtomicU32::new(0),
            note: AtomicU64::new(0),
        };
        let slots = || Box::new((0..self.free.count()).map(|_| new()).collect());
        &self.slots.get_or_init(slots)[slot as usize]
    }

    /// The slot that an event names, if there is such a one.
    fn named(&self, slot: u32) -> Option<&TmpMdSlot<P::Md>> {
        self.slots.get()?.get(slot as usize)
    }

    /// Takes a slot.
    #[inline]
    pub(super) fn take(&self) -> Option<u32> {
        self.free.take(Hold::HERE)
    }

    /// The list of slots.
    pub(super) fn list(&self) -> &FreeList {
        &self.free
    }

    /// How many descriptors are bound.
    pub(super) fn bound(&self) -> usize {
        let held = |slot: &&TmpMdSlot<P::Md>| slot.holders.load(Ordering::Relaxed) != 0;
        self.slots.get().map_or(0, |slots| slots.iter().filter(held).count())
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

    /// Binds a descriptor that will have `events` events, those of `hold`. The caller, its owner,
    /// lets go of it with [`TmpMd::release`], each event with [`TmpMd::event`].
    pub(super) fn bind(
        &self,
        portals: &P,
        slot: u32,
        region: MdRegion,
        hold: Hold,
        events: u32,
    ) -> MdPart<P::Md> {
        let spec = self.spec(slot, region);
        self.bind_by(slot, region, (hold, events), || portals.md_bind(&spec))
    }

    /// As [`TmpMd::bind`], over the bytes of several pieces, one after the other.
    pub(super) fn bind_pieces(
        &self,
        portals: &P,
        slot: u32,
        pieces: &[Dst<'static>],
        hold: Hold,
        events: u32,
    ) -> MdPart<P::Md> {
        let first = pieces.first().copied().unwrap_or(Dst::empty()).into();
        let spec = self.spec(slot, MdRegion::EMPTY);
        let bind = || portals.md_bind_pieces(pieces, &spec);
        let part = self.bind_by(slot, first, (hold, events), bind);
        MdPart { len: pieces.iter().map(|piece| piece.len()).sum(), ..part }
    }

    fn spec(&self, slot: u32, region: MdRegion) -> MdSpec<'_, P::Eq> {
        MdSpec {
            region,
            max_size: None,
            flags: MdFlags { event_start_disable: true, ..MdFlags::default() },
            user: Descriptor::TmpMd(slot).pack(),
            eq: Some(&self.eq),
        }
    }

    fn bind_by(
        &self,
        slot: u32,
        region: MdRegion,
        (hold, events): (Hold, u32),
        bind: impl FnOnce() -> Result<P::Md, PortalsError>,
    ) -> MdPart<P::Md> {
        let s = self.slot(slot);
        s.hold.store(hold.word(), Ordering::Relaxed);
        s.holders.store(OWNER + events, Ordering::Relaxed);
        let md = bind().unwrap_or_else(|e| broken(e));
        s.bound.store(Some((md, region)));
        MdPart { md, offset: 0, len: region.bytes() }
    }

    /// Keeps the match bits of the get that will use a slot, which the caller has taken.
    pub(super) fn note(&self, slot: u32, bits: u64) {
        self.slot(slot).note.store(bits, Ordering::Relaxed);
    }

    /// What [`TmpMd::note`] kept for the descriptor of an event; 0 if it is no temporary one.
    pub(super) fn noted(&self, descriptor: Descriptor) -> u64 {
        match descriptor {
            Descriptor::TmpMd(slot) => {
                self.named(slot).map_or(0, |s| s.note.load(Ordering::Relaxed))
            }
            _ => 0,
        }
    }

    /// Makes one of the bytes wrong that a get with this descriptor has brought: a planted fault.
    pub(super) fn flip(&self, slot: u32, offset: usize) {
        if let Some((_, region)) = self.slot(slot).bound.load() {
            region.flip(offset.min(region.bytes() - 1));
        }
    }

    /// The owner of a bound descriptor lets go of it.
    pub(super) fn release(&self, portals: &P, slot: u32) {
        let s = self.slot(slot);
        if sync::count(self.par, &s.holders, -(OWNER as i32)) == 0 {
            self.unbind(portals, slot);
        }
    }

    /// An event names the descriptor in this slot, as one of `hold`. False if that descriptor
    /// expects no such event.
    pub(super) fn event(&self, portals: &P, slot: u32, hold: Hold) -> bool {
        let Some(s) = self.named(slot) else { return false };
        if s.hold.load(Ordering::Relaxed) != hold.word() {
            return false;
        }
        let one_less = |holders: u32| (!holders.is_multiple_of(OWNER)).then(|| holders - 1);
        // AcqRel: the last holder sees what the others did with the descriptor.
        match s.holders.fetch_update(Ordering::AcqRel, Ordering::Relaxed, one_less) {
            Ok(1) => self.unbind(portals, slot),
            Ok(_) => {}
            Err(_) => return false,
        }
        true
    }

    fn unbind(&self, portals: &P, slot: u32) {
        if let Some((md, _)) = self.slot(slot).bound.take() {
            portals.md_unlink(md).unwrap_or_else(|e| broken(e));
        }
        self.free.give(slot);
    }
}
