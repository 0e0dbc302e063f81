//! What of a rank is pinned, counted anew from its pins.
//!
//! Called by `Firehose` for statistics, tests and the simulator. Changes nothing.

use super::super::own_pins::OwnPin;
use super::super::stats::LocalSums;
use super::super::traits::{Monitor, Pinner};
use super::LocalSide;
use crate::rank::JobRank;

impl<P: Pinner, W: Monitor> LocalSide<P, W> {
    /// Holds of transfers of this rank.
    pub(in super::super) fn holds(&self) -> u32 {
        self.table.holds()
    }

    /// The sums of this side; asserts its invariants.
    pub(in super::super) fn sums(&self) -> LocalSums {
        let tables = self.tables.lock();
        let count = |f: fn(&OwnPin) -> bool| tables.pins.iter().filter(|p| f(p)).count() as u32;
        let references = tables.pins.iter().map(|pin| pin.refs).sum();
        let (lent, committed) = tables.lender.sums();
        let pinned = count(|p| p.pinned);
        assert_eq!(pinned as usize, tables.by_block.len());
        let bytes = tables.pins.iter().filter(|p| p.pinned).map(|p| p.extent.len()).sum::<usize>();
        assert_eq!(bytes, tables.pinned_bytes);
        assert_eq!(tables.own, count(|p| p.own));
        assert!(tables.own <= self.limits.max_victim, "{} own regions", tables.own);
        assert_eq!(lent, references, "references and what the lender counts");
        assert!(committed <= self.limits.m, "{committed} of {} are committed", self.limits.m);
        assert!(pinned <= self.limits.slots());
        let unused = count(|p| p.refs == 0 && !p.own && !p.pinned);
        assert_eq!(unused as usize, tables.free.len(), "slots that nothing refers to");
        LocalSums { pinned, own_holds: self.holds(), references, lent }
    }

    /// Entries of the list of idle pins, those of pins that have ended included.
    #[cfg(test)]
    pub(in super::super) fn idle_entries(&self) -> usize {
        self.tables.lock().idle.len()
    }

    /// References that a peer holds.
    pub(in super::super) fn held_by(&self, peer: JobRank) -> u32 {
        self.tables.lock().lender.held(peer)
    }
}
