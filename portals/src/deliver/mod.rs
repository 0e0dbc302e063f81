//! The target's side of a message: the only code that walks a match list.
//!
//! The initiator runs it for a peer whose arena it has mapped; the target's own progress runs it
//! for frames, possibly at the same time. Invariant: an initiator that is killed or stopped
//! between any two steps leaves the target consistent.
//!
//! 1. [`find`] reads access control, the list's version, match entries and descriptors, and
//!    chooses. It writes nothing. An initiator that dies here leaves no trace.
//! 2. The hazard that names the descriptor is published, then the version is read again. From
//!    here on the owner does not remove the descriptor; if the initiator stops or dies, the
//!    descriptor stays in use.
//! 3. [`crate::descriptor::state::claim`] claims room for the message (no write if the
//!    descriptor counts nothing). An initiator that dies from here on leaves a hole in a locally
//!    managed descriptor. A network that loses the rest of a message would do the same.
//! 4. START is posted, the bytes move, END is posted (each event: see [`crate::event::ring`]).
//! 5. The claim is given back; the last one of a descriptor that is used up posts UNLINK.
//! 6. The hazard is cleared, and sleepers are woken.

mod find;
mod post;
#[cfg(test)]
mod tests;

pub(crate) use find::{ClaimResult, FindResult};
pub(crate) use post::claim_local;

use crate::arena::MdCell;
use crate::descriptor::state::Accepted;
use crate::descriptor::traits::Traits;

/// A descriptor in which a message has a place.
#[derive(Clone, Copy)]
pub(crate) struct Matched<'a> {
    pub(crate) md: u32,
    pub(crate) cell: &'a MdCell,
    pub(crate) traits: Traits,
    pub(crate) generation: u32,
    /// Which queue it logs to, beyond reuse of the index.
    pub(crate) eq_key: u64,
    pub(crate) accepted: Accepted,
    /// First byte of its memory as mapped here, as a cached match knows it; null: unknown.
    pub(crate) base: *mut u8,
}

const _: () = {
    // A matched descriptor is copied along the path; it stays small.
    assert!(size_of::<Matched<'_>>() <= 64);
};
