//! Memset: in place where the segment is mapped, as a put of a filled buffer if small, otherwise
//! by a handler of the target. In EVERYTHING, where the network puts to memory of the target
//! within the call, as puts of a filled buffer: the target need not call.
//!
//! Called by `capi` with checked arguments. A memset counts as a put. A large one is cut into
//! pieces, each a request whose reply completes one fragment of the operation. So a target
//! serves others in between.

use super::handler_ids::{MEMSET_REPLY, MEMSET_REQUEST};
use crate::client_memory::{RemoteRange, Src, own_memory};
use crate::conduit::{AmMessage, OpId, Outgoing, RefusedAccess};
use crate::runtime::am::AmToken;
use crate::runtime::ops::{ImplicitKind, OpHandle};
use crate::runtime::{Ctx, GasnetJob};
use crate::{fault, report};
use core::sync::atomic::{Ordering, fence};

/// Largest memset that is a put of a buffer on the stack: small enough for a bounce buffer of
/// the conduit.
const BY_PUT: usize = 1024;
/// Bytes that one put at once sets.
const AT_ONCE: usize = 1 << 14;
/// Bytes that one request sets; a fraction of a millisecond of the target's time.
const PIECE: usize = 1 << 20;

/// Sets a mapped range, or one of no bytes. False if messages are needed.
fn directly(dst: RemoteRange, value: u8) -> bool {
    if dst.len() == 0 || fault::on("skip_memset") {
        return true;
    }
    let Some(dst) = dst.mapped() else { return false };
    fence(Ordering::Release);
    dst.fill(value);
    fence(Ordering::Release);
    true
}

/// Sets the bytes that the network can put within the call, if every address may be named: those
/// that are left.
fn put_ahead(job: &GasnetJob, dst: RemoteRange, value: u8) -> RemoteRange {
    let n = dst.len();
    let mut done = 0;
    if job.endpoint.segments().is_everything() {
        let filled = [value; AT_ONCE];
        while done < n {
            let len = AT_ONCE.min(n - done);
            let put = dst.part(done, len);
            if !job.endpoint.conduit.put_at_once(put, Src::from(&filled[..len])) {
                break;
            }
            done += len;
        }
    }
    dst.part(done, n - done)
}

/// Messages, and so completions, of a memset of `n` bytes through the conduit.
fn fragments(job: &GasnetJob, n: usize) -> u32 {
    if n <= BY_PUT { job.endpoint.conduit.fragments(n) } else { n.div_ceil(PIECE) as u32 }
}

/// Sends the messages of a memset whose fragments are counted in `op` already.
fn by_messages(ctx: Ctx, function: &str, dst: RemoteRange, value: u8, op: OpId) {
    let (n, rank) = (dst.len(), dst.rank());
    if n <= BY_PUT {
        let filled = [value; BY_PUT];
        ctx.endpoint().conduit.put(ctx, dst, Src::from(&filled[..n]), op);
        return;
    }
    for at in (0..n).step_by(PIECE) {
        let (offset, n) = (dst.offset() + at, PIECE.min(n - at));
        let args = [(offset >> 32) as i32, offset as i32, n as i32, i32::from(value), op.0 as i32];
        ctx.request(function, rank, &Outgoing::short(MEMSET_REQUEST, &args));
    }
}

/// The handler of a piece, at the target.
pub(super) fn on_request(ctx: Ctx, token: &AmToken, m: &AmMessage<'_>) {
    let &[high, low, n, value, op] = m.args else { malformed(m) };
    let offset = (high as u32 as usize) << 32 | low as u32 as usize;
    let Some(dst) = ctx.endpoint().own_segment().try_part(offset, n as u32 as usize) else {
        malformed(m)
    };
    if !ctx.endpoint().segments().is_everything() {
        dst.fill(value as u8);
    } else if !own_memory::fill(dst, value as u8) {
        RefusedAccess {
            operation: "a memset",
            bytes: dst.len(),
            piece: false,
            initiator: m.source,
            target: ctx.endpoint().rank,
            address: dst.as_ptr().addr(),
            writes: true,
        }
        .report()
    }
    ctx.reply_to("gasnet_memset", token, &Outgoing::short(MEMSET_REPLY, &[op]));
}

/// The handler of the answer, at the initiator.
pub(super) fn on_reply(ctx: Ctx, _token: &AmToken, m: &AmMessage<'_>) {
    let &[op] = m.args else { malformed(m) };
    ctx.job.ops.complete(OpId(op as u32));
}

fn malformed(m: &AmMessage<'_>) -> ! {
    report::fatal(
        format_args!("a memset message of rank {} is malformed: {:?}", m.source, m.args),
        format_args!("All ranks of a job must use the same version of the library."),
    )
}

/// Sets bytes; they are in place when this returns.
pub fn memset(job: &'static GasnetJob, dst: RemoteRange, value: u8) {
    let handle = memset_nb(job, "gasnet_memset", dst, value);
    if handle != OpHandle::INVALID {
        job.ctx().wait_op(handle);
    }
}

/// Initiates a memset; INVALID if it is complete already.
pub fn memset_nb(
    job: &'static GasnetJob,
    function: &str,
    dst: RemoteRange,
    value: u8,
) -> OpHandle {
    if directly(dst, value) {
        return OpHandle::INVALID;
    }
    let dst = put_ahead(job, dst, value);
    if dst.len() == 0 {
        return OpHandle::INVALID;
    }
    let ctx = job.ctx();
    let handle = job.ops.begin(ctx.thread_index(), fragments(job, dst.len()));
    by_messages(ctx, function, dst, value, handle.op());
    handle
}

/// Initiates an implicit memset, collected with the puts of the calling thread or by its access
/// region.
pub fn memset_nbi(job: &'static GasnetJob, dst: RemoteRange, value: u8) {
    if directly(dst, value) {
        return;
    }
    let dst = put_ahead(job, dst, value);
    if dst.len() == 0 {
        return;
    }
    let ctx = job.ctx();
    let op =
        job.ops.begin_implicit(ctx.thread_index(), ImplicitKind::Puts, fragments(job, dst.len()));
    by_messages(ctx, "gasnet_memset_nbi", dst, value, op);
}
