//! Writes to standard error where no process supervises others: nothing bounds them.

/// Writes all of `bytes`, ignoring failures. Async-signal-safe.
pub(crate) fn write(bytes: &[u8]) {
    crate::file::write_all(2, bytes);
}

/// Whether standard output leads to a reader that takes nothing now: no reader is known here.
pub fn is_output_stuck() -> bool {
    false
}

/// The same of standard error.
pub fn is_stuck() -> bool {
    false
}
