//! Threads: the index that the library gives to a thread, a call when the thread ends, and
//! yielding the CPU while waiting. Called by `runtime::threads`, and by every loop that waits.
//!
//! The index is one slot of thread-local storage. It is a constant at start and has no
//! destructor of its own. So reading it is one access, without registration or allocation, and
//! is sound in signal handlers and while a thread ends. A pthread key reports the end of the
//! thread.

#[cfg(feature = "hosted")]
use super::signal;
use core::cell::Cell;
use core::ffi::c_void;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::sync::OnceLock;

/// What [`index`] returns for a thread without an index.
pub const NONE: u32 = u32::MAX;

thread_local! {
    static INDEX: Cell<u32> = const { Cell::new(NONE) };
}

/// Called at the end of a thread with its index; a `fn(u32)`, 0 before [`claim`].
static RELEASE: AtomicUsize = AtomicUsize::new(0);

/// Index of the calling thread, or [`NONE`]. Async-signal-safe.
#[inline(always)]
pub fn index() -> u32 {
    INDEX.with(Cell::get)
}

extern "C" fn at_thread_end(value: *mut c_void) {
    let release = RELEASE.load(Ordering::Acquire);
    if value.is_null() || release == 0 {
        return;
    }
    INDEX.with(|i| i.set(NONE));
    // SAFETY: RELEASE holds 0 or a `fn(u32)` stored by `claim`.
    let release: fn(u32) = unsafe { core::mem::transmute(release) };
    release(value as usize as u32 - 1);
}

/// Gives the calling thread an index below [`NONE`]. When the thread ends, `release` is called
/// with it, and the thread has no index. All callers pass the same `release`.
///
/// `release` is not called if the program has taken all thread-specific keys, or all memory. Nor
/// is it called for an index that is claimed in the last destructor of the thread. [`exists`] then
/// says that the thread has ended.
pub fn claim(index: u32, release: fn(u32)) {
    RELEASE.store(release as usize, Ordering::Release);
    INDEX.with(|i| i.set(index));
    set_at_end(index as usize + 1);
}

/// Takes the index of the calling thread away; nothing is called when the thread ends.
pub fn unclaim() {
    INDEX.with(|i| i.set(NONE));
    set_at_end(0);
}

/// Sets what [`at_thread_end`] is called with; 0: it is not called.
fn set_at_end(value: usize) {
    static KEY: OnceLock<Option<libc::pthread_key_t>> = OnceLock::new();
    let key = KEY.get_or_init(|| {
        let mut key = 0;
        // SAFETY: `key` is a live variable; the destructor has the signature that pthreads
        // calls.
        (unsafe { libc::pthread_key_create(&mut key, Some(at_thread_end)) } == 0).then_some(key)
    });
    if let Some(key) = key {
        // SAFETY: the key was created above and is never deleted; the value is never dereferenced.
        unsafe { libc::pthread_setspecific(*key, core::ptr::without_provenance(value)) };
    }
}

/// Whether this process has a thread of this number ([`tid`]); so it may be for a moment after the
/// thread was joined.
pub fn exists(tid: u32) -> bool {
    // SAFETY: signal 0 is not sent; the call only checks that the thread exists.
    let found = unsafe { libc::syscall(libc::SYS_tgkill, crate::process::pid(), tid, 0) } == 0;
    found || std::io::Error::last_os_error().raw_os_error() != Some(libc::ESRCH)
}

/// Starts a thread that runs `body` until the process ends. All signals are blocked there: it runs
/// no handler of the program.
///
/// # Errors
/// The system allows no further thread.
#[cfg(feature = "hosted")]
pub fn start_forever<T: Sync + 'static>(
    body: fn(&'static T) -> !,
    of: &'static T,
) -> std::io::Result<()> {
    type Start<T> = (fn(&'static T) -> !, &'static T);
    extern "C" fn run<T: Sync + 'static>(start: *mut c_void) -> *mut c_void {
        // SAFETY: it is the pair that was leaked for this thread.
        let (body, of) = unsafe { *start.cast::<Start<T>>() };
        body(of)
    }
    let start: &'static mut Start<T> = Box::leak(Box::new((body, of)));
    let before = signal::block(&signal::SignalSet::all());
    let mut thread = 0;
    // SAFETY: `thread` is live; `run` takes the pair, which is never freed.
    let error = unsafe {
        libc::pthread_create(
            &mut thread,
            core::ptr::null(),
            run::<T>,
            core::ptr::from_mut(start).cast(),
        )
    };
    signal::set_mask(&before);
    if error == 0 { Ok(()) } else { Err(std::io::Error::from_raw_os_error(error)) }
}

unsafe extern "C" {
    fn pthread_setcancelstate(state: i32, old: *mut i32) -> i32;
}

/// Makes a call in which the thread does not end by `pthread_cancel`: a cancelled thread would
/// keep what it holds. Async-signal-safe.
pub fn without_cancellation<T>(call: impl FnOnce() -> T) -> T {
    const PTHREAD_CANCEL_DISABLE: i32 = 1;
    let mut before = 0;
    // SAFETY: `before` is a live variable; the state concerns the calling thread only.
    unsafe { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &mut before) };
    let result = call();
    let mut disabled = 0;
    // SAFETY: `disabled` is a live variable, and `before` a state that the system reported.
    unsafe { pthread_setcancelstate(before, &mut disabled) };
    result
}

/// Lets another thread run on this CPU, if one is ready.
pub fn yield_now() {
    // SAFETY: no arguments.
    unsafe { libc::sched_yield() };
}

/// Passes the time in round `round` of a wait: the first 100 rounds spin, later ones give up
/// the CPU.
pub fn relax(round: u32) {
    if round < 100 {
        core::hint::spin_loop();
    } else {
        yield_now();
    }
}

/// Passes the time in round `round` of a wait that no wake-up ends. The first `yields`
/// rounds give up the CPU, later ones sleep 0.1 ms. Async-signal-safe.
pub fn yield_or_sleep(round: u32, yields: u32) {
    if round < yields {
        yield_now();
    } else {
        crate::clock::sleep_ns(100_000);
    }
}

/// The kernel's number (tid) of the calling thread. Async-signal-safe.
pub fn tid() -> u32 {
    // SAFETY: no arguments; never fails.
    unsafe { libc::syscall(libc::SYS_gettid) as u32 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::sync::atomic::AtomicU32;

    static RELEASED: AtomicU32 = AtomicU32::new(NONE);

    #[test]
    fn released_at_thread_end() {
        std::thread::spawn(|| {
            assert_eq!(index(), NONE);
            claim(7, |i| RELEASED.store(i, Ordering::SeqCst));
            assert_eq!(index(), 7);
        })
        .join()
        .unwrap();
        assert_eq!(RELEASED.load(Ordering::SeqCst), 7);
        assert_eq!(index(), NONE);
        RELEASED.store(NONE, Ordering::SeqCst);
        std::thread::spawn(|| {
            claim(8, |i| RELEASED.store(i, Ordering::SeqCst));
            unclaim();
            assert_eq!(index(), NONE);
        })
        .join()
        .unwrap();
        assert_eq!(RELEASED.load(Ordering::SeqCst), NONE);
    }

    #[test]
    fn a_thread_exists_until_it_ends() {
        let ended = std::thread::spawn(|| {
            assert!(exists(tid()));
            tid()
        });
        let ended = ended.join().unwrap();
        let deadline = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while exists(ended) {
            assert!(std::time::Instant::now() < deadline);
            yield_now();
        }
        assert!(exists(tid()));
    }
}
