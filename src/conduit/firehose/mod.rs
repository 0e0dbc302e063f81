//! Firehose: memory that is pinned on demand, at the rank that owns it, for the ranks that access
//! it (Bell and Bonachea, "A New DMA Registration Strategy for Pinning-Based High Performance
//! Networks", CAC 2003; GASNet's gm-conduit README). `docs/internals/firehose.md` has the states,
//! the invariants and the proofs.
//!
//! Used by the files that put and get, over networks that must register memory. Invariants: a rank
//! has at most M + MAXVICTIM regions pinned; none is unpinned while an operation of this rank or a
//! reference of a peer holds it; each rank is sure of one region of each peer, so every miss ends.
//!
//! A *region* is an aligned block of [`FirehoseLimits::region_bytes`]. With the size of a page this
//! is the page firehose; with GASNET_FIREHOSE_MAXREGION_SIZE it is the region firehose. One table
//! serves both, because aligned blocks never overlap: a look-up is one hash probe, where regions
//! of any bounds need a search, merging and splitting. Of a block only the part that is mapped is
//! pinned, its [`MemoryExtent`].
//!
//! | file | what it owns |
//! |---|---|
//! | `policy` | sizes and limits; how a rank shares its M among its peers |
//! | `table` | the regions that a rank can use now: hits take no lock |
//! | `remote` | what this rank holds of its peers: misses, victims, answers |
//! | `local` | what of this rank is pinned, for its peers and for itself |
//! | `moves` | the messages between the two, as bytes |
//! | `stats` | counters |
//!
//! What is not here stands behind three traits: [`Pinner`] pins, [`Mover`] sends, [`Monitor`]
//! learns that memory was unmapped.
//!
//! # Who calls what, on which thread
//!
//! | event | call | thread |
//! |---|---|---|
//! | a put or get needs memory of a peer | `Firehose::remote`, then `Firehose::progress` in each round of a full poll until the hold is ready | that of the client |
//! | it needs memory of this rank, as its local side | `Firehose::local`, after the remote hold is ready | that of the client |
//! | the transfer is complete | `Firehose::release_remote`, `Firehose::release_local` | any that polls |
//! | the target refused the transfer: its generation was old | `Firehose::rejected`, then `Firehose::remote` again | any that polls |
//! | the message of [`Mover::send`] arrives | `Firehose::serve`, whose answer goes back | any that polls, in the handler |
//! | the answer arrives | `Firehose::answered` | any that polls, in the handler |
//!
//! A transfer holds one region of the peer and one region of this rank at most: the caller cuts it
//! at the borders of regions ([`FirehoseLimits::piece`]), and starts a piece before it waits for
//! the next. No call waits; only `Firehose::progress` sends.

pub mod moves;
pub mod policy;

use crate::client_memory::Src;
use crate::rank::JobRank;

pub use policy::FirehoseLimits;

/// Bytes of an address space, from `start` up to `end`, which is not one of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct MemoryExtent {
    /// The address of the first byte.
    pub start: usize,
    /// The address behind the last byte.
    pub end: usize,
}

impl MemoryExtent {
    /// Whether `other` lies within these bytes.
    #[inline]
    pub fn covers(self, other: MemoryExtent) -> bool {
        self.start <= other.start && other.end <= self.end
    }

    /// Whether a byte is in both.
    pub fn overlaps(self, other: MemoryExtent) -> bool {
        self.start < other.end && other.start < self.end
    }

    /// How many bytes.
    pub fn len(self) -> usize {
        self.end.saturating_sub(self.start)
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.end <= self.start
    }
}

/// The name of one pin at the rank that owns the memory. Match bits of a transfer carry it (or
/// [`Pinner::key`] stands for it), so that a transfer which names an old generation finds nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PinId {
    /// Which of the [`FirehoseLimits::slots`]: below that number.
    pub slot: u32,
    /// How often the slot has been used, up to [`Pinner::GENERATIONS`]. It changes with each pin.
    /// A slot is used again only when no peer holds a reference to its last pin.
    pub generation: u32,
}

/// Why memory could not be pinned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PinError {
    /// A limit of the system or of the network: RLIMIT_MEMLOCK, GASNET_PHYSMEM_MAX, PTL_NO_SPACE.
    /// Idle regions are unpinned and the pin is tried again.
    Limit,
    /// Some of the bytes needed are not mapped: the client's error. Trying again is no use.
    Unmapped,
    /// Anything else; trying again is no use.
    Refused,
}

/// What [`Pinner::unpin`] has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UnpinOutcome {
    /// The memory is unpinned: a transfer that names the pin finds nothing from now on.
    Done,
    /// The network is using it (`PTL_MD_IN_USE`): the call is made again later. Until it succeeds
    /// the pin counts, and its block is not pinned again.
    Busy,
}

/// Pins memory of this rank: `mlock`, `PtlMEAttach` and `PtlMDBind`, `fi_mr_reg`.
///
/// Implemented over each network; called by [`Firehose`] with its lock held, one call at a time,
/// on a thread of the client. The calls neither send nor poll.
pub trait Pinner: Send + Sync {
    /// How many generations a message can name: generations are below this number; at least 2.
    const GENERATIONS: u32;

    /// Pins as much of `block` as is mapped around `needed`, which lies in it; at least `needed`,
    /// in whole pages. Peers may then access the extent that is returned, as its pages allow, by
    /// naming `id`. Another pin that overlaps may exist: an older one of the same block, to which
    /// peers still hold references.
    ///
    /// # Errors
    /// Nothing is pinned.
    fn pin(
        &self,
        id: PinId,
        block: MemoryExtent,
        needed: MemoryExtent,
    ) -> Result<MemoryExtent, PinError>;

    /// Undoes a pin of this extent. `kept` is the extent of a newer pin of the same block, if
    /// there is one: its pages must stay locked.
    fn unpin(&self, id: PinId, extent: MemoryExtent, kept: Option<MemoryExtent>) -> UnpinOutcome;

    /// What a peer must name to access this pin, which exists: travels in the answer to it and
    /// comes back from `Firehose::key`. Match bits, or the key of a memory region.
    fn key(&self, id: PinId) -> u64;
}

/// Sends the messages that ask a peer to pin memory.
///
/// Implemented over active messages. Called by `Firehose::progress` on the thread that calls
/// it, with no lock held.
pub trait Mover {
    /// Sends `message`, at most [`MOVE_BYTES`] bytes, to the library of a peer. There
    /// `Firehose::serve` is called with the same bytes and this rank's number. Its answer, at
    /// most [`ANSWER_BYTES`] bytes, comes back to `Firehose::answered`. The answer may be the
    /// reply to the message. Messages and answers may overtake each other; none may be lost.
    ///
    /// `payload` is what rides along, of `Riding`; empty for other messages. The target's
    /// handler writes it to its destination whatever the answer is. May poll, may not wait for a
    /// hold.
    fn send(&self, to: JobRank, message: &[u8], payload: Src<'_>);
}

/// Learns that memory of this process was unmapped, remapped or given back, so that no pin
/// outlives the memory under it.
///
/// Implementations may hear of it on any thread, or in a signal handler; they only note it.
pub trait Monitor: Send + Sync {
    /// This extent is pinned now. Called with the lock of [`Firehose`] held.
    fn watch(&self, extent: MemoryExtent);
    /// It is no longer.
    fn unwatch(&self, extent: MemoryExtent);
    /// Whether [`Monitor::take`] has something: one load. Called by each local hit.
    fn has_news(&self) -> bool;
    /// An extent that was unmapped since it was watched; each is returned once.
    fn take(&self) -> Option<MemoryExtent>;
}

/// Largest message of [`Mover::send`], in bytes.
pub const MOVE_BYTES: usize = 416;

/// Largest answer of `Firehose::serve`, in bytes.
pub const ANSWER_BYTES: usize = 672;

/// A region of a peer that an operation uses, or waits for. Each is released once, by
/// `Firehose::release_remote` or `Firehose::rejected`.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemoteHold(u32);

/// A region of this rank that an operation uses. Each is released once, by
/// `Firehose::release_local`.
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalHold(u32);

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
pub struct MissTurn(u64);

/// What `Firehose::remote` gives for memory of a peer.
#[must_use]
#[derive(Clone, Copy, Debug)]
pub enum RemoteAccess {
    /// A hit: the transfer may start.
    Ready(RemoteHold),
    /// A miss: the transfer may start when `Firehose::state` says so.
    Pending(RemoteHold),
    /// A miss whose payload may ride along: the caller sends the message with it by
    /// [`Mover::send`]. When the hold is no longer pending, the payload has arrived, even if the
    /// pin failed.
    Riding(RemoteHold, moves::MoveMessage),
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
