//! The scheme and its store.

pub mod models;
#[path = "../../../../src/conduit/credits/policy.rs"]
mod policy;
#[path = "../../../../src/conduit/credits/stats.rs"]
mod stats;
#[path = "../../../../src/conduit/credits/store.rs"]
mod store;
