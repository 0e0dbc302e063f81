//! RAR, RARAM, RARSRC: the three descriptors over the segment of this rank, or over its address
//! space.
//!
//! Used by the files that put, get, send and receive. RAR is the target of puts and gets of
//! peers. It has no event queue, so a delivery writes nothing but the data. RARAM takes the
//! data of request Longs, with events on AM_EQ. RARSRC takes those of reply Longs, with events
//! on SAFE_EQ. It is also the local side of our own puts, gets and Longs whose local memory
//! lies in the segment. Invariant: offsets of peers are checked here before they become
//! addresses.

use super::match_bits::{IGNORE, TargetMd};
use super::pinned_config::SegmentBlocks;
use super::portals::{EntryPosition, MdFlags, MdPart, MdRegion, MdSpec, Portals, PortalsError};
use super::refused::RefusedAccess;
use super::user::Descriptor;
use crate::client_memory::{AddressSpace, Dst, Src, own_memory};
use crate::rank::JobRank;
use sys::peer::Peer;

/// What peers may put to and get from.
#[derive(Clone, Copy, Debug)]
pub enum ExposedMemory {
    /// Our segment.
    Segment(Dst<'static>),
    /// A segment in memory that ranks do not share.
    UnsharedSegment(Dst<'static>),
    /// All our memory: offsets are those in [`AddressSpace`].
    AddressSpace,
    /// All our memory, of which the network reaches what is registered.
    RegisteredAddressSpace,
    /// Our segment, of which the network reaches what is registered.
    RegisteredSegment(Dst<'static>),
}

impl ExposedMemory {
    /// The segment that is registered on demand, if one is.
    pub(super) fn segment_on_demand(self) -> Option<Dst<'static>> {
        match self {
            ExposedMemory::RegisteredSegment(segment) => Some(segment),
            _ => None,
        }
    }
}

pub(super) struct Rar<P: Portals> {
    /// RARSRC
    src: P::Md,
    /// What RARSRC covers.
    covered: Dst<'static>,
    /// RAR, if it is over a segment.
    silent: Option<P::Md>,
    /// The segment; or the address space, of which pages may be missing.
    memory: Dst<'static>,
    is_segment: bool,
}

impl<P: Portals> Rar<P> {
    pub(super) fn attach(
        portals: &P,
        pt: u32,
        exposed: ExposedMemory,
        safe: &P::Eq,
        am: &P::Eq,
    ) -> Result<Self, PortalsError> {
        let (region, memory) = match exposed {
            ExposedMemory::Segment(segment) => (segment.into(), segment),
            ExposedMemory::UnsharedSegment(segment) => (MdRegion::Unshared(segment), segment),
            ExposedMemory::AddressSpace => (MdRegion::AddressSpace, AddressSpace::here()),
            ExposedMemory::RegisteredAddressSpace => {
                return Self::over_nothing(portals, safe, AddressSpace::here(), false);
            }
            ExposedMemory::RegisteredSegment(segment) => {
                return Self::over_nothing(portals, safe, segment, true);
            }
        };
        let attach = |target: TargetMd, user: Descriptor, flags: MdFlags, eq: Option<&P::Eq>| {
            let position = EntryPosition::Tail(pt);
            let entry = portals.me_attach(position, target as u64, IGNORE, false)?;
            let spec = MdSpec { region, max_size: None, flags, user: user.pack(), eq };
            portals.md_attach(entry, &spec, false)
        };
        let put = MdFlags {
            op_put: true,
            manage_remote: true,
            event_start_disable: true,
            ..MdFlags::default()
        };
        let rma = MdFlags { op_get: true, event_end_disable: true, ..put };
        let rar = attach(TargetMd::Rar, Descriptor::RarSrc, rma, None)?;
        attach(TargetMd::RarAm, Descriptor::RarAm, put, Some(am))?;
        let src = attach(TargetMd::RarSrc, Descriptor::RarSrc, put, Some(safe))?;
        let is_segment = !matches!(exposed, ExposedMemory::AddressSpace);
        Ok(Rar { src, covered: memory, silent: is_segment.then_some(rar), memory, is_segment })
    }

    /// Without descriptors that peers target: RARSRC covers nothing.
    fn over_nothing(
        portals: &P,
        safe: &P::Eq,
        memory: Dst<'static>,
        is_segment: bool,
    ) -> Result<Self, PortalsError> {
        let user = Descriptor::RarSrc.pack();
        let (region, flags) = (MdRegion::EMPTY, MdFlags::default());
        let src =
            portals.md_bind(&MdSpec { region, max_size: None, flags, user, eq: Some(safe) })?;
        Ok(Rar { src, covered: Dst::empty(), silent: None, memory, is_segment })
    }

    /// Lets peers of other hosts put to the segment, and get from it, without calls of this rank,
    /// if the network can. Nothing relies on the order of such a message and others: it is over
    /// when its ACK or REPLY has arrived.
    pub(super) fn expose_remotely(
        &self,
        portals: &P,
        blocks: impl FnOnce() -> SegmentBlocks,
    ) -> Result<(), PortalsError> {
        self.silent.map_or(Ok(()), |rar| portals.expose_remotely(rar, blocks))
    }

    /// These bytes as a part of RARSRC, if they lie in the memory that we expose.
    #[inline]
    pub(super) fn local(&self, bytes: Src<'_>) -> Option<MdPart<P::Md>> {
        let offset = bytes.as_ptr().addr().wrapping_sub(self.covered.as_ptr().addr());
        let len = bytes.len();
        self.covered.try_part(offset, len).map(|_| MdPart { md: self.src, offset, len })
    }

    /// The `n` bytes from `offset` on of the memory that we expose, if it has them. Of an address
    /// space they may be missing: [`Rar::store`] writes there.
    #[inline]
    pub(super) fn at(&self, offset: Peer<usize>, n: Peer<usize>) -> Option<Dst<'static>> {
        self.memory.peer_part(offset, n)
    }

    /// The `n` bytes at an address of this rank, if they are in the memory that we expose. Of an
    /// address space they may be missing.
    pub(super) fn named(&self, address: usize, n: usize) -> Option<Dst<'static>> {
        self.memory.try_part(address.wrapping_sub(self.memory.as_ptr().addr()), n)
    }

    /// The payload of a Long from `source` to us, `me`, which came with its header, goes to its
    /// destination, which [`Rar::at`] has returned.
    #[inline(always)]
    pub(super) fn store(&self, to: Dst<'static>, payload: Src<'_>, source: JobRank, me: JobRank) {
        if self.is_segment {
            to.copy_from(payload);
        } else {
            store_checked(to, payload, source, me);
        }
    }
}

/// [`Rar::store`] where pages may be missing. Ends the job if some are.
#[cold]
#[inline(never)]
fn store_checked(to: Dst<'static>, payload: Src<'_>, source: JobRank, me: JobRank) {
    if !own_memory::store(to, payload) {
        RefusedAccess {
            operation: "a Long",
            bytes: payload.len(),
            piece: false,
            initiator: source,
            target: me,
            address: to.as_ptr().addr(),
            writes: true,
        }
        .report()
    }
}
