//! Odd starts: conditions under which a job is started x where they hold x how the job ends.
//! The program is `capi-tests/oddstart.c`.
//!
//! A job either runs and ends with the right code, or `gasnet_init` (or the launcher) ends it with
//! two lines. Either takes seconds, and leaves nothing behind.

use crate::build_trees::{self, ClientMode};
use crate::job_launcher::JobLauncher;
use crate::outcome::JobOutcome;
use crate::sample::{self, SampleRandom};
use crate::test_job::TestJob;
use crate::{Failure, TestCase};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// A job that takes longer is too slow, also on a busy machine.
const SOON: Duration = Duration::from_secs(5);

/// What a condition allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Allowed {
    /// The job must run.
    Run,
    /// The job may be refused.
    Refusal,
}
use Allowed::{Refusal, Run};

/// A condition.
#[derive(Clone, Copy, Debug)]
struct OddStart {
    name: &'static str,
    /// A script that makes it, and then executes its arguments.
    script: &'static str,
    /// Conditions that the program makes itself.
    words: &'static str,
    allowed: Allowed,
}

const PLAIN: &str = r#"exec "$@""#;

/// A condition that a script makes.
const fn outside(name: &'static str, script: &'static str, allowed: Allowed) -> OddStart {
    OddStart { name, script, words: "none", allowed }
}

/// A condition that the program makes.
const fn inside(name: &'static str, words: &'static str) -> OddStart {
    OddStart { name, script: PLAIN, words, allowed: Run }
}

/// `$ODD` is the program.
const STARTS: &[OddStart] = &[
    outside("close_0", r#"exec "$@" 0<&-"#, Run),
    outside("close_1", r#"exec "$@" 1>&-"#, Run),
    outside("close_2", r#"exec "$@" 2>&-"#, Run),
    outside("close_01", r#"exec "$@" 0<&- 1>&-"#, Run),
    outside("close_02", r#"exec "$@" 0<&- 2>&-"#, Run),
    outside("close_all", r#"exec "$@" 0<&- 1>&- 2>&-"#, Run),
    outside("ignore_chld", r#"trap '' CHLD; exec "$@""#, Run),
    outside("ignore_term", r#"trap '' TERM INT HUP QUIT; exec "$@""#, Run),
    outside("ignore_io", r#"trap '' IO PIPE ALRM USR1 USR2 URG WINCH; exec "$@""#, Run),
    outside(
        "ignore_all",
        r#"i=1; while [ $i -lt 65 ]; do trap '' $i 2>/dev/null; i=$((i+1)); done; exec "$@""#,
        Run,
    ),
    outside("block_all", r#"exec "$ODD" block -- "$@""#, Run),
    outside("no_pidfd", r#"exec "$ODD" nopidfd -- "$@""#, Run),
    outside("descriptors_12", r#"ulimit -n 12; exec "$@""#, Refusal),
    outside("descriptors_16", r#"ulimit -n 16; exec "$@""#, Refusal),
    outside("descriptors_64", r#"ulimit -n 64; exec "$@""#, Run),
    outside("address_space_32m", r#"ulimit -v 32768; exec "$@""#, Refusal),
    outside("address_space_512m", r#"ulimit -v 524288; exec "$@""#, Refusal),
    outside("processes", r#"ulimit -u 2; exec "$@""#, Refusal),
    outside("locked_memory", r#"ulimit -l 0; exec "$@""#, Run),
    outside("stack_256k", r#"ulimit -s 256; exec "$@""#, Run),
    outside("core", r#"ulimit -c 0; exec "$@""#, Run),
    // The output of these goes through a pipe, which the limit does not concern.
    outside("file_size_0", r#"set -o pipefail; (ulimit -f 0; exec "$@") 2>&1 | cat"#, Refusal),
    outside("file_size_64k", r#"set -o pipefail; (ulimit -f 64; exec "$@") 2>&1 | cat"#, Refusal),
    outside(
        "no_proc",
        r#"exec unshare -m bash -c 'mount --make-rprivate / && mount -t tmpfs none /proc &&
           exec "$@"' bash "$@""#,
        Run,
    ),
    outside(
        "no_dev",
        r#"exec unshare -m bash -c 'mount --make-rprivate / && mount -t tmpfs none /dev &&
           exec "$@"' bash "$@""#,
        Run,
    ),
    outside(
        "no_dev_shm",
        r#"exec unshare -m bash -c 'mount --make-rprivate / &&
           mount -t tmpfs -o mode=0,size=4k none /dev/shm && exec "$@"' bash "$@""#,
        Run,
    ),
    // The tree with the libraries stays where it is; /proc, /dev and /sys are missing.
    outside(
        "chroot",
        r#"exec unshare -m bash -c 'mount --make-rprivate / && mount -t tmpfs none /mnt &&
           for d in "" $DIRS; do
               [ -d /$d ] && mkdir -p /mnt/$d && [ -n "$d" ] && mount --rbind /$d /mnt/$d
           done; exec chroot /mnt "$@"' bash "$@""#,
        Run,
    ),
    outside("user_namespace", r#"exec unshare -U "$@""#, Run),
    outside("user_namespace_root", r#"exec unshare -U -r "$@""#, Run),
    outside("pid_namespace", r#"exec unshare -U -r -p -f "$@""#, Refusal),
    outside("pid_namespace_proc", r#"exec unshare -U -r -p -f -m --mount-proc "$@""#, Refusal),
    outside("network_namespace", r#"exec unshare -U -r -n "$@""#, Run),
    outside("ipc_namespace", r#"exec unshare -U -r -i "$@""#, Run),
    outside("folder_gone", r#"d=$(mktemp -d); cd "$d"; rmdir "$d"; exec "$@""#, Run),
    outside("umask", r#"umask 777; exec "$@""#, Run),
    outside("session", r#"exec setsid -w "$@""#, Run),
    inside("thread_idle", "idle"),
    inside("thread_busy", "busy"),
    inside("thread_malloc", "malloc"),
    inside("thread_exits", "exits"),
    inside("threads", "idle,busy,malloc,busy"),
    inside("thread_and_handler", "idle,sigchld"),
    inside("thread_and_blocked", "busy,block"),
    inside("thread_and_no_pidfd", "nopidfd,busy"),
    OddStart { words: "busy", ..outside("close_2_thread", r#"exec "$@" 2>&-"#, Run) },
    OddStart {
        words: "malloc",
        ..outside("ignore_chld_thread", r#"trap '' CHLD; exec "$@""#, Run)
    },
    inside("handler", "sigchld"),
    inside("dlopen", "dlopen"),
    inside("child_before", "childbefore"),
    inside("child_after", "childafter"),
    inside("blocked", "block"),
    inside("broken_pipe", "brokenpipe"),
];

/// Where a condition holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// In gasnetrun, and so in its ranks.
    Gasnetrun,
    /// In the ranks alone, below this launcher.
    Ranks(JobLauncher),
    /// In the first process of GASNET_PSHM_NODES.
    PshmNodes,
}

impl Place {
    fn all() -> Vec<Place> {
        let foreign = JobLauncher::foreign().into_iter().map(Place::Ranks);
        [Place::Gasnetrun, Place::PshmNodes, Place::Ranks(JobLauncher::Gasnetrun)]
            .into_iter()
            .chain(foreign)
            .collect()
    }

    fn name(self) -> String {
        match self {
            Place::Gasnetrun => "gasnetrun".to_string(),
            Place::Ranks(launcher) => format!("ranks_of_{}", launcher.name()),
            Place::PshmNodes => "pshm_nodes".to_string(),
        }
    }
}

/// How the jobs end: the word for the program, and the code.
const ENDS: [(&str, i32); 2] = [("exit", 5), ("killed", 137)];

/// Every condition in every place with every end. The sample has each condition, each place and
/// each end.
pub fn cases(seed: u64) -> Vec<TestCase> {
    let mut all: Vec<(usize, Place, usize)> = Vec::new();
    let places = Place::all();
    for (s, start) in STARTS.iter().enumerate() {
        // In a rank, the exit of a thread is that of the rank. Open MPI's mpirun 4.1 accepts no
        // rank of another user, and does not end itself when it has refused one.
        let is_possible = |p: &&Place| match (start.words, start.name) {
            ("exits", _) => **p == Place::PshmNodes,
            (_, "user_namespace") => **p != Place::Ranks(JobLauncher::Mpirun),
            _ => true,
        };
        for &place in places.iter().filter(is_possible) {
            all.extend((0..ENDS.len()).map(|end| (s, place, end)));
        }
    }
    let taken = sample::cover(&all, &mut SampleRandom::new(seed, "starts"), |&(s, place, end)| {
        let place = places.iter().position(|&p| p == place).unwrap_or(0);
        [s as u64, place as u64, end as u64]
    });
    let able = |start: &OddStart| !start.script.contains("unshare") || may_unshare(start.script);
    let mut cases = Vec::new();
    for (i, (s, place, e)) in all.into_iter().enumerate() {
        let (start, end) = (&STARTS[s], ENDS[e]);
        let name = format!("starts::{}::{}::{}", start.name, place.name(), end.0);
        let mut case = TestCase::new(name, taken.contains(&i), move || one(start, place, end));
        case.missing =
            (!able(start)).then(|| "a namespace or a mount that this machine forbids".into());
        cases.push(case);
    }
    cases.push(python());
    cases
}

/// Whether this machine allows what a script demands of `unshare`.
fn may_unshare(script: &str) -> bool {
    let options = script.split_whitespace().skip_while(|w| *w != "unshare").skip(1);
    let mut c = Command::new("unshare");
    c.args(options.take_while(|o| o.starts_with('-')));
    let mount = "mount --make-rprivate / && mount -t tmpfs none /mnt";
    c.args(["sh", "-c", if script.contains("mount -t") { mount } else { "true" }]);
    c.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    c.status().is_ok_and(|s| s.success())
}

fn one(start: &OddStart, place: Place, end: (&str, i32)) -> Result<(), Failure> {
    let program = build_trees::compiled(
        &build_trees::root().join("capi-tests/oddstart.c"),
        ClientMode::Par,
    )?;
    let program = program.display().to_string();
    let tree = build_trees::build();
    let run = [program.as_str(), start.words, end.0].map(str::to_string);
    let script = ["-c", start.script, "bash"].map(str::to_string);
    let gasnetrun = [tree.join("bin/gasnetrun").display().to_string(), "-n".into(), "2".into()];
    let bash = Path::new("/bin/bash");
    let job = |args: Vec<String>, launcher, n| TestJob::new(&tree, bash, &args, launcher, n);
    let job = match place {
        Place::Gasnetrun => job([&script[..], &gasnetrun, &run].concat(), JobLauncher::Alone, 1),
        Place::Ranks(launcher) => job([&script[..], &run].concat(), launcher, 2),
        Place::PshmNodes => {
            job([&script[..], &run].concat(), JobLauncher::Alone, 1).env("GASNET_PSHM_NODES", "2")
        }
    };
    // What a chroot needs: the libraries of the system, and the folder of this tree.
    let root = build_trees::root();
    let dirs = format!("bin lib lib64 usr tmp {}", root.display().to_string().trim_matches('/'));
    let ended = job.env("ODD", &program).env("DIRS", dirs).watchdog(4 * SOON).run()?;
    let foreign = matches!(place, Place::Ranks(launcher) if launcher.is_foreign());
    judge(&ended, start, end.1, foreign)
}

/// Launchers of other job systems have codes of their own for a rank that was killed.
fn judge(ended: &JobOutcome, start: &OddStart, code: i32, foreign: bool) -> Result<(), Failure> {
    ended.tidy()?;
    if ended.time > SOON && !foreign {
        return Err(ended.failure("it took too long"));
    }
    let right = ended.code == Some(code) || (foreign && ended.code != Some(0));
    if start.allowed == Refusal && ended.code == Some(1) && is_refusal(&ended.output) {
        return Ok(());
    }
    match right {
        true => Ok(()),
        false => Err(ended.failure(format!("its code is not {code}"))),
    }
}

/// Whether a line of the library that names a cause is followed by one that says what to do.
pub(crate) fn is_refusal(output: &str) -> bool {
    let lines: Vec<&str> = output.lines().collect();
    lines.windows(2).any(|two| {
        two[0].starts_with("*** ") && two[0].as_bytes()[4] != b' ' && two[1].starts_with("***   ")
    })
}

/// A Python program with a thread that computes, and so holds the interpreter's lock.
const PYTHON: &str = r#"
import ctypes, sys, threading
def busy():
    while True: pass
threading.Thread(target=busy, daemon=True).start()
lib = ctypes.CDLL(sys.argv[1])
lib.gasnet_attach.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t, ctypes.c_size_t]
assert lib.gasnet_init(None, None) == 0
assert lib.gasnet_attach(None, 0, 65536, 0) == 0
assert threading.active_count() == 1 + int(sys.argv[2])
lib.gasnet_barrier_notify(0, 1)
assert lib.gasnet_barrier_wait(0, 1) == 0
lib.gasnet_exit(5)
"#;

fn python() -> TestCase {
    TestCase::new("starts::python_thread".to_string(), true, || {
        let tree = build_trees::build();
        let library = tree.join("lib/libgasnet.so").display().to_string();
        for (launcher, threads) in [(JobLauncher::PshmNodes, "0"), (JobLauncher::Gasnetrun, "1")] {
            let args = ["-c", PYTHON, &library, threads].map(str::to_string);
            let job = TestJob::new(&tree, Path::new("python3"), &args, launcher, 3);
            let ended = job.watchdog(6 * SOON).run()?;
            ended.tidy()?;
            if ended.code != Some(5) {
                return Err(ended.failure("its code is not 5"));
            }
        }
        Ok(())
    })
    .needs("python3")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_have_two_lines() {
        assert!(is_refusal("x\n*** FATAL ERROR: a\n***   Do b.\n"));
        assert!(!is_refusal("*** FATAL ERROR: a\n*** c\n"));
        assert!(!is_refusal("***   Do b.\n***   Do b.\n"));
    }

    #[test]
    fn the_sample_has_every_condition() {
        let all = cases(7);
        for start in STARTS {
            let name = format!("starts::{}::", start.name);
            assert!(all.iter().any(|c| c.sampled && c.name.starts_with(&name)), "{name}");
        }
    }
}
