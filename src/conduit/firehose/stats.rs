//! The counters of a firehose, for GASNET_STATS and `gasnet_trace firehose`.
//!
//! Written by `remote` and `local`. Hits are counted only where statistics are wanted: they would
//! be the one shared word that a hit writes beyond its entry.

use crate::conduit::primitive::{AtomicU64, Ordering};
use crossbeam_utils::CachePadded;

/// How often things happened, up to now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FirehoseStats {
    /// Accesses to memory of peers that was pinned; 0 where hits are not counted.
    pub remote_hits: u64,
    /// Accesses to memory of peers that was not.
    pub remote_misses: u64,
    /// Uses of memory of this rank that was pinned; 0 where hits are not counted.
    pub local_hits: u64,
    /// Uses of memory of this rank that was not.
    pub local_misses: u64,
    /// Moves and recalls that were sent.
    pub moves: u64,
    /// Regions of peers that were given back for others.
    pub victims: u64,
    /// Regions of this rank that were pinned, for itself or for peers.
    pub pins: u64,
    /// Pins that were undone.
    pub unpins: u64,
    /// Pins that failed at a limit, then worked when idle regions had been unpinned.
    pub pin_retries: u64,
    /// Pins that failed.
    pub pin_failures: u64,
    /// Calls that found all regions in use.
    pub stalls: u64,
    /// Regions that this rank refused to peers, which held as many as they may.
    pub refused: u64,
    /// Regions that this rank asked back from peers.
    pub recalls: u64,
    /// Transfers that their target refused since their pin was gone.
    pub rejected: u64,
    /// Regions of this rank that were unpinned since memory under them was unmapped.
    pub unmapped: u64,
    /// Regions of this rank that are pinned now, and most that were.
    pub pinned: u64,
    /// See `pinned`.
    pub most_pinned: u64,
}

/// A counter of [`FirehoseStats`].
#[derive(Clone, Copy, Debug)]
#[repr(usize)]
pub(super) enum FirehoseCounter {
    RemoteHits,
    RemoteMisses,
    LocalHits,
    LocalMisses,
    Moves,
    Victims,
    Pins,
    Unpins,
    PinRetries,
    PinFailures,
    Stalls,
    Refused,
    Recalls,
    Rejected,
    Unmapped,
    Pinned,
    MostPinned,
}

const COUNTERS: usize = FirehoseCounter::MostPinned as usize + 1;

/// The counters of one rank.
pub(super) struct FirehoseCounters {
    /// Whether hits are counted.
    hits: bool,
    of: [CachePadded<AtomicU64>; COUNTERS],
}

impl FirehoseCounters {
    pub(super) fn new(hits: bool) -> FirehoseCounters {
        FirehoseCounters {
            hits,
            of: core::array::from_fn(|_| CachePadded::new(AtomicU64::new(0))),
        }
    }

    pub(super) fn add(&self, counter: FirehoseCounter) {
        self.of[counter as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a hit, where that is wanted.
    #[inline]
    pub(super) fn hit(&self, counter: FirehoseCounter) {
        if self.hits {
            sys::hint::cold_path();
            self.add(counter);
        }
    }

    /// How many regions are pinned now. Called with the lock of `local` held.
    pub(super) fn set_pinned(&self, now: u32) {
        let most = &self.of[FirehoseCounter::MostPinned as usize];
        self.of[FirehoseCounter::Pinned as usize].store(now.into(), Ordering::Relaxed);
        most.store(most.load(Ordering::Relaxed).max(now.into()), Ordering::Relaxed);
    }

    pub(super) fn read(&self) -> FirehoseStats {
        use FirehoseCounter::*;
        let n = |counter: FirehoseCounter| self.of[counter as usize].load(Ordering::Relaxed);
        FirehoseStats {
            remote_hits: n(RemoteHits),
            remote_misses: n(RemoteMisses),
            local_hits: n(LocalHits),
            local_misses: n(LocalMisses),
            moves: n(Moves),
            victims: n(Victims),
            pins: n(Pins),
            unpins: n(Unpins),
            pin_retries: n(PinRetries),
            pin_failures: n(PinFailures),
            stalls: n(Stalls),
            refused: n(Refused),
            recalls: n(Recalls),
            rejected: n(Rejected),
            unmapped: n(Unmapped),
            pinned: n(Pinned),
            most_pinned: n(MostPinned),
        }
    }
}
