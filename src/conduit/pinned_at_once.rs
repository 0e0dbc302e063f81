//! Puts and gets of registered memory that the network completes within the call, and where in a
//! region of a peer a put or get goes.
//!
//! Called by `at_once` where segments are registered on demand, and by `pinned_transfer`. A put to
//! this rank itself, or a get from it, is a copy.
//! Invariant: a call that returns false has done nothing.

use super::Conduit;
use super::firehose::MemoryExtent;
use super::pinned::PinnedMemory;
use super::pinned::bits::PinnedBits;
use super::portals::{Direct, Portals, Target};
use crate::client_memory::{Dst, RemoteRange, Src};
use crate::rank::JobRank;
use sys::peer::Peer;

impl<P: Portals> Conduit<P> {
    /// [`Conduit::put_at_once`] to memory that is registered on demand.
    // Not marked cold: the compiler would inline nothing here.
    #[inline(never)]
    pub(super) fn put_registered_at_once(&self, dst: RemoteRange, src: Src<'_>) -> bool {
        let Some(pinned) = self.pinned.get() else { return false };
        self.own_registered(pinned, dst).map(|own| own.copy_from(src)).is_some()
            || self.hit_at_once(pinned, dst, true, |direct, to| direct.put_at_once([src], to))
    }

    /// [`Conduit::get_at_once`] from memory that is registered on demand.
    #[inline(never)]
    pub(super) fn get_registered_at_once(&self, dst: Dst<'_>, src: RemoteRange) -> bool {
        let Some(pinned) = self.pinned.get() else { return false };
        self.own_registered(pinned, src).map(|own| dst.copy_from(own.into())).is_some()
            || self.hit_at_once(pinned, src, false, |direct, from| direct.get_at_once(dst, from))
    }

    /// Bytes of our own segment, to which a put is a copy; `None` for those of other ranks, and
    /// where ranks do not register on demand.
    #[inline]
    pub(super) fn own_registered(
        &self,
        pinned: &PinnedMemory<P>,
        remote: RemoteRange,
    ) -> Option<Dst<'static>> {
        if remote.rank() != self.me || !pinned.config.targets_regions() {
            return None;
        }
        let own = self.rar().at(Peer::new(remote.offset()), Peer::new(remote.len()));
        own.or_else(|| unreachable!("a put or get outside our segment"))
    }

    /// Does a transfer within the call, where this rank holds the region of a segment that is
    /// registered on demand. False, and nothing done, unless the network can do that too.
    #[inline(always)]
    fn hit_at_once(
        &self,
        pinned: &PinnedMemory<P>,
        remote: RemoteRange,
        put: bool,
        transfer: impl FnOnce(&P::Direct, &Target) -> bool,
    ) -> bool {
        let (rank, len) = (remote.rank(), remote.len());
        let (Some(firehose), true) = (&pinned.firehose, pinned.has_segments()) else {
            return false;
        };
        let Some(direct) = self.direct(self.peers[rank.index()]) else { return false };
        let start = pinned.base_of(rank).wrapping_add(remote.offset());
        let in_one = firehose.limits().piece(start, len) == len;
        in_one && (put || pinned.config.rdma_gets) && {
            let extent = MemoryExtent { start, end: start + len };
            firehose.at_hit(rank, extent, |region| {
                let offset = start - region.start;
                transfer(direct, &self.in_pinned_region(pinned, rank, 0, region.key, offset))
            })
        }
    }

    /// An offset in a region of a rank as the target of a flight.
    #[inline]
    pub(super) fn in_pinned_region(
        &self,
        pinned: &PinnedMemory<P>,
        rank: JobRank,
        flight: u16,
        name: u64,
        offset: usize,
    ) -> Target {
        let bits = PinnedBits { flight, name }.pack();
        let (process, portal) = (self.peers[rank.index()], pinned.config.list_of(name));
        Target { process, portal, bits, offset, hdr_data: 0 }
    }
}
