//! Match entries and memory descriptors: their order, their unlinking, and their numbers.

use portals3::{AckReq, EqHandle, InsPos, NiLimits, PtlError, PtlEventKind, PtlProcessId, Unlink};

use crate::common::*;
use crate::rig::{Rig, RigKind, To, md};

instantiate! {
    an_entry_has_one_descriptor
    a_bound_descriptor_is_never_a_target
    insert_before_and_after
    attach_any_takes_an_entry_of_the_table_that_was_never_used
    attach_any_fails_when_the_table_is_full
    a_list_has_a_longest_length
    entries_and_descriptors_and_queues_are_limited
    the_last_entry_of_a_full_list_matches
    what_was_unlinked_can_be_allocated_again
    what_has_unlinked_itself_can_be_allocated_again
    lists_keep_their_order_through_changes
}

fn an_entry_has_one_descriptor(kind: RigKind) {
    let rig = kind.rig();
    let node = rig.target();
    let me = entry(node);
    let side = behind(node, me, 64, Unlink::Retain, |_| ());
    let another = md(node.memory(64), BOTH, EqHandle::NONE);
    assert_eq!(node.md_attach(me, another, Unlink::Retain), Err(PtlError::MeInUse));
    node.md_unlink(side.md).expect("PtlMDUnlink");
    assert!(node.md_attach(me, another, Unlink::Retain).is_ok());
}

fn a_bound_descriptor_is_never_a_target(kind: RigKind) {
    let rig = kind.rig();
    let node = rig.target();
    let eq = node.eq_alloc(ROOM).expect("PtlEQAlloc");
    let buffer = node.memory(64);
    node.md_bind(md(buffer, BOTH, eq), Unlink::Retain).expect("PtlMDBind");
    let (from, _) = source_of(&rig, 1, 8);
    let before = node.dropped();
    put(&rig, from, to(&rig), 0);
    rig.silent(node, eq);
    assert_eq!(node.dropped(), before + 1);
    assert_eq!(node.read(buffer), [0; 64]);
}

/// Which of the descriptors accepts a put, found by removing them one after the other.
fn order(rig: &Rig, sides: &[QueuedMd]) -> Vec<usize> {
    let from = source_with(rig, &[1; 8], |md| md.eq = EqHandle::NONE);
    let mut found = Vec::new();
    while found.len() < sides.len() {
        put(rig, from, to(rig), 0);
        let hit = (0..sides.len())
            .find(|at| !found.contains(at) && !arrived(rig, sides[*at].eq).is_empty());
        let hit = hit.expect("one of them takes it");
        rig.target().md_unlink(sides[hit].md).expect("PtlMDUnlink");
        found.push(hit);
    }
    found
}

fn insert_before_and_after(kind: RigKind) {
    let rig = kind.rig();
    let node = rig.target();
    let base = entry(node);
    let insert = |base, pos| {
        node.me_insert(base, PtlProcessId::ANY, 0, !0, Unlink::Retain, pos).expect("PtlMEInsert")
    };
    let before = insert(base, InsPos::Before);
    let after = insert(base, InsPos::After);
    let between = insert(base, InsPos::After);
    let last = insert(after, InsPos::After);
    let first = insert(before, InsPos::Before);
    let sides = [base, before, after, between, last, first]
        .map(|me| behind(node, me, 64, Unlink::Retain, |_| ()));
    assert_eq!(order(&rig, &sides), [5, 1, 0, 3, 2, 4]);
}

fn attach_any_takes_an_entry_of_the_table_that_was_never_used(kind: RigKind) {
    let rig = kind.rig();
    let node = rig.target();
    let used = target(&rig, 64, BOTH);
    let mut seen = vec![PT];
    for hdr in 1..=4 {
        let (pt, me) =
            node.me_attach_any(PtlProcessId::ANY, 0, !0, Unlink::Retain).expect("PtlMEAttachAny");
        assert!(!seen.contains(&pt) && pt <= node.limits().max_pt_index);
        seen.push(pt);
        let side = behind(node, me, 64, Unlink::Retain, |_| ());
        let (from, _) = source_of(&rig, 1, 8);
        put(&rig, from, To { pt, ..to(&rig) }, hdr);
        assert_eq!(arrived(&rig, side.eq), [hdr]);
    }
    rig.silent(node, used.eq);
}

fn attach_any_fails_when_the_table_is_full(kind: RigKind) {
    let rig = kind.rig_limited(NiLimits { max_pt_index: 7, ..NiLimits::DEFAULT });
    let node = rig.target();
    let limits = node.limits();
    for _ in 0..=limits.max_pt_index {
        assert!(node.me_attach_any(PtlProcessId::ANY, 0, !0, Unlink::Retain).is_ok());
    }
    let result = node.me_attach_any(PtlProcessId::ANY, 0, !0, Unlink::Retain);
    assert_eq!(result, Err(PtlError::PtFull));
}

fn a_list_has_a_longest_length(kind: RigKind) {
    let rig = kind.rig_limited(NiLimits { max_me_list: 10, ..NiLimits::DEFAULT });
    let node = rig.target();
    let limits = node.limits();
    let attach = |pt| node.me_attach(pt, PtlProcessId::ANY, 0, !0, Unlink::Retain, InsPos::After);
    let entries: Vec<_> =
        (0..limits.max_me_list).map(|_| attach(PT).expect("PtlMEAttach")).collect();
    assert_eq!(attach(PT), Err(PtlError::MeListTooLong));
    let insert =
        node.me_insert(entries[3], PtlProcessId::ANY, 0, !0, Unlink::Retain, InsPos::After);
    assert_eq!(insert, Err(PtlError::MeListTooLong));
    assert!(attach(PT + 1).is_ok());
    node.me_unlink(entries[5]).expect("PtlMEUnlink");
    assert!(attach(PT).is_ok());
}

fn entries_and_descriptors_and_queues_are_limited(kind: RigKind) {
    let small = NiLimits { max_mes: 12, max_mds: 9, max_eqs: 5, ..NiLimits::DEFAULT };
    let rig = kind.rig_limited(small);
    let node = rig.target();
    let limits = node.limits();
    // More may be granted than was requested; what is granted is available, and no more.
    let attach = |_| node.me_attach(PT, PtlProcessId::ANY, 0, !0, Unlink::Retain, InsPos::After);
    let entries: Result<Vec<_>, _> = (0..limits.max_mes).map(attach).collect();
    assert_eq!(entries.map(|list| list.len()), Ok(limits.max_mes as usize));
    assert_eq!(attach(0), Err(PtlError::NoSpace));
    let buffer = node.memory(8);
    let bind = |_| node.md_bind(md(buffer, BOTH, EqHandle::NONE), Unlink::Retain);
    let bound: Result<Vec<_>, _> = (0..limits.max_mds).map(bind).collect();
    assert_eq!(bound.as_ref().map(Vec::len), Ok(limits.max_mds as usize));
    assert_eq!(bind(0), Err(PtlError::NoSpace));
    node.md_unlink(bound.expect("bound")[0]).expect("PtlMDUnlink");
    assert!(bind(0).is_ok());
    let queues: Result<Vec<_>, _> = (0..limits.max_eqs).map(|_| node.eq_alloc(4)).collect();
    assert_eq!(queues.map(|list| list.len()), Ok(limits.max_eqs as usize));
    assert_eq!(node.eq_alloc(4), Err(PtlError::NoSpace));
}

fn the_last_entry_of_a_full_list_matches(kind: RigKind) {
    let rig = kind.rig_limited(NiLimits { max_mes: 4, ..NiLimits::DEFAULT });
    let node = rig.target();
    let entries: Vec<_> = (0..node.limits().max_mes).map(|_| entry(node)).collect();
    // The entries before have no descriptor.
    let last = behind(node, entries[entries.len() - 1], 8, Unlink::Retain, |_| ());
    put(&rig, source(&rig, &[1; 8]), to(&rig), 7);
    assert_eq!(arrived(&rig, last.eq), [7]);
}

fn what_was_unlinked_can_be_allocated_again(kind: RigKind) {
    let rig =
        kind.rig_limited(NiLimits { max_mes: 4, max_mds: 6, max_me_list: 4, ..NiLimits::DEFAULT });
    let node = rig.target();
    let from = source_with(&rig, &[1; 8], |md| md.eq = EqHandle::NONE);
    let eq = node.eq_alloc(ROOM).expect("PtlEQAlloc");
    let buffer = node.memory(64);
    for hdr in 0..if kind.has_processes() { 60 } else { 500 } {
        let me = entry(node);
        let by_itself = hdr % 2 == 0;
        let wanted = portals3::MemoryDescriptor { threshold: 1, ..md(buffer, BOTH, eq) };
        let unlink = if by_itself { Unlink::Unlink } else { Unlink::Retain };
        let attached = node.md_attach(me, wanted, unlink).expect("PtlMDAttach");
        rig.initiator().put(from.md, AckReq::NoAck, to(&rig), hdr).expect("PtlPut");
        assert_eq!(arrived(&rig, eq), [hdr]);
        if !by_itself {
            node.md_unlink(attached).expect("PtlMDUnlink");
        }
        node.me_unlink(me).expect("PtlMEUnlink");
    }
}

fn what_has_unlinked_itself_can_be_allocated_again(kind: RigKind) {
    let rig = kind.rig_limited(NiLimits { max_mes: 4, max_eqs: 4, ..NiLimits::DEFAULT });
    let node = rig.target();
    let from = source_with(&rig, &[1; 8], |md| md.eq = EqHandle::NONE);
    let buffer = node.memory(64);
    for hdr in 0..u64::from(2 * node.limits().max_eqs.max(node.limits().max_mes)) {
        let me = node.me_attach(PT, PtlProcessId::ANY, 0, !0, Unlink::Unlink, InsPos::After);
        let eq = node.eq_alloc(4).expect("PtlEQAlloc");
        let wanted = portals3::MemoryDescriptor { threshold: 1, ..md(buffer, BOTH, eq) };
        node.md_attach(me.expect("PtlMEAttach"), wanted, Unlink::Unlink).expect("PtlMDAttach");
        put(&rig, from, to(&rig), hdr);
        // The UNLINK event that follows is never read.
        let read = [(); 2].map(|()| rig.event(node, eq).kind);
        assert_eq!(read, [PtlEventKind::PutStart, PtlEventKind::PutEnd]);
        node.eq_free(eq).expect("PtlEQFree");
    }
    // The entries of one list make room for those of another.
    let entry = |pt| node.me_attach(pt, PtlProcessId::ANY, 0, !0, Unlink::Unlink, InsPos::After);
    for _ in 0..node.limits().max_mes {
        let wanted =
            portals3::MemoryDescriptor { threshold: 1, ..md(buffer, BOTH, EqHandle::NONE) };
        let me = entry(PT).expect("PtlMEAttach");
        node.md_attach(me, wanted, Unlink::Unlink).expect("PtlMDAttach");
    }
    assert_eq!(entry(PT + 1), Err(PtlError::NoSpace));
    put(&rig, from, to(&rig), 0);
    assert!(entry(PT + 1).is_ok());
}

fn lists_keep_their_order_through_changes(kind: RigKind) {
    let rig = kind.rig();
    let node = rig.target();
    let mut lot = 12345_u64;
    let mut draw = |below: usize| {
        lot = lot.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (lot >> 33) as usize % below
    };
    // The list as it should be, head first; entries are inserted and removed everywhere.
    let mut list = vec![entry(node)];
    for _ in 0..60 {
        let at = draw(list.len());
        match draw(5) {
            0 if list.len() > 1 => node.me_unlink(list.remove(at)).expect("PtlMEUnlink"),
            1 => list.push(entry(node)),
            2 => {
                let new =
                    node.me_attach(PT, PtlProcessId::ANY, 0, !0, Unlink::Retain, InsPos::Before);
                list.insert(0, new.expect("PtlMEAttach"));
            }
            before => {
                let pos = if before == 3 { InsPos::Before } else { InsPos::After };
                let new = node.me_insert(list[at], PtlProcessId::ANY, 0, !0, Unlink::Retain, pos);
                list.insert(at + usize::from(pos == InsPos::After), new.expect("PtlMEInsert"));
            }
        }
    }
    list.truncate(list.len().min(40));
    let sides: Vec<_> =
        list.iter().map(|me| behind(node, *me, 64, Unlink::Retain, |_| ())).collect();
    assert_eq!(order(&rig, &sides), (0..sides.len()).collect::<Vec<_>>());
}
