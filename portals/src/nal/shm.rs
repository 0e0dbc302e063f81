//! A fabric of processes of one host that share one memory file.

use std::io;
use std::os::fd::OwnedFd;

/// Whether memory outside of arenas and segments may be reached with `process_vm_readv` and `process_vm_writev`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttachPolicy {
    /// Yes, if the operating system allows it (found by a probe).
    Allowed,
    /// No: such messages are framed.
    Denied,
}

/// What [`Fabric::join`] needs.
#[derive(Debug)]
pub struct FabricSpec {
    /// The memory file that all processes of the fabric share; empty at first, each process reserves its own part.
    pub arena: OwnedFd,
    /// Our number.
    pub index: u32,
    /// How many processes there are.
    pub size: u32,
    /// Arena bytes per process; rounded up to whole pages. The same everywhere.
    pub bytes: usize,
    /// Node id of this host.
    pub nid: u32,
    /// Job id.
    pub jid: u32,
    /// Cross-memory attach.
    pub attach: AttachPolicy,
}

/// One process's place in a shared memory file.
#[derive(Debug)]
pub struct Fabric {
    _private: (),
}

impl Fabric {
    /// Reserves and zeroes our part of the file, and maps the whole of it. Peers may be addressed once they have
    /// opened their interfaces ([`crate::Interface::shm`]); the caller arranges for a barrier after that.
    pub fn join(spec: FabricSpec) -> io::Result<Fabric> {
        let _ = spec;
        unimplemented!()
    }
}
