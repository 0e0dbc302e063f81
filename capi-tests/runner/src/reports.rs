//! The report that SIGUSR1 to a launcher prints: for each rank, what it waits in. For a rank
//! that is stopped, spins in its own code or blocks its signals, the report names that
//! state. The spinning rank has waited shortly before.

use crate::build_trees::{self, ClientMode};
use crate::job_launcher::JobLauncher;
use crate::test_job::TestJob;
use crate::{Failure, TestCase};
use std::fs;
use std::time::Duration;

const STATES: &str = "#include <gasnet.h>\n#include <gasnet_tools.h>\n#include <signal.h>\n#include <unistd.h>\n\
    int main(int argc, char **argv) {\n\
    \x20   sigset_t all;\n\
    \x20   gasnett_tick_t start;\n\
    \x20   unsigned me;\n\
    \x20   if (gasnet_init(&argc, &argv) || gasnet_attach(NULL, 0, 65536, 0)) return 1;\n\
    \x20   me = gasnet_mynode();\n\
    \x20   gasnet_barrier_notify(0, GASNET_BARRIERFLAG_ANONYMOUS);\n\
    \x20   gasnet_barrier_wait(0, GASNET_BARRIERFLAG_ANONYMOUS);\n\
    \x20   if (me == 0) {\n\
    \x20       gasnet_barrier_notify(0, GASNET_BARRIERFLAG_ANONYMOUS);\n\
    \x20       gasnet_barrier_wait(0, GASNET_BARRIERFLAG_ANONYMOUS);\n\
    \x20   }\n\
    \x20   if (me == 2) raise(SIGSTOP);\n\
    \x20   if (me == 3) {\n\
    \x20       sigfillset(&all);\n\
    \x20       sigprocmask(SIG_BLOCK, &all, NULL);\n\
    \x20       for (;;) gasnett_sched_yield();\n\
    \x20   }\n\
    \x20   usleep(300000);\n\
    \x20   if (me == 1) kill(getppid(), SIGUSR1);\n\
    \x20   start = gasnett_ticks_now();\n\
    \x20   while (gasnett_ticks_to_ns(gasnett_ticks_now() - start) < 2000000000u) gasnett_sched_yield();\n\
    \x20   gasnet_exit(0);\n\
    }\n";

/// Both of our launchers, both modes.
pub fn cases() -> Vec<TestCase> {
    let mut all = Vec::new();
    for launcher in [JobLauncher::Gasnetrun, JobLauncher::PshmNodes] {
        for mode in [ClientMode::Seq, ClientMode::Par] {
            let name = format!("report::{}::{}", launcher.name(), mode.name());
            let sampled = (launcher == JobLauncher::Gasnetrun) == (mode == ClientMode::Par);
            all.push(TestCase::new(name, sampled, move || each_rank_has_a_line(launcher, mode)));
        }
    }
    all
}

fn each_rank_has_a_line(launcher: JobLauncher, mode: ClientMode) -> Result<(), Failure> {
    build_trees::require(&build_trees::build())?;
    let dir = build_trees::build().join("capi-tests/report");
    fs::create_dir_all(&dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    let source = dir.join("states.c");
    if fs::read_to_string(&source).ok().as_deref() != Some(STATES) {
        fs::write(&source, STATES).map_err(|e| format!("{}: {e}", source.display()))?;
    }
    let program = build_trees::compiled(&source, mode)?;
    let job = TestJob::new(&build_trees::build(), &program, &[], launcher, 4)
        .watchdog(Duration::from_secs(60));
    let ended = job.run()?;
    ended.tidy()?;
    let expected = [
        "waits in gasnet_barrier_wait since",
        "does not wait in the library; operations outstanding: 0; credits: ",
        "is stopped; kill -CONT",
        "does not answer",
    ];
    for (rank, what) in expected.into_iter().enumerate() {
        let line = |l: &str| l.starts_with(&format!("*** rank {rank} (pid ")) && l.contains(what);
        if !ended.output.lines().any(line) {
            return Err(ended.failure(format!("no line says that rank {rank} {what}")));
        }
    }
    Ok(())
}
