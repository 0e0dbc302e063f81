//! Tables of private records that begin as zeros; pages that are never used cost nothing.
//!
//! Used by `portals3` and by the firehose, for tables whose size is a limit. An allocator takes
//! large zeroed blocks straight from the system, untouched. If they must be aligned to more than
//! its own 16 bytes, it clears them itself. So a table is a block with spare bytes in which its
//! first record is aligned.

use core::ops::Deref;
use core::ptr::NonNull;
use core::sync::atomic::AtomicU32;
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};

/// Records for which zeros are a valid value.
///
/// # Safety
/// All bits of the type may be 0, and a value needs no drop.
pub unsafe trait Zeros {}

// SAFETY: 0 is a value of it, and it needs no drop.
unsafe impl Zeros for AtomicU32 {}

/// A table of records.
#[derive(Debug)]
pub struct Zeroed<T: Zeros> {
    block: NonNull<u8>,
    layout: Layout,
    first: NonNull<T>,
    count: usize,
}

// SAFETY: the table owns its records, as a box would.
unsafe impl<T: Zeros + Send> Send for Zeroed<T> {}
// SAFETY: as above.
unsafe impl<T: Zeros + Sync> Sync for Zeroed<T> {}

impl<T: Zeros> Zeroed<T> {
    /// A table of `count` records.
    pub fn new(count: usize) -> Zeroed<T> {
        let bytes =
            count.checked_mul(size_of::<T>()).and_then(|bytes| bytes.checked_add(align_of::<T>()));
        let layout = bytes
            .and_then(|bytes| Layout::from_size_align(bytes, 16).ok())
            .expect("limits are small");
        // SAFETY: the layout has a size, since alignments are at least 1.
        let Some(block) = NonNull::new(unsafe { alloc_zeroed(layout) }) else {
            handle_alloc_error(layout)
        };
        // SAFETY: the block is longer than the records by their alignment.
        let first = unsafe { block.add(block.align_offset(align_of::<T>())) }.cast();
        Zeroed { block, layout, first, count }
    }
}

impl<T: Zeros> Deref for Zeroed<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: that many records lie there, aligned; they were zeros, which `Zeros` declares
        // valid, and have only been used by reference since.
        unsafe { core::slice::from_raw_parts(self.first.as_ptr(), self.count) }
    }
}

impl<T: Zeros> Drop for Zeroed<T> {
    fn drop(&mut self) {
        // SAFETY: the block and the layout of `new`; records need no drop.
        unsafe { dealloc(self.block.as_ptr(), self.layout) }
    }
}
