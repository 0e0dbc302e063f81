//! The client threads of this process: an index for each, and the few words that the library keeps per thread.
//!
//! Owns the [`Slot`] array of a [`Job`]; a slot is written only by the thread that has its index. In SEQ there is one
//! thread, index 0, and nothing is looked up.

use super::job::Job;
use core::cell::Cell;
use crossbeam_utils::CachePadded;

/// Most client threads that may use the library at a time (`GASNETT_MAX_THREADS`).
pub const MAX_THREADS: usize = 256;

/// The context of a call: which job, which thread. Small and `Copy`; handed down through all rooms.
#[derive(Clone, Copy, Debug)]
pub struct Ctx {
    /// The job.
    pub job: &'static Job,
    /// Index of the calling thread, 0 in SEQ, below [`MAX_THREADS`].
    pub thread: u16,
}

/// What the library keeps for a thread.
#[derive(Debug, Default)]
pub struct Slot {
    /// The token of the handler that this thread is running, null outside handlers.
    pub token: Cell<*const super::am::Token>,
    /// The doorbell's count before the last poll of a wait (see `wait`).
    pub doorbell: Cell<u32>,
}

/// All slots of a process.
#[derive(Debug)]
pub struct Slots(alloc::boxed::Box<[CachePadded<Slot>]>);

// SAFETY: a slot is only touched by the thread that holds its index (`Ctx::slot`), and an index belongs to one live
// thread at a time.
unsafe impl Sync for Slots {}
// SAFETY: as above; the slots hold no thread-bound resources.
unsafe impl Send for Slots {}

impl Slots {
    /// `n` fresh slots.
    pub fn new(n: usize) -> Slots {
        Slots((0..n).map(|_| CachePadded::new(Slot::default())).collect())
    }
}

impl Ctx {
    /// The words of this thread.
    #[inline]
    pub fn slot(self) -> &'static Slot {
        &self.job.slots.0[self.thread as usize]
    }

    /// Whether this thread is running a handler.
    #[inline]
    pub fn in_handler(self) -> bool {
        !self.slot().token.get().is_null()
    }
}
