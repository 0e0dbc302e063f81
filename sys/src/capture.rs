//! Text that a function or a program writes to a descriptor, kept in memory, and a copy of its
//! lines with something in front of each.
//!
//! Called by `tools` and `capi`, also from signal handlers. Invariant: after [`Capture::new`]
//! nothing allocates or locks; one thread at a time uses a capture.

use crate::memory::{Mapping, MemFd};
use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, Ordering};
use std::io;
use std::os::fd::{AsFd, AsRawFd};

/// Bytes of a text that are kept.
const BYTES: usize = 256 << 10;
/// Bytes of its copy that are kept.
const COPY_BYTES: usize = 2 * BYTES;

/// A place for a text.
#[derive(Debug)]
pub struct Capture {
    file: MemFd,
    text: Mapping,
    copy: Mapping,
    is_used: AtomicBool,
}

impl Capture {
    /// # Errors
    /// There is no memory or no descriptor.
    pub fn new() -> io::Result<Capture> {
        let file = MemFd::create(c"gasnet-text")?;
        file.set_len(BYTES as u64)?;
        let text = file.map(0, BYTES)?;
        let copy = Mapping::anonymous(COPY_BYTES)?;
        Ok(Capture { file, text, copy, is_used: AtomicBool::new(false) })
    }

    /// Has `write` write to a descriptor, then hands its result and the text to `then`; the text
    /// is cut off after 256 KB. Of the text only the parts that `part` chooses, by their numbers
    /// from 0, with `prefix` in front of each line, up to 512 KB. `None` if another thread uses
    /// the capture. Async-signal-safe.
    pub fn with_lines<T>(
        &self,
        write: impl FnOnce(c_int) -> bool,
        part: impl Fn(&[u8], usize) -> Option<&[u8]>,
        prefix: &[u8],
        then: impl FnOnce(bool, &[u8]) -> T,
    ) -> Option<T> {
        if self.is_used.swap(true, Ordering::Acquire) {
            return None;
        }
        let fd = self.file.as_fd().as_raw_fd();
        // SAFETY: touches no memory; the descriptor is that of `file`.
        unsafe { libc::lseek(fd, 0, libc::SEEK_SET) };
        // SAFETY: the mapping has this many bytes, and only the holder of `is_used` touches them.
        unsafe { self.text.as_ptr().write_bytes(0, BYTES) };
        let done = write(fd);
        // SAFETY: the same; what `write` started has ended, so no program writes any more.
        let text = unsafe { core::slice::from_raw_parts(self.text.as_ptr().cast_const(), BYTES) };
        let length = text.iter().position(|&b| b == 0).unwrap_or(BYTES);
        // SAFETY: the mapping has this many bytes, and only the holder of `is_used` touches them.
        let copy = unsafe { core::slice::from_raw_parts_mut(self.copy.as_ptr(), COPY_BYTES) };
        let mut copied = 0;
        for number in 0.. {
            let Some(part) = part(&text[..length], number) else { break };
            copied += copy_lines(part, prefix, &mut copy[copied..]);
        }
        let result = then(done, &copy[..copied]);
        self.is_used.store(false, Ordering::Release);
        Some(result)
    }
}

/// Copies whole lines, with `prefix` in front of each, as far as there is space; the bytes.
/// A last line without an end gets one.
fn copy_lines(text: &[u8], prefix: &[u8], copy: &mut [u8]) -> usize {
    let mut at = 0;
    for line in text.split_inclusive(|&b| b == b'\n') {
        let end = if line.ends_with(b"\n") { &b""[..] } else { b"\n" };
        for piece in [prefix, line, end] {
            let Some(place) = copy.get_mut(at..at + piece.len()) else { return at };
            place.copy_from_slice(piece);
            at += piece.len();
        }
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_text_replaces_the_one_before() {
        let capture = Capture::new().unwrap();
        for text in ["a longer text\n", "short\n"] {
            let write = |fd| {
                crate::file::write_all(fd, text.as_bytes());
                true
            };
            let got = capture.with_lines(
                write,
                |text, number| (number == 0).then_some(text),
                b"[7] ",
                |done, t| (done, String::from_utf8_lossy(t).into_owned()),
            );
            assert_eq!(got, Some((true, format!("[7] {text}"))));
        }
        let inner = || capture.with_lines(|_| true, |_, _| None, b"", |_, _| ()).is_none();
        let nested = capture.with_lines(|_| inner(), |_, _| None, b"", |none, _| none);
        assert_eq!(nested, Some(true));
    }

    #[test]
    fn lines_are_copied_whole() {
        let copied = |text: &[u8], space: usize| {
            let mut copy = vec![0; space];
            let n = copy_lines(text, b"> ", &mut copy);
            String::from_utf8_lossy(&copy[..n]).into_owned()
        };
        assert_eq!(copied(b"a\n\nbc", 64), "> a\n> \n> bc\n");
        assert_eq!(copied(b"", 64), "");
        let long = [b'x'; 3000];
        assert_eq!(copied(&long, 4096).len(), 3003);
        for space in 0..4 {
            assert!(copied(b"ab\n", space).len() <= space);
        }
    }
}
