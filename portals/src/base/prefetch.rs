//! Prefetches for writing: cache lines are fetched while the processor does other work.
//!
//! Called before a payload or an event is stored. Hints only; without effect on processors that
//! lack them.

use super::LINE;

/// Prefetches the cache lines of `bytes` bytes from `at` on; `at` may be any address.
#[inline(always)]
pub(crate) fn to_write(at: *const u8, bytes: usize) {
    let mut line = at.map_addr(|address| address & !(LINE - 1));
    let end = at.addr().wrapping_add(bytes);
    while line.addr() < end {
        line_to_write(line);
        line = line.wrapping_add(LINE);
    }
}

/// Prefetches the cache line of `at`.
#[inline(always)]
pub(crate) fn line_to_write(at: *const u8) {
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
