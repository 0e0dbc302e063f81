//! Memory: files that processes share ([`MemFd`]), ranges of pages ([`Mapping`]), and how much
//! memory exists. Called by every layer.
//!
//! Invariant: without feature `hosted` the same types exist, so that callers compile. No [`MemFd`]
//! can be made there.

pub use super::limits::page_size;
pub use super::locked_pages::LockedPages;
pub use super::mapping::*;
pub use super::memory_amount::*;
use super::memory_file;
pub use super::memory_file::*;
use std::os::fd::BorrowedFd;

/// What this memory file and others may have: as [`total`], or what its file system still has, if
/// that is less. Of this, `reserved` bytes of another file are subtracted, which may not be
/// allocated yet. `None` if neither is known.
pub fn free_without(reserved: u64, file: Option<BorrowedFd<'_>>) -> Option<u64> {
    let room = file.and_then(memory_file::file_system);
    let room = room.map(|(_, free)| free.saturating_sub(reserved));
    room.into_iter().chain(Some(total()).filter(|&total| total > 0)).min()
}

/// What this memory file and others may have together: as [`total`], or the size of its file
/// system, if that is less.
pub fn total_for(file: Option<BorrowedFd<'_>>) -> u64 {
    let room = file.and_then(memory_file::file_system);
    room.map_or(u64::MAX, |(all, _)| all).min(total())
}
