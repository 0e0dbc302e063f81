//! The report that SIGUSR1 to a launcher prints: for each rank, what it waits in. For a rank
//! that is stopped, spins in its own code or blocks its signals, the report names that
//! state. The spinning rank has waited shortly before.
//!
//! A second program waits in other ways: in a barrier while it serves messages, for handler-safe
//! locks, in a collective. One rank is in a handler that sleeps.

use crate::build_trees::{self, ClientMode};
use crate::job_launcher::JobLauncher;
use crate::outcome::JobOutcome;
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

const WAITS: &str = "#include <gasnet.h>\n#include <gasnet_coll.h>\n#include <gasnet_tools.h>\n\
    #include <pthread.h>\n#include <signal.h>\n#include <unistd.h>\n\
    #define SLEEPS 200\n#define NOTHING 201\n\
    static gasnet_hsl_t a = GASNET_HSL_INITIALIZER, b = GASNET_HSL_INITIALIZER;\n\
    static pthread_barrier_t both;\n\
    static void sleeps(gasnet_token_t token) { (void)token; sleep(5); }\n\
    static void nothing(gasnet_token_t token) { (void)token; }\n\
    static void barrier(void) {\n\
    \x20   gasnet_barrier_notify(0, GASNET_BARRIERFLAG_ANONYMOUS);\n\
    \x20   gasnet_barrier_wait(0, GASNET_BARRIERFLAG_ANONYMOUS);\n\
    }\n\
    static void lock(gasnet_hsl_t *first, gasnet_hsl_t *second) {\n\
    \x20   gasnet_hsl_lock(first);\n\
    \x20   pthread_barrier_wait(&both);\n\
    \x20   gasnet_hsl_lock(second);\n\
    }\n\
    static void *other(void *unused) { lock(&b, &a); return unused; }\n\
    int main(int argc, char **argv) {\n\
    \x20   gasnet_handlerentry_t table[] = {{SLEEPS, (void (*)())sleeps}, {NOTHING, (void (*)())nothing}};\n\
    \x20   pthread_t thread;\n\
    \x20   int me, i;\n\
    \x20   if (gasnet_init(&argc, &argv) || gasnet_attach(table, 2, 65536, 0)) return 1;\n\
    \x20   gasnet_coll_init(NULL, 0, NULL, 0, 0);\n\
    \x20   me = (int)gasnet_mynode();\n\
    \x20   barrier();\n\
    \x20   if (me == 0 || me == 2) barrier();\n\
    \x20   if (me == 1) {\n\
    \x20       pthread_barrier_init(&both, NULL, 2);\n\
    \x20       pthread_create(&thread, NULL, other, NULL);\n\
    \x20       lock(&a, &b);\n\
    \x20   }\n\
    \x20   if (me == 4) gasnet_coll_broadcast(GASNET_TEAM_ALL, &i, 0, &i, sizeof i,\n\
    \x20       GASNET_COLL_IN_MYSYNC | GASNET_COLL_OUT_MYSYNC | GASNET_COLL_LOCAL);\n\
    \x20   usleep(300000);\n\
    \x20   gasnet_AMRequestShort0(2, SLEEPS);\n\
    \x20   for (i = 0; i < 200; i++) { gasnet_AMRequestShort0(0, NOTHING); usleep(10000); }\n\
    \x20   kill(getppid(), SIGUSR1);\n\
    \x20   sleep(1);\n\
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
    let name = "report::waits".to_string();
    all.push(TestCase::new(name, true, each_wait_is_named));
    all
}

/// The output of a job of this program.
fn report_of(
    name: &str,
    text: &str,
    mode: ClientMode,
    launcher: JobLauncher,
    ranks: u32,
) -> Result<JobOutcome, Failure> {
    build_trees::require(&build_trees::build())?;
    let dir = build_trees::build().join("capi-tests/report");
    fs::create_dir_all(&dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    let source = dir.join(name);
    if fs::read_to_string(&source).ok().as_deref() != Some(text) {
        fs::write(&source, text).map_err(|e| format!("{}: {e}", source.display()))?;
    }
    let program = build_trees::compiled(&source, mode)?;
    let job = TestJob::new(&build_trees::build(), &program, &[], launcher, ranks)
        .watchdog(Duration::from_secs(60));
    let ended = job.run()?;
    ended.tidy()?;
    Ok(ended)
}

fn each_wait_is_named() -> Result<(), Failure> {
    let ended = report_of("waits.c", WAITS, ClientMode::Par, JobLauncher::Gasnetrun, 5)?;
    let line = |rank: u32| {
        let begin = format!("*** rank {rank} (pid ");
        ended.output.lines().find(|l| l.starts_with(&begin)).unwrap_or_default()
    };
    let expected = [
        (0, "waits in gasnet_barrier_wait since "),
        (2, "runs handler 200 for rank 3 since "),
        (4, "waits in gasnet_coll_broadcast since "),
    ];
    for (rank, what) in expected {
        // The messages that rank 0 serves, and the handler, do not begin the time anew.
        let seconds = line(rank).split_once(what).and_then(|(_, rest)| rest.split_once(" s"));
        let seconds = seconds.and_then(|(seconds, _)| seconds.parse::<f64>().ok());
        if seconds.is_none_or(|seconds| seconds < 1.0) {
            return Err(ended.failure(format!("no line says that rank {rank} {what}1 s or more")));
        }
    }
    if line(1).matches("waits for the handler-safe lock 0x").count() != 2 {
        return Err(ended.failure("no line says that two threads of rank 1 wait for a lock"));
    }
    Ok(())
}

fn each_rank_has_a_line(launcher: JobLauncher, mode: ClientMode) -> Result<(), Failure> {
    let ended = report_of("states.c", STATES, mode, launcher, 4)?;
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
