//! Active messages of a rank to itself: their handlers run inside the call that sends them.
//!
//! Called by the upper layers through `JobConduit`. Invariants: nothing is taken that could be
//! short, so nothing waits. A reply runs when the handler that sent it has returned: handlers do
//! not nest.

use super::client_thread::ClientThread;
use super::portals::Portals;
use super::reply_token::OwnReply;
use super::{AmMessage, Category, Conduit, MAX_ARGS, Outgoing, ReplyToken, Upcall};
use crate::client_memory::Dst;
use core::ptr;
use core::sync::atomic::Ordering;

impl<P: Portals> Conduit<P> {
    /// Runs the handler of a request of this rank to itself, then that of its reply. Never inside
    /// a handler.
    pub fn request_own<U: Upcall>(&self, up: U, m: &Outgoing<'_>) {
        debug_assert!(!self.in_handler(up), "a request from inside a handler");
        let thread = self.thread(up);
        thread.in_handler.store(true, Ordering::Relaxed);
        let mut token = ReplyToken::own(self.me);
        let &Outgoing { category, handler, args, .. } = m;
        let payload = kept(thread, false, m);
        let source = self.me;
        up.run_request(&mut token, AmMessage { source, category, handler, args, payload });
        if let Some(reply) = &token.own_reply {
            let &OwnReply { category, handler, ref args, numargs, payload } = reply;
            up.run_reply(AmMessage { source, category, handler, args: &args[..numargs], payload });
        }
        thread.in_handler.store(false, Ordering::Relaxed);
        self.run_deferred(up, thread);
    }

    /// Keeps the reply to a request of this rank to itself until its handler has returned.
    #[cold]
    #[inline(never)]
    pub(super) fn reply_own<U: Upcall>(&self, up: U, token: &mut ReplyToken, m: &Outgoing<'_>) {
        let &Outgoing { category, handler, .. } = m;
        let thread = self.thread(up);
        let payload = kept(thread, true, m);
        let mut args = [0; MAX_ARGS];
        args[..m.args.len()].copy_from_slice(m.args);
        token.own_reply =
            Some(OwnReply { category, handler, args, numargs: m.args.len(), payload });
    }
}

/// The payload as its handler gets it: of a Long at its destination, of a Medium in memory of the
/// thread. The sender may overwrite its own meanwhile.
fn kept(thread: &ClientThread, is_reply: bool, m: &Outgoing<'_>) -> Dst<'static> {
    match m.category {
        Category::Medium => {
            let copy = thread.kept_payload(is_reply, m.payload.len());
            copy.copy_from(m.payload);
            copy
        }
        Category::Long => placed(m),
        Category::Short => AmMessage::NO_PAYLOAD,
    }
}

/// Stores the payload of a Long where it goes.
fn placed(m: &Outgoing<'_>) -> Dst<'static> {
    let at = ptr::with_exposed_provenance_mut(m.address);
    // SAFETY: a message to this rank names memory of this process, which the layer above has
    // checked.
    let to = unsafe { Dst::new(at, m.payload.len()) };
    to.copy_from(m.payload);
    to
}
