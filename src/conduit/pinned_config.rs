//! How much memory a rank may register, from the environment and from what the system has.
//!
//! Read by `Config`. Invariants: all ranks of a host together register no more than
//! GASNET_PHYSMEM_MAX; limits that cannot hold end the process with the least that works.

use super::firehose::policy::{FirehoseLimits, FirehoseMisfit};
use crate::{env, report};
use alloc::format;
use core::ops::Range;
use sys::byte_count::ByteCount;
use sys::limits::page_size;
use sys::memory::{self, LockedPages, Mapping};

/// What is registered when a put or get uses it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RegisteredOnDemand {
    /// Local sides of operations; segments are registered whole.
    LocalSides,
    /// Segments too.
    Segments,
    /// All memory of each rank, which its peers may name.
    AllMemory,
}

/// How memory that is not registered is put to and gotten from.
#[derive(Clone, Debug)]
pub struct PinnedConfig {
    /// The regions of each rank; `None`: all data travel in active messages.
    pub(super) firehose: Option<FirehoseLimits>,
    pub(super) on_demand: RegisteredOnDemand,
    /// Whether gets read registered memory; otherwise its owner sends the data.
    pub(super) rdma_gets: bool,
    /// Largest put that travels with the request to register its destination, in bytes.
    pub(super) put_in_move: usize,
    /// Whether the statistics count hits, which then cost more.
    pub(super) count_hits: bool,
    /// The portal table entries that share the match entries of regions.
    pub(super) lists: Range<u32>,
    /// Whether there would be more regions if a process could have more mappings.
    pub(super) bound_by_mappings: bool,
    /// What this rank may register, in bytes, and what bounds it.
    share: (u64, &'static str),
}

/// Blocks of a segment that is registered with the network of other hosts, by default. The first
/// access to each costs a frame.
const BLOCK: usize = 4 << 20;
/// Largest region by default.
const REGION: usize = 128 << 10;
/// Most regions of peers that a rank holds.
const MOST_HELD: u32 = 1 << 16;
/// Largest limit of locked memory that is tried.
const TRIED: u64 = 64 << 20;

/// In which blocks a segment is registered with the network of other hosts.
#[derive(Clone, Copy, Debug)]
pub struct SegmentBlocks {
    /// Bytes of a block.
    pub bytes: usize,
    /// Most blocks. Each is registered when a peer first accesses it.
    pub most: usize,
}

impl SegmentBlocks {
    /// The segment as one block, registered at once.
    pub const WHOLE: SegmentBlocks = SegmentBlocks { bytes: usize::MAX, most: 1 };

    /// For a segment that is registered when it is accessed, of one of the `host_ranks` ranks of
    /// this host: as far as the rank may.
    pub fn on_demand(host_ranks: u32) -> SegmentBlocks {
        let largest = env::FIREHOSE_MAXREGION_SIZE.get().unwrap_or(BLOCK).max(page_size());
        let (bytes, (share, _)) = (1 << largest.ilog2(), share(host_ranks));
        SegmentBlocks { bytes, most: (share / bytes as u64).max(1) as usize }
    }
}

impl PinnedConfig {
    /// Portal table entries for regions, so that no list is long; fewer in a small table.
    pub(super) const LISTS: u32 = 64;

    /// For a job of `ranks` ranks, of which `host_ranks` share this host. `most` regions for
    /// peers, and for a rank itself, unless the user says how many; `room` for both together.
    /// `behind`: the last portal table entry that is not for regions. `least_of_host`: see
    /// [`super::Config::register_on_demand`].
    pub(super) fn from_env(
        on_demand: RegisteredOnDemand,
        (ranks, host_ranks): (u32, u32),
        (most, room): (u32, u32),
        behind: u32,
        least_of_host: impl FnOnce(u64) -> u64,
    ) -> Self {
        let (own, bound) = share(host_ranks);
        let share = match least_of_host(own) {
            least if least < own => (least, LOCKED_ELSEWHERE),
            _ => (own, bound),
        };
        let (firehose, bound_by_mappings) = env::USE_FIREHOSE
            .get()
            .then(|| regions(ranks, host_ranks, share, (most, room)))
            .unzip();
        PinnedConfig {
            firehose,
            bound_by_mappings: bound_by_mappings.unwrap_or(false),
            on_demand,
            rdma_gets: env::RDMA_GETS.get(),
            put_in_move: env::PUTINMOVE_LIMIT.get(),
            count_hits: env::FIREHOSE_VERBOSE.get()
                || env::STATSFILE.get().is_some()
                || env::TRACEFILE.get().is_some(),
            lists: behind + 1..behind + 1 + Self::LISTS,
            share,
        }
    }

    /// The same with regions of this size, no larger than before.
    pub(super) fn with_regions_of(mut self, bytes: usize) -> Self {
        if let Some(limits) = &mut self.firehose {
            limits.region_bytes = bytes.min(limits.region_bytes);
        }
        self
    }

    /// Whether puts and gets name memory of their targets that is registered on demand.
    pub(super) fn targets_regions(&self) -> bool {
        self.on_demand != RegisteredOnDemand::LocalSides
    }

    /// How many bytes a rank whose segment is registered may register for single operations, and
    /// what bounds that: its share, less the regions of its own.
    pub(super) fn for_operations(&self) -> (u64, &'static str) {
        let (share, bound) = self.share;
        let own = self.firehose.map_or(0, |l| u64::from(l.max_victim) * l.region_bytes as u64);
        (share.saturating_sub(own), bound)
    }

    /// Places the lists in a portal table that ends at `last`: behind the entries `segment` and
    /// `behind`, or in place of `segment`, which has no descriptors if it is registered on demand.
    /// Their number is a power of two.
    #[cfg(feature = "libportals")]
    pub(super) fn place_lists(&mut self, segment: u32, behind: u32, last: u32) {
        self.lists = match last <= behind {
            true => segment..segment + 1,
            false => {
                let fit = (last - behind).min(Self::LISTS);
                behind + 1..behind + 1 + (1 << fit.ilog2())
            }
        };
    }

    /// The portal table entry whose list has the match entry of a region: that of its slot, the
    /// low 16 bits of its name.
    #[inline]
    pub(super) fn list_of(&self, name: u64) -> u32 {
        self.lists.start + (u32::from(name as u16) & (self.lists.len() as u32 - 1))
    }

    /// Regions of a rank.
    pub(super) fn slots(&self) -> usize {
        self.firehose.map_or(0, |limits| limits.slots() as usize)
    }
}

/// The limit of the system on what one process may lock; that of another rank.
const LOCKED: &str = "ulimit -l";
const LOCKED_ELSEWHERE: &str = "ulimit -l of another rank of this host";

/// What the ranks of a host may register together, in bytes, if the system does not say how much
/// memory it has.
const UNKNOWN: u64 = 100 << 20;

/// What one rank may register, in bytes, and what bounds it.
fn share(host_ranks: u32) -> (u64, &'static str) {
    let (host, mut bound) = match env::PHYSMEM_MAX.get() {
        Some(bytes) => (bytes as u64, "GASNET_PHYSMEM_MAX"),
        None if memory::total() == 0 => (UNKNOWN, "GASNET_PHYSMEM_MAX is not set"),
        None => {
            let ratio = env::PHYSMEM_PINNABLE_RATIO.get();
            ((memory::total() as f64 * ratio) as u64, "GASNET_PHYSMEM_PINNABLE_RATIO")
        }
    };
    let mut bytes = host / u64::from(host_ranks.max(1));
    let trusted = env::PHYSMEM_NOPROBE.get() && env::PHYSMEM_MAX.get().is_some();
    if let Some(limit) = sys::limits::locked_memory().filter(|&limit| limit < bytes)
        && !trusted
        && !exceeds(limit)
    {
        (bytes, bound) = (limit, LOCKED);
    }
    (bytes, bound)
}

/// Whether this process may lock more than a limit.
fn exceeds(limit: u64) -> bool {
    let bytes = limit as usize + page_size();
    if limit > TRIED {
        return false;
    }
    let Ok(mapping) = Mapping::anonymous(bytes) else { return false };
    let (mut pages, start) = (LockedPages::new(), mapping.base().addr().get());
    let may = pages.lock(start, bytes).is_ok();
    if may {
        pages.unlock(start, bytes);
    }
    may
}

/// The regions of a rank, within its share, and whether a process can have too few mappings for
/// more.
fn regions(
    ranks: u32,
    host_ranks: u32,
    (share, bound): (u64, &'static str),
    (most, room): (u32, u32),
) -> (FirehoseLimits, bool) {
    let (page, peers) = (page_size(), u64::from(ranks.max(2) - 1));
    let wanted_bytes =
        env::FIREHOSE_MAXREGION_SIZE.get().map(|bytes| 1 << bytes.max(page).ilog2());
    let region = wanted_bytes.unwrap_or(page as u64);
    let least = (peers + 1) * region;
    if share < least {
        let of_rank = [LOCKED, LOCKED_ELSEWHERE].contains(&bound);
        report::fatal(
            format_args!(
                "{} of registered memory for each rank ({bound}) are less than one {} for each \
                 of {peers} peers and one of its own",
                ByteCount(share),
                match wanted_bytes {
                    Some(bytes) => format!("region of {}", ByteCount(bytes)),
                    None => "page".into(),
                }
            ),
            format_args!(
                "Allow {} at least {}, or {}.",
                ByteCount(if of_rank { least } else { least * u64::from(host_ranks.max(1)) }),
                if of_rank { "for each rank" } else { "on each host" },
                match wanted_bytes {
                    Some(_) => "lower GASNET_FIREHOSE_MAXREGION_SIZE",
                    None => "set GASNET_USE_FIREHOSE=0",
                }
            ),
        );
    }
    let of_user =
        [env::FIREHOSE_M.get(), env::FIREHOSE_MAXVICTIM_M.get()].map(|m| m.map(|m| m as u64));
    let [for_peers, victims] =
        divide(share, peers, region, of_user).unwrap_or_else(|e| e.refuse(share, bound));
    let fitting = (for_peers / peers).min(victims).min(REGION as u64).max(page as u64);
    let region_bytes = wanted_bytes.unwrap_or(1 << fitting.ilog2()) as usize;
    let fitting = [for_peers, victims].map(|bytes| bytes / region_bytes as u64);
    let wanted = [env::FIREHOSE_R.get(), env::FIREHOSE_MAXVICTIM_R.get()];
    let is_set = [0, 1].map(|i| of_user[i].is_some() || wanted[i].is_some());
    let mappings = memory::most_mappings();
    let mappable = mappings.map_or(u32::MAX, mappable);
    let bounds = RegionBounds { most, room, mappable, peers: peers as u32 };
    let counted = counts(fitting, wanted, is_set, bounds);
    let unbounded = RegionBounds { mappable: u32::MAX, ..bounds };
    let bound_by_mappings = counted != counts(fitting, wanted, is_set, unbounded);
    let [m, max_victim] = counted.unwrap_or_else(|[m, victims]| {
        report::fatal(
            format_args!(
                "GASNET_FIREHOSE_R and GASNET_FIREHOSE_MAXVICTIM_R let a rank have {m} and \
                 {victims} regions of {}, more than the {room} that it can name",
                ByteCount(region_bytes as u64)
            ),
            format_args!("Lower them, or raise GASNET_FIREHOSE_MAXREGION_SIZE."),
        )
    });
    if m + max_victim > mappable && is_set != [false, false] && report::rank() == Some(0) {
        let regions = m + max_victim;
        report::warn(
            format_args!(
                "the variables GASNET_FIREHOSE_* let a rank have {regions} regions, which may take \
                 {} mappings; its system allows a process {} (vm.max_map_count)",
                u64::from(regions) * MAPPINGS,
                mappings.unwrap_or(usize::MAX)
            ),
            format_args!(
                "Lower GASNET_FIREHOSE_R and GASNET_FIREHOSE_MAXVICTIM_R, which count regions, or \
                 raise the sysctl vm.max_map_count."
            ),
        );
    }
    let limits =
        FirehoseLimits { region_bytes, ranks: ranks.max(2), m, max_victim, table: 0, lend: true };
    let table = limits.m.saturating_mul(limits.peers()).clamp(limits.peers(), MOST_HELD);
    let limits = FirehoseLimits { table, ..limits };
    let limits = limits.check().unwrap_or_else(|misfit| refuse(limits, misfit, bound));
    (limits, bound_by_mappings)
}

/// Why what the user set cannot be divided, and what works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Indivisible {
    /// GASNET_FIREHOSE_M alone leaves the rank no region of this size; at most this much should be
    /// for peers.
    NoneForOwn { m: u64, region: u64, most: u64 },
    /// GASNET_FIREHOSE_MAXVICTIM_M alone leaves not each of the peers such a region.
    NoneForPeers { victims: u64, peers: u64, region: u64, most: u64 },
    /// Both together are more than there is.
    Sum { m: u64, victims: u64 },
}

/// The bytes for peers and for the rank itself, of its share, which has one region for each: what
/// the user set, or 3/4 and the rest.
fn divide(
    share: u64,
    peers: u64,
    region: u64,
    of_user: [Option<u64>; 2],
) -> Result<[u64; 2], Indivisible> {
    let default_m = (share / 4 * 3).max(peers * region).min(share - region);
    let [m, victims] = match of_user {
        [None, None] => [default_m, share - default_m],
        [Some(m), None] if m > share - region => {
            let most = default_m / region * region;
            return Err(Indivisible::NoneForOwn { m, region, most });
        }
        [Some(m), None] => [m, share - m],
        [None, Some(victims)] if victims > share - peers * region => {
            let most = (share - default_m) / region * region;
            return Err(Indivisible::NoneForPeers { victims, peers, region, most });
        }
        [None, Some(victims)] => {
            [(share / 4 * 3).max(peers * region).min(share - victims), victims]
        }
        [Some(m), Some(victims)] => [m, victims],
    };
    match m.saturating_add(victims) > share {
        true => Err(Indivisible::Sum { m, victims }),
        false => Ok([m, victims]),
    }
}

impl Indivisible {
    /// Ends the process.
    fn refuse(self, share: u64, bound: &str) -> ! {
        let all = ByteCount(share);
        match self {
            Indivisible::NoneForOwn { m, region, most } => report::fatal(
                format_args!(
                    "GASNET_FIREHOSE_M ({}) leaves a rank no region of {} for its own transfers, \
                     of the {all} that it may register ({bound})",
                    ByteCount(m),
                    ByteCount(region)
                ),
                format_args!("Lower GASNET_FIREHOSE_M to {}, or raise {bound}.", ByteCount(most)),
            ),
            Indivisible::NoneForPeers { victims, peers, region, most } => report::fatal(
                format_args!(
                    "GASNET_FIREHOSE_MAXVICTIM_M ({}) does not leave a region of {} for each of \
                     {peers} peers, of the {all} that a rank may register ({bound})",
                    ByteCount(victims),
                    ByteCount(region)
                ),
                format_args!(
                    "Lower GASNET_FIREHOSE_MAXVICTIM_M to {}, or raise {bound}.",
                    ByteCount(most)
                ),
            ),
            Indivisible::Sum { m, victims } => report::fatal(
                format_args!(
                    "GASNET_FIREHOSE_M ({}) and GASNET_FIREHOSE_MAXVICTIM_M ({}) together exceed \
                     the {all} that a rank may register ({bound})",
                    ByteCount(m),
                    ByteCount(victims)
                ),
                format_args!("Lower them to {all} together, or raise {bound}."),
            ),
        }
    }
}

/// Mappings that a region may take: it splits the one that it lies in at both ends.
const MAPPINGS: u64 = 2;
/// By default regions take this part of what a process may have.
const MAPPINGS_PART: u64 = 2;

/// How many regions may take their part of this number of mappings.
fn mappable(mappings: usize) -> u32 {
    u32::try_from(mappings as u64 / MAPPINGS / MAPPINGS_PART).unwrap_or(u32::MAX)
}

/// What bounds the numbers of regions.
#[derive(Clone, Copy, Debug)]
struct RegionBounds {
    /// Those of peers, and those of the rank itself, unless the user says how many.
    most: u32,
    /// Both together.
    room: u32,
    /// Both together, unless the user has set what they follow from.
    mappable: u32,
    /// Each peer needs one.
    peers: u32,
}

/// Regions of its own that a rank has though there may be too few mappings.
const LEAST_OWN: u32 = 64;

/// How many regions peers and the rank itself may have, of those that fit into memory: what the
/// user `wanted`, or up to the bounds. `is_set`: the user has set that number, or the bytes.
///
/// # Errors
/// What the user wanted exceeds the room.
fn counts(
    fitting: [u64; 2],
    wanted: [Option<u32>; 2],
    is_set: [bool; 2],
    RegionBounds { most, room, mappable, peers }: RegionBounds,
) -> Result<[u32; 2], [u32; 2]> {
    let within = |fitting: u64, bound: u32| fitting.min(bound.into()) as u32;
    let of_user = [0, 1].map(|i| wanted[i].map(|wanted| within(fitting[i], wanted)));
    let bound = |i: usize| if is_set[i] { u32::MAX } else { mappable };
    let left = of_user[1].map_or(room / 2, |victims| room.saturating_sub(victims));
    let left = left.min((bound(0) / 2).max(peers));
    let m = of_user[0].unwrap_or(within(fitting[0], most.min(left)));
    let left = room.saturating_sub(m).min(bound(1).saturating_sub(m).max(LEAST_OWN));
    let max_victim = of_user[1].unwrap_or(within(fitting[1], most.min(left)));
    // Each of the two needs some.
    let fits = m < room && max_victim < room && m + max_victim <= room;
    if fits { Ok([m, max_victim]) } else { Err([m, max_victim]) }
}

/// Ends the process: limits cannot hold.
fn refuse(limits: FirehoseLimits, what: FirehoseMisfit, bound: &str) -> ! {
    let region = limits.region_bytes as u64;
    let bytes = |regions: u32| ByteCount(u64::from(regions) * region);
    match what {
        FirehoseMisfit::M(least) => report::fatal(
            format_args!(
                "the {} regions of {} that peers may register (GASNET_FIREHOSE_M, \
                 GASNET_FIREHOSE_R) are fewer than the {least} other ranks",
                limits.m,
                ByteCount(region)
            ),
            format_args!(
                "Give GASNET_FIREHOSE_M {} at least and GASNET_FIREHOSE_R {least}, or lower \
                 GASNET_FIREHOSE_MAXREGION_SIZE.",
                bytes(least)
            ),
        ),
        FirehoseMisfit::MaxVictim(least) => report::fatal(
            format_args!(
                "GASNET_FIREHOSE_MAXVICTIM_M and GASNET_FIREHOSE_MAXVICTIM_R leave a rank no \
                 region of {} for its own transfers, within {bound}",
                ByteCount(region)
            ),
            format_args!(
                "Give GASNET_FIREHOSE_MAXVICTIM_M {} at least, or lower \
                 GASNET_FIREHOSE_MAXREGION_SIZE.",
                bytes(least)
            ),
        ),
        FirehoseMisfit::Table(_) | FirehoseMisfit::RegionBytes(_) | FirehoseMisfit::TooMany(_) => {
            report::fatal(
                format_args!("registered memory cannot be divided: {what:?}"),
                format_args!("Leave the variables GASNET_FIREHOSE_* unset."),
            )
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn regions_have_names() {
        let mappable = u32::MAX;
        let bounds = RegionBounds { most: 16_384, room: 32_000, mappable, peers: 3 };
        let all = |wanted| counts([1 << 30; 2], wanted, [false; 2], bounds);
        assert_eq!(all([None, None]), Ok([16_000, 16_000]));
        assert_eq!(all([Some(20_000), None]), Ok([20_000, 12_000]));
        assert_eq!(all([None, Some(20_000)]), Ok([12_000, 20_000]));
        assert_eq!(all([Some(30_000), Some(2_000)]), Ok([30_000, 2_000]));
        assert_eq!(all([Some(30_000), Some(2_001)]), Err([30_000, 2_001]));
        assert_eq!(all([Some(40_000), None]), Err([40_000, 0]));
        let bounds = RegionBounds { most: 1024, ..bounds };
        let few = |wanted| counts([70, 3], wanted, [false; 2], bounds);
        assert_eq!((few([None, None]), few([Some(9), Some(9)])), (Ok([70, 3]), Ok([9, 3])));
        assert_eq!(few([Some(1 << 31), Some(1 << 31)]), Ok([70, 3]));
    }

    #[test]
    fn regions_leave_mappings_to_the_program() {
        assert_eq!(mappable(65_530), 16_382);
        let bounds = RegionBounds { most: 16_384, room: 32_000, mappable: 16_382, peers: 3 };
        let all = |wanted, is_set| counts([1 << 30; 2], wanted, is_set, bounds);
        assert_eq!(all([None; 2], [false; 2]), Ok([8_191, 8_191]));
        // What the user sets is not bounded; the rest is.
        assert_eq!(all([None; 2], [true, false]), Ok([16_000, 382]));
        assert_eq!(all([None; 2], [false, true]), Ok([8_191, 16_384]));
        assert_eq!(all([Some(20_000), None], [true, false]), Ok([20_000, LEAST_OWN]));
        assert_eq!(all([None, Some(16_000)], [false, true]), Ok([8_191, 16_000]));
        // Each peer has one.
        let many = RegionBounds { peers: 9_000, ..bounds };
        assert_eq!(counts([1 << 30; 2], [None; 2], [false; 2], many), Ok([9_000, 7_382]));
    }

    #[test]
    fn advice_on_what_is_registered_can_be_followed() {
        let (share, page) = (349_525, 4096);
        assert_eq!(divide(share, 2, page, [None; 2]), Ok([262_143, 87_382]));
        let own = divide(share, 2, page, [Some(2 << 20), None]);
        let Err(Indivisible::NoneForOwn { most, .. }) = own else { panic!("{own:?}") };
        assert_eq!(divide(share, 2, page, [Some(most), None]), Ok([most, share - most]));
        assert!(divide(share, 2, page, [Some(share - page), None]).is_ok());
        let peers = divide(share, 2, page, [None, Some(2 << 20)]);
        let Err(Indivisible::NoneForPeers { most, .. }) = peers else { panic!("{peers:?}") };
        assert_eq!(divide(share, 2, page, [None, Some(most)]), Ok([262_143, most]));
        let both = divide(share, 2, page, [Some(share), Some(1)]);
        assert_eq!(both, Err(Indivisible::Sum { m: share, victims: 1 }));
        // One region for each.
        assert_eq!(divide(3 * page, 2, page, [None; 2]), Ok([2 * page, page]));
    }
}
