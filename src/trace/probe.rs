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

    fn reset(&self) {
        self.sum.store(0, Ordering::Relaxed);
        self.least.store(u64::MAX, Ordering::Relaxed);
        self.most.store(0, Ordering::Relaxed);
    }
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
        self.count.fetch_add(1, Ordering::Relaxed);
        if let Some(bytes) = bytes {
            self.bytes.add(bytes);
        }
        self.ns.add(ns);
    }
}

/// Sets all counters to 0, one after another. Events that end meanwhile may be lost.
pub(super) fn reset() {
    let mut next = FIRST.get();
    while let Some(p) = next {
        next = p.next.get();
        p.count.store(0, Ordering::Relaxed);
        p.bytes.reset();
        p.ns.reset();
    }
}

/// Passes the line of statistics of each probe of a type to `each`. Neither allocates nor locks.
pub(super) fn statistics(letter: Letter, mut each: impl FnMut(fmt::Arguments<'_>)) {
    let mut next = FIRST.get();
    while let Some(p) = next {
        next = p.next.get();
        let count = p.count.load(Ordering::Relaxed);
        if p.letter != letter || count == 0 {
            continue;
        }
        let read = |t: &Tally| {
            let sum = t.sum.load(Ordering::Relaxed);
            (sum, t.least.load(Ordering::Relaxed), sum / count, t.most.load(Ordering::Relaxed))
        };
        let (name, time, bytes) = (EventName(p.function), read(&p.ns), read(&p.bytes));
        let ns = format_args!("ns={} min={} avg={} max={}", time.0, time.1, time.2, time.3);
        if bytes.1 == u64::MAX {
            each(format_args!("{name}: count={count} {ns}"));
        } else {
            each(format_args!(
                "{name}: count={count} bytes={} min={} avg={} max={} {ns}",
                bytes.0, bytes.1, bytes.2, bytes.3
            ));
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
