//! Asking for the lines of a message's body before they are read.
//!
//! Arguments that are more than travels in an event, and all of a Long in one message, are read as soon as the event is: an idle poll asks for them where the next body is expected, so
//! that they come over while the sender is still posting the event, two trips between cores at once rather than one after the other. A
//! wrong guess costs nothing but the asking. The payload of a Medium, or of a Long that is at its place, is asked for when its event has come
//! (`Conduit::prefetch_payload`): earlier, its lines would come, and go back to the sender, while he is still writing them.

use super::am_recv::Body;
use super::am_send::args_bytes;
use super::match_bits::{AmForm, AmHeader};
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// Bytes of a line.
const LINE: usize = 64;
/// Of more than this only the first line is asked for: what is read in order the processor asks for itself, and has no room for so many
/// requests of ours beside.
const MOST: usize = 512;

/// A guess; threads may overwrite each other's.
#[derive(Debug)]
pub(super) struct PayloadPrefetch {
    at: AtomicPtr<u8>,
    /// Bytes of it that will be read at once.
    bytes: AtomicUsize,
}

impl PayloadPrefetch {
    /// Nothing is expected.
    pub(super) fn new() -> PayloadPrefetch {
        PayloadPrefetch { at: AtomicPtr::new(ptr::null_mut()), bytes: AtomicUsize::new(0) }
    }

    /// The next body will be here.
    #[inline(always)]
    pub(super) fn expect_at(&self, at: *mut u8) {
        self.at.store(at, Ordering::Relaxed);
    }

    /// A message has come; the next will be like it.
    #[inline(always)]
    pub(super) fn arrived(&self, am: &AmHeader, body: Body) {
        let soon = match am.form {
            AmForm::Medium => args_bytes(am.numargs.into()),
            _ => body.len,
        };
        self.bytes.store(soon, Ordering::Relaxed);
    }

    /// A message has come that had no body in a buffer; the next will be like it.
    #[inline(always)]
    pub(super) fn arrived_empty(&self) {
        self.bytes.store(0, Ordering::Relaxed);
    }

    /// Asks for the lines of the next body that will be read at once; false if there will be none.
    #[inline(always)]
    pub(super) fn prefetch(&self) -> bool {
        let bytes = self.bytes.load(Ordering::Relaxed);
        if bytes != 0 {
            prefetch_lines(self.at.load(Ordering::Relaxed), bytes);
        }
        bytes != 0
    }
}

/// Asks for the lines of so many bytes, wherever they are.
#[inline(always)]
pub(super) fn prefetch_lines(at: *const u8, bytes: usize) {
    let bytes = if bytes <= MOST { bytes } else { 1 };
    let mut line = 0;
    while line < bytes {
        prefetch_line(at.wrapping_add(line));
        line += LINE;
    }
}

/// Asks for a line; a hint, for any address whatever.
#[inline(always)]
fn prefetch_line(at: *const u8) {
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
