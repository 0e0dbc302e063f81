//! Vector transfers that a network completes within the call, many runs at a time.
//!
//! Used by `super` in EVERYTHING. Invariant: what the first call did not take is not done; once it
//! has taken runs, all are transferred.

use super::operation::VisDirection;
use super::pieces::{VisRun, VisShape};
use crate::client_memory::{AddressSpace, Dst, RemoteRange, UncheckedRange};
use crate::conduit::{SCATTERED, ScatteredRma};
use crate::extended::rma;
use crate::rank::JobRank;
use crate::runtime::GasnetJob;

/// Runs that are collected.
struct RunBatch {
    job: &'static GasnetJob,
    put: bool,
    rank: JobRank,
    pieces: [ScatteredRma; SCATTERED],
    used: usize,
    /// Whether the network has taken runs; `None` before it was asked to.
    taken: Option<bool>,
}

impl RunBatch {
    fn push(&mut self, run: VisRun, remote: RemoteRange) {
        if self.taken == Some(false) {
            return;
        }
        self.pieces[self.used] = ScatteredRma { local: run.local(), offset: remote.offset() };
        self.used += 1;
        if self.used == SCATTERED {
            self.flush();
        }
    }

    fn flush(&mut self) {
        let pieces = &self.pieces[..self.used];
        self.used = 0;
        if pieces.is_empty() {
            return;
        }
        let conduit = &self.job.endpoint.conduit;
        if conduit.scattered_at_once(self.put, self.rank, pieces) {
            self.taken = Some(true);
        } else if self.taken.is_none() {
            self.taken = Some(false);
        } else {
            // The first runs have moved, so the others must.
            for piece in pieces {
                let all = AddressSpace::of(self.rank, false);
                let remote = all.part(piece.offset, piece.local.len());
                match self.put {
                    true => rma::put(self.job, remote, piece.local.into()),
                    false => rma::get(self.job, piece.local, remote),
                }
            }
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
    let nothing = ScatteredRma { local: Dst::empty(), offset: 0 };
    let pieces = [nothing; SCATTERED];
    let mut batch = RunBatch { job, put, rank, pieces, used: 0, taken: None };
    shape.each(|run| {
        // SAFETY: a piece of a list that `capi` made of the client's, at addresses of the rank.
        let bytes = unsafe { UncheckedRange::new(run.remote, run.n) };
        batch.push(run, job.endpoint.remote_range(function, rank, bytes));
    });
    batch.flush();
    batch.taken != Some(false)
}
