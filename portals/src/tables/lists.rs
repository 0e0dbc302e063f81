//! The portal table: each entry is a list of match entries, guarded by a version (a seqlock).
//!
//! Only the owner process changes a list, under its owner lock. It makes the version odd,
//! changes links, match entries or descriptors of the list, and makes the version even again. A
//! walker (see [`crate::deliver`]) reads the version first (Acquire, pairs with the Release that
//! made it even) and again after it has published its hazard. Invariant: if both values are the
//! same, what it read in between belongs together.
//!
//! If the owner dies between odd and even, walkers find out by its
//! [`PeerState`](crate::nal::PeerState) and give up. If it is stopped, they wait and
//! [`crate::NetworkInterface::blocked_by`] names it.

use core::sync::atomic::{Ordering, fence};

use super::{NiState, OwnerTables};
use crate::arena::PtEntry;
use crate::base::fault;

/// A change in progress: the list's version is odd.
#[must_use]
pub(crate) struct ListChange {
    pt: u32,
    odd: u64,
}

impl NiState {
    fn own_pt(&self, index: u32) -> &PtEntry {
        match self.peers.own.view.pt(index) {
            Some(entry) => entry,
            None => unreachable!("checked when the match entry was attached"),
        }
    }

    /// Makes a list's version odd. The caller holds the owner lock.
    pub(crate) fn pt_begin_change(&self, pt: u32) -> ListChange {
        let copy = &self.peers.own_versions.lists[pt as usize];
        let odd = copy.load(Ordering::Relaxed) + 1;
        // The copy first: see `peer::versions`.
        copy.store(odd, Ordering::Relaxed);
        // SeqCst: before the hazards are read (see [`crate::arena::hazard`]).
        self.own_pt(pt).version.swap(odd, Ordering::SeqCst);
        // A walker that sees any change below sees the odd version at its second look.
        fence(Ordering::Release);
        fault::point("list.odd");
        ListChange { pt, odd }
    }

    /// Makes the version even again.
    pub(crate) fn pt_end_change(&self, change: ListChange) {
        let even = change.odd + 1;
        self.own_pt(change.pt).version.store(even, Ordering::Release);
        self.peers.own_versions.lists[change.pt as usize].store(even, Ordering::Release);
    }

    /// Writes a list as links, which walkers read. Its version is odd.
    pub(crate) fn pt_write(&self, pt: u32, list: &[u16]) {
        let mut next = 0;
        for &me in list.iter().rev() {
            if let Some(cell) = self.peers.own.view.me(u32::from(me)) {
                cell.next.store(next, Ordering::Relaxed);
                next = u32::from(me) + 1;
            }
        }
        self.own_pt(pt).head.store(next, Ordering::Relaxed);
    }

    /// Removes an entry from its list. The list's version is odd.
    pub(crate) fn remove_me(&self, owner: &mut OwnerTables, index: u32) {
        let pt = owner.mes[index as usize].pt;
        owner.lists[pt as usize].retain(|&other| u32::from(other) != index);
        self.pt_write(pt, &owner.lists[pt as usize]);
        let record = &mut owner.mes[index as usize];
        record.live = false;
        record.md = None;
        owner.free_mes.give_back(index, record.generation.into());
    }

    /// Attaches a descriptor to an entry that has none.
    pub(crate) fn me_set_md(&self, owner: &mut OwnerTables, index: u32, md: u32) {
        let record = &mut owner.mes[index as usize];
        record.md = Some(md as u16);
        let change = self.pt_begin_change(record.pt);
        if let Some(cell) = self.peers.own.view.me(index) {
            cell.md.store(md + 1, Ordering::Relaxed);
        }
        self.pt_end_change(change);
    }

    /// Detaches the descriptor of an entry, and removes the entry if it is unlinked with it. The
    /// list's version is odd.
    pub(crate) fn me_detach_md(&self, owner: &mut OwnerTables, index: u32, with_me: bool) {
        let record = &mut owner.mes[index as usize];
        record.md = None;
        if let Some(cell) = self.peers.own.view.me(index) {
            cell.md.store(0, Ordering::Relaxed);
        }
        if with_me || record.unlink {
            self.remove_me(owner, index);
        }
    }
}
