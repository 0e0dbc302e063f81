//! Long simulations of credits, firehoses and supervisors, for the soak only; `cargo test` runs
//! short ones.
//!
//! Invariant: a case passes only if the simulator has run and ended with 0: all goals met.

use crate::job_launcher::JobLauncher;
use crate::test_job::TestJob;
use crate::{Failure, TestCase, build_trees};
use std::path::Path;
use std::time::Duration;

/// The simulators, and for how many ranks.
const SIMULATED: &[(&str, &[&str])] = &[
    ("credit-sim", &["64", "1024", "10000"]),
    ("firehose-sim", &["2", "3", "8", "64", "1024", "65536"]),
];

/// One case for each simulator and number of ranks; the supervisors of many hosts; and the cost of
/// a hit of the firehose.
pub fn cases(seed: u64) -> Vec<TestCase> {
    let case = |name: String, simulator: &'static str, args: Vec<String>| {
        TestCase::new(name, false, move || simulate(simulator, &args))
    };
    let mut all = Vec::new();
    for &(simulator, sizes) in SIMULATED {
        for ranks in sizes {
            let seed = seed.to_string();
            let args = ["--table", "--ranks", ranks, "--seed", &seed].map(String::from);
            all.push(case(format!("simulation::{simulator}::{ranks}"), simulator, args.to_vec()));
        }
    }
    all.push(case("simulation::launch-sim".into(), "launch-sim", vec!["--table".to_string()]));
    let speed = vec!["--speed".to_string()];
    all.push(case("simulation::firehose-sim::speed".into(), "firehose-sim", speed));
    all
}

fn simulate(simulator: &str, args: &[String]) -> Result<(), Failure> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let built = ["run", "--quiet", "--release", "-p", simulator, "--"].map(String::from);
    let args: Vec<String> = built.into_iter().chain(args.iter().cloned()).collect();
    // The first run builds.
    let ended =
        TestJob::new(&build_trees::build(), Path::new(&cargo), &args, JobLauncher::Alone, 1)
            .watchdog(Duration::from_secs(2700))
            .run()?;
    match ended.code {
        Some(0) => Ok(()),
        _ => Err(ended.failure("the simulator failed, or a goal is missed")),
    }
}
