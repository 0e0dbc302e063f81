//! Ranges of pages of this process, from the heap of the C library: in place of `pages`, where the
//! system maps none.
//!
//! Called by `memory`. Invariant: a range is allocated until [`free`].

use super::limits::page_size;
use core::ops::Range;
use core::ptr::NonNull;
use std::io;
use std::os::fd::BorrowedFd;

/// There are no memory files.
///
/// # Errors
/// Always.
pub(super) fn shared(
    _file: BorrowedFd<'_>,
    _offset: u64,
    _bytes: usize,
    _align: usize,
) -> io::Result<NonNull<u8>> {
    Err(io::ErrorKind::Unsupported.into())
}

/// As [`shared`].
///
/// # Errors
/// Always.
pub(super) fn shared_at(
    file: BorrowedFd<'_>,
    offset: u64,
    bytes: usize,
    _at: usize,
) -> io::Result<NonNull<u8>> {
    shared(file, offset, bytes, 1)
}

/// Allocates zeroed memory at a multiple of `align`, a power of two, and of the page size.
///
/// # Errors
/// There is not enough.
pub(super) fn own(bytes: usize, align: usize) -> io::Result<NonNull<u8>> {
    let mut start = core::ptr::null_mut();
    // SAFETY: `start` is a live variable; the alignment is a power of two.
    let error = unsafe { libc::posix_memalign(&mut start, align.max(page_size()), bytes) };
    if error != 0 {
        return Err(io::Error::from_raw_os_error(error));
    }
    let base = NonNull::new(start.cast::<u8>()).ok_or(io::ErrorKind::OutOfMemory)?;
    // SAFETY: this many bytes were just allocated.
    unsafe { base.write_bytes(0, bytes) };
    Ok(base)
}

/// The heap chooses the address.
///
/// # Errors
/// Always.
pub(super) fn own_at(_bytes: usize, _at: usize) -> io::Result<NonNull<u8>> {
    Err(io::ErrorKind::Unsupported.into())
}

/// There are no huge pages.
pub(super) fn prefer_huge(_base: NonNull<u8>, _bytes: usize) {}

/// Frees a range.
///
/// # Safety
/// The range was allocated here, and nothing uses it.
pub(super) unsafe fn free(base: NonNull<u8>, _bytes: usize) {
    // SAFETY: the caller's.
    unsafe { libc::free(base.as_ptr().cast()) };
}

/// All memory stays where it is.
///
/// # Errors
/// Never.
pub(super) fn lock(_pages: Range<usize>) -> io::Result<()> {
    Ok(())
}

/// Nothing moves.
pub(super) fn unlock(_pages: Range<usize>) -> bool {
    true
}

/// All memory is.
pub(super) fn is_mapped(_page: usize) -> bool {
    true
}

/// Makes the request.
pub(super) fn each_part(pages: Range<usize>, request: &dyn Fn(Range<usize>) -> bool) -> bool {
    request(pages)
}
