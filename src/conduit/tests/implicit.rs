//! Batches of implicit replies: how many messages they make, when they leave, and that no process
//! waits for them.

use super::credits::policy::CreditField;
use super::hold::Hold;
use super::match_bits::{AmForm, AmHeader};
use super::portals::Direct;
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

/// Sends a Medium of this many bytes to rank 0. It uses a credit for each 256, argument included.
fn send(world: &World<Emulation>, from: u32, bytes: usize) {
    traffic::send_medium(up(world, from), 0, &vec![1; bytes]);
}

/// Rank 0 polls until it has handled this many requests in all.
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

/// However many credits the requests used.
#[test]
fn fifteen_of_the_largest_make_a_message() {
    let world = world(2, 200);
    for i in 1..=16 {
        send(&world, 1, 1900);
        handle(&world, i);
        assert_eq!((sent(&world), held(&world, 1).0), (i / 15, (i % 15) as u16 * 8));
    }
}

#[test]
fn they_leave_after_so_many_polls() {
    let world = world(2, 100);
    for turn in 1..=3 {
        send(&world, 1, 8);
        send(&world, 1, 8);
        handle(&world, 2 * turn);
        // The poll that has handled the second counts, the one of its handler does not.
        for _ in 0..30 {
            world.ranks[0].conduit.poll(up(&world, 0));
            assert_eq!(sent(&world), turn - 1);
        }
        world.ranks[0].conduit.poll(up(&world, 0));
        assert_eq!((sent(&world), held(&world, 1)), (turn, (0, 0)));
    }
    // With an empty batch polls send nothing.
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
        [(1, 0, 1, 0), (1, 0, 2, 0), (2, 1, 0, 1), (2, 1, 0, 2), (1, 2, 1, 0)]
            .into_iter()
            .enumerate()
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

/// With fewer chunks than could be kept twice, or where nothing is sent at once, each leaves
/// alone.
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

/// Sends a Medium of this many bytes whose handler replies, or not.
fn ask<P: Portals>(up: Up<'_, P>, node: u32, bytes: usize, reply: bool) {
    let payload = [3u8; 2000];
    let args = [reply.into()];
    up.conduit().request(
        up,
        JobRank(node),
        &Outgoing::medium(200, &args, Src::from(&payload[..bytes])),
    );
}

/// Replies if the first argument is 1.
fn answer<P: Portals>(up: Up<'_, P>, token: Option<&mut ReplyToken>, m: AmMessage<'_>) {
    if let (Some(token), 1) = (token, m.args[0]) {
        up.conduit().reply(up, token, &Outgoing::short(201, &[2, 3, 4]));
    }
}

fn total<P: Portals>(world: &World<P>, of: impl Fn(&Rank<P>) -> u64) -> u64 {
    world.ranks.iter().map(of).sum()
}

/// A request takes all but the credits of a largest one, whose replies are kept. The lender asks
/// for what can be spared meanwhile.
#[test]
fn what_is_given_back_leaves_credits_for_a_largest_request() {
    let world = world(2, 40);
    for i in 1..=12 {
        send(&world, 1, 8);
        handle(&world, i);
    }
    let left = || {
        let p = world.ranks[1].conduit.credits.peers()[0];
        (p.send_credits, p.send_inuse)
    };
    assert_eq!(left(), (40, 12));
    world.ranks[0].conduit.scavenge();
    while world.ranks[1].conduit.poll(up(&world, 1)) {}
    assert_eq!(left(), (20, 12));
    // So it can be sent, and says that it may not wait.
    send(&world, 1, 1900);
    handle(&world, 13);
    assert_eq!((held(&world, 1), left()), ((0, 0), (20, 0)));
}

/// One thread lets several processes send, poll and ask for credits in any order, so none may ever
/// wait. A process with answers to all that may not be kept has credits for a largest request to
/// each process, and half of its chunks.
fn any_order<P: Portals>(world: &World<P>, seed: u64) {
    let n = world.ranks.len();
    let mut dice = Dice::new(seed);
    let up = |rank: usize| Up { world, rank: rank as u32, thread: 0, handler: answer };
    let poll = |rank: usize| world.ranks[rank].conduit.poll(up(rank));
    let before = total(world, |r| r.conduit.counters().puts);
    let (mut asked, mut silent, mut revokes) = (0, 0, 0);
    for _ in 0..300 {
        let (x, y) = (dice.roll(n), dice.roll(n));
        let c = &world.ranks[x].conduit;
        for _ in 0..dice.roll(16) {
            let p = c.credits.peers()[y];
            let free = u32::from(p.send_credits - p.send_inuse).min(MIN_CREDITS);
            if free == 0 || c.reqsb.left() == 0 {
                break;
            }
            let bytes = if dice.roll(3) == 0 { dice.roll(free as usize * 240) } else { 8 };
            let reply = dice.roll(8) == 0;
            ask(up(x), y as u32, bytes, reply);
            asked += 1;
            silent += u64::from(!reply);
        }
        if dice.roll(12) == 0 {
            let before = c.counters().puts;
            c.scavenge();
            revokes += c.counters().puts - before;
        }
        if dice.roll(3) == 0 {
            // As if a request of x had requested more, without the request.
            let asks = CreditField::new(false, 7, 0);
            let (field, _) = world.ranks[y].conduit.credits.reply_field(JobRank(x as u32), asks.0);
            c.credits.reply_arrived(JobRank(y as u32), field);
        }
        for _ in 0..dice.roll(4) {
            poll(dice.roll(n));
        }
        if dice.roll(2) == 0 {
            while poll(y) {}
            while poll(x) {}
            let p = c.credits.peers()[y];
            assert!(p.send_credits >= p.send_inuse + MIN_CREDITS as u16, "{x} at {y}: {p:?}");
        }
        if dice.roll(8) == 0 {
            while (0..n).any(poll) {}
            assert!(
                world
                    .ranks
                    .iter()
                    .all(|r| 2 * r.conduit.reqsb.left() >= r.conduit.config.sb_chunks)
            );
        }
    }
    while (0..n).any(poll) {}
    for _ in 0..super::super::implicit::PATIENCE {
        (0..n).for_each(|rank| _ = poll(rank));
    }
    while (0..n).any(poll) {}
    assert!(
        world.is_quiet(),
        "{:?}",
        world.ranks.iter().map(|r| r.conduit.left()).collect::<Vec<_>>()
    );
    world.check_credits();
    assert_eq!(total(world, |r| r.requests.load(Ordering::Relaxed)), asked);
    assert_eq!(total(world, |r| r.replies.load(Ordering::Relaxed)), asked - silent);
    assert!(asked > 300 && silent > 200 && revokes != 0, "{asked} {silent} {revokes}");
    // Each CREDIT_REVOKE has its CREDIT_RETURN.
    let implicit = total(world, |r| r.conduit.counters().puts)
        - before
        - asked
        - (asked - silent)
        - 2 * revokes;
    if world.ranks[0].conduit.shared_host().is_some() {
        assert!((silent / 15..silent).contains(&implicit), "{implicit} messages for {silent}");
    } else {
        assert_eq!(implicit, silent);
    }
}

/// Just enough chunks for replies to wait, few credits, epochs that end often.
fn scarce(ranks: u32, threads: usize, each: u32) -> Config {
    let mut config = usual(tiny(ranks, threads));
    (config.sb_chunks, config.max_cred_per_node, config.epoch_duration) =
        (30 * ranks, each as u16, 7);
    config.share_credits(Some(each), Some(0), None);
    config
}

#[test]
fn nobody_runs_short_by_what_is_kept() {
    for seed in 0..60 {
        let mut config = scarce(3, 1, [18, 24, 100][seed as usize % 3]);
        config.am_limit = 1 + seed as u32 % 5;
        any_order(&World::open(emulation(3, &config), &config), seed);
        any_order(&World::open(fake::net(3, 0, seed), &config), seed);
    }
}

/// Threads of several processes send requests with and without replies to all, as they like. All
/// chunks and credits come back ([`World::run`]), and every message arrives. Without
/// CREDIT_REVOKEs there are no other messages.
fn threads<P: Portals>(world: &World<P>, seed: u64) {
    let n = world.ranks.len();
    let turns = 300;
    let before = total(world, |r| r.conduit.counters().puts);
    let silent = AtomicU64::new(0);
    world.run(answer, |up| {
        let mut dice =
            Dice::new(seed * 100 + (up.rank as usize * world.threads + up.thread) as u64 + 1);
        // Long runs to one process, and turns to all.
        let mut favourite = 0;
        for _ in 0..turns {
            if dice.roll(20) == 0 {
                favourite = dice.roll(n);
            }
            let node = if dice.roll(4) == 0 { dice.roll(n) } else { favourite };
            let bytes = if dice.roll(6) == 0 { dice.roll(1900) } else { 8 };
            let reply = dice.roll(6) == 0;
            silent.fetch_add(u64::from(!reply), Ordering::Relaxed);
            ask(up, node as u32, bytes, reply);
            for _ in 0..[0, 1, 40][dice.roll(3)] {
                up.conduit().poll(up);
            }
            if dice.roll(8) == 0 {
                std::thread::yield_now();
            }
        }
    });
    let (asked, silent) = ((n * world.threads * turns) as u64, silent.into_inner());
    assert_eq!(total(world, |r| r.requests.load(Ordering::Relaxed)), asked);
    assert_eq!(total(world, |r| r.replies.load(Ordering::Relaxed)), asked - silent);
    let config = world.ranks[0].conduit.config();
    if config.dynamic_credits && config.flow_control {
        return;
    }
    let implicit = total(world, |r| r.conduit.counters().puts) - before - asked - (asked - silent);
    if world.ranks[0].conduit.shared_host().is_some() {
        assert!((silent / 15..silent).contains(&implicit), "{implicit} messages for {silent}");
    } else {
        assert_eq!(implicit, silent);
    }
}

/// Each number of credits over each network.
fn threads_over_all(ranks: u32, each: usize, dynamic: bool) {
    for seed in 0..4 {
        let mut config = scarce(ranks, each, [17, 40][seed as usize % 2]);
        if !dynamic {
            config.dynamic_credits = false;
            config.share_credits(Some(40), None, None);
        }
        threads(&World::open(emulation(ranks, &config), &config), seed);
        threads(&World::open(fake::net(ranks as usize, seed % 2 * 3, seed), &config), seed);
    }
}

#[test]
fn threads_with_credits_that_move() {
    threads_over_all(3, 3, true);
}

#[test]
fn threads_with_credits_that_stay() {
    threads_over_all(2, 4, false);
}

#[test]
fn a_thread_each() {
    threads_over_all(4, 1, true);
    threads_over_all(3, 1, false);
}

/// What no library of ours sends ends the job. The cases are fewer bytes than arguments, a
/// chunk that begins nowhere, and one that is not there or not held for this reply.
#[test]
fn what_makes_no_sense_is_fatal() {
    for case in 0..6 {
        let (code, text) = run_case("conduit::tests::implicit::case", case);
        let right = case == 0;
        assert_eq!(code, Some(if right { 0 } else { 1 }), "case {case}: {text}");
        let says = if case == 1 { "is shorter than the 1 requests" } else { "which is not open" };
        assert_eq!(text.contains(says), !right, "case {case}: {text}");
    }
}

#[test]
#[ignore = "ends the process; run by what_makes_no_sense_is_fatal"]
fn case() {
    let case = this_case();
    let world = world(2, 100);
    let (asks, c) = (&world.ranks[1].conduit, &world.ranks[0].conduit);
    // Two chunks of two requests.
    let held = [asks.reqsb.take(Hold::REQUEST), asks.reqsb.take(Hold::REQUEST)]
        .map(|chunk| chunk.expect("free"));
    let put = asks.reqsb.take(Hold::put(1)).expect("free");
    let (args, bytes) = [
        ([held[1], 0], 8),
        ([held[1], 0], 0),
        ([u32::MAX, 0], 8),
        ([asks.config.sb_chunks, 0], 8),
        // The chunk of the first reply once more, and one that a put holds.
        ([held[0], 0], 8),
        ([put, 0], 8),
    ][case];
    let plain = AmHeader::plain(AmForm::Short, false);
    let (bits, data) = AmHeader { handler: 0, numargs: 1, ..plain }.pack();
    // SAFETY: a live array.
    let body = unsafe { Src::new(args.as_ptr().cast(), bytes) };
    let sent = c
        .portals
        .put_at_once([body], &c.am_target(JobRank(1), bits, held[0] as usize * CHUNK, data));
    assert!(sent && asks.poll(up(&world, 1)));
    assert_eq!(asks.reqsb.left(), asks.config.sb_chunks - 1);
}
