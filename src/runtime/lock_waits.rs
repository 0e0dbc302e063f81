//! The threads that wait for a handler-safe lock, as the report of a hang lists them.
//!
//! Written by `hsl` before and after a wait for a lock that another thread holds, read by a signal
//! handler through `status`. Invariant: an entry belongs to the thread that has claimed it. A
//! thread needs no index of the library for it. One that finds none free is not listed.

use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use sys::clock;

/// One thread's wait; free if `since` is 0. Relaxed, since a report may mix two waits.
struct LockWait {
    since: AtomicU64,
    lock: AtomicUsize,
}

static WAITS: [LockWait; 16] =
    [const { LockWait { since: AtomicU64::new(0), lock: AtomicUsize::new(0) } }; 16];

/// Ends the note of a wait.
pub(super) struct LockWaitNote(Option<&'static LockWait>);

/// Notes that the calling thread waits for the lock at this address.
pub(super) fn note(lock: usize) -> LockWaitNote {
    let now = clock::now_ns().max(1);
    let claim = |wait: &&LockWait| {
        wait.since.compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed).is_ok()
    };
    let wait = WAITS.iter().find(claim);
    if let Some(wait) = wait {
        wait.lock.store(lock, Ordering::Relaxed);
    }
    LockWaitNote(wait)
}

impl Drop for LockWaitNote {
    fn drop(&mut self) {
        if let Some(wait) = self.0 {
            wait.since.store(0, Ordering::Relaxed);
        }
    }
}

/// For each thread that waits: the address of the lock, and for how many nanoseconds.
/// Async-signal-safe.
pub(super) fn now() -> impl Iterator<Item = (usize, u64)> {
    let now = clock::now_ns();
    WAITS.iter().filter_map(move |wait| match wait.since.load(Ordering::Relaxed) {
        0 => None,
        since => Some((wait.lock.load(Ordering::Relaxed), now.saturating_sub(since))),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wait_is_listed_until_it_ends() {
        let waits = |lock| now().filter(|w| w.0 == lock).count();
        let (first, second) = (note(8), note(8));
        assert_eq!(waits(8), 2);
        drop(first);
        assert_eq!(waits(8), 1);
        let many: Vec<_> = (0..2 * WAITS.len()).map(|_| note(16)).collect();
        assert!(waits(16) < WAITS.len());
        drop((second, many));
        assert_eq!(waits(8) + waits(16), 0);
    }
}
