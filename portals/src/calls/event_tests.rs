//! Slots of an event queue that hold words which no producer writes: whatever they say, the
//! consumer goes on and believes only its own records.

use core::sync::atomic::Ordering::Relaxed;

use fuzz::InputReader;

use super::NetworkInterface;
use crate::arena::ring::{published, reserved};
use crate::md_options::*;
use crate::types::*;

const SLOTS: u64 = 4;
const LIMITS: NiLimits = NiLimits { max_mes: 4, max_mds: 4, max_eqs: 2, ..NiLimits::DEFAULT };

/// An input is events, each a byte and then the words of the slot. The bits of the byte:
/// - 1:0: the call that takes the event
/// - 2: whether it names our descriptor
/// - 3: whether losses are recorded
/// - 5:4: the control
fn any_events(input: &[u8]) {
    let mut input = InputReader::new(input);
    let ni = NetworkInterface::loopback(Some(LIMITS)).unwrap();
    let eq = ni.eq_alloc(SLOTS, None).unwrap();
    let watch = ni.eq_watch(eq).unwrap();
    let mut memory = [0x55_u8; 64];
    let md = MemoryDescriptor {
        start: memory.as_mut_ptr().cast(),
        length: 64,
        threshold: THRESH_INF,
        max_size: 0,
        options: OP_PUT | OP_GET,
        user_ptr: core::ptr::dangling_mut::<u64>().cast(),
        eq,
    };
    // SAFETY: the memory outlives the interface.
    let md = unsafe { ni.md_bind(&md, Unlink::Retain) }.unwrap();
    let (record, cell) = (watch.record(), watch.cell());
    let index = ni.state.eq_index(eq).unwrap() as usize;
    let slots = ni.state.peers.own.rings[index].slots();
    let inline = &mut InlineWords::default();
    while !input.is_empty() {
        let how = input.byte();
        let position = record.next.load(Relaxed);
        let slot = slots.at(position);
        let mut what = input.number();
        if how & 4 != 0 {
            what = what & 0xffff_ffff | u64::from(md.0) << 32;
        }
        slot.what.store(what, Relaxed);
        let words = [&slot.match_bits, &slot.hdr_data, &slot.rlength, &slot.mlength];
        for word in words.into_iter().chain([&slot.offset, &slot.link]) {
            word.store(input.number(), Relaxed);
        }
        if how & 8 != 0 {
            cell.losses.count.store(input.number(), Relaxed);
            cell.losses.last.store(input.number(), Relaxed);
        }
        let control = match how >> 4 & 3 {
            0 => input.number(),
            1 => reserved(position, input.byte().into()),
            _ => published(position),
        };
        slot.control.store(control, Relaxed);
        let is_published = control == published(position);
        let is_ours = what >> 32 == u64::from(md.0);
        let taken = match how & 3 {
            0 | 1 => ni.eq_get(eq).unwrap().map(|fetched| {
                assert_eq!(fetched.event.md.start, memory.as_mut_ptr().cast());
                fetched.event.md_handle
            }),
            2 => ni.eq_next(&watch, inline).map(|event| {
                assert_eq!(event.start, memory.as_mut_ptr().cast());
                event.md_handle
            }),
            _ => match ni.eq_next_arrival(&watch, inline) {
                EqNext::Arrival(_) => Some(md),
                EqNext::Other if is_published => {
                    ni.eq_get(eq).unwrap().map(|fetched| fetched.event.md_handle)
                }
                EqNext::Other | EqNext::Nothing => None,
            },
        };
        assert!(taken.is_none_or(|named| is_published && named == md));
        assert!(taken.is_some() || !is_published || !is_ours);
        // Later slots still say that they are free.
        assert_eq!(record.next.load(Relaxed), position + u64::from(is_published));
        ni.check_arena();
        ni.blocked_by();
        slot.control.store(published(position), Relaxed);
        if !is_published {
            slot.what.store(0, Relaxed);
            assert!(ni.eq_get(eq).unwrap().is_none());
        }
    }
    assert!(ni.md_unlink(md).is_ok(), "an event does not remove a descriptor");
    assert_eq!(memory, [0x55; 64]);
}

#[test]
fn fuzz_events() {
    fuzz::check("events", 5_000, any_events);
}
