//! One step of the checksums of words that other processes can overwrite.
//!
//! Called by the networks of `portals3` (frames) and by the extended layer (messages of barriers
//! and collectives). Invariant: a sum depends on every word and on their order. It finds words
//! that were overwritten by mistake, not those that were forged.

/// The sum after one more word.
#[inline(always)]
pub fn add(sum: u64, word: u64) -> u64 {
    (sum.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[cfg(test)]
mod tests {
    use super::add;

    #[test]
    fn a_sum_depends_on_words_and_order() {
        let sum = |words: &[u64]| words.iter().fold(0, |sum, &word| add(sum, word));
        let all = [sum(&[1, 2]), sum(&[2, 1]), sum(&[1, 2, 0]), sum(&[1, 2 | 1 << 63])];
        for (i, a) in all.iter().enumerate() {
            assert!(all[i + 1..].iter().all(|b| a != b), "{all:x?}");
        }
    }
}
