//! The supervisor: the process that starts or accepts the ranks of a host, carries their barriers
//! and exchanges, watches them, and ends the job.
//!
//! Used by `boot::launch` and `boot::fork` for ranks that it starts, by `boot::foreign` for
//! ranks that connect. Invariants: [`Supervisor::watch`] returns only when every rank has
//! exited or cannot be killed. It waits for processes, never for descriptors, which children of
//! ranks may keep open.
//!
//! | file | what it owns |
//! |---|---|
//! | `rank_process` | one rank: its processes, its control socket |
//! | `rank_ends` | how ranks ended, and what that decides |
//! | `exit_progress` | the steps of the end, and their deadlines |
//! | `barrier_exchange` | barriers and exchanges |
//! | `connections` | ranks that connect |
//! | `rank_parents` | the processes that started those |
//! | `other_hosts` | the supervisors of the job's other hosts |
//! | `late_ranks` | ranks that have not called `gasnet_init` |
//! | `status_request` | what the ranks are doing, for SIGUSR1 |
//! | `job_timeout` | how long the job may run |
//! | `job_signals` | the signals of the supervisor |
//! | `rank_output` | where the ranks print |
//! | `folded_errors` | which ranks have an error that one has printed |
//! | `prefix` | output of the ranks, with the rank in front of each line |

mod barrier_exchange;
mod connections;
mod exit_progress;
mod folded_errors;
mod job_signals;
mod job_timeout;
mod late_ranks;
mod other_hosts;
mod prefix;
mod rank_ends;
mod rank_output;
mod rank_parents;
mod rank_process;
mod status_request;

use super::control_memory::ControlMemory;
use super::control_message::{self, ControlHead, ControlKind};
use super::error::BootError;
use super::host_memory::HostMemory;
use super::host_share::{HostShare, RankPlace};
use super::hosts::link::HostLink;
use super::hosts::message::HostMessage;
use super::hosts::remote_plan::RemotePlan;
use super::member::Member;
use super::options::BootOptions;
use super::rank_id::RankId;
use crate::env::RankSet;
use crate::rank::{JobRank, LocalRank};
use crate::report;
use barrier_exchange::{BarrierExchange, InvalidMessage};
use connections::{Connections, JoinRequest};
use exit_progress::ExitProgress;
use folded_errors::FoldedErrors;
use handshake::JobSecret;
use job_signals::JobSignals;
pub(super) use job_signals::OF_FRONT;
pub use job_signals::SignalSource;
use job_timeout::JobTimeout;
use late_ranks::LateRanks;
use other_hosts::{HostEvent, HostsToStart, OtherHosts};
pub(super) use prefix::PrefixedStream;
use rank_ends::RankEnds;
use rank_output::RankOutput;
use rank_parents::RankParents;
use rank_process::RankProcess;
use status_request::StatusRequest;
use std::io::ErrorKind;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::rc::Rc;
use sys::child::Forked;
use sys::poll::PollEntry;
use sys::signal::{ReceivedSignal, Signal};
use sys::watch::{self, ProcessWatch};
use sys::{clock, process, socket};

/// Nanoseconds after a request to end the job in which another one is the same: `timeout` sends
/// its signal twice.
const SECOND_REQUEST: u64 = 100_000_000;

/// The process that returns from [`Supervisor::start`].
#[derive(Debug)]
pub enum ProcessRole {
    /// A new process, to become this rank.
    Rank(RankId),
    /// The calling process; it goes on with [`Supervisor::watch`].
    Supervisor(Box<Supervisor>),
}

/// The supervisor of a job.
#[derive(Debug)]
pub struct Supervisor {
    control: ControlMemory,
    /// The file of `control`.
    control_file: OwnedFd,
    cookie: u64,
    memory: HostMemory,
    /// Those of this host, by local rank.
    ranks: Vec<RankProcess>,
    share: HostShare,
    signals: JobSignals,
    exit: ExitProgress,
    ends: RankEnds,
    collective: BarrierExchange,
    others: OtherHosts,
    connections: Connections,
    parents: RankParents,
    late: LateRanks,
    status: StatusRequest,
    errors: FoldedErrors,
    /// When a request to end the job was passed on.
    end_requested_at: Option<u64>,
    output: RankOutput,
    /// The rank that has the standard input of this process.
    reader: JobRank,
    /// When the job ends because it runs too long.
    timeout: Option<JobTimeout>,
}

impl Supervisor {
    /// Prepares the ranks of this host, and takes over the signals of this process, which has one
    /// thread.
    ///
    /// # Errors
    /// The system lacks a resource.
    pub fn new(
        share: HostShare,
        signals: SignalSource,
        options: &BootOptions,
    ) -> Result<Supervisor, BootError> {
        let cookie = sys::random::number()
            .map_err(|e| BootError::system("cannot get a random number", &e))?;
        Supervisor::with(share, cookie, signals, options)
    }

    fn with(
        share: HostShare,
        cookie: u64,
        signals: SignalSource,
        options: &BootOptions,
    ) -> Result<Supervisor, BootError> {
        sys::limits::maximize_descriptors();
        let (file, control) = ControlMemory::create(share.local_size(), cookie)?;
        Ok(Supervisor {
            control,
            control_file: file.into(),
            cookie,
            memory: HostMemory::create()?,
            ranks: Vec::new(),
            signals: JobSignals::take_over(signals)?,
            exit: ExitProgress::new(options.exit_timeout(share.size), options.no_cut_off),
            ends: RankEnds::new(control),
            collective: BarrierExchange::default(),
            others: OtherHosts::default(),
            connections: Connections::default(),
            parents: RankParents::default(),
            late: LateRanks::new(options.spawn_timeout),
            status: StatusRequest::default(),
            errors: FoldedErrors::default(),
            end_requested_at: None,
            output: RankOutput::default(),
            reader: JobRank(0),
            timeout: None,
            share,
        })
    }

    /// Passes the output of the ranks through this process, which puts the rank in front of each
    /// line.
    pub fn prefix(mut self) -> Supervisor {
        self.output = self.output.prefixed();
        self
    }

    /// Has the ranks print into files of this folder, one for each rank and stream.
    ///
    /// # Errors
    /// The folder or a file cannot be made.
    pub(super) fn output(mut self, folder: &Path) -> Result<Supervisor, BootError> {
        self.output = self.output.in_folder(folder, self.share.ranks())?;
        Ok(self)
    }

    /// Ends the job when it has run for this many seconds.
    pub(super) fn timeout(mut self, seconds: f64) -> Supervisor {
        self.timeout = Some(JobTimeout::new(seconds));
        self
    }

    /// Starts the supervisors of all hosts of the job but this one, whose number is `own` if it
    /// has ranks. They must have connected within `timeout` nanoseconds.
    ///
    /// # Errors
    /// One cannot be started; those that were end with this process.
    pub(super) fn start_hosts(
        mut self,
        names: &[String],
        own: Option<u32>,
        plan: &RemotePlan,
        timeout: Option<u64>,
    ) -> Result<Supervisor, BootError> {
        let mask = self.signals.ranks_mask();
        let started = OtherHosts::start(&HostsToStart { names, own, plan, mask, timeout });
        self.others = started.inspect_err(|_| self.signals.restore_mask())?;
        Ok(self)
    }

    /// Connects this supervisor with that of gasnetrun on another host.
    ///
    /// # Errors
    /// The user names a network interface that this host does not have.
    pub(super) fn below(
        mut self,
        link: HostLink,
        secret: JobSecret,
    ) -> Result<Supervisor, BootError> {
        self.others = OtherHosts::above(link, secret)?;
        Ok(self)
    }

    /// Leaves output to the debuggers of these ranks; `reader` has standard input.
    pub(super) fn debugged(mut self, ranks: RankSet, reader: Option<JobRank>) -> Supervisor {
        self.reader = reader.unwrap_or(self.reader);
        self.output.spared = Some(ranks);
        self
    }

    /// The supervisor of ranks that connect to `listener` and know the cookie, one for each
    /// member. A member is `None` if its process is unknown.
    pub(super) fn adopt(
        cookie: u64,
        listener: OwnedFd,
        members: &[Option<Member>],
        options: &BootOptions,
    ) -> Result<Supervisor, BootError> {
        let share = HostShare::whole(members.len() as u32);
        let mut s = Supervisor::with(share, cookie, SignalSource::Launcher, options)?;
        let locals = (0..s.share.local_size()).map(LocalRank);
        s.ranks = locals.map(|l| RankProcess::expected(s.share.place(l), s.control)).collect();
        for (i, member) in members.iter().enumerate() {
            let Some(Member { process, parent }) = member else { continue };
            s.ranks[i].watch(process.pid, ProcessWatch::of(*process).ok());
            let Some(parent) = parent else { continue };
            s.ranks[i].parent = Some(parent.pid);
            if s.parents.has(parent.pid) {
                continue;
            }
            match ProcessWatch::of(*parent) {
                Ok(watch) => s.parents.add(parent.pid, watch),
                Err(_) => s.end_without_launcher(parent.pid),
            }
        }
        s.connections.listen(listener);
        Ok(s)
    }

    /// Starts all ranks.
    ///
    /// # Errors
    /// Not all can be started; those that were are killed.
    pub fn start(mut self) -> Result<ProcessRole, BootError> {
        let own = process::pid();
        for local in (0..self.share.local_size()).map(LocalRank) {
            let place = self.share.place(local);
            let rank = place.rank;
            let pair = socket::pair()
                .and_then(|pair| socket::note_senders(pair.0.as_fd()).map(|()| pair));
            let (here, there) = match pair {
                Ok(pair) => pair,
                Err(e) => return Err(self.give_up(rank, &e)),
            };
            let mut ends = match self.output.ends(rank) {
                Ok(ends) => ends,
                Err(e) => return Err(self.give_up(rank, &e)),
            };
            // SAFETY: this process has one thread.
            match unsafe { sys::child::fork() } {
                Err(e) => return Err(self.give_up(rank, &e)),
                Ok(Forked::Parent(child)) => {
                    let mut r = RankProcess::of_child(place, self.control, child, here);
                    r.has_debugger = self.output.is_spared(rank);
                    self.ranks.push(r);
                    ends.clear();
                }
                Ok(Forked::Child) => {
                    if !sys::child::die_with_parent(own) {
                        sys::exit_now(1);
                    }
                    drop(here);
                    for (standard, end) in &ends {
                        let _ = sys::descriptor::redirect(*standard, end.as_fd());
                    }
                    return Ok(ProcessRole::Rank(self.into_rank_id(place, there)));
                }
            }
        }
        Ok(ProcessRole::Supervisor(Box::new(self)))
    }

    /// The ranks of this host, each with the process that was started.
    pub fn processes(&self) -> Vec<(JobRank, u32)> {
        self.ranks.iter().map(|r| (r.rank, r.process)).collect()
    }

    /// In a new process: gives the signals back, and keeps only what a rank needs.
    fn into_rank_id(self, place: RankPlace, socket: OwnedFd) -> RankId {
        self.signals.restore();
        if place.rank != self.reader {
            sys::stdio::null_stdin();
        }
        RankId {
            place,
            cookie: self.cookie,
            control: self.control_file,
            memory: self.memory,
            socket,
        }
    }

    fn give_up(&mut self, rank: JobRank, e: &std::io::Error) -> BootError {
        for r in &self.ranks {
            process::kill(r.process, Signal::KILL);
        }
        self.signals.restore_mask();
        BootError::system(&format!("cannot start rank {rank} of {}", self.share.size), e)
    }

    /// Watches the job until all ranks have exited; returns its exit code.
    pub fn watch(mut self) -> i32 {
        let mut polled = Vec::new();
        self.ends.begin();
        self.ranks.iter_mut().for_each(RankProcess::watch_child);
        loop {
            self.reap();
            let now = clock::now_ns();
            self.advance(now);
            if self.ranks.iter().all(RankProcess::has_exited)
                && (!self.connections.is_open() || !self.exit.is_running())
                && self.others.are_over()
            {
                break;
            }
            if self.exit.is_over(now, !self.others.working().is_empty()) {
                exit_progress::report_unended(&self.ranks, &self.others.working());
                break;
            }
            self.wait(&mut polled, now);
            while let Some(received) = self.signals.next() {
                self.on_signal(received);
            }
            for request in self.connections.accept(now, self.cookie) {
                self.on_join_request(request);
            }
            if self.ranks.iter().all(|r| r.socket.is_some()) {
                self.connections.close();
            }
            for i in 0..self.ranks.len() {
                self.receive(i);
                self.ranks[i].flush();
                self.ranks[i].check_watch();
            }
            for event in self.others.serve(now) {
                self.on_host_event(event);
            }
            self.tell_ranks();
            self.output.streams_mut().iter_mut().for_each(PrefixedStream::pass_on);
            if self.status.check(self.control, &self.ranks) {
                self.others.send_up(&HostMessage::StatusPrinted);
            }
            self.errors.check(clock::now_ns(), self.control, &self.ranks);
        }
        self.errors.report(self.control, &self.ranks);
        self.output.streams_mut().iter_mut().for_each(PrefixedStream::finish);
        let decided = || self.control.decision().map_or(0, |d| d.code);
        let late_crash = self.ends.late_crash.or(self.others.failure());
        let code = match (self.exit.code(), late_crash) {
            (0, Some(crash)) => crash,
            (0, None) => decided(),
            (code, _) => code,
        };
        self.others.say_ended(code);
        self.others.end_shells();
        self.signals.end_front(code);
        code
    }

    /// Sleeps until a signal, a message, the exit of a watched process, or the next deadline.
    fn wait(&self, polled: &mut Vec<PollEntry>, now: u64) {
        let entry = |fd: Option<&OwnedFd>| PollEntry::reading(fd.map(AsFd::as_fd));
        polled.clear();
        polled.extend(self.signals.fds().map(PollEntry::reading));
        for r in &self.ranks {
            polled.push(entry(r.socket.as_ref()).or_writing(!r.outgoing.is_empty()));
        }
        polled.extend(self.connections.descriptors().map(|fd| entry(Some(fd))));
        polled.extend(self.output.streams().iter().map(|s| entry(s.fd())));
        self.others.add_to(polled);
        let mut deadlines =
            vec![self.exit.deadline(now), self.status.deadline(now), self.connections.deadline()];
        deadlines.push(self.errors.deadline());
        deadlines.push(self.others.deadline(now));
        if self.exit.is_running() {
            deadlines.push(self.late.deadline());
        }
        if self.exit.is_open() {
            deadlines.push(self.timeout.and_then(|t| t.deadline(&self.status)));
            let unknown = self.ranks.iter().filter(|r| r.own_end.is_none());
            let exited = unknown.filter_map(|r| Some(r.query_at(r.exited_at?, now)));
            deadlines.push(exited.min());
        }
        if self.signals.needs_looks() {
            deadlines.push(Some(now + watch::LOOK_NS));
        }
        let parents = self.parents.watches().filter(|_| self.exit.is_running());
        for watch in self.ranks.iter().flat_map(RankProcess::watches).chain(parents) {
            match watch.fd() {
                Some(fd) => polled.push(entry(Some(fd))),
                None => deadlines.push(Some(now + watch::LOOK_NS)),
            }
        }
        let until = deadlines.into_iter().flatten().min();
        let ms = until.map(|t| t.saturating_sub(now).div_ceil(1_000_000).min(60_000) as u32);
        sys::poll::wait(polled, ms);
    }

    /// Looks for reasons to end the job, and goes on with its end.
    fn advance(&mut self, now: u64) {
        if self.exit.is_running() {
            if self.late.check(now, &self.ranks) {
                self.control.decide_failure(1);
            }
            if let Some(pid) = self.parents.exited_early(&mut self.ranks) {
                self.end_without_launcher(pid);
            }
        }
        if self.exit.is_open() {
            if let Some(timeout) = self.timeout {
                timeout.check(now, self.control, &self.ranks, &mut self.status, &mut self.others);
            }
            self.ends.check_watched(&self.ranks, now);
            let Some(decision) = self.control.decision() else { return };
            if self.exit.begin(decision, now) {
                self.others.send(&HostMessage::Decision(decision));
                self.ends.announce(decision, &self.ranks);
                if !decision.is_success() {
                    self.control.request_exit();
                }
            }
        }
        if self.exit.is_cut_due(now)
            && let Some(first) = self.exit.decision()
            && !self.status.is_cut_off_reported(self.control, &self.ranks, first)
        {
            return;
        }
        if self.exit.advance(now, self.control, &mut self.ranks) {
            // A rank that connects now is too late.
            self.connections.close();
        }
    }

    fn end_without_launcher(&self, pid: u32) {
        if self.control.decision().is_none() {
            report::line(format_args!("the launcher (process {pid}) has exited, so the job ends"));
            self.control.decide_failure(1);
        }
    }

    /// Makes a rank of a process that has connected; others are disconnected.
    fn on_join_request(&mut self, request: JoinRequest) {
        let JoinRequest { rank, pid, socket: new } = request;
        let local = self.share.local_rank_of(rank);
        let known = local.and_then(|local| self.ranks.get_mut(local.index()));
        let Some(r) = known.filter(|r| r.socket.is_none()) else {
            return report::line(format_args!(
                "process {pid} tried to join this job as rank {rank}, which is taken"
            ));
        };
        // The process has exited and left its connection behind.
        if r.exited_at.is_some() {
            return;
        }
        if r.process != pid || r.watch.is_none() {
            r.watch(pid, ProcessWatch::new(pid).ok());
            if r.exited_at.is_some() {
                return;
            }
        }
        let HostMemory { arena, segments, scratch } = &self.memory;
        let [arena, segments, scratch] = [arena, segments, scratch].map(AsFd::as_fd);
        let files = [self.control_file.as_fd(), arena, segments, scratch];
        let answer =
            ControlHead { kind: ControlKind::JoinReply, a: self.share.size, b: 0 }.bytes();
        if socket::note_senders(new.as_fd()).is_err()
            || socket::send_fds(new.as_fd(), &answer, &files).is_err()
        {
            return;
        }
        (r.joined, r.socket) = (Some(pid), Some(new));
        if r.parent.is_none() {
            // Process 1 is the parent of processes whose own has exited.
            r.parent = process::parent_of(pid).filter(|&p| p > 1);
            if let Some(pid) = r.parent.filter(|&pid| !self.parents.has(pid))
                && let Ok(watch) = ProcessWatch::new(pid)
            {
                self.parents.add(pid, watch);
            }
        }
        self.first_joined();
    }

    fn on_signal(&mut self, ReceivedSignal { signal, sent }: ReceivedSignal) {
        if signal == Signal::CHLD {
            // Each round looks for ended children.
            return;
        }
        if signal == job_signals::STATUS_REQUEST {
            self.others.request_status();
            return self.status.open(self.control, &self.ranks);
        }
        if job_signals::END_REQUESTS.contains(&signal) {
            let now = clock::now_ns();
            if let Some(first) = self.end_requested_at {
                if now > first + SECOND_REQUEST {
                    report::line(format_args!(
                        "second request to end ({}): the ranks are killed",
                        signal.name()
                    ));
                    self.control.decide_signal(signal);
                    self.others.send_down(&HostMessage::Signal(Signal::KILL.number() as u32));
                    self.exit.kill_now(now, &mut self.ranks);
                }
                return;
            }
            self.end_requested_at = Some(now);
            if self.control.decide_signal(signal) {
                report::line(format_args!(
                    "Caught a signal: {}({n}); the job ends with exit code {}",
                    signal.name(),
                    128 + signal.number(),
                    n = signal.number()
                ));
            }
        }
        // The ranks learn why before the signal reaches them, as those of this host do.
        if let Some(decision) = self.control.decision() {
            self.others.send_down(&HostMessage::Decision(decision));
        }
        self.others.send_down(&HostMessage::Signal(signal.number() as u32));
        // A terminal raises signals for the ranks as well, except its hang-up.
        if sent || signal == Signal::HUP {
            self.signal_ranks(signal);
        }
    }

    fn signal_ranks(&self, signal: Signal) {
        for r in self.ranks.iter().filter(|r| !r.has_exited()) {
            process::kill(r.pid(), signal);
        }
    }

    /// Acts on what another host has sent.
    fn on_host_event(&mut self, event: HostEvent) {
        match event {
            HostEvent::Lost(code) => self.control.decide_failure(code),
            HostEvent::FromAbove(HostMessage::Barrier) => {
                self.collective.release(&mut self.ranks, &mut self.others);
            }
            HostEvent::FromAbove(HostMessage::Exchanged(all)) => {
                self.collective.deliver(&mut self.ranks, &mut self.others, all);
            }
            HostEvent::FromAbove(HostMessage::Signal(n)) if n as i32 == Signal::KILL.number() => {
                self.exit.kill_now(clock::now_ns(), &mut self.ranks);
            }
            HostEvent::FromAbove(HostMessage::Signal(n)) => {
                self.signal_ranks(Signal::new(n as i32));
            }
            HostEvent::FromAbove(HostMessage::Status) => {
                self.others.request_status();
                self.status.open(self.control, &self.ranks);
            }
            HostEvent::FromAbove(HostMessage::Decision(d))
            | HostEvent::FromBelow(HostMessage::Decision(d)) => _ = self.control.decide(d),
            HostEvent::FromAbove(HostMessage::Joined)
            | HostEvent::FromBelow(HostMessage::Joined) => self.first_joined(),
            // What it has sent stands in `others`.
            HostEvent::FromBelow(_) => {
                self.collective.advance_barrier(&mut self.ranks, &mut self.others);
                if let Err(e) = self.advance_exchange() {
                    self.end_because_of(&e);
                }
            }
            HostEvent::FromAbove(_) => {}
        }
    }

    /// A rank of the job has called `gasnet_init`.
    fn first_joined(&mut self) {
        if self.late.joined(clock::now_ns()) {
            self.others.send(&HostMessage::Joined);
        }
    }

    fn advance_exchange(&mut self) -> Result<(), InvalidMessage> {
        self.collective.advance_exchange(&mut self.ranks, &mut self.others, self.share.size)
    }

    fn end_because_of(&self, &InvalidMessage(rank): &InvalidMessage) {
        report::line(format_args!("rank {rank} sent an invalid message; the job ends"));
        self.control.decide_failure(1);
    }

    /// Tells the ranks that have joined what they need to reach those of other hosts.
    fn tell_ranks(&mut self) {
        let Some((secret, address)) = self.others.for_ranks() else { return };
        let message = Rc::new(control_message::job_secret(secret, address));
        for r in self.ranks.iter_mut().filter(|r| r.joined.is_some() && !r.has_secret) {
            r.has_secret = true;
            r.send(message.clone());
        }
    }

    /// Collects the children that have ended.
    fn reap(&mut self) {
        if !self.ranks.iter().any(RankProcess::has_running_child) || !sys::child::any_ended() {
            return;
        }
        for i in 0..self.ranks.len() {
            if self.ranks[i].has_running_child()
                && let Some(ended) = sys::child::reap(self.ranks[i].process)
            {
                // Its last messages come before its end.
                self.receive(i);
                self.ends.child_ended(&mut self.ranks, i, ended);
            }
        }
    }

    /// Receives all messages that rank `i` has sent.
    fn receive(&mut self, i: usize) {
        let mut buffer = [0; control_message::HEAD_BYTES + control_message::DATA_BYTES];
        loop {
            let Some(fd) = self.ranks[i].socket.as_ref().map(AsFd::as_fd) else { return };
            match socket::receive_from(fd, &mut buffer) {
                Ok((0, _)) => self.ranks[i].socket = None,
                Ok((n, sender)) => {
                    let message =
                        ControlHead::parse(&buffer[..n]).ok_or(InvalidMessage(self.ranks[i].rank));
                    let done =
                        message.and_then(|(head, data)| self.on_message(i, sender, head, data));
                    if let Err(e) = done {
                        self.end_because_of(&e);
                    }
                }
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) if e.kind() == ErrorKind::WouldBlock => return,
                Err(_) => self.ranks[i].socket = None,
            }
        }
    }

    /// `sender`: the process that sent it, as the kernel says.
    fn on_message(
        &mut self,
        i: usize,
        sender: u32,
        head: ControlHead,
        data: &[u8],
    ) -> Result<(), InvalidMessage> {
        let r = &mut self.ranks[i];
        match head.kind {
            // The ranks know each other by these numbers, and so does this process.
            ControlKind::Joined if head.a != sender => {
                report::line(format_args!(
                    "rank {} is process {} for itself and {sender} for its supervisor: they have \
                     different process-id namespaces, and the job ends",
                    r.rank, head.a
                ));
                report::line(format_args!(
                    "  Start the launcher and all ranks in one namespace (container)."
                ));
                self.control.decide_failure(1);
            }
            // A rank that connected was recorded then.
            ControlKind::Joined if !r.is_child => {}
            ControlKind::Joined => {
                r.joined = Some(head.a);
                if head.a != r.process {
                    r.watch = ProcessWatch::new(head.a).ok();
                }
                self.ends.check_missing(&self.ranks);
                self.first_joined();
            }
            ControlKind::Barrier => {
                r.in_barrier = true;
                self.collective.advance_barrier(&mut self.ranks, &mut self.others);
            }
            ControlKind::ExchangePart => {
                if barrier_exchange::contribute(r, head, data)? {
                    self.advance_exchange()?;
                }
            }
            ControlKind::ErrorWithheld => self.errors.notice(clock::now_ns()),
            // Usually in the control memory already, where every round looks for it.
            ControlKind::ExitDecided => {
                if let Some(decision) = head.decision().filter(|d| d.rank == Some(r.rank)) {
                    r.own_end = Some(decision);
                    self.control.decide(decision);
                }
            }
            ControlKind::ExecFailed => {
                let e = std::io::Error::from_raw_os_error(head.a as i32);
                if self.control.decision().is_none() {
                    report::line(format_args!("rank {} cannot be started: {e}", r.rank));
                    report::line(format_args!(
                        "  See that the program is one for this machine, and that its interpreter \
                         or loader exists."
                    ));
                }
                let is_missing = e.kind() == ErrorKind::NotFound;
                self.control.decide_failure(if is_missing { 127 } else { 126 });
            }
            ControlKind::BarrierDone
            | ControlKind::ExitNow
            | ControlKind::JoinRequest
            | ControlKind::JobSecret
            | ControlKind::JoinReply => return Err(InvalidMessage(r.rank)),
        }
        Ok(())
    }
}
