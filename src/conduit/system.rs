//! SYS: messages between the libraries of two processes. They carry no payload; all their words
//! are in the match bits and the immediate data.
//!
//! Called by polls, and by `am_send` (scavenge). The queue is served first in every poll, and
//! completely. Invariant: it has space for three messages of each peer, so a process sends a peer
//! another message of a kind only after the answer to the last one. Ids below 0x80 belong to the
//! upper layer and go to [`Upcall::system`]; the others are the conduit's own:
//!
//! | message | words | answer |
//! |---|---|---|
//! | CREDIT_REVOKE | epoch has ended | CREDIT_RETURN |
//! | CREDIT_RETURN | credits, epoch has ended | |

use super::credits::policy::CreditReturn;
use super::match_bits::{self, IGNORE, TargetMd};
use super::portals::{
    EntryPosition, InlineBody, MdEventKind, MdFlags, MdPart, MdRegion, MdSpec, Portals,
    PortalsError, PortalsId, Target,
};
use super::queue::{EventQueue, broken};
use super::user::Descriptor;
use super::{Conduit, SystemMessage, Upcall};
use crate::rank::JobRank;

/// Asks a borrower for credits that it does not need.
const CREDIT_REVOKE: u8 = 0x80;
/// Its answer.
const CREDIT_RETURN: u8 = 0x81;

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
            flags: MdFlags {
                op_put: true,
                manage_remote: true,
                event_start_disable: true,
                ack_disable: true,
                ..MdFlags::default()
            },
            user: Descriptor::Sys.pack(),
            eq: Some(&queue.eq),
        };
        let flags =
            MdFlags { event_start_disable: true, event_end_disable: true, ..MdFlags::default() };
        portals.md_attach(me, &nothing, false)?;
        let source = portals.md_bind(&MdSpec { flags, eq: None, ..nothing })?;
        Ok(Sys { queue, pt, source })
    }

    fn send(&self, portals: &P, me: JobRank, to: PortalsId, m: SystemMessage) {
        let (bits, hdr_data) = match_bits::system(me, m);
        let from = MdPart { md: self.source, offset: 0, len: 0 };
        let to = Target { process: to, portal: self.pt, bits, offset: 0, hdr_data };
        portals.put(from, false, &to).unwrap_or_else(|e| broken(e));
    }
}

impl<P: Portals> Conduit<P> {
    /// Sends a system message; arrives at [`Upcall::system`]. At most one to a process may be
    /// unanswered.
    ///
    /// # Panics
    /// If the id is not below 0x80.
    pub fn send_system(&self, node: JobRank, m: SystemMessage) {
        assert!(m.id < 0x80);
        self.send_own(node, m);
    }

    /// Serves SYS_EQ.
    #[cold]
    pub(super) fn serve_sys<U: Upcall>(&self, up: U) -> bool {
        let mut served = 0;
        while let Some(e) = self.sys.queue.take(&self.portals, &mut InlineBody::default()) {
            served += 1;
            if e.kind == MdEventKind::PutEnd {
                let (source, message) = match_bits::unpack_system(e.match_bits, e.hdr_data);
                self.system_arrived(up, source, message);
            }
            if served == self.config.sys_limit {
                break;
            }
        }
        served != 0
    }

    #[cold]
    fn system_arrived<U: Upcall>(&self, up: U, source: JobRank, m: SystemMessage) {
        if source.0 >= self.config.nodes {
            return;
        }
        match m.id {
            CREDIT_REVOKE => {
                let back = self.credits.revoke_arrived(source, m.args[0] != 0);
                let args = [back.credits.into(), back.epoch.into()];
                self.send_own(source, SystemMessage { id: CREDIT_RETURN, args });
            }
            CREDIT_RETURN => {
                let back = CreditReturn { credits: m.args[0] as u16, epoch: m.args[1] != 0 };
                self.credits.return_arrived(source, back);
            }
            id if id < 0x80 => up.system(source, m),
            _ => {}
        }
    }

    /// Asks borrowers for credits that they do not need.
    #[cold]
    pub(super) fn scavenge(&self) {
        self.credits.scavenge(|node, epoch| {
            self.send_own(
                JobRank(node),
                SystemMessage { id: CREDIT_REVOKE, args: [epoch.into(), 0] },
            );
        });
    }

    fn send_own(&self, node: JobRank, m: SystemMessage) {
        self.sys.send(&self.portals, self.me, self.peers[node.index()], m);
    }
}
