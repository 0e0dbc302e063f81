//! Access to memory of this process that another rank has named, in `GASNET_SEGMENT_EVERYTHING`.
//! The kernel copies: a page that is missing or protected is an error and no fault.
//!
//! Called by `conduit` and by handlers of `extended`. Invariant: an access is a system call, which
//! checks both sides; aligned words of 1, 2, 4 and 8 bytes are stored whole.

use super::{Dst, Src};
use sys::{attach, futex};

/// Bytes that one call of [`fill`] stores at a time.
const PIECE: usize = 1 << 14;

/// Copies all bytes of `from`, as many as `to` has. False: `to` cannot be written.
pub fn store(to: Dst<'_>, from: Src<'_>) -> bool {
    debug_assert_eq!(to.len(), from.len());
    let (pid, at) = (sys::process::pid(), to.as_ptr().addr() as u64);
    // SAFETY: the bytes of a `Src` are readable; the kernel checks the others.
    unsafe { attach::write(pid, at, from.as_ptr(), from.len()) }.is_ok()
}

/// Copies all bytes of `from`, as many as `to` has. False: `from` cannot be read.
pub fn load(to: Dst<'_>, from: Src<'_>) -> bool {
    debug_assert_eq!(to.len(), from.len());
    let (pid, at) = (sys::process::pid(), from.as_ptr().addr() as u64);
    // SAFETY: the bytes of a `Dst` are writable; the kernel checks the others.
    unsafe { attach::read(pid, at, to.as_ptr(), to.len()) }.is_ok()
}

/// Whether an aligned word of 4 or 8 bytes can be read, or also written. Nothing changes.
pub fn has_word(word: Dst<'_>, writes: bool) -> bool {
    let at = word.as_ptr().addr();
    debug_assert!(at.is_multiple_of(word.len()));
    match writes {
        true => futex::is_writable(at),
        false => attach::is_accessible(at as u64, word.len() as u64, false),
    }
}

/// Sets all bytes to `value`. False: they cannot be written.
pub fn fill(to: Dst<'_>, value: u8) -> bool {
    let filled = [value; PIECE];
    let mut left = to;
    while left.len() != 0 {
        let (next, rest) = left.split_at(left.len().min(PIECE));
        if !store(next, Src::from(&filled[..next.len()])) {
            return false;
        }
        left = rest;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_is_missing_is_refused() {
        let mut bytes = [0u8; 40_000];
        assert!(fill(Dst::from(&mut bytes[..39_999]), 7));
        assert!(bytes[..39_999].iter().all(|&b| b == 7) && bytes[39_999] == 0);
        assert!(store(Dst::from(&mut bytes[..3]), Src::from(&b"abc"[..])));
        let mut copy = [0; 4];
        assert!(load(Dst::from(&mut copy[..]), Src::from(&bytes[..4])));
        assert_eq!(&copy, b"abc\x07");
        // SAFETY: nothing but the kernel touches it.
        let (none, source) = unsafe {
            let at = core::ptr::without_provenance_mut(8);
            (Dst::new(at, 4), Src::new(at, 4))
        };
        assert!(!store(none, Src::from(&copy[..])) && !fill(none, 1));
        assert!(!load(Dst::from(&mut copy[..]), source));
        assert!(!has_word(none, false) && !has_word(none, true));
        static CONSTANT: [u64; 1024] = [7; 1024];
        // SAFETY: as above.
        let constant = unsafe { Dst::new(CONSTANT[512..].as_ptr().cast_mut().cast(), 8) };
        assert!(has_word(constant, false) && !has_word(constant, true));
        let mut word = [5u64];
        let at = word.as_mut_ptr().cast();
        // SAFETY: an array.
        assert!(has_word(unsafe { Dst::new(at, 8) }, true) && word == [5]);
    }
}
