//! The target's side of a message: the only code that walks a match list.
//!
//! Run by the initiator for a peer whose memory it has mapped, and by the target's own progress for frames.
//! `wire` uses the same [`Transfer`]s on both sides.

use crate::types::*;

/// What a message asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OpKind {
    Put,
    Get,
    GetPut,
}

/// The part of a message that decides where it goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Header {
    pub(crate) kind: OpKind,
    /// Index of the initiator in the fabric (its `ProcessId::pid`).
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

/// Which half of an operation a [`Transfer`] is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Half {
    /// The target's side of an operation.
    Arrival(OpKind),
    /// The initiator's side: the bytes of a put or get-put leave (SEND events).
    Send,
    /// The initiator's side: the bytes of a get or get-put arrive (REPLY events).
    Reply,
}

/// A hold on a memory descriptor of this process while the bytes of one framed message move: its START event has
/// been posted, its END event has not. The descriptor counts as in use (`PTL_MD_IN_USE`) until
/// [`crate::Interface::transfer_end`].
#[derive(Debug)]
pub(crate) struct Transfer {
    pub(crate) half: Half,
    pub(crate) md: MdHandle,
    /// Offset in the descriptor, in bytes.
    pub(crate) offset: Size,
    /// Bytes accepted.
    pub(crate) mlength: Size,
    /// The message; of a REPLY, `initiator` is the target.
    pub(crate) header: Header,
    /// Whether an acknowledgement may leave (Arrival of a put: the descriptor does not have `ACK_DISABLE`).
    pub(crate) ack_allowed: bool,
    /// Sequence of the START event, 0 if there was none.
    pub(crate) link: Seq,
}
