//! The client threads of this process: an index for each, and the words that the library keeps
//! per thread.
//!
//! Owned by the job; every call gets the slot of its thread from here. Invariant: a slot is
//! written only by the thread that has its index, so its atomics need no order. In SEQ there is
//! one thread, index 0, and no look-up.

use super::activity::Activity;
use super::handlers::AmToken;
use super::held_locks::HeldLocks;
use crate::limits::MAX_THREADS;
use crate::rank::JobRank;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};
use crossbeam_utils::CachePadded;

/// What the library keeps for a thread.
#[derive(Debug, Default)]
pub struct ThreadSlot {
    /// The thread's index.
    pub index: u16,
    /// The token of the handler that this thread is running, null outside handlers.
    pub token: AtomicPtr<AmToken<'static>>,
    /// Count of the doorbell before the last poll of a wait (see `wait`).
    pub doorbell: AtomicU32,
    /// Polls by calls of the client that found nothing.
    pub vain_polls: AtomicU32,
    /// What it waits for; the only part that other threads read.
    pub activity: Activity,
    /// How many threads have had this index.
    pub owners: AtomicU32,
    /// What the debug checks keep of it.
    pub(super) held: HeldLocks,
}

impl ThreadSlot {
    /// The handler that the thread is running, and the rank of its message, if they can be read.
    /// `None` outside handlers. For any thread; async-signal-safe.
    pub(super) fn running(&self) -> Option<Option<(u8, JobRank)>> {
        let token = self.token.load(Ordering::Relaxed);
        if token.is_null() {
            return None;
        }
        let running = AmToken::peek(token);
        // Only then it was that of a handler.
        Some(running.filter(|_| self.token.load(Ordering::Relaxed) == token))
    }
}

/// All slots of a process, which live as long as it does.
#[derive(Debug)]
pub struct ThreadSlots {
    all: &'static [CachePadded<ThreadSlot>],
    /// Slot 0.
    first: &'static ThreadSlot,
}

impl ThreadSlots {
    /// `n` fresh slots, at least one.
    pub fn new(n: usize) -> ThreadSlots {
        let fresh = |index| CachePadded::new(ThreadSlot { index, ..ThreadSlot::default() });
        let all: Vec<_> = (0..n.max(1) as u16).map(fresh).collect();
        let all = &*all.leak();
        ThreadSlots { all, first: &all[0] }
    }

    /// The slot of the thread with this index.
    pub(super) fn of(&self, thread: u16) -> &'static ThreadSlot {
        &self.all[thread as usize]
    }

    /// The slot of the only thread in SEQ.
    pub(super) fn first(&self) -> &'static ThreadSlot {
        self.first
    }

    /// Number of slots.
    pub fn count(&self) -> usize {
        self.all.len()
    }
}

/// The indices that live threads have, one bit each. An index is released by the end of its
/// thread (Release) before another thread can take it (Acquire). So the new owner sees all that
/// the old one wrote to its slot.
static TAKEN: [AtomicU64; MAX_THREADS / 64] = [const { AtomicU64::new(0) }; MAX_THREADS / 64];

/// Index of the calling thread, if it has one.
pub(super) fn index() -> Option<u16> {
    match sys::thread::index() {
        sys::thread::NONE => None,
        i => Some(i as u16),
    }
}

/// Gives the calling thread, which has no index, the lowest free one below `limit`. `None` if
/// all are taken.
#[cold]
pub(super) fn take(limit: usize) -> Option<u16> {
    for i in 0..limit.min(MAX_THREADS) {
        let (word, bit) = (&TAKEN[i / 64], 1u64 << (i % 64));
        if word.fetch_or(bit, Ordering::Acquire) & bit == 0 {
            sys::thread::claim(i as u32, release);
            return Some(i as u16);
        }
    }
    None
}

/// The indices below `limit` that live threads have; always 0, which a thread in SEQ never
/// takes.
pub(super) fn live(limit: usize) -> impl Iterator<Item = u16> {
    (0..limit.min(MAX_THREADS))
        .filter(|i| *i == 0 || TAKEN[i / 64].load(Ordering::Relaxed) >> (i % 64) & 1 == 1)
        .map(|i| i as u16)
}

fn release(index: u32) {
    let i = index as usize;
    TAKEN[i / 64].fetch_and(!(1u64 << (i % 64)), Ordering::Release);
}
