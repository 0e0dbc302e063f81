//! The atomics of [`super::ring`]. Crate `models` compiles that file over loom's atomics, which
//! try every order of the processes' steps and every value that a load may see.

pub(super) use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
