//! The files of the Portals that processes share, as they are, over loom's primitives.

pub mod models;

/// Stands in for `arena/primitive.rs` of crate `portals3`.
mod primitive {
    pub(super) use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering};
}

#[path = "../../../portals/src/arena/ring.rs"]
mod ring;
