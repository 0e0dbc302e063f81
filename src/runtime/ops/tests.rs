//! Tests of the registry.

use super::thread_ops::{FIRST_SLAB, SLABS, next_generation, place, slab_len};
use super::*;
use alloc::vec::Vec;
use core::sync::atomic::AtomicU64;

#[test]
fn slabs_cover_all_indices() {
    assert_eq!(place(0), (0, 0));
    assert_eq!(place(255), (0, 255));
    assert_eq!(place(256), (1, 0));
    assert_eq!(place(511), (1, 255));
    assert_eq!(place(512), (2, 0));
    assert_eq!(place(OPS_PER_THREAD - 1), (SLABS - 1, slab_len(SLABS - 1) - 1));
    let mut next = 0;
    for slab in 0..SLABS {
        assert_eq!(place(next), (slab, 0));
        next += slab_len(slab);
    }
    assert_eq!(next, OPS_PER_THREAD);
}

#[test]
fn a_new_owner_of_an_index_inherits_no_region() {
    let ops = Ops::new(2);
    for complete in [true, false] {
        assert!(ops.open_region(1));
        let op = ops.begin_implicit(1, ImplicitKind::Puts, 1);
        if complete {
            ops.complete(op);
        }
        ops.abandon_region(1);
        assert!(!ops.in_region(1));
        let h = ops.begin(1, 1);
        // In flight: its slot is not used again yet.
        assert_eq!(h.op() == op, complete);
        if !complete {
            ops.complete(op);
        }
        assert!(!ops.sync(1, h));
        ops.complete(h.op());
        assert!(ops.sync(1, h));
    }
    ops.abandon_region(0);
}

#[test]
fn the_slot_of_an_abandoned_region_is_used_again_when_it_is_complete() {
    let ops = Ops::new(1);
    let abandon = || {
        assert!(ops.open_region(0));
        let op = ops.begin_implicit(0, ImplicitKind::Puts, 1);
        ops.abandon_region(0);
        op
    };
    let in_flight = abandon();
    for _ in 0..4 * FIRST_SLAB {
        let op = abandon();
        assert_ne!(op, in_flight);
        ops.complete(op);
    }
    assert_eq!(ops.of_thread(0).unwrap().owner.slabs.load(Ordering::Relaxed), 1);
    ops.complete(in_flight);
}

/// Another thread may sync an operation between the two looks of `complete`, and begin one without
/// fragments in its slot: that is no damage.
#[test]
fn a_slot_may_be_used_again_once_its_last_fragment_is_counted() {
    let ops = Ops::new(2);
    let h = ops.begin(0, 1);
    let counted = ops.count(h.op()).unwrap();
    assert!(ops.sync(0, h));
    let empty = ops.begin(0, 0);
    assert_eq!(empty.op(), h.op());
    assert!(counted.was_in_flight());
    // Of the new one nothing is in flight.
    assert!(!ops.count(empty.op()).unwrap().was_in_flight());
}

#[test]
fn an_operation_is_complete_after_its_last_fragment() {
    let ops = Ops::new(1);
    let h = ops.begin(0, 3);
    assert_ne!(h, OpHandle::INVALID);
    for _ in 0..2 {
        ops.complete(h.op());
        assert!(!ops.sync(0, h));
    }
    ops.complete(h.op());
    assert!(ops.sync(0, h));
    assert!(ops.sync(0, OpHandle::INVALID));
}

#[test]
fn a_leaf_is_complete_when_all_sources_have_departed() {
    let ops = Ops::new(2);
    let root = ops.begin_with_departures(0, 2);
    let leaf = root.leaf();
    assert!(leaf != root && leaf == root.leaf() && ops.leaf_of(root) == leaf);
    ops.depart(root.op());
    ops.complete(root.op());
    assert!(!ops.sync(1, leaf) && !ops.sync(0, root));
    assert_eq!(ops.look_up(leaf), HandleState::Live(0));
    ops.depart(root.op());
    // More than once, and without an effect on the operation; any thread may ask.
    assert!(ops.sync(0, leaf) && ops.sync(1, leaf) && !ops.sync(0, root));
    assert_eq!(ops.leaf_of(root), OpHandle::INVALID);
    ops.complete(root.op());
    assert!(ops.sync(0, root));
    // The slot is used again; the old leaf is not that of the new operation.
    let next = ops.begin_with_departures(0, 1);
    assert_eq!(next.op(), root.op());
    assert!(ops.sync(0, leaf) && !ops.sync(0, next.leaf()));
    ops.depart(next.op());
    ops.complete(next.op());
    assert!(ops.sync(0, next) && ops.sync(0, next.leaf()));
}

#[test]
fn a_leaf_of_an_operation_without_departures_ends_with_it() {
    let ops = Ops::new(1);
    let plain = ops.begin(0, 1);
    assert!(plain.leaf() != plain && plain.leaf() == plain.end_leaf());
    assert!(ops.leaf_of(plain) == plain.leaf() && !ops.sync(0, plain.leaf()));
    ops.complete(plain.op());
    // It leaves the operation to be synced.
    assert!(ops.sync(0, plain.leaf()) && ops.look_up(plain) == HandleState::Live(0));
    assert!(ops.sync(0, plain) && ops.look_up(plain.leaf()) == HandleState::Synced);
    // The end of a put is not the departure of its sources.
    let put = ops.begin_with_departures(0, 1);
    assert!(put.leaf() != put.end_leaf());
    ops.depart(put.op());
    assert!(ops.sync(0, put.leaf()) && !ops.sync(0, put.end_leaf()));
    ops.complete(put.op());
    assert!(ops.sync(0, put.end_leaf()) && ops.sync(0, put));
}

#[test]
fn implicit_puts_depart_before_they_are_complete() {
    let ops = Ops::new(1);
    let done = |kind| ops.implicit_done(0, kind);
    let op = ops.begin_implicit_with_departures(0, 1);
    assert!(!done(ImplicitKind::Departures) && !done(ImplicitKind::Puts));
    // Another put, which counts none.
    let other = ops.begin_implicit(0, ImplicitKind::Puts, 1);
    ops.depart(op);
    assert!(done(ImplicitKind::Departures) && !done(ImplicitKind::Puts));
    ops.complete(op);
    assert!(!done(ImplicitKind::Puts));
    ops.complete(other);
    assert!(done(ImplicitKind::Puts));
}

#[test]
fn an_access_region_has_the_leaf_of_its_puts() {
    let ops = Ops::new(1);
    assert!(ops.open_region(0));
    let get = ops.begin_implicit(0, ImplicitKind::Gets, 1);
    let put = ops.begin_implicit_with_departures(0, 1);
    let root = ops.close_region(0).unwrap();
    assert!(root.leaf() != root && !ops.sync(0, root.leaf()));
    ops.depart(put);
    assert!(ops.sync(0, root.leaf()) && !ops.sync(0, root));
    ops.complete(put);
    ops.complete(get);
    assert!(ops.sync(0, root));
    // That of one without such puts ends with it, also in the slot that had another one.
    assert!(ops.open_region(0));
    let get = ops.begin_implicit(0, ImplicitKind::Gets, 1);
    let root = ops.close_region(0).unwrap();
    assert!(!ops.sync(0, root.leaf()));
    ops.complete(get);
    assert!(ops.sync(0, root.leaf()) && ops.sync(0, root));
}

#[test]
fn an_operation_may_grow_before_it_is_handed_out() {
    let ops = Ops::new(1);
    let h = ops.begin(0, 0);
    ops.extend(h, 1);
    ops.complete(h.op());
    ops.extend(h, 2);
    ops.complete(h.op());
    assert!(!ops.sync(0, h));
    ops.complete(h.op());
    assert!(ops.sync(0, h));
}

#[test]
fn a_dead_handle_is_complete_although_its_slot_lives_again() {
    let ops = Ops::new(1);
    let old = ops.begin(0, 1);
    ops.complete(old.op());
    assert!(ops.sync(0, old));
    let new = ops.begin(0, 1);
    assert_eq!(new.op(), old.op(), "the slot is used again");
    assert_ne!(new, old);
    assert!(ops.sync(0, old));
    assert!(!ops.sync(0, new), "syncing the dead handle did not touch the new operation");
    ops.complete(new.op());
    assert!(ops.sync(0, new));
    assert!(ops.sync(0, new));
}

#[test]
fn generations_never_give_the_invalid_handle() {
    assert_eq!(next_generation(u32::MAX), 1);
    assert_eq!(next_generation(1), 2);
}

#[test]
fn many_in_flight_from_the_last_thread() {
    let ops = Ops::new(256);
    let handles: Vec<OpHandle> = (0..65_536 + 1000).map(|_| ops.begin(255, 1)).collect();
    let mut names: Vec<u32> = handles.iter().map(|h| h.op().0).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), handles.len());
    assert!(handles.iter().all(|&h| !ops.sync(255, h)));
    for h in handles.iter().rev() {
        ops.complete(h.op());
    }
    assert!(handles.iter().all(|&h| ops.sync(255, h)));
    let again = ops.begin(255, 1);
    assert!(
        names.binary_search(&again.op().0).is_ok(),
        "freed slots are used before new ones are made"
    );
}

#[test]
fn implicit_puts_and_gets_are_separate_and_per_thread() {
    let ops = Ops::new(8);
    let put = ops.begin_implicit(3, ImplicitKind::Puts, 2);
    let get = ops.begin_implicit(3, ImplicitKind::Gets, 1);
    assert!(
        !ops.implicit_done(3, ImplicitKind::Puts) && !ops.implicit_done(3, ImplicitKind::Gets)
    );
    assert!(ops.implicit_done(4, ImplicitKind::Puts));
    ops.complete(get);
    assert!(ops.implicit_done(3, ImplicitKind::Gets));
    ops.complete(put);
    assert!(!ops.implicit_done(3, ImplicitKind::Puts));
    ops.complete(put);
    assert!(ops.implicit_done(3, ImplicitKind::Puts));
}

#[test]
fn a_region_collects_implicit_operations() {
    let ops = Ops::new(8);
    assert_eq!(ops.close_region(0), None);
    assert!(ops.open_region(0));
    assert!(!ops.open_region(0));
    assert!(ops.in_region(0) && !ops.in_region(1));
    assert_eq!(ops.close_region(0), Some(OpHandle::INVALID));

    assert!(ops.open_region(0));
    let a = ops.begin_implicit(0, ImplicitKind::Puts, 1);
    ops.complete(a);
    let b = ops.begin_implicit(0, ImplicitKind::Gets, 2);
    ops.complete(b);
    let h = ops.close_region(0).unwrap();
    assert_ne!(h, OpHandle::INVALID);
    assert!(ops.implicit_done(0, ImplicitKind::Puts) && ops.implicit_done(0, ImplicitKind::Gets));
    assert!(!ops.sync(0, h));
    ops.complete(b);
    assert!(ops.sync(0, h));
}

/// The word that lets a sync be left out.
#[test]
fn syncs_are_needed_while_regions_are_open_and_after_implicit_operations() {
    let ops = Ops::new(2);
    let needed = || ops.syncs().load(Ordering::Relaxed) != 0;
    let h = ops.begin(0, 1);
    ops.complete(h.op());
    assert!(!needed());
    assert!(ops.open_region(1) && needed());
    let op = ops.begin_implicit(1, ImplicitKind::Puts, 1);
    ops.complete(op);
    let h = ops.close_region(1).unwrap();
    assert!(!needed() && ops.sync(1, h));
    ops.complete(ops.begin_implicit(0, ImplicitKind::Gets, 1));
    assert!(needed());
}

#[test]
fn values_travel_in_the_slot() {
    let ops = Ops::new(1);
    let h = ops.begin(0, 1);
    let value = ops.value(h);
    assert_eq!(ops.sync_value(0, h), None);
    value.part(0, 1).fill(7);
    ops.complete(h.op());
    assert_eq!(ops.sync_value(0, h).map(u64::to_le), Some(7));
    assert_eq!(ops.sync_value(0, h), Some(0));
}

#[test]
fn another_thread_may_sync() {
    let ops = Ops::new(256);
    let handles: Vec<OpHandle> = (0..FIRST_SLAB).map(|_| ops.begin(1, 1)).collect();
    for &h in &handles {
        ops.complete(h.op());
        assert!(ops.sync(2, h));
        assert!(ops.sync(2, h), "dead");
    }
    let again: Vec<OpHandle> = (0..FIRST_SLAB).map(|_| ops.begin(1, 1)).collect();
    let slabs = ops.of_thread(1).unwrap().owner.slabs.load(Ordering::Relaxed);
    assert_eq!(slabs, 1, "returned slots are used again");
    assert!(again.iter().all(|&h| !ops.sync(1, h)));
}

#[test]
fn completions_from_several_threads() {
    extern crate std;
    const ROUNDS: u32 = 200;
    const COMPLETERS: u32 = 3;
    let ops = Ops::new(256);
    let (ops, word) = (&ops, &AtomicU64::new(0));
    std::thread::scope(|s| {
        for _ in 0..COMPLETERS {
            s.spawn(move || {
                let mut seen = 0;
                while seen >> 32 != u64::from(ROUNDS) {
                    let now = word.load(Ordering::Acquire);
                    if now != seen {
                        seen = now;
                        for _ in 0..100 {
                            ops.complete(OpId(now as u32));
                        }
                    }
                    std::thread::yield_now();
                }
            });
        }
        for round in 1..=ROUNDS {
            let h = ops.begin(5, COMPLETERS * 100);
            word.store(u64::from(round) << 32 | u64::from(h.op().0), Ordering::Release);
            while !ops.sync(5, h) {
                std::thread::yield_now();
            }
        }
    });
}
