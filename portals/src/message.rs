//! A message: its operation, where it goes, and which events its two sides log.
//!
//! Made by the calls and by received frames, read by everything between. Plain values; no
//! invariant.

use crate::types::md_options::*;
use crate::types::*;

/// The three kinds of operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OpKind {
    Put,
    Get,
    GetPut,
}

impl OpKind {
    /// The options that a descriptor must have to respond.
    #[inline(always)]
    pub(crate) fn needs(self) -> u32 {
        match self {
            OpKind::Put => OP_PUT,
            OpKind::Get => OP_GET,
            OpKind::GetPut => OP_PUT | OP_GET,
        }
    }
}

/// The fields of a message that decide its target descriptor and its events.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MessageHeader {
    pub(crate) kind: OpKind,
    /// The number of the initiator.
    pub(crate) initiator: u32,
    pub(crate) uid: Uid,
    pub(crate) jid: Jid,
    pub(crate) pt_index: PtIndex,
    pub(crate) ac_index: AcIndex,
    pub(crate) match_bits: MatchBits,
    pub(crate) remote_offset: Size,
    pub(crate) rlength: Size,
    pub(crate) hdr_data: HdrData,
}

/// The side of an operation for which events are posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OpHalf {
    /// The target's side of an operation.
    Arrival(OpKind),
    /// The initiator's side: the bytes of a put or get-put leave (SEND events).
    Send,
    /// The initiator's side: the bytes of a get or get-put arrive (REPLY events).
    Reply,
}

impl OpHalf {
    #[inline(always)]
    pub(crate) fn start(self) -> PtlEventKind {
        match self {
            OpHalf::Arrival(OpKind::Put) => PtlEventKind::PutStart,
            OpHalf::Arrival(OpKind::Get) => PtlEventKind::GetStart,
            OpHalf::Arrival(OpKind::GetPut) => PtlEventKind::GetPutStart,
            OpHalf::Send => PtlEventKind::SendStart,
            OpHalf::Reply => PtlEventKind::ReplyStart,
        }
    }

    #[inline(always)]
    pub(crate) fn end(self) -> PtlEventKind {
        match self {
            OpHalf::Arrival(OpKind::Put) => PtlEventKind::PutEnd,
            OpHalf::Arrival(OpKind::Get) => PtlEventKind::GetEnd,
            OpHalf::Arrival(OpKind::GetPut) => PtlEventKind::GetPutEnd,
            OpHalf::Send => PtlEventKind::SendEnd,
            OpHalf::Reply => PtlEventKind::ReplyEnd,
        }
    }
}

/// The target of an operation: the arguments that all calls have in common.
#[derive(Clone, Copy)]
pub(crate) struct TargetAddress {
    pub(crate) target: PtlProcessId,
    pub(crate) pt_index: PtIndex,
    pub(crate) ac_index: AcIndex,
    pub(crate) match_bits: MatchBits,
    pub(crate) remote_offset: Size,
    pub(crate) hdr_data: HdrData,
}
