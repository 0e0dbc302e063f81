//! Inputs that are like those of a corpus: what `cargo test` runs besides the corpus.
//!
//! Used by `check`. Invariant: the seed and the name of the target determine all inputs.

/// Bytes that bounds are made of.
const BOUNDS: [u8; 8] = [0, 1, 0x7f, 0x80, 0xff, b'0', b'\n', b' '];

/// Changes inputs by chance.
pub(crate) struct Mutator(u64);

impl Mutator {
    pub(crate) fn new(seed: u64, name: &str) -> Mutator {
        // FNV-1a.
        let start = 0xcbf2_9ce4_8422_2325 ^ seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let step = |hash: u64, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        Mutator(name.bytes().fold(start, step) | 1)
    }

    /// A number below `bound`, 0 if that is 0; by xorshift.
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % bound.max(1) as u64) as usize
    }

    /// A part of an input, of at most 64 bytes.
    fn part<'a>(&mut self, input: &'a [u8]) -> &'a [u8] {
        let from = self.below(input.len());
        let most = (input.len() - from).min(64);
        &input[from..][..self.below(most + 1)]
    }

    /// One of these inputs, changed at one to four places.
    pub(crate) fn change(&mut self, inputs: &[&[u8]], most_bytes: usize) -> Vec<u8> {
        let mut input = inputs[self.below(inputs.len())].to_vec();
        for _ in 0..=self.below(4) {
            self.change_once(&mut input, inputs);
        }
        input.truncate(most_bytes);
        input
    }

    fn change_once(&mut self, input: &mut Vec<u8>, inputs: &[&[u8]]) {
        let (at, choice) = (self.below(input.len() + 1), self.below(8));
        let rest = input.len() - at;
        match choice {
            0 if rest != 0 => input[at] ^= 1 << self.below(8),
            1 if rest != 0 => input[at] = self.below(256) as u8,
            2 if rest != 0 => input[at] = BOUNDS[self.below(BOUNDS.len())],
            3 => {
                let n = rest.min([1, 2, 4, 8][self.below(4)]);
                let bound = BOUNDS[self.below(BOUNDS.len())];
                input[at..at + n].fill(bound);
            }
            4 => drop(input.drain(at..at + self.below(rest.min(64) + 1))),
            5 => input.truncate(at),
            // A part of this input again, or of another.
            6 => {
                let again = self.part(input).to_vec();
                input.splice(at..at, again);
            }
            _ => {
                let other = self.below(inputs.len());
                let part = self.part(inputs[other]);
                let over = self.below(2) * part.len().min(rest);
                input.splice(at..at + over, part.iter().copied());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_repeats_its_inputs() {
        let corpus = [&b"some words"[..], b"", b"\x01\x02\x03\x04\x05\x06\x07\x08"];
        let draw = |seed, name| {
            let mut mutator = Mutator::new(seed, name);
            (0..1000).map(|_| mutator.change(&corpus, 16)).collect::<Vec<_>>()
        };
        assert_eq!(draw(1, "a"), draw(1, "a"));
        assert_ne!(draw(1, "a"), draw(2, "a"));
        assert_ne!(draw(1, "a"), draw(1, "b"));
        assert!(draw(3, "c").iter().all(|input| input.len() <= 16));
        // Most are new.
        let mut inputs = draw(4, "d");
        inputs.sort();
        inputs.dedup();
        assert!(inputs.len() > 500, "{}", inputs.len());
    }
}
