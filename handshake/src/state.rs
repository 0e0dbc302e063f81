//! One handshake: fed with what arrives, it yields what to send and, in the end, the peer.
//!
//! Owned by one connection. Invariant: [`Handshake::peer`] is known only after a proof for both
//! greetings of this very handshake.

use crate::greeting::{
    self, ConnectionPurpose, GREETING, Greeting, HandshakeSide, LibraryVersion, PROTOCOL,
    UNMARKED, VERSIONS_END,
};
use crate::secret::{JobSecret, Nonce};
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// Bytes of a proof.
const PROOF: usize = 32;

/// What one side brings.
#[derive(Debug)]
pub struct HandshakeSpec<'a> {
    /// The secret of the job.
    pub secret: &'a JobSecret,
    /// The version that both sides must have.
    pub library: LibraryVersion,
    /// The purpose that both sides must have.
    pub purpose: ConnectionPurpose,
    /// The name of this side for the other.
    pub identity: u64,
    /// For this handshake only.
    pub nonce: Nonce,
}

/// Why a handshake failed. The connection is to be closed, after what [`Handshake::to_send`]
/// still has: it tells the peer the versions of this side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandshakeError {
    /// The peer does not speak this protocol.
    Stranger,
    /// Both sides have different versions of the protocol.
    Protocol {
        /// Of this side.
        ours: u16,
        /// Of the peer.
        theirs: u16,
    },
    /// Both sides have different versions of the library.
    Library {
        /// Of this side.
        ours: LibraryVersion,
        /// Of the peer.
        theirs: LibraryVersion,
    },
    /// Both sides want the connection for different purposes.
    Purpose {
        /// Of this side.
        ours: ConnectionPurpose,
        /// Of the peer.
        theirs: ConnectionPurpose,
    },
    /// The peer does not know the secret.
    Proof,
    /// The peer knows the secret, but is another one than the connector wants.
    Identity {
        /// Wanted.
        expected: u64,
        /// Of the peer.
        found: u64,
    },
}

impl core::fmt::Display for HandshakeError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            HandshakeError::Stranger => f.write_str("the peer is no process of libgasnet"),
            HandshakeError::Protocol { ours, theirs } => {
                write!(f, "protocol version {ours} here, {theirs} there")
            }
            HandshakeError::Library { ours, theirs } => {
                write!(f, "library version {ours} here, {theirs} there")
            }
            HandshakeError::Purpose { ours, theirs } => {
                write!(f, "the connection is for {ours:?} here, for {theirs:?} there")
            }
            HandshakeError::Proof => f.write_str("the peer does not know the secret of the job"),
            HandshakeError::Identity { expected, found } => {
                write!(f, "the peer is process {found:#x} of the job, not {expected:#x}")
            }
        }
    }
}

impl core::error::Error for HandshakeError {}

/// What is expected from the peer next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HandshakeStage {
    Greeting,
    Proof(u64),
    Done(u64),
    Failed(HandshakeError),
}

/// One side of a handshake.
pub struct Handshake {
    secret: JobSecret,
    side: HandshakeSide,
    purpose: ConnectionPurpose,
    library: LibraryVersion,
    /// Connector: the peer that it wants, if it wants a certain one.
    expected: Option<u64>,
    stage: HandshakeStage,
    /// The mark of the peer's greeting is right.
    is_marked: bool,
    /// Greeting and proof of the peer.
    received: SmallBuffer,
    /// Greeting and proof of this side.
    own: SmallBuffer,
    /// Bytes of `own` that have been sent.
    sent: usize,
}

/// Shows no proof.
impl core::fmt::Debug for Handshake {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Handshake").field("side", &self.side).field("stage", &self.stage).finish()
    }
}

/// A greeting and a proof, as far as they are known.
struct SmallBuffer {
    bytes: [u8; GREETING + PROOF],
    length: usize,
}

impl SmallBuffer {
    fn new() -> SmallBuffer {
        SmallBuffer { bytes: [0; GREETING + PROOF], length: 0 }
    }

    fn known(&self) -> &[u8] {
        &self.bytes[..self.length]
    }

    /// Takes bytes until `end` are known; returns how many it took.
    fn fill(&mut self, bytes: &[u8], end: usize) -> usize {
        let n = bytes.len().min(end.saturating_sub(self.length));
        self.bytes[self.length..][..n].copy_from_slice(&bytes[..n]);
        self.length += n;
        n
    }
}

impl Handshake {
    /// The side that made the connection. It accepts only the peer `expected`, if it names one.
    pub fn connector(spec: HandshakeSpec<'_>, expected: Option<u64>) -> Handshake {
        let mut new = Handshake::new(HandshakeSide::Connector, spec);
        new.expected = expected;
        new
    }

    /// The side that accepted the connection.
    pub fn acceptor(spec: HandshakeSpec<'_>) -> Handshake {
        Handshake::new(HandshakeSide::Acceptor, spec)
    }

    fn new(side: HandshakeSide, spec: HandshakeSpec<'_>) -> Handshake {
        let HandshakeSpec { secret, library, purpose, identity, nonce } = spec;
        let greeting = Greeting { protocol: PROTOCOL, library, side, purpose, identity, nonce };
        let mut own = SmallBuffer::new();
        own.fill(&greeting.encode(), UNMARKED);
        own.fill(&mark(secret, own.known()).finalize().into_bytes(), GREETING);
        Handshake {
            secret: secret.clone(),
            side,
            purpose,
            library,
            expected: None,
            stage: HandshakeStage::Greeting,
            is_marked: false,
            received: SmallBuffer::new(),
            own,
            sent: 0,
        }
    }

    /// What is to be sent now; [`Handshake::sent`] says how much of it was.
    pub fn to_send(&self) -> &[u8] {
        // An acceptor says nothing to one that has not greeted it.
        let silent = self.side == HandshakeSide::Acceptor
            && matches!(
                self.stage,
                HandshakeStage::Greeting | HandshakeStage::Failed(HandshakeError::Stranger)
            );
        if silent { &[] } else { &self.own.known()[self.sent..] }
    }

    /// `n` bytes of [`Handshake::to_send`] were sent.
    pub fn sent(&mut self, n: usize) {
        self.sent = (self.sent + n).min(self.own.length);
    }

    /// The identity that the peer claims, once a greeting has arrived that a process of the job
    /// with this identity has made, now or before. It is proved when [`Handshake::peer`] has it.
    pub fn claimed(&self) -> Option<u64> {
        match self.stage {
            HandshakeStage::Proof(peer) if self.is_marked => Some(peer),
            HandshakeStage::Done(peer) => Some(peer),
            _ => None,
        }
    }

    /// The identity of the peer, once it has proved that it knows the secret. What
    /// [`Handshake::to_send`] has then is to be sent before anything else.
    pub fn peer(&self) -> Option<u64> {
        match self.stage {
            HandshakeStage::Done(peer) => Some(peer),
            _ => None,
        }
    }

    /// Takes bytes that have arrived; returns how many of them. Those behind are the first that
    /// the peer sent after its handshake.
    ///
    /// # Errors
    /// The handshake has failed; every later call returns the same.
    pub fn feed(&mut self, bytes: &[u8]) -> Result<usize, HandshakeError> {
        let taken = self.advance(bytes);
        if let Err(why) = taken {
            self.stage = HandshakeStage::Failed(why);
        }
        taken
    }

    fn advance(&mut self, bytes: &[u8]) -> Result<usize, HandshakeError> {
        let mut taken = 0;
        if self.stage == HandshakeStage::Greeting {
            taken = self.received.fill(bytes, GREETING);
            self.check_versions()?;
            if self.received.length < GREETING {
                return Ok(taken);
            }
            self.greeted()?;
        }
        match self.stage {
            HandshakeStage::Greeting => unreachable!("the greeting is whole"),
            HandshakeStage::Failed(why) => Err(why),
            HandshakeStage::Done(_) => Ok(0),
            HandshakeStage::Proof(peer) => {
                taken += self.received.fill(&bytes[taken..], GREETING + PROOF);
                if self.received.length == GREETING + PROOF {
                    self.proved(peer)?;
                }
                Ok(taken)
            }
        }
    }

    /// Looks at what has arrived of the peer's greeting.
    fn check_versions(&self) -> Result<(), HandshakeError> {
        let known = self.received.known();
        if !greeting::may_begin(known) {
            return Err(HandshakeError::Stranger);
        }
        const { assert!(VERSIONS_END < GREETING) };
        match greeting::versions(known) {
            Some((theirs, _)) if theirs != PROTOCOL => {
                Err(HandshakeError::Protocol { ours: PROTOCOL, theirs })
            }
            Some((_, theirs)) if theirs != self.library => {
                Err(HandshakeError::Library { ours: self.library, theirs })
            }
            _ => Ok(()),
        }
    }

    /// The greeting of the peer is whole.
    fn greeted(&mut self) -> Result<(), HandshakeError> {
        let theirs = Greeting::decode(self.received.known());
        let theirs = theirs.filter(|theirs| theirs.side != self.side);
        let theirs = theirs.ok_or(HandshakeError::Stranger)?;
        if theirs.purpose != self.purpose {
            let (ours, theirs) = (self.purpose, theirs.purpose);
            return Err(HandshakeError::Purpose { ours, theirs });
        }
        // Without the right one, the peer is answered too, so that it learns that the secrets
        // differ.
        let (marked, mark_of_peer) = self.received.known().split_at(UNMARKED);
        self.is_marked = mark(&self.secret, marked).verify_truncated_left(mark_of_peer).is_ok();
        if self.side == HandshakeSide::Acceptor {
            self.prove();
        }
        self.stage = HandshakeStage::Proof(theirs.identity);
        Ok(())
    }

    /// The proof of the peer is whole.
    fn proved(&mut self, peer: u64) -> Result<(), HandshakeError> {
        let theirs = &self.received.bytes[GREETING..];
        let other = match self.side {
            HandshakeSide::Connector => HandshakeSide::Acceptor,
            HandshakeSide::Acceptor => HandshakeSide::Connector,
        };
        // Takes the same time for every wrong proof.
        self.mac(other).verify_slice(theirs).map_err(|_| HandshakeError::Proof)?;
        if let Some(expected) = self.expected.filter(|&expected| expected != peer) {
            return Err(HandshakeError::Identity { expected, found: peer });
        }
        if self.side == HandshakeSide::Connector {
            self.prove();
        }
        self.stage = HandshakeStage::Done(peer);
        Ok(())
    }

    /// Adds the proof of this side to what is to be sent.
    fn prove(&mut self) {
        let proof = self.mac(self.side).finalize().into_bytes();
        self.own.fill(&proof, GREETING + PROOF);
    }

    /// The proof of a side, before it is finished.
    fn mac(&self, side: HandshakeSide) -> Hmac<Sha256> {
        let (ours, theirs) = (&self.own.bytes[..GREETING], &self.received.bytes[..GREETING]);
        let (connector, acceptor) = match self.side {
            HandshakeSide::Connector => (ours, theirs),
            HandshakeSide::Acceptor => (theirs, ours),
        };
        let label: &[u8] = match side {
            HandshakeSide::Connector => b"connector",
            HandshakeSide::Acceptor => b"acceptor",
        };
        keyed(&self.secret, &[label, connector, acceptor])
    }
}

/// The mark of a greeting that begins with these bytes, before it is finished.
fn mark(secret: &JobSecret, greeting: &[u8]) -> Hmac<Sha256> {
    keyed(secret, &[b"greeting", greeting])
}

fn keyed(secret: &JobSecret, parts: &[&[u8]]) -> Hmac<Sha256> {
    let key = secret.to_bytes();
    let mut mac = Hmac::<Sha256>::new_from_slice(&key).expect("any length is a key");
    parts.iter().for_each(|part| mac.update(part));
    mac
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
