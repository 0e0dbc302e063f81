//! Segments: how large they may be, and where they are.
//!
//! Found by `gasnet_init`, mapped by `gasnet_attach`; `address` resolves addresses in them.
//! Invariants: a [`RemoteRange`] that is made here lies in the segment of its rank; a value of
//! [`Segments`] does not change.
//!
//! A client of GASNet-EX may bind memory of its own instead (`gex_EP_BindSegment`). Such a segment
//! is mapped in its owner only, and known to those ranks to which it was published.
//!
//! In EVERYTHING there are no segments: that of each rank stands for its address space. Otherwise
//! all segments of a host lie in one memory file, one slot for each local rank. The stride of
//! the slots is the size of the largest segment of the host, rounded up to a page. A process
//! maps the file when it attaches. Pages are zeroed on demand: none is touched here.
//!
//! A process places the file so that its own slot is at the address that all ranks agree on:
//!
//! ```text
//!   address     ... A-2s      A-s       A         A+s       A+2s ...
//!   rank 0                              slot 0    slot 1    slot 2
//!   rank 1                    slot 0    slot 1    slot 2
//!   rank 2          slot 0    slot 1    slot 2
//! ```

use super::client::SegmentMode;
use crate::boot::bootstrap::Bootstrap;
use crate::boot::placement::Placement;
use crate::client_memory::{AddressSpace, Dst, RemoteRange};
use crate::rank::{ByJobRank, ByLocalRank, JobRank, LocalRank};
use crate::report;
use std::os::fd::{AsFd, BorrowedFd};
use sys::limits;
use sys::memory::{self, Mapping};

/// The size and the first address of each segment are multiples of this number of bytes. It is
/// `GASNET_PAGESIZE` of include/gasnet_config.h, the largest page that Linux has on the machine.
pub const PAGE: usize =
    if cfg!(any(target_arch = "x86", target_arch = "x86_64")) { 4096 } else { 65536 };

/// The segment of one process.
#[derive(Clone, Copy, Debug)]
pub struct Segment {
    /// Address of the first byte, of its owner.
    base: usize,
    /// All of it; mapped where this process may use plain memory operations.
    range: RemoteRange,
}

impl Segment {
    /// One of which nothing is touched: at address `base` of its owner, mapped at `here` unless
    /// that is 0.
    #[cfg(test)]
    pub(crate) fn for_test(base: usize, len: usize, here: usize) -> Segment {
        let rank = JobRank(0);
        // SAFETY: nothing is touched.
        let mapped = unsafe { Dst::new(core::ptr::without_provenance_mut(here), len) };
        let range = match here {
            0 => RemoteRange::unmapped(rank, 0, len),
            _ => RemoteRange::mapped_at(rank, 0, mapped),
        };
        Segment { base, range }
    }

    /// One of which this process knows nothing.
    fn unknown(rank: JobRank) -> Segment {
        Segment { base: 0, range: RemoteRange::unmapped(rank, 0, 0) }
    }

    /// Whether this process knows where it is.
    pub fn is_known(&self) -> bool {
        self.base != 0
    }

    /// Address of the first byte, of its owner.
    pub fn base(&self) -> *mut u8 {
        core::ptr::with_exposed_provenance_mut(self.base)
    }

    /// Bytes.
    #[allow(clippy::len_without_is_empty, reason = "a segment may have no bytes")]
    pub fn len(&self) -> usize {
        self.range.len()
    }

    /// The `n` bytes at `addr` (an address of the owner), if they lie within.
    #[inline(always)]
    pub fn resolve(&self, addr: *const u8, n: usize) -> Option<RemoteRange> {
        self.range.try_part(addr.addr().wrapping_sub(self.base), n)
    }

    /// Whether this process may use plain memory operations on the segment.
    pub fn is_mapped(&self) -> bool {
        self.mapped().is_some()
    }

    /// What leads from an address of the owner to the same byte here, by wrapping addition, if
    /// the segment is mapped.
    pub fn distance(&self) -> Option<usize> {
        self.mapped().map(|here| here.as_ptr().addr().wrapping_sub(self.base))
    }

    /// The segment as this process addresses it, if it is mapped.
    pub fn mapped(&self) -> Option<Dst<'static>> {
        self.range.mapped()
    }
}

/// A segment that its rank has bound and made known: address there, and bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublishedSegment {
    /// Address of the first byte, of its owner; not 0.
    pub base: u64,
    /// Bytes.
    pub len: u64,
}

/// All segments of the job, by rank.
#[derive(Clone, Debug)]
pub struct Segments {
    table: ByJobRank<Segment>,
    /// That of this process, if one is bound.
    own: Option<Dst<'static>>,
    /// Whether all ranks have attached them together.
    attached: bool,
    /// The segments of this host, those of all its processes one after the other.
    host: Dst<'static>,
    /// What the client was compiled for.
    mode: SegmentMode,
}

/// What `gasnet_getSegmentInfo` reports of a rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentInfo {
    /// Address of the first byte, of its owner.
    pub base: *mut u8,
    /// Bytes.
    pub len: usize,
}

impl Segments {
    /// Those of EVERYTHING, where each rank exposes its address space.
    fn address_spaces(placement: &Placement) -> Segments {
        let (me, ranks) = (placement.rank(), (0..placement.size()).map(JobRank));
        let table = ranks.map(|rank| Segment {
            base: AddressSpace::FIRST,
            range: AddressSpace::of(rank, rank == me),
        });
        let (own, host) = (Some(AddressSpace::here()), Dst::empty());
        let (attached, mode) = (true, SegmentMode::Everything);
        Segments { table: table.collect(), own, attached, host, mode }
    }

    /// Those of `ranks` ranks, of which this process knows nothing.
    pub(super) fn none(ranks: u32) -> Segments {
        Segments {
            table: (0..ranks).map(|rank| Segment::unknown(JobRank(rank))).collect(),
            own: None,
            attached: false,
            host: Dst::empty(),
            mode: SegmentMode::Fast,
        }
    }

    /// These, with memory that this process, `me`, has bound.
    pub(super) fn with_own(&self, me: JobRank, own: Dst<'static>) -> Segments {
        let mut all = self.clone();
        let base = own.as_ptr().expose_provenance();
        all.table[me] = Segment { base, range: RemoteRange::mapped_at(me, 0, own) };
        all.own = Some(own);
        all
    }

    /// These, with segments of other ranks.
    pub(super) fn with_published(
        mut self,
        published: impl Iterator<Item = (JobRank, PublishedSegment)>,
    ) -> Segments {
        for (rank, PublishedSegment { base, len }) in published {
            let range = RemoteRange::unmapped(rank, 0, len as usize);
            self.table[rank] = Segment { base: base as usize, range };
        }
        self
    }

    /// Whether all ranks have attached them together.
    pub fn are_attached(&self) -> bool {
        self.attached
    }

    /// Whether each rank exposes its address space, and not a segment.
    pub fn is_everything(&self) -> bool {
        self.mode == SegmentMode::Everything
    }

    /// Whether the segments of all ranks start at the same address, each as its owner sees it.
    pub fn at_one_address(&self) -> bool {
        is_one_address(self.table.iter().map(|segment| segment.base))
    }

    /// What is reported of the segment of a rank.
    pub fn info(&self, rank: JobRank) -> SegmentInfo {
        let s = &self[rank];
        match self.is_everything() {
            true => SegmentInfo { base: core::ptr::null_mut(), len: usize::MAX },
            false => SegmentInfo { base: s.base(), len: s.len() },
        }
    }

    /// The segment of this process; in EVERYTHING, its address space. No bytes if none is bound.
    pub fn own(&self) -> Dst<'static> {
        self.own.unwrap_or(Dst::empty())
    }

    /// The segment of this process, if one is bound.
    pub fn bound(&self) -> Option<Dst<'static>> {
        self.own
    }

    /// First byte and length of the mapping that holds the segments of this host.
    pub fn mapped(&self) -> (*mut u8, usize) {
        (self.host.as_ptr(), self.host.len())
    }
}

impl core::ops::Index<JobRank> for Segments {
    type Output = Segment;
    #[inline(always)]
    fn index(&self, rank: JobRank) -> &Segment {
        &self.table[rank]
    }
}

/// How large segments may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentLimits {
    /// `gasnet_getMaxLocalSegmentSize`, in bytes.
    pub local: usize,
    /// `gasnet_getMaxGlobalSegmentSize`, in bytes.
    pub global: usize,
    /// What bounds `local`, for a user that wants more.
    pub bounded_by: &'static str,
}

impl SegmentLimits {
    /// The share of this process in what this host has, less `network` bytes for the network's
    /// buffers. Limits of the process make it smaller, and so does `bound` (bytes), which the user
    /// or the client sets. `registered` is what the segments of this host may have together, if
    /// the network registers them. In LARGE memory does not count, in EVERYTHING nothing.
    /// Collective.
    pub fn find(
        boot: &Bootstrap,
        mode: SegmentMode,
        network: usize,
        registered: Option<u64>,
        bound: Option<u64>,
    ) -> SegmentLimits {
        let Bootstrap { placement, exchange, .. } = boot;
        let total = match mode {
            SegmentMode::Fast => memory::free_without(network as u64, file_of(boot)),
            SegmentMode::Large | SegmentMode::Everything => Some(memory::address_space() / 2),
        };
        let most = [
            (total, if mode == SegmentMode::Fast { MEMORY } else { ADDRESSES }),
            (memory::address_space_left(), "the address space of this process (ulimit -v)"),
            (limits::file_size(), "the largest file of this process (ulimit -f)"),
            (registered, "GASNET_PHYSMEM_MAX"),
        ];
        let (local, bounded_by) = largest(most, placement.local_size(), bound);
        let records = exchange.exchange(&local.to_ne_bytes());
        if mode == SegmentMode::Everything {
            return SegmentLimits { local: usize::MAX, global: usize::MAX, bounded_by };
        }
        let global = records.iter().map(|b| word(b, 0)).min().unwrap_or(local);
        SegmentLimits { local: local as usize, global: global as usize, bounded_by }
    }
}

/// The largest segment of each of `ranks` that share the least of `most`, within `bound`; what
/// bounds it. Where the system says nothing of the first of them, `bound` alone counts.
fn largest(
    most: [(Option<u64>, &'static str); 4],
    ranks: u32,
    bound: Option<u64>,
) -> (u64, &'static str) {
    let is_known = most[0].0.is_some();
    let least = most.into_iter().filter_map(|(bytes, cause)| Some((bytes?, cause)));
    let least = least.min_by_key(|(bytes, _)| *bytes);
    // An eighth stays for everything that is not a segment.
    let (share, cause) = least
        .map_or((u64::MAX, ""), |(bytes, cause)| (bytes / 8 * 7 / u64::from(ranks.max(1)), cause));
    let bound = bound.map(|bytes| (bytes, BOUND));
    let bound = bound.or((!is_known).then_some((UNKNOWN, UNKNOWN_MEMORY)));
    let (bytes, cause) = bound.filter(|(bytes, _)| *bytes <= share).unwrap_or((share, cause));
    let page = PAGE as u64;
    (bytes.max(page) / page * page, cause)
}

/// The largest segment, in bytes, where neither the system says how much memory there is nor the
/// user how much a segment may have.
const UNKNOWN: u64 = 100 << 20;
const UNKNOWN_MEMORY: &str =
    "that the system does not say how much memory it has (GASNET_MAX_SEGSIZE replaces it)";
const BOUND: &str = "GASNET_MAX_SEGSIZE, or the program's gasnet_max_segsize";

/// What bounds segments in FAST, and in LARGE.
const MEMORY: &str = "the memory of this host";
const ADDRESSES: &str = "the address space of a process";

/// Ends the job if its ranks were compiled for different modes, whose starts differ. Collective.
/// `function` names the caller in messages.
pub fn agree_on_mode(function: &str, boot: &Bootstrap, mode: SegmentMode) {
    let modes = boot.exchange.exchange(&(mode as u64).to_ne_bytes());
    let other = modes.ranked().find(|(_, other)| word(other, 0) != mode as u64);
    let Some((other, _)) = other else { return };
    report::fatal(
        format_args!(
            "{function}(): this rank was compiled for GASNET_SEGMENT_{}, but rank {other} was not",
            mode.name()
        ),
        format_args!("Compile the programs of all ranks for the same segment mode."),
    );
}

/// A word of an exchanged record.
fn word(record: &[u8], i: usize) -> u64 {
    u64::from_ne_bytes(record[i * 8..i * 8 + 8].try_into().unwrap_or_default())
}

/// The file of the segments of this host, if its ranks can share memory.
pub fn file_of(boot: &Bootstrap) -> Option<BorrowedFd<'_>> {
    boot.host_memory.as_ref().map(|m| m.segments.as_fd())
}

/// Bytes below the lowest address of a segment, at which all segments are tried in turn. The
/// kernel maps downwards, so what is below a rank's own segment is free in nearly all cases.
/// Libraries of a rank may lie there if the segments are small.
const BELOW: [usize; 3] = [0, 64 << 20, 512 << 20];

/// Whether all are equal.
fn is_one_address<T: PartialEq>(mut addresses: impl Iterator<Item = T>) -> bool {
    let first = addresses.next();
    addresses.all(|address| Some(address) == first)
}

/// Bytes of the longest segment of this host. Ranks of other hosts may have longer ones than this
/// host could map as often as it has ranks.
fn longest_here(placement: &Placement, len_of: impl Fn(JobRank) -> usize) -> usize {
    let here = (0..placement.local_size()).filter_map(|r| placement.job_rank(LocalRank(r)));
    here.map(len_of).max().unwrap_or(0)
}

/// What [`attach`] made.
#[derive(Debug)]
pub struct AttachedSegments {
    /// All segments.
    pub segments: Segments,
    /// Where the segment of each rank of this host is mapped here, if it is.
    pub locals: ByLocalRank<Option<Dst<'static>>>,
}

/// Maps the segments of this host, our own one of `len` bytes (a multiple of the page size)
/// among them. Each starts at a multiple of `align` bytes, a power of two. With `huge`, in huge
/// pages where the kernel allows it, of which none holds parts of two segments. Without host
/// memory the own segment alone is mapped, in private memory. The own segment has the same
/// address in all ranks, if they have a common range of addresses that is free
/// ([`Segments::at_one_address`]). In EVERYTHING nothing is mapped. Collective.
///
/// # Errors
/// What the operating system said, if it refused the mapping.
pub fn attach(
    boot: &Bootstrap,
    mode: SegmentMode,
    len: usize,
    align: usize,
    huge: bool,
) -> std::io::Result<AttachedSegments> {
    let Bootstrap { placement, exchange, .. } = boot;
    if mode == SegmentMode::Everything {
        let none = (0..placement.local_size()).map(|_| None).collect();
        return Ok(AttachedSegments {
            segments: Segments::address_spaces(placement),
            locals: none,
        });
    }
    let lens = exchange.exchange(&len.to_ne_bytes());
    // All ranks agree on it, since they agree on addresses.
    let huge = huge && lens.iter().any(|b| word(b, 0) >= memory::HUGE_PAGE as u64);
    let align = align.max(PAGE);
    let huge_align = align.max(memory::HUGE_PAGE);
    let stride = longest_here(placement, |rank| word(&lens[rank], 0) as usize);
    let stride = stride.max(1).next_multiple_of(if huge { huge_align } else { align });
    let file = file_of(boot);
    let (own_slot, slots) = match file {
        Some(_) => (placement.local_rank(), placement.local_size()),
        None => (LocalRank(0), 1),
    };
    let bytes = slots as usize * stride;
    if let Some(file) = file {
        memory::set_len(file, bytes as u64)?;
    }
    let map = |align| match file {
        Some(file) => Mapping::shared_aligned(file, 0, bytes, align),
        None => Mapping::anonymous_aligned(bytes, align),
    };
    let anywhere = || match huge {
        true => map(huge_align).or_else(|_| map(align)),
        false => map(align),
    };
    // With the own segment at this address.
    let own_at = |at: usize| {
        let at = at.checked_sub(own_slot.index() * stride).filter(|&at| at != 0)?;
        match file {
            Some(file) => Mapping::shared_at(file, 0, bytes, at).ok(),
            None => Mapping::anonymous_at(bytes, at).ok(),
        }
    };
    let exchange_base = |mapping: &Mapping| {
        let own = mapping.as_ptr().expose_provenance() + own_slot.index() * stride;
        exchange.exchange(&[own as u64, len as u64].map(u64::to_ne_bytes).concat())
    };
    let mut mapping = anywhere()?;
    let mut records = exchange_base(&mapping);
    let lowest = records.iter().map(|b| word(b, 0)).min().unwrap_or(0) as usize;
    for below in BELOW {
        if is_one_address(records.iter().map(|b| word(b, 0))) {
            break;
        }
        drop(mapping);
        mapping = match lowest.checked_sub(below).and_then(own_at) {
            Some(mapping) => mapping,
            None => anywhere()?,
        };
        records = exchange_base(&mapping);
    }
    if huge {
        mapping.prefer_huge_pages();
    }
    let host = Dst::from(mapping.leak_words());
    let slot = |of: LocalRank, len| host.part(of.index() * stride, len);
    let own = slot(own_slot, len);
    // The segment of a rank of this host, where it is mapped.
    let here = |rank: LocalRank, len| match file {
        Some(_) => Some(slot(rank, len)),
        None => (rank == placement.local_rank()).then_some(own),
    };
    let len_of = |rank: JobRank| word(&records[rank], 1) as usize;
    let table = records.ranked().map(|(rank, b)| {
        let local = placement.local_rank_of(rank).filter(|_| placement.shares_memory(rank));
        let range = match local.and_then(|local| here(local, len_of(rank))) {
            Some(mapped) => RemoteRange::mapped_at(rank, 0, mapped),
            None => RemoteRange::unmapped(rank, 0, len_of(rank)),
        };
        Segment { base: word(b, 0) as usize, range }
    });
    let table = table.collect();
    let mapped = |local| here(local, placement.job_rank(local).map_or(0, len_of));
    let locals = (0..placement.local_size()).map(LocalRank).map(mapped).collect();
    let segments = Segments { table, own: Some(own), attached: true, host, mode };
    Ok(AttachedSegments { segments, locals })
}

#[cfg(test)]
mod tests {
    use super::*;

    const GB: u64 = 1 << 30;

    fn most(memory: Option<u64>, file: Option<u64>) -> [(Option<u64>, &'static str); 4] {
        [(memory, MEMORY), (None, "address space"), (file, "file"), (None, "registered")]
    }

    #[test]
    fn segments_share_memory_within_the_bound() {
        assert_eq!(largest(most(Some(8 * GB), None), 2, None), (7 * GB / 2, MEMORY));
        assert_eq!(largest(most(Some(8 * GB), Some(GB)), 1, None), (GB / 8 * 7, "file"));
        assert_eq!(largest(most(Some(8 * GB), None), 1, Some(GB)), (GB, BOUND));
        assert_eq!(largest(most(Some(8 * GB), None), 1, Some(9 * GB)), (7 * GB, MEMORY));
    }

    #[test]
    fn of_unknown_memory_segments_may_have_what_the_user_says() {
        assert_eq!(largest(most(None, None), 2, None), (UNKNOWN, UNKNOWN_MEMORY));
        assert_eq!(largest(most(None, None), 2, Some(3 * GB)), (3 * GB, BOUND));
        assert_eq!(largest(most(None, Some(GB)), 1, Some(3 * GB)), (GB / 8 * 7, "file"));
        assert_eq!(largest(most(None, None), 2, Some(0)).0, PAGE as u64);
    }
}
