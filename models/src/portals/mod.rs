//! The file of `portals3` that processes share, unchanged, over loom's primitives.

pub mod models;

/// Stands in for `arena/primitive.rs` of crate `portals3`.
mod primitive {
    pub(super) use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering};
}

#[path = "../../../portals/src/arena/ring.rs"]
mod ring;
