//! What one poll does: it serves every queue that has events, starts what waits, and wakes the
//! threads that may wait for what it served.

use super::*;

fn world(threads: usize) -> World<Emulation> {
    let config = usual(tiny(2, threads));
    World::open(emulation(2, &config), &config)
}

/// Answers requests.
fn answer<P: Portals>(up: Up<'_, P>, token: Option<&mut ReplyToken>, _: AmMessage<'_>) {
    if let Some(token) = token {
        up.conduit().reply(up, token, &Outgoing::short(200, &[]));
    }
}

/// Lets an answer arrive at rank 0, a request, or both.
fn arrive<'a>(world: &'a World<Emulation>, reply: bool, request: bool) -> Up<'a, Emulation> {
    let up = |rank| Up { world, rank, thread: 0, handler: answer };
    let send = |from, to| {
        up(from).conduit().request(up(from), to, &Outgoing::short(200, &[]));
    };
    if reply {
        send(0, JobRank(1));
        assert!(up(1).conduit().poll(up(1)));
    }
    if request {
        send(1, JobRank(0));
    }
    up(0)
}

/// Requests and replies that rank 0 has handled.
fn handled(world: &World<Emulation>) -> (u64, u64) {
    let r = &world.ranks[0];
    (r.requests.load(Ordering::Relaxed), r.replies.load(Ordering::Relaxed))
}

#[test]
fn one_poll_serves_all_queues() {
    for (reply, request) in [(true, false), (false, true), (true, true)] {
        let world = world(1);
        let up = arrive(&world, reply, request);
        assert!(up.conduit().poll(up));
        assert_eq!(handled(&world), (request.into(), reply.into()));
        assert!(!up.conduit().poll(up));
    }
}

/// The other threads may sleep, and wait for what this one has served.
#[test]
fn who_serves_wakes_the_other_threads() {
    for (reply, request) in [(true, false), (false, true), (true, true)] {
        for threads in [1, 2] {
            let world = world(threads);
            let up = arrive(&world, reply, request);
            let doorbell = || up.conduit().shared_host().expect("the emulation").doorbell();
            let before = doorbell();
            assert_eq!(doorbell(), before);
            assert!(up.conduit().poll(up));
            assert_eq!(doorbell() != before, threads > 1, "{reply} {request} {threads}");
        }
    }
}

/// Requests that wait are looked at where no queue has anything: the kit for the next one is
/// filled.
#[test]
fn a_poll_looks_after_requests_that_wait() {
    let world = world(1);
    let (up, c) = (arrive(&world, false, false), &world.ranks[0].conduit);
    let chunks = c.config.rpl_chunks;
    assert!(!c.poll(up));
    assert_eq!(c.rplsb.left(), chunks);
    c.waiting.store(1, Ordering::Relaxed);
    assert!(!c.poll(up));
    assert_eq!(c.rplsb.left(), chunks - 1);
}

/// A request that was matched but never finished keeps its receive buffer from being refreshed.
/// The others must not overflow what is left, however fast they are answered; they wait, and go
/// on when it is finished.
#[test]
fn a_stopped_peer_overflows_nobody() {
    let mut config = tiny(2, 1);
    (config.am_limit, config.reqrb_chunks, config.sb_chunks) = (1, 3, 8);
    // Both have 8 credits: one buffer, and one to spare.
    config.share_credits(Some(8), Some(0), None);
    assert_eq!(config.reqrb_buffers, 2);
    let world = World::open(fake::net(2, 0, 1), &config);
    let up = |rank| Up { world: &world, rank, thread: 0, handler: traffic::nothing };
    let net = &world.ranks[0].conduit.portals;
    net.hold_after(0);
    traffic::send_medium(up(0), 0, &[]);
    let go_on = || {
        let mut sent = 0;
        for _ in 0..100 {
            if up(1).conduit().credits.peers()[0].send_inuse == 0 {
                traffic::send_medium(up(1), 0, &[1; 1984]);
                sent += 1;
            }
            up(0).conduit().poll(up(0));
            up(1).conduit().poll(up(1));
        }
        sent
    };
    // Three fill the first buffer, behind the stopped one; the second one is not filled.
    assert!((3..6).contains(&go_on()));
    assert_eq!(world.ranks[0].conduit.stats().requests_waited, 1);
    net.release();
    assert!(go_on() > 25);
    world.serve_until(up(0), || {
        up(1).conduit().poll(up(1));
        world.is_quiet()
    });
}
