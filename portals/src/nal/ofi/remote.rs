//! Remote operations of the wire: to which peer each goes, and who learns that it has ended.
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

use super::endpoint::NotBegun;
use super::library::OfiError;
use super::limits::REMOTE_AT_ONCE;
use super::network::{OfiEnd, OfiNetwork, OfiPeers};
use crate::nal::outcome::FrameSink;
use crate::nal::remote::{RemoteBegun, RemoteOperation};
use alloc::string::ToString;
use alloc::vec::Vec;

/// An operation that is under way.
#[derive(Clone, Copy, Debug, Default)]
struct RemoteFlight {
    peer: u32,
    token: u64,
}

/// The operations of a wire.
#[derive(Debug, Default)]
pub(super) struct RemoteFlights {
    /// By the number of the operation.
    flights: Vec<RemoteFlight>,
    /// Under way: begun, and not yet reported.
    pub(super) count: usize,
}

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
        let Some(peer) = self.peers.get_mut(&operation.peer) else { return RemoteBegun::Full };
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
                let RemoteFlights { flights, count } = &mut self.remote;
                if flights.len() <= number {
                    flights.resize(number + 1, RemoteFlight::default());
                }
                flights[number] = RemoteFlight { peer: operation.peer, token: operation.token };
                *count += 1;
                RemoteBegun::Begun
            }
            Err(NotBegun::Full) => RemoteBegun::Full,
            Err(NotBegun::Failed(e)) => {
                self.fail(here, peers, operation.peer, e.number, &e.to_string());
                RemoteBegun::Gone
            }
        }
    }

    /// An operation has ended.
    pub(super) fn remote_ended(
        &mut self,
        here: &OfiEnd,
        peers: &OfiPeers,
        number: usize,
        error: Option<&OfiError>,
        sink: &mut dyn FrameSink,
    ) {
        let RemoteFlight { peer: of, token } = self.remote.flights[number];
        self.remote.count -= 1;
        if let Some(peer) = self.peers.get_mut(&of) {
            peer.remote -= 1;
        }
        if let Some(e) = error {
            self.fail(here, peers, of, e.number, &e.to_string());
        }
        sink.completed(token, error.is_none());
    }
}
