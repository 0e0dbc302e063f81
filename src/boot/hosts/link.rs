//! A connection between the supervisors of two hosts.
//!
//! Made by [`super::listener`] and [`super::root_address`], owned by the supervisor. Invariants:
//! the other end has proven that it knows the secret of the job; nothing here waits, except
//! [`HostLink::finish`]. The system reports the other end as lost within 5 s after its last sign
//! of life.

use super::message::{HostMessage, NoMessage};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};
use sys::poll::{self, PollEntry};
use sys::tcp;

/// Most bytes that wait to be sent; beyond it, the other end is lost.
const MOST_WAITING: usize = 1 << 30;
/// How long the last messages may take.
const LAST_MESSAGE: Duration = Duration::from_secs(2);
/// Milliseconds without a sign of life after which the system gives up the other end.
const LOST_MS: u32 = 4000;

/// One end of a connection.
#[derive(Debug)]
pub(in crate::boot) struct HostLink {
    stream: TcpStream,
    received: Vec<u8>,
    outgoing: Vec<u8>,
    /// The other end takes nothing more. Messages that it has sent before may still be unread.
    is_closed_there: bool,
    /// Why it is of no use any more.
    lost: Option<String>,
}

impl HostLink {
    /// Over a stream whose other end has been checked. `received`: what came behind its proof.
    ///
    /// # Errors
    /// That of the system.
    pub(super) fn new(stream: TcpStream, received: Vec<u8>) -> io::Result<HostLink> {
        stream.set_nonblocking(true)?;
        tcp::tune(stream.as_fd(), LOST_MS)?;
        Ok(HostLink { stream, received, outgoing: Vec::new(), is_closed_there: false, lost: None })
    }

    /// The address of this end.
    pub(in crate::boot) fn own_address(&self) -> Option<IpAddr> {
        self.stream.local_addr().ok().map(|address| address.ip())
    }

    /// The address of the other end.
    pub(in crate::boot) fn peer_address(&self) -> Option<IpAddr> {
        self.stream.peer_addr().ok().map(|address| address.ip())
    }

    /// What to poll.
    pub(in crate::boot) fn poll_entry(&self) -> PollEntry {
        let fd = self.lost.is_none().then(|| self.stream.as_fd());
        PollEntry::reading(fd).or_writing(!self.outgoing.is_empty())
    }

    /// Why it is lost, if it is.
    pub(in crate::boot) fn lost(&self) -> Option<&str> {
        self.lost.as_deref()
    }

    /// Sends a message, now or when there is room.
    pub(in crate::boot) fn send(&mut self, message: &HostMessage) {
        if self.is_closed_there {
            return;
        }
        self.outgoing.extend(message.encode());
        self.flush();
        if self.outgoing.len() > MOST_WAITING {
            self.lose("it takes no messages");
        }
    }

    /// Sends what waits, as far as there is room.
    pub(in crate::boot) fn flush(&mut self) {
        while self.lost.is_none() && !self.outgoing.is_empty() {
            match self.stream.write(&self.outgoing) {
                Ok(n) => drop(self.outgoing.drain(..n)),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) if e.kind() == ErrorKind::WouldBlock => return,
                Err(_) => {
                    self.is_closed_there = true;
                    self.outgoing.clear();
                }
            }
        }
    }

    /// The messages that have arrived. After the last of a lost connection there are none.
    pub(in crate::boot) fn receive(&mut self) -> Vec<HostMessage> {
        self.read();
        std::iter::from_fn(|| self.next()).collect()
    }

    /// Reads what has arrived.
    fn read(&mut self) {
        let mut buffer = [0; 64 << 10];
        while self.lost.is_none() {
            match self.stream.read(&mut buffer) {
                Ok(0) => self.lose("it has hung up"),
                Ok(n) => self.received.extend_from_slice(&buffer[..n]),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) if e.kind() == ErrorKind::WouldBlock => return,
                Err(e) => self.lose(&e.to_string()),
            }
        }
    }

    /// The next message of what was read, if it is complete.
    fn next(&mut self) -> Option<HostMessage> {
        HostMessage::take(&mut self.received).unwrap_or_else(|NoMessage| {
            self.received.clear();
            self.lose("it sent what is no message");
            None
        })
    }

    fn lose(&mut self, why: &str) {
        self.lost.get_or_insert_with(|| why.to_string());
        self.outgoing.clear();
    }

    /// Waits until a message has arrived, for at most this time. `None` after it, or if the
    /// connection is lost.
    pub(super) fn await_message(&mut self, within: Duration) -> Option<HostMessage> {
        let end = Instant::now() + within;
        loop {
            if let Some(message) = self.next() {
                return Some(message);
            }
            if self.lost.is_some() || !self.wait(end) {
                return None;
            }
            self.read();
        }
    }

    /// Waits until something happens on the connection. False at the end of the time.
    fn wait(&self, end: Instant) -> bool {
        let left = end.saturating_duration_since(Instant::now());
        poll::wait(&mut [self.poll_entry()], Some(left.as_millis() as u32 + 1));
        !left.is_zero()
    }

    /// Sends what waits before this process ends, within [`LAST_MESSAGE`].
    pub(in crate::boot) fn finish(&mut self) {
        let end = Instant::now() + LAST_MESSAGE;
        loop {
            self.flush();
            if self.lost.is_some() || self.outgoing.is_empty() || !self.wait(end) {
                return;
            }
        }
    }
}

impl AsFd for HostLink {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, TcpListener};

    /// A host that ends says so and closes its connection, whatever is sent to it meanwhile.
    #[test]
    fn the_last_message_of_a_closed_connection_is_read() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let there = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let mut here = HostLink::new(listener.accept().unwrap().0, Vec::new()).unwrap();
        let mut there = HostLink::new(there, Vec::new()).unwrap();
        there.send(&HostMessage::Ended(5));
        there.finish();
        here.send(&HostMessage::Status);
        drop(there);
        for _ in 0..1000 {
            here.send(&HostMessage::Status);
            if here.is_closed_there {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(here.is_closed_there);
        assert_eq!(here.lost(), None);
        assert_eq!(here.receive(), [HostMessage::Ended(5)]);
        assert!(here.lost().is_some());
    }
}
