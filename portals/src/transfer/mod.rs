//! Moves the bytes of messages: by copies in shared memory, by cross-memory attach, in frames, or
//! by remote access ([`exposed`]).
//!
//! Called by `calls`. Invariant: frames are used only for memory that the other two cannot reach,
//! and for messages behind a framed one (see `framer`).

pub(crate) mod bytes;
pub(crate) mod copy;
pub(crate) mod exposed;
pub(crate) mod exposures;
pub(crate) mod framed;
pub(crate) mod framer;
#[cfg(test)]
mod framer_tests;
mod lane;
pub(crate) mod submission;
