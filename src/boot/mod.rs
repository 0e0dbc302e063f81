//! How the processes of a job find each other, meet before they can exchange messages, and end: one small trait, one
//! file per spawner. Called by `runtime::job` and `runtime::exit`.
//!
//! | file | what it owns |
//! |---|---|
//! | [`single`] | a job of one process |
//! | [`fork`] | GASNET_PSHM_NODES: the first process forks the ranks and becomes their supervisor |
//! | [`gasnetrun`] | the launcher: starts a program as ranks; and the rank's side of that |
//! | `hosts` | the machines that a user names, all of which must be this one |
//! | `foreign` | mpiexec, mpirun, srun: the processes find each other by PMI or PMIx and get a supervisor |
//! | `detect` | which of those launchers offer something to this process, rather than to a rank that has started it |
//! | `pmi`, `pmix` | what they offer |
//! | `siblings` | the processes that such a launcher has started here, watched while they find each other |
//! | [`supervisor`] | the process that starts or adopts the ranks, carries their barriers, and ends the job; all spawners use it |
//! | `rank_process` | one rank as its supervisor sees it |
//! | `prefix` | the output of ranks, line by line with the rank in front |
//! | [`supervised`] | a process that has a supervisor |
//! | [`control`] | the job-control memory: the exit word, one line per rank |
//! | [`message`] | the messages between a rank and its supervisor |

pub mod control;
mod detect;
mod foreign;
pub mod fork;
pub mod gasnetrun;
mod hosts;
pub mod message;
mod pmi;
mod pmix;
mod prefix;
mod rank_process;
mod siblings;
pub mod single;
pub mod supervised;
pub mod supervisor;

use crate::env::{self, SpawnControl};
use control::JobControl;

/// Nanoseconds.
const MS: u64 = 1_000_000;
/// When some processes have come to `gasnet_init` and others have not, this is told after so many nanoseconds, and again each time twice
/// as long has gone by.
const LATE: u64 = 10_000 * MS;

/// What a spawner gives to a process of the job.
pub trait Bootstrap: Send + Sync + core::fmt::Debug {
    /// Rank of this process, from 0.
    fn rank(&self) -> u32;
    /// Processes of the job.
    fn size(&self) -> u32;
    /// Waits until every process of the job is here. Does not return if the job ends meanwhile; serves no messages.
    fn barrier(&self);
    /// Everybody's `mine`, by rank; all are of the same length. Waits for every process, as a barrier does, and does not return
    /// if the job ends meanwhile.
    fn exchange(&self, mine: &[u8]) -> Vec<Vec<u8>>;
    /// Memory files shared by the processes of this host.
    fn host(&self) -> &HostMemory;
    /// The exit word and its kin.
    fn control(&self) -> &'static JobControl;
}

/// The memory files that the processes of one host share; they have no name in any file system and vanish with the
/// last process that holds them. All are empty at start.
#[derive(Debug)]
pub struct HostMemory {
    /// Rank of this process among those of the host, and how many there are.
    pub local_rank: u32,
    /// Processes of the job on this host.
    pub local_size: u32,
    /// Library memory and Portals objects of all processes of the host.
    pub arena: std::os::fd::OwnedFd,
    /// Segments of all processes of the host.
    pub segments: std::os::fd::OwnedFd,
    /// Barriers and other words of the extended room.
    pub scratch: std::os::fd::OwnedFd,
}

/// Why a process cannot become part of a job: what happened, and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BootError {
    /// What happened.
    pub cause: String,
    /// What to do.
    pub remedy: String,
}

impl BootError {
    fn new(cause: impl Into<String>, remedy: impl Into<String>) -> BootError {
        BootError { cause: cause.into(), remedy: remedy.into() }
    }

    fn system(what: &str, e: &std::io::Error) -> BootError {
        BootError::new(
            format!("{what}: {e}"),
            "Free the resource that the system names (memory, processes, descriptors: see ulimit -a), or start fewer processes.",
        )
    }
}

impl core::fmt::Display for BootError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(&self.cause)
    }
}

impl core::error::Error for BootError {}

/// Who started this process: what GASNET_SPAWN_CONTROL says, or else what the environment tells.
fn spawner() -> SpawnControl {
    if let Some(named) = env::SPAWN_CONTROL.get() {
        return match named {
            SpawnControl::Pmi | SpawnControl::Pmix if detect::taken() => SpawnControl::Alone,
            named => named,
        };
    }
    let several = detect::expected().is_none_or(|(n, ..)| n > 1);
    let forks = env::PSHM_NODES.get() > 1;
    match () {
        // A single process that a launcher started may still fork its peers.
        () if forks && !(several && (detect::pmi() || detect::pmix())) => SpawnControl::Fork,
        () if detect::pmi() => SpawnControl::Pmi,
        () if detect::pmix() => SpawnControl::Pmix,
        () => SpawnControl::Alone,
    }
}

/// Makes this process part of a job: a rank of the launcher that started it, ours or another; or, with
/// GASNET_PSHM_NODES, one of the ranks that it forks, in which case the calling process itself stays behind as their
/// supervisor and never returns; or else a job of its own.
///
/// Afterwards `runtime::exit::install` arms the ways out. Called once per process, before it has other threads.
pub fn start() -> Result<Box<dyn Bootstrap>, BootError> {
    let started = join()?;
    detect::take();
    Ok(started)
}

fn join() -> Result<Box<dyn Bootstrap>, BootError> {
    if let Some(id) = gasnetrun::id()? {
        let rank = supervised::SupervisedRank::join(id)?;
        report_lone_mpi(&rank, "gasnetrun starts");
        return Ok(Box::new(rank));
    }
    let foreign =
        |rank: Option<supervised::SupervisedRank>| -> Result<Box<dyn Bootstrap>, BootError> {
            let job: Box<dyn Bootstrap> = match rank {
                Some(rank) => Box::new(rank),
                None => Box::new(single::SingleProcess::new()?),
            };
            report_unforked(&*job);
            Ok(job)
        };
    match spawner() {
        SpawnControl::Pmi => foreign(foreign::by_pmi()?),
        SpawnControl::Pmix => foreign(foreign::by_pmix()?),
        SpawnControl::Fork => match env::PSHM_NODES.get() {
            ..=1 => Ok(Box::new(single::SingleProcess::new()?)),
            n => {
                let rank = fork::start(n)?;
                report_lone_mpi(&rank, "GASNET_PSHM_NODES has gasnet_init fork");
                Ok(Box::new(rank))
            }
        },
        SpawnControl::Alone => {
            if env::SPAWN_CONTROL.get().is_none() {
                detect::not_alone()?;
            }
            Ok(Box::new(single::SingleProcess::new()?))
        }
    }
}

/// Gives back what a launcher has offered and this process still holds. It may wait, and needs locks of others: whoever
/// leaves calls it under an alarm.
pub fn finish() {
    pmix::finish_held();
}

/// How many seconds the ranks of a job of this size may take to leave once they are told to.
fn exit_seconds(size: u32) -> f64 {
    env::EXITTIMEOUT.get().unwrap_or_else(|| {
        let grown = env::EXITTIMEOUT_MIN.get() + f64::from(size) * env::EXITTIMEOUT_FACTOR.get();
        grown.min(env::EXITTIMEOUT_MAX.get())
    })
}

/// Warns of threads that will stay behind in the supervisor.
fn report_many_threads() {
    let n = sys::process::thread_count();
    if n > 1 && !env::QUIET.get() {
        crate::report::warn(
            format_args!(
                "gasnet_init forks the processes of GASNET_PSHM_NODES, but {} other threads are running already and stay behind",
                n - 1
            ),
            format_args!(
                "Call gasnet_init before threads are started, or start the program with gasnetrun."
            ),
        );
    }
}

/// Warns of a GASNET_PSHM_NODES that a launcher's offer outdoes, that of Open MPI to a process which has initialised it alone for one.
fn report_unforked(job: &dyn Bootstrap) {
    let wanted = env::PSHM_NODES.get();
    if job.size() == 1 && wanted > 1 && !env::QUIET.get() {
        crate::report::warn(
            format_args!(
                "GASNET_PSHM_NODES={wanted} has no effect: PMI or PMIx reports a job of one rank"
            ),
            format_args!("Set GASNET_SPAWN_CONTROL=FORK, or start the program with a launcher."),
        );
    }
}

/// Warns of an MPI that knows no other process of the job, since it was no launcher of MPI that started them.
fn report_lone_mpi(job: &dyn Bootstrap, how: &str) {
    if job.rank() == 0 && job.size() > 1 && pmi::mpi_in_use() && !env::QUIET.get() {
        crate::report::warn(
            format_args!(
                "MPI was initialised before gasnet_init, and knows nothing of the other processes, which {how}"
            ),
            format_args!(
                "Start the program with mpiexec or mpirun if its processes communicate by MPI."
            ),
        );
    }
}
