//! Numbers as text, and environment variables.
//!
//! Called by clients. Invariant: a variable that is looked up with a default is printed once if
//! GASNET_VERBOSEENV requests it.

use super::text;
use crate::env::number::NumberError;
use crate::env::{self, number};
use crate::report;
use crate::tools::client_variables;
use core::ffi::{CStr, c_char, c_int};

/// Writes a number as text that `gasnett_parse_int` reads back exactly.
///
/// - `value`: the number.
/// - `buf`, `bufsz`: where the text goes; at most `bufsz` bytes are written, the final NUL
///   included.
/// - `is_mem`: not 0 if the number is of bytes: the text has a suffix such as MB where that is
///   exact.
/// - Returns `buf`.
/// - Context: anywhere, before `gasnet_init` too.
///
/// # Safety
/// `bufsz` bytes at `buf` must be writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnett_format_number(
    value: i64,
    buf: *mut c_char,
    bufsz: usize,
    is_mem: c_int,
) -> *mut c_char {
    let s = number::format(value, is_mem != 0);
    let n = s.len().min(bufsz.saturating_sub(1));
    if bufsz != 0 {
        // SAFETY: n + 1 <= bufsz, and gasnet_tools.h demands as many writable bytes.
        unsafe {
            core::ptr::copy_nonoverlapping(s.as_ptr(), buf.cast(), n);
            *buf.add(n) = 0;
        }
    }
    buf
}

/// Reads an integer: decimal or hexadecimal (0x), with a sign, a fraction or a suffix B, KB,
/// MB, GB or TB. A text that is no number, or too large a one,
/// ends the job.
///
/// - `string`: the text, NUL-terminated.
/// - `mult`: what a number without suffix is multiplied by; 0 if suffixes are not allowed.
/// - Returns the number.
/// - Context: anywhere, before `gasnet_init` too.
///
/// # Safety
/// `string` must be NUL-terminated.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnett_parse_int(string: *const c_char, mult: u64) -> i64 {
    // SAFETY: gasnet_tools.h demands a string.
    let t = unsafe { text(string) };
    number::read(&t, mult).unwrap_or_else(|e| match e {
        NumberError::Malformed => report::fatal(
            format_args!("gasnett_parse_int(): '{t}' is not a number"),
            format_args!(
                "Give a number{}.",
                if mult == 0 { "" } else { " with or without a suffix B, KB, MB, GB or TB" }
            ),
        ),
        NumberError::TooLarge => report::fatal(
            format_args!("gasnett_parse_int(): '{t}' does not fit into 64 bits"),
            format_args!("Give a number from {} to {}.", i64::MIN, i64::MAX),
        ),
    })
}

/// Sets an environment variable of this process.
///
/// - `key`: name of the variable, NUL-terminated.
/// - `value`: its value, NUL-terminated; it is copied.
/// - Context: anywhere, while no other thread uses the environment.
///
/// # Safety
/// Both must be NUL-terminated, and no other thread may use the environment.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnett_setenv(key: *const c_char, value: *const c_char) {
    // SAFETY: gasnet_tools.h demands strings, and that no other thread uses the environment
    // meanwhile.
    unsafe { sys::environment::set(CStr::from_ptr(key), CStr::from_ptr(value)) };
}

/// Removes an environment variable of this process.
///
/// - `key`: name of the variable, NUL-terminated.
/// - Context: anywhere, while no other thread uses the environment.
///
/// # Safety
/// `key` must be NUL-terminated, and no other thread may use the environment.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnett_unsetenv(key: *const c_char) {
    // SAFETY: gasnet_tools.h demands a string, and that no other thread uses the environment
    // meanwhile.
    unsafe { sys::environment::unset(CStr::from_ptr(key)) };
}

/// Returns the value of an environment variable: that of the job's start or, without a job, of
/// this process.
///
/// - `key`: name of the variable, NUL-terminated.
/// - Returns the value, or null if the variable is not set. The string is the library's.
/// - Context: anywhere, before `gasnet_init` too.
///
/// # Safety
/// `key` must be NUL-terminated.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnett_getenv(key: *const c_char) -> *mut c_char {
    // SAFETY: gasnet_tools.h demands the name of a variable as a string.
    env::raw(unsafe { CStr::from_ptr(key) })
}

/// Returns the value of an environment variable, or a default. Prints it if GASNET_VERBOSEENV
/// requests it.
///
/// - `key`: name of the variable, NUL-terminated.
/// - `dflt`: the default, NUL-terminated or null.
/// - Returns the value, which is the library's, or `dflt` itself.
/// - Context: anywhere, before `gasnet_init` too.
///
/// # Safety
/// Both must be NUL-terminated; `dflt` may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnett_getenv_withdefault(
    key: *const c_char,
    dflt: *const c_char,
) -> *mut c_char {
    // SAFETY: gasnet_tools.h demands the name of a variable as a string.
    let (set, k) = unsafe { (env::raw(CStr::from_ptr(key)), text(key)) };
    let value = if set.is_null() { dflt.cast_mut() } else { set };
    // SAFETY: NUL-terminated, or null, as both are.
    let shown = (!value.is_null()).then(|| unsafe { text(value) });
    client_variables::display(&k, shown.as_deref(), set.is_null());
    value
}

/// Reads an environment variable that is Y, YES or 1, or N, NO or 0, in either case. Another
/// value ends the job.
///
/// - `key`: name of the variable, NUL-terminated.
/// - `dflt`: what counts if it is not set.
/// - Returns 1 or 0.
/// - Context: anywhere, before `gasnet_init` too.
///
/// # Safety
/// `key` must be NUL-terminated.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnett_getenv_yesno_withdefault(
    key: *const c_char,
    dflt: c_int,
) -> c_int {
    // SAFETY: gasnet_tools.h demands the name of a variable as a string.
    c_int::from(client_variables::yes(&unsafe { text(key) }, dflt != 0))
}

/// Reads an environment variable that is an integer, as `gasnett_parse_int`. A value that is
/// none ends the job.
///
/// - `key`: name of the variable, NUL-terminated.
/// - `dflt`: what counts if it is not set.
/// - `mult`: what a number without suffix is multiplied by; 0 if suffixes are not allowed.
/// - Returns the number.
/// - Context: anywhere, before `gasnet_init` too.
///
/// # Safety
/// `key` must be NUL-terminated.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnett_getenv_int_withdefault(
    key: *const c_char,
    dflt: i64,
    mult: u64,
) -> i64 {
    // SAFETY: gasnet_tools.h demands the name of a variable as a string.
    client_variables::int(&unsafe { text(key) }, dflt, mult)
}

/// Reads an environment variable that is a number with or without a fraction, or a quotient
/// a/b. A value that is none ends the job.
///
/// - `key`: name of the variable, NUL-terminated.
/// - `dflt`: what counts if it is not set.
/// - Returns the number.
/// - Context: anywhere, before `gasnet_init` too.
///
/// # Safety
/// `key` must be NUL-terminated.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnett_getenv_dbl_withdefault(key: *const c_char, dflt: f64) -> f64 {
    // SAFETY: gasnet_tools.h demands the name of a variable as a string.
    client_variables::float(&unsafe { text(key) }, dflt)
}

/// Returns 1 if this process prints the variables that are looked up (GASNET_VERBOSEENV), else
/// 0.
///
/// - Context: anywhere, before `gasnet_init` too.
#[unsafe(no_mangle)]
pub extern "C" fn gasnett_verboseenv() -> c_int {
    c_int::from(client_variables::verbose())
}

/// Prints an integer variable if GASNET_VERBOSEENV requests it; each variable once.
///
/// - `key`: name of the variable, NUL-terminated.
/// - `value`: its value.
/// - `is_dflt`: not 0 if the value is the default.
/// - `is_mem`: not 0 if it is a number of bytes.
/// - Context: anywhere, before `gasnet_init` too.
///
/// # Safety
/// `key` must be NUL-terminated.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnett_envint_display(
    key: *const c_char,
    value: i64,
    is_dflt: c_int,
    is_mem: c_int,
) {
    // SAFETY: gasnet_tools.h demands the name of a variable as a string.
    client_variables::display(
        &unsafe { text(key) },
        Some(&number::format(value, is_mem != 0)),
        is_dflt != 0,
    );
}

/// Prints a variable if GASNET_VERBOSEENV requests it; each variable once.
///
/// - `key`: name of the variable, NUL-terminated.
/// - `value`: its value, NUL-terminated; null if it has none.
/// - `is_dflt`: not 0 if the value is the default.
/// - Context: anywhere, before `gasnet_init` too.
///
/// # Safety
/// Both must be NUL-terminated; `value` may be null.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnett_envstr_display(
    key: *const c_char,
    value: *const c_char,
    is_dflt: c_int,
) {
    // SAFETY: gasnet_tools.h demands strings; the value may be null.
    let (key, shown) = unsafe { (text(key), (!value.is_null()).then(|| text(value))) };
    client_variables::display(&key, shown.as_deref(), is_dflt != 0);
}

/// Prints a variable that is a number if GASNET_VERBOSEENV requests it; each variable once.
///
/// - `key`: name of the variable, NUL-terminated.
/// - `value`: its value.
/// - `is_dflt`: not 0 if the value is the default.
/// - Context: anywhere, before `gasnet_init` too.
///
/// # Safety
/// `key` must be NUL-terminated.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnett_envdbl_display(key: *const c_char, value: f64, is_dflt: c_int) {
    // SAFETY: gasnet_tools.h demands the name of a variable as a string.
    client_variables::display(&unsafe { text(key) }, Some(&value.to_string()), is_dflt != 0);
}
