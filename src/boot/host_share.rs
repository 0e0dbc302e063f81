//! The ranks of a job that run on one host, and the place of each.
//!
//! Made by `launch`, `fork`, `foreign` and `remote_host`, owned by the supervisor of the host.
//! Invariant: the ranks are in ascending order, so a local rank is the position among them.

use crate::rank::{JobRank, LocalRank};

/// The ranks of a job that run on one host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostShare {
    /// Ranks of the job.
    pub size: u32,
    /// The number of this host, from 0, and the hosts of the job that have ranks.
    pub host: u32,
    /// See [`HostShare::host`].
    pub hosts: u32,
    ranks: Box<[JobRank]>,
}

/// Where a rank stands in its job and on its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RankPlace {
    /// Its rank.
    pub rank: JobRank,
    /// Ranks of the job.
    pub size: u32,
    /// The number of its host, and the hosts of the job.
    pub host: u32,
    /// See [`RankPlace::host`].
    pub hosts: u32,
    /// Its rank on its host.
    pub local_rank: LocalRank,
    /// Ranks of the job on its host.
    pub local_size: u32,
}

impl RankPlace {
    /// A rank of a job whose `size` ranks run on one host.
    pub fn on_one_host(rank: JobRank, size: u32) -> RankPlace {
        let (local_rank, local_size) = (LocalRank(rank.0), size);
        RankPlace { rank, size, host: 0, hosts: 1, local_rank, local_size }
    }
}

impl HostShare {
    /// All `size` ranks run on this host.
    pub fn whole(size: u32) -> HostShare {
        HostShare { size, host: 0, hosts: 1, ranks: (0..size).map(JobRank).collect() }
    }

    /// Host `host` where `hosts` names the host of each rank, by rank.
    pub fn of_host(host: u32, hosts: &[u32]) -> HostShare {
        let ranks = (0..).map(JobRank).zip(hosts).filter(|(_, h)| **h == host);
        HostShare {
            size: hosts.len() as u32,
            host,
            hosts: hosts.iter().max().map_or(0, |most| most + 1),
            ranks: ranks.map(|(rank, _)| rank).collect(),
        }
    }

    /// The ranks, in ascending order.
    pub fn ranks(&self) -> &[JobRank] {
        &self.ranks
    }

    /// Ranks of this host.
    pub fn local_size(&self) -> u32 {
        self.ranks.len() as u32
    }

    /// The rank on this host of a rank of the job; `None` for one of another host.
    pub fn local_rank_of(&self, rank: JobRank) -> Option<LocalRank> {
        self.ranks.binary_search(&rank).ok().map(|i| LocalRank(i as u32))
    }

    /// The place of a rank of this host.
    pub fn place(&self, local_rank: LocalRank) -> RankPlace {
        RankPlace {
            rank: self.ranks[local_rank.index()],
            size: self.size,
            host: self.host,
            hosts: self.hosts,
            local_rank,
            local_size: self.local_size(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_local_rank_is_the_position_on_the_host() {
        let share = HostShare::of_host(1, &[0, 1, 0, 1, 1]);
        assert_eq!((share.local_size(), share.hosts, share.size), (3, 2, 5));
        assert_eq!(share.local_rank_of(JobRank(3)), Some(LocalRank(1)));
        assert_eq!(share.local_rank_of(JobRank(2)), None);
        assert_eq!(share.place(LocalRank(2)).rank, JobRank(4));
        assert_eq!(HostShare::whole(3).place(LocalRank(2)).rank, JobRank(2));
        assert_eq!(HostShare::of_host(2, &[0, 1]).local_size(), 0);
    }
}
