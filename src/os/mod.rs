//! The only room that talks to the operating system.

/// Writes all of `bytes` to standard error, ignoring failures; async-signal-safe.
pub fn write_stderr(bytes: &[u8]) {
    let mut rest = bytes;
    while !rest.is_empty() {
        // SAFETY: the pointer and length are those of a live slice.
        let n = unsafe { libc::write(2, rest.as_ptr().cast(), rest.len()) };
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
