//! Mediums that do not fit into one message: where their payloads are, what they hold meanwhile,
//! and which headers are refused.

use super::hold::Hold;
use super::match_bits::{AmForm, AmHeader};
use super::message::{MAX_MEDIUM, PIECE};
use super::traffic::up;
use super::*;

/// Bytes of an area for the largest Medium.
const LARGEST: usize = (64 + MAX_MEDIUM).next_multiple_of(4096);

/// The ranks 0 and 1, with space for this many Mediums of any size in areas.
fn world(areas: usize, threads: usize) -> World<Emulation> {
    let config = Config {
        outbox_areas: 8,
        large_areas: areas * LARGEST,
        am_limit: 1,
        ..usual(tiny(2, threads))
    };
    World::open(emulation(2, &config), &config)
}

fn send(world: &World<Emulation>, node: u32, nbytes: usize) {
    let payload: Vec<u8> = (0..nbytes).map(|i| (i % 251) as u8).collect();
    traffic::send_medium(up(world, 0, traffic::nothing), node, &payload);
}

fn check(up: Up<'_, Emulation>, m: &AmMessage<'_>) {
    if bytes_of(m.payload).iter().enumerate().any(|(i, &b)| usize::from(b) != i % 251) {
        up.error(format_args!("wrong bytes"));
    }
}

/// Sends the payload of a request back.
fn echo(up: Up<'_, Emulation>, token: Option<&mut ReplyToken>, m: AmMessage<'_>) {
    check(up, &m);
    if let Some(token) = token {
        up.conduit().reply(up, token, &Outgoing::medium(201, m.args, m.payload.into()));
    }
}

fn poll(world: &World<Emulation>, rank: u32) -> bool {
    let up = up(world, rank, echo);
    up.conduit().poll(up)
}

fn areas_taken(world: &World<Emulation>) -> [usize; 2] {
    [0, 1].map(|rank| world.ranks[rank].conduit.large_areas.count_taken())
}

fn replies(world: &World<Emulation>) -> u64 {
    world.ranks[0].replies.load(Ordering::Relaxed)
}

/// Whether no payload of a large Medium is under way.
pub(super) fn none_is_left<P: Portals>(c: &Conduit<P>) -> bool {
    c.large_areas.count_taken() == 0
        && c.request_payloads.is_empty()
        && c.reply_payloads.is_empty()
        && c.stashed_replies.is_empty()
}

fn no_errors(world: &World<Emulation>) {
    assert!(world.ranks.iter().all(|r| r.errors.load(Ordering::Relaxed) == 0));
}

/// A request and its reply are one message each while areas are free; an area is free when its
/// handler has returned.
#[test]
fn payloads_stay_in_areas() {
    for threads in [1, 2] {
        let world = world(2, threads);
        for turn in 1..10 {
            send(&world, 1, MAX_EAGER + turn as usize * 7000);
            assert_eq!(areas_taken(&world), [1, 0]);
            assert!(poll(&world, 1));
            assert_eq!(areas_taken(&world), [0, 1]);
            assert!(poll(&world, 0));
            assert_eq!((areas_taken(&world), replies(&world)), ([0, 0], turn));
        }
        no_errors(&world);
    }
}

/// Without an area a request goes in as many messages as it has pieces. Each round trip brings as
/// many pieces of the reply as chunks request them.
#[test]
fn without_areas_payloads_go_in_pieces() {
    for (threads, nbytes, trips) in
        [(1, CHUNK + 1, 2), (2, 5 * PIECE, 2), (1, 7 * PIECE + 1, 2), (2, 14 * PIECE, 3)]
    {
        let world = world(0, threads);
        let pieces = nbytes.div_ceil(PIECE);
        let puts = |rank: usize| world.ranks[rank].conduit.counters().puts;
        let before = [0, 1].map(puts);
        send(&world, 1, nbytes);
        assert_eq!(puts(0) - before[0], pieces as u64);
        (1..pieces).for_each(|_| assert!(poll(&world, 1)));
        assert_eq!(world.ranks[1].requests.load(Ordering::Relaxed), 0);
        // The last piece: the handler, and the first piece of the reply.
        assert!(poll(&world, 1));
        assert_eq!(world.ranks[1].requests.load(Ordering::Relaxed), 1);
        let mut round_trips = 0;
        while replies(&world) == 0 {
            while poll(&world, 0) {}
            while poll(&world, 1) {}
            round_trips += 1;
        }
        assert!(world.ranks[1].conduit.stashed_replies.is_empty());
        assert_eq!((replies(&world), round_trips), (1, trips));
        no_errors(&world);
        while !world.is_quiet() {
            (0..2).for_each(|rank| _ = poll(&world, rank));
        }
        world.check_credits();
    }
}

/// One reader that does not come takes no other area from the others.
#[test]
fn an_area_that_stays_taken_is_passed_over() {
    let world = world(3, 1);
    let areas = &world.ranks[0].conduit.large_areas;
    for n in [100, MAX_MEDIUM] {
        let stays = areas.take(n).expect("an area");
        for _ in 0..100 {
            let two = [0; 2].map(|_| areas.take(30_000).expect("an area"));
            assert!(two.iter().all(|area| area.place != stays.place));
            two.into_iter().for_each(|area| areas.give(area));
        }
        assert_eq!(areas.count_taken(), 1);
        areas.give(stays);
    }
    let stays = areas.take(1).expect("a short area");
    let other = areas.take(1).expect("the other");
    areas.give(other);
    for _ in 0..3 {
        let area = areas.take(1).expect("the other");
        assert!(area.place == other.place && area.place != stays.place);
        areas.give(area);
    }
}

/// When a wait for some bytes has failed, there is none for as many or more until these were free.
/// Short areas have no part in this.
#[test]
fn no_request_waits_again_for_what_is_not_free() {
    let world = world(3, 1);
    let areas = &world.ranks[0].conduit.large_areas;
    let waits = |n: usize| areas.may_become_free(n);
    assert!(waits(30_000) && waits(MAX_MEDIUM));
    let mut all: Vec<_> = core::iter::from_fn(|| areas.take(30_000)).collect();
    areas.give_up(30_000);
    let short = areas.take(1).expect("a short area");
    assert!(!waits(30_000) && !waits(MAX_MEDIUM) && waits(10_000));
    areas.give(short);
    areas.give(all.pop().expect("several"));
    areas.take(30_000).expect("what was free");
    assert!(waits(30_000) && waits(MAX_MEDIUM));
}

/// The word of an area that is overwritten with that of a taken one costs the area.
#[test]
fn an_overwritten_word_costs_an_area() {
    let world = world(1, 1);
    let areas = &world.ranks[0].conduit.large_areas;
    // The others are held.
    let _others = [0; 2].map(|_| areas.take(1).expect("a short area"));
    let area = areas.take(MAX_MEDIUM).expect("an area");
    let taken = areas.word(&area).swap(0, Ordering::Relaxed);
    for (word, pieces) in [(taken, 5), (7, 5), (0, 1)] {
        areas.word(&area).store(word, Ordering::Relaxed);
        let before = replies(&world);
        send(&world, 1, 5 * PIECE);
        (0..pieces).for_each(|_| assert!(poll(&world, 1)));
        assert_eq!(areas_taken(&world), [2 + usize::from(pieces > 1), 1]);
        while replies(&world) == before {
            poll(&world, 0);
        }
    }
    no_errors(&world);
}

/// Areas of any sizes, given back in any order, never overlap, and all space is free in the end.
#[test]
fn areas_are_taken_in_turn() {
    let world = world(3, 1);
    let areas = &world.ranks[0].conduit.large_areas;
    let mut taken: Vec<PayloadArea> = Vec::new();
    let mut random = 1u32;
    let mut below = |n: usize| {
        random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (random >> 8) as usize % n
    };
    let (mut refused, mut all) = (0, 0);
    for _ in 0..20_000 {
        match areas.take(1 + below(MAX_MEDIUM)) {
            Some(new) => {
                let end = |area: &PayloadArea| area.place + area.bytes.len();
                let apart =
                    |old: &PayloadArea| end(old) <= new.place - 64 || end(&new) <= old.place - 64;
                assert!(taken.iter().all(apart));
                taken.push(new);
                all += 1;
            }
            None => refused += 1,
        }
        if below(2) == 0 && !taken.is_empty() {
            areas.give(taken.swap_remove(below(taken.len())));
        }
        assert_eq!(areas.count_taken(), taken.len());
    }
    assert!(refused > 1000 && all > 1000, "{refused} {all}");
    taken.into_iter().for_each(|area| areas.give(area));
    let largest: Vec<_> = (0..4).map(|_| areas.take(MAX_MEDIUM)).collect();
    assert!(largest[..2].iter().all(Option::is_some) && largest[3].is_none());
}

#[test]
fn to_ourselves() {
    for areas in [0, 1] {
        let world = world(areas, 1);
        send(&world, 0, MAX_MEDIUM);
        while replies(&world) == 0 {
            poll(&world, 0);
        }
        no_errors(&world);
    }
}

/// A header that names what its sender does not have there ends the job.
#[test]
fn a_header_that_cannot_be_is_fatal() {
    for case in 0..CASES {
        let (code, text) = run_case("conduit::tests::large::case", case);
        let right = case < 3;
        assert_eq!(code, Some(if right { 0 } else { 1 }), "case {case}: {text}");
        assert_eq!(text.contains("or its own memory"), !right, "case {case}: {text}");
    }
}

const CASES: usize = 16;

#[test]
#[ignore = "ends the process; run by a_header_that_cannot_be_is_fatal"]
fn case() {
    let (case, world, n) = (this_case(), world(1, 1), 3000);
    let (c, gets) = (&world.ranks[0].conduit, &world.ranks[1].conduit);
    let memory = c.shared_host().and_then(|x| x.library_memory(c.portals.id()));
    let end = memory.expect("the emulation").len() as u64;
    let area = c.large_areas.take(n).expect("an area").place as u64;
    let piece = |total, offset| (AmHeader::piece(total, offset), Some([7; 4]));
    // What comes first, and what follows.
    let first = piece(PIECE + 24, PIECE);
    let ((extent, body), before, request) = [
        ((AmHeader::stashed(n, area), None), None, true),
        (first, None, true),
        ((AmHeader::stashed(n, area), None), None, false),
        // The word says another length; there is no word; there is no memory.
        ((AmHeader::stashed(n + 1, area), None), None, true),
        ((AmHeader::stashed(n, area + 64), None), None, true),
        ((AmHeader::stashed(n, 0), None), None, true),
        ((AmHeader::stashed(n, end - 64), None), None, true),
        ((AmHeader::stashed(MAX_MEDIUM + 1, area), None), None, true),
        // The area has been read; another piece of that name; a piece that is none.
        ((AmHeader::stashed(n, area), None), Some((AmHeader::stashed(n, area), None)), true),
        (first, Some(first), true),
        (piece(2 * PIECE + 24, 2 * PIECE), Some(first), true),
        (piece(PIECE + 24, PIECE - 64), None, true),
        (piece(PIECE, PIECE), None, true),
        (piece(PIECE + 40, PIECE), None, true),
        // No reply is to come in pieces; no payload is that large.
        ((AmHeader::piece(0, 0), None), None, true),
        (piece(MAX_MEDIUM + 24, 34 * PIECE), None, false),
    ][case];
    let chunk = gets.reqsb.take(Hold::REQUEST).expect("a chunk");
    let up = up(&world, 1, traffic::nothing);
    for (extent, body) in before.into_iter().chain([(extent, body)]) {
        let am = AmHeader::plain(AmForm::Unpacked, request);
        let am = AmHeader { copy: true, extent, chunk, credit: 0, ..am };
        let sent = match body {
            Some(body) if request => {
                let (bits, data) = am.pack();
                let to = c.am_target(JobRank(1), bits, 0, data);
                c.portals.put_at_once([memory::bytes_of(&body)], &to)
            }
            body => send_header(c, &am, body),
        };
        assert!(sent && gets.poll(up));
    }
}
