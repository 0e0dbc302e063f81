//! The barrier of processes that share no memory: dissemination (Hensgen, Finkel, Manber 1988) over active messages.
//!
//! Used by [`super::Barrier`]. In round r a process tells rank + 2^r what it has heard of; after ceil(log2 N) rounds it
//! has heard of everybody. A handler may not send, so it only notes the arrival; polls send the next round.
//!
//! Arrivals of two successive barriers are apart (by parity), because a peer may be one barrier ahead, but never
//! two. An arrival carries the number of its barrier, so none is ever reset.

use super::value::BarrierValue;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// Most rounds: a job of 2^32 processes.
const MAX_ROUNDS: usize = 32;

/// What one process tells another in one round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BarrierArrival {
    /// Number of the barrier.
    pub(super) epoch: u32,
    /// Round, from 0.
    pub(super) round: u32,
    /// What the sender has heard of.
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

/// What the barrier needs from outside.
pub(super) trait BarrierNet {
    /// Sends a message; may run handlers meanwhile.
    fn send(&self, to: u32, arrival: BarrierArrival);
    /// Whether polls are to call [`Dissemination::progress`] from now on.
    fn want_progress(&self, wanted: bool);
}

/// The state of one process.
#[derive(Debug)]
pub(super) struct Dissemination {
    nodes: u32,
    me: u32,
    rounds: u32,
    /// By parity and round: 30 bits of the number of the barrier above 34 of value.
    inbox: [[AtomicU64; MAX_ROUNDS]; 2],
    /// Whether a thread is sending; it alone touches the next three.
    busy: AtomicBool,
    /// Rounds heard of in the barrier of the last notify.
    heard: AtomicU32,
    /// What was heard of.
    value: AtomicU64,
    /// Number of the barrier of the last notify.
    epoch: AtomicU32,
    /// Number of the last barrier that everybody has arrived at. Release, pairs with the Acquire in `arrived`.
    complete: AtomicU32,
}

fn tag(epoch: u32) -> u64 {
    u64::from(epoch) & 0x3fff_ffff
}

impl Dissemination {
    /// For the process `me` of `nodes`.
    pub(super) fn new(nodes: u32, me: u32) -> Dissemination {
        Dissemination {
            nodes,
            me,
            rounds: nodes.next_power_of_two().trailing_zeros(),
            inbox: [const { [const { AtomicU64::new(0) }; MAX_ROUNDS] }; 2],
            busy: AtomicBool::new(false),
            heard: AtomicU32::new(0),
            value: AtomicU64::new(0),
            epoch: AtomicU32::new(0),
            complete: AtomicU32::new(0),
        }
    }

    /// Starts barrier `epoch` (from 1, the next is one more).
    pub(super) fn notify(&self, epoch: u32, value: BarrierValue, net: impl BarrierNet) {
        // A straggler of the barrier before may still be looking.
        while self.busy.swap(true, Ordering::Acquire) {
            core::hint::spin_loop();
        }
        net.want_progress(true);
        self.heard.store(0, Ordering::Relaxed);
        self.value.store(value.pack(), Ordering::Relaxed);
        self.epoch.store(epoch, Ordering::Relaxed);
        self.advance(true, net);
        self.busy.store(false, Ordering::Release);
    }

    /// Notes an arrival; called by the handler.
    pub(super) fn note(&self, a: BarrierArrival) {
        self.inbox[a.epoch as usize & 1][a.round as usize]
            .store(tag(a.epoch) << 34 | a.value.pack(), Ordering::Release);
    }

    /// Sends what is due. Returns at once if another thread is doing it.
    pub(super) fn progress(&self, net: impl BarrierNet) {
        if !self.busy.swap(true, Ordering::Acquire) {
            self.advance(false, net);
            self.busy.store(false, Ordering::Release);
        }
    }

    /// Takes in what was heard and sends what follows from it; the caller holds `busy`.
    fn advance(&self, start: bool, net: impl BarrierNet) {
        let epoch = self.epoch.load(Ordering::Relaxed);
        if self.complete.load(Ordering::Relaxed) == epoch {
            return;
        }
        let mut heard = self.heard.load(Ordering::Relaxed);
        let mut value = BarrierValue::unpack(self.value.load(Ordering::Relaxed));
        let mut due = start;
        loop {
            if heard == self.rounds {
                net.want_progress(false);
                self.complete.store(epoch, Ordering::Release);
                return;
            }
            if due {
                let to = (u64::from(self.me) + (1u64 << heard)) % u64::from(self.nodes);
                net.send(to as u32, BarrierArrival { epoch, round: heard, value });
            }
            let word = self.inbox[epoch as usize & 1][heard as usize].load(Ordering::Acquire);
            if word >> 34 != tag(epoch) {
                return;
            }
            value = value.merge(BarrierValue::unpack(word));
            heard += 1;
            due = true;
            self.value.store(value.pack(), Ordering::Relaxed);
            self.heard.store(heard, Ordering::Relaxed);
        }
    }

    /// What all processes together contributed to the barrier of the last notify, once all have arrived.
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

    /// Messages on their way.
    #[derive(Default)]
    struct ArrivalsInFlight(RefCell<Vec<(u32, BarrierArrival)>>);

    impl BarrierNet for &ArrivalsInFlight {
        fn send(&self, to: u32, arrival: BarrierArrival) {
            self.0.borrow_mut().push((to, arrival));
        }
        fn want_progress(&self, _: bool) {}
    }

    /// Messages travel in any order; a process takes in what has arrived whenever it is asked.
    #[test]
    fn every_size_every_order() {
        for n in [1, 2, 3, 4, 5, 8, 13, 64, 100] {
            let procs: Vec<Dissemination> = (0..n).map(|me| Dissemination::new(n, me)).collect();
            let wire = &ArrivalsInFlight::default();
            let random = RefCell::new(SeededRandom::new(u64::from(n)));
            let deliver = || {
                for _ in 0..2 {
                    let mut wire = wire.0.borrow_mut();
                    if !wire.is_empty() {
                        let at = random.borrow_mut().below(wire.len());
                        let (to, a) = wire.swap_remove(at);
                        procs[to as usize].note(a);
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
