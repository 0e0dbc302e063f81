//! Portals 3.3 in user space, for the processes of one host.
//!
//! An [`NetworkInterface`] is one network interface of the specification (`PtlNIInit`); its methods are the calls of
//! the specification in snake case. All of them may be called from several threads at once.
//!
//! | file | what it owns |
//! |---|---|
//! | `ni` | the interface: identity, limits, the table of peers |
//! | `pt`, `me`, `md`, `eq`, `acl` | one object of the specification each |
//! | `ops` | the initiator's side of put, get and get-put |
//! | `deliver` | the target's side: the only code that walks a match list, whoever runs it |
//! | `shortcut` | what this process remembers of match lists |
//! | `prepared` | puts and gets at once of which all is known beforehand |
//! | `memory` | moving the bytes |
//! | `arena` | the layout of the memory that peers share; every word that two processes touch |
//! | `ring` | slots in shared memory that many processes fill and one empties |
//! | `hazard` | which memory descriptors this process is using right now |
//! | `doorbell` | sleeping until an event is posted |
//! | `wire` | messages cut into frames, for peers whose memory cannot be reached |
//! | `nal` | how the processes reach each other: heap, shared memory, frames; the operating system |
//! | `lock` | a lock between threads of this process |
//! | `zeroed` | tables that cost nothing before they are used |
//! | `fault` | pause points for tests |
#![cfg_attr(not(test), deny(clippy::std_instead_of_core, clippy::std_instead_of_alloc))]
extern crate alloc;

mod acl;
mod arena;
mod deliver;
mod doorbell;
mod eq;
mod fault;
mod hazard;
mod lock;
mod md;
mod me;
mod memory;
pub mod nal;
mod ni;
mod ops;
mod prefetch;
mod prepared;
mod primitive;
mod pt;
mod ring;
mod shortcut;
mod types;
mod wire;
mod zeroed;

pub use eq::EqWatch;
pub use ni::NetworkInterface;
pub use types::*;
pub use wire::FrameTag;
