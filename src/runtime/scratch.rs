//! The scratch memory of a host: a part for each of its ranks, which all of them map. It is a
//! *scratch page* and, in jobs of up to 64 ranks, memory for eager copies behind it.
//!
//! Mapped by `gasnet_init`, used by the extended layer for flags and small data;
//! `agreed_environment` uses the file behind the parts. Invariant: a part is zero at start.

use crate::boot::host_memory::HostMemory;
use crate::rank::LocalRank;
use core::sync::atomic::AtomicU64;
use std::io;
use std::os::fd::AsFd;
use sys::memory::{self, Mapping};

/// Bytes of a scratch page.
const PAGE_BYTES: usize = 4096;
/// The same in words.
pub const SCRATCH_WORDS: usize = PAGE_BYTES / 8;
/// Most ranks of a host with memory for eager copies.
pub const EAGER_RANKS: usize = 64;
/// The areas of that memory, of each rank.
pub const EAGER_AREAS: usize = 2;
/// Most ranks of a host with large areas, so that all areas together take some 9 MiB at most.
const LARGE_AREA_RANKS: usize = 16;
/// Words of an area for each of its slots: a cache line and an offset.
const SLOT_WORDS: usize = 9;
/// Words of an area behind its slots: two cache lines with counts.
const COUNT_WORDS: usize = 16;

/// The slots of an area, with this many ranks on the host; a power of two.
#[inline]
pub const fn slots(ranks: usize) -> usize {
    if ranks <= LARGE_AREA_RANKS { 4096 } else { 1024 }
}

/// Words of an area: whole pages.
const fn area_words(ranks: usize) -> usize {
    (slots(ranks) * SLOT_WORDS + COUNT_WORDS).next_multiple_of(SCRATCH_WORDS)
}

/// The scratch memory of this host.
#[derive(Debug)]
pub(super) struct HostScratch {
    words: &'static [AtomicU64],
    /// Words of the part of a rank.
    each: usize,
}

/// Words of the part of a rank, of this many on the host.
pub const fn words_of_each(ranks: usize) -> usize {
    let has_areas = ranks > 1 && ranks <= EAGER_RANKS;
    SCRATCH_WORDS + if has_areas { EAGER_AREAS * area_words(ranks) } else { 0 }
}

/// Bytes of the parts of this many ranks.
pub(super) fn bytes(ranks: u32) -> usize {
    ranks as usize * words_of_each(ranks as usize) * 8
}

impl HostScratch {
    /// Maps the parts of this many ranks.
    ///
    /// # Errors
    /// What the operating system said, if there is not enough memory.
    pub(super) fn map(memory: &HostMemory, ranks: u32) -> io::Result<HostScratch> {
        let file = memory.scratch.as_fd();
        memory::reserve(file, 0, bytes(ranks) as u64)?;
        let words = Mapping::shared(file, 0, bytes(ranks))?.leak_words();
        Ok(HostScratch { words, each: words_of_each(ranks as usize) })
    }

    /// The part of a rank of this host: its page, and its memory for eager copies.
    pub(super) fn part(&self, rank: LocalRank) -> Option<&'static [AtomicU64]> {
        self.words.chunks_exact(self.each).nth(rank.index())
    }
}
