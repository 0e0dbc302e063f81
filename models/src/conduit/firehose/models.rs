//! The models of the table of regions: look-ups without the lock, while entries are made ready,
//! closed and used again under it.

use super::MemoryExtent;
use super::table::{EntryState, IdleTest, LookUp, RegionTable};
use crate::conduit::models::{check, in_threads};
use crate::conduit::primitive::{AtomicU32, Ordering};
use crate::conduit::sync::ParLock;
use crate::rank::JobRank;

const BYTES: usize = 4096;
/// The same page of every rank: only their keys differ.
const PAGE: MemoryExtent = MemoryExtent { start: BYTES, end: 2 * BYTES };

/// A table of one entry, which is ready: the page of rank 1, whose pin is 1.
fn table() -> RegionTable {
    let table = RegionTable::new(true, 1, BYTES);
    assert_eq!(table.add_entries(), 0..1);
    table.reserve(0, key(&table, 1), EntryState::Pending, 0);
    table.publish(0, EntryState::Pending, 1, PAGE);
    table
}

fn key(table: &RegionTable, rank: u32) -> u64 {
    table.key(JobRank(rank), PAGE.start)
}

/// One thread looks for the pages of ranks 1 and 2, another gives the entry of rank 1 to rank 2.
/// A hold is
/// of what was looked for, and stays so until it is released.
pub fn a_hold_is_of_the_region_that_was_looked_for() {
    check(|| {
        in_threads(table(), 2, |table, thread| {
            if thread == 0 {
                for i in [1, 2] {
                    if let LookUp::Hit(at, _) = table.hit(key(table, i), PAGE) {
                        assert_eq!((table.pin(at), table.extent(at)), (u64::from(i), PAGE));
                        assert!(!table.release(at));
                    }
                }
            } else if table.test_idle(0, EntryState::Free, true) == IdleTest::Closed {
                table.unlink(0);
                table.reserve(0, key(table, 2), EntryState::Pending, 0);
                table.publish(0, EntryState::Pending, 2, PAGE);
            }
        });
    });
}

/// An entry is closed, or held: never both.
pub fn a_held_entry_is_not_closed() {
    check(|| {
        let closed = AtomicU32::new(0);
        let shared = in_threads((table(), closed), 2, |(table, closed), thread| {
            if thread == 0 {
                if let LookUp::Hit(at, _) = table.hit(key(table, 1), PAGE) {
                    assert_eq!(closed.load(Ordering::Relaxed), 0, "closed before it was held");
                    assert_eq!(table.state(at).0, EntryState::Ready);
                    assert!(!table.release(at));
                }
            } else if table.test_idle(0, EntryState::Free, true) == IdleTest::Closed {
                assert_eq!(table.state(0).0, EntryState::Free);
                table.unlink(0);
                closed.store(1, Ordering::Relaxed);
            }
        });
        let (table, closed) = &*shared;
        let found = matches!(table.hit(key(table, 1), PAGE), LookUp::Hit(..));
        assert_eq!(found, closed.load(Ordering::Relaxed) == 0);
    });
}

/// An entry becomes stale while it is held and looked for: it is freed once, when all are done.
pub fn a_stale_entry_is_freed_once() {
    check(|| {
        let table = table();
        table.hold(0);
        let shared = (table, ParLock::new(true, ()), AtomicU32::new(0));
        let last = |(table, lock, freed): &(RegionTable, ParLock<()>, AtomicU32)| {
            let _held = lock.lock();
            if table.change_idle(0, EntryState::Stale, EntryState::Free) {
                freed.fetch_add(1, Ordering::Relaxed);
            }
        };
        let shared = in_threads(shared, 2, move |shared, thread| {
            let table = &shared.0;
            if thread == 0 {
                match table.hit(key(table, 1), PAGE) {
                    LookUp::Hit(at, _) if table.release(at) => last(shared),
                    LookUp::Last(_) => last(shared),
                    _ => {}
                }
            } else {
                let unused = {
                    let _held = shared.1.lock();
                    table.retire(0, EntryState::Ready, EntryState::Stale)
                };
                // The hold that was there at first.
                if table.release(0) || unused {
                    last(shared);
                }
            }
        });
        assert_eq!(shared.2.load(Ordering::Relaxed), 1);
        assert_eq!(shared.0.state(0), (EntryState::Free, 0));
    });
}
