//! SIGUSR1: what each rank is doing, printed by the supervisor.
//!
//! Owned by [`super::Supervisor`]. The number of the request stands in the control memory; a
//! signal has each rank answer there. Invariant: a report is complete after a second; a rank
//! without an answer is described by the state of its process.

use super::rank_process::RankProcess;
use crate::boot::control_memory::ControlMemory;
use crate::report;
use sys::process::{self, Liveness};
use sys::{clock, signal};

/// Nanoseconds that ranks may take to answer, and between two checks.
const ANSWER: u64 = 1_000_000_000;
const CHECK: u64 = 10_000_000;

/// A request for the status of all ranks.
#[derive(Debug, Default)]
pub(super) struct StatusRequest {
    /// The number of the open request, and its deadline.
    open: Option<(u64, u64)>,
}

impl StatusRequest {
    /// Requests the status of all ranks, unless a request is open.
    pub(super) fn open(&mut self, control: ControlMemory, ranks: &[RankProcess]) {
        if self.open.is_some() {
            return;
        }
        self.open = Some((control.open_status_request(), clock::now_ns() + ANSWER));
        for r in ranks.iter().filter(|r| !r.is_gone() && control.is_armed(r.local_rank)) {
            process::kill(r.pid(), signal::notice());
        }
    }

    /// When to check for answers.
    pub(super) fn deadline(&self, now: u64) -> Option<u64> {
        self.open.map(|_| now + CHECK)
    }

    /// Prints the answers, once all ranks that can answer have, or after the deadline.
    pub(super) fn check(&mut self, control: ControlMemory, ranks: &[RankProcess]) {
        let Some((request, until)) = self.open else { return };
        let is_silent = |r: &RankProcess| {
            !r.is_gone()
                && control.is_armed(r.local_rank)
                && process::liveness(r.pid()) == Liveness::Alive
                && control.answer_of(r.local_rank, request).is_none()
        };
        if clock::now_ns() < until && ranks.iter().any(is_silent) {
            return;
        }
        report::line(format_args!("what the {} ranks of the job do:", ranks.len()));
        for r in ranks {
            let pid = r.pid();
            let answer = control.answer_of(r.local_rank, request);
            let what = match (r.is_gone(), process::liveness(pid), answer) {
                (true, ..) => "has ended".to_string(),
                (_, Liveness::Stopped, _) => match process::tracer_of(pid) {
                    Some(tracer) => format!("is stopped by process {tracer}, which traces it"),
                    None => format!("is stopped; kill -CONT {pid} continues it"),
                },
                (.., Some(answer)) => answer,
                _ if !control.is_armed(r.local_rank) => {
                    "has not called gasnet_init, or is in it".to_string()
                }
                _ => "does not answer: its signals are blocked, or it gets no CPU".to_string(),
            };
            report::line(format_args!("rank {} (pid {pid}) {what}", r.rank));
        }
        control.close_status_request();
        self.open = None;
    }
}
