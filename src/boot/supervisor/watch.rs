//! The life of a supervisor: it waits for signals, messages, other hosts and the ends of ranks,
//! until all ranks have exited.
//!
//! Invariant: it waits for processes, never for descriptors, which children of ranks may keep
//! open.

use super::barrier_exchange::InvalidMessage;
use super::connections::JoinRequest;
use super::job::{Supervisor, watch_process};
use super::job_timeout::TIMED_OUT;
use super::other_hosts::HostEvent;
use super::rank_process::RankProcess;
use super::{barrier_exchange, exit_progress, folded_errors, job_signals};
use crate::boot::control_message::{self, ControlHead, ControlKind};
use crate::boot::decision::is_success;
use crate::boot::host_memory::HostMemory;
use crate::boot::hosts::message::HostMessage;
use crate::boot::passed_stream::PrefixedStream;
use crate::report;
use std::io::ErrorKind;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;
use sys::poll::PollEntry;
use sys::process::ProcessIdentity;
use sys::signal::{ReceivedSignal, Signal};
use sys::watch::{self, ProcessWatch};
use sys::{clock, process, socket};

/// Nanoseconds after a request to end the job in which another one is the same: `timeout` sends
/// its signal twice.
const SECOND_REQUEST: u64 = 100_000_000;

/// Polls of a rank that would react, if there were anything to react to.
const POLLS: u64 = 32;

impl Supervisor {
    /// Watches the job until all ranks have exited; returns its exit code. From here on, this
    /// process does not depend on the reader of standard error.
    pub fn watch(mut self) -> i32 {
        let mut polled = Vec::new();
        sys::bounded_stderr::bound();
        self.ends.begin();
        self.ranks.iter_mut().for_each(RankProcess::watch_child);
        // What came with the plan of this host makes no descriptor ready.
        self.hear_others(clock::now_ns());
        loop {
            self.reap();
            let now = clock::now_ns();
            self.advance(now);
            if self.have_ended() {
                // Before the shells end, so that the hosts of all levels wait for theirs at once.
                self.others.say_ended(self.code());
                if self.others.are_over() || self.is_output_cut(now) {
                    break;
                }
            }
            if self.exit.is_over(now, self.others.spare_ranks()) && !self.awaits_shells() {
                exit_progress::report_unended(&self.ranks, &self.others.working());
                break;
            }
            self.wait(&mut polled, now);
            let now = clock::now_ns();
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
            self.hear_others(now);
            self.tell_ranks();
            self.output.streams_mut().iter_mut().for_each(PrefixedStream::pass_on);
            if self.status.check(self.control, &self.ranks) {
                self.others.note_status_printed();
            }
            if let Some(part) = self.status.take_cut_off() {
                self.add_cut_off(part);
            }
            if self.cut_off.deadline().is_some_and(|due| clock::now_ns() >= due) {
                self.report_cut_off();
            }
            if self.errors_due().is_some_and(|due| clock::now_ns() >= due) {
                self.report_errors();
            }
        }
        self.end_shells();
        self.report_cut_off();
        self.report_errors();
        self.finish_output();
        let code = self.code();
        self.others.say_ended(code);
        self.others.finish();
        self.signals.end_front(code);
        code
    }

    /// Whether all ranks of this host and of those below it have ended.
    fn have_ended(&self) -> bool {
        self.ranks.iter().all(RankProcess::has_exited)
            && (!self.connections.is_open() || !self.exit.is_running())
            && self.others.have_ended()
            && !(self.exit.is_running() && self.ranks.iter().any(RankProcess::has_unknown_end))
    }

    /// Whether only shells of other hosts are awaited, which may have output: how long, they say.
    fn awaits_shells(&self) -> bool {
        self.exit.code() != TIMED_OUT && self.have_ended()
    }

    /// The exit code of the job, once all ranks have ended.
    fn code(&self) -> i32 {
        let code = self.exit.code();
        if !is_success(code) {
            return code;
        }
        let late = self.ends.late_failure.or(self.others.failure());
        late.unwrap_or_else(|| self.control.decision().map_or(0, |d| d.code))
    }

    /// Acts on what other hosts have sent.
    fn hear_others(&mut self, now: u64) {
        let events = self.serve_others(now);
        events.into_iter().for_each(|event| self.on_host_event(event));
    }

    /// Moves messages and output of other hosts.
    fn serve_others(&mut self, now: u64) -> Vec<HostEvent> {
        let Supervisor { others, errors, control, ranks, .. } = self;
        let is_below = others.is_printed_above();
        others.serve(now, &mut |error| {
            let is_news = errors.is_news(error, now, *control, ranks);
            if !is_news {
                errors.notice(now, is_below);
            }
            is_news
        })
    }

    /// Ends the shells that are left.
    fn end_shells(&mut self) {
        let Supervisor { others, errors, control, ranks, .. } = self;
        let now = clock::now_ns();
        others.end_shells(&mut |error| errors.is_news(error, now, *control, ranks));
    }

    /// When to report errors that ranks have withheld. While the job ends, more may arrive from
    /// hosts below.
    fn errors_due(&self) -> Option<u64> {
        self.errors.deadline().filter(|_| self.exit.is_open() || !self.others.print_here())
    }

    /// Reports errors that ranks have withheld, to the host above if it prints for this one.
    fn report_errors(&mut self) {
        let errors = self.errors.take(self.control, &self.ranks);
        if errors.is_empty() {
            return;
        }
        if self.others.is_printed_above() {
            self.others.send_up(&HostMessage::Withheld(errors));
        } else {
            folded_errors::report(&errors);
        }
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
        polled.extend(self.output.streams().iter().map(PrefixedStream::poll_entry));
        self.others.add_to(polled);
        let exit_due = self.exit.deadline(now, self.others.spare_ranks());
        let exit_due = exit_due.filter(|due| *due > now || !self.awaits_shells());
        let mut deadlines = vec![exit_due, self.status.deadline(now), self.connections.deadline()];
        deadlines.extend([self.errors_due(), self.output_due(now), self.cut_off.deadline()]);
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
            if self.late.has_first() {
                self.ends.check_missing(&self.ranks, &self.others);
            }
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
                self.others.job_ends(now, !decision.is_success());
                self.ends.announce(decision, &self.ranks);
                if !decision.is_success() || self.exit.may_finish() {
                    self.control.request_exit();
                }
            }
        }
        if self.exit.may_finish() && self.all_wait() {
            self.exit.end_grace(now);
        }
        if self.exit.is_cut_due(now) && !self.status.is_cut_off_reported(self.control, &self.ranks)
        {
            return;
        }
        let is_late = self.timeout.is_some_and(|timeout| timeout.is_over(now));
        let is_wanted = self.control.decision().is_none_or(|d| d.is_success());
        self.exit.let_scripts_go_on(is_wanted && !is_late && self.end_requested_at.is_none());
        if is_late && self.ranks.iter().any(RankProcess::is_script_only) {
            self.ends.late_failure.get_or_insert(TIMED_OUT);
        }
        if self.exit.advance(now, self.control, &mut self.ranks) {
            // A rank that connects now is too late.
            self.connections.close();
        }
        if self.exit.has_cut_script() {
            self.ends.late_failure.get_or_insert(128 + Signal::KILL.number());
        }
        if self.exit.takes_longer() {
            self.others.send_up(&HostMessage::TakesLonger);
        }
    }

    /// Whether all ranks that work do nothing but poll: most likely none will go on. For each has
    /// polled [`POLLS`] times after all of them had begun to do nothing else. So it has
    /// seen what others sent before, and had the CPU to react.
    fn all_wait(&mut self) -> bool {
        let mut seen = Vec::new();
        for r in self.ranks.iter().filter(|r| r.is_working()) {
            match self.control.only_polls(r.local_rank) {
                Some(polled) => seen.push((r.rank, polled)),
                None => return false,
            }
        }
        let all = |polls| {
            seen.len() == self.waiting.len()
                && seen.iter().zip(&self.waiting).all(|((rank, now), (before_rank, before))| {
                    rank == before_rank
                        && now.since == before.since
                        && now.polls.saturating_sub(before.polls) >= polls
                })
        };
        if !all(0) {
            self.waiting = seen;
            return false;
        }
        !seen.is_empty() && all(POLLS)
    }

    /// Makes a rank of a process that has connected; others are disconnected.
    fn on_join_request(&mut self, request: JoinRequest) {
        let JoinRequest { rank, pid, socket: new } = request;
        let spared = self.spares_descriptors;
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
            r.watch(pid, watch_process(ProcessIdentity::now(pid), spared).ok());
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
                && let Ok(watch) = watch_process(ProcessIdentity::now(pid), spared)
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
        // A terminal raises signals for the ranks of this group as well, except its hang-up.
        let all = sent || signal == Signal::HUP;
        self.signal_ranks(signal, |pid| all || process::is_of_other_group(pid));
    }

    /// Sends a signal to those processes of the ranks that are to get it.
    fn signal_ranks(&self, signal: Signal, gets: impl Fn(u32) -> bool) {
        for r in self.ranks.iter().filter(|r| !r.has_exited()) {
            let pids = match r.joined {
                Some(pid) if r.exited_at.is_none() => vec![pid],
                _ => r.tree(),
            };
            pids.into_iter()
                .filter(|&pid| gets(pid))
                .for_each(|pid| _ = process::kill(pid, signal));
        }
    }

    /// Acts on what another host has sent.
    fn on_host_event(&mut self, event: HostEvent) {
        match event {
            HostEvent::Lost => self.control.decide_failure(1),
            // The others know it already.
            HostEvent::Connected => {
                if self.late.has_first() {
                    self.others.send_down(&HostMessage::Joined);
                }
                if let Some(decision) = self.exit.decision() {
                    self.others.send_down(&HostMessage::Decision(decision));
                }
            }
            HostEvent::FromAbove(HostMessage::Barrier) => {
                self.collective.release(&mut self.ranks, &mut self.others);
            }
            HostEvent::FromAbove(HostMessage::Exchanged(all)) => {
                self.collective.deliver(&mut self.ranks, &mut self.others, all);
            }
            HostEvent::FromAbove(HostMessage::Signal(n)) => {
                if let Some(decision) = self.control.decision() {
                    self.others.send_down(&HostMessage::Decision(decision));
                }
                self.others.send_down(&HostMessage::Signal(n));
                match Signal::new(n as i32) {
                    Signal::KILL => self.exit.kill_now(clock::now_ns(), &mut self.ranks),
                    signal => self.signal_ranks(signal, |_| true),
                }
            }
            HostEvent::FromAbove(HostMessage::Status) => {
                self.others.request_status();
                self.status.open(self.control, &self.ranks);
            }
            HostEvent::FromAbove(HostMessage::Decision(d))
            | HostEvent::FromBelow(HostMessage::Decision(d)) => _ = self.control.decide(d),
            HostEvent::FromAbove(HostMessage::Joined)
            | HostEvent::FromBelow(HostMessage::Joined) => self.first_joined(),
            HostEvent::FromBelow(HostMessage::Withheld(errors)) => {
                self.errors.add(errors);
                self.errors.notice(clock::now_ns(), self.others.is_printed_above());
            }
            HostEvent::FromBelow(HostMessage::CutOff(part)) => self.add_cut_off(part),
            HostEvent::Changed => {
                self.collective.advance_barrier(&mut self.ranks, &mut self.others);
                if let Err(e) = self.advance_exchange() {
                    self.end_because_of(&e);
                }
            }
            HostEvent::FromAbove(_) | HostEvent::FromBelow(_) => {}
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
        // Ranks of one host, which may be another one than that of gasnetrun, need nothing.
        let Some((secret, address)) = self.others.for_ranks().filter(|_| self.share.hosts > 1)
        else {
            return;
        };
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
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.resize(control_message::HEAD_BYTES + control_message::DATA_BYTES, 0);
        self.receive_into(i, &mut buffer);
        self.buffer = buffer;
    }

    fn receive_into(&mut self, i: usize, buffer: &mut [u8]) {
        loop {
            let Some(fd) = self.ranks[i].socket.as_ref().map(AsFd::as_fd) else { return };
            match socket::receive_from(fd, buffer) {
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
            ControlKind::ErrorWithheld => {
                self.errors.notice(clock::now_ns(), self.others.is_printed_above());
            }
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
                    let remedy = match e.kind() {
                        ErrorKind::ArgumentListTooLong => {
                            "Give it fewer or shorter arguments and variables, or raise ulimit -s: \
                             they may have a quarter of it."
                        }
                        _ => {
                            "See that the program is one for this machine, and that its \
                             interpreter or loader exists."
                        }
                    };
                    report::line(format_args!("  {remedy}"));
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
