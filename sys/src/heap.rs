//! The C library's heap, for memory that C code allocates or frees. Called by
//! `tools` and `capi`.

use core::cell::Cell;
use core::ffi::{CStr, c_char};
use core::mem::MaybeUninit;
use core::ptr::NonNull;
use std::io;

/// Uninitialised memory of this many bytes, aligned for every type of C; `None` if there is
/// none.
pub fn allocate(bytes: usize) -> Option<NonNull<u8>> {
    // SAFETY: any size may be requested.
    NonNull::new(unsafe { libc::malloc(bytes) }.cast())
}

/// Uninitialised memory of this many bytes, at a multiple of `align`, a power of two.
///
/// # Errors
/// `InvalidInput` if `align` is no power of two, `OutOfMemory` if there is no memory.
pub fn allocate_aligned(align: usize, bytes: usize) -> io::Result<*mut u8> {
    let mut p = core::ptr::null_mut();
    // SAFETY: `p` is a live variable; a wrong alignment is refused.
    match unsafe { libc::posix_memalign(&mut p, align.max(size_of::<usize>()), bytes) } {
        0 => Ok(p.cast()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

/// Keeps freed memory in the heap from now on: none of it is unmapped. All threads that have not
/// allocated before share one heap, since those of threads are unmapped when nothing in them is
/// used. False: this C library cannot do that.
#[cfg(target_env = "gnu")]
pub fn keep_freed() -> bool {
    // SAFETY: parameters of the heap, which may change at any time.
    let set = |parameter, value| unsafe { libc::mallopt(parameter, value) == 1 };
    set(libc::M_TRIM_THRESHOLD, -1) && set(libc::M_MMAP_MAX, 0) && set(libc::M_ARENA_MAX, 1)
}

/// Nothing is known of this heap: false.
#[cfg(not(target_env = "gnu"))]
pub fn keep_freed() -> bool {
    false
}

/// A copy of a string that C code may free; null if there is no memory.
pub fn copy_of(text: &CStr) -> *mut c_char {
    // SAFETY: the text is NUL-terminated.
    unsafe { libc::strdup(text.as_ptr()) }
}

/// Frees memory of this heap; null is ignored.
///
/// # Safety
/// `memory` must be null or come from this heap, and nothing may use it any more.
pub unsafe fn free(memory: *mut u8) {
    // SAFETY: the caller gives up the memory.
    unsafe { libc::free(memory.cast()) };
}

/// Memory of this heap, freed when the value is dropped. Its bytes are uninitialised at first.
#[derive(Debug)]
pub struct HeapBlock {
    base: NonNull<u8>,
    len: usize,
}

// SAFETY: the memory belongs to the value, not to a thread.
unsafe impl Send for HeapBlock {}

impl HeapBlock {
    /// A block of this many bytes, aligned for every type of C; `None` if there is no memory.
    pub fn allocate(len: usize) -> Option<HeapBlock> {
        Some(HeapBlock { base: allocate(len)?, len })
    }

    /// First byte, whose address C code may be given.
    pub fn as_ptr(&self) -> *mut u8 {
        self.base.as_ptr()
    }

    /// The bytes. C code that was given their address may write them between two uses here.
    pub fn bytes(&self) -> &[Cell<MaybeUninit<u8>>] {
        // SAFETY: this many bytes were allocated and live as long as the value. As cells that may
        // be uninitialised they have no invalid contents and may change.
        unsafe { core::slice::from_raw_parts(self.base.as_ptr().cast(), self.len) }
    }
}

impl Drop for HeapBlock {
    fn drop(&mut self) {
        // SAFETY: the block owns its memory, and no borrow outlives it.
        unsafe { free(self.base.as_ptr()) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_owns_its_bytes() {
        let block = HeapBlock::allocate(3).unwrap();
        block.bytes().iter().for_each(|byte| byte.set(MaybeUninit::new(5)));
        // SAFETY: three bytes, initialised above.
        assert_eq!(unsafe { block.as_ptr().cast::<[u8; 3]>().read() }, [5; 3]);
    }

    #[test]
    fn allocates_aligned_and_frees() {
        let p = allocate_aligned(256, 10).unwrap();
        assert_eq!(p.addr() % 256, 0);
        // SAFETY: allocated above, used by nothing.
        unsafe { free(p) };
        assert_eq!(allocate_aligned(48, 10).unwrap_err().kind(), io::ErrorKind::InvalidInput);
        let p = allocate(10).unwrap();
        // SAFETY: as above.
        unsafe { free(p.as_ptr()) };
    }
}
