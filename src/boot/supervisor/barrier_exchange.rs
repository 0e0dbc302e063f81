//! Barriers and exchanges of the ranks, completed by their supervisor.
//!
//! Called by [`super::Supervisor`] for each message of a rank. Invariant: a rank is in at most one
//! of them, since it waits for the answer.

use super::rank_process::RankProcess;
use crate::boot::control_message::{self, ControlHead, ControlKind};
use std::rc::Rc;

/// A rank sent what the protocol does not allow: its index.
#[derive(Debug)]
pub(super) struct InvalidMessage(pub(super) usize);

/// Rank `i` is in the barrier; releases all ranks once all are.
pub(super) fn enter_barrier(ranks: &mut [RankProcess], i: usize) {
    ranks[i].in_barrier = true;
    if !ranks.iter().all(|r| r.in_barrier) {
        return;
    }
    let done = Rc::new(ControlHead::new(ControlKind::BarrierDone).bytes().to_vec());
    for r in ranks {
        r.in_barrier = false;
        r.send(done.clone());
    }
}

/// Rank `i` sent a part of its contribution; answers all ranks once all contributions are
/// complete.
pub(super) fn contribute(
    ranks: &mut [RankProcess],
    i: usize,
    head: ControlHead,
    data: &[u8],
) -> Result<(), InvalidMessage> {
    let rank = &mut ranks[i];
    if !rank.arriving.add(head, data).ok_or(InvalidMessage(i))? {
        return Ok(());
    }
    rank.contribution = Some(rank.arriving.take());
    if !ranks.iter().all(|r| r.contribution.is_some()) {
        return Ok(());
    }
    let all: Vec<Vec<u8>> = ranks.iter_mut().filter_map(|r| r.contribution.take()).collect();
    if let Some(odd) = all.iter().position(|c| c.len() != all[0].len()) {
        return Err(InvalidMessage(odd));
    }
    for part in control_message::parts(&all.concat()) {
        let part = Rc::new(part);
        for r in ranks.iter_mut() {
            r.send(part.clone());
        }
    }
    Ok(())
}
