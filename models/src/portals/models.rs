//! What must hold for a ring, however its producers and its consumer interleave.

use super::primitive::{AtomicU64, Ordering};
use super::ring::{self, Memo};
use crate::conduit::models::{check, in_threads};

/// Slots.
const SIZE: u64 = 2;

/// The controls of a new ring, and the consumer's head.
struct Ring {
    controls: [AtomicU64; SIZE as usize],
    head: AtomicU64,
}

impl Ring {
    fn new() -> Ring {
        Ring {
            controls: [AtomicU64::new(0), AtomicU64::new(0)],
            head: AtomicU64::new(ring::first(SIZE)),
        }
    }

    fn control(&self, position: u64) -> &AtomicU64 {
        &self.controls[(position % SIZE) as usize]
    }

    /// Posts as `producer`; the position.
    fn post(&self, memo: &Memo, producer: u32) -> u64 {
        let claimed = ring::claim(|t| self.control(t), SIZE, 2, memo, &self.head, producer);
        let position = claimed.expect("a ring with room is reported to be full");
        self.control(position).store(ring::published(position), Ordering::Release);
        position
    }

    /// Takes what has been published from this position on; the first that has not.
    fn take(&self, mut position: u64) -> u64 {
        while self.control(position).load(Ordering::Acquire) == ring::published(position) {
            position += 1;
            self.head.store(position, Ordering::Release);
        }
        position
    }
}

fn memo() -> Memo {
    let memo = Memo::default();
    memo.restart(ring::first(SIZE));
    memo
}

/// Two producers, each with at most one event that has not been taken, always find a slot of two.
/// One of them is the consumer too. It posts again as soon as its event has been taken, and the
/// other may see any mixture of old and new controls.
pub fn a_ring_with_room_is_not_full() {
    check(|| {
        in_threads(Ring::new(), 2, |ring, thread| one_event_at_a_time(ring, &memo(), thread));
    });
}

/// The same of two threads of one process, which remember the same of the ring.
pub fn a_ring_with_room_is_not_full_for_siblings() {
    check(|| {
        in_threads((Ring::new(), memo()), 2, |(ring, memo), thread| {
            one_event_at_a_time(ring, memo, thread)
        });
    });
}

fn one_event_at_a_time(ring: &Ring, memo: &Memo, thread: usize) {
    if thread == 0 {
        ring.post(memo, 1);
        return;
    }
    let mut next = SIZE;
    for _ in 0..3 {
        let mine = ring.post(memo, 2);
        next = ring.take(next);
        if next <= mine {
            break;
        }
    }
}
