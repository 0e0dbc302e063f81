//! Firehose: memory that is pinned on demand, at the rank that owns it, for the ranks that access
//! it (Bell and Bonachea, "A New DMA Registration Strategy for Pinning-Based High Performance
//! Networks", CAC 2003; GASNet's gm-conduit README). `docs/internals/firehose.md` has the states,
//! the invariants and the proofs.
//!
//! Used by the files that put and get, over networks that must register memory. Invariants: a rank
//! has at most M + MAXVICTIM regions pinned; none is unpinned while an operation of this rank or a
//! reference of a peer holds it; each rank is sure of one region of each peer, so every miss ends.
//!
//! A *region* is an aligned block of [`FirehoseLimits::region_bytes`]. With the size of a page
//! this is the page firehose; with GASNET_FIREHOSE_MAXREGION_SIZE it is the region firehose. One
//! table serves both, because aligned blocks never overlap: a look-up is one hash probe, where
//! regions of any bounds need a search, merging and splitting. Of a block only the part that is
//! mapped is pinned, its [`MemoryExtent`].
//!
//! | file | what it owns |
//! |---|---|
//! | `traits`, `access`, `extent` | what is not here; what callers get; a range of addresses |
//! | `policy` | sizes and limits; how a rank shares its M among its peers |
//! | `table` | the regions that a rank can use now: hits take no lock |
//! | `remote` | what this rank holds of its peers: misses, victims, answers |
//! | `local`, `own_pins` | what of this rank is pinned, for its peers and for itself |
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
//! | a call of the client begins, where a monitor notices unmapping | [`Firehose::undo_unmapped`] | any |
//! | a put or get needs memory of a peer | [`Firehose::remote`], then [`Firehose::progress`] in each round of a full poll until the hold is ready | that of the client |
//! | it needs memory of this rank, as its local side | [`Firehose::local`], after the remote hold is ready | that of the client |
//! | the transfer is complete | [`Firehose::release_remote`], [`Firehose::release_local`] | any that polls |
//! | the target refused the transfer: its generation was old | [`Firehose::rejected`], then [`Firehose::remote`] again | any that polls |
//! | the message of [`Mover::send`] arrives | [`Firehose::serve`], whose answer goes back | any that polls, in the handler |
//! | the answer arrives | [`Firehose::answered`] | any that polls, in the handler |
//!
//! [`Firehose::progress`] is a part of each full poll: a rank that was asked to give regions back
//! may have no transfer of its own.
//!
//! A transfer holds one region of the peer and one region of this rank at most: the caller cuts it
//! at the borders of regions ([`FirehoseLimits::piece`]), and starts a piece before it waits for
//! the next. No call waits; only [`Firehose::progress`] sends.

mod access;
mod extent;
mod local;
mod moves;
mod own_pins;
pub mod policy;
mod remote;
mod stats;
mod table;
#[cfg(test)]
mod tests;
mod traits;

use crate::client_memory::Src;
use crate::rank::JobRank;
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec::Vec;
use local::LocalSide;
use moves::{MoveAnswer, MoveRequest};
use remote::RemoteSide;
use stats::FirehoseCounters;

pub use access::{HoldState, LocalAccess, LocalHold, MissTurn, RemoteAccess, RemoteHold};
pub use extent::MemoryExtent;
pub use moves::MoveMessage;
pub use policy::{FirehoseLimits, FirehoseMisfit};
pub use stats::{FirehoseStats, LocalSums, RemotePins};
pub use table::RegionName;
pub use traits::{
    ANSWER_BYTES, MOVE_BYTES, Monitor, Mover, PinError, PinId, Pinner, UnpinOutcome,
};

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

    /// Lets peers name these bytes only, which stay mapped; without this call, all.
    pub fn exposing(mut self, segment: MemoryExtent) -> Self {
        self.local.expose(segment);
        self
    }

    /// Its limits.
    #[inline]
    pub fn limits(&self) -> FirehoseLimits {
        self.limits
    }

    /// Memory of a peer, another rank: bytes of one region ([`FirehoseLimits::piece`]), one at
    /// least. `ahead` more bytes behind them belong to the same transfer: a miss requests
    /// their regions too. `ride`: the transfer is a put whose payload may ride along with a miss.
    /// `turn` is that of the last call for this memory, if it gave one.
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

    /// Does a transfer within the call, if its region of a peer is held: a hit, which the closure
    /// is given the name of, and which calls nothing of the firehose. False, and nothing
    /// requested, on a miss, or if the closure says so. Takes no lock, as a rule.
    #[inline]
    pub fn at_hit(
        &self,
        peer: JobRank,
        bytes: MemoryExtent,
        transfer: impl FnOnce(RegionName) -> bool,
    ) -> bool {
        debug_assert!(!bytes.is_empty() && self.limits.block(bytes.start).covers(bytes));
        self.remote.at_hit(peer, bytes, transfer)
    }

    /// Whether the transfer of a hold may start. Takes no lock.
    #[inline]
    pub fn state(&self, hold: RemoteHold) -> HoldState {
        self.remote.state(hold)
    }

    /// What the transfer of a hold that is ready must name.
    #[inline]
    pub fn name(&self, hold: RemoteHold) -> RegionName {
        self.remote.name(hold)
    }

    /// The transfer is complete, or will not start. Takes no lock, as a rule.
    #[inline]
    pub fn release_remote(&self, hold: RemoteHold) {
        self.remote.release(hold);
    }

    /// The target refused the transfer: its pin was undone, since the memory was unmapped.
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

    /// Undoes pins of memory that the [`Monitor`] has noticed to be unmapped. Called before
    /// anything by which a peer could learn that other memory is there now. Two loads if there is
    /// none.
    #[inline]
    pub fn undo_unmapped(&self) {
        self.local.undo_unmapped();
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

    /// How many holds operations of this rank have, of its own regions and of those of peers.
    fn holds(&self) -> u32 {
        self.local.holds() + self.remote.holds()
    }

    /// How often things happened. Async-signal-safe.
    pub fn stats(&self) -> FirehoseStats {
        FirehoseStats { holds: self.holds().into(), ..self.counters.read() }
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

    /// What this rank has of each peer whose regions it ever used, counted from its table. Slow.
    pub fn remote_pins(&self) -> BTreeMap<JobRank, RemotePins> {
        self.remote.pins()
    }

    /// References that a peer holds of this rank.
    pub fn held_by(&self, peer: JobRank) -> u32 {
        self.local.held_by(peer)
    }
}
