//! This end of all connections, and where the others are.
//!
//! Owned by [`super::TcpWire`], used by [`super::network`]. Invariant: a peer is reported to have
//! failed once.

use alloc::boxed::Box;
use alloc::string::ToString;
use core::fmt;
use core::net::{IpAddr, Ipv6Addr, SocketAddr};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

use crate::nal::numbering::HostNumbering;
use crate::nal::wire::{PeerEnd, PeerFailure, PeerFailures};
use crate::types::PtlProcessId;
use handshake::{ConnectionPurpose, Handshake, HandshakeSpec, JobSecret, LibraryVersion, Nonce};
use sys::epoll::EpollSet;
use sys::tcp;

/// The number of the listening socket among those that are watched.
pub(super) const LISTENER: u64 = u64::MAX;

/// Bytes of the address of a process.
pub const ADDRESS: usize = 18;

/// The other processes, once they are known.
pub(super) struct TcpPeers {
    pub(super) own: PtlProcessId,
    pub(super) numbering: HostNumbering,
    pub(super) addresses: Box<[u8]>,
}

impl TcpPeers {
    /// Where a process listens; `None`: there is no such process.
    pub(super) fn address(&self, number: u32) -> Option<SocketAddr> {
        let position = self.numbering.position(self.numbering.process(number)?)? as usize;
        let bytes = self.addresses.get(position * ADDRESS..)?.first_chunk::<ADDRESS>()?;
        Some(decode_address(bytes))
    }

    /// The process of another host that has this identity.
    pub(super) fn peer(&self, identity: u64) -> Option<u32> {
        let process = process_of(identity);
        self.numbering.number(process).filter(|_| process.nid != self.own.nid)
    }

    /// The same, if a connection comes from the address of its host.
    pub(super) fn peer_from(&self, socket: BorrowedFd<'_>, identity: u64) -> Option<u32> {
        let from = tcp::peer_address(socket).ok()?.ip().to_canonical();
        self.peer(identity).filter(|&peer| self.address(peer).is_some_and(|a| a.ip() == from))
    }
}

/// This end.
pub(super) struct TcpEnd {
    pub(super) listener: OwnedFd,
    pub(super) address: SocketAddr,
    pub(super) epoll: EpollSet,
    pub(super) secret: JobSecret,
    pub(super) library: LibraryVersion,
    pub(super) refused: AtomicU64,
    pub(super) parts: AtomicU64,
    /// Peers whose connections have failed.
    pub(super) failures: PeerFailures,
    pub(super) on_lack: fn(&io::Error),
    pub(super) is_lack_known: AtomicBool,
}

impl TcpEnd {
    /// A peer is dead from now on; called once per peer.
    #[cold]
    pub(super) fn fail(
        &self,
        peers: &TcpPeers,
        number: u32,
        end: PeerEnd,
        cause: &dyn fmt::Display,
    ) {
        self.failures.add(number, || PeerFailure {
            process: peers.numbering.process(number).unwrap_or(PtlProcessId::ANY),
            address: peers.address(number).unwrap_or(self.address).to_string(),
            end,
            cause: cause.to_string(),
        });
    }

    /// This process or the system lacks what connections need; reported once.
    #[cold]
    pub(super) fn lack(&self, e: &io::Error) {
        if !self.is_lack_known.swap(true, Ordering::Relaxed) {
            (self.on_lack)(e);
        }
    }

    /// Begins to prove on a connection that this process belongs to the job. `expected`: the
    /// identity of the peer, if it is known.
    ///
    /// # Errors
    /// The system gives no random numbers.
    pub(super) fn begin_handshake(
        &self,
        peers: &TcpPeers,
        expected: Option<u64>,
        outgoing: bool,
    ) -> io::Result<Handshake> {
        let spec = HandshakeSpec {
            secret: &self.secret,
            library: self.library,
            purpose: ConnectionPurpose::Data,
            identity: identity(peers.own),
            nonce: Nonce::random()?,
        };
        Ok(match outgoing {
            true => Handshake::connector(spec, expected),
            false => Handshake::acceptor(spec),
        })
    }

    pub(super) fn count_parts(&self, parts: u64) {
        self.parts.fetch_add(parts, Ordering::Relaxed);
    }

    pub(super) fn refuse(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }
}

/// An address as an IPv6 address, in network order, and a port.
pub(super) fn encode_address(address: SocketAddr) -> [u8; ADDRESS] {
    let ip = match address.ip() {
        IpAddr::V4(ip) => ip.to_ipv6_mapped(),
        IpAddr::V6(ip) => ip,
    };
    let mut bytes = [0; ADDRESS];
    bytes[..16].copy_from_slice(&ip.octets());
    bytes[16..].copy_from_slice(&address.port().to_be_bytes());
    bytes
}

pub(super) fn decode_address(bytes: &[u8; ADDRESS]) -> SocketAddr {
    let mut ip = [0; 16];
    ip.copy_from_slice(&bytes[..16]);
    let port = u16::from_be_bytes([bytes[16], bytes[17]]);
    SocketAddr::new(Ipv6Addr::from(ip).to_canonical(), port)
}

/// The identity of a process in a handshake.
pub(super) fn identity(id: PtlProcessId) -> u64 {
    u64::from(id.nid) << 32 | u64::from(id.pid)
}

fn process_of(identity: u64) -> PtlProcessId {
    PtlProcessId { nid: (identity >> 32) as u32, pid: identity as u32 }
}
