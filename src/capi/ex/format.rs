//! Sets of GASNet-EX's constants as text: `gasnett_format_dt` and its like.
//!
//! Called by clients. Nothing is kept.

use crate::tools::constant_names::{DataTypes, Operations, TokenFields};
use core::ffi::{c_char, c_uint};

/// Writes a text and its final NUL, unless `buf` is null; returns their bytes.
///
/// # Safety
/// That many bytes at `buf` must be writable, if it is not null.
unsafe fn put(buf: *mut c_char, text: &str) -> usize {
    if !buf.is_null() {
        // SAFETY: as this function requires; the text is of Rust's memory.
        unsafe {
            buf.copy_from_nonoverlapping(text.as_ptr().cast(), text.len());
            buf.add(text.len()).write(0);
        }
    }
    text.len() + 1
}

/// Writes a set of types of data as text.
///
/// - `buf`: where the text goes; null for its length only.
/// - `dt`: the set, `GEX_DT_*`.
/// - Returns the bytes of the text with its final NUL.
/// - Context: anywhere.
///
/// # Safety
/// As many bytes at `buf` must be writable as the call returns, if it is not null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnett_format_dt(buf: *mut c_char, dt: u32) -> usize {
    // SAFETY: as this function requires.
    unsafe { put(buf, &DataTypes(dt).to_string()) }
}

/// Writes a set of operations as text.
///
/// - `buf`: where the text goes; null for its length only.
/// - `op`: the set, `GEX_OP_*`.
/// - Returns the bytes of the text with its final NUL.
/// - Context: anywhere.
///
/// # Safety
/// As many bytes at `buf` must be writable as the call returns, if it is not null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnett_format_op(buf: *mut c_char, op: u32) -> usize {
    // SAFETY: as this function requires.
    unsafe { put(buf, &Operations(op).to_string()) }
}

/// Writes a set of fields of a token as text.
///
/// - `buf`: where the text goes; null for its length only.
/// - `ti`: the set, `GEX_TI_*`.
/// - Returns the bytes of the text with its final NUL.
/// - Context: anywhere.
///
/// # Safety
/// As many bytes at `buf` must be writable as the call returns, if it is not null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnett_format_ti(buf: *mut c_char, ti: c_uint) -> usize {
    // SAFETY: as this function requires.
    unsafe { put(buf, &TokenFields(ti).to_string()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_as_text() {
        let mut buf = [1; 32];
        // SAFETY: the buffer has room.
        let n = unsafe { gasnett_format_ti(buf.as_mut_ptr(), 17) };
        assert_eq!(n, "GEX_TI_SRCRANK|GEX_TI_EP".len() + 1);
        assert_eq!((buf[n - 1], buf[n]), (0, 1));
    }
}
