//! Fuzzing, and tests under the sanitizers and valgrind: scripts of `ci`, for the soak only.
//!
//! Invariant: a case passes only if its script has run and ended with 0.

use crate::job_launcher::JobLauncher;
use crate::test_job::TestJob;
use crate::{Failure, TestCase, build_trees};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Seconds of a target under libFuzzer.
const SECONDS: &str = "120";

/// The tools of `ci/sanitize.sh`, a part of what each runs over, and a program that it needs.
const TOOLS: &[(&str, Option<&str>, &str)] = &[
    ("address", Some("portals3"), "cargo"),
    ("address", Some("conduit"), "cargo"),
    ("address", Some("programs"), "clang"),
    ("thread", Some("portals3"), "cargo"),
    ("thread", Some("conduit"), "cargo"),
    ("valgrind", None, "valgrind"),
];

/// One case for each target that has a corpus, and for each tool and part.
pub fn cases() -> Vec<TestCase> {
    let corpus = std::fs::read_dir(build_trees::root().join("fuzz/corpus"));
    let mut targets: Vec<String> = corpus
        .into_iter()
        .flatten()
        .flatten()
        .map(|folder| folder.file_name().to_string_lossy().into_owned())
        .collect();
    targets.sort();
    let fuzz = |target: String| {
        TestCase::new(format!("fuzz::{target}"), false, move || {
            script("fuzz.sh", &[SECONDS, &target])
        })
    };
    let tools = TOOLS.iter().map(|&(tool, part, needed)| {
        let name = format!("sanitize::{tool}::{}", part.unwrap_or("programs"));
        let case = TestCase::new(name, false, move || {
            let args: Vec<&str> = [tool].into_iter().chain(part).collect();
            script("sanitize.sh", &args)
        });
        let mut case = case.needs(needed);
        if tool == "thread" && !has_std_sources() {
            case.missing = Some("the sources of std (rustup component rust-src)".into());
        }
        case
    });
    targets.into_iter().map(fuzz).chain(tools).collect()
}

/// Whether the toolchain has the sources of the standard library.
fn has_std_sources() -> bool {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let out = Command::new(rustc).args(["--print", "sysroot"]).output();
    out.is_ok_and(|out| {
        let sysroot = String::from_utf8_lossy(&out.stdout).into_owned();
        Path::new(sysroot.trim()).join("lib/rustlib/src/rust/library").is_dir()
    })
}

fn script(name: &str, args: &[&str]) -> Result<(), Failure> {
    let script = build_trees::root().join("ci").join(name);
    let args: Vec<String> = args.iter().map(|arg| arg.to_string()).collect();
    // The first run of a script builds.
    let ended = TestJob::new(&build_trees::build(), &script, &args, JobLauncher::Alone, 1)
        .watchdog(Duration::from_secs(2700))
        .run()?;
    match ended.code {
        Some(0) => Ok(()),
        Some(77) => Err(ended.failure("this machine lacks what the script needs")),
        _ => Err(ended.failure("the script failed")),
    }
}
