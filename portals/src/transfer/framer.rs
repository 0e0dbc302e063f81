//! Messages cut into frames, for peers whose memory cannot be reached.
//!
//! The calls submit a message for a peer with [`crate::nal::Route::Wire`]. They also submit one
//! for a mapped peer if its descriptor lies in private memory that cross-memory attach cannot
//! reach. While such a message is in flight ([`Framer::busy`]), every later message of the pair is
//! submitted too. So messages match in the order in which they were sent. [`Framer::progress`]
//! runs inside the calls that look at event queues.
//!
//! A message is one or more frames with the same [`FrameHeader`], each with its part of the
//! payload. The target matches it when the first frame arrives, and posts START; END follows the
//! last accepted byte. A [`crate::nal::Nal`] must deliver the first frame of a message before its
//! others. It must deliver the first frames of the requests of a pair in order
//! ([`FrameTag::precedes`](crate::FrameTag::precedes)). Any other order is allowed. What cannot
//! leave at once waits in a queue of messages, not of frames: the bytes stay in place, held by the
//! message's [`FramedTransfer`].
//!
//! Invariant: nothing that a peer wrote is used before it is checked. The NAL names the sender
//! of a frame; lengths and offsets are compared with what was accepted; handles are looked up.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::framed::FramedTransfer;
use crate::arena::doorbell;
use crate::base::lock::SpinLock;
use crate::message::{MessageHeader, OpKind};
use crate::nal::frame::{FrameHeader, FrameRole};
use crate::tables::NiState;
use crate::types::*;

/// Most frames that one call of [`Framer::progress`] takes.
const TAKEN_AT_ONCE: usize = 64;

/// A message to be sent in frames.
#[derive(Debug)]
pub(crate) struct Submission {
    /// Index of the target.
    pub(crate) target: u32,
    /// The header as the target is to see it.
    pub(crate) header: MessageHeader,
    /// Put and get-put: the use of the source; SEND_START has been posted.
    /// [`NiState::transfer_end`] posts SEND_END when the bytes have been read.
    pub(crate) source: Option<FramedTransfer>,
    /// Put: whether the initiator wants an acknowledgement.
    pub(crate) ack: bool,
    /// Put: the descriptor that logs the ACK. Get and get-put: the one that the reply goes to.
    pub(crate) md: MdHandle,
    /// Get and get-put: the offset in `md` at which the reply is stored.
    pub(crate) local_offset: Size,
}

/// The source of the payload of an outgoing message.
#[derive(Debug)]
enum OutgoingPayload {
    None,
    Memory(FramedTransfer),
    Bytes(Vec<u8>),
}

/// A message whose last frame has not been sent.
#[derive(Debug)]
struct OutgoingMessage {
    /// `at` is the position of the next frame.
    frame: FrameHeader,
    payload: OutgoingPayload,
}

/// A message whose last byte has not arrived.
#[derive(Debug)]
struct IncomingMessage {
    transfer: FramedTransfer,
    frame: FrameHeader,
    /// Accepted bytes that have not arrived.
    missing: Size,
    ok: bool,
}

#[derive(Debug)]
struct FramerState {
    outgoing: Box<[VecDeque<OutgoingMessage>]>,
    /// By sender and number.
    incoming: BTreeMap<(u32, u32), IncomingMessage>,
    next_message: u32,
    scratch: Vec<u8>,
}

/// The framing state of one interface.
#[derive(Debug)]
pub(crate) struct Framer {
    /// Requests to mapped peers that the peer has not confirmed, by peer. Written under the
    /// lock.
    busy: Box<[AtomicU32]>,
    /// Messages in `outgoing`. Written under the lock.
    waiting: AtomicU32,
    sent: AtomicU64,
    taken: AtomicU64,
    state: SpinLock<FramerState>,
}

impl Framer {
    /// For a fabric of `size` processes.
    pub(crate) fn new(size: u32) -> Framer {
        let state = FramerState {
            outgoing: (0..size).map(|_| VecDeque::new()).collect(),
            incoming: BTreeMap::new(),
            next_message: 0,
            scratch: Vec::new(),
        };
        Framer {
            busy: (0..size).map(|_| AtomicU32::new(0)).collect(),
            waiting: AtomicU32::new(0),
            sent: AtomicU64::new(0),
            taken: AtomicU64::new(0),
            state: SpinLock::new(state),
        }
    }

    /// Accepts a message. It is sent at once or by a later [`Framer::progress`].
    pub(crate) fn submit(&self, ni: &NiState, message: Submission) {
        let target = message.target;
        let mut frame = first_frame(&message);
        frame.confirm = ni.peers.is_mapped(target);
        let payload = message.source.map_or(OutgoingPayload::None, OutgoingPayload::Memory);
        let mut state = self.state.lock();
        if frame.confirm {
            self.busy[target as usize].fetch_add(1, Ordering::Relaxed);
        }
        self.enqueue(ni, &mut state, target, frame, payload);
        self.pump(ni, &mut state, target);
    }

    /// Whether a framed message from us to `target` has not been confirmed yet.
    pub(crate) fn busy(&self, target: u32) -> bool {
        // Acquire pairs with the Release in `take`: the next message finds the list as the
        // confirmed one left it.
        self.busy[target as usize].load(Ordering::Acquire) != 0
    }

    /// Whether messages wait for room.
    #[inline(always)]
    pub(crate) fn is_waiting(&self) -> bool {
        self.waiting.load(Ordering::Relaxed) != 0
    }

    /// Frames of our messages, sent or waiting; and frames that arrived.
    pub(crate) fn counters(&self) -> (u64, u64) {
        (self.sent.load(Ordering::Relaxed), self.taken.load(Ordering::Relaxed))
    }

    /// Sends what waits and takes what has arrived. Called often; returns at once if there is
    /// nothing to do or another thread is doing it.
    pub(crate) fn progress(&self, ni: &NiState) {
        if self.waiting.load(Ordering::Relaxed) == 0 && !ni.peers.nal.has_frames() {
            return;
        }
        let Some(mut guard) = self.state.try_lock() else {
            doorbell::stay_awake(ni.peers.own.view.header()); // the other thread may leave some
            return;
        };
        let state = &mut *guard;
        ni.peers.nal.receive(TAKEN_AT_ONCE, &mut |peer, bytes| {
            self.taken.fetch_add(1, Ordering::Relaxed);
            if let Some((frame, payload)) = FrameHeader::decode(bytes) {
                self.take(ni, state, peer, frame, payload);
            }
        });
        if self.waiting.load(Ordering::Relaxed) != 0 {
            for peer in 0..state.outgoing.len() {
                self.pump(ni, state, peer as u32);
            }
        }
    }

    fn enqueue(
        &self,
        ni: &NiState,
        state: &mut FramerState,
        peer: u32,
        mut frame: FrameHeader,
        payload: OutgoingPayload,
    ) {
        state.next_message = state.next_message.wrapping_add(1);
        frame.message = state.next_message;
        frame.at = 0;
        let room = payload_room(ni) as Size;
        self.sent.fetch_add(frame.length().div_ceil(room).max(1), Ordering::Relaxed);
        self.waiting.fetch_add(1, Ordering::Relaxed);
        state.outgoing[peer as usize].push_back(OutgoingMessage { frame, payload });
    }

    /// Sends to one peer until the network has no room or nothing waits.
    fn pump(&self, ni: &NiState, state: &mut FramerState, peer: u32) {
        let room = payload_room(ni) as Size;
        let mut left = false;
        while let Some(message) = state.outgoing[peer as usize].front_mut() {
            let rest = message.frame.length() - message.frame.at;
            let piece = rest.min(room) as usize;
            message.frame.encode(&mut state.scratch);
            let head = state.scratch.len();
            state.scratch.resize(head + piece, 0);
            let into = &mut state.scratch[head..];
            match &message.payload {
                OutgoingPayload::None => {}
                OutgoingPayload::Memory(transfer) => {
                    if !ni.transfer_read(transfer, message.frame.at, into) {
                        message.frame.failed = true;
                        message.frame.encode(&mut state.scratch);
                        state.scratch.resize(head + piece, 0);
                    }
                }
                OutgoingPayload::Bytes(bytes) => {
                    into.copy_from_slice(&bytes[message.frame.at as usize..][..piece])
                }
            }
            if !ni.peers.nal.send(peer, &state.scratch) {
                break;
            }
            left = true;
            message.frame.at += piece as Size;
            if message.frame.at == message.frame.length() {
                let done = state.outgoing[peer as usize].pop_front();
                self.waiting.fetch_sub(1, Ordering::Relaxed);
                if let Some(OutgoingMessage {
                    payload: OutgoingPayload::Memory(transfer),
                    frame,
                }) = done
                {
                    ni.transfer_end(transfer, !frame.failed);
                }
            }
        }
        if left {
            ni.peers.wake(peer);
        }
    }

    /// Takes one frame.
    fn take(
        &self,
        ni: &NiState,
        state: &mut FramerState,
        peer: u32,
        frame: FrameHeader,
        payload: &[u8],
    ) {
        if peer as usize >= state.outgoing.len() {
            return;
        }
        match (frame.role, frame.op) {
            (FrameRole::Taken, _) => {
                // A peer that confirms too often only loses its own order of arrival.
                let word = &self.busy[peer as usize];
                let _ =
                    word.fetch_update(Ordering::Release, Ordering::Relaxed, |n| n.checked_sub(1));
            }
            (FrameRole::Ack, _) => {
                let (offset, mlength, header) =
                    (frame.remote_offset, frame.mlength, frame.header(peer));
                ni.ack_arrived(frame.md, offset, mlength, &header, !frame.failed);
            }
            (FrameRole::Request, OpKind::Get) => self.take_get(ni, state, peer, &frame),
            (FrameRole::Request, OpKind::GetPut) => {
                self.take_get_put(ni, state, peer, &frame, payload)
            }
            (FrameRole::Request, OpKind::Put) | (FrameRole::Reply, _) => {
                self.take_bytes(ni, state, peer, frame, payload);
            }
        }
    }

    fn take_get(&self, ni: &NiState, state: &mut FramerState, peer: u32, frame: &FrameHeader) {
        if let Some(transfer) = self.match_request(ni, state, peer, frame) {
            let answer =
                FrameHeader { role: FrameRole::Reply, mlength: transfer.mlength, ..*frame };
            self.enqueue(ni, state, peer, answer, OutgoingPayload::Memory(transfer));
        }
    }

    /// A get-put is never longer than one frame; this library sends no longer one, so one that
    /// arrives is ignored.
    fn take_get_put(
        &self,
        ni: &NiState,
        state: &mut FramerState,
        peer: u32,
        frame: &FrameHeader,
        payload: &[u8],
    ) {
        if payload.len() as Size != frame.rlength {
            return;
        }
        if let Some(transfer) = self.match_request(ni, state, peer, frame) {
            let mlength = transfer.mlength;
            let mut bytes = payload[..mlength as usize].to_vec();
            let ok = ni.transfer_swap(&transfer, &mut bytes);
            ni.transfer_end(transfer, ok);
            let answer = FrameHeader { role: FrameRole::Reply, failed: !ok, mlength, ..*frame };
            self.enqueue(ni, state, peer, answer, OutgoingPayload::Bytes(bytes));
        }
    }

    /// Matches a request whose first frame has arrived.
    fn match_request(
        &self,
        ni: &NiState,
        state: &mut FramerState,
        peer: u32,
        frame: &FrameHeader,
    ) -> Option<FramedTransfer> {
        let transfer = ni.arrival_begin(&frame.header(peer));
        if frame.confirm {
            self.enqueue(
                ni,
                state,
                peer,
                FrameHeader { role: FrameRole::Taken, ..*frame },
                OutgoingPayload::None,
            );
        }
        transfer
    }

    /// A frame of a put or of a reply. A frame that is not the first of its message, and whose
    /// message is not in progress, belongs to one that was dropped or truncated.
    fn take_bytes(
        &self,
        ni: &NiState,
        state: &mut FramerState,
        peer: u32,
        frame: FrameHeader,
        payload: &[u8],
    ) {
        let key = (peer, frame.message);
        if frame.at == 0 && !state.incoming.contains_key(&key) {
            let transfer = match frame.role {
                FrameRole::Reply => ni.reply_begin(
                    frame.md,
                    frame.local_offset,
                    frame.mlength,
                    &frame.header(peer),
                ),
                FrameRole::Request | FrameRole::Ack | FrameRole::Taken => {
                    self.match_request(ni, state, peer, &frame)
                }
            };
            let Some(transfer) = transfer else { return };
            let missing = transfer.mlength;
            state.incoming.insert(key, IncomingMessage { transfer, frame, missing, ok: true });
        }
        let Some(message) = state.incoming.get_mut(&key) else { return };
        let accepted =
            message.transfer.mlength.saturating_sub(frame.at).min(payload.len() as Size);
        if accepted != 0 {
            message.ok &= !frame.failed
                && ni.transfer_write(&message.transfer, frame.at, &payload[..accepted as usize]);
            message.missing = message.missing.saturating_sub(accepted);
        }
        if message.missing == 0
            && let Some(message) = state.incoming.remove(&key)
        {
            self.finish(ni, state, peer, message);
        }
    }

    /// Ends a put or reply whose accepted bytes have all arrived.
    fn finish(&self, ni: &NiState, state: &mut FramerState, peer: u32, message: IncomingMessage) {
        let IncomingMessage { transfer, frame, ok, .. } = message;
        let (offset, mlength, acknowledge) =
            (transfer.offset, transfer.mlength, transfer.ack_allowed && frame.ack);
        ni.transfer_end(transfer, ok);
        if acknowledge && frame.role == FrameRole::Request {
            let (role, failed) = (FrameRole::Ack, !ok);
            let answer = FrameHeader { role, failed, remote_offset: offset, mlength, ..frame };
            self.enqueue(ni, state, peer, answer, OutgoingPayload::None);
        }
    }
}

/// The header of the first frame of a message.
fn first_frame(message: &Submission) -> FrameHeader {
    let header = &message.header;
    FrameHeader {
        role: FrameRole::Request,
        op: header.kind,
        ack: message.ack,
        confirm: false,
        failed: false,
        message: 0,
        at: 0,
        uid: header.uid,
        jid: header.jid,
        pt_index: header.pt_index,
        ac_index: header.ac_index,
        match_bits: header.match_bits,
        remote_offset: header.remote_offset,
        rlength: header.rlength,
        hdr_data: header.hdr_data,
        md: message.md,
        local_offset: message.local_offset,
        mlength: 0,
    }
}

/// Payload bytes of a frame, whatever its header.
fn payload_room(ni: &NiState) -> usize {
    ni.peers.nal.max_frame() - FrameHeader::MOST_BYTES
}
