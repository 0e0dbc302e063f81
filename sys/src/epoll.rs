//! Sets of descriptors to wait for, at a cost that does not grow with their number (epoll).
//! Called by the networks of `portals3`.
//!
//! Invariant: level-triggered, so that a descriptor that was not read to its end is found again.

use crate::descriptor;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// A set of descriptors, each with a number that its owner chose.
#[derive(Debug)]
pub struct EpollSet(OwnedFd);

/// A descriptor on which something happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EpollEvent {
    /// The number that its owner chose.
    pub number: u64,
    /// There is something to read, the peer has hung up, or an error has occurred.
    pub readable: bool,
    /// It can be written, or an error has occurred.
    pub writable: bool,
}

/// Most events that one call returns.
pub const EVENTS: usize = 64;

impl EpollSet {
    /// An empty set.
    ///
    /// # Errors
    /// That of the system.
    pub fn new() -> io::Result<EpollSet> {
        // The size is a hint that kernels ignore since Linux 2.6.8. SAFETY: touches no memory.
        let fd = unsafe { libc::epoll_create(EVENTS as i32) };
        // SAFETY: the descriptor was just opened, so nothing else owns it.
        unsafe { descriptor::opened(fd) }.map(EpollSet)
    }

    /// Adds a descriptor.
    ///
    /// # Errors
    /// That of the system.
    pub fn add(&self, fd: BorrowedFd<'_>, number: u64, writing: bool) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, fd, number, true, writing)
    }

    /// Says anew what a descriptor of the set is watched for.
    ///
    /// # Errors
    /// That of the system.
    pub fn change(
        &self,
        fd: BorrowedFd<'_>,
        number: u64,
        reading: bool,
        writing: bool,
    ) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, fd, number, reading, writing)
    }

    /// Removes a descriptor, before it is closed: while a forked process still has it too, closing
    /// it here would not.
    pub fn remove(&self, fd: BorrowedFd<'_>) {
        // It fails only if the set has not got it.
        let _ = self.control(libc::EPOLL_CTL_DEL, fd, 0, false, false);
    }

    fn control(
        &self,
        what: i32,
        fd: BorrowedFd<'_>,
        number: u64,
        reading: bool,
        writing: bool,
    ) -> io::Result<()> {
        let events = if reading { libc::EPOLLIN } else { 0 };
        let events = events | if writing { libc::EPOLLOUT } else { 0 };
        let mut event = libc::epoll_event { events: events as u32, u64: number };
        // SAFETY: a live event; a descriptor that is not open is an error.
        match unsafe { libc::epoll_ctl(self.0.as_raw_fd(), what, fd.as_raw_fd(), &mut event) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Waits until something happens, for at most `timeout_ms` milliseconds (`None`: without
    /// end), or until a signal arrives. Fills `events` and returns those that happened.
    pub fn wait<'a>(
        &self,
        events: &'a mut [EpollEvent; EVENTS],
        timeout_ms: Option<u32>,
    ) -> &'a [EpollEvent] {
        let timeout = timeout_ms.map_or(-1, |t| t.min(i32::MAX as u32) as i32);
        let mut found = [const { libc::epoll_event { events: 0, u64: 0 } }; EVENTS];
        // SAFETY: space for this many events.
        let n = unsafe {
            libc::epoll_wait(self.0.as_raw_fd(), found.as_mut_ptr(), EVENTS as i32, timeout)
        };
        let n = usize::try_from(n).unwrap_or(0);
        for (to, from) in events.iter_mut().zip(&found[..n]) {
            let (bits, number) = (from.events as i32, from.u64);
            let broken = bits & (libc::EPOLLERR | libc::EPOLLHUP) != 0;
            *to = EpollEvent {
                number,
                readable: broken || bits & libc::EPOLLIN != 0,
                writable: broken || bits & libc::EPOLLOUT != 0,
            };
        }
        &events[..n]
    }
}

impl AsFd for EpollSet {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl EpollEvent {
    /// Fills places for events.
    pub const NONE: EpollEvent = EpollEvent { number: 0, readable: false, writable: false };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_finds_what_happened() {
        let set = EpollSet::new().unwrap();
        let (from, to) = descriptor::pipe().unwrap();
        set.add(from.as_fd(), 7, false).unwrap();
        let mut events = [EpollEvent::NONE; EVENTS];
        assert!(set.wait(&mut events, Some(0)).is_empty());
        descriptor::write(to.as_raw_fd(), b"x").unwrap();
        let found = set.wait(&mut events, None);
        assert_eq!(found, [EpollEvent { number: 7, readable: true, writable: false }]);
        set.change(from.as_fd(), 7, false, false).unwrap();
        assert!(set.wait(&mut events, Some(0)).is_empty());
        set.change(from.as_fd(), 7, true, false).unwrap();
        assert_eq!(set.wait(&mut events, Some(0)).len(), 1);
        set.remove(from.as_fd());
        assert!(set.wait(&mut events, Some(0)).is_empty());
    }
}
