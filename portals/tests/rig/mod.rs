//! Rigs: a few connected interfaces, over each network that `portals3` has, for tests that are
//! written once.
//!
//! A test is one sequential script that commands *nodes*. A node is an interface of this process
//! ([`RigKind::Loopback`], [`RigKind::ShmOneProcess`], [`RigKind::Framed`], [`RigKind::Tcp`],
//! [`RigKind::Ofi`]) or one of another process. The other process is this same test program
//! started again; it serves calls over a
//! socket (see `agent`). A served node does nothing between two calls, so what arrives there
//! meanwhile arrived without its help.
//!
//! Invariant: after [`Rig::settle`] no message is in flight, so "no event" is a finding and not
//! a matter of patience.

#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test program that includes this uses a part of it"
)]

pub mod agent;
mod framed;
mod hosts;
mod node;
mod process;
pub mod watchdog;

use std::ffi::c_void;
use std::io::Write as _;

use portals3::nal::ofi::OfiTagMode;
use portals3::nal::shm::AttachPolicy;
use portals3::{
    AcIndex, EqHandle, FetchedEvent, MatchBits, MemoryDescriptor, NetworkInterface, NiLimits,
    PtIndex, PtlEvent, PtlProcessId, Size, THRESH_INF,
};

use agent::AgentMemory;
use framed::FramedNetwork;
pub use node::{RigNode, Running};
use process::NodeProcess;

/// Arena bytes of each process of a rig over shared memory.
pub const ARENA: usize = 4 << 20;

/// The network, and the kind of memory of a test's buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RigKind {
    /// One interface that sends to itself.
    Loopback,
    /// Two interfaces of this process over one shared arena; buffers in the arena.
    ShmOneProcess,
    /// Two processes; buffers in the arena.
    ShmMapped,
    /// Two processes; buffers in private memory, reached by cross-memory attach.
    ShmAttach,
    /// Two processes; buffers in private memory, cross-memory attach forbidden: everything
    /// travels in frames.
    ShmDenied,
    /// Two interfaces of this process; everything travels in frames, which are delayed and
    /// reordered.
    Framed,
    /// Two interfaces of this process, each on a host of its own; everything travels over TCP.
    Tcp,
    /// The same by a provider of libfabric.
    Ofi(OfiRig),
}

/// Providers of libfabric that every machine has if it has a libfabric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OfiRig {
    /// The one that is made for TCP: `net` in 1.17, `tcp` later.
    Native,
    /// `tcp;ofi_rxm`, with this place for lead and seal.
    Rxm(OfiTagMode),
    /// `sockets`.
    Sockets,
    /// The same with several contexts.
    Contexts,
}

impl RigKind {
    /// Every kind.
    pub const ALL: [RigKind; 13] = [
        RigKind::Loopback,
        RigKind::ShmOneProcess,
        RigKind::ShmMapped,
        RigKind::ShmAttach,
        RigKind::ShmDenied,
        RigKind::Framed,
        RigKind::Tcp,
        RigKind::Ofi(OfiRig::Native),
        RigKind::Ofi(OfiRig::Rxm(OfiTagMode::Full)),
        RigKind::Ofi(OfiRig::Rxm(OfiTagMode::One)),
        RigKind::Ofi(OfiRig::Rxm(OfiTagMode::Two)),
        RigKind::Ofi(OfiRig::Sockets),
        RigKind::Ofi(OfiRig::Contexts),
    ];

    /// Why this machine does not have it.
    pub fn missing(self) -> Option<String> {
        let RigKind::Ofi(rig) = self else { return None };
        hosts::missing(rig)
    }

    /// Whether this machine has it. If not, the test that calls this is to end: it is skipped, as
    /// `ci/check.sh` counts by the lines of the file CHECK_SKIPPED.
    pub fn is_here(self) -> bool {
        let Some(why) = self.missing() else { return true };
        let thread = std::thread::current();
        let line = format!("skipped {}: {why}\n", thread.name().unwrap_or_default());
        print!("{line}");
        if let Some(path) = std::env::var_os("CHECK_SKIPPED") {
            let file = std::fs::OpenOptions::new().create(true).append(true).open(path);
            file.and_then(|mut file| file.write_all(line.as_bytes())).expect("CHECK_SKIPPED");
        }
        false
    }

    /// Whether several processes are joined by a wire.
    pub fn has_wire(self) -> bool {
        matches!(self, RigKind::Tcp | RigKind::Ofi(_))
    }

    /// Whether a target's interface must be called before anything arrives there.
    pub fn needs_target(self) -> bool {
        self.has_wire() || matches!(self, RigKind::ShmDenied | RigKind::Framed)
    }

    /// Whether the nodes are processes of their own.
    pub fn has_processes(self) -> bool {
        matches!(self, RigKind::ShmMapped | RigKind::ShmAttach | RigKind::ShmDenied)
    }

    /// The kind of memory that [`RigNode::memory`] returns.
    fn memory(self) -> AgentMemory {
        match self {
            RigKind::ShmOneProcess | RigKind::ShmMapped => AgentMemory::Arena,
            RigKind::Loopback
            | RigKind::ShmAttach
            | RigKind::ShmDenied
            | RigKind::Framed
            | RigKind::Tcp
            | RigKind::Ofi(_) => AgentMemory::Private,
        }
    }

    fn attach(self) -> AttachPolicy {
        if self == RigKind::ShmDenied { AttachPolicy::Denied } else { AttachPolicy::Allowed }
    }

    /// Two nodes with the library's default limits.
    pub fn rig(self) -> Rig {
        self.build(2, None, 1)
    }

    /// Two nodes with these limits.
    pub fn rig_limited(self, limits: NiLimits) -> Rig {
        self.build(2, Some(limits), 1)
    }

    /// Two nodes; `seed` decides how the framed network delays and reorders.
    pub fn rig_seeded(self, seed: u64) -> Rig {
        self.build(2, None, seed)
    }

    /// `count` nodes. A loopback always has one.
    pub fn build(self, count: usize, limits: Option<NiLimits>, seed: u64) -> Rig {
        self.build_with(count, limits, seed, None)
    }

    /// `count` processes, of which number `victim` stops or dies at `pause` (the value of
    /// `GASNET_TEST_PAUSE`).
    pub fn build_paused(self, count: usize, victim: u32, pause: &str) -> Rig {
        assert!(self.has_processes());
        self.build_with(count, None, 1, Some((victim, pause)))
    }

    fn build_with(
        self,
        count: usize,
        limits: Option<NiLimits>,
        seed: u64,
        pause: Option<(u32, &str)>,
    ) -> Rig {
        let memory = self.memory();
        let here = |interface| RigNode::here(interface, memory);
        let nodes = match self {
            RigKind::Loopback => vec![here(NetworkInterface::loopback(limits).expect("loopback"))],
            RigKind::Framed => {
                let network = FramedNetwork::new(count as u32, seed);
                (0..count).map(|_| here(network.join(limits).expect("framed"))).collect()
            }
            RigKind::Tcp => hosts::join(count, limits, None).into_iter().map(here).collect(),
            RigKind::Ofi(rig) => {
                hosts::join(count, limits, Some(rig)).into_iter().map(here).collect()
            }
            RigKind::ShmOneProcess => {
                let file = process::memory_file();
                let spec = |index| process::fabric(&file, index, count as u32, self.attach());
                let fabrics: Vec<_> = (0..count as u32).map(spec).collect();
                fabrics
                    .into_iter()
                    .map(|f| here(NetworkInterface::shm(f, limits).expect("shm")))
                    .collect()
            }
            RigKind::ShmMapped | RigKind::ShmAttach | RigKind::ShmDenied => {
                let file = process::memory_file();
                let remotes: Vec<_> = (1..count as u32)
                    .map(|index| {
                        let pause =
                            pause.filter(|(victim, _)| *victim == index).map(|(_, pause)| pause);
                        NodeProcess::start(
                            &file,
                            index,
                            count as u32,
                            self.attach(),
                            limits,
                            pause,
                        )
                    })
                    .collect();
                let first = process::fabric(&file, 0, count as u32, self.attach());
                let mut nodes = vec![here(NetworkInterface::shm(first, limits).expect("shm"))];
                nodes.extend(remotes.into_iter().map(|remote| RigNode::there(remote, memory)));
                nodes
            }
        };
        Rig { kind: self, nodes }
    }
}

/// Some connected nodes.
pub struct Rig {
    /// The network.
    pub kind: RigKind,
    nodes: Vec<RigNode>,
}

impl Rig {
    /// The node that starts operations.
    pub fn initiator(&self) -> &RigNode {
        &self.nodes[0]
    }

    /// The node that operations target; on a loopback the initiator itself.
    pub fn target(&self) -> &RigNode {
        self.nodes.get(1).unwrap_or(&self.nodes[0])
    }

    /// All nodes.
    pub fn nodes(&self) -> &[RigNode] {
        &self.nodes
    }

    /// Calls every node that needs calls until no message is in flight.
    ///
    /// A network with bypass needs no call, so none is made: what should have happened has
    /// happened.
    pub fn settle(&self) {
        if !self.kind.needs_target() {
            return;
        }
        loop {
            for node in &self.nodes {
                node.progress();
            }
            let counters: Vec<_> = self.nodes.iter().map(RigNode::frames).collect();
            let sent: u64 = counters.iter().map(|c| c.0).sum();
            let taken: u64 = counters.iter().map(|c| c.1).sum();
            if sent == taken {
                return;
            }
        }
    }

    /// Calls the nodes that are idle, so that what they have begun makes progress.
    pub fn nudge(&self, running: &[Running<'_>]) {
        for node in &self.nodes {
            let busy = |call: &Running<'_>| core::ptr::eq(call.node, node) && !call.is_over();
            if node.interface().is_some() || !running.iter().any(busy) {
                node.progress();
            }
        }
        std::thread::yield_now();
    }

    /// Calls the nodes that are idle until all these calls are over.
    pub fn help(&self, running: &[Running<'_>]) {
        while !running.iter().all(Running::is_over) {
            self.nudge(running);
        }
    }

    /// Settles, then takes the next event of a queue, if any.
    pub fn poll(&self, node: &RigNode, eq: EqHandle) -> Option<FetchedEvent> {
        self.settle();
        node.eq_get(eq).expect("PtlEQGet")
    }

    /// Settles, then takes the next event of a queue, which must exist and follow no loss.
    #[track_caller]
    pub fn event(&self, node: &RigNode, eq: EqHandle) -> PtlEvent {
        let fetched = self.poll(node, eq).expect("an event was due");
        assert!(!fetched.dropped, "no event should be lost: {fetched:?}");
        fetched.event
    }

    /// Settles, then takes all events of a queue.
    pub fn events(&self, node: &RigNode, eq: EqHandle) -> Vec<PtlEvent> {
        core::iter::from_fn(|| self.poll(node, eq)).map(|fetched| fetched.event).collect()
    }

    /// Settles, then asserts that a queue is empty.
    #[track_caller]
    pub fn silent(&self, node: &RigNode, eq: EqHandle) {
        let found = self.poll(node, eq);
        assert!(found.is_none(), "no event was due: {found:?}");
    }
}

/// Memory of one node.
#[derive(Clone, Copy, Debug)]
pub struct NodeBuffer {
    /// Address in the node's process.
    pub address: usize,
    /// Bytes.
    pub len: usize,
}

impl NodeBuffer {
    /// The start of the memory, for a descriptor.
    pub fn start(self) -> *mut c_void {
        self.address as *mut c_void
    }

    /// A part of it.
    pub fn part(self, offset: usize, len: usize) -> NodeBuffer {
        assert!(offset + len <= self.len);
        NodeBuffer { address: self.address + offset, len }
    }
}

/// A descriptor of a buffer with infinite threshold.
pub fn md(buffer: NodeBuffer, options: u32, eq: EqHandle) -> MemoryDescriptor {
    MemoryDescriptor {
        start: buffer.start(),
        length: buffer.len as Size,
        threshold: THRESH_INF,
        max_size: 0,
        options,
        user_ptr: core::ptr::without_provenance_mut(0x5eed),
        eq,
    }
}

/// The target of an operation: what every `PtlPut`, `PtlGet` and `PtlGetPut` names.
#[derive(Clone, Copy, Debug)]
pub struct To {
    /// Target process.
    pub id: PtlProcessId,
    /// Portal table index there.
    pub pt: PtIndex,
    /// Access control index there.
    pub ac: AcIndex,
    /// Match bits.
    pub bits: MatchBits,
    /// Offset, for descriptors that the initiator manages.
    pub offset: Size,
}

/// Bytes that differ by position and by seed.
pub fn pattern(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    core::iter::repeat_with(next).take(len).collect()
}
