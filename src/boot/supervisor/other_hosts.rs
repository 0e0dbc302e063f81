//! The other hosts of a job, as the supervisor of one host sees them: the one that has started it,
//! and those that it has started.
//!
//! Owned by [`super::Supervisor`]. Invariants: a host below is over when it has said so, or when
//! its connection is lost; the loss of a host is reported once, by name. Nothing here waits.

use super::shell_end::ShellEnd;
use super::unstarted_hosts::UnstartedHosts;
use crate::boot::decision::is_success;
use crate::boot::error::BootError;
use crate::boot::hosts::error_stream::IsNews;
use crate::boot::hosts::interface;
use crate::boot::hosts::link::{HostLink, LOST_MS};
use crate::boot::hosts::listener::HostListener;
use crate::boot::hosts::message::HostMessage;
use crate::boot::hosts::names::HostAddresses;
use crate::boot::hosts::remote_plan::{HostToStart, RemotePlan};
use crate::boot::hosts::ssh::RemoteShell;
use crate::boot::hosts::tree;
use crate::boot::passed_stream::PrefixedStream;
use crate::env;
use crate::rank::JobRank;
use crate::report;
use crate::tools::this_process::hostname;
use handshake::JobSecret;
use std::net::IpAddr;
use sys::clock;
use sys::poll::PollEntry;
use sys::signal::SignalSet;

/// Nanoseconds in which the hosts of a launcher must have connected: their ranks have met before.
const LAUNCHED: u64 = 60_000_000_000;
/// The same when the job ends.
const LATE_LAUNCHED: u64 = 2_000_000_000;
/// In which the other hosts of gasnetrun must have connected when the job has failed.
const LATE: u64 = 1_000_000_000;
/// In which a host must have said that its ranks have ended, or be lost, once its shell has ended.
const SAYS_ENDED: u64 = (LOST_MS as u64 + 1000) * 1_000_000;
/// The same if its shell has ended because nothing reads its output.
const SAYS_ENDED_UNREAD: u64 = 1_000_000_000;

/// The other hosts of the job.
#[derive(Debug, Default)]
pub(super) struct OtherHosts {
    secret: Option<JobSecret>,
    /// To the host that has started this one, or to the root.
    above: Option<HostLink>,
    /// There is one, or was.
    is_below: bool,
    below: Vec<HostBelow>,
    listener: Option<HostListener>,
    /// What the hosts below must know.
    plan: Option<RemotePlan>,
    /// The host above wants to know when this host and those below have printed their status.
    status_wanted: bool,
    /// This one has.
    status_printed: bool,
    /// The host above knows that a rank gets more time to exit.
    has_said_spares: bool,
    /// When they must have connected.
    connect_by: Option<u64>,
    /// A launcher other than gasnetrun has started the hosts.
    is_launched: bool,
    /// The job ends, and so that launcher may kill supervisors: the loss of one is no news.
    launcher_ends: bool,
    /// The job has failed: that a host does not connect is no news.
    has_failed: bool,
    unstarted: UnstartedHosts,
    /// The host above knows that all ranks of this one and of those below it have ended.
    has_said_ended: bool,
    /// The address of this host for the other hosts.
    address: Option<IpAddr>,
}

/// A host that gasnetrun or another launcher has started.
#[derive(Debug)]
struct HostBelow {
    /// How messages call it; empty before it is known.
    name: String,
    /// `None` for one that a launcher has started and that has not connected.
    number: Option<u32>,
    /// The hosts that it is to start.
    starts: Vec<HostToStart>,
    /// What has started it; `None` for a launcher.
    shell: Option<RemoteShell>,
    link: Option<HostLink>,
    /// All its ranks are in the barrier.
    in_barrier: bool,
    contributions: Option<Vec<(JobRank, Vec<u8>)>>,
    has_printed_status: bool,
    /// A program keeps a rank stopped there.
    spares: bool,
    /// All its ranks have ended, with this code.
    ended: Option<i32>,
    is_lost: bool,
    shell_end: ShellEnd,
    /// When it must have ended, as its shell has.
    must_end_by: Option<u64>,
}

/// What a supervisor must act on.
#[derive(Debug)]
pub(super) enum HostEvent {
    /// The host above says so.
    FromAbove(HostMessage),
    /// A host below says so.
    FromBelow(HostMessage),
    /// A host below has said something that stands in [`OtherHosts`] now.
    Changed,
    /// A host below has connected.
    Connected,
    /// A host is lost, which has been reported.
    Lost,
}

/// What [`OtherHosts::start`] needs.
#[derive(Debug)]
pub(super) struct HostsToStart<'a> {
    /// Those below this one in the tree.
    pub(super) all: &'a [HostToStart],
    pub(super) plan: &'a RemotePlan,
    /// Those of the hosts that this one starts itself, as far as they are known here.
    pub(super) addresses: &'a HostAddresses,
    pub(super) mask: &'a SignalSet,
    /// Nanoseconds in which the hosts must have connected.
    pub(super) timeout: Option<u64>,
}

impl OtherHosts {
    /// Those of a host that is not the root; takes the connection. `is_launched`: started by a
    /// launcher other than gasnetrun.
    pub(super) fn above(
        link: &mut Option<HostLink>,
        secret: JobSecret,
        is_launched: bool,
    ) -> Result<OtherHosts, BootError> {
        let wanted = interface::wanted()?;
        let above = link.take();
        let address = wanted.or(above.as_ref().and_then(HostLink::own_address));
        Ok(OtherHosts {
            secret: Some(secret),
            above,
            is_below: true,
            address,
            is_launched,
            ..OtherHosts::default()
        })
    }

    /// Starts the supervisors of the hosts below this one; some of them start others.
    ///
    /// # Errors
    /// One cannot be started; those that were end with this process.
    pub(super) fn start(&mut self, hosts: &HostsToStart<'_>) -> Result<(), BootError> {
        let HostsToStart { all, plan, addresses, mask, timeout } = *hosts;
        let branches: Vec<&[HostToStart]> =
            tree::branches(all, env::SSH_OUT_DEGREE.get()).collect();
        let toward: Vec<&str> = branches.iter().map(|b| b[0].name.as_str()).collect();
        let addresses = interface::toward(&toward, addresses)?;
        let listener = match self.secret.clone() {
            Some(secret) => HostListener::with(secret, &addresses)?,
            None => HostListener::open(&addresses)?,
        };
        let here = listener.root_address();
        let rank_0 = plan.host_of.first();
        let mut below = Vec::new();
        for branch in branches {
            let HostToStart { number, name } = &branch[0];
            let reads = branch.iter().any(|host| rank_0 == Some(&host.number));
            let shell = RemoteShell::start(name, *number, &here, mask, reads)?;
            let mut host = HostBelow::new(name, Some(*number), Some(shell));
            host.starts = branch[1..].to_vec();
            below.push(host);
        }
        (self.secret, self.listener) = (Some(here.secret), Some(listener));
        (self.below, self.plan) = (below, Some(plan.clone()));
        self.connect_by = timeout.map(|t| clock::now_ns() + t);
        Ok(())
    }

    /// Those of the host of rank 0; a launcher has started the ranks of `number` other hosts.
    pub(super) fn launched(
        listener: HostListener,
        number: u32,
        timeout: Option<u64>,
    ) -> OtherHosts {
        let timeout = timeout.map_or(LAUNCHED, |t| t.min(LAUNCHED));
        OtherHosts {
            secret: Some(listener.root_address().secret),
            below: (0..number).map(|_| HostBelow::new("", None, None)).collect(),
            listener: Some(listener),
            connect_by: Some(clock::now_ns() + timeout),
            is_launched: true,
            ..OtherHosts::default()
        }
    }

    /// The job ends. Hosts that a launcher has started connect now or never; if the job `failed`,
    /// others too.
    pub(super) fn job_ends(&mut self, now: u64, failed: bool) {
        self.launcher_ends |= self.is_launched;
        self.has_failed |= failed;
        let by = match self.is_launched {
            true => now + LATE_LAUNCHED,
            false if failed => now + LATE,
            false => return,
        };
        self.connect_by = Some(self.connect_by.map_or(by, |before| before.min(by)));
    }

    /// What a rank must know to reach those of other hosts, once it is known: the secret of the
    /// job, and the address of this host.
    pub(super) fn for_ranks(&self) -> Option<(&JobSecret, IpAddr)> {
        Some((self.secret.as_ref()?, self.address?))
    }

    /// Adds what to poll.
    pub(super) fn add_to(&self, polled: &mut Vec<PollEntry>) {
        polled.extend(self.above.iter().map(HostLink::poll_entry));
        for host in &self.below {
            polled.extend(host.link.iter().map(HostLink::poll_entry));
            polled.extend(host.shell.iter().flat_map(RemoteShell::poll_entries));
        }
        let listener = self.listener.iter().flat_map(HostListener::descriptors);
        polled.extend(listener.map(|fd| PollEntry::reading(Some(fd))));
    }

    /// When [`OtherHosts::serve`] must be called at the latest.
    pub(super) fn deadline(&self, now: u64) -> Option<u64> {
        let connect = self.connect_by.filter(|_| self.below.iter().any(HostBelow::is_awaited));
        let pending = self.listener.as_ref().and_then(HostListener::deadline);
        let shells = self.below.iter().filter_map(|host| host.shell_deadline(now)).min();
        [connect, pending, shells].into_iter().flatten().min()
    }

    fn has_shells(&self) -> bool {
        self.below.iter().any(HostBelow::has_shell)
    }

    /// Moves messages and output. Returns what happened.
    pub(super) fn serve(&mut self, now: u64, is_news: &mut IsNews<'_>) -> Vec<HostEvent> {
        let mut events = Vec::new();
        if let Some(link) = &mut self.above {
            link.flush();
            events.extend(link.receive().into_iter().map(HostEvent::FromAbove));
            if let Some(why) = link.lost() {
                // The host above prints for the others, and says that it has lost this one.
                if self.is_launched && !self.launcher_ends && !self.has_said_ended {
                    report::line(format_args!(
                        "the connection of host {} to the root of the job is lost: {why}; the job \
                         ends",
                        hostname()
                    ));
                }
                events.push(HostEvent::Lost);
                self.above = None;
            }
        }
        let new = self.listener.as_mut().map_or(Vec::new(), |listener| listener.accept(now));
        for (number, link) in new {
            events.extend(self.connected(number, link));
        }
        if !self.below.iter().any(HostBelow::is_awaited) {
            self.listener = None;
        }
        let is_late = self.connect_by.is_some_and(|by| now >= by);
        for host in &mut self.below {
            let is_silent = self.launcher_ends || self.has_failed && is_late && host.is_awaited();
            host.serve(now, is_late, is_silent, is_news, &mut self.unstarted, &mut events);
        }
        if !self.below.iter().any(HostBelow::is_awaited) {
            self.unstarted.report_rest();
        }
        self.tell_above();
        events
    }

    /// Passes on to the host above what all hosts below have reported.
    fn tell_above(&mut self) {
        if self.status_wanted && self.status_printed && self.have_printed_status() {
            self.status_wanted = false;
            self.send_up(&HostMessage::StatusPrinted);
        }
        if self.spare_ranks() && !self.has_said_spares {
            self.has_said_spares = true;
            self.send_up(&HostMessage::TakesLonger);
        }
    }

    fn connected(&mut self, number: u32, mut link: HostLink) -> Option<HostEvent> {
        // A second connection of the same host is of no use.
        let known = self.below.iter().position(|host| host.number == Some(number));
        let at = known.or_else(|| self.below.iter().position(|host| host.number.is_none()))?;
        let host = Some(&mut self.below[at]).filter(|host| host.is_awaited())?;
        if self.address.is_none() {
            self.address = link.own_address();
        }
        if host.number.is_none() {
            host.number = Some(number);
            host.name = link.peer_address().map_or_else(String::new, |a| a.to_string());
        } else if let Some(plan) = &self.plan {
            link.send(&HostMessage::Plan(plan.encode_for(&host.starts)));
        }
        host.link = Some(link);
        Some(HostEvent::Connected)
    }

    /// Whether all ranks of the hosts below have ended, or are lost.
    pub(super) fn have_ended(&self) -> bool {
        self.below.iter().all(HostBelow::is_over)
    }

    /// Whether the hosts below have printed all as well.
    pub(super) fn are_over(&self) -> bool {
        self.have_ended() && !self.has_shells()
    }

    /// Ends the shells that are left.
    pub(super) fn end_shells(&mut self, is_news: &mut IsNews<'_>) {
        let shells = self.below.iter_mut().filter_map(|host| host.shell.as_mut());
        shells.for_each(|shell| shell.kill(is_news));
    }

    /// Whether what the hosts below have printed waits for its reader.
    pub(super) fn output_waits(&self) -> bool {
        self.below.iter().filter_map(|host| host.shell.as_ref()).any(RemoteShell::output_waits)
    }

    /// What the hosts below print to standard output.
    pub(super) fn outputs_mut(&mut self) -> impl Iterator<Item = &mut PrefixedStream> {
        self.below.iter_mut().filter_map(|host| Some(host.shell.as_mut()?.output_mut()))
    }

    /// Whether a host above prints for this one.
    pub(super) fn is_printed_above(&self) -> bool {
        self.above.is_some() && !self.is_launched
    }

    /// Whether there are hosts below whose output passes through this process.
    pub(super) fn print_here(&self) -> bool {
        self.below.iter().any(|host| host.shell.is_some())
    }

    /// The exit code of a host below that has failed.
    pub(super) fn failure(&self) -> Option<i32> {
        self.below.iter().filter_map(|host| host.ended).find(|code| !is_success(*code))
    }

    /// A host below that has said that its ranks have ended.
    pub(super) fn first_ended(&self) -> Option<&str> {
        self.below.iter().find(|host| host.ended.is_some()).map(|host| host.name.as_str())
    }

    /// Hosts that have neither ended nor been lost.
    pub(super) fn working(&self) -> Vec<&str> {
        let working = self.below.iter().filter(|host| !host.is_over());
        working.map(|host| host.name.as_str()).collect()
    }

    /// Whether a program keeps a rank of another host stopped, which gets more time to exit.
    pub(super) fn spare_ranks(&self) -> bool {
        self.below.iter().any(|host| host.spares && !host.is_over())
    }

    /// Sends a message to the hosts below.
    pub(super) fn send_down(&mut self, message: &HostMessage) {
        self.below.iter_mut().filter_map(|host| host.link.as_mut()).for_each(|l| l.send(message));
    }

    /// Whether no host is above this one.
    pub(super) fn is_root(&self) -> bool {
        !self.is_below
    }

    /// Sends a message to the host above, if there is one.
    pub(super) fn send_up(&mut self, message: &HostMessage) {
        if let Some(link) = &mut self.above {
            link.send(message);
        }
    }

    /// Sends a message to all that this host is connected with.
    pub(super) fn send(&mut self, message: &HostMessage) {
        self.send_up(message);
        self.send_down(message);
    }

    /// All ranks of this host and of those below it have ended: tells the host above.
    pub(super) fn say_ended(&mut self, code: i32) {
        if !self.has_said_ended {
            self.has_said_ended = true;
            self.send_up(&HostMessage::Ended(code));
        }
    }

    /// The ranks of this host cannot be started: tells the host above.
    pub(super) fn fail(&mut self, code: i32) {
        if let Some(link) = &mut self.above {
            link.fail(code);
        }
    }

    /// Ends the connection to the host above, which has everything then.
    pub(super) fn finish(&mut self) {
        if let Some(link) = &mut self.above {
            link.finish();
        }
    }

    /// Whether all ranks of the hosts below are in the barrier.
    pub(super) fn are_in_barrier(&self) -> bool {
        self.below.iter().all(|host| host.in_barrier)
    }

    /// The ranks of the hosts below leave the barrier.
    pub(super) fn leave_barrier(&mut self) {
        self.below.iter_mut().for_each(|host| host.in_barrier = false);
        self.send_down(&HostMessage::Barrier);
    }

    /// Whether all hosts below have contributed to the exchange.
    pub(super) fn have_contributed(&self) -> bool {
        self.below.iter().all(|host| host.contributions.is_some())
    }

    /// What the ranks of the hosts below contribute to the exchange.
    pub(super) fn take_contributions(&mut self) -> Vec<(JobRank, Vec<u8>)> {
        let all = self.below.iter_mut().filter_map(|host| host.contributions.take());
        all.flatten().collect()
    }

    /// Asks the hosts below to print what their ranks do.
    pub(super) fn request_status(&mut self) {
        self.below.iter_mut().for_each(|host| host.has_printed_status = false);
        (self.status_wanted, self.status_printed) = (true, false);
        self.send_down(&HostMessage::Status);
    }

    /// This host has printed what its ranks do.
    pub(super) fn note_status_printed(&mut self) {
        self.status_printed = true;
        self.tell_above();
    }

    /// Whether all hosts below have printed what their ranks do.
    pub(super) fn have_printed_status(&self) -> bool {
        self.below.iter().all(|host| host.has_printed_status || host.is_over())
    }
}

impl HostBelow {
    fn new(name: &str, number: Option<u32>, shell: Option<RemoteShell>) -> HostBelow {
        HostBelow {
            name: name.to_string(),
            number,
            starts: Vec::new(),
            shell,
            link: None,
            in_barrier: false,
            contributions: None,
            has_printed_status: false,
            spares: false,
            ended: None,
            is_lost: false,
            shell_end: ShellEnd::default(),
            must_end_by: None,
        }
    }

    /// Whether the process that has started it runs.
    fn has_shell(&self) -> bool {
        self.shell.as_ref().is_some_and(|shell| shell.ended().is_none())
    }

    /// When [`HostBelow::serve`] must be called at the latest because of its shell.
    fn shell_deadline(&self, now: u64) -> Option<u64> {
        let must_end = self.must_end_by.filter(|_| !self.is_over());
        let shell = self.shell.as_ref().filter(|shell| shell.ended().is_none());
        let end = shell.filter(|_| self.is_over()).and_then(|_| self.shell_end.deadline(now));
        let look = shell.and_then(|shell| shell.deadline(now));
        [must_end, look, end].into_iter().flatten().min()
    }

    /// Whether it has not connected yet.
    fn is_awaited(&self) -> bool {
        self.link.is_none() && !self.is_over()
    }

    fn is_over(&self) -> bool {
        self.ended.is_some() || self.is_lost
    }

    /// Ends its shell if that does not end; at once if the host has never connected, as nothing is
    /// awaited from there.
    fn serve_end(&mut self, now: u64, is_news: &mut IsNews<'_>) {
        let has_left = self.link.as_ref().is_none_or(|link| link.lost().is_some());
        self.shell_end.note_over(now, has_left);
        let waits = self.shell.as_ref().is_some_and(RemoteShell::output_waits);
        self.shell_end.note_output(now, waits);
        let is_due = self.link.is_none() || self.shell_end.is_due(now);
        if let Some(shell) = self.shell.as_mut().filter(|_| is_due) {
            shell.kill(is_news);
        }
    }

    /// `is_silent`: its loss is not reported.
    fn serve(
        &mut self,
        now: u64,
        is_late: bool,
        is_silent: bool,
        is_news: &mut IsNews<'_>,
        unstarted: &mut UnstartedHosts,
        events: &mut Vec<HostEvent>,
    ) {
        if let Some(shell) = &mut self.shell {
            shell.serve(now, is_news);
        }
        let messages = self.link.as_mut().map_or(Vec::new(), |link| {
            link.flush();
            link.receive()
        });
        for message in messages {
            match message {
                HostMessage::Name(name) => self.name = name,
                HostMessage::Barrier => self.in_barrier = true,
                HostMessage::Contributions(all) => self.contributions = Some(all),
                HostMessage::StatusPrinted => self.has_printed_status = true,
                HostMessage::TakesLonger => self.spares = true,
                HostMessage::Ended(code) => self.ended = Some(code),
                _ => {
                    events.push(HostEvent::FromBelow(message));
                    continue;
                }
            }
            events.push(HostEvent::Changed);
        }
        if self.is_over() {
            return self.serve_end(now, is_news);
        }
        let host = &self.name;
        let is_lost = self.link.as_ref().map_or(is_late, |link| link.lost().is_some());
        if is_silent {
            self.is_lost = is_lost;
            return;
        }
        if let Some(why) = self.link.as_ref().and_then(HostLink::lost) {
            report::line(format_args!("host {host} is lost: {why}; the job ends"));
        } else if self.link.is_none()
            && let Some(how) = self.shell.as_ref().and_then(RemoteShell::ended)
        {
            unstarted.add(host, how);
        } else if let Some(how) = self.shell.as_ref().and_then(RemoteShell::ended) {
            let has_no_reader = self.shell.as_ref().is_some_and(RemoteShell::has_no_reader);
            let within = if has_no_reader { SAYS_ENDED_UNREAD } else { SAYS_ENDED };
            let by = *self.must_end_by.get_or_insert(now + within);
            if now < by {
                return;
            }
            let (meaning, remedy) = match has_no_reader {
                true => (
                    "since standard output has no reader",
                    "Let what reads standard output read on.",
                ),
                false => (
                    "so their output is lost",
                    "See what ended it: the system log of both hosts, or the log of sshd.",
                ),
            };
            report::line(format_args!(
                "the shell that runs the ranks of host {host} has ended ({how}), {meaning}; the \
                 job ends"
            ));
            report::line(format_args!("  {remedy}"));
        } else if self.link.is_none() && is_late && self.shell.is_none() {
            report::line(format_args!(
                "a host of the job has not connected to host {}; the job ends",
                hostname()
            ));
            report::line(format_args!(
                "  See what its ranks print. GASNET_NETWORK_INTERFACE names the network that all \
                 hosts have, GASNET_NETWORK_PORTS the ports that a firewall lets pass."
            ));
        } else if self.link.is_none() && is_late {
            report::line(format_args!(
                "host {host} has not connected within GASNET_SPAWN_TIMEOUT; the job ends"
            ));
            report::line(format_args!(
                "  `ssh {host} true` must end soon and without a question, and that host must reach \
                 {}.",
                hostname()
            ));
        } else {
            return;
        }
        self.is_lost = true;
        events.push(HostEvent::Lost);
    }
}
