//! Movements and reductions of the ranks of one host, which map each other's segments. Each rank
//! copies its blocks out of the sources of the others, or combines them.
//!
//! Used by `super` and `movements`. Invariants: an offset that a peer published is checked against
//! its segment before it is used; all ranks enter movements in one order, and leave them in that
//! order.
//!
//! ```text
//!   publish the offset of the own source, enter  ->  those whose sources it needs have entered
//!                                   copy, leave  ->  those that need its source have left
//! ```
//!
//! Which ranks these are, `roles` says; how far each rank is, `counts`. A rank may enter several
//! movements before the first is done.
//!
//! A large reduction whose ranks all wait for each other is split: each rank combines a part of
//! the elements of all sources, and stores the results at the root. So is a large reduction to
//! all, with results at all ranks.

use super::CollCall;
use super::combination::{combine, part_of};
use super::counts::{AwaitedCount, ENTERED, IN_SLOTS, LEFT, MovementCounts, MovementNumber};
use super::plan::CollPlan;
use super::request::{CollOperation, CollRequest};
use super::rest;
use super::roles::{AwaitedRanks, MovementRoles, WokenRanks};
use super::shape::{MovementKind, MovementShape};
use crate::client_memory::{Dst, Src};
use crate::extended::scratch::ScratchPages;
use crate::rank::JobRank;
use crate::report;
use crate::runtime::Ctx;
use crate::runtime::scratch::EAGER_RANKS;
use crate::runtime::wait;
use alloc::vec::Vec;
use core::ops::Range;
use core::ptr;
use core::sync::atomic::{AtomicU32, Ordering};
use sys::peer::Peer;

/// Bytes of a movement whose entry and end are announced together, if it need not wait.
const MAX_SHORT: usize = 4096;
/// Where ranks share CPUs, a rank yields once in this many movements, even if it never waits: the
/// others follow while their data are in a cache, and none of their yields takes long. Row
/// `scatter_my` of 8 B, 8 ranks on 2 CPUs: 0.4 of the time.
const MOVEMENTS_PER_YIELD: u32 = 512;
/// In place of the number of a movement that has no slots.
const NO_NUMBER: MovementNumber = 0;

/// How far a rank has carried a movement out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MovementStep {
    /// There is no room yet for its slots.
    Called,
    /// It awaits others, or plans must carry it on.
    Entered(MovementNumber),
    /// Others may still need its memory.
    Left(MovementNumber),
    /// Its memory belongs to the client again.
    Done,
}

/// What a rank has done of its share in a movement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MovementShare {
    /// All of it.
    Done,
    /// Nothing, and so do all ranks: a source that is needed is outside the segment of its rank.
    Refused,
    /// Nothing: what is outside the segment of its rank goes to the root as messages.
    Rest,
}

/// See the module.
#[derive(Debug)]
pub(super) struct DirectMovement {
    counts: MovementCounts,
    /// Calls of [`DirectMovement::carry_out`], where ranks share CPUs.
    calls: AtomicU32,
}

impl DirectMovement {
    /// For a stream of a job with these pages; `None` if it has one rank or too many.
    pub(super) fn new(pages: &ScratchPages, stream: usize) -> Option<DirectMovement> {
        // Each rank reads the cache lines of all others.
        (2..=EAGER_RANKS).contains(&pages.ranks()).then(|| DirectMovement {
            counts: MovementCounts::new(pages, stream),
            calls: AtomicU32::new(0),
        })
    }

    /// What this rank does in a movement; `None` for a request that shared memory does not carry
    /// out.
    pub(super) fn roles(&self, ctx: Ctx, request: &CollRequest) -> Option<MovementRoles> {
        let ranks = self.counts.ranks();
        let shape = MovementShape::of(request, ranks)?;
        let root = request.root as usize;
        let sources = match shape.kind {
            MovementKind::Meeting => 0..0,
            MovementKind::FromRoot => root..root + 1,
            MovementKind::ToRoot | MovementKind::AllToAll => 0..ranks,
        };
        // A barrier needs no segments.
        let lies_in = |rank: usize, at: usize, len: usize| {
            let segment = &ctx.endpoint().segments()[JobRank(rank as u32)];
            segment.resolve(ptr::without_provenance(at), len).is_some()
        };
        let common_src = request
            .common_src
            .filter(|&at| sources.clone().all(|rank| lies_in(rank, at, shape.source)));
        let mut writes_to = writes_to(request, ranks);
        let gathered = request.nbytes.saturating_mul(ranks);
        let common_dst = request.common_dst.filter(|&at| {
            !writes_to.is_empty() && writes_to.all(|rank| lies_in(rank, at, gathered))
        });
        let request = CollRequest { common_src, common_dst, ..*request };
        Some(MovementRoles::new(&request, shape, self.counts.me() == root))
    }

    /// Carries out a movement of the team of all processes, each with one image; all call this
    /// in the same order, when those that they have called before are done. `awaits`: waits for
    /// others where it must. Then the last step is `Done`, or `Entered` if plans must carry it on.
    pub(super) fn carry_out(
        &self,
        ctx: Ctx,
        call: &CollCall,
        roles: &MovementRoles,
        awaits: bool,
    ) -> MovementStep {
        if wait::shares_cpus() {
            let calls = self.calls.load(Ordering::Relaxed).wrapping_add(1);
            self.calls.store(calls, Ordering::Relaxed);
            if calls.is_multiple_of(MOVEMENTS_PER_YIELD) {
                ctx.let_others_run();
            }
        }
        let mut number = self.enter(ctx, call, roles);
        if number.is_none() && awaits {
            ctx.wait_for_words(call.function, || {
                number = self.enter(ctx, call, roles);
                number.is_some()
            });
        }
        let Some(number) = number else { return MovementStep::Called };
        let is_ready = || self.is_ready(roles, number);
        let is_announced = call.request.nbytes > MAX_SHORT || !is_ready();
        if is_announced {
            self.announce_entry(ctx, roles, number);
            if !is_ready() {
                if awaits {
                    ctx.wait_for_words(call.function, is_ready);
                } else if !ctx.words_come_soon(is_ready) {
                    return MovementStep::Entered(number);
                }
            }
        }
        if self.transfer(ctx, number, call, roles) != MovementShare::Done {
            if !is_announced {
                self.announce_entry(ctx, roles, number);
            }
            return MovementStep::Entered(number);
        }
        self.counts.leave(number);
        ctx.wrote_words_of_few(|| {
            !is_announced && self.wakes(ENTERED, roles.at_entry, number)
                || self.wakes(LEFT, roles.at_leaving, number)
        });
        let is_free = || self.is_free(roles, number);
        if !is_free() {
            if awaits {
                ctx.wait_for_words(call.function, is_free);
            } else if !ctx.words_come_soon(is_free) {
                return MovementStep::Left(number);
            }
        }
        MovementStep::Done
    }

    /// Carries out a movement in which no rank awaits another. It has no number, and may pass
    /// movements that are not done.
    pub(super) fn carry_out_alone(&self, ctx: Ctx, call: &CollCall, roles: &MovementRoles) {
        let CollCall { request, buffers, .. } = call;
        let (n, me, all) = (request.nbytes, self.counts.me(), self.counts.ranks());
        let writes_to = writes_to(request, all);
        if let Some(at) = request.common_dst.filter(|_| !writes_to.is_empty()) {
            // Each rank begins with another one.
            for rank in (me..all).chain(0..me).filter(|rank| writes_to.contains(rank)) {
                let to = match rank == me {
                    true => buffers.dst.part(me * n, n),
                    false => common_block(ctx, rank, at, me, n),
                };
                copy_unless_equal(to, buffers.src);
            }
            return;
        }
        let share = self.transfer(ctx, NO_NUMBER, call, roles);
        assert_eq!(share, MovementShare::Done, "all ranks know where the sources are");
    }

    /// Publishes the offsets of this rank for its next movement, and enters it. `None` while
    /// others may still read what its slots hold. The others are not woken.
    pub(super) fn enter(
        &self,
        ctx: Ctx,
        CollCall { request, buffers, .. }: &CollCall,
        MovementRoles { shape, .. }: &MovementRoles,
    ) -> Option<MovementNumber> {
        let number = self.counts.next(shape.slots)?;
        let me = self.counts.me();
        let is_root = me == request.root as usize;
        let is_read = match shape.kind {
            MovementKind::FromRoot => is_root,
            MovementKind::ToRoot => !is_root,
            MovementKind::AllToAll => true,
            MovementKind::Meeting => false,
        };
        if !is_read {
            self.counts.publish(number, shape.slots, &[]);
            return Some(number);
        }
        let segment = &ctx.endpoint().segments()[JobRank(me as u32)];
        let word = |at: *const u8, len: usize| {
            segment.resolve(at, len).map_or(0, |r| r.offset() as u64 + 1)
        };
        let src = buffers.src;
        let mut offsets = [IN_SLOTS, 0];
        if !shape.is_copied {
            offsets[0] = word(src.as_ptr(), src.len());
            if shape.is_eager && offsets[0] == 0 {
                offsets[0] = IN_SLOTS;
            }
            if shape.is_split && (is_root || request.operation == CollOperation::ReduceAll) {
                offsets[1] = word(buffers.dst.as_ptr(), buffers.dst.len());
            }
        }
        if offsets[0] == IN_SLOTS {
            self.counts.data(me, number, shape.slots).part(0, src.len()).copy_from(src);
        }
        let published = match shape.is_copied {
            true => 0,
            false => 1 + usize::from(shape.is_split),
        };
        self.counts.publish(number, shape.slots, &offsets[..published]);
        Some(number)
    }

    /// Whether this rank can do its share in a movement that it has entered.
    pub(super) fn is_ready(&self, roles: &MovementRoles, number: MovementNumber) -> bool {
        self.counts.have_reached(ENTERED, roles.entered, number)
    }

    /// A count without which this rank cannot enter a movement; [`AwaitedCount::REACHED`] if it
    /// can, and so in the others.
    pub(super) fn awaited_to_enter(&self, roles: &MovementRoles) -> AwaitedCount {
        self.counts.awaited_for_room(roles.shape.slots)
    }

    /// A count without which [`DirectMovement::is_ready`] is false.
    pub(super) fn awaited_to_move(
        &self,
        roles: &MovementRoles,
        number: MovementNumber,
    ) -> AwaitedCount {
        self.counts.awaited(ENTERED, roles.entered, number)
    }

    /// A count without which [`DirectMovement::is_free`] is false.
    pub(super) fn awaited_to_end(
        &self,
        roles: &MovementRoles,
        number: MovementNumber,
    ) -> AwaitedCount {
        self.counts.awaited(LEFT, roles.left, number)
    }

    /// As [`MovementCounts::is_reached`].
    #[inline(always)]
    pub(super) fn is_reached(&self, awaited: AwaitedCount) -> bool {
        self.counts.is_reached(awaited)
    }

    /// Whether the memory of a movement that this rank has left belongs to the client again.
    pub(super) fn is_free(&self, roles: &MovementRoles, number: MovementNumber) -> bool {
        self.counts.have_reached(LEFT, roles.left, number)
    }

    /// Whether a rank that has taken a step in a movement wakes the others.
    fn wakes(&self, word: usize, woken: WokenRanks, number: MovementNumber) -> bool {
        match woken {
            WokenRanks::None => false,
            WokenRanks::AllByTheLast => self.counts.have_reached(word, AwaitedRanks::All, number),
            WokenRanks::All => true,
        }
    }

    /// Wakes those that wait for the entry of this rank.
    pub(super) fn announce_entry(&self, ctx: Ctx, roles: &MovementRoles, number: MovementNumber) {
        ctx.wrote_words_of_few(|| self.wakes(ENTERED, roles.at_entry, number));
    }

    /// Leaves the movement that this rank has entered first of those that it has not left.
    pub(super) fn leave(&self, ctx: Ctx, roles: &MovementRoles, number: MovementNumber) {
        self.counts.leave(number);
        ctx.wrote_words_of_few(|| self.wakes(LEFT, roles.at_leaving, number));
    }

    /// Where the source of a rank is in a movement, as it has published, or as all know.
    #[inline(always)]
    fn source(&self, rank: usize, shape: &MovementShape, number: MovementNumber) -> Peer<u64> {
        match shape.is_copied {
            true => Peer::new(IN_SLOTS),
            false => self.counts.offset(rank, number, (shape.slots, 0)),
        }
    }

    /// What a rank has published of its result in a split movement.
    fn result(&self, rank: usize, shape: &MovementShape, number: MovementNumber) -> Peer<u64> {
        self.counts.offset(rank, number, (shape.slots, 1))
    }

    /// Block i of a rank's source in this movement of this rank.
    #[inline(always)]
    fn block(
        &self,
        ctx: Ctx,
        (rank, i): (usize, usize),
        number: MovementNumber,
        CollCall { request, buffers, .. }: &CollCall,
        MovementRoles { shape, common_src, .. }: &MovementRoles,
    ) -> Src<'static> {
        let n = request.nbytes;
        if rank == self.counts.me() {
            return buffers.src.part(i * n, n);
        }
        if let Some(at) = *common_src {
            return common_block(ctx, rank, at, i, n).into();
        }
        let source = self.source(rank, shape, number);
        if shape.is_eager && source.equals(IN_SLOTS) {
            return self.counts.data(rank, number, shape.slots).part(i * n, n).into();
        }
        let offset = source.map(|s| s.wrapping_sub(1).saturating_add((i * n) as u64));
        block_of(ctx, rank, offset, n).into()
    }

    /// Does the share of this rank in a movement for which it is ready.
    pub(super) fn transfer(
        &self,
        ctx: Ctx,
        number: MovementNumber,
        call: &CollCall,
        roles: &MovementRoles,
    ) -> MovementShare {
        let CollCall { request, buffers, .. } = call;
        let (n, me, all) = (request.nbytes, self.counts.me(), self.counts.ranks());
        let root = request.root as usize;
        let is_elsewhere = |rank: usize| {
            roles.common_src.is_none() && self.source(rank, &roles.shape, number).equals(0)
        };
        let fetch = |rank: usize, i: usize, to: usize| {
            let from = self.block(ctx, (rank, i), number, call, roles);
            copy_unless_equal(buffers.dst.part(to * n, n), from);
        };
        // Each rank begins with another one.
        let others = (me..all).chain(0..me);
        match roles.shape.kind {
            MovementKind::FromRoot if is_elsewhere(root) => return MovementShare::Refused,
            MovementKind::AllToAll if (0..all).any(is_elsewhere) => return MovementShare::Refused,
            MovementKind::ToRoot if me != root => {
                return if is_elsewhere(me) { MovementShare::Rest } else { MovementShare::Done };
            }
            MovementKind::ToRoot if (0..all).any(|rank| rank != me && is_elsewhere(rank)) => {
                return MovementShare::Rest;
            }
            _ => {}
        }
        match request.operation {
            CollOperation::Broadcast => fetch(root, 0, 0),
            CollOperation::Scatter => fetch(root, me, 0),
            CollOperation::Gather | CollOperation::GatherAll => {
                others.for_each(|rank| fetch(rank, 0, rank));
            }
            CollOperation::Exchange => others.for_each(|rank| fetch(rank, me, rank)),
            CollOperation::Reduce => return self.reduce(ctx, number, call, roles),
            CollOperation::ReduceAll => return self.reduce_all(ctx, number, call, roles),
            CollOperation::Barrier => {}
            CollOperation::Scan => unreachable!("never direct"),
        }
        MovementShare::Done
    }

    /// Combines the elements that are those of this rank.
    fn reduce(
        &self,
        ctx: Ctx,
        number: MovementNumber,
        call: &CollCall,
        roles: &MovementRoles,
    ) -> MovementShare {
        let CollCall { request, buffers, .. } = call;
        let (n, me, all) = (request.nbytes, self.counts.me(), self.counts.ranks());
        let root = request.root as usize;
        let (elem_size, count) = request.elements();
        let result = roles.shape.is_split.then(|| self.result(root, &roles.shape, number));
        let (to, elements) = match result {
            Some(result) if !result.equals(0) => {
                let at = result.map(|word| word.wrapping_sub(1));
                (block_of(ctx, root, at, n), part_of((elem_size, count), me, all))
            }
            _ if me == root => (buffers.dst, 0..count),
            _ => return MovementShare::Done,
        };
        self.combine(ctx, number, call, roles, (to, elements));
        MovementShare::Done
    }

    /// Combines these elements of the sources of all ranks.
    fn combine(
        &self,
        ctx: Ctx,
        number: MovementNumber,
        call: &CollCall,
        roles: &MovementRoles,
        (to, elements): (Dst<'_>, Range<usize>),
    ) {
        if !elements.is_empty() {
            let source = |rank| self.block(ctx, (rank, 0), number, call, roles);
            let sources: Vec<Src<'_>> = (0..self.counts.ranks()).map(source).collect();
            let reduction = call.request.reduction.expect("a reduction has a function");
            combine(&reduction, to, &sources, elements);
        }
    }

    /// Combines all elements for this rank, or a part of them for all.
    fn reduce_all(
        &self,
        ctx: Ctx,
        number: MovementNumber,
        call: &CollCall,
        roles: &MovementRoles,
    ) -> MovementShare {
        let CollCall { request, buffers, .. } = call;
        let (n, me, all) = (request.nbytes, self.counts.me(), self.counts.ranks());
        let (elem_size, count) = request.elements();
        let result = |rank: usize| self.result(rank, &roles.shape, number);
        let elements = match roles.shape.is_split {
            true if (0..all).any(|rank| result(rank).equals(0)) => return MovementShare::Refused,
            true => part_of((elem_size, count), me, all),
            false => 0..count,
        };
        self.combine(ctx, number, call, roles, (buffers.dst, elements.clone()));
        if roles.shape.is_split && !elements.is_empty() {
            let (at, len) = (elements.start * elem_size, elements.len() * elem_size);
            for rank in (me + 1..all).chain(0..me) {
                let to = result(rank).map(|word| word.wrapping_sub(1));
                block_of(ctx, rank, to, n)
                    .part(at, len)
                    .copy_from(buffers.dst.part(at, len).into());
            }
        }
        MovementShare::Done
    }

    /// Ends the job if a word was overwritten.
    pub(super) fn check_words(&self) {
        self.counts.check_words();
    }

    /// The plan of this rank for the rest of a movement to the root.
    pub(super) fn rest(
        &self,
        ctx: Ctx,
        number: MovementNumber,
        call: &CollCall,
        roles: &MovementRoles,
    ) -> CollPlan {
        let CollCall { request, buffers, .. } = call;
        let me = self.counts.me();
        if me != request.root as usize {
            return rest::sent(request, *buffers);
        }
        let source = |rank: usize| {
            let is_here = rank == me || !self.source(rank, &roles.shape, number).equals(0);
            is_here.then(|| self.block(ctx, (rank, 0), number, call, roles))
        };
        let sources: Vec<Option<Src<'_>>> = (0..self.counts.ranks()).map(source).collect();
        rest::received(request, *buffers, &sources)
    }
}

/// The ranks to whose destinations all ranks copy, if they know the addresses.
fn writes_to(request: &CollRequest, ranks: usize) -> Range<usize> {
    let root = request.root as usize;
    match request.operation {
        CollOperation::Gather => root..root + 1,
        CollOperation::GatherAll => 0..ranks,
        _ => 0..0,
    }
}

/// Copies a block, unless the client's source is its destination.
#[inline(always)]
fn copy_unless_equal(to: Dst<'_>, from: Src<'_>) {
    if !ptr::eq(from.as_ptr(), to.as_ptr()) {
        to.copy_from(from);
    }
}

/// The segment of a rank, as it is mapped here.
#[inline(always)]
fn mapped(ctx: Ctx, rank: usize) -> Dst<'static> {
    let segment = &ctx.endpoint().segments()[JobRank(rank as u32)];
    segment.mapped().expect("ranks that share pages map each other's segments")
}

/// Block i, of `n` bytes, of what a rank has at an address that was found to lie in its segment.
#[inline(always)]
fn common_block(ctx: Ctx, rank: usize, at: usize, i: usize, n: usize) -> Dst<'static> {
    let segment = &ctx.endpoint().segments()[JobRank(rank as u32)];
    let offset = at.wrapping_sub(segment.base().addr());
    mapped(ctx, rank).part(offset + i * n, n)
}

/// The `n` bytes at an offset that a rank named, as its segment is mapped here.
#[inline(always)]
fn block_of(ctx: Ctx, rank: usize, offset: Peer<u64>, n: usize) -> Dst<'static> {
    let mapped = mapped(ctx, rank);
    match offset.range(Peer::new(n), mapped.len()) {
        Some(range) => mapped.part(range.start, n),
        None => outside(rank, offset, n, mapped.len()),
    }
}

fn outside(rank: usize, offset: Peer<u64>, n: usize, len: usize) -> ! {
    report::fatal(
        format_args!(
            "rank {rank} names {n} bytes at {} of its segment, which has {len}",
            offset.data()
        ),
        format_args!(
            "All ranks of a job must call the collectives of a team with the same sizes."
        ),
    )
}
