//! The search for the fastest tree of a collective.
//!
//! Called by `capi` for `gasnet_coll_tune_generic_op`, by all images of a team together.
//! Invariant: all images come to the same result, because they compare the times of the slowest
//! image.

use super::tree::Tree;
use super::{Coll, CollCall};
use crate::runtime::Ctx;
use sys::clock;

/// The trees that are tried after none, in the form of [`Tree::parse`].
const CANDIDATES: [&str; 6] = [
    "FLAT_TREE",
    "KNOMIAL_TREE,2",
    "KNOMIAL_TREE,4",
    "KNOMIAL_TREE,8",
    "NARY_TREE,2",
    "NARY_TREE,1",
];

/// Runs `call` `warm + times` times with the choice by size and with each tree that the operation
/// may have, with `work` between start and sync. Sets and returns that whose slowest image was
/// fastest over the last `times`; `None` for the choice by size.
pub fn search(
    coll: &Coll,
    ctx: Ctx,
    call: &CollCall,
    warm: u64,
    times: u64,
    work: impl Fn(),
) -> Option<Tree> {
    let operation = call.request.operation;
    let trees = CANDIDATES.iter().filter(|_| operation.has_tree());
    let mut best = (u64::MAX, None);
    for tree in core::iter::once(None).chain(trees.map(|text| Tree::parse(text))) {
        // Every image sets it before its own next call, and the first call fixes it.
        call.team.tuning().change(|t| t.set_tree(operation, tree));
        let mut start = clock::now_ns();
        for i in 0..warm + times {
            if i == warm {
                start = clock::now_ns();
            }
            let handle = coll.initiate(ctx, call, false);
            work();
            ctx.wait_until(call.function, || coll.sync(ctx, handle));
        }
        let slowest = slowest(coll, ctx, call, clock::now_ns() - start);
        if slowest < best.0 {
            best = (slowest, tree);
        }
    }
    call.team.tuning().change(|t| t.set_tree(operation, best.1));
    best.1
}

/// The largest of the times of all images.
fn slowest(coll: &Coll, ctx: Ctx, call: &CollCall, mine: u64) -> u64 {
    let words = [(mine >> 32) as u32, mine as u32];
    let times = coll.records_of_all(ctx, call.function, (&call.team, call.by_process), words);
    times.iter().map(|&[high, low]| u64::from(high) << 32 | u64::from(low)).max().unwrap_or(mine)
}
