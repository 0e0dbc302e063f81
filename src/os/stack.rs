//! The call stack of this thread. Called by `tools`, possibly in a signal handler.

use core::ffi::c_int;

#[cfg(target_env = "gnu")]
mod imp {
    use core::ffi::{c_int, c_void};

    unsafe extern "C" {
        fn backtrace(buffer: *mut *mut c_void, size: c_int) -> c_int;
        fn backtrace_symbols_fd(buffer: *const *mut c_void, size: c_int, fd: c_int);
    }

    pub(super) fn print(fd: c_int) -> bool {
        let mut frames = [core::ptr::null_mut(); 64];
        // SAFETY: a live buffer of that many entries.
        let n = unsafe { backtrace(frames.as_mut_ptr(), frames.len() as c_int) };
        if n <= 0 {
            return false;
        }
        // SAFETY: the first n entries were filled by backtrace.
        unsafe { backtrace_symbols_fd(frames.as_ptr(), n, fd) };
        true
    }

    pub(super) fn prepare() {
        let mut frame = [core::ptr::null_mut(); 1];
        // SAFETY: a live buffer of one entry.
        unsafe { backtrace(frame.as_mut_ptr(), 1) };
    }
}

#[cfg(not(target_env = "gnu"))]
mod imp {
    use core::ffi::c_int;

    pub(super) fn print(_fd: c_int) -> bool {
        false
    }

    pub(super) fn prepare() {}
}

/// Writes the stack of the calling thread to a file, innermost call first; false if this system cannot. Safe in a
/// signal handler after [`prepare`].
pub fn print(fd: c_int) -> bool {
    imp::print(fd)
}

/// Loads what [`print()`] needs, which allocates.
pub fn prepare() {
    imp::prepare();
}
