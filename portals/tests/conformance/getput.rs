//! `PtlGetPut`: "an atomic swap at the target, of at most `max_getput_md` bytes".

use portals3::md_options::{ACK_DISABLE, MANAGE_REMOTE, OP_GET, OP_PUT, TRUNCATE};
use portals3::{PtlError, PtlEventKind, Unlink};

use crate::common::*;
use crate::rig::agent::{AgentAnswer, AgentCall, Swap};
use crate::rig::{Rig, RigKind, RigNode, md, pattern};

instantiate! {
    it_swaps_the_bytes
    the_target_gets_a_getput_pair_and_the_initiator_send_and_reply
    its_events_tell_all_about_it
    it_needs_a_descriptor_that_allows_puts_and_gets
    it_is_truncated_like_a_put
    its_length_is_limited
    a_dropped_swap_changes_nothing_and_brings_no_reply
    swaps_are_atomic
}

fn it_swaps_the_bytes(kind: RigKind) {
    let rig = kind.rig();
    let side = target(&rig, 128, BOTH | MANAGE_REMOTE);
    let limit = rig.target().limits().max_getput_md as usize;
    for (len, offset) in [(8, 0), (1, 3), (4, 60), (7, 1), (limit, 20), (0, 0)] {
        let before = pattern(len as u64 + 100, 128);
        rig.target().write(side.buffer, &before);
        let (from, bytes) = source_of(&rig, len as u64, len);
        let into = source(&rig, &vec![0xee; len]);
        rig.initiator().get_put(into.md, from.md, to_offset(&rig, offset), 0).expect("PtlGetPut");
        rig.settle();
        let mut due = before.clone();
        let at = offset as usize;
        due[at..at + len].copy_from_slice(&bytes);
        assert_eq!(rig.target().read(side.buffer), due);
        assert_eq!(rig.initiator().read(into.buffer), before[at..at + len]);
        assert_eq!(rig.initiator().read(from.buffer), bytes);
    }
}

fn the_target_gets_a_getput_pair_and_the_initiator_send_and_reply(kind: RigKind) {
    let rig = kind.rig();
    let side = target(&rig, 64, BOTH);
    let (from, _) = source_of(&rig, 1, 8);
    let (into, _) = source_of(&rig, 2, 8);
    rig.initiator().get_put(into.md, from.md, to(&rig), 0).expect("PtlGetPut");
    rig.settle();
    use PtlEventKind::{GetPutEnd, GetPutStart, ReplyEnd, ReplyStart, SendEnd, SendStart};
    assert_eq!(kinds(&rig, rig.target(), side.eq), [GetPutStart, GetPutEnd]);
    assert_eq!(kinds(&rig, rig.initiator(), from.eq), [SendStart, SendEnd]);
    assert_eq!(kinds(&rig, rig.initiator(), into.eq), [ReplyStart, ReplyEnd]);
}

fn its_events_tell_all_about_it(kind: RigKind) {
    let rig = kind.rig();
    let side = target(&rig, 64, BOTH | MANAGE_REMOTE);
    let (from, _) = source_of(&rig, 1, 16);
    let (into, _) = source_of(&rig, 2, 16);
    rig.initiator().get_put(into.md, from.md, to_offset(&rig, 9), 0xabcd).expect("PtlGetPut");
    for event in rig.events(rig.target(), side.eq) {
        assert_eq!(event.initiator, rig.initiator().id());
        assert_eq!((event.match_bits, event.pt_index, event.hdr_data), (BITS, PT, 0xabcd));
        assert_eq!((event.rlength, event.mlength, event.offset), (16, 16, 9));
        assert_eq!(event.md_handle, side.md);
    }
    for event in rig.events(rig.initiator(), into.eq) {
        assert_eq!(event.initiator, rig.target().id());
        assert_eq!((event.match_bits, event.mlength, event.offset), (BITS, 16, 0));
        assert_eq!(event.md_handle, into.md);
    }
}

fn it_needs_a_descriptor_that_allows_puts_and_gets(kind: RigKind) {
    let rig = kind.rig();
    let puts = target(&rig, 64, OP_PUT);
    let gets = target(&rig, 64, OP_GET);
    let both = target(&rig, 64, BOTH | ACK_DISABLE);
    let (from, _) = source_of(&rig, 1, 8);
    let (into, _) = source_of(&rig, 2, 8);
    rig.initiator().get_put(into.md, from.md, to(&rig), 5).expect("PtlGetPut");
    assert_eq!(of_kind(&rig, rig.target(), both.eq, PtlEventKind::GetPutEnd).len(), 1);
    rig.silent(rig.target(), puts.eq);
    rig.silent(rig.target(), gets.eq);
}

fn it_is_truncated_like_a_put(kind: RigKind) {
    let rig = kind.rig();
    let side = target(&rig, 64, BOTH | MANAGE_REMOTE | TRUNCATE);
    let before = pattern(3, 64);
    rig.target().write(side.buffer, &before);
    let (from, bytes) = source_of(&rig, 1, 16);
    let into = source(&rig, &[0xee; 16]);
    rig.initiator().get_put(into.md, from.md, to_offset(&rig, 54), 0).expect("PtlGetPut");
    rig.settle();
    assert_eq!(rig.target().read(side.buffer), [&before[..54], &bytes[..10]].concat());
    assert_eq!(rig.initiator().read(into.buffer), [&before[54..], &[0xee; 6]].concat());
    let replies = of_kind(&rig, rig.initiator(), into.eq, PtlEventKind::ReplyEnd);
    assert_eq!(replies.iter().map(|e| e.mlength).collect::<Vec<_>>(), [10]);
}

fn its_length_is_limited(kind: RigKind) {
    let rig = kind.rig();
    let limit = rig.initiator().limits().max_getput_md as usize;
    let side = target(&rig, limit * 2, BOTH | MANAGE_REMOTE);
    let (from, _) = source_of(&rig, 1, limit + 1);
    let (into, _) = source_of(&rig, 2, limit + 1);
    let result = rig.initiator().get_put(into.md, from.md, to(&rig), 0);
    assert!(
        matches!(result, Err(PtlError::MdIllegal | PtlError::MdInvalid | PtlError::NoSpace)),
        "{result:?}"
    );
    rig.silent(rig.target(), side.eq);
    assert_eq!(rig.target().read(side.buffer), vec![0; limit * 2]);
}

fn a_dropped_swap_changes_nothing_and_brings_no_reply(kind: RigKind) {
    let rig = kind.rig();
    let side = target(&rig, 64, OP_PUT);
    let (from, _) = source_of(&rig, 1, 8);
    let into = source(&rig, &[0xee; 8]);
    let before = rig.target().dropped();
    rig.initiator().get_put(into.md, from.md, to(&rig), 0).expect("PtlGetPut");
    rig.silent(rig.initiator(), into.eq);
    assert_eq!(rig.target().dropped(), before + 1);
    assert_eq!(rig.target().read(side.buffer), [0; 64]);
    assert_eq!(rig.initiator().read(into.buffer), [0xee; 8]);
}

fn swapper(rig: &Rig, node: &RigNode) -> Swap {
    let eq = node.eq_alloc(ROOM).expect("PtlEQAlloc");
    let (into, from) = (node.memory(8), node.memory(8));
    Swap {
        get: node.md_bind(md(into, 0, eq), Unlink::Retain).expect("PtlMDBind"),
        get_address: into.address,
        put: node
            .md_bind(md(from, 0, portals3::EqHandle::NONE), Unlink::Retain)
            .expect("PtlMDBind"),
        put_address: from.address,
        eq,
        to: to(rig),
    }
}

fn swaps_are_atomic(kind: RigKind) {
    // Every value that was ever put in comes out once: in a reply, or as what is left in the
    // end.
    let rig = kind.build(3, None, 1);
    let count = if kind.needs_target() { 200 } else { 20_000 };
    let side = target_with(&rig, 8, |md| {
        md.options |= MANAGE_REMOTE;
        md.eq = portals3::EqHandle::NONE;
    });
    let swappers = [rig.initiator(), rig.nodes().last().expect("a node")];
    let first = |number: usize| (number as u64 + 1) * 1_000_000;
    let mut running = Vec::new();
    for (number, node) in swappers.into_iter().enumerate() {
        let swap = swapper(&rig, node);
        running.push(node.begin(AgentCall::SwapMany { swap, first: first(number), count }));
    }
    rig.help(&running);
    let (mut put_in, mut came_out) = (0_u64, 0_u64);
    for (number, call) in running.into_iter().enumerate() {
        let answer = call.finish().expect("PtlGetPut");
        let AgentAnswer::Number(sum) = answer else { panic!("{answer:?}") };
        came_out = came_out.wrapping_add(sum);
        put_in = (first(number)..first(number) + count).fold(put_in, u64::wrapping_add);
    }
    let left = rig.target().read(side.buffer);
    let left = u64::from_ne_bytes(left.try_into().expect("8 bytes"));
    assert_eq!(put_in, came_out.wrapping_add(left));
}
