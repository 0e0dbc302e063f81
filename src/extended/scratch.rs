//! The scratch memory that each rank of a job on one host has: which part of it serves what.
//!
//! Made once, when the job is attached; used by the shared-memory barrier and by the
//! collectives. Invariant: it is zero at the start, and all ranks access a page as atomic 8-byte
//! words only.
//!
//! ```text
//!   bytes    0 ..  896   barrier    a cache line for each level     barrier/shared.rs
//!          896 .. 1024   movement   two cache lines of stream 0     coll/counts.rs
//!         1024 .. 4096   rings      cache lines of short messages   coll/rings.rs
//!         4096 ..        eager      slots, among up to 64 ranks     coll/counts.rs
//! ```
//!
//! The eager memory has an area for each stream of movements. The two cache lines of stream 1 are
//! the last of its area.

use crate::runtime::GasnetJob;
use crate::runtime::scratch::{EAGER_AREAS, SCRATCH_WORDS};
use alloc::boxed::Box;
use core::sync::atomic::AtomicU64;

/// Words from one cache line that a rank writes to the next: two cache lines, because the
/// processor prefetches them in pairs.
const STRIDE: usize = 16;
/// Cache lines of the barrier.
pub(super) const BARRIER_LINES: usize = 7;
/// Words before the rings.
const BEFORE_RINGS: usize = (BARRIER_LINES + 1) * STRIDE;
/// Streams of movements, each of which all ranks carry out in one order: those of the team of all
/// images, and those of the team of all ranks of GASNet-EX.
pub(super) const STREAMS: usize = EAGER_AREAS;
/// Cache lines of all rings of a page.
pub(super) const RING_LINES: usize = (SCRATCH_WORDS - BEFORE_RINGS) / 8;

/// A cache line of words.
pub(super) type WordLine = [AtomicU64; 8];

/// Two cache lines of words.
pub(super) type WordPair = [AtomicU64; STRIDE];

/// The scratch memory of one rank.
#[derive(Clone, Copy, Debug)]
pub(super) struct ScratchPage {
    page: &'static [AtomicU64; SCRATCH_WORDS],
    eager: &'static [AtomicU64],
}

impl ScratchPage {
    fn new(part: &'static [AtomicU64]) -> Option<ScratchPage> {
        let (page, eager) = part.split_first_chunk()?;
        Some(ScratchPage { page, eager })
    }

    /// A word of a cache line of the barrier: each cache line has one for barriers of even and one
    /// for barriers of odd number.
    #[inline(always)]
    pub(super) fn barrier(self, line: usize, epoch: u32) -> &'static AtomicU64 {
        debug_assert!(line < BARRIER_LINES);
        &self.page[line * STRIDE + (epoch as usize & 1)]
    }

    /// The cache lines with the counts of the movements of a stream.
    ///
    /// # Panics
    /// It is not 0, and there are too many ranks.
    #[inline(always)]
    pub(super) fn movement(self, stream: usize) -> &'static WordPair {
        match stream {
            0 => &self.page[BARRIER_LINES * STRIDE..].as_chunks().0[0],
            _ => self.eager(stream).as_chunks().0.last().expect("an area has words"),
        }
    }

    /// The slots of the movements of a stream.
    ///
    /// # Panics
    /// There are too many ranks.
    #[inline(always)]
    pub(super) fn eager(self, stream: usize) -> &'static [AtomicU64] {
        let each = self.eager.len() / EAGER_AREAS;
        &self.eager[stream * each..][..each]
    }

    /// The cache lines of all rings.
    #[inline(always)]
    pub(super) fn rings(self) -> &'static [WordLine] {
        self.page[BEFORE_RINGS..].as_chunks().0
    }
}

/// The pages of all ranks of a job whose processes map each other's memory.
#[derive(Clone, Debug)]
pub(super) struct ScratchPages {
    pages: Box<[ScratchPage]>,
    me: usize,
}

impl ScratchPages {
    /// `None` unless all ranks of the job map each other's segments.
    pub(super) fn of(job: &'static GasnetJob) -> Option<ScratchPages> {
        let parts = job.common_scratch()?;
        let pages = parts.iter().map(|part| ScratchPage::new(part)).collect::<Option<_>>()?;
        Some(ScratchPages { pages, me: job.endpoint.rank.index() })
    }

    /// How many ranks there are.
    pub(super) fn ranks(&self) -> usize {
        self.pages.len()
    }

    /// This rank.
    pub(super) fn me(&self) -> usize {
        self.me
    }

    /// The page of a rank.
    #[inline(always)]
    pub(super) fn page(&self, rank: usize) -> ScratchPage {
        self.pages[rank]
    }

    /// Pages for `n` ranks in this process, as each of them has them; they are never freed.
    #[cfg(test)]
    pub(super) fn for_test(n: usize) -> alloc::vec::Vec<ScratchPages> {
        let words = crate::runtime::scratch::words_of_each(n);
        let part = || (0..words).map(|_| AtomicU64::new(0)).collect::<Box<[AtomicU64]>>();
        let pages: Box<[ScratchPage]> =
            (0..n).filter_map(|_| ScratchPage::new(Box::leak(part()))).collect();
        (0..n).map(|me| ScratchPages { pages: pages.clone(), me }).collect()
    }
}
