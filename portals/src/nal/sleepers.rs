//! The threads of a process that sleep until a wire has something or a bell rings, and which of
//! them silences it.
//!
//! Owned by [`super::joined`]. Invariant: no ring is lost. A ring that is silenced was either
//! meant for a thread that is awake, or rings again:
//!
//! ```text
//! producer                     sleeper                          another thread that wakes
//! changes the doorbell's word  is counted                       silences the bell
//! rings the bell               full fence                       full fence
//!                              sleeps if the word is unchanged  counts a sleeper more: rings
//! ```
//!
//! The last two are Dekker's algorithm, as in `arena::doorbell`: if the thread that
//! silences does not count the sleeper, the sleeper sees the word that the producer has changed.

use super::primitive::{AtomicU32, Ordering, fence};

/// What such a thread sleeps on.
pub(super) trait WakeSource {
    /// Sleeps until something has arrived or the bell rings: whether it rings.
    fn wait(&self) -> bool;
    /// Takes all rings.
    fn silence(&self);
    /// Rings the bell.
    fn ring(&self);
}

/// The threads that sleep for events. One that only delivers frames is not counted.
#[derive(Debug, Default)]
pub(super) struct Sleepers(AtomicU32);

impl Sleepers {
    /// Whether there are any. One that is just falling asleep may be missed.
    pub(super) fn are_any(&self) -> bool {
        self.0.load(Ordering::Relaxed) != 0
    }

    /// Sleeps for an event, if `may_sleep` says so when a ring would be missed no more.
    pub(super) fn sleep(&self, source: &impl WakeSource, may_sleep: impl FnOnce() -> bool) {
        self.0.fetch_add(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        if may_sleep() {
            self.wait(source, 1);
        }
        self.0.fetch_sub(1, Ordering::SeqCst);
    }

    /// Sleeps for frames.
    pub(super) fn deliver(&self, source: &impl WakeSource) {
        self.wait(source, 0);
    }

    /// Sleeps. The last one of `own` sleepers silences the bell: the others are to hear it too.
    fn wait(&self, source: &impl WakeSource, own: u32) {
        if !source.wait() || self.0.load(Ordering::SeqCst) != own {
            return;
        }
        source.silence();
        fence(Ordering::SeqCst);
        if self.0.load(Ordering::SeqCst) != own {
            source.ring();
        }
    }
}
