//! The signal handlers of the process that called `gasnet_init`: fatal signals and requests to
//! end.
//!
//! Installed by `runtime::start`. Invariants:
//! - Handlers neither allocate nor wait for a lock.
//! - A signal gets a handler only if it has its default action at `gasnet_init` and
//!   GASNET_NO_CATCH_SIGNAL does not name it.
//! - In children that the process forks later the default action is taken.
//!
//! | signals | what happens |
//! |---|---|
//! | SEGV, BUS, FPE, ILL, ABRT | one line, then the default action, so that the exit status names the signal; a thread that has failed before ends the process first |
//! | INT, TERM, HUP, PIPE | one line, then QUIT if the client has a handler for it, or else the job ends with code 128 + signal; nothing but the exit if the job ends already |
//! | QUIT | the job ends with code 131 |
//!
//! The exception is the QUIT handler of libgfortran, which prints a stack: it is replaced.

use super::{alarm, exit_hooks, lost_output};
use crate::tools::this_process::hostname;
use crate::{report, trace};
use core::ffi::c_void;
use core::fmt;
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::OnceLock;
use sys::byte_count::ByteCount;
use sys::signal::{self, Disposition, Signal, SignalHandler, SignalInfo, SignalSet};
use sys::{clock, library, process, thread};

const ERRORS: [Signal; 5] = [Signal::ABRT, Signal::FPE, Signal::ILL, Signal::SEGV, Signal::BUS];
const REQUESTS: [Signal; 4] = [Signal::INT, Signal::TERM, Signal::HUP, Signal::PIPE];

/// Nanoseconds within which a thread that has failed before this one ends the process: more than a
/// debugger may take to print its stack.
const FIRST_FAILURE: u64 = 40_000_000_000;

/// The thread that reports its fatal signal; 0 for none.
static REPORTING_THREAD: AtomicU32 = AtomicU32::new(0);
/// The number of the signal that ends this process after its exit hooks.
static FATAL_SIGNAL: AtomicI32 = AtomicI32::new(0);
/// The C streams are flushed before that.
static IN_STREAMS: AtomicBool = AtomicBool::new(false);
/// Called after the report of a fatal signal.
static AFTER_FATAL: OnceLock<fn()> = OnceLock::new();
/// The handlers of signals that the user named; 0 for none.
static NAMED_HANDLERS: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];
/// Where the segments are mapped.
static SEGMENTS: MappedRange = MappedRange::new();
/// Where the memory is mapped that the network shares.
static NETWORK: MappedRange = MappedRange::new();
/// Bytes of memory that this host has at most, for the report of a page that it cannot provide.
static MEMORY_LIMIT: AtomicU64 = AtomicU64::new(0);

/// A range of addresses that a handler can read.
struct MappedRange {
    /// 0 before it is known.
    base: AtomicUsize,
    bytes: AtomicUsize,
}

impl MappedRange {
    const fn new() -> MappedRange {
        MappedRange { base: AtomicUsize::new(0), bytes: AtomicUsize::new(0) }
    }

    fn set(&self, base: *const u8, bytes: usize) {
        self.bytes.store(bytes, Ordering::Relaxed);
        // Release pairs with the Acquire in `has`.
        self.base.store(base.addr(), Ordering::Release);
    }

    fn has(&self, address: usize) -> bool {
        let base = self.base.load(Ordering::Acquire);
        base != 0 && address.wrapping_sub(base) < self.bytes.load(Ordering::Relaxed)
    }
}

/// Installs the handlers for this process, except for signals that are `spared`. Called once, by
/// `gasnet_init`.
pub fn install(spared: impl Fn(Signal) -> bool) {
    signal::ensure_alternate_stack();
    // The handlers may not read a file.
    hostname();
    let wanted = |s: &Signal| !spared(*s) && signal::disposition(*s) == Disposition::Default;
    for s in ERRORS.into_iter().filter(wanted) {
        signal::handle(s, on_error, true);
    }
    for s in REQUESTS.into_iter().filter(wanted) {
        signal::handle(s, on_request, false);
    }
    let is_fortran = |d| matches!(d, Disposition::Handler(h) if library::name_at(h).is_some_and(|file| file.contains("libgfortran")));
    if wanted(&Signal::QUIT)
        || !spared(Signal::QUIT) && is_fortran(signal::disposition(Signal::QUIT))
    {
        signal::handle(Signal::QUIT, on_quit, false);
    }
}

/// Records where the memory is mapped that the network shares, and how much memory this host has
/// at most for that and for segments. A page that the system cannot provide is then reported as
/// such.
pub fn set_network(base: *const u8, bytes: usize, limit: u64) {
    MEMORY_LIMIT.store(limit, Ordering::Relaxed);
    NETWORK.set(base, bytes);
}

/// The same for the segments.
pub fn set_segments(base: *const u8, bytes: usize, limit: u64) {
    MEMORY_LIMIT.store(limit, Ordering::Relaxed);
    SEGMENTS.set(base, bytes);
}

/// Sets what happens between the report of a fatal signal and its default action: a backtrace, a
/// pause for a debugger. It runs in the signal handler.
pub fn set_after_fatal(hook: fn()) {
    let _ = AFTER_FATAL.set(hook);
}

/// Rank and size, for messages; `None` in a process that is not part of the job.
fn rank_and_size() -> Option<(u32, u32)> {
    let notice = super::exit::notice().filter(|n| n.is_member())?;
    Some((notice.rank().0, notice.size()))
}

/// Lets the default action happen when the handler returns.
fn take_default(s: Signal) {
    signal::set_default(s);
    signal::raise(s);
}

/// A page of shared memory that the system could not provide.
struct MissingPage {
    part: &'static str,
    remedy: &'static str,
}

impl MissingPage {
    /// The page at this address, if it is memory that the network or the segments have mapped.
    fn at(address: usize) -> Option<MissingPage> {
        if SEGMENTS.has(address) {
            return Some(MissingPage {
                part: "a segment",
                remedy: "Use less of the segments (GASNET_MAX_SEGSIZE bounds them), fewer ranks, \
                         or raise the memory limit.",
            });
        }
        NETWORK.has(address).then_some(MissingPage {
            part: "the network's buffers",
            remedy: "Use fewer ranks, lower GASNET_PORTAL_SB_CHUNKS and \
                     GASNET_PORTAL_AMRECV_SPACE, or raise the memory limit.",
        })
    }
}

impl fmt::Display for MissingPage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let limit = ByteCount(MEMORY_LIMIT.load(Ordering::Relaxed));
        let MissingPage { part, remedy } = self;
        write!(
            f,
            "No memory for a page of {part}: all processes of this host have at most {limit}. \
             {remedy}"
        )
    }
}

/// The handler of errors. A program may call it as the handler that was there before its own, with
/// the signal as the only argument.
pub(crate) extern "C" fn on_error(s: Signal, info: &SignalInfo, context: *mut c_void) {
    let Some((rank, size)) = rank_and_size() else { return take_default(s) };
    let me = thread::tid();
    let is_first = report::claim_failure();
    match REPORTING_THREAD.compare_exchange(0, me, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => {}
        // The report itself failed, or the first thread that fails while another waits for it.
        Err(reporting) if reporting == me || is_first => return take_default(s),
        // One report is enough.
        Err(_) => loop {
            signal::pause();
        },
    }
    // The alarm of a thread that exits would end this report. `flush_before_signal` takes it over.
    signal::block(&SignalSet::of(&[Signal::ALRM]));
    let missing = if s == Signal::BUS { missing_page(info) } else { None };
    let hint = report::crash_hint();
    let explanation = match (&missing, &hint) {
        (Some(page), _) => Some(page as &dyn fmt::Display),
        (None, Some(hint)) => Some(hint as &dyn fmt::Display),
        (None, None) => None,
    };
    let signal = format_args!("{}({})", s.name(), s.number());
    report::crash(signal, rank, size, explanation);
    let until = clock::now_ns() + FIRST_FAILURE;
    while !is_first && clock::now_ns() < until {
        clock::sleep_ns(100_000_000);
    }
    sys::stack::note_interrupted(context);
    if let Some(after) = AFTER_FATAL.get() {
        after();
    }
    flush_before_signal(s, || ());
    take_default(s);
}

/// Waits while another thread reports its fatal signal, which then ends this process.
/// Async-signal-safe.
pub(super) fn await_report() {
    while ![0, thread::tid()].contains(&REPORTING_THREAD.load(Ordering::Acquire)) {
        clock::sleep_ns(1_000_000);
    }
}

/// Whether a signal has the handler of errors. Async-signal-safe.
pub(super) fn is_error_handled(s: Signal) -> bool {
    signal::disposition(s) == Disposition::Handler(on_error as SignalHandler as usize)
}

/// Calls the exit hooks, flushes the C streams, and ends this process by SIGABRT: a fatal error.
pub fn flush_and_abort() -> ! {
    // The handler of the signal may be missing (GASNET_NO_CATCH_SIGNAL).
    flush_before_signal(Signal::ABRT, || {
        IN_STREAMS.store(true, Ordering::Release);
        sys::stdio::flush_at_end();
        IN_STREAMS.store(false, Ordering::Release);
    });
    std::process::abort()
}

/// Calls the exit hooks, if this process is a rank, and `flush_streams`, before this signal ends
/// this process; no function of the client. An alarm lets the signal end it if they do not return.
/// Async-signal-safe if `flush_streams` is.
fn flush_before_signal(s: Signal, flush_streams: impl FnOnce()) {
    FATAL_SIGNAL.store(s.number(), Ordering::Release);
    alarm::take_over(on_fatal_alarm);
    alarm::set(super::exit::flush_us());
    if rank_and_size().is_some() {
        trace::leave();
        trace::omit_client_statistics();
        exit_hooks::call();
    }
    flush_streams();
    signal::alarm_us(0);
}

/// The exit hooks or the flush took too long.
extern "C" fn on_fatal_alarm(_: Signal, _: &SignalInfo, _: *mut c_void) {
    if alarm::is_due() {
        if IN_STREAMS.load(Ordering::Acquire) {
            lost_output::report_streams();
        }
        let s = Signal::new(FATAL_SIGNAL.load(Ordering::Acquire));
        signal::set_default(s);
        signal::unblock(&SignalSet::of(&[s]));
        signal::raise(s);
    }
}

/// The page of shared memory whose lack has raised this SIGBUS, if it was one.
#[cold]
#[inline(never)]
fn missing_page(info: &SignalInfo) -> Option<MissingPage> {
    info.fault_if_any().and_then(MissingPage::at)
}

extern "C" fn on_request(s: Signal, _: &SignalInfo, _: *mut c_void) {
    let Some((rank, size)) = rank_and_size() else { return take_default(s) };
    let errno = sys::errno();
    super::exit::follow_failure();
    let caught = || {
        report::line(format_args!(
            "Caught a signal: {}({}) on rank {rank}/{size} (pid {}, {})",
            s.name(),
            s.number(),
            process::pid(),
            hostname()
        ));
        if s == Signal::PIPE {
            // The line may have gone to the same pipe: its signal would run this handler without
            // end.
            signal::discard(s);
        }
    };
    // Shells let background jobs ignore QUIT, which must not make them unstoppable.
    if !super::exit::has_client_quit_handler() {
        super::exit::exit_by_signal(s, caught);
    }
    caught();
    signal::unblock(&SignalSet::of(&[Signal::QUIT]));
    signal::raise(Signal::QUIT);
    sys::set_errno(errno);
}

extern "C" fn on_quit(s: Signal, _: &SignalInfo, _: *mut c_void) {
    let Some((rank, size)) = rank_and_size() else { return take_default(s) };
    super::exit::follow_failure();
    super::exit::exit_by_signal(s, || {
        let (pid, host) = (process::pid(), hostname());
        report::line(format_args!(
            "Caught a signal: SIGQUIT(3) on rank {rank}/{size} (pid {pid}, {host})"
        ));
    });
}

/// Has a signal that the user named call a handler of the library, on the alternate stack: it may
/// report a stack overflow. No more than two handlers.
pub fn handle_named(s: Signal, handler: SignalHandler) {
    let address = handler as usize;
    let is_noted = |slot: &AtomicUsize| {
        let before = slot.compare_exchange(0, address, Ordering::Relaxed, Ordering::Relaxed);
        before.map_or_else(|noted| noted == address, |_| true)
    };
    assert!(NAMED_HANDLERS.iter().any(is_noted), "more than two handlers of named signals");
    signal::handle(s, handler, true);
}

/// Whether the client handles a signal itself. Async-signal-safe.
pub(super) fn is_client_handled(s: Signal) -> bool {
    let Disposition::Handler(address) = signal::disposition(s) else { return false };
    let own = [on_request as SignalHandler as usize, on_quit as SignalHandler as usize];
    let is_named = |slot: &AtomicUsize| slot.load(Ordering::Relaxed) == address;
    !own.contains(&address) && !NAMED_HANDLERS.iter().any(is_named)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_named_signal_is_not_of_the_client() {
        extern "C" fn named(_: Signal, _: &SignalInfo, _: *mut c_void) {}
        extern "C" fn client(_: Signal, _: &SignalInfo, _: *mut c_void) {
            core::hint::black_box(1);
        }
        let s = Signal::WINCH;
        assert!(!is_client_handled(s));
        signal::handle(s, client, false);
        assert!(is_client_handled(s));
        handle_named(s, named);
        assert!(!is_client_handled(s));
        signal::set_default(s);
    }

    #[test]
    fn a_mapped_range_has_its_addresses() {
        let range = MappedRange::new();
        assert!(!range.has(0));
        range.set(core::ptr::without_provenance(0x4000), 16);
        assert!(
            range.has(0x4000) && range.has(0x400f) && !range.has(0x4010) && !range.has(0x3fff)
        );
    }
}
