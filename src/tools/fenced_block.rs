//! Memory of one object of the debug malloc, with a fence before and after it.
//!
//! Called by `debug_malloc`, which keeps one [`FencedBlock`] per object. Invariant: the fences are
//! filled when the block is allocated, and the memory exists until the value is dropped.
//!
//! ```text
//!   base               address                  address + size
//!   | front fence (16) | object (size, aligned) | back fence (16) |
//! ```

use core::cell::Cell;
use core::mem::MaybeUninit;
use sys::heap::HeapBlock;

/// Bytes of the fence before an object; keeps the alignment of malloc.
const FRONT: usize = 16;
/// Bytes of the fence after an object.
const BACK: usize = 16;
/// Bytes of both fences.
pub(super) const FENCES: usize = FRONT + BACK;
/// Contents of the fences, mixed with the address of the object.
const FENCE: u64 = 0xFE9C_E5A5_5AE9_C0FE;

/// A byte that the client may not have written yet.
type Byte = Cell<MaybeUninit<u8>>;

/// An object and its fences.
#[derive(Debug)]
pub(super) struct FencedBlock {
    memory: HeapBlock,
    /// First byte of the object.
    address: usize,
    size: usize,
    /// The pattern that last filled the whole object.
    filled: Option<u64>,
}

/// The byte at `i` of a pattern: a byte repeated, or a word repeated.
fn pattern_byte(pattern: u64, i: usize) -> u8 {
    if pattern <= 0xff { pattern as u8 } else { pattern.to_ne_bytes()[i % 8] }
}

fn fill(bytes: &[Byte], pattern: u64) {
    for (i, byte) in bytes.iter().enumerate() {
        byte.set(MaybeUninit::new(pattern_byte(pattern, i)));
    }
}

impl FencedBlock {
    /// An object of `size` bytes; `None` if there is no memory.
    pub(super) fn allocate(size: usize) -> Option<FencedBlock> {
        let memory = HeapBlock::allocate(size.checked_add(FENCES)?)?;
        let address = memory.as_ptr().expose_provenance() + FRONT;
        let block = FencedBlock { memory, address, size, filled: None };
        let (front, _, back) = block.parts();
        fill(front, block.fence());
        fill(back, block.fence());
        Some(block)
    }

    /// First byte of the object.
    pub(super) fn address(&self) -> usize {
        self.address
    }

    /// Bytes of the object.
    pub(super) fn size(&self) -> usize {
        self.size
    }

    fn fence(&self) -> u64 {
        FENCE ^ (self.address as u64).rotate_left(16) | 1 << 63
    }

    /// The front fence, the object and the back fence.
    fn parts(&self) -> (&[Byte], &[Byte], &[Byte]) {
        let (front, rest) = self.memory.bytes().split_at(FRONT);
        let (object, back) = rest.split_at(self.size);
        (front, object, back)
    }

    /// Fills the object.
    pub(super) fn fill(&mut self, pattern: u64) {
        fill(self.parts().1, pattern);
        self.filled = Some(pattern);
    }

    /// Copies as many bytes of another object as both have.
    pub(super) fn copy_from(&self, other: &FencedBlock) {
        for (to, from) in self.parts().1.iter().zip(other.parts().1) {
            to.set(from.get());
        }
    }

    /// Address of the first byte of the front fence that was overwritten.
    pub(super) fn damage_before(&self) -> Option<usize> {
        damage(self.parts().0, self.fence()).map(|i| self.address - FRONT + i)
    }

    /// Address of the first byte of the back fence that was overwritten.
    pub(super) fn damage_behind(&self) -> Option<usize> {
        damage(self.parts().2, self.fence()).map(|i| self.address + self.size + i)
    }

    /// Address of the first byte of the object that was overwritten since it was filled.
    pub(super) fn damage_inside(&self) -> Option<usize> {
        damage(self.parts().1, self.filled?).map(|i| self.address + i)
    }
}

/// The first of these bytes, once filled with the pattern, that differs from it.
fn damage(bytes: &[Byte], pattern: u64) -> Option<usize> {
    bytes.iter().enumerate().position(|(i, byte)| {
        // SAFETY: `fill` has initialised the byte; writes of the client leave it initialised.
        unsafe { byte.get().assume_init() != pattern_byte(pattern, i) }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn damage_is_found_where_it_is() {
        for pattern in [7, 0x0102_0304_0506_0708] {
            let mut block = FencedBlock::allocate(21).unwrap();
            block.fill(pattern);
            let damage =
                |b: &FencedBlock| (b.damage_before(), b.damage_inside(), b.damage_behind());
            assert_eq!(damage(&block), (None, None, None));
            let (front, object, back) = block.parts();
            front[3].set(MaybeUninit::new(0));
            object[13].set(MaybeUninit::new(0xee));
            back[15].set(MaybeUninit::new(0));
            let at = block.address();
            assert_eq!(damage(&block), (Some(at - 13), Some(at + 13), Some(at + 36)));
        }
    }

    #[test]
    fn copies_what_both_have() {
        let (mut a, mut b) =
            (FencedBlock::allocate(4).unwrap(), FencedBlock::allocate(6).unwrap());
        a.fill(1);
        b.fill(2);
        b.copy_from(&a);
        assert_eq!(b.damage_inside(), Some(b.address()));
        let object = b.parts().1;
        assert_eq!((damage(&object[..4], 1), damage(&object[4..], 2)), (None, None));
    }
}
