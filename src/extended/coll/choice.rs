//! The choice of the algorithm of a collective, and its plan.
//!
//! Called by `engine`. Invariant: all processes of a team make the same choice, because it
//! depends only on the call and on what is the same everywhere.

use super::all_to_all::{self, AllToAll};
use super::arrays::{self, DealtArray};
use super::layout::{LocalBlocks, TeamLayout};
use super::plan::CollPlan;
use super::request::{CollBuffers, CollOperation, CollRequest};
use super::tree::Tree;
use super::tuning::CollTuning;
use super::view::TeamView;
use super::{compute, movement};
use crate::runtime::Ctx;
use crate::runtime::segment::Segment;
use alloc::vec::Vec;

/// Processes to which a root sends one message each before a tree is worth its copies.
const FLAT_PROCESSES: usize = 16;
/// Largest block that goes through the scratch memory of inner nodes, in bytes.
const MAX_FORWARDED: usize = 2048;

/// The tree of an operation whose inner nodes hold the blocks of others.
fn holding(t: &CollTuning, operation: CollOperation, l: TeamLayout<'_>, nbytes: usize) -> Tree {
    let deep = l.n() > FLAT_PROCESSES && nbytes <= MAX_FORWARDED;
    let by_size = if deep { Tree::BINOMIAL } else { Tree::FLAT };
    let tree = t.trees[operation as usize].unwrap_or(by_size);
    if l.all().saturating_mul(nbytes) > t.scratch { Tree::FLAT } else { tree }
}

/// The algorithm of a movement from all to all; `large` beyond the limit of dissemination.
fn from_all(
    t: &CollTuning,
    operation: CollOperation,
    l: TeamLayout<'_>,
    nbytes: usize,
    large: AllToAll,
) -> AllToAll {
    let small = nbytes <= t.limits[operation as usize] && l.n() > 2;
    if small { AllToAll::Dissemination(t.radix) } else { large }
}

/// The plan of this process for a request, with the buffers of its images and the settings when
/// it was called.
pub(super) fn plan(
    ctx: Ctx,
    view: &TeamView,
    request: &CollRequest,
    (buffers, t): (&[CollBuffers], &CollTuning),
) -> CollPlan {
    let me = view.members.me().index();
    let l = TeamLayout { me, first: &view.first };
    let p = LocalBlocks { images: buffers, nbytes: request.nbytes };
    // Where all write into mapped memory, a block is copied once.
    let mapped = |rank| ctx.endpoint().segment_of(rank).is_some_and(Segment::is_mapped);
    let unmapped = !view.members.all().all(mapped);
    let large = if unmapped { AllToAll::Ring } else { AllToAll::Direct };
    let mut plan = CollPlan::with(request.reduction);
    if request.in_allsync {
        plan.barrier(l.n(), me, false);
    }
    let (size, count) = request.elements();
    let array = |layout, first| DealtArray { l, layout, size, count, first };
    let (op, root, n) = (request.operation, request.root as usize, request.nbytes);
    match op {
        CollOperation::Barrier => {}
        CollOperation::Broadcast => {
            let tree = t.trees[op as usize].unwrap_or(Tree::BINOMIAL);
            movement::broadcast(&mut plan, l, p, root, tree, t.segment);
        }
        CollOperation::Scatter => movement::scatter(&mut plan, l, p, root, holding(t, op, l, n)),
        CollOperation::Gather => movement::gather(&mut plan, l, p, root, holding(t, op, l, n)),
        CollOperation::GatherAll => {
            all_to_all::gather_all(&mut plan, l, p, from_all(t, op, l, n, large));
        }
        CollOperation::Exchange => {
            all_to_all::exchange(&mut plan, l, p, from_all(t, op, l, n, AllToAll::Direct));
        }
        CollOperation::Reduce => {
            let tree = t.trees[op as usize].unwrap_or(Tree::BINOMIAL);
            let ordered = request.reduction.is_some_and(|f| f.is_ordered());
            match request.src_array {
                Some(layout) => {
                    arrays::reduce(&mut plan, array(layout, 0), p, root, tree, ordered);
                }
                None => compute::reduce(&mut plan, l, p, root, tree, ordered),
            }
        }
        CollOperation::ReduceAll => {
            compute::reduce(&mut plan, l, p, 0, Tree::BINOMIAL, false);
            // From where the reduction has put it.
            let images: Vec<CollBuffers> =
                buffers.iter().map(|b| CollBuffers { dst: b.dst, src: b.dst.into() }).collect();
            let p = LocalBlocks { images: &images, nbytes: n };
            movement::broadcast(&mut plan, l, p, 0, Tree::BINOMIAL, t.segment);
        }
        CollOperation::Scan => match (request.src_array, request.dst_array) {
            (Some(src), Some(dst)) => {
                let dst = array(dst, request.first_written());
                arrays::scan(&mut plan, array(src, 0), dst, p);
            }
            _ => compute::scan(&mut plan, l, p, request.inclusive),
        },
    }
    if request.out_allsync {
        plan.barrier(l.n(), me, true);
    }
    plan
}
