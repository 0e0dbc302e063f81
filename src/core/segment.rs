//! Segments: how large they may be, where they are, and the mappings of the segments of the other processes of a host.
//!
//! All segments of a host lie in one memory file, one stride each; a process maps its own and those of its peers when it
//! attaches. Pages are demand-zero: nothing is touched, probed or reserved here. [`Segments`] is written once, at
//! attach, and read-only from then on.

use crate::boot::Bootstrap;
use crate::os::memory::{self, Mapping};
use alloc::boxed::Box;
use alloc::vec::Vec;
use std::os::fd::AsFd;

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
    /// Keeps the mappings alive.
    _mappings: Vec<Mapping>,
}

// SAFETY: the pointers are addresses of shared mappings that live as long as this value; what may be done through them
// is the clients' contract with GASNet (concurrent access to segments is theirs to order).
unsafe impl Send for Segments {}
// SAFETY: as above; the table itself is never written after construction.
unsafe impl Sync for Segments {}

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
    /// Distance of two segments in the memory file of this host.
    stride: usize,
}

impl Limits {
    /// From what this machine has, the processes that share it, and the bound that the user or the client sets
    /// (bytes). Collective.
    pub fn find(boot: &dyn Bootstrap, bound: Option<u64>) -> Limits {
        let host = boot.host();
        // An eighth stays for everything that is not a segment.
        let share = memory::limits().total() / 8 * 7 / u64::from(host.local_size.max(1));
        let page = memory::page_size() as u64;
        let local = bound.unwrap_or(share).min(share).max(page) / page * page;
        let all: Vec<u64> =
            boot.exchange(&local.to_ne_bytes()).iter().map(|b| u64::from_ne_bytes(b[..8].try_into().unwrap_or_default())).collect();
        let global = all.iter().copied().min().unwrap_or(local);
        let stride = all.iter().copied().max().unwrap_or(local);
        Limits { local: local as usize, global: global as usize, stride: stride as usize }
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

/// Where the other processes' mappings go.
pub struct Attached {
    /// All segments.
    pub segments: Segments,
    /// By rank on this host: where the segment of that process is mapped here, and its length.
    pub mapped: Vec<(*mut u8, usize)>,
}

/// Maps our own segment of `len` bytes (a multiple of the page size, within the limits) and everybody else's.
/// Collective.
///
/// # Errors
/// What the operating system said, if it refused a mapping.
pub fn attach(boot: &dyn Bootstrap, limits: Limits, supernodes: Supernodes, len: usize) -> std::io::Result<Attached> {
    let host = boot.host();
    let at = |local_rank: u32| u64::from(local_rank) * limits.stride as u64;
    memory::set_len(host.segments.as_fd(), at(host.local_size))?;
    let mut mappings = Vec::new();
    let mut map = |local_rank: u32, len: usize| -> std::io::Result<*mut u8> {
        if len == 0 {
            return Ok(core::ptr::null_mut());
        }
        let m = Mapping::shared(host.segments.as_fd(), at(local_rank), len)?;
        let base = m.as_ptr();
        mappings.push(m);
        Ok(base)
    };
    let mine = map(host.local_rank, len)?;
    let mut record = [0u8; 24];
    record[..8].copy_from_slice(&(mine as u64).to_ne_bytes());
    record[8..16].copy_from_slice(&(len as u64).to_ne_bytes());
    record[16..].copy_from_slice(&u64::from(host.local_rank).to_ne_bytes());
    let word = |b: &[u8], i: usize| u64::from_ne_bytes(b[i * 8..i * 8 + 8].try_into().unwrap_or_default());
    let everybody = boot.exchange(&record);
    let mut table = Vec::with_capacity(everybody.len());
    let mut mapped = alloc::vec![(core::ptr::null_mut(), 0); host.local_size as usize];
    for (rank, b) in everybody.iter().enumerate() {
        let (base, len, local_rank) = (word(b, 0) as *mut u8, word(b, 1) as usize, word(b, 2) as u32);
        let here = if rank as u32 == boot.rank() { mine } else { map(local_rank, len)? };
        mapped[local_rank as usize] = (here, len);
        let direct = supernodes.of(local_rank) == supernodes.of(host.local_rank) && supernodes.size > 1;
        table.push(Segment { base, len, local: if direct { here } else { core::ptr::null_mut() } });
    }
    Ok(Attached { segments: Segments { table: table.into_boxed_slice(), _mappings: mappings }, mapped })
}
