//! How ranks without a supervisor end their job: by messages over the system queue of the network.
//!
//! Used by [`super::exit_notice`]; the runtime carries the messages ([`ExitWire`]). Invariant: the
//! decision that a rank holds only changes to one that prevails over it
//! (`ExitDecision::prevails`). So all ranks that took part in all rounds hold the same one.
//!
//! ```text
//! rank r exits, or learns of an exit for the first time:
//!     NOTICE(decision) to r + 1, r + 2, r + 4, ...                 the news, log2 N steps
//! rank r leaves (it exits; or it learned of the exit, and its grace is over):
//!     for k in 0, 1, ...: ROUND(k, decision) to r + 2^k, wait for ROUND(k) of r - 2^k
//! ```
//!
//! The rounds are a dissemination barrier (Hensgen, Finkel, Manber 1988) that carries the decision
//! with it. A rank that never polls enters no round; the others end at their deadline.
//!
//! Everything is atomics, so that a signal handler can go on where the interrupted code was.

use super::decision::{ExitDecision, GRACE_AFTER_SUCCESS};
use crate::rank::JobRank;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::OnceLock;

/// A message between two ranks of a job that ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExitMessage {
    /// The round; `None` for a notice.
    pub round: Option<u8>,
    /// The sender's decision, as a word.
    pub word: u64,
}

/// Carries the messages of the protocol. Called by the thread that exits, maybe in a signal
/// handler that interrupted the network.
pub trait ExitWire: Sync + core::fmt::Debug {
    /// Sends a message without waiting for anything.
    fn send(&self, to: JobRank, message: ExitMessage);
    /// Hands over the messages that have arrived, and drops what belongs to no exit. False if the
    /// queue is locked: by another thread, or by the code that a signal interrupted here.
    fn take(&self, into: &mut dyn FnMut(ExitMessage)) -> bool;
    /// Serves the messages between libraries as a poll does, those of the protocol among them.
    fn serve(&self);
}

/// One rank's part in the protocol.
#[derive(Debug)]
pub struct ExitProtocol {
    rank: JobRank,
    size: u32,
    /// Nanoseconds that the others may take to leave after this rank does.
    timeout: u64,
    wire: OnceLock<&'static dyn ExitWire>,
    /// The decision so far, as a word; 0 for none.
    decision: AtomicU64,
    /// Notices were sent.
    notified: AtomicBool,
    /// The rounds that have arrived, a bit each.
    arrived: AtomicU32,
    /// The rounds that were sent: those below this number.
    sent: AtomicU32,
    /// The system queue was open to this rank, so a message that is not there was not sent.
    could_receive: AtomicBool,
    /// When a rank that learned of the exit must leave; 0 for at once.
    due: AtomicU64,
}

/// A rank whose queue was locked at this many looks has interrupted the code that locked it.
const LOCKED_LOOKS: u32 = 200;

impl ExitProtocol {
    /// The part of a rank in a job of `size`; `timeout` is in nanoseconds.
    pub(super) fn new(rank: JobRank, size: u32, timeout: u64) -> ExitProtocol {
        ExitProtocol {
            rank,
            size,
            timeout,
            wire: OnceLock::new(),
            decision: AtomicU64::new(0),
            notified: AtomicBool::new(false),
            arrived: AtomicU32::new(0),
            sent: AtomicU32::new(0),
            could_receive: AtomicBool::new(false),
            due: AtomicU64::new(0),
        }
    }

    /// Connects the rank with the others; before, it is alone with its exit.
    pub fn connect(&self, wire: &'static dyn ExitWire) {
        let _ = self.wire.set(wire);
    }

    pub(super) fn wire(&self) -> Option<&'static dyn ExitWire> {
        self.wire.get().copied()
    }

    fn rounds(&self) -> u32 {
        u32::BITS - (self.size - 1).leading_zeros()
    }

    fn ahead(&self, round: u32) -> JobRank {
        JobRank(((u64::from(self.rank.0) + (1 << round)) % u64::from(self.size)) as u32)
    }

    fn behind(&self, round: u32) -> JobRank {
        let size = u64::from(self.size);
        JobRank(((u64::from(self.rank.0) + size - (1 << round)) % size) as u32)
    }

    /// The decision so far.
    pub(super) fn decision(&self) -> Option<ExitDecision> {
        ExitDecision::unpack(self.decision.load(Ordering::Acquire)).unwrap_or_default()
    }

    /// Adds a decision to the one so far.
    pub(super) fn add(&self, new: ExitDecision) {
        let mut held = self.decision.load(Ordering::Acquire);
        while ExitDecision::unpack(held).unwrap_or_default().is_none_or(|h| new.prevails(h)) {
            let (acquire, both) = (Ordering::Acquire, Ordering::AcqRel);
            match self.decision.compare_exchange(held, new.pack(), both, acquire) {
                Ok(_) => return,
                Err(other) => held = other,
            }
        }
    }

    /// Takes a message; the decision in it. A word that is no decision counts as a failure of the
    /// job.
    pub(super) fn receive(&self, message: ExitMessage) -> Option<ExitDecision> {
        let decision =
            ExitDecision::unpack(message.word).unwrap_or(Some(ExitDecision::FAILURE))?;
        self.add(decision);
        self.could_receive.store(true, Ordering::Release);
        if let Some(round) = message.round
            && u32::from(round) < self.rounds()
        {
            self.arrived.fetch_or(1 << round, Ordering::AcqRel);
        }
        Some(decision)
    }

    /// Sends the decision to the ranks ahead, once.
    pub(super) fn notify(&self) {
        let Some(wire) = self.wire() else { return };
        if !self.notified.swap(true, Ordering::AcqRel) {
            for round in 0..self.rounds() {
                self.send(wire, round, None);
            }
        }
    }

    fn send(&self, wire: &dyn ExitWire, ahead: u32, round: Option<u8>) {
        let word = self.decision.load(Ordering::Acquire);
        wire.send(self.ahead(ahead), ExitMessage { round, word });
    }

    /// Sets when this rank must leave.
    pub(super) fn set_due(&self, at: u64) {
        self.due.store(at, Ordering::Release);
    }

    /// Whether this rank must leave now if it must leave.
    pub(super) fn is_due(&self) -> bool {
        let due = self.due.load(Ordering::Acquire);
        due == 0 || sys::clock::now_ns() >= due
    }

    /// Sends and receives as far as possible without waiting; whether all rounds are over. A rank
    /// that is `deaf` sends the messages of all rounds, so that the others can leave.
    fn advance(&self, wire: &dyn ExitWire, deaf: bool) -> bool {
        let readable = wire.take(&mut |message| {
            self.receive(message);
        });
        self.could_receive.fetch_or(readable, Ordering::AcqRel);
        loop {
            let sent = self.sent.load(Ordering::Acquire);
            let is_open = sent > 0 && self.arrived.load(Ordering::Acquire) & 1 << (sent - 1) == 0;
            if is_open && !deaf || sent == self.rounds() {
                return !is_open;
            }
            // First the count: a signal handler that goes on here sends no round twice.
            self.sent.store(sent + 1, Ordering::Release);
            self.send(wire, sent, Some(sent as u8));
        }
    }

    /// Waits for the other ranks to leave too, until the deadline. The first rank that is missing;
    /// `None` if all have left, or if this rank was never connected with the others.
    pub(super) fn await_others(&self) -> Option<JobRank> {
        let wire = self.wire()?;
        let grace = self.decision().map_or(GRACE_AFTER_SUCCESS, ExitDecision::grace_ns);
        let end = sys::clock::now_ns() + grace + self.timeout;
        let mut looks = 0u32;
        while !self.advance(wire, looks >= LOCKED_LOOKS && !self.could_receive()) {
            if sys::clock::now_ns() >= end {
                // On a busy machine there were fewer looks.
                if !self.could_receive() {
                    self.advance(wire, true);
                }
                return Some(self.behind(self.sent.load(Ordering::Acquire) - 1));
            }
            looks = looks.saturating_add(1);
            sys::thread::yield_or_sleep(looks, 100);
        }
        None
    }

    fn could_receive(&self) -> bool {
        self.could_receive.load(Ordering::Acquire)
    }

    /// Whether not even the first message of the rank behind was sent: no rank but that one can be
    /// the reason.
    pub(super) fn is_silent_behind(&self) -> bool {
        self.could_receive() && self.arrived.load(Ordering::Acquire) & 1 == 0
    }

    /// The longest time that [`ExitProtocol::await_others`] may take, in microseconds.
    pub(super) fn longest_us(&self) -> u64 {
        (GRACE_AFTER_SUCCESS + self.timeout) / 1000
    }
}

#[cfg(test)]
mod tests {
    use super::super::decision::ExitCause;
    use super::*;
    use std::sync::Mutex;

    /// Ranks from this one on receive nothing.
    const DEAF: usize = 1000;

    /// A network of ranks of one process; messages to ranks that are dead are lost.
    #[derive(Debug, Default)]
    struct Mail(Mutex<Vec<Vec<ExitMessage>>>);

    #[derive(Debug)]
    struct Post(&'static Mail, usize);

    impl ExitWire for Post {
        fn send(&self, to: JobRank, message: ExitMessage) {
            self.0.0.lock().unwrap()[to.index()].push(message);
        }
        fn take(&self, into: &mut dyn FnMut(ExitMessage)) -> bool {
            if self.1 >= DEAF {
                return false;
            }
            let messages = std::mem::take(&mut self.0.0.lock().unwrap()[self.1]);
            messages.into_iter().for_each(into);
            true
        }
        fn serve(&self) {}
    }

    fn job(size: u32, timeout: u64) -> Vec<&'static ExitProtocol> {
        let mail: &'static Mail = Box::leak(Box::default());
        mail.0.lock().unwrap().resize_with(size as usize, Vec::new);
        (0..size)
            .map(|rank| {
                let p: &'static _ =
                    Box::leak(Box::new(ExitProtocol::new(JobRank(rank), size, timeout)));
                p.connect(Box::leak(Box::new(Post(mail, rank as usize))));
                p
            })
            .collect()
    }

    fn exit_of(rank: u32, code: i32) -> ExitDecision {
        ExitDecision::new(code, ExitCause::Exit, Some(JobRank(rank)))
    }

    /// The ranks leave in different orders; some of them decide at the same time.
    #[test]
    fn all_ranks_agree_on_what_prevails() {
        for size in (1..18).chain([64, 100]) {
            for (codes, wins) in [([0, 0, 0], 0), ([0, 7, 5], 7), ([4, 0, 9], 4)] {
                let ranks = job(size as u32, 0);
                for (i, code) in codes.into_iter().enumerate().take(size) {
                    let rank = i * (size - 1) / 2;
                    ranks[rank].add(exit_of(rank as u32, code));
                }
                let wins = if size == 1 { codes[0] } else { wins };
                let mut open: Vec<_> = ranks.iter().collect();
                for turn in 0.. {
                    if open.is_empty() {
                        break;
                    }
                    assert!(turn < 100, "{} of {size} ranks remain", open.len());
                    let at = turn * 7 % open.len();
                    open.rotate_left(at);
                    open.retain(|p| !p.advance(p.wire().unwrap(), false));
                }
                for p in &ranks {
                    assert_eq!(p.decision().map(|d| d.code), Some(wins), "{size} {codes:?}");
                }
            }
        }
    }

    /// The news of an exit reaches every rank that polls, each by a message of another.
    #[test]
    fn a_notice_reaches_all_ranks() {
        for size in [1, 2, 3, 8, 33] {
            let ranks = job(size, 0);
            ranks[size as usize / 2].add(exit_of(size / 2, 3));
            ranks[size as usize / 2].notify();
            for _ in 0..ranks[0].rounds() {
                for p in &ranks {
                    let mut received = false;
                    p.wire().unwrap().take(&mut |m| received |= p.receive(m).is_some());
                    if received {
                        p.notify();
                    }
                }
            }
            assert!(ranks.iter().all(|p| p.decision() == Some(exit_of(size / 2, 3))));
        }
    }

    #[test]
    fn a_rank_that_never_leaves_is_named_by_the_next() {
        for (size, silent) in [(2, 0), (3, 2), (8, 5)] {
            let ranks = job(size, 1000);
            ranks.iter().for_each(|p| p.add(exit_of(1, 3)));
            let others: Vec<_> = ranks.iter().filter(|p| p.rank.0 != silent).collect();
            // Each tries, until none gets further.
            for _ in 0..size {
                others.iter().for_each(|p| {
                    p.advance(p.wire().unwrap(), false);
                });
            }
            let by: Vec<u32> =
                others.iter().filter(|p| p.is_silent_behind()).map(|p| p.rank.0).collect();
            assert_eq!(by, [(silent + 1) % size]);
            let next = ranks[by[0] as usize];
            assert_eq!(next.await_others(), Some(JobRank(silent)));
        }
    }

    /// A rank that can send but not receive lets the others leave, and blames none.
    #[test]
    fn a_deaf_rank_delays_no_other() {
        for size in [2, 3, 8] {
            let ranks = job(size, 1000);
            ranks.iter().for_each(|p| p.add(exit_of(1, 3)));
            let mail = Box::leak(Box::new(Post(Box::leak(Box::default()), DEAF)));
            let deaf = ExitProtocol::new(JobRank(1), size, 0);
            deaf.add(exit_of(1, 3));
            // Its messages go the way of those of rank 1.
            #[derive(Debug)]
            struct Half(&'static Post, &'static dyn ExitWire);
            impl ExitWire for Half {
                fn send(&self, to: JobRank, message: ExitMessage) {
                    self.1.send(to, message);
                }
                fn take(&self, into: &mut dyn FnMut(ExitMessage)) -> bool {
                    self.0.take(into)
                }
                fn serve(&self) {}
            }
            deaf.connect(Box::leak(Box::new(Half(mail, ranks[1].wire().unwrap()))));
            assert!(deaf.await_others().is_some() && !deaf.is_silent_behind());
            let others: Vec<_> = ranks.iter().filter(|p| p.rank.0 != 1).collect();
            for _ in 0..size {
                others.iter().for_each(|p| {
                    p.advance(p.wire().unwrap(), false);
                });
            }
            assert!(others.iter().all(|p| p.advance(p.wire().unwrap(), false)));
        }
    }

    #[test]
    fn a_word_that_is_no_decision_is_a_failure() {
        let ranks = job(3, 0);
        assert_eq!(ranks[0].receive(ExitMessage { round: None, word: 0 }), None);
        ranks[0].receive(ExitMessage { round: Some(40), word: 77 });
        assert_eq!(ranks[0].decision(), Some(ExitDecision::FAILURE));
        assert!(ranks[0].is_silent_behind());
    }

    #[test]
    fn a_rank_that_was_never_connected_is_alone() {
        let p = ExitProtocol::new(JobRank(0), 4, u64::MAX / 2);
        p.add(exit_of(0, 3));
        p.notify();
        assert_eq!((p.await_others(), p.decision()), (None, Some(exit_of(0, 3))));
    }
}
