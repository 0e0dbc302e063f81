//! The barrier of processes that share memory.
//!
//! Used by [`super::Barrier`] when all processes of the job map each other's memory. Small jobs: each process writes one
//! line of its own and reads those of all others, so two processes need one round trip of a cache line. Larger
//! ones: a combining tree (Yew, Tzeng, Lawrie 1987) that the last arrival of each group climbs within its notify,
//! and one release word. Either way a process that has notified need not call again for others to get through.
//!
//! Words of two successive barriers are apart (by parity), because a process may notify the next barrier while
//! others still wait for this one, but never the one after that. A word carries the number of its barrier, so none is
//! ever reset.

use super::value::BarrierValue;
use alloc::boxed::Box;
use core::sync::atomic::{AtomicU64, Ordering};

/// Jobs up to this size read each other's lines; also the fan-in of the tree.
const FAN: u32 = 8;
/// Bytes between words that different processes write: two lines, because lines are prefetched in pairs.
const LINE: usize = 128;
/// Lines of a process's page that belong to the barrier: its own, one per level of the tree, the release.
pub(super) const LINES: usize = 2 + LEVELS;
/// Levels of the tree: jobs of up to 8^5 processes on one host.
const LEVELS: usize = 5;

const OWN: usize = 0;
const TREE: usize = 1;
const RELEASE: usize = TREE + LEVELS;

/// What the barrier has of each page, from its beginning; the rest belongs to others.
pub(in crate::extended) const BYTES: usize = LINES * LINE;
/// More processes than `GASNET_PSHM_NODES` allows.
const _: () = assert!(FAN.pow(LEVELS as u32) > 4096);

/// Shared words: `page[rank]` is where the shared page of each process is mapped here.
#[derive(Debug)]
pub(super) struct SharedBarrier {
    pages: Box<[*mut u8]>,
    me: u32,
}

// SAFETY: the pages are shared mappings that live as long as the process; all access is through atomics.
unsafe impl Send for SharedBarrier {}
// SAFETY: as above.
unsafe impl Sync for SharedBarrier {}

/// 22 bits of the number of the barrier, 8 of arrivals, 34 of value.
fn pack(epoch: u32, arrivals: u32, value: BarrierValue) -> u64 {
    tag(epoch) << 42 | u64::from(arrivals) << 34 | value.pack()
}

fn tag(epoch: u32) -> u64 {
    u64::from(epoch) & 0x3f_ffff
}

/// Arrivals and value of a word, nothing if it is of another barrier.
fn unpack(word: u64, epoch: u32) -> (u32, BarrierValue) {
    if word >> 42 == tag(epoch) {
        ((word >> 34 & 0xff) as u32, BarrierValue::unpack(word))
    } else {
        (0, BarrierValue::Anonymous)
    }
}

impl SharedBarrier {
    /// For the process `me` of a job with these pages, each of at least `LINES * LINE` bytes, 8-byte aligned, zero at
    /// start, shared by all processes for as long as this process lives.
    pub(super) fn new(pages: Box<[*mut u8]>, me: u32) -> SharedBarrier {
        SharedBarrier { pages, me }
    }

    fn nodes(&self) -> u32 {
        self.pages.len() as u32
    }

    fn word(&self, rank: u32, line: usize, epoch: u32) -> &AtomicU64 {
        debug_assert!(line < LINES);
        let at = line * LINE + (epoch as usize & 1) * size_of::<u64>();
        // SAFETY: within the page, aligned, and only ever used as an atomic (`new`).
        unsafe { AtomicU64::from_ptr(self.pages[rank as usize].add(at).cast()) }
    }

    /// Tells everybody that this process has arrived at barrier `epoch` (from 1, the next is one more).
    pub(super) fn notify(&self, epoch: u32, value: BarrierValue) {
        if self.nodes() <= FAN {
            // Release pairs with the Acquire in `arrived` of the others.
            self.word(self.me, OWN, epoch).store(pack(epoch, 1, value), Ordering::Release);
            return;
        }
        let (mut index, mut count, mut first, mut value) = (self.me, self.nodes(), FAN, value);
        for level in 0.. {
            let group = index / FAN;
            let members = FAN.min(count - group * FAN);
            let node = self.word(group * first, TREE + level, epoch);
            let mut old = node.load(Ordering::Relaxed);
            let arrivals = loop {
                let (arrivals, others) = unpack(old, epoch);
                let merged = value.merge(others);
                // Release passes on what we wrote before the barrier, Acquire what those wrote who came before us.
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

    /// What all processes together contributed to barrier `epoch`, once all have arrived.
    pub(super) fn arrived(&self, epoch: u32) -> Option<BarrierValue> {
        let look =
            |rank, line| match unpack(self.word(rank, line, epoch).load(Ordering::Acquire), epoch)
            {
                (0, _) => None,
                (_, value) => Some(value),
            };
        if self.nodes() > FAN {
            return look(0, RELEASE);
        }
        (0..self.nodes())
            .try_fold(BarrierValue::Anonymous, |all, rank| Some(all.merge(look(rank, OWN)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::extended::barrier::harness;
    use alloc::vec::Vec;
    use core::cell::UnsafeCell;

    #[repr(C, align(4096))]
    struct Page(UnsafeCell<[u8; 4096]>);

    // SAFETY: used through atomics only.
    unsafe impl Sync for Page {}

    fn boards(pages: &[Page]) -> Vec<SharedBarrier> {
        let pointers: Box<[*mut u8]> = pages.iter().map(|p| p.0.get().cast()).collect();
        (0..pages.len() as u32).map(|me| SharedBarrier::new(pointers.clone(), me)).collect()
    }

    fn pages(n: u32) -> Vec<Page> {
        (0..n).map(|_| Page(UnsafeCell::new([0; 4096]))).collect()
    }

    #[test]
    fn every_size_every_order() {
        for n in [1, 2, 3, 7, 8, 9, 16, 17, 63, 64, 65, 100, 513] {
            let pages = pages(n);
            let boards = boards(&pages);
            harness::split_phase(
                n,
                |rank, epoch, value| boards[rank as usize].notify(epoch, value),
                |rank, epoch| boards[rank as usize].arrived(epoch),
            );
        }
    }

    #[test]
    fn processes_at_once() {
        extern crate std;
        for n in [2, 5, 9] {
            let pages = pages(n);
            let boards = boards(&pages);
            let data: Vec<AtomicU64> = (0..n).map(|_| AtomicU64::new(0)).collect();
            std::thread::scope(|s| {
                for (me, board) in boards.iter().enumerate() {
                    let data = &data;
                    s.spawn(move || {
                        for epoch in 1..=300u32 {
                            data[me].store(u64::from(epoch), Ordering::Relaxed);
                            board.notify(epoch, BarrierValue::Named(epoch as i32));
                            let all = loop {
                                match board.arrived(epoch) {
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
