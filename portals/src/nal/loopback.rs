//! A fabric of one process whose arena is in private memory.
//!
//! Opened by [`crate::NetworkInterface::alone`]. Invariant: no frame ever travels; the only
//! peer is mapped.

use core::ptr::NonNull;
use core::sync::atomic::AtomicU32;

use super::{FrameSent, FrameSink, FrameWatch, Nal, Route};
use crate::types::{MdIovec, Size};
use alloc::vec::Vec;
use sys::memory::{Mapping, page_size};

/// The arena of a process without peers.
#[derive(Debug)]
pub(crate) struct Loopback {
    base: NonNull<u8>,
    bytes: usize,
    nid: u32,
    /// What has the arena: the heap where the system maps no memory, as a lightweight kernel.
    _memory: Result<Mapping, Vec<u8>>,
}

impl Loopback {
    /// An arena of this many bytes on the host with this node id; `None` if there is no such
    /// memory.
    pub(crate) fn new(nid: u32, bytes: usize) -> Option<Loopback> {
        if let Ok(mapping) = Mapping::anonymous(bytes) {
            let (base, bytes) = (mapping.base(), mapping.len());
            return Some(Loopback { base, bytes, nid, _memory: Ok(mapping) });
        }
        let mut heap = Vec::new();
        heap.try_reserve_exact(bytes + page_size()).ok()?;
        heap.resize(bytes + page_size(), 0);
        let start = heap.as_mut_ptr();
        let base = NonNull::new(start.wrapping_add(start.align_offset(page_size())))?;
        Some(Loopback { base, bytes, nid, _memory: Err(heap) })
    }
}

// SAFETY: the arena is memory that nothing else uses, and that lives as long as the value.
unsafe impl Send for Loopback {}
// SAFETY: as above; the value itself is never changed.
unsafe impl Sync for Loopback {}

// SAFETY: the arena is zeroed, page-aligned memory that lives as long as the value.
unsafe impl Nal for Loopback {
    fn nid(&self) -> u32 {
        self.nid
    }
    fn index(&self) -> u32 {
        0
    }
    fn size(&self) -> u32 {
        1
    }
    fn jid(&self) -> u32 {
        sys::process::pid()
    }
    fn arena(&self) -> NonNull<u8> {
        self.base
    }
    fn arena_bytes(&self) -> usize {
        self.bytes
    }
    fn route(&self, _peer: u32) -> Route {
        Route::Mapped(self.base)
    }
    fn max_frame(&self, _peer: u32, _payload: Size) -> usize {
        0
    }
    unsafe fn send(&self, _: u32, _: &[u8], _: &[MdIovec], _: bool) -> FrameSent {
        FrameSent::Full
    }
    fn frame_watch(&self) -> FrameWatch<'_> {
        static NEVER: AtomicU32 = AtomicU32::new(0);
        FrameWatch { arrived: &NEVER, countdown: None }
    }
    fn receive(&self, _lane: usize, _max: usize, _sink: &mut dyn FrameSink) {}
}
