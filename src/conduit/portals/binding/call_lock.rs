//! One call into the libportals at a time: for a library that does not say that threads may enter
//! it together.
//!
//! Used by [`super::Binding`] in processes of several threads. Invariant: two threads are never
//! inside the library at once. A signal handler that interrupted a call may enter it again, as in
//! a process of one thread. At an exit it must not wait for the code that it interrupted.

use core::sync::atomic::{AtomicU64, Ordering};
use crossbeam_utils::CachePadded;
use sys::thread;

/// No thread is inside.
const FREE: u64 = 0;

/// The right to call.
#[derive(Debug)]
pub(super) struct CallLock {
    /// The thread that is inside.
    holder: CachePadded<AtomicU64>,
}

/// A call that is under way. Its end frees the lock, unless a call that it interrupted holds it.
pub(super) struct CallGuard<'a>(Option<&'a CallLock>);

fn this_thread() -> u64 {
    u64::from(thread::index()) + 1
}

impl CallLock {
    pub(super) fn new() -> CallLock {
        CallLock { holder: CachePadded::new(AtomicU64::new(FREE)) }
    }

    /// The right to call, unless another thread has it.
    #[inline]
    pub(super) fn try_enter(&self) -> Option<CallGuard<'_>> {
        let me = this_thread();
        // Acquire pairs with the Release in `drop`.
        match self.holder.compare_exchange(FREE, me, Ordering::Acquire, Ordering::Relaxed) {
            Ok(_) => Some(CallGuard(Some(self))),
            Err(holder) => (holder == me).then_some(CallGuard(None)),
        }
    }

    /// The right to call, once the other threads have left.
    #[inline]
    pub(super) fn enter(&self) -> CallGuard<'_> {
        let mut round = 0u32;
        loop {
            if let Some(guard) = self.try_enter() {
                return guard;
            }
            thread::relax(round);
            round = round.saturating_add(1);
        }
    }
}

impl Drop for CallGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some(lock) = self.0 {
            lock.holder.store(FREE, Ordering::Release);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_thread_waits_and_a_signal_handler_does_not() {
        let lock = CallLock::new();
        let outer = lock.try_enter();
        assert!(outer.is_some());
        // As a signal handler of this thread would.
        drop(lock.enter());
        let other = || {
            thread::claim(1, |_| {});
            lock.try_enter().is_some()
        };
        assert!(!std::thread::scope(|s| s.spawn(other).join().unwrap()));
        drop(outer);
        assert!(std::thread::scope(|s| s.spawn(other).join().unwrap()));
    }
}
