//! Memory descriptors: their properties, their state word, and the owner's private record of
//! each.
//!
//! A descriptor has two halves. [`MdCell`](crate::arena::MdCell), in the arena, is what
//! deliverers see: only the owner writes it, except for the state word.
//! [`MdRecord`](record::MdRecord), in private memory, is what the owner itself relies on:
//! addresses, the user's pointer, the exact [`MemoryDescriptor`](crate::MemoryDescriptor).
//! Invariant: a process never takes an address from shared memory for its own use.

pub(crate) mod record;
pub(crate) mod state;
pub(crate) mod traits;
