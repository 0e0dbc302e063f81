//! Writes to standard error that end although its reader takes nothing.
//!
//! Called by [`crate::stdio`], and by supervisors. Invariant: after [`bound`], a reader that takes
//! nothing keeps this process for 3 s at most, until it takes something again.

use crate::{clock, descriptor, poll};
use core::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::io::{ErrorKind, Write};
use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd, RawFd};

/// Nanoseconds that a write may wait for room in standard error.
const PATIENCE: u64 = 3_000_000_000;

/// Bytes that a pipe takes whole, or not at all.
const ATOMIC: usize = 4096;

/// Whether a write to standard error may be dropped for want of room.
static IS_BOUNDED: AtomicBool = AtomicBool::new(false);

/// The reader of standard error has taken nothing for so long that no write waits for it.
static IS_STALLED: AtomicBool = AtomicBool::new(false);

/// Standard error opened again by [`bound`], without end; -1 if it was not.
static OPENED: AtomicI32 = AtomicI32::new(-1);

/// Whether the reader of standard output or of standard error takes nothing now.
/// Async-signal-safe.
pub fn is_reader_stuck() -> bool {
    !crate::poll::writable_number(1) || is_stuck()
}

/// Whether that of standard error takes nothing: to write there would wait. Async-signal-safe.
pub fn is_stuck() -> bool {
    !crate::poll::writable_number(2)
}

/// Has this process drop what standard error has no room for, after a wait of a few seconds. For
/// processes whose end must not depend on the reader.
pub fn bound() {
    if !IS_BOUNDED.swap(true, Ordering::Relaxed)
        && let Some(fd) = nonblocking(2)
    {
        OPENED.store(fd.into_raw_fd(), Ordering::Relaxed);
    }
}

/// Writes all of `bytes`, ignoring failures. Async-signal-safe.
pub(crate) fn write(bytes: &[u8]) {
    match IS_BOUNDED.load(Ordering::Relaxed) {
        false => crate::file::write_all(2, bytes),
        true => write_within(2, bytes, PATIENCE, &IS_STALLED),
    }
}

/// Writes `bytes` as far as the reader takes them, and drops the rest once it has taken nothing
/// for `patience` nanoseconds. While `is_stalled`, no write waits. Async-signal-safe.
fn write_within(fd: RawFd, bytes: &[u8], patience: u64, is_stalled: &AtomicBool) {
    let opened = OPENED.load(Ordering::Relaxed);
    let own;
    let fd = if is_same_file(opened, fd) {
        opened
    } else {
        own = nonblocking(fd);
        own.as_ref().map_or(fd, AsRawFd::as_raw_fd)
    };
    let mut rest = bytes;
    let end_of_wait = || match is_stalled.load(Ordering::Relaxed) {
        true => 0,
        false => clock::now_ns().saturating_add(patience),
    };
    let mut until = end_of_wait();
    while !rest.is_empty() {
        let left = until.saturating_sub(clock::now_ns());
        let mut entry = [poll::PollEntry::writing_number(fd)];
        poll::wait_ns(&mut entry, left);
        let failed = match entry[0].happened() {
            true => descriptor::write(fd, &rest[..rest.len().min(ATOMIC)]),
            false => Err(ErrorKind::WouldBlock.into()),
        };
        match failed {
            Ok(n @ 1..) => {
                rest = &rest[n..];
                is_stalled.store(false, Ordering::Relaxed);
                until = end_of_wait();
            }
            Err(e) if [ErrorKind::WouldBlock, ErrorKind::Interrupted].contains(&e.kind()) => {
                if left == 0 {
                    return is_stalled.store(true, Ordering::Relaxed);
                }
                if entry[0].happened() {
                    clock::sleep_ns(1_000_000);
                }
            }
            _ => return,
        }
    }
}

/// Whether both descriptors are open and lead to one file.
fn is_same_file(a: RawFd, b: RawFd) -> bool {
    let file = |fd| descriptor::status(fd).map(|s| (s.st_dev, s.st_ino)).ok();
    a >= 0 && file(a).is_some_and(|found| Some(found) == file(b))
}

/// A pipe or terminal opened again, so that a write cannot block: another process may take the
/// room, and a terminal may have less than a text needs. `None` for another file: an open file of
/// its own would have another offset, or cannot be had. Async-signal-safe.
pub fn nonblocking(fd: RawFd) -> Option<OwnedFd> {
    let kind = descriptor::status(fd).map_or(0, |s| s.st_mode & libc::S_IFMT);
    let may_block = match kind {
        libc::S_IFIFO => true,
        // SAFETY: touches no memory.
        libc::S_IFCHR => unsafe { libc::isatty(fd) == 1 },
        _ => false,
    };
    let mut path = [0; 32];
    // The last byte stays zero.
    if !may_block || write!(&mut path[..31], "/proc/self/fd/{fd}").is_err() {
        return None;
    }
    let flags = libc::O_WRONLY | libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_CLOEXEC;
    // SAFETY: the path is NUL-terminated; nothing else owns what the call opens.
    unsafe { descriptor::opened(libc::open(path.as_ptr().cast(), flags)) }.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A reader that takes nothing delays one write, and later ones not at all. What it has room
    /// for again arrives.
    #[test]
    fn a_stopped_reader_ends_the_wait() {
        let (reader, writer) = descriptor::pipe().expect("a pipe");
        let to = writer.as_raw_fd();
        let is_stalled = AtomicBool::new(false);
        let much = vec![b'x'; 4 << 20];
        let patience = 20_000_000;
        let began = clock::now_ns();
        write_within(to, &much, patience, &is_stalled);
        assert!(is_stalled.load(Ordering::Relaxed) && clock::now_ns() - began >= patience);
        // Without a wait: this would never end.
        write_within(to, b"dropped\n", u64::MAX, &is_stalled);
        let mut buffer = vec![0; 8 << 20];
        while poll::readable(std::os::fd::AsFd::as_fd(&reader)) {
            let n = descriptor::read(reader.as_raw_fd(), &mut buffer).expect("bytes");
            assert!(buffer[..n].iter().all(|&c| c == b'x'));
        }
        write_within(to, b"printed\n", patience, &is_stalled);
        let n = descriptor::read(reader.as_raw_fd(), &mut buffer).expect("bytes");
        assert_eq!(&buffer[..n], b"printed\n");
        assert!(!is_stalled.load(Ordering::Relaxed));
        drop(reader);
        write_within(to, b"unread\n", u64::MAX, &is_stalled);
    }

    /// A terminal says that it has room when it has some, which need not be enough.
    #[test]
    fn a_stopped_terminal_ends_the_wait() {
        let (_user, programs) = crate::terminal::open().expect("a terminal");
        let is_stalled = AtomicBool::new(false);
        write_within(programs.as_raw_fd(), &vec![b'x'; 1 << 20], 20_000_000, &is_stalled);
        assert!(is_stalled.load(Ordering::Relaxed));
    }

    /// A reader that takes all, slowly, gets all.
    #[test]
    fn a_slow_reader_gets_all() {
        let (reader, writer) = descriptor::pipe().expect("a pipe");
        let text: Vec<u8> = (0..1_000_000_u32).map(|i| (i % 251) as u8).collect();
        let slow = std::thread::spawn(move || {
            let mut read = Vec::new();
            let mut buffer = [0; 64 << 10];
            loop {
                match descriptor::read(reader.as_raw_fd(), &mut buffer).expect("bytes") {
                    0 => return read,
                    n => read.extend_from_slice(&buffer[..n]),
                }
                clock::sleep_ns(2_000_000);
            }
        });
        write_within(writer.as_raw_fd(), &text, u64::MAX / 2, &AtomicBool::new(false));
        drop(writer);
        assert!(slow.join().expect("no panic") == text);
    }
}
