//! Where the ranks of the job run: which of them share this host, and which of those form a
//! supernode.
//!
//! Made by `supervisor_link`, `single` and `linked`, read by the runtime. Invariant: in a rank,
//! only this converts between ranks of the job and ranks of this host.

use crate::rank::{ByJobRank, JobRank, LocalRank};
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// Where the ranks of the job run, as one of them knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    rank: JobRank,
    size: u32,
    local_rank: LocalRank,
    /// The ranks of this host in the order of their local ranks.
    local: Box<[JobRank]>,
    /// Where each rank runs, by rank; empty if all run on this host, or none is known to run on
    /// the host of another.
    places: Box<[HostPlace]>,
    /// Ranks of each host, by its number; empty as `places`.
    hosts: Box<[u32]>,
    supernode_size: u32,
}

/// The host of a rank, and its number among the ranks of that host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostPlace {
    /// Number of the host, from 0.
    pub host: u32,
    /// Its rank on that host.
    pub local_rank: LocalRank,
}

impl Placement {
    /// All `size` ranks run on this host, and form one supernode.
    pub fn one_host(rank: JobRank, size: u32) -> Placement {
        let local = (0..size).map(JobRank).collect();
        Placement {
            rank,
            size,
            local_rank: LocalRank(rank.0),
            local,
            places: [].into(),
            hosts: [].into(),
            supernode_size: u32::MAX,
        }
    }

    /// No rank of `size` is known to run on the host of another.
    pub fn apart(rank: JobRank, size: u32) -> Placement {
        Placement {
            rank,
            size,
            local_rank: LocalRank(0),
            local: [rank].into(),
            places: [].into(),
            hosts: [].into(),
            supernode_size: u32::MAX,
        }
    }

    /// The same where `hosts` names the host of each rank, by rank, each host by any number. Hosts
    /// are numbered anew, in the order of their lowest ranks.
    pub fn with_hosts(self, hosts: &[u32]) -> Placement {
        let mut numbers = BTreeMap::new();
        let mut sizes: Vec<u32> = Vec::new();
        let place = |name: &u32| {
            let host = *numbers.entry(*name).or_insert(sizes.len() as u32);
            if host as usize == sizes.len() {
                sizes.push(0);
            }
            let local_rank = LocalRank(sizes[host as usize]);
            sizes[host as usize] += 1;
            HostPlace { host, local_rank }
        };
        let places: Box<[HostPlace]> = hosts.iter().map(place).collect();
        let own = places[self.rank.index()];
        let ranks = (0..self.size).map(JobRank);
        let local = ranks.filter(|r| places[r.index()].host == own.host).collect();
        Placement { local_rank: own.local_rank, local, places, hosts: sizes.into(), ..self }
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

    /// Ranks of each host, by its number.
    pub fn hosts(&self) -> &[u32] {
        match self.hosts.is_empty() {
            true => core::slice::from_ref(&self.size),
            false => &self.hosts,
        }
    }

    /// Where a rank of the job runs. Of ranks whose hosts are not known ([`Placement::apart`]),
    /// each has host 0 and its own number there.
    pub fn place_of(&self, rank: JobRank) -> HostPlace {
        let unknown = HostPlace { host: 0, local_rank: LocalRank(rank.0) };
        self.places.get(rank.index()).copied().unwrap_or(unknown)
    }

    /// The number in the job of the supernode of each rank, by rank.
    pub fn supernodes(&self) -> ByJobRank<u32> {
        let mut first = 0;
        let firsts = self.hosts().iter().map(|ranks| {
            let own = first;
            first += ranks.div_ceil(self.supernode_size);
            own
        });
        let firsts: Vec<u32> = firsts.collect();
        let number = |rank| {
            let HostPlace { host, local_rank } = self.place_of(rank);
            firsts[host as usize] + self.supernode(local_rank)
        };
        (0..self.size).map(|rank| number(JobRank(rank))).collect()
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
        assert_eq!(p.hosts(), [3, 2]);
        let place = HostPlace { host: 1, local_rank: LocalRank(1) };
        assert_eq!(p.place_of(JobRank(2)), place);
        assert_eq!(p.supernodes().as_slice(), [0, 1, 1, 0, 0]);
        assert_eq!(p.with_supernodes(2).supernodes().as_slice(), [0, 2, 2, 0, 1]);
        let one = Placement::one_host(JobRank(0), 3).with_supernodes(1);
        assert_eq!((one.hosts(), one.supernodes().as_slice()), (&[3][..], &[0, 1, 2][..]));
    }
}
