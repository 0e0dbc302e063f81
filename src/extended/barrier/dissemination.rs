//! The barrier of ranks that share no memory: dissemination (Hensgen, Finkel, Manber 1988) over
//! active messages.
//!
//! Used by [`super::Barrier`]. Invariant: an arrival carries the number of its barrier, so none is
//! ever reset. Arrivals of successive barriers are kept apart by parity: a peer may be one barrier
//! ahead, but never two.
//!
//! In round r, rank i sends the merged value of the ranks that it knows to have arrived to rank
//! i + 2^r. After ceil(log2 N) rounds it knows of all ranks.
//!
//! ```text
//!   N = 5    round 0: i -> i+1    round 1: i -> i+2    round 2: i -> i+4
//!   rank 0   knows 4, 0           2 .. 4, 0            all
//! ```
//!
//! A handler may send no request, so it only records the arrival; polls send the next round.

use super::value::BarrierValue;
use crate::rank::TeamRank;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// Most rounds: a team of 2^32 ranks.
const MAX_ROUNDS: usize = 32;

/// What one rank sends to another in one round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BarrierArrival {
    /// Number of the barrier.
    pub(super) epoch: u32,
    /// Round, from 0.
    pub(super) round: u32,
    /// The merged value of the ranks that the sender knows to have arrived.
    pub(super) value: BarrierValue,
}

impl BarrierArrival {
    /// As the arguments of a message.
    pub(super) fn to_args(self) -> [i32; 4] {
        let bits = self.value.pack();
        [self.epoch as i32, self.round as i32, (bits >> 32) as i32, bits as i32]
    }

    /// From the arguments of a message; `None` if they are malformed.
    pub(super) fn from_args(args: &[i32]) -> Option<BarrierArrival> {
        let &[epoch, round, kind, id] = args else { return None };
        let value = BarrierValue::unpack(u64::from(kind as u32) << 32 | u64::from(id as u32));
        ((round as u32) < MAX_ROUNDS as u32).then_some(BarrierArrival {
            epoch: epoch as u32,
            round: round as u32,
            value,
        })
    }
}

/// How a barrier sends its messages.
pub(super) trait BarrierNet {
    /// Sends a message; may run handlers meanwhile.
    fn send(&self, to: TeamRank, arrival: BarrierArrival);
    /// Whether polls are to call [`Dissemination::progress`] from now on.
    fn want_progress(&self, wanted: bool);
}

/// The state of one rank.
#[derive(Debug)]
pub(super) struct Dissemination {
    ranks: u32,
    me: TeamRank,
    rounds: u32,
    /// By parity and round: 30 bits of the number of the barrier, then 34 of value.
    inbox: [[AtomicU64; MAX_ROUNDS]; 2],
    /// Whether a thread is sending; only that thread accesses the next three fields.
    busy: AtomicBool,
    /// Rounds whose arrival was received, in the barrier of the last notify.
    received: AtomicU32,
    /// The merged value so far.
    value: AtomicU64,
    /// Number of the barrier of the last notify.
    epoch: AtomicU32,
    /// Number of the last barrier that all ranks have arrived at. Release, pairs with the Acquire
    /// in `arrived`.
    complete: AtomicU32,
}

fn tag(epoch: u32) -> u64 {
    u64::from(epoch) & 0x3fff_ffff
}

impl Dissemination {
    /// For the rank `me` of `ranks`.
    pub(super) fn new(ranks: u32, me: TeamRank) -> Dissemination {
        Dissemination {
            ranks,
            me,
            rounds: ranks.next_power_of_two().trailing_zeros(),
            inbox: [const { [const { AtomicU64::new(0) }; MAX_ROUNDS] }; 2],
            busy: AtomicBool::new(false),
            received: AtomicU32::new(0),
            value: AtomicU64::new(0),
            epoch: AtomicU32::new(0),
            complete: AtomicU32::new(0),
        }
    }

    /// Starts barrier `epoch` (from 1, the next is one more).
    pub(super) fn notify(&self, epoch: u32, value: BarrierValue, net: impl BarrierNet) {
        // Another thread's poll may still look at the barrier before.
        while self.busy.swap(true, Ordering::Acquire) {
            core::hint::spin_loop();
        }
        net.want_progress(true);
        self.received.store(0, Ordering::Relaxed);
        self.value.store(value.pack(), Ordering::Relaxed);
        self.epoch.store(epoch, Ordering::Relaxed);
        self.advance(true, net);
        self.busy.store(false, Ordering::Release);
    }

    /// Records an arrival; called by the handler.
    pub(super) fn note(&self, a: BarrierArrival) {
        self.inbox[a.epoch as usize & 1][a.round as usize]
            .store(tag(a.epoch) << 34 | a.value.pack(), Ordering::Release);
    }

    /// Sends what is due. Returns at once if another thread is doing it.
    pub(super) fn progress(&self, net: impl BarrierNet) {
        if !self.is_complete() && !self.busy.swap(true, Ordering::Acquire) {
            self.advance(false, net);
            self.busy.store(false, Ordering::Release);
        }
    }

    /// Whether all ranks have arrived at the barrier of the last notify.
    fn is_complete(&self) -> bool {
        self.complete.load(Ordering::Relaxed) == self.epoch.load(Ordering::Relaxed)
    }

    /// Merges the arrivals that were received and sends the rounds that follow; the caller holds
    /// `busy`.
    fn advance(&self, start: bool, net: impl BarrierNet) {
        let epoch = self.epoch.load(Ordering::Relaxed);
        if self.is_complete() {
            return;
        }
        let mut received = self.received.load(Ordering::Relaxed);
        let mut value = BarrierValue::unpack(self.value.load(Ordering::Relaxed));
        let mut due = start;
        loop {
            if received == self.rounds {
                net.want_progress(false);
                self.complete.store(epoch, Ordering::Release);
                return;
            }
            if due {
                let to = (u64::from(self.me.0) + (1u64 << received)) % u64::from(self.ranks);
                net.send(TeamRank(to as u32), BarrierArrival { epoch, round: received, value });
            }
            let word = self.inbox[epoch as usize & 1][received as usize].load(Ordering::Acquire);
            if word >> 34 != tag(epoch) {
                return;
            }
            value = value.merge(BarrierValue::unpack(word));
            received += 1;
            due = true;
            self.value.store(value.pack(), Ordering::Relaxed);
            self.received.store(received, Ordering::Relaxed);
        }
    }

    /// The merged contributions to the barrier of the last notify, once all ranks have arrived.
    pub(super) fn arrived(&self, epoch: u32) -> Option<BarrierValue> {
        (self.complete.load(Ordering::Acquire) == epoch)
            .then(|| BarrierValue::unpack(self.value.load(Ordering::Relaxed)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extended::barrier::harness;
    use crate::extended::random::SeededRandom;
    use alloc::vec::Vec;
    use core::cell::RefCell;

    #[test]
    fn arrivals_travel_as_arguments() {
        for value in [
            BarrierValue::Anonymous,
            BarrierValue::Named(-5),
            BarrierValue::Named(i32::MAX),
            BarrierValue::Mismatch,
        ] {
            let a = BarrierArrival { epoch: u32::MAX, round: 31, value };
            assert_eq!(BarrierArrival::from_args(&a.to_args()), Some(a));
        }
        assert_eq!(BarrierArrival::from_args(&[1, 32, 0, 0]), None);
        assert_eq!(BarrierArrival::from_args(&[1, -1, 0, 0]), None);
        assert_eq!(BarrierArrival::from_args(&[1, 2, 3]), None);
    }

    /// Messages in flight.
    #[derive(Default)]
    struct ArrivalsInFlight(RefCell<Vec<(TeamRank, BarrierArrival)>>);

    impl BarrierNet for &ArrivalsInFlight {
        fn send(&self, to: TeamRank, arrival: BarrierArrival) {
            self.0.borrow_mut().push((to, arrival));
        }
        fn want_progress(&self, _: bool) {}
    }

    /// Messages arrive in any order; a rank makes progress whenever it is called.
    #[test]
    fn every_size_every_order() {
        for n in [1, 2, 3, 4, 5, 8, 13, 64, 100] {
            let procs: Vec<Dissemination> =
                (0..n).map(|me| Dissemination::new(n, TeamRank(me))).collect();
            let wire = &ArrivalsInFlight::default();
            let random = RefCell::new(SeededRandom::new(u64::from(n)));
            let deliver = || {
                for _ in 0..2 {
                    let mut wire = wire.0.borrow_mut();
                    if !wire.is_empty() {
                        let at = random.borrow_mut().below(wire.len());
                        let (to, a) = wire.swap_remove(at);
                        procs[to.index()].note(a);
                    }
                }
            };
            harness::split_phase(
                n,
                |rank, epoch, value| procs[rank as usize].notify(epoch, value, wire),
                |rank, epoch| {
                    deliver();
                    procs[rank as usize].progress(wire);
                    procs[rank as usize].arrived(epoch)
                },
            );
            assert!(wire.0.borrow().is_empty());
        }
    }
}
