//! The outbox: payloads of Medium requests that wait at their sender, where the receiver's handler reads them.
//!
//! Between processes that map each other's library memory, a payload that takes several lines is not put into a receive buffer, through
//! which messages move on and on, so that its lines are in nobody's cache when they are written to and again when they are read. It
//! stays in an area here that was used a moment ago; the header says where that is. A request for which no area is free, or whose
//! target is elsewhere, takes its payload along.
//!
//! An area is taken with the request and goes with its chunk. The reply gives the chunk back, but a handler may read on after it has
//! replied. So where one thread calls, an area is free when the reply *after* that of its own has come from the same process: that
//! process runs one handler at a time, and has sent it after the handler. This takes replies in the order in which they were sent: it
//! is done when they come off the queue. Where several threads call, an area is free with its chunk, and the header asks for a copy of the
//! payload before the handler runs. A process whose own handlers run at the same time makes one in any case.
//!
//! Areas are only written by their holder, or by the handler that has one, and are read by whoever has a request that names them. A process that
//! dies leaves them as they are.

use super::match_bits::{AmHeader, PLACES};
use super::memory;
use super::portals::{Portals, PortalsError};
use super::sync::FreeList;
use super::wait::ClientThread;
use super::{CHUNK, Conduit, Config};
use alloc::boxed::Box;
use core::sync::atomic::{AtomicPtr, AtomicU32, Ordering};
use sys::hint::cold_path;

/// The least payload, in bytes, for which an area pays: a shorter one comes with little more than the lines of its event.
const LEAST: usize = 320;
/// The same where the receiver makes a copy.
const LEAST_COPIED: usize = 512;

/// No area.
const NONE: u32 = u32::MAX;
/// The memory of a process that is not mapped here, in [`Outbox::mapped`].
const NOWHERE: *mut u8 = core::ptr::dangling_mut();

pub(super) struct Outbox {
    /// Areas that are not free, counted where one thread calls; where several do, not 0 if there are any.
    in_use: AtomicU32,
    /// The least payload, in bytes, that is left in an area.
    pub(super) least: usize,
    /// Several threads call.
    par: bool,
    free: FreeList,
    /// The first area, as a place in the library memory of this process.
    first: u64,
    /// Where our library memory is, and its bytes, which are as many in all processes.
    base: *mut u8,
    bytes: usize,
    /// The area that goes with each chunk of ReqSB; only the holder of the chunk touches it.
    of_chunk: Box<[AtomicU32]>,
    /// The area of the last reply of each process that had one, which its handler may still be reading.
    read_last: Box<[AtomicU32]>,
    /// Where the library memory of each process is mapped here; null: not looked up yet.
    mapped: Box<[AtomicPtr<u8>]>,
}

// SAFETY: areas are only written by their holder, of whom there is one at a time; what else the pointer leads to is not touched here.
unsafe impl Send for Outbox {}
// SAFETY: as above.
unsafe impl Sync for Outbox {}

impl Outbox {
    /// The outbox of the process with rank `me`. It has no areas where plain memory must not be used.
    pub(super) fn open<P: Portals>(
        portals: &P,
        config: &Config,
        me: u32,
    ) -> Result<Outbox, PortalsError> {
        let own = portals.extension().and_then(|x| x.library_memory(portals.id()));
        let own = own.filter(|&(_, bytes)| bytes as u64 <= PLACES);
        let (base, bytes) = own.unwrap_or((core::ptr::null_mut(), 0));
        let areas = if config.at_once && own.is_some() { config.outbox_areas } else { 0 };
        let first = match areas {
            0 => 0,
            _ => memory::targeted(portals, areas as usize * CHUNK)?.addr() - base.addr(),
        };
        let par = config.par();
        let none = |count: u32| (0..count).map(|_| AtomicU32::new(NONE)).collect();
        // A message to ourselves needs no area: its payload is in our caches anyway.
        let mapped = |node| match own {
            Some(_) if node != me => AtomicPtr::default(),
            _ => AtomicPtr::new(NOWHERE),
        };
        Ok(Outbox {
            in_use: AtomicU32::new(u32::from(par && areas != 0)),
            least: match (areas, par) {
                (0, _) => usize::MAX,
                (_, false) => LEAST,
                (_, true) => LEAST_COPIED,
            },
            par,
            free: FreeList::new(par, areas),
            first: first as u64,
            base,
            bytes,
            of_chunk: none(config.sb_chunks),
            read_last: none(config.nodes),
            mapped: (0..config.nodes).map(mapped).collect(),
        })
    }

    /// Notes which area goes with this chunk; the caller has just taken both.
    #[inline(always)]
    pub(super) fn note(&self, chunk: u32, place: u64) {
        let area = (place - self.first) / CHUNK as u64;
        self.of_chunk[chunk as usize].store(area as u32, Ordering::Relaxed);
    }

    /// A reply of process `source` to the request with this chunk has come off the queue; the order of calls is that of the replies.
    #[inline(always)]
    pub(super) fn reply_arrived(&self, source: u32, chunk: u32) {
        if self.in_use.load(Ordering::Relaxed) != 0 {
            cold_path();
            self.one_more_reply(source, chunk);
        }
    }

    #[inline(never)]
    fn one_more_reply(&self, source: u32, chunk: u32) {
        if self.par {
            return self.handled(chunk);
        }
        let relaxed = Ordering::Relaxed;
        let area = self.of_chunk[chunk as usize].load(relaxed);
        let read = self.read_last[source as usize].load(relaxed);
        self.of_chunk[chunk as usize].store(NONE, relaxed);
        self.read_last[source as usize].store(area, relaxed);
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
    fn take(&self) -> Option<u32> {
        let area = self.free.take()?;
        if !self.par {
            self.in_use.store(self.in_use.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        }
        Some(area)
    }

    #[inline(always)]
    fn give(&self, area: u32) {
        if !self.par {
            self.in_use.store(self.in_use.load(Ordering::Relaxed) - 1, Ordering::Relaxed);
        }
        self.free.give(area);
    }
}

#[cfg(test)]
impl Outbox {
    /// Areas that are free.
    pub(super) fn left(&self) -> u32 {
        self.free.left()
    }

    /// Whether all areas are free but those that were read last, of which each of so many processes can have one.
    pub(super) fn all_back(&self, nodes: u32) -> bool {
        let relaxed = Ordering::Relaxed;
        let with = |areas: &[AtomicU32]| {
            areas.iter().filter(|area| area.load(relaxed) != NONE).count() as u32
        };
        let read = with(&self.read_last);
        with(&self.of_chunk) == 0 && read <= nodes && self.left() + read == self.free.count()
    }
}

impl<P: Portals> Conduit<P> {
    /// Where the library memory of another process is mapped here, if it is.
    #[inline(always)]
    fn memory_of(&self, node: u32) -> Option<*mut u8> {
        // Acquire pairs with the Release in `look_up`.
        let base = match self.outbox.mapped[node as usize].load(Ordering::Acquire) {
            base if base.is_null() => self.look_up(node),
            base => base,
        };
        (base != NOWHERE).then_some(base)
    }

    #[cold]
    #[inline(never)]
    fn look_up(&self, node: u32) -> *mut u8 {
        let theirs =
            self.portals.extension().and_then(|x| x.library_memory(self.peers[node as usize]));
        let base = theirs.map_or(NOWHERE, |(base, _)| base);
        self.outbox.mapped[node as usize].store(base, Ordering::Release);
        base
    }

    /// Puts the payload of a request to this process into the outbox: its place, which goes into the header. `None`, and nothing done,
    /// if the process cannot read it there, or no area is free.
    ///
    /// # Safety
    /// `n` bytes at `src` are readable, at most [`CHUNK`].
    #[inline(always)]
    pub(super) unsafe fn leave(&self, node: u32, src: *const u8, n: usize) -> Option<u64> {
        let outbox = &self.outbox;
        self.memory_of(node)?;
        let area = outbox.take()?;
        let place = outbox.first + u64::from(area) * CHUNK as u64;
        // SAFETY: the area is ours, and has room for what the caller says is readable; payloads lie in no area of ours.
        unsafe { core::ptr::copy_nonoverlapping(src, outbox.base.add(place as usize), n) };
        Some(place)
    }

    /// Where the payload of a request is that its sender has in his outbox; `None` if it cannot be there.
    #[inline(always)]
    pub(super) fn in_outbox(&self, am: &AmHeader) -> Option<*mut u8> {
        let base = self.memory_of(am.source)?;
        let (place, n) = (am.place as usize, am.length as usize);
        // Places are below 2^36, lengths below 2^24.
        (place % 8 == 0 && n <= CHUNK && place + n <= self.outbox.bytes)
            .then(|| base.wrapping_add(place))
    }

    /// The payload of a request in its sender's outbox, for the handler that this thread is about to run; `None` if it cannot be there.
    #[inline(always)]
    pub(super) fn fetch_payload(
        &self,
        thread: &ClientThread,
        am: &AmHeader,
    ) -> Option<(*mut u8, usize)> {
        let (at, n) = (self.in_outbox(am)?, am.length as usize);
        if !am.copy && !self.config.par() {
            return Some((at, n));
        }
        let copy = thread.payload();
        // SAFETY: the bytes lie in the sender's library memory, which stays mapped, and are no more than the copy has room for; only
        // this thread has it, until its handler returns.
        unsafe { core::ptr::copy_nonoverlapping(at, copy, n) };
        Some((copy, n))
    }
}
