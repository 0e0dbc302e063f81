//! What each rank is doing, printed by the supervisor. It prints this on SIGUSR1, and before
//! ranks are cut off by one that has ended with success. It also prints this before a job ends
//! that runs too long.
//!
//! Owned by [`super::Supervisor`]. The number of the request stands in the control memory; a
//! signal has each rank answer there. Invariant: a report is complete after its deadline; a rank
//! without an answer is described by the state of its process.

use super::rank_process::RankProcess;
use crate::boot::control_memory::ControlMemory;
use crate::boot::decision::{ExitCause, ExitDecision};
use crate::boot::hosts::message::CutOffRanks;
use crate::rank::JobRank;
use crate::report;
use sys::process::{self, Liveness};
use sys::{clock, signal};

/// Nanoseconds that ranks may take to answer, the same before they are cut off, and between two
/// checks.
pub(super) const ANSWER: u64 = 1_000_000_000;
const CUT_OFF_ANSWER: u64 = 100_000_000;
const CHECK: u64 = 10_000_000;

/// Lines about ranks in the report of a cut-off.
pub(super) const SHOWN: usize = 8;

/// A request for the status of all ranks.
#[derive(Debug, Default)]
pub(super) struct StatusRequest {
    /// The open request.
    open: Option<OpenRequest>,
    /// The ranks that worked when their cut-off was requested. They may end before they are
    /// reported.
    cut_off: Vec<JobRank>,
    /// What those of them do that still run; taken by [`StatusRequest::take_cut_off`].
    cut_off_answers: Option<CutOffRanks>,
    /// The ranks that are cut off have been reported.
    is_cut_off_reported: bool,
    /// The ranks of a job that runs too long have been reported.
    is_timeout_reported: bool,
    is_timeout_begun: bool,
}

#[derive(Clone, Copy, Debug)]
struct OpenRequest {
    number: u64,
    deadline: u64,
    reason: RequestReason,
}

/// Why the status is requested.
#[derive(Clone, Copy, Debug)]
enum RequestReason {
    /// SIGUSR1.
    Signal,
    /// The end of a rank cuts off the others.
    CutOff,
    /// The job has run for this many seconds.
    Timeout(f64),
}

impl StatusRequest {
    /// Whether a request is open.
    pub(super) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Requests the status of all ranks, unless a request is open.
    pub(super) fn open(&mut self, control: ControlMemory, ranks: &[RankProcess]) {
        self.request(control, ranks, ANSWER, RequestReason::Signal);
    }

    fn request(
        &mut self,
        control: ControlMemory,
        ranks: &[RankProcess],
        answer: u64,
        reason: RequestReason,
    ) {
        if self.open.is_some() {
            return;
        }
        let deadline = clock::now_ns() + answer;
        let is_last = !matches!(reason, RequestReason::Signal);
        let number = control.open_status_request(is_last);
        self.open = Some(OpenRequest { number, deadline, reason });
        for r in ranks.iter().filter(|r| !r.has_exited() && control.is_armed(r.local_rank)) {
            process::kill(r.pid(), signal::notice());
        }
    }

    /// Whether the ranks that the end of a rank cuts off have been reported, or there are none.
    /// Requests their status in the first call.
    pub(super) fn is_cut_off_reported(
        &mut self,
        control: ControlMemory,
        ranks: &[RankProcess],
    ) -> bool {
        if self.is_cut_off_reported || self.open.is_some() {
            return self.is_cut_off_reported;
        }
        let working = ranks.iter().filter(|r| r.is_working());
        self.cut_off = working.map(|r| r.rank).collect();
        if self.cut_off.is_empty() {
            return true;
        }
        self.request(control, ranks, CUT_OFF_ANSWER, RequestReason::CutOff);
        false
    }

    /// Whether the ranks of a job that has run for this many seconds have been reported. Requests
    /// their status in the first call.
    pub(super) fn is_timeout_reported(
        &mut self,
        control: ControlMemory,
        ranks: &[RankProcess],
        seconds: f64,
    ) -> bool {
        if !self.is_timeout_reported {
            self.is_timeout_begun = true;
            self.request(control, ranks, ANSWER, RequestReason::Timeout(seconds));
        }
        self.is_timeout_reported
    }

    /// Whether the status of a job that has run too long was requested.
    pub(super) fn is_timeout_begun(&self) -> bool {
        self.is_timeout_begun
    }

    /// When to check for answers.
    pub(super) fn deadline(&self, now: u64) -> Option<u64> {
        self.open.map(|_| now + CHECK)
    }

    /// The ranks that are cut off, once after they have answered.
    pub(super) fn take_cut_off(&mut self) -> Option<CutOffRanks> {
        self.cut_off_answers.take()
    }

    /// Prints the answers, once all ranks that can answer have, or after the deadline. Whether
    /// it has printed them.
    pub(super) fn check(&mut self, control: ControlMemory, ranks: &[RankProcess]) -> bool {
        let Some(open) = self.open else { return false };
        let is_silent = |r: &RankProcess| {
            !r.has_exited()
                && control.is_armed(r.local_rank)
                && process::liveness(r.pid()) == Liveness::Alive
                && control.answer_of(r.local_rank, open.number).is_none()
        };
        if clock::now_ns() < open.deadline && ranks.iter().any(is_silent) {
            return false;
        }
        match open.reason {
            RequestReason::Signal => {
                report::line(format_args!("what the {} do:", RankProcess::of_job(ranks)));
                report_all(control, ranks, open.number);
            }
            RequestReason::Timeout(seconds) => {
                self.is_timeout_reported = true;
                report::line(format_args!(
                    "the job has run for {seconds} s (--timeout) and ends with exit code 124; \
                     what the {} do:",
                    RankProcess::of_job(ranks)
                ));
                report_all(control, ranks, open.number);
            }
            RequestReason::CutOff => {
                self.is_cut_off_reported = true;
                let is_cut_off = |r: &&RankProcess| self.cut_off.contains(&r.rank);
                let lines = ranks.iter().filter(is_cut_off).take(SHOWN).map(|r| {
                    let what = activity(control, r, open.number);
                    let what = what.split("; credits:").next().unwrap_or_default();
                    (r.rank, format!("rank {} (pid {}) {what}", r.rank, r.pid()))
                });
                let lines = lines.collect();
                self.cut_off_answers = Some(CutOffRanks { ranks: self.cut_off.clone(), lines });
            }
        }
        control.close_status_request();
        self.open = None;
        true
    }
}

/// Prints what each rank does.
fn report_all(control: ControlMemory, ranks: &[RankProcess], request: u64) {
    for r in ranks {
        let what = activity(control, r, request);
        report::line(format_args!("rank {} (pid {}) {what}", r.rank, r.pid()));
    }
}

/// What a rank does, as it or the system says.
fn activity(control: ControlMemory, r: &RankProcess, request: u64) -> String {
    let pid = r.pid();
    match (r.has_exited(), process::liveness(pid), control.answer_of(r.local_rank, request)) {
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
    }
}

/// Names the ranks that the end `first` of a rank cuts off, and what they do; `ranks` are those of
/// this host, of the job's `size`.
pub(super) fn report_cut_off(
    ranks: &[RankProcess],
    size: u32,
    first: ExitDecision,
    cut_off: &CutOffRanks,
) {
    let Some(ended) = first.rank else { return };
    let ended = match ranks.iter().find(|r| r.rank == ended) {
        Some(ended) => ended.title(),
        None => format!("rank {ended} of {size} (on another host)"),
    };
    let how = match first.cause {
        ExitCause::Exit => "called gasnet_exit(0)",
        _ => "exited with 0",
    };
    let numbers: Vec<u32> = cut_off.ranks.iter().map(|r| r.0).collect();
    report::line(format_args!(
        "{ended} {how} before the others: the job ends and cuts off {}",
        named(&numbers)
    ));
    for (_, line) in &cut_off.lines {
        report::line(format_args!("  {line}"));
    }
    report::line(format_args!(
        "  Call a barrier before the end of main. If the program does, the ranks get too little CPU \
         time: gasnetrun --no-cut-off or GASNET_NO_CUT_OFF=1 waits for all of them."
    ));
}

/// `rank 3`, or `ranks 0-2, 5`, of ascending numbers.
pub(super) fn named(ranks: &[u32]) -> String {
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for &rank in ranks {
        match runs.last_mut() {
            Some((_, last)) if *last + 1 == rank => *last = rank,
            _ => runs.push((rank, rank)),
        }
    }
    let runs: Vec<String> = runs
        .into_iter()
        .map(|(a, b)| if a == b { a.to_string() } else { format!("{a}-{b}") })
        .collect();
    format!("rank{} {}", if ranks.len() == 1 { "" } else { "s" }, runs.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_ranks() {
        assert_eq!(named(&[3]), "rank 3");
        assert_eq!(named(&[0, 1, 2, 5, 7, 8]), "ranks 0-2, 5, 7-8");
    }
}
