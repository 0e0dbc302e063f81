//! The processes of the job: ranks, and the calls about them.
//!
//! The launcher passes them in the environment:
//!
//! | variable | what |
//! |---|---|
//! | `PTL_MY_RID` | rank of this process |
//! | `PTL_NIDMAP`, `PTL_PIDMAP` | node and process id of each rank, separated by colons |
//! | `PTL_FABRIC_FD` | descriptor of the memory file that the processes share, empty at first |
//! | `PTL_ARENA_BYTES` | memory for match entries, descriptors and queues per process; the same everywhere |
//! | `PTL_ATTACH` | 0: no process copies from or to another's private memory; messages there wait for a call of their target |
//!
//! A program may set them by `PtlSetRank`, `PtlSetNIDMap` and `PtlSetPIDMap` instead. Without
//! either, the process is a job of one. Invariant: all processes are on one host, and pids are
//! ranks.

use core::ffi::c_uint;
use std::os::fd::OwnedFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

use portals3::nal::shm::AttachPolicy;
use sys::descriptor;

use crate::abi::*;
use crate::calls;
use crate::convert::{Code, out};
use crate::state;

/// The processes of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RankMap {
    pub(crate) rank: u32,
    nids: Vec<u32>,
    pids: Vec<u32>,
}

impl RankMap {
    /// `PTL_NIDMAP` and `PTL_PIDMAP` have their defaults: one host, and pids are ranks.
    fn new(rank: u32, size: u32) -> RankMap {
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
                "PTL_NIDMAP tells of {} processes, PTL_PIDMAP of {}",
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
static TOLD: Mutex<Option<RankMap>> = Mutex::new(None);

fn told() -> MutexGuard<'static, Option<RankMap>> {
    TOLD.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The job as the program set it, or else as the environment has it.
pub(crate) fn job() -> Result<RankMap, Code> {
    let job = match told().clone() {
        Some(job) => job.check(),
        None => from_environment(),
    };
    job.map_err(|line| complain(&line))
}

/// Prints on the standard error stream why an interface cannot be opened.
pub(crate) fn complain(line: &str) -> Code {
    eprintln!("libportals3: {line}");
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

/// Whether processes copy from and to each other's private memory, if the system permits it.
pub(crate) fn attach_policy() -> Result<AttachPolicy, Code> {
    match variable::<u32>("PTL_ATTACH").map_err(|line| complain(&line))? {
        Some(0) => Ok(AttachPolicy::Denied),
        _ => Ok(AttachPolicy::Allowed),
    }
}

/// Changes the job that the program sets. Once an interface is open, only the same job may be
/// set.
fn tell(
    ni: CHandle,
    change: impl FnOnce(&mut Option<RankMap>) -> Result<(), Code>,
) -> Result<(), Code> {
    check_handle(ni)?;
    let mut told = told();
    let mut new = told.clone().or_else(state::job);
    change(&mut new)?;
    if let Some(open) = state::job()
        && new.as_ref() != Some(&open)
    {
        return Err(Code(PTL_FAIL));
    }
    *told = new;
    Ok(())
}

/// `PTL_INVALID_HANDLE` stands for the process, whether an interface is open or not.
fn check_handle(ni: CHandle) -> Result<(), Code> {
    if ni == PTL_INVALID_HANDLE { Ok(()) } else { state::ni(ni).map(|_| ()) }
}

/// The job as it is known now.
fn known(ni: CHandle) -> Result<RankMap, Code> {
    check_handle(ni)?;
    match state::job() {
        Some(job) => Ok(job),
        None => job(),
    }
}

/// A map of `size` numbers that the caller passes.
///
/// # Safety
/// `map` is null or points to `size` numbers.
unsafe fn told_map(
    job: &mut Option<RankMap>,
    map: *const u32,
    size: c_uint,
) -> Result<(&mut RankMap, Vec<u32>), Code> {
    let job = job.as_mut().ok_or(Code(PTL_NO_INIT))?;
    if map.is_null() {
        return Err(Code(PTL_SEGV));
    }
    if size != job.size() {
        return Err(Code(PTL_FAIL));
    }
    // SAFETY: not null, so it points to `size` numbers, as the caller promises.
    Ok((job, unsafe { core::slice::from_raw_parts(map, size as usize) }.to_vec()))
}

/// Copies a map to the caller's memory.
///
/// # Safety
/// `to` is null or has room for `size` numbers.
unsafe fn give_map(map: &[u32], to: *mut u32, size: c_uint) -> Result<(), Code> {
    let to = out(to)?;
    if size as usize != map.len() {
        return Err(Code(PTL_FAIL));
    }
    // SAFETY: the caller promises room for as many numbers as the map has; the map is a slice of
    // ours.
    unsafe { to.copy_from_nonoverlapping(core::ptr::NonNull::from(map).cast(), map.len()) };
    Ok(())
}

calls! {
    /// Sets the rank of this process and the number of processes, before `PtlNIInit`. `ni` is
    /// `PTL_INVALID_HANDLE`, or the interface: then both must be what they are already,
    /// otherwise `PTL_FAIL`.
    fn PtlSetRank(ni: CHandle, rank: c_uint, size: c_uint) {
        if size == 0 || rank >= size {
            return Err(Code(PTL_FAIL));
        }
        tell(ni, |job| {
            match job {
                Some(job) if job.size() == size => job.rank = rank,
                _ => *job = Some(RankMap::new(rank, size)),
            }
            Ok(())
        })
    }

    /// Sets the node ids of all ranks, after `PtlSetRank`. `PTL_NO_INIT` without it; `PTL_FAIL`
    /// if the size differs.
    fn PtlSetNIDMap(ni: CHandle, nids: *const u32, size: c_uint) {
        tell(ni, |job| {
            // SAFETY: not null, so valid, as the crate's safety section demands.
            let (job, nids) = unsafe { told_map(job, nids, size)? };
            job.nids = nids;
            Ok(())
        })
    }

    /// Sets the process ids of all ranks, after `PtlSetRank`. `PTL_NO_INIT` without it;
    /// `PTL_FAIL` if the size differs.
    fn PtlSetPIDMap(ni: CHandle, pids: *const u32, size: c_uint) {
        tell(ni, |job| {
            // SAFETY: not null, so valid, as the crate's safety section demands.
            let (job, pids) = unsafe { told_map(job, pids, size)? };
            job.pids = pids;
            Ok(())
        })
    }

    /// Stores the rank of this process and the number of processes.
    fn PtlGetRank(ni: CHandle, rank: *mut c_uint, size: *mut c_uint) {
        let (rank, size) = (out(rank)?, out(size)?);
        let job = known(ni)?;
        // SAFETY: not null, so valid, as the crate's safety section demands.
        unsafe {
            rank.write(job.rank);
            size.write(job.size());
        }
        Ok(())
    }

    /// Stores the id of the process with a rank. `PTL_PROCESS_INVALID`: there is no such rank.
    fn PtlGetRankId(ni: CHandle, rank: c_uint, id: *mut PtlProcessId) {
        let id = out(id)?;
        let found = known(ni)?.id(rank).ok_or(Code(PTL_PROCESS_INVALID))?;
        // SAFETY: not null, so valid, as the crate's safety section demands.
        unsafe { id.write(found) };
        Ok(())
    }

    /// Stores the node ids of all ranks. `PTL_FAIL`: `size` is not their number.
    fn PtlGetNIDMap(ni: CHandle, nids: *mut u32, size: c_uint) {
        // SAFETY: not null, so valid, as the crate's safety section demands.
        unsafe { give_map(&known(ni)?.nids, nids, size) }
    }

    /// Stores the process ids of all ranks. `PTL_FAIL`: `size` is not their number.
    fn PtlGetPIDMap(ni: CHandle, pids: *mut u32, size: c_uint) {
        // SAFETY: not null, so valid, as the crate's safety section demands.
        unsafe { give_map(&known(ni)?.pids, pids, size) }
    }
}
