//! What a machine may refuse to a job, and a job to other users: names in /dev/shm, memory,
//! access to its processes. Each case prepares its machine, which takes root, and is skipped
//! where that fails.

use crate::build_trees::{self, ClientMode};
use crate::job_launcher::JobLauncher;
use crate::outcome::JobOutcome;
use crate::test_job::TestJob;
use crate::{Failure, TestCase};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// Rank 1 allocates more memory than its control group allows.
const HUNGRY: &str = "#include <gasnet.h>\n#include <stdlib.h>\n#include <string.h>\n\
    int main(int argc, char **argv) {\n\
    \x20   size_t n = (size_t)256 << 20;\n\
    \x20   volatile char *p;\n\
    \x20   if (gasnet_init(&argc, &argv) || gasnet_attach(NULL, 0, 0, 0)) return 1;\n\
    \x20   if (gasnet_mynode() == 1 && (p = malloc(n))) {\n\
    \x20       memset((char *)p, 1, n);\n\
    \x20       if (p[n - 1] == 1) gasnet_exit(3);\n\
    \x20   }\n\
    \x20   gasnet_barrier_notify(0, GASNET_BARRIERFLAG_ANONYMOUS);\n\
    \x20   gasnet_barrier_wait(0, GASNET_BARRIERFLAG_ANONYMOUS);\n\
    \x20   gasnet_exit(4);\n\
    }\n";

/// A child of rank 0 reads that rank through /proc and by system calls: it succeeds as the same
/// user and fails as another.
const STRANGER: &str = r#"
#include <errno.h>
#include <fcntl.h>
#include <gasnet.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>
static int word = 77, done;
/* Bits of what works: a memory file, a control socket, the memory, the environment, a signal. */
static int attempts(pid_t pid, const char *file, const char *control) {
    char path[64];
    int fd, copy = 0, works = 0;
    struct iovec here = {&copy, sizeof copy}, there = {&word, sizeof word};
    if ((fd = open(file, O_RDWR)) >= 0) works |= 1;
    if (readlink(control, path, sizeof path) > 0) works |= 2;
    if (process_vm_readv(pid, &here, 1, &there, 1, 0) == sizeof copy && copy == 77) works |= 4;
    snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
    if ((fd = open(path, O_RDONLY)) >= 0) works |= 8;
    if (kill(pid, 0) == 0) works |= 16;
    return works;
}
int main(int argc, char **argv) {
    char file[64] = "", control[64] = "", to[256], path[64];
    pid_t me = getpid(), child;
    int fd, status = -1, own, other;
    if (gasnet_init(&argc, &argv) || gasnet_attach(NULL, 0, GASNET_PAGESIZE, 0)) return 1;
    for (fd = 3; fd < 1000; fd++) {
        ssize_t n;
        snprintf(path, sizeof path, "/proc/%d/fd/%d", (int)me, fd);
        n = readlink(path, to, sizeof to - 1);
        if (n < 0) continue;
        to[n] = 0;
        if (strstr(to, "memfd:gasnet-segments")) strcpy(file, path);
        if (strstr(to, "socket:")) strcpy(control, path);
    }
    if (gasnet_mynode() == 0) {
        fflush(NULL);
        child = fork();
        if (child == 0) {
            for (fd = 3; fd < 1000; fd++) close(fd);
            own = attempts(me, file, control);
            if (setgid(65534) || setuid(65534)) _exit(1);
            other = attempts(me, file, control);
            printf("the same user %d, another %d\n", own, other);
            fflush(stdout);
            _exit(0);
        }
        done = waitpid(child, &status, 0) == child && status == 0;
    }
    gasnet_barrier_notify(0, GASNET_BARRIERFLAG_ANONYMOUS);
    gasnet_barrier_wait(0, GASNET_BARRIERFLAG_ANONYMOUS);
    gasnet_exit(gasnet_mynode() == 0 && !done ? 1 : 0);
}
"#;

/// Each case under both of our launchers.
pub fn cases() -> Vec<TestCase> {
    let mut all = Vec::new();
    let root = (sys::process::user() != 0).then_some("the power of root");
    let mounts = lacks_mounts();
    let groups = root.or(Group::new(64 << 20).is_none().then_some("a memory control group"));
    for launcher in [JobLauncher::Gasnetrun, JobLauncher::PshmNodes] {
        let mut add = |name: &str,
                       missing: Option<&str>,
                       run: fn(JobLauncher) -> Result<(), Failure>| {
            let mut case =
                TestCase::new(format!("refusals::{name}::{}", launcher.name()), true, move || {
                    run(launcher)
                });
            case.missing = missing.map(str::to_string);
            all.push(case);
        };
        add("full_dev_shm", mounts, full_dev_shm);
        add("memory", groups, memory);
        add("strangers", root, strangers);
    }
    all
}

/// What this machine lacks for mounts that only a job sees.
pub(crate) fn lacks_mounts() -> Option<&'static str> {
    let works = runs("unshare", &["-m", "mount", "-t", "tmpfs", "none", "/mnt"]);
    (!works).then_some("a mount namespace, which takes root")
}

fn runs(program: &str, args: &[&str]) -> bool {
    let mut c = Command::new(program);
    c.args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    c.status().is_ok_and(|s| s.success())
}

pub(crate) fn compiled(name: &str, source: &str, mode: ClientMode) -> Result<PathBuf, Failure> {
    let dir = build_trees::build().join("capi-tests/refusals");
    fs::create_dir_all(&dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    let file = dir.join(name).with_extension("c");
    if fs::read_to_string(&file).ok().as_deref() != Some(source) {
        fs::write(&file, source).map_err(|e| format!("{}: {e}", file.display()))?;
    }
    build_trees::compiled(&file, mode)
}

/// Runs a job of `nodes` ranks; `script` ends with `exec "$@"`.
fn run(
    script: &str,
    program: &Path,
    launcher: JobLauncher,
    nodes: u32,
) -> Result<JobOutcome, Failure> {
    let mut args = vec!["-c".to_string(), script.to_string(), "sh".to_string()];
    if launcher == JobLauncher::Gasnetrun {
        args.push(build_trees::build().join("bin/gasnetrun").display().to_string());
        args.extend(["-n".to_string(), nodes.to_string()]);
    }
    args.push(program.display().to_string());
    let job =
        TestJob::new(&build_trees::build(), Path::new("/bin/sh"), &args, JobLauncher::Alone, 1);
    let job = match launcher {
        JobLauncher::PshmNodes => job.env("GASNET_PSHM_NODES", nodes.to_string()),
        _ => job,
    };
    let ended = job.watchdog(Duration::from_secs(60)).run()?;
    ended.tidy()?;
    Ok(ended)
}

/// A job uses no name in /dev/shm, so a full /dev/shm has no effect.
fn full_dev_shm(launcher: JobLauncher) -> Result<(), Failure> {
    let program = build_trees::compiled(
        &build_trees::root().join("capi-tests/testhello.c"),
        ClientMode::Par,
    )?;
    let script = "exec unshare -m sh -c '
        mount --make-rprivate / && mount -t tmpfs -o size=4k none /dev/shm || exit 9
        echo 1 >/dev/shm/1
        ! (echo 2 >/dev/shm/2) 2>/dev/null || exit 8
        exec \"$@\"' \"$0\" \"$@\"";
    let ended = run(script, &program, launcher, 4)?;
    if ended.code == Some(0) && ended.output.contains("testhello: PASS") {
        return Ok(());
    }
    Err(ended.failure("it did not pass with a full /dev/shm"))
}

/// A memory control group, of version 1 or 2, removed when dropped.
struct Group(PathBuf);

impl Group {
    /// A group that allows this many bytes; `None` if the kernel allows none.
    fn new(bytes: u64) -> Option<Group> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("capi-tests-{}-{number}", std::process::id());
        for (root, file) in
            [("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")]
        {
            let dir = Path::new(root).join(&name);
            if fs::create_dir(&dir).is_err() {
                continue;
            }
            let group = Group(dir);
            if group.0.join(file).is_file()
                && fs::write(group.0.join(file), bytes.to_string()).is_ok()
            {
                return Some(group);
            }
        }
        None
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // The last process may still be leaving the group.
        for _ in 0..100 {
            if fs::remove_dir(&self.0).is_ok() {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// The kernel kills a rank that runs out of memory; the job ends and says why.
fn memory(launcher: JobLauncher) -> Result<(), Failure> {
    let program = compiled("hungry", HUNGRY, ClientMode::Par)?;
    let group = Group::new(64 << 20).ok_or("no memory control group can be made")?;
    let script = format!("echo $$ >{}/cgroup.procs && exec \"$@\"", group.0.display());
    let ended = run(&script, &program, launcher, 2)?;
    let words = [
        "rank 1 of 2 (pid ",
        "was killed by signal 9",
        "The kernel found no memory for it",
        "allows 64MB",
        "raise the limit",
    ];
    if ended.code != Some(137) {
        return Err(ended.failure("the exit code is not 137"));
    }
    match words.iter().find(|w| !ended.output.contains(**w)) {
        Some(word) => Err(ended.failure(format!("it does not say {word:?}"))),
        None => Ok(()),
    }
}

/// Another user cannot read what the user of the job can.
fn strangers(launcher: JobLauncher) -> Result<(), Failure> {
    let program = compiled("stranger", STRANGER, ClientMode::Par)?;
    let ended = run("exec \"$@\"", &program, launcher, 2)?;
    if ended.code == Some(0) && ended.output.contains("the same user 31, another 0\n") {
        return Ok(());
    }
    Err(ended.failure("another user has access, or the same user has none"))
}
