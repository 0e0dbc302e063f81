//! Learns that memory under a pin was unmapped, moved or dropped, from the kernel (`userfaultfd`).
//!
//! Used by the firehose. A thread of the library reads what the kernel reports, in all thread
//! modes; it sleeps in the kernel, blocks all signals and calls nothing else of the library.
//! Invariant: a call that changes memory under a pin returns after [`Monitor::has_news`] has
//! become true. Where the system allows no such thing the monitor notices nothing.

use super::super::firehose::{MemoryExtent, Monitor};
use super::unmap_news::UnmapNews;
use crate::{env, fault};
use alloc::boxed::Box;
use sys::unmap_watch::{UnmapWatch, WatchKinds};

/// What the thread that reads shares with the others.
#[derive(Debug)]
struct WatchedMemory {
    watch: UnmapWatch,
    news: UnmapNews,
}

impl WatchedMemory {
    fn start() -> Option<&'static WatchedMemory> {
        if !env::FIREHOSE_MONITOR.get() {
            return None;
        }
        let kinds = match fault::on("watch_no_files") {
            true => WatchKinds::NoFiles,
            false => WatchKinds::All,
        };
        let watch = UnmapWatch::open(kinds).ok()?;
        let memory: &'static WatchedMemory =
            Box::leak(Box::new(WatchedMemory { watch, news: UnmapNews::new() }));
        UnmapWatch::start_reader(WatchedMemory::read, memory).ok().map(|()| memory)
    }

    fn read(&'static self) -> ! {
        loop {
            self.watch.wait();
            self.news.note(|| self.watch.next());
        }
    }
}

/// The monitor of a process.
#[derive(Clone, Copy, Debug)]
pub(in crate::conduit) struct UnmapMonitor {
    memory: Option<&'static WatchedMemory>,
    /// The regions of the segment, which stays mapped and needs no watch.
    segment: MemoryExtent,
}

impl UnmapMonitor {
    /// Starts the thread, unless GASNET_FIREHOSE_MONITOR forbids it or the system does. The bytes
    /// of `segment` stay mapped.
    pub(in crate::conduit) fn start(segment: MemoryExtent) -> UnmapMonitor {
        UnmapMonitor { memory: WatchedMemory::start(), segment }
    }

    /// Whether this system has what a monitor needs.
    pub(in crate::conduit) fn is_possible() -> bool {
        env::FIREHOSE_MONITOR.get() && UnmapWatch::open(WatchKinds::All).is_ok()
    }

    /// What watches these bytes, if anything must.
    fn watcher(&self, bytes: MemoryExtent) -> Option<&'static WatchedMemory> {
        self.memory.filter(|_| !self.segment.covers(bytes))
    }

    /// What to do where it notices nothing.
    pub(in crate::conduit) const REMEDY: &str = "Allow userfaultfd (Linux 5.11, GASNET_FIREHOSE_MONITOR not 0), or set \
         GASNET_DISABLE_MUNMAP=1 if the program itself unmaps no memory.";

    /// Whether it notices anything.
    pub(in crate::conduit) fn notices(self) -> bool {
        self.memory.is_some()
    }
}

impl Monitor for UnmapMonitor {
    fn watch(&self, extent: MemoryExtent) {
        if let Some(memory) = self.watcher(extent) {
            memory.watch.watch(extent.start..extent.end);
        }
    }

    fn watches(&self, extent: MemoryExtent) -> bool {
        self.watcher(extent)
            .is_none_or(|memory| memory.watch.is_watching(extent.start..extent.end))
    }

    fn unwatch(&self, block: MemoryExtent) {
        if let Some(memory) = self.watcher(block) {
            memory.watch.unwatch(block.start..block.end);
        }
    }

    #[inline]
    fn has_news(&self) -> bool {
        self.memory.is_some_and(|memory| memory.news.any())
    }

    fn take(&self) -> Option<MemoryExtent> {
        let changed = self.memory?.news.take()?;
        Some(MemoryExtent { start: changed.start, end: changed.end })
    }
}
