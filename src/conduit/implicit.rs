//! Implicit replies: those to requests whose handlers sent none. They only return what the
//! request holds, its chunk and its credits, and only a requester that runs short waits for
//! that.
//!
//! Called by `request_send` (what a request says), `request_recv` (a handler sent no reply) and
//! `poll`. They hand in how the replies are sent (`reply_send`); `reply_recv` receives what
//! such a message returns. Invariant: exactly one message returns the chunk of each such
//! request, and exactly one returns its credits.
//!
//! If the sender still has credits for a request of maximum size after it has sent one, that
//! request is marked `AmHeader::may_wait`. Its implicit reply may then be batched. The receiver
//! then collects such replies to one requester in a batch, which leaves as one message, whose
//! arguments name the further chunks. The batch leaves when
//!
//! - it is full,
//! - a reply to another rank starts the next batch,
//! - a request of the requester arrives that may not wait,
//! - [`PATIENCE`] polls have passed.
//!
//! No call waits for a batched reply. Credits: a request may wait only if the credits of a request
//! of maximum size are left. No CREDIT_REVOKE takes these. So a rank that lacks credits has sent a
//! later request, whose reply may not wait. Chunks: requests may wait only where all
//! batches of the job can hold at most half of them ([`ImplicitReplies::may_wait`]). A client that
//! repeats an immediate call may wait: a Medium in pieces is refused while any credit is in use,
//! if those that are free are too few. No batch leaves while a handler runs, which `outbox` relies
//! on.

use super::config::Config;
use super::credits;
use super::message::MAX_ARGS;
use super::reply_token::ReplyToken;
use super::sync::ParLock;
use crate::rank::JobRank;
use core::sync::atomic::{AtomicU32, Ordering};

/// Most replies of a batch.
const MOST: usize = 15;

/// Most polls that a batch waits for.
pub(super) const PATIENCE: u32 = 32;

/// The batch of implicit replies, all to one rank.
#[derive(Default)]
pub(super) struct KeptReplies {
    /// Rank of the requester.
    pub(super) to: JobRank,
    /// Credits that the requests used.
    pub(super) credits: u32,
    count: usize,
    /// Their chunks.
    chunks: [i32; MOST],
}

impl KeptReplies {
    /// The chunks of the requests.
    #[inline(always)]
    pub(super) fn chunks(&self) -> &[i32] {
        &self.chunks[..self.count]
    }
}

pub(super) struct ImplicitReplies {
    /// Credits that must be left for a request of ours whose reply may wait; more than exist if
    /// none may.
    least_left: u32,
    kept: ParLock<KeptReplies>,
    /// Polls since the first reply of the batch, that one counted; 0 if the batch is empty. A hint
    /// for all but the holder of the lock.
    age: AtomicU32,
}

impl ImplicitReplies {
    pub(super) fn new(config: &Config) -> Self {
        let kept = MOST as u64 * u64::from(config.nodes);
        let waits = config.at_once && 2 * kept <= u64::from(config.sb_chunks);
        ImplicitReplies {
            least_left: if waits { credits::MIN_CREDITS } else { u32::MAX },
            kept: ParLock::new(config.par(), KeptReplies::default()),
            age: AtomicU32::new(0),
        }
    }

    /// Whether the implicit reply may wait to a request of ours that leaves this many credits.
    #[inline(always)]
    pub(super) fn may_wait(&self, left: u16) -> bool {
        u32::from(left) >= self.least_left
    }

    /// Adds the reply to the request of this token to the batch. False if another thread uses the
    /// batch. `send` sends the batch as one message.
    #[inline(always)]
    pub(super) fn keep(&self, token: &mut ReplyToken, send: impl Fn(&KeptReplies) + Copy) -> bool {
        let Some(mut kept) = self.kept.try_lock() else { return false };
        let used = credits::used(token.credit);
        if kept.count != 0 && kept.to != token.source {
            self.release(&mut kept, send);
        }
        if kept.count == 0 {
            kept.to = token.source;
            self.age.store(1, Ordering::Relaxed);
        }
        let count = kept.count;
        kept.chunks[count] = token.chunk as i32;
        kept.count = count + 1;
        kept.credits += used;
        token.replied = true;
        if kept.count == MOST {
            self.release(&mut kept, send);
        }
        true
    }

    /// A request of this rank may not wait: sends the batch if it is for it.
    #[inline(always)]
    pub(super) fn send_to(&self, rank: JobRank, send: impl Fn(&KeptReplies) + Copy) {
        if self.keeps_any()
            && let Some(mut kept) = self.kept.try_lock()
            && kept.to == rank
        {
            self.release(&mut kept, send);
        }
    }

    /// Whether no reply to this rank is in the batch; false also while the batch leaves.
    pub(super) fn keeps_none_for(&self, rank: JobRank) -> bool {
        self.kept.try_lock().is_some_and(|kept| kept.count == 0 || kept.to != rank)
    }

    /// Whether the batch has any reply.
    #[inline(always)]
    pub(super) fn keeps_any(&self) -> bool {
        self.age.load(Ordering::Relaxed) != 0
    }

    /// To be called by every poll.
    #[inline]
    pub(super) fn poll(&self, send: impl Fn(&KeptReplies) + Copy) {
        let age = self.age.load(Ordering::Relaxed);
        if age == 0 {
            return;
        }
        self.age.store(age + 1, Ordering::Relaxed);
        if age >= PATIENCE
            && let Some(mut kept) = self.kept.try_lock()
        {
            self.release(&mut kept, send);
        }
    }

    /// Sends the batch, if it has any reply.
    #[inline(never)]
    fn release(&self, kept: &mut KeptReplies, send: impl Fn(&KeptReplies) + Copy) {
        self.age.store(0, Ordering::Relaxed);
        if kept.count != 0 {
            send(kept);
            (kept.count, kept.credits) = (0, 0);
        }
    }
}

const _: () = assert!(MOST <= MAX_ARGS + 1);
const _: () = assert!(MOST as u32 * credits::MIN_CREDITS <= credits::MOST_USED);
