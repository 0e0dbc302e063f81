//! The file of the registry of operations that threads share, as it is, over loom's primitives.

pub mod models;

/// Stands in for the library's `runtime/ops/primitive.rs`.
mod primitive {
    pub(super) use loom::sync::atomic::{AtomicU32, Ordering};
}

#[path = "../../../src/runtime/ops/fragments.rs"]
mod fragments;
