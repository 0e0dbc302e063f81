//! Records of the trace that describe the job: its start, its segment, its exit.
//!
//! Called by `capi` in `gasnet_init`, `gasnet_attach` and `gasnet_exit`. Nothing is kept here;
//! without a trace nothing happens.

use super::client::SegmentMode;
use super::job::GasnetJob;
use crate::process::exit_hooks;
use crate::tools::client_variables;
use crate::trace::{self, Letter};
use crate::{env, report, tools};

impl GasnetJob {
    /// Records what the job is and the variables that are set, and completes the files when the
    /// process exits. `realtime` is the time since 1970, in microseconds.
    pub fn record_start(&self, realtime: u64) {
        if !trace::on() {
            return;
        }
        exit_hooks::on_exit(trace::close);
        trace::note(
            Letter::I,
            format_args!(
                "START: nodes={} mode={:?} pid={} us={realtime} host={} program={}",
                self.team.size(),
                self.client.threads,
                sys::process::pid(),
                tools::this_process::hostname(),
                std::env::args_os().next().unwrap_or_default().to_string_lossy()
            ),
        );
        for v in env::all() {
            if let Some(value) = env::lookup(v.name()) {
                trace::note(Letter::I, format_args!("ENV: {}={value}", v.name()));
            }
        }
    }

    /// Prints how the memory of other ranks is reached in EVERYTHING, if GASNET_VERBOSEENV is set,
    /// and records it: of those of this host, and of those of other hosts.
    pub(super) fn note_means(&self) {
        let conduit = &self.endpoint.conduit;
        let is_far = |rank| self.placement().local_rank_of(rank).is_none();
        let others = || self.team.ranks().filter(|&rank| rank != self.endpoint.rank);
        let first_here = others().find(|&rank| !is_far(rank));
        let first_far = others().find(|&rank| is_far(rank));
        let registered = conduit.config().registration();
        if let Some(other) = first_here {
            let means = match (registered, conduit.attaches(other)) {
                (Some(registered), _) => registered.to_string(),
                (None, Some(true)) => {
                    "by cross-memory attach, without a call of its owner".to_string()
                }
                (None, Some(false)) => {
                    let reason = sys::attach::denial();
                    format!("in frames, at the next call of its owner, because {reason}")
                }
                (None, None) => "as its libportals does".to_string(),
            };
            let others = if first_far.is_some() { "other ranks of a host" } else { "other ranks" };
            let text = format_args!("the memory of {others} is reached {means}");
            note_mode(SegmentMode::Everything, text);
        }
        if let Some(other) = first_far {
            let means = match (registered, conduit.attaches(other)) {
                (Some(registered), _) => registered,
                (None, None) => "as its libportals does",
                (None, _) if conduit.wire_waits_for_calls(false) => {
                    "in frames, at the next call of its owner"
                }
                (None, _) => "in frames, by a thread of its owner (GASNET_PROGRESS)",
            };
            let text = format_args!("the memory of ranks of other hosts is reached {means}");
            note_mode(SegmentMode::Everything, text);
        }
    }

    /// Records the segment of this process and how many handlers the client registered.
    pub fn record_segment(&self, handlers: usize) {
        let own = self.endpoint.segments().info(self.endpoint.rank);
        let (at, bytes) = (own.base, own.len);
        let text = format_args!("SEGMENT: at={at:p} bytes={bytes} handlers={handlers}");
        trace::note(Letter::I, text);
    }
}

/// Prints how memory is reached in a segment mode, if GASNET_VERBOSEENV is set, and records it.
fn note_mode(mode: SegmentMode, text: core::fmt::Arguments<'_>) {
    trace::note(Letter::I, format_args!("{}: {text}", mode.name()));
    if client_variables::verbose() {
        report::note(format_args!("GASNET_SEGMENT_{}: {text}", mode.name()));
    }
}

/// As [`GasnetJob::note_means`], of segments that are registered on demand.
pub(super) fn note_on_demand() {
    let text = format_args!("segments that are not mapped are registered on demand (firehose)");
    note_mode(SegmentMode::Large, text);
}

/// Prints that the segments have different addresses, if GASNET_VERBOSEENV is set, and records
/// it.
pub(super) fn note_addresses() {
    let text = "the segments have different addresses in different ranks, because no range of \
                addresses is free in all of them";
    trace::note(Letter::I, format_args!("SEGMENT: {text}"));
    if client_variables::verbose() {
        report::note(format_args!("gasnet_attach(): {text}"));
    }
}

/// Records that the client calls `gasnet_exit`.
pub fn record_exit(code: i32) {
    trace::leave();
    trace::note(Letter::I, format_args!("EXIT: code={code}"));
}
