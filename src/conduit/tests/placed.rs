//! Longs whose payload is at its place before their message is: what their headers say, and what no header can say.

use super::match_bits::{Am, Form, PLACES};
use super::*;

/// Accepts a Long that came whole to the begin of our segment.
fn check<P: Portals>(up: Up<'_, P>, _: Option<&mut ReplyToken>, m: Message<'_>) {
    // SAFETY: the payload is in our segment, and its sender waits.
    let came = unsafe { core::slice::from_raw_parts(m.payload, m.nbytes) };
    if m.payload != up.rank().segment || came.iter().any(|&b| b != 7) {
        up.error(format_args!("wrong bytes, or in the wrong place: {m:?}"));
    }
}

/// Two processes; for rank 0 the segment of rank 1 begins so many bytes earlier.
fn world(earlier: u64) -> World<Emulation> {
    let config = usual(tiny(2, 1));
    World::open_with(emulation(2, &config), &config, |me, segments| {
        if me == 0 {
            let (at, bytes) = segments[1];
            segments[1] = (at.wrapping_sub(earlier as usize), bytes + earlier as usize);
        }
    })
}

/// A place that the header has no room for is told of in the body.
#[test]
fn places_that_no_header_can_tell_of() {
    for (earlier, form) in [(0, Form::Placed), (PLACES, Form::Packed), (PLACES + 8, Form::Packed)] {
        let world = world(earlier);
        let up = |rank| Up { world: &world, rank, thread: 0, handler: check };
        let dest = world.ranks[1].segment;
        for (turn, (nbytes, near)) in [(1, true), (300, true), (300, false)].into_iter().enumerate() {
            let m = Outgoing {
                category: Category::Long,
                handler: 200,
                args: &[],
                src: [7u8; 300].as_ptr(),
                nbytes,
                dest,
                near: if near { dest } else { core::ptr::null_mut() },
                source_stays: false,
            };
            let before = world.ranks[0].conduit.counters().bytes;
            // SAFETY: the payload is alive, the destination ours.
            unsafe { up(0).conduit().request(up(0), 1, &m) };
            let sent = world.ranks[0].conduit.counters().bytes - before;
            let body = if form == Form::Packed { nbytes.next_multiple_of(8) + 8 } else { 0 };
            let put = if form == Form::Placed && !near { nbytes } else { 0 };
            assert_eq!(sent, (body + put) as u64, "{earlier} {nbytes} {near}");
            for _ in 0..100 {
                up(1).conduit().poll(up(1));
                up(0).conduit().poll(up(0));
            }
            assert_eq!(world.ranks[1].requests.load(Ordering::Relaxed), turn as u64 + 1);
            assert_eq!(world.ranks[1].errors.load(Ordering::Relaxed), 0);
            // SAFETY: nobody else writes there now.
            unsafe { dest.write_bytes(0, nbytes) };
        }
    }
}

/// A header that tells of a place outside our segment ends the job.
#[test]
fn a_place_outside_the_segment_is_fatal() {
    for case in 0..PLACES_TOLD.len() {
        let (code, text) = run_case("conduit::tests::placed::case", case);
        let right = case < 2;
        assert_eq!(code, Some(if right { 0 } else { 1 }), "case {case}: {text}");
        assert_eq!(text.contains("aims outside our segment"), !right, "case {case}: {text}");
    }
}

/// Places and lengths; the first two are inside.
const PLACES_TOLD: [(u64, u32); 6] = [
    (SEGMENT as u64 - 8, 8),
    (0, SEGMENT as u32),
    (SEGMENT as u64 - 7, 8),
    (SEGMENT as u64, 1),
    (1, SEGMENT as u32),
    (PLACES - 1, 1),
];

#[test]
#[ignore = "ends the process; run by a_place_outside_the_segment_is_fatal"]
fn case() {
    let (place, length) = PLACES_TOLD[this_case()];
    let world = world(0);
    let c = &world.ranks[0].conduit;
    let (bits, data) = Am {
        form: Form::Placed,
        request: true,
        may_wait: false,
        handler: 200,
        numargs: 0,
        chunk: 0,
        source: 0,
        length,
        credit: 1,
        place,
    }
    .pack();
    let nothing = (core::ptr::null(), 0);
    // SAFETY: no bytes.
    let sent = unsafe { c.portals.put_at_once([nothing], c.peers[1], c.config.pt_am, bits, 0, data) };
    assert!(
        sent && world.ranks[1].conduit.poll(Up {
            world: &world,
            rank: 1,
            thread: 0,
            handler: traffic::nothing
        })
    );
}
