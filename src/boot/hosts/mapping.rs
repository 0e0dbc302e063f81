//! Which ranks a host has.
//!
//! Called by the program gasnetrun. Invariant: every rank has a host, and no host has more ranks
//! than slots.

use super::list::HostList;
use crate::boot::error::BootError;
use crate::boot::launch_plan::HostPlan;
use crate::limits::MAX_HOST_RANKS;
use std::collections::BTreeSet;

/// The order in which ranks are given to hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RankMapping {
    /// A host gets as many consecutive ranks as it has slots.
    Core,
    /// The hosts get a rank each in turn.
    Host,
}

/// Distributes `size` ranks. A host without slots of its own has `each`; without that, all hosts
/// get the same number of ranks.
///
/// # Errors
/// The hosts have too few slots, or one has too many ranks.
pub fn map(
    list: &HostList,
    size: u32,
    mapping: RankMapping,
    each: Option<u32>,
) -> Result<HostPlan, BootError> {
    let equal = size.div_ceil(list.hosts.len() as u32);
    let slots: Vec<u32> =
        list.hosts.iter().map(|h| each.or(h.slots).unwrap_or(equal).min(size)).collect();
    let all: u64 = slots.iter().map(|&n| u64::from(n)).sum();
    if all < u64::from(size) {
        let hosts: Vec<String> =
            list.hosts.iter().zip(&slots).map(|(h, n)| format!("{}:{n}", h.name)).collect();
        return Err(BootError::new(
            format!("{size} ranks need {size} slots, but {} has {all}", list.source),
            format!("Start fewer ranks, or give the hosts more slots than {}.", hosts.join(",")),
        ));
    }
    let mut host_of = Vec::with_capacity(size as usize);
    let mut left = slots;
    while host_of.len() < size as usize {
        for (host, left) in (0..).zip(&mut left) {
            let take = match mapping {
                RankMapping::Core => *left,
                RankMapping::Host => (*left).min(1),
            };
            let take = take.min(size - host_of.len() as u32);
            host_of.extend(std::iter::repeat_n(host, take as usize));
            *left -= take;
        }
    }
    let mut ranks = vec![0; list.hosts.len()];
    host_of.iter().for_each(|&host| ranks[host as usize] += 1);
    if let Some((host, n)) = list.hosts.iter().zip(ranks).find(|&(_, n)| n > MAX_HOST_RANKS) {
        return Err(BootError::new(
            format!("host {} gets {n} ranks, but one host can have {MAX_HOST_RANKS}", host.name),
            "Name more hosts, or give this one fewer slots.",
        ));
    }
    Ok(HostPlan { names: list.hosts.iter().map(|h| h.name.clone()).collect(), host_of }.used())
}

impl HostPlan {
    /// Without hosts that have no rank.
    fn used(self) -> HostPlan {
        let HostPlan { names, mut host_of } = self;
        let used: Vec<u32> = BTreeSet::from_iter(host_of.iter().copied()).into_iter().collect();
        for host in &mut host_of {
            // Every host of a rank is one of them.
            *host = used.binary_search(host).unwrap_or_default() as u32;
        }
        HostPlan {
            names: used.iter().map(|&host| names[host as usize].clone()).collect(),
            host_of,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(text: &str, size: u32, mapping: RankMapping, each: Option<u32>) -> Option<Vec<u32>> {
        let list = HostList::of_names("-H", text).unwrap();
        map(&list, size, mapping, each).ok().map(|plan| {
            assert!(plan.host_of.iter().all(|&h| (h as usize) < plan.names.len()));
            plan.host_of
        })
    }

    #[test]
    fn ranks_fill_slots_or_take_turns() {
        use RankMapping::{Core, Host};
        assert_eq!(hosts("a:4,b:1,c:1", 6, Core, None).unwrap(), [0, 0, 0, 0, 1, 2]);
        assert_eq!(hosts("a:4,b:1,c:1", 6, Host, None).unwrap(), [0, 1, 2, 0, 0, 0]);
        assert_eq!(hosts("a,b", 5, Core, None).unwrap(), [0, 0, 0, 1, 1]);
        assert_eq!(hosts("a,b,c", 3, Core, Some(2)).unwrap(), [0, 0, 1]);
        assert_eq!(hosts("a:1,b:1", 3, Core, None), None);
        assert_eq!(hosts("a:1,b:1", 3, Core, Some(2)).unwrap(), [0, 0, 1]);
        assert_eq!(hosts("a,b", 2 * MAX_HOST_RANKS, Core, None).unwrap().len(), 8192);
        assert_eq!(hosts("a,b", 2 * MAX_HOST_RANKS + 1, Core, None), None);
    }

    #[test]
    fn a_host_without_ranks_has_no_number() {
        let list = HostList::of_names("-H", "a:1,b:5,c:2").unwrap();
        let plan = map(&list, 3, RankMapping::Core, None).unwrap();
        assert_eq!(plan.names, ["a", "b"]);
        let one = map(&list, 1, RankMapping::Host, None).unwrap();
        assert_eq!((one.names.len(), one.host_of), (1, vec![0]));
    }
}
