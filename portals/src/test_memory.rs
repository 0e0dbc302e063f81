//! Memory of tests as descriptors name it. Shared by unit tests of several files.

use crate::types::*;

/// A descriptor of this memory, for any number of messages.
pub(crate) fn md(memory: &mut [u8], options: u32, eq: EqHandle) -> MemoryDescriptor {
    MemoryDescriptor {
        start: memory.as_mut_ptr().cast(),
        length: memory.len() as u64,
        threshold: THRESH_INF,
        max_size: 0,
        options,
        user_ptr: core::ptr::null_mut(),
        eq,
    }
}
