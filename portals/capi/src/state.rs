//! The library's state in this process: initialised or not, and the interface.
//!
//! Used by every exported function. Several parts of a program may call `PtlInit` and
//! `PtlNIInit`. Each `PtlNIInit` needs a `PtlNIFini`, and the last one closes the interface; one
//! `PtlFini` closes everything. Other calls read one pointer. Invariant: the interface behind it
//! lives until the last `PtlNIFini` or `PtlFini`, which no other call may overlap (see the
//! crate's safety section).

use core::ffi::c_int;
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering};
use std::os::fd::AsRawFd;
use std::sync::{Mutex, MutexGuard, PoisonError};

use portals3::nal::shm::{Fabric, FabricSpec};
use portals3::{NetworkInterface, NiLimits, PtlError};

use crate::abi::*;
use crate::convert::{Class, Code};
use crate::job::{self, RankMap};

/// The open interface.
pub(crate) struct Ni {
    pub(crate) interface: NetworkInterface,
    pub(crate) handle: CHandle,
    /// [`CEqHandler`] of each queue, by index; 0: none.
    pub(crate) handlers: Box<[AtomicUsize]>,
    job: RankMap,
    /// The process that has opened it.
    process: u32,
}

impl Ni {
    /// The result of a call. If it is `busy`, frames are sent and received, and the call is made
    /// again: a program may do nothing but repeat it.
    pub(crate) fn unless_busy(
        &self,
        busy: PtlError,
        mut call: impl FnMut() -> Result<(), PtlError>,
    ) -> Result<(), PtlError> {
        match call() {
            Err(error) if error == busy => {
                self.interface.progress();
                call()
            }
            result => result,
        }
    }
}

/// State that only [`open`], [`close`] and the like change.
struct Life {
    /// Calls of `PtlNIInit` without their `PtlNIFini`.
    users: u32,
    /// Interfaces opened so far.
    opened: u32,
    /// An interface that peers know has been closed.
    left: bool,
}

static LIFE: Mutex<Life> = Mutex::new(Life { users: 0, opened: 0, left: false });
static INITIALISED: AtomicBool = AtomicBool::new(false);
static NI: AtomicPtr<Ni> = AtomicPtr::new(ptr::null_mut());

fn life() -> MutexGuard<'static, Life> {
    LIFE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The open interface; `otherwise` if none is open, `PTL_NO_INIT` if the library is not
/// initialised.
#[inline(always)]
pub(crate) fn open_ni(otherwise: c_int) -> Result<&'static Ni, Code> {
    // Acquire pairs with the Release in `open`.
    let ni = NI.load(Ordering::Acquire);
    if ni.is_null() {
        let initialised = INITIALISED.load(Ordering::Acquire);
        return Err(Code(if initialised { otherwise } else { PTL_NO_INIT }));
    }
    // SAFETY: made by `Box::into_raw` in `first_open`; freed only while no other call runs, as
    // the crate's safety section demands.
    Ok(unsafe { &*ni })
}

/// The interface with this handle.
#[inline(always)]
pub(crate) fn ni(handle: CHandle) -> Result<&'static Ni, Code> {
    let ni = open_ni(PTL_NI_INVALID)?;
    if ni.handle == handle { Ok(ni) } else { Err(Code(PTL_NI_INVALID)) }
}

/// The job that the open interface belongs to.
pub(crate) fn job() -> Option<RankMap> {
    open_ni(PTL_FAIL).ok().map(|ni| ni.job.clone())
}

/// `PtlInit`
pub(crate) fn initialise() {
    let _life = life();
    INITIALISED.store(true, Ordering::Release);
}

/// `PtlFini`
pub(crate) fn finalise() {
    let life = &mut *life();
    life.users = 0;
    free(life);
    INITIALISED.store(false, Ordering::Release);
}

/// `PtlNIInit` of the only interface.
pub(crate) fn open(pid: u32, limits: Option<NiLimits>) -> Result<&'static Ni, Code> {
    let life = &mut *life();
    let ni = match open_ni(PTL_FAIL) {
        Ok(ni) if ni.process != sys::process::pid() => {
            return Err(job::complain(
                "the interface is that of the process which has forked this one: call Portals \
                 there, or in a job of one PtlFini first",
            ));
        }
        Ok(ni) => ni,
        Err(Code(PTL_NO_INIT)) => return Err(Code(PTL_NO_INIT)),
        Err(_) => return first_open(life, pid, limits),
    };
    check_pid(&ni.job, pid)?;
    life.users += 1;
    Ok(ni)
}

fn check_pid(job: &RankMap, pid: u32) -> Result<(), Code> {
    if pid == PTL_PID_ANY || pid == job.rank { Ok(()) } else { Err(Code(PTL_PID_INVALID)) }
}

fn first_open(life: &mut Life, pid: u32, limits: Option<NiLimits>) -> Result<&'static Ni, Code> {
    let job = job::job()?;
    check_pid(&job, pid)?;
    let interface = match job::fabric_file()? {
        // Private memory: a process that this one forks, or another program of the same script,
        // may open an interface too.
        _ if job.size() == 1 => NetworkInterface::alone(job.nid(), job::arena_bytes()?, limits)?,
        None => return Err(job::complain("PTL_FABRIC_FD: must be set for more than one process")),
        Some(_) if life.left => {
            return Err(job::complain(
                "an interface that the other processes know cannot be opened again",
            ));
        }
        Some(file) => {
            let inode = sys::descriptor::inode(file.as_raw_fd()).ok_or(Code(PTL_FAIL))?;
            let spec = FabricSpec {
                arena: file,
                index: job.rank,
                size: job.size(),
                bytes: job::arena_bytes()?,
                nid: job.nid(),
                // The memory file identifies the job.
                jid: inode as u32 & (PTL_JID_ANY >> 1),
                attach: job::attach_policy()?,
            };
            let fabric = Fabric::join(spec)
                .map_err(|error| job::complain(&format!("PTL_FABRIC_FD: {error}")))?;
            NetworkInterface::shm(fabric, limits)?
        }
    };
    let queues = interface.limits().max_eqs;
    life.opened = life.opened % 0xfffe + 1; // no handle is 0, or a constant
    let ni = Box::new(Ni {
        interface,
        handle: Class::Ni.mark(life.opened << 16),
        handlers: (0..queues).map(|_| AtomicUsize::new(0)).collect(),
        job,
        process: sys::process::pid(),
    });
    life.users = 1;
    NI.store(Box::into_raw(ni), Ordering::Release);
    open_ni(PTL_FAIL)
}

/// `PtlNIFini`
pub(crate) fn close(handle: CHandle) -> Result<(), Code> {
    let life = &mut *life();
    ni(handle)?;
    life.users -= 1;
    if life.users == 0 {
        free(life);
    }
    Ok(())
}

fn free(life: &mut Life) {
    let ni = NI.swap(ptr::null_mut(), Ordering::AcqRel);
    if !ni.is_null() {
        // SAFETY: made by `Box::into_raw` in `first_open`, taken out just now, and no call uses
        // it, as the crate's safety section demands.
        let ni = unsafe { Box::from_raw(ni) };
        life.left = ni.job.size() > 1;
        if ni.process != sys::process::pid() {
            // The interface is that of the process which has forked this one.
            std::mem::forget(ni);
        }
    }
}
