//! An endpoint: what a rank sends and receives with, and the memory that it exposes.
//!
//! Made by `start`; calls reach it through [`Ctx::endpoint`](super::Ctx::endpoint), and
//! `address` resolves addresses in its segments. Invariants: the own segment is bound once, by
//! `gasnet_attach`, `gex_Segment_Attach` or `gex_EP_BindSegment`. The table of all segments is
//! replaced when ranks publish what they have bound; an older one stays in memory, because another
//! thread may read it.

use super::handlers::HandlerTable;
use super::segment::{PublishedSegment, Segment, Segments};
use crate::client_memory::Dst;
use crate::conduit::network::JobConduit;
use crate::rank::JobRank;
use crate::report;
use alloc::boxed::Box;
use core::sync::atomic::{AtomicPtr, Ordering};
use parking_lot::Mutex;

/// An endpoint, whose handlers run in contexts `C`.
#[derive(Debug)]
pub struct Endpoint<C: 'static> {
    /// The rank that has it.
    pub rank: JobRank,
    /// The network.
    pub conduit: JobConduit,
    /// Registered handlers.
    pub handlers: HandlerTable<C>,
    /// Null, or a table that is never freed; stored while `changes` is locked.
    known: AtomicPtr<Segments>,
    changes: Mutex<()>,
}

impl<C> Endpoint<C> {
    pub(super) fn new(rank: JobRank, conduit: JobConduit) -> Endpoint<C> {
        let known = AtomicPtr::new(core::ptr::null_mut());
        Endpoint {
            rank,
            conduit,
            handlers: HandlerTable::default(),
            known,
            changes: Mutex::new(()),
        }
    }

    /// The segments that are known here; `None` before any is.
    #[inline(always)]
    pub fn known_segments(&self) -> Option<&'static Segments> {
        // SAFETY: null, or from a box that `replace` has leaked; Acquire pairs with its Release.
        unsafe { self.known.load(Ordering::Acquire).as_ref() }
    }

    /// To be called with `changes` locked.
    fn replace(&self, segments: Segments) {
        self.known.store(Box::into_raw(Box::new(segments)), Ordering::Release);
    }

    /// Binds the segments that all ranks have attached; false, and nothing done, if there are any.
    pub(super) fn bind(&self, segments: Segments) -> bool {
        let _lock = self.changes.lock();
        let is_first = self.known_segments().is_none();
        if is_first {
            self.replace(segments);
        }
        is_first
    }

    /// Binds memory of this rank alone, which `expose` lets peers reach. Peers know it when it has
    /// been published. Returns what `expose` does; `None` if a segment is bound already.
    pub fn bind_own<E>(
        &self,
        ranks: u32,
        own: Dst<'static>,
        expose: impl FnOnce() -> Result<(), E>,
    ) -> Option<Result<(), E>> {
        let _lock = self.changes.lock();
        let known = self.known_segments();
        if known.is_some_and(|known| known.bound().is_some()) {
            return None;
        }
        let exposed = expose();
        if exposed.is_ok() {
            let bound = match known {
                Some(known) => known.with_own(self.rank, own),
                None => Segments::none(ranks).with_own(self.rank, own),
            };
            self.replace(bound);
        }
        Some(exposed)
    }

    /// Adds the segments of other ranks, which these have published. Those that are known stay.
    pub fn add_published(
        &self,
        ranks: u32,
        published: impl Iterator<Item = (JobRank, PublishedSegment)>,
    ) {
        let _lock = self.changes.lock();
        let known = self.known_segments();
        let is_new = |(rank, _): &(JobRank, PublishedSegment)| {
            known.is_none_or(|known| !known[*rank].is_known())
        };
        let mut added = published.filter(is_new).peekable();
        if added.peek().is_some() {
            let before = known.map_or_else(|| Segments::none(ranks), Segments::clone);
            self.replace(before.with_published(added));
        }
    }

    /// The segment that is bound to it; `None` before.
    pub fn bound_segment(&self) -> Option<Dst<'static>> {
        self.known_segments().and_then(Segments::bound)
    }

    /// Whether all ranks have attached segments together.
    pub fn is_attached(&self) -> bool {
        self.known_segments().is_some_and(Segments::are_attached)
    }

    /// The segments of all endpoints that it can reach, which were attached.
    pub fn segments(&self) -> &'static Segments {
        self.known_segments().expect("calls that need segments have checked that there are any")
    }

    /// The segments, for a call of a client. Ends the job if there are none: a client of GASNet-EX
    /// can call before it attaches one.
    #[inline(always)]
    pub fn segments_for(&self, function: &str) -> &'static Segments {
        match self.known_segments() {
            Some(segments) => segments,
            None => no_segments(function),
        }
    }

    /// The segment of a rank; `None` before any are known.
    pub fn segment_of(&self, rank: JobRank) -> Option<&'static Segment> {
        self.known_segments().map(|segments| &segments[rank])
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
