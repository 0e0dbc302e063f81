//! The messages of the peers of one lane, and how their frames leave.
//!
//! Owned by [`super::framer`], which has a lock for each lane. Invariant: a peer has one lane, so
//! one thread at a time sends to it and takes from it.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::sync::atomic::{AtomicUsize, Ordering};
use core::{mem, ptr};

use super::exposed::RemoteTransfers;
use super::framed::FramedTransfer;
use crate::arena::IOVECS;
use crate::message::OpKind;
use crate::nal::frame::{FrameHeader, FrameRole};
use crate::nal::{FrameSent, PeerState};
use crate::tables::NiState;
use crate::types::*;

/// Messages to a peer that leave at once although their answers are to come.
const AT_ONCE: u32 = 4;
/// Bytes of a message that may wait for more.
const SHORT: Size = 1 << 10;
/// Most messages that wait for more.
const MOST_WAITING: usize = 64;
/// Looks for frames that find none, after which no answer is expected any more: a target that
/// drops a message answers none. Then peers that have sent a part of a message may have died.
const LOOKS: u32 = 1000;

/// The source of the payload of an outgoing message.
#[derive(Debug)]
pub(super) enum OutgoingPayload {
    None,
    Memory(FramedTransfer),
    Bytes(Vec<u8>),
}

/// A message whose last frame has not been sent.
#[derive(Debug)]
pub(super) struct OutgoingMessage {
    /// `at` is the position of the next frame.
    pub(super) frame: FrameHeader,
    pub(super) payload: OutgoingPayload,
}

/// A message whose last byte has not arrived.
#[derive(Debug)]
pub(super) struct IncomingMessage {
    pub(super) transfer: FramedTransfer,
    pub(super) frame: FrameHeader,
    /// Accepted bytes that have not arrived.
    pub(super) missing: Size,
    pub(super) ok: bool,
}

/// The messages of the peers of a lane.
#[derive(Debug, Default)]
pub(super) struct FramerLane {
    /// By peer; no queue is empty.
    pub(super) outgoing: BTreeMap<u32, VecDeque<OutgoingMessage>>,
    /// Peers whose queues are tried in turn.
    pub(super) turn: Vec<u32>,
    /// A queue that has become empty, to be used again.
    pub(super) spare: VecDeque<OutgoingMessage>,
    /// By sender and number.
    pub(super) incoming: BTreeMap<(u32, u32), IncomingMessage>,
    pub(super) next_message: u32,
    /// The header of a frame.
    pub(super) head: Vec<u8>,
    /// Payload of a frame that is read by the kernel.
    pub(super) scratch: Vec<u8>,
    pub(super) remote: RemoteTransfers,
    /// Messages to a peer whose answers are to come.
    unanswered: BTreeMap<u32, u32>,
    /// Looks for frames that found none.
    looks: u32,
}

impl FramerLane {
    /// Whether the message that was queued last for a peer of another host waits for more, so
    /// that one call of the system sends them all. It does if it is short and others are to be
    /// answered: the answers end the wait, whatever this process does meanwhile.
    pub(super) fn waits_for_more(&mut self, peer: u32) -> bool {
        let Some(queue) = self.outgoing.get(&peer) else { return false };
        let Some(OutgoingMessage { frame, .. }) = queue.back() else { return false };
        if !frame.ack && frame.op == OpKind::Put {
            return false;
        }
        let unanswered = self.unanswered.entry(peer).or_insert(0);
        let others = mem::replace(unanswered, unanswered.saturating_add(1));
        others >= AT_ONCE && frame.length() <= SHORT && queue.len() < MOST_WAITING
    }

    /// Notes a frame of a peer.
    pub(super) fn takes(&mut self, peer: u32, frame: &FrameHeader) {
        self.looks = 0;
        if matches!(frame.role, FrameRole::Ack | FrameRole::Reply)
            && frame.at == 0
            && let Some(unanswered) = self.unanswered.get_mut(&peer)
        {
            *unanswered = unanswered.saturating_sub(1);
        }
    }

    /// Notes a look for frames; returns whether many in a row have found none.
    pub(super) fn looks(&mut self) -> bool {
        self.looks += 1;
        let are_many = self.looks == LOOKS;
        if are_many {
            self.looks = 0;
            self.unanswered.clear();
        }
        are_many
    }

    /// Ends the messages of peers that have died: what is missing of them never arrives.
    #[cold]
    pub(super) fn end_those_of_dead(&mut self, ni: &NiState) {
        let is_dead = |(peer, _): &(u32, u32)| ni.peers.state_of(*peer) == PeerState::Dead;
        for key in self.incoming.keys().copied().filter(is_dead).collect::<Vec<_>>() {
            if let Some(message) = self.incoming.remove(&key) {
                ni.transfer_end(message.transfer, false);
            }
        }
    }
}

/// The lane that the calling thread looks at first: threads that come one after the other have
/// different ones.
pub(super) fn own_lane(lanes: usize) -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    std::thread_local! {
        static NUMBER: usize = NEXT.fetch_add(1, Ordering::Relaxed);
    }
    // A thread that ends has no values of its own any more.
    NUMBER.try_with(|number| number % lanes).unwrap_or(0)
}

/// Sends the next `length` bytes of a message. `follows`: a frame of another message to this peer
/// is sent next.
pub(super) fn send_frame(
    ni: &NiState,
    peer: u32,
    message: &mut OutgoingMessage,
    (length, follows): (Size, bool),
    (head, scratch): (&mut Vec<u8>, &mut Vec<u8>),
) -> FrameSent {
    let mut pieces = [MdIovec { base: ptr::null_mut(), len: 0 }; IOVECS];
    let at = message.frame.at;
    let count = match &message.payload {
        OutgoingPayload::None => 0,
        OutgoingPayload::Memory(_) if length == 0 => 0,
        OutgoingPayload::Memory(transfer) => {
            match ni.transfer_pieces(transfer, at, length, &mut pieces) {
                Some(count) => count,
                None => {
                    scratch.clear();
                    scratch.resize(length as usize, 0);
                    if !ni.transfer_read(transfer, at, scratch) {
                        message.frame.failed = true;
                    }
                    pieces[0] = MdIovec { base: scratch.as_mut_ptr().cast(), len: length };
                    1
                }
            }
        }
        OutgoingPayload::Bytes(bytes) => {
            let base = bytes[at as usize..].as_ptr().cast_mut().cast();
            pieces[0] = MdIovec { base, len: length };
            1
        }
    };
    message.frame.encode(head);
    let (nal, pieces) = (&ni.peers.nal, &pieces[..count]);
    // SAFETY: memory of a descriptor whose use the message is, or of a buffer, which is only read.
    unsafe { nal.send(peer, head, pieces, follows) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Queues a message of ours for a peer; whether it waits.
    fn waits(lane: &mut FramerLane, peer: u32, frame: FrameHeader) -> bool {
        let message = OutgoingMessage { frame, payload: OutgoingPayload::None };
        lane.outgoing.entry(peer).or_default().push_back(message);
        lane.waits_for_more(peer)
    }

    #[test]
    fn short_messages_wait_behind_unanswered_ones() {
        let mut lane = FramerLane::default();
        let (put, ack) = (FrameHeader::of(FrameRole::Request), FrameHeader::of(FrameRole::Ack));
        let short = FrameHeader { ack: true, rlength: SHORT, ..put };
        let get = FrameHeader { op: OpKind::Get, rlength: 1 << 30, ..put };
        assert_eq!([short, get, short, get].map(|f| waits(&mut lane, 3, f)), [false; 4]);
        assert_eq!([short, get].map(|f| waits(&mut lane, 3, f)), [true; 2]);
        // Those that nothing answers, that are long, or that go elsewhere.
        assert!(!waits(&mut lane, 3, put) && !waits(&mut lane, 4, short));
        assert!(!waits(&mut lane, 3, FrameHeader { rlength: SHORT + 1, ..short }));
        // All seven with an answer have one, in parts or whole.
        let reply = FrameHeader::of(FrameRole::Reply);
        (0..3).for_each(|_| lane.takes(3, &ack));
        assert!(waits(&mut lane, 3, short), "four are unanswered");
        (0..3).for_each(|_| lane.takes(3, &reply));
        lane.takes(3, &FrameHeader { at: 100, ..reply });
        assert!(!waits(&mut lane, 3, short) && !waits(&mut lane, 3, short));
        while lane.outgoing[&3].len() < MOST_WAITING - 1 {
            assert!(waits(&mut lane, 3, short));
        }
        assert!(!waits(&mut lane, 3, short), "as many as may wait");
    }

    #[test]
    fn answers_that_do_not_come_are_expected_no_longer() {
        let mut lane = FramerLane::default();
        let get = FrameHeader { op: OpKind::Get, ..FrameHeader::of(FrameRole::Request) };
        assert_eq!([get; 5].map(|f| waits(&mut lane, 3, f)).last(), Some(&true));
        assert!(!(1..LOOKS).any(|_| lane.looks()));
        assert!(waits(&mut lane, 3, get));
        assert!(lane.looks());
        assert!(!waits(&mut lane, 3, get));
    }
}
