//! Limits and error codes: every one that the specification documents for a call.

use portals3::md_options::{IOVEC, OP_PUT};
use portals3::{
    AckReq, EqHandle, InsPos, MdHandle, MeHandle, NID_ANY, NiLimits, PID_ANY, PtlError,
    PtlProcessId, Unlink,
};

use crate::common::*;
use crate::rig::{RigKind, To, md};

instantiate! {
    limits_are_told_and_kept
    me_attach_checks_the_portal_index
    me_calls_check_the_process
    me_calls_check_the_handle
    md_calls_check_the_handle
    md_attach_and_bind_check_the_queue
    md_attach_and_bind_check_the_descriptor
    put_and_get_check_the_descriptor
    put_and_get_check_the_target
    regions_are_checked
    distance_checks_the_process
    identities_are_reported
}

fn limits_are_told_and_kept(kind: RigKind) {
    let asked = NiLimits {
        max_mes: 50,
        max_mds: 60,
        max_eqs: 7,
        max_ac_index: 3,
        max_pt_index: 9,
        max_md_iovecs: 4,
        max_me_list: 20,
        max_getput_md: 16,
    };
    let rig = kind.rig_limited(asked);
    for node in rig.nodes() {
        let granted = node.limits();
        // An implementation may grant more or less, but something.
        assert!(granted.max_mes > 0 && granted.max_mds > 0 && granted.max_eqs > 0);
        let (from, _) = source_of(&rig, 1, 8);
        let pt = granted.max_pt_index;
        let attached = node.me_attach(pt, PtlProcessId::ANY, 0, !0, Unlink::Retain, InsPos::After);
        assert!(attached.is_ok());
        assert_eq!(rig.initiator().put(from.md, AckReq::NoAck, to(&rig), 0), Ok(()));
    }
}

fn me_attach_checks_the_portal_index(kind: RigKind) {
    let rig = kind.rig();
    let node = rig.target();
    let limit = node.limits().max_pt_index;
    let attach = |pt| node.me_attach(pt, PtlProcessId::ANY, 0, 0, Unlink::Retain, InsPos::After);
    assert!(attach(0).is_ok() && attach(limit).is_ok());
    assert_eq!(attach(limit + 1), Err(PtlError::PtIndexInvalid));
    assert_eq!(attach(u32::MAX), Err(PtlError::PtIndexInvalid));
}

fn me_calls_check_the_process(kind: RigKind) {
    // Whether a process that cannot exist is refused or treated as unknown is left to the
    // implementation; wild cards are valid.
    let rig = kind.rig();
    let node = rig.target();
    for id in [
        PtlProcessId { nid: NID_ANY, pid: 1 << 30 },
        PtlProcessId { nid: 1 << 30, pid: PID_ANY },
        PtlProcessId { nid: 1 << 30, pid: 1 << 30 },
    ] {
        let result = node.me_attach(PT, id, 0, !0, Unlink::Retain, InsPos::After);
        assert!(matches!(result, Ok(_) | Err(PtlError::ProcessInvalid)), "{result:?}");
    }
    assert!(node.me_attach(PT, PtlProcessId::ANY, 0, !0, Unlink::Retain, InsPos::After).is_ok());
}

fn me_calls_check_the_handle(kind: RigKind) {
    let rig = kind.rig();
    let node = rig.target();
    for number in [0x00ff_fff0, u32::MAX, 0x7fff_ffff] {
        let me = MeHandle(number);
        assert_eq!(node.me_unlink(me), Err(PtlError::MeInvalid));
        let insert = node.me_insert(me, PtlProcessId::ANY, 0, 0, Unlink::Retain, InsPos::After);
        assert_eq!(insert, Err(PtlError::MeInvalid));
        let wanted = md(node.memory(8), BOTH, EqHandle::NONE);
        assert_eq!(node.md_attach(me, wanted, Unlink::Retain), Err(PtlError::MeInvalid));
    }
}

fn md_calls_check_the_handle(kind: RigKind) {
    let rig = kind.rig();
    let node = rig.target();
    for number in [0x00ff_fff0, u32::MAX, 0x7fff_ffff] {
        let handle = MdHandle(number);
        assert_eq!(node.md_unlink(handle), Err(PtlError::MdInvalid));
        assert_eq!(node.md_update(handle, None, None, EqHandle::NONE), Err(PtlError::MdInvalid));
    }
}

fn md_attach_and_bind_check_the_queue(kind: RigKind) {
    let rig = kind.rig();
    let node = rig.target();
    let gone = node.eq_alloc(4).expect("PtlEQAlloc");
    node.eq_free(gone).expect("PtlEQFree");
    for eq in [gone, EqHandle(4711)] {
        let wanted = md(node.memory(8), BOTH, eq);
        assert_eq!(node.md_bind(wanted, Unlink::Retain), Err(PtlError::EqInvalid));
        let me = entry(node);
        assert_eq!(node.md_attach(me, wanted, Unlink::Retain), Err(PtlError::EqInvalid));
        let fine = md(node.memory(8), BOTH, EqHandle::NONE);
        assert!(node.md_attach(me, fine, Unlink::Retain).is_ok(), "the entry is still free");
    }
}

fn md_attach_and_bind_check_the_descriptor(kind: RigKind) {
    let rig = kind.rig();
    let node = rig.target();
    let fine = md(node.memory(64), OP_PUT, EqHandle::NONE);
    let illegal = [
        portals3::MemoryDescriptor { threshold: -2, ..fine },
        portals3::MemoryDescriptor { length: u64::MAX, ..fine },
        portals3::MemoryDescriptor { start: core::ptr::null_mut(), ..fine },
        portals3::MemoryDescriptor {
            start: core::ptr::null_mut(),
            length: 1,
            options: OP_PUT | IOVEC,
            ..fine
        },
    ];
    for wanted in illegal {
        let refused = |result| {
            matches!(result, Err(PtlError::MdIllegal | PtlError::Segv | PtlError::NoSpace))
        };
        assert!(refused(node.md_bind(wanted, Unlink::Retain)), "{wanted:?}");
        assert!(refused(node.md_attach(entry(node), wanted, Unlink::Retain)), "{wanted:?}");
    }
    // A null start with a length is illegal.
    let nothing = portals3::MemoryDescriptor { start: core::ptr::null_mut(), length: 0, ..fine };
    assert!(node.md_bind(nothing, Unlink::Retain).is_ok());
}

fn put_and_get_check_the_descriptor(kind: RigKind) {
    let rig = kind.rig();
    let node = rig.initiator();
    let (fine, _) = source_of(&rig, 1, 8);
    for number in [0x00ff_fff0, u32::MAX, 0x7fff_ffff] {
        let bad = MdHandle(number);
        assert_eq!(node.put(bad, AckReq::NoAck, to(&rig), 0), Err(PtlError::MdInvalid));
        assert_eq!(
            node.put_region(bad, 0, 0, AckReq::NoAck, to(&rig), 0),
            Err(PtlError::MdInvalid)
        );
        assert_eq!(node.get(bad, to(&rig)), Err(PtlError::MdInvalid));
        assert_eq!(node.get_region(bad, 0, 0, to(&rig)), Err(PtlError::MdInvalid));
        assert_eq!(node.get_put(bad, fine.md, to(&rig), 0), Err(PtlError::MdInvalid));
        assert_eq!(node.get_put(fine.md, bad, to(&rig), 0), Err(PtlError::MdInvalid));
    }
    rig.silent(node, fine.eq);
}

fn put_and_get_check_the_target(kind: RigKind) {
    let rig = kind.rig();
    let node = rig.initiator();
    let (from, _) = source_of(&rig, 1, 8);
    let (into, _) = source_of(&rig, 2, 8);
    let PtlProcessId { nid, pid } = rig.target().id();
    for id in [
        PtlProcessId { nid, pid: 1 << 20 },
        PtlProcessId { nid: nid + 1, pid },
        PtlProcessId { nid, pid: PID_ANY },
        PtlProcessId { nid: NID_ANY, pid },
        PtlProcessId::ANY,
    ] {
        let to = To { id, ..to(&rig) };
        assert_eq!(
            node.put(from.md, AckReq::NoAck, to, 0),
            Err(PtlError::ProcessInvalid),
            "{id:?}"
        );
        assert_eq!(node.get(from.md, to), Err(PtlError::ProcessInvalid), "{id:?}");
        assert_eq!(node.get_put(into.md, from.md, to, 0), Err(PtlError::ProcessInvalid), "{id:?}");
    }
    rig.silent(node, from.eq);
}

fn regions_are_checked(kind: RigKind) {
    let rig = kind.rig();
    let node = rig.initiator();
    let side = target(&rig, 1000, BOTH);
    let (from, _) = source_of(&rig, 1, 64);
    for (offset, length) in
        [(0, 65), (64, 1), (65, 0), (1, 64), (u64::MAX, 1), (1, u64::MAX), (u64::MAX, 0)]
    {
        let put = node.put_region(from.md, offset, length, AckReq::NoAck, to(&rig), 0);
        assert!(
            matches!(put, Err(PtlError::MdIllegal | PtlError::MdInvalid | PtlError::Segv)),
            "{put:?}"
        );
        let get = node.get_region(from.md, offset, length, to(&rig));
        assert!(
            matches!(get, Err(PtlError::MdIllegal | PtlError::MdInvalid | PtlError::Segv)),
            "{get:?}"
        );
    }
    rig.silent(node, from.eq);
    rig.silent(rig.target(), side.eq);
}

fn distance_checks_the_process(kind: RigKind) {
    let rig = kind.rig();
    let PtlProcessId { nid, pid } = rig.initiator().id();
    for id in
        [PtlProcessId { nid, pid: 1 << 20 }, PtlProcessId { nid: nid + 9, pid }, PtlProcessId::ANY]
    {
        assert_eq!(rig.initiator().distance(id), Err(PtlError::ProcessInvalid), "{id:?}");
    }
}

fn identities_are_reported(kind: RigKind) {
    let rig = kind.rig();
    let user = sys::process::real_user();
    let mut seen = Vec::new();
    for node in rig.nodes() {
        assert_eq!(node.user_and_job().0, user);
        assert_eq!(node.user_and_job().1, rig.initiator().user_and_job().1);
        assert_ne!(node.id(), PtlProcessId::ANY);
        assert!(!seen.contains(&node.id()));
        seen.push(node.id());
    }
}
