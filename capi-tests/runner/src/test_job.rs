//! One command as a job, under a watchdog. A job may leave nothing behind: no process, no name of
//! the library in /dev/shm, no file in its temporary directory. Every process of a job carries a
//! marker in its environment. By it the runner finds processes, and kills them when the watchdog
//! fires or an orphan remains. Jobs spin, so jobs of all runners of this checkout run one at a
//! time (a file lock). A runner may allow its own jobs to overlap ([`together`]).

use crate::exit_pipe::{self, ExitPipe, ExitTimes};
use crate::injector::{FaultInjector, InjectedFault};
use crate::job_launcher::{self, JobLauncher};
use crate::outcome::{JobOutcome, counters};
use crate::processes::{self, MARKER, described, is_theirs, marked, names_of_shared_memory};
use crate::{Failure, build_trees};
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io::PipeWriter;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};
use sys::signal::Signal;

/// How long the last processes of a job may outlive its launcher.
const GRACE: Duration = Duration::from_secs(2);
/// Attempts to start a job whose launcher fails to start the processes.
const STARTS: u32 = 5;
/// After a fault, the time between two looks for a remaining process of ours.
const GLANCE: Duration = Duration::from_millis(100);

/// Finds in the output so far the process to be killed.
type Victim = Box<dyn Fn(&str) -> Option<i32>>;

/// Acts on the job, once the output so far shows that it is time; whether it has.
type Act = Box<dyn Fn(&str) -> bool>;

/// Whether the output so far shows that an event has happened.
type Ready = Box<dyn Fn(&str) -> bool>;

/// The state of a running job:
/// - the exit pipe
/// - when our last process was found to have exited
/// - the fault injector
/// - since when only the launcher was seen after the fault
type Watched<'a> = (
    &'a mut Option<ExitPipe>,
    &'a mut Option<u64>,
    &'a mut Option<FaultInjector>,
    &'a mut Option<Instant>,
);

/// A command to be run as a job.
pub struct TestJob {
    command: Command,
    shown: String,
    watchdog: Duration,
    input: Option<&'static str>,
    /// Where its standard error goes, if not into the output.
    stderr: Option<PipeWriter>,
    victim: Option<Victim>,
    act: Option<Act>,
    /// The victim dies without being killed.
    by_itself: bool,
    /// The fault to inject.
    fault: Option<InjectedFault>,
    /// The event from which the fault's time counts, if not from the start.
    ready: Option<Ready>,
    /// Whether the processes report their exit.
    exit_times: bool,
    dir: PathBuf,
    marker: String,
}

impl TestJob {
    /// `program` with `args` as a job of `nodes` ranks, started by `launcher` of the build tree
    /// `tree`, with the library of that tree.
    pub fn new(
        tree: &Path,
        program: &Path,
        args: &[String],
        launcher: JobLauncher,
        nodes: u32,
    ) -> TestJob {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let marker = format!("{}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed));
        let dir = std::env::temp_dir().join(format!("capi-tests-{marker}"));
        let mut command = launcher.command(tree, program, nodes);
        for (name, _) in
            std::env::vars_os().filter(|(n, _)| n.to_string_lossy().starts_with("GASNET_"))
        {
            command.env_remove(name);
        }
        command
            .args(args)
            .current_dir("/")
            .env(MARKER, &marker)
            .env("TMPDIR", dir.join("tmp"))
            .env("LD_LIBRARY_PATH", tree.join("lib"));
        let watchdog = Duration::from_secs(120);
        let shown = String::new();
        let (input, victim) = (None, None);
        let mut job = TestJob {
            command,
            shown,
            watchdog,
            input,
            stderr: None,
            victim,
            act: None,
            by_itself: false,
            fault: None,
            ready: None,
            exit_times: false,
            dir,
            marker,
        };
        if launcher == JobLauncher::PshmNodes {
            job = job.env("GASNET_PSHM_NODES", nodes.to_string());
        }
        job
    }

    /// Sets an environment variable.
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> TestJob {
        let value: OsString = value.as_ref().to_owned();
        self.shown += &format!("{name}={} ", value.to_string_lossy());
        self.command.env(name, value);
        self
    }

    /// Another program, with one argument of its own, executes the command.
    pub fn below(mut self, program: &Path, argument: &str) -> TestJob {
        let mut command = Command::new(program);
        command.arg(argument).arg(self.command.get_program());
        command.args(self.command.get_args());
        copy_settings(&self.command, &mut command);
        self.command = command;
        self
    }

    /// The program finds its library without LD_LIBRARY_PATH.
    pub fn without_library_path(mut self) -> TestJob {
        self.command.env_remove("LD_LIBRARY_PATH");
        self
    }

    /// Kills one process of the job, 100 ms after `victim` finds it in the output.
    pub fn kill(mut self, victim: impl Fn(&str) -> Option<i32> + 'static) -> TestJob {
        self.victim = Some(Box::new(victim));
        self
    }

    /// Records when a process of the job dies, once `victim` finds it in the output.
    pub fn death(mut self, victim: impl Fn(&str) -> Option<i32> + 'static) -> TestJob {
        self.by_itself = true;
        self.kill(victim)
    }

    /// Calls `act` with the output so far until it returns true: then it has done something to
    /// the job, as of when [`JobOutcome::after_kill`] counts.
    pub fn act(mut self, act: impl Fn(&str) -> bool + 'static) -> TestJob {
        self.act = Some(Box::new(act));
        self
    }

    /// Injects this fault.
    pub fn fault(mut self, fault: InjectedFault) -> TestJob {
        self.fault = Some(fault);
        self
    }

    /// The fault's time counts from when `ready` accepts the output.
    pub fn once(mut self, ready: impl Fn(&str) -> bool + 'static) -> TestJob {
        self.ready = Some(Box::new(ready));
        self
    }

    /// The processes report their exit.
    pub fn exit_times(mut self) -> TestJob {
        self.exit_times = true;
        self
    }

    /// Runs in a folder of its own rather than in the root folder. The files that its processes
    /// leave there end up in [`JobOutcome::files`].
    pub fn in_own_folder(mut self) -> TestJob {
        self.command.current_dir(self.dir.join("work"));
        self
    }

    /// The launcher's standard input.
    pub fn stdin(mut self, text: &'static str) -> TestJob {
        self.input = Some(text);
        self
    }

    /// Its standard error.
    pub fn stderr(mut self, pipe: PipeWriter) -> TestJob {
        self.stderr = Some(pipe);
        self
    }

    /// The watchdog ends the job after this time.
    pub fn watchdog(mut self, after: Duration) -> TestJob {
        self.watchdog = after;
        self
    }

    /// Runs the job to its end. srun sometimes reports that it failed to launch any process;
    /// then the job is started again.
    pub fn run(self) -> Result<JobOutcome, Failure> {
        let _one_at_a_time = lock()?;
        for start in 1..=STARTS {
            let ended = self.attempt()?;
            if !job_launcher::not_launched(&ended.output) {
                return Ok(ended);
            }
            job_launcher::count_failed_start();
            eprintln!(
                "srun did not launch the processes ({start} of {STARTS} starts): {}",
                ended.shown
            );
        }
        Err(format!("srun did not launch the processes in {STARTS} starts: {}", self.shown))
    }

    /// A copy of the command, for another attempt.
    fn command(&self) -> Command {
        let mut command = Command::new(self.command.get_program());
        command.args(self.command.get_args()).stdin(Stdio::null());
        copy_settings(&self.command, &mut command);
        // A shell that starts the runner in the background ignores some signals, as does nohup.
        // SAFETY: plain system calls, async-signal-safe.
        unsafe {
            command.pre_exec(|| {
                sys::signal::set_default(Signal::INT);
                sys::signal::set_default(Signal::QUIT);
                sys::signal::set_default(Signal::HUP);
                Ok(())
            });
        }
        command
    }

    /// Runs the job to its end, whatever the end is.
    fn attempt(&self) -> Result<JobOutcome, Failure> {
        let io = |e: std::io::Error| format!("{}: {e}", self.dir.display());
        fs::create_dir_all(self.dir.join("tmp")).map_err(io)?;
        fs::create_dir_all(self.dir.join("counters")).map_err(io)?;
        fs::create_dir_all(self.dir.join("work")).map_err(io)?;
        let output = self.dir.join("output");
        let stream = File::create(&output).map_err(io)?;
        let mut command = self.command();
        command.env("GASNET_TEST_COUNTERS", self.dir.join("counters/nic"));
        command.stdout(stream.try_clone().map_err(io)?).stderr(stream);
        if let Some(pipe) = &self.stderr {
            command.stderr(pipe.try_clone().map_err(io)?);
        }
        let mut shown = self.shown.clone();
        shown += &command.get_program().to_string_lossy();
        for a in command.get_args() {
            shown += &format!(" {}", a.to_string_lossy());
        }

        if let Some(text) = self.input {
            let path = self.dir.join("input");
            fs::write(&path, text).map_err(io)?;
            command.stdin(File::open(&path).map_err(io)?);
        }

        let mut pipe = None;
        if self.exit_times {
            let path = self.dir.join("exit_times");
            pipe = Some(ExitPipe::create(&path)?);
            command.env("TESTEXIT_PIPE", path);
        }

        let mut injector = match self.fault {
            Some(fault) => Some(FaultInjector::new(fault, &mut command).map_err(io)?),
            None => None,
        };

        let before = names_of_shared_memory();
        let start = Instant::now();
        let mut child = command.spawn().map_err(|e| format!("{shown}: {e}"))?;
        let mut injected = None;
        let mut gone = None;
        let mut only_theirs = None;
        let watched = (&mut pipe, &mut gone, &mut injector, &mut only_theirs);
        let code = self.wait(&mut child, start, &output, &mut injected, watched);
        let launcher_hangs = only_theirs
            .zip(injected)
            .filter(|_| code.is_none())
            .map(|(at, injected)| at - injected);
        let time = start.elapsed();
        let mut after_kill = injected.map(|at: Instant| at.elapsed());

        let mut left = Vec::new();
        let mut outlived = String::new();
        let mut exit_times = ExitTimes::default();
        if code.is_some() {
            let since = Instant::now();
            let there = described(&marked(&self.marker)).join(", ");
            while !marked(&self.marker).is_empty() && since.elapsed() < GRACE {
                // A stopped process is continued when its time comes.
                if let Some(s) = &mut injector {
                    s.look(start.elapsed(), Vec::new);
                }
                if !self.only_theirs() {
                    gone = None;
                }
                sleep(Duration::from_millis(5));
            }
            if injector.is_some() {
                after_kill = injected.map(|at| at.elapsed());
            }
            if !there.is_empty() {
                outlived = format!(
                    "; {:.2} s longer than the launcher: {there}",
                    since.elapsed().as_secs_f64()
                );
            }
            let gone = gone.unwrap_or_else(exit_pipe::now);
            exit_times = pipe.map(|p| p.sum(gone)).unwrap_or_default();
            left = described(&marked(&self.marker));
        }
        processes::kill_all(&self.marker);
        // Jobs of other checkouts may have made names meanwhile, and remove them.
        let since = Instant::now();
        while !names_of_shared_memory().is_subset(&before) && since.elapsed() < GRACE {
            sleep(Duration::from_millis(20));
        }
        for name in names_of_shared_memory().difference(&before) {
            left.push(format!("/dev/shm/{}", name.display()));
        }
        let temporary = fs::read_dir(self.dir.join("tmp")).map_err(io)?.flatten();
        // Open MPI's mpirun leaves this when it is killed.
        for file in temporary.filter(|f| !f.file_name().to_string_lossy().starts_with("ompi.")) {
            left.push(format!(
                "file {} in the temporary directory",
                file.file_name().to_string_lossy()
            ));
        }
        let (hit, hit_theirs) = injector.map(|s| (s.hit, s.hit_theirs)).unwrap_or_default();
        let text = String::from_utf8_lossy(&fs::read(&output).map_err(io)?).into_owned();
        let counters = counters(&self.dir.join("counters"));
        let mut files: Vec<(String, String)> = fs::read_dir(self.dir.join("work"))
            .map_err(io)?
            .flatten()
            .filter_map(|f| {
                Some((f.file_name().into_string().ok()?, fs::read_to_string(f.path()).ok()?))
            })
            .collect();
        files.sort();
        let _ = fs::remove_dir_all(&self.dir);
        Ok(JobOutcome {
            code,
            output: text,
            time,
            after_kill,
            hit,
            hit_theirs,
            launcher_hangs,
            exit_times,
            left,
            outlived,
            counters,
            files,
            shown,
        })
    }

    fn wait(
        &self,
        child: &mut Child,
        start: Instant,
        output: &Path,
        injected: &mut Option<Instant>,
        (pipe, gone, injector, only_theirs): Watched<'_>,
    ) -> Option<i32> {
        let mut looked = start;
        let mut ready = self.ready.is_none().then_some(start);
        let mut glanced = start;
        loop {
            // Another job system's launcher may outlive our processes for long.
            if gone.is_none() && pipe.as_mut().is_some_and(ExitPipe::look) && self.only_theirs() {
                *gone = Some(exit_pipe::now());
            }
            if let Ok(Some(status)) = child.try_wait() {
                if self.by_itself {
                    // The victim was alive at the last look, or was not yet known.
                    injected.get_or_insert(looked);
                }
                return Some(code(status));
            }
            if injector.is_some() && injected.is_some() && glanced.elapsed() > GLANCE {
                glanced = Instant::now();
                *only_theirs = only_theirs.or(Some(glanced)).filter(|_| self.only_theirs());
            }
            if start.elapsed() > self.watchdog {
                *only_theirs = only_theirs.filter(|_| self.only_theirs());
                processes::describe(&self.marker, output);
                // The whole machine may have stood still: a job that ends meanwhile did not hang.
                if let Ok(Some(status)) = child.try_wait() {
                    return Some(code(status));
                }
                processes::kill_all(&self.marker);
                let _ = child.wait();
                return None;
            }
            if let (None, Some(shows)) = (ready, &self.ready) {
                ready =
                    fs::read_to_string(output).is_ok_and(|text| shows(&text)).then(Instant::now);
            }
            let due = |s: &mut FaultInjector, since: Instant| {
                s.look(since.elapsed(), || marked(&self.marker))
            };
            if ready.is_some_and(|since| injector.as_mut().is_some_and(|s| due(s, since))) {
                *injected = Some(Instant::now());
            }
            if injected.is_none() {
                looked = Instant::now();
                *injected = self.act_if_due(output);
            }
            sleep(Duration::from_millis(2));
        }
    }

    /// Acts on the job if it is time, kills the victim if it is known, or detects its death;
    /// returns when.
    fn act_if_due(&self, output: &Path) -> Option<Instant> {
        if let Some(act) = &self.act {
            return act(&fs::read_to_string(output).ok()?).then(Instant::now);
        }
        let victim = self.victim.as_ref()?;
        let pid = victim(&fs::read_to_string(output).ok()?)?;
        if self.by_itself {
            return (!marked(&self.marker).contains(&pid)).then(Instant::now);
        }
        if !marked(&self.marker).contains(&pid) {
            return None;
        }
        sleep(Duration::from_millis(100));
        processes::kill(pid, Signal::KILL);
        Some(Instant::now())
    }

    /// Whether only processes of another job system's launcher are left.
    fn only_theirs(&self) -> bool {
        marked(&self.marker).into_iter().all(is_theirs)
    }
}

/// Gives a command the environment and the folder of another.
fn copy_settings(from: &Command, to: &mut Command) {
    for (name, value) in from.get_envs() {
        match value {
            Some(value) => to.env(name, value),
            None => to.env_remove(name),
        };
    }
    if let Some(dir) = from.get_current_dir() {
        to.current_dir(dir);
    }
}

/// The exit code as a shell shows it.
fn code(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}

/// Whether jobs of this process may overlap.
static TOGETHER: AtomicBool = AtomicBool::new(false);

/// Lets jobs of this process overlap from now on, but not with jobs of other processes.
pub fn together() {
    TOGETHER.store(true, Ordering::Relaxed);
}

/// While it lives, other jobs of this checkout wait, except those that may overlap with it.
fn lock() -> Result<File, Failure> {
    let path = build_trees::build().join("capi-tests");
    fs::create_dir_all(&path).map_err(|e| format!("{}: {e}", path.display()))?;
    let file = File::create(path.join("lock")).map_err(|e| format!("{}: {e}", path.display()))?;
    let locked = if TOGETHER.load(Ordering::Relaxed) { file.lock_shared() } else { file.lock() };
    locked.map_err(|e| format!("{}: {e}", path.display()))?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str) -> TestJob {
        let args = vec!["-c".to_string(), script.to_string()];
        TestJob::new(&build_trees::build(), Path::new("/bin/sh"), &args, JobLauncher::Alone, 1)
    }

    #[test]
    fn code_and_output() {
        let ended = sh("echo PASS; echo two >&2; exit 7").run().unwrap();
        assert_eq!(ended.code, Some(7));
        assert_eq!(ended.output, "PASS\ntwo\n");
        assert!(ended.says("PASS") && !ended.says("wo"));
        ended.tidy().unwrap();
        assert_eq!(sh("kill -9 $$").run().unwrap().code, Some(137));
    }

    #[test]
    fn a_launcher_that_does_not_launch() {
        let says = "echo 'srun: error: task 1 launch failed: Unspecified error'; exit 0";
        assert!(sh(says).run().err().unwrap().contains("in 5 starts"));
        let file = std::env::temp_dir().join(format!("not-launched-{}", std::process::id()));
        let path = file.display();
        let once = sh(&format!("[ -f {path} ] && exit 3; touch {path}; {says}")).run().unwrap();
        fs::remove_file(&file).unwrap();
        assert_eq!((once.code, once.output.as_str()), (Some(3), ""));
        assert!(job_launcher::started_again().contains("were repeated"));
        let failed = "echo 'srun: error: vm: task 1: Exited with exit code 5'; exit 5";
        assert_eq!(sh(failed).run().unwrap().code, Some(5));
    }

    #[test]
    fn the_watchdog_kills_the_tree() {
        let ended = sh("sleep 1000 & setsid sleep 1000 & wait")
            .watchdog(Duration::from_millis(300))
            .run()
            .unwrap();
        assert_eq!(ended.code, None);
        assert!(ended.tidy().is_err());
    }

    #[test]
    fn leftovers_are_found() {
        let ended = sh("setsid sleep 1000 & touch $TMPDIR/x").run().unwrap();
        assert_eq!(ended.code, Some(0));
        assert_eq!(ended.left.len(), 2, "{:?}", ended.left);
        assert!(ended.tidy().is_err());
    }

    /// Names of other programs appear in /dev/shm at any time.
    #[test]
    fn only_names_of_the_library_count() {
        let own = format!("/dev/shm/gasnet-memory-{:016x}", std::process::id());
        let other = format!("/dev/shm/of-another-program-{}", std::process::id());
        let ended = sh(&format!("touch {own} {other}")).run().unwrap();
        for file in [&own, &other] {
            fs::remove_file(file).unwrap();
        }
        assert_eq!(ended.left, [own]);
    }

    #[test]
    fn counters_are_read() {
        let ended =
            sh("echo 1 10 11 12 13 14 15 16 17 18 19 >$GASNET_TEST_COUNTERS.1; echo 0 1 2 3 4 5 6 7 8 9 10 >$GASNET_TEST_COUNTERS.0")
                .run()
                .unwrap();
        assert_eq!(ended.counters.len(), 2);
        assert_eq!(
            ended.counters[1],
            crate::outcome::RankCounters {
                rank: 1,
                puts: 10,
                gets: 11,
                bytes: 12,
                framed: 13,
                remote: 19,
                dropped: 14,
                stalls: 15,
                waited: 16,
                refreshes: 17,
                caught: 18
            }
        );
        ended.tidy().unwrap();
    }
}
