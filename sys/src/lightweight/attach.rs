//! A system that cannot say whether memory may be read, nor check an access: in place of `attach`.
//!
//! Called by `trace`, `client_memory` and the conduit. Invariant: [`peek`] touches no memory; that
//! of other processes is never reached.

/// Copies nothing: 0.
pub fn peek(_from: *const u8, _to: &mut [u8]) -> usize {
    0
}

/// Why bytes could not be copied; of this process all can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttachFailure {
    /// They belong to another process.
    Process,
}

/// Copies `length` bytes from address `from` of this process to `to`.
///
/// # Errors
/// `pid` is another process.
///
/// # Safety
/// Both must be valid for `length` bytes.
pub unsafe fn read(pid: u32, from: u64, to: *mut u8, length: usize) -> Result<(), AttachFailure> {
    if pid != crate::process::pid() {
        return Err(AttachFailure::Process);
    }
    let from = core::ptr::with_exposed_provenance::<u8>(from as usize);
    // SAFETY: both are valid for `length` bytes (`# Safety`).
    unsafe { core::ptr::copy(from, to, length) };
    Ok(())
}

/// Copies `length` bytes at `from` to address `to` of this process.
///
/// # Errors
/// `pid` is another process.
///
/// # Safety
/// As [`read`].
pub unsafe fn write(
    pid: u32,
    to: u64,
    from: *const u8,
    length: usize,
) -> Result<(), AttachFailure> {
    // SAFETY: both are valid for `length` bytes (`# Safety`).
    unsafe {
        read(pid, from.addr() as u64, core::ptr::with_exposed_provenance_mut(to as usize), length)
    }
}

/// Why the memory of other processes is not reached.
pub fn denial() -> String {
    "this system has no such call".into()
}

/// Whether this process may read or write these bytes: not known here, so assumed.
pub fn is_accessible(_at: u64, _length: u64, _write: bool) -> bool {
    true
}
