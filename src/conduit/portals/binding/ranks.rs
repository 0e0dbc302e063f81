//! Which process of the job is where on a libportals: what the library receives before its
//! interface is opened, and what the system knows.
//!
//! Called by [`super::Binding`]. Invariant: variables that are set here exist only while the
//! interface is opened.
//!
//! A library that serves the processes of one host by shared memory needs a memory file and a rank
//! map. One with `PtlSetRank` learns its address from a rank map. Where no launcher of its own has
//! set them, [`set_variables`] sets them from what our launcher knows. [`known`] asks the system
//! whose functions have started the job: CNOS, or PMI. In other jobs it takes the rank map of a
//! launcher. Where that is missing, the processes exchange their addresses (`runtime::start`).

use super::super::{OpenError, PortalsId};
use super::sys;
use super::system::{self, AddressMap, WRONG_SYSTEM, fabric_variable};
use crate::boot::linked_launcher::LinkedSystem;
use crate::env;
use crate::rank::JobRank;
use alloc::ffi::CString;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::ffi::CStr;
use std::os::fd::{AsRawFd, OwnedFd};

const RANK: &CStr = c"PTL_MY_RID";
const NIDS: &CStr = c"PTL_NIDMAP";
const PIDS: &CStr = c"PTL_PIDMAP";

/// What to do if the launcher of a libportals has started processes that do not know it.
const TWO_LAUNCHERS: &str =
    "Start the job with gasnetrun alone, or link the program with libcnos.";
/// What to do if a rank map is not that of the job.
const WRONG_MAP: &str = "Correct PTL_NIDMAP and PTL_PIDMAP, or unset both.";

/// Removes the variables of the launcher of a libportals if the descriptor that they name is
/// closed. Then they were set for another process, which has started this one. Called before any
/// descriptor is opened.
pub fn forget_stale() {
    let Some(fabric) = fabric_variable() else { return };
    if system::fabric_descriptor().is_some_and(|fd| !::sys::descriptor::is_open(fd)) {
        for name in [RANK, NIDS, PIDS, fabric] {
            // SAFETY: no other thread uses the environment during gasnet_init (its contract).
            unsafe { ::sys::environment::unset(name) };
        }
    }
}

/// Variables that exist while the interface is opened, and the file that one of them names.
pub(super) struct RankVariables {
    names: Vec<&'static CStr>,
    shared: Option<OwnedFd>,
}

impl RankVariables {
    /// Whether the library can take its rank from the environment.
    pub(super) fn name_the_rank(&self) -> bool {
        [RANK, NIDS, PIDS].into_iter().all(|name| value(name).is_some())
    }

    fn set(&mut self, name: &'static CStr, value: String) {
        let value = CString::new(value).unwrap_or_default();
        // SAFETY: no other thread uses the environment during gasnet_init (its contract).
        unsafe { ::sys::environment::set(name, &value) };
        self.names.push(name);
    }
}

impl Drop for RankVariables {
    fn drop(&mut self) {
        for name in &self.names {
            // SAFETY: no other thread uses the environment during gasnet_init (its contract).
            unsafe { ::sys::environment::unset(name) };
        }
    }
}

fn value(name: &CStr) -> Option<String> {
    env::lookup(name.to_str().unwrap_or_default())
}

fn list(numbers: impl Iterator<Item = u32>) -> String {
    numbers.map(|n| n.to_string()).collect::<Vec<_>>().join(":")
}

/// Sets the variables that the library reads and that no launcher or user has set: our rank, the
/// rank map, a memory file. A library without a memory file gets the process ids of the system as
/// Portals process ids: they differ from those of other jobs.
///
/// # Errors
/// A launcher has set another rank.
pub(super) fn set_variables(
    shared: Option<OwnedFd>,
    rank: JobRank,
    size: u32,
    process_ids: &[u32],
) -> Result<RankVariables, OpenError> {
    let mut variables = RankVariables { names: Vec::new(), shared };
    let fabric = fabric_variable();
    if fabric.is_none() && !system::has_set_rank() {
        return Ok(variables);
    }
    let given = value(RANK);
    if let Some(other) = given.as_ref().filter(|other| other.trim().parse() != Ok(rank.0)) {
        return Err(OpenError::new(
            format!("PTL_MY_RID={other}, but this process has rank {rank} of {size}"),
            TWO_LAUNCHERS,
        ));
    }
    let has_map = [NIDS, PIDS].into_iter().any(|name| value(name).is_some());
    if let Some(fabric) = fabric {
        let file = variables.shared.as_ref().map(AsRawFd::as_raw_fd);
        if let (Some(file), None, false) = (file, &given, has_map) {
            variables.set(RANK, rank.to_string());
            variables.set(NIDS, list((0..size).map(|_| 0)));
            variables.set(PIDS, list(0..size));
            variables.set(fabric, file.to_string());
        }
        return Ok(variables);
    }
    if given.is_none() {
        variables.set(RANK, rank.to_string());
    }
    if !has_map && process_ids.len() == size as usize {
        variables.set(NIDS, list((0..size).map(|_| 0)));
        variables.set(PIDS, list(process_ids.iter().copied()));
    }
    Ok(variables)
}

/// The addresses of all processes by rank: those of the `system` that has started the job, else
/// those of a launcher of the library, if it has set them.
///
/// # Errors
/// They are not those of a job of `size` processes in which we, `id`, have this rank.
pub(super) fn known(
    rank: JobRank,
    size: u32,
    id: PortalsId,
    ni: sys::ptl_handle_ni_t,
    system: Option<LinkedSystem>,
) -> Result<Option<Vec<PortalsId>>, OpenError> {
    let (found, remedy) = match system {
        Some(system) => (Some(system::addresses(system, rank, size, id, ni)?), WRONG_SYSTEM),
        None => (of_launcher(size)?, WRONG_MAP),
    };
    let Some((map, source)) = found else { return Ok(None) };
    if map[rank.index()] != id {
        return Err(OpenError::new(
            format!("{source}: rank {rank} is {:?}, but PtlGetId says {id:?}", map[rank.index()]),
            remedy,
        ));
    }
    Ok(Some(map))
}

/// The rank map of a launcher.
fn of_launcher(size: u32) -> Result<Option<AddressMap>, OpenError> {
    let (Some(nids), Some(pids)) = (value(NIDS), value(PIDS)) else { return Ok(None) };
    let numbers = |name: &CStr, text: &str| {
        let list: Result<Vec<u32>, _> = text.split(':').map(|n| n.trim().parse()).collect();
        match list {
            Ok(list) if list.len() == size as usize => Ok(list),
            Ok(list) => Err(OpenError::new(
                format!(
                    "{} names {} processes, but the job has {size}",
                    name.to_string_lossy(),
                    list.len()
                ),
                TWO_LAUNCHERS,
            )),
            Err(_) => Err(OpenError::new(
                format!("{}={text}: not numbers with colons between", name.to_string_lossy()),
                WRONG_MAP,
            )),
        }
    };
    let (nids, pids) = (numbers(NIDS, &nids)?, numbers(PIDS, &pids)?);
    let ids = nids.into_iter().zip(pids).map(|(nid, pid)| PortalsId { nid, pid });
    Ok(Some((ids.collect(), "PTL_NIDMAP and PTL_PIDMAP")))
}
