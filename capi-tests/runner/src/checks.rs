//! Debug checks. Every program passes with GASNET_DEBUG_CHECKS=1, since no program misuses the
//! library. A client compiled with GASNET_DEBUG gets the checks without the variable. The cases
//! of `testbad` show what the checks detect.

use crate::build_trees::{self, ClientMode};
use crate::job_launcher::JobLauncher;
use crate::matrix;
use crate::program::{self, TestProgram};
use crate::test_job::TestJob;
use crate::{Failure, TestCase};
use std::fs;
use std::time::Duration;

/// Programs of the short run.
const SAMPLED: &[&str] = &["testhsl", "testgasnet", "testam"];

const MISUSE: &str = "#include <gasnet.h>\n\
    int main(int argc, char **argv) {\n\
    \x20   gasnet_init(&argc, &argv);\n\
    \x20   gasnet_hold_interrupts();\n\
    \x20   gasnet_hold_interrupts();\n\
    \x20   gasnet_exit(0);\n\
    \x20   return 0;\n\
    }\n";

/// Each program, mode and path; clients compiled with and without checks.
pub fn cases() -> Vec<TestCase> {
    let mut all = Vec::new();
    for program in program::all().into_iter().filter(matrix::has_settings) {
        for &mode in &program.modes {
            for portals in [false, true] {
                let path = if portals { "portals" } else { "cross-mapped" };
                let sampled = SAMPLED.contains(&program.name.as_str())
                    && (mode == ClientMode::Par) != portals;
                let p = program.clone();
                let name = format!("checks::{}::{}::{path}", p.name, mode.name());
                all.push(TestCase::new(name, sampled, move || passes(&p, mode, portals)));
            }
        }
    }
    for (name, define, value, noticed) in [
        ("debug", "-DGASNET_DEBUG=1", None, true),
        ("debug_but_off", "-DGASNET_DEBUG=1", Some("0"), false),
        ("plain", "-DGASNET_NDEBUG=1", None, false),
        ("plain_but_on", "-DGASNET_NDEBUG=1", Some("1"), true),
    ] {
        all.push(TestCase::new(format!("checks::client::{name}"), true, move || {
            client(name, define, value, noticed)
        }));
    }
    all
}

fn passes(program: &TestProgram, mode: ClientMode, portals: bool) -> Result<(), Failure> {
    let compiled = build_trees::compiled(&program.source, mode)?;
    let nodes =
        (2..).find(|&n| program.nodes.allow(n)).expect("some number of processes is allowed");
    let mut job = TestJob::new(
        &build_trees::build(),
        &compiled,
        &program.args,
        JobLauncher::Gasnetrun,
        nodes,
    )
    .watchdog(Duration::from_secs(300))
    .env("GASNET_DEBUG_CHECKS", "1");
    for (name, value) in &program.env {
        job = job.env(name, value);
    }
    if portals {
        job = job.env("GASNET_SUPERNODE_MAXSIZE", "1");
    }
    let ended = job.run()?;
    ended.tidy()?;
    if ended.code != Some(0) || !ended.says(&format!("{}: PASS", program.name)) {
        return Err(ended.failure("it did not pass with debug checks on"));
    }
    Ok(())
}

fn client(name: &str, define: &str, value: Option<&str>, noticed: bool) -> Result<(), Failure> {
    build_trees::require(&build_trees::build())?;
    let dir = build_trees::build().join("capi-tests/checks");
    fs::create_dir_all(&dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    let (source, program) = (dir.join(format!("{name}.c")), dir.join(name));
    fs::write(&source, MISUSE).map_err(|e| format!("{}: {e}", source.display()))?;
    let lib = build_trees::build().join("lib");
    let mut cc = build_trees::compiler();
    cc.args(["-DGASNET_PAR", define, "-I"])
        .arg(build_trees::build().join("include"))
        .arg(&source)
        .arg("-o")
        .arg(&program);
    cc.arg("-L").arg(&lib).arg(format!("-Wl,-rpath,{}", lib.display())).arg("-lgasnet");
    build_trees::succeed(cc)?;
    let mut job = TestJob::new(&build_trees::build(), &program, &[], JobLauncher::Gasnetrun, 1)
        .watchdog(Duration::from_secs(60));
    if let Some(value) = value {
        job = job.env("GASNET_DEBUG_CHECKS", value);
    }
    let ended = job.run()?;
    ended.tidy()?;
    if noticed != (ended.code != Some(0))
        || noticed != ended.output.contains("gasnet_hold_interrupts()")
    {
        return Err(ended.failure(if noticed {
            "the misuse was accepted"
        } else {
            "checks are on"
        }));
    }
    Ok(())
}
