//! The private copies of the versions of our own match lists and access control entries.
//!
//! The owner of the arena writes them with the versions themselves, under its owner lock. Walks
//! of its own lists and the check of the arena read them. Invariant: while a version is odd, its
//! copy has the same value: it is made odd before the version, and even after it.

use alloc::boxed::Box;
use core::sync::atomic::{AtomicU64, Ordering};

use crate::arena::ArenaView;
use crate::types::{ArenaTable, Damage};

/// See the head of this file.
#[derive(Debug)]
pub(crate) struct OwnVersions {
    /// By portal table entry.
    pub(crate) lists: Box<[AtomicU64]>,
    /// By access control entry.
    pub(crate) entries: Box<[AtomicU64]>,
}

impl OwnVersions {
    pub(crate) fn new(view: &ArenaView) -> OwnVersions {
        let zeros = |last: u32| (0..=last).map(|_| AtomicU64::new(0)).collect();
        OwnVersions { lists: zeros(view.max_pt_index), entries: zeros(view.max_ac_index) }
    }

    /// A version of our arena that a peer has overwritten, so that walks of our lists wait.
    #[cold]
    pub(crate) fn damage(&self, own: &ArenaView) -> Option<Damage> {
        let lists = (0..).zip(&self.lists).filter_map(|(index, copy)| {
            Some((ArenaTable::Pt, index, falsely_odd(&own.pt(index)?.version, copy)?))
        });
        let entries = (0..).zip(&self.entries).filter_map(|(index, copy)| {
            Some((ArenaTable::Ac, index, falsely_odd(&own.ac(index)?.version, copy)?))
        });
        lists.chain(entries).next().map(|(table, index, (found, copy))| {
            let (word, expected) = ("version", Some(copy));
            Damage::Word { table, index, word, expected, found }
        })
    }
}

/// A version of ours, and its copy, if it is odd although this process is changing nothing: a walk
/// would wait forever.
#[cold]
pub(crate) fn falsely_odd(version: &AtomicU64, copy: &AtomicU64) -> Option<(u64, u64)> {
    // Versions only grow: if it is the same twice, it was that in between, and so was the copy.
    // Acquire, both: the copy is no older than the version, and the second look no older than the
    // copy.
    let found = version.load(Ordering::Acquire);
    let copy = copy.load(Ordering::Acquire);
    let same = version.load(Ordering::Relaxed) == found;
    (found & 1 == 1 && copy != found && same).then_some((found, copy))
}
