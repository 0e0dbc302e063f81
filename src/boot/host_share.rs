//! The ranks of a job that run on one host, and the place of each.
//!
//! Made by `launch`, `fork`, `foreign` and `remote_host`, owned by the supervisor of the host.
//! Invariant: the ranks are in ascending order, so a local rank is the position among them.

use crate::rank::{JobRank, LocalRank};
use std::collections::BTreeSet;

/// The ranks of a job that run on one host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostShare {
    /// Ranks of the job.
    pub size: u32,
    /// A number that no other host of the job has.
    pub host: u32,
    /// The hosts of the job that have ranks.
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

    /// One of `hosts` hosts, with these ranks. Its number is that of its lowest rank. `None` if
    /// there is none, or one is twice there or not of the job.
    pub fn of_ranks(size: u32, hosts: u32, mut ranks: Vec<u32>) -> Option<HostShare> {
        ranks.sort_unstable();
        let (host, last) = (*ranks.first()?, *ranks.last()?);
        let is_alone = ranks.len() == size as usize;
        let fits = ranks.windows(2).all(|pair| pair[0] != pair[1])
            && last < size
            && hosts <= size
            && is_alone == (hosts == 1);
        let ranks = ranks.into_iter().map(JobRank).collect();
        fits.then_some(HostShare { size, host, hosts, ranks })
    }

    /// The host of `rank` where `names` calls the host of each rank, by rank, by any name.
    pub fn of_names<N: Ord>(rank: u32, names: &[N]) -> Option<HostShare> {
        let hosts = names.iter().collect::<BTreeSet<_>>().len() as u32;
        let own = names.get(rank as usize)?;
        let ranks = (0..).zip(names).filter(|(_, name)| *name == own).map(|(rank, _)| rank);
        HostShare::of_ranks(names.len() as u32, hosts, ranks.collect())
    }

    /// The lowest rank of the host.
    pub fn leader(&self) -> JobRank {
        JobRank(self.ranks.first().map_or(0, |rank| rank.0))
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

    #[test]
    fn a_host_is_called_by_any_name() {
        let share = HostShare::of_names(3, &["b", "a", "b", "a", "c"]).unwrap();
        assert_eq!((share.host, share.hosts, share.size), (1, 3, 5));
        assert_eq!((share.ranks(), share.leader()), (&[JobRank(1), JobRank(3)][..], JobRank(1)));
        assert_eq!(HostShare::of_names(1, &[0, 0]).unwrap(), HostShare::whole(2));
        assert_eq!(HostShare::of_names(2, &[0, 0]), None);
    }

    #[test]
    fn ranks_of_a_launcher_are_those_of_the_job() {
        let share = HostShare::of_ranks(6, 3, vec![4, 2]).unwrap();
        assert_eq!(share.ranks(), [JobRank(2), JobRank(4)]);
        for (hosts, wrong) in
            [(3, &[][..]), (3, &[2, 2]), (3, &[6]), (1, &[1]), (7, &[1]), (2, &[0, 1, 2, 3, 4, 5])]
        {
            assert_eq!(HostShare::of_ranks(6, hosts, wrong.to_vec()), None, "{hosts} {wrong:?}");
        }
    }
}
