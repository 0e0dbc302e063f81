//! Active messages of this module for its own handlers: a Short or, with a payload, a Medium.
//!
//! Called by the collectives and the vector transfers. Invariant: the payload is
//! read before the call returns.

use crate::client_memory::Src;
use crate::conduit::Outgoing;
use crate::rank::JobRank;
use crate::runtime::Ctx;
use crate::runtime::am::AmToken;

/// Sends a request. `function` names the caller in messages.
pub(super) fn request(
    ctx: Ctx,
    function: &str,
    to: JobRank,
    handler: u8,
    args: &[i32],
    payload: Src<'_>,
) {
    // A call for each category: the conduit's code for a constant category is shorter.
    match payload.len() {
        0 => ctx.request(function, to, &Outgoing::short(handler, args)),
        _ => ctx.request(function, to, &Outgoing::medium(handler, args, payload)),
    }
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
    match payload.len() {
        0 => ctx.reply_to(function, token, &Outgoing::short(handler, args)),
        _ => ctx.reply_to(function, token, &Outgoing::medium(handler, args, payload)),
    }
}
