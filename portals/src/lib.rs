//! Portals 3.3 in user space, for the processes of one host.
mod types;
pub use types::*;
