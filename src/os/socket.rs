//! Socket pairs between two processes of one host that keep the bounds of messages, and waiting for descriptors.
//! Called by `boot`.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

/// Two connected ends (SOCK_SEQPACKET), both closed on exec.
pub fn pair() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut fds = [0; 2];
    // SAFETY: room for two descriptors.
    let r = unsafe {
        libc::socketpair(libc::AF_UNIX, libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC, 0, fds.as_mut_ptr())
    };
    if r != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: two descriptors that were just opened and belong to nobody else.
    Ok(unsafe { (OwnedFd::from_raw_fd(fds[0]), OwnedFd::from_raw_fd(fds[1])) })
}

/// Sends one message; with `wait`, until there is room. A closed peer is an error, never SIGPIPE.
/// Async-signal-safe.
pub fn send(fd: RawFd, message: &[u8], wait: bool) -> io::Result<()> {
    let flags = libc::MSG_NOSIGNAL | if wait { 0 } else { libc::MSG_DONTWAIT };
    // SAFETY: the pointer and length are those of a live slice.
    match unsafe { libc::send(fd, message.as_ptr().cast(), message.len(), flags) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Receives one message and returns its length; 0 if the peer has hung up.
pub fn receive(fd: RawFd, buffer: &mut [u8], wait: bool) -> io::Result<usize> {
    let flags = if wait { 0 } else { libc::MSG_DONTWAIT };
    // SAFETY: the pointer and length are those of a live slice.
    match unsafe { libc::recv(fd, buffer.as_mut_ptr().cast(), buffer.len(), flags) } {
        -1 => Err(io::Error::last_os_error()),
        n => Ok(n as usize),
    }
}

/// Has the kernel send a signal to this process whenever something happens on the socket; `None`: no longer.
pub fn signal_on_event(fd: BorrowedFd<'_>, signal: Option<i32>) -> io::Result<()> {
    let fd = fd.as_raw_fd();
    // SAFETY: plain system calls on a live descriptor.
    let ok = unsafe {
        let flags = libc::fcntl(fd, libc::F_GETFL);
        match signal {
            None => libc::fcntl(fd, libc::F_SETFL, flags & !libc::O_ASYNC) == 0,
            Some(signal) => {
                libc::fcntl(fd, libc::F_SETOWN, libc::getpid()) == 0
                    && libc::fcntl(fd, F_SETSIG, signal) == 0
                    && libc::fcntl(fd, libc::F_SETFL, flags | libc::O_ASYNC) == 0
            }
        }
    };
    if ok { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The same number on every architecture of Linux.
const F_SETSIG: i32 = 10;

/// Whether the peer has hung up. Async-signal-safe.
pub fn hung_up(fd: RawFd) -> bool {
    let mut p = libc::pollfd { fd, events: libc::POLLRDHUP, revents: 0 };
    // SAFETY: one live entry.
    let n = unsafe { libc::poll(&mut p, 1, 0) };
    n == 1 && p.revents & (libc::POLLHUP | libc::POLLRDHUP | libc::POLLERR) != 0
}

/// Marks a descriptor to be closed, or to stay open, on exec.
pub fn close_on_exec(fd: BorrowedFd<'_>, close: bool) -> io::Result<()> {
    // SAFETY: plain system call on a live descriptor.
    match unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_SETFD, if close { libc::FD_CLOEXEC } else { 0 }) } {
        -1 => Err(io::Error::last_os_error()),
        _ => Ok(()),
    }
}

/// Takes over a descriptor that this process inherited; `None` if there is none of this number.
///
/// # Safety
/// Nobody else in this process uses the number as a descriptor of his own.
pub unsafe fn inherited(fd: RawFd) -> Option<OwnedFd> {
    // SAFETY: plain query.
    if fd < 0 || unsafe { libc::fcntl(fd, libc::F_GETFD) } < 0 {
        return None;
    }
    // SAFETY: it is open, and nobody else's by the caller's promise.
    Some(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Waits until one of the descriptors has something, or for `timeout_ms` (`None`: forever). Entries with a negative
/// descriptor are passed over.
pub fn poll(fds: &mut [libc::pollfd], timeout_ms: Option<u32>) {
    let timeout = timeout_ms.map_or(-1, |t| t.min(i32::MAX as u32) as i32);
    // SAFETY: the pointer and length are those of a live slice.
    unsafe { libc::poll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, timeout) };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_and_hang_up() {
        let (a, b) = pair().unwrap();
        send(a.as_raw_fd(), b"one", true).unwrap();
        send(a.as_raw_fd(), b"three", false).unwrap();
        let mut buffer = [0; 16];
        assert_eq!(receive(b.as_raw_fd(), &mut buffer, true).unwrap(), 3);
        assert_eq!(receive(b.as_raw_fd(), &mut buffer, true).unwrap(), 5);
        assert_eq!(receive(b.as_raw_fd(), &mut buffer, false).unwrap_err().kind(), io::ErrorKind::WouldBlock);
        assert!(!hung_up(b.as_raw_fd()));
        drop(a);
        assert!(hung_up(b.as_raw_fd()));
        assert_eq!(receive(b.as_raw_fd(), &mut buffer, true).unwrap(), 0);
        assert!(send(b.as_raw_fd(), b"x", true).is_err());
    }
}
