//! CNOS and PMI, if the program is linked with them: what the launcher of the system knows.
//!
//! Used by `boot` through [`LinkedLauncher`] and by [`super::ranks`] for the addresses. Invariant:
//! a function is called only if the program has it.

use super::super::{OpenError, PortalsId};
use super::sys;
use crate::boot::linked_launcher::{LinkedLauncher, LinkedLaunchers, LinkedSystem};
use crate::env;
use crate::rank::JobRank;
use alloc::ffi::CString;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::ffi::{CStr, c_char, c_int};
use core::mem::zeroed;
use core::ptr;

/// What to do if what the system says of the job is wrong.
pub(super) const WRONG_SYSTEM: &str =
    "Start the job with the launcher of the system whose functions the program has.";

/// The functions that give the addresses.
const CNOS_MAP: &str = "cnos_get_nidpid_map";
const PMI_MAP: &str = "PMI_CNOS_Get_nidpid_map";

/// `cnos_get_rank` and the like.
#[derive(Debug)]
struct Cnos;

/// `PMI_Init` and the like.
#[derive(Debug)]
struct LinkedPmi;

/// The systems that this program is linked with.
pub fn linked() -> LinkedLaunchers {
    // SAFETY: these take nothing, and say which functions the program has.
    let (cnos, pmi) = unsafe { (sys::gasneti_ptl_has_cnos(), sys::gasneti_ptl_has_pmi()) };
    LinkedLaunchers {
        cnos: (cnos != 0).then_some(&Cnos as &dyn LinkedLauncher),
        pmi: (pmi != 0).then_some(&LinkedPmi as &dyn LinkedLauncher),
        expected_by: option_env!("GASNET_BUILD_LAUNCHER").filter(|name| !name.is_empty()),
    }
}

/// The fabric variable's name, if the library has such a variable.
pub(super) fn fabric_variable() -> Option<&'static CStr> {
    // SAFETY: takes nothing, returns null or a string constant.
    let name = unsafe { sys::gasneti_ptl_fabric_variable() };
    // SAFETY: as above.
    (!name.is_null()).then(|| unsafe { CStr::from_ptr(name) })
}

/// Whether the program has `PtlSetRank`.
pub(super) fn has_set_rank() -> bool {
    // SAFETY: takes nothing, and looks whether the function exists.
    unsafe { sys::gasneti_ptl_has_set_rank() != 0 }
}

/// The descriptor in the fabric variable.
pub(super) fn fabric_descriptor() -> Option<i32> {
    let text = env::lookup(fabric_variable()?.to_str().ok()?)?;
    text.trim().parse().ok()
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

/// The name of a service; on one host, jobs differ by the memory file of their libportals. `None`
/// if that is closed: a rank has started this process.
fn service(system: &str) -> Option<String> {
    let file = match fabric_descriptor() {
        Some(descriptor) => ::sys::descriptor::inode(descriptor)?,
        None => 0,
    };
    Some(format!("{system}:{file}"))
}

fn numbers(rank: c_int, size: c_int) -> Result<(u32, u32), String> {
    match (u32::try_from(rank), u32::try_from(size)) {
        (Ok(rank), Ok(size)) if size > 0 => Ok((rank, size)),
        _ => Err(format!("it says rank {rank} of {size}")),
    }
}

fn done(call: &str, returned: c_int) -> Result<(), String> {
    if returned == 0 { Ok(()) } else { Err(format!("{call} returned {returned}")) }
}

/// As [`done`], where C says which call it was.
fn pmi_done(call: *const c_char, returned: c_int) -> Result<(), String> {
    // SAFETY: system.c has set it to a string constant.
    done(&unsafe { CStr::from_ptr(call) }.to_string_lossy(), returned)
}

impl LinkedLauncher for Cnos {
    fn name(&self) -> &'static str {
        "CNOS"
    }

    fn system(&self) -> LinkedSystem {
        LinkedSystem::Cnos
    }

    fn service(&self) -> Option<String> {
        service("cnos")
    }

    fn rank_and_size(&self) -> Result<(u32, u32), String> {
        // SAFETY: the program has these functions: `linked` has looked.
        let (rank, size) = unsafe { (sys::gasneti_ptl_cnos_rank(), sys::gasneti_ptl_cnos_size()) };
        numbers(rank, size)
    }

    fn barrier(&self) -> Result<(), String> {
        // SAFETY: as above; `addresses` has made the calls that must precede it.
        done("cnos_barrier", unsafe { sys::gasneti_ptl_cnos_barrier() })
    }

    fn release(&self, code: i32) {
        if code & 0xff == 0 {
            // SAFETY: calls what the program has.
            unsafe { sys::gasneti_ptl_cnos_end() };
        }
    }
}

impl LinkedLauncher for LinkedPmi {
    fn name(&self) -> &'static str {
        "PMI"
    }

    fn system(&self) -> LinkedSystem {
        LinkedSystem::Pmi
    }

    fn service(&self) -> Option<String> {
        service("pmi-functions")
    }

    fn rank_and_size(&self) -> Result<(u32, u32), String> {
        let (mut rank, mut size, mut call) = (-1, -1, c"".as_ptr());
        // SAFETY: the program has the functions, as `linked` has seen; the variables are live.
        let rc = unsafe { sys::gasneti_ptl_pmi_begin(&mut rank, &mut size, &mut call) };
        pmi_done(call, rc)?;
        numbers(rank, size)
    }

    fn barrier(&self) -> Result<(), String> {
        // SAFETY: the program has the function, as `linked` has seen.
        done("PMI_Barrier", unsafe { sys::gasneti_ptl_pmi_barrier() })
    }

    fn release(&self, _: i32) {
        // SAFETY: takes nothing, and calls what the program has.
        unsafe { sys::gasneti_ptl_pmi_end() };
    }
}

/// A map of ids by rank, and where it comes from.
pub(super) type AddressMap = (Vec<PortalsId>, &'static str);

fn has_pmi_map() -> bool {
    // SAFETY: takes nothing, and looks whether the function exists.
    unsafe { sys::gasneti_ptl_has_pmi_map() != 0 }
}

/// The addresses of all ranks by the system that has started the job: only its own functions are
/// called. PMI without a map has a key-value space. Collective.
///
/// # Errors
/// The system's map is of another size, or a call failed.
pub(super) fn addresses(
    system: LinkedSystem,
    rank: JobRank,
    size: u32,
    id: PortalsId,
    ni: sys::ptl_handle_ni_t,
) -> Result<AddressMap, OpenError> {
    let mut map = ptr::null();
    let source = match system {
        LinkedSystem::Cnos => {
            // SAFETY: the variables are live, the interface is open. The program has the
            // functions: CNOS has started the job.
            let named = unsafe { sys::gasneti_ptl_cnos_map(ni, peer(id), &mut map) };
            if u32::try_from(named) != Ok(size) || map.is_null() {
                return Err(OpenError::new(
                    format!("{CNOS_MAP} names {named} processes, but the job has {size}"),
                    WRONG_SYSTEM,
                ));
            }
            CNOS_MAP
        }
        LinkedSystem::Pmi if !has_pmi_map() => return exchanged(rank, size, id),
        LinkedSystem::Pmi => {
            // SAFETY: `map` is live; the program has the function.
            let returned = unsafe { sys::gasneti_ptl_pmi_map(&mut map) };
            if returned != 0 || map.is_null() {
                return Err(OpenError::new(format!("{PMI_MAP} failed: {returned}"), WRONG_SYSTEM));
            }
            PMI_MAP
        }
    };
    let ids = (0..size as usize).map(|rank| {
        // SAFETY: the map has an element for each rank of the job.
        let element = unsafe { map.add(rank).read() };
        PortalsId { nid: element.nid as u32, pid: element.pid as u32 }
    });
    Ok((ids.collect(), source))
}

/// The addresses that the ranks of PMI exchange through its key-value space. Collective.
///
/// # Errors
/// The call of PMI that failed, or an address that is none.
fn exchanged(rank: JobRank, size: u32, id: PortalsId) -> Result<AddressMap, OpenError> {
    let key = |rank: u32| CString::new(format!("gasnet-address-{rank}")).unwrap_or_default();
    let text = CString::new(format!("{}:{}", id.nid, id.pid)).unwrap_or_default();
    let mut call = c"".as_ptr();
    // SAFETY: the strings end with a zero, `call` is live; the program has the functions, since
    // `linked` has offered PMI and it has no map.
    let rc = unsafe { sys::gasneti_ptl_pmi_put(key(rank.0).as_ptr(), text.as_ptr(), &mut call) };
    let failed = |cause: String| OpenError::new(cause, WRONG_SYSTEM);
    pmi_done(call, rc).and_then(|()| LinkedPmi.barrier()).map_err(failed)?;
    let mut ids = Vec::new();
    for other in 0..size {
        let mut value = [0u8; 64];
        // SAFETY: as above; the length is that of `value`.
        let rc = unsafe {
            sys::gasneti_ptl_pmi_get(
                key(other).as_ptr(),
                value.as_mut_ptr().cast(),
                value.len() as c_int,
                &mut call,
            )
        };
        pmi_done(call, rc).map_err(failed)?;
        let text = CStr::from_bytes_until_nul(&value).unwrap_or_default().to_string_lossy();
        let numbers = text.split_once(':').and_then(|(nid, pid)| {
            Some(PortalsId { nid: nid.parse().ok()?, pid: pid.parse().ok()? })
        });
        ids.push(numbers.ok_or_else(|| {
            failed(format!("PMI_KVS_Get: the address of rank {other} is {:?}", text.to_string()))
        })?);
    }
    Ok((ids, "PMI_KVS_Get"))
}
