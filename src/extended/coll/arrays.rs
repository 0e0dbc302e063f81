//! The plans of reduce and scan over the elements of a block-cyclic array.
//!
//! Called by `choice`. Invariants: an element moves at most twice, whatever the block size is;
//! what a process keeps in scratch memory is proportional to its share of the array.
//!
//! - A reduction with a commutative function combines the elements of each image where they are.
//! - Otherwise the array is cut into a slice of consecutive elements for each process. Images send
//!   their elements to the slices. Each process combines its slice in order, then the totals of
//!   the slices are combined. The results of a scan go to the images of the destination.
//!
//! ```text
//!   blocks of images      slices of processes            totals            blocks of images
//!   src  ------------->   a0 a1 | a2 a3 | a4     --->    scan of   --->    dst
//!          messages       prefixes of each slice         slices            messages
//! ```

use super::block_cyclic::BlockCyclic;
use super::compute::{self, ProcessRange};
use super::layout::{LocalBlocks, TeamLayout};
use super::plan::{CollPlan, LocalStep, PlanRound};
use super::tree::Tree;
use crate::client_memory::{Dst, Src};
use core::ops::Range;

/// The tag of the messages between slices and image 0; those of other images follow. Messages
/// between processes that have no image in common have different tags, whatever their direction.
const DEALT: u32 = 1 << 29;

/// An array, as one process sees it.
#[derive(Clone, Copy, Debug)]
pub(super) struct DealtArray<'a> {
    pub(super) l: TeamLayout<'a>,
    pub(super) layout: BlockCyclic,
    /// Bytes of an element.
    pub(super) size: usize,
    /// Used elements.
    pub(super) count: usize,
    /// The number of the first element that the buffers of the images hold: 0, or 1.
    pub(super) first: usize,
}

impl DealtArray<'_> {
    /// The elements of a process's slice. The first slices have the same number, the others the
    /// rest.
    fn slice(&self, rank: usize) -> Range<usize> {
        let each = self.count.div_ceil(self.l.n());
        let bound = |r: usize| (r * each).min(self.count).max(self.first);
        bound(rank)..bound(rank + 1)
    }

    /// Processes whose slices are not empty: the first ranks.
    fn slices(&self) -> usize {
        self.count.div_ceil(self.count.div_ceil(self.l.n()))
    }

    /// The elements that an image has of a range, in bytes of its buffer.
    fn run(&self, image: usize, range: Range<usize>) -> (usize, usize) {
        let whole = self.layout.run(image, self.l.all(), self.first..self.count);
        let run = self.layout.run(image, self.l.all(), range);
        ((run.start - whole.start) * self.size, run.len() * self.size)
    }

    /// The elements of an image of this process, among those of all its images.
    fn local(&self, image: usize) -> Option<usize> {
        let local = image.checked_sub(self.l.first(self.l.me))?;
        (local < self.l.images(self.l.me)).then_some(local)
    }

    /// The processes other than this one that exchange elements of an image of this process, and
    /// the elements.
    fn others(&self, image: usize) -> impl Iterator<Item = (usize, (usize, usize))> {
        let others = (1..self.l.n()).map(|distance| self.l.ahead(distance));
        others.map(move |rank| (rank, self.run(image, self.slice(rank)))).filter(|(_, r)| r.1 > 0)
    }

    /// This process's slice, in new memory; sends the elements of its images to the other slices.
    fn deal_out(&self, plan: &mut CollPlan, p: LocalBlocks<'_>) -> Src<'static> {
        let mine = self.slice(self.l.me);
        let slice = plan.scratch(mine.len() * self.size);
        let (mut round, mut next) = (PlanRound::default(), PlanRound::default());
        for image in 0..self.l.all() {
            let (at, n) = self.run(image, mine.clone());
            if n == 0 {
                continue;
            }
            let from = match self.local(image) {
                Some(local) => p.images[local].src.part(at, n),
                None => {
                    let memory = plan.scratch(n);
                    round.receive(self.l.process_of(image), DEALT + image as u32, memory);
                    memory.into()
                }
            };
            let (at, by) = self.layout.blocks(image, self.l.all(), mine.clone(), self.size);
            next.steps.push(LocalStep::Spread { to: slice.part(at, slice.len() - at), from, by });
        }
        for (local, buffers) in p.images.iter().enumerate() {
            let image = self.l.first(self.l.me) + local;
            for (rank, (at, n)) in self.others(image) {
                round.send(rank, DEALT + image as u32, buffers.src.part(at, n));
            }
        }
        plan.push(round);
        plan.push(next);
        slice.into()
    }

    /// Sends the results of this process's slice to the images, and receives those of its images.
    fn return_results(
        &self,
        plan: &mut CollPlan,
        mut round: PlanRound,
        p: LocalBlocks<'_>,
        results: Src<'static>,
    ) {
        let mine = self.slice(self.l.me);
        for image in 0..self.l.all() {
            let (at, n) = self.run(image, mine.clone());
            if n == 0 {
                continue;
            }
            let to = match self.local(image) {
                Some(local) => p.images[local].dst.part(at, n),
                None => {
                    let memory = plan.scratch(n);
                    let owner = self.l.process_of(image);
                    round.send(owner, DEALT + image as u32, memory.into());
                    memory
                }
            };
            let (at, by) = self.layout.blocks(image, self.l.all(), mine.clone(), self.size);
            let from = results.part(at, results.len() - at);
            round.steps.push(LocalStep::Collect { to, from, by });
        }
        for (local, buffers) in p.images.iter().enumerate() {
            let image = self.l.first(self.l.me) + local;
            for (rank, (at, n)) in self.others(image) {
                round.receive(rank, DEALT + image as u32, buffers.dst.part(at, n));
            }
        }
        plan.push(round);
    }

    /// The processes whose images have used elements.
    fn holders(&self) -> ProcessRange {
        let (l, (first, count)) = (self.l, self.layout.holders(self.l.all(), self.count));
        let top = l.process_of(first);
        let last = (first + count - 1) % l.all();
        let n = (l.process_of(last) + l.n() - top) % l.n() + 1;
        // The last images before the first one may be of the same process.
        ProcessRange { top, count: if last < first && n == 1 { l.n() } else { n } }
    }
}

/// The combination of all elements of an area, in any order.
fn fold(
    plan: &mut CollPlan,
    round: &mut PlanRound,
    mut all: Src<'static>,
    size: usize,
) -> Src<'static> {
    while all.len() > size {
        // The first half with the second; an odd element is left to the next step.
        let half = all.len() / size / 2 * size;
        let to = plan.scratch(all.len() - half);
        let (left, right) = (all.part(0, half), all.part(half, half));
        round.steps.push(LocalStep::Combine { to: to.part(0, half), left, right });
        round.copy(to.part(half, to.len() - half), all.part(2 * half, to.len() - half));
        all = to.into();
    }
    all
}

/// The prefixes of this process's slice, in a round that is not over. No bytes if it has no slice.
fn prefixes(plan: &mut CollPlan, round: &mut PlanRound, slice: Src<'static>) -> Src<'static> {
    let to = plan.scratch(slice.len());
    if slice.len() != 0 {
        round.steps.push(LocalStep::Prefix { to, from: slice });
    }
    to.into()
}

/// The combination of all elements, in their order, to `dst` of image `root`; nothing if there
/// are none.
pub(super) fn reduce(
    plan: &mut CollPlan,
    array: DealtArray<'_>,
    p: LocalBlocks<'_>,
    root: usize,
    tree: Tree,
    ordered: bool,
) {
    let (l, size) = (array.l, array.size);
    if array.count * size == 0 {
        return;
    }
    let mut round = PlanRound::default();
    let (processes, operand) = if ordered {
        let slice = array.deal_out(plan, p);
        let all = prefixes(plan, &mut round, slice);
        let last = (all.len() != 0).then(|| all.part(all.len() - size, size));
        (ProcessRange { top: 0, count: array.slices() }, last)
    } else {
        let mut operand: Option<Src<'static>> = None;
        for image in p.images.iter().filter(|image| image.src.len() != 0) {
            let own = fold(plan, &mut round, image.src, size);
            operand = Some(match operand {
                Some(left) => compute::combine(plan, &mut round, left, own),
                None => own,
            });
        }
        let holders = array.holders();
        let top = if holders.count == l.n() { l.process_of(root) } else { holders.top };
        (ProcessRange { top, ..holders }, operand)
    };
    compute::over_tree(plan, round, l, processes, operand, tree, compute::root_dst(l, p, root));
}

/// The combinations of the elements of `src` up to each element, with or without it, to the
/// elements of `dst`. Without it, the first element of `dst` is not written.
pub(super) fn scan(
    plan: &mut CollPlan,
    src: DealtArray<'_>,
    dst: DealtArray<'_>,
    p: LocalBlocks<'_>,
) {
    let size = src.size;
    if src.count * size == 0 {
        return;
    }
    let slice = src.deal_out(plan, p);
    let mut round = PlanRound::default();
    let all = prefixes(plan, &mut round, slice);
    if all.len() == 0 {
        return dst.return_results(plan, round, p, all);
    }
    let total = all.part(all.len() - size, size);
    let before = compute::before(plan, &mut round, src.slices(), src.l.me, total);
    // Without itself, an element's result is that of the element before.
    let exclusive = dst.first * size;
    let inner = all.part(0, all.len() - exclusive);
    let Some(before) = before else { return dst.return_results(plan, round, p, inner) };
    let (results, left) = (plan.scratch(all.len()), plan.scratch(inner.len()));
    round.copy(results.part(0, exclusive), before);
    repeat(&mut round, left, before);
    if inner.len() != 0 {
        let to = results.part(exclusive, inner.len());
        round.steps.push(LocalStep::Combine { to, left: left.into(), right: inner });
    }
    dst.return_results(plan, round, p, results.into());
}

/// Fills `to` with copies of an element.
fn repeat(round: &mut PlanRound, to: Dst<'static>, element: Src<'static>) {
    let mut done = element.len().min(to.len());
    round.copy(to.part(0, done), element.part(0, done));
    while done < to.len() {
        let n = done.min(to.len() - done);
        round.copy(to.part(done, n), to.part(0, n).into());
        done += n;
    }
}
