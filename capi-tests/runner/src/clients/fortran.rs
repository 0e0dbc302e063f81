//! A client in Fortran: it runs, and its job ends as that of a client in C when it hangs, though
//! libgfortran handles signals.

use super::{dir, passes, pkg, prefix, sources};
use crate::Failure;
use crate::build_trees::{compiler, succeed};
use crate::injector::{FaultKind, InjectedFault};
use crate::job_launcher::JobLauncher;
use crate::test_job::TestJob;
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use sys::signal::Signal;

pub(super) fn run() -> Result<(), Failure> {
    let prefix = prefix()?;
    let dir = dir("fortran")?;
    let program = dir.join("program");
    let mut compile = Command::new("gfortran");
    compile.arg("-J").arg(&dir).arg(sources().join("hello.f90")).arg("-o").arg(&program);
    compile.args(pkg(&prefix, &["--libs", "gasnet-portals-par"])?);
    succeed(compile)?;
    let c = dir.join("c");
    let mut cc = compiler();
    cc.arg(sources().join("hello.c")).arg("-o").arg(&c);
    cc.args(pkg(&prefix, &["--cflags", "--libs", "gasnet-portals-par"])?);
    succeed(cc)?;
    for launcher in [JobLauncher::Gasnetrun, JobLauncher::PshmNodes] {
        passes(&prefix, &program, &[], launcher)?;
        hung_fortran_ends(&prefix, &program, &c, launcher)?;
    }
    Ok(())
}

/// A hung Fortran job ends after SIGTERM as a hung C job does. Its ranks print no stacks, which
/// takes a second.
fn hung_fortran_ends(
    prefix: &Path,
    fortran: &Path,
    c: &Path,
    launcher: JobLauncher,
) -> Result<(), Failure> {
    const ROUNDS: usize = 5;
    const FACTOR: u32 = 10;
    let mut least = [Duration::MAX; 2];
    for _ in 0..ROUNDS {
        for (program, least) in [fortran, c].into_iter().zip(&mut least) {
            *least = hung_job_ends(prefix, program, launcher)?.min(*least);
        }
    }
    let [fortran, c] = least;
    if fortran <= FACTOR * c {
        return Ok(());
    }
    Err(format!(
        "after SIGTERM a hung Fortran job took {fortran:?}, a C job {c:?}, the best of {ROUNDS}"
    ))
}

/// How long a job that computes forever takes to end after SIGTERM.
fn hung_job_ends(
    prefix: &Path,
    program: &Path,
    launcher: JobLauncher,
) -> Result<Duration, Failure> {
    let hang = ["hang".to_string()];
    let job = TestJob::new(prefix, program, &hang, launcher, 2).without_library_path();
    let fault = InjectedFault { after: Duration::ZERO, kind: FaultKind::Signal(Signal::TERM, 0) };
    let both = |output: &str| output.matches("computes").count() == 2;
    let ended = job.watchdog(Duration::from_secs(60)).once(both).fault(fault).run()?;
    ended.tidy()?;
    match ended.after_kill {
        Some(after) if ended.code == Some(143) && !ended.output.contains("Backtrace") => Ok(after),
        _ => Err(ended.failure("expected exit code 143 and no stack")),
    }
}
