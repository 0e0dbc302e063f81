//! The collectives that there are: init and the blocking broadcast, one image per process.

use super::{bad_node, ctx};
use crate::extended::broadcast;
use crate::report;
use core::ffi::{c_int, c_uint, c_void};
use core::sync::atomic::{AtomicBool, Ordering};

/// Whether `gasnet_coll_init` has been called.
static READY: AtomicBool = AtomicBool::new(false);

/// `gasnet_coll_fn_entry_t`
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct FnEntry {
    fnptr: *const c_void,
    flags: c_uint,
}

/// `gasnet_coll_init`. The functions are for reductions, which this library does not supply.
///
/// # Safety
/// `images` must be null or hold the number of images of each process.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnet_coll_init(
    images: *const u32,
    _my_image: u32,
    _fn_tbl: *mut FnEntry,
    _fn_count: usize,
    _init_flags: c_int,
) {
    let c = ctx("gasnet_coll_init");
    for node in 0..c.job.nodes as usize {
        // SAFETY: the caller's promise.
        if !images.is_null() && unsafe { *images.add(node) } != 1 {
            report::fatal(
                // SAFETY: as above.
                format_args!("gasnet_coll_init(): process {node} has {} images", unsafe {
                    *images.add(node)
                }),
                format_args!(
                    "This library supplies collectives of one image per process; pass null or ones."
                ),
            );
        }
    }
    READY.store(true, Ordering::Release);
}

/// `gasnet_coll_broadcast`, synchronised as `GASNET_COLL_IN_ALLSYNC | GASNET_COLL_OUT_ALLSYNC`, which satisfies every
/// flag. `team` is `GASNET_TEAM_ALL`.
///
/// # Safety
/// `nbytes` bytes at `dst` must be writable, and at `src` of the root readable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasnet_coll_broadcast(
    team: *const c_void,
    dst: *mut c_void,
    srcimage: u32,
    src: *const c_void,
    nbytes: usize,
    _flags: c_int,
) {
    let function = "gasnet_coll_broadcast";
    let c = ctx(function);
    if !READY.load(Ordering::Acquire) {
        report::fatal(
            format_args!("{function}() was called before gasnet_coll_init()"),
            format_args!("Call gasnet_coll_init on every process after gasnet_attach."),
        );
    }
    if team as usize != 1 {
        report::fatal(
            format_args!("{function}(): {team:p} is no team"),
            format_args!("Pass GASNET_TEAM_ALL."),
        );
    }
    if srcimage >= c.job.nodes {
        bad_node(function, srcimage, c.job.nodes);
    }
    // SAFETY: the caller's promise.
    unsafe { broadcast::broadcast(c, srcimage, dst.cast(), src.cast(), nbytes) };
}
