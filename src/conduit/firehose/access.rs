//! What a caller of the firehose gets: holds, and what to do without one.
//!
//! Made by `remote` and `local`.

use super::moves::MoveMessage;
use super::table::RegionName;
use super::traits::PinError;

/// A region of a peer that an operation uses, or waits for. Each is released once, by
/// `Firehose::release_remote` or `Firehose::rejected`.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemoteHold(pub(super) u32);

/// A region of this rank that an operation uses. Each is released once, by
/// `Firehose::release_local`.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalHold(pub(super) u32);

macro_rules! numbered {
    ($name:ident) => {
        impl $name {
            /// As a number, which the record of an operation can keep.
            #[inline]
            pub fn number(self) -> u32 {
                self.0
            }

            /// The hold of this [`Self::number`], which has not been released.
            #[inline]
            pub fn of_number(number: u32) -> Self {
                $name(number)
            }
        }
    };
}

numbered!(RemoteHold);
numbered!(LocalHold);

/// The turn of an operation that found all regions in use: first come, first served. It is given
/// to the next call for the same memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MissTurn(pub(super) u64);

/// What `Firehose::remote` gives for memory of a peer.
#[must_use]
#[derive(Clone, Copy, Debug)]
#[allow(clippy::large_enum_variant, reason = "a value lives on the stack of one call")]
pub enum RemoteAccess {
    /// A hit: the transfer may start, and must name the region so.
    Ready(RemoteHold, RegionName),
    /// A miss: the transfer may start when `Firehose::state` says so.
    Pending(RemoteHold),
    /// A miss whose payload may ride along: the caller sends the message with it by
    /// `Mover::send`. When the hold is no longer pending, the payload has arrived, even if the
    /// pin failed.
    Riding(RemoteHold, MoveMessage),
    /// All regions are in use: `Firehose::progress`, poll, call again with the turn.
    Full(MissTurn),
}

/// The state of a [`RemoteHold`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HoldState {
    /// The peer has not answered yet.
    Pending,
    /// The transfer may start.
    Ready,
    /// The peer could not pin the memory. The hold is still to be released.
    Failed(PinError),
}

/// What `Firehose::local` gives for memory of this rank.
#[must_use]
#[derive(Clone, Copy, Debug)]
pub enum LocalAccess {
    /// It is pinned until the hold is released.
    Ready(LocalHold),
    /// All regions that this rank may pin for itself are in use: poll, call again with the turn.
    Full(MissTurn),
    /// It could not be pinned; nothing is held.
    Failed(PinError),
}
