//! Rigs: a few connected interfaces, over each network that `portals3` has, for tests that are written once.
//!
//! A test is one sequential script that tells *nodes* what to do. A node is an interface of this process
//! ([`RigKind::Loopback`], [`RigKind::ShmOneProcess`], [`RigKind::Framed`]) or one of another process, which is this same test
//! program started again and serves calls over a socket (see `agent`). A served node does nothing at all between
//! two calls, so that what arrives there meanwhile arrived without its help.
//!
//! Invariant: after [`Rig::settle`] nothing is under way, so "no event" is a finding and not a matter of patience.

#![allow(
    dead_code,
    unreachable_pub,
    reason = "each test program that includes this uses a part of it"
)]

pub mod agent;
mod process;
pub mod watchdog;

use std::ffi::c_void;
use std::sync::Arc;

use portals3::nal::framed::FramedNetwork;
use portals3::nal::shm::AttachPolicy;
use portals3::{
    AcIndex, AckReq, EqHandle, FetchedEvent, HdrData, InsPos, Jid, MatchBits, MdHandle, MdIovec,
    MeHandle, MemoryDescriptor, NetworkInterface, NiLimits, PtIndex, PtlError, PtlEvent,
    PtlProcessId, Size, StatusRegister, THRESH_INF, Uid, Unlink,
};

use agent::{Agent, AgentAnswer, AgentCall, AgentMemory, MAX_POLL};
use process::NodeProcess;

/// Bytes of arena that each process of a rig over shared memory brings.
pub const ARENA: usize = 4 << 20;

/// Which network, and what kind of memory the buffers of a test are.
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
    /// Two processes; buffers in private memory, cross-memory attach forbidden: everything travels in frames.
    ShmDenied,
    /// Two interfaces of this process; everything travels in frames, which are delayed and reordered.
    Framed,
}

impl RigKind {
    /// Every kind.
    pub const ALL: [RigKind; 6] = [
        RigKind::Loopback,
        RigKind::ShmOneProcess,
        RigKind::ShmMapped,
        RigKind::ShmAttach,
        RigKind::ShmDenied,
        RigKind::Framed,
    ];

    /// Whether a target's interface must be called before anything arrives there.
    pub fn needs_target(self) -> bool {
        matches!(self, RigKind::ShmDenied | RigKind::Framed)
    }

    /// Whether the nodes are processes of their own.
    pub fn has_processes(self) -> bool {
        matches!(self, RigKind::ShmMapped | RigKind::ShmAttach | RigKind::ShmDenied)
    }

    /// What [`RigNode::memory`] gives.
    fn memory(self) -> AgentMemory {
        match self {
            RigKind::ShmOneProcess | RigKind::ShmMapped => AgentMemory::Arena,
            RigKind::Loopback | RigKind::ShmAttach | RigKind::ShmDenied | RigKind::Framed => {
                AgentMemory::Private
            }
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

    /// `count` nodes. A loopback has one whatever `count` is.
    pub fn build(self, count: usize, limits: Option<NiLimits>, seed: u64) -> Rig {
        self.build_with(count, limits, seed, None)
    }

    /// `count` processes, of which number `victim` stops or dies where `pause` (the value of `GASNET_TEST_PAUSE`) says.
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
                (0..count)
                    .map(|_| here(NetworkInterface::framed(&network, limits).expect("framed")))
                    .collect()
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

    /// The node that operations aim at; on a loopback the initiator itself.
    pub fn target(&self) -> &RigNode {
        self.nodes.get(1).unwrap_or(&self.nodes[0])
    }

    /// All nodes.
    pub fn nodes(&self) -> &[RigNode] {
        &self.nodes
    }

    /// Calls every node that needs calling until nothing is under way.
    ///
    /// A network with bypass needs no call, so none is made: what should have happened has happened.
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

    /// Calls the nodes that have nothing else to do, so that what they have begun goes on.
    pub fn nudge(&self, running: &[Running<'_>]) {
        for node in &self.nodes {
            let busy = |call: &Running<'_>| core::ptr::eq(call.node, node) && !call.is_over();
            if node.interface().is_some() || !running.iter().any(busy) {
                node.progress();
            }
        }
        std::thread::yield_now();
    }

    /// Calls the nodes that have nothing else to do until all these calls are over.
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

    /// Settles, then takes the next event of a queue, which must be there and without loss before it.
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
    /// The memory as a descriptor wants it.
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

enum Link {
    Here(Arc<Agent>),
    There(NodeProcess),
}

/// One interface of a rig, wherever it lives. Methods are the calls of the specification.
pub struct RigNode {
    link: Link,
    memory: AgentMemory,
    id: PtlProcessId,
}

/// A call under way on a node; see [`RigNode::begin`].
pub struct Running<'a> {
    node: &'a RigNode,
    thread: Option<std::thread::JoinHandle<Returned>>,
    answer: std::cell::RefCell<Option<NodeReply>>,
}

type NodeReply = Result<(AgentAnswer, Vec<u8>), PtlError>;

/// A call holds raw addresses of the node's process and is carried out by a thread of that process.
struct Carried(AgentCall);
// SAFETY: the addresses inside are plain numbers to everyone but the interface that is called, which takes calls
// from any thread.
unsafe impl Send for Carried {}

/// As [`Carried`], for what comes back.
struct Returned(NodeReply);
// SAFETY: as for `Carried`.
unsafe impl Send for Returned {}

macro_rules! calls {
    ($($(#[$doc:meta])* $name:ident($($arg:ident: $type:ty),*) -> $answer:ident($result:ty) = $call:expr;)*) => {
        impl RigNode {
            $($(#[$doc])* pub fn $name(&self $(, $arg: $type)*) -> Result<$result, PtlError> {
                match self.call($call)? {
                    AgentAnswer::$answer(value) => Ok(value),
                    other => panic!("{} answered {other:?}", stringify!($name)),
                }
            })*
        }
    };
}

calls! {
    /// `PtlNIDist`
    distance(to: PtlProcessId) -> Number(u64) = AgentCall::Distance(to);
    /// `PtlEQAlloc` without handler
    eq_alloc(count: Size) -> Eq(EqHandle) = AgentCall::EqAlloc { count, handler: false };
    /// `PtlEQAlloc` with a handler that logs; see [`RigNode::handled`].
    eq_alloc_handled(count: Size) -> Eq(EqHandle) = AgentCall::EqAlloc { count, handler: true };
    /// `PtlEQFree`
    eq_free(eq: EqHandle) -> Unit(()) = AgentCall::EqFree(eq);
    /// `PtlEQGet`
    eq_get(eq: EqHandle) -> Fetched(Option<FetchedEvent>) = AgentCall::EqGet(eq);
    /// `PtlEQWait`
    eq_wait(eq: EqHandle) -> Fetched(Option<FetchedEvent>) = AgentCall::EqWait(eq);
    /// `PtlEQPoll`
    eq_poll(eqs: &[EqHandle], timeout_ms: Option<u32>) -> Polled(Option<(usize, FetchedEvent)>) = poll_call(eqs, timeout_ms);
    /// `PtlMEAttach`
    me_attach(pt: PtIndex, id: PtlProcessId, bits: MatchBits, ignore: MatchBits, unlink: Unlink, pos: InsPos)
        -> Me(MeHandle) = AgentCall::MeAttach { pt, id, bits, ignore, unlink, pos };
    /// `PtlMEAttachAny`
    me_attach_any(id: PtlProcessId, bits: MatchBits, ignore: MatchBits, unlink: Unlink) -> MeAny((PtIndex, MeHandle))
        = AgentCall::MeAttachAny { id, bits, ignore, unlink };
    /// `PtlMEInsert`
    me_insert(base: MeHandle, id: PtlProcessId, bits: MatchBits, ignore: MatchBits, unlink: Unlink, pos: InsPos)
        -> Me(MeHandle) = AgentCall::MeInsert { base, id, bits, ignore, unlink, pos };
    /// `PtlMEUnlink`
    me_unlink(me: MeHandle) -> Unit(()) = AgentCall::MeUnlink(me);
    /// `PtlMDAttach`; the memory must be a buffer of this node.
    md_attach(me: MeHandle, md: MemoryDescriptor, unlink: Unlink) -> Md(MdHandle) = AgentCall::MdAttach { me, md, unlink };
    /// `PtlMDBind`; the memory must be a buffer of this node.
    md_bind(md: MemoryDescriptor, unlink: Unlink) -> Md(MdHandle) = AgentCall::MdBind { md, unlink };
    /// `PtlMDUnlink`
    md_unlink(md: MdHandle) -> Unit(()) = AgentCall::MdUnlink(md);
    /// `PtlACEntry`
    ac_entry(index: AcIndex, id: PtlProcessId, uid: Uid, jid: Jid, pt: PtIndex) -> Unit(())
        = AgentCall::AcEntry { index, id, uid, jid, pt };
    /// `PtlPut`
    put(md: MdHandle, ack: AckReq, to: To, hdr: HdrData) -> Unit(()) = AgentCall::Put { md, part: None, ack, to, hdr };
    /// `PtlPutRegion`
    put_region(md: MdHandle, offset: Size, length: Size, ack: AckReq, to: To, hdr: HdrData) -> Unit(())
        = AgentCall::Put { md, part: Some((offset, length)), ack, to, hdr };
    /// `PtlGet`
    get(md: MdHandle, to: To) -> Unit(()) = AgentCall::Get { md, part: None, to };
    /// `PtlGetRegion`
    get_region(md: MdHandle, offset: Size, length: Size, to: To) -> Unit(())
        = AgentCall::Get { md, part: Some((offset, length)), to };
    /// `PtlGetPut`
    get_put(get: MdHandle, put: MdHandle, to: To, hdr: HdrData) -> Unit(()) = AgentCall::GetPut { get, put, to, hdr };
    /// Many puts of one descriptor in a row, with `hdr` counting up; tells how many succeeded.
    put_many(md: MdHandle, ack: AckReq, to: To, hdr: HdrData, count: u64) -> Number(u64)
        = AgentCall::PutMany { md, at_once: None, ack, to, hdr, count };
    /// Many 8-byte swaps in a row: each writes the next value from `first` into the put buffer, swaps, waits for the
    /// reply on `eq` and adds what came back to a sum, which it returns (wrapping).
    swap_many(swap: agent::Swap, first: u64, count: u64) -> Number(u64) = AgentCall::SwapMany { swap, first, count };
    /// Takes events until `count` puts are in, checking that each header datum of a sender is the next one; returns
    /// how many were lost.
    take_many(eq: EqHandle, count: u64) -> Number(u64) = AgentCall::TakeMany { eq, count };
}

fn poll_call(eqs: &[EqHandle], timeout_ms: Option<u32>) -> AgentCall {
    let mut list = [EqHandle::NONE; MAX_POLL];
    list[..eqs.len()].copy_from_slice(eqs);
    AgentCall::EqPoll { eqs: list, len: eqs.len(), timeout_ms }
}

/// Where an operation goes: what every `PtlPut`, `PtlGet` and `PtlGetPut` names.
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
    /// Offset, for descriptors that leave it to the initiator.
    pub offset: Size,
}

impl RigNode {
    fn here(interface: NetworkInterface, memory: AgentMemory) -> RigNode {
        let id = interface.id();
        RigNode { link: Link::Here(Arc::new(Agent::new(interface))), memory, id }
    }

    fn there(remote: NodeProcess, memory: AgentMemory) -> RigNode {
        let mut node = RigNode { link: Link::There(remote), memory, id: PtlProcessId::ANY };
        let Ok(AgentAnswer::Id(id)) = node.call(AgentCall::Id) else {
            panic!("the process does not tell its id")
        };
        node.id = id;
        node
    }

    /// The interface, if it is one of this process.
    pub fn interface(&self) -> Option<&NetworkInterface> {
        match &self.link {
            Link::Here(agent) => Some(agent.interface()),
            Link::There(_) => None,
        }
    }

    /// The operating system's number of the node's process, if it is another one.
    pub fn os_pid(&self) -> Option<i32> {
        match &self.link {
            Link::Here(_) => None,
            Link::There(remote) => Some(remote.os_pid()),
        }
    }

    fn exchange(&self, call: AgentCall, payload: &[u8]) -> NodeReply {
        match &self.link {
            Link::Here(agent) => agent.serve(call, payload),
            Link::There(remote) => {
                remote.send(call, payload);
                remote.receive()
            }
        }
    }

    fn call(&self, call: AgentCall) -> Result<AgentAnswer, PtlError> {
        self.exchange(call, &[]).map(|(answer, _)| answer)
    }

    /// Starts a call and returns; the node may be busy with it until [`Running::finish`].
    pub fn begin(&self, call: AgentCall) -> Running<'_> {
        let thread = match &self.link {
            Link::Here(agent) => {
                let (agent, carried) = (Arc::clone(agent), Carried(call));
                Some(std::thread::spawn(move || {
                    let carried = carried;
                    Returned(agent.serve(carried.0, &[]))
                }))
            }
            Link::There(remote) => {
                remote.send(call, &[]);
                None
            }
        };
        Running { node: self, thread, answer: None.into() }
    }

    /// `PtlGetId`
    pub fn id(&self) -> PtlProcessId {
        self.id
    }

    /// `PtlGetUid` and `PtlGetJid`
    pub fn user_and_job(&self) -> (Uid, Jid) {
        let Ok(AgentAnswer::UserJob(uid, jid)) = self.call(AgentCall::UserJob) else {
            panic!("no uid")
        };
        (uid, jid)
    }

    /// The limits in force.
    pub fn limits(&self) -> NiLimits {
        let Ok(AgentAnswer::Limits(limits)) = self.call(AgentCall::Limits) else {
            panic!("no limits")
        };
        limits
    }

    /// `PtlNIStatus` of the drop counter.
    pub fn dropped(&self) -> u64 {
        let Ok(AgentAnswer::Number(count)) =
            self.call(AgentCall::Status(StatusRegister::DropCount))
        else {
            panic!("no status")
        };
        count
    }

    /// Frames sent and taken so far.
    pub fn frames(&self) -> (u64, u64) {
        let Ok(AgentAnswer::Frames(sent, taken)) = self.call(AgentCall::Frames) else {
            panic!("no counters")
        };
        (sent, taken)
    }

    /// Lets the interface do what it has to do.
    pub fn progress(&self) {
        self.call(AgentCall::Progress).expect("progress");
    }

    /// How many events the handler of [`RigNode::eq_alloc_handled`] saw whose header data are `mark` above bit 32.
    pub fn handled(&self, mark: HdrData) -> u64 {
        let Ok(AgentAnswer::Number(count)) = self.call(AgentCall::Handled(mark)) else {
            panic!("no log")
        };
        count
    }

    /// `PtlMDUpdate`: fills `old` as the library does, also when it fails.
    pub fn md_update(
        &self,
        md: MdHandle,
        old: Option<&mut MemoryDescriptor>,
        new: Option<MemoryDescriptor>,
        test: EqHandle,
    ) -> Result<(), PtlError> {
        let AgentAnswer::Update(seen, result) =
            self.call(AgentCall::MdUpdate { md, read: old.is_some(), new, test })?
        else {
            panic!("no update")
        };
        if let (Some(old), Some(seen)) = (old, seen) {
            *old = seen;
        }
        result
    }

    /// A zeroed buffer of the kind of memory that the rig is about.
    pub fn memory(&self, len: usize) -> NodeBuffer {
        self.memory_of(self.memory, len)
    }

    /// A zeroed buffer of this kind of memory; [`AgentMemory::Arena`] only on nodes that have an arena.
    pub fn memory_of(&self, kind: AgentMemory, len: usize) -> NodeBuffer {
        let Ok(AgentAnswer::Address(address)) = self.call(AgentCall::Memory { kind, len }) else {
            panic!("no memory")
        };
        NodeBuffer { address, len }
    }

    /// A buffer with `bytes` in it.
    pub fn filled(&self, bytes: &[u8]) -> NodeBuffer {
        let buffer = self.memory(bytes.len());
        self.write(buffer, bytes);
        buffer
    }

    /// A buffer that holds an I/O vector of `pieces`.
    pub fn vector(&self, pieces: &[NodeBuffer]) -> NodeBuffer {
        let size = size_of::<MdIovec>();
        let buffer = self.memory_of(AgentMemory::Private, pieces.len().max(1) * size);
        for (at, piece) in pieces.iter().enumerate() {
            let mut bytes = [0; size_of::<MdIovec>()];
            bytes[..8].copy_from_slice(&piece.address.to_ne_bytes());
            bytes[8..].copy_from_slice(&(piece.len as u64).to_ne_bytes());
            self.write(buffer.part(at * size, size), &bytes);
        }
        buffer
    }

    /// Writes the beginning of a buffer.
    pub fn write(&self, buffer: NodeBuffer, bytes: &[u8]) {
        assert!(bytes.len() <= buffer.len);
        self.exchange(AgentCall::Write { address: buffer.address }, bytes).expect("write");
    }

    /// Reads a whole buffer.
    pub fn read(&self, buffer: NodeBuffer) -> Vec<u8> {
        let call = AgentCall::Read { address: buffer.address, len: buffer.len };
        self.exchange(call, &[]).expect("read").1
    }
}

impl Running<'_> {
    /// Whether the call is over; from then on the node can be called again.
    pub fn is_over(&self) -> bool {
        match (&self.thread, &self.node.link) {
            (Some(thread), _) => thread.is_finished(),
            (None, Link::There(remote)) => {
                let mut answer = self.answer.borrow_mut();
                if answer.is_none() && remote.has_answered() {
                    *answer = Some(remote.receive());
                }
                answer.is_some()
            }
            (None, Link::Here(_)) => unreachable!("a local call runs in a thread"),
        }
    }

    /// Waits until the call is over.
    pub fn finish(self) -> Result<AgentAnswer, PtlError> {
        let reply = match (self.thread, self.answer.into_inner(), &self.node.link) {
            (Some(thread), _, _) => thread.join().expect("a calling thread panicked").0,
            (None, Some(reply), _) => reply,
            (None, None, Link::There(remote)) => remote.receive(),
            (None, None, Link::Here(_)) => unreachable!("a local call runs in a thread"),
        };
        reply.map(|(answer, _)| answer)
    }
}

/// Bytes that differ from place to place and from seed to seed.
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
