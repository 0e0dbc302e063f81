//! POSIX locks in memory that belongs to somebody else (a client's `gasnet_hsl_t`, `gasnett_rwlock_t`). Each function
//! returns 0 or an error number, as the C function does. Called by `capi`.

use core::ffi::c_int;

/// A mutex as C declares it.
pub type Mutex = libc::pthread_mutex_t;
/// A read-write lock as C declares it.
pub type RwLock = libc::pthread_rwlock_t;

macro_rules! calls {
    ($($(#[$doc:meta])* $name:ident($type:ty) = $call:expr;)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// `lock` must point to memory of this type that holds an initialised lock (for `init`: any memory of it).
        #[inline]
        pub unsafe fn $name(lock: *mut $type) -> c_int {
            // SAFETY: the caller's promise.
            unsafe { $call(lock) }
        }
    )*};
}

calls! {
    /// Makes an open mutex.
    mutex_init(Mutex) = |l| libc::pthread_mutex_init(l, core::ptr::null());
    /// Ends the use of an open mutex.
    mutex_destroy(Mutex) = |l| libc::pthread_mutex_destroy(l);
    /// Waits for a mutex and takes it.
    mutex_lock(Mutex) = |l| libc::pthread_mutex_lock(l);
    /// Takes a mutex if it is open.
    mutex_trylock(Mutex) = |l| libc::pthread_mutex_trylock(l);
    /// Opens a mutex that this thread holds.
    mutex_unlock(Mutex) = |l| libc::pthread_mutex_unlock(l);
    /// Makes an open read-write lock.
    rwlock_init(RwLock) = |l| libc::pthread_rwlock_init(l, core::ptr::null());
    /// Ends the use of an open read-write lock.
    rwlock_destroy(RwLock) = |l| libc::pthread_rwlock_destroy(l);
    /// Waits for a read-write lock and shares it.
    rwlock_rdlock(RwLock) = |l| libc::pthread_rwlock_rdlock(l);
    /// Waits for a read-write lock and takes it.
    rwlock_wrlock(RwLock) = |l| libc::pthread_rwlock_wrlock(l);
    /// Shares a read-write lock unless somebody has taken it.
    rwlock_tryrdlock(RwLock) = |l| libc::pthread_rwlock_tryrdlock(l);
    /// Takes a read-write lock if nobody has it.
    rwlock_trywrlock(RwLock) = |l| libc::pthread_rwlock_trywrlock(l);
    /// Gives up a read-write lock.
    rwlock_unlock(RwLock) = |l| libc::pthread_rwlock_unlock(l);
}
