//! What this process remembers of the match lists of a peer, so that most messages need no walk.
//!
//! A walk that went by match bits alone (apart from what cannot change while the list's version is the same)
//! leaves a note: the version, the bits that decided, the descriptor it found, and what follows from it: where
//! its memory is mapped here, which ring it logs to, what its events say. A message with the same deciding
//! bits to the same portal and access control entries goes the same way while both versions are the same.
//! Whether the descriptor has room now is looked at anew each time. Notes are private to this process: no peer
//! can write to them, and what a peer said was checked when the note was made.
//!
//! Each note is a seqlock: readers that meet a writer walk, writers that meet a writer do not write. Where
//! only one thread calls, it is read where it lies.

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

/// Notes on one peer.
#[derive(Debug, Default)]
pub(crate) struct MatchCache([MatchCacheEntry; ENTRIES]);

/// One note.
#[repr(align(64))]
pub(crate) struct MatchCacheEntry {
    cached: UnsafeCell<CachedMatch>,
    /// Odd: being written.
    sequence: AtomicU32,
}

/// Where a message goes, as long as the versions are the same. The pointers lead into the peer's arena and to what this
/// process keeps of the peer; both stay as long as the interface.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct CachedMatch {
    /// Which entries and which operation; 0: no note.
    pub(crate) key: u64,
    /// The deciding bits, and what they were.
    pub(crate) deciding: u64,
    pub(crate) bits: u64,
    pub(crate) version: u64,
    pub(crate) ac_version: u64,
    pub(crate) md: u64,
    pub(crate) traits: Traits,
    pub(crate) length: u64,
    pub(crate) max_size: u64,
    /// What the rest is good for: a message that does not need more care than [`crate::prepared`] takes.
    pub(crate) prepared: PreparedDelivery,
}

/// What can be said beforehand of a delivery by a note.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(crate) struct PreparedDelivery {
    /// First byte of the descriptor's memory as mapped here, all of which was checked to be there; null if it is not, or the
    /// descriptor is of a kind that needs more care.
    pub(crate) base: *mut u8,
    /// The words of both versions.
    pub(crate) pt: *const AtomicU64,
    pub(crate) ac: *const AtomicU64,
    pub(crate) cell: *const MdCell,
    /// [`crate::hazard::HazardWord`] that names the descriptor.
    pub(crate) hazard: u64,
    /// The bits of the cursor in the state word; 0: the initiator says where.
    pub(crate) cursor_mask: u64,
    /// Its queue's ring; null: it logs nothing.
    pub(crate) ring: *const EventRing,
    pub(crate) slots: *const EventSlot,
    /// Slots less one.
    pub(crate) mask: u64,
    pub(crate) eq: *const EqCell,
    /// Not 0 where there is a ring: that is the key of a ring that has not been set up.
    pub(crate) eq_key: u64,
    /// What an END event says of descriptor and initiator.
    pub(crate) what: u64,
}

impl PreparedDelivery {
    /// Nothing can be said.
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
        f.debug_struct("Shortcut").finish_non_exhaustive()
    }
}

// SAFETY: threads copy the words of the note as atomics, under its seqlock; what the pointers lead to may be used by any
// thread.
unsafe impl Send for MatchCacheEntry {}

// SAFETY: as above.
unsafe impl Sync for MatchCacheEntry {}

/// Which entries and which operation a note is for; never 0. No two are the same of which one has a note: access control entries
/// have numbers far below the cut.
#[inline(always)]
pub(crate) fn key(kind: OpKind, pt_index: PtIndex, ac_index: AcIndex) -> u64 {
    u64::from(pt_index) | u64::from(ac_index.min(0x3fff_ffff)) << 32 | (kind as u64 + 1) << 62
}

impl MatchCache {
    /// The note that such a message would have.
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
    /// What the note says, if it is for messages with this key and these bits. Unless only one thread calls (`single`), it is
    /// copied to `copy`. A thread that reads it where it lies writes no note before it is done with what it got.
    #[inline(always)]
    pub(crate) fn read<'a>(
        &'a self,
        single: bool,
        copy: &'a mut MaybeUninit<CachedMatch>,
        key: u64,
        match_bits: MatchBits,
    ) -> Option<&'a CachedMatch> {
        let cached = if single {
            // SAFETY: only this thread touches it, and it does not write it as long as it has the reference.
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

    /// Where the next message with this key and these bits will go, if the note leads to a descriptor whose offset is its own; as a hint, which
    /// another thread may be changing.
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
        // SAFETY: not null, so it is a descriptor of an arena of this or another note, which stays mapped.
        let cursor = unsafe { &*cell }.state.0.load(Ordering::Relaxed) & mask;
        Some(base.wrapping_add(cursor as usize))
    }

    #[inline(always)]
    fn word(&self, i: usize) -> &AtomicPtr<()> {
        debug_assert!(i < WORDS);
        // SAFETY: a `CachedMatch` is so many words, each a number or a pointer, that threads only touch as atomics.
        unsafe { AtomicPtr::from_ptr(self.cached.get().cast::<*mut ()>().add(i)) }
    }

    /// Copies the note, unless another thread is changing it.
    #[inline(always)]
    fn copy<'a>(&self, copy: &'a mut MaybeUninit<CachedMatch>) -> Option<&'a CachedMatch> {
        // Acquire pairs with the Release that made it even.
        let sequence = self.sequence.load(Ordering::Acquire);
        let to = copy.as_mut_ptr().cast::<*mut ()>();
        for i in 0..WORDS {
            // SAFETY: a `CachedMatch` has room for its words.
            unsafe { to.add(i).write(self.word(i).load(Ordering::Relaxed)) };
        }
        fence(Ordering::Acquire);
        let whole = sequence & 1 == 0 && self.sequence.load(Ordering::Relaxed) == sequence;
        // SAFETY: all its words have been written, and are those of a note.
        whole.then(|| unsafe { copy.assume_init_ref() })
    }

    /// Writes the note, unless another thread is at it.
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
            // SAFETY: a `CachedMatch` is so many words.
            self.word(i).store(unsafe { from.add(i).read() }, relaxed);
        }
        self.sequence.store(even.wrapping_add(2), Ordering::Release);
    }
}
