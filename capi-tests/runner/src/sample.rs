//! The sample of a short run: a seed selects it, equally in every process.

/// The seed of this run: `SEED` in the environment, else 1.
pub fn seed() -> u64 {
    std::env::var("SEED").ok().and_then(|s| s.trim().parse().ok()).unwrap_or(1)
}

/// A small generator (splitmix64, Steele, Lea and Flood 2014).
pub struct SampleRandom(u64);

impl SampleRandom {
    /// A sequence of its own for each `seed` and `name`.
    pub fn new(seed: u64, name: &str) -> SampleRandom {
        // FNV-1a: each program draws its own sample.
        let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325, |h: u64, b| {
            (h ^ u64::from(b)).wrapping_mul(0x0000_0100_0000_01b3)
        });
        SampleRandom(seed ^ hash)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `limit`.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit.max(1)
    }

    /// Whether a case is taken of which every other one is.
    pub fn half(&mut self) -> bool {
        self.below(2) == 0
    }

    /// One of `items`, which must not be empty.
    pub fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len() as u64) as usize]
    }

    /// Shuffles `items` (Fisher and Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for i in (1..items.len()).rev() {
            let j = self.below(i as u64 + 1) as usize;
            items.swap(i, j);
        }
    }
}

/// Indices of a sample of `items`, in random order, until every value of every trait has
/// occurred. `traits` maps an item to one number per trait; equal numbers mean equal values.
pub fn cover<T, const N: usize>(
    items: &[T],
    random: &mut SampleRandom,
    traits: impl Fn(&T) -> [u64; N],
) -> Vec<usize> {
    let mut order: Vec<usize> = (0..items.len()).collect();
    random.shuffle(&mut order);
    let mut seen: Vec<(usize, u64)> = Vec::new();
    let mut taken = Vec::new();
    for i in order {
        let values = traits(&items[i]);
        let fresh: Vec<(usize, u64)> =
            values.into_iter().enumerate().filter(|t| !seen.contains(t)).collect();
        if !fresh.is_empty() {
            seen.extend(fresh);
            taken.push(i);
        }
    }
    taken
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_covers_every_value_and_repeats() {
        let items: Vec<(u64, u64)> = (0..5).flat_map(|a| (0..4).map(move |b| (a, b))).collect();
        let once = cover(&items, &mut SampleRandom::new(7, "x"), |&(a, b)| [a, b]);
        let again = cover(&items, &mut SampleRandom::new(7, "x"), |&(a, b)| [a, b]);
        assert_eq!(once, again);
        for a in 0..5 {
            assert!(once.iter().any(|&i| items[i].0 == a));
        }
        for b in 0..4 {
            assert!(once.iter().any(|&i| items[i].1 == b));
        }
        assert!(once.len() < items.len());
    }

    #[test]
    fn a_shuffle_keeps_all() {
        let mut v: Vec<u32> = (0..100).collect();
        SampleRandom::new(1, "y").shuffle(&mut v);
        assert_ne!(v, (0..100).collect::<Vec<_>>());
        v.sort_unstable();
        assert_eq!(v, (0..100).collect::<Vec<_>>());
    }
}
