//! Blocking movements and reductions of few ranks that map each other's segments: each rank copies
//! its blocks out of the sources of the others, or combines them.
//!
//! Used by `super` for operations in which no rank returns before all have called: those with
//! `IN_ALLSYNC` or `OUT_ALLSYNC`, and those from all to all. Invariant: an offset that a peer
//! published is checked against its segment before it is used.
//!
//! ```text
//!   publish the offset of the own source   ->  synchronise  ->  copy  ->  synchronise
//! ```
//!
//! Synchronisations of even and odd number use different words, and so do the offsets that are
//! published before them. A rank may enter the next one while others still look for the last rank
//! of this one, and before they have read the offsets. It cannot pass the next one before.
//!
//! A large reduction is split: each rank combines a part of the elements of all sources, and
//! stores the results at the root.
//!
//! Any rank can overwrite these words. A rank that waits for long compares its own with what it
//! stored, and those of the others with what they may store now.

use super::request::{CollBuffers, CollMemory, CollOperation, CollRequest, Reduction};
use crate::client_memory::{Dst, Src};
use crate::extended::scratch::{ScratchPage, ScratchPages};
use crate::rank::JobRank;
use crate::report;
use crate::runtime::Ctx;
use core::ops::Range;
use core::ptr;
use core::sync::atomic::{AtomicU64, Ordering};
use sys::peer::Peer;

/// Largest job: each rank reads the cache lines of all others.
const MAX_RANKS: usize = 8;
/// Largest operand of a reduction that the root combines alone, in bytes.
const MAX_REDUCED: usize = 2048;
/// Elements that ranks combine are split at multiples of this number: no cache line of results
/// that is aligned has two writers.
const SPLIT: usize = 64;
/// Bytes that are combined at a time: the intermediate results stay in the nearest cache.
const REDUCED_AT_ONCE: usize = 4096;

/// See the module.
#[derive(Debug)]
pub(super) struct DirectMovement {
    pages: ScratchPages,
    /// The number of the last synchronisation that this rank has entered; stored after its word.
    last: AtomicU64,
    /// What the words of the own offsets hold, as in `MovementLine::offsets`; [`CHANGING`] while
    /// they change.
    published: [[AtomicU64; 2]; 2],
}

/// No offset in a segment.
const CHANGING: u64 = u64::MAX;

impl DirectMovement {
    /// For a job with these pages; `None` if it has one rank or too many.
    pub(super) fn new(pages: &ScratchPages) -> Option<DirectMovement> {
        (2..=MAX_RANKS).contains(&pages.ranks()).then(|| DirectMovement {
            pages: pages.clone(),
            last: AtomicU64::new(0),
            published: Default::default(),
        })
    }

    /// Whether [`DirectMovement::carry_out`] is worth a trial. The source of a reduction is often
    /// outside the segment. So the trial of a small one must not add a synchronisation.
    pub(super) fn suits(request: &CollRequest) -> bool {
        let all_wait = request.in_allsync || request.out_allsync;
        match request.operation {
            CollOperation::Reduce => {
                let is_large = request.nbytes > MAX_REDUCED;
                request.src_array.is_none() && (request.in_allsync || is_large && all_wait)
            }
            CollOperation::Scan | CollOperation::Barrier | CollOperation::ReduceAll => false,
            // Each rank needs a block of each.
            CollOperation::GatherAll | CollOperation::Exchange => true,
            _ => all_wait,
        }
    }

    /// Carries out a movement of the team of all processes, each with one image; all call this
    /// in the same order. False, after the first synchronisation, if a source that is needed is
    /// outside the segment of its rank, or the result of a large reduction.
    pub(super) fn carry_out(&self, ctx: Ctx, request: &CollRequest, buffers: CollBuffers) -> bool {
        let (n, me, all) = (request.nbytes, self.pages.me(), self.pages.ranks());
        let root = request.root as usize;
        let rooted =
            matches!(request.operation, CollOperation::Broadcast | CollOperation::Scatter);
        let is_reduction = request.operation == CollOperation::Reduce;
        let segment = &ctx.endpoint().segments()[JobRank(me as u32)];
        let word = |at: *const u8, len: usize| {
            segment.resolve(at, len).map_or(0, |r| r.offset() as u64 + 1)
        };
        let result = if is_reduction && me == root {
            word(buffers.dst.as_ptr(), buffers.dst.len())
        } else {
            0
        };
        let number = self.publish([word(buffers.src.as_ptr(), buffers.src.len()), result]);
        self.synchronise(ctx);
        let [source, result] = [0, 1].map(|which| {
            move |rank: usize| {
                let words = self.pages.page(rank).movement().offsets(number);
                Peer::new(words[which].load(Ordering::Relaxed))
            }
        });
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
                to.copy_from(from.into());
            }
        };
        // Each rank begins with another one.
        let others = (me..all).chain(0..me);
        match request.operation {
            CollOperation::Broadcast => fetch(root, 0, 0),
            CollOperation::Scatter => fetch(root, me, 0),
            CollOperation::Gather if me != root => {}
            CollOperation::Gather | CollOperation::GatherAll => {
                others.for_each(|rank| fetch(rank, 0, rank));
            }
            CollOperation::Exchange => others.for_each(|rank| fetch(rank, me, rank)),
            CollOperation::Reduce => {
                let reduction = request.reduction.expect("a reduction has a function");
                let (to, is_split) = match result(root) {
                    at if at.equals(0) && n > MAX_REDUCED && all > 2 => return false,
                    at if at.equals(0) => (buffers.dst, false),
                    at => {
                        let at = at.map(|word| word.wrapping_sub(1));
                        (block_of(ctx, root, at, n), n > MAX_REDUCED)
                    }
                };
                let (_, count) = request.elements();
                let elements = match is_split {
                    true => part_of(count, me, all),
                    false if me == root => 0..count,
                    false => 0..0,
                };
                if !elements.is_empty() {
                    let sources = core::array::from_fn(|rank| match rank < all {
                        true => block(rank, 0).into(),
                        false => Src::empty(),
                    });
                    combine(&reduction, to, &sources, all, elements);
                }
            }
            CollOperation::Scan | CollOperation::Barrier | CollOperation::ReduceAll => {
                unreachable!("never direct")
            }
        }
        self.synchronise(ctx);
        true
    }

    /// Publishes the offsets of this rank for the next synchronisation, and returns its number.
    fn publish(&self, offsets: [u64; 2]) -> u64 {
        let number = self.last.load(Ordering::Relaxed).wrapping_add(1);
        let words = self.pages.page(self.pages.me()).movement().offsets(number);
        let published = &self.published[number as usize % 2];
        for ((word, published), offset) in words.into_iter().zip(published).zip(offsets) {
            if published.load(Ordering::Relaxed) == offset {
                continue;
            }
            published.store(CHANGING, Ordering::Relaxed);
            // Release: a thread that reads the new offset does not read the old record after it.
            word.store(offset, Ordering::Release);
            published.store(offset, Ordering::Release);
        }
        number
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
        let damage = damage.or_else(|| self.own_offset().map(|value| (me, "an offset", value)));
        damage.map(|(rank, word, value)| MovementDamage { rank, word, value })
    }

    /// An offset of this rank that was overwritten.
    fn own_offset(&self) -> Option<u64> {
        let line = self.pages.page(self.pages.me()).movement();
        let words = [0, 1].into_iter().flat_map(|number| line.offsets(number));
        words.zip(self.published.as_flattened()).find_map(|(word, published)| {
            let before = published.load(Ordering::Acquire);
            let value = word.load(Ordering::Acquire);
            let is_other = before != CHANGING && value != before;
            (is_other && published.load(Ordering::Acquire) == before).then_some(value)
        })
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
fn block_of(ctx: Ctx, rank: usize, offset: Peer<u64>, n: usize) -> Dst<'static> {
    let segment = &ctx.endpoint().segments()[JobRank(rank as u32)];
    let mapped = segment.mapped().expect("ranks that share pages map each other's segments");
    match offset.range(Peer::new(n), mapped.len()) {
        Some(range) => mapped.part(range.start, n),
        None => outside(rank, offset, n, mapped.len()),
    }
}

/// The elements that a rank combines of `count`.
fn part_of(count: usize, rank: usize, ranks: usize) -> Range<usize> {
    let each = count.div_ceil(ranks).next_multiple_of(SPLIT);
    let end = |of: usize| of.saturating_mul(each).min(count);
    end(rank)..end(rank + 1)
}

/// Combines these elements of the first `n` sources in their order, and stores them in `to`.
/// Any source may be `to`.
fn combine(
    reduction: &Reduction,
    to: Dst<'_>,
    sources: &[Src<'_>; MAX_RANKS],
    n: usize,
    elements: Range<usize>,
) {
    let size = reduction.elem_size;
    let most = (REDUCED_AT_ONCE / size.max(1)).max(1);
    let stride = (most.min(elements.len()) * size).next_multiple_of(16);
    let mut memory = CollMemory::new(2 * stride);
    let areas = memory.bytes();
    for first in elements.clone().step_by(most) {
        let (at, len) = (first * size, most.min(elements.end - first) * size);
        let to = to.part(at, len);
        let mut left = sources[0].part(at, len);
        for (i, right) in sources.iter().enumerate().take(n).skip(1) {
            let right = right.part(at, len);
            let is_free = i + 1 == n && !overlap(to, left) && !overlap(to, right);
            let result = if is_free { to } else { areas.part(i % 2 * stride, len) };
            reduction.combine(result, left, right);
            left = result.into();
        }
        if !ptr::eq(left.as_ptr(), to.as_ptr()) {
            to.copy_from(left);
        }
    }
}

/// Whether they have a byte in common; both have as many.
fn overlap(a: Dst<'_>, b: Src<'_>) -> bool {
    a.as_ptr().addr().abs_diff(b.as_ptr().addr()) < b.len()
}

fn outside(rank: usize, offset: Peer<u64>, n: usize, len: usize) -> ! {
    report::fatal(
        format_args!(
            "rank {rank} names {n} bytes at {} of its segment, which has {len}",
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
            // As before the next synchronisation.
            let next = ranks[rank].publish([number + 100, number + 200]);
            assert_eq!(next, number + 1);
            assert!(ranks.iter().all(|r| r.damage().is_none()));
        }
        for rank in 0..3 {
            let line = pages[0].page(rank).movement();
            let offsets = [0, 1].into_iter().flat_map(|number| line.offsets(number));
            for word in line.entered.into_iter().chain(offsets) {
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

    #[test]
    fn offsets_stay_until_all_can_have_read_them() {
        let pages = ScratchPages::for_test(2);
        let ranks: Vec<DirectMovement> = pages.iter().filter_map(DirectMovement::new).collect();
        let line = pages[0].page(0).movement();
        // Not carried out directly: no second synchronisation follows.
        let number = ranks[0].publish([5, 0]);
        ranks[0].last.store(number, Ordering::Relaxed);
        let next = ranks[0].publish([9, 7]);
        let values = |number| line.offsets(number).map(|word| word.load(Ordering::Relaxed));
        assert_eq!((values(number), values(next)), ([5, 0], [9, 7]));
    }

    #[test]
    fn elements_are_split_without_a_gap() {
        for (count, ranks) in [(1, 2), (63, 8), (64, 2), (1000, 3), (4096, 4), (100_000, 7)] {
            let mut next = 0;
            for rank in 0..ranks {
                let part = part_of(count, rank, ranks);
                assert_eq!(part.start, next);
                next = part.end;
            }
            assert_eq!(next, count);
        }
    }

    #[test]
    fn sources_are_combined_in_order_over_any_of_them() {
        // Not commutative: each result has the digits of both.
        fn digits(to: Dst<'_>, left: Src<'_>, right: Src<'_>) {
            let number = |from: Src<'_>, at: usize| {
                let mut bytes = [0; 8];
                Dst::from(&mut bytes[..]).copy_array::<8>(from.part(at, 8));
                u64::from_ne_bytes(bytes)
            };
            for at in (0..to.len()).step_by(8) {
                let both = number(left, at) * 10 + number(right, at);
                to.part(at, 8).copy_array::<8>(Src::from(&both.to_ne_bytes()[..]));
            }
        }
        let operator = super::super::request::ReduceOperator::Builtin(digits);
        let reduction = Reduction { operator, elem_size: 8 };
        let count = 3 * REDUCED_AT_ONCE / 8 + 5;
        for (n, over) in [(2, 0), (2, 1), (2, 9), (3, 0), (3, 2), (8, 7), (8, 9)] {
            let mut memory = CollMemory::new(9 * count * 8);
            let bytes = memory.bytes();
            let area = |i: usize| bytes.part(i * count * 8, count * 8);
            for (rank, i) in (0..n).flat_map(|rank| (0..count).map(move |i| (rank, i))) {
                let value = (rank + i % 2) as u64;
                area(rank).part(i * 8, 8).copy_array::<8>(Src::from(&value.to_ne_bytes()[..]));
            }
            let sources =
                core::array::from_fn(|i| if i < n { area(i).into() } else { Src::empty() });
            let to = area(over.min(8));
            let (from, end) = (SPLIT, count - 1);
            combine(&reduction, to, &sources, n, from..end);
            for i in from..end {
                let want = (0..n).fold(0, |all, rank| all * 10 + (rank + i % 2) as u64);
                let mut got = [0; 8];
                Dst::from(&mut got[..]).copy_array::<8>(to.part(i * 8, 8).into());
                assert_eq!(u64::from_ne_bytes(got), want, "{n} sources, over {over}, {i}");
            }
        }
    }
}
