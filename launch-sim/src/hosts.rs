//! The supervisors of a job as the simulator runs them: the library's tree, gates, messages and
//! handshake; only the network and the ranks are simulated.
//!
//! Called by `main`. Invariant: each phase starts when the one before is over on all hosts.

use crate::network::{NetworkCosts, SimulatedNetwork};
use gasnet::boot::decision::{ExitCause, ExitDecision};
use gasnet::boot::hosts::message::HostMessage;
use gasnet::boot::hosts::remote_plan::{HostToStart, RemotePlan};
use gasnet::boot::hosts::tree::{self, GateStep, TreeGate};
use gasnet::boot::launch_plan::{CpuBinding, LaunchPlan};
use gasnet::rank::JobRank;
use handshake::{ConnectionPurpose, Handshake, HandshakeSpec, JobSecret, LibraryVersion, Nonce};

/// Bytes that a rank contributes to the exchange of addresses: one of TCP.
pub(crate) const ADDRESS: usize = 18;

/// A job to simulate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HostsSpec {
    pub(crate) hosts: u32,
    pub(crate) ranks_per_host: u32,
    /// GASNET_SSH_OUT_DEGREE.
    pub(crate) degree: u32,
    pub(crate) costs: NetworkCosts,
}

/// What a phase has cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PhaseCost {
    pub(crate) messages: u64,
    /// Most messages of a host, sent and received.
    pub(crate) most_messages: u64,
    /// Most bytes of a host, sent and received.
    pub(crate) most_bytes: u64,
    /// Nanoseconds until it is over on all hosts.
    pub(crate) time: u64,
}

/// One supervisor.
#[derive(Debug, Default)]
struct SimulatedHost {
    above: Option<u32>,
    below: Vec<u32>,
    /// Hosts below it in the tree, with those below them.
    starts: Vec<HostToStart>,
    gate: TreeGate,
    /// Hosts below that are in the barrier or have contributed.
    arrived: usize,
    contributions: Vec<(JobRank, Vec<u8>)>,
    has_decided: bool,
    /// Hosts below that have ended.
    ended: usize,
    /// When the phase was over here.
    over: Option<u64>,
}

/// What hosts say to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum SimulatedMessage {
    /// By ssh: where to connect.
    Greeting,
    /// A packet of the connection or of the proof; this many come after it.
    Handshake(usize),
    Plan,
    Arrived,
    Released,
    Decision,
    Ended,
}

/// The supervisors of a job.
#[derive(Debug)]
pub(crate) struct SimulatedHosts {
    job: HostsSpec,
    hosts: Vec<SimulatedHost>,
    pub(crate) depth: u32,
}

impl SimulatedHosts {
    pub(crate) fn new(job: HostsSpec) -> SimulatedHosts {
        let hosts = (0..job.hosts).map(|_| SimulatedHost::default()).collect();
        let mut made = SimulatedHosts { job, hosts, depth: 0 };
        let others = (1..job.hosts).map(|number| HostToStart { number, name: name(number) });
        made.hosts[0].starts = others.collect();
        let mut level = vec![0];
        while !level.is_empty() {
            let mut next = Vec::new();
            for at in level {
                let starts = std::mem::take(&mut made.hosts[at].starts);
                for branch in tree::branches(&starts, job.degree) {
                    let child = branch[0].number;
                    made.hosts[at].below.push(child);
                    let host = &mut made.hosts[child as usize];
                    host.above = Some(at as u32);
                    host.starts = branch[1..].to_vec();
                    next.push(child as usize);
                }
                made.hosts[at].starts = starts;
            }
            made.depth += u32::from(!next.is_empty());
            level = next;
        }
        made
    }

    fn network(&mut self) -> SimulatedNetwork<SimulatedMessage> {
        for host in &mut self.hosts {
            (host.arrived, host.ended, host.over) = (0, 0, None);
        }
        SimulatedNetwork::new(self.hosts.len(), self.job.costs)
    }

    /// All hosts but `without` have finished the phase.
    fn cost(&self, net: &SimulatedNetwork<SimulatedMessage>, without: Option<u32>) -> PhaseCost {
        let living = self.hosts.iter().zip(0..).filter(|(_, at)| Some(*at) != without);
        let over = living.map(|(host, at)| {
            host.over.unwrap_or_else(|| panic!("host {at} does not come to the end of a phase"))
        });
        PhaseCost {
            messages: net.messages(),
            most_messages: net.traffic.iter().map(|t| t.messages).max().unwrap_or(0),
            most_bytes: net.traffic.iter().map(|t| t.bytes).max().unwrap_or(0),
            time: over.max().unwrap_or(0),
        }
    }

    /// Each host is started, connects, and gets its plan.
    pub(crate) fn start(&mut self) -> PhaseCost {
        let plan = self.plan();
        let packets = handshake_packets();
        let mut net = self.network();
        self.start_below(0, 0, &mut net);
        while let Some(arrived) = net.next() {
            let (now, from, to) = (arrived.at, arrived.from, arrived.to);
            match arrived.message {
                SimulatedMessage::Greeting => {
                    let message = SimulatedMessage::Handshake(packets.len() - 1);
                    net.send(now, to, from, packets[0], message);
                }
                SimulatedMessage::Handshake(0) => {
                    let bytes = plan.encode_for(&self.hosts[from as usize].starts).len() + 5;
                    net.send(now, to, from, bytes, SimulatedMessage::Plan);
                }
                SimulatedMessage::Handshake(left) => {
                    let bytes = packets[packets.len() - left];
                    net.send(now, to, from, bytes, SimulatedMessage::Handshake(left - 1));
                }
                SimulatedMessage::Plan => self.start_below(to, now, &mut net),
                _ => {}
            }
        }
        self.cost(&net, None)
    }

    fn start_below(&mut self, at: u32, now: u64, net: &mut SimulatedNetwork<SimulatedMessage>) {
        const GREETING: usize = 100;
        let host = &mut self.hosts[at as usize];
        host.over = Some(now);
        for &below in &host.below {
            net.send(now, at, below, GREETING, SimulatedMessage::Greeting);
        }
    }

    /// The plan of a job like this one, without the environment.
    fn plan(&self) -> RemotePlan {
        let HostsSpec { hosts, ranks_per_host, .. } = self.job;
        let host_of = (0..hosts).flat_map(|h| std::iter::repeat_n(h, ranks_per_host as usize));
        let launch = LaunchPlan {
            size: hosts * ranks_per_host,
            hosts: None,
            program: "/home/user/program".into(),
            args: Vec::new(),
            bind: CpuBinding::None,
            cores: 1,
            prefix: false,
            fixed_addresses: false,
            verbose: false,
            timeout: None,
            output: None,
            gdb: None,
        };
        RemotePlan {
            host_of: host_of.collect(),
            launch,
            folder: "/home/user".into(),
            variables: Vec::new(),
            limits: Vec::new(),
            below: Vec::new(),
        }
    }

    /// All ranks are in the barrier at the same time.
    pub(crate) fn barrier(&mut self) -> PhaseCost {
        let bytes = HostMessage::Barrier.encode().len();
        self.gather(|_| bytes, bytes)
    }

    /// All ranks contribute an address at the same time.
    pub(crate) fn exchange(&mut self) -> PhaseCost {
        let each = self.job.ranks_per_host;
        for (host, at) in self.hosts.iter_mut().zip(0..) {
            let own = at * each..(at + 1) * each;
            host.contributions = own.map(|rank| (JobRank(rank), vec![0; ADDRESS])).collect();
        }
        let all = (self.job.hosts * each) as usize * ADDRESS;
        let answer = HostMessage::Exchanged(vec![0; all]).encode().len();
        self.gather(|all| HostMessage::Contributions(std::mem::take(all)).encode().len(), answer)
    }

    /// Something that goes up from all hosts and is answered. `bytes`: those of the message that
    /// goes up, out of what has arrived.
    fn gather(
        &mut self,
        bytes: impl Fn(&mut Vec<(JobRank, Vec<u8>)>) -> usize,
        answer: usize,
    ) -> PhaseCost {
        let mut net = self.network();
        for at in 0..self.job.hosts {
            self.advance(at, 0, &bytes, answer, &mut net);
        }
        while let Some(arrived) = net.next() {
            match arrived.message {
                SimulatedMessage::Arrived => {
                    self.hosts[arrived.to as usize].arrived += 1;
                    self.advance(arrived.to, arrived.at, &bytes, answer, &mut net);
                }
                SimulatedMessage::Released => {
                    self.release(arrived.to, arrived.at, answer, &mut net);
                }
                _ => {}
            }
        }
        self.cost(&net, None)
    }

    fn advance(
        &mut self,
        at: u32,
        now: u64,
        bytes: &impl Fn(&mut Vec<(JobRank, Vec<u8>)>) -> usize,
        answer: usize,
        net: &mut SimulatedNetwork<SimulatedMessage>,
    ) {
        let host = &mut self.hosts[at as usize];
        let all_here = host.arrived == host.below.len();
        match (host.gate.advance(all_here, host.above.is_none()), host.above) {
            (GateStep::Ask, Some(above)) => {
                let mut all = std::mem::take(&mut host.contributions);
                self.hosts[above as usize].contributions.extend(all.iter().cloned());
                net.send(now, at, above, bytes(&mut all), SimulatedMessage::Arrived);
            }
            (GateStep::Open, _) => self.release(at, now, answer, net),
            _ => {}
        }
    }

    fn release(
        &mut self,
        at: u32,
        now: u64,
        answer: usize,
        net: &mut SimulatedNetwork<SimulatedMessage>,
    ) {
        let host = &mut self.hosts[at as usize];
        host.gate.open();
        assert!(host.over.replace(now).is_none(), "host {at} is released once");
        for &below in &host.below {
            net.send(now, at, below, answer, SimulatedMessage::Released);
        }
    }

    /// A rank of `host` calls gasnet_exit. Ranks end as soon as their host knows.
    pub(crate) fn exit(&mut self, host: u32) -> PhaseCost {
        let mut net = self.network();
        self.decide(host, 0, None, &mut net);
        self.run_exit(&mut net, None)
    }

    /// `host` dies, which those that it is connected with notice at the same time.
    pub(crate) fn death(&mut self, host: u32) -> PhaseCost {
        self.hosts.iter_mut().for_each(|h| h.has_decided = false);
        let mut net = self.network();
        let dead = &self.hosts[host as usize];
        let connected: Vec<u32> = dead.above.iter().chain(&dead.below).copied().collect();
        for to in connected {
            // Noticed without a hop.
            self.decide(to, 0, Some(host), &mut net);
        }
        self.run_exit(&mut net, Some(host))
    }

    fn run_exit(
        &mut self,
        net: &mut SimulatedNetwork<SimulatedMessage>,
        dead: Option<u32>,
    ) -> PhaseCost {
        while let Some(arrived) = net.next() {
            let (now, to) = (arrived.at, arrived.to);
            if Some(to) == dead {
                continue;
            }
            match arrived.message {
                SimulatedMessage::Decision => self.decide(to, now, dead, net),
                SimulatedMessage::Ended => {
                    self.hosts[to as usize].ended += 1;
                    self.end(to, now, dead, net);
                }
                _ => {}
            }
        }
        self.cost(net, dead)
    }

    /// The host learns of the exit: it tells all that it is connected with, and its ranks end.
    fn decide(
        &mut self,
        at: u32,
        now: u64,
        dead: Option<u32>,
        net: &mut SimulatedNetwork<SimulatedMessage>,
    ) {
        let decision = ExitDecision::new(1, ExitCause::Ended, Some(JobRank(0)));
        let bytes = HostMessage::Decision(decision).encode().len();
        let host = &mut self.hosts[at as usize];
        if std::mem::replace(&mut host.has_decided, true) {
            return;
        }
        for &to in host.above.iter().chain(&host.below).filter(|to| Some(**to) != dead) {
            net.send(now, at, to, bytes, SimulatedMessage::Decision);
        }
        self.end(at, now, dead, net);
    }

    /// If the ranks of this host and all hosts below it have ended, it says so and ends.
    fn end(
        &mut self,
        at: u32,
        now: u64,
        dead: Option<u32>,
        net: &mut SimulatedNetwork<SimulatedMessage>,
    ) {
        let bytes = HostMessage::Ended(1).encode().len();
        let host = &mut self.hosts[at as usize];
        let lost = host.below.iter().filter(|below| Some(**below) == dead).count();
        if !host.has_decided || host.ended + lost < host.below.len() || host.over.is_some() {
            return;
        }
        host.over = Some(now);
        if let Some(above) = host.above.filter(|above| Some(*above) != dead) {
            net.send(now, at, above, bytes, SimulatedMessage::Ended);
        }
    }

    /// A host as far as possible from the root, and the one with the most hosts below it.
    pub(crate) fn deepest_and_widest(&self) -> (u32, u32) {
        let depth = |mut at: u32| {
            let mut depth = 0;
            while let Some(above) = self.hosts[at as usize].above {
                (at, depth) = (above, depth + 1);
            }
            depth
        };
        let others = 1..self.job.hosts;
        let deepest = others.clone().max_by_key(|at| depth(*at)).unwrap_or(0);
        let widest = others.max_by_key(|at| self.hosts[*at as usize].starts.len()).unwrap_or(0);
        (deepest, widest)
    }
}

fn name(host: u32) -> String {
    format!("node{host:04}")
}

/// The packets by which a host connects and both ends prove that they know the secret, in turn:
/// the first is of the host that connects. Their bytes.
fn handshake_packets() -> Vec<usize> {
    let secret = JobSecret::from_bytes([7; 16]);
    let spec = || HandshakeSpec {
        secret: &secret,
        library: LibraryVersion::new(env!("CARGO_PKG_VERSION")),
        purpose: ConnectionPurpose::Control,
        identity: 1,
        nonce: Nonce::random().unwrap_or_else(|e| panic!("a random number: {e}")),
    };
    let mut ends = [Handshake::connector(spec(), None), Handshake::acceptor(spec())];
    // The connection.
    let mut packets = vec![0, 0];
    let mut turn = 0;
    while !ends[turn].to_send().is_empty() {
        let bytes = ends[turn].to_send().to_vec();
        ends[turn].sent(bytes.len());
        packets.push(bytes.len());
        turn = 1 - turn;
        if let Err(e) = ends[turn].feed(&bytes) {
            panic!("the handshake fails: {e}");
        }
    }
    assert!(ends.iter().all(|end| end.peer().is_some()), "both ends have their proof");
    packets
}
