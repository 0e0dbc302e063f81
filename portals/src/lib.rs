//! Portals 3.3 in user space, for the processes of one host.
//!
//! An [`Interface`] is one network interface of the specification (`PtlNIInit`); its methods are the calls of the
//! specification in snake case. All of them may be called from several threads at once.
//!
//! | file | what it owns |
//! |---|---|
//! | `ni` | the interface: identity, limits, the table of peers |
//! | `pt`, `me`, `md`, `eq`, `acl` | one object of the specification each |
//! | `ops` | the initiator's side of put, get and get-put |
//! | `deliver` | the target's side: the only code that walks a match list, whoever runs it |
//! | `arena` | the layout of the memory that peers share; every word that two processes touch |
//! | `hazard` | which memory descriptors this process is using right now |
//! | `doorbell` | sleeping until an event is posted |
//! | `wire` | messages cut into frames, for peers whose memory cannot be reached |
//! | `nal` | how the processes reach each other: heap, shared memory, frames; the operating system |
//! | `fault` | pause points for tests |
extern crate alloc;

#[allow(dead_code)]
mod deliver;
pub mod nal;
mod ni;
mod types;
#[allow(dead_code)]
mod wire;

pub use ni::Interface;
pub use types::*;
