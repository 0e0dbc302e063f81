//! Messages of a rank to itself: every kind and length, complete, and handled within the call.

use super::inline::{ARGS, byte, echo, message};
use super::message::MAX_MEDIUM;
use super::traffic::up;
use super::*;

const LENGTHS: [usize; 7] = [0, 1, 8, MAX_EAGER + 1, CHUNK, CHUNK + 1, MAX_MEDIUM];

fn count(of: &AtomicU64) -> u64 {
    of.load(Ordering::Relaxed)
}

/// Checks where a message comes from, and that its reply does not run inside its handler.
fn own_echo(up: Up<'_, Emulation>, token: Option<&mut ReplyToken>, m: AmMessage<'_>) {
    if (m.source, m.handler) != (JobRank(0), 200) {
        up.error(format_args!("{m:?}"));
    }
    let replies = count(&up.rank().replies);
    echo(up, token, m);
    assert_eq!(count(&up.rank().replies), replies, "a reply inside the handler that sent it");
}

#[test]
fn each_is_handled_within_the_call_and_then_its_reply() {
    let world = World::open(emulation(1, &usual(tiny(1, 1))), &usual(tiny(1, 1)));
    let only = up(&world, 0, own_echo);
    let mut sent = 0;
    for category in [Category::Short, Category::Medium, Category::Long] {
        for n in LENGTHS.into_iter().filter(|&n| category != Category::Short || n == 0) {
            for numargs in [0, 1, 16] {
                let payload: Vec<u8> = (0..n).map(byte).collect();
                let m = message(&world, 0, category, &ARGS[..numargs], &payload);
                only.conduit().request_own(only, &m);
                sent += 1;
                let rank = only.rank();
                assert_eq!([count(&rank.requests), count(&rank.replies)], [sent; 2]);
                assert_eq!(count(&rank.errors), 0, "{category:?} of {n} and {numargs}");
                let is_whole = payload.iter().enumerate().all(|(i, &b)| b == byte(i));
                assert!(is_whole, "the sender's bytes have changed");
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
    let rank = only.rank();
    assert_eq!([count(&rank.requests), count(&rank.replies), count(&rank.errors)], [10_000, 0, 0]);
}
