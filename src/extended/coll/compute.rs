//! The plans of the collectives that compute: reduce and scan.
//!
//! Called by `choice`. Invariants: operands are combined in the order of the images, so the
//! function need not be commutative; combining never overwrites an operand.
//!
//! A reduction runs over a tree whose ranks are counted from rank 0, or from the root's process
//! if the function is commutative. A scan doubles its distance in each round (Hillis, Steele
//! 1986):
//!
//! ```text
//!   ranks with the operands of        0    1     2      3      4
//!   at the start                      0    1     2      3      4
//!   after distance 1                  0    0-1   1-2    2-3    3-4
//!   after distance 2                  0    0-1   0-2    0-3    1-4
//!   after distance 4                  0    0-1   0-2    0-3    0-4
//! ```

use super::layout::{LocalBlocks, TeamLayout};
use super::plan::{CollPlan, LocalStep, PlanRound};
use super::request::CollBuffers;
use super::tree::Tree;
use crate::client_memory::{Dst, Src};

/// Processes around the ring, from `top` on.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProcessRange {
    pub(super) top: usize,
    /// At least 1.
    pub(super) count: usize,
}

/// Combines `left` with `right` into new memory.
pub(super) fn combine(
    plan: &mut CollPlan,
    round: &mut PlanRound,
    left: Src<'static>,
    right: Src<'static>,
) -> Src<'static> {
    let to = plan.scratch(left.len());
    round.steps.push(LocalStep::Combine { to, left, right });
    to.into()
}

/// The combination of the operands of this process's images.
fn total(plan: &mut CollPlan, round: &mut PlanRound, p: LocalBlocks<'_>) -> Src<'static> {
    let mut acc = p.images[0].src;
    for image in &p.images[1..] {
        acc = combine(plan, round, acc, image.src);
    }
    acc
}

/// The process of image `root`, and where the result goes there.
pub(super) fn root_dst(
    l: TeamLayout<'_>,
    p: LocalBlocks<'_>,
    root: usize,
) -> (usize, Dst<'static>) {
    let target = l.process_of(root);
    let here = if l.me == target { p.images[root - l.first(target)] } else { CollBuffers::none() };
    (target, here.dst)
}

/// The combination of all operands to `dst` of image `root`; a block is all elements of an
/// image.
pub(super) fn reduce(
    plan: &mut CollPlan,
    l: TeamLayout<'_>,
    p: LocalBlocks<'_>,
    root: usize,
    tree: Tree,
    ordered: bool,
) {
    let to = root_dst(l, p, root);
    let all = ProcessRange { top: if ordered { 0 } else { to.0 }, count: l.n() };
    let mut round = PlanRound::default();
    let own = total(plan, &mut round, p);
    over_tree(plan, round, l, all, Some(own), tree, to);
}

/// The combination of the operands of a range of processes, in its order, to `dst` at process
/// `target`. Only a process that is not in the range has no operand.
pub(super) fn over_tree(
    plan: &mut CollPlan,
    mut round: PlanRound,
    l: TeamLayout<'_>,
    ProcessRange { top, count }: ProcessRange,
    operand: Option<Src<'static>>,
    tree: Tree,
    (target, dst): (usize, Dst<'static>),
) {
    let absolute = |relative: usize| (relative + top) % l.n();
    let mut last = PlanRound::default();
    if l.me == target && top != target {
        last.receive(top, 1, dst);
    }
    if let Some(mut acc) = operand {
        let links = tree.links(count, l.behind(top));
        if !links.children.is_empty() {
            let nbytes = acc.len();
            let stride = nbytes.next_multiple_of(16);
            let parts = plan.scratch(links.children.len() * stride);
            let part = |i: usize| parts.part(i * stride, nbytes);
            for (i, &(child, _)) in links.children.iter().enumerate() {
                round.receive(absolute(child), 0, part(i));
            }
            plan.push(core::mem::take(&mut round));
            for i in 0..links.children.len() {
                acc = combine(plan, &mut round, acc, part(i).into());
            }
        }
        // From the top of the tree the result goes on to the target.
        match links.parent {
            Some(parent) => round.send(absolute(parent), 0, acc),
            None if l.me == target => last.copy(dst, acc),
            None => round.send(target, 1, acc),
        }
    }
    plan.push(round);
    plan.push(last);
}

/// The combination of the operands of the ranks before `me`, of `n`; `own` is that of `me`. The
/// last steps are in `round`.
pub(super) fn before(
    plan: &mut CollPlan,
    round: &mut PlanRound,
    n: usize,
    me: usize,
    own: Src<'static>,
) -> Option<Src<'static>> {
    // The operands of `distance` processes up to this one, and up to the one before it; fewer at
    // the first ranks.
    let (mut with, mut before) = (own, None);
    let mut distance = 1;
    while distance < n {
        if me + distance < n {
            round.send(me + distance, distance as u32, with);
        }
        if me >= distance {
            let received = plan.scratch(own.len());
            round.receive(me - distance, distance as u32, received);
            plan.push(core::mem::take(round));
            let left = received.into();
            before = Some(match before {
                Some(old) => combine(plan, round, left, old),
                None => left,
            });
            with = combine(plan, round, left, with);
        } else {
            plan.push(core::mem::take(round));
        }
        distance *= 2;
    }
    before
}

/// The combination of the operands of the images up to i, with or without i, to `dst` of image
/// i.
pub(super) fn scan(plan: &mut CollPlan, l: TeamLayout<'_>, p: LocalBlocks<'_>, inclusive: bool) {
    let mut round = PlanRound::default();
    let own = total(plan, &mut round, p);
    let mut before = before(plan, &mut round, l.n(), l.me, own);
    for &CollBuffers { dst, src } in p.images {
        let upto = match before {
            Some(left) => combine(plan, &mut round, left, src),
            None => src,
        };
        if inclusive {
            round.copy(dst, upto);
        } else if let Some(left) = before {
            round.copy(dst, left);
        }
        before = Some(upto);
    }
    plan.push(round);
}
