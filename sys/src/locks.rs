//! POSIX locks in memory of a client (`gasnet_hsl_t`, `gasnett_rwlock_t`). Called by
//! `runtime::hsl` and `capi`. Each function returns 0 or an error number, as the C function
//! does.

use core::cell::UnsafeCell;
use core::ffi::c_int;

/// A mutex as C declares it.
pub type Mutex = libc::pthread_mutex_t;
/// A read-write lock as C declares it.
pub type RwLock = libc::pthread_rwlock_t;

/// What a `try` function returns if the lock is held.
pub const BUSY: c_int = libc::EBUSY;

macro_rules! calls {
    ($($(#[$doc:meta])* $name:ident($type:ty) = $call:expr;)*) => {$(
        $(#[$doc])*
        ///
        /// # Safety
        /// `lock` must point to memory of this type that holds an initialised lock (for `init`:
        /// any memory of it).
        pub unsafe fn $name(lock: *mut $type) -> c_int {
            // SAFETY: the caller gives memory of the type of the lock, in the state that C
            // requires.
            unsafe { $call(lock) }
        }
    )*};
}

calls! {
    /// Initialises an open read-write lock.
    rwlock_init(RwLock) = |l| libc::pthread_rwlock_init(l, core::ptr::null());
    /// Ends the use of an open read-write lock.
    rwlock_destroy(RwLock) = |l| libc::pthread_rwlock_destroy(l);
    /// Waits for a read-write lock and shares it.
    rwlock_rdlock(RwLock) = |l| libc::pthread_rwlock_rdlock(l);
    /// Waits for a read-write lock and takes it.
    rwlock_wrlock(RwLock) = |l| libc::pthread_rwlock_wrlock(l);
    /// Shares a read-write lock, unless a thread has taken it.
    rwlock_tryrdlock(RwLock) = |l| libc::pthread_rwlock_tryrdlock(l);
    /// Takes a read-write lock, if no thread has taken or shares it.
    rwlock_trywrlock(RwLock) = |l| libc::pthread_rwlock_trywrlock(l);
    /// Gives up a read-write lock.
    rwlock_unlock(RwLock) = |l| libc::pthread_rwlock_unlock(l);
}

/// A mutex in memory of a client. The client's contract says when it is one. The client
/// initialises it before other uses, unlocks it in the thread that locked it, and destroys it
/// while it is open.
///
/// A reference to it is made of the client's pointer, which is where the client's contract
/// enters; so each function may call the C library. Any bytes are one, if not an initialised
/// one.
#[repr(transparent)]
#[derive(Debug)]
pub struct ClientMutex(UnsafeCell<Mutex>);

// SAFETY: threads share a mutex by the functions of the C library only.
unsafe impl Sync for ClientMutex {}

impl ClientMutex {
    /// Initialises it; it is open then.
    pub fn init(&self) -> c_int {
        // SAFETY: memory of a mutex that is not in use.
        unsafe { libc::pthread_mutex_init(self.0.get(), core::ptr::null()) }
    }

    /// Ends the use of the open mutex.
    pub fn destroy(&self) -> c_int {
        // SAFETY: an initialised mutex that no thread holds.
        unsafe { libc::pthread_mutex_destroy(self.0.get()) }
    }

    /// Waits for it and takes it.
    pub fn lock(&self) -> c_int {
        // SAFETY: an initialised mutex.
        unsafe { libc::pthread_mutex_lock(self.0.get()) }
    }

    /// Takes it if it is open; [`BUSY`] if it is held.
    pub fn try_lock(&self) -> c_int {
        // SAFETY: an initialised mutex.
        unsafe { libc::pthread_mutex_trylock(self.0.get()) }
    }

    /// Opens it, which this thread holds.
    pub fn unlock(&self) -> c_int {
        // SAFETY: an initialised mutex.
        unsafe { libc::pthread_mutex_unlock(self.0.get()) }
    }
}

unsafe extern "C" {
    fn pthread_mutex_timedlock(lock: *mut Mutex, until: *const libc::timespec) -> c_int;
    fn pthread_rwlock_timedwrlock(lock: *mut RwLock, until: *const libc::timespec) -> c_int;
}

/// A moment in the past: a wait until then returns at once, with the reason why it would wait.
const PAST: libc::timespec = libc::timespec { tv_sec: 0, tv_nsec: 0 };

/// Initialises an open mutex that knows its holder; 0 or an error number.
///
/// # Safety
/// `lock` must point to memory of a mutex.
pub unsafe fn mutex_init_checking(lock: *mut Mutex) -> c_int {
    // SAFETY: all-zero is valid storage, which the next call initialises.
    let mut kind: libc::pthread_mutexattr_t = unsafe { core::mem::zeroed() };
    // SAFETY: a live attribute object.
    unsafe { libc::pthread_mutexattr_init(&mut kind) };
    // SAFETY: initialised above.
    unsafe { libc::pthread_mutexattr_settype(&mut kind, libc::PTHREAD_MUTEX_ERRORCHECK) };
    // SAFETY: the caller gives memory of a mutex; the attributes are initialised.
    let error = unsafe { libc::pthread_mutex_init(lock, &kind) };
    // SAFETY: initialised above, not used any more.
    unsafe { libc::pthread_mutexattr_destroy(&mut kind) };
    error
}

/// 0 if a mutex is open, 1 if this thread holds it and the mutex knows its holder, else 2.
///
/// # Safety
/// `lock` must point to an initialised mutex.
pub unsafe fn mutex_state(lock: *mut Mutex) -> c_int {
    // SAFETY: the caller gives an initialised mutex, and PAST is a live time.
    match unsafe { pthread_mutex_timedlock(lock, &PAST) } {
        0 => {
            // SAFETY: taken above.
            unsafe { libc::pthread_mutex_unlock(lock) };
            0
        }
        libc::EDEADLK => 1,
        _ => 2,
    }
}

/// 0 if a read-write lock is open, 1 if it is shared, 3 if this thread has taken it, 2 if
/// another has.
///
/// # Safety
/// `lock` must point to an initialised read-write lock.
pub unsafe fn rwlock_state(lock: *mut RwLock) -> c_int {
    // SAFETY: the caller gives an initialised lock, and PAST is a live time.
    let taken = unsafe { pthread_rwlock_timedwrlock(lock, &PAST) };
    if taken == libc::EDEADLK {
        return 3;
    }
    // SAFETY: the caller gives an initialised lock.
    let shared = taken != 0 && unsafe { rwlock_tryrdlock(lock) } == 0;
    if taken == 0 || shared {
        // SAFETY: taken or shared above.
        unsafe { rwlock_unlock(lock) };
    }
    match (taken, shared) {
        (0, _) => 0,
        (_, true) => 1,
        _ => 2,
    }
}
