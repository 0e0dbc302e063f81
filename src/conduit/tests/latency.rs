//! How long a round trip takes, printed next to a cache line's own: `cargo test --release --lib
//! latency -- --ignored --nocapture`.

use super::*;
use crossbeam_utils::CachePadded;
use std::time::Instant;

/// Pins the calling thread to the CPU with this number, if there is one.
fn pin(cpu: usize) {
    ::sys::cpu::CpuMask::of([cpu]).bind();
}

fn answer<P: Portals>(up: Up<'_, P>, token: Option<&mut ReplyToken>, m: AmMessage<'_>) {
    let Some(token) = token else { return };
    let reply = Outgoing::short(129, m.args);
    up.conduit().reply(up, token, &reply);
}

/// Nanoseconds of one turn: the best of many short runs, since something else may hold a CPU
/// during most of them.
const RUNS: u32 = 2000;

fn best(n: u32, mut turns: impl FnMut(u32)) -> f64 {
    (0..RUNS)
        .map(|_| {
            let start = Instant::now();
            turns(n);
            start.elapsed().as_nanos() as f64 / f64::from(n)
        })
        .fold(f64::MAX, f64::min)
}

fn cache_line() -> f64 {
    let line = CachePadded::new(AtomicU32::new(0));
    let n = 100;
    std::thread::scope(|s| {
        s.spawn(|| {
            pin(1);
            for i in 0..RUNS * n {
                while line.load(Ordering::Acquire) != 2 * i + 1 {
                    core::hint::spin_loop();
                }
                line.store(2 * i + 2, Ordering::Release);
            }
        });
        pin(0);
        let mut i = 0;
        best(n, |n| {
            for _ in 0..n {
                line.store(i + 1, Ordering::Release);
                i += 2;
                while line.load(Ordering::Acquire) != i {
                    core::hint::spin_loop();
                }
            }
        })
    })
}

#[test]
#[ignore = "a measurement"]
fn latency() {
    println!("cache line round trip: {:.0} ns", cache_line());
    for threads in [1, 2] {
        let mut config = usual(tiny(2, threads));
        config.threads = threads;
        let world = World::open(emulation(2, &config), &config);
        let stop = AtomicBool::new(false);
        std::thread::scope(|s| {
            s.spawn(|| {
                pin(1);
                let up = Up { world: &world, rank: 1, thread: 0, handler: answer };
                while !stop.load(Ordering::Relaxed) {
                    up.conduit().poll(up);
                }
            });
            pin(0);
            let up = Up { world: &world, rank: 0, thread: 0, handler: answer };
            let mut expected = 0;
            let mut round_trip = |node| {
                best(50, |n| {
                    for i in 0..n {
                        let args = [i as i32];
                        let m = Outgoing::short(128, &args);
                        expected += 1;
                        up.conduit().request(up, node, &m);
                        while up.rank().replies.load(Ordering::Relaxed) != expected {
                            up.conduit().poll(up);
                        }
                    }
                })
            };
            let (short, own) = (round_trip(JobRank(1)), round_trip(JobRank(0)));
            let value = &[7u8; 8];
            let there = world.range(1, world.ranks[1].segment, 8);
            let put = best(50, |n| {
                for _ in 0..n {
                    let op = &up.rank().ops[0];
                    op.store(1, Ordering::Relaxed);
                    up.conduit().put_bulk(up, there, Src::from(&value[..]), OpId(0));
                    while op.load(Ordering::Acquire) != 0 {
                        up.conduit().poll(up);
                    }
                }
            });
            let mut back = [0u8; 8];
            let get = best(50, |n| {
                for _ in 0..n {
                    let op = &up.rank().ops[0];
                    op.store(1, Ordering::Relaxed);
                    // SAFETY: the bytes live until the operation is done.
                    let dst = unsafe { Dst::from(&mut back[..]).until_complete() };
                    up.conduit().get(up, dst, there, OpId(0));
                    while op.load(Ordering::Acquire) != 0 {
                        up.conduit().poll(up);
                    }
                }
            });
            let empty = best(1000, |n| {
                for _ in 0..n {
                    up.conduit().poll(up);
                }
            });
            stop.store(true, Ordering::Relaxed);
            println!(
                "threads {threads}: AM Short round trip {short:.0} ns, to itself {own:.0} ns, blocking 8-byte put {put:.0} ns, get {get:.0} ns, empty poll {empty:.0} ns"
            );
        });
    }
}
