//! The standard streams: descriptors 0 to 2, and C's buffered streams over them. Called by
//! `report`, `process::exit`, `boot`, `capi::tools` and the programs.
//!
//! Invariant: [`write_stderr`] uses no lock and no buffer; [`flush`] may wait for a stream's
//! lock.

use std::io::Write;

/// Writes all of `bytes` to standard error, ignoring failures. Async-signal-safe.
pub fn write_stderr(bytes: &[u8]) {
    crate::bounded_stderr::write(bytes);
}

/// Writes all of `text` to standard output. If that fails, for example on a full file
/// system, this reports it in the name of `tool`. Then it ends the process with exit code
/// 1.
pub fn write(tool: &str, text: &str) {
    let mut out = std::io::stdout().lock();
    if let Err(e) = out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        let text = format!(
            "*** {tool}: its standard output cannot be written: {e}\n***   Make room there, or \
             send it elsewhere.\n"
        );
        write_stderr(text.as_bytes());
        std::process::exit(1)
    }
}

unsafe extern "C" {
    #[cfg(feature = "hosted")]
    static mut stdin: *mut libc::FILE;
    static mut stdout: *mut libc::FILE;
    static mut stderr: *mut libc::FILE;
    /// Sets whether functions lock a stream; of <stdio_ext.h>.
    #[cfg(feature = "hosted")]
    fn __fsetlocking(stream: *mut libc::FILE, by: i32) -> i32;
}

/// Writes out all of C's output streams. Those of the standard come first, unless that would wait
/// for their reader: another stream may be locked by a thread that reads from it.
pub fn flush() {
    if !crate::bounded_stderr::is_reader_stuck() {
        // SAFETY: variables of the C library, which it has set.
        let standard = unsafe { [stdout, stderr] };
        for stream in standard {
            // SAFETY: a stream of the C library, or null, which means all.
            unsafe { libc::fflush(stream) };
        }
    }
    // SAFETY: null means all streams.
    unsafe { libc::fflush(core::ptr::null_mut()) };
}

/// As [`flush`], before this process ends. No thread that reads standard input is waited for.
pub fn flush_at_end() {
    #[cfg(feature = "hosted")]
    {
        /// Functions of the C library take no lock of the stream: `FSETLOCKING_BYCALLER`.
        const BY_CALLER: i32 = 2;
        // SAFETY: a variable of the C library, which it has set.
        let input = unsafe { stdin };
        // SAFETY: a stream of the C library. What another thread reads from it no longer counts,
        // and it has no output.
        unsafe { __fsetlocking(input, BY_CALLER) };
    }
    flush();
}

/// Writes out all of C's output streams, and makes descriptors 0 to 2 lead nowhere.
pub fn close() {
    flush();
    lead_nowhere(0..3);
}

/// Makes standard input read as empty.
pub fn null_stdin() {
    lead_nowhere(0..1);
}

/// Makes these descriptors lead to /dev/null.
pub(crate) fn lead_nowhere(standard: core::ops::Range<i32>) {
    let end = standard.end;
    // SAFETY: the path is NUL-terminated.
    let null = unsafe { libc::open(c"/dev/null".as_ptr(), libc::O_RDWR) };
    if null < 0 {
        return;
    }
    for fd in standard {
        // SAFETY: touches no memory; the standard descriptors belong to the whole process, and
        // the caller wants them replaced.
        unsafe { libc::dup2(null, fd) };
    }
    if null >= end {
        // SAFETY: opened above; nothing else uses it.
        unsafe { libc::close(null) };
    }
}

/// Makes this tool end quietly when the reader of its output is closed. Called first in `main`.
pub fn end_on_closed_pipe() {
    crate::signal::set_default(crate::signal::Signal::PIPE);
}
