//! Requests, puts and gets that are refused where they would wait, and payloads that wait in areas
//! of their sender.

use super::traffic::{end_burst, up};
use super::*;
use crate::conduit::RmaClaim;
use crate::conduit::hold::Hold;
use crate::conduit::message::LARGEST_STASH;
use crate::conduit::message::PIECE;

/// What rank 0 has left: credits of rank 1, chunks, areas of both kinds, descriptors, tickets.
type Left = ([u32; 2], u32, u32, usize, u32, u32);

fn world(config: Config) -> World<Emulation> {
    World::open(emulation(2, &config), &config)
}

/// Credits that the ranks 0 and 1 hold of each other: too few for four pieces.
const CREDITS: u32 = 24;

/// The ranks 0 and 1 with [`CREDITS`].
fn short_of_credits() -> Config {
    let mut config = Config { outbox_areas: 8, ..usual(tiny(2, 1)) };
    config.share_credits(Some(CREDITS), Some(0), None);
    config
}

fn left(world: &World<Emulation>) -> Left {
    let c = &world.ranks[0].conduit;
    let peer = c.credits.peers()[1];
    (
        [peer.send_credits.into(), peer.send_inuse.into()],
        c.reqsb.left(),
        c.outbox.left().iter().sum(),
        c.large_areas.count_taken(),
        c.tmpmd.left(),
        c.tickets.left(),
    )
}

/// Serves both ranks until nothing arrives.
fn serve(world: &World<Emulation>) {
    while (0..2).any(|rank| {
        let up = up(world, rank, traffic::nothing);
        up.conduit().poll(up)
    }) {}
}

/// Serves both ranks until they have reached a state.
fn serve_until(world: &World<Emulation>, is_reached: impl Fn() -> bool) {
    while !is_reached() {
        serve(world);
        // The batch of implicit replies leaves when it has waited long enough.
        for (rank, r) in (0..).zip(&world.ranks) {
            r.conduit.poll(up(world, rank, traffic::nothing));
        }
    }
}

fn handled(world: &World<Emulation>) -> u64 {
    world.ranks[1].requests.load(Ordering::Relaxed)
}

/// Where Longs go in the segment of rank 1.
const AT: usize = 4096;

/// Sends an immediate request with this many bytes of 9; `None` for a Short.
fn send(world: &World<Emulation>, long: bool, nbytes: Option<usize>) -> bool {
    let bytes = vec![9u8; nbytes.unwrap_or(0)];
    let payload = Src::from(&bytes[..]);
    let m = match (nbytes, long) {
        (None, _) => Outgoing::short(200, &[7]),
        (Some(_), false) => Outgoing::medium(200, &[7], payload),
        (Some(n), true) => {
            let to = world.ranks[1].segment.wrapping_add(AT);
            Outgoing::long(200, &[7], payload, world.range(1, to, n), to.addr())
        }
    };
    let up = up(world, 0, traffic::nothing);
    up.conduit().request(up, JobRank(1), &m.immediate(true))
}

/// Each kind of request: through the event, a chunk, the outbox, an area, pieces; a Long placed,
/// packed and as two messages.
const KINDS: [(bool, Option<usize>); 8] = [
    (false, None),
    (false, Some(8)),
    (false, Some(300)),
    (false, Some(1500)),
    (false, Some(MAX_EAGER + 1000)),
    (true, Some(8)),
    (true, Some(1000)),
    (true, Some(20_000)),
];

fn refuses_all(config: Config) {
    let world = world(config);
    for (long, nbytes) in KINDS {
        let before = handled(&world);
        let mut sent = 0;
        while send(&world, false, None) {
            sent += 1;
        }
        let full = left(&world);
        // All are in use; the kind before may not have returned its own yet.
        assert!(sent > 0 && full.0[0] == full.0[1], "{sent} {full:?}");
        for _ in 0..3 {
            assert!(!send(&world, long, nbytes), "{long} {nbytes:?}");
            assert_eq!(left(&world), full, "{long} {nbytes:?}");
        }
        // SAFETY: nothing else writes the segment meanwhile.
        assert_eq!(unsafe { world.ranks[1].segment.add(AT).read() }, 0);
        assert_eq!(handled(&world), before);
        serve(&world);
        assert_eq!(handled(&world), before + sent);
        assert!(send(&world, long, nbytes), "{long} {nbytes:?}");
        serve(&world);
        assert_eq!(handled(&world), before + sent + 1, "{long} {nbytes:?}");
        // SAFETY: as above.
        unsafe { world.ranks[1].segment.add(AT).write_bytes(0, 20_000) };
    }
    serve_until(&world, || world.is_quiet());
    world.check_credits();
}

#[test]
fn requests_without_credits_are_refused() {
    for (at_once, areas) in [(true, 2), (true, 0), (false, 0)] {
        refuses_all(Config { at_once, large_areas: areas << 17, ..short_of_credits() });
    }
}

/// A Medium in pieces that needs more credits than a rank holds is sent when none is in use.
#[test]
fn what_never_has_enough_credits_is_sent() {
    let world = world(Config { large_areas: 0, ..short_of_credits() });
    assert!(send(&world, false, None));
    assert!(!send(&world, false, Some(4 * PIECE)));
    serve_until(&world, || left(&world).0[1] == 0);
    let up = up(&world, 1, traffic::nothing);
    let sending = &AtomicBool::new(true);
    let sent = std::thread::scope(|s| {
        s.spawn(move || {
            while sending.load(Ordering::Relaxed) {
                up.conduit().poll(up);
            }
        });
        let sent = send(&world, false, Some(4 * PIECE));
        sending.store(false, Ordering::Relaxed);
        sent
    });
    assert!(sent);
    serve(&world);
    assert_eq!(handled(&world), 2);
}

#[test]
fn a_request_without_a_chunk_is_refused() {
    let mut config = Config { sb_chunks: 2, ..short_of_credits() };
    config.share_credits(Some(200), Some(0), None);
    let world = world(config);
    assert!(send(&world, false, None) && send(&world, false, None));
    let full = left(&world);
    for (long, nbytes) in KINDS {
        assert!(!send(&world, long, nbytes));
        assert_eq!(left(&world), full);
    }
    serve(&world);
    assert!(send(&world, true, Some(20_000)));
}

/// The chunks that a Medium in pieces lacks may be with ranks that do not answer soon.
#[test]
fn pieces_without_chunks_are_refused() {
    let mut config = Config { sb_chunks: 6, large_areas: 0, ..short_of_credits() };
    config.share_credits(Some(200), Some(0), None);
    let world = world(config);
    let chunks = &world.ranks[0].conduit.reqsb;
    let held: Vec<u32> = (0..3).map_while(|_| chunks.take(Hold::REQUEST)).collect();
    let short = left(&world);
    assert!(held.len() == 3 && !send(&world, false, Some(4 * PIECE)));
    assert_eq!(left(&world), short);
    assert!(send(&world, false, Some(2 * PIECE)));
    serve(&world);
    held.into_iter().for_each(|chunk| chunks.give(chunk));
    assert!(send(&world, false, Some(4 * PIECE)));
    serve(&world);
    assert_eq!(handled(&world), 2);
}

/// A transfer claims a descriptor and a ticket, and keeps what it needs.
#[test]
fn transfers_without_tickets_are_refused() {
    let config = Config { at_once: false, msg_limit: 6, put_bounce: 100, ..usual(tiny(2, 1)) };
    let world = world(config);
    let (me, c) = (up(&world, 0, traffic::nothing), &world.ranks[0].conduit);
    let before = left(&world);
    let claims: Vec<RmaClaim> = core::iter::from_fn(|| c.claim()).collect();
    assert!(!claims.is_empty() && c.claim().is_none());
    claims.into_iter().for_each(|claim| c.unclaim(claim));
    assert_eq!(left(&world), before);
    let to = world.ranks[1].segment;
    let outside: &'static mut [u8] = vec![3u8; 2000].leak();
    let outside = Dst::from(outside);
    for n in [8, 2000] {
        let local = outside.part(0, n);
        for op in 0..3 {
            world.ranks[0].ops[0].store(1, Ordering::Relaxed);
            let claim = c.claim().expect("a ticket");
            let remote = world.range(1, to, n);
            match op {
                0 => c.put_claimed(me, remote, local.into(), OpId(0), claim),
                1 => c.put_bulk_claimed(me, remote, local.into(), OpId(0), claim),
                _ => c.get_claimed(me, local, remote, OpId(0), claim),
            }
            traffic::wait(me, 0);
            assert_eq!(left(&world), before, "{op} of {n} bytes");
        }
    }
}

/// The payload of a negotiated Medium stays in its area until its handler has returned; one that
/// became shorter travels, and what is given back or refused leaves the area free.
#[test]
fn payloads_wait_in_areas() {
    fn answer(up: Up<'_, Emulation>, token: Option<&mut ReplyToken>, m: AmMessage<'_>) {
        if bytes_of(m.payload).iter().any(|&b| b != 5) {
            up.error(format_args!("wrong bytes"));
        }
        let (c, n) = (up.conduit(), m.payload.len());
        if let Some(token) = token {
            let area = c.take_area(m.source, 9000, false).expect("an area");
            area.bytes.part(0, n).fill(5);
            let payload = area.bytes.part(0, n).into();
            c.reply_area(up, token, &Outgoing::medium(201, m.args, payload), area);
        }
    }
    const AREAS: usize = 1 << 16;
    let world = world(Config { large_areas: AREAS, outbox_areas: 4, ..short_of_credits() });
    let (me, peer) = (up(&world, 0, answer), up(&world, 1, answer));
    let c = me.conduit();
    let areas = || [0, 1].map(|rank| world.ranks[rank].conduit.large_areas.count_taken());
    let outbox = || c.outbox.left().iter().sum::<u32>();
    let before = outbox();
    for (most, n) in [
        (9, 0),
        (300, 300),
        (1984, 1984),
        (4000, 9),
        (4000, 1984),
        (4000, 4000),
        (9000, 9),
        (9000, 1984),
        (9000, 9000),
    ] {
        for now in [false, true] {
            let area = c.take_area(JobRank(1), most, true).expect("an area");
            let large = most > LARGEST_STASH;
            assert_eq!((area.bytes.len(), areas()[0]), (most, usize::from(large)));
            assert!(area.bytes.as_ptr().addr().is_multiple_of(64));
            area.bytes.part(0, n).fill(5);
            let m = Outgoing::medium(200, &[1], area.bytes.part(0, n).into()).immediate(now);
            assert!(c.request_area(me, JobRank(1), &m, area));
            let stays = |most| usize::from(n > most);
            assert_eq!(areas(), [stays(LARGEST_STASH), 0], "{most} {n}");
            assert!(peer.conduit().poll(peer));
            assert_eq!(areas(), [0, stays(MAX_EAGER)]);
            assert!(c.poll(me));
            // The last reader keeps an area of the outbox.
            assert!(areas() == [0, 0] && outbox() + 1 >= before);
        }
    }
    let all: Vec<_> = core::iter::from_fn(|| c.take_area(JobRank(1), 4000, true)).collect();
    // Two of the outbox are large.
    assert_eq!(all.len(), 2 + 2 + AREAS / 4096);
    all.into_iter().for_each(|area| c.give_area(area));
    // A refused message leaves its area to the caller.
    while send(&world, false, None) {}
    assert!(!c.may_request(JobRank(1), NegotiatedPayload::Medium(0), 0));
    for n in [1000, 4000] {
        let before = left(&world);
        let area = c.take_area(JobRank(1), n, true).expect("an area");
        let m = Outgoing::medium(200, &[1], area.bytes.into()).immediate(true);
        assert!(!c.request_area(me, JobRank(1), &m, area));
        assert_ne!(left(&world), before);
        c.give_area(area);
        assert_eq!(left(&world), before);
    }
    serve(&world);
    assert!(c.may_request(JobRank(1), NegotiatedPayload::Medium(MAX_EAGER), MAX_ARGS));
    assert!(world.ranks.iter().all(|r| r.errors.load(Ordering::Relaxed) == 0));
}

/// A negotiated payload of at most this many bytes: of a Medium, of one in an area, of a Long.
fn negotiated(world: &World<Emulation>, kind: usize, most: usize) -> Option<NegotiatedPayload> {
    let c = &world.ranks[0].conduit;
    match kind {
        0 => Some(NegotiatedPayload::Medium(most)),
        1 => c.take_area(JobRank(1), most, true).map(NegotiatedPayload::InArea),
        _ => Some(NegotiatedPayload::Long { most, mapped: false }),
    }
}

/// Sends `n` bytes of such a message as an immediate request.
fn send_negotiated(world: &World<Emulation>, payload: NegotiatedPayload, n: usize) -> bool {
    let NegotiatedPayload::InArea(area) = payload else {
        return send(world, matches!(payload, NegotiatedPayload::Long { .. }), Some(n));
    };
    let up = up(world, 0, traffic::nothing);
    let m = Outgoing::medium(200, &[7], area.bytes.part(0, n).into()).immediate(true);
    let sent = up.conduit().request_area(up, JobRank(1), &m, area);
    if !sent {
        up.conduit().give_area(area);
    }
    sent
}

/// What may be requested can be sent with any length, however many credits are left. A Medium that
/// may not be requested would wait with some length.
#[test]
fn a_prepared_request_counts_what_any_length_needs() {
    const LENGTHS: [usize; 12] =
        [0, 8, 300, 319, 511, 600, 1500, 1900, MAX_EAGER, MAX_EAGER + 1, 5000, 20_000];
    for (at_once, areas) in [(true, 2), (true, 0), (false, 0)] {
        let world = world(Config { at_once, large_areas: areas << 17, ..short_of_credits() });
        let c = &world.ranks[0].conduit;
        let free = || c.credits.held(JobRank(1)).0;
        let leave = |credits: u32| {
            serve_until(&world, || world.is_quiet());
            while free() > credits {
                assert!(send(&world, false, None));
            }
        };
        for (kind, most, credits) in (0..3)
            .flat_map(|kind| LENGTHS.map(|most| (kind, most)))
            .flat_map(|(kind, most)| [0, 1, 2, 3, 7, 8, 12, 13, 20].map(|n| (kind, most, n)))
        {
            leave(credits);
            let before = left(&world);
            let Some(payload) = negotiated(&world, kind, most) else { continue };
            let may = c.may_request(JobRank(1), payload, 1);
            if let NegotiatedPayload::InArea(area) = payload {
                c.give_area(area);
            }
            assert_eq!(left(&world), before);
            let mut waits = false;
            for n in LENGTHS.into_iter().filter(|&n| n <= most) {
                leave(credits);
                end_burst(&world, 0);
                let payload = negotiated(&world, kind, most).expect("an area");
                let sent = send_negotiated(&world, payload, n);
                assert!(sent || !may, "{at_once} {areas}: {n} of {payload:?}, {credits} credits");
                waits |= !sent;
            }
            assert!(may || waits || kind == 2, "{at_once} {areas}: {kind} {most} {credits}");
        }
    }
}

#[test]
fn a_prepared_request_counts_chunks_and_tickets() {
    let mut config = Config { at_once: false, sb_chunks: 6, ..short_of_credits() };
    config.share_credits(Some(200), Some(0), None);
    let world = world(config);
    let c = &world.ranks[0].conduit;
    let may = |payload| c.may_request(JobRank(1), payload, MAX_ARGS);
    let (pieces, medium) = (NegotiatedPayload::Medium(4 * PIECE), NegotiatedPayload::Medium(9));
    let long = |most| NegotiatedPayload::Long { most, mapped: false };
    let payloads = [medium, pieces, long(1000), long(20_000)];
    assert_eq!(payloads.map(may), [true; 4]);
    let held: Vec<u32> = (0..3).map_while(|_| c.reqsb.take(Hold::REQUEST)).collect();
    assert_eq!(payloads.map(may), [true, false, true, true]);
    held.into_iter().for_each(|chunk| c.reqsb.give(chunk));
    let claims: Vec<RmaClaim> = core::iter::from_fn(|| c.claim()).collect();
    assert_eq!(payloads.map(may), [true, true, true, false]);
    claims.into_iter().for_each(|claim| c.unclaim(claim));
    let held: Vec<u32> = core::iter::from_fn(|| c.reqsb.take(Hold::REQUEST)).collect();
    assert_eq!(payloads.map(may), [false; 4]);
    held.into_iter().for_each(|chunk| c.reqsb.give(chunk));
    assert_eq!(payloads.map(may), [true; 4]);
}

/// A request is unanswered whose implicit reply waits in the batch of its target.
#[test]
fn a_large_medium_may_be_requested_while_a_reply_waits() {
    let world = world(Config { large_areas: 1 << 17, ..short_of_credits() });
    let c = &world.ranks[0].conduit;
    assert!(send(&world, false, None));
    serve(&world);
    let before = left(&world);
    assert_eq!((handled(&world), before.0[1]), (1, 1));
    let may = || c.may_request(JobRank(1), NegotiatedPayload::Medium(20_000), 1);
    assert!(may());
    assert_eq!(left(&world), before);
    let all: Vec<_> = core::iter::from_fn(|| c.take_area(JobRank(1), 20_000, true)).collect();
    assert!(!may());
    all.into_iter().for_each(|area| c.give_area(area));
    assert!(may() && send(&world, false, Some(20_000)));
}
