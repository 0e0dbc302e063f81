//! MPI and GASNet in one process: `testmpi.c`, compiled by the compiler of an MPI and started by its launcher, with either of
//! the two initialised first.

use crate::job::{Job, Launcher};
use crate::layout::{self, Mode};
use crate::{Case, Trouble};
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

/// An MPI: its name, its compiler, what is missing where that has no headers, the launchers that start its programs.
type Mpi = (&'static str, &'static str, &'static str, [Launcher; 2]);

const MPIS: [Mpi; 2] = [
    (
        "mpich",
        "mpicc.mpich",
        "mpi.h of MPICH (Debian: libmpich-dev)",
        [Launcher::Mpiexec, Launcher::SrunPmi2],
    ),
    (
        "openmpi",
        "mpicc.openmpi",
        "mpi.h of Open MPI (Debian: libopenmpi-dev)",
        [Launcher::Mpirun, Launcher::SrunPmix],
    ),
];

/// MPI x launcher x which is first x mode. Those of Slurm are there where it can be used.
pub fn cases() -> Vec<Case> {
    let mut all = Vec::new();
    for mpi in MPIS {
        let missing = missing(mpi);
        for launcher in mpi.3 {
            let own = !matches!(launcher, Launcher::SrunPmi2 | Launcher::SrunPmix);
            if !own && !Launcher::foreign().contains(&launcher) {
                continue;
            }
            for first in ["mpi", "gasnet"] {
                for mode in [Mode::Seq, Mode::Par] {
                    let name =
                        format!("testmpi::{}::{}::{first}_first::{}", mpi.0, launcher.name(), mode.name());
                    let sampled = own && (first == "mpi") == (mode == Mode::Par);
                    let mut case = Case::new(name, sampled, move || together(mpi, launcher, first, mode));
                    case.missing = missing;
                    all.push(case);
                }
            }
        }
    }
    all
}

/// What a program of this MPI lacks here.
fn missing((_, compiler, headers, launchers): Mpi) -> Option<&'static str> {
    let launcher = if launchers[0] == Launcher::Mpirun { "mpirun.openmpi" } else { "mpiexec.hydra" };
    if let Some(program) = [compiler, launcher].into_iter().find(|p| !crate::have(p)) {
        return Some(program);
    }
    let mut c = Command::new(compiler);
    c.args(["-include", "mpi.h", "-fsyntax-only", "-x", "c", "/dev/null"]);
    let found = c.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status();
    (!found.is_ok_and(|s| s.success())).then_some(headers)
}

fn compiled((name, compiler, ..): Mpi, mode: Mode) -> Result<PathBuf, Trouble> {
    layout::require(&layout::build())?;
    let dir = layout::build().join("capi-tests/mpi").join(mode.name());
    fs::create_dir_all(&dir).map_err(|e| format!("{}: {e}", dir.display()))?;
    let program = dir.join(format!("testmpi-{name}"));
    let lib = layout::build().join("lib");
    let mut cc = Command::new(compiler);
    cc.args(["-std=gnu99", "-O2", "-g", "-Wall", "-Wextra", "-Werror"]).args(mode.defines());
    cc.arg("-I").arg(layout::build().join("include"));
    cc.arg(layout::root().join("capi-tests/clients/testmpi.c")).arg("-o").arg(&program);
    cc.arg("-L").arg(&lib).arg(format!("-Wl,-rpath,{}", lib.display())).args(["-lgasnet", "-lpthread"]);
    layout::succeed(cc)?;
    Ok(program)
}

fn together(mpi: Mpi, launcher: Launcher, first: &str, mode: Mode) -> Result<(), Trouble> {
    let program = compiled(mpi, mode)?;
    for (nodes, code) in [(2, 0), (3, 6)] {
        let args = [first.to_string(), code.to_string()];
        let job = Job::new(&layout::build(), &program, &args, launcher, nodes);
        let ended = job.watchdog(Duration::from_secs(120)).run()?;
        ended.tidy()?;
        if launcher == Launcher::SrunPmi2 && first == "gasnet" {
            if ended.code == Some(0) || !ended.output.contains("Call MPI_Init before gasnet_init") {
                return Err(ended.trouble("Slurm's PMI was used where MPI needs it"));
            }
        } else if ended.code != Some(code) || !ended.output.contains("testmpi: PASS") {
            return Err(ended.trouble(format!("it did not pass with exit code {code}")));
        }
    }
    Ok(())
}
