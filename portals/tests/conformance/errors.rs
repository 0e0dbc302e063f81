//! Limits and error codes: every one that the specification documents for a call.

use portals3::md_options::{IOVEC, OP_PUT};
use portals3::{
    AckReq, EqHandle, Error, InsPos, Limits, MdHandle, MeHandle, NID_ANY, PID_ANY, ProcessId,
    Unlink,
};

use crate::common::*;
use crate::rig::{Kind, To, md};

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
    identities_are_told
}

fn limits_are_told_and_kept(kind: Kind) {
    let asked = Limits {
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
        let attached = node.me_attach(pt, ProcessId::ANY, 0, !0, Unlink::Retain, InsPos::After);
        assert!(attached.is_ok());
        assert_eq!(rig.initiator().put(from.md, AckReq::NoAck, to(&rig), 0), Ok(()));
    }
}

fn me_attach_checks_the_portal_index(kind: Kind) {
    let rig = kind.rig();
    let node = rig.target();
    let limit = node.limits().max_pt_index;
    let attach = |pt| node.me_attach(pt, ProcessId::ANY, 0, 0, Unlink::Retain, InsPos::After);
    assert!(attach(0).is_ok() && attach(limit).is_ok());
    assert_eq!(attach(limit + 1), Err(Error::PtIndexInvalid));
    assert_eq!(attach(u32::MAX), Err(Error::PtIndexInvalid));
}

fn me_calls_check_the_process(kind: Kind) {
    // Whether a process that cannot exist is refused or only never heard of is a habit; wild cards are fine.
    let rig = kind.rig();
    let node = rig.target();
    for id in [
        ProcessId { nid: NID_ANY, pid: 1 << 30 },
        ProcessId { nid: 1 << 30, pid: PID_ANY },
        ProcessId { nid: 1 << 30, pid: 1 << 30 },
    ] {
        let result = node.me_attach(PT, id, 0, !0, Unlink::Retain, InsPos::After);
        assert!(matches!(result, Ok(_) | Err(Error::ProcessInvalid)), "{result:?}");
    }
    assert!(node.me_attach(PT, ProcessId::ANY, 0, !0, Unlink::Retain, InsPos::After).is_ok());
}

fn me_calls_check_the_handle(kind: Kind) {
    let rig = kind.rig();
    let node = rig.target();
    for number in [0x00ff_fff0, u32::MAX, 0x7fff_ffff] {
        let me = MeHandle(number);
        assert_eq!(node.me_unlink(me), Err(Error::MeInvalid));
        let insert = node.me_insert(me, ProcessId::ANY, 0, 0, Unlink::Retain, InsPos::After);
        assert_eq!(insert, Err(Error::MeInvalid));
        let wanted = md(node.memory(8), BOTH, EqHandle::NONE);
        assert_eq!(node.md_attach(me, wanted, Unlink::Retain), Err(Error::MeInvalid));
    }
}

fn md_calls_check_the_handle(kind: Kind) {
    let rig = kind.rig();
    let node = rig.target();
    for number in [0x00ff_fff0, u32::MAX, 0x7fff_ffff] {
        let handle = MdHandle(number);
        assert_eq!(node.md_unlink(handle), Err(Error::MdInvalid));
        assert_eq!(node.md_update(handle, None, None, EqHandle::NONE), Err(Error::MdInvalid));
    }
}

fn md_attach_and_bind_check_the_queue(kind: Kind) {
    let rig = kind.rig();
    let node = rig.target();
    let gone = node.eq_alloc(4).expect("PtlEQAlloc");
    node.eq_free(gone).expect("PtlEQFree");
    for eq in [gone, EqHandle(4711)] {
        let wanted = md(node.memory(8), BOTH, eq);
        assert_eq!(node.md_bind(wanted, Unlink::Retain), Err(Error::EqInvalid));
        let me = entry(node);
        assert_eq!(node.md_attach(me, wanted, Unlink::Retain), Err(Error::EqInvalid));
        let fine = md(node.memory(8), BOTH, EqHandle::NONE);
        assert!(node.md_attach(me, fine, Unlink::Retain).is_ok(), "the entry is still free");
    }
}

fn md_attach_and_bind_check_the_descriptor(kind: Kind) {
    let rig = kind.rig();
    let node = rig.target();
    let fine = md(node.memory(64), OP_PUT, EqHandle::NONE);
    let illegal = [
        portals3::Md { threshold: -2, ..fine },
        portals3::Md { length: u64::MAX, ..fine },
        portals3::Md { start: core::ptr::null_mut(), ..fine },
        portals3::Md { start: core::ptr::null_mut(), length: 1, options: OP_PUT | IOVEC, ..fine },
    ];
    for wanted in illegal {
        let refused =
            |result| matches!(result, Err(Error::MdIllegal | Error::Segv | Error::NoSpace));
        assert!(refused(node.md_bind(wanted, Unlink::Retain)), "{wanted:?}");
        assert!(refused(node.md_attach(entry(node), wanted, Unlink::Retain)), "{wanted:?}");
    }
    // Nothing at nowhere is something.
    let nothing = portals3::Md { start: core::ptr::null_mut(), length: 0, ..fine };
    assert!(node.md_bind(nothing, Unlink::Retain).is_ok());
}

fn put_and_get_check_the_descriptor(kind: Kind) {
    let rig = kind.rig();
    let node = rig.initiator();
    let (fine, _) = source_of(&rig, 1, 8);
    for number in [0x00ff_fff0, u32::MAX, 0x7fff_ffff] {
        let bad = MdHandle(number);
        assert_eq!(node.put(bad, AckReq::NoAck, to(&rig), 0), Err(Error::MdInvalid));
        assert_eq!(node.put_region(bad, 0, 0, AckReq::NoAck, to(&rig), 0), Err(Error::MdInvalid));
        assert_eq!(node.get(bad, to(&rig)), Err(Error::MdInvalid));
        assert_eq!(node.get_region(bad, 0, 0, to(&rig)), Err(Error::MdInvalid));
        assert_eq!(node.get_put(bad, fine.md, to(&rig), 0), Err(Error::MdInvalid));
        assert_eq!(node.get_put(fine.md, bad, to(&rig), 0), Err(Error::MdInvalid));
    }
    rig.silent(node, fine.eq);
}

fn put_and_get_check_the_target(kind: Kind) {
    let rig = kind.rig();
    let node = rig.initiator();
    let (from, _) = source_of(&rig, 1, 8);
    let (into, _) = source_of(&rig, 2, 8);
    let ProcessId { nid, pid } = rig.target().id();
    for id in [
        ProcessId { nid, pid: 1 << 20 },
        ProcessId { nid: nid + 1, pid },
        ProcessId { nid, pid: PID_ANY },
        ProcessId { nid: NID_ANY, pid },
        ProcessId::ANY,
    ] {
        let to = To { id, ..to(&rig) };
        assert_eq!(node.put(from.md, AckReq::NoAck, to, 0), Err(Error::ProcessInvalid), "{id:?}");
        assert_eq!(node.get(from.md, to), Err(Error::ProcessInvalid), "{id:?}");
        assert_eq!(node.get_put(into.md, from.md, to, 0), Err(Error::ProcessInvalid), "{id:?}");
    }
    rig.silent(node, from.eq);
}

fn regions_are_checked(kind: Kind) {
    let rig = kind.rig();
    let node = rig.initiator();
    let side = target(&rig, 1000, BOTH);
    let (from, _) = source_of(&rig, 1, 64);
    for (offset, length) in
        [(0, 65), (64, 1), (65, 0), (1, 64), (u64::MAX, 1), (1, u64::MAX), (u64::MAX, 0)]
    {
        let put = node.put_region(from.md, offset, length, AckReq::NoAck, to(&rig), 0);
        assert!(matches!(put, Err(Error::MdIllegal | Error::MdInvalid | Error::Segv)), "{put:?}");
        let get = node.get_region(from.md, offset, length, to(&rig));
        assert!(matches!(get, Err(Error::MdIllegal | Error::MdInvalid | Error::Segv)), "{get:?}");
    }
    rig.silent(node, from.eq);
    rig.silent(rig.target(), side.eq);
}

fn distance_checks_the_process(kind: Kind) {
    let rig = kind.rig();
    let ProcessId { nid, pid } = rig.initiator().id();
    for id in [ProcessId { nid, pid: 1 << 20 }, ProcessId { nid: nid + 1, pid }, ProcessId::ANY] {
        assert_eq!(rig.initiator().distance(id), Err(Error::ProcessInvalid), "{id:?}");
    }
}

fn identities_are_told(kind: Kind) {
    let rig = kind.rig();
    // SAFETY: cannot fail and touches no memory.
    let user = unsafe { libc::getuid() };
    let mut seen = Vec::new();
    for node in rig.nodes() {
        assert_eq!(node.user_and_job().0, user);
        assert_eq!(node.user_and_job().1, rig.initiator().user_and_job().1);
        assert_ne!(node.id(), ProcessId::ANY);
        assert!(!seen.contains(&node.id()));
        seen.push(node.id());
    }
}
