//! The other hosts of a job, as the supervisor of one host sees them: the root above it, or, for
//! the root, the hosts below.
//!
//! Owned by [`super::Supervisor`]. Invariants: a host below is over when it has said so, or when
//! its connection is lost; the loss of a host is reported once, by name. Nothing here waits.

use crate::boot::error::BootError;
use crate::boot::hosts::interface;
use crate::boot::hosts::link::HostLink;
use crate::boot::hosts::listener::HostListener;
use crate::boot::hosts::message::HostMessage;
use crate::boot::hosts::remote_plan::RemotePlan;
use crate::boot::hosts::ssh::RemoteShell;
use crate::rank::JobRank;
use crate::report;
use crate::tools::this_process::hostname;
use handshake::JobSecret;
use std::net::IpAddr;
use sys::clock;
use sys::poll::PollEntry;
use sys::signal::SignalSet;

/// Nanoseconds that the shells may take to end after their hosts have ended, and after the job has
/// been ended by force.
const SHELL_END: u64 = 3_000_000_000;
/// Nanoseconds in which the hosts of a launcher must have connected: their ranks have met before.
const LAUNCHED: u64 = 60_000_000_000;
/// The same when the job ends.
const LATE_LAUNCHED: u64 = 2_000_000_000;

/// The other hosts of the job.
#[derive(Debug, Default)]
pub(super) struct OtherHosts {
    secret: Option<JobSecret>,
    /// To the root.
    above: Option<HostLink>,
    below: Vec<HostBelow>,
    listener: Option<HostListener>,
    /// What the hosts below must know.
    plan: Vec<u8>,
    /// When they must have connected.
    connect_by: Option<u64>,
    /// A launcher other than gasnetrun has started the hosts.
    is_launched: bool,
    /// The job ends, and so that launcher may kill supervisors: the loss of one is no news.
    launcher_ends: bool,
    /// When the last of them has ended.
    ended_at: Option<u64>,
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
}

/// What a supervisor must act on.
#[derive(Debug)]
pub(super) enum HostEvent {
    /// The root says so.
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
    /// All hosts of the job.
    pub(super) names: &'a [String],
    /// The number of this host, if it has ranks.
    pub(super) own: Option<u32>,
    pub(super) plan: &'a RemotePlan,
    pub(super) mask: &'a SignalSet,
    /// Nanoseconds in which the hosts must have connected.
    pub(super) timeout: Option<u64>,
}

impl OtherHosts {
    /// Those of a host that is not the root. `is_launched`: started by a launcher other than
    /// gasnetrun.
    pub(super) fn above(
        link: HostLink,
        secret: JobSecret,
        is_launched: bool,
    ) -> Result<OtherHosts, BootError> {
        let address = interface::wanted()?.or(link.own_address());
        let secret = Some(secret);
        Ok(OtherHosts { secret, above: Some(link), address, is_launched, ..OtherHosts::default() })
    }

    /// Starts the supervisors of all hosts but this one.
    ///
    /// # Errors
    /// One cannot be started; those that were end with this process.
    pub(super) fn start(hosts: &HostsToStart<'_>) -> Result<OtherHosts, BootError> {
        let HostsToStart { names, own, plan, mask, timeout } = *hosts;
        let others = (0..).zip(names).filter(|(number, _)| Some(*number) != own);
        let others: Vec<(u32, &String)> = others.collect();
        let toward: Vec<String> = others.iter().map(|(_, name)| name.to_string()).collect();
        let listener = HostListener::open(&interface::toward(&toward)?)?;
        let root = listener.root_address();
        let rank_0 = plan.host_of.first().copied();
        let mut below = Vec::new();
        for (number, name) in others {
            let reads = rank_0 == Some(number);
            let shell = RemoteShell::start(name, number, &root, mask, reads)?;
            below.push(HostBelow::new(name, Some(number), Some(shell)));
        }
        Ok(OtherHosts {
            secret: Some(root.secret),
            below,
            listener: Some(listener),
            plan: plan.encode(),
            connect_by: timeout.map(|t| clock::now_ns() + t),
            ..OtherHosts::default()
        })
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

    /// The job ends. Hosts that a launcher has started connect now or never.
    pub(super) fn job_ends(&mut self, now: u64) {
        if self.is_launched {
            self.launcher_ends = true;
            let by = now + LATE_LAUNCHED;
            self.connect_by = self.connect_by.map(|before| before.min(by));
        }
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
        // The end of a shell is no event of a descriptor.
        let looks = (!self.are_over()).then_some(now + 50_000_000).filter(|_| self.has_shells());
        [connect, pending, looks].into_iter().flatten().min()
    }

    fn has_shells(&self) -> bool {
        self.below.iter().any(HostBelow::has_shell)
    }

    /// Moves messages and output. Returns what happened.
    pub(super) fn serve(&mut self, now: u64) -> Vec<HostEvent> {
        let mut events = Vec::new();
        if let Some(link) = &mut self.above {
            link.flush();
            events.extend(link.receive().into_iter().map(HostEvent::FromAbove));
            if let Some(why) = link.lost() {
                if !self.launcher_ends {
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
            host.serve(is_late, self.launcher_ends, &mut events);
        }
        if self.ended_at.is_none() && self.below.iter().all(HostBelow::is_over) {
            self.ended_at = Some(now);
        }
        if self.ended_at.is_some_and(|at| now >= at + SHELL_END) {
            self.end_shells();
        }
        events
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
        } else {
            link.send(&HostMessage::Plan(self.plan.clone()));
        }
        host.link = Some(link);
        Some(HostEvent::Connected)
    }

    /// Whether all hosts below have ended or are lost, and have printed all.
    pub(super) fn are_over(&self) -> bool {
        self.below.iter().all(|host| host.is_over() && !host.has_shell())
    }

    /// Ends the shells that are left.
    pub(super) fn end_shells(&mut self) {
        self.below.iter_mut().filter_map(|host| host.shell.as_mut()).for_each(RemoteShell::kill);
    }

    /// The exit code of a host below that is not 0.
    pub(super) fn failure(&self) -> Option<i32> {
        self.below.iter().filter_map(|host| host.ended).find(|code| *code != 0)
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

    /// Sends a message to the root; false if this is it.
    pub(super) fn send_up(&mut self, message: &HostMessage) -> bool {
        self.above.as_mut().map(|link| link.send(message)).is_some()
    }

    /// Sends a message to all that this host is connected with.
    pub(super) fn send(&mut self, message: &HostMessage) {
        self.send_up(message);
        self.send_down(message);
    }

    /// Sends the last message to the root.
    pub(super) fn say_ended(&mut self, code: i32) {
        if let Some(link) = &mut self.above {
            link.send(&HostMessage::Ended(code));
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
        self.send_down(&HostMessage::Status);
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
            shell,
            link: None,
            in_barrier: false,
            contributions: None,
            has_printed_status: false,
            spares: false,
            ended: None,
            is_lost: false,
        }
    }

    /// Whether the process that has started it runs.
    fn has_shell(&self) -> bool {
        self.shell.as_ref().is_some_and(|shell| shell.ended().is_none())
    }

    /// Whether it has not connected yet.
    fn is_awaited(&self) -> bool {
        self.link.is_none() && !self.is_over()
    }

    fn is_over(&self) -> bool {
        self.ended.is_some() || self.is_lost
    }

    /// `is_silent`: its loss is not reported.
    fn serve(&mut self, is_late: bool, is_silent: bool, events: &mut Vec<HostEvent>) {
        if let Some(shell) = &mut self.shell {
            shell.serve();
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
            return;
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
            report::line(format_args!(
                "host {host} did not start its ranks ({how}); the job ends"
            ));
            report::line(format_args!(
                "  See what is printed above. `ssh {host} true` must work without a question, and \
                 gasnetrun must be installed there at the same path."
            ));
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
        } else {
            return;
        }
        self.is_lost = true;
        events.push(HostEvent::Lost);
    }
}
