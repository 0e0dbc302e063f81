//! When a rank waits for others, in words that it shares with the ranks of its host.
//!
//! Written by the cold rounds of waits (`runtime::wait`), and read there to find out whether a
//! rank computes, through `exit_notice`. Invariant: only the rank writes its words. If another
//! overwrites them, ranks yield or sleep at the wrong time, no more.
//!
//! All threads of a rank write the same words: it waits if the last that wrote did.

use core::sync::atomic::{AtomicU64, Ordering};

/// In the time of the last wait: its end was not recorded.
const WAITS: u64 = 1;
/// A wait without an end has ended if it was not recorded for so long: a wait by
/// GASNET_BLOCKUNTIL ends in the client.
const STALE_NS: u64 = 100_000_000;
/// A rank that waits again within this time has not computed.
const BETWEEN_WAITS_NS: u64 = 1_000_000;

/// The words of one rank. Relaxed: to read an older value is as harmless as an overwritten one.
#[derive(Clone, Copy, Debug)]
pub(super) struct WaitRecord {
    /// When the rank last waited, in nanoseconds, and [`WAITS`] while it does.
    pub(super) last: &'static AtomicU64,
    /// Since when it has waited, apart from gaps of at most [`BETWEEN_WAITS_NS`].
    pub(super) since: &'static AtomicU64,
}

impl WaitRecord {
    /// Records a round of a wait, at the time `now`.
    pub(super) fn begin(self, now: u64) {
        if !self.waits(now) {
            self.since.store(now, Ordering::Relaxed);
        }
        self.last.store(now | WAITS, Ordering::Relaxed);
    }

    /// Records the end of a wait.
    pub(super) fn end(self) {
        self.last.store(self.last.load(Ordering::Relaxed) & !WAITS, Ordering::Relaxed);
    }

    /// Whether the rank waits at the time `now`, and has not computed since `since`.
    pub(super) fn has_waited(self, since: u64, now: u64) -> bool {
        self.waits(now) && self.since.load(Ordering::Relaxed) <= since
    }

    /// Whether the rank waits at the time `now`, or will again soon.
    fn waits(self, now: u64) -> bool {
        let last = self.last.load(Ordering::Relaxed);
        let counts = if last & WAITS != 0 { STALE_NS } else { BETWEEN_WAITS_NS };
        last.saturating_add(counts) >= now
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_gaps_belong_to_a_wait() {
        const GAP: u64 = BETWEEN_WAITS_NS;
        let word = || &*Box::leak(Box::new(AtomicU64::new(0)));
        let waits = WaitRecord { last: word(), since: word() };
        assert!(!waits.has_waited(2 * GAP, 2 * GAP));
        let began = 4 * GAP;
        waits.begin(began);
        assert!(waits.has_waited(began, 20 * GAP) && !waits.has_waited(began - 1, 20 * GAP));
        assert!(!waits.has_waited(began, began + STALE_NS + 2));
        waits.end();
        assert!(waits.has_waited(began, began + GAP));
        assert!(!waits.has_waited(began, began + GAP + 1));
        waits.begin(began + GAP);
        waits.end();
        assert!(waits.has_waited(began, began + 2 * GAP));
        waits.begin(began + 3 * GAP);
        assert!(!waits.has_waited(began, 20 * GAP) && waits.has_waited(20 * GAP, 20 * GAP));
    }
}
