//! Many more ranks than CPUs: 1,000 barriers of each kind among 64 ranks must end. They take
//! seconds if waiting ranks yield the CPU, and minutes if they do not.

use crate::build_trees::{self, ClientMode};
use crate::job_launcher::JobLauncher;
use crate::sample::SampleRandom;
use crate::test_library::TestLibrary;
use crate::{Failure, TestCase, program};
use std::time::Duration;

const NODES: u32 = 64;

/// Paths x launchers; the sample has one.
pub fn cases(seed: u64) -> Vec<TestCase> {
    let mut all = Vec::new();
    let taken = SampleRandom::new(seed, "wait").below(4);
    for launcher in [JobLauncher::Gasnetrun, JobLauncher::PshmNodes] {
        for portals in [false, true] {
            let name = format!(
                "wait::n{NODES}::{}::{}",
                if portals { "portals" } else { "cross-mapped" },
                launcher.name()
            );
            let sampled = all.len() as u64 == taken;
            all.push(TestCase::new(name, sampled, move || ends(launcher, portals)));
        }
    }
    all
}

fn ends(launcher: JobLauncher, portals: bool) -> Result<(), Failure> {
    let source = program::named("testbarrier").ok_or("there is no testbarrier")?.source;
    let compiled = build_trees::compiled(&source, ClientMode::Seq)?;
    let mut job = TestLibrary::of(build_trees::build()).job(
        &compiled,
        &["1000".to_string()],
        launcher,
        NODES,
    )?;
    if portals {
        job = job.env("GASNET_SUPERNODE_MAXSIZE", "1");
    }
    let ended = job.watchdog(Duration::from_secs(300)).run()?;
    ended.tidy()?;
    ended.passed("testbarrier")
}
