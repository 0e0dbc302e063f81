//! Waiting for descriptors. Called by `boot`.
//!
//! Invariant: nothing is read from a descriptor here. A wait may end early, because of a signal.

use std::os::fd::{AsRawFd, BorrowedFd, RawFd};

/// A descriptor to wait for, and what happened on it. Its number is all that it holds: a
/// descriptor that was closed meanwhile counts as one on which something happened.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct PollEntry(libc::pollfd);

impl core::fmt::Debug for PollEntry {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "PollEntry({}, {:#x}, {:#x})", self.0.fd, self.0.events, self.0.revents)
    }
}

impl PollEntry {
    /// Waits until there is something to read, or the other side has hung up. `None`: the entry
    /// is passed over.
    pub fn reading(fd: Option<BorrowedFd<'_>>) -> PollEntry {
        PollEntry::of(fd.map_or(-1, |fd| fd.as_raw_fd()), libc::POLLIN)
    }

    /// As [`PollEntry::reading`], of a number; a negative one is passed over.
    pub fn reading_number(fd: RawFd) -> PollEntry {
        PollEntry::of(fd, libc::POLLIN)
    }

    fn of(fd: RawFd, events: i16) -> PollEntry {
        PollEntry(libc::pollfd { fd, events, revents: 0 })
    }

    /// Waits until the descriptor can be written.
    pub fn writing(fd: BorrowedFd<'_>) -> PollEntry {
        PollEntry::of(fd.as_raw_fd(), libc::POLLOUT)
    }

    /// As [`PollEntry::writing`], of a number.
    pub fn writing_number(fd: RawFd) -> PollEntry {
        PollEntry::of(fd, libc::POLLOUT)
    }

    /// If `wanted`, waits also until the descriptor can be written.
    pub fn or_writing(mut self, wanted: bool) -> PollEntry {
        if wanted {
            self.0.events |= libc::POLLOUT;
        }
        self
    }

    /// Whether [`wait`] found anything, an error included.
    pub fn happened(&self) -> bool {
        self.0.revents != 0
    }
}

/// Waits until something happens on one of the descriptors, for at most `timeout_ms`
/// milliseconds (`None`: without end), or until a signal arrives.
pub fn wait(entries: &mut [PollEntry], timeout_ms: Option<u32>) {
    let timeout = timeout_ms.map_or(-1, |t| t.min(i32::MAX as u32) as i32);
    // SAFETY: the pointer and length are those of a live slice, of a type that is a pollfd.
    unsafe { libc::poll(entries.as_mut_ptr().cast(), entries.len() as libc::nfds_t, timeout) };
}

/// As [`wait`], for at most this many nanoseconds.
pub fn wait_ns(entries: &mut [PollEntry], timeout_ns: u64) {
    let timeout = libc::timespec {
        tv_sec: (timeout_ns / 1_000_000_000).min(i32::MAX as u64) as libc::time_t,
        tv_nsec: (timeout_ns % 1_000_000_000) as libc::c_long,
    };
    let (n, mask) = (entries.len() as libc::nfds_t, core::ptr::null());
    // SAFETY: the pointer and length are those of a live slice, of a type that is a pollfd; a
    // live timeout; null leaves the signals as they are.
    unsafe { libc::ppoll(entries.as_mut_ptr().cast(), n, &timeout, mask) };
}

/// Whether there is something to read now, or the other side has hung up.
pub fn readable(fd: BorrowedFd<'_>) -> bool {
    let mut entry = [PollEntry::reading(Some(fd))];
    wait(&mut entry, Some(0));
    entry[0].happened()
}

/// Whether the descriptor with this number can be written now, or never.
pub fn writable_number(fd: RawFd) -> bool {
    let mut entry = [PollEntry::writing_number(fd)];
    wait(&mut entry, Some(0));
    entry[0].happened()
}

/// Whether the other side of a socket has hung up. Async-signal-safe.
pub fn hung_up(fd: BorrowedFd<'_>) -> bool {
    let mut entry = [PollEntry::of(fd.as_raw_fd(), libc::POLLRDHUP)];
    wait(&mut entry, Some(0));
    entry[0].0.revents & (libc::POLLHUP | libc::POLLRDHUP | libc::POLLERR) != 0
}
