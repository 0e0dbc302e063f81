//! The handle of an operation, and the id under which the network completes its fragments.
//!
//! Used by the registry in this folder; clients keep handles as `gasnet_handle_t`. Invariant: a
//! handle of a synced operation never equals one of a later operation, until its slot has had
//! 2^32 - 1 more. The slot that was freed last is used first, so a loop of blocking operations may
//! reach that. It concerns clients that keep the handle of a synced operation, which is a misuse.
//!
//! ```text
//!   63              32 31  28 27      20 19          0
//!   |   generation   | kind |  thread  |   index     |    OpHandle, a word of the client
//!                    |<--------- OpId -------------->|    in the match bits of puts and gets
//!
//!   kind   1:0 explicit or which implicit; 2 departures are counted (OpId::counts_departures);
//!          3 a leaf of the operation, in handles only: with bit 2 the departure of its sources
//! ```

use crate::conduit::OpId;
use crate::limits::MAX_THREADS;

/// Explicit operations and access regions that one thread can have in flight.
pub const OPS_PER_THREAD: u32 = 1 << INDEX_BITS;

pub(super) const INDEX_BITS: u32 = 20;
const THREAD_BITS: u32 = 8;
const KIND_SHIFT: u32 = INDEX_BITS + THREAD_BITS;
const LEAF: usize = 8 << KIND_SHIFT;
/// The kind without the mark of an operation that counts departures.
const UNMARKED: u32 = 0xb;

const _: () = {
    assert!(size_of::<usize>() == 8, "a handle has 64 bits");
    assert!(MAX_THREADS <= 1 << THREAD_BITS);
};

/// What an id names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OpIdKind {
    /// An explicit operation or a region: the index names its slot.
    Explicit,
    /// The implicit operations of one kind of a thread; no index.
    Implicit(ImplicitKind),
}

/// Which count of implicit operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImplicitKind {
    /// Puts and memsets.
    Puts,
    /// Gets.
    Gets,
    /// Atomics that read and write.
    Atomics,
    /// Departures of puts that count them. No id names it: the puts count as [`Puts`] too.
    ///
    /// [`Puts`]: ImplicitKind::Puts
    Departures,
}

impl ImplicitKind {
    /// How many kinds there are.
    pub(super) const COUNT: usize = 4;
}

/// What `gasnet_handle_t` holds: generation, kind, thread and index of an operation. 0 is
/// `GASNET_INVALID_HANDLE`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct OpHandle(pub usize);

impl OpHandle {
    /// `GASNET_INVALID_HANDLE`: nothing to wait for.
    pub const INVALID: OpHandle = OpHandle(0);

    /// The id under which fragments of this operation are completed.
    pub fn op(self) -> OpId {
        OpId(self.0 as u32)
    }

    pub(super) fn new(generation: u32, op: OpId) -> OpHandle {
        OpHandle((generation as usize) << 32 | op.0 as usize)
    }

    pub(super) fn generation(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// The handle of the departure of all sources of this operation; as [`OpHandle::end_leaf`] if
    /// it does not count departures.
    pub fn leaf(self) -> OpHandle {
        OpHandle(self.0 | LEAF)
    }

    /// The handle of the end of this operation, which a sync of it leaves open.
    pub fn end_leaf(self) -> OpHandle {
        OpHandle::new(self.generation(), self.op().without_departures()).leaf()
    }

    /// Whether it is a leaf.
    pub fn is_leaf(self) -> bool {
        self.0 & LEAF != 0
    }

    /// The operation of a leaf; `None` for another handle.
    pub(super) fn root_of_leaf(self) -> Option<OpHandle> {
        self.is_leaf().then_some(OpHandle(self.0 & !LEAF))
    }
}

/// Whether a handle is live, already synced, or invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandleState {
    /// Its operation, of the thread with this index, has not been synced.
    Live(u16),
    /// Its operation was synced.
    Synced,
    /// It names no operation.
    Invalid,
}

pub(super) fn op_id(kind: OpIdKind, thread: u16, index: u32) -> OpId {
    let kind = match kind {
        OpIdKind::Explicit => 0,
        OpIdKind::Implicit(ImplicitKind::Puts) => 1,
        OpIdKind::Implicit(ImplicitKind::Gets) => 2,
        OpIdKind::Implicit(ImplicitKind::Atomics) => 3,
        OpIdKind::Implicit(ImplicitKind::Departures) => unreachable!("no id names it"),
    };
    OpId(kind << KIND_SHIFT | u32::from(thread & 0xff) << INDEX_BITS | index)
}

/// What an id names; `None` for a word that is no id.
#[inline(always)]
pub(super) fn kind_of(op: OpId) -> Option<OpIdKind> {
    match op.0 >> KIND_SHIFT & UNMARKED {
        0 => Some(OpIdKind::Explicit),
        1 => Some(OpIdKind::Implicit(ImplicitKind::Puts)),
        2 => Some(OpIdKind::Implicit(ImplicitKind::Gets)),
        3 => Some(OpIdKind::Implicit(ImplicitKind::Atomics)),
        _ => None,
    }
}

#[inline(always)]
pub(super) fn is_explicit(op: OpId) -> bool {
    op.0 >> KIND_SHIFT & UNMARKED == 0
}

#[inline(always)]
pub(super) fn thread_of(op: OpId) -> usize {
    (op.0 >> INDEX_BITS & 0xff) as usize
}

#[inline(always)]
pub(super) fn index_of(op: OpId) -> u32 {
    op.0 & (OPS_PER_THREAD - 1)
}
