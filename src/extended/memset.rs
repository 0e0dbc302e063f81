//! Memset: in place where the segment is mapped, as a put of a filled buffer if small, otherwise by a handler of the
//! target.
//!
//! Called by `capi` with checked arguments. A memset counts as a put. A large one is cut into pieces, each a request
//! whose reply completes one fragment of the operation, so that a target serves others in between.

use super::rma::Remote;
use super::{MEMSET_REPLY, MEMSET_REQUEST};
use crate::conduit::{AmMessage, OpId, Outgoing};
use crate::runtime::am::Token;
use crate::runtime::ops::{Handle, Implicit};
use crate::runtime::{Ctx, GasnetJob};
use crate::{fault, report};
use core::sync::atomic::{Ordering, fence};

/// Largest memset that is a put of a buffer on the stack: small enough for a bounce buffer of the conduit.
const BY_PUT: usize = 1024;
/// Bytes that one request sets; a fraction of a millisecond of the target's time.
const PIECE: usize = 1 << 20;

/// Sets a mapped range, or one of no bytes. False if messages are needed.
fn directly(dst: Remote, value: u8) -> bool {
    if dst.n == 0 || fault::on("skip_memset") {
        return true;
    }
    if dst.local.is_null() {
        return false;
    }
    fence(Ordering::Release);
    // SAFETY: `local` maps the range, which was checked to lie in the target's segment.
    unsafe { dst.local.write_bytes(value, dst.n) };
    fence(Ordering::Release);
    true
}

/// Messages, and so completions, of a memset of `n` bytes through the conduit.
fn fragments(job: &GasnetJob, n: usize) -> u32 {
    if n <= BY_PUT { job.conduit.fragments(n) } else { n.div_ceil(PIECE) as u32 }
}

/// Sends the messages of a memset whose fragments are counted in `op` already.
fn by_messages(ctx: Ctx, function: &str, dst: Remote, value: u8, op: OpId) {
    if dst.n <= BY_PUT {
        let filled = [value; BY_PUT];
        // SAFETY: not bulk, so the buffer is not read after the call; the range was checked.
        unsafe { ctx.job.conduit.put(ctx, dst.node, dst.addr, filled.as_ptr(), dst.n, op, false) };
        return;
    }
    for offset in (0..dst.n).step_by(PIECE) {
        let addr = dst.addr as usize + offset;
        let n = PIECE.min(dst.n - offset);
        let args = [(addr >> 32) as i32, addr as i32, n as i32, i32::from(value), op.0 as i32];
        // SAFETY: a Short has no payload.
        unsafe { ctx.request(function, dst.node, &Outgoing::short(MEMSET_REQUEST, &args)) };
    }
}

/// The handler of a piece, at the target.
pub(super) fn on_request(ctx: Ctx, token: &Token, m: &AmMessage<'_>) {
    let &[high, low, n, value, op] = m.args else { malformed(m) };
    let addr = ((high as u32 as usize) << 32 | low as u32 as usize) as *mut u8;
    let n = n as u32 as usize;
    let Some(offset) = ctx.job.segments()[ctx.job.mynode].offset(addr, n) else { malformed(m) };
    let mine = ctx.job.segments()[ctx.job.mynode].base;
    // SAFETY: the range was just checked to lie in our own segment.
    unsafe { mine.add(offset).write_bytes(value as u8, n) };
    // SAFETY: a Short has no payload.
    unsafe {
        ctx.reply(
            "gasnet_memset",
            core::ptr::from_ref(token).cast(),
            &Outgoing::short(MEMSET_REPLY, &[op]),
        )
    };
}

/// The handler of the answer, at the initiator.
pub(super) fn on_reply(ctx: Ctx, _token: &Token, m: &AmMessage<'_>) {
    let &[op] = m.args else { malformed(m) };
    ctx.job.ops.complete(OpId(op as u32));
}

#[cold]
fn malformed(m: &AmMessage<'_>) -> ! {
    report::fatal(
        format_args!("a memset message of process {} is malformed: {:?}", m.source, m.args),
        format_args!("All processes of a job must use the same version of the library."),
    )
}

/// Sets bytes; they are in place when this returns.
pub fn memset(job: &'static GasnetJob, dst: Remote, value: u8) {
    let handle = memset_nb(job, "gasnet_memset", dst, value);
    if handle != Handle::INVALID {
        job.ctx().wait_op(handle);
    }
}

/// Initiates a memset; INVALID if it is complete already.
pub fn memset_nb(job: &'static GasnetJob, function: &str, dst: Remote, value: u8) -> Handle {
    if directly(dst, value) {
        return Handle::INVALID;
    }
    let ctx = job.ctx();
    let handle = job.ops.begin(ctx.thread, fragments(job, dst.n));
    by_messages(ctx, function, dst, value, handle.op());
    handle
}

/// Initiates an implicit memset, collected with the puts of the calling thread or by its access region.
pub fn memset_nbi(job: &'static GasnetJob, dst: Remote, value: u8) {
    if directly(dst, value) {
        return;
    }
    let ctx = job.ctx();
    let op = job.ops.begin_implicit(ctx.thread, Implicit::Puts, fragments(job, dst.n));
    by_messages(ctx, "gasnet_memset_nbi", dst, value, op);
}
