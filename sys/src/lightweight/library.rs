//! A system without shared libraries: in place of `library`.
//!
//! Called by the binding to a libportals, `process::signals` and `capi::client`. Invariant: the
//! program is one file, whose name it does not know.

/// Not known.
pub fn name_at(_address: usize) -> Option<String> {
    None
}

/// Not known.
pub fn file_at(_address: usize) -> Option<String> {
    None
}
