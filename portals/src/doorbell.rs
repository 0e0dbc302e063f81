//! Sleeping until an event is posted.
//!
//! One word per arena: bit 0 says that somebody may be asleep, the rest counts. Who wants to sleep sets bit 0
//! by a locked instruction, looks at its queues once more, and sleeps while the word is what it was. Who
//! posts an event makes it visible, passes a full fence, and reads the word; if bit 0 is set, it clears the
//! bit, raises the count and wakes. Store, fence, load on both sides: at least one of them sees the other
//! (Dekker's algorithm, as in the Linux kernel's `set_current_state` and in eventcounts), so no wake-up is
//! lost, and while nobody sleeps a poster only reads a line that nobody writes.
//!
//! A poster that dies after it has changed the word and before it has woken leaves sleepers asleep until
//! their timeout, or until the death ends the job.

use core::sync::atomic::{AtomicU32, Ordering, fence};

use crate::arena::ArenaHeader;
use crate::ni::NetworkInterface;
use sys::hint::cold_path;

const ASLEEP: u32 = 1;
const COUNT: u32 = 2;

/// Whether somebody may be asleep, or about to be. Without a fence: who is just falling asleep may be missed.
#[inline(always)]
pub(crate) fn someone_asleep(header: &ArenaHeader) -> bool {
    header.doorbell.0.load(Ordering::Relaxed) & ASLEEP != 0
}

/// To be called by a poster after a sequentially consistent fence or exchange that comes after the publication of its events. The load
/// is of the same kind, so that it stays behind an exchange too on a processor that reorders.
#[inline(always)]
pub(crate) fn ring(header: &ArenaHeader) {
    let word = &header.doorbell.0;
    if word.load(Ordering::SeqCst) & ASLEEP != 0 {
        cold_path();
        wake(word);
    }
}

#[cold]
fn wake(word: &AtomicU32) {
    let mut now = word.load(Ordering::SeqCst);
    while now & ASLEEP != 0 {
        match word.compare_exchange(
            now,
            (now & !ASLEEP).wrapping_add(COUNT),
            Ordering::SeqCst,
            Ordering::SeqCst,
        ) {
            Ok(_) => {
                crate::fault::point("doorbell.changed");
                sys::futex::wake(word, u32::MAX);
                return;
            }
            Err(other) => now = other,
        }
    }
}

impl NetworkInterface {
    /// The doorbell's count, to be taken before the last look at the queues before a [`NetworkInterface::sleep`]. It
    /// changes when an event is posted to any queue of ours after this call.
    pub fn doorbell(&self) -> u32 {
        let seen = self.own.view.header().doorbell.0.fetch_or(ASLEEP, Ordering::SeqCst) | ASLEEP;
        // The look at the queues that follows is no SeqCst operation; it stays after the bit.
        fence(Ordering::SeqCst);
        seen
    }

    /// Keeps the threads that have taken the count and do not sleep yet from sleeping: one of them could
    /// not take what another thread was just taking from, and so could not see whether there was more.
    #[cold]
    pub(crate) fn stay_awake(&self) {
        self.own.view.header().doorbell.0.fetch_add(COUNT, Ordering::SeqCst);
    }

    /// Sleeps until `seen` is no longer the doorbell's count or `timeout_ns` have passed; may wake for no
    /// reason.
    pub fn sleep(&self, seen: u32, timeout_ns: u64) {
        let word = &self.own.view.header().doorbell.0;
        if word.load(Ordering::SeqCst) == seen {
            sys::futex::wait(word, seen, Some(timeout_ns));
        }
    }
}
