//! Clocks, limits, CPUs, memory and bytes of the machine.
//!
//! Called by clients. Nothing is kept here but the name of the host.

use super::debug::fatal;
use super::memory;
use crate::report;
use crate::runtime::segment;
use crate::tools::{checksum, this_process, timer};
use core::ffi::{c_char, c_int, c_void};
use core::sync::atomic::{AtomicBool, Ordering};
use std::ffi::CString;
use std::os::unix::ffi::OsStringExt;
use std::sync::OnceLock;
use sys::byte_count::ByteCount;
use sys::cpu::CpuMask;

/// Returns the time in ticks: nanoseconds of the monotonic clock.
///
/// - Context: anywhere, before `gasnet_init` too.
#[unsafe(no_mangle)]
pub extern "C" fn gasnett_ticks_now() -> u64 {
    sys::clock::now_ns()
}

/// Returns the least difference between two different ticks, in microseconds.
///
/// - Context: anywhere, before `gasnet_init` too.
#[unsafe(no_mangle)]
pub extern "C" fn gasnett_tick_granularityus() -> f64 {
    timer::granularity_us()
}

/// Returns the time that `gasnett_ticks_now` takes, in microseconds.
///
/// - Context: anywhere, before `gasnet_init` too.
#[unsafe(no_mangle)]
pub extern "C" fn gasnett_tick_overheadus() -> f64 {
    timer::overhead_us()
}

/// Returns the time since the start of 1970, in microseconds.
///
/// - Context: anywhere, before `gasnet_init` too.
#[unsafe(no_mangle)]
pub extern "C" fn gasnett_gettimeofday_us() -> u64 {
    std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .map_or(0, |d| u64::try_from(d.as_micros()).unwrap_or(u64::MAX))
}

/// Raises the limits of this process as far as the system allows, except those that
/// GASNET_MAXIMIZE_RLIMIT_* exclude.
///
/// - Returns 1 if all are as high as they may be, else 0.
/// - Context: anywhere, before `gasnet_init` too.
#[unsafe(no_mangle)]
pub extern "C" fn gasnett_maximize_rlimits() -> c_int {
    c_int::from(this_process::maximize_limits())
}

/// Raises one limit of this process as far as the system allows.
///
/// - `resource`: its number, such as `RLIMIT_CORE`.
/// - `description`: not used.
/// - Returns 1 if it is as high as it may be, else 0.
/// - Context: anywhere, before `gasnet_init` too.
#[unsafe(no_mangle)]
pub extern "C" fn gasnett_maximize_rlimit(resource: c_int, _description: *const c_char) -> c_int {
    c_int::from(u32::try_from(resource).is_ok_and(sys::limits::maximize))
}

/// Reports the handlers that `gasnett_run_diagnostics` needs: none.
///
/// - `table`: set to null.
/// - `numentries`: set to 0.
/// - Context: anywhere, before `gasnet_init` too.
///
/// # Safety
/// Both must be writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnett_diagnostic_gethandlers(
    table: *mut *mut c_void,
    numentries: *mut c_int,
) {
    // SAFETY: gasnet_tools.h demands two variables that may be written.
    unsafe {
        table.write(core::ptr::null_mut());
        numentries.write(0);
    }
}

/// Tests nothing: this library has no tests inside that a program can call. The first rank says
/// so once. The arguments are not used.
///
/// - Returns 0, the number of failures.
/// - Context: anywhere, before `gasnet_init` too.
#[unsafe(no_mangle)]
pub extern "C" fn gasnett_run_diagnostics(
    _iters: c_int,
    _threads: c_int,
    _sections: *const c_char,
    _seginfo: *const c_void,
) -> c_int {
    static PRINTED: AtomicBool = AtomicBool::new(false);
    if report::rank().is_none_or(|rank| rank == 0) && !PRINTED.swap(true, Ordering::Relaxed) {
        report::note(format_args!(
            "gasnett_run_diagnostics(): this library has no tests of its inside that a program can call; nothing was tested"
        ));
    }
    0
}

/// Returns the name of this host: a string of the library.
///
/// - Context: anywhere, before `gasnet_init` too.
#[unsafe(no_mangle)]
pub extern "C" fn gasnett_gethostname() -> *const c_char {
    static NAME: OnceLock<CString> = OnceLock::new();
    NAME.get_or_init(|| CString::new(this_process::hostname()).unwrap_or_default()).as_ptr()
}

/// The CPUs that this process may use, as they were before it pinned its first thread.
static BEFORE_PINNING: OnceLock<CpuMask> = OnceLock::new();

/// Returns the number of CPUs that this process may run on.
///
/// - Context: anywhere, before `gasnet_init` too.
#[unsafe(no_mangle)]
pub extern "C" fn gasnett_cpu_count() -> c_int {
    let cpus = BEFORE_PINNING.get().map_or_else(sys::cpu::affinity, CpuMask::count);
    c_int::try_from(cpus).unwrap_or(c_int::MAX)
}

/// Returns the memory of this machine, in bytes.
///
/// - `failure_is_fatal`: not 0 to end the job if the system does not report it; otherwise 0 is
///   returned then.
/// - Context: anywhere, before `gasnet_init` too.
#[unsafe(no_mangle)]
pub extern "C" fn gasnett_getPhysMemSz(failure_is_fatal: c_int) -> u64 {
    let n = sys::memory::limits().physical;
    if n == 0 && failure_is_fatal != 0 {
        fatal(format_args!(
            "gasnett_getPhysMemSz(): the system does not report how much memory there is"
        ));
    }
    n
}

/// Pins the calling thread to one of the CPUs that this process may use; prints a note if the
/// system does not allow it.
///
/// - `rank`: number of the CPU among these, modulo their number.
/// - Returns 0, or 1 if the system does not allow it.
/// - Context: anywhere, before `gasnet_init` too.
#[unsafe(no_mangle)]
pub extern "C" fn gasnett_set_affinity(rank: c_int) -> c_int {
    let first = || CpuMask::of_thread().map(|mask| BEFORE_PINNING.get_or_init(|| mask));
    let mask = BEFORE_PINNING.get().or_else(first);
    let pinned = mask.is_some_and(|mask| sys::cpu::pin(usize::try_from(rank).unwrap_or(0), mask));
    if !pinned {
        report::note(format_args!("gasnett_set_affinity(): the system does not allow it"));
    }
    c_int::from(!pinned)
}

/// Returns the path of the program that this process executes; empty if the system does not
/// report it. The string stays the library's.
///
/// - Context: anywhere, before `gasnet_init` too.
#[unsafe(no_mangle)]
pub extern "C" fn gasnett_exe_name() -> *const c_char {
    static NAME: OnceLock<CString> = OnceLock::new();
    let name = NAME.get_or_init(|| {
        let path = std::env::current_exe().map(|path| path.into_os_string().into_vec());
        CString::new(path.unwrap_or_default()).unwrap_or_default()
    });
    name.as_ptr()
}

/// Gives other threads the CPU for a moment.
///
/// - Context: anywhere, before `gasnet_init` too.
#[unsafe(no_mangle)]
pub extern "C" fn gasnett_sched_yield() {
    sys::thread::yield_now();
}

/// Sleeps; a signal does not shorten it.
///
/// - `ns`: how long at least, nanoseconds.
/// - Returns 0.
/// - Context: anywhere, before `gasnet_init` too.
#[unsafe(no_mangle)]
pub extern "C" fn gasnett_nsleep(ns: u64) -> c_int {
    let since = sys::clock::now_ns();
    while let Some(left) = ns.checked_sub(sys::clock::now_ns() - since).filter(|&left| left != 0) {
        sys::clock::sleep_ns(left);
    }
    0
}

/// Returns a 64-bit checksum of bytes, the same on every machine.
///
/// - `p`, `nbytes`: the bytes, and how many; 0 is allowed.
/// - Context: anywhere, before `gasnet_init` too.
///
/// # Safety
/// `nbytes` bytes at `p` must be readable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnett_checksum(p: *const c_void, nbytes: c_int) -> u64 {
    // SAFETY: gasnet_tools.h demands `nbytes` readable bytes.
    checksum::checksum(unsafe { memory(p, usize::try_from(nbytes).unwrap_or(0)) })
}

/// Returns how many of some bytes are zero.
///
/// - `src`, `nbytes`: the bytes, and how many; 0 is allowed.
/// - Context: anywhere, before `gasnet_init` too.
///
/// # Safety
/// `nbytes` bytes at `src` must be readable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnett_count0s(src: *const c_void, nbytes: usize) -> usize {
    // SAFETY: gasnet_tools.h demands `nbytes` readable bytes.
    checksum::zeros(unsafe { memory(src, nbytes) })
}

/// Copies bytes and returns how many of them are zero.
///
/// - `dst`: destination; it may not overlap the source.
/// - `src`, `nbytes`: the bytes, and how many; 0 is allowed.
/// - Context: anywhere, before `gasnet_init` too.
///
/// # Safety
/// `nbytes` bytes at `src` must be readable, at `dst` writable, and the two must not overlap.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnett_count0s_copy(
    dst: *mut c_void,
    src: *const c_void,
    nbytes: usize,
) -> usize {
    // SAFETY: gasnet_tools.h demands `nbytes` readable bytes at the source.
    let from = unsafe { memory(src, nbytes) };
    // SAFETY: gasnet_tools.h demands `nbytes` writable bytes that do not overlap the source.
    unsafe { core::ptr::copy_nonoverlapping(from.as_ptr(), dst.cast(), from.len()) };
    checksum::zeros(from)
}

/// Returns lines that say why this build of the library is slower than it could be: a constant
/// string, empty if it is not.
///
/// - Context: anywhere, before `gasnet_init` too.
#[unsafe(no_mangle)]
pub extern "C" fn gasnett_performance_warning_str() -> *const c_char {
    if cfg!(debug_assertions) {
        c"        libgasnet was built with debug assertions\n".as_ptr()
    } else if cfg!(feature = "faults") {
        c"        libgasnet was built with planted faults\n".as_ptr()
    } else {
        c"".as_ptr()
    }
}

/// Maps zeroed memory of this process at a multiple of `GASNETT_PAGESIZE`. A failure ends the
/// job.
///
/// - `size`: bytes.
/// - Returns the memory, which stays mapped until the process ends.
/// - Context: anywhere, before `gasnet_init` too.
#[unsafe(no_mangle)]
pub extern "C" fn gasnett_mmap(size: usize) -> *mut c_void {
    match sys::memory::Mapping::anonymous_aligned(size, segment::PAGE) {
        Ok(m) => m.leak().as_ptr().cast(),
        Err(e) => fatal(format_args!("gasnett_mmap(): {}: {e}", ByteCount(size as u64))),
    }
}

/// Allocates memory at a multiple of an alignment. A failure ends the job.
///
/// - `align`: the alignment, a power of two.
/// - `size`: bytes.
/// - Returns the memory; the client frees it with `gasnett_free_aligned`.
/// - Context: anywhere, before `gasnet_init` too.
#[unsafe(no_mangle)]
pub extern "C" fn gasnett_malloc_aligned(align: usize, size: usize) -> *mut c_void {
    match sys::heap::allocate_aligned(align, size) {
        Ok(p) => p.cast(),
        Err(e) => fatal(format_args!(
            "gasnett_malloc_aligned(): {}, aligned to {align}: {e}",
            ByteCount(size as u64)
        )),
    }
}

/// Frees memory.
///
/// - `p`: what `gasnett_malloc_aligned` returned, or null.
/// - Context: anywhere, before `gasnet_init` too.
///
/// # Safety
/// `p` must be null or what [`gasnett_malloc_aligned`] returned.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnett_free_aligned(p: *mut c_void) {
    // SAFETY: gasnet_tools.h demands null or what gasnett_malloc_aligned returned.
    unsafe { sys::heap::free(p.cast()) };
}
