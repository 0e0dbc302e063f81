//! Which job a process becomes part of: that of the launcher that started it, or one that it
//! makes.
//!
//! Called by `gasnet_init`. Invariant: a service that a rank has used is recorded for the programs
//! that the rank starts ([`detect::mark_used`]).

use super::bootstrap::Bootstrap;
use super::error::BootError;
use super::options::BootOptions;
use super::pmi::Pmi;
use super::pmix::Pmix;
use super::rank_id::RankId;
use super::{
    detect, foreign, fork, launcher_variables, linked, mpi_state, rank_variables, single,
    supervisor_link,
};
use crate::env::SpawnControl;
use crate::report;

/// Makes this process part of a job, in one of three modes:
/// - It becomes a rank of the launcher that started it, ours or another.
/// - With GASNET_PSHM_NODES, it returns in each of the ranks that it forks. The calling process
///   becomes their supervisor, or the front of it, and never returns.
/// - Else it becomes a job of one rank.
///
/// Afterwards `process::exit::install` connects the exit of this process with that of the job.
/// Called once per process.
///
/// # Errors
/// The job cannot be formed.
pub fn start(options: &BootOptions) -> Result<Bootstrap, BootError> {
    let started = join(options)?;
    detect::mark_used(&options.linked);
    rank_variables::set(&started.placement);
    Ok(started)
}

fn join(options: &BootOptions) -> Result<Bootstrap, BootError> {
    if let Some(id) = RankId::inherited()? {
        let job = supervisor_link::join(id, "gasnetrun")?;
        warn_of_unconnected_mpi(&job, "gasnetrun starts", options);
        return Ok(job);
    }
    match spawn_control(options) {
        SpawnControl::Cnos => linked::join_cnos(options),
        SpawnControl::Pmi if options.uses_linked_pmi() => linked::join_pmi(options),
        SpawnControl::Pmi => {
            let job = foreign::join(Box::new(Pmi::open(options)?), options)?;
            warn_of_ignored_fork(&job, options);
            Ok(job)
        }
        SpawnControl::Pmix => {
            let job = foreign::join(Box::new(Pmix::open(options)?), options)?;
            warn_of_ignored_fork(&job, options);
            Ok(job)
        }
        SpawnControl::Fork if options.fork_ranks <= 1 => single::start(),
        SpawnControl::Fork => {
            let job = fork::start(options.fork_ranks, options)?;
            warn_of_unconnected_mpi(&job, "GASNET_PSHM_NODES has gasnet_init fork", options);
            Ok(job)
        }
        SpawnControl::Alone => {
            if options.spawn_control.is_none() {
                detect::reject_single()?;
                if !detect::started_by_rank() {
                    linked::refuse_alone(options)?;
                }
            }
            single::start()
        }
    }
}

/// How this process finds the other ranks: as the user says, or else as the environment says.
fn spawn_control(options: &BootOptions) -> SpawnControl {
    match options.spawn_control {
        Some(SpawnControl::Pmi | SpawnControl::Pmix) if detect::started_by_rank() => {
            return SpawnControl::Alone;
        }
        Some(named) => return named,
        None => {}
    }
    if cnos_size(options) > 1 {
        return SpawnControl::Cnos;
    }
    let several = launcher_variables::launch_size().is_none_or(|l| l.processes > 1);
    let forks = options.fork_ranks > 1;
    match () {
        // A single process of a launcher may still fork its peers.
        () if forks && !(several && (detect::has_pmi() || detect::has_pmix())) => {
            SpawnControl::Fork
        }
        () if detect::has_pmi() => SpawnControl::Pmi,
        () if detect::has_pmix() => SpawnControl::Pmix,
        () if cnos_size(options) == 1 => SpawnControl::Cnos,
        () if finds_pmi(options) => SpawnControl::Pmi,
        () => SpawnControl::Alone,
    }
}

/// What CNOS says of the number of ranks. Returns 0 if the program has no CNOS, or if an ancestor
/// of this process is the rank that CNOS speaks of.
fn cnos_size(options: &BootOptions) -> u32 {
    let Some(cnos) = options.linked.cnos else { return 0 };
    if !detect::is_new(cnos.service()) {
        return 0;
    }
    cnos.rank_and_size().map_or(0, |(_, size)| size)
}

/// Whether PMI is part of the program and the library may choose it on its own. In a program with
/// MPI it may not, since MPI may use PMI too.
fn finds_pmi(options: &BootOptions) -> bool {
    let pmi = options.linked.pmi.filter(|p| detect::is_new(p.service()));
    pmi.is_some() && mpi_state::is_initialised().is_none()
}

impl BootOptions {
    /// Whether PMI, if it is used, is that of the program: the environment has none.
    fn uses_linked_pmi(&self) -> bool {
        self.linked.pmi.is_some() && !detect::has_pmi()
    }
}

/// Warns of a GASNET_PSHM_NODES that has no effect because a launcher's PMI or PMIx comes first.
/// Open MPI, for example, offers one to a process that initialised it without mpirun.
fn warn_of_ignored_fork(job: &Bootstrap, options: &BootOptions) {
    let wanted = options.fork_ranks;
    if job.placement.size() != 1 || wanted <= 1 || options.quiet {
        return;
    }
    if mpi_state::is_usable() {
        // The ranks would be copies of one process of MPI, without its threads.
        report::warn(
            format_args!(
                "GASNET_PSHM_NODES={wanted} has no effect after MPI_Init, which has made this \
                 process a job of one"
            ),
            format_args!(
                "Start the program with mpirun -n {wanted}; or call gasnet_init before MPI_Init, \
                 if each rank may be an MPI job of its own."
            ),
        );
    } else {
        report::warn(
            format_args!(
                "GASNET_PSHM_NODES={wanted} has no effect: PMI or PMIx says that this process is \
                 a job of one"
            ),
            format_args!("Set GASNET_SPAWN_CONTROL=FORK, or start the program with a launcher."),
        );
    }
}

/// Warns of an MPI that does not connect the ranks, since no launcher of MPI started them.
fn warn_of_unconnected_mpi(job: &Bootstrap, started: &str, options: &BootOptions) {
    let placement = &job.placement;
    if placement.rank().0 == 0 && placement.size() > 1 && mpi_state::is_usable() && !options.quiet
    {
        report::warn(
            format_args!(
                "MPI was initialised before gasnet_init, and does not connect the other processes, \
                 which {started}"
            ),
            format_args!(
                "Start the program with mpiexec or mpirun if its processes communicate by MPI."
            ),
        );
    }
}
