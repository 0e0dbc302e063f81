//! Active messages of this module for its own handlers: a Short or, with a payload, a Medium.
//!
//! Called by the barrier, the collectives and the vector transfers. Invariant: the payload is
//! read before the call returns.

use crate::client_memory::Src;
use crate::conduit::Outgoing;
use crate::rank::JobRank;
use crate::runtime::Ctx;
use crate::runtime::am::AmToken;

fn outgoing<'a>(handler: u8, args: &'a [i32], payload: Src<'a>) -> Outgoing<'a> {
    match payload.len() {
        0 => Outgoing::short(handler, args),
        _ => Outgoing::medium(handler, args, payload),
    }
}

/// Sends a request. `function` names the caller in messages.
#[inline]
pub(super) fn request(
    ctx: Ctx,
    function: &str,
    to: JobRank,
    handler: u8,
    args: &[i32],
    payload: Src<'_>,
) {
    ctx.request(function, to.0, &outgoing(handler, args, payload));
}

/// Sends the reply of the handler that was given `token`.
pub(super) fn reply(
    ctx: Ctx,
    function: &str,
    token: &AmToken,
    handler: u8,
    args: &[i32],
    payload: Src<'_>,
) {
    let token = core::ptr::from_ref(token).cast();
    ctx.reply(function, token, &outgoing(handler, args, payload));
}
