//! The decision to end the job, and how it fits in the word that all processes share.
//!
//! Used by the supervisor and the ranks. Invariant: the word of a decision is never 0; 0 means
//! that there is no decision yet. Any other value that no decision makes is found by its checksum.
//!
//! The first decision with a failing code is final. One with a succeeding code (its low 8 bits are
//! 0) becomes final with the order to exit. Until then, a failing one takes its place.
//!
//! ```text
//! 63     41 40    39   37 36     16 15   0
//! checksum  final cause   rank      code
//! ```

use crate::rank::JobRank;

/// Why a job ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitCause {
    /// A rank called `gasnet_exit`.
    Exit,
    /// A rank ended without `gasnet_exit`: it returned from `main`, or called `exit` or `_exit`.
    Ended,
    /// A rank was killed by a signal.
    Killed,
    /// The supervisor failed, or has exited.
    Supervisor,
    /// The library found an error in a rank, which has printed it.
    Error,
    /// A signal asked a rank or the supervisor to end.
    Signal,
}

const CAUSES: [ExitCause; 6] = [
    ExitCause::Exit,
    ExitCause::Ended,
    ExitCause::Killed,
    ExitCause::Supervisor,
    ExitCause::Error,
    ExitCause::Signal,
];

/// The decision to end the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExitDecision {
    /// Exit code of the job; the system passes on its low 8 bits.
    pub code: i32,
    /// Why.
    pub cause: ExitCause,
    /// The rank that caused it; `None` for the supervisor.
    pub rank: Option<JobRank>,
    /// No other decision takes its place.
    pub is_final: bool,
}

/// Where the parts begin; the checksum covers all below it.
const CODE_BITS: u32 = 16;
const CAUSE_SHIFT: u32 = 37;
const FINAL_SHIFT: u32 = 40;
const COVERED_BITS: u32 = 41;
const NO_RANK: u64 = (1 << (CAUSE_SHIFT - CODE_BITS)) - 1;

/// A word that is neither 0 nor made by [`ExitDecision::pack`]: memory was overwritten.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct DamagedDecision(pub(super) u64);

/// The checksum of the other bits: the upper bits of a product, which depend on all of them.
const fn checksum(covered: u64) -> u64 {
    (covered ^ 0x5a).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> COVERED_BITS
}

/// The grace period in nanoseconds: longer after a success, where the other ranks are usually
/// about to finish as well.
pub(super) const GRACE_AFTER_SUCCESS: u64 = 1_000_000_000;
pub(super) const GRACE_AFTER_FAILURE: u64 = 250_000_000;

/// Whether an exit code means success: the system passes on its low 8 bits.
pub fn is_success(code: i32) -> bool {
    code & 0xff == 0
}

impl ExitDecision {
    /// What holds if a decision was overwritten.
    pub(super) const FAILURE: ExitDecision =
        ExitDecision { code: 1, cause: ExitCause::Supervisor, rank: None, is_final: true };

    /// Whether this decision holds where two ranks decided before they knew of each other: a
    /// failure prevails over a success, then the lower rank. An order: merging decisions gives the
    /// same result in any sequence.
    pub(super) fn prevails(self, over: ExitDecision) -> bool {
        let key = |d: ExitDecision| {
            (d.is_success(), d.rank.map_or(u32::MAX, |r| r.0), d.code, d.cause as u8)
        };
        key(self) < key(over)
    }

    /// That `rank`, or the supervisor, ends the job with this code.
    pub fn new(code: i32, cause: ExitCause, rank: Option<JobRank>) -> ExitDecision {
        ExitDecision { code, cause, rank, is_final: !is_success(code) }
    }

    /// Whether the job succeeds.
    pub fn is_success(self) -> bool {
        is_success(self.code)
    }

    /// Nanoseconds that other ranks may go on after it.
    pub(super) fn grace_ns(self) -> u64 {
        if self.is_success() { GRACE_AFTER_SUCCESS } else { GRACE_AFTER_FAILURE }
    }

    /// As a word other than 0, whose low bits are the exit code. A code of more than 16 bits
    /// loses all but the 8 that the system passes on.
    pub(super) fn pack(self) -> u64 {
        let code = i16::try_from(self.code).unwrap_or((self.code & 0xff) as i16);
        let rank = self.rank.map_or(NO_RANK, |r| u64::from(r.0).min(NO_RANK - 1));
        let covered = u64::from(self.is_final) << FINAL_SHIFT
            | (self.cause as u64) << CAUSE_SHIFT
            | rank << CODE_BITS
            | u64::from(code as u16);
        checksum(covered) << COVERED_BITS | covered
    }

    /// The decision in a word; `None` for 0.
    pub(super) fn unpack(word: u64) -> Result<Option<ExitDecision>, DamagedDecision> {
        if word == 0 {
            return Ok(None);
        }
        let covered = word & ((1 << COVERED_BITS) - 1);
        if word >> COVERED_BITS != checksum(covered) {
            return Err(DamagedDecision(word));
        }
        let cause =
            *CAUSES.get((covered >> CAUSE_SHIFT & 7) as usize).ok_or(DamagedDecision(word))?;
        let rank = covered >> CODE_BITS & NO_RANK;
        Ok(Some(ExitDecision {
            code: (covered as u16 as i16).into(),
            cause,
            rank: (rank != NO_RANK).then_some(JobRank(rank as u32)),
            is_final: covered >> FINAL_SHIFT & 1 != 0,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decisions_survive_packing() {
        for code in [0, 1, 139, -1, 0x1234, i16::MIN.into()] {
            for cause in CAUSES {
                for rank in [None, Some(JobRank(0)), Some(JobRank(4095))] {
                    let d = ExitDecision::new(code, cause, rank);
                    assert_eq!(d.is_final, code & 0xff != 0);
                    for d in [d, ExitDecision { is_final: true, ..d }] {
                        assert_ne!(d.pack(), 0);
                        assert_eq!(ExitDecision::unpack(d.pack()), Ok(Some(d)));
                    }
                }
            }
        }
        assert_eq!(ExitDecision::unpack(0), Ok(None));
    }

    #[test]
    fn a_failure_prevails_then_the_lower_rank() {
        let of = |rank, code| ExitDecision::new(code, ExitCause::Exit, rank);
        let order = [
            of(Some(JobRank(0)), 9),
            of(Some(JobRank(2)), 3),
            of(None, 1),
            of(Some(JobRank(0)), 0),
            of(Some(JobRank(1)), 0),
        ];
        for (i, &a) in order.iter().enumerate() {
            for (j, &b) in order.iter().enumerate() {
                assert_eq!(a.prevails(b), i < j);
            }
        }
    }

    #[test]
    fn of_a_long_code_the_system_gets_the_same() {
        for code in [i32::MAX, i32::MIN, 0x1_0005, 40_000] {
            let d = ExitDecision::new(code, ExitCause::Exit, None);
            let unpacked = ExitDecision::unpack(d.pack()).unwrap().unwrap();
            assert_eq!(unpacked.code & 0xff, code & 0xff);
        }
    }

    #[test]
    fn other_words_are_no_decisions() {
        let d = ExitDecision::new(0, ExitCause::Exit, Some(JobRank(0)));
        for bit in 0..64 {
            let word = d.pack() ^ 1 << bit;
            assert_eq!(ExitDecision::unpack(word), Err(DamagedDecision(word)));
        }
        for word in [1, 45, u64::MAX, 0xb000_0001_0000_0001, u64::from_ne_bytes([0x55; 8])] {
            assert_eq!(ExitDecision::unpack(word), Err(DamagedDecision(word)));
        }
    }
}
