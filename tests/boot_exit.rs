//! Starts and ends jobs of examples/exit_probe.rs in every way, under both launchers, and looks at the exit code, at
//! what was printed, at the time, and at what is left behind.
//!
//! Each job runs under a watchdog; a time is a verdict only where the interface promises one (2 seconds from the first
//! exit to the end, with allowance for a busy machine).

use std::io::Read;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// How a job is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Launcher {
    /// `GASNET_PSHM_NODES=N probe`
    Fork,
    /// `gasnetrun -n N probe`
    Run,
}
use Launcher::{Fork, Run};

const BOTH: [Launcher; 2] = [Fork, Run];

fn gasnetrun() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_gasnetrun"))
}

fn probe() -> PathBuf {
    let p = gasnetrun().with_file_name("examples").join("exit_probe");
    assert!(p.is_file(), "{} is missing: cargo build --examples", p.display());
    p
}

/// A job that was started.
struct Job {
    child: Child,
    mark: String,
    began: Instant,
    what: String,
}

/// A job that has ended.
#[derive(Debug)]
struct Outcome {
    /// Exit code; 128 + signal if the supervisor itself was killed.
    code: i32,
    out: String,
    err: String,
    took: Duration,
    /// Processes of the job that are still there.
    left: Vec<u32>,
    #[allow(dead_code, reason = "shown when a test fails")]
    what: String,
}

/// What tells the processes of one job from all others.
fn new_mark() -> String {
    static SERIAL: AtomicU32 = AtomicU32::new(0);
    format!("{}-{}", std::process::id(), SERIAL.fetch_add(1, Ordering::Relaxed))
}

fn start(launcher: Launcher, n: u32, args: &[&str], vars: &[(&str, &str)]) -> Job {
    let mark = new_mark();
    let mut c = match launcher {
        Fork => {
            let mut c = Command::new(probe());
            if n > 1 {
                c.env("GASNET_PSHM_NODES", n.to_string());
            }
            c
        }
        Run => {
            let mut c = Command::new(gasnetrun());
            c.arg("-n").arg(n.to_string()).arg(probe());
            c
        }
    };
    c.args(args).env("PROBE_MARK", &mark).envs(vars.iter().copied());
    spawn(c, mark, format!("{launcher:?} {n} {args:?}"))
}

fn spawn(mut c: Command, mark: String, what: String) -> Job {
    let began = Instant::now();
    let child =
        c.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("starting a job");
    Job { child, mark, began, what }
}

/// Processes, zombies aside, that carry this mark in their environment.
fn marked(mark: &str) -> Vec<u32> {
    let wanted = format!("PROBE_MARK={mark}");
    let holds = |pid: u32| {
        let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let dead = gasnet::os::process::liveness(pid) == gasnet::os::process::Liveness::Dead;
        !dead && environ.split(|&b| b == 0).any(|v| v == wanted.as_bytes())
    };
    std::fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .filter_map(|e| e.ok()?.file_name().to_str()?.parse().ok())
        .filter(|&pid| holds(pid))
        .collect()
}

fn slurp(mut from: impl Read + Send + 'static) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = from.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

impl Job {
    fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Waits until the ranks print that they run.
    fn wait_for_ranks(&self, n: usize) -> Vec<u32> {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let ranks: Vec<u32> = marked(&self.mark).into_iter().filter(|&p| p != self.pid()).collect();
            if ranks.len() == n {
                // Past their start, too: all wait in their ways of spending time.
                std::thread::sleep(Duration::from_millis(300));
                return ranks;
            }
            assert!(Instant::now() < deadline, "{}: the ranks do not appear", self.what);
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    fn finish(mut self) -> Outcome {
        use std::os::unix::process::ExitStatusExt;
        let out = slurp(self.child.stdout.take().expect("piped"));
        let err = slurp(self.child.stderr.take().expect("piped"));
        let watchdog = Instant::now() + Duration::from_secs(90);
        let status = loop {
            if let Some(s) = self.child.try_wait().expect("waiting") {
                break s;
            }
            if Instant::now() > watchdog {
                let stuck = marked(&self.mark);
                for pid in &stuck {
                    gasnet::os::process::kill(*pid, libc::SIGKILL);
                }
                panic!("{}: hangs; processes {stuck:?}; stderr: {}", self.what, err.join().unwrap());
            }
            std::thread::sleep(Duration::from_millis(2));
        };
        let took = self.began.elapsed();
        // The kernel needs a moment to take away what was killed together with its supervisor.
        let mut left = marked(&self.mark);
        for _ in 0..100 {
            if left.is_empty() || status.signal().is_none() {
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
            left = marked(&self.mark);
        }
        // Before the streams are read to their end, which somebody left behind would keep open.
        let what = self.what;
        let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
        if !left.is_empty() {
            return Outcome { code, out: String::new(), err: String::new(), took, left, what };
        }
        let (out, err) = (out.join().unwrap(), err.join().unwrap());
        Outcome { code, out, err, took, left, what }
    }
}

impl Outcome {
    #[track_caller]
    fn gives(&self, code: i32) -> &Self {
        assert_eq!(self.code, code, "{self:#?}");
        assert_eq!(self.left, [0u32; 0], "left behind: {self:#?}");
        assert!(self.took < Duration::from_secs(15), "{self:#?}");
        let names = std::fs::read_dir("/dev/shm").into_iter().flatten().flatten();
        assert!(names.map(|e| e.file_name()).all(|n| !n.to_string_lossy().contains("gasnet")), "{self:#?}");
        self
    }

    #[track_caller]
    fn says(&self, text: &str) -> &Self {
        assert!(self.err.contains(text) || self.out.contains(text), "no {text:?} in {self:#?}");
        self
    }

    #[track_caller]
    fn never_says(&self, text: &str) -> &Self {
        assert!(!self.err.contains(text) && !self.out.contains(text), "{text:?} in {self:#?}");
        self
    }
}

fn run(launcher: Launcher, n: u32, args: &[&str]) -> Outcome {
    start(launcher, n, args, &[]).finish()
}

fn last(n: u32) -> String {
    (n - 1).to_string()
}

#[test]
fn all_leave_with_one_code() {
    for launcher in BOTH {
        for n in [1, 2, 4] {
            for (way, code) in [
                ("return:0", 0),
                ("return:2", 2),
                ("exit:3", 3),
                ("gasnet_exit:6", 6),
                ("_exit:7", 7),
                ("_exit:0", 0),
            ] {
                let o = run(launcher, n, &["all", way, "spin"]);
                o.gives(code).never_says("***");
                if !way.starts_with('_') {
                    for rank in 0..n {
                        o.says(&format!("rank {rank} runs"));
                    }
                }
                // What was printed before the fork must not come out of every process.
                if launcher == Fork && !(n == 1 && way.starts_with('_')) {
                    assert_eq!(o.out.matches("before").count(), 1, "{o:#?}");
                }
            }
        }
    }
}

#[test]
fn one_leaves_and_the_others_follow() {
    for launcher in BOTH {
        for n in [2, 4] {
            for rest in ["barrier", "poll", "spin", "sleep", "masked"] {
                let way = if n == 2 { "gasnet_exit:5" } else { "return:5" };
                let o = run(launcher, n, &[&last(n), way, rest]);
                o.gives(5).never_says("killed by signal");
                assert_eq!(o.err.contains("did not leave"), rest == "masked", "{o:#?}");
                if rest != "masked" {
                    o.says("rank 0 runs");
                }
            }
        }
    }
}

#[test]
fn vanished_without_a_word() {
    for launcher in BOTH {
        run(launcher, 2, &["0", "_exit:9", "spin"]).gives(9);
        run(launcher, 2, &["1", "_exit:0", "poll"]).gives(0);
    }
}

#[test]
fn those_about_to_finish_may() {
    for launcher in BOTH {
        for way in ["gasnet_exit:0", "gasnet_exit:3"] {
            let code = way[12..].parse().unwrap();
            run(launcher, 3, &["1", way, "finish"])
                .gives(code)
                .says("rank 0 finishes")
                .says("rank 2 finishes");
        }
    }
}

#[test]
fn the_clients_quit_handler_runs_only_where_due() {
    for launcher in BOTH {
        for rest in ["spin", "poll", "barrier"] {
            let o = start(launcher, 2, &["1", "gasnet_exit:3", rest], &[("PROBE_QUIT", "1")]).finish();
            o.gives(3);
            assert_eq!(o.err.matches("client's SIGQUIT handler").count(), 1, "{o:#?}");
        }
        let o = start(launcher, 2, &["all", "gasnet_exit:3", "spin"], &[("PROBE_QUIT", "1")]).finish();
        o.gives(3).never_says("client's SIGQUIT handler");
        start(launcher, 2, &["1", "kill:2", "spin"], &[("PROBE_QUIT", "1")])
            .finish()
            .gives(4)
            .says("Caught a signal: SIGINT(2) on node 1/2")
            .says("client's SIGQUIT handler");
    }
}

#[test]
fn signals_of_one_rank() {
    for launcher in BOTH {
        run(launcher, 2, &["1", "kill:9", "poll"]).gives(137).says("rank 1 (pid ").says("signal 9 (SIGKILL)");
        run(launcher, 2, &["1", "kill:6", "spin"]).gives(134).says("fatal signal: SIGABRT(6) on node 1/2");
        run(launcher, 2, &["0", "null", "sleep"]).gives(139).says("fatal signal: SIGSEGV(11) on node 0/2");
        run(launcher, 2, &["0", "kill:15", "poll"]).gives(1).says("Caught a signal: SIGTERM(15) on node 0/2");
        start(launcher, 2, &["0", "kill:15", "poll"], &[("GASNET_NO_CATCH_SIGNAL", "FPE, TERM")])
            .finish()
            .gives(143)
            .never_says("Caught");
    }
    run(Fork, 1, &["0", "null", "-"]).gives(139).says("fatal signal: SIGSEGV(11) on node 0/1");
}

#[test]
fn a_killed_rank_ends_the_job_soon() {
    for launcher in BOTH {
        let job = start(launcher, 4, &["none", "-", "spin"], &[]);
        let ranks = job.wait_for_ranks(4);
        let killed = Instant::now();
        gasnet::os::process::kill(ranks[2], libc::SIGKILL);
        job.finish().gives(137).says(&format!("(pid {}) was killed by signal 9", ranks[2]));
        assert!(killed.elapsed() < Duration::from_secs(3), "{:?}", killed.elapsed());
    }
}

#[test]
fn a_killed_supervisor_takes_the_ranks_along() {
    for launcher in BOTH {
        for rest in ["spin", "barrier", "masked"] {
            let job = start(launcher, 3, &["none", "-", rest], &[]);
            job.wait_for_ranks(3);
            gasnet::os::process::kill(job.pid(), libc::SIGKILL);
            job.finish().gives(137);
        }
    }
    // Ranks that are not children of the launcher find that it hung up.
    let mark = new_mark();
    let mut c = Command::new(gasnetrun());
    c.args(["-n", "2", "sh", "-c", "\"$0\" none - spin; true"]).arg(probe()).env("PROBE_MARK", &mark);
    let job = spawn(c, mark, "wrapped ranks".into());
    job.wait_for_ranks(4);
    gasnet::os::process::kill(job.pid(), libc::SIGKILL);
    job.finish().gives(137).says("the launcher is gone, so the job ends");
}

#[test]
fn a_stopped_rank_is_told_of_and_killed() {
    for launcher in BOTH {
        let job = start(launcher, 3, &["2", "alarm:5", "stop"], &[]);
        job.finish().gives(5).says("is stopped and cannot leave the job; it is killed");
    }
}

#[test]
fn signals_to_the_supervisor_reach_the_ranks() {
    for launcher in BOTH {
        for (s, rest) in [(libc::SIGINT, "spin"), (libc::SIGTERM, "barrier"), (libc::SIGHUP, "poll")] {
            let job = start(launcher, 2, &["none", "-", rest], &[]);
            job.wait_for_ranks(2);
            gasnet::os::process::kill(job.pid(), s);
            job.finish().gives(1).says(&format!("Caught a signal: {}", gasnet::os::signal::name(s)));
        }
        // Ranks that hear nothing: the second request is the last.
        let job = start(launcher, 2, &["none", "-", "masked"], &[]);
        job.wait_for_ranks(2);
        gasnet::os::process::kill(job.pid(), libc::SIGTERM);
        std::thread::sleep(Duration::from_millis(200));
        gasnet::os::process::kill(job.pid(), libc::SIGTERM);
        job.finish().gives(143);
    }
}

/// As a shell without job control starts what is to run in the background.
#[test]
fn a_job_that_ignores_quit_ends_on_request() {
    let mark = new_mark();
    let mut c = Command::new("sh");
    c.args(["-c", "trap '' INT QUIT; exec \"$0\" \"$@\""]).arg(gasnetrun()).args(["-n", "2"]).arg(probe());
    c.args(["none", "-", "spin"]).env("PROBE_MARK", &mark);
    let job = spawn(c, mark, "QUIT ignored".to_string());
    job.wait_for_ranks(2);
    gasnet::os::process::kill(job.pid(), libc::SIGTERM);
    job.finish().gives(1).says("Caught a signal: SIGTERM");
}

#[test]
fn children_of_ranks_do_not_count() {
    for launcher in BOTH {
        run(launcher, 2, &["0", "childexit:3", "spin"]).gives(0).never_says("***");
        // The child that lives on keeps the control socket and the memory files open.
        let began = Instant::now();
        let o = run(launcher, 2, &["1", "orphan:8", "spin"]);
        assert!(began.elapsed() < Duration::from_secs(10), "{o:#?}");
        assert_eq!((o.code, o.left.len()), (8, 1), "{o:#?}");
        for pid in o.left {
            gasnet::os::process::kill(pid, libc::SIGKILL);
        }
    }
}

#[test]
fn threads_and_interrupting_handlers() {
    for launcher in BOTH {
        run(launcher, 2, &["1", "thread:14", "poll"]).gives(14);
        run(launcher, 2, &["all", "thread:14", "-"]).gives(14);
        for _ in 0..5 {
            run(launcher, 2, &["all", "alarm:11", "-"]).gives(11);
            run(launcher, 2, &["0", "alarm:11", "spin"]).gives(11);
        }
    }
}

#[test]
fn exchange_and_barrier() {
    for launcher in BOTH {
        for n in [1, 2, 3, 8] {
            run(launcher, n, &["all", "exchange", "-"]).gives(0).never_says("panicked");
            run(launcher, n, &["all", "nap", "-"]).gives(0);
        }
    }
}

#[test]
fn programs_that_never_join() {
    let job = |n: u32, words: &[&str]| {
        let mark = new_mark();
        let mut c = Command::new(gasnetrun());
        c.arg("-n").arg(n.to_string()).args(words).env("PROBE_MARK", &mark);
        spawn(c, mark, format!("{n} {words:?}")).finish()
    };
    let o = job(3, &["echo", "a  b", "-n", "--", "$HOME"]);
    o.gives(0);
    assert_eq!(o.out, "a  b -n -- $HOME\n".repeat(3));
    job(2, &["--", "true"]).gives(0);
    job(2, &["false"]).gives(1).says("ended with exit code 1 before gasnet_init");
    let script = r#"if [ "${GASNET_SPAWN_FDS%%,*}" = 1 ]; then exit 0; fi; exec "$0" all return:0 -"#;
    job(2, &["sh", "-c", script, probe().to_str().unwrap()])
        .gives(1)
        .says("rank 1 (pid ")
        .says("before gasnet_init, which other ranks have called");
    // A wrapper that stays: the rank is not the process that was started.
    let wrapped = r#""$0" 0 kill:9 spin; while :; do :; done"#;
    job(2, &["sh", "-c", wrapped, probe().to_str().unwrap()]).gives(1).says("ended without leaving the job");
    let wrapped = r#""$0" all return:5 -; exit $?"#;
    job(2, &["sh", "-c", wrapped, probe().to_str().unwrap()]).gives(5);
}

#[test]
fn stdin_goes_to_rank_0() {
    use std::io::Write;
    let mut child = Command::new(gasnetrun())
        .args(["-np", "3", "cat"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"one line\n").unwrap();
    let o = child.wait_with_output().unwrap();
    assert!(o.status.success());
    assert_eq!(o.stdout, b"one line\n");
}

#[test]
fn bad_usage_is_told() {
    let plain = std::env::temp_dir().join(format!("boot_exit-{}", std::process::id()));
    std::fs::write(&plain, "not a program").unwrap();
    let cases: &[(&[&str], &str)] = &[
        (&["true"], "the number of processes is missing"),
        (&["-n", "0", "true"], "-n 0 is not a number from 1"),
        (&["-n", "lots", "true"], "-n lots is not a number from 1"),
        (&["-n", "2"], "the program is missing"),
        (&["-n", "2", "--frobnicate", "true"], "frobnicate"),
        (&["-n", "2", "./does-not-exist"], "cannot be run"),
        (&["-n", "2", "does-not-exist"], "no directory of PATH has it"),
        (&["-n", "2", plain.to_str().unwrap()], "not executable"),
        (&["-n", "2", "/etc"], "is a directory"),
    ];
    for (args, text) in cases {
        let o = Command::new(gasnetrun()).args(*args).stdin(Stdio::null()).output().unwrap();
        let err = String::from_utf8_lossy(&o.stderr);
        assert!(!o.status.success(), "{args:?}");
        assert!(err.contains(text), "{args:?}: {err}");
        assert_eq!(err.lines().count(), 2, "one line of cause, one of remedy: {err}");
    }
    std::fs::remove_file(&plain).unwrap();
    let o = Command::new(gasnetrun()).args(["-t", "-n", "2", "prog", "a b"]).output().unwrap();
    assert!(o.status.success());
    assert!(String::from_utf8_lossy(&o.stderr).contains("prog 'a b'"));
    // A job environment without the job.
    let o = Command::new(probe())
        .args(["all", "return:0", "-"])
        .env("GASNET_SPAWN_FDS", "0,2,5,50,51,52,53,54")
        .output()
        .unwrap();
    assert_eq!(o.status.code(), Some(9));
    assert!(String::from_utf8_lossy(&o.stderr).contains("Unset GASNET_SPAWN_FDS"));
}
