//! Copying bytes that another process may be reading or writing.
//!
//! Called by every transfer. Invariant: 1, 2, 4 and 8 bytes are one load and one store each, on
//! processors that load words only from multiples of their size for such addresses.

use sys::word;

/// Copies bytes that may overlap and that other processes may be reading. 1, 2, 4 and 8 bytes are
/// one load and one store each. A process that polls a word must not see a part of it, or a second
/// store of it. Up to four words are copied inline: 0.94 of a put or get of 16 or 32 bytes through
/// Portals.
///
/// # Safety
/// Both pointers are valid for `length` bytes.
#[inline(always)]
pub(crate) unsafe fn copy(from: *const u8, to: *mut u8, length: usize) {
    // SAFETY: every access lies within `length` bytes, for which both pointers are valid
    // (`# Safety`).
    unsafe {
        match length {
            0 => {}
            8 => word::store(to.cast::<u64>(), word::load(from.cast::<u64>())),
            9..=16 => {
                let last = length - 8;
                let (a, b) = (from.cast::<u64>(), from.add(last).cast::<u64>());
                let (a, b) = (word::load(a), word::load(b));
                word::store(to.cast::<u64>(), a);
                word::store(to.add(last).cast::<u64>(), b);
            }
            17..=32 => {
                let last = length - 16;
                let (a, b) = (from.cast::<[u64; 2]>(), from.add(last).cast::<[u64; 2]>());
                let (a, b) = (word::load(a), word::load(b));
                word::store(to.cast::<[u64; 2]>(), a);
                word::store(to.add(last).cast::<[u64; 2]>(), b);
            }
            1..8 => copy_less_than_a_word(from, to, length),
            _ => core::ptr::copy(from, to, length),
        }
    }
}

/// [`copy`] of less than 8 bytes.
///
/// # Safety
/// As [`copy`].
#[inline(never)]
unsafe fn copy_less_than_a_word(from: *const u8, to: *mut u8, length: usize) {
    // SAFETY: every access lies within `length` bytes, for which both pointers are valid
    // (`# Safety`).
    unsafe {
        match length {
            4 => word::store(to.cast::<u32>(), word::load(from.cast::<u32>())),
            2 => word::store(to.cast::<u16>(), word::load(from.cast::<u16>())),
            1 => to.write(from.read()),
            _ => core::ptr::copy(from, to, length),
        }
    }
}

#[cfg(all(test, target_arch = "x86_64"))]
mod tests {
    use super::*;
    use core::arch::asm;
    use core::hint::black_box;
    use core::sync::atomic::{AtomicU64, Ordering};
    use sys::signal::{Signal, set_plain};

    static WORD: AtomicU64 = AtomicU64::new(0);
    static ARRIVALS: AtomicU64 = AtomicU64::new(0);

    /// Takes what has arrived; called after every instruction.
    extern "C" fn take(_: i32) {
        if WORD.swap(0, Ordering::Relaxed) != 0 {
            ARRIVALS.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A process that waits for a word, and clears it when it arrives, finds it cleared.
    #[test]
    fn words_arrive_once() {
        let from = 0x0707_0707_0707_0707_u64;
        let (from, to) = (black_box((&raw const from).cast()), black_box(WORD.as_ptr().cast()));
        for length in [1, 2, 4, 8] {
            let length = black_box(length);
            // SAFETY: the handler accesses atomics only, and nothing else traps in this process.
            // The processor's trap flag belongs to this thread and is cleared again. Both pointers
            // are valid for a word.
            unsafe {
                let take: extern "C" fn(i32) = take;
                let old = set_plain(Signal::TRAP, take as usize);
                asm!("pushfq", "or qword ptr [rsp], 0x100", "popfq");
                copy(from, to, length);
                asm!("pushfq", "and qword ptr [rsp], -257", "popfq");
                set_plain(Signal::TRAP, old.unwrap_or_default());
            }
            let left = WORD.load(Ordering::Relaxed);
            assert_eq!((ARRIVALS.swap(0, Ordering::Relaxed), left), (1, 0), "{length} bytes");
        }
    }
}
