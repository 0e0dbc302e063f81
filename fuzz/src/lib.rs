//! Runs a target, a function of bytes that another process or a user could have written, on many
//! inputs.
//!
//! Called by the tests whose names begin with `fuzz_`; each stands next to the code that it
//! checks. Under `cargo test` a target runs on its corpus, `fuzz/corpus/NAME/*`, and on inputs
//! changed by chance (SEED repeats them). Under `ci/fuzz.sh` libFuzzer runs it. Invariant: a
//! target returns for every input, unless the code under test is wrong: then it panics.

#[cfg(fuzzing)]
mod guided;
mod mutation;

use mutation::Mutator;
use std::panic::{self, AssertUnwindSafe};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// A function to run on any bytes.
pub type FuzzTarget = fn(&[u8]);

/// Longest input of a target.
const MOST_BYTES: usize = 4096;

/// One target takes no longer than this under `cargo test`, whatever the machine does.
const PATIENCE: Duration = Duration::from_secs(20);
/// In that time it takes one of this many inputs at least.
const LEAST_PART: u32 = 100;

/// Runs a target on its corpus, and on `changed` inputs that are changed ones of the corpus.
///
/// # Panics
/// If the target does, with the input. Put that input into the corpus of the target. If the target
/// is so slow that it was hardly tried.
pub fn check(name: &str, changed: u32, target: FuzzTarget) {
    #[cfg(fuzzing)]
    if std::env::var("FUZZ_TARGET").is_ok_and(|chosen| chosen == name) {
        guided::run(target);
    }
    let corpus = corpus(name);
    assert!(!corpus.is_empty(), "fuzz/corpus/{name} has no input");
    for (file, input) in &corpus {
        run(target, input, &|| format!("{name}: fuzz/corpus/{name}/{file}"));
    }
    let inputs: Vec<&[u8]> = corpus.iter().map(|(_, input)| &input[..]).collect();
    let seed = std::env::var("SEED").ok().and_then(|n| n.parse().ok()).unwrap_or(1);
    let mut mutator = Mutator::new(seed, name);
    let began = Instant::now();
    for number in 0..changed {
        let input = mutator.change(&inputs, MOST_BYTES);
        let which = || format!("{name}: changed input {number} of SEED={seed}");
        run(target, &input, &which);
        if began.elapsed() > PATIENCE {
            println!("{name}: {number} of {changed} changed inputs in {PATIENCE:?}");
            assert!(number >= changed / LEAST_PART, "{name} is too slow to be tried");
            break;
        }
    }
}

/// The inputs of a target, each with its file name, in the order of names.
fn corpus(name: &str) -> Vec<(String, Vec<u8>)> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("corpus").join(name);
    let mut all: Vec<_> = std::fs::read_dir(&folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|file| {
            let name = file.file_name().to_string_lossy().into_owned();
            let input = std::fs::read(file.path()).expect("an input can be read");
            (name, input)
        })
        .collect();
    all.sort();
    all
}

/// Runs a target on an input; a panic names the input.
fn run(target: FuzzTarget, input: &[u8], which: &dyn Fn() -> String) {
    // The input is handed over by reference, and the target keeps nothing.
    if let Err(cause) = panic::catch_unwind(AssertUnwindSafe(|| target(input))) {
        eprintln!("{} fails: b\"{}\"", which(), input.escape_ascii());
        panic::resume_unwind(cause);
    }
}

/// Reads words off an input: for targets that take numbers. An input that is used up gives zeros.
#[derive(Debug)]
pub struct InputReader<'a>(&'a [u8]);

impl<'a> InputReader<'a> {
    /// From the start of an input.
    pub fn new(input: &'a [u8]) -> InputReader<'a> {
        InputReader(input)
    }

    /// Whether all has been read.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The next byte.
    pub fn byte(&mut self) -> u8 {
        self.bytes(1).first().copied().unwrap_or(0)
    }

    /// The next word of 64 bits, little-endian.
    pub fn word(&mut self) -> u64 {
        let mut word = [0; 8];
        let bytes = self.bytes(8);
        word[..bytes.len()].copy_from_slice(bytes);
        u64::from_le_bytes(word)
    }

    /// The next word of 64 bits that one byte gives: a small number, a power of two, one less, or
    /// the greatest. A byte of 0xff is followed by the whole word.
    pub fn number(&mut self) -> u64 {
        match self.byte() {
            small @ 0..128 => small.into(),
            0x80 => u64::MAX,
            0xff => self.word(),
            near => (1u64 << (near >> 1 & 0x3f)).wrapping_sub(u64::from(near & 1)),
        }
    }

    /// The next `n` bytes, or what is left.
    pub fn bytes(&mut self, n: usize) -> &'a [u8] {
        let (bytes, rest) = self.0.split_at(n.min(self.0.len()));
        self.0 = rest;
        bytes
    }

    /// All that is left.
    pub fn rest(&mut self) -> &'a [u8] {
        self.bytes(usize::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[test]
    fn a_reader_gives_zeros_at_its_end() {
        let mut input = InputReader::new(&[7, 5, 0xff, 1, 2]);
        assert_eq!((input.byte(), input.number(), input.number()), (7, 5, 0x201));
        assert!(input.is_empty());
        assert_eq!((input.byte(), input.word(), input.number()), (0, 0, 0));
        let mut input = InputReader::new(&[0x80, 0xfe, 0x85]);
        assert_eq!((input.number(), input.number(), input.number()), (u64::MAX, 1 << 63, 3));
    }

    #[test]
    fn a_target_runs_on_its_corpus_and_on_changed_inputs() {
        static RUNS: AtomicU32 = AtomicU32::new(0);
        check("frame", 500, |_| {
            RUNS.fetch_add(1, Ordering::Relaxed);
        });
        assert_eq!(RUNS.load(Ordering::Relaxed) as usize, corpus("frame").len() + 500);
    }

    /// A target that fails names its input, and fails the test.
    #[test]
    fn a_failure_is_passed_on() {
        let failed = panic::catch_unwind(|| run(|_| panic!("wrong"), b"", &String::new));
        assert!(failed.is_err());
    }
}
