//! Descriptors: what they lead to, whether programs inherit them, and pipes. Called by `boot`,
//! for `gasnetrun` among others, by `runtime::start`, `ptlrun` and the C interface of `portals3`.
//!
//! Invariants: a descriptor that this crate makes is closed on exec, except by [`redirect`] and
//! [`inheritable_from`]. The call that opens it requests that. Where the kernel is too old
//! (before Linux 2.6.28), the descriptor is opened without the mark and marked afterwards. A
//! child that another thread forks in between inherits it. A descriptor that this crate makes and
//! keeps is none of 0 to 2, even where the program was started with one of those closed. Each
//! system call that opens one is followed by `opened` or `above_standard`. Otherwise the next
//! message on standard error would go to a memory file. Those of `inheritable_from` have the
//! numbers that its caller wants, and the one of `stdio::lead_nowhere` becomes a standard
//! descriptor or is closed at once.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

/// The first number that is no standard descriptor.
pub const FIRST_OWN: RawFd = 3;

/// Marks a descriptor to be closed on exec, and moves it above the standard ones. Returns its
/// number afterwards, negative if it was so before or if the system has no other.
/// Async-signal-safe.
///
/// # Safety
/// Nothing else in this process may own the number.
pub(crate) unsafe fn above_standard(fd: RawFd) -> RawFd {
    match fd {
        ..0 => return fd,
        FIRST_OWN.. => {
            keep_from_programs(fd);
            return fd;
        }
        _ => {}
    }
    let moved = copy_above_standard(fd);
    let errno = crate::errno();
    // SAFETY: the caller gives the number up.
    unsafe { libc::close(fd) };
    crate::set_errno(errno);
    moved
}

/// Marks a descriptor to be closed on exec, unless the call that opened it has done so.
/// Async-signal-safe.
fn keep_from_programs(fd: RawFd) {
    // SAFETY: touches no memory; a number that is not open is an error.
    if unsafe { libc::fcntl(fd, libc::F_GETFD) } & libc::FD_CLOEXEC == 0 {
        // A descriptor that was just opened can be marked.
        let _ = close_on_exec(fd, true);
    }
}

/// A new descriptor above the standard ones, closed on exec, for what `fd` leads to; negative if
/// there is none. Async-signal-safe.
fn copy_above_standard(fd: RawFd) -> RawFd {
    // SAFETY: touches no memory; a number that is not open is an error.
    let new = unsafe { libc::fcntl(fd, libc::F_DUPFD_CLOEXEC, FIRST_OWN) };
    if new >= 0 || crate::errno() != libc::EINVAL {
        return new;
    }
    // Linux before 2.6.24. SAFETY: as above.
    let new = unsafe { libc::fcntl(fd, libc::F_DUPFD, FIRST_OWN) };
    if new >= 0 {
        keep_from_programs(new);
    }
    new
}

/// What a system call has returned; where this kernel lacks the call, or forbids it, what the
/// older way returns.
pub(crate) fn or_older(returned: libc::c_long, older: impl FnOnce() -> i32) -> i32 {
    match returned {
        -1 if matches!(crate::errno(), libc::ENOSYS | libc::EPERM) => older(),
        returned => returned as i32,
    }
}

/// Takes over the descriptor that a system call has returned. Marks it to be closed on exec,
/// and moves it above the standard ones.
///
/// # Errors
/// That of the system call, if the number is negative; that of moving.
///
/// # Safety
/// Nothing else in this process may own the number.
pub(crate) unsafe fn opened(fd: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: nothing else owns the number (`# Safety`).
    match unsafe { above_standard(fd) } {
        ..0 => Err(io::Error::last_os_error()),
        // SAFETY: it is open, and nothing else owns it (`# Safety`).
        fd => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
    }
}

/// [`opened`] for a call that opens two.
///
/// # Errors
/// As there.
///
/// # Safety
/// As there.
pub(crate) unsafe fn opened_pair(fds: [RawFd; 2]) -> io::Result<(OwnedFd, OwnedFd)> {
    // SAFETY: nothing else owns the numbers (`# Safety`).
    let [a, b] = fds.map(|fd| unsafe { opened(fd) });
    Ok((a?, b?))
}

/// Whether a descriptor has this number.
pub fn is_open(fd: RawFd) -> bool {
    // SAFETY: touches no memory; a number that is not open is an error.
    fd >= 0 && unsafe { libc::fcntl(fd, libc::F_GETFD) } >= 0
}

/// What the system knows of the file of a descriptor.
///
/// # Errors
/// That of the system; `fd` may not be open.
pub(crate) fn status(fd: RawFd) -> io::Result<libc::stat> {
    // SAFETY: all-zero is a valid `stat`.
    let mut st: libc::stat = unsafe { core::mem::zeroed() };
    // SAFETY: a live buffer; a descriptor that is not open is an error.
    match unsafe { libc::fstat(fd, &mut st) } {
        0 => Ok(st),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The number (inode) that the system has given to what this descriptor leads to, and to nothing
/// else that is open. `None` if the descriptor is not open.
pub fn inode(fd: RawFd) -> Option<u64> {
    Some(status(fd).ok()?.st_ino)
}

/// What tells this file from all others: the number of its device, and its number there. `None` if
/// the descriptor is not open.
pub fn identity(fd: RawFd) -> Option<[u64; 2]> {
    let status = status(fd).ok()?;
    Some([status.st_dev, status.st_ino])
}

/// A new descriptor that programs inherit, for what the open descriptor `fd` leads to. Its number
/// is `least` or the next that is free.
///
/// # Errors
/// That of the system: there may be no such number within the limit.
pub fn inheritable_from(fd: RawFd, least: RawFd) -> io::Result<OwnedFd> {
    // SAFETY: touches no memory; a number that is not open is an error.
    match unsafe { libc::fcntl(fd, libc::F_DUPFD, least) } {
        ..0 => Err(io::Error::last_os_error()),
        // SAFETY: the descriptor was just opened, so nothing else owns it.
        new => Ok(unsafe { OwnedFd::from_raw_fd(new) }),
    }
}

/// Takes over a descriptor that this process inherited; `None` if none has this number.
///
/// # Safety
/// Nothing else in this process may own the number.
pub unsafe fn inherited(fd: RawFd) -> Option<OwnedFd> {
    if !is_open(fd) {
        return None;
    }
    // SAFETY: it is open, and nothing else owns it (`# Safety`).
    Some(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// A new descriptor, closed on exec, for what the open descriptor `fd` leads to.
///
/// # Errors
/// That of the system; `fd` may not be open.
pub fn duplicate(fd: RawFd) -> io::Result<OwnedFd> {
    match copy_above_standard(fd) {
        ..0 => Err(io::Error::last_os_error()),
        // SAFETY: the descriptor was just opened, so nothing else owns it.
        new => Ok(unsafe { OwnedFd::from_raw_fd(new) }),
    }
}

/// Marks a descriptor to be closed, or to stay open, on exec. Async-signal-safe.
///
/// # Errors
/// That of the system; `fd` may not be open.
pub fn close_on_exec(fd: RawFd, close: bool) -> io::Result<()> {
    let flags = if close { libc::FD_CLOEXEC } else { 0 };
    // SAFETY: touches no memory; a number that is not open is an error.
    match unsafe { libc::fcntl(fd, libc::F_SETFD, flags) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Makes descriptor `standard` lead where `to` leads. It stays open on exec. Async-signal-safe.
///
/// # Errors
/// That of the system.
pub fn redirect(standard: RawFd, to: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: touches no memory; the caller names a standard descriptor, which belongs to the
    // whole process.
    match unsafe { libc::dup2(to.as_raw_fd(), standard) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Closes every descriptor but the standard ones and those of `keep`. Standard input and output
/// lead nowhere afterwards. For a process that was just forked and does not use what its parent
/// had open.
pub fn close_all_but(keep: &[RawFd]) {
    crate::stdio::lead_nowhere(0..2);
    let mut kept: Vec<RawFd> = keep.iter().copied().filter(|&fd| fd >= FIRST_OWN).collect();
    kept.sort_unstable();
    let close = |first: RawFd, last: RawFd| {
        // SAFETY: the process was just forked, and nothing in it uses these descriptors any more.
        first > last || unsafe { libc::syscall(libc::SYS_close_range, first, last, 0) } == 0
    };
    let mut first = FIRST_OWN;
    for &fd in &kept {
        if !close(first, fd - 1) {
            return close_listed_but(&kept);
        }
        first = fd + 1;
    }
    if !close(first, RawFd::MAX) {
        close_listed_but(&kept);
    }
}

/// As [`close_all_but`], where the kernel cannot close ranges (Linux before 5.9): those that
/// /proc lists, or the first 1024.
fn close_listed_but(keep: &[RawFd]) {
    let listed: Vec<RawFd> = match std::fs::read_dir("/proc/self/fd") {
        Ok(list) => list.flatten().filter_map(|e| e.file_name().to_str()?.parse().ok()).collect(),
        Err(_) => (FIRST_OWN..1024).collect(),
    };
    for fd in listed.into_iter().filter(|fd| *fd >= FIRST_OWN && !keep.contains(fd)) {
        // SAFETY: as above; the list itself is closed already, which is an error.
        unsafe { libc::close(fd) };
    }
}

/// Gives the calling thread a table of descriptors of its own, in which this one alone is open,
/// none of the standard ones. Other threads do not close it then. False if the kernel is older.
#[cfg(feature = "hosted")]
pub(crate) fn keep_for_thread(fd: RawFd) -> bool {
    let close = |first: RawFd, last: RawFd, flags: libc::c_uint| {
        // SAFETY: the first call copies the table, and both close in the copy, which no other
        // thread uses; this one needs `fd` alone (the caller).
        unsafe { libc::syscall(libc::SYS_close_range, first, last, flags) == 0 }
    };
    close(fd + 1, RawFd::MAX, libc::CLOSE_RANGE_UNSHARE) && close(0, fd - 1, 0)
}

/// A pipe: the end to read from, the end to write to, both closed on exec.
///
/// # Errors
/// That of the system.
pub fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut fds = [0; 2];
    // SAFETY: space for two descriptors.
    let r = unsafe { libc::syscall(libc::SYS_pipe2, fds.as_mut_ptr(), libc::O_CLOEXEC) };
    if or_older(r, || older_pipe(&mut fds)) != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptors were just opened, so nothing else owns them.
    unsafe { opened_pair(fds) }
}

/// A pipe on Linux before 2.6.27; 0 or -1. The C library's own call may use the newer one.
fn older_pipe(fds: &mut [RawFd; 2]) -> i32 {
    // SAFETY: space for two descriptors.
    #[cfg(target_arch = "x86_64")]
    let r = unsafe { libc::syscall(libc::SYS_pipe, fds.as_mut_ptr()) as i32 };
    // SAFETY: as above.
    #[cfg(not(target_arch = "x86_64"))]
    let r = unsafe { libc::pipe(fds.as_mut_ptr()) };
    r
}

/// Reads what has arrived, waiting for the first of it, and returns how many bytes; 0 at the
/// end.
///
/// # Errors
/// That of the system.
pub fn read(fd: RawFd, buffer: &mut [u8]) -> io::Result<usize> {
    // SAFETY: the pointer and length are those of a live slice.
    let n = unsafe { libc::read(fd, buffer.as_mut_ptr().cast(), buffer.len()) };
    usize::try_from(n).map_err(|_| io::Error::last_os_error())
}

/// Writes some of `bytes` to a stream and returns how many. A closed socket is an error, never
/// SIGPIPE.
///
/// # Errors
/// That of the system.
pub fn write(fd: RawFd, bytes: &[u8]) -> io::Result<usize> {
    // SAFETY: the pointer and length are those of a live slice.
    let mut n = unsafe { libc::send(fd, bytes.as_ptr().cast(), bytes.len(), libc::MSG_NOSIGNAL) };
    if n < 0 && crate::errno() == libc::ENOTSOCK {
        // SAFETY: as above.
        n = unsafe { libc::write(fd, bytes.as_ptr().cast(), bytes.len()) };
    }
    usize::try_from(n).map_err(|_| io::Error::last_os_error())
}

/// Whether what could not be read may have something later: no bytes are there, or a process in
/// the background of a terminal, which blocks or ignores `SIGTTIN`, has read from it.
pub fn may_be_read_later(e: &io::Error) -> bool {
    matches!(e.raw_os_error(), Some(libc::EAGAIN | libc::EIO))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    /// In a child whose standard descriptors are closed.
    #[test]
    fn nothing_becomes_a_standard_descriptor() {
        // SAFETY: the child makes descriptors and ends.
        let crate::child::Forked::Parent(child) = unsafe { crate::child::fork() }.unwrap() else {
            crate::exit_now(opened_without_standard_ones());
        };
        assert_eq!(crate::child::await_child(child), crate::child::Ended::Exited(0));
    }

    /// 0, or which way to open a descriptor has given a standard one.
    fn opened_without_standard_ones() -> i32 {
        for standard in 0..FIRST_OWN {
            // SAFETY: nothing in this process uses them any more.
            unsafe { libc::close(standard) };
        }
        let me = crate::process::pid();
        let name = format!("gasnet-standard-{me}");
        let set = crate::signal::SignalSet::of(&[crate::signal::Signal::USR2]);
        let all = || -> io::Result<Vec<OwnedFd>> {
            let (a, b) = pipe()?;
            let (c, d) = crate::socket::pair()?;
            let listener = crate::socket::listen(&name, 1)?;
            let connected = crate::socket::connect(&name)?;
            let accepted = crate::socket::accept(listener.as_fd())?;
            crate::socket::send_fds(c.as_fd(), b"x", &[a.as_fd()])?;
            let (_, received) = crate::socket::receive_fds(d.as_fd(), &mut [0; 8])?;
            let file = crate::memory::MemFd::create(c"gasnet-standard")?.into();
            let copy = duplicate(b.as_raw_fd())?;
            let queue = crate::signal::SignalQueue::new(&set)?;
            let lines = crate::file::open_for_lines(c"/dev/null")?;
            // SAFETY: just opened.
            let lines = unsafe { OwnedFd::from_raw_fd(lines) };
            let queue = queue.fd().map(|fd| duplicate(fd.as_raw_fd())).transpose()?;
            let made = [a, b, c, d, listener, connected, accepted, file, copy, lines];
            Ok(made.into_iter().chain(queue).chain(received).collect())
        };
        let Ok(all) = all() else { return 100 };
        let standard = all.iter().position(|fd| fd.as_raw_fd() < FIRST_OWN);
        let inherited = all.iter().any(|fd| {
            // SAFETY: touches no memory.
            unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_GETFD) & libc::FD_CLOEXEC == 0 }
        });
        match standard {
            Some(i) => i as i32 + 1,
            None if all.len() < 11 || inherited || (0..FIRST_OWN).any(is_open) => 101,
            None => 0,
        }
    }

    #[test]
    fn a_duplicate_leads_to_the_same() {
        let (from, to) = pipe().unwrap();
        let copy = duplicate(to.as_raw_fd()).unwrap();
        assert_ne!(copy.as_raw_fd(), to.as_raw_fd());
        assert_eq!(inode(copy.as_raw_fd()), inode(to.as_raw_fd()));
        drop(to);
        assert_eq!(write(copy.as_raw_fd(), b"abc").unwrap(), 3);
        drop(copy);
        let mut buffer = [0; 8];
        assert_eq!(read(from.as_raw_fd(), &mut buffer).unwrap(), 3);
        assert_eq!(read(from.as_raw_fd(), &mut buffer).unwrap(), 0);
        assert!(is_open(from.as_raw_fd()) && !is_open(-1) && inode(-1).is_none());
    }
}
