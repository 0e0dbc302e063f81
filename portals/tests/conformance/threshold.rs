//! Thresholds: "how many operations a descriptor serves: one for each put sent, acknowledgement
//! received, incoming put, get or get-put, and reply received. The issue of a get counts none;
//! infinite thresholds do not move; at zero the descriptor is inactive".

use portals3::{AckReq, EqHandle, PtlEventKind, THRESH_INF, Unlink};

use crate::common::*;
use crate::rig::agent::AgentMemory;
use crate::rig::{RigKind, md, pattern};

instantiate! {
    a_put_sent_counts_one
    an_acknowledgement_received_counts_one
    an_acknowledgement_to_a_used_up_descriptor_is_lost
    a_descriptor_without_queue_gets_no_acknowledgement
    an_incoming_put_counts_one
    an_incoming_get_counts_one
    an_incoming_get_put_counts_one
    a_reply_counts_one_and_the_issue_of_a_get_nothing
    incoming_operations_of_all_kinds_count_together
    an_infinite_threshold_never_moves
    a_threshold_of_zero_is_inactive_from_the_beginning
    large_thresholds_count_exactly
    a_large_source_may_have_the_largest_threshold
}

fn a_put_sent_counts_one(kind: RigKind) {
    let rig = kind.rig();
    let side = target(&rig, 64, BOTH);
    let from = source_with(&rig, &pattern(1, 8), |md| md.threshold = 2);
    for hdr in 1..=3 {
        // Whether the third is refused or dropped is left open; it does not arrive.
        let result = rig.initiator().put(from.md, AckReq::NoAck, to(&rig), hdr);
        assert!(hdr == 3 || result.is_ok(), "{result:?}");
        rig.settle();
    }
    assert_eq!(arrived(&rig, side.eq), [1, 2]);
}

fn an_acknowledgement_received_counts_one(kind: RigKind) {
    let rig = kind.rig();
    let side = target(&rig, 64, BOTH);
    let from = source_with(&rig, &pattern(1, 8), |md| md.threshold = 2);
    rig.initiator().put(from.md, AckReq::Ack, to(&rig), 1).expect("PtlPut");
    rig.settle();
    let ours = kinds(&rig, rig.initiator(), from.eq);
    assert!(ours.contains(&PtlEventKind::Ack), "{ours:?}");
    let _ = rig.initiator().put(from.md, AckReq::NoAck, to(&rig), 2);
    rig.settle();
    assert_eq!(
        arrived(&rig, side.eq),
        [1],
        "the send and its acknowledgement used the threshold up"
    );
}

fn a_descriptor_without_queue_gets_no_acknowledgement(kind: RigKind) {
    let rig = kind.rig();
    let side = target(&rig, 64, BOTH);
    let from = source_with(&rig, &pattern(1, 8), |md| (md.threshold, md.eq) = (2, EqHandle::NONE));
    for hdr in 1..=2 {
        rig.initiator().put(from.md, AckReq::Ack, to(&rig), hdr).expect("PtlPut");
        rig.settle();
    }
    assert_eq!(arrived(&rig, side.eq), [1, 2]);
    assert_eq!(rig.initiator().dropped(), 0);
}

fn a_large_source_may_have_the_largest_threshold(kind: RigKind) {
    let rig = kind.rig();
    let side = target(&rig, 64, BOTH);
    let node = rig.initiator();
    let mut large = md(node.memory_of(AgentMemory::Private, 4 << 20), 0, EqHandle::NONE);
    large.threshold = i32::MAX;
    let from = node.md_bind(large, Unlink::Retain).expect("PtlMDBind");
    node.put_region(from, 5, 8, AckReq::NoAck, to(&rig), 1).expect("PtlPutRegion");
    rig.settle();
    assert_eq!(arrived(&rig, side.eq), [1]);
}

fn an_acknowledgement_to_a_used_up_descriptor_is_lost(kind: RigKind) {
    let rig = kind.rig();
    let side = target(&rig, 64, BOTH);
    let from = source_with(&rig, &pattern(1, 8), |md| md.threshold = 1);
    rig.initiator().put(from.md, AckReq::Ack, to(&rig), 1).expect("PtlPut");
    rig.settle();
    assert_eq!(arrived(&rig, side.eq), [1]);
    assert_eq!(
        kinds(&rig, rig.initiator(), from.eq),
        [PtlEventKind::SendStart, PtlEventKind::SendEnd]
    );
}

fn an_incoming_put_counts_one(kind: RigKind) {
    let rig = kind.rig();
    let side = target_with(&rig, 64, |md| md.threshold = 3);
    let (from, _) = source_of(&rig, 1, 8);
    let before = rig.target().dropped();
    for hdr in 1..=5 {
        put(&rig, from, to(&rig), hdr);
    }
    assert_eq!(arrived(&rig, side.eq), [1, 2, 3]);
    assert_eq!(rig.target().dropped(), before + 2);
}

fn an_incoming_get_counts_one(kind: RigKind) {
    let rig = kind.rig();
    let side = target_with(&rig, 64, |md| md.threshold = 2);
    let (into, _) = source_of(&rig, 1, 8);
    for _ in 0..4 {
        get(&rig, into, to(&rig));
    }
    assert_eq!(of_kind(&rig, rig.target(), side.eq, PtlEventKind::GetEnd).len(), 2);
    assert_eq!(of_kind(&rig, rig.initiator(), into.eq, PtlEventKind::ReplyEnd).len(), 2);
}

fn an_incoming_get_put_counts_one(kind: RigKind) {
    let rig = kind.rig();
    let side = target_with(&rig, 64, |md| md.threshold = 2);
    let (from, _) = source_of(&rig, 1, 8);
    let (into, _) = source_of(&rig, 2, 8);
    for hdr in 1..=4 {
        rig.initiator().get_put(into.md, from.md, to(&rig), hdr).expect("PtlGetPut");
        rig.settle();
    }
    let seen = of_kind(&rig, rig.target(), side.eq, PtlEventKind::GetPutEnd);
    assert_eq!(seen.iter().map(|e| e.hdr_data).collect::<Vec<_>>(), [1, 2]);
}

fn a_reply_counts_one_and_the_issue_of_a_get_nothing(kind: RigKind) {
    let rig = kind.rig();
    let side = target(&rig, 64, BOTH);
    let bytes = pattern(3, 64);
    rig.target().write(side.buffer, &bytes);
    let into = source_with(&rig, &[0; 8], |md| md.threshold = 1);
    get(&rig, into, to(&rig));
    assert_eq!(rig.initiator().read(into.buffer), bytes[..8]);
    assert_eq!(
        kinds(&rig, rig.initiator(), into.eq),
        [PtlEventKind::ReplyStart, PtlEventKind::ReplyEnd]
    );
    let _ = rig.initiator().get(into.md, to(&rig));
    rig.silent(rig.initiator(), into.eq);
    assert_eq!(
        rig.initiator().read(into.buffer),
        bytes[..8],
        "a used-up descriptor takes no second reply"
    );
}

fn incoming_operations_of_all_kinds_count_together(kind: RigKind) {
    let rig = kind.rig();
    let side = target_with(&rig, 64, |md| md.threshold = 3);
    let (from, _) = source_of(&rig, 1, 8);
    let (into, _) = source_of(&rig, 2, 8);
    put(&rig, from, to(&rig), 1);
    get(&rig, into, to(&rig));
    rig.initiator().get_put(into.md, from.md, to(&rig), 2).expect("PtlGetPut");
    rig.settle();
    put(&rig, from, to(&rig), 3);
    use PtlEventKind::{GetEnd, GetPutEnd, GetPutStart, GetStart, PutEnd, PutStart};
    let seen = kinds(&rig, rig.target(), side.eq);
    assert_eq!(seen, [PutStart, PutEnd, GetStart, GetEnd, GetPutStart, GetPutEnd]);
}

fn an_infinite_threshold_never_moves(kind: RigKind) {
    let rig = kind.rig();
    let side = target_with(&rig, 1 << 16, |_| ());
    let (from, _) = source_of(&rig, 1, 8);
    for _ in 0..10 {
        rig.initiator().put(from.md, AckReq::Ack, to(&rig), 0).expect("PtlPut");
        let seen = rig.events(rig.target(), side.eq);
        assert!(seen.iter().all(|e| e.md.threshold == THRESH_INF), "{seen:?}");
        let ours = rig.events(rig.initiator(), from.eq);
        assert!(ours.iter().all(|e| e.md.threshold == THRESH_INF), "{ours:?}");
        assert!(ours.iter().any(|e| e.kind == PtlEventKind::Ack));
    }
}

fn a_threshold_of_zero_is_inactive_from_the_beginning(kind: RigKind) {
    let rig = kind.rig();
    let me = entry(rig.target());
    let eq = rig.target().eq_alloc(ROOM).expect("PtlEQAlloc");
    let buffer = rig.target().memory(64);
    let wanted = portals3::MemoryDescriptor { threshold: 0, ..crate::rig::md(buffer, BOTH, eq) };
    // An implementation may refuse it; otherwise the descriptor accepts nothing.
    let _ = rig.target().md_attach(me, wanted, portals3::Unlink::Retain);
    let (from, _) = source_of(&rig, 1, 8);
    put(&rig, from, to(&rig), 1);
    rig.silent(rig.target(), eq);
}

fn large_thresholds_count_exactly(kind: RigKind) {
    let rig = kind.rig();
    let me = entry(rig.target());
    let eq = rig.target().eq_alloc(1024).expect("PtlEQAlloc");
    behind(rig.target(), me, 8, portals3::Unlink::Retain, |md| {
        md.options =
            BOTH | portals3::md_options::MANAGE_REMOTE | portals3::md_options::EVENT_START_DISABLE;
        md.threshold = 300;
        md.eq = eq;
    });
    let from = source_with(&rig, &pattern(1, 8), |md| md.eq = EqHandle::NONE);
    let before = rig.target().dropped();
    for hdr in 0..310 {
        put(&rig, from, to(&rig), hdr);
    }
    assert_eq!(arrived(&rig, eq), (0..300).collect::<Vec<_>>());
    assert_eq!(rig.target().dropped(), before + 10);
}
