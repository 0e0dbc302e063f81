//! Many more ranks than CPUs: barriers of each kind among 64 ranks must end. 1,000 of them take
//! seconds if waiting ranks yield the CPU, and minutes if they do not.

use crate::build_trees::{self, ClientMode};
use crate::job_launcher::JobLauncher;
use crate::sample::SampleRandom;
use crate::test_library::TestLibrary;
use crate::{Failure, TestCase, program};
use std::time::Duration;

const NODES: u32 = 64;
/// Barriers of each kind, in the sample and in the others.
const BARRIERS: [u32; 2] = [100, 1000];

/// Paths x launchers x barriers; the sample has a short one.
pub fn cases(seed: u64) -> Vec<TestCase> {
    let mut all = Vec::new();
    let taken = SampleRandom::new(seed, "wait").below(4);
    for barriers in BARRIERS {
        for launcher in [JobLauncher::Gasnetrun, JobLauncher::PshmNodes] {
            for portals in [false, true] {
                let name = format!(
                    "wait::n{NODES}::{}::{}::{barriers}",
                    if portals { "portals" } else { "cross-mapped" },
                    launcher.name()
                );
                let sampled = all.len() as u64 == taken;
                all.push(TestCase::new(name, sampled, move || ends(launcher, portals, barriers)));
            }
        }
    }
    all
}

fn ends(launcher: JobLauncher, portals: bool, barriers: u32) -> Result<(), Failure> {
    let source = program::named("testbarrier").ok_or("there is no testbarrier")?.source;
    let compiled = build_trees::compiled(&source, ClientMode::Seq)?;
    let library = TestLibrary::of(build_trees::build());
    let mut job = library.job(&compiled, &[barriers.to_string()], launcher, NODES)?;
    if portals {
        job = job.env("GASNET_SUPERNODE_MAXSIZE", "1");
    }
    // Start and end take some seconds, whatever is between them.
    let limit = Duration::from_secs(30 + 3 * u64::from(barriers) / 10);
    let ended = job.watchdog(limit).run()?;
    ended.tidy()?;
    ended.passed("testbarrier")
}
