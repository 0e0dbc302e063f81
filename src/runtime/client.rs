//! A client: the program or runtime that calls GASNet, as the library knows it.
//!
//! Named by `capi` when it starts a job; calls reach it through
//! [`Ctx::client`](super::Ctx::client). Invariant: it does not change.

use crate::conduit::RegisteredOnDemand;

/// How many client threads may call at a time (`GASNET_SEQ`, `GASNET_PARSYNC`, `GASNET_PAR`).
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ThreadMode {
    /// One thread in the whole process.
    Seq = 1,
    /// Several threads, one of them at a time.
    Parsync = 2,
    /// Several threads at once.
    Par = 3,
}

/// What the ranks of a job expose to each other (`GASNET_SEGMENT_FAST`, `GASNET_SEGMENT_LARGE`,
/// `GASNET_SEGMENT_EVERYTHING`).
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentMode {
    /// A segment that the memory of the host can hold.
    Fast = 1,
    /// A segment that the address space can hold. As in FAST, a page takes memory when it is first
    /// touched.
    Large = 2,
    /// All memory of each rank.
    Everything = 3,
}

impl SegmentMode {
    /// All modes.
    pub const ALL: [SegmentMode; 3] =
        [SegmentMode::Fast, SegmentMode::Large, SegmentMode::Everything];

    /// The end of the name of its macro.
    pub fn name(self) -> &'static str {
        match self {
            SegmentMode::Fast => "FAST",
            SegmentMode::Large => "LARGE",
            SegmentMode::Everything => "EVERYTHING",
        }
    }

    /// What puts and gets may name, to a network that registers memory.
    pub fn named_memory(self) -> RegisteredOnDemand {
        match self {
            SegmentMode::Fast => RegisteredOnDemand::LocalSides,
            SegmentMode::Large => RegisteredOnDemand::Segments,
            SegmentMode::Everything => RegisteredOnDemand::AllMemory,
        }
    }
}

/// What a client chose when it called `gasnet_init`.
#[derive(Clone, Copy, Debug)]
pub struct GasnetClient {
    /// Its thread mode.
    pub threads: ThreadMode,
    /// Its segment mode.
    pub segments: SegmentMode,
    /// Bound of the segment that the client's `gasnet_max_segsize` sets, in bytes; 0 for none.
    pub max_segsize: u64,
}
