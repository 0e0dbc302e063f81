//! MPI and GASNet in one process: `testmpi.c` is compiled by an MPI's compiler and started by
//! its launcher, with either of the two initialised first. It is also started by our launchers,
//! which start no MPI.

use crate::build_trees::{self, ClientMode};
use crate::job_launcher::JobLauncher;
use crate::test_job::TestJob;
use crate::{Failure, TestCase};
use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// An MPI: its name, its compiler, the package that has its headers, the launchers that start
/// its programs.
type Mpi = (&'static str, &'static str, &'static str, [JobLauncher; 2]);

const MPIS: [Mpi; 2] = [
    (
        "mpich",
        "mpicc.mpich",
        "mpi.h of MPICH (Debian package libmpich-dev)",
        [JobLauncher::Mpiexec, JobLauncher::SrunPmi2],
    ),
    (
        "openmpi",
        "mpicc.openmpi",
        "mpi.h of Open MPI (Debian package libopenmpi-dev)",
        [JobLauncher::Mpirun, JobLauncher::SrunPmix],
    ),
];

/// The message about MPI in ranks that our launcher started.
const LONE: &str =
    "MPI was initialised before gasnet_init, and does not connect the other processes";

/// MPI x launcher x order of initialisation x mode; those of Slurm where it is usable.
pub fn cases() -> Vec<TestCase> {
    let mut all = Vec::new();
    for mpi in MPIS {
        let missing = missing(mpi);
        for launcher in [JobLauncher::Gasnetrun, JobLauncher::PshmNodes] {
            let name = format!("testmpi::{}::{}::lone", mpi.0, launcher.name());
            let mut case = TestCase::new(name, true, move || lone(mpi, launcher));
            case.missing.clone_from(&missing);
            all.push(case);
        }
        let name = format!("testmpi::{}::pshm_nodes::each_alone", mpi.0);
        let mut case = TestCase::new(name, true, move || each_alone(mpi));
        case.missing.clone_from(&missing);
        all.push(case);
        for launcher in mpi.3 {
            let own = !matches!(launcher, JobLauncher::SrunPmi2 | JobLauncher::SrunPmix);
            if !own && !JobLauncher::foreign().contains(&launcher) {
                continue;
            }
            for first in ["mpi", "gasnet"] {
                for mode in [ClientMode::Seq, ClientMode::Par] {
                    let name = format!(
                        "testmpi::{}::{}::{first}_first::{}",
                        mpi.0,
                        launcher.name(),
                        mode.name()
                    );
                    let sampled = own && (first == "mpi") == (mode == ClientMode::Par);
                    let mut case =
                        TestCase::new(name, sampled, move || together(mpi, launcher, first, mode));
                    case.missing.clone_from(&missing);
                    all.push(case);
                }
            }
        }
    }
    all
}

/// What is missing here for a program of this MPI.
fn missing((_, compiler, headers, launchers): Mpi) -> Option<String> {
    let launcher =
        if launchers[0] == JobLauncher::Mpirun { "mpirun.openmpi" } else { "mpiexec.hydra" };
    if let Some(program) = [compiler, launcher].into_iter().find(|p| !crate::have(p)) {
        return Some(crate::with_package(program));
    }
    let mut c = Command::new(compiler);
    c.args(["-include", "mpi.h", "-fsyntax-only", "-x", "c", "/dev/null"]);
    let found = c.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    (!found.is_ok_and(|s| s.success())).then(|| headers.to_string())
}

fn compiled((name, compiler, ..): Mpi, mode: ClientMode) -> Result<PathBuf, Failure> {
    // Overlapping cases may want the same program.
    static COMPILED: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    let mut compiled = COMPILED.lock().unwrap_or_else(PoisonError::into_inner);
    build_trees::require(&build_trees::build())?;
    let dir = build_trees::build().join("capi-tests/mpi").join(mode.name());
    fs::create_dir_all(&dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    let program = dir.join(format!("testmpi-{name}"));
    if compiled.contains(&program) {
        return Ok(program);
    }
    let lib = build_trees::build().join("lib");
    let mut cc = Command::new(compiler);
    cc.args(["-std=gnu99", "-O2", "-g", "-Wall", "-Wextra", "-Werror"]).args(mode.defines());
    cc.arg("-I").arg(build_trees::build().join("include"));
    cc.arg(build_trees::root().join("capi-tests/clients/testmpi.c")).arg("-o").arg(&program);
    cc.arg("-L")
        .arg(&lib)
        .arg(format!("-Wl,-rpath,{}", lib.display()))
        .args(["-lgasnet", "-lpthread"]);
    build_trees::succeed(cc)?;
    compiled.insert(program.clone());
    Ok(program)
}

/// An MPI that each rank has for itself is reported once. Open MPI, initialised without a
/// launcher, says to PMIx that this is a job of one.
fn lone(mpi: Mpi, launcher: JobLauncher) -> Result<(), Failure> {
    let program = compiled(mpi, ClientMode::Seq)?;
    let args = ["mpi", "0"].map(String::from);
    let ended = TestJob::new(&build_trees::build(), &program, &args, launcher, 3).run()?;
    ended.tidy()?;
    let (code, message) = match (mpi.0, launcher) {
        ("openmpi", JobLauncher::PshmNodes) => (0, "or call gasnet_init before MPI_Init"),
        _ => (1, LONE),
    };
    if ended.code != Some(code) || ended.output.matches(message).count() != 1 {
        return Err(ended.failure("no message about ranks that MPI cannot connect"));
    }
    Ok(())
}

/// Ranks that gasnet_init forks before MPI_Init are a job each for MPI.
fn each_alone(mpi: Mpi) -> Result<(), Failure> {
    let program = compiled(mpi, ClientMode::Seq)?;
    let args = ["gasnet", "0", "alone"].map(String::from);
    let launcher = JobLauncher::PshmNodes;
    let ended = TestJob::new(&build_trees::build(), &program, &args, launcher, 3).run()?;
    ended.tidy()?;
    if ended.code != Some(0) || ended.output.matches("testmpi: rank 0 of 1 of MPI").count() != 3 {
        return Err(ended.failure("not every rank had an MPI of its own"));
    }
    Ok(())
}

fn together(
    mpi: Mpi,
    launcher: JobLauncher,
    first: &str,
    mode: ClientMode,
) -> Result<(), Failure> {
    let program = compiled(mpi, mode)?;
    for (nodes, code) in [(2, 0), (3, 6)] {
        let args = [first.to_string(), code.to_string()];
        let job = TestJob::new(&build_trees::build(), &program, &args, launcher, nodes);
        let ended = job.watchdog(Duration::from_secs(120)).run()?;
        ended.tidy()?;
        if launcher == JobLauncher::SrunPmi2 && first == "gasnet" {
            if ended.code == Some(0) || !ended.output.contains("Call MPI_Init before gasnet_init")
            {
                return Err(ended.failure("Slurm's PMI was used where MPI needs it"));
            }
        } else if ended.code != Some(code)
            || !ended.output.contains("testmpi: PASS")
            || ended.output.contains(LONE)
        {
            return Err(ended.failure(format!("it did not pass with exit code {code}")));
        }
    }
    Ok(())
}
