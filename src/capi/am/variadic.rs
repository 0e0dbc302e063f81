//! The variadic forms of the headers, which pack their arguments into an array.
//!
//! Called by the inline functions of gasnet.h. Invariant: at most [`MAX_ARGS`] arguments are
//! read.

use super::{
    Arg, Handler, Node, reply_long, reply_medium, reply_short, request_long, request_medium,
    request_short,
};
use crate::report;
use crate::runtime::am::MAX_ARGS;
use core::ffi::{c_int, c_void};

fn too_many_args(function: &str, n: c_int) -> ! {
    report::fatal(
        format_args!(
            "{function}(): {n} arguments are out of range; a message has 0 to {MAX_ARGS}"
        ),
        format_args!("Send the rest in the payload."),
    )
}

/// The `numargs` arguments at `args`.
///
/// # Safety
/// `numargs` values at `args` must be readable if `numargs` is in range.
unsafe fn array<'a>(function: &str, numargs: c_int, args: *const Arg) -> &'a [Arg] {
    match usize::try_from(numargs) {
        Ok(0) => &[],
        // SAFETY: the inline functions of gasnet.h put `numargs` arguments into an array.
        Ok(n) if n <= MAX_ARGS => unsafe { core::slice::from_raw_parts(args, n) },
        _ => too_many_args(function, numargs),
    }
}

/// The variadic `gasnet_AMRequestShort` of the headers: as the numbered functions, with the
/// number of arguments and an array.
///
/// - `numargs`: arguments, 0 to `gasnet_AMMaxArgs()`; another number ends the job.
/// - `args`: the arguments; read before the call returns.
///
/// # Safety
/// `numargs` values at `args` must be readable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasneti_AMRequestShortV(
    dest: Node,
    handler: Handler,
    numargs: c_int,
    args: *const Arg,
) -> c_int {
    let f = "gasnet_AMRequestShort";
    // SAFETY: the inline functions of gasnet.h put `numargs` arguments into an array.
    request_short::<true, false>(f, dest, handler, unsafe { array(f, numargs, args) })
}

/// The variadic `gasnet_AMRequestMedium` of the headers: as the numbered functions, with the
/// number of arguments and an array.
///
/// - `numargs`: arguments, 0 to `gasnet_AMMaxArgs()`; another number ends the job.
/// - `args`: the arguments; read before the call returns.
///
/// # Safety
/// `numargs` values at `args` and `nbytes` bytes at `source_addr` must be readable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasneti_AMRequestMediumV(
    dest: Node,
    handler: Handler,
    source_addr: *const c_void,
    nbytes: usize,
    numargs: c_int,
    args: *const Arg,
) -> c_int {
    let f = "gasnet_AMRequestMedium";
    // SAFETY: the inline functions of gasnet.h put the arguments into an array; the
    // specification demands a payload of `nbytes` readable bytes.
    unsafe {
        request_medium::<true, false>(
            f,
            dest,
            handler,
            source_addr,
            nbytes,
            array(f, numargs, args),
        )
    }
}

/// The variadic `gasnet_AMRequestLong` of the headers: as the numbered functions, with the
/// number of arguments and an array.
///
/// - `numargs`: arguments, 0 to `gasnet_AMMaxArgs()`; another number ends the job.
/// - `args`: the arguments; read before the call returns.
///
/// # Safety
/// `numargs` values at `args` and `nbytes` bytes at `source_addr` must be readable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasneti_AMRequestLongV(
    dest: Node,
    handler: Handler,
    source_addr: *const c_void,
    nbytes: usize,
    dest_addr: *mut c_void,
    numargs: c_int,
    args: *const Arg,
) -> c_int {
    let f = "gasnet_AMRequestLong";
    // SAFETY: the inline functions of gasnet.h put the arguments into an array; the
    // specification demands a payload of `nbytes` readable bytes.
    unsafe {
        request_long::<true, false>(
            f,
            dest,
            handler,
            source_addr,
            nbytes,
            dest_addr,
            false,
            array(f, numargs, args),
        )
    }
}

/// The variadic `gasnet_AMRequestLongAsync` of the headers: as the numbered functions, with the
/// number of arguments and an array.
///
/// - `numargs`: arguments, 0 to `gasnet_AMMaxArgs()`; another number ends the job.
/// - `args`: the arguments; read before the call returns.
///
/// # Safety
/// `numargs` values at `args` and `nbytes` bytes at `source_addr` must be readable, the latter
/// until the reply handler runs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasneti_AMRequestLongAsyncV(
    dest: Node,
    handler: Handler,
    source_addr: *const c_void,
    nbytes: usize,
    dest_addr: *mut c_void,
    numargs: c_int,
    args: *const Arg,
) -> c_int {
    let f = "gasnet_AMRequestLongAsync";
    // SAFETY: the inline functions of gasnet.h put the arguments into an array. The
    // specification demands a payload of `nbytes` bytes that stay until the reply handler runs.
    unsafe {
        request_long::<true, false>(
            f,
            dest,
            handler,
            source_addr,
            nbytes,
            dest_addr,
            true,
            array(f, numargs, args),
        )
    }
}

/// The variadic `gasnet_AMReplyShort` of the headers: as the numbered functions, with the
/// number of arguments and an array.
///
/// - `numargs`: arguments, 0 to `gasnet_AMMaxArgs()`; another number ends the job.
/// - `args`: the arguments; read before the call returns.
///
/// # Safety
/// `numargs` values at `args` must be readable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasneti_AMReplyShortV(
    token: *mut c_void,
    handler: Handler,
    numargs: c_int,
    args: *const Arg,
) -> c_int {
    let f = "gasnet_AMReplyShort";
    // SAFETY: the inline functions of gasnet.h put `numargs` arguments into an array.
    reply_short::<true>(f, token, handler, unsafe { array(f, numargs, args) })
}

/// The variadic `gasnet_AMReplyMedium` of the headers: as the numbered functions, with the
/// number of arguments and an array.
///
/// - `numargs`: arguments, 0 to `gasnet_AMMaxArgs()`; another number ends the job.
/// - `args`: the arguments; read before the call returns.
///
/// # Safety
/// `numargs` values at `args` and `nbytes` bytes at `source_addr` must be readable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasneti_AMReplyMediumV(
    token: *mut c_void,
    handler: Handler,
    source_addr: *const c_void,
    nbytes: usize,
    numargs: c_int,
    args: *const Arg,
) -> c_int {
    let f = "gasnet_AMReplyMedium";
    // SAFETY: the inline functions of gasnet.h put the arguments into an array; the
    // specification demands a payload of `nbytes` readable bytes.
    unsafe {
        reply_medium::<true>(f, token, handler, source_addr, nbytes, array(f, numargs, args))
    }
}

/// The variadic `gasnet_AMReplyLong` of the headers: as the numbered functions, with the number
/// of arguments and an array.
///
/// - `numargs`: arguments, 0 to `gasnet_AMMaxArgs()`; another number ends the job.
/// - `args`: the arguments; read before the call returns.
///
/// # Safety
/// `numargs` values at `args` and `nbytes` bytes at `source_addr` must be readable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gasneti_AMReplyLongV(
    token: *mut c_void,
    handler: Handler,
    source_addr: *const c_void,
    nbytes: usize,
    dest_addr: *mut c_void,
    numargs: c_int,
    args: *const Arg,
) -> c_int {
    let f = "gasnet_AMReplyLong";
    // SAFETY: the inline functions of gasnet.h put the arguments into an array; the
    // specification demands a payload of `nbytes` readable bytes.
    unsafe {
        reply_long::<true>(
            f,
            token,
            handler,
            source_addr,
            nbytes,
            dest_addr,
            array(f, numargs, args),
        )
    }
}
