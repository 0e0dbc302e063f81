//! Words of the shared memory that a peer has damaged: they are found, and what they say is not
//! done.

use core::cell::Cell;
use core::sync::atomic::AtomicU64;
use core::sync::atomic::Ordering::Relaxed;

use super::NetworkInterface;
use crate::arena::MdCell;
use crate::arena::hazard::{HazardWord, NO_MD};
use crate::arena::ring::{published, reserved};
use crate::descriptor::state::FLIGHTS;
use crate::md_options::*;
use crate::nal::shm::AttachPolicy;
use crate::nal::shm::tests::fabric;
use crate::test_memory::md;
use crate::types::*;

const PT: u32 = 4;
const BITS: u64 = 7;

thread_local! {
    static FOUND: Cell<Option<Damage>> = const { Cell::new(None) };
}

fn found(damage: &Damage) {
    FOUND.set(Some(*damage));
}

fn word(word: &AtomicU64) -> u64 {
    word.load(Relaxed)
}

/// The damage that was reported since the last call.
fn taken() -> Option<Damage> {
    FOUND.take()
}

fn interface() -> NetworkInterface {
    let mut ni = NetworkInterface::loopback(None).unwrap();
    ni.set_damage_handler(found);
    ni
}

/// Attaches `memory` as the target of puts and gets.
fn attach(ni: &NetworkInterface, memory: &mut [u8], options: u32) -> MdHandle {
    let me = ni.me_attach(PT, PtlProcessId::ANY, BITS, 0, Unlink::Retain, InsPos::After).unwrap();
    let options = options | MANAGE_REMOTE;
    // SAFETY: the memory outlives the interface's use of it.
    unsafe { ni.md_attach(me, &md(memory, options, EqHandle::NONE), Unlink::Retain) }.unwrap()
}

/// Puts all of `source` to offset `at` of what is attached: whether it arrived.
fn put(ni: &NetworkInterface, source: &mut [u8], at: u64) -> bool {
    let eq = ni.eq_alloc(8, None).unwrap();
    // SAFETY: as in `attach`.
    let from = unsafe { ni.md_bind(&md(source, 0, eq), Unlink::Retain) }.unwrap();
    ni.put(from, AckReq::Ack, ni.id(), PT, 0, BITS, at, 0).unwrap();
    let mut arrived = false;
    while let Some(FetchedEvent { event, .. }) = ni.eq_get(eq).unwrap() {
        arrived |= event.kind == PtlEventKind::Ack && event.ni_fail == NiFail::Ok;
    }
    ni.md_unlink(from).unwrap();
    ni.eq_free(eq).unwrap();
    arrived
}

/// A message of a process to itself is bounded by the private record of the descriptor, whatever
/// a peer has written to the cell.
#[test]
fn a_message_to_oneself_stays_within_the_private_record() {
    let ni = interface();
    let mut memory = [1u8; 64];
    let (target, _beyond) = memory.split_at_mut(32);
    let handle = attach(&ni, target, OP_PUT | OP_GET);
    let cell = ni.state.own_cell(handle.0 & 0xffff);
    assert!(put(&ni, &mut [2; 8], 24));
    assert_eq!(taken(), None);
    cell.length.store(64, Relaxed);
    assert!(!put(&ni, &mut [3; 8], 25));
    assert_eq!(taken(), Some(Damage::Address { process: 0, md: handle.0 & 0xffff }));
    // A peer that knows the seal.
    let (traits, start) = (word(&cell.traits), word(&cell.start));
    cell.seal.store(MdCell::seal_of(traits, 64, start, word(&cell.address), 0), Relaxed);
    for at in [25, 32, 56] {
        assert!(!put(&ni, &mut [3; 8], at), "{at}");
        assert_eq!(taken(), Some(Damage::Descriptor { md: handle.0 & 0xffff }));
    }
    assert_eq!((&memory[24..32], &memory[32..]), (&[2u8; 8][..], &[1u8; 32][..]));
}

/// A descriptor that is no target, or no target of puts, or gone, does not become one through
/// its cell. There a peer may link it to a match entry or grant options.
#[test]
fn a_message_to_oneself_reaches_targets_only() {
    let ni = interface();
    let (mut target, mut readable, mut source) = ([1u8; 16], [1u8; 16], [1u8; 16]);
    attach(&ni, &mut target, OP_PUT);
    // SAFETY: the memory outlives the interface's use of it.
    let bound = unsafe {
        ni.md_bind(&md(&mut source, OP_PUT | MANAGE_REMOTE, EqHandle::NONE), Unlink::Retain)
    };
    let bound = bound.unwrap();
    let view = &ni.state.peers.own.view;
    let entry = (0..ni.limits().max_mes)
        .filter_map(|me| view.me(me))
        .find(|me| me.match_bits.load(Relaxed) == BITS && me.md.load(Relaxed) != 0)
        .unwrap();
    let aimed_at = |md: MdHandle| entry.md.store((md.0 & 0xffff) + 1, Relaxed);
    aimed_at(bound);
    assert!(!put(&ni, &mut [2; 8], 0) && taken().is_some());
    ni.md_unlink(bound).unwrap();
    assert!(!put(&ni, &mut [2; 8], 0) && taken().is_some());
    let other = NetworkInterface::loopback(None).unwrap();
    let handle = attach(&other, &mut readable, OP_GET);
    let traits = &other.state.own_cell(handle.0 & 0xffff).traits;
    traits.store(traits.load(Relaxed) | u64::from(OP_PUT), Relaxed);
    assert!(!put(&other, &mut [2; 8], 0));
    assert_eq!((target, readable, source), ([1; 16], [1; 16], [1; 16]));
}

/// What a peer says of its private memory, where deliverers cannot bound it, is used only if no
/// process has changed it.
#[test]
fn bytes_go_to_no_other_address_than_the_owner_wrote() {
    let mut nis = fabric(2, AttachPolicy::Allowed);
    nis[0].set_damage_handler(found);
    let (a, b) = (&nis[0], &nis[1]);
    let (mut target, mut other, mut source) = ([1u8; 64], [1u8; 64], [2u8; 8]);
    let one = attach(b, &mut target[..32], OP_PUT);
    let mut piece = [MdIovec { base: target[32..].as_mut_ptr().cast(), len: 32 }];
    let me = b.me_attach(PT + 1, PtlProcessId::ANY, BITS, 0, Unlink::Retain, InsPos::After);
    let scattered = MemoryDescriptor {
        start: piece.as_mut_ptr().cast(),
        length: 1,
        ..md(&mut [], OP_PUT | IOVEC | MANAGE_REMOTE, EqHandle::NONE)
    };
    // SAFETY: as in `attach`.
    let two = unsafe { b.md_attach(me.unwrap(), &scattered, Unlink::Retain) }.unwrap();
    // SAFETY: as above.
    let from = unsafe { a.md_bind(&md(&mut source, 0, EqHandle::NONE), Unlink::Retain).unwrap() };
    let put = |pt, at| {
        a.put(from, AckReq::NoAck, b.id(), pt, 0, BITS, at, 0).unwrap();
        taken()
    };
    assert_eq!((put(PT, 0), put(PT + 1, 0)), (None, None));
    // A process that exists would be written to.
    b.state.peers.own.view.header().ident.os_pid.store(0x3fff_ffff, Relaxed);
    assert_eq!((put(PT, 8), put(PT + 1, 8)), (None, None));
    let written = [[2; 16], [1; 16], [2; 16], [1; 16]].concat();
    assert_eq!(target[..], written);
    let elsewhere = other.as_mut_ptr().addr() as u64;
    let (cell, vector) = (b.state.own_cell(one.0 & 0xffff), b.state.own_cell(two.0 & 0xffff));
    let view = &b.state.peers.own.view;
    let table = view.iov(sys::peer::Peer::new(vector.iov.load(Relaxed))).unwrap();
    for (pt, md, word, value) in [
        (PT, one, &cell.address, elsewhere),
        (PT, one, &cell.length, 64),
        (PT + 1, two, &vector.iov, 0),
        (PT + 1, two, &vector.length, 64),
        (PT + 1, two, &table.pieces[0].address, elsewhere),
        (PT + 1, two, &table.pieces[0].length, 64),
    ] {
        let before = word.swap(value, Relaxed);
        let damage = Damage::Address { process: 1, md: md.0 & 0xffff };
        let found = put(pt, 16);
        // Where no table is, nothing is said about its seals.
        assert!(found == Some(damage) || value == 0 && found.is_none(), "{value:#x}");
        word.store(before, Relaxed);
    }
    assert_eq!(target[..], written);
    assert_eq!(other, [1; 64]);
    assert_eq!((put(PT, 16), put(PT + 1, 16)), (None, None));
}

/// Bytes for a segment that is mapped here go where the owner said or nowhere. They go along a
/// match list, along a cached match, and by events, which a descriptor that counts needs.
#[test]
fn bytes_go_to_no_other_place_of_a_segment_than_the_owner_wrote() {
    let mut nis = fabric(2, AttachPolicy::Denied);
    nis[0].set_damage_handler(found);
    let mut segments = [[1u8; 256], [1u8; 256]];
    let bases = segments.each_mut().map(|segment| segment.as_mut_ptr());
    for (ni, base) in nis.iter().zip(bases) {
        // SAFETY: the segments outlive the interfaces' use of them.
        unsafe { ni.expose(base, 256, &bases, &[256; 2]) };
    }
    let (a, b) = (&nis[0], &nis[1]);
    let mut source = [2u8; 8];
    // SAFETY: as in `attach`.
    let from = unsafe { a.md_bind(&md(&mut source, 0, EqHandle::NONE), Unlink::Retain).unwrap() };
    let put = || {
        a.put(from, AckReq::NoAck, b.id(), PT, 0, BITS, 0, 0).unwrap();
        taken()
    };
    for (threshold, cached) in [(THRESH_INF, false), (THRESH_INF, true), (9, false), (9, true)] {
        let me = b.me_attach(PT, PtlProcessId::ANY, BITS, 0, Unlink::Retain, InsPos::After);
        let md = MemoryDescriptor {
            start: bases[1].wrapping_add(64).cast(),
            length: 64,
            threshold,
            ..md(&mut [], OP_PUT | MANAGE_REMOTE, EqHandle::NONE)
        };
        // SAFETY: as above.
        let handle = unsafe { b.md_attach(me.unwrap(), &md, Unlink::Unlink) }.unwrap();
        let cell = b.state.own_cell(handle.0 & 0xffff);
        if cached {
            assert_eq!(put(), None);
            assert_eq!(segments[1][64..72], [2; 8]);
        }
        for (word, value) in [
            (&cell.start, 0),
            (&cell.length, 65),
            (&cell.traits, word(&cell.traits) & !(0xff << 32)),
        ] {
            segments[1].fill(1);
            let before = word.swap(value, Relaxed);
            let damage = Damage::Address { process: 1, md: handle.0 & 0xffff };
            let found = put();
            word.store(before, Relaxed);
            // A cached match does not read the words again, and is what the owner wrote.
            let arrived = segments[1][64..72] == [2; 8];
            assert!(found == Some(damage) || cached && found.is_none() && arrived, "{found:?}");
            assert_eq!(arrived, found.is_none());
            segments[1][64..72].fill(1);
            assert_eq!(segments[1], [1; 256]);
        }
        b.md_unlink(handle).unwrap();
    }
}

/// A descriptor that counts as many operations in flight as it can, and never fewer, is waited for
/// no longer than real ones could take.
#[test]
fn operations_in_flight_that_do_not_exist_are_no_reason_to_wait() {
    let mut nis = fabric(2, AttachPolicy::Allowed);
    nis[0].set_damage_handler(found);
    let (a, b) = (&nis[0], &nis[1]);
    let (mut target, mut source) = ([1u8; 8], [2u8; 8]);
    let me = b.me_attach(PT, PtlProcessId::ANY, BITS, 0, Unlink::Retain, InsPos::After).unwrap();
    let once = MemoryDescriptor {
        threshold: 9,
        ..md(&mut target, OP_PUT | MANAGE_REMOTE, EqHandle::NONE)
    };
    // SAFETY: as in `attach`.
    let handle = unsafe { b.md_attach(me, &once, Unlink::Unlink) }.unwrap();
    // SAFETY: as above.
    let from = unsafe { a.md_bind(&md(&mut source, 0, EqHandle::NONE), Unlink::Retain) }.unwrap();
    let state = &b.state.own_cell(handle.0 & 0xffff).state.0;
    state.fetch_or(FLIGHTS, Relaxed);
    a.put(from, AckReq::NoAck, b.id(), PT, 0, BITS, 0, 0).unwrap();
    assert_eq!(taken(), Some(Damage::Full { process: 1, md: handle.0 & 0xffff }));
    state.fetch_and(!FLIGHTS, Relaxed);
    a.put(from, AckReq::NoAck, b.id(), PT, 0, BITS, 0, 0).unwrap();
    assert_eq!((taken(), target), (None, [2; 8]));
}

/// An event that names a descriptor which does not exist is reported and skipped.
#[test]
fn an_event_of_no_descriptor_is_reported() {
    let ni = interface();
    let eq = ni.eq_alloc(8, None).unwrap();
    let watch = ni.eq_watch(eq).unwrap();
    let mut memory = [0u8; 8];
    let me = ni.me_attach(PT, PtlProcessId::ANY, BITS, 0, Unlink::Retain, InsPos::After).unwrap();
    let target = md(&mut memory, OP_PUT | MANAGE_REMOTE | EVENT_START_DISABLE, eq);
    // SAFETY: the memory outlives the interface's use of it.
    unsafe { ni.md_attach(me, &target, Unlink::Retain) }.unwrap();
    let slots = ni.state.peers.own.rings[ni.state.eq_index(eq).unwrap() as usize].slots();
    // Another generation, another index, an index beyond the table.
    for flipped in [1u64 << 48, 1 << 32, 0x8000 << 32] {
        for take in 0..2 {
            put(&ni, &mut [1; 8], 0);
            let position =
                ni.state.eqs[ni.state.eq_index(eq).unwrap() as usize].next.load(Relaxed);
            slots.at(position).what.fetch_xor(flipped, Relaxed);
            put(&ni, &mut [1; 8], 0);
            let inline = &mut InlineWords::default();
            let intact = match take {
                0 => ni.eq_get(eq).unwrap().unwrap().event.sequence == (position + 1) as Seq,
                _ => ni.eq_next(&watch, inline).is_some(),
            };
            assert!(intact && ni.eq_is_quiet(&watch));
            let expected = Damage::Event { queue: eq.0 & 0xffff, position, initiator: 0 };
            assert_eq!(taken(), Some(expected));
        }
    }
}

/// A control word that no producer stores is reported when the consumer is at it. So is a
/// claim of a process that delivers nothing.
#[test]
fn a_slot_that_no_producer_left_so_is_reported() {
    let mut nis = fabric(2, AttachPolicy::Denied);
    nis[0].set_damage_handler(found);
    let (ni, peer) = (&nis[0], &nis[1]);
    let eq = ni.eq_alloc(4, None).unwrap();
    let queue = eq.0 & 0xffff;
    let position = 8;
    let slots = ni.state.peers.own.rings[queue as usize].slots();
    let control = |position| &slots.at(position).control;
    let damage = |control| Some(Damage::Slot { queue, position, control });
    let check = || {
        ni.check_arena();
        taken()
    };
    assert_eq!(check(), None);
    for word in [1, 0xdead_beef, published(12), reserved(position, 9)] {
        control(position).store(word, Relaxed);
        assert_eq!(check(), damage(word), "{word:#x}");
    }
    // Claimed by a process that delivers to us; by one that delivers elsewhere or nothing.
    let claimed = reserved(position, 1);
    control(position).store(claimed, Relaxed);
    assert_eq!(check(), damage(claimed));
    let hold = peer.state.peers.hold(HazardWord::new(0, 3, NO_MD, NO_MD));
    assert_eq!(check(), None);
    hold.change(HazardWord::own(3, 4));
    assert_eq!(check(), damage(claimed));
    hold.clear(false);
    // Claimed by this process itself.
    control(position).store(reserved(position, 0), Relaxed);
    assert_eq!(check(), damage(reserved(position, 0)));
    let hold = ni.state.peers.hold(HazardWord::own(3, 4));
    assert_eq!(check(), None);
    hold.clear(false);
    // Free, although the next position has been claimed.
    control(position).store(0, Relaxed);
    control(position + 1).store(published(position + 1), Relaxed);
    assert_eq!(check(), damage(0));
    control(position).store(published(position), Relaxed);
    assert_eq!(check(), None);
}

/// An event that was destroyed after it was posted is missed, even if it was the last one. Its
/// producer knows that it has claimed the slot.
#[test]
fn the_last_event_is_missed_if_it_was_destroyed() {
    let mut nis = fabric(3, AttachPolicy::Denied);
    nis[0].set_damage_handler(found);
    let (owner, peer) = (&nis[0], &nis[1]);
    let eq = owner.eq_alloc(4, None).unwrap();
    let mut memory = [0u8; 8];
    let me = owner.me_attach(PT, PtlProcessId::ANY, BITS, 0, Unlink::Retain, InsPos::After);
    let target = md(&mut memory[..0], OP_PUT | MANAGE_REMOTE | EVENT_START_DISABLE, eq);
    // SAFETY: no bytes, here and below.
    unsafe { owner.md_attach(me.unwrap(), &target, Unlink::Retain) }.unwrap();
    let queue = eq.0 & 0xffff;
    let slots = owner.state.peers.own.rings[queue as usize].slots();
    let check = || {
        owner.check_arena();
        taken()
    };
    let send = |from: &NetworkInterface| {
        // SAFETY: as above.
        let source = unsafe { from.md_bind(&md(&mut [], 0, EqHandle::NONE), Unlink::Retain) };
        from.put(source.unwrap(), AckReq::NoAck, owner.id(), PT, 0, BITS, 0, 0).unwrap();
    };
    for (round, (from, is_other)) in [(peer, true), (owner, false)].into_iter().enumerate() {
        let position = 8 + round as u64;
        send(from);
        let control = &slots.at(position).control;
        let posted = control.swap(published(position.wrapping_sub(4)), Relaxed);
        // Nothing shows an event of another process until that process reports it.
        if is_other {
            assert_eq!(check(), None);
            nis[2].check_arena();
            from.check_arena();
        }
        let damage = Damage::Slot { queue, position, control: published(position - 4) };
        assert_eq!(check(), Some(damage));
        control.store(posted, Relaxed);
        assert_eq!(check(), None);
        assert!(owner.eq_get(eq).unwrap().is_some());
        from.check_arena();
        assert_eq!(check(), None);
    }
    // A position of another queue with this index counts for nothing.
    let cell = owner.state.eq_cell(queue);
    cell.losses.claimed.fetch_add(1 << 40 | 2, Relaxed);
    assert_eq!(check(), None);
    cell.losses.claimed.fetch_sub(1 << 40, Relaxed);
    assert!(check().is_some());
}
