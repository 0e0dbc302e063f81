//! Events: how they are posted into a queue's ring, and how the owner reads them.
//!
//! `ring` is used by `peer`, `deliver` and `calls`, `record` by `tables` and `calls`.
//! Invariant: an event is one slot of one cache line, written by its producer alone until it is
//! published.

pub(crate) mod record;
pub(crate) mod ring;
