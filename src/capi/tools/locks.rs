//! The locks of gasnet_locks.h: what its macros call when a lock fails, and the read-write
//! lock.
//!
//! Called by the macros of the headers. The memory of a lock is the client's.

use super::debug::fatal;
use super::text;
use core::ffi::{c_char, c_int};
use sys::locks;

/// Ends the job: a lock function of gasnet_locks.h failed. Does not return.
///
/// - `call`: name of the function, NUL-terminated.
/// - `error`: its error number.
///
/// # Safety
/// `call` must be NUL-terminated.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasneti_lock_failed(call: *const c_char, error: c_int) -> ! {
    // SAFETY: the macros of gasnet_locks.h pass the name of a function as a literal.
    let call = unsafe { text(call) };
    fatal(format_args!("{call}(): {}", std::io::Error::from_raw_os_error(error)))
}

/// Ends the job: a lock is not in the state that a macro of gasnet_locks.h asserts. Does not
/// return.
///
/// - `name`: name of the macro; `place`: where it stands. Both NUL-terminated.
///
/// # Safety
/// Both must be NUL-terminated.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasneti_lock_assertion(name: *const c_char, place: *const c_char) -> ! {
    // SAFETY: the macros of gasnet_locks.h pass string literals.
    let (name, place) = unsafe { (text(name), text(place)) };
    fatal(format_args!("{name}() at {place}: the lock is not in that state"))
}

/// Initialises a mutex that knows its holder: `gasnett_mutex_init` with GASNET_DEBUG.
///
/// - `lock`: the mutex, which is not in use.
/// - Returns 0 or an error number.
///
/// # Safety
/// `lock` must point to memory of a `gasnett_mutex_t`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasneti_mutex_init_debug(lock: *mut locks::Mutex) -> c_int {
    // SAFETY: POSIX demands memory of a mutex, and so does gasnett_mutex_init.
    unsafe { locks::mutex_init_checking(lock) }
}

/// Reports whether a mutex is open (0), held by this thread (1) or by another one (2).
///
/// - `lock`: an initialised mutex.
///
/// # Safety
/// `lock` must point to an initialised `gasnett_mutex_t`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasneti_mutex_state(lock: *mut locks::Mutex) -> c_int {
    // SAFETY: POSIX demands an initialised mutex, and so do the macros that assert its state.
    unsafe { locks::mutex_state(lock) }
}

macro_rules! rwlock {
    ($($name:ident => $call:ident;)*) => {$(
        /// The function of POSIX threads; 0 or an error number, or the state.
        ///
        /// # Safety
        /// `lock` must point to an initialised `gasnett_rwlock_t` (for init: to any).
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(lock: *mut locks::RwLock) -> c_int {
            // SAFETY: POSIX demands a lock in the state that the call needs, and so does
            // gasnett_rwlock_t.
            unsafe { locks::$call(lock) }
        }
    )*};
}

rwlock! {
    gasneti_rwlock_state => rwlock_state;
    gasneti_rwlock_init => rwlock_init;
    gasneti_rwlock_destroy => rwlock_destroy;
    gasneti_rwlock_rdlock => rwlock_rdlock;
    gasneti_rwlock_wrlock => rwlock_wrlock;
    gasneti_rwlock_tryrdlock => rwlock_tryrdlock;
    gasneti_rwlock_trywrlock => rwlock_trywrlock;
    gasneti_rwlock_unlock => rwlock_unlock;
}
