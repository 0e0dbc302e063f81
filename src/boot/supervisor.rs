//! The process that starts the ranks of a host, carries their barriers and exchanges, watches them, and ends the job.
//! Used by `boot::fork` and `boot::gasnetrun`; by `boot::foreign` for ranks that it did not start but that connect to it.
//!
//! Invariants: [`Supervisor::watch`] returns only when every rank is gone (or cannot be killed); it waits for
//! processes, never for descriptors, which children of ranks may keep open. No rank is waited for without a deadline
//! once the exit word is set, however that came about.
//!
//! How a job ends: a rank that leaves sets the exit word. The others get some grace to come to their own end. Then the
//! leave word is set, which a rank that polls sees by itself; a knock on the control socket interrupts one that does
//! not. Who is still there some time later is killed, but not for want of a CPU: while a rank waits for one for longer than it
//! has one, it gets a little more time, up to a limit.
//!
//! A rank that connects is admitted if it knows the cookie and belongs to the same user; with its answer it gets the
//! memory files of the job. Who connects and says nothing holds nobody up. Ranks that are still to connect are watched like the others, as far
//! as it is known which processes they are. Its launcher passes signals on to a rank, so the supervisor heeds none of those; when the
//! launcher itself is gone, the job ends.
//!
//! SIGUSR1 asks what the ranks do. The number of the question stands in the job-control memory; a signal has each rank
//! answer there. What is not there after a second is told as what it is.

use super::BootError;
use super::control::{ExitCause, ExitDecision, JobControl};
use super::foreign::Member;
use super::message::{self, MessageHead, MessageKind};
use super::prefix::PrefixedStream;
use super::rank_process::{self, RankProcess};
use super::supervised::RankId;
use super::{LATE, MS};
use crate::{env, report};
use std::io::ErrorKind;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::rc::Rc;
use sys::child::{Ended, Forked};
use sys::memory::{self, MemFd};
use sys::poll::PollEntry;
use sys::process::Liveness;
use sys::signal::{ReceivedSignal, Signal, SignalAction, SignalQueue, SignalSet};
use sys::{clock, process, signal, socket};

/// Grace after an exit with code 0, which usually means that the others are about to finish as well.
const GRACE_GOOD: u64 = 1000 * MS;
/// Grace after an exit with another code.
const GRACE_BAD: u64 = 250 * MS;
/// How much longer those may take that starve, look by look, and how long in all.
const MORE: u64 = 100 * MS;
const MOST: u64 = 1000 * MS;
/// How long a killed process may take to vanish.
const KILLED: u64 = 5000 * MS;
/// How long a connection may take to say who it is.
const INTRODUCTION: u64 = 5000 * MS;

/// Signals that ask the job to end.
const REQUESTS: [Signal; 4] = [Signal::INT, Signal::TERM, Signal::HUP, Signal::QUIT];
/// The signal that is passed on to the ranks as it is.
const PASSED_ON: Signal = Signal::USR2;
/// The signal that asks what the ranks do.
const QUESTION: Signal = Signal::USR1;
/// How long ranks may take to answer, and how often is looked.
const ANSWER: u64 = 1000 * MS;
const LOOK: u64 = 10 * MS;

/// Who returns from [`Supervisor::start`].
#[derive(Debug)]
pub enum ProcessRole {
    /// A new process, to become this rank.
    Rank(RankId),
    /// The process that called; it goes on with [`Supervisor::watch`].
    Supervisor(Box<Supervisor>),
}

/// How far the end of the job has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Nobody has left.
    Running,
    /// The exit word is set; the leave word will be at this time.
    Grace(u64),
    /// The leave word is set; who is still there at this time is killed, if not for want of a CPU.
    Leaving(u64),
    /// The same; at the second time nobody gets more.
    Starving(u64, u64),
    /// Everybody was killed; at this time we go without them.
    Killed(u64),
}

/// See the module.
#[derive(Debug)]
pub struct Supervisor {
    control: &'static JobControl,
    cookie: u64,
    /// Job control, arena, segments, scratch.
    files: [MemFd; 4],
    ranks: Vec<RankProcess>,
    size: u32,
    signals: SignalQueue,
    old_mask: SignalSet,
    old_actions: [(Signal, SignalAction); 2],
    leaving: u64,
    stage: Stage,
    /// A request to end has been passed on.
    requested: bool,
    /// A crash that came after an exit with code 0.
    late_crash: Option<i32>,
    /// Where ranks connect that we did not start; `None` when all have, or when there are none.
    listener: Option<OwnedFd>,
    /// Who has connected and is still to say who it is, and until when.
    visitors: Vec<(OwnedFd, u64)>,
    /// The processes that started ranks which connected.
    launchers: Vec<(u32, OwnedFd)>,
    /// What the ranks print, if it passes through us.
    streams: Option<Vec<PrefixedStream>>,
    /// When the first rank called `gasnet_init`, and when to tell of those that have not.
    begun: Option<(u64, u64)>,
    /// The question that is open, and until when.
    asking: Option<(u32, u64)>,
    /// How long the others may take then; `None`: for ever.
    patience: Option<u64>,
    /// What [`memory::lack_kills`] said at start.
    lack_kills: u64,
}

impl Supervisor {
    /// Prepares a job of `size` ranks, and takes over the signals of this process.
    pub fn new(size: u32) -> Result<Supervisor, BootError> {
        let cookie = sys::random::number()
            .map_err(|e| BootError::system("cannot get a random number", &e))?;
        Supervisor::with(size, cookie, true)
    }

    /// `requests`: whether signals that ask the job to end are ours to pass on.
    fn with(size: u32, cookie: u64, requests: bool) -> Result<Supervisor, BootError> {
        let leaving = (super::exit_seconds(size) * 1e9) as u64;
        let patience = env::SPAWN_TIMEOUT.get();
        sys::limits::maximize_descriptors();
        let (file, control) = JobControl::create(size, cookie)?;
        let file_of = |name| {
            MemFd::create(name).map_err(|e| BootError::system("cannot create a memory file", &e))
        };
        let files = [
            file,
            file_of(c"gasnet-arena")?,
            file_of(c"gasnet-segments")?,
            file_of(c"gasnet-scratch")?,
        ];
        let mut ours = vec![Signal::CHLD];
        if requests {
            // Ignored signals stay ignored, as nohup and its like want it.
            ours.extend(
                REQUESTS
                    .into_iter()
                    .chain([PASSED_ON, QUESTION])
                    .filter(|&s| signal::disposition(s) != signal::Disposition::Ignore),
            );
        } else {
            REQUESTS.into_iter().chain([PASSED_ON]).for_each(signal::ignore);
            ours.push(QUESTION);
        }
        let ours = SignalSet::of(&ours);
        let old_actions = [Signal::CHLD, Signal::PIPE].map(|s| (s, signal::action(s)));
        // An ignored SIGCHLD would have the system reap our children.
        signal::set_default(Signal::CHLD);
        signal::ignore(Signal::PIPE);
        let old_mask = signal::block(&ours);
        let signals = SignalQueue::new(&ours)
            .map_err(|e| BootError::system("cannot create a descriptor for signals", &e))?;
        Ok(Supervisor {
            control,
            cookie,
            files,
            ranks: Vec::new(),
            size,
            signals,
            old_mask,
            old_actions,
            leaving,
            stage: Stage::Running,
            requested: false,
            late_crash: None,
            listener: None,
            visitors: Vec::new(),
            launchers: Vec::new(),
            streams: None,
            begun: None,
            asking: None,
            patience: (patience > 0.0).then_some((patience * 1e9) as u64),
            lack_kills: 0,
        })
    }

    /// Has the output of the ranks pass through this process, which puts the rank in front of each line.
    pub fn prefix(mut self) -> Supervisor {
        self.streams = Some(Vec::new());
        self
    }

    /// The supervisor of ranks that connect to `listener` and know the cookie, one for each member; of some it is known which
    /// processes they are.
    pub(super) fn adopt(
        cookie: u64,
        listener: OwnedFd,
        members: &[Option<Member>],
    ) -> Result<Supervisor, BootError> {
        let mut s = Supervisor::with(members.len() as u32, cookie, false)?;
        s.ranks = (0..s.size).map(|rank| RankProcess::expected(rank, s.control)).collect();
        for (i, member) in members.iter().enumerate() {
            let Some(Member { process, launcher }) = member else { continue };
            let w = &mut s.ranks[i];
            w.child = process.pid;
            w.watch = process.watch().ok();
            if w.watch.is_none() {
                w.rank_gone = Some(clock::now_ns());
            }
            let Some(launcher) = launcher else { continue };
            w.launcher = Some(launcher.pid);
            if s.launchers.iter().any(|(known, _)| *known == launcher.pid) {
                continue;
            }
            match launcher.watch() {
                Ok(watch) => s.launchers.push((launcher.pid, watch)),
                Err(_) => s.without_launcher(launcher.pid),
            }
        }
        s.listener = Some(listener);
        Ok(s)
    }

    /// Starts all ranks.
    ///
    /// # Errors
    /// If not all can be started; those that were are killed.
    pub fn start(mut self) -> Result<ProcessRole, BootError> {
        let own = process::pid();
        for rank in 0..self.size {
            let (here, there) = match socket::pair() {
                Ok(pair) => pair,
                Err(e) => return Err(self.give_up(rank, &e)),
            };
            let mut pipes = match self.pipes(rank) {
                Ok(pipes) => pipes,
                Err(e) => return Err(self.give_up(rank, &e)),
            };
            // SAFETY: the child goes on with what needs no lock of another thread, or, where the program has other
            // threads, was warned of them (`report_many_threads`).
            match unsafe { sys::child::fork() } {
                Err(e) => return Err(self.give_up(rank, &e)),
                Ok(Forked::Parent(child)) => {
                    self.ranks.push(RankProcess::of_child(rank, self.control, child, here));
                    pipes.clear();
                }
                Ok(Forked::Child) => {
                    if !sys::child::die_with_parent(own) {
                        sys::exit_now(1);
                    }
                    drop(here);
                    for (standard, pipe) in [1, 2].into_iter().zip(&pipes) {
                        let _ = sys::descriptor::redirect(standard, pipe.as_fd());
                    }
                    return Ok(ProcessRole::Rank(self.into_rank_id(rank, there)));
                }
            }
        }
        Ok(ProcessRole::Supervisor(Box::new(self)))
    }

    /// Where this rank is to print, if that passes through us.
    fn pipes(&mut self, rank: u32) -> std::io::Result<Vec<OwnedFd>> {
        let mut ends = Vec::new();
        if let Some(streams) = &mut self.streams {
            for standard in [1, 2] {
                let (stream, end) = PrefixedStream::new(rank, standard)?;
                streams.push(stream);
                ends.push(end);
            }
        }
        Ok(ends)
    }

    /// The processes that were started, by rank.
    pub fn pids(&self) -> Vec<u32> {
        self.ranks.iter().map(|w| w.child).collect()
    }

    /// In a new process: puts back what the supervisor changed, and keeps only what a rank needs.
    fn into_rank_id(self, rank: u32, socket: OwnedFd) -> RankId {
        for (signal, action) in &self.old_actions {
            signal::restore(*signal, action);
        }
        signal::set_mask(&self.old_mask);
        if rank != 0 {
            sys::stdio::null_stdin();
        }
        let [control, arena, segments, scratch] = self.files.map(OwnedFd::from);
        RankId {
            rank,
            size: self.size,
            cookie: self.cookie,
            control,
            arena,
            segments,
            scratch,
            socket,
        }
    }

    fn give_up(&mut self, rank: u32, e: &std::io::Error) -> BootError {
        for w in &self.ranks {
            process::kill(w.child, Signal::KILL);
        }
        signal::set_mask(&self.old_mask);
        BootError::system(&format!("cannot start process {rank} of {}", self.size), e)
    }

    /// Watches the job until everybody is gone; returns its exit code.
    pub fn watch(mut self) -> i32 {
        let mut polled = Vec::new();
        // Now that the ranks have been started, and do not wait for it.
        self.lack_kills = memory::lack_kills();
        loop {
            let now = clock::now_ns();
            self.advance(now);
            if self.ranks.iter().all(RankProcess::gone)
                && (self.listener.is_none() || self.stage != Stage::Running)
            {
                break;
            }
            if matches!(self.stage, Stage::Killed(until) if now >= until) {
                self.abandon();
                break;
            }
            self.wait(&mut polled, now);
            while let Some(arrived) = self.signals.next() {
                self.on_signal(arrived);
            }
            self.admit(now);
            for i in 0..self.ranks.len() {
                self.serve(i);
            }
            self.streams.iter_mut().flatten().for_each(PrefixedStream::pass_on);
            self.look_at_answers();
        }
        self.streams.iter_mut().flatten().for_each(PrefixedStream::finish);
        let code = self.control.decision().map_or(0, |d| d.code);
        match self.late_crash {
            Some(crash) if code == 0 => crash,
            _ => code,
        }
    }

    /// Sleeps until a signal, a message, the end of a watched process, or the next deadline.
    fn wait(&self, polled: &mut Vec<PollEntry>, now: u64) {
        let entry = |fd: Option<&OwnedFd>| PollEntry::reading(fd.map(AsFd::as_fd));
        polled.clear();
        polled.push(PollEntry::reading(Some(self.signals.as_fd())));
        for w in &self.ranks {
            polled.push(entry(w.socket.as_ref()).or_writing(!w.outgoing.is_empty()));
            polled.push(entry(w.watched()));
        }
        polled.push(entry(self.listener.as_ref()));
        polled.extend(self.visitors.iter().map(|(v, _)| entry(Some(v))));
        if self.stage == Stage::Running {
            polled.extend(self.launchers.iter().map(|(_, watch)| entry(Some(watch))));
        }
        polled.extend(self.streams.iter().flatten().map(|s| entry(s.fd())));
        let stage = match self.stage {
            Stage::Running => None,
            Stage::Grace(t) | Stage::Leaving(t) | Stage::Starving(t, _) | Stage::Killed(t) => {
                Some(t)
            }
        };
        let settle = match self.stage {
            Stage::Running => {
                self.ranks.iter().filter_map(|w| w.rank_gone.map(|t| w.settled_at(t, now))).min()
            }
            _ => None,
        };
        let late = match (self.stage, self.begun) {
            (Stage::Running, Some((first, next))) => {
                self.patience.map(|p| first + p).into_iter().chain([next]).min()
            }
            _ => None,
        };
        let look = self.asking.map(|_| now + LOOK);
        let visit = self.visitors.iter().map(|&(_, until)| until).min();
        let until = stage.into_iter().chain(settle).chain(late).chain(look).chain(visit).min();
        let ms = until.map(|t| t.saturating_sub(now).div_ceil(MS).min(60_000) as u32);
        sys::poll::wait(polled, ms);
    }

    /// Goes on to the next stage of the end, if it is time.
    fn advance(&mut self, now: u64) {
        if self.stage == Stage::Running {
            self.settle(now);
            self.look_at_late(now);
            self.look_at_launchers();
            let Some(d) = self.control.decision() else { return };
            let grace = match d {
                ExitDecision { cause: ExitCause::Killed | ExitCause::Supervisor, .. } => 0,
                ExitDecision { code: 0, .. } => GRACE_GOOD,
                _ => GRACE_BAD,
            };
            self.stage = Stage::Grace(now.saturating_add(grace));
        }
        if matches!(self.stage, Stage::Grace(t) if now >= t) {
            self.control.order_exit();
            // Who comes now comes too late.
            self.listener = None;
            self.visitors.clear();
            let knock = Rc::new(MessageHead::new(MessageKind::ExitNow).bytes().to_vec());
            for w in self.ranks.iter_mut().filter(|w| !w.gone()) {
                // Whatever else was meant for the rank does not matter any more.
                w.outgoing.clear();
                w.send(knock.clone());
                // Who has not called gasnet_init hears no knock. One that is about to connect finds nobody.
                if w.ours && w.rank_pid.is_none() && w.ended.is_none() {
                    w.killed_by_us = true;
                    process::kill(w.child, Signal::TERM);
                }
            }
            self.stage = Stage::Leaving(now.saturating_add(self.leaving));
        }
        let last = match self.stage {
            Stage::Leaving(t) if now >= t => now + MOST,
            Stage::Starving(t, last) if now >= t => last,
            _ => return,
        };
        if now < last && self.somebody_starves() {
            self.stage = Stage::Starving(now + MORE, last);
            return;
        }
        self.kill_the_rest();
        self.stage = Stage::Killed(now + KILLED);
    }

    /// Whether a rank that is still there gets too little of the CPUs to leave.
    fn somebody_starves(&mut self) -> bool {
        // Looks at all, so that the next look compares.
        self.ranks.iter_mut().filter(|w| !w.gone()).fold(false, |any, w| w.starves() | any)
    }

    fn kill_the_rest(&mut self) {
        let ms = self.leaving / MS;
        for (rank, w) in self.ranks.iter_mut().enumerate().filter(|(_, w)| !w.gone()) {
            let pid = w.pid();
            let what = match process::liveness(pid) {
                Liveness::Stopped => "is stopped and cannot leave the job".to_string(),
                _ => format!("did not leave the job within {ms} ms"),
            };
            say(&format!("rank {rank} (pid {pid}) {what}; it is killed"));
            w.killed_by_us = true;
            process::kill(w.child, Signal::KILL);
            if pid != w.child {
                process::kill(pid, Signal::KILL);
            }
        }
    }

    fn abandon(&self) {
        for (rank, w) in self.ranks.iter().enumerate().filter(|(_, w)| !w.gone()) {
            say(&format!(
                "rank {rank} (pid {}) was killed but does not vanish; it is left behind",
                w.pid()
            ));
        }
    }

    /// Decides about ranks that are gone without our having collected them.
    fn settle(&mut self, now: u64) {
        for i in 0..self.ranks.len() {
            let w = &self.ranks[i];
            let Some(t) = w.rank_gone.filter(|_| self.control.decision().is_none()) else {
                continue;
            };
            match w.foreign_end().filter(|_| !w.ours) {
                Some(Ended::Exited(code)) if w.rank_pid.is_none() => self.early(i, code),
                Some(Ended::Exited(code)) => self.decide(i, code, ExitCause::Vanished),
                Some(Ended::Killed(signal)) => self.killed(i, signal),
                None if now >= t + rank_process::SETTLE => {
                    say(&format!("rank {i} (pid {}) ended without leaving the job", w.pid()));
                    self.decide(i, 1, ExitCause::Vanished);
                }
                None => {}
            }
        }
    }

    /// Ends the job if a process is gone that has started a rank which lives on.
    fn look_at_launchers(&mut self) {
        let mut gone = None;
        self.launchers.retain(|(pid, watch)| {
            let ended = sys::poll::readable(watch.as_fd());
            if ended {
                gone = Some(*pid);
            }
            !ended
        });
        let Some(pid) = gone else { return };
        // Who ends after its ranks is seen after them.
        self.ranks.iter_mut().for_each(RankProcess::look);
        if self.ranks.iter().any(|w| w.launcher == Some(pid) && !w.gone()) {
            self.without_launcher(pid);
        }
    }

    fn without_launcher(&self, pid: u32) {
        if self.control.decision().is_none() {
            say(&format!("the launcher (process {pid}) is gone, so the job ends"));
            self.fail(1);
        }
    }

    /// Tells of ranks that have not called `gasnet_init` long after others have, and ends the job when it takes too long.
    fn look_at_late(&mut self, now: u64) {
        let late: Vec<&RankProcess> = self.ranks.iter().filter(|w| w.rank_pid.is_none()).collect();
        if late.is_empty() {
            self.begun = None;
        }
        let Some((first, next)) = self.begun else { return };
        let seconds = (now - first) / (1000 * MS);
        let who = || {
            let named: Vec<String> = late.iter().take(8).map(|w| late_rank(w)).collect();
            let more = if late.len() > 8 { ", ..." } else { "" };
            format!(
                "{} of {} processes: rank {}{more}",
                late.len(),
                self.size,
                named.join(", rank ")
            )
        };
        if self.patience.is_some_and(|p| now >= first + p) {
            say(&format!(
                "{seconds} s after the first, gasnet_init has not been called by {}; the job ends",
                who()
            ));
            say(
                "  Look at what they do; GASNET_SPAWN_TIMEOUT says how many seconds they may take, 0 that they may take for ever.",
            );
            return self.fail(1);
        }
        if now >= next {
            say(&format!(
                "{seconds} s after the first, gasnet_init has not been called by {}",
                who()
            ));
            self.begun = Some((first, now + 2 * (now - first)));
        }
    }

    /// Lets in who has connected.
    fn admit(&mut self, now: u64) {
        while let Some(Ok(new)) = self.listener.as_ref().map(|l| socket::accept(l.as_fd())) {
            match socket::credentials(new.as_fd()) {
                Ok(peer) if peer.uid != process::user() => {
                    say(&format!(
                        "process {} of user {} tried to join this job",
                        peer.pid, peer.uid
                    ));
                }
                Ok(_) => self.visitors.push((new, now + INTRODUCTION)),
                Err(_) => {}
            }
        }
        for (visitor, until) in core::mem::take(&mut self.visitors) {
            if sys::poll::readable(visitor.as_fd()) {
                self.introduce(visitor);
            } else if now < until {
                self.visitors.push((visitor, until));
            } else if let Ok(peer) = socket::credentials(visitor.as_fd()) {
                say(&format!("process {} connected to this job, but did not say why", peer.pid));
            }
        }
        if self.ranks.iter().all(|w| w.socket.is_some()) {
            self.listener = None;
            self.visitors.clear();
        }
    }

    /// Makes a rank of what has connected, if it is one of ours; strangers are hung up on.
    fn introduce(&mut self, new: OwnedFd) {
        let Ok(peer) = socket::credentials(new.as_fd()) else { return };
        let mut buffer = [0; message::HEAD_BYTES + 8];
        let said = socket::receive(new.as_raw_fd(), &mut buffer, false);
        let cookie = self.cookie.to_ne_bytes();
        let rank = match said.ok().and_then(|n| MessageHead::parse(&buffer[..n])) {
            Some((MessageHead { kind: MessageKind::JoinRequest, a, .. }, data))
                if data == cookie =>
            {
                a
            }
            _ => {
                return say(&format!(
                    "process {} tried to join this job without its cookie",
                    peer.pid
                ));
            }
        };
        let Some(w) = self.ranks.get_mut(rank as usize).filter(|w| w.socket.is_none()) else {
            return say(&format!(
                "process {} tried to join this job as rank {rank}, which is taken",
                peer.pid
            ));
        };
        // Whose end we have seen has left the connection behind.
        if w.rank_gone.is_some() {
            return;
        }
        if w.child != peer.pid || w.watch.is_none() {
            (w.child, w.watch) = (peer.pid, sys::child::pidfd(peer.pid).ok());
            if w.watch.is_none() {
                w.rank_gone = Some(clock::now_ns());
                return;
            }
        }
        let files = [0, 1, 2, 3].map(|i| self.files[i].as_fd());
        let answer = MessageHead { kind: MessageKind::JoinReply, a: self.size, b: 0 }.bytes();
        if socket::send_fds(new.as_fd(), &answer, &files).is_err() {
            return;
        }
        (w.rank_pid, w.socket) = (Some(peer.pid), Some(new));
        if w.launcher.is_none() {
            // Process 1 takes over whose parent has ended before we looked.
            w.launcher = process::parent_of(peer.pid).filter(|&p| p > 1);
            if let Some(pid) =
                w.launcher.filter(|pid| self.launchers.iter().all(|(known, _)| known != pid))
            {
                self.launchers.extend(sys::child::pidfd(pid).ok().map(|watch| (pid, watch)));
            }
        }
        self.arrived();
    }

    /// One more rank has called `gasnet_init`.
    fn arrived(&mut self) {
        let now = clock::now_ns();
        self.begun.get_or_insert((now, now + LATE));
    }

    fn decide(&self, rank: usize, code: i32, cause: ExitCause) {
        self.control.decide(ExitDecision { code, cause, rank: Some(rank as u32) });
    }

    fn fail(&self, code: i32) {
        self.control.decide(ExitDecision { code, cause: ExitCause::Supervisor, rank: None });
    }

    fn on_signal(&mut self, ReceivedSignal { signal, sent }: ReceivedSignal) {
        if signal == Signal::CHLD {
            for i in 0..self.ranks.len() {
                self.reap(i);
            }
            return;
        }
        if signal == QUESTION {
            return self.ask();
        }
        if REQUESTS.contains(&signal) {
            if self.requested {
                say(&format!("second {} or the like: the job ends", signal.name()));
                self.fail(128 + signal.number());
                return;
            }
            self.requested = true;
        }
        // What a terminal raised it has raised for the ranks as well, but its end it tells the first process alone.
        if sent || signal == Signal::HUP {
            for w in self.ranks.iter().filter(|w| !w.gone()) {
                process::kill(w.pid(), signal);
            }
        }
    }

    /// Asks the ranks what they do.
    fn ask(&mut self) {
        if self.asking.is_some() {
            return;
        }
        self.asking = Some((self.control.ask(), clock::now_ns() + ANSWER));
        for w in self.ranks.iter().filter(|w| !w.gone() && self.control.can_be_asked(w.rank)) {
            process::kill(w.pid(), signal::notice());
        }
    }

    /// Tells what the ranks have answered, once all have that can, or when they had time enough.
    fn look_at_answers(&mut self) {
        let Some((question, until)) = self.asking else { return };
        let silent = |w: &&RankProcess| {
            !w.gone()
                && self.control.can_be_asked(w.rank)
                && process::liveness(w.pid()) == Liveness::Alive
                && self.control.answer_of(w.rank, question).is_none()
        };
        if clock::now_ns() < until && self.ranks.iter().any(|w| silent(&w)) {
            return;
        }
        say(&format!("what the {} processes of the job do:", self.size));
        for w in &self.ranks {
            let answer = self.control.answer_of(w.rank, question);
            let what = match (w.gone(), process::liveness(w.pid()), answer) {
                (true, ..) => "has ended".to_string(),
                (_, Liveness::Stopped, _) => {
                    format!("is stopped; kill -CONT {} lets it go on", w.pid())
                }
                (.., Some(answer)) => answer,
                _ if !self.control.can_be_asked(w.rank) => {
                    "has not called gasnet_init, or is in it".to_string()
                }
                _ => "does not answer: it has its signals blocked, or gets no CPU".to_string(),
            };
            say(&format!("rank {} (pid {}) {what}", w.rank, w.pid()));
        }
        self.control.close_question();
        self.asking = None;
    }

    /// Takes what rank `i` has sent, and sees whether its process has ended.
    fn serve(&mut self, i: usize) {
        self.drain(i);
        let w = &mut self.ranks[i];
        w.flush();
        w.look();
    }

    fn reap(&mut self, i: usize) {
        if !self.ranks[i].ours || self.ranks[i].ended.is_some() {
            return;
        }
        let Some(ended) = sys::child::reap(self.ranks[i].child) else { return };
        self.drain(i);
        let w = &mut self.ranks[i];
        w.ended = Some(ended);
        let (pid, joined) = (w.child, w.rank_pid.is_some());
        let decided = self.control.decision().is_some();
        match ended {
            Ended::Killed(signal) => {
                if w.killed_by_us {
                    return;
                }
                if decided {
                    self.late_crash.get_or_insert(128 + signal.number());
                    return;
                }
                self.killed(i, signal);
            }
            Ended::Exited(_) if decided => {}
            // The rank is another process and lives on.
            Ended::Exited(0) if self.ranks[i].watch.is_some() => {}
            Ended::Exited(code) if joined => self.decide(i, code, ExitCause::Vanished),
            Ended::Exited(0) => self.missing(),
            Ended::Exited(code) => {
                say(&format!(
                    "rank {i} (pid {pid}) ended with exit code {code} before gasnet_init"
                ));
                self.decide(i, code, ExitCause::Vanished);
            }
        }
    }

    /// Ends a job of which a process that has not joined it has exited.
    fn early(&self, i: usize, code: i32) {
        say(&format!(
            "rank {i} (pid {}) ended with exit code {code} within gasnet_init, for which other ranks wait",
            self.ranks[i].pid()
        ));
        say("  See what it says of its end, and start the job again.");
        self.decide(i, if code == 0 { 1 } else { code }, ExitCause::Vanished);
    }

    fn killed(&self, i: usize, signal: Signal) {
        let code = 128 + signal.number();
        say(&format!(
            "rank {i} (pid {}) was killed by signal {} ({}); the job ends with exit code {code}",
            self.ranks[i].child,
            signal.number(),
            signal.name()
        ));
        if !self.ranks[i].ours && self.ranks[i].rank_pid.is_none() {
            say(
                "  It had not joined the job yet: see what the launcher says of its end, and start the job again.",
            );
        }
        if signal == Signal::KILL && memory::lack_kills() > self.lack_kills {
            let group = memory::limits()
                .cgroup
                .map_or(String::new(), |c| format!(" (its control group allows {c} bytes)"));
            say(&format!(
                "  The kernel found no memory for it{group}: raise the limit, or start fewer processes with smaller segments (GASNET_MAX_SEGSIZE)."
            ));
        }
        self.decide(i, code, ExitCause::Killed);
    }

    /// Ends a job of which some ranks wait for one that ended before it called `gasnet_init`.
    fn missing(&self) {
        let Some(i) = self.ranks.iter().position(|w| w.ended.is_some() && w.rank_pid.is_none())
        else {
            return;
        };
        if self.ranks.iter().any(|w| w.rank_pid.is_some()) && self.control.decision().is_none() {
            say(&format!(
                "rank {i} (pid {}) ended with exit code 0 before gasnet_init, which other ranks have called",
                self.ranks[i].child
            ));
            self.fail(1);
        }
    }

    /// Takes all messages that rank `i` has sent.
    fn drain(&mut self, i: usize) {
        let mut buffer = [0; message::HEAD_BYTES + message::DATA_BYTES];
        loop {
            let Some(fd) = self.ranks[i].socket.as_ref().map(AsRawFd::as_raw_fd) else { return };
            match socket::receive(fd, &mut buffer, false) {
                Ok(0) => self.ranks[i].socket = None,
                Ok(n) => match MessageHead::parse(&buffer[..n]) {
                    Some((head, data)) => self.on_message(i, head, data),
                    None => self.nonsense(i),
                },
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) if e.kind() == ErrorKind::WouldBlock => return,
                Err(_) => self.ranks[i].socket = None,
            }
        }
    }

    fn nonsense(&self, i: usize) {
        say(&format!(
            "rank {i} (pid {}) sent what cannot be understood; the job ends",
            self.ranks[i].pid()
        ));
        self.fail(1);
    }

    fn on_message(&mut self, i: usize, head: MessageHead, data: &[u8]) {
        let w = &mut self.ranks[i];
        match head.kind {
            // Who has connected is known.
            MessageKind::Joined if !w.ours => {}
            MessageKind::Joined => {
                w.rank_pid = Some(head.a);
                if head.a != w.child {
                    w.watch = sys::child::pidfd(head.a).ok();
                }
                self.arrived();
                self.missing();
            }
            MessageKind::Barrier => {
                w.in_barrier = true;
                if self.ranks.iter().all(|w| w.in_barrier) {
                    let go = Rc::new(MessageHead::new(MessageKind::BarrierDone).bytes().to_vec());
                    for w in &mut self.ranks {
                        w.in_barrier = false;
                        w.send(go.clone());
                    }
                }
            }
            MessageKind::ExchangePart => match w.giving.add(head, data) {
                None => self.nonsense(i),
                Some(false) => {}
                Some(true) => {
                    w.given = Some(w.giving.take());
                    self.exchange();
                }
            },
            // The exit word is looked at in every round.
            MessageKind::ExitDecided => {}
            MessageKind::ExecFailed => {
                let e = std::io::Error::from_raw_os_error(head.a as i32);
                if self.control.decision().is_none() {
                    say(&format!("rank {i} cannot be started: {e}"));
                    say(
                        "  See that the program is one for this machine, and that its interpreter or loader is there.",
                    );
                }
                let error = std::io::Error::from_raw_os_error(head.a as i32);
                let missing = error.kind() == std::io::ErrorKind::NotFound;
                self.fail(if missing { 127 } else { 126 });
            }
            MessageKind::BarrierDone
            | MessageKind::ExitNow
            | MessageKind::JoinRequest
            | MessageKind::JoinReply => self.nonsense(i),
        }
    }

    /// Hands out what all ranks have given, once all have.
    fn exchange(&mut self) {
        if !self.ranks.iter().all(|w| w.given.is_some()) {
            return;
        }
        let given: Vec<Vec<u8>> = self.ranks.iter_mut().filter_map(|w| w.given.take()).collect();
        if let Some(odd) = given.iter().position(|g| g.len() != given[0].len()) {
            return self.nonsense(odd);
        }
        for part in message::parts(&given.concat()) {
            let part = Rc::new(part);
            for w in &mut self.ranks {
                w.send(part.clone());
            }
        }
    }
}

/// Tells the user one line.
fn say(line: &str) {
    report::line(format_args!("{line}"));
}

/// A rank that is late, and what its process does.
fn late_rank(w: &RankProcess) -> String {
    match w.child {
        0 => format!("{}", w.rank),
        pid => match process::liveness(pid) {
            Liveness::Stopped => format!("{} (pid {pid}, stopped)", w.rank),
            _ => format!("{} (pid {pid})", w.rank),
        },
    }
}
