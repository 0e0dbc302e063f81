//! How long a job may run: `gasnetrun --timeout`.
//!
//! Owned by [`super::Supervisor`]. Invariant: before the job ends, a report says what each rank
//! does.

use super::other_hosts::OtherHosts;
use super::rank_process::RankProcess;
use super::status_request::{self, StatusRequest};
use crate::boot::control_memory::ControlMemory;
use sys::clock;

/// The exit code of a job that runs too long, as that of `timeout`.
pub(super) const TIMED_OUT: i32 = 124;

/// How long a job may run.
#[derive(Clone, Copy, Debug)]
pub(super) struct JobTimeout {
    seconds: f64,
    deadline: u64,
}

impl JobTimeout {
    /// This many seconds from now.
    pub(super) fn new(seconds: f64) -> JobTimeout {
        let deadline = clock::now_ns().saturating_add((seconds * 1e9) as u64);
        JobTimeout { seconds, deadline }
    }

    /// When to look, unless a report is awaited.
    pub(super) fn deadline(self, status: &StatusRequest) -> Option<u64> {
        // Later, other hosts answer.
        let next = match status.is_timeout_begun() {
            true => self.deadline + status_request::ANSWER,
            false => self.deadline,
        };
        Some(next).filter(|_| !status.is_open())
    }

    /// Whether the time is over.
    pub(super) fn is_over(self, now: u64) -> bool {
        now >= self.deadline
    }

    /// Reports and ends a job that runs too long.
    pub(super) fn check(
        self,
        now: u64,
        control: ControlMemory,
        ranks: &[RankProcess],
        status: &mut StatusRequest,
        others: &mut OtherHosts,
    ) {
        if !self.is_over(now) {
            return;
        }
        if !status.is_timeout_begun() {
            others.request_status();
        }
        let is_reported = status.is_timeout_reported(control, ranks, self.seconds);
        let is_late = now >= self.deadline + status_request::ANSWER;
        if is_reported && (others.have_printed_status() || is_late) {
            control.decide_failure(TIMED_OUT);
        }
    }
}
