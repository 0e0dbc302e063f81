//! Writes to standard error where no process supervises others: nothing bounds them.

/// Writes all of `bytes`, ignoring failures. Async-signal-safe.
pub(crate) fn write(bytes: &[u8]) {
    crate::file::write_all(2, bytes);
}

/// Whether standard output or standard error leads to a reader that takes nothing now: no reader
/// is known here.
pub fn has_slow_reader() -> bool {
    false
}
