//! Payloads that stay at their sender: which ones do, for how long, and which headers are
//! refused.

use super::hold::Hold;
use super::match_bits::{AmForm, AmHeader};
use super::portals::InlineBody;
use super::traffic::{end_burst, up};
use super::*;
use crate::conduit::message::LARGEST_STASH;

/// A payload that stays at its sender.
const LARGE: usize = 1000;
/// Bytes that its message takes through Portals: its arguments are in the event.
const ARGS: u64 = size_of::<InlineBody>() as u64;

fn config(ranks: u32, threads: usize, areas: u32) -> Config {
    Config { outbox_areas: areas, am_limit: 1, ..usual(tiny(ranks, threads)) }
}

/// Rank 0 and others over the emulation, with this many areas each.
fn world(ranks: u32, threads: usize, areas: u32) -> World<Emulation> {
    let config = config(ranks, threads, areas);
    World::open(emulation(ranks, &config), &config)
}

/// Sends this many bytes, each `byte`, from rank 0 to `node`, not in a burst: the bytes that it
/// took through Portals.
fn send(world: &World<Emulation>, node: u32, byte: u8, nbytes: usize) -> u64 {
    end_burst(world, 0);
    send_on(world, node, byte, nbytes)
}

/// The same, in a burst if the last call sent something too.
fn send_on(world: &World<Emulation>, node: u32, byte: u8, nbytes: usize) -> u64 {
    let up = up(world, 0, traffic::nothing);
    let before = up.conduit().counters().bytes;
    let payload = vec![byte; nbytes];
    let args = [byte.into(), 0];
    let m = Outgoing::medium(200, &args, Src::from(&payload[..]));
    up.conduit().request(up, JobRank(node), &m);
    up.conduit().counters().bytes - before
}

/// What a request says comes first in its arguments and all over its payload.
fn check(up: Up<'_, Emulation>, m: &AmMessage<'_>) {
    if bytes_of(m.payload).iter().any(|&b| i32::from(b) != m.args[0]) {
        up.error(format_args!("wrong bytes: {:?}", m.args));
    }
}

fn check_only(up: Up<'_, Emulation>, token: Option<&mut ReplyToken>, m: AmMessage<'_>) {
    if token.is_some() {
        check(up, &m);
    }
}

fn check_and_reply(up: Up<'_, Emulation>, token: Option<&mut ReplyToken>, m: AmMessage<'_>) {
    let Some(token) = token else { return };
    check(up, &m);
    up.conduit().reply(up, token, &Outgoing::short(201, &[]));
}

/// Small areas of rank 0 that are free.
fn left(world: &World<Emulation>) -> u32 {
    world.ranks[0].conduit.outbox.left()[0]
}

/// This rank serves all that has arrived.
fn serve(world: &World<Emulation>, rank: u32, handler: traffic::TestHandler<Emulation>) {
    let up = up(world, rank, handler);
    while up.conduit().poll(up) {}
}

fn no_errors(world: &World<Emulation>) {
    assert!(world.ranks.iter().all(|r| r.errors.load(Ordering::Relaxed) == 0));
}

#[test]
fn which_stay_and_which_go_along() {
    let world = world(2, 1, 1);
    // To ourselves; to a peer, below the least size and from it on; and when no area is free.
    for (node, nbytes, along) in [
        (0, 1984, 1984),
        (1, 0, 0),
        (1, 319, 320),
        (1, 320, 0),
        (1, 1984, 0),
        (0, 1984, 1984),
        (1, 320, 320),
    ] {
        let bytes = if along == 0 { ARGS } else { along + 8 };
        assert_eq!(send(&world, node, 5, nbytes), bytes, "{nbytes} to {node}");
        if (nbytes, along) == (320, 0) {
            serve(&world, 1, check_and_reply);
            serve(&world, 0, traffic::nothing);
            // That of the last reply stays in use: the next reply frees it.
            assert_eq!(left(&world), 0);
            send(&world, 1, 5, 0);
            serve(&world, 1, check_and_reply);
            serve(&world, 0, traffic::nothing);
            assert_eq!(left(&world), 1);
        }
    }
    serve(&world, 1, check_only);
    serve(&world, 0, check_only);
    no_errors(&world);
}

#[test]
fn fewer_go_along_in_a_burst() {
    let world = world(2, 1, 2);
    let along = |nbytes: u64| nbytes + 8;
    assert_eq!(send(&world, 1, 5, 40), along(40));
    for (nbytes, bytes) in [(32, along(32)), (33, ARGS), (319, ARGS), (319, along(320))] {
        assert_eq!(send_on(&world, 1, 5, nbytes), bytes, "{nbytes}");
    }
    serve(&world, 1, check_only);
    no_errors(&world);
}

/// Where the receiver makes a copy, fewer pay.
#[test]
fn which_stay_with_threads() {
    let world = world(2, 2, 1);
    assert_eq!((send(&world, 1, 5, 511), send(&world, 1, 5, 512)), (512 + 8, ARGS));
    for _ in 0..2 {
        serve(&world, 1, check_and_reply);
    }
    no_errors(&world);
}

#[test]
fn nothing_stays_where_memory_must_not_be_used() {
    let config = Config { outbox_areas: 4, at_once: false, ..usual(tiny(2, 1)) };
    let world = World::open(emulation(2, &config), &config);
    assert_eq!(send(&world, 1, 5, LARGE), LARGE as u64 + 8);
}

/// A handler that has replied still reads its payload, whatever its requester does with the reply.
#[test]
fn a_payload_stays_until_its_handler_returns() {
    fn reply_and_read(up: Up<'_, Emulation>, token: Option<&mut ReplyToken>, m: AmMessage<'_>) {
        let Some(token) = token else { return };
        check(up, &m);
        up.conduit().reply(up, token, &Outgoing::short(201, &[]));
        let world = up.world;
        IN_HANDLER.set(false);
        serve(world, 0, traffic::nothing);
        if up.conduit().config().threads > 1 {
            // Meanwhile another thread answers another request.
            send(world, up.rank, 50, LARGE);
            let other = Up { thread: 1, handler: check_and_reply, ..up };
            assert!(other.conduit().poll(other));
            IN_HANDLER.set(false);
            serve(world, 0, traffic::nothing);
        }
        (0..5).for_each(|i| _ = send(world, up.rank, 100 + i, LARGE));
        IN_HANDLER.set(true);
        check(up, &m);
    }
    // Threads of the requester, and of the handler's side: several free an area sooner, and get a
    // copy.
    for (asking, serving) in [(1, 1), (2, 2), (1, 2), (2, 1)] {
        let [asks, serves] = [asking, serving].map(|threads| config(2, threads, 3));
        let world = World::open_with(emulation(2, &asks), &[&asks, &serves], SEGMENT, 0);
        send(&world, 1, 1, LARGE);
        let up = up(&world, 1, reply_and_read);
        assert!(up.conduit().poll(up));
        no_errors(&world);
        for _ in 0..40 {
            serve(&world, 1, check_only);
            serve(&world, 0, traffic::nothing);
        }
        assert_eq!(world.ranks[1].requests.load(Ordering::Relaxed), 5 + serving as u64);
        no_errors(&world);
        assert!(left(&world) >= 2);
    }
}

/// Replies of other processes say nothing of this one's handler.
#[test]
fn only_the_next_reply_of_the_same_process_frees_an_area() {
    let world = world(3, 1, 2);
    send(&world, 1, 1, LARGE);
    serve(&world, 1, check_and_reply);
    serve(&world, 0, traffic::nothing);
    for turn in 0..3 {
        send(&world, 2, 2, 8);
        serve(&world, 2, check_and_reply);
        serve(&world, 0, traffic::nothing);
        assert_eq!(left(&world), 1, "turn {turn}");
    }
    send(&world, 1, 1, 8);
    serve(&world, 1, check_and_reply);
    serve(&world, 0, traffic::nothing);
    assert_eq!(left(&world), 2);
    no_errors(&world);
}

/// Where several threads call, an area is free with its chunk. Replies of handlers that sent
/// none, many in one message, free the areas of all requests that they name.
#[test]
fn what_frees_areas_at_once() {
    for (threads, handler) in
        [(2, check_and_reply as traffic::TestHandler<Emulation>), (2, check_only), (1, check_only)]
    {
        let world = world(2, threads, 4);
        (0..4).for_each(|i| assert_eq!(send(&world, 1, i, LARGE), ARGS));
        assert_eq!((left(&world), send(&world, 1, 4, LARGE)), (0, LARGE as u64 + 8));
        for _ in 0..40 {
            serve(&world, 1, handler);
            let up = up(&world, 1, handler);
            up.conduit().poll(up);
        }
        serve(&world, 0, traffic::nothing);
        assert!(left(&world) + u32::from(threads == 1) >= 4, "{threads}: {}", left(&world));
        no_errors(&world);
    }
}

/// A poll inside a handler sends no batch of implicit replies: the next reply would free the area
/// that the handler reads.
#[test]
fn no_reply_leaves_inside_a_handler() {
    fn reply_and_poll(up: Up<'_, Emulation>, token: Option<&mut ReplyToken>, m: AmMessage<'_>) {
        let Some(token) = token else { return };
        up.conduit().reply(up, token, &Outgoing::short(201, &[]));
        (0..40).for_each(|_| _ = up.conduit().poll(up));
        IN_HANDLER.set(false);
        serve(up.world, 0, traffic::nothing);
        (0..3).for_each(|i| _ = send(up.world, up.rank, 100 + i, LARGE));
        IN_HANDLER.set(true);
        check(up, &m);
    }
    let world = world(2, 1, 2);
    send(&world, 1, 1, 8);
    let first = up(&world, 1, check_only);
    assert!(first.conduit().poll(first));
    send(&world, 1, 2, LARGE);
    let second = up(&world, 1, reply_and_poll);
    assert!(second.conduit().poll(second));
    no_errors(&world);
}

/// A header that names a payload where none can be ends the job. So do a reply that says
/// that it has one there, and arguments that no body brought.
#[test]
fn a_header_that_cannot_be_is_fatal() {
    for case in 0..7 {
        let (code, text) = run_case("conduit::tests::outbox::case", case);
        let right = case < 2;
        assert_eq!(code, Some(if right { 0 } else { 1 }), "case {case}: {text}");
        let says = if case == 6 { "makes no sense" } else { "or its own memory" };
        assert_eq!(text.contains(says), !right, "case {case}: {text}");
    }
}

#[test]
#[ignore = "ends the process; run by a_header_that_cannot_be_is_fatal"]
fn case() {
    let case = this_case();
    let world = world(2, 1, 1);
    let (c, gets) = (&world.ranks[0].conduit, &world.ranks[1].conduit);
    let memory = c.shared_host().and_then(|x| x.library_memory(c.portals.id()));
    let bytes = memory.expect("the emulation").len();
    let (place, length, request) = [
        (bytes - 64, 64, true),
        (bytes - LARGEST_STASH, LARGEST_STASH, true),
        (bytes - 64, 65, true),
        (bytes, 1, true),
        (0, LARGEST_STASH + 1, true),
        (0, 8, false),
        (0, 8, true),
    ][case];
    let chunk = gets.reqsb.take(Hold::REQUEST).expect("a chunk");
    let numargs = u8::from(case == 6);
    let extent = AmHeader::stashed(length, place as u64);
    let am = AmHeader { extent, chunk, numargs, ..AmHeader::plain(AmForm::Outbox, request) };
    let sent = send_header(c, &am, None);
    let up = up(&world, 1, traffic::nothing);
    assert!(sent && gets.poll(up));
}
