//! Puts and gets that the network completes within the call, without an operation.
//!
//! Called by the extended layer through `JobConduit`, and by `am_plan`. Invariant: a call that
//! returns false has done nothing.

use super::match_bits::{MessageKind, RmaBits};
use super::portals::{Direct, Portals, ScatteredRma};
use super::{Conduit, OpId};
use crate::client_memory::{Dst, RemoteRange, Src};
use crate::rank::JobRank;
use sys::hint::cold_path;

impl<P: Portals> Conduit<P> {
    /// Puts pieces to a rank, or gets them, as [`Conduit::put_at_once`] does one.
    pub fn scattered_at_once(&self, put: bool, rank: JobRank, pieces: &[ScatteredRma]) -> bool {
        if self.config.targets_regions() {
            return false;
        }
        let kind = if put { MessageKind::Put } else { MessageKind::Get };
        let to = self.in_segment(rank, 0, NO_OPERATION.pack(kind));
        match self.direct(to.process) {
            Some(direct) => direct.scattered_at_once(put, pieces, &to),
            None => false,
        }
    }

    /// Puts to a segment, to be there when this returns; false, and nothing done, where the
    /// network cannot do that within the call.
    // Inlined: 0.93 of the instructions of row `put_8`, 0.95 of `long_64_request`.
    #[inline(always)]
    pub fn put_at_once(&self, dst: RemoteRange, src: Src<'_>) -> bool {
        if src.len() > self.config.max_transfer {
            cold_path();
            return self.put_registered_at_once(dst, src);
        }
        let bits = NO_OPERATION.pack(MessageKind::Put);
        let to = self.in_segment(dst.rank(), dst.offset(), bits);
        match self.direct(to.process) {
            Some(direct) => direct.put_at_once([src], &to),
            None => false,
        }
    }

    /// Gets from a segment, as [`Conduit::put_at_once`] puts to it.
    #[inline]
    pub fn get_at_once(&self, dst: Dst<'_>, src: RemoteRange) -> bool {
        if dst.len() > self.config.max_transfer {
            cold_path();
            return self.get_registered_at_once(dst, src);
        }
        let bits = NO_OPERATION.pack(MessageKind::Get);
        let from = self.in_segment(src.rank(), src.offset(), bits);
        match self.direct(from.process) {
            Some(direct) => direct.get_at_once(dst, &from),
            None => false,
        }
    }

    /// [`Conduit::put_at_once`] where the network has remembered that it maps the memory.
    #[inline(always)]
    pub fn put_mapped(&self, dst: RemoteRange, src: Src<'_>) -> bool {
        if src.len() > self.config.max_transfer {
            return false;
        }
        let bits = NO_OPERATION.pack(MessageKind::Put);
        let to = self.in_segment(dst.rank(), dst.offset(), bits);
        self.direct(to.process).is_some_and(|direct| direct.put_mapped(src, &to))
    }

    /// [`Conduit::get_at_once`], as [`Conduit::put_mapped`].
    #[inline]
    pub fn get_mapped(&self, dst: Dst<'_>, src: RemoteRange) -> bool {
        if dst.len() > self.config.max_transfer {
            return false;
        }
        let bits = NO_OPERATION.pack(MessageKind::Get);
        let from = self.in_segment(src.rank(), src.offset(), bits);
        self.direct(from.process).is_some_and(|direct| direct.get_mapped(dst, &from))
    }
}

/// What a put or get that may not wait has taken before it begins.
#[derive(Debug)]
#[must_use = "it holds a ticket"]
pub struct RmaClaim {
    /// A temporary descriptor, until it is used. With it goes a send ticket.
    pub(super) slot: Option<u32>,
}

impl<P: Portals> Conduit<P> {
    /// Takes what one put or get may need, so that it does not wait. `None`, and nothing done, if
    /// something is short. A transfer of more than one message, or of memory that must be
    /// registered, may wait nevertheless.
    pub fn claim(&self) -> Option<RmaClaim> {
        let slot = self.tmpmd.take()?;
        if self.tickets.take(1).is_none() {
            self.tmpmd.give(slot);
            return None;
        }
        Some(RmaClaim { slot: Some(slot) })
    }

    /// The transfer takes over the ticket.
    pub(super) fn keep_ticket(&self, claim: RmaClaim) {
        claim.slot.into_iter().for_each(|slot| self.tmpmd.give(slot));
    }

    /// Gives all of it back.
    #[cold]
    pub(super) fn unclaim(&self, claim: RmaClaim) {
        self.tickets.give(1);
        self.keep_ticket(claim);
    }
}

/// Stands for an operation where no event will need one.
const NO_OPERATION: RmaBits = RmaBits { op: OpId(0), local: None, chunk: 0 };
