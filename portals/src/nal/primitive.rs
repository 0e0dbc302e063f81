//! The atomics of [`super::sleepers`]. Crate `models` compiles that file over loom's atomics.

pub(super) use core::sync::atomic::{AtomicU32, Ordering, fence};
