//! Ranks that have not called `gasnet_init` long after others have, or have not connected to their
//! supervisor.
//!
//! Owned by [`super::Supervisor`]. Invariant: they are reported after 10 s and each time the wait
//! has doubled; after GASNET_SPAWN_TIMEOUT the job ends.

use super::rank_process::RankProcess;
use crate::boot::launcher_variables::FIRST_LATE_REPORT;
use crate::report;
use sys::process::{self, Liveness};

const SECOND: u64 = 1_000_000_000;
/// Ranks that a report names.
const NAMED: usize = 8;

/// The wait for the ranks that are late.
#[derive(Debug)]
pub(super) struct LateRanks {
    /// When the first rank called `gasnet_init`, and when the next report is due.
    waiting: Option<(u64, u64)>,
    has_first: bool,
    /// All ranks have called `gasnet_init`; those that have not connected are late.
    have_all_called: bool,
    /// GASNET_SPAWN_TIMEOUT in nanoseconds.
    timeout: Option<u64>,
}

impl LateRanks {
    pub(super) fn new(timeout: Option<u64>) -> LateRanks {
        LateRanks { waiting: None, has_first: false, have_all_called: false, timeout }
    }

    /// Whether a rank of the job has called `gasnet_init`.
    pub(super) fn has_first(&self) -> bool {
        self.has_first
    }

    /// A rank of the job has called `gasnet_init`. Whether it is the first.
    pub(super) fn joined(&mut self, now: u64) -> bool {
        if !self.has_first {
            self.waiting = Some((now, now + FIRST_LATE_REPORT));
        }
        !std::mem::replace(&mut self.has_first, true)
    }

    /// All ranks of the job have called `gasnet_init`, and are to connect.
    pub(super) fn all_called(&mut self, now: u64) {
        self.joined(now);
        self.have_all_called = true;
    }

    /// When [`LateRanks::check`] is due.
    pub(super) fn deadline(&self) -> Option<u64> {
        let (first, next) = self.waiting?;
        self.timeout.map(|t| first + t).into_iter().chain([next]).min()
    }

    /// Reports late ranks when that is due; returns whether the timeout has passed.
    pub(super) fn check(&mut self, now: u64, ranks: &[RankProcess]) -> bool {
        let late: Vec<&RankProcess> = ranks.iter().filter(|r| r.joined.is_none()).collect();
        if late.is_empty() {
            self.waiting = None;
        }
        let Some((first, next)) = self.waiting else { return false };
        let is_over = self.timeout.is_some_and(|t| now >= first + t);
        if !is_over && now < next {
            return false;
        }
        let seconds = (now - first) / SECOND;
        let named: Vec<String> = late.iter().take(NAMED).map(|r| description(r)).collect();
        let what = match self.have_all_called {
            true => "the supervisor started, it has not been reached",
            false => "the first, gasnet_init has not been called",
        };
        report::line(format_args!(
            "{seconds} s after {what} by {} of {}: rank {}{}{}",
            late.len(),
            RankProcess::of_job(ranks),
            named.join(", rank "),
            if late.len() > NAMED { ", ..." } else { "" },
            if is_over { "; the job ends" } else { "" }
        ));
        if is_over {
            report::line(format_args!(
                "  See what they do, or raise GASNET_SPAWN_TIMEOUT (seconds; 0 for no limit)."
            ));
        }
        self.waiting = Some((first, now + 2 * (now - first)));
        is_over
    }
}

fn description(r: &RankProcess) -> String {
    match r.process {
        0 => format!("{}", r.rank),
        pid => match process::liveness(pid) {
            Liveness::Stopped => format!("{} (pid {pid}, stopped)", r.rank),
            _ => format!("{} (pid {pid})", r.rank),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_for_ranks_that_all_called_needs_no_first() {
        let mut late = LateRanks::new(Some(SECOND));
        assert_eq!(late.deadline(), None);
        late.all_called(5);
        assert_eq!((late.deadline(), late.has_first()), (Some(5 + SECOND), true));
    }
}
