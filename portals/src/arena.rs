//! The memory that the processes of a host share: one arena per process, everything in it at an offset.
//!
//! Owned by the process whose arena it is; read and partly written by every process that delivers to it. This
//! file fixes the layout and nothing else; each object's own file says how its words are used.
//!
//! # Who writes what
//!
//! | words | written by | read by |
//! |---|---|---|
//! | [`Ident`], [`MeCell`], [`MdCell`] but its state, [`PtEntry`], [`AcEntry`], [`EqCell::shape`] | the owner | everybody |
//! | [`MdCell::state`] | the owner and deliverers, by compare-and-swap | everybody |
//! | [`EqCell::head`] | the owner, when it consumes | producers, when their cached copy says "full" |
//! | [`EqCell::losses`] | producers that found no room | the owner |
//! | [`EventSlot`] | producers | the owner, when it consumes |
//! | [`Hazards`] | the owner (as an initiator) | everybody who takes a descriptor away |
//! | [`ArenaHeader::drops`], [`ArenaHeader::doorbell`], [`ArenaHeader::swap_lock`] | deliverers and the owner | everybody |
//!
//! Invariant: nothing that a peer wrote is used as a pointer or as an unchecked index. A [`ArenaView`] computes
//! every address from a base that the NAL gave and from limits that were checked once to fit the arena;
//! whatever offset is then read from shared memory is checked against the arena's or the segment's length
//! before use.

use core::mem::{align_of, offset_of, size_of};
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::types::*;

/// Bytes of a cache line: the unit of every shared structure here.
pub(crate) const LINE: usize = 64;
/// Hazard slots per process.
pub(crate) const HAZARDS: usize = 64;
/// Pieces of a scattered descriptor, at most.
pub(crate) const IOVECS: usize = 16;
/// Processes of a fabric, at most: what a hazard word has room for.
pub(crate) const PROCESSES: u32 = 0x7fff;

/// First word of an arena whose interface is open ("portals3", first byte lowest).
pub(crate) const MAGIC: u64 = u64::from_le_bytes(*b"portals3");

/// Who an arena belongs to and how it is cut up. Written before `magic` (Release), never changed.
#[repr(C, align(64))]
#[derive(Debug)]
pub(crate) struct Ident {
    pub(crate) magic: AtomicU64,
    /// Where the owner has this arena mapped; only ever used as an argument of cross-memory attach.
    pub(crate) own_base: AtomicU64,
    /// Process id of the operating system.
    pub(crate) os_pid: AtomicU32,
    pub(crate) max_mes: AtomicU32,
    pub(crate) max_mds: AtomicU32,
    pub(crate) max_eqs: AtomicU32,
    pub(crate) max_ac_index: AtomicU32,
    pub(crate) max_pt_index: AtomicU32,
}

/// A word alone in its line.
#[repr(C, align(64))]
#[derive(Debug)]
pub(crate) struct OwnLine<T>(pub(crate) T);

/// Words that say which descriptors a process is using; see [`crate::hazard`].
#[repr(C)]
#[derive(Debug)]
pub(crate) struct Hazards {
    /// Bit i is set before slot i is used for the first time.
    pub(crate) used: OwnLine<AtomicU64>,
    pub(crate) slots: [OwnLine<AtomicU64>; HAZARDS],
}

/// The start of an arena; its place does not depend on limits.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct ArenaHeader {
    pub(crate) ident: Ident,
    /// `PTL_SR_DROP_COUNT`.
    pub(crate) drops: OwnLine<AtomicU64>,
    /// See [`crate::doorbell`].
    pub(crate) doorbell: OwnLine<AtomicU32>,
    /// Who is swapping for a get-put: 0, or index + 1.
    pub(crate) swap_lock: OwnLine<AtomicU32>,
    pub(crate) hazards: Hazards,
}

/// A portal table entry: a list of match entries.
#[repr(C, align(64))]
#[derive(Debug)]
pub(crate) struct PtEntry {
    /// Odd while the owner changes the list or a descriptor on it.
    pub(crate) version: AtomicU64,
    /// Index + 1 of the first match entry, or 0.
    pub(crate) head: AtomicU32,
}

/// An access control entry.
#[repr(C, align(64))]
#[derive(Debug)]
pub(crate) struct AcEntry {
    /// Odd while the owner changes the entry.
    pub(crate) version: AtomicU64,
    /// nid << 32 | pid.
    pub(crate) process: AtomicU64,
    /// uid << 32 | jid.
    pub(crate) ids: AtomicU64,
    pub(crate) pt_index: AtomicU32,
    /// 0: admits nobody.
    pub(crate) valid: AtomicU32,
}

/// A match entry.
#[repr(C, align(64))]
#[derive(Debug)]
pub(crate) struct MeCell {
    pub(crate) match_bits: AtomicU64,
    pub(crate) ignore_bits: AtomicU64,
    /// nid << 32 | pid.
    pub(crate) match_id: AtomicU64,
    /// Index + 1 of the next entry, or 0.
    pub(crate) next: AtomicU32,
    /// Index + 1 of the descriptor, or 0.
    pub(crate) md: AtomicU32,
}

/// A memory descriptor: one line that only the owner writes, one for the state that deliveries change.
#[repr(C, align(64))]
#[derive(Debug)]
pub(crate) struct MdCell {
    /// See [`crate::md::Traits`].
    pub(crate) traits: AtomicU64,
    /// Bytes.
    pub(crate) length: AtomicU64,
    pub(crate) max_size: AtomicU64,
    /// Offset in the arena or in the segment.
    pub(crate) start: AtomicU64,
    /// Address in the owner's address space; only ever used as an argument of cross-memory attach.
    pub(crate) address: AtomicU64,
    /// Offset of its [`IovTable`], or 0.
    pub(crate) iov: AtomicU64,
    /// Names the event queue's ring beyond reuse of its index; 0 if there is no queue.
    pub(crate) eq_key: AtomicU64,
    pub(crate) generation: AtomicU32,
    /// See [`crate::md::state`].
    pub(crate) state: OwnLine<AtomicU64>,
}

/// The pieces of a scattered descriptor.
#[repr(C, align(64))]
#[derive(Debug)]
pub(crate) struct IovTable {
    pub(crate) count: AtomicU64,
    pub(crate) pieces: [IovPiece; IOVECS],
}

/// One piece: see the words of the same names in [`MdCell`].
#[repr(C)]
#[derive(Debug)]
pub(crate) struct IovPiece {
    pub(crate) kind: AtomicU64,
    pub(crate) start: AtomicU64,
    pub(crate) address: AtomicU64,
    pub(crate) length: AtomicU64,
}

/// Where a queue's ring lies.
#[repr(C, align(64))]
#[derive(Debug)]
pub(crate) struct EqShape {
    /// Equal to [`MdCell::eq_key`] of its descriptors.
    pub(crate) key: AtomicU64,
    /// Offset of the first slot.
    pub(crate) ring: AtomicU64,
    /// Slots, a power of two.
    pub(crate) size: AtomicU64,
}

/// Producers' bad luck.
#[repr(C, align(64))]
#[derive(Debug)]
pub(crate) struct EqLosses {
    /// Events lost so far.
    pub(crate) count: AtomicU64,
    /// The ticket that the last of them would have had.
    pub(crate) last: AtomicU64,
}

/// An event queue.
#[repr(C)]
#[derive(Debug)]
pub(crate) struct EqCell {
    pub(crate) shape: EqShape,
    /// Ticket of the next event to be consumed.
    pub(crate) head: OwnLine<AtomicU64>,
    pub(crate) losses: EqLosses,
}

/// An event; see [`crate::eq`].
#[repr(C, align(64))]
#[derive(Debug)]
pub(crate) struct EventSlot {
    pub(crate) control: AtomicU64,
    pub(crate) what: AtomicU64,
    pub(crate) match_bits: AtomicU64,
    pub(crate) hdr_data: AtomicU64,
    pub(crate) rlength: AtomicU64,
    pub(crate) mlength: AtomicU64,
    pub(crate) offset: AtomicU64,
    /// link << 32 | threshold.
    pub(crate) link: AtomicU64,
}

impl EventSlot {
    /// The words in which bytes travel that are in the event itself.
    #[inline(always)]
    pub(crate) fn inline(&self) -> InlineWords {
        [&self.rlength, &self.mlength, &self.offset, &self.link]
            .map(|word| word.load(Ordering::Relaxed))
    }
}

const _: () = {
    assert!(size_of::<Ident>() == LINE);
    assert!(size_of::<OwnLine<AtomicU64>>() == LINE);
    assert!(size_of::<PtEntry>() == LINE);
    assert!(size_of::<AcEntry>() == LINE);
    assert!(size_of::<MeCell>() == LINE);
    assert!(size_of::<MdCell>() == 2 * LINE);
    assert!(offset_of!(MdCell, state) == LINE);
    assert!(size_of::<EqCell>() == 3 * LINE);
    assert!(size_of::<EventSlot>() == LINE);
    assert!(size_of::<ArenaHeader>().is_multiple_of(LINE));
    assert!(align_of::<ArenaHeader>() == LINE);
};

/// Offsets of the tables, from the limits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ArenaLayout {
    pt: usize,
    ac: usize,
    me: usize,
    md: usize,
    eq: usize,
    /// First byte after the tables.
    pub(crate) end: usize,
}

impl ArenaLayout {
    /// The limits' upper bounds are those of [`granted`], so that nothing overflows.
    pub(crate) fn new(limits: &NiLimits) -> ArenaLayout {
        let pt = size_of::<ArenaHeader>();
        let ac = pt + (limits.max_pt_index as usize + 1) * size_of::<PtEntry>();
        let me = ac + (limits.max_ac_index as usize + 1) * size_of::<AcEntry>();
        let md = me + limits.max_mes as usize * size_of::<MeCell>();
        let eq = md + limits.max_mds as usize * size_of::<MdCell>();
        let end = eq + limits.max_eqs as usize * size_of::<EqCell>();
        ArenaLayout { pt, ac, me, md, eq, end }
    }
}

/// What is granted of wished limits: no more than indices in shared words have room for.
pub(crate) fn granted(wished: &NiLimits) -> NiLimits {
    NiLimits {
        max_mes: wished.max_mes.clamp(1, 0xfffe),
        max_mds: wished.max_mds.clamp(1, 0xfffe),
        max_eqs: wished.max_eqs.clamp(1, 0xfffe),
        max_ac_index: wished.max_ac_index.min(255),
        max_pt_index: wished.max_pt_index.min(255),
        max_md_iovecs: wished.max_md_iovecs.min(IOVECS as u32),
        max_me_list: wished.max_me_list.clamp(1, 0xfffe),
        max_getput_md: wished.max_getput_md.min(64),
    }
}

/// An arena of ours or of a peer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ArenaView {
    base: NonNull<u8>,
    bytes: usize,
    tables_end: usize,
    // First elements of the tables.
    pt: NonNull<PtEntry>,
    ac: NonNull<AcEntry>,
    me: NonNull<MeCell>,
    md: NonNull<MdCell>,
    eq: NonNull<EqCell>,
    pub(crate) max_mes: u32,
    pub(crate) max_mds: u32,
    pub(crate) max_eqs: u32,
    pub(crate) max_ac_index: u32,
    pub(crate) max_pt_index: u32,
}

impl ArenaView {
    /// Cuts up an arena. `None` if the tables do not fit.
    ///
    /// # Safety
    /// `base` is page-aligned, and `bytes` bytes from it are mapped, were zeroed in the beginning, and stay
    /// mapped as long as the view or a copy of it is used; everybody who writes them follows this file.
    pub(crate) unsafe fn new(
        base: NonNull<u8>,
        bytes: usize,
        limits: &NiLimits,
    ) -> Option<ArenaView> {
        let limits = granted(limits);
        let layout = ArenaLayout::new(&limits);
        if layout.end > bytes {
            return None;
        }
        // SAFETY: inside the arena, as just checked.
        let at = |offset| unsafe { base.add(offset) };
        Some(ArenaView {
            base,
            bytes,
            tables_end: layout.end,
            pt: at(layout.pt).cast(),
            ac: at(layout.ac).cast(),
            me: at(layout.me).cast(),
            md: at(layout.md).cast(),
            eq: at(layout.eq).cast(),
            max_mes: limits.max_mes,
            max_mds: limits.max_mds,
            max_eqs: limits.max_eqs,
            max_ac_index: limits.max_ac_index,
            max_pt_index: limits.max_pt_index,
        })
    }

    /// The arena of a peer, cut up as its owner says. `None` if its interface is not open yet or what it says
    /// does not fit.
    ///
    /// # Safety
    /// As for [`ArenaView::new`].
    pub(crate) unsafe fn of_peer(base: NonNull<u8>, bytes: usize) -> Option<ArenaView> {
        // SAFETY: the header's place does not depend on limits, and an arena is never shorter than a header
        // (checked by `NetworkInterface::with_nal`).
        let ident = unsafe { &base.cast::<ArenaHeader>().as_ref().ident };
        // Acquire pairs with the Release in `NetworkInterface::with_nal`: the limits are there.
        if ident.magic.load(Ordering::Acquire) != MAGIC {
            return None;
        }
        let limits = NiLimits {
            max_mes: ident.max_mes.load(Ordering::Relaxed),
            max_mds: ident.max_mds.load(Ordering::Relaxed),
            max_eqs: ident.max_eqs.load(Ordering::Relaxed),
            max_ac_index: ident.max_ac_index.load(Ordering::Relaxed),
            max_pt_index: ident.max_pt_index.load(Ordering::Relaxed),
            ..NiLimits::DEFAULT
        };
        // SAFETY: promised by the caller.
        unsafe { ArenaView::new(base, bytes, &limits) }
    }

    pub(crate) fn base(&self) -> NonNull<u8> {
        self.base
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// First byte after the tables.
    pub(crate) fn tables_end(&self) -> usize {
        self.tables_end
    }

    /// A structure inside of the arena. `offset` was checked by the caller.
    #[inline(always)]
    fn at<T>(&self, offset: usize) -> &T {
        debug_assert!(
            offset + size_of::<T>() <= self.bytes && offset.is_multiple_of(align_of::<T>())
        );
        // SAFETY: the callers below pass offsets inside the arena (tables: index checked against the limit
        // from which the layout was computed; others: checked against `bytes`), aligned to `T`; all `T`
        // consist of atomics, for which any bit pattern is valid and which may be shared with other
        // processes.
        unsafe { &*self.base.as_ptr().add(offset).cast::<T>() }
    }

    #[inline(always)]
    pub(crate) fn header(&self) -> &ArenaHeader {
        self.at(0)
    }

    #[inline(always)]
    pub(crate) fn pt(&self, index: u32) -> Option<&PtEntry> {
        // SAFETY: inside the table, which lies inside the arena and consists of atomics.
        (index <= self.max_pt_index).then(|| unsafe { self.pt.add(index as usize).as_ref() })
    }

    #[inline(always)]
    pub(crate) fn ac(&self, index: u32) -> Option<&AcEntry> {
        // SAFETY: inside the table, which lies inside the arena and consists of atomics.
        (index <= self.max_ac_index).then(|| unsafe { self.ac.add(index as usize).as_ref() })
    }

    #[inline(always)]
    pub(crate) fn me(&self, index: u32) -> Option<&MeCell> {
        // SAFETY: inside the table, which lies inside the arena and consists of atomics.
        (index < self.max_mes).then(|| unsafe { self.me.add(index as usize).as_ref() })
    }

    #[inline(always)]
    pub(crate) fn md(&self, index: u32) -> Option<&MdCell> {
        // SAFETY: inside the table, which lies inside the arena and consists of atomics.
        (index < self.max_mds).then(|| unsafe { self.md.add(index as usize).as_ref() })
    }

    #[inline(always)]
    pub(crate) fn eq(&self, index: u32) -> Option<&EqCell> {
        // SAFETY: inside the table, which lies inside the arena and consists of atomics.
        (index < self.max_eqs).then(|| unsafe { self.eq.add(index as usize).as_ref() })
    }

    /// The table of a scattered descriptor, at an offset that may come from a peer.
    pub(crate) fn iov(&self, offset: u64) -> Option<&IovTable> {
        let fits = self.range(offset, size_of::<IovTable>() as u64).is_some();
        (fits && offset.is_multiple_of(LINE as u64)).then(|| self.at(offset as usize))
    }

    /// The first of `size` slots of a ring, at an offset that may come from a peer.
    pub(crate) fn ring(&self, offset: u64, size: u64) -> Option<NonNull<EventSlot>> {
        if !size.is_power_of_two() || !offset.is_multiple_of(LINE as u64) {
            return None;
        }
        Some(self.range(offset, size.checked_mul(size_of::<EventSlot>() as u64)?)?.cast())
    }

    /// `length` bytes at `offset`, if they lie inside the arena.
    #[inline(always)]
    pub(crate) fn range(&self, offset: u64, length: u64) -> Option<NonNull<u8>> {
        if offset.checked_add(length)? > self.bytes as u64 {
            return None;
        }
        // SAFETY: inside the arena, as just checked.
        Some(unsafe { self.base.add(offset as usize) })
    }
}

/// Both halves of a process id in one word.
#[inline(always)]
pub(crate) fn pack_id(id: PtlProcessId) -> u64 {
    u64::from(id.nid) << 32 | u64::from(id.pid)
}
