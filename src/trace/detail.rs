//! What an event is about: ranks, sizes, addresses, arguments; and the memory that a trace with
//! the letter D prints the first bytes of.
//!
//! Made by the callers of spans. Invariant: an address is only printed, or read by the system
//! ([`sys::attach::peek`]), which refuses memory that the process may not read.

use core::fmt;

/// What an event is about.
#[derive(Clone, Copy, Debug)]
pub enum EventDetail {
    /// No more than its name.
    Nothing,
    /// A put or get of `bytes` bytes.
    Move {
        /// Rank of the other side.
        node: u32,
        /// Bytes.
        bytes: usize,
        /// Address there.
        remote: *const u8,
        /// Address here; null for a value.
        local: *const u8,
    },
    /// A put or get of pieces.
    Pieces {
        /// Rank of the other side.
        node: u32,
        /// Bytes of all pieces together.
        bytes: usize,
    },
    /// A sync of this many explicit operations.
    Sync(usize),
    /// A message to or from a rank.
    Message {
        /// Rank of the other side.
        node: u32,
        /// Index of the handler.
        handler: u8,
        /// Bytes of the payload.
        bytes: usize,
        /// The payload; null if it cannot be read.
        payload: *const u8,
        /// The first argument.
        args: *const i32,
        /// Number of arguments.
        nargs: usize,
    },
    /// A barrier.
    Barrier {
        /// The name that was passed.
        id: i32,
        /// Its flags.
        flags: i32,
    },
    /// A collective.
    Collective {
        /// Number of the team.
        team: u32,
        /// Image that is its root.
        root: u32,
        /// Bytes of a block.
        bytes: usize,
    },
    /// An operation on the object at this address.
    At(usize),
}

impl EventDetail {
    /// A put or get of `bytes` bytes between `local` here and `remote` on `node`.
    #[inline(always)]
    pub fn moved<R, L>(node: u32, bytes: usize, remote: *const R, local: *const L) -> EventDetail {
        EventDetail::Move { node, bytes, remote: remote.cast(), local: local.cast() }
    }

    /// The bytes that are counted in the statistics.
    pub(super) fn bytes(&self) -> Option<u64> {
        match *self {
            EventDetail::Move { bytes, .. }
            | EventDetail::Pieces { bytes, .. }
            | EventDetail::Message { bytes, .. }
            | EventDetail::Collective { bytes, .. } => Some(bytes as u64),
            _ => None,
        }
    }

    /// The rank on the other side of a put or get.
    pub(super) fn moved_with(&self) -> Option<u32> {
        match *self {
            EventDetail::Move { node, .. } | EventDetail::Pieces { node, .. } => Some(node),
            _ => None,
        }
    }

    /// The arguments of a message, while the event begins.
    pub(super) fn arguments(&self) -> Vec<i32> {
        const WORD: usize = size_of::<i32>();
        let EventDetail::Message { args, nargs, .. } = *self else { return Vec::new() };
        let mut bytes = vec![0; nargs * WORD];
        let read = sys::attach::peek(args.cast(), &mut bytes);
        let words = bytes[..read].chunks_exact(WORD);
        words.map(|word| i32::from_ne_bytes(word.try_into().unwrap_or_default())).collect()
    }

    /// The payload of a message, or the memory of a put or get on this side, while the event
    /// begins.
    pub(super) fn first_bytes(&self) -> FirstBytes {
        match *self {
            EventDetail::Move { local: at, bytes, .. }
            | EventDetail::Message { payload: at, bytes, .. } => FirstBytes::read(at, bytes),
            _ => FirstBytes::default(),
        }
    }
}

impl fmt::Display for EventDetail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            EventDetail::Nothing => Ok(()),
            EventDetail::Move { node, bytes, .. } | EventDetail::Pieces { node, bytes } => {
                write!(f, " node={node} bytes={bytes}")
            }
            EventDetail::Sync(n) => write!(f, " handles={n}"),
            EventDetail::Message { node, handler, bytes, nargs, .. } => {
                write!(f, " node={node} handler={handler} args={nargs} bytes={bytes}")
            }
            EventDetail::Barrier { id, flags } => write!(f, " id={id} flags={flags}"),
            EventDetail::Collective { team, root, bytes } => {
                write!(f, " team={team} root={root} bytes={bytes}")
            }
            EventDetail::At(address) => write!(f, " at={address:#x}"),
        }
    }
}

/// The first bytes of memory; printed in hexadecimal digits.
#[derive(Debug, Default)]
pub(super) struct FirstBytes {
    copy: [u8; 16],
    copied: usize,
    /// Whether the memory has more.
    more: bool,
}

impl FirstBytes {
    /// Those of `bytes` bytes at `at`; none if they cannot be read, as at null.
    fn read(at: *const u8, bytes: usize) -> FirstBytes {
        let mut first = FirstBytes::default();
        let n = bytes.min(first.copy.len());
        first.copied = sys::attach::peek(at, &mut first.copy[..n]);
        first.more = first.copied > 0 && bytes > first.copied;
        first
    }
}

impl fmt::Display for FirstBytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.copy[..self.copied].iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
        if self.more { f.write_str("...") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_bytes() {
        let shown = |bytes: &[u8]| FirstBytes::read(bytes.as_ptr(), bytes.len()).to_string();
        assert_eq!(shown(&[]), "");
        assert_eq!(shown(&[1, 0xab]), "01ab");
        assert_eq!(shown(&[7; 17]), "07".repeat(16) + "...");
        assert_eq!(FirstBytes::read(core::ptr::null(), 17).to_string(), "");
        assert_eq!(FirstBytes::read(core::ptr::without_provenance(8), 17).to_string(), "");
    }

    #[test]
    fn what_is_printed_and_read() {
        let (args, payload) = ([1, -2], *b"abcde");
        let message = EventDetail::Message {
            node: 3,
            handler: 201,
            bytes: payload.len(),
            payload: payload.as_ptr(),
            args: args.as_ptr(),
            nargs: args.len(),
        };
        assert_eq!(message.to_string(), " node=3 handler=201 args=2 bytes=5");
        assert_eq!(message.bytes(), Some(5));
        assert_eq!(message.arguments(), args);
        assert_eq!(message.first_bytes().to_string(), "6162636465");
        let sync = EventDetail::Sync(4);
        assert_eq!(sync.to_string(), " handles=4");
        assert!(sync.arguments().is_empty() && sync.first_bytes().to_string().is_empty());
    }
}
