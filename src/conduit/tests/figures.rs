//! Each parameter does what `src/env/table/portals.rs` says of it: the smallest case that
//! distinguishes a value from the next.

use super::*;

/// Two ranks over the fake network, where all happens at the next look, with parameters that
/// `change` makes of the tiny ones.
fn pair(change: impl Fn(&mut Config)) -> World<fake::Fake> {
    let mut config = tiny(2, 1);
    config.sb_chunks = 16;
    change(&mut config);
    World::open(fake::net(2, 0, 1), &config)
}

fn up(world: &World<fake::Fake>, rank: u32) -> Up<'_, fake::Fake> {
    Up { world, rank, thread: 0, handler: traffic::nothing }
}

/// Starts a put of `n` bytes from outside the segment to the other rank; the source is never
/// freed.
fn put(world: &World<fake::Fake>, n: usize) {
    let source = vec![1u8; n].leak();
    let up = up(world, 0);
    up.rank().ops[0].fetch_add(1, Ordering::Relaxed);
    let there = world.range(1, world.ranks[1].segment, n);
    up.conduit().put_bulk(up, there, Src::from(&*source), OpId(0));
}

/// What a put or get of `n` bytes takes, in chunks and temporary descriptors.
fn takes(world: &World<fake::Fake>, n: usize, get: bool) -> (u32, u32) {
    let c = &world.ranks[0].conduit;
    let before = (c.reqsb.left(), c.tmpmd.left());
    if get {
        let dest = vec![0u8; n].leak();
        up(world, 0).rank().ops[0].fetch_add(1, Ordering::Relaxed);
        let there = world.range(1, world.ranks[1].segment, n);
        c.get(up(world, 0), Dst::from(dest), there, OpId(0));
    } else {
        put(world, n);
    }
    let after = (c.reqsb.left(), c.tmpmd.left());
    settle(world);
    (before.0 - after.0, before.1 - after.1)
}

fn settle(world: &World<fake::Fake>) {
    world.serve_until(up(world, 0), || {
        up(world, 1).conduit().poll(up(world, 1));
        world.is_quiet()
    });
}

#[test]
fn tickets_chunks_and_descriptors_are_as_many_as_said() {
    let world = pair(|c| (c.msg_limit, c.num_tmpmd, c.sb_chunks, c.rpl_chunks) = (77, 9, 13, 5));
    let c = &world.ranks[0].conduit;
    assert_eq!((c.tickets.left(), c.tmpmd.left(), c.reqsb.left(), c.rplsb.left()), (77, 9, 13, 5));
    put(&world, 1);
    put(&world, 1);
    assert_eq!((c.tickets.left(), c.reqsb.left()), (75, 11));
}

#[test]
fn bounce_limits() {
    let world = pair(|c| (c.put_bounce, c.get_bounce) = (100, 50));
    assert_eq!((takes(&world, 100, false), takes(&world, 101, false)), ((1, 0), (0, 1)));
    assert_eq!((takes(&world, 50, true), takes(&world, 51, true)), ((1, 0), (0, 1)));
    let world = pair(|c| (c.put_bounce, c.get_bounce) = (0, 0));
    assert_eq!((takes(&world, 1, false), takes(&world, 1, true)), ((0, 1), (0, 1)));
}

#[test]
fn longs_up_to_the_limit_are_one_message() {
    let puts_of = |world: &World<fake::Fake>, nbytes| {
        let before = world.ranks[0].conduit.counters().puts;
        let dest = world.ranks[1].segment;
        // SAFETY: a segment, which is never freed.
        let payload = unsafe { Src::new(world.ranks[0].segment, nbytes) };
        let to = world.range(1, dest, nbytes);
        let m = Outgoing::long_async(200, &[], payload, to, dest.addr());
        up(world, 0).conduit().request(up(world, 0), JobRank(1), &m);
        settle(world);
        world.ranks[0].conduit.counters().puts - before
    };
    let world = pair(|c| c.packed_limit = 300);
    assert_eq!((puts_of(&world, 0), puts_of(&world, 300), puts_of(&world, 301)), (1, 1, 2));
    // GASNET_PORTAL_PACKED_LONG=0.
    let world = pair(|c| c.packed_limit = 0);
    assert_eq!((puts_of(&world, 0), puts_of(&world, 1)), (1, 2));
    // Arguments and address take room too.
    let world = pair(|c| c.packed_limit = CHUNK);
    assert_eq!((puts_of(&world, CHUNK - 8), puts_of(&world, CHUNK - 7)), (1, 2));
}

#[test]
fn events_of_a_poll() {
    for (limit, expected) in [(1, 1), (3, 3), (0, 8)] {
        let world = pair(|c| (c.am_limit, c.safe_limit, c.sys_limit) = (limit, limit, limit));
        let (me, other) = (up(&world, 0), up(&world, 1));
        for _ in 0..8 {
            traffic::send_medium(me, 1, &[]);
            me.conduit().send_system(JobRank(1), SystemMessage { id: 0x7f, args: [0, 1] });
        }
        other.conduit().poll(other);
        let count = |n: &AtomicU64| n.load(Ordering::Relaxed);
        assert_eq!(
            (count(&other.rank().requests), count(&other.rank().system)),
            (expected, expected)
        );
        settle(&world);
        for _ in 0..8 {
            put(&world, 1);
        }
        // SEND and ACK of each; the ACKs come when all have been sent.
        while me.conduit().poll_safe(me) && me.rank().ops[0].load(Ordering::Relaxed) == 8 {}
        let done = 8 - u64::from(me.rank().ops[0].load(Ordering::Relaxed));
        assert!(limit == 0 || done <= u64::from(limit), "{done} of limit {limit}");
        settle(&world);
    }
}

/// A request that had to wait, for credits or for a chunk, serves all that has arrived meanwhile.
/// It does not stop at what one poll serves.
#[test]
fn a_wait_takes_in_what_has_come() {
    for (credits, chunks) in [(8, 16), (16, 8)] {
        let world = pair(|c| {
            (c.sb_chunks, c.safe_limit, c.at_once) = (chunks, 2, false);
            c.share_credits(Some(credits), Some(0), None);
        });
        let (me, other) = (up(&world, 0), up(&world, 1));
        for n in 1..=9 {
            traffic::send_medium(me, 1, &[]);
            if n == 8 {
                while other.rank().requests.load(Ordering::Relaxed) < 8 {
                    other.conduit().poll(other);
                }
            }
        }
        // Of the nine only the last is under way.
        let c = me.conduit();
        assert_eq!((c.credits.peers()[1].send_inuse, c.reqsb.left()), (1, chunks - 1));
        assert_eq!(c.stats.credit_stalls.load(Ordering::Relaxed), u64::from(credits == 8));
        settle(&world);
    }
}

#[test]
fn credits_and_bank_are_as_said() {
    let world = pair(|c| c.share_credits(Some(11), Some(23), None));
    let c = &world.ranks[0].conduit;
    assert!(c.credits.peers().iter().all(|p| (p.send_credits, p.loan_credits) == (11, 11)));
    assert_eq!(c.credits.banked(), 23);
    let text = |world: &World<fake::Fake>| {
        let mut text = String::new();
        world.ranks[0].conduit.write_credit_stats(&mut text).expect("a string takes all");
        text
    };
    assert!(text(&world).contains("process 0 2 11 23\n"));
    assert_eq!(text(&pair(|c| c.credit_stats = false)), "");
}

/// No process is lent more than GASNET_PORTAL_MAX_CRED_PER_NODE, and one that asks long enough
/// gets all of it.
#[test]
fn the_most_that_one_process_holds() {
    for most in [8, 9, 30] {
        let world = pair(|c| {
            (c.max_cred_per_node, c.epoch_duration) = (most, 1);
            c.share_credits(Some(8), Some(1000), None);
        });
        world.run(traffic::nothing, |up| {
            for _ in 0..if up.rank == 0 { 800 } else { 0 } {
                traffic::send_medium(up, 1, &[1; 1984]);
            }
        });
        assert_eq!(world.ranks[1].conduit.credits.peers()[0].loan_credits, most);
    }
}

#[test]
fn epochs_are_as_long_as_said() {
    for (length, epochs) in [(1, 9), (4, 2), (10, 0)] {
        let world = pair(|c| c.epoch_duration = length);
        for _ in 0..9 {
            traffic::send_medium(up(&world, 0), 1, &[]);
            settle(&world);
        }
        assert_eq!(world.ranks[1].conduit.credits.epochs(), epochs, "of {length} requests");
    }
}

#[test]
fn portal_table_entries() {
    let world = pair(|c| (c.pt_rar, c.pt_am) = (3, 200));
    assert_eq!(world.ranks[0].conduit.portals.portal_table(), [3, 200]);
    settle(&world);
    // One entry may serve for both.
    let world = pair(|c| (c.pt_rar, c.pt_am) = (7, 7));
    traffic::some_of_each(&world);
    settle(&world);
}

/// Each variable of the conduit reaches its parameter.
#[test]
fn figures_from_variables() {
    let variables: &[(&str, &str, &str)] = &[
        ("GASNET_PORTAL_MSG_LIMIT", "77", "msg_limit: 77,"),
        ("GASNET_PORTAL_NUM_TMPMD", "9", "num_tmpmd: 9,"),
        ("GASNET_PACKEDLONG_LIMIT", "300", "packed_limit: 300,"),
        ("GASNET_PORTAL_EPOCH_DURATION", "55", "epoch_duration: 55,"),
        ("GASNET_PORTAL_CREDIT_STATS", "1", "credit_stats: true,"),
        ("GASNET_PORTAL_SB_CHUNKS", "13", "sb_chunks: 13,"),
        ("GASNET_PORTAL_OUTBOX_AREAS", "7", "outbox_areas: 7,"),
        ("GASNET_PORTAL_RPL_CHUNKS", "5", "rpl_chunks: 5,"),
        ("GASNET_PORTAL_SAFE_LIMIT", "21", "safe_limit: 21,"),
        ("GASNET_PORTAL_AM_LIMIT", "22", "am_limit: 22,"),
        ("GASNET_PORTAL_SYS_LIMIT", "23", "sys_limit: 23,"),
        ("GASNET_PORTAL_MAX_CRED_PER_NODE", "300", "max_cred_per_node: 300,"),
        ("GASNET_PORTAL_CRED_PER_NODE", "11", "credits_each: 11,"),
        ("GASNET_PORTAL_BANKED_CREDITS", "24", "banked_credits: 24,"),
        ("GASNET_PORTAL_PUT_BOUNCE_LIMIT", "100", "put_bounce: 100,"),
        ("GASNET_PORTAL_PUTGET_BOUNCE_LIMIT", "60", "get_bounce: 60,"),
        ("GASNET_PORTAL_PTE_RAR", "3", "pt_rar: 3,"),
        ("GASNET_PORTAL_PTE_AM", "200", "pt_am: 200 }"),
    ];
    let printed = |set: &[(&str, &str)]| {
        let out = std::process::Command::new(std::env::current_exe().expect("exe"))
            .args(["--ignored", "--exact", "conduit::tests::figures::print_config", "--nocapture"])
            .envs(set.iter().copied())
            .output()
            .expect("run");
        String::from_utf8_lossy(&out.stdout).into_owned()
    };
    let set: Vec<_> = variables.iter().map(|v| (v.0, v.1)).collect();
    let (with, without) = (printed(&set), printed(&[]));
    for (name, _, figure) in variables {
        assert!(with.contains(figure) && !without.contains(figure), "{name}: {with}");
    }
    // Those that switch something off, or say how much memory there is.
    for (set, figure) in [
        (("GASNET_PORTAL_FLOW_CONTROL", "0"), "flow_control: false,"),
        (("GASNET_PORTAL_DYNAMIC_CREDITS", "0"), "dynamic_credits: false,"),
        (("GASNET_PORTAL_PACKED_LONG", "0"), "packed_limit: 0,"),
        (("GASNET_PORTAL_GET_BOUNCE_LIMIT", "40"), "get_bounce: 40,"),
        (("GASNET_PORTAL_AMRECV_SPACE", "10M"), "reqrb_buffers: 5,"),
    ] {
        assert!(printed(&[set]).contains(figure) && !without.contains(figure), "{set:?}");
    }
}

#[test]
#[ignore = "reads the environment; run by figures_from_variables"]
fn print_config() {
    println!("{:?}", Config::from_env(2, 1));
}
