//! How the frames to the peers of a lane leave: alone, or several in one message.
//!
//! The part of [`super::network`] that sends, under the same lock. Invariants: a frame of data
//! leaves only with a credit, which a batch has from its begin. The frames to a peer leave in the
//! order in which they were sent.

use alloc::collections::VecDeque;
use alloc::string::ToString;
use alloc::vec::Vec;
use core::mem;

use super::batch::{FrameBatch, MOST_KEPT};
use super::endpoint::{OfiBuffer, OfiCompletion};
use super::library::OfiError;
use super::limits::*;
use super::network::{OfiEnd, OfiNetwork, OfiPeers};
use super::peer::OfiPeer;
use super::seal;
use super::slot::{NotBegun, OfiAddress};
use crate::nal;
use crate::nal::outcome::FrameSent;
use crate::types::MdIovec;
use sys::clock;

impl OfiNetwork {
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

    /// Sends the frames without bytes that are owed.
    pub(super) fn pay(&mut self, here: &OfiEnd, peers: &OfiPeers) {
        for number in mem::take(&mut self.owed) {
            let Some(peer) = self.peers.get_mut(&number) else { continue };
            if !peer.owes || peer.has_failed {
                continue;
            }
            if peer.greet_at != 0 && clock::now_ns() < peer.greet_at {
                self.owed.push(number);
                continue;
            }
            // The provider says what becomes of a greeting.
            let keep = peer.next != 0;
            // SAFETY: no pieces.
            match unsafe { self.send_to(here, peers, number, keep, &[], &[]) } {
                Ok(()) => {}
                Err(NotBegun::Full) => self.owed.push(number),
                Err(NotBegun::Failed(e)) => self.not_sent(here, peers, number, &e),
            }
        }
    }

    /// A frame was not sent. A greeting is sent again, as the link may be down for a moment.
    #[cold]
    pub(super) fn not_sent(
        &mut self,
        here: &OfiEnd,
        peers: &OfiPeers,
        number: u32,
        error: &OfiError,
    ) {
        if let Some(peer) = self.peers.get_mut(&number)
            && peer.greet_again(clock::now_ns())
        {
            self.owed.push(number);
            return;
        }
        self.fail(here, peers, number, error.number, &error.to_string());
    }

    /// Sends a frame, or one without bytes. With `keep` the provider keeps a short
    /// message, and nothing says when it has left.
    ///
    /// # Safety
    /// The pieces are readable.
    pub(super) unsafe fn send_to(
        &mut self,
        here: &OfiEnd,
        peers: &OfiPeers,
        number: u32,
        keep: bool,
        header: &[u8],
        payload: &[MdIovec],
    ) -> Result<(), NotBegun> {
        let before = here.mode.lead_bytes();
        let length = before + nal::frame_length(header, payload);
        if !keep || length > here.inject {
            if !self.peers.get(&number).is_some_and(OfiPeer::has_room) {
                return Err(NotBegun::Full);
            }
            let mut buffer = self.take_buffer()?;
            let message = &mut self.endpoint.bytes_mut(&mut buffer)[..length];
            // SAFETY: the same contract.
            unsafe { nal::gather(&mut message[before..], header, payload) };
            return self.send_buffer(here, peers, number, buffer, length).map_err(
                |(buffer, why)| {
                    self.free.push(buffer);
                    why
                },
            );
        }
        let Some(peer) = self.peers.get_mut(&number) else { return Err(NotBegun::Full) };
        let (lead, count) = peer.next_lead(peers.own);
        let mut message = [0; INJECTED];
        let message = &mut message[..length];
        // SAFETY: the same contract.
        unsafe { nal::gather(&mut message[before..], header, payload) };
        let with = seal::close(&here.key, here.mode, lead, count, message);
        self.endpoint.inject(peer.to, message, with)?;
        peer.has_sent(here.is_data(length), true);
        Ok(())
    }

    /// Seals and sends the first bytes of a buffer. If they do not leave, it comes back.
    fn send_buffer(
        &mut self,
        here: &OfiEnd,
        peers: &OfiPeers,
        number: u32,
        mut buffer: OfiBuffer,
        length: usize,
    ) -> Result<(), (OfiBuffer, NotBegun)> {
        let peer = self.peers.get_mut(&number).filter(|peer| peer.has_room());
        let Some(peer) = peer else { return Err((buffer, NotBegun::Full)) };
        let (lead, count) = peer.next_lead(peers.own);
        let message = &mut self.endpoint.bytes_mut(&mut buffer)[..length];
        let with = seal::close(&here.key, here.mode, lead, count, message);
        let at = buffer.number();
        self.endpoint.send(peer.to, buffer, length, with)?;
        if self.targets.len() <= at {
            self.targets.resize(at + 1, 0);
        }
        self.targets[at] = number;
        peer.leaving += 1;
        self.leaving += 1;
        peer.has_sent(here.is_data(length), false);
        Ok(())
    }

    /// A buffer for frames to be sent.
    fn take_buffer(&mut self) -> Result<OfiBuffer, NotBegun> {
        if self.free.is_empty() {
            self.make_buffers()?;
        }
        self.free.pop().ok_or(NotBegun::Full)
    }

    #[cold]
    fn make_buffers(&mut self) -> Result<(), NotBegun> {
        let free = &mut self.free;
        let made = self.endpoint.add_buffers(SENDS_AT_ONCE, |buffer| free.push(buffer));
        made.map_err(NotBegun::Failed)
    }

    /// As [`crate::nal::wire::Wire::send`] of this header and payload; the last says whether
    /// another frame follows.
    ///
    /// # Safety
    /// The pieces are readable.
    pub(super) unsafe fn send(
        &mut self,
        here: &OfiEnd,
        peers: &OfiPeers,
        number: u32,
        (header, payload, follows): (&[u8], &[MdIovec], bool),
    ) -> FrameSent {
        let Some(peer) = self.peers.get(&number) else {
            let position = peers.numbering.process(number);
            let Some(position) = position.and_then(|id| peers.numbering.position(id)) else {
                return FrameSent::Gone;
            };
            self.meet(here, peers, number, position);
            return FrameSent::Full;
        };
        if peer.has_failed {
            return FrameSent::Gone;
        }
        let has_batch = peer.batch.is_some();
        if !has_batch && !peer.may_send() {
            return FrameSent::Full;
        }
        if has_batch || follows && nal::frame_length(header, payload) <= MOST_KEPT {
            // SAFETY: the same contract.
            match unsafe { self.add_to_batch(here, number, header, payload) } {
                Ok(true) if follows => return FrameSent::Sent,
                // It is part of a message that leaves later if it does not now.
                Ok(true) => return self.end_batch(here, peers, number, FrameSent::Sent),
                Ok(false) => match self.end_batch(here, peers, number, FrameSent::Full) {
                    FrameSent::Sent => {}
                    other => return other,
                },
                // It has to leave alone, which may need no buffer.
                Err(_) => {}
            }
            if !self.peers.get(&number).is_some_and(OfiPeer::may_send) {
                return FrameSent::Full;
            }
        }
        // SAFETY: the same contract.
        match unsafe { self.send_to(here, peers, number, true, header, payload) } {
            Ok(()) => FrameSent::Sent,
            Err(NotBegun::Full) => FrameSent::Full,
            Err(NotBegun::Failed(e)) => {
                self.fail(here, peers, number, e.number, &e.to_string());
                FrameSent::Gone
            }
        }
    }

    /// Adds a frame to the batch of a peer, which may begin with it. False: it has no room.
    ///
    /// # Errors
    /// There is no buffer for one.
    ///
    /// # Safety
    /// The pieces are readable.
    unsafe fn add_to_batch(
        &mut self,
        here: &OfiEnd,
        number: u32,
        header: &[u8],
        payload: &[MdIovec],
    ) -> Result<bool, NotBegun> {
        let begun = self.peers.get_mut(&number).and_then(|peer| peer.batch.take());
        let mut batch = match begun {
            Some(batch) => batch,
            None => {
                let mut buffer = self.take_buffer()?;
                let before = here.mode.lead_bytes();
                let message = self.endpoint.bytes_mut(&mut buffer);
                self.batched.push(number);
                FrameBatch::new(buffer, message, before)
            }
        };
        let length = nal::frame_length(header, payload);
        let fits = batch.has_room(length, SHORT_FRAME + here.mode.lead_bytes());
        if fits {
            let message = self.endpoint.bytes_mut(batch.buffer_mut());
            // SAFETY: the same contract.
            unsafe { nal::gather(batch.place(message, length), header, payload) };
        }
        if let Some(peer) = self.peers.get_mut(&number) {
            peer.batch = Some(batch);
        }
        Ok(fits)
    }

    /// Sends the batch of a peer; `full` says what is returned if it cannot leave now. Then it
    /// leaves in a later call of [`OfiNetwork::receive`].
    fn end_batch(
        &mut self,
        here: &OfiEnd,
        peers: &OfiPeers,
        number: u32,
        full: FrameSent,
    ) -> FrameSent {
        let Some(peer) = self.peers.get_mut(&number) else { return FrameSent::Gone };
        if peer.next == 0 {
            // The greeting, which is sent again, comes before it.
            return full;
        }
        let Some((buffer, length)) = peer.batch.take().map(FrameBatch::into_parts) else {
            return FrameSent::Sent;
        };
        let Err((buffer, why)) = self.send_buffer(here, peers, number, buffer, length) else {
            return FrameSent::Sent;
        };
        if let Some(peer) = self.peers.get_mut(&number) {
            peer.batch = Some(FrameBatch::from_parts(buffer, length));
        }
        match why {
            NotBegun::Full => full,
            NotBegun::Failed(e) => {
                self.fail(here, peers, number, e.number, &e.to_string());
                FrameSent::Gone
            }
        }
    }

    /// Sends the batches that no further frame has followed.
    pub(super) fn end_batches(&mut self, here: &OfiEnd, peers: &OfiPeers) {
        for number in mem::take(&mut self.batched) {
            if self.end_batch(here, peers, number, FrameSent::Full) == FrameSent::Full {
                self.batched.push(number);
            }
        }
    }

    /// As [`crate::nal::wire::Wire::flush`]. An empty frame follows those that the provider keeps:
    /// when it has left, so have they, as far as messages to a peer leave in order.
    pub(super) fn begin_flush(&mut self, here: &OfiEnd, peers: &OfiPeers) {
        let is_kept = |peer: &OfiPeer| peer.is_kept && peer.is_open && !peer.has_failed;
        let kept = self.peers.iter().filter(|(_, peer)| is_kept(peer));
        for number in kept.map(|(&number, _)| number).collect::<Vec<u32>>() {
            // SAFETY: no pieces.
            let _ = unsafe { self.send_to(here, peers, number, false, &[], &[]) };
        }
    }

    /// Goes on with it; returns whether anything is left. What arrives meanwhile stays for the
    /// next look.
    pub(super) fn flush_more(&mut self, here: &OfiEnd, peers: &OfiPeers) -> bool {
        self.end_batches(here, peers);
        let mut completions = VecDeque::new();
        if self.endpoint.completions(usize::MAX, &mut completions).is_err() {
            return false;
        }
        for completion in completions {
            match completion {
                OfiCompletion::Sent { buffer } | OfiCompletion::SendFailed { buffer, .. } => {
                    self.left(buffer);
                }
                other => self.completions.push_back(other),
            }
        }
        let is_remote = |done: &&OfiCompletion| matches!(done, OfiCompletion::Remote { .. });
        let ended = self.completions.iter().filter(is_remote).count();
        self.is_leaving() || self.remote.count != ended
    }

    /// A frame to a peer has left, or never will; returns the peer.
    pub(super) fn left(&mut self, buffer: OfiBuffer) -> u32 {
        let number = self.targets[buffer.number()];
        if let Some(peer) = self.peers.get_mut(&number) {
            peer.leaving -= 1;
        }
        self.leaving -= 1;
        self.free.push(buffer);
        number
    }
}
