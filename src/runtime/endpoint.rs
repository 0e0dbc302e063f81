//! An endpoint: what a rank sends and receives with, and the memory that it exposes.
//!
//! Made by `start`; calls reach it through [`Ctx::endpoint`](super::Ctx::endpoint), and
//! `address` resolves addresses in its segments. Invariant: segments are bound once, by
//! `gasnet_attach` or `gex_Segment_Attach`; before, there are none.

use super::handlers::HandlerTable;
use super::segment::{Segment, Segments};
use crate::client_memory::Dst;
use crate::conduit::network::JobConduit;
use crate::rank::JobRank;
use crate::report;
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

    /// The segments of all endpoints that it can reach, which were attached.
    pub fn segments(&self) -> &Segments {
        self.bound.get().expect("calls that need segments have checked that there are any")
    }

    /// The segments, for a call of a client. Ends the job if there are none: a client of GASNet-EX
    /// can call before it attaches one.
    #[inline(always)]
    pub fn segments_for(&self, function: &str) -> &Segments {
        match self.bound.get() {
            Some(segments) => segments,
            None => no_segments(function),
        }
    }

    /// The segment of a rank; `None` before the segments are attached.
    pub fn segment_of(&self, rank: JobRank) -> Option<&Segment> {
        self.bound.get().map(|segments| &segments[rank])
    }
}

/// Ends the job: a call needs segments.
#[cold]
#[inline(never)]
fn no_segments(function: &str) -> ! {
    report::fatal(
        format_args!("{function}() was called before any segment exists"),
        format_args!("Call gex_Segment_Attach in all ranks first."),
    )
}
