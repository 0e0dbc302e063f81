//! Text that a function or a program writes to a descriptor, kept in memory.
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

/// A place for a text.
#[derive(Debug)]
pub struct Capture {
    file: MemFd,
    text: Mapping,
    is_used: AtomicBool,
}

impl Capture {
    /// # Errors
    /// There is no memory or no descriptor.
    pub fn new() -> io::Result<Capture> {
        let file = MemFd::create(c"gasnet-text")?;
        file.set_len(BYTES as u64)?;
        let text = file.map(0, BYTES)?;
        Ok(Capture { file, text, is_used: AtomicBool::new(false) })
    }

    /// Has `write` write to a descriptor, then hands its result and the text to `then`; the text
    /// is cut off after 256 KB. `None` if another thread uses the capture. Async-signal-safe.
    pub fn with<T>(
        &self,
        write: impl FnOnce(c_int) -> bool,
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
        let result = then(done, &text[..length]);
        self.is_used.store(false, Ordering::Release);
        Some(result)
    }
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
            let got =
                capture.with(write, |done, t| (done, String::from_utf8_lossy(t).into_owned()));
            assert_eq!(got, Some((true, text.to_string())));
        }
        let nested = capture.with(|_| capture.with(|_| true, |_, _| ()).is_none(), |none, _| none);
        assert_eq!(nested, Some(true));
    }
}
