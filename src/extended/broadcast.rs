//! The blocking broadcast of the collectives, among all processes of the job.
//!
//! Called by `capi`; one at a time per process. It is stronger than any of GASNet's synchronisation flags asks for: no
//! byte moves before everybody has called, and nobody returns before everybody has the data. Messages: each process
//! tells the root that it is READY; then the root sends PIECEs; whoever has all of them sends GOT; when the root has
//! heard from everybody it sends GO. A process is therefore never two broadcasts ahead of another, so that plain counts
//! suffice.

use super::{BROADCAST_GO, BROADCAST_GOT, BROADCAST_PIECE, BROADCAST_READY, Extended};
use crate::conduit::{Category, Message, Outgoing};
use crate::core::Ctx;
use crate::core::am::Token;
use crate::report;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};

/// The broadcast of one process.
#[derive(Debug, Default)]
pub struct Broadcast {
    /// Processes that are READY for our broadcast.
    ready: AtomicU32,
    /// Processes that have all of our data.
    got: AtomicU32,
    /// Roots that told us to GO.
    go: AtomicU32,
    /// Where the data of the root goes; written before our READY.
    dest: AtomicPtr<u8>,
    /// Bytes at `dest`.
    size: AtomicUsize,
    /// Bytes that have arrived.
    arrived: AtomicUsize,
}

fn state(ctx: Ctx) -> &'static Broadcast {
    &ctx.job.upper.get::<Extended>().broadcast
}

#[cold]
fn malformed(m: &Message<'_>) -> ! {
    report::fatal(
        format_args!("a broadcast of process {} does not fit: {:?}, {} bytes", m.source, m.args, m.nbytes),
        format_args!("All processes must call gasnet_coll_broadcast with the same root and size."),
    )
}

pub(super) fn on_ready(ctx: Ctx, _: &Token, _: &Message<'_>) {
    state(ctx).ready.fetch_add(1, Ordering::AcqRel);
}

pub(super) fn on_got(ctx: Ctx, _: &Token, _: &Message<'_>) {
    state(ctx).got.fetch_add(1, Ordering::AcqRel);
}

pub(super) fn on_go(ctx: Ctx, _: &Token, _: &Message<'_>) {
    state(ctx).go.fetch_add(1, Ordering::AcqRel);
}

pub(super) fn on_piece(ctx: Ctx, _: &Token, m: &Message<'_>) {
    let s = state(ctx);
    let &[high, low] = m.args else { malformed(m) };
    let offset = (high as u32 as usize) << 32 | low as u32 as usize;
    let dest = s.dest.load(Ordering::Acquire);
    if dest.is_null() || offset.checked_add(m.nbytes).is_none_or(|end| end > s.size.load(Ordering::Relaxed)) {
        malformed(m);
    }
    // SAFETY: the piece lies within the destination, which its owner lends until all has arrived; the payload is a
    // buffer of the library.
    unsafe { core::ptr::copy_nonoverlapping(m.payload, dest.add(offset), m.nbytes) };
    s.arrived.fetch_add(m.nbytes, Ordering::AcqRel);
}

/// Copies `n` bytes at `src` of the root to `dest` of every process.
///
/// # Safety
/// `n` bytes at `dest` must be writable, and at `src` of the root readable; the two may be the same.
pub unsafe fn broadcast(ctx: Ctx, root: u32, dest: *mut u8, src: *const u8, n: usize) {
    let function = "gasnet_coll_broadcast";
    let (s, me, others) = (state(ctx), ctx.job.mynode, ctx.job.nodes - 1);
    let send = |to: u32, handler: u8, args: &[i32], payload: &[u8]| {
        let m = Outgoing {
            category: if handler == BROADCAST_PIECE { Category::Medium } else { Category::Short },
            handler,
            args,
            src: payload.as_ptr(),
            nbytes: payload.len(),
            dest: core::ptr::null_mut(),
            source_stays: false,
        };
        // SAFETY: the payload is a live slice.
        unsafe { ctx.request(function, to, &m) };
    };
    if me != root {
        s.size.store(n, Ordering::Relaxed);
        s.arrived.store(0, Ordering::Relaxed);
        s.dest.store(dest, Ordering::Release);
        send(root, BROADCAST_READY, &[], &[]);
        ctx.wait_until(|| s.arrived.load(Ordering::Acquire) == n);
        s.dest.store(core::ptr::null_mut(), Ordering::Release);
        send(root, BROADCAST_GOT, &[], &[]);
        ctx.wait_until(|| s.go.load(Ordering::Acquire) == 1);
        s.go.store(0, Ordering::Relaxed);
        return;
    }
    ctx.wait_until(|| s.ready.load(Ordering::Acquire) == others);
    s.ready.store(0, Ordering::Relaxed);
    if n != 0 {
        // SAFETY: the caller's promise; `copy` allows the two to be the same.
        unsafe { core::ptr::copy(src, dest, n) };
        // SAFETY: readable, as the caller promises.
        let data = unsafe { core::slice::from_raw_parts(dest, n) };
        let piece = ctx.job.conduit.max_medium();
        for (i, part) in data.chunks(piece).enumerate() {
            let offset = i * piece;
            for to in (0..=others).filter(|to| *to != me) {
                send(to, BROADCAST_PIECE, &[(offset >> 32) as i32, offset as i32], part);
            }
        }
    }
    ctx.wait_until(|| s.got.load(Ordering::Acquire) == others);
    s.got.store(0, Ordering::Relaxed);
    for to in (0..=others).filter(|to| *to != me) {
        send(to, BROADCAST_GO, &[], &[]);
    }
}
