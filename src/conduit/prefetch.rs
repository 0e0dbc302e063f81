//! Prefetching the cache lines of a message's payload before a handler reads them.
//!
//! Used by the files that receive, after an event has arrived (`Conduit::prefetch_payload`).
//! Earlier prefetches would steal cache lines that the sender is still writing. Invariant: a
//! prefetch is a hint only, so any address may be prefetched.

use sys::cache;

/// Bytes of a cache line.
const LINE: usize = 64;
/// Of a longer payload only the first cache line is prefetched. The processor itself prefetches
/// what is read in order, and its queue of outstanding prefetches is short.
const MOST: usize = 512;

/// Prefetches the cache lines of `bytes` bytes.
#[inline(always)]
pub(super) fn prefetch_lines(at: *const u8, bytes: usize) {
    let bytes = if bytes <= MOST { bytes } else { 1 };
    let mut line = 0;
    while line < bytes {
        cache::prefetch(at.wrapping_add(line));
        line += LINE;
    }
}
