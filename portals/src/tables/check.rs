//! The check of our own arena. The words that only this process writes are compared with its
//! private records, the others with the values that correct processes store.
//!
//! Called by a thread that waits, at most every tenth of a second. A peer that has overwritten
//! such a word makes later messages miss their descriptor, and what waits for them waits forever.
//! Invariant: only what no interleaving of correct processes leaves, however slow they are, is
//! reported. The owner lock excludes the changes of this process. Deliveries go on, with one
//! exception: a descriptor that seems to count too many operations is closed for the moment of a
//! look.

use core::sync::atomic::Ordering;

use super::{NiState, OwnerTables};
use crate::arena::hazard::{HazardWord, NO_MD, NO_PROCESS};
use crate::arena::{ChangedWord, MAGIC, ring};
use crate::descriptor::record::{LocalMd, control};
use crate::descriptor::state::{self, FLIGHTS};
use crate::types::*;
use sys::peer::Peer;

impl NiState {
    /// Damage of our own arena. None is looked for while another thread changes a list, a
    /// descriptor or a queue.
    pub(crate) fn arena_damage(&self) -> Option<Damage> {
        let owner = &*self.owner.try_lock()?;
        self.ident_damage(owner)
            .or_else(|| self.list_damage(owner))
            .or_else(|| self.admission_damage(owner))
            .or_else(|| self.descriptor_damage(owner))
            .or_else(|| self.eq_damage(owner))
            .or_else(|| self.queue_damage(owner))
            .or_else(|| self.header_damage())
    }

    fn ident_damage(&self, owner: &OwnerTables) -> Option<Damage> {
        let ident = &self.peers.own.view.header().ident;
        let magic = || one("magic", MAGIC, ident.magic.load(Ordering::Relaxed));
        let changed = magic().or_else(|| owner.ident.changed(ident))?;
        Some(damage(ArenaTable::Ident, 0, changed))
    }

    fn list_damage(&self, owner: &OwnerTables) -> Option<Damage> {
        let (view, versions) = (&self.peers.own.view, &self.peers.own_versions);
        (0..).zip(&owner.lists).find_map(|(pt, list)| {
            let entry = view.pt(pt)?;
            let version = versions.lists[pt as usize].load(Ordering::Relaxed);
            let link = |at: usize| list.get(at).map_or(0, |&me| u64::from(me) + 1);
            let changed = one("version", version, entry.version.load(Ordering::Relaxed))
                .or_else(|| one("head", link(0), entry.head.load(Ordering::Relaxed).into()));
            if let Some(changed) = changed {
                return Some(damage(ArenaTable::Pt, pt, changed));
            }
            (1..).zip(list).find_map(|(after, &me)| {
                let (cell, record) = (view.me(me.into())?, &owner.mes[me as usize]);
                let md = record.md.map_or(0, |md| u64::from(md) + 1);
                let (next, found) = (&cell.next, &cell.md);
                let changed = record
                    .words
                    .changed(cell)
                    .or_else(|| one("next", link(after), next.load(Ordering::Relaxed).into()))
                    .or_else(|| one("md", md, found.load(Ordering::Relaxed).into()))?;
                Some(damage(ArenaTable::Me, me.into(), changed))
            })
        })
    }

    fn admission_damage(&self, owner: &OwnerTables) -> Option<Damage> {
        let versions = &self.peers.own_versions.entries;
        (0..).zip(owner.admissions.iter().zip(versions)).find_map(|(ac, (words, version))| {
            let entry = self.peers.own.view.ac(ac)?;
            let (expected, found) = (version.load(Ordering::Relaxed), &entry.version);
            let changed = one("version", expected, found.load(Ordering::Relaxed))
                .or_else(|| words.changed(entry))?;
            Some(damage(ArenaTable::Ac, ac, changed))
        })
    }

    fn descriptor_damage(&self, owner: &OwnerTables) -> Option<Damage> {
        (0..).zip(&owner.written).find_map(|(md, written)| {
            let control = self.mds[md as usize].control.load(Ordering::Relaxed);
            if control & control::PHASE != control::LIVE {
                return None;
            }
            let local = self.local(MdHandle(control & 0xffff_0000 | md)).ok()?;
            if let Some(changed) = written.words.changed(local.cell) {
                return Some(damage(ArenaTable::Md, md, changed));
            }
            if let Some(table) = self.peers.own.view.iov(Peer::new(written.words.iov))
                && written.words.iov != 0
            {
                let count = table.count.load(Ordering::Relaxed);
                let changed = one("count", written.pieces.len() as u64, count).or_else(|| {
                    let mut pieces = written.pieces.iter().zip(&table.pieces);
                    pieces.find_map(|(words, piece)| words.changed(piece))
                });
                if let Some(changed) = changed {
                    return Some(damage(ArenaTable::Iov, md, changed));
                }
            }
            let found = self.state_damage(owner, &local)?;
            Some(Damage::Word {
                table: ArenaTable::Md,
                index: md,
                word: "state",
                expected: None,
                found,
            })
        })
    }

    /// The state of a live descriptor, if no deliveries leave it so.
    fn state_damage(&self, owner: &OwnerTables, local: &LocalMd<'_>) -> Option<u64> {
        let (traits, record) = (local.traits(), local.record);
        if !traits.counts() {
            return None; // no delivery reads it
        }
        let found = local.cell.state.0.load(Ordering::Acquire);
        let max_size = record.max_size.load(Ordering::Relaxed);
        let threshold = record.threshold.load(Ordering::Relaxed);
        if !state::is_possible(traits, local.length(), max_size, threshold, found) {
            return Some(found);
        }
        (found & FLIGHTS != 0 && self.counts_false_flights(owner, local, found)).then_some(found)
    }

    /// Whether the descriptor, in this state, counts operations in flight although none is.
    fn counts_false_flights(&self, owner: &OwnerTables, local: &LocalMd<'_>, found: u64) -> bool {
        let me = local.record.me.load(Ordering::Relaxed).checked_sub(1);
        let idle = || {
            // In this order, as in `busy`.
            self.holder(local.index, me.is_some()).is_none()
                && local.record.pending.load(Ordering::Acquire) == 0
        };
        let state = &local.cell.state.0;
        // One operation may have ended before the look at the hazards, and another begun after
        // it. This look costs little and finds nothing in most cases.
        if !idle() || state.load(Ordering::Acquire) != found {
            return false;
        }
        // As `try_remove`: from here on no operation begins, and one that has begun is seen.
        let change = me.map(|me| self.pt_begin_change(owner.mes[me as usize].pt));
        let control = &local.record.control;
        control.swap(local.control & !control::PHASE | control::CLOSING, Ordering::SeqCst);
        let false_flights = idle() && state.load(Ordering::Acquire) & FLIGHTS != 0;
        control.store(local.control, Ordering::Release);
        if let Some(change) = change {
            self.pt_end_change(change);
        }
        false_flights
    }

    fn eq_damage(&self, owner: &OwnerTables) -> Option<Damage> {
        (0..).zip(self.eqs.iter().zip(&owner.rings)).find_map(|(queue, (record, shape))| {
            if record.handle.load(Ordering::Acquire) & 1 == 0 {
                return None;
            }
            let cell = self.eq_cell(queue);
            if let Some(changed) = shape.changed(&cell.shape) {
                return Some(damage(ArenaTable::Eq, queue, changed));
            }
            if let Some((expected, found)) = ring::head_damage(&record.next, &cell.head.0) {
                let head = ChangedWord { word: "head", expected, found };
                return Some(damage(ArenaTable::Eq, queue, head));
            }
            let lost = cell.losses.count.load(Ordering::Acquire);
            (self.loses_nothing && lost != 0).then_some(Damage::Lost { queue, lost })
        })
    }

    /// Of the words at the start of the arena that several threads or processes write.
    fn header_damage(&self) -> Option<Damage> {
        let header = self.peers.own.view.header();
        let impossible = |table, index: u32, word, found| Damage::Word {
            table,
            index,
            word,
            expected: None,
            found,
        };
        let holder = header.swap_lock.0.load(Ordering::Relaxed);
        if holder > self.peers.size {
            return Some(impossible(ArenaTable::Header, 0, "swap_lock", holder.into()));
        }
        let used = |index: u32| {
            let used = header.hazards.used.0.load(Ordering::SeqCst);
            (used >> index & 1 == 0).then(|| impossible(ArenaTable::Hazards, 0, "used", used))
        };
        if self.peers.single
            && let Some(damage) = used(0)
        {
            return Some(damage);
        }
        (0..).zip(&header.hazards.slots).find_map(|(index, slot)| {
            // SeqCst: the bit of a slot is set before its first use, and never cleared.
            let found = slot.0.load(Ordering::SeqCst);
            if found != 0
                && let Some(damage) = used(index)
            {
                return Some(damage);
            }
            let none = match self.peers.single {
                // This is the only thread, and it is not in a delivery.
                true => found != 0,
                false => found != 0 && !self.may_hold(HazardWord::from_bits(found)),
            };
            none.then(|| impossible(ArenaTable::Hazards, index, "slot", found))
        })
    }

    /// Whether a thread of this process may publish such a hazard.
    fn may_hold(&self, word: HazardWord) -> bool {
        let own = word.own_mds();
        let target = word.target();
        word.is_set()
            && own.iter().all(|&md| md == NO_MD || md < self.limits.max_mds)
            && (target < self.peers.size || target == NO_PROCESS)
    }
}

/// The word, if it is not what it should be.
fn one(word: &'static str, expected: u64, found: u64) -> Option<ChangedWord> {
    (found != expected).then_some(ChangedWord { word, expected, found })
}

fn damage(table: ArenaTable, index: u32, changed: ChangedWord) -> Damage {
    let ChangedWord { word, expected, found } = changed;
    Damage::Word { table, index, word, expected: Some(expected), found }
}
