//! What a process keeps of its own descriptors, in private memory.
//!
//! Written under the owner lock, read by the calls and by transfers. [`MdRecord::control`] holds
//! generation, number of updates and a phase. A thread of this process publishes a hazard that
//! names the descriptor and then reads `control` again. The owner sets the phase to CLOSING and
//! then reads the hazards (see [`crate::arena::hazard`]). Deliverers do the same with the
//! version of the portal table entry. Invariant: a record is reused only after every event that
//! names it has been consumed.

use core::sync::atomic::{
    AtomicBool, AtomicI32, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering,
};

use crate::arena::{IOVECS, MdCell};
use crate::descriptor::traits::{MemoryKind, Traits};
use crate::types::*;
use sys::zeroed::Zeros;

/// The fields of [`MdRecord::control`]: generation 16-31, updates 2-15, phase 0-1.
pub(crate) mod control {
    pub(crate) const FREE: u32 = 0;
    pub(crate) const LIVE: u32 = 1;
    pub(crate) const CLOSING: u32 = 2;
    pub(crate) const PHASE: u32 = 3;
    const UPDATE: u32 = 4;

    pub(crate) fn generation(control: u32) -> u32 {
        control >> 16
    }
    pub(crate) fn updated(control: u32) -> u32 {
        control & 0xffff_0000 | (control & 0xfffc).wrapping_add(UPDATE) & 0xfffc
    }
}

/// The pieces of a scattered descriptor, as this process uses them.
#[derive(Debug)]
pub(crate) struct Pieces {
    pub(crate) count: usize,
    pub(crate) list: [(*mut u8, u64); IOVECS],
}

/// What this process keeps of one of its descriptors.
#[repr(align(128))]
#[derive(Debug, Default)]
pub(crate) struct MdRecord {
    /// See [`control`].
    pub(crate) control: AtomicU32,
    /// Its handle, which its events name. Stays until the record is reused.
    pub(crate) handle: AtomicU32,
    /// Framed messages that use it.
    pub(crate) pending: AtomicU32,
    /// Gets and get-puts in frames whose replies are to come. While there are any, an update is
    /// refused. A descriptor that is unlinked takes no replies.
    pub(crate) asked: AtomicU32,
    /// Those of [`MdRecord::pending`] that share one operation in flight in the state word
    /// ([`state`](crate::descriptor::state)).
    pub(crate) sharing: AtomicU32,
    /// Peers use it by remote access, until the interface is closed.
    pub(crate) exposed: AtomicBool,
    /// [`Traits`].
    pub(crate) traits: AtomicU64,
    /// First byte; of a scattered descriptor, the user's vector.
    pub(crate) start: AtomicUsize,
    /// Bytes.
    pub(crate) length: AtomicU64,
    pub(crate) user_ptr: AtomicUsize,
    /// Null unless scattered.
    pub(crate) pieces: AtomicPtr<Pieces>,
    /// [`MemoryDescriptor::length`], [`MemoryDescriptor::max_size`],
    /// [`MemoryDescriptor::options`] and [`MemoryDescriptor::eq`].
    pub(crate) stated_length: AtomicU64,
    pub(crate) max_size: AtomicU64,
    pub(crate) options: AtomicU32,
    pub(crate) eq: AtomicU32,
    /// [`MemoryDescriptor::threshold`], as attached or updated.
    pub(crate) threshold: AtomicI32,
    /// Index + 1 of the match entry it is attached to, or 0; changed under the owner lock.
    pub(crate) me: AtomicU32,
    /// `PTL_UNLINK`.
    pub(crate) unlink: AtomicBool,
}

// SAFETY: atomics of integers, pointers and a boolean, all of which may be 0.
unsafe impl Zeros for MdRecord {}

/// The memory of a descriptor of this process.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MdMemory {
    /// First byte, if there are no pieces.
    pub(crate) start: *mut u8,
    pub(crate) pieces: *const Pieces,
    /// Whether it is an address space: see [`MemoryKind::AddressSpace`].
    pub(crate) whole: bool,
}

// SAFETY: its memory is freed only after the last user of the descriptor is done; any thread may
// copy from and to it.
unsafe impl Send for MdMemory {}

impl MdRecord {
    /// A reply has arrived, or never will. The count does not fall below 0: a peer may report this
    /// too often.
    pub(crate) fn reply_is_over(&self) {
        let less = |n: u32| n.checked_sub(1);
        let _ = self.asked.fetch_update(Ordering::Release, Ordering::Relaxed, less);
    }

    fn kind(&self) -> MemoryKind {
        Traits(self.traits.load(Ordering::Relaxed)).kind()
    }

    pub(crate) fn memory(&self) -> MdMemory {
        MdMemory {
            start: self.start.load(Ordering::Relaxed) as *mut u8,
            pieces: self.pieces.load(Ordering::Acquire),
            whole: self.kind() == MemoryKind::AddressSpace,
        }
    }
}

/// A descriptor of this process whose handle was passed to a call.
#[derive(Clone, Copy)]
pub(crate) struct LocalMd<'a> {
    pub(crate) index: u32,
    /// The value when the handle was looked up.
    pub(crate) control: u32,
    pub(crate) record: &'a MdRecord,
    pub(crate) cell: &'a MdCell,
}

impl LocalMd<'_> {
    #[inline(always)]
    pub(crate) fn handle(&self) -> MdHandle {
        MdHandle(self.control & 0xffff_0000 | self.index)
    }
    #[inline(always)]
    pub(crate) fn traits(&self) -> Traits {
        Traits(self.record.traits.load(Ordering::Relaxed))
    }
    #[inline(always)]
    pub(crate) fn length(&self) -> u64 {
        self.record.length.load(Ordering::Relaxed)
    }
    /// Whether the descriptor is unchanged since its handle was looked up. Called after a hazard
    /// that names it was published.
    #[inline(always)]
    pub(crate) fn unchanged(&self) -> bool {
        self.record.control.load(Ordering::SeqCst) == self.control
    }
}
