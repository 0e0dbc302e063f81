//! The operating system: the one crate that calls the C library. `portals3` and `gasnet`
//! depend on it; it depends on neither.
//!
//! A file is about one noun. Descriptors are owned ([`std::os::fd::OwnedFd`]) or borrowed;
//! signals, poll entries and memory files are types of this crate, so that `libc` is named
//! nowhere else (`ci/layers.sh`). What a signal handler may call says *async-signal-safe*.
//!
//! # Calls that old systems lack
//!
//! Linux 2.6.16 with glibc 2.4 is a goal, not supported yet: each later call is made in one
//! function, where its fallback will stand.
//!
//! | call | Linux | glibc | made in |
//! |---|---|---|---|
//! | `fallocate` | 2.6.23 | 2.10 | [`memory::reserve`] |
//! | `fallocate`, `FALLOC_FL_PUNCH_HOLE` | 2.6.38 | 2.10 | [`memory::discard`] |
//! | `memfd_create` | 3.17 | 2.27 | [`memory::MemFd::create`] |
//! | `fcntl`, `F_DUPFD_CLOEXEC` | 2.6.24 | 2.7 | [`descriptor::duplicate`] |
//! | `pipe2` | 2.6.27 | 2.9 | [`descriptor::pipe`] |
//! | `close_range` | 5.9 | 2.34 | [`descriptor::close_all_but`] |
//! | `recvmsg`, `MSG_CMSG_CLOEXEC` | 2.6.23 | 2.7 | [`socket::receive_fds`] |
//! | `socket`, `SOCK_CLOEXEC`, `SOCK_NONBLOCK` | 2.6.27 | 2.9 | `socket::unconnected` |
//! | `socketpair`, `SOCK_CLOEXEC` | 2.6.27 | 2.9 | [`socket::pair`] |
//! | `accept4` | 2.6.28 | 2.10 | [`socket::accept`] |
//! | `poll`, `POLLRDHUP` | 2.6.17 | 2.6 | [`poll::hung_up`] |
//! | `signalfd4` | 2.6.27 | 2.9 | [`signal::SignalQueue::new`] |
//! | `getrandom` | 3.17 | 2.25 | [`random::number`] |
//! | `pidfd_open` | 5.3 | - | [`watch::ProcessWatch`], which has a fallback |
//! | `execvpe` | any | 2.11 | [`child::exec`] |
//! | `process_vm_readv`, `process_vm_writev` | 3.2 | 2.15 | [`attach::read`], [`attach::write`], [`attach::peek`] |
//!
//! These need none: `O_CLOEXEC` of `open` (2.6.23), which older kernels ignore; `prctl` with
//! `PR_SET_PTRACER` (3.4) and `madvise` with `MADV_HUGEPAGE` (2.6.38), whose failure changes
//! nothing; `ioctl` with `PIDFD_GET_INFO` (6.13), after which
//! [`watch::ProcessWatch::how_ended`] reads /proc. The standard library has fallbacks of its own.

pub mod attach;
pub mod cache;
pub mod checksum;
pub mod child;
pub mod clock;
pub mod cpu;
pub mod descriptor;
pub mod environment;
pub mod file;
pub mod front;
pub mod futex;
pub mod heap;
pub mod helper;
pub mod hint;
pub mod library;
pub mod limits;
pub mod locks;
pub mod memory;
#[cfg(tsan)]
mod one_mapping;
pub mod peer;
pub mod poll;
pub mod process;
pub mod python;
pub mod random;
pub mod signal;
pub mod socket;
pub mod stack;
pub mod static_ref;
pub mod stdio;
pub mod terminal;
pub mod thread;
mod unlinked;
pub mod watch;

/// Ends this process at once with this exit code; exit handlers do not run. Async-signal-safe.
pub fn exit_now(code: i32) -> ! {
    // SAFETY: _exit may be called at any time.
    unsafe { libc::_exit(code) }
}

/// The address of this thread's error number.
fn errno_location() -> *mut i32 {
    // SAFETY: no arguments; never fails.
    unsafe { libc::__errno_location() }
}

/// The error number of the last failed call of this thread. Async-signal-safe.
pub fn errno() -> i32 {
    // SAFETY: the location belongs to this thread and is always valid.
    unsafe { *errno_location() }
}

/// Sets the error number of this thread. Async-signal-safe: a signal handler puts back what it
/// found.
pub fn set_errno(value: i32) {
    // SAFETY: the location belongs to this thread and is always valid.
    unsafe { *errno_location() = value }
}
