//! Random numbers that a seed repeats. Imports nothing of the simulator.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A sequence of random numbers; clones share it.
#[derive(Clone)]
pub(crate) struct Dice(Arc<AtomicU64>);

impl Dice {
    pub(crate) fn new(seed: u64) -> Dice {
        let mixed = (seed ^ seed >> 29).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        Dice(Arc::new(AtomicU64::new(mixed ^ mixed >> 32 | 1)))
    }

    /// A number below `n`, which is not 0 (Marsaglia's xorshift).
    pub(crate) fn below(&self, n: u32) -> u32 {
        let mut x = self.0.load(Ordering::Relaxed);
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        self.0.store(x, Ordering::Relaxed);
        ((u128::from(x) * u128::from(n)) >> 64) as u32
    }
}
