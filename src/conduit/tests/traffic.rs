//! What the clients and handlers of the tests do.

use super::*;
use std::sync::atomic::AtomicI64;

pub(super) type TestHandler<P> = fn(Up<'_, P>, Option<&mut ReplyToken>, AmMessage<'_>);

pub(super) fn nothing<P: Portals>(_: Up<'_, P>, _: Option<&mut ReplyToken>, _: AmMessage<'_>) {}

/// Two ranks over the emulation, with this many threads each.
pub(super) fn pair(threads: usize) -> World<Emulation> {
    let config = usual(tiny(2, threads));
    World::open(emulation(2, &config), &config)
}

/// The first thread of a rank.
pub(super) fn up<P: Portals>(world: &World<P>, rank: u32, handler: TestHandler<P>) -> Up<'_, P> {
    Up { world, rank, thread: 0, handler }
}

/// What a rank sends next is no part of a burst.
pub(super) fn end_burst(world: &World<Emulation>, rank: u32) {
    let direct = world.ranks[rank as usize].conduit.portals.direct_to_self();
    direct.expect("the emulation has a fast path").burst_ends();
}

/// Any client thread may call it, outside of handlers.
pub(super) fn send_medium<P: Portals>(up: Up<'_, P>, node: u32, payload: &[u8]) {
    let m = Outgoing::medium(200, &[7], Src::from(payload));
    up.conduit().request(up, JobRank(node), &m);
}

pub(super) fn wait<P: Portals>(up: Up<'_, P>, op: u32) {
    up.world.serve_until(up, || up.rank().ops[op as usize].load(Ordering::Acquire) == 0);
}

fn byte(seed: usize, i: usize) -> u8 {
    (seed.wrapping_mul(31).wrapping_add(i).wrapping_mul(0x9e37_79b1) >> 11) as u8
}

fn fill(seed: usize, p: *mut u8, n: usize) {
    for i in 0..n {
        // SAFETY: callers give memory of their own.
        unsafe { p.add(i).write(byte(seed, i)) };
    }
}

fn differs(seed: usize, p: *const u8, n: usize) -> Option<usize> {
    // SAFETY: callers give readable memory.
    (0..n).find(|&i| unsafe { p.add(i).read() } != byte(seed, i))
}

const SIZES: [usize; 14] =
    [1, 7, 8, 64, 1000, 2039, 2040, 2041, 2048, 2049, 4999, 5000, 5001, 20000];

/// Puts of all sizes from in and outside the segment into every rank, and gets of them back.
pub(super) fn puts_and_gets<P: Portals>(world: World<P>) {
    let slots = world.ranks.len() * world.threads;
    // Lower half: where others put; upper half: local side.
    let share = SEGMENT / 2 / slots;
    let most = SIZES[SIZES.len() - 1];
    assert!(share >= 2 * most);
    world.run(nothing, |up| {
        let slot = up.rank as usize * world.threads + up.thread;
        let mut outside = vec![0u8; most];
        let inside = up.rank().segment.wrapping_add(SEGMENT / 2 + slot * share);
        let (first, second) = (up.thread as u32 * 4, up.thread as u32 * 4 + 1);
        let mut dice = Dice::new(slot as u64 + 1);
        for turn in 0..60 {
            let n = SIZES[dice.roll(SIZES.len())];
            let node = dice.roll(world.ranks.len()) as u32;
            let remote = world.ranks[node as usize]
                .segment
                .wrapping_add(slot * share + dice.roll(most - n + 1));
            let bulk = dice.roll(2) == 0;
            let src = if dice.roll(2) == 0 { inside } else { outside.as_mut_ptr() };
            let seed = slot * 1000 + turn;
            fill(seed, src, n);
            let op = &up.rank().ops[first as usize];
            op.store(up.conduit().fragments(n), Ordering::Relaxed);
            // SAFETY: the source is ours for this turn.
            let from = unsafe { Src::new(src, n) };
            match bulk {
                true => {
                    up.conduit().put_bulk(up, up.world.range(node, remote, n), from, OpId(first))
                }
                false => up.conduit().put(up, up.world.range(node, remote, n), from, OpId(first)),
            }
            if !bulk {
                fill(0, src, n);
            }
            wait(up, first);
            let (a, b) = (outside.as_mut_ptr(), inside.wrapping_add(most));
            fill(0, a, n);
            fill(0, b, n);
            for (dest, id) in [(a, first), (b, second)] {
                up.rank().ops[id as usize].store(up.conduit().fragments(n), Ordering::Relaxed);
                // SAFETY: the destination is ours for this turn.
                let to = unsafe { Dst::new(dest, n) };
                up.conduit().get(up, to, up.world.range(node, remote, n), OpId(id));
            }
            wait(up, first);
            wait(up, second);
            for p in [remote.cast_const(), a, b] {
                if let Some(i) = differs(seed, p, n) {
                    up.error(format_args!(
                        "turn {turn}: byte {i} of {n} to {node} differs, bulk {bulk}"
                    ));
                }
            }
        }
    });
}

pub(super) fn puts_and_gets_usual<P: Portals>(world: World<P>) {
    puts_and_gets(world);
}

pub(super) fn puts_and_gets_threads<P: Portals>(world: World<P>) {
    puts_and_gets(world);
}

/// A job of one: everything goes to ourselves.
pub(super) fn alone<P: Portals>(world: World<P>) {
    world.run(echo, |up| {
        for turn in 0..200 {
            send_random(up, 0, turn, &mut Dice::new(turn as u64));
        }
        world.serve_until(up, || up.rank().replies.load(Ordering::Relaxed) == 200);
    });
    puts_and_gets(world);
}

/// Where Longs of a thread of a rank go in each segment: requests and replies apart, one
/// slot for each of the last messages.
const SLOTS: usize = 16;
const LONGEST: usize = 2200;

fn long_place<P: Portals>(
    world: &World<P>,
    at: u32,
    of: u32,
    thread: usize,
    turn: usize,
    reply: bool,
) -> *mut u8 {
    let client = of as usize * world.threads + thread;
    let slot = (client * 2 + usize::from(reply)) * SLOTS + turn % SLOTS;
    assert!((slot + 1) * LONGEST <= SEGMENT);
    world.ranks[at as usize].segment.wrapping_add(slot * LONGEST)
}

/// Sends a request whose arguments say all about it. Arguments: turn, thread, bytes, seed of the
/// payload, then as many as there are.
fn send_random<P: Portals>(up: Up<'_, P>, node: u32, turn: usize, dice: &mut Dice) {
    let category = [Category::Short, Category::Medium, Category::Long][dice.roll(3)];
    let limit = match category {
        Category::Short => 0,
        Category::Medium => up.conduit().max_medium(),
        Category::Long => LONGEST,
    };
    let eager = MAX_EAGER.min(limit);
    let nbytes = [0, 1, limit, dice.roll(limit + 1), eager, dice.roll(eager + 1)][dice.roll(6)];
    let nbytes = nbytes.min(limit);
    let numargs = 4 + dice.roll(13);
    let seed = dice.roll(1 << 20);
    let mut args = [0; 16];
    args[..4].copy_from_slice(&[turn as i32, up.thread as i32, nbytes as i32, seed as i32]);
    (4..16).for_each(|i| args[i] = (seed + i) as i32);
    let mut outside = vec![0; nbytes];
    let src = if category == Category::Long && dice.roll(2) == 0 {
        up.rank().segment.wrapping_add(SEGMENT - (up.thread + 1) * LONGEST)
    } else {
        outside.as_mut_ptr()
    };
    fill(seed, src, nbytes);
    let dest = long_place(up.world, node, up.rank, up.thread, turn, false);
    // SAFETY: alive, and ours until the call returns.
    let payload = unsafe { Src::new(src, nbytes) };
    let m = outgoing(up.world, node, category, &args[..numargs], payload, dest, dice.roll(2) == 0);
    up.conduit().request(up, JobRank(node), &m);
    // It may be reused now.
    fill(0, src, nbytes);
}

/// A message of this category; all segments are in this process, but a Long says so only with
/// `cross_mapped`.
fn outgoing<'a, P: Portals>(
    world: &World<P>,
    node: u32,
    category: Category,
    args: &'a [i32],
    payload: Src<'a>,
    dest: *mut u8,
    cross_mapped: bool,
) -> Outgoing<'a> {
    let handler = 128 + category as u8;
    match category {
        Category::Short => Outgoing::short(handler, args),
        Category::Medium => Outgoing::medium(handler, args, payload),
        Category::Long => {
            let n = payload.len();
            let range = world.range(node, dest, n);
            // SAFETY: segments are never freed.
            let mapped = unsafe { Dst::new(dest, n) };
            let to = match cross_mapped {
                true => RemoteRange::mapped_at(range.rank(), range.offset(), mapped),
                false => range,
            };
            Outgoing::long(handler, args, payload, to, dest.addr())
        }
    }
}

fn check<P: Portals>(up: Up<'_, P>, m: &AmMessage<'_>) -> bool {
    let a = m.args;
    let nbytes = a[2] as usize;
    let seed = a[3] as usize;
    let right = m.handler == 128 + m.category as u8
        && m.payload.len() == nbytes
        && (4..a.len()).all(|i| a[i] == (seed + i) as i32)
        && (m.category != Category::Medium || m.payload.as_ptr().addr().is_multiple_of(8))
        && differs(seed, m.payload.as_ptr(), nbytes).is_none();
    if !right {
        let at = differs(seed, m.payload.as_ptr(), nbytes.min(m.payload.len()));
        up.error(format_args!("a message is wrong: {m:?}, differs at {at:?}"));
    }
    right
}

/// Checks a message; a request may be answered with one of any kind, which depends on its seed.
pub(super) fn echo<P: Portals>(up: Up<'_, P>, token: Option<&mut ReplyToken>, m: AmMessage<'_>) {
    check(up, &m);
    let Some(token) = token else { return };
    let long_at =
        long_place(up.world, up.rank, m.source.0, m.args[1] as usize, m.args[0] as usize, false);
    if m.category == Category::Long && m.payload.as_ptr() != long_at {
        up.error(format_args!("a Long went to {:?} instead of {long_at:?}", m.payload));
    }
    let mut dice = Dice::new(m.args[3] as u64);
    let category = [Category::Short, Category::Medium, Category::Long][dice.roll(3)];
    let nbytes = match category {
        Category::Short => 0,
        Category::Medium => {
            let limit = [MAX_EAGER, up.conduit().max_medium()][dice.roll(2)];
            dice.roll(limit + 1)
        }
        Category::Long => dice.roll(LONGEST + 1),
    };
    let seed = m.args[3] as usize + 1;
    let mut args = [0; 16];
    args[..4].copy_from_slice(&[m.args[0], m.args[1], nbytes as i32, seed as i32]);
    (4..16).for_each(|i| args[i] = (seed + i) as i32);
    let mut src = vec![0; nbytes];
    fill(seed, src.as_mut_ptr(), nbytes);
    let dest =
        long_place(up.world, m.source.0, m.source.0, m.args[1] as usize, m.args[0] as usize, true);
    let args = &args[..4 + dice.roll(13)];
    let cross_mapped = dice.roll(2) == 0;
    let payload = Src::from(&src[..]);
    let reply = outgoing(up.world, m.source.0, category, args, payload, dest, cross_mapped);
    up.conduit().reply(up, token, &reply);
    assert!(token.replied());
    if m.category == Category::Medium {
        // It stays until this handler returns, though the requester may have the reply by now,
        // and more to send.
        if dice.roll(8) == 0 {
            std::thread::yield_now();
        }
        check(up, &m);
    }
    fill(0, src.as_mut_ptr(), nbytes);
}

/// As [`echo`], but every second request gets no reply from its handler.
fn half_echo<P: Portals>(up: Up<'_, P>, token: Option<&mut ReplyToken>, m: AmMessage<'_>) {
    match token {
        Some(_) if m.args[3] % 2 == 0 => {
            check(up, &m);
            up.rank().ops[63].fetch_add(1, Ordering::Relaxed);
        }
        token => echo(up, token, m),
    }
}

/// One message at a time, of every kind, to every rank.
pub(super) fn messages<P: Portals>(world: World<P>) {
    world.run(echo, |up| {
        let mut dice = Dice::new(up.rank as u64 + 99);
        for turn in 0..300 {
            send_random(up, dice.roll(world.ranks.len()) as u32, turn, &mut dice);
            world.serve_until(up, || up.rank().replies.load(Ordering::Relaxed) == turn as u64 + 1);
        }
    });
}

pub(super) fn messages_unpacked<P: Portals>(world: World<P>) {
    messages(world);
}

/// As many messages as the resources allow, of every kind, from all to all, with puts among them.
/// A Long's place is used again after SLOTS messages, so each thread keeps no more than that
/// under way.
pub(super) fn flood<P: Portals>(world: World<P>) {
    let before: Vec<_> = world.ranks.iter().map(|r| r.conduit.stats().refreshes).collect();
    let sent: Vec<AtomicI64> =
        (0..world.ranks.len() * world.threads).map(|_| AtomicI64::new(0)).collect();
    let sent = &sent;
    let turns = 600;
    world.run(half_echo, |up| {
        let me = up.rank as usize * world.threads + up.thread;
        let mut dice = Dice::new(me as u64 + 5);
        for turn in 0..turns {
            send_random(up, dice.roll(world.ranks.len()) as u32, turn, &mut dice);
            sent[me].fetch_add(1, Ordering::Relaxed);
            if turn % SLOTS == SLOTS - 1 {
                // All of ours have been handled when all of our credits are back.
                world.meet(up);
                world.serve_until(up, || world.all_are_quiet(up));
                world.meet(up);
            }
        }
    });
    let handled: u64 = world.ranks.iter().map(|r| r.requests.load(Ordering::Relaxed)).sum();
    assert_eq!(handled, (turns * sent.len()) as u64);
    let replied: u64 = world.ranks.iter().map(|r| r.replies.load(Ordering::Relaxed)).sum();
    let silent: u64 =
        world.ranks.iter().map(|r| u64::from(r.ops[63].load(Ordering::Relaxed))).sum();
    assert_eq!(replied + silent, handled);
    if world.ranks[0].conduit.config().reqrb_chunks == 2 {
        for (r, before) in world.ranks.iter().zip(before) {
            assert!(r.conduit.stats().refreshes > before + 50, "{:?}", r.conduit.stats());
        }
    }
}

pub(super) fn flood_unpacked<P: Portals>(world: World<P>) {
    flood(world);
}

pub(super) fn messages_boxed<P: Portals>(world: World<P>) {
    messages(world);
}

pub(super) fn flood_boxed<P: Portals>(world: World<P>) {
    flood(world);
}

pub(super) fn flood_boxed_threads<P: Portals>(world: World<P>) {
    flood(world);
}

pub(super) fn flood_usual<P: Portals>(world: World<P>) {
    flood(world);
}

pub(super) fn flood_threads<P: Portals>(world: World<P>) {
    flood(world);
}

pub(super) fn flood_threads_usual<P: Portals>(world: World<P>) {
    flood(world);
}

/// Requests that are all header to all ranks, every fifth a Medium; the handlers of two thirds
/// reply.
pub(super) fn headers<P: Portals>(world: World<P>) {
    fn reply_often<P: Portals>(up: Up<'_, P>, token: Option<&mut ReplyToken>, _: AmMessage<'_>) {
        let Some(token) = token else { return };
        if !up.rank().requests.load(Ordering::Relaxed).is_multiple_of(3) {
            up.conduit().reply(up, token, &Outgoing::short(201, &[]));
        }
    }
    const TURNS: u32 = 1000;
    let ranks = world.ranks.len() as u32;
    world.run(reply_often, |up| {
        for turn in 0..TURNS {
            let node = (up.rank + turn) % ranks;
            match turn % 5 {
                0 => send_medium(up, node, &[7; 1900]),
                _ => _ = up.conduit().request(up, JobRank(node), &Outgoing::short(200, &[])),
            }
        }
    });
    let all: u64 = world.ranks.iter().map(|r| r.requests.load(Ordering::Relaxed)).sum();
    assert_eq!(all, u64::from(TURNS) * (world.ranks.len() * world.threads) as u64);
}

pub(super) fn headers_lending<P: Portals>(world: World<P>) {
    headers(world);
}

pub(super) fn headers_threads<P: Portals>(world: World<P>) {
    headers(world);
}

/// All ranks send Mediums to rank 0, without a pause.
pub(super) fn all_to_one<P: Portals>(world: World<P>) {
    let payload = [5u8; 1984];
    world.run(nothing, |up| {
        for turn in 0..1000 {
            send_medium(up, 0, &payload[..turn * 13 % 1985]);
        }
    });
    assert_eq!(world.ranks[0].requests.load(Ordering::Relaxed), 1000 * world.ranks.len() as u64);
}

/// A system message from each rank to each rank.
pub(super) fn system<P: Portals>(world: World<P>) {
    world.run(nothing, |up| {
        let n = world.ranks.len() as u32;
        for node in 0..n {
            up.conduit()
                .send_system(JobRank(node), SystemMessage { id: 0x7f, args: [up.rank, node] });
        }
        world.serve_until(up, || up.rank().system.load(Ordering::Relaxed) == u64::from(n));
    });
}

pub(super) fn flood_lending<P: Portals>(world: World<P>) {
    flood(world);
}

pub(super) fn flood_lending_least<P: Portals>(world: World<P>) {
    flood(world);
}

pub(super) fn flood_lending_threads<P: Portals>(world: World<P>) {
    flood(world);
}

pub(super) fn flood_fixed<P: Portals>(world: World<P>) {
    let ranks = world.ranks.len() as u32;
    flood_of(world, 600, 1, move |rank, turn| (rank + turn as u32) % ranks, nothing);
}

/// Each client sends `turns` Mediums of all sizes to the rank that `target` returns for its
/// rank and the turn. It rests a while every 1000 / `busy` turns.
fn flood_of<P: Portals>(
    world: World<P>,
    turns: usize,
    busy: usize,
    target: impl Fn(u32, usize) -> u32 + Sync,
    handler: TestHandler<P>,
) -> (u64, u64) {
    let payload = [5u8; 1984];
    world.run(handler, |up| {
        for turn in 0..turns {
            if turn % (1000 / busy) == up.rank as usize * 7 {
                std::thread::sleep(std::time::Duration::from_millis(busy as u64 - 1));
            }
            let n = payload.len().min(turn * 13 % 2500);
            send_medium(up, target(up.rank, turn), &payload[..n]);
        }
    });
    let handled: u64 = world.ranks.iter().map(|r| r.requests.load(Ordering::Relaxed)).sum();
    assert_eq!(handled, (turns * world.ranks.len() * world.threads) as u64);
    let all = world.ranks.iter().map(|r| r.conduit.credits_moved());
    let moved = all.fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
    if !world.ranks[0].conduit.config().dynamic_credits {
        assert_eq!(moved, (0, 0));
    }
    moved
}

/// What was lent before has to come back before it is lent again: credits move in both
/// directions, many times over.
fn must_move((lent, returned): (u64, u64)) {
    assert!(lent > 20 && returned > 5, "lent {lent}, returned {returned}");
}

pub(super) fn all_to_one_lending<P: Portals>(world: World<P>) {
    let (lent, _) = flood_of(world, 1000, 1, |_, _| 0, nothing);
    assert!(lent != 0);
}

pub(super) fn all_to_one_lending_threads<P: Portals>(world: World<P>) {
    let (lent, _) = flood_of(world, 300, 1, |_, _| 0, nothing);
    assert!(lent != 0);
}

/// Rank 0 sends to all in turn, the others only serve.
pub(super) fn one_to_all_lending<P: Portals>(world: World<P>) {
    let ranks = world.ranks.len() as u32;
    let alone =
        move |rank: u32, turn: usize| if rank == 0 { turn as u32 / 40 % ranks } else { rank };
    flood_of(world, 800, 1, alone, nothing);
}

/// Each rank sends to one for a while, then to another, so that what was lent must move.
pub(super) fn favourites<P: Portals>(world: World<P>) {
    let ranks = world.ranks.len() as u32;
    must_move(flood_of(
        world,
        3000,
        1,
        move |rank, turn| (rank + turn as u32 / 300) % ranks,
        nothing,
    ));
}

pub(super) fn favourites_least<P: Portals>(world: World<P>) {
    let ranks = world.ranks.len() as u32;
    must_move(flood_of(
        world,
        3000,
        1,
        move |rank, turn| (rank + turn as u32 / 200) % ranks,
        nothing,
    ));
}

pub(super) fn favourites_threads<P: Portals>(world: World<P>) {
    let ranks = world.ranks.len() as u32;
    must_move(flood_of(
        world,
        2000,
        1,
        move |rank, turn| (rank + turn as u32 / 200) % ranks,
        nothing,
    ));
}

/// Handlers that take their time.
pub(super) fn slow_handlers<P: Portals>(world: World<P>) {
    let slow: TestHandler<P> = |_, _, _| std::thread::sleep(std::time::Duration::from_micros(200));
    flood_of(world, 300, 1, |rank, turn| (rank + turn as u32 / 100) % 3, slow);
}

/// Processes that do not poll for a while now and then.
pub(super) fn idle_pollers<P: Portals>(world: World<P>) {
    flood_of(world, 900, 10, |rank, turn| (rank + turn as u32 / 300) % 3, nothing);
}

/// A few messages of every kind, small enough to fit without flow control, and a few puts and
/// gets.
pub(super) fn some_of_each<P: Portals>(world: &World<P>) {
    world.run(echo, |up| {
        let mut dice = Dice::new(up.rank as u64 + 3);
        for turn in 0..100 {
            send_random(up, dice.roll(world.ranks.len()) as u32, turn, &mut dice);
            world.serve_until(up, || up.rank().replies.load(Ordering::Relaxed) == turn as u64 + 1);
        }
        for n in [1, 2040, 2048, 2049] {
            let (mut from, mut to) = (vec![0u8; n], vec![1u8; n]);
            fill(n, from.as_mut_ptr(), n);
            let remote = world.ranks[1 - up.rank as usize].segment.wrapping_add(SEGMENT / 2);
            up.rank().ops[0].store(up.conduit().fragments(n), Ordering::Relaxed);
            let there = up.world.range(1 - up.rank, remote, n);
            // SAFETY: the vector lives until the wait is over.
            let src = unsafe { Src::new(from.as_ptr(), n) };
            up.conduit().put_bulk(up, there, src, OpId(0));
            wait(up, 0);
            up.rank().ops[1].store(up.conduit().fragments(n), Ordering::Relaxed);
            // SAFETY: the vector lives until the wait is over.
            let dst = unsafe { Dst::new(to.as_mut_ptr(), n) };
            up.conduit().get(up, dst, there, OpId(1));
            wait(up, 1);
            if from != to {
                up.error(format_args!("{n} bytes differ"));
            }
        }
    });
}
