//! Descriptors of an interface that demands registration: they lock what they cover, and a put
//! that comes after their end is dropped.

use super::NetworkInterface;
use crate::md_options::*;
use crate::nal::shm::AttachPolicy;
use crate::nal::shm::tests::fabric;
use crate::types::*;
use sys::memory::{Mapping, page_size};

const PT: u32 = 4;

/// The second of two processes demands registration, and has a descriptor with these match bits.
fn target_with(attach: AttachPolicy, memory: &Mapping, bits: u64) -> Exposed {
    let mut nis = fabric(2, attach);
    nis[1].expect_no_loss();
    nis.iter_mut().for_each(|ni| {
        ni.set_damage_handler(|damage| panic!("{damage}"));
        ni.demand_registration(PT);
    });
    let me = entry(&nis[1], bits);
    let md = attach_at(&nis[1], me, memory.base().as_ptr(), 2 * page_size()).unwrap();
    Exposed { nis, md, me }
}

struct Exposed {
    nis: Vec<NetworkInterface>,
    md: MdHandle,
    me: MeHandle,
}

fn entry(ni: &NetworkInterface, bits: u64) -> MeHandle {
    ni.me_attach(PT, PtlProcessId::ANY, bits, 0, Unlink::Retain, InsPos::After).unwrap()
}

fn attach_at(
    ni: &NetworkInterface,
    me: MeHandle,
    start: *mut u8,
    bytes: usize,
) -> Result<MdHandle, PtlError> {
    let md = MemoryDescriptor {
        start: start.cast(),
        length: bytes as u64,
        threshold: THRESH_INF,
        max_size: 0,
        options: OP_PUT | OP_GET | MANAGE_REMOTE | EVENT_START_DISABLE | EVENT_END_DISABLE,
        user_ptr: core::ptr::null_mut(),
        eq: EqHandle::NONE,
    };
    // SAFETY: memory that outlives the interface, or that the kernel checks.
    unsafe { ni.md_attach(me, &md, Unlink::Retain) }
}

fn put(nis: &[NetworkInterface], bits: u64, byte: u8) -> Result<Option<Size>, PtlError> {
    let from = [byte; 8];
    let piece = [MdIovec { base: from.as_ptr().cast_mut().cast(), len: 8 }];
    // SAFETY: an array.
    unsafe { nis[0].put_at_once(piece, nis[1].id(), PT, 0, bits, 16, 0) }
}

#[test]
fn a_descriptor_locks_its_memory_and_what_comes_late_is_dropped() {
    let memory = Mapping::anonymous(3 * page_size()).unwrap();
    let Exposed { nis, md, me } = target_with(AttachPolicy::Allowed, &memory, 7);
    let target = &nis[1];
    assert_eq!(target.registered(), 2 * page_size());
    assert_eq!(put(&nis, 7, 1), Ok(Some(8)));
    let byte = memory.base().as_ptr().wrapping_add(16);
    // SAFETY: mapped.
    assert_eq!(unsafe { byte.read() }, 1);
    // The next generation of the same slot.
    target.md_unlink(md).unwrap();
    target.me_unlink(me).unwrap();
    assert_eq!(target.registered(), 0);
    let me = entry(target, 8);
    attach_at(target, me, memory.base().as_ptr(), 1).unwrap();
    assert_eq!((put(&nis, 7, 2), target.registered()), (Ok(None), page_size()));
    let source = MemoryDescriptor {
        start: memory.base().as_ptr().wrapping_add(2 * page_size()).cast(),
        length: 8,
        threshold: THRESH_INF,
        max_size: 0,
        options: 0,
        user_ptr: core::ptr::null_mut(),
        eq: EqHandle::NONE,
    };
    // SAFETY: mapped.
    let source = unsafe { nis[0].md_bind(&source, Unlink::Retain).unwrap() };
    nis[0].put(source, AckReq::NoAck, target.id(), PT, 0, 7, 16, 0).unwrap();
    target.progress();
    // SAFETY: mapped.
    assert_eq!((target.counters().dropped, unsafe { byte.read() }), (1, 1));
}

#[test]
fn memory_that_cannot_be_locked_is_refused() {
    let memory = Mapping::anonymous(3 * page_size()).unwrap();
    let Exposed { nis, .. } = target_with(AttachPolicy::Denied, &memory, 7);
    let (target, missing) = (&nis[1], core::ptr::without_provenance_mut(8));
    let me = entry(target, 8);
    assert_eq!(attach_at(target, me, missing, 8), Err(PtlError::Segv));
    let first = core::ptr::without_provenance_mut(1);
    assert_eq!(attach_at(target, me, first, (1 << 62) - 1), Err(PtlError::Segv));
    assert_eq!(target.registered(), 2 * page_size());
}
