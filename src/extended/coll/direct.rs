//! Blocking collectives of few processes that map each other's segments: each reads what is for it where it lies.
//!
//! Used by `super` for movements that begin when all have called and end when all are done (`IN_ALLSYNC`, `OUT_ALLSYNC`), so that what
//! they do is two meetings with copies in between. In the line of a process in its shared page stand the number of the meeting that it
//! has come to last and where its source is. Invariant: a place that a peer named is checked against its segment before it is read.
//!
//! Meetings of even and odd number have words of their own, because a process may come to the next one while others still look for
//! those who are late. A source is written before the first meeting of a collective and read before the second one, and nobody comes to
//! the first one of the next collective before that.

use super::engine::ImageBuffers;
use super::{CollOperation, CollRequest};
use crate::extended::barrier;
use crate::report;
use crate::runtime::{Ctx, GasnetJob};
use alloc::boxed::Box;
use core::ptr;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Jobs up to this size: everybody reads the lines of all others.
const MOST: usize = 8;
/// Where the line begins in each page, behind those of the barrier.
const OFFSET: usize = barrier::SHARED_BYTES;
const _: () = assert!(OFFSET + size_of::<MovementLine>() <= super::lines::OFFSET);

/// The line of one process.
#[repr(C, align(64))]
#[derive(Debug)]
struct MovementLine {
    /// By parity: the number of the last meeting that it has come to.
    meeting: [AtomicU32; 2],
    /// Where its source is in its segment, and one; 0 if it is not there.
    source: AtomicU64,
}

/// See the module.
#[derive(Debug)]
pub(super) struct DirectMovement {
    posts: Box<[&'static MovementLine]>,
    me: usize,
    /// The number of the last meeting.
    last: AtomicU32,
}

impl DirectMovement {
    /// For a job whose processes all map each other's segments, if there are few of them; else `None`.
    pub(super) fn of(job: &GasnetJob) -> Option<DirectMovement> {
        let pages = job.common_scratch().filter(|pages| (2..=MOST).contains(&pages.len()))?;
        // SAFETY: the pages are zero at start, shared by all processes of the job, and mapped as long as it lives; this part of them
        // is only used here, as atomics.
        let post = |page: &*mut u8| unsafe { &*page.add(OFFSET).cast::<MovementLine>() };
        Some(DirectMovement {
            posts: pages.iter().map(post).collect(),
            me: job.mynode as usize,
            last: AtomicU32::new(0),
        })
    }

    /// Carries out a movement of the team of all processes, each with one image; all call this in the same order. False, with
    /// all having met, if somebody's source is not in its segment.
    ///
    /// # Safety
    /// The caller's memory at `places` must be accessible.
    pub(super) unsafe fn carry_out(
        &self,
        ctx: Ctx,
        request: &CollRequest,
        places: ImageBuffers,
    ) -> bool {
        let n = request.nbytes;
        let all = self.posts.len();
        let rooted =
            matches!(request.operation, CollOperation::Broadcast | CollOperation::Scatter);
        let blocks =
            if matches!(request.operation, CollOperation::Scatter | CollOperation::Exchange) {
                all
            } else {
                1
            };
        let bytes = n.saturating_mul(blocks);
        let offset = ctx.job.segments()[self.me as u32].offset(places.src, bytes);
        self.posts[self.me].source.store(offset.map_or(0, |o| o as u64 + 1), Ordering::Relaxed);
        self.barrier(ctx);
        let (me, root) = (self.me, request.root as usize);
        let source = |rank: usize| self.posts[rank].source.load(Ordering::Relaxed);
        if if rooted { source(root) == 0 } else { (0..all).any(|rank| source(rank) == 0) } {
            return false;
        }
        // SAFETY: a block within the source of a process, which was checked against its segment; the places are the caller's promise.
        // They overlap only if the client's blocks do.
        let fetch = |rank: usize, block: usize, to: usize| unsafe {
            let from = within(ctx, rank, source(rank) - 1, bytes).add(block * n);
            let to = places.dst.add(to * n);
            if !ptr::eq(from, to) {
                ptr::copy(from, to, n);
            }
        };
        // Everybody begins with another one.
        let others = (me..all).chain(0..me);
        match request.operation {
            CollOperation::Broadcast => fetch(root, 0, 0),
            CollOperation::Scatter => fetch(root, me, 0),
            CollOperation::Gather if me != root => {}
            CollOperation::Gather | CollOperation::GatherAll => {
                others.for_each(|rank| fetch(rank, 0, rank))
            }
            CollOperation::Exchange => others.for_each(|rank| fetch(rank, me, rank)),
            CollOperation::Reduce | CollOperation::Scan | CollOperation::Barrier => {
                unreachable!("no movement")
            }
        }
        self.barrier(ctx);
        true
    }

    /// Returns when all have come.
    fn barrier(&self, ctx: Ctx) {
        let number = self.last.load(Ordering::Relaxed).wrapping_add(1);
        self.last.store(number, Ordering::Relaxed);
        let word = |post: &'static MovementLine| &post.meeting[number as usize % 2];
        // Acquire pairs with the Release below: what the others wrote, or have read, before they came.
        let arrived =
            || self.posts.iter().all(|post| word(post).load(Ordering::Acquire) == number);
        word(self.posts[self.me]).store(number, Ordering::Release);
        if !ctx.wrote_words(arrived) {
            ctx.wait_for_words(&"a collective", arrived);
        }
    }
}

/// Where the source of a process is mapped here.
fn within(ctx: Ctx, rank: usize, offset: u64, bytes: usize) -> *const u8 {
    let segment = &ctx.job.segments()[rank as u32];
    if offset.checked_add(bytes as u64).is_none_or(|end| end > segment.len as u64) {
        report::fatal(
            format_args!(
                "process {rank} names {bytes} bytes at {offset} of its segment as a source, which has {}",
                segment.len
            ),
            format_args!(
                "All processes of a job must call the collectives of a team with the same sizes."
            ),
        );
    }
    let mapped = segment.mapped().expect("`DirectMovement::of` has found all segments mapped");
    mapped.part(offset as usize, bytes).as_ptr()
}
