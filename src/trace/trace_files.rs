//! The two files, trace and statistics: which types of events each holds, how they are opened,
//! and how lines are added.
//!
//! Called by `gasnet_init`, by spans, and when the process exits. Invariant: a mask is empty
//! while its file is not open.

use super::output::TraceOutput;
use super::{probe, source};
use crate::env::{self, FreeText, Letter, LetterMask, Letters, OptionalVariable, Ranks};
use crate::one_line::{LineBegin, OneLine};
use crate::report;
use core::fmt::{self, Write};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use once_cell::race::OnceBox;
use std::sync::OnceLock;

/// Whether a file is open.
static ON: AtomicBool = AtomicBool::new(false);
static TRACE_MASK: AtomicU32 = AtomicU32::new(0);
static STATS_MASK: AtomicU32 = AtomicU32::new(0);
/// Whether puts and gets of a rank to itself are traced.
static LOCAL: AtomicBool = AtomicBool::new(true);
static TRACE: OnceBox<TraceOutput> = OnceBox::new();
static STATS: OnceBox<TraceOutput> = OnceBox::new();
/// When the files were opened, in nanoseconds of the monotonic clock.
static START: AtomicU64 = AtomicU64::new(0);
/// Adds the client's own lines to the statistics.
static CLIENT_STATISTICS: OnceLock<fn()> = OnceLock::new();
/// Passes each line of the network's counters.
static NETWORK_STATISTICS: OnceLock<fn(NetworkLine<'_>)> = OnceLock::new();

/// What is called with each line of the network's counters.
pub type NetworkLine<'a> = &'a mut dyn FnMut(fmt::Arguments<'_>);

/// Whether events are recorded.
#[inline(always)]
pub fn on() -> bool {
    ON.load(Ordering::Relaxed)
}

/// Whether the trace holds puts and gets of a rank to itself.
pub(super) fn traces_local() -> bool {
    LOCAL.load(Ordering::Relaxed)
}

/// One of the two files.
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

    fn output(self) -> &'static OnceBox<TraceOutput> {
        match self {
            TraceFileKind::Trace => &TRACE,
            TraceFileKind::Stats => &STATS,
        }
    }

    /// Whether the file is open.
    pub fn is_on(self) -> bool {
        self.output().get().is_some()
    }

    /// The types of events that the file holds now; none if it is not open.
    pub fn mask(self) -> LetterMask {
        LetterMask(self.mask_word().load(Ordering::Relaxed))
    }

    /// Sets the types of events that the file holds from now on. Has no effect if it is not open.
    pub fn set_mask(self, mask: LetterMask) {
        if self.is_on() {
            self.mask_word().store(mask.0, Ordering::Relaxed);
        }
    }

    /// Opens the file if the environment names one for this rank. Ends the job if it cannot be
    /// written.
    fn open(self, rank: u32, size: u32) {
        let (file, ranks, mask) = self.variables();
        let Some(path) = file.file_of(rank) else { return };
        let named = ranks.get();
        let is_idle = named.as_ref().is_some_and(|named| !named.has_below(size));
        if rank == 0 && is_idle && !env::QUIET.get() {
            report::warn(
                format_args!(
                    "{} names no rank of this job: no rank writes the file of {}",
                    ranks.name(),
                    file.name()
                ),
                format_args!("Name ranks from 0 to {}, or unset it.", size - 1),
            );
        }
        if named.is_some_and(|named| !named.has(rank)) {
            return;
        }
        let at_once = self == TraceFileKind::Trace && env::TRACEFLUSH.get();
        let output = TraceOutput::open(file.name(), &path, at_once).unwrap_or_else(|e| {
            // With `%`, so that all ranks print the same.
            let wanted = file.get().unwrap_or_default();
            report::fatal(
                format_args!("{}: {} cannot be written: {e}", file.name(), LineBegin(&wanted)),
                format_args!(
                    "Name a file in a directory where you may write, with % for the rank, or unset it."
                ),
            )
        });
        if self.output().set(Box::new(output)).is_ok() {
            self.mask_word().store(mask.get().unwrap_or(LetterMask::ALL).0, Ordering::Relaxed);
        }
    }
}

/// Opens the files that the environment names for this rank of a job of `size` ranks, empty.
/// Called by `gasnet_init` before the ranks meet, so that a rank that shares a file does not empty
/// it later.
pub fn open(rank: u32, size: u32) {
    LOCAL.store(env::TRACELOCAL.get(), Ordering::Relaxed);
    TraceFileKind::Trace.open(rank, size);
    TraceFileKind::Stats.open(rank, size);
    START.store(sys::clock::now_ns(), Ordering::Relaxed);
    ON.store(TraceFileKind::Trace.is_on() || TraceFileKind::Stats.is_on(), Ordering::Relaxed);
}

/// Stops recording, in a forked child.
pub fn forget() {
    ON.store(false, Ordering::Relaxed);
    TRACE_MASK.store(0, Ordering::Relaxed);
    STATS_MASK.store(0, Ordering::Relaxed);
}

/// Whether puts and gets of a rank to itself are traced now.
pub fn local() -> bool {
    on() && traces_local()
}

/// Sets whether puts and gets of a rank to itself are traced.
pub fn set_local(yes: bool) {
    LOCAL.store(yes, Ordering::Relaxed);
}

/// Sets a function that is called when the statistics are written. The first call counts: whether
/// this is it.
pub fn on_statistics(hook: fn()) -> bool {
    CLIENT_STATISTICS.set(hook).is_ok()
}

/// Sets the function that passes each line of the network's counters when the statistics are
/// written. The first call counts.
pub fn on_network_statistics(lines: fn(NetworkLine<'_>)) {
    let _ = NETWORK_STATISTICS.set(lines);
}

/// A line of the trace, stamped with this time of the monotonic clock and this source line.
fn stamped(
    ns: u64,
    from: source::SourceLine,
    letter: Letter,
    text: fmt::Arguments<'_>,
) -> report::MessageLine {
    let thread = source::thread();
    let mut line = report::MessageLine::new();
    let (rank, s, rest) = (report::rank().unwrap_or(0), ns / 1_000_000_000, ns % 1_000_000_000);
    let _ = write!(line, "{rank}({thread}) {s}.{rest:09}> ");
    let lines_wanted = TraceFileKind::Trace.mask().has(Letter::N);
    if let Some((file, number)) = from.name().filter(|_| lines_wanted) {
        let _ = write!(line, "[{}:{number}] ", OneLine(file));
    }
    let _ = writeln!(line, "({}) {}", letter.as_str(), OneLine(text));
    line
}

/// Adds a line to the trace, stamped with this time of the monotonic clock and this source line.
pub(super) fn line(ns: u64, from: source::SourceLine, letter: Letter, text: fmt::Arguments<'_>) {
    if let Some(output) = TRACE.get() {
        output.add(source::thread(), stamped(ns, from, letter, text).bytes());
    }
}

/// Adds a line to the trace if its mask has the letter.
pub fn note(letter: Letter, text: fmt::Arguments<'_>) {
    if on() && TraceFileKind::Trace.mask().has(letter) {
        line(sys::clock::now_ns(), source::current(), letter, text);
    }
}

/// Adds a line to the statistics.
fn statistic(letter: Letter, text: fmt::Arguments<'_>) {
    let Some(output) = STATS.get() else { return };
    let mut line = report::MessageLine::new();
    let rank = report::rank().unwrap_or(0);
    let _ = writeln!(line, "{rank}> ({}) {}", letter.as_str(), OneLine(text));
    output.add(source::thread(), line.bytes());
}

/// Adds a line of the client to the statistics, if their mask has H. U is not masked.
pub fn client_statistic(letter: Letter, text: &str) {
    if letter == Letter::U || TraceFileKind::Stats.mask().has(letter) {
        statistic(letter, format_args!("{}", text.trim_end_matches('\n')));
    }
}

/// Nothing was counted before the statistics that were written last.
static ANEW: AtomicBool = AtomicBool::new(true);

/// Adds what was counted to the statistics; with `reset` everything is counted from 0 afterwards.
fn counted(reset: bool) {
    let mask = TraceFileKind::Stats.mask();
    let ns = sys::clock::now_ns() - START.load(Ordering::Relaxed);
    let anew = u8::from(ANEW.swap(reset, Ordering::Relaxed));
    statistic(Letter::I, format_args!("STATISTICS: mask={mask} ns={ns} anew={anew}"));
    for letter in Letter::ALL {
        let is_wanted = mask.has(letter);
        if is_wanted || reset {
            probe::statistics(letter, reset, |text| {
                if is_wanted {
                    statistic(letter, text);
                }
            });
        }
    }
    if let Some(lines) = NETWORK_STATISTICS.get().filter(|_| mask.has(Letter::C)) {
        lines(&mut |text| statistic(Letter::C, text));
    }
}

/// Writes the statistics now; with `reset` everything is counted from 0 afterwards.
pub fn dump_statistics(reset: bool) {
    if on() && TraceFileKind::Stats.is_on() {
        counted(reset);
        if let Some(hook) = CLIENT_STATISTICS.get() {
            hook();
        }
    }
}

/// Whether the client's lines of the statistics are left out.
static OMIT_CLIENT: AtomicBool = AtomicBool::new(false);

/// The process exits in the handler of a fatal signal, where no function of the client may run.
pub fn omit_client_statistics() {
    OMIT_CLIENT.store(true, Ordering::Relaxed);
}

/// The process is about to exit: from now on no thread waits long for another that adds a line.
pub fn leave() {
    [&TRACE, &STATS].into_iter().filter_map(OnceBox::get).for_each(TraceOutput::leave);
}

/// Writes the statistics and the rest of the trace when the process exits, and stops recording.
/// Async-signal-safe.
pub fn close() {
    if !ON.swap(false, Ordering::AcqRel) {
        return;
    }
    if let Some(output) = STATS.get() {
        counted(false);
        output.finish(source::thread(), b"");
    }
    if let Some(output) = TRACE.get() {
        let (now, from) = (sys::clock::now_ns(), source::current());
        let mut end = stamped(now, from, Letter::I, format_args!("END:"));
        output.finish(source::thread(), end.bytes());
    }
}

/// Adds the client's lines to the statistics when the process exits. Called when all else is
/// written: the client's function may not return.
pub fn close_client_statistics() {
    if let (Some(output), Some(hook)) = (STATS.get(), CLIENT_STATISTICS.get())
        && !OMIT_CLIENT.load(Ordering::Relaxed)
    {
        hook();
        output.finish(source::thread(), b"");
    }
}
