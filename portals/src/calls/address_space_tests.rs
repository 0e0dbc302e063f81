//! Descriptors over the address space of a process. Any memory is a target; memory that does not
//! exist is refused and reported. Both hold by cross-memory attach and in frames.

use core::cell::Cell;
use core::ffi::c_void;
use core::sync::atomic::Ordering;

use super::{NetworkInterface, ScatteredPiece};
use crate::access_fault::AccessFault;
use crate::md_options::*;
use crate::nal::shm::AttachPolicy;
use crate::nal::shm::tests::fabric;
use crate::types::*;

const PT: u32 = 4;
const BITS: u64 = 7;
/// The first address of the descriptor.
const FIRST: usize = 1;

thread_local! {
    static FOUND: Cell<Option<AccessFault>> = const { Cell::new(None) };
}

/// Two processes; the second one exposes its address space.
fn pair(attach: AttachPolicy) -> Vec<NetworkInterface> {
    let mut nis = fabric(2, attach);
    nis.iter_mut().for_each(|ni| ni.set_access_handler(Box::new(|fault| FOUND.set(Some(*fault)))));
    let target = &nis[1];
    let me =
        target.me_attach(PT, PtlProcessId::ANY, BITS, 0, Unlink::Retain, InsPos::After).unwrap();
    let md = MemoryDescriptor {
        start: core::ptr::without_provenance_mut(FIRST),
        length: (1 << 62) - 1,
        threshold: THRESH_INF,
        max_size: 0,
        options: OP_PUT
            | OP_GET
            | MANAGE_REMOTE
            | EVENT_START_DISABLE
            | EVENT_END_DISABLE
            | ADDRESS_SPACE,
        user_ptr: core::ptr::null_mut(),
        eq: EqHandle::NONE,
    };
    // SAFETY: the kernel checks what is accessed; it is memory of these tests.
    unsafe { target.md_attach(me, &md, Unlink::Retain).unwrap() };
    nis
}

fn offset(at: *mut u8) -> Size {
    (at.expose_provenance() - FIRST) as Size
}

#[test]
fn any_memory_is_put_to_and_gotten_from_at_once() {
    let nis = pair(AttachPolicy::Allowed);
    let (a, initiator, target) = (&nis[0], nis[0].id(), nis[1].id());
    let (from, mut there, mut back) = ([7u8; 24], vec![0u8; 24], [0u8; 24]);
    let at = offset(there.as_mut_ptr());
    let piece = [MdIovec { base: from.as_ptr().cast_mut().cast(), len: 24 }];
    // SAFETY: arrays.
    assert_eq!(unsafe { a.put_at_once(piece, target, PT, 0, BITS, at, 0) }, Ok(Some(24)));
    assert_eq!(there, from);
    // SAFETY: as above.
    let got = unsafe { a.get_at_once(back.as_mut_ptr(), 24, target, PT, 0, BITS, at) };
    assert_eq!((got, back), (Ok(Some(24)), from));
    back = core::array::from_fn(|i| i as u8);
    let local = back.as_mut_ptr();
    let word = |i: u64, remote_offset| ScatteredPiece {
        local: local.wrapping_add(i as usize).cast::<c_void>(),
        length: 1,
        remote_offset,
    };
    let reversed: Vec<_> = (0..24).map(|i| word(i, at + 23 - i)).collect();
    // SAFETY: as above.
    assert!(unsafe { a.scattered_at_once(true, reversed.into_iter(), target, PT, 0, BITS) });
    assert!(there.iter().rev().eq(&back));
    assert_eq!(FOUND.take(), None);
    // Address 8 is no memory of any process here.
    // SAFETY: as above.
    assert!(unsafe { a.put_at_once(piece, target, PT, 0, BITS, 7, 0) }.is_err());
    let refused = |put, length| AccessFault::Target { put, initiator, target, address: 8, length };
    assert_eq!(FOUND.take(), Some(refused(true, 24)));
    // SAFETY: as above.
    let got = unsafe { a.get_at_once(back.as_mut_ptr(), 8, target, PT, 0, BITS, 7) };
    assert!(got.is_err() && FOUND.take() == Some(refused(false, 8)));
    let wrong = [word(0, at), word(1, 7)];
    // SAFETY: as above.
    assert!(!unsafe { a.scattered_at_once(true, wrong.into_iter(), target, PT, 0, BITS) });
    assert_eq!(FOUND.take(), Some(refused(true, 1)));
    let nowhere = [MdIovec { base: core::ptr::without_provenance_mut(8), len: 4 }];
    // SAFETY: the kernel alone reads the piece, and refuses it.
    assert!(unsafe { a.put_at_once(nowhere, target, PT, 0, BITS, at, 0) }.is_err());
    let local = AccessFault::Initiator { put: true, address: 8, length: 4 };
    assert_eq!(FOUND.take(), Some(local));
}

/// A process with the id of the peer and memory at the same address is not the peer, unless it has
/// its random number there.
#[test]
fn a_process_that_is_not_the_peer_is_not_reached() {
    let nis = pair(AttachPolicy::Allowed);
    let ident = &nis[1].state.peers.own.view.header().ident;
    ident.secret.fetch_xor(1, Ordering::Relaxed);
    let (from, mut there) = ([7u8; 24], vec![0u8; 24]);
    let at = offset(there.as_mut_ptr());
    let piece = [MdIovec { base: from.as_ptr().cast_mut().cast(), len: 24 }];
    // SAFETY: arrays.
    assert_eq!(unsafe { nis[0].put_at_once(piece, nis[1].id(), PT, 0, BITS, at, 0) }, Ok(None));
    assert!(!nis[0].attaches(nis[1].id()) && there == [0; 24]);
    ident.secret.fetch_xor(1, Ordering::Relaxed);
}

#[test]
fn frames_are_stored_by_the_kernel() {
    let nis = pair(AttachPolicy::Denied);
    let (a, b) = (&nis[0], &nis[1]);
    let (initiator, target) = (a.id(), b.id());
    let (mut from, mut there) = ([9u8; 24], vec![0u8; 24]);
    let at = offset(there.as_mut_ptr());
    let piece = [MdIovec { base: from.as_mut_ptr().cast(), len: 24 }];
    // SAFETY: arrays.
    assert_eq!(unsafe { a.put_at_once(piece, b.id(), PT, 0, BITS, at, 0) }, Ok(None));
    let eq = a.eq_alloc(64, None).unwrap();
    let next = |kind| loop {
        let event = a.eq_get(eq).unwrap().unwrap().event;
        if event.kind == kind {
            return event.ni_fail;
        }
    };
    let md = MemoryDescriptor {
        start: from.as_mut_ptr().cast(),
        length: 24,
        threshold: THRESH_INF,
        max_size: 0,
        options: 0,
        user_ptr: core::ptr::null_mut(),
        eq,
    };
    // SAFETY: an array that outlives the interface's use of it.
    let md = unsafe { a.md_bind(&md, Unlink::Retain).unwrap() };
    for (at, refused) in [(at, false), (7, true)] {
        let fault = |put| AccessFault::Target { put, initiator, target, address: 8, length: 24 };
        let expected = if refused { NiFail::Fail } else { NiFail::Ok };
        a.put(md, AckReq::Ack, b.id(), PT, 0, BITS, at, 0).unwrap();
        b.progress();
        assert_eq!(FOUND.take(), refused.then_some(fault(true)));
        assert_eq!(next(PtlEventKind::Ack), expected);
        a.get(md, b.id(), PT, 0, BITS, at).unwrap();
        b.progress();
        assert_eq!(FOUND.take(), refused.then_some(fault(false)));
        assert_eq!(next(PtlEventKind::ReplyEnd), expected);
    }
    assert_eq!((from, &there[..]), ([9; 24], &[9; 24][..]));
}
