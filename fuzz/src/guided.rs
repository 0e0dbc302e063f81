//! Runs a target under libFuzzer, which chooses inputs by the branches that they reach.
//!
//! Called by `check` in builds of `ci/fuzz.sh`. Invariant: the process runs one target and does
//! not come back; its arguments for libFuzzer are the words of FUZZ_ARGS.

use super::FuzzTarget;
use core::ffi::{c_char, c_int};
use libfuzzer_sys as _;
use std::ffi::CString;
use std::panic;
use std::sync::OnceLock;

unsafe extern "C" {
    /// The driver of libFuzzer as a function.
    fn LLVMFuzzerRunDriver(
        count: *mut c_int,
        words: *mut *mut *mut c_char,
        target: extern "C" fn(*const u8, usize) -> c_int,
    ) -> c_int;
}

static TARGET: OnceLock<FuzzTarget> = OnceLock::new();

extern "C" fn one_input(bytes: *const u8, n: usize) -> c_int {
    let input = match n {
        0 => &[],
        // SAFETY: libFuzzer passes this many bytes, which stay during the call.
        _ => unsafe { core::slice::from_raw_parts(bytes, n) },
    };
    if let Some(target) = TARGET.get() {
        target(input);
    }
    0
}

/// libfuzzer-sys wants it for programs of its macro; here `one_input` is passed instead.
// SAFETY: the only function with this name.
#[unsafe(no_mangle)]
fn rust_fuzzer_test_input(_: &[u8]) -> i32 {
    0
}

/// Does not come back.
pub(crate) fn run(target: FuzzTarget) -> ! {
    let _ = TARGET.set(target);
    let message = panic::take_hook();
    panic::set_hook(Box::new(move |info| {
        message(info);
        // libFuzzer saves the input when the process aborts.
        std::process::abort();
    }));
    let args = std::env::var("FUZZ_ARGS").unwrap_or_default();
    // In a merge libFuzzer starts the first word again, with its own arguments after it.
    let program = std::env::var("FUZZ_PROGRAM").unwrap_or_default();
    let words = std::iter::once(program.as_str()).chain(args.split_ascii_whitespace());
    let words: Vec<CString> =
        words.map(|word| CString::new(word).expect("a word without NUL")).collect();
    let mut pointers: Vec<*mut c_char> =
        words.iter().map(|word| word.as_ptr().cast_mut()).chain([core::ptr::null_mut()]).collect();
    let mut count = words.len() as c_int;
    let mut first = pointers.as_mut_ptr();
    // SAFETY: this many C strings and a null pointer after them; all live until the call returns.
    let code = unsafe { LLVMFuzzerRunDriver(&mut count, &mut first, one_input) };
    std::process::exit(code)
}
