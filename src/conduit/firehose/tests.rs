//! Tests of two firehoses that talk to each other, in one thread and in several. The simulator
//! `firehose-sim` has more ranks, and messages that overtake each other.

mod messages;

use super::*;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::Mutex;
use std::thread;

const PAGE: usize = 4096;

/// Memory that counts how it is pinned; addresses below `UNMAPPED` exist.
#[derive(Default)]
struct TestMemory {
    /// Of each slot: the generation that is pinned, plus 1, and how many transfers use it.
    slots: Mutex<Vec<(u32, u32)>>,
    pinned: AtomicU32,
    busy: AtomicBool,
    /// Only the pages needed of a block are mapped.
    partial: AtomicBool,
    /// Most regions that can be pinned, 0 for any number.
    limit: AtomicU32,
    /// That limit is one of mappings.
    of_mappings: AtomicBool,
    news: Mutex<Vec<MemoryExtent>>,
    /// Pins that were to be hidden, and what came of it.
    hidden: Mutex<Vec<(PinId, UnpinOutcome)>>,
}

const UNMAPPED: usize = 0x100_0000;
/// A page of memory whose unmapping nothing would notice.
const UNWATCHED: usize = 0x80_0000;
/// A page that is never pinned.
const REFUSED: usize = 0x90_1000;

impl TestMemory {
    fn begin(&self, key: u64) {
        let (slot, generation) = ((key >> 32) as usize, key as u32);
        let mut slots = self.slots.lock().unwrap();
        assert_eq!(slots[slot].0, generation + 1, "an old generation is used");
        slots[slot].1 += 1;
    }

    fn end(&self, key: u64) {
        self.slots.lock().unwrap()[(key >> 32) as usize].1 -= 1;
    }

    fn is_pinned(&self, key: u64) -> bool {
        self.slots.lock().unwrap()[(key >> 32) as usize].0 == key as u32 + 1
    }
}

impl Pinner for &TestMemory {
    const GENERATIONS: u32 = 1 << 20;

    fn pin(
        &self,
        id: PinId,
        block: MemoryExtent,
        needed: MemoryExtent,
    ) -> Result<MemoryExtent, PinError> {
        assert!(block.covers(needed), "{needed:?} is not in {block:?}");
        if needed.end > UNMAPPED {
            return Err(PinError::Unmapped);
        }
        if block.overlaps(MemoryExtent { start: REFUSED, end: REFUSED + PAGE }) {
            return Err(PinError::Refused);
        }
        let limit = self.limit.load(Ordering::Relaxed);
        if limit != 0 && self.pinned.load(Ordering::Relaxed) >= limit {
            return Err(PinError::Limit);
        }
        let mut slots = self.slots.lock().unwrap();
        let slot = id.slot as usize;
        let len = slots.len().max(slot + 1);
        slots.resize(len, (0, 0));
        assert_eq!(slots[slot], (0, 0), "pinned twice, or a transfer is under way");
        slots[slot].0 = id.generation + 1;
        self.pinned.fetch_add(1, Ordering::Relaxed);
        match self.partial.load(Ordering::Relaxed) {
            true => Ok(MemoryExtent {
                start: needed.start & !(PAGE - 1),
                end: needed.end.next_multiple_of(PAGE),
            }),
            false => Ok(block),
        }
    }

    fn limit(&self) -> PinError {
        match self.of_mappings.load(Ordering::Relaxed) {
            true => PinError::Mappings,
            false => PinError::Limit,
        }
    }

    fn unpin(&self, id: PinId, _: MemoryExtent) -> UnpinOutcome {
        if self.busy.load(Ordering::Relaxed) {
            return UnpinOutcome::Busy;
        }
        let mut slots = self.slots.lock().unwrap();
        assert_eq!(slots[id.slot as usize], (id.generation + 1, 0), "unpinned while it is used");
        slots[id.slot as usize].0 = 0;
        self.pinned.fetch_sub(1, Ordering::Relaxed);
        UnpinOutcome::Done
    }

    fn hide(&self, id: PinId) -> UnpinOutcome {
        let outcome = match self.busy.load(Ordering::Relaxed) {
            true => UnpinOutcome::Busy,
            false => UnpinOutcome::Done,
        };
        self.hidden.lock().unwrap().push((id, outcome));
        outcome
    }

    fn key(&self, id: PinId) -> u64 {
        u64::from(id.slot) << 32 | u64::from(id.generation)
    }
}

impl Monitor for &TestMemory {
    fn watch(&self, _: MemoryExtent) {}
    fn watches(&self, extent: MemoryExtent) -> bool {
        extent.end <= UNWATCHED || extent.start >= UNWATCHED + PAGE
    }
    fn unwatch(&self, _: MemoryExtent) {}
    fn has_news(&self) -> bool {
        !self.news.lock().unwrap().is_empty()
    }
    fn take(&self) -> Option<MemoryExtent> {
        self.news.lock().unwrap().pop()
    }
}

type TestFirehose<'a> = Firehose<&'a TestMemory, &'a TestMemory>;

/// Two ranks, whose messages arrive at once.
struct TestPair<'a>([TestFirehose<'a>; 2]);

impl<'a> TestPair<'a> {
    fn new(par: bool, limits: FirehoseLimits, memories: [&'a TestMemory; 2]) -> TestPair<'a> {
        let limits = limits.check().expect("they can hold");
        TestPair([0, 1].map(|rank: u32| {
            let memory = memories[rank as usize];
            Firehose::new(par, true, JobRank(rank), limits, memory, memory)
        }))
    }

    fn deliver(&self, from: usize, message: &[u8]) {
        let mut answer = [0; ANSWER_BYTES];
        let to = 1 - from;
        let len = self.0[to].serve(JobRank(from as u32), message, &mut answer).expect("ours");
        assert!(len == 0 || self.0[from].answered(JobRank(to as u32), &answer[..len]));
    }

    fn progress(&self, rank: usize) {
        self.0[rank].progress(&TestMover(self, rank));
    }

    /// A hold of memory of the other rank, when it is no longer pending.
    fn hold(&self, rank: usize, start: usize) -> (RemoteHold, HoldState) {
        let bytes = MemoryExtent { start, end: start + 8 };
        let mut turn = None;
        let hold = loop {
            match self.0[rank].remote(JobRank(1 - rank as u32), bytes, 0, false, turn) {
                RemoteAccess::Ready(hold, _) | RemoteAccess::Pending(hold) => break hold,
                RemoteAccess::Riding(..) => panic!("nothing rides along"),
                RemoteAccess::Full(mine) => turn = Some(mine),
            }
            self.progress(rank);
            thread::yield_now();
        };
        loop {
            match self.0[rank].state(hold) {
                HoldState::Pending => self.progress(rank),
                state => return (hold, state),
            }
            thread::yield_now();
        }
    }

    fn local(&self, rank: usize, start: usize) -> LocalHold {
        let mut turn = None;
        loop {
            match self.0[rank].local(MemoryExtent { start, end: start + 8 }, turn) {
                LocalAccess::Ready(hold) => return hold,
                LocalAccess::Full(mine) => turn = Some(mine),
                LocalAccess::Failed(error) => panic!("{error:?}"),
            }
            thread::yield_now();
        }
    }
}

struct TestMover<'a>(&'a TestPair<'a>, usize);

impl Mover for TestMover<'_> {
    fn send(&self, _: JobRank, message: &[u8], _: Src<'_>) {
        self.0.deliver(self.1, message);
    }
}

fn limits(m: u32, max_victim: u32, table: u32) -> FirehoseLimits {
    FirehoseLimits { region_bytes: PAGE, ranks: 2, m, max_victim, table, lend: true }
}

#[test]
fn a_miss_pins_and_the_next_access_hits() {
    let memories = [TestMemory::default(), TestMemory::default()];
    let pair = TestPair::new(false, limits(4, 2, 4), [&memories[0], &memories[1]]);
    let (hold, state) = pair.hold(0, 0x5000);
    assert_eq!(state, HoldState::Ready);
    assert!(memories[1].is_pinned(pair.0[0].name(hold).key));
    let again =
        pair.0[0].remote(JobRank(1), MemoryExtent { start: 0x5ff8, end: 0x6000 }, 0, false, None);
    assert!(matches!(again, RemoteAccess::Ready(same, _) if same == hold));
    let stats = pair.0[0].stats();
    assert_eq!((stats.remote_hits, stats.remote_misses, stats.moves), (1, 1, 1));
    assert_eq!(pair.0[1].held_by(JobRank(0)), 1);
    pair.0[0].release_remote(hold);
    pair.0[0].release_remote(hold);
    assert_eq!(pair.0[0].remote_sums(JobRank(1)), (1, 0));
    assert_eq!((pair.0[0].stats().holds, pair.0[1].held_by(JobRank(0))), (0, 1));
}

/// Memory is unmapped and mapped again at the same address: the old key reaches nothing, a new
/// one is requested. A transfer of the owner keeps its pin until it is complete.
#[test]
fn a_pin_whose_memory_was_unmapped_is_not_used_again() {
    let memories = [TestMemory::default(), TestMemory::default()];
    let pair = TestPair::new(false, limits(4, 2, 4), [&memories[0], &memories[1]]);
    let (hold, _) = pair.hold(0, 0x5000);
    let old = pair.0[0].name(hold).key;
    let own = pair.local(1, 0x5000);
    let gone = MemoryExtent { start: 0x5000, end: 0x6000 };
    memories[1].news.lock().unwrap().push(gone);
    memories[1].busy.store(true, Ordering::Relaxed);
    pair.progress(1);
    memories[1].busy.store(false, Ordering::Relaxed);
    pair.progress(1);
    let id = pair.0[1].pin_id(own);
    let hidden = [(id, UnpinOutcome::Busy), (id, UnpinOutcome::Busy), (id, UnpinOutcome::Done)];
    assert_eq!(*memories[1].hidden.lock().unwrap(), hidden);
    assert!(memories[1].is_pinned(old));
    // The slot keeps its number for those that still know it.
    let fresh = pair.local(1, 0x5000);
    assert_ne!(pair.0[1].pin_id(fresh).slot, pair.0[1].pin_id(own).slot);
    pair.0[0].rejected(hold);
    let (hold, _) = pair.hold(0, 0x5000);
    assert!(memories[1].is_pinned(pair.0[0].name(hold).key) && pair.0[0].name(hold).key != old);
    pair.0[0].release_remote(hold);
    pair.0[1].release_local(own);
    assert!(!memories[1].is_pinned(old));
    pair.0[1].release_local(fresh);
    let sums = pair.0[1].local_sums();
    assert_eq!((sums.own_holds, pair.0[1].held_by(JobRank(0))), (0, sums.references));
}

/// Memory whose unmapping nothing would notice is pinned for one transfer of its owner, and never
/// for a peer.
#[test]
fn what_is_not_watched_is_not_kept_pinned() {
    let memories = [TestMemory::default(), TestMemory::default()];
    let pair = TestPair::new(false, limits(4, 2, 4), [&memories[0], &memories[1]]);
    let (hold, state) = pair.hold(0, UNWATCHED);
    assert_eq!(state, HoldState::Failed(PinError::Unwatched));
    pair.0[0].release_remote(hold);
    for _ in 0..3 {
        let hold = pair.local(1, UNWATCHED);
        assert_eq!(pair.0[1].local_sums().pinned, 1);
        let other = pair.local(1, UNWATCHED);
        assert_ne!(pair.0[1].pin_id(hold), pair.0[1].pin_id(other));
        pair.0[1].release_local(hold);
        pair.0[1].release_local(other);
        let sums = pair.0[1].local_sums();
        assert_eq!((sums.pinned, sums.own_holds, sums.lent), (0, 0, 0));
    }
    let stats = pair.0[1].stats();
    assert_eq!((stats.pins, stats.unpins, stats.local_hits), (7, 7, 0));
}

#[test]
fn the_payload_of_a_put_rides_along_with_its_miss() {
    let memories = [TestMemory::default(), TestMemory::default()];
    let pair = TestPair::new(false, limits(1, 1, 4), [&memories[0], &memories[1]]);
    let bytes = |start| MemoryExtent { start, end: start + 8 };
    let ride = |start| pair.0[0].remote(JobRank(1), bytes(start), 0, true, None);
    let RemoteAccess::Riding(hold, message) = ride(0x5000) else { panic!("it may ride") };
    assert_eq!(pair.0[0].state(hold), HoldState::Pending);
    pair.deliver(0, message.as_bytes());
    assert_eq!(pair.0[0].state(hold), HoldState::Ready);
    // The only region is in use: nothing can be sent now.
    let RemoteAccess::Pending(waits) = ride(0x9000) else { panic!("it waits") };
    pair.0[0].release_remote(hold);
    for _ in 0..3 {
        pair.progress(0);
    }
    assert_eq!(pair.0[0].state(waits), HoldState::Ready);
    pair.0[0].release_remote(waits);
}

/// Another operation does not wait for the answer to a put that rides along as for its own: the
/// pin may fail.
#[test]
fn an_operation_does_not_join_a_put_that_rides() {
    let memories = [TestMemory::default(), TestMemory::default()];
    let pair = TestPair::new(false, limits(4, 1, 4), [&memories[0], &memories[1]]);
    let bytes = MemoryExtent { start: 0x5000, end: 0x5008 };
    let access = |ride, turn| pair.0[0].remote(JobRank(1), bytes, 0, ride, turn);
    let RemoteAccess::Riding(hold, message) = access(true, None) else { panic!("it may ride") };
    let RemoteAccess::Full(turn) = access(false, None) else { panic!("it waits") };
    pair.deliver(0, message.as_bytes());
    let RemoteAccess::Ready(same, _) = access(false, Some(turn)) else { panic!("it is pinned") };
    assert_eq!(hold, same);
    pair.0[0].release_remote(hold);
    pair.0[0].release_remote(same);
}

/// A recall and then a put that may ride along, while all regions were used lately: what is given
/// back reaches the owner.
#[test]
fn what_is_given_back_is_not_lost_by_a_put_that_rides() {
    let memories = [TestMemory::default(), TestMemory::default()];
    let pair = TestPair::new(false, limits(400, 1, 400), [&memories[0], &memories[1]]);
    let start = |region: usize| (region + 1) * PAGE;
    for region in 0..300 {
        let (hold, _) = pair.hold(0, start(region));
        pair.0[0].release_remote(hold);
    }
    assert_eq!(pair.0[1].held_by(JobRank(0)), 300);
    let recall = MoveRequest::Recall(moves::HoldLimit { regions: 200, number: 1 << 20 });
    let mut answer = [0; ANSWER_BYTES];
    assert_eq!(pair.0[0].serve(JobRank(1), recall.encode().as_bytes(), &mut answer), Some(0));
    let bytes = MemoryExtent { start: start(300), end: start(300) + 8 };
    let hold = match pair.0[0].remote(JobRank(1), bytes, 0, true, None) {
        RemoteAccess::Riding(hold, message) => {
            pair.deliver(0, message.as_bytes());
            hold
        }
        RemoteAccess::Pending(hold) => hold,
        other => panic!("{other:?}"),
    };
    for _ in 0..30 {
        pair.progress(0);
    }
    assert_eq!(pair.0[0].state(hold), HoldState::Ready);
    pair.0[0].release_remote(hold);
    let (used, _) = pair.0[0].remote_sums(JobRank(1));
    assert_eq!((used, pair.0[1].held_by(JobRank(0))), (200, 200));
}

/// Regions that end otherwise than as victims leave the lists in which victims are looked for.
#[test]
fn lists_of_victims_do_not_grow() {
    let memories = [TestMemory::default(), TestMemory::default()];
    let pair = TestPair::new(false, limits(4, 2, 8), [&memories[0], &memories[1]]);
    for start in [0x1000, 0x2000, 0x3000] {
        pair.0[0].release_remote(pair.hold(0, start).0);
    }
    pair.0[1].release_local(pair.local(1, 0x9000));
    for _ in 0..1000 {
        let (hold, _) = pair.hold(0, 0x5000);
        let own = pair.local(1, 0x5000);
        pair.0[1].release_local(own);
        memories[1].news.lock().unwrap().push(MemoryExtent { start: 0x5000, end: 0x6000 });
        pair.progress(1);
        pair.0[0].rejected(hold);
    }
    let entries = (pair.0[0].remote.ready_entries(JobRank(1)), pair.0[1].local.idle_entries());
    assert!(entries.0 < 100 && entries.1 < 100, "{entries:?}");
    // Those that have not ended are still found.
    let access = |start: usize| MemoryExtent { start, end: start + 8 };
    for start in [0x5000, 0x6000, 0x7000] {
        match pair.0[0].remote(JobRank(1), access(start), 0, false, None) {
            RemoteAccess::Pending(hold) => {
                (0..3).for_each(|_| pair.progress(0));
                assert_eq!(pair.0[0].state(hold), HoldState::Ready);
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(pair.0[1].held_by(JobRank(0)), 4);
    let own = [0xa000, 0xb000].map(|start| pair.0[1].local(access(start), None));
    assert!(own.iter().all(|access| matches!(access, LocalAccess::Ready(_))), "{own:?}");
}

/// What stays mapped is not undone by news of all memory.
#[test]
fn a_segment_stays_pinned() {
    let memories = [TestMemory::default(), TestMemory::default()];
    let TestPair([peer, owner]) =
        TestPair::new(false, limits(4, 2, 4), [&memories[0], &memories[1]]);
    let segment = MemoryExtent { start: 0x4000, end: 0x8000 };
    let pair = TestPair([peer, owner.exposing(segment)]);
    let (hold, _) = pair.hold(0, 0x5000);
    let beyond = pair.local(1, 0x9000);
    pair.0[1].release_local(beyond);
    memories[1].news.lock().unwrap().push(MemoryExtent { start: 0, end: usize::MAX });
    pair.progress(1);
    assert!(memories[1].is_pinned(pair.0[0].name(hold).key));
    assert_eq!(pair.0[1].stats().unmapped, 1);
    pair.0[0].release_remote(hold);
}

/// Of a block of which a part is pinned, more is needed: the new pin covers the old one.
#[test]
fn a_new_pin_covers_the_old_one_of_its_block() {
    let memories = [TestMemory::default(), TestMemory::default()];
    memories[1].partial.store(true, Ordering::Relaxed);
    let limits = FirehoseLimits { region_bytes: 4 * PAGE, ..limits(4, 2, 4) };
    let pair = TestPair::new(false, limits, [&memories[0], &memories[1]]);
    let holds = [0x11000, 0x13000, 0x10000].map(|start| pair.hold(0, start).0);
    assert_eq!(holds.map(|hold| pair.0[0].name(hold).start), [0x11000, 0x11000, 0x10000]);
    for start in [0x10000, 0x11000, 0x12000, 0x13000] {
        let (again, _) = pair.hold(0, start);
        assert_eq!(again, holds[2]);
        pair.0[0].release_remote(again);
    }
    assert_eq!((pair.0[1].stats().pins, pair.0[1].stats().unpins), (3, 0));
    holds.iter().for_each(|&hold| pair.0[0].release_remote(hold));
    assert_eq!(pair.0[0].remote_sums(JobRank(1)), (3, 0));
}

/// Of a block with a page that the network refuses, the bytes needed are pinned alone, on both
/// sides of that page.
#[test]
fn memory_next_to_what_is_refused_is_pinned() {
    let memories = [TestMemory::default(), TestMemory::default()];
    let limits = FirehoseLimits { region_bytes: 4 * PAGE, ..limits(4, 2, 4) };
    let pair = TestPair::new(false, limits, [&memories[0], &memories[1]]);
    for start in [REFUSED - PAGE, REFUSED + PAGE] {
        let (hold, state) = pair.hold(0, start);
        assert_eq!((state, pair.0[0].name(hold).start), (HoldState::Ready, start));
        pair.0[1].release_local(pair.local(1, start));
        pair.0[0].release_remote(hold);
    }
    let (refused, state) = pair.hold(0, REFUSED);
    assert_eq!(state, HoldState::Failed(PinError::Refused));
    pair.0[0].release_remote(refused);
}

/// What peers hold cannot be unpinned: it is not given up where the system pins no more.
#[test]
fn a_region_that_peers_hold_stays_at_a_limit() {
    let memories = [TestMemory::default(), TestMemory::default()];
    let pair = TestPair::new(false, limits(4, 4, 8), [&memories[0], &memories[1]]);
    memories[1].limit.store(1, Ordering::Relaxed);
    let (held, _) = pair.hold(0, 0x5000);
    pair.0[1].release_local(pair.local(1, 0x5000));
    let misses = pair.0[1].stats().local_misses;
    let (refused, state) = pair.hold(0, 0x6000);
    assert_eq!(state, HoldState::Failed(PinError::Limit));
    pair.0[1].release_local(pair.local(1, 0x5000));
    assert_eq!(pair.0[1].stats().local_misses, misses);
    pair.0[0].release_remote(refused);
    pair.0[0].release_remote(held);
}

#[test]
fn a_pin_that_fails_is_reported_and_costs_nothing() {
    let memories = [TestMemory::default(), TestMemory::default()];
    let pair = TestPair::new(false, limits(2, 1, 4), [&memories[0], &memories[1]]);
    for _ in 0..5 {
        let (hold, state) = pair.hold(0, UNMAPPED + PAGE);
        assert_eq!(state, HoldState::Failed(PinError::Unmapped));
        pair.0[0].release_remote(hold);
    }
    assert_eq!((pair.0[0].remote_sums(JobRank(1)), pair.0[1].held_by(JobRank(0))), ((0, 0), 0));
    let local = pair.0[0].local(MemoryExtent { start: UNMAPPED, end: UNMAPPED + 8 }, None);
    assert!(matches!(local, LocalAccess::Failed(PinError::Unmapped)));
}

/// An address has the key of a region that is pinned, of which it is no part.
#[test]
fn an_alias_of_a_pinned_region_is_not_mapped() {
    let memories = [TestMemory::default(), TestMemory::default()];
    let pair = TestPair::new(false, limits(2, 1, 4), [&memories[0], &memories[1]]);
    let (held, _) = pair.hold(0, 0x5000);
    let alias = 0x5000 | 1 << 58;
    let (refused, state) = pair.hold(0, alias);
    assert_eq!(state, HoldState::Failed(PinError::Unmapped));
    let local = pair.0[1].local(MemoryExtent { start: alias, end: alias + 8 }, None);
    assert!(matches!(local, LocalAccess::Failed(PinError::Unmapped)));
    // The owner keeps its pin.
    let (again, _) = pair.hold(0, 0x5000);
    assert_eq!(pair.0[0].name(again), pair.0[0].name(held));
    for hold in [held, refused, again] {
        pair.0[0].release_remote(hold);
    }
}

/// Idle regions make place where the system pins no more; then the failure is reported.
#[test]
fn a_pin_that_meets_a_limit_is_tried_again() {
    let memories = [TestMemory::default(), TestMemory::default()];
    let pair = TestPair::new(false, limits(4, 4, 8), [&memories[0], &memories[1]]);
    memories[1].limit.store(2, Ordering::Relaxed);
    for start in [0x1000, 0x2000] {
        let own = pair.local(1, start);
        pair.0[1].release_local(own);
    }
    let holds = [0x5000, 0x6000].map(|start| pair.hold(0, start));
    assert_eq!(holds.map(|(_, state)| state), [HoldState::Ready; 2]);
    assert_eq!(pair.0[1].stats().pin_retries, 2);
    let (third, state) = pair.hold(0, 0x7000);
    assert_eq!(state, HoldState::Failed(PinError::Limit));
    assert_eq!(pair.0[1].held_by(JobRank(0)), 2);
    pair.0[0].release_remote(third);
    memories[1].of_mappings.store(true, Ordering::Relaxed);
    let (third, state) = pair.hold(0, 0x7000);
    assert_eq!(state, HoldState::Failed(PinError::Mappings));
    pair.0[0].release_remote(third);
    for (hold, _) in holds {
        pair.0[0].release_remote(hold);
    }
}

/// A block whose last pin is not undone yet is not pinned: its next pin cannot be overtaken by
/// the unpin.
#[test]
fn a_pin_waits_for_the_unpin_of_its_block() {
    let memories = [TestMemory::default(), TestMemory::default()];
    let pair = TestPair::new(false, limits(2, 1, 4), [&memories[0], &memories[1]]);
    memories[1].busy.store(true, Ordering::Relaxed);
    pair.0[1].release_local(pair.local(1, 0x1000));
    // Takes its place: the unpin of the first begins.
    let bytes = MemoryExtent { start: 0x2000, end: 0x2008 };
    let LocalAccess::Full(turn) = pair.0[1].local(bytes, None) else { panic!("it must wait") };
    let peer = MemoryExtent { start: 0x1000, end: 0x1008 };
    let RemoteAccess::Pending(hold) = pair.0[0].remote(JobRank(1), peer, 0, false, None) else {
        panic!("a miss")
    };
    for _ in 0..10 {
        pair.progress(0);
        assert_eq!(pair.0[0].state(hold), HoldState::Pending);
    }
    memories[1].busy.store(false, Ordering::Relaxed);
    pair.progress(0);
    assert_eq!(pair.0[0].state(hold), HoldState::Ready);
    assert!(matches!(pair.0[1].local(bytes, Some(turn)), LocalAccess::Ready(_)));
    pair.0[0].release_remote(hold);
}

/// Threads of two ranks that have the least limits: every access ends, no pin is undone while a
/// transfer uses it.
#[test]
fn threads_share_a_firehose() {
    for (limits, rounds) in [(limits(1, 1, 2), 300), (limits(6, 3, 6), 3000)] {
        let memories = [TestMemory::default(), TestMemory::default()];
        let pair = TestPair::new(true, limits, [&memories[0], &memories[1]]);
        thread::scope(|s| {
            for thread in 0..4 {
                let (pair, memories) = (&pair, &memories);
                s.spawn(move || {
                    let me = thread % 2;
                    let mut x = thread as u32 + 1;
                    for _ in 0..rounds {
                        x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                        let (remote, own) = (x >> 16 & 7, x >> 24 & 7);
                        let (hold, state) = pair.hold(me, (remote as usize + 1) * PAGE);
                        assert_eq!(state, HoldState::Ready);
                        let local = pair.local(me, (own as usize + 1) * PAGE);
                        let key = pair.0[me].name(hold).key;
                        let id = pair.0[me].pin_id(local);
                        let own_key = u64::from(id.slot) << 32 | u64::from(id.generation);
                        memories[1 - me].begin(key);
                        memories[me].begin(own_key);
                        thread::yield_now();
                        memories[me].end(own_key);
                        memories[1 - me].end(key);
                        pair.0[me].release_local(local);
                        pair.0[me].release_remote(hold);
                    }
                });
            }
        });
        for (me, memory) in memories.iter().enumerate() {
            let (used, holds) = pair.0[me].remote_sums(JobRank(1 - me as u32));
            assert_eq!((used, holds), (pair.0[1 - me].held_by(JobRank(me as u32)), 0));
            let sums = pair.0[me].local_sums();
            assert_eq!((pair.0[me].stats().holds, sums.own_holds), (0, 0));
            assert_eq!(memory.pinned.load(Ordering::Relaxed), sums.pinned);
        }
    }
}
