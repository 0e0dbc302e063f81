//! The match cache: what this process remembers of a peer's match lists, so that most messages
//! need no walk.
//!
//! Filled by the walk (`deliver/find.rs`), read by the walk and by `calls/cached.rs`. A walk
//! may be decided by match bits alone, apart from what cannot change while the list's version
//! is the same. Such a walk caches the version, the deciding bits and the descriptor that it
//! found. It also caches what follows from the descriptor: where its memory is mapped here,
//! which ring it logs to, what its events contain. A later message takes the same descriptor
//! while both versions are the same. It must have the same deciding bits, and go to the same
//! portal table and access control entries. Whether the descriptor has room is checked for
//! every message.
//!
//! Invariant: entries are private to this process. No peer can write them, and what a peer wrote
//! was checked when the entry was made. Each entry is a seqlock: a reader that meets a writer
//! walks, a writer that meets a writer does not write. Where only one thread calls, the entry is
//! read in place.

use core::cell::UnsafeCell;
use core::fmt;
use core::mem::{MaybeUninit, offset_of, size_of};
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering, fence};

use crate::arena::{EqCell, EventSlot, MdCell};
use crate::descriptor::traits::Traits;
use crate::event::ring::EventRing;
use crate::message::OpKind;
use crate::types::*;
use sys::hint::cold_path;

const ENTRIES: usize = 8;

/// The cached matches of one peer.
#[derive(Debug, Default)]
pub(crate) struct MatchCache([MatchCacheEntry; ENTRIES]);

/// One entry.
#[repr(align(64))]
pub(crate) struct MatchCacheEntry {
    cached: UnsafeCell<CachedMatch>,
    /// Odd: being written.
    sequence: AtomicU32,
}

/// A cached match, valid while both versions are the same. The pointers lead into the peer's
/// arena and to what this process keeps of the peer; both stay as long as the interface.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct CachedMatch {
    /// Operation and entries ([`key`]); 0: empty.
    pub(crate) key: u64,
    /// The deciding bits, and their values.
    pub(crate) deciding: u64,
    pub(crate) bits: u64,
    pub(crate) version: u64,
    pub(crate) ac_version: u64,
    pub(crate) md: u64,
    pub(crate) traits: Traits,
    pub(crate) length: u64,
    pub(crate) max_size: u64,
    /// What a delivery needs, if it is as simple as `calls/cached.rs` requires.
    pub(crate) prepared: PreparedDelivery,
}

/// What can be computed in advance of a delivery to a cached match.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct PreparedDelivery {
    /// First byte of the descriptor's memory as mapped here, after a check that all of it is
    /// mapped. Null if it is not, or the descriptor's kind needs more steps.
    pub(crate) base: *mut u8,
    /// The words of both versions. Not null if `base` is not, nor if the descriptor is a plain
    /// address space, which `calls/attached.rs` serves.
    pub(crate) pt: *const AtomicU64,
    pub(crate) ac: *const AtomicU64,
    pub(crate) cell: *const MdCell,
    /// The [`HazardWord`](crate::arena::hazard::HazardWord) that names the descriptor.
    pub(crate) hazard: u64,
    /// The mask of the cursor in the state word; 0: the initiator supplies the offset.
    pub(crate) cursor_mask: u64,
    /// The ring of its queue; null: it logs nothing.
    pub(crate) ring: *const EventRing,
    pub(crate) slots: *const EventSlot,
    /// Slots less one.
    pub(crate) mask: u64,
    pub(crate) eq: *const EqCell,
    /// Not 0 if there is a ring: 0 is the key of a ring that has not been set up.
    pub(crate) eq_key: u64,
    /// The word `what` of its END events.
    pub(crate) what: u64,
}

impl PreparedDelivery {
    /// Nothing can be computed in advance.
    pub(crate) const NOT: PreparedDelivery = PreparedDelivery {
        base: ptr::null_mut(),
        pt: ptr::null(),
        ac: ptr::null(),
        cell: ptr::null(),
        hazard: 0,
        cursor_mask: 0,
        ring: ptr::null(),
        slots: ptr::null(),
        mask: 0,
        eq: ptr::null(),
        eq_key: 0,
        what: 0,
    };
}

const WORD: usize = size_of::<AtomicPtr<()>>();
const WORDS: usize = size_of::<CachedMatch>() / WORD;

const _: () = assert!(WORD == 8 && WORDS * WORD == size_of::<CachedMatch>() && WORDS == 21);

impl Default for MatchCacheEntry {
    fn default() -> Self {
        let cached = CachedMatch {
            key: 0,
            deciding: 0,
            bits: 0,
            version: 0,
            ac_version: 0,
            md: 0,
            traits: Traits(0),
            length: 0,
            max_size: 0,
            prepared: PreparedDelivery::NOT,
        };
        MatchCacheEntry { cached: UnsafeCell::new(cached), sequence: AtomicU32::new(0) }
    }
}

impl fmt::Debug for MatchCacheEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MatchCacheEntry").finish_non_exhaustive()
    }
}

// SAFETY: threads copy the words of the entry as atomics, under its seqlock; any thread may use
// what the pointers lead to.
unsafe impl Send for MatchCacheEntry {}

// SAFETY: as above.
unsafe impl Sync for MatchCacheEntry {}

/// The operation and the entries of a cached match; never 0. Two keys differ if either has an
/// entry: the indices of access control entries are far below the cut.
#[inline(always)]
pub(crate) fn key(kind: OpKind, pt_index: PtIndex, ac_index: AcIndex) -> u64 {
    u64::from(pt_index) | u64::from(ac_index.min(0x3fff_ffff)) << 32 | (kind as u64 + 1) << 62
}

impl MatchCache {
    /// The entry that such a message would have.
    #[inline(always)]
    pub(crate) fn of(
        &self,
        kind: OpKind,
        pt_index: PtIndex,
        match_bits: MatchBits,
    ) -> &MatchCacheEntry {
        let at = match_bits as usize ^ pt_index as usize ^ (kind as usize) << 1;
        &self.0[at % ENTRIES]
    }
}

impl MatchCacheEntry {
    /// The cached match, if it is for messages with this key and these bits. Unless only one
    /// thread calls (`single`), it is copied to `copy`. A thread that reads it in place writes
    /// no entry before it is done with the result.
    #[inline(always)]
    pub(crate) fn read<'a>(
        &'a self,
        single: bool,
        copy: &'a mut MaybeUninit<CachedMatch>,
        key: u64,
        match_bits: MatchBits,
    ) -> Option<&'a CachedMatch> {
        let cached = if single {
            // SAFETY: only this thread accesses it, and it does not write while it holds the
            // reference.
            unsafe { &*self.cached.get() }
        } else {
            cold_path();
            self.copy(copy)?
        };
        if cached.key == key && match_bits & cached.deciding == cached.bits {
            return Some(cached);
        }
        cold_path();
        None
    }

    /// The address of the next message with this key and these bits, if the match is a
    /// descriptor that manages its own offset. A hint: another thread may be changing the entry.
    #[inline(always)]
    pub(crate) fn guess(&self, key: u64, match_bits: MatchBits) -> Option<*mut u8> {
        let number =
            |offset: usize| self.word(offset / WORD).load(Ordering::Relaxed).addr() as u64;
        let pointer = |offset: usize| self.word(offset / WORD).load(Ordering::Relaxed);
        let mask = number(offset_of!(CachedMatch, prepared.cursor_mask));
        let base = pointer(offset_of!(CachedMatch, prepared.base)).cast::<u8>();
        let cell = pointer(offset_of!(CachedMatch, prepared.cell)).cast::<MdCell>();
        if number(offset_of!(CachedMatch, key)) != key
            || match_bits & number(offset_of!(CachedMatch, deciding))
                != number(offset_of!(CachedMatch, bits))
            || mask == 0
            || base.is_null()
            || cell.is_null()
        {
            cold_path();
            return None;
        }
        // SAFETY: not null, so it is a descriptor in the arena of this or another match, which
        // stays mapped.
        let cursor = unsafe { &*cell }.state.0.load(Ordering::Relaxed) & mask;
        Some(base.wrapping_add(cursor as usize))
    }

    #[inline(always)]
    fn word(&self, i: usize) -> &AtomicPtr<()> {
        debug_assert!(i < WORDS);
        // SAFETY: a `CachedMatch` consists of that many words, each a number or a pointer, which
        // threads only access as atomics.
        unsafe { AtomicPtr::from_ptr(self.cached.get().cast::<*mut ()>().add(i)) }
    }

    /// Copies the match, unless another thread is changing it.
    #[inline(always)]
    fn copy<'a>(&self, copy: &'a mut MaybeUninit<CachedMatch>) -> Option<&'a CachedMatch> {
        // Acquire pairs with the Release that made it even.
        let sequence = self.sequence.load(Ordering::Acquire);
        let to = copy.as_mut_ptr().cast::<*mut ()>();
        for i in 0..WORDS {
            // SAFETY: `to` has room for the words of a `CachedMatch`.
            unsafe { to.add(i).write(self.word(i).load(Ordering::Relaxed)) };
        }
        fence(Ordering::Acquire);
        let whole = sequence & 1 == 0 && self.sequence.load(Ordering::Relaxed) == sequence;
        // SAFETY: all words have been written, and are those of one match.
        whole.then(|| unsafe { copy.assume_init_ref() })
    }

    /// Writes the match, unless another thread is writing.
    pub(crate) fn write(&self, cached: &CachedMatch) {
        let relaxed = Ordering::Relaxed;
        let even = self.sequence.load(relaxed) & !1;
        if self.sequence.compare_exchange(even, even + 1, Ordering::Acquire, relaxed).is_err() {
            return;
        }
        // Readers that see any of these stores see the odd sequence at their second look.
        fence(Ordering::Release);
        let from = ptr::from_ref(cached).cast::<*mut ()>();
        for i in 0..WORDS {
            // SAFETY: a `CachedMatch` consists of that many words.
            self.word(i).store(unsafe { from.add(i).read() }, relaxed);
        }
        self.sequence.store(even.wrapping_add(2), Ordering::Release);
    }
}
