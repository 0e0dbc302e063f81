//! Notices to a target that a vector put to it is complete: a handler of the client runs there.
//!
//! Called by `capi`, after the put. Invariant: the put is complete at the target before the
//! notice leaves.

use crate::client_memory::Src;
use crate::conduit::{AmMessage, Category, Upcall};
use crate::extended::handler_ids::VIS_NOTICE;
use crate::extended::messages;
use crate::rank::JobRank;
use crate::report;
use crate::runtime::Ctx;
use crate::runtime::am::{AmToken, CLIENT_BASE};

/// Runs a Medium reply handler of the client on rank `to`, without arguments.
pub fn notify(ctx: Ctx, function: &str, to: JobRank, handler: u8, payload: Src<'_>) {
    messages::request(ctx, function, to, VIS_NOTICE, &[handler.into()], payload);
}

/// The handler of a notice.
pub(in crate::extended) fn on_notice(ctx: Ctx, _token: &AmToken, m: &AmMessage<'_>) {
    let handler = m.args.first().and_then(|&arg| u8::try_from(arg).ok());
    let Some(handler) = handler.filter(|&handler| handler >= CLIENT_BASE) else {
        report::damaged(format_args!(
            "a notice of rank {} was overwritten: {:?}",
            m.source, m.args
        ))
    };
    ctx.run_reply(AmMessage { handler, category: Category::Medium, args: &[], ..*m });
}
