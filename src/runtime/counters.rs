//! The statistics files that a rank writes when it exits.
//!
//! Made by `start`, written through [`process::JobReport`] by a hook of the exit.
//! Invariant: writing is async-signal-safe. Nothing is written unless the user requests it:
//!
//! | requested by | what is written |
//! |---|---|
//! | `GASNET_TEST_COUNTERS` | one text line, for tests that assert which path the traffic took |
//! | `GASNET_PORTAL_CREDIT_STATS` | how the credits of this rank moved |
//! | the trace | the counters of the network |
//!
//! The text line of `GASNET_TEST_COUNTERS` holds the rank; puts, gets, bytes of both, framed
//! messages and messages without a match entry of the interface; requests that lacked credits,
//! requests that waited for a receive buffer, receive buffers attached again, and requests in
//! the catch basin.

use crate::conduit::network::JobConduit;
use crate::rank::JobRank;
use crate::trace::{self, Letter};
use crate::{env, process};
use alloc::ffi::CString;
use core::fmt::Write;

/// The files of one rank.
#[derive(Debug)]
pub(super) struct StatsFiles {
    counters: Option<CString>,
    credits: Option<CString>,
}

impl StatsFiles {
    /// The files that the user requests; `None` for none. They are written when this process
    /// exits.
    pub(super) fn open(rank: JobRank, credit_stats: bool) -> Option<StatsFiles> {
        let path = |prefix: &str| CString::new(alloc::format!("{prefix}.{rank}")).ok();
        let counters = env::TEST_COUNTERS.get().and_then(|prefix| path(&prefix));
        let credits = credit_stats.then(|| path("gasnet_credits")).flatten();
        if counters.is_none() && credits.is_none() && !trace::on() {
            return None;
        }
        process::exit::on_exit(process::write_stats);
        Some(StatsFiles { counters, credits })
    }

    /// Writes them. Async-signal-safe.
    pub(super) fn write(&self, rank: JobRank, conduit: &JobConduit) {
        let StatsFiles { counters, credits } = self;
        if let Some(path) = credits {
            let _ = conduit.write_credit_stats(&mut sys::file::TextFile::create(path));
        }
        let (c, s) = (conduit.counters(), conduit.stats());
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
        let _ =
            write!(line, "{} {} {} {} {} {}", rank, c.puts, c.gets, c.bytes, c.framed, c.dropped);
        let _ = writeln!(
            line,
            " {} {} {} {}",
            s.credit_stalls, s.requests_waited, s.refreshes, s.caught
        );
        sys::file::write(path, line.bytes());
    }
}
