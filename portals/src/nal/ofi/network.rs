//! The peers of a lane: what is known of each, and the buffers for their frames.
//!
//! Owned by [`super::OfiWire`], each under a lock of its own; [`super::sending`],
//! [`super::receiving`] and [`super::remote`] have the rest of its methods. A peer becomes known
//! by the first frame to it, or by its greeting: a frame without bytes. Each frame says how many
//! frames of data its receiver may send in all; an empty frame does so where nothing else is to be
//! sent. That is a window more than were taken. The window grows with what a peer sends.
//!
//! Invariants: a peer sends no more frames than there are buffers for. A peer that has failed gets
//! and sends nothing.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::mem;
use core::sync::atomic::{AtomicU64, Ordering};

use super::bindings::CLOSED;
use super::endpoint::{NAME_BYTES, OfiBuffer, OfiCompletion, OfiEndpoint};
use super::flights::RemoteFlights;
use super::library::OfiError;
use super::limits::*;
use super::loss::{self, LossClock};
use super::peer::OfiPeer;
use super::seal::OfiTagMode;
use super::slot::NotBegun;
use crate::nal::numbering::HostNumbering;
use crate::nal::wire::{PeerEnd, PeerFailure, PeerFailures};
use crate::types::{PtlProcessId, Size};
use handshake::FrameKey;
use sys::clock;

/// The processes of the job.
pub(super) struct OfiPeers {
    /// The position of this process.
    pub(super) own: u32,
    pub(super) numbering: HostNumbering,
    /// The addresses of all, by position.
    pub(super) names: Box<[[u8; NAME_BYTES]]>,
    /// In how many lanes they are.
    pub(super) lanes: u32,
}

impl OfiPeers {
    /// The lane of the peer at this position: the same for both processes of a pair, and about as
    /// many peers in each lane as in the others.
    pub(super) fn lane_at(&self, position: u32) -> usize {
        (self.own.wrapping_add(position) % self.lanes) as usize
    }

    /// The lane of a peer; 0: no process has this number.
    pub(super) fn lane_of(&self, number: u32) -> usize {
        let position = |number| self.numbering.position(self.numbering.process(number)?);
        position(number).map_or(0, |position| self.lane_at(position))
    }
}

/// What does not change, and what is counted.
pub(super) struct OfiEnd {
    pub(super) key: FrameKey,
    pub(super) mode: OfiTagMode,
    /// Bytes of a message from which its frames are long.
    pub(super) long_message: Size,
    /// Longest message that the provider keeps when it is sent.
    pub(super) inject: usize,
    pub(super) failures: PeerFailures,
    /// Messages that no process of the job has sent, that came again, or that failed to arrive.
    pub(super) refused: AtomicU64,
}

impl OfiEnd {
    /// Whether a message of this length has frames of data.
    pub(super) fn is_data(&self, length: usize) -> bool {
        loss::has_data(length - self.mode.lead_bytes())
    }

    pub(super) fn refuse(&self) {
        self.refused.fetch_add(1, Ordering::Relaxed);
    }
}

/// See the head of this file.
pub(super) struct OfiNetwork {
    pub(super) endpoint: OfiEndpoint,
    pub(super) peers: BTreeMap<u32, OfiPeer>,
    /// Buffers for frames to be sent.
    pub(super) free: Vec<OfiBuffer>,
    /// Buffers that are to be posted.
    pub(super) unposted: Vec<OfiBuffer>,
    /// The peer to which each buffer is being sent, by the number of the buffer.
    pub(super) targets: Vec<u32>,
    /// Buffers that are being sent.
    pub(super) leaving: usize,
    pub(super) remote: RemoteFlights,
    /// Peers that are owed a frame without bytes.
    pub(super) owed: Vec<u32>,
    /// Peers with a [`FrameBatch`] that may have to leave without a further frame.
    pub(super) batched: Vec<u32>,
    /// What was read from the provider and not yet looked at.
    pub(super) completions: VecDeque<OfiCompletion>,
    pub(super) loss_clock: LossClock,
}

impl OfiNetwork {
    /// # Errors
    /// The provider takes no buffers.
    pub(super) fn new(mut endpoint: OfiEndpoint) -> Result<OfiNetwork, OfiError> {
        let mut unposted = Vec::new();
        endpoint.add_buffers(BUFFERS_AT_FIRST, |buffer| unposted.push(buffer))?;
        Ok(OfiNetwork {
            endpoint,
            peers: BTreeMap::new(),
            free: Vec::new(),
            unposted,
            targets: Vec::new(),
            leaving: 0,
            remote: RemoteFlights::default(),
            owed: Vec::new(),
            batched: Vec::new(),
            completions: VecDeque::new(),
            loss_clock: LossClock::default(),
        })
    }

    /// See [`OfiEndpoint::descriptor`].
    pub(super) fn descriptor(&self) -> Option<i32> {
        self.endpoint.descriptor()
    }

    /// As [`crate::nal::wire::Wire::longest_sleep_ns`].
    pub(super) fn longest_sleep_ns(&mut self) -> u64 {
        self.loss_clock.sleeps();
        if !self.completions.is_empty() {
            return 0;
        }
        let longest = self.endpoint.longest_sleep_ns();
        // What has not left may need calls to leave.
        match self.is_leaving() || !self.owed.is_empty() || self.remote.count != 0 {
            true => longest.min(SHORT_SLEEP_NS),
            false => longest,
        }
    }

    /// Whether frames have not left.
    pub(super) fn is_leaving(&self) -> bool {
        self.leaving != 0 || !self.batched.is_empty()
    }

    /// As [`crate::nal::Nal::is_meeting`].
    pub(super) fn is_meeting(&self, peer: u32) -> bool {
        self.peers.get(&peer).is_some_and(|peer| !peer.is_open && !peer.has_failed)
    }

    /// As [`crate::nal::wire::Wire::silent_peer`].
    pub(super) fn silent_peer(&self, ns: u64) -> Option<u32> {
        let now = clock::now_ns();
        let is_silent =
            |peer: &OfiPeer| !peer.is_open && !peer.has_failed && now >= peer.since + ns;
        self.peers.iter().find(|(_, peer)| is_silent(peer)).map(|(number, _)| *number)
    }

    /// The buffers that were made.
    #[cfg(test)]
    pub(super) fn buffers(&self) -> usize {
        self.endpoint.buffers()
    }

    /// A peer has failed.
    #[cold]
    pub(super) fn fail(
        &mut self,
        here: &OfiEnd,
        peers: &OfiPeers,
        number: u32,
        error: i32,
        cause: &str,
    ) {
        let end = if CLOSED.contains(&error) { PeerEnd::Closed } else { PeerEnd::Lost };
        self.fail_by(here, peers, number, end, cause);
    }

    /// The same, by this end.
    #[cold]
    pub(super) fn fail_by(
        &mut self,
        here: &OfiEnd,
        peers: &OfiPeers,
        number: u32,
        end: PeerEnd,
        cause: &str,
    ) {
        let Some(peer) = self.peers.get_mut(&number) else { return };
        if mem::replace(&mut peer.has_failed, true) {
            return;
        }
        let early = mem::take(&mut peer.early);
        self.unposted.extend(early.into_values().filter_map(|(buffer, _)| buffer));
        self.free.extend(peer.batch.take().map(|batch| batch.into_parts().0));
        here.failures.add(number, || PeerFailure {
            process: peers.numbering.process(number).unwrap_or(PtlProcessId::ANY),
            address: self.endpoint.shown(&peers.names[peer.position as usize]),
            end,
            cause: String::from(cause),
        });
    }

    /// The endpoint itself has failed, and with it all peers that this process has met.
    #[cold]
    pub(super) fn fail_all(&mut self, here: &OfiEnd, peers: &OfiPeers, error: &OfiError) {
        for number in self.peers.keys().copied().collect::<Vec<u32>>() {
            self.fail(here, peers, number, error.number, &error.to_string());
        }
    }

    /// Lets messages arrive in all buffers for them.
    pub(super) fn post(&mut self, here: &OfiEnd, peers: &OfiPeers) {
        while let Some(buffer) = self.unposted.pop() {
            if let Err((buffer, why)) = self.endpoint.post(buffer) {
                self.unposted.push(buffer);
                if let NotBegun::Failed(e) = why {
                    self.fail_all(here, peers, &e);
                }
                return;
            }
        }
    }
}
