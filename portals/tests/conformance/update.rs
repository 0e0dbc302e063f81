//! `PtlMDUpdate`: "reports the state of a descriptor and replaces it, atomically, if no event has
//! arrived that the caller has not read".

use portals3::md_options::{EVENT_START_DISABLE, MANAGE_REMOTE, MAX_SIZE, OP_GET, OP_PUT};
use portals3::{AckReq, EqHandle, MemoryDescriptor, PtlError, PtlEventKind, Size, Unlink};

use crate::common::*;
use crate::rig::{RigKind, md, pattern};

instantiate! {
    without_a_new_descriptor_it_reads_the_present_one
    it_replaces_the_descriptor_when_the_queue_is_empty
    it_refuses_while_an_event_is_unread
    it_tells_the_old_state_even_when_it_refuses
    without_a_queue_it_is_unconditional
    it_begins_at_the_beginning_again
    it_revives_an_inactive_descriptor
    it_changes_a_free_floating_descriptor
    it_tells_what_is_left_of_the_threshold
    it_can_change_the_queue
    it_checks_the_new_descriptor
    a_message_under_way_keeps_it_off_or_ends_in_the_old_memory
}

fn blank() -> MemoryDescriptor {
    md(crate::rig::NodeBuffer { address: 0, len: 0 }, 0, EqHandle::NONE)
}

fn without_a_new_descriptor_it_reads_the_present_one(kind: RigKind) {
    let rig = kind.rig();
    let side = target_with(&rig, 100, |md| {
        md.options = OP_PUT | MAX_SIZE;
        md.max_size = 10;
        md.threshold = 5;
    });
    let mut old = blank();
    rig.target().md_update(side.md, Some(&mut old), None, EqHandle::NONE).expect("PtlMDUpdate");
    let due = MemoryDescriptor {
        max_size: 10,
        threshold: 5,
        ..md(side.buffer, OP_PUT | MAX_SIZE, side.eq)
    };
    assert_eq!(old, due);
    assert_eq!(rig.target().md_update(side.md, None, None, EqHandle::NONE), Ok(()));
}

fn it_replaces_the_descriptor_when_the_queue_is_empty(kind: RigKind) {
    let rig = kind.rig();
    let node = rig.target();
    let side = target(&rig, 64, BOTH | MANAGE_REMOTE);
    let (from, bytes) = source_of(&rig, 1, 32);
    put(&rig, from, to(&rig), 1);
    assert_eq!(arrived(&rig, side.eq), [1]);
    let other = node.memory(64);
    let new = md(other, BOTH | MANAGE_REMOTE, side.eq);
    let mut old = blank();
    node.md_update(side.md, Some(&mut old), Some(new), side.eq).expect("PtlMDUpdate");
    assert_eq!(old, md(side.buffer, BOTH | MANAGE_REMOTE, side.eq));
    let (from, more) = source_of(&rig, 2, 32);
    put(&rig, from, to(&rig), 2);
    assert_eq!(arrived(&rig, side.eq), [2]);
    assert_eq!(node.read(side.buffer)[..32], bytes);
    assert_eq!(node.read(other)[..32], more);
}

fn it_refuses_while_an_event_is_unread(kind: RigKind) {
    let rig = kind.rig();
    let node = rig.target();
    let side = target(&rig, 64, BOTH | MANAGE_REMOTE);
    let (from, _) = source_of(&rig, 1, 32);
    put(&rig, from, to(&rig), 1);
    let other = node.memory(64);
    let new = md(other, BOTH | MANAGE_REMOTE, side.eq);
    assert_eq!(node.md_update(side.md, None, Some(new), side.eq), Err(PtlError::MdNoUpdate));
    rig.event(node, side.eq);
    assert_eq!(
        node.md_update(side.md, None, Some(new), side.eq),
        Err(PtlError::MdNoUpdate),
        "one is still unread"
    );
    rig.event(node, side.eq);
    let (from, bytes) = source_of(&rig, 2, 32);
    put(&rig, from, to(&rig), 2);
    assert_eq!(node.read(side.buffer)[..32], bytes, "a refused update changes nothing");
    assert_eq!(node.read(other), [0; 64]);
    assert_eq!(arrived(&rig, side.eq), [2]);
    assert_eq!(node.md_update(side.md, None, Some(new), side.eq), Ok(()));
}

fn it_tells_the_old_state_even_when_it_refuses(kind: RigKind) {
    let rig = kind.rig();
    let side = target(&rig, 64, BOTH | MANAGE_REMOTE);
    let (from, _) = source_of(&rig, 1, 32);
    put(&rig, from, to(&rig), 1);
    let mut old = blank();
    let new = md(side.buffer, OP_GET, side.eq);
    let result = rig.target().md_update(side.md, Some(&mut old), Some(new), side.eq);
    assert_eq!(result, Err(PtlError::MdNoUpdate));
    assert_eq!(old, md(side.buffer, BOTH | MANAGE_REMOTE, side.eq));
}

fn without_a_queue_it_is_unconditional(kind: RigKind) {
    let rig = kind.rig();
    let node = rig.target();
    let side = target(&rig, 64, BOTH | MANAGE_REMOTE);
    let (from, _) = source_of(&rig, 1, 32);
    put(&rig, from, to(&rig), 1);
    let other = node.memory(64);
    let new = md(other, BOTH | MANAGE_REMOTE, side.eq);
    assert_eq!(node.md_update(side.md, None, Some(new), EqHandle::NONE), Ok(()));
    let (from, bytes) = source_of(&rig, 2, 32);
    put(&rig, from, to(&rig), 2);
    assert_eq!(node.read(other)[..32], bytes);
    assert_eq!(arrived(&rig, side.eq), [1, 2]);
}

fn it_begins_at_the_beginning_again(kind: RigKind) {
    let rig = kind.rig();
    let side = target(&rig, 64, OP_PUT | EVENT_START_DISABLE);
    let (from, _) = source_of(&rig, 1, 24);
    put(&rig, from, to(&rig), 1);
    put(&rig, from, to(&rig), 2);
    assert_eq!(arrived(&rig, side.eq), [1, 2]);
    let new = md(side.buffer, OP_PUT | EVENT_START_DISABLE, side.eq);
    rig.target().md_update(side.md, None, Some(new), side.eq).expect("PtlMDUpdate");
    put(&rig, from, to(&rig), 3);
    assert_eq!(rig.event(rig.target(), side.eq).offset, 0);
}

fn it_revives_an_inactive_descriptor(kind: RigKind) {
    let rig = kind.rig();
    let side = target_with(&rig, 64, |md| md.threshold = 1);
    let (from, _) = source_of(&rig, 1, 8);
    put(&rig, from, to(&rig), 1);
    put(&rig, from, to(&rig), 2);
    assert_eq!(arrived(&rig, side.eq), [1]);
    for hdr in 3..6 {
        let new = MemoryDescriptor { threshold: 1, ..md(side.buffer, BOTH, side.eq) };
        rig.target().md_update(side.md, None, Some(new), side.eq).expect("PtlMDUpdate");
        put(&rig, from, to(&rig), hdr);
        put(&rig, from, to(&rig), 9);
        assert_eq!(arrived(&rig, side.eq), [hdr]);
    }
}

fn it_changes_a_free_floating_descriptor(kind: RigKind) {
    let rig = kind.rig();
    let node = rig.initiator();
    let side = target(&rig, 64, OP_PUT);
    let (from, first) = source_of(&rig, 1, 16);
    put(&rig, from, to(&rig), 1);
    rig.events(node, from.eq);
    let second = pattern(2, 24);
    let new = md(node.filled(&second), 0, from.eq);
    node.md_update(from.md, None, Some(new), from.eq).expect("PtlMDUpdate");
    put(&rig, from, to(&rig), 2);
    assert_eq!(rig.target().read(side.buffer)[..40], [first, second].concat());
}

fn it_tells_what_is_left_of_the_threshold(kind: RigKind) {
    let rig = kind.rig();
    let side = target_with(&rig, 64, |md| md.threshold = 5);
    let (from, _) = source_of(&rig, 1, 8);
    put(&rig, from, to(&rig), 1);
    put(&rig, from, to(&rig), 2);
    let mut old = blank();
    rig.target().md_update(side.md, Some(&mut old), None, EqHandle::NONE).expect("PtlMDUpdate");
    assert_eq!(old.threshold, 3);
}

fn it_can_change_the_queue(kind: RigKind) {
    let rig = kind.rig();
    let node = rig.target();
    let side = target(&rig, 64, BOTH);
    let other = node.eq_alloc(ROOM).expect("PtlEQAlloc");
    node.md_update(side.md, None, Some(md(side.buffer, BOTH, other)), side.eq)
        .expect("PtlMDUpdate");
    let (from, _) = source_of(&rig, 1, 8);
    put(&rig, from, to(&rig), 1);
    assert_eq!(arrived(&rig, other), [1]);
    rig.silent(node, side.eq);
    node.md_update(side.md, None, Some(md(side.buffer, BOTH, EqHandle::NONE)), other)
        .expect("PtlMDUpdate");
    put(&rig, from, to(&rig), 2);
    rig.silent(node, other);
}

fn it_checks_the_new_descriptor(kind: RigKind) {
    let rig = kind.rig();
    let side = target(&rig, 64, BOTH);
    let node = rig.target();
    let illegal = MemoryDescriptor { threshold: -5, ..md(side.buffer, BOTH, side.eq) };
    assert_eq!(
        node.md_update(side.md, None, Some(illegal), EqHandle::NONE),
        Err(PtlError::MdIllegal)
    );
    let no_queue = md(side.buffer, BOTH, EqHandle(4711));
    assert_eq!(
        node.md_update(side.md, None, Some(no_queue), EqHandle::NONE),
        Err(PtlError::EqInvalid)
    );
    let new = md(side.buffer, BOTH, side.eq);
    assert_eq!(node.md_update(side.md, None, Some(new), EqHandle(4711)), Err(PtlError::EqInvalid));
    let (from, _) = source_of(&rig, 1, 8);
    put(&rig, from, to(&rig), 1);
    assert_eq!(arrived(&rig, side.eq), [1], "a refused update changes nothing");
}

fn a_message_under_way_keeps_it_off_or_ends_in_the_old_memory(kind: RigKind) {
    for seed in 1..=10 {
        let rig = kind.rig_seeded(seed);
        let node = rig.target();
        let len = 8000;
        let side = target(&rig, len, BOTH | MANAGE_REMOTE | EVENT_START_DISABLE);
        let other = node.memory(len);
        let new = md(other, BOTH | MANAGE_REMOTE | EVENT_START_DISABLE, side.eq);
        let (from, bytes) = source_of(&rig, seed, len);
        rig.initiator().put(from.md, AckReq::NoAck, to(&rig), 1).expect("PtlPut");
        // Some of it may have arrived, without an event yet.
        for _ in 0..seed % 4 {
            rig.initiator().progress();
            node.progress();
        }
        let updated = node.md_update(side.md, None, Some(new), side.eq);
        assert!(matches!(updated, Ok(()) | Err(PtlError::MdNoUpdate)), "{updated:?}");
        let ends = of_kind(&rig, node, side.eq, PtlEventKind::PutEnd);
        assert_eq!(ends.iter().map(|e| e.mlength).collect::<Vec<_>>(), [len as Size]);
        let (used, spared) =
            if updated.is_ok() { (other, side.buffer) } else { (side.buffer, other) };
        assert!(node.read(used) == bytes, "all of it is in one of the two");
        assert!(node.read(spared) == vec![0; len], "and nothing in the other");
        let after = node.md_update(side.md, None, Some(new), side.eq);
        assert_eq!(after, Ok(()));
        assert_eq!(node.md_unlink(side.md), Ok(()));
        assert_eq!(node.md_bind(new, Unlink::Retain).map(|_| ()), Ok(()));
        if kind != RigKind::Framed {
            break;
        }
    }
}
