//! One call into the libportals at a time: for a library that does not say that threads may enter
//! it together.
//!
//! Used by [`super::Binding`] in processes of several threads. Invariant: two threads are never
//! inside the library at once. A signal handler that interrupted a call may enter it again, as in
//! a process of one thread. At an exit it must not wait for the code that it interrupted.
//!
//! A thread that polls calls again as soon as it has left. If the library gives the CPU away in
//! its calls, others would find the lock taken each time that they look. So the thread that was
//! inside last lets those that wait go first, for a few yields. Tickets would be fairer, but a
//! signal handler would wait behind the ticket of the thread that it interrupted.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use crossbeam_utils::CachePadded;
use sys::thread;

/// No thread is inside.
const FREE: u64 = 0;
/// How often a thread yields to those that wait before it calls again.
const YIELDS_TO_OTHERS: u32 = 16;

/// The right to call.
#[derive(Debug)]
pub(super) struct CallLock(CachePadded<LockWords>);

#[derive(Debug)]
struct LockWords {
    /// The thread that is inside.
    holder: AtomicU64,
    /// The thread that entered last.
    last: AtomicU64,
    /// How many threads wait, and how often that one has let them go first since.
    waiting: AtomicU32,
    let_go: AtomicU32,
}

/// A call that is under way. Its end frees the lock, unless a call that it interrupted holds it.
pub(super) struct CallGuard<'a>(Option<&'a CallLock>);

fn this_thread() -> u64 {
    u64::from(thread::index()) + 1
}

impl CallLock {
    pub(super) fn new() -> CallLock {
        CallLock(CachePadded::new(LockWords {
            holder: AtomicU64::new(FREE),
            last: AtomicU64::new(FREE),
            waiting: AtomicU32::new(0),
            let_go: AtomicU32::new(0),
        }))
    }

    /// The right to call, unless another thread has it or waits for it.
    #[inline]
    pub(super) fn try_enter(&self) -> Option<CallGuard<'_>> {
        if self.lets_others_go() { None } else { self.take() }
    }

    /// The right to call, once the other threads have left.
    #[inline]
    pub(super) fn enter(&self) -> CallGuard<'_> {
        while self.lets_others_go() {}
        self.take().unwrap_or_else(|| self.wait())
    }

    fn take(&self) -> Option<CallGuard<'_>> {
        let LockWords { holder, last, let_go, .. } = &*self.0;
        let me = this_thread();
        // Acquire pairs with the Release in `drop`.
        match holder.compare_exchange(FREE, me, Ordering::Acquire, Ordering::Relaxed) {
            Ok(_) => {
                last.store(me, Ordering::Relaxed);
                let_go.store(0, Ordering::Relaxed);
                Some(CallGuard(Some(self)))
            }
            Err(holder) => (holder == me).then_some(CallGuard(None)),
        }
    }

    #[cold]
    #[inline(never)]
    fn wait(&self) -> CallGuard<'_> {
        self.0.waiting.fetch_add(1, Ordering::Relaxed);
        let mut round = 0u32;
        let guard = loop {
            thread::relax(round);
            if let Some(guard) = self.take() {
                break guard;
            }
            round = round.saturating_add(1);
        };
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
        guard
    }

    /// Yields if this thread was inside last and others wait; false if not, or if it has done so
    /// often enough.
    #[inline]
    fn lets_others_go(&self) -> bool {
        self.0.waiting.load(Ordering::Relaxed) > 0 && self.yields_to_waiting()
    }

    #[cold]
    fn yields_to_waiting(&self) -> bool {
        let LockWords { holder, last, let_go, .. } = &*self.0;
        let me = this_thread();
        let yields = last.load(Ordering::Relaxed) == me
            && holder.load(Ordering::Relaxed) != me
            && let_go.fetch_add(1, Ordering::Relaxed) < YIELDS_TO_OTHERS;
        if yields {
            thread::yield_now();
        }
        yields
    }
}

impl Drop for CallGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        if let Some(lock) = self.0 {
            lock.0.holder.store(FREE, Ordering::Release);
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

    /// Threads that poll without end, in a library that gives the CPU away, let another one in.
    #[test]
    fn threads_that_poll_let_others_in() {
        const CALLS: u32 = 100;
        let lock = &CallLock::new();
        let (made, polls) = (&AtomicU32::new(0), &AtomicU64::new(0));
        std::thread::scope(|s| {
            for poller in 1..4 {
                s.spawn(move || {
                    thread::claim(poller, |_| {});
                    while made.load(Ordering::Relaxed) < CALLS {
                        if let Some(_call) = lock.try_enter() {
                            thread::yield_now();
                            polls.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                });
            }
            s.spawn(move || {
                thread::claim(4, |_| {});
                for _ in 0..CALLS {
                    let _call = lock.enter();
                    thread::yield_now();
                    made.fetch_add(1, Ordering::Relaxed);
                }
            });
        });
        let polls = polls.load(Ordering::Relaxed);
        assert!(polls < 100 * u64::from(CALLS), "{polls} polls of others for {CALLS} calls");
    }
}
