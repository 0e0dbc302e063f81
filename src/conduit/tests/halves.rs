//! The header and the data of a Long, in either order, each held back in turn by the fake network.

use super::*;

/// Bytes of the Longs: more than travel as one message.
const BYTES: usize = 3000;

/// Answers a request with a Long of the bytes that came, and notes each message that came whole.
fn back<P: Portals>(up: Up<'_, P>, token: Option<&mut ReplyToken>, m: AmMessage<'_>) {
    if bytes_of(m.payload) != [7u8; BYTES] || m.payload.as_ptr() != up.rank().segment {
        up.error(format_args!("wrong bytes, or in the wrong place: {m:?}"));
    }
    if let Some(token) = token {
        let reply = long(up.world, m.source.0, m.payload.as_ptr());
        up.conduit().reply(up, token, &reply);
    }
}

/// A Long to the begin of the segment of `node`.
fn long<P: Portals>(world: &World<P>, node: u32, src: *const u8) -> Outgoing<'static> {
    let dest = world.ranks[node as usize].segment;
    // SAFETY: in a segment, which is never freed.
    let payload = unsafe { Src::new(src, BYTES) };
    let to = world.range(node, dest, BYTES);
    Outgoing::long_async(200, &[1, 2], payload, to, dest.addr())
}

/// A request Long is two puts, data and header, and so is its reply. Whichever of the four is
/// late, no handler runs before both halves of its Long are there. Each handler runs once.
#[test]
fn either_half_may_be_late() {
    for par in [false, true] {
        for late in 0..4 {
            let mut config = tiny(2, if par { 2 } else { 1 });
            (config.packed_limit, config.max_transfer) = (0, 1 << 20);
            let world = World::open(fake::net(2, 0, 1), &config);
            let up = |rank| Up { world: &world, rank, thread: 0, handler: back };
            let poll = || {
                for _ in 0..20 {
                    up(0).conduit().poll(up(0));
                    up(1).conduit().poll(up(1));
                }
                (
                    world.ranks[1].requests.load(Ordering::Relaxed),
                    world.ranks[0].replies.load(Ordering::Relaxed),
                )
            };
            let source = world.ranks[0].segment.wrapping_add(BYTES);
            // SAFETY: in the segment, where no other rank writes.
            unsafe { source.write_bytes(7, BYTES) };
            let net = &world.ranks[0].conduit.portals;
            net.hold_after(late);
            up(0).conduit().request(up(0), JobRank(1), &long(&world, 1, source));
            assert_eq!(poll(), if late < 2 { (0, 0) } else { (1, 0) }, "late {late}");
            net.release();
            assert_eq!(poll(), (1, 1), "late {late}");
            assert!(world.is_quiet());
            let puts: u64 = world.ranks.iter().map(|r| r.conduit.counters().puts).sum();
            let errors: u64 = world.ranks.iter().map(|r| r.errors.load(Ordering::Relaxed)).sum();
            assert_eq!((puts, errors), (4, 0));
        }
    }
}
