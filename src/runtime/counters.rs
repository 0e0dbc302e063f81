//! The statistics files that a rank writes when it exits.
//!
//! Made by `start`, written through [`process::JobReport`] by a hook of the exit.
//! Invariants: a file that cannot be written is an error of `gasnet_init`; writing is
//! async-signal-safe. Nothing is written unless the user requests it:
//!
//! | requested by | what is written |
//! |---|---|
//! | `GASNET_TEST_COUNTERS` | one text line, for tests that assert which path the traffic took |
//! | `GASNET_PORTAL_CREDIT_STATS` | how the credits of this rank moved |
//! | the trace, the statistics | the counters of the network |
//!
//! The text line of `GASNET_TEST_COUNTERS` holds the rank and these counters of the interface:
//! puts, gets, bytes of both, framed messages, unmatched messages. It also holds requests that
//! lacked credits, requests that waited for a receive buffer, receive buffers attached again,
//! requests in the catch basin, and the framed messages that went by remote memory access.

use crate::conduit::network::JobConduit;
use crate::rank::JobRank;
use crate::trace::{self, Letter, NetworkLine};
use crate::{env, process, report};
use alloc::ffi::CString;
use alloc::string::String;
use core::fmt::Write;
use sys::file::TextFile;

/// A file that a variable requests, open since `gasnet_init`.
#[derive(Debug)]
struct StatsFile {
    variable: &'static str,
    path: String,
    fd: i32,
}

impl StatsFile {
    /// Makes the file. Ends the job if that fails.
    fn create(variable: &'static str, prefix: &str, rank: JobRank, remedy: &str) -> StatsFile {
        let path = alloc::format!("{prefix}.{rank}");
        let name = CString::new(path.as_str()).unwrap_or_default();
        let fd = sys::file::open_for_lines(&name).unwrap_or_else(|e| {
            report::fatal(
                format_args!("{variable}: the files {prefix}.RANK cannot be written: {e}"),
                format_args!("{remedy}, or unset it."),
            )
        });
        StatsFile { variable, path, fd }
    }

    /// Writes the text. Async-signal-safe.
    fn write(&self, text: impl FnOnce(&mut TextFile) -> core::fmt::Result) {
        let mut file = TextFile::stream(self.fd);
        let _ = text(&mut file);
        if let Err(e) = file.finish() {
            report::incomplete_file(self.variable, &self.path, e);
        }
    }
}

/// The files of one rank.
#[derive(Debug)]
pub(super) struct StatsFiles {
    counters: Option<StatsFile>,
    credits: Option<StatsFile>,
}

impl StatsFiles {
    /// The files that the user requests; `None` for none. They are written when this process
    /// exits.
    pub(super) fn open(rank: JobRank, credit_stats: bool) -> Option<StatsFiles> {
        let counters = env::TEST_COUNTERS.get().map(|prefix| {
            let remedy = "Name a file in a folder where you may write";
            StatsFile::create(env::TEST_COUNTERS.name(), &prefix, rank, remedy)
        });
        let credits = credit_stats.then(|| {
            let remedy = "Start the job in a folder where you may write";
            StatsFile::create(env::PORTAL_CREDIT_STATS.name(), "gasnet_credits", rank, remedy)
        });
        if counters.is_none() && credits.is_none() && !trace::on() {
            return None;
        }
        process::exit_hooks::on_exit(process::write_stats);
        trace::on_network_statistics(process::count_network);
        Some(StatsFiles { counters, credits })
    }

    /// Writes them. Async-signal-safe.
    pub(super) fn write(&self, rank: JobRank, conduit: &JobConduit) {
        let StatsFiles { counters, credits } = self;
        if let Some(file) = credits {
            file.write(|text| conduit.write_credit_stats(text));
        }
        network_lines(conduit, &mut |text| trace::note(Letter::C, text));
        let Some(file) = counters else { return };
        let (c, s) = (conduit.counters(), conduit.stats());
        file.write(|text| {
            write!(text, "{} {} {} {} {} {}", rank, c.puts, c.gets, c.bytes, c.framed, c.dropped)?;
            write!(text, " {} {}", s.credit_stalls, s.requests_waited)?;
            writeln!(text, " {} {} {}", s.refreshes, s.caught, c.remote)
        });
    }
}

/// Passes each line of the network's counters to the trace or the statistics. Async-signal-safe.
pub(super) fn network_lines(conduit: &JobConduit, line: NetworkLine<'_>) {
    let (c, s) = (conduit.counters(), conduit.stats());
    line(format_args!(
        "PORTALS: puts={} gets={} bytes={} framed={} remote={} dropped={} credit_stalls={} \
         requests_waited={} refreshes={} caught={}",
        c.puts,
        c.gets,
        c.bytes,
        c.framed,
        c.remote,
        c.dropped,
        s.credit_stalls,
        s.requests_waited,
        s.refreshes,
        s.caught
    ));
    if let Some(f) = conduit.firehose_stats() {
        line(format_args!("FIREHOSE: {f}"));
    }
}
