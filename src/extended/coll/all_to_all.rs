//! The plans of the movements from all to all: gather_all and exchange.
//!
//! Called by `choice`. Invariant: as in `movement`, a process moves the blocks of all its images
//! together.
//!
//! Dissemination (Bruck et al. 1997) needs ceil(log2 N) rounds. In gather_all a process has the
//! blocks of twice as many processes after each round. In exchange the blocks travel by the digits
//! of their distance, here for radix 2 and five processes:
//!
//! ```text
//!   gather_all   from rank i+1: its 1 block   from i+2: its 2 blocks   from i+4: 1 block
//!   exchange     to rank i+1: distances 1, 3  to i+2: distances 2, 3   to i+4: distance 4
//! ```

use super::layout::{LocalBlocks, TeamLayout};
use super::plan::{CollPlan, PlanRound};
use crate::client_memory::{Dst, Src};
use alloc::vec::Vec;

/// The algorithm of a movement from all to all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AllToAll {
    /// A message for each pair.
    Direct,
    /// A logarithmic number of rounds, whose messages forward what arrived before; the radix.
    Dissemination(usize),
    /// Blocks are forwarded from neighbour to neighbour (gather_all only).
    Ring,
}

/// `src` of image i to block i at `dst` of all.
pub(super) fn gather_all(
    plan: &mut CollPlan,
    l: TeamLayout<'_>,
    p: LocalBlocks<'_>,
    how: AllToAll,
) {
    let (n, me, dst) = (l.n(), l.me, p.images[0].dst);
    // The blocks of the ranks from a to b, exclusively.
    let range = |a: usize, b: usize| p.to(dst, l.first(a), l.first(b) - l.first(a));
    let blocks = |rank: usize| range(rank, rank + 1);
    let mut round = PlanRound::default();
    for (i, image) in p.images.iter().enumerate() {
        round.copy(p.to(dst, l.first(me) + i, 1), image.src);
    }
    match how {
        AllToAll::Direct => {
            for distance in 1..n {
                let from = l.behind(distance);
                round.receive(from, 0, blocks(from));
                round.send(l.ahead(distance), 0, blocks(me).into());
            }
        }
        AllToAll::Ring => {
            for step in 1..n {
                round.receive(l.behind(1), step as u32, blocks(l.behind(step)));
                round.send(l.ahead(1), step as u32, blocks(l.behind(step - 1)).into());
                plan.push(core::mem::take(&mut round));
            }
        }
        AllToAll::Dissemination(_) => {
            let mut have = 1;
            while have < n {
                let count = have.min(n - have);
                let (left, right) = (l.behind(have), l.ahead(have));
                // A range of ranks is two pieces of memory where it wraps around.
                let pieces = |start: usize| {
                    let end = start + count;
                    [(start, end.min(n)), (0, end.saturating_sub(n))]
                };
                for (i, (a, b)) in
                    pieces(right).into_iter().enumerate().filter(|(_, (a, b))| a < b)
                {
                    round.receive(right, (2 * have + i) as u32, range(a, b));
                }
                for (i, (a, b)) in pieces(me).into_iter().enumerate().filter(|(_, (a, b))| a < b) {
                    round.send(left, (2 * have + i) as u32, range(a, b).into());
                }
                plan.push(core::mem::take(&mut round));
                have *= 2;
            }
        }
    }
    plan.push(round);
    let mut last = PlanRound::default();
    for image in p.images {
        last.copy(image.dst, dst.into());
    }
    plan.push(last);
}

/// Gathers the blocks that the images of this process send to those of process `to`: by image
/// there, then by image here.
fn pack(
    round: &mut PlanRound,
    l: TeamLayout<'_>,
    p: LocalBlocks<'_>,
    to: usize,
    buffer: Dst<'static>,
) {
    let mine = p.images.len();
    for j in 0..l.images(to) {
        for (i, image) in p.images.iter().enumerate() {
            round.copy(p.to(buffer, j * mine + i, 1), p.from(image.src, l.first(to) + j, 1));
        }
    }
}

/// Copies what process `from` packed to the destinations of the images of this process.
fn unpack(
    round: &mut PlanRound,
    l: TeamLayout<'_>,
    p: LocalBlocks<'_>,
    from: usize,
    buffer: Src<'static>,
) {
    let images = l.images(from);
    for (j, image) in p.images.iter().enumerate() {
        round.copy(p.to(image.dst, l.first(from), images), p.from(buffer, j * images, images));
    }
}

/// Block j at `src` of image i to block i at `dst` of image j.
pub(super) fn exchange(plan: &mut CollPlan, l: TeamLayout<'_>, p: LocalBlocks<'_>, how: AllToAll) {
    match how {
        AllToAll::Dissemination(radix) if l.even() => exchange_by_digits(plan, l, p, radix),
        _ => exchange_directly(plan, l, p),
    }
}

fn exchange_directly(plan: &mut CollPlan, l: TeamLayout<'_>, p: LocalBlocks<'_>) {
    let (n, me) = (l.n(), l.me);
    let mine = p.images.len();
    let (mut round, mut last) = (PlanRound::default(), PlanRound::default());
    for (i, from) in p.images.iter().enumerate() {
        for (j, to) in p.images.iter().enumerate() {
            round.copy(p.to(to.dst, l.first(me) + i, 1), p.from(from.src, l.first(me) + j, 1));
        }
    }
    for distance in 1..n {
        let (from, to) = (l.behind(distance), l.ahead(distance));
        let size = |other: usize| mine * l.images(other) * p.nbytes;
        // With one image here, its blocks for each process are one piece of memory.
        if mine == 1 {
            round.receive(from, 0, p.to(p.images[0].dst, l.first(from), l.images(from)));
            round.send(to, 0, p.from(p.images[0].src, l.first(to), l.images(to)));
            continue;
        }
        let (sent, received) = (plan.scratch(size(to)), plan.scratch(size(from)));
        pack(&mut round, l, p, to, sent);
        round.receive(from, 0, received);
        round.send(to, 0, sent.into());
        unpack(&mut last, l, p, from, received.into());
    }
    plan.push(round);
    plan.push(last);
}

fn exchange_by_digits(plan: &mut CollPlan, l: TeamLayout<'_>, p: LocalBlocks<'_>, radix: usize) {
    let n = l.n();
    let size = p.images.len() * p.images.len() * p.nbytes;
    // Slot k: at first the blocks for the process k ranks ahead, in the end those from the
    // process k ranks behind.
    let slots = plan.scratch(n * size);
    let slot = |k: usize| slots.part(k * size, size);
    let mut round = PlanRound::default();
    for k in 0..n {
        pack(&mut round, l, p, l.ahead(k), slot(k));
    }
    let mut weight = 1;
    while weight < n {
        let mut back = PlanRound::default();
        for digit in 1..radix {
            let moving: Vec<usize> = (0..n).filter(|k| k / weight % radix == digit).collect();
            if moving.is_empty() {
                break;
            }
            let (sent, received) =
                (plan.scratch(moving.len() * size), plan.scratch(moving.len() * size));
            for (i, &k) in moving.iter().enumerate() {
                round.copy(sent.part(i * size, size), slot(k).into());
                back.copy(slot(k), received.part(i * size, size).into());
            }
            let (distance, tag) = (digit * weight % n, (digit * weight) as u32);
            round.receive(l.behind(distance), tag, received);
            round.send(l.ahead(distance), tag, sent.into());
        }
        plan.push(core::mem::replace(&mut round, back));
        weight *= radix;
    }
    for k in 0..n {
        unpack(&mut round, l, p, l.behind(k), slot(k).into());
    }
    plan.push(round);
}
