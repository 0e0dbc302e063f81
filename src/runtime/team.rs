//! The team of all ranks: what a context names as its team.
//!
//! Made by `start`; teams that a client splits off are `extended::coll`. Invariant: rank `n` of
//! this team is rank `n` of the job. Calls that name ranks of this team, or
//! of a pair of endpoints, rely on it.

use crate::rank::{JobRank, NamedRank, TeamRank};
use crate::report;

/// The team of all ranks, as one of them sees it.
#[derive(Clone, Copy, Debug)]
pub struct JobTeam {
    size: u32,
    me: TeamRank,
}

impl JobTeam {
    /// That of a job of `size` ranks, in which this process is `own`.
    pub(super) fn new(size: u32, own: JobRank) -> JobTeam {
        JobTeam { size, me: TeamRank(own.0) }
    }

    /// How many ranks it has.
    pub fn size(&self) -> u32 {
        self.size
    }

    /// The rank of this process.
    pub fn me(&self) -> TeamRank {
        self.me
    }

    /// The rank in the job of a member.
    pub fn job_rank(&self, member: TeamRank) -> JobRank {
        JobRank(member.0)
    }

    /// The rank of a process; `None` if the job has no such rank.
    pub fn team_rank(&self, rank: JobRank) -> Option<TeamRank> {
        (rank.0 < self.size).then_some(TeamRank(rank.0))
    }

    /// The ranks in the job of all members, in the order of the team.
    pub fn ranks(&self) -> impl Iterator<Item = JobRank> + use<> {
        (0..self.size).map(JobRank)
    }

    /// The rank that a client calls `node`. Ends the job if it has none.
    #[inline(always)]
    pub fn check_rank(&self, function: &str, node: u32) -> JobRank {
        if node >= self.size {
            self.no_such_rank(function, node);
        }
        JobRank(node)
    }

    /// Ends the job: it has no rank `node`.
    pub fn no_such_rank(&self, function: &str, node: u32) -> ! {
        report::fatal(
            format_args!(
                "{function}(): rank {} is out of range; this job has {}, numbered from 0",
                NamedRank(node),
                self.size
            ),
            format_args!(
                "Pass a rank below {}.",
                report::remedy_of(function, "gasnet_nodes()", "gex_TM_QuerySize() of the team")
            ),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn the_members_are_all_ranks() {
        let team = JobTeam::new(3, JobRank(2));
        assert_eq!(team.ranks().collect::<Vec<_>>(), [JobRank(0), JobRank(1), JobRank(2)]);
        assert_eq!((team.size(), team.job_rank(team.me())), (3, JobRank(2)));
        assert_eq!(team.check_rank("gasnet_put", 1), JobRank(1));
        assert_eq!(team.team_rank(JobRank(2)), Some(TeamRank(2)));
        assert_eq!(team.team_rank(JobRank(3)), None);
    }
}
