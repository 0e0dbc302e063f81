//! What changes only under the owner lock: free lists, match lists, and what waits to be freed.
//!
//! Locked by calls that attach, update, unlink or free. Invariant: put, get and polling an empty
//! queue never touch it.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;

use super::free_indexes::FreeIndexes;
use crate::arena::{AcWords, EventSlot, IdentWords, MdWords, MeWords, PieceWords, ShapeWords};
use crate::descriptor::record::Pieces;
use crate::types::*;
use sys::memory::LockedPages;

/// What changes only under the owner lock.
#[derive(Debug)]
pub(crate) struct OwnerTables {
    pub(crate) mes: Vec<MeRecord>,
    pub(crate) free_mes: FreeIndexes,
    /// Match entries of each portal table entry, in order.
    pub(crate) lists: Vec<Vec<u16>>,
    /// Portal table entries that have ever had a match entry.
    pub(crate) pt_used: Vec<bool>,
    pub(crate) free_mds: FreeIndexes,
    /// Removed descriptors that an event or a hazard may still name.
    pub(crate) resting: VecDeque<Resting>,
    /// Descriptors whose queue an update has replaced, and the old queue: it may still hold
    /// their events.
    pub(crate) earlier_queues: Vec<(u32, EqHandle)>,
    /// Pieces that were replaced while framed messages used them.
    pub(crate) old_pieces: Vec<OldPieces>,
    pub(crate) free_iovs: Vec<u64>,
    pub(crate) free_eqs: FreeIndexes,
    /// Of each queue; one without slots is free.
    pub(crate) rings: Vec<ShapeWords>,
    /// Slots of freed rings, of which no two runs are next to each other.
    pub(crate) free_slots: Vec<FreeSlots>,
    pub(crate) next_eq_key: u64,
    /// First free byte of the arena.
    pub(crate) next_byte: usize,
    pub(crate) ident: IdentWords,
    pub(crate) admissions: Vec<AcWords>,
    /// What was written into the cells of descriptors; as long as the highest index in use needs.
    pub(crate) written: Vec<WrittenMd>,
    /// The memory that descriptors have registered.
    pub(crate) registered: LockedPages,
}

impl OwnerTables {
    /// The tables of a new interface; `next_byte` is the first free byte of its arena.
    pub(crate) fn new(limits: &NiLimits, next_byte: usize) -> OwnerTables {
        OwnerTables {
            mes: vec![MeRecord::default(); limits.max_mes as usize],
            free_mes: FreeIndexes::new(limits.max_mes),
            lists: vec![Vec::new(); limits.max_pt_index as usize + 1],
            pt_used: vec![false; limits.max_pt_index as usize + 1],
            free_mds: FreeIndexes::new(limits.max_mds),
            resting: VecDeque::new(),
            earlier_queues: Vec::new(),
            old_pieces: Vec::new(),
            free_iovs: Vec::new(),
            free_eqs: FreeIndexes::new(limits.max_eqs),
            rings: vec![ShapeWords::default(); limits.max_eqs as usize],
            free_slots: Vec::new(),
            next_eq_key: 0,
            next_byte,
            ident: IdentWords::default(),
            admissions: vec![AcWords::default(); limits.max_ac_index as usize + 1],
            written: Vec::new(),
            registered: LockedPages::new(),
        }
    }
}

/// Slots of the arena that belonged to rings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FreeSlots {
    /// Offset of the first.
    pub(crate) start: u64,
    /// How many.
    pub(crate) count: u64,
}

impl FreeSlots {
    /// Offset behind the last.
    pub(crate) fn end(self) -> u64 {
        self.start + self.count * size_of::<EventSlot>() as u64
    }
}

/// What this process keeps of one of its match entries.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MeRecord {
    pub(crate) generation: u16,
    pub(crate) live: bool,
    pub(crate) pt: u32,
    /// `PTL_UNLINK`: it is unlinked with its descriptor.
    pub(crate) unlink: bool,
    /// Index of its descriptor.
    pub(crate) md: Option<u16>,
    pub(crate) words: MeWords,
}

/// What was written into the arena for a descriptor.
#[derive(Clone, Debug, Default)]
pub(crate) struct WrittenMd {
    pub(crate) words: MdWords,
    /// Of a scattered descriptor.
    pub(crate) pieces: Vec<PieceWords>,
    /// Memory that it has registered: first byte, bytes.
    pub(crate) registered: Vec<(usize, u64)>,
}

/// A removed descriptor whose record and cell must not be reused yet.
#[derive(Debug)]
pub(crate) struct Resting {
    pub(crate) index: u32,
    /// Deliverers may still use it and post its last event.
    pub(crate) hazards: bool,
    /// Once they do not: its event queues, and of each the first position that cannot be one of
    /// its events.
    pub(crate) events: Vec<(EqHandle, u64)>,
}

/// Pieces that an update has replaced: framed messages of the descriptor may still use them.
#[derive(Debug)]
pub(crate) struct OldPieces {
    /// The descriptor.
    pub(crate) md: u32,
    pub(crate) pieces: *mut Pieces,
}

// SAFETY: the value owns the pointer, which only waits to be freed.
unsafe impl Send for OldPieces {}

impl Drop for OldPieces {
    fn drop(&mut self) {
        // SAFETY: made by `Box::into_raw`, owned by this value alone; dropped when no message of
        // the descriptor is under way, or with the interface.
        drop(unsafe { Box::from_raw(self.pieces) });
    }
}
