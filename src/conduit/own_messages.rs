//! Active messages of a rank to itself: their handlers run inside the call that sends them.
//!
//! Called by the upper layers through `JobConduit`. Invariants: nothing is taken that could be
//! short, so nothing waits. A reply runs when the handler that sent it has returned: handlers do
//! not nest.

use super::arrived::{OwnPayload, OwnReply};
use super::client_thread::ClientThread;
use super::memory::Body;
use super::portals::Portals;
use super::{AmMessage, Category, Conduit, MAX_ARGS, Outgoing, ReplyToken, Upcall};
use crate::client_memory::Dst;
use crate::rank::JobRank;
use alloc::boxed::Box;
use core::ptr;
use core::sync::atomic::Ordering;
use sys::peer::Peer;

/// Bytes of a payload that is copied to the stack.
const SHORT: usize = 512;

impl<P: Portals> Conduit<P> {
    /// Runs the handler of a request of this rank to itself, then that of its reply. Never inside
    /// a handler.
    pub fn request_own<U: Upcall>(&self, up: U, m: &Outgoing<'_>) {
        debug_assert!(!self.in_handler(up), "a request from inside a handler");
        let thread = self.thread(up);
        thread.in_handler.store(true, Ordering::Relaxed);
        let mut token = ReplyToken::own(self.me);
        let &Outgoing { category, handler, args, payload, .. } = m;
        let mut run = |payload: Dst<'_>| {
            let source = self.me;
            up.run_request(&mut token, AmMessage { source, category, handler, args, payload });
        };
        let n = payload.len();
        match category {
            Category::Medium => {
                let (mut short, mut long);
                let words: &mut [u64] = if n <= SHORT {
                    short = [0; SHORT / 8];
                    &mut short
                } else {
                    long = words_of(n);
                    &mut long
                };
                let copy = bytes(words, n);
                copy.copy_from(payload);
                run(copy);
            }
            Category::Long => run(placed(m)),
            Category::Short => run(AmMessage::NO_PAYLOAD),
        }
        if token.replied() {
            run_reply(up, thread, self.me);
        }
        thread.in_handler.store(false, Ordering::Relaxed);
        self.run_deferred(up, thread);
    }

    /// Keeps the reply to a request of this rank to itself until its handler has returned.
    #[cold]
    #[inline(never)]
    pub(super) fn reply_own<U: Upcall>(&self, up: U, m: &Outgoing<'_>) {
        let mut args = [0; MAX_ARGS];
        args[..m.args.len()].copy_from_slice(m.args);
        let payload = match m.category {
            Category::Medium => {
                let n = m.payload.len();
                let mut words = words_of(n);
                bytes(&mut words, n).copy_from(m.payload);
                OwnPayload::Copied(words, n)
            }
            Category::Long => OwnPayload::Placed(placed(m)),
            Category::Short => OwnPayload::Placed(AmMessage::NO_PAYLOAD),
        };
        let (category, handler, numargs) = (m.category, m.handler, m.args.len());
        let reply = OwnReply { category, handler, args, numargs, payload };
        *self.thread(up).own_reply.lock() = Some(reply);
    }
}

/// Runs the handler of the reply that this thread has kept.
fn run_reply<U: Upcall>(up: U, thread: &ClientThread, source: JobRank) {
    let kept = thread.own_reply.lock().take();
    let Some(OwnReply { category, handler, args, numargs, mut payload }) = kept else { return };
    let payload = match &mut payload {
        OwnPayload::Copied(words, n) => bytes(words, *n),
        OwnPayload::Placed(at) => *at,
    };
    up.run_reply(AmMessage { source, category, handler, args: &args[..numargs], payload });
}

/// Words for this many bytes, one at least.
fn words_of(n: usize) -> Box<[u64]> {
    alloc::vec![0; n.div_ceil(8).max(1)].into_boxed_slice()
}

/// The first bytes of words that have as many.
fn bytes(words: &mut [u64], n: usize) -> Dst<'_> {
    Body::of(words).part(0, Peer::new(n)).unwrap_or(AmMessage::NO_PAYLOAD)
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
