//! The C test programs over a real libportals. One is that of this repository, bound by its
//! header only (`build-libportals`, which has the emulation too). The other differs from
//! ours wherever the specification allows it (`build-contrary`, which has nothing else).
//!
//! | file | what it owns |
//! |---|---|
//! | `built` | how the build finds, binds and rejects a libportals |
//! | `lightweight` | the library for lightweight kernels: outside names, and programs under a filter |
//! | `start` | what `gasnet_init` rejects, and that jobs run on the named library |
//! | `habits` | what habits of libportals-contrary would do to a library that ignored them |
//! | `rank_sources` | the sources of the ranks' addresses |
//! | `static_programs` | static programs over libportals3 and libcnos: no supervisor, no memory files |
//! | `systems` | what CNOS and PMI may say, and what a user may demand of them |
//! | `targets` | what the build finds out of the target |
//!
//! The cases exist only where these trees were built, which needs libclang.

mod built;
mod habits;
mod lightweight;
mod rank_sources;
mod start;
mod static_programs;
mod systems;
mod targets;

use crate::build_trees::{self, ClientMode};
use crate::job_launcher::JobLauncher;
use crate::matrix::{self, CaseSetting, SegmentPath};
use crate::outcome::JobOutcome;
use crate::program::{self, TestProgram};
use crate::sample::SampleRandom;
use crate::test_job::TestJob;
use crate::test_library::TestLibrary;
use crate::{Failure, TestCase, exits, kills};
use std::fs;
use std::path::{Path, PathBuf};

/// Programs of a network in a short run.
const SAMPLE: usize = 7;

/// Habits of libportals-contrary that the library must tolerate, one at a time and all
/// together.
const HABITS: &[&str] = &[
    "",
    "send_end",
    "mute",
    "negated",
    "dup",
    "eq_in_use",
    "md_in_use",
    "high",
    "small",
    "no_eq_none",
    "null_empty",
    "unthreaded",
    "connects",
    "unranked",
    "in_calls",
    EVERY_HABIT,
];
pub(crate) const EVERY_HABIT: &str = "send_end,mute,negated,dup,eq_in_use,md_in_use,high,small,no_eq_none,\
                           null_empty,unthreaded,connects,unranked,in_calls";

/// One case per program, setting and network; per program and habit of libportals-contrary; per
/// exit or kill; and what the build and gasnet_init reject.
pub fn cases(seed: u64) -> Vec<TestCase> {
    let mut all = Vec::new();
    if is_built(&build_trees::build_libportals()) {
        all.extend(chosen(seed, "libportals", SAMPLE));
        all.extend(chosen(seed, "emulation", 2));
        all.extend(built::cases());
        all.extend(start::cases());
        all.extend(habits::cases_of_libportals3());
        all.extend(rank_sources::cases());
        all.extend(static_programs::cases(seed));
        all.extend(systems::cases());
        all.extend(targets::cases());
    }
    if build_trees::build_lightweight().join("lib/libgasnet.a").exists() {
        all.extend(lightweight::cases(seed));
    }
    if is_built(&build_trees::build_contrary()) {
        all.extend(contrary(seed));
        all.extend(built::cases_of_contrary());
        all.extend(targets::cases_of_contrary());
        all.extend(start::cases_of_contrary());
        all.extend(habits::cases());
        all.extend(rank_sources::cases_of_contrary());
    }
    all
}

/// Whether a tree over a libportals was built.
pub(crate) fn is_built(tree: &Path) -> bool {
    tree.join("lib/libgasnet.so").exists()
}

/// A libportals reports every completion by an event, so only two paths differ.
const PATHS: [SegmentPath; 2] = [SegmentPath::CrossMapped, SegmentPath::Portals];

/// The programs that run in settings of their own.
fn programs() -> Vec<TestProgram> {
    program::all().into_iter().filter(matrix::has_settings).collect()
}

/// The variable that selects a network, where there are two.
pub(crate) fn network(name: &str) -> TestLibrary {
    TestLibrary::of(build_trees::build_libportals()).with_env("GASNET_NETWORK", name)
}

/// libportals-contrary with these habits.
pub(crate) fn with_habits(habits: &str) -> TestLibrary {
    let library = TestLibrary::of(build_trees::build_contrary()).with_env("CONTRARY", habits);
    if habits.contains("in_calls") { library.with_env("PTL_ATTACH", "0") } else { library }
}

/// The library for this program: testidle demands sleep, which ranks get only on a network with
/// application bypass.
fn for_program(library: &TestLibrary, p: &TestProgram) -> TestLibrary {
    let library = library.clone();
    if p.name == "testidle" { library.with_env("GASNET_PORTAL_BYPASS", "1") } else { library }
}

/// The programs over a network that is chosen when the job starts.
fn chosen(seed: u64, name: &'static str, sample: usize) -> Vec<TestCase> {
    let mut runs: Vec<(TestProgram, CaseSetting)> = Vec::new();
    for p in programs() {
        // The emulation has a matrix of its own; here it only must coexist with the other
        // network.
        let settings = matrix::settings(&p, &PATHS)
            .into_iter()
            .filter(|s| name == "libportals" || s.nodes == 2);
        runs.extend(settings.map(|s| (p.clone(), s)));
    }
    // A small sample: each program at most once, without many spinning ranks.
    let mut order: Vec<usize> = (0..runs.len()).collect();
    SampleRandom::new(seed, name).shuffle(&mut order);
    let mut taken: Vec<usize> = Vec::new();
    for i in order {
        let other = |j: &usize| runs[*j].0.name != runs[i].0.name;
        if taken.len() < sample && runs[i].1.nodes <= 4 && taken.iter().all(other) {
            taken.push(i);
        }
    }
    let prefix = format!("both::{name}::");
    let library = network(name);
    let mut all: Vec<TestCase> = runs
        .into_iter()
        .enumerate()
        .map(|(i, (p, s))| {
            let library = for_program(&library, &p);
            let name = format!("{prefix}{}::{}", p.name, s.name());
            TestCase::new(name, taken.contains(&i), move || matrix::sound(&library, &p, s))
        })
        .collect();
    if name == "libportals" {
        all.extend(ends(seed, &library, &prefix));
    }
    all
}

/// Many ranks, exits and kills over a library; a short run takes one case of each table.
fn ends(seed: u64, library: &TestLibrary, prefix: &str) -> Vec<TestCase> {
    let mut crowds = Vec::new();
    for p in programs() {
        for s in matrix::oversubscribed(&p) {
            let (p, library) = (p.clone(), for_program(library, &p));
            let name = format!("{prefix}{}::{}", p.name, s.name());
            crowds.push(TestCase::new(name, false, move || matrix::sound(&library, &p, s)));
        }
    }
    let mut random = SampleRandom::new(seed, prefix);
    let mut all = Vec::new();
    for mut table in [crowds, exits::over(library, prefix), kills::over(library, prefix)] {
        random.shuffle(&mut table);
        for (i, case) in table.iter_mut().enumerate() {
            case.sampled = i == 0;
        }
        all.extend(table);
    }
    all
}

/// The programs over libportals-contrary: all habits on both paths, with numbers of ranks and
/// modes that the seed chooses. A short run takes each habit once, each with another program.
fn contrary(seed: u64) -> Vec<TestCase> {
    let mut random = SampleRandom::new(seed, "contrary");
    let mut all = Vec::new();
    let mut programs = programs();
    random.shuffle(&mut programs);
    for (i, p) in programs.into_iter().enumerate() {
        let mut settings = matrix::settings(&p, &PATHS);
        random.shuffle(&mut settings);
        for way in PATHS {
            let settings = settings.iter().filter(|s| s.path == way && s.nodes <= 4).cycle();
            for (j, (habits, s)) in HABITS.iter().zip(settings).enumerate() {
                let (p, s, library) = (p.clone(), *s, for_program(&with_habits(habits), &p));
                let called = match *habits {
                    "" => "none",
                    EVERY_HABIT => "every_habit",
                    habit => habit,
                };
                let name = format!("contrary::{}::{called}::{}", p.name, s.name());
                let sampled = i == j && way == SegmentPath::Portals;
                all.push(TestCase::new(name, sampled, move || matrix::sound(&library, &p, s)));
            }
        }
    }
    all.extend(ends(seed, &with_habits(EVERY_HABIT), "contrary::every_habit::"));
    all
}

/// A job of testhello.
fn hello(library: &TestLibrary, nodes: u32) -> Result<TestJob, Failure> {
    let p = program::named("testhello").ok_or("testhello.c is missing")?;
    library.job(
        &build_trees::compiled(&p.source, ClientMode::Seq)?,
        &p.args,
        JobLauncher::Gasnetrun,
        nodes,
    )
}

/// Whether this program passed.
fn passes(ended: &JobOutcome, program: &str) -> Result<(), Failure> {
    ended.tidy()?;
    ended.passed(program)
}

fn fails(ended: &JobOutcome, lines: &[&str]) -> Result<(), Failure> {
    ended.tidy()?;
    if ended.code == Some(0) {
        return Err(ended.failure("it passed"));
    }
    match lines.iter().find(|line| !ended.output.contains(**line)) {
        Some(line) => Err(ended.failure(format!("it does not say {line:?}"))),
        None => Ok(()),
    }
}

/// The folder in which these tests build.
fn place() -> Result<PathBuf, Failure> {
    let dir = build_trees::build_libportals().join("tests");
    fs::create_dir_all(&dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    Ok(dir)
}

/// Writes a source file into that folder.
fn write(name: &str, text: &str) -> Result<PathBuf, Failure> {
    let path = place()?.join(name);
    fs::write(&path, text).map_err(|e| format!("{}: {e}", path.display()))?;
    Ok(path)
}

/// Compiles a C file of that folder into a shared library against the header in this folder.
fn shared_library(source: &Path, include: &Path, name: &str) -> Result<PathBuf, Failure> {
    let library = place()?.join(name);
    let mut cc = build_trees::compiler();
    cc.args(["-shared", "-fPIC", "-std=gnu99", "-Wall", "-Wextra", "-Werror", "-I"]).arg(include);
    cc.arg(source).arg("-o").arg(&library).arg("-ldl");
    build_trees::succeed(cc)?;
    Ok(library)
}

/// The folder of the header that a tree over a libportals was built with.
fn include(tree: &Path) -> PathBuf {
    tree.join("portals/include")
}
