//! The search for the fastest tree of a collective.
//!
//! Called by `capi` for `gasnet_coll_tune_generic_op`, by all images of a team together.
//! Invariant: all images come to the same result, because they compare the times of the slowest
//! image.

use super::tree::Tree;
use super::{Coll, CollCall};
use crate::runtime::Ctx;
use sys::clock;

/// The trees that are tried, in the form of [`Tree::parse`].
const CANDIDATES: [&str; 6] = [
    "FLAT_TREE",
    "KNOMIAL_TREE,2",
    "KNOMIAL_TREE,4",
    "KNOMIAL_TREE,8",
    "NARY_TREE,2",
    "NARY_TREE,1",
];

/// Runs `call` `warm + times` times with each tree, with `work` between start and sync. Sets and
/// returns the tree whose slowest image was fastest over the last `times`.
pub fn search(
    coll: &Coll,
    ctx: Ctx,
    call: &CollCall,
    warm: u64,
    times: u64,
    work: impl Fn(),
) -> Tree {
    let mut best = (u64::MAX, Tree::FLAT);
    for tree in CANDIDATES.iter().filter_map(|text| Tree::parse(text)) {
        // Every image sets it before its own next call, and the last call makes the plan.
        call.team.tuning().change(|t| t.set_tree(call.request.operation, Some(tree)));
        let mut start = clock::now_ns();
        for i in 0..warm + times {
            if i == warm {
                start = clock::now_ns();
            }
            let handle = coll.initiate(ctx, call, false);
            work();
            ctx.wait_until(&"a collective", || coll.sync(ctx, handle));
        }
        let slowest = slowest(coll, ctx, call, clock::now_ns() - start);
        if slowest < best.0 {
            best = (slowest, tree);
        }
    }
    call.team.tuning().change(|t| t.set_tree(call.request.operation, Some(best.1)));
    best.1
}

/// The largest of the times of all images.
fn slowest(coll: &Coll, ctx: Ctx, call: &CollCall, mine: u64) -> u64 {
    let words = [(mine >> 32) as u32, mine as u32];
    let times = coll.records_of_all(ctx, call.function, (&call.team, call.by_process), words);
    times.iter().map(|&[high, low]| u64::from(high) << 32 | u64::from(low)).max().unwrap_or(mine)
}
