//! A system whose processes start no others: in place of `helper`.
//!
//! Called by `tools::backtrace`. Invariant: no program may be run.

use core::ffi::{CStr, c_int};
use std::ffi::CString;

/// No.
pub fn may_run(_file: &CStr) -> bool {
    false
}

/// A program that cannot be run.
#[derive(Debug)]
pub struct HelperProgram;

impl HelperProgram {
    /// The program at `path`.
    pub fn new(_path: CString, _args: Vec<CString>) -> HelperProgram {
        HelperProgram
    }

    /// False: it was not run.
    pub fn run(&self, _fd: c_int, _longest_ns: u64) -> bool {
        false
    }
}
