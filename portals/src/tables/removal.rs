//! Making and removing descriptors: which process uses one, its removal, and when its record may
//! be used again.
//!
//! Used by the calls on match entries and descriptors. The owner marks the descriptor (its
//! list's version odd, its phase CLOSING) and then reads the hazards. If one names the
//! descriptor, the owner puts everything back and reports `PTL_MD_IN_USE`. A descriptor stays
//! in use while a dead or stopped process holds a hazard on it, since the data may still be
//! on its way. Invariant: a record is reused only when no hazard names it and every event
//! that names it has been consumed.

use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use super::owner::{OldPieces, Resting};
use super::{Examined, NiState, OwnerTables};
use crate::arena::{ArenaHeader, hazard};
use crate::base::fault;
use crate::descriptor::record::{LocalMd, control};
use crate::descriptor::traits::Traits;
use crate::types::*;
use sys::{clock, thread};

impl NiState {
    /// A process that uses one of our descriptors now; `anywhere` includes peers.
    pub(crate) fn holder(&self, index: u32, anywhere: bool) -> Option<u32> {
        let own = &self.peers.own.view.header().hazards;
        if hazard::names(own, |word| word.names(self.peers.index, index)) {
            return Some(self.peers.index);
        }
        let mut peers = self.peers.peer_headers().filter(|_| anywhere);
        let holds = |header: &ArenaHeader| {
            hazard::names(&header.hazards, |word| word.names_target(self.peers.index, index))
        };
        peers.find(|(_, header)| holds(header)).map(|(peer, _)| peer)
    }

    /// Whether an operation uses a descriptor of ours that logs to this queue.
    pub(crate) fn eq_about_to_fill(&self, eq: u32) -> bool {
        self.eq_named(eq)
            // Acquire pairs with the Release in `transfer_end`. Read after the hazards: a
            // transfer begins and ends under one.
            || self.eqs[eq as usize].transfers.load(Ordering::Acquire) != 0
    }

    fn eq_named(&self, eq: u32) -> bool {
        let logs = |md: u32| {
            let record = self.mds.get(md as usize);
            record.is_some_and(|r| Traits(r.traits.load(Ordering::Relaxed)).eq() == Some(eq))
        };
        let own = &self.peers.own.view.header().hazards;
        hazard::names(own, |word| {
            word.own_mds().into_iter().chain(word.target_md(self.peers.index)).any(logs)
        }) || self.peers.peer_headers().any(|(_, header)| {
            hazard::names(&header.hazards, |word| {
                word.target_md(self.peers.index).is_some_and(logs)
            })
        })
    }

    /// Waits a moment for operations on a descriptor to end. True if some have not.
    pub(crate) fn busy(&self, index: u32, attached: bool) -> bool {
        if self.mds[index as usize].exposed.load(Ordering::Relaxed) {
            return true;
        }
        for round in 0..64 {
            if self.holder(index, attached).is_none()
                // Acquire pairs with the Release in `transfer_end`.
                && self.mds[index as usize].pending.load(Ordering::Acquire) == 0
            {
                return false;
            }
            thread::relax(round);
        }
        self.found_busy.store(index + 1, Ordering::Relaxed);
        true
    }

    /// The peer that uses the descriptor that was last found to be in use, if it still does.
    pub(crate) fn descriptor_blocked_by(&self) -> Option<u32> {
        let index = self.found_busy.load(Ordering::Relaxed).checked_sub(1)?;
        self.holder(index, true).filter(|&peer| peer != self.peers.index)
    }

    /// Waits until no hazard names a descriptor, for this many nanoseconds at most. False: one
    /// does.
    pub(crate) fn wait_unused(&self, index: u32, attached: bool, ns: u64) -> bool {
        let end = clock::now_ns().saturating_add(ns);
        let mut round = 0;
        while self.holder(index, attached).is_some() {
            round += 1;
            thread::relax(round);
            if round % 64 == 0 && clock::now_ns() >= end {
                self.found_busy.store(index + 1, Ordering::Relaxed);
                return false;
            }
        }
        true
    }

    /// Takes an unused record.
    fn take_record(&self, owner: &mut OwnerTables) -> Result<u32, PtlError> {
        if let Some(first) = owner.resting.pop_front() {
            self.rest(owner, first, true);
        }
        if owner.free_mds.is_empty() {
            self.reclaim(owner);
        }
        owner.free_mds.take().ok_or(PtlError::NoSpace)
    }

    /// Frees all that can be freed: descriptors that have unlinked themselves, with their match
    /// entries, and queues and pieces that were in use when they were replaced or freed. For a
    /// call that would otherwise return `PTL_NO_SPACE`.
    #[cold]
    pub(crate) fn reclaim(&self, owner: &mut OwnerTables) {
        self.sweep(owner);
        for _ in 0..owner.resting.len() {
            if let Some(resting) = owner.resting.pop_front() {
                self.rest(owner, resting, false);
            }
        }
        for eq in 0..self.limits.max_eqs {
            self.eq_recycle(owner, eq);
        }
        self.drop_old_pieces(owner);
    }

    /// Frees replaced pieces that no framed message uses any more.
    pub(crate) fn drop_old_pieces(&self, owner: &mut OwnerTables) {
        // Acquire pairs with the Release in `transfer_end`.
        let in_use =
            |old: &OldPieces| self.mds[old.md as usize].pending.load(Ordering::Acquire) != 0;
        owner.old_pieces.retain(in_use);
    }

    fn free_record(&self, owner: &mut OwnerTables, index: u32) {
        let control = self.mds[index as usize].control.load(Ordering::Relaxed);
        owner.free_mds.give_back(index, control::generation(control));
    }

    /// Frees a record if it has rested, otherwise keeps it resting.
    fn rest(&self, owner: &mut OwnerTables, mut resting: Resting, first: bool) {
        if self.rested(owner, &mut resting) {
            self.unwrite(owner, resting.index);
            self.free_record(owner, resting.index);
        } else if first {
            owner.resting.push_front(resting);
        } else {
            owner.resting.push_back(resting);
        }
    }

    /// Whether no hazard and no event can name this removed descriptor any more.
    fn rested(&self, owner: &mut OwnerTables, resting: &mut Resting) -> bool {
        if resting.hazards {
            let pending = &self.mds[resting.index as usize].pending;
            // Acquire pairs with the Release in `transfer_end`. A framed message ends before the
            // descriptor unlinks itself; a peer can write otherwise.
            if self.holder(resting.index, true).is_some() || pending.load(Ordering::Acquire) != 0 {
                return false;
            }
            // Only now have all of its events been posted.
            resting.hazards = false;
            resting.events = self.last_events(owner, resting.index);
        }
        resting.events.iter().all(|&(eq, position)| self.eq_passed(eq, position))
    }

    /// The queues of a removed descriptor that is no longer in use, and of each the first position
    /// that cannot be one of its events.
    fn last_events(&self, owner: &mut OwnerTables, index: u32) -> Vec<(EqHandle, u64)> {
        let eq = EqHandle(self.mds[index as usize].eq.load(Ordering::Relaxed));
        let mut queues = Vec::new();
        let mut note = |eq| queues.extend(self.eq_index(eq).ok().map(|i| (eq, self.eq_tail(i))));
        note(eq);
        owner.earlier_queues.retain(|&(md, eq)| {
            if md == index {
                note(eq);
            }
            md != index
        });
        queues
    }

    /// Puts a record to rest. New messages can no longer reach the descriptor.
    fn retire(&self, owner: &mut OwnerTables, index: u32, hazards: bool) {
        let record = &self.mds[index as usize];
        let control = record.control.load(Ordering::Relaxed);
        // SeqCst: threads of this process read it after they have published their hazard; the
        // hazards are read next.
        record.control.swap(control & !control::PHASE | control::FREE, Ordering::SeqCst);
        let events = if hazards { Vec::new() } else { self.last_events(owner, index) };
        if !hazards {
            self.unwrite(owner, index);
        }
        self.rest(owner, Resting { index, events, hazards }, false);
    }

    /// Makes a record live.
    fn publish(&self, owner: &mut OwnerTables, index: u32, state: u64) -> MdHandle {
        let (record, cell) = (&self.mds[index as usize], self.own_cell(index));
        let generation =
            control::generation(record.control.load(Ordering::Relaxed)).wrapping_add(1) & 0xffff;
        cell.generation.store(generation, Ordering::Relaxed);
        owner.written[index as usize].words.generation = generation;
        cell.state.0.store(state, Ordering::Relaxed);
        record.pending.store(0, Ordering::Relaxed);
        record.asked.store(0, Ordering::Relaxed);
        record.handle.store(generation << 16 | index, Ordering::Relaxed);
        record.control.store(generation << 16 | control::LIVE, Ordering::Release);
        MdHandle(generation << 16 | index)
    }

    /// Takes a record, writes a checked descriptor into it and makes it live, attached to nothing.
    pub(crate) fn create(
        &self,
        owner: &mut OwnerTables,
        md: &MemoryDescriptor,
        examined: Examined,
        me: u32,
        unlink: Unlink,
    ) -> Result<MdHandle, PtlError> {
        let index = self.take_record(owner)?;
        let state = examined.state;
        if let Err(error) = self.write(owner, index, md, examined) {
            self.free_record(owner, index);
            return Err(error);
        }
        self.mds[index as usize].me.store(me, Ordering::Relaxed);
        self.mds[index as usize].unlink.store(unlink == Unlink::Unlink, Ordering::Relaxed);
        Ok(self.publish(owner, index, state))
    }

    /// Removes a descriptor unless it is in use; `with_me`: its match entry is being removed
    /// too. `PTL_MD_INVALID`: removed as well; it had unlinked itself and posted UNLINK.
    pub(crate) fn try_remove(
        &self,
        owner: &mut OwnerTables,
        local: &LocalMd<'_>,
        with_me: bool,
    ) -> Result<(), PtlError> {
        let me = local.record.me.load(Ordering::Relaxed).checked_sub(1);
        // Deliverers read the version after they have published their hazard, threads of this
        // process `control`.
        let change = me.map(|me| self.pt_begin_change(owner.mes[me as usize].pt));
        local
            .record
            .control
            .swap(local.control & !control::PHASE | control::CLOSING, Ordering::SeqCst);
        fault::point("unlink.closing");
        let busy = self.busy(local.index, me.is_some());
        // A delivery that has just ended may have been its last.
        let unlinked = self.unlinked_itself(local);
        if busy {
            local.record.control.store(local.control, Ordering::Release);
        } else {
            if let Some(me) = me {
                self.me_detach_md(owner, me, with_me);
            }
            self.retire(owner, local.index, false);
        }
        if let Some(change) = change {
            self.pt_end_change(change);
        }
        match (busy, unlinked) {
            (true, _) => Err(PtlError::MdInUse),
            (false, true) => Err(PtlError::MdInvalid),
            (false, false) => Ok(()),
        }
    }

    /// Removes what is left of a descriptor that has unlinked itself.
    pub(crate) fn reap(&self, owner: &mut OwnerTables, index: u32) {
        let record = &self.mds[index as usize];
        let me = record.me.swap(0, Ordering::Relaxed).checked_sub(1);
        if let Some(me) = me {
            let change = self.pt_begin_change(owner.mes[me as usize].pt);
            self.me_detach_md(owner, me, false);
            self.pt_end_change(change);
        }
        self.retire(owner, index, true);
    }

    /// [`NiState::reap`] by handle, when the UNLINK event has been read.
    pub(crate) fn reap_handle(&self, md: MdHandle) {
        let owner = &mut *self.owner.lock();
        if let Ok(local) = self.local(md)
            && self.unlinked_itself(&local)
        {
            self.reap(owner, local.index);
        }
    }

    /// Removes all descriptors that have unlinked themselves, even if their UNLINK was not read
    /// yet or was lost.
    fn sweep(&self, owner: &mut OwnerTables) {
        for index in 0..self.mds.len() as u32 {
            let control = self.mds[index as usize].control.load(Ordering::Relaxed);
            if control & control::PHASE != control::LIVE {
                continue;
            }
            if let Ok(local) = self.local(MdHandle(control & 0xffff_0000 | index))
                && self.unlinked_itself(&local)
            {
                self.reap(owner, index);
            }
        }
    }
}
