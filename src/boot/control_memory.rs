//! The control memory of a host: the exit decision and one record per rank, shared by the ranks
//! and their supervisor.
//!
//! Written by [`super::exit_notice`] in a rank and by the supervisor. Invariants: the decision
//! word goes from 0 to a decision; one that is final never changes again, so the first failure
//! wins. The order word is 0 until the supervisor copies the decision there after a grace period.
//! Ranks exit on the order only. So a rank about to finish (to print results after the last
//! barrier, say) is not interrupted by a peer that finished first. Before, the word may hold the
//! decision as a request, without the mark that makes it final. If either word is overwritten with
//! a value that is no decision, the process that finds it decides that the job fails, and reports
//! it. A process that has seen a decision keeps it, and restores it when the word reads as 0.
//!
//! ```text
//! cache line 0   magic, cookie, ranks
//! cache line 1   decision          set by compare-and-swap until it is final
//! cache line 2   order to exit     polled by every rank
//! cache line 3   status request, requests made so far
//! cache line 4   errors that ranks print (error_folds)
//! cache line 5+  per rank: pid, messages sent, armed, answered request, answer's length, error
//!                withheld, prints its stack; in the next line, since when it does nothing but
//!                poll, its polls since, when it last waited and since when; answer
//! ```
//!
//! All words are atomics of 8 bytes. Decision and order have a checksum; the text of an answer is
//! checked when it is read.

use super::decision::{DamagedDecision, ExitCause, ExitDecision};
use super::error::BootError;
use super::error_folds::{self, ErrorClaim};
use super::poll_times::OnlyPolls;
use super::wait_record::WaitRecord;
use crate::rank::LocalRank;
use crate::report;
use core::sync::atomic::{AtomicU64, Ordering};
use std::os::fd::BorrowedFd;
use sys::memory::{self, Mapping, MemFd};
use sys::signal::Signal;

const MAGIC: u64 = 0x6761_736e_6574_0008;

/// Words of a cache line.
const LINE: usize = 8;
const HEADER: usize = 5 * LINE;
/// Bytes of an answer.
const ANSWER_BYTES: usize = 320;
/// Words of a record: two cache lines, then the answer.
const RECORD: usize = 2 * LINE + ANSWER_BYTES / 8;

/// Indices of the header's words.
const MAGIC_WORD: usize = 0;
const COOKIE_WORD: usize = 1;
const SIZE_WORD: usize = 2;
const DECISION_WORD: usize = LINE;
const ORDER_WORD: usize = 2 * LINE;
const REQUEST_WORD: usize = 3 * LINE;
const REQUESTS_WORD: usize = 3 * LINE + 1;
const ERROR_WORDS: core::ops::Range<usize> = 4 * LINE..4 * LINE + error_folds::SLOTS;

/// Bytes of the control memory of a host with this many ranks.
fn bytes(size: u32) -> usize {
    (HEADER + size as usize * RECORD) * 8
}

/// The record of one rank.
#[derive(Clone, Copy, Debug)]
struct RankRecord {
    /// Process that called `gasnet_init` as this rank; 0 before.
    pid: &'static AtomicU64,
    /// Messages that the supervisor sent to this rank; raised when the call that sent one
    /// returned.
    sent: &'static AtomicU64,
    /// 1 once the rank has its handler for [`sys::signal::notice`].
    armed: &'static AtomicU64,
    /// The last status request that the rank answered.
    answered: &'static AtomicU64,
    /// Bytes of the answer.
    length: &'static AtomicU64,
    /// The error that the rank has withheld.
    withheld: &'static AtomicU64,
    /// 1 while the rank prints the stack of its failure.
    printing: &'static AtomicU64,
    /// Since when the rank, requested to exit, does nothing but poll; 0 before. Its polls since.
    polls_since: &'static AtomicU64,
    polls: &'static AtomicU64,
    /// When the rank waits.
    waits: WaitRecord,
    answer: &'static [AtomicU64],
}

/// The control memory as one process maps it, until the process ends.
#[derive(Clone, Copy, Debug)]
pub struct ControlMemory {
    words: &'static [AtomicU64],
    size: u32,
    /// The decision that this process has seen, in memory of its own; 0 before.
    seen: &'static AtomicU64,
}

/// The decision in a word that goes from 0 to one. If the word is damaged, that is a failure,
/// which one process reports. Async-signal-safe.
fn valid(word: &AtomicU64, name: &str) -> Option<ExitDecision> {
    loop {
        let DamagedDecision(now) = match ExitDecision::unpack(word.load(Ordering::Acquire)) {
            Ok(decision) => return decision,
            Err(damaged) => damaged,
        };
        let failure = ExitDecision::FAILURE.pack();
        if word.compare_exchange(now, failure, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            report::damage_line(format_args!("the word of {name} was overwritten with {now:#x}"));
            return Some(ExitDecision::FAILURE);
        }
    }
}

impl ControlMemory {
    fn over(mapping: Mapping, size: u32) -> ControlMemory {
        let seen = Box::leak(Box::new(AtomicU64::new(0)));
        ControlMemory { words: mapping.leak_words(), size, seen }
    }

    /// New control memory, for a supervisor; `cookie` distinguishes jobs.
    pub fn create(size: u32, cookie: u64) -> Result<(MemFd, ControlMemory), BootError> {
        let file = MemFd::create(c"gasnet-control");
        let made = file.and_then(|f| {
            f.reserve(0, bytes(size) as u64).and_then(|()| Ok((f.map(0, bytes(size))?, f)))
        });
        let (mapping, file) =
            made.map_err(|e| BootError::system("cannot create the control memory", &e))?;
        let c = ControlMemory::over(mapping, size);
        c.words[SIZE_WORD].store(size.into(), Ordering::Relaxed);
        c.words[COOKIE_WORD].store(cookie, Ordering::Relaxed);
        // Release pairs with the Acquire in `open`.
        c.words[MAGIC_WORD].store(MAGIC, Ordering::Release);
        Ok((file, c))
    }

    /// The control memory of the job with this cookie, for a rank.
    pub fn open(file: BorrowedFd<'_>, size: u32, cookie: u64) -> Result<ControlMemory, BootError> {
        let stale = || {
            BootError::new(
                "the environment says that a launcher started this process, but the inherited \
                 descriptors are missing or of another version of the library",
                "Start ranks by the gasnetrun of the library that the program is linked with, and \
                 close no inherited descriptor before gasnet_init; otherwise unset \
                 GASNET_SPAWN_FDS.",
            )
        };
        if memory::len(file).ok() != Some(bytes(size) as u64) {
            return Err(stale());
        }
        let mapping = Mapping::shared(file, 0, bytes(size))
            .map_err(|e| BootError::system("cannot map the control memory", &e))?;
        let c = ControlMemory::over(mapping, size);
        if c.words[MAGIC_WORD].load(Ordering::Acquire) != MAGIC
            || c.words[SIZE_WORD].load(Ordering::Relaxed) != u64::from(size)
            || c.words[COOKIE_WORD].load(Ordering::Relaxed) != cookie
        {
            return Err(stale());
        }
        Ok(c)
    }

    /// Memory of the same form for a job of one rank without a supervisor.
    pub fn private() -> Result<ControlMemory, BootError> {
        let mapping = Mapping::anonymous(bytes(1))
            .map_err(|e| BootError::system("cannot map memory", &e))?;
        Ok(ControlMemory::over(mapping, 1))
    }

    /// Ranks on this host.
    pub fn size(&self) -> u32 {
        self.size
    }

    fn record(&self, rank: LocalRank) -> Option<RankRecord> {
        let begin = HEADER + rank.index().checked_mul(RECORD)?;
        let (head, answer) = self.words.get(begin..begin + RECORD)?.split_at(2 * LINE);
        let (
            [pid, sent, armed, answered, length, withheld, printing, ..],
            [polls_since, polls, waited, waits_since, ..],
        ) = head.split_at(LINE)
        else {
            return None;
        };
        Some(RankRecord {
            pid,
            sent,
            armed,
            answered,
            length,
            withheld,
            printing,
            polls_since,
            polls,
            waits: WaitRecord { last: waited, since: waits_since },
            answer,
        })
    }

    /// The order to exit: 0, or a decision; one that is not final is a request.
    pub(super) fn order(&self) -> &'static AtomicU64 {
        &self.words[ORDER_WORD]
    }

    /// Reports an order that is none, and makes it one; keeps the decision in it.
    /// Async-signal-safe.
    pub(super) fn check_order(&self) {
        // A request repeats a decision that is in its own word.
        if let Some(decision) = valid(self.order(), "the order to exit").filter(|d| d.is_final) {
            self.keep(decision);
        }
    }

    /// Keeps a decision that this process has seen, unless it keeps a final one.
    fn keep(&self, decision: ExitDecision) {
        let is_open = |kept| !matches!(ExitDecision::unpack(kept), Ok(Some(d)) if d.is_final);
        let _ = self.seen.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |kept| {
            is_open(kept).then(|| decision.pack())
        });
    }

    /// Makes this process the rank; fails with the process that was faster.
    pub(super) fn claim(&self, rank: LocalRank, pid: u32) -> Result<(), Option<u32>> {
        let record = self.record(rank).ok_or(None)?;
        let old = record.pid.compare_exchange(0, pid.into(), Ordering::AcqRel, Ordering::Acquire);
        old.map(drop).map_err(|other| Some(other as u32))
    }

    /// The process that called `gasnet_init` as this rank; `None` before. Async-signal-safe.
    pub fn pid_of(&self, rank: LocalRank) -> Option<u32> {
        let pid = self.record(rank)?.pid.load(Ordering::Acquire);
        (pid != 0).then_some(pid as u32)
    }

    /// The decision to end the job, if it was made; ranks may have exited or still be working.
    /// Async-signal-safe.
    pub fn decision(&self) -> Option<ExitDecision> {
        let word = &self.words[DECISION_WORD];
        let seen = self.seen.load(Ordering::Relaxed);
        if seen != 0 {
            // The word is 0 only if it was overwritten.
            let _ = word.compare_exchange(0, seen, Ordering::AcqRel, Ordering::Acquire);
        }
        let decision = valid(word, "the decision to end the job");
        decision.inspect(|&d| self.keep(d))
    }

    /// Decides that the job ends, unless a decision holds: a final one, or any if this one is not
    /// final. Returns the decision that holds. Async-signal-safe.
    pub fn decide(&self, new: ExitDecision) -> ExitDecision {
        loop {
            let held = self.decision();
            if let Some(held) = held.filter(|h| h.is_final || !new.is_final) {
                return held;
            }
            if self.replace(held, new) {
                return new;
            }
        }
    }

    /// Makes the decision final that holds, if there is one, and returns it. Async-signal-safe.
    fn make_final(&self) -> Option<ExitDecision> {
        loop {
            let held = self.decision()?;
            let new = ExitDecision { is_final: true, ..held };
            if held.is_final || self.replace(Some(held), new) {
                return Some(new);
            }
        }
    }

    /// Replaces the decision that holds, unless another process has done so.
    fn replace(&self, held: Option<ExitDecision>, new: ExitDecision) -> bool {
        // AcqRel: a process that sees the decision also sees what was written before it.
        let is_replaced = self.words[DECISION_WORD]
            .compare_exchange(
                held.map_or(0, ExitDecision::pack),
                new.pack(),
                Ordering::AcqRel,
                Ordering::Acquire,
            )
            .is_ok();
        if is_replaced {
            self.keep(new);
        }
        is_replaced
    }

    /// Decides on behalf of the supervisor.
    pub fn decide_failure(&self, code: i32) {
        self.decide(ExitDecision { code, ..ExitDecision::FAILURE });
    }

    /// Decides that a signal to the supervisor ends the job; returns whether that holds.
    pub fn decide_signal(&self, signal: Signal) -> bool {
        let new = ExitDecision::new(128 + signal.number(), ExitCause::Signal, None);
        self.decide(new) == new
    }

    /// Requests the ranks to exit that do nothing but poll, if it was decided that the job ends
    /// and no order was given. Takes the place of an earlier request. Called by the supervisor.
    pub fn request_exit(&self) {
        if let Some(decision) = self.decision() {
            let request = ExitDecision { is_final: false, ..decision }.pack();
            let is_open = |word| match ExitDecision::unpack(word) {
                Ok(held) => held.is_none_or(|d| !d.is_final),
                Err(_) => false,
            };
            let _ = self.order().fetch_update(Ordering::AcqRel, Ordering::Acquire, |word| {
                is_open(word).then_some(request)
            });
        }
    }

    /// Records in what time the rank has done nothing but poll. Async-signal-safe.
    pub(super) fn set_only_polls(&self, rank: LocalRank, polled: OnlyPolls) {
        if let Some(record) = self.record(rank) {
            record.polls_since.store(polled.since, Ordering::Relaxed);
            // Pairs with the Acquire in `only_polls`: the time read there is not an older one.
            record.polls.store(polled.polls, Ordering::Release);
        }
    }

    /// In what time the rank has done nothing but poll, as it said last. Read while the rank
    /// writes it, it may be a newer time with the polls of an older one.
    #[cfg(feature = "hosted")]
    pub(super) fn only_polls(&self, rank: LocalRank) -> Option<OnlyPolls> {
        let record = self.record(rank)?;
        let polls = record.polls.load(Ordering::Acquire);
        let since = record.polls_since.load(Ordering::Relaxed);
        (since != 0).then_some(OnlyPolls { since, polls })
    }

    /// When the rank waits, as it says.
    pub(super) fn waits_of(&self, rank: LocalRank) -> Option<WaitRecord> {
        self.record(rank).map(|record| record.waits)
    }

    /// Whether every rank but this one waits at the time `now`, and has not computed since
    /// `since`.
    pub(super) fn others_wait(&self, but: LocalRank, since: u64, now: u64) -> bool {
        let mut others = (0..self.size).map(LocalRank).filter(|&rank| rank != but);
        others.all(|rank| self.waits_of(rank).is_some_and(|waits| waits.has_waited(since, now)))
    }

    /// How long the ranks have had a CPU, in nanoseconds, but for those that the system does not
    /// show.
    pub(super) fn cpu_ns(&self) -> u64 {
        let pids = (0..self.size).filter_map(|rank| self.pid_of(LocalRank(rank)));
        pids.filter_map(sys::clock::cpu_ns).sum()
    }

    /// Orders the ranks to exit, if it was decided that the job ends; the decision is final then.
    /// Called by the supervisor; without a supervisor, by the rank.
    pub fn order_exit(&self) {
        let decision = self.make_final().map_or(0, ExitDecision::pack);
        self.order().store(decision, Ordering::Release);
    }

    /// Gives the order again if it was given and the word was overwritten since; returns whether
    /// it was. Called by the supervisor.
    pub fn restore_order(&self) -> bool {
        let decision = self.decision().map_or(0, ExitDecision::pack);
        self.order().swap(decision, Ordering::AcqRel) != decision
    }

    /// Says how many messages were sent to this rank, after the supervisor's call that sent the
    /// last of them has returned. The supervisor counts, so that one that was overwritten is right
    /// again after the next message.
    pub fn set_sent(&self, rank: LocalRank, messages: u64) {
        if let Some(record) = self.record(rank) {
            // Release pairs with the Acquire in `sent_to`.
            record.sent.store(messages, Ordering::Release);
        }
    }

    /// Messages that the supervisor has counted for this rank.
    pub fn sent_to(&self, rank: LocalRank) -> u64 {
        self.record(rank).map_or(0, |r| r.sent.load(Ordering::Acquire))
    }

    /// Records that the rank handles [`sys::signal::notice`], which would kill it before.
    pub(super) fn set_armed(&self, rank: LocalRank) {
        if let Some(record) = self.record(rank) {
            record.armed.store(1, Ordering::Release);
        }
    }

    /// Whether a rank handles [`sys::signal::notice`], which requests its status.
    pub fn is_armed(&self, rank: LocalRank) -> bool {
        self.record(rank).is_some_and(|r| r.armed.load(Ordering::Acquire) != 0)
    }

    /// Records whether a rank prints the stack of its failure. Async-signal-safe.
    pub(super) fn set_printing_stack(&self, rank: LocalRank, on: bool) {
        if let Some(record) = self.record(rank) {
            record.printing.store(on.into(), Ordering::Relaxed);
        }
    }

    /// Whether a rank says that it prints the stack of its failure.
    #[cfg(feature = "hosted")]
    pub(super) fn is_printing_stack(&self, rank: LocalRank) -> bool {
        self.record(rank).is_some_and(|r| r.printing.load(Ordering::Relaxed) != 0)
    }

    /// Opens a request for the status of all ranks; returns its number. Called by the supervisor.
    /// `is_last`: the job ends when they have answered.
    pub fn open_status_request(&self, is_last: bool) -> u64 {
        let n = self.words[REQUESTS_WORD].fetch_add(1, Ordering::Relaxed) + 1;
        let number = n << 1 | u64::from(is_last);
        self.words[REQUEST_WORD].store(number, Ordering::Release);
        number
    }

    /// Whether the job ends when the ranks have answered the request with this number.
    pub(super) fn is_last_request(number: u64) -> bool {
        number & 1 != 0
    }

    /// Closes the request: a rank that has not answered yet does not answer any more.
    pub fn close_status_request(&self) {
        self.words[REQUEST_WORD].store(0, Ordering::Release);
    }

    /// Whether this rank is to withhold an error with this hash, because another rank prints it;
    /// otherwise it is to print it. Async-signal-safe.
    pub(super) fn withhold_error(&self, rank: LocalRank, hash: u32, now: u64) -> bool {
        let Some(record) = self.record(rank) else { return false };
        let new = ErrorClaim::new(hash, rank.0, now);
        error_folds::claim(&self.words[ERROR_WORDS], new, self.size)
            .is_some_and(|printed| error_folds::withhold(record.withheld, printed))
    }

    /// The supervisor is to print an error of another host with this hash. The claim of a rank of
    /// this host that prints the same, if one does.
    #[cfg(feature = "hosted")]
    pub(super) fn claim_elsewhere(&self, hash: u32, now: u64) -> Option<ErrorClaim> {
        let new = ErrorClaim::new(hash, error_folds::ELSEWHERE, now);
        error_folds::claim(&self.words[ERROR_WORDS], new, self.size)
    }

    /// The error that a rank has withheld since the last call.
    #[cfg(feature = "hosted")]
    pub(super) fn withheld_error(&self, rank: LocalRank) -> Option<ErrorClaim> {
        error_folds::withheld(self.record(rank)?.withheld, self.size)
    }

    /// The number of the open request that this rank has not answered, if there is one.
    pub(super) fn unanswered_request(&self, rank: LocalRank) -> Option<u64> {
        let request = self.words[REQUEST_WORD].load(Ordering::Acquire);
        let answered = self.record(rank)?.answered.load(Ordering::Relaxed);
        (request != 0 && answered != request).then_some(request)
    }

    /// Stores a rank's answer to a request. Async-signal-safe; one thread of the rank at a time.
    pub(super) fn answer(&self, rank: LocalRank, request: u64, text: &[u8]) {
        let Some(record) = self.record(rank) else { return };
        let length = text.len().min(ANSWER_BYTES);
        for (word, piece) in record.answer.iter().zip(text[..length].chunks(8)) {
            let mut eight = [0; 8];
            eight[..piece.len()].copy_from_slice(piece);
            word.store(u64::from_ne_bytes(eight), Ordering::Relaxed);
        }
        record.length.store(length as u64, Ordering::Relaxed);
        // Release pairs with the Acquire in `answer_of`.
        record.answered.store(request, Ordering::Release);
    }

    /// A rank's answer to this request, if it has answered.
    pub fn answer_of(&self, rank: LocalRank, request: u64) -> Option<String> {
        // Acquire pairs with the Release in `answer`: the answer is complete, and stays until the
        // next request.
        let record =
            self.record(rank).filter(|r| r.answered.load(Ordering::Acquire) == request)?;
        let bytes: Vec<u8> =
            record.answer.iter().flat_map(|w| w.load(Ordering::Relaxed).to_ne_bytes()).collect();
        let length = (record.length.load(Ordering::Relaxed) as usize).min(ANSWER_BYTES);
        let text = String::from_utf8_lossy(&bytes[..length]);
        Some(text.chars().filter(|c| !c.is_control()).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rank::JobRank;
    use std::os::fd::AsFd;

    #[test]
    fn first_exit_wins() {
        let (_file, c) = ControlMemory::create(2, 5).unwrap();
        let first = ExitDecision::new(3, ExitCause::Exit, Some(JobRank(1)));
        assert_eq!(c.decide(first), first);
        assert_eq!(c.decide(ExitDecision { code: 4, ..first }), first);
        assert_eq!(c.order().load(Ordering::Relaxed), 0);
        c.order_exit();
        c.check_order();
        assert_eq!(ExitDecision::unpack(c.order().load(Ordering::Relaxed)), Ok(Some(first)));
    }

    /// A failure takes the place of a success until the order to exit, of a failure never.
    #[test]
    fn a_failure_wins_over_a_success() {
        let by = |code, rank| ExitDecision::new(code, ExitCause::Ended, Some(JobRank(rank)));
        let (supervisor, rank) = supervisor_and_rank();
        rank.decide(by(0, 1));
        assert_eq!(supervisor.decide(by(0, 0)), by(0, 1));
        assert_eq!(supervisor.decide(by(3, 0)), by(3, 0));
        assert_eq!(rank.decide(by(4, 1)), by(3, 0));
        // The word is set back by a rank that knew the success only.
        rank.words[DECISION_WORD].store(0, Ordering::Relaxed);
        assert_eq!(rank.decision(), Some(by(3, 0)));

        let (supervisor, rank) = supervisor_and_rank();
        rank.decide(by(0, 1));
        supervisor.order_exit();
        assert_eq!(rank.decide(by(4, 1)).code, 0);
        assert!(!supervisor.restore_order());
    }

    #[test]
    fn an_overwritten_decision_is_a_failure() {
        for value in [1, 0x2d, u64::MAX] {
            let (_file, c) = ControlMemory::create(2, 5).unwrap();
            c.words[DECISION_WORD].store(value, Ordering::Relaxed);
            let success = ExitDecision::new(0, ExitCause::Exit, Some(JobRank(1)));
            assert_eq!(c.decide(success), ExitDecision::FAILURE);
            assert_eq!(c.decision(), Some(ExitDecision::FAILURE));
            c.order().store(value, Ordering::Relaxed);
            c.check_order();
            assert_eq!(c.order().load(Ordering::Relaxed), ExitDecision::FAILURE.pack());
        }
    }

    /// The same control memory for the supervisor and for a rank.
    fn supervisor_and_rank() -> (ControlMemory, ControlMemory) {
        let (file, supervisor) = ControlMemory::create(2, 5).unwrap();
        (supervisor, ControlMemory::open(file.as_fd(), 2, 5).unwrap())
    }

    #[test]
    fn a_rank_knows_whether_all_others_wait() {
        let (_file, c) = ControlMemory::create(3, 5).unwrap();
        let others_wait = || c.others_wait(LocalRank(0), 50_000_000, 50_000_000);
        for rank in [1, 2] {
            assert!(!others_wait());
            c.waits_of(LocalRank(rank)).unwrap().begin(40_000_000);
        }
        assert!(others_wait() && !c.others_wait(LocalRank(1), 50_000_000, 50_000_000));
        c.waits_of(LocalRank(1)).unwrap().end();
        assert!(!others_wait());
    }

    /// A decision and an order that are set back to 0 hold for a process that has seen them.
    #[test]
    fn a_decision_that_was_seen_is_restored() {
        let (supervisor, rank) = supervisor_and_rank();
        let first = ExitDecision::new(3, ExitCause::Exit, Some(JobRank(1)));
        let other = ExitDecision { code: 4, ..first };
        let decision = &supervisor.words[DECISION_WORD];
        rank.decide(first);
        decision.store(0, Ordering::Relaxed);
        assert_eq!(rank.decide(other), first);
        assert_eq!(supervisor.decision(), Some(first));
        supervisor.order_exit();
        assert!(!supervisor.restore_order());
        supervisor.order().store(0, Ordering::Relaxed);
        decision.store(0, Ordering::Relaxed);
        assert!(supervisor.restore_order());
        assert_eq!(decision.load(Ordering::Relaxed), first.pack());
        assert_eq!(supervisor.order().load(Ordering::Relaxed), first.pack());
    }

    /// A process that has seen the order alone follows it.
    #[test]
    fn an_order_that_was_seen_is_a_decision() {
        let (supervisor, rank) = supervisor_and_rank();
        let first = ExitDecision::new(3, ExitCause::Exit, Some(JobRank(1)));
        supervisor.decide(first);
        supervisor.order_exit();
        rank.check_order();
        rank.words[DECISION_WORD].store(0, Ordering::Relaxed);
        rank.order().store(0, Ordering::Relaxed);
        assert_eq!(rank.decide(ExitDecision::FAILURE), first);
    }

    #[test]
    fn memory_of_another_job_is_refused() {
        let (file, _) = ControlMemory::create(2, 5).unwrap();
        assert!(ControlMemory::open(file.as_fd(), 2, 6).is_err());
        assert!(ControlMemory::open(file.as_fd(), 3, 5).is_err());
        assert!(ControlMemory::open(file.as_fd(), 2, 5).is_ok());
    }
}
