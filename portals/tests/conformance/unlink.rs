//! Unlinking: by the user, by `PTL_UNLINK`, and what is unlinked with what.

use portals3::md_options::{EVENT_END_DISABLE, EVENT_START_DISABLE, MANAGE_REMOTE};
use portals3::{AckReq, EqHandle, InsPos, PtlError, PtlEventKind, PtlProcessId, Unlink};

use crate::common::*;
use crate::rig::{RigKind, md, pattern};

instantiate! {
    unlink_takes_a_used_up_descriptor_away
    unlink_posts_one_event_after_the_last_end
    the_unlink_event_tells_of_the_last_operation
    without_start_and_end_there_is_no_unlink_event
    a_retained_descriptor_stays_when_it_is_used_up
    unlink_by_hand_posts_no_event
    an_unlinked_descriptor_takes_nothing
    an_entry_with_unlink_goes_with_its_descriptor
    a_retained_entry_stays_and_takes_another_descriptor
    a_descriptor_goes_with_its_entry
    an_unlinked_entry_matches_nothing
    a_source_with_unlink_goes_after_its_last_operation
    unlink_waits_for_pending_operations
    unlinking_by_hand_fails_while_operations_are_pending
    handles_of_what_is_gone_are_invalid
}

fn unlink_takes_a_used_up_descriptor_away(kind: RigKind) {
    let rig = kind.rig();
    let node = rig.target();
    let me = entry(node);
    let side = behind(node, me, 64, Unlink::Unlink, |md| md.threshold = 1);
    let (from, _) = source_of(&rig, 1, 8);
    put(&rig, from, to(&rig), 1);
    assert!(kinds(&rig, node, side.eq).contains(&PtlEventKind::Unlink));
    assert_eq!(node.md_unlink(side.md), Err(PtlError::MdInvalid));
}

fn unlink_posts_one_event_after_the_last_end(kind: RigKind) {
    let rig = kind.rig();
    let node = rig.target();
    let me = entry(node);
    let side = behind(node, me, 64, Unlink::Unlink, |md| md.threshold = 2);
    let (from, _) = source_of(&rig, 1, 8);
    for hdr in 1..=3 {
        put(&rig, from, to(&rig), hdr);
    }
    let seen = rig.events(node, side.eq);
    use PtlEventKind::{PutEnd, PutStart};
    assert_eq!(
        seen.iter().map(|e| e.kind).collect::<Vec<_>>(),
        [PutStart, PutEnd, PutStart, PutEnd, PtlEventKind::Unlink]
    );
    let (last, unlinked) = (&seen[3], &seen[4]);
    assert_eq!(unlinked.md_handle, side.md);
    assert_eq!(unlinked.md.user_ptr, last.md.user_ptr);
}

fn the_unlink_event_tells_of_the_last_operation(kind: RigKind) {
    let rig = kind.rig();
    let node = rig.target();
    let side = behind(node, entry(node), 64, Unlink::Unlink, |md| md.threshold = 2);
    let (from, _) = source_of(&rig, 1, 8);
    for hdr in [7, 9] {
        put(&rig, from, to(&rig), hdr);
    }
    let seen = rig.events(node, side.eq);
    let [.., last, unlinked] = seen.as_slice() else { panic!("{seen:?}") };
    assert_eq!((unlinked.kind, unlinked.link), (PtlEventKind::Unlink, last.sequence));
    assert_eq!((unlinked.hdr_data, unlinked.match_bits), (9, last.match_bits));
    assert_eq!((unlinked.initiator, unlinked.pt_index), (last.initiator, last.pt_index));
    assert_eq!((unlinked.rlength, unlinked.mlength, unlinked.offset), (8, 8, last.offset));
}

fn without_start_and_end_there_is_no_unlink_event(kind: RigKind) {
    let rig = kind.rig();
    let node = rig.target();
    let side = behind(node, entry(node), 64, Unlink::Unlink, |md| {
        md.threshold = 1;
        md.options |= EVENT_START_DISABLE | EVENT_END_DISABLE;
    });
    let (from, _) = source_of(&rig, 1, 8);
    put(&rig, from, to(&rig), 1);
    rig.silent(node, side.eq);
    assert_eq!(node.md_unlink(side.md), Err(PtlError::MdInvalid), "it is not valid any more");
}

fn a_retained_descriptor_stays_when_it_is_used_up(kind: RigKind) {
    let rig = kind.rig();
    let node = rig.target();
    let me = entry(node);
    let side = behind(node, me, 64, Unlink::Retain, |md| md.threshold = 1);
    let (from, _) = source_of(&rig, 1, 8);
    put(&rig, from, to(&rig), 1);
    assert_eq!(kinds(&rig, node, side.eq), [PtlEventKind::PutStart, PtlEventKind::PutEnd]);
    let another = node.md_attach(me, md(side.buffer, BOTH, side.eq), Unlink::Retain);
    assert_eq!(another, Err(PtlError::MeInUse));
    assert_eq!(node.md_unlink(side.md), Ok(()));
}

fn unlink_by_hand_posts_no_event(kind: RigKind) {
    let rig = kind.rig();
    for unlink in [Unlink::Retain, Unlink::Unlink] {
        let me = entry(rig.target());
        let side = behind(rig.target(), me, 64, unlink, |_| ());
        assert_eq!(rig.target().md_unlink(side.md), Ok(()));
        rig.silent(rig.target(), side.eq);
    }
}

fn an_unlinked_descriptor_takes_nothing(kind: RigKind) {
    let rig = kind.rig();
    let first = target(&rig, 64, BOTH | MANAGE_REMOTE);
    let second = target(&rig, 64, BOTH | MANAGE_REMOTE);
    let (from, bytes) = source_of(&rig, 1, 64);
    put(&rig, from, to(&rig), 1);
    rig.target().md_unlink(first.md).expect("PtlMDUnlink");
    let (from, other) = source_of(&rig, 2, 64);
    put(&rig, from, to(&rig), 2);
    assert_eq!(rig.target().read(first.buffer), bytes);
    assert_eq!(rig.target().read(second.buffer), other);
    assert_eq!(arrived(&rig, second.eq), [2]);
}

fn an_entry_with_unlink_goes_with_its_descriptor(kind: RigKind) {
    let rig = kind.rig();
    let node = rig.target();
    let attach = || {
        node.me_attach(PT, PtlProcessId::ANY, 0, !0, Unlink::Unlink, InsPos::After)
            .expect("PtlMEAttach")
    };
    // By the user.
    let me = attach();
    let side = behind(node, me, 64, Unlink::Retain, |_| ());
    node.md_unlink(side.md).expect("PtlMDUnlink");
    assert_eq!(node.me_unlink(me), Err(PtlError::MeInvalid));
    // Automatically.
    let me = attach();
    let side = behind(node, me, 64, Unlink::Unlink, |md| md.threshold = 1);
    let (from, _) = source_of(&rig, 1, 8);
    put(&rig, from, to(&rig), 1);
    assert!(kinds(&rig, node, side.eq).contains(&PtlEventKind::Unlink));
    assert_eq!(node.me_unlink(me), Err(PtlError::MeInvalid));
}

fn a_retained_entry_stays_and_takes_another_descriptor(kind: RigKind) {
    let rig = kind.rig();
    let node = rig.target();
    let me = entry(node);
    let (from, _) = source_of(&rig, 1, 8);
    // Automatically, then by the user.
    let side = behind(node, me, 64, Unlink::Unlink, |md| md.threshold = 1);
    put(&rig, from, to(&rig), 1);
    assert!(kinds(&rig, node, side.eq).contains(&PtlEventKind::Unlink));
    let side = behind(node, me, 64, Unlink::Retain, |_| ());
    put(&rig, from, to(&rig), 2);
    assert_eq!(arrived(&rig, side.eq), [2]);
    node.md_unlink(side.md).expect("PtlMDUnlink");
    let side = behind(node, me, 64, Unlink::Retain, |_| ());
    put(&rig, from, to(&rig), 3);
    assert_eq!(arrived(&rig, side.eq), [3]);
}

fn a_descriptor_goes_with_its_entry(kind: RigKind) {
    let rig = kind.rig();
    let node = rig.target();
    for unlink in [Unlink::Unlink, Unlink::Retain] {
        let me = entry(node);
        let side = behind(node, me, 64, unlink, |_| ());
        assert_eq!(node.me_unlink(me), Ok(()));
        assert_eq!(node.md_unlink(side.md), Err(PtlError::MdInvalid));
    }
}

fn an_unlinked_entry_matches_nothing(kind: RigKind) {
    let rig = kind.rig();
    let node = rig.target();
    let entries: Vec<_> = (0..3).map(|_| entry(node)).collect();
    let sides: Vec<_> = entries
        .iter()
        .map(|me| behind(node, *me, 512, Unlink::Unlink, |md| md.options |= MANAGE_REMOTE))
        .collect();
    let (from, _) = source_of(&rig, 1, 8);
    // The middle, the head, the only one.
    for (hdr, (gone, next)) in [(1, Some(0)), (0, Some(2)), (2, None)].into_iter().enumerate() {
        assert_eq!(node.me_unlink(entries[gone]), Ok(()));
        let before = node.dropped();
        put(&rig, from, to(&rig), hdr as u64);
        match next {
            Some(next) => assert_eq!(arrived(&rig, sides[next].eq), [hdr as u64]),
            None => assert_eq!(node.dropped(), before + 1),
        }
    }
}

fn a_source_with_unlink_goes_after_its_last_operation(kind: RigKind) {
    let rig = kind.rig();
    let node = rig.initiator();
    let side = target(&rig, 64, BOTH);
    let eq = node.eq_alloc(ROOM).expect("PtlEQAlloc");
    let bind = |threshold| {
        let wanted =
            portals3::MemoryDescriptor { threshold, ..md(node.filled(&pattern(1, 8)), 0, eq) };
        node.md_bind(wanted, Unlink::Unlink).expect("PtlMDBind")
    };
    let from = bind(1);
    node.put(from, AckReq::NoAck, to(&rig), 1).expect("PtlPut");
    assert_eq!(
        kinds(&rig, node, eq),
        [PtlEventKind::SendStart, PtlEventKind::SendEnd, PtlEventKind::Unlink]
    );
    assert_eq!(node.md_unlink(from), Err(PtlError::MdInvalid));
    let from = bind(2);
    node.put(from, AckReq::Ack, to(&rig), 2).expect("PtlPut");
    let seen = kinds(&rig, node, eq);
    assert_eq!(seen.last(), Some(&PtlEventKind::Unlink), "{seen:?}");
    assert!(
        seen.contains(&PtlEventKind::Ack) && seen.contains(&PtlEventKind::SendEnd),
        "{seen:?}"
    );
    let into = bind(1);
    node.get(into, to(&rig)).expect("PtlGet");
    assert_eq!(
        kinds(&rig, node, eq),
        [PtlEventKind::ReplyStart, PtlEventKind::ReplyEnd, PtlEventKind::Unlink]
    );
    assert_eq!(arrived(&rig, side.eq), [1, 2]);
}

fn unlink_waits_for_pending_operations(kind: RigKind) {
    // Several messages in flight into one descriptor: UNLINK is posted once and last, however
    // their bytes arrive.
    for seed in 1..=20 {
        let rig = kind.rig_seeded(seed);
        let node = rig.target();
        let me = entry(node);
        let side = behind(node, me, 64 << 10, Unlink::Unlink, |md| {
            md.threshold = 4;
            md.options |= EVENT_START_DISABLE;
        });
        let (from, _) = source_of(&rig, 1, 3000);
        for hdr in 1..=4 {
            rig.initiator().put(from.md, AckReq::NoAck, to(&rig), hdr).expect("PtlPut");
        }
        let seen = rig.events(node, side.eq);
        let kinds: Vec<_> = seen.iter().map(|e| e.kind).collect();
        use PtlEventKind::PutEnd;
        assert_eq!(kinds, [PutEnd, PutEnd, PutEnd, PutEnd, PtlEventKind::Unlink], "seed {seed}");
        if !kind.has_processes() && !kind.has_wire() && kind != RigKind::Framed {
            break;
        }
    }
}

fn unlinking_by_hand_fails_while_operations_are_pending(kind: RigKind) {
    let rig = kind.rig();
    let node = rig.initiator();
    let len = 200_000;
    let side = target_with(&rig, len, |md| md.options |= MANAGE_REMOTE);
    let bytes = pattern(1, len);
    let from = source(&rig, &bytes);
    node.put(from.md, AckReq::Ack, to(&rig), 1).expect("PtlPut");
    // Until its last byte has left, the source is in use. A network that is done by now releases
    // it.
    let result = node.md_unlink(from.md);
    assert!(matches!(result, Ok(()) | Err(PtlError::MdInUse)), "{result:?}");
    rig.settle();
    if result.is_err() {
        assert!(kind.needs_target());
        assert_eq!(node.md_unlink(from.md), Ok(()));
    }
    assert_eq!(node.md_unlink(from.md), Err(PtlError::MdInvalid));
    assert_eq!(arrived(&rig, side.eq), [1]);
    assert!(rig.target().read(side.buffer) == bytes);
}

fn handles_of_what_is_gone_are_invalid(kind: RigKind) {
    let rig = kind.rig();
    let node = rig.initiator();
    let me = entry(node);
    let wanted = md(node.memory(8), BOTH, EqHandle::NONE);
    let attached = node.md_attach(me, wanted, Unlink::Retain).expect("PtlMDAttach");
    let bound = node.md_bind(wanted, Unlink::Retain).expect("PtlMDBind");
    for handle in [attached, bound] {
        assert_eq!(node.md_unlink(handle), Ok(()));
        assert_eq!(node.md_unlink(handle), Err(PtlError::MdInvalid));
        assert_eq!(node.put(handle, AckReq::NoAck, to(&rig), 0), Err(PtlError::MdInvalid));
        assert_eq!(node.get(handle, to(&rig)), Err(PtlError::MdInvalid));
        assert_eq!(node.md_update(handle, None, None, EqHandle::NONE), Err(PtlError::MdInvalid));
    }
    assert_eq!(node.me_unlink(me), Ok(()));
    assert_eq!(node.me_unlink(me), Err(PtlError::MeInvalid));
    assert_eq!(node.md_attach(me, wanted, Unlink::Retain), Err(PtlError::MeInvalid));
    let insert = node.me_insert(me, PtlProcessId::ANY, 0, 0, Unlink::Retain, InsPos::After);
    assert_eq!(insert, Err(PtlError::MeInvalid));
}
