//! Ordering: "two messages between the same pair of processes match in the order in which they
//! were sent".

use portals3::md_options::{EVENT_START_DISABLE, MANAGE_REMOTE, OP_PUT};
use portals3::{AckReq, EqHandle, InsPos, PtlEventKind, PtlProcessId, Unlink};

use crate::common::*;
use crate::rig::agent::AgentMemory;
use crate::rig::{Rig, RigKind, md, pattern};

instantiate! {
    puts_match_in_the_order_in_which_they_were_sent
    long_and_short_messages_match_in_order
    puts_and_gets_match_in_order
    order_holds_across_kinds_of_memory
    order_holds_across_descriptors
    order_holds_when_the_sender_runs_far_ahead
    all_bytes_are_there_when_end_comes
}

/// One rig where the order of delivery is fixed, many where it is random.
fn rigs(kind: RigKind) -> impl Iterator<Item = Rig> {
    let count = if kind == RigKind::Framed { 25 } else { 1 };
    (1..=count).map(move |seed| kind.rig_seeded(seed))
}

fn puts_match_in_the_order_in_which_they_were_sent(kind: RigKind) {
    for rig in rigs(kind) {
        let side = target(&rig, 1 << 12, OP_PUT | EVENT_START_DISABLE);
        let from = source_with(&rig, &pattern(1, 8), |md| md.eq = EqHandle::NONE);
        for hdr in 0..50 {
            rig.initiator().put(from.md, AckReq::NoAck, to(&rig), hdr).expect("PtlPut");
        }
        let mut seen: Vec<_> =
            rig.events(rig.target(), side.eq).iter().map(|e| (e.hdr_data, e.offset)).collect();
        seen.sort_unstable();
        assert_eq!(
            seen,
            (0..50).map(|n| (n, 8 * n)).collect::<Vec<_>>(),
            "the offset is that of the order"
        );
    }
}

fn long_and_short_messages_match_in_order(kind: RigKind) {
    for rig in rigs(kind) {
        let side = target(&rig, 1 << 16, OP_PUT | EVENT_START_DISABLE);
        let bytes = pattern(1, 5000);
        let from = source_with(&rig, &bytes, |md| md.eq = EqHandle::NONE);
        let lengths = [5000, 1, 0, 3000, 8, 8, 2000, 400, 4999];
        let mut due = Vec::new();
        for (hdr, length) in (0..).zip(lengths) {
            rig.initiator()
                .put_region(from.md, 0, length, AckReq::NoAck, to(&rig), hdr)
                .expect("PtlPutRegion");
            due.extend(&bytes[..length as usize]);
        }
        let mut seen: Vec<_> = arrived(&rig, side.eq);
        seen.sort_unstable();
        assert_eq!(seen, (0..9).collect::<Vec<_>>());
        assert!(
            rig.target().read(side.buffer)[..due.len()] == due,
            "each landed where its turn was"
        );
    }
}

fn puts_and_gets_match_in_order(kind: RigKind) {
    for rig in rigs(kind) {
        // Descriptors of threshold 1, one after the other: the one that takes a message shows
        // its order.
        let node = rig.target();
        let eq = node.eq_alloc(ROOM).expect("PtlEQAlloc");
        for _ in 0..8 {
            behind(node, entry(node), 2000, Unlink::Retain, |md| {
                md.threshold = 1;
                md.eq = eq;
                md.options |= portals3::md_options::EVENT_END_DISABLE;
            });
        }
        let (from, _) = source_of(&rig, 1, 1500);
        let (into, _) = source_of(&rig, 2, 2000);
        for step in 0..4 {
            rig.initiator().put(from.md, AckReq::NoAck, to(&rig), step).expect("PtlPut");
            rig.initiator().get(into.md, to(&rig)).expect("PtlGet");
        }
        let seen: Vec<_> = rig.events(node, eq).iter().map(|e| e.kind).collect();
        assert_eq!(seen, [PtlEventKind::PutStart, PtlEventKind::GetStart].repeat(4));
    }
}

fn order_holds_across_kinds_of_memory(kind: RigKind) {
    // Where the target has both, some messages can be delivered at once and others not; the
    // order still holds.
    for rig in rigs(kind) {
        let node = rig.target();
        let eq = node.eq_alloc(ROOM).expect("PtlEQAlloc");
        let shared =
            if kind == RigKind::Framed { AgentMemory::Private } else { AgentMemory::Arena };
        let memories = [
            AgentMemory::Private,
            shared,
            shared,
            AgentMemory::Private,
            shared,
            shared,
            AgentMemory::Private,
            shared,
        ];
        let mut buffers = Vec::new();
        for memory in memories {
            let me = node
                .me_attach(PT, PtlProcessId::ANY, 0, !0, Unlink::Retain, InsPos::After)
                .expect("PtlMEAttach");
            let buffer = node.memory_of(memory, 600);
            let wanted = portals3::MemoryDescriptor {
                threshold: 1,
                ..md(buffer, BOTH | MANAGE_REMOTE, eq)
            };
            node.md_attach(me, wanted, Unlink::Retain).expect("PtlMDAttach");
            buffers.push(buffer);
        }
        let sources: Vec<_> = (0..8).map(|seed| source_of(&rig, seed, 600)).collect();
        for (hdr, (from, _)) in (0..).zip(&sources) {
            rig.initiator().put(from.md, AckReq::Ack, to(&rig), hdr).expect("PtlPut");
        }
        let seen = rig.events(node, eq);
        let starts: Vec<_> =
            seen.iter().filter(|e| e.kind == PtlEventKind::PutStart).map(|e| e.hdr_data).collect();
        assert_eq!(starts, (0..8).collect::<Vec<_>>());
        for (buffer, (from, bytes)) in buffers.iter().zip(&sources) {
            assert_eq!(node.read(*buffer), *bytes);
            assert!(kinds(&rig, rig.initiator(), from.eq).contains(&PtlEventKind::Ack));
        }
    }
}

fn order_holds_across_descriptors(kind: RigKind) {
    // The messages alternate between two descriptors of different memory. So only the rule
    // keeps a message that could be delivered at once from overtaking one that waits for the
    // target.
    for rig in rigs(kind) {
        let node = rig.target();
        let eq = node.eq_alloc(ROOM).expect("PtlEQAlloc");
        let shared =
            if kind == RigKind::Framed { AgentMemory::Private } else { AgentMemory::Arena };
        for (bits, memory) in [(0, AgentMemory::Private), (1, shared)] {
            let wanted = md(node.memory_of(memory, 600), BOTH | MANAGE_REMOTE, eq);
            node.md_attach(entry_for(node, bits), wanted, Unlink::Retain).expect("PtlMDAttach");
        }
        let from = source_with(&rig, &pattern(1, 600), |md| md.eq = EqHandle::NONE);
        for round in 0..3 {
            for hdr in 0..7 {
                rig.initiator()
                    .put(from.md, AckReq::NoAck, to_bits(&rig, hdr % 2), hdr)
                    .expect("PtlPut");
            }
            let seen = rig.events(node, eq);
            let starts =
                seen.iter().filter(|e| e.kind == PtlEventKind::PutStart).map(|e| e.hdr_data);
            assert_eq!(starts.collect::<Vec<_>>(), (0..7).collect::<Vec<_>>(), "round {round}");
        }
    }
}

fn order_holds_when_the_sender_runs_far_ahead(kind: RigKind) {
    // Far more than any network holds in flight: nothing is lost and the sender is never
    // blocked.
    for rig in rigs(kind).take(5) {
        let count = 600;
        let node = rig.target();
        let eq = node.eq_alloc(count).expect("PtlEQAlloc");
        let me = entry(node);
        let side = behind(node, me, 300 * count as usize, Unlink::Retain, |md| {
            md.options = OP_PUT | EVENT_START_DISABLE;
            md.eq = eq;
        });
        let bytes = pattern(1, 300);
        let from = source_with(&rig, &bytes, |md| md.eq = EqHandle::NONE);
        rig.initiator().put_many(from.md, AckReq::NoAck, to(&rig), 0, count).expect("PtlPut");
        let mut seen: Vec<_> =
            rig.events(node, eq).iter().map(|e| (e.hdr_data, e.offset)).collect();
        seen.sort_unstable();
        assert!(seen == (0..count).map(|n| (n, 300 * n)).collect::<Vec<_>>());
        assert!(node.read(side.buffer) == bytes.repeat(count as usize));
    }
}

fn all_bytes_are_there_when_end_comes(kind: RigKind) {
    for rig in rigs(kind) {
        let node = rig.target();
        let side = target(&rig, 4000, BOTH | MANAGE_REMOTE);
        let (from, bytes) = source_of(&rig, 1, 4000);
        rig.initiator().put(from.md, AckReq::Ack, to(&rig), 0).expect("PtlPut");
        // Step by step, looking after every step.
        loop {
            rig.initiator().progress();
            node.progress();
            let fetched = node.eq_get(side.eq).expect("PtlEQGet");
            if fetched.is_some_and(|f| f.event.kind == PtlEventKind::PutEnd) {
                break;
            }
        }
        assert!(node.read(side.buffer) == bytes);
    }
}
