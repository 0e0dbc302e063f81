//! Debug malloc: the C library's heap with a record of every object and fences around it. It
//! finds and reports writes beyond the ends of an object, wrong and repeated frees, writes
//! after the free, and leaks.
//!
//! Called by `capi::heap` for clients compiled with GASNET_DEBUGMALLOC; usable without a job.
//! Invariant: an object is in the record from its allocation until its memory returns to the C
//! library. The record is kept apart from the objects, where stray writes of the client do not
//! reach it. Each call checks one more object in turn, or all of them with
//! GASNET_MALLOC_EXTRACHECK.

use super::fenced_block::{FENCES, FencedBlock};
use crate::{env, report};
use core::ffi::c_void;
use core::fmt::Write;
use core::ptr;
use core::sync::atomic::{AtomicBool, Ordering};
use std::collections::BTreeMap;
use std::ffi::{CStr, CString};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use sys::byte_count::ByteCount;

/// The counters that `gasnett_getheapstats` returns (`gasnett_heapstats_t`). Bytes are those
/// that the client requested, except for the overhead.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeapStats {
    /// Bytes ever allocated.
    pub allocated_bytes: u64,
    /// Bytes ever freed.
    pub freed_bytes: u64,
    /// Bytes allocated now.
    pub live_bytes: u64,
    /// Largest number of bytes allocated at a time.
    pub live_bytes_max: u64,
    /// Objects ever allocated.
    pub allocated_objects: u64,
    /// Objects ever freed.
    pub freed_objects: u64,
    /// Objects allocated now.
    pub live_objects: u64,
    /// Largest number of objects allocated at a time.
    pub live_objects_max: u64,
    /// Bytes of the fences, and of objects that are kept after their free.
    pub overhead_bytes: u64,
}

/// An object of the record.
#[derive(Debug)]
struct HeapObject {
    block: FencedBlock,
    /// Where it was allocated, as `file:line`.
    made: Box<str>,
    /// Where it was freed, if its memory is kept.
    freed: Option<Box<str>>,
}

/// The settings of GASNET_MALLOC_*.
#[derive(Clone, Debug)]
struct HeapOptions {
    /// Fill value of allocated memory.
    init: Option<u64>,
    /// Fill value of freed memory.
    clobber: Option<u64>,
    /// Whether freed memory is kept.
    keep: bool,
    /// Whether kept memory is checked for writes.
    scan_freed: bool,
    check_all: bool,
}

#[derive(Debug)]
struct Heap {
    options: HeapOptions,
    /// The objects, by address.
    objects: BTreeMap<usize, HeapObject>,
    stats: HeapStats,
    /// The object that was checked last.
    cursor: usize,
}

impl HeapOptions {
    fn read() -> HeapOptions {
        let scan_freed = env::MALLOC_SCANFREED.get();
        let clobber = scan_freed || env::MALLOC_CLOBBER.get();
        HeapOptions {
            init: env::MALLOC_INIT.get().then(|| env::MALLOC_INITVAL.get()),
            clobber: clobber.then(|| env::MALLOC_CLOBBERVAL.get()),
            keep: scan_freed || env::MALLOC_LEAKALL.get(),
            scan_freed,
            check_all: env::MALLOC_EXTRACHECK.get(),
        }
    }
}

static HEAP: OnceLock<Mutex<Heap>> = OnceLock::new();

fn heap() -> MutexGuard<'static, Heap> {
    let heap = HEAP.get_or_init(|| {
        Mutex::new(Heap {
            options: HeapOptions::read(),
            objects: BTreeMap::new(),
            stats: HeapStats::default(),
            cursor: 0,
        })
    });
    heap.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Heap {
    /// Ends the job if the client has written outside this object, or to it after its free.
    fn check(&self, address: usize, function: &str, place: &str) {
        let Some(o) = self.objects.get(&address) else { return };
        let kept = self.options.scan_freed && o.freed.is_some();
        let before = || Some(("in front of it", o.block.damage_before()?));
        let behind = || Some(("behind it", o.block.damage_behind()?));
        let inside = || Some(("in it after it was freed", o.block.damage_inside()?));
        let damage = before().or_else(behind).or_else(|| if kept { inside() } else { None });
        let Some((what, at)) = damage else { return };
        let (size, made) = (o.block.size(), &o.made);
        let freed = o.freed.as_deref().map(|f| format!(", freed at {f}")).unwrap_or_default();
        report::fatal(
            format_args!(
                "heap corruption: something wrote {what}, at {at:#x}; the object has {size} bytes at {address:#x}, allocated at \
                 {made}{freed}; found by {function} at {place}"
            ),
            format_args!(
                "Look for writes past the ends of objects; GASNET_MALLOC_EXTRACHECK=1 finds them sooner, \
                 GASNET_MALLOC_SCANFREED=1 also those after a free."
            ),
        );
    }

    fn check_all(&self, function: &str, place: &str) {
        for &address in self.objects.keys() {
            self.check(address, function, place);
        }
    }

    /// Checks the next object in turn, or all.
    fn check_some(&mut self, function: &str, place: &str) {
        if self.options.check_all {
            return self.check_all(function, place);
        }
        let next =
            self.objects.range(self.cursor + 1..).next().or_else(|| self.objects.iter().next());
        if let Some((&address, _)) = next {
            self.cursor = address;
            self.check(address, function, place);
        }
    }

    fn allocate(&mut self, size: usize, function: &str, place: &str) -> usize {
        self.check_some(function, place);
        let Some(mut block) = FencedBlock::allocate(size) else {
            no_memory(function, size, place)
        };
        let address = block.address();
        if let Some(pattern) = self.options.init {
            block.fill(pattern);
        }
        self.objects.insert(address, HeapObject { block, made: place.into(), freed: None });
        let s = &mut self.stats;
        s.allocated_bytes += size as u64;
        s.allocated_objects += 1;
        s.live_bytes += size as u64;
        s.live_objects += 1;
        s.live_bytes_max = s.live_bytes_max.max(s.live_bytes);
        s.live_objects_max = s.live_objects_max.max(s.live_objects);
        s.overhead_bytes += FENCES as u64;
        address
    }

    /// The size of the live object at this address. Ends the job if there is none.
    fn size_of(&self, address: usize, function: &str, place: &str) -> usize {
        match self.objects.get(&address) {
            Some(o) if o.freed.is_none() => return o.block.size(),
            Some(o) => report::fatal(
                format_args!(
                    "{function}() at {place}: the object at {address:#x}, allocated at {}, was freed at {} already",
                    o.made,
                    o.freed.as_deref().unwrap_or("an unknown place")
                ),
                format_args!("Free an object once, and do not use it afterwards."),
            ),
            None => {}
        }
        let around = self
            .objects
            .range(..address)
            .next_back()
            .filter(|(a, o)| address - **a < o.block.size() + FENCES / 2);
        let inside = around.map(|(a, o)| {
            format!(", {} bytes into an object that was allocated at {}", address - a, o.made)
        });
        report::fatal(
            format_args!(
                "{function}() at {place}: {address:#x} is no object of gasnett_debug_malloc{}",
                inside.unwrap_or_default()
            ),
            format_args!(
                "Give an address that gasnett_debug_malloc and its like returned and that is not freed yet; \
                 GASNET_MALLOC_LEAKALL=1 says where it was freed."
            ),
        )
    }

    fn free(&mut self, address: usize, function: &str, place: &str) {
        let size = self.size_of(address, function, place);
        self.check(address, function, place);
        self.check_some(function, place);
        let s = &mut self.stats;
        s.freed_bytes += size as u64;
        s.freed_objects += 1;
        s.live_bytes -= size as u64;
        s.live_objects -= 1;
        let Some(mut o) = self.objects.remove(&address) else { return };
        if let Some(pattern) = self.options.clobber {
            o.block.fill(pattern);
        }
        if self.options.keep {
            s.overhead_bytes += size as u64;
            o.freed = Some(place.into());
            self.objects.insert(address, o);
        } else {
            s.overhead_bytes -= FENCES as u64;
            drop(o.block);
        }
    }
}

fn no_memory(function: &str, size: usize, place: &str) -> ! {
    report::fatal(
        format_args!("{function}() at {place}: no memory for {}", ByteCount(size as u64)),
        format_args!("Free memory, or raise the limits of the process (ulimit -v)."),
    )
}

/// An object of `size` bytes; null for 0. Ends the job if there is no memory.
pub fn malloc(size: usize, function: &str, place: &str) -> *mut c_void {
    if size == 0 {
        return ptr::null_mut();
    }
    ptr::with_exposed_provenance_mut(heap().allocate(size, function, place))
}

/// `n` objects of `size` zeroed bytes.
pub fn calloc(n: usize, size: usize, function: &str, place: &str) -> *mut c_void {
    let Some(bytes) = n.checked_mul(size) else { no_memory(function, usize::MAX, place) };
    if bytes == 0 {
        return ptr::null_mut();
    }
    let mut heap = heap();
    let address = heap.allocate(bytes, function, place);
    if let Some(o) = heap.objects.get_mut(&address) {
        o.block.fill(0);
    }
    ptr::with_exposed_provenance_mut(address)
}

/// Frees an object; ignores null.
pub fn free(p: *mut c_void, function: &str, place: &str) {
    if !p.is_null() {
        heap().free(p as usize, function, place);
    }
}

/// An object of another size, with as many of the bytes as both have.
pub fn realloc(p: *mut c_void, size: usize, function: &str, place: &str) -> *mut c_void {
    if p.is_null() {
        return malloc(size, function, place);
    }
    let mut heap = heap();
    heap.size_of(p as usize, function, place);
    let new = if size == 0 { 0 } else { heap.allocate(size, function, place) };
    if let (Some(to), Some(from)) = (heap.objects.get(&new), heap.objects.get(&(p as usize))) {
        to.block.copy_from(&from.block);
    }
    heap.free(p as usize, function, place);
    ptr::with_exposed_provenance_mut(new)
}

/// Ends the job unless there is an intact live object at this address.
pub fn check(p: *mut c_void, place: &str) {
    let heap = heap();
    heap.size_of(p as usize, "gasnett_debug_memcheck", place);
    heap.check(p as usize, "gasnett_debug_memcheck", place);
}

/// Checks the next object in turn.
pub fn check_one(place: &str) {
    heap().check_some("gasnett_debug_memcheck_one", place);
}

/// Checks all objects.
pub fn check_all(place: &str) {
    heap().check_all("gasnett_debug_memcheck_all", place);
}

/// The counters of the heap.
pub fn stats() -> HeapStats {
    heap().stats
}

/// The file that GASNET_MALLOCFILE names for this rank; `None` if it writes no report.
fn report_file() -> Option<CString> {
    let rank = report::rank().unwrap_or(0);
    let path = env::MALLOCFILE.file_of(rank)?;
    if env::MALLOCNODES.get().is_some_and(|ranks| !ranks.has(rank)) {
        return None;
    }
    Some(path)
}

/// The file of the report at exit, once it is known, and the process that writes it: not a forked
/// child, which has the memory of its parent.
static REPORT: Mutex<Option<(CString, u32)>> = Mutex::new(None);

/// The stream that this name of a file means, if it does.
fn stream_of(path: &CStr) -> Option<i32> {
    match path.to_bytes() {
        b"stdout" => Some(1),
        b"stderr" | b"-" => Some(2),
        _ => None,
    }
}

/// Reads which file, if any, receives a report when this process exits, and makes it empty: ranks
/// that share the file append to it at their exit.
pub fn plan_report() {
    let planned = report_file().map(|path| (path, sys::process::pid()));
    let mut report = REPORT.lock().unwrap_or_else(PoisonError::into_inner);
    if *report != planned {
        let file = planned.as_ref().filter(|(path, _)| stream_of(path).is_none());
        file.into_iter().for_each(|(path, _)| sys::file::empty(path));
        *report = planned;
    }
}

/// As [`plan_report`], at the first allocation: a program without a job calls nothing else.
pub fn plan_first_report() {
    static PLANNED: OnceLock<()> = OnceLock::new();
    PLANNED.get_or_init(|| {
        plan_report();
        sys::process::on_exit(at_end);
    });
}

extern "C" fn at_end(_code: i32, _: *mut c_void) {
    write_report();
}

/// Writes the report: the counters, and a line for each leaked object. Allocates nothing;
/// writes nothing if a thread is using the heap.
pub fn write_report() {
    static WRITTEN: AtomicBool = AtomicBool::new(false);
    let (Ok(planned), Some(heap)) = (REPORT.try_lock(), HEAP.get()) else { return };
    let (Some((path, pid)), Ok(heap)) = (planned.as_ref(), heap.try_lock()) else { return };
    if *pid != sys::process::pid() {
        return;
    }
    if WRITTEN.swap(true, Ordering::Relaxed) {
        return;
    }
    let mut file = match stream_of(path) {
        Some(fd) => sys::file::TextFile::stream(fd),
        None => sys::file::TextFile::append(path),
    };
    let (s, rank) = (&heap.stats, report::rank().unwrap_or(0));
    let _ = writeln!(
        file,
        "heap of rank {rank}: {} objects of {} bytes allocated, {} of {} bytes freed; at most {} of {} bytes at a time; {} bytes \
         of overhead\nheap of rank {rank}: {} objects of {} bytes were not freed",
        s.allocated_objects,
        s.allocated_bytes,
        s.freed_objects,
        s.freed_bytes,
        s.live_objects_max,
        s.live_bytes_max,
        s.overhead_bytes,
        s.live_objects,
        s.live_bytes
    );
    for (address, o) in heap.objects.iter().filter(|(_, o)| o.freed.is_none()) {
        let (bytes, made) = (o.block.size(), &o.made);
        let _ = writeln!(
            file,
            "heap of rank {rank}: {bytes} bytes at {address:#x}, allocated at {made}"
        );
    }
    let name = path.to_bytes().escape_ascii();
    match file.finish() {
        Ok(()) => {}
        Err(e) if file.is_open() => report::incomplete_file("GASNET_MALLOCFILE", name, e),
        Err(_) => {
            report::line(format_args!(
                "GASNET_MALLOCFILE: the report cannot be written to {name}"
            ));
            report::line(format_args!("  Name a file in a folder where you may write."));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_from_its_birth_to_its_end() {
        let before = stats();
        let p = calloc(3, 5, "calloc", "here:1");
        check(p, "here:2");
        let mut bytes = [1; 15];
        assert_eq!(sys::attach::peek(p.cast(), &mut bytes), 15);
        assert_eq!(bytes, [0; 15]);
        let q = realloc(p, 100, "realloc", "here:3");
        assert_eq!(sys::attach::peek(q.cast(), &mut bytes), 15);
        assert_eq!(bytes, [0; 15]);
        check_all("here:4");
        let now = stats();
        assert_eq!(now.live_objects, before.live_objects + 1);
        assert_eq!(now.live_bytes, before.live_bytes + 100);
        free(q, "free", "here:5");
        free(ptr::null_mut(), "free", "here:6");
        assert_eq!(stats().live_bytes, before.live_bytes);
        assert_eq!(stats().overhead_bytes, before.overhead_bytes);
    }
}
