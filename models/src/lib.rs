//! Files of the conduit, the runtime and `portals3`, unchanged, over loom.
//!
//! `tests/models.rs` runs [`conduit::models`] and its like. Loom tries every interleaving of
//! threads, and every value that a load may see by the memory model (Norris and Demsky,
//! CDSChecker, 2013). Invariant: the modules have the paths of the library, so that its files
//! compile here; whatever else these files name is a small stand-in.
#![allow(missing_docs, unreachable_pub, dead_code)]

extern crate alloc;

pub mod report {
    pub fn fatal(cause: core::fmt::Arguments<'_>, _: core::fmt::Arguments<'_>) -> ! {
        panic!("{cause}")
    }
}

pub mod conduit;
pub mod portals;
#[path = "../../src/rank.rs"]
pub mod rank;
pub mod runtime;
