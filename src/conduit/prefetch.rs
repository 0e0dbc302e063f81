//! Prefetching the lines of a message's payload before a handler reads them.
//!
//! Used by the files that receive, after an event has arrived (`Conduit::prefetch_payload`).
//! Earlier prefetches would take lines away from the sender that it is still writing. Invariant:
//! a guess only; any address may be prefetched.

use sys::cache;

/// Bytes of a cache line.
const LINE: usize = 64;
/// Of more than this only the first line is prefetched: the processor itself prefetches what is
/// read in order, and it has no slots for so many requests of ours.
const MOST: usize = 512;

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
