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
//! entries are used again; it finds nothing there, and looks again under the lock. So the table
//! may grow while it is read: its entries stay where they are, its chains are made anew.

use super::extent::MemoryExtent;
use crate::conduit::primitive::{AtomicU32, AtomicU64, Ordering};
use crate::rank::JobRank;
use alloc::boxed::Box;
use core::ops::Range;
use once_cell::race::OnceBox;
use sys::hint::cold_path;

/// The end of a chain.
const NONE: u32 = u32::MAX;
/// A reader gives up after this number of entries of a chain.
const MOST_STEPS: u32 = 64;
/// Bits of the number of a block in a key; aliases differ in their extents.
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
struct Entry {
    key: AtomicU64,
    word: AtomicU64,
    /// What a message must name.
    pin: AtomicU64,
    start: AtomicU64,
    end: AtomicU64,
    next: AtomicU32,
}

impl Entry {
    #[inline]
    fn extent(&self) -> MemoryExtent {
        MemoryExtent {
            start: self.start.load(Ordering::Relaxed) as usize,
            end: self.end.load(Ordering::Relaxed) as usize,
        }
    }
}

/// Entries of the first piece of a table; each further piece has twice as many as the last.
const FIRST: u32 = 64;
/// Most pieces: more than 2^24 entries.
const PIECES: usize = 20;

pub(super) struct RegionTable {
    par: bool,
    region_shift: u32,
    /// Most entries.
    most: u32,
    pieces: [OnceBox<Box<[Entry]>>; PIECES],
    /// The heads of the chains, made anew with each piece: about as many as entries.
    heads: [OnceBox<Box<[AtomicU32]>>; PIECES],
    /// Which of the heads are current: the pieces that exist, less 1.
    level: AtomicU32,
}

impl RegionTable {
    /// Space for `most` regions of this size, a power of two; not used before it is needed.
    pub(super) fn new(par: bool, most: u32, region_bytes: usize) -> RegionTable {
        let table = RegionTable {
            par,
            region_shift: region_bytes.trailing_zeros(),
            most,
            pieces: core::array::from_fn(|_| OnceBox::new()),
            heads: core::array::from_fn(|_| OnceBox::new()),
            level: AtomicU32::new(0),
        };
        table.make_heads(0);
        table
    }

    /// The current heads.
    #[inline]
    fn heads(&self) -> &[AtomicU32] {
        // Acquire pairs with the Release of `add_entries`.
        let level = self.level.load(Ordering::Acquire) as usize;
        self.heads.get(level).and_then(OnceBox::get).map_or(&[], |heads| heads)
    }

    fn make_heads(&self, level: usize) -> &[AtomicU32] {
        let count = (2 * FIRST).min((2 * self.most).next_power_of_two()) << level;
        self.heads[level]
            .get_or_init(|| Box::new((0..count).map(|_| AtomicU32::new(NONE)).collect()))
    }

    /// An entry that exists; `None` for [`NONE`].
    #[inline]
    fn get(&self, at: u32) -> Option<&Entry> {
        let n = at.checked_add(FIRST)?;
        let piece = n.ilog2() - FIRST.ilog2();
        self.pieces.get(piece as usize)?.get()?.get((n - (FIRST << piece)) as usize)
    }

    #[inline]
    fn entry(&self, at: u32) -> &Entry {
        self.get(at).unwrap_or_else(|| panic!("region {at} does not exist"))
    }

    /// The key of the region of a rank in which an address lies; never 0.
    #[inline]
    pub(super) fn key(&self, rank: JobRank, address: usize) -> u64 {
        let block = (address as u64 >> self.region_shift) & ((1 << BLOCK_BITS) - 1);
        (u64::from(rank.0) + 1) << BLOCK_BITS | block
    }

    #[inline]
    fn head(heads: &[AtomicU32], key: u64) -> &AtomicU32 {
        // The upper bits of the product; there is a power of two of heads.
        let hash = key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        &heads[hash as usize & (heads.len() - 1)]
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
        let mut at = Self::head(self.heads(), key).load(Ordering::Acquire);
        for _ in 0..MOST_STEPS {
            let entry = self.get(at)?;
            if entry.key.load(Ordering::Relaxed) == key {
                return Some((at, entry));
            }
            cold_path();
            at = entry.next.load(Ordering::Acquire);
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
        if !self.par {
            // No other thread closes the entry meanwhile.
            let (word, extent) = (entry.word.load(Ordering::Relaxed), entry.extent());
            if !EntryState::Ready.is_of(word) || !extent.covers(bytes) {
                cold_path();
                return (None, None);
            }
            if word & RECENT == 0 {
                cold_path();
                self.set_recent(entry);
            }
            let key = entry.pin.load(Ordering::Relaxed);
            return (Some(transfer(RegionName { key, start: extent.start })), None);
        }
        match self.try_hold(at, entry, key, bytes) {
            LookUp::Hit(_, name) => {
                let result = transfer(name);
                (Some(result), self.release_entry(entry).then_some(at))
            }
            LookUp::Miss => (None, None),
            LookUp::Last(at) => (None, Some(at)),
        }
    }

    #[inline]
    fn try_hold(&self, at: u32, entry: &Entry, key: u64, bytes: MemoryExtent) -> LookUp {
        let old = self.sum(&entry.word, 1);
        let extent = entry.extent();
        // The key again: the entry may have been used for another region before the hold.
        if EntryState::Ready.is_of(old)
            && entry.key.load(Ordering::Relaxed) == key
            && extent.covers(bytes)
        {
            if old & RECENT == 0 {
                cold_path();
                self.set_recent(entry);
            }
            let key = entry.pin.load(Ordering::Relaxed);
            return LookUp::Hit(at, RegionName { key, start: extent.start });
        }
        cold_path();
        if self.release_entry(entry) { LookUp::Last(at) } else { LookUp::Miss }
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

    /// How many entries exist.
    pub(super) fn len(&self) -> u32 {
        let pieces = self.pieces.iter().take_while(|piece| piece.get().is_some()).count();
        ((FIRST << pieces) - FIRST).min(self.most)
    }
}

/// What is called under the lock only.
impl RegionTable {
    /// Adds free entries: their numbers. None if there are as many as there may be.
    pub(super) fn add_entries(&self) -> Range<u32> {
        let first = self.len();
        let piece = (first + FIRST).ilog2() - FIRST.ilog2();
        let last = first.saturating_add(FIRST << piece).min(self.most);
        if first >= last {
            return 0..0;
        }
        let entry = |_| Entry {
            key: AtomicU64::new(0),
            word: AtomicU64::new(0),
            pin: AtomicU64::new(0),
            start: AtomicU64::new(0),
            end: AtomicU64::new(0),
            next: AtomicU32::new(NONE),
        };
        self.pieces[piece as usize].get_or_init(|| Box::new((first..last).map(entry).collect()));
        if piece > 0 {
            self.make_chains(piece as usize);
        }
        first..last
    }

    /// Links all entries to the next heads.
    fn make_chains(&self, level: usize) {
        let (old, new) = (self.heads(), self.make_heads(level));
        for head in old {
            let mut at = head.load(Ordering::Relaxed);
            while let Some(entry) = self.get(at) {
                let next = entry.next.load(Ordering::Relaxed);
                let head = Self::head(new, entry.key.load(Ordering::Relaxed));
                entry.next.store(head.load(Ordering::Relaxed), Ordering::Release);
                head.store(at, Ordering::Relaxed);
                at = next;
            }
        }
        // Release pairs with the Acquire of `heads`.
        self.level.store(level as u32, Ordering::Release);
    }

    /// The entry of a region in the chains, if any.
    pub(super) fn find(&self, key: u64) -> Option<u32> {
        let mut at = Self::head(self.heads(), key).load(Ordering::Relaxed);
        while let Some(entry) = self.get(at) {
            if entry.key.load(Ordering::Relaxed) == key {
                return Some(at);
            }
            at = entry.next.load(Ordering::Relaxed);
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
        let head = Self::head(self.heads(), key);
        entry.next.store(head.load(Ordering::Relaxed), Ordering::Relaxed);
        // Release pairs with the Acquire of `hit`.
        head.store(at, Ordering::Release);
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
        let mut link = Self::head(self.heads(), entry.key.load(Ordering::Relaxed));
        loop {
            let next = link.load(Ordering::Relaxed);
            if next == at {
                // Release: as in `reserve`; what follows was linked before.
                return link.store(entry.next.load(Ordering::Relaxed), Ordering::Release);
            }
            let Some(before) = self.get(next) else { return };
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
