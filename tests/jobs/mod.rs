//! Jobs of tests/jobs/exit_probe.rs under every launcher, and their outcomes. Shared by the test
//! programs of this directory.
//!
//! Each job runs under a watchdog. Its processes carry a mark in their environment, by which
//! processes that are left behind are found.

#![allow(dead_code, unreachable_pub, reason = "each test program uses a part")]

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// How a job is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProbeLauncher {
    /// `GASNET_PSHM_NODES=N probe`
    Fork,
    /// `gasnetrun -n N probe`
    Run,
    /// `gasnetrun -n N -H localhost,other probe`, where the other host is this machine too
    Hosts,
    /// MPICH's mpiexec
    Hydra,
    /// Open MPI's mpirun
    OpenMpi,
    /// Slurm's srun, with PMI-2
    Slurm,
    /// Slurm's srun, with PMIx
    SlurmPmix,
}
use ProbeLauncher::{Fork, Hosts, Hydra, OpenMpi, Run, Slurm, SlurmPmix};

/// The number of test hosts on which the other launchers start processes: those of
/// ci/with-hosts.sh, or this one.
pub fn test_hosts() -> u32 {
    std::env::var("HOSTS").map_or(1, |hosts| hosts.split(',').count() as u32)
}

/// What the launcher must know to do so.
fn options_of_hosts(launcher: ProbeLauncher, n: u32) -> Vec<String> {
    let Ok(hosts) = std::env::var("HOSTS") else { return Vec::new() };
    let ssh = std::env::var("GASNET_SSH_CMD").expect("set by ci/with-hosts.sh");
    let options = match launcher {
        Hydra => format!("-launcher ssh -launcher-exec {ssh} -iface eth0 -hosts {hosts}"),
        OpenMpi => {
            format!("--mca plm_rsh_agent {ssh} --mca oob_tcp_if_include eth0 --host {hosts}")
        }
        _ => format!("-N {}", n.min(test_hosts())),
    };
    options.split(' ').map(str::to_string).collect()
}

/// The command with which another launcher starts a job of `n` processes.
pub fn foreign(launcher: ProbeLauncher, n: u32) -> Command {
    let (name, options): (_, &[&str]) = match launcher {
        Hydra => ("mpiexec.hydra", &[]),
        OpenMpi => ("mpirun.openmpi", &["--allow-run-as-root", "--oversubscribe"]),
        Slurm => ("srun", &["--mpi=pmi2", "--overcommit", "--quiet"]),
        SlurmPmix => ("srun", &["--mpi=pmix", "--overcommit", "--quiet"]),
        Fork | Run | Hosts => panic!("{launcher:?} is not foreign"),
    };
    let mut c = Command::new(name);
    c.args(options).args(options_of_hosts(launcher, n)).arg("-n").arg(n.to_string());
    c
}

pub fn gasnetrun() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_gasnetrun"))
}

pub fn probe() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_exit_probe"))
}

/// A job that was started.
pub struct ProbeJob {
    child: Child,
    pub mark: String,
    began: Instant,
    what: String,
    /// Its launcher may exit shortly before its last processes, as srun does when it kills a
    /// step.
    pub hasty: bool,
}

/// A job that has ended.
#[derive(Debug)]
pub struct ProbeOutcome {
    /// Exit code; 128 + signal if the supervisor itself was killed.
    pub code: i32,
    pub out: String,
    pub err: String,
    pub took: Duration,
    /// Processes of the job that still exist.
    pub left: Vec<u32>,
    /// Their names.
    names: Vec<String>,
    what: String,
}

/// A mark that distinguishes the processes of one job from all others.
pub fn new_mark() -> String {
    static SERIAL: AtomicU32 = AtomicU32::new(0);
    format!("{}-{}", std::process::id(), SERIAL.fetch_add(1, Ordering::Relaxed))
}

pub fn start(launcher: ProbeLauncher, n: u32, args: &[&str], vars: &[(&str, &str)]) -> ProbeJob {
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
        Hosts => {
            let mut c = several_hosts(n);
            c.arg(probe());
            c
        }
        _ => {
            let mut c = foreign(launcher, n);
            c.arg(probe());
            c
        }
    };
    c.args(args).env("PROBE_MARK", &mark).envs(vars.iter().copied());
    spawn(c, mark, format!("{launcher:?} {n} {args:?}"))
}

/// gasnetrun with `n` ranks, the first half on this host and the others on one that is this
/// machine under another name.
pub fn several_hosts(n: u32) -> Command {
    let (here, there) = (n.div_ceil(2), (n / 2).max(1));
    on_hosts(n, &format!("localhost:{here},other.invalid:{there}"))
}

/// gasnetrun with a number of ranks on each host. The first host is this machine, and so are the
/// others, which are called h1.invalid, h2.invalid and so on.
pub fn many_hosts(hosts: u32, each: u32) -> Command {
    let others = (1..hosts).map(|host| format!(",h{host}.invalid:{each}"));
    on_hosts(hosts * each, &format!("localhost:{each}{}", others.collect::<String>()))
}

/// gasnetrun with these ranks on these hosts, which are this machine.
pub fn on_hosts(n: u32, hosts: &str) -> Command {
    let mut c = Command::new(gasnetrun());
    c.args(["-n", &n.to_string(), "-H", hosts]);
    c.env("GASNET_SSH_CMD", concat!(env!("CARGO_MANIFEST_DIR"), "/tests/jobs/enter_host.sh"));
    c.env("GASNET_NETWORK_INTERFACE", "lo");
    c
}

/// The names in /dev/shm before the first job.
static NAMES_BEFORE: OnceLock<BTreeSet<OsString>> = OnceLock::new();

/// The names in /dev/shm that the library can have made.
fn names_of_shared_memory() -> BTreeSet<OsString> {
    let names = std::fs::read_dir("/dev/shm").into_iter().flatten().flatten();
    let names = names.map(|entry| entry.file_name());
    names.filter(|name| sys::memory::is_file_name(name)).collect()
}

pub fn spawn(mut c: Command, mark: String, what: String) -> ProbeJob {
    NAMES_BEFORE.get_or_init(names_of_shared_memory);
    let began = Instant::now();
    let child = c
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("starting a job");
    // Supervisors of other hosts learn of the end at the same time as the launcher.
    let hasty = test_hosts() > 1;
    ProbeJob { child, mark, began, what, hasty }
}

/// Processes, zombies aside, that carry this mark in their environment.
pub fn marked(mark: &str) -> Vec<u32> {
    let wanted = format!("PROBE_MARK={mark}");
    let holds = |pid: u32| {
        let environ = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        let dead = sys::process::liveness(pid) == sys::process::Liveness::Dead;
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

impl ProbeJob {
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether a process of the job is none of its supervisors and their helpers.
    fn is_rank(&self, pid: u32) -> bool {
        let name = sys::process::name_of(pid);
        let is_helper = ["gasnetrun", "gasnet-guard", "setsid"].contains(&name.as_str());
        pid != self.pid() && !is_helper
    }

    /// Waits until the ranks print that they run.
    pub fn wait_for_ranks(&self, n: usize) -> Vec<u32> {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let ranks: Vec<u32> =
                marked(&self.mark).into_iter().filter(|&p| self.is_rank(p)).collect();
            if ranks.len() == n {
                // Past their start: all are in the activity of their arguments.
                std::thread::sleep(Duration::from_millis(300));
                return ranks;
            }
            assert!(Instant::now() < deadline, "{}: the ranks do not appear", self.what);
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    pub fn finish(mut self) -> ProbeOutcome {
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
                    sys::process::kill(*pid, sys::signal::Signal::KILL);
                }
                panic!(
                    "{}: hangs; processes {stuck:?}; stderr: {}",
                    self.what,
                    err.join().unwrap()
                );
            }
            std::thread::sleep(Duration::from_millis(2));
        };
        let took = self.began.elapsed();
        // The kernel needs a moment to remove processes killed together with their supervisor,
        // and srun has a second process, which ends after it.
        let is_srun = |&pid: &u32| sys::process::name_of(pid) == "srun";
        let mut left = marked(&self.mark);
        for _ in 0..100 {
            let is_soon_gone = status.signal().is_some() || self.hasty || left.iter().all(is_srun);
            if left.is_empty() || !is_soon_gone {
                break;
            }
            std::thread::sleep(Duration::from_millis(20));
            left = marked(&self.mark);
        }
        // Checked before the streams are read, which a process left behind would keep open.
        let what = self.what;
        let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
        if !left.is_empty() {
            let names = left.iter().map(|&pid| sys::process::name_of(pid)).collect();
            return ProbeOutcome {
                code,
                out: String::new(),
                err: String::new(),
                took,
                left,
                names,
                what,
            };
        }
        let (out, err) = (out.join().unwrap(), err.join().unwrap());
        ProbeOutcome { code, out, err, took, left, names: Vec::new(), what }
    }
}

impl ProbeOutcome {
    #[track_caller]
    pub fn gives(&self, code: i32) -> &Self {
        assert_eq!(self.code, code, "{self:#?}");
        assert_eq!(self.left, [0u32; 0], "left behind: {self:#?}");
        assert!(self.took < Duration::from_secs(15), "{self:#?}");
        // Jobs of other checkouts make names too, and remove them.
        let soon = Instant::now() + Duration::from_secs(2);
        let before = NAMES_BEFORE.get_or_init(names_of_shared_memory);
        let left = || names_of_shared_memory().difference(before).cloned().collect::<Vec<_>>();
        while !left().is_empty() && Instant::now() < soon {
            std::thread::sleep(Duration::from_millis(20));
        }
        assert_eq!(left(), [""; 0], "left behind: {self:#?}");
        self
    }

    #[track_caller]
    pub fn says(&self, text: &str) -> &Self {
        assert!(self.err.contains(text) || self.out.contains(text), "no {text:?} in {self:#?}");
        self
    }

    #[track_caller]
    pub fn never_says(&self, text: &str) -> &Self {
        assert!(!self.err.contains(text) && !self.out.contains(text), "{text:?} in {self:#?}");
        self
    }
}

/// Reports that a test cannot run without this Debian package. `ci/check.sh` counts the lines of
/// the file.
pub fn skip(test: &str, package: &str) {
    let line = format!("skipped {test}: needs the Debian package {package}\n");
    print!("{line}");
    if let Some(path) = std::env::var_os("CHECK_SKIPPED") {
        let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
        file.and_then(|mut file| file.write_all(line.as_bytes())).unwrap();
    }
}

pub fn run(launcher: ProbeLauncher, n: u32, args: &[&str]) -> ProbeOutcome {
    start(launcher, n, args, &[]).finish()
}

/// A rank runs programs that are jobs of their own and inherit its environment and descriptors;
/// none of them disturbs its job.
pub fn programs_of_ranks(launcher: ProbeLauncher) {
    let inner = |command: &str, control: &str| {
        let command = command.replace('@', probe().to_str().unwrap());
        let vars = [("PROBE_COMMAND", command.as_str()), ("GASNET_SPAWN_CONTROL", control)];
        let o = start(launcher, 2, &["1", "command:5", "barrier"], &vars).finish();
        o.gives(5).never_says("panicked");
        o.out
    };
    let control = match launcher {
        Hydra | Slurm => "PMI",
        OpenMpi | SlurmPmix => "PMIX",
        Fork | Run | Hosts => "",
    };
    for control in ["", control] {
        let alone = inner("GASNET_PSHM_NODES=1 @ all return:0 -", control);
        assert_eq!(alone.matches("rank 0 runs").count(), 2, "{alone}");
        assert_eq!(alone.matches("rank 1 runs").count(), 1, "{alone}");
    }
    let run = gasnetrun();
    let three = inner(&format!("{} -n 3 @ all return:0 -", run.display()), "");
    assert_eq!(three.matches("rank 2 runs").count(), 1, "{three}");
    // A rank of the inner job starts one more with what its launcher gave to it.
    let nested = inner(
        &format!("PROBE_COMMAND='@ all return:0 -' {} -n 1 @ 0 command:0 -", run.display()),
        "",
    );
    assert_eq!(nested.matches("rank 0 runs").count(), 3, "{nested}");
}

pub fn last(n: u32) -> String {
    (n - 1).to_string()
}

/// A job of gasnetrun with options.
pub fn with(options: &[&str], words: &[&str]) -> ProbeOutcome {
    let mark = new_mark();
    let mut c = Command::new(gasnetrun());
    c.args(options).args(words).env("PROBE_MARK", &mark);
    spawn(c, mark, format!("{options:?} {words:?}")).finish()
}
