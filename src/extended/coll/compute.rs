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
use crate::conduit::MAX_EAGER;
use alloc::vec::Vec;
use core::iter;

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

/// Bytes of large operands that a process receives at a time, if that is more than one operand.
/// The others wait at their senders.
pub(super) const RECEIVED_AT_ONCE: usize = 4 << 20;

/// An operand of a combination.
#[derive(Clone, Copy, Debug)]
pub(super) enum CombinedOperand {
    /// It is here.
    Here(Src<'static>),
    /// This process sends it, with tag 0.
    From(usize),
}

/// The combination of operands of `n` bytes, in their order; the last steps are in `round`.
///
/// The memory for it does not grow with the number of large operands. Results lie in two areas by
/// turns. Each message of those that are received at a time has an area; the first operand of all
/// takes one of the results.
pub(super) fn combine_all(
    plan: &mut CollPlan,
    round: &mut PlanRound,
    n: usize,
    operands: impl Iterator<Item = CombinedOperand> + Clone,
) -> Src<'static> {
    let is_here = |operand: &CombinedOperand| matches!(operand, CombinedOperand::Here(_));
    let messages = operands.clone().filter(|operand| !is_here(operand)).count();
    let most = if n <= MAX_EAGER { messages } else { (RECEIVED_AT_ONCE / n).max(1) };
    let at_once = most.min(messages);
    let stride = n.next_multiple_of(16);
    let areas = plan.scratch((2 + at_once) * stride);
    let area = |i: usize| areas.part(i * stride, n);
    let mut results = [area(0), area(1)].into_iter().cycle();
    let mut result = || results.next().expect("a cycle has no end");
    let mut operands = operands.peekable();
    let mut all: Option<Src<'static>> = None;
    loop {
        let (mut received, mut batch) = (0, Vec::new());
        while let Some(operand) = operands.next_if(|o| is_here(o) || received < at_once) {
            batch.push(match operand {
                CombinedOperand::Here(src) => src,
                CombinedOperand::From(peer) => {
                    let is_first = all.is_none() && batch.is_empty();
                    let to = if is_first { result() } else { area(2 + received) };
                    received += 1;
                    round.receive(peer, 0, to);
                    to.into()
                }
            });
        }
        if received > 0 {
            plan.push(core::mem::take(round));
        }
        for right in batch {
            all = Some(match all {
                None => right,
                Some(left) => {
                    let to = result();
                    round.steps.push(LocalStep::Combine { to, left, right });
                    to.into()
                }
            });
        }
        if operands.peek().is_none() {
            return all.expect("a combination has operands");
        }
    }
}

/// The combination of the operands of this process's images.
fn total(plan: &mut CollPlan, round: &mut PlanRound, p: LocalBlocks<'_>) -> Src<'static> {
    match p.images {
        [only] => only.src,
        images => {
            let operands = images.iter().map(|image| CombinedOperand::Here(image.src));
            combine_all(plan, round, images[0].src.len(), operands)
        }
    }
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
            let below = links.children.iter();
            let below = below.map(|&(child, _)| CombinedOperand::From(absolute(child)));
            let operands = iter::once(CombinedOperand::Here(acc)).chain(below);
            acc = combine_all(plan, &mut round, acc.len(), operands);
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
