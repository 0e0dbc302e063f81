//! Which ranks have an error that one of them has printed.
//!
//! Owned by [`super::Supervisor`]. Invariant: what a rank has withheld is printed, at the latest
//! when the job has ended.

use super::rank_process::RankProcess;
use super::status_request::named;
use crate::boot::control_memory::ControlMemory;
use crate::boot::error_folds::ErrorClaim;
use crate::report;
use std::collections::{BTreeMap, BTreeSet};

/// Nanoseconds from the first notification to the report.
const WINDOW: u64 = 200_000_000;

/// When a report is due.
#[derive(Debug, Default)]
pub(super) struct FoldedErrors {
    due: Option<u64>,
}

impl FoldedErrors {
    /// A rank has withheld an error.
    pub(super) fn notice(&mut self, now: u64) {
        self.due.get_or_insert(now + WINDOW);
    }

    /// When [`FoldedErrors::check`] is due.
    pub(super) fn deadline(&self) -> Option<u64> {
        self.due
    }

    /// Prints the report if it is due.
    pub(super) fn check(&mut self, now: u64, control: ControlMemory, ranks: &[RankProcess]) {
        if self.due.is_some_and(|due| now >= due) {
            self.report(control, ranks);
        }
    }

    /// Prints which ranks have withheld which error.
    pub(super) fn report(&mut self, control: ControlMemory, ranks: &[RankProcess]) {
        self.due = None;
        let mut errors: BTreeMap<(u32, ErrorClaim), BTreeSet<u32>> = BTreeMap::new();
        for r in ranks {
            let Some(printed) = control.withheld_error(r.local_rank) else { continue };
            // A claim names its rank on this host.
            let Some(by) = ranks.get(printed.rank as usize) else { continue };
            errors.entry((by.rank.0, printed)).or_default().extend([r.rank.0, by.rank.0]);
        }
        for ((printed_by, _), of) in errors {
            let of: Vec<u32> = of.into_iter().collect();
            report::line(format_args!(
                "{}: the same error, printed by rank {printed_by}",
                named(&of)
            ));
        }
    }
}
