//! The conduit under test: several processes of a job in one process, over the fake network and
//! over the emulation. The limits are so small that everything runs out all the time. Each
//! process is a [`Rank`] with a segment on the heap; its client threads are threads of the test.
//! Every test runs under a watchdog that ends the test program with the state of all ranks.

mod bodies;
mod departures;
pub(super) mod fake;
mod figures;
mod halves;
mod holds;
mod immediate;
mod implicit;
mod inline;
mod large;
mod largest;
mod latency;
mod losses;
mod outbox;
mod own_messages;
mod pieces;
mod placed;
mod polls;
mod start_exchange;
mod traffic;
mod variables;

use super::config::tests::tiny;
use super::match_bits::TargetMd;
use super::portals::{Direct, Portals, PortalsId, emulation::Emulation};
use super::*;
use crate::client_memory::{Dst, RemoteRange, Src};
use crate::rank::{JobRank, LocalRank};
use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
use core::time::Duration;
use std::sync::Mutex;

/// Bytes of each segment.
const SEGMENT: usize = 1 << 20;
/// Operations that a rank can have under way.
const OPS: usize = 64;

/// One process of the job.
struct Rank<P: Portals> {
    conduit: Conduit<P>,
    /// The segment; raw, because peers write it whenever they like.
    segment: *mut u8,
    /// Operations of this rank that are under way, by the lower bits of their ids; and how many of
    /// their fragments have departed.
    ops: [AtomicU32; OPS],
    departed: [AtomicU32; OPS],
    /// What handlers did.
    requests: AtomicU64,
    replies: AtomicU64,
    system: AtomicU64,
    errors: AtomicU64,
    waits: Box<[(AtomicU64, AtomicU8)]>, // when each thread last waited, and its stage
    /// Whether all of its resources were back when one of its threads last looked: only these
    /// may read its records.
    quiet: Mutex<bool>,
}

// SAFETY: in a test one thread at a time writes a part of a segment, as clients of GASNet agree.
unsafe impl<P: Portals> Sync for Rank<P> {}
// SAFETY: as above.
unsafe impl<P: Portals> Send for Rank<P> {}

/// The bytes of a payload, while its handler runs.
fn bytes_of(payload: Dst<'_>) -> &[u8] {
    match payload.len() {
        0 => &[],
        // SAFETY: nothing else writes the payload while its handler runs; tests agree on that.
        n => unsafe { core::slice::from_raw_parts(payload.as_ptr(), n) },
    }
}

/// A job.
struct World<P: Portals> {
    ranks: Vec<Rank<P>>,
    threads: usize,
    /// Bytes of each segment that come before its memory.
    earlier: usize,
    arrived: AtomicU32,
}

/// A client thread: what the conduit is handed with every call.
struct Up<'a, P: Portals> {
    world: &'a World<P>,
    rank: u32,
    thread: usize,
    handler: traffic::TestHandler<P>,
}

impl<P: Portals> Clone for Up<'_, P> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<P: Portals> Copy for Up<'_, P> {}

thread_local! {
    static IN_HANDLER: core::cell::Cell<bool> = const { core::cell::Cell::new(false) };
}

impl<P: Portals> Up<'_, P> {
    fn rank(&self) -> &Rank<P> {
        &self.world.ranks[self.rank as usize]
    }

    fn conduit(&self) -> &Conduit<P> {
        &self.rank().conduit
    }

    fn look_whether_quiet(&self) {
        let quiet = &mut *self.rank().quiet.lock().unwrap();
        *quiet = self.conduit().is_quiet();
    }

    fn error(&self, what: core::fmt::Arguments<'_>) {
        if self.rank().errors.fetch_add(1, Ordering::Relaxed) < 5 {
            eprintln!("rank {} thread {}: {what}", self.rank, self.thread);
        }
    }
}

impl<P: Portals> Upcall for Up<'_, P> {
    fn thread(self) -> usize {
        self.thread
    }

    fn run_request(self, token: &mut ReplyToken, message: AmMessage<'_>) {
        assert!(!IN_HANDLER.replace(true), "handlers nest");
        // Polling inside a handler is harmless.
        self.conduit().poll(self);
        (self.handler)(self, Some(token), message);
        self.rank().requests.fetch_add(1, Ordering::Relaxed);
        IN_HANDLER.set(false);
    }

    fn run_reply(self, message: AmMessage<'_>) {
        assert!(!IN_HANDLER.replace(true), "handlers nest");
        (self.handler)(self, None, message);
        self.rank().replies.fetch_add(1, Ordering::Relaxed);
        IN_HANDLER.set(false);
    }

    fn op_done(self, op: OpId) {
        let left = self.rank().ops[op.0 as usize % OPS].fetch_sub(1, Ordering::AcqRel);
        assert!(left != 0, "operation {op:?} is done too often");
    }

    fn op_departed(self, op: OpId) {
        assert!(op.counts_departures(), "operation {op:?} counts no departures");
        self.rank().departed[op.0 as usize % OPS].fetch_add(1, Ordering::AcqRel);
        self.op_done(op);
    }

    fn system(self, source: JobRank, message: SystemMessage) {
        assert_eq!(message, SystemMessage { id: 0x7f, args: [source.0, self.rank] });
        self.rank().system.fetch_add(1, Ordering::Relaxed);
    }

    fn pause(self, round: u32, need: ResourceNeed) {
        self.pause_at(round, losses::stage_of(need))
    }
}

impl<P: Portals> World<P> {
    /// The `n` bytes at `addr` in the segment of a rank.
    fn range(&self, rank: u32, addr: *mut u8, n: usize) -> RemoteRange {
        let offset = addr.addr() - self.ranks[rank as usize].segment.addr() + self.earlier;
        RemoteRange::unmapped(JobRank(rank), offset, n)
    }

    /// A Long to `dest` in the segment of a rank; `cross_mapped`: its sender may copy plainly.
    fn long<'a>(
        &self,
        rank: u32,
        args: &'a [i32],
        payload: &'a [u8],
        dest: *mut u8,
        cross_mapped: bool,
    ) -> Outgoing<'a> {
        let range = self.range(rank, dest, payload.len());
        // SAFETY: segments are never freed, and all are in this process.
        let mapped = unsafe { Dst::new(dest, payload.len()) };
        let to = match cross_mapped {
            true => RemoteRange::mapped_at(range.rank(), range.offset(), mapped),
            false => range,
        };
        Outgoing::long(200, args, Src::from(payload), to, dest.addr())
    }

    /// Opens a job over these interfaces, one for each rank.
    fn open(portals: Vec<P>, config: &Config) -> World<P> {
        World::open_with(portals, &[config], SEGMENT, 0)
    }

    /// The same with segments of this many bytes, which begin `earlier` bytes before their memory.
    /// The ranks take the configurations in turn; the first configuration says how many threads
    /// call.
    fn open_with(portals: Vec<P>, configs: &[&Config], bytes: usize, earlier: usize) -> World<P> {
        let peers: Vec<PortalsId> = portals.iter().map(Portals::id).collect();
        let ranks: Vec<Rank<P>> = portals
            .into_iter()
            .enumerate()
            .map(|(me, p)| Rank {
                conduit: Conduit::open(
                    p,
                    configs[me % configs.len()].clone(),
                    JobRank(me as u32),
                    peers.clone(),
                )
                .expect("open"),
                segment: memory::private(bytes).expect("memory").as_ptr(),
                ops: [const { AtomicU32::new(0) }; OPS],
                departed: [const { AtomicU32::new(0) }; OPS],
                requests: AtomicU64::new(0),
                replies: AtomicU64::new(0),
                system: AtomicU64::new(0),
                errors: AtomicU64::new(0),
                waits: (0..configs[0].threads).map(|_| Default::default()).collect(),
                quiet: Mutex::new(false),
            })
            .collect();
        let mapped: Vec<_> = ranks.iter().map(|r| r.segment.wrapping_sub(earlier)).collect();
        // SAFETY: segments are never freed; tests use none of the bytes that come before them.
        let segment = |at| unsafe { Dst::new(at, bytes + earlier) };
        let segments: Vec<_> = mapped.into_iter().map(segment).collect();
        let peers: Vec<_> = segments.iter().copied().map(Some).collect();
        for (r, own) in ranks.iter().zip(segments) {
            if let Some(x) = r.conduit.shared_host() {
                x.expose_segments(own, &peers);
            }
            r.conduit.expose(ExposedMemory::Segment(own)).expect("attach");
        }
        World { ranks, threads: configs[0].threads, earlier, arrived: AtomicU32::new(0) }
    }

    /// Runs `client` in every thread of every rank, polls until all have ended, and checks that
    /// all resources of the conduits are free again.
    fn run(&self, handler: traffic::TestHandler<P>, client: impl Fn(Up<'_, P>) + Sync) {
        let done = AtomicBool::new(false);
        let busy = AtomicU32::new((self.ranks.len() * self.threads) as u32);
        std::thread::scope(|s| {
            s.spawn(|| self.watch(&done));
            std::thread::scope(|s| {
                for rank in 0..self.ranks.len() as u32 {
                    for thread in 0..self.threads {
                        let (client, busy) = (&client, &busy);
                        s.spawn(move || {
                            let up = Up { world: self, rank, thread, handler };
                            client(up);
                            up.look_whether_quiet();
                            busy.fetch_sub(1, Ordering::AcqRel);
                            self.serve_until(up, || {
                                busy.load(Ordering::Acquire) == 0 && self.all_are_quiet(up)
                            });
                        });
                    }
                }
            });
            done.store(true, Ordering::Release);
        });
        for r in &self.ranks {
            // All that peers target is memory that they reach without help.
            let c = r.conduit.counters();
            assert!(c.framed == 0 && c.dropped == 0, "{c:?}");
        }
        self.check_credits();
        let errors: u64 = self.ranks.iter().map(|r| r.errors.load(Ordering::Relaxed)).sum();
        assert_eq!(errors, 0, "errors in handlers or clients");
    }

    fn serve_until(&self, up: Up<'_, P>, done: impl Fn() -> bool) {
        let mut round = 0;
        while !done() {
            if up.conduit().poll(up) {
                round = 0;
            } else {
                up.pause_at(round, WaitStage::Idle);
                round += 1;
            }
        }
    }

    /// Waits until every client is here, serving the network meanwhile.
    fn meet(&self, up: Up<'_, P>) {
        up.look_whether_quiet();
        let clients = (self.ranks.len() * self.threads) as u32;
        let all = (self.arrived.fetch_add(1, Ordering::AcqRel) / clients + 1) * clients;
        self.serve_until(up, || self.arrived.load(Ordering::Acquire) >= all);
    }

    /// Whether all resources of all ranks are back where they belong. This is for clients
    /// that run at the same time and have looked ([`Up::look_whether_quiet`]) since they last
    /// sent.
    fn all_are_quiet(&self, up: Up<'_, P>) -> bool {
        up.look_whether_quiet();
        self.ranks.iter().all(|r| *r.quiet.lock().unwrap())
    }

    /// The same for a test whose ranks have one thread in common.
    fn is_quiet(&self) -> bool {
        self.ranks.iter().all(|r| r.conduit.is_quiet())
    }

    /// Nothing is under way: what each has lent is what the other holds, and none is lost.
    fn check_credits(&self) {
        let all: Vec<_> = self.ranks.iter().map(|r| r.conduit.credits.peers()).collect();
        for (x, r) in self.ranks.iter().enumerate().filter(|(x, _)| !all[*x].is_empty()) {
            let config = r.conduit.config();
            let lent: u64 = all[x].iter().map(|p| u64::from(p.loan_credits)).sum();
            assert_eq!(lent + u64::from(r.conduit.credits.banked()), config.total_credits());
            for (y, of) in all.iter().enumerate() {
                assert_eq!(all[x][y].loan_credits, of[x].send_credits, "from {x} to {y}");
                assert!(u32::from(of[x].send_credits) >= MIN_CREDITS);
            }
        }
    }

    fn watch(&self, done: &AtomicBool) {
        for _ in 0..1200 {
            std::thread::sleep(Duration::from_millis(50));
            if done.load(Ordering::Acquire) {
                return;
            }
        }
        for r in &self.ranks {
            let handled = (r.requests.load(Ordering::Relaxed), r.replies.load(Ordering::Relaxed));
            eprintln!(
                "stuck: {:?} {handled:?} {:?} {}",
                r.conduit,
                r.conduit.stats(),
                r.conduit.left()
            );
        }
        std::process::abort();
    }
}

impl<P: Portals> Conduit<P> {
    fn is_quiet(&self) -> bool {
        self.tickets.left() + 2 >= self.config.msg_limit
            && self.reqsb.left() == self.config.sb_chunks
            && self.outbox.all_back(self.config.nodes)
            && large::none_is_left(self)
            && self.rplsb.left() + 1 >= self.config.rpl_chunks
            && self.tmpmd.left() + 1 >= self.config.num_tmpmd
            && self.credits.peers().iter().all(|p| p.send_inuse == 0 && !p.is_revoking())
    }

    /// Credits that we have lent beyond the first ones, and that came back.
    fn credits_moved(&self) -> (u64, u64) {
        let mut text = String::new();
        self.write_credit_stats(&mut text).expect("a string takes all");
        let column = |i: usize| {
            let peers = text.lines().filter(|l| l.starts_with("peer "));
            peers
                .map(|l| {
                    l.split(' ').nth(i).and_then(|n| n.parse::<u64>().ok()).expect("a number")
                })
                .sum()
        };
        (column(3), column(4))
    }

    fn left(&self) -> String {
        format!(
            "tickets {} ReqSB {} RplSB {} TMPMD {} bank {} credits {:?}",
            self.tickets.left(),
            self.reqsb.left(),
            self.rplsb.left(),
            self.tmpmd.left(),
            self.credits.banked(),
            self.credits.peers()
        )
    }
}

/// Pseudo-random numbers (xorshift).
struct Dice(u64);

impl Dice {
    fn new(seed: u64) -> Dice {
        Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn roll(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % n as u64) as usize
    }
}

/// Interfaces of the emulation that share a memory file, all in this process.
fn emulation(processes: u32, config: &Config) -> Vec<Emulation> {
    let arena = std::os::fd::OwnedFd::from(::sys::memory::MemFd::create(c"arena").unwrap());
    let open = |i| {
        let (arena, rank) = (arena.try_clone().expect("dup"), LocalRank(i));
        Emulation::open(arena, rank, (&[processes], 0), None, config).expect("open")
    };
    (0..processes).map(open).collect()
}

/// Runs a test that may end its process, in one of its own with this environment: exit code and
/// what it said.
fn run_alone(test: &str, settings: &[(&str, &str)]) -> (Option<i32>, String) {
    let run = std::process::Command::new(std::env::current_exe().expect("exe"))
        .args(["--ignored", "--exact", test, "--nocapture", "--test-threads=1"])
        .envs(settings.iter().copied())
        .output()
        .expect("run");
    (run.status.code(), String::from_utf8_lossy(&run.stderr).into_owned())
}

/// The same for one of several cases, which the test asks [`this_case`] for.
fn run_case(test: &str, case: usize) -> (Option<i32>, String) {
    run_alone(test, &[("GASNET_TEST_CASE", &case.to_string())])
}

/// Sends rank 1 a message with this header, whose body, if any, travels in its event. Requests go
/// to ReqHdr, replies to the chunk that the header names.
fn send_header(
    c: &Conduit<Emulation>,
    am: &match_bits::AmHeader,
    body: Option<super::portals::InlineBody>,
) -> bool {
    let (bits, data) = am.pack();
    let target = if am.request { TargetMd::ReqHdr } else { TargetMd::ReqSb };
    let bits = bits & match_bits::IGNORE | target as u64;
    let offset = if am.request { 0 } else { am.chunk as usize * CHUNK };
    let to = c.am_target(JobRank(1), bits, offset, data);
    match body {
        Some(body) => c.portals.put_inline(&body, &to),
        None => c.portals.put_at_once([Src::empty()], &to),
    }
}

/// The case of a test that [`run_case`] runs.
fn this_case() -> usize {
    std::env::var("GASNET_TEST_CASE").expect("a case").parse().expect("a number")
}

/// Instantiates a test for the networks: `fn(portals, config)` with this many ranks and threads.
macro_rules! over_all {
    ($($name:ident($ranks:expr, $threads:expr) $config:expr;)*) => {
        mod over_fake {
            $(#[test]
            fn $name() {
                let config = $config(tiny($ranks, $threads));
                super::traffic::$name(super::World::open(super::fake::net($ranks, 0, 1), &config));
            })*
            use super::tiny;
        }
        mod over_lazy_fake {
            $(#[test]
            fn $name() {
                for seed in 0..3 {
                    let config = $config(tiny($ranks, $threads));
                    super::traffic::$name(super::World::open(super::fake::net($ranks, 3, seed), &config));
                }
            })*
            use super::tiny;
        }
        mod over_emulation {
            $(#[test]
            fn $name() {
                let config = $config(tiny($ranks, $threads));
                super::traffic::$name(super::World::open(super::emulation($ranks, &config), &config));
            })*
            use super::tiny;
        }
    };
}

/// The parameters of everyday use.
fn usual(mut c: Config) -> Config {
    (c.msg_limit, c.num_tmpmd, c.sb_chunks, c.rpl_chunks) = (250, 64, 256, 32);
    c.reqrb_chunks = 64;
    c.max_transfer = 1 << 30;
    c.share_credits(None, Some(0), None);
    c
}

/// As [`usual`], with an outbox that is often empty.
fn boxed(c: Config) -> Config {
    Config { outbox_areas: 3, ..usual(c) }
}

/// Everything small, but Longs always travel as two messages.
fn unpacked(c: Config) -> Config {
    Config { packed_limit: 0, at_once: false, ..c }
}

/// Hardly enough credits for all, and short epochs: they move all the time.
fn lending(mut c: Config) -> Config {
    (c.max_cred_per_node, c.epoch_duration, c.sb_chunks) = (20, 16, 8);
    c.share_credits(Some(10), Some(9), None);
    c
}

/// As [`lending`], with Longs in two messages, two poll limits of 1, and no more than the least
/// at start.
fn lending_least(mut c: Config) -> Config {
    (c.max_cred_per_node, c.epoch_duration, c.sb_chunks) = (9, 3, 2);
    (c.packed_limit, c.am_limit, c.sys_limit, c.safe_limit) = (100, 1, 1, 1);
    c.share_credits(Some(8), Some(2), None);
    c
}

/// The fixed scheme.
fn fixed(mut c: Config) -> Config {
    c.dynamic_credits = false;
    c.share_credits(Some(9), None, None);
    c
}

over_all! {
    puts_and_gets(3, 1) |c| c;
    puts_and_gets_usual(3, 1) super::usual;
    puts_and_gets_threads(2, 3) |c| c;
    alone(1, 1) |c| c;
    messages(2, 1) |c| c;
    messages_unpacked(2, 1) super::unpacked;
    messages_boxed(3, 1) super::boxed;
    flood(3, 1) |c| c;
    flood_unpacked(2, 1) super::unpacked;
    flood_usual(4, 1) super::usual;
    flood_boxed(4, 1) super::boxed;
    flood_boxed_threads(2, 4) super::boxed;
    flood_threads(2, 3) |c| c;
    flood_threads_usual(2, 4) super::usual;
    headers(3, 1) |c| c;
    headers_lending(3, 1) super::lending_least;
    headers_threads(2, 3) super::boxed;
    all_to_one(4, 1) |c| c;
    system(3, 1) |c| c;
    flood_lending(3, 1) super::lending;
    flood_lending_least(4, 1) super::lending_least;
    flood_lending_threads(2, 3) super::lending;
    flood_fixed(3, 1) super::fixed;
    all_to_one_lending(5, 1) super::lending;
    all_to_one_lending_threads(2, 3) super::lending_least;
    one_to_all_lending(5, 1) super::lending;
    favourites(4, 1) super::lending;
    favourites_least(6, 1) super::lending_least;
    favourites_threads(3, 2) super::lending;
    slow_handlers(3, 1) super::lending;
    idle_pollers(3, 1) super::lending;
}

/// Without flow control a flood overflows the receive buffers: that is found, and fatal.
#[test]
fn overflow_is_fatal() {
    let (code, text) = run_alone("conduit::tests::overflow", &[]);
    assert_eq!(code, Some(1), "{text}");
    assert!(
        text.contains("flow-control failure") && text.contains("GASNET_PORTAL_FLOW_CONTROL"),
        "{text}"
    );
}

#[test]
#[ignore = "ends the process; run by overflow_is_fatal"]
fn overflow() {
    let mut config = tiny(2, 1);
    (config.flow_control, config.sb_chunks) = (false, 64);
    let world = World::open(fake::net(2, 0, 1), &config);
    let up = Up { world: &world, rank: 0, thread: 0, handler: traffic::nothing };
    for _ in 0..64 {
        traffic::send_medium(up, 1, &[1; 1000]);
    }
    let up = Up { rank: 1, ..up };
    up.conduit().poll(up);
    while up.conduit().poll(up) {}
}
