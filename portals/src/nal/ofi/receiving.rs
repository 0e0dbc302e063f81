//! What arrives from the peers of a lane: frames, in order, and the ends of operations; and what
//! does not arrive ([`super::loss`]).
//!
//! The part of [`super::network`] that reads completions, under the same lock. Invariants: the
//! frames of a peer are passed on in the order of their numbers, each once. What no process of the
//! job has sent is refused.

use alloc::string::ToString;
use alloc::vec::Vec;
use core::mem;

use super::batch;
use super::endpoint::{OfiBuffer, OfiCompletion};
use super::flights::RemoteFlight;
use super::limits::*;
use super::loss::{ASK, LossCheck};
use super::network::{OfiEnd, OfiNetwork, OfiPeers};
use super::peer::{ArrivedFrame, OfiPeer};
use super::seal::{FrameCount, SealedFrame, nearest};
use super::slot::NotBegun;
use crate::nal::outcome::FrameSink;
use crate::nal::wire::PeerEnd;

impl OfiNetwork {
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
        let (mut taken, mut more) = (0, Ok(true));
        while taken < max {
            if let Some(completion) = completions.pop_front() {
                taken += self.complete(here, peers, completion, sink);
            } else if more == Ok(true) {
                more = self.endpoint.completions(max - taken, &mut completions);
            } else {
                break;
            }
        }
        // Those of a message leave together, so some may be left.
        self.completions = completions;
        match more {
            Ok(false) => self.check_losses(here, peers),
            Ok(true) => {}
            Err(e) => self.fail_all(here, peers, &e),
        }
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
                self.endpoint.give_back(number);
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
        let is_next = number.checked_sub(expected)? < MOST_AHEAD;
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
        peer.losses.arrived();
        if frame.is_ask() && !peer.owes {
            peer.owes = true;
            self.owed.push(from);
        }
        if frame.number != peer.expected {
            let mut buffer = Some(buffer);
            if !frame.has_data() {
                self.unposted.extend(buffer.take());
            }
            peer.early.insert(frame.number, (buffer, frame));
            return 0;
        }
        let mut passed = 0;
        let mut next = Some((Some(buffer), frame));
        while let Some((buffer, frame)) = next {
            let Some(peer) = self.peers.get_mut(&from) else { return passed };
            let mut taken = peer.take(&frame);
            if taken == Ok(true)
                && let Some(buffer) = &buffer
            {
                let start = here.mode.lead_bytes();
                let bytes = &self.endpoint.bytes(buffer)[start..][..frame.length];
                let whole = batch::each_frame(bytes, |frame| {
                    sink.frame(from, frame);
                    passed += 1;
                });
                taken = whole.and(taken);
            }
            self.unposted.extend(buffer);
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

    /// Looks for frames that are lost, if it is time. Called when all that has arrived was taken.
    pub(super) fn check_losses(&mut self, here: &OfiEnd, peers: &OfiPeers) {
        if !self.loss_clock.is_due() {
            return;
        }
        let check = |(&number, peer): (&u32, &mut OfiPeer)| {
            let missing = (!peer.early.is_empty()).then_some(peer.expected);
            let is_checked = peer.is_open && peer.next != 0 && !peer.has_failed;
            let found = is_checked.then(|| peer.losses.check(peer.sent, missing))?;
            (found != LossCheck::Nothing).then_some((number, found))
        };
        for (number, found) in self.peers.iter_mut().filter_map(check).collect::<Vec<_>>() {
            match found {
                LossCheck::Lost => self.lose(here, peers, number),
                _ => self.ask(here, peers, number),
            }
        }
    }

    fn ask(&mut self, here: &OfiEnd, peers: &OfiPeers, number: u32) {
        // SAFETY: no pieces.
        match unsafe { self.send_to(here, peers, number, true, &ASK, &[]) } {
            Ok(()) => {
                if let Some(peer) = self.peers.get_mut(&number) {
                    peer.losses.has_asked(peer.sent);
                }
            }
            // The next check asks.
            Err(NotBegun::Full) => {}
            Err(NotBegun::Failed(e)) => {
                self.fail(here, peers, number, e.number, &e.to_string());
            }
        }
    }

    #[cold]
    fn lose(&mut self, here: &OfiEnd, peers: &OfiPeers, number: u32) {
        let cause = "a message of that rank is lost in the network or its libfabric provider, and \
                     later ones arrive";
        self.fail_by(here, peers, number, PeerEnd::Dropped, cause);
    }
}
