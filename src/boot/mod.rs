//! How the processes of a job find each other, meet before they can exchange messages, and end: one small trait, one
//! file per spawner. Called by `core::job` and `core::exit`.
//!
//! | file | what it owns |
//! |---|---|
//! | [`alone`] | a job of one process |
//! | [`fork`] | GASNET_PSHM_NODES: the first process forks the ranks and becomes their supervisor |
//! | [`gasnetrun`] | the launcher: starts a program as ranks; and the rank's side of that |
//! | [`supervisor`] | the process that starts the ranks, carries their barriers, and ends the job; both launchers use it |
//! | [`rank`] | a process that has a supervisor |
//! | [`control`] | the job-control memory: the exit word, one line per rank |
//! | [`wire`] | the messages between a rank and its supervisor |

pub mod alone;
pub mod control;
pub mod fork;
pub mod gasnetrun;
pub mod rank;
pub mod supervisor;
pub mod wire;

use crate::env;
use control::JobControl;

/// What a spawner gives to a process of the job.
pub trait Bootstrap: Send + Sync + core::fmt::Debug {
    /// Rank of this process, from 0.
    fn rank(&self) -> u32;
    /// Processes of the job.
    fn size(&self) -> u32;
    /// Waits until every process of the job is here. Does not return if the job ends meanwhile; serves no messages.
    fn barrier(&self);
    /// Everybody's `mine`, by rank; all are of the same length. Does not return if the job ends meanwhile.
    fn exchange(&self, mine: &[u8]) -> Vec<Vec<u8>>;
    /// Memory files shared by the processes of this host.
    fn host(&self) -> &HostMemory;
    /// The exit word and its kin.
    fn control(&self) -> &'static JobControl;
}

/// The memory files that the processes of one host share; they have no name in any file system and vanish with the
/// last process that holds them. All are empty at start and grow as processes reserve their parts.
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
pub struct Error {
    /// What happened.
    pub cause: String,
    /// What to do.
    pub remedy: String,
}

impl Error {
    fn new(cause: impl Into<String>, remedy: impl Into<String>) -> Error {
        Error { cause: cause.into(), remedy: remedy.into() }
    }

    fn system(what: &str, e: &std::io::Error) -> Error {
        Error::new(
            format!("{what}: {e}"),
            "Free the resource that the system names (memory, processes, descriptors: see ulimit -a), or start fewer processes.",
        )
    }
}

impl core::fmt::Display for Error {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(&self.cause)
    }
}

impl core::error::Error for Error {}

/// Makes this process part of a job: a rank of the launcher that started it; or, with GASNET_PSHM_NODES, one of the
/// ranks that it forks, in which case the calling process itself stays behind as their supervisor and never returns;
/// or else a job of its own.
///
/// Afterwards `core::exit::install` arms the ways out. Called once per process, before it has other threads.
pub fn start() -> Result<Box<dyn Bootstrap>, Error> {
    if let Some(seat) = gasnetrun::seat()? {
        return Ok(Box::new(rank::Rank::join(seat)?));
    }
    match env::int("GASNET_PSHM_NODES").unwrap_or(1) {
        ..=1 => Ok(Box::new(alone::Alone::new()?)),
        n => Ok(Box::new(fork::start(n as u32)?)),
    }
}

/// Warns of threads that will stay behind in the supervisor.
fn report_many_threads() {
    let n = crate::os::process::thread_count();
    if n > 1 && !env::yes("GASNET_QUIET") {
        crate::report::warn(
            format_args!(
                "gasnet_init forks the processes of GASNET_PSHM_NODES, but {} other threads are running already and stay behind",
                n - 1
            ),
            format_args!("Call gasnet_init before threads are started, or start the program with gasnetrun."),
        );
    }
}
