//! An endpoint: what a rank sends and receives with, and the memory that it exposes.
//!
//! Made by `start`; calls reach it through [`Ctx::endpoint`](super::Ctx::endpoint), and
//! `address` resolves addresses in its segments. Invariant: segments are bound once, by
//! `gasnet_attach`; before, there are none.

use super::handlers::HandlerTable;
use super::segment::Segments;
use crate::client_memory::Dst;
use crate::conduit::network::JobConduit;
use crate::rank::JobRank;
use alloc::boxed::Box;
use once_cell::race::OnceBox;

/// An endpoint, whose handlers run in contexts `C`.
#[derive(Debug)]
pub struct Endpoint<C: 'static> {
    /// The rank that has it.
    pub rank: JobRank,
    /// The network.
    pub conduit: JobConduit,
    /// Registered handlers.
    pub handlers: HandlerTable<C>,
    bound: OnceBox<Segments>,
}

impl<C> Endpoint<C> {
    pub(super) fn new(rank: JobRank, conduit: JobConduit) -> Endpoint<C> {
        Endpoint { rank, conduit, handlers: HandlerTable::default(), bound: OnceBox::new() }
    }

    /// Binds the segments; false, and nothing done, the second time.
    pub(super) fn bind(&self, segments: Segments) -> bool {
        self.bound.set(Box::new(segments)).is_ok()
    }

    /// The segment that is bound to it; `None` before `gasnet_attach`.
    pub fn bound_segment(&self) -> Option<Dst<'static>> {
        self.bound.get().map(Segments::own)
    }

    /// The segments of all endpoints that it can reach.
    ///
    /// # Panics
    /// Before `gasnet_attach`; `capi` rejects calls before.
    pub fn segments(&self) -> &Segments {
        self.bound.get().expect("attached")
    }
}
