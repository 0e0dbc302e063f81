//! The proof by both ends of a connection that they know the secret of the job.
//!
//! Called by whatever makes connections between hosts: it moves the bytes, this crate makes and
//! checks them. Invariant: a stranger can make a [`Handshake`] keep at most 108 bytes of its own,
//! and learns nothing but versions, identities and proofs for nonces that never come again.
//!
//! ```text
//! connector                           acceptor
//! greeting C          ------------>   checks versions and purpose
//! checks them         <------------   greeting A, HMAC(secret, "acceptor" C A)
//! checks the proof
//! HMAC(secret, "connector" C A)  -->  checks the proof
//! ```
//!
//! HMAC is that of RFC 2104 with SHA-256. A greeting has 76 bytes:
//!
//! | bytes | content |
//! |---|---|
//! | 8 | `GASNetHS` |
//! | 2 | protocol version, little-endian |
//! | 24 | library version, filled with zeros |
//! | 1 | 0: connector, 1: acceptor |
//! | 1 | purpose |
//! | 8 | identity of the sender, little-endian |
//! | 16 | nonce |
//! | 16 | the mark: beginning of HMAC(secret, "greeting" and the bytes before) |
//!
//! A right mark says that a process of the job has made the greeting, but not when: one that reads
//! the network can repeat it.
//!
//! The first 34 bytes are the same in all protocol versions, so that a mismatch can be named.
#![forbid(unsafe_code)]

mod frame_key;
mod greeting;
mod secret;
mod state;

pub use frame_key::FrameKey;
pub use greeting::{ConnectionPurpose, LibraryVersion, PROTOCOL};
pub use secret::{JobSecret, Nonce};
pub use state::{Handshake, HandshakeError, HandshakeSpec};
