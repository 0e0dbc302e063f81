//! The portal table: each entry is a list of match entries, guarded by a version.
//!
//! Only the owner process changes a list, under its owner lock: it makes the version odd, changes links,
//! match entries or descriptors of the list, and makes the version even again. A walker (see
//! [`crate::deliver`]) reads the version first (Acquire, pairs with the Release that made it even) and again
//! when it has published its hazard; if it is the same, what it read in between belongs together. This is a
//! seqlock whose second look doubles as the hazard's.
//!
//! If the owner dies between odd and even, walkers find out by [`crate::NetworkInterface::peer_state`] and give up;
//! if it is stopped, they wait and [`crate::NetworkInterface::blocked_by`] names it.

use core::sync::atomic::{Ordering, fence};

use crate::arena::PtEntry;
use crate::ni::NetworkInterface;

/// A change under way: the list's version is odd.
#[must_use]
pub(crate) struct ListChange {
    pt: u32,
    even: u64,
}

impl NetworkInterface {
    fn own_pt(&self, index: u32) -> &PtEntry {
        match self.own.view.pt(index) {
            Some(entry) => entry,
            None => unreachable!("checked when the match entry was attached"),
        }
    }

    /// Makes a list's version odd. The caller holds the owner lock.
    pub(crate) fn pt_begin_change(&self, pt: u32) -> ListChange {
        let version = &self.own_pt(pt).version;
        let even = version.load(Ordering::Relaxed) & !1;
        // SeqCst: before the look at the hazards (see `crate::hazard`).
        version.swap(even + 1, Ordering::SeqCst);
        // Who sees any change below sees the odd version at its second look.
        fence(Ordering::Release);
        crate::fault::point("list.odd");
        ListChange { pt, even }
    }

    /// Makes it even again.
    pub(crate) fn pt_end_change(&self, change: ListChange) {
        self.own_pt(change.pt).version.store(change.even + 2, Ordering::Release);
    }

    /// Writes a list to where walkers see it. Its version is odd.
    pub(crate) fn pt_write(&self, pt: u32, list: &[u16]) {
        let mut next = 0;
        for &me in list.iter().rev() {
            if let Some(cell) = self.own.view.me(u32::from(me)) {
                cell.next.store(next, Ordering::Relaxed);
                next = u32::from(me) + 1;
            }
        }
        self.own_pt(pt).head.store(next, Ordering::Relaxed);
    }
}
