//! Handler-safe locks and no-interrupt sections.
//!
//! `gasnet_hsl_t.lock` is a POSIX mutex, so that clients may wait for a `gasnett_cond_t` with it. In `GASNET_SEQ` there
//! is one thread and a lock is nothing. Handlers run inside calls of the library only, never as interrupts, so that a
//! no-interrupt section needs no doing. Locks may be used before `gasnet_init`: they are real then.

use super::{OK, THREAD_MODE};
use crate::core::{Error, ThreadMode};
use crate::os::locks;
use crate::{fault, report};
use core::ffi::c_int;
use core::mem::{offset_of, size_of};
use core::sync::atomic::Ordering;

/// `gasnet_hsl_t`
#[repr(C)]
#[derive(Debug)]
pub struct Hsl {
    /// The lock itself; clients name it.
    lock: locks::Mutex,
    reserved: [usize; 2],
}

const _: () = {
    assert!(offset_of!(Hsl, lock) == 0);
    assert!(size_of::<Hsl>() == size_of::<locks::Mutex>() + 2 * size_of::<usize>());
};

/// Whether a lock is nothing.
#[inline]
fn idle() -> bool {
    THREAD_MODE.load(Ordering::Relaxed) == ThreadMode::Seq as u8 || fault::on("skip_lock")
}

#[cold]
fn failed(function: &str, error: c_int) -> ! {
    let e = std::io::Error::from_raw_os_error(error);
    report::fatal(
        format_args!("{function}(): {e}"),
        format_args!("Initialise the lock, and let the thread that holds it, and nobody else, unlock it."),
    )
}

#[inline]
fn must(function: &str, error: c_int) {
    if error != 0 {
        failed(function, error);
    }
}

/// `gasnet_hsl_init`.
///
/// # Safety
/// `hsl` must point to a `gasnet_hsl_t` that is not in use.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnet_hsl_init(hsl: *mut Hsl) {
    // SAFETY: the caller's promise.
    must("gasnet_hsl_init", unsafe { locks::mutex_init(&raw mut (*hsl).lock) });
}

/// `gasnet_hsl_destroy`.
///
/// # Safety
/// `hsl` must point to an initialised `gasnet_hsl_t` that nobody holds.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnet_hsl_destroy(hsl: *mut Hsl) {
    // SAFETY: the caller's promise.
    must("gasnet_hsl_destroy", unsafe { locks::mutex_destroy(&raw mut (*hsl).lock) });
}

/// `gasnet_hsl_lock`.
///
/// # Safety
/// `hsl` must point to an initialised `gasnet_hsl_t`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnet_hsl_lock(hsl: *mut Hsl) {
    if !idle() {
        // SAFETY: the caller's promise.
        must("gasnet_hsl_lock", unsafe { locks::mutex_lock(&raw mut (*hsl).lock) });
    }
}

/// `gasnet_hsl_trylock`: `GASNET_OK`, or `GASNET_ERR_NOT_READY` if somebody holds the lock.
///
/// # Safety
/// `hsl` must point to an initialised `gasnet_hsl_t`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnet_hsl_trylock(hsl: *mut Hsl) -> c_int {
    if idle() {
        return OK;
    }
    // SAFETY: the caller's promise.
    match unsafe { locks::mutex_trylock(&raw mut (*hsl).lock) } {
        0 => OK,
        libc::EBUSY => Error::NotReady as c_int,
        error => failed("gasnet_hsl_trylock", error),
    }
}

/// `gasnet_hsl_unlock`.
///
/// # Safety
/// `hsl` must point to a `gasnet_hsl_t` that the calling thread holds.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnet_hsl_unlock(hsl: *mut Hsl) {
    if !idle() {
        // SAFETY: the caller's promise.
        must("gasnet_hsl_unlock", unsafe { locks::mutex_unlock(&raw mut (*hsl).lock) });
    }
}

/// `gasnet_hold_interrupts`: nothing interrupts a thread here.
#[unsafe(no_mangle)]
pub extern "C" fn gasnet_hold_interrupts() {}

/// `gasnet_resume_interrupts`.
#[unsafe(no_mangle)]
pub extern "C" fn gasnet_resume_interrupts() {}
