//! What the program does to memory that is watched: it unmaps it, maps other memory in its place,
//! moves it, or drops its contents. By a userfaultfd (Linux 4.14, `CONFIG_USERFAULTFD`).
//!
//! Used by the conduit. Invariant: the call that changes watched memory (`munmap`, `mmap` with
//! `MAP_FIXED`, `mremap`, `madvise`) returns when [`UnmapWatch::next`] has returned its change;
//! `madvise` makes the change only then. So the thread that reads must not wait for one that may
//! make such a call, and does not allocate.
//!
//! Memory is registered for the faults of write protection, since a registration needs a kind of
//! fault. Nothing is ever protected, so none happens.
//!
//! A program may close descriptors that it has not opened. The thread that reads has a table of
//! descriptors of its own. The other threads compare the file first. If it is another one, they
//! watch no further memory. Before Linux 5.12 all userfaultfds, eventfds and their like have one
//! identity.

use super::descriptor;
use super::limits::page_size;
use super::pages::each_part;
use super::poll::{self, PollEntry};
use super::thread;
use core::cell::RefCell;
use core::ops::Range;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

/// `struct uffdio_api`
#[repr(C)]
struct UffdApi {
    api: u64,
    features: u64,
    ioctls: u64,
}

/// `struct uffdio_register`
#[repr(C)]
struct UffdRegister {
    start: u64,
    len: u64,
    mode: u64,
    ioctls: u64,
}

/// `struct uffdio_range`
#[repr(C)]
struct UffdRange {
    start: u64,
    len: u64,
}

/// `struct uffdio_writeprotect`
#[repr(C)]
struct UffdWriteProtect {
    start: u64,
    len: u64,
    mode: u64,
}

/// `struct uffd_msg`, in 8-byte words: the kind of event is the lowest byte of the first.
type UffdMessage = [u64; 4];

const API: u64 = 0xaa;
const IOCTL_API: u64 = 0xc018_aa3f;
const IOCTL_REGISTER: u64 = 0xc020_aa00;
const IOCTL_UNREGISTER: u64 = 0x8010_aa01;
const IOCTL_WRITE_PROTECT: u64 = 0xc018_aa06;
/// Tries of a request that the kernel refuses while it reports a change.
const TRIES: u32 = 1000;
const MODE_WRITE_PROTECT: u64 = 2;
/// Of `userfaultfd`: faults of the program only, which needs no privilege (Linux 5.11).
const USER_MODE_ONLY: i32 = 1;

const WRITE_PROTECTION: u64 = 1;
const EVENTS: u64 = 1 << 2 | 1 << 3 | 1 << 6;
/// Write protection of shared memory (5.19), and without faults (6.7): then any memory can be
/// registered, such as that of files.
const WIDER: [u64; 3] = [1 << 12 | 1 << 15, 1 << 12, 0];

const EVENT_REMAP: u8 = 0x14;
const EVENT_REMOVE: u8 = 0x15;
const EVENT_UNMAP: u8 = 0x16;

/// Watches memory of this process.
#[derive(Debug)]
pub struct UnmapWatch {
    fd: OwnedFd,
    /// What tells it from other files.
    identity: [u64; 2],
}

/// The memory that can be watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchKinds {
    /// As much as the kernel allows.
    All,
    /// No memory of files, as on Linux before 6.7.
    NoFiles,
}

/// A change of watched memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchedChange {
    /// The bytes that change.
    pub range: Range<usize>,
    /// It is reported before it is made, at any time after that (`madvise`).
    pub ahead: bool,
}

/// A userfaultfd that reports events, with these further features.
fn open_with(features: u64) -> io::Result<UnmapWatch> {
    let flags = libc::O_CLOEXEC | libc::O_NONBLOCK;
    let open = |flags: i32| {
        // SAFETY: touches no memory.
        let fd = unsafe { libc::syscall(libc::SYS_userfaultfd, flags) };
        // SAFETY: the descriptor was just opened, so nothing else owns it.
        unsafe { descriptor::opened(fd as i32) }
    };
    // The plain form needs a privilege on most systems, and is the only one of older kernels.
    let fd = open(flags | USER_MODE_ONLY).or_else(|_| open(flags))?;
    let features = EVENTS | WRITE_PROTECTION | features;
    let mut api = UffdApi { api: API, features, ioctls: 0 };
    // SAFETY: the request says that the structure has 24 bytes, which it has; it is live.
    match unsafe { libc::ioctl(fd.as_raw_fd(), IOCTL_API as _, &mut api) } {
        0 => match descriptor::identity(fd.as_raw_fd()) {
            Some(identity) => Ok(UnmapWatch { fd, identity }),
            None => Err(io::Error::last_os_error()),
        },
        _ => Err(io::Error::last_os_error()),
    }
}

impl UnmapWatch {
    /// Watches nothing yet.
    ///
    /// # Errors
    /// The system has no userfaultfd with these events and write protection (5.7), or forbids it.
    pub fn open(kinds: WatchKinds) -> io::Result<UnmapWatch> {
        let mut last = io::ErrorKind::Unsupported.into();
        let skipped = usize::from(kinds == WatchKinds::NoFiles);
        for features in WIDER.into_iter().skip(skipped) {
            match open_with(features) {
                Ok(watch) => return Ok(watch),
                Err(e) => last = e,
            }
        }
        Err(last)
    }

    /// Its number, unless the program has closed that; another file may have it then.
    fn number(&self) -> Option<RawFd> {
        let fd = self.fd.as_raw_fd();
        (descriptor::identity(fd) == Some(self.identity)).then_some(fd)
    }

    /// Watches whole pages. Returns those that cannot be, in order: they are of another kind, not
    /// mapped, or a userfaultfd of the program watches them.
    pub fn watch(&self, pages: Range<usize>) -> Vec<Range<usize>> {
        let Some(fd) = self.number() else { return vec![pages] };
        let refused = RefCell::new(Vec::<Range<usize>>::new());
        each_part(pages, &|part| {
            let (start, len) = (part.start as u64, part.len() as u64);
            let mut request = UffdRegister { start, len, mode: MODE_WRITE_PROTECT, ioctls: 0 };
            // SAFETY: the request says that the structure has 32 bytes, which it has; it is live.
            let done = unsafe { libc::ioctl(fd, IOCTL_REGISTER as _, &mut request) } == 0;
            if !done && part.len() == page_size() {
                let mut refused = refused.borrow_mut();
                match refused.last_mut() {
                    Some(last) if last.end == part.start => last.end = part.end,
                    _ => refused.push(part),
                }
            }
            done
        });
        refused.into_inner()
    }

    /// No longer watches whole pages, of which some may be unmapped. [`UnmapWatch::watch`] has
    /// refused none of them: before Linux 6.17 the watch of another userfaultfd would end.
    pub fn unwatch(&self, pages: Range<usize>) {
        let Some(fd) = self.number() else { return };
        each_part(pages, &|part| {
            let mut request = UffdRange { start: part.start as u64, len: part.len() as u64 };
            // SAFETY: the request says that the structure has 16 bytes, which it has; it is live.
            unsafe { libc::ioctl(fd, IOCTL_UNREGISTER as _, &mut request) == 0 }
        });
    }

    /// Whether each of these whole pages is mapped and watched now. For each one the kernel is
    /// asked to protect nothing, which fails where there is no watch. [`UnmapWatch::watch`] has
    /// refused none of them: the kernel would take the watch of another userfaultfd for this one,
    /// and end its protection.
    pub fn is_watching(&self, pages: Range<usize>) -> bool {
        let Some(fd) = self.number() else { return false };
        let page = page_size();
        let watched = |start: usize| {
            for _ in 0..TRIES {
                let mut request =
                    UffdWriteProtect { start: start as u64, len: page as u64, mode: 0 };
                // SAFETY: the request says that the structure has 24 bytes, which it has; it is
                // live.
                if unsafe { libc::ioctl(fd, IOCTL_WRITE_PROTECT as _, &mut request) } == 0 {
                    return true;
                }
                if super::errno() != libc::EAGAIN {
                    break;
                }
                thread::yield_now();
            }
            false
        };
        pages.step_by(page).all(watched)
    }

    /// Starts the thread that reads: it runs `body` until the process ends, with all signals
    /// blocked.
    ///
    /// # Errors
    /// The system allows no further thread.
    pub fn start_reader<T: Sync + 'static>(
        body: fn(&'static T) -> !,
        of: &'static T,
    ) -> io::Result<()> {
        thread::start_forever(body, of)
    }

    /// Keeps the descriptor open for the calling thread, the one that reads, whatever the program
    /// closes. The thread has no other descriptor afterwards. False: the kernel cannot do that.
    pub fn keep_open(&self) -> bool {
        descriptor::keep_for_thread(self.fd.as_raw_fd())
    }

    /// Waits until [`UnmapWatch::next`] has something, or a signal arrives. False: the program has
    /// closed the descriptor, and nothing is watched any more.
    #[must_use]
    pub fn wait(&self) -> bool {
        poll::wait(&mut [PollEntry::reading_number(self.fd.as_raw_fd())], None);
        self.number().is_some()
    }

    /// A change that has not been reported; `None` if there is none now. Allocates nothing.
    pub fn next(&self) -> Option<WatchedChange> {
        loop {
            let mut message: UffdMessage = [0; 4];
            let bytes = size_of::<UffdMessage>();
            let to = message.as_mut_ptr().cast();
            // SAFETY: the buffer is live and has this many bytes.
            let n = unsafe { libc::read(self.fd.as_raw_fd(), to, bytes) };
            if n != bytes as isize {
                return None;
            }
            let [head, a, b, c] = message;
            let kind = head.to_ne_bytes()[0];
            let end = match kind {
                EVENT_REMAP => a + c,
                EVENT_REMOVE | EVENT_UNMAP => b,
                _ => continue,
            };
            let range = a as usize..end as usize;
            return Some(WatchedChange { range, ahead: kind == EVENT_REMOVE });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Mapping;
    use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::sync::Mutex;

    const PAGES: usize = 16;

    /// `None`, and says so, where the system allows no userfaultfd.
    fn opened() -> Option<UnmapWatch> {
        let failed = match UnmapWatch::open(WatchKinds::All) {
            Ok(watch) => return Some(watch),
            Err(e) => e,
        };
        let missing = [libc::ENOSYS, libc::EPERM].contains(&failed.raw_os_error().unwrap_or(0));
        assert!(missing, "{failed}");
        eprintln!("skipped: this system allows no userfaultfd: {failed}");
        None
    }

    #[test]
    fn pages_of_another_userfaultfd_are_refused() {
        let page = page_size();
        // Dropped after the others: nothing reads what happens when the memory is unmapped.
        let mapping = Mapping::anonymous(8 * page).expect("memory");
        let (Some(watch), Some(other)) = (opened(), opened()) else { return };
        let start = mapping.base().addr().get();
        let pages = |from: usize, to: usize| start + from * page..start + to * page;
        assert!(other.watch(pages(2, 4)).is_empty() && other.watch(pages(7, 8)).is_empty());
        assert_eq!(watch.watch(pages(0, 8)), [pages(2, 4), pages(7, 8)]);
        assert!(watch.is_watching(pages(0, 2)) && watch.is_watching(pages(4, 7)));
    }

    /// The program closes all descriptors: the reader still has its own.
    #[test]
    fn the_reader_keeps_a_descriptor_that_the_program_closes() {
        static READS: AtomicBool = AtomicBool::new(false);
        let body = || {
            // SAFETY: changes no memory; the other tests keep the table that this thread leaves.
            assert_eq!(unsafe { libc::unshare(libc::CLONE_FILES) }, 0);
            let Some(watch) = opened() else { return };
            // Its number is closed below.
            let watch: &'static UnmapWatch = Box::leak(Box::new(watch));
            let page = page_size();
            let mapping = Mapping::anonymous(4 * page).expect("memory");
            let start = mapping.base().addr().get();
            let (first, second) = (start..start + page, start + page..start + 2 * page);
            assert!(watch.watch(first.start..second.end).is_empty());
            let reader = std::thread::spawn(|| {
                let keeps = watch.keep_open();
                READS.store(true, Ordering::Release);
                while keeps && watch.wait() {
                    if let Some(change) = watch.next() {
                        return Some(change);
                    }
                }
                None
            });
            while !READS.load(Ordering::Acquire) {
                thread::yield_now();
            }
            let at = core::ptr::with_exposed_provenance_mut(first.start);
            // SAFETY: the number is that of the watch, which is never dropped; a page of the
            // mapping, which nothing else uses.
            unsafe {
                assert_eq!(libc::close(watch.fd.as_raw_fd()), 0);
                assert_eq!(libc::munmap(at, page), 0);
            }
            match reader.join().expect("no failure") {
                Some(change) => {
                    assert_eq!(change, WatchedChange { range: first, ahead: false });
                }
                None => {
                    // SAFETY: no descriptor has this number.
                    let ranges = unsafe { libc::syscall(libc::SYS_close_range, !0u32, !0u32, 0) };
                    assert_ne!(ranges, 0, "the reader has lost its descriptor");
                    eprintln!("skipped: this kernel closes no descriptors of one thread");
                }
            }
            assert!(!watch.wait() && !watch.is_watching(second.clone()));
            assert_eq!(watch.watch(second.clone()), [second]);
        };
        std::thread::spawn(body).join().expect("no failure");
    }

    #[test]
    fn what_happens_to_watched_memory_is_reported_before_the_call_returns() {
        let Some(watch) = opened() else { return };
        let (watch, seen) = (&watch, &Mutex::new(Vec::with_capacity(64)));
        let (stop, page) = (&AtomicBool::new(false), page_size());
        let read = &AtomicUsize::new(0);
        std::thread::scope(|s| {
            s.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    if let Some(change) = watch.next() {
                        seen.lock().unwrap().push(change);
                        read.fetch_add(1, Ordering::Release);
                    } else {
                        thread::yield_now();
                    }
                }
            });
            let mapping = Mapping::anonymous(PAGES * page).expect("memory");
            let start = mapping.base().addr().get();
            assert!(watch.watch(start..start + PAGES * page).is_empty());
            assert!(watch.is_watching(start..start + PAGES * page));
            watch.unwatch(start + 8 * page..start + PAGES * page);
            assert!(watch.is_watching(start..start + 8 * page));
            assert!(!watch.is_watching(start + 7 * page..start + 9 * page));
            let at = |n: usize| core::ptr::with_exposed_provenance_mut(start + n * page);
            // SAFETY: the pages are those of the mapping, which nothing else uses.
            unsafe {
                assert_eq!(libc::madvise(at(1), page, libc::MADV_DONTNEED), 0);
                assert_eq!(libc::munmap(at(9), page), 0);
                assert_eq!(libc::munmap(at(3), 2 * page), 0);
                let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
                let bits = libc::PROT_READ;
                for n in [3, 9] {
                    assert_eq!(libc::mmap(at(n), 2 * page, bits, flags, -1, 0), at(n));
                }
            }
            let changes = [(1..2, true), (3..5, false)].map(|(r, ahead)| {
                let range = start + r.start * page..start + r.end * page;
                WatchedChange { range, ahead }
            });
            // The reader notes a range after the call that made it has returned, or before.
            while read.load(Ordering::Acquire) < changes.len() {
                thread::yield_now();
            }
            assert_eq!(*seen.lock().unwrap(), changes);
            assert!(!watch.is_watching(start + 3 * page..start + 4 * page));
            // What is mapped anew is not watched; unmapping it needs no reader.
            watch.unwatch(start..start + PAGES * page);
            stop.store(true, Ordering::Relaxed);
            drop(mapping);
        });
    }
}
