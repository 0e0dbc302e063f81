//! One rank as its supervisor sees it: its processes, its control socket, how it ended.
//!
//! Used by every file of `boot::supervisor`. Invariant: a message that the socket has no space for
//! waits here, so the supervisor never waits for a rank.

use crate::boot::control_memory::ControlMemory;
use crate::boot::control_message::Assembly;
use crate::boot::decision::ExitDecision;
use crate::boot::host_share::RankPlace;
use crate::rank::{JobRank, LocalRank};
use crate::tools::this_process::hostname;
use std::collections::VecDeque;
use std::io::ErrorKind;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;
use sys::child::Ended;
use sys::process::{self, CpuTime};
use sys::signal::Signal;
use sys::watch::ProcessWatch;
use sys::{clock, socket};

/// Nanoseconds in which the system must report how a rank ended that is not a child.
pub(super) const END_KNOWN: u64 = 200_000_000;
/// Nanoseconds between two queries meanwhile.
const QUERY: u64 = 5_000_000;

/// One rank.
#[derive(Debug)]
pub(super) struct RankProcess {
    pub(super) rank: JobRank,
    pub(super) local_rank: LocalRank,
    /// Ranks of the job.
    job_size: u32,
    control: ControlMemory,
    /// The process that was started, or that joined a job of another launcher; 0 before.
    pub(super) process: u32,
    /// `process` is a child of the supervisor.
    pub(super) is_child: bool,
    /// `process` is a debugger, or a terminal with one.
    pub(super) has_debugger: bool,
    /// The process that started it, if that is not the supervisor.
    pub(super) parent: Option<u32>,
    /// Watches the child.
    child_watch: Option<ProcessWatch>,
    /// How the child ended, if it has.
    pub(super) ended: Option<Ended>,
    /// The process that called `gasnet_init`: usually `process`, sometimes one that it started.
    pub(super) joined: Option<u32>,
    /// Watches `joined` or `process` if that is not a child.
    pub(super) watch: Option<ProcessWatch>,
    /// When the watched process was found to have exited.
    pub(super) exited_at: Option<u64>,
    pub(super) socket: Option<OwnedFd>,
    /// Messages that the socket had no space for.
    pub(super) outgoing: VecDeque<Rc<Vec<u8>>>,
    /// Messages sent so far.
    sent: u64,
    pub(super) in_barrier: bool,
    /// It was sent the secret of a job of several hosts.
    pub(super) has_secret: bool,
    /// What has arrived of its contribution to an exchange.
    pub(super) arriving: Assembly,
    /// Its complete contribution.
    pub(super) contribution: Option<Vec<u8>>,
    /// Its own decision, since it began to exit.
    pub(super) own_end: Option<ExitDecision>,
    pub(super) killed_by_us: bool,
    /// It was sent SIGKILL for being late.
    pub(super) is_killed_late: bool,
    /// When it was last found printing its stack.
    printed_at: Option<u64>,
    /// CPU time of its threads at the last look.
    cpu_time: Option<CpuTime>,
}

impl RankProcess {
    /// A rank whose process is a child of the supervisor.
    pub(super) fn of_child(
        place: RankPlace,
        control: ControlMemory,
        child: u32,
        socket: OwnedFd,
    ) -> RankProcess {
        let expected = RankProcess::expected(place, control);
        RankProcess { process: child, is_child: true, socket: Some(socket), ..expected }
    }

    /// A rank that is to connect.
    pub(super) fn expected(place: RankPlace, control: ControlMemory) -> RankProcess {
        RankProcess {
            rank: place.rank,
            local_rank: place.local_rank,
            job_size: place.size,
            control,
            process: 0,
            is_child: false,
            has_debugger: false,
            child_watch: None,
            parent: None,
            ended: None,
            joined: None,
            watch: None,
            exited_at: None,
            socket: None,
            outgoing: VecDeque::new(),
            sent: 0,
            in_barrier: false,
            has_secret: false,
            arriving: Assembly::default(),
            contribution: None,
            own_end: None,
            killed_by_us: false,
            is_killed_late: false,
            printed_at: None,
            cpu_time: None,
        }
    }

    /// Whether every process of it has exited, or none has connected.
    pub(super) fn has_exited(&self) -> bool {
        match self.is_child {
            true => self.ended.is_some() && (self.watch.is_none() || self.exited_at.is_some()),
            false => self.process == 0 || self.exited_at.is_some(),
        }
    }

    /// Whether it has exited, but not said how, and the system has to.
    pub(super) fn has_unknown_end(&self) -> bool {
        !self.is_child && self.exited_at.is_some() && self.own_end.is_none()
    }

    /// Whether its child has not been collected.
    pub(super) fn has_running_child(&self) -> bool {
        self.is_child && self.ended.is_none()
    }

    /// Has the system wake the supervisor when the child ends.
    pub(super) fn watch_child(&mut self) {
        if self.has_running_child() {
            self.child_watch = ProcessWatch::new(self.process).ok();
        }
    }

    /// What is watched now: the child, and the process that is none.
    pub(super) fn watches(&self) -> impl Iterator<Item = &ProcessWatch> {
        let child = self.child_watch.as_ref().filter(|_| self.has_running_child());
        child.into_iter().chain(self.watched())
    }

    /// Watches a process that is not a child; records its exit if it has exited already.
    pub(super) fn watch(&mut self, pid: u32, watch: Option<ProcessWatch>) {
        (self.process, self.watch) = (pid, watch);
        if self.watch.is_none() {
            self.exited_at = Some(clock::now_ns());
        }
    }

    /// Sends a message, now or when the socket has space.
    pub(super) fn send(&mut self, message: Rc<Vec<u8>>) {
        self.outgoing.push_back(message);
        self.flush();
    }

    /// Sends the waiting messages that the socket has space for.
    pub(super) fn flush(&mut self) {
        let Some(fd) = &self.socket else { return self.outgoing.clear() };
        while let Some(message) = self.outgoing.front() {
            match socket::send(fd.as_fd(), message, false) {
                Ok(()) => {
                    self.sent += 1;
                    self.control.set_sent(self.local_rank, self.sent);
                    self.outgoing.pop_front();
                }
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) if e.kind() == ErrorKind::WouldBlock => return,
                Err(_) => return self.outgoing.clear(),
            }
        }
    }

    /// The process that messages to the user name: its program, or the script around it that
    /// still runs.
    pub(super) fn pid(&self) -> u32 {
        let is_gone = self.has_running_child() && self.exited_at.is_some();
        self.joined.filter(|_| !is_gone).unwrap_or(self.process)
    }

    /// How messages call it.
    pub(super) fn title(&self) -> String {
        let RankProcess { rank, job_size, .. } = self;
        format!("rank {rank} of {job_size} (pid {}, {})", self.pid(), hostname())
    }

    /// How messages call the ranks of a supervisor.
    pub(super) fn of_job(ranks: &[RankProcess]) -> String {
        match ranks.iter().any(|r| r.job_size as usize != ranks.len()) {
            true => format!("{} ranks of host {}", ranks.len(), hostname()),
            false => format!("{} ranks of the job", ranks.len()),
        }
    }

    /// Whether it works on, though the job ends.
    pub(super) fn is_working(&self) -> bool {
        !self.has_exited() && self.own_end.is_none()
    }

    /// Whether only the script around its program still runs, whose program has left the job with
    /// success: what the script does now is no part of the job, and takes the time that it takes.
    pub(super) fn is_script_only(&self) -> bool {
        self.has_running_child()
            && !self.has_debugger
            && self.exited_at.is_some()
            && self.own_end.is_some_and(ExitDecision::is_success)
    }

    fn watched(&self) -> Option<&ProcessWatch> {
        self.watch.as_ref().filter(|_| self.exited_at.is_none())
    }

    /// Whether its threads waited longer for a CPU than they had one, since the last call.
    pub(super) fn is_starved(&mut self) -> bool {
        let now = process::cpu_time(self.pid());
        let before = self.cpu_time.replace(now).unwrap_or_default();
        now.waited.saturating_sub(before.waited) > now.ran.saturating_sub(before.ran)
    }

    /// Whether it prints the stack of its failure, or was found to do so less than `within`
    /// nanoseconds before `now`. It says so itself, or a debugger that it has started keeps it
    /// stopped.
    pub(super) fn printed_stack(&mut self, now: u64, within: u64) -> bool {
        let pid = self.pid();
        let is_traced =
            || process::tracer_of(pid).is_some_and(|by| process::descends_from(by, pid));
        if self.control.is_printing_stack(self.local_rank) || is_traced() {
            self.printed_at = Some(now);
        }
        self.printed_at.is_some_and(|at| now < at.saturating_add(within))
    }

    /// The process that was started and those that descend from it: the rank may be what a shell
    /// runs, and would stay when the shell ends. The number of a child that has ended may belong
    /// to a stranger by now: then it is the process that joined.
    pub(super) fn tree(&self) -> Vec<u32> {
        let root = match self.ended {
            None => Some(self.process),
            Some(_) => self.joined.filter(|&pid| pid != self.process),
        };
        root.filter(|&pid| pid != 0).map_or(Vec::new(), process::tree)
    }

    /// Sends a signal to these processes.
    pub(super) fn signal_tree(&self, signal: Signal) {
        self.tree().into_iter().for_each(|pid| _ = process::kill(pid, signal));
    }

    /// Records the exit of the watched process.
    pub(super) fn check_watch(&mut self) {
        if self.watched().is_some_and(ProcessWatch::has_ended) {
            self.exited_at = Some(clock::now_ns());
        }
    }

    /// When to query the end of a rank that was found exited at `exited_at`.
    pub(super) fn query_at(&self, exited_at: u64, now: u64) -> u64 {
        let last = exited_at + END_KNOWN;
        if self.is_child { last } else { (now + QUERY).min(last) }
    }

    /// How a process that is not a child ended, if the system reports it.
    pub(super) fn watched_end(&self) -> Option<Ended> {
        self.watch
            .as_ref()
            .filter(|_| self.exited_at.is_some())
            .and_then(|w| w.how_ended(self.pid()))
    }
}
