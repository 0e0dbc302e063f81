//! The descriptors of an interface: look-up, the checks of what a user passes, and writing
//! record and cell.
//!
//! Used by the calls and by transfers. Invariant: a cell is written only while no deliverer can
//! use it: before it is attached, or while its list's version is odd.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ffi::c_void;
use core::mem;
use core::sync::atomic::Ordering;

use super::owner::WrittenMd;
use super::{NiState, OwnerTables};
use crate::arena::{IOVECS, IovPiece, IovTable, LINE, MdCell, MdWords, PieceWords};
use crate::deliver::Matched;
use crate::descriptor::record::{LocalMd, MdMemory, MdRecord, Pieces, control};
use crate::descriptor::state;
use crate::descriptor::traits::{MemoryKind, Traits};
use crate::types::md_options::*;
use crate::types::*;
use sys::peer::Peer;
use sys::thread;

/// All options.
const ALL_OPTIONS: u32 = OP_PUT
    | OP_GET
    | MANAGE_REMOTE
    | TRUNCATE
    | ACK_DISABLE
    | IOVEC
    | MAX_SIZE
    | EVENT_START_DISABLE
    | EVENT_END_DISABLE
    | ADDRESS_SPACE;

/// A checked descriptor: the result of [`NiState::examine`].
pub(crate) struct Examined {
    traits: Traits,
    /// Bytes.
    length: u64,
    /// Its first state word.
    pub(crate) state: u64,
    pieces: Option<Box<Pieces>>,
    eq: Option<u32>,
}

impl NiState {
    /// Looks a handle up; waits while another thread is about to remove the descriptor.
    #[inline(always)]
    pub(crate) fn local(&self, md: MdHandle) -> Result<LocalMd<'_>, PtlError> {
        let index = md.0 & 0xffff;
        let (Some(record), Some(cell)) =
            (self.mds.get(index as usize), self.peers.own.view.md(index))
        else {
            return Err(PtlError::MdInvalid);
        };
        // Acquire pairs with the Release in `publish`: the record is complete.
        let mut control = record.control.load(Ordering::Acquire);
        if control & control::PHASE == control::CLOSING {
            let mut round = 0;
            while control & control::PHASE == control::CLOSING {
                thread::relax(round);
                round += 1;
                control = record.control.load(Ordering::Acquire);
            }
        }
        if control & control::PHASE != control::LIVE || control::generation(control) != md.0 >> 16
        {
            return Err(PtlError::MdInvalid);
        }
        Ok(LocalMd { index, control, record, cell })
    }

    /// The record of the descriptor that an event names, if it exists or rests until its events
    /// are read. Index and generation are as a peer wrote them.
    #[inline(always)]
    pub(crate) fn named(&self, md: MdHandle) -> Option<&MdRecord> {
        let record = self.mds.get((md.0 & 0xffff) as usize)?;
        (record.handle.load(Ordering::Relaxed) == md.0).then_some(record)
    }

    /// The memory of a descriptor of ours that a message has matched. Peers can write the cell
    /// that decided, so the private record is what counts. `None`, and a report of the damage,
    /// unless the descriptor exists, is attached, has the options that the operation `needs`, and
    /// contains all bytes accepted. A hazard names the descriptor.
    pub(crate) fn own_target(&self, matched: &Matched<'_>, needs: u32) -> Option<MdMemory> {
        let memory = self.target_by_record(matched, needs);
        if memory.is_none() {
            self.report(&Damage::Descriptor { md: matched.md });
        }
        memory
    }

    fn target_by_record(&self, matched: &Matched<'_>, needs: u32) -> Option<MdMemory> {
        let record = self.mds.get(matched.md as usize)?;
        let end = matched.accepted.offset.checked_add(matched.accepted.mlength)?;
        let traits = record.traits.load(Ordering::Relaxed);
        // SeqCst: after the hazard, as in `LocalMd::unchanged`. A descriptor that is being
        // removed exists until the owner has found no hazard.
        let exists = record.control.load(Ordering::SeqCst) & control::PHASE != control::FREE;
        let attached = record.me.load(Ordering::Relaxed) != 0;
        let allowed = traits & u64::from(needs) == u64::from(needs);
        let whole = end <= record.length.load(Ordering::Relaxed);
        (exists && attached && allowed && whole).then(|| record.memory())
    }

    /// Whether a delivery made the descriptor unlink itself.
    pub(crate) fn unlinked_itself(&self, local: &LocalMd<'_>) -> bool {
        local.traits().unlinks()
            && local.cell.state.0.load(Ordering::Acquire) & state::UNLINKED != 0
    }

    /// The descriptor as the user would state it now.
    pub(crate) fn snapshot(&self, record: &MdRecord, threshold: i32) -> MemoryDescriptor {
        MemoryDescriptor {
            start: record.start.load(Ordering::Relaxed) as *mut c_void,
            length: record.stated_length.load(Ordering::Relaxed),
            threshold,
            max_size: record.max_size.load(Ordering::Relaxed),
            options: record.options.load(Ordering::Relaxed),
            user_ptr: record.user_ptr.load(Ordering::Relaxed) as *mut c_void,
            eq: EqHandle(record.eq.load(Ordering::Relaxed)),
        }
    }

    /// Checks a user's descriptor and computes the rest. Only one that is `attached` has an offset
    /// of its own: then its length and threshold together may need too many bits.
    ///
    /// # Safety
    /// With [`IOVEC`], `md.start` points to `md.length` readable entries.
    pub(crate) unsafe fn examine(
        &self,
        md: &MemoryDescriptor,
        unlink: bool,
        attached: bool,
    ) -> Result<Examined, PtlError> {
        if md.options & !ALL_OPTIONS != 0 || md.threshold < THRESH_INF {
            return Err(PtlError::MdIllegal);
        }
        let eq = match md.eq {
            EqHandle::NONE => None,
            eq => Some(self.eq_index(eq)?),
        };
        let mut pieces = None;
        let mut length = md.length;
        let kind;
        let whole = md.options & ADDRESS_SPACE != 0;
        if md.options & IOVEC != 0 {
            if whole
                || md.length > u64::from(self.limits.max_md_iovecs)
                || (md.start.is_null() && md.length > 0)
            {
                return Err(PtlError::MdIllegal);
            }
            let mut copy =
                Pieces { count: md.length as usize, list: [(core::ptr::null_mut(), 0); IOVECS] };
            length = 0;
            for (i, piece) in copy.list.iter_mut().take(md.length as usize).enumerate() {
                // SAFETY: `md.start` has `md.length` entries (`# Safety`); `take` stays below it.
                let entry = unsafe { md.start.cast::<MdIovec>().add(i).read() };
                check_range(entry.base, entry.len)?;
                *piece = (entry.base.cast(), entry.len);
                length = add_length(length, entry.len).ok_or(PtlError::MdIllegal)?;
            }
            pieces = Some(Box::new(copy));
            kind = MemoryKind::Scattered;
        } else {
            check_range(md.start, length)?;
            kind = match self.place(md.start.cast(), length).0 {
                _ if whole => MemoryKind::AddressSpace,
                // The user may have unmapped what it has registered.
                MemoryKind::Private if self.registers => MemoryKind::AddressSpace,
                kind => kind,
            };
        }

        // The fields of the state word.
        let local_target = attached && md.options & MANAGE_REMOTE == 0;
        let moves = local_target && (length > 0 || md.options & MAX_SIZE != 0);
        let cursor_bits = if moves { u64::BITS - length.leading_zeros() } else { 0 };
        let threshold_bits = if md.threshold == THRESH_INF {
            0
        } else {
            (u32::BITS - md.threshold.leading_zeros()).max(1)
        };
        if cursor_bits + threshold_bits > state::COUNTING_BITS {
            return Err(PtlError::NoSpace);
        }
        let counts = moves || md.threshold != THRESH_INF;
        let mut traits = u64::from(md.options)
            | u64::from(eq.map_or(0, |e| e + 1)) << 16
            | (kind as u64) << 32
            | u64::from(cursor_bits) << 40
            | u64::from(threshold_bits) << 48;
        if counts {
            traits |= Traits::COUNTS;
            if unlink {
                traits |= Traits::UNLINKS;
            }
        }
        let mut state = if threshold_bits > 0 { (md.threshold as u64) << cursor_bits } else { 0 };
        if md.threshold == 0 {
            state |= state::INACTIVE;
        }
        Ok(Examined { traits: Traits(traits), length, state, pieces, eq })
    }

    /// Writes a checked descriptor into record and cell. The cell is not reachable, or its
    /// list's version is odd.
    pub(crate) fn write(
        &self,
        owner: &mut OwnerTables,
        index: u32,
        md: &MemoryDescriptor,
        examined: Examined,
    ) -> Result<(), PtlError> {
        let (record, cell) = (&self.mds[index as usize], self.own_cell(index));
        let registered = self.register(owner, md.start.cast(), &examined)?;
        let (iov, pieces) = match &examined.pieces {
            Some(pieces) => match self.write_iov(owner, pieces) {
                Ok(written) => written,
                Err(error) => {
                    owner.deregister(registered);
                    return Err(error);
                }
            },
            None => (0, Vec::new()),
        };
        let traits = examined.traits;
        let relaxed = Ordering::Relaxed;
        record.traits.store(traits.0, relaxed);
        record.start.store(md.start as usize, relaxed);
        record.length.store(examined.length, relaxed);
        record.user_ptr.store(md.user_ptr as usize, relaxed);
        record.pieces.store(examined.pieces.map_or(core::ptr::null_mut(), Box::into_raw), relaxed);
        record.stated_length.store(md.length, relaxed);
        record.max_size.store(md.max_size, relaxed);
        record.options.store(md.options, relaxed);
        record.eq.store(md.eq.0, relaxed);
        record.threshold.store(md.threshold, relaxed);
        let eq_key = examined.eq.map_or(0, |eq| {
            self.eqs[eq as usize].descriptors.fetch_add(1, relaxed);
            owner.rings[eq as usize].key
        });
        let start = self.place(md.start.cast(), examined.length).1;
        if owner.written.len() <= index as usize {
            owner.written.resize_with(index as usize + 1, WrittenMd::default);
        }
        let written = &mut owner.written[index as usize];
        written.words = MdWords {
            traits: traits.0,
            length: examined.length,
            max_size: md.max_size,
            start,
            address: md.start as u64,
            seal: MdCell::seal_of(traits.0, examined.length, start, md.start as u64, iov),
            iov,
            eq_key,
            // An update does not change it.
            generation: written.words.generation,
        };
        written.pieces = pieces;
        written.words.store(cell);
        let before = mem::replace(&mut written.registered, registered);
        owner.deregister(before);
        Ok(())
    }

    /// Registers the memory of a checked descriptor that begins at `start`, if that is demanded.
    fn register(
        &self,
        owner: &mut OwnerTables,
        start: *mut u8,
        examined: &Examined,
    ) -> Result<Vec<(usize, u64)>, PtlError> {
        if !self.registers {
            return Ok(Vec::new());
        }
        let whole = [(start, examined.length)];
        let pieces = match &examined.pieces {
            Some(pieces) => &pieces.list[..pieces.count],
            None => &whole,
        };
        let placed = |&(start, length): &(*mut u8, u64)| {
            (self.place(start, length).0, start.addr(), length)
        };
        owner.register(pieces.iter().map(placed))
    }

    /// Frees what [`NiState::write`] acquired; does nothing the second time.
    pub(crate) fn unwrite(&self, owner: &mut OwnerTables, index: u32) {
        let (record, cell) = (&self.mds[index as usize], self.own_cell(index));
        let pieces = record.pieces.swap(core::ptr::null_mut(), Ordering::Relaxed);
        if !pieces.is_null() {
            // SAFETY: made by `Box::into_raw` in `write`, and unused: no hazard names the
            // descriptor, or the caller waited until none did.
            drop(unsafe { Box::from_raw(pieces) });
        }
        cell.iov.store(0, Ordering::Relaxed);
        let written = &mut owner.written[index as usize];
        let (iov, registered) =
            (mem::take(&mut written.words.iov), mem::take(&mut written.registered));
        owner.deregister(registered);
        if iov != 0 {
            owner.free_iovs.push(iov);
        }
        if let Some(eq) = Traits(record.traits.load(Ordering::Relaxed)).eq() {
            self.eq_release(owner, eq);
        }
        record.traits.store(0, Ordering::Relaxed);
    }

    /// Copies the pieces of a scattered descriptor to the arena, where deliverers read them: the
    /// offset, and what was written.
    fn write_iov(
        &self,
        owner: &mut OwnerTables,
        pieces: &Pieces,
    ) -> Result<(u64, Vec<PieceWords>), PtlError> {
        let offset = match owner.free_iovs.pop() {
            Some(offset) => offset,
            None => self.bump(owner, size_of::<IovTable>(), LINE).ok_or(PtlError::NoSpace)?,
        };
        let table = self.peers.own.view.iov(Peer::new(offset)).ok_or(PtlError::NoSpace)?;
        table.count.store(pieces.count as u64, Ordering::Relaxed);
        let write = |(to, &(base, length)): (&IovPiece, &(*mut u8, u64))| {
            let (kind, start) = self.place(base, length);
            let (kind, address) = (kind as u32, base as u64);
            let seal = IovPiece::seal_of(kind, start, address, length);
            let words = PieceWords { kind, seal, start, address, length };
            words.store(to);
            words
        };
        let list = &pieces.list[..pieces.count];
        Ok((offset, table.pieces.iter().zip(list).map(write).collect()))
    }

    /// The kind of this memory, and its offset there. An empty range counts as reachable
    /// wherever it begins.
    pub(crate) fn place(&self, start: *mut u8, length: u64) -> (MemoryKind, u64) {
        if length == 0 {
            return (MemoryKind::Arena, 0);
        }
        let inside = |base: *mut u8, size: u64| {
            let offset = (start as usize).checked_sub(base as usize)? as u64;
            (!base.is_null() && offset.checked_add(length)? <= size).then_some(offset)
        };
        let arena = (self.peers.own.view.base().as_ptr(), self.peers.own.view.bytes() as u64);
        if let Some(offset) = inside(arena.0, arena.1) {
            return (MemoryKind::Arena, offset);
        }
        let segment = &self.peers.segments[self.peers.index as usize];
        // Acquire pairs with the Release in `expose`.
        let size = segment.length.load(Ordering::Acquire);
        if let Some(offset) = inside(segment.base.load(Ordering::Relaxed), size) {
            return (MemoryKind::Segment, offset);
        }
        (MemoryKind::Private, start as u64)
    }

    #[inline(always)]
    pub(crate) fn own_cell(&self, index: u32) -> &MdCell {
        match self.peers.own.view.md(index) {
            Some(cell) => cell,
            None => unreachable!("indices of records are indices of cells"),
        }
    }
}

/// Lengths stay below 2^62, so that sums of an offset and a length never wrap.
fn add_length(sum: u64, length: u64) -> Option<u64> {
    sum.checked_add(length).filter(|&sum| sum < 1 << 62)
}

/// Refuses a null start, and memory beyond the end of the address space.
fn check_range(start: *mut c_void, length: u64) -> Result<(), PtlError> {
    let wraps = length >= 1 << 62 || (start as usize).checked_add(length as usize).is_none();
    if wraps || (start.is_null() && length > 0) { Err(PtlError::MdIllegal) } else { Ok(()) }
}
