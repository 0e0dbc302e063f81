//! The wire over TCP: one listening socket per process, one connection per pair of processes.
//!
//! Opened by the owner of an interface with [`TcpWire::open`], and handed to
//! [`crate::NetworkInterface::joined`]:
//!
//! ```text
//! let wire = TcpWire::open(TcpSpec { address, ports, secret, library, on_failure })?;
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
mod input;
mod network;
#[cfg(test)]
mod tests;

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;
use core::ops::RangeInclusive;
use core::sync::atomic::{AtomicU64, Ordering};
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::OnceLock;

use super::numbering::HostNumbering;
use super::wire::{PeerFailure, PeerFailureHandler, Wire, WireCounters};
use super::{FrameSent, FrameSink, PeerState};
use crate::base::lock::SpinLock;
use crate::nal::frame::FrameHeader;
use crate::types::{MdIovec, PtlProcessId};
pub use handshake::{JobSecret, LibraryVersion};
use network::TcpNetwork;
use sys::epoll::EpollSet;
use sys::tcp;

/// Bytes of the address of a process.
pub const ADDRESS: usize = 18;

/// Longest frame.
const FRAME: usize = (256 << 10) + FrameHeader::MOST_BYTES;
/// Credits of one direction of a connection: frames, and bytes with their lengths.
const WINDOW_FRAMES: u32 = 1024;
const WINDOW_BYTES: u32 = 4 << 20;
/// Connections that have not proved anything yet. One more ends the oldest.
const STRANGERS: usize = 64;
/// How long such a connection may take.
const STRANGER_NS: u64 = 5_000_000_000;
/// How long a process waits for a connection that its peer has promised by refusing another.
const PROMISE_NS: u64 = 20_000_000_000;
/// How often a connection that ended within its handshake is tried.
const ATTEMPTS: u32 = 4;
/// A host that does not answer for so long is lost.
const LOST_MS: u32 = 3000;
/// Connections that wait in the kernel to be accepted.
const BACKLOG: u32 = 4096;

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
}

impl fmt::Debug for TcpSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TcpSpec")
            .field("address", &self.address)
            .field("ports", &self.ports)
            .finish_non_exhaustive()
    }
}

/// The other processes, once they are known.
struct TcpPeers {
    own: PtlProcessId,
    numbering: HostNumbering,
    addresses: Box<[u8]>,
}

impl TcpPeers {
    /// Where a process listens; `None`: there is no such process.
    fn address(&self, number: u32) -> Option<SocketAddr> {
        let position = self.numbering.position(self.numbering.process(number)?)? as usize;
        let bytes = self.addresses.get(position * ADDRESS..)?.first_chunk::<ADDRESS>()?;
        Some(decode_address(bytes))
    }
}

/// See the head of this file.
pub struct TcpWire {
    listener: OwnedFd,
    address: SocketAddr,
    epoll: EpollSet,
    secret: JobSecret,
    library: LibraryVersion,
    on_failure: PeerFailureHandler,
    peers: OnceLock<TcpPeers>,
    refused: AtomicU64,
    parts: AtomicU64,
    /// Peers whose connections have failed, sorted.
    dead: SpinLock<Vec<u32>>,
    network: SpinLock<TcpNetwork>,
}

impl fmt::Debug for TcpWire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TcpWire").field("address", &self.address).finish_non_exhaustive()
    }
}

impl TcpWire {
    /// Listens.
    ///
    /// # Errors
    /// That of the system; `AddrInUse` if no port of the range is free.
    pub fn open(spec: TcpSpec) -> io::Result<TcpWire> {
        let TcpSpec { address, ports, secret, library, on_failure } = spec;
        let mut listener = Err(io::Error::from(io::ErrorKind::AddrInUse));
        for port in ports {
            listener = tcp::listen(SocketAddr::new(address, port), BACKLOG);
            match &listener {
                Err(e) if e.kind() == io::ErrorKind::AddrInUse => {}
                _ => break,
            }
        }
        let listener = listener?;
        let epoll = EpollSet::new()?;
        let address = tcp::local_address(listener.as_fd())?;
        Ok(TcpWire {
            listener,
            address,
            epoll,
            secret,
            library,
            on_failure,
            peers: OnceLock::new(),
            refused: AtomicU64::new(0),
            parts: AtomicU64::new(0),
            dead: SpinLock::new(Vec::new()),
            network: SpinLock::new(TcpNetwork::default()),
        })
    }

    /// Where this process listens, for [`crate::NetworkInterface::connect`] of all processes.
    pub fn address(&self) -> [u8; ADDRESS] {
        encode_address(self.address)
    }

    /// The same for people.
    pub fn socket_address(&self) -> SocketAddr {
        self.address
    }

    /// A peer is dead from now on; called once per peer.
    #[cold]
    fn fail(&self, peers: &TcpPeers, number: u32, closed: bool, cause: &dyn fmt::Display) {
        {
            let mut dead = self.dead.lock();
            let Err(at) = dead.binary_search(&number) else { return };
            dead.insert(at, number);
        }
        let process = peers.numbering.process(number).unwrap_or(PtlProcessId::ANY);
        let address = peers.address(number).unwrap_or(self.address);
        (self.on_failure)(&PeerFailure {
            process,
            address,
            closed,
            cause: alloc::format!("{cause}"),
        });
    }

    fn count_parts(&self, parts: u64) {
        self.parts.fetch_add(parts, Ordering::Relaxed);
    }

    fn refuse(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }
}

impl Wire for TcpWire {
    fn connect(&self, own: PtlProcessId, numbering: &HostNumbering, addresses: Box<[u8]>) -> bool {
        if addresses.len() != numbering.total() as usize * ADDRESS {
            return false;
        }
        let peers = TcpPeers { own, numbering: numbering.clone(), addresses };
        // Strangers wait in the kernel until it is known who belongs to the job.
        self.peers.set(peers).is_ok()
            && self.epoll.add(self.listener.as_fd(), network::LISTENER, false).is_ok()
    }

    fn max_frame(&self) -> usize {
        FRAME
    }

    unsafe fn send(&self, peer: u32, header: &[u8], payload: &[MdIovec]) -> FrameSent {
        let Some(peers) = self.peers.get() else { return FrameSent::Full };
        // SAFETY: the same contract.
        unsafe { self.network.lock().send(self, peers, peer, header, payload) }
    }

    fn receive(&self, max: usize, sink: &mut dyn FrameSink) -> bool {
        let Some(peers) = self.peers.get() else { return false };
        self.network.lock().receive(self, peers, max, sink)
    }

    fn peer_state(&self, peer: u32) -> PeerState {
        match self.dead.lock().binary_search(&peer) {
            Ok(_) => PeerState::Dead,
            Err(_) => PeerState::Alive,
        }
    }

    fn descriptor(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }

    fn counters(&self) -> WireCounters {
        WireCounters {
            refused: self.refused.load(Ordering::Relaxed),
            parts: self.parts.load(Ordering::Relaxed),
        }
    }
}

/// An address as an IPv6 address, in network order, and a port.
fn encode_address(address: SocketAddr) -> [u8; ADDRESS] {
    let ip = match address.ip() {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    };
    let mut bytes = [0; ADDRESS];
    bytes[..16].copy_from_slice(&ip.octets());
    bytes[16..].copy_from_slice(&address.port().to_be_bytes());
    bytes
}

fn decode_address(bytes: &[u8; ADDRESS]) -> SocketAddr {
    let mut ip = [0; 16];
    ip.copy_from_slice(&bytes[..16]);
    let port = u16::from_be_bytes([bytes[16], bytes[17]]);
    SocketAddr::new(Ipv6Addr::from(ip).to_canonical(), port)
}

/// The identity of a process in a handshake.
fn identity(id: PtlProcessId) -> u64 {
    u64::from(id.nid) << 32 | u64::from(id.pid)
}

fn process_of(identity: u64) -> PtlProcessId {
    PtlProcessId { nid: (identity >> 32) as u32, pid: identity as u32 }
}
