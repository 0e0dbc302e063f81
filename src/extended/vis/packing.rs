//! Packing: many small pieces in one Medium, with handlers that scatter and gather.
//!
//! A put carries data and, after them, the rows of the remote pieces; its reply completes one fragment of the operation.
//! A get carries the rows of the remote pieces, its reply the data; where these go is kept here meanwhile, under a
//! number that travels with both. Nothing that a peer sent is used before it was checked: rows against the segment,
//! numbers against what is kept.

use super::pieces::{PieceRow, PieceRows, VisPiece, VisRun};
use super::{VisOperation, copy};
use crate::client_memory::Src;
use crate::conduit::{AmMessage, CHUNK, OpId, Outgoing};
use crate::extended::{Extended, VIS_GET_REPLY, VIS_GET_REQUEST, VIS_PUT_REPLY, VIS_PUT_REQUEST};
use crate::report;
use crate::runtime::Ctx;
use crate::runtime::am::AmToken;
use alloc::vec::Vec;
use parking_lot::Mutex;

/// Bytes of a row in a message.
pub const ROW: usize = size_of::<PieceRow>();

/// A packed get that has not been answered.
#[derive(Debug)]
struct PendingGet {
    node: u32,
    op: OpId,
    bytes: usize,
    /// Where the data go.
    local: PieceRows,
}

/// The packed gets of a process that have not been answered, by number.
#[derive(Debug, Default)]
pub struct PendingGets(Mutex<GetTable>);

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

    /// The get with this number, if process `node` may answer it with this many bytes.
    fn take(&self, number: u32, node: u32, bytes: usize) -> Option<PendingGet> {
        let mut table = self.0.lock();
        let slot = table.gets.get_mut(number as usize)?;
        let get = slot.take_if(|get| get.node == node && get.bytes == bytes)?;
        table.free.push(number);
        Some(get)
    }
}

fn gets(ctx: Ctx) -> &'static PendingGets {
    &ctx.job.subsystem.get::<Extended>().vis.gets
}

/// Packs the pieces of a put.
pub struct PutPacker<'a> {
    issue: &'a VisOperation,
    room: usize,
    data: [u8; CHUNK],
    used: usize,
    remote: PieceRows,
}

impl<'a> PutPacker<'a> {
    /// For messages of up to `room` bytes.
    pub fn new(issue: &'a VisOperation, room: usize) -> Self {
        PutPacker { issue, room, data: [0; CHUNK], used: 0, remote: PieceRows::default() }
    }

    /// Adds a piece that fits with one row into an empty message; sends what does not fit any more.
    ///
    /// # Safety
    /// The local side must be readable.
    #[inline]
    pub unsafe fn push(&mut self, run: VisRun) {
        if self.used + run.n + self.remote.bytes() + ROW > self.room {
            self.send();
        }
        // SAFETY: fits; readable, as the caller says.
        unsafe { copy(self.data.as_mut_ptr().add(self.used), run.local, run.n) };
        self.used += run.n;
        self.remote.push(run.remote, run.n);
    }

    /// Sends what is left.
    pub fn send(&mut self) {
        if self.used == 0 {
            return;
        }
        let (rows, n) = (self.remote.0.as_ptr().cast::<u8>(), self.remote.bytes());
        // SAFETY: data and rows fit into `room`, which is no more than a chunk; a row has no padding.
        unsafe { core::ptr::copy_nonoverlapping(rows, self.data.as_mut_ptr().add(self.used), n) };
        let op = self.issue.count(1);
        let args = [op.0 as i32, self.used as i32];
        let data = Src::from(&self.data[..self.used + n]);
        let m = Outgoing::medium(VIS_PUT_REQUEST, &args, data);
        self.issue.ctx.request(self.issue.function, self.issue.node, &m);
        self.used = 0;
        self.remote.0.clear();
    }
}

/// Packs the pieces of a get.
pub struct GetPacker<'a> {
    issue: &'a VisOperation,
    room: usize,
    bytes: usize,
    remote: PieceRows,
    local: PieceRows,
}

impl<'a> GetPacker<'a> {
    /// For messages of up to `room` bytes in either direction.
    pub fn new(issue: &'a VisOperation, room: usize) -> Self {
        GetPacker {
            issue,
            room,
            bytes: 0,
            remote: PieceRows::default(),
            local: PieceRows::default(),
        }
    }

    /// Adds a piece that fits into an empty message; sends what does not fit any more. Remote pieces that are
    /// neighbours travel as one.
    #[inline]
    pub fn push(&mut self, run: VisRun) {
        if self.bytes + run.n > self.room || self.remote.bytes() + ROW > self.room {
            self.send();
        }
        let next = run.remote.expose_provenance() as u64;
        match self.remote.0.last_mut() {
            Some(r) if r.count == 1 && r.at + u64::from(r.n) == next => r.n += run.n as u32,
            _ => self.remote.push(run.remote, run.n),
        }
        self.local.push(run.local, run.n);
        self.bytes += run.n;
    }

    /// Sends what is left.
    pub fn send(&mut self) {
        if self.bytes == 0 {
            return;
        }
        let (ctx, node) = (self.issue.ctx, self.issue.node);
        let get = PendingGet {
            node,
            op: self.issue.count(1),
            bytes: self.bytes,
            local: core::mem::take(&mut self.local),
        };
        let args = [gets(ctx).keep(get) as i32, self.bytes as i32];
        let (rows, n) = (self.remote.0.as_ptr().cast(), self.remote.bytes());
        // SAFETY: the bytes of our list of rows, which lives longer than the call.
        let m = Outgoing::medium(VIS_GET_REQUEST, &args, unsafe { Src::new(rows, n) });
        ctx.request(self.issue.function, node, &m);
        self.bytes = 0;
        self.remote.0.clear();
    }
}

/// The pieces of our own segment that `n` bytes of rows name, which must have `total` bytes.
fn named(
    ctx: Ctx,
    m: &AmMessage<'_>,
    rows: *const u8,
    n: usize,
    total: usize,
    mut f: impl FnMut(VisPiece),
) {
    let segment = &ctx.job.segments()[ctx.job.mynode];
    let mut left = total;
    if !n.is_multiple_of(ROW) {
        malformed(m);
    }
    for i in 0..n / ROW {
        // SAFETY: within the payload; any bytes make a row.
        let row = unsafe { rows.cast::<PieceRow>().add(i).read_unaligned() };
        for (addr, len) in row.pieces() {
            let Some(offset) = segment.offset(addr, len).filter(|_| len <= left) else {
                malformed(m)
            };
            left -= len;
            f((segment.base.wrapping_add(offset), len));
        }
    }
    if left != 0 {
        malformed(m);
    }
}

/// The handler of a packed put, at the target.
pub fn on_put(ctx: Ctx, token: &AmToken, m: &AmMessage<'_>) {
    let &[op, data] = m.args else { malformed(m) };
    let data = data as u32 as usize;
    if data > m.payload.len() {
        malformed(m);
    }
    let mut from = m.payload.as_ptr().cast_const();
    // SAFETY: `data` is no more than the bytes of the payload.
    let rows = unsafe { m.payload.as_ptr().add(data) };
    named(ctx, m, rows, m.payload.len() - data, data, |(addr, n)| {
        // SAFETY: `named` keeps the pieces in our segment and their sum at `data`.
        unsafe {
            copy(addr, from, n);
            from = from.add(n);
        }
    });
    let reply = Outgoing::short(VIS_PUT_REPLY, core::slice::from_ref(&op));
    ctx.reply("gasnet_puts", core::ptr::from_ref(token).cast(), &reply);
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
    if total > ctx.job.conduit.max_medium() {
        malformed(m);
    }
    let mut to = data.as_mut_ptr();
    named(ctx, m, m.payload.as_ptr(), m.payload.len(), total, |(addr, n)| {
        // SAFETY: `named` keeps the pieces in our segment and their sum at `total`, which the buffer can hold.
        unsafe {
            copy(to, addr, n);
            to = to.add(n);
        }
    });
    let args = [number];
    let reply = Outgoing::medium(VIS_GET_REPLY, &args, Src::from(&data[..total]));
    ctx.reply("gasnet_gets", core::ptr::from_ref(token).cast(), &reply);
}

/// The handler of the answer to a packed get, at the initiator.
pub fn on_get_reply(ctx: Ctx, token: &AmToken, m: &AmMessage<'_>) {
    let &[number] = m.args else { malformed(m) };
    let Some(get) = gets(ctx).take(number as u32, token.source, m.payload.len()) else {
        malformed(m)
    };
    let mut from = m.payload.as_ptr().cast_const();
    for (addr, n) in get.local.0.iter().flat_map(|row| row.pieces()) {
        // SAFETY: these are pieces that the client lends until the operation is synced; their sum is `nbytes`.
        unsafe {
            copy(addr, from, n);
            from = from.add(n);
        }
    }
    ctx.job.ops.complete(get.op);
}

#[cold]
fn malformed(m: &AmMessage<'_>) -> ! {
    report::fatal(
        format_args!(
            "a message of process {} with packed pieces is malformed: {:?}, {} bytes",
            m.source,
            m.args,
            m.payload.len()
        ),
        format_args!("All processes of a job must use the same version of the library."),
    )
}
