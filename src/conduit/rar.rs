//! RAR, RARAM, RARSRC: the three descriptors over the segment of this rank.
//!
//! Used by the files that put, get, send and receive. RAR is the target of puts and gets of
//! peers. It has no event queue, so a delivery writes nothing but the data. RARAM takes the
//! data of request Longs, with events on AM_EQ. RARSRC takes those of reply Longs, with events
//! on SAFE_EQ. It is also the local side of our own puts, gets and Longs whose local memory
//! lies in the segment. Invariant: offsets of peers are checked here before they become
//! addresses.

use super::match_bits::{IGNORE, TargetMd};
use super::portals::{EntryPosition, MdFlags, MdPart, MdSpec, Portals, PortalsError};
use super::user::Descriptor;
use crate::client_memory::{Dst, Src};
use sys::peer::Peer;

pub(super) struct Rar<P: Portals> {
    /// RARSRC
    src: P::Md,
    segment: Dst<'static>,
}

impl<P: Portals> Rar<P> {
    pub(super) fn attach(
        portals: &P,
        pt: u32,
        segment: Dst<'static>,
        safe: &P::Eq,
        am: &P::Eq,
    ) -> Result<Self, PortalsError> {
        let attach = |target: TargetMd, user: Descriptor, flags: MdFlags, eq: Option<&P::Eq>| {
            let position = EntryPosition::Tail(pt);
            let entry = portals.me_attach(position, target as u64, IGNORE, false)?;
            let region = segment.into();
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
        attach(TargetMd::Rar, Descriptor::RarSrc, rma, None)?;
        attach(TargetMd::RarAm, Descriptor::RarAm, put, Some(am))?;
        let src = attach(TargetMd::RarSrc, Descriptor::RarSrc, put, Some(safe))?;
        Ok(Rar { src, segment })
    }

    /// These bytes as a part of RARSRC, if they lie in our segment.
    #[inline]
    pub(super) fn local(&self, bytes: Src<'_>) -> Option<MdPart<P::Md>> {
        let offset = bytes.as_ptr().addr().wrapping_sub(self.segment.as_ptr().addr());
        let len = bytes.len();
        self.segment.try_part(offset, len).map(|_| MdPart { md: self.src, offset, len })
    }

    /// The `n` bytes of our segment from `offset` on, if it has them.
    #[inline]
    pub(super) fn at(&self, offset: Peer<usize>, n: Peer<usize>) -> Option<Dst<'static>> {
        self.segment.peer_part(offset, n)
    }
}
