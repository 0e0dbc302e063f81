//! The counters of the firehose as lines of the trace, while they change.
//!
//! Called by each full poll while a file of the trace is open. Invariant: a line at most every
//! [`PERIOD_NS`], and none if nothing has happened since the last one. `gasnet_trace firehose`
//! draws them.

use super::super::firehose::FirehoseStats;
use crate::trace::{self, Letter};
use core::sync::atomic::{AtomicU64, Ordering};
use sys::clock;

/// From one line to the next, at least.
const PERIOD_NS: u64 = 1_000_000;

/// What was written last.
#[derive(Debug, Default)]
pub(in crate::conduit) struct StatsTrace {
    /// When the next line may be written.
    due: AtomicU64,
    /// What had happened by then.
    written: AtomicU64,
}

impl StatsTrace {
    /// Writes a line, if it is time.
    #[cold]
    pub(in crate::conduit) fn write(&self, stats: impl FnOnce() -> FirehoseStats) {
        let (now, due) = (clock::now_ns(), self.due.load(Ordering::Relaxed));
        let next = now + PERIOD_NS;
        if now < due
            || self.due.compare_exchange(due, next, Ordering::Relaxed, Ordering::Relaxed).is_err()
        {
            return;
        }
        let s = stats();
        let accesses = s.remote_hits + s.remote_misses + s.local_hits + s.local_misses;
        let happened = accesses + s.pins + s.unpins + s.stalls;
        if self.written.swap(happened, Ordering::Relaxed) != happened {
            trace::note(Letter::C, format_args!("FIREHOSE: {s}"));
        }
    }
}
