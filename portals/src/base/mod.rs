//! Small tools of this crate: a lock, zeroed tables, prefetches, pause points for tests.

pub(crate) mod fault;
pub(crate) mod lock;
pub(crate) mod prefetch;
pub(crate) mod zeroed;

/// Bytes of a cache line: the unit of every shared structure.
pub(crate) const LINE: usize = 64;
