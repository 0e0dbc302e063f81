//! One node of a rig: its methods are the calls of the specification.
//!
//! Used by every test through [`super::Rig`]. A node is an interface of this process, called
//! directly, or one of another process, called over a socket. Invariant: at most one call at a
//! time is in progress on a node.

use std::sync::Arc;

use portals3::{
    AcIndex, AckReq, EqHandle, FetchedEvent, HdrData, InsPos, Jid, MatchBits, MdHandle, MdIovec,
    MeHandle, MemoryDescriptor, NetworkInterface, NiLimits, PtIndex, PtlError, PtlProcessId, Size,
    StatusRegister, Uid, Unlink,
};

use super::agent::{Agent, AgentAnswer, AgentCall, AgentMemory, MAX_POLL, Swap};
use super::process::NodeProcess;
use super::{NodeBuffer, To};

enum Link {
    Here(Arc<Agent>),
    There(NodeProcess),
}

/// One interface of a rig, in this process or another. Methods are the calls of the
/// specification.
pub struct RigNode {
    link: Link,
    memory: AgentMemory,
    id: PtlProcessId,
}

/// A call in progress on a node; see [`RigNode::begin`].
pub struct Running<'a> {
    pub(super) node: &'a RigNode,
    thread: Option<std::thread::JoinHandle<Returned>>,
    answer: std::cell::RefCell<Option<NodeReply>>,
}

pub(super) type NodeReply = Result<(AgentAnswer, Vec<u8>), PtlError>;

/// A call holds raw addresses of the node's process and is carried out by a thread of that
/// process.
struct Carried(AgentCall);
// SAFETY: only the interface that is called uses the addresses inside as such, and it takes
// calls from any thread.
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
    /// Many puts of one descriptor in a row, with `hdr` counting up; returns how many succeeded.
    put_many(md: MdHandle, ack: AckReq, to: To, hdr: HdrData, count: u64) -> Number(u64)
        = AgentCall::PutMany { md, at_once: None, ack, to, hdr, count };
    /// Many 8-byte swaps in a row. Each writes the next value from `first` into the put buffer
    /// and swaps. Then it waits for the reply on `eq` and adds the reply's value to a sum.
    /// Returns the sum (wrapping).
    swap_many(swap: Swap, first: u64, count: u64) -> Number(u64) = AgentCall::SwapMany { swap, first, count };
    /// Takes events until `count` puts have arrived, and checks that each header datum of a
    /// sender is the next one; returns how many were lost.
    take_many(eq: EqHandle, count: u64) -> Number(u64) = AgentCall::TakeMany { eq, count };
}

fn poll_call(eqs: &[EqHandle], timeout_ms: Option<u32>) -> AgentCall {
    let mut list = [EqHandle::NONE; MAX_POLL];
    list[..eqs.len()].copy_from_slice(eqs);
    AgentCall::EqPoll { eqs: list, len: eqs.len(), timeout_ms }
}

impl RigNode {
    pub(super) fn here(interface: NetworkInterface, memory: AgentMemory) -> RigNode {
        let id = interface.id();
        RigNode { link: Link::Here(Arc::new(Agent::new(interface))), memory, id }
    }

    pub(super) fn there(remote: NodeProcess, memory: AgentMemory) -> RigNode {
        let mut node = RigNode { link: Link::There(remote), memory, id: PtlProcessId::ANY };
        let Ok(AgentAnswer::Id(id)) = node.call(AgentCall::Id) else {
            panic!("the process does not report its id")
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

    /// The process id of the node's process, if that is another one.
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

    /// Lets the interface make progress.
    pub fn progress(&self) {
        self.call(AgentCall::Progress).expect("progress");
    }

    /// How many events with header data `mark` above bit 32 the handler of
    /// [`RigNode::eq_alloc_handled`] has seen.
    pub fn handled(&self, mark: HdrData) -> u64 {
        let Ok(AgentAnswer::Number(count)) = self.call(AgentCall::Handled(mark)) else {
            panic!("no log")
        };
        count
    }

    /// `PtlMDUpdate`: fills `old` as the library does, even on failure.
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

    /// A zeroed buffer in the rig's kind of memory.
    pub fn memory(&self, len: usize) -> NodeBuffer {
        self.memory_of(self.memory, len)
    }

    /// A zeroed buffer of this kind of memory; [`AgentMemory::Arena`] only on nodes that have an
    /// arena.
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
