//! `PtlInit`, `PtlFini`, and the calls about the network interface and about identities.

use core::ffi::c_int;

use portals3::{NetworkInterface, StatusRegister};

use crate::abi::*;
use crate::calls;
use crate::convert::{Class, Code, eq_in, limits_in, limits_out, md_in, me_in, out};
use crate::state;

calls! {
    /// Initialises the library; may be called again. `max_interfaces` becomes 1. `PTL_SEGV`: it
    /// is null.
    fn PtlInit(max_interfaces: *mut c_int) {
        let most = out(max_interfaces)?;
        state::initialise();
        // SAFETY: that of the crate.
        unsafe { most.write(1) };
        Ok(())
    }

    /// Opens the interface `PTL_IFACE_DEFAULT`; `desired` and `actual` may be null. `pid` is
    /// ours or `PTL_PID_ANY`, else `PTL_PID_INVALID`. Called again, it gives the same handle,
    /// with the limits that were granted first. `PTL_NO_SPACE`: the memory for these limits
    /// cannot be had; `PTL_FAIL`: the job is not what this network can be (one line on the
    /// standard error stream says why).
    fn PtlNIInit(
        interface: u32,
        pid: u32,
        desired: *const CNiLimits,
        actual: *mut CNiLimits,
        ni: *mut CHandle,
    ) {
        let ni = out(ni)?;
        // SAFETY: that of the crate.
        let limits = unsafe { desired.as_ref() }.map(limits_in);
        if interface != PTL_IFACE_DEFAULT {
            // Not to be asked of a library that is not initialised.
            return state::open_ni(PTL_IFACE_INVALID).and(Err(Code(PTL_IFACE_INVALID)));
        }
        let opened = state::open(pid, limits)?;
        // SAFETY: that of the crate.
        unsafe {
            ni.write(opened.handle);
            if let Some(actual) = actual.as_mut() {
                *actual = limits_out(&opened.interface.limits());
            }
        }
        Ok(())
    }

    /// Takes back one `PtlNIInit`; the last closes the interface. Messages that come later are
    /// dropped.
    fn PtlNIFini(ni: CHandle) {
        state::close(ni)
    }

    /// `PTL_SR_DROP_COUNT`, or `PTL_SR_INDEX_INVALID`.
    fn PtlNIStatus(ni: CHandle, register: u32, status: *mut u64) {
        let ni = state::ni(ni)?;
        let status = out(status)?;
        if register != PTL_SR_DROP_COUNT {
            return Err(Code(PTL_SR_INDEX_INVALID));
        }
        // SAFETY: that of the crate.
        unsafe { status.write(ni.interface.status(StatusRegister::DropCount)) };
        Ok(())
    }

    /// 0 to ourselves, 1 to the others of the host. `PTL_PROCESS_INVALID`: nobody of the job.
    fn PtlNIDist(ni: CHandle, process: PtlProcessId, distance: *mut NiDistance) {
        let ni = state::ni(ni)?;
        let distance = out(distance)?;
        let found = ni.interface.distance(process)?;
        // SAFETY: that of the crate.
        unsafe { distance.write(found as NiDistance) };
        Ok(())
    }

    /// The interface that an object belongs to. `PTL_HANDLE_INVALID`: there is no such object.
    fn PtlNIHandle(handle: CHandle, ni: *mut CHandle) {
        let out = out(ni)?;
        let ni = state::open_ni(PTL_HANDLE_INVALID)?;
        let exists = match Class::of(handle) {
            Class::Ni => handle == ni.handle,
            Class::Me => ni.interface.has_me(me_in(handle)?),
            Class::Md => ni.interface.has_md(md_in(handle)?),
            Class::Eq => ni.interface.has_eq(eq_in(handle)?),
        };
        if !exists {
            return Err(Code(PTL_HANDLE_INVALID));
        }
        // SAFETY: that of the crate.
        unsafe { out.write(ni.handle) };
        Ok(())
    }

    /// Our process id.
    fn PtlGetId(ni: CHandle, id: *mut PtlProcessId) {
        tell(ni, id, NetworkInterface::id)
    }

    /// Our user id.
    fn PtlGetUid(ni: CHandle, uid: *mut u32) {
        tell(ni, uid, NetworkInterface::uid)
    }

    /// Our job id.
    fn PtlGetJid(ni: CHandle, jid: *mut u32) {
        tell(ni, jid, NetworkInterface::jid)
    }

    /// Admits processes to a portal table entry, under an index of the access control table.
    fn PtlACEntry(ni: CHandle, ac_index: u32, match_id: PtlProcessId, uid: u32, jid: u32, pt_index: u32) {
        Ok(state::ni(ni)?.interface.ac_entry(ac_index, match_id, uid, jid, pt_index)?)
    }
}

/// Closes the interface, if one is open, and forgets that the library was initialised.
///
/// # Safety
/// That of the [crate](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PtlFini() {
    state::finalise();
}

fn tell<T>(ni: CHandle, to: *mut T, what: fn(&NetworkInterface) -> T) -> Result<(), Code> {
    let ni = state::ni(ni)?;
    let to = out(to)?;
    // SAFETY: the pointer is the caller's, with the safety of the crate.
    unsafe { to.write(what(&ni.interface)) };
    Ok(())
}
