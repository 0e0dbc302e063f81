//! A message as the calls hand it to [`super::framer`].
//!
//! A plain value; no invariant.

use super::framed::FramedTransfer;
use crate::message::MessageHeader;
use crate::types::*;

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
