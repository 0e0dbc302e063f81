//! Writing files and descriptors, mostly from signal handlers or at exit. Called by `trace`,
//! `tools::debug_malloc`, `runtime::counters` and `boot::passed_stream`.
//!
//! The async-signal-safe functions ignore failures, because no caller could report them.

use crate::descriptor;
use crate::signal::{self, Signal, SignalSet};
use core::ffi::CStr;
use core::fmt;
use core::sync::atomic::AtomicU8;
use std::io;
use std::os::fd::OwnedFd;

/// Opens the file at `path` for writes that each go to its end; `more` are flags of `open`. A
/// negative number on failure. Async-signal-safe.
fn append(path: &CStr, more: i32) -> i32 {
    let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_APPEND | libc::O_CLOEXEC | more;
    // SAFETY: the path is NUL-terminated.
    let fd = unsafe { libc::open(path.as_ptr(), flags, 0o644) };
    // SAFETY: the descriptor was just opened, so nothing else owns it.
    unsafe { descriptor::above_standard(fd) }
}

/// Why the system has not taken all of a text. Shown as the words of the system; showing it is
/// async-signal-safe, unlike that of [`io::Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteError(i32);

impl WriteError {
    /// That of the call that has just failed.
    fn last() -> WriteError {
        WriteError(crate::errno())
    }

    /// Whether there is no space left for the file.
    pub fn is_full(self) -> bool {
        matches!(self.0, libc::ENOSPC | libc::EDQUOT)
    }
}

impl fmt::Display for WriteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self.0 {
            libc::EBADF => "Bad file descriptor",
            libc::EDQUOT => "Disk quota exceeded",
            libc::EFBIG => "File too large",
            libc::EINVAL => "Invalid argument",
            libc::EIO => "Input/output error",
            libc::ENOSPC => "No space left on device",
            libc::EPERM => "Operation not permitted",
            libc::EPIPE => "Broken pipe",
            libc::EROFS => "Read-only file system",
            libc::ESTALE => "Stale file handle",
            number => return write!(f, "error {number} of the system"),
        };
        f.write_str(text)
    }
}

/// Writes all of `bytes` to a descriptor, ignoring failures. Async-signal-safe.
pub fn write_all(fd: i32, bytes: &[u8]) {
    let _ = write_from(fd, bytes.as_ptr(), bytes.len());
}

/// As [`write_all`].
///
/// # Errors
/// That of the system: the rest was not written.
pub fn write_line(fd: i32, line: &[u8]) -> Result<(), WriteError> {
    write_from(fd, line.as_ptr(), line.len())
}

/// As [`write_all`], for bytes that other threads may change meanwhile.
///
/// # Errors
/// That of the system: the rest was not written.
pub fn write_all_atomic(fd: i32, bytes: &[AtomicU8]) -> Result<(), WriteError> {
    write_from(fd, bytes.as_ptr().cast(), bytes.len())
}

/// Beyond the limit of files (`ulimit -f`) the kernel also sends a signal, which would end the
/// process: it is discarded.
fn write_from(fd: i32, at: *const u8, bytes: usize) -> Result<(), WriteError> {
    let mask = signal::block(&SignalSet::of(&[Signal::XFSZ]));
    let written = write_each(fd, at, bytes);
    if written == Err(WriteError(libc::EFBIG)) {
        signal::discard(Signal::XFSZ);
    }
    signal::set_mask(&mask);
    written
}

fn write_each(fd: i32, at: *const u8, bytes: usize) -> Result<(), WriteError> {
    let mut done = 0;
    while done < bytes {
        // SAFETY: the kernel only reads the memory, and refuses what this process may not read.
        let n = unsafe { libc::write(fd, at.wrapping_add(done).cast(), bytes - done) };
        if n < 0 && crate::errno() == libc::EINTR {
            continue;
        }
        // Another process may have made the open file nonblocking.
        if n < 0 && crate::errno() == libc::EAGAIN {
            crate::clock::sleep_ns(1_000_000);
            continue;
        }
        match n {
            0 => return Err(WriteError(libc::EIO)),
            ..0 => return Err(WriteError::last()),
            _ => done += n as usize,
        }
    }
    Ok(())
}

/// Opens the file at `path`, empty, for writes that each go to its end.
///
/// # Errors
/// That of the system.
pub fn open_for_lines(path: &CStr) -> io::Result<i32> {
    match append(path, libc::O_TRUNC) {
        fd if fd >= 0 => Ok(fd),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Makes the file at `path` empty if there is one. Opens nothing: the reader of a pipe would see
/// its end.
pub fn empty(path: &CStr) {
    // SAFETY: the path is NUL-terminated.
    let _ = unsafe { libc::truncate(path.as_ptr(), 0) };
}

/// Whether a descriptor leads to a regular file: a signal does not interrupt a write to it.
pub fn is_regular(fd: i32) -> bool {
    descriptor::status(fd).is_ok_and(|s| s.st_mode & libc::S_IFMT == libc::S_IFREG)
}

/// Makes a pipe with this name and opens it for reading, without waiting for a writer. Reads do
/// not wait either.
///
/// # Errors
/// That of the system; the name may exist.
pub fn read_new_pipe(path: &CStr) -> io::Result<OwnedFd> {
    // SAFETY: the path is NUL-terminated.
    if unsafe { libc::mkfifo(path.as_ptr(), 0o600) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let flags = libc::O_RDONLY | libc::O_NONBLOCK | libc::O_CLOEXEC;
    // SAFETY: the path is NUL-terminated.
    let fd = unsafe { libc::open(path.as_ptr(), flags) };
    // SAFETY: the descriptor was just opened, so nothing else owns it.
    unsafe { descriptor::opened(fd) }
}

/// A file that text is written to piece by piece, ignoring failures. Several processes may share
/// it: each write has whole lines. Async-signal-safe: it holds its buffer itself.
#[derive(Debug)]
pub struct TextFile {
    fd: i32,
    /// The descriptor stays open when this is dropped.
    borrowed: bool,
    /// Why the file was not made, or some of the text not written.
    error: Option<WriteError>,
    len: usize,
    buf: [u8; 4096],
}

impl TextFile {
    /// Text for the end of the file at `path`, which is made if there is none.
    pub fn append(path: &CStr) -> TextFile {
        let fd = append(path, 0);
        let error = (fd < 0).then(WriteError::last);
        TextFile { fd, borrowed: false, error, len: 0, buf: [0; 4096] }
    }

    /// Whether there is a file to write to.
    pub fn is_open(&self) -> bool {
        self.fd >= 0
    }

    /// Text for a descriptor that stays open.
    pub fn stream(fd: i32) -> TextFile {
        TextFile { fd, borrowed: true, error: None, len: 0, buf: [0; 4096] }
    }

    /// Writes out all text so far.
    ///
    /// # Errors
    /// That of the system: the file was not made, or some of the text was not written.
    pub fn finish(&mut self) -> Result<(), WriteError> {
        self.flush(self.len);
        self.error.map_or(Ok(()), Err)
    }

    /// Writes out the first `n` bytes of the buffer.
    fn flush(&mut self, n: usize) {
        if self.fd >= 0 {
            let written = write_from(self.fd, self.buf.as_ptr(), n);
            self.error = self.error.or(written.err());
        }
        self.buf.copy_within(n..self.len, 0);
        self.len -= n;
    }

    /// Writes out the whole lines of the buffer; all of it if there is none.
    fn flush_lines(&mut self) {
        let last = self.buf[..self.len].iter().rposition(|&byte| byte == b'\n');
        self.flush(last.map_or(self.len, |last| last + 1));
    }
}

impl core::fmt::Write for TextFile {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        for part in text.as_bytes().chunks(self.buf.len()) {
            while self.len + part.len() > self.buf.len() {
                self.flush_lines();
            }
            self.buf[self.len..self.len + part.len()].copy_from_slice(part);
            self.len += part.len();
        }
        Ok(())
    }
}

impl Drop for TextFile {
    fn drop(&mut self) {
        self.flush(self.len);
        if self.fd >= 0 && !self.borrowed {
            // SAFETY: `append` opened the descriptor, and nothing else uses it.
            unsafe { libc::close(self.fd) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::fd::{AsFd, AsRawFd};

    #[test]
    fn errors_have_the_words_of_the_system() {
        use core::fmt::Write;
        let error = |path: &CStr| {
            let mut file = TextFile::append(path);
            let _ = file.write_str("text");
            file.finish().expect_err("it cannot be written")
        };
        let (full, none) = (error(c"/dev/full"), error(c"/nowhere/file"));
        assert_eq!((full.is_full(), none.is_full()), (true, false));
        assert_eq!(full.to_string(), "No space left on device");
        assert_eq!(none.to_string(), format!("error {} of the system", libc::ENOENT));
        // Open for reading alone.
        let file = std::fs::File::open("/dev/null").expect("a file");
        let refused = write_from(file.as_raw_fd(), b"x".as_ptr(), 1).map_err(|e| e.to_string());
        assert_eq!(refused, Err("Bad file descriptor".to_string()));
    }

    /// Another writer appends between the writes of a text that is longer than the buffer.
    #[test]
    fn writers_that_share_a_file_keep_their_lines() {
        use core::fmt::Write;
        let name = format!("gasnet-lines-of-two-{}", std::process::id());
        let name = std::env::temp_dir().join(name).display().to_string();
        let path = std::ffi::CString::new(name.as_str()).expect("a name");
        let mut files = [TextFile::append(&path), TextFile::append(&path)];
        for i in 0..3000 {
            writeln!(files[i % 2], "line {i} of this file").expect("text");
        }
        drop(files);
        let text = std::fs::read_to_string(&name).expect("a file");
        let mut lines: Vec<u32> = text
            .lines()
            .map(|l| l.strip_prefix("line ").and_then(|l| l.strip_suffix(" of this file")))
            .map(|number| number.and_then(|n| n.parse().ok()).expect("a whole line"))
            .collect();
        lines.sort_unstable();
        assert_eq!(lines, (0..3000).collect::<Vec<_>>());
        empty(&path);
        assert_eq!(std::fs::read(&name).expect("a file"), b"");
        std::fs::remove_file(&name).expect("a file");
        empty(&path);
        assert!(std::fs::read(&name).is_err());
    }

    #[test]
    fn nonblocking_output_is_not_lost() {
        let (from, to) = crate::descriptor::pipe().expect("a pipe");
        crate::socket::set_nonblocking(to.as_fd()).expect("a flag");
        let reader = std::thread::spawn(move || {
            crate::clock::sleep_ns(20_000_000);
            let mut bytes = Vec::new();
            std::fs::File::from(from).read_to_end(&mut bytes).map(|_| bytes)
        });
        // More than a pipe holds.
        let bytes: Vec<u8> = (0..300_000u32).map(|i| i as u8).collect();
        write_all(to.as_raw_fd(), &bytes);
        drop(to);
        assert_eq!(reader.join().expect("no panic").expect("a pipe"), bytes);
    }
}
