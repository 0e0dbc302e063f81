//! A fabric of one process whose arena is in private memory.
//!
//! Opened by [`crate::NetworkInterface::alone`]. Invariant: no frame ever travels; the only
//! peer is mapped.

use core::ptr::NonNull;
use core::sync::atomic::AtomicU32;

use super::{FrameSent, FrameSink, FrameWatch, Nal, Route};
use crate::types::{MdIovec, Size};
use sys::memory::Mapping;

/// The arena of a process without peers.
#[derive(Debug)]
pub(crate) struct Loopback {
    arena: Mapping,
    nid: u32,
}

impl Loopback {
    /// An arena of this many bytes on the host with this node id; `None` if there is no such
    /// memory.
    pub(crate) fn new(nid: u32, bytes: usize) -> Option<Loopback> {
        Mapping::anonymous(bytes).ok().map(|arena| Loopback { arena, nid })
    }
}

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
        self.arena.base()
    }
    fn arena_bytes(&self) -> usize {
        self.arena.len()
    }
    fn route(&self, _peer: u32) -> Route {
        Route::Mapped(self.arena.base())
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
