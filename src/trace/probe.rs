//! Counters of events: one [`Probe`] for each kind of event, usually a function of the client's
//! interface.
//!
//! Spans add to probes; the statistics read them at exit. Invariant: every counter is an atomic
//! word, so the statistics may lag behind by the calls that threads are in, and never block
//! them.

use crate::env::Letter;
use core::fmt::{self, Write};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use once_cell::race::OnceRef;

/// Sum, least and greatest of a number.
#[derive(Debug)]
struct Tally {
    sum: AtomicU64,
    least: AtomicU64,
    most: AtomicU64,
}

impl Tally {
    const fn new() -> Tally {
        Tally { sum: AtomicU64::new(0), least: AtomicU64::new(u64::MAX), most: AtomicU64::new(0) }
    }

    fn add(&self, n: u64) {
        self.sum.fetch_add(n, Ordering::Relaxed);
        self.least.fetch_min(n, Ordering::Relaxed);
        self.most.fetch_max(n, Ordering::Relaxed);
    }

    /// Sum, least and greatest; 0 if nothing was added. With `reset` they are set back.
    fn read(&self, reset: bool) -> (u64, u64, u64) {
        let (sum, most) = (taken(&self.sum, 0, reset), taken(&self.most, 0, reset));
        let least = taken(&self.least, u64::MAX, reset);
        (sum, if least == u64::MAX { 0 } else { least }, most)
    }
}

/// The value of a word, which becomes `first` with `reset`.
fn taken(word: &AtomicU64, first: u64, reset: bool) -> u64 {
    // Acquire pairs with the Release in `Probe::add`.
    if reset { word.swap(first, Ordering::Acquire) } else { word.load(Ordering::Acquire) }
}

/// A kind of event, and how often it occurred, with which sizes and times.
#[derive(Debug)]
pub struct Probe {
    /// The client's function, or another name.
    pub function: &'static str,
    pub(super) letter: Letter,
    count: AtomicU64,
    bytes: Tally,
    ns: Tally,
    /// Whether the probe is in the list from [`FIRST`] on.
    listed: AtomicBool,
    /// The probe that was added after this one.
    next: OnceRef<'static, Probe>,
}

/// The first of the probes that have counted an event; `next` links the others. Probes are only
/// ever added, at the end.
static FIRST: OnceRef<'static, Probe> = OnceRef::new();

impl Probe {
    /// A probe for a function, whose events have this type.
    pub const fn new(letter: Letter, function: &'static str) -> Probe {
        Probe {
            function,
            letter,
            count: AtomicU64::new(0),
            bytes: Tally::new(),
            ns: Tally::new(),
            listed: AtomicBool::new(false),
            next: OnceRef::new(),
        }
    }

    /// Counts an event of this many bytes, if it has any, that took this many nanoseconds.
    pub(super) fn add(&'static self, bytes: Option<u64>, ns: u64) {
        if !self.listed.load(Ordering::Relaxed) && !self.listed.swap(true, Ordering::Relaxed) {
            let mut end = &FIRST;
            while end.set(self).is_err() {
                // Another probe is there; a failed `set` means that `get` finds it.
                let Some(other) = end.get() else { continue };
                end = &other.next;
            }
        }
        if let Some(bytes) = bytes {
            self.bytes.add(bytes);
        }
        self.ns.add(ns);
        // Last: what is counted has been added.
        self.count.fetch_add(1, Ordering::Release);
    }
}

/// Passes the line of statistics of each probe of a type to `each`; with `reset` its counters are
/// 0 afterwards. Neither allocates nor locks. An event that ends meanwhile may be in one set of
/// statistics with its time, and in the next with its number.
pub(super) fn statistics(letter: Letter, reset: bool, mut each: impl FnMut(fmt::Arguments<'_>)) {
    let mut next = FIRST.get();
    while let Some(p) = next {
        next = p.next.get();
        if p.letter != letter {
            continue;
        }
        let count = taken(&p.count, 0, reset);
        if count == 0 {
            continue;
        }
        let has_bytes = p.bytes.least.load(Ordering::Relaxed) != u64::MAX;
        let read = |t: &Tally| {
            let (sum, least, most) = t.read(reset);
            (sum, least, sum / count, most)
        };
        let (name, time, bytes) = (EventName(p.function), read(&p.ns), read(&p.bytes));
        let ns = format_args!("ns={} min={} avg={} max={}", time.0, time.1, time.2, time.3);
        if has_bytes {
            each(format_args!(
                "{name}: count={count} bytes={} min={} avg={} max={} {ns}",
                bytes.0, bytes.1, bytes.2, bytes.3
            ));
        } else {
            each(format_args!("{name}: count={count} {ns}"));
        }
    }
}

/// Prints the name of an event: that of the function without its prefix, in capitals.
pub(super) struct EventName(pub(super) &'static str);

impl fmt::Display for EventName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = self.0.strip_prefix("gasnet_").unwrap_or(self.0);
        name.chars().try_for_each(|c| f.write_char(c.to_ascii_uppercase()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is read within an event has no number that no event can have; a reset leaves nothing.
    #[test]
    fn numbers_are_possible_at_any_time() {
        static PROBE: Probe = Probe::new(Letter::U, "gasnet_test");
        let lines = |reset| {
            let mut text = String::new();
            statistics(Letter::U, reset, |line| {
                let _ = writeln!(text, "{line}");
            });
            text
        };
        PROBE.add(Some(8), 30);
        PROBE.add(Some(16), 10);
        let all = "TEST: count=2 bytes=24 min=8 avg=12 max=16 ns=40 min=10 avg=20 max=30\n";
        assert_eq!(lines(false), all);
        assert_eq!(lines(true), all);
        assert_eq!(lines(false), "");
        // An event that began before the reset.
        PROBE.count.fetch_add(1, Ordering::Release);
        assert_eq!(lines(false), "TEST: count=1 ns=0 min=0 avg=0 max=0\n");
    }
}
