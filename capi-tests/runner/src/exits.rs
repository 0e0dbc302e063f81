//! How jobs end: every case of `testexit`, over launchers, numbers of processes, modes and paths. The first exit of a job
//! decides its code, so the expected code is one number; a crash gives any code but 0. Nobody may hang, stay behind or
//! leave a file.

use crate::job::{Ended, Job, Launcher};
use crate::layout::{self, Mode};
use crate::program::{self, Program};
use crate::{Case, Trouble};
use std::path::Path;
use std::time::Duration;

/// What a case of testexit must end with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expected {
    Code(i32),
    OneOf(&'static [i32]),
    NotZero,
}

impl Expected {
    fn met(self, code: i32) -> bool {
        match self {
            Expected::Code(c) => code == c,
            Expected::OneOf(all) => all.contains(&code),
            Expected::NotZero => code != 0,
        }
    }
}

/// Cases that every thread mode has.
const ALWAYS: &[(u32, Expected)] = &[
    (1, Expected::Code(1)),
    (2, Expected::Code(2)),
    (3, Expected::Code(3)),
    (4, Expected::Code(4)),
    (5, Expected::Code(5)),
    (6, Expected::Code(6)),
    (7, Expected::Code(7)),
    (8, Expected::Code(8)),
    (9, Expected::Code(9)),
    (10, Expected::Code(10)),
    (11, Expected::Code(11)),
    (12, Expected::Code(12)),
    (13, Expected::Code(13)),
];

/// Crashes and handlers.
const CRASHES: &[(u32, Expected)] = &[
    (100, Expected::Code(0)),
    (101, Expected::OneOf(&[0, 4])),
    (102, Expected::NotZero),
    (103, Expected::NotZero),
    (104, Expected::NotZero),
    (105, Expected::NotZero),
    (106, Expected::NotZero),
];

/// Exits from several threads, and crashes in a thread of its own.
const THREADS: &[(u32, Expected)] = &[
    (14, Expected::Code(14)),
    (15, Expected::Code(15)),
    (16, Expected::Code(16)),
    (17, Expected::Code(17)),
    (18, Expected::Code(18)),
    (107, Expected::Code(0)),
    (108, Expected::OneOf(&[0, 4])),
    (109, Expected::NotZero),
    (110, Expected::NotZero),
    (111, Expected::NotZero),
    (112, Expected::NotZero),
    (113, Expected::NotZero),
];

/// One entry per case and setting. In the sample: 1 to 13 in SEQ, cross-mapped, with 2 and 4 processes under both
/// launchers, and the rest once.
pub fn cases() -> Vec<Case> {
    let Some(program) = program::named("testexit") else { return Vec::new() };
    let mut all = Vec::new();
    for mode in [Mode::Seq, Mode::Par] {
        for portals in [false, true] {
            for launcher in [Launcher::Gasnetrun, Launcher::PshmNodes] {
                for nodes in [2, 4] {
                    let plain = mode == Mode::Seq && !portals;
                    let once = !portals && launcher == Launcher::Gasnetrun && nodes == 2;
                    let mut add = |rows: &[(u32, Expected)], sampled: bool| {
                        for &(number, expected) in rows {
                            let s = Setting { mode, portals, launcher, nodes, number, expected };
                            let p = program.clone();
                            all.push(Case::new(s.name(), sampled, move || ends(&p, s)));
                        }
                    };
                    add(ALWAYS, plain);
                    add(CRASHES, once && mode == Mode::Seq);
                    if mode == Mode::Par {
                        add(THREADS, once);
                    }
                }
            }
        }
    }
    for fault in &program.faults {
        let (p, f) = (program.clone(), fault.name.clone());
        all.push(Case::new(format!("testexit::fault::{f}"), true, move || noticed(&p, &f)));
    }
    all
}

#[derive(Clone, Copy)]
struct Setting {
    mode: Mode,
    portals: bool,
    launcher: Launcher,
    nodes: u32,
    number: u32,
    expected: Expected,
}

impl Setting {
    fn name(self) -> String {
        format!(
            "testexit::{}::{}::{}::n{}::case{:02}",
            self.mode.name(),
            if self.portals { "portals" } else { "cross" },
            self.launcher.name(),
            self.nodes,
            self.number
        )
    }
}

fn run(tree: &Path, program: &Program, s: Setting, fault: Option<&str>) -> Result<Ended, Trouble> {
    layout::require(tree)?;
    let compiled = layout::compiled(&program.source, s.mode)?;
    let mut args = vec![s.number.to_string()];
    if s.mode == Mode::Par {
        args.push("2".to_string());
    }
    let mut job = Job::new(tree, &compiled, &args, s.launcher, s.nodes).watchdog(Duration::from_secs(60));
    if s.portals {
        job = job.env("GASNET_SUPERNODE_MAXSIZE", "1");
    }
    if let Some(f) = fault {
        job = job.env("GASNET_TEST_FAULT", f);
    }
    job.run()
}

fn ends(program: &Program, s: Setting) -> Result<(), Trouble> {
    let ended = run(&layout::build(), program, s, None)?;
    ended.tidy()?;
    right(&ended, s)
}

fn right(ended: &Ended, s: Setting) -> Result<(), Trouble> {
    if !ended.code.is_some_and(|c| s.expected.met(c)) {
        return Err(ended.trouble(format!("expected {:?}", s.expected)));
    }
    if ended.output.contains("TEST FAILED") {
        return Err(ended.trouble("it says TEST FAILED"));
    }
    Ok(())
}

/// With the fault at least one of the plain cases must end wrongly.
fn noticed(program: &Program, fault: &str) -> Result<(), Trouble> {
    for &(number, expected) in ALWAYS.iter().filter(|(n, _)| [1, 3, 10].contains(n)) {
        let s = Setting {
            mode: Mode::Seq,
            portals: false,
            launcher: Launcher::Gasnetrun,
            nodes: 2,
            number,
            expected,
        };
        let tree = layout::build_faults();
        right(&run(&tree, program, s, None)?, s).map_err(|e| format!("without the fault: {e}"))?;
        if right(&run(&tree, program, s, Some(fault))?, s).is_err() {
            return Ok(());
        }
    }
    Err(format!("testexit passed its cases 1, 3 and 10 with the fault {fault}"))
}
