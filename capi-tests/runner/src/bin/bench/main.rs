//! `bench`: measures this library in turn with other installations of GASNet and with the
//! machine's own limits. It writes `docs/bench/`: a table of ratios with the figures to reach,
//! the measured columns, and drawings.
//!
//! | file | what it owns |
//! |---|---|
//! | `bench_system` | one side of the comparison: how its programs are built and started |
//! | `building` | compiling its programs |
//! | `turns` | what the systems do in turn, on one host and on several |
//! | `identity` | what exactly was measured: versions and configurations |
//! | `hosts` | systems over several hosts |
//! | `starts` | the table of `--starts` |
//! | `test_programs` | a peer's own test programs, with it and with this library |
//! | `columns` | the columns that the programs of `capi-tests/bench` print |
//! | `aims` | the figures to reach |
//! | `ratio_table` | medians, ratios pair by pair, the table |
//! | `pages` | the pages of docs/bench, and what each system is |
//! | `plots` | the drawings, by gnuplot |
//!
//! All systems take turns, and another one begins in each round (A B C, B C A). Every ratio is
//! taken within one round. So slow and fast spells of a shared machine affect both sides alike. A
//! host may also move virtual CPUs closer together or further apart. So the round trip of a cache
//! line is measured between the systems, and a turn in which it changes is repeated.

mod aims;
mod bench_system;
mod building;
mod columns;
mod hosts;
mod identity;
mod pages;
mod plots;
mod ratio_table;
mod starts;
mod test_programs;
mod turns;

use bench_system::{BenchSystem, Kind};
use capi_tests::progress::{WorkExtent, WorkProgress};
use columns::RowFigures;
use ratio_table::AllRounds;
use std::fs;
use std::io::{self, IsTerminal};
use std::process::ExitCode;
use turns::{HOST_TURNS, LINE, TURNS, Turn};

const USAGE: &str =
    "usage: bench [--peer PREFIX[,CONDUIT] [--tests FOLDER]]... [--with LIBRARY]... [--rounds N] [--ms MS] [--largest BYTES] [--only PROGRAM] [--quick | --draw | --starts | --hosts]
  --peer     an installation of GASNet to compare with, and one of its conduits (smp)
  --tests    the folder of its own test programs, for a peer over smp: both libraries run them
  --with     openmpi, mpich or shmem: that library's own puts and messages (Debian's packages)
  --rounds   rounds; each runs every program once (10)
  --ms       milliseconds for each figure (10)
  --largest  largest size of puts and gets in bytes (4194304)
  --only     only what this program of capi-tests/bench measures, of this library and the peers
             (`tests`: the programs of --tests);
             nothing is written to docs/bench
  --quick    two rounds of a millisecond, and nothing is written to docs/bench
  --draw     nothing is measured; draws the data files of docs/bench again
  --starts   only start and end of our jobs, without and with gasnetrun, shortest and median in ms;
             nothing is written
  --hosts    this library over several hosts, below ci/with-hosts.sh 4; --peer is another GASNet
             over a network; written to docs/bench/hosts.md";

struct Options {
    peers: Vec<String>,
    /// Peers, and the folders of their test programs.
    tests: Vec<(String, String)>,
    libraries: Vec<String>,
    rounds: usize,
    ms: f64,
    largest: usize,
    only: Option<String>,
    keep: bool,
    starts: bool,
    hosts: bool,
    draw: bool,
}

fn options() -> Result<Options, String> {
    let mut o = Options {
        peers: Vec::new(),
        tests: Vec::new(),
        libraries: Vec::new(),
        rounds: 10,
        ms: 10.0,
        largest: 4 << 20,
        only: None,
        keep: true,
        starts: false,
        hosts: false,
        draw: false,
    };
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or(format!("{arg} needs a value\n{USAGE}"));
        let number = |text: String| {
            text.parse::<f64>()
                .ok()
                .filter(|&n| n > 0.0)
                .ok_or(format!("{text} is no number above 0"))
        };
        match arg.as_str() {
            "--peer" => o.peers.push(value()?),
            "--tests" => {
                let peer = o.peers.last().cloned();
                let peer = peer.ok_or(format!("--tests follows its --peer\n{USAGE}"))?;
                o.tests.push((peer, value()?));
            }
            "--with" => o.libraries.push(value()?),
            "--rounds" => o.rounds = number(value()?)?.max(1.0) as usize,
            "--ms" => o.ms = number(value()?)?,
            "--largest" => o.largest = number(value()?)? as usize,
            "--only" => (o.only, o.keep) = (Some(value()?), false),
            "--quick" => (o.rounds, o.ms, o.keep) = (2, 1.0, false),
            "--starts" => o.starts = true,
            "--hosts" => (o.hosts, o.largest) = (true, 1 << 20),
            "--draw" => o.draw = true,
            _ => return Err(USAGE.to_string()),
        }
    }
    Ok(o)
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("bench: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), String> {
    let options = options()?;
    let dir = capi_tests::build_trees::root().join("docs/bench");
    if options.draw {
        return plots::draw(&dir);
    }
    if options.starts {
        let table = starts::table(&BenchSystem::ours("cross-mapped", &[])?, options.rounds)?;
        print!("{table}");
        return Ok(());
    }
    let systems =
        if options.hosts { hosts::systems(&options.peers)? } else { all_systems(&options)? };
    let all_turns = if options.hosts { HOST_TURNS } else { TURNS };
    let wanted = |turn: &Turn| options.only.is_none() || turn.program() == options.only.as_deref();
    let turns: Vec<Turn> = all_turns.iter().copied().filter(wanted).collect();
    if turns.is_empty() {
        return Err(format!("no turn has the program of --only\n{USAGE}"));
    }
    let mut rounds: Vec<Vec<RowFigures>> = Vec::new();
    let mut moved = 0;
    let mut progress = WorkProgress::new(WorkExtent::Pieces(options.rounds * turns.len()));
    for round in 0..options.rounds {
        if !io::stderr().is_terminal() {
            eprintln!("bench: round {} of {}", round + 1, options.rounds);
        }
        let mut all = vec![RowFigures::default(); systems.len()];
        for &turn in &turns {
            progress.begin(&format!("bench: round {} of {}", round + 1, options.rounds));
            let (figures, steady) = take(turn, round, &systems, &options)?;
            progress.end();
            moved += usize::from(!steady);
            all.iter_mut().zip(figures).for_each(|(all, these)| all.add(these));
        }
        rounds.push(all);
    }
    drop(progress);
    if moved > 0 {
        eprintln!(
            "bench: the host moved the CPUs within {moved} turns, each time that they were tried"
        );
    }
    let names: Vec<&str> = systems.iter().map(|s| s.name.as_str()).collect();
    let rows: Vec<_> =
        if options.hosts { aims::host_rows().collect() } else { aims::rows().collect() };
    let measured = AllRounds { names: &names, rounds: &rounds };
    let text = measured.table(&rows, options.only.is_none());
    print!("{text}");
    if options.keep {
        fs::create_dir_all(&dir).map_err(|e| format!("{}: {e}", dir.display()))?;
        let (page, text) = if options.hosts {
            ("hosts.md", pages::hosts_page(&systems, &rows, &text, options.rounds, options.ms))
        } else {
            plots::all(&dir, &names, &rounds)?;
            ("README.md", pages::page(&systems, &rows, &text, options.rounds, options.ms, moved))
        };
        let page = dir.join(page);
        fs::write(&page, text).map_err(|e| format!("{}: {e}", page.display()))?;
    }
    let unmeasured = measured.unmeasured(&rows);
    if options.only.is_none() && !unmeasured.is_empty() {
        return Err(format!("not measured on both sides: {}", unmeasured.join("; ")));
    }
    Ok(())
}

/// All systems of one host.
fn all_systems(options: &Options) -> Result<Vec<BenchSystem>, String> {
    let mut systems = vec![BenchSystem::limits()?, BenchSystem::ours("cross-mapped", &[])?];
    systems.push(BenchSystem::ours("portals", &[("GASNET_SUPERNODE_MAXSIZE", "1")])?);
    if options.only.is_none() {
        systems.extend(special_systems()?);
    }
    for peer in &options.peers {
        systems.push(BenchSystem::peer(peer)?);
    }
    for (peer, folder) in &options.tests {
        systems.extend(test_programs::systems(peer, folder)?);
    }
    for (name, same, kind) in [
        ("cross-mapped", "again", Kind::Again),
        ("cross-mapped", "block", Kind::Blocking),
        ("smp", "smp-block", Kind::Blocking),
    ] {
        let system = systems.iter().find(|s| s.name == name);
        systems.extend(system.and_then(|s| s.same_as(same, kind)));
    }
    for library in &options.libraries {
        systems.push(BenchSystem::foreign(library)?);
    }
    Ok(systems)
}

/// This library in other settings than the usual ones.
fn special_systems() -> Result<Vec<BenchSystem>, String> {
    let mut systems = vec![BenchSystem::everything()?];
    for (name, firehose, events) in [
        ("registered", true, false),
        ("registered-segment", false, false),
        ("registered-events", true, true),
        ("registered-segment-events", false, true),
    ] {
        systems.push(BenchSystem::registered(name, firehose, events)?);
    }
    systems.push(BenchSystem::simulator()?);
    systems.extend(BenchSystem::without_bypass("no-bypass", &[])?);
    systems.extend(BenchSystem::without_bypass("no-bypass-spin", &[("GASNET_WAITMODE", "SPIN")])?);
    Ok(systems)
}

/// Attempts at a turn, until the CPUs stay in place.
const ATTEMPTS: usize = 5;
/// In place: the longest round trip of a cache line is at most this multiple of the shortest.
const STEADY: f64 = 1.25;

/// One turn: the values of each system, and whether the CPUs stayed in place. The first system
/// is the machine: it also gets the round trip of a cache line during this turn, per
/// measurement.
fn take(
    turn: Turn,
    round: usize,
    systems: &[BenchSystem],
    options: &Options,
) -> Result<(Vec<RowFigures>, bool), String> {
    let (mut figures, mut steady) = try_once(turn, round, systems, options)?;
    for _ in 1..ATTEMPTS {
        if steady {
            break;
        }
        (figures, steady) = try_once(turn, round, systems, options)?;
    }
    Ok((figures, steady))
}

/// One attempt of [`take`], steady or not. In each round another system begins.
fn try_once(
    turn: Turn,
    round: usize,
    systems: &[BenchSystem],
    options: &Options,
) -> Result<(Vec<RowFigures>, bool), String> {
    let mut lines = Vec::new();
    let mut look = || -> Result<(), String> {
        if turn.of_lines() {
            lines.push(systems[0].line_trip()?);
        }
        Ok(())
    };
    let mut figures = vec![RowFigures::default(); systems.len()];
    let mut order: Vec<usize> =
        (0..systems.len()).filter(|&i| systems[i].takes_part(turn)).collect();
    if !order.is_empty() {
        let first = round % order.len();
        order.rotate_left(first);
    }
    look()?;
    for at in order {
        figures[at] = systems[at].measure(turn, options.ms, options.largest)?;
        look()?;
    }
    lines.sort_by(f64::total_cmp);
    let steady = lines.first().zip(lines.last()).is_none_or(|(&low, &high)| high <= STEADY * low);
    if let Some(&line) = lines.get(lines.len() / 2) {
        let names: Vec<_> = figures.iter().flat_map(|f| f.units.keys().cloned()).collect();
        names.iter().for_each(|name| figures[0].put(&ratio_table::at(LINE, name), 2, 0, line));
    }
    Ok((figures, steady))
}
