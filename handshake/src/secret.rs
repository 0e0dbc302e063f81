//! The secret of a job, and the numbers that make each proof a new one.
//!
//! Invariant: the secret is printed by nothing.

use std::io;
use sys::random;

/// 128 bits that only the processes of one job know.
#[derive(Clone, PartialEq, Eq)]
pub struct JobSecret([u8; 16]);

impl JobSecret {
    /// Bytes of a secret.
    pub const BYTES: usize = 16;

    /// A secret that no other process can guess.
    ///
    /// # Errors
    /// That of the system.
    pub fn random() -> io::Result<JobSecret> {
        random_bytes().map(JobSecret)
    }

    /// The secret with these bytes.
    pub fn from_bytes(bytes: [u8; 16]) -> JobSecret {
        JobSecret(bytes)
    }

    /// Its bytes. They belong on channels that no other user can read.
    pub fn to_bytes(&self) -> [u8; 16] {
        self.0
    }
}

/// Shows nothing of the secret.
impl core::fmt::Debug for JobSecret {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("JobSecret")
    }
}

/// A random number for one handshake. It cannot be copied, and so is used once.
#[derive(Debug)]
pub struct Nonce(pub(crate) [u8; 16]);

impl Nonce {
    /// A number that no other process can guess.
    ///
    /// # Errors
    /// That of the system.
    pub fn random() -> io::Result<Nonce> {
        random_bytes().map(Nonce)
    }
}

fn random_bytes() -> io::Result<[u8; 16]> {
    let mut bytes = [0; 16];
    for half in bytes.chunks_exact_mut(8) {
        half.copy_from_slice(&random::number()?.to_ne_bytes());
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_random_and_never_shown() {
        let (one, two) = (JobSecret::random().unwrap(), JobSecret::random().unwrap());
        assert_ne!(one, two);
        assert_eq!(JobSecret::from_bytes(one.to_bytes()), one);
        assert_eq!(format!("{one:?}"), "JobSecret");
    }
}
