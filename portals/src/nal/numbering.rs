//! The numbers that an interface gives to the processes of all hosts.
//!
//! Made for `super::joined`; used by `peer` and by wires. Invariant: the processes of
//! this host have the numbers 0 to n - 1, by their `pid`. Those of other hosts follow in the
//! order of (`nid`, `pid`). So structures that the processes of a host share stay small, and
//! only the owner of an interface knows its numbers of other hosts.

use alloc::sync::Arc;
use alloc::vec::Vec;

use crate::arena::PROCESSES;
use crate::types::*;

/// Most processes of all hosts together: [`RemoteName`] has 31 bits.
const MOST: u64 = 1 << 30;

/// See the head of this file.
#[derive(Clone, Debug)]
pub struct HostNumbering {
    nid: u32,
    /// Processes of this host.
    own: u32,
    /// Per host the number of processes on the hosts before it; at the end that of all.
    before: Arc<[u32]>,
}

impl HostNumbering {
    /// For the host `nid`; host `i` has `hosts[i]` processes. `None`: there is no such host, or
    /// more processes than an interface can name.
    pub fn new(nid: u32, hosts: &[u32]) -> Option<HostNumbering> {
        let own = *hosts.get(nid as usize)?;
        let mut before = Vec::with_capacity(hosts.len() + 1);
        let mut sum = 0u64;
        before.push(0);
        for &processes in hosts {
            sum += u64::from(processes);
            if processes > PROCESSES || sum > MOST {
                return None;
            }
            before.push(sum as u32);
        }
        Some(HostNumbering { nid, own, before: before.into() })
    }

    /// Processes of this host.
    pub fn own(&self) -> u32 {
        self.own
    }

    /// Processes of all hosts.
    pub fn total(&self) -> u32 {
        self.before.last().copied().unwrap_or(0)
    }

    /// The position of a process among all in the order of (`nid`, `pid`).
    pub fn position(&self, id: PtlProcessId) -> Option<u32> {
        let nid = id.nid as usize;
        let (first, end) = (*self.before.get(nid)?, *self.before.get(nid + 1)?);
        (id.pid < end - first).then(|| first + id.pid)
    }

    /// The number of a process.
    pub fn number(&self, id: PtlProcessId) -> Option<u32> {
        let position = self.position(id)?;
        Some(match id.nid {
            nid if nid == self.nid => id.pid,
            nid if nid < self.nid => self.own + position,
            _ => position,
        })
    }

    /// The number of the process at this position ([`HostNumbering::position`]).
    pub(crate) fn number_at(&self, position: u32) -> Option<u32> {
        let (first, end) = (self.before[self.nid as usize], self.before[self.nid as usize + 1]);
        (position < self.total()).then(|| match position {
            _ if position < first => self.own + position,
            _ if position < end => position - first,
            _ => position,
        })
    }

    /// The process with this number.
    pub fn process(&self, number: u32) -> Option<PtlProcessId> {
        if number < self.own {
            return Some(PtlProcessId { nid: self.nid, pid: number });
        }
        let first = self.before[self.nid as usize];
        let position = if number - self.own < first { number - self.own } else { number };
        if position >= self.total() {
            return None;
        }
        let nid = self.before.partition_point(|&before| before <= position) - 1;
        Some(PtlProcessId { nid: nid as u32, pid: position - self.before[nid] })
    }
}

/// How an event names a process of another host: 16 bits, of which the highest is set, in the
/// place of a number, and 16 in the highest bits of the message's length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RemoteName {
    /// In the place of the number.
    pub(crate) low: u32,
    /// In the highest bits of the length.
    pub(crate) high: u64,
}

impl RemoteName {
    const FIRST: u32 = 0x8000;
    /// The bits of a length that are one.
    pub(crate) const LENGTH: u64 = (1 << 48) - 1;

    /// The name of the process that comes `after` all of this host.
    pub(crate) fn new(after: u32) -> RemoteName {
        let (low, high) = (after & (Self::FIRST - 1), u64::from(after >> 15));
        RemoteName { low: Self::FIRST | low, high: high << 48 }
    }

    /// Whether this is no number of this host.
    #[inline(always)]
    pub(crate) fn is_one(low: u32) -> bool {
        low >= Self::FIRST
    }

    /// The place of the process after all of this host.
    pub(crate) fn after(low: u32, length: u64) -> u32 {
        ((length >> 48) as u32) << 15 | low & (Self::FIRST - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_processes_come_first_and_the_others_in_order() {
        for nid in 0..4 {
            let hosts = [4, 0, 1, 3];
            let numbering = HostNumbering::new(nid, &hosts).unwrap();
            let (own, total) = (hosts[nid as usize], 8);
            assert_eq!((numbering.own(), numbering.total()), (own, total));
            let ids: Vec<_> = (0..total).map(|n| numbering.process(n).unwrap()).collect();
            for (number, &id) in (0..).zip(&ids) {
                assert_eq!(numbering.number(id), Some(number));
                let position = numbering.position(id).unwrap();
                assert_eq!(numbering.number_at(position), Some(number));
            }
            assert!(ids[..own as usize].iter().all(|id| id.nid == nid));
            let others = &ids[own as usize..];
            assert!(others.is_sorted_by_key(|id| (id.nid, id.pid)));
            assert_eq!(numbering.process(total), None);
            assert_eq!(numbering.number_at(total), None);
            assert_eq!(numbering.process(u32::MAX), None);
            for (nid, pid) in [(0, 4), (1, 0), (4, 0), (u32::MAX, 0)] {
                assert_eq!(numbering.number(PtlProcessId { nid, pid }), None);
            }
        }
        assert!(HostNumbering::new(2, &[1, 1]).is_none());
        assert!(HostNumbering::new(0, &[PROCESSES + 1]).is_none());
        assert!(HostNumbering::new(0, &[PROCESSES; 1 << 16]).is_none());
        assert_eq!(HostNumbering::new(9, &[16; 4096]).unwrap().total(), 65_536);
    }

    #[test]
    fn a_name_holds_any_number() {
        for after in [0, 1, 0x7fff, 0x8000, 0xffff, 0x10000, (1 << 30) - 1] {
            let name = RemoteName::new(after);
            assert!(RemoteName::is_one(name.low) && name.low < 1 << 16);
            assert_eq!(RemoteName::after(name.low, name.high | 77), after);
        }
        const { assert!(PROCESSES < RemoteName::FIRST) };
    }
}
