//! Changes of watched memory, from the thread that reads them to those that use the firehose.
//!
//! Written by the thread of `monitor`, read by its implementation of `Monitor`. Invariant: from
//! the return of the call that changed memory until the change was taken, and the next one
//! requested, [`UnmapNews::any`] is true.
//!
//! ```text
//!   program           munmap ............................ returns
//!   reader    wait ──> round + 1 (odd) ──> read, wakes the program ──> push ──> round + 1 (even)
//!   firehose  any: settled is not round ──> an even round ──> take ... none: settled = round
//! ```
//!
//! One thread writes. One at a time takes, with the lock of the firehose held. It may wait for the
//! writer, which waits for no thread of the program meanwhile and does not allocate: the program
//! may hold a lock of the allocator when it unmaps.

use crate::conduit::primitive::{AtomicBool, AtomicU64, Backoff, Ordering};
use core::ops::Range;

/// Changes of memory that nothing has taken yet. `KEPT` of them, a power of two, are kept one by
/// one.
#[derive(Debug)]
pub(in crate::conduit) struct UnmapNews<const KEPT: usize = 64> {
    /// Odd while the reader reads.
    round: AtomicU64,
    /// The round up to which all changes were taken.
    settled: AtomicU64,
    pushed: AtomicU64,
    taken: AtomicU64,
    /// There were more changes than are kept.
    lost: AtomicBool,
    kept: [[AtomicU64; 2]; KEPT],
}

impl<const KEPT: usize> UnmapNews<KEPT> {
    pub(in crate::conduit) fn new() -> Self {
        UnmapNews {
            round: AtomicU64::new(0),
            settled: AtomicU64::new(0),
            pushed: AtomicU64::new(0),
            taken: AtomicU64::new(0),
            lost: AtomicBool::new(false),
            kept: core::array::from_fn(|_| [AtomicU64::new(0), AtomicU64::new(0)]),
        }
    }

    /// Notes the changes that `next` returns. Called by the reader.
    pub(in crate::conduit) fn note(&self, mut next: impl FnMut() -> Option<Range<usize>>) {
        // The program goes on when `next` has read a change. It sees this before.
        self.round.fetch_add(1, Ordering::SeqCst);
        while let Some(Range { start, end }) = next() {
            let pushed = self.pushed.load(Ordering::Relaxed);
            // Acquire pairs with the Release of `take`, which has read the slot.
            if pushed - self.taken.load(Ordering::Acquire) == KEPT as u64 {
                self.lost.store(true, Ordering::Relaxed);
                continue;
            }
            let [first, last] = &self.kept[pushed as usize % KEPT];
            first.store(start as u64, Ordering::Relaxed);
            last.store(end as u64, Ordering::Relaxed);
            self.pushed.store(pushed + 1, Ordering::Relaxed);
        }
        // Release pairs with the Acquire of `take`, which reads what was pushed.
        self.round.fetch_add(1, Ordering::Release);
    }

    /// Whether [`UnmapNews::take`] may have something: two loads.
    #[inline]
    pub(in crate::conduit) fn any(&self) -> bool {
        // Acquire pairs with the Release of `take`: what was taken has been dealt with.
        self.settled.load(Ordering::Acquire) != self.round.load(Ordering::Relaxed)
    }

    /// A change, all memory if changes were lost. With `None` all that were taken before count as
    /// dealt with. Called by one thread at a time.
    pub(in crate::conduit) fn take(&self) -> Option<Range<usize>> {
        let backoff = Backoff::new();
        let round = loop {
            let round = self.round.load(Ordering::Acquire);
            if round.is_multiple_of(2) {
                break round;
            }
            backoff.snooze();
        };
        if self.lost.swap(false, Ordering::Relaxed) {
            return Some(0..usize::MAX);
        }
        let taken = self.taken.load(Ordering::Relaxed);
        if taken == self.pushed.load(Ordering::Relaxed) {
            // Release pairs with the Acquire of `any`.
            self.settled.store(round, Ordering::Release);
            return None;
        }
        let [first, last] = &self.kept[taken as usize % KEPT];
        let range = first.load(Ordering::Relaxed) as usize..last.load(Ordering::Relaxed) as usize;
        // Release pairs with the Acquire of `note`.
        self.taken.store(taken + 1, Ordering::Release);
        Some(range)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_come_in_order_or_as_all_memory() {
        let news = UnmapNews::<4>::new();
        assert!(!news.any() && news.take().is_none());
        let mut some = [4096..8192, 12288..16384].into_iter();
        news.note(|| some.next());
        assert!(news.any());
        assert_eq!([news.take(), news.take()], [Some(4096..8192), Some(12288..16384)]);
        assert!(news.any(), "the last one may not have been dealt with");
        assert!(news.take().is_none() && !news.any());
        let mut many = (0..=4).map(|n| n..n + 1);
        news.note(|| many.next());
        assert_eq!((news.take(), news.take()), (Some(0..usize::MAX), Some(0..1)));
        while news.take().is_some() {}
        assert!(!news.any());
    }
}
