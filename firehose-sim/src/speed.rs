//! What a hit costs, in bare hash probes of the same run.
//!
//! A bare probe hashes a number, loads the slot of a table and compares. A hit looks a region up,
//! holds it, reads what a transfer must name, and releases it. That is one call where the transfer
//! is complete within it, two where an event completes it.

use crate::dice::Dice;
use crate::memory::{PAGE, SimulatedMemory, Troubles};
use gasnet::client_memory::Src;
use gasnet::conduit::firehose::{
    ANSWER_BYTES, Firehose, FirehoseLimits, MemoryExtent, Mover, RemoteAccess,
};
use gasnet::rank::JobRank;
use std::cell::RefCell;
use std::hint::black_box;
use sys::clock;

/// Regions that are accessed, in random order.
const REGIONS: usize = 512;
/// Accesses of one measurement; the quickest of [`ROUNDS`] counts.
const ACCESSES: usize = 1 << 15;
const ROUNDS: usize = 200;

/// The most bare probes that a hit may cost, with one thread and with several.
const GOALS: [(bool, f64); 2] = [(false, 10.0), (true, 20.0)];

struct Outbox(RefCell<Vec<Vec<u8>>>);

impl Mover for Outbox {
    fn send(&self, _: JobRank, message: &[u8], _: Src<'_>) {
        self.0.borrow_mut().push(message.to_vec());
    }
}

type Ranks = [Firehose<SimulatedMemory, SimulatedMemory>; 2];

fn bytes(region: usize) -> MemoryExtent {
    let start = (region + 16) * PAGE;
    MemoryExtent { start, end: start + 8 }
}

/// Two ranks; the first has all regions of the second.
fn ready(par: bool) -> Ranks {
    let m = REGIONS as u32;
    let limits =
        FirehoseLimits { region_bytes: PAGE, ranks: 2, m, max_victim: 1, table: m, lend: false };
    let ranks = [0, 1].map(|me| {
        let memory = SimulatedMemory::new(1, Troubles::default(), limits.slots());
        Firehose::new(par, false, JobRank(me), limits, memory.clone(), memory)
    });
    for region in 0..REGIONS {
        let access = ranks[0].remote(JobRank(1), bytes(region), 0, false, None);
        let RemoteAccess::Pending(hold) = access else { panic!("a first access") };
        let outbox = Outbox(RefCell::default());
        ranks[0].progress(&outbox);
        for message in outbox.0.into_inner() {
            let mut answer = [0; ANSWER_BYTES];
            let len = ranks[1].serve(JobRank(0), &message, &mut answer).expect("its own");
            assert!(ranks[0].answered(JobRank(1), &answer[..len]));
        }
        ranks[0].release_remote(hold);
    }
    ranks
}

/// Nanoseconds of `access` for each of the regions in this order, in the quickest round.
fn quickest(order: &[usize], mut access: impl FnMut(usize)) -> f64 {
    let mut best = u64::MAX;
    for _ in 0..ROUNDS {
        let before = clock::now_ns();
        order.iter().for_each(|&region| access(region));
        best = best.min(clock::now_ns() - before);
    }
    best as f64 / order.len() as f64
}

/// Measures, prints a row for each mode and each kind of hit, and returns how many goals are
/// missed. With `figures` it prints as the programs of `make bench` do, and no goal counts.
pub(crate) fn measure(figures: bool) -> u32 {
    let dice = Dice::new(1);
    let order: Vec<usize> = (0..ACCESSES).map(|_| dice.below(REGIONS as u32) as usize).collect();
    let hash = |key: u64| (key.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize;
    let mut slots = vec![0u64; 8 * REGIONS];
    let mask = slots.len() - 1;
    for region in 0..REGIONS as u64 {
        slots[hash(region + 1) & mask] = region + 1;
    }
    let probe = quickest(&order, |region| {
        let key = region as u64 + 1;
        black_box(slots[hash(key) & mask] == key);
    });
    let figure = |name: &str, ns: f64| {
        println!("# {name}, 1 processes\n# Size Time (ns)\n8 {ns:.3}");
    };
    match figures {
        true => figure("bare_probe", probe),
        false => {
            println!("| threads | a hit | a bare probe, ns | a hit, ns | ratio | goal |");
            println!("|---|---|---|---|---|---|");
        }
    }
    let mut missed = 0;
    for (par, goal) in GOALS {
        let ranks = ready(par);
        let held = quickest(&order, |region| {
            match ranks[0].remote(JobRank(1), bytes(region), 0, false, None) {
                RemoteAccess::Ready(hold, name) => {
                    black_box(name);
                    ranks[0].release_remote(hold);
                }
                other => panic!("{other:?}"),
            }
        });
        let at_once = quickest(&order, |region| {
            let hit = ranks[0].at_hit(JobRank(1), bytes(region), |name| {
                black_box(name);
                true
            });
            assert!(hit, "a miss");
        });
        if figures {
            figure(if par { "hit_threads" } else { "hit_one_thread" }, held);
            continue;
        }
        let threads = if par { "several" } else { "one" };
        for (kind, hit) in [("held until an event", held), ("within the call", at_once)] {
            let ratio = hit / probe;
            println!("| {threads} | {kind} | {probe:.2} | {hit:.2} | {ratio:.1} | {goal:.0} |");
            missed += u32::from(hit > goal * probe);
        }
    }
    missed
}
