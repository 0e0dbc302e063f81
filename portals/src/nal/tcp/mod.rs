//! The wire over TCP: one listening socket per process, one connection per pair of processes.
//!
//! Opened by the owner of an interface with [`TcpWire::open`], and handed to
//! [`crate::NetworkInterface::joined`]:
//!
//! ```text
//! let wire = TcpWire::open(TcpSpec { address, ports, secret, library, on_failure, on_lack })?;
//! let own = wire.address();                       // ADDRESS bytes, to be exchanged
//! let ni = NetworkInterface::joined(fabric, &hosts, Box::new(wire), limits)?;
//! ni.connect(all);                                // ADDRESS bytes per process, by (nid, pid)
//! ```
//!
//! A connection is made when its first frame is to be sent. Both sides prove that they belong to
//! the job (crate `handshake`), and then grant each other credits: before its first grant no side
//! sends a frame. If both have begun a connection, that of the process with the smaller id stays.
//! A connection carries, little-endian:
//!
//! | bytes | content |
//! |---|---|
//! | 4 | length of the frame that follows; the highest bit is 0 |
//! | 8 | highest bit of the first word 1: credits for that many frames, and for that many bytes |
//!
//! Invariants: a side sends no more than it has credits for, and a receiver keeps no byte of a
//! frame but a few at its beginning. A connection on which anything is wrong ends, is reported
//! once, and is not made again.

mod connection;
mod end;
mod input;
mod limits;
mod network;
#[cfg(test)]
mod tests;

use alloc::boxed::Box;
use core::fmt;
use core::net::{IpAddr, SocketAddr};
use core::ops::RangeInclusive;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::OnceLock;

use super::numbering::HostNumbering;
use super::outcome::{FrameSent, FrameSink, PeerState};
use super::wire::{PeerFailureHandler, PeerFailures, Wire, WireCounters, allow_connections};
use crate::base::lock::SpinLock;
use crate::types::{MdIovec, PtlProcessId, Size};
pub use end::ADDRESS;
use end::{TcpEnd, TcpPeers, encode_address};
pub use handshake::{JobSecret, LibraryVersion};
use limits::{BACKLOG, FRAME};
use network::TcpNetwork;
use sys::epoll::EpollSet;
use sys::tcp;

/// What [`TcpWire::open`] needs.
pub struct TcpSpec {
    /// The address of the interface to use: connections come in and go out only there.
    pub address: IpAddr,
    /// The ports to choose from; `0..=0` leaves the choice to the system.
    pub ports: RangeInclusive<u16>,
    /// The secret of the job.
    pub secret: JobSecret,
    /// The version of the library, which all processes must share.
    pub library: LibraryVersion,
    /// Called with each connection that fails.
    pub on_failure: PeerFailureHandler,
    /// Called once when connections cannot be accepted or made until this process or the system
    /// has what it lacks, such as descriptors or ports.
    pub on_lack: fn(&io::Error),
}

impl fmt::Debug for TcpSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TcpSpec")
            .field("address", &self.address)
            .field("ports", &self.ports)
            .finish_non_exhaustive()
    }
}

/// See the head of this file.
pub struct TcpWire {
    end: TcpEnd,
    peers: OnceLock<TcpPeers>,
    /// An exit sends and receives in a signal handler, which may have interrupted the thread that
    /// has this lock.
    network: SpinLock<TcpNetwork>,
}

impl fmt::Debug for TcpWire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TcpWire").field("address", &self.end.address).finish_non_exhaustive()
    }
}

impl TcpWire {
    /// Listens.
    ///
    /// # Errors
    /// That of the system; `AddrInUse` if no port of the range is free.
    pub fn open(spec: TcpSpec) -> io::Result<TcpWire> {
        let TcpSpec { address, ports, secret, library, on_failure, on_lack } = spec;
        let listener = tcp::listen_on(address, ports, BACKLOG)?;
        let epoll = EpollSet::new()?;
        let address = tcp::local_address(listener.as_fd())?;
        let end = TcpEnd {
            listener,
            address,
            epoll,
            secret,
            library,
            refused: AtomicU64::new(0),
            parts: AtomicU64::new(0),
            failures: PeerFailures::new(on_failure),
            on_lack,
            is_lack_known: AtomicBool::new(false),
        };
        let network = SpinLock::new(TcpNetwork::default());
        Ok(TcpWire { end, peers: OnceLock::new(), network })
    }

    /// Where this process listens, for [`crate::NetworkInterface::connect`] of all processes.
    pub fn address(&self) -> [u8; ADDRESS] {
        encode_address(self.end.address)
    }

    /// The same for people.
    pub fn socket_address(&self) -> SocketAddr {
        self.end.address
    }
}

impl Wire for TcpWire {
    fn connect(&self, own: PtlProcessId, numbering: &HostNumbering, addresses: Box<[u8]>) -> bool {
        if addresses.len() != numbering.total() as usize * ADDRESS {
            return false;
        }
        allow_connections(numbering);
        let peers = TcpPeers { own, numbering: numbering.clone(), addresses };
        // Strangers wait in the kernel until the processes of the job are known.
        self.peers.set(peers).is_ok()
            && self.end.epoll.add(self.end.listener.as_fd(), end::LISTENER, false).is_ok()
    }

    fn max_frame(&self, _payload: Size) -> usize {
        FRAME
    }

    unsafe fn send(
        &self,
        peer: u32,
        header: &[u8],
        payload: &[MdIovec],
        follows: bool,
    ) -> FrameSent {
        let Some(peers) = self.peers.get() else { return FrameSent::Full };
        let Some(mut network) = self.network.lock_unless_stuck() else { return FrameSent::Full };
        // SAFETY: the same contract.
        unsafe { network.send(&self.end, peers, peer, (header, payload), follows) }
    }

    fn receive(&self, _lane: usize, max: usize, sink: &mut dyn FrameSink) -> bool {
        let Some(peers) = self.peers.get() else { return false };
        let Some(mut network) = self.network.try_lock() else { return false };
        network.receive(&self.end, peers, max, sink)
    }

    fn peer_state(&self, peer: u32) -> PeerState {
        self.end.failures.state(peer)
    }

    fn is_meeting(&self, peer: u32) -> bool {
        self.network.lock().is_meeting(peer)
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.end.epoll.as_fd())
    }

    fn longest_sleep_ns(&self) -> u64 {
        self.network.lock().longest_sleep_ns()
    }

    fn counters(&self) -> WireCounters {
        WireCounters {
            refused: self.end.refused.load(Ordering::Relaxed),
            parts: self.end.parts.load(Ordering::Relaxed),
        }
    }
}
