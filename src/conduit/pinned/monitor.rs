//! The monitor of networks that reach memory by its address, as the emulation does. What the
//! client unmaps and maps again at the same address stays the same target. What it does not map
//! again is refused by the kernel.
//!
//! Used by the firehose. Invariant: it notices nothing.

use super::super::firehose::{MemoryExtent, Monitor};

#[derive(Debug)]
pub(in crate::conduit) struct NoMonitor;

impl Monitor for NoMonitor {
    fn watch(&self, _: MemoryExtent) {}

    fn unwatch(&self, _: MemoryExtent) {}

    fn has_news(&self) -> bool {
        false
    }

    fn take(&self) -> Option<MemoryExtent> {
        None
    }
}
