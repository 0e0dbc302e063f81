//! The messages of the peers of one lane, and how their frames leave.
//!
//! Owned by [`super::framer`], which has a lock for each lane. Invariant: a peer has one lane, so
//! one thread at a time sends to it and takes from it.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::ptr;
use core::sync::atomic::{AtomicUsize, Ordering};

use super::exposed::RemoteTransfers;
use super::framed::FramedTransfer;
use crate::arena::IOVECS;
use crate::nal::FrameSent;
use crate::nal::frame::FrameHeader;
use crate::tables::NiState;
use crate::types::*;

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
