//! What a process sends: its frames, and whether they can leave.
//!
//! Called by [`super::super::TcpWire`]. Invariant: that of [`super::TcpNetwork`].

use super::super::connection::{ConnectionStage, SendProgress};
use super::super::end::{TcpEnd, TcpPeers};
use super::{PeerLink, TcpNetwork, watch};
use crate::nal::outcome::FrameSent;
use crate::types::MdIovec;

impl TcpNetwork {
    /// As [`crate::nal::wire::Wire::send`].
    ///
    /// # Safety
    /// The pieces are readable.
    pub(in super::super) unsafe fn send(
        &mut self,
        here: &TcpEnd,
        peers: &TcpPeers,
        peer: u32,
        (header, payload): (&[u8], &[MdIovec]),
        follows: bool,
    ) -> FrameSent {
        let number = match self.links.get(&peer) {
            Some(&PeerLink::Connection(number)) => number,
            Some(PeerLink::Later(_)) => return FrameSent::Full,
            Some(PeerLink::Failed) => return FrameSent::Gone,
            None => {
                self.connect_or_fail(here, peers, peer);
                return FrameSent::Full;
            }
        };
        let Some(connection) = &mut self.connections[number] else { return FrameSent::Full };
        if !matches!(connection.stage, ConnectionStage::Open) {
            return FrameSent::Full;
        }
        // SAFETY: the same contract.
        let sent = unsafe { connection.send(header, payload, follows) };
        match sent {
            Ok(SendProgress::All) => FrameSent::Sent,
            Ok(SendProgress::AllButCredits) => {
                watch(here, number, connection);
                FrameSent::Sent
            }
            // The caller tries again in its next poll, and sleeps only briefly until then.
            Ok(SendProgress::NoCredit | SendProgress::NoRoom) => FrameSent::Full,
            Err(e) => {
                self.end(here, peers, number, e.into());
                FrameSent::Gone
            }
        }
    }

    /// As [`crate::nal::Nal::is_meeting`].
    pub(in super::super) fn is_meeting(&self, peer: u32) -> bool {
        let Some(&PeerLink::Connection(number)) = self.links.get(&peer) else { return false };
        self.connections[number].as_ref().is_some_and(|connection| !connection.input.is_granted)
    }
}
