//! What this process writes to files when it leaves: what its Portals interface carried, for tests that claim that
//! traffic went one way or another (`GASNET_TEST_COUNTERS`) and for the trace, and how its credits moved
//! (`GASNET_PORTAL_CREDIT_STATS`). Set up by `job`; nothing is written if nobody asks.
//!
//! Of `GASNET_TEST_COUNTERS`, one line: rank; of the interface puts, gets, bytes of both, messages framed, messages to us that
//! found no match entry; of the conduit requests that lacked credits, requests that waited for a receive buffer, receive buffers
//! that were attached again, requests that reached the catch basin.

use super::GasnetJob;
use super::exit;
use crate::env;
use crate::trace::{self, Letter};
use alloc::boxed::Box;
use alloc::ffi::CString;
use core::fmt::Write;
use core::sync::atomic::{AtomicPtr, Ordering};

struct StatsFiles {
    job: &'static GasnetJob,
    counters: Option<CString>,
    credits: Option<CString>,
}

/// Null if nothing is to be written.
static FILES: AtomicPtr<StatsFiles> = AtomicPtr::new(core::ptr::null_mut());

/// Has the counters written when this process leaves, if the user wants that.
pub fn open(job: &'static GasnetJob) {
    let path = |prefix: &str| CString::new(alloc::format!("{prefix}.{}", job.mynode)).ok();
    let counters = env::TEST_COUNTERS.get().and_then(|prefix| path(&prefix));
    let credits = job.conduit.config().credit_stats.then(|| path("gasnet_credits")).flatten();
    if counters.is_some() || credits.is_some() || trace::on() {
        FILES.store(
            Box::into_raw(Box::new(StatsFiles { job, counters, credits })),
            Ordering::Release,
        );
        exit::on_exit(write);
    }
}

/// Async-signal-safe: nothing is allocated or locked.
fn write() {
    let wanted = FILES.load(Ordering::Acquire);
    // SAFETY: null, or the leaked box of `open`.
    let Some(StatsFiles { job, counters, credits }) = (unsafe { wanted.as_ref() }) else { return };
    if let Some(path) = credits {
        let _ = job.conduit.write_credit_stats(&mut sys::file::TextFile::create(path));
    }
    let (c, s) = (job.conduit.counters(), job.conduit.stats());
    trace::note(
        Letter::C,
        format_args!(
            "PORTALS: puts={} gets={} bytes={} framed={} dropped={} credit_stalls={} requests_waited={} refreshes={} caught={}",
            c.puts,
            c.gets,
            c.bytes,
            c.framed,
            c.dropped,
            s.credit_stalls,
            s.requests_waited,
            s.refreshes,
            s.caught
        ),
    );
    let Some(path) = counters else { return };
    let mut line = crate::report::MessageLine::new();
    let _ = write!(
        line,
        "{} {} {} {} {} {}",
        job.mynode, c.puts, c.gets, c.bytes, c.framed, c.dropped
    );
    let _ =
        writeln!(line, " {} {} {} {}", s.credit_stalls, s.requests_waited, s.refreshes, s.caught);
    sys::file::write(path, line.bytes());
}
