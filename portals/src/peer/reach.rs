//! Where a peer's memory is: mapped here, or to be reached by cross-memory attach.
//!
//! Used by the walk (can this descriptor be reached?) and by [`crate::transfer::bytes`].
//! Invariant: an offset that a peer wrote is checked against the length of the arena or segment
//! before it becomes a pointer. Addresses in a peer's private memory are checked by the kernel.

use core::sync::atomic::Ordering;

use super::{MappedPeer, Peers};
use crate::arena::{MdCell, peer_word};
use crate::descriptor::traits::MemoryKind;
use sys::peer::Peer;

/// Where bytes of a descriptor are.
#[derive(Clone, Copy)]
pub(crate) enum Location {
    /// Mapped here.
    Mapped(*mut u8),
    /// In the peer's address space; the kernel checks it.
    Remote(Peer<u64>),
    /// In the address space of this process, where pages may be missing; the kernel checks it.
    Own(u64),
}

impl Location {
    pub(crate) fn advance(self, by: u64) -> Location {
        match self {
            Location::Mapped(pointer) => Location::Mapped(pointer.wrapping_add(by as usize)),
            Location::Remote(address) => {
                Location::Remote(address.map(|address| address.wrapping_add(by)))
            }
            Location::Own(address) => Location::Own(address.wrapping_add(by)),
        }
    }
}

impl Peers {
    /// Whether the memory of a descriptor can be reached from here.
    #[inline(always)]
    pub(crate) fn reaches(&self, peer: &MappedPeer, cell: &MdCell, kind: MemoryKind) -> bool {
        if peer.index == self.index {
            return true;
        }
        match kind {
            MemoryKind::Arena => true,
            MemoryKind::Segment => self.segment_mapped(peer.index) || self.attaches(peer),
            MemoryKind::Private | MemoryKind::AddressSpace => self.attaches(peer),
            MemoryKind::Scattered => self.attaches(peer) || self.reaches_pieces(peer, cell),
        }
    }

    /// Whether memory of this kind is mapped here, in one piece.
    #[inline(always)]
    pub(crate) fn shares(&self, peer: &MappedPeer, kind: MemoryKind) -> bool {
        match kind {
            MemoryKind::Arena => true,
            MemoryKind::Segment => self.segment_mapped(peer.index),
            MemoryKind::Private | MemoryKind::Scattered | MemoryKind::AddressSpace => false,
        }
    }

    /// Where the memory of a peer's descriptor is mapped here, if all of it is, in one piece.
    pub(crate) fn mapped_at(
        &self,
        peer: &MappedPeer,
        kind: MemoryKind,
        start: Peer<u64>,
        length: u64,
    ) -> Option<*mut u8> {
        if peer.index == self.index || !self.shares(peer, kind) {
            return None;
        }
        match self.locate(peer, kind, start, Peer::new(0), 0, Peer::new(length))? {
            Location::Mapped(pointer) => Some(pointer),
            Location::Remote(_) | Location::Own(_) => None,
        }
    }

    fn reaches_pieces(&self, peer: &MappedPeer, cell: &MdCell) -> bool {
        let Some(table) = peer.view.iov(peer_word(&cell.iov)) else { return false };
        table.used().iter().all(|piece| {
            let kind = MemoryKind::from_bits(piece.kind.load(Ordering::Relaxed).into());
            self.shares(peer, kind)
        })
    }

    /// Where `length` bytes of a peer's region are, `at` bytes from its start. `None`: they are
    /// outside of what is shared.
    #[inline(always)]
    pub(crate) fn locate(
        &self,
        peer: &MappedPeer,
        kind: MemoryKind,
        start: Peer<u64>,
        address: Peer<u64>,
        at: u64,
        length: Peer<u64>,
    ) -> Option<Location> {
        let from = Peer::new(start.decode(|start| start.checked_add(at))?);
        let remote = || Location::Remote(address.map(|address| address.wrapping_add(at)));
        match kind {
            MemoryKind::Arena => {
                peer.view.range(from, length).map(|p| Location::Mapped(p.as_ptr()))
            }
            MemoryKind::Segment => {
                let segment = self.segments.get(peer.index as usize)?;
                // Acquire pairs with the Release in `expose`.
                let size = segment.length.load(Ordering::Acquire);
                if size == 0 {
                    return Some(remote());
                }
                let base = segment.base.load(Ordering::Relaxed);
                let range = from.range(length, size as usize)?;
                Some(Location::Mapped(base.wrapping_add(range.start)))
            }
            MemoryKind::Private | MemoryKind::Scattered | MemoryKind::AddressSpace => {
                Some(remote())
            }
        }
    }
}
