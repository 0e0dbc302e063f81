//! Simulates the credits of a job with many ranks: `credit-sim --ranks N --pattern P`.
//!
//! The policy (`gasnet::conduit::credits::policy`) and the sizes are the library's own; only
//! the network is simulated. Prints the figures of the pattern and checks the goals of the
//! portals-conduit README. The last line is a summary; the exit code is 1 if a goal is missed.

mod pattern;
mod world;

use gasnet::conduit::credits::sizing::{CreditDemand, CreditShare, EVENT_BYTES, credit_space};
use gasnet::conduit::credits::stats::CreditStats;
use gasnet::conduit::credits::{STATE_BYTES, policy::CreditLimits};
use pattern::{PATTERNS, Pattern};
use sys::stdio;
use world::{SimulatedJob, SimulationResult};

const USAGE: &str = "\
usage: credit-sim [--ranks N] [--pattern P] [--requests R] [--chunk BYTES] [--bank B] [--each C] [--seed S]
                  [--table] [--stats PREFIX --watch RANK]...
  P is one of all-to-one, neighbours, tree, shifting, uniform; --table runs each at N ranks and prints rows of a table.
  --stats writes the movements of the watched ranks to PREFIX.RANK, for `gasnet_trace credits`; a tick
  counts as a microsecond.";

/// The parameters of a simulation.
#[derive(Clone, Copy)]
struct Run {
    ranks: u32,
    /// Requests of each rank.
    requests: u32,
    /// Bytes of a chunk.
    chunk: usize,
    each: Option<u64>,
    bank: Option<u64>,
    seed: u64,
}

/// Largest credit space of a rank of 10,000, in bytes, by chunk, first credits and bank: of the
/// README's figures and of the library's table.
const MEMORY: [(usize, Option<u64>, Option<u64>, u64); 2] =
    [(1024, Some(6), Some(0), 22_000_000), (2048, None, None, 44 << 20)];
/// Largest state of peers of a rank of 10,000, in bytes.
const STATE_OF_10_000: u64 = 400_000;

impl Run {
    fn demand(&self) -> CreditDemand {
        CreditDemand {
            nodes: self.ranks.into(),
            chunk: self.chunk,
            buffer_chunks: 1024,
            spares: 1,
            each: self.each,
            bank: self.bank,
            space: None,
            most_each: 400,
            dynamic: true,
        }
    }

    fn share(&self) -> CreditShare {
        self.demand()
            .share()
            .unwrap_or_else(|e| fail(&format!("these figures do not go together: {e:?}")))
    }

    /// The README's goals for memory that are missed.
    fn memory_missed(&self) -> Vec<String> {
        let space = credit_space(self.share().total(self.ranks.into()));
        let state = STATE_BYTES as u64 * u64::from(self.ranks);
        let figures = (self.ranks, self.chunk, self.each, self.bank);
        let mut all = Vec::new();
        for (chunk, each, bank, most) in MEMORY {
            if figures == (10_000, chunk, each, bank) && space > most {
                all.push(format!("{space} bytes of credit space, more than {most}"));
            }
        }
        if state > STATE_OF_10_000 * u64::from(self.ranks) / 10_000 {
            all.push(format!("{state} bytes of state of peers"));
        }
        all
    }

    fn simulate(&self, pattern: Pattern, watched: &[u32]) -> (SimulationResult, Vec<CreditStats>) {
        let (demand, share) = (self.demand(), self.share());
        let limits = CreditLimits::new(demand.least_each() as u16, demand.most_each as u16, 1024);
        let world =
            SimulatedJob::new(self.ranks, share.each as u16, share.bank as u32, limits, watched);
        world.run(pattern, self.requests, self.seed)
    }
}

fn text(args: &mut lexopt::Parser) -> String {
    args.value().unwrap_or_else(|e| fail(&e.to_string())).to_string_lossy().into_owned()
}

fn number(args: &mut lexopt::Parser) -> u64 {
    let value = args.value().unwrap_or_else(|e| fail(&e.to_string()));
    value.to_str().and_then(|s| s.parse().ok()).unwrap_or_else(|| fail("give a whole number"))
}

fn fail(why: &str) -> ! {
    eprintln!("credit-sim: {why}\n{USAGE}");
    std::process::exit(2)
}

/// The README's goals that the result misses.
fn missed(pattern: Pattern, o: &SimulationResult) -> Vec<String> {
    let mut all = Vec::new();
    if o.most_used > u64::from(o.total) {
        all.push(format!("overflow: {} credits in use of {}", o.most_used, o.total));
    }
    if o.stalls == 0 && o.moved() != 0 {
        all.push(format!("{} credits moved without demand", o.moved()));
    }
    if o.vain > o.vain_allowed {
        all.push(format!(
            "{} CREDIT_REVOKEs returned nothing, {} are allowed",
            o.vain, o.vain_allowed
        ));
    }
    if !o.conserved {
        all.push("credits were lost".to_string());
    }
    if pattern.is_static() {
        let steady = o.all_sent_until.unwrap_or(o.requests);
        if o.last_movement > steady / 2 {
            all.push(format!(
                "no steady state: moved after {} of {steady} requests",
                o.last_movement
            ));
        }
    }
    if o.worst_turns > o.turns_allowed {
        all.push(format!("a pair's credits changed direction {} times", o.worst_turns));
    }
    all
}

/// Writes the records of the watched ranks.
fn write_stats(prefix: &str, watched: &mut [u32], noted: &[CreditStats]) {
    watched.sort_unstable();
    for (rank, stats) in watched.iter().zip(noted) {
        let (path, mut text) = (format!("{prefix}.{rank}"), String::new());
        stats.write(&mut text).unwrap_or_else(|_| unreachable!("a string takes all"));
        std::fs::write(&path, text)
            .unwrap_or_else(|e| fail(&format!("{path} cannot be written: {e}")));
    }
}

fn main() {
    stdio::end_on_closed_pipe();
    let mut run = Run { ranks: 64, requests: 0, chunk: 2048, each: None, bank: None, seed: 1 };
    let (mut name, mut table) = ("neighbours".to_string(), false);
    let (mut stats, mut watched): (Option<String>, Vec<u32>) = (None, Vec::new());
    let mut args = lexopt::Parser::from_env();
    loop {
        match args.next().unwrap_or_else(|e| fail(&e.to_string())) {
            None => break,
            Some(lexopt::Arg::Long("ranks")) => run.ranks = number(&mut args) as u32,
            Some(lexopt::Arg::Long("requests")) => run.requests = number(&mut args) as u32,
            Some(lexopt::Arg::Long("each")) => run.each = Some(number(&mut args)),
            Some(lexopt::Arg::Long("bank")) => run.bank = Some(number(&mut args)),
            Some(lexopt::Arg::Long("seed")) => run.seed = number(&mut args),
            Some(lexopt::Arg::Long("table")) => table = true,
            Some(lexopt::Arg::Long("chunk")) => run.chunk = number(&mut args) as usize,
            Some(lexopt::Arg::Long("watch")) => watched.push(number(&mut args) as u32),
            Some(lexopt::Arg::Long("pattern")) => name = text(&mut args),
            Some(lexopt::Arg::Long("stats")) => stats = Some(text(&mut args)),
            Some(_) => fail("unknown option"),
        }
    }
    if !(2..=65535 + 1).contains(&run.ranks) {
        fail("give 2 to 65536 ranks");
    }
    let chosen: Vec<Pattern> =
        PATTERNS.iter().copied().filter(|p| table || p.name() == name).collect();
    if chosen.is_empty() {
        fail("unknown pattern");
    }
    if stats.is_some() == watched.is_empty() || (table && stats.is_some()) {
        fail("--stats and --watch go together, and with one pattern");
    }
    if run.chunk != 1024 && run.chunk != 2048 {
        fail("chunks have 1024 or 2048 bytes");
    }
    let (demand, share) = (run.demand(), run.share());
    let total = share.total(run.ranks.into());
    let buffers = share.buffers * demand.buffer_bytes();
    if table {
        println!(
            "| ranks | pattern | requests | stalled | lent | returned | CREDIT_REVOKEs | without result | steady after | most turns of a pair |"
        );
        println!("|---|---|---|---|---|---|---|---|---|---|");
    } else {
        println!(
            "ranks {}, credits of each {}, banked {}, all {total}",
            run.ranks, share.each, share.bank
        );
        println!(
            "memory of a rank: credit space {} bytes; receive buffers {buffers}, events {}, state of peers {}",
            credit_space(total),
            total * EVENT_BYTES as u64,
            STATE_BYTES as u64 * u64::from(run.ranks)
        );
    }
    let memory = run.memory_missed();
    for m in &memory {
        println!("MISSED: {m}");
    }
    let mut bad = memory.len();
    let mut summary = String::new();
    for pattern in chosen {
        let requests = if run.requests == 0 { pattern.requests(run.ranks) } else { run.requests };
        let (o, noted) = Run { requests, ..run }.simulate(pattern, &watched);
        if let Some(prefix) = &stats {
            write_stats(prefix, &mut watched, &noted);
        }
        let misses = missed(pattern, &o);
        let share_of = |n: u64| 100.0 * n as f64 / o.requests.max(1) as f64;
        let steady = if o.moved() == 0 {
            "nothing moved".to_string()
        } else {
            format!("{:.1} %", share_of(o.last_movement))
        };
        if table {
            println!(
                "| {} | {} | {} | {:.2} % | {} | {} | {} | {} | {steady} | {} |",
                run.ranks,
                pattern.name(),
                o.requests,
                share_of(o.stalls),
                o.lent,
                o.returned,
                o.messages,
                o.vain,
                o.worst_turns
            );
        } else {
            println!(
                "requests {}, stalled {:.2} %, ticks {}, longest queue {} credits of {}",
                o.requests,
                share_of(o.stalls),
                o.ticks,
                o.most_used,
                o.total
            );
            println!(
                "credits lent {}, returned {}, CREDIT_REVOKE messages {}, without result {}, last movement after {steady} of the requests",
                o.lent, o.returned, o.messages, o.vain
            );
            println!(
                "records of peers kept: {} in all, {} at the busiest rank",
                o.records, o.most_records
            );
        }
        for m in &misses {
            println!("MISSED: {m}");
        }
        bad += misses.len();
        summary = format!(
            "{}: {:.2} % stalled, {} lent, {} returned, steady after {steady}",
            pattern.name(),
            share_of(o.stalls),
            o.lent,
            o.returned
        );
    }
    if table {
        summary = "every pattern".to_string();
    }
    let verdict =
        if bad == 0 { "all goals met".to_string() } else { format!("{bad} GOALS MISSED") };
    println!("summary: {} ranks, {summary}; {verdict}", run.ranks);
    std::process::exit(i32::from(bad != 0));
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE_1024: Run =
        Run { ranks: 1024, requests: 200, chunk: 2048, each: None, bank: None, seed: 1 };

    fn check(ranks: u32, each: Option<u64>, bank: Option<u64>) {
        for &pattern in PATTERNS {
            for seed in 1..3 {
                let requests = pattern.requests(ranks);
                let o = Run { ranks, requests, chunk: 2048, each, bank, seed }
                    .simulate(pattern, &[])
                    .0;
                assert_eq!(
                    missed(pattern, &o),
                    Vec::<String>::new(),
                    "{} {ranks} {o:?}",
                    pattern.name()
                );
                assert_eq!(o.requests, u64::from(pattern.senders(ranks)) * u64::from(requests));
            }
        }
    }

    #[test]
    fn few_ranks_with_the_figures_of_the_table() {
        check(64, None, None);
    }

    #[test]
    fn few_ranks_with_few_credits() {
        check(64, Some(8), Some(400));
        check(27, Some(12), Some(0));
    }

    #[test]
    fn collectives_move_nothing() {
        let o = TABLE_1024.simulate(Pattern::Tree, &[]).0;
        assert_eq!((o.stalls, o.moved()), (0, 0));
    }

    #[test]
    fn neighbours_get_what_they_need() {
        let run =
            Run { ranks: 64, requests: 3000, each: Some(8), bank: Some(25600), ..TABLE_1024 };
        let o = run.simulate(Pattern::Neighbours, &[]).0;
        assert!(o.lent > 1000 && o.returned == 0, "{o:?}");
    }

    #[test]
    fn hardly_any_are_asked_in_vain() {
        let o = TABLE_1024.simulate(Pattern::AllToOne, &[]).0;
        assert!(o.vain != 0 && o.vain * 20 < o.requests, "{o:?}");
    }

    #[test]
    fn memory_of_10_000() {
        let table = Run { ranks: 10_000, ..TABLE_1024 };
        let readme = Run { chunk: 1024, each: Some(6), bank: Some(0), ..table };
        assert_eq!((table.memory_missed(), readme.memory_missed()), (Vec::new(), Vec::new()));
    }

    /// The records of a watched rank agree with the result.
    #[test]
    fn one_is_watched() {
        let run = Run { ranks: 64, requests: 500, each: Some(8), bank: Some(300), ..TABLE_1024 };
        let (o, noted) = run.simulate(Pattern::AllToOne, &[0]);
        let mut text = String::new();
        noted[0].write(&mut text).expect("a string takes all");
        let of = |what: &str| {
            let lines = text.lines().filter(|l| l.split(' ').nth(2) == Some(what));
            lines
                .map(|l| {
                    l.split(' ').nth(4).and_then(|n| n.parse::<u64>().ok()).expect("a number")
                })
                .sum::<u64>()
        };
        assert_eq!((of("lent"), of("returned")), (o.lent, o.returned));
        assert!(o.lent > 200, "{o:?}");
    }
}
