//! The debugging allocator of clients that were compiled with GASNET_DEBUGMALLOC.
//!
//! Called by the macros of gasnet_debugmalloc.h. `place` is where the client calls from, as
//! `file:line`.

use crate::tools::debug_malloc::{self, HeapStats};
use core::ffi::{CStr, c_char, c_int, c_void};
use std::borrow::Cow;

/// The text of `place`.
///
/// # Safety
/// It must be null or NUL-terminated.
unsafe fn text<'a>(place: *const c_char) -> Cow<'a, str> {
    if place.is_null() {
        return "an unknown place".into();
    }
    // SAFETY: not null, so a string: the macros of gasnet_debugmalloc.h pass a literal.
    unsafe { CStr::from_ptr(place) }.to_string_lossy()
}

/// Allocates memory that is checked: `gasnett_debug_malloc`. A failure ends the job.
///
/// - `size`: bytes.
/// - `place`: where the client calls from, as `file:line`, NUL-terminated; null if unknown.
/// - Returns the memory; the client frees it with `gasnett_debug_free`.
/// - Context: anywhere, before `gasnet_init` too.
///
/// # Safety
/// `place` must be null or NUL-terminated.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasneti_debug_malloc(size: usize, place: *const c_char) -> *mut c_void {
    debug_malloc::plan_first_report();
    // SAFETY: the macros of gasnet_debugmalloc.h pass a string literal, or null.
    debug_malloc::malloc(size, "gasnett_debug_malloc", &unsafe { text(place) })
}

/// Allocates zeroed memory that is checked: `gasnett_debug_calloc`. A failure ends the job.
///
/// - `n`, `size`: objects, and bytes of each.
/// - `place`: where the client calls from, as `file:line`, NUL-terminated; null if unknown.
/// - Returns the memory; the client frees it with `gasnett_debug_free`.
/// - Context: anywhere, before `gasnet_init` too.
///
/// # Safety
/// `place` must be null or NUL-terminated.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasneti_debug_calloc(
    n: usize,
    size: usize,
    place: *const c_char,
) -> *mut c_void {
    debug_malloc::plan_first_report();
    // SAFETY: the macros of gasnet_debugmalloc.h pass a string literal, or null.
    debug_malloc::calloc(n, size, "gasnett_debug_calloc", &unsafe { text(place) })
}

/// Changes the size of memory that is checked: `gasnett_debug_realloc`. A failure, or damage
/// around the memory, ends the job.
///
/// - `p`: what a function of this family returned, or null.
/// - `size`: new size, in bytes.
/// - `place`: where the client calls from, as `file:line`, NUL-terminated; null if unknown.
/// - Returns the memory, which may have moved.
/// - Context: anywhere, before `gasnet_init` too.
///
/// # Safety
/// `place` must be null or NUL-terminated; no other thread may use the object at `p` meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasneti_debug_realloc(
    p: *mut c_void,
    size: usize,
    place: *const c_char,
) -> *mut c_void {
    debug_malloc::plan_first_report();
    // SAFETY: the macros of gasnet_debugmalloc.h pass a string literal, or null.
    debug_malloc::realloc(p, size, "gasnett_debug_realloc", &unsafe { text(place) })
}

/// Frees memory that is checked: `gasnett_debug_free`. Damage around it ends the job.
///
/// - `p`: what a function of this family returned, or null.
/// - `place`: where the client calls from, as `file:line`, NUL-terminated; null if unknown.
/// - Context: anywhere, before `gasnet_init` too.
///
/// # Safety
/// `place` must be null or NUL-terminated; the object at `p` may not be used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasneti_debug_free(p: *mut c_void, place: *const c_char) {
    // SAFETY: the macros of gasnet_debugmalloc.h pass a string literal, or null.
    debug_malloc::free(p, "gasnett_debug_free", &unsafe { text(place) });
}

/// A copy of the first `most` bytes of a string, or of all if it has fewer.
///
/// # Safety
/// `string` must be NUL-terminated or have `most` bytes; `place` null or NUL-terminated.
unsafe fn copy(
    string: *const c_char,
    most: usize,
    function: &str,
    place: *const c_char,
) -> *mut c_char {
    debug_malloc::plan_first_report();
    // SAFETY: the bytes before `i` are not NUL, so the string goes on, within `most` bytes.
    let n = (0..most).take_while(|&i| unsafe { *string.add(i) } != 0).count();
    // SAFETY: the macros of gasnet_debugmalloc.h pass a string literal, or null.
    let new: *mut c_char = debug_malloc::malloc(n + 1, function, &unsafe { text(place) }).cast();
    // SAFETY: n bytes were counted, and n + 1 allocated.
    unsafe {
        core::ptr::copy_nonoverlapping(string, new, n);
        new.add(n).write(0);
    }
    new
}

/// Copies a string to memory that is checked: `gasnett_debug_strdup`.
///
/// - `string`: NUL-terminated.
/// - `place`: where the client calls from, as `file:line`, NUL-terminated; null if unknown.
/// - Returns the copy; the client frees it with `gasnett_debug_free`.
/// - Context: anywhere, before `gasnet_init` too.
///
/// # Safety
/// `string` must be NUL-terminated, `place` null or NUL-terminated.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasneti_debug_strdup(
    string: *const c_char,
    place: *const c_char,
) -> *mut c_char {
    // SAFETY: strdup demands a string, and so does its checked form.
    unsafe { copy(string, usize::MAX, "gasnett_debug_strdup", place) }
}

/// Copies the first bytes of a string to memory that is checked: `gasnett_debug_strndup`.
///
/// - `string`: NUL-terminated, or of at least `n` bytes.
/// - `n`: most bytes that are copied; a NUL follows.
/// - `place`: where the client calls from, as `file:line`, NUL-terminated; null if unknown.
/// - Returns the copy; the client frees it with `gasnett_debug_free`.
/// - Context: anywhere, before `gasnet_init` too.
///
/// # Safety
/// `string` must be NUL-terminated or have `n` bytes, `place` be null or NUL-terminated.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasneti_debug_strndup(
    string: *const c_char,
    n: usize,
    place: *const c_char,
) -> *mut c_char {
    // SAFETY: strndup demands a string or `n` bytes, and so does its checked form.
    unsafe { copy(string, n, "gasnett_debug_strndup", place) }
}

/// Checks memory for damage around it, which ends the job: `gasnett_debug_memcheck`.
///
/// - `p`: what a function of this family returned.
/// - `place`: where the client calls from, as `file:line`, NUL-terminated; null if unknown.
/// - Context: anywhere, before `gasnet_init` too.
///
/// # Safety
/// `place` must be null or NUL-terminated.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasneti_debug_memcheck(p: *mut c_void, place: *const c_char) {
    // SAFETY: the macros of gasnet_debugmalloc.h pass a string literal, or null.
    debug_malloc::check(p, &unsafe { text(place) });
}

/// Checks one of the objects that are allocated, another one in each call:
/// `gasnett_debug_memcheck_one`. Damage ends the job.
///
/// - `place`: where the client calls from, as `file:line`, NUL-terminated; null if unknown.
/// - Context: anywhere, before `gasnet_init` too.
///
/// # Safety
/// `place` must be null or NUL-terminated.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasneti_debug_memcheck_one(place: *const c_char) {
    // SAFETY: the macros of gasnet_debugmalloc.h pass a string literal, or null.
    debug_malloc::check_one(&unsafe { text(place) });
}

/// Checks all objects that are allocated: `gasnett_debug_memcheck_all`. Damage ends the job.
///
/// - `place`: where the client calls from, as `file:line`, NUL-terminated; null if unknown.
/// - Context: anywhere, before `gasnet_init` too.
///
/// # Safety
/// `place` must be null or NUL-terminated.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasneti_debug_memcheck_all(place: *const c_char) {
    // SAFETY: the macros of gasnet_debugmalloc.h pass a string literal, or null.
    debug_malloc::check_all(&unsafe { text(place) });
}

/// Reports the objects of the debug malloc services: live and freed objects, and their bytes.
///
/// - `stats`: where the numbers are stored.
/// - Returns 0.
/// - Context: anywhere; the library exports it, and the headers declare it for clients compiled
///   with `GASNET_DEBUGMALLOC` only.
///
/// # Safety
/// `stats` must be writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnett_getheapstats(stats: *mut HeapStats) -> c_int {
    // SAFETY: gasnet_tools.h demands a record that may be written.
    unsafe { stats.write(debug_malloc::stats()) };
    0
}
