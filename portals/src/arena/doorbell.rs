//! Sleeping until an event is posted: one word per arena.
//!
//! A consumer that finds its queues empty sleeps here; a producer rings after it has posted. Bit
//! 0 of the word says that a thread may be asleep, the bits from 2 on count. Bit 1 says that it
//! waits for descriptors too, and so is to be woken by its bell. Invariant: no wake-up
//! is lost. Both sides store, pass a full fence, and load, so at least one sees the other. This
//! is Dekker's algorithm, as in the Linux kernel's `set_current_state` and in eventcounts:
//!
//! ```text
//! consumer                             producer
//! sets bit 0, or both (locked instr.)  publishes its event
//! looks at its queues once more        full fence
//! sleeps while the word is unchanged   reads the word; bit 0 set: clears it, counts, wakes
//! ```
//!
//! While no thread sleeps, a producer only reads a cache line that no thread writes. A
//! producer may die after it has changed the word and before it wakes. Then the sleepers
//! stay asleep until their timeout, or until the death ends the job.

use super::ArenaHeader;
use super::primitive::{Ordering, bell, cold_path, fault, fence, futex};

const ASLEEP: u32 = 1;
const BY_BELL: u32 = 2;
const COUNT: u32 = 4;

/// Whether a thread may be asleep, or about to be. Without a fence: a thread that is just
/// falling asleep may be missed.
#[inline(always)]
pub(crate) fn someone_asleep(header: &ArenaHeader) -> bool {
    header.doorbell.0.load(Ordering::Relaxed) & ASLEEP != 0
}

/// Wakes the sleepers, if any. A producer calls it after a sequentially consistent fence or
/// exchange that follows the publication of its events. The load is sequentially consistent too,
/// so that it stays behind an exchange on a processor that reorders.
#[inline(always)]
pub(crate) fn ring(header: &ArenaHeader) {
    let word = &header.doorbell.0;
    if word.load(Ordering::SeqCst) & ASLEEP != 0 {
        cold_path();
        wake(header);
    }
}

#[cold]
fn wake(header: &ArenaHeader) {
    let word = &header.doorbell.0;
    let mut now = word.load(Ordering::SeqCst);
    while now & ASLEEP != 0 {
        match word.compare_exchange(
            now,
            (now & !(ASLEEP | BY_BELL)).wrapping_add(COUNT),
            Ordering::SeqCst,
            Ordering::SeqCst,
        ) {
            Ok(_) => {
                fault::point("doorbell.changed");
                futex::wake(word, u32::MAX);
                if now & BY_BELL != 0 {
                    // A peer's word: a wrong name rings no bell, or one whose owner looks again.
                    bell::ring(header.ident.bell.load(Ordering::Relaxed));
                }
                return;
            }
            Err(other) => now = other,
        }
    }
}

/// The count, to be taken before the last look at the queues that precedes a [`sleep`]. It
/// changes when an event is posted after this call. `by_bell`: the bell is to ring then.
pub(crate) fn before_sleep(header: &ArenaHeader, by_bell: bool) -> u32 {
    let bits = if by_bell { ASLEEP | BY_BELL } else { ASLEEP };
    let seen = header.doorbell.0.fetch_or(bits, Ordering::SeqCst) | bits;
    // The look at the queues that follows is not a SeqCst operation; it stays behind the bit.
    fence(Ordering::SeqCst);
    seen
}

/// Keeps threads from sleeping that have taken the count and do not sleep yet. One of them may
/// have found a queue taken by another thread, and so could not see whether there was more.
#[cold]
pub(crate) fn stay_awake(header: &ArenaHeader) {
    header.doorbell.0.fetch_add(COUNT, Ordering::SeqCst);
}

/// Whether the count is still `seen`.
pub(crate) fn is_unchanged(header: &ArenaHeader, seen: u32) -> bool {
    header.doorbell.0.load(Ordering::SeqCst) == seen
}

/// Sleeps until the count is no longer `seen` or `timeout_ns` have passed; may wake for no reason.
pub(crate) fn sleep(header: &ArenaHeader, seen: u32, timeout_ns: u64) {
    if is_unchanged(header, seen) {
        futex::wait(&header.doorbell.0, seen, Some(timeout_ns));
    }
}
