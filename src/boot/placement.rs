//! Where the ranks of the job run: which of them share this host, and which of those form a
//! supernode.
//!
//! Made by `supervisor_link`, `single` and `linked`, read by the runtime. Invariant: in a rank,
//! only this converts between ranks of the job and ranks of this host.

use crate::rank::{JobRank, LocalRank};

/// Where the ranks of the job run, as one of them knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    rank: JobRank,
    size: u32,
    local_rank: LocalRank,
    /// The ranks of this host in the order of their local ranks.
    local: Box<[JobRank]>,
    supernode_size: u32,
}

impl Placement {
    /// All `size` ranks run on this host, and form one supernode.
    pub fn one_host(rank: JobRank, size: u32) -> Placement {
        let local = (0..size).map(JobRank).collect();
        Placement { rank, size, local_rank: LocalRank(rank.0), local, supernode_size: u32::MAX }
    }

    /// No rank of `size` is known to run on the host of another.
    pub fn apart(rank: JobRank, size: u32) -> Placement {
        Placement {
            rank,
            size,
            local_rank: LocalRank(0),
            local: [rank].into(),
            supernode_size: u32::MAX,
        }
    }

    /// The same where `hosts` names the host of each rank, by rank.
    pub fn with_hosts(self, hosts: &[u32]) -> Placement {
        let own = hosts[self.rank.index()];
        let ranks = (0..self.size).map(JobRank);
        let local: Box<[JobRank]> = ranks.filter(|r| hosts[r.index()] == own).collect();
        let before = local.iter().filter(|r| r.0 < self.rank.0).count();
        Placement { local_rank: LocalRank(before as u32), local, ..self }
    }

    /// The same with supernodes of at most `most` ranks; 0 for no limit.
    pub fn with_supernodes(self, most: u32) -> Placement {
        Placement { supernode_size: if most == 0 { u32::MAX } else { most }, ..self }
    }

    /// The rank of this process.
    pub fn rank(&self) -> JobRank {
        self.rank
    }

    /// Ranks of the job.
    pub fn size(&self) -> u32 {
        self.size
    }

    /// The rank of this process on its host.
    pub fn local_rank(&self) -> LocalRank {
        self.local_rank
    }

    /// Ranks of the job on this host.
    pub fn local_size(&self) -> u32 {
        self.local.len() as u32
    }

    /// The rank in the job of a rank of this host, if it has that one.
    pub fn job_rank(&self, local: LocalRank) -> Option<JobRank> {
        self.local.get(local.index()).copied()
    }

    /// The rank on this host of a rank of the job; `None` for a rank of another host.
    pub fn local_rank_of(&self, rank: JobRank) -> Option<LocalRank> {
        self.local.binary_search(&rank).ok().map(|i| LocalRank(i as u32))
    }

    /// The supernode of a rank of this host: ranks with equal numbers map each other's memory.
    /// Each consists of consecutive local ranks.
    pub fn supernode(&self, local: LocalRank) -> u32 {
        local.0 / self.supernode_size
    }

    /// Whether this process and another rank of the job map each other's memory.
    pub fn shares_memory(&self, rank: JobRank) -> bool {
        self.supernode_size > 1
            && self
                .local_rank_of(rank)
                .is_some_and(|local| self.supernode(local) == self.supernode(self.local_rank))
    }

    /// Whether all ranks of the job are in one supernode.
    pub fn is_one_supernode(&self) -> bool {
        self.local_size() == self.size && self.supernode_size >= self.size
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn supernodes_divide_a_host() {
        let all = Placement::one_host(JobRank(3), 5);
        assert!(all.is_one_supernode() && all.shares_memory(JobRank(0)));
        let pairs = all.clone().with_supernodes(2);
        assert!(pairs.shares_memory(JobRank(2)) && !pairs.shares_memory(JobRank(1)));
        assert_eq!((pairs.supernode(LocalRank(4)), pairs.is_one_supernode()), (2, false));
        let none = all.with_supernodes(1);
        assert!((0..5).all(|r| !none.shares_memory(JobRank(r))));
        assert_eq!(none.local_rank_of(JobRank(5)), None);
        assert_eq!(none.job_rank(LocalRank(4)), Some(JobRank(4)));
    }

    #[test]
    fn ranks_of_a_host_are_those_with_its_number() {
        let apart = Placement::apart(JobRank(3), 5);
        assert_eq!((apart.local_size(), apart.local_rank()), (1, LocalRank(0)));
        let p = apart.with_hosts(&[7, 9, 9, 7, 7]);
        assert_eq!((p.local_size(), p.local_rank()), (3, LocalRank(1)));
        assert_eq!(p.local_rank_of(JobRank(4)), Some(LocalRank(2)));
        assert_eq!((p.local_rank_of(JobRank(1)), p.is_one_supernode()), (None, false));
    }
}
