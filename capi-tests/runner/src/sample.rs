//! The sample of a short run: a seed selects it, equally in every process. First each module marks
//! cases that every run could take, then `take_turns` leaves a part of each group.
//!
//! Invariant: every group of cases keeps a case in every run. Seeds that follow each other meet
//! every case that is marked for all seeds.

use crate::TestCase;
use std::collections::BTreeMap;

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

/// Seeds among which the marked cases of a group are shared.
const TURNS: usize = 7;

/// Seconds of a case that [`SECONDS`] does not name.
const USUAL: f64 = 0.5;

/// Seconds of the cases whose names contain these parts, on a quiet machine of 2 CPUs. The first
/// line that fits counts. They keep long cases of a group from falling into one turn, and need
/// not be exact.
const SECONDS: &[(&str, f64)] = &[
    ("hosts::fault::", 8.0),
    ("hosts::flood::", 6.0),
    ("hosts::random::", 4.0),
    ("hosts::slow_reader::", 13.0),
    ("hosts::idle", 6.0),
    ("hosts::half_open", 5.0),
    ("hosts::", 2.0),
    ("::stopping", 4.0),
    ("::overflow::", 4.0),
    ("clients::fortran", 10.0),
    ("_cross_mapped", 8.0),
    ("losses::none::", 2.5),
    ("report::", 2.5),
    ("scribbles::", 2.0),
    ("::sys", 8.0),
];

fn seconds(name: &str) -> f64 {
    SECONDS.iter().find(|(part, _)| name.contains(part)).map_or(USUAL, |&(_, s)| s)
}

/// The group of a case: the first part of its name; of testexit, the launcher too.
fn group(name: &str) -> String {
    let parts: Vec<&str> = name.split("::").collect();
    match parts[..] {
        ["testexit", _, _, launcher, ..] => format!("testexit::{launcher}"),
        _ => parts[0].to_string(),
    }
}

/// The kind of a case within its group: the second part of its name.
fn kind(name: &str) -> &str {
    name.split("::").nth(1).unwrap_or_default()
}

/// Of each group of marked cases, leaves those marked whose turn it is with this seed. The turns
/// of a group take about equally long: a long case has fewer others next to it. Cases that cannot
/// run here take no turn.
pub(crate) fn take_turns(cases: &mut [TestCase], seed: u64) {
    let mut groups = BTreeMap::<String, Vec<usize>>::new();
    let can_run = |case: &&TestCase| case.sampled && case.missing.is_none();
    for (i, case) in cases.iter().enumerate().filter(|(_, case)| can_run(case)) {
        groups.entry(group(&case.name)).or_default().push(i);
    }
    for (name, mut members) in groups {
        let mut random = SampleRandom::new(0, &name);
        random.shuffle(&mut members);
        members.sort_by(|&a, &b| {
            let (a, b) = (&cases[a].name, &cases[b].name);
            seconds(b).total_cmp(&seconds(a)).then_with(|| kind(a).cmp(kind(b)))
        });
        let mut turns = vec![0.0_f64; TURNS.min(members.len())];
        let now = seed % turns.len() as u64;
        for i in members {
            let shortest = |a: &usize, b: &usize| turns[*a].total_cmp(&turns[*b]);
            let turn = (0..turns.len()).min_by(shortest).unwrap_or_default();
            turns[turn] += seconds(&cases[i].name);
            cases[i].sampled = turn as u64 == now;
        }
    }
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

    /// Names of the cases that a seed takes.
    fn taken(seed: u64, names: &[String]) -> Vec<String> {
        let case = |name: &String| TestCase::new(name.clone(), true, || Ok(()));
        let mut cases: Vec<TestCase> = names.iter().map(case).collect();
        take_turns(&mut cases, seed);
        cases.into_iter().filter(|c| c.sampled).map(|c| c.name).collect()
    }

    #[test]
    fn every_group_keeps_a_case_and_seeds_in_a_row_meet_all() {
        let many = (0..50).map(|i| format!("many::{i}"));
        let few = (0..2).map(|i| format!("few::{i}"));
        let names: Vec<String> = many.chain(few).chain(["alone".to_string()]).collect();
        for first in [0, 7, 1_000_003] {
            let mut met = Vec::new();
            for seed in first..first + TURNS as u64 {
                let taken = taken(seed, &names);
                for g in ["many", "few", "alone"] {
                    assert!(taken.iter().any(|name| group(name) == g), "{g} with {seed}");
                }
                assert!(taken.len() < names.len() / 2, "{taken:?}");
                met.extend(taken);
            }
            met.sort();
            met.dedup();
            assert_eq!(met.len(), names.len());
        }
    }

    #[test]
    fn a_sample_marks_no_case_that_was_not_marked() {
        let mut cases = vec![TestCase::new("a::b".to_string(), false, || Ok(()))];
        take_turns(&mut cases, 1);
        assert!(!cases[0].sampled);
    }

    #[test]
    fn every_launcher_of_testexit_and_every_kind_has_a_turn() {
        let exits = ["gasnetrun", "hydra"].into_iter().flat_map(|launcher| {
            (0..5).map(move |i| format!("testexit::seq::portals::{launcher}::n2::rank{i}"))
        });
        let kinds =
            ["b", "a"].into_iter().flat_map(|k| (0..TURNS).map(move |i| format!("x::{k}::{i}")));
        let names: Vec<String> = exits.chain(kinds).collect();
        for seed in 0..TURNS as u64 {
            let taken = taken(seed, &names);
            for part in ["::gasnetrun::", "::hydra::", "x::a::", "x::b::"] {
                assert!(taken.iter().any(|name| name.contains(part)), "{part} with {seed}");
            }
        }
    }

    #[test]
    fn turns_take_about_equally_long() {
        let long = (0..6).map(|i| format!("hosts::fault::{i}"));
        let short = (0..60).map(|i| format!("hosts::test{i}::par"));
        let names: Vec<String> = long.chain(short).collect();
        let all: f64 = names.iter().map(|name| seconds(name)).sum();
        for seed in 0..TURNS as u64 {
            let total: f64 = taken(seed, &names).iter().map(|name| seconds(name)).sum();
            assert!((total - all / TURNS as f64).abs() <= 2.0, "{total} s of {all}");
        }
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
