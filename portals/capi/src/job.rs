//! The job of this process: its ranks, and what the launcher passes in the environment.
//!
//! Read when `PtlNIInit` opens the interface, and by the calls about ranks. The variables:
//!
//! | variable | what |
//! |---|---|
//! | `PTL_MY_RID` | rank of this process |
//! | `PTL_NIDMAP`, `PTL_PIDMAP` | node and process id of each rank, separated by colons |
//! | `PTL_FABRIC_FD` | descriptor of the memory file that the processes share, empty at first |
//! | `PTL_ARENA_BYTES` | memory for match entries, descriptors and queues per process; the same everywhere |
//! | `PTL_LAUNCHER` | process id of the launcher; its descendants may copy from and to private memory of this process |
//! | `PTL_ATTACH` | 0: no process copies from or to another's private memory; messages there wait for a call of their target |
//!
//! A program may set the ranks by `PtlSetRank`, `PtlSetNIDMap` and `PtlSetPIDMap` instead. Without
//! either, the process is a job of one. Invariant: all processes are on one host, and pids are
//! ranks.

use std::io::Write;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

use portals3::nal::shm::AttachPolicy;
use sys::attach::{self, Tracers};
use sys::descriptor;

use crate::abi::{PTL_FAIL, PTL_NID_ANY, PtlProcessId};
use crate::convert::Code;

/// The processes of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RankMap {
    pub(crate) rank: u32,
    pub(crate) nids: Vec<u32>,
    pub(crate) pids: Vec<u32>,
}

impl RankMap {
    /// `PTL_NIDMAP` and `PTL_PIDMAP` have their defaults: one host, and pids are ranks.
    pub(crate) fn new(rank: u32, size: u32) -> RankMap {
        RankMap { rank, nids: vec![0; size as usize], pids: (0..size).collect() }
    }

    pub(crate) fn size(&self) -> u32 {
        self.nids.len() as u32
    }

    pub(crate) fn id(&self, rank: u32) -> Option<PtlProcessId> {
        let rank = rank as usize;
        Some(PtlProcessId { nid: *self.nids.get(rank)?, pid: *self.pids.get(rank)? })
    }

    pub(crate) fn nid(&self) -> u32 {
        self.nids[0]
    }

    /// Checks that this library can serve the job.
    fn check(self) -> Result<RankMap, String> {
        let RankMap { rank, nids, pids } = &self;
        if nids.is_empty() || nids.len() != pids.len() {
            return Err(format!(
                "PTL_NIDMAP has {} processes, PTL_PIDMAP {}",
                nids.len(),
                pids.len()
            ));
        }
        if *rank as usize >= nids.len() {
            return Err(format!("PTL_MY_RID is {rank}, but there are {} processes", nids.len()));
        }
        if nids.iter().any(|nid| *nid != nids[0] || *nid == PTL_NID_ANY) {
            return Err("PTL_NIDMAP: this network has one host only".into());
        }
        if pids.iter().enumerate().any(|(rank, pid)| *pid as usize != rank) {
            return Err("PTL_PIDMAP: pids are 0, 1, 2 and so on in this network".into());
        }
        Ok(self)
    }
}

/// The job as `PtlSetRank`, `PtlSetNIDMap` and `PtlSetPIDMap` set it.
static SET_BY_PROGRAM: Mutex<Option<RankMap>> = Mutex::new(None);

/// The job that the program set, locked.
pub(crate) fn set_by_program() -> MutexGuard<'static, Option<RankMap>> {
    SET_BY_PROGRAM.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The job as the program set it, or else as the environment has it.
pub(crate) fn job() -> Result<RankMap, Code> {
    let job = match set_by_program().clone() {
        Some(job) => job.check(),
        None => from_environment(),
    };
    job.map_err(|line| complain(&line))
}

/// Prints on the standard error stream why an interface cannot be opened.
pub(crate) fn complain(line: &str) -> Code {
    // A stream that cannot be written is no reason to end the program.
    let _ = writeln!(std::io::stderr(), "libportals3: {line}");
    Code(PTL_FAIL)
}

fn variable<T: core::str::FromStr>(name: &str) -> Result<Option<T>, String> {
    match std::env::var(name) {
        Ok(value) => {
            value.trim().parse().map(Some).map_err(|_| format!("{name}={value}: not a number"))
        }
        Err(_) => Ok(None),
    }
}

fn map(name: &str) -> Result<Option<Vec<u32>>, String> {
    let Ok(value) = std::env::var(name) else { return Ok(None) };
    let numbers: Result<Vec<u32>, _> =
        value.split(':').map(|number| number.trim().parse()).collect();
    numbers.map(Some).map_err(|_| format!("{name}={value}: not numbers with colons between"))
}

/// The job as the environment has it.
pub(crate) fn environment() -> Result<RankMap, Code> {
    from_environment().map_err(|line| complain(&line))
}

fn from_environment() -> Result<RankMap, String> {
    let (rank, nids, pids) = (variable("PTL_MY_RID")?, map("PTL_NIDMAP")?, map("PTL_PIDMAP")?);
    match (rank, nids, pids) {
        (None, None, None) => Ok(RankMap::new(0, 1)),
        (Some(rank), Some(nids), Some(pids)) => RankMap { rank, nids, pids }.check(),
        _ => Err("PTL_MY_RID, PTL_NIDMAP and PTL_PIDMAP must be set together".into()),
    }
}

/// The memory file that the processes of the job share; none if the launcher passed none.
/// Programs that the process starts do not inherit it.
pub(crate) fn fabric_file() -> Result<Option<OwnedFd>, Code> {
    let number = variable::<i32>("PTL_FABRIC_FD").map_err(|line| complain(&line))?;
    let Some(number) = number else { return Ok(None) };
    let closed = || complain(&format!("PTL_FABRIC_FD={number}: no such descriptor"));
    descriptor::close_on_exec(number, true).map_err(|_| closed())?;
    descriptor::duplicate(number).map(Some).map_err(|_| closed())
}

/// Arena bytes per process.
pub(crate) fn arena_bytes() -> Result<usize, Code> {
    let bytes = variable("PTL_ARENA_BYTES").map_err(|line| complain(&line))?;
    Ok(bytes.unwrap_or(16 << 20))
}

/// Whether processes copy from and to each other's private memory, if the system permits it. If
/// so, this one admits the descendants of its launcher, where the system has it ask.
pub(crate) fn attach_policy() -> Result<AttachPolicy, Code> {
    if let Some(0) = variable::<u32>("PTL_ATTACH").map_err(|line| complain(&line))? {
        return Ok(AttachPolicy::Denied);
    }
    if let Some(launcher) = variable("PTL_LAUNCHER").map_err(|line| complain(&line))? {
        attach::admit(Tracers::Descendants(launcher));
    }
    Ok(AttachPolicy::Allowed)
}
