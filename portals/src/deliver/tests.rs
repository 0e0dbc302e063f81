//! Races of a delivery with the owner, step by step; and what a peer wrote.

use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use super::{ClaimResult, FindResult, Matched};
use crate::NetworkInterface;
use crate::arena::hazard::{HazardHold, HazardWord, NO_MD};
use crate::descriptor::state;
use crate::message::{MessageHeader, OpHalf, OpKind};
use crate::nal::shm::AttachPolicy;
use crate::nal::shm::tests::fabric;
use crate::types::md_options::*;
use crate::types::*;

const PT: u32 = 4;

fn header(initiator: &NetworkInterface) -> MessageHeader {
    MessageHeader {
        kind: OpKind::Put,
        initiator: initiator.state.peers.index,
        uid: initiator.state.uid,
        jid: initiator.state.jid,
        pt_index: PT,
        ac_index: 0,
        match_bits: 0,
        remote_offset: 0,
        rlength: 8,
        hdr_data: 0,
    }
}

fn md(ni: &NetworkInterface, threshold: i32, user: usize, eq: EqHandle) -> MemoryDescriptor {
    let start = ni.alloc(8, 8).unwrap().as_ptr().cast();
    let user_ptr = user as *mut _;
    MemoryDescriptor {
        start,
        length: 8,
        threshold,
        max_size: 0,
        options: OP_PUT | MANAGE_REMOTE,
        user_ptr,
        eq,
    }
}

fn attach(ni: &NetworkInterface, md: &MemoryDescriptor, unlink: Unlink) -> MdHandle {
    let me = ni.me_attach(PT, PtlProcessId::ANY, 0, !0, Unlink::Retain, InsPos::After).unwrap();
    // SAFETY: memory of the arena lives as long as the interface.
    unsafe { ni.md_attach(me, md, unlink).unwrap() }
}

fn claim_found<'a>(
    ni: &'a NetworkInterface,
    header: &MessageHeader,
) -> (Matched<'a>, HazardHold<'a>) {
    let find = ni.state.peers.find(&ni.state.peers.own, header);
    let FindResult::Found(found) = find else { panic!("nothing matches") };
    let hold = ni.state.peers.hold(HazardWord::new(ni.state.peers.index, found.md, NO_MD, NO_MD));
    match ni.state.peers.claim_found(&ni.state.peers.own, header, find, &hold, [NO_MD; 2]) {
        ClaimResult::Matched(matched) => (matched, hold),
        _ => panic!("it matched a moment ago"),
    }
}

/// A descriptor has unlinked itself and its owner has noticed, but its UNLINK event is not
/// posted yet: its record waits for that event.
#[test]
fn a_record_rests_until_its_unlink_event_is_read() {
    let ni =
        NetworkInterface::loopback(Some(NiLimits { max_mds: 1, ..NiLimits::DEFAULT })).unwrap();
    let eq = ni.eq_alloc(16, None).unwrap();
    attach(&ni, &md(&ni, 1, 77, eq), Unlink::Unlink);
    let header = header(&ni);
    let (matched, hold) = claim_found(&ni, &header);
    assert!(state::give_back(matched.cell, matched.traits));
    // The owner notices.
    ni.me_attach(PT, PtlProcessId::ANY, 0, !0, Unlink::Retain, InsPos::After).unwrap();
    let unlink = ni.state.peers.posting(&matched, &header, PtlEventKind::Unlink);
    ni.state
        .peers
        .post(&ni.state.peers.own, matched.traits.eq().unwrap(), matched.eq_key, &unlink)
        .unwrap();
    hold.clear(true);
    let other = md(&ni, 1, 88, eq);
    // SAFETY: as in `attach`.
    let bind = || unsafe { ni.md_bind(&other, Unlink::Retain) };
    assert_eq!(bind(), Err(PtlError::NoSpace));
    assert_eq!(ni.eq_get(eq).unwrap().unwrap().event.md.user_ptr as usize, 77);
    assert!(bind().is_ok());
}

/// A descriptor that unlinked itself while its owner was about to unlink it is reported invalid,
/// once.
#[test]
fn unlinking_what_has_just_unlinked_itself() {
    let ni = NetworkInterface::loopback(None).unwrap();
    let eq = ni.eq_alloc(16, None).unwrap();
    let handle = attach(&ni, &md(&ni, 1, 0, eq), Unlink::Unlink);
    let local = ni.state.local(handle).unwrap();
    let (matched, hold) = claim_found(&ni, &header(&ni));
    ni.state.peers.post_end(
        &ni.state.peers.own,
        &matched,
        &header(&ni),
        OpHalf::Arrival(OpKind::Put),
        0,
        true,
    );
    hold.clear(true);
    assert_eq!(
        ni.state.try_remove(&mut ni.state.owner.lock(), &local, false),
        Err(PtlError::MdInvalid)
    );
    assert_eq!(ni.md_unlink(handle), Err(PtlError::MdInvalid));
}

/// A key that a peer writes for its queue is checked before an event is posted.
#[test]
fn a_peer_that_names_no_queue_gets_no_event() {
    let nodes = fabric(2, AttachPolicy::Denied);
    let (a, b) = (&nodes[0], &nodes[1]);
    let eq = b.eq_alloc(16, None).unwrap();
    let target = attach(b, &md(b, THRESH_INF, 0, eq), Unlink::Retain);
    // SAFETY: as in `attach`.
    let source =
        unsafe { a.md_bind(&md(a, THRESH_INF, 0, EqHandle::NONE), Unlink::Retain).unwrap() };
    for key in [0, 1, u64::MAX] {
        b.state.own_cell(target.0 & 0xffff).eq_key.store(key, Ordering::Relaxed);
        a.put(source, AckReq::NoAck, b.id(), PT, 0, 0, 0, 0).unwrap();
        let events = usize::from(key == b.state.owner.lock().rings[(eq.0 & 0xffff) as usize].key);
        assert_eq!(core::iter::from_fn(|| b.eq_get(eq).unwrap()).count(), 2 * events);
    }
}

/// Framed messages of a descriptor that unlinks itself share one operation in flight, so there may
/// be more than the state word can count. UNLINK follows the last END.
#[test]
fn framed_messages_share_one_operation_in_flight() {
    const MESSAGES: usize = 1200;
    let ni = NetworkInterface::loopback(None).unwrap();
    let eq = ni.eq_alloc(4096, None).unwrap();
    let target = attach(&ni, &md(&ni, MESSAGES as i32, 0, eq), Unlink::Unlink);
    let state = &ni.state.own_cell(target.0 & 0xffff).state.0;
    let mut under_way = Vec::new();
    for _ in 0..MESSAGES {
        under_way.push(ni.state.arrival_begin(&header(&ni)).unwrap());
        assert_eq!(state.load(Ordering::Relaxed) & state::FLIGHTS, state::FLIGHT);
    }
    assert_eq!(ni.md_unlink(target), Err(PtlError::MdInUse));
    for transfer in under_way {
        ni.state.transfer_end(transfer, true);
    }
    let kinds: Vec<_> =
        core::iter::from_fn(|| ni.eq_get(eq).unwrap()).map(|e| e.event.kind).collect();
    assert_eq!(kinds.len(), 2 * MESSAGES + 1);
    assert_eq!(kinds.last(), Some(&PtlEventKind::Unlink));
    assert_eq!(kinds.iter().filter(|&&kind| kind == PtlEventKind::Unlink).count(), 1);
}

/// A descriptor that counts as many operations in flight as it can, and that a message would not
/// fit anyway, is passed over like any other.
#[test]
fn a_full_descriptor_that_does_not_fit_is_passed_over() {
    let ni = NetworkInterface::loopback(None).unwrap();
    let full = attach(&ni, &md(&ni, 5000, 0, EqHandle::NONE), Unlink::Unlink);
    let next = MemoryDescriptor { length: 16, ..md(&ni, THRESH_INF, 0, EqHandle::NONE) };
    let next = MemoryDescriptor { start: ni.alloc(16, 8).unwrap().as_ptr().cast(), ..next };
    let next = attach(&ni, &next, Unlink::Retain);
    let state = &ni.state.own_cell(full.0 & 0xffff).state.0;
    state.fetch_or(state::FLIGHTS, Ordering::Relaxed);
    let header = MessageHeader { rlength: 16, ..header(&ni) };
    let transfer = ni.state.arrival_begin(&header).unwrap();
    assert_eq!(transfer.md, next);
    ni.state.transfer_end(transfer, true);
}
