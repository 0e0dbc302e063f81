//! A fabric of one process whose arena is on the heap.

use core::alloc::Layout;
use core::ptr::NonNull;
use core::sync::atomic::AtomicU32;

use super::{Nal, Route};

/// Large enough for everything that one process allocates in it; pages that are not used are not there.
const BYTES: usize = 64 << 20;
const LAYOUT: Layout = match Layout::from_size_align(BYTES, 4096) {
    Ok(layout) => layout,
    Err(_) => panic!("a power of two"),
};

/// The arena of a process that is alone.
#[derive(Debug)]
pub(crate) struct Loopback {
    arena: NonNull<u8>,
}

// SAFETY: the pointer is owned and only handed out.
unsafe impl Send for Loopback {}
// SAFETY: as above.
unsafe impl Sync for Loopback {}

impl Loopback {
    /// `None` if there is no memory.
    pub(crate) fn new() -> Option<Loopback> {
        // SAFETY: the layout is not of size 0.
        NonNull::new(unsafe { alloc::alloc::alloc_zeroed(LAYOUT) }).map(|arena| Loopback { arena })
    }
}

impl Drop for Loopback {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this layout.
        unsafe { alloc::alloc::dealloc(self.arena.as_ptr(), LAYOUT) }
    }
}

// SAFETY: the arena is zeroed, page-aligned memory that lives as long as the value.
unsafe impl Nal for Loopback {
    fn nid(&self) -> u32 {
        0
    }
    fn index(&self) -> u32 {
        0
    }
    fn size(&self) -> u32 {
        1
    }
    fn jid(&self) -> u32 {
        super::os::pid()
    }
    fn arena(&self) -> NonNull<u8> {
        self.arena
    }
    fn arena_bytes(&self) -> usize {
        BYTES
    }
    fn route(&self, _peer: u32) -> Route {
        Route::Mapped(self.arena)
    }
    fn max_frame(&self) -> usize {
        0
    }
    fn send(&self, _peer: u32, _frame: &[u8]) -> bool {
        false
    }
    fn has_frames(&self) -> bool {
        false
    }
    fn frames_flag(&self) -> Option<&AtomicU32> {
        static NEVER: AtomicU32 = AtomicU32::new(0);
        Some(&NEVER)
    }
    fn receive(&self, _max: usize, _sink: &mut dyn FnMut(u32, &[u8])) {}
}
