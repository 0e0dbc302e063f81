//! Vector transfers that a network completes within the call, many runs at a time.
//!
//! Used by `super` in EVERYTHING. Invariant: what the first call did not take is not done; once it
//! has taken runs, all are transferred.

use super::operation::VisDirection;
use super::pieces::VisShape;
use crate::client_memory::UncheckedRange;
use crate::extended::batch::PieceBatch;
use crate::rank::JobRank;
use crate::runtime::GasnetJob;

/// Runs that are collected.
struct RunBatch {
    job: &'static GasnetJob,
    pieces: PieceBatch,
    /// Whether the network has taken runs; `None` before it was asked to.
    taken: Option<bool>,
}

impl RunBatch {
    fn flush(&mut self) {
        if self.pieces.is_empty() || self.taken == Some(false) {
            return;
        }
        if self.pieces.send(self.job) {
            self.taken = Some(true);
        } else if self.taken.is_none() {
            self.taken = Some(false);
        } else {
            // The first runs have moved, so the others must.
            self.pieces.send_each(self.job);
        }
    }
}

/// Puts or gets all pieces of a shape, whose remote side is at `rank`. False, and nothing done, if
/// the network does not do that within the call. Ends the job if an address is no memory of the
/// rank.
pub(super) fn scattered(
    function: &'static str,
    job: &'static GasnetJob,
    direction: VisDirection,
    rank: JobRank,
    shape: &impl VisShape,
) -> bool {
    let put = direction == VisDirection::Put;
    let mut batch = RunBatch { job, pieces: PieceBatch::new(put, rank), taken: None };
    shape.each(|run| {
        // SAFETY: a piece of a list that `capi` made of the client's, at addresses of the rank.
        let bytes = unsafe { UncheckedRange::new(run.remote, run.n) };
        let remote = job.endpoint.remote_range(function, rank, bytes);
        if batch.pieces.is_full() {
            batch.flush();
            batch.pieces.restart(put, rank);
        }
        batch.pieces.push(run.local(), remote);
    });
    batch.flush();
    batch.taken != Some(false)
}
