//! Where the body of the next message is expected. An idle poll asks for its lines, so that they come over while the sender
//! is still posting the event that tells of them, not after we have read it: two trips between cores at once rather than
//! one after the other. A wrong guess costs nothing but the asking.

use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// Bytes of a line.
const LINE: usize = 64;
/// Longer bodies are not asked for: the lines would come, and go back to the sender, while it is still writing them.
const MOST: usize = 512;

/// A guess; threads may overwrite each other's.
#[derive(Debug)]
pub(super) struct Ahead {
    at: AtomicPtr<u8>,
    bytes: AtomicUsize,
}

impl Ahead {
    /// Nothing is expected.
    pub(super) fn new() -> Ahead {
        Ahead { at: AtomicPtr::new(ptr::null_mut()), bytes: AtomicUsize::new(0) }
    }

    /// The next body will be here.
    #[inline(always)]
    pub(super) fn here(&self, at: *mut u8) {
        self.at.store(at, Ordering::Relaxed);
    }

    /// A body of so many bytes has come; the next will be as long.
    #[inline(always)]
    pub(super) fn as_long_as(&self, bytes: usize) {
        self.bytes.store(if bytes > MOST { 0 } else { bytes }, Ordering::Relaxed);
    }

    /// Asks for the lines of the next body.
    #[inline(always)]
    pub(super) fn fetch(&self) {
        let bytes = self.bytes.load(Ordering::Relaxed);
        if bytes == 0 {
            return;
        }
        let at = self.at.load(Ordering::Relaxed);
        let mut line = 0;
        while line < bytes {
            fetch(at.wrapping_add(line));
            line += LINE;
        }
    }
}

/// Asks for a line; a hint, for any address whatever.
#[inline(always)]
fn fetch(at: *const u8) {
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a hint touches no memory.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) };
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: a hint touches no memory.
    unsafe {
        core::arch::asm!("prfm pldl1keep, [{}]", in(reg) at, options(nostack, preserves_flags, readonly));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = at;
}
