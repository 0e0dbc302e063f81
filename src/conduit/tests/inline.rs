//! Bodies that travel in events: which ones do, that each arrives complete in every form of
//! message, and which headers are refused.

use super::hold::Hold;
use super::match_bits::{AmForm, AmHeader, DESTINATIONS, TargetMd};
use super::portals::{Direct, InlineBody};
use super::traffic::{pair, up};
use super::*;

/// Bytes that an event carries.
const ROOM: usize = size_of::<InlineBody>();
const MOST: usize = ROOM + 9;

/// Byte `i` of every payload.
pub(super) fn byte(i: usize) -> u8 {
    0xf1u8.wrapping_add(i as u8)
}

/// A message to `node` with this many arguments and bytes; a Long goes to an odd address.
pub(super) fn message<'a, P: Portals>(
    world: &World<P>,
    node: u32,
    category: Category,
    args: &'a [i32],
    payload: &'a [u8],
) -> Outgoing<'a> {
    match category {
        Category::Short => Outgoing::short(200, args),
        Category::Medium => Outgoing::medium(200, args, Src::from(payload)),
        Category::Long => {
            let dest = world.ranks[node as usize].segment.wrapping_add(9);
            world.long(node, args, payload, dest, false)
        }
    }
}

pub(super) const ARGS: [i32; 16] = [-1, 2, -3, 4, -5, 6, -7, 8, -9, 10, -11, 12, -13, 14, -15, 16];

/// Whether a message is what one of the same category would be with this many arguments and bytes.
fn check<P: Portals>(
    up: Up<'_, P>,
    m: &AmMessage<'_>,
    category: Category,
    numargs: usize,
    nbytes: usize,
) {
    let place = match category {
        Category::Short => m.payload.len() == 0,
        Category::Medium => m.payload.as_ptr().addr().is_multiple_of(8),
        Category::Long => m.payload.as_ptr() == up.rank().segment.wrapping_add(9),
    };
    let right = bytes_of(m.payload).iter().enumerate().all(|(i, b)| *b == byte(i));
    let shape = (m.category, m.args, m.payload.len());
    if shape != (category, &ARGS[..numargs], nbytes) || !place || !right {
        up.error(format_args!("{category:?} of {numargs} and {nbytes}: {m:?}"));
    }
    // A handler may write to its payload; of a Long that clears the destination of the next.
    m.payload.fill(0);
}

/// Checks a message by its own word, and answers it by the like.
pub(super) fn echo<P: Portals>(up: Up<'_, P>, token: Option<&mut ReplyToken>, m: AmMessage<'_>) {
    let (category, numargs, nbytes) = (m.category, m.args.len(), m.payload.len());
    check(up, &m, category, numargs, nbytes);
    if let Some(token) = token {
        let payload: Vec<u8> = (0..nbytes).map(byte).collect();
        let reply = message(up.world, m.source.0, category, &ARGS[..numargs], &payload);
        up.conduit().reply(up, token, &reply);
    }
}

/// Sends a message from rank 0 to rank 1, which answers by the like: bytes that each took through
/// Portals.
fn round<P: Portals>(world: &World<P>, m: &Outgoing<'_>) -> [u64; 2] {
    let bytes = || [0, 1].map(|rank: usize| world.ranks[rank].conduit.counters().bytes);
    let handled = || {
        let of = |rank: usize| &world.ranks[rank];
        (of(1).requests.load(Ordering::Relaxed), of(0).replies.load(Ordering::Relaxed))
    };
    let (before, (requests, replies)) = (bytes(), handled());
    let asks = up(world, 0, echo);
    asks.conduit().request(asks, JobRank(1), m);
    for _ in 0..100_000 {
        let serves = up(world, 1, echo);
        serves.conduit().poll(serves);
        asks.conduit().poll(asks);
        if handled().1 != replies {
            break;
        }
    }
    assert_eq!(handled(), (requests + 1, replies + 1));
    let after = bytes();
    [after[0] - before[0], after[1] - before[1]]
}

/// All shapes about the room of an event, as requests and replies: they come whole, and those
/// that fit go there.
fn shapes<P: Portals>(world: &World<P>, expected: impl Fn(Category, usize, usize) -> Option<u64>) {
    let payload: Vec<u8> = (0..MOST).map(byte).collect();
    for category in [Category::Short, Category::Medium, Category::Long] {
        for numargs in 0..=16 {
            for nbytes in 0..=if category == Category::Short { 0 } else { MOST } {
                let m = message(world, 1, category, &ARGS[..numargs], &payload[..nbytes]);
                let took = round(world, &m);
                if let Some(bytes) = expected(category, numargs, nbytes) {
                    assert_eq!(took, [bytes; 2], "{category:?} of {numargs} and {nbytes}");
                }
                let errors = |rank: usize| world.ranks[rank].errors.load(Ordering::Relaxed);
                assert_eq!(
                    (errors(0), errors(1)),
                    (0, 0),
                    "{category:?} of {numargs} and {nbytes}"
                );
            }
        }
    }
    world.run(echo, |_| {});
}

#[test]
fn what_fits_an_event_goes_there() {
    for threads in [1, 2] {
        shapes(&pair(threads), |category, numargs, nbytes| {
            let (args, padded) = (numargs.next_multiple_of(2) * 4, nbytes.next_multiple_of(8));
            Some(match category {
                Category::Short if args == 0 => 0,
                Category::Long if nbytes == 0 => (args + 8).max(ROOM) as u64,
                // The payload goes ahead; its address follows the arguments.
                Category::Long if args + nbytes > ROOM => (nbytes + (args + 8).max(ROOM)) as u64,
                _ if args + nbytes <= ROOM => ROOM as u64,
                _ => (args + padded) as u64,
            })
        });
    }
}

/// The payload of a Long that does not fit is put to its destination, by a plain copy or
/// through Portals. Its arguments and its destination address may still fit.
#[test]
fn the_arguments_of_a_longer_long() {
    let world = pair(1);
    let payload: Vec<u8> = (0..300).map(byte).collect();
    for (numargs, body) in [(0, ROOM), (2, ROOM), (6, ROOM), (8, 40)] {
        for (nbytes, cross_mapped) in [(300, false), (33, false), (300, true), (33, true)] {
            let dest = world.ranks[1].segment.wrapping_add(9);
            let m = world.long(1, &ARGS[..numargs], &payload[..nbytes], dest, cross_mapped);
            let through = if cross_mapped { 0 } else { nbytes };
            assert_eq!(
                round(&world, &m)[0],
                (through + body) as u64,
                "{numargs} {nbytes} {cross_mapped}"
            );
        }
    }
    assert_eq!([0, 1].map(|rank: usize| world.ranks[rank].errors.load(Ordering::Relaxed)), [0, 0]);
}

#[test]
fn all_shapes_come_whole_by_every_way() {
    // Where nothing may be used that is beyond the standard. Also over a network that refuses,
    // and over one that says what travels in events as of any other event.
    let config = Config { at_once: false, ..usual(tiny(2, 1)) };
    shapes(&World::open(emulation(2, &config), &config), |_, _, _| None);
    for seed in [0, 1] {
        let world = World::open(fake::net(2, 3, seed), &usual(tiny(2, 1)));
        shapes(&world, |_, _, _| None);
        let inline = |rank: usize| world.ranks[rank].conduit.counters().bytes != 0;
        assert_eq!((inline(0), inline(1)), (seed == 1, seed == 1));
    }
}

/// To oneself, where no event carries anything, and to a place that no header can name.
#[test]
fn where_no_event_can_carry_it() {
    let payload: Vec<u8> = (0..8).map(byte).collect();
    let alone = World::open(emulation(1, &usual(tiny(1, 1))), &usual(tiny(1, 1)));
    for (category, bytes) in [(Category::Short, 8), (Category::Medium, 16), (Category::Long, 24)] {
        let nbytes = if category == Category::Short { 0 } else { 8 };
        let m = message(&alone, 0, category, &ARGS[..2], &payload[..nbytes]);
        let only = up(&alone, 0, echo);
        let before = only.conduit().counters().bytes;
        only.conduit().request(only, JobRank(0), &m);
        while only.conduit().poll(only) {}
        assert_eq!(only.conduit().counters().bytes - before, 2 * bytes);
    }
    let rank = &alone.ranks[0];
    assert_eq!(
        (rank.replies.load(Ordering::Relaxed), rank.errors.load(Ordering::Relaxed)),
        (3, 0)
    );

    // The first of them, and another.
    for earlier in [DESTINATIONS as usize - 9, DESTINATIONS as usize] {
        let config = usual(tiny(2, 1));
        let world = World::open_with(emulation(2, &config), &[&config], SEGMENT, earlier);
        assert_eq!(
            round(&world, &message(&world, 1, Category::Long, &ARGS[..2], &payload)),
            [(payload.len() + ROOM) as u64; 2]
        );
        assert_eq!(world.ranks[0].errors.load(Ordering::Relaxed), 0);
    }
}

/// Replies that come while this thread is inside a handler wait for its end; their bodies with
/// them.
#[test]
fn a_deferred_reply_keeps_its_body() {
    fn poll_inside<P: Portals>(up: Up<'_, P>, token: Option<&mut ReplyToken>, m: AmMessage<'_>) {
        if up.rank == 0 && token.is_some() {
            (0..50).for_each(|_| _ = up.conduit().poll(up));
            assert_eq!(up.rank().replies.load(Ordering::Relaxed), 0);
            return;
        }
        echo(up, token, m);
    }
    let world = pair(1);
    let payload: Vec<u8> = (0..24).map(byte).collect();
    let [asks, serves] = [0, 1].map(|rank| up(&world, rank, poll_inside));
    // Replies are on their way to rank 0, and a request, in whose handler it polls.
    for category in [Category::Medium, Category::Short, Category::Long] {
        let nbytes = if category == Category::Short { 0 } else { 24 };
        let m = message(&world, 1, category, &ARGS[..2], &payload[..nbytes]);
        asks.conduit().request(asks, JobRank(1), &m);
    }
    while serves.conduit().poll(serves) {}
    serves.conduit().request(serves, JobRank(0), &Outgoing::short(200, &ARGS[..8]));
    asks.conduit().serve_am(asks);
    assert_eq!(world.ranks[0].replies.load(Ordering::Relaxed), 3);
    assert_eq!(world.ranks[0].conduit.stats().replies_deferred, 3);
    assert_eq!(world.ranks[0].errors.load(Ordering::Relaxed), 0);
}

/// What a peer says in its header is not believed.
#[test]
fn a_header_that_cannot_be_is_fatal() {
    let (whole, senseless, outside) =
        (None, Some("makes no sense"), Some("aims outside our segment"));
    for (case, says) in [
        whole, whole, whole, whole, senseless, senseless, outside, outside, outside, outside,
        senseless, senseless, senseless, senseless, senseless,
    ]
    .into_iter()
    .enumerate()
    {
        let (code, text) = run_case("conduit::tests::inline::case", case);
        assert_eq!(code, Some(i32::from(says.is_some())), "case {case}: {text}");
        assert!(says.is_none_or(|says| text.contains(says)), "case {case}: {text}");
    }
}

#[test]
#[ignore = "ends the process; run by a_header_that_cannot_be_is_fatal"]
fn case() {
    let case = this_case();
    let world = pair(1);
    let (c, gets) = (&world.ranks[0].conduit, &world.ranks[1].conduit);
    let free = gets.reqsb.take(Hold::REQUEST).expect("a chunk");
    let beyond = gets.config.sb_chunks;
    let end = SEGMENT as u64;
    let (request, reply) = (TargetMd::ReqHdr, TargetMd::ReqSb);
    let (form, numargs, length, place, target, chunk) = [
        (AmForm::Short, 8, 0, 0, request, 0),
        (AmForm::Medium, 0, 32, 0, request, 0),
        (AmForm::Landing, 6, 8, end - 8, request, 0),
        (AmForm::Landing, 6, 8, end - 8, reply, free),
        // More arguments, and more bytes, than an event has.
        (AmForm::Short, 9, 0, 0, request, 0),
        (AmForm::Short, 9, 0, 0, reply, free),
        (AmForm::Medium, 2, 25, 0, request, 0),
        (AmForm::Landing, 6, 9, 0, request, 0),
        (AmForm::Landing, 6, 8, end - 7, request, 0),
        (AmForm::Landing, 6, 8, end - 7, reply, free),
        // To a chunk that there is not, of no process of the job; a reply to where requests go,
        // and the reverse.
        (AmForm::Short, 2, 0, 0, reply, beyond),
        (AmForm::Short, 3, 0, 0, request, 0),
        (AmForm::Short, 4, 0, 0, reply, free),
        (AmForm::Short, 5, 0, 0, request, 0),
        // To a chunk that no request holds.
        (AmForm::Short, 2, 0, 0, reply, free + 1),
    ][case];
    let am = AmHeader {
        numargs,
        extent: if form == AmForm::Landing {
            AmHeader::landing(length, place)
        } else {
            length as u64
        },
        chunk,
        source: if case == 11 { JobRank(2) } else { JobRank(0) },
        credit: u16::from(target == request),
        ..AmHeader::plain(form, (target == request) != (12..14).contains(&case))
    };
    let (bits, data) = am.pack();
    let bits = bits & match_bits::IGNORE | target as u64;
    assert!(c.portals.put_inline(&[7; 4], &c.am_target(JobRank(1), bits, 0, data)));
    let up = up(&world, 1, traffic::nothing);
    assert!(gets.poll(up));
    // SAFETY: the end of the segment of a process that is at rest.
    let came = unsafe { world.ranks[1].segment.add(SEGMENT - 8).cast::<u64>().read() };
    assert_eq!(came, if form == AmForm::Landing { 7 } else { 0 });
}
