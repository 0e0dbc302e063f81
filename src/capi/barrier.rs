//! The barrier of the extended API.
//!
//! Called by clients. Invariant: each function checks where it may be called, then calls the
//! function of `extended::barrier` once.

use super::{code, ctx};
use crate::extended::barrier;
use crate::trace::{EventDetail, watch};
use core::ffi::c_int;

/// Notifies the barrier of all ranks: this rank has arrived. `gasnet_barrier_wait` or
/// `gasnet_barrier_try` completes it. The barrier does not complete non-blocking operations.
///
/// - `id`: the name of the barrier, compared among all ranks unless it is anonymous.
/// - `flags`: 0, `GASNET_BARRIERFLAG_ANONYMOUS` (the name does not count) or
///   `GASNET_BARRIERFLAG_MISMATCH` (the barrier mismatches on all ranks).
/// - Context: after `gasnet_attach`; not in a handler or a no-interrupt section, and not while
///   a handler-safe lock is held.
#[unsafe(no_mangle)]
pub extern "C" fn gasnet_barrier_notify(id: c_int, flags: c_int) {
    watch!(
        B "gasnet_barrier_notify",
        EventDetail::Barrier { id, flags },
        gasnet_barrier_notify(id, flags)
    );
    let c = ctx("gasnet_barrier_notify");
    barrier(c).notify(c, id, flags);
}

/// Waits until all ranks have notified the barrier that this rank notified.
///
/// - `id`: the name that this rank notified unless it is anonymous.
/// - `flags`: 0, `GASNET_BARRIERFLAG_ANONYMOUS` (the name does not count) or
///   `GASNET_BARRIERFLAG_MISMATCH` (the barrier mismatches on all ranks).
/// - Returns `GASNET_OK` or `GASNET_ERR_BARRIER_MISMATCH`; the barrier is over in both cases.
///   The barrier mismatches if two ranks passed different names, this rank passes another one
///   than it notified, or any rank passed `GASNET_BARRIERFLAG_MISMATCH`.
/// - Context: after `gasnet_attach`; not in a handler or a no-interrupt section, and not while
///   a handler-safe lock is held.
#[unsafe(no_mangle)]
pub extern "C" fn gasnet_barrier_wait(id: c_int, flags: c_int) -> c_int {
    watch!(
        B "gasnet_barrier_wait",
        EventDetail::Barrier { id, flags },
        gasnet_barrier_wait(id, flags)
    );
    let c = ctx("gasnet_barrier_wait");
    code(barrier(c).wait(c, "gasnet_barrier_wait", id, flags))
}

/// Polls once and reports whether the barrier that this rank notified is over.
///
/// - `id`: the name that this rank notified unless it is anonymous.
/// - `flags`: 0, `GASNET_BARRIERFLAG_ANONYMOUS` (the name does not count) or
///   `GASNET_BARRIERFLAG_MISMATCH` (the barrier mismatches on all ranks).
/// - Returns `GASNET_OK`, or `GASNET_ERR_BARRIER_MISMATCH` if two ranks passed different names,
///   this rank passes another one than it notified, or any rank passed
///   `GASNET_BARRIERFLAG_MISMATCH`. `GASNET_ERR_NOT_READY` if the barrier is not over: call
///   again.
/// - Context: after `gasnet_attach`; not in a handler or a no-interrupt section, and not while
///   a handler-safe lock is held.
#[unsafe(no_mangle)]
pub extern "C" fn gasnet_barrier_try(id: c_int, flags: c_int) -> c_int {
    watch!(
        B "gasnet_barrier_try",
        EventDetail::Barrier { id, flags },
        gasnet_barrier_try(id, flags)
    );
    let c = ctx("gasnet_barrier_try");
    code(barrier(c).try_wait(c, "gasnet_barrier_try", id, flags))
}

/// Notifies and waits: the same as `gasnet_barrier_notify` and `gasnet_barrier_wait` in one
/// call.
///
/// - `id`: the name of the barrier, compared among all ranks unless it is anonymous.
/// - `flags`: 0, `GASNET_BARRIERFLAG_ANONYMOUS` (the name does not count) or
///   `GASNET_BARRIERFLAG_MISMATCH` (the barrier mismatches on all ranks).
/// - Returns `GASNET_OK` or `GASNET_ERR_BARRIER_MISMATCH`; the barrier is over in both cases.
///   The barrier mismatches if two ranks passed different names, this rank passes another one
///   than it notified, or any rank passed `GASNET_BARRIERFLAG_MISMATCH`.
/// - Context: after `gasnet_attach`; not in a handler or a no-interrupt section, and not while
///   a handler-safe lock is held.
#[unsafe(no_mangle)]
pub extern "C" fn gasnet_barrier(id: c_int, flags: c_int) -> c_int {
    watch!(B "gasnet_barrier", EventDetail::Barrier { id, flags }, gasnet_barrier(id, flags));
    let c = ctx("gasnet_barrier");
    code(barrier(c).both(c, id, flags))
}

/// Reports the name of the last barrier that this rank completed.
///
/// - `id`: where the name is stored if the barrier had one; null if it is not wanted.
/// - Returns 1 if the barrier was anonymous on all ranks, else 0.
/// - Context: anywhere after `gasnet_attach`.
///
/// # Safety
/// `id` must be null or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnet_barrier_result(id: *mut c_int) -> c_int {
    match barrier(ctx("gasnet_barrier_result")).result() {
        None => 1,
        Some(name) => {
            if !id.is_null() {
                // SAFETY: not null, so where the specification of the barrier has the name
                // stored.
                unsafe { id.write(name) };
            }
            0
        }
    }
}
