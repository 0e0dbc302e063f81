//! The tag that proves a frame to come from a process of the job, where there is no connection
//! that has proved it.
//!
//! Used by networks without connections. Invariant: the key differs from all other uses of the
//! secret, and is printed by nothing.

use core::hash::Hasher;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use siphasher::sip::SipHasher24;

use crate::secret::JobSecret;

/// Makes and checks tags: SipHash-2-4, with a key that HMAC-SHA256 derives from the secret.
#[derive(Clone)]
pub struct FrameKey(SipHasher24);

impl FrameKey {
    /// The key of a job.
    pub fn new(secret: &JobSecret) -> FrameKey {
        let mut hmac = match Hmac::<Sha256>::new_from_slice(&secret.to_bytes()) {
            Ok(hmac) => hmac,
            Err(_) => unreachable!("HMAC takes keys of any length"),
        };
        hmac.update(b"frame key");
        let digest = hmac.finalize().into_bytes();
        let mut key = [0; 16];
        key.copy_from_slice(&digest[..16]);
        FrameKey(SipHasher24::new_with_key(&key))
    }

    /// The tag of these parts, one after the other. The caller sees to it that other parts have
    /// other bytes.
    pub fn tag(&self, parts: &[&[u8]]) -> u64 {
        let mut hasher = self.0;
        for part in parts {
            hasher.write(part);
        }
        hasher.finish()
    }
}

/// Shows nothing of the key.
impl core::fmt::Debug for FrameKey {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("FrameKey")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tag_depends_on_each_bit_and_on_the_secret() {
        let key = FrameKey::new(&JobSecret::from_bytes([7; 16]));
        let message: Vec<u8> = (0..100).collect();
        let tag = key.tag(&[&message]);
        assert_eq!(key.tag(&[&message[..40], &message[40..]]), tag);
        for bit in 0..800 {
            let mut other = message.clone();
            other[bit / 8] ^= 1 << (bit % 8);
            assert_ne!(key.tag(&[&other]), tag);
        }
        assert_ne!(FrameKey::new(&JobSecret::from_bytes([8; 16])).tag(&[&message]), tag);
        assert_eq!(format!("{key:?}"), "FrameKey");
    }
}
