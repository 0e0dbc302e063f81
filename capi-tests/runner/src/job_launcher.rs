//! The launchers that start jobs in the tests: ours, and those of other job systems. Used by
//! `test_job` and by the cases that choose launchers. Another job system's launcher is used only
//! where LAUNCHERS names it.

use crate::build_trees;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How a job is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum JobLauncher {
    /// `gasnetrun -n N prog args`
    Gasnetrun,
    /// `GASNET_PSHM_NODES=N prog args`
    PshmNodes,
    /// `prog args`: a job of one.
    Alone,
    /// `ptlrun -n N prog args`, that of libportals3
    Ptlrun,
    /// MPICH's `mpiexec -n N prog args`
    Mpiexec,
    /// Open MPI's `mpirun -n N prog args`
    Mpirun,
    /// `srun --mpi=pmi2 -n N prog args`
    SrunPmi2,
    /// `srun --mpi=pmix -n N prog args`
    SrunPmix,
}

/// The launchers of other job systems, with the name that `ci/launchers.sh` puts into
/// LAUNCHERS.
const FOREIGN: [(JobLauncher, &str); 4] = [
    (JobLauncher::Mpiexec, "hydra"),
    (JobLauncher::Mpirun, "openmpi"),
    (JobLauncher::SrunPmi2, "slurm"),
    (JobLauncher::SrunPmix, "slurm"),
];

impl JobLauncher {
    /// Its name in case names.
    pub fn name(self) -> &'static str {
        match self {
            JobLauncher::Gasnetrun => "gasnetrun",
            JobLauncher::PshmNodes => "pshm_nodes",
            JobLauncher::Alone => "alone",
            JobLauncher::Ptlrun => "ptlrun",
            JobLauncher::Mpiexec => "mpiexec",
            JobLauncher::Mpirun => "mpirun",
            JobLauncher::SrunPmi2 => "srun_pmi2",
            JobLauncher::SrunPmix => "srun_pmix",
        }
    }

    /// The launchers of other job systems that LAUNCHERS names.
    pub fn foreign() -> Vec<JobLauncher> {
        let usable = std::env::var("LAUNCHERS").unwrap_or_default();
        let usable: Vec<&str> = usable.split_whitespace().collect();
        FOREIGN.iter().filter(|(_, name)| usable.contains(name)).map(|&(l, _)| l).collect()
    }

    /// Whether it belongs to another job system.
    pub fn is_foreign(self) -> bool {
        FOREIGN.iter().any(|&(l, _)| l == self)
    }

    /// The command that starts `program` as `nodes` ranks.
    pub(crate) fn command(self, tree: &Path, program: &Path, nodes: u32) -> Command {
        let words: &[&str] = match self {
            JobLauncher::PshmNodes | JobLauncher::Alone => return Command::new(program),
            JobLauncher::Gasnetrun | JobLauncher::Ptlrun => &[],
            JobLauncher::Mpiexec => &["mpiexec.hydra"],
            JobLauncher::Mpirun => &["mpirun.openmpi", "--allow-run-as-root", "--oversubscribe"],
            JobLauncher::SrunPmi2 => &["srun", "--mpi=pmi2", "--overcommit", "--quiet"],
            JobLauncher::SrunPmix => &["srun", "--mpi=pmix", "--overcommit", "--quiet"],
        };
        let mut command = match words.split_first() {
            Some((name, options)) => {
                let mut c = Command::new(name);
                c.args(options);
                c
            }
            None if self == JobLauncher::Ptlrun => {
                // Where the libportals is that of this repository, and where it is below another.
                let places = ["portals/bin/ptlrun", "below/bin/ptlrun"].map(|p| tree.join(p));
                Command::new(places.iter().find(|p| p.exists()).unwrap_or(&places[0]))
            }
            None => Command::new(tree.join("bin/gasnetrun")),
        };
        command.arg("-n").arg(nodes.to_string()).arg(program);
        command
    }

    /// How long this launcher takes now for `nodes` processes of /bin/true. Bounded, since
    /// mpirun hangs now and then.
    fn yardstick(self, tree: &Path, nodes: u32) -> Duration {
        const LONGEST: Duration = Duration::from_secs(20);
        let start = Instant::now();
        let mut command = self.command(tree, Path::new("/bin/true"), nodes);
        let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        if let Ok(mut child) = command.spawn() {
            while matches!(child.try_wait(), Ok(None)) {
                if start.elapsed() > LONGEST {
                    let _ = child.kill();
                }
                sleep(Duration::from_millis(5));
            }
        }
        start.elapsed()
    }

    /// Whether a job of `nodes` ranks that took this long to end ended soon. Soon is within
    /// two seconds, or within a multiple of the time that the launcher now needs for
    /// /bin/true. Otherwise the reason.
    pub fn soon(self, nodes: u32, took: Duration) -> Result<(), String> {
        const SOON: Duration = Duration::from_secs(2);
        if took <= SOON {
            return Ok(());
        }
        let launcher = match self {
            JobLauncher::PshmNodes | JobLauncher::Ptlrun => JobLauncher::Gasnetrun,
            launcher => launcher,
        };
        let yardstick = launcher.yardstick(&build_trees::build(), nodes);
        if took <= SOON + 3 * yardstick {
            return Ok(());
        }
        let (took, name, nothing) = (took.as_secs_f64(), launcher.name(), yardstick.as_secs_f64());
        Err(format!("{took:.2} s, where {name} takes {nothing:.2} s for /bin/true"))
    }
}

/// Starts after which srun had not launched the processes.
static FAILED_STARTS: AtomicU32 = AtomicU32::new(0);

/// Counts a start after which srun had not launched the processes.
pub(crate) fn count_failed_start() {
    FAILED_STARTS.fetch_add(1, Ordering::Relaxed);
}

/// For a summary: how often srun had to be started again; empty if never.
pub fn started_again() -> String {
    match FAILED_STARTS.load(Ordering::Relaxed) {
        0 => String::new(),
        n => format!("; srun did not launch the processes of {n} starts, which were repeated"),
    }
}

/// Whether srun reports in this output that it could not start the processes. Its exit code may
/// still be 0.
pub(crate) fn not_launched(output: &str) -> bool {
    output.lines().any(|l| {
        l.starts_with("srun: error: ")
            && (l.contains(" launch failed: ") || l.contains(": Task launch for "))
    })
}
