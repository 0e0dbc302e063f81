//! Memory: files without a name that processes share ([`MemFd`]), mappings ([`Mapping`]), and
//! how much memory exists. Called by `portals3`, `runtime::segment` and `boot`.
//!
//! A memory file has no name in any file system: it vanishes with the last process that holds
//! it.

use super::cpu::cgroup_files;
use super::unlinked;
use core::ptr::NonNull;
use core::sync::atomic::AtomicU64;
use std::ffi::{CStr, OsStr};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::OnceLock;

/// Bytes of a page of this machine.
pub fn page_size() -> usize {
    static PAGE: OnceLock<usize> = OnceLock::new();
    // SAFETY: a query without pointers, which cannot fail for the page size.
    *PAGE.get_or_init(|| unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize)
}

/// Bytes of a huge page on most processors. Where huge pages are larger, a range that starts at
/// a multiple of this may get none.
pub const HUGE_PAGE: usize = 2 << 20;

/// A memory file.
#[derive(Debug)]
pub struct MemFd(OwnedFd);

impl From<OwnedFd> for MemFd {
    fn from(fd: OwnedFd) -> Self {
        MemFd(fd)
    }
}

impl From<MemFd> for OwnedFd {
    fn from(m: MemFd) -> Self {
        m.0
    }
}

impl AsFd for MemFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl MemFd {
    /// An empty memory file, closed on exec. `name` only shows in /proc. Where the kernel has
    /// none (before Linux 3.17), or forbids them, it is a file whose name is removed at once.
    ///
    /// # Errors
    /// That of the system.
    pub fn create(name: &CStr) -> io::Result<MemFd> {
        memfd(name).or_else(|_| Ok(unlinked::create()?.0)).map(MemFd)
    }

    /// Its length in bytes.
    ///
    /// # Errors
    /// That of the system.
    pub fn len(&self) -> io::Result<u64> {
        len(self.0.as_fd())
    }

    /// Whether its length is 0.
    ///
    /// # Errors
    /// That of the system.
    pub fn is_empty(&self) -> io::Result<bool> {
        Ok(self.len()? == 0)
    }

    /// See [`set_len`].
    pub fn set_len(&self, bytes: u64) -> io::Result<()> {
        set_len(self.0.as_fd(), bytes)
    }

    /// See [`reserve`].
    pub fn reserve(&self, offset: u64, bytes: u64) -> io::Result<()> {
        reserve(self.0.as_fd(), offset, bytes)
    }

    /// See [`Mapping::shared`].
    pub fn map(&self, offset: u64, bytes: usize) -> io::Result<Mapping> {
        Mapping::shared(self.0.as_fd(), offset, bytes)
    }
}

fn memfd(name: &CStr) -> io::Result<OwnedFd> {
    // SAFETY: the name is NUL-terminated.
    let fd = unsafe { libc::syscall(libc::SYS_memfd_create, name.as_ptr(), libc::MFD_CLOEXEC) };
    // SAFETY: the descriptor was just opened, so nothing else owns it.
    unsafe { crate::descriptor::opened(fd as i32) }
}

/// Whether a file of this name in /dev/shm or a temporary folder was made by
/// [`MemFd::create`], by a process that was killed before it removed the name.
pub fn is_file_name(name: &OsStr) -> bool {
    unlinked::is_name(name)
}

/// What memory files are on this machine, for people to read.
///
/// # Errors
/// Why there are none.
pub fn file_kind() -> io::Result<String> {
    if memfd(c"gasnet").is_ok() {
        return Ok("memfd_create".to_string());
    }
    let (file, folder) = unlinked::create()?;
    let free = unlinked::file_system(file.as_fd())
        .map_or(String::new(), |(_, free)| format!(", {free} bytes free"));
    Ok(format!("files without a name in {}{free}", folder.display()))
}

/// The length of a file in bytes.
///
/// # Errors
/// That of the system.
pub fn len(file: BorrowedFd<'_>) -> io::Result<u64> {
    Ok(crate::descriptor::status(file.as_raw_fd())?.st_size as u64)
}

/// Refuses a length beyond the limit of this process (`ulimit -f`): there the kernel would end
/// the process by SIGXFSZ.
fn may_be_long(bytes: u64) -> io::Result<()> {
    match super::limits::file_size() {
        Some(limit) if bytes > limit => Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!(
                "{bytes} bytes of shared memory are more than this process may have in a file, {limit} (ulimit -f)"
            ),
        )),
        _ => Ok(()),
    }
}

/// Makes a memory file this long without allocating any page: new bytes are zero and take memory
/// when first touched. Processes that do this at the same time give the same length.
///
/// # Errors
/// That of the system; `FileTooLarge` beyond the limit of this process.
pub fn set_len(file: BorrowedFd<'_>, bytes: u64) -> io::Result<()> {
    if len(file)? == bytes {
        return Ok(());
    }
    may_be_long(bytes)?;
    // SAFETY: a live descriptor.
    match unsafe { libc::ftruncate(file.as_raw_fd(), bytes as libc::off_t) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Allocates these bytes of a memory file now, extending it where needed, so that touching them
/// later cannot fail. Where the kernel cannot (Linux before 2.6.23, memory files before 3.5), the
/// bytes behind the end of the file are allocated by writing them, and those before it are not.
///
/// # Errors
/// That of the system, and those of [`check_available`], before anything is allocated: the
/// kernel would rather kill processes than refuse the allocation.
pub fn reserve(file: BorrowedFd<'_>, offset: u64, bytes: u64) -> io::Result<()> {
    /// Up to this size, /proc is not read.
    const LITTLE: u64 = 1 << 20;
    if bytes == 0 {
        return Ok(());
    }
    if bytes > LITTLE {
        check_available(file, bytes)?;
    }
    may_be_long(offset + bytes)?;
    match allocate(file, offset, bytes) {
        Err(e) if matches!(e.raw_os_error(), Some(libc::ENOSPC | libc::ENOMEM)) => {
            Err(too_much(file, bytes, &limits()))
        }
        result => result,
    }
}

fn allocate(file: BorrowedFd<'_>, offset: u64, bytes: u64) -> io::Result<()> {
    loop {
        // SAFETY: a live descriptor.
        let r = unsafe { libc::syscall(libc::SYS_fallocate, file.as_raw_fd(), 0, offset, bytes) };
        if r == 0 {
            return Ok(());
        }
        let e = io::Error::last_os_error();
        match e.raw_os_error() {
            Some(libc::EINTR) => {}
            Some(libc::ENOSYS | libc::EPERM | libc::EOPNOTSUPP) => {
                return unlinked::lengthen(file, offset + bytes);
            }
            _ => return Err(e),
        }
    }
}

/// Gives all pages of a file back to the system: they read as zero afterwards. The length stays.
/// No other thread or process may touch the file meanwhile.
///
/// # Errors
/// That of the system.
pub fn clear(file: BorrowedFd<'_>) -> io::Result<()> {
    let bytes = len(file)?;
    set_len(file, 0)?;
    set_len(file, bytes)
}

/// Checks that this many bytes are available now for a memory file.
///
/// # Errors
/// `OutOfMemory` if the machine, its control group or the file system of the file has less, with
/// a text that says how much was wanted and how much exists.
pub fn check_available(file: BorrowedFd<'_>, bytes: u64) -> io::Result<()> {
    let l = limits();
    let free = unlinked::file_system(file).map_or(u64::MAX, |(_, free)| free);
    let most = l.available.min(l.total()).min(free);
    if bytes > most { Err(too_much(file, bytes, &l)) } else { Ok(()) }
}

/// What this memory file and others may have: as [`total`], or what its file system still has, if
/// that is less, without so many bytes of another file, which may not be allocated yet.
pub fn free_without(reserved: u64, file: Option<BorrowedFd<'_>>) -> u64 {
    let room = file.and_then(unlinked::file_system);
    room.map_or(u64::MAX, |(_, free)| free.saturating_sub(reserved)).min(total())
}

/// What this memory file and others may have together: as [`total`], or the size of its file
/// system, if that is less.
pub fn total_for(file: Option<BorrowedFd<'_>>) -> u64 {
    let room = file.and_then(unlinked::file_system);
    room.map_or(u64::MAX, |(all, _)| all).min(total())
}

fn too_much(file: BorrowedFd<'_>, bytes: u64, l: &MemoryLimits) -> io::Error {
    let group = l.cgroup.map_or(String::new(), |c| format!(", its control group allows {c}"));
    let room = unlinked::file_system(file).map_or(String::new(), |(_, free)| {
        format!(", {free} in the file system that holds it, /dev/shm or that of TMPDIR")
    });
    io::Error::new(
        io::ErrorKind::OutOfMemory,
        format!(
            "cannot allocate {bytes} bytes of shared memory ({} bytes are available on this machine{group}{room})",
            l.available
        ),
    )
}

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

/// Why a mapping of so many bytes was refused just now. Names `ulimit -v` where that is the cause.
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
                    "{bytes} bytes are more than the {left} bytes of address space that this \
                     process has left of {limit} (ulimit -v)"
                ),
            )
        }
        _ => e,
    }
}

impl Mapping {
    fn map(fd: i32, offset: u64, bytes: usize, prot: i32, flags: i32) -> io::Result<Mapping> {
        // SAFETY: no address is given, so no existing mapping is replaced.
        let p = unsafe {
            libc::mmap(core::ptr::null_mut(), bytes, prot, flags, fd, offset as libc::off_t)
        };
        if p == libc::MAP_FAILED {
            return Err(not_mapped(bytes));
        }
        let base =
            NonNull::new(p.cast()).ok_or_else(|| io::Error::other("mapped at address zero"))?;
        Ok(Mapping { base, len: bytes })
    }

    /// As [`Mapping::map`] for reading and writing, at a multiple of `align`, a power of two.
    fn map_aligned(
        fd: i32,
        offset: u64,
        bytes: usize,
        flags: i32,
        align: usize,
    ) -> io::Result<Mapping> {
        let prot = libc::PROT_READ | libc::PROT_WRITE;
        if align <= page_size() {
            return Mapping::map(fd, offset, bytes, prot, flags);
        }
        let reserved = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        let whole = bytes.checked_next_multiple_of(page_size());
        let room = whole.and_then(|whole| Some((whole, whole.checked_add(align)?)));
        let (whole, enough) = room.ok_or_else(|| io::Error::from_raw_os_error(libc::ENOMEM))?;
        let mut space = Mapping::map(-1, 0, enough, libc::PROT_NONE, reserved)?;
        let before = space.as_ptr().align_offset(align);
        drop(space.split_off(before + whole));
        let mut rest = space.split_off(before);
        drop(space);
        // SAFETY: it replaces exactly the range of `rest`, which was reserved above and is not
        // used.
        let p = unsafe {
            let flags = flags | libc::MAP_FIXED;
            libc::mmap(rest.as_ptr().cast(), bytes, prot, flags, fd, offset as libc::off_t)
        };
        if p == libc::MAP_FAILED {
            return Err(not_mapped(bytes));
        }
        rest.len = bytes;
        Ok(rest)
    }

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
        let flags = libc::MAP_SHARED | libc::MAP_NORESERVE;
        let map = || Mapping::map_aligned(file.as_raw_fd(), offset, bytes, flags, align);
        #[cfg(tsan)]
        return super::one_mapping::of(file, offset, bytes, map);
        #[cfg(not(tsan))]
        map()
    }

    /// The same range again; under ThreadSanitizer none is unmapped.
    #[cfg(tsan)]
    pub(super) fn alias(&self) -> Mapping {
        Mapping { base: self.base, len: self.len }
    }

    /// Requests huge pages, where the kernel gives them on request (Linux: `shmem_enabled` of
    /// transparent huge pages).
    pub fn prefer_huge_pages(&self) {
        // SAFETY: the range belongs to this mapping, and the advice changes none of its bytes.
        unsafe { libc::madvise(self.base.as_ptr().cast(), self.len, libc::MADV_HUGEPAGE) };
    }

    /// Keeps the first `at` bytes, a multiple of the page size, and returns the rest.
    fn split_off(&mut self, at: usize) -> Mapping {
        // SAFETY: the only caller splits within the mapping, so `at` is at most its length.
        let rest = Mapping { base: unsafe { self.base.add(at) }, len: self.len - at };
        self.len = at;
        rest
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
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        Mapping::map_aligned(-1, 0, bytes, flags, align)
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
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.len) };
    }
}

/// How much memory this process can have, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct MemoryLimits {
    /// RAM of the machine.
    pub physical: u64,
    /// What the kernel can give now without swapping.
    pub available: u64,
    /// The lowest limit of the control groups (version 1 or 2) of this process, if one limits
    /// it below `physical`.
    pub cgroup: Option<u64>,
}

impl MemoryLimits {
    /// The most that all processes of this machine and control group can have together.
    pub fn total(&self) -> u64 {
        self.cgroup.map_or(self.physical, |c| c.min(self.physical))
    }
}

/// The limits that hold now.
pub fn limits() -> MemoryLimits {
    let (physical, cgroup) = fixed();
    let available = std::fs::read_to_string("/proc/meminfo")
        .ok()
        .and_then(|text| parse_available(&text))
        .map_or(physical, |n| n.min(physical));
    MemoryLimits { physical, available, cgroup }
}

/// [`MemoryLimits::total`]. It takes no time when this process, or the one that forked it, has
/// called it before.
pub fn total() -> u64 {
    let (physical, cgroup) = fixed();
    MemoryLimits { physical, available: physical, cgroup }.total()
}

/// [`MemoryLimits::physical`] and [`MemoryLimits::cgroup`].
fn fixed() -> (u64, Option<u64>) {
    static FIXED: OnceLock<(u64, Option<u64>)> = OnceLock::new();
    *FIXED.get_or_init(|| {
        // SAFETY: a query without pointers.
        let pages = unsafe { libc::sysconf(libc::_SC_PHYS_PAGES) }.max(0) as u64;
        let physical = pages * page_size() as u64;
        let v2 = cgroup_files("", "memory.max");
        let v1 = cgroup_files("memory", "memory.limit_in_bytes");
        let cgroup = v2
            .iter()
            .chain(&v1)
            .filter_map(|f| std::fs::read_to_string(f).ok()?.trim().parse::<u64>().ok())
            .min()
            .filter(|&c| c < physical);
        (physical, cgroup)
    })
}

/// Address space that this process may still map, in bytes; `None` if that is not limited.
pub fn address_space_left() -> Option<u64> {
    let limit = super::limits::address_space()?;
    let text = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = text.split_whitespace().next()?.parse().ok()?;
    Some(limit.saturating_sub(pages * page_size() as u64))
}

/// How many processes of this machine the kernel has killed so far because memory, or the
/// memory of their control group, was used up.
pub fn lack_kills() -> u64 {
    let text = std::fs::read_to_string("/proc/vmstat").unwrap_or_default();
    text.lines().find_map(|l| l.strip_prefix("oom_kill ")?.trim().parse().ok()).unwrap_or(0)
}

/// What /proc/meminfo says to be available; an estimate before Linux 3.14.
fn parse_available(meminfo: &str) -> Option<u64> {
    let field = |name: &str| {
        let line = meminfo.lines().find_map(|l| l.strip_prefix(name))?;
        Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024)
    };
    let estimate = || Some(field("MemFree:")? + field("Buffers:")? + field("Cached:")?);
    field("MemAvailable:").or_else(estimate)
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn too_much_is_an_error_that_says_so() {
        let f = MemFd::create(c"test").unwrap();
        let e = f.reserve(0, 1 << 50).unwrap_err();
        assert!(e.to_string().contains("1125899906842624"), "{e}");
        let limits = limits();
        assert!(limits.physical > 0 && limits.available > 0 && limits.total() <= limits.physical);
    }

    #[test]
    fn meminfo() {
        assert_eq!(parse_available("MemTotal: 5 kB\nMemAvailable:   16 kB\n"), Some(16384));
        let old = "MemTotal: 9 kB\nMemFree: 4 kB\nBuffers: 2 kB\nCached: 1 kB\n";
        assert_eq!(parse_available(old), Some(7168));
        assert_eq!(parse_available("MemTotal: 9 kB\nMemFree: 4 kB\n"), None);
    }
}
