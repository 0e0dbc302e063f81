//! Syncs of non-blocking collectives.
//!
//! Called by clients. Invariant: a handle counts as complete from its sync on.

use super::CollHandle;
use crate::capi::{OK, ctx};
use crate::extended::collectives;
use crate::runtime::Ctx;
use crate::runtime::ops::OpHandle;
use crate::trace::{EventDetail, span};
use core::ffi::c_int;

/// `GASNET_ERR_NOT_READY`
const NOT_READY: c_int = crate::runtime::GasnetError::NotReady as c_int;

/// Polls once and reports whether a collective is complete.
///
/// - `handle`: what a non-blocking collective returned, or `GASNET_COLL_INVALID_HANDLE`, which
///   counts as complete. It is invalid once it was found complete.
/// - Returns `GASNET_OK` if it is complete, `GASNET_ERR_NOT_READY` otherwise.
/// - Context: after `gasnet_attach`; not in a handler or a no-interrupt section, and not while
///   a handler-safe lock is held.
#[unsafe(no_mangle)]
pub extern "C" fn gasnet_coll_try_sync(handle: CollHandle) -> c_int {
    let mut span = span!(W "gasnet_coll_try_sync", EventDetail::Sync(1));
    let c = ctx("gasnet_coll_try_sync");
    if handle == OpHandle::INVALID {
        return span.result(OK);
    }
    c.poll_of_client();
    span.result(if collectives(c).sync(c, handle) { OK } else { NOT_READY })
}

/// Waits for a collective.
///
/// - `handle`: what a non-blocking collective returned, or `GASNET_COLL_INVALID_HANDLE`, which
///   counts as complete. It is invalid once it was found complete.
/// - Context: after `gasnet_attach`; not in a handler or a no-interrupt section, and not while
///   a handler-safe lock is held.
#[unsafe(no_mangle)]
pub extern "C" fn gasnet_coll_wait_sync(handle: CollHandle) {
    let _span = span!(W "gasnet_coll_wait_sync", EventDetail::Sync(1));
    let c = ctx("gasnet_coll_wait_sync");
    let coll = collectives(c);
    if !coll.sync(c, handle) {
        c.wait_until(&"gasnet_coll_wait_sync", || coll.sync(c, handle));
    }
}

/// Syncs what is done in an array and makes it 0; whether all is done, or, with `some`, whether
/// anything was or nothing is left.
///
/// # Safety
/// `list` must hold `n` handles.
unsafe fn sync_list(c: Ctx, list: *mut CollHandle, n: usize, some: bool) -> bool {
    if n == 0 || list.is_null() {
        return true;
    }
    let (mut before, mut done) = (0, 0);
    // SAFETY: the specification of the collectives demands an array of `n` handles, in which
    // the call writes.
    for handle in unsafe { core::slice::from_raw_parts_mut(list, n) }
        .iter_mut()
        .filter(|h| **h != OpHandle::INVALID)
    {
        before += 1;
        if collectives(c).sync(c, *handle) {
            *handle = OpHandle::INVALID;
            done += 1;
        }
    }
    done == before || (some && done > 0)
}

/// Polls once and reports whether any of several collectives is complete.
///
/// - `phandle`: array of `numhandles` handles. Entries that are `GASNET_COLL_INVALID_HANDLE`
///   are ignored; those of complete operations become it.
/// - `numhandles`: entries; 0 is allowed.
/// - Returns `GASNET_OK` if at least one was complete or all entries are invalid,
///   `GASNET_ERR_NOT_READY` otherwise.
/// - Context: after `gasnet_attach`; not in a handler or a no-interrupt section, and not while
///   a handler-safe lock is held.
///
/// # Safety
/// `phandle` must hold `numhandles` handles.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnet_coll_try_sync_some(
    phandle: *mut CollHandle,
    numhandles: usize,
) -> c_int {
    let mut span = span!(W "gasnet_coll_try_sync_some", EventDetail::Sync(numhandles));
    let c = ctx("gasnet_coll_try_sync_some");
    c.poll_of_client();
    // SAFETY: the specification of the collectives demands an array of `numhandles` handles, in
    // which the call writes.
    span.result(if unsafe { sync_list(c, phandle, numhandles, true) } { OK } else { NOT_READY })
}

/// Polls once and reports whether several collectives are complete.
///
/// - `phandle`: array of `numhandles` handles. Entries that are `GASNET_COLL_INVALID_HANDLE`
///   are ignored; those of complete operations become it.
/// - `numhandles`: entries; 0 is allowed.
/// - Returns `GASNET_OK` if all are complete, `GASNET_ERR_NOT_READY` otherwise.
/// - Context: after `gasnet_attach`; not in a handler or a no-interrupt section, and not while
///   a handler-safe lock is held.
///
/// # Safety
/// `phandle` must hold `numhandles` handles.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnet_coll_try_sync_all(
    phandle: *mut CollHandle,
    numhandles: usize,
) -> c_int {
    let mut span = span!(W "gasnet_coll_try_sync_all", EventDetail::Sync(numhandles));
    let c = ctx("gasnet_coll_try_sync_all");
    c.poll_of_client();
    // SAFETY: the specification of the collectives demands an array of `numhandles` handles, in
    // which the call writes.
    span.result(if unsafe { sync_list(c, phandle, numhandles, false) } { OK } else { NOT_READY })
}

/// Waits until at least one of several collectives is complete; returns at once if all entries
/// are invalid.
///
/// - `phandle`: array of `numhandles` handles. Entries that are `GASNET_COLL_INVALID_HANDLE`
///   are ignored; those of complete operations become it.
/// - `numhandles`: entries; 0 is allowed.
/// - Context: after `gasnet_attach`; not in a handler or a no-interrupt section, and not while
///   a handler-safe lock is held.
///
/// # Safety
/// `phandle` must hold `numhandles` handles.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnet_coll_wait_sync_some(phandle: *mut CollHandle, numhandles: usize) {
    let _span = span!(W "gasnet_coll_wait_sync_some", EventDetail::Sync(numhandles));
    let c = ctx("gasnet_coll_wait_sync_some");
    // SAFETY: the specification of the collectives demands an array of `numhandles` handles, in
    // which the call writes.
    c.wait_until(&"gasnet_coll_wait_sync_some", || unsafe {
        sync_list(c, phandle, numhandles, true)
    });
}

/// Waits for several collectives.
///
/// - `phandle`: array of `numhandles` handles. Entries that are `GASNET_COLL_INVALID_HANDLE`
///   are ignored; those of complete operations become it.
/// - `numhandles`: entries; 0 is allowed.
/// - Context: after `gasnet_attach`; not in a handler or a no-interrupt section, and not while
///   a handler-safe lock is held.
///
/// # Safety
/// `phandle` must hold `numhandles` handles.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnet_coll_wait_sync_all(phandle: *mut CollHandle, numhandles: usize) {
    let _span = span!(W "gasnet_coll_wait_sync_all", EventDetail::Sync(numhandles));
    let c = ctx("gasnet_coll_wait_sync_all");
    // SAFETY: the specification of the collectives demands an array of `numhandles` handles, in
    // which the call writes.
    c.wait_until(&"gasnet_coll_wait_sync_all", || unsafe {
        sync_list(c, phandle, numhandles, false)
    });
}
