//! The traits below the firehose, and the names that they share with it. Implemented over each
//! network; used by all files here.

use super::extent::MemoryExtent;
use crate::client_memory::Src;
use crate::rank::JobRank;

/// The name of one pin at the rank that owns the memory. Match bits of a transfer carry it (or
/// [`Pinner::key`] stands for it), so that a transfer which names an old generation finds nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PinId {
    /// Which of the `FirehoseLimits::slots`: below that number.
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
    /// As `Limit`, and the process has as many mappings as its system allows (`vm.max_map_count`).
    /// [`Pinner::limit`] alone says so.
    Mappings,
    /// Some of the bytes needed are not mapped: the client's error. Trying again is no use.
    Unmapped,
    /// Anything else, such as the lowest page of a stack that cannot grow. The bytes needed are
    /// tried alone; trying again is no use.
    Refused,
    /// Nothing would notice that the memory is unmapped, so it is not kept pinned: memory of a
    /// device, of a file on an old kernel, or that was mapped meanwhile.
    Unwatched,
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
/// Implemented over each network; called by `Firehose` with its lock held, one call at a time,
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

    /// Which limit has made the last pin fail with [`PinError::Limit`]. Nothing more can be
    /// unpinned.
    fn limit(&self) -> PinError {
        PinError::Limit
    }

    /// Undoes a pin of this extent. Other pins of the same block may exist, older or newer ones:
    /// what they need of its pages stays.
    fn unpin(&self, id: PinId, extent: MemoryExtent) -> UnpinOutcome;

    /// The memory of a pin was unmapped while transfers of this rank use it: transfers of peers
    /// that name it find nothing from now on. `unpin` follows when those of this rank are
    /// complete.
    fn hide(&self, id: PinId) -> UnpinOutcome;

    /// What a peer must name to access this pin, which exists: travels in the answer to it and
    /// comes back in a [`super::RegionName`]. Match bits, or the key of a memory region.
    fn key(&self, id: PinId) -> u64;
}

/// Sends the messages that request a peer to pin memory.
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
/// An implementation may learn it on any thread, or in a signal handler; it only notes it.
pub trait Monitor: Send + Sync {
    /// Memory of this block is about to be pinned. Called with the lock of `Firehose` held.
    fn watch(&self, block: MemoryExtent);
    /// Whether all of an extent that was pinned has been watched since before it was: each page is
    /// there, and is watched now. A monitor that notices nothing says that it has. Called with the
    /// lock of `Firehose` held.
    fn watches(&self, extent: MemoryExtent) -> bool;
    /// Nothing of this block is pinned any more.
    fn unwatch(&self, block: MemoryExtent);
    /// Whether [`Monitor::take`] may have something: two loads. Called by each local hit.
    fn has_news(&self) -> bool;
    /// An extent that was unmapped since it was watched, or more; each is returned once. The one
    /// before it has been dealt with. Called with the lock of `Firehose` held.
    fn take(&self) -> Option<MemoryExtent>;
}

/// Largest message of [`Mover::send`], in bytes.
pub const MOVE_BYTES: usize = 416;

/// Largest answer of `Firehose::serve`, in bytes.
pub const ANSWER_BYTES: usize = 672;
