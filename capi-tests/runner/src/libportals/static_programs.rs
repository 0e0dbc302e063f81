//! Static programs over libgasnet.a, libcnos.a and libportals3.a, started by ptlrun: what a
//! program of a Cray XT is. The cases `static::pmi` have functions of PMI in place of libcnos.
//! There is no supervisor, no control socket and no memory file of ours. A trace of the system
//! calls shows it. The cases show how such a job starts and ends, not an old C library: the
//! programs have the one of this machine in them.

use super::{place, programs, write};
use crate::build_trees::{self, ClientMode, StartFunctions};
use crate::job_launcher::JobLauncher;
use crate::sample::SampleRandom;
use crate::test_library::TestLibrary;
use crate::{Failure, TestCase, exits, matrix, program};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

const RANKS: [u32; 4] = [1, 2, 4, 8];
/// Programs that a short run takes, each with one number of ranks.
const OFTEN: &[&str] = &[
    "testsmall",
    "testam",
    "testcore1",
    "testcore2",
    "testcore3",
    "testcore4",
    "testcore5",
    "testbarrier",
];
/// Programs that need memory which the ranks of a host share, or memory at an address of choice.
const SHARING: &[&str] = &["testaddresses", "testscribble", "testsegment"];
/// Ends that a short run takes. Among them are a rank that exits before attach, ranks that never
/// call, a crash, SIGKILL, and an exit out of a signal handler.
const ENDS: &[u32] = &[1, 2, 5, 7, 11, 100, 104, 121, 122];

fn library() -> TestLibrary {
    TestLibrary::of(build_trees::build_libportals()).in_static_programs(StartFunctions::Cnos)
}

/// As [`library`], with PMI only. Over ptlrun a rank has the same address in each job, so jobs
/// can share the folder of its key-value space.
fn with_pmi() -> TestLibrary {
    let tree = build_trees::build_libportals();
    let space = tree.join("pmi-space").display().to_string();
    TestLibrary::of(tree).in_static_programs(StartFunctions::Pmi).with_env("PMI_DIR", space)
}

/// The programs, each in all settings; a short run takes each of `often` once.
pub(super) fn runs(
    library: &TestLibrary,
    prefix: &str,
    often: &[&str],
    seed: u64,
) -> Vec<TestCase> {
    let mut all = Vec::new();
    let mut random = SampleRandom::new(seed, prefix);
    for p in programs().into_iter().filter(|p| !SHARING.contains(&p.name.as_str())) {
        let mut settings = matrix::over_ptlrun(&p, &RANKS);
        random.shuffle(&mut settings);
        for (i, s) in settings.into_iter().enumerate() {
            let (p, library) = (p.clone(), library.clone());
            let sampled = i == 0 && often.contains(&p.name.as_str());
            let name = format!("{prefix}{}::{}", p.name, s.name());
            all.push(TestCase::new(name, sampled, move || matrix::sound(&library, &p, s)));
        }
    }
    all
}

pub(super) fn cases(seed: u64) -> Vec<TestCase> {
    let mut all = runs(&library(), "static::", OFTEN, seed);
    all.extend(exits::over_ptlrun(&library(), "static::", ENDS));
    // Program and launcher as on the kernels of an XT4 and an XT5. A C library of today aborts on
    // the first when threads wait for each other.
    for (kernel, mode) in [("2.6.16", "::seq::"), ("2.6.27", "::par::")] {
        let (old, prefix) = (library().under(kernel), format!("static::{kernel}::"));
        let mut cases = runs(&old, &prefix, &["testsmall"], seed);
        cases.extend(exits::over_ptlrun(&old, &prefix, &[7]));
        // Before Linux 3.2 libportals3 delivers when the target calls. Over such a network a rank
        // that waits polls, and testidle measures that it sleeps.
        cases.retain(|case| case.name.contains(mode) && !case.name.contains("::testidle::"));
        all.extend(cases);
    }
    all.extend(runs(&with_pmi(), "static::pmi::", &["testsmall", "testam"], seed));
    all.extend(exits::over_ptlrun(&with_pmi(), "static::pmi::", ENDS));
    let mut add = |name: &str, run: fn() -> Result<(), Failure>| {
        all.push(TestCase::new(format!("static::{name}"), true, run));
    };
    add("failures_at_once_agree_on_one_code", failures_at_once_agree_on_one_code);
    add("a_silent_rank_is_named", a_silent_rank_is_named);
    add("a_rank_may_finish_after_another", a_rank_may_finish_after_another);
    add("exits_out_of_signal_handlers", exits_out_of_signal_handlers);
    add("a_rank_that_never_starts_is_noticed", a_rank_that_never_starts_is_noticed);
    let traced =
        TestCase::new("static::calls_that_make_something".into(), true, only_listed_calls);
    all.push(traced.needs("strace"));
    if !build_trees::has_static_libc() {
        let libc = "libc.a (Debian package libc6-dev)".to_string();
        all.iter_mut().for_each(|case| case.missing = Some(libc.clone()));
    }
    all
}

/// The head of the programs below.
const HEAD: &str = "\
#include <gasnet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#define INIT(argc, argv) \\
    if (gasnet_init(&argc, &argv) || gasnet_attach(0, 0, 0, 0)) return 99; \\
    int me = (int)gasnet_mynode(), nodes = (int)gasnet_nodes(); (void)me; (void)nodes; \\
    gasnet_barrier_notify(0, GASNET_BARRIERFLAG_ANONYMOUS); \\
    gasnet_barrier_wait(0, GASNET_BARRIERFLAG_ANONYMOUS);
";

fn small(name: &str, body: &str) -> Result<PathBuf, Failure> {
    let source = write(&format!("{name}.c"), &format!("{HEAD}{body}"))?;
    library().compiled(&source, ClientMode::Seq)
}

/// Ranks that exit at once and have not learned of each other: a failure prevails over 0,
/// the lowest rank over others. What each has printed is there.
fn failures_at_once_agree_on_one_code() -> Result<(), Failure> {
    const AT_ONCE: &str = "\
int main(int argc, char **argv) {
    INIT(argc, argv)
    printf(\"rank %d exits\\n\", me);
    usleep(300000);
    gasnet_exit(me == 0 ? 0 : 10 + me);
}
";
    let binary = small("at-once", AT_ONCE)?;
    for nodes in [2, 3, 5, 8] {
        let ended = library().job(&binary, &[], JobLauncher::Ptlrun, nodes)?.run()?;
        ended.tidy()?;
        if ended.code != Some(11) {
            return Err(ended.failure("expected the code of rank 1, which is 11"));
        }
        if let Some(rank) = (0..nodes).find(|r| !ended.says(&format!("rank {r} exits"))) {
            return Err(ended.failure(format!("what rank {rank} printed is lost")));
        }
    }
    Ok(())
}

/// A rank that never calls the library again, and an exit with 0: the job ends, and the next rank
/// says whose fault it is.
fn a_silent_rank_is_named() -> Result<(), Failure> {
    const SILENT: &str = "\
int main(int argc, char **argv) {
    INIT(argc, argv)
    if (me == 1) for (;;) usleep(1000);
    return 0;
}
";
    let binary = small("silent", SILENT)?;
    for nodes in [2, 4] {
        let ended = library()
            .job(&binary, &[], JobLauncher::Ptlrun, nodes)?
            .watchdog(Duration::from_secs(60))
            .run()?;
        ended.tidy()?;
        let next = 2 % nodes;
        let line = format!("rank {next}: rank 1 has not called the library since");
        if ended.code != Some(137) || ended.output.matches("has not called").count() != 1 {
            return Err(ended.failure("expected one message, and the code of SIGKILL"));
        }
        if !ended.output.contains(&line) {
            return Err(ended.failure(format!("it does not say {line:?}")));
        }
    }
    Ok(())
}

/// After an exit with 0, ranks that still poll go on for a moment.
fn a_rank_may_finish_after_another() -> Result<(), Failure> {
    const LATE: &str = "\
int main(int argc, char **argv) {
    int i;
    INIT(argc, argv)
    if (me != 0) return 0;
    for (i = 0; i < 50; i++) {
        usleep(10000);
        gasnet_AMPoll();
    }
    printf(\"the result\\n\");
    return 0;
}
";
    let binary = small("late", LATE)?;
    let ended = library().job(&binary, &[], JobLauncher::Ptlrun, 4)?.run()?;
    ended.tidy()?;
    match (ended.code, ended.says("the result")) {
        (Some(0), true) => Ok(()),
        _ => Err(ended.failure("expected its result, and 0")),
    }
}

/// A signal interrupts a rank that polls, at any instruction, and its handler exits. The job ends
/// with that code, 0 too. A rank that was interrupted inside Portals may have to be killed.
fn exits_out_of_signal_handlers() -> Result<(), Failure> {
    const INTERRUPTED: &str = "\
#include <signal.h>
#include <sys/time.h>
static int code;
static void on_alarm(int sig) {
    (void)sig;
    gasnet_exit(code);
}
int main(int argc, char **argv) {
    struct itimerval timer;
    INIT(argc, argv)
    memset(&timer, 0, sizeof timer);
    timer.it_value.tv_usec = atoi(argv[2]);
    code = atoi(argv[1]);
    if (me == 0) {
        signal(SIGALRM, on_alarm);
        setitimer(ITIMER_REAL, &timer, NULL);
    }
    for (;;) gasnet_AMPoll();
}
";
    let binary = small("interrupted", INTERRUPTED)?;
    let mut stuck = 0;
    const RUNS: i32 = 6;
    for run in 0..RUNS {
        let code = if run % 3 == 2 { 7 } else { 0 };
        let args = [code, 1000 + 137 * run].map(|n| n.to_string());
        let ended = library().job(&binary, &args, JobLauncher::Ptlrun, 2)?.run()?;
        ended.tidy()?;
        if ended.output.contains("does not return") {
            stuck += 1;
        } else if ended.code != Some(code) || ended.output.contains("has not called") {
            return Err(ended.failure(format!("expected {code} and no message")));
        }
    }
    if stuck > RUNS / 2 {
        return Err(format!("{stuck} of {RUNS} exits were stuck in a call of the network"));
    }
    Ok(())
}

/// A rank that ends with 0 before it calls `gasnet_init`: the others, which wait in the barrier of
/// CNOS, end with a message.
fn a_rank_that_never_starts_is_noticed() -> Result<(), Failure> {
    const NEVER: &str = "\
int main(int argc, char **argv) {
    if (atoi(getenv(\"PTL_MY_RID\")) == 1) return 0;
    INIT(argc, argv)
    return 0;
}
";
    let binary = small("never", NEVER)?;
    let ended = library().job(&binary, &[], JobLauncher::Ptlrun, 3)?.run()?;
    ended.tidy()?;
    if ended.code == Some(1) && ended.output.contains("the barrier of CNOS failed") {
        return Ok(());
    }
    Err(ended.failure("expected code 1 and a message about the barrier"))
}

/// The calls that make a descriptor, a process, a thread or shared memory.
const MAKERS: &[&str] = &[
    "socket",
    "socketpair",
    "connect",
    "bind",
    "listen",
    "accept",
    "accept4",
    "clone",
    "clone3",
    "fork",
    "vfork",
    "memfd_create",
    "memfd_secret",
    "pipe",
    "pipe2",
    "eventfd",
    "eventfd2",
    "signalfd",
    "signalfd4",
    "epoll_create",
    "epoll_create1",
    "timerfd_create",
    "inotify_init",
    "inotify_init1",
    "pidfd_open",
    "userfaultfd",
    "shmget",
    "msgget",
    "semget",
    "mq_open",
    "dup",
    "dup2",
    "dup3",
    "creat",
    "mknod",
    "mknodat",
];

/// What a line of strace makes. `None` for calls that make nothing, and for the file in which a
/// rank leaves its counters for the runner.
fn made(line: &str) -> Option<String> {
    let (call, arguments) = line.split_once('(')?;
    let words: Vec<&str> = arguments.split(", ").collect();
    match call {
        _ if MAKERS.contains(&call) => Some(call.to_string()),
        "fcntl" => {
            let what = words.get(1)?.trim_end_matches(|c: char| !c.is_alphanumeric());
            what.starts_with("F_DUPFD").then(|| format!("fcntl({what})"))
        }
        "open" | "openat" if arguments.contains("/counters/") => None,
        "open" | "openat" if arguments.contains("O_CREAT") || arguments.contains("O_TMPFILE") => {
            Some(format!("{call}(O_CREAT)"))
        }
        _ => None,
    }
}

/// What the ranks of a job of `binary` make after their first `execve`.
fn trace(binary: &Path, name: &str, nodes: u32) -> Result<BTreeSet<String>, Failure> {
    let dir = place()?.join(format!("strace-{name}"));
    let _ = fs::remove_dir_all(&dir);
    fs::create_dir_all(&dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    let to = dir.join("rank").display().to_string();
    let args = ["-f", "-ff", "-qq", "-o", &to, &binary.display().to_string()].map(String::from);
    let ended =
        library().job(Path::new("/usr/bin/strace"), &args, JobLauncher::Ptlrun, nodes)?.run()?;
    ended.tidy()?;
    if ended.code != Some(0) {
        return Err(ended.failure("it did not exit with 0"));
    }
    let mut calls = BTreeSet::new();
    let mut ranks = 0;
    for file in fs::read_dir(&dir).map_err(|e| format!("{}: {e}", dir.display()))?.flatten() {
        let text =
            fs::read_to_string(file.path()).map_err(|e| format!("{:?}: {e}", file.path()))?;
        ranks += 1;
        if !text.starts_with("execve(") || text.matches("\nexecve(").count() != 0 {
            calls.insert("execve".to_string());
        }
        calls.extend(text.lines().filter_map(made));
    }
    // A thread or a process has a file of its own.
    if ranks != nodes {
        return Err(format!("{name}: {nodes} ranks, but {ranks} threads: {calls:?}"));
    }
    Ok(calls)
}

/// The list of calls that libportals3 makes is right, and programs over libgasnet make no others.
fn only_listed_calls() -> Result<(), Failure> {
    const ONLY_PORTALS: &str = "\
#include <cnos_mpi_os.h>
int main(void) {
    int most;
    ptl_handle_ni_t ni;
    ptl_process_id_t id;
    cnos_nidpid_map_t *map;
    if (PtlInit(&most) != PTL_OK) return 1;
    if (PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, 0, 0, &ni) != PTL_OK || PtlGetId(ni, &id) != PTL_OK) return 2;
    if (cnos_barrier_init(ni) || cnos_register_ptlid(id) || cnos_get_nidpid_map(&map) != cnos_get_size()) return 3;
    return cnos_barrier();
}
";
    let list = build_trees::root().join("capi-tests/runner/src/libportals/ptlinit.calls");
    let text = fs::read_to_string(&list).map_err(|e| format!("{}: {e}", list.display()))?;
    let listed: BTreeSet<String> = text
        .lines()
        .filter_map(|l| l.split('#').next().map(str::trim).filter(|call| !call.is_empty()))
        .map(String::from)
        .collect();
    let source = write("only-portals.c", ONLY_PORTALS)?;
    let theirs = trace(&library().compiled(&source, ClientMode::Seq)?, "portals", 2)?;
    if theirs != listed {
        return Err(format!("{}: PtlInit makes {theirs:?}", list.display()));
    }
    for name in ["testhello", "testsmall"] {
        let p = program::named(name).ok_or_else(|| format!("{name}.c is missing"))?;
        for nodes in [1, 4] {
            let ours = trace(&library().compiled(&p.source, ClientMode::Seq)?, name, nodes)?;
            let more: Vec<_> = ours.difference(&listed).collect();
            if !more.is_empty() {
                return Err(format!("{name} makes more than {}: {more:?}", list.display()));
            }
        }
    }
    Ok(())
}
