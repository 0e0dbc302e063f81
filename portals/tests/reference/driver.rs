//! Makes operations on the library and on the model, and compares after each.
//!
//! Called by the properties in `main`. Invariant: an operation whose outcome the specification
//! leaves open is not made.

use portals3::{
    AckReq, EqHandle, InsPos, MdHandle, MeHandle, PtlError, PtlEventKind, PtlProcessId, Unlink,
};
use proptest::test_runner::TestCaseError;
use proptest::{prop_assert, prop_assert_eq};

use crate::draw::{DrawnOp, MdDraw, QUEUES};
use crate::model::{self, Model, ModelMe, ModelMessage, ModelProcess};
use crate::rig::{NodeBuffer, Rig, To, pattern};

/// Events that each queue has room for.
const ROOM: usize = 64;
/// Most events that one operation posts to one queue.
const BURST: usize = 12;

/// The library's handles for the model's indices.
pub(crate) struct Names {
    mes: Vec<MeHandle>,
    pub(crate) mds: Vec<(MdHandle, NodeBuffer)>,
    eqs: Vec<EqHandle>,
    pub(crate) sequences: Vec<Option<u32>>,
    /// Sequence of the START of an operation, by queue and END kind.
    pub(crate) starts: Vec<(usize, usize, PtlEventKind, u32)>,
}

pub(crate) struct Driver<'a> {
    pub(crate) rig: &'a Rig,
    pub(crate) model: Model,
    pub(crate) names: Vec<Names>,
    fresh: u64,
}

pub(crate) type PlayResult = Result<(), TestCaseError>;

/// Plays all operations and compares.
pub(crate) fn play(rig: &Rig, ops: &[DrawnOp]) -> PlayResult {
    let processes = rig
        .nodes()
        .iter()
        .map(|_| ModelProcess { eqs: vec![Vec::new(); QUEUES], ..ModelProcess::default() });
    let model = Model {
        processes: processes.collect(),
        ids: rig.nodes().iter().map(|node| node.id()).collect(),
        operations: 0,
    };
    let names = rig.nodes().iter().map(|node| Names {
        mes: Vec::new(),
        mds: Vec::new(),
        eqs: (0..QUEUES).map(|_| node.eq_alloc(ROOM as u64).expect("PtlEQAlloc")).collect(),
        sequences: vec![None; QUEUES],
        starts: Vec::new(),
    });
    let mut driver = Driver { rig, model, names: names.collect(), fresh: 0 };
    for op in ops {
        driver.make_room()?;
        driver.step(op)?;
        driver.compare_memory()?;
    }
    for at in 0..rig.nodes().len() {
        for eq in 0..QUEUES {
            driver.read(at, eq, usize::MAX)?;
        }
    }
    driver.compare_drops()
}

/// The live element that an index stands for.
fn pick<T>(all: &[Option<T>], index: usize, fits: impl Fn(&T) -> bool) -> Option<usize> {
    let live: Vec<_> = (0..all.len()).filter(|at| all[*at].as_ref().is_some_and(&fits)).collect();
    (!live.is_empty()).then(|| live[index % live.len()])
}

impl Driver<'_> {
    fn at(&self, at: usize) -> usize {
        at % self.rig.nodes().len()
    }

    fn describe(
        &mut self,
        at: usize,
        draw: &MdDraw,
    ) -> (model::ModelMd, portals3::MemoryDescriptor, NodeBuffer) {
        self.fresh += 1;
        let bytes = pattern(self.fresh, draw.len);
        let buffer = self.rig.nodes()[at].filled(&bytes);
        let eq = draw.eq.map_or(EqHandle::NONE, |eq| self.names[at].eqs[eq]);
        let theirs = portals3::MemoryDescriptor {
            threshold: draw.threshold,
            max_size: draw.max_size as u64,
            ..crate::rig::md(buffer, draw.options, eq)
        };
        let ours = model::ModelMd {
            bytes,
            threshold: draw.threshold,
            max_size: draw.max_size,
            options: draw.options,
            eq: draw.eq,
            unlink: if draw.unlink { Unlink::Unlink } else { Unlink::Retain },
            cursor: 0,
            inactive: false,
        };
        (ours, theirs, buffer)
    }

    /// A bound descriptor of a process that can serve as a source or sink.
    fn bound(&self, at: usize, index: usize) -> Option<usize> {
        let process = &self.model.processes[at];
        let attached: Vec<_> = process.mes.iter().flatten().filter_map(|me| me.md).collect();
        let free: Vec<Option<usize>> = (0..process.mds.len())
            .map(|md| {
                process.mds[md]
                    .as_ref()
                    .filter(|m| !m.inactive && !attached.contains(&md))
                    .map(|_| md)
            })
            .collect();
        pick(&free, index, |_| true)
    }

    fn step(&mut self, op: &DrawnOp) -> PlayResult {
        match op.clone() {
            DrawnOp::Attach { at, pt, id, bits, ignore, unlink, before, base } => {
                let at = self.at(at);
                let node = &self.rig.nodes()[at];
                let first = self.rig.nodes()[0].id();
                let id = [
                    PtlProcessId::ANY,
                    PtlProcessId { nid: portals3::NID_ANY, ..first },
                    PtlProcessId { pid: portals3::PID_ANY, ..first },
                    self.rig.nodes()[self.rig.nodes().len() - 1].id(),
                ][id];
                let unlink = if unlink { Unlink::Unlink } else { Unlink::Retain };
                let pos = if before { InsPos::Before } else { InsPos::After };
                let base =
                    base.and_then(|base| pick(&self.model.processes[at].mes, base, |_| true));
                let mut me = ModelMe { pt, id, bits, ignore, unlink, md: None };
                let handle = match base {
                    None => node.me_attach(pt, id, bits, ignore, unlink, pos),
                    Some(base) => {
                        me.pt = self.model.processes[at].mes[base].as_ref().expect("picked").pt;
                        node.me_insert(self.names[at].mes[base], id, bits, ignore, unlink, pos)
                    }
                };
                self.names[at]
                    .mes
                    .push(handle.map_err(|e| TestCaseError::fail(format!("{e:?}")))?);
                self.model.me_attach(at, me, base, pos);
            }
            DrawnOp::MdAttach { at, me, md } => {
                let at = self.at(at);
                let Some(me) = pick(&self.model.processes[at].mes, me, |_| true) else {
                    return Ok(());
                };
                let taken =
                    self.model.processes[at].mes[me].as_ref().is_some_and(|me| me.md.is_some());
                let (ours, theirs, buffer) = self.describe(at, &md);
                let result =
                    self.rig.nodes()[at].md_attach(self.names[at].mes[me], theirs, ours.unlink);
                if taken {
                    prop_assert_eq!(result, Err(PtlError::MeInUse));
                } else {
                    self.names[at].mds.push((
                        result.map_err(|e| TestCaseError::fail(format!("{e:?}")))?,
                        buffer,
                    ));
                    self.model.md_add(at, ours, Some(me));
                }
            }
            DrawnOp::MdBind { at, md } => {
                let at = self.at(at);
                let (ours, theirs, buffer) = self.describe(at, &md);
                let result = self.rig.nodes()[at].md_bind(theirs, ours.unlink);
                self.names[at]
                    .mds
                    .push((result.map_err(|e| TestCaseError::fail(format!("{e:?}")))?, buffer));
                self.model.md_add(at, ours, None);
            }
            DrawnOp::MeUnlink { at, me } => {
                let at = self.at(at);
                let process = &self.model.processes[at];
                // The fate of a retained descriptor whose entry is unlinked is left open.
                let goes = |me: &ModelMe| {
                    me.md.is_none_or(|md| {
                        process.mds[md].as_ref().is_some_and(|md| md.unlink == Unlink::Unlink)
                    })
                };
                let Some(me) = pick(&process.mes, me, goes) else { return Ok(()) };
                prop_assert_eq!(self.rig.nodes()[at].me_unlink(self.names[at].mes[me]), Ok(()));
                self.model.me_unlink(at, me);
            }
            DrawnOp::MdUnlink { at, md } => {
                let at = self.at(at);
                // Any that ever existed: handles of removed ones must be refused.
                let count = self.names[at].mds.len();
                if count == 0 {
                    return Ok(());
                }
                let md = md % count;
                let result = self.rig.nodes()[at].md_unlink(self.names[at].mds[md].0);
                if self.model.processes[at].mds[md].is_some() {
                    prop_assert_eq!(result, Ok(()));
                    self.model.md_unlink(at, md);
                } else {
                    prop_assert_eq!(result, Err(PtlError::MdInvalid));
                }
            }
            DrawnOp::MdUpdate { at, md, new, test } => self.update(at, md, new, test)?,
            DrawnOp::Put { at, to, md, part, ack, pt, bits, offset, hdr } => {
                let (at, to) = (self.at(at), self.at(to));
                let Some(md) = self.bound(at, md) else { return Ok(()) };
                let (local_offset, length) = self.part(at, md, part);
                let message = ModelMessage {
                    kind: model::ModelOpKind::Put { ack },
                    from: at,
                    to,
                    pt,
                    bits,
                    remote_offset: offset,
                    local_offset,
                    length,
                    hdr,
                    source: Some(md),
                    sink: None,
                    plain: None,
                };
                let ack = if ack { AckReq::Ack } else { AckReq::NoAck };
                let (local_offset, length) = (local_offset as u64, length as u64);
                let (node, md) = (&self.rig.nodes()[at], self.names[at].mds[md].0);
                let result =
                    node.put_region(md, local_offset, length, ack, self.to(&message), hdr);
                prop_assert_eq!(result, Ok(()));
                self.model.run(&message);
            }
            DrawnOp::Get { at, to, md, part, pt, bits, offset } => {
                let (at, to) = (self.at(at), self.at(to));
                let Some(md) = self.bound(at, md) else { return Ok(()) };
                let (local_offset, length) = self.part(at, md, part);
                let message = ModelMessage {
                    kind: model::ModelOpKind::Get,
                    from: at,
                    to,
                    pt,
                    bits,
                    remote_offset: offset,
                    local_offset,
                    length,
                    hdr: 0,
                    source: None,
                    sink: Some(md),
                    plain: None,
                };
                let (node, md) = (&self.rig.nodes()[at], self.names[at].mds[md].0);
                let result =
                    node.get_region(md, local_offset as u64, length as u64, self.to(&message));
                prop_assert_eq!(result, Ok(()));
                self.model.run(&message);
            }
            DrawnOp::GetPut { at, to, get, put, pt, bits, offset, hdr } => {
                let (at, to) = (self.at(at), self.at(to));
                let (Some(get), Some(put)) = (self.bound(at, get), self.bound(at, put)) else {
                    return Ok(());
                };
                let length = |md: usize| {
                    self.model.processes[at].mds[md].as_ref().expect("bound").bytes.len()
                };
                // The meaning of differing lengths is left open.
                if get == put || length(get) != length(put) || length(get) > 64 {
                    return Ok(());
                }
                let message = ModelMessage {
                    kind: model::ModelOpKind::GetPut,
                    from: at,
                    to,
                    pt,
                    bits,
                    remote_offset: offset,
                    local_offset: 0,
                    length: length(get),
                    hdr,
                    source: Some(put),
                    sink: Some(get),
                    plain: None,
                };
                let (into, from) = (self.names[at].mds[get].0, self.names[at].mds[put].0);
                let result = self.rig.nodes()[at].get_put(into, from, self.to(&message), hdr);
                prop_assert_eq!(result, Ok(()));
                self.model.run(&message);
            }
            DrawnOp::AtOnce { at, to, get, length, pt, bits, offset, times } => {
                let (at, to) = (self.at(at), self.at(to));
                for _ in 0..times {
                    self.make_room()?;
                    self.fresh += 1;
                    let mut plain = pattern(self.fresh, length);
                    let message = ModelMessage {
                        kind: if get {
                            model::ModelOpKind::Get
                        } else {
                            model::ModelOpKind::Put { ack: false }
                        },
                        from: at,
                        to,
                        pt,
                        bits,
                        remote_offset: offset,
                        local_offset: 0,
                        length,
                        hdr: if get { 0 } else { self.fresh },
                        source: None,
                        sink: None,
                        plain: (!get).then(|| plain.clone()),
                    };
                    let ni = self.rig.nodes()[at].interface().expect("all nodes are here");
                    let To { id, pt, ac, bits, offset } = self.to(&message);
                    // SAFETY: an array of that many bytes.
                    let result = unsafe {
                        if get {
                            let into = plain.as_mut_ptr();
                            ni.get_at_once(into, length as u64, id, pt, ac, bits, offset)
                        } else {
                            // Pieces of any length, none included.
                            let (first, rest) = plain.split_at_mut(length / 3);
                            let pieces = [first, &mut [], rest].map(|piece| portals3::MdIovec {
                                base: piece.as_mut_ptr().cast(),
                                len: piece.len() as u64,
                            });
                            ni.put_at_once(pieces, id, pt, ac, bits, offset, message.hdr)
                        }
                    };
                    // Messages that would be dropped are not sent, nor messages to memory that
                    // is not mapped.
                    let mapped = self.rig.kind == crate::rig::RigKind::ShmOneProcess && at != to;
                    let accepted = result.expect("memory that is there");
                    prop_assert_eq!(accepted.is_some(), mapped && !self.model.drops(&message));
                    if let Some(accepted) = accepted {
                        let answer = self.model.run(&message);
                        prop_assert!(!get || plain.starts_with(&answer), "other bytes were got");
                        prop_assert!(!get || accepted == answer.len() as u64, "not all were got");
                    }
                }
            }
            DrawnOp::EqGet { at, eq, count } => {
                let at = self.at(at);
                self.read(at, eq, count)?;
            }
        }
        self.rig.settle();
        Ok(())
    }

    fn to(&self, message: &ModelMessage) -> To {
        To {
            id: self.model.ids[message.to],
            pt: message.pt,
            ac: 0,
            bits: message.bits,
            offset: message.remote_offset as u64,
        }
    }

    fn part(&self, at: usize, md: usize, part: (usize, usize)) -> (usize, usize) {
        let len = self.model.processes[at].mds[md].as_ref().expect("bound").bytes.len();
        let offset = part.0.min(len);
        (offset, part.1.min(len - offset))
    }

    fn update(
        &mut self,
        at: usize,
        md: usize,
        new: Option<MdDraw>,
        test: Option<usize>,
    ) -> PlayResult {
        let at = self.at(at);
        let Some(md) = pick(&self.model.processes[at].mds, md, |_| true) else { return Ok(()) };
        let new = new.map(|draw| self.describe(at, &draw));
        let before = self.model.processes[at].mds[md].clone().expect("picked");
        let names = &self.names[at];
        let mut old = crate::rig::md(NodeBuffer { address: 0, len: 0 }, 0, EqHandle::NONE);
        let queue = test.map_or(EqHandle::NONE, |eq| names.eqs[eq]);
        let changed = new.as_ref().map(|new| new.1);
        let result =
            self.rig.nodes()[at].md_update(names.mds[md].0, Some(&mut old), changed, queue);
        prop_assert_eq!(old.start, names.mds[md].1.start());
        prop_assert_eq!(old.length, before.bytes.len() as u64);
        prop_assert_eq!(old.options, before.options);
        prop_assert_eq!(old.threshold, before.threshold);
        let due: Vec<_> = test.map_or(Vec::new(), |eq| self.model.processes[at].eqs[eq].clone());
        let Some((mut ours, _, buffer)) = new else {
            prop_assert_eq!(result, Ok(()));
            return Ok(());
        };
        let unread = due.iter().any(|due| !due.optional);
        let perhaps = due.iter().any(|due| due.optional);
        if !perhaps {
            prop_assert_eq!(result, if unread { Err(PtlError::MdNoUpdate) } else { Ok(()) });
        }
        if result.is_ok() {
            ours.unlink = before.unlink;
            self.model.processes[at].mds[md] = Some(ours);
            self.names[at].mds[md].1 = buffer;
        }
        Ok(())
    }

    /// Reads up to `count` events of a queue and compares them with what is due.
    fn read(&mut self, at: usize, eq: usize, count: usize) -> PlayResult {
        for _ in 0..count {
            let fetched = self.rig.poll(&self.rig.nodes()[at], self.names[at].eqs[eq]);
            let Some(fetched) = fetched else {
                let missing = self.model.processes[at].eqs[eq].iter().find(|due| !due.optional);
                prop_assert!(missing.is_none(), "never came: {:?}", missing);
                self.model.processes[at].eqs[eq].clear();
                return Ok(());
            };
            prop_assert!(!fetched.dropped, "nothing may be lost: {:?}", fetched);
            self.compare(at, eq, &fetched.event)?;
        }
        Ok(())
    }

    /// Reads queues that another operation could fill.
    fn make_room(&mut self) -> PlayResult {
        for at in 0..self.rig.nodes().len() {
            for eq in 0..QUEUES {
                if self.model.processes[at].eqs[eq].len() + BURST > ROOM {
                    self.read(at, eq, usize::MAX)?;
                }
            }
        }
        Ok(())
    }
}
