//! Puts and gets by remote access: to descriptors that peers have exposed.
//!
//! Owned by [`super::framer`], under its lock. A process exposes a descriptor
//! ([`NetworkInterface::expose_remotely`](crate::NetworkInterface::expose_remotely)). The first
//! framed put or get of a peer that it accepts is answered by an [`ExposureNotice`] too. From then
//! on the peer's puts and gets that fall into that descriptor need no frames, and no call of the
//! target: the wire carries them out. They may overtake other messages of the pair.
//!
//! ```text
//! put:  SEND_START, parts begin ... all parts at the target, SEND_END, ACK if requested
//! get:  REPLY_START, parts begin ... all parts here, REPLY_END
//! ```
//!
//! - A message under way belongs to a slot of [`RemoteTransfers`], which holds its
//!   [`FramedTransfer`]: its descriptor counts as in use. The slot is free when all its parts have
//!   ended.
//! - The thread that takes frames reports parts that have ended, under the lock of the framer, and
//!   posts the events.
//! - If the peer dies, the wire reports the parts as failed. The message ends as a framed one that
//!   cannot leave: END says that it has failed, and there is no ACK.
//! - If the interface is closed, so is the wire, and messages under way are forgotten.
//!
//! Invariants: a peer's notice names memory of that peer alone, and only whole messages inside of
//! it are sent so. Each message posts the events that frames would have brought.

use alloc::collections::{BTreeMap, BTreeSet, VecDeque};
use alloc::vec::Vec;
use core::ptr;
use core::sync::atomic::{AtomicU32, Ordering};

use super::framed::FramedTransfer;
use super::submission::Submission;
use crate::arena::IOVECS;
use crate::message::{MessageHeader, OpKind};
use crate::nal::remote::{RemoteBegun, RemoteMemory, RemoteOperation, RemoteRegion};
use crate::nal::wire::Wire;
use crate::tables::NiState;
use crate::types::*;

/// Descriptors of one peer that are known here at most.
const KNOWN_PER_PEER: usize = 8;

/// Longest message that stays in frames if the provider does not move words whole.
const WORD: Size = 8;

/// How peers address an exposed descriptor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ExposureNotice {
    pub(crate) pt_index: PtIndex,
    pub(crate) ac_index: AcIndex,
    pub(crate) match_bits: MatchBits,
    pub(crate) ignore_bits: MatchBits,
    pub(crate) length: Size,
    pub(crate) region: RemoteRegion,
}

impl ExposureNotice {
    pub(crate) const BYTES: usize = 48;

    pub(crate) fn encode(&self) -> Vec<u8> {
        let ExposureNotice { pt_index, ac_index, match_bits, ignore_bits, length, region } = *self;
        let mut bytes = Vec::with_capacity(Self::BYTES);
        bytes.extend([pt_index, ac_index].map(u32::to_le_bytes).as_flattened());
        let words = [match_bits, ignore_bits, length, region.address, region.key];
        bytes.extend(words.map(u64::to_le_bytes).as_flattened());
        bytes
    }

    /// `None`: these bytes are no notice, or name no memory.
    pub(crate) fn decode(bytes: &[u8]) -> Option<ExposureNotice> {
        let (indexes, words) = bytes.split_first_chunk::<8>()?;
        let words: &[u8; Self::BYTES - 8] = words.try_into().ok()?;
        let (indexes, words) = (indexes.as_chunks().0, words.as_chunks().0);
        let [pt_index, ac_index] = [0, 1].map(|i: usize| u32::from_le_bytes(indexes[i]));
        let [match_bits, ignore_bits, length, address, key] =
            [0, 1, 2, 3, 4].map(|i: usize| u64::from_le_bytes(words[i]));
        address.checked_add(length)?;
        let region = RemoteRegion { address, key };
        Some(ExposureNotice { pt_index, ac_index, match_bits, ignore_bits, length, region })
    }

    /// Where in the memory of the target the bytes of a message are, if it falls into this
    /// descriptor as a whole.
    fn place_of(&self, header: &MessageHeader) -> Option<RemoteRegion> {
        let MessageHeader { remote_offset, rlength, .. } = *header;
        let matches = self.pt_index == header.pt_index
            && self.ac_index == header.ac_index
            && (self.match_bits ^ header.match_bits) & !self.ignore_bits == 0;
        let end = remote_offset.checked_add(rlength)?;
        let address = self.region.address.checked_add(remote_offset)?;
        (matches && rlength != 0 && end <= self.length)
            .then_some(RemoteRegion { address, ..self.region })
    }
}

/// A descriptor of this process that is exposed.
#[derive(Debug)]
struct OwnExposure {
    md: MdHandle,
    notice: ExposureNotice,
    /// The peers that know it.
    peers: BTreeSet<u32>,
}

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
    /// Where the bytes are in the memory of the target.
    place: RemoteRegion,
    /// Put: the descriptor that logs the ACK, if one is due.
    ack: Option<MdHandle>,
}

impl RemoteMessage {
    fn has_begun(&self) -> bool {
        self.begun == self.transfer.mlength
    }
}

/// What a framer knows of remote access.
#[derive(Debug, Default)]
pub(super) struct RemoteTransfers {
    own: Vec<OwnExposure>,
    /// What peers have exposed.
    known: BTreeMap<u32, Vec<ExposureNotice>>,
    /// By the token of their parts.
    messages: Vec<Option<RemoteMessage>>,
    free: Vec<usize>,
    /// Messages whose parts have not all begun, by peer; no queue is empty.
    waiting: BTreeMap<u32, VecDeque<usize>>,
}

impl RemoteTransfers {
    pub(super) fn expose(&mut self, md: MdHandle, notice: ExposureNotice) {
        self.own.push(OwnExposure { md, notice, peers: BTreeSet::new() });
    }

    /// The notice for a peer that has accessed this descriptor by this access control entry.
    pub(super) fn news(
        &mut self,
        peer: u32,
        md: MdHandle,
        ac_index: AcIndex,
    ) -> Option<ExposureNotice> {
        let own = self.own.iter_mut().find(|own| own.md == md)?;
        own.peers.insert(peer).then_some(ExposureNotice { ac_index, ..own.notice })
    }

    /// A peer has exposed a descriptor.
    pub(super) fn learn(&mut self, ni: &NiState, peer: u32, notice: &[u8]) {
        let (Some(notice), true) = (ExposureNotice::decode(notice), memory(ni).is_some()) else {
            return;
        };
        let known = self.known.entry(peer).or_default();
        if known.len() < KNOWN_PER_PEER && !known.contains(&notice) {
            known.push(notice);
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
        let Some(known) = self.known.get(&target) else { return Some(message) };
        let place = known.iter().find_map(|notice| notice.place_of(&header));
        let (Some(place), Some(remote)) = (place, memory(ni)) else { return Some(message) };
        let length = header.rlength;
        if length <= WORD && !remote.limits().moves_words_whole {
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
            place,
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
                match begin_part(ni, remote, message, peer, number) {
                    RemoteBegun::Begun => ni.peers.nal.began_remote(),
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
fn memory(ni: &NiState) -> Option<&dyn RemoteMemory> {
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
    message: &mut RemoteMessage,
    peer: u32,
    number: usize,
) -> RemoteBegun {
    let RemoteMessage { transfer, begun, place, .. } = message;
    let length = (transfer.mlength - *begun).min(remote.limits().longest);
    let mut room = [NO_PIECE; IOVECS];
    // The memory of a transfer does not change.
    let Some(pieces) = pieces_of(ni, remote, transfer, (*begun, length), &mut room) else {
        return RemoteBegun::Gone;
    };
    let operation = RemoteOperation {
        peer,
        is_put: message.header.kind == OpKind::Put,
        pieces,
        at: RemoteRegion { address: place.address + *begun, ..*place },
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

#[cfg(test)]
mod tests {
    use super::*;

    const NOTICE: ExposureNotice = ExposureNotice {
        pt_index: 3,
        ac_index: 1,
        match_bits: 0x50,
        ignore_bits: !0xff,
        length: 100,
        region: RemoteRegion { address: 1000, key: 77 },
    };

    fn header(bits: MatchBits, remote_offset: Size, rlength: Size) -> MessageHeader {
        MessageHeader {
            kind: OpKind::Put,
            initiator: 0,
            uid: 0,
            jid: 0,
            pt_index: 3,
            ac_index: 1,
            match_bits: bits,
            remote_offset,
            rlength,
            hdr_data: 0,
        }
    }

    #[test]
    fn only_whole_messages_inside_of_a_descriptor_have_a_place() {
        let place = |h: MessageHeader| NOTICE.place_of(&h).map(|region| region.address);
        assert_eq!(place(header(0x1234_0050, 0, 100)), Some(1000));
        assert_eq!(place(header(0x50, 99, 1)), Some(1099));
        assert_eq!(place(header(0x50, 99, 2)), None);
        assert_eq!(place(header(0x50, 100, 0)), None);
        assert_eq!(place(header(0x51, 0, 1)), None);
        assert_eq!(place(header(0x50, u64::MAX, 2)), None);
        assert_eq!(place(MessageHeader { pt_index: 4, ..header(0x50, 0, 1) }), None);
        assert_eq!(place(MessageHeader { ac_index: 0, ..header(0x50, 0, 1) }), None);
    }

    fn any_bytes(input: &[u8]) {
        let Some(notice) = ExposureNotice::decode(input) else { return };
        assert_eq!(notice.encode(), input);
        assert!(notice.region.address.checked_add(notice.length).is_some());
    }

    #[test]
    fn fuzz_exposure_notice() {
        let bytes = NOTICE.encode();
        assert_eq!(bytes.len(), ExposureNotice::BYTES);
        assert_eq!(ExposureNotice::decode(&bytes), Some(NOTICE));
        for cut in 0..bytes.len() {
            assert_eq!(ExposureNotice::decode(&bytes[..cut]), None);
        }
        let beyond = ExposureNotice { length: u64::MAX, ..NOTICE };
        assert_eq!(ExposureNotice::decode(&beyond.encode()), None);
        fuzz::check("exposure_notice", 20_000, any_bytes);
    }
}
