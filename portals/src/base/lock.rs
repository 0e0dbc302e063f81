//! A lock between the threads of this process, held for a few hundred instructions at most.
//!
//! It spins briefly, then yields. Invariant: it is in private memory, so a stopped or dead peer
//! never holds it.

use core::cell::UnsafeCell;
use core::ops::{Deref, DerefMut};
use core::sync::atomic::{AtomicBool, Ordering};

#[derive(Debug, Default)]
pub(crate) struct SpinLock<T> {
    taken: AtomicBool,
    value: UnsafeCell<T>,
}

// SAFETY: one thread at a time reaches the value, through the guard.
unsafe impl<T: Send> Sync for SpinLock<T> {}

impl<T> SpinLock<T> {
    pub(crate) const fn new(value: T) -> SpinLock<T> {
        SpinLock { taken: AtomicBool::new(false), value: UnsafeCell::new(value) }
    }

    /// Waits for the lock.
    pub(crate) fn lock(&self) -> SpinGuard<'_, T> {
        let mut round = 0u32;
        // Acquire pairs with the Release in the guard's drop.
        while self.taken.swap(true, Ordering::Acquire) {
            while self.taken.load(Ordering::Relaxed) {
                sys::thread::relax(round);
                round = round.saturating_add(1);
            }
        }
        SpinGuard { lock: self }
    }

    /// Waits for the lock, but not without end for a thread that this one has interrupted.
    pub(crate) fn lock_unless_stuck(&self) -> Option<SpinGuard<'_, T>> {
        const ROUNDS: u32 = 2000;
        for round in 0..ROUNDS {
            if let Some(guard) = self.try_lock() {
                return Some(guard);
            }
            sys::thread::relax(round);
        }
        None
    }

    /// Takes the lock unless another thread holds it.
    pub(crate) fn try_lock(&self) -> Option<SpinGuard<'_, T>> {
        // Acquire as in `lock`.
        (!self.taken.swap(true, Ordering::Acquire)).then(|| SpinGuard { lock: self })
    }
}

pub(crate) struct SpinGuard<'a, T> {
    lock: &'a SpinLock<T>,
}

impl<T> Deref for SpinGuard<'_, T> {
    type Target = T;
    fn deref(&self) -> &T {
        // SAFETY: the guard holds the lock.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T> DerefMut for SpinGuard<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: the guard holds the lock, and is borrowed mutably itself.
        unsafe { &mut *self.lock.value.get() }
    }
}

impl<T> Drop for SpinGuard<'_, T> {
    fn drop(&mut self) {
        self.lock.taken.store(false, Ordering::Release);
    }
}
