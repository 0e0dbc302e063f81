//! The plans of the collectives that compute: reduce and scan.
//!
//! Called by `engine`. Operands are combined in the order of the images, so that the function need not be commutative;
//! only for one that is, a reduction starts counting at the root. Combining never writes over its operands.

use super::movement::{LocalBlocks, TeamLayout};
use super::plan::{CollPlan, LocalStep, PlanRound};
use super::tree::Tree;

/// Combines `*acc` with `right` into fresh memory, which `*acc` is then.
fn combine(
    plan: &mut CollPlan,
    round: &mut PlanRound,
    acc: &mut *mut u8,
    right: *const u8,
    size: usize,
) {
    let to = plan.scratch(size);
    round.locals.push(LocalStep::Combine { to, left: *acc, right });
    *acc = to;
}

/// The operands of our images together.
fn total(plan: &mut CollPlan, round: &mut PlanRound, p: LocalBlocks<'_>) -> *mut u8 {
    let mut acc = p.src[0];
    for &src in &p.src[1..] {
        combine(plan, round, &mut acc, src, p.nbytes);
    }
    acc
}

/// All images' operands together to `dst` of image `root`. `nbytes` of the places is all elements of an image.
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
    let links = tree.links(n, (l.me + n - top) % n);
    let mut round = PlanRound::default();
    let mut acc = total(plan, &mut round, p);
    if !links.children.is_empty() {
        let parts = plan.scratch(links.children.len() * p.nbytes.next_multiple_of(16));
        let part = |i: usize| parts.wrapping_add(i * p.nbytes.next_multiple_of(16));
        for (i, &(child, _)) in links.children.iter().enumerate() {
            round.receive(absolute(child), 0, part(i), p.nbytes);
        }
        plan.push(core::mem::take(&mut round));
        for i in 0..links.children.len() {
            combine(plan, &mut round, &mut acc, part(i), p.nbytes);
        }
    }
    // The result may have another way to go, from where the order begins to where the root is.
    let to = match links.parent {
        Some(parent) => Some((absolute(parent), 0)),
        None => (l.me != target).then_some((target, 1)),
    };
    if let Some((to, tag)) = to {
        round.send(to, tag, acc, p.nbytes);
    }
    plan.push(round);
    if l.me == target {
        let dst = p.dst[root - l.first(target)];
        let mut last = PlanRound::default();
        if top == target {
            last.copy(dst, acc, p.nbytes);
        } else {
            last.receive(top, 1, dst, p.nbytes);
        }
        plan.push(last);
    }
}

/// The operands of the images up to i, with or without i, to `dst` of image i: doubling distances (Hillis, Steele 1986).
pub(super) fn scan(plan: &mut CollPlan, l: TeamLayout<'_>, p: LocalBlocks<'_>, inclusive: bool) {
    let (n, me) = (l.n(), l.me);
    let mut round = PlanRound::default();
    // Operands of as many processes up to ours, and up to the one before ours, as we have heard of.
    let mut with = total(plan, &mut round, p);
    let mut before: Option<*mut u8> = None;
    let mut distance = 1;
    while distance < n {
        if me + distance < n {
            round.send(me + distance, distance as u32, with, p.nbytes);
        }
        if me >= distance {
            let mut left = plan.scratch(p.nbytes);
            round.receive(me - distance, distance as u32, left, p.nbytes);
            plan.push(core::mem::take(&mut round));
            let heard = left;
            if let Some(old) = before {
                combine(plan, &mut round, &mut left, old, p.nbytes);
            }
            before = Some(left);
            let mut all = heard;
            combine(plan, &mut round, &mut all, with, p.nbytes);
            with = all;
        } else {
            plan.push(core::mem::take(&mut round));
        }
        distance *= 2;
    }
    for (&src, &dst) in p.src.iter().zip(p.dst) {
        let upto = match before {
            Some(left) => {
                let mut acc = left;
                combine(plan, &mut round, &mut acc, src, p.nbytes);
                acc
            }
            None => src,
        };
        if inclusive {
            round.copy(dst, upto, p.nbytes);
        } else if let Some(left) = before {
            round.copy(dst, left, p.nbytes);
        }
        before = Some(upto);
    }
    plan.push(round);
}
