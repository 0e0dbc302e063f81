//! SYS: the descriptor and the queue of messages between the libraries of two ranks. They
//! carry no payload; all their words are in the match bits and the immediate data.
//!
//! Used by `system_messages`. Invariant: the queue has space for six messages of each peer.

use super::match_bits::{self, IGNORE, TargetMd};
use super::message::SystemMessage;
use super::portals::{
    EntryPosition, MdFlags, MdPart, MdRegion, MdSpec, Portals, PortalsError, PortalsId, Target,
};
use super::queue::{EventQueue, broken};
use super::user::Descriptor;
use crate::rank::JobRank;

/// Asks whether all requests of the sender have been handled (`lost`).
pub(super) const HANDLED_QUERY: u8 = 0x82;

pub(super) struct Sys<P: Portals> {
    pub(super) queue: EventQueue<P, ()>,
    pt: u32,
    /// The source of messages: no bytes, no events.
    source: P::Md,
}

impl<P: Portals> Sys<P> {
    pub(super) fn open(
        portals: &P,
        pt: u32,
        par: bool,
        events: usize,
    ) -> Result<Self, PortalsError> {
        let queue = EventQueue::open(portals, par, "SYS_EQ", events, ())?;
        let me =
            portals.me_attach(EntryPosition::Tail(pt), TargetMd::Sys as u64, IGNORE, false)?;
        let nothing = MdSpec {
            region: MdRegion::EMPTY,
            max_size: None,
            flags: MdFlags::landing(),
            user: Descriptor::Sys.pack(),
            eq: Some(&queue.eq),
        };
        let flags =
            MdFlags { event_start_disable: true, event_end_disable: true, ..MdFlags::default() };
        portals.md_attach(me, &nothing, false)?;
        let source = portals.md_bind(&MdSpec { flags, eq: None, ..nothing })?;
        Ok(Sys { queue, pt, source })
    }

    pub(super) fn send(&self, portals: &P, me: JobRank, to: PortalsId, m: SystemMessage) {
        let (bits, hdr_data) = match_bits::system(me, m);
        let from = MdPart { md: self.source, offset: 0, len: 0 };
        let to = Target { process: to, portal: self.pt, bits, offset: 0, hdr_data };
        portals.put(from, false, &to).unwrap_or_else(|e| broken(e));
    }
}
