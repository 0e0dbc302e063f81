//! The memory files that the ranks of a host share.
//!
//! Made by the supervisor or by `single`, used by `runtime`. Invariant: a system without memory
//! files has no value of [`HostMemory`].

use super::error::BootError;
use sys::memory::MemFd;

/// The memory files of a host. They have no name (any more) and vanish with the last process that
/// holds them. All are empty at start.
#[derive(Debug)]
pub struct HostMemory {
    /// Library memory and Portals objects of all ranks of the host.
    pub arena: MemFd,
    /// Segments of all ranks of the host.
    pub segments: MemFd,
    /// Barriers and other words of the layer `extended`.
    pub scratch: MemFd,
}

impl HostMemory {
    /// New, empty files.
    pub fn create() -> Result<HostMemory, BootError> {
        let file = |name| {
            MemFd::create(name).map_err(|e| BootError::system("cannot create a memory file", &e))
        };
        Ok(HostMemory {
            arena: file(c"gasnet-arena")?,
            segments: file(c"gasnet-segments")?,
            scratch: file(c"gasnet-scratch")?,
        })
    }
}
