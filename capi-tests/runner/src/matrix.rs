//! Every program over {1, 2, 3, 4, 8 processes} x {cross-mapped, all through Portals, that with events only} x thread modes x
//! launchers, and with each of its planted faults, which it must notice.

use crate::job::{Ended, Job, Launcher, Library};
use crate::layout::{self, Mode};
use crate::program::{self, Fault, Program};
use crate::sample::{self, Random};
use crate::{Case, Trouble};
use std::time::Duration;

/// Programs that are run in cases of their own.
const IN_CASES: &[&str] = &["testexit", "testbad"];
/// Programs that are also compiled for PARSYNC.
const PARSYNC: &[&str] = &["testam", "testgasnet", "testhello", "testhsl"];
const PROCESSES: &[u32] = &[1, 2, 3, 4, 8];

/// How the processes of a host reach each other's segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// By plain memory operations.
    Cross,
    /// By messages alone (GASNET_SUPERNODE_MAXSIZE=1).
    Portals,
    /// By messages alone, the end of which is told by events as over any Portals (GASNET_PORTAL_AT_ONCE=0 as well).
    Events,
}

impl Way {
    fn name(self) -> &'static str {
        match self {
            Way::Cross => "cross",
            Way::Portals => "portals",
            Way::Events => "events",
        }
    }

    /// The variables that bring it about.
    fn env(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Way::Cross => &[],
            Way::Portals => &[("GASNET_SUPERNODE_MAXSIZE", "1")],
            Way::Events => &[("GASNET_SUPERNODE_MAXSIZE", "1"), ("GASNET_PORTAL_AT_ONCE", "0")],
        }
    }
}

/// How a program is run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    mode: Mode,
    pub(crate) path: Way,
    launcher: Launcher,
    pub(crate) nodes: u32,
}

impl Setting {
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

/// One case per program and setting, and one per planted fault.
pub fn cases(seed: u64) -> Vec<Case> {
    let mut all = Vec::new();
    for program in program::all().into_iter().filter(has_settings) {
        let settings = settings(&program, &[Way::Cross, Way::Portals, Way::Events]);
        let mut random = Random::new(seed, &program.name);
        let taken = sample::cover(&settings, &mut random, |s| {
            [s.mode as u64, s.path as u64, s.launcher as u64, u64::from(s.nodes)]
        });
        for (i, s) in settings.iter().enumerate() {
            let (p, s) = (program.clone(), *s);
            let name = format!("{}::{}", p.name, s.name());
            all.push(Case::new(name, taken.contains(&i), move || {
                sound(&Library::of(layout::build()), &p, s)
            }));
        }
        for fault in &program.faults {
            let settings = fault_settings(&program, fault);
            let taken = sample::cover(&settings, &mut random, |_| [0]);
            for (i, s) in settings.iter().enumerate() {
                let (p, f, s) = (program.clone(), fault.name.clone(), *s);
                let name = format!("{}::fault::{f}::{}", p.name, s.name());
                all.push(Case::new(name, taken.contains(&i), move || noticed(&p, &f, s)));
            }
        }
    }
    all
}

/// Whether a program is run in all settings, and not in cases of its own.
pub(crate) fn has_settings(program: &Program) -> bool {
    !IN_CASES.contains(&program.name.as_str())
}

/// All settings of a program that take one of these ways.
pub(crate) fn settings(program: &Program, ways: &[Way]) -> Vec<Setting> {
    let mut modes = program.modes.clone();
    if PARSYNC.contains(&program.name.as_str()) {
        modes.push(Mode::Parsync);
    }
    let mut all = Vec::new();
    for &mode in &modes {
        for &path in ways {
            for &nodes in PROCESSES.iter().filter(|&&n| program.nodes.allow(n)) {
                let other = if nodes == 1 { Launcher::Alone } else { Launcher::PshmNodes };
                for launcher in [Launcher::Gasnetrun, other] {
                    all.push(Setting { mode, path, launcher, nodes });
                }
            }
        }
    }
    all
}

/// Many more processes than CPUs, if the program allows of so many.
pub(crate) fn crowded(program: &Program) -> Vec<Setting> {
    const PROCESSES: u32 = 16;
    let (mode, launcher) = (program.modes[0], Launcher::Gasnetrun);
    let both =
        [Way::Cross, Way::Portals].map(|path| Setting { mode, path, launcher, nodes: PROCESSES });
    if program.nodes.allow(PROCESSES) { both.to_vec() } else { Vec::new() }
}

/// The settings in which a fault leaves a trace: two processes, or as few as the program runs with.
fn fault_settings(program: &Program, fault: &Fault) -> Vec<Setting> {
    let nodes =
        (2..).find(|&n| program.nodes.allow(n)).expect("some number of processes is allowed");
    let mut all = Vec::new();
    for &mode in program.modes.iter().filter(|&&m| !fault.par || m == Mode::Par) {
        for path in [Way::Cross, Way::Portals] {
            if path == Way::Portals || !fault.portals {
                all.push(Setting { mode, path, launcher: Launcher::Gasnetrun, nodes });
            }
        }
    }
    all
}

fn job(library: &Library, program: &Program, s: Setting) -> Result<Job, Trouble> {
    let compiled = layout::compiled(&program.source, s.mode)?;
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
pub(crate) fn sound(library: &Library, program: &Program, s: Setting) -> Result<(), Trouble> {
    let ended = job(library, program, s)?.watchdog(Duration::from_secs(300)).run()?;
    passed(program, &ended)?;
    travelled(program, s, &ended)
}

fn passed(program: &Program, ended: &Ended) -> Result<(), Trouble> {
    ended.tidy()?;
    if ended.code != Some(0) {
        return Err(ended.trouble("it did not exit with 0"));
    }
    if !ended.says(&format!("{}: PASS", program.name)) {
        return Err(ended.trouble("it printed no PASS"));
    }
    Ok(())
}

/// Whether every process found a place for every message that was sent to it, told by the counters of all.
pub(crate) fn delivered(ended: &Ended, nodes: u32) -> Result<(), Trouble> {
    let ranks: Vec<u64> = ended.counters.iter().map(|c| c.rank).collect();
    if ranks != (0..u64::from(nodes)).collect::<Vec<_>>() {
        return Err(ended.trouble(format!("counters came from the ranks {ranks:?}")));
    }
    match ended.counters.iter().find(|c| c.dropped != 0 || c.caught != 0) {
        Some(c) => {
            Err(ended.trouble(format!("rank {} dropped messages, or caught some: {c:?}", c.rank)))
        }
        None => Ok(()),
    }
}

/// Whether the data took the path that the setting names, told by the counters of the network interfaces.
fn travelled(program: &Program, s: Setting, ended: &Ended) -> Result<(), Trouble> {
    delivered(ended, s.nodes)?;
    if s.nodes == 1 {
        return Ok(());
    }
    if let Some(c) = ended.counters.iter().find(|c| c.puts == 0) {
        return Err(ended.trouble(format!("rank {} sent nothing through Portals: {c:?}", c.rank)));
    }
    let gets: u64 = ended.counters.iter().map(|c| c.gets).sum();
    match s.path {
        Way::Portals | Way::Events if program.gets && gets == 0 => {
            Err(ended.trouble("no get went through Portals, though the program gets"))
        }
        Way::Cross if gets != 0 => {
            Err(ended.trouble(format!("{gets} gets of mapped segments went through Portals")))
        }
        _ => Ok(()),
    }
}

/// A run with a planted fault: the same build must pass without it, and fail with it.
fn noticed(program: &Program, fault: &str, s: Setting) -> Result<(), Trouble> {
    let library = Library::of(layout::build_faults());
    let control = job(&library, program, s)?.watchdog(Duration::from_secs(300)).run()?;
    passed(program, &control).map_err(|e| format!("without the fault: {e}"))?;
    // A lost message ends in the program's own watchdog; how long it waits follows from how long it takes without.
    let stall = 3 + 5 * control.time.as_secs();
    let ended = job(&library, program, s)?
        .env("GASNET_TEST_FAULT", fault)
        .env("GASNET_TEST_STALL", stall.to_string())
        .watchdog(Duration::from_secs(3 * stall))
        .run()?;
    if ended.code == Some(0) {
        return Err(ended.trouble(format!("it passed with the fault {fault}")));
    }
    Ok(())
}
