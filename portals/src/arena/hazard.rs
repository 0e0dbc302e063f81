//! Which memory descriptors a process is using right now, written in its own arena.
//!
//! An initiator writes a slot for the length of one operation. A process that removes a
//! descriptor reads the slots of all processes that could use it. Slots are shared by the
//! threads of a process, never by processes. Invariant: while a slot names a descriptor, that
//! descriptor stays in use, even if the process is stopped or dead.
//!
//! The algorithm is that of hazard pointers (M. Michael, 2004), with Dekker's store-then-load on
//! both sides:
//!
//! ```text
//! initiator                                 process that removes a descriptor
//! finds the descriptor (reads only)         makes the list's version odd, or the
//!                                           descriptor's phase CLOSING
//! writes its name into a slot (CAS, fence)  reads the slots of all processes
//! reads version or phase again              in use: puts everything back
//! ```
//!
//! All four accesses are sequentially consistent, so at least one side sees the other.
//! Operations in flight are counted where they are initiated: an operation writes no cache line of
//! its target to be counted.

use core::sync::atomic::{AtomicU64, Ordering};

use super::{HAZARDS, Hazards};
use sys::hint::cold_path;
use sys::thread;

/// Stands for no process.
pub(crate) const NO_PROCESS: u32 = 0x7fff;

/// Stands for no descriptor.
pub(crate) const NO_MD: u32 = 0xffff;

/// The slot of the only thread. It is found without a hash of the stack and without a look at its
/// bit: 0.95 of row `put_8` through Portals.
const ONLY: usize = 0;

/// The value of a slot in use: bit 63 is set. Bits 48-62 hold the target process and bits
/// 32-47 its descriptor. Bits 16-31 and 0-15 hold two descriptors of the initiator itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HazardWord(u64);

impl HazardWord {
    /// Names descriptor `md` of process `target`, and two of our own (the same one twice if
    /// there is one).
    #[inline(always)]
    pub(crate) fn new(target: u32, md: u32, own: u32, own2: u32) -> HazardWord {
        HazardWord(
            1 << 63
                | u64::from(target & 0x7fff) << 48
                | u64::from(md & 0xffff) << 32
                | u64::from(own & 0xffff) << 16
                | u64::from(own2 & 0xffff),
        )
    }

    /// The word as a number.
    pub(crate) fn bits(self) -> u64 {
        self.0
    }

    /// The word that has these [`HazardWord::bits`].
    #[inline(always)]
    pub(crate) fn from_bits(bits: u64) -> HazardWord {
        HazardWord(bits)
    }

    /// The same without a target.
    #[inline(always)]
    pub(crate) fn own(own: u32, own2: u32) -> HazardWord {
        HazardWord::new(NO_PROCESS, NO_MD, own, own2)
    }

    /// Whether the word names descriptor `md` of process `target` as a target.
    pub(crate) fn names_target(self, target: u32, md: u32) -> bool {
        self.0 >> 48 & 0x7fff == u64::from(target) && self.0 >> 32 & 0xffff == u64::from(md)
    }

    /// Whether the word, in a slot of process `own`, names descriptor `md` of that process in
    /// any role.
    pub(crate) fn names(self, own: u32, md: u32) -> bool {
        self.names_target(own, md)
            || self.0 >> 16 & 0xffff == u64::from(md)
            || self.0 & 0xffff == u64::from(md)
    }

    /// The descriptor of process `target` that the word names, if any.
    pub(crate) fn target_md(self, target: u32) -> Option<u32> {
        (self.0 >> 48 & 0x7fff == u64::from(target)).then_some((self.0 >> 32 & 0xffff) as u32)
    }

    /// The process whose descriptor the word names.
    pub(crate) fn target(self) -> u32 {
        (self.0 >> 48 & 0x7fff) as u32
    }

    /// Whether this is the value of a slot in use.
    pub(crate) fn is_set(self) -> bool {
        self.0 >> 63 == 1
    }

    /// The initiator's own two descriptors.
    pub(crate) fn own_mds(self) -> [u32; 2] {
        [(self.0 >> 16 & 0xffff) as u32, (self.0 & 0xffff) as u32]
    }
}

/// Whether `found` is true of any slot in use.
pub(crate) fn names(hazards: &Hazards, mut found: impl FnMut(HazardWord) -> bool) -> bool {
    // SeqCst: see the head of this file. The bit of a slot is set before the slot's first use.
    let mut used = hazards.used.0.load(Ordering::SeqCst);
    while used != 0 {
        let word = hazards.slots[used.trailing_zeros() as usize].0.load(Ordering::SeqCst);
        if word != 0 && found(HazardWord(word)) {
            return true;
        }
        used &= used - 1;
    }
    false
}

/// A slot taken for one operation. It must be given back by [`HazardHold::clear`].
#[must_use]
#[derive(Clone, Copy)]
pub(crate) struct HazardHold<'a> {
    slot: &'a AtomicU64,
    /// The number of the slot; the counters of [`crate::tables`] have the same.
    pub(crate) number: usize,
}

impl HazardHold<'_> {
    /// Replaces the word, as strongly ordered as the first one.
    pub(crate) fn change(&self, word: HazardWord) {
        self.slot.swap(word.0, Ordering::SeqCst);
    }

    /// Gives the slot back. With `fence`, later loads stay behind this store (see
    /// [`super::doorbell`]).
    #[inline(always)]
    pub(crate) fn clear(self, fence: bool) {
        // Release: a process that sees the slot empty sees the data moved and the events posted.
        if fence {
            self.slot.swap(0, Ordering::SeqCst);
        } else {
            self.slot.store(0, Ordering::Release);
        }
    }
}

impl Hazards {
    /// Takes a slot and writes `word` into it. `single`: only one thread calls.
    #[inline(always)]
    pub(crate) fn hold(&self, single: bool, word: HazardWord) -> HazardHold<'_> {
        // Threads have separate stacks, so the address of a local distinguishes them well enough.
        let number = if single {
            ONLY
        } else {
            cold_path();
            slot_of_thread()
        };
        let slot = &self.slots[number].0;
        // The bit of the only slot is set: see `use_only_slot`.
        if (single || self.used.0.load(Ordering::Acquire) >> number & 1 == 1)
            && slot.compare_exchange(0, word.0, Ordering::SeqCst, Ordering::Relaxed).is_ok()
        {
            return HazardHold { slot, number };
        }
        self.hold_another(word, number)
    }

    /// Only one thread will call: its slot counts as used from now on, and [`Hazards::hold`]
    /// skips the bit.
    pub(crate) fn use_only_slot(&self) {
        // SeqCst: as in `hold_another`.
        self.used.0.fetch_or(1 << ONLY, Ordering::SeqCst);
    }

    #[cold]
    fn hold_another(&self, word: HazardWord, first: usize) -> HazardHold<'_> {
        let mut round = 0;
        loop {
            for number in (first..HAZARDS).chain(0..first) {
                let slot = &self.slots[number].0;
                if slot.load(Ordering::Relaxed) != 0 {
                    continue;
                }
                self.used.0.fetch_or(1 << number, Ordering::SeqCst);
                if slot.compare_exchange(0, word.0, Ordering::SeqCst, Ordering::Relaxed).is_ok() {
                    return HazardHold { slot, number };
                }
            }
            thread::relax(round);
            round += 1;
        }
    }
}

#[inline(always)]
fn slot_of_thread() -> usize {
    let local = 0u8;
    let address = core::hint::black_box(&raw const local) as usize as u64;
    ((address >> 16).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::NetworkInterface;

    /// The owner sees the hazard of a single-threaded process, which skips the bit.
    #[test]
    fn the_only_threads_hazard_is_seen() {
        let mut ni = NetworkInterface::loopback(None).unwrap();
        // SAFETY: this thread alone calls it.
        unsafe { ni.set_single_threaded() };
        let seen =
            || names(&ni.state.peers.own.view.header().hazards, |word| word.names_target(3, 5));
        let hold = ni.state.peers.hold(HazardWord::new(3, 5, NO_MD, NO_MD));
        assert!(seen());
        hold.clear(false);
        assert!(!seen());
    }
}
