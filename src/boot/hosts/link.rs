//! A connection between the supervisors of two hosts.
//!
//! Made by [`super::listener`] and [`super::root_address`], owned by the supervisor. Invariants:
//! the other end has proven that it knows the secret of the job; nothing here waits, except
//! [`HostLink::finish`]. The system reports the other host as lost within 5 s after its last sign
//! of life. A host that works gives signs of life while its supervisor is stopped: see `parts`.

use super::message::HostMessage;
use super::parts::{MessageParts, NoMessage};
use crate::boot::decision::ExitDecision;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Shutdown, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};
use sys::poll::{self, PollEntry};
use sys::tcp;

/// Most bytes that wait to be sent; beyond it, the other end is lost.
const MOST_WAITING: usize = 1 << 30;
/// Bytes that are read at a time.
const READ_AT_ONCE: usize = 64 << 10;
/// How long the last messages may take.
const LAST_MESSAGE: Duration = Duration::from_secs(2);
/// Milliseconds without a sign of life after which the system gives up the other end.
pub(in crate::boot) const LOST_MS: u32 = 4000;

/// One end of a connection.
#[derive(Debug)]
pub(in crate::boot) struct HostLink {
    stream: TcpStream,
    parts: MessageParts,
    /// For what arrives. Not on the stack, which may be small (`ulimit -s`).
    buffer: Box<[u8]>,
    /// What the system has had no room for.
    leaving: Vec<u8>,
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
    pub(super) fn new(stream: TcpStream, received: &[u8]) -> io::Result<HostLink> {
        stream.set_nonblocking(true)?;
        tcp::tune(stream.as_fd(), LOST_MS)?;
        let mut parts = MessageParts::default();
        parts.add(received);
        Ok(HostLink {
            stream,
            parts,
            buffer: vec![0; READ_AT_ONCE].into_boxed_slice(),
            leaving: Vec::new(),
            is_closed_there: false,
            lost: None,
        })
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
        PollEntry::reading(fd).or_writing(!self.leaving.is_empty())
    }

    /// Why it is lost, if it is.
    pub(in crate::boot) fn lost(&self) -> Option<&str> {
        self.lost.as_deref()
    }

    /// Sends a message, now or when there is room.
    pub(in crate::boot) fn send(&mut self, message: &HostMessage) {
        if self.is_closed_there || self.lost.is_some() {
            return;
        }
        self.parts.push(message);
        self.flush();
        if self.parts.waiting_bytes() > MOST_WAITING {
            self.lose("it takes no messages");
        }
    }

    /// Sends what waits, as far as there is room.
    pub(in crate::boot) fn flush(&mut self) {
        while self.lost.is_none() && !self.is_closed_there {
            if self.leaving.is_empty() {
                let Some(part) = self.parts.next_part() else { return };
                self.leaving = part;
            }
            match self.stream.write(&self.leaving) {
                Ok(n) => drop(self.leaving.drain(..n)),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) if e.kind() == ErrorKind::WouldBlock => return,
                Err(_) => {
                    self.is_closed_there = true;
                    self.forget();
                }
            }
        }
    }

    /// Sends nothing more.
    fn forget(&mut self) {
        self.leaving.clear();
        self.parts.clear();
    }

    /// The messages that have arrived. After the last of a lost connection there are none.
    pub(in crate::boot) fn receive(&mut self) -> Vec<HostMessage> {
        self.read();
        let messages = std::iter::from_fn(|| self.next()).collect();
        // The other end may have made room, or is to learn what was read.
        self.flush();
        messages
    }

    /// Reads what has arrived.
    fn read(&mut self) {
        while self.lost.is_none() {
            match self.stream.read(&mut self.buffer) {
                Ok(0) => self.lose("it has hung up"),
                Ok(n) => self.parts.add(&self.buffer[..n]),
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) if e.kind() == ErrorKind::WouldBlock => return,
                Err(e) => self.lose(&e.to_string()),
            }
        }
    }

    /// The next message of what was read, if it is complete.
    fn next(&mut self) -> Option<HostMessage> {
        self.parts.take().unwrap_or_else(|NoMessage| {
            self.parts = MessageParts::default();
            self.lose("it sent what is no message");
            None
        })
    }

    /// The other end learns of it, and need not wait for the end of this process.
    fn lose(&mut self, why: &str) {
        self.lost.get_or_insert_with(|| why.to_string());
        self.forget();
        // Fails only if the connection has ended.
        let _ = self.stream.shutdown(Shutdown::Both);
    }

    /// Waits until a message has arrived, for at most this time. `None` after it, or if the
    /// connection is lost.
    pub(super) fn await_message(&mut self, within: Duration) -> Option<HostMessage> {
        let end = Instant::now() + within;
        loop {
            if let Some(message) = self.next() {
                return Some(message);
            }
            self.flush();
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

    /// Says that this host has failed with this code and has no ranks, and ends the connection.
    pub(in crate::boot) fn fail(&mut self, code: i32) {
        self.send(&HostMessage::Decision(ExitDecision { code, ..ExitDecision::FAILURE }));
        self.send(&HostMessage::Ended(code));
        self.finish();
    }

    /// Ends the connection when the other end has read everything and has hung up too, within
    /// [`LAST_MESSAGE`]. What it still sends is read and dropped: if a process ends that has not
    /// read everything, the system drops what it has sent.
    pub(in crate::boot) fn finish(&mut self) {
        let end = Instant::now() + LAST_MESSAGE;
        let mut has_ended = false;
        loop {
            self.receive();
            let is_sent = self.leaving.is_empty() && self.parts.waiting_bytes() == 0;
            if is_sent && !has_ended {
                has_ended = true;
                // Fails only if the connection has ended.
                let _ = self.stream.shutdown(Shutdown::Write);
            }
            if self.lost.is_some() || !self.wait(end) {
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
    use std::thread;

    /// Both ends of a connection.
    fn ends() -> [HostLink; 2] {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let there = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        [listener.accept().unwrap().0, there].map(|stream| HostLink::new(stream, &[]).unwrap())
    }

    /// What arrives until the connection is lost.
    fn receive_all(link: &mut HostLink) -> Vec<HostMessage> {
        let mut all = Vec::new();
        while link.lost().is_none() {
            all.extend(link.receive());
            thread::sleep(Duration::from_millis(1));
        }
        all
    }

    /// A host that ends says so and closes its connection, whatever is sent to it meanwhile.
    #[test]
    fn the_last_message_of_a_closed_connection_is_read() {
        let [mut here, mut there] = ends();
        there.send(&HostMessage::Ended(5));
        here.send(&HostMessage::Status);
        drop(there);
        for _ in 0..1000 {
            here.send(&HostMessage::Status);
            if here.is_closed_there {
                break;
            }
            thread::sleep(Duration::from_millis(1));
        }
        assert!(here.is_closed_there);
        assert_eq!(here.lost(), None);
        assert_eq!(here.receive(), [HostMessage::Ended(5)]);
        assert!(here.lost().is_some());
    }

    /// What a host has not read does not destroy its last messages, however long they are.
    #[test]
    fn last_messages_arrive_although_others_are_unread() {
        let [mut here, mut there] = ends();
        let last = [HostMessage::Exchanged(vec![7; 4 << 20]), HostMessage::Ended(5)];
        for _ in 0..100 {
            here.send(&HostMessage::Status);
        }
        let sent = last.clone();
        let ending = thread::spawn(move || {
            sent.iter().for_each(|message| there.send(message));
            there.finish();
        });
        assert_eq!(receive_all(&mut here), last);
        ending.join().unwrap();
    }

    /// A supervisor that is stopped takes nothing, and is not lost.
    #[test]
    fn an_end_that_reads_nothing_for_long_is_not_lost() {
        let [mut here, mut there] = ends();
        let long = HostMessage::Exchanged(vec![7; 16 << 20]);
        here.send(&long);
        for _ in 0..2 * LOST_MS / 100 {
            assert_eq!(here.receive(), []);
            assert_eq!(here.lost(), None);
            thread::sleep(Duration::from_millis(100));
        }
        let sending = thread::spawn(move || {
            here.finish();
            here
        });
        assert_eq!(receive_all(&mut there), [long]);
        sending.join().unwrap();
    }
}
