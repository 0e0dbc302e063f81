//! Implicit replies: those to requests whose handlers sent none. All that they do is to give back what the request holds, its chunk and
//! its credits, and nobody waits for that but a requester who runs short.
//!
//! So a request that leaves its sender enough credits for a largest one says that its implicit reply may wait ([`AmHeader::may_wait`]).
//! The receiver keeps it, and sends those of the same requester as one message, whose arguments name the further chunks: when the
//! message is full, when a reply to somebody else is to be kept, when a request of the requester comes that may not wait, and at the
//! latest at the [`PATIENCE`]th poll.
//!
//! Nobody waits for a reply that is kept. Credits: when the last request was sent that may wait, those of a largest one were left, and no
//! CREDIT_REVOKE takes them; so whoever is short has an unanswered request that may not wait. Chunks: requests only say that they may wait where all
//! that can be kept everywhere is no more than half of them ([`ImplicitReplies::may_wait`]).
//!
//! Called by `am_send` (what a request says), `am_recv` (whose handler sent no reply), `reply` (what such a message gives back) and
//! `wait` (polls). Nothing that is kept leaves while a handler runs, which `outbox` relies on. Invariant: each request whose handler sent no reply is named by one message, and its credits by one.

use super::am_recv::{Body, malformed};
use super::am_send::args_bytes;
use super::match_bits::{AmForm, AmHeader};
use super::portals::Portals;
use super::queue::broken;
use super::sync::ParLock;
use super::{Conduit, Config, Outgoing, ReplyToken, credits};
use core::sync::atomic::{AtomicU32, Ordering};

/// Most replies of one message: more credits it could not tell of.
const MOST: usize = credits::MOST_USED as usize;

/// Polls during which a reply is kept at most.
pub(super) const PATIENCE: u32 = 32;

/// The replies that are kept, all to one process.
#[derive(Default)]
struct Kept {
    /// Rank of the requester.
    to: u32,
    /// Credits that the requests used.
    credits: u32,
    count: usize,
    /// Offsets of their chunks.
    chunks: [i32; MOST],
}

pub(super) struct ImplicitReplies {
    /// Credits that must be left for a request of ours whose reply may wait; more than there are if none may.
    least_left: u32,
    kept: ParLock<Kept>,
    /// Polls since the first of those that are kept, itself counted; 0 if none is. A hint for all but the holder of the lock.
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

    /// Whether the implicit reply to a request of ours may wait that leaves us so many credits.
    #[inline(always)]
    pub(super) fn may_wait(&self, left: u16) -> bool {
        u32::from(left) >= self.least_left
    }
}

impl<P: Portals> Conduit<P> {
    /// Keeps the reply to a request that has the token's chunk and credits. False if another thread is busy with those that are kept.
    #[inline]
    pub(super) fn keep_reply(&self, token: &mut ReplyToken) -> bool {
        let Some(mut kept) = self.implicit.kept.try_lock() else { return false };
        let used = credits::used(token.credit);
        if kept.count != 0 && (kept.to != token.source || kept.credits + used > credits::MOST_USED)
        {
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

    /// A request of this process may not wait: what is kept for it is sent.
    #[inline(always)]
    pub(super) fn send_replies_to(&self, node: u32) {
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

    /// Sends the replies that are kept, if there are any, as one message if the network takes it within the call.
    #[inline(never)]
    fn send_kept(&self, kept: &mut Kept) {
        self.implicit.age.store(0, Ordering::Relaxed);
        let (count, used) = (core::mem::take(&mut kept.count), core::mem::take(&mut kept.credits));
        let Some((&first, others)) = kept.chunks[..count].split_first() else { return };
        let (credit, _) = self.credits.reply_byte(kept.to, used as u8);
        let to = self.peers[kept.to as usize];
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
                length: 0,
                credit,
                place: 0,
            }
            .pack()
        };
        let (bits, data) = header(others, credit);
        let m = Outgoing::short(0, others);
        // SAFETY: a message without payload.
        if unsafe { self.send_at_once(AmForm::Short, &m, to, bits, first as u32 as usize, data) } {
            return;
        }
        for (i, &chunk) in kept.chunks[..count].iter().enumerate() {
            let (bits, data) = header(&[], if i == 0 { credit } else { 0 });
            self.portals
                .put(
                    self.reqsb.silent,
                    0,
                    0,
                    false,
                    to,
                    self.config.pt_am,
                    bits,
                    chunk as u32 as usize,
                    data,
                )
                .unwrap_or_else(|e| broken(e));
        }
    }

    /// Implicit replies have arrived together: gives back the chunks that the first of them names, whose own the caller has.
    #[cold]
    #[inline(never)]
    pub(super) fn give_back_others(&self, source: u32, numargs: u8, body: Body) {
        if args_bytes(numargs.into()) > body.len {
            malformed(numargs.into(), source.into());
        }
        // SAFETY: the body, which is aligned and ours, holds so many arguments.
        let chunks = unsafe { core::slice::from_raw_parts(body.at.cast::<i32>(), numargs.into()) };
        for &chunk in chunks {
            let Some(chunk) = self.reqsb.chunk_at(chunk as u32 as usize) else {
                malformed(chunk as u64, source.into())
            };
            self.outbox.handled(chunk);
            self.reqsb.give(chunk);
        }
    }
}

const _: () = assert!(MOST <= super::MAX_ARGS + 1);
