//! The calls about ranks, beyond the specification.
//!
//! Callable before `PtlInit` with `PTL_INVALID_HANDLE`. Invariant: once the interface is open, the
//! job stays as it is; setting it again succeeds only with the same values.

use core::ffi::c_uint;

use crate::abi::*;
use crate::calls;
use crate::convert::{Code, out};
use crate::job::{self, RankMap};
use crate::state;

/// The rank and the size that stand for the variables, as in other Portals libraries with ranks.
const FROM_ENVIRONMENT: c_uint = c_uint::MAX;

/// Changes the job that the program sets. Once an interface is open, only the same job may be
/// set.
fn set_job(
    ni: CHandle,
    change: impl FnOnce(&mut Option<RankMap>) -> Result<(), Code>,
) -> Result<(), Code> {
    check_handle(ni)?;
    let mut set = job::set_by_program();
    let mut new = set.clone().or_else(state::job);
    change(&mut new)?;
    if let Some(open) = state::job()
        && new.as_ref() != Some(&open)
    {
        return Err(Code(PTL_FAIL));
    }
    *set = new;
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
        None => job::job(),
    }
}

/// A map of `size` numbers that the caller passes.
///
/// # Safety
/// `map` is null or points to `size` numbers.
unsafe fn passed_map(
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
    // SAFETY: not null, so it points to `size` numbers (the crate's safety section).
    Ok((job, unsafe { core::slice::from_raw_parts(map, size as usize) }.to_vec()))
}

/// Copies a map to the caller's memory.
///
/// # Safety
/// `to` is null or has space for `size` numbers.
unsafe fn give_map(map: &[u32], to: *mut u32, size: c_uint) -> Result<(), Code> {
    let to = out(to)?;
    if size as usize != map.len() {
        return Err(Code(PTL_FAIL));
    }
    // SAFETY: `to` has space for `size` numbers, as many as the map has; the map is a slice of
    // this library.
    unsafe { to.copy_from_nonoverlapping(core::ptr::NonNull::from(map).cast(), map.len()) };
    Ok(())
}

calls! {
    /// Sets the rank of this process and the number of processes, before `PtlNIInit`. `ni` is
    /// `PTL_INVALID_HANDLE`, or the interface: then both must be what they are already,
    /// otherwise `PTL_FAIL`. -1 and -1 stand for what the variables of the launcher say.
    fn PtlSetRank(ni: CHandle, rank: c_uint, size: c_uint) {
        if rank == FROM_ENVIRONMENT && size == FROM_ENVIRONMENT {
            let new = job::environment()?;
            return set_job(ni, |job| {
                *job = Some(new);
                Ok(())
            });
        }
        if size == 0 || size > portals3::PROCESSES || rank >= size {
            return Err(Code(PTL_FAIL));
        }
        set_job(ni, |job| {
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
        set_job(ni, |job| {
            // SAFETY: not null, so valid, as the crate's safety section demands.
            let (job, nids) = unsafe { passed_map(job, nids, size)? };
            job.nids = nids;
            Ok(())
        })
    }

    /// Sets the process ids of all ranks, after `PtlSetRank`. `PTL_NO_INIT` without it;
    /// `PTL_FAIL` if the size differs.
    fn PtlSetPIDMap(ni: CHandle, pids: *const u32, size: c_uint) {
        set_job(ni, |job| {
            // SAFETY: not null, so valid, as the crate's safety section demands.
            let (job, pids) = unsafe { passed_map(job, pids, size)? };
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
