//! Which match list entry accepts a message: "the list is walked from head to tail. An entry is
//! chosen when its match id fits, its match bits fit under its ignore bits, and it has an
//! active descriptor. The descriptor must allow the operation and have room. Else the walk
//! continues, and at the end of the list the message is dropped".

use portals3::md_options::{MANAGE_REMOTE, OP_GET, OP_PUT, TRUNCATE};
use portals3::{AckReq, InsPos, NID_ANY, PID_ANY, PtlError, PtlEventKind, PtlProcessId, Unlink};

use crate::common::*;
use crate::rig::RigKind;

instantiate! {
    the_list_is_walked_from_head_to_tail
    an_entry_attached_before_becomes_the_head
    each_portal_table_entry_has_its_own_list
    an_entry_for_another_process_is_passed_over
    a_wild_nid_or_pid_matches_every_process
    match_bits_must_agree_outside_the_ignore_bits
    all_bits_may_be_ignored
    an_entry_without_a_descriptor_is_passed_over
    an_inactive_descriptor_is_passed_over
    a_descriptor_that_forbids_puts_is_passed_over_by_puts
    a_descriptor_that_forbids_gets_is_passed_over_by_gets
    an_entry_without_room_is_passed_over
    the_end_of_the_list_drops_the_message
    an_empty_list_drops_the_message
}

fn the_list_is_walked_from_head_to_tail(kind: RigKind) {
    let rig = kind.rig();
    let first = target(&rig, 64, BOTH | MANAGE_REMOTE);
    let second = target(&rig, 64, BOTH | MANAGE_REMOTE);
    let (from, bytes) = source_of(&rig, 1, 64);
    put(&rig, from, to(&rig), 0);
    assert_eq!(rig.target().read(first.buffer), bytes);
    assert_eq!(rig.target().read(second.buffer), [0; 64]);
    rig.silent(rig.target(), second.eq);
}

fn an_entry_attached_before_becomes_the_head(kind: RigKind) {
    let rig = kind.rig();
    let node = rig.target();
    let old = target(&rig, 64, BOTH | MANAGE_REMOTE);
    let me = node
        .me_attach(PT, PtlProcessId::ANY, 0, !0, Unlink::Retain, InsPos::Before)
        .expect("PtlMEAttach");
    let new = behind(node, me, 64, Unlink::Retain, |md| md.options |= MANAGE_REMOTE);
    let (from, bytes) = source_of(&rig, 1, 64);
    put(&rig, from, to(&rig), 0);
    assert_eq!(node.read(new.buffer), bytes);
    rig.silent(node, old.eq);
}

fn each_portal_table_entry_has_its_own_list(kind: RigKind) {
    let rig = kind.rig();
    let node = rig.target();
    let other = target(&rig, 64, BOTH);
    let me = node
        .me_attach(PT + 1, PtlProcessId::ANY, 0, !0, Unlink::Retain, InsPos::After)
        .expect("PtlMEAttach");
    let mine = behind(node, me, 64, Unlink::Retain, |_| ());
    let (from, bytes) = source_of(&rig, 1, 64);
    put(&rig, from, crate::rig::To { pt: PT + 1, ..to(&rig) }, 0);
    assert_eq!(node.read(mine.buffer), bytes);
    rig.silent(node, other.eq);
}

fn an_entry_for_another_process_is_passed_over(kind: RigKind) {
    let rig = kind.rig();
    let node = rig.target();
    let sender = rig.initiator().id();
    // Another process that exists, where the rig has one; else one of another node.
    let other = if node.id() == sender {
        PtlProcessId { nid: sender.nid + 1, pid: sender.pid }
    } else {
        node.id()
    };
    let me = match node.me_attach(PT, other, 0, !0, Unlink::Retain, InsPos::After) {
        Ok(me) => me,
        // A process without peers may know that there is no other.
        Err(PtlError::ProcessInvalid) if kind == RigKind::Loopback => return,
        Err(error) => panic!("{error:?}"),
    };
    let theirs = behind(node, me, 64, Unlink::Retain, |_| ());
    let me =
        node.me_attach(PT, sender, 0, !0, Unlink::Retain, InsPos::After).expect("PtlMEAttach");
    let mine = behind(node, me, 64, Unlink::Retain, |_| ());
    let (from, bytes) = source_of(&rig, 1, 64);
    put(&rig, from, to(&rig), 0);
    assert_eq!(node.read(mine.buffer), bytes);
    rig.silent(node, theirs.eq);
}

fn a_wild_nid_or_pid_matches_every_process(kind: RigKind) {
    let rig = kind.rig();
    let node = rig.target();
    let sender = rig.initiator().id();
    let wild = [
        PtlProcessId { nid: NID_ANY, pid: sender.pid },
        PtlProcessId { nid: sender.nid, pid: PID_ANY },
        PtlProcessId { nid: NID_ANY, pid: PID_ANY },
    ];
    for (pt, id) in (0..).zip(wild) {
        let me =
            node.me_attach(pt, id, 0, !0, Unlink::Retain, InsPos::After).expect("PtlMEAttach");
        let side = behind(node, me, 64, Unlink::Retain, |_| ());
        let (from, _) = source_of(&rig, 1, 64);
        put(&rig, from, crate::rig::To { pt, ..to(&rig) }, 7);
        assert_eq!(arrived(&rig, side.eq), [7]);
    }
}

fn match_bits_must_agree_outside_the_ignore_bits(kind: RigKind) {
    let rig = kind.rig();
    let node = rig.target();
    let ignore = 0x00ff_0000_0000_fff0;
    let strict = entry_for(node, BITS ^ 1);
    let strict = behind(node, strict, 64, Unlink::Retain, |_| ());
    let me = node
        .me_attach(PT, PtlProcessId::ANY, BITS, ignore, Unlink::Retain, InsPos::After)
        .expect("PtlMEAttach");
    let loose = behind(node, me, 640, Unlink::Retain, |_| ());
    let (from, _) = source_of(&rig, 1, 8);
    // Every single bit in turn: only the ignored ones may differ.
    let mut due = Vec::new();
    for bit in 0..64 {
        put(&rig, from, to_bits(&rig, BITS ^ (1 << bit)), bit);
        if ignore >> bit & 1 == 1 {
            due.push(bit);
        }
        if bit % 16 == 15 {
            assert_eq!(arrived(&rig, loose.eq), std::mem::take(&mut due));
            let ours = rig.events(rig.initiator(), from.eq);
            assert!(ours.iter().all(|event| event.kind != PtlEventKind::Ack));
        }
    }
    assert_eq!(arrived(&rig, strict.eq), [0], "only the bits of its own reach the strict entry");
}

fn all_bits_may_be_ignored(kind: RigKind) {
    let rig = kind.rig();
    let side = target(&rig, 64, BOTH);
    let (from, _) = source_of(&rig, 1, 8);
    for bits in [0, !0, BITS] {
        put(&rig, from, to_bits(&rig, bits), 0);
        let event = of_kind(&rig, rig.target(), side.eq, PtlEventKind::PutEnd);
        assert_eq!(event.iter().map(|e| e.match_bits).collect::<Vec<_>>(), [bits]);
    }
}

fn an_entry_without_a_descriptor_is_passed_over(kind: RigKind) {
    let rig = kind.rig();
    entry(rig.target());
    let side = target(&rig, 64, BOTH);
    let (from, _) = source_of(&rig, 1, 64);
    put(&rig, from, to(&rig), 5);
    assert_eq!(arrived(&rig, side.eq), [5]);
}

fn an_inactive_descriptor_is_passed_over(kind: RigKind) {
    let rig = kind.rig();
    let once = target_with(&rig, 64, |md| md.threshold = 1);
    let rest = target(&rig, 64, BOTH);
    let (from, _) = source_of(&rig, 1, 8);
    put(&rig, from, to(&rig), 1);
    put(&rig, from, to(&rig), 2);
    assert_eq!(arrived(&rig, once.eq), [1]);
    assert_eq!(arrived(&rig, rest.eq), [2]);
}

fn a_descriptor_that_forbids_puts_is_passed_over_by_puts(kind: RigKind) {
    let rig = kind.rig();
    let gets = target(&rig, 64, OP_GET);
    let puts = target(&rig, 64, OP_PUT);
    let (from, _) = source_of(&rig, 1, 64);
    put(&rig, from, to(&rig), 3);
    assert_eq!(arrived(&rig, puts.eq), [3]);
    rig.silent(rig.target(), gets.eq);
}

fn a_descriptor_that_forbids_gets_is_passed_over_by_gets(kind: RigKind) {
    let rig = kind.rig();
    let puts = target(&rig, 64, OP_PUT);
    let gets = target(&rig, 64, OP_GET);
    let bytes = crate::rig::pattern(9, 64);
    rig.target().write(gets.buffer, &bytes);
    let (into, _) = source_of(&rig, 1, 64);
    get(&rig, into, to(&rig));
    assert_eq!(rig.initiator().read(into.buffer), bytes);
    assert_eq!(of_kind(&rig, rig.target(), gets.eq, PtlEventKind::GetEnd).len(), 1);
    rig.silent(rig.target(), puts.eq);
}

fn an_entry_without_room_is_passed_over(kind: RigKind) {
    let rig = kind.rig();
    let small = target(&rig, 32, BOTH);
    let large = target(&rig, 64, BOTH);
    let (from, _) = source_of(&rig, 1, 33);
    put(&rig, from, to(&rig), 3);
    assert_eq!(arrived(&rig, large.eq), [3]);
    rig.silent(rig.target(), small.eq);
}

fn the_end_of_the_list_drops_the_message(kind: RigKind) {
    let rig = kind.rig();
    let node = rig.target();
    let me = entry_for(node, 1);
    let side = behind(node, me, 64, Unlink::Retain, |md| md.options |= TRUNCATE);
    let (from, _) = source_of(&rig, 1, 8);
    let before = node.dropped();
    put(&rig, from, to_bits(&rig, 2), 0);
    assert_eq!(node.dropped(), before + 1);
    rig.silent(node, side.eq);
}

fn an_empty_list_drops_the_message(kind: RigKind) {
    let rig = kind.rig();
    let (from, _) = source_of(&rig, 1, 8);
    let before = rig.target().dropped();
    rig.initiator().put(from.md, AckReq::Ack, to(&rig), 0).expect("PtlPut");
    rig.settle();
    assert_eq!(rig.target().dropped(), before + 1);
}
