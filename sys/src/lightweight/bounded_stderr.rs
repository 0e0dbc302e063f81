//! Writes to standard error where no process supervises others: nothing bounds them.

/// Writes all of `bytes`, ignoring failures. Async-signal-safe.
pub(crate) fn write(bytes: &[u8]) {
    crate::file::write_all(2, bytes);
}

/// Whether the reader of standard output or of standard error takes nothing now: none is known
/// here.
pub fn is_reader_stuck() -> bool {
    false
}

/// Whether that of standard error takes nothing.
pub fn is_stuck() -> bool {
    false
}
