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
use crate::client_memory::Src;

/// Combines `left` with `right` into new memory.
fn combine(
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
    let (n, target) = (l.n(), l.process_of(root));
    let top = if ordered { 0 } else { target };
    let absolute = |relative: usize| (relative + top) % n;
    let links = tree.links(n, l.behind(top));
    let mut round = PlanRound::default();
    let mut acc = total(plan, &mut round, p);
    if !links.children.is_empty() {
        let stride = p.nbytes.next_multiple_of(16);
        let parts = plan.scratch(links.children.len() * stride);
        let part = |i: usize| parts.part(i * stride, p.nbytes);
        for (i, &(child, _)) in links.children.iter().enumerate() {
            round.receive(absolute(child), 0, part(i));
        }
        plan.push(core::mem::take(&mut round));
        for i in 0..links.children.len() {
            acc = combine(plan, &mut round, acc, part(i).into());
        }
    }
    // From rank 0, where the order begins, the result goes on to the root's process.
    let to = match links.parent {
        Some(parent) => Some((absolute(parent), 0)),
        None => (l.me != target).then_some((target, 1)),
    };
    if let Some((to, tag)) = to {
        round.send(to, tag, acc);
    }
    plan.push(round);
    if l.me == target {
        let dst = p.images[root - l.first(target)].dst;
        let mut last = PlanRound::default();
        if top == target {
            last.copy(dst, acc);
        } else {
            last.receive(top, 1, dst);
        }
        plan.push(last);
    }
}

/// The combination of the operands of the images up to i, with or without i, to `dst` of image
/// i.
pub(super) fn scan(plan: &mut CollPlan, l: TeamLayout<'_>, p: LocalBlocks<'_>, inclusive: bool) {
    let (n, me) = (l.n(), l.me);
    let mut round = PlanRound::default();
    // The operands of `distance` processes up to this one, and up to the one before it; fewer at
    // the first ranks.
    let mut with = total(plan, &mut round, p);
    let mut before: Option<Src<'static>> = None;
    let mut distance = 1;
    while distance < n {
        if me + distance < n {
            round.send(me + distance, distance as u32, with);
        }
        if me >= distance {
            let received = plan.scratch(p.nbytes);
            round.receive(me - distance, distance as u32, received);
            plan.push(core::mem::take(&mut round));
            let left = received.into();
            before = Some(match before {
                Some(old) => combine(plan, &mut round, left, old),
                None => left,
            });
            with = combine(plan, &mut round, left, with);
        } else {
            plan.push(core::mem::take(&mut round));
        }
        distance *= 2;
    }
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
