//! Large areas: payloads of large Mediums that stay in memory of their sender, where the handler
//! of a rank that maps it reads them.
//!
//! Used by `large_medium`. Invariant: the sender writes an area only between taking it, which
//! stores its word, and sending its message. From then until the reader clears the word, only the
//! reader's handler accesses the area. The client itself may write the payload there, before it
//! sends the message or gives the area back.
//!
//! ```text
//!   sender   word 0 ─> MARK | bytes, payload ── message {offset of the payload} ──> reader
//!   reader   word as the message says? handler reads the area, then word ─> 0
//!
//!   area     the word, in a cache line of its own | payload
//! ```
//!
//! Requests and replies use them alike, with any number of threads on either side: neither waits
//! for a reply. No rank waits for an area; without one, a payload travels in pieces. So a word
//! that is overwritten costs an area at most. A rank that dies leaves its areas as they are.

use super::config::Config;
use super::match_bits::{STASH_UNIT, STASHES};
use super::memory;
use super::message::{LARGE_HEAD as HEAD, MAX_EAGER};
use super::portals::{Portals, PortalsError};
use crate::client_memory::Dst;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use sys::cache;
use sys::peer::Peer;

/// The word of an area that is free.
const FREE: u64 = 0;
/// In the word of an area that is taken, besides the length of the payload.
const MARK: u64 = 0x6d65_6469_756d << 16;
const _: () = assert!(HEAD as u64 == STASH_UNIT);

/// The word of an area that is taken for a payload of `n` bytes.
fn taken(n: usize) -> u64 {
    MARK | n as u64
}

pub(super) struct LargeAreas {
    /// Our library memory; nothing if it is not shared.
    own: Option<Dst<'static>>,
    /// Where the areas begin there.
    first: usize,
    count: usize,
    /// Bytes of each.
    bytes: usize,
    /// The area to be taken next, if it is free: of two that are used in turn.
    next: AtomicUsize,
}

/// An area that this process has taken, for the payload of a message that has not left: a large
/// area, or one of the outbox for at most [`MAX_EAGER`] bytes.
#[derive(Clone, Copy, Debug)]
pub struct PayloadArea {
    /// Where the payload is in our library memory.
    pub(super) place: usize,
    /// Its bytes, aligned for any type.
    pub bytes: Dst<'static>,
}

impl PayloadArea {
    pub(super) fn is_large(&self) -> bool {
        self.bytes.len() > MAX_EAGER
    }
}

/// A payload in an area of its sender.
pub(super) struct LargePayload {
    pub(super) bytes: Dst<'static>,
    word: &'static AtomicU64,
}

impl LargePayload {
    /// The handler has returned: gives the area back.
    pub(super) fn handled(self) {
        // Release pairs with the Acquire in `LargeAreas::stash`: the handler's accesses come
        // first.
        self.word.store(FREE, Ordering::Release);
    }
}

impl LargeAreas {
    /// The areas of this process; none where the fast path or the outbox is off.
    pub(super) fn open<P: Portals>(
        portals: &P,
        config: &Config,
    ) -> Result<LargeAreas, PortalsError> {
        let own = portals.shared_host().and_then(|host| host.library_memory(portals.id()));
        let bytes = config.large_area_bytes();
        let none = LargeAreas { own, first: 0, count: 0, bytes, next: AtomicUsize::new(0) };
        let (Some(memory), true, Some(wanted)) =
            (own, config.at_once, config.large_areas.checked_mul(bytes).filter(|&n| n != 0))
        else {
            return Ok(none);
        };
        let areas = memory::targeted(portals, wanted)?;
        let first = areas.as_ptr().addr() - memory.as_ptr().addr();
        // What a header cannot say where it is stays in no area.
        let said = (first as u64).is_multiple_of(STASH_UNIT) && (first + wanted) as u64 <= STASHES;
        Ok(if said { LargeAreas { first, count: config.large_areas, ..none } } else { none })
    }

    /// Our library memory, if it is shared.
    pub(super) fn own(&self) -> Option<Dst<'static>> {
        self.own
    }

    /// Takes an area for a payload of `n` bytes. `None` if none is free.
    pub(super) fn take(&self, n: usize) -> Option<PayloadArea> {
        let own = self.own?;
        let next = self.next.load(Ordering::Relaxed);
        (0..self.count).map(|i| (next + i) % self.count).find_map(|area| {
            let at = self.first + area * self.bytes;
            let word = own.part(at, size_of::<u64>()).as_u64()?;
            let relaxed = Ordering::Relaxed;
            if word.load(relaxed) != FREE {
                return None;
            }
            word.compare_exchange(FREE, taken(n), Ordering::Acquire, relaxed).ok()?;
            self.next.store(area & 1 ^ 1, relaxed);
            Some(PayloadArea { place: at + HEAD, bytes: own.part(at + HEAD, n) })
        })
    }

    /// The word of an area that this process has taken.
    fn word_of(&self, area: &PayloadArea) -> Option<&'static AtomicU64> {
        self.own?.part(area.place - HEAD, size_of::<u64>()).as_u64()
    }

    /// The message about to leave has only the first `n` bytes of an area.
    pub(super) fn shorten(&self, area: &PayloadArea, n: usize) {
        if let Some(word) = self.word_of(area) {
            word.store(taken(n), Ordering::Relaxed);
        }
    }

    /// Prefetches `n` bytes of the area that is taken next. Its last reader has the cache lines,
    /// and the reader of the message that has just left is busy: 0.9 of row `medium_trip` at
    /// 16 KiB.
    pub(super) fn prefetch_next(&self, n: usize) {
        if let Some(own) = self.own
            && self.count > 1
        {
            let at = self.first + self.next.load(Ordering::Relaxed) * self.bytes + HEAD;
            cache::prefetch_range_to_write(own.as_ptr().wrapping_add(at), n);
        }
    }

    /// Gives an area back that no message names.
    pub(super) fn give(&self, area: PayloadArea) {
        if let Some(word) = self.word_of(&area) {
            word.store(FREE, Ordering::Release);
        }
    }

    /// The payload that a message says is at `offset` of its sender's library memory, `memory`;
    /// `None` if it is not there.
    pub(super) fn find(
        memory: Dst<'static>,
        n: Peer<usize>,
        offset: Peer<usize>,
    ) -> Option<LargePayload> {
        let bytes = memory.peer_part(offset, n)?;
        let head = offset.decode(|offset| offset.checked_sub(HEAD).map(Peer::new))?;
        let word = memory.peer_part(head, Peer::new(size_of::<u64>()))?.as_u64()?;
        let taken = taken(bytes.len());
        (word.load(Ordering::Relaxed) == taken).then_some(LargePayload { bytes, word })
    }
}

#[cfg(test)]
impl LargeAreas {
    /// Areas that are free.
    pub(super) fn left(&self) -> usize {
        (0..self.count).filter(|&i| self.word(i).load(Ordering::Relaxed) == FREE).count()
    }

    /// The word of an area.
    pub(super) fn word(&self, i: usize) -> &AtomicU64 {
        let at = self.first + i * self.bytes;
        self.own.and_then(|own| own.part(at, 8).as_u64()).expect("shared memory")
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.count
    }
}
