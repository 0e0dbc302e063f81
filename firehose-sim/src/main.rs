//! Simulates the firehoses of a job with many ranks: `firehose-sim --ranks N --pattern P`.
//!
//! The firehoses (`gasnet::conduit::firehose`) are the library's own; memory and network are
//! simulated. What must hold in each state is asserted as it runs: a simulation that ends has
//! kept it. Prints figures; the last line is a summary. The exit code is 1 if a goal is missed.

mod dice;
mod job;
mod memory;
mod pattern;
mod speed;

use gasnet::conduit::firehose::FirehoseLimits;
use job::{FirehoseJob, FirehoseResult, Scenario};
use memory::{PAGE, Troubles};
use pattern::{AccessPattern, PATTERNS};
use std::str::FromStr;
use sys::stdio;

const USAGE: &str = "\
usage: firehose-sim [--ranks N] [--seed S] [--table]
       firehose-sim [--ranks N] [--seed S] --pattern P [--share REGIONS] [--set REGIONS] [--victims REGIONS]
                    [--operations K] [--threads T] [--fixed] [--trouble] [--late]
       firehose-sim --speed [--figures]
  P is one of pairs, stream, neighbours, hot, late, all-to-all, turns. --share is M/(N-1), --victims MAXVICTIM, --set how
  many regions of each peer are accessed; --fixed lends nothing; --trouble adds unpins that must be tried
  again, regions that are mapped in part, memory that is unmapped, and a limit of the system; --late keeps
  three of ten moves for up to 96 ticks before they leave.
  --speed measures hits; --figures prints them as the programs of `make bench` do. --table runs a row for each case of docs/internals/firehose.md.";

/// A simulation with a name, and the hit rate that it must reach, in percent.
struct FirehoseCase {
    name: &'static str,
    scenario: Scenario,
    least: f64,
}

/// What may go wrong, all at once.
fn troubles(limits: FirehoseLimits) -> Troubles {
    // The system pins what peers may hold, and one region for the rank itself.
    Troubles { busy: 200, partial: 250, unmapped: 50, kept: 0, physical: limits.m + 1 }
}

fn scenario(ranks: u32, pattern: AccessPattern, share: u32, set: u32, seed: u64) -> Scenario {
    let m = share * (ranks - 1);
    let limits = FirehoseLimits {
        region_bytes: 4 * PAGE,
        ranks,
        m,
        max_victim: 64,
        table: m.max(256),
        lend: false,
    };
    Scenario {
        limits,
        pattern,
        set,
        operations: 400 * set,
        threads: 4,
        small: 500,
        troubles: Troubles::default(),
        seed,
    }
}

/// The same with the least limits: one region of each peer, one of its own, a table of a few.
fn least(scenario: Scenario, operations: u32) -> Scenario {
    let limits =
        FirehoseLimits { m: scenario.limits.peers(), max_victim: 1, table: 4, ..scenario.limits };
    Scenario { limits, operations, ..scenario }
}

fn lent(scenario: Scenario) -> Scenario {
    Scenario { limits: FirehoseLimits { lend: true, ..scenario.limits }, ..scenario }
}

fn troubled(scenario: Scenario) -> Scenario {
    Scenario { troubles: troubles(scenario.limits), ..scenario }
}

/// The same, but moves leave late.
fn late(scenario: Scenario) -> Scenario {
    Scenario { troubles: Troubles { kept: 300, ..scenario.troubles }, ..scenario }
}

/// The cases of the table. All ranks together do about `budget` operations in each.
fn cases(ranks: u32, seed: u64, budget: u32) -> Vec<FirehoseCase> {
    use AccessPattern::{AllToAll, Hot, Late, Neighbours, Pairs, Stream};
    let case = |name, scenario: Scenario, least| {
        let operations = scenario.operations.min((budget / ranks).max(8));
        FirehoseCase { name, scenario: Scenario { operations, ..scenario }, least }
    };
    // Every region misses once: short runs cannot hit more often.
    let long = |rate| if budget / ranks >= 3000 { rate } else { 0.0 };
    let pairs = |share, set| scenario(ranks, Pairs, share, set, seed);
    vec![
        case("set within the share", pairs(8, 8), long(99.0)),
        case("twice the share, fixed", pairs(8, 16), long(45.0)),
        case(
            "twice the share, lent",
            lent(pairs(8, 16)),
            long(if ranks > 7 { 97.0 } else { 45.0 }),
        ),
        case("a stream through 8 times the share", scenario(ranks, Stream, 8, 64, seed), 0.0),
        case("six neighbours at the limit", lent(scenario(ranks, Neighbours, 8, 8, seed)), 0.0),
        case("six neighbours above it, lent", lent(scenario(ranks, Neighbours, 2, 12, seed)), 0.0),
        case("all to one above it, one early", lent(scenario(ranks, Late, 2, 12, seed)), 0.0),
        case("all to one, least limits", lent(least(scenario(ranks, Hot, 1, 8, seed), 400)), 0.0),
        case("all to all, least limits", least(scenario(ranks, AllToAll, 1, 8, seed), 400), 0.0),
        case(
            "the same, with trouble",
            lent(troubled(least(scenario(ranks, AllToAll, 1, 8, seed), 400))),
            0.0,
        ),
        case("pairs, with trouble", lent(troubled(pairs(8, 16))), 0.0),
        case(
            "all to all, least limits, late moves",
            late(least(scenario(ranks, AllToAll, 1, 8, seed), 400)),
            0.0,
        ),
        case("pairs, with trouble and late moves", late(lent(troubled(pairs(8, 16)))), 0.0),
    ]
}

fn fail(why: &str) -> ! {
    eprintln!("firehose-sim: {why}\n{USAGE}");
    std::process::exit(2)
}

fn value<T: FromStr>(args: &mut lexopt::Parser) -> T {
    let value = args.value().unwrap_or_else(|e| fail(&e.to_string()));
    value.to_str().and_then(|s| s.parse().ok()).unwrap_or_else(|| fail("give a whole number"))
}

fn row(case: &FirehoseCase, r: &FirehoseResult) -> String {
    let Scenario { limits, set, .. } = case.scenario;
    let s = r.stats;
    format!(
        "| {} | {} | {} | {} | {} | {set} | {} | {:.1} % | {} | {} | {} | {} | {} | {} | {} |",
        limits.ranks,
        case.name,
        limits.share(),
        limits.max_victim,
        limits.lend,
        r.operations,
        r.hit_rate(),
        s.moves,
        s.victims,
        s.refused,
        s.recalls,
        s.stalls,
        r.most_pinned,
        r.longest
    )
}

const HEAD: &str = "\
| ranks | case | M/(N-1) | MAXVICTIM | lent | set | operations | hits | moves | victims | refused | recalls | stalls | most pinned | longest, ticks |
|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|";

fn main() {
    stdio::end_on_closed_pipe();
    let (mut ranks, mut seed, mut table) = (64, 1, false);
    let (mut pattern, mut trouble, mut fixed, mut is_late) = (None, false, false, false);
    let (mut share, mut set, mut victims, mut operations, mut threads) = (8, 8, 64, 400, 4);
    let mut args = lexopt::Parser::from_env();
    loop {
        match args.next().unwrap_or_else(|e| fail(&e.to_string())) {
            None => break,
            Some(lexopt::Arg::Long("ranks")) => ranks = value(&mut args),
            Some(lexopt::Arg::Long("seed")) => seed = value(&mut args),
            Some(lexopt::Arg::Long("table")) => table = true,
            Some(lexopt::Arg::Long("share")) => share = value(&mut args),
            Some(lexopt::Arg::Long("set")) => set = value(&mut args),
            Some(lexopt::Arg::Long("victims")) => victims = value(&mut args),
            Some(lexopt::Arg::Long("operations")) => operations = value(&mut args),
            Some(lexopt::Arg::Long("threads")) => threads = value(&mut args),
            Some(lexopt::Arg::Long("speed")) => {
                let figures = args.next().ok().flatten() == Some(lexopt::Arg::Long("figures"));
                let missed = speed::measure(figures);
                println!("summary: {missed} goals missed");
                std::process::exit(i32::from(missed != 0));
            }
            Some(lexopt::Arg::Long("fixed")) => fixed = true,
            Some(lexopt::Arg::Long("trouble")) => trouble = true,
            Some(lexopt::Arg::Long("late")) => is_late = true,
            Some(lexopt::Arg::Long("pattern")) => {
                let name: String = value(&mut args);
                let found = PATTERNS.iter().find(|p| p.name() == name);
                pattern = Some(*found.unwrap_or_else(|| fail("unknown pattern")));
            }
            Some(_) => fail("unknown option"),
        }
    }
    if !(2..=65_536).contains(&ranks) || set == 0 || share == 0 {
        fail("give 2 to 65536 ranks, and at least one region");
    }
    let cases = match (pattern, table) {
        (Some(pattern), false) => {
            let mut scenario = scenario(ranks, pattern, share, set, seed);
            scenario.limits.max_victim = victims;
            scenario.limits.lend = !fixed;
            if trouble {
                scenario.troubles = troubles(scenario.limits);
            }
            if is_late {
                scenario = late(scenario);
            }
            let name = pattern.name();
            vec![FirehoseCase {
                name,
                scenario: Scenario { operations, threads, ..scenario },
                least: 0.0,
            }]
        }
        (None, _) => cases(ranks, seed, 400_000),
        (Some(_), true) => fail("--table has its own patterns"),
    };
    println!("{HEAD}");
    let mut missed = 0;
    for case in &cases {
        if let Err(why) = case.scenario.limits.check() {
            fail(&format!("these limits cannot hold: {why:?}"));
        }
        let result = FirehoseJob::new(case.scenario).run();
        println!("{}", row(case, &result));
        if result.hit_rate() < case.least {
            println!("MISSED: {:.1} % of hits, {} % are the goal", result.hit_rate(), case.least);
            missed += 1;
        }
    }
    let verdict =
        if missed == 0 { "all goals met".to_string() } else { format!("{missed} GOALS MISSED") };
    println!("summary: {ranks} ranks, {} cases; {verdict}", cases.len());
    std::process::exit(i32::from(missed != 0));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(ranks: u32, seeds: std::ops::Range<u64>, budget: u32) {
        for seed in seeds {
            for case in cases(ranks, seed, budget) {
                let result = FirehoseJob::new(case.scenario).run();
                let rate = result.hit_rate();
                assert!(rate >= case.least, "{ranks} ranks, {}: {rate:.1} %", case.name);
                let all = u64::from(ranks) * u64::from(case.scenario.operations);
                assert_eq!(result.operations, all, "{}", case.name);
            }
        }
    }

    #[test]
    fn a_pair() {
        check(2, 1..10, 1000);
    }

    #[test]
    fn few_ranks() {
        check(3, 1..8, 2000);
        check(7, 1..5, 4000);
    }

    #[test]
    fn goals_of_few_ranks() {
        check(8, 1..2, 24_000);
    }

    #[test]
    fn many_ranks() {
        check(300, 1..2, 9000);
    }

    /// What a peer does not use is lent, and given back when it needs it.
    #[test]
    fn lent_regions_are_recalled() {
        let result = FirehoseJob::new(lent(scenario(8, AccessPattern::Late, 2, 12, 1))).run();
        assert!(result.stats.recalls > 0 && result.stats.refused > 0, "{result:?}");
    }

    /// A peer whose moves overtake those that give its regions back wants more than its share: it
    /// is refused, and asks again.
    #[test]
    fn the_share_is_checked_by_the_owner() {
        for seed in 1..4 {
            let mut scenario = late(scenario(3, AccessPattern::Turns, 12, 48, seed));
            scenario.limits.table = 12;
            let scenario = Scenario { operations: 1500, threads: 8, ..scenario };
            let result = FirehoseJob::new(scenario).run();
            assert!(result.stats.refused > 20, "{result:?}");
        }
    }

    /// All kinds of trouble happen, and all operations end.
    #[test]
    fn trouble_is_survived() {
        let result =
            FirehoseJob::new(troubled(scenario(8, AccessPattern::AllToAll, 2, 6, 1))).run();
        let s = result.stats;
        assert!(s.unmapped > 0 && s.rejected > 0 && s.pin_retries > 0, "{s:?}");
        assert_eq!(result.failed, 0);
    }

    /// Moves that leave late are overtaken by many later ones. The bounds hold in each tick.
    #[test]
    fn moves_may_leave_late() {
        use AccessPattern::{AllToAll, Hot, Neighbours, Pairs};
        for seed in 1..5 {
            for (ranks, pattern) in [(2, Pairs), (4, AllToAll), (7, Neighbours), (8, Hot)] {
                let fixed = |share| scenario(ranks, pattern, share, 12, seed);
                for scenario in [fixed(1), fixed(3), lent(fixed(3)), lent(troubled(fixed(3)))] {
                    for scenario in [late(scenario), late(least(scenario, 150))] {
                        let scenario = Scenario { operations: 150, ..scenario };
                        let result = FirehoseJob::new(scenario).run();
                        assert!(result.kept > 0, "{scenario:?}");
                        assert_eq!(result.operations, u64::from(ranks) * 150, "{scenario:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn limits_that_cannot_hold_are_refused() {
        use gasnet::conduit::firehose::FirehoseMisfit;
        let limits = scenario(8, AccessPattern::Pairs, 1, 1, 1).limits;
        assert!(limits.check().is_ok());
        let with = |change: fn(&mut FirehoseLimits)| {
            let mut changed = limits;
            change(&mut changed);
            changed.check()
        };
        assert_eq!(with(|l| l.m = 6), Err(FirehoseMisfit::M(7)));
        assert_eq!(with(|l| l.max_victim = 0), Err(FirehoseMisfit::MaxVictim(1)));
        assert_eq!(with(|l| l.table = 0), Err(FirehoseMisfit::Table(1)));
        assert_eq!(with(|l| l.m = 1 << 24), Err(FirehoseMisfit::TooMany(1 << 24)));
        assert_eq!(with(|l| l.region_bytes = 12345), Err(FirehoseMisfit::RegionBytes(1 << 30)));
    }
}
