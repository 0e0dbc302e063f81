//! Portals 3.3 in user space, for the processes of one host.
//!
//! A [`NetworkInterface`] is one network interface of the specification (`PtlNIInit`); its
//! methods are the calls of the specification in snake case. All of them may be called from
//! several threads at once.
//!
//! | folder | what it owns |
//! |---|---|
//! | `types`, `message` | the specification's types; a message's header |
//! | `base` | a lock, zeroed tables, prefetches, pause points for tests |
//! | `arena` | the memory that peers share: its layout, and the algorithms on its words |
//! | `nal` | how processes reach each other: private memory, shared memory, frames |
//! | `event` | posting an event into a queue's ring, and reading it |
//! | `descriptor` | a memory descriptor: properties, state word, private record |
//! | `peer` | the processes of a fabric: arenas, segments, cached matches |
//! | `deliver` | the target's side of a message: the only code that walks a match list |
//! | `tables` | the state of an interface: queues, match lists, descriptors |
//! | `transfer` | moving bytes: copies, cross-memory attach, frames |
//! | `calls` | the calls of the specification |
//!
//! A folder uses those above it in this table, never those below. No two files use each other;
//! `ci/imports.sh portals/src` finds such circles.
#![cfg_attr(not(test), deny(clippy::std_instead_of_core, clippy::std_instead_of_alloc))]
extern crate alloc;

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
mod transfer;
mod types;

pub use calls::NetworkInterface;
pub use event::record::EqWatch;
pub use nal::frame::FrameTag;
pub use types::*;
