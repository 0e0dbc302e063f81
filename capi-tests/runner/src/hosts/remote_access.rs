//! Jobs on two hosts whose puts and gets go by remote memory access of libfabric, which the
//! counters prove. A rank that dies meanwhile ends the job as ever.

use super::{
    OFI_PROVIDERS, PLACEMENTS, in_case_name, missing_provider, over, servers, with_hosts,
};
use crate::build_trees::{self, ClientMode};
use crate::job_launcher::JobLauncher;
use crate::outcome::JobOutcome;
use crate::program::{self, TestProgram};
use crate::sample::{self, SampleRandom};
use crate::test_job::TestJob;
use crate::test_library::TestLibrary;
use crate::{Failure, TestCase};
use std::path::Path;
use std::time::Duration;

const PROGRAMS: [&str; 6] =
    ["testgasnet", "testsmall", "testlarge", "testword", "testvis", "testcoll"];

/// Kills a rank of host 2 while puts are under way, and prints how the job ended.
const KILL_SCRIPT: &str = r#"
"$1" -n 4 "$2" >out 2>&1 &
job=$!
tries=0
until grep -q 'it flows' out || [ $tries -gt 600 ]; do
    tries=$((tries + 1)); sleep 0.05
done
$GASNET_SSH_CMD host2 'pkill -9 -o putflood'
began=$(date +%s%N)
wait $job
code=$?
took=$((($(date +%s%N) - began) / 1000000))
sed 's/^/said: /' out
[ $took -lt 10000 ] && echo "code $code"
"#;

/// What putflood runs with.
#[derive(Clone, Copy)]
enum Flood {
    /// A segment of FAST.
    Fast,
    /// A segment of LARGE: it is registered in blocks.
    Large,
    /// As over a provider that chooses the keys and wants addresses (FI_MR_BASIC).
    Basic,
}

impl Flood {
    const ALL: [(Flood, &str); 3] = [
        (Flood::Fast, "putflood"),
        (Flood::Large, "putflood-large"),
        (Flood::Basic, "putflood-basic"),
    ];
}

/// What a case runs.
enum Work {
    Program(TestProgram),
    Flood(Flood),
}

/// With remote memory access by this provider.
fn remote(job: TestJob, provider: &str) -> TestJob {
    over(job, Some(provider)).env("GASNET_OFI_RMA", "YES").env("GASNET_VERBOSEENV", "1")
}

/// Programs over each provider, and a death. The sample meets all programs and providers.
pub(super) fn cases(seed: u64) -> Vec<TestCase> {
    let mut settings = Vec::new();
    for provider in 0..OFI_PROVIDERS.len() {
        let programs = program::all().into_iter().filter(|p| PROGRAMS.contains(&&*p.name));
        let works = programs.map(|p| (p.name.to_string(), Work::Program(p)));
        let floods = Flood::ALL.map(|(flood, name)| (name.to_string(), Work::Flood(flood)));
        settings.extend(works.chain(floods).enumerate().map(|(n, work)| (provider, n, work)));
    }
    let mut random = SampleRandom::new(seed, "hosts remote access");
    let traits = |(provider, n, _): &(usize, usize, (String, Work))| [*provider as u64, *n as u64];
    let taken = sample::cover(&settings, &mut random, traits);
    let mut all = Vec::new();
    for (i, (at, _, (name, work))) in settings.into_iter().enumerate() {
        let (provider, shown) = (OFI_PROVIDERS[at], in_case_name(OFI_PROVIDERS[at]));
        let name = format!("hosts::remote_access::{shown}::{name}");
        let run = move || match &work {
            Work::Program(program) => passes(program, provider),
            Work::Flood(flood) => floods(*flood, provider),
        };
        all.push(TestCase::new(name, taken.contains(&i), run));
    }
    for (at, provider) in OFI_PROVIDERS.into_iter().enumerate() {
        let name = format!("hosts::remote_access::{}::killed", in_case_name(provider));
        all.push(TestCase::new(name, at == 0, move || killed(provider)));
    }
    let missing = OFI_PROVIDERS.map(missing_provider);
    for case in &mut all {
        let of = OFI_PROVIDERS
            .iter()
            .position(|provider| case.name.contains(&format!("::{}::", in_case_name(provider))));
        case.missing = of.and_then(|at| missing[at].clone());
    }
    all
}

/// It passes; messages went by remote memory access, and a line says so.
fn passes(program: &TestProgram, provider: &str) -> Result<(), Failure> {
    let library = TestLibrary::of(build_trees::build());
    let compiled = library.compiled(&program.source, ClientMode::Par)?;
    // Many programs put to a neighbour: it is on the other host.
    let job = library.job(&compiled, &program.args, JobLauncher::Gasnetrun, 2)?;
    let mut job = job.env("GASNET_SSH_SERVERS", "host1,host2");
    for (name, value) in &program.env {
        job = job.env(name, value);
    }
    let ended = run(remote(job, provider))?;
    ended.passed(&program.name)?;
    // Its puts and gets are words, which stay in frames.
    if program.name == "testword" { Ok(()) } else { went_remotely(&ended, 2) }
}

/// Many puts of many sizes are under way at once, and all bytes come back.
fn floods(flood: Flood, provider: &str) -> Result<(), Failure> {
    let (tree, mode, name, value) = match flood {
        Flood::Fast => (build_trees::build(), ClientMode::Par, "GASNET_OFI_RMA", "YES"),
        Flood::Large => {
            let region = ("GASNET_FIREHOSE_MAXREGION_SIZE", "64KB");
            (build_trees::build(), ClientMode::LargeSeq, region.0, region.1)
        }
        Flood::Basic => {
            (build_trees::build_faults(), ClientMode::Par, "GASNET_TEST_FAULT", "ofi_basic")
        }
    };
    let library = TestLibrary::of(tree);
    let source = build_trees::root().join("capi-tests/putflood.c");
    let compiled = library.compiled(&source, mode)?;
    let job = library.job(&compiled, &["100".into()], JobLauncher::Gasnetrun, 4)?;
    let job = remote(job, provider).env("GASNET_SSH_SERVERS", servers(0)).env(name, value);
    let ended = run(job)?;
    match ended.output.lines().filter(|line| line.ends_with(": 0 wrong")).count() {
        4 if ended.code == Some(0) => went_remotely(&ended, 4),
        _ => Err(ended.failure("bytes are wrong")),
    }
}

fn run(job: TestJob) -> Result<JobOutcome, Failure> {
    let (_, hosts, _) = PLACEMENTS[0];
    let ended = job.below(&with_hosts(), hosts).watchdog(Duration::from_secs(300)).run()?;
    ended.tidy()?;
    Ok(ended)
}

/// This number of ranks have counted; messages went by remote memory access, as a line says.
fn went_remotely(ended: &JobOutcome, ranks: usize) -> Result<(), Failure> {
    if !ended.output.contains("by remote memory access, which trusts the network") {
        return Err(ended.failure("no line says that it trusts the network"));
    }
    match ended.counters.iter().map(|c| c.remote).sum::<u64>() {
        0 => Err(ended.failure("no message went by remote memory access")),
        _ if ended.counters.len() == ranks => Ok(()),
        n => Err(ended.failure(format!("{n} ranks have counted"))),
    }
}

/// A rank dies while puts are under way.
fn killed(provider: &'static str) -> Result<(), Failure> {
    let library = TestLibrary::of(build_trees::build());
    let source = build_trees::root().join("capi-tests/putflood.c");
    let compiled = library.compiled(&source, ClientMode::Par)?;
    let gasnetrun = build_trees::build().join("bin/gasnetrun").display().to_string();
    let args = ["-c", KILL_SCRIPT, "sh", &gasnetrun, &compiled.display().to_string()];
    let job = library.job(Path::new("/bin/sh"), &args.map(String::from), JobLauncher::Alone, 1)?;
    let job = remote(job, provider).env("GASNET_SSH_SERVERS", servers(0));
    let ended = run(job.in_own_folder())?;
    match ended.output.lines().any(|line| line == "code 137") {
        true => Ok(()),
        false => Err(ended.failure("137 was due, soon")),
    }
}
