//! The plan of one process's part in one collective: rounds of local steps and transfers.
//!
//! Made by `choice` and the plan makers (`movement`, `all_to_all`, `compute`) when the last
//! image of the process has called, executed by `engine`. Invariant: two messages between the
//! same two processes have different tags, and both sides derive them alike.
//!
//! ```text
//!   round r    local steps, in order  ->  all transfers at once  ->  round r + 1
//! ```

use super::block_cyclic::BlockStride;
use super::request::{CollBuffers, CollMemory, Reduction};
use crate::client_memory::{Dst, Src};
use crate::rank::TeamRank;
use alloc::vec::Vec;

/// Tags of the messages of the synchronisations before and after; those of data are below.
const ENTRY: u32 = 1 << 30;
const EXIT: u32 = 1 << 31;

/// The memory of a message on this side.
#[derive(Clone, Copy, Debug)]
pub(super) enum TransferMemory {
    /// The message is sent from here.
    Send(Src<'static>),
    /// The message is received here.
    Receive(Dst<'static>),
}

/// One message.
#[derive(Clone, Copy, Debug)]
pub(super) struct CollTransfer {
    pub(super) peer: TeamRank,
    pub(super) tag: u32,
    pub(super) memory: TransferMemory,
}

/// Work within the process.
#[derive(Clone, Copy, Debug)]
pub(super) enum LocalStep {
    /// Copies all bytes; both sides have as many.
    Copy { to: Dst<'static>, from: Src<'static> },
    /// `to = left op right`, by the function of the plan; `to` overlaps neither.
    Combine { to: Dst<'static>, left: Src<'static>, right: Src<'static> },
    /// Element i of `to` is the combination of the elements 0 to i of `from`, which is not empty.
    Prefix { to: Dst<'static>, from: Src<'static> },
    /// Copies the bytes of `from` to blocks of `to`.
    Spread { to: Dst<'static>, from: Src<'static>, by: BlockStride },
    /// Copies blocks of `from` to `to`.
    Collect { to: Dst<'static>, from: Src<'static>, by: BlockStride },
}

/// A part of a plan.
#[derive(Debug, Default)]
pub(super) struct PlanRound {
    pub(super) steps: Vec<LocalStep>,
    pub(super) transfers: Vec<CollTransfer>,
}

impl PlanRound {
    /// Adds a copy, unless source and destination are the same.
    pub(super) fn copy(&mut self, to: Dst<'static>, from: Src<'static>) {
        if to.len() != 0 && !core::ptr::eq(to.as_ptr(), from.as_ptr()) {
            self.steps.push(LocalStep::Copy { to, from });
        }
    }

    /// Adds a message to the team's rank `peer`.
    pub(super) fn send(&mut self, peer: usize, tag: u32, from: Src<'static>) {
        let peer = TeamRank(peer as u32);
        self.transfers.push(CollTransfer { peer, tag, memory: TransferMemory::Send(from) });
    }

    /// Adds a message from the team's rank `peer`.
    pub(super) fn receive(&mut self, peer: usize, tag: u32, to: Dst<'static>) {
        let peer = TeamRank(peer as u32);
        self.transfers.push(CollTransfer { peer, tag, memory: TransferMemory::Receive(to) });
    }
}

/// Rounds, and the memory that they need in addition to the client's.
#[derive(Debug, Default)]
pub(super) struct CollPlan {
    pub(super) rounds: Vec<PlanRound>,
    reduction: Option<Reduction>,
    scratch: Vec<CollMemory>,
}

impl CollPlan {
    /// With this function, and nothing to do.
    pub(super) fn with(reduction: Option<Reduction>) -> CollPlan {
        CollPlan { reduction, ..CollPlan::default() }
    }

    /// `n` bytes of memory, aligned for any element, that live as long as the plan.
    pub(super) fn scratch(&mut self, n: usize) -> Dst<'static> {
        let mut memory = CollMemory::new(n);
        let bytes = memory.bytes();
        self.scratch.push(memory);
        bytes
    }

    /// Adds a round that is not empty.
    pub(super) fn push(&mut self, round: PlanRound) {
        if !(round.steps.is_empty() && round.transfers.is_empty()) {
            self.rounds.push(round);
        }
    }

    /// Adds a synchronisation of all `n` processes by dissemination (Hensgen, Finkel, Manber
    /// 1988), before (`exit` false) or after the data move.
    pub(super) fn barrier(&mut self, n: usize, me: usize, exit: bool) {
        let base = if exit { EXIT } else { ENTRY };
        let mut distance = 1;
        while distance < n {
            let mut round = PlanRound::default();
            let tag = base + distance as u32;
            round.receive((me + n - distance) % n, tag, CollBuffers::none().dst);
            round.send((me + distance) % n, tag, CollBuffers::none().src);
            self.push(round);
            distance *= 2;
        }
    }

    /// Does the local work of a round.
    pub(super) fn work(&self, round: usize) {
        let function = || self.reduction.expect("only plans with a function combine");
        for step in &self.rounds[round].steps {
            match *step {
                LocalStep::Copy { to, from } => to.copy_from(from),
                LocalStep::Combine { to, left, right } => function().combine(to, left, right),
                LocalStep::Prefix { to, from } => function().prefixes(to, from),
                LocalStep::Spread { to, from, by } => {
                    for (apart, together, n) in by.pieces(from.len()) {
                        to.part(apart, n).copy_from(from.part(together, n));
                    }
                }
                LocalStep::Collect { to, from, by } => {
                    for (apart, together, n) in by.pieces(to.len()) {
                        to.part(together, n).copy_from(from.part(apart, n));
                    }
                }
            }
        }
    }
}
