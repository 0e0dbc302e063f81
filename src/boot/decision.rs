//! The decision to end the job, and how it fits in the word that all processes share.
//!
//! Used by the supervisor and the ranks. Invariant: the word of a decision is never 0;
//! 0 means that there is no decision yet. Every other word decodes to a decision.

use crate::rank::JobRank;

/// Why a job ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitCause {
    /// A rank called `gasnet_exit` or `exit`, or returned from `main`.
    Exit,
    /// A rank ended without notice.
    Vanished,
    /// A rank was killed by a signal.
    Killed,
    /// The supervisor failed, received a signal to stop, or has exited.
    Supervisor,
}

/// The decision to end the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExitDecision {
    /// Exit code of the job; the system passes on its low 8 bits.
    pub code: i32,
    /// Why.
    pub cause: ExitCause,
    /// The rank that caused it; `None` for the supervisor.
    pub rank: Option<JobRank>,
}

const SET: u64 = 1 << 63;
const NO_RANK: u64 = 0x0fff_ffff;

impl ExitDecision {
    /// As a word other than 0, whose low half is the exit code.
    pub(super) fn pack(self) -> u64 {
        let rank = self.rank.map_or(NO_RANK, |r| u64::from(r.0).min(NO_RANK - 1));
        SET | (self.cause as u64) << 60 | rank << 32 | u64::from(self.code as u32)
    }

    /// The decision in a word; `None` for 0.
    pub(super) fn unpack(word: u64) -> Option<ExitDecision> {
        if word == 0 {
            return None;
        }
        let cause = match (word >> 60) & 7 {
            0 => ExitCause::Exit,
            1 => ExitCause::Vanished,
            2 => ExitCause::Killed,
            _ => ExitCause::Supervisor,
        };
        let rank = (word >> 32) & NO_RANK;
        Some(ExitDecision {
            code: word as u32 as i32,
            cause,
            rank: (rank != NO_RANK).then_some(JobRank(rank as u32)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decisions_survive_packing() {
        use ExitCause::{Exit, Killed, Supervisor, Vanished};
        for code in [0, 1, 139, -1, i32::MIN] {
            for cause in [Exit, Vanished, Killed, Supervisor] {
                for rank in [None, Some(JobRank(0)), Some(JobRank(4095))] {
                    let d = ExitDecision { code, cause, rank };
                    assert_eq!(ExitDecision::unpack(d.pack()), Some(d));
                }
            }
        }
        assert_eq!(ExitDecision::unpack(0), None);
    }
}
