//! Barriers and exchanges of the ranks, completed by the supervisor of gasnetrun for all hosts,
//! and by the only supervisor of a job of one host.
//!
//! Called by [`super::Supervisor`] for each message of a rank or of another host. Invariant: a
//! rank is in at most one of them, since it waits for the answer.
//!
//! ```text
//! all ranks of a host are in it   --Barrier, Contributions-->   host of gasnetrun
//! ranks go on                     <--Barrier, Exchanged------   once all hosts are
//! ```

use super::other_hosts::OtherHosts;
use super::rank_process::RankProcess;
use crate::boot::control_message::{self, ControlHead, ControlKind};
use crate::boot::hosts::message::HostMessage;
use crate::rank::JobRank;
use std::rc::Rc;

/// A rank sent what the protocol does not allow.
#[derive(Debug)]
pub(super) struct InvalidMessage(pub(super) JobRank);

/// What the ranks of this host and those below it have asked the host of gasnetrun for.
#[derive(Debug, Default)]
pub(super) struct BarrierExchange {
    barrier_asked: bool,
    exchange_asked: bool,
}

impl BarrierExchange {
    /// A rank of this host or a host below is in the barrier; releases all ranks once all are.
    pub(super) fn advance_barrier(&mut self, ranks: &mut [RankProcess], others: &mut OtherHosts) {
        let all = ranks.iter().all(|r| r.in_barrier) && others.are_in_barrier();
        if self.barrier_asked || !all {
            return;
        }
        self.barrier_asked = others.send_up(&HostMessage::Barrier);
        if !self.barrier_asked {
            self.release(ranks, others);
        }
    }

    /// All ranks of the job are in the barrier.
    pub(super) fn release(&mut self, ranks: &mut [RankProcess], others: &mut OtherHosts) {
        self.barrier_asked = false;
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
        if self.exchange_asked || !all {
            return Ok(());
        }
        let own = ranks.iter_mut().filter_map(|r| Some((r.rank, r.contribution.take()?)));
        let mut all: Vec<(JobRank, Vec<u8>)> = own.collect();
        all.extend(others.take_contributions());
        all.sort_unstable_by_key(|(rank, _)| *rank);
        let message = HostMessage::Contributions(all);
        self.exchange_asked = others.send_up(&message);
        let HostMessage::Contributions(all) = message else { return Ok(()) };
        if self.exchange_asked {
            return Ok(());
        }
        // All contribute as much, or one alone contributes.
        let is_given = all.iter().filter(|(_, bytes)| !bytes.is_empty()).count() == 1;
        let length = all.first().map_or(0, |(_, bytes)| bytes.len());
        let fits = |(expected, given): (JobRank, Option<&(JobRank, Vec<u8>)>)| {
            given.is_some_and(|(rank, bytes)| {
                *rank == expected && (bytes.len() == length || is_given)
            })
        };
        let each = (0..size).map(|rank| (JobRank(rank), all.get(rank as usize)));
        if let Some((rank, _)) = each.into_iter().find(|&one| !fits(one)) {
            return Err(InvalidMessage(rank));
        }
        let joined = all.into_iter().flat_map(|(_, bytes)| bytes).collect();
        self.deliver(ranks, others, joined);
        Ok(())
    }

    /// What all ranks have contributed, by rank.
    pub(super) fn deliver(
        &mut self,
        ranks: &mut [RankProcess],
        others: &mut OtherHosts,
        all: Vec<u8>,
    ) {
        self.exchange_asked = false;
        for part in control_message::parts(&all) {
            let part = Rc::new(part);
            for r in ranks.iter_mut() {
                r.send(part.clone());
            }
        }
        others.send_down(&HostMessage::Exchanged(all));
    }
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
