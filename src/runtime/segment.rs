//! Segments: how large they may be, where they are, and the one place that resolves an address
//! in them.
//!
//! Called by `job` at attach, and by `capi` and the extended layer for every address of a
//! client. Invariants: a [`RemoteRange`] that is made here lies in the segment of its rank, or
//! in memory of this process; [`Segments`] does not change after attach.
//!
//! All segments of a host lie in one memory file, one slot for each local rank. The stride of
//! the slots is the size of the largest segment of the job, rounded up to a page. A process
//! maps the file when it attaches. Pages are zeroed on demand: none is touched here.

use super::checks;
use super::job::GasnetJob;
use crate::boot::bootstrap::{Bootstrap, Exchange};
use crate::boot::placement::Placement;
use crate::client_memory::{Dst, RemoteRange};
use crate::rank::{ByLocalRank, JobRank, LocalRank};
use crate::report;
use alloc::boxed::Box;
use alloc::vec::Vec;
use std::os::fd::AsFd;
use sys::limits;
use sys::memory::{self, Mapping};

/// Bytes that the size and the first address of each segment are a multiple of:
/// `GASNET_PAGESIZE` of include/gasnet_config.h, the largest page that Linux has on the
/// machine.
pub const PAGE: usize =
    if cfg!(any(target_arch = "x86", target_arch = "x86_64")) { 4096 } else { 65536 };

/// The segment of one process.
#[derive(Clone, Copy, Debug)]
pub struct Segment {
    /// First byte, as its owner addresses it.
    pub base: *mut u8,
    /// Bytes.
    pub len: usize,
    /// First byte as this process addresses it; null where plain memory operations must not be
    /// used.
    local: *mut u8,
}

impl Segment {
    /// Offset of the `n` bytes at `addr` (an address of the owner), if they lie within.
    #[inline]
    pub fn offset(&self, addr: *const u8, n: usize) -> Option<usize> {
        let off = (addr as usize).wrapping_sub(self.base as usize);
        (off <= self.len && n <= self.len - off).then_some(off)
    }

    /// One of which nothing is touched: at address `base` of its owner, mapped at `here` unless
    /// that is 0.
    #[cfg(test)]
    pub(crate) fn for_test(base: usize, len: usize, here: usize) -> Segment {
        let at = core::ptr::without_provenance_mut;
        Segment { base: at(base), len, local: at(here) }
    }

    /// Whether this process may use plain memory operations on the segment.
    #[inline]
    pub fn is_mapped(&self) -> bool {
        !self.local.is_null()
    }

    /// What leads from an address of the owner to the same byte here, by wrapping addition, if
    /// the segment is mapped.
    #[inline]
    pub fn distance(&self) -> Option<usize> {
        self.is_mapped().then(|| self.local.addr().wrapping_sub(self.base.addr()))
    }

    /// The segment as this process addresses it, if it is mapped.
    #[inline]
    pub fn mapped(&self) -> Option<Dst<'static>> {
        // SAFETY: `local` maps all of the segment until the process ends.
        self.is_mapped().then(|| unsafe { Dst::new(self.local, self.len) })
    }
}

/// All segments of the job, by rank.
#[derive(Debug)]
pub struct Segments {
    table: Box<[Segment]>,
    /// The segments of this host, those of all its processes one after the other.
    mapping: Mapping,
}

// SAFETY: the pointers are addresses of a shared mapping that lives as long as this value; what
// may be done through them is the clients' contract with GASNet (concurrent access to segments
// is theirs to order).
unsafe impl Send for Segments {}
// SAFETY: as above; the table itself is never written after construction.
unsafe impl Sync for Segments {}

impl Segments {
    /// The `n` bytes at `addr`, an address of `rank`, if they lie in its segment.
    #[inline(always)]
    pub fn resolve(&self, rank: JobRank, addr: *const u8, n: usize) -> Option<RemoteRange> {
        let segment = &self[rank.0];
        let offset = segment.offset(addr, n)?;
        let mapped = if segment.is_mapped() {
            segment.local.wrapping_add(offset)
        } else {
            core::ptr::null_mut()
        };
        // SAFETY: if not null, `mapped` is where these bytes of the segment are mapped until
        // the process ends.
        Some(unsafe { RemoteRange::new(rank, offset, n, mapped) })
    }

    /// First byte and length of the mapping that holds the segments of this host.
    pub fn mapped(&self) -> (*mut u8, usize) {
        (self.mapping.as_ptr(), self.mapping.len())
    }
}

impl core::ops::Index<u32> for Segments {
    type Output = Segment;
    #[inline]
    fn index(&self, rank: u32) -> &Segment {
        &self.table[rank as usize]
    }
}

/// How large segments may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SegmentLimits {
    /// `gasnet_getMaxLocalSegmentSize`, in bytes.
    pub local: usize,
    /// `gasnet_getMaxGlobalSegmentSize`, in bytes.
    pub global: usize,
}

impl SegmentLimits {
    /// From what this machine has, the processes that share it, what this process may map, and
    /// the bound that the user or the client sets (bytes). Collective.
    pub fn find(
        placement: &Placement,
        exchange: &dyn Exchange,
        bound: Option<u64>,
    ) -> SegmentLimits {
        // An eighth stays for everything that is not a segment.
        let most = [Some(memory::total()), memory::address_space_left(), limits::file_size()];
        let most = most.into_iter().flatten().min().unwrap_or(0);
        let share = most / 8 * 7 / u64::from(placement.local_size().max(1));
        let page = PAGE as u64;
        let local = bound.unwrap_or(share).min(share).max(page) / page * page;
        let all: Vec<u64> = exchange
            .exchange(&local.to_ne_bytes())
            .iter()
            .map(|b| u64::from_ne_bytes(b[..8].try_into().unwrap_or_default()))
            .collect();
        let global = all.iter().copied().min().unwrap_or(local);
        SegmentLimits { local: local as usize, global: global as usize }
    }
}

/// What [`attach`] made.
#[derive(Debug)]
pub struct AttachedSegments {
    /// All segments.
    pub segments: Segments,
    /// Where the segment of each rank of this host is mapped here; null if it is not.
    pub bases: ByLocalRank<*mut u8>,
    /// The lengths of those.
    pub lens: ByLocalRank<usize>,
}

/// Maps the segments of this host, our own one of `len` bytes (a multiple of the page size)
/// among them. With `huge`, in huge pages where the kernel allows it, of which none holds parts
/// of two segments. Without host memory the own segment alone is mapped, in private memory.
/// Collective.
///
/// # Errors
/// What the operating system said, if it refused the mapping.
pub fn attach(boot: &Bootstrap, len: usize, huge: bool) -> std::io::Result<AttachedSegments> {
    let Bootstrap { placement, exchange, .. } = boot;
    let word = |b: &[u8], i: usize| {
        u64::from_ne_bytes(b[i * 8..i * 8 + 8].try_into().unwrap_or_default())
    };
    let lens = exchange.exchange(&len.to_ne_bytes());
    let longest = lens.iter().map(|b| word(b, 0)).max().unwrap_or(0);
    let huge = huge && longest >= memory::HUGE_PAGE as u64;
    let stride =
        (longest as usize).max(1).next_multiple_of(if huge { memory::HUGE_PAGE } else { PAGE });
    let file = boot.host_memory.as_ref().map(|m| m.segments.as_fd());
    let (own, slots) = match file {
        Some(_) => (placement.local_rank().index(), placement.local_size() as usize),
        None => (0, 1),
    };
    if let Some(file) = file {
        memory::set_len(file, (slots * stride) as u64)?;
    }
    let map = |align| match file {
        Some(file) => Mapping::shared_aligned(file, 0, slots * stride, align),
        None => Mapping::anonymous_aligned(stride, align),
    };
    let mapping = if huge { map(memory::HUGE_PAGE).or_else(|_| map(PAGE))? } else { map(PAGE)? };
    if huge {
        mapping.prefer_huge_pages();
    }
    let first = mapping.as_ptr();
    let slot = |i: usize| first.wrapping_add(i * stride);
    // Where a rank of this host is mapped.
    let here = |rank: LocalRank| match file {
        Some(_) => slot(rank.index()),
        None if rank == placement.local_rank() => slot(own),
        None => core::ptr::null_mut(),
    };
    let record = [slot(own) as u64, len as u64].map(u64::to_ne_bytes).concat();
    let records = exchange.exchange(&record);
    let table = records.ranked().map(|(rank, b)| {
        let local = placement.local_rank_of(rank).filter(|_| placement.shares_memory(rank));
        Segment {
            base: word(b, 0) as *mut u8,
            len: word(b, 1) as usize,
            local: local.map_or(core::ptr::null_mut(), here),
        }
    });
    let table = table.collect();
    let locals = || (0..placement.local_size()).map(LocalRank);
    let len_of = |rank| placement.job_rank(rank).map_or(0, |r| word(&records[r], 1) as usize);
    Ok(AttachedSegments {
        segments: Segments { table, mapping },
        bases: locals().map(here).collect(),
        lens: locals().map(len_of).collect(),
    })
}

impl GasnetJob {
    /// The `n` bytes at `addr`, an address of rank `node`: in its segment or, for this process,
    /// in other memory of its own (`GasnetJob::is_own_memory`). No bytes may be anywhere.
    /// Ends the job if they are elsewhere or there is no such rank.
    #[inline(always)]
    pub fn remote_range(&self, function: &str, node: u32, addr: *mut u8, n: usize) -> RemoteRange {
        if node >= self.nodes {
            self.no_such_rank(function, node);
        }
        let rank = JobRank(node);
        match self.segments().resolve(rank, addr, n) {
            Some(range) => range,
            None => self.outside_segments(function, rank, addr, n),
        }
    }

    /// The segment of this process.
    #[inline]
    pub fn own_segment(&self) -> Dst<'static> {
        let own = &self.segments()[self.mynode];
        // SAFETY: the base of the own segment is where this process maps it until it ends.
        unsafe { Dst::new(own.base, own.len) }
    }

    /// What [`GasnetJob::remote_range`] returns for bytes that are in no segment.
    #[cold]
    #[inline(never)]
    fn outside_segments(
        &self,
        function: &str,
        rank: JobRank,
        addr: *mut u8,
        n: usize,
    ) -> RemoteRange {
        if n != 0 && !self.is_own_memory(rank, addr, n) {
            self.outside_segment(function, rank, addr, n);
        }
        // SAFETY: no bytes, or memory of this process that the client names as the target of
        // its own operation.
        unsafe { RemoteRange::new(rank, usize::MAX, n, addr) }
    }

    /// Ends the job unless it has a rank `node`.
    #[inline]
    pub fn check_rank(&self, function: &str, node: u32) {
        if node >= self.nodes {
            self.no_such_rank(function, node);
        }
    }

    /// The destination of a Long, `n` bytes at `addr` of rank `node`, which exists. Ends the job
    /// if they are outside its segment; no bytes may be anywhere.
    #[inline]
    pub fn long_destination(
        &self,
        function: &str,
        node: u32,
        addr: *mut u8,
        n: usize,
    ) -> RemoteRange {
        let rank = JobRank(node);
        match self.segments().resolve(rank, addr, n) {
            Some(range) => range,
            None if n != 0 => self.outside_segment(function, rank, addr, n),
            None => RemoteRange::unmapped(rank, usize::MAX, 0),
        }
    }

    /// How far from their addresses at rank `node` this process addresses these pieces
    /// (address, bytes); `None` if it does not. Ends the job unless all that have any bytes lie
    /// in its segment, or in other memory of this process.
    pub fn distance(
        &self,
        function: &str,
        node: u32,
        pieces: impl Iterator<Item = (*mut u8, usize)>,
    ) -> Option<usize> {
        let (rank, segment) = (JobRank(node), &self.segments()[node]);
        let mut distance = segment.distance();
        for (addr, n) in pieces {
            if n != 0 && segment.offset(addr, n).is_none() {
                if !self.is_own_memory(rank, addr, n) {
                    self.outside_segment(function, rank, addr, n);
                }
                distance = Some(0);
            }
        }
        distance
    }

    /// Whether `n` bytes at `addr` are memory of this process that needs no segment: `rank` is
    /// this process, none of them is in a segment of this host, and `addr` is not null. The
    /// specification leaves puts and gets of such memory undefined and debug checks refuse
    /// them; other implementations copy, and clients rely on it. The segments of other
    /// processes lie next to that of this one: an address there is an overrun.
    fn is_own_memory(&self, rank: JobRank, addr: *const u8, n: usize) -> bool {
        let (base, len) = self.segments().mapped();
        let (first, begin) = (addr.addr(), base.addr());
        let Some(end) = first.checked_add(n) else { return false };
        rank.0 == self.mynode
            && !addr.is_null()
            && !checks::on()
            && (end <= begin || first >= begin + len)
    }

    /// Ends the job: it has no rank `node`.
    #[cold]
    pub fn no_such_rank(&self, function: &str, node: u32) -> ! {
        report::fatal(
            format_args!(
                "{function}(): node {node} is out of range; this job has {}, numbered from 0",
                self.nodes
            ),
            format_args!("Pass a node below gasnet_nodes()."),
        )
    }

    /// Ends the job: `n` bytes at `addr` are not in the segment of `rank`.
    #[cold]
    fn outside_segment(&self, function: &str, rank: JobRank, addr: *const u8, n: usize) -> ! {
        let s = &self.segments()[rank.0];
        report::fatal(
            format_args!(
                "{function}(): {n} bytes at {addr:p} are outside the segment of node {rank}, which has {} bytes from {:p}",
                s.len, s.base
            ),
            if rank.0 == self.mynode && checks::on() {
                format_args!(
                    "Pass an address inside the segment; without debug checks a put or get takes other memory of one's own too."
                )
            } else {
                format_args!(
                    "Pass an address inside the segment that gasnet_getSegmentInfo reports for that node."
                )
            },
        )
    }
}
