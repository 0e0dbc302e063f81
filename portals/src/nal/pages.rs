//! Zeroed pages of this process alone, for arenas that nobody shares; pages that are never touched are never there.

use core::ptr::{self, NonNull};

/// Some pages, returned to the system when dropped.
#[derive(Debug)]
pub(super) struct Pages {
    base: NonNull<u8>,
    bytes: usize,
}

// SAFETY: the memory is owned; who touches it is the interface's business.
unsafe impl Send for Pages {}
// SAFETY: as above.
unsafe impl Sync for Pages {}

impl Pages {
    /// `bytes` of zeros, aligned to a page. `None` if there is no memory.
    pub(super) fn new(bytes: usize) -> Option<Pages> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new mapping, wherever the system likes.
        let base = unsafe { libc::mmap(ptr::null_mut(), bytes, protection, flags, -1, 0) };
        if base == libc::MAP_FAILED {
            return None;
        }
        NonNull::new(base.cast()).map(|base| Pages { base, bytes })
    }

    /// The first byte.
    pub(super) fn base(&self) -> NonNull<u8> {
        self.base
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        // SAFETY: the mapping of `new`, which nobody uses any more.
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.bytes) };
    }
}
