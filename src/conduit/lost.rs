//! Messages that are proved lost: an event was overwritten with values that are valid, but belong
//! to another message.
//!
//! Called by a thread that has waited for long, on networks with `SharedHost`. Invariant: what is
//! looked at here has no transient states while the only thread of a process waits, so the check
//! runs in SEQ alone.

use super::hold::Hold;
use super::portals::Portals;
use super::state::Conduit;
use crate::rank::JobRank;
use crate::report;

/// What the state of a waiting rank proves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LostMessage {
    /// The header of a Long of this rank waits for its data. The sender sends the data first, and
    /// networks with [`SharedHost`](super::portals::SharedHost) deliver in order.
    LongData(JobRank),
    /// A chunk waits for the reply to its request, but all credits have been returned. Both are
    /// returned by the reply.
    Reply,
}

impl<P: Portals> Conduit<P> {
    /// Ends the job if a message is proved lost.
    pub fn check_lost(&self) {
        match self.lost_message() {
            None => {}
            Some(LostMessage::LongData(rank)) => report::damaged(format_args!(
                "the data of a Long active message of rank {rank} was lost: its header has arrived"
            )),
            Some(LostMessage::Reply) => report::damaged(format_args!(
                "the reply to an active message was lost: all credits have been returned, but its \
                 chunk has not"
            )),
        }
    }

    pub(super) fn lost_message(&self) -> Option<LostMessage> {
        if self.config.par() {
            return None;
        }
        let header = self.request_lids.waiting_header();
        if let Some(rank) = header.or_else(|| self.reply_lids.waiting_header()) {
            return Some(LostMessage::LongData(rank));
        }
        let lost = self.credits.in_use() == Some(0) && self.reqsb.holds(Hold::REQUEST);
        lost.then_some(LostMessage::Reply)
    }
}
