//! Barriers and exchanges of the ranks, completed by the root of the supervisors.
//!
//! Called by [`super::Supervisor`] for each message of a rank or of another host. Invariant: a
//! rank is in at most one of them, since it waits for the answer.
//!
//! ```text
//! all ranks of a host and of those below it   --Barrier, Contributions-->   host above
//! ranks and hosts below go on                 <--Barrier, Exchanged------   once all hosts are
//! ```

use super::other_hosts::OtherHosts;
use super::rank_process::RankProcess;
use crate::boot::control_message::{self, ControlHead, ControlKind};
use crate::boot::hosts::message::HostMessage;
use crate::boot::hosts::tree::{GateStep, TreeGate};
use crate::rank::JobRank;
use std::rc::Rc;

/// A rank sent what the protocol does not allow.
#[derive(Debug)]
pub(super) struct InvalidMessage(pub(super) JobRank);

/// What the ranks of this host and those below it have asked the host above for.
#[derive(Debug, Default)]
pub(super) struct BarrierExchange {
    barrier: TreeGate,
    exchange: TreeGate,
}

impl BarrierExchange {
    /// A rank of this host or a host below is in the barrier; releases all ranks once all are.
    pub(super) fn advance_barrier(&mut self, ranks: &mut [RankProcess], others: &mut OtherHosts) {
        let all = ranks.iter().all(|r| r.in_barrier) && others.are_in_barrier();
        match self.barrier.advance(all, others.is_root()) {
            GateStep::Wait => {}
            GateStep::Ask => others.send_up(&HostMessage::Barrier),
            GateStep::Open => self.release(ranks, others),
        }
    }

    /// All ranks of the job are in the barrier.
    pub(super) fn release(&mut self, ranks: &mut [RankProcess], others: &mut OtherHosts) {
        self.barrier.open();
        others.leave_barrier();
        let done = Rc::new(ControlHead::new(ControlKind::BarrierDone).bytes().to_vec());
        for r in ranks {
            r.in_barrier = false;
            r.send(done.clone());
        }
    }

    /// A rank of this host or a host below has contributed to an exchange; answers all ranks once
    /// all have. `size`: ranks of the job.
    pub(super) fn advance_exchange(
        &mut self,
        ranks: &mut [RankProcess],
        others: &mut OtherHosts,
        size: u32,
    ) -> Result<(), InvalidMessage> {
        let all = ranks.iter().all(|r| r.contribution.is_some()) && others.have_contributed();
        let step = self.exchange.advance(all, others.is_root());
        if step == GateStep::Wait {
            return Ok(());
        }
        let own = ranks.iter_mut().filter_map(|r| Some((r.rank, r.contribution.take()?)));
        let mut all: Vec<(JobRank, Vec<u8>)> = own.collect();
        all.extend(others.take_contributions());
        all.sort_unstable_by_key(|(rank, _)| *rank);
        if step == GateStep::Ask {
            others.send_up(&HostMessage::Contributions(all));
            return Ok(());
        }
        self.deliver(ranks, others, joined(all, size)?);
        Ok(())
    }

    /// What all ranks have contributed, by rank.
    pub(super) fn deliver(
        &mut self,
        ranks: &mut [RankProcess],
        others: &mut OtherHosts,
        all: Vec<u8>,
    ) {
        self.exchange.open();
        for part in control_message::parts(&all) {
            let part = Rc::new(part);
            for r in ranks.iter_mut() {
                r.send(part.clone());
            }
        }
        others.send_down(&HostMessage::Exchanged(all));
    }
}

/// What the ranks of a job of `size` have contributed, in ascending order: one contribution of
/// each rank. All contribute as much, or one alone contributes.
fn joined(all: Vec<(JobRank, Vec<u8>)>, size: u32) -> Result<Vec<u8>, InvalidMessage> {
    let is_given = all.iter().filter(|(_, bytes)| !bytes.is_empty()).count() == 1;
    let length = all.first().map_or(0, |(_, bytes)| bytes.len());
    for rank in 0..size.max(all.len() as u32) {
        let given = all.get(rank as usize);
        let fits = given.is_some_and(|(of, bytes)| {
            rank < size && of.0 == rank && (bytes.len() == length || is_given)
        });
        if !fits {
            return Err(InvalidMessage(given.map_or(JobRank(rank), |(of, _)| *of)));
        }
    }
    Ok(all.into_iter().flat_map(|(_, bytes)| bytes).collect())
}

/// A rank sent a part of its contribution. Whether it is complete.
pub(super) fn contribute(
    rank: &mut RankProcess,
    head: ControlHead,
    data: &[u8],
) -> Result<bool, InvalidMessage> {
    let complete = rank.arriving.add(head, data).ok_or(InvalidMessage(rank.rank))?;
    if complete {
        rank.contribution = Some(rank.arriving.take());
    }
    Ok(complete)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rank_contributes_once() {
        let join = |all: &[(u32, &str)], size| {
            let all = all.iter().map(|(rank, text)| (JobRank(*rank), text.as_bytes().to_vec()));
            joined(all.collect(), size).map_err(|InvalidMessage(JobRank(rank))| rank)
        };
        assert_eq!(join(&[(0, "ab"), (1, "cd")], 2), Ok(b"abcd".to_vec()));
        assert_eq!(join(&[(0, ""), (1, "cd")], 2), Ok(b"cd".to_vec()));
        assert_eq!(join(&[(0, ""), (1, "")], 2), Ok(Vec::new()));
        assert_eq!(join(&[(0, "ab"), (1, "c")], 2), Err(1));
        assert_eq!(join(&[(0, "ab")], 2), Err(1));
        // A rank that the job has not, and one that contributes twice.
        assert_eq!(join(&[(0, "ab"), (1, "cd"), (2, "ef")], 2), Err(2));
        assert_eq!(join(&[(0, "ab"), (1, "cd"), (1, "ef")], 2), Err(1));
        assert_eq!(join(&[(0, "ab"), (7, "ef")], 2), Err(7));
    }
}
