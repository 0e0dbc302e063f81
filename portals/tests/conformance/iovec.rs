//! Scattered descriptors: "`length` counts the entries of a vector, offsets count the bytes of
//! all its pieces".

use portals3::md_options::{IOVEC, MANAGE_REMOTE, OP_GET, OP_PUT, TRUNCATE};
use portals3::{AckReq, EqHandle, MemoryDescriptor, PtlError, Unlink};

use crate::common::*;
use crate::rig::{NodeBuffer, RigKind, RigNode, md, pattern};

instantiate! {
    a_put_is_scattered
    a_get_is_gathered
    a_source_is_gathered
    a_reply_is_scattered
    a_region_of_a_vector_counts_bytes
    a_locally_managed_vector_fills_piece_after_piece
    a_vector_may_have_empty_pieces
    truncation_cuts_at_the_end_of_the_last_piece
    the_vector_is_copied
    long_vectors_are_refused
    large_messages_cross_pieces
}

const PIECES: [usize; 5] = [10, 1, 33, 8, 12];
const TOTAL: usize = 64;

/// Pieces far apart from each other, and their descriptor.
fn vector(
    node: &RigNode,
    lengths: &[usize],
    options: u32,
    eq: EqHandle,
) -> (Vec<NodeBuffer>, MemoryDescriptor) {
    let room = node.memory(lengths.iter().map(|len| len + 96).sum());
    let mut at = 5;
    let mut pieces = Vec::new();
    for len in lengths {
        pieces.push(room.part(at, *len));
        at += len + 90;
    }
    // The first piece is not the lowest in memory.
    pieces.reverse();
    pieces.sort_by_key(|piece| lengths.iter().position(|len| *len == piece.len));
    let vector = node.vector(&pieces);
    let md = MemoryDescriptor { length: pieces.len() as u64, ..md(vector, options | IOVEC, eq) };
    (pieces, md)
}

fn gather(node: &RigNode, pieces: &[NodeBuffer]) -> Vec<u8> {
    pieces.iter().flat_map(|piece| node.read(*piece)).collect()
}

fn scatter(node: &RigNode, pieces: &[NodeBuffer], bytes: &[u8]) {
    let mut rest = bytes;
    for piece in pieces {
        let (own, more) = rest.split_at(piece.len);
        node.write(*piece, own);
        rest = more;
    }
}

/// Pieces attached to an entry of the target.
fn scattered(rig: &crate::rig::Rig, options: u32) -> (Vec<NodeBuffer>, EqHandle) {
    let node = rig.target();
    let eq = node.eq_alloc(ROOM).expect("PtlEQAlloc");
    let (pieces, md) = vector(node, &PIECES, options, eq);
    node.md_attach(entry(node), md, Unlink::Retain).expect("PtlMDAttach");
    (pieces, eq)
}

fn a_put_is_scattered(kind: RigKind) {
    let rig = kind.rig();
    let (pieces, eq) = scattered(&rig, OP_PUT | MANAGE_REMOTE);
    let mut due = vec![0; TOTAL];
    for (seed, offset, len) in
        [(1, 0, 64), (2, 9, 3), (3, 10, 1), (4, 11, 40), (5, 63, 1), (6, 64, 0)]
    {
        let (from, bytes) = source_of(&rig, seed, len);
        put(&rig, from, to_offset(&rig, offset), seed);
        due[offset as usize..offset as usize + len].copy_from_slice(&bytes);
        assert_eq!(gather(rig.target(), &pieces), due);
        let event = of_kind(&rig, rig.target(), eq, portals3::PtlEventKind::PutEnd);
        assert_eq!(
            event.iter().map(|e| (e.offset, e.mlength)).collect::<Vec<_>>(),
            [(offset, len as u64)]
        );
    }
    let before = rig.target().dropped();
    let (from, _) = source_of(&rig, 7, 2);
    put(&rig, from, to_offset(&rig, 63), 0);
    assert_eq!(rig.target().dropped(), before + 1);
}

fn a_get_is_gathered(kind: RigKind) {
    let rig = kind.rig();
    let (pieces, _) = scattered(&rig, OP_GET | MANAGE_REMOTE);
    let bytes = pattern(9, TOTAL);
    scatter(rig.target(), &pieces, &bytes);
    for (offset, len) in [(0, 64), (9, 3), (10, 1), (11, 40), (63, 1)] {
        let into = source(&rig, &vec![0; len]);
        get(&rig, into, to_offset(&rig, offset));
        assert_eq!(
            rig.initiator().read(into.buffer),
            bytes[offset as usize..offset as usize + len]
        );
    }
}

fn a_source_is_gathered(kind: RigKind) {
    let rig = kind.rig();
    let node = rig.initiator();
    let side = target(&rig, TOTAL, BOTH | MANAGE_REMOTE);
    let (pieces, md) = vector(node, &PIECES, 0, EqHandle::NONE);
    let bytes = pattern(9, TOTAL);
    scatter(node, &pieces, &bytes);
    let from = node.md_bind(md, Unlink::Retain).expect("PtlMDBind");
    node.put(from, AckReq::NoAck, to(&rig), 0).expect("PtlPut");
    rig.settle();
    assert_eq!(rig.target().read(side.buffer), bytes);
}

fn a_reply_is_scattered(kind: RigKind) {
    let rig = kind.rig();
    let node = rig.initiator();
    let side = target(&rig, TOTAL, BOTH | MANAGE_REMOTE);
    let bytes = pattern(9, TOTAL);
    rig.target().write(side.buffer, &bytes);
    let (pieces, md) = vector(node, &PIECES, 0, EqHandle::NONE);
    let into = node.md_bind(md, Unlink::Retain).expect("PtlMDBind");
    node.get(into, to(&rig)).expect("PtlGet");
    rig.settle();
    assert_eq!(gather(node, &pieces), bytes);
}

fn a_region_of_a_vector_counts_bytes(kind: RigKind) {
    let rig = kind.rig();
    let node = rig.initiator();
    let side = target(&rig, TOTAL, BOTH | MANAGE_REMOTE);
    let (pieces, md) = vector(node, &PIECES, 0, EqHandle::NONE);
    let mut bytes = pattern(9, TOTAL);
    scatter(node, &pieces, &bytes);
    let both = node.md_bind(md, Unlink::Retain).expect("PtlMDBind");
    node.put_region(both, 8, 39, AckReq::NoAck, to_offset(&rig, 3), 0).expect("PtlPutRegion");
    rig.settle();
    assert_eq!(rig.target().read(side.buffer)[3..42], bytes[8..47]);
    node.get_region(both, 42, 20, to_offset(&rig, 3)).expect("PtlGetRegion");
    rig.settle();
    bytes.copy_within(8..28, 42);
    assert_eq!(gather(node, &pieces), bytes);
}

fn a_locally_managed_vector_fills_piece_after_piece(kind: RigKind) {
    let rig = kind.rig();
    let (pieces, _) = scattered(&rig, OP_PUT);
    let mut due = Vec::new();
    for seed in 1..=8 {
        let (from, bytes) = source_of(&rig, seed, 8);
        put(&rig, from, to(&rig), 0);
        due.extend(bytes);
    }
    assert_eq!(gather(rig.target(), &pieces), due);
    let before = rig.target().dropped();
    let (from, _) = source_of(&rig, 9, 1);
    put(&rig, from, to(&rig), 0);
    assert_eq!(rig.target().dropped(), before + 1);
}

fn a_vector_may_have_empty_pieces(kind: RigKind) {
    let rig = kind.rig();
    let node = rig.target();
    let room = node.memory(64);
    let pieces =
        [room.part(0, 0), room.part(40, 8), room.part(8, 0), room.part(10, 8), room.part(0, 0)];
    let vector = node.vector(&pieces);
    let md = MemoryDescriptor {
        length: 5,
        ..md(vector, OP_PUT | IOVEC | MANAGE_REMOTE, EqHandle::NONE)
    };
    node.md_attach(entry(node), md, Unlink::Retain).expect("PtlMDAttach");
    let (from, bytes) = source_of(&rig, 1, 16);
    put(&rig, from, to(&rig), 0);
    assert_eq!(gather(node, &pieces), bytes);
}

fn truncation_cuts_at_the_end_of_the_last_piece(kind: RigKind) {
    let rig = kind.rig();
    let (pieces, eq) = scattered(&rig, OP_PUT | MANAGE_REMOTE | TRUNCATE);
    let (from, bytes) = source_of(&rig, 1, 40);
    put(&rig, from, to_offset(&rig, 50), 0);
    assert_eq!(gather(rig.target(), &pieces)[50..], bytes[..14]);
    let event = of_kind(&rig, rig.target(), eq, portals3::PtlEventKind::PutEnd);
    assert_eq!(event.iter().map(|e| (e.rlength, e.mlength)).collect::<Vec<_>>(), [(40, 14)]);
}

fn the_vector_is_copied(kind: RigKind) {
    let rig = kind.rig();
    let node = rig.target();
    let (pieces, md) = vector(node, &PIECES, OP_PUT | MANAGE_REMOTE, EqHandle::NONE);
    node.md_attach(entry(node), md, Unlink::Retain).expect("PtlMDAttach");
    node.write(
        NodeBuffer { address: md.start.addr(), len: PIECES.len() * 16 },
        &[0; PIECES.len() * 16],
    );
    let (from, bytes) = source_of(&rig, 1, TOTAL);
    put(&rig, from, to(&rig), 0);
    assert_eq!(gather(node, &pieces), bytes);
}

fn long_vectors_are_refused(kind: RigKind) {
    let rig = kind.rig();
    let node = rig.target();
    let limit = node.limits().max_md_iovecs as usize;
    let room = node.memory(8 * (limit + 1));
    let pieces: Vec<_> = (0..=limit).map(|at| room.part(8 * at, 8)).collect();
    let vector = node.vector(&pieces);
    let wanted =
        |length| MemoryDescriptor { length, ..md(vector, OP_PUT | IOVEC, EqHandle::NONE) };
    assert!(node.md_bind(wanted(limit as u64), Unlink::Retain).is_ok());
    let result = node.md_bind(wanted(limit as u64 + 1), Unlink::Retain);
    assert!(matches!(result, Err(PtlError::MdIllegal | PtlError::NoSpace)), "{result:?}");
}

fn large_messages_cross_pieces(kind: RigKind) {
    let rig = kind.rig();
    let lengths = [5000, 1, 30_000, 12_345, 700];
    let total = lengths.iter().sum::<usize>();
    let (theirs, there) = vector(rig.target(), &lengths, BOTH | MANAGE_REMOTE, EqHandle::NONE);
    rig.target().md_attach(entry(rig.target()), there, Unlink::Retain).expect("PtlMDAttach");
    let (ours, here) = vector(rig.initiator(), &[20_000, 8046, 10_000, 10_000], 0, EqHandle::NONE);
    let bytes = pattern(3, total);
    scatter(rig.initiator(), &ours, &bytes);
    let from = rig.initiator().md_bind(here, Unlink::Retain).expect("PtlMDBind");
    rig.initiator().put(from, AckReq::NoAck, to(&rig), 0).expect("PtlPut");
    rig.settle();
    assert!(gather(rig.target(), &theirs) == bytes);
    scatter(rig.initiator(), &ours, &vec![0; total]);
    rig.initiator().get(from, to(&rig)).expect("PtlGet");
    rig.settle();
    assert!(gather(rig.initiator(), &ours) == bytes);
}
