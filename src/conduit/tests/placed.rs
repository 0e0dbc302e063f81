//! Longs whose payload is put to its destination before their message is sent: what their
//! headers say, and which headers are refused.

use super::match_bits::{AmForm, AmHeader, OFFSETS, TargetMd};
use super::portals::{Direct, InlineBody};
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
    up(0).conduit().request(up(0), node, m);
    let bytes = world.ranks[0].conduit.counters().bytes - bytes;
    for _ in 0..100 {
        up(1).conduit().poll(up(1));
        up(0).conduit().poll(up(0));
    }
    assert_eq!(handled(), before + 1);
    assert_eq!(world.ranks[node as usize].errors.load(Ordering::Relaxed), 0);
    bytes
}

/// Two processes, whose segments begin so many bytes before their memory.
fn world(earlier: u64, at_once: bool) -> World<Emulation> {
    let config = Config { at_once, ..usual(tiny(2, 1)) };
    World::open_with(emulation(2, &config), &[&config], SEGMENT, earlier as usize)
}

/// An offset that is too large for the header travels in the body, as does any where puts are not
/// complete at once.
#[test]
fn what_goes_to_its_place_and_what_in_a_message() {
    for (earlier, at_once) in [(0, true), (OFFSETS, true), (OFFSETS + 8, true), (0, false)] {
        let world = world(earlier, at_once);
        let dest = world.ranks[1].segment;
        for (nbytes, cross_mapped) in [(1, true), (300, true), (300, false)] {
            let bytes = send(
                &world,
                1,
                &world.long(1, &[], &[7u8; 300][..nbytes], dest, cross_mapped),
                check,
            );
            let expected = match earlier == 0 && at_once {
                true if nbytes == 1 => size_of::<InlineBody>(),
                true => nbytes * usize::from(!cross_mapped),
                false => nbytes.next_multiple_of(8) + 8,
            };
            assert_eq!(bytes, expected as u64, "{earlier} {at_once} {nbytes} {cross_mapped}");
            // SAFETY: no rank writes there now.
            unsafe { dest.write_bytes(0, nbytes) };
        }
    }
}

/// The longest payload that a header can carry, and its neighbours.
#[test]
fn the_longest() {
    const LONGEST: usize = 1 << 24;
    let config = Config { max_transfer: 2 * LONGEST, ..usual(tiny(2, 1)) };
    let world = World::open_with(emulation(2, &config), &[&config], 2 * LONGEST, 0);
    let payload = vec![7u8; LONGEST + 1];
    for nbytes in [LONGEST - 1, LONGEST, LONGEST + 1] {
        fn check_all<P: Portals>(up: Up<'_, P>, token: Option<&mut ReplyToken>, m: AmMessage<'_>) {
            assert!(m.payload.len() >= LONGEST - 1);
            check(up, token, m);
        }
        send(
            &world,
            1,
            &world.long(1, &[], &payload[..nbytes], world.ranks[1].segment, true),
            check_all,
        );
        // SAFETY: no rank writes there now.
        unsafe { world.ranks[1].segment.write_bytes(0, nbytes) };
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
        let (src, range) = unsafe {
            let src = Src::new(segment.wrapping_add(from), 1000);
            (src, RemoteRange::new(JobRank(0), to.addr() - segment.addr(), 1000, to))
        };
        send(&world, 0, &Outgoing::long(200, &[], src, range, to.addr()), check_row);
    }
}

/// A header that tells of a place outside our segment ends the job, that of a request as that of
/// a reply.
#[test]
fn a_place_outside_the_segment_is_fatal() {
    for case in 0..2 * TOLD.len() {
        let (code, text) = run_case("conduit::tests::placed::case", case);
        let right = case % TOLD.len() < 2;
        assert_eq!(code, Some(if right { 0 } else { 1 }), "case {case}: {text}");
        assert_eq!(text.contains("aims outside our segment"), !right, "case {case}: {text}");
    }
}

/// Places and lengths; the first two are inside.
const TOLD: [(u64, u32); 6] = [
    (SEGMENT as u64 - 8, 8),
    (0, SEGMENT as u32),
    (SEGMENT as u64 - 7, 8),
    (SEGMENT as u64, 1),
    (1, SEGMENT as u32),
    (OFFSETS - 1, 1),
];

#[test]
#[ignore = "ends the process; run by a_place_outside_the_segment_is_fatal"]
fn case() {
    let case = this_case();
    let (request, (place, length)) = (case < TOLD.len(), TOLD[case % TOLD.len()]);
    let world = world(0, true);
    let (c, gets) = (&world.ranks[0].conduit, &world.ranks[1].conduit);
    // The chunk of the request that a reply answers.
    let chunk = gets.reqsb.take().expect("a chunk") as usize * CHUNK;
    let (bits, data) =
        AmHeader { length, offset: place, ..AmHeader::plain(AmForm::Placed, request) }.pack();
    assert_eq!(
        bits & !match_bits::IGNORE,
        if request { TargetMd::ReqHdr } else { TargetMd::ReqSb } as u64
    );
    let at = if request { 0 } else { chunk };
    let sent = c.portals.put_at_once([Src::from(&[][..])], &c.am_target(1, bits, at, data));
    let up = Up { world: &world, rank: 1, thread: 0, handler: traffic::nothing };
    assert!(sent && gets.poll(up));
}
