//! The atomics that the counts of fragments are made of.
//!
//! Crate `models` compiles `fragments`, which uses them, over loom's atomics.

pub(super) use core::sync::atomic::{AtomicU32, Ordering};
