//! The report of ranks that are cut off by one that has ended with success, in a job of several
//! hosts: one for the whole job.
//!
//! Owned by [`super::Supervisor`]. Invariant: a host that another one has started prints nothing,
//! but sends its part up; the root prints what has arrived, at the latest when the job has ended.

use super::status_request::SHOWN;
use crate::boot::hosts::message::CutOffRanks;

/// Nanoseconds that the root waits for the parts of other hosts, from the first one.
const WINDOW: u64 = 300_000_000;

/// The parts that have arrived.
#[derive(Debug, Default)]
pub(super) struct CutOffReport {
    all: CutOffRanks,
    due: Option<u64>,
}

impl CutOffReport {
    /// When it is to be printed.
    pub(super) fn deadline(&self) -> Option<u64> {
        self.due
    }

    /// Adds the ranks of a host.
    pub(super) fn add(&mut self, part: CutOffRanks, now: u64) {
        self.all.ranks.extend(part.ranks);
        self.all.lines.extend(part.lines);
        self.due.get_or_insert(now + WINDOW);
    }

    /// What has arrived since the last call: ranks in ascending order, and some of the lines.
    pub(super) fn take(&mut self) -> CutOffRanks {
        self.due = None;
        let mut all = core::mem::take(&mut self.all);
        all.ranks.sort_unstable();
        all.lines.sort_unstable();
        all.lines.truncate(SHOWN);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rank::JobRank;

    #[test]
    fn the_parts_of_hosts_become_one_report() {
        let mut report = CutOffReport::default();
        let part = |ranks: std::ops::Range<u32>| CutOffRanks {
            ranks: ranks.clone().map(JobRank).collect(),
            lines: ranks.map(|rank| (JobRank(rank), format!("rank {rank}"))).collect(),
        };
        report.add(part(10..16), 5);
        report.add(part(2..6), 7);
        assert_eq!(report.deadline(), Some(5 + WINDOW));
        let all = report.take();
        assert_eq!((all.ranks.len(), all.lines.len()), (10, SHOWN));
        assert_eq!((all.ranks[0], all.lines[4].0), (JobRank(2), JobRank(10)));
        assert!(report.deadline().is_none() && report.take().ranks.is_empty());
    }
}
