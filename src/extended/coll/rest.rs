//! The plan of what a movement to the root leaves over: the blocks of ranks whose sources lie
//! outside their segments, which come as messages.
//!
//! Made for `movements`. Invariant: the ranks without such a source take no part.

use super::compute;
use super::plan::{CollPlan, PlanRound};
use super::request::{CollBuffers, CollOperation, CollRequest};
use crate::client_memory::Src;
use alloc::vec::Vec;

/// The plan of a rank other than the root, whose block the root cannot reach.
pub(super) fn sent(request: &CollRequest, buffers: CollBuffers) -> CollPlan {
    let mut plan = CollPlan::default();
    let mut round = PlanRound::default();
    round.send(request.root as usize, 0, buffers.src);
    plan.push(round);
    plan
}

/// The plan of the root of a gather or a reduction. `sources` has the block of each rank, `None`
/// for those that come as messages.
pub(super) fn received(
    request: &CollRequest,
    buffers: CollBuffers,
    sources: &[Option<Src<'static>>],
) -> CollPlan {
    let n = request.nbytes;
    let mut plan = CollPlan::with(request.reduction);
    let mut round = PlanRound::default();
    if request.operation == CollOperation::Gather {
        for (rank, source) in sources.iter().enumerate() {
            let to = buffers.dst.part(rank * n, n);
            match source {
                Some(from) => round.copy(to, *from),
                None => round.receive(rank, 0, to),
            }
        }
    } else {
        let mut operands: Vec<Src<'static>> = Vec::new();
        for (rank, source) in sources.iter().enumerate() {
            operands.push(source.unwrap_or_else(|| {
                let to = plan.scratch(n);
                round.receive(rank, 0, to);
                to.into()
            }));
        }
        plan.push(core::mem::take(&mut round));
        let combined = operands
            .into_iter()
            .reduce(|left, right| compute::combine(&mut plan, &mut round, left, right));
        round.copy(buffers.dst, combined.expect("a job has ranks"));
    }
    plan.push(round);
    plan
}
