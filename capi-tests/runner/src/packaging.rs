//! Releases and packages, whole: the scripts of `packaging/`, for the soak only. Called by the
//! list of cases.
//!
//! Invariant: a case passes only if its script has run and ended with 0, or counts as
//! skipped, with the reason.

use crate::{Failure, TestCase, build_trees, case_end};
use std::fs;
use std::process::Command;

/// The scripts, and a program that each needs.
const SCRIPTS: &[(&str, &str)] =
    &[("release", "git"), ("debian", "mmdebstrap"), ("rpm", "rpmbuild")];

/// What the scripts that fill another system need besides.
const ROOT: &str = "the power of root";
/// The exit code of a script that lacks something.
const SKIPPED: i32 = 77;

/// One case for each script.
pub fn cases() -> Vec<TestCase> {
    let case = |&(script, needed): &(&'static str, &'static str)| {
        let case = TestCase::new(format!("packaging::{script}"), false, move || passes(script));
        let mut case = case.needs(needed);
        if script != "release" && sys::process::user() != 0 {
            case.missing = Some(ROOT.into());
        }
        case
    };
    let mut all: Vec<TestCase> = SCRIPTS.iter().map(case).collect();
    let name = "packaging::debian_without_a_mirror".to_string();
    let mut without = TestCase::new(name, true, without_a_mirror).needs("mmdebstrap");
    if sys::process::user() != 0 {
        without.missing = Some(ROOT.into());
    }
    all.push(without);
    let name = "packaging::a_tagged_version_is_not_tagged_again".to_string();
    all.push(TestCase::new(name, true, tagged_version).needs("git"));
    all
}

/// In a repository whose version has a tag already, before anything is built.
fn tagged_version() -> Result<(), Failure> {
    let repository = build_trees::build().join("capi-tests/packaging/tagged");
    let _ = fs::remove_dir_all(&repository);
    let script = build_trees::root().join("packaging/release.sh");
    let set_up = r#"
        mkdir -p packaging include && cp "$1" packaging && git init -q
        echo 'version = "7.0.0"' >Cargo.toml
        echo '## [7.0.0] - 2026-01-01' >CHANGELOG.md
        echo '"7.0.0"' >include/gasnet_config.h
        git add . && git -c user.name=n -c user.email=e@invalid commit -q -m one && git tag v7.0.0
        CARGO=false packaging/release.sh --tag"#;
    fs::create_dir_all(&repository).map_err(|e| format!("{}: {e}", repository.display()))?;
    let mut command = Command::new("sh");
    command.args(["-ec", set_up, "sh"]).arg(script).current_dir(&repository);
    let ended = command.output().map_err(|e| e.to_string())?;
    let said = String::from_utf8_lossy(&ended.stderr);
    if ended.status.code() == Some(1) && said.contains("v7.0.0 is tagged already") {
        return Ok(());
    }
    Err(format!("{}\n{said}", ended.status))
}

/// Nothing is built for a system that no mirror has; a line says so.
fn without_a_mirror() -> Result<(), Failure> {
    let ended = script("debian").env("SUITE", "none-such").output().map_err(|e| e.to_string())?;
    let printed = String::from_utf8_lossy(&ended.stdout);
    let known = ["no mirror has packages of Debian none-such", "this root may not mount"];
    if ended.status.code() == Some(SKIPPED) && known.iter().any(|line| printed.starts_with(line)) {
        return Ok(());
    }
    Err(format!("{}\n{printed}{}", ended.status, String::from_utf8_lossy(&ended.stderr)))
}

fn script(name: &str) -> Command {
    let mut command = Command::new("timeout");
    let path = build_trees::root().join(format!("packaging/{name}.sh"));
    command.args(["-k", "5", "3600"]).arg(path);
    command
}

/// Runs the script, which builds.
fn passes(name: &str) -> Result<(), Failure> {
    let ended = script(name).output().map_err(|e| format!("timeout: {e}"))?;
    if ended.status.success() {
        return Ok(());
    }
    if ended.status.code() == Some(SKIPPED) {
        return case_end::skip(&case_end::reason_of(&ended.stdout));
    }
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Err(format!("{}\n{}{}", ended.status, text(&ended.stdout), text(&ended.stderr)))
}
