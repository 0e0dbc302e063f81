//! Random numbers. Called by `boot`, for the names and cookies that keep foreign processes out
//! of a job.

use std::io;

/// A number that no other process can guess.
///
/// # Errors
/// That of the system.
pub fn number() -> io::Result<u64> {
    let mut bytes = [0u8; 8];
    // SAFETY: a live buffer of the stated size; the system never returns only some of 8 bytes.
    match unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) } {
        8 => Ok(u64::from_ne_bytes(bytes)),
        _ => Err(io::Error::last_os_error()),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn numbers_differ() {
        assert_ne!(super::number().unwrap(), super::number().unwrap());
    }
}
