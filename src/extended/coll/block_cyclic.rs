//! Arrays whose elements are dealt out to the images of a team in blocks, in turn.
//!
//! Made by `capi` from a block size and an offset; read by `request`, `arrays` and `plan`.
//! Invariant: the elements that an image has of a range are one piece of its memory.
//!
//! ```text
//!   the first elements, in blocks of 2 for 3 images      8 elements from offset 3 on
//!     image 0    0  1  |  6  7  |  12 13                    6 7
//!     image 1    2  3  |  8  9  |  14 15                    3 8 9
//!     image 2    4  5  | 10 11  |  16 17                    4 5 10
//! ```

use core::ops::Range;

/// A layout: elements of a block, and the place of the first used element in the whole array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockCyclic {
    /// Elements of a block, at least 1.
    block: usize,
    /// Elements before the first used one, counted over all images.
    offset: usize,
}

impl BlockCyclic {
    /// `None` if blocks have no elements.
    pub fn new(block: usize, offset: usize) -> Option<BlockCyclic> {
        (block > 0).then_some(BlockCyclic { block, offset })
    }

    /// Elements of a block, and those before the first used one.
    pub(super) fn block_and_offset(self) -> [usize; 2] {
        [self.block, self.offset]
    }

    /// How many elements `image` has before the element `index` of the whole array.
    fn before(self, image: usize, images: usize, index: usize) -> usize {
        // Products beyond memory are beyond every index.
        let cycle = self.block.saturating_mul(images);
        let start = self.block.saturating_mul(image);
        index / cycle * self.block + (index % cycle).saturating_sub(start).min(self.block)
    }

    /// The used elements of a range that `image` has, by their places in its memory.
    pub(super) fn run(self, image: usize, images: usize, range: Range<usize>) -> Range<usize> {
        let before = |i: usize| self.before(image, images, self.offset + i);
        before(range.start)..before(range.end)
    }

    /// The images with used elements, of the first `count`: the first image and how many follow
    /// it around the ring, itself included.
    pub(super) fn holders(self, images: usize, count: usize) -> (usize, usize) {
        let first = self.offset / self.block;
        let last = (self.offset + count).saturating_sub(1) / self.block;
        (first % images, (last - first + 1).min(images))
    }

    /// Where the elements of `image` are in a memory that holds all elements of a range: the
    /// place of the first, and the stride from block to block. `size` is that of an element;
    /// places are in bytes. The image has some.
    pub(super) fn blocks(
        self,
        image: usize,
        images: usize,
        range: Range<usize>,
        size: usize,
    ) -> (usize, BlockStride) {
        let at = self.run(image, images, range.clone()).start;
        let (block, within) = (at / self.block, at % self.block);
        let index = (block * images + image) * self.block + within;
        let stride = BlockStride {
            first: (self.block - within).saturating_mul(size),
            block: self.block.saturating_mul(size),
            cycle: self.block.saturating_mul(images).saturating_mul(size),
        };
        ((index - self.offset - range.start) * size, stride)
    }
}

/// Blocks at regular distances, in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct BlockStride {
    /// Of the first block, which may lack its begin.
    first: usize,
    /// Of every other block; the last one may lack its end.
    block: usize,
    /// From the end of a block to that of the next.
    cycle: usize,
}

impl BlockStride {
    /// The pieces of `len` bytes in all: where each is in the memory with distances, where it is
    /// in the memory without, and its bytes.
    pub(super) fn pieces(self, len: usize) -> impl Iterator<Item = (usize, usize, usize)> {
        let mut at = 0_usize;
        core::iter::from_fn(move || {
            let end = match at {
                0 => self.first,
                _ => at.saturating_add(self.block),
            };
            let (together, n) = (at, end.min(len).checked_sub(at).filter(|&n| n > 0)?);
            // Blocks that are whole begin a cycle minus their bytes after the one before.
            let apart = match at {
                0 => 0,
                _ => {
                    self.first + (at - self.first) / self.block * self.cycle + self.cycle
                        - self.block
                }
            };
            at += n;
            Some((apart, together, n))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    /// Image and place of each used element, dealt out one by one.
    fn dealt(block: usize, offset: usize, images: usize, count: usize) -> Vec<(usize, usize)> {
        let mut places = alloc::vec![0; images];
        let all = (0..offset + count).map(|i| {
            let image = i / block % images;
            places[image] += 1;
            (image, places[image] - 1)
        });
        all.skip(offset).collect()
    }

    #[test]
    fn every_element_is_at_its_place() {
        let layouts = [1, 2, 3, 7, 100].into_iter().flat_map(|b| [0, 1, 5, 13].map(|o| (b, o)));
        for ((block, offset), images) in layouts.flat_map(|l| [1, 2, 3, 5].map(|i| (l, i))) {
            let layout = BlockCyclic::new(block, offset).unwrap();
            let want = dealt(block, offset, images, 40);
            for (from, to) in [(0, 40), (0, 1), (3, 29), (17, 18), (9, 9)] {
                for image in 0..images {
                    let mine = |i: &usize| want[*i].0 == image;
                    let run = layout.run(image, images, from..to);
                    let places: Vec<usize> = (from..to).filter(mine).map(|i| want[i].1).collect();
                    assert!(run.clone().eq(places.iter().copied()));
                    let (first, count) = layout.holders(images, 40);
                    let holds = (image + images - first) % images < count;
                    assert_eq!(holds, (0..40).any(|i| mine(&i)));
                    if run.is_empty() {
                        continue;
                    }
                    // Elements of 2 bytes in a memory of the range.
                    let (at, stride) = layout.blocks(image, images, from..to, 2);
                    let pieces = stride.pieces(2 * run.len());
                    let found: Vec<usize> = pieces
                        .flat_map(|(apart, _, n)| (at + apart..at + apart + n).step_by(2))
                        .collect();
                    let places: Vec<usize> =
                        (from..to).filter(mine).map(|i| 2 * (i - from)).collect();
                    assert_eq!(found, places);
                }
            }
        }
    }

    #[test]
    fn blocks_beyond_memory() {
        let layout = BlockCyclic::new(usize::MAX / 2, 5).unwrap();
        assert_eq!((layout.run(0, 9, 0..7), layout.run(8, 9, 0..7)), (5..12, 0..0));
        let (at, stride) = layout.blocks(0, 9, 2..7, 8);
        assert!(at == 0 && stride.pieces(40).eq([(0, 0, 40)]));
        assert_eq!(BlockCyclic::new(0, 1), None);
    }
}
