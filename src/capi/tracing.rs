//! The C functions behind the `GASNETT_TRACE_*` and `GASNETT_STATS_*` macros of
//! gasnet_trace.h.
//!
//! Called by clients.

use super::tools::system::gasnett_gettimeofday_us;
use crate::client_memory::ClientText;
use crate::process::exit_hooks;
use crate::report;
use crate::runtime::GasnetJob;
use crate::trace::source::{self, SourceLine};
use crate::trace::{self, Letter, LetterMask, Probe, TraceFileKind};
use core::cell::Cell;
use core::ffi::{CStr, c_char, c_int, c_uint};
use core::sync::atomic::{AtomicPtr, Ordering};
use std::fmt::Write;

/// Begins the trace of a job. Called by `gasnet_init`.
pub(super) fn open(job: &GasnetJob) {
    super::fast::watch();
    job.record_start(gasnett_gettimeofday_us());
}

/// Sets the place in the client's program that events of the calling thread are recorded with:
/// `GASNETT_TRACE_SETSOURCELINE`, if calls are traced. Has no effect while the place is frozen.
///
/// - `file`: name of the source file, NUL-terminated, which must not change later; null for
///   none.
/// - `line`: line there.
/// - Context: anywhere, before `gasnet_init` too.
///
/// # Safety
/// `file` must be null or a string that lives as long as the process.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasneti_trace_setsourceline(file: *const c_char, line: c_uint) {
    // SAFETY: gasnet_trace.h demands null or a string that lives as long as the process.
    source::set(SourceLine { file: unsafe { ClientText::new(file) }, line });
}

/// Sets the place of the next call of the calling thread: the macros of the headers call it, if
/// calls are traced.
///
/// - `file`: name of the source file, a literal.
/// - `line`: line there.
/// - Context: anywhere, before `gasnet_init` too.
///
/// # Safety
/// `file` must be a literal.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasneti_trace_from(file: *const c_char, line: c_uint) {
    // SAFETY: a literal, which lives as long as the process.
    source::call(SourceLine { file: unsafe { ClientText::new(file) }, line });
}

/// Records the wait of a `GASNET_BLOCKUNTIL`: the macro calls it before and after, if calls are
/// traced.
///
/// - `since`: 0 before the wait; afterwards what the first call returned.
/// - Returns the time now, in nanoseconds.
/// - Context: anywhere, before `gasnet_init` too.
#[unsafe(no_mangle)]
pub extern "C" fn gasneti_trace_blockuntil(since: u64) -> u64 {
    static PROBE: Probe = Probe::new(Letter::X, "gasnet_blockuntil");
    if since != 0 {
        trace::record_since(&PROBE, since);
    }
    sys::clock::now_ns()
}

/// Reports the place that events of the calling thread are recorded with:
/// `GASNETT_TRACE_GETSOURCELINE`.
///
/// - `file`, `line`: where it is stored; the file is null if there is none.
/// - Context: anywhere, before `gasnet_init` too.
///
/// # Safety
/// Both must be writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasneti_trace_getsourceline(file: *mut *const c_char, line: *mut c_uint) {
    let SourceLine { file: name, line: number } = source::current();
    // SAFETY: gasnet_tools.h demands two variables that may be written.
    unsafe {
        file.write(name.as_ptr());
        line.write(number);
    }
}

/// Keeps the place of the calling thread until it is unfrozen:
/// `GASNETT_TRACE_FREEZESOURCELINE`.
///
/// - Context: anywhere, before `gasnet_init` too.
#[unsafe(no_mangle)]
pub extern "C" fn gasneti_trace_freezesourceline() {
    source::freeze();
}

/// Ends the effect of one `GASNETT_TRACE_FREEZESOURCELINE`:
/// `GASNETT_TRACE_UNFREEZESOURCELINE`.
///
/// - Context: anywhere, before `gasnet_init` too.
#[unsafe(no_mangle)]
pub extern "C" fn gasneti_trace_unfreezesourceline() {
    source::unfreeze();
}

/// Reports whether a message of the client would be traced now: `GASNETT_TRACE_ENABLED`.
///
/// - Returns 1 if so, else 0.
/// - Context: anywhere, before `gasnet_init` too.
#[unsafe(no_mangle)]
pub extern "C" fn gasneti_trace_enabled() -> c_int {
    c_int::from(trace::on() && TraceFileKind::Trace.mask().has(Letter::H))
}

/// Records a message of the client, which shim.c has formatted.
///
/// - `text`: the message, NUL-terminated; each line becomes a record.
/// - `force`: not 0 to record it as type U, otherwise as type H.
/// - Context: anywhere, before `gasnet_init` too.
///
/// # Safety
/// `text` must be a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasneti_trace_text(text: *const c_char, force: c_int) {
    // SAFETY: gasnet_tools.h demands a string, which the call only reads.
    let text = unsafe { CStr::from_ptr(text) }.to_string_lossy();
    let letter = if force != 0 { Letter::U } else { Letter::H };
    for line in text.lines() {
        trace::note(letter, format_args!("{line}"));
    }
}

fn file_kind(stats: c_int) -> TraceFileKind {
    if stats != 0 { TraceFileKind::Stats } else { TraceFileKind::Trace }
}

/// Returns the types of events that are recorded, as letters: `GASNETT_TRACE_GETMASK`.
///
/// - `stats`: not 0 for those of the statistics (`GASNETT_STATS_GETMASK`).
/// - Returns a string that the calling thread's next call overwrites.
/// - Context: anywhere, before `gasnet_init` too.
#[unsafe(no_mangle)]
pub extern "C" fn gasneti_trace_getmask(stats: c_int) -> *const c_char {
    /// Room for all letters and a final NUL.
    struct Text([u8; 16], usize);
    impl Write for Text {
        fn write_str(&mut self, s: &str) -> std::fmt::Result {
            self.0[self.1..self.1 + s.len()].copy_from_slice(s.as_bytes());
            self.1 += s.len();
            Ok(())
        }
    }
    thread_local! {
        static TEXT: Cell<[u8; 16]> = const { Cell::new([0; 16]) };
    }
    let mut text = Text([0; 16], 0);
    let _ = write!(text, "{}", file_kind(stats).mask());
    TEXT.with(|t| {
        t.set(text.0);
        t.as_ptr().cast_const().cast()
    })
}

/// Chooses the types of events that are recorded: `GASNETT_TRACE_SETMASK`. An invalid mask is
/// reported and changes nothing.
///
/// - `mask`: their letters, or ^ and those to leave out; NUL-terminated.
/// - `stats`: not 0 for those of the statistics (`GASNETT_STATS_SETMASK`).
/// - Context: anywhere, before `gasnet_init` too.
///
/// # Safety
/// `mask` must be a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasneti_trace_setmask(mask: *const c_char, stats: c_int) {
    // SAFETY: gasnet_tools.h demands a string, which the call only reads.
    let text = unsafe { CStr::from_ptr(mask) }.to_string_lossy();
    match LetterMask::parse(&text) {
        Ok(mask) => file_kind(stats).set_mask(mask),
        Err(letter) => report::warn(
            format_args!(
                "GASNETT_{}_SETMASK(\"{text}\"): there is no type {letter} of events",
                if stats != 0 { "STATS" } else { "TRACE" }
            ),
            format_args!("Give letters out of {}, or ^ and those to leave out.", LetterMask::ALL),
        ),
    }
}

/// Reports whether puts to and gets from this process itself are recorded:
/// `GASNETT_TRACE_GET_TRACELOCAL`.
///
/// - Returns 1 if so, else 0.
/// - Context: anywhere, before `gasnet_init` too.
#[unsafe(no_mangle)]
pub extern "C" fn gasneti_trace_get_tracelocal() -> c_int {
    c_int::from(trace::local())
}

/// Chooses whether puts to and gets from this process itself are recorded:
/// `GASNETT_TRACE_SET_TRACELOCAL`.
///
/// - `local`: not 0 if so.
/// - Context: anywhere, before `gasnet_init` too.
#[unsafe(no_mangle)]
pub extern "C" fn gasneti_trace_set_tracelocal(local: c_int) {
    trace::set_local(local != 0);
}

/// `gasnett_stats_callback_t`
type StatsCallback = unsafe extern "C" fn(unsafe extern "C" fn(*const c_char, ...));

unsafe extern "C" {
    /// In shim.c: hands a line to [`gasneti_stats_text`].
    fn gasneti_stats_printf(format: *const c_char, ...);
}

/// What the client gave to GASNETT_STATS_INIT, a [`StatsCallback`]; null for nothing.
static CALLBACK: AtomicPtr<()> = AtomicPtr::new(core::ptr::null_mut());

/// Registers a function that adds lines to the statistics: `GASNETT_STATS_INIT`. It is called
/// when they are written: last, and not after a fatal signal or `gasnett_fatalerror`. If
/// `gasnet_exit` or a signal ends the process, it has a third of GASNET_EXITTIMEOUT, or 0.5 s.
///
/// - `callback`: the function; it gets one that prints a line. Null for none.
/// - Returns 1 if statistics will be written, else 0.
/// - Context: anywhere, before `gasnet_init` too.
#[unsafe(no_mangle)]
pub extern "C" fn gasneti_stats_init(callback: Option<StatsCallback>) -> c_int {
    if !trace::on() || !TraceFileKind::Stats.is_on() {
        return 0;
    }
    let callback = callback.map_or(core::ptr::null_mut(), |f| f as *mut ());
    CALLBACK.store(callback, Ordering::Release);
    if trace::on_statistics(client_statistics) {
        exit_hooks::on_exit(trace::close_client_statistics);
    }
    1
}

/// Calls what GASNETT_STATS_INIT was given.
fn client_statistics() {
    let callback = CALLBACK.load(Ordering::Acquire);
    // SAFETY: null or a function of this very type, which the option represents in the same way.
    let callback: Option<StatsCallback> = unsafe { core::mem::transmute(callback) };
    if let Some(f) = callback {
        // SAFETY: the client's function is made to be called so.
        unsafe { f(gasneti_stats_printf) };
    }
}

/// Adds lines to the statistics, which shim.c has formatted.
///
/// - `text`: the lines, NUL-terminated.
/// - `force`: not 0 for lines that no mask leaves out.
/// - Context: anywhere; the function that `GASNETT_STATS_INIT` was given too.
///
/// # Safety
/// `text` must be a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasneti_stats_text(text: *const c_char, force: c_int) {
    // SAFETY: gasnet_tools.h demands a string, which the call only reads.
    let text = unsafe { CStr::from_ptr(text) }.to_string_lossy();
    let letter = if force != 0 { Letter::U } else { Letter::H };
    text.lines().for_each(|line| trace::client_statistic(letter, line));
}

/// Writes the statistics now: `GASNETT_STATS_DUMP`.
///
/// - `reset`: not 0 to count from 0 afterwards.
/// - Context: anywhere, before `gasnet_init` too.
#[unsafe(no_mangle)]
pub extern "C" fn gasneti_stats_dump(reset: c_int) {
    trace::dump_statistics(reset != 0);
}
