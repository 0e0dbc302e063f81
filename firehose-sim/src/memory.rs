//! The simulated memory of a rank: what is pinned, and which transfers are under way to it.
//!
//! Stands behind the traits of `gasnet::conduit::firehose`. Invariants, asserted here: a pin that
//! transfers use is not undone, unless its memory was unmapped. A slot gets another generation
//! with each pin, none that a transfer under way names. Memory is watched before it is pinned. No
//! transfer or peer is given a pin whose memory was unmapped.

use crate::dice::Dice;
use gasnet::conduit::firehose::{MemoryExtent, Monitor, PinError, PinId, Pinner, UnpinOutcome};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bytes of a page.
pub(crate) const PAGE: usize = 4096;

/// What goes wrong, in parts of 1,000.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Troubles {
    /// Unpins that find the memory in use.
    pub(crate) busy: u32,
    /// Blocks of which only what is needed is mapped.
    pub(crate) partial: u32,
    /// Operations before which the target unmaps what it has pinned, or some of it.
    pub(crate) unmapped: u32,
    /// Moves that are kept for up to [`crate::job::KEPT`] ticks before they leave.
    pub(crate) kept: u32,
    /// Most regions that the system lets a rank pin, 0 for no limit.
    pub(crate) physical: u32,
}

struct PinRecord {
    generation: u32,
    block: MemoryExtent,
    extent: MemoryExtent,
    unmapped: bool,
    /// Transfers of peers find it no more.
    hidden: bool,
}

#[derive(Default)]
struct Pins {
    by_slot: BTreeMap<u32, PinRecord>,
    /// Transfers under way, of this rank and of peers.
    used: BTreeMap<PinId, u32>,
    /// The pages that the system watches.
    watched: BTreeSet<usize>,
    news: VecDeque<MemoryExtent>,
    /// The last generation of each slot.
    last: BTreeMap<u32, u32>,
    /// Pins that were undone since memory under them was unmapped.
    lost: BTreeSet<PinId>,
    most: u32,
}

/// The starts of pages that bytes touch.
fn pages(bytes: MemoryExtent) -> impl Iterator<Item = usize> {
    (bytes.start & !(PAGE - 1)..bytes.end).step_by(PAGE)
}

/// The memory of one rank.
#[derive(Clone)]
pub(crate) struct SimulatedMemory {
    pins: Arc<Mutex<Pins>>,
    dice: Dice,
    troubles: Troubles,
    slots: u32,
}

impl SimulatedMemory {
    pub(crate) fn new(seed: u64, troubles: Troubles, slots: u32) -> SimulatedMemory {
        SimulatedMemory { pins: Arc::default(), dice: Dice::new(seed), troubles, slots }
    }

    fn pins(&self) -> MutexGuard<'_, Pins> {
        self.pins.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A transfer begins to use a pin, or is sent to it.
    pub(crate) fn begin(&self, id: PinId) {
        *self.pins().used.entry(id).or_default() += 1;
    }

    /// Whether a pin exists: transfers of this rank may use it.
    pub(crate) fn has(&self, id: PinId) -> bool {
        self.pins().by_slot.get(&id.slot).is_some_and(|r| r.generation == id.generation)
    }

    /// It has arrived, for these bytes. False if peers find the pin no more: it must not land.
    pub(crate) fn end(&self, id: PinId, bytes: MemoryExtent) -> bool {
        let mut pins = self.pins();
        let used = pins.used.get_mut(&id).expect("it has begun");
        *used -= 1;
        if *used == 0 {
            pins.used.remove(&id);
        }
        let record = pins.by_slot.get(&id.slot).filter(|r| r.generation == id.generation);
        match record {
            Some(record) => {
                assert!(record.extent.covers(bytes), "{bytes:?} are not of {:?}", record.extent);
                !record.hidden
            }
            None => {
                assert!(pins.lost.contains(&id), "{id:?} is not pinned, and was not unmapped");
                false
            }
        }
    }

    /// The program unmaps something that is pinned.
    pub(crate) fn unmap_some(&self) {
        let mut pins = self.pins();
        let count = pins.by_slot.len() as u32;
        if count == 0 {
            return;
        }
        let which = self.dice.below(count) as usize;
        let record = pins.by_slot.values().nth(which).expect("there are as many");
        let MemoryExtent { start, end } = record.extent;
        let gone = MemoryExtent { start, end: end.min(start + PAGE) };
        if !pages(gone).all(|page| pins.watched.contains(&page)) {
            // It is unmapped already.
            return;
        }
        for record in pins.by_slot.values_mut().filter(|r| r.extent.overlaps(gone)) {
            record.unmapped = true;
        }
        for page in pages(gone) {
            // What is mapped in its place is not watched.
            pins.watched.remove(&page);
        }
        pins.news.push_back(gone);
    }

    /// Whether memory under a pin was unmapped: nothing may begin to use it.
    pub(crate) fn is_unmapped(&self, id: PinId) -> bool {
        self.pins().by_slot.get(&id.slot).is_none_or(|r| r.unmapped)
    }

    /// Whether a pin ended since its memory was unmapped: then peers may still hold it.
    pub(crate) fn has_lost(&self, id: PinId) -> bool {
        self.pins().lost.contains(&id)
    }

    /// Most regions that were pinned at once.
    pub(crate) fn most(&self) -> u32 {
        self.pins().most
    }

    /// How many regions are pinned, if no transfer uses any and nothing else is watched.
    pub(crate) fn unused(&self) -> Option<u64> {
        let pins = self.pins();
        let is_pinned = |&page: &usize| {
            let page = MemoryExtent { start: page, end: page + PAGE };
            pins.by_slot.values().any(|r| r.block.covers(page))
        };
        let tidy = pins.used.is_empty() && pins.watched.iter().all(is_pinned);
        tidy.then_some(pins.by_slot.len() as u64)
    }
}

impl Pinner for SimulatedMemory {
    // Few, so that they come round.
    const GENERATIONS: u32 = 8;

    fn pin(
        &self,
        id: PinId,
        block: MemoryExtent,
        needed: MemoryExtent,
    ) -> Result<MemoryExtent, PinError> {
        let mut pins = self.pins();
        let physical = self.troubles.physical;
        if physical != 0 && pins.by_slot.len() as u32 >= physical {
            return Err(PinError::Limit);
        }
        assert!(!pins.used.contains_key(&id), "{id:?} is used while a transfer names it");
        let whole = |bytes: MemoryExtent| MemoryExtent {
            start: bytes.start & !(PAGE - 1),
            end: bytes.end.next_multiple_of(PAGE),
        };
        let partial = self.dice.below(1000) < self.troubles.partial;
        let extent = if partial { whole(needed) } else { block };
        let is_watched = pages(extent).all(|page| pins.watched.contains(&page));
        assert!(is_watched, "{extent:?} is pinned before it is watched");
        let generation = id.generation;
        let last = pins.last.insert(id.slot, generation);
        assert_ne!(last, Some(generation), "{id:?} was pinned before");
        pins.lost.remove(&id);
        let record = PinRecord { generation, block, extent, unmapped: false, hidden: false };
        assert!(pins.by_slot.insert(id.slot, record).is_none(), "{id:?} is pinned twice");
        pins.most = pins.most.max(pins.by_slot.len() as u32);
        assert!(pins.most <= self.slots, "{} regions are pinned", pins.most);
        Ok(extent)
    }

    fn unpin(&self, id: PinId, extent: MemoryExtent) -> UnpinOutcome {
        let mut pins = self.pins();
        let record = pins.by_slot.get(&id.slot).expect("only what is pinned is unpinned");
        assert_eq!((record.generation, record.extent), (id.generation, extent));
        assert!(
            record.unmapped || !pins.used.contains_key(&id),
            "{id:?} is unpinned while it is used"
        );
        if self.dice.below(1000) < self.troubles.busy {
            return UnpinOutcome::Busy;
        }
        if record.unmapped {
            pins.lost.insert(id);
        }
        pins.by_slot.remove(&id.slot);
        UnpinOutcome::Done
    }

    fn hide(&self, id: PinId) -> UnpinOutcome {
        let mut pins = self.pins();
        let busy = self.dice.below(1000) < self.troubles.busy;
        let record = pins.by_slot.get_mut(&id.slot).expect("only what is pinned is hidden");
        assert_eq!(record.generation, id.generation);
        assert!(record.unmapped, "{id:?} is hidden, and nothing was unmapped");
        record.hidden |= !busy;
        if busy { UnpinOutcome::Busy } else { UnpinOutcome::Done }
    }

    fn key(&self, id: PinId) -> u64 {
        assert!(!self.is_unmapped(id), "{id:?}, which a peer is given, is of other memory");
        u64::from(id.slot) << 32 | u64::from(id.generation)
    }
}

/// The pin of a [`Pinner::key`].
pub(crate) fn pin_of(key: u64) -> PinId {
    PinId { slot: (key >> 32) as u32, generation: key as u32 }
}

impl Monitor for SimulatedMemory {
    fn watch(&self, extent: MemoryExtent) {
        self.pins().watched.extend(pages(extent));
    }

    fn unwatch(&self, block: MemoryExtent) {
        let mut pins = self.pins();
        assert!(!pins.by_slot.values().any(|r| r.extent.overlaps(block)), "it is pinned");
        for page in pages(block) {
            pins.watched.remove(&page);
        }
    }

    fn watches(&self, extent: MemoryExtent) -> bool {
        let pins = self.pins();
        pages(extent).all(|page| pins.watched.contains(&page))
    }

    fn has_news(&self) -> bool {
        !self.pins().news.is_empty()
    }

    fn take(&self) -> Option<MemoryExtent> {
        self.pins().news.pop_front()
    }
}
