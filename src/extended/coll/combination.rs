//! The combination of operands that lie in the segments of several ranks, and its division among
//! these.
//!
//! Used by `direct`. Invariant: operands are combined in the order of the ranks, and combining
//! never overwrites one that is still needed.

use super::request::{CollMemory, Reduction};
use crate::client_memory::{Dst, Src};
use core::ops::Range;
use core::ptr;

/// Bytes of a cache line.
const LINE: usize = 64;
/// Bytes that are combined at a time: the intermediate results stay in the nearest cache.
const REDUCED_AT_ONCE: usize = 4096;

/// The elements that a rank combines of `count` of this size. They are split between cache lines,
/// so that no line of results that is aligned has two writers.
pub(super) fn part_of(
    (elem_size, count): (usize, usize),
    rank: usize,
    ranks: usize,
) -> Range<usize> {
    let elements_of_lines = LINE / (1 << elem_size.trailing_zeros().min(LINE.ilog2()));
    let each = count.div_ceil(ranks).next_multiple_of(elements_of_lines);
    let end = |of: usize| of.saturating_mul(each).min(count);
    end(rank)..end(rank + 1)
}

/// Combines these elements of the sources in their order, and stores them in `to`.
/// Any source may be `to`.
pub(super) fn combine(
    reduction: &Reduction,
    to: Dst<'_>,
    sources: &[Src<'_>],
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
        for (i, right) in sources.iter().enumerate().skip(1) {
            let right = right.part(at, len);
            let is_free = i + 1 == sources.len() && !overlap(to, left) && !overlap(to, right);
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

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn elements_are_split_without_a_gap() {
        let counts = [(1, 2), (63, 8), (64, 2), (1000, 3), (4096, 4), (100_000, 7)];
        let sizes = [1, 4, 8, 12, 64, 100, 4096];
        let all = counts.into_iter().flat_map(|count| sizes.map(|size| (count, size)));
        for ((count, ranks), size) in all {
            let mut next = 0;
            for rank in 0..ranks {
                let part = part_of((size, count), rank, ranks);
                assert_eq!(part.start, next);
                assert!(part.start == count || (part.start * size).is_multiple_of(LINE));
                next = part.end;
            }
            assert_eq!(next, count);
        }
        // Few large elements are shared, too.
        assert_eq!(part_of((4096, 8), 3, 8), 3..4);
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
        let operator =
            super::super::request::ReduceOperator::Builtin { function: digits, code: 0 };
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
            let sources: Vec<Src<'_>> = (0..n).map(|i| area(i).into()).collect();
            let to = area(over.min(8));
            let (from, end) = (LINE, count - 1);
            combine(&reduction, to, &sources, from..end);
            for i in from..end {
                let want = (0..n).fold(0, |all, rank| all * 10 + (rank + i % 2) as u64);
                let mut got = [0; 8];
                Dst::from(&mut got[..]).copy_array::<8>(to.part(i * 8, 8).into());
                assert_eq!(u64::from_ne_bytes(got), want, "{n} sources, over {over}, {i}");
            }
        }
    }
}
