//! Puts and gets of memory that the network must have registered first, over a network that
//! demands registration: all memory of a rank in EVERYTHING, segments in LARGE, local sides in
//! all modes.
//!
//! Opened by `state` when memory is exposed; used by `pinned_transfer`, `pinned_messages` and
//! `pinned_events`. `pinned_config` says how much a rank may register. Invariants: a
//! transfer names a region of its target only while this rank holds it, and is complete when all
//! its pieces are; what cannot be registered travels in active messages.
//!
//! | file | what it owns |
//! |---|---|
//! | `bits` | the match bits |
//! | `monitor`, `unmap_news` | what learns that memory was unmapped; what it has learnt |
//! | `pinner` | match entries and descriptors of regions |
//! | `flights` | the records of transfers and of their pieces under way |
//! | `stats_trace` | the counters over time, in the trace |
//!
//! ```text
//!   put, get ── piece ──> region of the target held? ──hit──> PtlPut, PtlGet ──> event
//!                          │ miss                                                 │
//!                          └─> MOVE ──> target pins ──> answer ──> PtlPut ...     └─> releases
//! ```

pub(super) mod bits;
pub(super) mod flights;
mod monitor;
mod pinner;
mod stats_trace;
mod unmap_news;

use super::firehose::policy::FirehoseLimits;
use super::firehose::{Firehose, MemoryExtent};
use super::pinned_config::PinnedConfig;
use super::portals::{Portals, PortalsError};
use crate::client_memory::{AddressSpace, Dst};
use crate::rank::{ByJobRank, JobRank};
use crate::{env, report};
use alloc::sync::Arc;
use flights::{Flights, RejectedPieces, Transfers};
pub(super) use monitor::UnmapMonitor;
use pinner::RegionPinner;
use stats_trace::StatsTrace;
use sys::byte_count::ByteCount;

/// The firehose over a Portals.
pub(super) type RegionFirehose<P> = Firehose<Arc<RegionPinner<P>>, UnmapMonitor>;

/// What a conduit has for memory that must be registered.
pub(super) struct PinnedMemory<P: Portals> {
    pub(super) config: PinnedConfig,
    /// Where the segments of all ranks start, if they are registered on demand.
    addresses: Option<ByJobRank<usize>>,
    /// `None`: all data travel in active messages.
    pub(super) firehose: Option<RegionFirehose<P>>,
    /// Whether the firehose learns that memory was unmapped.
    pub(super) notices_unmapping: bool,
    /// That of the firehose.
    pub(super) pinner: Arc<RegionPinner<P>>,
    pub(super) transfers: Transfers,
    pub(super) flights: Flights,
    pub(super) rejected: RejectedPieces,
    pub(super) stats_trace: StatsTrace,
}

/// Segments that are registered on demand.
pub(super) struct ExposedSegments {
    pub(super) own: Dst<'static>,
    /// Where those of all ranks start.
    pub(super) addresses: ByJobRank<usize>,
}

impl ExposedSegments {
    fn own_extent(&self) -> MemoryExtent {
        let start = self.own.as_ptr().addr();
        MemoryExtent { start, end: start + self.own.len() }
    }

    /// The regions of the own segment, which starts at one.
    fn own_regions(&self, limits: FirehoseLimits) -> MemoryExtent {
        let MemoryExtent { start, end } = self.own_extent();
        MemoryExtent { start, end: start + (end - start).next_multiple_of(limits.region_bytes) }
    }
}

impl<P: Portals> PinnedMemory<P> {
    /// The address of offset 0 of what a rank exposes, where memory of it is registered on demand.
    #[inline]
    pub(super) fn base_of(&self, rank: JobRank) -> usize {
        self.addresses.as_ref().map_or(AddressSpace::FIRST, |of| of[rank])
    }

    /// Whether segments are registered on demand.
    #[inline]
    pub(super) fn has_segments(&self) -> bool {
        self.addresses.is_some()
    }

    /// That of rank `me`, with `tickets` send tickets. Completions whose local side is a region go
    /// to `safe`. `par`: several threads call.
    ///
    /// # Errors
    /// The Portals call that failed.
    pub(super) fn open(
        portals: &'static P,
        safe: &P::Eq,
        config: PinnedConfig,
        exposed: Option<ExposedSegments>,
        me: JobRank,
        par: bool,
        tickets: u32,
    ) -> Result<PinnedMemory<P>, PortalsError> {
        let segment = exposed.as_ref().map(ExposedSegments::own_extent).unwrap_or_default();
        let pinner = Arc::new(RegionPinner::new(portals, safe, &config, segment));
        if config.targets_regions() && config.firehose.is_some() {
            pinner.catch_late()?;
        }
        let own = exposed.as_ref().zip(config.firehose).map(|(e, limits)| e.own_regions(limits));
        let started = config.firehose.map(|_| UnmapMonitor::start(own.unwrap_or_default()));
        let (monitor, unnoticed) = started.unzip();
        let unnoticed = unnoticed.flatten();
        let notices_unmapping = monitor.is_some() && unnoticed.is_none();
        if let Some(why) = unnoticed
            && config.targets_regions()
            && !portals.checks_memory()
            && !env::DISABLE_MUNMAP.get()
        {
            report::fatal(
                format_args!(
                    "gasnet_attach(): nothing reports that the program unmaps memory which the \
                     libportals has registered: {why}"
                ),
                format_args!("{}", UnmapMonitor::REMEDY),
            );
        }
        let firehose = config.firehose.zip(monitor).map(|(limits, monitor)| {
            let all = Firehose::new(par, config.count_hits, me, limits, pinner.clone(), monitor);
            match own {
                Some(regions) => all.exposing(regions),
                None => all,
            }
        });
        if let (Some(limits), true) = (config.firehose, env::FIREHOSE_VERBOSE.get()) {
            let bytes = |regions: u32| ByteCount(u64::from(regions) * limits.region_bytes as u64);
            report::note(format_args!(
                "firehose: regions of {}; {} ({}) for peers, {} ({}) for this rank{}; {}",
                ByteCount(limits.region_bytes as u64),
                limits.m,
                bytes(limits.m),
                limits.max_victim,
                bytes(limits.max_victim),
                if config.bound_by_mappings { ", by vm.max_map_count" } else { "" },
                match notices_unmapping {
                    true => "unmapped memory is noticed",
                    false => "unmapped memory is not noticed",
                }
            ));
        }
        let (transfers, flights) = (Transfers::new(par), Flights::new(par, tickets));
        let rejected = RejectedPieces::new(par);
        Ok(PinnedMemory {
            config,
            addresses: exposed.map(|exposed| exposed.addresses),
            firehose,
            notices_unmapping,
            pinner,
            transfers,
            flights,
            rejected,
            stats_trace: StatsTrace::default(),
        })
    }
}
