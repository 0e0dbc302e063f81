//! The visible effects of the tools interface. Tested are stacks printed by each means, on a
//! call, a signal and a crash. Also processes that freeze, and what resumes or ends them, and
//! the report of the debug malloc services. In a job, and with the tools library alone.

use crate::build_trees;
use crate::injector::{FaultKind, InjectedFault};
use crate::job_launcher::JobLauncher;
use crate::outcome::JobOutcome;
use crate::test_job::TestJob;
use crate::{Failure, TestCase};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::time::Duration;
use sys::signal::Signal;

/// Prints the stack of a function: by a call, on a signal, or as it crashes.
const STACK: &str = r#"
#ifndef ALONE
#include <gasnet.h>
#endif
#include <gasnet_tools.h>
#include <signal.h>
#include <string.h>
volatile int depth;
int *volatile nowhere;
__attribute__((__noinline__)) void the_deepest(const char *how) {
    depth++;
    if (!strcmp(how, "signal")) raise(SIGUSR1);
    else if (!strcmp(how, "crash")) *nowhere = 1;
    else if (!strcmp(how, "overflow")) {
        volatile char frame[4096];
        frame[depth % 4096] = 1;
        the_deepest(how);
        depth += frame[7];
    }
    else if (gasnett_print_backtrace(2)) puts("no means");
    depth--;
}
int main(int argc, char **argv) {
#ifndef ALONE
    gasnet_init(&argc, &argv);
    gasnet_attach(NULL, 0, 0, 0);
#endif
    the_deepest(argc > 1 ? argv[1] : "call");
    puts("went on");
    fflush(stdout);
#ifndef ALONE
    gasnet_exit(0);
#endif
    return 0;
}
"#;

/// A signal freezes it, and a thread resumes it.
const FREEZE: &str = r#"
#include <gasnet.h>
#include <gasnet_tools.h>
#include <signal.h>
static void *thaw(void *p) {
    while (!gasnet_frozen) usleep(10000);
    gasnet_frozen = 0;
    return p;
}
int main(int argc, char **argv) {
    pthread_t t;
    gasnet_init(&argc, &argv);
    gasnet_attach(NULL, 0, 0, 0);
    pthread_create(&t, NULL, thaw, NULL);
    raise(SIGUSR2);
    pthread_join(t, NULL);
    puts("went on");
    fflush(stdout);
    gasnet_exit(0);
    return 0;
}
"#;

/// Prints its progress; rank 1 crashes if asked to.
const FROZEN: &str = r#"
#include <gasnet.h>
int *volatile nowhere;
int main(int argc, char **argv) {
    gasnet_init(&argc, &argv);
    puts("came in");
    fflush(stdout);
    gasnet_attach(NULL, 0, 0, 0);
    if (argc > 1 && gasnet_mynode() == 1) *nowhere = 1;
    gasnet_barrier_notify(0, GASNET_BARRIERFLAG_ANONYMOUS);
    gasnet_barrier_wait(0, GASNET_BARRIERFLAG_ANONYMOUS);
    puts("went on");
    fflush(stdout);
    gasnet_exit(0);
    return 0;
}
"#;

/// The message of a frozen process.
const IS_FROZEN: &str = "is frozen for a debugger";

/// Leaves an object in the heap.
const LEAK: &str = r#"
#define GASNET_DEBUGMALLOC 1
#ifndef ALONE
#include <gasnet.h>
#endif
#include <gasnet_tools.h>
int main(int argc, char **argv) {
    (void)argc; (void)argv;
    gasnett_debug_free(gasnett_debug_malloc(7));
#ifndef ALONE
    gasnet_init(&argc, &argv);
    gasnet_attach(NULL, 0, 0, 0);
#endif
    strcpy((char *)gasnett_debug_malloc(100), "left");
#ifndef ALONE
    gasnet_exit(0);
#endif
    return 0;
}
"#;

/// A forked child ends, with the heap of the rank; it must not write the report.
const FORKS: &str = r#"
#define GASNET_DEBUGMALLOC 1
#include <gasnet.h>
#include <gasnet_tools.h>
#include <sys/wait.h>
#include <unistd.h>
int main(int argc, char **argv) {
    gasnet_init(&argc, &argv);
    gasnet_attach(NULL, 0, 0, 0);
    strcpy((char *)gasnett_debug_malloc(100), "left");
    if (fork() == 0) exit(0);
    wait(NULL);
    gasnet_exit(access(getenv("GASNET_MALLOCFILE"), F_OK) == 0 ? 9 : 0);
    return 0;
}
"#;

/// Several threads fail, and a stack takes two seconds.
const FAILURES: &str = r#"
#include <gasnet.h>
#include <gasnet_tools.h>
#include <string.h>
static pthread_barrier_t all;
int *volatile nowhere;
static int slow(int fd) {
    usleep(2000000);
    return write(fd, "the stack\n", 10) != 10;
}
gasnett_backtrace_type_t gasnett_backtrace_user = {"SLOW", slow, 1};
static void *fail(void *how) {
    if (!strcmp((char *)how, "text")) {
        pthread_barrier_wait(&all);
        gasnett_fatalerror("all threads say no");
    }
    if (!strcmp((char *)how, "crash")) *nowhere = 1;
    gasnet_put(77, NULL, &all, 4);
    return how;
}
int main(int argc, char **argv) {
    int i;
    gasnet_init(&argc, &argv);
    gasnet_attach(NULL, 0, 0, 0);
    pthread_barrier_init(&all, NULL, (unsigned)argc - 1);
    for (i = 1; i < argc; i++) {
        pthread_t thread;
        pthread_create(&thread, NULL, fail, argv[i]);
        usleep(100000);
    }
    pause();
    return 0;
}
"#;

/// All cases; gdb takes seconds, so the short run skips it.
pub fn cases() -> Vec<TestCase> {
    let mut all = Vec::new();
    let mut add = |name: &str, sampled: bool, run: fn() -> Result<(), Failure>| {
        all.push(TestCase::new(format!("tools::{name}"), sampled, run));
    };
    add("stack::execinfo", true, || {
        says(&stack(false, Some("EXECINFO"), None)?, &["stack", "went on"])
    });
    add("stack::addr2line", true, || {
        says(&stack(false, Some("ADDR2LINE"), None)?, &["the_deepest", "stack.c:", "went on"])
    });
    add("stack::fallback", true, || {
        let ended = stack(false, Some("PSTACK,ADDR2LINE"), Some(("PATH", "/nowhere")))?;
        says(&ended, &["no means", "went on"])
    });
    add("stack::unknown", true, || {
        let ended = stack(false, Some("EXECINFO,SMOKE"), None)?;
        says(&ended, &["GASNET_BACKTRACE_TYPE", "SMOKE", "ADDR2LINE"])
    });
    add("stack::alone", true, || {
        says(&stack(true, Some("ADDR2LINE"), None)?, &["the_deepest", "stack.c:", "went on"])
    });
    add("signal::backtrace", true, || {
        let program = compiled("stack", STACK, false)?;
        let ended = TestJob::new(
            &build_trees::build(),
            &program,
            &["signal".to_string()],
            JobLauncher::Gasnetrun,
            1,
        )
        .watchdog(Duration::from_secs(120))
        .env("GASNET_BACKTRACE_SIGNAL", "SIGUSR1")
        .env("GASNET_BACKTRACE_TYPE", "ADDR2LINE")
        .run()?;
        ended.tidy()?;
        says(&ended, &["SIGUSR1", "the_deepest", "went on"])
    });
    add("signal::freeze", true, || {
        let program = compiled("freeze", FREEZE, false)?;
        let ended = TestJob::new(&build_trees::build(), &program, &[], JobLauncher::Gasnetrun, 1)
            .watchdog(Duration::from_secs(120))
            .env("GASNET_FREEZE_SIGNAL", "USR2")
            .run()?;
        ended.tidy()?;
        says(&ended, &["frozen for a debugger", "went on"])
    });
    add("crash::silent", true, || {
        let ended = crash(false, "ADDR2LINE")?;
        says(&ended, &["Caught a fatal signal: SIGSEGV", "set GASNET_BACKTRACE=1"])?;
        match ended.output.contains("the_deepest") {
            true => Err(ended.failure("it prints a stack unasked")),
            false => Ok(()),
        }
    });
    add("crash::execinfo", true, || {
        says(&crash(true, "EXECINFO")?, &["SIGSEGV", "job/stack(+0x"])
    });
    add("crash::addr2line", true, || {
        says(&crash(true, "ADDR2LINE")?, &["SIGSEGV", "the_deepest", "stack.c:"])
    });
    add("crash::default", true, || {
        let ended = crash_of(2, true, None)?;
        says(&ended, &["[0] the_deepest at ", "[1] the_deepest at ", "stack.c:"])?;
        match ended.output.contains("gasnet::") {
            true => Err(ended.failure("a stack has frames of the library")),
            false => Ok(()),
        }
    });
    add("crash::slow_stack", true, slow_stacks);
    add("crash::named_overflow", true, named_overflow);
    const CRASH: &str = "Caught a fatal signal: SIGSEGV";
    add("failures::texts", true, || {
        failures(&["text"; 4], 134, &["all threads say no", "the stack"])
    });
    add("failures::error_first", true, || {
        failures(&["error", "crash"], 1, &["gasnet_put()", CRASH, "the stack"])
    });
    add("failures::crash_first", true, || {
        failures(&["crash", "error"], 139, &["gasnet_put()", CRASH, "the stack"])
    });
    add("heap::shared", true, shared_report);
    add("heap::forks", true, forks);
    add("heap::report", true, || report(false));
    add("heap::report_alone", true, || report(true));
    let gdb = || says(&stack(false, Some("GDB"), None)?, &["the_deepest", "stack.c:", "went on"]);
    all.push(TestCase::new("tools::stack::gdb".to_string(), false, gdb).needs("gdb"));
    all.push(TestCase::new("tools::crash::gdb".to_string(), false, gdb_stacks).needs("gdb"));
    for on_error in [false, true] {
        for launcher in [JobLauncher::Gasnetrun, JobLauncher::PshmNodes]
            .into_iter()
            .chain(JobLauncher::foreign())
        {
            for (what, kind) in FAULTS {
                let when = if on_error { "error" } else { "start" };
                let name = format!("tools::freeze::{when}::{}::{what}", launcher.name());
                let run = move || frozen(on_error, launcher, kind);
                // A debugger takes seconds: the sample has one for each launcher.
                let slow =
                    kind == FaultKind::Thaw && on_error == (launcher == JobLauncher::Gasnetrun);
                let case = TestCase::new(name, !launcher.is_foreign() && !slow, run);
                all.push(if kind == FaultKind::Thaw { case.needs("gdb") } else { case });
            }
        }
    }
    all
}

/// A stack overflow is reported, though its signal is that of GASNET_BACKTRACE_SIGNAL.
fn named_overflow() -> Result<(), Failure> {
    let program = compiled("stack", STACK, false)?;
    let args = ["overflow".to_string()];
    let job = TestJob::new(&build_trees::build(), &program, &args, JobLauncher::Gasnetrun, 1);
    let ended = job
        .watchdog(Duration::from_secs(120))
        .env("GASNET_BACKTRACE_SIGNAL", "SEGV")
        .env("GASNET_BACKTRACE_TYPE", "EXECINFO")
        .run()?;
    ended.tidy()?;
    match ended.output.contains("Caught a fatal signal: SIGSEGV") {
        true => Ok(()),
        false => Err(ended.failure("no report of the stack overflow")),
    }
}

fn forks() -> Result<(), Failure> {
    let program = compiled("forks", FORKS, false)?;
    let file = program.with_file_name("forks-heap");
    let _ = fs::remove_file(&file);
    let ended = TestJob::new(&build_trees::build(), &program, &[], JobLauncher::Gasnetrun, 1)
        .watchdog(Duration::from_secs(120))
        .env("GASNET_MALLOCFILE", &file)
        .run()?;
    ended.tidy()?;
    match ended.code == Some(0) && file.exists() {
        true => Ok(()),
        false => Err(ended.failure("a forked child has written the report, or no process has")),
    }
}

/// How a frozen job goes on: a debugger resumes it, its first process gets SIGTERM, or a user
/// types Ctrl-C.
const FAULTS: [(&str, FaultKind); 3] = [
    ("debugger", FaultKind::Thaw),
    ("sigterm", FaultKind::Signal(Signal::TERM, 0)),
    ("ctrl_c", FaultKind::Interrupts(Duration::from_millis(100))),
];

/// Two ranks freeze at their start, or one of them at its crash, until the fault is injected.
fn frozen(on_error: bool, launcher: JobLauncher, kind: FaultKind) -> Result<(), Failure> {
    const AWHILE: Duration = Duration::from_millis(300);
    let program = compiled("frozen", FROZEN, false)?;
    let args: &[String] = if on_error { &["crash".to_string()] } else { &[] };
    let (variable, are_frozen) =
        if on_error { ("GASNET_FREEZE_ON_ERROR", 1) } else { ("GASNET_FREEZE", 2) };
    let ended = TestJob::new(&build_trees::build(), &program, args, launcher, 2)
        .watchdog(Duration::from_secs(120))
        .env(variable, "1")
        .once(move |output| output.matches(IS_FROZEN).count() == are_frozen)
        .fault(InjectedFault { after: AWHILE, kind })
        .run()?;
    ended.tidy()?;
    let Some(after) = ended.after_kill else { return Err(ended.failure("it did not wait")) };
    let (came, went) =
        (ended.output.matches("came in").count(), ended.output.matches("went on").count());
    let code = ended.code.unwrap_or_default();
    let before = if on_error { 2 } else { 0 };
    let (right, far) = match (kind, on_error) {
        (FaultKind::Thaw, false) => (0, (2, 2)),
        (FaultKind::Thaw, true) => (139, (2, 0)),
        // As for any signal that asks a process to end.
        (FaultKind::Signal(signal, _), _) => (128 + signal.number(), (before, 0)),
        _ => (128 + Signal::INT.number(), (before, 0)),
    };
    if (came, went) != far {
        return Err(
            ended.failure(format!("{came} came in and {went} went on, where {far:?} should have"))
        );
    }
    // What another job system's launcher does on a signal, or on a process killed by one, is
    // not ours to judge.
    let theirs = launcher.is_foreign() && right != 0 && code != 0;
    if code != right && !theirs {
        return Err(ended.failure(format!("expected {right}")));
    }
    launcher.soon(2, after).map_err(|late| ended.failure(late))
}

/// A process that crashes, with this means in GASNET_BACKTRACE, if given.
fn crash(asked: bool, means: &str) -> Result<JobOutcome, Failure> {
    crash_of(1, asked, Some(means))
}

/// A program in place of addr2line, which is slow for rank 1 and prints a very long line.
const SLOW: &str = "#!/bin/sh
[ \"$GASNET_RANK\" = 1 ] && sleep 1.5
printf 'a_frame at '
head -c 3000 /dev/zero | tr '\\0' x
echo ' its_end'
";

/// The end of the job, which rank 0 brings about, waits for the stack of rank 1; no line is cut.
fn slow_stacks() -> Result<(), Failure> {
    let dir = build_trees::build().join("capi-tests/tools/slow");
    fs::create_dir_all(&dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    let script = dir.join("addr2line");
    let made = fs::write(&script, SLOW)
        .and_then(|()| fs::set_permissions(&script, fs::Permissions::from_mode(0o755)));
    made.map_err(|e| format!("{}: {e}", script.display()))?;
    let path = format!("{}:{}", dir.display(), std::env::var("PATH").unwrap_or_default());
    let ended = outcome_of_crash(crash_job(2, true, None)?.env("PATH", &path))?;
    for rank in 0..2 {
        let begin = format!("[{rank}] a_frame at x");
        if !ended.output.lines().any(|l| l.starts_with(&begin) && l.ends_with("x its_end")) {
            return Err(ended.failure(format!("rank {rank} has no whole line")));
        }
    }
    Ok(())
}

/// All of these ranks crash.
fn crash_of(ranks: u32, asked: bool, means: Option<&str>) -> Result<JobOutcome, Failure> {
    outcome_of_crash(crash_job(ranks, asked, means)?)
}

fn crash_job(ranks: u32, asked: bool, means: Option<&str>) -> Result<TestJob, Failure> {
    let program = compiled("stack", STACK, false)?;
    let mut job = TestJob::new(
        &build_trees::build(),
        &program,
        &["crash".to_string()],
        JobLauncher::Gasnetrun,
        ranks,
    )
    .watchdog(Duration::from_secs(120));
    if let Some(means) = means {
        job = job.env("GASNET_BACKTRACE_TYPE", means);
    }
    if asked {
        job = job.env("GASNET_BACKTRACE", "1");
    }
    Ok(job)
}

fn outcome_of_crash(job: TestJob) -> Result<JobOutcome, Failure> {
    let ended = job.run()?;
    ended.tidy()?;
    match ended.code {
        Some(139) => Ok(ended),
        _ => Err(ended.failure("expected 139")),
    }
}

/// Two ranks crash at the same time: each has a whole stack, which begins with the client's frame.
fn gdb_stacks() -> Result<(), Failure> {
    let ended = crash_of(2, true, Some("GDB"))?;
    for rank in 0..2 {
        let mark = format!("[{rank}] ");
        let own: Vec<&str> = ended.output.lines().filter_map(|l| l.strip_prefix(&mark)).collect();
        let is_whole = own.first().is_some_and(|l| l.contains("the_deepest"))
            && own.iter().any(|l| l.contains(" main ") && l.contains("stack.c:"));
        if !is_whole {
            return Err(ended.failure(format!("rank {rank} has no whole stack of the client")));
        }
    }
    Ok(())
}

/// Threads that fail in these ways, one after the other: the first ends the rank, with its stack.
/// Each of `words` is printed once.
fn failures(ways: &[&str], code: i32, words: &[&str]) -> Result<(), Failure> {
    let program = compiled("failures", FAILURES, false)?;
    let ways: Vec<String> = ways.iter().map(ToString::to_string).collect();
    let job = TestJob::new(&build_trees::build(), &program, &ways, JobLauncher::Gasnetrun, 1)
        .watchdog(Duration::from_secs(120));
    let ended = job.env("GASNET_BACKTRACE", "1").run()?;
    ended.tidy()?;
    if ended.code != Some(code) {
        return Err(ended.failure(format!("expected {code}")));
    }
    match words.iter().find(|word| ended.output.matches(**word).count() != 1) {
        Some(word) => Err(ended.failure(format!("it does not say {word:?} once"))),
        None => Ok(()),
    }
}

/// A program for a job, or with the tools library alone.
pub(crate) fn compiled(name: &str, source: &str, alone: bool) -> Result<PathBuf, Failure> {
    build_trees::require(&build_trees::build())?;
    let dir =
        build_trees::build().join("capi-tests/tools").join(if alone { "alone" } else { "job" });
    fs::create_dir_all(&dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    let (file, program) = (dir.join(format!("{name}.c")), dir.join(name));
    fs::write(&file, source).map_err(|e| format!("{}: {e}", file.display()))?;
    let lib = build_trees::build().join("lib");
    let mut cc = build_trees::compiler();
    cc.args(["-g", "-O0", "-Wall", "-Wextra", "-Werror", "-D_GNU_SOURCE=1", "-I"])
        .arg(build_trees::build().join("include"));
    cc.args(if alone {
        ["-DALONE", "-DGASNETT_THREAD_SAFE"]
    } else {
        ["-DGASNET_PAR", "-D_REENTRANT"]
    });
    cc.arg(&file)
        .arg("-o")
        .arg(&program)
        .arg("-L")
        .arg(&lib)
        .arg(format!("-Wl,-rpath,{}", lib.display()));
    cc.arg(if alone { "-lgasnet_tools-par" } else { "-lgasnet" }).arg("-lpthread");
    build_trees::succeed(cc)?;
    Ok(program)
}

fn stack(
    alone: bool,
    means: Option<&str>,
    env: Option<(&str, &str)>,
) -> Result<JobOutcome, Failure> {
    let program = compiled("stack", STACK, alone)?;
    let launcher = if alone { JobLauncher::Alone } else { JobLauncher::Gasnetrun };
    let mut job = TestJob::new(&build_trees::build(), &program, &[], launcher, 1)
        .watchdog(Duration::from_secs(120));
    for (name, value) in means.map(|m| ("GASNET_BACKTRACE_TYPE", m)).into_iter().chain(env) {
        job = job.env(name, value);
    }
    let ended = job.run()?;
    ended.tidy()?;
    Ok(ended)
}

fn says(ended: &JobOutcome, words: &[&str]) -> Result<(), Failure> {
    match words.iter().find(|w| !ended.output.contains(**w)) {
        Some(word) => Err(ended.failure(format!("it does not say {word:?}"))),
        None => Ok(()),
    }
}

/// The report names the objects that were left and counts those freed: in a file per rank, or
/// on stderr where there is no job.
fn report(alone: bool) -> Result<(), Failure> {
    let program = compiled("leak", LEAK, alone)?;
    let dir = program.parent().expect("a program is in a directory").to_path_buf();
    let launcher = if alone { JobLauncher::Alone } else { JobLauncher::Gasnetrun };
    let file = if alone { "-".to_string() } else { dir.join("report-%").display().to_string() };
    let nodes = if alone { 1 } else { 2 };
    let ended = TestJob::new(&build_trees::build(), &program, &[], launcher, nodes)
        .watchdog(Duration::from_secs(120))
        .env("GASNET_MALLOCFILE", &file)
        .run()?;
    ended.tidy()?;
    for rank in 0..nodes {
        let text = if alone {
            ended.output.clone()
        } else {
            let file = dir.join(format!("report-{rank}"));
            let text = fs::read_to_string(&file)
                .map_err(|e| ended.failure(format!("{}: {e}", file.display())))?;
            let _ = fs::remove_file(file);
            text
        };
        for words in [
            "2 objects of 107 bytes",
            "1 objects of 100 bytes were not freed",
            "100 bytes at ",
            "leak.c:",
        ] {
            if !text.contains(words) {
                return Err(ended.failure(format!(
                    "the report of rank {rank} does not say {words:?}: {text}"
                )));
            }
        }
    }
    Ok(())
}

/// The reports of two ranks in one file, which was there before.
fn shared_report() -> Result<(), Failure> {
    let program = compiled("leak", LEAK, false)?;
    let file = program.with_file_name("report-shared");
    fs::write(&file, "of another job\n").map_err(|e| format!("{}: {e}", file.display()))?;
    let ended = TestJob::new(&build_trees::build(), &program, &[], JobLauncher::Gasnetrun, 2)
        .watchdog(Duration::from_secs(120))
        .env("GASNET_MALLOCFILE", &file)
        .run()?;
    ended.tidy()?;
    let text = fs::read_to_string(&file)
        .map_err(|e| ended.failure(format!("{}: {e}", file.display())))?;
    let is_whole = |rank| text.contains(&format!("heap of rank {rank}: 100 bytes at "));
    match is_whole(0) && is_whole(1) && text.lines().count() == 6 {
        true => Ok(()),
        false => Err(ended.failure(format!("not the reports of two ranks: {text}"))),
    }
}
