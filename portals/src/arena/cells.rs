//! The structures of an arena: atomics in whole cache lines, the same for every process.
//!
//! Used through [`super::ArenaView`]. Invariant: all fields are atomics, so any bit pattern is
//! valid and a shared reference is sound while other processes write. Words with different writers
//! are in different cache lines, unless one operation must write both.

use core::mem::{align_of, offset_of, size_of};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

pub(crate) use crate::base::LINE;
use crate::types::*;
use sys::checksum;
use sys::peer::Peer;

/// Hazard slots per process.
pub(crate) const HAZARDS: usize = 64;

/// Most pieces of a scattered descriptor.
pub(crate) const IOVECS: usize = 16;

/// Most processes of a fabric: the limit of a hazard word.
pub const PROCESSES: u32 = 0x7fff;

/// First word of an arena whose interface is open ("portals3", first byte lowest).
pub(crate) const MAGIC: u64 = u64::from_le_bytes(*b"portals3");
/// In the place of [`MAGIC`]: the arena is taken, and its interface is not open yet.
pub(crate) const JOINED: u64 = u64::from_le_bytes(*b"joined  ");
/// In the place of [`MAGIC`]: the interface is closed and never opened again.
pub(crate) const CLOSED: u64 = u64::from_le_bytes(*b"closed  ");

/// The owner of an arena, and the arena's layout. Written before `magic` (Release), never
/// changed.
#[repr(C, align(64))]
#[derive(Debug)]
pub(crate) struct Ident {
    pub(crate) magic: AtomicU64,
    /// Address of a word of the owner's private memory; used only as an argument of cross-memory
    /// attach.
    pub(crate) secret_at: AtomicU64,
    /// The random number in that word, by which a peer knows that it has reached the owner.
    pub(crate) secret: AtomicU64,
    /// The owner's process id in the operating system.
    pub(crate) os_pid: AtomicU32,
    pub(crate) max_mes: AtomicU32,
    pub(crate) max_mds: AtomicU32,
    pub(crate) max_eqs: AtomicU32,
    pub(crate) max_ac_index: AtomicU32,
    pub(crate) max_pt_index: AtomicU32,
    /// The name of the owner's bell ([`sys::bell`]), or 0.
    pub(crate) bell: AtomicU64,
}

/// The check of words that say where memory is, which deliverers cannot bound: they refuse words
/// that do not have their seal.
#[inline(always)]
pub(crate) fn seal<const N: usize>(words: [u64; N]) -> u32 {
    (words.into_iter().fold(MAGIC, checksum::add) >> 32) as u32
}

/// Reads a word of another process's arena.
#[inline(always)]
pub(crate) fn peer_word(word: &AtomicU64) -> Peer<u64> {
    Peer::new(word.load(Ordering::Relaxed))
}

/// A word alone in its cache line.
#[repr(C, align(64))]
#[derive(Debug)]
pub(crate) struct OwnLine<T>(pub(crate) T);

/// Words that name the descriptors that a process is using; see [`super::hazard`].
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Hazards {
    /// Bit i is set before slot i is used for the first time.
    pub(crate) used: OwnLine<AtomicU64>,
    pub(crate) slots: [OwnLine<AtomicU64>; HAZARDS],
}

/// The start of an arena; its layout does not depend on limits.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct ArenaHeader {
    pub(crate) ident: Ident,
    /// `PTL_SR_DROP_COUNT`.
    pub(crate) drops: OwnLine<AtomicU64>,
    /// See [`super::doorbell`].
    pub(crate) doorbell: OwnLine<AtomicU32>,
    /// Index + 1 of the process that swaps for a get-put, or 0.
    pub(crate) swap_lock: OwnLine<AtomicU32>,
    pub(crate) hazards: Hazards,
}

/// A portal table entry: a list of match entries.
#[repr(C, align(64))]
#[derive(Debug)]
pub(crate) struct PtEntry {
    /// Odd while the owner changes the list or a descriptor on it.
    pub(crate) version: AtomicU64,
    /// Index + 1 of the first match entry, or 0.
    pub(crate) head: AtomicU32,
}

/// An access control entry.
#[repr(C, align(64))]
#[derive(Debug)]
pub(crate) struct AcEntry {
    /// Odd while the owner changes the entry.
    pub(crate) version: AtomicU64,
    /// nid << 32 | pid.
    pub(crate) process: AtomicU64,
    /// uid << 32 | jid.
    pub(crate) ids: AtomicU64,
    pub(crate) pt_index: AtomicU32,
    /// 0: admits no process.
    pub(crate) valid: AtomicU32,
}

/// A match entry.
#[repr(C, align(64))]
#[derive(Debug)]
pub(crate) struct MeCell {
    pub(crate) match_bits: AtomicU64,
    pub(crate) ignore_bits: AtomicU64,
    /// nid << 32 | pid.
    pub(crate) match_id: AtomicU64,
    /// Index + 1 of the next entry, or 0.
    pub(crate) next: AtomicU32,
    /// Index + 1 of the descriptor, or 0.
    pub(crate) md: AtomicU32,
}

/// A memory descriptor: one cache line that only the owner writes, one for the state that
/// deliveries change.
#[repr(C, align(64))]
#[derive(Debug)]
pub(crate) struct MdCell {
    /// See [`Traits`](crate::descriptor::traits::Traits).
    pub(crate) traits: AtomicU64,
    /// Bytes.
    pub(crate) length: AtomicU64,
    pub(crate) max_size: AtomicU64,
    /// Offset in the arena or in the segment.
    pub(crate) start: AtomicU64,
    /// Address in the owner's address space; used only as an argument of cross-memory attach.
    pub(crate) address: AtomicU64,
    /// Offset of its [`IovTable`], or 0.
    pub(crate) iov: AtomicU64,
    /// The key of its event queue ([`EqShape::key`]), which outlives reuse of the index; 0: no
    /// queue.
    pub(crate) eq_key: AtomicU64,
    pub(crate) generation: AtomicU32,
    /// [`MdCell::seal_of`] its words.
    pub(crate) seal: AtomicU32,
    /// See [`state`](crate::descriptor::state).
    pub(crate) state: OwnLine<AtomicU64>,
}

impl MdCell {
    /// The [`seal`] of a descriptor with these words.
    #[inline(always)]
    pub(crate) fn seal_of(traits: u64, length: u64, start: u64, address: u64, iov: u64) -> u32 {
        // Of `address` and `iov` one is used.
        seal([traits, length, start, address ^ iov.rotate_left(32)])
    }

    /// Whether the words that say where the memory is are those that the owner wrote; `traits`
    /// were read from this cell.
    #[inline(always)]
    pub(crate) fn is_sealed(&self, traits: u64) -> bool {
        let word = |word: &AtomicU64| word.load(Ordering::Relaxed);
        let (length, start) = (word(&self.length), word(&self.start));
        let seal = MdCell::seal_of(traits, length, start, word(&self.address), word(&self.iov));
        Peer::new(self.seal.load(Ordering::Relaxed)).equals(seal)
    }
}

/// The pieces of a scattered descriptor.
#[repr(C, align(64))]
#[derive(Debug)]
pub(crate) struct IovTable {
    pub(crate) count: AtomicU64,
    pub(crate) pieces: [IovPiece; IOVECS],
}

impl IovTable {
    /// The pieces in use.
    pub(crate) fn used(&self) -> &[IovPiece] {
        let count = peer_word(&self.count).below(IOVECS).unwrap_or(IOVECS);
        &self.pieces[..count]
    }
}

/// One piece: see the fields of the same names in [`MdCell`].
#[repr(C)]
#[derive(Debug)]
pub(crate) struct IovPiece {
    pub(crate) kind: AtomicU32,
    pub(crate) seal: AtomicU32,
    pub(crate) start: AtomicU64,
    pub(crate) address: AtomicU64,
    pub(crate) length: AtomicU64,
}

impl IovPiece {
    /// The [`seal`] of a piece with these words.
    pub(crate) fn seal_of(kind: u32, start: u64, address: u64, length: u64) -> u32 {
        seal([kind.into(), start, address, length])
    }

    /// As [`MdCell::is_sealed`].
    pub(crate) fn is_sealed(&self) -> bool {
        let word = |word: &AtomicU64| word.load(Ordering::Relaxed);
        let kind = self.kind.load(Ordering::Relaxed);
        let (start, address) = (word(&self.start), word(&self.address));
        let seal = IovPiece::seal_of(kind, start, address, word(&self.length));
        Peer::new(self.seal.load(Ordering::Relaxed)).equals(seal)
    }
}

/// Position and size of a queue's ring.
#[repr(C, align(64))]
#[derive(Debug)]
pub(crate) struct EqShape {
    /// Equal to [`MdCell::eq_key`] of its descriptors.
    pub(crate) key: AtomicU64,
    /// Offset of the first slot.
    pub(crate) ring: AtomicU64,
    /// Slots, a power of two.
    pub(crate) size: AtomicU64,
}

/// What producers record besides events: those that found no room, and how far the queue is
/// claimed.
#[repr(C, align(64))]
#[derive(Debug)]
pub(crate) struct EqLosses {
    /// Events lost so far.
    pub(crate) count: AtomicU64,
    /// The position that the last of them would have had.
    pub(crate) last: AtomicU64,
    /// What producers that wait for long know: a [`ClaimedBelow`].
    pub(crate) claimed: AtomicU64,
}

/// A position of a queue below which all are claimed. Bits 40 to 63 hold the key of the queue,
/// bits 0 to 39 the position modulo 2^40.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClaimedBelow(u64);

impl ClaimedBelow {
    const POSITION_BITS: u32 = 40;

    pub(crate) fn new(key: u64, position: u64) -> ClaimedBelow {
        let above = u64::BITS - Self::POSITION_BITS;
        ClaimedBelow(key << Self::POSITION_BITS | position << above >> above)
    }

    fn key(self) -> u64 {
        self.0 >> Self::POSITION_BITS
    }

    /// How far the position is ahead of another one of the same queue, modulo 2^40: 0 or negative
    /// behind it.
    fn ahead_of(self, other: ClaimedBelow) -> i64 {
        let above = u64::BITS - Self::POSITION_BITS;
        (self.0.wrapping_sub(other.0) << above) as i64 >> above
    }

    /// Whether this is known later than the other: of a later queue, or further ahead.
    fn is_later_than(self, other: ClaimedBelow) -> bool {
        match self.key() == other.key() {
            true => self.ahead_of(other) > 0,
            false => self.key() > other.key(),
        }
    }

    /// Records this in the words of its queue, which producers share.
    pub(crate) fn store(self, word: &AtomicU64) {
        let later = |known| self.is_later_than(ClaimedBelow(known)).then_some(self.0);
        // Release pairs with the Acquire in `covers`: the claims are visible.
        let _ = word.fetch_update(Ordering::Release, Ordering::Relaxed, later);
    }

    /// Whether such a word says of the queue with `key`, of `size` slots, that `position`, which
    /// is the next to be consumed, is claimed. No position more than `size` ahead is claimed then.
    pub(crate) fn covers(word: &AtomicU64, (key, size): (u64, u64), position: u64) -> bool {
        let known = ClaimedBelow(word.load(Ordering::Acquire));
        let position = ClaimedBelow::new(key, position);
        known.key() == position.key() && (1..=size as i64).contains(&known.ahead_of(position))
    }
}

/// An event queue.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct EqCell {
    pub(crate) shape: EqShape,
    /// Position of the next event to be consumed.
    pub(crate) head: OwnLine<AtomicU64>,
    pub(crate) losses: EqLosses,
}

/// An event; see [`crate::event`]. `what` is made by `Posting::what`.
#[repr(C, align(64))]
#[derive(Debug)]
pub(crate) struct EventSlot {
    pub(crate) control: AtomicU64,
    pub(crate) what: AtomicU64,
    pub(crate) match_bits: AtomicU64,
    pub(crate) hdr_data: AtomicU64,
    pub(crate) rlength: AtomicU64,
    pub(crate) mlength: AtomicU64,
    pub(crate) offset: AtomicU64,
    /// link << 32 | threshold.
    pub(crate) link: AtomicU64,
}

impl EventSlot {
    /// The words that hold an inline payload.
    #[inline(always)]
    pub(crate) fn inline(&self) -> InlineWords {
        [&self.rlength, &self.mlength, &self.offset, &self.link]
            .map(|word| word.load(Ordering::Relaxed))
    }
}

const _: () = {
    assert!(size_of::<Ident>() == LINE);
    assert!(size_of::<OwnLine<AtomicU64>>() == LINE);
    assert!(size_of::<PtEntry>() == LINE);
    assert!(size_of::<AcEntry>() == LINE);
    assert!(size_of::<MeCell>() == LINE);
    assert!(size_of::<MdCell>() == 2 * LINE);
    assert!(offset_of!(MdCell, state) == LINE);
    assert!(size_of::<EqCell>() == 3 * LINE);
    assert!(size_of::<EventSlot>() == LINE);
    assert!(size_of::<ArenaHeader>().is_multiple_of(LINE));
    assert!(align_of::<ArenaHeader>() == LINE);
};

#[cfg(test)]
mod tests {
    use super::*;

    /// What producers report of a queue is right in every lap of the 40 bits, and a report that
    /// is old says nothing.
    #[test]
    fn a_report_covers_what_is_claimed_in_every_lap() {
        let (key, size) = (7, 1024);
        let word = AtomicU64::new(0);
        for lap in 0..3u64 {
            for near in [0, 1 << 38, 1 << 39, (1 << 40) - 1000] {
                let claimed = (lap << 40) + near + size;
                ClaimedBelow::new(key, claimed).store(&word);
                let covers = |position| ClaimedBelow::covers(&word, (key, size), position);
                assert!(covers(claimed - 1) && covers(claimed - size), "{claimed:#x}");
                assert!(!covers(claimed) && !covers(claimed + 1), "{claimed:#x}");
                assert!([38, 39, 40, 41].iter().all(|bit| !covers(claimed + size + (1 << bit))));
                assert!(!ClaimedBelow::covers(&word, (key + 1, size), claimed - 1));
                ClaimedBelow::new(key, claimed - 5).store(&word);
                ClaimedBelow::new(key - 1, claimed + 5).store(&word);
                assert!(covers(claimed - 1), "an older report replaces none");
            }
        }
        ClaimedBelow::new(key + 1, 1).store(&word);
        assert!(ClaimedBelow::covers(&word, (key + 1, size), 0));
    }
}
