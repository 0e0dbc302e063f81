//! The atomics and the back-off that shared counters, lists and records are made of.
//!
//! Crate `models` compiles the files that use it over those of loom, which tries every
//! interleaving of threads and every value that a load may see.

pub(super) use core::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering};
pub(super) use crossbeam_utils::Backoff;
