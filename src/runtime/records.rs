//! Records of the trace that describe the job: its start, its segment, its exit.
//!
//! Called by `capi` in `gasnet_init`, `gasnet_attach` and `gasnet_exit`. Nothing is kept here;
//! without a trace nothing happens.

use super::job::GasnetJob;
use crate::process::exit;
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
        exit::on_exit(trace::close);
        trace::note(
            Letter::I,
            format_args!(
                "START: nodes={} mode={:?} pid={} us={realtime} host={} program={}",
                self.team.size(),
                self.client.threads,
                sys::process::pid(),
                tools::this_process::hostname(),
                std::env::args().next().unwrap_or_default()
            ),
        );
        for v in env::all() {
            if let Some(value) = env::lookup(v.name()) {
                trace::note(Letter::I, format_args!("ENV: {}={value}", v.name()));
            }
        }
    }

    /// Prints how the memory of other ranks is reached in EVERYTHING, if GASNET_VERBOSEENV is set,
    /// and records it.
    pub(super) fn note_means(&self) {
        let other = self.team.ranks().find(|&rank| rank != self.endpoint.rank);
        let Some(attaches) = other.and_then(|rank| self.endpoint.conduit.attaches(rank)) else {
            return;
        };
        let (means, reason) = match attaches {
            true => ("by cross-memory attach, without a call of its owner", String::new()),
            false => (
                "in frames, at the next call of its owner",
                format!(", because {}", sys::attach::denial()),
            ),
        };
        let registered = match self.endpoint.conduit.config().registration() {
            Some(how) => format!("{how}, "),
            None => String::new(),
        };
        let text =
            format_args!("the memory of other ranks is reached {registered}{means}{reason}");
        trace::note(Letter::I, format_args!("EVERYTHING: {text}"));
        if client_variables::verbose() {
            report::note(format_args!("GASNET_SEGMENT_EVERYTHING: {text}"));
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

/// Records that the client calls `gasnet_exit`.
pub fn record_exit(code: i32) {
    trace::note(Letter::I, format_args!("EXIT: code={code}"));
}
