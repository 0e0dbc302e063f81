//! Memory files where the kernel has no `memfd_create` (before Linux 3.17), or forbids it. They
//! are files in /dev/shm, else in TMPDIR or /tmp, whose name is removed at once. Called by
//! `memory`.
//!
//! Invariant: a name is left only by a process that is killed between two system calls. One
//! call makes the name, the other removes it. Its file is empty, and the next call that
//! makes a file removes the name.

use crate::descriptor;
use std::ffi::OsStr;
use std::fs::{self, OpenOptions};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, IntoRawFd, OwnedFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// How the names begin; 16 hexadecimal digits follow.
const PREFIX: &str = "gasnet-memory-";

/// Whether this is the name of a memory file, in /dev/shm or a temporary folder. The name exists
/// between two system calls, or since its process was killed between them. The library makes no
/// other name there.
pub fn is_file_name(name: &OsStr) -> bool {
    let digits = name.to_str().and_then(|name| name.strip_prefix(PREFIX));
    digits.is_some_and(|d| d.len() == 16 && d.bytes().all(|b| b.is_ascii_hexdigit()))
}

/// Where the files may be, the best folder first.
fn folders() -> [PathBuf; 2] {
    let temporary = std::env::var_os("TMPDIR").filter(|folder| !folder.is_empty());
    [PathBuf::from("/dev/shm"), temporary.map_or("/tmp".into(), PathBuf::from)]
}

/// An empty file without a name, closed on exec, and its folder.
///
/// # Errors
/// Those of the system, with the folders that were tried.
pub(crate) fn create() -> io::Result<(OwnedFd, PathBuf)> {
    let (mut kind, mut text) = (io::ErrorKind::Other, String::new());
    for folder in folders() {
        match create_in(&folder) {
            Ok(file) => return Ok((file, folder)),
            Err(e) => {
                text += &format!(", {}: {e}", folder.display());
                kind = e.kind();
            }
        }
    }
    Err(io::Error::new(kind, format!("memfd_create fails, and so do files{text}")))
}

fn create_in(folder: &Path) -> io::Result<OwnedFd> {
    remove_leftovers(folder);
    let path = folder.join(format!("{PREFIX}{:016x}", crate::random::number()?));
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).create_new(true).mode(0o600).open(&path)?;
    match fs::remove_file(&path) {
        // Another process has taken it for a leftover.
        Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
        _ => {}
    }
    // SAFETY: the file has given its descriptor up, so nothing else owns it.
    unsafe { descriptor::opened(file.into_raw_fd()) }
}

/// Removes the names that killed processes have left. The name of a process that is about to
/// remove it may be among them, which does no harm.
fn remove_leftovers(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if is_file_name(&entry.file_name()) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// The bytes of the file system that holds a file: all, and those that are free. `None` if it is
/// bounded by the memory of the machine alone, as that of `memfd_create` is.
pub(crate) fn file_system(file: BorrowedFd<'_>) -> Option<(u64, u64)> {
    // SAFETY: all-zero is a valid `statfs`.
    let mut s: libc::statfs = unsafe { core::mem::zeroed() };
    // SAFETY: a live descriptor and a live buffer.
    let known = unsafe { libc::fstatfs(file.as_raw_fd(), &mut s) } == 0 && s.f_blocks > 0;
    let bytes = |blocks: u64| blocks.saturating_mul(s.f_bsize as u64);
    #[allow(clippy::unnecessary_cast, reason = "other types in other C libraries")]
    known.then(|| (bytes(s.f_blocks as u64), bytes(s.f_bavail as u64)))
}

/// Allocates what the file lacks up to this length, by writing zeros behind its end: bytes that
/// other processes have stored stay. A file is lengthened by this alone, so it has no holes.
///
/// # Errors
/// That of the system; the length is then what it was before.
pub(crate) fn lengthen(file: BorrowedFd<'_>, length: u64) -> io::Result<()> {
    static ZEROS: [u8; 1 << 16] = [0; 1 << 16];
    let _alone = FileLock::new(file)?;
    let before = descriptor::status(file.as_raw_fd())?.st_size as u64;
    let mut at = before;
    while at < length {
        let part = (length - at).min(ZEROS.len() as u64) as usize;
        // SAFETY: a live descriptor, and a live buffer of at least that size.
        let n = unsafe {
            libc::pwrite(file.as_raw_fd(), ZEROS.as_ptr().cast(), part, at as libc::off_t)
        };
        match u64::try_from(n) {
            Ok(n) => at += n,
            Err(_) if crate::errno() == libc::EINTR => {}
            Err(_) => {
                let e = io::Error::last_os_error();
                // SAFETY: a live descriptor.
                unsafe { libc::ftruncate(file.as_raw_fd(), before as libc::off_t) };
                return Err(e);
            }
        }
    }
    Ok(())
}

/// While it lives, other processes wait for the lock of this file.
struct FileLock<'a>(BorrowedFd<'a>);

impl FileLock<'_> {
    fn new(file: BorrowedFd<'_>) -> io::Result<FileLock<'_>> {
        loop {
            if set_lock(file, libc::F_WRLCK) {
                return Ok(FileLock(file));
            }
            let e = io::Error::last_os_error();
            if e.kind() != io::ErrorKind::Interrupted {
                return Err(e);
            }
        }
    }
}

impl Drop for FileLock<'_> {
    fn drop(&mut self) {
        set_lock(self.0, libc::F_UNLCK);
    }
}

/// Whether the lock of this process on the whole file could be set so, waiting for it.
fn set_lock(file: BorrowedFd<'_>, kind: i32) -> bool {
    // SAFETY: all-zero is a valid `flock`: the whole file.
    let mut lock: libc::flock = unsafe { core::mem::zeroed() };
    (lock.l_type, lock.l_whence) = (kind as _, libc::SEEK_SET as _);
    // SAFETY: a live descriptor and a live structure.
    unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETLKW, &lock) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::child::{self, Ended, Forked};
    use crate::memory::Mapping;
    use crate::process;
    use crate::signal::Signal;
    use std::os::fd::AsFd;

    /// An empty folder of this test's own.
    fn folder(name: &str) -> PathBuf {
        let path = std::env::temp_dir().join(format!("unlinked-{name}-{}", process::pid()));
        fs::create_dir_all(&path).unwrap();
        path
    }

    fn names(folder: &Path) -> usize {
        fs::read_dir(folder).unwrap().count()
    }

    #[test]
    fn a_file_has_no_name_and_is_private() {
        use std::os::unix::fs::MetadataExt;
        let folder = folder("private");
        let file = fs::File::from(create_in(&folder).unwrap());
        assert_eq!(names(&folder), 0);
        let metadata = file.metadata().unwrap();
        assert_eq!((metadata.nlink(), metadata.mode() & 0o077, metadata.len()), (0, 0, 0));
        assert!(create_in(&folder.join("missing")).is_err());
        fs::remove_dir(&folder).unwrap();
    }

    #[test]
    fn a_killed_process_leaves_no_name_for_long() {
        let folder = folder("killed");
        let leftover = folder.join(format!("{PREFIX}{:016x}", 5));
        let foreign = folder.join(format!("{PREFIX}other"));
        for path in [&leftover, &foreign] {
            fs::write(path, "").unwrap();
        }
        create_in(&folder).unwrap();
        assert!(!leftover.exists() && foreign.exists());
        fs::remove_file(&foreign).unwrap();
        for round in 0..20 {
            // SAFETY: the child uses no lock that another test may hold, but the allocator's.
            let Forked::Parent(child) = unsafe { child::fork() }.unwrap() else {
                loop {
                    let _ = create_in(&folder);
                }
            };
            crate::clock::sleep_ns(2_000_000 + 10_000 * round);
            process::kill(child, Signal::KILL);
            child::await_child(child);
            create_in(&folder).unwrap();
            assert_eq!(names(&folder), 0);
        }
        fs::remove_dir(&folder).unwrap();
    }

    #[test]
    fn lengthening_keeps_what_others_have_stored() {
        const PROCESSES: usize = 8;
        const PART: usize = 1 << 20;
        let (file, _) = create().unwrap();
        let map = || Mapping::shared(file.as_fd(), 0, PROCESSES * PART);
        let children: Vec<u32> = (0..PROCESSES)
            .map(|i| {
                // SAFETY: the child uses no lock that another test may hold, but the allocator's.
                let Forked::Parent(child) = unsafe { child::fork() }.unwrap() else {
                    let lengthened = lengthen(file.as_fd(), (PROCESSES * PART) as u64);
                    let Ok(mapping) = lengthened.and_then(|()| map()) else { crate::exit_now(1) };
                    // SAFETY: within the mapping, to which no reference exists.
                    unsafe { mapping.as_ptr().add(i * PART).write_bytes(i as u8 + 1, PART) };
                    crate::exit_now(0)
                };
                child
            })
            .collect();
        for child in children {
            assert_eq!(child::await_child(child), Ended::Exited(0));
        }
        let mapping = map().unwrap();
        for i in 0..PROCESSES * PART {
            // SAFETY: as above.
            let byte = unsafe { mapping.as_ptr().add(i).read() };
            assert_eq!(usize::from(byte), i / PART + 1);
        }
    }

    #[test]
    fn a_memory_file_is_bounded_by_the_machine_alone() {
        let kind = crate::memory::file_kind().unwrap();
        let file = crate::memory::MemFd::create(c"test").unwrap();
        assert_eq!(file_system(file.as_fd()).is_none(), kind == "memfd_create");
        let (file, folder) = create().unwrap();
        let (all, free) = file_system(file.as_fd()).unwrap();
        assert!(free <= all && folder.is_absolute());
    }
}
