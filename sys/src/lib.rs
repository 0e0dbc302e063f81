//! The operating system: the only crate that calls it. `portals3` and `gasnet` call this crate.
//!
//! Nothing here knows of jobs or of GASNet. What a signal handler may call says so.

pub mod attach;
pub mod clock;
pub mod cpu;
pub mod futex;
pub mod helper;
pub mod hint;
pub mod library;
pub mod limits;
pub mod locks;
pub mod memory;
pub mod peer;
pub mod process;
pub mod signal;
pub mod socket;
pub mod stack;
pub mod stdout;
pub mod thread;

/// Writes all of `bytes` to standard error, ignoring failures; async-signal-safe.
pub fn write_stderr(bytes: &[u8]) {
    write_all(2, bytes);
}

/// Makes the file at `path` hold `bytes`, ignoring failures; async-signal-safe.
pub fn write_file(path: &core::ffi::CStr, bytes: &[u8]) {
    // SAFETY: a NUL-terminated path.
    let fd = unsafe {
        libc::open(
            path.as_ptr(),
            libc::O_WRONLY | libc::O_CREAT | libc::O_TRUNC | libc::O_CLOEXEC,
            0o644,
        )
    };
    if fd >= 0 {
        write_all(fd, bytes);
        // SAFETY: the descriptor was opened above.
        unsafe { libc::close(fd) };
    }
}

/// Opens the file at `path`, empty, for writes that each go to its end.
///
/// # Errors
/// That of the system.
pub fn open_for_lines(path: &core::ffi::CStr) -> std::io::Result<i32> {
    const FLAGS: i32 =
        libc::O_WRONLY | libc::O_CREAT | libc::O_TRUNC | libc::O_APPEND | libc::O_CLOEXEC;
    // SAFETY: a NUL-terminated path.
    let fd = unsafe { libc::open(path.as_ptr(), FLAGS, 0o644) };
    if fd >= 0 { Ok(fd) } else { Err(std::io::Error::last_os_error()) }
}

/// A file that text is written to piece by piece, ignoring failures; async-signal-safe, so it holds its buffer itself.
#[derive(Debug)]
pub struct TextFile {
    fd: i32,
    /// The descriptor stays open.
    lent: bool,
    len: usize,
    buf: [u8; 4096],
}

impl TextFile {
    /// Makes an empty file at `path`.
    pub fn create(path: &core::ffi::CStr) -> TextFile {
        // SAFETY: a NUL-terminated path.
        let fd = unsafe {
            libc::open(
                path.as_ptr(),
                libc::O_WRONLY | libc::O_CREAT | libc::O_TRUNC | libc::O_CLOEXEC,
                0o644,
            )
        };
        TextFile { fd, lent: false, len: 0, buf: [0; 4096] }
    }

    /// Text for a descriptor that stays open.
    pub fn stream(fd: i32) -> TextFile {
        TextFile { fd, lent: true, len: 0, buf: [0; 4096] }
    }

    fn flush(&mut self) {
        if self.fd >= 0 {
            write_all(self.fd, &self.buf[..self.len]);
        }
        self.len = 0;
    }
}

impl core::fmt::Write for TextFile {
    fn write_str(&mut self, text: &str) -> core::fmt::Result {
        for part in text.as_bytes().chunks(self.buf.len()) {
            if self.len + part.len() > self.buf.len() {
                self.flush();
            }
            self.buf[self.len..self.len + part.len()].copy_from_slice(part);
            self.len += part.len();
        }
        Ok(())
    }
}

impl Drop for TextFile {
    fn drop(&mut self) {
        self.flush();
        if self.fd >= 0 && !self.lent {
            // SAFETY: the descriptor was opened by `create`, and nobody else has it.
            unsafe { libc::close(self.fd) };
        }
    }
}

/// Writes all of `bytes`, ignoring failures; async-signal-safe.
pub fn write_all(fd: i32, bytes: &[u8]) {
    let mut rest = bytes;
    while !rest.is_empty() {
        // SAFETY: the pointer and length are those of a live slice.
        let n = unsafe { libc::write(fd, rest.as_ptr().cast(), rest.len()) };
        if n < 0 && errno() == libc::EINTR {
            continue;
        }
        if n <= 0 {
            return;
        }
        rest = &rest[n as usize..];
    }
}

/// Ends this process at once, without running exit handlers; async-signal-safe.
pub fn exit_now(code: i32) -> ! {
    // SAFETY: _exit may be called at any time.
    unsafe { libc::_exit(code) }
}

/// The error number of the last system call of this thread. Async-signal-safe.
#[inline]
pub fn errno() -> i32 {
    // SAFETY: the location is that of the calling thread and always valid.
    unsafe { *libc::__errno_location() }
}

/// Sets the error number of this thread. Async-signal-safe; signal handlers put back what they found.
#[inline]
pub fn set_errno(value: i32) {
    // SAFETY: the location is that of the calling thread and always valid.
    unsafe { *libc::__errno_location() = value }
}
