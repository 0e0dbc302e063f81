//! Simulates the credits of a job of many processes: `credit-sim --nodes N --pattern P`.
//!
//! The scheme is the library's own (`gasnet::conduit::credits::policy`), and so are the sizes; only the network is
//! simulated. Prints what the pattern needed and checks the goals of the portals-conduit README; the last line is a
//! summary. Exit code 1 if a goal is missed.

mod pattern;
mod world;

use gasnet::conduit::credits::sizing::{EVENT_BYTES, Wish, credit_space};
use gasnet::conduit::credits::{STATE_BYTES, policy::Limits};
use pattern::{PATTERNS, Pattern};
use world::{Outcome, World};

const USAGE: &str = "usage: credit-sim [--nodes N] [--pattern P] [--requests R] [--bank B] [--each C] [--seed S] [--table]
  P is one of all-to-one, neighbours, tree, shifting, uniform; --table runs each at N nodes and prints rows of a table";

/// What to simulate.
#[derive(Clone, Copy)]
struct Run {
    nodes: u32,
    /// Requests of each process.
    requests: u32,
    each: Option<u64>,
    bank: Option<u64>,
    seed: u64,
}

impl Run {
    fn wish(&self) -> Wish {
        Wish {
            nodes: self.nodes.into(),
            chunk: 2048,
            buffer_chunks: 1024,
            spares: 1,
            each: self.each,
            bank: self.bank,
            space: None,
            most_each: 400,
            dynamic: true,
        }
    }

    fn simulate(&self, pattern: Pattern) -> Outcome {
        let wish = self.wish();
        let share =
            wish.share().unwrap_or_else(|e| fail(&format!("these figures do not go together: {e:?}")));
        let limits = Limits::new(wish.least_each() as u16, wish.most_each as u16, 1024);
        World::new(self.nodes, share.each as u16, share.bank as u32, limits).run(
            pattern,
            self.requests,
            self.seed,
        )
    }
}

fn number(args: &mut lexopt::Parser) -> u64 {
    let value = args.value().unwrap_or_else(|e| fail(&e.to_string()));
    value.to_str().and_then(|s| s.parse().ok()).unwrap_or_else(|| fail("a whole number is wanted"))
}

fn fail(why: &str) -> ! {
    eprintln!("credit-sim: {why}\n{USAGE}");
    std::process::exit(2)
}

/// Which of the README's goals the outcome misses.
fn missed(pattern: Pattern, o: &Outcome) -> Vec<String> {
    let mut all = Vec::new();
    if o.most_used > u64::from(o.total) {
        all.push(format!("overflow: {} credits in use of {}", o.most_used, o.total));
    }
    if o.stalls == 0 && o.moved() != 0 {
        all.push(format!("{} credits moved without demand", o.moved()));
    }
    if !o.conserved {
        all.push("credits were lost".to_string());
    }
    if pattern.is_static() {
        let steady = o.all_sent_until.unwrap_or(o.requests);
        if o.last_movement > steady / 2 {
            all.push(format!("no steady state: moved after {} of {steady} requests", o.last_movement));
        }
    }
    if o.worst_turns > o.turns_allowed {
        all.push(format!("a pair's credits changed direction {} times", o.worst_turns));
    }
    all
}

fn main() {
    let (mut run, mut name, mut table) =
        (Run { nodes: 64, requests: 0, each: None, bank: None, seed: 1 }, "neighbours".to_string(), false);
    let mut args = lexopt::Parser::from_env();
    loop {
        match args.next().unwrap_or_else(|e| fail(&e.to_string())) {
            None => break,
            Some(lexopt::Arg::Long("nodes")) => run.nodes = number(&mut args) as u32,
            Some(lexopt::Arg::Long("requests")) => run.requests = number(&mut args) as u32,
            Some(lexopt::Arg::Long("each")) => run.each = Some(number(&mut args)),
            Some(lexopt::Arg::Long("bank")) => run.bank = Some(number(&mut args)),
            Some(lexopt::Arg::Long("seed")) => run.seed = number(&mut args),
            Some(lexopt::Arg::Long("table")) => table = true,
            Some(lexopt::Arg::Long("pattern")) => {
                name = args.value().unwrap_or_else(|e| fail(&e.to_string())).to_string_lossy().into_owned();
            }
            Some(_) => fail("an option that is not known"),
        }
    }
    if !(2..=65535 + 1).contains(&run.nodes) {
        fail("2 to 65536 nodes");
    }
    let chosen: Vec<Pattern> = PATTERNS.iter().copied().filter(|p| table || p.name() == name).collect();
    if chosen.is_empty() {
        fail("a pattern that is not known");
    }
    let wish = run.wish();
    let share = wish.share().unwrap_or_else(|e| fail(&format!("these figures do not go together: {e:?}")));
    let total = share.total(run.nodes.into());
    let buffers = share.buffers * wish.buffer_bytes();
    if table {
        println!(
            "| nodes | pattern | requests | stalled | lent | returned | messages of the scheme | steady after | most turns of a pair |"
        );
        println!("|---|---|---|---|---|---|---|---|---|");
    } else {
        println!("nodes {}, credits of each {}, banked {}, all {total}", run.nodes, share.each, share.bank);
        println!(
            "memory of a node: credit space {} bytes; receive buffers {buffers}, events {}, state of peers {}",
            credit_space(total),
            total * EVENT_BYTES as u64,
            STATE_BYTES as u64 * u64::from(run.nodes)
        );
    }
    let mut bad = 0;
    for pattern in chosen {
        let requests = if run.requests == 0 { pattern.requests(run.nodes) } else { run.requests };
        let o = Run { requests, ..run }.simulate(pattern);
        let misses = missed(pattern, &o);
        let share_of = |n: u64| 100.0 * n as f64 / o.requests.max(1) as f64;
        let steady = if o.moved() == 0 {
            "nothing moved".to_string()
        } else {
            format!("{:.1} %", share_of(o.last_movement))
        };
        if table {
            println!(
                "| {} | {} | {} | {:.2} % | {} | {} | {} | {steady} | {} |",
                run.nodes,
                pattern.name(),
                o.requests,
                share_of(o.stalls),
                o.lent,
                o.returned,
                o.messages,
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
                "credits lent {}, returned {}, CREDIT_REVOKE messages {}, last movement after {steady} of the requests",
                o.lent, o.returned, o.messages
            );
            println!("records of peers kept: {} in all, {} at the busiest node", o.records, o.most_records);
        }
        for m in &misses {
            println!("MISSED: {m}");
        }
        bad += misses.len();
        if !table {
            println!(
                "summary: {} {}: {:.2} % stalled, {} lent, {} returned, steady after {steady}, {}",
                run.nodes,
                pattern.name(),
                share_of(o.stalls),
                o.lent,
                o.returned,
                if misses.is_empty() { "all goals met" } else { "GOALS MISSED" }
            );
        }
    }
    std::process::exit(i32::from(bad != 0));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(nodes: u32, each: Option<u64>, bank: Option<u64>) {
        for &pattern in PATTERNS {
            for seed in 1..3 {
                let requests = pattern.requests(nodes);
                let o = Run { nodes, requests, each, bank, seed }.simulate(pattern);
                assert_eq!(missed(pattern, &o), Vec::<String>::new(), "{} {nodes} {o:?}", pattern.name());
                assert_eq!(o.requests, u64::from(pattern.senders(nodes)) * u64::from(requests));
            }
        }
    }

    #[test]
    fn few_nodes_with_the_figures_of_the_table() {
        check(64, None, None);
    }

    #[test]
    fn few_nodes_with_few_credits() {
        check(64, Some(8), Some(400));
        check(27, Some(12), Some(0));
    }

    #[test]
    fn collectives_move_nothing() {
        let o = Run { nodes: 1024, requests: 200, each: None, bank: None, seed: 1 }.simulate(Pattern::Tree);
        assert_eq!((o.stalls, o.moved()), (0, 0));
    }

    #[test]
    fn neighbours_get_what_they_need() {
        let run = Run { nodes: 64, requests: 3000, each: Some(8), bank: Some(25600), seed: 1 };
        let o = run.simulate(Pattern::Neighbours);
        assert!(o.lent > 1000 && o.returned == 0, "{o:?}");
    }
}
