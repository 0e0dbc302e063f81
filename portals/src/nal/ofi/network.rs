//! The peers of a lane: their frames, in order, and the credits for them.
//!
//! Owned by [`super::OfiWire`], each under a lock of its own. A peer becomes known by the first
//! frame to it, or by its greeting: a frame without bytes. Each frame says how many frames of data
//! its receiver may send in all; an empty frame does so where nothing else is to be sent. That is
//! a window more than were taken. The window grows with what a peer sends.
//!
//! Invariants: a peer sends no more frames than there are buffers for. Its frames are passed on in
//! the order of their numbers, each once. A peer that has failed gets and sends nothing.

use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::mem;
use core::sync::atomic::{AtomicU64, Ordering};

use super::batch;
use super::bindings::CLOSED;
use super::endpoint::{NAME_BYTES, OfiBuffer, OfiCompletion, OfiEndpoint};
use super::flights::{RemoteFlight, RemoteFlights};
use super::library::OfiError;
use super::limits::*;
use super::peer::{ArrivedFrame, OfiPeer};
use super::seal::{FrameCount, OfiTagMode, SealedFrame, nearest};
use super::slot::{NotBegun, OfiAddress};
use crate::nal::numbering::HostNumbering;
use crate::nal::outcome::FrameSink;
use crate::nal::wire::{PeerFailure, PeerFailures};
use crate::types::PtlProcessId;
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
    /// The lane of the peer at this position: the same for both processes of a pair, and as many
    /// peers in each lane as in the others.
    fn lane_at(&self, position: u32) -> usize {
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
    /// Longest message that the provider keeps when it is sent.
    pub(super) inject: usize,
    pub(super) failures: PeerFailures,
    /// Messages that no process of the job has sent, or that came again.
    pub(super) refused: AtomicU64,
}

impl OfiEnd {
    fn refuse(&self) {
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
    pub(super) completions: Vec<OfiCompletion>,
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
            completions: Vec::new(),
        })
    }

    /// See [`OfiEndpoint::descriptor`].
    pub(super) fn descriptor(&self) -> Option<i32> {
        self.endpoint.descriptor()
    }

    /// As [`crate::nal::wire::Wire::longest_sleep_ns`].
    pub(super) fn longest_sleep_ns(&mut self) -> u64 {
        match self.endpoint.may_sleep() {
            false => 0,
            // What has not left may need calls to leave.
            true if self.is_leaving() || !self.owed.is_empty() || self.remote.count != 0 => {
                SHORT_SLEEP_NS
            }
            true => u64::MAX,
        }
    }

    /// Whether frames have not left.
    pub(super) fn is_leaving(&self) -> bool {
        self.leaving != 0 || !self.batched.is_empty()
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

    /// Makes a peer known, and greets it.
    #[cold]
    pub(super) fn meet(&mut self, here: &OfiEnd, peers: &OfiPeers, number: u32, position: u32) {
        let name = &peers.names[position as usize];
        let unposted = &mut self.unposted;
        let known = self.endpoint.insert(name).and_then(|to| {
            let buffers = FIRST_WINDOW as usize + BUFFERS_MORE;
            self.endpoint.add_buffers(buffers, |buffer| unposted.push(buffer))?;
            Ok(to)
        });
        let (to, failure) = match known {
            Ok(to) => (to, None),
            Err(e) => (OfiAddress::NONE, Some(e)),
        };
        let peer = OfiPeer::new(to, position, clock::now_ns());
        self.peers.insert(number, peer);
        match failure {
            None => {
                self.post(here, peers);
                self.owed.push(number);
                self.pay(here, peers);
            }
            Some(e) => self.fail(here, peers, number, e.number, &e.to_string()),
        }
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
        let Some(peer) = self.peers.get_mut(&number) else { return };
        if mem::replace(&mut peer.has_failed, true) {
            return;
        }
        let early = mem::take(&mut peer.early);
        self.unposted.extend(early.into_values().map(|(buffer, _)| buffer));
        self.free.extend(peer.batch.take().map(|batch| batch.into_parts().0));
        here.failures.add(number, || PeerFailure {
            process: peers.numbering.process(number).unwrap_or(PtlProcessId::ANY),
            address: self.endpoint.shown(&peers.names[peer.position as usize]),
            closed: CLOSED.contains(&error),
            cause: String::from(cause),
        });
    }

    /// The endpoint itself has failed, and with it all peers that this process has met.
    #[cold]
    fn fail_all(&mut self, here: &OfiEnd, peers: &OfiPeers, error: &OfiError) {
        here.refuse();
        for number in self.peers.keys().copied().collect::<Vec<u32>>() {
            self.fail(here, peers, number, error.number, &error.to_string());
        }
    }

    /// Lets messages arrive in all buffers for them.
    fn post(&mut self, here: &OfiEnd, peers: &OfiPeers) {
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

    /// As [`crate::nal::wire::Wire::receive`].
    pub(super) fn receive(
        &mut self,
        here: &OfiEnd,
        peers: &OfiPeers,
        max: usize,
        sink: &mut dyn FrameSink,
    ) -> bool {
        if !self.unposted.is_empty() {
            self.post(here, peers);
        }
        let mut completions = mem::take(&mut self.completions);
        let mut taken = 0;
        while taken < max {
            let more = self.endpoint.completions(max - taken, &mut completions);
            for completion in completions.drain(..) {
                taken += self.complete(here, peers, completion, sink);
            }
            match more {
                Ok(true) => {}
                Ok(false) => break,
                Err(e) => {
                    self.fail_all(here, peers, &e);
                    break;
                }
            }
        }
        self.completions = completions;
        if !self.unposted.is_empty() {
            self.post(here, peers);
        }
        if !self.owed.is_empty() {
            self.pay(here, peers);
        }
        if !self.batched.is_empty() {
            self.end_batches(here, peers);
        }
        taken != 0
    }

    /// Returns how many frames were passed on, or remote operations have ended.
    fn complete(
        &mut self,
        here: &OfiEnd,
        peers: &OfiPeers,
        completion: OfiCompletion,
        sink: &mut dyn FrameSink,
    ) -> usize {
        match completion {
            OfiCompletion::Received { buffer, length, tag, data } => {
                let message = &self.endpoint.bytes(&buffer)[..length];
                let opened = SealedFrame::open(here.mode, tag, data, message);
                let accepted = opened.and_then(|frame| self.accept(here, peers, &frame));
                if let Some(arrived) = accepted {
                    return self.arrived(here, peers, arrived, buffer, sink);
                }
                here.refuse();
                self.unposted.push(buffer);
            }
            OfiCompletion::Sent { buffer } => {
                self.left(buffer);
            }
            OfiCompletion::ReceiveFailed { buffer } => {
                here.refuse();
                self.unposted.push(buffer);
            }
            OfiCompletion::SendFailed { buffer, error } => {
                let number = self.left(buffer);
                self.not_sent(here, peers, number, &error);
            }
            OfiCompletion::Remote { number, error } => {
                let RemoteFlight { peer: of, token } = self.remote.ended(number);
                if let Some(peer) = self.peers.get_mut(&of) {
                    peer.remote -= 1;
                }
                if let Some(e) = &error {
                    self.fail(here, peers, of, e.number, &e.to_string());
                }
                sink.completed(token, error.is_none());
                return 1;
            }
        }
        0
    }

    /// Checks a frame. `None`: no process of the job has sent it, or it came again.
    fn accept(
        &self,
        here: &OfiEnd,
        peers: &OfiPeers,
        opened: &SealedFrame<'_>,
    ) -> Option<ArrivedFrame> {
        let lead = opened.lead;
        let from = peers.numbering.number_at(lead.source)?;
        // In another lane it could come again.
        if from < peers.numbering.own() || peers.lane_at(lead.source) != self.endpoint.context {
            return None;
        }
        let peer = self.peers.get(&from);
        let expected = peer.map_or(0, |peer| peer.expected);
        let number = nearest(expected, lead.number)?;
        let is_next = number.checked_sub(expected)? < WINDOW + BUFFERS_MORE as u64;
        let is_new = !peer.is_some_and(|peer| peer.early.contains_key(&number));
        let count = FrameCount { target: peers.own, number };
        (is_next && is_new && opened.is_sealed(&here.key, count)).then_some(ArrivedFrame {
            from,
            number,
            lead,
            length: opened.frame.len(),
        })
    }

    /// A frame has arrived. It is passed on if it is the next one, with those behind it.
    fn arrived(
        &mut self,
        here: &OfiEnd,
        peers: &OfiPeers,
        frame: ArrivedFrame,
        buffer: OfiBuffer,
        sink: &mut dyn FrameSink,
    ) -> usize {
        let from = frame.from;
        if !self.peers.contains_key(&from) {
            self.meet(here, peers, from, frame.lead.source);
        }
        let Some(peer) = self.peers.get_mut(&from) else { return 0 };
        if peer.has_failed {
            self.unposted.push(buffer);
            return 0;
        }
        if frame.number != peer.expected {
            peer.early.insert(frame.number, (buffer, frame));
            return 0;
        }
        let mut passed = 0;
        let mut next = Some((buffer, frame));
        while let Some((buffer, frame)) = next {
            let Some(peer) = self.peers.get_mut(&from) else { return passed };
            let mut taken = peer.take(&frame);
            if taken == Ok(true) {
                let start = here.mode.lead_bytes();
                let bytes = &self.endpoint.bytes(&buffer)[start..][..frame.length];
                let whole = batch::each_frame(bytes, |frame| {
                    sink.frame(from, frame);
                    passed += 1;
                });
                taken = whole.and(taken);
            }
            self.unposted.push(buffer);
            match taken {
                Err(why) => {
                    self.fail(here, peers, from, 0, why);
                    return passed;
                }
                Ok(_) if !peer.owes && peer.is_credit_due() => {
                    peer.owes = true;
                    self.owed.push(from);
                    let unposted = &mut self.unposted;
                    let more = peer.growth();
                    let add = |buffer| unposted.push(buffer);
                    if more != 0 && self.endpoint.add_buffers(more as usize, add).is_ok() {
                        peer.window += more;
                    }
                }
                Ok(_) => {}
            }
            next = peer.early.remove(&peer.expected);
        }
        passed
    }
}
