//! PMIx, through the launcher's own libpmix: Open MPI's mpirun, and Slurm's `srun --mpi=pmix`. The library is loaded
//! when such a launcher is there, so ours depends on none. Called by `boot::foreign`.
//!
//! The shapes are those of the PMIx standard's binary interface, versions 3 to 5. PMIx counts how often a process has
//! initialised it, so MPI that is initialised in the same process is not disturbed. But nobody can initialise it after the
//! last has finalised it, so where MPI is still to come we do so at the very end: mpirun wants it from who has begun.
//!
//! What needs the other processes is asked for in the form that answers by a call back, on a thread of PMIx's own, so that the
//! wait for it can end when one of them has.

use super::foreign::KeyValueSpace;
use super::siblings::Siblings;
use super::{BootError, pmi};
use crate::env;
use core::ffi::{CStr, c_char, c_int, c_void};
use core::sync::atomic::{AtomicPtr, Ordering};
use core::time::Duration;
use std::ffi::CString;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use sys::library::Library;

/// PMIx_Finalize, if that is still to be called; else null.
static HELD: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());

/// Gives back the offer that [`KeyValueSpace::finish`] has held for MPI, if it has.
pub(super) fn finish_held() {
    let held = HELD.swap(core::ptr::null_mut(), Ordering::AcqRel);
    if !held.is_null() {
        // SAFETY: HELD only ever holds null or a function of this type.
        let finalize = unsafe { core::mem::transmute::<*mut c_void, Finalize>(held) };
        // SAFETY: no further information; balances PMIx_Init.
        let _ = unsafe { finalize(core::ptr::null(), 0) };
    }
}

const SUCCESS: c_int = 0;
/// It was done at once, and nothing is called back.
const DONE: c_int = -157;
const STRING: u16 = 3;
const UINT32: u16 = 14;
const GLOBAL: u8 = 3;
const WILDCARD: u32 = u32::MAX - 1;
const NAME: usize = 256;
const JOB_SIZE: &CStr = c"pmix.job.size";

/// `pmix_proc_t`
#[repr(C)]
#[derive(Clone)]
struct Process {
    job: [c_char; NAME],
    rank: u32,
}

/// `pmix_value_t`, whose union is given as words; larger than any version's.
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
type Get = unsafe extern "C" fn(
    *const Process,
    *const c_char,
    *const c_void,
    usize,
    OnValue,
    *mut c_void,
) -> c_int;

/// The functions of libpmix that we need.
struct Functions {
    init: Init,
    finalize: Finalize,
    put: Put,
    commit: Commit,
    fence: Fence,
    get: Get,
}

/// The conversation with the launcher.
pub(super) struct Pmix {
    f: Functions,
    me: Process,
    size: u32,
    /// Who else is to take part.
    siblings: Siblings,
}

/// What a value holds of which we know what to do with it.
#[derive(Debug)]
enum Content {
    Number(u32),
    Text(String),
}

/// What a call back brings: a code, and a value if one was asked for.
type Brought = (c_int, Option<Content>);

/// Where a call back puts what it brings.
#[derive(Debug, Default)]
struct Answer {
    brought: Mutex<Option<Brought>>,
    bell: Condvar,
}

impl Answer {
    /// Takes over one of the two that own the answer.
    fn bring(of: *mut c_void, brought: Brought) {
        // SAFETY: PMIx hands back what `Pmix::answer` gave it, once.
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
        // SAFETY: not null, so a pmix_value_t, which lives until we return; it may be shorter than ours, but has these two.
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

/// Tells what a launcher offers to this process from all other offers; `None` if no launcher offers PMIx.
pub(super) fn offer() -> Option<String> {
    let (job, rank) = (env::lookup("PMIX_NAMESPACE")?, env::lookup("PMIX_RANK")?);
    Some(format!("pmix:{job}.{rank}"))
}

fn trouble(what: &str) -> BootError {
    BootError::new(
        format!("the launcher's PMIx cannot be used: {what}"),
        "Install the launcher's libpmix.so.2 (Debian: libpmix2) where the system finds it, or start the job with gasnetrun -n N.",
    )
}

impl Functions {
    fn load() -> Result<Functions, BootError> {
        let library = Library::load(c"libpmix.so.2").map_err(|e| trouble(&e))?;
        let find = |name: &CStr| {
            library
                .function(name)
                .ok_or_else(|| trouble(&format!("it has no {}", name.to_string_lossy())))
        };
        let [init, finalize, put, commit, fence, get] = [
            find(c"PMIx_Init")?,
            find(c"PMIx_Finalize")?,
            find(c"PMIx_Put")?,
            find(c"PMIx_Commit")?,
            find(c"PMIx_Fence_nb")?,
            find(c"PMIx_Get_nb")?,
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
            })
        }
    }
}

impl Pmix {
    pub(super) fn open() -> Result<Pmix, BootError> {
        let f = Functions::load()?;
        let mut me = Process { job: [0; NAME], rank: 0 };
        // SAFETY: a live structure to fill; no further information.
        good("PMIx_Init", unsafe { (f.init)(&mut me, core::ptr::null_mut(), 0) })?;
        let mut p = Pmix { f, me, size: 0, siblings: Siblings::here() };
        match p.value(WILDCARD, JOB_SIZE)? {
            Content::Number(size) => p.size = size,
            Content::Text(_) => return Err(unexpected()),
        }
        Ok(p)
    }

    /// Asks PMIx for something, and waits until it calls back, or until the watch over the other processes says that it will not.
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
                // SAFETY: made above; PMIx does not call back when it returns something else.
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
                self.siblings.look(self.me.rank)?;
            }
        }
    }

    /// The value that this rank has under this key.
    fn value(&mut self, rank: u32, key: &CStr) -> Result<Content, BootError> {
        let who = Process { rank, ..self.me.clone() };
        let value = self.answer("PMIx_Get_nb", |f, answer| {
            // SAFETY: a live structure and a NUL-terminated key, both of which PMIx copies; the call back gets what it expects.
            unsafe { (f.get)(&who, key.as_ptr(), core::ptr::null(), 0, on_value, answer) }
        })?;
        value.ok_or_else(unexpected)
    }
}

fn unexpected() -> BootError {
    trouble("a value has an unexpected type")
}

fn good(what: &str, code: c_int) -> Result<(), BootError> {
    if code == SUCCESS { Ok(()) } else { Err(trouble(&format!("{what} returns {code}"))) }
}

fn text(s: &str) -> Result<CString, BootError> {
    CString::new(s).map_err(|_| trouble("a word contains a zero byte"))
}

impl KeyValueSpace for Pmix {
    fn rank(&self) -> u32 {
        self.me.rank
    }

    fn size(&self) -> u32 {
        self.size
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
        self.answer("PMIx_Fence_nb", |f, answer| {
            // SAFETY: null means all processes of the job; the call back gets what it expects.
            unsafe { (f.fence)(core::ptr::null(), 0, core::ptr::null(), 0, on_end, answer) }
        })
        .map(drop)
    }

    fn get(&mut self, rank: u32, key: &str) -> Result<String, BootError> {
        match self.value(rank, &text(key)?)? {
            Content::Text(word) => Ok(word),
            Content::Number(_) => Err(unexpected()),
        }
    }

    fn finish(self: Box<Self>) {
        if pmi::mpi() == Some(false) {
            return HELD.store(self.f.finalize as *mut c_void, Ordering::Release);
        }
        // What it says no longer matters.
        // SAFETY: no further information; balances PMIx_Init.
        let _ = unsafe { (self.f.finalize)(core::ptr::null(), 0) };
    }
}
