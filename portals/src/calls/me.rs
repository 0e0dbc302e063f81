//! Match entries: attach, insert, unlink.
//!
//! The owner keeps each list as a vector ([`OwnerTables::lists`]) and writes it out as links.
//! Invariant: a list changes under the owner lock, while its version is odd.

use alloc::vec::Vec;
use core::sync::atomic::Ordering;

use super::NetworkInterface;
use crate::arena::{MeWords, pack_id};
use crate::descriptor::record::control;
use crate::tables::{NiState, OwnerTables};
use crate::types::*;

/// A position in a list.
enum ListPosition {
    Head,
    Tail,
    Before(u16),
    After(u16),
}

impl NiState {
    /// The index behind a handle.
    pub(crate) fn me_lookup(
        &self,
        owner: &mut OwnerTables,
        me: MeHandle,
    ) -> Result<u32, PtlError> {
        let index = me.0 & 0xffff;
        let known = |owner: &OwnerTables| match owner.mes.get(index as usize) {
            Some(r) if r.live && u32::from(r.generation) == me.0 >> 16 => Ok(*r),
            _ => Err(PtlError::MeInvalid),
        };
        if let Some(md) = known(owner)?.md {
            // The descriptor may have unlinked itself, and the entry with it.
            self.reap_if_unlinked(owner, u32::from(md));
        }
        known(owner).map(|_| index)
    }

    fn reap_if_unlinked(&self, owner: &mut OwnerTables, md: u32) {
        let control = self.mds[md as usize].control.load(Ordering::Relaxed);
        if control & control::PHASE == control::LIVE
            && let Ok(local) = self.local(MdHandle(control & 0xffff_0000 | md))
            && self.unlinked_itself(&local)
        {
            self.reap(owner, md);
        }
    }
}

impl NetworkInterface {
    /// Whether the handle is valid.
    pub fn has_me(&self, me: MeHandle) -> bool {
        self.state.me_lookup(&mut self.state.owner.lock(), me).is_ok()
    }

    #[allow(clippy::too_many_arguments)]
    fn add_me(
        &self,
        owner: &mut OwnerTables,
        pt: u32,
        place: ListPosition,
        match_id: PtlProcessId,
        match_bits: MatchBits,
        ignore_bits: MatchBits,
        unlink: Unlink,
    ) -> Result<MeHandle, PtlError> {
        let spent: Vec<u32> = owner.lists[pt as usize]
            .iter()
            .filter_map(|&me| owner.mes[me as usize].md.map(u32::from))
            .collect();
        for md in spent {
            self.state.reap_if_unlinked(owner, md);
        }
        if owner.free_mes.is_empty() {
            self.state.reclaim(owner);
        }
        let list = &owner.lists[pt as usize];
        if list.len() >= self.state.limits.max_me_list as usize {
            return Err(PtlError::MeListTooLong);
        }
        let position =
            |me: u16| list.iter().position(|&other| other == me).ok_or(PtlError::MeInvalid);
        let at = match place {
            ListPosition::Head => 0,
            ListPosition::Tail => list.len(),
            ListPosition::Before(me) => position(me)?,
            ListPosition::After(me) => position(me)? + 1,
        };
        let index = owner.free_mes.take().ok_or(PtlError::NoSpace)?;
        let cell = self.state.peers.own.view.me(index).ok_or(PtlError::NoSpace)?;
        let record = &mut owner.mes[index as usize];
        record.generation = record.generation.wrapping_add(1);
        record.live = true;
        record.pt = pt;
        record.unlink = unlink == Unlink::Unlink;
        record.md = None;
        record.words = MeWords { match_bits, ignore_bits, match_id: pack_id(match_id) };
        let words = record.words;
        let handle = MeHandle(u32::from(record.generation) << 16 | index);

        let change = self.state.pt_begin_change(pt);
        words.store(cell);
        cell.md.store(0, Ordering::Relaxed);
        owner.lists[pt as usize].insert(at, index as u16);
        owner.pt_used[pt as usize] = true;
        self.state.pt_write(pt, &owner.lists[pt as usize]);
        self.state.pt_end_change(change);
        Ok(handle)
    }

    /// `PtlMEAttach`: before the head or after the tail of the list.
    pub fn me_attach(
        &self,
        pt_index: PtIndex,
        match_id: PtlProcessId,
        match_bits: MatchBits,
        ignore_bits: MatchBits,
        unlink: Unlink,
        position: InsPos,
    ) -> Result<MeHandle, PtlError> {
        if pt_index > self.state.limits.max_pt_index {
            return Err(PtlError::PtIndexInvalid);
        }
        let place =
            if position == InsPos::Before { ListPosition::Head } else { ListPosition::Tail };
        self.add_me(
            &mut self.state.owner.lock(),
            pt_index,
            place,
            match_id,
            match_bits,
            ignore_bits,
            unlink,
        )
    }

    /// `PtlMEAttachAny`: on a portal table entry that was never used.
    pub fn me_attach_any(
        &self,
        match_id: PtlProcessId,
        match_bits: MatchBits,
        ignore_bits: MatchBits,
        unlink: Unlink,
    ) -> Result<(PtIndex, MeHandle), PtlError> {
        let owner = &mut *self.state.owner.lock();
        let pt = owner.pt_used.iter().position(|used| !used).ok_or(PtlError::PtFull)? as u32;
        let me =
            self.add_me(owner, pt, ListPosition::Head, match_id, match_bits, ignore_bits, unlink)?;
        Ok((pt, me))
    }

    /// `PtlMEInsert`: before or after `base`.
    pub fn me_insert(
        &self,
        base: MeHandle,
        match_id: PtlProcessId,
        match_bits: MatchBits,
        ignore_bits: MatchBits,
        unlink: Unlink,
        position: InsPos,
    ) -> Result<MeHandle, PtlError> {
        let owner = &mut *self.state.owner.lock();
        let base = self.state.me_lookup(owner, base)?;
        let pt = owner.mes[base as usize].pt;
        let place = match position {
            InsPos::Before => ListPosition::Before(base as u16),
            InsPos::After => ListPosition::After(base as u16),
        };
        self.add_me(owner, pt, place, match_id, match_bits, ignore_bits, unlink)
    }

    /// `PtlMEUnlink`. The descriptor goes with its entry.
    pub fn me_unlink(&self, me: MeHandle) -> Result<(), PtlError> {
        let owner = &mut *self.state.owner.lock();
        let index = self.state.me_lookup(owner, me)?;
        let Some(md) = owner.mes[index as usize].md.map(u32::from) else {
            let change = self.state.pt_begin_change(owner.mes[index as usize].pt);
            self.state.remove_me(owner, index);
            self.state.pt_end_change(change);
            return Ok(());
        };
        let control = self.state.mds[md as usize].control.load(Ordering::Relaxed);
        let local = self
            .state
            .local(MdHandle(control & 0xffff_0000 | md))
            .map_err(|_| PtlError::MeInvalid)?;
        match self.state.try_remove(owner, &local, true) {
            Err(PtlError::MdInUse) => Err(PtlError::MeInUse),
            _ => Ok(()),
        }
    }
}
