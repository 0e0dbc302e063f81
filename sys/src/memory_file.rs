//! Memory files: files without a name that processes share.
//!
//! Called as part of `memory`. Invariant: a memory file has lost its name, if it ever had one
//! (`unlinked`), before it has a length. It vanishes with the last process that holds it.

use super::mapping::Mapping;
use super::memory_amount::{MemoryLimits, limits};
use super::unlinked;
pub(super) use super::unlinked::file_system;
pub use super::unlinked::is_file_name;
use crate::byte_count::ByteCount;
use std::ffi::CStr;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// Whether this system has memory files.
pub const HAS_FILES: bool = true;

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

/// What memory files are on this machine, for people to read.
///
/// # Errors
/// Why there are none.
pub fn file_kind() -> io::Result<String> {
    if memfd(c"gasnet").is_ok() {
        return Ok("memfd_create".to_string());
    }
    let (file, folder) = unlinked::create()?;
    let free = file_system(file.as_fd())
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
                "{} of shared memory are more than this process may have in a file, {} (ulimit -f)",
                ByteCount(bytes),
                ByteCount(limit)
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
/// later cannot fail. The kernel may not be able to (Linux before 2.6.23, memory files before
/// 3.5). Then the bytes behind the end of the file are allocated by writing them, and those
/// before it are not.
///
/// # Errors
/// That of the system. For more than 1 MiB also those of [`check_available`], before anything is
/// allocated: the kernel would rather kill processes than refuse the allocation.
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

/// Checks that this many bytes are available now for a memory file.
///
/// # Errors
/// `OutOfMemory` if the machine, its control group or the file system of the file has less. The
/// text says how much was wanted and how much exists.
pub fn check_available(file: BorrowedFd<'_>, bytes: u64) -> io::Result<()> {
    let l = limits();
    let free = file_system(file).map_or(u64::MAX, |(_, free)| free);
    let most = l.available.min(l.total()).min(free);
    if bytes > most { Err(too_much(file, bytes, &l)) } else { Ok(()) }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_much_is_an_error_that_says_so() {
        let f = MemFd::create(c"test").unwrap();
        let e = f.reserve(0, 1 << 50).unwrap_err();
        assert!(e.to_string().contains("1125899906842624"), "{e}");
        let limits = limits();
        assert!(limits.physical > 0 && limits.available > 0 && limits.total() <= limits.physical);
    }
}
