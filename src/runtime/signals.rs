//! Fatal signals and requests to end, of the process that called `gasnet_init`. Installed by `runtime::job`.
//!
//! Program errors (SEGV, BUS, FPE, ILL, ABRT) are told in one line and then take their default action, so that the
//! exit status names the signal. INT, TERM, HUP and PIPE are converted to QUIT, whose default ends the job with code
//! 1 and for which a client may install a handler of its own; where QUIT is ignored they end the job themselves. Only
//! signals that have their default action at `gasnet_init`, and that GASNET_NO_CATCH_SIGNAL does not name, get a handler;
//! children that the process forks later behave as if there were none. Handlers neither allocate nor lock.

use crate::boot::control::JobControl;
use crate::{env, report};
use core::ffi::c_void;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use sys::signal::Signal;
use sys::{memory, signal, thread};

const ERRORS: [Signal; 5] = [Signal::ABRT, Signal::FPE, Signal::ILL, Signal::SEGV, Signal::BUS];
const REQUESTS: [Signal; 4] = [Signal::INT, Signal::TERM, Signal::HUP, Signal::PIPE];

/// The job of this process; null before [`install`].
static JOB: AtomicPtr<JobControl> = AtomicPtr::new(core::ptr::null_mut());
/// The thread that tells of its fatal signal; 0 if none does.
static REPORTING_THREAD: AtomicU32 = AtomicU32::new(0);
/// Called with the signal after it was told, a `fn(Signal)`; null for none.
static AFTER_FATAL: AtomicPtr<()> = AtomicPtr::new(core::ptr::null_mut());
/// Where the segments are mapped: first byte, 0 before that is known, and bytes.
static SEGMENTS_BASE: AtomicUsize = AtomicUsize::new(0);
static SEGMENTS_BYTES: AtomicUsize = AtomicUsize::new(0);
/// The same of what the network shares.
static NETWORK_BASE: AtomicUsize = AtomicUsize::new(0);
static NETWORK_BYTES: AtomicUsize = AtomicUsize::new(0);
/// Bytes of memory that there can be at most; told when a page of a segment cannot be had.
static MEMORY_LIMIT: AtomicU64 = AtomicU64::new(0);

/// Installs the handlers for this process. Called once, by `gasnet_init`.
pub fn install(job: &'static JobControl) {
    JOB.store(core::ptr::from_ref(job).cast_mut(), Ordering::Release);
    signal::ensure_alternate_stack();
    let spared = env::NO_CATCH_SIGNAL.get().unwrap_or_default();
    let wanted =
        |s: &Signal| !spared.has(*s) && signal::disposition(*s) == signal::Disposition::Default;
    for s in ERRORS.into_iter().filter(wanted) {
        signal::handle(s, on_error, true);
    }
    for s in REQUESTS.into_iter().filter(wanted) {
        signal::handle(s, on_request, false);
    }
    if wanted(&Signal::QUIT) {
        signal::handle(Signal::QUIT, on_quit, false);
    }
}

/// Tells where the memory is mapped that the network shares, so that a page of it that cannot be had is told as what it is.
pub fn set_network(base: *const u8, bytes: usize) {
    MEMORY_LIMIT.store(memory::total(), Ordering::Relaxed);
    NETWORK_BYTES.store(bytes, Ordering::Relaxed);
    NETWORK_BASE.store(base as usize, Ordering::Release);
}

/// The same of the segments.
pub fn set_segments(base: *const u8, bytes: usize) {
    MEMORY_LIMIT.store(memory::total(), Ordering::Relaxed);
    SEGMENTS_BYTES.store(bytes, Ordering::Relaxed);
    SEGMENTS_BASE.store(base as usize, Ordering::Release);
}

/// Sets what happens between telling of a fatal signal and its default action: a backtrace, a pause for a debugger.
/// It runs in the signal handler.
pub fn set_after_fatal(hook: fn(Signal)) {
    AFTER_FATAL.store(hook as *mut (), Ordering::Release);
}

/// Whether a handler at this address is one of this file.
pub fn is_ours(handler: usize) -> bool {
    [on_error as signal::SignalHandler, on_request, on_quit]
        .into_iter()
        .any(|h| h as usize == handler)
}

/// Rank and size, for messages; `None` in a process that is not part of the job.
fn rank_and_size() -> Option<(u32, u32)> {
    let job = JOB.load(Ordering::Acquire);
    if job.is_null() {
        return None;
    }
    // SAFETY: JOB holds null or a reference that lives as long as the process.
    let job = unsafe { &*job };
    job.is_member().then(|| (job.rank().unwrap_or_default(), job.size()))
}

/// Lets the default action happen, as soon as the handler returns.
fn take_default(s: Signal) {
    signal::set_default(s);
    signal::raise(s);
}

extern "C" fn on_error(s: Signal, info: &sys::signal::SignalInfo, _: *mut c_void) {
    let Some((rank, size)) = rank_and_size() else { return take_default(s) };
    let me = thread::tid();
    match REPORTING_THREAD.compare_exchange(0, me, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => {}
        // Telling went wrong.
        Err(reporting) if reporting == me => return take_default(s),
        // One thread's trouble is enough.
        Err(_) => loop {
            signal::pause();
        },
    }
    let fault = info.fault();
    let lies_in = |base: &AtomicUsize, bytes: &AtomicUsize| {
        let base = base.load(Ordering::Acquire);
        let offset = fault.unwrap_or_default().wrapping_sub(base);
        base != 0 && offset < bytes.load(Ordering::Relaxed)
    };
    let lacks = match s == Signal::BUS && fault.is_some() {
        true if lies_in(&SEGMENTS_BASE, &SEGMENTS_BYTES) => Some((
            "a segment",
            "Use less of the segments (GASNET_MAX_SEGSIZE bounds them), fewer processes, or raise the memory limit.",
        )),
        true if lies_in(&NETWORK_BASE, &NETWORK_BYTES) => Some((
            "the network's buffers",
            "Use fewer processes, lower GASNET_PORTAL_SB_CHUNKS and GASNET_PORTAL_AMRECV_SPACE, or raise the memory limit.",
        )),
        _ => None,
    };
    if let Some((what, remedy)) = lacks {
        report::line(format_args!(
            "rank {rank}: no memory for a page of {what}, at {:#x}; all processes of this machine have at most {} bytes",
            fault.unwrap_or_default(),
            MEMORY_LIMIT.load(Ordering::Relaxed)
        ));
        report::line(format_args!("  {remedy}"));
    }
    report::line(format_args!(
        "Caught a fatal signal: {}({}) on node {rank}/{size}",
        s.name(),
        s.number()
    ));
    if let Some(explanation) = report::crash_hint() {
        report::line(format_args!("  {explanation}"));
    }
    let after = AFTER_FATAL.load(Ordering::Acquire);
    if !after.is_null() {
        // SAFETY: AFTER_FATAL holds null or a `fn(Signal)` stored by `set_after_fatal`.
        let after: fn(Signal) = unsafe { core::mem::transmute(after) };
        after(s);
    }
    super::exit::flush_stats();
    take_default(s);
}

extern "C" fn on_request(s: Signal, _: &sys::signal::SignalInfo, _: *mut c_void) {
    let Some((rank, size)) = rank_and_size() else { return take_default(s) };
    let errno = sys::errno();
    report::line(format_args!(
        "Caught a signal: {}({}) on node {rank}/{size}",
        s.name(),
        s.number()
    ));
    // Shells have what they start in the background ignore QUIT, which is not to make it immortal.
    if signal::disposition(Signal::QUIT) == signal::Disposition::Ignore {
        super::exit::exit(1);
    }
    signal::unblock(&signal::SignalSet::of(&[Signal::QUIT]));
    signal::raise(Signal::QUIT);
    sys::set_errno(errno);
}

extern "C" fn on_quit(s: Signal, _: &sys::signal::SignalInfo, _: *mut c_void) {
    match rank_and_size() {
        Some(_) => super::exit::exit(1),
        None => take_default(s),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_handlers_are_known() {
        assert!(is_ours(on_quit as signal::SignalHandler as usize));
        assert!(!is_ours(0));
    }
}
