//! The `gasnett_*` functions: what the headers do not do inline. None of them needs a job.
//!
//! Called by clients, before `gasnet_init` too.

pub mod debug;
pub mod environment;
pub mod locks;
pub mod system;

use core::ffi::{CStr, c_char, c_void};

/// The text of a C string; empty for null, with a mark in place of what is not UTF-8.
///
/// # Safety
/// `text` must be null or NUL-terminated.
unsafe fn text<'a>(text: *const c_char) -> std::borrow::Cow<'a, str> {
    if text.is_null() {
        return "".into();
    }
    // SAFETY: not null, so a string, as the callers of this function get it by the headers of
    // GASNet tools.
    unsafe { CStr::from_ptr(text) }.to_string_lossy()
}

/// A slice of C memory.
///
/// # Safety
/// `n` bytes at `p` must be readable if `n` is not 0.
unsafe fn memory<'a>(p: *const c_void, n: usize) -> &'a [u8] {
    if n == 0 {
        return &[];
    }
    // SAFETY: gasnet_tools.h demands `n` readable bytes.
    unsafe { core::slice::from_raw_parts(p.cast(), n) }
}
