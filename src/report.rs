//! Messages of the library on standard error: a line that says what happened, a line that says
//! what to do.
//!
//! Called by every layer. Invariant: a message is formatted on the stack and written by one
//! `write`. So lines of several ranks do not mix, and a message about missing memory needs
//! none.

use core::fmt::{self, Write};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use sys::file::WriteError;

/// Rank that messages name; `u32::MAX` before it is known.
static RANK: AtomicU32 = AtomicU32::new(u32::MAX);
/// Ends the job after a fatal message; until it is set, `_exit` ends the process.
static EXIT: OnceLock<fn(i32) -> !> = OnceLock::new();
/// Waits a moment for the end of a job that is already ending.
static AWAIT_END: OnceLock<fn()> = OnceLock::new();
/// Runs between a fatal message and the end of the job.
static AFTER_FATAL: OnceLock<fn()> = OnceLock::new();
/// Whether another rank prints the error with this hash.
static IS_FOLDED: OnceLock<fn(u32) -> bool> = OnceLock::new();
/// What a report of a crash advises that has no explanation.
static CRASH_ADVICE: Mutex<Option<&'static str>> = Mutex::new(None);
/// The text of the [`CrashHint`] that exists, if one does.
static CRASH_HINT: Mutex<Option<&'static str>> = Mutex::new(None);

/// Sets what runs between a fatal message and the end of the job: a backtrace, a pause for a
/// debugger. The first call counts, as with the other hooks.
pub fn set_after_fatal(hook: fn()) {
    let _ = AFTER_FATAL.set(hook);
}

/// Sets the rank that later messages name.
pub fn set_rank(rank: u32) {
    RANK.store(rank, Ordering::Relaxed);
}

/// The rank that messages name, once it is known.
pub fn rank() -> Option<u32> {
    Some(RANK.load(Ordering::Relaxed)).filter(|r| *r != u32::MAX)
}

/// Sets what ends the job after a fatal message.
pub fn set_exit(exit: fn(i32) -> !) {
    let _ = EXIT.set(exit);
}

/// Sets what waits a moment for the end of the job, and does not return if the job ends meanwhile.
pub fn set_await_end(await_end: fn()) {
    let _ = AWAIT_END.set(await_end);
}

/// Sets what finds out whether another rank prints the error with this hash; async-signal-safe.
pub fn set_is_folded(is_folded: fn(u32) -> bool) {
    let _ = IS_FOLDED.set(is_folded);
}

/// Sets what a report of a crash advises that has no explanation.
pub fn set_crash_advice(advice: Option<&'static str>) {
    *CRASH_ADVICE.lock().unwrap_or_else(PoisonError::into_inner) = advice;
}

/// An explanation that is printed if this process crashes while the value exists.
#[derive(Debug)]
pub struct CrashHint(());

impl CrashHint {
    /// Sets the explanation. One value may exist at a time. The text is never freed, since a
    /// signal handler may read it at any time.
    pub fn new(explanation: String) -> CrashHint {
        *CRASH_HINT.lock().unwrap_or_else(PoisonError::into_inner) = Some(explanation.leak());
        CrashHint(())
    }
}

impl Drop for CrashHint {
    fn drop(&mut self) {
        *CRASH_HINT.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// The explanation of a crash that happens now; async-signal-safe.
pub fn crash_hint() -> Option<&'static str> {
    CRASH_HINT.try_lock().ok().and_then(|hint| *hint)
}

/// Text that is put together on the stack. What exceeds its size is cut off; the last line
/// still ends.
#[derive(Debug)]
pub struct MessageLine {
    buf: [u8; 1024],
    len: usize,
}

impl MessageLine {
    /// No text yet.
    pub fn new() -> MessageLine {
        MessageLine { buf: [0; 1024], len: 0 }
    }

    /// Adds text of another source.
    pub fn push(&mut self, text: &[u8]) {
        let n = text.len().min(self.buf.len() - self.len);
        self.buf[self.len..self.len + n].copy_from_slice(&text[..n]);
        self.len += n;
    }

    /// The text so far.
    pub fn bytes(&mut self) -> &[u8] {
        if self.len == self.buf.len() {
            self.buf[self.len - 1] = b'\n';
        }
        &self.buf[..self.len]
    }
}

impl Default for MessageLine {
    fn default() -> MessageLine {
        MessageLine::new()
    }
}

impl Write for MessageLine {
    fn write_str(&mut self, s: &str) -> fmt::Result {
        self.push(s.as_bytes());
        Ok(())
    }
}

/// Hash of the text that is written to it (Fowler, Noll and Vo, FNV-1a).
struct TextHash(u32);

impl Write for TextHash {
    fn write_str(&mut self, s: &str) -> fmt::Result {
        self.0 = s.bytes().fold(self.0, |hash, c| (hash ^ u32::from(c)).wrapping_mul(0x0100_0193));
        Ok(())
    }
}

/// Kinds of messages that ranks print once.
const WARNING: &str = "GASNet WARNING";
const FATAL: &str = "FATAL ERROR";
const CRASH: &str = "Caught a fatal signal";

/// How often this process prints a warning with one text.
const PRINTED: u32 = 10;

/// Counts texts by their hashes. One that finds no place is not counted.
struct TextCounts([AtomicU64; 64]);

impl TextCounts {
    const fn new() -> TextCounts {
        TextCounts([const { AtomicU64::new(0) }; 64])
    }

    /// Counts a text: how often it has been counted, this time included; 1 without a place.
    fn count(&self, hash: u32) -> u32 {
        for place in &self.0 {
            // A place has the hash in its upper half; 0 is free.
            let claimed = u64::from(hash) << 32 | 1;
            match place.compare_exchange(0, claimed, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return 1,
                Err(found) if (found >> 32) as u32 == hash => {
                    let more = |word: u64| (word as u32 != u32::MAX).then(|| word + 1);
                    let before = place.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more);
                    return before.map_or(u32::MAX, |word| word as u32 + 1);
                }
                Err(_) => {}
            }
        }
        1
    }
}

static WARNINGS: TextCounts = TextCounts::new();

fn hash_of(kind: &str, cause: fmt::Arguments<'_>, remedy: Option<fmt::Arguments<'_>>) -> u32 {
    let mut hash = TextHash(0x811c_9dc5);
    let _ = write!(hash, "{kind}\n{cause}\n");
    if let Some(remedy) = remedy {
        let _ = write!(hash, "{remedy}");
    }
    hash.0
}

/// Whether another rank prints the error with this hash.
fn is_folded(hash: u32) -> bool {
    IS_FOLDED.get().is_some_and(|is_folded| is_folded(hash))
}

/// Prints a warning or an error, unless another rank prints the same.
fn emit_once(kind: &str, cause: fmt::Arguments<'_>, remedy: Option<fmt::Arguments<'_>>) {
    if !is_folded(hash_of(kind, cause, remedy)) {
        emit(kind, cause, remedy);
    }
}

fn emit(kind: &str, cause: fmt::Arguments<'_>, remedy: Option<fmt::Arguments<'_>>) {
    let mut line = MessageLine::new();
    let _ = match RANK.load(Ordering::Relaxed) {
        u32::MAX => writeln!(line, "{CAUSE}{kind}: {cause}"),
        rank => writeln!(line, "{CAUSE}{kind} (proc {rank}): {cause}"),
    };
    if let Some(remedy) = remedy {
        let _ = writeln!(line, "{REMEDY}{remedy}");
    }
    sys::stdio::write_stderr(line.bytes());
}

/// A warning or an error that a rank of another host has printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrintedError {
    /// That rank.
    pub rank: u32,
    /// The hash by which ranks find that they have the same error.
    pub hash: u32,
    /// The bytes of its text lines.
    pub len: usize,
    /// A second text line says what to do.
    pub has_remedy: bool,
}

/// What stands at the beginning of whole text lines that a rank has printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrintedLine {
    /// An error, with its remedy if it has one.
    Error(PrintedError),
    /// Another text line, of this many bytes.
    Other(usize),
}

/// Prefixes of what [`emit`] prints.
const CAUSE: &str = "*** ";
const REMEDY: &str = "***   ";

/// The parts of the first line of an error, after its prefix.
fn kind_cause_rank(line: &str) -> Option<(&str, &str, u32)> {
    if let Some((CRASH, rest)) = line.split_once(": ") {
        let (signal, of) = rest.split_once(" on rank ")?;
        return Some((CRASH, signal, of.split_once('/')?.0.parse().ok()?));
    }
    let (kind, rest) = line.split_once(" (proc ")?;
    let (rank, cause) = rest.split_once("): ")?;
    [WARNING, FATAL].contains(&kind).then_some((kind, cause, rank.parse().ok()?))
}

impl PrintedLine {
    /// What is at the beginning of whole text lines; `None` if there is none.
    pub fn first(lines: &[u8]) -> Option<PrintedLine> {
        let line = |from: &[u8]| from.iter().position(|&c| c == b'\n').map(|end| end + 1);
        let end = line(lines)?;
        let text = |bytes| core::str::from_utf8(bytes).ok()?.strip_suffix('\n');
        let error = || {
            let (kind, cause, rank) = kind_cause_rank(text(&lines[..end])?.strip_prefix(CAUSE)?)?;
            let next = line(&lines[end..]).map_or(end, |next| end + next);
            let remedy = text(&lines[end..next]).and_then(|next| next.strip_prefix(REMEDY));
            let hash = match remedy {
                Some(remedy) => {
                    hash_of(kind, format_args!("{cause}"), Some(format_args!("{remedy}")))
                }
                None => hash_of(kind, format_args!("{cause}"), None),
            };
            let has_remedy = remedy.is_some();
            let len = if has_remedy { next } else { end };
            Some(PrintedLine::Error(PrintedError { rank, hash, len, has_remedy }))
        };
        error().or(Some(PrintedLine::Other(end)))
    }
}

/// Prints a warning. The job goes on. A text that this process has printed ten times is
/// not printed again.
pub fn warn(cause: fmt::Arguments<'_>, remedy: fmt::Arguments<'_>) {
    match WARNINGS.count(hash_of(WARNING, cause, Some(remedy))) {
        ..PRINTED => emit_once(WARNING, cause, Some(remedy)),
        PRINTED => emit_once(
            WARNING,
            cause,
            Some(format_args!("{remedy} (Printed {PRINTED} times, and not again.)")),
        ),
        _ => {}
    }
}

/// Prints a line of information.
pub fn note(cause: fmt::Arguments<'_>) {
    emit("GASNet", cause, None);
}

/// Prints a line as it is, after three stars; async-signal-safe.
pub fn line(text: fmt::Arguments<'_>) {
    let mut line = MessageLine::new();
    let _ = writeln!(line, "*** {text}");
    sys::stdio::write_stderr(line.bytes());
}

/// Prints that a signal ends this rank of a job of `size` ranks, and what explains it or helps to
/// find out. Prints nothing if another rank prints the same. Async-signal-safe.
pub fn crash(
    signal: fmt::Arguments<'_>,
    rank: u32,
    size: u32,
    explanation: Option<&dyn fmt::Display>,
) {
    let mut line = MessageLine::new();
    let _ = writeln!(line, "{CAUSE}{CRASH}: {signal} on rank {rank}/{size}");
    let advice = CRASH_ADVICE.try_lock().ok().and_then(|advice| *advice);
    let advice = advice.as_ref().map(|advice| advice as &dyn fmt::Display);
    let hash = match explanation.or(advice) {
        Some(remedy) => {
            let _ = writeln!(line, "{REMEDY}{remedy}");
            hash_of(CRASH, signal, Some(format_args!("{remedy}")))
        }
        None => hash_of(CRASH, signal, None),
    };
    if !is_folded(hash) {
        sys::stdio::write_stderr(line.bytes());
    }
}

/// Reports that the system has not taken all of a file that a variable names.
/// Async-signal-safe.
pub fn incomplete_file(variable: &str, path: impl fmt::Display, e: WriteError) {
    if e.is_full() {
        line(format_args!(
            "{variable}: {path} is not complete: the file system took no more: {e}"
        ));
        line(format_args!("  Name a file in a folder with more space."));
    } else {
        line(format_args!("{variable}: {path} is not complete: it cannot be written: {e}"));
        line(format_args!("  Name another file, or raise the limit of files (ulimit -f)."));
    }
}

/// Prints why the caller is about to end the job. If another thread has failed before, the call
/// does not return.
pub fn fatal_line(cause: fmt::Arguments<'_>) {
    print_failure(cause, None);
}

/// As [`fatal`], for an error that also occurs when another rank has died. The supervisor
/// reports such a death and ends the job; this prints its message only if the job does not end.
pub fn fatal_unless_ending(cause: fmt::Arguments<'_>, remedy: fmt::Arguments<'_>) -> ! {
    if let Some(await_end) = AWAIT_END.get() {
        await_end();
    }
    fatal(cause, remedy)
}

const OVERWRITTEN: &str = "A rank of this host has overwritten memory that the ranks share, with a wild pointer perhaps: any of them can.";

/// As [`fatal`], for what no correct process writes to memory that the ranks of a host share.
#[cold]
pub fn damaged(cause: fmt::Arguments<'_>) -> ! {
    fatal(cause, format_args!("{OVERWRITTEN}"))
}

/// Prints what [`damaged`] prints; the caller ends the job. Async-signal-safe.
#[cold]
pub fn damage_line(cause: fmt::Arguments<'_>) {
    emit_once(FATAL, cause, Some(format_args!("{OVERWRITTEN}")));
}

/// The kernel's number of the thread whose error ends this process; 0 before one has.
static FAILING: AtomicU32 = AtomicU32::new(0);
static ERRORS: TextCounts = TextCounts::new();

/// Makes the calling thread the one whose error ends this process; false if it is another.
/// Async-signal-safe.
pub fn claim_failure() -> bool {
    let me = sys::thread::tid();
    match FAILING.compare_exchange(0, me, Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) => true,
        Err(first) => first == me,
    }
}

/// Prints the error of a thread. Of several that fail, the first returns and ends the process;
/// another prints an error that differs, and waits for the end.
fn print_failure(cause: fmt::Arguments<'_>, remedy: Option<fmt::Arguments<'_>>) {
    let is_first = claim_failure();
    if ERRORS.count(hash_of(FATAL, cause, remedy)) == 1 {
        emit_once(FATAL, cause, remedy);
    }
    if is_first {
        return;
    }
    loop {
        sys::clock::sleep_ns(1_000_000_000);
    }
}

/// Prints the cause and the remedy, and ends the job with exit code 1.
pub fn fatal(cause: fmt::Arguments<'_>, remedy: fmt::Arguments<'_>) -> ! {
    print_failure(cause, Some(remedy));
    if let Some(hook) = AFTER_FATAL.get() {
        hook();
    }
    match EXIT.get() {
        Some(exit) => exit(1),
        None => sys::exit_now(1),
    }
}

/// What to do about a call, in the words of the interface that its function belongs to.
pub fn remedy_of<'a>(function: &str, gasnet_1: &'a str, gasnet_ex: &'a str) -> &'a str {
    if function.starts_with("gex_") { gasnet_ex } else { gasnet_1 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_printed_has_the_hash_of_its_text() {
        let first = |text: &str| PrintedLine::first(text.as_bytes());
        let error = |rank, hash, len, has_remedy| {
            Some(PrintedLine::Error(PrintedError { rank, hash, len, has_remedy }))
        };
        let with = hash_of(FATAL, format_args!("a (b): c"), Some(format_args!("do d")));
        let text = "*** FATAL ERROR (proc 70): a (b): c\n***   do d\n";
        assert_eq!(first(&format!("{text}***   e\n")), error(70, with, text.len(), true));
        let alone = hash_of(WARNING, format_args!("w"), None);
        let text = "*** GASNet WARNING (proc 0): w\n";
        assert_eq!(first(text), error(0, alone, text.len(), false));
        let more = format!("{text}*** next\n");
        assert_eq!(first(&more), error(0, alone, text.len(), false));
        let crash = hash_of(CRASH, format_args!("SIGBUS(7)"), Some(format_args!("less")));
        let text = "*** Caught a fatal signal: SIGBUS(7) on rank 3/64\n***   less\n";
        assert_eq!(first(text), error(3, crash, text.len(), true));
        for other in [
            "*** Caught a fatal signal: SIGBUS(7)\n",
            "*** Caught a signal: SIGINT(2) on rank 0/2\n",
            "*** FATAL ERROR: no rank\n",
            "*** GASNet (proc 1): a note\n",
            "*** FATAL ERROR (proc x): no number\n",
            "[1] *** FATAL ERROR (proc 1): prefixed\n",
            "\n",
        ] {
            assert_eq!(first(other), Some(PrintedLine::Other(other.len())), "{other}");
        }
        assert_eq!(first("*** FATAL ERROR (proc 1): no end"), None);
    }

    /// Any bytes are consumed whole, line by line.
    fn any_lines(input: &[u8]) {
        let mut rest = input;
        while let Some(line) = PrintedLine::first(rest) {
            let (PrintedLine::Error(PrintedError { len, .. }) | PrintedLine::Other(len)) = line;
            assert!(len > 0 && rest[len - 1] == b'\n');
            rest = &rest[len..];
        }
        assert!(!rest.contains(&b'\n'));
    }

    #[test]
    fn fuzz_printed_line() {
        fuzz::check("printed_line", 20_000, any_lines);
    }

    #[test]
    fn texts_are_counted_one_by_one() {
        let counts = TextCounts::new();
        for time in 1..=PRINTED + 2 {
            assert_eq!(counts.count(7), time);
            assert_eq!(counts.count(0), time);
        }
        // No more than 64 have a place.
        for hash in 100..200 {
            counts.count(hash);
        }
        assert_eq!(counts.count(100), 2);
        assert_eq!(counts.count(199), 1);
        assert_eq!(counts.count(7), PRINTED + 3);
    }
}
