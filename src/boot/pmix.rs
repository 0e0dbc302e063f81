//! PMIx, through the launcher's own libpmix: Open MPI's mpirun, and Slurm's `srun --mpi=pmix`.
//!
//! Called by `boot::foreign`. The library is loaded only under such a launcher, so ours does not
//! depend on it. Types and constants are those of the PMIx standard's binary interface, versions 3
//! to 5. Invariant: PMIx counts how often a process initialised it and cannot be initialised again
//! after the last PMIx_Finalize. So where MPI may still be initialised later, PMIx_Finalize is
//! called at the exit of the process; mpirun requires the call.
//!
//! Calls that need other processes use the non-blocking form, which calls back on a thread of
//! PMIx. So the wait can end when one of the processes has exited.

use super::error::BootError;
use super::host_share::HostShare;
use super::key_value::{KeyValueSpace, LauncherRelease};
use super::options::BootOptions;
use super::siblings::Siblings;
use super::{launcher_variables, mpi_state};
use crate::rank::JobRank;
use core::ffi::{CStr, c_char, c_int, c_void};
use core::time::Duration;
use std::ffi::CString;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use sys::library::Library;

const SUCCESS: c_int = 0;
/// It completed at once, without a call back.
const DONE: c_int = -157;
/// Code of a client that cannot connect to its server, or that the server rejects.
const UNREACHABLE: c_int = -25;
const STRING: u16 = 3;
const UINT32: u16 = 14;
const BOOL: u16 = 1;
const GLOBAL: u8 = 3;
const WILDCARD: u32 = u32::MAX - 1;
const NAME: usize = 256;
const JOB_SIZE: &CStr = c"pmix.job.size";
/// A fence that passes on the texts of all ranks. Without it, Slurm's does not wait for the ranks
/// of other hosts.
const COLLECT: &CStr = c"pmix.collect";
/// The ranks of this host, separated by commas; and how many hosts the job has.
const LOCAL_PEERS: &CStr = c"pmix.lpeers";
const HOSTS: &CStr = c"pmix.num.nodes";

/// `pmix_proc_t`
#[repr(C)]
#[derive(Clone)]
struct Process {
    job: [c_char; NAME],
    rank: u32,
}

/// `pmix_info_t`
#[repr(C)]
struct Info {
    key: [c_char; 512],
    flags: u32,
    value: Value,
}

/// `pmix_value_t` with its union as words; larger than that of any version.
#[repr(C)]
struct Value {
    kind: u16,
    data: [u64; 15],
}

type Init = unsafe extern "C" fn(*mut Process, *mut c_void, usize) -> c_int;
type Finalize = unsafe extern "C" fn(*const c_void, usize) -> c_int;
type Put = unsafe extern "C" fn(u8, *const c_char, *mut Value) -> c_int;
type Commit = unsafe extern "C" fn() -> c_int;
type OnEnd = extern "C" fn(c_int, *mut c_void);
type Fence =
    unsafe extern "C" fn(*const Process, usize, *const c_void, usize, OnEnd, *mut c_void) -> c_int;
type OnValue = extern "C" fn(c_int, *const Value, *mut c_void);
type Abort = unsafe extern "C" fn(c_int, *const c_char, *const Process, usize) -> c_int;
type Get = unsafe extern "C" fn(
    *const Process,
    *const c_char,
    *const c_void,
    usize,
    OnValue,
    *mut c_void,
) -> c_int;

/// The functions of libpmix that are used.
struct Functions {
    init: Init,
    finalize: Finalize,
    put: Put,
    commit: Commit,
    fence: Fence,
    get: Get,
    abort: Abort,
}

/// The conversation with the launcher.
pub(super) struct Pmix {
    f: Functions,
    me: Process,
    size: u32,
    /// The other processes.
    siblings: Siblings,
}

/// A value of a type that is used here.
#[derive(Debug)]
enum Content {
    Number(u32),
    Text(String),
}

/// What a call back delivers: a code, and a value if one was requested.
type Brought = (c_int, Option<Content>);

/// Where a call back stores what it delivers.
#[derive(Debug, Default)]
struct Answer {
    brought: Mutex<Option<Brought>>,
    bell: Condvar,
}

impl Answer {
    /// Stores what a call back delivered, and drops its reference.
    fn bring(of: *mut c_void, brought: Brought) {
        // SAFETY: PMIx passes the pointer of `Pmix::answer` to one call back.
        let answer = unsafe { Arc::from_raw(of.cast::<Answer>().cast_const()) };
        *answer.brought.lock().unwrap_or_else(PoisonError::into_inner) = Some(brought);
        answer.bell.notify_one();
    }
}

extern "C" fn on_end(code: c_int, of: *mut c_void) {
    Answer::bring(of, (code, None));
}

extern "C" fn on_value(code: c_int, value: *const Value, of: *mut c_void) {
    let mut content = None;
    if code == SUCCESS && !value.is_null() {
        // SAFETY: a pmix_value_t that lives until this returns; it can be shorter than `Value`,
        // but has these two fields.
        let (kind, word) = unsafe { ((*value).kind, (*value).data[0]) };
        content = match kind {
            UINT32 => Some(Content::Number(word as u32)),
            // SAFETY: a value of this kind holds the address of a NUL-terminated text.
            STRING if word != 0 => Some(Content::Text(unsafe {
                CStr::from_ptr(word as usize as *const c_char).to_string_lossy().into_owned()
            })),
            _ => None,
        };
    }
    Answer::bring(of, (code, content));
}

/// Identifies the PMIx service of this process among all services; `None` without one.
pub(super) fn service() -> Option<String> {
    let (job, rank) = (
        launcher_variables::variable("PMIX_NAMESPACE")?,
        launcher_variables::variable("PMIX_RANK")?,
    );
    Some(format!("pmix:{job}.{rank}"))
}

fn failure(what: &str) -> BootError {
    BootError::new(
        format!("the launcher's PMIx cannot be used: {what}"),
        "Install the launcher's libpmix.so.2 (Debian: libpmix2) where the system finds it, or start \
         the job with gasnetrun -n N.",
    )
}

/// The launcher's server refuses this process, or there is none.
fn unreachable() -> BootError {
    BootError::new(
        "the launcher's PMIx server does not accept this process",
        "Run the ranks as the user of the launcher and in its user namespace, or start the job with \
         gasnetrun -n N.",
    )
}

impl Functions {
    fn load() -> Result<Functions, BootError> {
        let library = Library::load(c"libpmix.so.2").map_err(|e| failure(&e))?;
        let find = |name: &CStr| {
            library
                .function(name)
                .ok_or_else(|| failure(&format!("it has no {}", name.to_string_lossy())))
        };
        let [init, finalize, put, commit, fence, get, abort] = [
            find(c"PMIx_Init")?,
            find(c"PMIx_Finalize")?,
            find(c"PMIx_Put")?,
            find(c"PMIx_Commit")?,
            find(c"PMIx_Fence_nb")?,
            find(c"PMIx_Get_nb")?,
            find(c"PMIx_Abort")?,
        ]
        .map(core::ptr::NonNull::as_ptr);
        // SAFETY: the standard gives these functions these types.
        unsafe {
            Ok(Functions {
                init: core::mem::transmute::<*mut c_void, Init>(init),
                finalize: core::mem::transmute::<*mut c_void, Finalize>(finalize),
                put: core::mem::transmute::<*mut c_void, Put>(put),
                commit: core::mem::transmute::<*mut c_void, Commit>(commit),
                fence: core::mem::transmute::<*mut c_void, Fence>(fence),
                get: core::mem::transmute::<*mut c_void, Get>(get),
                abort: core::mem::transmute::<*mut c_void, Abort>(abort),
            })
        }
    }
}

impl Pmix {
    pub(super) fn open(options: &BootOptions) -> Result<Pmix, BootError> {
        let f = Functions::load()?;
        let mut me = Process { job: [0; NAME], rank: 0 };
        // SAFETY: a live structure to fill; no further information.
        match unsafe { (f.init)(&mut me, core::ptr::null_mut(), 0) } {
            UNREACHABLE => return Err(unreachable()),
            code => good("PMIx_Init", code)?,
        }
        let mut p = Pmix { f, me, size: 0, siblings: Siblings::find(options.spawn_timeout) };
        match p.value(WILDCARD, JOB_SIZE)? {
            Content::Number(size) => p.size = size,
            Content::Text(_) => return Err(unexpected()),
        }
        Ok(p)
    }

    /// Starts a call of PMIx, and waits until it calls back or another process is missing.
    fn answer(
        &mut self,
        what: &str,
        ask: impl FnOnce(&Functions, *mut c_void) -> c_int,
    ) -> Result<Option<Content>, BootError> {
        let answer = Arc::new(Answer::default());
        let theirs = Arc::into_raw(answer.clone()).cast_mut().cast::<c_void>();
        match ask(&self.f, theirs) {
            SUCCESS => {}
            code => {
                // SAFETY: made above; PMIx does not call back after an error.
                drop(unsafe { Arc::from_raw(theirs.cast::<Answer>().cast_const()) });
                return good(what, if code == DONE { SUCCESS } else { code }).map(|()| None);
            }
        }
        let mut brought = answer.brought.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if let Some((code, content)) = brought.take() {
                return good(what, code).map(|()| content);
            }
            let pause = Duration::from_millis(self.siblings.pause().into());
            let (again, timed_out) =
                answer.bell.wait_timeout(brought, pause).unwrap_or_else(PoisonError::into_inner);
            brought = again;
            if timed_out.timed_out() && brought.is_none() {
                self.siblings.check(self.me.rank)?;
            }
        }
    }

    /// The value of a rank under this key.
    fn value(&mut self, rank: u32, key: &CStr) -> Result<Content, BootError> {
        let process = Process { rank, ..self.me.clone() };
        let value = self.answer("PMIx_Get_nb", |f, answer| {
            // SAFETY: a live structure and a NUL-terminated key, both of which PMIx copies; the
            // call back gets what it expects.
            unsafe { (f.get)(&process, key.as_ptr(), core::ptr::null(), 0, on_value, answer) }
        })?;
        value.ok_or_else(unexpected)
    }
}

fn unexpected() -> BootError {
    failure("a value has an unexpected type")
}

fn good(what: &str, code: c_int) -> Result<(), BootError> {
    if code == SUCCESS { Ok(()) } else { Err(failure(&format!("{what} returns {code}"))) }
}

fn text(s: &str) -> Result<CString, BootError> {
    CString::new(s).map_err(|_| failure("a text contains a zero byte"))
}

impl KeyValueSpace for Pmix {
    fn rank(&self) -> u32 {
        self.me.rank
    }

    fn size(&self) -> u32 {
        self.size
    }

    fn host_share(&mut self) -> Result<Option<HostShare>, BootError> {
        // A server may lack one.
        let both = (self.value(WILDCARD, LOCAL_PEERS), self.value(WILDCARD, HOSTS));
        let (Ok(Content::Text(ranks)), Ok(Content::Number(hosts))) = both else { return Ok(None) };
        let ranks = launcher_variables::numbers(&ranks);
        let share = ranks.and_then(|ranks| HostShare::of_ranks(self.size, hosts, ranks));
        Ok(share.filter(|share| share.local_rank_of(JobRank(self.me.rank)).is_some()))
    }

    fn put(&mut self, key: &str, value: &str) -> Result<(), BootError> {
        let (key, value) = (text(key)?, text(value)?);
        let mut v = Value { kind: STRING, data: [0; 15] };
        v.data[0] = value.as_ptr() as u64;
        // SAFETY: NUL-terminated texts and a live value, all of which PMIx copies.
        good("PMIx_Put", unsafe { (self.f.put)(GLOBAL, key.as_ptr(), &mut v) })
    }

    fn fence(&mut self) -> Result<(), BootError> {
        // SAFETY: no arguments.
        good("PMIx_Commit", unsafe { (self.f.commit)() })?;
        // Lives on, since a wait that is given up leaves the call to PMIx.
        let collect = Box::leak(Box::new(Info {
            key: [0; 512],
            flags: 0,
            value: Value { kind: BOOL, data: [1; 15] },
        }));
        for (to, from) in collect.key.iter_mut().zip(COLLECT.to_bytes()) {
            *to = *from as c_char;
        }
        self.answer("PMIx_Fence_nb", |f, answer| {
            let info = (&raw const *collect).cast();
            // SAFETY: null means all processes of the job; one structure that lives forever; the
            // call back gets what it expects.
            unsafe { (f.fence)(core::ptr::null(), 0, info, 1, on_end, answer) }
        })
        .map(drop)
    }

    fn get(&mut self, rank: u32, key: &str) -> Result<String, BootError> {
        match self.value(rank, &text(key)?)? {
            Content::Text(text) => Ok(text),
            Content::Number(_) => Err(unexpected()),
        }
    }

    fn abort(&self) {
        // SAFETY: a NUL-terminated text; null means all processes of the job. If the launcher has
        // ended, nothing is left to end.
        let _ = unsafe { (self.f.abort)(1, c"gasnet_init".as_ptr(), core::ptr::null(), 0) };
    }

    fn finish(self: Box<Self>) -> Option<LauncherRelease> {
        let finalize = self.f.finalize;
        let release = move |_: i32| {
            // The code of the call has no consequence.
            // SAFETY: no further information; balances PMIx_Init.
            let _ = unsafe { finalize(core::ptr::null(), 0) };
        };
        if mpi_state::is_initialised() == Some(false) {
            return Some(Box::new(release));
        }
        release(0);
        None
    }
}
