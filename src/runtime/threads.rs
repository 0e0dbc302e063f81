//! The client threads of this process: an index for each, and the words that the library keeps
//! per thread.
//!
//! Owned by the job; every call gets the slot of its thread from here. Invariant: a slot is
//! written only by the thread that has its index, so its atomics need no order. Reports of other
//! threads read the token and the activity. In SEQ there is one thread, index 0, and no look-up.

use super::activity::Activity;
use super::handlers::AmToken;
use super::held_locks::HeldLocks;
use crate::limits::MAX_THREADS;
use crate::process;
use crate::rank::JobRank;
use crate::report;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering};
use crossbeam_utils::CachePadded;
use std::sync::OnceLock;

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
    /// What it waits for.
    pub activity: Activity,
    /// Whether the thread has taken the index for a lock, and gives it back with the lock.
    pub(super) for_locks: AtomicBool,
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

    /// Ends the job if the thread that had the index has ended inside a handler: what the handler
    /// had in use is lost, and the requester may wait for a reply.
    pub(super) fn check_left(&self) {
        if !self.token.load(Ordering::Relaxed).is_null() {
            ended_in_handler();
        }
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
        _ = SLOTS.set(all);
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

/// The slots of the job, for the end of a thread.
static SLOTS: OnceLock<&[CachePadded<ThreadSlot>]> = OnceLock::new();

/// The kernel's number of the thread that has each index, 0 if none has it. An index is released
/// by the end of its thread (Release) before another thread can take it (Acquire). So the new
/// owner sees all that the old one wrote to its slot.
static OWNERS: [AtomicU32; MAX_THREADS] = [const { AtomicU32::new(0) }; MAX_THREADS];
/// The indices below this number have been used.
static USED: AtomicUsize = AtomicUsize::new(0);

#[cold]
fn ended_in_handler() -> ! {
    report::fatal(
        format_args!(
            "a thread ended inside an active message handler (pthread_exit, pthread_cancel)"
        ),
        format_args!(
            "Let the handler return first, and do not cancel a thread that may be polling."
        ),
    )
}

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
    let (all, me) = (0..limit.min(MAX_THREADS), sys::thread::tid());
    let take_from = |i: usize, owner: u32| {
        OWNERS[i].compare_exchange(owner, me, Ordering::Acquire, Ordering::Relaxed).is_ok()
    };
    // The end of a thread is not reported if the program has taken all thread-specific keys. Nor
    // is it if the last of its destructors calls the library.
    let abandoned = |i: usize| {
        let owner = OWNERS[i].load(Ordering::Relaxed);
        has_exited(owner) && take_from(i, owner)
    };
    let i =
        all.clone().find(|&i| take_from(i, 0)).or_else(|| all.clone().find(|&i| abandoned(i)))?;
    USED.fetch_max(i + 1, Ordering::Relaxed);
    sys::thread::claim(i as u32, release);
    Some(i as u16)
}

/// The indices below `limit` that live threads have; always 0, which a thread in SEQ never
/// takes.
pub(super) fn live(limit: usize) -> impl Iterator<Item = u16> {
    (0..limit.min(MAX_THREADS)).filter(|&i| i == 0 || is_taken(i)).map(|i| i as u16)
}

/// The indices whose threads have ended.
pub fn ended() -> impl Iterator<Item = u16> {
    (0..USED.load(Ordering::Relaxed)).filter(|&i| !is_taken(i)).map(|i| i as u16)
}

fn is_taken(i: usize) -> bool {
    OWNERS[i].load(Ordering::Relaxed) != 0
}

/// Whether a thread has this index that has not ended. The end of some is not reported.
pub(super) fn is_live(index: u16) -> bool {
    !has_exited(OWNERS[usize::from(index)].load(Ordering::Relaxed))
}

/// Whether an index with this owner belongs to no thread any more.
fn has_exited(owner: u32) -> bool {
    owner == 0 || !sys::thread::exists(owner)
}

/// Gives back the index of the calling thread.
pub(super) fn give_back(slot: &ThreadSlot) {
    sys::thread::unclaim();
    release(slot.index.into());
}

/// Called at the end of the thread with this index. In a forked child there is no job to end.
fn release(index: u32) {
    let i = index as usize;
    if let Some(slot) = SLOTS.get().and_then(|slots| slots.get(i))
        && process::is_rank()
    {
        slot.check_left();
    }
    OWNERS[i].store(0, Ordering::Release);
}
