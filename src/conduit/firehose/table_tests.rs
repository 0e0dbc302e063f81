//! Tests of the table of regions by one thread.

use super::*;

const BYTES: MemoryExtent = MemoryExtent { start: 0x5000, end: 0x5008 };
const PAGE: MemoryExtent = MemoryExtent { start: 0x5000, end: 0x6000 };

fn name(key: u64) -> RegionName {
    RegionName { key, start: PAGE.start }
}

fn table(par: bool, region_bytes: usize) -> RegionTable {
    let t = RegionTable::new(par, 8, region_bytes);
    assert_eq!(t.add_entries(), 0..8);
    assert_eq!((t.add_entries(), t.len()), (8..8, 8));
    t
}

#[test]
fn an_entry_goes_through_its_states() {
    for par in [false, true] {
        let t = table(par, 4096);
        let key = t.key(JobRank(3), 0x5000);
        assert_eq!((t.hit(key, BYTES), t.find(key)), (LookUp::Miss, None));
        t.reserve(2, key, EntryState::Pending, 1);
        assert_eq!((t.hit(key, BYTES), t.find(key)), (LookUp::Miss, Some(2)));
        t.publish(2, EntryState::Pending, 77, PAGE);
        assert_eq!(t.hit(key, BYTES), LookUp::Hit(2, name(77)));
        assert_eq!((t.name(2), t.state(2)), (name(77), (EntryState::Ready, 2)));
        assert_eq!(t.test_idle(2, EntryState::Free, true), IdleTest::InUse);
        assert!(!t.release(2) && !t.release(2));
        assert_eq!(t.test_idle(2, EntryState::Free, false), IdleTest::SecondChance);
        assert_eq!(t.hit(key, BYTES), LookUp::Hit(2, name(77)));
        assert!(!t.release(2));
        assert_eq!(t.test_idle(2, EntryState::Free, false), IdleTest::SecondChance);
        assert_eq!(t.test_idle(2, EntryState::Free, false), IdleTest::Closed);
        t.unlink(2);
        assert_eq!((t.hit(key, BYTES), t.find(key)), (LookUp::Miss, None));
    }
}

#[test]
fn a_hit_within_a_call_leaves_no_hold() {
    for par in [false, true] {
        let t = table(par, 4096);
        let key = t.key(JobRank(3), 0x5000);
        let hit = |bytes| t.at_hit(key, bytes, |name| (name, t.state(2).1));
        assert_eq!(hit(BYTES), (None, None));
        t.reserve(2, key, EntryState::Pending, 0);
        assert_eq!(hit(BYTES), (None, None));
        t.publish(2, EntryState::Pending, 77, PAGE);
        assert_eq!(t.test_idle(2, EntryState::Free, false), IdleTest::SecondChance);
        assert_eq!(hit(BYTES), (Some((name(77), u32::from(par))), None));
        assert_eq!(hit(MemoryExtent { start: 0x5ff8, end: 0x6008 }), (None, None));
        assert_eq!(t.state(2), (EntryState::Ready, 0));
        assert_eq!(t.test_idle(2, EntryState::Free, false), IdleTest::SecondChance);
        // It becomes stale under the transfer.
        let stale = || t.retire(2, EntryState::Ready, EntryState::Stale);
        let last = t.at_hit(key, BYTES, |_| stale());
        assert_eq!(last, (Some(!par), par.then_some(2)));
    }
}

#[test]
fn bytes_beyond_the_extent_miss() {
    let t = table(false, 0x10000);
    let key = t.key(JobRank(0), 0x5000);
    t.reserve(0, key, EntryState::Pending, 0);
    t.publish(0, EntryState::Pending, 1, PAGE);
    assert_eq!(t.hit(key, MemoryExtent { start: 0x5ff8, end: 0x6008 }), LookUp::Miss);
    assert_eq!(t.state(0).1, 0);
    assert_eq!(t.hit(key, BYTES), LookUp::Hit(0, name(1)));
}

#[test]
fn chains_lose_what_is_unlinked_only() {
    let t = table(false, 4096);
    let keys: Vec<u64> = (0..8).map(|i| t.key(JobRank(1), i << 12)).collect();
    for (at, &key) in keys.iter().enumerate() {
        t.reserve(at as u32, key, EntryState::Pending, 0);
    }
    for gone in [3, 0, 7, 5] {
        t.unlink(gone as u32);
        assert_eq!(t.find(keys[gone]), None);
    }
    for left in [1, 2, 4, 6] {
        assert_eq!(t.find(keys[left]), Some(left as u32));
    }
}

#[test]
fn a_table_grows_and_keeps_what_is_in_it() {
    let t = RegionTable::new(true, 1000, 4096);
    let mut free: Vec<u32> = Vec::new();
    let key = |i: u32| t.key(JobRank(i % 7), (i as usize) << 12);
    for i in 0..1000 {
        if free.is_empty() {
            free.extend(t.add_entries());
        }
        let at = free.pop().expect("there is space");
        t.reserve(at, key(i), EntryState::Pending, 0);
        let start = (i as usize) << 12;
        let extent = MemoryExtent { start, end: start + 4096 };
        t.publish(at, EntryState::Pending, i.into(), extent);
    }
    assert_eq!((t.len(), t.add_entries()), (1000, 1000..1000));
    for i in 0..1000 {
        let start = (i as usize) << 12;
        match t.hit(key(i), MemoryExtent { start, end: start + 1 }) {
            LookUp::Hit(at, name) => {
                assert_eq!((t.name(at), name), (name, RegionName { key: i.into(), start }));
            }
            other => panic!("{i}: {other:?}"),
        }
    }
}

#[test]
fn the_last_holder_of_a_stale_entry_is_told() {
    let t = table(true, 4096);
    let key = t.key(JobRank(0), 0x5000);
    t.reserve(1, key, EntryState::Pending, 2);
    t.publish(1, EntryState::Pending, 1, PAGE);
    assert!(!t.retire(1, EntryState::Ready, EntryState::Stale));
    assert_eq!(t.hit(key, BYTES), LookUp::Miss);
    assert!(!t.release(1) && t.release(1));
}
