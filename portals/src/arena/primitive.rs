//! What [`super::ring`] and [`super::doorbell`] are made of. Crate `models` compiles these files
//! over loom's atomics, which try every order of the processes' steps and every value that a load
//! may see.

pub(super) use crate::base::fault;
pub(super) use core::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
pub(super) use sys::hint::cold_path;
pub(super) use sys::{bell, futex};
