//! Checks of `ci/` of which `make check` has a sample, whole, for the soak only:
//! `ci/cross-check.sh` for each target of `cross/` that this machine can build, and
//! `ci/headers.sh`.
//!
//! Invariant: a case passes only if its script has run and ended with 0.

use crate::{Failure, TestCase, build_trees};
use std::process::Command;

/// One case for each target, and one for the headers.
pub fn cases() -> Vec<TestCase> {
    let files = std::fs::read_dir(build_trees::root().join("cross"));
    let mut targets: Vec<String> = files
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|f| {
            f.file_name().to_string_lossy().strip_suffix(".target").map(str::to_string)
        })
        .collect();
    targets.sort();
    let case = |target: String| {
        let possible = can_build(&target);
        let name = format!("cross::{target}");
        let mut case =
            TestCase::new(name, false, move || checked("ci/cross-check.sh", &[&target]));
        if !possible {
            case.missing = Some("Rust's library or a feature set for it".into());
        }
        case
    };
    let mut all: Vec<TestCase> = targets.into_iter().map(case).collect();
    all.push(TestCase::new("headers".to_string(), false, || checked("ci/headers.sh", &[])));
    all
}

/// Whether this machine and this version of the library can build for it.
fn can_build(target: &str) -> bool {
    let mut shell = Command::new("sh");
    shell.args(["-c", "target=$1; . ci/cross/target.sh", "sh", target]);
    let ended = shell.current_dir(build_trees::root()).output();
    ended.is_ok_and(|out| out.status.success())
}

/// Runs a script. Not as a `TestJob`: the jobs that the script runs are, one at a time.
fn checked(script: &str, args: &[&str]) -> Result<(), Failure> {
    let script = build_trees::root().join(script);
    let mut command = Command::new("timeout");
    command.args(["-k", "5", "2700"]).arg(script).args(args);
    let ended = command.output().map_err(|e| format!("timeout: {e}"))?;
    if ended.status.success() {
        return Ok(());
    }
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Err(format!("{}\n{}{}", ended.status, text(&ended.stdout), text(&ended.stderr)))
}
