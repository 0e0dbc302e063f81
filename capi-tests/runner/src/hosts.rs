//! Jobs of several hosts, which are network namespaces of this machine (`ci/with-hosts.sh`). All
//! programs pass over even and uneven placements, and the counters show that messages crossed.
//! Whatever dies, the job ends with the right code and leaves nothing on any host.

mod contexts;
mod faults;
mod remote_access;
mod starts;

use crate::build_trees::{self, ClientMode};
use crate::job_launcher::JobLauncher;
use crate::outcome::JobOutcome;
use crate::program::{self, TestProgram};
use crate::sample::{self, SampleRandom};
use crate::test_job::TestJob;
use crate::test_library::TestLibrary;
use crate::{Failure, TestCase};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::time::Duration;

/// Ranks by host: the name of the case, the hosts, the ranks of each.
const PLACEMENTS: [(&str, &str, &[u32]); 3] = [
    ("two_by_two", "2", &[2, 2]),
    ("three_by_two", "3", &[2, 2, 2]),
    ("four_one_one", "3", &[4, 1, 1]),
];

const MODES: [ClientMode; 3] = [ClientMode::Seq, ClientMode::Parsync, ClientMode::Par];

/// Providers of libfabric, and programs that run over each. The first has two names: net in
/// libfabric 1.17, tcp in 2.x.
const OFI_PROVIDERS: [&str; 3] = ["net,tcp", "tcp;ofi_rxm", "sockets"];
const OFI_PROGRAMS: [&str; 6] =
    ["testgasnet", "testam", "testmedium", "testsmall", "testbarrier", "testlarge"];

/// What delivers the messages of other hosts: the name of the case, the mode of the program, the
/// value of GASNET_PROGRESS, and whether puts to a target that computes complete.
const PROGRESS: [(&str, ClientMode, Option<&str>, bool); 5] = [
    ("par", ClientMode::Par, None, true),
    ("parsync", ClientMode::Parsync, None, true),
    ("seq_thread", ClientMode::Seq, Some("THREAD"), true),
    ("seq", ClientMode::Seq, None, false),
    ("par_poll", ClientMode::Par, Some("POLL"), false),
];

/// Messages to a target that stops polling: in the sample, and in all.
const FLOODS: [(ClientMode, u64, bool); 4] = [
    (ClientMode::Seq, 100_000, true),
    (ClientMode::Par, 100_000, true),
    (ClientMode::Seq, 10_000_000, false),
    (ClientMode::Par, 10_000_000, false),
];

/// Programs about one host, or about ends of jobs that [`faults`] has for several.
const ONE_HOST: [&str; 8] = [
    "testexit",
    "testbad",
    "testbadex",
    "testscribble",
    "testidle",
    "testsegment",
    "testtools",
    "testflood",
];

/// The program that makes the hosts.
fn with_hosts() -> PathBuf {
    build_trees::root().join("ci/with-hosts.sh")
}

/// The job on two hosts.
pub fn on_two(job: TestJob) -> TestJob {
    job.env("GASNET_SSH_SERVERS", "host1,host2").below(&with_hosts(), "2")
}

/// Why there are no hosts here. They are made once to know.
pub fn missing() -> Option<String> {
    static WHY: OnceLock<Option<String>> = OnceLock::new();
    WHY.get_or_init(try_hosts).clone()
}

fn try_hosts() -> Option<String> {
    let mut c = Command::new(with_hosts());
    c.args(["2", "true"]).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    match c.output() {
        Ok(done) if done.status.success() => None,
        Ok(done) => Some(format!(
            "hosts made of network namespaces (root, Debian package iproute2): {}",
            String::from_utf8_lossy(&done.stderr).lines().next().unwrap_or_default()
        )),
        Err(e) => Some(format!("ci/with-hosts.sh: {e}")),
    }
}

/// A provider of libfabric in the name of a case.
fn in_case_name(provider: &str) -> String {
    provider.split(',').next().unwrap_or(provider).replace(';', "_")
}

/// Why a provider of libfabric cannot be tested here.
fn missing_provider(provider: &str) -> Option<String> {
    let mut c = Command::new(build_trees::build().join("bin/gasnet_info"));
    let printed = c.arg("-n").stderr(Stdio::null()).output().ok()?;
    let printed = String::from_utf8_lossy(&printed.stdout);
    let has_it = provider.split(',').any(|name| printed.contains(&format!(" {name} ")));
    (!has_it)
        .then(|| format!("libfabric with its provider {provider} (Debian package libfabric1)"))
}

/// A job whose hosts are connected by a provider of libfabric, or by TCP.
fn over(job: TestJob, provider: Option<&str>) -> TestJob {
    match provider {
        Some(name) => job.env("GASNET_NETWORK", "OFI").env("GASNET_OFI_PROVIDER_INCLUDE", name),
        None => job,
    }
}

/// Programs over each provider of libfabric. The sample meets all programs and providers.
fn ofi_cases(seed: u64) -> Vec<TestCase> {
    let mut settings = Vec::new();
    for provider in 0..OFI_PROVIDERS.len() {
        let programs = program::all().into_iter().filter(|p| OFI_PROGRAMS.contains(&&*p.name));
        settings.extend(programs.enumerate().map(|(n, p)| (provider, n, p)));
    }
    let mut random = SampleRandom::new(seed, "hosts ofi");
    let traits = |(provider, n, _): &(usize, usize, _)| [*provider as u64, *n as u64];
    let taken = sample::cover(&settings, &mut random, traits);
    let missing = OFI_PROVIDERS.map(missing_provider);
    let case = |(i, (at, _, p)): (usize, (usize, usize, TestProgram))| {
        let provider = OFI_PROVIDERS[at];
        let name = format!("hosts::ofi::{}::{}", in_case_name(provider), p.name);
        let run = move || passes(&p, 0, ClientMode::Par, Some(provider));
        let mut case = TestCase::new(name, taken.contains(&i), run);
        case.missing.clone_from(&missing[at]);
        case
    };
    settings.into_iter().enumerate().map(case).collect()
}

/// Programs x placements x modes, and faults. The sample has every other program.
pub fn cases(seed: u64) -> Vec<TestCase> {
    let missing = missing();
    let mut all = Vec::new();
    let programs = program::all().into_iter();
    for p in programs.filter(|p| !p.everything && !ONE_HOST.contains(&&*p.name)) {
        let mut settings = Vec::new();
        for (i, (_, _, ranks)) in PLACEMENTS.iter().enumerate() {
            let nodes = ranks.iter().sum();
            let modes = MODES.into_iter().filter(|mode| p.modes.contains(mode));
            settings.extend(modes.filter(|_| p.nodes.allow(nodes)).map(|mode| (i, mode)));
        }
        let mut random = SampleRandom::new(seed, &format!("hosts {}", p.name));
        let taken = sample::cover(&settings, &mut random, |_| [0]);
        for (i, &(placement, mode)) in settings.iter().enumerate() {
            let name = format!("hosts::{}::{}::{}", p.name, PLACEMENTS[placement].0, mode.name());
            let p = p.clone();
            let sampled = taken.contains(&i) && random.half();
            all.push(TestCase::new(name, sampled, move || passes(&p, placement, mode, None)));
        }
    }
    all.extend(ofi_cases(seed));
    all.extend(remote_access::cases(seed));
    all.extend(contexts::cases());
    all.push(TestCase::new("hosts::last_messages".to_string(), true, last_messages));
    for (name, case, code) in CRASHES {
        let name = format!("hosts::crash::{name}");
        all.push(TestCase::new(name, true, move || crashes(case, code)));
    }
    all.push(TestCase::new("hosts::address".to_string(), true, address_is_named));
    all.extend(faults::cases(seed));
    all.extend(starts::cases());
    for (mode, messages, sampled) in FLOODS {
        let name = format!("hosts::flood::{}::{messages}", mode.name());
        all.push(TestCase::new(name, sampled, move || floods(mode, messages)));
    }
    for (operation, case) in [("a put", "unmapped_put"), ("a get", "unmapped_get")] {
        let name = format!("hosts::refused::{case}");
        all.push(TestCase::new(name, true, move || is_refused(operation, case)));
    }
    for mode in [ClientMode::EverythingSeq, ClientMode::EverythingPar] {
        let name = format!("hosts::limits_differ::{}", mode.name());
        all.push(TestCase::new(name, true, move || limits_differ(mode)));
    }
    all.push(TestCase::new("hosts::largest_segments".to_string(), true, largest_segments));
    all.push(TestCase::new("hosts::users_differ".to_string(), true, users_differ));
    for network in ["TCP", "OFI"] {
        let name = format!("hosts::other_version::{}", network.to_lowercase());
        let mut case = TestCase::new(name, true, move || other_version(network));
        case.missing = if network == "OFI" { missing_provider("net,tcp") } else { None };
        all.push(case);
    }
    for (case, mode, progress, completes) in PROGRESS {
        let name = format!("hosts::progress::{case}");
        all.push(TestCase::new(name, true, move || computes(mode, progress, completes)));
    }
    for case in &mut all {
        case.missing = missing.clone().or(case.missing.take());
    }
    all
}

fn servers(placement: usize) -> String {
    let (_, _, ranks) = PLACEMENTS[placement];
    let hosts = (1..).zip(ranks).map(|(host, ranks)| format!("host{host}:{ranks}"));
    hosts.collect::<Vec<_>>().join(",")
}

/// It passes, and messages go in frames: over TCP, or over this provider of libfabric.
fn passes(
    program: &TestProgram,
    placement: usize,
    mode: ClientMode,
    provider: Option<&str>,
) -> Result<(), Failure> {
    passed(program, placement, mode, |job| over(job, provider)).map(drop)
}

/// How a program has ended, which passes as a job that is set up like this. Messages go in frames.
fn passed(
    program: &TestProgram,
    placement: usize,
    mode: ClientMode,
    set_up: impl FnOnce(TestJob) -> TestJob,
) -> Result<JobOutcome, Failure> {
    let (_, hosts, ranks) = PLACEMENTS[placement];
    let library = TestLibrary::of(build_trees::build());
    let compiled = library.compiled(&program.source, mode)?;
    let nodes = ranks.iter().sum();
    let mut job = library.job(&compiled, &program.args, JobLauncher::Gasnetrun, nodes)?;
    for (name, value) in &program.env {
        job = job.env(name, value);
    }
    let job = set_up(job).env("GASNET_SSH_SERVERS", servers(placement));
    let ended = job.below(&with_hosts(), hosts).watchdog(Duration::from_secs(300)).run()?;
    ended.tidy()?;
    ended.passed(&program.name)?;
    crossed(&ended, nodes)?;
    Ok(ended)
}

/// Each rank sent messages in frames.
fn crossed(ended: &JobOutcome, nodes: u32) -> Result<(), Failure> {
    match ended.counters.iter().map(|c| c.framed).sum::<u64>() {
        0 => Err(ended.failure("no message went to another host")),
        _ if ended.counters.len() == nodes as usize => Ok(()),
        _ => Err(ended.failure(format!("{} ranks have counted", ended.counters.len()))),
    }
}

/// The first message to a rank waits for its connection, and its sender exits no sooner. Several
/// times, as it may be in time by chance.
fn last_messages() -> Result<(), Failure> {
    let library = TestLibrary::of(build_trees::build());
    let source = build_trees::root().join("capi-tests/barrierend.c");
    let compiled = library.compiled(&source, ClientMode::Seq)?;
    for _ in 0..6 {
        let job = library.job(&compiled, &[], JobLauncher::Gasnetrun, 4)?;
        let ended = on_two(job).watchdog(Duration::from_secs(60)).run()?;
        ended.tidy()?;
        if ended.code != Some(0) || ended.output.contains("cuts off") {
            return Err(ended.failure("the last messages of a rank were lost"));
        }
    }
    Ok(())
}

/// Cases of testexit that crash, and the exit code.
const CRASHES: [(&str, &str, i32); 2] = [("abort", "103", 134), ("null", "104", 139)];

/// The network that connects the hosts does not change how a crash ends the job. AUTO loads
/// libfabric, which may load libraries that handle signals.
fn crashes(case: &str, code: i32) -> Result<(), Failure> {
    let library = TestLibrary::of(build_trees::build());
    let source = build_trees::root().join("capi-tests/testexit.c");
    let compiled = library.compiled(&source, ClientMode::Seq)?;
    let job = library.job(&compiled, &[case.into()], JobLauncher::Gasnetrun, 2)?;
    let job = on_two(job).env("GASNET_NETWORK", "AUTO");
    let ended = job.watchdog(Duration::from_secs(60)).run()?;
    ended.tidy()?;
    match ended.code == Some(code) && ended.says("*** Caught a fatal signal") {
        true => Ok(()),
        false => Err(ended.failure(format!("expected exit code {code} and a fatal signal"))),
    }
}

/// GASNET_VERBOSEENV says where rank 0 listens.
fn address_is_named() -> Result<(), Failure> {
    let library = TestLibrary::of(build_trees::build());
    let source = build_trees::root().join("capi-tests/testhello.c");
    let compiled = library.compiled(&source, ClientMode::Seq)?;
    let job = library.job(&compiled, &[], JobLauncher::Gasnetrun, 2)?;
    let job = on_two(job).env("GASNET_NETWORK", "TCP").env("GASNET_VERBOSEENV", "1");
    let ended = job.watchdog(Duration::from_secs(60)).run()?;
    ended.tidy()?;
    match ended.output.matches("use TCP; rank 0 is at 10.77.0.1, from which packets").count() {
        1 => Ok(()),
        n => Err(ended.failure(format!("{n} lines name the address of rank 0"))),
    }
}

/// A flood waits at its sender, whole: the memory of no rank grows much.
fn floods(mode: ClientMode, messages: u64) -> Result<(), Failure> {
    let library = TestLibrary::of(build_trees::build());
    let source = build_trees::root().join("capi-tests/deaftarget.c");
    let compiled = library.compiled(&source, mode)?;
    let args = [messages.to_string(), "5".to_string(), "500".to_string()];
    let job = library.job(&compiled, &args, JobLauncher::Gasnetrun, 2)?;
    let watchdog = Duration::from_secs(120 + messages / 10_000);
    let ended = on_two(job).watchdog(watchdog).run()?;
    ended.tidy()?;
    ended.passed("deaftarget")
}

/// Rank 0 names memory that rank 1, of another host, has not: the line says so of these ranks.
/// There they are numbers 3 and 0: those of the own host come first.
fn is_refused(operation: &str, case: &str) -> Result<(), Failure> {
    let library = TestLibrary::of(build_trees::build());
    let program = program::named("testeverything").ok_or("there is no testeverything")?;
    let compiled = library.compiled(&program.source, ClientMode::EverythingSeq)?;
    let job = library.job(&compiled, &[case.into()], JobLauncher::Gasnetrun, 4)?;
    let job = job.env("GASNET_SSH_SERVERS", "host1:1,host2:3");
    let ended = job.below(&with_hosts(), "2").watchdog(Duration::from_secs(120)).run()?;
    ended.tidy()?;
    let line = |l: &str| {
        l.contains(operation)
            && l.contains(" by rank 0 failed: rank 1 has no ")
            && l.contains(" bytes at 0x")
    };
    match ended.code {
        Some(1) if ended.output.lines().any(line) => Ok(()),
        _ => Err(ended.failure("no line names the ranks of the refused access")),
    }
}

/// The ranks of one host may lock little memory: all ranks use the small regions that fit there.
fn limits_differ(mode: ClientMode) -> Result<(), Failure> {
    const LITTLE: &str = "[ $(cat /proc/sys/kernel/hostname) = host2 ] || exec \"$@\"; \
                          ulimit -l 64; exec setpriv --bounding-set=-ipc_lock \"$@\"";
    let library = TestLibrary::of(build_trees::build());
    let program = program::named("testfirehose").ok_or("there is no testfirehose")?;
    let compiled = library.compiled(&program.source, mode)?;
    let args = ["-c", LITTLE, "sh", &compiled.display().to_string(), "40"].map(str::to_string);
    let job = library.job(Path::new("/bin/sh"), &args, JobLauncher::Gasnetrun, 4)?;
    let job = program.env.iter().fold(job, |job, (name, value)| job.env(name, value));
    let job = job.env("GASNET_FIREHOSE_VERBOSE", "1").env("GASNET_SSH_SERVERS", "host1:2,host2:2");
    let ended = job.below(&with_hosts(), "2").watchdog(Duration::from_secs(300)).run()?;
    ended.tidy()?;
    match ended.output.lines().filter(|l| l.contains("firehose: regions of 16KB; ")).count() {
        4 => ended.passed(&program.name),
        n => Err(ended.failure(format!("{n} ranks have regions of 16 KB"))),
    }
}

/// In LARGE, each rank attaches the largest segment that it may. The rank that has a host for
/// itself has a longer one than the others.
fn largest_segments() -> Result<(), Failure> {
    let library = TestLibrary::of(build_trees::build());
    let program = program::named("testsegment").ok_or("there is no testsegment")?;
    let compiled = library.compiled(&program.source, ClientMode::LargeSeq)?;
    let job = library.job(&compiled, &[], JobLauncher::Gasnetrun, 5)?;
    let job = job.env("GASNET_SSH_SERVERS", "host1:1,host2:4");
    let ended = job.below(&with_hosts(), "2").watchdog(Duration::from_secs(120)).run()?;
    ended.tidy()?;
    ended.passed(&program.name)
}

/// The hosts know the user of the job by different numbers.
fn users_differ() -> Result<(), Failure> {
    // The other user may not write the counters.
    const OTHER: &str = "unset GASNET_TEST_COUNTERS; \
                         [ $(cat /proc/sys/kernel/hostname) = host2 ] || exec \"$@\"; \
                         exec setpriv --reuid=65534 --regid=65534 --clear-groups \"$@\"";
    let library = TestLibrary::of(build_trees::build());
    let program = program::named("testgasnet").ok_or("there is no testgasnet")?;
    let compiled = library.compiled(&program.source, ClientMode::Seq)?;
    let args = ["-c", OTHER, "sh", &compiled.display().to_string()].map(str::to_string);
    let args = [&args[..], &program.args].concat();
    let job = library.job(Path::new("/bin/sh"), &args, JobLauncher::Gasnetrun, 4)?;
    let job = program.env.iter().fold(job, |job, (name, value)| job.env(name, value));
    let job = job.env("GASNET_SSH_SERVERS", "host1:2,host2:2");
    let ended = job.below(&with_hosts(), "2").watchdog(Duration::from_secs(120)).run()?;
    ended.passed(&program.name)
}

/// The library of one host has another version: `gasnet_init` says so on each rank, once for all
/// that have the same one.
fn other_version(network: &str) -> Result<(), Failure> {
    let library = TestLibrary::of(build_trees::build_faults());
    let source = build_trees::root().join("capi-tests/testhello.c");
    let compiled = library.compiled(&source, ClientMode::Seq)?;
    let job = library.job(&compiled, &[], JobLauncher::Gasnetrun, 4)?;
    let job = job
        .env("GASNET_TEST_FAULT", "other_version")
        .env("GASNET_NETWORK", network)
        .env("GASNET_SSH_SERVERS", "host1:2,host2:2");
    let ended = job.below(&with_hosts(), "2").watchdog(Duration::from_secs(60)).run()?;
    ended.tidy()?;
    let version = env!("CARGO_PKG_VERSION");
    let line = format!("gasnet_init(): this rank runs libgasnet {version}, but rank 2 runs ");
    match ended.code == Some(1) && ended.output.contains(&line) {
        true => Ok(()),
        false => Err(ended.failure("no line names both versions")),
    }
}

/// Puts to a target that computes complete meanwhile, or not before it polls.
fn computes(mode: ClientMode, progress: Option<&str>, completes: bool) -> Result<(), Failure> {
    let library = TestLibrary::of(build_trees::build());
    let source = build_trees::root().join("capi-tests/busytarget.c");
    let compiled = library.compiled(&source, mode)?;
    let seconds = if completes { "60" } else { "1" };
    let mut job = library.job(&compiled, &[seconds.into()], JobLauncher::Gasnetrun, 2)?;
    if let Some(progress) = progress {
        job = job.env("GASNET_PROGRESS", progress);
    }
    let ended = on_two(job).watchdog(Duration::from_secs(120)).run()?;
    ended.tidy()?;
    if completes {
        return ended.passed("busytarget");
    }
    match ended.code {
        Some(1) if ended.output.contains("no put arrived in 1 s") => Ok(()),
        _ => Err(ended.failure("a put completed although no thread delivers it")),
    }
}
