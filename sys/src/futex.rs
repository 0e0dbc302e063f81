//! Futexes in memory that several processes share. Called by `portals3`, which sleeps on a
//! doorbell until an event arrives, and by the conduit, which asks whether memory can be written.

use core::sync::atomic::AtomicU32;

/// Why [`wait`] returned. Callers look at the word again in every case.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Woken {
    /// [`wake`] was called, a signal arrived, or there was no reason.
    Maybe,
    /// The word did not have the expected value.
    Changed,
    /// The time has passed.
    TimedOut,
}

/// Sleeps while `word` has the value `expected`: until [`wake`], or for `timeout_ns`
/// nanoseconds (`None`: without end).
///
/// For the kernel, comparing the word and going to sleep is one step with respect to [`wake`].
/// So a process that changes the word and then wakes is never missed.
pub fn wait(word: &AtomicU32, expected: u32, timeout_ns: Option<u64>) -> Woken {
    let t = timeout_ns.map(|ns| libc::timespec {
        tv_sec: (ns / 1_000_000_000).min(i32::MAX as u64) as libc::time_t,
        tv_nsec: (ns % 1_000_000_000) as libc::c_long,
    });
    let t = t.as_ref().map_or(core::ptr::null(), |t| t as *const libc::timespec);
    // SAFETY: the word is a live, aligned 32-bit integer and the timeout null or a live
    // timespec.
    let r =
        unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, expected, t) };
    if r == 0 {
        return Woken::Maybe;
    }
    match super::errno() {
        libc::EAGAIN => Woken::Changed,
        libc::ETIMEDOUT => Woken::TimedOut,
        _ => Woken::Maybe,
    }
}

/// Wakes up to `count` threads that sleep on `word`; returns how many. Async-signal-safe.
pub fn wake(word: &AtomicU32, count: u32) -> u32 {
    let count = count.min(i32::MAX as u32);
    // SAFETY: the word is a live, aligned 32-bit integer.
    let r = unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, count) };
    r.max(0) as u32
}

/// Whether this process can write the word at an address, a multiple of 4. Adds 0 to it in one
/// atomic step, so that nothing changes.
pub fn is_writable(at: usize) -> bool {
    // Add 0; wake no further thread unless the word was equal to 0.
    const ADD_NOTHING: u32 = 1 << 28;
    let own = AtomicU32::new(0);
    // Linux before 2.6.22 refuses FUTEX_PRIVATE_FLAG.
    let op = libc::FUTEX_WAKE_OP;
    // SAFETY: the first word is live; the kernel checks the other one, and changes no bit of it.
    unsafe { libc::syscall(libc::SYS_futex, own.as_ptr(), op, 0, 0usize, at, ADD_NOTHING) == 0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::sync::atomic::Ordering;
    use std::sync::Arc;

    #[test]
    fn memory_that_can_be_written_is_known() {
        static CONSTANT: [u32; 2048] = [7; 2048];
        let mut word = 5u32;
        assert!(is_writable((&raw mut word).addr()) && word == 5);
        assert!(!is_writable(0) && !is_writable(CONSTANT[1024..].as_ptr().addr()));
    }

    #[test]
    fn returns_at_once_when_the_value_differs() {
        assert_eq!(wait(&AtomicU32::new(1), 0, None), Woken::Changed);
    }

    #[test]
    fn times_out() {
        assert_eq!(wait(&AtomicU32::new(0), 0, Some(1_000_000)), Woken::TimedOut);
    }

    #[test]
    fn wakes() {
        let word = Arc::new(AtomicU32::new(0));
        let sleeper = std::thread::spawn({
            let word = word.clone();
            move || {
                while word.load(Ordering::Acquire) == 0 {
                    wait(&word, 0, None);
                }
            }
        });
        word.store(1, Ordering::Release);
        wake(&word, u32::MAX);
        sleeper.join().unwrap();
    }
}
