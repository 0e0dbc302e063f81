//! Asking for lines before they are written to, so that they are on their way to us while we do other things. Hints; nothing on processors
//! that do not know them.

use crate::arena::LINE;

/// Asks for the lines of so many bytes from here on, whatever is there.
#[inline(always)]
pub(crate) fn to_write(at: *const u8, bytes: usize) {
    let mut line = at.map_addr(|address| address & !(LINE - 1));
    let end = at.addr().wrapping_add(bytes);
    while line.addr() < end {
        line_to_write(line);
        line = line.wrapping_add(LINE);
    }
}

/// Asks for the line that this is in.
#[inline(always)]
pub(crate) fn line_to_write(at: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint touches no memory. The intrinsic would be a plain prefetch where the target may lack this one.
    unsafe {
        core::arch::asm!("prefetchw [{}]", in(reg) at, options(nostack, preserves_flags, readonly));
    }
    #[cfg(target_arch = "aarch64")]
    // SAFETY: a hint touches no memory.
    unsafe {
        core::arch::asm!("prfm pstl1keep, [{}]", in(reg) at, options(nostack, preserves_flags, readonly));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    let _ = at;
}
