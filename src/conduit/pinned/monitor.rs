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
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;
use core::ops::Range;
use core::sync::atomic::{AtomicBool, Ordering};
use parking_lot::Mutex;
use std::io;
use sys::unmap_watch::{UnmapWatch, WatchKinds, WatchedChange};
use sys::{clock, signal, thread};

/// What the thread that reads shares with the others.
#[derive(Debug)]
struct WatchedMemory {
    watch: UnmapWatch,
    news: UnmapNews,
    /// The thread has begun to read.
    reads: AtomicBool,
    /// Free whenever it is taken, as the next: with the lock of the firehose held.
    dropped: Mutex<DroppedRanges>,
    refused: Mutex<RefusedPages>,
}

/// Memory that the program drops without unmapping it (`madvise`). The kernel reports it, then
/// wakes the program, and the program drops the pages: nothing tells when. A pin that is made
/// meanwhile names the pages that go. So such memory counts as not watched for a while.
#[derive(Debug, Default)]
struct DroppedRanges {
    /// With the time of the report, in order.
    recent: VecDeque<(MemoryExtent, u64)>,
}

impl DroppedRanges {
    /// By then the program has dropped the pages, in nanoseconds.
    const DONE: u64 = 1_000_000_000;
    /// Most ranges that are kept apart.
    const MOST: usize = 64;

    fn note(&mut self, range: MemoryExtent, now: u64) {
        self.forget(now);
        if self.recent.len() == Self::MOST
            && let (Some((one, _)), Some((other, _))) =
                (self.recent.pop_front(), self.recent.front_mut())
        {
            // The later time counts for both.
            let (start, end) = (one.start.min(other.start), one.end.max(other.end));
            *other = MemoryExtent { start, end };
        }
        self.recent.push_back((range, now));
    }

    fn forget(&mut self, now: u64) {
        while self.recent.front().is_some_and(|&(_, at)| now.saturating_sub(at) > Self::DONE) {
            self.recent.pop_front();
        }
    }

    /// Whether pages of these bytes may be dropped now.
    fn touches(&mut self, bytes: MemoryExtent, now: u64) -> bool {
        self.forget(now);
        self.recent.iter().any(|(range, _)| range.overlaps(bytes))
    }
}

/// The pages of blocks that could not be watched when they were to be, by the start of the block.
/// The kernel does not say whose userfaultfd watches a page, and would take that of the program
/// for the one of the library.
#[derive(Debug, Default)]
struct RefusedPages(BTreeMap<usize, Vec<Range<usize>>>);

impl RefusedPages {
    fn set(&mut self, block: MemoryExtent, refused: Vec<Range<usize>>) {
        match refused.is_empty() {
            true => drop(self.0.remove(&block.start)),
            false => drop(self.0.insert(block.start, refused)),
        }
    }

    /// Whether a page of these bytes of a block is one.
    fn touches(&self, bytes: MemoryExtent) -> bool {
        let of_block = self.0.range(..=bytes.start).next_back();
        of_block.is_some_and(|(_, refused)| {
            refused.iter().any(|&Range { start, end }| bytes.overlaps(MemoryExtent { start, end }))
        })
    }

    /// Forgets those of a block; returns its other pages, in order.
    fn take_others(&mut self, block: MemoryExtent) -> Vec<Range<usize>> {
        let refused = self.0.remove(&block.start).unwrap_or_default();
        let ends = refused.iter().map(|pages| pages.start).chain([block.end]);
        let starts = [block.start].into_iter().chain(refused.iter().map(|pages| pages.end));
        starts.zip(ends).map(|(start, end)| start..end).filter(|pages| !pages.is_empty()).collect()
    }
}

impl WatchedMemory {
    fn start() -> io::Result<&'static WatchedMemory> {
        if !env::FIREHOSE_MONITOR.get() {
            return Err(io::Error::other("GASNET_FIREHOSE_MONITOR is 0"));
        }
        let kinds = match fault::on("watch_no_files") {
            true => WatchKinds::NoFiles,
            false => WatchKinds::All,
        };
        let watch = UnmapWatch::open(kinds)?;
        let memory: &'static WatchedMemory = Box::leak(Box::new(WatchedMemory {
            watch,
            news: UnmapNews::new(),
            reads: AtomicBool::new(false),
            dropped: Mutex::default(),
            refused: Mutex::default(),
        }));
        UnmapWatch::start_reader(WatchedMemory::read, memory)?;
        // From then on the program may close any descriptor.
        while !memory.reads.load(Ordering::Acquire) {
            thread::yield_now();
        }
        Ok(memory)
    }

    fn read(&'static self) -> ! {
        // If the kernel cannot do that, the thread notices that the program closes the descriptor.
        self.watch.keep_open();
        self.reads.store(true, Ordering::Release);
        while self.watch.wait() {
            self.news.note(|| self.watch.next());
        }
        // Nothing reports what happens to the memory that was watched.
        let mut all = Some(WatchedChange { range: 0..usize::MAX, ahead: true });
        self.news.note(|| all.take());
        loop {
            signal::pause();
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
    /// Starts the thread, unless GASNET_FIREHOSE_MONITOR forbids it or the system does: then the
    /// monitor notices nothing, and the error says why. The bytes of `segment` stay mapped.
    pub(in crate::conduit) fn start(segment: MemoryExtent) -> (UnmapMonitor, Option<io::Error>) {
        let (memory, error) = match WatchedMemory::start() {
            Ok(memory) => (Some(memory), None),
            Err(e) => (None, Some(e)),
        };
        (UnmapMonitor { memory, segment }, error)
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
    pub(in crate::conduit) const REMEDY: &str = "Allow userfaultfd (Linux 5.11, GASNET_FIREHOSE_MONITOR not 0) and a thread \
         for it (`ulimit -u`), or set GASNET_DISABLE_MUNMAP=1 if the program itself unmaps no \
         memory.";
}

impl Monitor for UnmapMonitor {
    fn watch(&self, block: MemoryExtent) {
        if let Some(memory) = self.watcher(block) {
            let refused = memory.watch.watch(block.start..block.end);
            memory.refused.lock().set(block, refused);
        }
    }

    fn watches(&self, extent: MemoryExtent) -> bool {
        self.watcher(extent).is_none_or(|memory| {
            !memory.dropped.lock().touches(extent, clock::now_ns())
                && !memory.refused.lock().touches(extent)
                && memory.watch.is_watching(extent.start..extent.end)
        })
    }

    fn unwatch(&self, block: MemoryExtent) {
        if let Some(memory) = self.watcher(block) {
            let watched = memory.refused.lock().take_others(block);
            watched.into_iter().for_each(|pages| memory.watch.unwatch(pages));
        }
    }

    #[inline]
    fn has_news(&self) -> bool {
        self.memory.is_some_and(|memory| memory.news.any())
    }

    fn take(&self) -> Option<MemoryExtent> {
        let memory = self.memory?;
        let change = memory.news.take()?;
        let extent = MemoryExtent { start: change.range.start, end: change.range.end };
        if change.ahead {
            memory.dropped.lock().note(extent, clock::now_ns());
        }
        Some(extent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sys::limits::page_size;
    use sys::memory::Mapping;

    const SECOND: u64 = 1_000_000_000;

    fn extent(start: usize, end: usize) -> MemoryExtent {
        MemoryExtent { start, end }
    }

    #[test]
    fn dropped_ranges_are_known_for_a_while() {
        let mut dropped = DroppedRanges::default();
        dropped.note(extent(0x1000, 0x2000), 0);
        assert!(dropped.touches(extent(0x1800, 0x3000), SECOND));
        assert!(!dropped.touches(extent(0x2000, 0x3000), SECOND));
        assert!(!dropped.touches(extent(0x1800, 0x3000), SECOND + 1));
        for i in 0..1000 {
            dropped.note(extent(i * 0x1000, (i + 1) * 0x1000), SECOND);
        }
        assert!(dropped.recent.len() <= DroppedRanges::MOST);
        assert!((0..1000).all(|i| dropped.touches(extent(i * 0x1000, i * 0x1000 + 8), SECOND)));
    }

    /// A monitor that notices changes; nothing where the system allows none.
    fn started() -> Option<UnmapMonitor> {
        let (monitor, unnoticed) = UnmapMonitor::start(MemoryExtent::default());
        if let Some(why) = &unnoticed {
            eprintln!("skipped: this system allows no userfaultfd: {why}");
        }
        unnoticed.is_none().then_some(monitor)
    }

    /// A pin that is made right after the report of a drop is not kept.
    #[test]
    fn memory_that_is_being_dropped_counts_as_not_watched() {
        let Some(monitor) = started() else { return };
        let page = page_size();
        let mapping = Mapping::anonymous(4 * page).expect("memory");
        let start = mapping.base().addr().get();
        let (one, other) = (extent(start, start + page), extent(start + page, start + 4 * page));
        monitor.watch(extent(start, start + 4 * page));
        assert!(monitor.watches(one) && monitor.watches(other));
        let mut report = Some(WatchedChange { range: start..start + page, ahead: true });
        // The thread that reads waits: nothing else is watched.
        monitor.memory.expect("it notices").news.note(|| report.take());
        assert!(monitor.has_news() && monitor.take() == Some(one) && monitor.take().is_none());
        assert!(!monitor.watches(one) && monitor.watches(other));
        monitor.unwatch(extent(start, start + 4 * page));
    }

    /// What the program watches by a userfaultfd of its own is not taken for the library's.
    #[test]
    fn memory_that_the_program_watches_counts_as_not_watched() {
        let Some(monitor) = started() else { return };
        let page = page_size();
        let mapping = Mapping::anonymous(4 * page).expect("memory");
        let start = mapping.base().addr().get();
        let block = extent(start, start + 4 * page);
        let of_program = UnmapWatch::open(WatchKinds::All).expect("as above");
        let theirs = start + page..start + 2 * page;
        assert!(of_program.watch(theirs.clone()).is_empty());
        monitor.watch(block);
        assert!(monitor.watches(extent(start, start + page)));
        assert!(!monitor.watches(extent(start, start + 2 * page)) && !monitor.watches(block));
        assert!(monitor.watches(extent(theirs.end, block.end)));
        monitor.unwatch(block);
        assert!(of_program.is_watching(theirs.clone()));
        // A later watch of the block counts.
        of_program.unwatch(theirs);
        monitor.watch(block);
        assert!(monitor.watches(block));
        monitor.unwatch(block);
    }

    #[test]
    fn what_was_refused_is_known_until_its_block_is_watched_no_more() {
        let (mut refused, block) = (RefusedPages::default(), extent(0x8000, 0x10000));
        refused.set(block, [0x8000..0x9000, 0xc000..0xe000].into());
        assert!(
            refused.touches(extent(0x8fff, 0x9001)) && refused.touches(extent(0xd000, 0xd001))
        );
        assert!(
            !refused.touches(extent(0x9000, 0xc000)) && !refused.touches(extent(0xe000, 0x10000))
        );
        assert!(!refused.touches(extent(0x20000, 0x28000)));
        assert_eq!(refused.take_others(block), [0x9000..0xc000, 0xe000..0x10000]);
        assert!(!refused.touches(block));
        let all = block.start..block.end;
        assert_eq!(refused.take_others(block), [all]);
    }
}
