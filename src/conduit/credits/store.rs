//! Where the conduit keeps the state of credits: an array with one record for each peer, half a
//! cache line long.
//!
//! Used by [`super::Credits`] through [`CreditStore`]. Where several threads call, each record
//! has a lock of its own, held for a few instructions; with one thread nothing is locked.
//! Invariant: a record is accessed only inside [`CreditStore::peer`], except one number that
//! [`CreditTable::lent_by`] reads; the bank is accessed only inside [`CreditStore::bank`].

use super::policy::{CreditBank, CreditChange, CreditStore, PEER_LIMIT, PeerCredits};
use super::stats::CreditStats;
use crate::conduit::primitive::{AtomicBool, AtomicU32, AtomicU64, Backoff, Ordering};
use crate::conduit::sync::ParLock;
use crate::rank::JobRank;
use alloc::boxed::Box;
use core::cell::UnsafeCell;
use crossbeam_utils::CachePadded;
use sys::clock;
use sys::hint::cold_path;

#[repr(C, align(32))]
struct Record {
    held: AtomicBool,
    peer: UnsafeCell<PeerCredits>,
}
const _: () = assert!(size_of::<Record>() <= PEER_LIMIT && size_of::<Record>() == 32);

// SAFETY: `peer` is only reached by `CreditTable::peer` and `lent_by`: one thread at a time, by
// the lock, or because the client has one thread (`GASNET_SEQ`).
unsafe impl Sync for Record {}

/// Bytes of state for each peer.
pub(super) const RECORD_BYTES: usize = size_of::<Record>();

pub(super) struct CreditTable {
    par: bool,
    records: Box<[Record]>,
    /// One bit for each peer: it holds more than the least that every peer keeps.
    spare: Box<[AtomicU64]>,
    bank: ParLock<CreditBank>,
    /// Epochs that have ended.
    epoch: CachePadded<AtomicU32>,
    /// Requests received in this one.
    received: AtomicU32,
    /// The movements, and when it was opened.
    pub(super) stats: Option<(Box<CreditStats>, u64)>,
}

impl CreditTable {
    /// Records of `ranks` peers that lend us `each` credits at start and hold `loan` of ours,
    /// `min` of them permanently.
    pub(super) fn new(
        par: bool,
        ranks: usize,
        each: u16,
        loan: impl Fn(JobRank) -> u16,
        min: u16,
        bank: u32,
        stats: Option<CreditStats>,
    ) -> CreditTable {
        let record = |rank| {
            let mut peer = PeerCredits::initial(each);
            peer.loan_credits = loan(JobRank(rank as u32));
            Record { held: AtomicBool::new(false), peer: UnsafeCell::new(peer) }
        };
        let table = CreditTable {
            par,
            records: (0..ranks).map(record).collect(),
            spare: (0..ranks.div_ceil(64)).map(|_| AtomicU64::new(0)).collect(),
            bank: ParLock::new(par, CreditBank::new(bank)),
            epoch: CachePadded::new(AtomicU32::new(0)),
            received: AtomicU32::new(0),
            stats: stats.map(|s| (Box::new(s), clock::now_ns())),
        };
        (0..ranks as u32)
            .map(JobRank)
            .filter(|&rank| loan(rank) > min)
            .for_each(|rank| table.note_spare(rank, true));
        table
    }

    /// Credits that this peer has lent to us, if no thread is changing its record. For signal
    /// handlers, which may have interrupted such a change. With one thread nothing says so, and
    /// the number is the one before or after the change. It is 16 bits, read in one access; the
    /// whole record might be half changed, so no more of it is read.
    pub(super) fn lent_by(&self, rank: JobRank) -> Option<u16> {
        let record = self.records.get(rank.index())?;
        // Acquire pairs with the Release of `Held`.
        if record.held.swap(true, Ordering::Acquire) {
            return None;
        }
        let _held = Held(&record.held);
        let peer = record.peer.get();
        // SAFETY: the lock keeps other threads away; without one, the code that was interrupted
        // does not run meanwhile. Volatile, so that the read is not moved into that code.
        Some(unsafe { (&raw const (*peer).send_credits).read_volatile() })
    }

    pub(super) fn ranks(&self) -> usize {
        self.records.len()
    }
}

/// Holds the lock of a record until it is dropped.
struct Held<'a>(&'a AtomicBool);

impl<'a> Held<'a> {
    #[inline]
    fn take(held: &'a AtomicBool) -> Self {
        let backoff = Backoff::new();
        // Acquire pairs with the Release in `drop`.
        while held.compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed).is_err() {
            backoff.snooze();
        }
        Held(held)
    }
}

impl Drop for Held<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

impl CreditStore for CreditTable {
    #[inline(always)]
    fn peer<R>(&self, rank: JobRank, f: impl FnOnce(&mut PeerCredits) -> R) -> R {
        let record = &self.records[rank.index()];
        // SAFETY: the only reference: with several threads the lock is held, with one `f` does not
        // call back for a peer, as `CreditStore` demands.
        let access = || f(unsafe { &mut *record.peer.get() });
        if self.par {
            cold_path();
            let _held = Held::take(&record.held);
            return access();
        }
        access()
    }

    #[inline]
    fn bank<R>(&self, f: impl FnOnce(&mut CreditBank) -> R) -> R {
        f(&mut self.bank.lock())
    }

    fn note_spare(&self, rank: JobRank, spare: bool) {
        let (word, bit) = (&self.spare[rank.index() / 64], 1 << (rank.0 % 64));
        if spare {
            word.fetch_or(bit, Ordering::Relaxed);
        } else {
            word.fetch_and(!bit, Ordering::Relaxed);
        }
    }

    fn next_spare(&self, after: JobRank) -> Option<JobRank> {
        let words = self.spare.len();
        let (first, above) = (after.index() / 64, !0u64 << (after.0 % 64) << 1);
        // The word of `after` comes twice: what is above it first, the rest last.
        (0..=words).find_map(|i| {
            let at = (first + i) % words;
            let seen = self.spare[at].load(Ordering::Relaxed);
            let bits = match i {
                0 => seen & above,
                i if i == words => seen & !above,
                _ => seen,
            };
            (bits != 0).then(|| JobRank((at * 64) as u32 + bits.trailing_zeros()))
        })
    }

    #[inline]
    fn epoch(&self) -> u32 {
        self.epoch.load(Ordering::Relaxed)
    }

    #[inline]
    fn count_request(&self, length: u32) {
        // Calls do not overlap: the caller takes events off AM_EQ.
        let n = self.received.load(Ordering::Relaxed) + 1;
        if n < length {
            self.received.store(n, Ordering::Relaxed);
        } else {
            cold_path();
            self.received.store(0, Ordering::Relaxed);
            self.epoch
                .store(self.epoch.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        }
    }

    #[inline]
    fn changed(&self, rank: JobRank, peer: &PeerCredits, change: CreditChange) {
        if let Some((stats, opened_ns)) = &self.stats {
            stats.note(clock::now_ns() - opened_ns, rank, self.epoch(), peer, change);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_peer_with_credits_to_spare() {
        let t = CreditTable::new(false, 130, 8, |_| 8, 8, 0, None);
        let next = |t: &CreditTable, after| t.next_spare(JobRank(after)).map(|rank| rank.0);
        assert_eq!(next(&t, 5), None);
        t.note_spare(JobRank(5), true);
        assert_eq!((next(&t, 5), next(&t, 6), next(&t, 129)), (Some(5), Some(5), Some(5)));
        for rank in [0, 63, 64, 129] {
            t.note_spare(JobRank(rank), true);
        }
        let mut round = alloc::vec::Vec::new();
        let mut at = 5;
        for _ in 0..6 {
            at = next(&t, at).expect("there are some");
            round.push(at);
        }
        assert_eq!(round, [63, 64, 129, 0, 5, 63]);
        t.note_spare(JobRank(63), false);
        assert_eq!(next(&t, 5), Some(64));
        assert_eq!(next(&CreditTable::new(false, 3, 9, |_| 9, 8, 0, None), 2), Some(0));
    }

    /// What a signal handler reads is refused while another thread changes the record.
    #[test]
    fn the_credits_of_a_record_that_is_held_are_not_read() {
        let t = CreditTable::new(true, 2, 7, |_| 0, 0, 0, None);
        assert_eq!((t.lent_by(JobRank(0)), t.lent_by(JobRank(2))), (Some(7), None));
        t.peer(JobRank(0), |p| {
            p.send_credits = 9;
            assert_eq!((t.lent_by(JobRank(0)), t.lent_by(JobRank(1))), (None, Some(7)));
        });
        assert_eq!(t.lent_by(JobRank(0)), Some(9));
    }

    #[test]
    fn threads_share_a_record() {
        let t = CreditTable::new(true, 1, 0, |_| 0, 0, 0, None);
        std::thread::scope(|s| {
            for _ in 0..3 {
                s.spawn(|| {
                    for _ in 0..10_000 {
                        t.peer(JobRank(0), |p| p.send_credits += 1);
                        t.bank(|b| b.credits += 1);
                    }
                });
            }
        });
        assert_eq!(
            (t.peer(JobRank(0), |p| p.send_credits), t.bank(|b| b.credits)),
            (30_000, 30_000)
        );
    }
}
