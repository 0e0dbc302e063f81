//! The page of shared memory that each rank of a job on one host has: which part serves what.
//!
//! Made once, when the job is attached; used by the shared-memory barrier and by the
//! collectives. Invariant: a page is zero at the start, and all ranks access it as atomic words
//! only.
//!
//! ```text
//!   bytes    0 ..  896   barrier    a line for each level     barrier/shared.rs
//!          896 .. 1024   movement   one line                  coll/direct.rs
//!         1024 .. 4096   rings      lines of short messages   coll/rings.rs
//! ```

use crate::runtime::GasnetJob;
use crate::runtime::job::SCRATCH_BYTES;
use alloc::boxed::Box;
use core::sync::atomic::AtomicU64;

/// Lines of the barrier.
pub(super) const BARRIER_LINES: usize = 7;
/// Lines of all rings of a page.
pub(super) const RING_LINES: usize = 48;

/// A line of the barrier: a word for barriers of even and one for barriers of odd number. Lines
/// that different ranks write are two cache lines apart, because these are prefetched in pairs.
#[repr(C, align(128))]
#[derive(Debug)]
pub(super) struct BarrierLine(pub(super) [AtomicU64; 2]);

/// The line of a rank in a movement of shared memory.
#[repr(C, align(128))]
#[derive(Debug)]
pub(super) struct MovementLine {
    /// For synchronisations of even and of odd number: the number of the last one entered.
    pub(super) entered: [AtomicU64; 2],
    /// Offset of the rank's source in its segment, plus 1; 0 if the source is elsewhere.
    pub(super) source: AtomicU64,
}

/// A cache line of words.
pub(super) type WordLine = [AtomicU64; 8];

/// The page of one rank.
#[repr(C)]
#[derive(Debug)]
pub(super) struct ScratchPage {
    pub(super) barrier: [BarrierLine; BARRIER_LINES],
    pub(super) movement: MovementLine,
    pub(super) rings: [WordLine; RING_LINES],
}

const _: () = assert!(size_of::<ScratchPage>() == SCRATCH_BYTES);

/// The pages of all ranks of a job whose processes map each other's memory.
#[derive(Clone, Debug)]
pub(super) struct ScratchPages {
    pages: Box<[&'static ScratchPage]>,
    me: usize,
}

impl ScratchPages {
    /// `None` unless all ranks of the job map each other's segments.
    pub(super) fn of(job: &'static GasnetJob) -> Option<ScratchPages> {
        let page = |page: &*mut u8| {
            // SAFETY: SCRATCH_BYTES at a page boundary, mapped as long as the job lives, zero at
            // the start; every process accesses them as this type, whose fields are atomic.
            unsafe { &*page.cast::<ScratchPage>() }
        };
        let pages = job.common_scratch()?.iter().map(page).collect();
        Some(ScratchPages { pages, me: job.mynode as usize })
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
    pub(super) fn page(&self, rank: usize) -> &'static ScratchPage {
        self.pages[rank]
    }

    /// The pages of all ranks, in their order.
    #[inline(always)]
    pub(super) fn all(&self) -> impl Iterator<Item = &'static ScratchPage> {
        self.pages.iter().copied()
    }

    /// Pages for `n` ranks in this process, as each of them has them; they are never freed.
    #[cfg(test)]
    pub(super) fn for_test(n: usize) -> alloc::vec::Vec<ScratchPages> {
        let word = || AtomicU64::new(0);
        let page = |_| {
            &*Box::leak(Box::new(ScratchPage {
                barrier: core::array::from_fn(|_| BarrierLine([word(), word()])),
                movement: MovementLine { entered: [word(), word()], source: word() },
                rings: core::array::from_fn(|_| core::array::from_fn(|_| word())),
            }))
        };
        let pages: Box<[&'static ScratchPage]> = (0..n).map(page).collect();
        (0..n).map(|me| ScratchPages { pages: pages.clone(), me }).collect()
    }
}
