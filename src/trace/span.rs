//! Events in progress: from the entry of a call to its return.
//!
//! `capi` and `runtime` make spans, by `span!` and `watch!`. Invariant: while neither file is
//! open, `watch!` costs one test. `span!` costs one word and two tests, one at the beginning
//! of the event and one at its end.

use super::detail::{EventDetail, FirstBytes};
use super::probe::{EventName, Probe};
use super::source::{self, SourceLine};
use super::trace_files::{self, TraceFileKind, on};
use crate::env::Letter;
use crate::report;
use core::cell::Cell;

/// An event that has begun and is recorded when it ends.
#[derive(Debug)]
struct OpenEvent {
    probe: &'static Probe,
    detail: EventDetail,
    start: u64,
    /// Whether the trace gets a line.
    traced: bool,
    /// Whether the probe counts it.
    counted: bool,
    /// The source line that the trace names, and the one of the call itself.
    from: SourceLine,
    call: SourceLine,
    /// The code that the call returned.
    result: i32,
}

/// An event in progress, recorded when the value is dropped. The event is on the heap, so that
/// a call that is not recorded keeps one word.
#[derive(Debug)]
pub struct Span(Option<Box<OpenEvent>>);

impl Span {
    /// Begins an event of this probe; `detail` is called if events are recorded.
    #[inline(always)]
    pub fn new(probe: &'static Probe, detail: impl FnOnce() -> EventDetail) -> Span {
        if on() { Span(open(probe, detail())) } else { Span(None) }
    }

    /// Records the code that the call returns, and returns it.
    #[inline(always)]
    pub fn result(&mut self, code: i32) -> i32 {
        if let Some(open) = &mut self.0 {
            open.result = code;
        }
        code
    }
}

impl Drop for Span {
    #[inline(always)]
    fn drop(&mut self) {
        if let Some(open) = &self.0 {
            close(open);
        }
    }
}

#[cold]
#[inline(never)]
fn open(probe: &'static Probe, detail: EventDetail) -> Option<Box<OpenEvent>> {
    let trace = TraceFileKind::Trace.mask();
    let local = detail.moved_with().is_some_and(|node| Some(node) == report::rank());
    let traced = trace.has(probe.letter) && (!local || trace_files::traces_local());
    let counted = TraceFileKind::Stats.mask().has(probe.letter);
    if !traced && !counted {
        return None;
    }
    if traced && trace.has(Letter::D) {
        print_memory(probe, &detail, sys::clock::now_ns());
    }
    Some(Box::new(OpenEvent {
        probe,
        detail,
        start: sys::clock::now_ns(),
        traced,
        counted,
        from: source::current(),
        call: source::last_call(),
        result: 0,
    }))
}

/// Prints the addresses, the arguments and the first bytes of an event.
fn print_memory(probe: &'static Probe, detail: &EventDetail, now: u64) {
    let name = EventName(probe.function);
    let line = |text| trace_files::line(now, source::current(), Letter::D, text);
    match *detail {
        EventDetail::Move { remote, local, .. } => {
            let put = probe.letter == Letter::P;
            let data = if put { detail.first_bytes() } else { FirstBytes::default() };
            line(format_args!("{name}: remote={remote:p} local={local:p} data={data}"));
        }
        EventDetail::Message { .. } => {
            let (args, data) = (detail.arguments(), detail.first_bytes());
            line(format_args!("{name}: args={args:?} data={data}"));
        }
        _ => {}
    }
}

#[cold]
#[inline(never)]
fn close(open: &OpenEvent) {
    // Handlers may have made calls meanwhile.
    source::call(open.call);
    let took = sys::clock::now_ns().saturating_sub(open.start);
    if open.counted {
        open.probe.add(open.detail.bytes(), took);
    }
    if open.traced {
        let (name, detail) = (EventName(open.probe.function), &open.detail);
        let line = |text| trace_files::line(open.start, open.from, open.probe.letter, text);
        match open.result {
            0 => line(format_args!("{name}:{detail} took={took}ns")),
            code => line(format_args!("{name}:{detail} result={code} took={took}ns")),
        }
    }
}

/// Records an event of this probe that began at `start`, in nanoseconds of the monotonic clock,
/// and ends now.
pub fn record_since(probe: &'static Probe, start: u64) {
    if let Some(mut open) = open(probe, EventDetail::Nothing) {
        open.start = start;
        close(&open);
    }
}

/// The code that a recorded call returns; 0 is not printed.
pub trait TracedResult {
    /// The code.
    fn code(&self) -> i32 {
        0
    }
}

impl TracedResult for () {}
impl TracedResult for usize {}
impl TracedResult for u64 {}
impl TracedResult for *mut core::ffi::c_void {}
impl TracedResult for i32 {
    fn code(&self) -> i32 {
        *self
    }
}

thread_local! {
    /// Whether the call that this thread is about to make is recorded by the caller.
    static RECORDED: Cell<bool> = const { Cell::new(false) };
}

/// Makes `call` and records it as an event of this probe. Returns `None`, without making it, in
/// the call that an outer `record` of this thread is making.
#[cold]
#[inline(never)]
pub fn record<R: TracedResult>(
    probe: &'static Probe,
    detail: impl FnOnce() -> EventDetail,
    call: impl FnOnce() -> R,
) -> Option<R> {
    if RECORDED.replace(false) {
        return None;
    }
    let mut span = Span::new(probe, detail);
    RECORDED.set(true);
    let result = call();
    span.result(result.code());
    Some(result)
}

/// The first statement of a function of the client's interface. If events are recorded, it
/// calls the function, with the arguments that were given, as an event of type `$letter`, and
/// returns its result. So a call that is not recorded pays for one test.
macro_rules! watch {
    (
        $letter:ident $name:expr, $detail:expr,
        $function:ident $(::<$($any:ident),+>)? ($($argument:expr),* $(,)?)
    ) => {
        if $crate::trace::on() {
            static PROBE: $crate::trace::Probe =
                $crate::trace::Probe::new($crate::trace::Letter::$letter, $name);
            let again = move || {
                #[allow(unused_unsafe, reason = "some of the functions are safe")]
                // SAFETY: the function that contains this, with its own arguments: what its
                // caller owes holds for this call too.
                unsafe {
                    $function $(::<$($any),+>)? ($($argument),*)
                }
            };
            if let Some(result) = $crate::trace::record(&PROBE, move || $detail, again) {
                return result;
            }
        }
    };
}
pub(crate) use watch;

/// Begins an event of type `$letter` of the client's function `$function`; `$detail` is
/// evaluated if events are recorded.
macro_rules! span {
    ($letter:ident $function:expr) => {
        $crate::trace::span!($letter $function, $crate::trace::EventDetail::Nothing)
    };
    ($letter:ident $function:expr, $detail:expr) => {{
        static PROBE: $crate::trace::Probe =
            $crate::trace::Probe::new($crate::trace::Letter::$letter, $function);
        $crate::trace::Span::new(&PROBE, || $detail)
    }};
}
pub(crate) use span;
