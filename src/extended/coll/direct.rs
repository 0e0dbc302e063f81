//! Movements and reductions of few ranks that map each other's segments: each rank copies its
//! blocks out of the sources of the others, or combines them.
//!
//! Used by `super` and `movements` for operations in which no rank returns before all have called:
//! those with `IN_ALLSYNC` or `OUT_ALLSYNC`, and those from all to all. Invariants: an offset that
//! a peer published is checked against its segment before it is used; all ranks enter movements
//! in one order, and leave them in that order.
//!
//! ```text
//!   publish the offset of the own source, enter  ->  all have entered
//!                                   copy, leave  ->  all have left
//! ```
//!
//! A word of each rank counts the offsets that it has published, another one those that it no
//! longer needs. The number of a movement is the count after its own offsets. So a rank may
//! enter several movements before the first is done, as long as there is room for their offsets:
//! one is overwritten when all ranks have left its movement.
//!
//! A large reduction is split: each rank combines a part of the elements of all sources, and
//! stores the results at the root.
//!
//! Any rank can overwrite these words. A rank that waits for long compares its own with what it
//! stored, and those of the others with what they may store now.

use super::request::{CollBuffers, CollMemory, CollOperation, CollRequest, Reduction};
use crate::client_memory::{Dst, Src};
use crate::extended::scratch::ScratchPages;
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

/// The word that counts the offsets that a rank has published.
const ENTERED: usize = 0;
/// The word that counts the offsets that it no longer needs.
const LEFT: usize = 1;
/// The first word of an offset: that of a rank's source, or of its result, in its segment, plus 1;
/// 0 for what is elsewhere.
const FIRST_OFFSET: usize = 2;
/// Offsets for which a rank's line has room.
const OFFSETS: u64 = 6;

/// The number of a movement: how many offsets a rank has published with it and before it.
pub(super) type MovementNumber = u64;

/// See the module.
#[derive(Debug)]
pub(super) struct DirectMovement {
    pages: ScratchPages,
    /// What the own words hold; [`CHANGING`] while they change.
    own: [AtomicU64; 8],
    /// The last movement of which this rank knows that all have left it.
    all_left: AtomicU64,
}

/// No offset in a segment, and no count.
const CHANGING: u64 = u64::MAX;

impl DirectMovement {
    /// For a job with these pages; `None` if it has one rank or too many.
    pub(super) fn new(pages: &ScratchPages) -> Option<DirectMovement> {
        (2..=MAX_RANKS).contains(&pages.ranks()).then(|| DirectMovement {
            pages: pages.clone(),
            own: Default::default(),
            all_left: AtomicU64::new(0),
        })
    }

    /// Whether a movement in shared memory is worth a trial. The source of a reduction is often
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
    /// in the same order, after those that they entered before are done. False, when all have
    /// entered, if a source that is needed is outside the segment of its rank, or the result of
    /// a large reduction.
    pub(super) fn carry_out(&self, ctx: Ctx, request: &CollRequest, buffers: CollBuffers) -> bool {
        let mut number = self.enter(ctx, request, buffers);
        if number.is_none() {
            self.wait(ctx, || {
                number = self.enter(ctx, request, buffers);
                number.is_some()
            });
        }
        let number = number.expect("this rank has entered");
        if !self.all_entered(number) {
            self.wait(ctx, || self.all_entered(number));
        }
        let is_done = self.transfer(ctx, number, request, buffers);
        self.leave(ctx, number);
        if is_done && !self.all_left(number) {
            self.wait(ctx, || self.all_left(number));
        }
        is_done
    }

    fn wait(&self, ctx: Ctx, done: impl FnMut() -> bool) {
        ctx.wait_for_words(&"a collective", done);
    }

    /// Publishes the offsets of this rank for its next movement, and enters it. `None` while
    /// others may still read what the words of the offsets hold.
    pub(super) fn enter(
        &self,
        ctx: Ctx,
        request: &CollRequest,
        buffers: CollBuffers,
    ) -> Option<MovementNumber> {
        let me = self.pages.me();
        let segment = &ctx.endpoint().segments()[JobRank(me as u32)];
        let word = |at: *const u8, len: usize| {
            segment.resolve(at, len).map_or(0, |r| r.offset() as u64 + 1)
        };
        let source = word(buffers.src.as_ptr(), buffers.src.len());
        let number = match request.operation {
            CollOperation::Reduce if me == request.root as usize => {
                let result = word(buffers.dst.as_ptr(), buffers.dst.len());
                self.publish(&[source, result])?
            }
            CollOperation::Reduce => self.publish(&[source, 0])?,
            _ => self.publish(&[source])?,
        };
        ctx.wrote_words(|| self.all_entered(number));
        Some(number)
    }

    /// Publishes these offsets if there is room, and enters a movement.
    fn publish(&self, offsets: &[u64]) -> Option<MovementNumber> {
        let before = self.own[ENTERED].load(Ordering::Relaxed);
        let number = before + offsets.len() as u64;
        if !self.all_left(number.saturating_sub(OFFSETS)) {
            return None;
        }
        for (at, &offset) in (before..number).zip(offsets) {
            self.store(FIRST_OFFSET + (at % OFFSETS) as usize, offset);
        }
        self.store(ENTERED, number);
        Some(number)
    }

    /// Stores an own word. Release: what this rank wrote, and read, before.
    fn store(&self, word: usize, value: u64) {
        let own = &self.own[word];
        if own.load(Ordering::Relaxed) != value {
            own.store(CHANGING, Ordering::Relaxed);
            // Release: a thread that reads the new word does not read the old record after it.
            self.pages.page(self.pages.me()).movement()[word].store(value, Ordering::Release);
            own.store(value, Ordering::Release);
        }
    }

    /// Whether this word of all ranks has reached a number that this rank has entered. Acquire
    /// pairs with the Release of [`DirectMovement::store`].
    #[inline(always)]
    fn reached(&self, word: usize, number: MovementNumber) -> bool {
        // None is further ahead than the room for offsets allows: such a word was overwritten.
        let is_there = |value: u64| value.wrapping_sub(number) <= OFFSETS;
        self.pages.all().all(|page| is_there(page.movement()[word].load(Ordering::Acquire)))
    }

    /// Whether all ranks have entered a movement, so that their offsets can be read.
    pub(super) fn all_entered(&self, number: MovementNumber) -> bool {
        self.reached(ENTERED, number)
    }

    /// Whether all ranks have left a movement: its memory belongs to the client again. One that is
    /// known to be left is not looked up again, because others may be further ahead by now than
    /// the room for offsets.
    pub(super) fn all_left(&self, number: MovementNumber) -> bool {
        // Relaxed: this thread, or the one that had the lock before, has read the words.
        if number <= self.all_left.load(Ordering::Relaxed) {
            return true;
        }
        let have = self.reached(LEFT, number);
        if have {
            // Release: a thread that reads this does not read older words after it.
            self.all_left.store(number, Ordering::Release);
        }
        have
    }

    /// Leaves the movement that this rank has entered first of those that it has not left.
    pub(super) fn leave(&self, ctx: Ctx, number: MovementNumber) {
        self.store(LEFT, number);
        ctx.wrote_words(|| self.all_left(number));
    }

    /// Does the share of this rank in a movement that all have entered. False, at all ranks, if
    /// a source that is needed is outside the segment of its rank, or the result of a large
    /// reduction.
    pub(super) fn transfer(
        &self,
        ctx: Ctx,
        number: MovementNumber,
        request: &CollRequest,
        buffers: CollBuffers,
    ) -> bool {
        let (n, me, all) = (request.nbytes, self.pages.me(), self.pages.ranks());
        let root = request.root as usize;
        let rooted =
            matches!(request.operation, CollOperation::Broadcast | CollOperation::Scatter);
        // The offset of the result follows that of the source.
        let is_reduction = request.operation == CollOperation::Reduce;
        let last = number.wrapping_sub(1);
        let first = last.wrapping_sub(u64::from(is_reduction));
        let [source, result] = [first, last].map(|at| {
            move |rank: usize| {
                let word =
                    &self.pages.page(rank).movement()[FIRST_OFFSET + (at % OFFSETS) as usize];
                Peer::new(word.load(Ordering::Relaxed))
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
        true
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
        let own = |word: usize| self.own[word].load(Ordering::Acquire);
        let word = |rank: usize, word: usize| {
            self.pages.page(rank).movement()[word].load(Ordering::Acquire)
        };
        let name = |word: usize| match word {
            ENTERED => "the count of the movements that it entered",
            LEFT => "the count of the movements that it left",
            _ => "an offset",
        };
        let mine = (0..self.own.len()).find_map(|at| {
            let before = own(at);
            let value = word(me, at);
            let is_other = before != CHANGING && value != before && own(at) == before;
            is_other.then_some(MovementDamage { rank: me, word: name(at), value })
        });
        let (entered, left) = (own(ENTERED), own(LEFT));
        let all_left = self.all_left.load(Ordering::Acquire);
        let others = (0..self.pages.ranks()).filter(|&rank| rank != me);
        let theirs = others.flat_map(|rank| {
            // It entered none without room, and left none that this rank has not entered.
            [(ENTERED, left.saturating_add(OFFSETS)), (LEFT, entered)].map(|(at, most)| {
                let value = word(rank, at);
                let is_other = !(all_left..=most).contains(&value);
                is_other.then_some(MovementDamage { rank, word: name(at), value })
            })
        });
        let theirs = theirs.flatten().next();
        // The words were read with Acquire: if they answer to later ones of this rank, so is what
        // is recorded of those.
        let is_current =
            ![entered, left].contains(&CHANGING) && [own(ENTERED), own(LEFT)] == [entered, left];
        mine.or(theirs.filter(|_| is_current))
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

    /// Movements that all ranks have entered and left, but the last one.
    fn entered_by_two_of_three(pages: &[ScratchPages]) -> Vec<DirectMovement> {
        let ranks: Vec<DirectMovement> = pages.iter().filter_map(DirectMovement::new).collect();
        for (rank, number) in (1..=7).flat_map(|n| [(0, n), (1, n), (2, n)]).take(20) {
            if rank == 0 && number > 1 {
                ranks.iter().for_each(|r| r.store(LEFT, number - 1));
                assert!(ranks.iter().all(|r| r.all_left(number - 1)));
            }
            assert_eq!(ranks[rank].publish(&[number + 100]), Some(number));
            assert!(ranks.iter().all(|r| r.damage().is_none()));
        }
        ranks
    }

    #[test]
    fn overwritten_words_are_found() {
        let pages = ScratchPages::for_test(3);
        let ranks = entered_by_two_of_three(&pages);
        let words = |rank: usize| pages[0].page(rank).movement().iter().map(move |w| (rank, w));
        for (rank, word) in (0..3).flat_map(words) {
            let whole = word.load(Ordering::Relaxed);
            for value in [0, u64::MAX, whole ^ 8, whole + 1, whole << 32] {
                word.store(value, Ordering::Relaxed);
                let found = ranks.iter().find_map(DirectMovement::damage).unwrap();
                assert_eq!((found.rank, found.value), (rank, value));
                word.store(whole, Ordering::Relaxed);
            }
        }
    }

    /// Neither a rank that waits for all nor one with no record of the word goes on with it.
    #[test]
    fn counts_that_no_rank_can_have_are_no_movement() {
        let pages = ScratchPages::for_test(3);
        let ranks = entered_by_two_of_three(&pages);
        let word = &pages[0].page(2).movement()[ENTERED];
        assert!(!ranks[0].all_entered(7));
        for (value, is_entered) in [(7, true), (13, true), (14, false), (u64::MAX, false)] {
            word.store(value, Ordering::Relaxed);
            assert_eq!(ranks[0].all_entered(7), is_entered, "{value}");
        }
        let theirs = ranks[0].damage().expect("rank 0 knows how far rank 2 can be");
        assert_eq!((theirs.rank, theirs.value), (2, u64::MAX));
    }

    #[test]
    fn offsets_stay_until_all_can_have_read_them() {
        let pages = ScratchPages::for_test(2);
        let ranks: Vec<DirectMovement> = pages.iter().filter_map(DirectMovement::new).collect();
        for number in 1..=OFFSETS {
            assert_eq!(ranks[0].publish(&[number * 10]), Some(number));
        }
        assert_eq!((ranks[0].publish(&[70]), ranks[1].publish(&[9, 8])), (None, Some(2)));
        assert!(ranks[0].all_entered(1) && ranks[0].all_entered(2) && !ranks[0].all_entered(3));
        ranks[0].store(LEFT, 1);
        assert_eq!(ranks[0].publish(&[70]), None);
        ranks[1].store(LEFT, 1);
        // Room for one, but not for two.
        assert_eq!(ranks[0].publish(&[70, 80]), None);
        assert_eq!(ranks[0].publish(&[70]), Some(7));
        let line = pages[0].page(0).movement();
        let offsets = [0, 1, 2].map(|i| line[FIRST_OFFSET + i].load(Ordering::Relaxed));
        assert_eq!(offsets, [70, 20, 30]);
    }

    /// Ranks enter, leave and look in any order, each as far as it can.
    #[test]
    fn every_movement_ends() {
        const MANY: u64 = 2000;
        let mut state = 1u64;
        for all in [2, 3, 8] {
            let pages = ScratchPages::for_test(all);
            let ranks: Vec<DirectMovement> =
                pages.iter().filter_map(DirectMovement::new).collect();
            // The last movement that each rank has entered, has left, and knows to be done.
            let mut at = alloc::vec![[0u64; 3]; all];
            for step in 0.. {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let (rank, kind) = ((state >> 33) as usize % all, state >> 61);
                let [entered, left, done] = &mut at[rank];
                let r = &ranks[rank];
                match kind % 3 {
                    0 => {
                        while *entered < MANY && r.publish(&[1]).is_some() {
                            *entered += 1;
                        }
                    }
                    1 => {
                        while left < entered && r.all_entered(*left + 1) {
                            *left += 1;
                            r.store(LEFT, *left);
                        }
                    }
                    _ => {
                        while done < left && r.all_left(*done + 1) {
                            *done += 1;
                        }
                    }
                }
                assert!(r.damage().is_none());
                if at.iter().all(|a| a[2] == MANY) {
                    break;
                }
                assert!(step < 10_000_000, "{at:?}");
            }
        }
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
