//! Syncing of non-blocking operations, and access regions.
//!
//! Called by clients. Invariant: the handles of an array are read and written only until the
//! call returns.

use super::abi::gasnet_handle_t;
use super::{ATTACHED, OK, check_empty_call, ctx, explicit};
use crate::extended::sync::{HandleNeed, ImplicitSet};
use crate::runtime::ops::OpHandle;
use crate::runtime::{Ctx, GasnetError};
use crate::trace::{self, EventDetail, Letter, Probe, watch};
use core::ffi::c_int;
use core::sync::atomic::Ordering;

/// `GASNET_OK` or `GASNET_ERR_NOT_READY`.
pub(super) fn ready(done: bool) -> c_int {
    if done { OK } else { GasnetError::NotReady as c_int }
}

/// The handles of an array.
///
/// # Safety
/// `handles` must point to `n` handles that no other thread uses meanwhile; it may be anything
/// if `n` is 0.
unsafe fn array<'a>(handles: *mut gasnet_handle_t, n: usize) -> &'a mut [OpHandle] {
    if n == 0 {
        return &mut [];
    }
    // SAFETY: by this function's condition; an OpHandle is a word of the size of a pointer.
    unsafe { core::slice::from_raw_parts_mut(handles.cast(), n) }
}

/// Waits for an explicit operation.
///
/// - `handle`: what a non-blocking function returned in the calling thread, or
///   `GASNET_INVALID_HANDLE`, which counts as complete. It is invalid once it was found
///   complete.
/// - Context: after `gasnet_attach`; not in a handler or a no-interrupt section, and not while
///   a handler-safe lock is held.
#[unsafe(no_mangle)]
pub extern "C" fn gasnet_wait_syncnb(handle: gasnet_handle_t) {
    watch!(S "gasnet_wait_syncnb", EventDetail::Sync(1), gasnet_wait_syncnb(handle));
    if handle.is_null() {
        check_empty_call("gasnet_wait_syncnb");
        return;
    }
    let (c, mut handles) = (ctx("gasnet_wait_syncnb"), [OpHandle(handle as usize)]);
    c.check_handles("gasnet_wait_syncnb", &handles);
    c.wait_ops(&mut handles, HandleNeed::All);
}

/// Polls once and reports whether an explicit operation is complete.
///
/// - `handle`: what a non-blocking function returned in the calling thread, or
///   `GASNET_INVALID_HANDLE`, which counts as complete. It is invalid once it was found
///   complete.
/// - Returns `GASNET_OK` if the operation is complete, `GASNET_ERR_NOT_READY` otherwise.
/// - Context: after `gasnet_attach`; not in a handler or a no-interrupt section, and not while
///   a handler-safe lock is held.
#[unsafe(no_mangle)]
pub extern "C" fn gasnet_try_syncnb(handle: gasnet_handle_t) -> c_int {
    watch!(S "gasnet_try_syncnb", EventDetail::Sync(1), gasnet_try_syncnb(handle));
    let (c, mut handles) = (ctx("gasnet_try_syncnb"), [OpHandle(handle as usize)]);
    c.check_handles("gasnet_try_syncnb", &handles);
    c.poll_of_client();
    ready(c.ops_done(&mut handles, HandleNeed::All))
}

/// Reports whether an explicit operation is complete. Does not poll the network.
///
/// - `handle`: what a non-blocking function returned in the calling thread, or
///   `GASNET_INVALID_HANDLE`, which counts as complete. It is invalid once it was found
///   complete.
/// - Returns `GASNET_OK` if the operation is complete, `GASNET_ERR_NOT_READY` otherwise.
/// - Context: anywhere after `gasnet_attach`.
#[unsafe(no_mangle)]
pub extern "C" fn gasnet_try_syncnb_nopoll(handle: gasnet_handle_t) -> c_int {
    watch!(S "gasnet_try_syncnb_nopoll", EventDetail::Sync(1), gasnet_try_syncnb_nopoll(handle));
    let (c, mut handles) = (ctx("gasnet_try_syncnb_nopoll"), [OpHandle(handle as usize)]);
    c.check_handles("gasnet_try_syncnb_nopoll", &handles);
    ready(c.ops_done(&mut handles, HandleNeed::All))
}

/// Waits until at least one of several explicit operations is complete. Returns at once if all
/// entries are `GASNET_INVALID_HANDLE`.
///
/// - `handles`: array of `n` handles of the calling thread. Entries that are
///   `GASNET_INVALID_HANDLE` are ignored; those of complete operations become
///   `GASNET_INVALID_HANDLE`. The array stays the client's.
/// - `n`: entries; 0 is allowed.
/// - Context: after `gasnet_attach`; not in a handler or a no-interrupt section, and not while
///   a handler-safe lock is held.
///
/// # Safety
/// `handles` must point to `n` handles.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnet_wait_syncnb_some(handles: *mut gasnet_handle_t, n: usize) {
    watch!(
        S "gasnet_wait_syncnb_some",
        EventDetail::Sync(n),
        gasnet_wait_syncnb_some(handles, n)
    );
    // SAFETY: the specification demands an array of `n` handles, in which the call writes.
    let (c, handles) = (ctx("gasnet_wait_syncnb_some"), unsafe { array(handles, n) });
    c.check_handles("gasnet_wait_syncnb_some", handles);
    c.wait_ops(handles, HandleNeed::Some);
}

/// Waits for several explicit operations.
///
/// - `handles`: array of `n` handles of the calling thread. Entries that are
///   `GASNET_INVALID_HANDLE` are ignored; those of complete operations become
///   `GASNET_INVALID_HANDLE`. The array stays the client's.
/// - `n`: entries; 0 is allowed.
/// - Context: after `gasnet_attach`; not in a handler or a no-interrupt section, and not while
///   a handler-safe lock is held.
///
/// # Safety
/// `handles` must point to `n` handles.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnet_wait_syncnb_all(handles: *mut gasnet_handle_t, n: usize) {
    watch!(
        S "gasnet_wait_syncnb_all",
        EventDetail::Sync(n),
        gasnet_wait_syncnb_all(handles, n)
    );
    // SAFETY: the specification demands an array of `n` handles, in which the call writes.
    let (c, handles) = (ctx("gasnet_wait_syncnb_all"), unsafe { array(handles, n) });
    c.check_handles("gasnet_wait_syncnb_all", handles);
    c.wait_ops(handles, HandleNeed::All);
}

/// Polls once and reports whether any of several explicit operations is complete.
///
/// - `handles`: array of `n` handles of the calling thread. Entries that are
///   `GASNET_INVALID_HANDLE` are ignored; those of complete operations become
///   `GASNET_INVALID_HANDLE`. The array stays the client's.
/// - `n`: entries; 0 is allowed.
/// - Returns `GASNET_OK` if at least one operation was complete or all entries are
///   `GASNET_INVALID_HANDLE`, `GASNET_ERR_NOT_READY` otherwise.
/// - Context: after `gasnet_attach`; not in a handler or a no-interrupt section, and not while
///   a handler-safe lock is held.
///
/// # Safety
/// `handles` must point to `n` handles.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnet_try_syncnb_some(handles: *mut gasnet_handle_t, n: usize) -> c_int {
    watch!(
        S "gasnet_try_syncnb_some",
        EventDetail::Sync(n),
        gasnet_try_syncnb_some(handles, n)
    );
    // SAFETY: the specification demands an array of `n` handles, in which the call writes.
    let (c, handles) = (ctx("gasnet_try_syncnb_some"), unsafe { array(handles, n) });
    c.check_handles("gasnet_try_syncnb_some", handles);
    c.poll_of_client();
    ready(c.ops_done(handles, HandleNeed::Some))
}

/// Polls once and reports whether several explicit operations are complete.
///
/// - `handles`: array of `n` handles of the calling thread. Entries that are
///   `GASNET_INVALID_HANDLE` are ignored; those of complete operations become
///   `GASNET_INVALID_HANDLE`. The array stays the client's.
/// - `n`: entries; 0 is allowed.
/// - Returns `GASNET_OK` if all operations are complete, `GASNET_ERR_NOT_READY` otherwise.
/// - Context: after `gasnet_attach`; not in a handler or a no-interrupt section, and not while
///   a handler-safe lock is held.
///
/// # Safety
/// `handles` must point to `n` handles.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnet_try_syncnb_all(handles: *mut gasnet_handle_t, n: usize) -> c_int {
    watch!(
        S "gasnet_try_syncnb_all",
        EventDetail::Sync(n),
        gasnet_try_syncnb_all(handles, n)
    );
    // SAFETY: the specification demands an array of `n` handles, in which the call writes.
    let (c, handles) = (ctx("gasnet_try_syncnb_all"), unsafe { array(handles, n) });
    c.check_handles("gasnet_try_syncnb_all", handles);
    c.poll_of_client();
    ready(c.ops_done(handles, HandleNeed::All))
}

/// Reports whether any of several explicit operations is complete. Does not poll the network.
///
/// - `handles`: array of `n` handles of the calling thread. Entries that are
///   `GASNET_INVALID_HANDLE` are ignored; those of complete operations become
///   `GASNET_INVALID_HANDLE`. The array stays the client's.
/// - `n`: entries; 0 is allowed.
/// - Returns `GASNET_OK` if at least one operation was complete or all entries are
///   `GASNET_INVALID_HANDLE`, `GASNET_ERR_NOT_READY` otherwise.
/// - Context: anywhere after `gasnet_attach`.
///
/// # Safety
/// `handles` must point to `n` handles.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnet_try_syncnb_some_nopoll(
    handles: *mut gasnet_handle_t,
    n: usize,
) -> c_int {
    watch!(
        S "gasnet_try_syncnb_some_nopoll",
        EventDetail::Sync(n),
        gasnet_try_syncnb_some_nopoll(handles, n)
    );
    // SAFETY: the specification demands an array of `n` handles, in which the call writes.
    let (c, handles) = (ctx("gasnet_try_syncnb_some_nopoll"), unsafe { array(handles, n) });
    c.check_handles("gasnet_try_syncnb_some_nopoll", handles);
    ready(c.ops_done(handles, HandleNeed::Some))
}

/// Reports whether several explicit operations are complete. Does not poll the network.
///
/// - `handles`: array of `n` handles of the calling thread. Entries that are
///   `GASNET_INVALID_HANDLE` are ignored; those of complete operations become
///   `GASNET_INVALID_HANDLE`. The array stays the client's.
/// - `n`: entries; 0 is allowed.
/// - Returns `GASNET_OK` if all operations are complete, `GASNET_ERR_NOT_READY` otherwise.
/// - Context: anywhere after `gasnet_attach`.
///
/// # Safety
/// `handles` must point to `n` handles.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnet_try_syncnb_all_nopoll(
    handles: *mut gasnet_handle_t,
    n: usize,
) -> c_int {
    watch!(
        S "gasnet_try_syncnb_all_nopoll",
        EventDetail::Sync(n),
        gasnet_try_syncnb_all_nopoll(handles, n)
    );
    // SAFETY: the specification demands an array of `n` handles, in which the call writes.
    let (c, handles) = (ctx("gasnet_try_syncnb_all_nopoll"), unsafe { array(handles, n) });
    c.check_handles("gasnet_try_syncnb_all_nopoll", handles);
    ready(c.ops_done(handles, HandleNeed::All))
}

/// So short that it pays to find out that nothing is watched where the job is looked up.
fn wait_implicit(probe: &'static Probe, which: ImplicitSet) {
    // SAFETY: null, or the leaked GasnetJob that gasnet_attach stored.
    let c = match unsafe { ATTACHED.load(Ordering::Acquire).as_ref() } {
        Some(job) => job.ctx(),
        None => match watched_wait(probe, which) {
            Some(c) => c,
            None => return,
        },
    };
    c.check_outside_region(probe.function);
    c.wait_implicit(which);
}

/// Makes the call as an event, or gives the context if it is that very call, or nothing is
/// watched.
#[cold]
#[inline(never)]
fn watched_wait(probe: &'static Probe, which: ImplicitSet) -> Option<Ctx> {
    if trace::on() {
        let wait = || wait_implicit(probe, which);
        if trace::record(probe, || EventDetail::Nothing, wait).is_some() {
            return None;
        }
    }
    Some(ctx(probe.function))
}

fn try_implicit(function: &str, which: ImplicitSet) -> c_int {
    let c = ctx(function);
    c.check_outside_region(function);
    c.poll_of_client();
    ready(c.implicit_done(which))
}

/// Waits for the implicit gets that the calling thread has initiated outside access regions. An
/// open access region of the calling thread ends the job with a message.
///
/// - Context: after `gasnet_attach`; not in a handler or a no-interrupt section, and not while
///   a handler-safe lock is held.
#[unsafe(no_mangle)]
pub extern "C" fn gasnet_wait_syncnbi_gets() {
    static PROBE: Probe = Probe::new(Letter::S, "gasnet_wait_syncnbi_gets");
    wait_implicit(&PROBE, ImplicitSet::Gets);
}

/// Waits for the implicit puts and memsets that the calling thread has initiated outside access
/// regions. An open access region of the calling thread ends the job with a message.
///
/// - Context: after `gasnet_attach`; not in a handler or a no-interrupt section, and not while
///   a handler-safe lock is held.
#[unsafe(no_mangle)]
pub extern "C" fn gasnet_wait_syncnbi_puts() {
    static PROBE: Probe = Probe::new(Letter::S, "gasnet_wait_syncnbi_puts");
    wait_implicit(&PROBE, ImplicitSet::Puts);
}

/// Waits for the implicit operations that the calling thread has initiated outside access
/// regions. An open access region of the calling thread ends the job with a message.
///
/// - Context: after `gasnet_attach`; not in a handler or a no-interrupt section, and not while
///   a handler-safe lock is held.
#[unsafe(no_mangle)]
pub extern "C" fn gasnet_wait_syncnbi_all() {
    static PROBE: Probe = Probe::new(Letter::S, "gasnet_wait_syncnbi_all");
    wait_implicit(&PROBE, ImplicitSet::All);
}

/// Polls once and reports whether the implicit gets of the calling thread are complete. An open
/// access region of the calling thread ends the job with a message.
///
/// - Returns `GASNET_OK` if so, `GASNET_ERR_NOT_READY` otherwise.
/// - Context: after `gasnet_attach`; not in a handler or a no-interrupt section, and not while
///   a handler-safe lock is held.
#[unsafe(no_mangle)]
pub extern "C" fn gasnet_try_syncnbi_gets() -> c_int {
    watch!(S "gasnet_try_syncnbi_gets", EventDetail::Nothing, gasnet_try_syncnbi_gets());
    try_implicit("gasnet_try_syncnbi_gets", ImplicitSet::Gets)
}

/// Polls once and reports whether the implicit puts and memsets of the calling thread are
/// complete. An open access region of the calling thread ends the job with a message.
///
/// - Returns `GASNET_OK` if so, `GASNET_ERR_NOT_READY` otherwise.
/// - Context: after `gasnet_attach`; not in a handler or a no-interrupt section, and not while
///   a handler-safe lock is held.
#[unsafe(no_mangle)]
pub extern "C" fn gasnet_try_syncnbi_puts() -> c_int {
    watch!(S "gasnet_try_syncnbi_puts", EventDetail::Nothing, gasnet_try_syncnbi_puts());
    try_implicit("gasnet_try_syncnbi_puts", ImplicitSet::Puts)
}

/// Polls once and reports whether the implicit operations of the calling thread are complete.
/// An open access region of the calling thread ends the job with a message.
///
/// - Returns `GASNET_OK` if so, `GASNET_ERR_NOT_READY` otherwise.
/// - Context: after `gasnet_attach`; not in a handler or a no-interrupt section, and not while
///   a handler-safe lock is held.
#[unsafe(no_mangle)]
pub extern "C" fn gasnet_try_syncnbi_all() -> c_int {
    watch!(S "gasnet_try_syncnbi_all", EventDetail::Nothing, gasnet_try_syncnbi_all());
    try_implicit("gasnet_try_syncnbi_all", ImplicitSet::All)
}

/// Opens an access region of the calling thread: it collects the implicit operations that the
/// thread initiates until `gasnet_end_nbi_accessregion`. Regions cannot be nested, and implicit
/// operations cannot be synced in one; both end the job with a message.
///
/// - Context: after `gasnet_attach`; not in a handler or a no-interrupt section, and not while
///   a handler-safe lock is held.
#[unsafe(no_mangle)]
pub extern "C" fn gasnet_begin_nbi_accessregion() {
    watch!(
        S "gasnet_begin_nbi_accessregion",
        EventDetail::Nothing,
        gasnet_begin_nbi_accessregion()
    );
    let function = "gasnet_begin_nbi_accessregion";
    ctx(function).begin_region(function);
}

/// Closes the access region of the calling thread. Without one, the job ends with a message.
///
/// - Returns a handle for all operations of the region, for `gasnet_wait_syncnb` and
///   `gasnet_try_syncnb` in the calling thread, or `GASNET_INVALID_HANDLE` if they are complete
///   already.
/// - Context: after `gasnet_attach`; not in a handler or a no-interrupt section, and not while
///   a handler-safe lock is held.
#[unsafe(no_mangle)]
pub extern "C" fn gasnet_end_nbi_accessregion() -> gasnet_handle_t {
    watch!(S "gasnet_end_nbi_accessregion", EventDetail::Nothing, gasnet_end_nbi_accessregion());
    let function = "gasnet_end_nbi_accessregion";
    let c = ctx(function);
    explicit(c.job, c.end_region(function))
}
