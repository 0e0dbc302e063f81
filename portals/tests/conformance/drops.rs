//! The drop counter, `PTL_SR_DROP_COUNT`: messages that no descriptor accepted.

use portals3::{AckReq, EqHandle, Unlink};

use crate::common::*;
use crate::rig::{RigKind, To, md, pattern};

instantiate! {
    the_counter_begins_at_zero_and_counts_no_success
    a_bad_portal_index_counts
    a_bad_access_control_index_counts
    a_reply_to_a_vanished_descriptor_counts_or_lands
    an_acknowledgement_to_a_vanished_descriptor_harms_nobody
    drops_are_counted_at_the_target_only
}

fn the_counter_begins_at_zero_and_counts_no_success(kind: RigKind) {
    let rig = kind.rig();
    assert!(rig.nodes().iter().all(|node| node.dropped() == 0));
    target(&rig, 64, BOTH);
    let (from, _) = source_of(&rig, 1, 8);
    put(&rig, from, to(&rig), 0);
    get(&rig, from, to(&rig));
    assert!(rig.nodes().iter().all(|node| node.dropped() == 0));
}

fn a_bad_portal_index_counts(kind: RigKind) {
    let rig = kind.rig();
    let (from, _) = source_of(&rig, 1, 8);
    let limit = rig.target().limits().max_pt_index;
    for (count, pt) in [limit + 1, limit + 1000, u32::MAX].into_iter().enumerate() {
        put(&rig, from, To { pt, ..to(&rig) }, 0);
        assert_eq!(rig.target().dropped(), count as u64 + 1);
    }
}

fn a_bad_access_control_index_counts(kind: RigKind) {
    let rig = kind.rig();
    let side = target(&rig, 64, BOTH);
    let (from, _) = source_of(&rig, 1, 8);
    let limit = rig.target().limits().max_ac_index;
    for (count, ac) in [limit + 1, limit + 1000, u32::MAX].into_iter().enumerate() {
        put(&rig, from, To { ac, ..to(&rig) }, 0);
        assert_eq!(rig.target().dropped(), count as u64 + 1);
    }
    rig.silent(rig.target(), side.eq);
}

fn a_reply_to_a_vanished_descriptor_counts_or_lands(kind: RigKind) {
    let rig = kind.rig();
    let node = rig.initiator();
    let side = target(&rig, 64, BOTH);
    rig.target().write(side.buffer, &pattern(4, 64));
    let into = source(&rig, &[0xee; 64]);
    node.get(into.md, to(&rig)).expect("PtlGet");
    // An unlink may be refused while the reply is in flight, or the reply may have arrived
    // already; otherwise it must not be stored.
    let gone = node.md_unlink(into.md);
    let frames = rig.kind.needs_target();
    rig.settle();
    let landed = node.read(into.buffer) == pattern(4, 64);
    if gone.is_ok() && frames {
        assert!(!landed, "a reply was written to a descriptor that was unlinked");
        assert_eq!(node.read(into.buffer), [0xee; 64]);
        assert_eq!(node.dropped(), 1);
        rig.silent(node, into.eq);
    } else {
        assert!(landed);
        assert_eq!(node.dropped(), 0);
    }
}

fn an_acknowledgement_to_a_vanished_descriptor_harms_nobody(kind: RigKind) {
    let rig = kind.rig();
    let node = rig.initiator();
    let side = target(&rig, 64, BOTH | portals3::md_options::MANAGE_REMOTE);
    let (from, _) = source_of(&rig, 1, 8);
    node.put(from.md, AckReq::Ack, to(&rig), 1).expect("PtlPut");
    if node.md_unlink(from.md).is_ok() && kind.needs_target() {
        // The index of the old descriptor, with another generation.
        let eq = node.eq_alloc(ROOM).expect("PtlEQAlloc");
        node.md_bind(md(node.memory(8), 0, eq), Unlink::Retain).expect("PtlMDBind");
        rig.silent(node, eq);
        assert_eq!(node.dropped(), 1);
    }
    assert_eq!(arrived(&rig, side.eq), [1]);
}

fn drops_are_counted_at_the_target_only(kind: RigKind) {
    let rig = kind.rig();
    let from = source_with(&rig, &[0; 8], |md| md.eq = EqHandle::NONE);
    for _ in 0..5 {
        put(&rig, from, to(&rig), 0);
        get(&rig, from, to(&rig));
    }
    assert_eq!(rig.target().dropped(), 10);
    if rig.nodes().len() > 1 {
        assert_eq!(rig.initiator().dropped(), 0);
    }
}
