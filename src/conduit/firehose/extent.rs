//! A range of addresses. Used by all files of the firehose; imports nothing.

/// Bytes of an address space, from `start` up to `end`, which is not one of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct MemoryExtent {
    /// The address of the first byte.
    pub start: usize,
    /// The address behind the last byte.
    pub end: usize,
}

impl MemoryExtent {
    /// Whether `other` lies within these bytes.
    #[inline]
    pub fn covers(self, other: MemoryExtent) -> bool {
        self.start <= other.start && other.end <= self.end
    }

    /// Whether a byte is in both.
    pub fn overlaps(self, other: MemoryExtent) -> bool {
        self.start < other.end && other.start < self.end
    }

    /// How many bytes.
    pub fn len(self) -> usize {
        self.end.saturating_sub(self.start)
    }

    /// Whether there are none.
    pub fn is_empty(self) -> bool {
        self.end <= self.start
    }
}
