//! The value forms: puts and gets whose local side is an integer.
//!
//! Called by `capi` with checked arguments (0 to 8 bytes). The low-order bytes of the integer travel, in the byte
//! order of this machine; a value that was fetched is zero-extended.

use super::rma::{self, Remote};
use crate::fault;
use crate::runtime::GasnetJob;
use crate::runtime::ops::Handle;
use core::mem::size_of;

/// An integer of `gasnet_register_value_t`.
pub type Value = usize;

/// Most bytes of a value.
pub const MAX_BYTES: usize = size_of::<Value>();

/// Where the low-order `n` bytes of an integer of `size` bytes are within it.
const fn low_bytes(size: usize, n: usize) -> usize {
    if cfg!(target_endian = "big") { size - n } else { 0 }
}

/// The first of the low-order `n` bytes of a value.
fn source(value: &Value, n: usize) -> *const u8 {
    // SAFETY: at most MAX_BYTES - n bytes into the value; `n` was checked.
    unsafe { core::ptr::from_ref(value).cast::<u8>().add(low_bytes(MAX_BYTES, n)) }
}

/// Puts a value; it is in place when this returns.
pub fn put(job: &'static GasnetJob, dst: Remote, value: Value) {
    // SAFETY: the value outlives the put.
    unsafe { rma::put(job, dst, source(&value, dst.n)) }
}

/// Initiates a put of a value; INVALID if it is complete already.
pub fn put_nb(job: &'static GasnetJob, dst: Remote, value: Value) -> Handle {
    // SAFETY: the put is not bulk, so the value is not read after the call.
    unsafe { rma::put_nb(job, dst, source(&value, dst.n), false) }
}

/// Initiates an implicit put of a value.
pub fn put_nbi(job: &'static GasnetJob, dst: Remote, value: Value) {
    // SAFETY: the put is not bulk, so the value is not read after the call.
    unsafe { rma::put_nbi(job, dst, source(&value, dst.n), false) }
}

/// Gets a value.
pub fn get(job: &'static GasnetJob, src: Remote) -> Value {
    let mut value: Value = 0;
    let at = core::ptr::from_mut(&mut value).cast::<u8>();
    // SAFETY: `src.n` bytes from there are within the value, which outlives the get.
    unsafe { rma::get(job, at.add(low_bytes(MAX_BYTES, src.n)), src) };
    value
}

/// Initiates a get of a value, which stays in the operation until it is waited for. Never INVALID.
pub fn get_nb(job: &'static GasnetJob, src: Remote) -> Handle {
    let ctx = job.ctx();
    let through_conduit = src.local.is_null() && src.n != 0;
    let fragments = if through_conduit { job.conduit.fragments(src.n) } else { 0 };
    let handle = job.ops.begin(ctx.thread, fragments);
    let at = job.ops.value(handle).cast::<u8>();
    // SAFETY: the slot has 8 bytes, is never moved, and belongs to this operation until it is synced.
    unsafe {
        let at = at.add(low_bytes(size_of::<u64>(), src.n));
        if through_conduit {
            job.conduit.get(ctx, at, src.node, src.addr, src.n, handle.op());
        } else {
            rma::get(job, at, src);
        }
    }
    handle
}

/// Waits for a get of a value. 0 for a handle that was waited for before.
pub fn wait(job: &'static GasnetJob, handle: Handle) -> Value {
    let ctx = job.ctx();
    let mut value = job.ops.sync_value(ctx.thread, handle);
    if value.is_none() {
        ctx.wait_until(&"a get of a value", || {
            value = job.ops.sync_value(ctx.thread, handle);
            value.is_some() || fault::on("skip_sync")
        });
    }
    value.unwrap_or(0) as Value
}
