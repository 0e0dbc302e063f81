//! What the shared counters, lists and records are made of. Crate `models` compiles the same files over loom's, which tries
//! every order in which threads may go and every value that a load may see.

pub(super) use core::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering};
pub(super) use crossbeam_utils::Backoff;
