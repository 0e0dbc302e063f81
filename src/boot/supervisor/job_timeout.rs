//! How long a job may run: `gasnetrun --timeout`.
//!
//! Owned by [`super::Supervisor`]. Invariant: before the job ends, a report says what each rank
//! does.

use super::rank_process::RankProcess;
use super::status_request::StatusRequest;
use crate::boot::control_memory::ControlMemory;
use sys::clock;

/// The exit code of a job that runs too long, as that of `timeout`.
const TIMED_OUT: i32 = 124;

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
        Some(self.deadline).filter(|_| !status.is_open())
    }

    /// Reports and ends a job that runs too long.
    pub(super) fn check(
        self,
        now: u64,
        control: ControlMemory,
        ranks: &[RankProcess],
        status: &mut StatusRequest,
    ) {
        if now >= self.deadline && status.is_timeout_reported(control, ranks, self.seconds) {
            control.decide_failure(TIMED_OUT);
        }
    }
}
