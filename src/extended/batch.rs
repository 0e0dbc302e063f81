//! Pieces of memory of a rank, all to be put or all to be gotten, that leave in one call.
//!
//! Filled by [`super::trains`] and `vis`, where ranks expose their address spaces. Invariant: no
//! piece is moved before [`PieceBatch::send`] or [`PieceBatch::send_each`] is called.

use super::rma;
use crate::client_memory::{AddressSpace, Dst, RemoteRange};
use crate::conduit::{SCATTERED, ScatteredRma};
use crate::rank::JobRank;
use crate::runtime::GasnetJob;

/// The pieces.
#[derive(Debug)]
pub(super) struct PieceBatch {
    put: bool,
    rank: JobRank,
    pieces: [ScatteredRma; SCATTERED],
    used: usize,
}

impl PieceBatch {
    /// No pieces: for puts to a rank, or gets from it.
    pub(super) fn new(put: bool, rank: JobRank) -> PieceBatch {
        let nothing = ScatteredRma { local: Dst::empty(), offset: 0 };
        PieceBatch { put, rank, pieces: [nothing; SCATTERED], used: 0 }
    }

    /// Empties it for others.
    pub(super) fn restart(&mut self, put: bool, rank: JobRank) {
        (self.put, self.rank, self.used) = (put, rank, 0);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.used == 0
    }

    pub(super) fn is_full(&self) -> bool {
        self.used == SCATTERED
    }

    /// Whether its pieces are put, or gotten, as given here, and their remote side is at `rank`.
    pub(super) fn is_for(&self, put: bool, rank: JobRank) -> bool {
        self.put == put && self.rank == rank
    }

    /// Adds a piece; there must be room. Of a put, `local` stays unchanged until the batch is
    /// sent.
    pub(super) fn push(&mut self, local: Dst<'static>, remote: RemoteRange) {
        self.pieces[self.used] = ScatteredRma { local, offset: remote.offset() };
        self.used += 1;
    }

    /// Moves all pieces, unless the network does not do that within the call: false then, and
    /// nothing was done.
    pub(super) fn send(&self, job: &GasnetJob) -> bool {
        job.endpoint.conduit.scattered_at_once(self.put, self.rank, &self.pieces[..self.used])
    }

    /// Moves all pieces, one by one.
    pub(super) fn send_each(&self, job: &'static GasnetJob) {
        let all = AddressSpace::of(self.rank, false);
        for piece in &self.pieces[..self.used] {
            let remote = all.part(piece.offset, piece.local.len());
            match self.put {
                true => rma::put(job, remote, piece.local.into()),
                false => rma::get(job, piece.local, remote),
            }
        }
    }
}
