//! The conduit's and the Portals' own files over loom: every order in which threads may take their steps, and every value that a load
//! may see by the memory model, is tried (Norris and Demsky, CDSChecker, 2013). `tests/models.rs` runs [`conduit::models`].
//!
//! The tree is the library's as far as these files name it; what they need beside is as little as will do.
#![allow(missing_docs, unreachable_pub, dead_code)]

extern crate alloc;

pub mod report {
    pub fn fatal(cause: core::fmt::Arguments<'_>, _: core::fmt::Arguments<'_>) -> ! {
        panic!("{cause}")
    }
}

pub mod conduit;
pub mod portals;
