//! Every program over {1, 2, 3, 4, 8 ranks} x {paths `cross-mapped`, `portals`, `events`} x thread
//! modes x launchers. Every program also with each of its planted faults, which it must detect.

use crate::build_trees::{self, ClientMode};
use crate::job_launcher::JobLauncher;
use crate::outcome::JobOutcome;
use crate::program::{self, PlantedFault, TestProgram};
use crate::sample::{self, SampleRandom};
use crate::test_job::TestJob;
use crate::test_library::TestLibrary;
use crate::{Failure, TestCase};
use std::time::Duration;

/// Programs that run one case at a time. They have cases of their own, as those for EVERYTHING.
const IN_CASES: &[&str] = &["testexit", "testbad", "testbadex"];
/// Programs that are also compiled for PARSYNC.
const PARSYNC: &[&str] = &["testam", "testgasnet", "testhello", "testhsl"];
const PROCESSES: &[u32] = &[1, 2, 3, 4, 8];

/// How the ranks of a host reach each other's segments (the glossary of ARCHITECTURE.md has
/// these names).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SegmentPath {
    /// By plain memory operations.
    CrossMapped,
    /// By messages only (GASNET_SUPERNODE_MAXSIZE=1).
    Portals,
    /// By messages only, whose completions events report, as over any Portals
    /// (GASNET_PORTAL_AT_ONCE=0 as well).
    Events,
}

impl SegmentPath {
    fn name(self) -> &'static str {
        match self {
            SegmentPath::CrossMapped => "cross-mapped",
            SegmentPath::Portals => "portals",
            SegmentPath::Events => "events",
        }
    }

    /// The variables that select it.
    fn env(self) -> &'static [(&'static str, &'static str)] {
        match self {
            SegmentPath::CrossMapped => &[],
            SegmentPath::Portals => &[("GASNET_SUPERNODE_MAXSIZE", "1")],
            SegmentPath::Events => {
                &[("GASNET_SUPERNODE_MAXSIZE", "1"), ("GASNET_PORTAL_AT_ONCE", "0")]
            }
        }
    }
}

/// How a program is run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CaseSetting {
    pub(crate) mode: ClientMode,
    pub(crate) path: SegmentPath,
    pub(crate) launcher: JobLauncher,
    pub(crate) nodes: u32,
}

impl CaseSetting {
    pub(crate) fn name(self) -> String {
        format!(
            "{}::{}::{}::n{}",
            self.mode.name(),
            self.path.name(),
            self.launcher.name(),
            self.nodes
        )
    }
}

/// Cases of each program and setting, and of each planted fault. The sample meets all settings,
/// and every other fault.
pub fn cases(seed: u64) -> Vec<TestCase> {
    let mut all = Vec::new();
    for program in program::all().into_iter().filter(has_settings) {
        let settings = settings(
            &program,
            &[SegmentPath::CrossMapped, SegmentPath::Portals, SegmentPath::Events],
        );
        let mut random = SampleRandom::new(seed, &program.name);
        let taken = sample::cover(&settings, &mut random, |s| {
            [s.mode as u64, s.path as u64, s.launcher as u64, ranks_trait(s.nodes)]
        });
        for (i, s) in settings.iter().enumerate() {
            let (p, s) = (program.clone(), *s);
            let name = format!("{}::{}", p.name, s.name());
            all.push(TestCase::new(name, taken.contains(&i), move || {
                sound(&TestLibrary::of(build_trees::build()), &p, s)
            }));
        }
        for fault in &program.faults {
            let settings = fault_settings(&program, fault);
            let taken = sample::cover(&settings, &mut random, |_| [0]);
            let is_taken = random.half();
            for (i, s) in settings.iter().enumerate() {
                let (p, f, s) = (program.clone(), fault.name.clone(), *s);
                let name = format!("{}::fault::{f}::{}", p.name, s.name());
                all.push(TestCase::new(name, is_taken && taken.contains(&i), move || {
                    noticed(&p, &f, s)
                }));
            }
        }
    }
    all
}

/// What a sample distinguishes in a number of ranks: one, two, or more.
pub(crate) fn ranks_trait(nodes: u32) -> u64 {
    nodes.min(3).into()
}

/// Whether a program is run in all settings, rather than in cases of its own.
pub(crate) fn has_settings(program: &TestProgram) -> bool {
    !program.everything && !IN_CASES.contains(&program.name.as_str())
}

/// All settings of a program over these paths.
pub(crate) fn settings(program: &TestProgram, ways: &[SegmentPath]) -> Vec<CaseSetting> {
    let mut modes = program.modes.clone();
    if PARSYNC.contains(&program.name.as_str()) {
        modes.push(ClientMode::Parsync);
    }
    let mut all = Vec::new();
    for &mode in &modes {
        for &path in ways {
            for &nodes in PROCESSES.iter().filter(|&&n| program.nodes.allow(n)) {
                let other = if nodes == 1 { JobLauncher::Alone } else { JobLauncher::PshmNodes };
                for launcher in [JobLauncher::Gasnetrun, other] {
                    all.push(CaseSetting { mode, path, launcher, nodes });
                }
            }
        }
    }
    all
}

/// The settings of a program that ptlrun starts with these numbers of ranks, in its first mode.
pub(crate) fn over_ptlrun(program: &TestProgram, nodes: &[u32]) -> Vec<CaseSetting> {
    let (mode, path, launcher) = (program.modes[0], SegmentPath::Portals, JobLauncher::Ptlrun);
    let nodes = nodes.iter().filter(|&&n| program.nodes.allow(n));
    nodes.map(|&nodes| CaseSetting { mode, path, launcher, nodes }).collect()
}

/// Many more ranks than CPUs, if the program allows as many.
pub(crate) fn oversubscribed(program: &TestProgram) -> Vec<CaseSetting> {
    const PROCESSES: u32 = 16;
    let (mode, launcher) = (program.modes[0], JobLauncher::Gasnetrun);
    let both = [SegmentPath::CrossMapped, SegmentPath::Portals].map(|path| CaseSetting {
        mode,
        path,
        launcher,
        nodes: PROCESSES,
    });
    if program.nodes.allow(PROCESSES) { both.to_vec() } else { Vec::new() }
}

/// The settings in which a fault is visible: two ranks, or the fewest that the program runs
/// with.
fn fault_settings(program: &TestProgram, fault: &PlantedFault) -> Vec<CaseSetting> {
    let nodes =
        (2..).find(|&n| program.nodes.allow(n)).expect("some number of processes is allowed");
    let mut all = Vec::new();
    for &mode in program.modes.iter().filter(|&&m| !fault.par || m == ClientMode::Par) {
        for path in [SegmentPath::CrossMapped, SegmentPath::Portals] {
            if fault.path.is_none_or(|only| only == path) {
                all.push(CaseSetting { mode, path, launcher: JobLauncher::Gasnetrun, nodes });
            }
        }
    }
    all
}

fn job(library: &TestLibrary, program: &TestProgram, s: CaseSetting) -> Result<TestJob, Failure> {
    let compiled = library.compiled(&program.source, s.mode)?;
    let mut job = library.job(&compiled, &program.args, s.launcher, s.nodes)?;
    for (name, value) in &program.env {
        job = job.env(name, value);
    }
    for (name, value) in s.path.env() {
        job = job.env(name, value);
    }
    Ok(job)
}

/// A run that must pass.
pub(crate) fn sound(
    library: &TestLibrary,
    program: &TestProgram,
    s: CaseSetting,
) -> Result<(), Failure> {
    let ended = job(library, program, s)?.watchdog(Duration::from_secs(300)).run()?;
    passed(program, &ended)?;
    travelled(program, s, &ended)
}

fn passed(program: &TestProgram, ended: &JobOutcome) -> Result<(), Failure> {
    ended.tidy()?;
    if ended.code != Some(0) {
        return Err(ended.failure("it did not exit with 0"));
    }
    if !ended.says(&format!("{}: PASS", program.name)) {
        return Err(ended.failure("it printed no PASS"));
    }
    Ok(())
}

/// Whether every message found its memory descriptor, by the counters of all ranks.
pub(crate) fn delivered(ended: &JobOutcome, nodes: u32) -> Result<(), Failure> {
    let ranks: Vec<u64> = ended.counters.iter().map(|c| c.rank).collect();
    if ranks != (0..u64::from(nodes)).collect::<Vec<_>>() {
        return Err(ended.failure(format!("counters came from the ranks {ranks:?}")));
    }
    match ended.counters.iter().find(|c| c.dropped != 0 || c.caught != 0) {
        Some(c) => {
            Err(ended.failure(format!("rank {} dropped messages, or caught some: {c:?}", c.rank)))
        }
        None => Ok(()),
    }
}

/// Whether the data took the path that the setting names, by the counters of the network
/// interfaces.
fn travelled(program: &TestProgram, s: CaseSetting, ended: &JobOutcome) -> Result<(), Failure> {
    delivered(ended, s.nodes)?;
    if s.nodes == 1 {
        return Ok(());
    }
    if let Some(c) = ended.counters.iter().find(|c| c.puts == 0) {
        return Err(ended.failure(format!("rank {} sent nothing through Portals: {c:?}", c.rank)));
    }
    let gets: u64 = ended.counters.iter().map(|c| c.gets).sum();
    match s.path {
        SegmentPath::Portals | SegmentPath::Events if program.gets && gets == 0 => {
            Err(ended.failure("no get went through Portals, though the program gets"))
        }
        SegmentPath::CrossMapped if gets != 0 && !program.creates_segments => {
            Err(ended.failure(format!("{gets} gets of mapped segments went through Portals")))
        }
        _ => Ok(()),
    }
}

/// Words of a program that found something wrong; the last three are those of `testscribble`.
const VERDICTS: [&str; 5] = ["FAIL", "ERROR", "WRONG", "LOST", "CANARY"];

/// A run with a planted fault: the same build must pass without it, and fail with it.
fn noticed(program: &TestProgram, fault: &str, s: CaseSetting) -> Result<(), Failure> {
    let library = TestLibrary::of(build_trees::build_faults());
    let control = job(&library, program, s)?.watchdog(Duration::from_secs(300)).run()?;
    passed(program, &control).map_err(|e| format!("without the fault: {e}"))?;
    // A lost message ends in the program's own watchdog, whose time follows from the time of a
    // run without a fault.
    let stall = 3 + 5 * control.time.as_secs();
    let ended = job(&library, program, s)?
        .env("GASNET_TEST_FAULT", fault)
        .env("GASNET_TEST_STALL", stall.to_string())
        .watchdog(Duration::from_secs(3 * stall))
        .run()?;
    ended.tidy()?;
    // What is wrong with this fault is the exit code alone.
    let is_said = fault == "wrong_code" || VERDICTS.iter().any(|word| ended.output.contains(word));
    match ended.code {
        Some(1..=128) if is_said => Ok(()),
        Some(0) => Err(ended.failure(format!("it passed with the fault {fault}"))),
        _ => Err(ended.failure(format!("it does not say what fault {fault} did"))),
    }
}
