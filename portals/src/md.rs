//! Memory descriptors: their state word, the owner's private record of each, attach, bind, unlink and update.
//!
//! A descriptor has two halves. The [`MdCell`] in the arena is what deliverers see: only the owner writes it,
//! except for the state word. The [`MdRecord`] in ordinary memory is what this process itself relies on:
//! addresses, the user's word, the exact [`MemoryDescriptor`]. No address is ever taken from shared memory for use by this
//! process.
//!
//! # The state word
//!
//! Cursor (locally managed descriptors), threshold (finite ones), the number of operations in flight
//! (descriptors that may unlink themselves) and two flags share one word, so that accepting a message is one
//! compare-and-swap. A descriptor that has nothing to count ([`Traits::counts`] is false) has no state: a
//! delivery does not write to it, nor read it.
//!
//! # Taking a descriptor away
//!
//! [`MdRecord::control`] holds generation, number of updates and a phase. Users (our own threads, as
//! initiators) publish a hazard that names the descriptor and then look at `control` again; the owner sets
//! the phase to CLOSING and then looks at the hazards. All four accesses are sequentially consistent, so at
//! least one side sees the other (Dekker's argument; the scheme is that of hazard pointers, M. Michael,
//! 2004). Deliverers do the same with the version of the portal table entry in the place of `control`. If the
//! owner sees a hazard, it puts everything back and reports `PTL_MD_IN_USE`.
//!
//! If an initiator dies or stops while its hazard names a descriptor, the descriptor stays in use: the data
//! may still be on its way. If the owner dies while a version is odd, deliverers find that it is dead and
//! give up; if it is stopped, they wait and say for whom.

use alloc::boxed::Box;
use core::ffi::c_void;
use core::sync::atomic::{
    AtomicBool, AtomicI32, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering,
};

use crate::arena::{ArenaHeader, IOVECS, IovTable, MdCell};
use crate::hazard;
use crate::ni::{NetworkInterface, OldPieces, OwnerTables};
use crate::types::md_options::*;
use crate::types::*;
use crate::zeroed::Zeros;

/// Where the memory of a descriptor or of a piece lies.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MemoryKind {
    /// In the owner's arena.
    Arena = 0,
    /// In the owner's exposed segment.
    Segment = 1,
    /// Anywhere else.
    Private = 2,
    /// In the pieces of an [`IovTable`].
    Scattered = 3,
}

impl MemoryKind {
    pub(crate) fn from_bits(bits: u64) -> MemoryKind {
        match bits & 0xff {
            0 => MemoryKind::Arena,
            1 => MemoryKind::Segment,
            3 => MemoryKind::Scattered,
            _ => MemoryKind::Private,
        }
    }
}

/// The small properties of a descriptor, packed into one word: options 0-15, event queue index + 1 16-31,
/// [`MemoryKind`] 32-39, bits of the cursor 40-47, bits of the threshold 48-55, flags 56-57.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Traits(pub(crate) u64);

impl Traits {
    const COUNTS: u64 = 1 << 56;
    const UNLINKS: u64 = 1 << 57;

    #[inline(always)]
    pub(crate) fn has(self, option: u32) -> bool {
        self.0 & u64::from(option) != 0
    }
    /// Index of the event queue.
    #[inline(always)]
    pub(crate) fn eq(self) -> Option<u32> {
        ((self.0 >> 16 & 0xffff) as u32).checked_sub(1)
    }
    #[inline(always)]
    pub(crate) fn kind(self) -> MemoryKind {
        MemoryKind::from_bits(self.0 >> 32)
    }
    /// Whether it has a state word at all.
    #[inline(always)]
    pub(crate) fn counts(self) -> bool {
        self.0 & Self::COUNTS != 0
    }
    /// Whether it unlinks itself when it becomes inactive; then operations in flight are counted.
    #[inline(always)]
    pub(crate) fn unlinks(self) -> bool {
        self.0 & Self::UNLINKS != 0
    }
    /// The bits of the cursor, if a delivery moves that, counts as one in flight, and does nothing else to the state.
    pub(crate) fn moves_only(self) -> Option<u64> {
        let mask = self.cursor_mask();
        (self.unlinks() && mask != 0 && self.threshold_mask() == 0 && !self.has(MANAGE_REMOTE))
            .then_some(mask)
    }
    /// Whether any kind of event is logged apart from ACKs.
    #[inline(always)]
    pub(crate) fn logs(self) -> bool {
        const BOTH: u32 = EVENT_START_DISABLE | EVENT_END_DISABLE;
        self.eq().is_some() && self.0 & u64::from(BOTH) != u64::from(BOTH)
    }
    #[inline(always)]
    fn cursor_mask(self) -> u64 {
        // The widths came through shared memory: keep the shifts in range.
        (1u64 << (self.0 >> 40 & 63)) - 1
    }
    #[inline(always)]
    fn threshold_shift(self) -> u32 {
        (self.0 >> 40 & 63) as u32
    }
    #[inline(always)]
    fn threshold_mask(self) -> u64 {
        (1u64 << (self.0 >> 48 & 63)) - 1
    }
}

/// What the state word says; see the head of this file.
pub(crate) mod state {
    /// It accepts nothing any more.
    pub(crate) const INACTIVE: u64 = 1 << 63;
    /// It has unlinked itself: nothing is in flight, and nothing will be.
    pub(crate) const UNLINKED: u64 = 1 << 62;
    /// One operation in flight.
    pub(crate) const FLIGHT: u64 = 1 << 53;
    /// All of them.
    pub(crate) const FLIGHTS: u64 = UNLINKED - FLIGHT;
    /// Bits that are left for threshold and cursor.
    pub(crate) const COUNTING_BITS: u32 = 53;
}

/// A message was accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Accepted {
    pub(crate) offset: u64,
    pub(crate) mlength: u64,
    /// After this message.
    pub(crate) threshold: i32,
}

/// Whether a descriptor in this state accepts a message, and what the state is afterwards.
#[inline(always)]
pub(crate) fn accept(
    traits: Traits,
    length: u64,
    max_size: u64,
    state: u64,
    remote_offset: u64,
    rlength: u64,
) -> Option<(Accepted, u64)> {
    if state & state::INACTIVE != 0 {
        return None;
    }
    let remote = traits.has(MANAGE_REMOTE);
    let cursor = state & traits.cursor_mask();
    let offset = if remote { remote_offset } else { cursor };
    let room = length.checked_sub(offset)?;
    let mlength = if rlength <= room {
        rlength
    } else if traits.has(TRUNCATE) {
        room
    } else {
        return None;
    };
    if !traits.counts() {
        return Some((Accepted { offset, mlength, threshold: THRESH_INF }, state));
    }
    let (threshold, mut next) = spend(traits, state)?;
    if !remote {
        next += mlength;
        if traits.has(MAX_SIZE) && room - mlength < max_size {
            next |= state::INACTIVE;
        }
    }
    Some((Accepted { offset, mlength, threshold }, next))
}

/// Takes one from a finite threshold and counts one operation in flight, if the descriptor counts them.
/// `None` if it is inactive, or cannot count one more.
#[inline(always)]
fn spend(traits: Traits, state: u64) -> Option<(i32, u64)> {
    if state & state::INACTIVE != 0 {
        return None;
    }
    let mut next = state;
    let mut threshold = THRESH_INF;
    if traits.threshold_mask() != 0 {
        let shift = traits.threshold_shift();
        let left = (state >> shift & traits.threshold_mask()).checked_sub(1)?;
        next -= 1 << shift;
        threshold = left as i32;
        if left == 0 {
            next |= state::INACTIVE;
        }
    }
    if traits.unlinks() {
        if state & state::FLIGHTS == state::FLIGHTS {
            return None;
        }
        next += state::FLIGHT;
    }
    Some((threshold, next))
}

/// Claims a place for a message. `None` if the descriptor does not accept it now.
#[inline(always)]
pub(crate) fn claim(
    cell: &MdCell,
    traits: Traits,
    length: u64,
    max_size: u64,
    remote_offset: u64,
    rlength: u64,
) -> Option<Accepted> {
    if !traits.counts() {
        return accept(traits, length, max_size, 0, remote_offset, rlength)
            .map(|(accepted, _)| accepted);
    }
    let mut now = cell.state.0.load(Ordering::Relaxed);
    loop {
        let (accepted, next) = accept(traits, length, max_size, now, remote_offset, rlength)?;
        // Acquire pairs with the Release of whoever claimed or gave back before: their data lie elsewhere,
        // but the owner's revival (`md_update`) must be seen whole.
        match cell.state.0.compare_exchange_weak(now, next, Ordering::AcqRel, Ordering::Relaxed) {
            Ok(_) => return Some(accepted),
            Err(other) => now = other,
        }
    }
}

/// Claims one operation of the initiator's own (SEND, ACK, REPLY): the threshold afterwards.
#[inline(always)]
pub(crate) fn claim_own(cell: &MdCell, traits: Traits) -> Option<i32> {
    if !traits.counts() {
        return Some(THRESH_INF);
    }
    claim_own_counted(cell, traits)
}

#[inline(never)]
fn claim_own_counted(cell: &MdCell, traits: Traits) -> Option<i32> {
    let mut now = cell.state.0.load(Ordering::Relaxed);
    loop {
        let (threshold, next) = spend(traits, now)?;
        match cell.state.0.compare_exchange_weak(now, next, Ordering::AcqRel, Ordering::Relaxed) {
            Ok(_) => return Some(threshold),
            Err(other) => now = other,
        }
    }
}

/// Gives a claim back after its END event has been posted. True for the one that must post UNLINK.
#[inline(always)]
pub(crate) fn give_back(cell: &MdCell, traits: Traits) -> bool {
    traits.unlinks() && give_back_counted(cell)
}

/// [`give_back`] of a descriptor that counts operations in flight.
#[inline(always)]
pub(crate) fn give_back_counted(cell: &MdCell) -> bool {
    // Release: our END event is posted before the count falls, so the last one's UNLINK comes after it.
    let before = cell.state.0.fetch_sub(state::FLIGHT, Ordering::AcqRel);
    let last = before & (state::FLIGHTS | state::INACTIVE) == state::FLIGHT | state::INACTIVE;
    (last || before & state::FLIGHTS == 0) && gave_back_last(cell, last)
}

/// Nothing is in flight any more, and nothing will be: `last` says whose doing it was. True unless an update has revived the
/// descriptor since, or somebody else was last once more. Otherwise there never was anything: a peer wrote nonsense, which is left
/// as it was.
#[cold]
#[inline(never)]
fn gave_back_last(cell: &MdCell, last: bool) -> bool {
    if !last {
        cell.state.0.fetch_add(state::FLIGHT, Ordering::Relaxed);
        return false;
    }
    let through = |now| {
        let same = now & (state::FLIGHTS | state::INACTIVE | state::UNLINKED) == state::INACTIVE;
        same.then_some(now | state::UNLINKED)
    };
    cell.state.0.fetch_update(Ordering::AcqRel, Ordering::Relaxed, through).is_ok()
}

/// The threshold that a state word tells.
fn threshold_of(traits: Traits, state: u64) -> i32 {
    if traits.threshold_mask() == 0 {
        return THRESH_INF;
    }
    (state >> traits.threshold_shift() & traits.threshold_mask()) as i32
}

/// Phases of [`MdRecord::control`]: generation 16-31, updates 2-15, phase 0-1.
pub(crate) mod control {
    pub(crate) const FREE: u32 = 0;
    pub(crate) const LIVE: u32 = 1;
    pub(crate) const CLOSING: u32 = 2;
    pub(crate) const PHASE: u32 = 3;
    const UPDATE: u32 = 4;

    pub(crate) fn generation(control: u32) -> u32 {
        control >> 16
    }
    pub(crate) fn updated(control: u32) -> u32 {
        control & 0xffff_0000 | (control & 0xfffc).wrapping_add(UPDATE) & 0xfffc
    }
}

/// The pieces of a scattered descriptor, as this process uses them.
#[derive(Debug)]
pub(crate) struct Pieces {
    pub(crate) count: usize,
    pub(crate) list: [(*mut u8, u64); IOVECS],
}

/// What this process itself knows of one of its descriptors.
#[repr(align(128))]
#[derive(Debug, Default)]
pub(crate) struct MdRecord {
    /// See [`control`].
    pub(crate) control: AtomicU32,
    /// Framed messages that hold it.
    pub(crate) pending: AtomicU32,
    /// [`Traits`].
    pub(crate) traits: AtomicU64,
    /// First byte; of a scattered one, the user's vector.
    pub(crate) start: AtomicUsize,
    /// Bytes.
    pub(crate) length: AtomicU64,
    pub(crate) user_ptr: AtomicUsize,
    /// Null unless scattered.
    pub(crate) pieces: AtomicPtr<Pieces>,
    /// [`MemoryDescriptor::length`], [`MemoryDescriptor::max_size`], [`MemoryDescriptor::options`], [`MemoryDescriptor::eq`].
    pub(crate) stated_length: AtomicU64,
    pub(crate) max_size: AtomicU64,
    pub(crate) options: AtomicU32,
    pub(crate) eq: AtomicU32,
    /// [`MemoryDescriptor::threshold`], as attached or updated.
    pub(crate) threshold: AtomicI32,
    /// Index + 1 of the match entry it is attached to, or 0; changed under the owner lock.
    pub(crate) me: AtomicU32,
    /// `PTL_UNLINK`.
    pub(crate) unlink: AtomicBool,
}

// SAFETY: atomics of integers, pointers and a boolean, all of which may be 0.
unsafe impl Zeros for MdRecord {}

/// The bytes of a descriptor of ours.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MdMemory {
    /// First byte, if there are no pieces.
    pub(crate) start: *mut u8,
    pub(crate) pieces: *const Pieces,
}

// SAFETY: what it points to is freed only when nobody holds the descriptor; who copies from and to it may be
// any thread.
unsafe impl Send for MdMemory {}

impl MdRecord {
    pub(crate) fn memory(&self) -> MdMemory {
        MdMemory {
            start: self.start.load(Ordering::Relaxed) as *mut u8,
            pieces: self.pieces.load(Ordering::Acquire),
        }
    }
}

/// A descriptor of ours that a call was given.
#[derive(Clone, Copy)]
pub(crate) struct LocalMd<'a> {
    pub(crate) index: u32,
    /// As it was when the handle was looked up.
    pub(crate) control: u32,
    pub(crate) record: &'a MdRecord,
    pub(crate) cell: &'a MdCell,
}

impl LocalMd<'_> {
    #[inline(always)]
    pub(crate) fn handle(&self) -> MdHandle {
        MdHandle(self.control & 0xffff_0000 | self.index)
    }
    #[inline(always)]
    pub(crate) fn traits(&self) -> Traits {
        Traits(self.record.traits.load(Ordering::Relaxed))
    }
    #[inline(always)]
    pub(crate) fn length(&self) -> u64 {
        self.record.length.load(Ordering::Relaxed)
    }
    /// Whether it is still what it was when it was looked up. Asked after a hazard that names it was
    /// published.
    #[inline(always)]
    pub(crate) fn unchanged(&self) -> bool {
        self.record.control.load(Ordering::SeqCst) == self.control
    }
}

/// A descriptor whose record and cell must rest a while before they are used again.
#[derive(Debug)]
pub(crate) struct Resting {
    index: u32,
    /// Deliverers may still be on their way out of it, and post its last event.
    hazards: bool,
    /// Once they are not: its event queue and the first ticket that cannot be one of its events.
    events: Option<(EqHandle, u64)>,
}

impl NetworkInterface {
    /// Looks a handle up; waits while another thread is about to take the descriptor away.
    #[inline(always)]
    pub(crate) fn local(&self, md: MdHandle) -> Result<LocalMd<'_>, PtlError> {
        let index = md.0 & 0xffff;
        let (Some(record), Some(cell)) = (self.mds.get(index as usize), self.own.view.md(index))
        else {
            return Err(PtlError::MdInvalid);
        };
        // Acquire pairs with the Release in `publish`: the record is there.
        let mut control = record.control.load(Ordering::Acquire);
        if control & control::PHASE == control::CLOSING {
            let mut round = 0;
            while control & control::PHASE == control::CLOSING {
                sys::thread::relax(round);
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

    /// Whether there is such a descriptor.
    pub fn has_md(&self, md: MdHandle) -> bool {
        self.local(md).is_ok_and(|local| !self.unlinked_itself(&local))
    }

    /// What the user would say of a descriptor now.
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

    /// Checks what a user says of a descriptor and finds out the rest.
    ///
    /// # Safety
    /// With [`IOVEC`], `md.start` points to `md.length` readable entries.
    unsafe fn examine(&self, md: &MemoryDescriptor, unlink: bool) -> Result<Examined, PtlError> {
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
        if md.options & IOVEC != 0 {
            if md.length > u64::from(self.limits.max_md_iovecs)
                || (md.start.is_null() && md.length > 0)
            {
                return Err(PtlError::MdIllegal);
            }
            let mut copy =
                Pieces { count: md.length as usize, list: [(core::ptr::null_mut(), 0); IOVECS] };
            length = 0;
            for (i, piece) in copy.list.iter_mut().take(md.length as usize).enumerate() {
                // SAFETY: promised by the caller.
                let entry = unsafe { md.start.cast::<MdIovec>().add(i).read() };
                check_range(entry.base, entry.len)?;
                *piece = (entry.base.cast(), entry.len);
                length = add_length(length, entry.len).ok_or(PtlError::MdIllegal)?;
            }
            pieces = Some(Box::new(copy));
            kind = MemoryKind::Scattered;
        } else {
            check_range(md.start, length)?;
            kind = self.place(md.start.cast(), length).0;
        }

        // How the state word is shared out.
        let local_target = md.options & MANAGE_REMOTE == 0;
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

    /// Writes a checked descriptor into record and cell. The cell is not reachable, or its list's version is
    /// odd.
    fn write(
        &self,
        owner: &mut OwnerTables,
        index: u32,
        md: &MemoryDescriptor,
        examined: Examined,
    ) -> Result<(), PtlError> {
        let (record, cell) = (&self.mds[index as usize], self.own_cell(index));
        let iov = match &examined.pieces {
            Some(pieces) => self.write_iov(owner, pieces)?,
            None => 0,
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
        let key = examined.eq.map_or(0, |eq| {
            self.eqs[eq as usize].descriptors.fetch_add(1, relaxed);
            self.eq_key(eq)
        });
        let start = self.place(md.start.cast(), examined.length).1;
        cell.length.store(examined.length, relaxed);
        cell.max_size.store(md.max_size, relaxed);
        cell.start.store(start, relaxed);
        cell.address.store(md.start as u64, relaxed);
        cell.iov.store(iov, relaxed);
        cell.eq_key.store(key, relaxed);
        cell.traits.store(traits.0, relaxed);
        Ok(())
    }

    /// Undoes what [`NetworkInterface::write`] acquired; does nothing the second time.
    fn unwrite(&self, owner: &mut OwnerTables, index: u32) {
        let (record, cell) = (&self.mds[index as usize], self.own_cell(index));
        let pieces = record.pieces.swap(core::ptr::null_mut(), Ordering::Relaxed);
        if !pieces.is_null() {
            // SAFETY: made by `Box::into_raw` in `write`; nobody uses it: no hazard names the descriptor, or
            // the caller waited until none did.
            drop(unsafe { Box::from_raw(pieces) });
        }
        let iov = cell.iov.swap(0, Ordering::Relaxed);
        if iov != 0 {
            owner.free_iovs.push(iov);
        }
        if let Some(eq) = Traits(record.traits.load(Ordering::Relaxed)).eq() {
            self.eq_release(owner, eq);
        }
        record.traits.store(0, Ordering::Relaxed);
    }

    /// Copies the pieces of a scattered descriptor to where deliverers see them: the offset.
    fn write_iov(&self, owner: &mut OwnerTables, pieces: &Pieces) -> Result<u64, PtlError> {
        let offset = match owner.free_iovs.pop() {
            Some(offset) => offset,
            None => self
                .bump(owner, size_of::<IovTable>(), crate::arena::LINE)
                .ok_or(PtlError::NoSpace)?,
        };
        let table = self.own.view.iov(offset).ok_or(PtlError::NoSpace)?;
        table.count.store(pieces.count as u64, Ordering::Relaxed);
        for (to, &(base, length)) in table.pieces.iter().zip(&pieces.list[..pieces.count]) {
            let (kind, start) = self.place(base, length);
            to.kind.store(kind as u64, Ordering::Relaxed);
            to.start.store(start, Ordering::Relaxed);
            to.address.store(base as u64, Ordering::Relaxed);
            to.length.store(length, Ordering::Relaxed);
        }
        Ok(offset)
    }

    /// Whether peers on this host reach this memory without help of ours: the arena, or the segment that was exposed. No bytes are,
    /// wherever they begin.
    pub fn is_shared(&self, start: *mut u8, length: u64) -> bool {
        matches!(self.place(start, length).0, MemoryKind::Arena | MemoryKind::Segment)
    }

    /// Which memory this is, and where in it. No bytes are in reach of everybody, wherever they begin.
    fn place(&self, start: *mut u8, length: u64) -> (MemoryKind, u64) {
        if length == 0 {
            return (MemoryKind::Arena, 0);
        }
        let inside = |base: *mut u8, size: u64| {
            let offset = (start as usize).checked_sub(base as usize)? as u64;
            (!base.is_null() && offset.checked_add(length)? <= size).then_some(offset)
        };
        if let Some(offset) = inside(self.own.view.base().as_ptr(), self.own.view.bytes() as u64) {
            return (MemoryKind::Arena, offset);
        }
        let segment = &self.segments[self.index as usize];
        // Acquire pairs with the Release in `expose`.
        let size = segment.length.load(Ordering::Acquire);
        if let Some(offset) = inside(segment.base.load(Ordering::Relaxed), size) {
            return (MemoryKind::Segment, offset);
        }
        (MemoryKind::Private, start as u64)
    }

    #[inline(always)]
    pub(crate) fn own_cell(&self, index: u32) -> &MdCell {
        match self.own.view.md(index) {
            Some(cell) => cell,
            None => unreachable!("indices of records are indices of cells"),
        }
    }

    /// Takes an unused record.
    fn take_record(&self, owner: &mut OwnerTables) -> Result<u32, PtlError> {
        if let Some(first) = owner.resting.pop_front() {
            self.rest(owner, first, true);
        }
        if owner.free_mds.is_empty() {
            self.sweep(owner);
            for _ in 0..owner.resting.len() {
                if let Some(resting) = owner.resting.pop_front() {
                    self.rest(owner, resting, false);
                }
            }
        }
        owner.free_mds.pop().ok_or(PtlError::NoSpace)
    }

    /// Frees a record if it has rested, else lets it rest on.
    fn rest(&self, owner: &mut OwnerTables, mut resting: Resting, first: bool) {
        if self.rested(&mut resting) {
            self.unwrite(owner, resting.index);
            owner.free_mds.push(resting.index);
        } else if first {
            owner.resting.push_front(resting);
        } else {
            owner.resting.push_back(resting);
        }
    }

    /// Whether nobody will mention this former descriptor any more.
    fn rested(&self, resting: &mut Resting) -> bool {
        if resting.hazards {
            if self.holder(resting.index, true).is_some() {
                return false;
            }
            // Only now have all of its events been posted.
            resting.hazards = false;
            resting.events = self.last_events(resting.index);
        }
        match resting.events {
            Some((eq, ticket)) => self.eq_passed(eq, ticket),
            None => true,
        }
    }

    /// The queue of a former descriptor that nobody uses, and the first ticket that cannot be one of its
    /// events.
    fn last_events(&self, index: u32) -> Option<(EqHandle, u64)> {
        let eq = EqHandle(self.mds[index as usize].eq.load(Ordering::Relaxed));
        self.eq_index(eq).ok().map(|i| (eq, self.eq_tail(i)))
    }

    /// Puts a record to rest. The descriptor is out of reach for new messages.
    fn retire(&self, owner: &mut OwnerTables, index: u32, hazards: bool) {
        let record = &self.mds[index as usize];
        let control = record.control.load(Ordering::Relaxed);
        // SeqCst: our own threads look at it after they have published their hazard, we look at the hazards
        // next.
        record.control.swap(control & !control::PHASE | control::FREE, Ordering::SeqCst);
        let events = if hazards { None } else { self.last_events(index) };
        if !hazards {
            self.unwrite(owner, index);
        }
        self.rest(owner, Resting { index, events, hazards }, false);
    }

    /// Makes a record live.
    fn publish(&self, index: u32, state: u64) -> MdHandle {
        let (record, cell) = (&self.mds[index as usize], self.own_cell(index));
        let generation =
            control::generation(record.control.load(Ordering::Relaxed)).wrapping_add(1) & 0xffff;
        cell.generation.store(generation, Ordering::Relaxed);
        cell.state.0.store(state, Ordering::Relaxed);
        record.pending.store(0, Ordering::Relaxed);
        record.control.store(generation << 16 | control::LIVE, Ordering::Release);
        MdHandle(generation << 16 | index)
    }

    /// Takes a record, writes a checked descriptor into it and makes it live, attached to nothing.
    fn create(
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
            owner.free_mds.push(index);
            return Err(error);
        }
        self.mds[index as usize].me.store(me, Ordering::Relaxed);
        self.mds[index as usize].unlink.store(unlink == Unlink::Unlink, Ordering::Relaxed);
        Ok(self.publish(index, state))
    }

    /// `PtlMDBind`
    ///
    /// # Safety
    /// As for [`NetworkInterface::md_attach`].
    pub unsafe fn md_bind(
        &self,
        md: &MemoryDescriptor,
        unlink: Unlink,
    ) -> Result<MdHandle, PtlError> {
        let owner = &mut *self.owner.lock();
        // SAFETY: promised by the caller.
        let examined = unsafe { self.examine(md, unlink == Unlink::Unlink)? };
        self.create(owner, md, examined, 0, unlink)
    }

    /// `PtlMDAttach`
    ///
    /// # Safety
    /// The memory that `md` tells of must stay readable and writable until the descriptor is gone: unlinked,
    /// or its UNLINK event read.
    pub unsafe fn md_attach(
        &self,
        me: MeHandle,
        md: &MemoryDescriptor,
        unlink: Unlink,
    ) -> Result<MdHandle, PtlError> {
        let owner = &mut *self.owner.lock();
        // SAFETY: promised by the caller.
        let examined = unsafe { self.examine(md, unlink == Unlink::Unlink)? };
        let me_index = self.me_lookup(owner, me)?;
        if owner.mes[me_index as usize].md.is_some() {
            return Err(PtlError::MeInUse);
        }
        let handle = self.create(owner, md, examined, me_index + 1, unlink)?;
        self.me_set_md(owner, me_index, handle.0 & 0xffff);
        Ok(handle)
    }

    /// A process with an operation that is using one of our descriptors; `anywhere` also looks at peers.
    fn holder(&self, index: u32, anywhere: bool) -> Option<u32> {
        let own = &self.own.view.header().hazards;
        if hazard::names(own, |word| word.names(self.index, index)) {
            return Some(self.index);
        }
        let mut peers = self.peer_headers().filter(|_| anywhere);
        let holds = |header: &ArenaHeader| {
            hazard::names(&header.hazards, |word| word.names_target(self.index, index))
        };
        peers.find(|(_, header)| holds(header)).map(|(peer, _)| peer)
    }

    /// Whether an operation is using a descriptor of ours that logs to this queue.
    fn eq_about_to_fill(&self, eq: u32) -> bool {
        self.eq_named(eq)
            // Acquire pairs with the Release in `transfer_end`. After the hazards: a transfer is begun and
            // ended under one.
            || self.eqs[eq as usize].transfers.load(Ordering::Acquire) != 0
    }

    fn eq_named(&self, eq: u32) -> bool {
        let logs = |md: u32| {
            let record = self.mds.get(md as usize);
            record.is_some_and(|r| Traits(r.traits.load(Ordering::Relaxed)).eq() == Some(eq))
        };
        let own = &self.own.view.header().hazards;
        hazard::names(own, |word| {
            word.near_mds().into_iter().chain(word.target_md(self.index)).any(logs)
        }) || self.peer_headers().any(|(_, header)| {
            hazard::names(&header.hazards, |word| word.target_md(self.index).is_some_and(logs))
        })
    }

    /// Waits a moment for operations on a descriptor to end. True if some have not.
    pub(crate) fn busy(&self, index: u32, attached: bool) -> bool {
        for round in 0..64 {
            if self.holder(index, attached).is_none()
                // Acquire pairs with the Release in `transfer_end`.
                && self.mds[index as usize].pending.load(Ordering::Acquire) == 0
            {
                return false;
            }
            sys::thread::relax(round);
        }
        self.found_busy.store(index + 1, Ordering::Relaxed);
        true
    }

    /// The peer that is using the descriptor that was last found to be in use, if it still does.
    pub(crate) fn descriptor_blocked_by(&self) -> Option<u32> {
        let index = self.found_busy.load(Ordering::Relaxed).checked_sub(1)?;
        self.holder(index, true).filter(|&peer| peer != self.index)
    }

    /// Waits until no hazard names a descriptor. False if that takes too long: whoever it is, is stopped or
    /// dead.
    fn let_go(&self, index: u32, attached: bool) -> bool {
        let start = sys::clock::now_ns();
        let mut round = 0;
        while self.holder(index, attached).is_some() {
            round += 1;
            sys::thread::relax(round);
            if round % 64 == 0 && sys::clock::now_ns().saturating_sub(start) > LET_GO_NS {
                self.found_busy.store(index + 1, Ordering::Relaxed);
                return false;
            }
        }
        true
    }

    /// `PtlMDUnlink`
    pub fn md_unlink(&self, md: MdHandle) -> Result<(), PtlError> {
        let owner = &mut *self.owner.lock();
        let local = self.local(md)?;
        if self.unlinked_itself(&local) {
            self.reap(owner, local.index);
            return Err(PtlError::MdInvalid);
        }
        self.take_away(owner, &local, false)
    }

    /// Unlinks a descriptor unless it is in use; `with_me`: its match entry is on the way out as well. With
    /// `PTL_MD_INVALID` it is gone too: it unlinked itself, and said so.
    pub(crate) fn take_away(
        &self,
        owner: &mut OwnerTables,
        local: &LocalMd<'_>,
        with_me: bool,
    ) -> Result<(), PtlError> {
        let me = local.record.me.load(Ordering::Relaxed).checked_sub(1);
        // Deliverers look at the version after they have published their hazard, our own threads at
        // `control`.
        let change = me.map(|me| self.pt_begin_change(owner.mes[me as usize].pt));
        local
            .record
            .control
            .swap(local.control & !control::PHASE | control::CLOSING, Ordering::SeqCst);
        crate::fault::point("unlink.closing");
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

    /// Whether a delivery made it unlink itself.
    pub(crate) fn unlinked_itself(&self, local: &LocalMd<'_>) -> bool {
        local.traits().unlinks()
            && local.cell.state.0.load(Ordering::Acquire) & state::UNLINKED != 0
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

    /// [`NetworkInterface::reap`] by generation, when the UNLINK event has been read.
    pub(crate) fn reap_handle(&self, md: MdHandle) {
        let owner = &mut *self.owner.lock();
        if let Ok(local) = self.local(md)
            && self.unlinked_itself(&local)
        {
            self.reap(owner, local.index);
        }
    }

    /// Removes all descriptors that have unlinked themselves, even if their UNLINK was not read yet, or was
    /// lost.
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

    /// `PtlMDUpdate`: tells the present state in `old`; then, if nothing is unread in `test_eq` nor about to
    /// be posted to it, replaces it by `new`. With [`EqHandle::NONE`] it does so in any case, but waits for
    /// operations that are moving bytes; if one of them does not end within a second, since its initiator is
    /// stopped or dead, the answer is `PTL_MD_NO_UPDATE`.
    ///
    /// # Safety
    /// As for [`NetworkInterface::md_attach`]; with [`EqHandle::NONE`], the old memory must stay valid until
    /// operations that had begun are complete.
    pub unsafe fn md_update(
        &self,
        md: MdHandle,
        old: Option<&mut MemoryDescriptor>,
        new: Option<&MemoryDescriptor>,
        test_eq: EqHandle,
    ) -> Result<(), PtlError> {
        let owner = &mut *self.owner.lock();
        let local = self.local(md)?;
        if self.unlinked_itself(&local) {
            return Err(PtlError::MdInvalid);
        }
        let tested = match test_eq {
            EqHandle::NONE => None,
            eq => Some(self.eq_index(eq)?),
        };
        let examined = match new {
            // SAFETY: promised by the caller.
            Some(new) => {
                Some(unsafe { self.examine(new, local.record.unlink.load(Ordering::Relaxed))? })
            }
            None => None,
        };
        let me = local.record.me.load(Ordering::Relaxed).checked_sub(1);
        let change = match (&examined, me) {
            (Some(_), Some(me)) => Some(self.pt_begin_change(owner.mes[me as usize].pt)),
            _ => None,
        };
        if examined.is_some() {
            local
                .record
                .control
                .swap(local.control & !control::PHASE | control::CLOSING, Ordering::SeqCst);
        }
        // From here on no new operation gets hold of the descriptor, if it is to be changed.
        let free = match (tested, &examined) {
            (Some(eq), Some(_)) => {
                // First the hazards, then the queue: what let go of its hazard has posted its events.
                !self.busy(local.index, me.is_some())
                    && !self.eq_about_to_fill(eq)
                    && self.eq_is_empty(eq)
            }
            // Operations that are moving bytes right now are waited for: they rely on what they have read.
            // What moves in frames has its own copy.
            (None, Some(_)) => self.let_go(local.index, me.is_some()),
            (_, None) => true,
        };
        if let Some(old) = old {
            let state = local.cell.state.0.load(Ordering::Acquire);
            *old = self.snapshot(local.record, threshold_of(local.traits(), state));
        }
        let result = match (new, examined) {
            // A delivery that has just ended may have been its last.
            (Some(_), Some(_)) if self.unlinked_itself(&local) => Err(PtlError::MdInvalid),
            (Some(new), Some(examined)) if free => self.replace(owner, &local, new, examined),
            (Some(_), Some(_)) => Err(PtlError::MdNoUpdate),
            _ => return Ok(()),
        };
        let control = if result.is_ok() { control::updated(local.control) } else { local.control };
        local.record.control.store(control & !control::PHASE | control::LIVE, Ordering::Release);
        if let Some(change) = change {
            self.pt_end_change(change);
        }
        result
    }

    /// The second half of an update: nobody new can get at the descriptor.
    fn replace(
        &self,
        owner: &mut OwnerTables,
        local: &LocalMd<'_>,
        new: &MemoryDescriptor,
        examined: Examined,
    ) -> Result<(), PtlError> {
        let record = local.record;
        let old_eq = local.traits().eq();
        let old_pieces = record.pieces.load(Ordering::Relaxed);
        let old_iov = local.cell.iov.load(Ordering::Relaxed);
        let fresh = examined.state;
        self.write(owner, local.index, new, examined)?;
        // What moves in frames goes on using the old pieces and the old queue: these stay until the interface
        // is closed.
        let in_use = record.pending.load(Ordering::Acquire) != 0;
        if let Some(eq) = old_eq
            && !in_use
        {
            self.eq_release(owner, eq);
        }
        if !old_pieces.is_null() {
            if in_use {
                owner.old_pieces.push(OldPieces(old_pieces));
            } else {
                // SAFETY: made by `Box::into_raw` in `write`, replaced just now, and used by nobody.
                drop(unsafe { Box::from_raw(old_pieces) });
            }
        }
        if old_iov != 0 && !in_use {
            owner.free_iovs.push(old_iov);
        }
        let mut now = local.cell.state.0.load(Ordering::Relaxed);
        // Those in flight stay counted: each will still give its claim back.
        while let Err(other) = local.cell.state.0.compare_exchange_weak(
            now,
            fresh | now & state::FLIGHTS,
            Ordering::AcqRel,
            Ordering::Relaxed,
        ) {
            now = other;
        }
        Ok(())
    }
}

/// How long an unconditional update waits for operations that are moving bytes.
const LET_GO_NS: u64 = 1_000_000_000;

/// Every option there is.
const ALL_OPTIONS: u32 = OP_PUT
    | OP_GET
    | MANAGE_REMOTE
    | TRUNCATE
    | ACK_DISABLE
    | IOVEC
    | MAX_SIZE
    | EVENT_START_DISABLE
    | EVENT_END_DISABLE;

/// What [`NetworkInterface::examine`] found.
struct Examined {
    traits: Traits,
    /// Bytes.
    length: u64,
    /// First state word.
    state: u64,
    pieces: Option<Box<Pieces>>,
    eq: Option<u32>,
}

/// Lengths stay below 2^62, so that sums of an offset and a length never wrap.
fn add_length(sum: u64, length: u64) -> Option<u64> {
    sum.checked_add(length).filter(|&sum| sum < 1 << 62)
}

/// Refuses memory at nowhere, and memory beyond the end of the address space.
fn check_range(start: *mut c_void, length: u64) -> Result<(), PtlError> {
    let wraps = length >= 1 << 62 || (start as usize).checked_add(length as usize).is_none();
    if wraps || (start.is_null() && length > 0) { Err(PtlError::MdIllegal) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Between the two steps of whoever gives the last claim back, an update may revive the descriptor.
    #[test]
    fn who_was_last_unlinks_only_what_is_still_through() {
        let ni = NetworkInterface::loopback(None).unwrap();
        let state = &ni.own_cell(0).state.0;
        let through = state::INACTIVE;
        for (now, unlinks) in [
            (through, true),
            (through | state::UNLINKED, false),
            (through | state::FLIGHT, false),
            (5, false),
        ] {
            state.store(now, Ordering::Relaxed);
            assert_eq!(gave_back_last(ni.own_cell(0), true), unlinks);
            let after = if unlinks { now | state::UNLINKED } else { now };
            assert_eq!(state.load(Ordering::Relaxed), after);
        }
    }
}
