//! Prefetching the lines of a message's body before they are read.
//!
//! Used by `request_send` (a reply will come), the files that receive (what came) and `poll` (idle
//! polls). Invariant: a guess only; any address may be prefetched.
//!
//! Arguments that do not fit in an event, and all of a Long in one message, are read as soon as
//! the event is. An idle poll prefetches them where the next body is expected, so that they
//! arrive while the sender still posts the event: two trips between cores at once instead of one
//! after the other. The payload of a Medium, or of a Long that is at its destination, is
//! prefetched after its event has arrived (`Conduit::prefetch_payload`). Earlier prefetches would
//! take lines away from the sender that it is still writing.

use super::am_body::args_bytes;
use super::match_bits::{AmForm, AmHeader};
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use sys::cache;

/// Bytes of a cache line.
const LINE: usize = 64;
/// Of more than this only the first line is prefetched: the processor itself prefetches what is
/// read in order, and it has no slots for so many requests of ours.
const MOST: usize = 512;

/// Where the next body is expected; threads may overwrite each other's guess.
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
    pub(super) fn expect_at(&self, at: *const u8) {
        self.at.store(at.cast_mut(), Ordering::Relaxed);
    }

    /// A message with a body of `len` bytes has arrived; the next will be like it.
    #[inline(always)]
    pub(super) fn arrived(&self, am: &AmHeader, len: usize) {
        let soon = match am.form {
            AmForm::Medium => args_bytes(am.numargs.into()),
            _ => len,
        };
        self.bytes.store(soon, Ordering::Relaxed);
    }

    /// A message has arrived that had no body in a buffer; the next will be like it.
    #[inline(always)]
    pub(super) fn arrived_empty(&self) {
        self.bytes.store(0, Ordering::Relaxed);
    }

    /// Prefetches what will be read at once of the next body; false if that is nothing.
    #[inline(always)]
    pub(super) fn prefetch(&self) -> bool {
        let bytes = self.bytes.load(Ordering::Relaxed);
        if bytes != 0 {
            prefetch_lines(self.at.load(Ordering::Relaxed), bytes);
        }
        bytes != 0
    }
}

/// Prefetches the lines of so many bytes.
#[inline(always)]
pub(super) fn prefetch_lines(at: *const u8, bytes: usize) {
    let bytes = if bytes <= MOST { bytes } else { 1 };
    let mut line = 0;
    while line < bytes {
        cache::prefetch(at.wrapping_add(line));
        line += LINE;
    }
}
