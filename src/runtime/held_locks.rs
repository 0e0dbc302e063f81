//! What one thread holds: its handler-safe locks, its no-interrupt section, a message that it has
//! prepared.
//!
//! Kept by debug checks (`checks`), in the slot of each thread. Invariant: only the thread changes
//! its record. A new thread that gets the index of one that ended clears the record first.

use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering};
use parking_lot::Mutex;

/// What one thread holds.
#[derive(Debug, Default)]
pub(super) struct HeldLocks {
    /// Addresses of its handler-safe locks, in the order in which it locked them, each with the
    /// function that unlocks it.
    locks: Mutex<Vec<(usize, &'static str)>>,
    /// Whether it is between `gasnet_hold_interrupts` and `gasnet_resume_interrupts`.
    section: AtomicBool,
    /// Whether it is between `gex_AM_Prepare*` and `gex_AM_Commit*` or `gex_AM_Cancel*`.
    prepared: AtomicBool,
}

impl HeldLocks {
    /// Clears what the previous thread with this index held.
    pub(super) fn clear(&self) {
        self.locks.lock().clear();
        self.set_section(false);
        self.set_prepared(false);
    }

    /// Whether it holds nothing.
    pub(super) fn is_empty(&self) -> bool {
        self.locks.lock().is_empty() && !self.in_section() && !self.has_prepared()
    }

    /// The lock that it locked last, and the function that unlocks it.
    pub(super) fn last(&self) -> Option<(usize, &'static str)> {
        self.locks.lock().last().copied()
    }

    /// Whether it holds this lock.
    pub(super) fn has(&self, lock: usize) -> bool {
        self.locks.lock().iter().any(|&(held, _)| held == lock)
    }

    /// Adds a lock.
    pub(super) fn push(&self, lock: usize, unlock: &'static str) {
        self.locks.lock().push((lock, unlock));
    }

    /// Removes the lock that it locked last.
    pub(super) fn pop(&self) {
        self.locks.lock().pop();
    }

    /// Whether it is in a no-interrupt section.
    pub(super) fn in_section(&self) -> bool {
        self.section.load(Ordering::Relaxed)
    }

    /// Begins or ends a no-interrupt section; returns whether it was in one.
    pub(super) fn set_section(&self, inside: bool) -> bool {
        self.section.swap(inside, Ordering::Relaxed)
    }

    /// Whether it has prepared a message.
    pub(super) fn has_prepared(&self) -> bool {
        self.prepared.load(Ordering::Relaxed)
    }

    /// Notes whether it has prepared a message.
    pub(super) fn set_prepared(&self, prepared: bool) {
        self.prepared.store(prepared, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_owner_of_an_index_holds_nothing() {
        let held = HeldLocks::default();
        held.push(8, "gex_HSL_Unlock");
        held.set_section(true);
        held.set_prepared(true);
        assert!(held.has(8) && held.last() == Some((8, "gex_HSL_Unlock")));
        assert!(held.in_section() && held.has_prepared() && !held.is_empty());
        held.clear();
        assert!(!held.has(8) && !held.in_section() && !held.has_prepared() && held.is_empty());
    }
}
