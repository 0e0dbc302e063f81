//! The plan of one process's part in one collective: rounds of local work and messages.
//!
//! Made by `movement` and `compute` when the last image of the process has called, carried out by `engine`. A round's
//! local work is done when it begins, in order; then its messages are all under way at once; when they are done the next
//! round begins. Two messages between the same two processes have different tags, and both sides derive them alike.

use super::ReduceFn;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ffi::c_int;

/// Tags of the messages that let everybody in, and out; those of data are below.
const ENTRY: u32 = 1 << 30;
const EXIT: u32 = 1 << 31;

/// Which way a message goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TransferDirection {
    /// From here.
    Send,
    /// To here.
    Receive,
}

/// One message.
#[derive(Clone, Copy, Debug)]
pub(super) struct CollTransfer {
    pub(super) way: TransferDirection,
    /// The other side, as a rank of the team.
    pub(super) peer: usize,
    pub(super) tag: u32,
    /// Our memory.
    pub(super) at: *mut u8,
    pub(super) n: usize,
}

/// Local work.
#[derive(Clone, Copy, Debug)]
pub(super) enum LocalStep {
    /// `n` bytes.
    Copy { to: *mut u8, from: *const u8, n: usize },
    /// `to = left op right`, by the function of the plan; `to` overlaps neither.
    Combine { to: *mut u8, left: *const u8, right: *const u8 },
}

/// A part of a plan.
#[derive(Debug, Default)]
pub(super) struct PlanRound {
    pub(super) locals: Vec<LocalStep>,
    pub(super) transfers: Vec<CollTransfer>,
}

impl PlanRound {
    pub(super) fn copy(&mut self, to: *mut u8, from: *const u8, n: usize) {
        if n != 0 && !core::ptr::eq(to, from) {
            self.locals.push(LocalStep::Copy { to, from, n });
        }
    }

    pub(super) fn send(&mut self, peer: usize, tag: u32, at: *const u8, n: usize) {
        self.transfers.push(CollTransfer {
            way: TransferDirection::Send,
            peer,
            tag,
            at: at.cast_mut(),
            n,
        });
    }

    pub(super) fn receive(&mut self, peer: usize, tag: u32, at: *mut u8, n: usize) {
        self.transfers.push(CollTransfer { way: TransferDirection::Receive, peer, tag, at, n });
    }
}

/// A function of the client and what it is called with.
#[derive(Clone, Copy, Debug)]
pub struct Reduction {
    /// The function.
    pub function: ReduceFn,
    /// `GASNET_COLL_NONCOMM` if it was registered with that.
    pub flags: c_int,
    /// The caller's argument.
    pub arg: c_int,
    /// Bytes of an element.
    pub elem_size: usize,
    /// Elements.
    pub elem_count: usize,
}

impl PartialEq for Reduction {
    fn eq(&self, other: &Reduction) -> bool {
        core::ptr::fn_addr_eq(self.function, other.function)
            && (self.flags, self.arg) == (other.flags, other.arg)
            && (self.elem_size, self.elem_count) == (other.elem_size, other.elem_count)
    }
}

/// Rounds, and the memory that they need beside the client's.
#[derive(Debug, Default)]
pub(super) struct CollPlan {
    pub(super) rounds: Vec<PlanRound>,
    pub(super) fold: Option<Reduction>,
    scratch: Vec<Box<[u128]>>,
}

// SAFETY: the addresses are of the plan's own scratch memory, and of memory that the client lends from the call until
// the sync, in whichever threads these happen.
unsafe impl Send for CollPlan {}

impl CollPlan {
    /// With this function, and nothing to do.
    pub(super) fn with(fold: Option<Reduction>) -> CollPlan {
        CollPlan { fold, ..CollPlan::default() }
    }

    /// `n` bytes of memory, aligned for any element, that live as long as the plan.
    pub(super) fn scratch(&mut self, n: usize) -> *mut u8 {
        let mut memory = alloc::vec![0u128; n.div_ceil(16)].into_boxed_slice();
        let at = memory.as_mut_ptr().cast();
        self.scratch.push(memory);
        at
    }

    /// Adds a round that is not empty.
    pub(super) fn push(&mut self, round: PlanRound) {
        if !(round.locals.is_empty() && round.transfers.is_empty()) {
            self.rounds.push(round);
        }
    }

    /// Nobody gets beyond this before all of `n` have come here: dissemination (Hensgen, Finkel, Manber 1988).
    pub(super) fn barrier(&mut self, n: usize, me: usize, exit: bool) {
        let base = if exit { EXIT } else { ENTRY };
        let mut distance = 1;
        while distance < n {
            let mut round = PlanRound::default();
            let none = core::ptr::null_mut();
            round.receive((me + n - distance) % n, base + distance as u32, none, 0);
            round.send((me + distance) % n, base + distance as u32, none, 0);
            self.push(round);
            distance *= 2;
        }
    }

    /// Does the local work of a round.
    ///
    /// # Safety
    /// The memory that the client named must be accessible.
    pub(super) unsafe fn work(&self, round: usize) {
        for local in &self.rounds[round].locals {
            match *local {
                // SAFETY: the caller's promise, or scratch memory of this plan; the two may overlap.
                LocalStep::Copy { to, from, n } => unsafe { core::ptr::copy(from, to, n) },
                LocalStep::Combine { to, left, right } => {
                    let f = self.fold.expect("only plans with a function combine");
                    let (n, left, right) = (f.elem_count, left.cast(), right.cast());
                    // SAFETY: three areas of `elem_count` elements each, as the function's contract asks.
                    unsafe {
                        (f.function)(to.cast(), n, left, n, right, f.elem_size, f.flags, f.arg)
                    };
                }
            }
        }
    }
}
