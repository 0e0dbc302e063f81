//! Segment modes EVERYTHING and LARGE. Programs that are compiled for EVERYTHING run by
//! cross-memory attach and, as on a kernel that lacks it, in frames. An operation on memory that
//! its target does not have ends the job with a line that names all of it.

mod large;
mod registered;

use crate::build_trees::{self, ClientMode};
use crate::case_end;
use crate::job_launcher::JobLauncher;
use crate::outcome::JobOutcome;
use crate::program::{self, TestProgram};
use crate::sample::{self, SampleRandom};
use crate::test_library::TestLibrary;
use crate::{Failure, TestCase, lack_of_userfaultfd, libportals};
use std::time::Duration;

/// The variable by which the emulation demands registration.
const PIN: &str = "GASNET_PORTAL_PIN";
/// A kernel without process_vm_readv and process_vm_writev.
pub(crate) const WITHOUT_ATTACH: &str = "3.1";
const MODES: [ClientMode; 3] =
    [ClientMode::EverythingSeq, ClientMode::EverythingParsync, ClientMode::EverythingPar];
const PROGRAMS: [&str; 12] = [
    "testeverything",
    "testfirehose",
    "testword",
    "testvis",
    "testpieces",
    "testmemset",
    "testgasnet",
    "testsmall",
    "testam",
    "testcoll",
    "testval",
    "testexatomic",
];
const RANKS: [u32; 5] = [1, 2, 3, 4, 8];

/// How the memory of other ranks is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Means {
    Attach,
    Frames,
    /// Memory must be registered, and is, on demand.
    Registered,
    /// The same in frames and with an event for each put and get. There is so little memory to
    /// register that regions always change.
    RegisteredFrames,
    /// Memory must be registered, and none is: data travel in active messages.
    Messages,
    /// Over libportals3 as a foreign library; over one with the habits of other vendors.
    Libportals,
    Contrary,
}

impl Means {
    const ALL: [Means; 7] = [
        Means::Attach,
        Means::Frames,
        Means::Registered,
        Means::RegisteredFrames,
        Means::Messages,
        Means::Libportals,
        Means::Contrary,
    ];

    /// Those of the trees that were built.
    fn built() -> impl Iterator<Item = Means> {
        Means::ALL.into_iter().filter(|means| match means {
            Means::Libportals => libportals::is_built(&build_trees::build_libportals()),
            Means::Contrary => libportals::is_built(&build_trees::build_contrary()),
            _ => true,
        })
    }

    /// Whether a libportals registers memory.
    fn is_foreign(self) -> bool {
        matches!(self, Means::Libportals | Means::Contrary)
    }

    fn name(self) -> &'static str {
        match self {
            Means::Attach => "attach",
            Means::Frames => "frames",
            Means::Registered => "registered",
            Means::RegisteredFrames => "registered_frames",
            Means::Messages => "messages",
            Means::Libportals => "libportals",
            Means::Contrary => "contrary",
        }
    }

    /// Means that the sample of a program takes one of.
    fn sampled(self) -> u64 {
        match self {
            Means::Attach => 0,
            Means::Frames => 1,
            Means::Registered | Means::RegisteredFrames | Means::Messages => 2,
            Means::Libportals | Means::Contrary => 3,
        }
    }

    /// Whether memory is registered.
    fn registers(self) -> bool {
        matches!(self, Means::Registered | Means::RegisteredFrames) || self.is_foreign()
    }

    /// Whether the operations of other ranks go in frames.
    fn frames(self) -> bool {
        matches!(self, Means::Frames | Means::RegisteredFrames)
    }

    fn library(self) -> TestLibrary {
        let library = TestLibrary::of(build_trees::build());
        let library = if self.frames() { library.under(WITHOUT_ATTACH) } else { library };
        match self {
            Means::Attach | Means::Frames => library,
            Means::Registered => library.with_env(PIN, "1"),
            Means::RegisteredFrames => {
                let little = library.with_env(PIN, "1").with_env("GASNET_PHYSMEM_MAX", "1MB");
                little.with_env("GASNET_PORTAL_AT_ONCE", "0")
            }
            Means::Messages => library.with_env(PIN, "1").with_env("GASNET_USE_FIREHOSE", "0"),
            Means::Libportals => libportals::network("libportals"),
            Means::Contrary => libportals::with_habits(libportals::EVERY_HABIT),
        }
    }
}

#[derive(Clone, Copy)]
struct CaseSetting {
    mode: ClientMode,
    means: Means,
    nodes: u32,
}

/// Per program, the sample meets both means; of testeverything, each thread mode too.
pub fn cases(seed: u64) -> Vec<TestCase> {
    let mut all = Vec::new();
    for program in PROGRAMS.into_iter().filter_map(program::named) {
        let mut settings = Vec::new();
        for mode in MODES {
            // A program for SEQ alone does not run in PARSYNC.
            let runs = match mode {
                ClientMode::EverythingSeq => program.modes.contains(&ClientMode::Seq),
                _ => program.modes.contains(&ClientMode::Par),
            };
            // It registers memory in any case.
            let all = |m: &Means| program.name != "testfirehose" || m.registers();
            for means in Means::built().filter(|m| runs && all(m)) {
                // Each call of that library yields the CPU.
                let most = if means == Means::Contrary { 2 } else { u32::MAX };
                for nodes in RANKS.into_iter().filter(|&n| program.nodes.allow(n) && n <= most) {
                    settings.push(CaseSetting { mode, means, nodes });
                }
            }
        }
        let mut random = SampleRandom::new(seed, &format!("everything {}", program.name));
        // Thread modes and means meet in the program that tests them alone.
        let all_modes = ["testeverything", "testfirehose"].contains(&&*program.name);
        let taken = sample::cover(&settings, &mut random, |s| {
            let means = if all_modes { s.means as u64 } else { s.means.sampled() };
            [if all_modes { s.mode as u64 } else { 0 }, means]
        });
        for (i, &s) in settings.iter().enumerate() {
            let p = program.clone();
            let name = format!("{}::{}", p.name, setting_name(s));
            all.push(TestCase::new(name, taken.contains(&i), move || passes(&p, s)));
        }
    }
    all.extend(registered::cases());
    all.extend(large::cases());
    let Some(program) = program::named("testeverything") else { return all };
    let (mode, nodes) = (ClientMode::EverythingSeq, 2);
    for (case, library, env, line) in foreign_refusals() {
        let p = program.clone();
        let name = format!("testeverything::refused::{case}");
        all.push(TestCase::new(name, true, move || {
            let compiled = library.compiled(&p.source, mode)?;
            let job = library.job(&compiled, &p.args, JobLauncher::Gasnetrun, nodes)?;
            let job = env.iter().fold(job, |job, (name, value)| job.env(name, value));
            let ended = job.watchdog(Duration::from_secs(300)).run()?;
            ended.tidy()?;
            match line {
                None => ended.passed(&p.name),
                Some(line) if ended.code == Some(1) && ended.output.contains(line) => Ok(()),
                Some(line) => Err(ended.failure(format!("no line says {line:?}"))),
            }
        }));
    }
    if let Some(program) = program::named("testexatomic") {
        for case in ["unmapped_add", "unmapped_fetch", "read_only_add"] {
            for means in [Means::Attach, Means::Frames, Means::Registered] {
                let (p, s) = (program.clone(), CaseSetting { mode, means, nodes });
                let name = format!("testexatomic::{case}::{}", means.name());
                let operation = ["a remote atomic of 8 bytes"; 3];
                all.push(TestCase::new(name, true, move || missing(&p, s, case, operation)));
            }
        }
        all.push(TestCase::new("testexatomic::misaligned_add".to_string(), true, move || {
            let s = CaseSetting { mode, means: Means::Attach, nodes };
            let ended = run(&program, s, &["misaligned_add"], &[])?;
            let line = "of rank 1 is not aligned";
            match ended.code == Some(1) && says_both(&ended.output, "the number at address", line)
            {
                true => Ok(()),
                false => Err(ended.failure(format!("no line says {line:?}"))),
            }
        }));
    }
    for (case, operation) in MISSING {
        let sent = [Means::Attach, Means::Frames, Means::Registered];
        for means in Means::built().filter(|means| sent.contains(means) || means.is_foreign()) {
            let (p, s) = (program.clone(), CaseSetting { mode, means, nodes });
            let name = format!("testeverything::{case}::{}", means.name());
            all.push(TestCase::new(name, true, move || missing(&p, s, case, operation)));
        }
    }
    for fault in &program.faults {
        let (p, fault) = (program.clone(), fault.name.clone());
        let name = format!("testeverything::fault::{fault}");
        all.push(TestCase::new(name, true, move || noticed(&p, mode, &fault)));
    }
    let p = program.clone();
    all.push(TestCase::new("testeverything::asleep".to_string(), true, move || {
        let s = CaseSetting { mode, means: Means::Attach, nodes: 4 };
        run(&p, s, &["asleep"], &[])?.passed(&p.name)
    }));
    let p = program.clone();
    all.push(TestCase::new("testeverything::denied".to_string(), true, move || {
        let s = CaseSetting { mode, means: Means::Attach, nodes };
        let ended = run(&p, s, &["denied"], &[])?;
        let (put, line) = (
            "a put of 8 bytes by rank 0",
            "the system now denies rank 0 the memory of rank 1, at 0x",
        );
        match ended.code == Some(1) && says_both(&ended.output, put, line) {
            true => Ok(()),
            false => Err(ended.failure(format!("no line says {line:?}"))),
        }
    }));
    for (means, words) in [
        (Means::Attach, "by cross-memory attach, without a call of its owner"),
        (Means::Frames, "in frames, at the next call of its owner, because"),
    ] {
        let p = program.clone();
        let name = format!("testeverything::means::{}", means.name());
        all.push(TestCase::new(name, true, move || {
            let s = CaseSetting { mode, means, nodes };
            let ended = run(&p, s, &[], &[("GASNET_VERBOSEENV", "1")])?;
            match ended.output.lines().filter(|l| l.contains(words)).count() {
                1 => ended.passed(&p.name),
                n => Err(ended.failure(format!("{n} lines say {words:?}"))),
            }
        }));
    }
    let p = program.clone();
    all.push(TestCase::new("testeverything::user_namespaces".to_string(), true, move || {
        apart(&p)
    }));
    all
}

/// A job over a libportals: a name, the library, variables, and what it says if it is refused.
type ForeignJob =
    (&'static str, TestLibrary, &'static [(&'static str, &'static str)], Option<&'static str>);

/// What a libportals, or the system, lacks for EVERYTHING.
fn foreign_refusals() -> Vec<ForeignJob> {
    const BLIND: (&str, &str) = ("GASNET_FIREHOSE_MONITOR", "0");
    let mut all: Vec<ForeignJob> = Vec::new();
    if libportals::is_built(&build_trees::build_libportals()) {
        let library = || Means::Libportals.library();
        let line = "nothing reports that the program unmaps memory";
        all.push(("unnoticed", library(), &[BLIND], Some(line)));
        all.push((
            "unnoticed_by_choice",
            library(),
            &[BLIND, ("GASNET_DISABLE_MUNMAP", "1")],
            None,
        ));
    }
    if libportals::is_built(&build_trees::build_contrary()) {
        let line =
            "as memory that is registered on demand needs it: mlength of an event Ack is 0x8";
        all.push(("whole", libportals::with_habits("whole"), &[], Some(line)));
    }
    all
}

/// Cases of testeverything, and what the line calls the operation: by cross-memory attach, in
/// frames, to registered memory.
const MISSING: [(&str, [&str; 3]); 6] = [
    ("unmapped_put", ["a put of 8 bytes", "a put of 8 bytes", "a put of 8 bytes"]),
    ("unmapped_get", ["a get of 4096 bytes", "a get of 4096 bytes", "a get of 4096 bytes"]),
    ("read_only_put", ["a put of 8 bytes", "a put of 8 bytes", "a put of 8 bytes"]),
    (
        "unmapped_memset",
        ["a put of 5000 bytes", "a memset of 5000 bytes", "a memset of 5000 bytes"],
    ),
    ("unmapped_long", ["a put of 64 bytes", "a Long of 64 bytes", "a Long of 64 bytes"]),
    ("unmapped_vector", ["a put of 8 bytes", "a vector put of 8 bytes", "a put of 8 bytes"]),
];

fn setting_name(s: CaseSetting) -> String {
    format!("{}::{}::n{}", s.mode.name(), s.means.name(), s.nodes)
}

fn run(
    program: &TestProgram,
    s: CaseSetting,
    args: &[&str],
    env: &[(&str, &str)],
) -> Result<JobOutcome, Failure> {
    let library = s.means.library();
    let compiled = library.compiled(&program.source, s.mode)?;
    let args: Vec<String> = match args {
        [] => program.args.clone(),
        args => args.iter().map(|a| a.to_string()).collect(),
    };
    let mut job = library.job(&compiled, &args, JobLauncher::Gasnetrun, s.nodes)?;
    // A libportals registers memory in any case, and locks none.
    let own = program.env.iter().filter(|(name, _)| !s.means.is_foreign() || name != PIN);
    for (name, value) in own {
        job = job.env(name, value);
    }
    for (name, value) in env {
        job = job.env(name, value);
    }
    let ended = job.watchdog(Duration::from_secs(300)).run()?;
    ended.tidy()?;
    Ok(ended)
}

/// What testfirehose says where the library cannot notice that memory is unmapped.
const UNNOTICED: &str = "nothing notices that memory is unmapped";

/// A run that must pass, by the means of its setting: frames are counted.
fn passes(program: &TestProgram, s: CaseSetting) -> Result<(), Failure> {
    let ended = run(program, s, &[], &[])?;
    ended.passed(&program.name)?;
    // A part of testfirehose needs a userfaultfd, which the kernel of frames has not.
    let has_notice = !s.means.is_foreign() && !s.means.frames();
    let needs_notice = program.name == "testfirehose" && s.nodes > 1;
    if needs_notice
        && has_notice
        && ended.output.contains(UNNOTICED)
        && lack_of_userfaultfd().is_none()
    {
        return Err(ended.failure("the library notices nothing"));
    }
    let framed: u64 = ended.counters.iter().map(|c| c.framed).sum();
    match (s.means, framed) {
        (Means::Attach | Means::Registered | Means::Messages, 1..) => {
            Err(ended.failure(format!("{framed} messages went in frames")))
        }
        // Atomics, and the Longs of testam, fit into their messages.
        (Means::RegisteredFrames, 0) if program.name == "testam" => Ok(()),
        (_, 0) if program.name == "testexatomic" => Ok(()),
        (_, 0) if s.means.frames() && s.nodes > 1 => {
            Err(ended.failure("no message went in frames"))
        }
        _ if needs_notice && has_notice => registered::passed_with_notice(),
        _ => Ok(()),
    }
}

/// Ranks in user namespaces of their own find that the kernel denies cross-memory attach, say why,
/// and send frames.
fn apart(program: &TestProgram) -> Result<(), Failure> {
    const REASON: &str =
        "because the ranks are in different user namespaces, or of different users";
    let s = CaseSetting { mode: ClientMode::EverythingSeq, means: Means::Frames, nodes: 3 };
    let library = TestLibrary::of(build_trees::build());
    let compiled = library.compiled(&program.source, s.mode)?;
    let job = library.job(&compiled, &["apart".to_string()], JobLauncher::Gasnetrun, s.nodes)?;
    let ended = job.env("GASNET_VERBOSEENV", "1").watchdog(Duration::from_secs(300)).run()?;
    ended.tidy()?;
    if ended.says("allows no user namespace") {
        return case_end::skip(ended.output.trim());
    }
    ended.passed(&program.name)?;
    match ended.output.lines().filter(|line| line.ends_with(REASON)).count() {
        1 => Ok(()),
        n => Err(ended.failure(format!("{n} lines end with {REASON:?}"))),
    }
}

/// A planted fault must make the program fail.
fn noticed(program: &TestProgram, mode: ClientMode, fault: &str) -> Result<(), Failure> {
    let library = TestLibrary::of(build_trees::build_faults());
    let compiled = library.compiled(&program.source, mode)?;
    let job = |env: &[(&str, &str)]| {
        let job = library.job(&compiled, &program.args, JobLauncher::Gasnetrun, 2)?;
        let own = program.env.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let job =
            own.chain(env.iter().copied()).fold(job, |job, (name, value)| job.env(name, value));
        let ended = job.watchdog(Duration::from_secs(300)).run()?;
        ended.tidy()?;
        Ok::<_, Failure>(ended)
    };
    job(&[])?.passed(&program.name).map_err(|e| format!("without the fault: {e}"))?;
    let ended = job(&[("GASNET_TEST_FAULT", fault)])?;
    match ended.code {
        Some(0) => Err(ended.failure(format!("it passed with the fault {fault}"))),
        _ => Ok(()),
    }
}

/// Whether a line has both texts.
fn says_both(output: &str, one: &str, other: &str) -> bool {
    output.lines().any(|line| line.contains(one) && line.contains(other))
}

/// The job ends with one line that names the operation, both ranks and the address.
fn missing(
    program: &TestProgram,
    s: CaseSetting,
    case: &str,
    operation: [&str; 3],
) -> Result<(), Failure> {
    let ended = run(program, s, &[case], &[])?;
    let named = ended
        .output
        .lines()
        .find_map(|l| l.split_once(": rank 0 names ")?.1.strip_suffix(" of rank 1"));
    let Some(address) = named else { return Err(ended.failure("no address was named")) };
    let operation = operation[(s.means as usize).min(operation.len() - 1)];
    let cause = "by rank 0 failed: rank 1 has no ";
    let place = format!(" bytes at {address} that can be ");
    // The pieces of registered memory are not called the operation.
    let piece = operation.split_once(" of ").map(|(op, bytes)| format!("{bytes} of {op} "));
    // A get by messages fails with the first of them.
    let pieces = s.means.is_foreign() && operation.starts_with("a get");
    let operation = if pieces { "a get" } else { operation };
    let lines = ended.output.lines().filter(|l| l.starts_with("*** FATAL ERROR")).count();
    let says = |what| {
        says_both(&ended.output, operation, what)
            || piece.as_ref().is_some_and(|piece| says_both(&ended.output, piece, what))
    };
    if ended.code != Some(1) || lines != 1 || !says(cause) || !says(&place) {
        return Err(
            ended.failure(format!("not one line says {operation:?}, {cause:?}, {place:?}"))
        );
    }
    Ok(())
}
