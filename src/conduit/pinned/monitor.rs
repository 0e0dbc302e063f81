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
    fn read(&'static self) -> ! {
        loop {
            self.watch.wait();
            self.news.note(|| self.watch.next());
        }
    }
}

/// The monitor of a process.
#[derive(Clone, Copy, Debug)]
pub(in crate::conduit) struct UnmapMonitor(Option<&'static WatchedMemory>);

impl UnmapMonitor {
    /// Starts the thread, unless GASNET_FIREHOSE_MONITOR forbids it or the system does.
    pub(in crate::conduit) fn start() -> UnmapMonitor {
        if !env::FIREHOSE_MONITOR.get() {
            return UnmapMonitor(None);
        }
        let kinds = match fault::on("watch_no_files") {
            true => WatchKinds::NoFiles,
            false => WatchKinds::All,
        };
        let Ok(watch) = UnmapWatch::open(kinds) else { return UnmapMonitor(None) };
        let memory: &'static WatchedMemory =
            Box::leak(Box::new(WatchedMemory { watch, news: UnmapNews::new() }));
        let started = UnmapWatch::start_reader(WatchedMemory::read, memory);
        UnmapMonitor(started.is_ok().then_some(memory))
    }

    /// What to do where it notices nothing.
    pub(in crate::conduit) const REMEDY: &str = "Allow userfaultfd (Linux 5.11, GASNET_FIREHOSE_MONITOR not 0), or set \
         GASNET_DISABLE_MUNMAP=1 if the program itself unmaps no memory.";

    /// Whether it notices anything.
    pub(in crate::conduit) fn notices(self) -> bool {
        self.0.is_some()
    }
}

impl Monitor for UnmapMonitor {
    fn watch(&self, extent: MemoryExtent) {
        if let Some(memory) = self.0 {
            memory.watch.watch(extent.start..extent.end);
        }
    }

    fn watches(&self, extent: MemoryExtent) -> bool {
        self.0.is_none_or(|memory| memory.watch.is_watching(extent.start..extent.end))
    }

    fn unwatch(&self, block: MemoryExtent) {
        if let Some(memory) = self.0 {
            memory.watch.unwatch(block.start..block.end);
        }
    }

    #[inline]
    fn has_news(&self) -> bool {
        self.0.is_some_and(|memory| memory.news.any())
    }

    fn take(&self) -> Option<MemoryExtent> {
        let changed = self.0?.news.take()?;
        Some(MemoryExtent { start: changed.start, end: changed.end })
    }
}
