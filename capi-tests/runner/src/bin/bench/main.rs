//! `bench`: measures this library beside other installations of GASNet and the machine's own limits, and writes
//! `docs/bench/`: a table of ratios with the figures to reach, the measured columns, and drawings.
//!
//! | file | what it owns |
//! |---|---|
//! | `system` | what is measured: an installation, how a program is built against it and started |
//! | `columns` | the columns that the programs of `capi-tests/bench` print |
//! | `aims` | the figures to reach |
//! | `report` | medians, ratios pair by pair, the table |
//! | `draw` | the drawings, by gnuplot |
//!
//! All systems are run in turn, round after round (A B C A B C), and every ratio is taken between runs of the same round,
//! so that the slow and fast spells of a shared machine meet both sides alike.

mod aims;
mod columns;
mod draw;
mod report;
mod system;

use columns::Figures;
use std::fs;
use std::process::ExitCode;
use system::System;

const USAGE: &str =
    "usage: bench [--peer PREFIX[,CONDUIT]]... [--beside LIBRARY]... [--rounds N] [--ms MS] [--largest BYTES] [--quick | --starts]
  --peer     an installation of GASNet to compare with, and which of its conduits (smp)
  --beside   openmpi, mpich or shmem: that library's own puts and messages (Debian's packages)
  --rounds   how often each program is run (10)
  --ms       milliseconds for each figure (10)
  --largest  largest size of puts and gets in bytes (4194304)
  --quick    two rounds of a millisecond, and nothing is written to docs/bench
  --starts   only start and end of jobs of ours, by themselves and by gasnetrun, shortest and median in ms; nothing is written";

struct Options {
    peers: Vec<String>,
    beside: Vec<String>,
    rounds: usize,
    ms: f64,
    largest: usize,
    keep: bool,
    starts: bool,
}

fn options() -> Result<Options, String> {
    let mut o = Options {
        peers: Vec::new(),
        beside: Vec::new(),
        rounds: 10,
        ms: 10.0,
        largest: 4 << 20,
        keep: true,
        starts: false,
    };
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or(format!("{arg} needs a value\n{USAGE}"));
        let number = |text: String| {
            text.parse::<f64>().ok().filter(|&n| n > 0.0).ok_or(format!("{text} is no number above 0"))
        };
        match arg.as_str() {
            "--peer" => o.peers.push(value()?),
            "--beside" => o.beside.push(value()?),
            "--rounds" => o.rounds = number(value()?)?.max(1.0) as usize,
            "--ms" => o.ms = number(value()?)?,
            "--largest" => o.largest = number(value()?)? as usize,
            "--quick" => (o.rounds, o.ms, o.keep) = (2, 1.0, false),
            "--starts" => o.starts = true,
            _ => return Err(USAGE.to_string()),
        }
    }
    Ok(o)
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(trouble) => {
            eprintln!("bench: {trouble}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), String> {
    let options = options()?;
    if options.starts {
        print!("{}", System::ours("cross-mapped", &[])?.starts(options.rounds)?);
        return Ok(());
    }
    let mut systems = vec![System::limits()?, System::ours("cross-mapped", &[])?];
    systems.push(System::ours("portals", &[("GASNET_SUPERNODE_MAXSIZE", "1")])?);
    for peer in &options.peers {
        systems.push(System::peer(peer)?);
    }
    for library in &options.beside {
        systems.push(System::foreign(library)?);
    }
    let mut rounds: Vec<Vec<Figures>> = Vec::new();
    for round in 0..options.rounds {
        eprintln!("bench: round {} of {}", round + 1, options.rounds);
        rounds
            .push(systems.iter().map(|s| s.measure(options.ms, options.largest)).collect::<Result<_, _>>()?);
    }
    let names: Vec<&str> = systems.iter().map(|s| s.name.as_str()).collect();
    let text = report::table(&names, &rounds);
    print!("{text}");
    if options.keep {
        let dir = capi_tests::layout::root().join("docs/bench");
        fs::create_dir_all(&dir).map_err(|e| format!("{}: {e}", dir.display()))?;
        let page = dir.join("README.md");
        fs::write(&page, report::page(&text, options.rounds, options.ms))
            .map_err(|e| format!("{}: {e}", page.display()))?;
        draw::all(&dir, &names, &rounds)?;
    }
    Ok(())
}
