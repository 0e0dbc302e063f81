//! The value forms: puts and gets whose local side is an integer.
//!
//! Called by `capi` with checked arguments (1 to 8 bytes). The low-order bytes of the integer
//! travel, in the byte order of this machine; a value that was fetched is zero-extended.

use super::rma::{self, PutSource};
use crate::client_memory::{Dst, RemoteRange, Src};
use crate::fault;
use crate::runtime::GasnetJob;
use crate::runtime::ops::OpHandle;
use core::mem::size_of;

/// An integer of `gasnet_register_value_t`.
pub type RegisterValue = usize;

/// Most bytes of a value.
pub const MAX_BYTES: usize = size_of::<RegisterValue>();

/// Index of the first of the low-order `n` bytes of an integer of `size` bytes.
const fn low_bytes(size: usize, n: usize) -> usize {
    if cfg!(target_endian = "big") { size - n } else { 0 }
}

/// The low-order `n` bytes of a value, from its bytes in memory.
#[inline(always)]
fn source(bytes: &[u8; MAX_BYTES], n: usize) -> Src<'_> {
    Src::from(&bytes[..]).part(low_bytes(MAX_BYTES, n), n)
}

/// Puts a value; it is at its destination when this returns.
pub fn put(job: &'static GasnetJob, dst: RemoteRange, value: RegisterValue) {
    rma::put_small(job, dst, source(&value.to_ne_bytes(), dst.len()));
}

/// Initiates a put of a value; INVALID if it is complete already.
pub fn put_nb(job: &'static GasnetJob, dst: RemoteRange, value: RegisterValue) -> OpHandle {
    rma::put_nb(job, dst, source(&value.to_ne_bytes(), dst.len()))
}

/// Initiates an implicit put of a value.
pub fn put_nbi(job: &'static GasnetJob, dst: RemoteRange, value: RegisterValue) {
    rma::put_nbi(job, dst, source(&value.to_ne_bytes(), dst.len()));
}

/// The immediate [`put`]: whether it was done.
pub fn put_now(job: &'static GasnetJob, dst: RemoteRange, value: RegisterValue) -> bool {
    rma::wait_if_begun(job, put_nb_now(job, dst, value))
}

/// The immediate [`put_nb`].
pub fn put_nb_now(
    job: &'static GasnetJob,
    dst: RemoteRange,
    value: RegisterValue,
) -> Option<OpHandle> {
    rma::put_nb_now(job, dst, PutSource::Now(source(&value.to_ne_bytes(), dst.len())))
}

/// The immediate [`put_nbi`]: whether it was initiated.
pub fn put_nbi_now(job: &'static GasnetJob, dst: RemoteRange, value: RegisterValue) -> bool {
    rma::put_nbi_now(job, dst, PutSource::Now(source(&value.to_ne_bytes(), dst.len())))
}

/// Gets a value.
pub fn get(job: &'static GasnetJob, src: RemoteRange) -> RegisterValue {
    let mut bytes = [0; MAX_BYTES];
    let n = src.len();
    let dst = Dst::from(&mut bytes[..]).part(low_bytes(MAX_BYTES, n), n);
    if rma::get_at_once(job, dst, src) {
        RegisterValue::from_ne_bytes(bytes)
    } else {
        wait(job, get_nb(job, src))
    }
}

/// Initiates a get of a value, which stays in the operation until it is waited for. Never
/// INVALID.
pub fn get_nb(job: &'static GasnetJob, src: RemoteRange) -> OpHandle {
    let ctx = job.ctx();
    let n = src.len();
    let through_conduit = src.mapped().is_none() && n != 0;
    let fragments = if through_conduit { job.endpoint.conduit.fragments(n) } else { 0 };
    let handle = job.ops.begin(ctx.thread_index(), fragments);
    let slot = job.ops.value(handle);
    let dst = slot.part(low_bytes(slot.len(), n), n);
    if through_conduit {
        job.endpoint.conduit.get(ctx, dst, src, handle.op());
    } else {
        rma::get(job, dst, src);
    }
    handle
}

/// Waits for a get of a value. 0 for a handle that was waited for before.
pub fn wait(job: &'static GasnetJob, handle: OpHandle) -> RegisterValue {
    let ctx = job.ctx();
    let mut value = job.ops.sync_value(ctx.thread_index(), handle);
    if value.is_none() {
        ctx.wait_until(&"a get of a value", || {
            value = job.ops.sync_value(ctx.thread_index(), handle);
            value.is_some() || fault::on("skip_sync")
        });
    }
    value.unwrap_or(0) as RegisterValue
}
