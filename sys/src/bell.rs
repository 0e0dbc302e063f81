//! Bells: a process that waits for descriptors is woken by the other processes of its host.
//! Called by `portals3`, whose processes otherwise sleep on a word of shared memory.
//!
//! A bell is a datagram socket with a random name in the abstract namespace. Invariant: a ring
//! stays until the owner of the bell has silenced it, so that a ring just before a wait ends it.

use crate::{descriptor, random, socket};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

/// The bell of a process.
#[derive(Debug)]
pub struct Bell {
    socket: OwnedFd,
    name: u64,
}

impl Bell {
    /// A new bell.
    ///
    /// # Errors
    /// That of the system.
    pub fn new() -> io::Result<Bell> {
        let (socket, name) = (new_socket()?, random::number()? | 1);
        let (address, length) = socket::address(&text(name))?;
        // SAFETY: an address of the stated length.
        match unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length) } {
            0 => Ok(Bell { socket, name }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Its name for [`ring`]; never 0.
    pub fn name(&self) -> u64 {
        self.name
    }

    /// Whether it rings now; silent afterwards.
    pub fn silence(&self) -> bool {
        let mut rang = false;
        // A stranger can ring without end.
        for _ in 0..64 {
            if socket::receive(self.as_fd(), &mut [0; 8], false).is_err() {
                break;
            }
            rang = true;
        }
        rang
    }
}

/// Can be read while it rings.
impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

fn text(name: u64) -> String {
    format!("gasnet-bell-{name:016x}")
}

fn new_socket() -> io::Result<OwnedFd> {
    // SAFETY: touches no memory.
    let fd = unsafe { libc::socket(libc::AF_UNIX, libc::SOCK_DGRAM, 0) };
    // SAFETY: the descriptor was just opened, so nothing else owns it.
    unsafe { descriptor::opened(fd) }
}

/// Rings the bell with this name. If there is none, nothing happens. If its owner has not looked
/// at many rings yet, one more changes nothing.
pub fn ring(name: u64) {
    let (Ok(socket), Ok((address, length))) = (new_socket(), socket::address(&text(name))) else {
        return;
    };
    let flags = libc::MSG_NOSIGNAL | libc::MSG_DONTWAIT;
    // SAFETY: a live byte, and an address of the stated length.
    unsafe {
        libc::sendto(
            socket.as_raw_fd(),
            [0u8].as_ptr().cast(),
            1,
            flags,
            (&raw const address).cast(),
            length,
        )
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::poll;

    #[test]
    fn a_ring_stays_until_it_is_silenced() {
        let bell = Bell::new().unwrap();
        assert!(!bell.silence());
        for _ in 0..1000 {
            ring(bell.name());
        }
        assert!(poll::readable(bell.as_fd()));
        while bell.silence() {}
        assert!(!poll::readable(bell.as_fd()));
        ring(bell.name());
        assert!(bell.silence() && !bell.silence());
        let name = bell.name();
        drop(bell);
        ring(name);
    }
}
