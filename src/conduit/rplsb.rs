//! RplSB: the chunks that replies leave from.
//!
//! The descriptor is free-floating with its events on SAFE_EQ; a chunk is in use from the moment when AM_EQ may be
//! polled with it at hand until its reply has left (SEND event). Invariant: only the holder touches a chunk's bytes.

use super::CHUNK;
use super::memory;
use super::portals::{MdFlags, MdSpec, Portals, PortalsError};
use super::sync::FreeList;
use super::user::Descriptor;

pub(super) struct RplSb<P: Portals> {
    base: *mut u8,
    chunks: u32,
    pub(super) md: P::Md,
    free: FreeList,
}

// SAFETY: a chunk is only touched by its holder, of whom there is one at a time; holds pass from thread to thread
// through the free list, which orders memory.
unsafe impl<P: Portals> Send for RplSb<P> {}
// SAFETY: as above.
unsafe impl<P: Portals> Sync for RplSb<P> {}

impl<P: Portals> RplSb<P> {
    pub(super) fn open(
        portals: &P,
        par: bool,
        chunks: u32,
        eq: P::Eq,
    ) -> Result<Self, PortalsError> {
        let bytes = chunks as usize * CHUNK;
        let base = memory::private(bytes)?;
        let spec = MdSpec {
            start: base,
            length: bytes,
            max_size: None,
            flags: MdFlags { event_start_disable: true, ..MdFlags::default() },
            user: Descriptor::RplSb.pack(),
            eq: Some(eq),
        };
        // SAFETY: the memory is never freed.
        let md = unsafe { portals.md_bind(&spec) }?;
        Ok(RplSb { base, chunks, md, free: FreeList::new(par, chunks) })
    }

    #[inline]
    pub(super) fn take(&self) -> Option<u32> {
        self.free.take()
    }

    #[cfg(test)]
    pub(super) fn left(&self) -> u32 {
        self.free.left()
    }

    #[inline]
    pub(super) fn give(&self, chunk: u32) {
        self.free.give(chunk);
    }

    /// First byte of a chunk.
    #[inline]
    pub(super) fn at(&self, chunk: u32) -> *mut u8 {
        debug_assert!(chunk < self.chunks);
        // SAFETY: chunk numbers are below the number of chunks, so this is inside the buffer.
        unsafe { self.base.add(chunk as usize * CHUNK) }
    }
}
