//! Sets of GASNet-EX's constants as text: `gasnett_format_dt` and its like.
//!
//! Called by clients. Nothing is kept.

use core::ffi::{c_char, c_uint};

/// The names of bits; a bit without a name is written as a number.
type BitNames = &'static [(u32, &'static str)];

const TYPES: BitNames =
    &[(0, "I32"), (1, "U32"), (2, "I64"), (3, "U64"), (4, "FLT"), (5, "DBL"), (6, "USER")];

const OPERATIONS: BitNames = &[
    (0, "AND"),
    (1, "OR"),
    (2, "XOR"),
    (3, "ADD"),
    (4, "SUB"),
    (5, "MULT"),
    (6, "MIN"),
    (7, "MAX"),
    (8, "INC"),
    (9, "DEC"),
    (10, "SET"),
    (11, "CAS"),
    (15, "FAND"),
    (16, "FOR"),
    (17, "FXOR"),
    (18, "FADD"),
    (19, "FSUB"),
    (20, "FMULT"),
    (21, "FMIN"),
    (22, "FMAX"),
    (23, "FINC"),
    (24, "FDEC"),
    (25, "SWAP"),
    (26, "FCAS"),
    (27, "GET"),
    (30, "USER"),
    (31, "USER_NC"),
];

const TOKEN_FIELDS: BitNames =
    &[(0, "SRCRANK"), (1, "ENTRY"), (2, "IS_REQ"), (3, "IS_LONG"), (4, "EP")];

/// The set as names between bars; a single 0 for none.
fn text(prefix: &str, names: BitNames, set: u32) -> String {
    let name = |bit: u32| match names.iter().find(|(b, _)| *b == bit) {
        Some((_, name)) => format!("{prefix}{name}"),
        None => format!("{:#x}", 1u32 << bit),
    };
    let all: Vec<String> = (0..32).filter(|bit| set >> bit & 1 != 0).map(name).collect();
    if all.is_empty() { "0".to_string() } else { all.join("|") }
}

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
    unsafe { put(buf, &text("GEX_DT_", TYPES, dt)) }
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
    unsafe { put(buf, &text("GEX_OP_", OPERATIONS, op)) }
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
    unsafe { put(buf, &text("GEX_TI_", TOKEN_FIELDS, ti)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_as_text() {
        assert_eq!(text("GEX_DT_", TYPES, 0), "0");
        assert_eq!(text("GEX_OP_", OPERATIONS, 1 << 3 | 1 << 12), "GEX_OP_ADD|0x1000");
        let mut buf = [1; 32];
        // SAFETY: the buffer has room.
        let n = unsafe { gasnett_format_ti(buf.as_mut_ptr(), 17) };
        assert_eq!(n, "GEX_TI_SRCRANK|GEX_TI_EP".len() + 1);
        assert_eq!((buf[n - 1], buf[n]), (0, 1));
    }
}
