//! Ranks that exit while their trace cannot be written, or while a function of the client does not
//! return: they end, with their code, and what can be written is complete.

use super::{compiled_from, folder, read};
use crate::Failure;
use crate::build_trees;
use crate::job_launcher::JobLauncher;
use crate::outcome::JobOutcome;
use crate::test_job::TestJob;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::time::Duration;

/// A rank that takes longer hangs.
const HANG: Duration = Duration::from_secs(60);

/// Exits as its first argument says, in the state that its second one names.
const PROGRAM: &str = r#"
#include <gasnet.h>
#include <gasnet_tools.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
static int *volatile nowhere;
static void *polls(void *p) {
    for (;;) {
        gasnet_AMPoll();
        pthread_testcancel();
    }
    return p;
}
static void waits(void (*format)(const char *, ...)) {
    (void)format;
    for (;;) pause();
}
int main(int argc, char **argv) {
    const char *how = argc > 1 ? argv[1] : "", *state = argc > 2 ? argv[2] : "";
    struct pollfd pipe = {-1, POLLOUT, 0};
    pthread_t thread;
    if (!strcmp(state, "named")) {
        execl("/proc/self/exe", "t\xe9", how, (char *)NULL);
        return 9;
    }
    if (!strcmp(state, "stuck") || !strcmp(state, "filled")) {
        if (mkfifo(getenv("GASNET_TRACEFILE"), 0600)) return 9;
        pipe.fd = open(getenv("GASNET_TRACEFILE"), O_RDWR);
    }
    if (!strcmp(state, "full")) dup2(open("/dev/full", O_WRONLY), 2);
    gasnet_init(&argc, &argv);
    gasnet_attach(NULL, 0, GASNET_PAGESIZE, 0);
    if (!strcmp(state, "stuck")) {
        pthread_create(&thread, NULL, polls, NULL);
        while (poll(&pipe, 1, 0) == 1) usleep(1000);
        usleep(300000);
    } else if (!strcmp(state, "filled")) {
        fcntl(pipe.fd, F_SETFL, O_RDWR | O_NONBLOCK);
        while (write(pipe.fd, "x", 1) > 0) continue;
        printf("last words\n");
    } else if (!strcmp(state, "waits")) {
        if (!GASNETT_STATS_INIT(waits)) return 9;
    } else if (!strcmp(state, "without")) {
        GASNETT_STATS_INIT(waits);
        if (!GASNETT_STATS_INIT(NULL)) return 9;
    } else if (!strcmp(state, "cancelled")) {
        pthread_create(&thread, NULL, polls, NULL);
        usleep(200000);
        pthread_cancel(thread);
        pthread_join(thread, NULL);
        gasnet_AMPoll();
    } else if (!strcmp(state, "unloaded")) {
        char *name = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        strcpy(name, "plugin.c");
        gasneti_trace_from(name, 7);
        munmap(name, 4096);
        return 0;
    }
    if (!strcmp(how, "return")) return 0;
    if (!strcmp(how, "term")) raise(SIGTERM);
    if (!strcmp(how, "crash")) *nowhere = 1;
    if (!strcmp(how, "fatal")) gasnett_fatalerror("it fails");
    gasnet_exit(5);
}
"#;

/// What a rank says whose exit hooks take too long.
const CUT: &str = "its trace or its statistics are not complete: they were not written in time";

/// Runs the program with the trace and the statistics in these files.
fn run(how: &str, state: &str, vars: &[(&str, &OsStr)]) -> Result<JobOutcome, Failure> {
    let program = compiled_from(PROGRAM, "ends", "PAR")?;
    let args = [how.to_string(), state.to_string()];
    let tree = build_trees::build();
    let mut job = TestJob::new(&tree, &program, &args, JobLauncher::Gasnetrun, 1).watchdog(HANG);
    for (name, value) in vars {
        job = job.env(name, value);
    }
    let ended = job.run()?;
    ended.tidy()?;
    Ok(ended)
}

fn ends_with(ended: &JobOutcome, code: i32) -> Result<(), Failure> {
    match ended.code == Some(code) {
        true => Ok(()),
        false => Err(ended.failure(format!("expected exit code {code}"))),
    }
}

/// A thread is in a write to a pipe that no process reads.
pub(super) fn stuck_reader() -> Result<(), Failure> {
    for (how, code) in [("term", 128 + 15), ("crash", 128 + 11), ("exit", 5), ("fatal", 128 + 6)] {
        let pipe = folder("stuck")?.join("pipe");
        let vars = [
            ("GASNET_TRACEFILE", pipe.as_os_str()),
            ("GASNET_TRACEFLUSH", OsStr::new("1")),
            ("GASNET_BACKTRACE", OsStr::new("0")),
        ];
        ends_with(&run(how, "stuck", &vars)?, code)?;
    }
    Ok(())
}

/// A pipe has no room when the trace is closed. The program's own output is complete.
pub(super) fn full_pipe() -> Result<(), Failure> {
    for (how, code) in [("exit", 5), ("return", 0)] {
        let pipe = folder("filled")?.join("pipe");
        let ended = run(how, "filled", &[("GASNET_TRACEFILE", pipe.as_os_str())])?;
        ends_with(&ended, code)?;
        if let Some(text) = ["last words\n", CUT].iter().find(|t| !ended.output.contains(**t)) {
            return Err(ended.failure(format!("{how}: it does not say {text:?}")));
        }
    }
    Ok(())
}

/// The trace has its end and the statistics have theirs.
fn are_whole(ended: &JobOutcome, dir: &Path) -> Result<(), Failure> {
    let (trace, stats) = (read(ended, &dir.join("trace"))?, read(ended, &dir.join("stats"))?);
    match trace.ends_with("(I) END:\n") && stats.contains("(C) ") && stats.ends_with('\n') {
        true => Ok(()),
        false => Err(ended.failure(format!("a file is not complete:\n{trace}\n{stats}"))),
    }
}

fn in_files(how: &str, state: &str, more: &[(&str, &str)]) -> Result<JobOutcome, Failure> {
    let dir = folder(&format!("ends-{how}-{state}"))?;
    let (trace, stats) = (dir.join("trace"), dir.join("stats"));
    let mut vars =
        vec![("GASNET_TRACEFILE", trace.as_os_str()), ("GASNET_STATSFILE", stats.as_os_str())];
    vars.extend(more.iter().map(|(name, value)| (*name, OsStr::new(*value))));
    let ended = run(how, state, &vars)?;
    are_whole(&ended, &dir)?;
    Ok(ended)
}

/// A function of GASNETT_STATS_INIT that never returns. It is not called after a crash.
pub(super) fn endless_statistics() -> Result<(), Failure> {
    for (how, state, code, is_cut) in [
        ("exit", "waits", 5, true),
        ("term", "waits", 128 + 15, true),
        ("crash", "waits", 128 + 11, false),
        ("fatal", "waits", 128 + 6, false),
        ("exit", "without", 5, false),
    ] {
        let ended = in_files(how, state, &[("GASNET_BACKTRACE", "0")])?;
        ends_with(&ended, code)?;
        if ended.output.contains(CUT) != is_cut {
            return Err(ended.failure(format!("{how} {state}: {CUT:?}: expected {is_cut}")));
        }
    }
    Ok(())
}

/// A thread that was cancelled, a name whose memory is unmapped, a standard error without room, a
/// fatal error whose signal no handler takes.
pub(super) fn other_states() -> Result<(), Failure> {
    let flush = [("GASNET_TRACEFLUSH", "1")];
    ends_with(&in_files("exit", "cancelled", &flush)?, 5)?;
    ends_with(&in_files("", "unloaded", &[])?, 0)?;
    ends_with(&in_files("exit", "full", &[("GASNET_VERBOSEENV", "1")])?, 5)?;
    ends_with(&in_files("fatal", "", &[("GASNET_NO_CATCH_SIGNAL", "*")])?, 128 + 6)
}

/// Names of a program and of files need not be UTF-8.
pub(super) fn names_of_bytes() -> Result<(), Failure> {
    let dir = folder("bytes")?;
    let named = |rank: &str| {
        let name = [dir.as_os_str().as_bytes(), b"/t\xe9-", rank.as_bytes()].concat();
        OsStr::from_bytes(&name).to_os_string()
    };
    let ended = run("exit", "named", &[("GASNET_TRACEFILE", &named("%"))])?;
    ends_with(&ended, 5)?;
    let trace = read(&ended, Path::new(&named("0")))?;
    match trace.contains(" program=t\u{fffd}\n") {
        true => Ok(()),
        false => Err(ended.failure(format!("the program has another name:\n{trace}"))),
    }
}
