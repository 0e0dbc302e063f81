//! Large areas: payloads of large Mediums that stay in memory of their sender, where the handler
//! of a rank that maps it reads them.
//!
//! Used by `large_medium`: for replies, and for requests that find no area in the outbox.
//! Invariant: the sender writes an area only between taking it, which
//! stores its word, and sending its message. From then until the reader clears the word, only the
//! reader's handler accesses the area. The client itself may write the payload there, before it
//! sends the message or gives the area back.
//!
//! ```text
//!   sender   word 0 ─> MARK | bytes, payload ── message {offset of the payload} ──> reader
//!   reader   word as the message says? handler reads the area, then word ─> 0
//!
//!   area     the word, in a cache line of its own | payload
//!   all      short | short | ring: free | area | area | ... | area | free
//! ```
//!
//! Requests and replies use them alike, with any number of threads on either side: neither waits
//! for a reply. A request waits for an area for a short time; without one, a payload travels in
//! pieces. So a word that is overwritten costs an area at most. A rank that dies leaves its areas
//! as they are.
//!
//! Payloads of up to 8 KiB use two short areas by turns. Others, and those that find no short area
//! free, are in a ring. They take its space in turn, past areas that are not free. The ring
//! becomes larger than the caches of a core, and its space is used again as late as it can be.
//! Until then its last reader has lost the cache lines to others. A store to a line that another
//! core still has takes several times as long. A ring that is little used stays small: the first
//! store to each page of it takes memory and time.

use super::config::Config;
use super::match_bits::{STASH_UNIT, STASHES};
use super::memory;
use super::message::{LARGE_HEAD as HEAD, PAGE, SHORT_PART};
use super::portals::{Portals, PortalsError};
use crate::client_memory::Dst;
use alloc::collections::VecDeque;
use core::ops::Range;
use core::sync::atomic::{AtomicU64, Ordering};
use parking_lot::Mutex;
use sys::cache;
use sys::peer::Peer;

/// The word of an area that is free.
const FREE: u64 = 0;
/// In the word of an area that is taken, besides the length of the payload.
const MARK: u64 = 0x6d65_6469_756d << 16;
/// A ring begins with this part of its bytes, and doubles after as many turns. In these it has
/// lost about as much time as its new pages take, 2 us each.
const FIRST_PART: usize = 16;
const TURNS: u32 = 16;
const _: () = assert!(HEAD as u64 == STASH_UNIT);
/// The longest payload of a short area, and its bytes. It is used again at once, and prefetched
/// before: for such payloads the first level of a cache is large enough.
const SHORT: usize = 8 << 10;
const SHORT_BYTES: usize = SHORT + PAGE;
const _: () = assert!(SHORT_PART == 2 * SHORT_BYTES);

/// The word of an area that is taken for a payload of `n` bytes.
fn taken(n: usize) -> u64 {
    MARK | n as u64
}

/// The bytes in the ring for a payload of `n` bytes: whole pages, because `rep movsb` takes a
/// fifth less time if source and destination lie alike in their pages.
fn bytes_in_ring(n: usize) -> usize {
    (HEAD + n).next_multiple_of(PAGE)
}

pub(super) struct LargeAreas {
    /// Our library memory; nothing if it is not shared.
    own: Option<Dst<'static>>,
    /// Where the areas begin there.
    first: usize,
    taken: Mutex<TakenAreas>,
}

/// Which areas are taken.
struct TakenAreas {
    /// The short area to be taken next, if it is free.
    short: usize,
    ring: Ring,
    /// The fewest bytes in the ring for which a wait has failed, and as many have not become free
    /// since.
    given_up: usize,
}

/// Which parts of the ring are taken.
struct Ring {
    /// Bytes of the ring, now and at most; 0 if there is none.
    bytes: usize,
    most: usize,
    /// How often the areas have begun again at its start, since it has as many bytes.
    turns: u32,
    /// Where the next area begins, if it fits there.
    next: usize,
    /// The areas that are taken or were, as they follow from there on: where they are in the ring.
    /// The first is the oldest, unless areas were passed over.
    areas: VecDeque<Range<usize>>,
}

impl Ring {
    /// Whether it has grown: to twice as many bytes, within its limit.
    fn grow(&mut self) -> bool {
        let grows = self.bytes < self.most;
        self.bytes = self.most.min(2 * self.bytes);
        self.turns = 0;
        grows
    }

    /// Takes as many bytes, which are free from `at` on.
    fn take(&mut self, at: usize, bytes: usize) {
        self.turns += u32::from(at == 0);
        if self.turns > TURNS {
            self.grow();
        }
        self.areas.push_back(at..at + bytes);
        self.next = at + bytes;
    }

    /// Where the next area begins if it has as many bytes and these are free.
    fn next(&self, bytes: usize) -> usize {
        if self.next + bytes <= self.bytes { self.next } else { 0 }
    }

    /// Where as many free bytes are, in turn.
    fn space(&self, bytes: usize) -> Option<usize> {
        let following = self.areas.front().map(|area| area.start);
        let (after, before) = match following {
            None => (self.bytes, self.bytes),
            // The taken areas lie between that one and the next, or around the end.
            Some(start) if start < self.next => (self.bytes, start),
            Some(start) => (start, 0),
        };
        match bytes {
            n if self.next + n <= after => Some(self.next),
            n if n <= before => Some(0),
            _ => None,
        }
    }

    /// The same beyond areas that are not free.
    fn space_beyond(&mut self, bytes: usize) -> Option<usize> {
        self.space(bytes).or_else(|| {
            (0..self.areas.len()).find_map(|_| {
                self.areas.rotate_left(1);
                self.next = self.areas.back()?.end;
                self.space(bytes)
            })
        })
    }
}

/// An area that this process has taken, for the payload of a message that has not left: a large
/// area, or one of the outbox.
#[derive(Clone, Copy, Debug)]
pub struct PayloadArea {
    /// Where the payload is in our library memory.
    pub(super) place: usize,
    /// Its bytes, aligned for any type.
    pub bytes: Dst<'static>,
    /// Whether it is one of the outbox.
    pub(super) in_outbox: bool,
}

/// A payload in an area of its sender.
pub(super) struct LargePayload {
    pub(super) bytes: Dst<'static>,
    word: &'static AtomicU64,
}

impl LargePayload {
    /// The handler has returned: gives the area back.
    pub(super) fn handled(self) {
        // Release pairs with the Acquire in `LargeAreas::is_free`: the handler's accesses come
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
        let taken = |most: usize| {
            let bytes = most.div_ceil(FIRST_PART);
            let ring = Ring { bytes, most, turns: 0, next: 0, areas: VecDeque::new() };
            Mutex::new(TakenAreas { short: 0, ring, given_up: usize::MAX })
        };
        let none = LargeAreas { own, first: 0, taken: taken(0) };
        let bytes = config.large_area_bytes();
        let (Some(memory), true, SHORT_PART..) = (own, config.at_once, bytes) else {
            return Ok(none);
        };
        let areas = memory::targeted(portals, bytes)?;
        let first = areas.as_ptr().addr() - memory.as_ptr().addr();
        // What a header cannot say where it is stays in no area.
        let said = (first as u64).is_multiple_of(STASH_UNIT) && (first + bytes) as u64 <= STASHES;
        let taken = taken(bytes - SHORT_PART);
        Ok(if said { LargeAreas { first, taken, ..none } } else { none })
    }

    /// Our library memory, if it is shared.
    pub(super) fn own(&self) -> Option<Dst<'static>> {
        self.own
    }

    /// Takes an area for a payload of `n` bytes. `None` if no space is free.
    pub(super) fn take(&self, n: usize) -> Option<PayloadArea> {
        let mut areas = self.taken.lock();
        if areas.ring.most == 0 {
            return None;
        }
        let short = [areas.short, 1 - areas.short]
            .into_iter()
            .find(|&short| n <= SHORT && self.is_free(short * SHORT_BYTES));
        let at = match short {
            Some(short) => {
                areas.short = 1 - short;
                short * SHORT_BYTES
            }
            None => {
                let bytes = bytes_in_ring(n);
                let at = self.take_of_ring(&mut areas.ring, bytes)?;
                if bytes >= areas.given_up {
                    areas.given_up = usize::MAX;
                }
                SHORT_PART + at
            }
        };
        let (own, place) = (self.own?, self.first + at + HEAD);
        self.word_at(at)?.store(taken(n), Ordering::Relaxed);
        Some(PayloadArea { place, bytes: own.part(place, n), in_outbox: false })
    }

    /// Whether to wait for an area for a payload of `n` bytes when none is free.
    pub(super) fn may_become_free(&self, n: usize) -> bool {
        let areas = self.taken.lock();
        areas.ring.most != 0 && bytes_in_ring(n) < areas.given_up
    }

    /// A wait for an area for a payload of `n` bytes has failed.
    pub(super) fn give_up(&self, n: usize) {
        let mut areas = self.taken.lock();
        areas.given_up = areas.given_up.min(bytes_in_ring(n));
    }

    /// Takes as many bytes of the ring: where they are in it.
    fn take_of_ring(&self, ring: &mut Ring, bytes: usize) -> Option<usize> {
        let is_free = |area: &Range<usize>| self.is_free(SHORT_PART + area.start);
        let at = loop {
            if let Some(at) = ring.space(bytes) {
                break at;
            }
            if ring.areas.front().is_some_and(is_free) {
                ring.areas.pop_front();
                continue;
            }
            ring.areas.retain(|area| !is_free(area));
            match ring.space_beyond(bytes) {
                Some(at) => break at,
                None if ring.grow() => {}
                None => return None,
            }
        };
        ring.take(at, bytes);
        Some(at)
    }

    /// Whether no reader has the area that begins at this offset, of all areas.
    fn is_free(&self, at: usize) -> bool {
        // Acquire pairs with the Release in `LargePayload::handled`: the handler's accesses come
        // first.
        self.word_at(at).is_some_and(|word| word.load(Ordering::Acquire) == FREE)
    }

    /// The word of the area that begins at this offset.
    fn word_at(&self, at: usize) -> Option<&'static AtomicU64> {
        self.own?.part(self.first + at, size_of::<u64>()).as_u64()
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

    /// Prefetches the area that is taken next, if it is for a payload of `n` bytes: all of a short
    /// one, of others the word. The reader of the message that has just left is busy meanwhile.
    pub(super) fn prefetch_next(&self, n: usize) {
        let Some(own) = self.own else { return };
        let (at, bytes) = {
            let areas = self.taken.lock();
            match n {
                ..=SHORT => (areas.short * SHORT_BYTES, HEAD + n),
                n => (SHORT_PART + areas.ring.next(bytes_in_ring(n)), HEAD),
            }
        };
        cache::prefetch_range_to_write(own.as_ptr().wrapping_add(self.first + at), bytes);
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
    /// Areas that are taken.
    pub(super) fn count_taken(&self) -> usize {
        let areas = self.taken.lock();
        let of_ring = areas.ring.areas.iter().map(|area| SHORT_PART + area.start);
        let all = [0, SHORT_BYTES].into_iter().chain(of_ring).filter(|_| areas.ring.most != 0);
        all.filter(|&at| !self.is_free(at)).count()
    }

    /// The word of an area that this process has taken.
    pub(super) fn word(&self, area: &PayloadArea) -> &AtomicU64 {
        self.word_of(area).expect("shared memory")
    }
}
