//! A simulated job: its ranks, their operations, the network between them. Messages take one to
//! eight ticks, so they overtake each other. Moves may be kept for longer before they leave.
//!
//! The firehoses are the library's own. What must hold is asserted: by the library in
//! `Firehose::local_sums`, by the memory, and here: in each tick for some ranks, and for all when
//! the job ends.

use crate::dice::Dice;
use crate::memory::{PAGE, SimulatedMemory, Troubles, pin_of};
use crate::pattern::AccessPattern;
use gasnet::client_memory::Src;
use gasnet::conduit::firehose::{
    ANSWER_BYTES, Firehose, FirehoseLimits, FirehoseStats, HoldState, LocalAccess, LocalHold,
    MemoryExtent, MissTurn, MoveMessage, Mover, PinId, RemoteAccess, RemoteHold, RemotePins,
};
use gasnet::rank::JobRank;
use std::cell::RefCell;
use std::collections::BTreeMap;

/// Longest way of a message, in ticks.
const LATENCY: u32 = 8;
/// Longest time that a move is kept before it leaves, in ticks.
pub(crate) const KEPT: u32 = 96;
/// Ranks that are looked at in each tick, where moves are kept; 1 elsewhere.
const LOOKED_AT: u32 = 8;
/// This number of ticks without the end of an operation are a hang.
const HANG: u64 = 20_000;
/// Where the memory of ranks begins.
const BASE: usize = 0x10_0000_0000;

/// The parameters of a simulation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scenario {
    pub(crate) limits: FirehoseLimits,
    pub(crate) pattern: AccessPattern,
    /// Regions of each peer that a rank accesses.
    pub(crate) set: u32,
    /// Operations of each rank, and how many it has under way at once.
    pub(crate) operations: u32,
    pub(crate) threads: u32,
    /// Operations that are small puts, in parts of 1,000; the others may cross regions.
    pub(crate) small: u32,
    pub(crate) troubles: Troubles,
    pub(crate) seed: u64,
}

/// The result of a simulation.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FirehoseResult {
    pub(crate) operations: u64,
    pub(crate) ticks: u64,
    /// Longest time of an operation, in ticks.
    pub(crate) longest: u64,
    /// Sums over all ranks.
    pub(crate) stats: FirehoseStats,
    /// Most regions that a rank had pinned.
    pub(crate) most_pinned: u32,
    /// Moves that were kept before they left.
    pub(crate) kept: u64,
    /// Operations that ended with an error.
    pub(crate) failed: u64,
    /// Recalls that arrived.
    pub(crate) recalled: u64,
}

impl FirehoseResult {
    /// The share of accesses to memory of peers that were hits, in percent.
    pub(crate) fn hit_rate(&self) -> f64 {
        let FirehoseStats { remote_hits, remote_misses, .. } = self.stats;
        100.0 * remote_hits as f64 / (remote_hits + remote_misses).max(1) as f64
    }
}

enum Parcel {
    Move(Vec<u8>),
    Answer(Vec<u8>),
    Transfer { thread: usize, id: PinId, bytes: MemoryExtent },
    Done { thread: usize, landed: bool },
}

#[derive(Clone, Copy, Debug)]
enum Stage {
    /// Needs the region of the peer.
    Remote(Option<MissTurn>),
    /// Waits for it.
    Pending(RemoteHold),
    /// Its payload is under way with the move.
    Riding(RemoteHold),
    /// Needs the region of this rank.
    Local(RemoteHold, Option<MissTurn>),
    /// The transfer is under way.
    Flying(RemoteHold, LocalHold),
}

#[derive(Debug)]
struct Operation {
    peer: u32,
    /// What of it is left, at the peer and here.
    remote: MemoryExtent,
    local: usize,
    piece: usize,
    small: bool,
    began: u64,
    stage: Stage,
}

type Rank = (Firehose<SimulatedMemory, SimulatedMemory>, SimulatedMemory, Vec<Option<Operation>>);

pub(crate) struct FirehoseJob {
    scenario: Scenario,
    ranks: Vec<Rank>,
    started: Vec<u32>,
    /// What arrives in each of the next ticks: sender, receiver, what.
    network: Vec<Vec<(u32, u32, Parcel)>>,
    /// Moves that were composed and have not left, by the tick in which they do.
    kept: BTreeMap<u64, Vec<(u32, u32, Parcel)>>,
    tick: u64,
    dice: Dice,
    result: FirehoseResult,
}

/// Collects what a firehose sends.
#[derive(Default)]
struct Outbox(RefCell<Vec<(u32, Vec<u8>)>>);

impl Mover for Outbox {
    fn send(&self, JobRank(to): JobRank, message: &[u8], _: Src<'_>) {
        self.0.borrow_mut().push((to, message.to_vec()));
    }
}

impl FirehoseJob {
    pub(crate) fn new(scenario: Scenario) -> FirehoseJob {
        let limits = scenario.limits;
        let rank = |me: u32| {
            let seed = scenario.seed << 20 ^ u64::from(me);
            let memory = SimulatedMemory::new(seed, scenario.troubles, limits.slots());
            let firehose =
                Firehose::new(false, true, JobRank(me), limits, memory.clone(), memory.clone());
            (firehose, memory, (0..scenario.threads).map(|_| None).collect())
        };
        FirehoseJob {
            scenario,
            ranks: (0..limits.ranks).map(rank).collect(),
            started: vec![0; limits.ranks as usize],
            kept: BTreeMap::new(),
            network: (0..=LATENCY).map(|_| Vec::new()).collect(),
            tick: 0,
            dice: Dice::new(scenario.seed),
            result: FirehoseResult::default(),
        }
    }

    fn send(&mut self, from: u32, to: u32, parcel: Parcel) {
        let at = self.tick + 1 + u64::from(self.dice.below(LATENCY));
        self.network[(at % u64::from(LATENCY + 1)) as usize].push((from, to, parcel));
    }

    /// A move, or a recall, was composed: it leaves now, or later.
    fn send_move(&mut self, from: u32, to: u32, message: Vec<u8>) {
        let kept = self.scenario.troubles.kept;
        let parcel = Parcel::Move(message);
        if kept == 0 || self.dice.below(1000) >= kept {
            return self.send(from, to, parcel);
        }
        self.result.kept += 1;
        let leaves = self.tick + 1 + u64::from(self.dice.below(KEPT));
        self.kept.entry(leaves).or_default().push((from, to, parcel));
    }

    /// Lets the moves leave that were kept until this tick.
    fn send_kept(&mut self) {
        for (from, to, parcel) in self.kept.remove(&self.tick).unwrap_or_default() {
            self.send(from, to, parcel);
        }
    }

    fn progress(&mut self, me: u32) {
        let outbox = Outbox::default();
        self.ranks[me as usize].0.progress(&outbox);
        for (to, message) in outbox.0.into_inner() {
            self.send_move(me, to, message);
        }
    }

    /// Runs until every rank has done its operations.
    pub(crate) fn run(mut self) -> FirehoseResult {
        let ranks = self.scenario.limits.ranks;
        let all = u64::from(ranks) * u64::from(self.scenario.operations);
        let mut last_end = 0;
        // A rank that has nothing to do is passed over until something arrives.
        let mut awake = vec![true; ranks as usize];
        while self.result.operations < all {
            self.tick += 1;
            self.send_kept();
            let before = self.result.operations;
            let slot = (self.tick % u64::from(LATENCY + 1)) as usize;
            for (from, to, parcel) in std::mem::take(&mut self.network[slot]) {
                awake[to as usize] = true;
                self.deliver(from, to, parcel);
            }
            for me in 0..ranks {
                if awake[me as usize] {
                    self.progress(me);
                    awake[me as usize] = self.step(me);
                }
            }
            if self.result.operations != before {
                last_end = self.tick;
            }
            assert!(self.tick - last_end < HANG, "no operation ends:\n{}", self.waiting());
            let first = self.dice.below(ranks);
            let more = if self.scenario.troubles.kept == 0 { 1 } else { LOOKED_AT.min(ranks) };
            (0..more).for_each(|k| self.look_at((first + k) % ranks));
        }
        self.sum_up()
    }

    /// Asserts what must hold of a rank in each tick.
    fn look_at(&self, me: u32) {
        let limits = self.scenario.limits;
        let firehose = &self.ranks[me as usize].0;
        let pinned = firehose.local_sums().pinned;
        assert!(
            pinned <= limits.m + limits.max_victim,
            "{pinned} regions of rank {me} are pinned"
        );
        let most = if limits.lend { limits.m } else { limits.share() };
        for (peer, RemotePins { used, pins, pending }) in firehose.remote_pins() {
            let (owner, memory, _) = &self.ranks[peer.index()];
            let sum = pins.len() as u32 + pending;
            assert!(
                sum <= most,
                "rank {me}: {pins:?} of {peer}, {pending} pending, {most} allowed"
            );
            assert_eq!(sum, used, "what rank {me} has of {peer}, and what it counts");
            let held = owner.held_by(JobRank(me));
            assert!(held <= most, "{peer} lends {held} to rank {me}, {most} are allowed");
            assert!(
                pins.len() as u32 <= held,
                "rank {me}: {pins:?} of {peer}, which counts {held}"
            );
            let lost = pins.iter().find(|&&id| !memory.has(id) && !memory.has_lost(id));
            assert_eq!(lost, None, "of {peer} is unpinned");
        }
    }

    /// What waits, of a few ranks.
    fn waiting(&self) -> String {
        let mut text = format!("{:?}\n", self.scenario);
        for (me, (firehose, _, operations)) in self.ranks.iter().enumerate().take(8) {
            for op in operations.iter().flatten() {
                let peer = JobRank(op.peer);
                let (used, holds) = firehose.remote_sums(peer);
                let held = self.ranks[op.peer as usize].0.held_by(JobRank(me as u32));
                let own = firehose.local_sums();
                text +=
                    &format!("{me}: {op:?}; {used} used, {held} held, {holds} holds, {own:?}\n");
            }
        }
        text
    }

    fn deliver(&mut self, from: u32, to: u32, parcel: Parcel) {
        let (firehose, memory, operations) = &mut self.ranks[to as usize];
        match parcel {
            Parcel::Move(message) => {
                let mut answer = [0; ANSWER_BYTES];
                let len = firehose
                    .serve(JobRank(from), &message, &mut answer)
                    .expect("the message was sent by a firehose");
                match len {
                    0 => self.result.recalled += 1,
                    _ => self.send(to, from, Parcel::Answer(answer[..len].to_vec())),
                }
            }
            Parcel::Answer(answer) => {
                assert!(firehose.answered(JobRank(from), &answer), "an answer that was not asked");
            }
            Parcel::Transfer { thread, id, bytes } => {
                let landed = memory.end(id, bytes);
                self.send(to, from, Parcel::Done { thread, landed });
            }
            Parcel::Done { thread, landed } => {
                let op = operations[thread].as_mut().expect("it is under way");
                let Stage::Flying(remote, local) = op.stage else { panic!("it is not flying") };
                let bytes = MemoryExtent { start: op.local, end: op.local + op.piece };
                // It may have been unmapped here meanwhile, but the transfer keeps its pin.
                assert!(memory.has(firehose.pin_id(local)), "unpinned while in use here");
                memory.end(firehose.pin_id(local), bytes);
                firehose.release_local(local);
                if landed {
                    firehose.release_remote(remote);
                    self.piece_done(to, thread);
                } else {
                    firehose.rejected(remote);
                    op.stage = Stage::Remote(None);
                }
            }
        }
    }

    /// A piece of an operation is complete: goes on with the next.
    fn piece_done(&mut self, me: u32, thread: usize) {
        let place = &mut self.ranks[me as usize].2[thread];
        let op = place.as_mut().expect("it is under way");
        op.remote.start += op.piece;
        op.local += op.piece;
        op.stage = Stage::Remote(None);
        if op.remote.is_empty() {
            self.result.longest = self.result.longest.max(self.tick - op.began);
            self.result.operations += 1;
            *place = None;
        }
    }

    /// Lets the operations of a rank go on as far as they can. False if nothing will happen here
    /// until a message arrives.
    fn step(&mut self, me: u32) -> bool {
        let mut busy = false;
        for thread in 0..self.scenario.threads as usize {
            if self.ranks[me as usize].2[thread].is_none() {
                if self.started[me as usize] == self.scenario.operations {
                    continue;
                }
                self.started[me as usize] += 1;
                let op = self.operation(me);
                if self.dice.below(1000) < self.scenario.troubles.unmapped {
                    // Its firehoses learn it by the next calls.
                    self.ranks[op.peer as usize].1.unmap_some();
                    self.ranks[me as usize].1.unmap_some();
                }
                self.ranks[me as usize].2[thread] = Some(op);
            }
            busy = true;
            while self.step_operation(me, thread) {}
        }
        busy
    }

    fn operation(&self, me: u32) -> Operation {
        let Scenario { limits, pattern, set, small, .. } = self.scenario;
        let k = self.started[me as usize];
        let (peer, region) = pattern.access(me, limits.ranks, set, k, &self.dice);
        let bytes = limits.region_bytes as u32;
        let is_small = self.dice.below(1000) < small;
        let offset = self.dice.below(bytes / 8) * 8;
        let len = if is_small { 8 } else { 8 + self.dice.below(2 * bytes) };
        let start = BASE + region as usize * limits.region_bytes + offset as usize;
        // Operations beyond the working set would not be of it.
        let end = (start + len as usize).min(BASE + set as usize * limits.region_bytes);
        Operation {
            peer,
            remote: MemoryExtent { start, end },
            local: BASE + self.dice.below(64) as usize * PAGE,
            piece: 0,
            small: is_small,
            began: self.tick,
            stage: Stage::Remote(None),
        }
    }

    /// One step of an operation; false if it has to wait.
    fn step_operation(&mut self, me: u32, thread: usize) -> bool {
        let limits = self.scenario.limits;
        let (firehose, memory, operations) = &mut self.ranks[me as usize];
        let Some(op) = operations[thread].as_mut() else { return false };
        let peer = JobRank(op.peer);
        match op.stage {
            Stage::Remote(turn) => {
                let left = op.remote.len();
                // Cut at the regions of both sides.
                op.piece = limits.piece(op.local, limits.piece(op.remote.start, left));
                let start = op.remote.start;
                let bytes = MemoryExtent { start, end: start + op.piece };
                match firehose.remote(peer, bytes, left - op.piece, op.small, turn) {
                    RemoteAccess::Ready(hold, _) => op.stage = Stage::Local(hold, None),
                    RemoteAccess::Pending(hold) => op.stage = Stage::Pending(hold),
                    RemoteAccess::Riding(hold, message) => {
                        op.stage = Stage::Riding(hold);
                        let message = MoveMessage::as_bytes(&message).to_vec();
                        let to = op.peer;
                        self.send_move(me, to, message);
                    }
                    RemoteAccess::Full(turn) => {
                        op.stage = Stage::Remote(Some(turn));
                        return false;
                    }
                }
            }
            Stage::Pending(hold) => match firehose.state(hold) {
                HoldState::Pending => return false,
                HoldState::Ready => op.stage = Stage::Local(hold, None),
                HoldState::Failed(_) => {
                    // The system's limit at the peer: its idle regions are few. Again.
                    firehose.release_remote(hold);
                    self.result.failed += 1;
                    op.stage = Stage::Remote(None);
                    return false;
                }
            },
            Stage::Riding(hold) => {
                if firehose.state(hold) == HoldState::Pending {
                    return false;
                }
                firehose.release_remote(hold);
                self.piece_done(me, thread);
                return false;
            }
            Stage::Local(hold, turn) => {
                let bytes = MemoryExtent { start: op.local, end: op.local + op.piece };
                match firehose.local(bytes, turn) {
                    LocalAccess::Ready(local) => {
                        let id = pin_of(firehose.name(hold).key);
                        let start = op.remote.start;
                        let bytes = MemoryExtent { start, end: start + op.piece };
                        let own = firehose.pin_id(local);
                        assert!(!memory.is_unmapped(own), "{own:?} is of other memory");
                        memory.begin(own);
                        op.stage = Stage::Flying(hold, local);
                        let to = op.peer;
                        self.ranks[to as usize].1.begin(id);
                        self.send(me, to, Parcel::Transfer { thread, id, bytes });
                    }
                    LocalAccess::Full(turn) => {
                        op.stage = Stage::Local(hold, Some(turn));
                        return false;
                    }
                    LocalAccess::Failed(_) => {
                        self.result.failed += 1;
                        return false;
                    }
                }
            }
            Stage::Flying(..) => return false,
        }
        true
    }

    /// Lets all messages arrive, and checks what is left.
    fn sum_up(mut self) -> FirehoseResult {
        let ranks = self.scenario.limits.ranks;
        self.result.ticks = self.tick;
        let last = if self.scenario.troubles.kept == 0 { LATENCY } else { LATENCY + KEPT };
        for _ in 0..20 * last {
            self.tick += 1;
            self.send_kept();
            let slot = (self.tick % u64::from(LATENCY + 1)) as usize;
            for (from, to, parcel) in std::mem::take(&mut self.network[slot]) {
                self.deliver(from, to, parcel);
                self.progress(to);
            }
        }
        assert!(self.network.iter().all(Vec::is_empty), "messages without end");
        assert!(self.kept.is_empty(), "moves that never leave");
        for me in 0..ranks {
            let (firehose, ..) = &self.ranks[me as usize];
            let local = firehose.local_sums();
            assert_eq!(local.own_holds, 0, "own holds of rank {me}");
            let pending = firehose.remote_pins().values().map(|peer| peer.pending).sum::<u32>();
            assert_eq!(pending, 0, "requests of rank {me} without an answer");
            self.look_at(me);
            for peer in firehose.peers_used() {
                let (used, holds) = firehose.remote_sums(peer);
                assert_eq!(holds, 0, "holds of rank {me}");
                assert!(used <= self.scenario.limits.m);
                let held = self.ranks[peer.index()].0.held_by(JobRank(me));
                assert_eq!(used, held, "regions of {peer} that rank {me} holds");
            }
        }
        for (firehose, memory, _) in &self.ranks {
            self.result.most_pinned = self.result.most_pinned.max(memory.most());
            let FirehoseStats { pins, unpins, pinned, holds, .. } = firehose.stats();
            assert_eq!((holds, pins - unpins), (0, pinned), "something is held");
            assert_eq!(memory.unused(), Some(pinned), "something is under way, or watched");
            self.result.stats += firehose.stats();
        }
        assert_eq!(self.result.recalled, self.result.stats.recalls, "recalls that never arrive");
        self.result
    }
}
