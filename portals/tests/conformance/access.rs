//! Access control: "before the match list is looked at, the entry of the target's table that the
//! message names must admit sender and portal index". The entry checks the sender's user, job and
//! process.

use portals3::{JID_ANY, NID_ANY, PID_ANY, PT_INDEX_ANY, PtlError, PtlProcessId, UID_ANY};

use crate::common::*;
use crate::rig::{Rig, RigKind, To};

instantiate! {
    entry_zero_admits_the_processes_of_the_job
    an_entry_admits_who_fits_in_all_fields
    another_process_is_refused
    another_user_is_refused
    another_job_is_refused
    another_portal_index_is_refused
    wild_cards_admit_everybody
    a_refused_get_brings_nothing
    an_entry_can_be_changed
    indices_are_checked
}

const AC: u32 = 3;

/// Whether a put through entry [`AC`] arrives; if not, it has been counted.
fn admitted(rig: &Rig, side: QueuedMd) -> bool {
    let (from, _) = source_of(rig, 1, 1);
    let before = rig.target().dropped();
    put(rig, from, To { ac: AC, ..to(rig) }, 1);
    let dropped = rig.target().dropped() - before;
    match arrived(rig, side.eq).len() {
        0 => {
            assert_eq!(dropped, 1);
            false
        }
        count => {
            assert_eq!((count, dropped), (1, 0));
            true
        }
    }
}

fn entry_zero_admits_the_processes_of_the_job(kind: RigKind) {
    let rig = kind.rig();
    let side = target(&rig, 64, BOTH);
    let (from, _) = source_of(&rig, 1, 8);
    put(&rig, from, to(&rig), 4);
    assert_eq!(arrived(&rig, side.eq), [4]);
}

fn an_entry_admits_who_fits_in_all_fields(kind: RigKind) {
    let rig = kind.rig();
    let side = target(&rig, 64, BOTH);
    let sender = rig.initiator();
    let (uid, jid) = sender.user_and_job();
    rig.target().ac_entry(AC, sender.id(), uid, jid, PT).expect("PtlACEntry");
    assert!(admitted(&rig, side));
}

fn another_process_is_refused(kind: RigKind) {
    let rig = kind.rig();
    let side = target(&rig, 64, BOTH);
    let PtlProcessId { nid, pid } = rig.initiator().id();
    let others = [
        PtlProcessId { nid, pid: pid + 1 },
        PtlProcessId { nid: nid + 1, pid },
        PtlProcessId { nid: NID_ANY, pid: pid + 1 },
        PtlProcessId { nid: nid + 1, pid: PID_ANY },
    ];
    for other in others {
        rig.target().ac_entry(AC, other, UID_ANY, JID_ANY, PT_INDEX_ANY).expect("PtlACEntry");
        assert!(!admitted(&rig, side), "{other:?}");
    }
}

fn another_user_is_refused(kind: RigKind) {
    let rig = kind.rig();
    let side = target(&rig, 64, BOTH);
    let (uid, _) = rig.initiator().user_and_job();
    rig.target()
        .ac_entry(AC, PtlProcessId::ANY, uid + 1, JID_ANY, PT_INDEX_ANY)
        .expect("PtlACEntry");
    assert!(!admitted(&rig, side));
}

fn another_job_is_refused(kind: RigKind) {
    let rig = kind.rig();
    let side = target(&rig, 64, BOTH);
    let (_, jid) = rig.initiator().user_and_job();
    rig.target()
        .ac_entry(AC, PtlProcessId::ANY, UID_ANY, jid ^ 1, PT_INDEX_ANY)
        .expect("PtlACEntry");
    assert!(!admitted(&rig, side));
}

fn another_portal_index_is_refused(kind: RigKind) {
    let rig = kind.rig();
    let side = target(&rig, 64, BOTH);
    rig.target().ac_entry(AC, PtlProcessId::ANY, UID_ANY, JID_ANY, PT + 1).expect("PtlACEntry");
    assert!(!admitted(&rig, side));
}

fn wild_cards_admit_everybody(kind: RigKind) {
    let rig = kind.rig();
    let side = target(&rig, 64, BOTH);
    rig.target()
        .ac_entry(AC, PtlProcessId::ANY, UID_ANY, JID_ANY, PT_INDEX_ANY)
        .expect("PtlACEntry");
    assert!(admitted(&rig, side));
}

fn a_refused_get_brings_nothing(kind: RigKind) {
    let rig = kind.rig();
    let side = target(&rig, 64, BOTH);
    rig.target().ac_entry(AC, PtlProcessId::ANY, UID_ANY, JID_ANY, PT + 1).expect("PtlACEntry");
    let into = source(&rig, &[9; 8]);
    get(&rig, into, To { ac: AC, ..to(&rig) });
    rig.silent(rig.initiator(), into.eq);
    rig.silent(rig.target(), side.eq);
    assert_eq!(rig.target().dropped(), 1);
}

fn an_entry_can_be_changed(kind: RigKind) {
    let rig = kind.rig();
    let side = target(&rig, 64, BOTH);
    for (pt, due) in [(PT, true), (PT + 1, false), (PT_INDEX_ANY, true), (0, false), (PT, true)] {
        rig.target().ac_entry(AC, PtlProcessId::ANY, UID_ANY, JID_ANY, pt).expect("PtlACEntry");
        assert_eq!(admitted(&rig, side), due);
    }
}

fn indices_are_checked(kind: RigKind) {
    let rig = kind.rig();
    let node = rig.target();
    let limits = node.limits();
    let entry = |ac, pt| node.ac_entry(ac, PtlProcessId::ANY, UID_ANY, JID_ANY, pt);
    assert_eq!(entry(limits.max_ac_index, PT), Ok(()));
    assert_eq!(entry(limits.max_ac_index + 1, PT), Err(PtlError::AcIndexInvalid));
    assert_eq!(entry(AC, limits.max_pt_index), Ok(()));
    assert_eq!(entry(AC, limits.max_pt_index + 1), Err(PtlError::PtIndexInvalid));
}
