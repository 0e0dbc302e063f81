//! Small tools of this crate: a lock, faults for tests.
//!
//! Used by the other folders of this crate, and uses none of them. Invariant: locks are in
//! private memory.

pub(crate) mod fault;
pub(crate) mod lock;

/// Bytes of a cache line: the unit of every shared structure.
pub(crate) const LINE: usize = 64;
