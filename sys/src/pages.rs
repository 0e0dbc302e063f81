//! Ranges of pages of this process, mapped by the system.
//!
//! Called by [`super::memory`]. Invariant: a range is mapped until [`free`].

use super::limits::page_size;
use super::memory_amount::address_space_left;
use crate::byte_count::ByteCount;
use core::ops::Range;
use core::ptr::NonNull;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

/// Why a mapping of this many bytes was refused just now. Names `ulimit -v` if that is the cause.
#[cold]
fn not_mapped(bytes: usize) -> io::Error {
    let e = io::Error::last_os_error();
    match (super::limits::address_space(), address_space_left()) {
        (Some(limit), Some(left))
            if e.raw_os_error() == Some(libc::ENOMEM) && bytes as u64 > left =>
        {
            io::Error::new(
                io::ErrorKind::OutOfMemory,
                format!(
                    "{} are more than the {} of address space that this process has left of {} \
                     (ulimit -v)",
                    ByteCount(bytes as u64),
                    ByteCount(left),
                    ByteCount(limit)
                ),
            )
        }
        _ => e,
    }
}

fn map(fd: i32, offset: u64, bytes: usize, prot: i32, flags: i32) -> io::Result<NonNull<u8>> {
    // SAFETY: no address is given, so no existing mapping is replaced.
    let p = unsafe {
        libc::mmap(core::ptr::null_mut(), bytes, prot, flags, fd, offset as libc::off_t)
    };
    if p == libc::MAP_FAILED {
        return Err(not_mapped(bytes));
    }
    NonNull::new(p.cast()).ok_or_else(|| io::Error::other("mapped at address zero"))
}

/// As [`map`] for reading and writing, at a multiple of `align`, a power of two.
fn map_aligned(
    fd: i32,
    offset: u64,
    bytes: usize,
    flags: i32,
    align: usize,
) -> io::Result<NonNull<u8>> {
    let prot = libc::PROT_READ | libc::PROT_WRITE;
    if align <= page_size() {
        return map(fd, offset, bytes, prot, flags);
    }
    let reserved = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    let whole = bytes.checked_next_multiple_of(page_size());
    let room = whole.and_then(|whole| Some((whole, whole.checked_add(align)?)));
    let (whole, enough) = room.ok_or_else(|| io::Error::from_raw_os_error(libc::ENOMEM))?;
    let space = map(-1, 0, enough, libc::PROT_NONE, reserved)?;
    let before = space.as_ptr().align_offset(align);
    // SAFETY: the range at a multiple of `align` lies within the space, of which the rest is not
    // used.
    let base = unsafe {
        free(space, before);
        let base = space.add(before);
        free(base.add(whole), enough - before - whole);
        base
    };
    // SAFETY: it replaces exactly the range that was reserved above and is not used.
    let p = unsafe {
        let flags = flags | libc::MAP_FIXED;
        libc::mmap(base.as_ptr().cast(), bytes, prot, flags, fd, offset as libc::off_t)
    };
    if p == libc::MAP_FAILED {
        let e = not_mapped(bytes);
        // SAFETY: nothing uses the range.
        unsafe { free(base, whole) };
        return Err(e);
    }
    Ok(base)
}

/// As [`map`] for reading and writing, at exactly this address, and only if nothing is mapped
/// there.
fn map_at(at: usize, fd: i32, offset: u64, bytes: usize, flags: i32) -> io::Result<NonNull<u8>> {
    let at = core::ptr::without_provenance_mut(at);
    let prot = libc::PROT_READ | libc::PROT_WRITE;
    let flags = flags | libc::MAP_FIXED_NOREPLACE;
    // SAFETY: the kernel replaces no existing mapping. One that does not know the flag takes the
    // address as a hint, and maps elsewhere if something is there.
    let p = unsafe { libc::mmap(at, bytes, prot, flags, fd, offset as libc::off_t) };
    if p == libc::MAP_FAILED {
        return Err(not_mapped(bytes));
    }
    match NonNull::new(p.cast()) {
        Some(base) if p == at => Ok(base),
        elsewhere => {
            if let Some(base) = elsewhere {
                // SAFETY: it was just mapped; nothing uses it.
                unsafe { free(base, bytes) };
            }
            Err(io::ErrorKind::AlreadyExists.into())
        }
    }
}

/// Maps a range of a memory file, at a multiple of `align`.
///
/// # Errors
/// That of the system.
pub(super) fn shared(
    file: BorrowedFd<'_>,
    offset: u64,
    bytes: usize,
    align: usize,
) -> io::Result<NonNull<u8>> {
    map_aligned(file.as_raw_fd(), offset, bytes, libc::MAP_SHARED | libc::MAP_NORESERVE, align)
}

/// As [`shared`], at an address where nothing is mapped yet.
///
/// # Errors
/// That of the system; [`io::ErrorKind::AlreadyExists`] if something is mapped there.
pub(super) fn shared_at(
    file: BorrowedFd<'_>,
    offset: u64,
    bytes: usize,
    at: usize,
) -> io::Result<NonNull<u8>> {
    map_at(at, file.as_raw_fd(), offset, bytes, libc::MAP_SHARED | libc::MAP_NORESERVE)
}

/// Maps zeroed memory of this process alone, at a multiple of `align`; it takes memory when first
/// touched.
///
/// # Errors
/// That of the system.
pub(super) fn own(bytes: usize, align: usize) -> io::Result<NonNull<u8>> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    map_aligned(-1, 0, bytes, flags, align)
}

/// As [`own`], at an address where nothing is mapped yet.
///
/// # Errors
/// As [`shared_at`].
pub(super) fn own_at(bytes: usize, at: usize) -> io::Result<NonNull<u8>> {
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
    map_at(at, -1, 0, bytes, flags)
}

/// Requests huge pages for a range.
pub(super) fn prefer_huge(base: NonNull<u8>, bytes: usize) {
    // SAFETY: the advice changes no byte.
    unsafe { libc::madvise(base.as_ptr().cast(), bytes, libc::MADV_HUGEPAGE) };
}

/// Unmaps a range; nothing if it has no bytes.
///
/// # Safety
/// The range was mapped here, and nothing uses it.
pub(super) unsafe fn free(base: NonNull<u8>, bytes: usize) {
    if bytes > 0 {
        // SAFETY: the caller's.
        unsafe { libc::munmap(base.as_ptr().cast(), bytes) };
    }
}

/// Keeps whole pages in memory (`mlock`).
///
/// # Errors
/// That of the system. ENOMEM: a page is not mapped, or `ulimit -l` or `vm.max_map_count` is
/// reached.
pub(super) fn lock(pages: Range<usize>) -> io::Result<()> {
    // SAFETY: the call changes no byte, and refuses what is not mapped.
    match unsafe { libc::mlock(core::ptr::without_provenance(pages.start), pages.len()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Lets go of pages that [`lock`] keeps, up to the first one that is not mapped, where [`lock`]
/// stops as well. False if there is one, or if the process has too many mappings
/// (`vm.max_map_count`) for one to be split.
pub(super) fn unlock(pages: Range<usize>) -> bool {
    // SAFETY: the call changes no byte.
    unsafe { libc::munlock(core::ptr::without_provenance(pages.start), pages.len()) == 0 }
}

/// Whether a page is mapped, as the kernel says: it may be one that nothing may access.
#[cold]
pub(super) fn is_mapped(page: usize) -> bool {
    let (at, mut resident) = (core::ptr::without_provenance::<u8>(page), 0u8);
    // SAFETY: the kernel checks the address, and writes one byte.
    let r = unsafe { libc::syscall(libc::SYS_mincore, at, page_size(), &raw mut resident) };
    r == 0 || crate::errno() != libc::ENOMEM
}

/// Makes a request for pages, by halves where some of them do not allow it. False if some do not.
pub(super) fn each_part(pages: Range<usize>, request: &dyn Fn(Range<usize>) -> bool) -> bool {
    if pages.is_empty() || request(pages.clone()) {
        return true;
    }
    let half = pages.len() / 2 / page_size() * page_size();
    if half == 0 {
        return false;
    }
    let middle = pages.start + half;
    let first = each_part(pages.start..middle, request);
    each_part(middle..pages.end, request) && first
}
