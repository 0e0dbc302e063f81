//! The properties of a descriptor that decide a delivery, packed into one word.
//!
//! Written by the owner when the descriptor is made or updated, read by every deliverer.
//! Invariant: the accessors give sane values for any bits, since the word travels through shared
//! memory.

use crate::types::md_options::*;

/// The kind of memory of a descriptor or of a piece.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MemoryKind {
    /// In the owner's arena.
    Arena = 0,
    /// In the owner's exposed segment.
    Segment = 1,
    /// Any other memory of the owner.
    Private = 2,
    /// In the pieces of an [`IovTable`](crate::arena::IovTable).
    Scattered = 3,
    /// The address space of the owner, in which pages may be missing: the kernel checks every
    /// access.
    AddressSpace = 4,
}

impl MemoryKind {
    pub(crate) fn from_bits(bits: u64) -> MemoryKind {
        match bits & 0xff {
            0 => MemoryKind::Arena,
            1 => MemoryKind::Segment,
            3 => MemoryKind::Scattered,
            4 => MemoryKind::AddressSpace,
            _ => MemoryKind::Private,
        }
    }
}

/// The properties of a descriptor, packed into one word:
/// - 0-15: options
/// - 16-31: event queue index + 1
/// - 32-39: [`MemoryKind`]
/// - 40-47: bits of the cursor
/// - 48-55: bits of the threshold
/// - 56-57: flags
#[derive(Clone, Copy, Debug)]
pub(crate) struct Traits(pub(crate) u64);

impl Traits {
    pub(crate) const COUNTS: u64 = 1 << 56;
    pub(crate) const UNLINKS: u64 = 1 << 57;

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
    /// Whether it has a state word.
    #[inline(always)]
    pub(crate) fn counts(self) -> bool {
        self.0 & Self::COUNTS != 0
    }
    /// Whether it unlinks itself when it becomes inactive; if so, operations in flight are
    /// counted.
    #[inline(always)]
    pub(crate) fn unlinks(self) -> bool {
        self.0 & Self::UNLINKS != 0
    }
    /// The mask of the cursor, if a delivery moves the cursor, counts as one in flight, and does
    /// nothing else to the state.
    pub(crate) fn moves_only(self) -> Option<u64> {
        let mask = self.cursor_mask();
        (self.unlinks() && mask != 0 && self.threshold_mask() == 0 && !self.has(MANAGE_REMOTE))
            .then_some(mask)
    }
    /// Whether any event other than ACK is logged.
    #[inline(always)]
    pub(crate) fn logs(self) -> bool {
        const BOTH: u32 = EVENT_START_DISABLE | EVENT_END_DISABLE;
        self.eq().is_some() && self.0 & u64::from(BOTH) != u64::from(BOTH)
    }
    #[inline(always)]
    pub(crate) fn cursor_mask(self) -> u64 {
        // The widths come through shared memory: keep the shifts in range.
        (1u64 << (self.0 >> 40 & 63)) - 1
    }
    #[inline(always)]
    pub(crate) fn threshold_shift(self) -> u32 {
        (self.0 >> 40 & 63) as u32
    }
    #[inline(always)]
    pub(crate) fn threshold_mask(self) -> u64 {
        (1u64 << (self.0 >> 48 & 63)) - 1
    }
}
