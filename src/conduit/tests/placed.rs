//! Longs whose payload is put to its destination before their message is sent: what their
//! headers say, and which headers are refused.

use super::hold::Hold;
use super::match_bits::{AmForm, AmHeader, DESTINATIONS};
use super::portals::InlineBody;
use super::*;

/// Accepts a Long that came whole to the begin of our segment.
fn check<P: Portals>(up: Up<'_, P>, _: Option<&mut ReplyToken>, m: AmMessage<'_>) {
    let came = bytes_of(m.payload);
    if m.payload.as_ptr() != up.rank().segment || came.iter().any(|&b| b != 7) {
        up.error(format_args!("wrong bytes, or in the wrong place: {m:?}"));
    }
}

/// Sends a Long from rank 0 and has its handler run: the bytes that it took through Portals.
fn send(
    world: &World<Emulation>,
    node: u32,
    m: &Outgoing<'_>,
    handler: traffic::TestHandler<Emulation>,
) -> u64 {
    let up = |rank| Up { world, rank, thread: 0, handler };
    let handled = || world.ranks[node as usize].requests.load(Ordering::Relaxed);
    let (before, bytes) = (handled(), world.ranks[0].conduit.counters().bytes);
    up(0).conduit().request(up(0), JobRank(node), m);
    let bytes = world.ranks[0].conduit.counters().bytes - bytes;
    for _ in 0..100 {
        up(1).conduit().poll(up(1));
        up(0).conduit().poll(up(0));
    }
    assert_eq!(handled(), before + 1);
    assert_eq!(world.ranks[node as usize].errors.load(Ordering::Relaxed), 0);
    bytes
}

/// Two processes, whose segments begin this many bytes before their memory.
fn world(earlier: u64, at_once: bool) -> World<Emulation> {
    let config = Config { at_once, ..usual(tiny(2, 1)) };
    World::open_with(emulation(2, &config), &[&config], SEGMENT, earlier as usize)
}

/// The payload of a short Long travels in an event, whose header or body says where it goes. That
/// of a longer one is put ahead if puts are complete at once.
#[test]
fn what_goes_to_its_place_and_what_in_a_message() {
    for (earlier, at_once) in
        [(0, true), (DESTINATIONS - 1, true), (DESTINATIONS, true), (0, false)]
    {
        let world = world(earlier, at_once);
        let dest = world.ranks[1].segment;
        for (nbytes, cross_mapped) in [(1, true), (33, false), (300, true), (300, false)] {
            let bytes = send(
                &world,
                1,
                &world.long(1, &[], &[7u8; 300][..nbytes], dest, cross_mapped),
                check,
            );
            let ahead = if cross_mapped { 0 } else { nbytes };
            let expected = match at_once {
                true => ahead + size_of::<InlineBody>(),
                false => nbytes.next_multiple_of(8) + 8,
            };
            assert_eq!(bytes, expected as u64, "{earlier} {at_once} {nbytes} {cross_mapped}");
            // SAFETY: no rank writes there now.
            unsafe { dest.write_bytes(0, nbytes) };
        }
    }
}

/// Source and destination of a Long to oneself may overlap.
#[test]
fn a_long_to_oneself_may_overlap() {
    fn check_row<P: Portals>(up: Up<'_, P>, _: Option<&mut ReplyToken>, m: AmMessage<'_>) {
        if bytes_of(m.payload).iter().enumerate().any(|(i, &b)| b != i as u8) {
            up.error(format_args!("wrong bytes: {m:?}"));
        }
    }
    let world = world(0, true);
    for (from, to) in [(0, 100), (100, 0), (0, 1), (1, 0), (5, 5)] {
        let segment = world.ranks[0].segment;
        for i in 0..1000 {
            // SAFETY: our own segment.
            unsafe { segment.add(from + i).write(i as u8) };
        }
        let to = segment.wrapping_add(to);
        // SAFETY: our own segment.
        let src = unsafe { Src::new(segment.wrapping_add(from), 1000) };
        // SAFETY: our own segment.
        let mapped = unsafe { Dst::new(to, 1000) };
        let range = RemoteRange::mapped_at(JobRank(0), to.addr() - segment.addr(), mapped);
        send(&world, 0, &Outgoing::long(200, &[], src, range, to.addr()), check_row);
    }
}

/// A header that names a place outside our segment ends the job, that of a request as that of
/// a reply.
#[test]
fn a_place_outside_the_segment_is_fatal() {
    for case in 0..2 * RANGES.len() {
        let (code, text) = run_case("conduit::tests::placed::case", case);
        let right = case % RANGES.len() < INSIDE;
        assert_eq!(code, Some(if right { 0 } else { 1 }), "case {case}: {text}");
        assert_eq!(text.contains("aims outside our segment"), !right, "case {case}: {text}");
    }
}

/// Places, if a body says any, and lengths; the first ones are inside.
const RANGES: [(Option<u64>, u32); 8] = [
    (Some(SEGMENT as u64 - 8), 8),
    (Some(0), SEGMENT as u32),
    (Some(SEGMENT as u64 - 7), 8),
    (Some(SEGMENT as u64), 1),
    (Some(1), SEGMENT as u32),
    (Some(u64::MAX), 1),
    (Some(u64::MAX - 7), 8),
    (None, 8),
];
const INSIDE: usize = 2;

#[test]
#[ignore = "ends the process; run by a_place_outside_the_segment_is_fatal"]
fn case() {
    let case = this_case();
    let (request, (place, length)) = (case < RANGES.len(), RANGES[case % RANGES.len()]);
    let world = world(0, true);
    let (c, gets) = (&world.ranks[0].conduit, &world.ranks[1].conduit);
    // The chunk of the request that a reply answers.
    let chunk = gets.reqsb.take(Hold::REQUEST).expect("a chunk");
    let am = AmHeader { extent: length.into(), chunk, ..AmHeader::plain(AmForm::Placed, request) };
    let sent = send_header(c, &am, place.map(|place| [place, 0, 0, 0]));
    let up = Up { world: &world, rank: 1, thread: 0, handler: traffic::nothing };
    assert!(sent && gets.poll(up));
}
