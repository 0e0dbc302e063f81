//! What a rank holds of its peers, counted anew from the table.
//!
//! Called by `Firehose` for statistics, tests and the simulator. Changes nothing.

use super::super::stats::RemotePins;
use super::super::table::EntryState;
use super::RemoteSide;
use crate::rank::JobRank;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

impl RemoteSide {
    /// The peers of which regions were ever used.
    pub(in super::super) fn peers(&self) -> Vec<JobRank> {
        self.tables.lock().peers.keys().copied().collect()
    }

    /// How many regions of a peer count as used here, and how many are held by operations of all
    /// peers.
    pub(in super::super) fn sums(&self, peer: JobRank) -> (u32, u32) {
        let tables = self.tables.lock();
        let used = tables.peers.get(&peer).map_or(0, |p| p.used);
        (used, self.holds())
    }

    /// See [`super::super::Firehose::remote_pins`].
    pub(in super::super) fn pins(&self) -> BTreeMap<JobRank, RemotePins> {
        let tables = self.tables.lock();
        let to_be_given_back =
            |p: &super::PeerRegions| RemotePins { used: p.used, pins: p.back.clone(), pending: 0 };
        let mut all: BTreeMap<_, _> =
            tables.peers.iter().map(|(&peer, p)| (peer, to_be_given_back(p))).collect();
        for at in 0..self.table.len() {
            let entry = &tables.entries[at as usize];
            let Some(of_peer) = all.get_mut(&entry.peer) else { continue };
            match self.table.state(at).0 {
                EntryState::Ready | EntryState::Stale => of_peer.pins.push(entry.id),
                EntryState::Pending => of_peer.pending += u32::from(entry.sent),
                _ => {}
            }
        }
        all
    }

    /// Entries of the list of ready ones of a peer, those that have ended included.
    #[cfg(test)]
    pub(in super::super) fn ready_entries(&self, peer: JobRank) -> usize {
        self.tables.lock().peers.get(&peer).map_or(0, |p| p.ready.len())
    }

    /// Holds of regions of peers.
    pub(in super::super) fn holds(&self) -> u32 {
        self.table.holds()
    }
}
