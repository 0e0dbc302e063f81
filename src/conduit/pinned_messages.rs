//! Active messages of memory that must be registered: requests to register it, and data that
//! travel with them or in their place.
//!
//! Sent by `pinned_transfer`; handlers of the extended layer call the functions that serve them.
//! Invariant: what a message names is checked before it is used, and accesses to memory of the
//! client are made by the kernel, which reports pages that are missing.
//!
//! | message | words | payload | reply |
//! |---|---|---|---|
//! | MOVE | bytes of the request, address of the data | the request, then data of a put | the answer |
//! | COPY_PUT | address, transfer | data | the transfer |
//! | COPY_GET | address, bytes, transfer, offset | | the transfer, the offset; data |

use super::firehose::{ANSWER_BYTES, FirehoseStats, MOVE_BYTES, Mover};
use super::message::AmMessage;
use super::pinned::PinnedMemory;
use super::portals::Portals;
use super::refused::RefusedAccess;
use super::{Conduit, Outgoing, Upcall};
use crate::client_memory::{Dst, Src, own_memory};
use crate::rank::JobRank;
use crate::report;

/// The first of six handlers: request and reply of MOVE, COPY_PUT, COPY_GET.
pub const PINNED_HANDLERS: u8 = 74;

const MOVE: u8 = PINNED_HANDLERS;
const MOVED: u8 = PINNED_HANDLERS + 1;
const COPY_PUT: u8 = PINNED_HANDLERS + 2;
const COPIED: u8 = PINNED_HANDLERS + 3;
const COPY_GET: u8 = PINNED_HANDLERS + 4;
const COPY_DATA: u8 = PINNED_HANDLERS + 5;

/// Most data in one message.
pub(super) const COPY_BYTES: usize = 1920;
/// Largest put that a MOVE carries.
const RIDE_BYTES: usize = 1024;

/// A number of 64 bits as two arguments.
fn halves(n: usize) -> [i32; 2] {
    let n = n as u64;
    [(n >> 32) as i32, n as i32]
}

fn joined(high: i32, low: i32) -> usize {
    (u64::from(high as u32) << 32 | u64::from(low as u32)) as usize
}

/// Sends MOVE.
pub(super) struct AmMover<'a, P: Portals, U> {
    pub(super) conduit: &'a Conduit<P>,
    pub(super) up: U,
    /// Where the payload that rides along goes.
    pub(super) address: usize,
}

impl<P: Portals, U: Upcall> Mover for AmMover<'_, P, U> {
    fn send(&self, to: JobRank, message: &[u8], payload: Src<'_>) {
        let mut bytes = [0u8; MOVE_BYTES + RIDE_BYTES];
        let n = message.len() + payload.len();
        let (head, tail) = Dst::from(&mut bytes[..n]).split_at(message.len());
        head.copy_from(Src::from(message));
        tail.copy_from(payload);
        let [high, low] = halves(self.address);
        let args = [message.len() as i32, high, low];
        self.conduit.request_message(
            self.up,
            to,
            &Outgoing::medium(MOVE, &args, Src::from(&bytes[..n])),
        );
    }
}

impl<P: Portals> Conduit<P> {
    /// Sends data of a put to an address of a rank, as pieces of a transfer.
    pub(super) fn send_copies<U: Upcall>(
        &self,
        up: U,
        pinned: &PinnedMemory<P>,
        (rank, address): (JobRank, usize),
        src: Src<'_>,
        transfer: u32,
    ) {
        for at in (0..src.len()).step_by(COPY_BYTES) {
            let part = src.part(at, COPY_BYTES.min(src.len() - at));
            let [high, low] = halves(address + at);
            pinned.transfers.add_piece(transfer);
            let args = [high, low, transfer as i32];
            self.request_message(up, rank, &Outgoing::medium(COPY_PUT, &args, part));
        }
    }

    /// Asks a rank for the `n` bytes at an address, which go to an offset of the destination of a
    /// transfer, as pieces of it.
    pub(super) fn ask_copies<U: Upcall>(
        &self,
        up: U,
        pinned: &PinnedMemory<P>,
        (rank, address): (JobRank, usize),
        (offset, n): (usize, usize),
        transfer: u32,
    ) {
        for at in (0..n).step_by(COPY_BYTES) {
            let [high, low] = halves(address + at);
            let [offset_high, offset_low] = halves(offset + at);
            pinned.transfers.add_piece(transfer);
            let len = COPY_BYTES.min(n - at) as i32;
            let args = [high, low, len, transfer as i32, offset_high, offset_low];
            self.request_message(up, rank, &Outgoing::short(COPY_GET, &args));
        }
    }

    /// Whether memory is registered on demand and its unmapping is noticed. Then each call of the
    /// client begins with [`Conduit::undo_unmapped`].
    pub fn notices_unmapping(&self) -> bool {
        self.pinned.get().is_some_and(|pinned| pinned.notices_unmapping)
    }

    /// Undoes the registration of memory that was unmapped.
    pub fn undo_unmapped(&self) {
        if let Some(firehose) = self.pinned.get().and_then(|pinned| pinned.firehose.as_ref()) {
            firehose.undo_unmapped();
        }
    }

    /// How often things happened to regions of registered memory, if there are any.
    pub fn firehose_stats(&self) -> Option<FirehoseStats> {
        Some(self.pinned.get()?.firehose.as_ref()?.stats())
    }

    /// Serves MOVE, COPY_PUT and COPY_GET; `reply` sends the reply.
    pub fn serve_pinned(&self, m: &AmMessage<'_>, reply: impl FnOnce(&Outgoing<'_>)) {
        match (m.handler, m.args) {
            (MOVE, &[len, high, low]) if len as u32 as usize <= m.payload.len() => {
                let (request, data) = m.payload.split_at(len as u32 as usize);
                self.serve_move(m, request, joined(high, low), data, reply);
            }
            (COPY_PUT, &[high, low, transfer]) => {
                self.store_copy(m, joined(high, low), m.payload.into());
                reply(&Outgoing::short(COPIED, &[transfer]));
            }
            (COPY_GET, &[high, low, n, transfer, offset_high, offset_low])
                if (1..=COPY_BYTES as i32).contains(&n) =>
            {
                let mut bytes = [0u8; COPY_BYTES];
                let (data, n) = (Dst::from(&mut bytes[..n as usize]), n as usize);
                let from = self.named_memory(m, joined(high, low), n, false);
                if !own_memory::load(data, from.into()) {
                    self.refuse(m, joined(high, low), n, false);
                }
                let args = [transfer, offset_high, offset_low];
                reply(&Outgoing::medium(COPY_DATA, &args, data.into()));
            }
            _ => malformed(m),
        }
    }

    fn serve_move(
        &self,
        m: &AmMessage<'_>,
        request: Dst<'_>,
        address: usize,
        data: Dst<'_>,
        reply: impl FnOnce(&Outgoing<'_>),
    ) {
        let (pinned, mut bytes) = (self.pinned_of(m), [0u8; MOVE_BYTES]);
        let Some(firehose) = &pinned.firehose else { malformed(m) };
        let Some(copy) = bytes.get_mut(..request.len()) else { malformed(m) };
        Dst::from(&mut *copy).copy_from(request.into());
        if data.len() != 0 {
            self.store_copy(m, address, data.into());
        }
        let mut answer = [0u8; ANSWER_BYTES];
        let n = firehose.serve(m.source, copy, &mut answer).unwrap_or_else(|| malformed(m));
        if n != 0 {
            reply(&Outgoing::medium(MOVED, &[], Src::from(&answer[..n])));
        }
    }

    /// Serves the replies.
    pub fn serve_pinned_reply<U: Upcall>(&self, up: U, m: &AmMessage<'_>) {
        let pinned = self.pinned_of(m);
        match (m.handler, m.args) {
            (MOVED, &[]) => {
                let (Some(firehose), mut bytes) = (&pinned.firehose, [0u8; ANSWER_BYTES]) else {
                    malformed(m)
                };
                let Some(copy) = bytes.get_mut(..m.payload.len()) else { malformed(m) };
                Dst::from(&mut *copy).copy_from(m.payload.into());
                if !firehose.answered(m.source, copy) {
                    malformed(m);
                }
            }
            (COPIED, &[transfer]) => self.piece_arrived(up, pinned, m, transfer),
            (COPY_DATA, &[transfer, high, low]) => {
                let (offset, n) = (joined(high, low), m.payload.len());
                let to = pinned.transfers.destination(transfer as u32, offset, n);
                let Some(to) = to else { malformed(m) };
                to.copy_from(m.payload.into());
                self.piece_arrived(up, pinned, m, transfer);
            }
            _ => malformed(m),
        }
    }

    fn piece_arrived<U: Upcall>(
        &self,
        up: U,
        pinned: &PinnedMemory<P>,
        m: &AmMessage<'_>,
        transfer: i32,
    ) {
        let done = pinned.transfers.piece_done(transfer as u32).unwrap_or_else(|_| malformed(m));
        if let Some(op) = done {
            up.op_done(op);
        }
    }

    /// Stores data that came in a message.
    fn store_copy(&self, m: &AmMessage<'_>, address: usize, data: Src<'_>) {
        let to = self.named_memory(m, address, data.len(), true);
        if !own_memory::store(to, data) {
            self.refuse(m, address, data.len(), true);
        }
    }

    /// Memory of this rank that a peer names; pages of it may be missing.
    fn named_memory(
        &self,
        m: &AmMessage<'_>,
        address: usize,
        n: usize,
        writes: bool,
    ) -> Dst<'static> {
        self.rar().named(address, n).unwrap_or_else(|| self.refuse(m, address, n, writes))
    }

    /// Ends the job: a rank has named memory that this one does not have.
    #[cold]
    fn refuse(&self, m: &AmMessage<'_>, address: usize, bytes: usize, writes: bool) -> ! {
        RefusedAccess {
            operation: if writes { "a put" } else { "a get" },
            bytes,
            piece: true,
            initiator: m.source,
            target: self.me,
            address,
            writes,
        }
        .report()
    }

    fn pinned_of(&self, m: &AmMessage<'_>) -> &PinnedMemory<P> {
        self.pinned.get().unwrap_or_else(|| malformed(m))
    }
}

#[cold]
fn malformed(m: &AmMessage<'_>) -> ! {
    report::damaged(format_args!(
        "a message of rank {} about registered memory (handler {}) was overwritten: {:?}",
        m.source, m.handler, m.args
    ))
}
