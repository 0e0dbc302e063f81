//! The table of regions.

#[path = "../../../../src/conduit/firehose/extent.rs"]
mod extent;
pub mod models;
#[path = "../../../../src/conduit/firehose/table.rs"]
mod table;

pub use extent::MemoryExtent;
