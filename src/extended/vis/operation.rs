//! A vector transfer whose messages are being initiated, and the puts and gets of its runs.
//!
//! Used by `super` and by `packing`. Invariant: every message is counted in the operation before
//! it is sent.

use super::pieces::VisRun;
use crate::client_memory::{Dst, RemoteRange, Src, UncheckedRange};
use crate::conduit::{CHUNK, MOST_PIECES, OpId};
use crate::rank::JobRank;
use crate::runtime::Ctx;
use crate::runtime::ops::{ImplicitKind, OpHandle};
use core::ptr;

/// Where the data go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VisDirection {
    /// From the local to the remote side.
    Put,
    /// From the remote to the local side.
    Get,
}

/// See the module.
#[derive(Debug)]
pub(super) struct VisOperation {
    pub(super) ctx: Ctx,
    /// The rank of the remote side.
    pub(super) rank: JobRank,
    pub(super) direction: VisDirection,
    /// `None` for the implicit form.
    pub(super) handle: Option<OpHandle>,
    pub(super) function: &'static str,
}

impl VisOperation {
    /// Counts fragments that are about to be initiated, and names their operation.
    pub(super) fn count(&self, fragments: u32) -> OpId {
        let ops = &self.ctx.job.ops;
        let kind = match (self.handle, self.direction) {
            (Some(handle), _) => {
                ops.extend(handle, fragments);
                return handle.op();
            }
            (None, VisDirection::Put) => ImplicitKind::Puts,
            (None, VisDirection::Get) => ImplicitKind::Gets,
        };
        ops.begin_implicit(self.ctx.thread_index(), kind, fragments)
    }

    /// A put or get for one run.
    pub(super) fn each(&self, run: VisRun) {
        let conduit = &self.ctx.endpoint().conduit;
        let op = self.count(conduit.fragments(run.n));
        let remote = self.remote(run.remote, run.n);
        match self.direction {
            VisDirection::Put => conduit.put_bulk(self.ctx, remote, run.local().into(), op),
            VisDirection::Get => conduit.get(self.ctx, run.local(), remote, op),
        }
    }

    /// `n` bytes of the remote side.
    fn remote(&self, at: *mut u8, n: usize) -> RemoteRange {
        // SAFETY: a piece of a list that `capi` made of the client's, at addresses of the rank.
        let bytes = unsafe { UncheckedRange::new(at, n) };
        self.ctx.endpoint().remote_range(self.function, self.rank, bytes)
    }
}

/// Collects runs that are neighbours on the remote side, and puts or gets them by one message.
pub(super) struct ScatteredTransfer<'a> {
    operation: &'a VisOperation,
    pieces: [Dst<'static>; MOST_PIECES],
    count: usize,
    /// [`crate::conduit::Conduit::most_pieces`]
    most: usize,
    /// First byte of the remote side.
    remote: *mut u8,
    bytes: usize,
}

impl<'a> ScatteredTransfer<'a> {
    /// With no runs.
    pub(super) fn new(operation: &'a VisOperation) -> ScatteredTransfer<'a> {
        let most = operation.ctx.endpoint().conduit.most_pieces().min(MOST_PIECES);
        let pieces = [Dst::empty(); MOST_PIECES];
        let remote = ptr::null_mut();
        ScatteredTransfer { operation, pieces, count: 0, most, remote, bytes: 0 }
    }

    /// Adds a run; transfers the runs before if it does not follow.
    pub(super) fn push(&mut self, run: VisRun) {
        let follows = self.remote.wrapping_add(self.bytes) == run.remote;
        let fits = self.operation.ctx.endpoint().conduit.fragments(self.bytes + run.n) == 1;
        if !follows || !fits || self.count == self.most {
            self.transfer();
            self.remote = run.remote;
        }
        self.pieces[self.count] = run.local();
        self.count += 1;
        self.bytes += run.n;
    }

    /// Transfers what was collected.
    pub(super) fn transfer(&mut self) {
        let (operation, pieces) = (self.operation, &self.pieces[..self.count]);
        if !pieces.is_empty() {
            let (conduit, ctx) = (&operation.ctx.endpoint().conduit, operation.ctx);
            let remote = operation.remote(self.remote, self.bytes);
            // Of one piece there may be several.
            let op = operation.count(conduit.fragments(self.bytes));
            match (operation.direction, pieces) {
                (VisDirection::Put, &[piece]) => conduit.put_bulk(ctx, remote, piece.into(), op),
                (VisDirection::Put, _) => conduit.put_scattered(ctx, remote, pieces, op),
                (VisDirection::Get, &[piece]) => conduit.get(ctx, piece, remote, op),
                (VisDirection::Get, _) => conduit.get_scattered(ctx, pieces, remote, op),
            }
        }
        (self.count, self.bytes) = (0, 0);
    }
}

/// Gathers runs that are neighbours on the remote side, and puts them together.
pub(super) struct GatheredPut<'a> {
    operation: &'a VisOperation,
    data: [u8; CHUNK],
    /// First byte of the remote side.
    remote: *mut u8,
    used: usize,
}

impl<'a> GatheredPut<'a> {
    /// With no runs.
    pub(super) fn new(operation: &'a VisOperation) -> GatheredPut<'a> {
        GatheredPut { operation, data: [0; CHUNK], remote: ptr::null_mut(), used: 0 }
    }

    /// Adds a run that is no longer than a chunk; puts the runs before if it does not follow.
    pub(super) fn push(&mut self, run: VisRun) {
        if self.remote.wrapping_add(self.used) != run.remote || self.used + run.n > CHUNK {
            self.put();
            self.remote = run.remote;
        }
        Dst::from(&mut self.data[self.used..][..run.n]).copy_from(run.local().into());
        self.used += run.n;
    }

    /// Puts what was gathered.
    pub(super) fn put(&mut self) {
        let (operation, n) = (self.operation, self.used);
        if n != 0 {
            let conduit = &operation.ctx.endpoint().conduit;
            let op = operation.count(conduit.fragments(n));
            let remote = operation.remote(self.remote, n);
            conduit.put(operation.ctx, remote, Src::from(&self.data[..n]), op);
        }
        self.used = 0;
    }
}
