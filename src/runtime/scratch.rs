//! The scratch memory of a host: a *scratch page* for each of its ranks, which all of them map.
//!
//! Mapped by `gasnet_init`, used by the extended layer for flags and small data;
//! `agreed_environment` uses the file behind the pages. Invariant: a page is zero at start.

use crate::boot::host_memory::HostMemory;
use crate::rank::LocalRank;
use core::sync::atomic::AtomicU64;
use std::io;
use std::os::fd::AsFd;
use sys::memory::{self, Mapping};

/// Bytes of a scratch page.
pub const SCRATCH_BYTES: usize = 4096;

/// The same in words.
pub const SCRATCH_WORDS: usize = SCRATCH_BYTES / 8;

/// The scratch memory of this host, by rank.
#[derive(Debug)]
pub(super) struct HostScratch(&'static [[AtomicU64; SCRATCH_WORDS]]);

/// Bytes of the pages of this many ranks.
pub(super) fn bytes(ranks: u32) -> usize {
    ranks as usize * SCRATCH_BYTES
}

impl HostScratch {
    /// Maps the pages of this many ranks.
    ///
    /// # Errors
    /// What the operating system said, if there is not enough memory.
    pub(super) fn map(memory: &HostMemory, ranks: u32) -> io::Result<HostScratch> {
        let file = memory.scratch.as_fd();
        memory::reserve(file, 0, bytes(ranks) as u64)?;
        Ok(HostScratch(Mapping::shared(file, 0, bytes(ranks))?.leak_words().as_chunks().0))
    }

    /// The page of a rank of this host.
    pub(super) fn part(&self, rank: LocalRank) -> Option<&'static [AtomicU64; SCRATCH_WORDS]> {
        self.0.get(rank.index())
    }
}
