//! Handler-safe locks: what a lock is in this program, and what the debug checks know of it.
//!
//! Called by `capi`, which turns a client's pointer into a [`Hsl`] once. Invariant: the mutex of
//! a lock is only touched through the functions here and through the client's own
//! `gasnett_cond_t`.
//!
//! `gasnet_hsl_t.lock` is a POSIX mutex, so that clients may wait for a `gasnett_cond_t` with
//! it. In `GASNET_SEQ` there is one thread and a lock does nothing. Before `gasnet_init` locks
//! are mutexes, and they remain so in `GASNET_SEQ` if one is held there. Handlers run inside
//! calls of the library only, never as interrupts. Debug checks keep what a thread holds in
//! [`super::checks`]; the lock says whether it is initialised, and names its holder for messages.

use super::client::ThreadMode;
use super::job::Ctx;
use super::{GasnetError, checks, lock_waits};
use crate::trace::{EventDetail, span};
use crate::{fault, report, trace};
use alloc::format;
use alloc::string::String;
use core::ffi::c_int;
use core::mem::{offset_of, size_of};
use core::sync::atomic::{AtomicIsize, AtomicU8, AtomicUsize, Ordering};
use sys::locks::{self, ClientMutex};

/// `gasnet_hsl_t`; any bytes make one, if not an initialised one.
#[repr(C)]
#[derive(Debug)]
pub struct Hsl {
    /// The mutex; clients name it.
    lock: ClientMutex,
    /// [`STATIC`], or [`DYNAMIC`] or [`DESTROYED`] mixed with the address of the lock, so that
    /// a copy is no lock.
    state: AtomicUsize,
    /// Kept by debug checks only: index of the thread that locked it, plus 1; 0 if it is open.
    /// It is used in messages, not for decisions: a wait for a condition passes the mutex on
    /// unseen.
    holder: AtomicUsize,
}

const _: () = {
    assert!(offset_of!(Hsl, lock) == 0);
    assert!(size_of::<Hsl>() == size_of::<locks::Mutex>() + 2 * size_of::<usize>());
};

/// State of a lock that `GASNET_HSL_INITIALIZER` has made (`GASNETI_HSL_STATIC`).
const STATIC: usize = 0x4853_4C31;
/// State, mixed with the address, of one that `gasnet_hsl_init` has made.
const DYNAMIC: usize = 0x4853_4C32 << 8;
/// State, mixed with the address, of one that `gasnet_hsl_destroy` has ended.
const DESTROYED: usize = 0x4853_4C33 << 8;

/// The functions of one of the interfaces, as messages name them.
#[derive(Debug)]
pub struct LockFunctions {
    init: &'static str,
    destroy: &'static str,
    lock: &'static str,
    try_lock: &'static str,
    unlock: &'static str,
}

/// Those of GASNet-1.
pub const GASNET_1: &LockFunctions = &LockFunctions {
    init: "gasnet_hsl_init",
    destroy: "gasnet_hsl_destroy",
    lock: "gasnet_hsl_lock",
    try_lock: "gasnet_hsl_trylock",
    unlock: "gasnet_hsl_unlock",
};

/// Those of GASNet-EX.
pub const GASNET_EX: &LockFunctions = &LockFunctions {
    init: "gex_HSL_Init",
    destroy: "gex_HSL_Destroy",
    lock: "gex_HSL_Lock",
    try_lock: "gex_HSL_Trylock",
    unlock: "gex_HSL_Unlock",
};

/// What a lock is in this program.
static BEHAVIOUR: AtomicU8 = AtomicU8::new(EARLY);
/// The same where no use is looked at.
static UNWATCHED: AtomicU8 = AtomicU8::new(MUTEX);
/// How many locks are held that were locked before `gasnet_init`, where locks are mutexes.
static HELD_EARLY: AtomicIsize = AtomicIsize::new(0);
/// A mutex.
const MUTEX: u8 = 0;
/// Nothing.
const NOTHING: u8 = 1;
/// As [`UNWATCHED`] says, and each use is checked, or traced, or both.
const WATCHED: u8 = 2;
/// A mutex, and those that are held are counted: so it is before `gasnet_init`.
const EARLY: u8 = 3;

/// Chooses what a lock is. Called by `gasnet_init`.
pub fn open(threads: ThreadMode) {
    // A lock that is held is unlocked later, and may then be locked again.
    let none_held = HELD_EARLY.load(Ordering::Relaxed) == 0;
    let unwatched = if threads == ThreadMode::Seq && none_held { NOTHING } else { MUTEX };
    UNWATCHED.store(unwatched, Ordering::Relaxed);
    let watched = checks::on() || trace::on();
    BEHAVIOUR.store(if watched { WATCHED } else { unwatched }, Ordering::Relaxed);
}

/// Ends checks and traces of locks in a forked child, which has no job.
pub fn close() {
    BEHAVIOUR.store(UNWATCHED.load(Ordering::Relaxed), Ordering::Relaxed);
}

/// Whether a lock is a mutex where no use is looked at.
fn is_mutex() -> bool {
    UNWATCHED.load(Ordering::Relaxed) == MUTEX
}

#[inline(always)]
fn behaviour() -> u8 {
    if fault::on("skip_lock") { NOTHING } else { BEHAVIOUR.load(Ordering::Relaxed) }
}

/// Whether each use of a lock is checked.
pub fn checked() -> bool {
    behaviour() == WATCHED && checks::on()
}

#[cold]
fn failed(function: &str, error: c_int) -> ! {
    let e = std::io::Error::from_raw_os_error(error);
    report::fatal(
        format_args!("{function}(): {e}"),
        format_args!("Initialise the lock, and let only the thread that holds it unlock it."),
    )
}

/// Counts a lock that was locked (1) or unlocked (-1), before `gasnet_init`.
fn count_early(change: isize) {
    if BEHAVIOUR.load(Ordering::Relaxed) == EARLY {
        HELD_EARLY.fetch_add(change, Ordering::Relaxed);
    }
}

fn must(function: &str, error: c_int) {
    if error != 0 {
        failed(function, error);
    }
}

/// The result of a trylock: [`GasnetError::NotReady`] if another thread holds the lock.
fn tried(function: &str, error: c_int) -> Result<(), GasnetError> {
    match error {
        0 => Ok(()),
        locks::BUSY => Err(GasnetError::NotReady),
        error => failed(function, error),
    }
}

impl Hsl {
    #[inline(always)]
    fn mutex_lock(&self, by: &LockFunctions) {
        match self.lock.try_lock() {
            0 => {}
            locks::BUSY => self.wait_for_mutex(by),
            error => failed(by.lock, error),
        }
    }

    #[cold]
    #[inline(never)]
    fn wait_for_mutex(&self, by: &LockFunctions) {
        let _note = lock_waits::note(self.address());
        must(by.lock, self.lock.lock());
    }

    #[inline(always)]
    fn mutex_unlock(&self, by: &LockFunctions) {
        must(by.unlock, self.lock.unlock());
    }

    /// `gasnet_hsl_init`. `by` has the function that is called; `caller` is the calling thread, if
    /// uses are checked; here and below.
    pub fn init(&self, by: &LockFunctions, caller: Option<Ctx>) {
        if caller.is_some() && self.is_initialised() {
            report::fatal(
                format_args!(
                    "{}(): the handler-safe lock {:#x} is initialised already",
                    by.init,
                    self.address()
                ),
                format_args!(
                    "Initialise a lock once, and destroy it before its memory is used for another one."
                ),
            );
        }
        must(by.init, self.lock.init());
        self.state.store(DYNAMIC ^ self.address(), Ordering::Relaxed);
        self.holder.store(0, Ordering::Relaxed);
        caller.into_iter().for_each(Ctx::end_lock_call);
    }

    /// `gasnet_hsl_destroy`
    pub fn destroy(&self, by: &LockFunctions, caller: Option<Ctx>) {
        if let Some(c) = caller {
            self.check_destroy(by, c);
        }
        match self.lock.destroy() {
            locks::BUSY => self.destroyed_while_held(by, None),
            error => must(by.destroy, error),
        }
        self.state.store(DESTROYED ^ self.address(), Ordering::Relaxed);
        caller.into_iter().for_each(Ctx::end_lock_call);
    }

    /// `gasnet_hsl_lock`. `caller` is evaluated only where uses are checked; here and below.
    #[inline(always)]
    pub fn lock(&self, by: &LockFunctions, caller: fn() -> Option<Ctx>) {
        match behaviour() {
            NOTHING => {}
            MUTEX => self.mutex_lock(by),
            _ => self.lock_watched(by, caller()),
        }
    }

    /// `gasnet_hsl_trylock`
    ///
    /// # Errors
    /// [`GasnetError::NotReady`] if another thread holds the lock.
    #[inline(always)]
    pub fn try_lock(
        &self,
        by: &LockFunctions,
        caller: fn() -> Option<Ctx>,
    ) -> Result<(), GasnetError> {
        match behaviour() {
            NOTHING => Ok(()),
            MUTEX => tried(by.try_lock, self.lock.try_lock()),
            _ => self.try_watched(by, caller()),
        }
    }

    /// `gasnet_hsl_unlock`
    #[inline(always)]
    pub fn unlock(&self, by: &LockFunctions, caller: fn() -> Option<Ctx>) {
        match behaviour() {
            NOTHING => {}
            MUTEX => self.mutex_unlock(by),
            _ => self.unlock_watched(by, caller()),
        }
    }

    #[cold]
    #[inline(never)]
    fn lock_watched(&self, by: &LockFunctions, caller: Option<Ctx>) {
        let _span = span!(L "gasnet_hsl_lock", EventDetail::At(self.address()));
        match caller {
            Some(c) => self.lock_checked(by, c),
            None if is_mutex() => {
                self.mutex_lock(by);
                count_early(1);
            }
            None => {}
        }
    }

    #[cold]
    #[inline(never)]
    fn try_watched(&self, by: &LockFunctions, caller: Option<Ctx>) -> Result<(), GasnetError> {
        let mut span = span!(L "gasnet_hsl_trylock", EventDetail::At(self.address()));
        let result = match caller {
            Some(c) => self.try_checked(by, c),
            None if is_mutex() => {
                tried(by.try_lock, self.lock.try_lock()).inspect(|()| count_early(1))
            }
            None => Ok(()),
        };
        span.result(result.map_or_else(|e| e as c_int, |()| 0));
        caller.into_iter().for_each(Ctx::end_lock_call);
        result
    }

    #[cold]
    #[inline(never)]
    fn unlock_watched(&self, by: &LockFunctions, caller: Option<Ctx>) {
        let _span = span!(L "gasnet_hsl_unlock", EventDetail::At(self.address()));
        match caller {
            Some(c) => self.unlock_checked(by, c),
            None if is_mutex() => {
                self.mutex_unlock(by);
                count_early(-1);
            }
            None => {}
        }
        caller.into_iter().for_each(Ctx::end_lock_call);
    }

    fn address(&self) -> usize {
        core::ptr::from_ref(self) as usize
    }

    fn is_initialised(&self) -> bool {
        let state = self.state.load(Ordering::Relaxed);
        state == STATIC || state == DYNAMIC ^ self.address()
    }

    /// Ends the job unless this is an initialised lock.
    fn check(&self, function: &str) {
        if self.is_initialised() {
            return;
        }
        let destroyed = self.state.load(Ordering::Relaxed) == DESTROYED ^ self.address();
        report::fatal(
            format_args!(
                "{function}(): the handler-safe lock {:#x} {}",
                self.address(),
                if destroyed { "was destroyed" } else { "is not initialised" }
            ),
            format_args!(
                "Initialise it with {}.",
                report::remedy_of(
                    function,
                    "GASNET_HSL_INITIALIZER or gasnet_hsl_init",
                    "GEX_HSL_INITIALIZER or gex_HSL_Init"
                )
            ),
        );
    }

    fn check_destroy(&self, by: &LockFunctions, c: Ctx) {
        self.check(by.destroy);
        c.check_destroy(by.destroy, self.address());
        let holder = self.holder.load(Ordering::Relaxed);
        if holder != 0 {
            self.destroyed_while_held(by, Some(holder - 1));
        }
    }

    /// Ends the job. `holder`: the index of the thread that holds the lock, if it is known.
    #[cold]
    fn destroyed_while_held(&self, by: &LockFunctions, holder: Option<usize>) -> ! {
        let holder =
            holder.map_or_else(|| String::from("a thread"), |holder| format!("thread {holder}"));
        report::fatal(
            format_args!(
                "{}(): {holder} holds the handler-safe lock {:#x}",
                by.destroy,
                self.address()
            ),
            format_args!("Destroy a lock when no thread holds it."),
        )
    }

    fn note(&self, by: &LockFunctions, c: Ctx) {
        c.note_lock(self.address(), by.unlock);
        self.holder.store(usize::from(c.thread_index()) + 1, Ordering::Relaxed);
    }

    fn lock_checked(&self, by: &LockFunctions, c: Ctx) {
        self.check(by.lock);
        c.check_lock(by.lock, self.address());
        if is_mutex() {
            self.mutex_lock(by);
        }
        self.note(by, c);
    }

    fn try_checked(&self, by: &LockFunctions, c: Ctx) -> Result<(), GasnetError> {
        self.check(by.try_lock);
        c.check_lock(by.try_lock, self.address());
        if is_mutex() {
            tried(by.try_lock, self.lock.try_lock())?;
        }
        self.note(by, c);
        Ok(())
    }

    fn unlock_checked(&self, by: &LockFunctions, c: Ctx) {
        let name = by.unlock;
        self.check(name);
        let here = self.address();
        if c.note_unlock(name, here) {
            self.holder.store(0, Ordering::Relaxed);
            if is_mutex() {
                self.mutex_unlock(by);
            }
            return;
        }
        let holder = self.holder.load(Ordering::Relaxed);
        if holder != 0 {
            report::fatal(
                format_args!(
                    "{name}(): thread {} holds the handler-safe lock {here:#x}, not thread {}, which unlocks it",
                    holder - 1,
                    c.thread_index()
                ),
                format_args!("Unlock a lock in the thread that has locked it."),
            );
        }
        // The checks have not seen it locked: it may have been before gasnet_init.
        if self.lock.try_lock() == 0 {
            report::fatal(
                format_args!("{name}(): the handler-safe lock {here:#x} is not locked"),
                format_args!("Unlock a lock once after it was locked."),
            );
        }
        self.mutex_unlock(by);
    }
}
