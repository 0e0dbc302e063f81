//! Blocking movements and reductions of few ranks that map each other's segments: each rank copies
//! its blocks out of the sources of the others, or combines them.
//!
//! Used by `super` for operations with `IN_ALLSYNC` or `OUT_ALLSYNC`: with either of them no rank
//! returns before all have called. Invariant: an offset that a peer published is checked against
//! its segment before it is used.
//!
//! ```text
//!   publish the offset of the own source   ->  synchronise  ->  copy  ->  synchronise
//! ```
//!
//! Synchronisations of even and odd number use different words. A rank may enter the next one
//! while others still look for the last rank of this one. A source is published before the first
//! synchronisation of a movement and read before the second. So no rank publishes the next one
//! before all have read this one.
//!
//! Any rank can overwrite these words. A rank that waits for long compares its own with what it
//! stored, and those of the others with what they may store now.

use super::request::{CollBuffers, CollMemory, CollOperation, CollRequest};
use crate::client_memory::Src;
use crate::extended::scratch::{ScratchPage, ScratchPages};
use crate::rank::JobRank;
use crate::report;
use crate::runtime::Ctx;
use core::ptr;
use core::sync::atomic::{AtomicU64, Ordering};
use sys::peer::Peer;

/// Largest job: each rank reads the cache lines of all others.
const MAX_RANKS: usize = 8;
/// Largest operand of a reduction, in bytes: the root combines all of them, one after the other.
const MAX_REDUCED: usize = 2048;

/// See the module.
#[derive(Debug)]
pub(super) struct DirectMovement {
    pages: ScratchPages,
    /// The number of the last synchronisation that this rank has entered; stored after its word.
    last: AtomicU64,
    /// What the word of the own source holds; [`CHANGING`] while it changes.
    published: AtomicU64,
}

/// No offset in a segment.
const CHANGING: u64 = u64::MAX;

impl DirectMovement {
    /// For a job with these pages; `None` if it has one rank or too many.
    pub(super) fn new(pages: &ScratchPages) -> Option<DirectMovement> {
        (2..=MAX_RANKS).contains(&pages.ranks()).then(|| DirectMovement {
            pages: pages.clone(),
            last: AtomicU64::new(0),
            published: AtomicU64::new(0),
        })
    }

    /// Whether [`DirectMovement::carry_out`] is worth a trial. The source of a reduction is often
    /// outside the segment. So its trial must not add a synchronisation.
    pub(super) fn suits(request: &CollRequest) -> bool {
        match request.operation {
            CollOperation::Reduce => {
                request.in_allsync && request.nbytes <= MAX_REDUCED && request.src_array.is_none()
            }
            CollOperation::Scan | CollOperation::Barrier | CollOperation::ReduceAll => false,
            _ => request.in_allsync || request.out_allsync,
        }
    }

    /// Carries out a movement of the team of all processes, each with one image; all call this
    /// in the same order. False, after the first synchronisation, if a source that is needed is
    /// outside the segment of its rank.
    pub(super) fn carry_out(&self, ctx: Ctx, request: &CollRequest, buffers: CollBuffers) -> bool {
        let (n, me, all) = (request.nbytes, self.pages.me(), self.pages.ranks());
        let root = request.root as usize;
        let rooted =
            matches!(request.operation, CollOperation::Broadcast | CollOperation::Scatter);
        let segment = &ctx.endpoint().segments()[JobRank(me as u32)];
        let range = segment.resolve(buffers.src.as_ptr(), buffers.src.len());
        let own = self.pages.page(me).movement().source;
        let offset = range.map_or(0, |r| r.offset() as u64 + 1);
        self.published.store(CHANGING, Ordering::Relaxed);
        // Release: a thread that reads the new offset does not read the old record after it.
        own.store(offset, Ordering::Release);
        self.published.store(offset, Ordering::Release);
        self.synchronise(ctx);
        let source =
            |rank| Peer::new(self.pages.page(rank).movement().source.load(Ordering::Relaxed));
        let elsewhere = |rank: usize| source(rank).equals(0);
        if if rooted { elsewhere(root) } else { (0..all).any(elsewhere) } {
            return false;
        }
        let block = |rank: usize, i: usize| {
            let offset = source(rank).map(|s| s.wrapping_sub(1).saturating_add((i * n) as u64));
            block_of(ctx, rank, offset, n)
        };
        let fetch = |rank: usize, i: usize, to: usize| {
            let from = block(rank, i);
            let to = buffers.dst.part(to * n, n);
            if !ptr::eq(from.as_ptr(), to.as_ptr()) {
                to.copy_from(from);
            }
        };
        // Each rank begins with another one.
        let others = (me..all).chain(0..me);
        match request.operation {
            CollOperation::Broadcast => fetch(root, 0, 0),
            CollOperation::Scatter => fetch(root, me, 0),
            CollOperation::Gather | CollOperation::Reduce if me != root => {}
            CollOperation::Gather | CollOperation::GatherAll => {
                others.for_each(|rank| fetch(rank, 0, rank));
            }
            CollOperation::Exchange => others.for_each(|rank| fetch(rank, me, rank)),
            CollOperation::Reduce => {
                let reduction = request.reduction.expect("a reduction has a function");
                let stride = n.next_multiple_of(16);
                let mut memory = CollMemory::new(2 * stride);
                let areas = memory.bytes();
                // In the order of the ranks; each result is the left operand of the next.
                let total = (1..all).fold(block(0, 0), |left, rank| {
                    let to = areas.part(rank % 2 * stride, n);
                    reduction.combine(to, left, block(rank, 0));
                    to.into()
                });
                buffers.dst.copy_from(total);
            }
            CollOperation::Scan | CollOperation::Barrier | CollOperation::ReduceAll => {
                unreachable!("never direct")
            }
        }
        self.synchronise(ctx);
        true
    }

    /// Returns when all ranks have entered.
    fn synchronise(&self, ctx: Ctx) {
        let number = self.last.load(Ordering::Relaxed).wrapping_add(1);
        let word = |page: ScratchPage| page.movement().entered[number as usize % 2];
        // Acquire pairs with the Release below: what the others wrote, or read, before.
        let entered = || self.pages.all().all(|p| word(p).load(Ordering::Acquire) == number);
        word(self.pages.page(self.pages.me())).store(number, Ordering::Release);
        self.last.store(number, Ordering::Release);
        if !ctx.wrote_words(entered) {
            ctx.wait_for_words(&"a collective", entered);
        }
    }

    /// Ends the job if a word was overwritten.
    pub(super) fn check_words(&self) {
        if let Some(MovementDamage { rank, word, value }) = self.damage() {
            report::damaged(format_args!(
                "the shared memory of the collectives is damaged: {word} of rank {rank} holds {value:#x}"
            ));
        }
    }

    /// A word that was overwritten.
    fn damage(&self) -> Option<MovementDamage> {
        let me = self.pages.me();
        let last = self.last.load(Ordering::Acquire);
        let entered = |rank: usize, number: u64| {
            let word = self.pages.page(rank).movement().entered[number as usize % 2];
            (rank, "a synchronisation", word.load(Ordering::Acquire))
        };
        let others = (0..self.pages.ranks()).filter(|&rank| rank != me);
        // A rank is at most one synchronisation ahead or behind.
        let theirs = others.flat_map(|rank| [(rank, last), (rank, last.wrapping_add(1))]);
        let may_be = |value: u64, number: u64| {
            value == number || value == number.wrapping_sub(2) || number <= 2 && value == 0
        };
        let mine = entered(me, last);
        let next = entered(me, last.wrapping_add(1));
        let entries = theirs
            .map(|(rank, number)| (entered(rank, number), number))
            .chain([(next, last.wrapping_add(1))]);
        let wrong = entries.filter(|&((.., value), number)| !may_be(value, number));
        let damage = wrong.map(|(word, _)| word).next().or((mine.2 != last).then_some(mine));
        // The words were read with Acquire: if they are of later synchronisations, so is `last`.
        let damage = damage.filter(|_| self.last.load(Ordering::Acquire) == last);
        let published = self.published.load(Ordering::Acquire);
        let source = self.pages.page(me).movement().source.load(Ordering::Acquire);
        let is_other = published != CHANGING
            && source != published
            && self.published.load(Ordering::Acquire) == published;
        let damage = damage.or(is_other.then_some((me, "the source", source)));
        damage.map(|(rank, word, value)| MovementDamage { rank, word, value })
    }
}

/// A word of a rank's cache line that was overwritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct MovementDamage {
    rank: usize,
    word: &'static str,
    value: u64,
}

/// The `n` bytes at an offset that a rank named, as its segment is mapped here.
#[inline(always)]
fn block_of(ctx: Ctx, rank: usize, offset: Peer<u64>, n: usize) -> Src<'static> {
    let segment = &ctx.endpoint().segments()[JobRank(rank as u32)];
    let mapped = segment.mapped().expect("ranks that share pages map each other's segments");
    match offset.range(Peer::new(n), mapped.len()) {
        Some(range) => mapped.part(range.start, n).into(),
        None => outside(rank, offset, n, mapped.len()),
    }
}

fn outside(rank: usize, offset: Peer<u64>, n: usize, len: usize) -> ! {
    report::fatal(
        format_args!(
            "rank {rank} names {n} bytes at {} of its segment as a source, which has {len}",
            offset.data()
        ),
        format_args!(
            "All ranks of a job must call the collectives of a team with the same sizes."
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn overwritten_words_are_found() {
        let pages = ScratchPages::for_test(3);
        let ranks: Vec<DirectMovement> = pages.iter().filter_map(DirectMovement::new).collect();
        // Rank 2 has not entered the seventh.
        for (rank, number) in (1..=7).flat_map(|n| [(0, n), (1, n), (2, n)]).take(20) {
            let line = pages[0].page(rank).movement();
            line.entered[number as usize % 2].store(number, Ordering::Relaxed);
            ranks[rank].last.store(number, Ordering::Relaxed);
            line.source.store(number + 100, Ordering::Relaxed);
            ranks[rank].published.store(number + 100, Ordering::Relaxed);
            assert!(ranks.iter().all(|r| r.damage().is_none()));
        }
        for rank in 0..3 {
            let line = pages[0].page(rank).movement();
            for word in line.entered.into_iter().chain([line.source]) {
                let whole = word.load(Ordering::Relaxed);
                for value in [0, u64::MAX, whole ^ 8, whole + 1, whole << 32] {
                    word.store(value, Ordering::Relaxed);
                    let found = ranks.iter().find_map(DirectMovement::damage).unwrap();
                    assert_eq!((found.rank, found.value), (rank, value));
                    word.store(whole, Ordering::Relaxed);
                }
            }
        }
    }
}
