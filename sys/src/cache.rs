//! Prefetches, for reading and for writing, and a fence that completes earlier loads.
//!
//! Called by `conduit` and `portals3`. Invariant: nothing here accesses memory, so any address may
//! be passed. Prefetches are hints, without effect on processors that lack them.

/// Bytes of a cache line.
const LINE: usize = 64;

/// Prefetches the cache line of this address, to be read.
#[inline(always)]
pub fn prefetch(at: *const u8) {
    #[cfg(target_arch = "x86_64")]
    {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a hint touches no memory.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) };
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: a hint touches no memory.
    unsafe {
        core::arch::asm!("prfm pldl1keep, [{}]", in(reg) at, options(nostack, preserves_flags, readonly));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = at;
}

/// Prefetches the cache line of this address, to be written.
#[inline(always)]
pub fn prefetch_to_write(at: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint accesses no memory. The intrinsic would become a plain prefetch on a target
    // that may lack this one.
    unsafe {
        core::arch::asm!("prefetchw [{}]", in(reg) at, options(nostack, preserves_flags, readonly));
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: a hint accesses no memory.
    unsafe {
        core::arch::asm!("prfm pstl1keep, [{}]", in(reg) at, options(nostack, preserves_flags, readonly));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = at;
}

/// Prefetches the cache lines of `bytes` bytes from `at` on, to be written.
#[inline(always)]
pub fn prefetch_range_to_write(at: *const u8, bytes: usize) {
    let mut line = at.map_addr(|address| address & !(LINE - 1));
    let end = at.addr().wrapping_add(bytes);
    while line.addr() < end {
        prefetch_to_write(line);
        line = line.wrapping_add(LINE);
    }
}

/// Waits until earlier loads have read. Without it the processor would begin the loads of a next
/// poll meanwhile, which fetch a line again that a peer is about to write. Nothing where the
/// processor has no cheap instruction for it.
#[inline(always)]
pub fn wait_for_loads() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: x86-64 has it; it touches no memory.
    unsafe {
        core::arch::x86_64::_mm_lfence();
    }
}
