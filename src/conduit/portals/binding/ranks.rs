//! Which process of the job is where on a libportals: what the library receives before its
//! interface is opened, and what the system knows.
//!
//! Called by [`super::Binding`]. Invariant: variables that are set here exist only while the
//! interface is opened.
//!
//! A library that serves the processes of one host by shared memory needs a memory file and a
//! rank map. Where no launcher of its own has set them, [`tell`] sets them from what our launcher
//! knows. [`known`] asks the system of Cray XT-class machines (`PMI_CNOS_Get_nidpid_map`,
//! `cnos_get_nidpid_map`, looked up by name in the running program), then the rank map of a
//! launcher. Where neither exists, the processes exchange their addresses (`runtime::job`).

use super::super::{OpenError, PortalsId};
use super::sys;
use crate::env;
use crate::rank::JobRank;
use alloc::ffi::CString;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::ffi::{CStr, c_int, c_void};
use core::mem::{transmute, zeroed};
use core::ptr;
use std::os::fd::{AsRawFd, OwnedFd};

const RANK: &CStr = c"PTL_MY_RID";
const NIDS: &CStr = c"PTL_NIDMAP";
const PIDS: &CStr = c"PTL_PIDMAP";

/// Variables that exist while the interface is opened, and the file that one of them names.
pub(super) struct FabricVariables {
    names: Vec<&'static CStr>,
    _shared: OwnedFd,
}

impl Drop for FabricVariables {
    fn drop(&mut self) {
        for name in &self.names {
            // SAFETY: gasnet_init is called before the program has other threads.
            unsafe { ::sys::environment::unset(name) };
        }
    }
}

/// The fabric variable's name, if the library has such a variable.
fn fabric_variable() -> Option<&'static CStr> {
    // SAFETY: takes nothing, returns null or a string constant.
    let name = unsafe { sys::gasneti_ptl_fabric_variable() };
    // SAFETY: as above.
    (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) })
}

/// The process with this address, in the header's types.
#[inline]
pub(super) fn peer(id: PortalsId) -> sys::ptl_process_id_t {
    // SAFETY: plain data, for which zero is a value.
    let mut to: sys::ptl_process_id_t = unsafe { zeroed() };
    to.nid = id.nid as _;
    to.pid = id.pid as _;
    to
}

fn value(name: &CStr) -> Option<String> {
    env::lookup(name.to_str().unwrap_or_default())
}

/// Gives the library our rank and the rank map, if it reads them and no launcher has set them.
///
/// # Errors
/// A launcher has set another rank.
pub(super) fn tell(
    shared: OwnedFd,
    rank: JobRank,
    size: u32,
) -> Result<FabricVariables, OpenError> {
    let mut told = FabricVariables { names: Vec::new(), _shared: shared };
    let Some(fabric) = fabric_variable() else { return Ok(told) };
    if let Some(other) = value(RANK).filter(|other| other.trim().parse() != Ok(rank.0)) {
        return Err(OpenError(format!(
            "PTL_MY_RID={other}, but this process has rank {rank} of {size}; start the job with gasnetrun alone"
        )));
    }
    if [RANK, NIDS, PIDS].into_iter().any(|name| value(name).is_some()) {
        return Ok(told);
    }
    let list = |number: &dyn Fn(u32) -> u32| {
        (0..size).map(|r| number(r).to_string()).collect::<Vec<_>>().join(":")
    };
    let variables = [
        (RANK, rank.to_string()),
        (NIDS, list(&|_| 0)),
        (PIDS, list(&|r| r)),
        (fabric, told._shared.as_raw_fd().to_string()),
    ];
    for (name, value) in variables {
        let value = CString::new(value).unwrap_or_default();
        // SAFETY: gasnet_init is called before the program has other threads.
        unsafe { ::sys::environment::set(name, &value) };
        told.names.push(name);
    }
    Ok(told)
}

/// A map of ids by rank, and where it comes from.
type Map = (Vec<PortalsId>, &'static str);

/// The addresses of all processes by rank, if the system or a launcher knows them.
///
/// # Errors
/// They are not those of a job of `size` processes in which we, `id`, have this rank.
pub(super) fn known(
    rank: JobRank,
    size: u32,
    id: PortalsId,
    ni: sys::ptl_handle_ni_t,
) -> Result<Option<Vec<PortalsId>>, OpenError> {
    let found = match of_system(size, id, ni)? {
        Some(found) => Some(found),
        None => of_launcher(size)?,
    };
    let Some((map, source)) = found else { return Ok(None) };
    if map[rank.index()] != id {
        return Err(OpenError(format!(
            "{source}: rank {rank} is {:?}, but PtlGetId says {id:?}",
            map[rank.index()]
        )));
    }
    Ok(Some(map))
}

/// An element of the system's map.
#[repr(C)]
#[derive(Clone, Copy)]
struct NidPid {
    nid: sys::ptl_nid_t,
    pid: sys::ptl_pid_t,
}

type GetMap = unsafe extern "C" fn(*mut *const NidPid) -> c_int;
type BarrierInit = unsafe extern "C" fn(sys::ptl_handle_ni_t);
type Register = unsafe extern "C" fn(sys::ptl_process_id_t) -> c_int;

/// The map of the system.
///
/// # Errors
/// The system's map is of another size.
fn of_system(
    size: u32,
    id: PortalsId,
    ni: sys::ptl_handle_ni_t,
) -> Result<Option<Map>, OpenError> {
    let mut map: *const NidPid = ptr::null();
    let function = |name: &CStr| -> Option<*mut c_void> {
        ::sys::library::symbol(name).map(|found| found.as_ptr())
    };
    let source;
    if let Some(f) = function(c"PMI_CNOS_Get_nidpid_map") {
        source = "PMI_CNOS_Get_nidpid_map";
        // SAFETY: the system's function of this name has this type; `map` is live.
        let rc = unsafe { transmute::<*mut c_void, GetMap>(f)(&mut map) };
        if rc != 0 || map.is_null() {
            return Err(OpenError(format!("{source} failed: {rc}")));
        }
    } else if let Some(f) = function(c"cnos_get_nidpid_map") {
        source = "cnos_get_nidpid_map";
        // The order of these calls is fixed.
        if let Some(f) = function(c"cnos_barrier_init") {
            // SAFETY: as above; the interface is open.
            unsafe { transmute::<*mut c_void, BarrierInit>(f)(ni) };
        }
        if let Some(f) = function(c"cnos_register_ptlid") {
            // SAFETY: as above.
            unsafe { transmute::<*mut c_void, Register>(f)(peer(id)) };
        }
        // SAFETY: as above; `map` is live.
        let n = unsafe { transmute::<*mut c_void, GetMap>(f)(&mut map) };
        if u32::try_from(n) != Ok(size) || map.is_null() {
            return Err(OpenError(format!(
                "{source} names {n} processes, but the job has {size}"
            )));
        }
    } else {
        return Ok(None);
    }
    let ids = (0..size as usize).map(|rank| {
        // SAFETY: the map has an element for each rank of the job.
        let element = unsafe { map.add(rank).read() };
        PortalsId { nid: element.nid as u32, pid: element.pid as u32 }
    });
    Ok(Some((ids.collect(), source)))
}

/// The rank map of a launcher.
fn of_launcher(size: u32) -> Result<Option<Map>, OpenError> {
    let (Some(nids), Some(pids)) = (value(NIDS), value(PIDS)) else { return Ok(None) };
    let numbers = |name: &CStr, text: &str| {
        let list: Result<Vec<u32>, _> = text.split(':').map(|n| n.trim().parse()).collect();
        match list {
            Ok(list) if list.len() == size as usize => Ok(list),
            Ok(list) => Err(OpenError(format!(
                "{} names {} processes, but the job has {size}",
                name.to_string_lossy(),
                list.len()
            ))),
            Err(_) => Err(OpenError(format!(
                "{}={text}: not numbers with colons between",
                name.to_string_lossy()
            ))),
        }
    };
    let (nids, pids) = (numbers(NIDS, &nids)?, numbers(PIDS, &pids)?);
    let ids = nids.into_iter().zip(pids).map(|(nid, pid)| PortalsId { nid, pid });
    Ok(Some((ids.collect(), "PTL_NIDMAP and PTL_PIDMAP")))
}
