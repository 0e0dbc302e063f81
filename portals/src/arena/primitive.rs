//! What rings are made of. Crate `models` compiles the same file over loom's, which tries every order in which processes may
//! go and every value that a load may see.

pub(super) use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
