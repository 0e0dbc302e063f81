//! Tracing and statistics: what clients call, how much it moves, how long it takes and from which line of their source;
//! GASNET_TRACEFILE, GASNET_STATSFILE and what belongs to them. docs/guide/tracing.md describes the files.
//!
//! `capi` opens an event where a client's call enters (`span!`), `runtime` where a handler runs; it is told when the call returns. Off
//! unless one of the files is asked of this process; then the inline paths of the headers are closed (see `capi::fast`), so that
//! nothing is missed. Lines are put together on the stack of the caller and appended to the buffer of the process, which is
//! written when it is full and at every way out that lets us (`runtime::exit`).

pub mod output;
pub mod source;
pub mod span;

pub use crate::env::{Letter, LetterMask};
pub use span::{EventDetail, Probe, Span, ended, tell};
pub(crate) use span::{span, watch};

use crate::env::{self, FreeText, Letters, OptionalVariable, Ranks};
use crate::report;
use core::fmt::{self, Write};
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use once_cell::race::OnceBox;
use output::TraceOutput;

/// A file is open.
static ON: AtomicBool = AtomicBool::new(false);
/// What is traced and what is counted; empty where the file is not open.
static TRACE_MASK: AtomicU32 = AtomicU32::new(0);
static STATS_MASK: AtomicU32 = AtomicU32::new(0);
/// Puts and gets to the process itself are traced.
static LOCAL: AtomicBool = AtomicBool::new(true);
static TRACE: OnceBox<TraceOutput> = OnceBox::new();
static STATS: OnceBox<TraceOutput> = OnceBox::new();
/// When it began, nanoseconds of the monotonic clock.
static START: AtomicU64 = AtomicU64::new(0);
/// Writes what the client adds to the statistics, a `fn()`; null for nothing.
static CLIENT_STATISTICS: AtomicPtr<()> = AtomicPtr::new(core::ptr::null_mut());

/// Whether anything is watched.
#[inline(always)]
pub fn on() -> bool {
    ON.load(Ordering::Relaxed)
}

fn masks() -> (LetterMask, LetterMask) {
    (
        LetterMask(TRACE_MASK.load(Ordering::Relaxed)),
        LetterMask(STATS_MASK.load(Ordering::Relaxed)),
    )
}

fn traces_local() -> bool {
    LOCAL.load(Ordering::Relaxed)
}

/// Which of the two files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceFileKind {
    /// GASNET_TRACEFILE
    Trace,
    /// GASNET_STATSFILE
    Stats,
}

impl TraceFileKind {
    fn variables(
        self,
    ) -> (OptionalVariable<FreeText>, OptionalVariable<Ranks>, OptionalVariable<Letters>) {
        match self {
            TraceFileKind::Trace => (env::TRACEFILE, env::TRACENODES, env::TRACEMASK),
            TraceFileKind::Stats => (env::STATSFILE, env::STATSNODES, env::STATSMASK),
        }
    }

    fn mask_word(self) -> &'static AtomicU32 {
        match self {
            TraceFileKind::Trace => &TRACE_MASK,
            TraceFileKind::Stats => &STATS_MASK,
        }
    }

    fn file(self) -> &'static OnceBox<TraceOutput> {
        match self {
            TraceFileKind::Trace => &TRACE,
            TraceFileKind::Stats => &STATS,
        }
    }

    /// Whether the file is open.
    pub fn is_on(self) -> bool {
        self.file().get().is_some()
    }

    /// What it holds now; empty where the file is not open.
    pub fn mask(self) -> LetterMask {
        LetterMask(self.mask_word().load(Ordering::Relaxed))
    }

    /// From now on it holds this; nothing where the file is not open.
    pub fn set_mask(self, mask: LetterMask) {
        if self.is_on() {
            self.mask_word().store(mask.0, Ordering::Relaxed);
        }
    }

    /// Opens the file if it is asked of this rank. Ends the job if it cannot be written.
    fn open(self, rank: u32) {
        let (file, ranks, mask) = self.variables();
        let Some(name) = file.get() else { return };
        if ranks.get().is_some_and(|ranks| !ranks.has(rank)) {
            return;
        }
        let name = name.replace('%', &rank.to_string());
        let at_once = self == TraceFileKind::Trace && env::TRACEFLUSH.get();
        let output = TraceOutput::open(&name, at_once).unwrap_or_else(|e| {
            report::fatal(
                format_args!("{}: {name} cannot be written: {e}", file.name()),
                format_args!(
                    "Name a file in a directory where you may write, with % for the rank, or unset it."
                ),
            )
        });
        if self.file().set(Box::new(output)).is_ok() {
            let letters = mask.get().unwrap_or(LetterMask::ALL);
            self.mask_word().store(letters.0, Ordering::Relaxed);
        }
    }
}

/// Opens the files that are asked of this rank. Called by `gasnet_init` before the processes meet: who opens a file empties it.
pub fn open(rank: u32) {
    LOCAL.store(env::TRACELOCAL.get(), Ordering::Relaxed);
    TraceFileKind::Trace.open(rank);
    TraceFileKind::Stats.open(rank);
    START.store(sys::clock::now_ns(), Ordering::Relaxed);
    ON.store(TraceFileKind::Trace.is_on() || TraceFileKind::Stats.is_on(), Ordering::Relaxed);
}

/// Nothing is watched from now on, in a forked child.
pub fn forget() {
    ON.store(false, Ordering::Relaxed);
    TRACE_MASK.store(0, Ordering::Relaxed);
    STATS_MASK.store(0, Ordering::Relaxed);
}

/// Whether puts and gets to the process itself are traced.
pub fn local() -> bool {
    on() && traces_local()
}

/// See [`local`].
pub fn set_local(yes: bool) {
    LOCAL.store(yes, Ordering::Relaxed);
}

/// Has `hook` called when the statistics are written.
pub fn on_statistics(hook: fn()) {
    CLIENT_STATISTICS.store(hook as *mut (), Ordering::Release);
}

/// Adds a line to the trace, stamped with this time of the monotonic clock and this line of the client's source.
fn line(ns: u64, from: source::SourceLine, letter: Letter, text: fmt::Arguments<'_>) {
    let Some(output) = TRACE.get() else { return };
    let thread = source::thread();
    let mut line = report::MessageLine::new();
    let (rank, s, rest) = (report::rank().unwrap_or(0), ns / 1_000_000_000, ns % 1_000_000_000);
    let _ = write!(line, "{rank}({thread}) {s}.{rest:09}> ");
    if let Some((file, number)) =
        from.name().filter(|_| TraceFileKind::Trace.mask().has(Letter::N))
    {
        let _ = write!(line, "[{file}:{number}] ");
    }
    let _ = writeln!(line, "({}) {text}", letter.as_str());
    output.add(thread, line.bytes());
}

/// Tells something in the trace, if its mask has the letter.
pub fn note(letter: Letter, text: fmt::Arguments<'_>) {
    if on() && TraceFileKind::Trace.mask().has(letter) {
        line(sys::clock::now_ns(), source::current(), letter, text);
    }
}

/// Adds a line to the statistics.
fn statistic(letter: Letter, text: fmt::Arguments<'_>) {
    let Some(output) = STATS.get() else { return };
    let mut line = report::MessageLine::new();
    let _ = writeln!(line, "{}> ({}) {text}", report::rank().unwrap_or(0), letter.as_str());
    output.add(source::thread(), line.bytes());
}

/// Adds a line of the client's to the statistics, if their mask has H.
pub fn client_statistic(text: &str) {
    if TraceFileKind::Stats.mask().has(Letter::H) {
        statistic(Letter::H, format_args!("{}", text.trim_end_matches('\n')));
    }
}

/// Writes the statistics and what is left of the trace, when the process leaves; async-signal-safe but for what the client has
/// asked to be called. What is called later is not watched.
pub fn close() {
    if !ON.swap(false, Ordering::AcqRel) {
        return;
    }
    if let Some(output) = STATS.get() {
        let (mask, ns) =
            (TraceFileKind::Stats.mask(), sys::clock::now_ns() - START.load(Ordering::Relaxed));
        statistic(Letter::I, format_args!("STATISTICS: mask={mask} ns={ns}"));
        for letter in Letter::ALL.into_iter().filter(|l| mask.has(*l)) {
            span::statistics(letter, |text| statistic(letter, text));
        }
        let hook = CLIENT_STATISTICS.swap(core::ptr::null_mut(), Ordering::AcqRel);
        if !hook.is_null() {
            // SAFETY: CLIENT_STATISTICS only ever holds null or a `fn()` stored by `on_statistics`.
            let hook: fn() = unsafe { core::mem::transmute(hook) };
            hook();
        }
        output.finish(source::thread());
    }
    if let Some(output) = TRACE.get() {
        line(sys::clock::now_ns(), source::current(), Letter::I, format_args!("END:"));
        output.finish(source::thread());
    }
}
