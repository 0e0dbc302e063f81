//! The messages between the libraries of two ranks, as bytes.
//!
//! Written by `remote` and `local`, read by the other at the peer.

use super::MOVE_BYTES;

/// A message for [`super::Mover::send`].
#[derive(Clone, Copy)]
pub struct MoveMessage {
    bytes: [u8; MOVE_BYTES],
    len: u16,
}

impl MoveMessage {
    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl core::fmt::Debug for MoveMessage {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "MoveMessage of {} bytes", self.len)
    }
}
