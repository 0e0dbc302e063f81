//! What tells that something is complete in a queue of a provider.
//!
//! Used by `endpoint`. A queue has a descriptor that can be read then, as a rule. Some providers
//! leave it readable when nothing is complete (`net` of libfabric 1.17): a process that sleeps on
//! it wakes at once. After several such looks in a row the process rests between looks, and does
//! not ask the descriptor. Its rests grow with the time since something was complete.
//!
//! Invariant: a process sleeps on the descriptor only after a look at which the descriptor was
//! asked ([`QueueSignal::descriptor`]): then the provider has armed it.

use std::os::fd::RawFd;
use sys::clock;
use sys::poll::{self, PollEntry};

/// Looks in a row after which the descriptor tells nothing. The parts of a long message also make
/// it readable before anything is complete.
const LOOKS: u32 = 16;
/// A rest is this part of the time since the first of these looks, within these bounds.
const PART: u64 = 32;
const SHORTEST_NS: u64 = 20_000;
const LONGEST_NS: u64 = 1_000_000;

/// See the head of this file.
pub(super) struct QueueSignal {
    descriptor: Option<RawFd>,
    /// Looks in a row at which it could be read though nothing was complete, and when the first
    /// of them was.
    looks: u32,
    since: u64,
}

impl QueueSignal {
    /// That of a queue, which has a descriptor or none.
    pub(super) fn new(descriptor: Option<RawFd>) -> QueueSignal {
        QueueSignal { descriptor, looks: 0, since: 0 }
    }

    /// Something was complete.
    pub(super) fn completed(&mut self) {
        self.looks = 0;
    }

    /// Nothing is complete: how many nanoseconds a process may sleep before it looks again. What
    /// [`QueueSignal::descriptor`] names then may end its sleep.
    pub(super) fn longest_sleep_ns(&mut self) -> u64 {
        self.longest_sleep(clock::now_ns())
    }

    fn longest_sleep(&mut self, now: u64) -> u64 {
        let is_armed = self.descriptor().is_some();
        let mut entry = self.descriptor.map(|number| [PollEntry::reading_number(number)]);
        if let Some(entry) = &mut entry {
            poll::wait(entry, Some(0));
            if !entry[0].happened() {
                self.looks = 0;
                return if is_armed { u64::MAX } else { 0 };
            }
        }
        if self.looks == 0 {
            self.since = now;
        }
        self.looks = self.looks.saturating_add(1);
        match self.looks < LOOKS {
            true => 0,
            false => (now.saturating_sub(self.since) / PART).clamp(SHORTEST_NS, LONGEST_NS),
        }
    }

    /// What can be read when something is complete; `None`: only a look shows it.
    pub(super) fn descriptor(&self) -> Option<RawFd> {
        self.descriptor.filter(|_| self.looks < LOOKS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::{AsFd, AsRawFd};
    use sys::bell::{self, Bell};

    #[test]
    fn a_descriptor_that_stays_readable_is_not_asked() {
        let bell = Bell::new().unwrap();
        let number = Some(bell.as_fd().as_raw_fd());
        let mut signal = QueueSignal::new(number);
        assert_eq!((signal.longest_sleep(1), signal.descriptor()), (u64::MAX, number));
        bell::ring(bell.name());
        for look in 1..LOOKS {
            assert_eq!((signal.longest_sleep(look.into()), signal.descriptor()), (0, number));
        }
        assert_eq!((signal.longest_sleep(50), signal.descriptor()), (SHORTEST_NS, None));
        assert_eq!(signal.longest_sleep(1 + PART * 30_000), 30_000);
        assert_eq!(signal.longest_sleep(1 << 40), LONGEST_NS);
        // It is asked again once something was complete, or when it cannot be read.
        signal.completed();
        assert_eq!(signal.descriptor(), number);
        (0..LOOKS).for_each(|_| _ = signal.longest_sleep(7));
        assert_eq!(signal.descriptor(), None);
        bell.silence();
        // The provider has not armed it in this look.
        assert_eq!((signal.longest_sleep(8), signal.descriptor()), (0, number));
        assert_eq!((signal.longest_sleep(9), signal.descriptor()), (u64::MAX, number));
    }

    #[test]
    fn a_queue_without_a_descriptor_is_looked_at_after_rests() {
        let mut signal = QueueSignal::new(None);
        (1..LOOKS).for_each(|_| assert_eq!(signal.longest_sleep(5), 0));
        assert_eq!((signal.longest_sleep(5), signal.descriptor()), (SHORTEST_NS, None));
    }
}
