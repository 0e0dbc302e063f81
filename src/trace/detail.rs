//! What an event is about: ranks, sizes, addresses, arguments; and the memory that a trace with
//! the letter D prints the first bytes of.
//!
//! Made by the callers of spans. Invariant: only a [`ReadableDetail`] has memory that is read,
//! and its unsafe constructor is where a caller vouches for it.

use crate::client_memory::{Dst, Src};
use core::fmt;

/// What an event is about. Addresses in it are printed, not read.
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

    /// The same, with its memory: the source of a put, or the payload and the arguments of a
    /// message.
    ///
    /// # Safety
    /// When the event begins, the `bytes` bytes at `local` of a put and at `payload` of a
    /// message must be readable, unless the address is null; so must the arguments of a
    /// message.
    #[inline(always)]
    pub unsafe fn readable(self) -> ReadableDetail {
        let ((at, len), (args, nargs)) = match self {
            EventDetail::Move { bytes, local, .. } => ((local, bytes), (core::ptr::null(), 0)),
            EventDetail::Message { bytes, payload, args, nargs, .. } => {
                ((payload, bytes), (args, nargs))
            }
            _ => ((core::ptr::null(), 0), (core::ptr::null(), 0)),
        };
        let len = if at.is_null() { 0 } else { len };
        ReadableDetail {
            detail: self,
            // SAFETY: readable, as promised; no bytes for null.
            memory: unsafe { Src::new(at, len) },
            // SAFETY: as above.
            args: unsafe { Src::new(args.cast(), nargs * size_of::<i32>()) },
        }
    }

    /// The same, without memory that is read.
    pub fn unread(self) -> ReadableDetail {
        let nothing = Src::from(&[][..]);
        ReadableDetail { detail: self, memory: nothing, args: nothing }
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

/// What an event is about, and the memory whose first bytes may be printed while it begins.
#[derive(Clone, Copy, Debug)]
pub struct ReadableDetail {
    pub(super) detail: EventDetail,
    pub(super) memory: Src<'static>,
    args: Src<'static>,
}

impl ReadableDetail {
    /// The arguments of a message, while the event begins.
    pub(super) fn args(&self) -> Vec<i32> {
        const WORD: usize = size_of::<i32>();
        let word = |i: usize| {
            let mut bytes = [0; WORD];
            Dst::from(&mut bytes[..]).copy_from(self.args.part(i * WORD, WORD));
            i32::from_ne_bytes(bytes)
        };
        (0..self.args.len() / WORD).map(word).collect()
    }
}

/// Prints the first bytes of memory, in hexadecimal digits.
pub(super) struct FirstBytes<'a>(pub(super) Src<'a>);

impl fmt::Display for FirstBytes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut copy = [0; 16];
        let n = self.0.len().min(copy.len());
        Dst::from(&mut copy[..n]).copy_from(self.0.part(0, n));
        copy[..n].iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
        if self.0.len() > n { f.write_str("...") } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_bytes() {
        let shown = |bytes: &[u8]| FirstBytes(Src::from(bytes)).to_string();
        assert_eq!(shown(&[]), "");
        assert_eq!(shown(&[1, 0xab]), "01ab");
        assert_eq!(shown(&[7; 17]), "07".repeat(16) + "...");
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
        // SAFETY: the arrays live as long as the value.
        let readable = unsafe { message.readable() };
        assert_eq!(readable.args(), args);
        assert_eq!(FirstBytes(readable.memory).to_string(), "6162636465");
        assert!(message.unread().memory.len() == 0 && message.unread().args().is_empty());
        assert_eq!(EventDetail::Sync(4).to_string(), " handles=4");
    }
}
