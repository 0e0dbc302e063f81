//! Offset and length of a message in a descriptor: offsets, truncation, `PTL_MD_MAX_SIZE`.

use portals3::md_options::{ACK_DISABLE, MANAGE_REMOTE, MAX_SIZE, OP_GET, OP_PUT, TRUNCATE};
use portals3::{AckReq, EqHandle, PtlEventKind, Unlink};

use crate::common::*;
use crate::rig::{RigKind, pattern};

instantiate! {
    a_remotely_managed_offset_is_the_initiators
    a_locally_managed_offset_advances_by_what_was_accepted
    a_locally_managed_descriptor_ignores_the_initiators_offset
    without_truncate_all_of_a_message_must_fit
    without_truncate_a_message_may_fill_the_descriptor_exactly
    with_truncate_the_rest_is_accepted
    with_truncate_and_no_room_zero_bytes_are_accepted
    with_truncate_an_offset_beyond_the_end_does_not_fit
    a_huge_offset_does_not_wrap_around
    a_get_follows_the_same_rules
    a_get_is_truncated_like_a_put
    an_empty_message_is_accepted
    a_zero_length_catch_basin_takes_what_nobody_else_took
    a_region_is_a_part_of_the_source
    a_get_region_fills_a_part_of_the_source
    large_messages_arrive_whole
    odd_lengths_and_offsets_arrive_whole
    max_size_makes_a_nearly_full_descriptor_inactive
    max_size_leaves_a_descriptor_active_while_enough_is_left
    max_size_unlinks_a_nearly_full_descriptor
    max_size_does_not_limit_a_message
    max_size_means_nothing_where_the_offset_is_the_initiators
}

fn a_remotely_managed_offset_is_the_initiators(kind: RigKind) {
    let rig = kind.rig();
    let side = target(&rig, 64, BOTH | MANAGE_REMOTE);
    let (from, bytes) = source_of(&rig, 1, 8);
    for offset in [56, 0, 13] {
        put(&rig, from, to_offset(&rig, offset), 0);
        let at = offset as usize;
        assert_eq!(rig.target().read(side.buffer)[at..at + 8], bytes[..]);
        let events = of_kind(&rig, rig.target(), side.eq, PtlEventKind::PutEnd);
        assert_eq!(events.iter().map(|e| e.offset).collect::<Vec<_>>(), [offset]);
    }
}

fn a_locally_managed_offset_advances_by_what_was_accepted(kind: RigKind) {
    let rig = kind.rig();
    let side = target(&rig, 64, OP_PUT);
    let mut due = Vec::new();
    for (seed, len) in [(1, 8), (2, 0), (3, 19), (4, 37)] {
        let (from, bytes) = source_of(&rig, seed, len);
        put(&rig, from, to(&rig), 0);
        let events = of_kind(&rig, rig.target(), side.eq, PtlEventKind::PutEnd);
        assert_eq!(
            events.iter().map(|e| (e.offset, e.mlength)).collect::<Vec<_>>(),
            [(due.len() as u64, len as u64)]
        );
        due.extend(bytes);
    }
    assert_eq!(rig.target().read(side.buffer), due);
}

fn a_locally_managed_descriptor_ignores_the_initiators_offset(kind: RigKind) {
    let rig = kind.rig();
    let side = target(&rig, 64, OP_PUT);
    let (from, bytes) = source_of(&rig, 1, 32);
    put(&rig, from, to_offset(&rig, 40), 0);
    put(&rig, from, to_offset(&rig, 1 << 40), 0);
    assert_eq!(rig.target().read(side.buffer), [bytes.clone(), bytes].concat());
}

fn without_truncate_all_of_a_message_must_fit(kind: RigKind) {
    let rig = kind.rig();
    let side = target(&rig, 64, OP_PUT | MANAGE_REMOTE);
    let (from, _) = source_of(&rig, 1, 32);
    let before = rig.target().dropped();
    for offset in [33, 63, 64, 65] {
        put(&rig, from, to_offset(&rig, offset), 0);
    }
    assert_eq!(rig.target().dropped(), before + 4);
    assert_eq!(rig.target().read(side.buffer), [0; 64]);
    rig.silent(rig.target(), side.eq);
}

fn without_truncate_a_message_may_fill_the_descriptor_exactly(kind: RigKind) {
    let rig = kind.rig();
    let side = target(&rig, 64, OP_PUT | MANAGE_REMOTE);
    let (from, bytes) = source_of(&rig, 1, 32);
    put(&rig, from, to_offset(&rig, 32), 9);
    assert_eq!(arrived(&rig, side.eq), [9]);
    assert_eq!(rig.target().read(side.buffer)[32..], bytes[..]);
}

fn with_truncate_the_rest_is_accepted(kind: RigKind) {
    for options in [OP_PUT | TRUNCATE | MANAGE_REMOTE, OP_PUT | TRUNCATE] {
        let rig = kind.rig();
        let node = rig.target();
        let me = entry(node);
        let room = node.memory(96);
        let eq = node.eq_alloc(ROOM).expect("PtlEQAlloc");
        node.md_attach(me, crate::rig::md(room.part(0, 64), options, eq), Unlink::Retain)
            .expect("PtlMDAttach");
        let (lead, _) = source_of(&rig, 1, 40);
        let (from, bytes) = source_of(&rig, 2, 32);
        put(&rig, lead, to(&rig), 0);
        put(&rig, from, to_offset(&rig, 40), 0);
        let events = of_kind(&rig, node, eq, PtlEventKind::PutEnd);
        let seen: Vec<_> = events.iter().map(|e| (e.offset, e.rlength, e.mlength)).collect();
        assert_eq!(seen, [(0, 40, 40), (40, 32, 24)]);
        assert_eq!(node.read(room)[40..64], bytes[..24]);
        assert_eq!(node.read(room)[64..], [0; 32], "nothing beyond the descriptor is written");
    }
}

fn with_truncate_and_no_room_zero_bytes_are_accepted(kind: RigKind) {
    let rig = kind.rig();
    let side = target(&rig, 64, OP_PUT | TRUNCATE | MANAGE_REMOTE);
    let (from, _) = source_of(&rig, 1, 32);
    put(&rig, from, to_offset(&rig, 64), 0);
    let events = of_kind(&rig, rig.target(), side.eq, PtlEventKind::PutEnd);
    assert_eq!(events.iter().map(|e| (e.rlength, e.mlength)).collect::<Vec<_>>(), [(32, 0)]);
}

fn with_truncate_an_offset_beyond_the_end_does_not_fit(kind: RigKind) {
    let rig = kind.rig();
    let side = target(&rig, 64, OP_PUT | TRUNCATE | MANAGE_REMOTE);
    let (from, _) = source_of(&rig, 1, 32);
    let before = rig.target().dropped();
    put(&rig, from, to_offset(&rig, 65), 0);
    assert_eq!(rig.target().dropped(), before + 1);
    rig.silent(rig.target(), side.eq);
}

fn a_huge_offset_does_not_wrap_around(kind: RigKind) {
    for options in [BOTH | MANAGE_REMOTE, BOTH | MANAGE_REMOTE | TRUNCATE] {
        let rig = kind.rig();
        let side = target(&rig, 64, options);
        let (from, _) = source_of(&rig, 1, 32);
        let before = rig.target().dropped();
        for offset in
            [u64::MAX, u64::MAX - 31, u64::MAX - 32, 1 << 63, 1 << 48, (1 << 48) + 8, 1 << 32]
        {
            put(&rig, from, to_offset(&rig, offset), 0);
            get(&rig, from, to_offset(&rig, offset));
        }
        assert_eq!(rig.target().dropped(), before + 14);
        rig.silent(rig.target(), side.eq);
        assert_eq!(rig.target().read(side.buffer), [0; 64]);
    }
}

fn a_get_follows_the_same_rules(kind: RigKind) {
    let rig = kind.rig();
    let side = target(&rig, 64, OP_GET);
    let bytes = pattern(5, 64);
    rig.target().write(side.buffer, &bytes);
    let (into, _) = source_of(&rig, 1, 20);
    // Locally managed: 0, 20, 40; 60 has no room for 20.
    for at in [0, 20, 40] {
        get(&rig, into, to_offset(&rig, 7));
        assert_eq!(rig.initiator().read(into.buffer), bytes[at..at + 20]);
    }
    let before = rig.target().dropped();
    get(&rig, into, to(&rig));
    assert_eq!(rig.target().dropped(), before + 1);
}

fn a_get_is_truncated_like_a_put(kind: RigKind) {
    let rig = kind.rig();
    let side = target(&rig, 64, OP_GET | TRUNCATE | MANAGE_REMOTE);
    let bytes = pattern(5, 64);
    rig.target().write(side.buffer, &bytes);
    let into = source(&rig, &[0xee; 32]);
    get(&rig, into, to_offset(&rig, 50));
    let mut due = bytes[50..].to_vec();
    due.resize(32, 0xee);
    assert_eq!(rig.initiator().read(into.buffer), due);
    let reply = of_kind(&rig, rig.initiator(), into.eq, PtlEventKind::ReplyEnd);
    assert_eq!(reply.iter().map(|e| e.mlength).collect::<Vec<_>>(), [14]);
}

fn an_empty_message_is_accepted(kind: RigKind) {
    let rig = kind.rig();
    let side = target(&rig, 64, BOTH | MANAGE_REMOTE);
    let from = source(&rig, &[]);
    rig.initiator().put(from.md, AckReq::Ack, to_offset(&rig, 64), 77).expect("PtlPut");
    rig.settle();
    assert_eq!(arrived(&rig, side.eq), [77]);
    let ours = kinds(&rig, rig.initiator(), from.eq);
    assert!(
        ours.contains(&PtlEventKind::Ack) && ours.contains(&PtlEventKind::SendEnd),
        "{ours:?}"
    );
    get(&rig, from, to_offset(&rig, 3));
    assert_eq!(of_kind(&rig, rig.initiator(), from.eq, PtlEventKind::ReplyEnd).len(), 1);
}

fn a_zero_length_catch_basin_takes_what_nobody_else_took(kind: RigKind) {
    let rig = kind.rig();
    let node = rig.target();
    let main = target(&rig, 48, OP_PUT);
    let me = entry(node);
    let basin =
        behind(node, me, 0, Unlink::Retain, |md| md.options = OP_PUT | TRUNCATE | ACK_DISABLE);
    let (from, _) = source_of(&rig, 1, 32);
    let before = node.dropped();
    put(&rig, from, to(&rig), 1);
    put(&rig, from, to(&rig), 2);
    assert_eq!(arrived(&rig, main.eq), [1]);
    let events = of_kind(&rig, node, basin.eq, PtlEventKind::PutEnd);
    assert_eq!(
        events.iter().map(|e| (e.hdr_data, e.rlength, e.mlength)).collect::<Vec<_>>(),
        [(2, 32, 0)]
    );
    assert_eq!(node.dropped(), before);
}

fn a_region_is_a_part_of_the_source(kind: RigKind) {
    let rig = kind.rig();
    let side = target(&rig, 64, OP_PUT);
    let (from, bytes) = source_of(&rig, 1, 64);
    for (offset, length) in [(5, 11), (0, 3), (60, 4), (64, 0)] {
        rig.initiator()
            .put_region(from.md, offset, length, AckReq::NoAck, to(&rig), 0)
            .expect("PtlPutRegion");
        rig.settle();
    }
    let due = [&bytes[5..16], &bytes[0..3], &bytes[60..64]].concat();
    assert_eq!(rig.target().read(side.buffer)[..due.len()], due[..]);
}

fn a_get_region_fills_a_part_of_the_source(kind: RigKind) {
    let rig = kind.rig();
    let side = target(&rig, 64, OP_GET | MANAGE_REMOTE);
    let bytes = pattern(5, 64);
    rig.target().write(side.buffer, &bytes);
    let into = source(&rig, &[0xee; 64]);
    rig.initiator().get_region(into.md, 10, 20, to_offset(&rig, 30)).expect("PtlGetRegion");
    let reply = of_kind(&rig, rig.initiator(), into.eq, PtlEventKind::ReplyEnd);
    assert_eq!(reply.iter().map(|e| (e.offset, e.mlength)).collect::<Vec<_>>(), [(10, 20)]);
    let mut due = vec![0xee; 64];
    due[10..30].copy_from_slice(&bytes[30..50]);
    assert_eq!(rig.initiator().read(into.buffer), due);
}

fn large_messages_arrive_whole(kind: RigKind) {
    let rig = kind.rig();
    let len = 300_007;
    let side = target(&rig, len, BOTH | MANAGE_REMOTE);
    let (from, bytes) = source_of(&rig, 1, len);
    put(&rig, from, to(&rig), 0);
    assert!(rig.target().read(side.buffer) == bytes, "the put differs");
    let into = source(&rig, &vec![0; len]);
    get(&rig, into, to(&rig));
    assert!(rig.initiator().read(into.buffer) == bytes, "the get differs");
}

fn odd_lengths_and_offsets_arrive_whole(kind: RigKind) {
    let rig = kind.rig();
    let node = rig.target();
    let me = entry(node);
    let buffer = node.memory(8192);
    node.md_attach(
        me,
        crate::rig::md(buffer, BOTH | MANAGE_REMOTE, EqHandle::NONE),
        Unlink::Retain,
    )
    .expect("PtlMDAttach");
    let bytes = pattern(8, 4200);
    let from = source_with(&rig, &bytes, |md| md.eq = EqHandle::NONE);
    let mut due = vec![0; 8192];
    for length in
        [1_u64, 2, 3, 7, 8, 9, 15, 17, 31, 33, 63, 64, 65, 127, 511, 513, 1023, 4095, 4097]
    {
        for (local, remote) in [(0, 0), (1, 0), (0, 1), (3, 5), (7, 4000)] {
            let to = to_offset(&rig, remote);
            rig.initiator()
                .put_region(from.md, local, length, AckReq::NoAck, to, 0)
                .expect("PtlPutRegion");
            // Overlapping messages must not be in flight together.
            rig.settle();
            let (local, remote, length) = (local as usize, remote as usize, length as usize);
            due[remote..remote + length].copy_from_slice(&bytes[local..local + length]);
        }
        assert!(node.read(buffer) == due, "after the puts of {length} bytes");
    }
}

fn max_size_makes_a_nearly_full_descriptor_inactive(kind: RigKind) {
    let rig = kind.rig();
    let side = target_with(&rig, 256, |md| (md.options, md.max_size) = (OP_PUT | MAX_SIZE, 128));
    let (from, _) = source_of(&rig, 1, 100);
    for hdr in 1..=4 {
        put(&rig, from, to(&rig), hdr);
    }
    assert_eq!(
        arrived(&rig, side.eq),
        [1, 2],
        "after two there are 56 bytes left, fewer than 128"
    );
}

fn max_size_leaves_a_descriptor_active_while_enough_is_left(kind: RigKind) {
    let rig = kind.rig();
    let side = target_with(&rig, 300, |md| (md.options, md.max_size) = (OP_PUT | MAX_SIZE, 100));
    let (from, _) = source_of(&rig, 1, 100);
    for hdr in 1..=4 {
        put(&rig, from, to(&rig), hdr);
    }
    assert_eq!(arrived(&rig, side.eq), [1, 2, 3], "after two there are exactly 100 bytes left");
}

fn max_size_unlinks_a_nearly_full_descriptor(kind: RigKind) {
    let rig = kind.rig();
    let node = rig.target();
    let me = entry(node);
    let side = behind(node, me, 256, Unlink::Unlink, |md| {
        (md.options, md.max_size) = (OP_PUT | MAX_SIZE, 128);
    });
    let (from, _) = source_of(&rig, 1, 100);
    let before = node.dropped();
    for hdr in 1..=4 {
        put(&rig, from, to(&rig), hdr);
    }
    use PtlEventKind::{PutEnd, PutStart};
    assert_eq!(
        kinds(&rig, node, side.eq),
        [PutStart, PutEnd, PutStart, PutEnd, PtlEventKind::Unlink]
    );
    assert_eq!(node.dropped(), before + 2);
}

fn max_size_does_not_limit_a_message(kind: RigKind) {
    let rig = kind.rig();
    let side = target_with(&rig, 256, |md| (md.options, md.max_size) = (OP_PUT | MAX_SIZE, 16));
    let (from, bytes) = source_of(&rig, 1, 200);
    put(&rig, from, to(&rig), 1);
    let (from, more) = source_of(&rig, 2, 56);
    put(&rig, from, to(&rig), 2);
    assert_eq!(arrived(&rig, side.eq), [1, 2]);
    assert_eq!(rig.target().read(side.buffer), [bytes, more].concat());
}

fn max_size_means_nothing_where_the_offset_is_the_initiators(kind: RigKind) {
    let rig = kind.rig();
    let remote = OP_PUT | MAX_SIZE | MANAGE_REMOTE;
    let side = target_with(&rig, 64, |md| (md.options, md.max_size) = (remote, 64));
    let (from, _) = source_of(&rig, 1, 8);
    for hdr in 1..=3 {
        put(&rig, from, to_offset(&rig, 56), hdr);
    }
    assert_eq!(arrived(&rig, side.eq), [1, 2, 3]);
}
