//! The atomics, the back-off and the tables that shared counters, lists and records are made of.
//!
//! Crate `models` compiles the files that use it over loom's atomics. loom tries every
//! interleaving of threads and every value that a load may see.

pub(super) use core::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering};
pub(super) use crossbeam_utils::Backoff;
pub(super) use sys::zeroed::{Zeroed, Zeros};
