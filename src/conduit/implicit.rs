//! Implicit replies: those to requests whose handlers sent none. They only return what the
//! request holds, its chunk and its credits, and only a requester that runs short waits for
//! that.
//!
//! Called by `am_send` (what a request says), `am_recv` (a handler sent no reply), `reply`
//! (what such a message returns) and `wait` (polls). Invariant: exactly one message returns
//! the chunk of each such request, and exactly one returns its credits.
//!
//! If the sender still has credits for a request of maximum size after it has sent one, that
//! request is marked [`AmHeader::may_wait`]: its implicit reply may be kept. The receiver then
//! sends all replies that it keeps for one requester as one message, whose arguments name the
//! further chunks. It does so when
//!
//! - the message is full,
//! - a reply to another process is to be kept,
//! - a request of the requester arrives that may not wait,
//! - [`PATIENCE`] polls have passed.
//!
//! No process waits for a kept reply. Credits: when the last request was sent that may wait,
//! those of a request of maximum size were left, and no CREDIT_REVOKE takes them; so a process
//! that is short has an unanswered request that may not wait. Chunks: requests may wait only
//! where all that can be kept everywhere is at most half of them
//! ([`ImplicitReplies::may_wait`]). Nothing that is kept leaves while a handler runs, which
//! `outbox` relies on.

use super::am_recv::malformed;
use super::match_bits::{AmForm, AmHeader};
use super::memory::Body;
use super::portals::Portals;
use super::queue::broken;
use super::sync::ParLock;
use super::{CHUNK, Conduit, Config, Outgoing, ReplyToken, credits};
use crate::rank::JobRank;
use core::sync::atomic::{AtomicU32, Ordering};
use sys::peer::Peer;

/// Most replies of one message.
const MOST: usize = 15;

/// Polls during which a reply is kept at most.
pub(super) const PATIENCE: u32 = 32;

/// The replies that are kept, all to one process.
#[derive(Default)]
struct Kept {
    /// Rank of the requester.
    to: JobRank,
    /// Credits that the requests used.
    credits: u32,
    count: usize,
    /// Their chunks.
    chunks: [i32; MOST],
}

pub(super) struct ImplicitReplies {
    /// Credits that must be left for a request of ours whose reply may wait; more than exist if
    /// none may.
    least_left: u32,
    kept: ParLock<Kept>,
    /// Polls since the first kept reply, that one counted; 0 if none is kept. A hint for all but
    /// the holder of the lock.
    age: AtomicU32,
}

impl ImplicitReplies {
    pub(super) fn new(config: &Config) -> Self {
        let kept = MOST as u64 * u64::from(config.nodes);
        let waits = config.at_once && 2 * kept <= u64::from(config.sb_chunks);
        ImplicitReplies {
            least_left: if waits { credits::MIN_CREDITS } else { u32::MAX },
            kept: ParLock::new(config.par(), Kept::default()),
            age: AtomicU32::new(0),
        }
    }

    /// Whether the implicit reply may wait to a request of ours that leaves so many credits.
    #[inline(always)]
    pub(super) fn may_wait(&self, left: u16) -> bool {
        u32::from(left) >= self.least_left
    }
}

impl<P: Portals> Conduit<P> {
    /// Keeps the reply to the request of this token. False if another thread uses the kept
    /// replies.
    #[inline]
    pub(super) fn keep_reply(&self, token: &mut ReplyToken) -> bool {
        let Some(mut kept) = self.implicit.kept.try_lock() else { return false };
        let used = credits::used(token.credit);
        if kept.count != 0 && kept.to != token.source {
            self.send_kept(&mut kept);
        }
        if kept.count == 0 {
            kept.to = token.source;
            self.implicit.age.store(1, Ordering::Relaxed);
        }
        let count = kept.count;
        kept.chunks[count] = token.chunk as i32;
        kept.count = count + 1;
        kept.credits += used;
        token.replied = true;
        if kept.count == MOST {
            self.send_kept(&mut kept);
        }
        true
    }

    /// A request of this process may not wait: sends what is kept for it.
    #[inline(always)]
    pub(super) fn send_replies_to(&self, node: JobRank) {
        if self.keeps_replies()
            && let Some(mut kept) = self.implicit.kept.try_lock()
            && kept.to == node
        {
            self.send_kept(&mut kept);
        }
    }

    /// Whether any reply is kept.
    #[inline(always)]
    pub(super) fn keeps_replies(&self) -> bool {
        self.implicit.age.load(Ordering::Relaxed) != 0
    }

    /// To be called by every poll.
    #[inline]
    pub(super) fn replies_age(&self) {
        let age = self.implicit.age.load(Ordering::Relaxed);
        if age == 0 {
            return;
        }
        self.implicit.age.store(age + 1, Ordering::Relaxed);
        if age >= PATIENCE
            && let Some(mut kept) = self.implicit.kept.try_lock()
        {
            self.send_kept(&mut kept);
        }
    }

    /// Sends the kept replies, if there are any: as one message if the network takes it within the
    /// call.
    #[inline(never)]
    fn send_kept(&self, kept: &mut Kept) {
        self.implicit.age.store(0, Ordering::Relaxed);
        let (count, used) = (core::mem::take(&mut kept.count), core::mem::take(&mut kept.credits));
        let Some((&first, others)) = kept.chunks[..count].split_first() else { return };
        let (credit, _) = self.credits.reply_field(kept.to, used as u16);
        let header = |args: &[i32], credit| {
            AmHeader {
                form: AmForm::Short,
                request: false,
                may_wait: false,
                copy: false,
                handler: 0,
                numargs: args.len() as u8,
                chunk: 0,
                source: self.me,
                extent: 0,
                credit,
            }
            .pack()
        };
        let to = |(bits, data), chunk: i32| {
            self.am_target(kept.to, bits, chunk as u32 as usize * CHUNK, data)
        };
        let m = Outgoing::short(0, others);
        if self.send_at_once(AmForm::Short, 0, &m, &to(header(others, credit), first)) {
            return;
        }
        for (i, &chunk) in kept.chunks[..count].iter().enumerate() {
            let to = to(header(&[], if i == 0 { credit } else { 0 }), chunk);
            let nothing = self.reqsb.silent_part(0, 0);
            self.portals.put(nothing, false, &to).unwrap_or_else(|e| broken(e));
        }
    }

    /// Implicit replies have arrived together: gives back the chunks that the first of them
    /// names. The caller has that of the first one.
    #[cold]
    #[inline(never)]
    pub(super) fn give_back_others(&self, source: JobRank, numargs: u8, body: Body<'_>) {
        let Some(chunks) = body.args(numargs.into()) else {
            malformed(numargs.into(), source.0.into())
        };
        for &chunk in chunks {
            let Some(chunk) = self.reqsb.chunk_of(Peer::new(chunk as u32)) else {
                malformed(chunk as u64, source.0.into())
            };
            self.outbox.handled(chunk);
            self.reqsb.give(chunk);
        }
    }
}

const _: () = assert!(MOST <= super::MAX_ARGS + 1);
const _: () = assert!(MOST as u32 * credits::MIN_CREDITS <= credits::MOST_USED);
