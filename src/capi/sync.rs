//! Syncing of non-blocking operations, and access regions.

use super::abi::gasnet_handle_t;
use super::{OK, ctx, explicit};
use crate::core::Error;
use crate::core::ops::Handle;
use crate::extended::sync::{Need, Which};
use core::ffi::c_int;

/// `GASNET_OK` or `GASNET_ERR_NOT_READY`.
#[inline]
fn ready(done: bool) -> c_int {
    if done { OK } else { Error::NotReady as c_int }
}

/// The handles of an array.
///
/// # Safety
/// `handles` must point to `n` handles that nobody else uses meanwhile; it may be anything if `n` is 0.
unsafe fn array<'a>(handles: *mut gasnet_handle_t, n: usize) -> &'a mut [Handle] {
    if n == 0 {
        return &mut [];
    }
    // SAFETY: the caller's promise; a Handle is a word of the size of a pointer.
    unsafe { core::slice::from_raw_parts_mut(handles.cast(), n) }
}

/// `gasnet_wait_syncnb`
#[unsafe(no_mangle)]
pub extern "C" fn gasnet_wait_syncnb(handle: gasnet_handle_t) {
    if !handle.is_null() {
        let (c, mut handles) = (ctx("gasnet_wait_syncnb"), [Handle(handle as usize)]);
        c.check_handles("gasnet_wait_syncnb", &handles);
        c.wait_ops(&mut handles, Need::All);
    }
}

/// `gasnet_try_syncnb`
#[unsafe(no_mangle)]
pub extern "C" fn gasnet_try_syncnb(handle: gasnet_handle_t) -> c_int {
    let (c, mut handles) = (ctx("gasnet_try_syncnb"), [Handle(handle as usize)]);
    c.check_handles("gasnet_try_syncnb", &handles);
    c.poll();
    ready(c.ops_done(&mut handles, Need::All))
}

/// `gasnet_try_syncnb_nopoll`
#[unsafe(no_mangle)]
pub extern "C" fn gasnet_try_syncnb_nopoll(handle: gasnet_handle_t) -> c_int {
    let (c, mut handles) = (ctx("gasnet_try_syncnb_nopoll"), [Handle(handle as usize)]);
    c.check_handles("gasnet_try_syncnb_nopoll", &handles);
    ready(c.ops_done(&mut handles, Need::All))
}

/// `gasnet_wait_syncnb_some`
///
/// # Safety
/// `handles` must point to `n` handles.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnet_wait_syncnb_some(handles: *mut gasnet_handle_t, n: usize) {
    // SAFETY: the caller's promise.
    let (c, handles) = (ctx("gasnet_wait_syncnb_some"), unsafe { array(handles, n) });
    c.check_handles("gasnet_wait_syncnb_some", handles);
    c.wait_ops(handles, Need::Some);
}

/// `gasnet_wait_syncnb_all`
///
/// # Safety
/// `handles` must point to `n` handles.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnet_wait_syncnb_all(handles: *mut gasnet_handle_t, n: usize) {
    // SAFETY: the caller's promise.
    let (c, handles) = (ctx("gasnet_wait_syncnb_all"), unsafe { array(handles, n) });
    c.check_handles("gasnet_wait_syncnb_all", handles);
    c.wait_ops(handles, Need::All);
}

/// `gasnet_try_syncnb_some`
///
/// # Safety
/// `handles` must point to `n` handles.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnet_try_syncnb_some(handles: *mut gasnet_handle_t, n: usize) -> c_int {
    // SAFETY: the caller's promise.
    let (c, handles) = (ctx("gasnet_try_syncnb_some"), unsafe { array(handles, n) });
    c.check_handles("gasnet_try_syncnb_some", handles);
    c.poll();
    ready(c.ops_done(handles, Need::Some))
}

/// `gasnet_try_syncnb_all`
///
/// # Safety
/// `handles` must point to `n` handles.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnet_try_syncnb_all(handles: *mut gasnet_handle_t, n: usize) -> c_int {
    // SAFETY: the caller's promise.
    let (c, handles) = (ctx("gasnet_try_syncnb_all"), unsafe { array(handles, n) });
    c.check_handles("gasnet_try_syncnb_all", handles);
    c.poll();
    ready(c.ops_done(handles, Need::All))
}

/// `gasnet_try_syncnb_some_nopoll`
///
/// # Safety
/// `handles` must point to `n` handles.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnet_try_syncnb_some_nopoll(handles: *mut gasnet_handle_t, n: usize) -> c_int {
    // SAFETY: the caller's promise.
    let (c, handles) = (ctx("gasnet_try_syncnb_some_nopoll"), unsafe { array(handles, n) });
    c.check_handles("gasnet_try_syncnb_some_nopoll", handles);
    ready(c.ops_done(handles, Need::Some))
}

/// `gasnet_try_syncnb_all_nopoll`
///
/// # Safety
/// `handles` must point to `n` handles.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnet_try_syncnb_all_nopoll(handles: *mut gasnet_handle_t, n: usize) -> c_int {
    // SAFETY: the caller's promise.
    let (c, handles) = (ctx("gasnet_try_syncnb_all_nopoll"), unsafe { array(handles, n) });
    c.check_handles("gasnet_try_syncnb_all_nopoll", handles);
    ready(c.ops_done(handles, Need::All))
}

fn wait_implicit(function: &str, which: Which) {
    let c = ctx(function);
    c.check_outside_region(function);
    c.wait_implicit(which);
}

fn try_implicit(function: &str, which: Which) -> c_int {
    let c = ctx(function);
    c.check_outside_region(function);
    c.poll();
    ready(c.implicit_done(which))
}

/// `gasnet_wait_syncnbi_gets`
#[unsafe(no_mangle)]
pub extern "C" fn gasnet_wait_syncnbi_gets() {
    wait_implicit("gasnet_wait_syncnbi_gets", Which::Gets);
}

/// `gasnet_wait_syncnbi_puts`
#[unsafe(no_mangle)]
pub extern "C" fn gasnet_wait_syncnbi_puts() {
    wait_implicit("gasnet_wait_syncnbi_puts", Which::Puts);
}

/// `gasnet_wait_syncnbi_all`
#[unsafe(no_mangle)]
pub extern "C" fn gasnet_wait_syncnbi_all() {
    wait_implicit("gasnet_wait_syncnbi_all", Which::All);
}

/// `gasnet_try_syncnbi_gets`
#[unsafe(no_mangle)]
pub extern "C" fn gasnet_try_syncnbi_gets() -> c_int {
    try_implicit("gasnet_try_syncnbi_gets", Which::Gets)
}

/// `gasnet_try_syncnbi_puts`
#[unsafe(no_mangle)]
pub extern "C" fn gasnet_try_syncnbi_puts() -> c_int {
    try_implicit("gasnet_try_syncnbi_puts", Which::Puts)
}

/// `gasnet_try_syncnbi_all`
#[unsafe(no_mangle)]
pub extern "C" fn gasnet_try_syncnbi_all() -> c_int {
    try_implicit("gasnet_try_syncnbi_all", Which::All)
}

/// `gasnet_begin_nbi_accessregion`
#[unsafe(no_mangle)]
pub extern "C" fn gasnet_begin_nbi_accessregion() {
    ctx("gasnet_begin_nbi_accessregion").begin_region();
}

/// `gasnet_end_nbi_accessregion`
#[unsafe(no_mangle)]
pub extern "C" fn gasnet_end_nbi_accessregion() -> gasnet_handle_t {
    let c = ctx("gasnet_end_nbi_accessregion");
    explicit(c.job, c.end_region())
}
