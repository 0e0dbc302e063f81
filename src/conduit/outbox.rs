//! The outbox: payloads of Medium requests that stay at their sender, where the receiver's handler
//! reads them.
//!
//! Used by `request_send` (stash), `request_recv` (read) and `reply_recv` (free). Invariant: the
//! sender writes an area before its request leaves. From then until the area is free, only the
//! receiver's handler accesses it, since it may modify its payload in place. With several
//! threads on either side the receiver first copies the payload to its own memory.
//!
//! ```text
//!   sender   take area, copy payload ── request {offset of the area} ──> receiver
//!   sender   <── reply ───────────────────────────────────────────────── handler reads the area
//!   sender   area free: with that reply (several threads), or with the next one (one thread)
//! ```
//!
//! Small areas are for payloads that fit into a message. Large ones, for up to 8 KiB, exist where
//! one thread calls. A payload that finds none of them free goes to `large_areas`. There both
//! ranks write a word of each area, which costs more than the reply that comes in any case.
//!
//! A receive buffer is filled from its start to its end. So the cache lines of a payload are in no
//! cache when they are written, and not in the receiver's cache when they are read. An area was
//! used a moment ago, so its cache lines are still cached. Between ranks that map each other's
//! library memory, a payload of several cache lines therefore stays in an area, and the header
//! says where. A request of a small payload takes it along if no area is free or its
//! target is elsewhere.
//!
//! An area is taken with the request and goes with its chunk. The reply gives the chunk back, but
//! a handler may read on after it has replied. Where one thread calls, an area is therefore free
//! when the *next* reply of the same rank has arrived. That rank runs one handler at a time,
//! and has sent that reply after the handler. This needs replies in the order in which they were
//! sent, so it is done when they come off the queue. Where several threads call, an area is free
//! with its chunk, and the header asks the receiver to copy the payload before the handler runs. A
//! rank whose own handlers run in parallel copies in any case. A rank that dies leaves its
//! areas as they are. The client writes the payload of a negotiated request into an area itself.

use super::config::Config;
use super::hold::Hold;
use super::large_areas::PayloadArea;
use super::match_bits::{STASH_UNIT, STASHES};
use super::memory;
use super::message::{LARGEST_STASH, MAX_EAGER, STASH_GAP};
use super::portals::{Portals, PortalsError};
use super::sync::{self, FreeList};
use crate::client_memory::{Dst, Src};
use crate::rank::JobRank;
use alloc::boxed::Box;
use core::sync::atomic::{AtomicU32, Ordering};
use once_cell::race::OnceBox;
use sys::cache;
use sys::hint::cold_path;

/// The least payload, in bytes, that is stashed: a shorter one needs little more than the cache
/// line of its event.
const LEAST: usize = 320;
/// The same in a burst: the next event waits until the cache lines of a receive buffer are here,
/// which its reader has fetched ahead. What is shorter travels in its event.
const LEAST_IN_BURST: usize = 33;
/// The same where the receiver makes a copy.
const LEAST_COPIED: usize = 512;

/// No area.
const NONE: u32 = u32::MAX;
const _: () = assert!(STASHES / STASH_UNIT <= NONE as u64);

pub(super) struct Outbox {
    /// Areas that are taken.
    taken: AtomicU32,
    /// The least payload, in bytes, that is stashed; one that is too large for a message if none
    /// is.
    pub(super) least: usize,
    /// The same of a message that is part of a burst.
    pub(super) least_in_burst: usize,
    /// Several threads call.
    par: bool,
    small: Areas<MAX_EAGER>,
    large: Areas<LARGEST_STASH>,
    /// Our library memory, if it is shared; of the same length in all processes.
    own: Option<Dst<'static>>,
    /// The area that goes with each chunk of ReqSB, by its offset in our library memory in units
    /// of [`STASH_UNIT`]; only the holder of the chunk touches it.
    of_chunk: Box<[AtomicU32]>,
    /// The same of the last reply of each process that had one: its handler may still read it.
    read_last: Box<[AtomicU32]>,
    /// The library memory of each process as mapped here, once it has been looked up; nothing if
    /// ours is not shared.
    mapped: Box<[OnceBox<Option<Dst<'static>>>]>,
}

impl Outbox {
    /// The outbox of the process with rank `me`. It has no areas where the fast path is off.
    pub(super) fn open<P: Portals>(
        portals: &P,
        config: &Config,
        me: JobRank,
    ) -> Result<Outbox, PortalsError> {
        let own = portals.shared_host().and_then(|host| host.library_memory(portals.id()));
        let [small, large] = match own {
            Some(_) if config.at_once => config.outbox_counts(),
            _ => [0, 0],
        };
        let par = config.par();
        let small = Areas::open(portals, own, small, par)?;
        let large = Areas::open(portals, own, if par { 0 } else { large }, par)?;
        let areas = small.free.count();
        let (least, least_in_burst) = match (areas, par) {
            (0, _) => (MAX_EAGER + 1, MAX_EAGER + 1),
            (_, false) => (LEAST, LEAST_IN_BURST),
            (_, true) => (LEAST_COPIED, LEAST_COPIED),
        };
        let none = |count: u32| (0..count).map(|_| AtomicU32::new(NONE)).collect();
        let mapped: Box<[OnceBox<_>]> =
            (0..if own.is_some() { config.nodes } else { 0 }).map(|_| OnceBox::new()).collect();
        // A message to ourselves needs no area: its payload is in our caches.
        if let Some(own) = mapped.get(me.index()) {
            own.get_or_init(|| Box::new(None));
        }
        Ok(Outbox {
            taken: AtomicU32::new(0),
            least,
            least_in_burst,
            par,
            small,
            large,
            own,
            of_chunk: none(config.sb_chunks),
            read_last: none(config.nodes),
            mapped,
        })
    }

    /// The library memory of a rank as mapped here, if it is; `look_up` finds it the first time.
    #[inline(always)]
    pub(super) fn memory_of(
        &self,
        rank: JobRank,
        look_up: impl FnOnce() -> Option<Dst<'static>>,
    ) -> Option<Dst<'static>> {
        let mapped = self.mapped.get(rank.index())?;
        match mapped.get() {
            Some(memory) => *memory,
            None => look_up_once(mapped, look_up),
        }
    }

    /// Takes an area for a payload of `n` bytes, at most [`LARGEST_STASH`]. `None` if none is
    /// free.
    #[inline(always)]
    pub(super) fn take_area(&self, n: usize) -> Option<PayloadArea> {
        let own = self.own?;
        let place = if n <= MAX_EAGER { self.small.take() } else { self.take_large() }?;
        sync::count(self.par, &self.taken, 1);
        Some(PayloadArea { place, bytes: own.part(place, n), in_outbox: true })
    }

    #[inline(never)]
    fn take_large(&self) -> Option<usize> {
        self.large.take()
    }

    /// Whether a small area is free.
    pub(super) fn has_area(&self) -> bool {
        self.small.next().is_some()
    }

    /// Copies a payload of at most [`LARGEST_STASH`] bytes into an area and returns its offset in
    /// our library memory. `None`, and nothing done, if no area is free.
    #[inline(always)]
    pub(super) fn stash(&self, payload: Src<'_>) -> Option<u64> {
        let area = self.take_area(payload.len())?;
        area.bytes.copy_from(payload);
        Some(area.place as u64)
    }

    /// Gives the area at this offset back, whose request is not sent.
    #[cold]
    pub(super) fn unstash(&self, offset: u64) {
        self.give(unit_of(offset));
    }

    /// Prefetches `bytes` bytes of the area that is taken next for as many. Its last reader has
    /// the cache lines. The claim of an event's slot waits for stores to them.
    #[inline(always)]
    pub(super) fn prefetch_next(&self, bytes: usize) {
        let next = if bytes <= MAX_EAGER { self.small.next() } else { self.large.next() };
        if let (Some(own), Some(place)) = (self.own, next) {
            cache::prefetch_range_to_write(own.as_ptr().wrapping_add(place), bytes);
        }
    }

    /// Notes which area goes with this chunk; the caller has just taken both.
    #[inline(always)]
    pub(super) fn note(&self, chunk: u32, offset: u64) {
        self.of_chunk[chunk as usize].store(unit_of(offset), Ordering::Relaxed);
    }

    /// A reply of process `source` to the request with this chunk has been taken off the queue.
    /// The order of calls is that of the replies.
    #[inline(always)]
    pub(super) fn reply_arrived(&self, source: JobRank, chunk: u32) {
        if self.taken.load(Ordering::Relaxed) != 0 {
            cold_path();
            self.one_more_reply(source, chunk);
        }
    }

    #[inline(never)]
    fn one_more_reply(&self, source: JobRank, chunk: u32) {
        if self.par {
            return self.handled(chunk);
        }
        let relaxed = Ordering::Relaxed;
        let area = self.of_chunk[chunk as usize].load(relaxed);
        let read = self.read_last[source.index()].load(relaxed);
        self.of_chunk[chunk as usize].store(NONE, relaxed);
        self.read_last[source.index()].store(area, relaxed);
        if read != NONE {
            self.give(read);
        }
    }

    /// The handler of the request with this chunk has returned, or has a copy.
    #[inline(always)]
    pub(super) fn handled(&self, chunk: u32) {
        let of_chunk = &self.of_chunk[chunk as usize];
        let area = of_chunk.load(Ordering::Relaxed);
        if area != NONE {
            of_chunk.store(NONE, Ordering::Relaxed);
            self.give(area);
        }
    }

    #[inline(always)]
    fn give(&self, unit: u32) {
        sync::count(self.par, &self.taken, -1);
        let place = unit as usize * STASH_UNIT as usize;
        if !self.small.give(place) {
            self.give_large(place);
        }
    }

    #[inline(never)]
    fn give_large(&self, place: usize) {
        self.large.give(place);
    }
}

/// The offset of an area in our library memory, in units.
#[inline(always)]
fn unit_of(offset: u64) -> u32 {
    (offset / STASH_UNIT) as u32
}

/// Areas for payloads of up to `MOST` bytes. Their places are offsets in our library memory.
struct Areas<const MOST: usize> {
    free: FreeList,
    /// The place of the first.
    first: usize,
}

impl<const MOST: usize> Areas<MOST> {
    /// From one area to the next.
    const STEP: usize = MOST + STASH_GAP;

    fn open<P: Portals>(
        portals: &P,
        own: Option<Dst<'static>>,
        count: u32,
        par: bool,
    ) -> Result<Self, PortalsError> {
        let bytes = count as usize * Self::STEP;
        let first = match own {
            Some(own) if count != 0 => {
                memory::targeted(portals, bytes)?.as_ptr().addr() - own.as_ptr().addr()
            }
            _ => 0,
        };
        // What the header cannot say where it is stays in no outbox.
        let said = (first as u64).is_multiple_of(STASH_UNIT) && (first + bytes) as u64 <= STASHES;
        Ok(Areas { free: FreeList::new(par, if said { count } else { 0 }), first })
    }

    #[inline(always)]
    fn place(&self, area: u32) -> usize {
        self.first + area as usize * Self::STEP
    }

    #[inline(always)]
    fn take(&self) -> Option<usize> {
        self.free.take(Hold::HERE).map(|area| self.place(area))
    }

    /// The area that is taken next.
    #[inline(always)]
    fn next(&self) -> Option<usize> {
        self.free.next().map(|area| self.place(area))
    }

    /// Gives the area at this place back. False if it is none of these.
    #[inline(always)]
    fn give(&self, place: usize) -> bool {
        let area = place.wrapping_sub(self.first) / Self::STEP;
        let is_one = area < self.free.count() as usize;
        if is_one {
            self.free.give(area as u32);
        }
        is_one
    }
}

#[cold]
#[inline(never)]
fn look_up_once(
    mapped: &OnceBox<Option<Dst<'static>>>,
    look_up: impl FnOnce() -> Option<Dst<'static>>,
) -> Option<Dst<'static>> {
    *mapped.get_or_init(|| Box::new(look_up()))
}

#[cfg(test)]
impl Outbox {
    /// Small and large areas that are free.
    pub(super) fn left(&self) -> [u32; 2] {
        [self.small.free.left(), self.large.free.left()]
    }

    /// Whether all areas are free but those that were read last, of which each of this many
    /// processes can have one.
    pub(super) fn all_back(&self, nodes: u32) -> bool {
        let relaxed = Ordering::Relaxed;
        let with = |areas: &[AtomicU32]| {
            areas.iter().filter(|area| area.load(relaxed) != NONE).count() as u32
        };
        let read = with(&self.read_last);
        let left: u32 = self.left().iter().sum();
        let count = self.small.free.count() + self.large.free.count();
        with(&self.of_chunk) == 0 && read <= nodes && left + read == count
    }
}
