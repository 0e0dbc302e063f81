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
use sys::unmap_watch::WatchedChange;

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
    /// The first byte of each, which starts a page, plus 1 if it is reported ahead; the end.
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
    pub(in crate::conduit) fn note(&self, mut next: impl FnMut() -> Option<WatchedChange>) {
        // The program goes on when `next` has read a change. It sees this before.
        self.round.fetch_add(1, Ordering::SeqCst);
        while let Some(WatchedChange { range, ahead }) = next() {
            let pushed = self.pushed.load(Ordering::Relaxed);
            // Acquire pairs with the Release of `take`, which has read the slot.
            if pushed - self.taken.load(Ordering::Acquire) == KEPT as u64 {
                self.lost.store(true, Ordering::Relaxed);
                continue;
            }
            let [first, last] = &self.kept[pushed as usize % KEPT];
            first.store(range.start as u64 | u64::from(ahead), Ordering::Relaxed);
            last.store(range.end as u64, Ordering::Relaxed);
            // Release pairs with the Acquire of `take`, which may see a change of a later round
            // than the one that it has read.
            self.pushed.store(pushed + 1, Ordering::Release);
        }
        // Release pairs with the Acquire of `take`: what was pushed is seen.
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
    pub(in crate::conduit) fn take(&self) -> Option<WatchedChange> {
        let backoff = Backoff::new();
        let round = loop {
            let round = self.round.load(Ordering::Acquire);
            if round.is_multiple_of(2) {
                break round;
            }
            backoff.snooze();
        };
        if self.lost.swap(false, Ordering::Relaxed) {
            return Some(WatchedChange { range: 0..usize::MAX, ahead: true });
        }
        let taken = self.taken.load(Ordering::Relaxed);
        // Acquire pairs with the Release of `note`, which has written the slot.
        if taken == self.pushed.load(Ordering::Acquire) {
            // Release pairs with the Acquire of `any`.
            self.settled.store(round, Ordering::Release);
            return None;
        }
        let [first, last] = &self.kept[taken as usize % KEPT];
        let (start, end) = (first.load(Ordering::Relaxed), last.load(Ordering::Relaxed));
        let change =
            WatchedChange { range: (start & !1) as usize..end as usize, ahead: start & 1 != 0 };
        // Release pairs with the Acquire of `note`.
        self.taken.store(taken + 1, Ordering::Release);
        Some(change)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(range: core::ops::Range<usize>, ahead: bool) -> WatchedChange {
        WatchedChange { range, ahead }
    }

    #[test]
    fn changes_come_in_order_or_as_all_memory() {
        let news = UnmapNews::<4>::new();
        assert!(!news.any() && news.take().is_none());
        let two = [change(4096..8192, false), change(12288..16384, true)];
        let mut some = two.clone().into_iter();
        news.note(|| some.next());
        assert!(news.any());
        assert_eq!([news.take(), news.take()], two.map(Some));
        assert!(news.any(), "the last one may not have been dealt with");
        assert!(news.take().is_none() && !news.any());
        let mut many = (0..=4).map(|n| change(4096 * n..4096 * (n + 1), false));
        news.note(|| many.next());
        let all = [change(0..usize::MAX, true), change(0..4096, false)];
        assert_eq!([news.take(), news.take()], all.map(Some));
        while news.take().is_some() {}
        assert!(!news.any());
    }
}
