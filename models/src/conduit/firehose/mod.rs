//! The table of regions.

pub mod models;
#[path = "../../../../src/conduit/firehose/table.rs"]
mod table;

/// Stands in for that of the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MemoryExtent {
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl MemoryExtent {
    fn covers(self, other: MemoryExtent) -> bool {
        self.start <= other.start && other.end <= self.end
    }
}
