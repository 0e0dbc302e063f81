//! A connection between the supervisors of two hosts.
//!
//! Made by [`super::listener`] and [`super::remote`], owned by the supervisor. Invariants: the
//! other end has proven that it knows the secret of the job; nothing here waits, except
//! [`HostLink::finish`]. The system reports the other end as lost within 5 s after its last sign
//! of life.

use super::message::HostMessage;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, TcpStream};
use std::os::fd::AsFd;
use std::time::Duration;
use sys::poll::{self, PollEntry};
use sys::tcp;

/// Most bytes that wait to be sent; beyond it, the other end is lost.
const MOST_WAITING: usize = 1 << 30;
/// Milliseconds without a sign of life after which the system gives up the other end.
const LOST_MS: u32 = 4000;

/// One end of a connection.
#[derive(Debug)]
pub(in crate::boot) struct HostLink {
    stream: TcpStream,
    received: Vec<u8>,
    outgoing: Vec<u8>,
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
        Ok(HostLink { stream, received, outgoing: Vec::new(), lost: None })
    }

    /// The address of this end.
    pub(in crate::boot) fn own_address(&self) -> Option<IpAddr> {
        self.stream.local_addr().ok().map(|address| address.ip())
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
                Err(e) => self.lose(&e.to_string()),
            }
        }
    }

    /// The messages that have arrived. After the last of a lost connection there are none.
    pub(in crate::boot) fn receive(&mut self) -> Vec<HostMessage> {
        let mut buffer = [0; 64 << 10];
        while self.lost.is_none() {
            match self.stream.read(&mut buffer) {
                Ok(0) => self.lose("it has hung up"),
                Ok(n) => self.received.extend_from_slice(&buffer[..n]),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                Err(e) => self.lose(&e.to_string()),
            }
        }
        let mut messages = Vec::new();
        loop {
            match HostMessage::take(&mut self.received) {
                Ok(Some(message)) => messages.push(message),
                Ok(None) => return messages,
                Err(_) => {
                    self.received.clear();
                    self.lose("it sent what is no message");
                }
            }
        }
    }

    fn lose(&mut self, why: &str) {
        self.lost.get_or_insert_with(|| why.to_string());
        self.outgoing.clear();
    }

    /// Waits until a message has arrived, for at most this time. `None` after it, or if the
    /// connection is lost.
    pub(super) fn await_message(&mut self, within: Duration) -> Option<HostMessage> {
        let end = std::time::Instant::now() + within;
        loop {
            match HostMessage::take(&mut self.received) {
                Ok(Some(message)) => return Some(message),
                Ok(None) if self.lost.is_none() => {}
                _ => return None,
            }
            let left = end.saturating_duration_since(std::time::Instant::now());
            if left.is_zero() {
                return None;
            }
            poll::wait(&mut [self.poll_entry()], Some(left.as_millis() as u32 + 1));
            let mut buffer = [0; 64 << 10];
            match self.stream.read(&mut buffer) {
                Ok(0) => self.lose("it has hung up"),
                Ok(n) => self.received.extend_from_slice(&buffer[..n]),
                Err(e) if matches!(e.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock) => {}
                Err(e) => self.lose(&e.to_string()),
            }
        }
    }

    /// Sends what waits before this process ends, for at most this time.
    pub(in crate::boot) fn finish(&mut self, within: Duration) {
        let end = std::time::Instant::now() + within;
        loop {
            self.flush();
            let left = end.saturating_duration_since(std::time::Instant::now());
            if self.lost.is_some() || self.outgoing.is_empty() || left.is_zero() {
                return;
            }
            poll::wait(&mut [self.poll_entry()], Some(left.as_millis() as u32 + 1));
        }
    }
}
