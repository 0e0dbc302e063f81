//! The job-control memory: the exit word and one line per rank, shared by the ranks of a host and their supervisor.
//! Called by `runtime::exit`, by every poll (one load), and by the supervisor.
//!
//! Invariants: the exit word goes from 0 to a decision once and never changes again: the first exit wins. The leave
//! word is 0 until the supervisor copies the decision there, some grace after it was made; ranks heed only the leave
//! word, so that a process which is about to finish by itself (to print its results after the last barrier, say) is
//! not cut off by a peer that was a little faster.

use super::BootError;
use core::sync::atomic::{AtomicBool, AtomicI32, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use std::os::fd::{BorrowedFd, RawFd};
use sys::memory::{Mapping, MemFd};
use sys::{process, signal, socket};

const MAGIC: u64 = 0x6761_736e_6574_0002;

/// Why a job ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExitCause {
    /// A rank called `gasnet_exit` or `exit`, or returned from `main`.
    Exit,
    /// A rank ended without a word.
    Vanished,
    /// A rank was killed by a signal.
    Killed,
    /// The supervisor could not go on, was told to stop, or is gone itself.
    Supervisor,
}

/// The decision to end the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExitDecision {
    /// Exit code of the job; the system passes on its low 8 bits.
    pub code: i32,
    /// Why.
    pub cause: ExitCause,
    /// The rank that it is about; `None` for the supervisor.
    pub rank: Option<u32>,
}

const SET: u64 = 1 << 63;
const NOBODY: u64 = 0x0fff_ffff;

impl ExitDecision {
    fn pack(self) -> u64 {
        let rank = self.rank.map_or(NOBODY, |r| u64::from(r).min(NOBODY - 1));
        SET | (self.cause as u64) << 60 | rank << 32 | u64::from(self.code as u32)
    }

    fn unpack(word: u64) -> Option<ExitDecision> {
        if word == 0 {
            return None;
        }
        let cause = match (word >> 60) & 7 {
            0 => ExitCause::Exit,
            1 => ExitCause::Vanished,
            2 => ExitCause::Killed,
            _ => ExitCause::Supervisor,
        };
        let rank = (word >> 32) & NOBODY;
        Some(ExitDecision {
            code: word as u32 as i32,
            cause,
            rank: (rank != NOBODY).then_some(rank as u32),
        })
    }
}

/// A word on a line of its own, because everybody polls it.
#[derive(Debug)]
#[repr(C, align(64))]
struct PaddedWord(AtomicU64);

#[derive(Debug)]
#[repr(C, align(64))]
struct Header {
    magic: AtomicU64,
    cookie: AtomicU64,
    size: AtomicU32,
    supervisor: AtomicU32,
    exit: PaddedWord,
    leave: PaddedWord,
    /// The number of the question that is open, 0 for none.
    question: AtomicU32,
    /// Questions asked so far.
    asked: AtomicU32,
}

#[derive(Debug)]
#[repr(C, align(64))]
struct Line {
    /// Process that called `gasnet_init` as this rank; 0 before.
    pid: AtomicU32,
    /// Messages that the supervisor has sent to this rank; raised when the call that sent one has returned.
    sent: AtomicU32,
    /// The rank has its handler for [`signal::notice`].
    armed: AtomicU32,
    /// The last question that the rank has answered.
    answered: AtomicU32,
    /// Bytes of the answer.
    length: AtomicU32,
    answer: [AtomicU64; ANSWER / 8],
}

/// Bytes of an answer.
const ANSWER: usize = 320;

/// Bytes of the job-control memory of a host with so many ranks.
fn bytes(size: u32) -> usize {
    size_of::<Header>() + size as usize * size_of::<Line>()
}

/// One process's view of the job-control memory. Lives as long as the process.
#[derive(Debug)]
pub struct JobControl {
    header: &'static Header,
    lines: &'static [Line],
    /// The rank of this process; `None` in the supervisor.
    rank: Option<u32>,
    /// The process that joined; its forked children are not part of the job.
    pid: u32,
    /// Control socket; -1 without a supervisor.
    socket: AtomicI32,
    /// [`JobControl::arm`] has been called.
    armed: AtomicBool,
    /// A thread is answering.
    answering: AtomicBool,
}

/// Called instead of returning when the job ends while a rank is in a collective call of its spawner; a `fn() -> !`.
static EXIT_HANDLER: AtomicPtr<()> = AtomicPtr::new(core::ptr::null_mut());

/// Sets what a rank does that finds the job ending; until then it leaves by `_exit` with the agreed code.
pub fn set_exit_handler(ending: fn() -> !) {
    EXIT_HANDLER.store(ending as *mut (), Ordering::Release);
}

impl JobControl {
    fn view(mapping: Mapping, size: u32, rank: Option<u32>, socket: RawFd) -> &'static JobControl {
        let base = mapping.leak();
        // SAFETY: the mapping is page-aligned, has `bytes(size)` bytes (callers), is never unmapped, starts out zeroed
        // or written by these very types, and holds nothing but atomics.
        let (header, lines) = unsafe {
            let header: &'static Header = base.cast().as_ref();
            let first = base.add(size_of::<Header>()).cast::<Line>();
            (header, core::slice::from_raw_parts(first.as_ptr(), size as usize))
        };
        Box::leak(Box::new(JobControl {
            header,
            lines,
            rank,
            pid: process::pid(),
            socket: AtomicI32::new(socket),
            armed: AtomicBool::new(false),
            answering: AtomicBool::new(false),
        }))
    }

    /// New job-control memory, as its supervisor sees it; `cookie` tells jobs apart.
    pub fn create(size: u32, cookie: u64) -> Result<(MemFd, &'static JobControl), BootError> {
        let file = MemFd::create(c"gasnet-control");
        let made = file.and_then(|f| {
            f.reserve(0, bytes(size) as u64).and_then(|()| Ok((f.map(0, bytes(size))?, f)))
        });
        let (mapping, file) =
            made.map_err(|e| BootError::system("cannot create the job-control memory", &e))?;
        let c = JobControl::view(mapping, size, None, -1);
        c.header.size.store(size, Ordering::Relaxed);
        c.header.cookie.store(cookie, Ordering::Relaxed);
        c.header.supervisor.store(process::pid(), Ordering::Relaxed);
        c.header.magic.store(MAGIC, Ordering::Release);
        Ok((file, c))
    }

    /// The job-control memory of a rank, whose line is claimed for this process.
    pub fn join(
        file: BorrowedFd<'_>,
        size: u32,
        rank: u32,
        cookie: u64,
        socket: RawFd,
    ) -> Result<&'static JobControl, BootError> {
        let stale = || {
            BootError::new(
                "the environment says that a launcher started this process, but what it should have inherited is not there, or is of \
                 another version of the library",
                "Start ranks by the gasnetrun of the library that the program is linked with, and close no inherited descriptor before \
                 gasnet_init; otherwise unset GASNET_SPAWN_FDS.",
            )
        };
        if rank >= size || sys::memory::len(file).ok() != Some(bytes(size) as u64) {
            return Err(stale());
        }
        let mapping = Mapping::shared(file, 0, bytes(size))
            .map_err(|e| BootError::system("cannot map the job-control memory", &e))?;
        let c = JobControl::view(mapping, size, Some(rank), socket);
        let h = c.header;
        if h.magic.load(Ordering::Acquire) != MAGIC
            || h.size.load(Ordering::Relaxed) != size
            || h.cookie.load(Ordering::Relaxed) != cookie
        {
            return Err(stale());
        }
        match c.lines[rank as usize].pid.compare_exchange(
            0,
            c.pid,
            Ordering::AcqRel,
            Ordering::Acquire,
        ) {
            Ok(_) => Ok(c),
            Err(other) => Err(BootError::new(
                format!("rank {rank} of this job is process {other} already"),
                "Let each process that gasnetrun starts run one GASNet program, once.",
            )),
        }
    }

    /// The job-control memory of a job of one process.
    pub fn alone() -> Result<&'static JobControl, BootError> {
        let mapping = Mapping::anonymous(bytes(1))
            .map_err(|e| BootError::system("cannot map memory", &e))?;
        let c = JobControl::view(mapping, 1, Some(0), -1);
        c.lines[0].pid.store(c.pid, Ordering::Relaxed);
        Ok(c)
    }

    /// The job is over and this process is to leave: then the exit code. One relaxed load, for hot loops; whoever
    /// gets a code calls `runtime::exit::follow`.
    #[inline(always)]
    pub fn poll_exit(&self) -> Option<i32> {
        match self.header.leave.0.load(Ordering::Relaxed) {
            0 => None,
            word => Some(word as u32 as i32),
        }
    }

    /// The decision to end the job, if somebody made it; peers may be gone then, or may still be busy.
    pub fn decision(&self) -> Option<ExitDecision> {
        ExitDecision::unpack(self.header.exit.0.load(Ordering::Acquire))
    }

    /// Decides that the job ends, unless that was decided before; returns the decision that holds.
    /// Async-signal-safe.
    pub fn decide(&self, new: ExitDecision) -> ExitDecision {
        // AcqRel: whoever sees the decision also sees what was written before it was made.
        let old = self.header.exit.0.compare_exchange(
            0,
            new.pack(),
            Ordering::AcqRel,
            Ordering::Acquire,
        );
        let held = old.err().and_then(ExitDecision::unpack).unwrap_or(new);
        if self.rank.is_some() && self.socket.load(Ordering::Relaxed) < 0 {
            self.order_exit();
        }
        held
    }

    /// Tells the ranks to leave now, if it was decided that the job ends. The supervisor's business; without a
    /// supervisor, everybody's.
    pub fn order_exit(&self) {
        self.header.leave.0.store(self.header.exit.0.load(Ordering::Acquire), Ordering::Release);
    }

    /// Tells the supervisor to look at the exit word: one message, never waiting. Async-signal-safe.
    pub fn notify(&self) {
        let fd = self.socket.load(Ordering::Relaxed);
        if fd >= 0 {
            // When it cannot be sent, the end of this process tells the supervisor as well.
            let _ = socket::send(
                fd,
                &super::message::MessageHead::new(super::message::MessageKind::ExitDecided)
                    .bytes(),
                false,
            );
        }
    }

    /// Has the kernel interrupt this process by [`signal::notice`] when its supervisor sends something or is gone.
    /// The signal must have its handler by now.
    pub fn arm(&self) -> Result<(), BootError> {
        self.set_notices(true)
            .map_err(|e| BootError::system("cannot watch the control socket", &e))?;
        self.armed.store(true, Ordering::Relaxed);
        if let Some(line) = self.rank.and_then(|r| self.lines.get(r as usize)) {
            line.armed.store(1, Ordering::Release);
        }
        Ok(())
    }

    /// Opens a question to all ranks, what they do; returns its number. The supervisor's business.
    pub fn ask(&self) -> u32 {
        let n = self.header.asked.fetch_add(1, Ordering::Relaxed).wrapping_add(1).max(1);
        self.header.question.store(n, Ordering::Release);
        n
    }

    /// Closes the question: who is late does not answer any more.
    pub fn close_question(&self) {
        self.header.question.store(0, Ordering::Release);
    }

    /// Whether a rank can be asked: it would die of [`signal::notice`] before.
    pub fn can_be_asked(&self, rank: u32) -> bool {
        self.lines.get(rank as usize).is_some_and(|l| l.armed.load(Ordering::Acquire) != 0)
    }

    /// What a rank has answered to this question, if it has.
    pub fn answer_of(&self, rank: u32, question: u32) -> Option<String> {
        // Acquire pairs with the Release in `answer`: the answer is complete, and stays until the next question.
        let line = self
            .lines
            .get(rank as usize)
            .filter(|l| l.answered.load(Ordering::Acquire) == question)?;
        let bytes: Vec<u8> =
            line.answer.iter().flat_map(|w| w.load(Ordering::Relaxed).to_ne_bytes()).collect();
        let length = (line.length.load(Ordering::Relaxed) as usize).min(ANSWER);
        let text = String::from_utf8_lossy(&bytes[..length]);
        Some(text.chars().filter(|c| !c.is_control()).collect())
    }

    /// Answers the question that is open, if there is one, with what `write` writes. Several threads may be here at a
    /// time, one of which answers; it looks again afterwards, for what the others have come for. Async-signal-safe.
    pub fn answer(&self, write: fn(&mut crate::report::MessageLine)) {
        let Some(line) = self.rank.and_then(|r| self.lines.get(r as usize)) else { return };
        loop {
            let question = self.header.question.load(Ordering::Acquire);
            if question == 0 || line.answered.load(Ordering::Relaxed) == question {
                return;
            }
            if self.answering.swap(true, Ordering::Acquire) {
                return;
            }
            let mut text = crate::report::MessageLine::new();
            write(&mut text);
            let bytes = text.bytes();
            let length = bytes.len().min(ANSWER);
            for (word, piece) in line.answer.iter().zip(bytes[..length].chunks(8)) {
                let mut eight = [0; 8];
                eight[..piece.len()].copy_from_slice(piece);
                word.store(u64::from_ne_bytes(eight), Ordering::Relaxed);
            }
            line.length.store(length as u32, Ordering::Relaxed);
            line.answered.store(question, Ordering::Release);
            self.answering.store(false, Ordering::Release);
        }
    }

    fn set_notices(&self, on: bool) -> std::io::Result<()> {
        let fd = self.socket.load(Ordering::Relaxed);
        if fd < 0 {
            return Ok(());
        }
        // SAFETY: the socket is owned by the `Rank` of this process, which is never dropped.
        let fd = unsafe { BorrowedFd::borrow_raw(fd) };
        socket::signal_on_event(fd, on.then(signal::notice))
    }

    /// The supervisor's call that sent one more message to this rank has returned.
    pub fn count_sent(&self, rank: u32) {
        if let Some(line) = self.lines.get(rank as usize) {
            // Release pairs with the Acquire in `await_sent`.
            line.sent.fetch_add(1, Ordering::Release);
        }
    }

    /// Waits until the calls have returned that sent the first `received` messages to this rank: the kernel hands a
    /// message over before it decides on the signal, which may thus come later than the message.
    pub fn await_sent(&self, received: u32) {
        let Some(line) = self.rank.and_then(|r| self.lines.get(r as usize)) else { return };
        let mut rounds = 0u32;
        while (line.sent.load(Ordering::Acquire).wrapping_sub(received) as i32) < 0 {
            rounds += 1;
            if rounds.is_multiple_of(1024) && (self.poll_exit().is_some() || self.orphaned()) {
                return;
            }
            sys::thread::yield_now();
        }
    }

    /// Runs a conversation with the supervisor, whose messages raise no signal meanwhile: one that comes late would
    /// interrupt a sleep of the client's that follows. Leaves if the job has ended meanwhile.
    pub fn converse<T>(&self, conversation: impl FnOnce() -> T) -> T {
        if !self.armed.load(Ordering::Relaxed) {
            return conversation();
        }
        let switched = self.set_notices(false);
        let result = conversation();
        if switched.and_then(|()| self.set_notices(true)).is_err()
            || self.poll_exit().is_some()
            || self.orphaned()
        {
            self.leave();
        }
        result
    }

    /// Whether this rank had a supervisor and lost it; then the job ends, and the rank is to leave.
    /// Async-signal-safe.
    pub fn orphaned(&self) -> bool {
        let fd = self.socket.load(Ordering::Relaxed);
        if fd < 0 || !sys::poll::hung_up(fd) {
            return false;
        }
        self.decide(ExitDecision { code: 1, cause: ExitCause::Supervisor, rank: self.rank });
        self.order_exit();
        true
    }

    /// Leaves, because the job ends.
    pub fn leave(&self) -> ! {
        let ending = EXIT_HANDLER.load(Ordering::Acquire);
        if ending.is_null() {
            sys::exit_now(self.decision().map_or(1, |d| d.code));
        }
        // SAFETY: EXIT_HANDLER only ever holds null or a `fn() -> !` stored by `set_exit_handler`.
        let ending: fn() -> ! = unsafe { core::mem::transmute(ending) };
        ending()
    }

    /// Rank of this process; `None` in the supervisor.
    pub fn rank(&self) -> Option<u32> {
        self.rank
    }

    /// Ranks on this host.
    pub fn size(&self) -> u32 {
        self.lines.len() as u32
    }

    /// Whether the calling process is the one that joined, and not a child that it forked. Async-signal-safe.
    pub fn is_member(&self) -> bool {
        process::pid() == self.pid
    }

    /// The process that called `gasnet_init` as this rank; `None` before. Async-signal-safe.
    pub fn pid_of(&self, rank: u32) -> Option<u32> {
        self.lines.get(rank as usize).map(|l| l.pid.load(Ordering::Acquire)).filter(|&p| p != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    #[test]
    fn decisions_survive_packing() {
        for code in [0, 1, 139, -1, i32::MIN] {
            for cause in
                [ExitCause::Exit, ExitCause::Vanished, ExitCause::Killed, ExitCause::Supervisor]
            {
                for rank in [None, Some(0), Some(4095)] {
                    let d = ExitDecision { code, cause, rank };
                    assert_eq!(ExitDecision::unpack(d.pack()), Some(d));
                }
            }
        }
        assert_eq!(ExitDecision::unpack(0), None);
    }

    #[test]
    fn first_exit_wins() {
        let (_file, c) = JobControl::create(2, 5).unwrap();
        let first = ExitDecision { code: 3, cause: ExitCause::Exit, rank: Some(1) };
        assert_eq!(c.decide(first), first);
        assert_eq!(c.decide(ExitDecision { code: 4, ..first }), first);
        assert_eq!(c.poll_exit(), None);
        c.order_exit();
        assert_eq!(c.poll_exit(), Some(3));
    }

    #[test]
    fn a_rank_is_taken_once_and_strangers_are_refused() {
        let (file, c) = JobControl::create(2, 5).unwrap();
        assert!(JobControl::join(file.as_fd(), 2, 1, 6, -1).is_err());
        assert!(JobControl::join(file.as_fd(), 3, 1, 5, -1).is_err());
        assert!(JobControl::join(file.as_fd(), 2, 2, 5, -1).is_err());
        assert!(JobControl::join(file.as_fd(), 2, 1, 5, -1).is_ok());
        assert_eq!(c.pid_of(1), Some(process::pid()));
        assert_eq!(c.pid_of(0), None);
        let e = JobControl::join(file.as_fd(), 2, 1, 5, -1).unwrap_err();
        assert!(e.cause.contains("rank 1"));
    }

    #[test]
    fn answers_belong_to_their_question() {
        let (file, supervisor) = JobControl::create(2, 7).unwrap();
        let rank = JobControl::join(file.as_fd(), 2, 1, 7, -1).unwrap();
        let write = |line: &mut crate::report::MessageLine| {
            core::fmt::Write::write_str(line, "busy\n").unwrap()
        };
        assert!(!supervisor.can_be_asked(1));
        rank.arm().unwrap();
        assert!(supervisor.can_be_asked(1) && !supervisor.can_be_asked(0));
        rank.answer(write);
        let first = supervisor.ask();
        assert_eq!(supervisor.answer_of(1, first), None);
        rank.answer(write);
        assert_eq!(supervisor.answer_of(1, first).as_deref(), Some("busy"));
        supervisor.close_question();
        let second = supervisor.ask();
        assert_eq!(supervisor.answer_of(1, second), None);
        supervisor.close_question();
        rank.answer(write);
        assert_eq!(supervisor.answer_of(1, second), None);
    }
}
