//! Registered memory: a descriptor locks the pages that it covers (`mlock`) while it exists, if
//! the interface demands registration.
//!
//! Used by `descriptors`. Invariant: arena and exposed segments count as registered; all other
//! memory of a descriptor is locked before a message can reach it, until none can.

use alloc::vec::Vec;

use super::owner::OwnerTables;
use crate::descriptor::traits::MemoryKind;
use crate::types::*;
use std::io::ErrorKind;
use sys::attach;

impl OwnerTables {
    /// Registers pieces of memory: kind, first byte, bytes. `PTL_SEGV`: one is not mapped, or is
    /// an address space. `PTL_NO_SPACE`: the system lets this process lock no more, or
    /// have no more mappings.
    pub(super) fn register(
        &mut self,
        pieces: impl Iterator<Item = (MemoryKind, usize, u64)>,
    ) -> Result<Vec<(usize, u64)>, PtlError> {
        let mut registered = Vec::new();
        for (kind, start, length) in pieces {
            let locked = match kind {
                MemoryKind::Arena | MemoryKind::Segment => continue,
                MemoryKind::AddressSpace => Err(PtlError::Segv),
                MemoryKind::Private | MemoryKind::Scattered => self.lock_piece(start, length),
            };
            if let Err(error) = locked {
                self.deregister(registered);
                return Err(error);
            }
            registered.push((start, length));
        }
        Ok(registered)
    }

    fn lock_piece(&mut self, start: usize, length: u64) -> Result<(), PtlError> {
        self.registered.lock(start, length as usize).map_err(|e| {
            match attach::is_accessible(start as u64, length, false) {
                false => PtlError::Segv,
                true if e.kind() == ErrorKind::Unsupported => PtlError::MdIllegal,
                true => PtlError::NoSpace,
            }
        })
    }

    /// Gives back what [`OwnerTables::register`] registered.
    pub(super) fn deregister(&mut self, registered: Vec<(usize, u64)>) {
        for (start, length) in registered {
            self.registered.unlock(start, length as usize);
        }
    }
}
