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
