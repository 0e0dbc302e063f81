//! What the conduit asks of the layer above, which hands it down with every call.
//!
//! Implemented by `runtime::am`. Invariant: the conduit reaches the layers above it through this
//! trait only.

use super::message::{AmMessage, OpId, SystemMessage};
use super::reply_token::ReplyToken;
use crate::rank::JobRank;

/// What a sender waits for, as a report names it.
#[derive(Clone, Copy, Debug)]
pub struct ResourceNeed {
    /// What.
    pub what: &'static &'static str,
    /// The rank that must give it back, if it is one.
    pub peer: Option<JobRank>,
    /// Whether the caller has none of what it needs to send before this. Then all that it has
    /// taken so far belongs to messages that have left.
    pub all_sent: bool,
}

impl ResourceNeed {
    /// Not of one rank, and by a caller that has taken something.
    pub(crate) const fn of(what: &'static &'static str) -> ResourceNeed {
        ResourceNeed { what, peer: None, all_sent: false }
    }
}

/// What the upper layer does for the conduit: a small `Copy` context that is passed with every
/// call.
pub trait Upcall: Copy {
    /// Index of the calling thread, below [`super::Config::threads`]; indexes per-thread caches.
    fn thread(self) -> usize;
    /// Runs the handler of a request. The handler may call [`super::Conduit::reply`] with `token`
    /// at most once; if it does not, the conduit sends the implicit reply afterwards.
    fn run_request(self, token: &mut ReplyToken, message: AmMessage<'_>);
    /// Runs the handler of a reply.
    fn run_reply(self, message: AmMessage<'_>);
    /// One of the [`super::Conduit::fragments`] of the put or get with this id is complete.
    fn op_done(self, op: OpId);
    /// The source of one of the fragments of this put, which [counts
    /// departures](OpId::counts_departures), may be reused.
    fn op_departed(self, op: OpId);
    /// A system message of process `source` that is not the conduit's own.
    fn system(self, source: JobRank, message: SystemMessage) {
        let _ = (source, message);
    }
    /// Called between two polls of a wait for resources; `round` counts from 0. Checks whether
    /// the job is ending, and spins, yields or sleeps as the wait mode says. `need` is what is
    /// waited for.
    fn pause(self, round: u32, need: ResourceNeed);

    /// A wait has ended that may have paused.
    fn end_pauses(self) {}
}
