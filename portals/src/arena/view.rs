//! Where the structures of an arena are: the layout from the limits, and the view of one mapped
//! arena.
//!
//! Used by everything that touches an arena. Invariant: an [`ArenaView`] computes every address
//! from a base that the NAL gave and from limits that were checked once to fit. An offset that
//! was read from shared memory is checked against the arena's length before use.

use core::mem::{align_of, size_of};
use core::ptr::NonNull;
use core::sync::atomic::Ordering;

use super::cells::*;
use crate::types::*;
use sys::peer::Peer;

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
    /// `limits` are within the bounds of [`granted`], so nothing overflows.
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

/// The limits that are granted for the wanted ones: indices in shared words are 16 bits wide.
pub(crate) fn granted(wanted: &NiLimits) -> NiLimits {
    NiLimits {
        max_mes: wanted.max_mes.clamp(1, 0xfffe),
        max_mds: wanted.max_mds.clamp(1, 0xfffe),
        max_eqs: wanted.max_eqs.clamp(1, 0xfffe),
        max_ac_index: wanted.max_ac_index.min(255),
        max_pt_index: wanted.max_pt_index.min(255),
        max_md_iovecs: wanted.max_md_iovecs.min(IOVECS as u32),
        max_me_list: wanted.max_me_list.clamp(1, 0xfffe),
        max_getput_md: wanted.max_getput_md.min(64),
    }
}

/// A mapped arena: our own or a peer's.
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
    /// Lays an arena out. `None` if the tables do not fit.
    ///
    /// # Safety
    /// `base` is page-aligned. `bytes` bytes from it are mapped and were zeroed when the arena
    /// was made. They stay mapped as long as the view or a copy of it is used. Every process
    /// that writes them uses the structures of this module.
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

    /// The arena of a peer, with the layout that its owner wrote. `None` if the peer's interface
    /// is not open, or the layout does not fit.
    ///
    /// # Safety
    /// As for [`ArenaView::new`].
    pub(crate) unsafe fn of_peer(base: NonNull<u8>, bytes: usize) -> Option<ArenaView> {
        // SAFETY: the header is at offset 0 whatever the limits are, and an arena is never
        // shorter than a header (checked by `NetworkInterface::with_nal`).
        let ident = unsafe { &base.cast::<ArenaHeader>().as_ref().ident };
        // Acquire pairs with the Release in `NetworkInterface::open`: the limits have been
        // written.
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
        // SAFETY: `# Safety` of this function requires of `base` and `bytes` what `new` requires.
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

    /// A structure inside the arena. The caller has checked `offset`.
    #[inline(always)]
    fn at<T>(&self, offset: usize) -> &T {
        debug_assert!(
            offset + size_of::<T>() <= self.bytes && offset.is_multiple_of(align_of::<T>())
        );
        // SAFETY: the callers below pass offsets inside the arena, aligned to `T`. For tables,
        // the index was checked against the limit from which the layout was computed; other
        // offsets were checked against `bytes`. All `T` consist of atomics, for which any bit
        // pattern is valid and which may be shared with other processes.
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

    /// The table of a scattered descriptor.
    pub(crate) fn iov(&self, offset: Peer<u64>) -> Option<&IovTable> {
        let range = offset.range(Peer::new(size_of::<IovTable>()), self.bytes)?;
        range.start.is_multiple_of(LINE).then(|| self.at(range.start))
    }

    /// A ring of `size` slots: the first slot, and the size, which is a power of two.
    pub(crate) fn ring(
        &self,
        offset: Peer<u64>,
        size: Peer<u64>,
    ) -> Option<(NonNull<EventSlot>, u64)> {
        let size = size.decode(|size| size.is_power_of_two().then_some(size))?;
        let bytes = size.checked_mul(size_of::<EventSlot>() as u64)?;
        let range = offset.range(Peer::new(bytes), self.bytes)?;
        if !range.start.is_multiple_of(LINE) {
            return None;
        }
        // SAFETY: inside the arena, as just checked.
        Some((unsafe { self.base.add(range.start) }.cast(), size))
    }

    /// The first of `length` bytes at `offset`, if all of them lie inside the arena.
    #[inline(always)]
    pub(crate) fn range(&self, offset: Peer<u64>, length: Peer<u64>) -> Option<NonNull<u8>> {
        let range = offset.range(length, self.bytes)?;
        // SAFETY: inside the arena, as just checked.
        Some(unsafe { self.base.add(range.start) })
    }
}

/// A process id in one word: nid << 32 | pid.
#[inline(always)]
pub(crate) fn pack_id(id: PtlProcessId) -> u64 {
    u64::from(id.nid) << 32 | u64::from(id.pid)
}
