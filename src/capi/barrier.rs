//! The barrier of the extended API.

use super::{code, ctx};
use crate::extended::barrier;
use crate::trace::{EventDetail, watch};
use core::ffi::c_int;

/// `gasnet_barrier_notify`
#[unsafe(no_mangle)]
pub extern "C" fn gasnet_barrier_notify(id: c_int, flags: c_int) {
    watch!(B "gasnet_barrier_notify", EventDetail::Barrier { id, flags }, gasnet_barrier_notify(id, flags));
    barrier::notify(ctx("gasnet_barrier_notify"), id, flags);
}

/// `gasnet_barrier_wait`: `GASNET_OK` or `GASNET_ERR_BARRIER_MISMATCH`.
#[unsafe(no_mangle)]
pub extern "C" fn gasnet_barrier_wait(id: c_int, flags: c_int) -> c_int {
    watch!(B "gasnet_barrier_wait", EventDetail::Barrier { id, flags }, gasnet_barrier_wait(id, flags));
    code(barrier::wait(ctx("gasnet_barrier_wait"), id, flags))
}

/// `gasnet_barrier_try`: `GASNET_OK`, `GASNET_ERR_NOT_READY` or `GASNET_ERR_BARRIER_MISMATCH`.
#[unsafe(no_mangle)]
pub extern "C" fn gasnet_barrier_try(id: c_int, flags: c_int) -> c_int {
    watch!(B "gasnet_barrier_try", EventDetail::Barrier { id, flags }, gasnet_barrier_try(id, flags));
    code(barrier::try_wait(ctx("gasnet_barrier_try"), id, flags))
}

/// `gasnet_barrier`: notify and wait in one.
#[unsafe(no_mangle)]
pub extern "C" fn gasnet_barrier(id: c_int, flags: c_int) -> c_int {
    watch!(B "gasnet_barrier", EventDetail::Barrier { id, flags }, gasnet_barrier(id, flags));
    code(barrier::both(ctx("gasnet_barrier"), id, flags))
}

/// `gasnet_barrier_result`: 1 if the last barrier was anonymous for everybody; else 0, and its name in `*id`.
///
/// # Safety
/// `id` must be null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnet_barrier_result(id: *mut c_int) -> c_int {
    match barrier::result(ctx("gasnet_barrier_result")) {
        None => 1,
        Some(name) => {
            if !id.is_null() {
                // SAFETY: the caller's promise.
                unsafe { id.write(name) };
            }
            0
        }
    }
}
