//! A peer: what was sent to it and taken from it, and the credits of both sides.
//!
//! Owned by [`super::network::OfiNetwork`]. Invariant: no side sends more frames than it has
//! credits for, and a greeting is the first.

use alloc::collections::BTreeMap;

use super::batch::FrameBatch;
use super::endpoint::OfiBuffer;
use super::limits::{AGAIN_NS, FIRST_WINDOW, SENDS_PER_PEER, UNREACHABLE_NS, WINDOW};
use super::loss::{self, ASK, LossWatch};
use super::seal::{FrameCount, SealedLead};
use super::slot::OfiAddress;

/// What this process knows of a peer.
pub(super) struct OfiPeer {
    pub(super) to: OfiAddress,
    pub(super) position: u32,
    /// When it became known.
    pub(super) since: u64,
    /// Its greeting has arrived.
    pub(super) is_open: bool,
    pub(super) has_failed: bool,
    /// A frame without bytes is due.
    pub(super) owes: bool,
    /// When greetings to it began to fail, and when the next may leave.
    pub(super) unreachable_since: Option<u64>,
    pub(super) greet_at: u64,
    /// The number of the next frame to it.
    pub(super) next: u64,
    /// Frames of data that were sent, and that may be sent in all.
    pub(super) sent: u64,
    pub(super) granted: u64,
    /// The last frame to it was one that the provider keeps: nothing says when it has left, but
    /// that a later frame has.
    pub(super) is_kept: bool,
    /// Frames to it in buffers that have not left.
    pub(super) leaving: usize,
    /// Remote operations in its memory that are under way.
    pub(super) remote: usize,
    /// The number of its next frame.
    pub(super) expected: u64,
    /// Frames of data that were taken from it, and that it may send in all, as far as it knows.
    pub(super) received: u64,
    pub(super) granted_to: u64,
    /// Frames that it may send before it gets credits again. There are buffers for them.
    pub(super) window: u64,
    /// Frames to it that wait for more.
    pub(super) batch: Option<FrameBatch>,
    /// Frames that have arrived before the expected one; those of data in their buffers.
    pub(super) early: BTreeMap<u64, (Option<OfiBuffer>, ArrivedFrame)>,
    pub(super) losses: LossWatch,
}

/// A frame that has arrived, whose seal is right.
#[derive(Clone, Copy, Debug)]
pub(super) struct ArrivedFrame {
    pub(super) from: u32,
    pub(super) number: u64,
    pub(super) lead: SealedLead,
    pub(super) length: usize,
}

impl ArrivedFrame {
    /// Its sender wants an answer.
    pub(super) fn is_ask(&self) -> bool {
        self.length == ASK.len()
    }

    pub(super) fn has_data(&self) -> bool {
        loss::has_data(self.length)
    }
}

impl OfiPeer {
    /// One that has sent nothing, and that is owed a greeting.
    pub(super) fn new(to: OfiAddress, position: u32, now: u64) -> OfiPeer {
        OfiPeer {
            to,
            position,
            since: now,
            is_open: false,
            has_failed: false,
            owes: true,
            unreachable_since: None,
            greet_at: 0,
            next: 0,
            sent: 0,
            granted: 0,
            is_kept: false,
            leaving: 0,
            remote: 0,
            expected: 0,
            received: 0,
            granted_to: 0,
            window: FIRST_WINDOW,
            batch: None,
            early: BTreeMap::new(),
            losses: LossWatch::default(),
        }
    }

    /// Whether a frame of data may leave now: the greetings were sent, and there is a credit.
    pub(super) fn may_send(&self) -> bool {
        self.is_open && self.next != 0 && self.sent < self.granted
    }

    /// Whether one more buffer with frames to it may be leaving.
    pub(super) fn has_room(&self) -> bool {
        self.leaving < SENDS_PER_PEER
    }

    /// What travels with the next frame to it, from the process at position `own`.
    pub(super) fn next_lead(&self, own: u32) -> (SealedLead, FrameCount) {
        let granted = (self.received + self.window) as u16;
        let lead = SealedLead { source: own, number: self.next as u16, granted };
        (lead, FrameCount { target: self.position, number: self.next })
    }

    /// The next frame to it was sent: with data or without, kept by the provider or not.
    pub(super) fn has_sent(&mut self, has_data: bool, is_kept: bool) {
        self.is_kept = is_kept;
        self.next += 1;
        self.granted_to = self.received + self.window;
        self.owes = false;
        self.sent += u64::from(has_data);
    }

    /// Its newest frame was not sent. If that was the greeting, whether it is sent again.
    pub(super) fn greet_again(&mut self, now: u64) -> bool {
        let since = *self.unreachable_since.get_or_insert(now);
        let again = self.next <= 1 && self.sent == 0 && now - since < UNREACHABLE_NS;
        if again {
            self.next = 0;
            self.owes = true;
            self.greet_at = now.saturating_add(AGAIN_NS);
        }
        again
    }

    /// Whether it may send no more than half of a window.
    pub(super) fn is_credit_due(&self) -> bool {
        2 * (self.granted_to - self.received) <= self.window
    }

    /// How much its window is to grow.
    pub(super) fn growth(&self) -> u64 {
        match self.received >= 2 * self.window {
            true => self.window.min(WINDOW - self.window),
            false => 0,
        }
    }

    /// Takes its next frame: whether it is one of data.
    ///
    /// # Errors
    /// What the peer did that no process of the job does.
    pub(super) fn take(&mut self, frame: &ArrivedFrame) -> Result<bool, &'static str> {
        let more = u64::from(frame.lead.granted.wrapping_sub(self.granted as u16));
        if self.granted + more > self.sent + WINDOW {
            return Err("it granted more credits than there are");
        }
        self.granted += more;
        self.expected += 1;
        let is_greeting = frame.number == 0;
        if is_greeting && frame.length != 0 {
            return Err("it sent a frame before its greeting");
        }
        self.is_open |= is_greeting;
        if !frame.has_data() {
            return Ok(false);
        }
        if self.received >= self.granted_to {
            return Err("it sent more than it had credits for");
        }
        self.received += 1;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_greeting_is_sent_again_for_its_time() {
        let mut peer = OfiPeer::new(OfiAddress::NONE, 1, 0);
        for now in (1000..1000 + UNREACHABLE_NS).step_by(AGAIN_NS as usize) {
            peer.next = 1;
            peer.owes = false;
            assert!(peer.greet_again(now) && peer.owes && peer.next == 0, "{now}");
            assert_eq!(peer.greet_at, now + AGAIN_NS);
        }
        assert!(!peer.greet_again(1000 + UNREACHABLE_NS));
    }

    #[test]
    fn only_a_greeting_is_sent_again() {
        let mut peer = OfiPeer::new(OfiAddress::NONE, 1, 0);
        (peer.is_open, peer.granted) = (true, 8);
        assert!(!peer.may_send());
        peer.next = 1;
        assert!(peer.may_send());
        (peer.next, peer.sent) = (2, 1);
        assert!(!peer.greet_again(1000));
    }
}
