//! `GASNETT_TRACE_*` and `GASNETT_STATS_*`: what the macros of gasnet_trace.h call.

use super::tools::system::gasnett_gettimeofday_us;
use crate::process::exit;
use crate::report;
use crate::runtime::GasnetJob;
use crate::trace::{self, Letter, LetterMask, Probe, TraceFileKind, source};
use core::ffi::{CStr, c_char, c_int, c_uint};
use core::sync::atomic::{AtomicPtr, Ordering};
use std::fmt::Write;

/// Records what the job is, and completes the files when the process exits. Called by
/// `gasnet_init`.
pub(super) fn open(job: &GasnetJob) {
    super::fast::watch();
    if !trace::on() {
        return;
    }
    exit::on_exit(trace::close);
    let realtime = gasnett_gettimeofday_us();
    trace::note(
        Letter::I,
        format_args!(
            "START: nodes={} mode={:?} pid={} us={realtime} host={} program={}",
            job.nodes,
            job.threads,
            sys::process::pid(),
            crate::tools::process::hostname(),
            std::env::args().next().unwrap_or_default()
        ),
    );
    for v in crate::env::all() {
        if let Some(value) = crate::env::lookup(v.name()) {
            trace::note(Letter::I, format_args!("ENV: {}={value}", v.name()));
        }
    }
}

/// `GASNETT_TRACE_SETSOURCELINE`, where anything is watched.
///
/// # Safety
/// `file` must be null or a string that lives as long as the process.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasneti_trace_setsourceline(file: *const c_char, line: c_uint) {
    // SAFETY: the caller's promise.
    source::set(unsafe { source::SourceLine::new(file, line) });
}

/// The macros of the headers tell where the next call comes from.
///
/// # Safety
/// `file` must be a literal.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasneti_trace_from(file: *const c_char, line: c_uint) {
    // SAFETY: the caller's promise.
    source::call(unsafe { source::SourceLine::new(file, line) });
}

/// `GASNET_BLOCKUNTIL`, where anything is watched: with 0 the time now, with such a time the
/// end of the wait that began then.
#[unsafe(no_mangle)]
pub extern "C" fn gasneti_trace_blockuntil(since: u64) -> u64 {
    static PROBE: Probe = Probe::new(Letter::X, "gasnet_blockuntil");
    if since != 0 {
        trace::record_since(&PROBE, since);
    }
    sys::clock::now_ns()
}

/// `GASNETT_TRACE_GETSOURCELINE`; a null file if there is none.
///
/// # Safety
/// Both must be writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasneti_trace_getsourceline(file: *mut *const c_char, line: *mut c_uint) {
    let (name, number) = source::current().raw();
    // SAFETY: the caller's promise.
    unsafe {
        file.write(name);
        line.write(number);
    }
}

/// `GASNETT_TRACE_FREEZESOURCELINE`
#[unsafe(no_mangle)]
pub extern "C" fn gasneti_trace_freezesourceline() {
    source::freeze();
}

/// `GASNETT_TRACE_UNFREEZESOURCELINE`
#[unsafe(no_mangle)]
pub extern "C" fn gasneti_trace_unfreezesourceline() {
    source::unfreeze();
}

/// `GASNETT_TRACE_ENABLED`: whether a message of the client would be traced now.
#[unsafe(no_mangle)]
pub extern "C" fn gasneti_trace_enabled() -> c_int {
    c_int::from(trace::on() && TraceFileKind::Trace.mask().has(Letter::H))
}

/// A message of the client, put together by shim.c.
///
/// # Safety
/// `text` must be a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasneti_trace_text(text: *const c_char, force: c_int) {
    // SAFETY: the caller's promise.
    let text = unsafe { CStr::from_ptr(text) }.to_string_lossy();
    let letter = if force != 0 { Letter::U } else { Letter::H };
    for line in text.lines() {
        trace::note(letter, format_args!("{line}"));
    }
}

fn file_kind(stats: c_int) -> TraceFileKind {
    if stats != 0 { TraceFileKind::Stats } else { TraceFileKind::Trace }
}

/// `GASNETT_TRACE_GETMASK`, or with `stats` `GASNETT_STATS_GETMASK`: the letters, in memory of
/// the calling thread that the next such call of it writes.
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
        static TEXT: core::cell::UnsafeCell<[u8; 16]> = const { core::cell::UnsafeCell::new([0; 16]) };
    }
    let mut text = Text([0; 16], 0);
    let _ = write!(text, "{}", file_kind(stats).mask());
    TEXT.with(|t| {
        // SAFETY: the memory is this thread's, and no reference to it is kept.
        unsafe { *t.get() = text.0 };
        t.get().cast_const().cast()
    })
}

/// `GASNETT_TRACE_SETMASK`, or with `stats` `GASNETT_STATS_SETMASK`. A mask that cannot be is
/// told of and changes nothing.
///
/// # Safety
/// `mask` must be a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasneti_trace_setmask(mask: *const c_char, stats: c_int) {
    // SAFETY: the caller's promise.
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

/// `GASNETT_TRACE_GET_TRACELOCAL`
#[unsafe(no_mangle)]
pub extern "C" fn gasneti_trace_get_tracelocal() -> c_int {
    c_int::from(trace::local())
}

/// `GASNETT_TRACE_SET_TRACELOCAL`
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

/// `GASNETT_STATS_INIT`: `callback` is called when the statistics are written. 1 if they will
/// be.
#[unsafe(no_mangle)]
pub extern "C" fn gasneti_stats_init(callback: Option<StatsCallback>) -> c_int {
    if !trace::on() || !TraceFileKind::Stats.is_on() {
        return 0;
    }
    if let Some(f) = callback {
        CALLBACK.store(f as *mut (), Ordering::Release);
        trace::on_statistics(|| {
            // SAFETY: stored above, from this very type.
            let f: StatsCallback =
                unsafe { core::mem::transmute(CALLBACK.load(Ordering::Acquire)) };
            // SAFETY: the client's function is made to be called so.
            unsafe { f(gasneti_stats_printf) };
        });
    }
    1
}

/// A line of statistics of the client, put together by shim.c.
///
/// # Safety
/// `text` must be a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasneti_stats_text(text: *const c_char) {
    // SAFETY: the caller's promise.
    let text = unsafe { CStr::from_ptr(text) }.to_string_lossy();
    text.lines().for_each(trace::client_statistic);
}
