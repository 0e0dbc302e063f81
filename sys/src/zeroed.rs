//! Tables of private records that begin as zeros; pages that are never used cost nothing.
//!
//! Used by `portals3` and by the firehose, for tables whose size is a limit. Invariant: a table is
//! a mapping of its own. An allocator would clear memory that was used before, all of it.

use super::memory::{HUGE_PAGE, Mapping, page_size};
use core::ops::Deref;
use core::sync::atomic::AtomicU32;
use std::alloc::{Layout, handle_alloc_error};

/// Records for which zeros are a valid value.
///
/// # Safety
/// All bits of the type may be 0, and a value needs no drop. It is aligned to a page at most.
pub unsafe trait Zeros {}

// SAFETY: 0 is a value of it, and it needs no drop.
unsafe impl Zeros for AtomicU32 {}

/// A table of records.
#[derive(Debug)]
pub struct Zeroed<T: Zeros> {
    memory: Mapping,
    count: usize,
    records: core::marker::PhantomData<T>,
}

impl<T: Zeros> Zeroed<T> {
    /// A table of `count` records.
    ///
    /// # Panics
    /// The records are more than the address space.
    pub fn new(count: usize) -> Zeroed<T> {
        let layout = Layout::array::<T>(count.max(1)).expect("limits are small");
        // The kernel aligns mappings of whole huge pages, which leaves gaps between them. Others
        // follow each other as one, and a process may have 65,530.
        let bytes = layout.size().next_multiple_of(page_size());
        let more = if bytes.is_multiple_of(HUGE_PAGE) { page_size() } else { 0 };
        let Ok(memory) = Mapping::anonymous(bytes + more) else { handle_alloc_error(layout) };
        Zeroed { memory, count, records: core::marker::PhantomData }
    }
}

impl<T: Zeros> Deref for Zeroed<T> {
    type Target = [T];

    #[inline(always)]
    fn deref(&self) -> &[T] {
        // SAFETY: that many records lie there, aligned; they were zeros, which `Zeros` declares
        // valid, and have only been used by reference since.
        unsafe { core::slice::from_raw_parts(self.memory.as_ptr().cast(), self.count) }
    }
}
