//! The operating system: the one crate that calls the C library. `portals3` and `gasnet`
//! depend on it; it depends on neither.
//!
//! A file is about one noun. Descriptors are owned ([`std::os::fd::OwnedFd`]) or borrowed;
//! signals, poll entries and memory files are types of this crate, so that `libc` is named
//! nowhere else (`ci/layers.sh`). What a signal handler may call says *async-signal-safe*.
//!
//! # Lightweight kernels
//!
//! Without feature `hosted` nothing here makes a process, a socket, a mapping or a memory file.
//! Modules of these are left out, or a file of the folder `lightweight` stands in their place.
//!
//! # Calls that old systems lack
//!
//! Linux 2.6.16 with glibc 2.4 suffices. Each later call is made in one function, which does it
//! the older way where the kernel refuses. Calls are made by their numbers where glibc 2.4 has no
//! function for them. A weak symbol, or one that `dlsym` finds, would be missing in a static
//! program. `docs/internals/kernels.md` says what the fallbacks are, and what differs.
//!
//! | call | Linux | made in |
//! |---|---|---|
//! | `fallocate` | 2.6.23 | [`memory::reserve`] |
//! | `memfd_create` | 3.17 | [`memory::MemFd::create`] |
//! | `fcntl`, `F_DUPFD_CLOEXEC` | 2.6.24 | [`descriptor::duplicate`] |
//! | `pipe2` | 2.6.27 | [`descriptor::pipe`] |
//! | `close_range` | 5.9 | [`descriptor::close_all_but`] |
//! | `recvmsg`, `MSG_CMSG_CLOEXEC` | 2.6.23 | [`socket::receive_fds`] |
//! | `socket`, `SOCK_CLOEXEC` | 2.6.27 | `socket::unconnected` |
//! | `socket`, `SOCK_CLOEXEC`, of TCP | 2.6.27 | [`tcp::listen`], [`tcp::connect`] |
//! | `setsockopt`, `TCP_USER_TIMEOUT` | 2.6.37 | [`tcp::tune`] |
//! | `socketpair`, `SOCK_CLOEXEC` | 2.6.27 | [`socket::pair`] |
//! | `accept4` | 2.6.28 | [`socket::accept`] |
//! | `poll`, `POLLRDHUP` | 2.6.17 | [`poll::hung_up`] |
//! | `signalfd4` | 2.6.27 | [`signal::SignalQueue::new`] |
//! | `getrandom` | 3.17 | [`random::number`] |
//! | `pidfd_open` | 5.3 | [`watch::ProcessWatch`] |
//! | `ioctl`, `PIDFD_GET_INFO` | 6.13 | [`watch::ProcessWatch::how_ended`] |
//! | `userfaultfd` | 5.7 | [`unmap_watch::UnmapWatch::open`] |
//! | `close_range`, `CLOSE_RANGE_UNSHARE` | 5.9 | [`unmap_watch::UnmapWatch::keep_open`] |
//! | `process_vm_readv`, `process_vm_writev` | 3.2 | [`attach::read`], [`attach::write`], [`attach::peek`] |
//!
//! `O_CLOEXEC` of `open` (2.6.23), which older kernels ignore, is made up for by
//! `descriptor::opened`. The failure of `prctl` with `PR_SET_PTRACER` (3.4) and of `madvise` with
//! `MADV_HUGEPAGE` (2.6.38) changes nothing. The standard library has fallbacks of its own.

#[cfg(feature = "hosted")]
pub mod accept;
#[cfg_attr(not(feature = "hosted"), path = "lightweight/attach.rs")]
pub mod attach;
#[cfg(feature = "hosted")]
pub mod bell;
#[cfg_attr(not(feature = "hosted"), path = "lightweight/bounded_stderr.rs")]
pub mod bounded_stderr;
pub mod byte_count;
pub mod cache;
pub mod capture;
pub mod checksum;
#[cfg(feature = "hosted")]
pub mod child;
pub mod clock;
pub mod cpu;
pub mod descriptor;
pub mod environment;
#[cfg(feature = "hosted")]
pub mod epoll;
pub mod file;
#[cfg(feature = "hosted")]
pub mod front;
pub mod futex;
pub mod heap;
#[cfg_attr(not(feature = "hosted"), path = "lightweight/helper.rs")]
pub mod helper;
pub mod hint;
#[cfg(feature = "hosted")]
pub mod interface;
#[cfg_attr(not(feature = "hosted"), path = "lightweight/library.rs")]
pub mod library;
pub mod limits;
mod locked_pages;
pub mod locks;
#[cfg_attr(not(feature = "hosted"), path = "lightweight/main_stack.rs")]
mod main_stack;
mod mapping;
pub mod memory;
mod memory_amount;
#[cfg_attr(not(feature = "hosted"), path = "lightweight/memory_file.rs")]
mod memory_file;
#[cfg(tsan)]
mod one_mapping;
#[cfg_attr(not(feature = "hosted"), path = "lightweight/pages.rs")]
mod pages;
pub mod peer;
#[cfg(feature = "hosted")]
pub mod poll;
pub mod process;
#[cfg(feature = "hosted")]
pub mod python;
pub mod random;
pub mod signal;
#[cfg(feature = "hosted")]
pub mod socket;
pub mod stack;
pub mod static_ref;
pub mod stdio;
#[cfg(feature = "hosted")]
pub mod tcp;
pub mod terminal;
pub mod thread;
#[cfg(feature = "hosted")]
mod unlinked;
#[cfg_attr(not(feature = "hosted"), path = "lightweight/unmap_watch.rs")]
pub mod unmap_watch;
#[cfg(feature = "hosted")]
pub mod watch;
pub mod word;
pub mod zeroed;

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

/// Whether the process or the system lacks descriptors or memory.
pub fn is_lack(e: &std::io::Error) -> bool {
    let lacks = [libc::EMFILE, libc::ENFILE, libc::ENOMEM, libc::ENOBUFS];
    e.raw_os_error().is_some_and(|number| lacks.contains(&number))
}
