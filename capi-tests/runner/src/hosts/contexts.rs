//! Jobs on three hosts whose threads use several contexts of libfabric at once
//! (GASNET_OFI_THREAD_GROUPING).

use super::{PLACEMENTS, missing_provider, over, passed};
use crate::build_trees::ClientMode;
use crate::program::{self, TestProgram};
use crate::{Failure, TestCase};

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
    let (_, _, ranks) = PLACEMENTS[PLACEMENT];
    let others = ranks.iter().sum::<u32>() - 1;
    let ended = passed(program, PLACEMENT, ClientMode::Par, |job| {
        over(job, Some(PROVIDER))
            .env("GASNET_OFI_THREAD_GROUPING", "YES")
            .env("GASNET_OFI_RMA", if remote { "YES" } else { "NO" })
            .env("GASNET_VERBOSEENV", "1")
    })?;
    match ended.output.contains(&format!(" in {others} contexts: ")) {
        true => Ok(()),
        false => Err(ended.failure("no line says that there are several contexts")),
    }
}
