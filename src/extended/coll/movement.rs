//! The plans of the rooted movements: broadcast, scatter, gather.
//!
//! Called by `choice`. Invariant: a process moves the blocks of all its images together; copies
//! between images of a process are local steps.
//!
//! A rooted movement runs over a tree of ranks that are counted from the root's process. A
//! subtree is a range of such ranks, so its blocks are one piece of memory:
//!
//! ```text
//!   scatter, root's process 2 of 5, binomial tree
//!     relative rank   0           1           2           3           4
//!     rank            2           3           4           0           1
//!     receives        -           [1]         [2, 3]      [3]         [4]
//! ```

use super::layout::{LocalBlocks, TeamLayout};
use super::plan::{CollPlan, PlanRound};
use super::tree::Tree;
use crate::client_memory::{Dst, Src};
use alloc::vec::Vec;

/// `src` of image `root` to `dst` of all, in pieces of `segment` bytes (0: whole), which inner
/// nodes forward as they arrive.
pub(super) fn broadcast(
    plan: &mut CollPlan,
    l: TeamLayout<'_>,
    p: LocalBlocks<'_>,
    root: usize,
    tree: Tree,
    segment: usize,
) {
    let (n, top) = (l.n(), l.process_of(root));
    let absolute = |relative: usize| (relative + top) % n;
    let links = tree.links(n, l.behind(top));
    let (landing, source): (Option<Dst<'static>>, Src<'static>) = if l.me == top {
        (None, p.images[root - l.first(top)].src)
    } else {
        (Some(p.images[0].dst), p.images[0].dst.into())
    };
    let segment = if segment == 0 { p.nbytes.max(1) } else { segment };
    // Offset and bytes of piece i, which is its tag.
    let pieces: Vec<(usize, usize)> = (0..p.nbytes.div_ceil(segment))
        .map(|i| (i * segment, segment.min(p.nbytes - i * segment)))
        .collect();
    let receive = |round: &mut PlanRound, i: usize| {
        if let (Some(parent), Some(to), Some(&(at, n))) = (links.parent, landing, pieces.get(i)) {
            round.receive(absolute(parent), i as u32, to.part(at, n));
        }
    };
    let send = |round: &mut PlanRound, i: usize| {
        let (at, n) = pieces[i];
        for &(child, _) in links.children.iter().rev() {
            round.send(absolute(child), i as u32, source.part(at, n));
        }
    };
    let mut round = PlanRound::default();
    if links.parent.is_none() || links.children.is_empty() {
        for i in 0..pieces.len() {
            receive(&mut round, i);
            send(&mut round, i);
        }
    } else {
        receive(&mut round, 0);
        for i in 0..pieces.len() {
            plan.push(core::mem::take(&mut round));
            receive(&mut round, i + 1);
            send(&mut round, i);
        }
    }
    plan.push(round);
    let mut last = PlanRound::default();
    for image in p.images {
        last.copy(image.dst, source);
    }
    plan.push(last);
}

/// Bytes of the blocks of the processes before each, which are counted from `top`.
fn relative_offsets(l: TeamLayout<'_>, top: usize, nbytes: usize) -> Vec<usize> {
    let mut at = 0;
    let mut all = alloc::vec![0];
    for r in 0..l.n() {
        at += l.images((r + top) % l.n()) * nbytes;
        all.push(at);
    }
    all
}

/// Block i at `src` of image `root` to `dst` of image i.
pub(super) fn scatter(
    plan: &mut CollPlan,
    l: TeamLayout<'_>,
    p: LocalBlocks<'_>,
    root: usize,
    tree: Tree,
) {
    let (n, top) = (l.n(), l.process_of(root));
    let absolute = |relative: usize| (relative + top) % n;
    let me = l.behind(top);
    let links = tree.links(n, me);
    let offsets = relative_offsets(l, top, p.nbytes);
    let (mine, rest) = (l.images(l.me) * p.nbytes, offsets[links.end] - offsets[me]);
    let mut round = PlanRound::default();
    // The blocks of this process, and those of its subtree in the order of the tree. `None`: the
    // source has them in that order.
    let (own, below): (Src<'static>, Option<Src<'static>>) = if l.me != top {
        let buffer =
            if rest == mine && p.images.len() == 1 { p.images[0].dst } else { plan.scratch(rest) };
        round.receive(absolute(links.parent.unwrap_or(0)), 0, buffer);
        plan.push(core::mem::take(&mut round));
        (buffer.part(0, mine).into(), Some(buffer.into()))
    } else {
        let src = p.images[root - l.first(top)].src;
        if tree.is_flat() || top == 0 {
            (p.from(src, l.first(top), l.images(top)), None)
        } else {
            let buffer = plan.scratch(rest);
            let (before, after) = src.split_at(l.first(top) * p.nbytes);
            let (first, last) = buffer.split_at(after.len());
            round.copy(first, after);
            round.copy(last, before);
            (buffer.part(0, mine).into(), Some(buffer.into()))
        }
    };
    for &(child, end) in links.children.iter().rev() {
        let bytes = offsets[end] - offsets[child];
        let from = match below {
            Some(blocks) => blocks.part(offsets[child] - offsets[me], bytes),
            None => {
                p.images[root - l.first(top)].src.part(l.first(absolute(child)) * p.nbytes, bytes)
            }
        };
        round.send(absolute(child), 0, from);
    }
    plan.push(round);
    let mut last = PlanRound::default();
    for (i, image) in p.images.iter().enumerate() {
        last.copy(image.dst, p.from(own, i, 1));
    }
    plan.push(last);
}

/// `src` of image i to block i at `dst` of image `root`.
pub(super) fn gather(
    plan: &mut CollPlan,
    l: TeamLayout<'_>,
    p: LocalBlocks<'_>,
    root: usize,
    tree: Tree,
) {
    let (n, top) = (l.n(), l.process_of(root));
    let absolute = |relative: usize| (relative + top) % n;
    let me = l.behind(top);
    let links = tree.links(n, me);
    let offsets = relative_offsets(l, top, p.nbytes);
    let rest = offsets[links.end] - offsets[me];
    let mut round = PlanRound::default();
    if l.me != top {
        let buffer: Src<'static> = if p.images.len() == 1 && links.children.is_empty() {
            p.images[0].src
        } else {
            let buffer = plan.scratch(rest);
            for (i, image) in p.images.iter().enumerate() {
                round.copy(p.to(buffer, i, 1), image.src);
            }
            for &(child, end) in &links.children {
                let bytes = offsets[end] - offsets[child];
                round.receive(
                    absolute(child),
                    0,
                    buffer.part(offsets[child] - offsets[me], bytes),
                );
            }
            buffer.into()
        };
        plan.push(core::mem::take(&mut round));
        round.send(absolute(links.parent.unwrap_or(0)), 0, buffer);
        plan.push(round);
        return;
    }
    let dst = p.images[root - l.first(top)].dst;
    for (i, image) in p.images.iter().enumerate() {
        round.copy(p.to(dst, l.first(top) + i, 1), image.src);
    }
    // Blocks that arrive in another order than that of the images pass through scratch memory.
    let buffer = (!tree.is_flat() && top != 0).then(|| plan.scratch(rest));
    for &(child, end) in &links.children {
        let bytes = offsets[end] - offsets[child];
        let to = match buffer {
            Some(blocks) => blocks.part(offsets[child], bytes),
            None => dst.part(l.first(absolute(child)) * p.nbytes, bytes),
        };
        round.receive(absolute(child), 0, to);
    }
    plan.push(round);
    if let Some(buffer) = buffer {
        let tail = l.first(top) * p.nbytes;
        // The images after those of this process, then the images before them.
        let others = Src::from(buffer.part(offsets[1], rest - offsets[1]));
        let (after, before) = others.split_at(others.len() - tail);
        let mut last = PlanRound::default();
        last.copy(dst.part(l.first(top + 1) * p.nbytes, after.len()), after);
        last.copy(dst.part(0, tail), before);
        plan.push(last);
    }
}
