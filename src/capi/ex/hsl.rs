//! Handler-safe locks under their names of GASNet-EX; the same locks as in [`crate::capi::hsl`].
//!
//! Called by clients, from handlers too.

use crate::capi::code;
use crate::capi::hsl::caller;
use crate::runtime::hsl::{GASNET_EX, Hsl};
use core::ffi::c_int;

/// As `gasnet_hsl_init`.
///
/// - `hsl`: the memory of the lock, which stays the client's.
/// - Context: anywhere.
///
/// # Safety
/// As of `gasnet_hsl_init`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gex_HSL_Init(hsl: *mut Hsl) {
    // SAFETY: as this function requires.
    unsafe { &*hsl }.init(GASNET_EX, caller());
}

/// As `gasnet_hsl_destroy`.
///
/// - `hsl`: an initialised lock.
/// - Context: anywhere.
///
/// # Safety
/// As of `gasnet_hsl_destroy`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gex_HSL_Destroy(hsl: *mut Hsl) {
    // SAFETY: as this function requires.
    unsafe { &*hsl }.destroy(GASNET_EX, caller());
}

/// As `gasnet_hsl_lock`.
///
/// - `hsl`: an initialised lock.
/// - Context: anywhere, in handlers too.
///
/// # Safety
/// As of `gasnet_hsl_lock`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gex_HSL_Lock(hsl: *mut Hsl) {
    // SAFETY: as this function requires.
    unsafe { &*hsl }.lock(GASNET_EX, caller);
}

/// As `gasnet_hsl_unlock`.
///
/// - `hsl`: a lock that the calling thread holds.
/// - Context: anywhere, in handlers too.
///
/// # Safety
/// As of `gasnet_hsl_unlock`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gex_HSL_Unlock(hsl: *mut Hsl) {
    // SAFETY: as this function requires.
    unsafe { &*hsl }.unlock(GASNET_EX, caller);
}

/// As `gasnet_hsl_trylock`.
///
/// - `hsl`: an initialised lock.
/// - Returns `GASNET_OK` if the calling thread holds the lock now, `GASNET_ERR_NOT_READY` if
///   another thread does.
/// - Context: anywhere, in handlers too.
///
/// # Safety
/// As of `gasnet_hsl_trylock`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gex_HSL_Trylock(hsl: *mut Hsl) -> c_int {
    // SAFETY: as this function requires.
    code(unsafe { &*hsl }.try_lock(GASNET_EX, caller))
}
