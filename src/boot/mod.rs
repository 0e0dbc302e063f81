//! How the ranks of a job find each other, synchronise during start, and exit.
//!
//! Called by `runtime::job`, by `process` and by the program `gasnetrun`. Invariant: no two files
//! import each other; `ci/imports.sh` checks it.
//!
//! | file | what it owns |
//! |---|---|
//! | [`launch`] | the launcher: starts a program as the ranks of a job |
//! | `debugger` | gdb for some of them |
//! | `fork` | GASNET_PSHM_NODES: the first process forks the ranks and becomes their supervisor, or stands in front of it |
//! | `foreign` | mpiexec, mpirun, srun: the ranks find each other by PMI or PMIx, then get a supervisor |
//! | [`single`] | a job of one rank |
//! | `detect` | which of those launchers started this process |
//! | `pmi`, `pmix` | the key-value spaces (`key_value`) of those launchers |
//! | `siblings`, `member`, `launcher_variables`, `mpi_state` | the launcher's processes on this host, their names, its variables, MPI |
//! | [`supervisor`] | the process that starts or accepts the ranks, carries their barriers, and ends the job |
//! | `supervisor_link` | a rank's conversation with its supervisor |
//! | [`bootstrap`] | what a process has when it has become a rank |
//! | [`collective`], [`network_start`] | exchange and barrier at start: the traits; over nothing but the network |
//! | `linked`, [`linked_launcher`] | cnos, PMI as functions of the program: ranks that have nothing but the network |
//! | [`exit_notice`] | how a rank makes and receives the decision to end the job |
//! | [`exit_protocol`] | the messages by which ranks without a supervisor carry it |
//! | [`control_memory`] | that decision and one record per rank, in shared memory; [`decision`] |
//! | `error_folds` | the same error of many ranks, printed once |
//! | [`control_message`] | the messages between a rank and its supervisor |
//! | [`rank_id`] | what makes a process a rank: numbers and descriptors |
//! | [`rank_variables`] | GASNET_RANK, GASNET_SIZE, GASNET_LOCAL_RANK |
//! | [`placement`] | which ranks share a host, and which a supernode |
//! | [`options`], `hosts`, [`error`] | the user's choices; the hosts that the user names; errors |

pub mod bootstrap;
pub mod collective;
pub mod control_memory;
pub mod control_message;
mod debugger;
pub mod decision;
mod detect;
pub mod error;
mod error_folds;
pub mod exit_notice;
pub mod exit_protocol;
mod foreign;
mod fork;
mod hosts;
pub mod key_value;
pub mod launch;
mod launcher_variables;
mod linked;
pub mod linked_launcher;
mod member;
mod mpi_state;
pub mod network_start;
pub mod options;
pub mod placement;
mod pmi;
mod pmix;
pub mod rank_id;
pub mod rank_variables;
mod siblings;
pub mod single;
pub mod supervisor;
mod supervisor_link;

use crate::env::SpawnControl;
use crate::report;
use bootstrap::Bootstrap;
use error::BootError;
use options::BootOptions;
use pmi::Pmi;
use pmix::Pmix;
use rank_id::RankId;

/// Makes this process part of a job: a rank of the launcher that started it, ours or another; or,
/// with GASNET_PSHM_NODES, one of the ranks that it forks, while the calling process becomes their
/// supervisor, or the front of it, and never returns; or else a job of one rank.
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
            }
            single::start()
        }
    }
}

/// How this process finds the other ranks: as the user says, or else as the environment tells.
fn spawn_control(options: &BootOptions) -> SpawnControl {
    match options.spawn_control {
        Some(SpawnControl::Pmi | SpawnControl::Pmix) if detect::started_by_rank() => {
            return SpawnControl::Alone;
        }
        Some(named) => return named,
        None => {}
    }
    if linked::cnos_size(options) > 1 {
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
        () if linked::cnos_size(options) == 1 => SpawnControl::Cnos,
        () if linked::finds_pmi(options) => SpawnControl::Pmi,
        () => SpawnControl::Alone,
    }
}

/// Warns of a GASNET_PSHM_NODES that has no effect because a launcher's PMI or PMIx comes first,
/// such as that which Open MPI offers to a process that initialised it without mpirun.
fn warn_of_ignored_fork(job: &Bootstrap, options: &BootOptions) {
    let wanted = options.fork_ranks;
    if job.placement.size() == 1 && wanted > 1 && !options.quiet {
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
