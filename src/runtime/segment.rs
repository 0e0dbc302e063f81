//! Segments: how large they may be, where they are, and the mappings of the segments of the other processes of a host.
//!
//! All segments of a host lie in one memory file, at distances of the largest of them; a process maps the file when it attaches. Pages are
//! demand-zero: nothing is touched, probed or reserved here. [`Segments`] is written once, at attach, and read-only from
//! then on.

use crate::boot::Bootstrap;
use alloc::boxed::Box;
use alloc::vec::Vec;
use std::os::fd::AsFd;
use sys::limits;
use sys::memory::{self, Mapping};

/// Bytes that the size and the first address of each segment are a multiple of: `GASNET_PAGESIZE` of
/// include/gasnet_config.h, the largest page that Linux has on the machine.
pub const PAGE: usize =
    if cfg!(any(target_arch = "x86", target_arch = "x86_64")) { 4096 } else { 65536 };

/// The segment of one process.
#[derive(Clone, Copy, Debug)]
pub struct Segment {
    /// First byte, as its owner addresses it.
    pub base: *mut u8,
    /// Bytes.
    pub len: usize,
    /// First byte as we may address it directly; null where plain memory operations must not be used.
    pub local: *mut u8,
}

impl Segment {
    /// Offset of the `n` bytes at `addr` (an address of the owner), if they lie within.
    #[inline]
    pub fn offset(&self, addr: *const u8, n: usize) -> Option<usize> {
        let off = (addr as usize).wrapping_sub(self.base as usize);
        (off <= self.len && n <= self.len - off).then_some(off)
    }
}

/// All segments of the job, by rank.
#[derive(Debug)]
pub struct Segments {
    table: Box<[Segment]>,
    /// The segments of this host, those of all its processes one after the other.
    mapping: Mapping,
}

// SAFETY: the pointers are addresses of a shared mapping that lives as long as this value; what may be done through
// them is the clients' contract with GASNet (concurrent access to segments is theirs to order).
unsafe impl Send for Segments {}
// SAFETY: as above; the table itself is never written after construction.
unsafe impl Sync for Segments {}

impl Segments {
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
pub struct Limits {
    /// `gasnet_getMaxLocalSegmentSize`, in bytes.
    pub local: usize,
    /// `gasnet_getMaxGlobalSegmentSize`, in bytes.
    pub global: usize,
}

impl Limits {
    /// From what this machine has, the processes that share it, what this process may map, and the bound that the user or
    /// the client sets (bytes). Collective.
    pub fn find(boot: &dyn Bootstrap, bound: Option<u64>) -> Limits {
        let host = boot.host();
        // An eighth stays for everything that is not a segment.
        let most = [Some(memory::total()), memory::address_space_left(), limits::file_size()];
        let most = most.into_iter().flatten().min().unwrap_or(0);
        let share = most / 8 * 7 / u64::from(host.local_size.max(1));
        let page = PAGE as u64;
        let local = bound.unwrap_or(share).min(share).max(page) / page * page;
        let all: Vec<u64> = boot
            .exchange(&local.to_ne_bytes())
            .iter()
            .map(|b| u64::from_ne_bytes(b[..8].try_into().unwrap_or_default()))
            .collect();
        let global = all.iter().copied().min().unwrap_or(local);
        Limits { local: local as usize, global: global as usize }
    }
}

/// Which processes map each other's segments: groups of consecutive ranks of a host, of at most
/// `GASNET_SUPERNODE_MAXSIZE` members (0: no limit).
#[derive(Clone, Copy, Debug)]
pub struct Supernodes {
    /// Largest group; at least 1.
    pub size: u32,
}

impl Supernodes {
    /// Number of the group of the process with this rank on its host.
    pub fn of(self, local_rank: u32) -> u32 {
        local_rank / self.size
    }
}

/// What [`attach`] made.
#[derive(Debug)]
pub struct Attached {
    /// All segments.
    pub segments: Segments,
    /// By rank on this host: where the segment of that process is mapped here.
    pub bases: Vec<*mut u8>,
    /// By rank on this host: its length.
    pub lens: Vec<usize>,
}

/// Maps the segments of this host, our own one of `len` bytes (a multiple of the page size) among them. With `huge`, in huge pages where
/// the kernel allows it, of which none holds parts of two segments. Collective.
///
/// # Errors
/// What the operating system said, if it refused the mapping.
pub fn attach(
    boot: &dyn Bootstrap,
    supernodes: Supernodes,
    len: usize,
    huge: bool,
) -> std::io::Result<Attached> {
    let host = boot.host();
    let word = |b: &[u8], i: usize| {
        u64::from_ne_bytes(b[i * 8..i * 8 + 8].try_into().unwrap_or_default())
    };
    let longest = boot.exchange(&len.to_ne_bytes()).iter().map(|b| word(b, 0)).max().unwrap_or(0);
    let huge = huge && longest >= memory::HUGE_PAGE as u64;
    let stride =
        (longest as usize).max(1).next_multiple_of(if huge { memory::HUGE_PAGE } else { PAGE });
    let bytes = host.local_size as usize * stride;
    memory::set_len(host.segments.as_fd(), bytes as u64)?;
    let file = host.segments.as_fd();
    let map = |align| Mapping::shared_aligned(file, 0, bytes, align);
    let mapping = if huge { map(memory::HUGE_PAGE).or_else(|_| map(PAGE))? } else { map(PAGE)? };
    if huge {
        mapping.prefer_huge_pages();
    }
    // SAFETY: the mapping has a stride for every process of the host.
    let here = |local_rank: u32| unsafe { mapping.as_ptr().add(local_rank as usize * stride) };
    let record = [here(host.local_rank) as u64, len as u64, u64::from(host.local_rank)];
    let record: Vec<u8> = record.iter().flat_map(|w| w.to_ne_bytes()).collect();
    let mut table = Vec::new();
    let mut bases = alloc::vec![core::ptr::null_mut(); host.local_size as usize];
    let mut lens = alloc::vec![0; host.local_size as usize];
    for b in boot.exchange(&record) {
        let (base, len, local_rank) =
            (word(&b, 0) as *mut u8, word(&b, 1) as usize, word(&b, 2) as u32);
        bases[local_rank as usize] = here(local_rank);
        lens[local_rank as usize] = len;
        let direct =
            supernodes.size > 1 && supernodes.of(local_rank) == supernodes.of(host.local_rank);
        table.push(Segment {
            base,
            len,
            local: if direct { here(local_rank) } else { core::ptr::null_mut() },
        });
    }
    Ok(Attached { segments: Segments { table: table.into_boxed_slice(), mapping }, bases, lens })
}
