//! Portals 3.3 in user space, for the processes of one host or of several.
//!
//! A [`NetworkInterface`] is one network interface of the specification (`PtlNIInit`); its
//! methods are the calls of the specification in snake case. All of them may be called from
//! several threads at once.
//!
//! | folder | what it owns |
//! |---|---|
//! | `calls` | the calls of the specification |
//! | `transfer` | moving bytes: copies, cross-memory attach, frames |
//! | `tables` | the state of an interface: queues, match lists, descriptors |
//! | `deliver` | the target's side of a message: the only code that walks a match list |
//! | `peer` | the processes of a fabric: arenas, segments, cached matches |
//! | `descriptor` | a memory descriptor: properties, state word, private record |
//! | `event` | posting an event into a queue's ring, and reading it |
//! | `nal` | how processes reach each other: loopback, shared memory, frames |
//! | `arena` | the memory that peers share: its layout, and the algorithms on its words |
//! | `base` | a lock, zeroed tables, faults for tests |
//! | `types`, `message`, `access_fault` | the specification's types; a message's header; a refused access |
//!
//! A folder uses only those below it in this table. No two files use each other;
//! `ci/imports.sh portals/src` finds such circles.
#![cfg_attr(not(test), deny(clippy::std_instead_of_core, clippy::std_instead_of_alloc))]
extern crate alloc;

mod access_fault;
mod arena;
mod base;
mod calls;
mod deliver;
mod descriptor;
mod event;
mod message;
pub mod nal;
mod peer;
mod tables;
#[cfg(test)]
mod test_memory;
mod transfer;
mod types;

pub use access_fault::{AccessFault, AccessHandler};
pub use arena::PROCESSES;
pub use calls::{NetworkInterface, NotExposed, ScatteredPiece};
pub use event::record::EqWatch;
pub use nal::frame::FrameTag;
pub use sys::attach::PIECES_PER_CALL;
pub use types::*;
