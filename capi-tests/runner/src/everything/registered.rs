//! Registered memory: limits, counters, planted faults, and what is locked.
//!
//! Called by `everything`.

use super::{CaseSetting, Means, PIN, noticed, run};
use crate::build_trees::{self, ClientMode};
use crate::case_end;
use crate::job_launcher::JobLauncher;
use crate::outcome::JobOutcome;
use crate::program::{self, TestProgram};
use crate::test_library::TestLibrary;
use crate::tracing::gasnet_trace;
use crate::{Failure, TestCase, lack_of_userfaultfd};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Variables with which events complete the operations.
const EVENTS: [(&str, &str); 2] =
    [("GASNET_SUPERNODE_MAXSIZE", "1"), ("GASNET_PORTAL_AT_ONCE", "0")];

/// How local sides that exceed the share of a rank are locked.
const LOCKED: [(&str, &[(&str, &str)]); 2] = [
    ("regions", &[("GASNET_PHYSMEM_MAX", "4MB")]),
    ("each", &[("GASNET_PHYSMEM_MAX", "4MB"), ("GASNET_USE_FIREHOSE", "0")]),
];

/// testsegment, whose local sides are locked.
fn locked_cases() -> Vec<TestCase> {
    let mut all = Vec::new();
    all.push(TestCase::new("testsegment::locked::fault".to_string(), true, locks_all));
    for (case, env) in LOCKED {
        let name = format!("testsegment::locked::{case}");
        all.push(TestCase::new(name, true, move || {
            let p = program::named("testsegment").ok_or("there is no testsegment")?;
            let s = CaseSetting { mode: ClientMode::Seq, means: Means::Registered, nodes: 2 };
            let env = [&EVENTS, env].concat();
            run(&p, s, &["locked"], &env)?.passed(&p.name)
        }));
    }
    all
}

/// A library that locks more than it may is noticed, by the local side of a reply Long.
fn locks_all() -> Result<(), Failure> {
    let p = program::named("testsegment").ok_or("there is no testsegment")?;
    let library = TestLibrary::of(build_trees::build_faults()).with_env(PIN, "1");
    let compiled = library.compiled(&p.source, ClientMode::Seq)?;
    let job = library.job(&compiled, &["locked".to_string()], JobLauncher::Gasnetrun, 2)?;
    let ended = [("GASNET_PHYSMEM_MAX", "4MB"), ("GASNET_TEST_FAULT", "lock_all")]
        .into_iter()
        .chain(EVENTS)
        .fold(job, |job, (name, value)| job.env(name, value))
        .watchdog(Duration::from_secs(300))
        .run()?;
    ended.tidy()?;
    match ended.code != Some(0) && ended.output.contains("a reply Long: ") {
        true => Ok(()),
        false => Err(ended.failure("no reply Long locked too much")),
    }
}

/// Limits that cannot hold: a name, the variables, and what the line says.
type RefusedLimits = (&'static str, &'static [(&'static str, &'static str)], &'static str);

/// Those of four ranks.
const REFUSED: [RefusedLimits; 7] = [
    (
        "few_regions",
        &[("GASNET_FIREHOSE_M", "8KB"), ("GASNET_FIREHOSE_MAXREGION_SIZE", "4KB")],
        "Give GASNET_FIREHOSE_M 12KB at least and GASNET_FIREHOSE_R 3",
    ),
    (
        "large_regions",
        &[("GASNET_FIREHOSE_MAXREGION_SIZE", "1MB"), ("GASNET_PHYSMEM_MAX", "8MB")],
        "Allow 16MB at least on each host, or lower GASNET_FIREHOSE_MAXREGION_SIZE.",
    ),
    ("little_memory", &[("GASNET_PHYSMEM_MAX", "60KB")], "Allow 64KB at least on each host"),
    (
        "beyond_memory",
        &[("GASNET_FIREHOSE_M", "2MB"), ("GASNET_PHYSMEM_MAX", "4MB")],
        "Lower GASNET_FIREHOSE_M to 768KB, or raise GASNET_PHYSMEM_MAX.",
    ),
    (
        "beyond_memory_own",
        &[("GASNET_FIREHOSE_MAXVICTIM_M", "1MB"), ("GASNET_PHYSMEM_MAX", "4MB")],
        "Lower GASNET_FIREHOSE_MAXVICTIM_M to 256KB, or raise GASNET_PHYSMEM_MAX.",
    ),
    (
        "beyond_memory_both",
        &[
            ("GASNET_FIREHOSE_M", "1MB"),
            ("GASNET_FIREHOSE_MAXVICTIM_M", "4KB"),
            ("GASNET_PHYSMEM_MAX", "4MB"),
        ],
        "Lower them to 1MB together, or raise GASNET_PHYSMEM_MAX.",
    ),
    (
        "many_regions",
        &[
            ("GASNET_FIREHOSE_R", "16384"),
            ("GASNET_FIREHOSE_MAXVICTIM_R", "16384"),
            ("GASNET_FIREHOSE_MAXREGION_SIZE", "4KB"),
            ("GASNET_PHYSMEM_MAX", "1GB"),
        ],
        "let a rank have 16384 and 16384 regions of 4KB",
    ),
];

/// Registered memory: the smallest limits that hold, and those that do not; planted faults.
pub(super) fn cases() -> Vec<TestCase> {
    let mut all = locked_cases();
    let Some(program) = program::named("testfirehose") else { return all };
    let means = Means::Registered;
    for mode in [ClientMode::EverythingSeq, ClientMode::EverythingPar] {
        let (p, s) = (program.clone(), CaseSetting { mode, means, nodes: 4 });
        let name = format!("testfirehose::minimal::{}", mode.name());
        all.push(TestCase::new(name, true, move || {
            run(&p, s, &["60"], &[("GASNET_PHYSMEM_MAX", "64KB")])?.passed(&p.name)
        }));
    }
    for mode in [ClientMode::EverythingSeq, ClientMode::EverythingPar] {
        let (p, s) = (program.clone(), CaseSetting { mode, means, nodes: 2 });
        let name = format!("testfirehose::freed::{}", mode.name());
        all.push(TestCase::new(name, true, move || {
            run(&p, s, &["freed"], &[("GASNET_DISABLE_MUNMAP", "1")])?.passed(&p.name)
        }));
    }
    let p = program.clone();
    all.push(TestCase::new("testfirehose::implicit".to_string(), true, move || {
        let s = CaseSetting { mode: ClientMode::EverythingSeq, means, nodes: 2 };
        run(&p, s, &["implicit"], &[])?.passed(&p.name)
    }));
    for (case, env) in REJECTED {
        let p = program.clone();
        let case = TestCase::new(format!("testfirehose::rejected::{case}"), true, move || {
            let s = CaseSetting { mode: ClientMode::EverythingSeq, means, nodes: 2 };
            rejected(&p, s, &[MANY_REGIONS, env].concat())
        });
        all.push(case.needs_userfaultfd());
    }
    let p = program.clone();
    all.push(TestCase::new("testfirehose::unwatched".to_string(), true, move || unwatched(&p)));
    for (case, env, line) in LIMITED {
        let p = program.clone();
        let name = format!("testfirehose::ulimit::{case}");
        all.push(TestCase::new(name, true, move || limited(&p, case, env, line)));
    }
    for (regions, least) in [("64", 99.0), ("128", 45.0)] {
        let p = program.clone();
        let name = format!("testfirehose::hit_rate::{regions}");
        all.push(TestCase::new(name, true, move || hit_rate(&p, regions, least)));
    }
    let p = program.clone();
    all.push(TestCase::new("testfirehose::counts".to_string(), true, move || counts(&p)));
    for (case, env, remedy) in REFUSED {
        let p = program.clone();
        let name = format!("testfirehose::refused::{case}");
        all.push(TestCase::new(name, true, move || {
            let s = CaseSetting { mode: ClientMode::EverythingSeq, means, nodes: 4 };
            let ended = run(&p, s, &[], env)?;
            let lines = ended.output.lines().filter(|l| l.starts_with("*** FATAL ERROR")).count();
            match ended.code == Some(1) && lines == 1 && ended.output.contains(remedy) {
                true => Ok(()),
                false => Err(ended.failure(format!("not one line says {remedy:?}"))),
            }
        }));
    }
    for fault in &program.faults {
        let (p, fault) = (program.clone(), fault.name.clone());
        let name = format!("testfirehose::fault::{fault}");
        all.push(TestCase::new(name, true, move || {
            noticed(&p, ClientMode::EverythingSeq, &fault)
        }));
    }
    all
}

/// A job that passes, whose counters are in `trace.RANK` of the folder that is returned.
pub(super) fn traced(
    program: &TestProgram,
    s: CaseSetting,
    args: &[&str],
    env: &[(&str, &str)],
    name: &str,
) -> Result<(JobOutcome, PathBuf), Failure> {
    let folder = build_trees::build().join("capi-tests/firehose").join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let file = |name: &str| folder.join(name).to_string_lossy().into_owned();
    let (trace, statistics) = (file("trace.%"), file("stats.%"));
    let trace = [
        ("GASNET_TRACEFILE", &*trace),
        ("GASNET_TRACEMASK", "C"),
        ("GASNET_STATSFILE", &*statistics),
    ];
    let ended = run(program, s, args, &[env, &trace].concat())?;
    ended.passed(&program.name)?;
    Ok((ended, folder))
}

/// The line of each rank that it wrote at exit.
pub(super) fn last_counters(folder: &Path, ranks: u32) -> Vec<String> {
    let read = |rank| fs::read_to_string(folder.join(format!("trace.{rank}"))).unwrap_or_default();
    let last = |trace: String| trace.lines().rfind(|l| l.contains("FIREHOSE:")).map(String::from);
    (0..ranks).filter_map(|rank| last(read(rank))).collect()
}

/// A number of such a line.
pub(super) fn counter(line: &str, name: &str) -> Option<u64> {
    let value = line.split_whitespace().find_map(|word| word.strip_prefix(name));
    value.and_then(|value| value.strip_prefix('=')?.parse().ok())
}

/// Random accesses to as many regions as a rank may hold of its peer, or to twice as many, hit in
/// this percentage at least.
fn hit_rate(program: &TestProgram, regions: &str, least: f64) -> Result<(), Failure> {
    let s = CaseSetting { mode: ClientMode::EverythingSeq, means: Means::Registered, nodes: 2 };
    let limits = [
        ("GASNET_FIREHOSE_MAXREGION_SIZE", "4KB"),
        ("GASNET_FIREHOSE_R", "64"),
        ("GASNET_FIREHOSE_MAXVICTIM_R", "8"),
    ];
    let (ended, folder) = traced(program, s, &["set", regions], &limits, regions)?;
    let last = last_counters(&folder, 2);
    if last.len() != 2 {
        return Err(ended.failure(format!("{} of 2 ranks have traced counters", last.len())));
    }
    for line in last {
        let of = |name: &str| counter(&line, name).unwrap_or(0) as f64;
        let rate = 100.0 * of("remote_hits") / (of("remote_hits") + of("remote_misses"));
        println!("a set of {regions} regions, of which 64 are held: {rate:.2} % hits");
        if rate.is_nan() || rate < least {
            return Err(ended.failure(format!("{rate:.2} % of accesses hit, not {least} %")));
        }
    }
    Ok(())
}

/// Variables with which a rank may hold 4,096 regions of its peer.
const MANY_REGIONS: &[(&str, &str)] =
    &[("GASNET_FIREHOSE_MAXREGION_SIZE", "4KB"), ("GASNET_PHYSMEM_MAX", "64MB")];

/// More transfers than there are records, with fewer and with more messages under way at once.
const REJECTED: [(&str, &[(&str, &str)]); 3] = [
    ("default", &[]),
    ("events", &[("GASNET_PORTAL_AT_ONCE", "0")]),
    ("many_messages", &[("GASNET_PORTAL_AT_ONCE", "0"), ("GASNET_PORTAL_MSG_LIMIT", "2000")]),
];

/// Puts that their targets refuse, since the memory was mapped again, arrive.
fn rejected(program: &TestProgram, s: CaseSetting, env: &[(&str, &str)]) -> Result<(), Failure> {
    let name = format!("rejected-{}", env.len());
    let (ended, folder) = traced(program, s, &["rejected"], env, &name)?;
    let last = last_counters(&folder, s.nodes);
    let sum = last.iter().filter_map(|line| counter(line, "rejected")).sum::<u64>();
    match last.len() as u32 == s.nodes && sum > 1000 {
        true => Ok(()),
        false => Err(ended.failure(format!("{sum} puts were rejected"))),
    }
}

/// When all is done no region is held, and there were all the events that the program provokes.
/// The counters are traced while they change, and `gasnet_trace` draws them.
fn counts(program: &TestProgram) -> Result<(), String> {
    let s = CaseSetting { mode: ClientMode::EverythingPar, means: Means::Registered, nodes: 4 };
    let (ended, folder) = traced(program, s, &[], &[], "counts")?;
    let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap_or_default();
    let path = |name: &str| folder.join(name).to_string_lossy().into_owned();
    let traces: Vec<String> = (0..4).map(|rank| read(&format!("trace.{rank}"))).collect();
    let lines = |trace: &str| trace.lines().filter(|l| l.contains("FIREHOSE:")).count();
    let last = last_counters(&folder, 4);
    let sum = |name: &str| last.iter().map(|line| counter(line, name)).sum::<Option<u64>>();
    let nonzero = |&name: &&str| sum(name).is_some_and(|sum| sum != 0);
    let events =
        ["remote_hits", "local_hits", "moves", "pins", "unpins", "victims", "pinned_bytes"];
    let monitored =
        ["unmapped", "rejected"].into_iter().filter(|_| lack_of_userfaultfd().is_none());
    if let Some(name) = events.into_iter().chain(monitored).find(|name| !nonzero(name)) {
        return Err(ended.failure(format!("no rank counts {name}")));
    }
    let stated = |rank| read(&format!("stats.{rank}")).contains("(C) FIREHOSE: remote_hits=");
    if !(0..4).all(stated) {
        return Err(ended.failure("statistics lack the counters".to_string()));
    }
    if last.len() != 4 || sum("holds") != Some(0) {
        return Err(ended.failure("regions are held when all is done".to_string()));
    }
    if traces.iter().any(|trace| lines(trace) < 3) {
        return Err(ended.failure("counters are not traced while they change".to_string()));
    }
    let files: Vec<String> = (0..4).map(|rank| path(&format!("trace.{rank}"))).collect();
    let out = path("out.svg");
    let mut args = vec!["firehose", "-o", &*out];
    args.extend(files.iter().map(String::as_str));
    let drawn = gasnet_trace(&args)?;
    let svg = read("out.svg");
    if drawn.0 != Some(0) || (0..4).any(|rank| !svg.contains(&format!(">rank {rank}: at most "))) {
        return Err(format!("gasnet_trace {args:?} drew {svg:?}: {drawn:?}"));
    }
    fs::write(folder.join("other"), "0(0) 1.0> (C) PORTALS: puts=1\n")
        .map_err(|e| format!("{}: {e}", folder.display()))?;
    match gasnet_trace(&["firehose", &path("other"), "-o", &out])? {
        (Some(1), text) if text.contains("no line about registered memory") => {
            passed_with_notice()
        }
        other => Err(format!("gasnet_trace firehose of another trace: {other:?}")),
    }
}

/// Ranks that may lock 256 KB, all or one of them: a name, variables, what they say of regions.
type LimitedJob = (&'static str, &'static [(&'static str, &'static str)], &'static str);

/// The ranks may not lock more, whatever the variables say.
const LIMITED: [LimitedJob; 3] = [
    ("unprivileged", &[], "3 (192KB) for peers, 1 (64KB) for this rank"),
    (
        "no_probe",
        &[("GASNET_PHYSMEM_NOPROBE", "1"), ("GASNET_PHYSMEM_MAX", "4MB")],
        "12 (1536KB) for peers, 4 (512KB) for this rank",
    ),
    // Their arenas have one size.
    ("one_rank", &[], "3 (192KB) for peers, 1 (64KB) for this rank"),
];

/// testfirehose below `ulimit -l 256`, without the capabilities of the superuser.
fn limited(
    program: &TestProgram,
    case: &str,
    env: &[(&str, &str)],
    line: &str,
) -> Result<(), Failure> {
    const DROP: &str = "[ $(id -u) != 0 ] || set -- setpriv --bounding-set=-all \"$@\"; ";
    let unlimited = if case == "one_rank" { "[ $GASNET_RANK = 0 ] || " } else { "" };
    let library = Means::Registered.library();
    let compiled = library.compiled(&program.source, ClientMode::EverythingSeq)?;
    let args =
        ["-c", &format!("{unlimited}ulimit -l 256; {DROP}exec \"$@\""), "sh"].map(str::to_string);
    let args = [&args[..], &[compiled.display().to_string(), "60".to_string()]].concat();
    let job = library.job(Path::new("/bin/sh"), &args, JobLauncher::Gasnetrun, 2)?;
    let own = program.env.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let verbose = [("GASNET_FIREHOSE_VERBOSE", "1")];
    let ended = own
        .chain(env.iter().copied())
        .chain(verbose)
        .fold(job, |job, (name, value)| job.env(name, value))
        .watchdog(Duration::from_secs(300))
        .run()?;
    ended.tidy()?;
    match ended.output.lines().filter(|l| l.contains(line)).count() {
        2 => ended.passed(&program.name),
        n => Err(ended.failure(format!("{n} lines say {line:?}"))),
    }
}

/// Memory whose unmapping the kernel does not report, as that of files before Linux 5.19, is not
/// kept registered.
fn unwatched(program: &TestProgram) -> Result<(), Failure> {
    let library = TestLibrary::of(build_trees::build_faults());
    let compiled = library.compiled(&program.source, ClientMode::EverythingPar)?;
    let job = library.job(&compiled, &["files".to_string()], JobLauncher::Gasnetrun, 3)?;
    let own = program
        .env
        .iter()
        .chain([&("GASNET_TEST_FAULT".into(), "watch_no_files".into())])
        .fold(job, |job, (name, value)| job.env(name, value));
    let ended = own.watchdog(Duration::from_secs(300)).run()?;
    ended.tidy()?;
    ended.passed(&program.name)
}

/// The end of a case that passes. One that has left out a part for want of a userfaultfd says so.
pub(super) fn passed_with_notice() -> Result<(), Failure> {
    match lack_of_userfaultfd() {
        None => Ok(()),
        Some(lack) => case_end::skip(&format!(
            "its part on memory that is unmapped needs {lack}; the other parts passed"
        )),
    }
}
