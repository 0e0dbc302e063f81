//! The barrier of ranks that share memory, in lines of their scratch pages.
//!
//! Used by [`super::Barrier`] when all ranks of the job map each other's memory. Invariant: a
//! word carries the number of its barrier, so no word is ever reset.
//!
//! Up to [`FAN`] ranks: each stores one word and loads those of all others, one round trip of a
//! cache line. More ranks: a combining tree (Yew, Tzeng, Lawrie 1987). The last rank to arrive
//! at a node goes on to its parent, within its notify; the last of all sets the release word.
//!
//! ```text
//!   level 1                node of 0..64                 release word of rank 0
//!                    /           |          \
//!   level 0    node of 0..8  of 8..16 ... of 56..64      FAN arrivals each
//! ```
//!
//! In both forms a rank that has notified need not call again for others to get through.
//! Successive barriers use different words: a rank may notify the next barrier while others
//! still wait for this one, but never the one after the next.

use super::value::BarrierValue;
use crate::extended::scratch::{BARRIER_LINES, ScratchPages};
use core::sync::atomic::{AtomicU64, Ordering};

/// Jobs up to this size read each other's words; also the fan-in of the tree.
const FAN: u32 = 8;
/// Levels of the tree.
const LEVELS: usize = 5;
/// More ranks than `GASNET_PSHM_NODES` allows.
const _: () = assert!(FAN.pow(LEVELS as u32) > 4096);

/// Line of a rank's own word, of the nodes that it holds, of the release word.
const OWN: usize = 0;
const TREE: usize = 1;
const RELEASE: usize = TREE + LEVELS;
const _: () = assert!(RELEASE < BARRIER_LINES);

/// The words that the ranks share.
#[derive(Debug)]
pub(super) struct SharedBarrier(ScratchPages);

/// 22 bits of the number of the barrier, 8 of arrivals, 34 of value.
fn pack(epoch: u32, arrivals: u32, value: BarrierValue) -> u64 {
    tag(epoch) << 42 | u64::from(arrivals) << 34 | value.pack()
}

fn tag(epoch: u32) -> u64 {
    u64::from(epoch) & 0x3f_ffff
}

/// Arrivals and value of a word; no arrivals if it is of another barrier. Any word is valid.
fn unpack(word: u64, epoch: u32) -> (u32, BarrierValue) {
    if word >> 42 == tag(epoch) {
        ((word >> 34 & 0xff) as u32, BarrierValue::unpack(word))
    } else {
        (0, BarrierValue::Anonymous)
    }
}

impl SharedBarrier {
    /// For the ranks of these pages.
    pub(super) fn new(pages: ScratchPages) -> SharedBarrier {
        SharedBarrier(pages)
    }

    fn ranks(&self) -> u32 {
        self.0.ranks() as u32
    }

    #[inline(always)]
    fn word(&self, rank: u32, line: usize, epoch: u32) -> &'static AtomicU64 {
        self.0.page(rank as usize).barrier(line, epoch)
    }

    /// Announces that this rank has arrived at barrier `epoch` (from 1, the next is one more).
    pub(super) fn notify(&self, epoch: u32, value: BarrierValue) {
        let me = self.0.me() as u32;
        if self.ranks() <= FAN {
            // Release pairs with the Acquire in `arrived` of the other ranks.
            self.word(me, OWN, epoch).store(pack(epoch, 1, value), Ordering::Release);
            return;
        }
        let (mut index, mut count, mut first, mut value) = (me, self.ranks(), FAN, value);
        for level in 0.. {
            let group = index / FAN;
            let members = FAN.min(count - group * FAN);
            let node = self.word(group * first, TREE + level, epoch);
            let mut old = node.load(Ordering::Relaxed);
            let arrivals = loop {
                let (arrivals, others) = unpack(old, epoch);
                let merged = value.merge(others);
                // Release publishes what this rank wrote before the barrier; Acquire pairs with
                // the Release of the ranks that arrived here before.
                match node.compare_exchange_weak(
                    old,
                    pack(epoch, arrivals + 1, merged),
                    Ordering::AcqRel,
                    Ordering::Relaxed,
                ) {
                    Ok(_) => {
                        value = merged;
                        break arrivals + 1;
                    }
                    Err(now) => old = now,
                }
            };
            if arrivals < members {
                return;
            }
            if count <= FAN {
                // Release pairs with the Acquire in `arrived`.
                self.word(0, RELEASE, epoch).store(pack(epoch, 1, value), Ordering::Release);
                return;
            }
            (index, count, first) = (group, count.div_ceil(FAN), first * FAN);
        }
    }

    /// The merged contributions to barrier `epoch`, once all ranks have arrived.
    pub(super) fn arrived(&self, epoch: u32) -> Option<BarrierValue> {
        let look =
            |rank, line| match unpack(self.word(rank, line, epoch).load(Ordering::Acquire), epoch)
            {
                (0, _) => None,
                (_, value) => Some(value),
            };
        if self.ranks() > FAN {
            return look(0, RELEASE);
        }
        (0..self.ranks())
            .try_fold(BarrierValue::Anonymous, |all, rank| Some(all.merge(look(rank, OWN)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extended::barrier::harness;
    use alloc::vec::Vec;

    fn barriers(n: u32) -> Vec<SharedBarrier> {
        ScratchPages::for_test(n as usize).into_iter().map(SharedBarrier::new).collect()
    }

    #[test]
    fn every_size_every_order() {
        for n in [1, 2, 3, 7, 8, 9, 16, 17, 63, 64, 65, 100, 513] {
            let barriers = barriers(n);
            harness::split_phase(
                n,
                |rank, epoch, value| barriers[rank as usize].notify(epoch, value),
                |rank, epoch| barriers[rank as usize].arrived(epoch),
            );
        }
    }

    #[test]
    fn processes_at_once() {
        extern crate std;
        for n in [2, 5, 9] {
            let barriers = barriers(n);
            let data: Vec<AtomicU64> = (0..n).map(|_| AtomicU64::new(0)).collect();
            std::thread::scope(|s| {
                for (me, barrier) in barriers.iter().enumerate() {
                    let data = &data;
                    s.spawn(move || {
                        for epoch in 1..=300u32 {
                            data[me].store(u64::from(epoch), Ordering::Relaxed);
                            barrier.notify(epoch, BarrierValue::Named(epoch as i32));
                            let all = loop {
                                match barrier.arrived(epoch) {
                                    Some(v) => break v,
                                    None => std::thread::yield_now(),
                                }
                            };
                            assert_eq!(all, BarrierValue::Named(epoch as i32));
                            for d in data {
                                let d = d.load(Ordering::Relaxed);
                                assert!(d == u64::from(epoch) || d == u64::from(epoch) + 1);
                            }
                        }
                    });
                }
            });
        }
    }
}
