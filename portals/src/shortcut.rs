//! What this process remembers of the match lists of a peer, so that most messages need no walk.
//!
//! A walk that went by match bits alone (apart from what cannot change while the list's version is the same)
//! leaves a note: the version, the bits that decided, and the descriptor it found. A message with the same
//! deciding bits to the same portal and access control entries goes the same way while both versions are the
//! same. Whether the descriptor has room now is looked at anew each time. Notes are private to this process:
//! no peer can write to them.
//!
//! Each note is a seqlock: readers that meet a writer walk, writers that meet a writer do not write.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

use crate::deliver::Header;
use crate::md::Traits;

const WAYS: usize = 8;

/// Notes on one peer.
#[derive(Debug, Default)]
pub(crate) struct Shortcuts([Shortcut; WAYS]);

/// One note.
#[repr(align(64))]
#[derive(Debug, Default)]
pub(crate) struct Shortcut {
    /// Odd: being written.
    sequence: AtomicU32,
    md: AtomicU32,
    /// Which entries and which operation; 0: no note.
    key: AtomicU64,
    /// The deciding bits, and what they were.
    care: AtomicU64,
    bits: AtomicU64,
    version: AtomicU64,
    ac_version: AtomicU64,
    traits: AtomicU64,
    length: AtomicU64,
    max_size: AtomicU64,
}

/// Where a message goes, as long as the versions are the same.
#[derive(Clone, Copy)]
pub(crate) struct Way {
    pub(crate) version: u64,
    pub(crate) ac_version: u64,
    pub(crate) md: u32,
    pub(crate) traits: Traits,
    pub(crate) length: u64,
    pub(crate) max_size: u64,
}

#[inline(always)]
fn key(header: &Header) -> u64 {
    u64::from(header.pt_index) | u64::from(header.ac_index) << 24 | (header.kind as u64 + 1) << 48
}

impl Shortcuts {
    /// The note that a message with this header would have.
    #[inline(always)]
    pub(crate) fn of(&self, header: &Header) -> &Shortcut {
        let at = header.match_bits as usize ^ header.pt_index as usize ^ (header.kind as usize) << 1;
        &self.0[at % WAYS]
    }
}

impl Shortcut {
    /// What the note says of this message.
    #[inline(always)]
    pub(crate) fn read(&self, header: &Header) -> Option<Way> {
        let relaxed = Ordering::Relaxed;
        // Acquire pairs with the Release that made it even.
        let sequence = self.sequence.load(Ordering::Acquire);
        let (found, care, bits) = (self.key.load(relaxed), self.care.load(relaxed), self.bits.load(relaxed));
        let way = Way {
            version: self.version.load(relaxed),
            ac_version: self.ac_version.load(relaxed),
            md: self.md.load(relaxed),
            traits: Traits(self.traits.load(relaxed)),
            length: self.length.load(relaxed),
            max_size: self.max_size.load(relaxed),
        };
        fence(Ordering::Acquire);
        let whole = sequence & 1 == 0 && self.sequence.load(relaxed) == sequence;
        (whole && found == key(header) && header.match_bits & care == bits).then_some(way)
    }

    /// Writes the note, unless another thread is at it.
    pub(crate) fn write(&self, header: &Header, care: u64, way: &Way) {
        let relaxed = Ordering::Relaxed;
        let even = self.sequence.load(relaxed) & !1;
        if self.sequence.compare_exchange(even, even + 1, Ordering::Acquire, relaxed).is_err() {
            return;
        }
        // Readers that see any of these stores see the odd sequence at their second look.
        fence(Ordering::Release);
        self.key.store(key(header), relaxed);
        self.care.store(care, relaxed);
        self.bits.store(header.match_bits & care, relaxed);
        self.version.store(way.version, relaxed);
        self.ac_version.store(way.ac_version, relaxed);
        self.md.store(way.md, relaxed);
        self.traits.store(way.traits.0, relaxed);
        self.length.store(way.length, relaxed);
        self.max_size.store(way.max_size, relaxed);
        self.sequence.store(even.wrapping_add(2), Ordering::Release);
    }
}
