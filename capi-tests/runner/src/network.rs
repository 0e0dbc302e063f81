//! The tests of crate `portals3`, repeated more often than `cargo test` does, and with those that
//! it ignores: for the soak only.

use crate::job_launcher::JobLauncher;
use crate::test_job::TestJob;
use crate::{Failure, TestCase, build_trees};
use std::path::PathBuf;
use std::time::Duration;

/// Test target, the features it needs, and the variable and value that repeat it more often.
const SUITES: &[(&str, &str, &str, &str)] = &[
    ("stress", "", "PORTALS3_STRESS", "60"),
    ("reference", "", "PROPTEST_CASES", "20000"),
    ("conformance", "", "PORTALS3_STRESS", "3"),
    ("pauses", "faults", "PORTALS3_STRESS", "3"),
];

/// One case per test target.
pub fn cases() -> Vec<TestCase> {
    let case = |&(suite, features, variable, value): &(
        &'static str,
        &'static str,
        &'static str,
        &'static str,
    )| {
        TestCase::new(format!("portals3::{suite}"), false, move || {
            repeated(suite, features, variable, value)
        })
    };
    SUITES.iter().map(case).collect()
}

fn repeated(suite: &str, features: &str, variable: &str, value: &str) -> Result<(), Failure> {
    let cargo = PathBuf::from(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    let manifest = build_trees::root().join("Cargo.toml").display().to_string();
    let args = [
        "test",
        "--quiet",
        "--manifest-path",
        &manifest,
        "-p",
        "portals3",
        "--features",
        features,
        "--test",
        suite,
        "--",
        "--include-ignored",
    ]
    .map(str::to_string);
    let ended = TestJob::new(&build_trees::build(), &cargo, &args, JobLauncher::Alone, 1)
        .env(variable, value)
        .watchdog(Duration::from_secs(900))
        .run()?;
    ended.tidy()?;
    if ended.code != Some(0) || !ended.says("test result: ok") {
        return Err(ended.failure("a test of portals3 failed"));
    }
    Ok(())
}
