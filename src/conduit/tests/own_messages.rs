//! Messages of a rank to itself: every kind and length, complete, and handled within the call.

use super::message::MAX_MEDIUM;
use super::traffic::up;
use super::*;

const LENGTHS: [usize; 8] = [0, 1, 8, 511, 512, 513, MAX_EAGER + 1, MAX_MEDIUM];
const ARGS: [i32; 16] = [-1, 2, -3, 4, -5, 6, -7, 8, -9, 10, -11, 12, -13, 14, -15, 16];

fn bytes(n: usize) -> Vec<u8> {
    (0..n).map(|i| (i * 7 + n) as u8).collect()
}

/// A message of rank 0 to itself; a Long goes to the begin of its segment.
fn message<'a>(
    world: &World<Emulation>,
    category: Category,
    args: &'a [i32],
    payload: &'a [u8],
) -> Outgoing<'a> {
    match category {
        Category::Short => Outgoing::short(200, args),
        Category::Medium => Outgoing::medium(200, args, Src::from(payload)),
        Category::Long => world.long(0, args, payload, world.ranks[0].segment, true),
    }
}

/// Checks a message, overwrites a payload that is its own, and answers by the like.
fn echo(up: Up<'_, Emulation>, token: Option<&mut ReplyToken>, m: AmMessage<'_>) {
    let payload = bytes(m.payload.len());
    let is_right = m.source == JobRank(0)
        && m.handler == 200
        && m.args == &ARGS[..m.args.len()]
        && bytes_of(m.payload) == payload
        && match m.category {
            Category::Short => payload.is_empty(),
            Category::Medium => m.payload.as_ptr().addr().is_multiple_of(8),
            Category::Long => m.payload.as_ptr() == up.rank().segment,
        };
    if !is_right {
        up.error(format_args!("{m:?}"));
    }
    m.payload.fill(0);
    if let Some(token) = token {
        let answer = message(up.world, m.category, m.args, &payload);
        up.conduit().reply(up, token, &answer);
        // It leaves with what it was given, and runs after this handler.
        assert_eq!(
            up.rank().replies.load(Ordering::Relaxed),
            up.rank().requests.load(Ordering::Relaxed)
        );
    }
}

#[test]
fn each_is_handled_within_the_call_and_then_its_reply() {
    let world = World::open(emulation(1, &usual(tiny(1, 1))), &usual(tiny(1, 1)));
    let only = up(&world, 0, echo);
    let mut sent = 0;
    for category in [Category::Short, Category::Medium, Category::Long] {
        for n in LENGTHS.into_iter().filter(|&n| category != Category::Short || n == 0) {
            for numargs in [0, 1, 16] {
                let n = if category == Category::Long { n.min(SEGMENT) } else { n };
                let payload = bytes(n);
                let m = message(&world, category, &ARGS[..numargs], &payload);
                only.conduit().request_own(only, &m);
                sent += 1;
                let count = |of: &AtomicU64| of.load(Ordering::Relaxed);
                let rank = only.rank();
                assert_eq!([count(&rank.requests), count(&rank.replies)], [sent; 2]);
                assert_eq!(count(&rank.errors), 0, "{category:?} of {n} and {numargs}");
                let is_kept = category == Category::Medium || n == 0;
                assert!(!is_kept || payload == bytes(n), "the sender's bytes have changed");
            }
        }
    }
    assert_eq!(only.conduit().counters().bytes, 0, "they went through Portals");
}

/// A handler that does not reply.
#[test]
fn no_reply_is_needed() {
    fn silent(up: Up<'_, Emulation>, _: Option<&mut ReplyToken>, m: AmMessage<'_>) {
        if m.args != [7] {
            up.error(format_args!("{m:?}"));
        }
    }
    let world = World::open(emulation(1, &usual(tiny(1, 1))), &usual(tiny(1, 1)));
    let only = up(&world, 0, silent);
    for _ in 0..10_000 {
        only.conduit().request_own(only, &Outgoing::short(200, &[7]));
    }
    let count = |of: &AtomicU64| of.load(Ordering::Relaxed);
    let rank = only.rank();
    assert_eq!([count(&rank.requests), count(&rank.replies), count(&rank.errors)], [10_000, 0, 0]);
}
