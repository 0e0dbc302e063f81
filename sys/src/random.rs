//! Random numbers. Called by `boot`, for the names and cookies that keep foreign processes out
//! of a job.

use std::fs::File;
use std::io::{self, Read};

/// A number that no other process can guess.
///
/// # Errors
/// That of the system.
pub fn number() -> io::Result<u64> {
    let mut bytes = [0u8; 8];
    // SAFETY: a live buffer of the stated size; the system never returns only some of 8 bytes.
    let n = unsafe { libc::syscall(libc::SYS_getrandom, bytes.as_mut_ptr(), bytes.len(), 0) };
    if n != bytes.len() as libc::c_long {
        from_device(&mut bytes)?;
    }
    Ok(u64::from_ne_bytes(bytes))
}

/// Random bytes on Linux before 3.17, which has no call for them.
fn from_device(bytes: &mut [u8]) -> io::Result<()> {
    File::open("/dev/urandom")?.read_exact(bytes)
}

#[cfg(test)]
mod tests {
    #[test]
    fn numbers_differ() {
        assert_ne!(super::number().unwrap(), super::number().unwrap());
        let (mut one, mut two) = ([0; 8], [0; 8]);
        super::from_device(&mut one).and(super::from_device(&mut two)).unwrap();
        assert_ne!(one, two);
    }
}
