//! A second implementation of the Portals trait, for tests: one lock around everything, and as
//! much delay and disorder as the specification permits.
//!
//! Messages match in the order in which they were sent. After that, the bytes of each arrive,
//! its END event is posted, and its ACK and SEND events return. A seeded generator chooses the
//! times of these steps. So those of different messages overtake each other. Only an UNLINK
//! event waits for the END events of its descriptor. At odd seeds REPLY events have no match
//! bits, which the specification does not permit, but some libraries do. Such processes have a
//! [`Direct`] path to each other, which only puts bytes into events.

use crate::conduit::portals::{
    Direct, EntryPosition, EqResult, InlineBody, MdEvent, MdEventKind, MdPart, MdSpec, Portals,
    PortalsError, PortalsId, SharedHost, Target, TrafficCounters,
};
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use sys::peer::Peer;

/// Handles are numbers that are never used twice.
type Handle = u32;

struct Me {
    handle: Handle,
    match_bits: u64,
    ignore_bits: u64,
    unlink: bool,
    md: Option<Handle>,
}

struct Md {
    /// Without its queue, which is `eq`.
    spec: MdSpec<'static, Handle>,
    eq: Option<Handle>,
    cursor: usize,
    unlink: bool,
    inactive: bool,
    pending: u32,
}

impl Md {
    fn new(spec: &MdSpec<'_, Handle>, unlink: bool) -> Md {
        let MdSpec { region, max_size, flags, user, eq } = *spec;
        let spec = MdSpec { region, max_size, flags, user, eq: None };
        Md { spec, eq: eq.copied(), cursor: 0, unlink, inactive: false, pending: 0 }
    }
}

#[derive(Default)]
struct Eq {
    size: usize,
    events: VecDeque<(MdEvent, InlineBody)>,
    lost: bool,
}

#[derive(Default)]
struct Process {
    lists: HashMap<u32, Vec<Me>>,
    mds: HashMap<Handle, Md>,
    eqs: HashMap<Handle, Eq>,
    puts: u64,
    /// Bytes that travelled in events.
    inline: u64,
    dropped: u64,
}

/// Something that will happen.
enum Later {
    /// Bytes arrive at a target, with the event of their end and the acknowledgement.
    Arrive {
        target: usize,
        md: Handle,
        to: usize,
        bytes: Vec<u8>,
        event: MdEvent,
        ack: Option<(usize, Handle, MdEvent)>,
    },
    /// Bytes of a get are read at their source, which an event then says; a reply goes back.
    Read {
        target: usize,
        md: Handle,
        from: usize,
        event: MdEvent,
        reply: (usize, Handle, usize, MdEvent),
    },
    /// Bytes arrive where a get wants them.
    Reply { process: usize, md: Handle, to: usize, bytes: Vec<u8>, event: MdEvent },
    /// An event, with what travels in it.
    Post { process: usize, md: Handle, event: MdEvent, inline: InlineBody },
}

struct Net {
    processes: Vec<Process>,
    later: Vec<Later>,
    /// The put after this many others stops when it has matched.
    hold: Option<u32>,
    held: Option<Later>,
    next: Handle,
    dice: u64,
    /// One in this many looks at a queue lets something happen.
    laziness: u64,
}

/// One process's interface.
pub(in crate::conduit) struct Fake {
    net: Arc<Mutex<Net>>,
    me: usize,
    echoes: bool,
}

/// Interfaces of a fresh net. With `laziness` 0 everything happens at once.
pub(in crate::conduit) fn net(processes: usize, laziness: u64, seed: u64) -> Vec<Fake> {
    let net = Net {
        processes: (0..processes).map(|_| Process::default()).collect(),
        later: Vec::new(),
        hold: None,
        held: None,
        next: 1,
        dice: seed * 2 + 1,
        laziness,
    };
    let net = Arc::new(Mutex::new(net));
    let echoes = laziness == 0 || seed.is_multiple_of(2);
    (0..processes).map(|me| Fake { net: net.clone(), me, echoes }).collect()
}

impl Net {
    fn roll(&mut self, n: u64) -> u64 {
        self.dice ^= self.dice << 13;
        self.dice ^= self.dice >> 7;
        self.dice ^= self.dice << 17;
        self.dice % n
    }

    fn handle(&mut self) -> Handle {
        self.next += 1;
        self.next
    }

    /// Lets things happen.
    fn step(&mut self) {
        if self.laziness == 0 {
            while !self.later.is_empty() {
                let next = self.later.remove(0);
                self.happen(next);
            }
        } else if self.roll(self.laziness) == 0 {
            for _ in 0..self.later.len().min(4) {
                let i = self.roll(self.later.len() as u64) as usize;
                let next = self.later.swap_remove(i);
                self.happen(next);
            }
        }
    }

    fn happen(&mut self, next: Later) {
        match next {
            Later::Arrive { target, md, to, bytes, event, ack } => {
                // SAFETY: the owner of the descriptor vouched for its memory.
                unsafe { std::ptr::copy(bytes.as_ptr(), to as *mut u8, bytes.len()) };
                self.finish(target, md, event);
                if let Some((process, md, event)) = ack {
                    self.later.push(Later::Post { process, md, event, inline: [0; 4] });
                }
            }
            Later::Read { target, md, from, event, reply: (process, own, to, reply) } => {
                let mut bytes = vec![0; event.mlength.data()];
                // SAFETY: as above. A descriptor without bytes has no address.
                unsafe { std::ptr::copy(from as *const u8, bytes.as_mut_ptr(), bytes.len()) };
                self.finish(target, md, event);
                self.later.push(Later::Reply { process, md: own, to, bytes, event: reply });
            }
            Later::Reply { process, md, to, bytes, event } => {
                // SAFETY: as above.
                unsafe { std::ptr::copy(bytes.as_ptr(), to as *mut u8, bytes.len()) };
                self.finish(process, md, event);
            }
            Later::Post { process, md, event, inline } => {
                self.finish_inline(process, md, event, inline)
            }
        }
    }

    fn finish(&mut self, process: usize, md: Handle, event: MdEvent) {
        self.finish_inline(process, md, event, [0; 4]);
    }

    /// Posts the event of an operation on a descriptor, which is then no longer pending.
    fn finish_inline(&mut self, process: usize, md: Handle, event: MdEvent, inline: InlineBody) {
        let p = &mut self.processes[process];
        let m = p
            .mds
            .get_mut(&md)
            .expect("a descriptor with an operation pending has not been unlinked");
        m.pending -= 1;
        if !m.spec.flags.event_end_disable {
            post(&mut p.eqs, m.eq, (event, inline));
        }
        if m.inactive && m.unlink && m.pending == 0 {
            post(&mut p.eqs, m.eq, (MdEvent { kind: MdEventKind::Unlink, ..event }, [0; 4]));
            p.mds.remove(&md);
        }
    }

    /// Finds the descriptor for a message, and where in it the bytes go.
    fn accept(
        &mut self,
        target: usize,
        pt: u32,
        bits: u64,
        put: bool,
        n: usize,
        remote: usize,
    ) -> Option<(Handle, usize, usize)> {
        let p = &mut self.processes[target];
        let list = p.lists.get_mut(&pt)?;
        let mut found = None;
        for (i, me) in list.iter().enumerate() {
            let Some(h) = me.md else { continue };
            let md = p.mds.get_mut(&h).expect("an attached descriptor exists");
            let f = md.spec.flags;
            if (me.match_bits ^ bits) & !me.ignore_bits != 0
                || md.inactive
                || !(if put { f.op_put } else { f.op_get })
            {
                continue;
            }
            let offset = if f.manage_remote { remote } else { md.cursor };
            let room = md.spec.region.bytes().saturating_sub(offset);
            if offset > md.spec.region.bytes() || (n > room && !f.truncate) {
                continue;
            }
            let n = n.min(room);
            md.pending += 1;
            md.cursor += if f.manage_remote { 0 } else { n };
            if md.spec.max_size.is_some_and(|max| md.spec.region.bytes() - md.cursor < max) {
                md.inactive = true;
            }
            found = Some((i, h, offset, n, md.inactive && me.unlink));
            break;
        }
        let Some((i, h, offset, n, gone)) = found else {
            p.dropped += 1;
            return None;
        };
        if gone {
            list.remove(i);
        }
        Some((h, offset, n))
    }
}

fn post(eqs: &mut HashMap<Handle, Eq>, eq: Option<Handle>, event: (MdEvent, InlineBody)) {
    let Some(eq) = eq else { return };
    let q = eqs.get_mut(&eq).expect("queues are not freed");
    if q.events.len() == q.size {
        q.lost = true;
    } else {
        q.events.push_back(event);
    }
}

impl Fake {
    /// After `others` more puts of any process, the next one stops in the middle: it has matched,
    /// and nothing more happens.
    pub(super) fn hold_after(&self, others: u32) {
        self.net.lock().unwrap().hold = Some(others);
    }

    /// Portal table entries that a process has anything attached to.
    pub(super) fn portal_table(&self) -> Vec<u32> {
        let net = self.net.lock().unwrap();
        let mut all: Vec<u32> = net.processes[self.me].lists.keys().copied().collect();
        all.sort_unstable();
        all
    }

    /// The put that stopped goes on.
    pub(super) fn release(&self) {
        let mut net = self.net.lock().unwrap();
        let held = net.held.take().expect("a put was held");
        net.later.push(held);
    }

    fn event(
        kind: MdEventKind,
        spec: &MdSpec<'_, Handle>,
        offset: usize,
        mlength: usize,
        of: &MdEvent,
    ) -> MdEvent {
        MdEvent {
            kind,
            user: spec.user,
            start: spec.region.start().addr(),
            offset: Peer::new(offset),
            mlength: Peer::new(mlength),
            ..*of
        }
    }
}

impl Portals for Fake {
    type Eq = Handle;
    type Me = Handle;
    type Md = Handle;
    type Direct = Fake;

    fn id(&self) -> PortalsId {
        PortalsId { nid: 7, pid: self.me as u32 + 100 }
    }

    fn eq_alloc(&self, count: usize) -> Result<Handle, PortalsError> {
        let mut net = self.net.lock().unwrap();
        let h = net.handle();
        net.processes[self.me].eqs.insert(h, Eq { size: count, ..Eq::default() });
        Ok(h)
    }

    fn eq_free(&self, _: Handle) -> Result<(), PortalsError> {
        Ok(())
    }

    fn eq_get(&self, eq: &Handle, inline: &mut InlineBody) -> Result<EqResult, PortalsError> {
        let mut net = self.net.lock().unwrap();
        net.step();
        let q = net.processes[self.me].eqs.get_mut(eq).unwrap();
        Ok(match q.events.pop_front() {
            None => EqResult::Empty,
            Some((e, bytes)) => {
                *inline = bytes;
                if std::mem::take(&mut q.lost) {
                    EqResult::AfterLoss(e)
                } else {
                    EqResult::Event(e)
                }
            }
        })
    }

    fn me_attach(
        &self,
        place: EntryPosition<Handle>,
        match_bits: u64,
        ignore_bits: u64,
        unlink: bool,
    ) -> Result<Handle, PortalsError> {
        let mut net = self.net.lock().unwrap();
        let handle = net.handle();
        let me = Me { handle, match_bits, ignore_bits, unlink, md: None };
        let lists = &mut net.processes[self.me].lists;
        match place {
            EntryPosition::Head(pt) => lists.entry(pt).or_default().insert(0, me),
            EntryPosition::Tail(pt) => lists.entry(pt).or_default().push(me),
            EntryPosition::Before(base) => {
                let list =
                    lists.values_mut().find(|l| l.iter().any(|m| m.handle == base)).unwrap();
                let i = list.iter().position(|m| m.handle == base).unwrap();
                list.insert(i, me);
            }
        }
        Ok(handle)
    }

    fn me_unlink(&self, me: Handle) -> Result<(), PortalsError> {
        let mut net = self.net.lock().unwrap();
        net.processes[self.me].lists.values_mut().for_each(|l| l.retain(|m| m.handle != me));
        Ok(())
    }

    fn md_attach(
        &self,
        me: Handle,
        spec: &MdSpec<'_, Handle>,
        unlink: bool,
    ) -> Result<Handle, PortalsError> {
        let mut net = self.net.lock().unwrap();
        let h = net.handle();
        let p = &mut net.processes[self.me];
        p.mds.insert(h, Md::new(spec, unlink));
        let me = p.lists.values_mut().flatten().find(|m| m.handle == me).unwrap();
        assert!(me.md.replace(h).is_none());
        Ok(h)
    }

    fn md_bind(&self, spec: &MdSpec<'_, Handle>) -> Result<Handle, PortalsError> {
        let mut net = self.net.lock().unwrap();
        let h = net.handle();
        net.processes[self.me].mds.insert(h, Md::new(spec, false));
        Ok(h)
    }

    fn md_try_unlink(&self, md: Handle) -> Result<(), PortalsError> {
        let mut net = self.net.lock().unwrap();
        let mds = &mut net.processes[self.me].mds;
        if mds.get(&md).is_some_and(|m| m.pending != 0) {
            return Err(PortalsError { call: "PtlMDUnlink", code: "PTL_MD_IN_USE" });
        }
        mds.remove(&md);
        Ok(())
    }

    fn put(&self, from: MdPart<Handle>, ack: bool, to: &Target) -> Result<(), PortalsError> {
        let MdPart { md, offset: local_offset, len: length } = from;
        let Target { process: target, portal, bits, offset: remote_offset, hdr_data } = *to;
        let mut net = self.net.lock().unwrap();
        net.processes[self.me].puts += 1;
        let source = net.processes[self.me].mds[&md].spec;
        assert!(local_offset + length <= source.region.bytes());
        let from = source.region.start().wrapping_add(local_offset);
        let base = MdEvent {
            kind: MdEventKind::Other,
            user: 0,
            match_bits: bits,
            hdr_data,
            start: 0,
            offset: Peer::new(0),
            mlength: Peer::new(length),
            inline: false,
        };
        net.processes[self.me].mds.get_mut(&md).unwrap().pending += 1;
        let sent = Self::event(MdEventKind::SendEnd, &source, local_offset, length, &base);
        let to = (target.pid - 100) as usize;
        if let Some((h, offset, n)) = net.accept(to, portal, bits, true, length, remote_offset) {
            let mut bytes = vec![0; n];
            // SAFETY: the caller keeps the source until the SEND event, which comes later.
            unsafe { std::ptr::copy_nonoverlapping(from, bytes.as_mut_ptr(), n) };
            let spec = net.processes[to].mds[&h].spec;
            let event = Self::event(MdEventKind::PutEnd, &spec, offset, n, &base);
            let ack = (ack && !spec.flags.ack_disable).then(|| {
                net.processes[self.me].mds.get_mut(&md).unwrap().pending += 1;
                let event = Self::event(MdEventKind::Ack, &source, local_offset, n, &base);
                (self.me, md, event)
            });
            let to_address = spec.region.start().addr() + offset;
            let arrive = Later::Arrive { target: to, md: h, to: to_address, bytes, event, ack };
            match net.hold {
                Some(0) => (net.hold, net.held) = (None, Some(arrive)),
                others => {
                    net.hold = others.map(|n| n - 1);
                    net.later.push(arrive);
                }
            }
        }
        net.later.push(Later::Post { process: self.me, md, event: sent, inline: [0; 4] });
        net.step();
        Ok(())
    }

    fn get(&self, to: MdPart<Handle>, from: &Target) -> Result<(), PortalsError> {
        let MdPart { md, offset: local_offset, len: length } = to;
        let Target { process: target, portal, bits, offset: remote_offset, .. } = *from;
        let mut net = self.net.lock().unwrap();
        let Md { spec: own, eq: own_eq, .. } = net.processes[self.me].mds[&md];
        assert!(local_offset + length <= own.region.bytes());
        let base = MdEvent {
            kind: MdEventKind::Other,
            user: 0,
            match_bits: bits,
            hdr_data: 0,
            start: 0,
            offset: Peer::new(0),
            mlength: Peer::new(length),
            inline: false,
        };
        let to = (target.pid - 100) as usize;
        if let Some((h, offset, n)) = net.accept(to, portal, bits, false, length, remote_offset) {
            let spec = net.processes[to].mds[&h].spec;
            let event = Self::event(MdEventKind::GetEnd, &spec, offset, n, &base);
            let reply = Self::event(MdEventKind::ReplyEnd, &own, local_offset, n, &base);
            let match_bits = if self.echoes { bits } else { 0 };
            let reply = MdEvent { match_bits, ..reply };
            // As on Cray, a get posts a SEND event too.
            let sent = Self::event(MdEventKind::SendEnd, &own, local_offset, n, &base);
            post(&mut net.processes[self.me].eqs, own_eq, (sent, [0; 4]));
            net.processes[self.me].mds.get_mut(&md).unwrap().pending += 1;
            let into = own.region.start().addr() + local_offset;
            let from = spec.region.start().addr() + offset;
            net.later.push(Later::Read {
                target: to,
                md: h,
                from,
                event,
                reply: (self.me, md, into, reply),
            });
        }
        net.step();
        Ok(())
    }

    fn echoes_match_bits(&self) -> bool {
        self.echoes
    }

    fn counters(&self) -> TrafficCounters {
        let p = &self.net.lock().unwrap().processes[self.me];
        TrafficCounters {
            puts: p.puts,
            bytes: p.inline,
            dropped: p.dropped,
            ..TrafficCounters::default()
        }
    }

    fn direct(&self, _: PortalsId) -> Option<&Fake> {
        (!self.echoes).then_some(self)
    }

    fn direct_to_self(&self) -> Option<&Fake> {
        None
    }

    fn shared_host(&self) -> Option<&dyn SharedHost> {
        None
    }
}

impl Direct for Fake {
    type Eq = Handle;

    fn put_inline(&self, inline: &InlineBody, to: &Target) -> bool {
        let mut net = self.net.lock().unwrap();
        let target = (to.process.pid - 100) as usize;
        let Some((md, ..)) = net.accept(target, to.portal, to.bits, true, 0, 0) else {
            net.processes[target].dropped -= 1;
            return false;
        };
        let process = &mut net.processes[self.me];
        (process.puts, process.inline) =
            (process.puts + 1, process.inline + size_of_val(inline) as u64);
        let Md { spec, eq, .. } = net.processes[target].mds[&md];
        assert!(spec.flags.manage_remote && eq.is_some());
        let event = MdEvent {
            kind: MdEventKind::PutEnd,
            user: spec.user,
            match_bits: to.bits,
            hdr_data: to.hdr_data,
            start: spec.region.start().addr(),
            offset: Peer::new(0),
            mlength: Peer::new(0),
            inline: true,
        };
        net.later.push(Later::Post { process: target, md, event, inline: *inline });
        net.step();
        true
    }
}
