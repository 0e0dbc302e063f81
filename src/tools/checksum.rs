//! Checksums and counts of zero bytes. Called by `capi::tools`; imports nothing.

/// The FNV-1a checksum of these bytes, 64 bits: the same on every machine.
pub fn checksum(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum, &b| {
        (sum ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

/// How many of these bytes are zero.
pub fn zeros(bytes: &[u8]) -> usize {
    bytes.iter().filter(|&&b| b == 0).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums() {
        assert_eq!(checksum(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(checksum(b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_ne!(checksum(b"ab"), checksum(b"ba"));
        assert_eq!(zeros(&[0, 1, 0, 0, 255]), 3);
    }
}
