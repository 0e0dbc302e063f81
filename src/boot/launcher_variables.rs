//! What other launchers (mpiexec, mpirun, srun) pass to a process in environment variables.
//!
//! Read by every file of `boot` that deals with such a launcher. These variables are not in the
//! library's table: they belong to the launchers.

/// When only some ranks have called `gasnet_init`, the rest are reported after this many
/// nanoseconds, and again each time the wait has doubled.
pub(super) const FIRST_LATE_REPORT: u64 = 10_000_000_000;

/// The variables in which launchers say how many processes they started. MPICH's mpiexec with
/// -pmi-port sets only the last.
const SIZES: &[(&str, &str)] = &[
    ("PMI_SIZE", "mpiexec"),
    ("OMPI_COMM_WORLD_SIZE", "mpirun"),
    ("SLURM_STEP_NUM_TASKS", "srun"),
    ("MPI_LOCALNRANKS", "mpiexec"),
];

/// The value of a variable that a launcher or a parent rank set.
pub(super) fn variable(name: &str) -> Option<String> {
    Some(std::env::var_os(name)?.to_string_lossy().into_owned())
}

/// The numbers in a list of a launcher.
pub(super) fn numbers(list: &str) -> Option<Vec<u32>> {
    list.trim().split(',').map(|n| n.parse().ok()).collect()
}

/// How many processes a launcher says it started.
#[derive(Clone, Copy, Debug)]
pub(super) struct LaunchSize {
    pub(super) processes: u32,
    /// The variable that says so.
    pub(super) variable: &'static str,
    pub(super) launcher: &'static str,
}

/// The number of this process if MPICH's mpiexec with -pmi-port started it after others, which may
/// be on other hosts.
pub(super) fn number_behind_port() -> Option<u32> {
    variable("PMI_PORT")?;
    variable("PMI_ID")?.trim().parse().ok().filter(|number| *number > 0)
}

/// How many processes the launcher of this process says it started; `None` without a launcher.
pub(super) fn launch_size() -> Option<LaunchSize> {
    SIZES.iter().find_map(|&(name, launcher)| {
        let processes = variable(name)?.trim().parse().ok()?;
        Some(LaunchSize { processes, variable: name, launcher })
    })
}
