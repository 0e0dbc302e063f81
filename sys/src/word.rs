//! Words at any address, in one load or store.
//!
//! Called by the functions that copy memory which other processes use. Invariant: a word at a
//! multiple of its size is loaded and stored whole on every processor.

/// Whether an access to a word at any address is one instruction. For other processors the
/// compiler makes accesses to bytes of it.
const ANY_ADDRESS: bool = cfg!(any(
    target_arch = "x86",
    target_arch = "x86_64",
    target_arch = "aarch64",
    target_arch = "powerpc64"
));

/// The word at this address.
///
/// # Safety
/// The bytes are readable, and every pattern of bits is a `T`.
#[inline(always)]
pub unsafe fn load<T: Copy>(at: *const T) -> T {
    if !ANY_ADDRESS && at.is_aligned() {
        // SAFETY: the same contract, and it is aligned.
        return unsafe { at.read_volatile() };
    }
    // SAFETY: the same contract.
    unsafe { at.read_unaligned() }
}

/// Stores a word at this address.
///
/// # Safety
/// The bytes are writable.
#[inline(always)]
pub unsafe fn store<T: Copy>(at: *mut T, word: T) {
    if !ANY_ADDRESS && at.is_aligned() {
        // SAFETY: the same contract, and it is aligned.
        return unsafe { at.write_volatile(word) };
    }
    // SAFETY: the same contract.
    unsafe { at.write_unaligned(word) }
}
