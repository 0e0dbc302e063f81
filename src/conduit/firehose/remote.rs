//! What this rank holds of its peers: hits, misses, victims, the answers of owners.
//!
//! Called by `Firehose`. Free of I/O: it returns messages, and takes answers in. Invariants: this
//! rank counts as its use of a peer's regions at least what the peer counts as held by it, once
//! all messages have arrived. A region is given back only when no operation holds it. What waits
//! for one peer is sent in the order of its arrival.
//!
//! ```text
//!          miss                  sent, with a victim where there is no fresh one
//!  absent ──────> PENDING, queued ──────────> PENDING, sent ──pinned──> READY <──> idle
//!    ^                  ^                        │   │                    │         │
//!    │                  └──── refused, busy ─────┘   └─failed─> FAILED    │rejected,│victim
//!    └─────────────────── given back <─────────── STALE <─────────────────┴─grown───┘
//! ```
//!
//! "Idle" is a ready entry without holds. It stays in the list of its peer; a victim is the first
//! of the list that is idle and was not used since it was looked at last (the clock algorithm,
//! Corbato 1969). So a hit changes no list.

mod sums;

use super::access::{HoldState, MissTurn, RemoteAccess, RemoteHold};
use super::extent::MemoryExtent;
use super::moves::{HoldLimit, MOST, MoveAnswer, MoveMessage, MoveRequest, WantedResult};
use super::policy::{FirehoseLimits, MissTurns};
use super::stats::{FirehoseCounter, FirehoseCounters};
use super::table::{EntryState, IdleTest, LookUp, RegionName, RegionTable};
use super::traits::{PinError, PinId};
use crate::conduit::primitive::{AtomicBool, Ordering};
use crate::conduit::sync::ParLock;
use crate::rank::JobRank;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::sync::Arc;
use alloc::vec::Vec;

/// Most regions behind the one needed that a miss requests too.
const AHEAD: usize = MOST - 1;
/// Regions to be given back to a peer that are not left to wait for the next move to it.
const MANY_BACK: usize = MOST / 2;
/// Most entries that one search for a victim looks at; the next goes on where it ended.
const LOOKS: usize = 128;

/// Entries of the list of ready ones beyond twice those held: it is not swept for a few.
const SPARE: usize = 64;

/// What is known of an entry under the lock.
#[derive(Clone, Copy)]
struct RemoteEntry {
    peer: JobRank,
    /// How often the entry has been used.
    life: u32,
    id: PinId,
    needed: MemoryExtent,
    sent: bool,
    /// The payload of a put travels with its move: it is not requested again.
    riding: bool,
    error: PinError,
}

/// What this rank holds of one peer.
struct PeerRegions {
    /// Regions held, to be given back, and wanted and sent.
    used: u32,
    limit: HoldLimit,
    /// Entries that were ready, with their lives, in the order of the clock.
    ready: VecDeque<(u32, u32)>,
    /// Pending entries that are not sent.
    queued: VecDeque<u32>,
    /// Pins that are no longer used.
    back: Vec<PinId>,
    due: bool,
}

struct RemoteTables {
    free: Vec<u32>,
    entries: Vec<RemoteEntry>,
    peers: BTreeMap<JobRank, PeerRegions>,
    /// Peers to which there may be something to send.
    due: VecDeque<JobRank>,
    turns: MissTurns,
    /// Where the search of the whole table for an idle entry goes on.
    hand: u32,
}

/// The regions of peers that this rank uses.
pub(super) struct RemoteSide {
    limits: FirehoseLimits,
    table: RegionTable,
    tables: ParLock<RemoteTables>,
    /// Whether any peer is due.
    due: AtomicBool,
    counters: Arc<FirehoseCounters>,
}

impl RemoteSide {
    pub(super) fn new(
        par: bool,
        limits: FirehoseLimits,
        counters: Arc<FirehoseCounters>,
    ) -> RemoteSide {
        let tables = RemoteTables {
            free: Vec::new(),
            entries: Vec::new(),
            peers: BTreeMap::new(),
            due: VecDeque::new(),
            turns: MissTurns::default(),
            hand: 0,
        };
        RemoteSide {
            limits,
            table: RegionTable::new(par, limits.table, limits.region_bytes),
            tables: ParLock::new(par, tables),
            due: AtomicBool::new(false),
            counters,
        }
    }

    /// See [`super::Firehose::remote`].
    #[inline]
    pub(super) fn access(
        &self,
        peer: JobRank,
        bytes: MemoryExtent,
        ahead: usize,
        ride: bool,
        turn: Option<MissTurn>,
    ) -> RemoteAccess {
        let found = self.table.hit(self.table.key(peer, bytes.start), bytes);
        match (found, turn) {
            (LookUp::Hit(at, name), None) => {
                self.counters.hit(FirehoseCounter::RemoteHits);
                RemoteAccess::Ready(RemoteHold(at), name)
            }
            _ => self.miss(found, peer, bytes, ahead, ride, turn),
        }
    }

    /// See [`super::Firehose::at_hit`].
    #[inline]
    pub(super) fn at_hit(
        &self,
        peer: JobRank,
        bytes: MemoryExtent,
        transfer: impl FnOnce(RegionName) -> bool,
    ) -> bool {
        let key = self.table.key(peer, bytes.start);
        let (done, last) = self.table.at_hit(key, bytes, transfer);
        last.into_iter().for_each(|at| self.last(&mut self.tables.lock(), at));
        let done = done.unwrap_or(false);
        if done {
            self.counters.hit(FirehoseCounter::RemoteHits);
        }
        done
    }

    #[cold]
    fn miss(
        &self,
        found: LookUp,
        peer: JobRank,
        bytes: MemoryExtent,
        ahead: usize,
        ride: bool,
        turn: Option<MissTurn>,
    ) -> RemoteAccess {
        let mut guard = self.tables.lock();
        let tables = &mut *guard;
        let ready = |tables: &mut RemoteTables, at| {
            tables.turns.done(turn);
            self.counters.hit(FirehoseCounter::RemoteHits);
            RemoteAccess::Ready(RemoteHold(at), self.table.name(at))
        };
        match found {
            LookUp::Hit(at, _) => return ready(tables, at),
            LookUp::Last(at) => self.last(tables, at),
            LookUp::Miss => {}
        }
        let key = self.table.key(peer, bytes.start);
        let mut answer_first = false;
        if let Some(at) = self.table.find(key) {
            let entry = &mut tables.entries[at as usize];
            let is_ready = self.table.state(at).0 == EntryState::Ready;
            if is_ready && self.table.extent(at).covers(bytes) {
                self.table.hold(at);
                return ready(tables, at);
            } else if is_ready {
                self.retire(tables, at);
            } else if !entry.riding && entry.needed.covers(bytes) {
                self.table.hold(at);
                tables.turns.done(turn);
                self.counters.add(FirehoseCounter::RemoteMisses);
                return RemoteAccess::Pending(RemoteHold(at));
            } else {
                answer_first = true;
            }
        }
        let admitted = !answer_first && tables.turns.admits(turn);
        let Some(at) = admitted.then(|| self.take_entry(tables)).flatten() else {
            self.counters.add(FirehoseCounter::Stalls);
            return RemoteAccess::Full(tables.turns.wait(turn));
        };
        tables.turns.done(turn);
        self.counters.add(FirehoseCounter::RemoteMisses);
        self.queue(tables, at, peer, bytes, 1);
        self.queue_ahead(tables, peer, bytes, ahead);
        let regions = self.peer(tables, peer);
        // Beyond its limit a message might give regions back, and want none.
        let may_want = regions.used <= regions.limit.regions;
        if ride && may_want && regions.queued.front() == Some(&at) {
            tables.entries[at as usize].riding = true;
            if let Some(message) = self.compose(tables, peer) {
                debug_assert!(tables.entries[at as usize].sent, "a message without the first");
                return RemoteAccess::Riding(RemoteHold(at), message);
            }
            tables.entries[at as usize].riding = false;
        }
        RemoteAccess::Pending(RemoteHold(at))
    }

    /// Requests regions of the same transfer behind the one needed, as far as they are free.
    fn queue_ahead(
        &self,
        tables: &mut RemoteTables,
        peer: JobRank,
        bytes: MemoryExtent,
        ahead: usize,
    ) {
        let Some(last) = bytes.end.checked_add(ahead) else { return };
        let mut start = self.limits.block(bytes.start).end;
        for _ in 0..AHEAD {
            let end = self.limits.block(start).end.min(last);
            if start >= last || self.table.find(self.table.key(peer, start)).is_some() {
                return;
            }
            let Some(at) = self.free_entry(tables) else { return };
            self.queue(tables, at, peer, MemoryExtent { start, end }, 0);
            start = end;
        }
    }

    /// Puts a free entry into the table and into the queue of its peer.
    fn queue(
        &self,
        tables: &mut RemoteTables,
        at: u32,
        peer: JobRank,
        needed: MemoryExtent,
        holds: u32,
    ) {
        let entry = &mut tables.entries[at as usize];
        *entry = RemoteEntry { peer, needed, sent: false, riding: false, ..*entry };
        let key = self.table.key(peer, needed.start);
        self.table.reserve(at, key, EntryState::Pending, holds);
        self.peer(tables, peer).queued.push_back(at);
        self.make_due(tables, peer);
    }

    fn peer<'a>(&self, tables: &'a mut RemoteTables, peer: JobRank) -> &'a mut PeerRegions {
        let new = || PeerRegions {
            used: 0,
            limit: HoldLimit { regions: self.limits.share().max(1), number: 0 },
            ready: VecDeque::new(),
            queued: VecDeque::new(),
            back: Vec::new(),
            due: false,
        };
        tables.peers.entry(peer).or_insert_with(new)
    }

    fn make_due(&self, tables: &mut RemoteTables, peer: JobRank) {
        if !core::mem::replace(&mut self.peer(tables, peer).due, true) {
            tables.due.push_back(peer);
            self.due.store(true, Ordering::Relaxed);
        }
    }

    fn free_entry(&self, tables: &mut RemoteTables) -> Option<u32> {
        if tables.free.is_empty() {
            let unused = RemoteEntry {
                peer: JobRank(0),
                life: 0,
                id: PinId::default(),
                needed: MemoryExtent::default(),
                sent: false,
                riding: false,
                error: PinError::Refused,
            };
            tables.free.extend(self.table.add_entries().rev());
            tables.entries.resize(self.table.len() as usize, unused);
        }
        tables.free.pop()
    }

    /// A free entry: one that is, or that of an idle region of any peer.
    fn take_entry(&self, tables: &mut RemoteTables) -> Option<u32> {
        if let Some(at) = self.free_entry(tables) {
            return Some(at);
        }
        for _ in 0..LOOKS.min(2 * self.table.len() as usize) {
            let at = tables.hand;
            tables.hand = (at + 1) % self.table.len();
            if self.table.test_idle(at, EntryState::Free, false) == IdleTest::Closed {
                self.table.unlink(at);
                self.give_back(tables, at);
                return tables.free.pop();
            }
        }
        None
    }

    /// The pin of a closed entry, in no chain, is no longer used; the entry is free.
    fn give_back(&self, tables: &mut RemoteTables, at: u32) {
        let RemoteEntry { peer, id, .. } = tables.entries[at as usize];
        self.put_free(tables, at);
        let regions = self.peer(tables, peer);
        regions.back.push(id);
        if regions.back.len() >= MANY_BACK || !regions.queued.is_empty() {
            self.make_due(tables, peer);
        }
    }

    fn put_free(&self, tables: &mut RemoteTables, at: u32) {
        let entry = &mut tables.entries[at as usize];
        entry.life = entry.life.wrapping_add(1);
        tables.free.push(at);
    }

    /// A ready entry is not to be used again.
    fn retire(&self, tables: &mut RemoteTables, at: u32) {
        if self.table.retire(at, EntryState::Ready, EntryState::Stale) {
            self.last(tables, at);
        }
    }

    /// The last hold of a stale or failed entry was taken back. Several threads may believe so.
    fn last(&self, tables: &mut RemoteTables, at: u32) {
        if self.table.change_idle(at, EntryState::Stale, EntryState::Free) {
            self.give_back(tables, at);
        } else if self.table.change_idle(at, EntryState::Failed, EntryState::Free) {
            self.put_free(tables, at);
        }
    }

    /// Takes an idle region of a peer away.
    fn victim(&self, tables: &mut RemoteTables, peer: JobRank, force: bool) -> Option<PinId> {
        let mut looks = LOOKS.min(2 * self.peer(tables, peer).ready.len());
        while looks > 0 {
            let (at, life) = self.peer(tables, peer).ready.pop_front()?;
            let entry = tables.entries[at as usize];
            if entry.life != life {
                continue;
            }
            looks -= 1;
            match self.table.test_idle(at, EntryState::Free, force) {
                IdleTest::Closed => {
                    self.table.unlink(at);
                    self.put_free(tables, at);
                    self.counters.add(FirehoseCounter::Victims);
                    return Some(entry.id);
                }
                _ => self.peer(tables, peer).ready.push_back((at, life)),
            }
        }
        None
    }

    /// The next message to a peer, if there is anything to say now. What was waiting first is
    /// served first.
    fn compose(&self, tables: &mut RemoteTables, peer: JobRank) -> Option<MoveMessage> {
        let (mut victims, mut wanted, mut hungry) = (Vec::new(), Vec::new(), 0);
        while wanted.len() < MOST {
            let regions = self.peer(tables, peer);
            let Some(&at) = regions.queued.front() else { break };
            let may_grow = regions.used < regions.limit.regions;
            // Each further one takes the place of one that is given back in the same message.
            let given = match regions.back.pop() {
                Some(id) => Some(id),
                None if may_grow => None,
                None => {
                    hungry += 1;
                    let Some(id) = self.victim(tables, peer, false) else {
                        if self.drop_ahead(tables, peer, at) {
                            continue;
                        }
                        break;
                    };
                    Some(id)
                }
            };
            let regions = self.peer(tables, peer);
            regions.queued.pop_front();
            match given {
                Some(id) => victims.push(id),
                None => regions.used += 1,
            }
            let entry = &mut tables.entries[at as usize];
            entry.sent = true;
            wanted.push(entry.needed);
        }
        while victims.len() < MOST {
            let regions = self.peer(tables, peer);
            let over = regions.used > regions.limit.regions;
            let id = match regions.back.pop() {
                None if over => self.victim(tables, peer, true),
                id => id,
            };
            let Some(id) = id else { break };
            victims.push(id);
            self.peer(tables, peer).used -= 1;
        }
        if victims.is_empty() && wanted.is_empty() {
            return None;
        }
        self.counters.add(FirehoseCounter::Moves);
        Some(MoveRequest::Move { victims, wanted, hungry }.encode())
    }

    /// Drops the first of a queue if no operation waits for it.
    fn drop_ahead(&self, tables: &mut RemoteTables, peer: JobRank, at: u32) -> bool {
        let dropped = self.drop_pending(tables, at);
        if dropped {
            self.peer(tables, peer).queued.pop_front();
        }
        dropped
    }

    fn drop_pending(&self, tables: &mut RemoteTables, at: u32) -> bool {
        let dropped = self.table.change_idle(at, EntryState::Pending, EntryState::Free);
        if dropped {
            self.table.unlink(at);
            self.put_free(tables, at);
        }
        dropped
    }

    /// The next message, of those that were due at first; `looks` counts these down.
    pub(super) fn next_message(
        &self,
        looks: &mut Option<usize>,
    ) -> Option<(JobRank, MoveMessage)> {
        if !self.due.load(Ordering::Relaxed) {
            return None;
        }
        let mut guard = self.tables.lock();
        let tables = &mut *guard;
        let left = looks.get_or_insert(tables.due.len());
        while *left > 0 {
            *left -= 1;
            let peer = tables.due.pop_front()?;
            self.peer(tables, peer).due = false;
            let message = self.compose(tables, peer);
            let regions = self.peer(tables, peer);
            if !regions.queued.is_empty() || regions.used > regions.limit.regions {
                self.make_due(tables, peer);
            }
            self.due.store(!tables.due.is_empty(), Ordering::Relaxed);
            if let Some(message) = message {
                return Some((peer, message));
            }
        }
        None
    }

    /// A peer has said how many of its regions this rank may hold.
    pub(super) fn limited(&self, peer: JobRank, limit: HoldLimit) {
        let mut tables = self.tables.lock();
        self.set_limit(&mut tables, peer, limit);
    }

    fn set_limit(&self, tables: &mut RemoteTables, peer: JobRank, limit: HoldLimit) {
        let regions = self.peer(tables, peer);
        if limit.is_newer(regions.limit) {
            regions.limit = HoldLimit { regions: limit.regions.max(1), ..limit };
        }
        if regions.used > regions.limit.regions || !regions.queued.is_empty() {
            self.make_due(tables, peer);
        }
    }

    /// The answer of a peer; false if it answers what was not asked.
    #[must_use]
    pub(super) fn answered(&self, peer: JobRank, answer: &MoveAnswer) -> bool {
        let mut guard = self.tables.lock();
        let tables = &mut *guard;
        let mut again = Vec::new();
        for &(start, result) in &answer.results {
            let Some(at) = self.table.find(self.table.key(peer, start)) else { return false };
            let entry = tables.entries[at as usize];
            let is_asked = entry.sent && self.table.state(at).0 == EntryState::Pending;
            if !is_asked || entry.needed.start != start {
                return false;
            }
            match result {
                WantedResult::Pinned { id, key, extent } => {
                    if !extent.covers(entry.needed) {
                        return false;
                    }
                    tables.entries[at as usize].id = id;
                    self.table.publish(at, EntryState::Pending, key, extent);
                    self.note_ready(tables, peer, at);
                    continue;
                }
                WantedResult::Refused | WantedResult::Busy if !entry.riding => again.push(at),
                WantedResult::Refused | WantedResult::Busy => {
                    self.fail(tables, at, PinError::Limit);
                }
                WantedResult::Failed(error) => self.fail(tables, at, error),
            }
            self.peer(tables, peer).used -= 1;
        }
        // In front of the queue, in their old order.
        for &at in again.iter().rev() {
            if !self.drop_pending(tables, at) {
                tables.entries[at as usize].sent = false;
                self.peer(tables, peer).queued.push_front(at);
            }
        }
        self.set_limit(tables, peer, answer.limit);
        true
    }

    /// Notes an entry in the list of the clock. Those that have ended leave when they are many.
    fn note_ready(&self, tables: &mut RemoteTables, peer: JobRank, at: u32) {
        let regions = self.peer(tables, peer);
        let most = 2 * regions.used as usize + SPARE;
        let mut ready = core::mem::take(&mut regions.ready);
        if ready.len() > most {
            ready.retain(|&(at, life)| tables.entries[at as usize].life == life);
        }
        ready.push_back((at, tables.entries[at as usize].life));
        self.peer(tables, peer).ready = ready;
    }

    fn fail(&self, tables: &mut RemoteTables, at: u32, error: PinError) {
        tables.entries[at as usize].error = error;
        if self.table.retire(at, EntryState::Pending, EntryState::Failed) {
            self.last(tables, at);
        }
    }

    #[inline]
    pub(super) fn state(&self, RemoteHold(at): RemoteHold) -> HoldState {
        match self.table.state(at).0 {
            EntryState::Pending => HoldState::Pending,
            EntryState::Failed => HoldState::Failed(self.tables.lock().entries[at as usize].error),
            // One that is stale is refused by its target.
            _ => HoldState::Ready,
        }
    }

    /// What a transfer must name to reach a region that is ready.
    #[inline]
    pub(super) fn name(&self, RemoteHold(at): RemoteHold) -> RegionName {
        self.table.name(at)
    }

    #[inline]
    pub(super) fn release(&self, RemoteHold(at): RemoteHold) {
        if self.table.release(at) {
            self.last(&mut self.tables.lock(), at);
        }
    }

    /// The target refused a transfer: its pin was undone. Releases the hold.
    #[cold]
    pub(super) fn rejected(&self, hold: RemoteHold) {
        self.counters.add(FirehoseCounter::Rejected);
        let RemoteHold(at) = hold;
        {
            let mut tables = self.tables.lock();
            if self.table.state(at).0 == EntryState::Ready {
                self.retire(&mut tables, at);
            }
        }
        self.release(hold);
    }
}
