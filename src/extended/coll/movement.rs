//! The plans of the collectives that move data: broadcast, scatter, gather, gather_all, exchange.
//!
//! Called by `engine`. Each process moves the blocks of all its images together; copies between images of a process are
//! local work. Rooted operations run over a tree of ranks that are counted from the root's process.

use super::plan::{CollPlan, PlanRound};
use super::tree::Tree;
use alloc::vec::Vec;

/// The processes of a team and their images, as one of them sees them.
#[derive(Clone, Copy, Debug)]
pub(super) struct TeamLayout<'a> {
    /// Our rank.
    pub(super) me: usize,
    /// Image number of the first image of each process; the last entry is the number of images.
    pub(super) first: &'a [u32],
}

impl TeamLayout<'_> {
    pub(super) fn n(&self) -> usize {
        self.first.len() - 1
    }

    /// Image number of the first image of a process.
    pub(super) fn first(&self, rank: usize) -> usize {
        self.first[rank] as usize
    }

    /// Images of a process.
    pub(super) fn images(&self, rank: usize) -> usize {
        self.first(rank + 1) - self.first(rank)
    }

    /// Images of the team.
    pub(super) fn all(&self) -> usize {
        self.first(self.n())
    }

    /// The process of an image.
    pub(super) fn process_of(&self, image: usize) -> usize {
        self.first.partition_point(|&f| f as usize <= image) - 1
    }

    /// Whether all processes have the same number of images.
    fn even(&self) -> bool {
        (1..self.n()).all(|r| self.images(r) == self.images(0))
    }
}

/// Where the blocks of our images are.
#[derive(Clone, Copy, Debug)]
pub(super) struct LocalBlocks<'a> {
    /// By image of this process.
    pub(super) dst: &'a [*mut u8],
    /// By image of this process.
    pub(super) src: &'a [*mut u8],
    /// Bytes of a block.
    pub(super) nbytes: usize,
}

fn at(base: *mut u8, block: usize, nbytes: usize) -> *mut u8 {
    base.wrapping_add(block * nbytes)
}

/// `src` of image `root` to `dst` of all, in pieces of `segment` bytes (0: whole), which inner nodes pass on as they come.
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
    let links = tree.links(n, (l.me + n - top) % n);
    let buffer = if l.me == top { p.src[root - l.first(top)] } else { p.dst[0] };
    let segment = if segment == 0 { p.nbytes.max(1) } else { segment };
    let pieces: Vec<(u32, *mut u8, usize)> = (0..p.nbytes.div_ceil(segment))
        .map(|i| (i as u32, at(buffer, i, segment), segment.min(p.nbytes - i * segment)))
        .collect();
    let receive = |round: &mut PlanRound, i: usize| {
        if let (Some(parent), Some(&(tag, at, n))) = (links.parent, pieces.get(i)) {
            round.receive(absolute(parent), tag, at, n);
        }
    };
    let send = |round: &mut PlanRound, i: usize| {
        let (tag, at, n) = pieces[i];
        for &(child, _) in links.children.iter().rev() {
            round.send(absolute(child), tag, at, n);
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
    for &dst in p.dst {
        last.copy(dst, buffer, p.nbytes);
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
    let me = (l.me + n - top) % n;
    let links = tree.links(n, me);
    let offsets = relative_offsets(l, top, p.nbytes);
    let (mine, rest) = (l.images(l.me) * p.nbytes, offsets[links.end] - offsets[me]);
    let mut round = PlanRound::default();
    let (own, below) = if l.me != top {
        let buffer = if rest == mine && p.dst.len() == 1 { p.dst[0] } else { plan.scratch(rest) };
        round.receive(absolute(links.parent.unwrap_or(0)), 0, buffer, rest);
        plan.push(core::mem::take(&mut round));
        (buffer, buffer)
    } else {
        let src = p.src[root - l.first(top)];
        if tree.is_flat() || top == 0 {
            (at(src, l.first(top), p.nbytes), core::ptr::null_mut())
        } else {
            // Blocks in the order of the tree.
            let buffer = plan.scratch(rest);
            let tail = l.first(top) * p.nbytes;
            round.copy(buffer, src.wrapping_add(tail), rest - tail);
            round.copy(buffer.wrapping_add(rest - tail), src, tail);
            (buffer, buffer)
        }
    };
    for &(child, end) in links.children.iter().rev() {
        let from = if below.is_null() {
            at(p.src[root - l.first(top)], l.first(absolute(child)), p.nbytes)
        } else {
            below.wrapping_add(offsets[child] - offsets[me])
        };
        round.send(absolute(child), 0, from, offsets[end] - offsets[child]);
    }
    plan.push(round);
    let mut last = PlanRound::default();
    for (i, &dst) in p.dst.iter().enumerate() {
        last.copy(dst, at(own, i, p.nbytes), p.nbytes);
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
    let me = (l.me + n - top) % n;
    let links = tree.links(n, me);
    let offsets = relative_offsets(l, top, p.nbytes);
    let rest = offsets[links.end] - offsets[me];
    let mut round = PlanRound::default();
    if l.me != top {
        let buffer = if p.src.len() == 1 && links.children.is_empty() {
            p.src[0]
        } else {
            let buffer = plan.scratch(rest);
            for (i, &src) in p.src.iter().enumerate() {
                round.copy(at(buffer, i, p.nbytes), src, p.nbytes);
            }
            for &(child, end) in &links.children {
                let to = buffer.wrapping_add(offsets[child] - offsets[me]);
                round.receive(absolute(child), 0, to, offsets[end] - offsets[child]);
            }
            buffer
        };
        plan.push(core::mem::take(&mut round));
        round.send(absolute(links.parent.unwrap_or(0)), 0, buffer, rest);
        plan.push(round);
        return;
    }
    let dst = p.dst[root - l.first(top)];
    for (i, &src) in p.src.iter().enumerate() {
        round.copy(at(dst, l.first(top) + i, p.nbytes), src, p.nbytes);
    }
    let direct = tree.is_flat() || top == 0;
    let buffer = if direct { core::ptr::null_mut() } else { plan.scratch(rest) };
    for &(child, end) in &links.children {
        let to = if direct {
            at(dst, l.first(absolute(child)), p.nbytes)
        } else {
            buffer.wrapping_add(offsets[child])
        };
        round.receive(absolute(child), 0, to, offsets[end] - offsets[child]);
    }
    plan.push(round);
    if !direct {
        // Blocks back into the order of the images: those after ours, then those before.
        let (own, tail) = (offsets[1], l.first(top) * p.nbytes);
        let mut last = PlanRound::default();
        last.copy(
            at(dst, l.first(top + 1), p.nbytes),
            buffer.wrapping_add(own),
            rest - tail - own,
        );
        last.copy(dst, buffer.wrapping_add(rest - tail), tail);
        plan.push(last);
    }
}

/// How data get from all to all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AllToAll {
    /// A message for each pair.
    Direct,
    /// Few messages, with what came in earlier rounds in them, in a logarithmic number of rounds; the radix.
    Dissemination(usize),
    /// Neighbours hand blocks on (gather_all only).
    Ring,
}

/// `src` of image i to block i at `dst` of all.
pub(super) fn gather_all(
    plan: &mut CollPlan,
    l: TeamLayout<'_>,
    p: LocalBlocks<'_>,
    how: AllToAll,
) {
    let (n, me, dst) = (l.n(), l.me, p.dst[0]);
    let bytes = |rank: usize| l.images(rank) * p.nbytes;
    let place = |rank: usize| at(dst, l.first(rank), p.nbytes);
    let mut round = PlanRound::default();
    for (i, &src) in p.src.iter().enumerate() {
        round.copy(at(place(me), i, p.nbytes), src, p.nbytes);
    }
    match how {
        AllToAll::Direct => {
            for distance in 1..n {
                let from = (me + n - distance) % n;
                round.receive(from, 0, place(from), bytes(from));
                round.send((me + distance) % n, 0, place(me), bytes(me));
            }
        }
        AllToAll::Ring => {
            for step in 1..n {
                let (pass, take) = ((me + n - (step - 1)) % n, (me + n - step) % n);
                round.receive((me + n - 1) % n, step as u32, place(take), bytes(take));
                round.send((me + 1) % n, step as u32, place(pass), bytes(pass));
                plan.push(core::mem::take(&mut round));
            }
        }
        // After each round a process has the blocks of twice as many processes from itself on (Bruck et al. 1997).
        AllToAll::Dissemination(_) => {
            let mut have = 1;
            while have < n {
                let count = have.min(n - have);
                let (left, right) = ((me + n - have) % n, (me + have) % n);
                // A range of ranks is two pieces of memory where it wraps around.
                let pieces = |start: usize| {
                    let end = start + count;
                    [(start, end.min(n)), (0, end.saturating_sub(n))]
                };
                for (i, (a, b)) in
                    pieces(right).into_iter().enumerate().filter(|(_, (a, b))| a < b)
                {
                    let size = (l.first(b) - l.first(a)) * p.nbytes;
                    round.receive(right, (2 * have + i) as u32, place(a), size);
                }
                for (i, (a, b)) in pieces(me).into_iter().enumerate().filter(|(_, (a, b))| a < b) {
                    let size = (l.first(b) - l.first(a)) * p.nbytes;
                    round.send(left, (2 * have + i) as u32, place(a), size);
                }
                plan.push(core::mem::take(&mut round));
                have *= 2;
            }
        }
    }
    plan.push(round);
    let mut last = PlanRound::default();
    for &other in p.dst {
        last.copy(other, dst, l.all() * p.nbytes);
    }
    plan.push(last);
}

/// Copies the blocks that our images send to those of process `to` together: by image there, then by image here.
fn pack(round: &mut PlanRound, l: TeamLayout<'_>, p: LocalBlocks<'_>, to: usize, buffer: *mut u8) {
    let mine = p.src.len();
    for j in 0..l.images(to) {
        for (i, &src) in p.src.iter().enumerate() {
            round.copy(
                at(buffer, j * mine + i, p.nbytes),
                at(src, l.first(to) + j, p.nbytes),
                p.nbytes,
            );
        }
    }
}

/// Copies what process `from` packed to where our images want it.
fn unpack(
    round: &mut PlanRound,
    l: TeamLayout<'_>,
    p: LocalBlocks<'_>,
    from: usize,
    buffer: *const u8,
) {
    let size = l.images(from) * p.nbytes;
    for (j, &dst) in p.dst.iter().enumerate() {
        round.copy(at(dst, l.first(from), p.nbytes), buffer.wrapping_add(j * size), size);
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
    let mine = p.src.len();
    let (mut round, mut last) = (PlanRound::default(), PlanRound::default());
    for (i, &src) in p.src.iter().enumerate() {
        for (j, &dst) in p.dst.iter().enumerate() {
            let (from, to) =
                (at(src, l.first(me) + j, p.nbytes), at(dst, l.first(me) + i, p.nbytes));
            round.copy(to, from, p.nbytes);
        }
    }
    for distance in 1..n {
        let (from, to) = ((me + n - distance) % n, (me + distance) % n);
        let size = |other: usize| mine * l.images(other) * p.nbytes;
        // With one image here, both sides of it are in one piece.
        if mine == 1 {
            round.receive(from, 0, at(p.dst[0], l.first(from), p.nbytes), size(from));
            round.send(to, 0, at(p.src[0], l.first(to), p.nbytes), size(to));
            continue;
        }
        let (sent, received) = (plan.scratch(size(to)), plan.scratch(size(from)));
        pack(&mut round, l, p, to, sent);
        round.receive(from, 0, received, size(from));
        round.send(to, 0, sent, size(to));
        unpack(&mut last, l, p, from, received);
    }
    plan.push(round);
    plan.push(last);
}

/// Blocks travel by the digits of their distance (Bruck et al. 1997).
fn exchange_by_digits(plan: &mut CollPlan, l: TeamLayout<'_>, p: LocalBlocks<'_>, radix: usize) {
    let (n, me) = (l.n(), l.me);
    let size = p.src.len() * p.src.len() * p.nbytes;
    // Slot k: first what is for the process k ahead of us, in the end what comes from the process k behind us.
    let slots = plan.scratch(n * size);
    let mut round = PlanRound::default();
    for k in 0..n {
        pack(&mut round, l, p, (me + k) % n, at(slots, k, size));
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
                round.copy(at(sent, i, size), at(slots, k, size), size);
                back.copy(at(slots, k, size), at(received, i, size), size);
            }
            let (distance, tag) = (digit * weight % n, (digit * weight) as u32);
            round.receive((me + n - distance) % n, tag, received, moving.len() * size);
            round.send((me + distance) % n, tag, sent, moving.len() * size);
        }
        plan.push(core::mem::replace(&mut round, back));
        weight *= radix;
    }
    for k in 0..n {
        unpack(&mut round, l, p, (me + n - k) % n, at(slots, k, size));
    }
    plan.push(round);
}
