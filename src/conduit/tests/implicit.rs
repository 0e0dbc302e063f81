//! Implicit replies that are kept: how many messages they make, and when they leave.

use super::*;

/// Two processes or more over the emulation, with chunks enough that replies may wait.
fn world(ranks: u32, credits: u32) -> World<Emulation> {
    let mut config = usual(tiny(ranks, 1));
    (config.max_cred_per_node, config.am_limit) = (credits as u16, 1);
    config.share_credits(Some(credits), Some(0), None);
    World::open(emulation(ranks, &config), &config)
}

fn up<P: Portals>(world: &World<P>, rank: u32) -> Up<'_, P> {
    Up { world, rank, thread: 0, handler: traffic::nothing }
}

/// Sends a Medium of so many bytes to rank 0, which uses a credit for each 256 with the argument.
fn send(world: &World<Emulation>, from: u32, bytes: usize) {
    // SAFETY: a live payload.
    unsafe { traffic::send_medium(up(world, from), 0, &vec![1; bytes]) };
}

/// Rank 0 polls until it has handled so many requests in all.
fn handle(world: &World<Emulation>, all: u64) {
    for _ in 0..all + 2 {
        if world.ranks[0].requests.load(Ordering::Relaxed) == all {
            return;
        }
        world.ranks[0].conduit.poll(up(world, 0));
    }
    panic!("{} of {all} requests came", world.ranks[0].requests.load(Ordering::Relaxed));
}

/// Messages that rank 0 has sent.
fn sent(world: &World<Emulation>) -> u64 {
    world.ranks[0].conduit.counters().puts
}

/// Credits of rank 0 that this rank uses, and chunks that it holds.
fn held(world: &World<Emulation>, rank: u32) -> (u16, u32) {
    let c = &world.ranks[rank as usize].conduit;
    while c.poll(up(world, rank)) {}
    (c.credits.peers()[0].send_inuse, c.config.sb_chunks - c.reqsb.left())
}

#[test]
fn fifteen_make_a_message() {
    let world = world(2, 100);
    for i in 1..=45 {
        send(&world, 1, 8);
        handle(&world, i);
        assert_eq!(sent(&world), i / 15);
        assert_eq!(held(&world, 1), ((i % 15) as u16, (i % 15) as u32));
    }
}

#[test]
fn no_message_tells_of_more_credits_than_it_can() {
    let world = world(2, 100);
    // Credits: 1, 6, 6, then 3 that there is no room for, then 8 and 4 that fill it to the last, then 1.
    for (i, (bytes, messages, used)) in
        [(8, 0, 1), (1500, 0, 7), (1500, 0, 13), (700, 1, 3), (1900, 1, 11), (900, 1, 15), (8, 2, 1)]
            .into_iter()
            .enumerate()
    {
        send(&world, 1, bytes);
        handle(&world, i as u64 + 1);
        assert_eq!((sent(&world), held(&world, 1).0), (messages, used), "message {i}");
    }
}

#[test]
fn they_leave_after_so_many_polls() {
    let world = world(2, 100);
    for turn in 1..=3 {
        send(&world, 1, 8);
        send(&world, 1, 8);
        handle(&world, 2 * turn);
        // The poll that has handled the second, and the one of its handler, count.
        for _ in 0..29 {
            world.ranks[0].conduit.poll(up(&world, 0));
            assert_eq!(sent(&world), turn - 1);
        }
        world.ranks[0].conduit.poll(up(&world, 0));
        assert_eq!((sent(&world), held(&world, 1)), (turn, (0, 0)));
    }
    // With nothing kept polls send nothing.
    (0..100).for_each(|_| _ = world.ranks[0].conduit.poll(up(&world, 0)));
    assert_eq!(sent(&world), 3);
}

#[test]
fn a_requester_that_runs_short_is_answered_at_once() {
    let world = world(2, 20);
    // With 8 of 20 credits left they may wait.
    for i in 1..=12 {
        send(&world, 1, 8);
        handle(&world, i);
    }
    assert_eq!((sent(&world), held(&world, 1)), (0, (12, 12)));
    send(&world, 1, 8);
    handle(&world, 13);
    assert_eq!((sent(&world), held(&world, 1)), (2, (0, 0)));
    // A largest one takes 8; then the next leaves too few.
    for (bytes, used) in [(1900, 8), (8, 9), (700, 12), (8, 0)] {
        send(&world, 1, bytes);
        handle(&world, world.ranks[0].requests.load(Ordering::Relaxed) + 1);
        assert_eq!(held(&world, 1).0, used);
    }
}

#[test]
fn one_process_at_a_time() {
    let world = world(3, 100);
    for (i, (from, messages, first, second)) in
        [(1, 0, 1, 0), (1, 0, 2, 0), (2, 1, 0, 1), (2, 1, 0, 2), (1, 2, 1, 0)].into_iter().enumerate()
    {
        send(&world, from, 8);
        handle(&world, i as u64 + 1);
        assert_eq!(
            (sent(&world), held(&world, 1).0, held(&world, 2).0),
            (messages, first, second),
            "message {i}"
        );
    }
}

/// With fewer chunks than could be kept twice, or where nothing is sent at once, each leaves alone.
#[test]
fn elsewhere_none_waits() {
    for (chunks, at_once, messages) in [(59, true, 4), (60, true, 0), (256, false, 4)] {
        let mut config = usual(tiny(2, 1));
        (config.sb_chunks, config.at_once) = (chunks, at_once);
        let world = World::open(emulation(2, &config), &config);
        let before = sent(&world);
        (0..4).for_each(|_| send(&world, 1, 8));
        handle(&world, 4);
        assert_eq!(sent(&world) - before, messages, "{chunks} chunks");
    }
}
