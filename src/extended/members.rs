//! The ranks of a team and the ranks in the job that they stand for.
//!
//! Used by teams and their barriers. Invariant: a [`TeamRank`] becomes a [`JobRank`] here, for
//! the team of all ranks in `runtime::team`, and nowhere else; the other way round too.

use crate::rank::{JobRank, TeamRank};
use alloc::sync::Arc;
use alloc::vec::Vec;

/// The members of a team, as one of them sees it.
#[derive(Clone, Debug)]
pub(super) struct TeamMembers {
    /// By rank in the team.
    ranks: Arc<[JobRank]>,
    me: TeamRank,
}

impl TeamMembers {
    /// The team of these ranks, in this order.
    ///
    /// # Panics
    /// If `own`, the rank of this process, is not among them.
    pub(super) fn new(ranks: Vec<JobRank>, own: JobRank) -> TeamMembers {
        let me = ranks.iter().position(|&r| r == own).expect("a team is made by its members");
        TeamMembers { ranks: ranks.into(), me: TeamRank(me as u32) }
    }

    /// How many members the team has.
    pub(super) fn size(&self) -> u32 {
        self.ranks.len() as u32
    }

    /// The rank of this process in the team.
    pub(super) fn me(&self) -> TeamRank {
        self.me
    }

    /// The member with this rank; `None` if the team has fewer.
    pub(super) fn get(&self, rank: TeamRank) -> Option<JobRank> {
        self.ranks.get(rank.index()).copied()
    }

    /// The member with this rank, which exists.
    pub(super) fn job_rank(&self, rank: TeamRank) -> JobRank {
        self.ranks[rank.index()]
    }

    /// The rank in the team; `None` for a process that is not a member.
    pub(super) fn team_rank(&self, rank: JobRank) -> Option<TeamRank> {
        self.ranks.iter().position(|&r| r == rank).map(|r| TeamRank(r as u32))
    }

    /// All members, in the order of the team.
    pub(super) fn all(&self) -> impl Iterator<Item = JobRank> {
        self.ranks.iter().copied()
    }
}
