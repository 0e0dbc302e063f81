//! Send tickets: how many messages of ours may be under way at once (`GASNET_PORTAL_MSG_LIMIT`).
//!
//! Used by the files that send, and by `safe`, which gives them back. A put or get holds a ticket
//! from its start to its ACK or REPLY event. The data of a Long, and a reply that leaves a chunk,
//! hold one to their SEND event. Invariant: a ticket is the last thing that a sender takes, and
//! its holder waits for nothing more. So tickets always come back, through events of SAFE_EQ
//! alone.

use super::primitive::{AtomicU32, Ordering};
use super::sync;
use crossbeam_utils::CachePadded;

pub(super) struct Tickets {
    par: bool,
    free: CachePadded<AtomicU32>,
    /// How many there are.
    count: u32,
}

impl Tickets {
    pub(super) fn new(par: bool, count: u32) -> Self {
        Tickets { par, free: CachePadded::new(AtomicU32::new(count)), count }
    }

    /// Takes `n` or none.
    #[inline]
    pub(super) fn take(&self, n: u32) -> Option<()> {
        sync::take(self.par, &self.free, n).then_some(())
    }

    #[cfg(test)]
    pub(super) fn left(&self) -> u32 {
        self.free.load(core::sync::atomic::Ordering::Acquire)
    }

    /// How many are taken.
    pub(super) fn taken(&self) -> u32 {
        self.count.saturating_sub(self.free.load(Ordering::Relaxed))
    }

    #[inline]
    pub(super) fn give(&self, n: u32) {
        sync::give(self.par, &self.free, n);
    }

    /// An event gives one back. False, and nothing done, if all tickets are here already.
    #[inline]
    pub(super) fn give_for_event(&self) -> bool {
        let missing = self.free.load(Ordering::Relaxed) < self.count;
        if missing {
            self.give(1);
        }
        missing
    }
}
