//! One side of the comparison, and how its programs are built and started. A side is an
//! installation of GASNet (ours over one of its paths, or another one), an MPI or OpenSHMEM
//! library, or the machine itself.

use crate::building::{cc, client_of, compile, package};
use crate::columns::RowFigures;
use crate::identity;
use crate::turns::{EVERYTHING, EX, GasnetKind, LINE, Run, STARTED, STARTUP_CPUINFO, Turn};
use capi_tests::build_trees;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// The time limit of a program.
const WATCHDOG: Duration = Duration::from_secs(600);
/// Ranks of the jobs whose start and end is timed.
pub(crate) const STARTS: &[u32] = &[1, 2, 4, 8, 16, 32, 64];
/// Ranks of the jobs whose start and end by a launcher is timed.
const LAUNCHES: &[u32] = &[2, 64];

/// What an installation of GASNet has that is a GASNet-EX.
const EX_HEADER: &str = "include/gasnetex.h";

const LARGE: &str = "large";

const SIMULATOR: &str = "firehose-sim";

/// What clients of a segment mode are compiled with, and how an installation of GASNet that has
/// only EVERYTHING says so.
const SEGMENT_LARGE: &str = "-DGASNET_SEGMENT_LARGE";
const SEGMENT_EVERYTHING: &str = "-DGASNET_SEGMENT_EVERYTHING";
const PEER_EVERYTHING: &str = "#define GASNET_SEGMENT_EVERYTHING 1";

/// The programs that are built against a GASNet.
const PROGRAMS: &[&str] = &["rma", "am", "barrier", "coll", "vis", "memory", "startup"];
/// The programs that are built against our library only.
const OURS: &[&str] = &[EX, "idle"];

/// The kinds of systems.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Machine,
    /// A GASNet-1, or this library, which is also a GASNet-EX.
    Gasnet,
    /// The same, with ranks that block.
    Blocking,
    /// The same, once more.
    Again,
    /// A GASNet-EX.
    Ex,
    /// A GASNet whose ranks may name any address; this library if it is ours.
    Everything {
        ours: bool,
    },
    /// A GASNet or this library, and a GASNet's own test programs.
    Tests(GasnetKind),
    /// This library over a network that demands registration.
    Registered,
    /// The simulator of firehoses.
    Simulator,
    /// This library over libportals-contrary, which completes a put in a call of its target.
    WithoutBypass,
    /// Another library, which runs this program with two ranks.
    Other(&'static str),
    /// A GASNet over two hosts.
    Hosts,
    /// This library over two hosts, which delivers without calls of the target.
    Idle,
    /// This library with this many ranks, of which the first and the last are on one host.
    Neighbours(u32),
    /// Jobs of four hosts, which run this program.
    HostStarts(&'static str),
    /// A wire between two hosts without GASNet, measured by this program.
    BareWire(&'static str),
}

/// How a program is started as a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// `GASNET_PSHM_NODES=n prog`; a plain process where there is no GASNet.
    Fork,
    /// `launcher ... -n n prog`
    JobLauncher(Vec<String>),
}

/// One side of the comparison.
#[derive(Clone, Debug)]
pub(crate) struct BenchSystem {
    pub(crate) name: String,
    pub(crate) start: Start,
    pub(crate) environment: Vec<(String, String)>,
    /// The folder of its programs.
    pub(crate) programs: PathBuf,
    pub(crate) kind: Kind,
    /// The launcher whose starts are timed, and a job that only starts and ends.
    pub(crate) launch: Option<(Start, &'static str)>,
    /// What was installed or built; empty if it follows from the commit.
    pub(crate) version: String,
}

/// Why a program brought no figures.
pub(crate) enum RunFailure {
    /// It did not end in time.
    TimedOut(String),
    /// It did not start, or failed.
    Failed(String),
}

impl From<RunFailure> for String {
    fn from(failure: RunFailure) -> String {
        let (RunFailure::TimedOut(text) | RunFailure::Failed(text)) = failure;
        text
    }
}

/// With it, smp-conduit starts without a sleep of 100 ms.
pub(crate) const UNCALIBRATED: (&str, &str) = ("GASNET_TSC_RATE", "cpuinfo");

/// The variables that programs do not inherit: those of the libraries that are measured.
const CLEARED: &[&str] = &["GASNET_", "OMPI_", "MPICH_", "FI_", "UCX_", "PTL_"];
/// Without these two, Open MPI does not start as root.
const KEPT: &str = "OMPI_ALLOW_RUN_AS_ROOT";

/// Whether programs do not inherit this variable.
fn is_cleared(variable: &str) -> bool {
    CLEARED.iter().any(|prefix| variable.starts_with(prefix)) && !variable.starts_with(KEPT)
}

impl BenchSystem {
    /// A system whose programs are in this folder and fork.
    pub(crate) fn new(name: &str, programs: PathBuf, kind: Kind) -> BenchSystem {
        BenchSystem {
            name: name.to_string(),
            start: Start::Fork,
            environment: Vec::new(),
            programs,
            kind,
            launch: None,
            version: String::new(),
        }
    }

    /// The machine's own limits.
    pub(crate) fn limits() -> Result<BenchSystem, String> {
        let programs = build_trees::build().join("bench/limits");
        compile(&cc(), "limits", &programs, &[])?;
        Ok(BenchSystem::new("machine", programs, Kind::Machine))
    }

    /// `openmpi`, `mpich` or `shmem`, by the command names of Debian's packages.
    pub(crate) fn foreign(name: &str) -> Result<BenchSystem, String> {
        let (compiler, program, launcher) = match name {
            "openmpi" => (
                "mpicc.openmpi",
                "mpi",
                "mpirun.openmpi --allow-run-as-root --oversubscribe --bind-to none",
            ),
            "mpich" => ("mpicc.mpich", "mpi", "mpiexec.mpich"),
            "shmem" => {
                ("oshcc", "shmem", "oshrun --allow-run-as-root --oversubscribe --bind-to none")
            }
            _ => return Err(format!("{name} is none of openmpi, mpich, shmem")),
        };
        let programs = build_trees::build().join("bench").join(name);
        compile(compiler, program, &programs, &[])?;
        let start = Start::JobLauncher(launcher.split(' ').map(str::to_string).collect());
        let launch = (program == "mpi").then(|| (start.clone(), "mpi_startup"));
        if let Some((_, program)) = launch {
            compile(compiler, program, &programs, &[])?;
        }
        let version = identity::of_launcher(&start)?;
        let system = BenchSystem::new(name, programs, Kind::Other(program));
        Ok(BenchSystem { start, launch, version, ..system })
    }

    /// This library, with these variables.
    pub(crate) fn ours(name: &str, environment: &[(&str, &str)]) -> Result<BenchSystem, String> {
        let programs = build_trees::build().join("bench/ours");
        let flags = package(&build_trees::build(), "gasnet-portals-seq", &["--cflags", "--libs"])?;
        for program in PROGRAMS.iter().chain(OURS) {
            compile(&cc(), program, &programs, &flags)?;
        }
        let environment =
            environment.iter().map(|(n, v)| (n.to_string(), v.to_string())).collect();
        let launcher = build_trees::build().join("bin/gasnetrun").display().to_string();
        let launch = Some((Start::JobLauncher(vec![launcher]), "startup"));
        let system = BenchSystem::new(name, programs, Kind::Gasnet);
        Ok(BenchSystem { environment, launch, ..system })
    }

    /// The same system under another name, as another kind; `None` unless it is a GASNet-1.
    pub(crate) fn same_as(&self, name: &str, kind: Kind) -> Option<BenchSystem> {
        (self.kind == Kind::Gasnet).then(|| BenchSystem {
            name: name.into(),
            kind,
            launch: None,
            version: String::new(),
            ..self.clone()
        })
    }

    /// This library for programs that are compiled for EVERYTHING.
    pub(crate) fn everything() -> Result<BenchSystem, String> {
        let programs = build_trees::build().join("bench").join(EVERYTHING);
        let mut flags =
            package(&build_trees::build(), "gasnet-portals-seq", &["--cflags", "--libs"])?;
        flags.push(SEGMENT_EVERYTHING.to_string());
        for program in ["rma", EVERYTHING] {
            compile(&cc(), program, &programs, &flags)?;
        }
        Ok(BenchSystem::new(EVERYTHING, programs, Kind::Everything { ours: true }))
    }

    /// This library for programs that are compiled for LARGE, where memory is registered: by the
    /// firehose on demand, otherwise the segments whole. With `events` an event completes each
    /// operation, as over a network of hardware.
    pub(crate) fn registered(
        name: &str,
        firehose: bool,
        events: bool,
    ) -> Result<BenchSystem, String> {
        let programs = build_trees::build().join("bench").join(LARGE);
        let mut flags =
            package(&build_trees::build(), "gasnet-portals-seq", &["--cflags", "--libs"])?;
        flags.push(SEGMENT_LARGE.to_string());
        compile(&cc(), "rma", &programs, &flags)?;
        let environment = [
            ("GASNET_PORTAL_PIN", "1"),
            ("GASNET_SUPERNODE_MAXSIZE", "1"),
            ("GASNET_PORTAL_AT_ONCE", if events { "0" } else { "1" }),
            ("GASNET_USE_FIREHOSE", if firehose { "1" } else { "0" }),
        ]
        .map(|(name, value)| (name.to_string(), value.to_string()))
        .to_vec();
        Ok(BenchSystem { environment, ..BenchSystem::new(name, programs, Kind::Registered) })
    }

    /// The simulator of firehoses, which has the library's own.
    pub(crate) fn simulator() -> Result<BenchSystem, String> {
        let cargo = std::env::var("CARGO").unwrap_or("cargo".to_string());
        let target = build_trees::root().join("target");
        let mut build = Command::new(&cargo);
        build
            .args(["build", "--quiet", "--release", "-p", SIMULATOR, "--target-dir"])
            .arg(&target);
        let status = build.status().map_err(|e| format!("{cargo}: {e}"))?;
        if !status.success() {
            return Err(format!("{SIMULATOR} does not build: {status}"));
        }
        Ok(BenchSystem::new(SIMULATOR, target.join("release"), Kind::Simulator))
    }

    /// This library over a network without application bypass, with these variables; `None` if
    /// its tree was not built.
    pub(crate) fn without_bypass(
        name: &str,
        environment: &[(&str, &str)],
    ) -> Result<Option<BenchSystem>, String> {
        let tree = build_trees::build_contrary();
        if !tree.join("lib/libgasnet.so").exists() {
            return Ok(None);
        }
        let programs = tree.join("bench");
        let flags = package(&tree, "gasnet-portals-seq", &["--cflags", "--libs"])?;
        compile(&cc(), "rma", &programs, &flags)?;
        let always =
            [("CONTRARY", "in_calls"), ("PTL_ATTACH", "0"), ("GASNET_SUPERNODE_MAXSIZE", "1")];
        let environment = always.iter().chain(environment);
        let environment = environment.map(|(n, v)| (n.to_string(), v.to_string())).collect();
        let system = BenchSystem::new(name, programs, Kind::WithoutBypass);
        Ok(Some(BenchSystem { environment, ..system }))
    }

    /// `PREFIX[,CONDUIT]`: another installation, built as its pkg-config file says. Its name is
    /// the conduit's, with `-ex` if it is a GASNet-EX and `-everything` if it was built for that
    /// segment mode.
    pub(crate) fn peer(text: &str) -> Result<BenchSystem, String> {
        let (prefix, conduit) = text.split_once(',').unwrap_or((text, "smp"));
        let (linker, flags) = client_of(Path::new(prefix), conduit)?;
        let header = Path::new(prefix).join("include/gasnet_config.h");
        let header =
            fs::read_to_string(&header).map_err(|e| format!("{}: {e}", header.display()))?;
        let version = identity::of_gasnet(&header).map_err(|e| format!("{text}: {e}"))?;
        // For EVERYTHING one program runs alone; the others may need another version of GASNet.
        let is_everything = header.lines().any(|line| line == PEER_EVERYTHING);
        let (name, kind, needed) = if Path::new(prefix).join(EX_HEADER).exists() {
            (format!("{conduit}-{EX}"), Kind::Ex, &[EX][..])
        } else if is_everything {
            (format!("{conduit}-{EVERYTHING}"), Kind::Everything { ours: false }, &["rma"][..])
        } else {
            (conduit.to_string(), Kind::Gasnet, PROGRAMS)
        };
        let programs = build_trees::build().join("bench").join(&name);
        for program in needed {
            compile(&linker, program, &programs, &flags)?;
        }
        let start = match conduit {
            "smp" => Start::Fork,
            _ => Start::JobLauncher(vec![format!("{prefix}/bin/gasnetrun_{conduit}")]),
        };
        // The launcher may start Open MPI's, which needs options for what other systems do by
        // default.
        let environment =
            [("rmaps_base_oversubscribe", "1"), ("hwloc_base_binding_policy", "none")]
                .map(|(name, value)| (format!("OMPI_MCA_{name}"), value.to_string()));
        let environment = environment.to_vec();
        let system = BenchSystem::new(&name, programs, kind);
        Ok(BenchSystem { start, environment, version, ..system })
    }

    /// The same system with this variable.
    pub(crate) fn with_variable(&self, (name, value): (&str, &str)) -> BenchSystem {
        let mut system = self.clone();
        system.environment.push((name.to_string(), value.to_string()));
        system
    }

    /// The programs that it runs in a turn.
    fn runs(&self, turn: Turn) -> Vec<Run> {
        match (turn, self.kind) {
            // No row compares these of another path or conduit.
            (Turn::Run((program, ..), _) | Turn::LongBlocks((program, ..)), Kind::Gasnet)
                if matches!(program, "coll" | "vis" | "memory")
                    && !["cross-mapped", "smp"].contains(&self.name.as_str()) =>
            {
                Vec::new()
            }
            (Turn::Run(run, _), Kind::Gasnet)
            | (Turn::LongBlocks(run), Kind::Gasnet)
            | (Turn::Ex(run), Kind::Ex)
            | (Turn::Blocking(run), Kind::Blocking)
            | (Turn::WithoutBypass(run), Kind::WithoutBypass)
            | (Turn::Registered(run), Kind::Registered)
            | (Turn::Idle(run), Kind::Idle) => vec![run],
            (Turn::Tests(of, run), Kind::Tests(kind)) if of == kind => vec![run],
            (Turn::Ex(run), Kind::Gasnet) if self.launch.is_some() => vec![run],
            (Turn::Run(run, _), Kind::Again) if matches!(run.0, "rma" | "barrier") => vec![run],
            (Turn::MpiCollectives(n, names), Kind::Other("mpi")) if self.name == "openmpi" => {
                vec![("mpi", n, names)]
            }
            (Turn::Hits, Kind::Simulator) => vec![(SIMULATOR, 1, &["--speed", "--figures"])],
            // The program of this name needs ranks that reach each other by cross-memory attach.
            (Turn::Everything(run), Kind::Everything { ours }) if ours || run.0 != EVERYTHING => {
                vec![run]
            }
            (Turn::Run(_, limits), Kind::Machine) if !limits.is_empty() => {
                vec![("limits", 1, limits)]
            }
            (Turn::Others, Kind::Other(program)) => vec![(program, 2, &[])],
            (Turn::Hosts(runs), Kind::Hosts) => runs.to_vec(),
            (Turn::Hosts(_), Kind::BareWire(program)) => vec![(program, 2, &[])],
            (Turn::Neighbours(runs), Kind::Neighbours(processes)) => {
                runs.iter().map(|&(program, names)| (program, processes, names)).collect()
            }
            _ => Vec::new(),
        }
    }

    /// Whether it takes part in a turn.
    pub(crate) fn takes_part(&self, turn: Turn) -> bool {
        match (turn, self.kind) {
            (Turn::Starts, kind) => self.launch.is_some() || kind == Kind::Gasnet,
            (Turn::HostStarts, Kind::HostStarts(_)) => true,
            _ => !self.runs(turn).is_empty(),
        }
    }

    /// What it measures in a turn, if anything.
    pub(crate) fn measure(
        &self,
        turn: Turn,
        ms: f64,
        largest: usize,
    ) -> Result<RowFigures, String> {
        let mut figures = RowFigures::default();
        match (turn, self.kind) {
            (Turn::Starts, _) => {
                if let Some((start, program)) = &self.launch {
                    self.time_starts(&mut figures, "launch", start, LAUNCHES, program)?;
                }
                if self.kind == Kind::Gasnet {
                    self.time_starts(&mut figures, "startup", &self.start, STARTS, "startup")?;
                    if self.launch.is_none() && self.start == Start::Fork {
                        let uncalibrated = self.with_variable(UNCALIBRATED);
                        let (name, start) = (STARTUP_CPUINFO, &self.start);
                        uncalibrated.time_starts(
                            &mut figures,
                            name,
                            start,
                            LAUNCHES,
                            "startup",
                        )?;
                    }
                }
            }
            (Turn::HostStarts, Kind::HostStarts(program)) => {
                self.time_starts(&mut figures, "launch", &self.start, &[STARTED], program)?;
            }
            _ => {}
        }
        // GASNet ends a job whose blocks exceed its scratch space.
        let scratch = ("GASNET_COLL_SCRATCH_SIZE", "64M");
        let with_scratch =
            matches!(turn, Turn::LongBlocks(_)).then(|| self.with_variable(scratch));
        let system = with_scratch.as_ref().unwrap_or(self);
        let time = ms.to_string();
        for (program, processes, measurements) in self.runs(turn) {
            if matches!(turn, Turn::Tests(..)) {
                self.time_job(
                    &mut figures,
                    program,
                    &self.start,
                    processes,
                    (program, measurements),
                )?;
                continue;
            }
            let mut args = Vec::new();
            if program != SIMULATOR {
                args.extend(["-t", &time]);
            }
            let sizes = match program {
                "rma" => Some(format!("1:{largest}")),
                "mpi" | "shmem" | "wire_tcp" | "wire_ofi" => Some(format!("8:{largest}")),
                _ if matches!(turn, Turn::LongBlocks(_)) => Some(format!("262144:{largest}")),
                _ => None,
            };
            args.extend(sizes.iter().flat_map(|sizes| ["-s", sizes]));
            if matches!(turn, Turn::Blocking(_)) {
                args.push("-b");
            }
            if turn.takes_the_tenth() {
                args.push("-q");
            }
            // Two ranks of three have a CPU each: the other sleeps, and the kernel chooses.
            if matches!(turn, Turn::Neighbours(_)) {
                args.extend(["-P", "-z"]);
            }
            args.extend(measurements);
            match system.run(program, processes, &args) {
                Ok(printed) => figures.read(&printed)?,
                Err(RunFailure::Failed(e)) if self.may_lack() => {
                    eprintln!("bench: left out: {e}");
                }
                Err(e) => return Err(e.into()),
            }
        }
        Ok(figures)
    }

    /// Whether measurements that it cannot do are left out.
    fn may_lack(&self) -> bool {
        match self.kind {
            Kind::Gasnet | Kind::Ex | Kind::Everything { ours: false } => self.launch.is_none(),
            // A provider of libfabric, or another GASNet.
            Kind::Hosts | Kind::Idle => !self.name.starts_with("tcp"),
            Kind::BareWire(program) => program == "wire_ofi",
            _ => false,
        }
    }

    /// The round trip of a cache line now, in microseconds, if this is the machine.
    pub(crate) fn line_trip(&self) -> Result<f64, String> {
        let mut figures = RowFigures::default();
        figures.read(&self.run("limits", 1, &[LINE])?)?;
        figures.get(LINE, 2, 0).ok_or(format!("{}: no {LINE}", self.name))
    }

    /// The time of a job that only starts and ends, seen from outside.
    pub(crate) fn time_starts(
        &self,
        figures: &mut RowFigures,
        name: &str,
        start: &Start,
        sizes: &[u32],
        program: &str,
    ) -> Result<(), String> {
        for &processes in sizes {
            self.time_job(figures, name, start, processes, (program, &[]))?;
        }
        Ok(())
    }

    /// The time of a job that runs a program with these arguments, seen from outside.
    fn time_job(
        &self,
        figures: &mut RowFigures,
        name: &str,
        start: &Start,
        processes: u32,
        (program, args): (&str, &[&str]),
    ) -> Result<(), String> {
        figures.units.insert(name.to_string(), "Time (ms)".to_string());
        let began = Instant::now();
        self.run_by(start, program, processes, args)?;
        let time = began.elapsed().as_secs_f64() * 1000.0;
        figures.put(name, processes, 0, time);
        Ok(())
    }

    fn run(&self, program: &str, processes: u32, args: &[&str]) -> Result<String, RunFailure> {
        self.run_by(&self.start, program, processes, args)
    }

    /// Runs a program as a job and returns its output.
    fn run_by(
        &self,
        start: &Start,
        program: &str,
        processes: u32,
        args: &[&str],
    ) -> Result<String, RunFailure> {
        let failed = |text: String| RunFailure::Failed(text);
        let path = self.programs.join(program);
        let mut command = match start {
            Start::JobLauncher(words) => {
                let mut c = Command::new(&words[0]);
                c.args(&words[1..]).arg("-n").arg(processes.to_string()).arg(&path);
                c
            }
            Start::Fork => Command::new(&path),
        };
        for (name, _) in std::env::vars_os().filter(|(n, _)| is_cleared(&n.to_string_lossy())) {
            command.env_remove(name);
        }
        if *start == Start::Fork {
            command.env("GASNET_PSHM_NODES", processes.to_string());
        }
        let printed = self.programs.join(format!("{program}.out"));
        let out = fs::File::create(&printed)
            .map_err(|e| failed(format!("{}: {e}", printed.display())))?;
        command
            .args(args)
            .envs(self.environment.iter().map(|(n, v)| (n, v)))
            .stdin(Stdio::null())
            .stdout(out);
        let spawned = command.spawn();
        let mut child =
            spawned.map_err(|e| failed(format!("{}: {e}", command.get_program().display())))?;
        let pid = child.id();
        let (ended, end) = mpsc::channel::<()>();
        // A thread waits for the end, so that polling does not disturb the job.
        let watchdog = thread::spawn(move || {
            let late = end.recv_timeout(WATCHDOG) == Err(RecvTimeoutError::Timeout);
            if late {
                sys::process::kill_tree(pid, sys::signal::Signal::KILL);
            }
            late
        });
        let status = child.wait().map_err(|e| failed(e.to_string()))?;
        drop(ended);
        let what = format!("{}: {program} of {processes} processes", self.name);
        if !matches!(watchdog.join(), Ok(false)) {
            return Err(RunFailure::TimedOut(format!("{what} did not end")));
        }
        if !status.success() {
            return Err(failed(format!("{what} ended with {status}")));
        }
        fs::read_to_string(&printed).map_err(|e| failed(format!("{}: {e}", printed.display())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_of_measured_libraries_are_cleared() {
        let cleared = ["GASNET_WAITMODE", "OMPI_MCA_btl", "FI_PROVIDER", "UCX_TLS", "PTL_ATTACH"];
        assert!(cleared.into_iter().all(is_cleared));
        let kept = ["OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "PATH", "HOSTS"];
        assert!(!kept.into_iter().any(is_cleared));
    }
}
