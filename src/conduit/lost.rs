//! The looks of a waiting rank for lost messages. Also its answer to a peer that asks whether all
//! requests of that peer have been handled.
//!
//! Called by a thread that has waited for long, on networks with `SharedHost`, and by
//! `system_messages`. Invariant: what a look sees was true at one moment; `loss_search` decides.

use super::Conduit;
use super::hold::Hold;
use super::loss_search::{UnderWay, WaitingProcess};
use super::message::SystemMessage;
use super::portals::{Direct, Portals};
use super::system::HANDLED_QUERY;
use crate::rank::JobRank;
use crate::report;
use core::sync::atomic::Ordering;
use sys::clock;

impl<P: Portals> Conduit<P> {
    /// Ends the job if a message is proved lost.
    #[cold]
    pub fn check_lost(&self, process: &dyn WaitingProcess) {
        // Another thread looks.
        let Some(mut search) = self.lost.try_lock() else { return };
        let under_way = self.under_way(process);
        // The time after the look: what threads do later can only add to what it has found.
        let now_ns = clock::now_ns();
        let ask = |rank, number| self.ask_handled(rank, number);
        if let Some(lost) = search.look(under_way, now_ns, process, ask) {
            let age = (now_ns - search.since_ns) as f64 / 1e9;
            report::damaged(format_args!("{lost}; nothing has changed for {age:.1} s"));
        }
    }

    /// Asks a rank whether it has handled all requests of this one.
    pub(super) fn ask_handled(&self, rank: JobRank, number: u32) {
        let question = SystemMessage { id: HANDLED_QUERY, args: [number, 0] };
        self.sys.send(&self.portals, self.me, self.peers[rank.index()], question);
    }

    /// What is under way; `None` if more may be than can be seen.
    pub(super) fn under_way(&self, process: &dyn WaitingProcess) -> Option<UnderWay> {
        let direct = self.portals.direct_to_self()?;
        let (_safe, am) = (self.safe.taker.try_lock()?, self.am.taker.try_lock()?);
        let taken = [direct.eq_drained(&self.safe.eq)?, direct.eq_drained(&self.am.eq)?];
        if !am.waiting.is_empty() || self.any_in_handler() {
            return None;
        }
        let held = |what: fn(Hold) -> bool| self.reqsb.list().holds().filter(|&h| what(h)).count();
        let requests = held(|hold| hold == Hold::REQUEST);
        let transfers = held(Hold::is_of_transfer);
        let leaves = self.rplsb.list().holds().filter(|&hold| hold.is_of_transfer()).count();
        let any = |_| true;
        let header = self.request_lids.waiting_header(any);
        Some(UnderWay {
            taken,
            lists: [self.reqsb.list(), self.rplsb.list(), self.tmpmd.list()].map(|l| l.changes()),
            tickets: self.tickets.taken().saturating_sub(am.kit.tickets),
            leaving: self.threads.iter().map(|thread| thread.leaving()).sum(),
            transfers: transfers + leaves + self.tmpmd.bound(),
            requests,
            kept: held(|hold| hold == Hold::HERE),
            credits: self.credits.in_use(),
            header: header.or_else(|| self.reply_lids.waiting_header(any)),
            operations: process.incomplete(),
            framed: self.portals.counters().framed != 0,
        })
    }

    /// Whether each request of this rank that was sent before this call has been handled, and its
    /// reply sent. False if that is not known now.
    #[cold]
    pub(super) fn has_handled(&self, rank: JobRank) -> bool {
        let Some(taker) = self.am.taker.try_lock() else { return false };
        let drained = self.portals.direct_to_self().and_then(|d| d.eq_drained(&self.am.eq));
        // In this order: a request is in the queue, with the taker, in a handler, in the batch.
        // The data of a Long without its header is none.
        drained.is_some()
            && self.portals.counters().framed == 0
            && taker.waiting.iter().all(|request| request.am.source != rank)
            && self.request_lids.waiting_header(|source| source == rank).is_none()
            && !self.any_in_handler()
            && self.implicit.keeps_none_for(rank)
    }

    /// Whether a thread is in a handler. It is not before its reply has left, but other processors
    /// may see that in the other order: what is concluded from it comes later.
    fn any_in_handler(&self) -> bool {
        self.threads.iter().any(|thread| thread.in_handler.load(Ordering::Relaxed))
    }
}
