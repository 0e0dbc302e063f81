//! Tables of private records that begin as zeros; pages that are never used cost nothing.
//!
//! Used by `portals3` and by the firehose, for tables whose size is a limit. An allocator takes
//! zeroed blocks that are not small straight from the system, untouched. If they must be aligned
//! to more than its own 16 bytes, it clears them itself. So such a table is a block with spare
//! bytes in which its first record is aligned. A long table is a mapping of its own where the
//! system has such: an allocator would clear all of a block that was used before.

use super::memory::{HUGE_PAGE, Mapping, page_size};
use core::ops::Deref;
use core::ptr::NonNull;
use core::sync::atomic::AtomicU32;
use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};

/// Longer tables, in bytes, are mappings.
const MOST_ALLOCATED: usize = 256 << 10;

/// Records for which zeros are a valid value.
///
/// # Safety
/// All bits of the type may be 0, and a value needs no drop. It is aligned to a page at most.
pub unsafe trait Zeros {}

// SAFETY: 0 is a value of it, and it needs no drop.
unsafe impl Zeros for AtomicU32 {}

/// Where the records are; freed when dropped.
#[derive(Debug)]
enum TableMemory {
    Allocated(NonNull<u8>, Layout),
    Mapped { _owner: Mapping },
}

/// A table of records.
#[derive(Debug)]
pub struct Zeroed<T: Zeros> {
    memory: TableMemory,
    first: NonNull<T>,
    count: usize,
}

// SAFETY: the table owns its records, as a box would.
unsafe impl<T: Zeros + Send> Send for Zeroed<T> {}
// SAFETY: as above.
unsafe impl<T: Zeros + Sync> Sync for Zeroed<T> {}

impl<T: Zeros> Zeroed<T> {
    /// A table of `count` records.
    ///
    /// # Panics
    /// The records are more than the address space.
    pub fn new(count: usize) -> Zeroed<T> {
        let bytes =
            count.checked_mul(size_of::<T>()).and_then(|bytes| bytes.checked_add(align_of::<T>()));
        let layout = bytes
            .and_then(|bytes| Layout::from_size_align(bytes, 16).ok())
            .expect("limits are small");
        if let Some(mapping) = mapping_of(layout.size()) {
            let first = mapping.base().cast();
            return Zeroed { memory: TableMemory::Mapped { _owner: mapping }, first, count };
        }
        // SAFETY: the layout has a size, since alignments are at least 1.
        let Some(block) = NonNull::new(unsafe { alloc_zeroed(layout) }) else {
            handle_alloc_error(layout)
        };
        // SAFETY: the block is longer than the records by their alignment.
        let first = unsafe { block.add(block.align_offset(align_of::<T>())) }.cast();
        Zeroed { memory: TableMemory::Allocated(block, layout), first, count }
    }
}

/// A mapping for as many bytes, if they are many and the system has such.
fn mapping_of(bytes: usize) -> Option<Mapping> {
    if bytes <= MOST_ALLOCATED {
        return None;
    }
    let bytes = bytes.next_multiple_of(page_size());
    // The kernel aligns mappings of whole huge pages, which leaves gaps between them. Others
    // follow each other as one, and a process may have 65,530.
    let more = if bytes.is_multiple_of(HUGE_PAGE) { page_size() } else { 0 };
    Mapping::anonymous(bytes + more).ok()
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
        if let TableMemory::Allocated(block, layout) = self.memory {
            // SAFETY: the block and the layout of `new`; records need no drop.
            unsafe { dealloc(block.as_ptr(), layout) }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::sync::atomic::Ordering;

    #[test]
    fn short_and_long_tables_begin_as_zeros() {
        for count in [0, 1, 1000, MOST_ALLOCATED, 4 * HUGE_PAGE] {
            let table: Zeroed<AtomicU32> = Zeroed::new(count);
            assert_eq!(table.len(), count);
            let of = |i: usize| table.get(i).map(|word| word.fetch_add(7, Ordering::Relaxed));
            let places = [Some(0), Some(count / 3), count.checked_sub(1)];
            for place in places.into_iter().flatten() {
                assert!(of(place).is_none_or(|first| first == 0 || count < 3), "{count} {place}");
            }
        }
    }
}
