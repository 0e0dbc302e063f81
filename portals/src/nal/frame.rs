//! The header of a frame, and its bytes on a wire.
//!
//! [`crate::transfer::framer`] makes and reads frames; a NAL carries them. Invariant:
//! [`FrameHeader::decode`] accepts any bytes; the fields it returns are a peer's words, checked
//! where they are used.

use alloc::vec::Vec;

use crate::message::{MessageHeader, OpKind};
use crate::types::*;

/// The purpose of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrameRole {
    /// A put, get or get-put.
    Request,
    /// The acknowledgement of a put.
    Ack,
    /// The answer to a get or get-put.
    Reply,
    /// Confirms to the initiator that its request has been matched, or dropped (`failed`).
    Taken,
    /// Names a block of an exposed descriptor to an initiator; the payload is an
    /// [`ExposureNotice`](crate::transfer::exposures::ExposureNotice).
    Exposed,
}

/// The header of every frame; the payload follows.
///
/// On the wire, little-endian, it has only what its receiver reads:
///
/// | bytes | frames | content |
/// |---|---|---|
/// | 8 | all | role 1:0, operation 3:2 (3: [`FrameRole::Exposed`]), ack 4, confirm 5, later frame 6, failed 7, portal 19:8, access control entry 31:20; number of the message 63:32 |
/// | 8 | later frames of a message | position of the payload; nothing follows |
/// | 44 | first frames but [`FrameRole::Taken`] and [`FrameRole::Exposed`] | uid, jid, descriptor (32 bits each), match bits, remote offset, length, header data |
/// | 4 | [`FrameRole::Taken`] of a get or get-put | descriptor |
/// | 8 | request of a get or get-put, reply | local offset |
/// | 8 | ack, reply | accepted bytes |
///
/// So the request of a put has 52 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameHeader {
    pub(crate) role: FrameRole,
    pub(crate) op: OpKind,
    /// Put: the initiator wants an acknowledgement.
    pub(crate) ack: bool,
    /// Request: the initiator wants a [`FrameRole::Taken`].
    pub(crate) confirm: bool,
    /// Bytes of the message could not be read, or those of the acknowledged put not be written:
    /// the operation has failed. Or the request was dropped.
    pub(crate) failed: bool,
    /// Number of the message, counted by its sender; wraps.
    pub(crate) message: u32,
    /// Position of this frame's payload in the message. All but the first frame of a message have
    /// only this, `message` and the fields above; their other fields read as 0.
    pub(crate) at: Size,
    /// Request: as in [`MessageHeader`]. Ack and reply: the same as in the request that they
    /// answer.
    pub(crate) uid: Uid,
    pub(crate) jid: Jid,
    pub(crate) pt_index: PtIndex,
    pub(crate) ac_index: AcIndex,
    pub(crate) match_bits: MatchBits,
    /// Request: as in [`MessageHeader`]. Ack: the offset that the target used.
    pub(crate) remote_offset: Size,
    pub(crate) rlength: Size,
    pub(crate) hdr_data: HdrData,
    /// As in `Submission` of [`crate::transfer::framer`].
    pub(crate) md: MdHandle,
    pub(crate) local_offset: Size,
    /// Ack and reply: the bytes that the target accepted.
    pub(crate) mlength: Size,
}

/// Largest index of a portal or access control entry on the wire. No interface has that many, so
/// every larger index names the same: an entry that does not exist.
const MOST_INDEX: u32 = 0xfff;

impl FrameHeader {
    /// Bytes of the longest header: that of a reply.
    pub(crate) const MOST_BYTES: usize = 68;

    /// A header with this role; all else is 0 or false.
    pub(crate) const fn of(role: FrameRole) -> FrameHeader {
        FrameHeader {
            role,
            op: OpKind::Put,
            ack: false,
            confirm: false,
            failed: false,
            message: 0,
            at: 0,
            uid: 0,
            jid: 0,
            pt_index: 0,
            ac_index: 0,
            match_bits: 0,
            remote_offset: 0,
            rlength: 0,
            hdr_data: 0,
            md: MdHandle(0),
            local_offset: 0,
            mlength: 0,
        }
    }

    /// Whether it has a local offset.
    fn has_local_offset(&self) -> bool {
        match self.role {
            FrameRole::Request => self.op != OpKind::Put,
            FrameRole::Reply => true,
            FrameRole::Ack | FrameRole::Taken | FrameRole::Exposed => false,
        }
    }

    /// Whether it says how many bytes were accepted.
    fn has_mlength(&self) -> bool {
        matches!(self.role, FrameRole::Ack | FrameRole::Reply)
    }

    /// Whether it confirms a get or get-put, and names the descriptor of the reply.
    fn confirms_get(&self) -> bool {
        self.role == FrameRole::Taken && self.op != OpKind::Put
    }

    /// Whether the initiator counts the reply as one that is to come.
    pub(crate) fn awaits_reply(&self) -> bool {
        self.role == FrameRole::Request && self.op != OpKind::Put && self.confirm
    }

    /// Whether a message of this role and operation can have later frames.
    pub(crate) fn may_continue(&self) -> bool {
        match self.role {
            FrameRole::Request => self.op == OpKind::Put,
            FrameRole::Reply => true,
            FrameRole::Ack | FrameRole::Taken | FrameRole::Exposed => false,
        }
    }

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.clear();
        let role = match self.role {
            FrameRole::Request => 0,
            FrameRole::Ack => 1,
            FrameRole::Reply => 2,
            FrameRole::Taken | FrameRole::Exposed => 3,
        };
        let op = match (self.role, self.op) {
            (FrameRole::Exposed, _) => 3,
            (_, OpKind::Put) => 0,
            (_, OpKind::Get) => 1,
            (_, OpKind::GetPut) => 2,
        };
        let later = self.at != 0;
        let first = role
            | op << 2
            | u32::from(self.ack) << 4
            | u32::from(self.confirm) << 5
            | u32::from(later) << 6
            | u32::from(self.failed) << 7
            | self.pt_index.min(MOST_INDEX) << 8
            | self.ac_index.min(MOST_INDEX) << 20;
        out.extend(first.to_le_bytes());
        out.extend(self.message.to_le_bytes());
        if later {
            out.extend(self.at.to_le_bytes());
            return;
        }
        if self.confirms_get() {
            out.extend(self.md.0.to_le_bytes());
        }
        if matches!(self.role, FrameRole::Taken | FrameRole::Exposed) {
            return;
        }
        for word in [self.uid, self.jid, self.md.0] {
            out.extend(word.to_le_bytes());
        }
        for word in [self.match_bits, self.remote_offset, self.rlength, self.hdr_data] {
            out.extend(word.to_le_bytes());
        }
        if self.has_local_offset() {
            out.extend(self.local_offset.to_le_bytes());
        }
        if self.has_mlength() {
            out.extend(self.mlength.to_le_bytes());
        }
    }

    /// The header of a frame and its payload; `None` if this is no frame.
    pub(crate) fn decode(bytes: &[u8]) -> Option<(FrameHeader, &[u8])> {
        let mut rest = bytes;
        let (first, message) = (small(&mut rest)?, small(&mut rest)?);
        let (role, op) = match (first & 3, first >> 2 & 3) {
            (3, 3) => (FrameRole::Exposed, OpKind::Put),
            (_, 3) => return None,
            (role, op) => (
                [FrameRole::Request, FrameRole::Ack, FrameRole::Reply, FrameRole::Taken]
                    [role as usize],
                [OpKind::Put, OpKind::Get, OpKind::GetPut][op as usize],
            ),
        };
        let mut frame = FrameHeader {
            role,
            op,
            ack: first & 1 << 4 != 0,
            confirm: first & 1 << 5 != 0,
            failed: first & 1 << 7 != 0,
            pt_index: first >> 8 & MOST_INDEX,
            ac_index: first >> 20 & MOST_INDEX,
            message,
            ..FrameHeader::of(role)
        };
        if first & 1 << 6 != 0 {
            frame.at = large(&mut rest)?;
            return (frame.at != 0 && frame.may_continue()).then_some((frame, rest));
        }
        if frame.confirms_get() {
            frame.md = MdHandle(small(&mut rest)?);
        }
        if matches!(frame.role, FrameRole::Taken | FrameRole::Exposed) {
            return Some((frame, rest));
        }
        frame.uid = small(&mut rest)?;
        frame.jid = small(&mut rest)?;
        frame.md = MdHandle(small(&mut rest)?);
        frame.match_bits = large(&mut rest)?;
        frame.remote_offset = large(&mut rest)?;
        frame.rlength = large(&mut rest)?;
        frame.hdr_data = large(&mut rest)?;
        if frame.has_local_offset() {
            frame.local_offset = large(&mut rest)?;
        }
        if frame.has_mlength() {
            frame.mlength = large(&mut rest)?;
        }
        Some((frame, rest))
    }

    /// The message as this frame describes it; `peer` is the sender of the frame.
    pub(crate) fn header(&self, peer: u32) -> MessageHeader {
        MessageHeader {
            kind: self.op,
            initiator: peer,
            uid: self.uid,
            jid: self.jid,
            pt_index: self.pt_index,
            ac_index: self.ac_index,
            match_bits: self.match_bits,
            remote_offset: self.remote_offset,
            rlength: self.rlength,
            hdr_data: self.hdr_data,
        }
    }

    /// Payload bytes of the whole message.
    pub(crate) fn length(&self) -> Size {
        match (self.role, self.op) {
            (FrameRole::Request, OpKind::Put | OpKind::GetPut) => self.rlength,
            (FrameRole::Reply | FrameRole::Exposed, _) => self.mlength,
            (FrameRole::Request, OpKind::Get) | (FrameRole::Ack | FrameRole::Taken, _) => 0,
        }
    }
}

/// Takes a word of 32 bits off the front.
fn small(rest: &mut &[u8]) -> Option<u32> {
    let (word, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(u32::from_le_bytes(*word))
}

/// Takes a word of 64 bits off the front.
fn large(rest: &mut &[u8]) -> Option<u64> {
    let (word, after) = rest.split_first_chunk()?;
    *rest = after;
    Some(u64::from_le_bytes(*word))
}

/// What a network that may reorder frames must know of each; see [`FrameTag::precedes`].
#[derive(Clone, Copy, Debug)]
pub struct FrameTag {
    request: bool,
    message: u32,
    first: bool,
}

impl FrameTag {
    /// The tag of a frame as [`crate::nal::Nal::send`] gets it; `None` if these bytes are no
    /// frame.
    pub fn of(frame: &[u8]) -> Option<FrameTag> {
        let (header, _) = FrameHeader::decode(frame)?;
        let request = header.role == FrameRole::Request;
        Some(FrameTag { request, message: header.message, first: header.at == 0 })
    }

    /// Whether this frame must arrive before `later`, which the same process sent later to the
    /// same peer. The first frame of a message arrives before its others. The first frames of
    /// requests arrive in order.
    pub fn precedes(self, later: FrameTag) -> bool {
        let ordered = self.request && later.request && later.first;
        self.first && (ordered || self.message == later.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(role: FrameRole, op: OpKind, at: Size) -> FrameHeader {
        FrameHeader {
            role,
            op,
            ack: true,
            confirm: false,
            failed: false,
            message: u32::MAX,
            at,
            uid: 1,
            jid: 2,
            pt_index: 255,
            ac_index: 254,
            match_bits: u64::MAX,
            remote_offset: u64::MAX - 1,
            rlength: 3,
            hdr_data: 1 << 63,
            md: MdHandle(u32::MAX),
            local_offset: 4,
            mlength: 5,
        }
    }

    /// The frame that a reader gets: fields that the frame does not carry are 0.
    fn as_read(sent: FrameHeader) -> FrameHeader {
        let absent = FrameHeader {
            uid: 0,
            jid: 0,
            md: MdHandle(0),
            match_bits: 0,
            remote_offset: 0,
            rlength: 0,
            hdr_data: 0,
            local_offset: 0,
            mlength: 0,
            pt_index: sent.pt_index.min(MOST_INDEX),
            ac_index: sent.ac_index.min(MOST_INDEX),
            ..sent
        };
        if sent.at != 0 {
            return absent;
        }
        let FrameHeader { pt_index, ac_index, .. } = absent;
        let sent = FrameHeader { pt_index, ac_index, ..sent };
        match (sent.role, sent.op) {
            (FrameRole::Taken, OpKind::Put) => absent,
            (FrameRole::Taken, OpKind::Get | OpKind::GetPut) => {
                FrameHeader { md: sent.md, ..absent }
            }
            (FrameRole::Exposed, _) => FrameHeader { op: OpKind::Put, ..absent },
            (FrameRole::Request, OpKind::Put) => {
                FrameHeader { local_offset: 0, mlength: 0, ..sent }
            }
            (FrameRole::Request, OpKind::Get | OpKind::GetPut) => {
                FrameHeader { mlength: 0, ..sent }
            }
            (FrameRole::Ack, _) => FrameHeader { local_offset: 0, ..sent },
            (FrameRole::Reply, _) => sent,
        }
    }

    /// Every frame is as short as its content, and reads back what its receiver uses.
    #[test]
    fn a_frame_has_only_what_its_receiver_reads() {
        use {FrameRole::*, OpKind::*};
        let mut bytes = Vec::new();
        for (role, op, at, expected) in [
            (Request, Put, 0, 52),
            (Request, Put, 4000, 16),
            (Request, Get, 0, 60),
            (Request, GetPut, 0, 60),
            (Ack, Put, 0, 60),
            (Reply, Get, 0, FrameHeader::MOST_BYTES),
            (Reply, GetPut, 0, FrameHeader::MOST_BYTES),
            (Reply, Get, u64::MAX, 16),
            (Taken, Put, 0, 8),
            (Taken, Get, 0, 12),
            (Exposed, Put, 0, 8),
        ] {
            let sent = frame(role, op, at);
            sent.encode(&mut bytes);
            assert_eq!(bytes.len(), expected, "{role:?} {op:?} {at}");
            assert_eq!(FrameHeader::decode(&bytes), Some((as_read(sent), &[][..])));
            // Not one byte less.
            for cut in 0..bytes.len() {
                assert_eq!(FrameHeader::decode(&bytes[..cut]), None, "{role:?} {op:?} {at} {cut}");
            }
        }
    }

    /// Random frames with a payload read back as they were written.
    #[test]
    fn random_frames_read_back_as_written() {
        let mut lot = 0x9e37_79b9_7f4a_7c15_u64;
        // By xorshift.
        let mut draw = || {
            lot ^= lot << 13;
            lot ^= lot >> 7;
            lot ^= lot << 17;
            lot
        };
        let mut bytes = Vec::new();
        for number in 0..1000 {
            let mut sent = FrameHeader {
                role: [
                    FrameRole::Request,
                    FrameRole::Ack,
                    FrameRole::Reply,
                    FrameRole::Taken,
                    FrameRole::Exposed,
                ][(draw() % 5) as usize],
                op: [OpKind::Put, OpKind::Get, OpKind::GetPut][(draw() % 3) as usize],
                ack: draw() % 2 == 0,
                confirm: draw() % 2 == 0,
                failed: draw() % 2 == 0,
                message: draw() as u32,
                at: 0,
                uid: draw() as u32,
                jid: draw() as u32,
                pt_index: (draw() % 0x1100) as u32,
                ac_index: (draw() % 0x1100) as u32,
                match_bits: draw(),
                remote_offset: draw(),
                rlength: draw(),
                hdr_data: draw(),
                md: MdHandle(draw() as u32),
                local_offset: draw(),
                mlength: draw(),
            };
            if sent.may_continue() && draw() % 2 == 0 {
                sent.at = draw() | 1;
            }
            let payload: Vec<u8> = (0..draw() % 100).map(|_| draw() as u8).collect();
            sent.encode(&mut bytes);
            bytes.extend(&payload);
            let read = FrameHeader::decode(&bytes);
            assert_eq!(read, Some((as_read(sent), &payload[..])), "{number}");
        }
    }

    /// An index that no interface has stays one that no interface has.
    #[test]
    fn an_index_beyond_all_tables_names_no_entry() {
        let mut bytes = Vec::new();
        let sent = FrameHeader {
            pt_index: u32::MAX,
            ac_index: 0x1001,
            ..frame(FrameRole::Request, OpKind::Put, 0)
        };
        sent.encode(&mut bytes);
        let (came, _) = FrameHeader::decode(&bytes).expect("a frame");
        assert_eq!((came.pt_index, came.ac_index), (MOST_INDEX, MOST_INDEX));
    }

    /// Only puts and replies have more than one frame.
    #[test]
    fn what_cannot_continue_is_no_frame() {
        let mut bytes = Vec::new();
        for (role, op) in [
            (FrameRole::Ack, OpKind::Put),
            (FrameRole::Taken, OpKind::Put),
            (FrameRole::Exposed, OpKind::Put),
            (FrameRole::Request, OpKind::Get),
            (FrameRole::Request, OpKind::GetPut),
        ] {
            frame(role, op, 8).encode(&mut bytes);
            assert_eq!(FrameHeader::decode(&bytes), None, "{role:?} {op:?}");
        }
    }

    /// Any bytes are a frame, which is written as it was read, or no frame; and no part of a
    /// header is one.
    fn any_bytes(input: &[u8]) {
        let read = FrameHeader::decode(input);
        assert_eq!(FrameTag::of(input).is_some(), read.is_some());
        let Some((frame, payload)) = read else { return };
        let (head, rest) = input.split_at(input.len() - payload.len());
        assert_eq!(rest, payload);
        let mut again = Vec::new();
        frame.encode(&mut again);
        assert_eq!(again, head);
        assert!(head.len() <= FrameHeader::MOST_BYTES);
        for cut in 0..head.len() {
            assert_eq!(FrameHeader::decode(&head[..cut]), None, "{cut}");
        }
    }

    #[test]
    fn fuzz_frame() {
        fuzz::check("frame", 20_000, any_bytes);
    }
}
