//! Active messages of a rank to itself: their handlers run inside the call that sends them.
//!
//! Called by the upper layers through `JobConduit`. Invariants: nothing is taken that could be
//! short, so nothing waits. A reply runs when the handler that sent it has returned: handlers do
//! not nest.

use super::client_thread::ClientThread;
use super::portals::Portals;
use super::reply_token::{OwnPayload, OwnReply};
use super::{AmMessage, CHUNK, Category, Conduit, MAX_ARGS, Outgoing, ReplyToken, Upcall};
use crate::client_memory::{Dst, Src};
use crate::rank::JobRank;
use alloc::boxed::Box;
use core::sync::atomic::Ordering;
use core::{mem, ptr};

impl<P: Portals> Conduit<P> {
    /// Runs the handler of a request of this rank to itself, then that of its reply. Never inside
    /// a handler.
    pub fn request_own<U: Upcall>(&self, up: U, m: &Outgoing<'_>) {
        debug_assert!(!self.in_handler(up), "a request from inside a handler");
        let thread = self.thread(up);
        thread.in_handler.store(true, Ordering::Relaxed);
        let mut token = ReplyToken::own(self.me);
        let &Outgoing { category, handler, args, payload, .. } = m;
        let mut large = Box::default();
        let payload = match category {
            Category::Medium if payload.len() <= CHUNK => copied(payload, thread.payload()),
            Category::Medium => copied_large(payload, &mut large),
            Category::Long => placed(m),
            Category::Short => AmMessage::NO_PAYLOAD,
        };
        let source = self.me;
        up.run_request(&mut token, AmMessage { source, category, handler, args, payload });
        if let Some(reply) = &token.own_reply {
            run_reply(up, thread, self.me, reply);
        }
        thread.in_handler.store(false, Ordering::Relaxed);
        self.run_deferred(up, thread);
    }

    /// Keeps the reply to a request of this rank to itself until its handler has returned.
    #[cold]
    #[inline(never)]
    pub(super) fn reply_own<U: Upcall>(&self, up: U, token: &mut ReplyToken, m: &Outgoing<'_>) {
        let &Outgoing { category, handler, payload, .. } = m;
        let thread = self.thread(up);
        let payload = match category {
            Category::Medium if payload.len() <= CHUNK => {
                OwnPayload::Placed(copied(payload, thread.reply_payload()))
            }
            Category::Medium => {
                copied_large(payload, &mut thread.large_reply.lock());
                OwnPayload::Large(payload.len())
            }
            Category::Long => OwnPayload::Placed(placed(m)),
            Category::Short => OwnPayload::Placed(AmMessage::NO_PAYLOAD),
        };
        let mut args = [0; MAX_ARGS];
        args[..m.args.len()].copy_from_slice(m.args);
        token.own_reply =
            Some(OwnReply { category, handler, args, numargs: m.args.len(), payload });
    }
}

/// Runs the handler of a kept reply.
fn run_reply<U: Upcall>(up: U, thread: &ClientThread, source: JobRank, reply: &OwnReply) {
    let &OwnReply { category, handler, ref args, numargs, payload } = reply;
    let args = &args[..numargs];
    let mut large;
    let payload = match payload {
        OwnPayload::Placed(at) => at,
        OwnPayload::Large(n) => {
            large = mem::take(&mut *thread.large_reply.lock());
            Dst::from(&mut *large).part(0, n)
        }
    };
    up.run_reply(AmMessage { source, category, handler, args, payload });
}

/// A copy of a payload, in the first of these bytes.
fn copied<'a>(payload: Src<'_>, to: Dst<'a>) -> Dst<'a> {
    let copy = to.part(0, payload.len());
    copy.copy_from(payload);
    copy
}

/// A copy of a payload, in words of its own.
fn copied_large<'a>(payload: Src<'_>, words: &'a mut Box<[u64]>) -> Dst<'a> {
    *words = alloc::vec![0; payload.len().div_ceil(8)].into_boxed_slice();
    copied(payload, Dst::from(&mut **words))
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
