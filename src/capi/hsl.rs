//! Handler-safe locks and no-interrupt sections.
//!
//! `gasnet_hsl_t.lock` is a POSIX mutex, so that clients may wait for a `gasnett_cond_t` with it. In `GASNET_SEQ` there
//! is one thread and a lock is nothing. Handlers run inside calls of the library only, never as interrupts, so that a
//! no-interrupt section needs no doing. Locks may be used before `gasnet_init`: they are real then. With debug checks on,
//! who holds what is kept by [`crate::runtime::checks`]; the lock itself only says whether it is initialised and names its
//! holder for messages.

use super::{OK, initialized};
use crate::runtime::{Ctx, GasnetError, ThreadMode, checks};
use crate::trace::{EventDetail, span};
use crate::{fault, report, trace};
use core::ffi::c_int;
use core::mem::{offset_of, size_of};
use core::sync::atomic::{AtomicU8, AtomicUsize, Ordering};
use sys::locks;

/// `gasnet_hsl_t`
#[repr(C)]
#[derive(Debug)]
pub struct Hsl {
    /// The lock itself; clients name it.
    lock: locks::Mutex,
    /// [`STATIC`], or [`DYNAMIC`] or [`DESTROYED`] mixed with its own address, so that a copy is not taken for a lock.
    state: AtomicUsize,
    /// Kept by debug checks only: index of the thread that locked it, plus 1; 0 if nobody did. Names, never decides: waiting
    /// for a condition with the lock's mutex hands it over unseen.
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

/// What a lock is in this program.
static WAY: AtomicU8 = AtomicU8::new(REAL);
/// A mutex; so it is before `gasnet_init`.
const REAL: u8 = 0;
/// Nothing.
const NOTHING: u8 = 1;
/// A mutex, or nothing in SEQ, and each use is looked at: checked, or told, or both.
const WATCHED: u8 = 2;

/// Chooses what a lock is. Called by `gasnet_init`.
pub(super) fn open(threads: ThreadMode) {
    let way = if checks::on() || trace::on() {
        WATCHED
    } else if threads == ThreadMode::Seq {
        NOTHING
    } else {
        REAL
    };
    WAY.store(way, Ordering::Relaxed);
}

/// Ends the watch, in a forked child, which has no job to keep it for.
pub(super) fn close() {
    if WAY.load(Ordering::Relaxed) == WATCHED {
        WAY.store(unwatched(), Ordering::Relaxed);
    }
}

/// What a lock is where nobody looks.
fn unwatched() -> u8 {
    if super::thread_mode() == ThreadMode::Seq { NOTHING } else { REAL }
}

#[inline(always)]
fn way() -> u8 {
    if fault::on("skip_lock") { NOTHING } else { WAY.load(Ordering::Relaxed) }
}

#[cold]
fn failed(function: &str, error: c_int) -> ! {
    let e = std::io::Error::from_raw_os_error(error);
    report::fatal(
        format_args!("{function}(): {e}"),
        format_args!(
            "Initialise the lock, and let the thread that holds it, and nobody else, unlock it."
        ),
    )
}

#[inline]
fn must(function: &str, error: c_int) {
    if error != 0 {
        failed(function, error);
    }
}

/// The checked forms of the functions below.
impl Hsl {
    fn address(&self) -> usize {
        core::ptr::from_ref(self) as usize
    }

    fn mutex(&self) -> *mut locks::Mutex {
        (&raw const self.lock).cast_mut()
    }

    fn is_initialised(&self) -> bool {
        let state = self.state.load(Ordering::Relaxed);
        state == STATIC || state == DYNAMIC ^ self.address()
    }

    /// Ends the job unless this is a live lock.
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
            format_args!("Initialise it with GASNET_HSL_INITIALIZER or gasnet_hsl_init."),
        );
    }

    fn check_init(&self) {
        if self.is_initialised() {
            report::fatal(
                format_args!(
                    "gasnet_hsl_init(): the handler-safe lock {:#x} is initialised already",
                    self.address()
                ),
                format_args!(
                    "Initialise a lock once, and destroy it before its memory is used for another one."
                ),
            );
        }
    }

    fn check_destroy(&self, c: Ctx) {
        self.check("gasnet_hsl_destroy");
        c.check_destroy("gasnet_hsl_destroy", self.address());
        let holder = self.holder.load(Ordering::Relaxed);
        if holder != 0 {
            report::fatal(
                format_args!(
                    "gasnet_hsl_destroy(): thread {} holds the handler-safe lock {:#x}",
                    holder - 1,
                    self.address()
                ),
                format_args!("Destroy a lock when nobody holds it."),
            );
        }
    }

    fn note(&self, c: Ctx) {
        c.note_lock(self.address());
        self.holder.store(usize::from(c.thread) + 1, Ordering::Relaxed);
    }

    #[cold]
    fn lock_checked(&self, c: Ctx) {
        self.check("gasnet_hsl_lock");
        c.check_lock("gasnet_hsl_lock", self.address());
        if c.job.threads != ThreadMode::Seq {
            // SAFETY: an initialised lock, checked above.
            must("gasnet_hsl_lock", unsafe { locks::mutex_lock(self.mutex()) });
        }
        self.note(c);
    }

    #[cold]
    fn try_checked(&self, c: Ctx) -> c_int {
        self.check("gasnet_hsl_trylock");
        c.check_lock("gasnet_hsl_trylock", self.address());
        if c.job.threads != ThreadMode::Seq {
            // SAFETY: an initialised lock, checked above.
            let code = tried(unsafe { locks::mutex_trylock(self.mutex()) });
            if code != OK {
                return code;
            }
        }
        self.note(c);
        OK
    }

    #[cold]
    fn unlock_checked(&self, c: Ctx) {
        const NAME: &str = "gasnet_hsl_unlock";
        self.check(NAME);
        let here = self.address();
        if c.note_unlock(NAME, here) {
            self.holder.store(0, Ordering::Relaxed);
            if c.job.threads != ThreadMode::Seq {
                // SAFETY: an initialised lock that this thread holds.
                must(NAME, unsafe { locks::mutex_unlock(self.mutex()) });
            }
            return;
        }
        let holder = self.holder.load(Ordering::Relaxed);
        if holder != 0 {
            report::fatal(
                format_args!(
                    "{NAME}(): thread {} holds the handler-safe lock {here:#x}, not thread {}, which unlocks it",
                    holder - 1,
                    c.thread
                ),
                format_args!("Unlock a lock in the thread that has locked it."),
            );
        }
        // SAFETY: an initialised lock; only to find out whether it was locked before gasnet_init, unseen by the checks.
        if unsafe { locks::mutex_trylock(self.mutex()) } == 0 {
            report::fatal(
                format_args!("{NAME}(): the handler-safe lock {here:#x} is not locked"),
                format_args!("Unlock a lock once after it was locked."),
            );
        }
        // SAFETY: as above; it is locked.
        must(NAME, unsafe { locks::mutex_unlock(self.mutex()) });
    }
}

/// The context of the calling thread, if each use of a lock is checked.
#[inline]
fn checked() -> Option<Ctx> {
    if way() == WATCHED && checks::on() { initialized().map(|job| job.ctx()) } else { None }
}

/// The forms of the functions below where each use of a lock is looked at.
impl Hsl {
    /// # Safety
    /// As [`gasnet_hsl_lock`].
    #[cold]
    #[inline(never)]
    unsafe fn lock_watched(hsl: *mut Hsl) {
        let _span = span!(L "gasnet_hsl_lock", EventDetail::At(hsl as usize));
        match checked() {
            // SAFETY: memory of the size of a lock, as the caller promises; any bytes will do.
            Some(c) => unsafe { (*hsl).lock_checked(c) },
            None if unwatched() == REAL => {
                // SAFETY: the caller's promise.
                must("gasnet_hsl_lock", unsafe { locks::mutex_lock(&raw mut (*hsl).lock) })
            }
            None => {}
        }
    }

    /// # Safety
    /// As [`gasnet_hsl_trylock`].
    #[cold]
    #[inline(never)]
    unsafe fn try_watched(hsl: *mut Hsl) -> c_int {
        let mut span = span!(L "gasnet_hsl_trylock", EventDetail::At(hsl as usize));
        let code = match checked() {
            // SAFETY: memory of the size of a lock, as the caller promises; any bytes will do.
            Some(c) => unsafe { (*hsl).try_checked(c) },
            // SAFETY: the caller's promise.
            None if unwatched() == REAL => {
                tried(unsafe { locks::mutex_trylock(&raw mut (*hsl).lock) })
            }
            None => OK,
        };
        span.result(code)
    }

    /// # Safety
    /// As [`gasnet_hsl_unlock`].
    #[cold]
    #[inline(never)]
    unsafe fn unlock_watched(hsl: *mut Hsl) {
        let _span = span!(L "gasnet_hsl_unlock", EventDetail::At(hsl as usize));
        match checked() {
            // SAFETY: memory of the size of a lock, as the caller promises; any bytes will do.
            Some(c) => unsafe { (*hsl).unlock_checked(c) },
            None if unwatched() == REAL => {
                // SAFETY: the caller's promise.
                must("gasnet_hsl_unlock", unsafe { locks::mutex_unlock(&raw mut (*hsl).lock) })
            }
            None => {}
        }
    }
}

/// `gasnet_hsl_init`.
///
/// # Safety
/// `hsl` must point to a `gasnet_hsl_t` that is not in use.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnet_hsl_init(hsl: *mut Hsl) {
    if checked().is_some() {
        // SAFETY: memory of the size of a lock, as the caller promises; any bytes will do.
        unsafe { (*hsl).check_init() };
    }
    // SAFETY: the caller's promise.
    unsafe {
        must("gasnet_hsl_init", locks::mutex_init(&raw mut (*hsl).lock));
        (*hsl).state.store(DYNAMIC ^ hsl as usize, Ordering::Relaxed);
        (*hsl).holder.store(0, Ordering::Relaxed);
    }
}

/// `gasnet_hsl_destroy`.
///
/// # Safety
/// `hsl` must point to an initialised `gasnet_hsl_t` that nobody holds.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnet_hsl_destroy(hsl: *mut Hsl) {
    if let Some(c) = checked() {
        // SAFETY: memory of the size of a lock, as the caller promises; any bytes will do.
        unsafe { (*hsl).check_destroy(c) };
    }
    // SAFETY: the caller's promise.
    unsafe {
        must("gasnet_hsl_destroy", locks::mutex_destroy(&raw mut (*hsl).lock));
        (*hsl).state.store(DESTROYED ^ hsl as usize, Ordering::Relaxed);
    }
}

/// `gasnet_hsl_lock`.
///
/// # Safety
/// `hsl` must point to an initialised `gasnet_hsl_t`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnet_hsl_lock(hsl: *mut Hsl) {
    match way() {
        NOTHING => {}
        // SAFETY: the caller's promise.
        REAL => must("gasnet_hsl_lock", unsafe { locks::mutex_lock(&raw mut (*hsl).lock) }),
        // SAFETY: the caller's promise.
        _ => unsafe { Hsl::lock_watched(hsl) },
    }
}

/// `GASNET_OK` or `GASNET_ERR_NOT_READY`.
fn tried(error: c_int) -> c_int {
    match error {
        0 => OK,
        libc::EBUSY => GasnetError::NotReady as c_int,
        error => failed("gasnet_hsl_trylock", error),
    }
}

/// `gasnet_hsl_trylock`: `GASNET_OK`, or `GASNET_ERR_NOT_READY` if somebody holds the lock.
///
/// # Safety
/// `hsl` must point to an initialised `gasnet_hsl_t`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnet_hsl_trylock(hsl: *mut Hsl) -> c_int {
    match way() {
        NOTHING => OK,
        // SAFETY: the caller's promise.
        REAL => tried(unsafe { locks::mutex_trylock(&raw mut (*hsl).lock) }),
        // SAFETY: the caller's promise.
        _ => unsafe { Hsl::try_watched(hsl) },
    }
}

/// `gasnet_hsl_unlock`.
///
/// # Safety
/// `hsl` must point to a `gasnet_hsl_t` that the calling thread holds.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnet_hsl_unlock(hsl: *mut Hsl) {
    match way() {
        NOTHING => {}
        // SAFETY: the caller's promise.
        REAL => must("gasnet_hsl_unlock", unsafe { locks::mutex_unlock(&raw mut (*hsl).lock) }),
        // SAFETY: the caller's promise.
        _ => unsafe { Hsl::unlock_watched(hsl) },
    }
}

/// `gasnet_hold_interrupts`: nothing interrupts a thread here; debug checks keep account.
#[unsafe(no_mangle)]
pub extern "C" fn gasnet_hold_interrupts() {
    if let Some(c) = checked() {
        c.hold_interrupts();
    }
}

/// `gasnet_resume_interrupts`.
#[unsafe(no_mangle)]
pub extern "C" fn gasnet_resume_interrupts() {
    if let Some(c) = checked() {
        c.resume_interrupts();
    }
}
