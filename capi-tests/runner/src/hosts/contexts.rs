//! Jobs on three hosts whose threads use several contexts of libfabric at once
//! (GASNET_OFI_THREAD_GROUPING).

use super::{PLACEMENTS, crossed, missing_provider, over, servers, with_hosts};
use crate::build_trees::{self, ClientMode};
use crate::job_launcher::JobLauncher;
use crate::program::{self, TestProgram};
use crate::test_library::TestLibrary;
use crate::{Failure, TestCase};
use std::time::Duration;

/// The provider that has them.
const PROVIDER: &str = "sockets";
/// Three hosts, with different numbers of ranks.
const PLACEMENT: usize = 2;

const PROGRAMS: [&str; 7] =
    ["testgasnet", "testam", "testmedium", "testlarge", "testcoll", "testbarrier", "testthreads"];
/// Those of the sample.
const SAMPLED: [&str; 2] = ["testgasnet", "testlarge"];

/// Programs in frames, and by remote memory access.
pub(super) fn cases() -> Vec<TestCase> {
    let mut all = Vec::new();
    for p in program::all().into_iter().filter(|p| PROGRAMS.contains(&&*p.name)) {
        for remote in [false, true] {
            let how = if remote { "remote" } else { "frames" };
            let name = format!("hosts::contexts::{how}::{}", p.name);
            let (p, sampled) = (p.clone(), SAMPLED.contains(&&*p.name));
            all.push(TestCase::new(name, sampled, move || passes(&p, remote)));
        }
    }
    let missing = missing_provider(PROVIDER);
    for case in &mut all {
        case.missing.clone_from(&missing);
    }
    all
}

/// It passes, and a line says that there are as many contexts as other ranks.
fn passes(program: &TestProgram, remote: bool) -> Result<(), Failure> {
    let (_, hosts, ranks) = PLACEMENTS[PLACEMENT];
    let nodes: u32 = ranks.iter().sum();
    let library = TestLibrary::of(build_trees::build());
    let compiled = library.compiled(&program.source, ClientMode::Par)?;
    let job = library.job(&compiled, &program.args, JobLauncher::Gasnetrun, nodes)?;
    let job = program.env.iter().fold(job, |job, (name, value)| job.env(name, value));
    let job = over(job, Some(PROVIDER))
        .env("GASNET_OFI_THREAD_GROUPING", "YES")
        .env("GASNET_OFI_RMA", if remote { "YES" } else { "NO" })
        .env("GASNET_VERBOSEENV", "1")
        .env("GASNET_SSH_SERVERS", servers(PLACEMENT));
    let ended = job.below(&with_hosts(), hosts).watchdog(Duration::from_secs(600)).run()?;
    ended.tidy()?;
    ended.passed(&program.name)?;
    match ended.output.contains(&format!(" in {} contexts: ", nodes - 1)) {
        true => crossed(&ended, nodes),
        false => Err(ended.failure("no line says that there are several contexts")),
    }
}
