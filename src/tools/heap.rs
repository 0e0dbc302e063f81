//! Debug malloc services: the C library's heap with fences around every object and a record of it, so that writes past its
//! ends, wrong and repeated frees, writes after the free and leaks are noticed and named. Called by `capi::heap` for clients
//! compiled with GASNET_DEBUGMALLOC; usable without a job.
//!
//! The record is kept apart from the objects, where a client that writes astray does not reach it. Each call looks at one
//! object more, in turn, or at all of them with GASNET_MALLOC_EXTRACHECK. Invariant: an object is in the record from its
//! allocation until its memory goes back to the C library.

use crate::{env, report};
use core::ffi::c_void;
use core::fmt::Write;
use core::ptr;
use core::sync::atomic::{AtomicBool, Ordering};
use std::collections::BTreeMap;
use std::ffi::CString;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// Bytes of the fence before an object; keeps its alignment that of malloc.
const FRONT: usize = 16;
/// Bytes of the fence after an object.
const BACK: usize = 16;
/// What the fences are filled with, mixed with the address of the object.
const FENCE: u64 = 0xFE9C_E5A5_5AE9_C0FE;

/// What `gasnett_getheapstats` tells (`gasnett_heapstats_t`). Bytes are those that the client asked for, except of the overhead.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeapStats {
    /// Bytes ever allocated.
    pub allocated_bytes: u64,
    /// Bytes ever freed.
    pub freed_bytes: u64,
    /// Bytes allocated now.
    pub live_bytes: u64,
    /// Most bytes allocated at a time.
    pub live_bytes_max: u64,
    /// Objects ever allocated.
    pub allocated_objects: u64,
    /// Objects ever freed.
    pub freed_objects: u64,
    /// Objects allocated now.
    pub live_objects: u64,
    /// Most objects allocated at a time.
    pub live_objects_max: u64,
    /// Bytes that fences take now, and objects that are kept after their free.
    pub overhead_bytes: u64,
}

/// An object, by its address in the record.
#[derive(Clone, Debug)]
struct Object {
    size: usize,
    /// Where it was allocated, as `file:line`.
    made: Box<str>,
    /// Where it was freed, if its memory is kept nevertheless.
    freed: Option<Box<str>>,
}

/// What GASNET_MALLOC_* ask for.
#[derive(Clone, Debug)]
struct HeapOptions {
    init: Option<u64>,
    clobber: Option<u64>,
    /// Freed memory is kept.
    keep: bool,
    /// Kept memory is looked at: it must stay clobbered.
    scan_freed: bool,
    check_all: bool,
}

#[derive(Debug)]
struct Heap {
    options: HeapOptions,
    objects: BTreeMap<usize, Object>,
    stats: HeapStats,
    /// The object that was looked at last.
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

/// The byte at `i` of a pattern: a byte repeated, or a word repeated.
fn pattern_byte(pattern: u64, i: usize) -> u8 {
    if pattern <= 0xff { pattern as u8 } else { pattern.to_ne_bytes()[i % 8] }
}

/// # Safety
/// `n` bytes at `at` must be writable.
unsafe fn fill(at: usize, n: usize, pattern: u64) {
    for i in 0..n {
        // SAFETY: the caller's promise.
        unsafe { (at as *mut u8).add(i).write(pattern_byte(pattern, i)) };
    }
}

/// The first of `n` bytes that is not as it was filled.
///
/// # Safety
/// `n` bytes at `at` must be readable.
unsafe fn spoilt(at: usize, n: usize, pattern: u64) -> Option<usize> {
    // SAFETY: the caller's promise.
    (0..n).find(|&i| unsafe { (at as *const u8).add(i).read() } != pattern_byte(pattern, i))
}

fn fence(address: usize) -> u64 {
    FENCE ^ (address as u64).rotate_left(16) | 1 << 63
}

impl Heap {
    /// Ends the job if something has written where it should not have, at this object.
    fn check(&self, address: usize, function: &str, place: &str) {
        let Some(o) = self.objects.get(&address) else { return };
        let (size, made) = (o.size, &o.made);
        // SAFETY: an object in the record has its fences around it.
        let (front, back) = unsafe {
            (
                spoilt(address - FRONT, FRONT, fence(address)),
                spoilt(address + size, BACK, fence(address)),
            )
        };
        let kept = match (&o.freed, self.options.clobber) {
            // SAFETY: the memory of an object in the record is there, freed or not.
            (Some(_), Some(pattern)) if self.options.scan_freed => unsafe {
                spoilt(address, size, pattern)
            },
            _ => None,
        };
        let (what, at) = match (front, back, kept) {
            (Some(i), ..) => ("in front of it", address - FRONT + i),
            (_, Some(i), _) => ("behind it", address + size + i),
            (.., Some(i)) => ("in it after it was freed", address + i),
            _ => return,
        };
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

    /// Looks at the next object in turn, or at all.
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
        let Some(whole) = size.checked_add(FRONT + BACK) else { no_memory(function, size, place) };
        let Some(base) = sys::heap::allocate(whole) else { no_memory(function, size, place) };
        let base = base.as_ptr() as usize;
        let address = base + FRONT;
        // SAFETY: fences and object are within what malloc has just returned.
        unsafe {
            fill(base, FRONT, fence(address));
            fill(address + size, BACK, fence(address));
            if let Some(pattern) = self.options.init {
                fill(address, size, pattern);
            }
        }
        self.objects.insert(address, Object { size, made: place.into(), freed: None });
        let s = &mut self.stats;
        s.allocated_bytes += size as u64;
        s.allocated_objects += 1;
        s.live_bytes += size as u64;
        s.live_objects += 1;
        s.live_bytes_max = s.live_bytes_max.max(s.live_bytes);
        s.live_objects_max = s.live_objects_max.max(s.live_objects);
        s.overhead_bytes += (FRONT + BACK) as u64;
        address
    }

    /// The size of a live object at this address; ends the job if there is none.
    fn size_of(&self, address: usize, function: &str, place: &str) -> usize {
        match self.objects.get(&address) {
            Some(o) if o.freed.is_none() => return o.size,
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
            .filter(|(a, o)| address - **a < o.size + BACK);
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
                 GASNET_MALLOC_LEAKALL=1 tells where it was freed."
            ),
        )
    }

    fn free(&mut self, address: usize, function: &str, place: &str) {
        let size = self.size_of(address, function, place);
        self.check(address, function, place);
        self.check_some(function, place);
        if let Some(pattern) = self.options.clobber {
            // SAFETY: a live object of this size.
            unsafe { fill(address, size, pattern) };
        }
        let s = &mut self.stats;
        s.freed_bytes += size as u64;
        s.freed_objects += 1;
        s.live_bytes -= size as u64;
        s.live_objects -= 1;
        if self.options.keep {
            s.overhead_bytes += size as u64;
            if let Some(o) = self.objects.get_mut(&address) {
                o.freed = Some(place.into());
            }
        } else {
            s.overhead_bytes -= (FRONT + BACK) as u64;
            self.objects.remove(&address);
            // SAFETY: malloc returned it, and it has just left the record.
            unsafe { sys::heap::free((address - FRONT) as *mut u8) };
        }
    }
}

fn no_memory(function: &str, size: usize, place: &str) -> ! {
    report::fatal(
        format_args!("{function}() at {place}: there is no memory for {size} bytes"),
        format_args!("Free memory, or raise the limits of the process (ulimit -v)."),
    )
}

/// `size` bytes; the job ends if there are none. Null for no bytes at all.
pub fn malloc(size: usize, function: &str, place: &str) -> *mut c_void {
    if size == 0 {
        return ptr::null_mut();
    }
    heap().allocate(size, function, place) as *mut c_void
}

/// `n` objects of `size` zeroed bytes.
pub fn calloc(n: usize, size: usize, function: &str, place: &str) -> *mut c_void {
    let Some(bytes) = n.checked_mul(size) else { no_memory(function, usize::MAX, place) };
    let p = malloc(bytes, function, place);
    if !p.is_null() {
        // SAFETY: as many bytes as were just allocated.
        unsafe { ptr::write_bytes(p.cast::<u8>(), 0, bytes) };
    }
    p
}

/// Frees an object; nothing for null.
pub fn free(p: *mut c_void, function: &str, place: &str) {
    if !p.is_null() {
        heap().free(p as usize, function, place);
    }
}

/// An object of another size with the same bytes, as far as it has room.
pub fn realloc(p: *mut c_void, size: usize, function: &str, place: &str) -> *mut c_void {
    if p.is_null() {
        return malloc(size, function, place);
    }
    let mut heap = heap();
    let old = heap.size_of(p as usize, function, place);
    let new = if size == 0 { 0 } else { heap.allocate(size, function, place) };
    if new != 0 {
        // SAFETY: two objects of these sizes, which are distinct.
        unsafe { ptr::copy_nonoverlapping(p.cast::<u8>(), new as *mut u8, old.min(size)) };
    }
    heap.free(p as usize, function, place);
    new as *mut c_void
}

/// Ends the job unless there is a live object at this address that is as it should be.
pub fn check(p: *mut c_void, place: &str) {
    let heap = heap();
    heap.size_of(p as usize, "gasnett_debug_memcheck", place);
    heap.check(p as usize, "gasnett_debug_memcheck", place);
}

/// Looks at the next object in turn.
pub fn check_one(place: &str) {
    heap().check_some("gasnett_debug_memcheck_one", place);
}

/// Looks at all objects.
pub fn check_all(place: &str) {
    heap().check_all("gasnett_debug_memcheck_all", place);
}

/// What the heap amounts to.
pub fn stats() -> HeapStats {
    heap().stats
}

/// The file that GASNET_MALLOCFILE names for this process, with its rank for each `%`; `None` if no report is wanted of it.
fn report_file() -> Option<CString> {
    let rank = report::rank().unwrap_or(0);
    let text = env::MALLOCFILE.get()?;
    if env::MALLOCNODES.get().is_some_and(|ranks| !ranks.has(rank)) {
        return None;
    }
    CString::new(text.replace('%', &rank.to_string())).ok()
}

/// Where the report at the end goes, once that is known.
static REPORT: Mutex<Option<CString>> = Mutex::new(None);

/// Has a report of the heap written when this process ends, if GASNET_MALLOCFILE asks for one of it.
pub fn plan_report() {
    *REPORT.lock().unwrap_or_else(PoisonError::into_inner) = report_file();
}

/// As [`plan_report`] when an object is first allocated, in case there is no job that calls it.
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

/// Writes the report: the counts, and the objects that were never freed, one line each. Allocates nothing, and writes nothing if
/// some thread is just using the heap.
pub fn write_report() {
    static WRITTEN: AtomicBool = AtomicBool::new(false);
    let (Ok(path), Some(heap)) = (REPORT.try_lock(), HEAP.get()) else { return };
    let (Some(path), Ok(heap)) = (path.as_deref(), heap.try_lock()) else { return };
    if WRITTEN.swap(true, Ordering::Relaxed) {
        return;
    }
    let mut file = match path.to_bytes() {
        b"stdout" => sys::file::TextFile::stream(1),
        b"stderr" | b"-" => sys::file::TextFile::stream(2),
        _ => sys::file::TextFile::create(path),
    };
    let s = &heap.stats;
    let _ = writeln!(
        file,
        "heap of process {}: {} objects of {} bytes allocated, {} of {} bytes freed; at most {} of {} bytes at a time; {} bytes \
         of overhead\n{} objects of {} bytes were not freed",
        report::rank().unwrap_or(0),
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
        let _ = writeln!(file, "{} bytes at {address:#x}, allocated at {}", o.size, o.made);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns() {
        let mut bytes = [0u8; 21];
        let at = bytes.as_mut_ptr() as usize;
        for pattern in [7, 0x0102_0304_0506_0708] {
            // SAFETY: the array.
            unsafe {
                fill(at, 21, pattern);
                assert_eq!(spoilt(at, 21, pattern), None);
                (at as *mut u8).add(13).write(0xee);
                assert_eq!(spoilt(at, 21, pattern), Some(13));
            }
        }
    }

    #[test]
    fn an_object_from_its_birth_to_its_end() {
        let before = stats();
        let p = calloc(3, 5, "calloc", "here:1");
        check(p, "here:2");
        // SAFETY: 15 zeroed bytes.
        unsafe {
            assert_eq!(p.cast::<u8>().add(14).read(), 0);
            p.cast::<u8>().write(9);
        }
        let q = realloc(p, 100, "realloc", "here:3");
        // SAFETY: 100 bytes.
        assert_eq!(unsafe { q.cast::<u8>().read() }, 9);
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
