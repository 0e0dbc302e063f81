//! The counters of a firehose, for GASNET_STATS and `gasnet_trace firehose`.
//!
//! Written by `remote` and `local`. Hits are counted only where statistics are wanted: they would
//! be the one shared word that a hit writes beyond its entry.

use super::traits::PinId;
use crate::conduit::primitive::{AtomicU64, Ordering};
use alloc::vec::Vec;
use core::fmt::{self, Display, Formatter};
use core::ops::AddAssign;
use crossbeam_utils::CachePadded;

macro_rules! counters {
    ($($(#[$doc:meta])* $name:ident $variant:ident)*) => {
        /// How often things happened, up to now.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub struct FirehoseStats {
            $($(#[$doc])* pub $name: u64,)*
        }

        /// A counter of [`FirehoseStats`].
        #[derive(Clone, Copy, Debug)]
        #[repr(usize)]
        pub(super) enum FirehoseCounter {
            $($variant,)*
        }

        const COUNTERS: usize = [$(FirehoseCounter::$variant),*].len();

        impl FirehoseCounters {
            pub(super) fn read(&self) -> FirehoseStats {
                let n = |counter: FirehoseCounter| {
                    self.of[counter as usize].load(Ordering::Relaxed)
                };
                FirehoseStats { $($name: n(FirehoseCounter::$variant),)* }
            }
        }

        impl AddAssign for FirehoseStats {
            fn add_assign(&mut self, other: FirehoseStats) {
                $(self.$name += other.$name;)*
            }
        }

        /// As the trace has them: `name=count`, separated by blanks.
        impl Display for FirehoseStats {
            fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
                let all = [$((stringify!($name), self.$name)),*];
                all.into_iter().enumerate().try_for_each(|(i, (name, count))| {
                    write!(f, "{}{name}={count}", if i == 0 { "" } else { " " })
                })
            }
        }
    };
}

counters! {
    /// Accesses to memory of peers that was pinned; 0 where hits are not counted.
    remote_hits RemoteHits
    /// Accesses to memory of peers that was not.
    remote_misses RemoteMisses
    /// Uses of memory of this rank that was pinned; 0 where hits are not counted.
    local_hits LocalHits
    /// Uses of memory of this rank that was not.
    local_misses LocalMisses
    /// Moves and recalls that were sent.
    moves Moves
    /// Regions that were given up for others: of peers, and of this rank.
    victims Victims
    /// Regions of this rank that were pinned, for itself or for peers.
    pins Pins
    /// Pins that were undone.
    unpins Unpins
    /// Pins that met a limit of the system and were tried again.
    pin_retries PinRetries
    /// Pins that failed.
    pin_failures PinFailures
    /// Calls that found all regions in use.
    stalls Stalls
    /// Regions that this rank refused to peers, which held as many as they may.
    refused Refused
    /// Regions that this rank asked back from peers.
    recalls Recalls
    /// Transfers that their target refused since their pin was gone.
    rejected Rejected
    /// Regions of this rank that were unpinned since memory under them was unmapped.
    unmapped Unmapped
    /// Regions of this rank that are pinned now.
    pinned Pinned
    /// Most that were.
    most_pinned MostPinned
    /// Bytes of the regions that are pinned now.
    pinned_bytes PinnedBytes
    /// Holds of regions by operations under way, of this rank's and of peers' regions. Counted in
    /// the tables.
    holds Holds
}

/// The counters of one rank.
pub(super) struct FirehoseCounters {
    /// Whether hits are counted.
    hits: bool,
    of: [CachePadded<AtomicU64>; COUNTERS],
}

impl FirehoseCounters {
    pub(super) fn new(hits: bool) -> FirehoseCounters {
        let of = core::array::from_fn(|_| CachePadded::new(AtomicU64::new(0)));
        FirehoseCounters { hits, of }
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

    /// How many regions are pinned now, and their bytes. Called with the lock of `local` held.
    pub(super) fn set_pinned(&self, now: u32, bytes: usize) {
        let of = |counter: FirehoseCounter| &self.of[counter as usize];
        let most = of(FirehoseCounter::MostPinned);
        of(FirehoseCounter::Pinned).store(now.into(), Ordering::Relaxed);
        of(FirehoseCounter::PinnedBytes).store(bytes as u64, Ordering::Relaxed);
        most.store(most.load(Ordering::Relaxed).max(now.into()), Ordering::Relaxed);
    }
}

/// What a rank has of one peer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RemotePins {
    /// Regions that it counts as used: what the others here add up to.
    pub used: u32,
    /// Pins that its operations hold, that are idle, or that are to be given back.
    pub pins: Vec<PinId>,
    /// Regions that were requested by a message, and not answered.
    pub pending: u32,
}

/// What a rank has pinned.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LocalSums {
    /// Regions that are pinned.
    pub pinned: u32,
    /// Holds of transfers of this rank.
    pub own_holds: u32,
    /// References of peers.
    pub references: u32,
    /// The same as the lender counts them.
    pub lent: u32,
}
