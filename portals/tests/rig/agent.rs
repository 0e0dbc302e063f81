//! The agent of a node: carries out calls on one interface, in the process of that interface.
//!
//! Used by [`super::node`] and [`super::process`]. It owns the node's buffers. Invariant: they
//! live until the agent is dropped, after its interface, so a descriptor never outlives its
//! memory.

use std::sync::Mutex;

use portals3::{
    AcIndex, AckReq, EqHandle, FetchedEvent, HdrData, InsPos, Jid, MatchBits, MdHandle, MdIovec,
    MeHandle, MemoryDescriptor, NetworkInterface, NiLimits, PtIndex, PtlError, PtlEvent,
    PtlEventKind, PtlProcessId, Size, StatusRegister, Uid, Unlink,
};

use super::{NodeBuffer, To};

/// Most queues that one `PtlEQPoll` of a test names.
pub const MAX_POLL: usize = 4;

/// Kinds of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentMemory {
    /// The library's own, where peers can reach it.
    Arena,
    /// The process's own.
    Private,
}

/// A call that a node is to make; addresses are those of its process.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "the fields are the arguments of the specification's calls")]
pub enum AgentCall {
    Id,
    UserJob,
    Limits,
    Status(StatusRegister),
    Distance(PtlProcessId),
    Frames,
    Progress,
    Handled(HdrData),
    Memory {
        kind: AgentMemory,
        len: usize,
    },
    Write {
        address: usize,
    },
    Read {
        address: usize,
        len: usize,
    },
    EqAlloc {
        count: Size,
        handler: bool,
    },
    EqFree(EqHandle),
    EqGet(EqHandle),
    EqWait(EqHandle),
    EqPoll {
        eqs: [EqHandle; MAX_POLL],
        len: usize,
        timeout_ms: Option<u32>,
    },
    MeAttach {
        pt: PtIndex,
        id: PtlProcessId,
        bits: MatchBits,
        ignore: MatchBits,
        unlink: Unlink,
        pos: InsPos,
    },
    MeAttachAny {
        id: PtlProcessId,
        bits: MatchBits,
        ignore: MatchBits,
        unlink: Unlink,
    },
    MeInsert {
        base: MeHandle,
        id: PtlProcessId,
        bits: MatchBits,
        ignore: MatchBits,
        unlink: Unlink,
        pos: InsPos,
    },
    MeUnlink(MeHandle),
    MdAttach {
        me: MeHandle,
        md: MemoryDescriptor,
        unlink: Unlink,
    },
    MdBind {
        md: MemoryDescriptor,
        unlink: Unlink,
    },
    MdUnlink(MdHandle),
    MdUpdate {
        md: MdHandle,
        read: bool,
        new: Option<MemoryDescriptor>,
        test: EqHandle,
    },
    AcEntry {
        index: AcIndex,
        id: PtlProcessId,
        uid: Uid,
        jid: Jid,
        pt: PtIndex,
    },
    Put {
        md: MdHandle,
        part: Option<(Size, Size)>,
        ack: AckReq,
        to: To,
        hdr: HdrData,
    },
    Get {
        md: MdHandle,
        part: Option<(Size, Size)>,
        to: To,
    },
    GetPut {
        get: MdHandle,
        put: MdHandle,
        to: To,
        hdr: HdrData,
    },
    PutMany {
        md: MdHandle,
        /// The bytes of the descriptor, to be put at once where that is possible.
        at_once: Option<NodeBuffer>,
        ack: AckReq,
        to: To,
        hdr: HdrData,
        count: u64,
    },
    SwapMany {
        swap: Swap,
        first: u64,
        count: u64,
    },
    GetMany {
        md: MdHandle,
        at_once: Option<NodeBuffer>,
        to: To,
        count: u64,
    },
    Churn {
        me: MeHandle,
        md: MemoryDescriptor,
        count: u64,
    },
    TakeMany {
        eq: EqHandle,
        count: u64,
    },
}

/// The arguments of [`AgentCall::SwapMany`].
#[derive(Clone, Copy, Debug)]
#[allow(
    missing_docs,
    reason = "two descriptors, their 8-byte buffers, the queue of the replies, the target"
)]
pub struct Swap {
    pub get: MdHandle,
    pub get_address: usize,
    pub put: MdHandle,
    pub put_address: usize,
    pub eq: EqHandle,
    pub to: To,
}

/// The result of a call.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "the fields are the results of the specification's calls")]
pub enum AgentAnswer {
    Unit(()),
    Number(u64),
    Address(usize),
    Id(PtlProcessId),
    UserJob(Uid, Jid),
    Limits(NiLimits),
    Frames(u64, u64),
    Eq(EqHandle),
    Me(MeHandle),
    MeAny((PtIndex, MeHandle)),
    Md(MdHandle),
    Update(Option<MemoryDescriptor>, Result<(), PtlError>),
    Fetched(Option<FetchedEvent>),
    Polled(Option<(usize, FetchedEvent)>),
}

/// An interface and the buffers of its node.
pub struct Agent {
    // Dropped first: nothing may arrive in a buffer that was freed.
    interface: NetworkInterface,
    private: Mutex<Vec<Box<[u64]>>>,
}

/// Header data of all events that handlers of this process saw.
static HANDLED: Mutex<Vec<HdrData>> = Mutex::new(Vec::new());

fn handler(event: &PtlEvent) {
    HANDLED.lock().expect("log").push(event.hdr_data);
}

impl Agent {
    pub(super) fn new(interface: NetworkInterface) -> Agent {
        Agent { interface, private: Mutex::default() }
    }

    pub(super) fn interface(&self) -> &NetworkInterface {
        &self.interface
    }

    pub(super) fn serve(
        &self,
        call: AgentCall,
        payload: &[u8],
    ) -> Result<(AgentAnswer, Vec<u8>), PtlError> {
        let ni = &self.interface;
        let answer = match call {
            AgentCall::Id => AgentAnswer::Id(ni.id()),
            AgentCall::UserJob => AgentAnswer::UserJob(ni.uid(), ni.jid()),
            AgentCall::Limits => AgentAnswer::Limits(ni.limits()),
            AgentCall::Status(register) => AgentAnswer::Number(ni.status(register)),
            AgentCall::Distance(id) => AgentAnswer::Number(ni.distance(id)?),
            AgentCall::Frames => {
                let counters = ni.counters();
                AgentAnswer::Frames(counters.frames_sent, counters.frames_taken)
            }
            AgentCall::Progress => {
                ni.progress();
                AgentAnswer::Unit(())
            }
            AgentCall::Handled(mark) => {
                let log = HANDLED.lock().expect("log");
                AgentAnswer::Number(
                    log.iter().filter(|hdr| **hdr >> 32 == mark >> 32).count() as u64
                )
            }
            AgentCall::Memory { kind, len } => AgentAnswer::Address(self.memory(kind, len)?),
            AgentCall::Write { address } => {
                // SAFETY: tests write within buffers that this agent gave them, never while a
                // delivery may.
                unsafe {
                    core::ptr::copy_nonoverlapping(
                        payload.as_ptr(),
                        address as *mut u8,
                        payload.len(),
                    )
                };
                AgentAnswer::Unit(())
            }
            AgentCall::Read { address, len } => {
                let mut bytes = vec![0; len];
                // SAFETY: tests read within buffers that this agent gave them.
                unsafe {
                    core::ptr::copy_nonoverlapping(address as *const u8, bytes.as_mut_ptr(), len)
                };
                return Ok((AgentAnswer::Unit(()), bytes));
            }
            AgentCall::EqAlloc { count, handler: wanted } => AgentAnswer::Eq(
                ni.eq_alloc(count, wanted.then_some(handler as portals3::EqHandler))?,
            ),
            AgentCall::EqFree(eq) => AgentAnswer::Unit(ni.eq_free(eq)?),
            AgentCall::EqGet(eq) => AgentAnswer::Fetched(ni.eq_get(eq)?),
            AgentCall::EqWait(eq) => AgentAnswer::Fetched(Some(ni.eq_wait(eq)?)),
            AgentCall::EqPoll { eqs, len, timeout_ms } => {
                AgentAnswer::Polled(ni.eq_poll(&eqs[..len], timeout_ms)?)
            }
            AgentCall::MeAttach { pt, id, bits, ignore, unlink, pos } => {
                AgentAnswer::Me(ni.me_attach(pt, id, bits, ignore, unlink, pos)?)
            }
            AgentCall::MeAttachAny { id, bits, ignore, unlink } => {
                AgentAnswer::MeAny(ni.me_attach_any(id, bits, ignore, unlink)?)
            }
            AgentCall::MeInsert { base, id, bits, ignore, unlink, pos } => {
                AgentAnswer::Me(ni.me_insert(base, id, bits, ignore, unlink, pos)?)
            }
            AgentCall::MeUnlink(me) => AgentAnswer::Unit(ni.me_unlink(me)?),
            AgentCall::MdAttach { me, md, unlink } => {
                // SAFETY: the buffers of a node live as long as its agent, whose interface is
                // dropped first.
                let made = unsafe { ni.md_attach(me, &md, unlink) };
                AgentAnswer::Md(made?)
            }
            AgentCall::MdBind { md, unlink } => {
                // SAFETY: as above.
                let made = unsafe { ni.md_bind(&md, unlink) };
                AgentAnswer::Md(made?)
            }
            AgentCall::MdUnlink(md) => AgentAnswer::Unit(ni.md_unlink(md)?),
            AgentCall::MdUpdate { md, read, new, test } => {
                let mut old = MemoryDescriptor {
                    start: core::ptr::null_mut(),
                    length: 0,
                    threshold: 0,
                    max_size: 0,
                    options: 0,
                    user_ptr: core::ptr::null_mut(),
                    eq: EqHandle::NONE,
                };
                // SAFETY: as above.
                let result =
                    unsafe { ni.md_update(md, read.then_some(&mut old), new.as_ref(), test) };
                AgentAnswer::Update(read.then_some(old), result)
            }
            AgentCall::AcEntry { index, id, uid, jid, pt } => {
                AgentAnswer::Unit(ni.ac_entry(index, id, uid, jid, pt)?)
            }
            AgentCall::Put { md, part, ack, to, hdr } => {
                AgentAnswer::Unit(put(ni, md, part, ack, to, hdr)?)
            }
            AgentCall::Get { md, part: None, to } => {
                AgentAnswer::Unit(ni.get(md, to.id, to.pt, to.ac, to.bits, to.offset)?)
            }
            AgentCall::Get { md, part: Some((offset, length)), to } => AgentAnswer::Unit(
                ni.get_region(md, offset, length, to.id, to.pt, to.ac, to.bits, to.offset)?,
            ),
            AgentCall::GetPut { get, put, to, hdr } => AgentAnswer::Unit(
                ni.get_put(get, put, to.id, to.pt, to.ac, to.bits, to.offset, hdr)?,
            ),
            AgentCall::PutMany { md, at_once, ack, to, hdr, count } => {
                for hdr in hdr..hdr + count {
                    let done = at_once.map_or(Ok(false), |from| put_at_once(ni, from, to, hdr))?;
                    if !done {
                        put(ni, md, None, ack, to, hdr)?;
                    }
                }
                AgentAnswer::Number(count)
            }
            AgentCall::GetMany { md, at_once, to, count } => {
                for _ in 0..count {
                    if !at_once.map_or(Ok(false), |into| get_at_once(ni, into, to))? {
                        ni.get(md, to.id, to.pt, to.ac, to.bits, to.offset)?;
                    }
                }
                AgentAnswer::Number(count)
            }
            AgentCall::Churn { me, md, count } => AgentAnswer::Number(churn(ni, me, &md, count)?),
            AgentCall::SwapMany { swap, first, count } => {
                AgentAnswer::Number(swap_many(ni, swap, first, count)?)
            }
            AgentCall::TakeMany { eq, count } => AgentAnswer::Number(take_many(ni, eq, count)?),
        };
        Ok((answer, Vec::new()))
    }

    fn memory(&self, kind: AgentMemory, len: usize) -> Result<usize, PtlError> {
        match kind {
            AgentMemory::Arena => self
                .interface
                .alloc(len.max(1), 64)
                .map(|p| p.as_ptr() as usize)
                .ok_or(PtlError::NoSpace),
            AgentMemory::Private => {
                let mut words = vec![0_u64; len.div_ceil(8).max(1)].into_boxed_slice();
                let address = words.as_mut_ptr() as usize;
                self.private.lock().expect("private memory").push(words);
                Ok(address)
            }
        }
    }
}

fn put(
    ni: &NetworkInterface,
    md: MdHandle,
    part: Option<(Size, Size)>,
    ack: AckReq,
    to: To,
    hdr: HdrData,
) -> Result<(), PtlError> {
    match part {
        None => ni.put(md, ack, to.id, to.pt, to.ac, to.bits, to.offset, hdr),
        Some((offset, length)) => {
            ni.put_region(md, offset, length, ack, to.id, to.pt, to.ac, to.bits, to.offset, hdr)
        }
    }
}

fn put_at_once(
    ni: &NetworkInterface,
    from: NodeBuffer,
    to: To,
    hdr: HdrData,
) -> Result<bool, PtlError> {
    let piece = MdIovec { base: from.start(), len: from.len as Size };
    // SAFETY: a buffer of this node, which lives as long as its agent.
    let put = unsafe { ni.put_at_once([piece], to.id, to.pt, to.ac, to.bits, to.offset, hdr) };
    put.map(|accepted| accepted.is_some())
}

fn get_at_once(ni: &NetworkInterface, into: NodeBuffer, to: To) -> Result<bool, PtlError> {
    let (first, length) = (into.start().cast(), into.len as Size);
    // SAFETY: as above; the test reads it after the call.
    let got = unsafe { ni.get_at_once(first, length, to.id, to.pt, to.ac, to.bits, to.offset) };
    got.map(|accepted| accepted.is_some())
}

fn swap_many(ni: &NetworkInterface, swap: Swap, first: u64, count: u64) -> Result<u64, PtlError> {
    let (put, get) = (swap.put_address as *mut u64, swap.get_address as *const u64);
    let mut sum = 0_u64;
    for value in first..first + count {
        // SAFETY: an 8-byte buffer of this node that only this call uses; no operation is in
        // progress.
        unsafe { put.write_volatile(value) };
        let to = swap.to;
        ni.get_put(swap.get, swap.put, to.id, to.pt, to.ac, to.bits, to.offset, 0)?;
        while ni.eq_wait(swap.eq)?.event.kind != PtlEventKind::ReplyEnd {}
        // SAFETY: as above; the reply has arrived.
        sum = sum.wrapping_add(unsafe { get.read_volatile() });
    }
    Ok(sum)
}

/// Attaches and unlinks a descriptor repeatedly; it ends attached.
fn churn(
    ni: &NetworkInterface,
    me: MeHandle,
    md: &MemoryDescriptor,
    count: u64,
) -> Result<u64, PtlError> {
    for _ in 0..count {
        // SAFETY: as for `AgentCall::MdAttach`.
        let handle = unsafe { ni.md_attach(me, md, Unlink::Retain) }?;
        while ni.md_unlink(handle) == Err(PtlError::MdInUse) {
            std::thread::yield_now();
        }
    }
    // SAFETY: as above.
    unsafe { ni.md_attach(me, md, Unlink::Retain) }?;
    Ok(count)
}

fn take_many(ni: &NetworkInterface, eq: EqHandle, count: u64) -> Result<u64, PtlError> {
    let mut next: Vec<(PtlProcessId, u64, u64)> = Vec::new();
    let (mut taken, mut lost) = (0, 0);
    while taken + lost < count {
        let FetchedEvent { event, dropped } = ni.eq_wait(eq)?;
        if event.kind != PtlEventKind::PutEnd {
            continue;
        }
        let (stream, number) = (event.hdr_data >> 32, event.hdr_data & 0xffff_ffff);
        let known = next.iter().position(|n| n.0 == event.initiator && n.1 == stream);
        let at = known.unwrap_or_else(|| {
            next.push((event.initiator, stream, 0));
            next.len() - 1
        });
        let due = next[at].2;
        assert!(
            number == due || (dropped && number > due),
            "event {number} of {:?}, due was {due}",
            event.initiator
        );
        lost += number - due;
        next[at].2 = number + 1;
        taken += 1;
    }
    Ok(lost)
}

/// Not a test of its own: a process that was started as a node serves here.
#[test]
fn serves_a_node() {
    super::process::serve_if_asked();
}
