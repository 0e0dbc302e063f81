//! Requests of the upper layers.
//!
//! Called through `JobConduit`. Invariant: the payload of a Long whose destination must be
//! registered is there before its header leaves.

use super::am_plan::{SendPlan, credits_for};
use super::match_bits::AmForm;
use super::pinned_transfer::LocalBytes;
use super::portals::Portals;
use super::{Category, Conduit, Outgoing, Upcall};
use crate::rank::JobRank;
use sys::hint::cold_path;

impl<P: Portals> Conduit<P> {
    /// Sends a request. Waits for credits, a chunk and tickets, running handlers meanwhile; never
    /// from inside a handler. An immediate one does not wait: false, and nothing done, where it
    /// would. Two kinds wait nevertheless: one to a destination that must be registered, and a
    /// Medium in pieces that needs more than a rank ever has.
    /// What goes out of line takes a copy of the message. So the message itself is never put
    /// together in memory: 0.94 of row `one_way_request`.
    #[inline(always)]
    pub fn request<U: Upcall>(&self, up: U, rank: JobRank, m: &Outgoing<'_>) -> bool {
        if m.category != Category::Long {
            return self.request_message(up, rank, m);
        }
        debug_assert!(!self.in_handler(up), "a request from inside a handler");
        if m.immediate {
            cold_path();
            return self.request_long_now(up, rank, &{ *m });
        }
        let mut plan = self.plan(rank, m);
        if plan.form == AmForm::Unpacked && self.pinned.get().is_some() {
            cold_path();
            self.transfer(up, m.to, LocalBytes::From(m.payload), None, false);
            plan = SendPlan::placed(m);
        }
        self.request_planned(up, rank, m, plan)
    }

    /// Sends an immediate Long. To plan it may put its payload ahead, so what its header needs is
    /// taken first.
    fn request_long_now<U: Upcall>(&self, up: U, rank: JobRank, m: &Outgoing<'_>) -> bool {
        let header = SendPlan::placed(m);
        let Some(reserved) = self.reserve_now(rank, m, header) else { return false };
        let plan = self.plan(rank, m);
        if plan.form != AmForm::Unpacked && credits_for(plan) == credits_for(header) {
            self.transmit_request(up, rank, m, plan, reserved);
            return true;
        }
        self.unreserve(rank, reserved);
        if plan.form == AmForm::Unpacked && self.pinned.get().is_some() {
            return self.request(up, rank, &Outgoing { immediate: false, ..*m });
        }
        self.request_planned(up, rank, m, plan)
    }
}
