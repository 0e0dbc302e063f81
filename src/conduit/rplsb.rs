//! RplSB: the chunks that replies leave from.
//!
//! The descriptor is free-floating with its events on SAFE_EQ. A chunk is in use from the moment
//! when it is reserved for a poll of AM_EQ until its reply has left (SEND event). Invariant: only
//! the holder touches the bytes of a chunk.

use super::CHUNK;
use super::hold::Hold;
use super::memory::{self, Chunks};
use super::portals::{MdFlags, MdPart, MdSpec, Portals, PortalsError};
use super::sync::FreeList;
use super::user::Descriptor;
use sys::peer::Peer;

pub(super) struct RplSb<P: Portals> {
    pub(super) chunks: Chunks,
    md: P::Md,
    free: FreeList,
}

impl<P: Portals> RplSb<P> {
    pub(super) fn open(
        portals: &P,
        par: bool,
        chunks: u32,
        eq: &P::Eq,
        registers: bool,
    ) -> Result<Self, PortalsError> {
        // Memory of the network is registered.
        let memory = match registers {
            true => memory::targeted(portals, chunks as usize * CHUNK)?,
            false => memory::private(chunks as usize * CHUNK)?,
        };
        let spec = MdSpec {
            region: memory.into(),
            max_size: None,
            flags: MdFlags { event_start_disable: true, ..MdFlags::default() },
            user: Descriptor::RplSb.pack(),
            eq: Some(eq),
        };
        let md = portals.md_bind(&spec)?;
        Ok(RplSb { chunks: Chunks::of(memory), md, free: FreeList::new(par, chunks) })
    }

    #[inline]
    pub(super) fn take(&self) -> Option<u32> {
        self.free.take(Hold::HERE)
    }

    /// A reply is about to leave from a chunk, with a SEND event.
    #[inline]
    pub(super) fn leaves(&self, chunk: u32) {
        self.free.set_hold(chunk, Hold::REPLY);
    }

    /// A SEND event says that a reply has left from this chunk: gives it back. False if none was
    /// to leave from it.
    #[inline]
    pub(super) fn has_left(&self, chunk: Peer<usize>) -> bool {
        let left = self.free.end_hold(chunk, Hold::REPLY);
        left.map(|chunk| self.free.give(chunk)).is_some()
    }

    /// The list of chunks.
    pub(super) fn list(&self) -> &FreeList {
        &self.free
    }

    #[cfg(test)]
    pub(super) fn left(&self) -> u32 {
        self.free.left()
    }

    #[inline]
    pub(super) fn give(&self, chunk: u32) {
        self.free.give(chunk);
    }

    /// The first `len` bytes of a chunk.
    #[inline]
    pub(super) fn part(&self, chunk: u32, len: usize) -> MdPart<P::Md> {
        MdPart { md: self.md, offset: chunk as usize * CHUNK, len }
    }
}
