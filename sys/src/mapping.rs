//! A range of pages of this process: memory of its own, or of a memory file.
//!
//! Called as part of `memory`. Invariant: a range is freed once, by the value that owns it.

use super::pages;
use core::ptr::NonNull;
use core::sync::atomic::AtomicU64;
use std::io;
use std::os::fd::BorrowedFd;

/// Bytes of a huge page on most processors. Where huge pages are larger, a range that starts at
/// a multiple of this may get none.
pub const HUGE_PAGE: usize = 2 << 20;

/// A mapped range of memory; unmapped when dropped.
#[derive(Debug)]
pub struct Mapping {
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: a Mapping only names a range of the process's address space, which is the same for
// all threads.
unsafe impl Send for Mapping {}
// SAFETY: as above; its methods do not touch the memory.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps a range of a memory file, shared, for reading and writing, without reserving memory
    /// for it. `offset` is a multiple of the page size; `bytes` is not 0. Touching what lies
    /// beyond the end of the file raises SIGBUS.
    ///
    /// # Errors
    /// That of the system.
    pub fn shared(file: BorrowedFd<'_>, offset: u64, bytes: usize) -> io::Result<Mapping> {
        Mapping::shared_aligned(file, offset, bytes, 1)
    }

    /// As [`Mapping::shared`], at a multiple of `align`, a power of two.
    pub fn shared_aligned(
        file: BorrowedFd<'_>,
        offset: u64,
        bytes: usize,
        align: usize,
    ) -> io::Result<Mapping> {
        let map = || Ok(Mapping { base: pages::shared(file, offset, bytes, align)?, len: bytes });
        #[cfg(tsan)]
        return super::one_mapping::of(file, offset, bytes, map);
        #[cfg(not(tsan))]
        map()
    }

    /// As [`Mapping::shared`], at the address `at`, a multiple of the page size.
    ///
    /// # Errors
    /// That of the system; [`io::ErrorKind::AlreadyExists`] if something is mapped there.
    pub fn shared_at(
        file: BorrowedFd<'_>,
        offset: u64,
        bytes: usize,
        at: usize,
    ) -> io::Result<Mapping> {
        Ok(Mapping { base: pages::shared_at(file, offset, bytes, at)?, len: bytes })
    }

    /// The same range again; under ThreadSanitizer none is unmapped.
    #[cfg(tsan)]
    pub(super) fn alias(&self) -> Mapping {
        Mapping { base: self.base, len: self.len }
    }

    /// Requests huge pages, where the kernel gives them on request (Linux: `shmem_enabled` of
    /// transparent huge pages).
    pub fn prefer_huge_pages(&self) {
        pages::prefer_huge(self.base, self.len);
    }

    /// Maps zeroed memory of this process alone; it takes memory when first touched.
    ///
    /// # Errors
    /// That of the system.
    pub fn anonymous(bytes: usize) -> io::Result<Mapping> {
        Mapping::anonymous_aligned(bytes, 1)
    }

    /// As [`Mapping::anonymous`], at a multiple of `align`, a power of two.
    pub fn anonymous_aligned(bytes: usize, align: usize) -> io::Result<Mapping> {
        Ok(Mapping { base: pages::own(bytes, align)?, len: bytes })
    }

    /// As [`Mapping::anonymous`], at the address `at`, a multiple of the page size.
    ///
    /// # Errors
    /// As [`Mapping::shared_at`].
    pub fn anonymous_at(bytes: usize, at: usize) -> io::Result<Mapping> {
        Ok(Mapping { base: pages::own_at(bytes, at)?, len: bytes })
    }

    /// First byte; page-aligned.
    pub fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// First byte; page-aligned.
    pub fn as_ptr(&self) -> *mut u8 {
        self.base.as_ptr()
    }

    /// Bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Always false: a mapping has at least one byte.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The mapping as 64-bit words, mapped until the process ends. Every value that another
    /// process stores there is a valid word.
    pub fn leak_words(self) -> &'static [AtomicU64] {
        let words = self.len / 8;
        let base = self.leak().cast::<AtomicU64>().as_ptr();
        // SAFETY: the mapping is page-aligned, holds that many words and is never unmapped.
        unsafe { core::slice::from_raw_parts(base, words) }
    }

    /// Zeroed, page-aligned memory of this process alone, mapped until the process ends; it takes
    /// memory when first touched.
    ///
    /// # Errors
    /// That of the system.
    pub fn leaked_bytes(bytes: usize) -> io::Result<&'static mut [u8]> {
        let base = Mapping::anonymous(bytes.max(1))?.leak().as_ptr();
        // SAFETY: the bytes are zero and never unmapped, and nothing else knows where they are.
        Ok(unsafe { core::slice::from_raw_parts_mut(base, bytes) })
    }

    /// Keeps it mapped until the process ends.
    pub fn leak(self) -> NonNull<u8> {
        let base = self.base;
        core::mem::forget(self);
        base
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        if cfg!(tsan) {
            return; // see `one_mapping`
        }
        // SAFETY: this value owns the mapping, and what borrowed from it has ended.
        unsafe { pages::free(self.base, self.len) };
    }
}

#[cfg(all(test, feature = "hosted"))]
mod tests {
    use super::super::limits::page_size;
    use super::super::memory_file::MemFd;
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn leaked_bytes_are_zero_pages() {
        let bytes = Mapping::leaked_bytes(page_size() + 3).unwrap();
        assert!(bytes.as_ptr().addr().is_multiple_of(page_size()));
        assert!(bytes.len() == page_size() + 3 && bytes.iter().all(|&byte| byte == 0));
        assert!(Mapping::leaked_bytes(0).unwrap().is_empty());
        assert!(Mapping::leaked_bytes(usize::MAX / 2).is_err());
    }

    #[test]
    fn two_mappings_of_one_file_are_one_memory() {
        let f = MemFd::create(c"test").unwrap();
        f.reserve(page_size() as u64, 100).unwrap();
        assert_eq!(f.len().unwrap(), page_size() as u64 + 100);
        f.set_len(4 * page_size() as u64).unwrap();
        let (a, b) =
            (f.map(0, 4 * page_size()).unwrap(), f.map(page_size() as u64, page_size()).unwrap());
        // SAFETY: both lie within the file; no reference to them exists.
        unsafe {
            a.as_ptr().add(page_size() + 5).write(42);
            assert_eq!(b.as_ptr().add(5).read(), 42);
            assert_eq!(a.as_ptr().read(), 0);
        }
    }

    #[test]
    fn an_aligned_range_is_otherwise_like_any() {
        let f = MemFd::create(c"test").unwrap();
        f.set_len(3 * HUGE_PAGE as u64).unwrap();
        let a = Mapping::shared_aligned(f.as_fd(), 0, 3 * HUGE_PAGE, HUGE_PAGE).unwrap();
        let b = Mapping::shared(f.as_fd(), 2 * HUGE_PAGE as u64, HUGE_PAGE).unwrap();
        assert_eq!((a.as_ptr() as usize % HUGE_PAGE, a.len()), (0, 3 * HUGE_PAGE));
        // SAFETY: both lie within the file; no reference to them exists.
        unsafe {
            a.as_ptr().add(3 * HUGE_PAGE - 1).write(42);
            assert_eq!(b.as_ptr().add(HUGE_PAGE - 1).read(), 42);
        }
        assert!(Mapping::shared_aligned(f.as_fd(), 0, 1 << 50, HUGE_PAGE).is_err());
    }

    #[test]
    fn a_range_at_an_address_replaces_nothing() {
        let page = page_size();
        let f = MemFd::create(c"test").unwrap();
        f.set_len(4 * page as u64).unwrap();
        let space = Mapping::anonymous(4 * page).unwrap();
        let at = space.as_ptr().addr();
        // SAFETY: within the mapping, to which no reference exists.
        unsafe { space.as_ptr().add(page).write(42) };
        let taken = |at: usize| {
            let file = Mapping::shared_at(f.as_fd(), 0, 2 * page, at);
            let own = Mapping::anonymous_at(2 * page, at);
            file.is_err() && own.is_err()
        };
        assert!(taken(at) && taken(at + 3 * page) && taken(at - page));
        // SAFETY: as above.
        assert_eq!(unsafe { space.as_ptr().add(page).read() }, 42);
        // Another test may take the range that becomes free here.
        drop(space);
        if let Ok(there) = Mapping::shared_at(f.as_fd(), 0, 4 * page, at) {
            assert_eq!(there.as_ptr().addr(), at);
        }
    }

    #[test]
    fn memory_of_its_own_may_be_aligned_and_ends_within_a_page() {
        let m = Mapping::anonymous_aligned(HUGE_PAGE + 1, HUGE_PAGE).unwrap();
        assert_eq!((m.as_ptr() as usize % HUGE_PAGE, m.len()), (0, HUGE_PAGE + 1));
        // SAFETY: within the mapping, to which no reference exists.
        unsafe {
            assert_eq!(m.as_ptr().add(HUGE_PAGE).read(), 0);
            m.as_ptr().add(HUGE_PAGE).write(42);
        }
        assert!(Mapping::anonymous_aligned(usize::MAX - HUGE_PAGE, HUGE_PAGE).is_err());
        assert!(Mapping::anonymous_aligned(usize::MAX, HUGE_PAGE).is_err());
    }
}
