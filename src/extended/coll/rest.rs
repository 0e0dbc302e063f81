//! The plan of what a movement to the root leaves over: the blocks of ranks whose sources lie
//! outside their segments, which come as messages.
//!
//! Made for `movements`. Invariant: the ranks without such a source take no part.

use super::compute::{self, CombinedOperand};
use super::plan::{CollPlan, PlanRound};
use super::request::{CollBuffers, CollOperation, CollRequest};
use crate::client_memory::Src;

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
        let sources = sources.iter().enumerate();
        let operands = sources.map(|(rank, source)| match source {
            Some(from) => CombinedOperand::Here(*from),
            None => CombinedOperand::From(rank),
        });
        let all = compute::combine_all(&mut plan, &mut round, n, operands);
        round.copy(buffers.dst, all);
    }
    plan.push(round);
    plan
}
