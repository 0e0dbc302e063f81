//! The files of `portals3` that processes or threads share, unchanged, over loom's primitives.

pub mod models;
pub mod sleep_models;

/// Stands in for `arena/primitive.rs` and `nal/primitive.rs` of crate `portals3`.
mod primitive {
    pub(super) use super::sleep_models::{bell, futex};
    pub(super) use loom::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence};
    pub(super) use sys::hint::cold_path;

    pub(super) mod fault {
        pub(in super::super) fn point(_name: &str) {}
    }
}

use sleep_models::ModelHeader as ArenaHeader;

#[path = "../../../portals/src/arena/doorbell.rs"]
mod doorbell;
#[path = "../../../portals/src/arena/ring.rs"]
mod ring;
#[path = "../../../portals/src/nal/sleepers.rs"]
mod sleepers;
