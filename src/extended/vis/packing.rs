//! Packing: many small pieces in one Medium, with handlers that scatter and gather them.
//!
//! Used by `super`, and by the table of handlers of `extended`. Invariant: nothing that a peer
//! sent is used before it was checked: rows against the segment, numbers against what is kept
//! here.
//!
//! ```text
//!   put   request: data, then rows of the remote pieces    reply: completes one fragment
//!   get   request: rows of the remote pieces, a number     reply: data, the number
//! ```
//!
//! The local rows of a get are kept here, under the number that travels.

use super::operation::VisOperation;
use super::pieces::{LocalRows, PieceRow, PieceRows, ROW, VisRun};
use crate::client_memory::{Dst, Src, own_memory};
use crate::conduit::{AmMessage, CHUNK, MAX_EAGER, OpId, RefusedAccess};
use crate::extended::handler_ids::{
    VIS_GET_REPLY, VIS_GET_REQUEST, VIS_PUT_REPLY, VIS_PUT_REQUEST,
};
use crate::extended::messages;
use crate::rank::JobRank;
use crate::report;
use crate::runtime::Ctx;
use crate::runtime::am::AmToken;
use alloc::vec::Vec;
use parking_lot::Mutex;

/// A packed get that has not been answered.
#[derive(Debug)]
struct PendingGet {
    rank: JobRank,
    op: OpId,
    bytes: usize,
    /// The destination.
    local: LocalRows,
}

/// The packed gets of a process that have not been answered, by number.
#[derive(Debug, Default)]
pub(super) struct PendingGets(Mutex<GetTable>);

#[derive(Debug, Default)]
struct GetTable {
    gets: Vec<Option<PendingGet>>,
    free: Vec<u32>,
}

impl PendingGets {
    fn keep(&self, get: PendingGet) -> u32 {
        let mut table = self.0.lock();
        match table.free.pop() {
            Some(number) => {
                table.gets[number as usize] = Some(get);
                number
            }
            None => {
                table.gets.push(Some(get));
                table.gets.len() as u32 - 1
            }
        }
    }

    /// The get with this number, if `rank` may answer it with this many bytes.
    fn take(&self, number: u32, rank: JobRank, bytes: usize) -> Option<PendingGet> {
        let mut table = self.0.lock();
        let slot = table.gets.get_mut(number as usize)?;
        let get = slot.take_if(|get| get.rank == rank && get.bytes == bytes)?;
        table.free.push(number);
        Some(get)
    }
}

/// Packs the pieces of a put.
pub(super) struct PutPacker<'a> {
    operation: &'a VisOperation,
    capacity: usize,
    data: [u8; CHUNK],
    used: usize,
    remote: PieceRows,
}

impl<'a> PutPacker<'a> {
    /// For messages of up to `capacity` bytes.
    pub(super) fn new(operation: &'a VisOperation, capacity: usize) -> Self {
        PutPacker { operation, capacity, data: [0; CHUNK], used: 0, remote: PieceRows::default() }
    }

    /// Adds a piece that fits with one row into an empty message; sends the pieces before if it
    /// does not fit with them.
    pub(super) fn push(&mut self, run: VisRun) {
        if self.used + run.n + self.remote.bytes() + ROW > self.capacity {
            self.send();
        }
        Dst::from(&mut self.data[self.used..][..run.n]).copy_from(run.local().into());
        self.used += run.n;
        self.remote.push(run.remote, run.n);
    }

    /// Sends the pieces that are left.
    pub(super) fn send(&mut self) {
        if self.used == 0 {
            return;
        }
        let rows = self.remote.as_src();
        Dst::from(&mut self.data[self.used..][..rows.len()]).copy_from(rows);
        let args = [self.operation.count(1).0 as i32, self.used as i32];
        let VisOperation { ctx, rank, function, .. } = *self.operation;
        let payload = Src::from(&self.data[..self.used + rows.len()]);
        messages::request(ctx, function, rank, VIS_PUT_REQUEST, &args, payload);
        self.used = 0;
        self.remote.clear();
    }
}

/// Packs the pieces of a get.
pub(super) struct GetPacker<'a> {
    operation: &'a VisOperation,
    gets: &'a PendingGets,
    capacity: usize,
    bytes: usize,
    remote: PieceRows,
    local: LocalRows,
}

impl<'a> GetPacker<'a> {
    /// For messages of up to `capacity` bytes in either direction.
    pub(super) fn new(
        operation: &'a VisOperation,
        gets: &'a PendingGets,
        capacity: usize,
    ) -> Self {
        let (remote, local) = (PieceRows::default(), LocalRows::default());
        GetPacker { operation, gets, capacity, bytes: 0, remote, local }
    }

    /// Adds a piece that fits into an empty message; sends the pieces before if it does not fit
    /// with them. Remote pieces that are neighbours travel as one.
    pub(super) fn push(&mut self, run: VisRun) {
        if self.bytes + run.n > self.capacity || self.remote.bytes() + ROW > self.capacity {
            self.send();
        }
        self.remote.extend(run.remote, run.n);
        self.local.push(run);
        self.bytes += run.n;
    }

    /// Sends the pieces that are left.
    pub(super) fn send(&mut self) {
        if self.bytes == 0 {
            return;
        }
        let VisOperation { ctx, rank, function, .. } = *self.operation;
        let op = self.operation.count(1);
        let local = core::mem::take(&mut self.local);
        let number = self.gets.keep(PendingGet { rank, op, bytes: self.bytes, local });
        let args = [number as i32, self.bytes as i32];
        messages::request(ctx, function, rank, VIS_GET_REQUEST, &args, self.remote.as_src());
        self.bytes = 0;
        self.remote.clear();
    }
}

/// Calls `f` with the pieces of the own segment that the rows of a message name; they have
/// `total` bytes together.
fn named(ctx: Ctx, m: &AmMessage<'_>, rows: Src<'_>, total: usize, mut f: impl FnMut(Dst<'_>)) {
    let segment = ctx.endpoint().own_segment();
    let mut left = total;
    if !rows.len().is_multiple_of(ROW) {
        malformed(m);
    }
    for i in 0..rows.len() / ROW {
        let Some(row) = PieceRow::read(rows.part(i * ROW, ROW)) else { malformed(m) };
        for (addr, len) in row.pieces() {
            let offset = addr.addr().wrapping_sub(segment.as_ptr().addr());
            let Some(piece) = segment.try_part(offset, len).filter(|_| len <= left) else {
                malformed(m)
            };
            left -= len;
            f(piece);
        }
    }
    if left != 0 {
        malformed(m);
    }
}

/// The handler of a packed put, at the target.
pub fn on_put(ctx: Ctx, token: &AmToken, m: &AmMessage<'_>) {
    let &[op, data] = m.args else { malformed(m) };
    let (payload, data) = (Src::from(m.payload), data as u32 as usize);
    if data > payload.len() {
        malformed(m);
    }
    let (mut from, rows) = payload.split_at(data);
    let everything = ctx.endpoint().segments().is_everything();
    named(ctx, m, rows, data, |piece| {
        let (next, rest) = from.split_at(piece.len());
        if !everything {
            piece.copy_from(next);
        } else if !own_memory::store(piece, next) {
            refused(ctx, m, piece, true);
        }
        from = rest;
    });
    let nothing = Src::empty();
    messages::reply(ctx, "gasnet_puts", token, VIS_PUT_REPLY, &[op], nothing);
}

/// The handler of the answer to a packed put, at the initiator.
pub fn on_put_reply(ctx: Ctx, _: &AmToken, m: &AmMessage<'_>) {
    let &[op] = m.args else { malformed(m) };
    ctx.job.ops.complete(OpId(op as u32));
}

/// The handler of a packed get, at the target.
pub fn on_get(ctx: Ctx, token: &AmToken, m: &AmMessage<'_>) {
    let &[number, total] = m.args else { malformed(m) };
    let total = total as u32 as usize;
    let mut data = [0u8; CHUNK];
    if total > MAX_EAGER {
        malformed(m);
    }
    let mut to = Dst::from(&mut data[..total]);
    let everything = ctx.endpoint().segments().is_everything();
    named(ctx, m, m.payload.into(), total, |piece| {
        let (next, rest) = to.split_at(piece.len());
        if !everything {
            next.copy_from(piece.into());
        } else if !own_memory::load(next, piece.into()) {
            refused(ctx, m, piece, false);
        }
        to = rest;
    });
    let payload = Src::from(&data[..total]);
    messages::reply(ctx, "gasnet_gets", token, VIS_GET_REPLY, &[number], payload);
}

impl PendingGets {
    /// The handler of the answer to a packed get, at the initiator.
    pub(super) fn on_reply(&self, ctx: Ctx, token: &AmToken, m: &AmMessage<'_>) {
        let &[number] = m.args else { malformed(m) };
        let mut from = Src::from(m.payload);
        let Some(get) = self.take(number as u32, token.source(), from.len()) else { malformed(m) };
        for to in get.local.sides() {
            let (next, rest) = from.split_at(to.len());
            to.copy_from(next);
            from = rest;
        }
        ctx.job.ops.complete(get.op);
    }
}

/// Ends the job: a piece that a message names is memory that this rank does not have.
fn refused(ctx: Ctx, m: &AmMessage<'_>, piece: Dst<'_>, writes: bool) -> ! {
    RefusedAccess {
        operation: if writes { "a vector put" } else { "a vector get" },
        bytes: piece.len(),
        piece: false,
        initiator: m.source,
        target: ctx.endpoint().rank,
        address: piece.as_ptr().addr(),
        writes,
    }
    .report()
}

fn malformed(m: &AmMessage<'_>) -> ! {
    report::fatal(
        format_args!(
            "a message of rank {} with packed pieces is malformed: {:?}, {} bytes",
            m.source,
            m.args,
            m.payload.len()
        ),
        format_args!("All ranks of a job must use the same version of the library."),
    )
}
