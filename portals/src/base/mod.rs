//! Small tools of this crate: a lock, zeroed tables, faults for tests.
//!
//! Used by the other folders of this crate, and uses none of them. Invariant: locks and tables
//! are in private memory.

pub(crate) mod fault;
pub(crate) mod lock;
pub(crate) mod zeroed;

/// Bytes of a cache line: the unit of every shared structure.
pub(crate) const LINE: usize = 64;
