//! How the decision to end the job travels between this rank and its supervisor: through the
//! control memory and the control socket. Without a supervisor, it travels between the ranks
//! (`exit_protocol`).
//!
//! Called by `process::exit`, by every poll of the network, which loads one word, and by the
//! calls of `boot` that wait. Everything that can run in a signal handler says so. Invariant:
//! only the process that joined acts; its forked children are not part of the job.

use super::control_memory::ControlMemory;
use super::control_message::{ControlHead, ControlKind};
use super::control_socket::ControlSocket;
use super::decision::{ExitCause, ExitDecision};
use super::error::BootError;
use super::error_folds;
use super::exit_protocol::{ExitMessage, ExitProtocol, ExitWire};
use super::poll_times::PollTimes;
use crate::rank::{JobRank, LocalRank};
use crate::report::{self, MessageLine};
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::os::fd::BorrowedFd;
use std::sync::OnceLock;
use sys::process;
use sys::signal::Signal;

/// A rank's view of the exit of its job. Lives as long as the process.
#[derive(Debug)]
pub struct ExitNotice {
    memory: ControlMemory,
    /// The word of `memory` that [`ExitNotice::must_exit`] reads.
    order: &'static AtomicU64,
    rank: JobRank,
    local_rank: LocalRank,
    /// Ranks of the job.
    size: u32,
    /// The process that joined.
    pid: u32,
    /// The control socket; `None` without a supervisor.
    socket: Option<ControlSocket>,
    /// How the ranks of a job without a supervisor end it; `None` for a single rank.
    protocol: Option<ExitProtocol>,
    /// Its end was reported.
    loss_reported: AtomicBool,
    /// How this process exits when it finds the job ending; set by [`ExitNotice::arm`].
    on_exit: OnceLock<fn() -> !>,
    /// Whether the client handles a signal itself; set by [`ExitNotice::arm`].
    is_client_handled: OnceLock<fn(Signal) -> bool>,
    /// When it has polled since it was requested to exit.
    polls: PollTimes,
    /// A thread is writing an answer.
    answering: AtomicBool,
}

/// How this process left the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExitAgreement {
    /// The code that the ranks agree on, or that this one knows.
    pub code: i32,
    /// A rank that did not take part within its time.
    pub missing: Option<JobRank>,
    /// Whether that rank has sent nothing. Otherwise another rank may be the reason, and acts on
    /// it.
    pub is_silent: bool,
}

impl ExitNotice {
    /// Makes this process a rank of a job without a supervisor: the ranks carry the exit
    /// themselves. Each of them may take `timeout` nanoseconds to leave after another has.
    pub(super) fn join_without_supervisor(
        rank: JobRank,
        size: u32,
        timeout: u64,
    ) -> Result<&'static ExitNotice, BootError> {
        let memory = ControlMemory::private()?;
        let protocol = ExitProtocol::new(rank, size, timeout);
        ExitNotice::new(memory, rank, LocalRank(0), size, None, Some(protocol))
    }

    /// Makes this process the rank of a job with a supervisor, or of a job of one rank.
    pub(super) fn join(
        memory: ControlMemory,
        rank: JobRank,
        local_rank: LocalRank,
        size: u32,
        socket: Option<ControlSocket>,
    ) -> Result<&'static ExitNotice, BootError> {
        ExitNotice::new(memory, rank, local_rank, size, socket, None)
    }

    fn new(
        memory: ControlMemory,
        rank: JobRank,
        local_rank: LocalRank,
        size: u32,
        socket: Option<ControlSocket>,
        protocol: Option<ExitProtocol>,
    ) -> Result<&'static ExitNotice, BootError> {
        let pid = process::pid();
        memory.claim(local_rank, pid).map_err(|other| {
            BootError::new(
                match other {
                    Some(other) => format!("rank {rank} of this job is process {other} already"),
                    None => format!("this job has no rank {rank}"),
                },
                "Let each process that the launcher starts run one GASNet program, once.",
            )
        })?;
        Ok(Box::leak(Box::new(ExitNotice {
            memory,
            order: memory.order(),
            rank,
            local_rank,
            size,
            pid,
            socket,
            protocol,
            loss_reported: AtomicBool::new(false),
            on_exit: OnceLock::new(),
            is_client_handled: OnceLock::new(),
            polls: PollTimes::default(),
            answering: AtomicBool::new(false),
        })))
    }

    /// Whether this process must exit because the job ends; the caller then calls
    /// `process::exit::follow_when_due`. One relaxed load, for hot loops.
    #[inline(always)]
    pub fn must_exit(&self) -> bool {
        self.order.load(Ordering::Relaxed) != 0 && self.obeys()
    }

    /// When a poll of this process first saw a request to exit; 0 if none has.
    pub fn requested_at(&self) -> u64 {
        self.polls.first()
    }

    /// Says to the other ranks of the host that this one waits, at the time `now` in nanoseconds.
    pub fn note_wait(&self, now: u64) {
        if let Some(waits) = self.memory.waits_of(self.local_rank) {
            waits.begin(now);
        }
    }

    /// Says that the wait has ended.
    pub fn end_wait(&self) {
        if let Some(waits) = self.memory.waits_of(self.local_rank) {
            waits.end();
        }
    }

    /// Whether every other rank of the host waits at the time `now`, and has not computed since
    /// `since`.
    pub fn others_wait(&self, since: u64, now: u64) -> bool {
        self.memory.others_wait(self.local_rank, since, now)
    }

    /// How long the ranks of the host have had a CPU, in nanoseconds.
    pub fn cpu_ns_of_host(&self) -> u64 {
        self.memory.cpu_ns()
    }

    /// Whether this process obeys the order word, which is not 0. Async-signal-safe.
    #[cold]
    fn obeys(&self) -> bool {
        let order = self.order.load(Ordering::Relaxed);
        match ExitDecision::unpack(order) {
            Ok(Some(d)) if !d.is_final => self.obeys_request(d),
            Ok(Some(d)) if d.cause == ExitCause::Signal && d.rank.is_none() => {
                let signal = Signal::new((d.code & 0xff) - 128);
                !self.is_client_handled.get().is_some_and(|handled| handled(signal))
            }
            _ => true,
        }
    }

    /// Whether this process obeys a request to exit: after a failure, if it does nothing but
    /// poll. After a success it says so in the control memory, and the supervisor decides by what
    /// all ranks do. Called by each poll. Async-signal-safe.
    fn obeys_request(&self, request: ExitDecision) -> bool {
        let Some(polled) = self.polls.note(sys::clock::now_ns()) else { return false };
        if !request.is_success() {
            return true;
        }
        if process::has_one_thread() {
            self.memory.set_only_polls(self.local_rank, polled);
        }
        // The others, and the supervisor, may be waiting for this CPU.
        sys::thread::yield_now();
        false
    }

    /// Whether a process that must exit must do so now. Without a supervisor a rank that has
    /// learned of an exit may go on for the time of grace. Async-signal-safe.
    pub fn is_due(&self) -> bool {
        self.protocol.as_ref().is_none_or(ExitProtocol::is_due)
    }

    /// Reports an order to exit that was overwritten. Async-signal-safe.
    pub fn check_order(&self) {
        self.memory.check_order();
    }

    /// See [`ControlMemory::decision`].
    pub fn decision(&self) -> Option<ExitDecision> {
        self.memory.decision()
    }

    /// Decides that the job ends for this reason, unless a decision holds
    /// ([`ControlMemory::decide`]); returns the decision that holds. Async-signal-safe.
    pub fn decide(&self, code: i32, cause: ExitCause) -> ExitDecision {
        let held = self.memory.decide(ExitDecision::new(code, cause, Some(self.rank)));
        // Of a rank alone, exit handlers may still fail.
        let may_fail = self.is_alone() && cause == ExitCause::Ended && held.is_success();
        if self.socket.is_none() && !may_fail {
            self.memory.order_exit();
        }
        held
    }

    /// Whether nothing waits for the end of this process: it is the only rank, without a
    /// supervisor. Async-signal-safe.
    pub fn is_alone(&self) -> bool {
        self.socket.is_none() && self.protocol.is_none()
    }

    /// Connects a rank without a supervisor with the others. From now on they learn of its exit.
    pub fn connect(&self, wire: &'static dyn ExitWire) {
        if let Some(protocol) = &self.protocol {
            protocol.connect(wire);
        }
    }

    /// A message of the protocol has arrived, outside of an exit.
    #[cold]
    pub fn receive(&self, message: ExitMessage) {
        let Some(protocol) = &self.protocol else { return };
        let Some(decision) = protocol.receive(message) else { return };
        if self.decision().is_none() {
            protocol.set_due(sys::clock::now_ns() + decision.grace_ns());
            self.memory.decide(decision);
            self.memory.order_exit();
        }
        protocol.notify();
    }

    /// Serves messages of the protocol while this process waits for other ranks in `boot` or
    /// `runtime`; exits if the job ends.
    pub fn serve_exit_messages(&self) {
        if let Some(wire) = self.protocol.as_ref().and_then(ExitProtocol::wire) {
            wire.serve();
        }
        if self.must_exit() && self.is_due() {
            self.exit_now();
        }
    }

    /// Whether the exit needs the other ranks ([`ExitNotice::agree`]): how long that may take, in
    /// microseconds.
    pub fn agreement_us(&self) -> Option<u64> {
        self.protocol.as_ref().filter(|p| p.wire().is_some()).map(ExitProtocol::longest_us)
    }

    /// The code with which this process ends: where the ranks carry the exit, it waits until all
    /// leave, or the time is over. Async-signal-safe as far as the network is.
    pub fn agree(&self, code: i32) -> ExitAgreement {
        let alone = ExitAgreement { code, missing: None, is_silent: false };
        let Some(protocol) = &self.protocol else { return alone };
        let missing = protocol.await_others();
        ExitAgreement {
            code: protocol.decision().map_or(code, |d| d.code),
            missing,
            is_silent: missing.is_some() && protocol.is_silent_behind(),
        }
    }

    /// Notifies the supervisor, or the other ranks, that this rank exits, and why. Does not wait.
    /// Async-signal-safe as far as the network is.
    pub fn notify(&self, code: i32, cause: ExitCause) {
        let own = ExitDecision::new(code, cause, Some(self.rank));
        if let Some(protocol) = &self.protocol {
            protocol.add(self.decision().unwrap_or(own));
            protocol.notify();
        }
        if let Some(socket) = &self.socket {
            // If it cannot be sent, the supervisor notices the end of this process.
            socket.send(&ControlHead::decided(own).bytes());
        }
    }

    /// Whether another rank of this host prints an error with this hash to the same file, and
    /// the supervisor was notified. The supervisor prints that this rank has the error too.
    /// Async-signal-safe.
    pub fn is_error_folded(&self, hash: u32) -> bool {
        let Some(socket) = self.socket.as_ref().filter(|_| self.is_member()) else { return false };
        let Some(hash) = error_folds::in_file(hash) else { return false };
        let message = ControlHead::new(ControlKind::ErrorWithheld).bytes();
        self.memory.withhold_error(self.local_rank, hash, sys::clock::now_ns())
            && socket.send(&message)
    }

    /// Has the kernel interrupt this process by [`sys::signal::notice`] when the supervisor sends
    /// something or hangs up. The handler of that signal must be installed. `on_exit` ends the
    /// process when a call of `boot` finds the job ending; before, that is `_exit`.
    /// `is_client_handled` says whether the client handles a signal itself; it is
    /// async-signal-safe.
    ///
    /// # Errors
    /// That of the system.
    pub fn arm(
        &self,
        on_exit: fn() -> !,
        is_client_handled: fn(Signal) -> bool,
    ) -> Result<(), BootError> {
        self.set_notices(true)
            .map_err(|e| BootError::system("cannot watch the control socket", &e))?;
        let _ = self.on_exit.set(on_exit);
        let _ = self.is_client_handled.set(is_client_handled);
        self.memory.set_armed(self.local_rank);
        Ok(())
    }

    /// Tells the supervisor whether this process prints the stack of its failure.
    /// Async-signal-safe.
    pub fn set_printing_stack(&self, on: bool) {
        if self.is_member() {
            self.memory.set_printing_stack(self.local_rank, on);
        }
    }

    /// The control socket; `None` without a supervisor.
    pub fn socket(&self) -> Option<BorrowedFd<'_>> {
        self.socket.as_ref().map(ControlSocket::socket)
    }

    fn set_notices(&self, on: bool) -> std::io::Result<()> {
        self.socket.as_ref().map_or(Ok(()), |socket| socket.set_notices(on))
    }

    /// Answers the open status request, if there is one, with what `write` writes. Of several
    /// threads one answers, and looks again afterwards for a newer request. If the job ends after
    /// the answers, that thread waits here for the order to exit: the signal that brought it here
    /// may have ended a sleep of the client. Async-signal-safe.
    pub fn answer_status(&self, write: impl Fn(&mut MessageLine)) {
        let mut is_last = false;
        while let Some(request) = self.memory.unanswered_request(self.local_rank) {
            if self.answering.swap(true, Ordering::Acquire) {
                return;
            }
            is_last = ControlMemory::is_last_request(request);
            let mut text = MessageLine::new();
            write(&mut text);
            self.memory.answer(self.local_rank, request, text.bytes());
            self.answering.store(false, Ordering::Release);
        }
        if is_last {
            self.await_order();
        }
    }

    /// Waits for the order to exit. Gives up after longer than the supervisor waits for answers.
    fn await_order(&self) {
        const LONGEST: u64 = 2_000_000_000;
        const NAP: u64 = 1_000_000;
        let end = sys::clock::now_ns() + LONGEST;
        while !self.must_exit() && !self.is_supervisor_lost() && sys::clock::now_ns() < end {
            sys::clock::sleep_ns(NAP);
        }
    }

    /// Waits until the supervisor's calls that sent the first `received` messages to this rank
    /// have returned. The kernel delivers a message before it decides on the signal, so the
    /// signal can come later than the message. Gives up after a second, which is longer than a
    /// supervisor is kept from a CPU: the count was overwritten, or the signal comes late.
    pub fn await_sent(&self, received: u64) {
        const LONGEST: u64 = 1_000_000_000;
        let (mut rounds, mut end) = (0u32, None);
        while self.memory.sent_to(self.local_rank) < received {
            rounds += 1;
            if rounds.is_multiple_of(1024) {
                let now = sys::clock::now_ns();
                let is_late = now > *end.get_or_insert(now + LONGEST);
                if is_late || self.must_exit() || self.is_supervisor_lost() {
                    return;
                }
            }
            sys::thread::yield_now();
        }
    }

    /// Runs a conversation with the supervisor during which its messages raise no signal: a late
    /// signal would interrupt a sleep of the client. Exits if the job has ended meanwhile.
    pub fn without_notices<T>(&self, conversation: impl FnOnce() -> T) -> T {
        if self.on_exit.get().is_none() {
            return conversation();
        }
        let off = self.set_notices(false);
        let result = conversation();
        if off.and_then(|()| self.set_notices(true)).is_err()
            || self.must_exit()
            || self.is_supervisor_lost()
        {
            self.exit_now();
        }
        result
    }

    /// Whether this rank had a supervisor that has exited. The job then ends, and the first call
    /// that detects it says why. Async-signal-safe.
    pub fn is_supervisor_lost(&self) -> bool {
        let Some(socket) = self.socket.as_ref().filter(|socket| socket.is_hung_up()) else {
            return false;
        };
        if self.decision().is_none() && !self.loss_reported.swap(true, Ordering::Relaxed) {
            report::line(format_args!(
                "rank {}: {} has exited, so the job ends",
                self.rank,
                socket.supervisor()
            ));
        }
        self.decide(1, ExitCause::Supervisor);
        self.memory.order_exit();
        true
    }

    /// Ends this process, because the job ends.
    pub(super) fn exit_now(&self) -> ! {
        match self.on_exit.get() {
            Some(on_exit) => on_exit(),
            None => sys::exit_now(self.decision().map_or(1, |d| d.code)),
        }
    }

    /// Rank of this process.
    pub fn rank(&self) -> JobRank {
        self.rank
    }

    /// Ranks of the job.
    pub fn size(&self) -> u32 {
        self.size
    }

    /// Whether the calling process is the one that joined, and not a child that it forked.
    /// Async-signal-safe.
    pub fn is_member(&self) -> bool {
        process::pid() == self.pid
    }

    /// See [`ControlMemory::pid_of`].
    pub fn pid_of(&self, rank: LocalRank) -> Option<u32> {
        self.memory.pid_of(rank)
    }
}

#[cfg(test)]
mod tests {
    use super::super::poll_times::{LONGEST_PAUSE, WORK};
    use super::*;
    use core::fmt::Write;

    fn join(memory: ControlMemory, rank: u32) -> Result<&'static ExitNotice, BootError> {
        ExitNotice::join(memory, JobRank(rank), LocalRank(rank), memory.size(), None)
    }

    #[test]
    fn a_rank_is_taken_once() {
        let (_file, memory) = ControlMemory::create(2, 5).unwrap();
        assert!(join(memory, 2).unwrap_err().cause.contains("no rank 2"));
        join(memory, 1).unwrap();
        assert_eq!(memory.pid_of(LocalRank(1)), Some(process::pid()));
        assert_eq!(memory.pid_of(LocalRank(0)), None);
        assert!(join(memory, 1).unwrap_err().cause.contains("rank 1"));
    }

    #[test]
    fn a_decision_without_a_supervisor_is_an_order() {
        let rank = join(ControlMemory::private().unwrap(), 0).unwrap();
        assert!(!rank.must_exit());
        rank.decide(3, ExitCause::Exit);
        assert!(rank.must_exit());
        assert_eq!(rank.decision().map(|d| d.code), Some(3));
    }

    /// A request is obeyed by a rank that only polls, an order by every rank.
    #[test]
    fn a_rank_that_only_polls_follows_a_request() {
        let (_file, memory) = ControlMemory::create(1, 6).unwrap();
        let rank = join(memory, 0).unwrap();
        memory.decide(ExitDecision::new(3, ExitCause::Exit, Some(JobRank(0))));
        memory.request_exit();
        // What it does otherwise takes longer than a pause.
        for _ in 0..4 {
            assert!(!rank.must_exit());
            std::thread::sleep(core::time::Duration::from_nanos(LONGEST_PAUSE + 1_000_000));
        }
        let until = sys::clock::now_ns() + 30_000_000_000;
        while !rank.must_exit() {
            assert!(sys::clock::now_ns() < until, "it polls on");
        }
        std::thread::sleep(core::time::Duration::from_nanos(LONGEST_PAUSE + 1_000_000));
        assert!(!rank.must_exit());
        // A pause in which it computes.
        while !rank.must_exit() {
            assert!(sys::clock::now_ns() < until, "it polls on");
        }
        let used = || process::cpu_use().unwrap().ns;
        let (from, of_cpu) = (sys::clock::now_ns(), used());
        while sys::clock::now_ns() - from < LONGEST_PAUSE + 1_000_000 || used() - of_cpu < 2 * WORK
        {
        }
        assert!(!rank.must_exit());
        memory.order_exit();
        assert!(rank.must_exit());
    }

    /// The count of messages sent was overwritten with a lower one.
    #[test]
    fn a_wait_for_messages_sent_ends() {
        let (_file, memory) = ControlMemory::create(1, 7).unwrap();
        let rank = join(memory, 0).unwrap();
        memory.set_sent(LocalRank(0), 1);
        let (done, ends) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            rank.await_sent(2);
            done.send(()).unwrap();
        });
        ends.recv_timeout(core::time::Duration::from_secs(30)).expect("the wait ends");
    }

    /// The client does not go on between the answer and the order to exit.
    #[test]
    fn the_last_answer_waits_for_the_order() {
        let (_file, supervisor) = ControlMemory::create(1, 7).unwrap();
        let rank = join(supervisor, 0).unwrap();
        let request = supervisor.open_status_request(true);
        let (done, ends) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            rank.answer_status(|line: &mut MessageLine| line.write_str("sleeps\n").unwrap());
            done.send(rank.must_exit()).unwrap();
        });
        while supervisor.answer_of(LocalRank(0), request).is_none() {
            sys::thread::yield_now();
        }
        supervisor.decide_failure(3);
        supervisor.order_exit();
        assert_eq!(ends.recv_timeout(core::time::Duration::from_secs(30)), Ok(true));
    }

    #[test]
    fn answers_belong_to_their_request() {
        let (_file, supervisor) = ControlMemory::create(2, 7).unwrap();
        let rank = join(supervisor, 1).unwrap();
        let write = |line: &mut MessageLine| line.write_str("busy\n").unwrap();
        assert!(!supervisor.is_armed(LocalRank(1)));
        rank.arm(|| sys::exit_now(1), |_| false).unwrap();
        assert!(supervisor.is_armed(LocalRank(1)) && !supervisor.is_armed(LocalRank(0)));
        rank.answer_status(write);
        let first = supervisor.open_status_request(false);
        assert_eq!(supervisor.answer_of(LocalRank(1), first), None);
        rank.answer_status(write);
        assert_eq!(supervisor.answer_of(LocalRank(1), first).as_deref(), Some("busy"));
        supervisor.close_status_request();
        let second = supervisor.open_status_request(false);
        assert_eq!(supervisor.answer_of(LocalRank(1), second), None);
        supervisor.close_status_request();
        rank.answer_status(write);
        assert_eq!(supervisor.answer_of(LocalRank(1), second), None);
    }
}
