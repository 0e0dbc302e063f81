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
    /// Confirms to the initiator that its request has been matched (or dropped).
    Taken,
}

/// The header of every frame; the payload follows. On the wire: [`FrameHeader::BYTES`] bytes,
/// little-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FrameHeader {
    pub(crate) role: FrameRole,
    pub(crate) op: OpKind,
    /// Put: the initiator wants an acknowledgement.
    pub(crate) ack: bool,
    /// Request: the initiator wants a [`FrameRole::Taken`].
    pub(crate) confirm: bool,
    /// Number of the message, counted by its sender.
    pub(crate) message: u64,
    /// Position of this frame's payload in the message.
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

impl FrameHeader {
    /// Length of the header.
    pub(crate) const BYTES: usize = 96;

    pub(crate) fn encode(&self, out: &mut Vec<u8>) {
        out.clear();
        let role = match self.role {
            FrameRole::Request => 0,
            FrameRole::Ack => 1,
            FrameRole::Reply => 2,
            FrameRole::Taken => 3,
        };
        let op = match self.op {
            OpKind::Put => 0,
            OpKind::Get => 1,
            OpKind::GetPut => 2,
        };
        out.extend([role, op, self.ack.into(), self.confirm.into()]);
        for word in [self.uid, self.jid, self.pt_index, self.ac_index, self.md.0] {
            out.extend(word.to_le_bytes());
        }
        let words = [
            self.message,
            self.at,
            self.match_bits,
            self.remote_offset,
            self.rlength,
            self.hdr_data,
            self.local_offset,
            self.mlength,
        ];
        for word in words {
            out.extend(word.to_le_bytes());
        }
        out.resize(FrameHeader::BYTES, 0);
    }

    /// The header of a frame and its payload; `None` if this is no frame.
    pub(crate) fn decode(bytes: &[u8]) -> Option<(FrameHeader, &[u8])> {
        let (head, payload) = bytes.split_first_chunk::<{ FrameHeader::BYTES }>()?;
        let small =
            |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let large = |at: usize| u64::from(small(at)) | u64::from(small(at + 4)) << 32;
        let role = match head[0] {
            0 => FrameRole::Request,
            1 => FrameRole::Ack,
            2 => FrameRole::Reply,
            3 => FrameRole::Taken,
            _ => return None,
        };
        let op = match head[1] {
            0 => OpKind::Put,
            1 => OpKind::Get,
            2 => OpKind::GetPut,
            _ => return None,
        };
        let frame = FrameHeader {
            role,
            op,
            ack: head[2] != 0,
            confirm: head[3] != 0,
            uid: small(4),
            jid: small(8),
            pt_index: small(12),
            ac_index: small(16),
            md: MdHandle(small(20)),
            message: large(24),
            at: large(32),
            match_bits: large(40),
            remote_offset: large(48),
            rlength: large(56),
            hdr_data: large(64),
            local_offset: large(72),
            mlength: large(80),
        };
        Some((frame, payload))
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
            (FrameRole::Reply, _) => self.mlength,
            (FrameRole::Request, OpKind::Get) | (FrameRole::Ack | FrameRole::Taken, _) => 0,
        }
    }
}

/// What a network that may reorder frames must know of each; see [`FrameTag::precedes`].
#[derive(Clone, Copy, Debug)]
pub struct FrameTag {
    request: bool,
    message: u64,
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
    /// same peer: the first frame of a message arrives before its others, and the first frames
    /// of requests in order.
    pub fn precedes(self, later: FrameTag) -> bool {
        let ordered = self.request && later.request && later.first;
        self.first && (ordered || self.message == later.message)
    }
}
