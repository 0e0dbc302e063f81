//! The greeting of each side: its fields, and their bytes.
//!
//! Used by [`crate::state`]. Invariant: [`Greeting::decode`] accepts any bytes.

use crate::secret::Nonce;

/// Version of this protocol.
pub const PROTOCOL: u16 = 2;

const MAGIC: [u8; 8] = *b"GASNetHS";

/// Where the bytes end that no protocol version changes.
pub(crate) const VERSIONS_END: usize = 34;

/// Bytes of a greeting before its mark, and with it.
pub(crate) const UNMARKED: usize = 60;
pub(crate) const GREETING: usize = UNMARKED + 16;

/// The purpose of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionPurpose {
    /// Between supervisors, or to one.
    Control,
    /// Between ranks.
    Data,
}

/// The version of a library, as its users name it: at most 24 bytes of text.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct LibraryVersion([u8; 24]);

impl LibraryVersion {
    /// The version with this name; only the first 24 bytes of the name count.
    pub const fn new(name: &str) -> LibraryVersion {
        let name = name.as_bytes();
        let mut bytes = [0; 24];
        let mut i = 0;
        while i < name.len() && i < bytes.len() {
            bytes[i] = name[i];
            i += 1;
        }
        LibraryVersion(bytes)
    }
}

impl core::fmt::Display for LibraryVersion {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        // A peer wrote it: what a terminal would act on is escaped.
        let length = self.0.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
        write!(f, "{}", self.0[..length].escape_ascii())
    }
}

impl core::fmt::Debug for LibraryVersion {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        core::fmt::Display::fmt(self, f)
    }
}

/// Which side made the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HandshakeSide {
    Connector,
    Acceptor,
}

/// What each side says first.
#[derive(Debug)]
pub(crate) struct Greeting {
    pub(crate) protocol: u16,
    pub(crate) library: LibraryVersion,
    pub(crate) side: HandshakeSide,
    pub(crate) purpose: ConnectionPurpose,
    pub(crate) identity: u64,
    pub(crate) nonce: Nonce,
}

impl Greeting {
    /// Its bytes before the mark.
    pub(crate) fn encode(&self) -> [u8; UNMARKED] {
        let mut bytes = [0; UNMARKED];
        let mut rest = &mut bytes[..];
        put(&mut rest, MAGIC);
        put(&mut rest, self.protocol.to_le_bytes());
        put(&mut rest, self.library.0);
        put(&mut rest, [u8::from(self.side == HandshakeSide::Acceptor)]);
        put(&mut rest, [u8::from(self.purpose == ConnectionPurpose::Data)]);
        put(&mut rest, self.identity.to_le_bytes());
        put(&mut rest, self.nonce.0);
        bytes
    }

    /// `None`: no greeting.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Greeting> {
        let (protocol, library) = versions(bytes)?;
        let mut rest = bytes.get(VERSIONS_END..)?;
        let side = match take::<1>(&mut rest)? {
            [0] => HandshakeSide::Connector,
            [1] => HandshakeSide::Acceptor,
            _ => return None,
        };
        let purpose = match take::<1>(&mut rest)? {
            [0] => ConnectionPurpose::Control,
            [1] => ConnectionPurpose::Data,
            _ => return None,
        };
        let identity = u64::from_le_bytes(take(&mut rest)?);
        let nonce = Nonce(take(&mut rest)?);
        Some(Greeting { protocol, library, side, purpose, identity, nonce })
    }
}

/// Whether these bytes can begin a greeting.
pub(crate) fn may_begin(bytes: &[u8]) -> bool {
    bytes.iter().zip(&MAGIC).all(|(a, b)| a == b)
}

/// The versions that a greeting names, if these bytes reach beyond them.
pub(crate) fn versions(bytes: &[u8]) -> Option<(u16, LibraryVersion)> {
    let mut rest = bytes.strip_prefix(&MAGIC)?;
    Some((u16::from_le_bytes(take(&mut rest)?), LibraryVersion(take(&mut rest)?)))
}

fn put<const N: usize>(rest: &mut &mut [u8], field: [u8; N]) {
    let (now, later) = core::mem::take(rest).split_at_mut(N);
    now.copy_from_slice(&field);
    *rest = later;
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (field, later) = rest.split_first_chunk()?;
    *rest = later;
    Some(*field)
}
