//! The client threads of this process: an index for each, and the words that the library keeps
//! per thread.
//!
//! Owned by [`GasnetJob`]; every call gets its thread's index from here. Invariant: a slot is
//! written only by the thread that has its index. In SEQ there is one thread, index 0, and no
//! look-up.

use super::job::GasnetJob;
use crate::limits::MAX_THREADS;
use core::cell::Cell;
use core::sync::atomic::{AtomicU64, Ordering};
use crossbeam_utils::CachePadded;

/// The context of a call: job and calling thread. Small and `Copy`; handed down through all
/// layers.
#[derive(Clone, Copy, Debug)]
pub struct Ctx {
    /// The job.
    pub job: &'static GasnetJob,
    /// Index of the calling thread, 0 in SEQ, below [`MAX_THREADS`].
    pub thread: u16,
}

/// What the library keeps for a thread.
#[derive(Debug, Default)]
pub struct ThreadSlot {
    /// The token of the handler that this thread is running, null outside handlers.
    pub token: Cell<*const super::am::AmToken>,
    /// Count of the doorbell before the last poll of a wait (see `wait`).
    pub doorbell: Cell<u32>,
    /// What it waits for; the only part that other threads read.
    pub activity: super::activity::Activity,
    /// What the debug checks keep of it.
    pub held: super::checks::HeldLocks,
}

/// All slots of a process.
#[derive(Debug)]
pub struct ThreadSlots(alloc::boxed::Box<[CachePadded<ThreadSlot>]>);

// SAFETY: a slot is only touched by the thread that holds its index (`Ctx::slot`), and an index
// belongs to one live thread at a time; `ThreadSlot::activity`, which others read, consists of
// atomics.
unsafe impl Sync for ThreadSlots {}
// SAFETY: as above; the slots hold no thread-bound resources.
unsafe impl Send for ThreadSlots {}

impl ThreadSlots {
    /// `n` fresh slots.
    pub fn new(n: usize) -> ThreadSlots {
        ThreadSlots((0..n).map(|_| CachePadded::new(ThreadSlot::default())).collect())
    }

    /// The slot of the calling thread, whose index this is.
    #[inline]
    pub(super) fn of(&self, thread: u16) -> &ThreadSlot {
        &self.0[thread as usize]
    }

    /// Number of slots.
    pub fn count(&self) -> usize {
        self.0.len()
    }
}

/// The indices that live threads have, one bit each. An index is released by the end of its
/// thread (Release) before another thread can take it (Acquire), so the new owner sees all that
/// the old one wrote to its slot.
static TAKEN: [AtomicU64; MAX_THREADS / 64] = [const { AtomicU64::new(0) }; MAX_THREADS / 64];

/// Index of the calling thread, if it has one.
#[inline]
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

impl Ctx {
    /// The words of this thread.
    #[inline]
    pub fn slot(self) -> &'static ThreadSlot {
        self.job.slots.of(self.thread)
    }

    /// Whether this thread is running a handler.
    #[inline]
    pub fn in_handler(self) -> bool {
        !self.slot().token.get().is_null()
    }
}
