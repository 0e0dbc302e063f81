//! Registers memory with the network: a region has a match entry and a descriptor that peers
//! target, and a descriptor that is the local side of this rank's own puts and gets.
//!
//! Used by the firehose, with its lock held. The match bits of a region name its slot and its
//! generation: of a put or get that comes after the end of a region nothing is accepted.
//! Invariant: a slot has descriptors exactly while the firehose has it pinned.

use super::super::firehose::{MemoryExtent, PinError, PinId, Pinner, UnpinOutcome};
use super::super::pinned_config::PinnedConfig;
use super::super::portals::{
    EntryPosition, IN_USE, MdFlags, MdPart, MdRegion, MdSpec, Portals, PortalsError,
};
use super::super::queue::broken;
use super::super::user::Descriptor;
use super::bits::{self, PinnedBits};
use crate::client_memory::AddressSpace;
use alloc::boxed::Box;
use alloc::sync::Arc;
use parking_lot::Mutex;
use sys::clock::now_ns;
use sys::limits::page_size;
use sys::memory::mappings_used_up;
use sys::{attach, futex};

/// The descriptors of a region, as long as it has them: they go one after the other.
struct RegionMds<P: Portals> {
    target: Option<P::Md>,
    entry: Option<P::Me>,
    local: Option<P::Md>,
    /// Its first address.
    start: usize,
}

/// The regions of this rank, by slot.
pub(in crate::conduit) struct RegionPinner<P: Portals> {
    portals: &'static P,
    eq: P::Eq,
    config: PinnedConfig,
    /// The pages of a segment that is registered on demand. A region ends where they end: a
    /// network may reach them in another way than other memory.
    segment: MemoryExtent,
    /// A lock is free whenever it is taken: operations use the region of a slot only while it is
    /// pinned.
    slots: Box<[Mutex<RegionMds<P>>]>,
    /// Whether this process has all the mappings that it may have.
    used_up: Remembered,
}

/// What takes long to find out, and is found out once in a while.
#[derive(Debug, Default)]
struct Remembered {
    /// The answer, and when it was found.
    last: Mutex<Option<(bool, u64)>>,
}

impl Remembered {
    /// The answer holds for this long, in nanoseconds.
    const LASTS: u64 = 1_000_000_000;

    fn get(&self, now: u64, find: impl FnOnce() -> bool) -> bool {
        let mut last = self.last.lock();
        match *last {
            Some((answer, at)) if now.saturating_sub(at) < Self::LASTS => answer,
            _ => last.insert((find(), now)).0,
        }
    }
}

impl<P: Portals> RegionPinner<P> {
    /// Completions of operations whose local side is a region go to `eq`. `segment`: what is
    /// registered on demand of a segment.
    pub(in crate::conduit) fn new(
        portals: &'static P,
        eq: &P::Eq,
        config: &PinnedConfig,
        segment: MemoryExtent,
    ) -> Self {
        let none = || RegionMds { target: None, entry: None, local: None, start: 0 };
        let slots = (0..config.slots()).map(|_| Mutex::new(none())).collect();
        let (eq, config, segment) = (eq.clone(), config.clone(), whole_pages(segment));
        RegionPinner { portals, eq, config, segment, slots, used_up: Remembered::default() }
    }

    /// Attaches what catches puts and gets that name a region which no longer exists, at the end
    /// of each list. It accepts none of their bytes, and so their initiators learn it.
    ///
    /// # Errors
    /// The Portals call that failed.
    pub(in crate::conduit) fn catch_late(&self) -> Result<(), PortalsError> {
        for list in self.config.lists.clone() {
            let entry = self.portals.me_attach(EntryPosition::Tail(list), 0, !0, false)?;
            let nothing = MdSpec {
                region: MdRegion::EMPTY,
                max_size: None,
                flags: MdFlags::refusing(),
                user: Descriptor::Region.pack(),
                eq: None,
            };
            self.portals.md_attach(entry, &nothing, false)?;
        }
        Ok(())
    }

    /// These bytes of a region that is pinned, as the local side of an operation.
    pub(in crate::conduit) fn local(
        &self,
        id: PinId,
        address: usize,
        len: usize,
    ) -> MdPart<P::Md> {
        let region = self.slots[id.slot as usize].lock();
        match region.local {
            Some(md) => MdPart { md, offset: address - region.start, len },
            None => unreachable!("an operation holds a region that is not pinned"),
        }
    }

    /// Unlinks a descriptor, unless that is done; false: it is in use.
    fn unlink(&self, md: &mut Option<P::Md>) -> bool {
        let Some(handle) = *md else { return true };
        match self.portals.md_try_unlink(handle) {
            Ok(()) => *md = None,
            Err(e) if e.code == IN_USE => return false,
            Err(e) => broken(e),
        }
        true
    }

    /// Unlinks what peers target; false: it is in use.
    fn unlink_target(&self, region: &mut RegionMds<P>) -> bool {
        if !self.unlink(&mut region.target) {
            return false;
        }
        if let Some(entry) = region.entry.take() {
            self.portals.me_unlink(entry).unwrap_or_else(|e| broken(e));
        }
        true
    }

    /// Makes the descriptors of exactly these bytes. Peers may put there if `writable`.
    fn register(
        &self,
        id: PinId,
        bytes: MemoryExtent,
        writable: bool,
    ) -> Result<(), PortalsError> {
        let name = bits::name_of(id);
        let list = self.config.list_of(name);
        let match_bits = PinnedBits { flight: 0, name }.pack();
        let region = MdRegion::Target(AddressSpace::extent(bytes.start, bytes.len()));
        let silent = MdFlags { event_start_disable: true, ..MdFlags::default() };
        let exposed = MdFlags {
            op_put: writable,
            op_get: true,
            manage_remote: true,
            event_end_disable: true,
            ..silent
        };
        let user = Descriptor::Region.pack();
        let local = MdSpec { region, max_size: None, flags: silent, user, eq: Some(&self.eq) };
        let target = MdSpec { flags: exposed, eq: None, ..local };
        let local = self.portals.md_bind(&local)?;
        // Before the entry that catches what names no region.
        let position = EntryPosition::Head(list);
        let attached =
            self.portals.me_attach(position, match_bits, bits::IGNORE, false).and_then(|entry| {
                match self.portals.md_attach(entry, &target, false) {
                    Ok(target) => Ok((entry, target)),
                    Err(e) => {
                        self.portals.me_unlink(entry).unwrap_or_else(|e| broken(e));
                        Err(e)
                    }
                }
            });
        let (entry, target) = attached.inspect_err(|_| {
            self.portals.md_unlink(local).unwrap_or_else(|e| broken(e));
        })?;
        *self.slots[id.slot as usize].lock() = RegionMds {
            target: Some(target),
            entry: Some(entry),
            local: Some(local),
            start: bytes.start,
        };
        Ok(())
    }
}

/// How often the pages around those needed are looked for, before these alone are registered.
const PROBES: usize = 4;

impl<P: Portals> Pinner for Arc<RegionPinner<P>> {
    const GENERATIONS: u32 = bits::GENERATIONS;

    fn pin(
        &self,
        id: PinId,
        block: MemoryExtent,
        needed: MemoryExtent,
    ) -> Result<MemoryExtent, PinError> {
        let block = same_side(whole_pages(block), needed, self.segment);
        // No descriptor begins at address 0.
        let block = MemoryExtent { start: block.start.max(page_size()), ..block };
        let readable = |at: usize| attach::is_accessible(at as u64, 1, false);
        if needed.start < block.start {
            let is_mapped = readable(needed.start);
            return Err(if is_mapped { PinError::Refused } else { PinError::Unmapped });
        }
        if !self.portals.checks_memory() {
            // A put to a region with a read-only page finds no descriptor.
            let writes = all_writable(needed);
            let same = |at: usize| readable(at) && futex::is_writable(at) == writes;
            return self.register_around(id, block, needed, (&readable, &same), writes);
        }
        let Err(e) = self.register(id, block, true) else { return Ok(block) };
        match refusal(e) {
            PinError::Unmapped => {
                self.register_around(id, block, needed, (&readable, &readable), true)
            }
            other => Err(other),
        }
    }

    fn limit(&self) -> PinError {
        match self.used_up.get(now_ns(), mappings_used_up) {
            true => PinError::Mappings,
            false => PinError::Limit,
        }
    }

    fn unpin(&self, id: PinId, _: MemoryExtent) -> UnpinOutcome {
        let mut region = self.slots[id.slot as usize].lock();
        match self.unlink_target(&mut region) && self.unlink(&mut region.local) {
            true => UnpinOutcome::Done,
            false => UnpinOutcome::Busy,
        }
    }

    fn hide(&self, id: PinId) -> UnpinOutcome {
        match self.unlink_target(&mut self.slots[id.slot as usize].lock()) {
            true => UnpinOutcome::Done,
            false => UnpinOutcome::Busy,
        }
    }

    fn key(&self, id: PinId) -> u64 {
        bits::name_of(id)
    }
}

impl<P: Portals> RegionPinner<P> {
    /// Registers the pages of the bytes needed, for which `is_there` must hold, and those of the
    /// block around them for which `holds` holds. If memory next to them is unmapped meanwhile, it
    /// registers the pages needed alone.
    fn register_around(
        &self,
        id: PinId,
        block: MemoryExtent,
        needed: MemoryExtent,
        (is_there, holds): (&dyn Fn(usize) -> bool, &dyn Fn(usize) -> bool),
        writes: bool,
    ) -> Result<MemoryExtent, PinError> {
        let least = whole_pages(needed);
        for block in core::iter::repeat_n(block, PROBES).chain([least]) {
            let extent = pages_around(block, needed, is_there, holds).ok_or(PinError::Unmapped)?;
            match self.register(id, extent, writes).map_err(refusal) {
                Err(PinError::Unmapped) => {}
                tried => return tried.map(|()| extent),
            }
        }
        Err(PinError::Unmapped)
    }
}

fn refusal(e: PortalsError) -> PinError {
    match e.code {
        "PTL_NO_SPACE" | "PTL_ME_LIST_TOO_LONG" => PinError::Limit,
        "PTL_SEGV" => PinError::Unmapped,
        _ => PinError::Refused,
    }
}

/// The pages that these bytes touch.
fn whole_pages(MemoryExtent { start, end }: MemoryExtent) -> MemoryExtent {
    let page = page_size();
    MemoryExtent { start: start / page * page, end: end.saturating_add(page - 1) / page * page }
}

/// Whether this process can write to all pages that these bytes touch.
fn all_writable(needed: MemoryExtent) -> bool {
    let MemoryExtent { start, end } = whole_pages(needed);
    (start..end).step_by(page_size()).all(futex::is_writable)
}

/// The part of a block on the side of the segment's end where all the bytes needed are; the block
/// if they are on both sides.
fn same_side(block: MemoryExtent, needed: MemoryExtent, segment: MemoryExtent) -> MemoryExtent {
    let MemoryExtent { start, end } = block;
    if segment.covers(needed) {
        MemoryExtent { start, end: end.min(segment.end) }
    } else if segment.overlaps(block) && !segment.overlaps(needed) {
        MemoryExtent { start: start.max(segment.end), end }
    } else {
        block
    }
}

/// The pages of the bytes needed, and those of the block around them for which `holds` holds;
/// `None` unless `is_there` holds for all that are needed.
fn pages_around(
    block: MemoryExtent,
    needed: MemoryExtent,
    is_there: impl Fn(usize) -> bool,
    holds: impl Fn(usize) -> bool,
) -> Option<MemoryExtent> {
    let page = page_size();
    let mut start = needed.start / page * page;
    let mut end = start;
    while end < needed.end {
        if !is_there(end) {
            return None;
        }
        end += page;
    }
    while end < block.end && holds(end) {
        end += page;
    }
    while start > block.start && holds(start - page) {
        start -= page;
    }
    Some(MemoryExtent { start, end: end.min(block.end) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use sys::memory::Mapping;

    #[test]
    fn a_region_ends_where_the_segment_ends() {
        let extent = |start, end| MemoryExtent { start, end };
        let (block, segment) = (extent(0x20000, 0x40000), extent(0x10000, 0x23000));
        let side = |needed| same_side(block, needed, segment);
        assert_eq!(side(extent(0x20008, 0x23000)), extent(0x20000, 0x23000));
        assert_eq!(side(extent(0x23000, 0x23001)), extent(0x23000, 0x40000));
        assert_eq!(side(extent(0x22fff, 0x23001)), block);
        let inside = extent(0x10000, 0x20000);
        assert_eq!(same_side(inside, extent(0x10000, 0x10008), segment), inside);
        assert_eq!(same_side(block, extent(0x20000, 0x20008), MemoryExtent::default()), block);
    }

    #[test]
    fn an_answer_holds_for_a_second() {
        let remembered = Remembered::default();
        assert!(remembered.get(5, || true));
        assert!(remembered.get(5 + Remembered::LASTS - 1, || false));
        assert!(!remembered.get(5 + Remembered::LASTS, || false));
    }

    #[test]
    fn what_is_mapped_is_found() {
        let page = page_size();
        let mapping = Mapping::anonymous(16 * page).expect("memory");
        let start = mapping.base().addr().get();
        let within =
            |from: usize, to: usize| MemoryExtent { start: start + from, end: start + to };
        let (block, needed) = (within(0, 16 * page), within(5 * page + 1, 6 * page + 1));
        let mapped = |at: usize| attach::is_accessible(at as u64, 1, false);
        assert_eq!(pages_around(block, needed, mapped, mapped), Some(block));
        let part = within(2 * page, 8 * page);
        assert_eq!(pages_around(part, needed, mapped, mapped), Some(part));
        let low = MemoryExtent { start: 0, end: 4 * page };
        assert_eq!(pages_around(low, MemoryExtent { start: 8, end: 9 }, mapped, mapped), None);
    }

    /// The pages needed are registered together; those around them only if they are as these.
    #[test]
    fn bytes_on_both_sides_of_the_border_of_read_only_pages_are_found() {
        let page = page_size();
        let whole = MemoryExtent { start: 8 * page, end: 16 * page };
        let read_only_below = 12 * page;
        let mapped = |at: usize| whole.start <= at && at < whole.end;
        let same = |at: usize| mapped(at) && at < read_only_below;
        let needed = MemoryExtent { start: 12 * page - 8, end: 12 * page + 8 };
        let found = MemoryExtent { start: 8 * page, end: 13 * page };
        assert_eq!(pages_around(whole, needed, mapped, same), Some(found));
        let beyond = MemoryExtent { start: 16 * page - 8, end: 16 * page + 8 };
        let block = MemoryExtent { end: 32 * page, ..whole };
        assert_eq!(pages_around(block, beyond, mapped, same), None);
    }

    #[test]
    fn one_read_only_page_makes_bytes_read_only() {
        static CONSTANT: [u32; 2048] = [7; 2048];
        let constant = CONSTANT.as_ptr().addr();
        let mut word = 5u32;
        let word = (&raw mut word).addr();
        assert!(all_writable(MemoryExtent { start: word, end: word + 4 }));
        assert!(!all_writable(MemoryExtent { start: constant, end: constant + 4096 }));
    }
}
