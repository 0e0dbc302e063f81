//! Which ranks have an error that one of them has printed.
//!
//! Owned by [`super::Supervisor`]. Invariants: what a rank has withheld is reported, at the latest
//! when the job has ended. An error of another host is left out only if the same text was printed
//! to the same file within the last second, or a rank of this host prints it now.
//!
//! ```text
//! ranks of a host      withhold what one of them prints          (error_folds)
//! their supervisor     sends hash, printer and ranks up
//! supervisor above     leaves out what it or a rank of its host has printed, and merges the ranks
//! root                 prints "ranks 0-63: the same error, printed by rank 5"
//! ```

use super::rank_process::RankProcess;
use super::status_request::named;
use crate::boot::control_memory::ControlMemory;
use crate::boot::error_folds;
use crate::boot::hosts::message::WithheldError;
use crate::rank::JobRank;
use crate::report::{self, PrintedError};
use std::collections::{BTreeMap, BTreeSet};

/// Nanoseconds from the first notification to the report, to the user and to the host above.
const WINDOW: u64 = 200_000_000;
const HOST_WINDOW: u64 = 50_000_000;
/// Nanoseconds within which the same error of another host is left out, and for which it is known
/// which error stands for it.
const RECENT: u64 = 1_000_000_000;
const KNOWN: u64 = 10_000_000_000;
/// Errors of other hosts that are known at once.
const MOST_KNOWN: usize = 1024;

/// Errors that are not reported yet.
#[derive(Debug, Default)]
pub(super) struct FoldedErrors {
    due: Option<u64>,
    /// Ranks that have an error with this hash, which this rank prints.
    withheld: BTreeMap<(u32, JobRank), BTreeSet<JobRank>>,
    /// Errors that ranks of other hosts have printed, by time.
    arrived: Vec<ArrivedError>,
}

/// An error that a rank of another host has printed.
#[derive(Debug)]
struct ArrivedError {
    hash: u32,
    of: JobRank,
    /// The rank whose text this process or a rank of its host has printed.
    by: JobRank,
    at: u64,
}

impl FoldedErrors {
    /// A rank has withheld an error. `is_below`: a host above prints the report.
    pub(super) fn notice(&mut self, now: u64, is_below: bool) {
        self.due.get_or_insert(now + if is_below { HOST_WINDOW } else { WINDOW });
    }

    /// When a report is due.
    pub(super) fn deadline(&self) -> Option<u64> {
        self.due
    }

    /// Whether an error that a rank of another host has printed is to be printed here.
    pub(super) fn is_news(
        &mut self,
        error: PrintedError,
        now: u64,
        control: ControlMemory,
        ranks: &[RankProcess],
    ) -> bool {
        let PrintedError { hash, rank, .. } = error;
        let of = JobRank(rank);
        self.arrived.retain(|a| now < a.at + KNOWN);
        if self.arrived.len() == MOST_KNOWN {
            self.arrived.remove(0);
        }
        let shown = self.shown(hash).filter(|a| a.by != of && now <= a.at + RECENT);
        let by = shown.map(|a| a.by).or_else(|| {
            let claim = control.claim_elsewhere(error_folds::in_file(hash)?, now)?;
            ranks.get(claim.rank as usize).map(|r| r.rank)
        });
        self.arrived.push(ArrivedError { hash, of, by: by.unwrap_or(of), at: now });
        if let Some(by) = by {
            self.withheld.entry((hash, by)).or_default().insert(of);
        }
        by.is_none()
    }

    /// The error with this hash that was printed last.
    fn shown(&self, hash: u32) -> Option<&ArrivedError> {
        self.arrived.iter().rfind(|a| a.hash == hash && a.of == a.by)
    }

    /// Ranks of a host below have withheld these errors.
    pub(super) fn add(&mut self, errors: Vec<WithheldError>) {
        for WithheldError { hash, by, ranks } in errors {
            self.withheld.entry((hash, by)).or_default().extend(ranks);
        }
    }

    /// The errors that were withheld since the last call, each with all ranks that have it.
    pub(super) fn take(
        &mut self,
        control: ControlMemory,
        ranks: &[RankProcess],
    ) -> Vec<WithheldError> {
        self.due = None;
        for r in ranks {
            let Some(printed) = control.withheld_error(r.local_rank) else { continue };
            let Some(hash) = error_folds::in_file(printed.hash) else { continue };
            // A claim names its rank on this host.
            let by = match ranks.get(printed.rank as usize) {
                Some(by) => by.rank,
                None => self.shown(hash).map_or(r.rank, |a| a.by),
            };
            self.withheld.entry((hash, by)).or_default().insert(r.rank);
        }
        let mut merged: BTreeMap<(JobRank, u32), BTreeSet<JobRank>> = BTreeMap::new();
        for ((hash, by), of) in std::mem::take(&mut self.withheld) {
            // What a rank of another host has printed may have been left out here.
            let arrived = self.arrived.iter().rfind(|a| a.hash == hash && a.of == by);
            let printed_by = arrived.map_or(by, |a| a.by);
            let all = merged.entry((printed_by, hash)).or_default();
            all.extend(of);
            all.extend([by, printed_by]);
        }
        let error = |((by, hash), of): (_, BTreeSet<_>)| WithheldError {
            hash,
            by,
            ranks: of.into_iter().collect(),
        };
        merged.into_iter().map(error).collect()
    }
}

/// Prints which ranks have the same errors.
pub(super) fn report(errors: &[WithheldError]) {
    for WithheldError { by, ranks, .. } in errors {
        let ranks: Vec<u32> = ranks.iter().map(|r| r.0).collect();
        report::line(format_args!("{}: the same error, printed by rank {by}", named(&ranks)));
    }
}
