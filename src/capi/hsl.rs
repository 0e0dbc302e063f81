//! Handler-safe locks and no-interrupt sections: the C functions over [`crate::runtime::hsl`].
//!
//! Called by clients, from handlers too, and before `gasnet_init`.

use super::{code, initialized};
use crate::runtime::hsl::{self, GASNET_1, Hsl};
use crate::runtime::{Ctx, GasnetJob, checks};
use core::ffi::c_int;

/// The calling thread, where the use of locks is checked. What it is passed to, or the caller,
/// ends the call by [`Ctx::end_lock_call`].
pub(super) fn caller() -> Option<Ctx> {
    if hsl::checked() { initialized().and_then(GasnetJob::ctx_for_locks) } else { None }
}

/// Initialises a handler-safe lock; it is unlocked afterwards.
///
/// A lock has to be initialised exactly once before it is used, by this function or statically
/// by `GASNET_HSL_INITIALIZER`.
///
/// - `hsl`: the memory of the lock, which stays the client's.
/// - Context: anywhere, before `gasnet_init` too.
///
/// # Safety
/// `hsl` must point to a `gasnet_hsl_t` that is not in use.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnet_hsl_init(hsl: *mut Hsl) {
    // SAFETY: the specification demands memory of a lock of its caller.
    unsafe { &*hsl }.init(GASNET_1, caller());
}

/// Ends the use of a handler-safe lock, which no thread may hold. Its memory may then be freed,
/// or initialised again.
///
/// - `hsl`: an initialised lock.
/// - Context: anywhere.
///
/// # Safety
/// `hsl` must point to an initialised `gasnet_hsl_t` that no thread holds.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnet_hsl_destroy(hsl: *mut Hsl) {
    // SAFETY: the specification demands an initialised lock of its caller.
    unsafe { &*hsl }.destroy(GASNET_1, caller());
}

/// Locks a handler-safe lock; waits while another thread holds it.
///
/// The lock is not recursive. While a thread holds it, it may not send messages, poll or wait
/// except for further locks. Locks are unlocked in the reverse order of locking. A handler
/// unlocks what it locked before it returns. In `GASNET_SEQ` the function does nothing.
///
/// - `hsl`: an initialised lock.
/// - Context: anywhere, in handlers too.
///
/// # Safety
/// `hsl` must point to an initialised `gasnet_hsl_t`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnet_hsl_lock(hsl: *mut Hsl) {
    // SAFETY: the specification demands an initialised lock of its caller.
    unsafe { &*hsl }.lock(GASNET_1, caller);
}

/// Locks a handler-safe lock if no thread holds it, and returns at once in any case.
///
/// - `hsl`: an initialised lock.
/// - Returns `GASNET_OK` if the calling thread holds the lock now, `GASNET_ERR_NOT_READY` if
///   another thread does.
/// - Context: anywhere, in handlers too.
///
/// # Safety
/// `hsl` must point to an initialised `gasnet_hsl_t`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnet_hsl_trylock(hsl: *mut Hsl) -> c_int {
    // SAFETY: the specification demands an initialised lock of its caller.
    code(unsafe { &*hsl }.try_lock(GASNET_1, caller))
}

/// Unlocks a handler-safe lock that the calling thread holds.
///
/// - `hsl`: the lock that this thread locked last and has not unlocked.
/// - Context: anywhere, in handlers too.
///
/// # Safety
/// `hsl` must point to a `gasnet_hsl_t` that the calling thread holds.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnet_hsl_unlock(hsl: *mut Hsl) {
    // SAFETY: the specification demands an initialised lock of its caller.
    unsafe { &*hsl }.unlock(GASNET_1, caller);
}

/// Begins a no-interrupt section of the calling thread, in which no handler runs on it.
///
/// Handlers run inside calls of the library only, so the function does nothing unless debug
/// checks are on. The sections cannot be nested, and in one a thread may not call functions
/// that send or poll. In handlers and while a lock is held the function has no effect.
///
/// - Context: after `gasnet_init`.
#[unsafe(no_mangle)]
pub extern "C" fn gasnet_hold_interrupts() {
    match caller() {
        Some(c) => {
            c.hold_interrupts();
            c.end_lock_call();
        }
        None if hsl::checked() => checks::note_unrecorded_section(),
        None => {}
    }
}

/// Ends the no-interrupt section that [`gasnet_hold_interrupts`] began.
///
/// - Context: after `gasnet_init`.
#[unsafe(no_mangle)]
pub extern "C" fn gasnet_resume_interrupts() {
    if let Some(c) = caller() {
        c.resume_interrupts();
        c.end_lock_call();
    }
}
