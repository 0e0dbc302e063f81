//! What a request may need that is negotiated before its length is known.
//!
//! Called by `capi`, for a client that prepares an immediate request. Invariant: nothing stays
//! taken. The answer holds for every length up to the largest, until another thread takes what was
//! free.
//!
//! | what is committed | needs |
//! |---|---|
//! | a message of a rank to itself | nothing |
//! | a Medium that stays in the outbox or in a large area | the credit of its header |
//! | a shorter one, or one without an area | the credits of its payload, at most a whole message |
//! | a larger one without an area | those of all pieces, and their chunks |
//! | a Long to a target that is mapped | the credit of its header |
//! | another Long in one message | the credits of its payload |
//! | a longer one | two credits, a send ticket, a temporary descriptor |

use super::am_body::{DESTINATION_BYTES, addressed_bytes, args_bytes};
use super::am_plan::{SendPlan, credits_for};
use super::large_areas::PayloadArea;
use super::match_bits::{AmForm, EXTENTS};
use super::message::PIECE;
use super::portals::Portals;
use super::{CHUNK, Conduit, MAX_EAGER, credits};
use crate::rank::JobRank;

/// The payload of a negotiated request. Its sender may shorten it.
#[derive(Clone, Copy, Debug)]
pub enum NegotiatedPayload {
    /// That of a Medium, of at most this many bytes.
    Medium(usize),
    /// That of a Medium, in this area.
    InArea(PayloadArea),
    /// That of a Long, of at most this many bytes.
    Long {
        /// Bytes.
        most: usize,
        /// Whether this process maps the segment of the target.
        mapped: bool,
    },
}

impl<P: Portals> Conduit<P> {
    /// Whether a request with this payload and `numargs` arguments would not wait now for credits,
    /// chunks, tickets or descriptors, whatever its final length.
    pub fn may_request(&self, rank: JobRank, payload: NegotiatedPayload, numargs: usize) -> bool {
        if rank == self.me {
            return true;
        }
        let args = args_bytes(numargs);
        match payload {
            NegotiatedPayload::Medium(most) => self.may_send_medium(rank, args, most, None),
            NegotiatedPayload::InArea(area) => {
                self.may_send_medium(rank, args, area.bytes.len(), Some(area))
            }
            NegotiatedPayload::Long { most, mapped } => {
                let at_once = mapped && self.config.at_once && (most as u64) < EXTENTS;
                self.may_send_long(rank, args, if at_once { 0 } else { most })
            }
        }
    }

    fn may_send_medium(
        &self,
        rank: JobRank,
        args: usize,
        most: usize,
        area: Option<PayloadArea>,
    ) -> bool {
        let (free, used) = self.credits.held(rank);
        let in_outbox = area.is_some_and(|area| area.in_outbox)
            || self.library_memory(rank).is_some() && self.outbox.has_area();
        let travels = most.min(if in_outbox { self.outbox.least - 1 } else { MAX_EAGER });
        if free < credits::needed(args + travels) || !self.has_chunks(1) {
            return false;
        }
        if most <= MAX_EAGER || area.is_some() {
            return true;
        }
        let pieces = (0..most).step_by(PIECE);
        let body = |at| addressed_bytes(args, PIECE.min(most - at));
        let wanted: u32 = pieces.clone().map(|at| credits::needed(body(at))).sum();
        if (free >= wanted || used == 0) && self.has_chunks(pieces.len()) {
            return true;
        }
        let area = self.take_area(rank, most, true);
        area.map(|area| self.give_area(area)).is_some()
    }

    fn may_send_long(&self, rank: JobRank, args: usize, most: usize) -> bool {
        let longest = self.config.packed_limit.min(CHUNK - args - DESTINATION_BYTES);
        let packed = addressed_bytes(args, most.min(longest));
        let (mut wanted, apart) = (credits::needed(packed), most > longest);
        if apart {
            wanted = wanted.max(credits_for(SendPlan::new(AmForm::Unpacked, args, 0)));
        }
        self.credits.held(rank).0 >= wanted
            && self.has_chunks(1)
            && (!apart || self.claim().map(|claim| self.unclaim(claim)).is_some())
    }

    /// Whether this many chunks are free, or all that there are.
    fn has_chunks(&self, n: usize) -> bool {
        let n = n.min(self.config.sb_chunks as usize);
        match n {
            1 => self.reqsb.list().next().is_some(),
            _ => self.free_chunks(n) == n,
        }
    }
}
