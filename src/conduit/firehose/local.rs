//! What of this rank is pinned: for its peers, and for the local side of its own transfers.
//!
//! Called by `Firehose`. Pins through the traits only, one call at a time, under its lock.
//! Invariants: a slot is in use while peers hold references to its pin, or this rank counts it
//! among its own, or it is pinned; so at most M + MAXVICTIM regions are pinned. A pin that may be
//! in use is unpinned only if the memory under it was unmapped. A slot is used again when nothing
//! refers to its last pin.
//!
//! ```text
//!                    a peer wants it              the last peer gives it back
//!  not pinned ──pin──> REMOTE_ONLY ─────────────────────────────────┐
//!    ^   │                  │  ^                                    v
//!    │   │    own use, with │  │ victim, and    READY: counts as one of MAXVICTIM,
//!    │   │   one of MAXVICTIM  │ peers hold it         in use or idle
//!    │   │                  v  │                           │
//!    │   └──pin, own use──> READY <────────────────────────┘
//!    │                        │ victim, and no peer holds it
//!    └──done── UNPINNING <────┘
//!                 └──busy: tried again; the block is not pinned meanwhile
//! ```
//!
//! What peers hold and what this rank uses are counted apart, since their limits are: a pin for a
//! peer never waits for transfers of this rank. Memory that was unmapped, or of which more is
//! needed than was pinned, becomes STALE: those that use it end, nothing else finds it.

mod sums;

use super::access::{LocalAccess, LocalHold, MissTurn};
use super::extent::MemoryExtent;
use super::moves::{HoldLimit, MoveAnswer, WantedResult};
use super::own_pins::{LocalTables, OwnPin};
use super::policy::FirehoseLimits;
use super::stats::{FirehoseCounter, FirehoseCounters};
use super::table::{EntryState, IdleTest, LookUp, RegionTable};
use super::traits::{Monitor, PinError, PinId, Pinner, UnpinOutcome};
use crate::conduit::primitive::{AtomicBool, Ordering};
use crate::conduit::sync::ParLock;
use crate::rank::JobRank;
use alloc::sync::Arc;
use alloc::vec::Vec;

/// Most idle regions that one search for place looks at; the next goes on where it ended. A search
/// for one to unpin looks at all.
const LOOKS: usize = 128;

/// The pinned memory of this rank.
pub(super) struct LocalSide<P, W> {
    me: JobRank,
    limits: FirehoseLimits,
    /// What peers may name.
    exposed: MemoryExtent,
    /// What stays mapped.
    lasting: MemoryExtent,
    pinner: P,
    monitor: W,
    table: RegionTable,
    tables: ParLock<LocalTables>,
    /// There are recalls to be sent, or pins to be undone.
    due: AtomicBool,
    counters: Arc<FirehoseCounters>,
}

/// Why a region has no new pin.
enum NoPin {
    /// Something must end first.
    Wait,
    Error(PinError),
}

impl<P: Pinner, W: Monitor> LocalSide<P, W> {
    pub(super) fn new(
        par: bool,
        limits: FirehoseLimits,
        me: JobRank,
        (pinner, monitor): (P, W),
        counters: Arc<FirehoseCounters>,
    ) -> LocalSide<P, W> {
        let table = RegionTable::new(par, limits.slots(), limits.region_bytes);
        let tables = ParLock::new(par, LocalTables::new(limits));
        let due = AtomicBool::new(false);
        let exposed = MemoryExtent { start: 0, end: usize::MAX };
        let lasting = MemoryExtent::default();
        LocalSide { me, limits, exposed, lasting, pinner, monitor, table, tables, due, counters }
    }

    pub(super) fn expose(&mut self, segment: MemoryExtent) {
        (self.exposed, self.lasting) = (segment, segment);
    }

    /// See [`super::Firehose::local`].
    #[inline]
    pub(super) fn access(&self, bytes: MemoryExtent, turn: Option<MissTurn>) -> LocalAccess {
        self.undo_unmapped();
        let found = self.table.hit(self.table.key(self.me, bytes.start), bytes);
        match (found, turn) {
            (LookUp::Hit(at, _), None) => {
                self.counters.hit(FirehoseCounter::LocalHits);
                LocalAccess::Ready(LocalHold(at))
            }
            _ => self.miss(found, bytes, turn),
        }
    }

    #[cold]
    fn miss(&self, found: LookUp, bytes: MemoryExtent, turn: Option<MissTurn>) -> LocalAccess {
        let mut guard = self.tables.lock();
        let tables = &mut *guard;
        match found {
            LookUp::Hit(at, _) => {
                tables.turns.done(turn);
                return LocalAccess::Ready(LocalHold(at));
            }
            LookUp::Last(at) => self.last(tables, at),
            LookUp::Miss => {}
        }
        let held = match tables.turns.admits(turn) {
            true => self.pin_for_self(tables, bytes),
            false => Err(NoPin::Wait),
        };
        if let Err(NoPin::Wait) = held {
            self.counters.add(FirehoseCounter::Stalls);
            return LocalAccess::Full(tables.turns.wait(turn));
        }
        tables.turns.done(turn);
        match held {
            Ok(at) => LocalAccess::Ready(LocalHold(at)),
            Err(NoPin::Error(error)) => LocalAccess::Failed(error),
            Err(NoPin::Wait) => unreachable!("returned above"),
        }
    }

    /// A hold of a region for this rank itself.
    fn pin_for_self(&self, tables: &mut LocalTables, bytes: MemoryExtent) -> Result<u32, NoPin> {
        let current = self.current(tables, bytes)?;
        if let Ok(at) = current
            && tables.pins[at as usize].own
        {
            self.counters.hit(FirehoseCounter::LocalHits);
            self.table.hold(at);
            return Ok(at);
        }
        self.counters.add(FirehoseCounter::LocalMisses);
        if tables.own == self.limits.max_victim && !self.evict(tables, false) {
            return Err(NoPin::Wait);
        }
        // What was evicted may have been the current pin of this block, held by peers.
        let at = match current {
            Ok(at) => at,
            Err(needed) => self.pin_all_or(tables, needed, bytes)?,
        };
        self.make_own(tables, at, 1);
        if tables.pins[at as usize].once {
            self.supersede(tables, at);
        }
        Ok(at)
    }

    /// The current pin of the block of these bytes, if it covers them. One that does not is
    /// superseded; then, or if there is none: what to pin.
    fn current(
        &self,
        tables: &mut LocalTables,
        bytes: MemoryExtent,
    ) -> Result<Result<u32, MemoryExtent>, NoPin> {
        let key = self.table.key(self.me, bytes.start);
        let is_unpinning = |at: &u32| self.table.state(*at).0 == EntryState::Unpinning;
        if self.table.find(key).as_ref().is_some_and(is_unpinning) {
            self.retry_busy(tables);
        }
        let Some(at) = self.table.find(key) else { return Ok(Err(bytes)) };
        if is_unpinning(&at) {
            return Err(NoPin::Wait);
        }
        let old = tables.pins[at as usize].extent;
        if old.covers(bytes) {
            return Ok(Ok(at));
        }
        if !self.limits.block(old.start).covers(bytes) {
            // An alias of this block: no process has memory at such an address.
            return Err(NoPin::Error(PinError::Unmapped));
        }
        self.supersede(tables, at);
        self.settle(tables, at);
        // The new pin covers the old one, which its holders may keep for long.
        let (start, end) = (old.start.min(bytes.start), old.end.max(bytes.end));
        Ok(Err(MemoryExtent { start, end }))
    }

    /// Nothing finds the pin any more; those that hold it keep it.
    fn supersede(&self, tables: &mut LocalTables, at: u32) {
        let state = self.table.state(at).0;
        let unused = self.table.retire(at, state, EntryState::Stale);
        tables.pins[at as usize].linked = false;
        if unused {
            self.disown(tables, at);
        }
    }

    fn disown(&self, tables: &mut LocalTables, at: u32) {
        if core::mem::take(&mut tables.pins[at as usize].own) {
            tables.own -= 1;
        }
    }

    /// Counts a pin that only peers may use among the own ones, with this number of holds.
    fn make_own(&self, tables: &mut LocalTables, at: u32, holds: u32) {
        let pin = &mut tables.pins[at as usize];
        pin.own = true;
        tables.own += 1;
        tables.note_idle(at);
        self.table.change(at, EntryState::RemoteOnly, EntryState::Ready, holds);
    }

    /// Pins all that is needed, or only these bytes where memory between them and the rest is
    /// missing or refused.
    fn pin_all_or(
        &self,
        tables: &mut LocalTables,
        needed: MemoryExtent,
        bytes: MemoryExtent,
    ) -> Result<u32, NoPin> {
        match self.pin(tables, needed) {
            Err(NoPin::Error(PinError::Unmapped | PinError::Refused)) if needed != bytes => {
                self.pin(tables, bytes)
            }
            pinned => pinned,
        }
    }

    /// Pins a block of which nothing is pinned that is current, in a new slot: for peers, so far.
    fn pin(&self, tables: &mut LocalTables, bytes: MemoryExtent) -> Result<u32, NoPin> {
        if tables.free.is_empty() {
            tables.free.extend(self.table.add_entries());
            tables.pins.resize(self.table.len() as usize, OwnPin::default());
        }
        if tables.free.is_empty() {
            self.retry_busy(tables);
        }
        let Some(slot) = tables.free.pop_front() else { return Err(NoPin::Wait) };
        let generation = (tables.pins[slot as usize].generation + 1) % P::GENERATIONS;
        let id = PinId { slot, generation };
        let block = self.limits.block(bytes.start);
        // Before the pin: what is unmapped after it is noticed, or the page is not watched then.
        self.monitor.watch(block);
        let mut tried = self.pinner.pin(id, block, bytes);
        if tried == Err(PinError::Limit) {
            self.counters.add(FirehoseCounter::PinRetries);
        }
        while tried == Err(PinError::Limit) && self.evict(tables, true) {
            tried = self.pinner.pin(id, block, bytes);
        }
        if let Err(PinError::Limit | PinError::Refused) = tried {
            // There may be enough for what is needed now; what was refused may lie around it.
            tried = self.pinner.pin(id, bytes, bytes);
        }
        let extent = match tried {
            Ok(extent) => extent,
            Err(error) => {
                let error = if error == PinError::Limit { self.pinner.limit() } else { error };
                // The generation was not used.
                tables.free.push_front(slot);
                self.unwatch(tables, block);
                self.counters.add(FirehoseCounter::PinFailures);
                return Err(NoPin::Error(error));
            }
        };
        let once = !self.monitor.watches(extent);
        tables.pins[slot as usize] =
            OwnPin { generation, pinned: true, linked: true, once, extent, ..OwnPin::default() };
        tables.by_block.insert((block.start, slot));
        tables.pinned_bytes += extent.len();
        self.count_pin(tables, FirehoseCounter::Pins);
        self.table.set_payload(slot, generation.into(), extent);
        self.table.reserve(slot, self.table.key(self.me, bytes.start), EntryState::RemoteOnly, 0);
        Ok(slot)
    }

    /// Ends the watch of a block of which nothing is pinned any more.
    fn unwatch(&self, tables: &LocalTables, block: MemoryExtent) {
        let (first, last) = ((block.start, 0), (block.start, u32::MAX));
        if tables.by_block.range(first..=last).next().is_none() {
            self.monitor.unwatch(block);
        }
    }

    fn count_pin(&self, tables: &LocalTables, counter: FirehoseCounter) {
        self.counters.add(counter);
        self.counters.set_pinned(tables.by_block.len() as u32, tables.pinned_bytes);
    }

    /// Makes place for an own region: takes an idle one away. With `unpin`, one that is then
    /// unpinned.
    fn evict(&self, tables: &mut LocalTables, unpin: bool) -> bool {
        // Twice round: the first round takes second chances away.
        let all = 2 * tables.idle.len();
        let mut looks = if unpin { all } else { all.min(LOOKS) };
        while looks > 0 {
            let Some((at, generation)) = tables.idle.pop_front() else { return false };
            let pin = tables.pins[at as usize];
            if !pin.own || pin.generation != generation {
                continue;
            }
            looks -= 1;
            let to = if pin.refs > 0 { EntryState::RemoteOnly } else { EntryState::Unpinning };
            let closed = !(unpin && pin.refs > 0)
                && self.table.test_idle(at, to, false) == IdleTest::Closed;
            if !closed {
                tables.idle.push_back((at, generation));
                continue;
            }
            if pin.refs > 0 {
                self.disown(tables, at);
                return true;
            }
            self.counters.add(FirehoseCounter::Victims);
            if self.unpin(tables, at) {
                self.disown(tables, at);
                self.settle(tables, at);
                return true;
            }
            // The network uses it: it stays one of MAXVICTIM until it is unpinned.
        }
        false
    }

    /// Undoes a pin that no look-up finds. False if that has to be tried again.
    fn unpin(&self, tables: &mut LocalTables, at: u32) -> bool {
        let pin = tables.pins[at as usize];
        let block = self.limits.block(pin.extent.start);
        let id = PinId { slot: at, generation: pin.generation };
        if self.pinner.unpin(id, pin.extent) == UnpinOutcome::Busy {
            tables.pins[at as usize].busy = true;
            tables.busy.push(at);
            self.due.store(true, Ordering::Relaxed);
            return false;
        }
        if pin.linked {
            self.table.unlink(at);
        }
        tables.pins[at as usize] = OwnPin { pinned: false, busy: false, linked: false, ..pin };
        tables.by_block.remove(&(block.start, at));
        tables.pinned_bytes -= pin.extent.len();
        self.count_pin(tables, FirehoseCounter::Unpins);
        self.unwatch(tables, block);
        true
    }

    /// Tries again to undo the pins that the network was using.
    fn retry_busy(&self, tables: &mut LocalTables) {
        for at in core::mem::take(&mut tables.busy) {
            let pin = tables.pins[at as usize];
            if pin.gone && pin.own {
                self.hide(tables, at);
            } else if self.unpin(tables, at) {
                if self.table.state(at).0 == EntryState::Unpinning {
                    self.disown(tables, at);
                }
                self.settle(tables, at);
            }
        }
    }

    /// Undoes a pin that nothing uses, and frees a slot that nothing refers to. It is in a state
    /// that no look-up holds.
    fn settle(&self, tables: &mut LocalTables, at: u32) {
        let pin = tables.pins[at as usize];
        if (pin.refs > 0 && !pin.gone) || pin.own || pin.busy {
            return;
        }
        let state = self.table.state(at).0;
        if pin.pinned {
            if pin.linked && state != EntryState::Unpinning {
                self.table.change(at, state, EntryState::Unpinning, 0);
            }
            if !self.unpin(tables, at) {
                return;
            }
        }
        let state = self.table.state(at).0;
        if pin.refs == 0 && state != EntryState::Free {
            self.table.change(at, state, EntryState::Free, 0);
            tables.free.push_back(at);
        }
    }

    /// The last own hold of a stale pin was taken back. Several threads may believe so.
    fn last(&self, tables: &mut LocalTables, at: u32) {
        if self.table.state(at) == (EntryState::Stale, 0) {
            self.disown(tables, at);
            self.settle(tables, at);
        }
    }

    #[inline]
    pub(super) fn release(&self, LocalHold(at): LocalHold) {
        if self.table.release(at) {
            self.last(&mut self.tables.lock(), at);
        }
    }

    #[inline]
    pub(super) fn pin_id(&self, LocalHold(slot): LocalHold) -> PinId {
        PinId { slot, generation: self.table.pin(slot) as u32 }
    }

    /// Takes in what the monitor has noted.
    #[inline]
    pub(super) fn undo_unmapped(&self) {
        if self.monitor.has_news() {
            self.undo_all();
        }
    }

    #[cold]
    fn undo_all(&self) {
        let mut tables = self.tables.lock();
        self.undo_locked(&mut tables);
    }

    fn undo_locked(&self, tables: &mut LocalTables) {
        while let Some(extent) = self.monitor.take() {
            self.unmapped(tables, extent);
        }
    }

    /// Undoes pins of memory that is no longer what was pinned: at once for peers, for this rank
    /// when its transfers are complete. Other bytes of a region may be in use.
    fn unmapped(&self, tables: &mut LocalTables, extent: MemoryExtent) {
        let first = self.limits.block(extent.start).start;
        let pinned: Vec<u32> =
            tables.by_block.range((first, 0)..(extent.end, 0)).map(|&(_, at)| at).collect();
        for at in pinned {
            let pin = tables.pins[at as usize];
            let lasts = self.lasting.covers(pin.extent);
            if pin.busy || pin.gone || lasts || !pin.extent.overlaps(extent) {
                continue;
            }
            self.counters.add(FirehoseCounter::Unmapped);
            if pin.linked {
                self.supersede(tables, at);
            }
            // Its holders and peers keep the slot, so that no other pin gets its number.
            let pin = &mut tables.pins[at as usize];
            pin.gone = true;
            if pin.own {
                self.hide(tables, at);
            } else {
                self.settle(tables, at);
            }
        }
    }

    /// Peers find a pin no more whose memory was unmapped while transfers of this rank use it.
    fn hide(&self, tables: &mut LocalTables, at: u32) {
        let pin = &mut tables.pins[at as usize];
        pin.busy =
            self.pinner.hide(PinId { slot: at, generation: pin.generation }) == UnpinOutcome::Busy;
        if pin.busy {
            tables.busy.push(at);
            self.due.store(true, Ordering::Relaxed);
        }
    }

    /// Serves a move of a peer: `None` if it gives back what it does not hold, or wants what is
    /// not exposed.
    pub(super) fn serve(
        &self,
        from: JobRank,
        victims: &[PinId],
        wanted: &[MemoryExtent],
        hungry: u32,
    ) -> Option<MoveAnswer> {
        let mut guard = self.tables.lock();
        let tables = &mut *guard;
        if self.monitor.has_news() {
            self.undo_locked(tables);
        }
        for &id in victims {
            self.take_back(tables, from, id)?;
        }
        let mut refused = false;
        let mut results = Vec::with_capacity(wanted.len());
        for &bytes in wanted {
            let one_region = bytes.len() <= self.limits.piece(bytes.start, bytes.len());
            if !one_region || !self.exposed.covers(bytes) {
                return None;
            }
            let result = self.give(tables, from, bytes);
            refused |= result == WantedResult::Refused;
            results.push((bytes.start, result));
        }
        let limit = tables.lender.limit(from, hungry, refused);
        Some(MoveAnswer { limit, results })
    }

    fn take_back(&self, tables: &mut LocalTables, from: JobRank, id: PinId) -> Option<()> {
        let pin = tables.pins.get_mut(id.slot as usize)?;
        if pin.generation != id.generation || pin.refs == 0 || !tables.lender.take_back(from) {
            return None;
        }
        pin.refs -= 1;
        let keep = pin.refs == 0 && pin.linked && !pin.own && !pin.busy;
        if keep && (tables.own < self.limits.max_victim || self.evict(tables, false)) {
            self.make_own(tables, id.slot, 0);
        }
        self.settle(tables, id.slot);
        Some(())
    }

    /// Gives a peer a reference to the region of these bytes.
    fn give(&self, tables: &mut LocalTables, from: JobRank, bytes: MemoryExtent) -> WantedResult {
        if !tables.lender.grant(from) {
            self.counters.add(FirehoseCounter::Refused);
            if let Some(recall) = tables.lender.recall(from) {
                self.counters.add(FirehoseCounter::Recalls);
                tables.recalls.push_back(recall);
                self.due.store(true, Ordering::Relaxed);
            }
            return WantedResult::Refused;
        }
        let pinned = match self.current(tables, bytes) {
            Ok(Ok(at)) => Ok(at),
            Ok(Err(needed)) => self.pin_all_or(tables, needed, bytes),
            Err(e) => Err(e),
        };
        let pinned = match pinned {
            Ok(slot) if tables.pins[slot as usize].once => {
                self.supersede(tables, slot);
                self.settle(tables, slot);
                Err(NoPin::Error(PinError::Unwatched))
            }
            pinned => pinned,
        };
        match pinned {
            Ok(slot) => {
                let pin = &mut tables.pins[slot as usize];
                pin.refs += 1;
                let id = PinId { slot, generation: pin.generation };
                WantedResult::Pinned { id, key: self.pinner.key(id), extent: pin.extent }
            }
            Err(no) => {
                let had = tables.lender.take_back(from);
                debug_assert!(had, "it was granted above");
                match no {
                    NoPin::Wait => WantedResult::Busy,
                    NoPin::Error(error) => WantedResult::Failed(error),
                }
            }
        }
    }

    /// Does what could not be done at once. Returns the next peer that is to give regions back.
    #[inline]
    pub(super) fn progress(&self) -> Option<(JobRank, HoldLimit)> {
        self.undo_unmapped();
        if self.due.load(Ordering::Relaxed) { self.do_due() } else { None }
    }

    #[cold]
    fn do_due(&self) -> Option<(JobRank, HoldLimit)> {
        let mut tables = self.tables.lock();
        let recall = tables.recalls.pop_front();
        self.retry_busy(&mut tables);
        let left = !tables.recalls.is_empty() || !tables.busy.is_empty();
        self.due.store(left, Ordering::Relaxed);
        recall
    }
}
