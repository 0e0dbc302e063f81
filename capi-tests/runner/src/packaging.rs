//! Releases and packages, whole: the scripts of `packaging/`, for the soak only. Called by the
//! list of cases.
//!
//! Invariant: a case passes only if its script has run and ended with 0.

use crate::{Failure, TestCase, build_trees};
use std::process::Command;

/// The scripts, and a program that each needs.
const SCRIPTS: &[(&str, &str)] =
    &[("release", "git"), ("debian", "mmdebstrap"), ("rpm", "rpmbuild")];

/// One case for each script.
pub fn cases() -> Vec<TestCase> {
    let case = |&(script, needed): &(&'static str, &'static str)| {
        let case = TestCase::new(format!("packaging::{script}"), false, move || passes(script));
        let mut case = case.needs(needed);
        if script == "debian" && sys::process::user() != 0 {
            case.missing = Some("the power of root".into());
        }
        case
    };
    SCRIPTS.iter().map(case).collect()
}

/// Runs the script, which builds.
fn passes(script: &str) -> Result<(), Failure> {
    let path = build_trees::root().join(format!("packaging/{script}.sh"));
    let ended = Command::new("timeout").args(["-k", "5", "3600"]).arg(path).output();
    let ended = ended.map_err(|e| format!("timeout: {e}"))?;
    if ended.status.success() {
        return Ok(());
    }
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Err(format!("{}\n{}{}", ended.status, text(&ended.stdout), text(&ended.stderr)))
}
