//! The search for the fastest tree: runs a collective with each candidate and keeps the one whose slowest image was
//! fastest.
//!
//! Called by `capi` for `gasnet_coll_tune_generic_op`, by all images of a team together, which all come to the same result.

use super::tree::Tree;
use super::{Coll, CollCall, CollOperation, CollRequest, ImageBuffers};
use crate::runtime::Ctx;
use alloc::vec::Vec;
use sys::clock;

/// What is tried, as [`Tree::parse`] takes it.
const CANDIDATES: [&str; 6] = [
    "FLAT_TREE",
    "KNOMIAL_TREE,2",
    "KNOMIAL_TREE,4",
    "KNOMIAL_TREE,8",
    "NARY_TREE,2",
    "NARY_TREE,1",
];

/// Runs `call` some times with each tree, with `work` between start and sync, and lets the team use the best from then on.
///
/// # Safety
/// As [`Coll::wait_for`].
pub unsafe fn search(ctx: Ctx, call: CollCall, warm: u64, times: u64, work: impl Fn()) -> Tree {
    let coll = Coll::of(ctx);
    let mut best = (u64::MAX, Tree::FLAT);
    for tree in CANDIDATES.iter().filter_map(|text| Tree::parse(text)) {
        // Every image sets it before its own next call, and the last call makes the plan.
        call.team.tuning().lock().set_tree(call.request.operation, Some(tree));
        let mut start = clock::now_ns();
        for i in 0..warm + times {
            if i == warm {
                start = clock::now_ns();
            }
            // SAFETY: the caller's promise; synced below.
            let handle = unsafe { coll.initiate(ctx, call, false) };
            work();
            ctx.wait_until(&"a collective", || coll.sync(handle));
        }
        // SAFETY: as above.
        let slowest = unsafe { slowest(ctx, call, clock::now_ns() - start) };
        if slowest < best.0 {
            best = (slowest, tree);
        }
    }
    call.team.tuning().lock().set_tree(call.request.operation, Some(best.1));
    best.1
}

/// The largest of the times of all images.
unsafe fn slowest(ctx: Ctx, call: CollCall, mine: u64) -> u64 {
    let mut all: Vec<u64> = alloc::vec![0; call.team.images(call.by_process) as usize];
    let places =
        ImageBuffers { dst: all.as_mut_ptr().cast(), src: (&raw const mine).cast_mut().cast() };
    let request = CollRequest::new(CollOperation::GatherAll, size_of::<u64>());
    // SAFETY: both are ours until this returns; the one has room for the time of every image.
    unsafe { Coll::of(ctx).wait_for(ctx, CollCall { request, places, ..call }) };
    all.into_iter().max().unwrap_or(mine)
}
