//! Simulates the supervisors of jobs on many hosts: `launch-sim --hosts N`.
//!
//! The tree, its gates, the messages and the handshake are the library's own; only the network and
//! the ranks are simulated. Prints what each phase of a job costs and checks the bounds of the
//! tree. The last line is a summary; the exit code is 1 if a bound is exceeded.

mod drawing;
mod hosts;
mod network;

use hosts::{ADDRESS, HostsSpec, PhaseCost, SimulatedHosts};
use network::NetworkCosts;
use std::str::FromStr;
use sys::stdio;

const USAGE: &str = "\
usage: launch-sim [--hosts N] [--ranks-per-host R] [--degree D]
       launch-sim --table
       launch-sim --draw FILE
  D is GASNET_SSH_OUT_DEGREE. --table simulates 2 to 4,096 hosts, with the tree and without, and --draw
  draws that.";

/// Nanoseconds of a hop.
const HOP: u64 = 50_000;
/// Bytes that a link carries in a microsecond: those of 10 Gbit/s.
const LINK: u64 = 1250;
/// Ranks of a host, and the default of GASNET_SSH_OUT_DEGREE.
const RANKS: u32 = 16;
const DEGREE: u32 = 16;
/// Hosts of the table.
const HOSTS: [u32; 8] = [2, 8, 17, 64, 256, 512, 1024, 4096];

/// What happens to a job.
const PHASES: [&str; 5] = ["start", "exchange", "barrier", "exit", "death"];

/// The costs of a phase: where only hops cost time, and where bytes do as well.
#[derive(Clone, Copy, Debug)]
struct PhaseCosts {
    hops: PhaseCost,
    links: PhaseCost,
}

/// Runs all phases of a job. The depth of its tree, and the costs by phase.
fn simulate(hosts: u32, ranks_per_host: u32, degree: u32) -> (u32, [PhaseCosts; PHASES.len()]) {
    let run = |link| {
        let costs = NetworkCosts { hop: HOP, link };
        let mut job = SimulatedHosts::new(HostsSpec { hosts, ranks_per_host, degree, costs });
        let (deepest, widest) = job.deepest_and_widest();
        let phases =
            [job.start(), job.exchange(), job.barrier(), job.exit(deepest), job.death(widest)];
        (job.depth, phases)
    };
    let ((depth, hops), (_, links)) = (run(None), run(Some(LINK)));
    (depth, std::array::from_fn(|i| PhaseCosts { hops: hops[i], links: links[i] }))
}

/// The bounds that a simulation exceeds.
fn exceeded(hosts: u32, ranks: u32, degree: u32) -> Vec<String> {
    let (depth, phases) = simulate(hosts, ranks, degree);
    let edges = u64::from(hosts - 1);
    let starts = if degree == 0 { edges } else { edges.min(degree.into()) };
    let depth = u64::from(depth);
    let [start, exchange, barrier, exit, death] = phases.map(|phase| phase.hops);
    let each_start = start.messages / edges.max(1);
    let all = u64::from(hosts * ranks);
    let mut least_depth = 0;
    let (mut level, mut reached) = (1u64, 0u64);
    while reached < edges {
        level *= starts;
        reached += level;
        least_depth += 1;
    }
    let contribution = ADDRESS as u64 + 8;
    [
        ("the depth is the least", depth == least_depth),
        ("start: the same messages for each host", start.messages == each_start * edges),
        ("start: one host after the other", start.time == depth * each_start * HOP),
        ("start: messages of a host", start.most_messages <= each_start * (starts + 1)),
        ("exchange: two messages for each host", exchange.messages == 2 * edges),
        ("exchange: up and down once", exchange.time == 2 * depth * HOP),
        (
            "exchange: bytes of a host",
            exchange.most_bytes
                <= (starts + 1) * (all * ADDRESS as u64 + 5)
                    + 2 * (all * contribution + 5 * starts),
        ),
        ("barrier: two messages for each host", barrier.messages == 2 * edges),
        ("barrier: up and down once", barrier.time == 2 * depth * HOP),
        ("barrier: messages of a host", barrier.most_messages <= 2 * (starts + 1)),
        ("exit: at most three messages for each host", exit.messages <= 3 * edges),
        ("exit: to the root, down and back", exit.time <= 3 * depth * HOP),
        ("exit: messages of a host", exit.most_messages <= 3 * (starts + 1)),
        ("death: at most three messages for each host", death.messages <= 3 * edges),
        ("death: down and back", death.time <= 2 * depth * HOP),
    ]
    .into_iter()
    .filter(|(_, holds)| !holds)
    .map(|(bound, _)| format!("{hosts} hosts, degree {degree}: {bound}: {phases:?}"))
    .collect()
}

const HEAD: &str = "\
| hosts | ranks | degree | depth | phase | messages | of a host, at most | bytes of a host, at most | us at 50 us a hop | us with links of 10 Gbit/s |
|---|---|---|---|---|---|---|---|---|---|";

/// Prints what the phases of a job cost, and the bounds that are exceeded. Their number.
fn print(hosts: u32, ranks: u32, degree: u32) -> usize {
    let (depth, phases) = simulate(hosts, ranks, degree);
    let shown = if degree == 0 { "none".to_string() } else { degree.to_string() };
    for (name, PhaseCosts { hops, links }) in PHASES.iter().zip(phases) {
        println!(
            "| {hosts} | {} | {shown} | {depth} | {name} | {} | {} | {} | {} | {} |",
            hosts * ranks,
            hops.messages,
            hops.most_messages,
            hops.most_bytes,
            hops.time / 1000,
            links.time / 1000,
        );
    }
    let exceeded = exceeded(hosts, ranks, degree);
    exceeded.iter().for_each(|bound| println!("EXCEEDED: {bound}"));
    exceeded.len()
}

fn fail(why: &str) -> ! {
    eprintln!("launch-sim: {why}\n{USAGE}");
    std::process::exit(2)
}

fn value<T: FromStr>(args: &mut lexopt::Parser) -> T {
    let value = args.value().unwrap_or_else(|e| fail(&e.to_string()));
    value.to_str().and_then(|s| s.parse().ok()).unwrap_or_else(|| fail("give a value"))
}

fn main() {
    stdio::end_on_closed_pipe();
    let (mut hosts, mut ranks, mut degree, mut table) = (64, RANKS, DEGREE, false);
    let mut args = lexopt::Parser::from_env();
    loop {
        match args.next().unwrap_or_else(|e| fail(&e.to_string())) {
            None => break,
            Some(lexopt::Arg::Long("hosts")) => hosts = value(&mut args),
            Some(lexopt::Arg::Long("ranks-per-host")) => ranks = value(&mut args),
            Some(lexopt::Arg::Long("degree")) => degree = value(&mut args),
            Some(lexopt::Arg::Long("table")) => table = true,
            Some(lexopt::Arg::Long("draw")) => {
                let path: String = value(&mut args);
                if let Err(e) = std::fs::write(&path, drawing::drawn()) {
                    fail(&format!("{path}: {e}"));
                }
                return;
            }
            Some(_) => fail("unknown option"),
        }
    }
    if hosts < 1 || ranks < 1 || u64::from(hosts) * u64::from(ranks) > 65_536 {
        fail("give 1 to 65536 ranks");
    }
    println!("{HEAD}");
    let jobs = match table {
        true => HOSTS.iter().flat_map(|hosts| [(*hosts, 0), (*hosts, DEGREE)]).collect(),
        false => vec![(hosts, degree)],
    };
    let exceeded: usize = jobs.iter().map(|&(hosts, degree)| print(hosts, ranks, degree)).sum();
    let verdict = match exceeded {
        0 => "all bounds hold".to_string(),
        n => format!("{n} BOUNDS EXCEEDED"),
    };
    println!("summary: {} jobs; {verdict}", jobs.len());
    std::process::exit(i32::from(exceeded != 0));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bounds_of_the_tree_hold() {
        for (hosts, ranks, degrees) in [
            (1, 1, &[0, 1, 16][..]),
            (2, 3, &[0, 1, 16]),
            (9, 4, &[0, 1, 2, 3, 8]),
            (18, 1, &[0, 2, 16, 17, 32]),
            (100, 2, &[0, 1, 3, 10, 16]),
            (4096, 16, &[16, 64]),
        ] {
            for &degree in degrees {
                assert_eq!(exceeded(hosts, ranks, degree), [""; 0]);
            }
        }
    }

    /// What the tree is for: without it, the root sends all addresses to each host itself.
    #[test]
    fn the_tree_spares_the_root() {
        let [flat, tree] = [0, DEGREE].map(|degree| simulate(1024, 16, degree).1);
        for (flat, tree) in flat.iter().zip(tree) {
            assert!(tree.hops.most_messages * 8 < flat.hops.most_messages);
            assert!(tree.hops.most_bytes * 8 < flat.hops.most_bytes);
        }
        let [start, exchange] = [0, 1].map(|i| (flat[i].links.time, tree[i].links.time));
        assert!(tree_is_quicker(start) && tree_is_quicker(exchange));
    }

    fn tree_is_quicker((flat, tree): (u64, u64)) -> bool {
        tree < flat
    }

    /// A job of 65,536 ranks starts, exchanges its addresses and ends within a second of hops.
    #[test]
    fn the_largest_job() {
        let (depth, phases) = simulate(4096, 16, DEGREE);
        assert_eq!(depth, 3);
        assert!(phases.iter().map(|p| p.links.time).sum::<u64>() < 1_000_000_000);
    }
}
