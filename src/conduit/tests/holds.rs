//! Events that complete what is not in flight, as damaged ones do: they end the job, and what they
//! name is not returned twice.

use super::hold::Hold;
use super::match_bits::{AmForm, AmHeader, MessageKind, REPLY_LID, RmaBits, TargetMd};
use super::portals::{InlineBody, MdEvent, MdEventKind};
use super::user::Descriptor;
use super::*;
use sys::peer::Peer;

/// The first case is an event that is awaited.
const CASES: usize = 22;

#[test]
fn an_event_that_nothing_awaits_is_fatal() {
    for case in 0..CASES {
        let (code, text) = run_case("conduit::tests::holds::case", case);
        let right = case == 0;
        assert_eq!(code, Some(if right { 0 } else { 1 }), "case {case}: {text}");
        let words =
            ["completes nothing", "has the kind", "makes no sense", "has its data under 0x7"];
        let is_named = words.iter().any(|words| text.contains(words));
        assert_eq!(is_named, !right, "case {case}: {text}");
    }
}

#[test]
#[ignore = "ends the process; run by an_event_that_nothing_awaits_is_fatal"]
fn case() {
    let config = usual(tiny(2, 1));
    let world = World::open(emulation(2, &config), &config);
    let c = &world.ranks[1].conduit;
    let (get, other) = (OpId(3), OpId(4));
    world.ranks[1].ops[get.0 as usize].store(1, Ordering::Relaxed);
    let chunk = c.reqsb.take(Hold::get(get.0)).expect("a chunk");
    let mut memory = [1u8; 8];
    // SAFETY: the memory lives until the end of this function, and nothing else uses it.
    let dst = unsafe { Dst::new(memory.as_mut_ptr(), 8) };
    c.reqsb.note_get(chunk, dst);
    c.tickets.take(1).expect("a ticket");
    let event = |kind, message, descriptor: Descriptor, op, chunk| MdEvent {
        kind,
        user: descriptor.pack(),
        match_bits: RmaBits { op, local: None, chunk }.pack(message),
        hdr_data: 0,
        start: 0,
        offset: Peer::new(0),
        mlength: Peer::new(8),
        inline: false,
    };
    let up = Up { world: &world, rank: 1, thread: 0, handler: traffic::nothing };
    let take = |e| c.safe_event(up, e, &InlineBody::default());
    use Descriptor::{ReqSb, TmpMd};
    use MdEventKind::{Ack, ReplyEnd, SendEnd};
    use MessageKind::{Get, Put};
    let data_of = |lid, descriptor| MdEvent {
        match_bits: match_bits::am_data(TargetMd::RarAm, None),
        hdr_data: match_bits::lid(JobRank(0), lid),
        ..event(MdEventKind::PutEnd, Put, descriptor, get, 0)
    };
    let header_of = |request, descriptor, offset| {
        let am = AmHeader { extent: 7, ..AmHeader::plain(AmForm::Unpacked, request) };
        let (match_bits, hdr_data) = am.pack();
        let e = event(MdEventKind::PutEnd, Put, descriptor, get, 0);
        MdEvent { match_bits, hdr_data, offset: Peer::new(offset), ..e }
    };
    let am_event = |e| {
        let taker = c.am.taker.lock();
        c.other_event(up, taker, Some(e), &mut InlineBody::default());
    };
    let case = this_case();
    match case {
        // The right one, and after it the same once more.
        0 | 1 => {
            take(event(ReplyEnd, Get, ReqSb, get, chunk));
            assert_eq!((memory, c.reqsb.left()), ([0; 8], config.sb_chunks));
        }
        // Another chunk, none, another operation, another kind.
        2 => take(event(ReplyEnd, Get, ReqSb, get, chunk + 1)),
        3 => take(event(ReplyEnd, Get, ReqSb, get, config.sb_chunks)),
        4 => take(event(ReplyEnd, Get, ReqSb, other, chunk)),
        5 => take(event(Ack, Put, ReqSb, get, chunk)),
        // Temporary descriptors and replies that are not there.
        6 => take(event(ReplyEnd, Get, TmpMd(0), get, chunk)),
        7 => take(event(SendEnd, Put, TmpMd(u32::MAX >> 4), get, chunk)),
        8 => take(MdEvent {
            match_bits: AmHeader::plain(AmForm::Short, false).pack().0,
            ..event(SendEnd, Put, Descriptor::RplSb, get, 0)
        }),
        // Kinds that this network does not post.
        9 => take(event(MdEventKind::Other, Get, ReqSb, get, chunk)),
        10 => take(event(MdEventKind::Unlink, Get, ReqSb, get, chunk)),
        11 => take(event(SendEnd, Get, ReqSb, get, chunk)),
        // A receive buffer that has room is not unlinked.
        12 => am_event(event(MdEventKind::Unlink, Get, Descriptor::ReqRb(0), get, 0)),
        // Data of a Long that are none, or of no request, or of no reply that is awaited.
        13 => am_event(MdEvent { match_bits: 0, ..data_of(0, Descriptor::RarAm) }),
        14 => am_event(data_of(REPLY_LID, Descriptor::RarAm)),
        15 => take(data_of(chunk, Descriptor::RarSrc)),
        16 => take(data_of((chunk + 1) | REPLY_LID, Descriptor::RarSrc)),
        // Headers of Longs whose data would have the id of another.
        17 => am_event(header_of(true, Descriptor::ReqRb(0), 0)),
        18 => {
            let chunk = c.reqsb.take(Hold::REQUEST).expect("a chunk");
            take(header_of(false, ReqSb, chunk as usize * CHUNK));
        }
        // Match bits of nothing.
        19 => take(MdEvent { match_bits: 0, ..event(ReplyEnd, Get, ReqSb, get, chunk) }),
        // Of what needs no chunk, when no ticket is taken.
        20 => {
            c.tickets.give(1);
            take(event(Ack, Put, Descriptor::RarSrc, get, 0));
        }
        _ => {
            c.tickets.give(1);
            take(MdEvent {
                match_bits: match_bits::am_data(TargetMd::RarAm, None),
                ..event(SendEnd, Put, Descriptor::RarSrc, get, 0)
            });
        }
    }
    if case == 1 {
        take(event(ReplyEnd, Get, ReqSb, get, chunk));
    }
}
