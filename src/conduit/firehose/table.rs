//! The regions that a rank can use now: a hash table whose hits take no lock. One holds the
//! regions of peers (`remote`), another those of this rank itself (`local`).
//!
//! Look-ups run on any thread at any time; everything else is called with the lock of the owner
//! of the table held. Invariant: an entry whose count is not 0 keeps its state `READY`, or goes to
//! `STALE`; its payload stays.
//!
//! ```text
//!  word:   ... | recent | state | count of holds (32 bits)
//!
//!  FREE ──reserve──> PENDING ──publish──> READY ──close_idle, if the count is 0──> FREE
//!                       │                 │   ^
//!                    fail│          retire│   └──── REMOTE_ONLY (only peers hold it)
//!                       v                 v
//!                    FAILED             STALE   ──free, by the last holder──> FREE
//! ```
//!
//! A look-up adds a hold first and looks at the state then, as readers with hazards do
//! (Michael, "Hazard Pointers", 2004). An entry is closed by one compare-and-swap of the whole
//! word, from "ready, no holds". So one of the two sees the other. A look-up that met another
//! state takes its hold back. States change by additions only: no such hold is lost.
//!
//! Chains are changed under the lock only. A reader may follow an entry into another chain, since
//! entries are used again; it finds nothing there, and looks again under the lock.

use super::extent::MemoryExtent;
use crate::conduit::primitive::{AtomicU32, AtomicU64, Ordering, Zeroed, Zeros};
use crate::rank::JobRank;
use core::ops::Range;
use sys::hint::cold_path;

/// A reader gives up after this number of entries of a chain.
const MOST_STEPS: u32 = 64;
/// Bits of the number of a block in a key. Those of all addresses that a process can have fit;
/// another address has an alias among them, of which it differs in its extent.
const BLOCK_BITS: u32 = 46;

const STATE_SHIFT: u32 = 32;
const STATE_MASK: u64 = 7 << STATE_SHIFT;
const COUNT_MASK: u64 = (1 << STATE_SHIFT) - 1;
/// Used since the search for victims came by.
const RECENT: u64 = 1 << 35;

/// The states of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub(super) enum EntryState {
    Free = 0,
    /// The owner has not answered, or not been asked.
    Pending = 1,
    /// Hits.
    Ready = 2,
    /// It could not be pinned; in no chain.
    Failed = 3,
    /// No longer to be used by others than its holders; in no chain.
    Stale = 4,
    /// Pinned, but only peers may use it.
    RemoteOnly = 5,
    /// Being unpinned.
    Unpinning = 6,
}

impl EntryState {
    const fn bits(self) -> u64 {
        (self as u64) << STATE_SHIFT
    }

    /// Whether a word has this state: one comparison, in the hits.
    #[inline]
    const fn is_of(self, word: u64) -> bool {
        word & STATE_MASK == self.bits()
    }

    fn of(word: u64) -> EntryState {
        match (word & STATE_MASK) >> STATE_SHIFT {
            1 => EntryState::Pending,
            2 => EntryState::Ready,
            3 => EntryState::Failed,
            4 => EntryState::Stale,
            5 => EntryState::RemoteOnly,
            6 => EntryState::Unpinning,
            _ => EntryState::Free,
        }
    }
}

/// What a search for an idle entry found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IdleTest {
    /// It was idle and is closed now.
    Closed,
    /// It is idle, but was used since the last search.
    SecondChance,
    /// It is held, or not ready.
    InUse,
}

/// What a transfer to a region that is held must name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegionName {
    /// Of a region of a peer, what its [`super::Pinner::key`] has returned there.
    pub key: u64,
    /// The first address that is pinned: offsets in the region count from it.
    pub start: usize,
}

/// The result of a look-up without the lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LookUp {
    /// The caller holds this entry.
    Hit(u32, RegionName),
    /// Nothing, or not enough of it.
    Miss,
    /// As `Miss`; and the last hold of this entry, which is stale or failed, was taken back.
    Last(u32),
}

#[repr(align(64))]
#[derive(Default)]
struct Entry {
    key: AtomicU64,
    word: AtomicU64,
    /// What a message must name.
    pin: AtomicU64,
    start: AtomicU64,
    end: AtomicU64,
    next: AtomicU32,
}

// SAFETY: atomic words, of which 0 is a value and which need no drop.
unsafe impl Zeros for Entry {}

impl Entry {
    #[inline]
    fn extent(&self) -> MemoryExtent {
        MemoryExtent {
            start: self.start.load(Ordering::Relaxed) as usize,
            end: self.end.load(Ordering::Relaxed) as usize,
        }
    }
}

/// Entries that are added first; then as many as there are.
const FIRST: u32 = 64;
/// Neighbouring regions whose chains begin in one cache line.
const NEIGHBOURS: u32 = 16;

/// A page of it takes memory when it is first used.
pub(super) struct RegionTable {
    par: bool,
    region_shift: u32,
    entries: Zeroed<Entry>,
    /// The links to the first entries of the chains: a power of two, twice as many as entries.
    heads: Zeroed<AtomicU32>,
    /// How many entries were added.
    added: AtomicU32,
}

impl RegionTable {
    /// Space for `most` regions of this size, a power of two.
    pub(super) fn new(par: bool, most: u32, region_bytes: usize) -> RegionTable {
        RegionTable {
            par,
            region_shift: region_bytes.trailing_zeros(),
            entries: Zeroed::new(most as usize),
            heads: Zeroed::new((2 * most as usize).next_power_of_two()),
            added: AtomicU32::new(0),
        }
    }

    /// The number of the entry that a link leads to, and the entry. A link is that number plus 1;
    /// at the end of a chain, 0.
    #[inline]
    fn linked(&self, link: u32) -> Option<(u32, &Entry)> {
        let at = link.checked_sub(1)?;
        Some((at, self.entries.get(at as usize)?))
    }

    #[inline]
    fn entry(&self, at: u32) -> &Entry {
        &self.entries[at as usize]
    }

    /// The key of the region of a rank in which an address lies; never 0.
    #[inline]
    pub(super) fn key(&self, rank: JobRank, address: usize) -> u64 {
        let block = (address as u64 >> self.region_shift) & ((1 << BLOCK_BITS) - 1);
        (u64::from(rank.0) + 1) << BLOCK_BITS | block
    }

    /// The link to the first entry of the chain of a key.
    #[inline]
    fn head(&self, key: u64) -> &AtomicU32 {
        let neighbours = u64::from(NEIGHBOURS);
        // The upper bits of the product; there is a power of two of heads. Neighbours begin at
        // another place in each line, so that regions far apart do not all meet in one place.
        let product = (key / neighbours).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let (line, first) = (product >> 32, product >> 60);
        let head = line * neighbours + (first + key) % neighbours;
        &self.heads[head as usize & (self.heads.len() - 1)]
    }

    /// Changes a word by a sum; returns the old one.
    #[inline]
    fn sum(&self, word: &AtomicU64, n: u64) -> u64 {
        if self.par {
            // Acquire pairs with the Release of `publish`: a holder sees the payload. Release
            // pairs with the Acquire of `close_idle`: what a holder read is changed afterwards.
            word.fetch_add(n, Ordering::AcqRel)
        } else {
            let old = word.load(Ordering::Relaxed);
            word.store(old.wrapping_add(n), Ordering::Relaxed);
            old
        }
    }

    /// The entry of a region, without the lock. It may be used for another one at any time.
    #[inline]
    fn probe(&self, key: u64) -> Option<(u32, &Entry)> {
        let mut link = self.head(key).load(Ordering::Acquire);
        for _ in 0..MOST_STEPS {
            let (at, entry) = self.linked(link)?;
            if entry.key.load(Ordering::Relaxed) == key {
                return Some((at, entry));
            }
            cold_path();
            link = entry.next.load(Ordering::Acquire);
        }
        None
    }

    /// Looks a region up, without the lock: a hold if these bytes of it are ready.
    #[inline]
    pub(super) fn hit(&self, key: u64, bytes: MemoryExtent) -> LookUp {
        match self.probe(key) {
            Some((at, entry)) => self.try_hold(at, entry, key, bytes),
            None => LookUp::Miss,
        }
    }

    /// Looks a region up as [`RegionTable::hit`], and releases it when `transfer` returns, which
    /// calls nothing of this table: its result, if these bytes are ready. With it, the entry
    /// whose last hold was taken back, if it is stale or failed.
    #[inline]
    pub(super) fn at_hit<R>(
        &self,
        key: u64,
        bytes: MemoryExtent,
        transfer: impl FnOnce(RegionName) -> R,
    ) -> (Option<R>, Option<u32>) {
        let Some((at, entry)) = self.probe(key) else { return (None, None) };
        // With one thread nothing closes the entry meanwhile.
        let found = match self.par {
            true => self.try_hold(at, entry, key, bytes),
            false => {
                let word = entry.word.load(Ordering::Relaxed);
                let found = self.ready(entry, word, key, bytes);
                found.map_or(LookUp::Miss, |name| LookUp::Hit(at, name))
            }
        };
        match found {
            LookUp::Hit(_, name) => {
                let result = transfer(name);
                (Some(result), (self.par && self.release_entry(entry)).then_some(at))
            }
            LookUp::Miss => (None, None),
            LookUp::Last(at) => (None, Some(at)),
        }
    }

    #[inline]
    fn try_hold(&self, at: u32, entry: &Entry, key: u64, bytes: MemoryExtent) -> LookUp {
        let old = self.sum(&entry.word, 1);
        match self.ready(entry, old, key, bytes) {
            Some(name) => LookUp::Hit(at, name),
            None if self.release_entry(entry) => LookUp::Last(at),
            None => LookUp::Miss,
        }
    }

    /// What to name of an entry with this word, if these bytes of the region of this key are ready
    /// in it. Until then it may have been used for another region.
    #[inline]
    fn ready(
        &self,
        entry: &Entry,
        word: u64,
        key: u64,
        bytes: MemoryExtent,
    ) -> Option<RegionName> {
        let extent = entry.extent();
        let is_ready = EntryState::Ready.is_of(word)
            && entry.key.load(Ordering::Relaxed) == key
            && extent.covers(bytes);
        if !is_ready {
            cold_path();
            return None;
        }
        if word & RECENT == 0 {
            cold_path();
            self.set_recent(entry);
        }
        Some(RegionName { key: entry.pin.load(Ordering::Relaxed), start: extent.start })
    }

    fn set_recent(&self, entry: &Entry) {
        if self.par {
            entry.word.fetch_or(RECENT, Ordering::Relaxed);
        } else {
            entry.word.store(entry.word.load(Ordering::Relaxed) | RECENT, Ordering::Relaxed);
        }
    }

    /// Takes a hold back, without the lock. True if it was the last one of an entry that is stale
    /// or failed: the caller has it freed, under the lock.
    #[inline]
    #[must_use]
    pub(super) fn release(&self, at: u32) -> bool {
        self.release_entry(self.entry(at))
    }

    #[inline]
    fn release_entry(&self, entry: &Entry) -> bool {
        let old = self.sum(&entry.word, 1u64.wrapping_neg());
        old & COUNT_MASK == 1 && (EntryState::Stale.is_of(old) || EntryState::Failed.is_of(old))
    }

    /// The state and the count of an entry.
    #[inline]
    pub(super) fn state(&self, at: u32) -> (EntryState, u32) {
        // Acquire pairs with the Release of `publish`.
        let word = self.entry(at).word.load(Ordering::Acquire);
        (EntryState::of(word), (word & COUNT_MASK) as u32)
    }

    /// The bytes of an entry that the caller holds.
    #[inline]
    pub(super) fn extent(&self, at: u32) -> MemoryExtent {
        self.entry(at).extent()
    }

    /// What a transfer must name, of an entry that the caller holds.
    #[inline]
    pub(super) fn name(&self, at: u32) -> RegionName {
        RegionName { key: self.pin(at), start: self.extent(at).start }
    }

    /// The key in it.
    #[inline]
    pub(super) fn pin(&self, at: u32) -> u64 {
        self.entry(at).pin.load(Ordering::Relaxed)
    }

    /// The sum of all counts. Async-signal-safe.
    pub(super) fn holds(&self) -> u32 {
        (0..self.len()).map(|at| self.state(at).1).sum()
    }

    /// How many entries were added.
    pub(super) fn len(&self) -> u32 {
        self.added.load(Ordering::Acquire)
    }
}

/// What is called under the lock only.
impl RegionTable {
    /// Adds free entries: their numbers. None if there are as many as there may be.
    pub(super) fn add_entries(&self) -> Range<u32> {
        let (first, most) = (self.len(), self.entries.len() as u32);
        let end = most.min(first + first.max(FIRST));
        self.added.store(end, Ordering::Release);
        first..end
    }

    /// The entry of a region in the chains, if any.
    pub(super) fn find(&self, key: u64) -> Option<u32> {
        let mut link = self.head(key).load(Ordering::Relaxed);
        while let Some((at, entry)) = self.linked(link) {
            if entry.key.load(Ordering::Relaxed) == key {
                return Some(at);
            }
            link = entry.next.load(Ordering::Relaxed);
        }
        None
    }

    /// Moves an entry that stays where it is from one state to another, and adds holds.
    pub(super) fn change(&self, at: u32, from: EntryState, to: EntryState, holds: u32) {
        debug_assert_eq!(self.state(at).0, from);
        let sum = to.bits().wrapping_sub(from.bits()).wrapping_add(holds.into());
        self.sum(&self.entry(at).word, sum);
    }

    /// Puts a free entry into the chains, in this state and with this number of holds.
    pub(super) fn reserve(&self, at: u32, key: u64, state: EntryState, holds: u32) {
        let entry = self.entry(at);
        entry.key.store(key, Ordering::Relaxed);
        self.change(at, EntryState::Free, state, holds);
        let head = self.head(key);
        entry.next.store(head.load(Ordering::Relaxed), Ordering::Relaxed);
        // Release pairs with the Acquire of `hit`.
        head.store(at + 1, Ordering::Release);
    }

    /// Gives an entry its payload and makes it ready.
    pub(super) fn publish(&self, at: u32, from: EntryState, pin: u64, extent: MemoryExtent) {
        self.set_payload(at, pin, extent);
        self.change(at, from, EntryState::Ready, 0);
        self.set_recent(self.entry(at));
    }

    /// Gives an entry its payload, before any thread may hold it.
    pub(super) fn set_payload(&self, at: u32, pin: u64, extent: MemoryExtent) {
        let entry = self.entry(at);
        entry.pin.store(pin, Ordering::Relaxed);
        entry.start.store(extent.start as u64, Ordering::Relaxed);
        entry.end.store(extent.end as u64, Ordering::Relaxed);
    }

    /// Adds a hold to an entry that is ready or pending.
    pub(super) fn hold(&self, at: u32) {
        self.sum(&self.entry(at).word, 1);
    }

    /// Takes an entry out of its chain.
    pub(super) fn unlink(&self, at: u32) {
        let entry = self.entry(at);
        let mut link = self.head(entry.key.load(Ordering::Relaxed));
        while let Some((linked, before)) = self.linked(link.load(Ordering::Relaxed)) {
            if linked == at {
                // Release: as in `reserve`; what follows was linked before.
                return link.store(entry.next.load(Ordering::Relaxed), Ordering::Release);
            }
            link = &before.next;
        }
    }

    /// No look-up finds the entry any more; its holders keep it. Returns whether there are none.
    pub(super) fn retire(&self, at: u32, from: EntryState, to: EntryState) -> bool {
        self.unlink(at);
        self.change(at, from, to, 0);
        self.state(at).1 == 0
    }

    /// Moves an entry from `from` to `to` if it has no holds.
    pub(super) fn change_idle(&self, at: u32, from: EntryState, to: EntryState) -> bool {
        let word = &self.entry(at).word;
        let old = word.load(Ordering::Relaxed);
        if old & COUNT_MASK != 0 || EntryState::of(old) != from {
            return false;
        }
        let new = to.bits();
        if !self.par {
            word.store(new, Ordering::Relaxed);
            return true;
        }
        // Acquire pairs with the Release of the last holder.
        word.compare_exchange(old, new, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Tests whether a ready entry is idle, and moves it to another state if it is and was not
    /// used lately. `force` gives no second chance.
    pub(super) fn test_idle(&self, at: u32, to: EntryState, force: bool) -> IdleTest {
        let word = &self.entry(at).word;
        let old = word.load(Ordering::Relaxed);
        if old & COUNT_MASK != 0 || EntryState::of(old) != EntryState::Ready {
            return IdleTest::InUse;
        }
        if old & RECENT != 0 && !force {
            if self.par {
                word.fetch_and(!RECENT, Ordering::Relaxed);
            } else {
                word.store(old & !RECENT, Ordering::Relaxed);
            }
            return IdleTest::SecondChance;
        }
        if self.change_idle(at, EntryState::Ready, to) {
            IdleTest::Closed
        } else {
            IdleTest::InUse
        }
    }
}

#[cfg(test)]
#[path = "table_tests.rs"]
mod tests;
