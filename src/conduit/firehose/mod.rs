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
//! | `extent` | a range of addresses |
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
//! # Calls, and their threads
//!
//! | event | call | thread |
//! |---|---|---|
//! | a put or get needs memory of a peer | [`Firehose::remote`], then [`Firehose::progress`] in each round of a full poll until the hold is ready | that of the client |
//! | it needs memory of this rank, as its local side | [`Firehose::local`], after the remote hold is ready | that of the client |
//! | the transfer is complete | [`Firehose::release_remote`], [`Firehose::release_local`] | any that polls |
//! | the target refused the transfer: its generation was old | [`Firehose::rejected`], then [`Firehose::remote`] again | any that polls |
//! | the message of [`Mover::send`] arrives | [`Firehose::serve`], whose answer goes back | any that polls, in the handler |
//! | the answer arrives | [`Firehose::answered`] | any that polls, in the handler |
//!
//! [`Firehose::progress`] is a part of each full poll: a rank that was asked to give regions back may
//! have no transfer of its own.
//!
//! A transfer holds one region of the peer and one region of this rank at most: the caller cuts it
//! at the borders of regions ([`FirehoseLimits::piece`]), and starts a piece before it waits for
//! the next. No call waits; only [`Firehose::progress`] sends.

mod extent;
mod local;
mod moves;
pub mod policy;
mod remote;
mod stats;
mod table;
#[cfg(test)]
mod tests;

use crate::client_memory::Src;
use crate::rank::JobRank;
use alloc::sync::Arc;
use alloc::vec::Vec;
use local::LocalSide;
use moves::{MoveAnswer, MoveRequest};
use remote::RemoteSide;
use stats::FirehoseCounters;

pub use extent::MemoryExtent;
pub use local::LocalSums;
pub use moves::MoveMessage;
pub use policy::{FirehoseLimits, FirehoseMisfit};
pub use stats::FirehoseStats;

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
    /// comes back from [`Firehose::key`]. Match bits, or the key of a memory region.
    fn key(&self, id: PinId) -> u64;
}

/// Sends the messages that request a peer to pin memory.
///
/// Implemented over active messages. Called by [`Firehose::progress`] on the thread that calls
/// it, with no lock held.
pub trait Mover {
    /// Sends `message`, at most [`MOVE_BYTES`] bytes, to the library of a peer. There
    /// [`Firehose::serve`] is called with the same bytes and this rank's number. Its answer, at
    /// most [`ANSWER_BYTES`] bytes, comes back to [`Firehose::answered`]. The answer may be the
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

/// Largest answer of [`Firehose::serve`], in bytes.
pub const ANSWER_BYTES: usize = 672;

/// A region of a peer that an operation uses, or waits for. Each is released once, by
/// [`Firehose::release_remote`] or [`Firehose::rejected`].
#[must_use]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RemoteHold(u32);

/// A region of this rank that an operation uses. Each is released once, by
/// [`Firehose::release_local`].
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

/// What [`Firehose::remote`] gives for memory of a peer.
#[must_use]
#[derive(Clone, Copy, Debug)]
#[allow(clippy::large_enum_variant, reason = "a value lives on the stack of one call")]
pub enum RemoteAccess {
    /// A hit: the transfer may start.
    Ready(RemoteHold),
    /// A miss: the transfer may start when [`Firehose::state`] says so.
    Pending(RemoteHold),
    /// A miss whose payload may ride along: the caller sends the message with it by
    /// [`Mover::send`]. When the hold is no longer pending, the payload has arrived, even if the
    /// pin failed.
    Riding(RemoteHold, MoveMessage),
    /// All regions are in use: [`Firehose::progress`], poll, call again with the turn.
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

/// What [`Firehose::local`] gives for memory of this rank.
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

/// The firehose of one rank.
pub struct Firehose<P, W> {
    me: JobRank,
    limits: FirehoseLimits,
    remote: RemoteSide,
    local: LocalSide<P, W>,
    counters: Arc<FirehoseCounters>,
}

impl<P, W> core::fmt::Debug for Firehose<P, W> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Firehose").field("limits", &self.limits).finish_non_exhaustive()
    }
}

impl<P: Pinner, W: Monitor> Firehose<P, W> {
    /// That of rank `me`, within limits that were checked. `par`: several threads call.
    /// `count_hits`: the statistics count hits, which then cost more.
    pub fn new(
        par: bool,
        count_hits: bool,
        me: JobRank,
        limits: FirehoseLimits,
        pinner: P,
        monitor: W,
    ) -> Firehose<P, W> {
        let counters = Arc::new(FirehoseCounters::new(count_hits));
        Firehose {
            me,
            limits,
            remote: RemoteSide::new(par, limits, counters.clone()),
            local: LocalSide::new(par, limits, me, (pinner, monitor), counters.clone()),
            counters,
        }
    }

    /// Its limits.
    #[inline]
    pub fn limits(&self) -> FirehoseLimits {
        self.limits
    }

    /// Memory of a peer, another rank: bytes of one region ([`FirehoseLimits::piece`]), one at
    /// least. `ahead` more bytes behind them belong to the same transfer: a miss requests
    /// their regions too. `ride`: the transfer is a put whose payload may ride along with a miss. `turn`
    /// is that of the last call for this memory, if it gave one.
    #[inline]
    pub fn remote(
        &self,
        peer: JobRank,
        bytes: MemoryExtent,
        ahead: usize,
        ride: bool,
        turn: Option<MissTurn>,
    ) -> RemoteAccess {
        debug_assert!(!bytes.is_empty() && self.limits.block(bytes.start).covers(bytes));
        self.remote.access(peer, bytes, ahead, ride, turn)
    }

    /// Whether the transfer of a hold may start. Takes no lock.
    #[inline]
    pub fn state(&self, hold: RemoteHold) -> HoldState {
        self.remote.state(hold)
    }

    /// What the transfer of a hold that is ready must name: the peer's [`Pinner::key`].
    #[inline]
    pub fn key(&self, hold: RemoteHold) -> u64 {
        self.remote.key(hold)
    }

    /// The transfer is complete, or will not start. Takes no lock, as a rule.
    #[inline]
    pub fn release_remote(&self, hold: RemoteHold) {
        self.remote.release(hold);
    }

    /// The target refused the transfer: the memory under its pin was unmapped, so the pin was undone.
    /// Releases the hold; another call of [`Firehose::remote`] requests a new pin.
    pub fn rejected(&self, hold: RemoteHold) {
        self.remote.rejected(hold);
    }

    /// Memory of this rank: bytes of one region, one at least.
    #[inline]
    pub fn local(&self, bytes: MemoryExtent, turn: Option<MissTurn>) -> LocalAccess {
        debug_assert!(!bytes.is_empty() && self.limits.block(bytes.start).covers(bytes));
        self.local.access(bytes, turn)
    }

    /// The pin of a hold, under which the [`Pinner`] knows it.
    #[inline]
    pub fn pin_id(&self, hold: LocalHold) -> PinId {
        self.local.pin_id(hold)
    }

    /// The transfer is complete. Takes no lock, as a rule.
    #[inline]
    pub fn release_local(&self, hold: LocalHold) {
        self.local.release(hold);
    }

    /// A message of [`Mover::send`] of a peer has arrived: writes the answer, and returns how many
    /// bytes it has. With 0 no answer is needed. `None` if no library has sent that message.
    pub fn serve(
        &self,
        from: JobRank,
        message: &[u8],
        answer: &mut [u8; ANSWER_BYTES],
    ) -> Option<usize> {
        if from == self.me || from.0 >= self.limits.ranks {
            return None;
        }
        match MoveRequest::decode(message)? {
            MoveRequest::Move { victims, wanted, hungry } => {
                Some(self.local.serve(from, &victims, &wanted, hungry)?.encode(answer))
            }
            MoveRequest::Recall(limit) => {
                self.remote.limited(from, limit);
                Some(0)
            }
        }
    }

    /// The answer of a peer has arrived. False if that peer's library has not sent it.
    #[must_use]
    pub fn answered(&self, from: JobRank, answer: &[u8]) -> bool {
        MoveAnswer::decode(answer).is_some_and(|answer| self.remote.answered(from, &answer))
    }

    /// Sends what is to be sent now, and does what could not be done at once. Part of each full
    /// poll; three loads if there is nothing.
    #[inline]
    pub fn progress(&self, mover: &impl Mover) {
        let mut looks = None;
        while let Some((to, message)) = self.remote.next_message(&mut looks) {
            mover.send(to, message.as_bytes(), Src::empty());
        }
        while let Some((to, limit)) = self.local.progress() {
            mover.send(to, MoveRequest::Recall(limit).encode().as_bytes(), Src::empty());
        }
    }

    /// Unpins everything: the rank exits. Returns how many own holds and references of peers
    /// there were.
    pub fn close(&self) -> (u32, u32) {
        self.local.close()
    }

    /// How often things happened.
    pub fn stats(&self) -> FirehoseStats {
        self.counters.read()
    }

    /// What is pinned. Asserts the invariants of this rank; slow.
    pub fn local_sums(&self) -> LocalSums {
        self.local.sums()
    }

    /// The peers of which this rank ever used regions.
    pub fn peers_used(&self) -> Vec<JobRank> {
        self.remote.peers()
    }

    /// How many regions of a peer count as used here, and how many holds of peers' regions
    /// operations have. Slow.
    pub fn remote_sums(&self, peer: JobRank) -> (u32, u32) {
        self.remote.sums(peer)
    }

    /// References that a peer holds of this rank.
    pub fn held_by(&self, peer: JobRank) -> u32 {
        self.local.held_by(peer)
    }
}
