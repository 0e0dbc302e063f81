//! What is known of the pins of this rank, under the lock of `local`.
//!
//! Used by `local`, which keeps the sums that it documents.

use super::extent::MemoryExtent;
use super::moves::HoldLimit;
use super::policy::{FirehoseLimits, MissTurns, RegionLender};
use crate::rank::JobRank;
use alloc::collections::{BTreeSet, VecDeque};
use alloc::vec::Vec;

/// What is known of a slot under the lock.
#[derive(Clone, Copy, Default)]
pub(super) struct OwnPin {
    pub(super) generation: u32,
    /// References of peers.
    pub(super) refs: u32,
    /// It is one of MAXVICTIM.
    pub(super) own: bool,
    pub(super) pinned: bool,
    /// The network uses it: the unpin is to be tried again.
    pub(super) busy: bool,
    /// It is in the table: the current pin of its block.
    pub(super) linked: bool,
    /// Memory under it was unmapped: peers find it no more.
    pub(super) gone: bool,
    /// Nothing would notice that: it serves one transfer of this rank at most.
    pub(super) once: bool,
    pub(super) extent: MemoryExtent,
}

/// Entries of the list of idle pins beyond twice those in use: it is not swept for a few.
const SPARE: usize = 64;

pub(super) struct LocalTables {
    pub(super) pins: Vec<OwnPin>,
    /// Free slots; the one that was used longest ago first.
    pub(super) free: VecDeque<u32>,
    /// Slots that were own and idle, with their generations, in the order of the clock.
    pub(super) idle: VecDeque<(u32, u32)>,
    /// The pinned ones, by the start of their block.
    pub(super) by_block: BTreeSet<(usize, u32)>,
    /// The sum of their extents.
    pub(super) pinned_bytes: usize,
    pub(super) busy: Vec<u32>,
    /// How many are own.
    pub(super) own: u32,
    pub(super) lender: RegionLender,
    pub(super) recalls: VecDeque<(JobRank, HoldLimit)>,
    pub(super) turns: MissTurns,
}

impl LocalTables {
    /// Notes an own pin in the list of the clock. Those that have ended leave when they are many.
    pub(super) fn note_idle(&mut self, at: u32) {
        if self.idle.len() > 2 * self.own as usize + SPARE {
            let pins = &self.pins;
            self.idle.retain(|&(at, generation)| {
                let pin = &pins[at as usize];
                pin.own && pin.generation == generation
            });
        }
        self.idle.push_back((at, self.pins[at as usize].generation));
    }

    /// Nothing is pinned.
    pub(super) fn new(limits: FirehoseLimits) -> LocalTables {
        LocalTables {
            pins: Vec::new(),
            free: VecDeque::new(),
            idle: VecDeque::new(),
            by_block: BTreeSet::new(),
            pinned_bytes: 0,
            busy: Vec::new(),
            own: 0,
            lender: RegionLender::new(limits),
            recalls: VecDeque::new(),
            turns: MissTurns::default(),
        }
    }
}
