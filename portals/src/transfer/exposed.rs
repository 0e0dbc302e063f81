//! Puts and gets by remote access: to descriptors that peers have exposed.
//!
//! One for each lane of [`super::framer`], under its lock. A process exposes a descriptor
//! ([`NetworkInterface::expose_remotely`](crate::NetworkInterface::expose_remotely)). A framed put
//! or get of a peer that it accepts is answered by an [`ExposureNotice`] of the block that has the
//! bytes, too. From then on the peer's puts and gets that fall into known blocks need no frames,
//! and no call of the target: the wire carries them out. They may overtake other messages of the
//! pair.
//!
//! ```text
//! put:  SEND_START, parts begin ... all parts at the target, SEND_END, ACK if requested
//! get:  REPLY_START, parts begin ... all parts here, REPLY_END
//! ```
//!
//! - A message under way belongs to a slot of [`RemoteTransfers`], which holds its
//!   [`FramedTransfer`]: its descriptor counts as in use. The slot is free when all its parts have
//!   ended.
//! - The thread that takes frames reports parts that have ended, under the lock of the lane, and
//!   posts the events.
//! - If the peer dies, the wire reports the parts as failed. The message ends as a framed one that
//!   cannot leave: END says that it has failed, and there is no ACK.
//! - If the interface is closed, so is the wire, and messages under way are forgotten.
//!
//! Invariants: only whole messages inside of known blocks are sent so. Each message posts the
//! events that frames would have brought.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::ptr;
use core::sync::atomic::{AtomicU32, Ordering};

use super::exposures::{ExposureNotice, KnownExposures};
use super::framed::FramedTransfer;
use super::submission::Submission;
use crate::arena::IOVECS;
use crate::message::{MessageHeader, OpKind};
use crate::nal::remote::{RemoteBegun, RemoteMemory, RemoteOperation};
use crate::nal::wire::Wire;
use crate::tables::NiState;
use crate::types::*;

/// Longest message that stays in frames if the provider does not move words whole.
const WORD: Size = 8;

/// A message under way.
#[derive(Debug)]
struct RemoteMessage {
    /// As the ACK has it: the target as initiator.
    header: MessageHeader,
    /// The use of the local descriptor, and how many of its bytes have begun to move.
    transfer: FramedTransfer,
    begun: Size,
    /// Parts that are under way.
    parts: u32,
    ok: bool,
    /// Put: the descriptor that logs the ACK, if one is due.
    ack: Option<MdHandle>,
}

impl RemoteMessage {
    fn has_begun(&self) -> bool {
        self.begun == self.transfer.mlength
    }
}

/// What a lane knows of remote access.
#[derive(Debug, Default)]
pub(super) struct RemoteTransfers {
    exposures: KnownExposures,
    /// By the token of their parts.
    messages: Vec<Option<RemoteMessage>>,
    free: Vec<usize>,
    /// Messages whose parts have not all begun, by peer; no queue is empty.
    waiting: BTreeMap<u32, VecDeque<usize>>,
}

impl RemoteTransfers {
    /// A peer has exposed a block of a descriptor.
    pub(super) fn learn(&mut self, ni: &NiState, peer: u32, notice: &[u8]) {
        if let (Some(notice), Some(_)) = (ExposureNotice::decode(notice), memory(ni)) {
            self.exposures.learn(peer, &notice);
        }
    }

    fn insert(&mut self, message: RemoteMessage) -> usize {
        let number = self.free.pop().unwrap_or_else(|| {
            self.messages.push(None);
            self.messages.len() - 1
        });
        self.messages[number] = Some(message);
        number
    }

    /// Begins a message by remote access. It comes back if it must go in frames.
    pub(super) fn submit(
        &mut self,
        ni: &NiState,
        waiting: &AtomicU32,
        message: Submission,
    ) -> Option<Submission> {
        let Submission { target, header, md, local_offset, .. } = message;
        let Some(remote) = memory(ni).filter(|_| self.exposures.have(target, &header)) else {
            return Some(message);
        };
        let length = header.rlength;
        if length <= WORD && !remote.limits().by_hardware {
            return Some(message);
        }
        let answer = MessageHeader { initiator: target, ..header };
        let mut room = [NO_PIECE; IOVECS];
        let (transfer, ack) = match (header.kind, message.source) {
            (OpKind::Put, Some(source)) => {
                if pieces_of(ni, remote, &source, (0, length), &mut room).is_none() {
                    return Some(Submission { source: Some(source), ..message });
                }
                (source, message.ack.then_some(md))
            }
            (OpKind::Get, None) => {
                let fits = |count: Option<usize>, pieces: &[MdIovec]| {
                    count.is_some_and(|count| remote.takes_pieces(&pieces[..count]))
                };
                match ni.remote_reply_begin(md, local_offset, length, &answer, &fits) {
                    Some(transfer) => (transfer, None),
                    None => return Some(Submission { source: None, ..message }),
                }
            }
            (_, source) => return Some(Submission { source, ..message }),
        };
        let number = self.insert(RemoteMessage {
            header: answer,
            transfer,
            begun: 0,
            parts: 0,
            ok: true,
            ack,
        });
        waiting.fetch_add(1, Ordering::Relaxed);
        self.waiting.entry(target).or_default().push_back(number);
        self.pump(ni, waiting, target);
        None
    }

    /// Begins what waits for any peer.
    pub(super) fn pump_all(&mut self, ni: &NiState, waiting: &AtomicU32) {
        let mut next = self.waiting.keys().next().copied();
        while let Some(peer) = next {
            self.pump(ni, waiting, peer);
            next = self.waiting.range(peer + 1..).next().map(|(&peer, _)| peer);
        }
    }

    /// Begins what waits for a peer, until the wire has no room.
    fn pump(&mut self, ni: &NiState, waiting: &AtomicU32, peer: u32) {
        let Some(remote) = memory(ni) else { return };
        let mut queue = self.waiting.remove(&peer).unwrap_or_default();
        while let Some(&number) = queue.front() {
            let Some(Some(message)) = self.messages.get_mut(number) else { break };
            while !message.has_begun() {
                match begin_part(ni, remote, &self.exposures, message, peer, number) {
                    RemoteBegun::Begun => ni.peers.nal.began_remote(peer),
                    RemoteBegun::Full => {
                        self.waiting.insert(peer, queue);
                        return;
                    }
                    RemoteBegun::Gone => {
                        message.ok = false;
                        message.begun = message.transfer.mlength;
                    }
                }
            }
            queue.pop_front();
            waiting.fetch_sub(1, Ordering::Relaxed);
            self.finish(ni, number);
        }
    }

    /// A part of a message has ended.
    pub(super) fn completed(&mut self, ni: &NiState, token: u64, ok: bool) {
        let number = token as usize;
        let Some(Some(message)) = self.messages.get_mut(number) else { return };
        message.parts -= 1;
        message.ok &= ok;
        self.finish(ni, number);
    }

    /// Posts the last events of a message, if all of its parts have ended.
    fn finish(&mut self, ni: &NiState, number: usize) {
        let has_ended = |message: &mut RemoteMessage| message.has_begun() && message.parts == 0;
        let Some(message) = self.messages[number].take_if(has_ended) else { return };
        self.free.push(number);
        let RemoteMessage { header, transfer, ok, ack, .. } = message;
        let length = transfer.mlength;
        ni.transfer_end(transfer, ok);
        if let Some(md) = ack.filter(|_| ok) {
            ni.ack_arrived(md, header.remote_offset, length, &header, true);
        }
    }
}

/// Remote access, if the wire has it.
pub(super) fn memory(ni: &NiState) -> Option<&dyn RemoteMemory> {
    ni.peers.nal.wire().and_then(Wire::remote_memory)
}

/// The pieces of a part of a transfer, if the wire takes them.
fn pieces_of<'a>(
    ni: &NiState,
    remote: &dyn RemoteMemory,
    transfer: &FramedTransfer,
    (at, length): (Size, Size),
    room: &'a mut [MdIovec; IOVECS],
) -> Option<&'a [MdIovec]> {
    let count = ni.transfer_pieces(transfer, at, length, room)?;
    let pieces = &room[..count];
    remote.takes_pieces(pieces).then_some(pieces)
}

const NO_PIECE: MdIovec = MdIovec { base: ptr::null_mut(), len: 0 };

/// Begins the next part of a message.
fn begin_part(
    ni: &NiState,
    remote: &dyn RemoteMemory,
    exposures: &KnownExposures,
    message: &mut RemoteMessage,
    peer: u32,
    number: usize,
) -> RemoteBegun {
    let RemoteMessage { transfer, begun, header, .. } = message;
    let Some((at, left)) = exposures.place(peer, header, *begun) else {
        return RemoteBegun::Gone;
    };
    let length = (transfer.mlength - *begun).min(remote.limits().longest).min(left);
    let mut room = [NO_PIECE; IOVECS];
    // The memory of a transfer does not change.
    let Some(pieces) = pieces_of(ni, remote, transfer, (*begun, length), &mut room) else {
        return RemoteBegun::Gone;
    };
    let operation = RemoteOperation {
        peer,
        is_put: header.kind == OpKind::Put,
        pieces,
        at,
        token: number as u64,
    };
    // SAFETY: memory of a descriptor whose use the transfer is: it stays until `transfer_end`, or
    // until the interface is closed, and the wire with it.
    let result = unsafe { remote.begin(&operation) };
    if result == RemoteBegun::Begun {
        message.begun += length;
        message.parts += 1;
    }
    result
}
