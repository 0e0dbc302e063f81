//! The same error of many ranks, printed once. The first rank prints it, the others record that
//! they have it too, and the supervisor prints which they are.
//!
//! Used by [`super::exit_notice`] in a rank and by the supervisor, over words of the control
//! memory. Invariants: a rank withholds an error only if a rank has claimed to print the same
//! text to the same file within the last second. The supervisor must have been notified. A
//! rank withholds one error until the supervisor has read which.
//!
//! ```text
//! rank 5                        ranks 0-4, 6-63                     supervisor
//!   claims a slot of the table    find the claim in the table
//!   prints the error              record it, one message --------> 0.2 s later: "ranks 0-63"
//! ```
//!
//! A claim is one word: the hash of text and file, the time, the local rank. So the first text is
//! never delayed, and stands where the rank's own output has it. The supervisor claims a text of
//! another host that it passes on to the same file, as [`ELSEWHERE`].

use crate::limits::MAX_HOST_RANKS;
use core::sync::atomic::{AtomicU64, Ordering};

/// Claims that are kept.
pub(super) const SLOTS: usize = 8;
/// Nanoseconds of a unit of time, and the units within which the same error is folded.
const UNIT: u64 = 250_000_000;
const RECENT: u16 = 4;
const RANK_BITS: u32 = 15;
/// In place of a rank in the claim of a supervisor: a rank of another host prints the error.
pub(super) const ELSEWHERE: u32 = (1 << RANK_BITS) - 1;

const _: () = assert!(MAX_HOST_RANKS < ELSEWHERE);

/// The hash of a claim for a text that is printed to the standard error of this process, by the
/// hash of the text; and the other way round. `None` if it is closed. Async-signal-safe.
pub(super) fn in_file(hash: u32) -> Option<u32> {
    let file = sys::descriptor::inode(2)?;
    Some(hash ^ (file ^ (file >> 32)) as u32)
}

/// An error that a rank prints, or has printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ErrorClaim {
    /// Hash of the text and of the file that it is printed to.
    pub(super) hash: u32,
    /// Units of time, modulo 2^16.
    time: u16,
    /// The rank that prints it, by its number on the host, or [`ELSEWHERE`].
    pub(super) rank: u32,
}

impl ErrorClaim {
    /// That `rank` prints an error with this hash now, `now` nanoseconds after some time.
    pub(super) fn new(hash: u32, rank: u32, now: u64) -> ErrorClaim {
        ErrorClaim { hash, time: (now / UNIT) as u16, rank }
    }

    fn pack(self) -> u64 {
        let rank = u64::from(self.rank) << 1 | 1;
        u64::from(self.hash) << 32 | u64::from(self.time) << 16 | rank
    }

    /// The claim in a word; `None` if there is none, or not of one of `size` ranks.
    fn unpack(word: u64, size: u32) -> Option<ErrorClaim> {
        let claim = ErrorClaim {
            hash: (word >> 32) as u32,
            time: (word >> 16) as u16,
            rank: (word as u16 >> 1).into(),
        };
        (word & 1 == 1 && (claim.rank < size || claim.rank == ELSEWHERE)).then_some(claim)
    }

    /// Whether another rank has claimed the same shortly before.
    fn is_repeated_by(self, later: ErrorClaim) -> bool {
        let age = later.time.wrapping_sub(self.time);
        self.hash == later.hash && self.rank != later.rank && age <= RECENT
    }
}

/// The claim of another rank that covers this one, of a job of `size` ranks; otherwise records
/// this one in the table, and returns `None`. Async-signal-safe.
pub(super) fn claim(table: &[AtomicU64], new: ErrorClaim, size: u32) -> Option<ErrorClaim> {
    let slot = table.get(new.hash as usize % SLOTS)?;
    loop {
        let word = slot.load(Ordering::Acquire);
        match ErrorClaim::unpack(word, size) {
            Some(held) if held.is_repeated_by(new) => return Some(held),
            _ => {}
        }
        if slot.compare_exchange(word, new.pack(), Ordering::AcqRel, Ordering::Acquire).is_ok() {
            return None;
        }
    }
}

/// Records in a rank's word that it withholds an error that another rank prints. Returns false if
/// the word has an error that the supervisor has not read. Async-signal-safe.
pub(super) fn withhold(word: &AtomicU64, printed: ErrorClaim) -> bool {
    // Release pairs with the Acquire in `withheld`.
    word.compare_exchange(0, printed.pack(), Ordering::Release, Ordering::Relaxed).is_ok()
}

/// The error that a rank of a job of `size` withholds, and withholds no more.
#[cfg(feature = "hosted")]
pub(super) fn withheld(word: &AtomicU64, size: u32) -> Option<ErrorClaim> {
    ErrorClaim::unpack(word.swap(0, Ordering::Acquire), size)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn table() -> [AtomicU64; SLOTS] {
        core::array::from_fn(|_| AtomicU64::new(0))
    }

    #[test]
    fn the_first_prints_and_others_shortly_after_do_not() {
        let table = table();
        let by = |hash, rank, now| claim(&table, ErrorClaim::new(hash, rank, now), 64);
        assert_eq!(by(7, 5, 0), None);
        assert_eq!(by(7, 6, SECOND / 2).map(|c| c.rank), Some(5));
        // The same rank prints what it prints again; another text is another error.
        assert_eq!(by(7, 5, SECOND / 2), None);
        assert_eq!(by(8, 6, SECOND / 2), None);
        // Later it is news again, also when the time of the word has wrapped.
        assert_eq!(by(7, 9, 60 * SECOND), None);
        assert_eq!(by(7, 10, 60 * SECOND).map(|c| c.rank), Some(9));
    }

    /// Ranks withhold what the supervisor passes on, and the other way round.
    #[test]
    fn a_supervisor_claims_for_other_hosts() {
        let table = table();
        let by = |hash, rank, now| claim(&table, ErrorClaim::new(hash, rank, now), 64);
        assert_eq!(by(7, ELSEWHERE, 0), None);
        assert_eq!(by(7, 63, SECOND).map(|c| c.rank), Some(ELSEWHERE));
        assert_eq!(by(9, 63, SECOND), None);
        assert_eq!(by(9, ELSEWHERE, SECOND).map(|c| c.rank), Some(63));
    }

    #[test]
    fn what_is_withheld_is_read_once() {
        let (word, claim) = (AtomicU64::new(0), ErrorClaim::new(u32::MAX, 4095, u64::MAX));
        assert_eq!(withheld(&word, 4096), None);
        assert!(withhold(&word, claim) && !withhold(&word, claim));
        assert_eq!((withheld(&word, 4096), withheld(&word, 4096)), (Some(claim), None));
        // A word that was overwritten names no rank of the job.
        word.store(claim.pack(), Ordering::Relaxed);
        assert_eq!(withheld(&word, 4), None);
    }
}
