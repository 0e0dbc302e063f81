//! The connections of a process: how they begin, which of two stays, and how they end.
//!
//! Owned by [`super::TcpWire`], under its lock. Invariant: a peer has at most one connection that
//! carries frames. A peer that has failed has none, and is not connected to again.

mod incoming;
mod outgoing;
mod sending;

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::mem;
use std::io;
use std::os::fd::AsFd;

use super::connection::{Connection, ConnectionStage, SendProgress};
use super::end::{LISTENER, TcpEnd, TcpPeers, identity};
use super::input::RESERVE;
use super::limits::{AGAIN_NS, CLOSED_AGAIN_NS, GREETED_NS, LOST_MS, STRANGER_NS};
use crate::nal::outcome::FrameSink;
use crate::nal::wire::PeerEnd;
use incoming::IncomingConnections;
use outgoing::{Attempts, ConnectionEnd};

use sys::accept::PAUSE_NS;
use sys::epoll::{EVENTS, EpollEvent};
use sys::poll::{self, PollEntry};
use sys::tcp::{self, Unanswered};
use sys::{clock, socket};

/// Bytes that one call of the system reads; those of a long message are read to their place.
const READ: usize = 64 << 10;
/// Bytes that are read behind them.
const BEHIND: usize = 4096;

/// One of this many looks asks the system which connections have something, if there are several;
/// and if there is one.
const LOOKS: u32 = 4;
const LOOKS_OF_ONE: u32 = 64;

/// One of this many looks reads the clock, and checks the hosts if it is time.
const LOOKS_PER_CLOCK: u32 = 256;
/// How often the hosts are looked at.
const CHECK_NS: u64 = 500_000_000;

/// How long a process waits for the system to connect, so that its greeting leaves at once.
const CONNECT_NS: u64 = 20_000_000;

/// What this process knows of a peer that it has met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PeerLink {
    /// The number of its connection.
    Connection(usize),
    /// It has none until this time: then it is connected to.
    Later(u64),
    Failed,
}

/// See the head of this file.
#[derive(Default)]
pub(super) struct TcpNetwork {
    connections: Vec<Option<Box<Connection>>>,
    /// Numbers of `connections` that are free.
    free: Vec<usize>,
    /// Those that become free when no event of the system can name their connections any more.
    freed: Vec<usize>,
    links: BTreeMap<u32, PeerLink>,
    /// Attempts to connect to peers that are not connected.
    attempts: Attempts,
    incoming: IncomingConnections,
    /// Peers that are connected to later.
    later: usize,
    buffer: Vec<u8>,
    /// The connection on which frames came last.
    last: Option<usize>,
    looks: u32,
    /// When hosts are to be looked at next.
    next_check: u64,
}

impl TcpNetwork {
    /// Accepts connections. What those that wait have sent is to be read before.
    fn accept(&mut self, here: &TcpEnd, peers: &TcpPeers) {
        let mut pause = mem::take(&mut self.incoming.pause);
        incoming::accept(&mut pause, here, |socket| {
            self.refuse(here, self.incoming.crowded_out());
            let begun = here.begin_handshake(peers, None, false);
            let Ok(handshake) = begun else { return };
            let stage = ConnectionStage::Greeting(Box::new(handshake));
            let mut connection = Connection::new(socket, stage, None);
            connection.deadline = clock::now_ns().saturating_add(STRANGER_NS);
            if let Ok(number) = self.add(here, connection) {
                self.incoming.strangers.push(number);
            }
        });
        self.incoming.pause = pause;
    }

    /// As [`crate::nal::wire::Wire::longest_sleep_ns`].
    pub(super) fn longest_sleep_ns(&self) -> u64 {
        let pause = self.incoming.pause.until().map_or(u64::MAX, |_| PAUSE_NS);
        if self.later == 0 { pause } else { pause.min(AGAIN_NS) }
    }

    fn add(&mut self, here: &TcpEnd, connection: Connection) -> io::Result<usize> {
        let number = self.free.pop().unwrap_or(self.connections.len());
        let writing = connection.is_writing;
        if let Err(e) = here.epoll.add(connection.socket.as_fd(), number as u64, writing) {
            self.free.push(number);
            if number == self.connections.len() {
                self.connections.push(None);
            }
            return Err(e);
        }
        let connection = Some(Box::new(connection));
        match self.connections.get_mut(number) {
            Some(place) => *place = connection,
            None => self.connections.push(connection),
        }
        Ok(number)
    }

    /// Takes a connection out, which ends with its last use.
    fn close(&mut self, here: &TcpEnd, number: usize) -> Option<Box<Connection>> {
        let connection = self.connections[number].take();
        if let Some(connection) = &connection {
            here.epoll.remove(connection.socket.as_fd());
        }
        self.last = self.last.filter(|&last| last != number);
        self.freed.push(number);
        self.incoming.remove(number);
        connection
    }

    /// Ends incoming connections.
    fn refuse(&mut self, here: &TcpEnd, numbers: impl IntoIterator<Item = usize>) {
        for number in numbers {
            here.refuse();
            self.close(here, number);
        }
    }

    /// Those of these incoming connections whose time is over.
    fn late<'a>(&self, of: impl IntoIterator<Item = &'a usize>, now: u64) -> Vec<usize> {
        let is_late = |number: &usize| {
            self.connections[*number].as_ref().is_none_or(|incoming| incoming.deadline <= now)
        };
        of.into_iter().copied().filter(is_late).collect()
    }

    /// Begins to connect to a peer; returns the number of the connection.
    fn connect(
        &mut self,
        here: &TcpEnd,
        peers: &TcpPeers,
        peer: u32,
    ) -> Result<usize, ConnectionEnd> {
        self.attempts.begin(peer);
        let no_address = || ConnectionEnd::Wrong(String::from("it has no address"));
        let address = peers.address(peer).ok_or_else(no_address)?;
        let socket = tcp::connect(here.address.ip(), address).map_err(ConnectionEnd::not_made)?;
        let mut connection = Connection::new(socket, ConnectionStage::Connecting, Some(peer));
        connection.is_writing = true;
        let number = self.add(here, connection).map_err(ConnectionEnd::not_made)?;
        self.links.insert(peer, PeerLink::Connection(number));
        Ok(number)
    }

    /// Connects to a peer that has no link, now or later, or gives it up.
    fn connect_or_fail(&mut self, here: &TcpEnd, peers: &TcpPeers, peer: u32) {
        match self.connect(here, peers, peer) {
            // Usually it is connected after one round trip, and the greeting leaves at once.
            Ok(number) => {
                let Some(connection) = &self.connections[number] else { return };
                let mut entry = [PollEntry::writing(connection.socket.as_fd())];
                poll::wait_ns(&mut entry, CONNECT_NS);
                if entry[0].happened() {
                    let number = number as u64;
                    let event = EpollEvent { number, readable: false, writable: true };
                    let _ = self.happened(here, peers, &event, &mut |_: u32, _: &[u8]| {});
                }
            }
            Err(why) if self.may_reach_later(here, peer, &why) => {}
            Err(why) => self.fail(here, peers, peer, why.describe(false, true)),
        }
    }

    /// Whether a peer is connected to later, as the network could not be reached, or this process
    /// lacked something.
    fn may_reach_later(&mut self, here: &TcpEnd, peer: u32, why: &ConnectionEnd) -> bool {
        let now = clock::now_ns();
        let may = match why {
            ConnectionEnd::Unreachable(_) => self.attempts.unreachable(peer, now),
            ConnectionEnd::Lack(e) => {
                here.lack(e);
                self.attempts.lacking(peer, now)
            }
            _ => false,
        };
        if may {
            self.connect_later(peer, now.saturating_add(AGAIN_NS));
        }
        may
    }

    fn connect_later(&mut self, peer: u32, at: u64) {
        self.later += 1;
        self.links.insert(peer, PeerLink::Later(at));
    }

    /// As [`crate::nal::wire::Wire::receive`].
    pub(super) fn receive(
        &mut self,
        here: &TcpEnd,
        peers: &TcpPeers,
        max: usize,
        sink: &mut dyn FrameSink,
    ) -> bool {
        let mut taken = 0;
        self.free.append(&mut self.freed);
        // The connection on which something came last is read without asking the system which
        // have something: one call of the system less until the answer to a message is here.
        self.looks = self.looks.wrapping_add(1);
        if self.looks.is_multiple_of(LOOKS_PER_CLOCK) {
            self.check_hosts(here, peers);
        }
        let is_one = self.connections.len() - self.free.len() == 1;
        if let Some(number) = self.last
            && !self.looks.is_multiple_of(if is_one { LOOKS_OF_ONE } else { LOOKS })
        {
            let event = EpollEvent { number: number as u64, readable: true, writable: false };
            return self.happened(here, peers, &event, sink) != 0;
        }
        let mut events = [EpollEvent::NONE; EVENTS];
        let mut accepts = self.incoming.pause.until().is_some();
        for event in here.epoll.wait(&mut events, Some(0)) {
            if event.number == LISTENER {
                accepts = true;
            } else if taken < max {
                let more = self.happened(here, peers, event, sink);
                if more != 0 {
                    self.last = Some(event.number as usize);
                }
                taken += more;
            }
        }
        if accepts {
            self.accept(here, peers);
        }
        if !self.incoming.strangers.is_empty() || self.later != 0 {
            self.check_deadlines(here, peers);
        }
        taken != 0
    }

    /// Ends the connections to hosts that do not answer. The system would take minutes for it: a
    /// limit of its own would hit peers that compute, whose buffers are full, as well.
    #[cold]
    fn check_hosts(&mut self, here: &TcpEnd, peers: &TcpPeers) {
        let now = clock::now_ns();
        if now < self.next_check {
            return;
        }
        self.next_check = now.saturating_add(CHECK_NS);
        let late = self.late(self.incoming.greeted.values(), now);
        self.refuse(here, late);
        let lost = |(number, connection): (usize, &Option<Box<Connection>>)| {
            let connection = connection.as_ref().filter(|connection| connection.peer.is_some())?;
            let since = tcp::unanswered(connection.socket.as_fd()).ok()??;
            let met = matches!(connection.stage, ConnectionStage::Open);
            let end = || (number, ConnectionEnd::unanswered(since, met));
            (since >= Unanswered::Ms(LOST_MS)).then(end)
        };
        let lost: Vec<_> = self.connections.iter().enumerate().filter_map(lost).collect();
        for (number, end) in lost {
            self.end(here, peers, number, end);
        }
    }

    fn check_deadlines(&mut self, here: &TcpEnd, peers: &TcpPeers) {
        let now = clock::now_ns();
        let late = self.late(&self.incoming.strangers, now);
        self.refuse(here, late);
        let is_due = |(&peer, &link): (&u32, &PeerLink)| match link {
            PeerLink::Later(at) if at <= now => Some(peer),
            _ => None,
        };
        let due = self.links.iter().filter(|_| self.later != 0).filter_map(is_due);
        for peer in due.collect::<Vec<u32>>() {
            self.later -= 1;
            self.links.remove(&peer);
            self.connect_or_fail(here, peers, peer);
        }
    }

    /// Something happened on a connection; returns how many frames were taken.
    fn happened(
        &mut self,
        here: &TcpEnd,
        peers: &TcpPeers,
        event: &EpollEvent,
        sink: &mut dyn FrameSink,
    ) -> usize {
        let number = event.number as usize;
        // It may have been closed by an event before this one.
        let Some(Some(_)) = self.connections.get(number) else { return 0 };
        let Some(mut connection) = self.connections[number].take() else { return 0 };
        match self.advance(here, peers, number, &mut connection, event, sink) {
            Ok(taken) => {
                self.connections[number] = Some(connection);
                taken
            }
            Err(why) => {
                self.connections[number] = Some(connection);
                self.end(here, peers, number, why);
                0
            }
        }
    }

    fn advance(
        &mut self,
        here: &TcpEnd,
        peers: &TcpPeers,
        number: usize,
        connection: &mut Connection,
        event: &EpollEvent,
        sink: &mut dyn FrameSink,
    ) -> Result<usize, ConnectionEnd> {
        if matches!(connection.stage, ConnectionStage::Connecting) {
            if event.writable {
                tcp::error(connection.socket.as_fd()).map_err(ConnectionEnd::not_made)?;
                if let Some(peer) = connection.peer {
                    self.attempts.reached(peer);
                }
                tcp::keep_alive(connection.socket.as_fd(), LOST_MS)?;
                let expected = connection.peer.and_then(|peer| peers.numbering.process(peer));
                let expected = expected.map(identity);
                let handshake = here.begin_handshake(peers, expected, true)?;
                connection.stage = ConnectionStage::Greeting(Box::new(handshake));
                self.send_greeting(here, number, connection)?;
            }
            return Ok(0);
        }
        if event.writable && connection.is_writing {
            connection.is_writing = false;
            here.epoll.change(connection.socket.as_fd(), number as u64, true, false)?;
            self.send_greeting(here, number, connection)?;
            if connection.flush()? == SendProgress::NoRoom {
                watch(here, number, connection);
            }
        }
        if !event.readable {
            return Ok(0);
        }
        self.buffer.resize(RESERVE + READ, 0);
        let mut buffer = mem::take(&mut self.buffer);
        let read = self.read(here, peers, number, connection, &mut buffer, sink);
        self.buffer = buffer;
        read
    }

    /// Reads what has arrived.
    fn read(
        &mut self,
        here: &TcpEnd,
        peers: &TcpPeers,
        number: usize,
        connection: &mut Connection,
        buffer: &mut [u8],
        sink: &mut dyn FrameSink,
    ) -> Result<usize, ConnectionEnd> {
        let mut place = None;
        if let Some(peer) = connection.peer {
            place = connection.input.place(|header| sink.place(peer, header));
        }
        let socket = connection.socket.as_fd();
        let read = match place {
            // What follows is the beginning of another frame.
            Some((to, length)) => {
                let rest = &mut buffer[RESERVE..][..BEHIND];
                // SAFETY: the contract of `FrameSink::place`.
                unsafe { tcp::receive(socket, to, length, rest) }
            }
            None => socket::receive(socket, &mut buffer[RESERVE..], false),
        };
        let mut n = match read {
            Ok(0) => return Err(ConnectionEnd::Closed(None)),
            Ok(n) => n,
            Err(e)
                if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) =>
            {
                return Ok(0);
            }
            Err(e) => return Err(e.into()),
        };
        if let (Some((_, length)), Some(peer)) = (place, connection.peer) {
            let length = length.min(n);
            connection.input.placed(length, |header| sink.placed(peer, header, length));
            n -= length;
        }
        let (mut start, end) = (RESERVE, RESERVE + n);
        if let ConnectionStage::Greeting(handshake) = &mut connection.stage {
            let fed = handshake.feed(&buffer[start..end]);
            let is_answered = connection.peer.is_none() && !handshake.to_send().is_empty();
            let claimed = handshake.claimed().filter(|_| is_answered);
            if let Some(peer) = claimed.and_then(|claimed| peers.peer_from(socket, claimed)) {
                connection.deadline = clock::now_ns().saturating_add(GREETED_NS);
                let older = self.incoming.note_greeted(number, peer);
                self.refuse(here, older);
            }
            // What is left tells the peer our versions, even after a failure.
            let sent = self.send_greeting(here, number, connection);
            start += fed.map_err(|why| ConnectionEnd::Wrong(format!("{why}")))?;
            sent?;
            let ConnectionStage::Greeting(handshake) = &connection.stage else { return Ok(0) };
            match handshake.peer() {
                Some(peer) if handshake.to_send().is_empty() => {
                    self.proved(here, peers, number, connection, peer)?;
                }
                _ => return Ok(0),
            }
        }
        let Some(peer) = connection.peer else { return Ok(0) };
        let taken =
            connection.input.take(buffer, start, end, &mut |frame| sink.frame(peer, frame));
        here.count_parts(connection.input.take_parts());
        let taken = taken.map_err(|why| ConnectionEnd::Wrong(format!("{why}")))?;
        if connection.input.is_granted {
            self.attempts.end(peer);
        }
        if connection.flush()? == SendProgress::NoRoom {
            watch(here, number, connection);
        }
        Ok(taken + usize::from(place.is_some()))
    }

    fn send_greeting(
        &mut self,
        here: &TcpEnd,
        number: usize,
        connection: &mut Connection,
    ) -> io::Result<()> {
        let ConnectionStage::Greeting(handshake) = &mut connection.stage else { return Ok(()) };
        while !handshake.to_send().is_empty() {
            let bytes = handshake.to_send();
            let piece = tcp::SendPiece::new(bytes.as_ptr(), bytes.len());
            // SAFETY: bytes of the handshake, which is borrowed.
            match unsafe { tcp::send(connection.socket.as_fd(), &[piece]) } {
                Ok(n) => handshake.sent(n),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => {
                    watch(here, number, connection);
                    return Ok(());
                }
                Err(e) => return Err(e),
            }
        }
        Ok(())
    }

    /// The peer belongs to the job. Opens the connection, unless another one to it stays.
    fn proved(
        &mut self,
        here: &TcpEnd,
        peers: &TcpPeers,
        number: usize,
        connection: &mut Connection,
        peer: u64,
    ) -> Result<(), ConnectionEnd> {
        if !connection.is_outgoing {
            let Some(peer_number) = peers.peer(peer) else {
                return Err(ConnectionEnd::Wrong(String::from("no process of another host")));
            };
            match self.links.get(&peer_number) {
                None => {}
                Some(PeerLink::Later(_)) => self.later -= 1,
                Some(PeerLink::Failed) => return Err(ConnectionEnd::Superseded),
                Some(&PeerLink::Connection(other)) => {
                    let ours = self.connections[other].as_ref();
                    let open = ours.is_some_and(|ours| !ours.is_outgoing || ours.input.is_granted);
                    if open || identity(peers.own) < peer {
                        return Err(ConnectionEnd::Superseded);
                    }
                    // The peer closes ours when it has seen the proof. Closed here and now, ours
                    // would look there like that of a stranger.
                }
            }
            tcp::keep_alive(connection.socket.as_fd(), LOST_MS)?;
            connection.peer = Some(peer_number);
            self.links.insert(peer_number, PeerLink::Connection(number));
            self.incoming.remove(number);
        }
        connection.stage = ConnectionStage::Open;
        if connection.flush()? == SendProgress::NoRoom {
            watch(here, number, connection);
        }
        Ok(())
    }

    /// A connection has ended.
    fn end(&mut self, here: &TcpEnd, peers: &TcpPeers, number: usize, why: ConnectionEnd) {
        let Some(connection) = self.close(here, number) else { return };
        let Some(peer) = connection.peer else {
            if !matches!(why, ConnectionEnd::Superseded) {
                here.refuse();
            }
            return;
        };
        if self.links.get(&peer) != Some(&PeerLink::Connection(number)) {
            return;
        }
        let granted = connection.input.is_granted;
        if connection.is_outgoing && !granted {
            if self.may_reach_later(here, peer, &why) {
                return;
            }
            let now = clock::now_ns();
            // The peer has a connection of its own, or has lost ours, for which it may have had no
            // room.
            let is_closed = matches!(why, ConnectionEnd::Closed(_));
            if is_closed && self.attempts.closed(peer, now) {
                return self.connect_later(peer, now.saturating_add(CLOSED_AGAIN_NS));
            }
            // A host that has never answered may have no room for more connections now.
            let is_untaken = matches!(why, ConnectionEnd::Unanswered(Unanswered::Ever));
            if (is_closed || is_untaken) && self.attempts.may_follow(peer) {
                self.links.remove(&peer);
                return self.connect_or_fail(here, peers, peer);
            }
        }
        let end = why.describe(granted, connection.input.is_between_frames());
        self.fail(here, peers, peer, end);
    }

    /// A peer is given up: what ended its connection, and in words.
    fn fail(
        &mut self,
        here: &TcpEnd,
        peers: &TcpPeers,
        peer: u32,
        (end, cause): (PeerEnd, String),
    ) {
        self.links.insert(peer, PeerLink::Failed);
        here.fail(peers, peer, end, &cause);
    }
}

/// Watches a connection for room to send.
fn watch(here: &TcpEnd, number: usize, connection: &mut Connection) {
    if !connection.is_writing {
        let changed = here.epoll.change(connection.socket.as_fd(), number as u64, true, true);
        connection.is_writing = changed.is_ok();
    }
}
