//! One mapping per memory file, for tests under ThreadSanitizer (`--cfg tsan`), which takes a
//! word by its address. The processes of a test are threads. They see what the others
//! synchronise only if all of them map a file at one address.
//!
//! Called by [`Mapping::shared_aligned`]. Invariant: such a mapping is never unmapped.

use super::mapping::Mapping;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::os::fd::BorrowedFd;
use std::os::unix::fs::MetadataExt;
use std::sync::{Mutex, PoisonError};

/// A range of a file: inode, offset, bytes. No file of another device is mapped.
type FileRange = (u64, u64, usize);

/// The mapping of this range, which `map` makes the first time.
///
/// # Errors
/// That of the system.
pub(super) fn of(
    file: BorrowedFd<'_>,
    offset: u64,
    bytes: usize,
    map: impl FnOnce() -> io::Result<Mapping>,
) -> io::Result<Mapping> {
    static MAPPINGS: Mutex<BTreeMap<FileRange, Mapping>> = Mutex::new(BTreeMap::new());
    let inode = File::from(file.try_clone_to_owned()?).metadata()?.ino();
    let mut mappings = MAPPINGS.lock().unwrap_or_else(PoisonError::into_inner);
    let range = (inode, offset, bytes);
    if !mappings.contains_key(&range) {
        mappings.insert(range, map()?);
    }
    Ok(mappings[&range].alias())
}
