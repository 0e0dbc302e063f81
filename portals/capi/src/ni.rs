//! `PtlInit`, `PtlFini`, and the calls about the network interface and about identities.

use core::ffi::{c_int, c_uint};

use portals3::{NetworkInterface, StatusRegister};

use crate::abi::*;
use crate::calls;
use crate::convert::{Class, Code, eq_in, limits_in, limits_out, md_in, me_in, out};
use crate::state;

calls! {
    /// Initialises the library; may be called again. Stores 1 in `max_interfaces`. `PTL_SEGV`:
    /// it is null.
    fn PtlInit(max_interfaces: *mut c_int) {
        let most = out(max_interfaces)?;
        state::initialise();
        // SAFETY: not null, so valid, as the crate's safety section demands.
        unsafe { most.write(1) };
        Ok(())
    }

    /// Opens the interface `PTL_IFACE_DEFAULT` and stores its handle in `ni`; `desired` and
    /// `actual` may be null. `pid` is this process's id or `PTL_PID_ANY`, otherwise
    /// `PTL_PID_INVALID`. A second call returns the same handle, with the limits that were
    /// granted first. `PTL_NO_SPACE`: there is no memory for these limits; `PTL_FAIL`: this
    /// network cannot carry the job, or the process that forked this one has opened the interface
    /// (one line on the standard error stream says why).
    fn PtlNIInit(
        interface: u32,
        pid: u32,
        desired: *const CNiLimits,
        actual: *mut CNiLimits,
        ni: *mut CHandle,
    ) {
        let ni = out(ni)?;
        // SAFETY: not null, so valid, as the crate's safety section demands.
        let limits = unsafe { desired.as_ref() }.map(limits_in);
        if interface != PTL_IFACE_DEFAULT {
            // Must not be called before the library is initialised.
            return state::open_ni(PTL_IFACE_INVALID).and(Err(Code(PTL_IFACE_INVALID)));
        }
        let opened = state::open(pid, limits)?;
        // SAFETY: not null, so valid, as the crate's safety section demands.
        unsafe {
            ni.write(opened.handle);
            if let Some(actual) = actual.as_mut() {
                *actual = limits_out(&opened.interface.limits());
            }
        }
        Ok(())
    }

    /// Undoes one `PtlNIInit`; the last one closes the interface. Later messages are dropped.
    fn PtlNIFini(ni: CHandle) {
        state::close(ni)
    }

    /// Takes and sends messages that need calls of this process. Then stores the value of register
    /// `PTL_SR_DROP_COUNT` in `status`; other registers are `PTL_SR_INDEX_INVALID`.
    fn PtlNIStatus(ni: CHandle, register: u32, status: *mut u64) {
        let ni = state::ni(ni)?;
        let status = out(status)?;
        if register != PTL_SR_DROP_COUNT {
            return Err(Code(PTL_SR_INDEX_INVALID));
        }
        ni.interface.progress();
        // SAFETY: not null, so valid, as the crate's safety section demands.
        unsafe { status.write(ni.interface.status(StatusRegister::DropCount)) };
        Ok(())
    }

    /// Stores the distance: 0 to this process, 1 to the others of the host.
    /// `PTL_PROCESS_INVALID`: not a process of the job.
    fn PtlNIDist(ni: CHandle, process: PtlProcessId, distance: *mut NiDistance) {
        let ni = state::ni(ni)?;
        let distance = out(distance)?;
        let found = ni.interface.distance(process)?;
        // SAFETY: not null, so valid, as the crate's safety section demands.
        unsafe { distance.write(found as NiDistance) };
        Ok(())
    }

    /// Stores the properties of the interface: `PTL_NI_THREAD_SAFE`;
    /// `PTL_NI_APPLICATION_BYPASS` if puts and gets complete without calls of their target. The
    /// other processes have opened their interfaces.
    fn PtlNIProperties(ni: CHandle, properties: *mut c_uint) {
        let ni = state::ni(ni)?;
        let properties = out(properties)?;
        let bypass = if ni.interface.has_bypass() { PTL_NI_APPLICATION_BYPASS } else { 0 };
        // SAFETY: not null, so valid, as the crate's safety section demands.
        unsafe { properties.write(PTL_NI_THREAD_SAFE | bypass) };
        Ok(())
    }

    /// Stores the interface of an object in `ni`. `PTL_HANDLE_INVALID`: there is no such object.
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
        // SAFETY: not null, so valid, as the crate's safety section demands.
        unsafe { out.write(ni.handle) };
        Ok(())
    }

    /// Stores the id of this process.
    fn PtlGetId(ni: CHandle, id: *mut PtlProcessId) {
        store(ni, id, NetworkInterface::id)
    }

    /// Stores the user id of this process.
    fn PtlGetUid(ni: CHandle, uid: *mut u32) {
        store(ni, uid, NetworkInterface::uid)
    }

    /// Stores the job id of this process.
    fn PtlGetJid(ni: CHandle, jid: *mut u32) {
        store(ni, jid, NetworkInterface::jid)
    }

    /// Admits processes to a portal table entry, by an entry of the access control table.
    /// `PTL_AC_INDEX_INVALID`, `PTL_PT_INDEX_INVALID`.
    fn PtlACEntry(ni: CHandle, ac_index: u32, match_id: PtlProcessId, uid: u32, jid: u32, pt_index: u32) {
        Ok(state::ni(ni)?.interface.ac_entry(ac_index, match_id, uid, jid, pt_index)?)
    }
}

/// Closes the interface, if one is open; the library is no longer initialised.
///
/// # Safety
/// That of the [crate](crate#safety).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn PtlFini() {
    state::finalise();
}

fn store<T>(ni: CHandle, to: *mut T, what: fn(&NetworkInterface) -> T) -> Result<(), Code> {
    let ni = state::ni(ni)?;
    let to = out(to)?;
    // SAFETY: not null, so writable, as the crate's safety section demands.
    unsafe { to.write(what(&ni.interface)) };
    Ok(())
}
