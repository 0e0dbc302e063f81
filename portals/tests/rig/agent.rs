//! The agent of a node: carries out calls on one interface, in whichever process that is.
//!
//! It owns the node's buffers, which live until the agent goes, so that a descriptor never outlives its memory.

use std::sync::Mutex;

use portals3::{
    AcIndex, AckReq, EqHandle, Error, Event, EventKind, Fetched, HdrData, InsPos, Interface, Jid,
    Limits, MatchBits, Md, MdHandle, MdIovec, MeHandle, ProcessId, PtIndex, Size, StatusRegister,
    Uid, Unlink,
};

use super::{Buffer, To};

/// Most queues that one `PtlEQPoll` of a test names.
pub const MAX_POLL: usize = 4;

/// Kinds of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Memory {
    /// The library's own, where peers can reach it.
    Arena,
    /// The process's own.
    Private,
}

/// What a node is told to do; addresses are those of its process.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "the fields are the arguments of the specification's calls")]
pub enum Call {
    Id,
    UserJob,
    Limits,
    Status(StatusRegister),
    Distance(ProcessId),
    Frames,
    Progress,
    Handled(HdrData),
    Memory {
        kind: Memory,
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
        id: ProcessId,
        bits: MatchBits,
        ignore: MatchBits,
        unlink: Unlink,
        pos: InsPos,
    },
    MeAttachAny {
        id: ProcessId,
        bits: MatchBits,
        ignore: MatchBits,
        unlink: Unlink,
    },
    MeInsert {
        base: MeHandle,
        id: ProcessId,
        bits: MatchBits,
        ignore: MatchBits,
        unlink: Unlink,
        pos: InsPos,
    },
    MeUnlink(MeHandle),
    MdAttach {
        me: MeHandle,
        md: Md,
        unlink: Unlink,
    },
    MdBind {
        md: Md,
        unlink: Unlink,
    },
    MdUnlink(MdHandle),
    MdUpdate {
        md: MdHandle,
        read: bool,
        new: Option<Md>,
        test: EqHandle,
    },
    AcEntry {
        index: AcIndex,
        id: ProcessId,
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
        at_once: Option<Buffer>,
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
        at_once: Option<Buffer>,
        to: To,
        count: u64,
    },
    Churn {
        me: MeHandle,
        md: Md,
        count: u64,
    },
    TakeMany {
        eq: EqHandle,
        count: u64,
    },
}

/// What [`Call::SwapMany`] works with.
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

/// What came of a call.
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, reason = "the fields are the results of the specification's calls")]
pub enum Answer {
    Unit(()),
    Number(u64),
    Address(usize),
    Id(ProcessId),
    UserJob(Uid, Jid),
    Limits(Limits),
    Frames(u64, u64),
    Eq(EqHandle),
    Me(MeHandle),
    MeAny((PtIndex, MeHandle)),
    Md(MdHandle),
    Update(Option<Md>, Result<(), Error>),
    Fetched(Option<Fetched>),
    Polled(Option<(usize, Fetched)>),
}

/// An interface and the buffers of its node.
pub struct Agent {
    // Dropped first: nothing may arrive in a buffer that is gone.
    interface: Interface,
    private: Mutex<Vec<Box<[u64]>>>,
}

/// Header data of all events that handlers of this process saw.
static HANDLED: Mutex<Vec<HdrData>> = Mutex::new(Vec::new());

fn handler(event: &Event) {
    HANDLED.lock().expect("log").push(event.hdr_data);
}

impl Agent {
    pub(super) fn new(interface: Interface) -> Agent {
        Agent { interface, private: Mutex::default() }
    }

    pub(super) fn interface(&self) -> &Interface {
        &self.interface
    }

    pub(super) fn serve(&self, call: Call, payload: &[u8]) -> Result<(Answer, Vec<u8>), Error> {
        let ni = &self.interface;
        let answer = match call {
            Call::Id => Answer::Id(ni.id()),
            Call::UserJob => Answer::UserJob(ni.uid(), ni.jid()),
            Call::Limits => Answer::Limits(ni.limits()),
            Call::Status(register) => Answer::Number(ni.status(register)),
            Call::Distance(id) => Answer::Number(ni.distance(id)?),
            Call::Frames => {
                let counters = ni.counters();
                Answer::Frames(counters.frames_sent, counters.frames_taken)
            }
            Call::Progress => {
                ni.progress();
                Answer::Unit(())
            }
            Call::Handled(mark) => {
                let log = HANDLED.lock().expect("log");
                Answer::Number(log.iter().filter(|hdr| **hdr >> 32 == mark >> 32).count() as u64)
            }
            Call::Memory { kind, len } => Answer::Address(self.memory(kind, len)?),
            Call::Write { address } => {
                // SAFETY: tests write within buffers that this agent gave them, never while a delivery may.
                unsafe {
                    core::ptr::copy_nonoverlapping(
                        payload.as_ptr(),
                        address as *mut u8,
                        payload.len(),
                    )
                };
                Answer::Unit(())
            }
            Call::Read { address, len } => {
                let mut bytes = vec![0; len];
                // SAFETY: tests read within buffers that this agent gave them.
                unsafe {
                    core::ptr::copy_nonoverlapping(address as *const u8, bytes.as_mut_ptr(), len)
                };
                return Ok((Answer::Unit(()), bytes));
            }
            Call::EqAlloc { count, handler: wanted } => {
                Answer::Eq(ni.eq_alloc(count, wanted.then_some(handler as portals3::EqHandler))?)
            }
            Call::EqFree(eq) => Answer::Unit(ni.eq_free(eq)?),
            Call::EqGet(eq) => Answer::Fetched(ni.eq_get(eq)?),
            Call::EqWait(eq) => Answer::Fetched(Some(ni.eq_wait(eq)?)),
            Call::EqPoll { eqs, len, timeout_ms } => {
                Answer::Polled(ni.eq_poll(&eqs[..len], timeout_ms)?)
            }
            Call::MeAttach { pt, id, bits, ignore, unlink, pos } => {
                Answer::Me(ni.me_attach(pt, id, bits, ignore, unlink, pos)?)
            }
            Call::MeAttachAny { id, bits, ignore, unlink } => {
                Answer::MeAny(ni.me_attach_any(id, bits, ignore, unlink)?)
            }
            Call::MeInsert { base, id, bits, ignore, unlink, pos } => {
                Answer::Me(ni.me_insert(base, id, bits, ignore, unlink, pos)?)
            }
            Call::MeUnlink(me) => Answer::Unit(ni.me_unlink(me)?),
            // SAFETY: the buffers of a node live as long as its agent, and the interface goes first.
            Call::MdAttach { me, md, unlink } => {
                Answer::Md(unsafe { ni.md_attach(me, &md, unlink) }?)
            }
            // SAFETY: as above.
            Call::MdBind { md, unlink } => Answer::Md(unsafe { ni.md_bind(&md, unlink) }?),
            Call::MdUnlink(md) => Answer::Unit(ni.md_unlink(md)?),
            Call::MdUpdate { md, read, new, test } => {
                let mut old = Md {
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
                Answer::Update(read.then_some(old), result)
            }
            Call::AcEntry { index, id, uid, jid, pt } => {
                Answer::Unit(ni.ac_entry(index, id, uid, jid, pt)?)
            }
            Call::Put { md, part, ack, to, hdr } => Answer::Unit(put(ni, md, part, ack, to, hdr)?),
            Call::Get { md, part: None, to } => {
                Answer::Unit(ni.get(md, to.id, to.pt, to.ac, to.bits, to.offset)?)
            }
            Call::Get { md, part: Some((offset, length)), to } => Answer::Unit(
                ni.get_region(md, offset, length, to.id, to.pt, to.ac, to.bits, to.offset)?,
            ),
            Call::GetPut { get, put, to, hdr } => {
                Answer::Unit(ni.get_put(get, put, to.id, to.pt, to.ac, to.bits, to.offset, hdr)?)
            }
            Call::PutMany { md, at_once, ack, to, hdr, count } => {
                for hdr in hdr..hdr + count {
                    let done = at_once.map_or(Ok(false), |from| put_at_once(ni, from, to, hdr))?;
                    if !done {
                        put(ni, md, None, ack, to, hdr)?;
                    }
                }
                Answer::Number(count)
            }
            Call::GetMany { md, at_once, to, count } => {
                for _ in 0..count {
                    if !at_once.map_or(Ok(false), |into| get_at_once(ni, into, to))? {
                        ni.get(md, to.id, to.pt, to.ac, to.bits, to.offset)?;
                    }
                }
                Answer::Number(count)
            }
            Call::Churn { me, md, count } => Answer::Number(churn(ni, me, &md, count)?),
            Call::SwapMany { swap, first, count } => {
                Answer::Number(swap_many(ni, swap, first, count)?)
            }
            Call::TakeMany { eq, count } => Answer::Number(take_many(ni, eq, count)?),
        };
        Ok((answer, Vec::new()))
    }

    fn memory(&self, kind: Memory, len: usize) -> Result<usize, Error> {
        match kind {
            Memory::Arena => self
                .interface
                .alloc(len.max(1), 64)
                .map(|p| p.as_ptr() as usize)
                .ok_or(Error::NoSpace),
            Memory::Private => {
                let mut words = vec![0_u64; len.div_ceil(8).max(1)].into_boxed_slice();
                let address = words.as_mut_ptr() as usize;
                self.private.lock().expect("private memory").push(words);
                Ok(address)
            }
        }
    }
}

fn put(
    ni: &Interface,
    md: MdHandle,
    part: Option<(Size, Size)>,
    ack: AckReq,
    to: To,
    hdr: HdrData,
) -> Result<(), Error> {
    match part {
        None => ni.put(md, ack, to.id, to.pt, to.ac, to.bits, to.offset, hdr),
        Some((offset, length)) => {
            ni.put_region(md, offset, length, ack, to.id, to.pt, to.ac, to.bits, to.offset, hdr)
        }
    }
}

fn put_at_once(ni: &Interface, from: Buffer, to: To, hdr: HdrData) -> Result<bool, Error> {
    let piece = MdIovec { base: from.start(), len: from.len as Size };
    // SAFETY: a buffer of this node, which lives as long as its agent.
    unsafe { ni.put_at_once([piece], to.id, to.pt, to.ac, to.bits, to.offset, hdr) }
}

fn get_at_once(ni: &Interface, into: Buffer, to: To) -> Result<bool, Error> {
    let (first, length) = (into.start().cast(), into.len as Size);
    // SAFETY: as above; who reads it waits for the call.
    unsafe { ni.get_at_once(first, length, to.id, to.pt, to.ac, to.bits, to.offset) }
}

fn swap_many(ni: &Interface, swap: Swap, first: u64, count: u64) -> Result<u64, Error> {
    let (put, get) = (swap.put_address as *mut u64, swap.get_address as *const u64);
    let mut sum = 0_u64;
    for value in first..first + count {
        // SAFETY: an 8-byte buffer of this node that only this call uses; nothing is under way now.
        unsafe { put.write_volatile(value) };
        let to = swap.to;
        ni.get_put(swap.get, swap.put, to.id, to.pt, to.ac, to.bits, to.offset, 0)?;
        while ni.eq_wait(swap.eq)?.event.kind != EventKind::ReplyEnd {}
        // SAFETY: as above; the reply is in.
        sum = sum.wrapping_add(unsafe { get.read_volatile() });
    }
    Ok(sum)
}

/// Attaches and unlinks a descriptor again and again; it ends attached.
fn churn(ni: &Interface, me: MeHandle, md: &Md, count: u64) -> Result<u64, Error> {
    for _ in 0..count {
        // SAFETY: as for `Call::MdAttach`.
        let handle = unsafe { ni.md_attach(me, md, Unlink::Retain) }?;
        while ni.md_unlink(handle) == Err(Error::MdInUse) {
            std::thread::yield_now();
        }
    }
    // SAFETY: as above.
    unsafe { ni.md_attach(me, md, Unlink::Retain) }?;
    Ok(count)
}

fn take_many(ni: &Interface, eq: EqHandle, count: u64) -> Result<u64, Error> {
    let mut next: Vec<(ProcessId, u64, u64)> = Vec::new();
    let (mut taken, mut lost) = (0, 0);
    while taken + lost < count {
        let Fetched { event, dropped } = ni.eq_wait(eq)?;
        if event.kind != EventKind::PutEnd {
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

/// Not a test of its own: this is where a process that was started as a node serves.
#[test]
fn serves_a_node() {
    super::process::serve_if_asked();
}
