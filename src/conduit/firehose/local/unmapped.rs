//! Pins of memory that was unmapped: what the monitor has noticed.
//!
//! Called by `local`, with its lock held. Invariant: such a pin has no new holder and no peer finds
//! it. It is undone when the transfers of this rank that use it are complete, since other bytes of
//! the region may still be mapped.

use super::super::extent::MemoryExtent;
use super::super::stats::FirehoseCounter;
use super::super::traits::{Monitor, PinId, Pinner, UnpinOutcome};
use super::{LocalSide, LocalTables};
use crate::conduit::primitive::Ordering;
use alloc::vec::Vec;

impl<P: Pinner, W: Monitor> LocalSide<P, W> {
    /// Takes in what the monitor has noted.
    #[cold]
    pub(super) fn hear(&self) {
        let mut tables = self.tables.lock();
        self.hear_locked(&mut tables);
    }

    pub(super) fn hear_locked(&self, tables: &mut LocalTables) {
        while let Some(extent) = self.monitor.take() {
            self.unmapped(tables, extent);
        }
    }

    /// Undoes pins of memory that is no longer what was pinned: at once for peers, for this rank
    /// when its transfers are complete. Other bytes of a region may be in use.
    fn unmapped(&self, tables: &mut LocalTables, extent: MemoryExtent) {
        let first = self.limits.block(extent.start).start;
        let pinned: Vec<u32> =
            tables.by_block.range((first, 0)..(extent.end, 0)).map(|&(_, at)| at).collect();
        for at in pinned {
            let pin = tables.pins[at as usize];
            if pin.busy || pin.gone || !pin.extent.overlaps(extent) {
                continue;
            }
            self.counters.add(FirehoseCounter::Unmapped);
            if pin.linked {
                self.supersede(tables, at);
            }
            // Its holders and peers keep the slot, so that no other pin gets its number.
            let pin = &mut tables.pins[at as usize];
            pin.gone = true;
            if pin.own {
                self.hide(tables, at);
            } else {
                self.settle(tables, at);
            }
        }
    }

    /// Peers find a pin no more whose memory was unmapped while transfers of this rank use it.
    pub(super) fn hide(&self, tables: &mut LocalTables, at: u32) {
        let pin = &mut tables.pins[at as usize];
        pin.busy =
            self.pinner.hide(PinId { slot: at, generation: pin.generation }) == UnpinOutcome::Busy;
        if pin.busy {
            tables.busy.push(at);
            self.due.store(true, Ordering::Relaxed);
        }
    }
}
