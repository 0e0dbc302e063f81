//! What the library needs of the operating system: waiting, waking, identity, cross-memory attach.

use core::sync::atomic::AtomicU32;

/// Politely passes the time in round `round` of a wait: spins at first, then gives up the processor.
#[inline]
pub(crate) fn relax(round: u32) {
    if round < 100 {
        core::hint::spin_loop();
    } else {
        // SAFETY: has no preconditions.
        unsafe { libc::sched_yield() };
    }
}

/// User id of this process.
pub(crate) fn uid() -> u32 {
    // SAFETY: has no preconditions.
    unsafe { libc::getuid() }
}

/// Process id of this process.
pub(crate) fn pid() -> u32 {
    // SAFETY: has no preconditions.
    unsafe { libc::getpid() as u32 }
}

/// Sleeps while `word` is `seen`, for at most `timeout_ns`. The word may be shared between processes.
pub(crate) fn futex_wait(word: &AtomicU32, seen: u32, timeout_ns: u64) {
    let timeout = libc::timespec {
        tv_sec: (timeout_ns / 1_000_000_000).min(i32::MAX as u64) as libc::time_t,
        tv_nsec: (timeout_ns % 1_000_000_000) as libc::c_long,
    };
    // SAFETY: the word and the timeout live during the call; the operation reads nothing else.
    unsafe {
        libc::syscall(
            libc::SYS_futex,
            word.as_ptr(),
            libc::FUTEX_WAIT,
            seen,
            &timeout as *const libc::timespec,
        )
    };
}

/// Wakes all who sleep on `word`.
pub(crate) fn futex_wake(word: &AtomicU32) {
    // SAFETY: the operation does not even read the word.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, i32::MAX) };
}

/// Nanoseconds of a clock that only goes forward.
pub(crate) fn now_ns() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is writable.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Reads (`write` false) or writes another process's memory. Whether all bytes moved.
///
/// # Safety
/// `local` is valid for `length` bytes, writable if they are read into it.
pub(crate) unsafe fn attach_copy(
    pid: u32,
    remote: u64,
    local: *mut u8,
    length: usize,
    write: bool,
) -> bool {
    let mut done = 0;
    while done < length {
        let near =
            libc::iovec { iov_base: local.wrapping_add(done).cast(), iov_len: length - done };
        let far = libc::iovec {
            iov_base: (remote as usize).wrapping_add(done) as *mut libc::c_void,
            iov_len: length - done,
        };
        // SAFETY: `near` is valid as promised; the kernel checks `far`.
        let moved = unsafe {
            if write {
                libc::process_vm_writev(pid as libc::pid_t, &near, 1, &far, 1, 0)
            } else {
                libc::process_vm_readv(pid as libc::pid_t, &near, 1, &far, 1, 0)
            }
        };
        if moved <= 0 {
            return false;
        }
        done += moved as usize;
    }
    true
}
