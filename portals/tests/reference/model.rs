//! The reference model: the processes of a fabric, one operation at a time.
//!
//! Used by the driver. Plain vectors and loops; its simplicity is the argument for its
//! correctness.

use portals3::md_options::{
    ACK_DISABLE, EVENT_END_DISABLE, EVENT_START_DISABLE, MANAGE_REMOTE, MAX_SIZE, OP_GET, OP_PUT,
    TRUNCATE,
};
use portals3::{InsPos, PtlEventKind, PtlProcessId, Unlink};

/// A memory descriptor.
#[derive(Clone, Debug)]
pub(crate) struct ModelMd {
    pub(crate) bytes: Vec<u8>,
    pub(crate) threshold: i32,
    pub(crate) max_size: usize,
    pub(crate) options: u32,
    pub(crate) eq: Option<usize>,
    pub(crate) unlink: Unlink,
    /// Next byte of a locally managed descriptor.
    pub(crate) cursor: usize,
    pub(crate) inactive: bool,
}

impl ModelMd {
    fn has(&self, option: u32) -> bool {
        self.options & option == option
    }

    /// Offset and length that a message of `length` bytes would get, if it fits.
    fn fit(&self, remote_offset: usize, length: usize) -> Option<(usize, usize)> {
        let offset = if self.has(MANAGE_REMOTE) { remote_offset } else { self.cursor };
        let room = self.bytes.len().checked_sub(offset)?;
        if length <= room {
            Some((offset, length))
        } else if self.has(TRUNCATE) {
            Some((offset, room))
        } else {
            None
        }
    }

    fn count(&mut self) {
        if self.threshold > 0 {
            self.threshold -= 1;
            self.inactive |= self.threshold == 0;
        }
    }
}

/// A match entry.
#[derive(Clone, Debug)]
pub(crate) struct ModelMe {
    pub(crate) pt: u32,
    pub(crate) id: PtlProcessId,
    pub(crate) bits: u64,
    pub(crate) ignore: u64,
    pub(crate) unlink: Unlink,
    pub(crate) md: Option<usize>,
}

/// An event that is due on a queue.
#[derive(Clone, Debug)]
pub(crate) struct Due {
    pub(crate) kind: PtlEventKind,
    /// Number of the operation.
    pub(crate) operation: usize,
    pub(crate) md: usize,
    pub(crate) peer: PtlProcessId,
    pub(crate) bits: u64,
    pub(crate) rlength: usize,
    pub(crate) mlength: usize,
    pub(crate) offset: usize,
    pub(crate) hdr: u64,
    /// How many events of this operation before it in the list must arrive first.
    pub(crate) after: Vec<PtlEventKind>,
    /// Whether it need not arrive.
    pub(crate) optional: bool,
}

/// One process.
#[derive(Clone, Debug, Default)]
pub(crate) struct ModelProcess {
    pub(crate) mes: Vec<Option<ModelMe>>,
    /// Match lists, head first, by portal table index.
    pub(crate) lists: [Vec<usize>; 2],
    pub(crate) mds: Vec<Option<ModelMd>>,
    /// What is due on each queue.
    pub(crate) eqs: Vec<Vec<Due>>,
    /// Least and greatest number of messages dropped.
    pub(crate) drops: (u64, u64),
}

/// The kind of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ModelOpKind {
    Put { ack: bool },
    Get,
    GetPut,
}

/// An operation as its initiator states it.
#[derive(Clone, Debug)]
pub(crate) struct ModelMessage {
    pub(crate) kind: ModelOpKind,
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(crate) pt: u32,
    pub(crate) bits: u64,
    pub(crate) remote_offset: usize,
    pub(crate) local_offset: usize,
    pub(crate) length: usize,
    pub(crate) hdr: u64,
    /// Bytes that come from no descriptor.
    pub(crate) plain: Option<Vec<u8>>,
    /// Descriptor that the bytes come from (put, get-put).
    pub(crate) source: Option<usize>,
    /// Descriptor that the reply goes to (get, get-put).
    pub(crate) sink: Option<usize>,
}

/// All processes.
#[derive(Clone, Debug)]
pub(crate) struct Model {
    pub(crate) processes: Vec<ModelProcess>,
    pub(crate) ids: Vec<PtlProcessId>,
    pub(crate) operations: usize,
}

impl Model {
    /// Attaches an entry at one end of a list, or next to `base`.
    pub(crate) fn me_attach(
        &mut self,
        at: usize,
        me: ModelMe,
        base: Option<usize>,
        pos: InsPos,
    ) -> usize {
        let process = &mut self.processes[at];
        let new = process.mes.len();
        let list = &mut process.lists[me.pt as usize];
        let place = match (base, pos) {
            (None, InsPos::Before) => 0,
            (None, InsPos::After) => list.len(),
            (Some(base), pos) => {
                let base =
                    list.iter().position(|me| *me == base).expect("the base is on the list");
                base + usize::from(pos == InsPos::After)
            }
        };
        list.insert(place, new);
        process.mes.push(Some(me));
        new
    }

    pub(crate) fn me_unlink(&mut self, at: usize, me: usize) {
        let process = &mut self.processes[at];
        if let Some(entry) = process.mes[me].take() {
            process.lists[entry.pt as usize].retain(|other| *other != me);
            if let Some(md) = entry.md {
                process.mds[md] = None;
            }
        }
    }

    pub(crate) fn md_unlink(&mut self, at: usize, md: usize) {
        let process = &mut self.processes[at];
        process.mds[md] = None;
        let owner =
            process.mes.iter().position(|me| me.as_ref().is_some_and(|me| me.md == Some(md)));
        if let Some(me) = owner {
            let entry = process.mes[me].as_mut().expect("found");
            entry.md = None;
            if entry.unlink == Unlink::Unlink {
                self.me_unlink(at, me);
            }
        }
    }

    pub(crate) fn md_add(&mut self, at: usize, md: ModelMd, me: Option<usize>) -> usize {
        let process = &mut self.processes[at];
        process.mds.push(Some(md));
        let new = process.mds.len() - 1;
        if let Some(me) = me {
            process.mes[me].as_mut().expect("an entry").md = Some(new);
        }
        new
    }

    /// The first entry that accepts a message: its descriptor, offset and length.
    fn choose(&self, message: &ModelMessage) -> Option<(usize, usize, usize)> {
        let process = &self.processes[message.to];
        let sender = self.ids[message.from];
        for me in process.lists.get(message.pt as usize)? {
            let me = process.mes[*me].as_ref().expect("on the list");
            let Some(index) = me.md else { continue };
            let md = process.mds[index].as_ref().expect("attached");
            let wanted = match message.kind {
                ModelOpKind::Put { .. } => OP_PUT,
                ModelOpKind::Get => OP_GET,
                ModelOpKind::GetPut => OP_PUT | OP_GET,
            };
            let id = (me.id.nid == portals3::NID_ANY || me.id.nid == sender.nid)
                && (me.id.pid == portals3::PID_ANY || me.id.pid == sender.pid);
            if id
                && (me.bits ^ message.bits) & !me.ignore == 0
                && !md.inactive
                && md.has(wanted)
                && let Some((offset, mlength)) = md.fit(message.remote_offset, message.length)
            {
                return Some((index, offset, mlength));
            }
        }
        None
    }

    /// Posts the events of one side of an operation, counts it, and unlinks its descriptor if it
    /// is used up. `pair` is its START and END, or the same kind twice for an ACK.
    fn log(
        &mut self,
        at: usize,
        due: Due,
        pair: (PtlEventKind, PtlEventKind),
        after: &[PtlEventKind],
    ) {
        let process = &mut self.processes[at];
        let md = process.mds[due.md].as_mut().expect("a descriptor");
        let (no_start, no_end) = (md.has(EVENT_START_DISABLE), md.has(EVENT_END_DISABLE));
        let mut events = Vec::new();
        if pair.0 == pair.1 {
            // Whether an acknowledgement is logged where START and END are disabled is left to
            // the implementation.
            events.push(Due { kind: pair.0, optional: no_start || no_end, ..due.clone() });
        } else {
            if !no_start {
                events.push(Due { kind: pair.0, ..due.clone() });
            }
            if !no_end {
                events.push(Due { kind: pair.1, after: vec![pair.0], ..due.clone() });
            }
        }
        let gone = md.inactive && md.unlink == Unlink::Unlink;
        if gone {
            let after = [&[pair.0, pair.1], after].concat();
            events.push(Due {
                kind: PtlEventKind::Unlink,
                after,
                optional: no_start || no_end,
                ..due.clone()
            });
        }
        if let Some(eq) = md.eq {
            process.eqs[eq].append(&mut events);
        }
        if gone {
            self.md_unlink(at, due.md);
        }
    }

    /// Whether a message would be dropped.
    pub(crate) fn drops(&self, message: &ModelMessage) -> bool {
        self.choose(message).is_none()
    }

    /// Does one operation completely. Returns the bytes that were at its destination before.
    pub(crate) fn run(&mut self, message: &ModelMessage) -> Vec<u8> {
        self.operations += 1;
        let chosen = self.choose(message);
        let of_source = message.source.map(|md| {
            let md = self.processes[message.from].mds[md].as_ref().expect("a source");
            md.bytes[message.local_offset..message.local_offset + message.length].to_vec()
        });
        let sent = message.plain.clone().or(of_source);
        let mut answer = Vec::new();
        let mut acknowledge = false;
        let blank = Due {
            kind: PtlEventKind::PutStart,
            operation: self.operations,
            md: 0,
            peer: self.ids[message.from],
            bits: message.bits,
            rlength: message.length,
            mlength: 0,
            offset: 0,
            hdr: message.hdr,
            after: Vec::new(),
            optional: false,
        };
        if let Some((index, offset, mlength)) = chosen {
            let md = self.processes[message.to].mds[index].as_mut().expect("chosen");
            answer = md.bytes[offset..offset + mlength].to_vec();
            if let Some(sent) = &sent {
                md.bytes[offset..offset + mlength].copy_from_slice(&sent[..mlength]);
            }
            acknowledge = message.kind == (ModelOpKind::Put { ack: true }) && !md.has(ACK_DISABLE);
            if !md.has(MANAGE_REMOTE) {
                md.cursor += mlength;
                md.inactive |= md.has(MAX_SIZE) && md.bytes.len() - md.cursor < md.max_size;
            }
            md.count();
            let pair = match message.kind {
                ModelOpKind::Put { .. } => (PtlEventKind::PutStart, PtlEventKind::PutEnd),
                ModelOpKind::Get => (PtlEventKind::GetStart, PtlEventKind::GetEnd),
                ModelOpKind::GetPut => (PtlEventKind::GetPutStart, PtlEventKind::GetPutEnd),
            };
            self.log(message.to, Due { md: index, mlength, offset, ..blank.clone() }, pair, &[]);
        } else {
            let drops = &mut self.processes[message.to].drops;
            *drops = (drops.0 + 1, drops.1 + 1);
        }
        if let Some(md) = message.source {
            self.processes[message.from].mds[md].as_mut().expect("a source").count();
            let due =
                Due { md, offset: message.local_offset, mlength: message.length, ..blank.clone() };
            self.log(message.from, due, (PtlEventKind::SendStart, PtlEventKind::SendEnd), &[]);
        }
        let peer = self.ids[message.to];
        let (_, offset, mlength) = chosen.unwrap_or_default();
        if acknowledge {
            let index = message.source.expect("a put has a source");
            match &mut self.processes[message.from].mds[index] {
                // None is sent to a descriptor without queue.
                Some(md) if md.eq.is_none() => {}
                Some(md) if !md.inactive => {
                    md.count();
                    let due = Due { md: index, offset, mlength, peer, ..blank.clone() };
                    self.log(
                        message.from,
                        due,
                        (PtlEventKind::Ack, PtlEventKind::Ack),
                        &[PtlEventKind::SendEnd],
                    );
                }
                // Whether it is counted as dropped is left to the implementation.
                _ => self.processes[message.from].drops.1 += 1,
            }
        }
        if let (Some(index), Some(_)) = (message.sink, chosen) {
            match &mut self.processes[message.from].mds[index] {
                Some(md) if !md.inactive => {
                    let into = message.local_offset;
                    md.bytes[into..into + mlength].copy_from_slice(&answer);
                    md.count();
                    let due = Due { md: index, offset: into, mlength, peer, ..blank };
                    self.log(
                        message.from,
                        due,
                        (PtlEventKind::ReplyStart, PtlEventKind::ReplyEnd),
                        &[],
                    );
                }
                _ => unreachable!("the driver gets into active descriptors only"),
            }
        }
        answer
    }
}
