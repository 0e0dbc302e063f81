//! The barrier of ranks that share memory, in cache lines of their scratch pages.
//!
//! Used by [`super::Barrier`] when all ranks of the job map each other's memory. Invariant: an
//! 8-byte word carries the number of its barrier, so no word is ever reset.
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
//! Successive barriers use different words. A rank may notify the next barrier while others still
//! wait for this one, but never the one after the next.
//!
//! Any rank can overwrite these words. A rank that waits for long looks for words that no rank
//! stores in the barriers under way ([`damage`]). It also looks for arrivals of its own that are
//! missing.
//!
//! [`damage`]: SharedBarrier::damage

use super::value::BarrierValue;
use crate::extended::scratch::{BARRIER_LINES, ScratchPages};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

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
pub(super) struct SharedBarrier {
    pages: ScratchPages,
    /// By parity: the levels of the tree that this rank has reached in its last barrier; one more
    /// if it set the release word.
    reached: [AtomicU32; 2],
}

/// A word of a barrier that no rank stores there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BarrierDamage {
    /// The rank that has the word in its page.
    pub(super) rank: u32,
    /// The cache line of the page.
    pub(super) line: usize,
    /// What it holds.
    pub(super) word: u64,
    /// The barrier that the word is for.
    pub(super) epoch: u32,
}

/// 22 bits of the number of the barrier, 8 with a bit for each member of a node that has
/// arrived, 34 of value.
fn pack(epoch: u32, arrived: u8, value: BarrierValue) -> u64 {
    tag(epoch) << 42 | u64::from(arrived) << 34 | value.pack()
}

fn tag(epoch: u32) -> u64 {
    u64::from(epoch) & 0x3f_ffff
}

/// Arrivals and value of a word; no arrivals if it is of another barrier. Any word is valid.
fn unpack(word: u64, epoch: u32) -> (u8, BarrierValue) {
    if word >> 42 == tag(epoch) {
        ((word >> 34) as u8, BarrierValue::unpack(word))
    } else {
        (0, BarrierValue::Anonymous)
    }
}

/// All of this many members.
fn all_of(members: u32) -> u8 {
    ((1u32 << members) - 1) as u8
}

/// Whether a word is one that barrier `epoch` stores, with at least these of all arrivals.
fn is_of(word: u64, epoch: u32, least: u8, all: u8) -> bool {
    let arrived = (word >> 34) as u8;
    word >> 42 == tag(epoch)
        && arrived != 0
        && arrived & least == least
        && arrived & !all == 0
        && BarrierValue::unpack(word).pack() == word & ((1 << 34) - 1)
}

/// Whether a word of this parity may be there while no barrier after `epoch` has begun. It may be
/// of that barrier, with at least the arrivals `least`. If `least` is none, it may also be of the
/// barrier of this parity before, with all arrivals, or unwritten.
fn may_be(word: u64, epoch: u32, least: u8, all: u8) -> bool {
    is_of(word, epoch, least, all)
        || least == 0 && (is_of(word, epoch.wrapping_sub(2), all, all) || word == 0 && epoch <= 2)
}

impl SharedBarrier {
    /// For the ranks of these pages.
    pub(super) fn new(pages: ScratchPages) -> SharedBarrier {
        SharedBarrier { pages, reached: [AtomicU32::new(0), AtomicU32::new(0)] }
    }

    fn ranks(&self) -> u32 {
        self.pages.ranks() as u32
    }

    #[inline(always)]
    fn word(&self, rank: u32, line: usize, epoch: u32) -> &'static AtomicU64 {
        self.pages.page(rank as usize).barrier(line, epoch)
    }

    /// Announces that this rank has arrived at barrier `epoch` (from 1, the next is one more).
    pub(super) fn notify(&self, epoch: u32, value: BarrierValue) {
        let me = self.pages.me() as u32;
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
            let mine = 1 << (index % FAN);
            let all = all_of(members);
            let arrived = loop {
                let (arrived, others) = unpack(old, epoch);
                let merged = value.merge(others);
                // Release publishes what this rank wrote before the barrier; Acquire pairs with
                // the Release of the ranks that arrived here before.
                match node.compare_exchange_weak(
                    old,
                    pack(epoch, arrived | mine, merged),
                    Ordering::AcqRel,
                    Ordering::Relaxed,
                ) {
                    Ok(_) => {
                        value = merged;
                        break arrived | mine;
                    }
                    Err(now) => old = now,
                }
            };
            // Read by `damage` once the notify is over.
            self.reached[epoch as usize & 1].store(level as u32, Ordering::Relaxed);
            if arrived & all != all {
                return;
            }
            if count <= FAN {
                // Release pairs with the Acquire in `arrived`.
                self.word(0, RELEASE, epoch).store(pack(epoch, 1, value), Ordering::Release);
                self.reached[epoch as usize & 1].store(level as u32 + 1, Ordering::Relaxed);
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

    /// A word that this rank depends on, or that depends on it, and that was overwritten. `epoch`
    /// is the last barrier that this rank has notified; if it notifies another one meanwhile, the
    /// result means nothing. Values that a rank could have stored are not found.
    pub(super) fn damage(&self, epoch: u32) -> Option<BarrierDamage> {
        // The other parity: that of the barrier before, and of the next.
        [(epoch, true), (epoch.wrapping_add(1), false)].into_iter().find_map(
            |(epoch, notified)| {
                let check = |rank, line, mine: u8, all| {
                    let word = self.word(rank, line, epoch).load(Ordering::Acquire);
                    let least = if notified && epoch != 0 { mine } else { 0 };
                    let damaged = !may_be(word, epoch, least, all);
                    damaged.then_some(BarrierDamage { rank, line, word, epoch })
                };
                let me = self.pages.me() as u32;
                if self.ranks() <= FAN {
                    let own = |rank| u8::from(rank == me);
                    return (0..self.ranks()).find_map(|rank| check(rank, OWN, own(rank), 1));
                }
                let reached = self.reached[epoch as usize & 1].load(Ordering::Relaxed);
                let mine = |level: u32, bit: u8| if level <= reached { bit } else { 0 };
                let (mut index, mut count, mut first) = (me, self.ranks(), FAN);
                for level in 0.. {
                    let group = index / FAN;
                    let all = all_of(FAN.min(count - group * FAN));
                    let bit = mine(level, 1 << (index % FAN));
                    let damage = check(group * first, TREE + level as usize, bit, all);
                    if damage.is_some() {
                        return damage;
                    }
                    if count <= FAN {
                        return check(0, RELEASE, mine(level + 1, 1), 1);
                    }
                    (index, count, first) = (group, count.div_ceil(FAN), first * FAN);
                }
                None
            },
        )
    }
}

impl core::fmt::Display for BarrierDamage {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let BarrierDamage { rank, line, word, epoch } = self;
        write!(
            f,
            "cache line {line} of the scratch page of rank {rank} holds {word:#x} in barrier {epoch}"
        )
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
                |rank, epoch| {
                    let arrived = barriers[rank as usize].arrived(epoch);
                    assert_eq!(barriers[rank as usize].damage(epoch), None);
                    arrived
                },
            );
        }
    }

    /// All words in use, in the middle of a barrier.
    #[test]
    fn overwritten_words_are_found() {
        for n in [2, 8, 9, 17, 65] {
            let barriers = barriers(n);
            let late = |rank: u32| rank % 3 == 1;
            for epoch in 1..=5 {
                for rank in (0..n).filter(|&rank| epoch < 5 || !late(rank)) {
                    barriers[rank as usize].notify(epoch, BarrierValue::Named(7));
                }
            }
            let found = || {
                (0..n).find_map(|rank| {
                    barriers[rank as usize].damage(if late(rank) { 4 } else { 5 })
                })
            };
            assert_eq!(found(), None);
            let lines = (0..n).flat_map(|rank| (0..BARRIER_LINES).map(move |line| (rank, line)));
            let mut in_use = 0;
            for ((rank, line), epoch) in lines.flat_map(|word| [(word, 4), (word, 5)]) {
                let word = barriers[0].word(rank, line, epoch);
                let whole = word.load(Ordering::Relaxed);
                if whole == 0 {
                    continue;
                }
                in_use += 1;
                // That of the next barrier of this parity would be an arrival.
                let tags = (42..64).map(|bit| whole ^ 1 << bit);
                let tags = tags.filter(|tagged| tagged >> 42 != tag(epoch + 2));
                for value in tags.chain([0, u64::MAX, whole | 3 << 32, whole & !(0xff << 34)]) {
                    word.store(value, Ordering::Relaxed);
                    let damage = found().unwrap_or_else(|| panic!("{n} {rank} {line} {value:#x}"));
                    assert_eq!((damage.rank, damage.line, damage.word), (rank, line, value));
                    word.store(whole, Ordering::Relaxed);
                }
            }
            assert!(in_use >= 4);
        }
    }

    /// A rank finds that its own arrival is missing, at whatever level of the tree.
    #[test]
    fn lost_arrivals_are_found() {
        let barriers = barriers(64);
        (0..63).for_each(|rank| barriers[rank].notify(1, BarrierValue::Anonymous));
        for (line, holder, bit) in [(TREE, 8, 3), (TREE + 1, 0, 2)] {
            let word = barriers[0].word(holder, line, 1);
            word.fetch_and(!(1 << (34 + bit)), Ordering::Relaxed);
            let finders = (0..64).filter(|&rank| {
                barriers[rank].damage(u32::from(rank != 63)).is_some_and(|d| d.line == line)
            });
            assert_eq!(finders.count(), 1);
            word.fetch_or(1 << (34 + bit), Ordering::Relaxed);
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
