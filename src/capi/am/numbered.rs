//! The 119 numbered functions of active messages: seven families, 0 to 16 arguments.
//!
//! Called by clients, from C, C++, Fortran and through `dlsym`.

use super::{
    Arg, Handler, Node, reply_long, reply_medium, reply_short, request_long, request_medium,
    request_short,
};
use core::ffi::{c_int, c_void};

/// Whether a function with these arguments has any.
const fn any(args: &[&str]) -> bool {
    !args.is_empty()
}

/// The seven families for one number of arguments.
macro_rules! families {
    ($($rs:ident $rm:ident $rl:ident $ra:ident
       $ps:ident $pm:ident $pl:ident ($($a:ident)*);)*) => {$(
        /// Sends a request without payload: runs a handler on the target.
        ///
        /// - `dest`: the target, a rank below `gasnet_nodes()`; this process is one.
        /// - `handler`: index of its handler, 128 to 255.
        /// - Further arguments: passed to the handler, as 32-bit integers.
        /// - Returns `GASNET_OK`; a misuse ends the job with a message.
        /// - Context: after `gasnet_attach`; not in a handler or a no-interrupt section, and
        ///   not while a handler-safe lock is held.
        #[unsafe(no_mangle)]
        pub extern "C" fn $rs(dest: Node, handler: Handler, $($a: Arg),*) -> c_int {
            const ANY: bool = any(&[$(stringify!($a)),*]);
            let (f, args) = (stringify!($rs), &[$($a),*]);
            request_short::<ANY, false>(f, dest, handler, args)
        }

        /// Sends a request with a payload, which the handler finds in a buffer of the library,
        /// aligned to 8 bytes, while it runs.
        ///
        /// - `dest`: the target, a rank below `gasnet_nodes()`; this process is one.
        /// - `handler`: index of its handler, 128 to 255.
        /// - `source_addr`: the payload, any memory of the caller; it may be reused when the
        ///   call returns.
        /// - `nbytes`: its bytes, at most `gasnet_AMMaxMedium()`; with 0 the address is not
        ///   used.
        /// - Further arguments: passed to the handler, as 32-bit integers.
        /// - Returns `GASNET_OK`; a misuse ends the job with a message.
        /// - Context: after `gasnet_attach`; not in a handler or a no-interrupt section, and
        ///   not while a handler-safe lock is held.
        ///
        /// # Safety
        /// `nbytes` bytes at `source_addr` must be readable.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $rm(
            dest: Node, handler: Handler, source_addr: *const c_void, nbytes: usize,
            $($a: Arg),*
        ) -> c_int {
            const ANY: bool = any(&[$(stringify!($a)),*]);
            let (f, args) = (stringify!($rm), &[$($a),*]);
            // SAFETY: the specification demands a payload of `nbytes` readable bytes; that of a
            // LongAsync stays until the reply handler runs.
            unsafe { request_medium::<ANY, false>(f, dest, handler, source_addr, nbytes, args) }
        }

        /// Sends a request whose payload is copied to the segment of the target before the
        /// handler runs.
        ///
        /// - `dest`: the target, a rank below `gasnet_nodes()`; this process is one.
        /// - `handler`: index of its handler, 128 to 255.
        /// - `source_addr`: the payload, any memory of the caller; it may be reused when the
        ///   call returns.
        /// - `nbytes`: its bytes, at most `gasnet_AMMaxLongRequest()`; with 0 the address is
        ///   not used.
        /// - `dest_addr`: where they go, an address of the receiver in its segment.
        /// - Further arguments: passed to the handler, as 32-bit integers.
        /// - Returns `GASNET_OK`; a misuse ends the job with a message.
        /// - Context: after `gasnet_attach`; not in a handler or a no-interrupt section, and
        ///   not while a handler-safe lock is held.
        ///
        /// # Safety
        /// `nbytes` bytes at `source_addr` must be readable.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $rl(
            dest: Node, handler: Handler, source_addr: *const c_void, nbytes: usize,
            dest_addr: *mut c_void, $($a: Arg),*
        ) -> c_int {
            const ANY: bool = any(&[$(stringify!($a)),*]);
            let (f, args) = (stringify!($rl), &[$($a),*]);
            // SAFETY: the specification demands a payload of `nbytes` readable bytes; that of a
            // LongAsync stays until the reply handler runs.
            unsafe {
                request_long::<ANY, false>(f, dest, handler, source_addr, nbytes, dest_addr, false, args)
            }
        }

        /// As the function without `Async`, but the payload is in use until the reply handler
        /// runs: the request handler has to reply.
        ///
        /// - `dest`: the target, a rank below `gasnet_nodes()`; this process is one.
        /// - `handler`: index of its handler, 128 to 255.
        /// - `source_addr`: the payload, any memory of the caller; it must not change until the
        ///   reply handler runs.
        /// - `nbytes`: its bytes, at most `gasnet_AMMaxLongRequest()`; with 0 the address is
        ///   not used.
        /// - `dest_addr`: where they go, an address of the receiver in its segment.
        /// - Further arguments: passed to the handler, as 32-bit integers.
        /// - Returns `GASNET_OK`; a misuse ends the job with a message.
        /// - Context: after `gasnet_attach`; not in a handler or a no-interrupt section, and
        ///   not while a handler-safe lock is held.
        ///
        /// # Safety
        /// `nbytes` bytes at `source_addr` must be readable, and stay so until the reply
        /// handler runs.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $ra(
            dest: Node, handler: Handler, source_addr: *const c_void, nbytes: usize,
            dest_addr: *mut c_void, $($a: Arg),*
        ) -> c_int {
            const ANY: bool = any(&[$(stringify!($a)),*]);
            let (f, args) = (stringify!($ra), &[$($a),*]);
            // SAFETY: the specification demands a payload of `nbytes` readable bytes; that of a
            // LongAsync stays until the reply handler runs.
            unsafe {
                request_long::<ANY, false>(f, dest, handler, source_addr, nbytes, dest_addr, true, args)
            }
        }

        /// Replies without payload to the request whose handler is running: runs a handler on
        /// the requester.
        ///
        /// - `token`: what the running request handler was given.
        /// - `handler`: index of the requester's handler, 128 to 255.
        /// - Further arguments: passed to the handler, as 32-bit integers.
        /// - Returns `GASNET_OK`; a misuse ends the job with a message.
        /// - Context: in a request handler, at most once; not while a handler-safe lock is
        ///   held.
        #[unsafe(no_mangle)]
        pub extern "C" fn $ps(token: *mut c_void, handler: Handler, $($a: Arg),*) -> c_int {
            const ANY: bool = any(&[$(stringify!($a)),*]);
            let (f, args) = (stringify!($ps), &[$($a),*]);
            reply_short::<ANY>(f, token, handler, args)
        }

        /// Replies with a payload, which the handler finds in a buffer of the library, aligned
        /// to 8 bytes, while it runs.
        ///
        /// - `token`: what the running request handler was given.
        /// - `handler`: index of the requester's handler, 128 to 255.
        /// - `source_addr`: the payload, any memory of the caller; it may be reused when the
        ///   call returns.
        /// - `nbytes`: its bytes, at most `gasnet_AMMaxMedium()`; with 0 the address is not
        ///   used.
        /// - Further arguments: passed to the handler, as 32-bit integers.
        /// - Returns `GASNET_OK`; a misuse ends the job with a message.
        /// - Context: in a request handler, at most once; not while a handler-safe lock is
        ///   held.
        ///
        /// # Safety
        /// `nbytes` bytes at `source_addr` must be readable.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $pm(
            token: *mut c_void, handler: Handler, source_addr: *const c_void, nbytes: usize,
            $($a: Arg),*
        ) -> c_int {
            const ANY: bool = any(&[$(stringify!($a)),*]);
            let (f, args) = (stringify!($pm), &[$($a),*]);
            // SAFETY: the specification demands a payload of `nbytes` readable bytes; that of a
            // LongAsync stays until the reply handler runs.
            unsafe { reply_medium::<ANY>(f, token, handler, source_addr, nbytes, args) }
        }

        /// Replies with a payload that is copied to the segment of the requester before the
        /// handler runs.
        ///
        /// - `token`: what the running request handler was given.
        /// - `handler`: index of the requester's handler, 128 to 255.
        /// - `source_addr`: the payload, any memory of the caller; it may be reused when the
        ///   call returns.
        /// - `nbytes`: its bytes, at most `gasnet_AMMaxLongReply()`; with 0 the address is not
        ///   used.
        /// - `dest_addr`: where they go, an address of the receiver in its segment.
        /// - Further arguments: passed to the handler, as 32-bit integers.
        /// - Returns `GASNET_OK`; a misuse ends the job with a message.
        /// - Context: in a request handler, at most once; not while a handler-safe lock is
        ///   held.
        ///
        /// # Safety
        /// `nbytes` bytes at `source_addr` must be readable.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $pl(
            token: *mut c_void, handler: Handler, source_addr: *const c_void, nbytes: usize,
            dest_addr: *mut c_void, $($a: Arg),*
        ) -> c_int {
            const ANY: bool = any(&[$(stringify!($a)),*]);
            let (f, args) = (stringify!($pl), &[$($a),*]);
            // SAFETY: the specification demands a payload of `nbytes` readable bytes; that of a
            // LongAsync stays until the reply handler runs.
            unsafe { reply_long::<ANY>(f, token, handler, source_addr, nbytes, dest_addr, args) }
        }
    )*};
}

families! {
    gasnet_AMRequestShort0 gasnet_AMRequestMedium0 gasnet_AMRequestLong0
    gasnet_AMRequestLongAsync0 gasnet_AMReplyShort0 gasnet_AMReplyMedium0 gasnet_AMReplyLong0
        ();
    gasnet_AMRequestShort1 gasnet_AMRequestMedium1 gasnet_AMRequestLong1
    gasnet_AMRequestLongAsync1 gasnet_AMReplyShort1 gasnet_AMReplyMedium1 gasnet_AMReplyLong1
        (a0);
    gasnet_AMRequestShort2 gasnet_AMRequestMedium2 gasnet_AMRequestLong2
    gasnet_AMRequestLongAsync2 gasnet_AMReplyShort2 gasnet_AMReplyMedium2 gasnet_AMReplyLong2
        (a0 a1);
    gasnet_AMRequestShort3 gasnet_AMRequestMedium3 gasnet_AMRequestLong3
    gasnet_AMRequestLongAsync3 gasnet_AMReplyShort3 gasnet_AMReplyMedium3 gasnet_AMReplyLong3
        (a0 a1 a2);
    gasnet_AMRequestShort4 gasnet_AMRequestMedium4 gasnet_AMRequestLong4
    gasnet_AMRequestLongAsync4 gasnet_AMReplyShort4 gasnet_AMReplyMedium4 gasnet_AMReplyLong4
        (a0 a1 a2 a3);
    gasnet_AMRequestShort5 gasnet_AMRequestMedium5 gasnet_AMRequestLong5
    gasnet_AMRequestLongAsync5 gasnet_AMReplyShort5 gasnet_AMReplyMedium5 gasnet_AMReplyLong5
        (a0 a1 a2 a3 a4);
    gasnet_AMRequestShort6 gasnet_AMRequestMedium6 gasnet_AMRequestLong6
    gasnet_AMRequestLongAsync6 gasnet_AMReplyShort6 gasnet_AMReplyMedium6 gasnet_AMReplyLong6
        (a0 a1 a2 a3 a4 a5);
    gasnet_AMRequestShort7 gasnet_AMRequestMedium7 gasnet_AMRequestLong7
    gasnet_AMRequestLongAsync7 gasnet_AMReplyShort7 gasnet_AMReplyMedium7 gasnet_AMReplyLong7
        (a0 a1 a2 a3 a4 a5 a6);
    gasnet_AMRequestShort8 gasnet_AMRequestMedium8 gasnet_AMRequestLong8
    gasnet_AMRequestLongAsync8 gasnet_AMReplyShort8 gasnet_AMReplyMedium8 gasnet_AMReplyLong8
        (a0 a1 a2 a3 a4 a5 a6 a7);
    gasnet_AMRequestShort9 gasnet_AMRequestMedium9 gasnet_AMRequestLong9
    gasnet_AMRequestLongAsync9 gasnet_AMReplyShort9 gasnet_AMReplyMedium9 gasnet_AMReplyLong9
        (a0 a1 a2 a3 a4 a5 a6 a7 a8);
    gasnet_AMRequestShort10 gasnet_AMRequestMedium10 gasnet_AMRequestLong10
    gasnet_AMRequestLongAsync10 gasnet_AMReplyShort10 gasnet_AMReplyMedium10 gasnet_AMReplyLong10
        (a0 a1 a2 a3 a4 a5 a6 a7 a8 a9);
    gasnet_AMRequestShort11 gasnet_AMRequestMedium11 gasnet_AMRequestLong11
    gasnet_AMRequestLongAsync11 gasnet_AMReplyShort11 gasnet_AMReplyMedium11 gasnet_AMReplyLong11
        (a0 a1 a2 a3 a4 a5 a6 a7 a8 a9 a10);
    gasnet_AMRequestShort12 gasnet_AMRequestMedium12 gasnet_AMRequestLong12
    gasnet_AMRequestLongAsync12 gasnet_AMReplyShort12 gasnet_AMReplyMedium12 gasnet_AMReplyLong12
        (a0 a1 a2 a3 a4 a5 a6 a7 a8 a9 a10 a11);
    gasnet_AMRequestShort13 gasnet_AMRequestMedium13 gasnet_AMRequestLong13
    gasnet_AMRequestLongAsync13 gasnet_AMReplyShort13 gasnet_AMReplyMedium13 gasnet_AMReplyLong13
        (a0 a1 a2 a3 a4 a5 a6 a7 a8 a9 a10 a11 a12);
    gasnet_AMRequestShort14 gasnet_AMRequestMedium14 gasnet_AMRequestLong14
    gasnet_AMRequestLongAsync14 gasnet_AMReplyShort14 gasnet_AMReplyMedium14 gasnet_AMReplyLong14
        (a0 a1 a2 a3 a4 a5 a6 a7 a8 a9 a10 a11 a12 a13);
    gasnet_AMRequestShort15 gasnet_AMRequestMedium15 gasnet_AMRequestLong15
    gasnet_AMRequestLongAsync15 gasnet_AMReplyShort15 gasnet_AMReplyMedium15 gasnet_AMReplyLong15
        (a0 a1 a2 a3 a4 a5 a6 a7 a8 a9 a10 a11 a12 a13 a14);
    gasnet_AMRequestShort16 gasnet_AMRequestMedium16 gasnet_AMRequestLong16
    gasnet_AMRequestLongAsync16 gasnet_AMReplyShort16 gasnet_AMReplyMedium16 gasnet_AMReplyLong16
        (a0 a1 a2 a3 a4 a5 a6 a7 a8 a9 a10 a11 a12 a13 a14 a15);
}
