//! Remote operations of the wire: how they begin, and what ends them.
//!
//! Part of [`super::network::OfiNetwork`], under its lock; called by [`super::OfiWire`].
//!
//! - An operation belongs to the provider from its begin to its completion, which
//!   [`OfiNetwork::receive`] reads. The thread that reads it reports it, and no lock of the
//!   endpoint is taken again meanwhile.
//! - If its peer dies, the provider says so, and the peer has failed. A provider that says nothing
//!   keeps the memory; the supervisors end the job.
//! - If the interface is closed, the endpoint is closed first. After that the provider uses no
//!   memory, and no operation is reported.
//!
//! Invariant: a peer has at most [`REMOTE_AT_ONCE`] operations under way.

use super::flights::RemoteFlight;
use super::limits::REMOTE_AT_ONCE;
use super::network::{OfiEnd, OfiNetwork, OfiPeers};
use super::slot::NotBegun;
use crate::nal::remote::{RemoteBegun, RemoteOperation};
use alloc::string::ToString;

impl OfiNetwork {
    /// As [`crate::nal::remote::RemoteMemory::begin`].
    ///
    /// # Safety
    /// As there.
    pub(super) unsafe fn begin_remote(
        &mut self,
        here: &OfiEnd,
        peers: &OfiPeers,
        operation: &RemoteOperation<'_>,
    ) -> RemoteBegun {
        // A peer becomes known by its first frame, which came before its notice.
        let Some(peer) = self.peers.get_mut(&operation.peer) else { return RemoteBegun::Gone };
        if peer.has_failed {
            return RemoteBegun::Gone;
        }
        if peer.remote == REMOTE_AT_ONCE {
            return RemoteBegun::Full;
        }
        // SAFETY: the same contract.
        match unsafe { self.endpoint.begin_remote(peer.to, operation) } {
            Ok(number) => {
                peer.remote += 1;
                let flight = RemoteFlight { peer: operation.peer, token: operation.token };
                self.remote.begun(number, flight);
                RemoteBegun::Begun
            }
            Err(NotBegun::Full) => RemoteBegun::Full,
            Err(NotBegun::Failed(e)) => {
                self.fail(here, peers, operation.peer, e.number, &e.to_string());
                RemoteBegun::Gone
            }
        }
    }
}
